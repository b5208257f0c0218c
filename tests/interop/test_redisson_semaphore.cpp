// SPDX-License-Identifier: MIT
//
// Permits of a semaphore and Redisson's getPermitExpirableSemaphore() on one server.
//
// Leases are long: a permit comes back by a release, or because the test puts its end into the past on the server. Ours asks
// again by itself after ten minutes only, so who is served within woken_within was woken by a message.
#include <atomic>
#include <list>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "redisson_fixture.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr Duration longest_poll = 10min;

void connect_patiently(Client& client, const RedisServer& server) {
  ClientConfig config = config_for(server.tcp_url());
  config.max_poll = longest_poll;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
}

// What the sorted set has for it.
std::string id_of(const Semaphore& permit) { return std::string(permit.token().bytes().string_view()); }

// One permit, of a connection of its own.
struct Ours {
  Ours(const RedisServer& server, std::uint32_t permits, const std::string& name = "k")
      : permit(client, ByteView(name), permits, {.lease = 60s}) {
    connect_patiently(client, server);
  }
  std::string id() const { return id_of(permit); }

  Client client;
  Semaphore permit;
};

// One of us who waits for a permit on a thread of its own.
class Waiter {
 public:
  Waiter(const RedisServer& server, std::uint32_t permits, const std::string& name = "k")
      : ours_(server, permits, name) {
    thread_ = std::thread([this] {
      outcome_ = ours_.permit.acquire(bound);
      granted_at_ = Client::now();
    });
  }
  ~Waiter() {
    if (thread_.joinable()) thread_.join();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Waits for its end, and expects a grant that soon after `event`.
  Semaphore& granted_after(Instant event) {
    thread_.join();
    TEST_ASSERT_EQUAL(Status::ok, outcome_);
    TEST_ASSERT_TRUE(granted_at_ - event < woken_within);
    return ours_.permit;
  }

 private:
  Ours ours_;
  Status outcome_ = Status::outcome_unknown;
  Instant granted_at_;
  std::thread thread_;
};

// A refusal looks for the nearest end.
class PermitRefusals : public Refusals {
 public:
  explicit PermitRefusals(const RedisServer& server) : Refusals(server, semaphore_channel, "zrange") {}
};

// The id behind "granted", of one that must be.
std::string take_theirs(Peer& peer, const std::string& name = "k", const std::string& terms = "60000 0") {
  const std::string answer = peer.ask("permit", name, terms);
  TEST_ASSERT_TRUE(is_granted(answer));
  return answer.substr(answer.find(' ') + 1);
}

// As Redisson derives it, spelt out once more.
std::string ends_of(const std::string& name) {
  return (name.find('{') == std::string::npos ? "{" + name + "}" : name) + ":timeout";
}

// Redisson says its ids in hex, and stores the bytes.
std::string bytes_of(const std::string& id) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < id.size(); at += 2)
    bytes += static_cast<char>(std::stoi(id.substr(at, 2), nullptr, 16));
  return bytes;
}

long end_of(const RedisServer& server, const std::string& member) {
  const std::string score = server.command({"ZSCORE", ends_of("k"), member});
  TEST_ASSERT_TRUE(score != "(nil)");
  return std::stol(score);
}

long now_of(const RedisServer& server) {
  std::istringstream words(server.command("TIME"));
  long seconds = 0;
  long microseconds = 0;
  words >> seconds >> microseconds;
  return seconds * 1000 + microseconds / 1000;
}

// As if its lease had been over long ago. XX: it must be there.
void end_lease_of(const RedisServer& server, const std::string& member) {
  TEST_ASSERT_EQUAL("1", server.command({"ZADD", ends_of("k"), "XX", "CH", "1000", member}));
}

void expect_permits(Peer& peer, int free, int taken, const std::string& name = "k") {
  TEST_ASSERT_EQUAL(std::to_string(free), peer.ask("available-permits", name));
  TEST_ASSERT_EQUAL(std::to_string(taken), peer.ask("acquired-permits", name));
  TEST_ASSERT_EQUAL(std::to_string(free + taken), peer.ask("all-permits", name));
}

