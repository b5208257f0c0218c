// SPDX-License-Identifier: MIT
//
// What an Asio client of a cluster has that a blocking one has not: many calls at once, `acks` at many masters, a bound on what it
// makes. Names of many slots are in test_cluster_slots.cpp, over both clients.
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "answering_server.hpp"
#include "asio_fixture.hpp"
#include "client_list.hpp"
#include "cluster_setup.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/proto/slot.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// A client of a cluster, connected by these hosts.
struct ClusterWorld {
  ClusterWorld(const std::string& hosts, const std::string& name, const AsyncLimits& limits = {})
      : cluster({.hosts = ByteView(hosts), .name = ByteView(name)}), client(loop.get_executor(), limits) {
    config.topology = &cluster;
    config.request_timeout = 5s;
    config.connect_timeout = 5s;
    config.client_name = "world";
    TEST_ASSERT_EQUAL(Status::ok, ::connect(loop, client, config));
  }
  Status acquire(AsyncLock& lock, Duration wait = Duration::zero()) { return ::acquire(loop, lock, wait); }
  Status renew(AsyncLock& lock) { return ::renew(loop, lock); }
  Status release(AsyncLock& lock) { return ::release(loop, lock); }
  template <class Condition>
  [[nodiscard]] bool runs_until(Condition&& condition) {
    return ::runs_until(loop, std::forward<Condition>(condition));
  }

  Cluster cluster;
  ClientConfig config;
  asio::io_context loop{1};
  AsyncClient client;
};

// Takes a lock, holds it for a moment, and takes it again, until it is told to end.
class Actor {
 public:
  Actor(ClusterWorld& world, AsyncLock& lock, int& inside, int& counter, bool& over)
      : world_(world), lock_(lock), inside_(inside), counter_(counter), over_(over) {}
  void start() {
    if (over_) {
      ended = true;
      return;
    }
    lock_.async_acquire(20s, [this](std::error_code error) {
      if (error) return start();
      if (inside_++ != 0) overlapped = true;
      asio::post(world_.loop, [this] {
        --inside_;
        ++counter_;
        ++grants;
        lock_.async_release([this](std::error_code) { start(); });
      });
    });
  }

  bool ended = false;
  bool overlapped = false;
  int grants = 0;

 private:
  ClusterWorld& world_;
  AsyncLock& lock_;
  int& inside_;
  int& counter_;
  bool& over_;
};

}  // namespace

// ---- Finding -----------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_names_of_two_slots_should_be_no_multi_lock_and_may_be_a_set) {
  ClusterWorld world(cluster.host(0), "k");
  AsyncOwner owner(world.client);
  const std::string names[] = {name_at(0), name_at(2)};
  const BytesArgument views[] = {names[0], names[1]};
  AsyncMultiLock multi(owner, views);
  TEST_ASSERT_EQUAL(Status::cross_slot, world.acquire(multi));
  TEST_ASSERT_EQUAL(0U, cluster.masters_that_say("errorstats", "CROSSSLOT"));  // Nothing was sent.
  AsyncMutex one(world.client, ByteView(names[0]));
  AsyncMutex other(world.client, ByteView(names[1]));
  AsyncHandle* both[] = {&one, &other};
  AsyncLockSet set(both, 2);
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { set.async_acquire(5s, handler); }));
  TEST_ASSERT_EQUAL("1", cluster.servers[0]->command({"EXISTS", names[0]}));
  TEST_ASSERT_EQUAL("1", cluster.servers[2]->command({"EXISTS", names[1]}));
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { set.async_release(handler); }));
}

// ---- Moving ------------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_holds_should_be_renewed_in_calls_of_one_slot) {
  ClusterWorld world(cluster.host(0), "k");
  std::deque<AsyncMutex> locks;
  constexpr std::size_t slots = 6;
  constexpr std::size_t each = 8;
  for (std::size_t slot = 0; slot < slots; ++slot)
    for (std::size_t number = 0; number < each; ++number) {
      const std::string name = "{" + std::to_string(slot) + "}" + std::to_string(number);
      AsyncMutex& lock = locks.emplace_back(world.client, ByteView(name), LockTiming{.lease = 3s});
      TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
    }
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  TEST_ASSERT_EQUAL(slots * each, world.client.kept());
  const Instant begin = Client::now();
  TEST_ASSERT_TRUE(world.runs_until([&] {
    for (const AsyncMutex& lock : locks)
      if (lock.valid_until() < begin + 6s) return false;
    return true;
  }));
  for (AsyncMutex& lock : locks) TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0U, cluster.masters_that_say("errorstats", "CROSSSLOT"));  // No call was for two slots.
  // And fewer calls than one for each hold.
  TEST_ASSERT_TRUE(world.client.renewal_calls() < 3 * slots * each);
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  TEST_ASSERT_EQUAL(0U, world.client.kept());
}

