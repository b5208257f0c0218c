// SPDX-License-Identifier: MIT
//
// The reentrant and the fenced lock and Redisson's getLock() and getFencedLock() on one server.
//
// Leases are long where a hand-off is timed: who is served within two seconds was woken by a message, not by the end of
// a lease or by a poll.
#include <string>
#include <thread>
#include <vector>

#include "redisson_fixture.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

std::uint64_t count_by_inspection(Client& client, const std::string& name) {
  LockInfo info;
  TEST_ASSERT_EQUAL(Status::ok, inspect(client, Key(ByteView(name)), info));
  TEST_ASSERT_TRUE(info.form == (info.count == 0 ? LockForm::free : LockForm::reentrant));
  return info.count;
}

// One of us who waits for the lock on a connection and a thread of its own.
template <typename Lock>
class Waiter {
 public:
  Waiter(const RedisServer& server, const std::string& name)
      : owner_(client_), lock_(owner_, ByteView(name), {.lease = 60s}) {
    connect(client_, server);
    thread_ = std::thread([this] {
      outcome_ = lock_.acquire(bound);
      granted_at_ = Client::now();
    });
  }
  ~Waiter() {
    if (thread_.joinable()) thread_.join();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Waits for its end, and expects a grant that soon after `event`.
  Lock& granted_after(Instant event) {
    thread_.join();
    TEST_ASSERT_EQUAL(Status::ok, outcome_);
    TEST_ASSERT_TRUE(granted_at_ - event < woken_within);
    return lock_;
  }

 private:
  Client client_;
  Owner owner_;
  Lock lock_;
  Status outcome_ = Status::outcome_unknown;
  Instant granted_at_;
  std::thread thread_;
};

// What the two kinds have in common.
struct Plain {
  using Lock = ReentrantLock;
  static constexpr const char* lock = "lock";
  [[maybe_unused]] static constexpr const char* start_lock = "start-lock";
  static std::string left_behind(const std::string&) { return ""; }
};
struct Fenced {
  using Lock = FencedLock;
  static constexpr const char* lock = "fenced-lock";
  [[maybe_unused]] static constexpr const char* start_lock = "start-fenced-lock";
  // The counter stays: a fence that starts anew would be none.
  static std::string left_behind(const std::string& name) { return derived("redisson_lock_token", name); }
};

// Ours with a queue, beside theirs without one, and with one of its own.
struct Queued {
  using Lock = FairLock;
  static constexpr const char* lock = "lock";
  [[maybe_unused]] static constexpr const char* start_lock = "start-lock";
  static std::string left_behind(const std::string&) { return ""; }
};
struct Fair {
  using Lock = FairLock;
  static constexpr const char* lock = "fair-lock";
  [[maybe_unused]] static constexpr const char* start_lock = "start-fair-lock";
  static std::string left_behind(const std::string&) { return ""; }
};

template <typename Kind>
void exclude_each_other(const RedisServer& server) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  typename Kind::Lock lock(owner, "k", {.lease = 20s});

  TEST_ASSERT_TRUE(is_granted(peer.ask(Kind::lock, "k", "20000 0")));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_FALSE(lock.held());
  bool locked = false;
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  TEST_ASSERT_TRUE(locked);
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));

  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("busy", peer.ask(Kind::lock, "k", "20000 0"));
  TEST_ASSERT_EQUAL("busy", peer.ask(Kind::lock, "k", "watchdog 0"));
  TEST_ASSERT_EQUAL("yes", peer.ask("is-locked k"));
  TEST_ASSERT_EQUAL("no", peer.ask("is-held k"));
  TEST_ASSERT_TRUE(std::stol(peer.ask("remaining k")) > 10000);
  TEST_ASSERT_TRUE(std::stol(peer.ask("remaining k")) <= 20000);
  TEST_ASSERT_EQUAL("lost", peer.ask("unlock k"));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("no", peer.ask("is-locked k"));
  TEST_ASSERT_TRUE(is_granted(peer.ask(Kind::lock, "k", "watchdog 0")));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  expect_nothing_left(server, Kind::left_behind("k"));
}

