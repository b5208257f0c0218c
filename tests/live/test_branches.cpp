// SPDX-License-Identifier: MIT
//
// One blocking client and names of any slot: a connection for each master, and each name goes after its slot. What holds for one slot
// is in test_cluster.cpp; the Asio client's side of this is in test_asio_cluster.cpp.
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client_list.hpp"
#include "cluster_setup.hpp"
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

// A client of a cluster, connected by these hosts.
struct Tree {
  Tree(const std::string& hosts, const std::string& name, Duration request_timeout = 5s)
      : cluster({.hosts = ByteView(hosts), .name = ByteView(name)}) {
    config.topology = &cluster;
    config.request_timeout = request_timeout;
    config.connect_timeout = 5s;
    config.client_name = "tree";
    connect();
  }
  void connect() { TEST_ASSERT_EQUAL(Status::ok, client.connect(config)); }

  Cluster cluster;
  ClientConfig config;
  Client client;
  BranchesOf<3> branches{client};
};

std::size_t connections_at(const RedisServer& server) { return connections_named(server, "tree"); }

// Of how many masters INFO has these words.
std::size_t told(const ClusterSetup& cluster, const std::string& section, const std::string& words) {
  std::size_t count = 0;
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master)
    if (cluster.servers[master]->command("INFO " + section).find(words) != std::string::npos) ++count;
  return count;
}

}  // namespace

// ---- Finding -----------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_names_of_any_slot_should_share_a_connection_for_each_master) {
  Tree ours(cluster.host(0), "k");
  Tree theirs(cluster.host(4), "other");
  std::deque<Mutex> locks;
  std::deque<Mutex> rivals;
  constexpr int count = 60;
  for (int number = 0; number < count; ++number) {
    const std::string name = "name " + std::to_string(number);
    Mutex& lock = locks.emplace_back(ours.client, ByteView(name));
    Mutex& rival = rivals.emplace_back(theirs.client, ByteView(name));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_busy, rival.try_acquire());
    TEST_ASSERT_EQUAL("1", cluster.master(name).command({"EXISTS", name}));
  }
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master)
    TEST_ASSERT_EQUAL(2U, connections_at(*cluster.servers[master]));
  TEST_ASSERT_EQUAL(2U, ours.branches.connected());
  for (std::size_t number = 0; number < count; ++number) {
    TEST_ASSERT_EQUAL(Status::ok, locks[number].release());
    TEST_ASSERT_EQUAL(Status::ok, rivals[number].acquire(1s));
  }
}

// Who has learnt where a slot is asks there at once.
TEST_ON_CLUSTER(test_a_wrong_belief_should_cost_one_question_and_be_learnt_by_all_names_of_the_slot) {
  Tree tree(cluster.host(0), name_at(0));
  const std::string name = name_at(1);
  for (int round = 0; round < 5; ++round) {
    Mutex lock(tree.client, ByteView("{" + name + "}" + std::to_string(round)));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  TEST_ASSERT_TRUE(cluster.servers[0]->command("INFO errorstats").find("errorstat_MOVED:count=1\r\n") !=
                   std::string::npos);
}

TEST_ON_CLUSTER(test_every_kind_should_be_found_wherever_its_slot_is) {
  Tree ours(cluster.host(0), name_at(0));
  Tree theirs(cluster.host(1), name_at(1));
  Owner owner(ours.client);
  Owner other(theirs.client);
  const auto check = [&](auto& lock, auto& rival) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_busy, rival.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    bool locked = false;
    TEST_ASSERT_EQUAL(Status::ok, rival.is_locked(locked));
    TEST_ASSERT_TRUE(locked);
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, rival.acquire(5s));
    TEST_ASSERT_EQUAL(Status::ok, rival.release());
  };
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
    {
      const std::string name = name_at(master, "fenced");
      FencedLock lock(owner, ByteView(name));
      FencedLock rival(other, ByteView(name));
      check(lock, rival);
      TEST_ASSERT_TRUE(lock.fence() < rival.fence());
    }
    {
      const std::string name = name_at(master, "fair");
      FairLock lock(owner, ByteView(name));
      FairLock rival(other, ByteView(name));
      check(lock, rival);
    }
    {
      const std::string name = name_at(master, "rw");
      ReadWriteLock lock(owner, ByteView(name));
      ReadWriteLock rival(other, ByteView(name));
      check(lock.write(), rival.write());
    }
    {
      const std::string name = name_at(master, "semaphore");
      Semaphore lock(ours.client, ByteView(name), 1);
      Semaphore rival(theirs.client, ByteView(name), 1);
      check(lock, rival);
    }
    {
      const std::string name = name_at(master, "info");
      Mutex lock(ours.client, ByteView(name));
      TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
      LockInfo info;
      TEST_ASSERT_EQUAL(Status::ok, inspect(theirs.client, Key(ByteView(name)), info));
      TEST_ASSERT_TRUE(info.form != LockForm::free);
      bool released = false;
      TEST_ASSERT_EQUAL(Status::ok, force_release(theirs.client, Key(ByteView(name)), released));
      TEST_ASSERT_TRUE(released);
      TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    }
  }
}

