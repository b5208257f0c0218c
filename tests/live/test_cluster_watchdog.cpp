// SPDX-License-Identifier: MIT
//
// One Watchdog that keeps holds at several masters of a cluster: a lane for each, and each hold goes after its slot.
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client_list.hpp"
#include "clients.hpp"
#include "cluster_setup.hpp"
#include "guided.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/proto/slot.hpp"

using holdfast::Cluster;
using holdfast::WatchdogBranchesOf;

static void setUp() {}
static void tearDown() {}

namespace {

// Long enough for a busy machine, short enough that three of them are soon over.
constexpr Duration lease = 2s;
// Of what is to outlive a slot's move, or who stands still.
constexpr Duration long_lease = 6s;

// A client of a cluster, by its own name there.
struct Member {
  Member(const std::string& hosts, const std::string& name, const char* client_name = "member",
         Duration request_timeout = 5s)
      : guided("redis-cluster://" + hosts + "/" + name) {
    guided.config.client_name = client_name;
    guided.config.request_timeout = request_timeout;
    const Status status = client.connect(guided.config);
    TEST_MESSAGE(text_of(client));
    TEST_ASSERT_EQUAL(Status::ok, status);
  }
  GuidedBy<Cluster> guided;
  Client client;
};

struct Told {
  std::atomic<int> lost = 0;
  KeepOptions options() {
    return {.keep = Keep::always,
            .on_lost = [](void* self) noexcept { ++static_cast<Told*>(self)->lost; },
            .context = this};
  }
};

// A watchdog with lanes for all masters of a ClusterSetup, and one more.
struct Guard {
  WatchdogPlaces<16> places;
  Watchdog watchdog{places.storage()};
  WatchdogBranchesOf<3, 16> branches{watchdog};
};

// How often the masters have said so, as INFO counts it.
long told(const ClusterSetup& cluster, const std::string& error) {
  long count = 0;
  const std::string words = "errorstat_" + error + ":count=";
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
    const std::string text = cluster.servers[master]->command("INFO errorstats");
    if (const std::size_t at = text.find(words); at != std::string::npos)
      count += std::stol(text.substr(at + words.size()));
  }
  return count;
}

// Renewed from now on, by nobody but the watchdog.
bool renewed(const BlockingLock& lock, Duration span) {
  const Instant begin = Client::now();
  return comes([&] { return lock.valid_until() > begin + span; }, 30s);
}

}  // namespace

// ---- Sharing -----------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_clients_of_several_masters_should_share_one_watchdog) {
  Guard guard;
  std::deque<Member> members;
  std::deque<Mutex> locks;
  Told lost;
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
    Member& member = members.emplace_back(cluster.hosts(), name_at(master), master == 0 ? "first" : "other");
    if (master == 0)
      TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(member.client));
    else
      member.client.attach(&guard.watchdog);
    Mutex& lock = locks.emplace_back(member.client, ByteView(name_at(master)), LockTiming{.lease = lease});
    TEST_ASSERT_EQUAL(Status::ok, lock.keep(lost.options()));
  }
  const long moved = told(cluster, "MOVED");
  for (Mutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(std::size_t{3}, guard.watchdog.size());
  for (Mutex& lock : locks) TEST_ASSERT_TRUE(renewed(lock, 2 * lease));
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master)
    TEST_ASSERT_EQUAL(master == 0 ? 2U : 1U, connections_named(*cluster.servers[master], "first"));
  TEST_ASSERT_EQUAL(moved, told(cluster, "MOVED"));  // Each hold was looked for where it is.
  for (Mutex& lock : locks) {
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  TEST_ASSERT_EQUAL(std::size_t{0}, guard.watchdog.size());
  TEST_ASSERT_EQUAL(0, lost.lost.load());
}