TEST_ON_CLUSTER(test_many_calls_of_one_loop_should_lose_no_count_while_slots_move) {
  constexpr std::size_t names = 3;
  constexpr std::size_t clients = 2;
  constexpr int moves = 6;
  std::string name[names];
  for (std::size_t index = 0; index < names; ++index) name[index] = name_at(index, "counter");
  std::vector<std::unique_ptr<ClusterWorld>> worlds;
  std::vector<std::unique_ptr<AsyncOwner>> owners;
  std::vector<std::unique_ptr<AsyncReentrantLock>> locks;
  std::vector<std::unique_ptr<Actor>> actors;
  int inside[names] = {};
  int counter[names] = {};
  bool over = false;
  for (std::size_t client = 0; client < clients; ++client) {
    worlds.push_back(std::make_unique<ClusterWorld>(cluster.hosts(), name[client]));
    for (std::size_t index = 0; index < names; ++index)
      for (int twice = 0; twice < 2; ++twice) {
        owners.push_back(std::make_unique<AsyncOwner>(worlds[client]->client));
        locks.push_back(std::make_unique<AsyncReentrantLock>(*owners.back(), ByteView(name[index])));
        actors.push_back(std::make_unique<Actor>(*worlds[client], *locks.back(), inside[index], counter[index], over));
        actors.back()->start();
      }
  }
  std::atomic<int> moved = 0;
  std::atomic<int> counted = 0;
  std::string trouble;
  std::thread mover([&] {
    try {
      for (int move = 0; move < moves; ++move) {
        const std::string& key = name[static_cast<std::size_t>(move) % names];
        cluster.move_slot(key, cluster.other_than(cluster.master_of(key)));
        const int before = counted;
        (void)comes([&] { return counted > before + 20; }, std::chrono::seconds(30));
        ++moved;
      }
    } catch (const std::exception& error) {
      trouble = error.what();
      moved = moves;
    }
  });
  const auto turn = [&] {
    for (const auto& world : worlds) (void)world->loop.poll();
    int sum = 0;
    for (const int count : counter) sum += count;
    counted = sum;
  };
  TEST_ASSERT_TRUE(worlds[0]->runs_until([&] {
    turn();
    return moved == moves;
  }));
  mover.join();
  over = true;
  TEST_ASSERT_TRUE(worlds[0]->runs_until([&] {
    turn();
    for (const auto& actor : actors)
      if (!actor->ended) return false;
    return true;
  }));
  TEST_ASSERT_EQUAL("", trouble);
  int sum = 0;
  int grants = 0;
  for (const int count : counter) sum += count;
  for (const auto& actor : actors) {
    TEST_ASSERT_FALSE(actor->overlapped);
    TEST_ASSERT_TRUE(actor->grants > 0);
    grants += actor->grants;
  }
  TEST_ASSERT_EQUAL(grants, sum);
  for (const std::string& key : name) TEST_ASSERT_EQUAL("0", cluster.master(key).command({"EXISTS", key}));
}