// All permits are back. How many there are stays.
void expect_all_back(const RedisServer& server, int permits) {
  TEST_ASSERT_EQUAL(std::to_string(permits), server.command("GET k"));
  expect_nothing_left(server, "k");
}

}  // namespace

// ---- How many have one -------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_permits_that_are_theirs_and_ours_should_be_as_many_as_were_set_and_not_one_more) {
  constexpr int permits = 5;
  Peer peer(server.port());
  for (int theirs = 0; theirs <= permits; ++theirs) {
    TEST_MESSAGE("theirs: " << theirs);
    std::vector<std::string> ids;
    std::list<Ours> ours;
    Ours late(server, permits);
    TEST_ASSERT_EQUAL(Status::ok, late.permit.try_acquire());  // It sets the number the first time.
    TEST_ASSERT_EQUAL(Status::ok, late.permit.release());
    for (int turn = 0; turn < permits; ++turn) {
      // They take turns for as long as both have some left.
      const bool is_theirs = ids.size() < static_cast<std::size_t>(theirs) &&
                             (turn % 2 == 0 || ours.size() == static_cast<std::size_t>(permits - theirs));
      if (is_theirs)
        ids.push_back(take_theirs(peer));
      else
        TEST_ASSERT_EQUAL(Status::ok, ours.emplace_back(server, permits).permit.try_acquire());
      expect_permits(peer, permits - turn - 1, turn + 1);
    }
    TEST_ASSERT_EQUAL(static_cast<std::size_t>(theirs), ids.size());
    TEST_ASSERT_EQUAL("busy", peer.ask("permit k 60000 0"));
    TEST_ASSERT_EQUAL(Status::lock_busy, late.permit.try_acquire());
    for (Ours& each : ours) TEST_ASSERT_EQUAL(Status::ok, each.permit.renew());
    for (const std::string& id : ids) TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + id));
    expect_permits(peer, theirs, permits - theirs);
    for (Ours& each : ours) TEST_ASSERT_EQUAL(Status::ok, each.permit.release());
    expect_permits(peer, permits, 0);
  }
  expect_all_back(server, permits);
}

TEST_ON_SERVER(test_a_number_that_they_have_set_should_be_ours_too) {
  Peer peer(server.port());
  Ours nobody_has(server, 0);
  TEST_ASSERT_EQUAL(Status::permits_differ, nobody_has.permit.try_acquire());
  TEST_ASSERT_EQUAL("yes", peer.ask("set-permits k 3"));
  const std::string theirs = take_theirs(peer);
  Ours same(server, 3);
  Ours whatever(server, 0);
  TEST_ASSERT_EQUAL(Status::ok, same.permit.try_acquire());
  for (const std::uint32_t other : {1U, 2U, 4U}) {
    TEST_MESSAGE("another number: " << other);
    Ours ours(server, other);
    TEST_ASSERT_EQUAL(Status::permits_differ, ours.permit.try_acquire());
    TEST_ASSERT_EQUAL(Status::permits_differ, ours.permit.acquire(bound));  // Which is no reason to wait.
  }
  TEST_ASSERT_EQUAL(Status::ok, whatever.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, nobody_has.permit.try_acquire());
  expect_permits(peer, 0, 3);
  TEST_ASSERT_EQUAL(Status::ok, same.permit.release());
  TEST_ASSERT_EQUAL(Status::ok, whatever.permit.release());
  TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + theirs));
  expect_all_back(server, 3);
}

TEST_ON_SERVER(test_a_number_that_we_have_set_should_be_theirs_too) {
  Peer peer(server.port());
  TEST_ASSERT_EQUAL("busy", peer.ask("permit k 60000 0"));  // Nobody has said how many.
  Ours ours(server, 2);
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.try_acquire());
  TEST_ASSERT_EQUAL("no", peer.ask("set-permits k 7"));
  TEST_ASSERT_EQUAL("no", peer.ask("set-permits k 2"));
  const std::string theirs = take_theirs(peer);
  TEST_ASSERT_EQUAL("busy", peer.ask("permit k 60000 0"));
  expect_permits(peer, 0, 2);
  TEST_ASSERT_EQUAL("yes", peer.ask("try-release-permit k " + theirs));
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.release());
  expect_all_back(server, 2);
}