TEST_ON_CLUSTER(test_holds_of_several_slots_at_one_master_should_be_renewed_in_calls_of_one_slot) {
  constexpr std::size_t slots = 3;
  constexpr std::size_t each = 4;
  Guard guard;
  std::deque<Member> members;
  std::deque<Mutex> locks;
  Member& home = members.emplace_back(cluster.hosts(), name_at(0));
  TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(home.client));
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const std::string tag = name_at(1, "tag" + std::to_string(slot));
    Member& member = members.emplace_back(cluster.hosts(), "{" + tag + "}");
    member.client.attach(&guard.watchdog);
    for (std::size_t number = 0; number < each; ++number) {
      const std::string name = "{" + tag + "}" + std::to_string(number);
      Mutex& lock = locks.emplace_back(member.client, ByteView(name), LockTiming{.lease = lease});
      TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
      TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    }
  }
  for (Mutex& lock : locks) TEST_ASSERT_TRUE(renewed(lock, 2 * lease));
  TEST_ASSERT_EQUAL(0, told(cluster, "CROSSSLOT"));
  for (Mutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// ---- Moving ------------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_a_hold_should_be_kept_where_its_slot_is_moved_there_and_back) {
  const std::string name = name_at(1);
  const std::string stays = name_at(0);
  Guard guard;
  Member home(cluster.hosts(), stays);
  Member member(cluster.hosts(), name);
  TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(home.client));
  member.client.attach(&guard.watchdog);
  Told lost;
  Mutex unmoved(home.client, ByteView(stays), {.lease = long_lease});
  Mutex lock(member.client, ByteView(name), {.lease = long_lease});
  for (Mutex* const each : {&unmoved, &lock}) {
    TEST_ASSERT_EQUAL(Status::ok, each->keep(lost.options()));
    TEST_ASSERT_EQUAL(Status::ok, each->try_acquire());
  }
  for (const std::size_t to : {std::size_t{2}, std::size_t{0}, std::size_t{1}}) {
    cluster.move_slot(name, to);
    TEST_ASSERT_TRUE(renewed(lock, long_lease));
    TEST_ASSERT_TRUE(std::stol(cluster.servers[to]->command({"PTTL", name})) > long_lease / 2ms);
  }
  TEST_ASSERT_TRUE(renewed(unmoved, long_lease));
  TEST_ASSERT_EQUAL(std::size_t{2}, guard.watchdog.size());
  for (Mutex* const each : {&unmoved, &lock}) {
    TEST_ASSERT_TRUE(each->held());
    TEST_ASSERT_EQUAL(Status::ok, each->release());
  }
  TEST_ASSERT_EQUAL(std::size_t{0}, guard.watchdog.size());
  TEST_ASSERT_EQUAL("0", cluster.servers[1]->command({"EXISTS", name}));
  TEST_ASSERT_EQUAL(0, lost.lost.load());
}

TEST_ON_CLUSTER(test_two_masters_that_name_each_other_should_be_asked_with_pauses) {
  const std::string name = name_at(1);
  Guard guard;
  Member home(cluster.hosts(), name_at(0));
  Member member(cluster.hosts(), name);
  Member third(cluster.hosts(), name_at(2));
  TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(home.client));
  member.client.attach(&guard.watchdog);
  third.client.attach(&guard.watchdog);
  Mutex lock(member.client, ByteView(name), {.lease = long_lease});
  Mutex there(third.client, ByteView(name_at(2)), {.lease = lease});  // There is a lane for each of the two.
  for (Mutex* const each : {&lock, &there}) {
    TEST_ASSERT_EQUAL(Status::ok, each->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, each->try_acquire());
  }
  TEST_ASSERT_TRUE(renewed(there, lease));
  const int slot = ClusterSetup::slot_of(*cluster.servers[0], name);
  cluster.open_slot(slot, 1, 2);
  cluster.move_keys(slot, 1, 2);
  // The old master names the new one, which does not know that it has the slot.
  const std::string taken =
      "CLUSTER SETSLOT " + std::to_string(slot) + " NODE " + cluster.servers[2]->command("CLUSTER MYID");
  TEST_ASSERT_EQUAL("OK", cluster.servers[1]->command(taken));
  const long before = told(cluster, "MOVED");
  // A thirtieth of the lease is the pause.
  TEST_ASSERT_TRUE(comes([&] { return told(cluster, "MOVED") >= before + 4; }, long_lease));
  const Instant begin = Client::now();
  const long first = told(cluster, "MOVED");
  breathe(1s);
  const long asked = told(cluster, "MOVED") - first;
  const long pauses = (Client::now() - begin) / (long_lease / 30);
  TEST_MESSAGE(asked << " in " << pauses);
  TEST_ASSERT_TRUE(asked <= pauses + 1);
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL("OK", cluster.servers[2]->command(taken));
  TEST_ASSERT_TRUE(renewed(lock, long_lease - 1s));
  TEST_ASSERT_EQUAL(std::size_t{2}, guard.watchdog.size());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, there.release());
}

