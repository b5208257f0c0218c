// SPDX-License-Identifier: MIT
//
// What a blocking client's branches have that an Asio client has not: their number, watchdogs, children, no heap. How names of many
// slots share a client is in test_cluster_slots.cpp, over both clients.
#include <deque>
#include <string>
#include <thread>

#include "client_list.hpp"
#include "cluster_setup.hpp"
#include "cluster_tree.hpp"
#include "forked_child.hpp"
#include "hands.hpp"
#include "heap_trap.hpp"
#include "holdfast/holdfast.hpp"
#include "live_fixture.hpp"
#include "patience.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

std::size_t connections_at(const RedisServer& server) { return connections_named(server, "tree"); }

}  // namespace

// ---- Finding -----------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_names_of_two_slots_should_be_no_multi_lock_and_may_be_a_set) {
  Tree tree(cluster.host(0), "k");
  Owner owner(tree.client);
  const std::string names[] = {name_at(0), name_at(2)};
  const BytesArgument views[] = {names[0], names[1]};
  MultiLock multi(owner, views);
  TEST_ASSERT_EQUAL(Status::cross_slot, multi.try_acquire());
  TEST_ASSERT_EQUAL(0U, cluster.masters_that_say("errorstats", "CROSSSLOT"));  // Nothing was sent.
  Mutex one(tree.client, ByteView(names[0]));
  Mutex other(tree.client, ByteView(names[1]));
  BlockingLock* both[] = {&one, &other};
  LockSet set(both, 2);
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(5s));
  TEST_ASSERT_EQUAL("1", cluster.servers[0]->command({"EXISTS", names[0]}));
  TEST_ASSERT_EQUAL("1", cluster.servers[2]->command({"EXISTS", names[1]}));
  TEST_ASSERT_EQUAL(Status::ok, set.release());
}

TEST_ON_CLUSTER(test_a_master_without_a_branch_should_be_told_and_a_branch_without_holds_be_used_for_it) {
  Cluster nodes({.hosts = ByteView(cluster.host(0)), .name = ByteView(name_at(0))});
  Client client;
  BranchesOf<1> branches(client);
  TEST_ASSERT_EQUAL(Status::ok, client.connect({.topology = &nodes}));
  const std::string second = name_at(1);
  const std::string third = name_at(2);
  Mutex last(client, ByteView(third));
  {
    Mutex lock(client, ByteView(second));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::moved, last.try_acquire());
    TEST_ASSERT_TRUE(client.error_text().find("MOVED") != SIZE_MAX);
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  TEST_ASSERT_EQUAL(Status::ok, last.try_acquire());
  TEST_ASSERT_EQUAL(1U, branches.connected());
  TEST_ASSERT_EQUAL(Status::ok, last.release());
  // Locks that rest are in nobody's way.
  Mutex again(client, ByteView(second));
  for (int round = 0; round < 3; ++round)
    for (Mutex* const lock : {&again, &last}) {
      TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
      TEST_ASSERT_EQUAL(Status::ok, lock->release());
    }
}

// Its release was on its way when another one was called.
TEST_ON_CLUSTER(test_a_lock_whose_release_was_posted_should_keep_no_branch) {
  Cluster nodes({.hosts = ByteView(cluster.host(0)), .name = ByteView(name_at(0))});
  Client client;
  BranchesOf<1> branches(client);
  TEST_ASSERT_EQUAL(Status::ok, client.connect({.topology = &nodes}));
  const std::string second = name_at(1);
  const std::string also_second = name_at(1, "other");
  const std::string third = name_at(2);
  Mutex posted(client, ByteView(second));
  Mutex called(client, ByteView(also_second));
  Mutex last(client, ByteView(third));
  TEST_ASSERT_EQUAL(Status::ok, posted.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, posted.post_release());
  TEST_ASSERT_EQUAL(Status::ok, called.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, called.release());
  TEST_ASSERT_EQUAL(Status::ok, last.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, last.release());
}

// Each leaves locks at a server that is a master no more.
TEST_ON_CLUSTER(test_locks_should_find_their_masters_after_a_fail_over_of_each) {
  Cluster nodes({.hosts = ByteView(cluster.hosts()), .name = ByteView(name_at(0))});
  Client client;
  BranchesOf<4> branches(client);
  TEST_ASSERT_EQUAL(Status::ok, client.connect({.topology = &nodes}));
  Owner owner(client);
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<Mutex> resting;
  std::deque<ReentrantLock> held;
  for (const std::string& name : names) {
    const std::string other = "{" + name + "}held";
    TEST_ASSERT_EQUAL(Status::ok, resting.emplace_back(client, ByteView(name)).try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, resting.back().release());
    TEST_ASSERT_EQUAL(Status::ok, held.emplace_back(owner, ByteView(other), LockTiming{.lease = 60s}).try_acquire());
  }
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
    cluster.fail_over(names[master]);
    TEST_ASSERT_EQUAL(Status::ok, held[master].renew(10s));
  }
  for (Mutex& lock : resting) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  for (ReentrantLock& lock : held) TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// ---- Beside each other -------------------------------------------------------------------------------------------