TEST_ON_CLUSTER(test_names_of_two_slots_should_be_no_multi_lock_and_may_be_a_set) {
  Tree tree(cluster.host(0), "k");
  Owner owner(tree.client);
  const std::string names[] = {name_at(0), name_at(2)};
  const BytesArgument views[] = {names[0], names[1]};
  MultiLock multi(owner, views);
  TEST_ASSERT_EQUAL(Status::cross_slot, multi.try_acquire());
  TEST_ASSERT_EQUAL(0U, told(cluster, "errorstats", "CROSSSLOT"));  // Nothing was sent.
  Mutex one(tree.client, ByteView(names[0]));
  Mutex other(tree.client, ByteView(names[1]));
  BlockingLock* both[] = {&one, &other};
  LockSet set(both, 2);
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(5s));
  TEST_ASSERT_EQUAL("1", cluster.servers[0]->command({"EXISTS", names[0]}));
  TEST_ASSERT_EQUAL("1", cluster.servers[2]->command({"EXISTS", names[1]}));
  TEST_ASSERT_EQUAL(Status::ok, set.release());
}

TEST_ON_CLUSTER(test_a_master_without_a_branch_should_be_told_and_a_branch_without_locks_be_used_for_it) {
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
  Mutex again(client, ByteView(second));
  TEST_ASSERT_EQUAL(Status::moved, again.try_acquire());  // `last` is there still.
}

// Whichever the master, its holds are of one owner.
TEST_ON_CLUSTER(test_branches_should_have_the_name_of_their_client) {
  Tree tree(cluster.host(0), name_at(0));
  Tree other(cluster.host(0), name_at(0));
  Owner owner(tree.client);
  Owner stranger(other.client);
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<ReentrantLock> locks;
  for (const std::string& name : names) {
    ReentrantLock& lock = locks.emplace_back(owner, ByteView(name));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(locks[0].token().client().string_view(), lock.token().client().string_view());
    for (std::size_t before = 0; before + 1 < locks.size(); ++before)
      TEST_ASSERT_TRUE(locks[before].token().bytes() != lock.token().bytes());
  }
  ReentrantLock strange(stranger, "strange");
  TEST_ASSERT_EQUAL(Status::ok, strange.try_acquire());
  TEST_ASSERT_TRUE(strange.token().client() != locks[0].token().client());
}