TEST_ON_CLUSTER(test_threads_should_share_the_watchdog_while_slots_move) {
  constexpr std::size_t workers = 3;
  Guard guard;
  std::deque<Member> members;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    Member& member = members.emplace_back(cluster.hosts(), "{" + name_at(worker) + "}");
    if (worker == 0)
      TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(member.client));
    else
      member.client.attach(&guard.watchdog);
  }
  std::atomic<bool> over = false;
  std::atomic<int> rounds[workers] = {};
  std::atomic<int> lost = 0;
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < workers; ++worker)
    threads.emplace_back([&, worker] {
      const std::string tag = "{" + name_at(worker) + "}";
      Mutex kept(members[worker].client, ByteView(tag + "kept"), {.lease = long_lease});
      Mutex taken(members[worker].client, ByteView(tag + "taken"), {.lease = long_lease});
      (void)kept.keep({.keep = Keep::always});
      (void)taken.keep({.keep = Keep::always});
      if (kept.acquire(20s) != Status::ok) ++lost;
      while (!over) {
        if (taken.acquire(20s) == Status::ok && taken.release() == Status::ok) ++rounds[worker];
        breathe(2ms);
      }
      if (!kept.held() || kept.release() != Status::ok) ++lost;
    });
  std::string trouble;
  try {
    for (std::size_t worker = 0; worker < workers; ++worker) {
      const int before = rounds[worker];
      const std::string tag = "{" + name_at(worker) + "}";
      cluster.move_slot(tag, cluster.other_than(cluster.master_of(tag)));
      (void)comes([&] { return rounds[worker] > before + 5; }, 20s);
    }
    breathe(long_lease);  // Who was not kept is lost by now.
  } catch (const std::exception& error) {
    trouble = error.what();
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  TEST_ASSERT_EQUAL("", trouble);
  TEST_ASSERT_EQUAL(0, lost.load());
  for (const auto& count : rounds) TEST_ASSERT_TRUE(count > 5);
  TEST_ASSERT_EQUAL(std::size_t{0}, guard.watchdog.size());
}

// ---- Masters that fail -------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_a_master_that_stands_still_should_hold_up_its_own_holds_alone) {
  for (const std::size_t still : {std::size_t{0}, std::size_t{1}}) {  // The first client's, and another one's.
    const std::size_t other = 1 - still;
    Guard guard;
    std::deque<Member> members;
    std::deque<Mutex> locks;
    Told lost[2];
    for (std::size_t master = 0; master < 2; ++master) {
      const std::string name = name_at(master);
      Member& member = members.emplace_back(cluster.hosts(), name);
      if (master == 0)
        TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(member.client));
      else
        member.client.attach(&guard.watchdog);
      Mutex& lock = locks.emplace_back(member.client, ByteView(name), LockTiming{.lease = lease});
      TEST_ASSERT_EQUAL(Status::ok, lock.keep(lost[master].options()));
      TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    }
    for (Mutex& lock : locks) TEST_ASSERT_TRUE(renewed(lock, lease));
    cluster.servers[still]->pause();
    const bool told_of_it = comes([&] { return lost[still].lost != 0; }, 10s);
    const bool goes_on = renewed(locks[other], 2 * lease);
    cluster.servers[still]->resume();
    TEST_ASSERT_TRUE(told_of_it);
    TEST_ASSERT_TRUE(goes_on);
    TEST_ASSERT_EQUAL(0, lost[other].lost.load());
    TEST_ASSERT_TRUE(locks[other].held());
    TEST_ASSERT_EQUAL(Status::ok, locks[other].release());
    TEST_ASSERT_FALSE(locks[still].held());
  }
}

