// SPDX-License-Identifier: MIT
//
// Our locks and Redisson's where servers change: in a Redis Cluster, whose slots move and whose masters are replaced, and on a
// master that sentinels name.
//
// Leases are long, and ours asks again by itself after ten minutes only: who is served within woken_within was woken by a message.
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "cluster_setup.hpp"
#include "redisson_fixture.hpp"
#include "sentinel_setup.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr Duration longest_poll = 10min;

// ---- The places where locks are ------------------------------------------------------------------------------------

struct InCluster {
  using Topology = Cluster;
  static constexpr const char* scope = of_the_slot;

  explicit InCluster(const std::string& binary) : setup(binary) {}
  [[nodiscard]] std::string url(const std::string& name) const { return setup.url(name); }
  // Both see all of the nodes.
  [[nodiscard]] Peer peer() const { return Peer("connect-cluster", ports_of(setup.servers)); }
  [[nodiscard]] RedisServer& master(const std::string& name) const { return setup.master(name); }
  // Neither side may have subscribed so that every node had to be told.
  void expect_no_other_channels() const {
    for (const auto& server : setup.servers) TEST_ASSERT_EQUAL("", server->command("PUBSUB CHANNELS redisson_*"));
  }
  void fail_over(const std::string& name) { setup.fail_over(name); }

  template <class Servers>
  static std::vector<int> ports_of(const Servers& servers) {
    std::vector<int> ports;
    for (const auto& server : servers) ports.push_back(server->port());
    return ports;
  }

  ClusterSetup setup;
};

struct BySentinels {
  using Topology = Sentinels;
  static constexpr const char* scope = of_every_node;

  explicit BySentinels(const std::string& binary) : setup(binary) {
    // Redisson wants sentinels that know each other.
    for (const auto& sentinel : setup.sentinels)
      await([&] {
        return sentinel->command("SENTINEL MASTER mymaster").find("num-other-sentinels 2") != std::string::npos;
      });
  }
  [[nodiscard]] std::string url(const std::string&) const { return setup.url(); }
  [[nodiscard]] Peer peer() const { return Peer("connect-sentinel mymaster", InCluster::ports_of(setup.sentinels)); }
  [[nodiscard]] RedisServer& master(const std::string&) const { return setup.master(); }
  void expect_no_other_channels() const {}
  void fail_over(const std::string&) {
    setup.await_replicas();
    setup.fail_over();
  }

  SentinelSetup setup;
};

// A client of ours that finds the server of that name.
template <class Place>
struct Member {
  Member(const Place& place, const std::string& name) {
    config.topology = &topology;
    TEST_ASSERT_EQUAL(Status::ok, parse_url(ByteView(place.url(name)), config));
    config.request_timeout = 5s;
    config.connect_timeout = 5s;
    config.max_poll = longest_poll;
    const Status status = client.connect(config);
    TEST_MESSAGE("error text: " << std::string(client.error_text().string_view()));
    TEST_ASSERT_EQUAL(Status::ok, status);
  }
  typename Place::Topology topology;
  ClientConfig config;
  Client client;
};

// ---- The kinds -----------------------------------------------------------------------------------------------------
//
// Of each: ours, and what Redisson is told. What it grants of a semaphore has an id, which the others do not use.