// Its channel would be in another slot than the name. Nobody else is to be cut off by that.
TEST_ON_CLUSTER(test_a_name_with_a_brace_in_an_odd_place_should_be_waited_for_by_asking) {
  Tree ours(cluster.host(0), "k");
  Tree theirs(cluster.host(1), "k");
  theirs.config.max_poll = 100ms;
  theirs.connect();
  Owner owner(ours.client);
  Owner other(theirs.client);
  for (const char* const name : {"a}b", "a{b", "a{}b"}) {
    ReentrantLock lock(owner, name);
    ReentrantLock rival(other, name);
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    RedisServer& master = cluster.master(name);
    const auto asked = master.calls("pttl");
    std::thread releaser([&] {
      TEST_ASSERT_TRUE(comes([&] { return master.calls("pttl") > asked; }));
      TEST_ASSERT_EQUAL(Status::ok, lock.release());
    });
    TEST_ASSERT_EQUAL(Status::ok, rival.acquire(20s));
    releaser.join();
    TEST_ASSERT_EQUAL(Status::ok, rival.release());
  }
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master)
    TEST_ASSERT_EQUAL("", cluster.servers[master]->command("PUBSUB SHARDCHANNELS"));
  TEST_ASSERT_EQUAL(0U, told(cluster, "commandstats", "cmdstat_ssubscribe"));
}

// ---- Moving ------------------------------------------------------------------------------------------------------

// Each in a slot of its own. One is kept by tend(), one is waited for, one is renewed by its holder.
TEST_ON_CLUSTER(test_each_name_should_go_after_its_slot_and_leave_the_others_alone) {
  const std::string home = name_at(0, "home");
  const std::string kept_name = name_at(0, "kept");
  const std::string waited_name = name_at(0, "waited");
  const std::string held_name = name_at(0, "held");
  Tree ours(cluster.hosts(), home);
  Owner owner(ours.client);
  ReentrantLock stays(owner, ByteView(home));
  Mutex kept(ours.client, ByteView(kept_name), {.lease = 6s});
  ReentrantLock waited(owner, ByteView(waited_name));
  FencedLock held(owner, ByteView(held_name));
  TEST_ASSERT_EQUAL(Status::ok, kept.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, stays.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, kept.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, waited.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, held.try_acquire());
  // It sleeps for longer than is waited for it below, unless it is woken.
  std::atomic<bool> acquired = false;
  std::thread rival([&] {
    Tree theirs(cluster.hosts(), home);
    theirs.config.max_poll = 60s;
    theirs.connect();
    Owner other(theirs.client);
    ReentrantLock lock(other, ByteView(waited_name));
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(60s));
    acquired = true;
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  });
  // What any thread may ask.
  std::atomic<bool> over = false;
  std::atomic<int> not_held = 0;
  std::thread reader([&] {
    for (; !over; std::this_thread::yield()) not_held += kept.held() && kept.remaining() > 0s ? 0 : 1;
  });
  const auto subscribers = [&](std::size_t master) {
    return cluster.servers[master]->command("PUBSUB SHARDNUMSUB redisson_lock__channel:{" + waited_name + "}");
  };
  const std::string one = "redisson_lock__channel:{" + waited_name + "} 1";
  TEST_ASSERT_TRUE(comes([&] { return subscribers(0) == one; }));
  cluster.move_slot(kept_name, 1);
  cluster.move_slot(waited_name, 2);
  cluster.move_slot(held_name, 2);
  const auto renewed_after = [&](Instant before) {
    return comes([&] {
      (void)ours.client.tend();
      return kept.valid_until() > before;
    });
  };
  TEST_ASSERT_TRUE(renewed_after(Client::now() + 5s));
  TEST_ASSERT_EQUAL("1", cluster.servers[1]->command({"EXISTS", kept_name}));
  TEST_ASSERT_TRUE(renewed_after(kept.valid_until()));
  TEST_ASSERT_EQUAL(Status::ok, held.renew());
  TEST_ASSERT_EQUAL("1", cluster.servers[2]->command({"EXISTS", held_name}));
  // It has subscribed anew where its slot is.
  TEST_ASSERT_TRUE(comes([&] { return subscribers(2) == one; }));
  const Instant released = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, waited.release());
  TEST_ASSERT_TRUE(comes([&] { return acquired.load(); }));
  TEST_ASSERT_TRUE(Client::now() - released < 10s);
  rival.join();
  over = true;
  reader.join();
  TEST_ASSERT_EQUAL(0, not_held);
  TEST_ASSERT_EQUAL(Status::ok, stays.release());
  TEST_ASSERT_EQUAL(Status::ok, kept.release());
  TEST_ASSERT_EQUAL(Status::ok, held.release());
  for (const std::string& name : {home, kept_name, waited_name, held_name})
    TEST_ASSERT_EQUAL("0", cluster.master(name).command({"EXISTS", name}));
}