// ---- Fail-overs --------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_the_death_of_a_master_should_not_hold_up_the_names_of_others, 3000) {
  ClusterWorld world(cluster.hosts(), name_at(0, "home"));
  const std::string well_name = name_at(2, "well");
  const std::string dead_name = name_at(1, "dead");
  AsyncMutex well(world.client, ByteView(well_name));
  AsyncMutex dead(world.client, ByteView(dead_name));
  for (AsyncMutex* const lock : {&well, &dead}) {
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(*lock));
    TEST_ASSERT_EQUAL(Status::ok, world.release(*lock));
  }
  cluster.servers[1]->stop();
  Outcome outcome;
  dead.async_acquire(40s, outcome.handler());
  for (int round = 0; round < 20; ++round) {
    const Instant begin = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(well));
    TEST_ASSERT_EQUAL(Status::ok, world.release(well));
    TEST_ASSERT_TRUE(Client::now() - begin < 2s);
  }
  TEST_ASSERT_FALSE(outcome.done());
  TEST_ASSERT_TRUE(runs_until(
      world.loop, [&] { return outcome.done(); }, 60s));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_EQUAL("1", cluster.servers[ClusterSetup::partner_of(1)]->command({"EXISTS", dead_name}));
  TEST_ASSERT_EQUAL(Status::ok, world.release(dead));
}

// ---- Replicas that are counted -----------------------------------------------------------------------------------

namespace {

// A client whose grants one replica must confirm.
struct AckedWorld : ClusterWorld {
  AckedWorld(const ClusterSetup& setup, Duration timeout, const AsyncLimits& limits = {})
      : ClusterWorld(setup.hosts(), name_at(0, "home"), limits) {
    config.acks = 1;
    config.acks_timeout = timeout;
    config.stall_timeout = 20s;
    TEST_ASSERT_EQUAL(Status::ok, ::connect(loop, client, config));
  }
};

// How often it was asked for its replicas.
int waits_at(const ClusterSetup& cluster, std::size_t server) {
  const std::string text = cluster.servers[server]->command("INFO commandstats");
  const std::string name = "cmdstat_wait:calls=";
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
}

// Who does not serve a name tells nothing of it, but for this.
bool has(const ClusterSetup& cluster, std::size_t server, const std::string& name) {
  return cluster.servers[server]->command({"KEYS", name}) == name;
}

// Replicas that stand still confirm nothing.
struct Paused {
  Paused(const ClusterSetup& setup, std::size_t which) : server(*setup.servers[which]) { server.pause(); }
  ~Paused() { server.resume(); }
  RedisServer& server;
};

bool waits_now(const ClusterSetup& cluster, std::size_t server) {
  return !blocked_in_wait(*cluster.servers[server]).empty();
}

}  // namespace

TEST_ON_CLUSTER(test_a_grant_should_be_confirmed_by_a_replica_of_the_master_that_granted_it) {
  AckedWorld world(cluster, 5s);
  for (int round = 0; round < 5; ++round)
    for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
      const std::string name = name_at(master, "acked" + std::to_string(round) + "-");
      AsyncMutex lock(world.client, ByteView(name), LockTiming{.lease = 60s});
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
      TEST_ASSERT_TRUE(has(cluster, ClusterSetup::partner_of(master), name));
      TEST_ASSERT_EQUAL(round + 1, waits_at(cluster, master));
      TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
    }
}

TEST_ON_CLUSTER(test_a_replica_that_is_down_should_concern_the_names_of_its_master_alone) {
  AckedWorld world(cluster, 200ms, {.masters = ClusterSetup::masters});
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<AsyncMutex> locks;
  for (const std::string& name : names) {
    AsyncMutex& lock = locks.emplace_back(world.client, ByteView(name), LockTiming{.lease = 60s});
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock, 20s));
    TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  }
  Outcome outcome;
  {
    const Paused paused(cluster, ClusterSetup::partner_of(1));
    TEST_ASSERT_EQUAL(Status::too_few_replicas, world.acquire(locks[1]));
    TEST_ASSERT_FALSE(locks[1].held());
    TEST_ASSERT_TRUE(world.runs_until([&] { return !has(cluster, 1, names[1]); }));
    locks[1].async_acquire(40s, outcome.handler());
    for (const std::size_t other : {0U, 2U}) {
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks[other], 20s));
      TEST_ASSERT_TRUE(has(cluster, ClusterSetup::partner_of(other), names[other]));
      TEST_ASSERT_EQUAL(Status::ok, world.release(locks[other]));
    }
    TEST_ASSERT_FALSE(outcome.done());
  }
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_EQUAL(Status::ok, world.release(locks[1]));
}