// Theirs waits in each way that Redisson has: with and without a bound, with and without a lease.
template <typename Kind>
void wake_theirs(const RedisServer& server, const std::string& name) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  typename Kind::Lock lock(owner, ByteView(name), {.lease = 60s});
  for (const char* const terms : {"60000 30000", "watchdog 30000", "watchdog forever"}) {
    TEST_MESSAGE("lease and wait: " << terms);
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    const Refusals refusals(server);
    TEST_ASSERT_EQUAL("waiting", peer.ask(Kind::start_lock, name, terms));
    refusals.await_waiting(name);
    const Instant released = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    expect_granted_after(peer, name, released);
    TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
    TEST_ASSERT_EQUAL("ok", peer.ask("unlock", name));
    await_subscribers(server, name, 0);
  }
  expect_nothing_left(server, Kind::left_behind(name));
}

template <typename Kind>
void wake_ours(const RedisServer& server, const std::string& name) {
  Peer peer(server.port());
  TEST_ASSERT_TRUE(is_granted(peer.ask(Kind::lock, name, "60000 0")));
  {
    const Refusals refusals(server);
    Waiter<typename Kind::Lock> waiter(server, name);
    refusals.await_waiting(name);
    const Instant unlocked = Client::now();
    TEST_ASSERT_EQUAL("ok", peer.ask("unlock", name));
    TEST_ASSERT_EQUAL(Status::ok, waiter.granted_after(unlocked).release());
  }
  expect_nothing_left(server, Kind::left_behind(name));
}

}  // namespace

TEST_ON_SERVER(test_plain_locks_should_exclude_each_other) { exclude_each_other<Plain>(server); }

TEST_ON_SERVER(test_fenced_locks_should_exclude_each_other) { exclude_each_other<Fenced>(server); }

TEST_ON_SERVER(test_a_fair_lock_of_ours_and_a_plain_one_should_exclude_each_other) {
  exclude_each_other<Queued>(server);
}

TEST_ON_SERVER(test_fair_locks_should_exclude_each_other) { exclude_each_other<Fair>(server); }

TEST_ON_SERVER(test_our_release_of_a_fair_lock_should_wake_their_waiter_where_we_have_none) {
  wake_theirs<Queued>(server, "k");
}

// Nobody tells us of it: our next beat finds out.
TEST_ON_SERVER(test_our_waiter_for_a_fair_lock_should_notice_their_unlock_within_seconds) {
  Peer peer(server.port());
  TEST_ASSERT_TRUE(is_granted(peer.ask("fenced-lock k 60000 0")));
  Waiter<FairLock> waiter(server, "k");
  while (server.command("ZCARD holdfast_queue:{k}") != "1") std::this_thread::sleep_for(5ms);
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL(Status::ok, waiter.granted_after(released).release());
}

TEST_ON_SERVER(test_our_release_should_wake_their_waiter) { wake_theirs<Plain>(server, "k"); }

TEST_ON_SERVER(test_our_release_should_wake_their_waiter_for_a_fenced_lock) { wake_theirs<Fenced>(server, "k"); }

TEST_ON_SERVER(test_their_unlock_should_wake_our_waiter) { wake_ours<Plain>(server, "k"); }

TEST_ON_SERVER(test_their_unlock_should_wake_our_waiter_for_a_fenced_lock) { wake_ours<Fenced>(server, "k"); }