// A fair lock's place in its queue goes with the slot.
TEST_ON_CLUSTER(test_who_waits_in_a_queue_should_keep_its_place_when_the_slot_moves) {
  const std::string name = name_at(1, "queue");
  Tree ours(cluster.hosts(), name_at(0));
  Owner owner(ours.client);
  FairLock lock(owner, ByteView(name));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  std::atomic<int> order = 0;
  std::atomic<int> began = 0;
  std::atomic<int> place[2] = {0, 0};
  std::vector<std::thread> waiters;
  LockInfo info;
  for (std::size_t waiter = 0; waiter < 2; ++waiter) {
    waiters.emplace_back([&, waiter] {
      Tree theirs(cluster.hosts(), name_at(0));
      Owner other(theirs.client);
      FairLock waited(other, ByteView(name));
      ++began;
      TEST_ASSERT_EQUAL(Status::ok, waited.acquire(60s));
      place[waiter] = ++order;
      TEST_ASSERT_EQUAL(Status::ok, waited.release());
    });
    TEST_ASSERT_TRUE(comes([&] {
      LockQueue queue;
      return inspect_queue(ours.client, Key(ByteView(name)), queue) == Status::ok && queue.waiting == waiter + 1;
    }));
  }
  cluster.move_slot(name, 2);
  // Each has beaten there, and has waited since before.
  const Instant moved = Client::now();
  LockQueue queue;
  Duration since{};  // until the question was asked: what its answer tells counts until later
  TEST_ASSERT_TRUE(comes([&] {
    since = Client::now() - moved;
    if (inspect_queue(ours.client, Key(ByteView(name)), queue) != Status::ok || queue.told != 2) return false;
    return queue.waiters[0].heard < since && queue.waiters[1].heard < since;
  }));
  for (const auto& waiter : {queue.waiters[0], queue.waiters[1]}) TEST_ASSERT_TRUE(waiter.waited >= since);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  for (std::thread& thread : waiters) thread.join();
  TEST_ASSERT_EQUAL(1, place[0]);
  TEST_ASSERT_EQUAL(2, place[1]);
}

TEST_ON_CLUSTER(test_counters_should_lose_nothing_while_slots_move_there_and_back) {
  constexpr std::size_t names = 3;
  constexpr std::size_t threads = 3;
  constexpr int moves = 6;
  std::string name[names];
  for (std::size_t index = 0; index < names; ++index) name[index] = name_at(index, "counter");
  std::atomic<int> inside[names] = {};
  std::atomic<int> overlaps = 0;
  std::atomic<int> counted = 0;
  int counter[names] = {};
  std::atomic<int> grants[names] = {};
  std::atomic<bool> over = false;
  std::vector<std::thread> actors;
  for (std::size_t actor = 0; actor < threads; ++actor)
    actors.emplace_back([&, actor] {
      Tree tree(cluster.hosts(), name[actor]);
      Owner owner(tree.client);
      std::deque<ReentrantLock> locks;
      for (const std::string& text : name) locks.emplace_back(owner, ByteView(text));
      for (std::size_t turn = actor; !over; ++turn) {
        const std::size_t index = turn % names;
        ReentrantLock& lock = locks[index];
        if (lock.acquire(20s) != Status::ok) continue;
        if (inside[index]++ != 0) ++overlaps;
        const int before = counter[index];
        std::this_thread::yield();
        counter[index] = before + 1;
        --inside[index];
        ++grants[index];
        ++counted;
        (void)lock.release();
      }
    });
  for (int move = 0; move < moves; ++move) {
    const std::string& key = name[static_cast<std::size_t>(move) % names];
    cluster.move_slot(key, cluster.other_than(cluster.master_of(key)));
    const int before = counted;
    TEST_ASSERT_TRUE(comes([&] { return counted > before + 20; }, std::chrono::seconds(30)));
  }
  over = true;
  for (std::thread& thread : actors) thread.join();
  TEST_ASSERT_EQUAL(0, overlaps);
  for (std::size_t index = 0; index < names; ++index) {
    TEST_ASSERT_EQUAL(grants[index], counter[index]);
    TEST_ASSERT_EQUAL("0", cluster.master(name[index]).command({"EXISTS", name[index]}));
  }
}