// ---- Who wakes whom ----------------------------------------------------------------------------------------------

// One of theirs has no end, so that nothing tells ours when to ask again.
TEST_ON_SERVER(test_their_release_should_wake_our_waiter) {
  Peer peer(server.port());
  TEST_ASSERT_EQUAL("yes", peer.ask("set-permits k 2"));
  for (const std::string lease : {"60000", "none"})
    for (const std::string release : {"release-permit", "try-release-permit"}) {
      TEST_MESSAGE("lease: " << lease << ", by: " << release);
      const std::string first = take_theirs(peer, "k", lease + " 0");
      const std::string second = take_theirs(peer, "k", lease + " 0");
      Ours ours(server, 2);
      TEST_ASSERT_EQUAL(Status::lock_busy, ours.permit.try_acquire());
      const PermitRefusals refusals(server);
      Waiter waiter(server, 2);
      refusals.await_waiting("k");
      const Instant released = Client::now();
      TEST_ASSERT_EQUAL(release == "release-permit" ? "ok" : "yes", peer.ask(release + " k " + first));
      Semaphore& granted = waiter.granted_after(released);
      TEST_ASSERT_EQUAL(Status::lock_busy, ours.permit.try_acquire());
      TEST_ASSERT_EQUAL("busy", peer.ask("permit k 60000 0"));
      TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + second));
      TEST_ASSERT_EQUAL(Status::ok, granted.release());
    }
  expect_all_back(server, 2);
}

// Theirs waits in each way that Redisson has: with and without a bound, with and without a lease.
TEST_ON_SERVER(test_our_release_should_wake_their_waiter) {
  Peer peer(server.port());
  Ours first(server, 2);
  Ours second(server, 2);
  for (const char* const terms : {"60000 40000", "60000 forever", "none 40000", "none forever"}) {
    TEST_MESSAGE("lease and wait: " << std::string(terms));
    TEST_ASSERT_EQUAL(Status::ok, first.permit.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, second.permit.try_acquire());
    TEST_ASSERT_EQUAL("busy", peer.ask("permit k 60000 0"));
    const PermitRefusals refusals(server);
    TEST_ASSERT_EQUAL("waiting", peer.ask("start-permit", "k", terms));
    refusals.await_waiting("k");
    TEST_ASSERT_FALSE(peer.has_event());
    const Instant released = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, first.permit.release());
    const std::string theirs = expect_granted_after(peer, "k", released);
    TEST_ASSERT_EQUAL(Status::lock_busy, first.permit.try_acquire());
    TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + theirs));
    TEST_ASSERT_EQUAL(Status::ok, second.permit.release());
    await_subscribers(server, "k", 0, semaphore_channel);
  }
  expect_all_back(server, 2);
}

// As many as come back, with nobody left asleep beside a permit that is free.
TEST_ON_SERVER(test_releases_of_both_should_wake_waiters_of_both) {
  constexpr std::uint32_t permits = 4;
  Peer peer(server.port());
  Ours first(server, permits);
  Ours second(server, permits);
  TEST_ASSERT_EQUAL(Status::ok, first.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.permit.try_acquire());
  const std::string third = take_theirs(peer);
  const std::string fourth = take_theirs(peer, "k", "none 0");
  const PermitRefusals refusals(server);
  Waiter one(server, permits);
  Waiter other(server, permits);
  for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL("waiting", peer.ask("start-permit k 60000 forever"));
  refusals.await_waiting("k", 4, 3);  // Redisson subscribes once a process.
  TEST_ASSERT_EQUAL("ok", peer.ask("await-waiters k"));
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + third));
  TEST_ASSERT_EQUAL(Status::ok, first.permit.release());
  TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + fourth));
  TEST_ASSERT_EQUAL(Status::ok, second.permit.release());
  std::vector<std::string> theirs;
  for (int turn = 0; turn < 2; ++turn) theirs.push_back(expect_granted_after(peer, "k", released));
  Semaphore& ours = one.granted_after(released);
  TEST_ASSERT_EQUAL(Status::ok, other.granted_after(released).release());
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  for (const std::string& id : theirs) TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + id));
  expect_all_back(server, permits);
}

