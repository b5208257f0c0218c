// SPDX-License-Identifier: MIT
//
// One client and names of any slot of a cluster, over both clients: a connection for each master, and each name goes after its slot.
// The blocking client has branches for that. What holds for one slot is in test_cluster.cpp.
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client_list.hpp"
#include "clients.hpp"
#include "cluster_setup.hpp"
#include "cluster_tree.hpp"
#include "holdfast/inspection.hpp"

using holdfast::LockForm;
using holdfast::LockInfo;
using holdfast::LockQueue;

static void setUp() {}
static void tearDown() {}

namespace {

std::size_t connections_at(const RedisServer& server) { return connections_named(server, "tree"); }

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

// Whichever the master, its holds are of one owner.
TEST_ON_CLUSTER(test_holds_at_all_masters_should_have_the_name_of_their_client) {
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
  TEST_ASSERT_EQUAL(0U, cluster.masters_that_say("commandstats", "cmdstat_ssubscribe"));
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
#ifndef HOLDFAST_TEST_ASIO  // What any thread may ask of a blocking client's lock.
  std::atomic<bool> over = false;
  std::atomic<int> not_held = 0;
  std::thread reader([&] {
    for (; !over; std::this_thread::yield()) not_held += kept.held() && kept.remaining() > 0s ? 0 : 1;
  });
#endif
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
#ifndef HOLDFAST_TEST_ASIO
  over = true;
  reader.join();
  TEST_ASSERT_EQUAL(0, not_held);
#endif
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

// Wherever the call is, cancel() of the client ends it.
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
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}