// The answer to the acquire is lost, and meanwhile the slot has gone: the lock is taken back where it is now.
TEST_ON_CLUSTER(test_what_is_to_be_taken_back_should_go_after_its_slot) {
  const std::string name = name_at(0, "lost");
  Tree tree(cluster.hosts(), name_at(0, "home"), 200ms);
  auto lock = std::make_unique<Mutex>(tree.client, ByteView(name), LockTiming{.lease = 60s});
  // It has run when the pause is over, and nobody waits for its answer then.
  cluster.servers[0]->command("CLIENT PAUSE 1000 ALL");
  TEST_ASSERT_EQUAL(Status::timed_out, lock->try_acquire());
  lock.reset();
  const auto taken_back = [&] {
    return comes([&] {
      (void)tree.client.tend();
      return tree.client.compensations_pending() == 0;
    });
  };
  TEST_ASSERT_TRUE(taken_back());
  TEST_ASSERT_EQUAL("0", cluster.servers[0]->command({"EXISTS", name}));

  // A release finds the slot gone.
  tree.config.request_timeout = 5s;
  tree.connect();
  lock = std::make_unique<Mutex>(tree.client, ByteView(name), LockTiming{.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  cluster.move_slot(name, 1);
  lock.reset();
  TEST_ASSERT_TRUE(taken_back());
  TEST_ASSERT_EQUAL("0", cluster.servers[1]->command({"EXISTS", name}));

  // One that is waited for says what came of it.
  lock = std::make_unique<Mutex>(tree.client, ByteView(name), LockTiming{.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  cluster.move_slot(name, 2);
  TEST_ASSERT_EQUAL(Status::ok, lock->release());
  TEST_ASSERT_EQUAL("0", cluster.servers[2]->command({"EXISTS", name}));
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

TEST_ON_CLUSTER(test_a_fail_over_should_concern_the_names_of_its_master_alone) {
  Tree tree(cluster.hosts(), name_at(0, "home"));
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<Mutex> locks;
  for (const std::string& name : names)
    TEST_ASSERT_EQUAL(Status::ok, locks.emplace_back(tree.client, ByteView(name)).try_acquire());
  cluster.fail_over(names[1]);
  for (Mutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL("1", cluster.servers[ClusterSetup::partner_of(1)]->command({"EXISTS", names[1]}));
  for (Mutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// Wherever the call is, cancel() of the client ends it; and what came between two calls ends the next, whichever its master.
TEST_ON_CLUSTER(test_a_cancel_should_end_the_call_at_any_master) {
  Tree tree(cluster.hosts(), name_at(0));
  Tree other(cluster.hosts(), name_at(0));
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
    const std::string name = name_at(master);
    Mutex lock(tree.client, ByteView(name));
    Mutex rival(other.client, ByteView(name));
    TEST_ASSERT_EQUAL(Status::ok, rival.try_acquire());
    const auto asked = cluster.servers[master]->calls("set");
    std::thread canceller([&] {
      TEST_ASSERT_TRUE(comes([&] { return cluster.servers[master]->calls("set") > asked; }));
      tree.client.cancel();
    });
    const Instant begin = Client::now();
    TEST_ASSERT_EQUAL(Status::cancelled, lock.acquire(60s));
    TEST_ASSERT_TRUE(Client::now() - begin < 10s);
    canceller.join();
    TEST_ASSERT_EQUAL(Status::ok, rival.release());
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    // A release does its work, and the cancel of before ends the next call, at another master.
    tree.client.cancel();
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    const std::string next = name_at((master + 1) % ClusterSetup::masters);
    Mutex following(tree.client, ByteView(next));
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