struct Plain {
  struct Ours {
    Ours(Client& client, const std::string& name) : owner(client), lock(owner, ByteView(name), {.lease = 60s}) {}
    Owner owner;
    ReentrantLock lock;
  };
  static constexpr const char* channel = plain_channel;
  static constexpr const char* refusal = "pttl";
  static constexpr const char* take = "lock";
  static constexpr const char* start = "start-lock";
  static std::string give_back(const std::string& name, const std::string&) { return "unlock " + name; }
  static std::string left_behind(const std::string&) { return ""; }
};
struct Fenced {
  struct Ours {
    Ours(Client& client, const std::string& name) : owner(client), lock(owner, ByteView(name), {.lease = 60s}) {}
    Owner owner;
    FencedLock lock;
  };
  static constexpr const char* channel = plain_channel;
  static constexpr const char* refusal = "pttl";
  static constexpr const char* take = "fenced-lock";
  static constexpr const char* start = "start-fenced-lock";
  static std::string give_back(const std::string& name, const std::string&) { return "unlock " + name; }
  static std::string left_behind(const std::string& name) { return derived("redisson_lock_token", name); }
};
struct Writer {
  struct Ours {
    Ours(Client& client, const std::string& name)
        : owner(client), pair(owner, ByteView(name), {.read = {.lease = 30s}, .write = {.lease = 60s}}) {}
    Owner owner;
    ReadWriteLock pair;
    ReadWriteLock::Side& lock = pair.write();
  };
  static constexpr const char* channel = read_write_channel;
  static constexpr const char* refusal = "pttl";
  static constexpr const char* take = "write-lock";
  static constexpr const char* start = "start-write-lock";
  static std::string give_back(const std::string& name, const std::string&) { return "unlock-write " + name; }
  static std::string left_behind(const std::string&) { return ""; }
};
struct Permit {
  struct Ours {
    Ours(Client& client, const std::string& name) : lock(client, ByteView(name), 1, {.lease = 60s}) {}
    Semaphore lock;
  };
  static constexpr const char* channel = semaphore_channel;
  static constexpr const char* refusal = "zrange";  // It looks for the nearest end.
  static constexpr const char* take = "permit";
  static constexpr const char* start = "start-permit";
  static std::string give_back(const std::string& name, const std::string& id) {
    return "release-permit " + name + " " + id;
  }
  static std::string left_behind(const std::string& name) { return name; }
};

// One of us that waits for the lock on a thread of its own, and gives it back where it is told to.
template <class Place, class Kind>
class Waiter {
 public:
  Waiter(const Place& place, const std::string& name, bool gives_back = false)
      : member_(place, name), ours_(member_.client, name) {
    thread_ = std::thread([this, gives_back] {
      outcome_ = ours_.lock.acquire(60s);
      granted_at_ = Client::now();
      if (gives_back && outcome_ == Status::ok) outcome_ = ours_.lock.release();
    });
  }
  ~Waiter() {
    if (thread_.joinable()) thread_.join();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Waits for its end, and expects a grant that soon after `event`.
  auto& granted_after(Instant event) {
    thread_.join();
    TEST_ASSERT_EQUAL(Status::ok, outcome_);
    TEST_ASSERT_TRUE(granted_at_ - event < woken_within);
    return ours_.lock;
  }

 private:
  Member<Place> member_;
  typename Kind::Ours ours_;
  Status outcome_ = Status::outcome_unknown;
  Instant granted_at_;
  std::thread thread_;
};

constexpr char at_once[] = "60000 0";
constexpr char patiently[] = "60000 60000";

// The token or id of what they are granted at once; it must be.
template <class Kind>
std::string take_theirs(Peer& peer, const std::string& name) {
  const std::string answer = peer.ask(Kind::take, name, at_once);
  TEST_MESSAGE("their answer: " << answer);
  TEST_ASSERT_TRUE(is_granted(answer));
  return answer.find(' ') == std::string::npos ? "" : answer.substr(answer.find(' ') + 1);
}

template <class Place, class Kind>
Refusals refusals_of(const Place& place, const std::string& name) {
  return Refusals(place.master(name), Kind::channel, Kind::refusal, Place::scope);
}

// One of theirs that waits. Returns when only a message wakes it: a writer's is lost to one that is not asleep yet.
template <class Place, class Kind>
void start_theirs(Peer& peer, const Place& place, const std::string& name) {
  const Refusals refusals = refusals_of<Place, Kind>(place, name);
  TEST_ASSERT_EQUAL("waiting", peer.ask(Kind::start, name, patiently));
  refusals.await_waiting(name);
  if (std::is_same_v<Kind, Writer>) TEST_ASSERT_EQUAL("ok", peer.ask("await-waiters", name));
}

template <class Place, class Kind>
void expect_nothing_left(const Place& place, const std::string& name) {
  RedisServer& master = place.master(name);
  await_subscribers(master, name, 0, Kind::channel, Place::scope);
  TEST_ASSERT_TRUE(comes_true([&] { return master.command("KEYS *" + name + "*") == Kind::left_behind(name); }));
}

// ---- What is true in every place -----------------------------------------------------------------------------------

template <class Kind, class Place>
void exclude_each_other(const Place& place, Peer& peer, const std::string& name) {
  TEST_MESSAGE("name: " << name);
  Member<Place> member(place, name);
  typename Kind::Ours ours(member.client, name);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.try_acquire());
  TEST_ASSERT_EQUAL("busy", peer.ask(Kind::take, name, at_once));
  TEST_ASSERT_TRUE(ours.lock.held());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.release());
  const std::string id = take_theirs<Kind>(peer, name);
  TEST_ASSERT_EQUAL(Status::lock_busy, ours.lock.try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask(Kind::give_back(name, id)));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.release());
}