TEST_ON_CLUSTER(test_holds_should_be_kept_through_a_fail_over_by_agreement) {
  const std::string name = name_at(1);
  Guard guard;
  Member home(cluster.hosts(), name_at(0));
  Member member(cluster.hosts(), name);
  TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(home.client));
  member.client.attach(&guard.watchdog);
  Mutex lock(member.client, ByteView(name), {.lease = long_lease});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  cluster.fail_over(name);
  TEST_ASSERT_TRUE(renewed(lock, long_lease));
  TEST_ASSERT_TRUE(std::stol(cluster.master(name).command({"PTTL", name})) > long_lease / 2ms);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// One connection for each master, also where a lane has found its server anew.
TEST_ON_CLUSTER(test_a_lane_should_be_known_by_the_server_that_it_has_found) {
  const std::string home_name = name_at(0);
  const std::string name = name_at(1);
  Guard guard;
  Member home(cluster.hosts(), home_name, "home");
  Member member(cluster.hosts(), name);
  TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(home.client));
  member.client.attach(&guard.watchdog);
  Mutex moved(home.client, ByteView(home_name), {.lease = 2 * long_lease});
  Mutex lock(member.client, ByteView(name), {.lease = 10 * long_lease});  // Not renewed meanwhile.
  for (Mutex* const each : {&moved, &lock}) {
    TEST_ASSERT_EQUAL(Status::ok, each->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, each->try_acquire());
  }
  TEST_ASSERT_TRUE(comes([&] { return connections_named(*cluster.servers[1], "home") == 1; }));
  cluster.fail_over(name);
  cluster.servers[1]->command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_TRUE(comes([&] { return connections_named(*cluster.servers[4], "home") == 1; }));
  cluster.move_slot(home_name, 4);
  TEST_ASSERT_TRUE(renewed(moved, 2 * long_lease));
  TEST_ASSERT_EQUAL(1U, connections_named(*cluster.servers[4], "home"));
  TEST_ASSERT_EQUAL(Status::ok, moved.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_CLUSTER(test_holds_should_be_kept_through_the_death_of_their_master, 3000) {
  constexpr Duration patient_lease = 20s;
  const std::string name = name_at(1);
  const std::string well_name = name_at(0);
  Guard guard;
  Member home(cluster.hosts(), well_name);
  Member member(cluster.hosts(), name);
  TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(home.client));
  member.client.attach(&guard.watchdog);
  Mutex well(home.client, ByteView(well_name), {.lease = lease});
  Mutex lock(member.client, ByteView(name), {.lease = patient_lease});
  for (Mutex* const each : {&well, &lock}) {
    TEST_ASSERT_EQUAL(Status::ok, each->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, each->try_acquire());
  }
  TEST_ASSERT_TRUE(comes([&] { return cluster.servers[4]->command("DBSIZE") == "1"; }));  // The replica has it.
  const Instant granted = lock.valid_until();
  cluster.servers[1]->stop();
  TEST_ASSERT_TRUE(comes([&] { return lock.valid_until() > granted; }, patient_lease));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_TRUE(well.held());
  TEST_ASSERT_TRUE(std::stol(cluster.servers[4]->command({"PTTL", name})) > patient_lease / 2ms);
  TEST_ASSERT_TRUE(comes([&] { return cluster.is_well(0); }));  // It hears of the new master a little later.
  TEST_ASSERT_EQUAL(Status::ok, well.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// No lane is left for the replica: that of its master goes there, as a whole.
TEST_ON_CLUSTER(test_lanes_as_many_as_masters_should_live_through_fail_overs) {
  WatchdogPlaces<4> places;
  Watchdog watchdog(places.storage());
  WatchdogBranchesOf<1, 4> branches(watchdog);
  std::deque<Member> members;
  std::deque<Mutex> locks;
  Told lost;
  for (const std::string& name : {name_at(0, "a"), name_at(0, "b"), name_at(1, "c"), name_at(1, "d")}) {
    Member& member = members.emplace_back(cluster.hosts(), name);
    if (members.size() == 1)
      TEST_ASSERT_EQUAL(Status::ok, watchdog.start(member.client));
    else
      member.client.attach(&watchdog);
    Mutex& lock = locks.emplace_back(member.client, ByteView(name), LockTiming{.lease = long_lease});
    TEST_ASSERT_EQUAL(Status::ok, lock.keep(lost.options()));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  }
  for (const std::size_t master : {std::size_t{1}, std::size_t{0}}) {
    cluster.fail_over(name_at(master));
    for (Mutex& lock : locks) TEST_ASSERT_TRUE(renewed(lock, long_lease));
  }
  TEST_ASSERT_EQUAL(0, lost.lost.load());
  for (Mutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// ---- Bounds ------------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_a_hold_for_which_there_is_no_lane_should_be_refused_and_let_go_of) {
  WatchdogPlaces<4> places;
  Watchdog watchdog(places.storage());
  WatchdogBranchesOf<1, 1> branches(watchdog);
  std::deque<Member> members;
  std::deque<Mutex> locks;
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
    Member& member = members.emplace_back(cluster.hosts(), "{" + name_at(master) + "}");
    if (master == 0)
      TEST_ASSERT_EQUAL(Status::ok, watchdog.start(member.client));
    else
      member.client.attach(&watchdog);
    const std::string name = "{" + name_at(master) + "}1";
    TEST_ASSERT_EQUAL(
        Status::ok,
        locks.emplace_back(member.client, ByteView(name), LockTiming{.lease = lease}).keep({.keep = Keep::always}));
  }
  TEST_ASSERT_EQUAL(Status::ok, locks[0].try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, locks[1].try_acquire());
  const std::string third = "{" + name_at(2) + "}1";
  TEST_ASSERT_EQUAL(Status::too_many_requests, locks[2].try_acquire());
  TEST_ASSERT_FALSE(locks[2].held());
  TEST_ASSERT_TRUE(comes([&] { return cluster.servers[2]->command({"EXISTS", third}) == "0"; }, lease / 2));
  // No place in the lane that there is.
  Mutex more(members[1].client, ByteView("{" + name_at(1) + "}2"), {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, more.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::too_many_requests, more.try_acquire());
  TEST_ASSERT_TRUE(renewed(locks[1], 2 * lease));
  // A lane that nobody needs any more goes to another master.
  TEST_ASSERT_EQUAL(Status::ok, locks[1].release());
  TEST_ASSERT_EQUAL(Status::ok, locks[2].try_acquire());
  TEST_ASSERT_TRUE(renewed(locks[2], 2 * lease));
  TEST_ASSERT_TRUE(renewed(locks[0], lease));
  TEST_ASSERT_EQUAL(Status::ok, locks[2].release());
  TEST_ASSERT_EQUAL(Status::ok, locks[0].release());
}

// A hold whose slot goes to a master without a lane stays where it is, beside one that has not moved, and goes on when the slot is back.
TEST_ON_CLUSTER(test_a_hold_should_outlive_a_move_to_a_master_without_a_lane) {
  WatchdogPlaces<4> places;
  Watchdog watchdog(places.storage());
  WatchdogBranchesOf<1, 4> branches(watchdog);
  Member home(cluster.hosts(), name_at(0));
  Member member(cluster.hosts(), name_at(1));
  Member beside(cluster.hosts(), name_at(0, "beside"));
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(home.client));
  member.client.attach(&watchdog);
  beside.client.attach(&watchdog);
  Told lost;
  Mutex stays(beside.client, ByteView(name_at(0, "beside")), {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, stays.keep(lost.options()));
  TEST_ASSERT_EQUAL(Status::ok, stays.try_acquire());
  Mutex lock(home.client, ByteView(name_at(0)), {.lease = 2 * long_lease});
  Mutex other(member.client, ByteView(name_at(1)), {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(lost.options()));
  TEST_ASSERT_EQUAL(Status::ok, other.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
  const long introductions = cluster.servers[2]->calls("eval");
  cluster.move_slot(name_at(0), 2);
  const long before = told(cluster, "MOVED");
  TEST_ASSERT_TRUE(comes([&] { return told(cluster, "MOVED") > before + 2; }, 2 * long_lease));
  TEST_ASSERT_TRUE(renewed(stays, lease));
  TEST_ASSERT_EQUAL(introductions, cluster.servers[2]->calls("eval"));  // Nobody went there.
  TEST_ASSERT_TRUE(lock.held());
  cluster.move_slot(name_at(0), 0);
  TEST_ASSERT_TRUE(renewed(lock, 2 * long_lease - 1s));
  TEST_ASSERT_TRUE(renewed(stays, lease));
  TEST_ASSERT_EQUAL(0, lost.lost.load());
  for (Mutex* const each : {&lock, &other, &stays}) TEST_ASSERT_EQUAL(Status::ok, each->release());
}

// ---- Taking back -------------------------------------------------------------------------------------------------

// What its client may not be called again for: it asks and does not hear the answer, and then its connection is killed. The script that
// takes a lock back begins with a GET, and nothing else here has one.
TEST_ON_CLUSTER(test_what_a_client_cannot_take_back_should_be_taken_back_at_its_master_and_go_after_its_slot) {
  Guard guard;
  Member home(cluster.hosts(), name_at(0));
  TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(home.client));
  for (const bool moves : {false, true}) {
    const std::string name = name_at(1, moves ? "moves" : "stays");
    Member member(cluster.hosts(), name, "forlorn", 200ms);
    member.client.attach(&guard.watchdog);
    Mutex lock(member.client, ByteView(name), {.lease = long_lease});
    const std::size_t to = moves ? 2 : 1;
    const long moved = told(cluster, "MOVED");
    const auto before = cluster.servers[to]->calls("get");
    TEST_ASSERT_EQUAL("OK", cluster.servers[1]->command("CLIENT PAUSE 60000 WRITE"));
    TEST_ASSERT_EQUAL(Status::timed_out, lock.try_acquire());
    const std::string list = cluster.servers[1]->command("CLIENT LIST TYPE normal");
    const std::size_t line = list.rfind("id=", list.find("name=forlorn "));
    TEST_ASSERT_EQUAL(
        "1", cluster.servers[1]->command("CLIENT KILL ID " + list.substr(line + 3, list.find(' ', line) - line - 3)));
    if (moves) {
      const int slot = ClusterSetup::slot_of(*cluster.servers[0], name);
      cluster.open_slot(slot, 1, 2);
      cluster.close_slot(slot, 1, 2);
      cluster.await_move(name, 2);
    }
    // One that has moved may have gone there over a new connection, where the move took long.
    if (!moves) TEST_ASSERT_EQUAL(before, cluster.servers[to]->calls("get"));
    TEST_ASSERT_EQUAL("OK", cluster.servers[1]->command("CLIENT UNPAUSE"));
    TEST_ASSERT_TRUE(comes([&] { return cluster.servers[to]->calls("get") > before; }));
    if (!moves) TEST_ASSERT_EQUAL(moved, told(cluster, "MOVED"));  // It went there at once.
  }
}

// ---- Starting anew -----------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_holds_at_several_masters_should_be_kept_on_by_a_watchdog_that_is_started_again) {
  Guard guard;
  std::deque<Member> members;
  std::deque<Mutex> locks;
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
    Member& member = members.emplace_back(cluster.hosts(), name_at(master));
    if (master == 0)
      TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(member.client));
    else
      member.client.attach(&guard.watchdog);
    Mutex& lock = locks.emplace_back(member.client, ByteView(name_at(master)), LockTiming{.lease = long_lease});
    TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
    if (master == 2) guard.watchdog.stop();  // And one comes while it does not run.
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  }
  TEST_ASSERT_EQUAL(std::size_t{3}, guard.watchdog.size());
  TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(members[1].client));  // Another one's master is the first now.
  for (Mutex& lock : locks) TEST_ASSERT_TRUE(renewed(lock, long_lease));
  for (Mutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(std::size_t{0}, guard.watchdog.size());
}

TEST_ON_SERVER(test_branches_of_servers_that_are_no_cluster_should_do_nothing) {
  Guard guard;
  Client client;
  Client other;
  connected(client, server);
  connected(other, server);
  TEST_ASSERT_EQUAL(Status::ok, guard.watchdog.start(client));
  other.attach(&guard.watchdog);
  Mutex one(client, "a", {.lease = lease});
  Mutex two(other, "b", {.lease = lease});
  for (Mutex* const lock : {&one, &two}) {
    TEST_ASSERT_EQUAL(Status::ok, lock->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  }
  for (Mutex* const lock : {&one, &two}) TEST_ASSERT_TRUE(renewed(*lock, 2 * lease));
  TEST_ASSERT_EQUAL(Status::ok, one.release());
  TEST_ASSERT_EQUAL(Status::ok, two.release());
}