// The first grant's WAIT stands in the way of the others, and their slots go away meanwhile. Where they have gone, a replica is
// well: it would confirm them.
TEST_ON_CLUSTER(test_a_grant_whose_slot_moves_before_replicas_are_asked_should_be_let_go_of) {
  // Valkey moves no slot of a master whose replica stands still: CLUSTER SETSLOT says NOREPLICAS.
  if (cluster.servers[0]->command("INFO server").find("valkey_version") != std::string::npos) return;
  AckedWorld world(cluster, 3s);
  const std::string first_name = name_at(0, "first");
  const std::string once_name = name_at(0, "once");
  const std::string waited_name = name_at(0, "waited");
  const std::string there_name = name_at(1, "there");
  AsyncMutex first(world.client, ByteView(first_name), LockTiming{.lease = 60s});
  AsyncMutex once(world.client, ByteView(once_name), LockTiming{.lease = 60s});
  AsyncMutex waited(world.client, ByteView(waited_name), LockTiming{.lease = 60s});
  AsyncMutex there(world.client, ByteView(there_name), LockTiming{.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(there, 20s));
  const Paused paused(cluster, ClusterSetup::partner_of(0));
  Outcome first_outcome;
  Outcome once_outcome;
  Outcome waited_outcome;
  first.async_acquire(0s, first_outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return waits_now(cluster, 0); }));
  once.async_acquire(0s, once_outcome.handler());
  waited.async_acquire(40s, waited_outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return has(cluster, 0, once_name) && has(cluster, 0, waited_name); }));
  const int waits = waits_at(cluster, 1);
  // The loop stands still meanwhile. By hand: a replica that stands still cannot be asked whether it knows.
  for (const std::string& name : {once_name, waited_name}) {
    const int slot = slot_of(ByteView(name));
    cluster.open_slot(slot, 0, 1);
    cluster.move_keys(slot, 0, 1);
    cluster.close_slot(slot, 0, 1);
  }
  TEST_ASSERT_TRUE(has(cluster, 1, once_name));
  TEST_ASSERT_FALSE(once_outcome.done());
  TEST_ASSERT_TRUE(world.runs_until([&] { return once_outcome.done() && waited_outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::too_few_replicas, first_outcome.status);
  TEST_ASSERT_EQUAL(Status::try_again, once_outcome.status);
  TEST_ASSERT_FALSE(once.held());
  TEST_ASSERT_TRUE(world.runs_until([&] { return !has(cluster, 1, once_name); }));
  TEST_ASSERT_FALSE(has(cluster, 0, once_name));
  // This one has asked again where its slot is now.
  TEST_ASSERT_EQUAL(Status::ok, waited_outcome.status);
  TEST_ASSERT_TRUE(waits_at(cluster, 1) > waits);
  TEST_ASSERT_TRUE(has(cluster, ClusterSetup::partner_of(1), waited_name));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(once, 20s));
  for (AsyncMutex* const lock : {&once, &waited, &there}) TEST_ASSERT_EQUAL(Status::ok, world.release(*lock));
}

TEST_ON_CLUSTER(test_grants_should_be_confirmed_by_the_new_masters_replicas_after_a_fail_over) {
  AckedWorld world(cluster, 5s);
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<AsyncMutex> locks;
  for (const std::string& name : names)
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks.emplace_back(world.client, ByteView(name)), 20s));
  cluster.fail_over(names[1]);
  const std::size_t heir = ClusterSetup::partner_of(1);
  TEST_ASSERT_TRUE(comes([&] {
    return cluster.servers[1]->command("INFO replication").find("master_link_status:up") != std::string::npos;
  }));
  const int waits = waits_at(cluster, heir);
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks[master], 20s));
    const std::size_t replica = master == 1 ? 1 : ClusterSetup::partner_of(master);
    TEST_ASSERT_TRUE(has(cluster, replica, names[master]));
  }
  TEST_ASSERT_TRUE(waits_at(cluster, heir) > waits);
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
}

TEST_ON_CLUSTER(test_a_master_that_dies_while_a_grant_waits_should_confirm_nothing) {
  AckedWorld world(cluster, 10s);
  const std::string name = name_at(1, "dead");
  const std::string well_name = name_at(2, "well");
  AsyncMutex lock(world.client, ByteView(name), LockTiming{.lease = 60s});
  AsyncMutex well(world.client, ByteView(well_name), LockTiming{.lease = 60s});
  const Paused paused(cluster, ClusterSetup::partner_of(1));
  Outcome outcome;
  lock.async_acquire(0s, outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return waits_now(cluster, 1); }));
  cluster.servers[1]->stop();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::transport_closed, outcome.status);
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(well, 20s));
  TEST_ASSERT_EQUAL(Status::ok, world.release(well));
}