template <class Kind, class Place>
void wake_each_other(const Place& place, Peer& peer, const std::string& name) {
  TEST_MESSAGE("name: " << name);
  Member<Place> member(place, name);
  typename Kind::Ours ours(member.client, name);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.try_acquire());
  start_theirs<Place, Kind>(peer, place, name);
  place.expect_no_other_channels();
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.release());
  const std::string id = expect_granted_after(peer, name, released);
  await_subscribers(place.master(name), name, 0, Kind::channel, Place::scope);
  {
    const Refusals refusals = refusals_of<Place, Kind>(place, name);
    Waiter<Place, Kind> waiter(place, name);
    refusals.await_waiting(name);
    place.expect_no_other_channels();
    const Instant unlocked = Client::now();
    TEST_ASSERT_EQUAL("ok", peer.ask(Kind::give_back(name, id)));
    TEST_ASSERT_EQUAL(Status::ok, waiter.granted_after(unlocked).release());
  }
  expect_nothing_left<Place, Kind>(place, name);
}

// Both wait for one lock, which a third one has: both listen to one channel, and each has its turn.
template <class Kind, class Place>
void listen_together(const Place& place, Peer& peer, const std::string& name) {
  TEST_MESSAGE("name: " << name);
  Member<Place> member(place, name);
  typename Kind::Ours ours(member.client, name);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.try_acquire());
  start_theirs<Place, Kind>(peer, place, name);
  {
    Waiter<Place, Kind> waiter(place, name, true);
    await_subscribers(place.master(name), name, 2, Kind::channel, Place::scope);
    place.expect_no_other_channels();
    const Instant released = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, ours.lock.release());
    const std::string id = expect_granted_after(peer, name, released);
    TEST_ASSERT_EQUAL("ok", peer.ask(Kind::give_back(name, id)));
    waiter.granted_after(released);
  }
  expect_nothing_left<Place, Kind>(place, name);
}

// Redisson ends its connections to the old master when it hears of the new one, and what it is asked meanwhile may fail by that.
template <class Kind>
std::string take_after_a_fail_over(Peer& peer, const std::string& name) {
  std::string answer;
  (void)comes_true([&] {
    answer = peer.ask(Kind::take, name, at_once);
    return !answer.starts_with("error org.redisson.client.RedisConnectionException");
  });
  return answer;
}