TEST_ON_SERVER(test_both_should_mean_the_same_keys_and_channel_by_a_name) {
  Peer peer(server.port());
  for (const std::string& name : names) {
    TEST_MESSAGE("name: " << name);
    TEST_ASSERT_EQUAL("yes", peer.ask("set-permits", name, "1"));
    const std::string theirs = take_theirs(peer, name);
    TEST_ASSERT_EQUAL("1", server.command({"ZCARD", ends_of(name)}));
    const PermitRefusals refusals(server);
    Waiter waiter(server, 1, name);
    refusals.await_waiting(name);
    const Instant unlocked = Client::now();
    TEST_ASSERT_EQUAL("ok", peer.ask("release-permit", name, theirs));
    Semaphore& granted = waiter.granted_after(unlocked);
    expect_permits(peer, 0, 1, name);
    await_subscribers(server, name, 0, semaphore_channel);
    const PermitRefusals theirs_again(server);
    TEST_ASSERT_EQUAL("waiting", peer.ask("start-permit", name, "60000 forever"));
    theirs_again.await_waiting(name);
    const Instant released = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, granted.release());
    TEST_ASSERT_EQUAL("ok", peer.ask("release-permit", name, expect_granted_after(peer, name, released)));
    expect_permits(peer, 1, 0, name);
    TEST_ASSERT_EQUAL("1", server.command({"DEL", name}));
  }
  expect_nothing_left(server);
}

// Theirs has no end until the test gives it one, so that nothing but their message tells ours.
TEST_ON_SERVER(test_ours_that_waits_should_get_what_they_take_back_from_the_dead) {
  Peer peer(server.port());
  Peer dead(server.port());
  TEST_ASSERT_EQUAL("yes", peer.ask("set-permits k 1"));
  const std::string lost = take_theirs(dead, "k", "none 0");
  dead.kill();
  const PermitRefusals refusals(server);
  Waiter waiter(server, 1);
  refusals.await_waiting("k");
  end_lease_of(server, bytes_of(lost));
  const Instant looked = Client::now();
  // It takes back what is over, and says so.
  (void)peer.ask("available-permits k");
  Semaphore& granted = waiter.granted_after(looked);
  TEST_ASSERT_EQUAL("lost", peer.ask("release-permit k " + lost));
  TEST_ASSERT_EQUAL(Status::ok, granted.renew());
  TEST_ASSERT_EQUAL(Status::ok, granted.release());
  expect_all_back(server, 1);
}

// Ours takes two back and one of them for itself.
TEST_ON_SERVER(test_theirs_that_waits_should_get_what_we_take_back_from_the_dead) {
  Peer peer(server.port());
  Ours first(server, 2);
  Ours second(server, 2);
  Ours third(server, 2);
  TEST_ASSERT_EQUAL(Status::ok, first.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.permit.try_acquire());
  const PermitRefusals refusals(server);
  TEST_ASSERT_EQUAL("waiting", peer.ask("start-permit k 60000 forever"));
  refusals.await_waiting("k");
  TEST_ASSERT_EQUAL("ok", peer.ask("await-waiters k"));
  end_lease_of(server, first.id());
  end_lease_of(server, second.id());
  const Instant taken = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, third.permit.try_acquire());
  const std::string theirs = expect_granted_after(peer, "k", taken);
  expect_permits(peer, 0, 2);
  for (Ours* const late : {&first, &second}) TEST_ASSERT_EQUAL(Status::lock_lost, late->permit.release());
  expect_permits(peer, 0, 2);
  TEST_ASSERT_EQUAL(Status::ok, third.permit.release());
  TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + theirs));
  expect_all_back(server, 2);
}