// The heir has no replica any more. That this is what the calls say, the heir alone can tell them.
TEST_ON_CLUSTER(test_the_heir_of_a_master_that_died_should_be_asked_for_its_own_replicas, 3000) {
  AckedWorld world(cluster, 200ms);
  const std::string name = name_at(1, "dead");
  AsyncMutex lock(world.client, ByteView(name), LockTiming{.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock, 20s));
  TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  const std::size_t heir = ClusterSetup::partner_of(1);
  cluster.servers[1]->stop();
  TEST_ASSERT_TRUE(
      comes([&] { return world.acquire(lock, 1s) == Status::too_few_replicas; }, std::chrono::seconds(40)));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_TRUE(waits_at(cluster, heir) > 0);
}

// ---- Anew --------------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_locks_should_find_their_servers_after_connecting_anew) {
  ClusterWorld world(cluster.host(0), name_at(0, "home"));
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<AsyncMutex> locks;
  for (const std::string& name : names)
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks.emplace_back(world.client, ByteView(name))));
  // By its own words, in which the Cluster is ours.
  TEST_ASSERT_TRUE(world.client.config().topology == &world.cluster);
  TEST_ASSERT_EQUAL(Status::ok, connect(world.loop, world.client, world.client.config()));
  for (AsyncMutex& lock : locks) {
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  }
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { world.client.async_close(handler); }));
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::not_connected, world.acquire(lock));
}

// ---- Lies --------------------------------------------------------------------------------------------------------

// A node that sends each name to another server, where nobody is, costs each lock its call, and no more than it may.
TEST(test_a_node_that_sends_everybody_away_should_cost_a_bounded_number_of_branches) {
  const auto bulk = [](const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; };
  std::atomic<int> moves = 0;
  AnsweringServer node("", [&](const AnsweringServer::Words& words) -> std::string {
    if (words[0] == "CLIENT") return words[1] == "ID" ? ":7\r\n" : "+OK\r\n";
    if (words[0] == "EVAL" && words[1].find("run_id") != std::string::npos)
      return "*6\r\n" + bulk(std::string(40, 'f')) + bulk("100") + bulk("7.0.15") + bulk("") +
             bulk(std::string(40, '0')) + bulk("-1clustermaster");
    const std::string& key = words[0] == "SET" ? words[1] : words[3];
    return "-MOVED " + std::to_string(slot_of(ByteView(key))) + " 127.0.0.1:" + std::to_string(1 + ++moves % 900) +
           "\r\n";
  });
  ClusterWorld world(node.host(), "k", {.operations = 256});
  world.config.connect_timeout = 300ms;
  world.config.request_timeout = 300ms;
  TEST_ASSERT_EQUAL(Status::ok, connect(world.loop, world.client, world.config));
  constexpr std::size_t count = 200;
  std::deque<AsyncMutex> locks;
  std::deque<Outcome> outcomes;
  const Instant begin = Client::now();
  for (std::size_t number = 0; number < count; ++number)
    locks.emplace_back(world.client, ByteView("name " + std::to_string(number)))
        .async_acquire(0s, outcomes.emplace_back().handler());
  const auto ended = [&] {
    std::size_t calls = 0;
    for (const Outcome& outcome : outcomes) calls += outcome.done() ? 1U : 0U;
    return calls;
  };
  TEST_ASSERT_TRUE(world.runs_until([&] { return ended() == count; }));
  TEST_ASSERT_TRUE(Client::now() - begin < 20s);
  std::size_t refused = 0;
  for (const Outcome& outcome : outcomes) {
    TEST_ASSERT_TRUE(outcome.status != Status::ok);
    refused += outcome.status == Status::moved ? 1U : 0U;
  }
  TEST_ASSERT_TRUE(refused >= count - 2 * cluster_masters_max);  // There was no branch for these.
  TEST_ASSERT_TRUE(world.client.connected());
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { world.client.async_close(handler); }));
}