TEST_ON_SERVER(test_both_should_mean_the_same_key_and_channel_by_a_name) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  for (const std::string& name : names) {
    TEST_MESSAGE("name: " << name);
    ReentrantLock lock(owner, ByteView(name), {.lease = 60s});
    TEST_ASSERT_EQUAL("granted", peer.ask("lock", name, "60000 0"));
    TEST_ASSERT_EQUAL("1", server.command(std::vector<std::string>{"HLEN", name}));
    TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
    {
      const Refusals ours(server);
      Waiter<ReentrantLock> waiter(server, name);
      ours.await_waiting(name);
      const Instant unlocked = Client::now();
      TEST_ASSERT_EQUAL("ok", peer.ask("unlock", name));
      ReentrantLock& granted = waiter.granted_after(unlocked);
      await_subscribers(server, name, 0);
      const Refusals theirs(server);
      TEST_ASSERT_EQUAL("waiting", peer.ask("start-lock", name, "watchdog forever"));
      theirs.await_waiting(name);
      const Instant released = Client::now();
      TEST_ASSERT_EQUAL(Status::ok, granted.release());
      expect_granted_after(peer, name, released);
    }
    TEST_ASSERT_EQUAL("ok", peer.ask("unlock", name));
  }
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_what_they_lock_twice_should_be_theirs_until_they_unlock_twice) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(0u, count_by_inspection(client, "k"));
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  TEST_ASSERT_EQUAL(1u, count_by_inspection(client, "k"));
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  TEST_ASSERT_EQUAL(2u, count_by_inspection(client, "k"));
  TEST_ASSERT_EQUAL("2", peer.ask("hold-count k"));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL(1u, count_by_inspection(client, "k"));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL(0u, count_by_inspection(client, "k"));
  TEST_ASSERT_EQUAL("lost", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_what_we_lock_twice_should_be_ours_until_we_release_twice) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("1", server.command("HVALS k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("2", server.command("HVALS k"));
  TEST_ASSERT_EQUAL(2u, lock.hold_count());
  TEST_ASSERT_EQUAL(2u, count_by_inspection(client, "k"));
  TEST_ASSERT_EQUAL("0", peer.ask("hold-count k"));
  TEST_ASSERT_EQUAL("busy", peer.ask("lock k 20000 0"));
  const Refusals refusals(server);
  TEST_ASSERT_EQUAL("waiting", peer.ask("start-lock k 20000 30000"));
  refusals.await_waiting("k");
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("1", server.command("HVALS k"));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL("yes", peer.ask("is-locked k"));
  TEST_ASSERT_FALSE(peer.has_event());
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  expect_granted_after(peer, "k", released);
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_their_watchdog_should_keep_us_out_for_as_long_as_they_live) {
  Peer peer(server.port(), {"watchdog-timeout 6000"});
  Client client;
  connect(client, server);
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k watchdog 0"));
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) <= 6000);
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(7s));
  TEST_ASSERT_EQUAL("yes", peer.ask("is-held k"));
  peer.kill();
  // No message comes from the dead: the lease's end is what is waited for.
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(bound));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_our_watchdog_should_keep_them_out) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  WatchdogPlaces<1> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 6s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("busy", peer.ask("lock k 20000 7000"));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_tending_our_hold_should_keep_them_out) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 6s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("waiting", peer.ask("start-lock k 20000 7000"));
  Duration until_next{};
  do {
    until_next = client.tend() - Client::now();
  } while (!peer.has_event(std::chrono::duration_cast<std::chrono::milliseconds>(until_next)));
  TEST_ASSERT_EQUAL("busy", peer.event().at(0));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_our_hold_should_pass_to_them_when_nobody_keeps_it) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 3s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 20000"));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL("yes", peer.ask("is-held k"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_their_late_unlock_should_leave_our_hold_alone) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  TEST_ASSERT_EQUAL("1", server.command("PEXPIRE k 1"));  // As the server does once their lease is over.
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(bound));
  TEST_ASSERT_EQUAL("lost", peer.ask("unlock k"));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL("1", server.command("HVALS k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_their_force_unlock_should_end_our_hold_and_wake_all_who_wait) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  {
    const Refusals refusals(server);
    Waiter<ReentrantLock> waiter(server, "k");
    refusals.await_waiting("k");
    const Instant forced = Client::now();
    TEST_ASSERT_EQUAL("yes", peer.ask("force-unlock k"));
    ReentrantLock& granted = waiter.granted_after(forced);
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, granted.renew());
    TEST_ASSERT_EQUAL(Status::ok, granted.release());
  }
  TEST_ASSERT_EQUAL("no", peer.ask("force-unlock k"));
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_our_forced_release_should_end_their_hold_and_wake_all_who_wait) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 60000 0"));
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 60000 0"));
  const Refusals theirs(server);
  TEST_ASSERT_EQUAL("waiting", peer.ask("start-lock k watchdog forever"));
  theirs.await_waiting("k");
  bool released = false;
  Instant forced = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, force_release(client, Key("k"), released));
  TEST_ASSERT_TRUE(released);
  expect_granted_after(peer, "k", forced);
  // Now held by the thread that waited; and once more.
  {
    const Refusals ours(server);
    Waiter<ReentrantLock> waiter(server, "k");
    ours.await_waiting("k");
    forced = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, force_release(client, Key("k"), released));
    TEST_ASSERT_TRUE(released);
    ReentrantLock& granted = waiter.granted_after(forced);
    TEST_ASSERT_EQUAL("lost", peer.ask("unlock k"));
    TEST_ASSERT_EQUAL(Status::ok, granted.release());
  }
  TEST_ASSERT_EQUAL(Status::ok, force_release(client, Key("k"), released));
  TEST_ASSERT_FALSE(released);
  expect_nothing_left(server);
}