// Redisson says that there was nothing to release, gives it back all the same, and tells everybody.
TEST_ON_SERVER(test_their_release_of_what_is_over_should_wake_our_waiter) {
  Peer peer(server.port());
  TEST_ASSERT_EQUAL("yes", peer.ask("set-permits k 1"));
  const std::string late = take_theirs(peer, "k", "none 0");
  const PermitRefusals refusals(server);
  Waiter waiter(server, 1);
  refusals.await_waiting("k");
  end_lease_of(server, bytes_of(late));
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL("lost", peer.ask("release-permit k " + late));
  Semaphore& granted = waiter.granted_after(released);
  expect_permits(peer, 0, 1);
  TEST_ASSERT_EQUAL(Status::ok, granted.release());
  expect_all_back(server, 1);
}

// A waiter of theirs sleeps without an end before anybody has said how many there are.
TEST_ON_SERVER(test_the_first_who_sets_the_number_should_wake_their_waiters) {
  Peer peer(server.port());
  const PermitRefusals refusals(server);
  TEST_ASSERT_EQUAL("waiting", peer.ask("start-permit k 60000 forever"));
  refusals.await_waiting("k");
  TEST_ASSERT_EQUAL("ok", peer.ask("await-waiters k"));
  Ours ours(server, 2);
  const Instant set = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.try_acquire());
  const std::string theirs = expect_granted_after(peer, "k", set);
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.release());
  TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + theirs));
  expect_all_back(server, 2);
}

// ---- Leases ------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_permit_of_theirs_whose_lease_is_over_should_come_back_to_ours) {
  Peer peer(server.port());
  TEST_ASSERT_EQUAL("yes", peer.ask("set-permits k 2"));
  Peer dying(server.port());
  const std::string kept = take_theirs(peer, "k", "none 0");
  const std::string lost = take_theirs(dying);
  dying.kill();
  Ours ours(server, 2);
  TEST_ASSERT_EQUAL(Status::lock_busy, ours.permit.try_acquire());
  end_lease_of(server, bytes_of(lost));
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.try_acquire());
  expect_permits(peer, 0, 2);
  // A release that comes too late leaves us alone.
  TEST_ASSERT_EQUAL("lost", peer.ask("release-permit k " + lost));
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.renew());
  TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + kept));
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.release());
  expect_all_back(server, 2);
}

TEST_ON_SERVER(test_a_permit_of_ours_whose_lease_is_over_should_come_back_to_them) {
  Peer peer(server.port());
  Ours lost(server, 2);
  Ours kept(server, 2);
  TEST_ASSERT_EQUAL(Status::ok, lost.permit.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, kept.permit.try_acquire());
  TEST_ASSERT_EQUAL("busy", peer.ask("permit k 60000 0"));
  end_lease_of(server, lost.id());
  const std::string theirs = take_theirs(peer);
  TEST_ASSERT_EQUAL("busy", peer.ask("permit k 60000 0"));
  expect_permits(peer, 0, 2);
  TEST_ASSERT_EQUAL(Status::lock_lost, lost.permit.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, lost.permit.release());
  expect_permits(peer, 0, 2);
  TEST_ASSERT_EQUAL(Status::ok, kept.permit.renew());
  TEST_ASSERT_EQUAL(Status::ok, kept.permit.release());
  TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + theirs));
  expect_all_back(server, 2);
}

TEST_ON_SERVER(test_what_is_renewed_should_be_spared_when_they_take_back_what_is_over) {
  Peer peer(server.port());
  Ours ours(server, 1);
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.try_acquire());
  end_lease_of(server, ours.id());
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.renew());  // Nobody has taken it back yet.
  TEST_ASSERT_TRUE(end_of(server, ours.id()) > now_of(server));
  expect_permits(peer, 0, 1);
  TEST_ASSERT_EQUAL("busy", peer.ask("permit k 60000 0"));
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.renew());
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.release());
  expect_all_back(server, 1);
}