// One lock is ours and one is theirs, somebody of the other side waits for each, and the master is replaced.
template <class Kind, class Place>
void live_through_a_fail_over(Place& place) {
  const std::string our_name = "{k}:ours";
  const std::string their_name = "{k}:theirs";
  Peer peer = place.peer();
  Member<Place> member(place, our_name);
  typename Kind::Ours ours(member.client, our_name);
  typename Kind::Ours rival(member.client, their_name);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.try_acquire());
  const std::string id = take_theirs<Kind>(peer, their_name);
  start_theirs<Place, Kind>(peer, place, our_name);
  const Refusals refusals = refusals_of<Place, Kind>(place, their_name);
  Waiter<Place, Kind> waiter(place, their_name);
  refusals.await_waiting(their_name);
  const int before = place.master(our_name).port();

  place.fail_over(our_name);
  RedisServer& master = place.master(our_name);
  TEST_ASSERT_TRUE(before != master.port());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.renew(bound));
  TEST_ASSERT_EQUAL("busy", take_after_a_fail_over<Kind>(peer, our_name));
  TEST_ASSERT_EQUAL(Status::lock_busy, rival.lock.try_acquire());
  TEST_ASSERT_FALSE(peer.has_event());
  TEST_ASSERT_EQUAL("1", master.command({"EXISTS", their_name}));

  await_subscribers(master, our_name, 1, Kind::channel, Place::scope);
  await_subscribers(master, their_name, 1, Kind::channel, Place::scope);
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.release());
  const std::string their_id = expect_granted_after(peer, our_name, released);
  const Instant unlocked = Client::now();
  TEST_ASSERT_EQUAL("ok", peer.ask(Kind::give_back(their_name, id)));
  TEST_ASSERT_EQUAL(Status::ok, waiter.granted_after(unlocked).release());
  TEST_ASSERT_EQUAL("ok", peer.ask(Kind::give_back(our_name, their_id)));
}

}  // namespace

// ---- A cluster -----------------------------------------------------------------------------------------------------

TEST_ON(InCluster, place, test_locks_of_every_kind_should_exclude_each_other_in_a_cluster) {
  Peer peer = place.peer();
  exclude_each_other<Plain>(place, peer, "plain");
  exclude_each_other<Fenced>(place, peer, "fenced");
  exclude_each_other<Writer>(place, peer, "writer");
  exclude_each_other<Permit>(place, peer, "permit");
}

TEST_ON(InCluster, place, test_a_release_should_wake_the_other_side_over_a_channel_of_the_slot) {
  Peer peer = place.peer();
  wake_each_other<Plain>(place, peer, "plain");
  wake_each_other<Fenced>(place, peer, "fenced");
  wake_each_other<Writer>(place, peer, "writer");
  wake_each_other<Permit>(place, peer, "permit");
}

TEST_ON(InCluster, place, test_waiters_of_both_should_listen_to_one_channel_of_the_slot) {
  Peer peer = place.peer();
  listen_together<Plain>(place, peer, "plain");
  listen_together<Fenced>(place, peer, "fenced");
  listen_together<Permit>(place, peer, "permit");
}

TEST_ON(InCluster, place, test_a_fair_lock_of_ours_and_a_forced_release_should_wake_their_waiter_in_a_cluster) {
  Peer peer = place.peer();
  Member<InCluster> member(place, "k");
  Owner owner(member.client);
  FairLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  start_theirs<InCluster, Plain>(peer, place, "k");
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  expect_granted_after(peer, "k", released);
  await_subscribers(place.master("k"), "k", 0, plain_channel, of_the_slot);
  start_theirs<InCluster, Plain>(peer, place, "k");
  const Instant forced = Client::now();
  bool done = false;
  TEST_ASSERT_EQUAL(Status::ok, force_release(member.client, Key("k"), done));
  TEST_ASSERT_TRUE(done);
  expect_granted_after(peer, "k", forced);
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
}

TEST_ON(InCluster, place, test_holds_and_waiters_of_both_should_live_through_a_fail_over_in_a_cluster) {
  live_through_a_fail_over<Plain>(place);
}

// ---- Sentinels -----------------------------------------------------------------------------------------------------

TEST_ON(BySentinels, place, test_locks_of_every_kind_should_exclude_and_wake_each_other_on_the_master_of_sentinels) {
  Peer peer = place.peer();
  const auto check = [&]<class Kind>(Kind, const std::string& name) {
    exclude_each_other<Kind>(place, peer, name);
    wake_each_other<Kind>(place, peer, name);
    place.master(name).command("FLUSHALL");
  };
  check(Plain(), "plain");
  check(Fenced(), "fenced");
  check(Writer(), "writer");
  check(Permit(), "permit");
}

TEST_ON(BySentinels, place, test_holds_and_waiters_of_both_should_live_through_a_fail_over_by_sentinels) {
  live_through_a_fail_over<Fenced>(place);
}