// Two processes, several waiters in each: every release wakes somebody, until all had their turn.
TEST_ON_SERVER(test_waiters_of_both_sides_should_all_have_their_turn) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  constexpr int each = 3;
  const Refusals refusals(server);
  std::vector<Status> outcomes(each, Status::outcome_unknown);
  std::vector<std::jthread> ours;
  for (Status& outcome : outcomes) {
    ours.emplace_back([&server, &outcome] {
      Client own;
      outcome = own.connect(ByteView(server.tcp_url()));
      Owner me(own);
      ReentrantLock mine(me, "k", {.lease = 60s});
      if (outcome == Status::ok) outcome = mine.acquire(bound);
      if (outcome == Status::ok) outcome = mine.release();
    });
    TEST_ASSERT_EQUAL("waiting", peer.ask("start-lock k 60000 30000"));
  }
  refusals.await_waiting("k", 2 * each, each + 1);  // Redisson subscribes once a process.
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  for (int turn = 0; turn < each; ++turn) {
    TEST_ASSERT_EQUAL("granted", peer.event().at(0));
    TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  }
  for (std::jthread& thread : ours) thread.join();
  for (const Status outcome : outcomes) TEST_ASSERT_EQUAL(Status::ok, outcome);
  TEST_ASSERT_TRUE(Client::now() - begin < 5s);
  expect_nothing_left(server);
}

TEST_ON_SERVER(test_fences_should_grow_from_grant_to_grant_whoever_is_granted) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  FencedLock lock(owner, "k", {.lease = 20s});
  std::uint64_t last = 0;
  const auto grows = [&](std::uint64_t fence) {
    TEST_ASSERT_TRUE(fence > last);
    last = fence;
  };
  const auto token_in = [](const std::string& answer) {
    TEST_ASSERT_TRUE(is_granted(answer));
    return std::stoull(answer.substr(answer.find(' ') + 1));
  };
  for (int round = 0; round < 3; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    grows(lock.fence());
    TEST_ASSERT_EQUAL(std::to_string(last), peer.ask("fence k"));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    grows(token_in(peer.ask("fenced-lock k 20000 0")));
    grows(token_in(peer.ask("fenced-lock k 20000 0")));  // Redisson counts re-entries, too.
    TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
    TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  }
  // And from hand to hand, by a wake.
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  grows(lock.fence());
  const Refusals refusals(server);
  TEST_ASSERT_EQUAL("waiting", peer.ask("start-fenced-lock k 20000 30000"));
  refusals.await_waiting("k");
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  grows(std::stoull(expect_granted_after(peer, "k", released)));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(bound));
  grows(lock.fence());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(std::to_string(last), server.command("GET redisson_lock_token:{k}"));
  TEST_ASSERT_EQUAL("-1", server.command("PTTL redisson_lock_token:{k}"));
  expect_nothing_left(server, "redisson_lock_token:{k}");
}

// Read, then write: whoever is let in beside another one loses counts. Ours goes on for as long as theirs takes, so
// that they meet.
TEST_ON_SERVER(test_a_counter_should_lose_nothing_between_us_and_them) {
  constexpr int their_rounds = 100;
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  ReentrantLock lock(owner, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("counting", peer.ask("start-count k counter " + std::to_string(their_rounds)));
  int our_rounds = 0;
  do {
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(30s));
    const std::string before = server.command("GET counter");
    server.command("SET counter " + std::to_string(before == "(nil)" ? 1 : std::stol(before) + 1));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    ++our_rounds;
  } while (!peer.has_event());
  TEST_ASSERT_EQUAL("counted", peer.event().at(0));
  TEST_ASSERT_EQUAL(std::to_string(our_rounds + their_rounds), server.command("GET counter"));
  TEST_ASSERT_EQUAL("1", server.command("DEL counter"));
  expect_nothing_left(server);
}

// Every key of theirs and ours but the fence's counter has an end, also while the lock is held and passed on.
TEST_ON_SERVER(test_no_key_should_be_without_an_end) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Owner owner(client);
  FencedLock lock(owner, "k", {.lease = 20s});
  const auto expect_ends = [&] {
    std::istringstream keys(server.command("KEYS *"));
    for (std::string key; keys >> key;) {
      TEST_MESSAGE("key: " << key);
      // -2: gone since, as latches go.
      if (key != "redisson_lock_token:{k}") TEST_ASSERT_TRUE(server.command("PTTL " + key) != "-1");
    }
  };
  for (int round = 0; round < 5; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    expect_ends();
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    expect_ends();
    TEST_ASSERT_TRUE(is_granted(peer.ask("fenced-lock k watchdog 0")));
    expect_ends();
    TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
    expect_ends();
  }
  expect_nothing_left(server, "redisson_lock_token:{k}");
}