// The lease is long enough for a machine that stands still for seconds.
TEST_ON_SERVER(test_our_watchdog_should_keep_a_permit_from_them_beyond_its_first_lease) {
  Peer peer(server.port());
  Client client;
  connect_patiently(client, server);
  WatchdogPlaces<1> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Semaphore permit(client, "k", 1, {.lease = 9s});  // It goes before its watchdog, also from a test that fails.
  TEST_ASSERT_EQUAL(Status::ok, permit.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, permit.try_acquire());
  const long first_end = end_of(server, id_of(permit));
  TEST_ASSERT_TRUE(comes_true([&] {
    TEST_ASSERT_EQUAL("busy", peer.ask("permit k 60000 0"));
    TEST_ASSERT_EQUAL("0", peer.ask("available-permits k"));
    return now_of(server) > first_end;
  }));
  TEST_ASSERT_EQUAL("busy", peer.ask("permit k 60000 0"));
  TEST_ASSERT_TRUE(permit.held());
  TEST_ASSERT_EQUAL(Status::ok, permit.release());
  TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + take_theirs(peer)));
  expect_all_back(server, 1);
}

TEST_ON_SERVER(test_a_lease_that_they_update_should_be_theirs_alone) {
  Peer peer(server.port());
  Ours ours(server, 2);
  Ours late(server, 2);
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.try_acquire());
  const std::string theirs = take_theirs(peer);
  const long our_end = end_of(server, ours.id());
  const long their_end = end_of(server, bytes_of(theirs));
  TEST_ASSERT_EQUAL("yes", peer.ask("update-lease k " + theirs + " 600000"));
  TEST_ASSERT_TRUE(end_of(server, bytes_of(theirs)) > their_end);
  TEST_ASSERT_EQUAL(our_end, end_of(server, ours.id()));
  TEST_ASSERT_TRUE(std::stol(peer.ask("lease-time k " + theirs)) > 60000);
  TEST_ASSERT_EQUAL(Status::lock_busy, late.permit.try_acquire());

  // And a renewal is ours alone.
  const long updated = end_of(server, bytes_of(theirs));
  server.command({"ZADD", ends_of("k"), "XX", std::to_string(our_end - 10000), ours.id()});
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.renew());
  TEST_ASSERT_TRUE(end_of(server, ours.id()) >= our_end);
  TEST_ASSERT_EQUAL(updated, end_of(server, bytes_of(theirs)));

  // What is over and taken back cannot be had again by an update.
  end_lease_of(server, bytes_of(theirs));
  TEST_ASSERT_EQUAL(Status::ok, late.permit.try_acquire());
  TEST_ASSERT_EQUAL("no", peer.ask("update-lease k " + theirs + " 600000"));
  expect_permits(peer, 0, 2);
  TEST_ASSERT_EQUAL(Status::ok, late.permit.release());
  TEST_ASSERT_EQUAL(Status::ok, ours.permit.release());
  expect_all_back(server, 2);
}

// ---- Whose permit it is ------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_release_should_leave_the_permits_of_others_alone) {
  Peer peer(server.port());
  Ours ours(server, 3);
  Ours other(server, 3);
  for (const bool theirs_leaves : {false, true}) {
    TEST_MESSAGE("theirs leaves: " << theirs_leaves);
    TEST_ASSERT_EQUAL(Status::ok, ours.permit.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, other.permit.try_acquire());
    const std::string theirs = take_theirs(peer);
    const long other_end = end_of(server, other.id());
    if (theirs_leaves) {
      const long our_end = end_of(server, ours.id());
      TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + theirs));
      TEST_ASSERT_EQUAL("lost", peer.ask("release-permit k " + theirs));  // Only once.
      TEST_ASSERT_EQUAL("no", peer.ask("try-release-permit k " + theirs));
      TEST_ASSERT_EQUAL(our_end, end_of(server, ours.id()));
      expect_permits(peer, 1, 2);
      TEST_ASSERT_EQUAL(Status::ok, ours.permit.renew());
      TEST_ASSERT_EQUAL(Status::ok, ours.permit.release());
    } else {
      const long their_end = end_of(server, bytes_of(theirs));
      TEST_ASSERT_EQUAL(Status::ok, ours.permit.release());
      TEST_ASSERT_EQUAL(Status::not_held, ours.permit.release());
      TEST_ASSERT_EQUAL(their_end, end_of(server, bytes_of(theirs)));
      expect_permits(peer, 1, 2);
      TEST_ASSERT_EQUAL("ok", peer.ask("release-permit k " + theirs));
    }
    TEST_ASSERT_EQUAL(other_end, end_of(server, other.id()));
    expect_permits(peer, 2, 1);
    TEST_ASSERT_EQUAL(Status::ok, other.permit.release());
  }
  expect_all_back(server, 3);
}