// A call that waits at one master renews what is kept at the others, and so does one whose master stands still.
TEST_ON_CLUSTER(test_a_call_at_one_master_should_keep_the_holds_at_the_others) {
  const std::string kept_names[] = {name_at(0, "kept"), name_at(1, "kept")};
  const std::string name = name_at(2, "waited");
  Tree tree(cluster.hosts(), name_at(0), 4s);
  Tree other(cluster.hosts(), name_at(0));
  std::deque<Mutex> kept;
  for (const std::string& text : kept_names) {
    Mutex& lock = kept.emplace_back(tree.client, ByteView(text), LockTiming{.lease = 1500ms});
    TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  }
  Mutex lock(tree.client, ByteView(name));
  Mutex rival(other.client, ByteView(name));
  TEST_ASSERT_EQUAL(Status::ok, rival.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(4s));
  for (const Mutex& held : kept) TEST_ASSERT_TRUE(held.held());
  TEST_ASSERT_EQUAL(Status::ok, rival.release());
  cluster.servers[2]->pause();
  const Status status = lock.try_acquire();
  cluster.servers[2]->resume();
  TEST_ASSERT_EQUAL(Status::timed_out, status);
  for (const Mutex& held : kept) TEST_ASSERT_TRUE(held.held());
  for (Mutex& held : kept) TEST_ASSERT_EQUAL(Status::ok, held.release());
}

// A watchdog with a lane for each master keeps what such a client has anywhere, and goes after the slots by itself.
TEST_ON_CLUSTER(test_a_watchdog_should_keep_the_holds_at_all_masters) {
  Tree tree(cluster.hosts(), name_at(0, "home"));
  WatchdogPlaces<8> places;
  Watchdog watchdog(places.storage());
  WatchdogBranchesOf<3, 8> lanes(watchdog);
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(tree.client));
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<Mutex> locks;
  for (const std::string& name : names) {
    Mutex& lock = locks.emplace_back(tree.client, ByteView(name), LockTiming{.lease = 3s});
    TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  }
  const auto renewed = [&](Duration span) {
    const Instant begin = holdfast::Client::now();
    return comes([&] {
      for (const Mutex& lock : locks)
        if (lock.valid_until() < begin + span) return false;
      return true;
    });
  };
  TEST_ASSERT_TRUE(renewed(6s));
  cluster.move_slot(names[0], 2);
  cluster.move_slot(names[1], 0);
  TEST_ASSERT_TRUE(renewed(6s));
  TEST_ASSERT_EQUAL(3U, watchdog.size());
  for (Mutex& lock : locks) {
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  TEST_ASSERT_EQUAL(0U, watchdog.size());
  watchdog.stop();
  tree.client.attach(nullptr);
}

TEST_ON_CLUSTER(test_a_watchdog_without_lanes_should_refuse_what_is_at_another_master) {
  Tree tree(cluster.hosts(), name_at(0, "home"));
  WatchdogPlaces<8> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(tree.client));
  const std::string near_name = name_at(0);
  const std::string far_name = name_at(1);
  Mutex near_lock(tree.client, ByteView(near_name));
  Mutex far_lock(tree.client, ByteView(far_name));
  TEST_ASSERT_EQUAL(Status::ok, near_lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::too_many_requests, far_lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] {
    (void)tree.client.tend();
    return cluster.servers[1]->command({"EXISTS", far_name}) == "0";
  }));
  TEST_ASSERT_TRUE(near_lock.held());
  TEST_ASSERT_EQUAL(1U, watchdog.size());
  TEST_ASSERT_EQUAL(Status::ok, near_lock.release());
  tree.client.attach(nullptr);
}

// A release does its work, and the cancel of before ends the next call, whichever its master.
TEST_ON_CLUSTER(test_a_cancel_between_two_calls_should_end_the_next_at_any_master) {
  Tree tree(cluster.hosts(), name_at(0));
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
    const std::string name = name_at(master);
    const std::string next = name_at((master + 1) % ClusterSetup::masters);
    Mutex lock(tree.client, ByteView(name));
    Mutex following(tree.client, ByteView(next));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    tree.client.cancel();
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(Status::cancelled, following.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, following.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, following.release());
  }
}