// ---- All of it together ------------------------------------------------------------------------------------------

// Who is inside counts itself on the server. Whoever missed its message would wait in vain, and longer than any wait here takes.
TEST_ON_SERVER(test_never_more_than_all_permits_should_be_in_use_and_nobody_should_be_left_waiting) {
  constexpr long permits = 3;
  constexpr int threads = 4;
  constexpr Duration length = 3s;
  Peer peer(server.port());
  TEST_ASSERT_EQUAL("yes", peer.ask("set-permits k " + std::to_string(permits)));
  server.command("SET inside 0");
  std::list<Ours> ours;
  for (int index = 0; index < threads; ++index) ours.emplace_back(server, static_cast<std::uint32_t>(permits));
  for (int index = 0; index < threads; ++index)
    TEST_ASSERT_EQUAL("counting", peer.ask("start-permit-use k inside " + std::to_string(length / 1ms)));

  std::atomic<long> most{0};
  std::atomic<int> failures{0};
  std::atomic<int> late{0};
  std::vector<int> rounds(threads, 0);
  std::vector<std::thread> workers;
  auto each = ours.begin();
  for (int index = 0; index < threads; ++index, ++each)
    workers.emplace_back([&, index, permit = &each->permit] {
      const Instant end = Client::now() + length;
      do {
        const Instant began = Client::now();
        if (permit->acquire(2 * bound) != Status::ok) {
          ++failures;
          return;
        }
        if (Client::now() - began > bound) ++late;
        const long inside = std::stol(server.command("INCR inside"));
        for (long before = most; before < inside && !most.compare_exchange_weak(before, inside);) {}
        server.command("DECR inside");
        if (permit->release() != Status::ok) ++failures;
        ++rounds[static_cast<std::size_t>(index)];
      } while (Client::now() < end);
    });
  for (std::thread& worker : workers) worker.join();
  TEST_ASSERT_EQUAL(0, failures.load());
  TEST_ASSERT_EQUAL(0, late.load());
  for (const int count : rounds) {
    TEST_MESSAGE("rounds of ours: " << count);
    TEST_ASSERT_TRUE(count > 0);
  }
  for (int index = 0; index < threads; ++index) {
    const std::vector<std::string> counted = peer.event();
    TEST_ASSERT_EQUAL("counted", counted.at(0));
    TEST_MESSAGE("rounds of theirs: " << counted.at(3) << ", at once: " << counted.at(4));
    TEST_ASSERT_TRUE(std::stol(counted.at(3)) > 0);
    TEST_ASSERT_TRUE(std::stol(counted.at(4)) <= permits);
    TEST_ASSERT_TRUE(std::chrono::milliseconds(std::stol(counted.at(5))) < bound);
  }
  TEST_MESSAGE("at once: " << most.load());
  TEST_ASSERT_TRUE(most.load() <= permits);
  TEST_ASSERT_EQUAL("0", server.command("GET inside"));
  TEST_ASSERT_EQUAL("1", server.command("DEL inside"));
  expect_permits(peer, static_cast<int>(permits), 0);
  expect_all_back(server, static_cast<int>(permits));
}