TEST_ON_CLUSTER(test_names_of_any_slot_should_not_allocate) {
  prove_that_the_trap_works();
  const std::string name = name_at(1, "moved");
  const std::string other_name = name_at(2);
  Tree tree(cluster.hosts(), name_at(0));
  Hands hands([&](int) { cluster.move_slot(name, 2); });
  std::uint64_t allocations = 0;
  Status outcomes[6] = {};
  {
    HeapTrap trap;
    Owner owner(tree.client);
    ReentrantLock lock(owner, ByteView(name));
    Mutex other(tree.client, ByteView(other_name));
    outcomes[0] = lock.try_acquire();
    outcomes[1] = other.acquire(1s);
    hands.perform(1);
    outcomes[2] = lock.renew();
    (void)tree.client.tend();
    outcomes[3] = lock.release();
    outcomes[4] = other.release();
    LockInfo info;
    outcomes[5] = inspect(tree.client, Key(ByteView(name)), info);
    allocations = trap.count();
  }
  for (const Status status : outcomes) TEST_ASSERT_EQUAL(Status::ok, status);
  TEST_ASSERT_EQUAL(0U, allocations);
}

// ---- Anew --------------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_locks_should_find_their_servers_after_connecting_anew_and_after_closing) {
  Tree tree(cluster.host(0), name_at(0, "home"));
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<Mutex> locks;
  for (const std::string& name : names)
    TEST_ASSERT_EQUAL(Status::ok, locks.emplace_back(tree.client, ByteView(name)).try_acquire());
  tree.connect();
  for (Mutex& lock : locks) {
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  tree.client.close();
  TEST_ASSERT_EQUAL(0U, tree.branches.connected());
  for (Mutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  for (Mutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_CLUSTER(test_a_child_should_have_connections_of_its_own_to_all_masters_and_nothing_of_its_parent) {
  Tree tree(cluster.host(0), name_at(0, "home"));
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<Mutex> locks;
  for (const std::string& name : names)
    TEST_ASSERT_EQUAL(Status::ok, locks.emplace_back(tree.client, ByteView(name)).try_acquire());
  Child child([&](Child& self) {
    int wrong = 0;
    for (const Mutex& lock : locks) wrong += lock.held() ? 1 : 0;
    for (Mutex& lock : locks) wrong += lock.release() == Status::forked ? 0 : 1;
    for (Mutex& lock : locks) wrong += lock.try_acquire() == Status::lock_busy ? 0 : 1;
    Mutex own(tree.client, ByteView("{" + names[2] + "}own"));
    wrong += own.try_acquire() == Status::ok ? 0 : 1;
    wrong += own.release() == Status::ok ? 0 : 1;
    self.say(std::to_string(wrong));
    self.await_go();
    return wrong;
  });
  TEST_ASSERT_EQUAL("0", child.hear());
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master)
    TEST_ASSERT_EQUAL(2U, connections_at(*cluster.servers[master]));
  child.go();
  TEST_ASSERT_EQUAL(0, child.join());
  for (Mutex& lock : locks) {
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

// Its configuration goes with the branches: nothing of them is looked at any more.
TEST_ON_CLUSTER(test_a_client_whose_branches_are_gone_should_be_closed_and_connect_anew_to_one_slot) {
  Cluster nodes({.hosts = ByteView(cluster.host(0)), .name = ByteView(name_at(0))});
  Client client;
  {
    BranchesOf<1> branches(client);
    TEST_ASSERT_EQUAL(Status::ok, client.connect({.topology = &nodes}));
  }
  const std::string near_name = nodes.config().name.c_str();
  const std::string far_name = name_at(1);
  Mutex near_lock(client, ByteView(near_name));
  Mutex far_lock(client, ByteView(far_name));
  TEST_ASSERT_EQUAL(Status::not_connected, near_lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, client.connect({.topology = &nodes}));
  TEST_ASSERT_EQUAL(Status::ok, near_lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::cross_slot, far_lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, near_lock.release());
}

// Branches beside a client of one server are of no use, and do no harm.
TEST_ON_SERVER(test_a_client_of_one_server_should_work_as_without_branches) {
  Client client;
  BranchesOf<1> branches(client);
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Owner owner(client);
  Mutex lock(client, "a");
  ReentrantLock other(owner, "b");
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(1s));
  TEST_ASSERT_EQUAL(Status::ok, other.acquire(1s));
  TEST_ASSERT_EQUAL(Status::ok, other.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(0U, branches.connected());
}
