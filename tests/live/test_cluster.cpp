// SPDX-License-Identifier: MIT
//
// A cluster of real servers, over both clients: the master of a name is found and followed, through fail-overs and while its slot is
// moved.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clients.hpp"
#include "cluster_setup.hpp"
#include "guided.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/proto/slot.hpp"

using holdfast::Cluster;

static void setUp() {}
static void tearDown() {}

namespace {

using Guided = GuidedBy<Cluster>;

// Connected by these hosts.
struct Member {
  Member(const std::string& hosts, const std::string& name) : guided("redis-cluster://" + hosts + "/" + name) {
    const Status status = client.connect(guided.config);
    TEST_MESSAGE(text_of(client));
    TEST_ASSERT_EQUAL(Status::ok, status);
  }
  Guided guided;
  Client client;
};

// A slot on its way to another master, step by step. close() moves what is left.
struct SlotOnTheMove {
  SlotOnTheMove(const ClusterSetup& setup, const std::string& key)
      : cluster(setup),
        from(setup.master_of(key)),
        to(setup.other_than(from)),
        slot(ClusterSetup::slot_of(*setup.servers[0], key)) {}
  void open() const { cluster.open_slot(slot, from, to); }
  void move(const std::string& prefix) const { cluster.move_keys(slot, from, to, prefix); }
  void close() const {
    cluster.move_keys(slot, from, to);
    cluster.close_slot(slot, from, to);
  }
  [[nodiscard]] RedisServer& source() const { return *cluster.servers[from]; }
  [[nodiscard]] RedisServer& target() const { return *cluster.servers[to]; }
  const ClusterSetup& cluster;
  const std::size_t from;
  const std::size_t to;
  const int slot;
};

// Waits for a fair lock over a client of its own, has it, and lets go of it.
std::thread fair_waiter(const std::string& host, const std::string& client_name, const std::string& name) {
  return std::thread([=] {
    Member member(host, client_name);
    Owner owner(member.client);
    FairLock lock(owner, ByteView(name));
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(60s));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  });
}

// Waits for the lock "k", and would sleep for longer than a test lasts.
class PatientWaiter {
 public:
  explicit PatientWaiter(const std::string& host) : guided_("redis-cluster://" + host + "/k") {
    guided_.config.max_poll = 60s;
    thread_ = std::thread([this] {
      Client client;
      connected_ = client.connect(guided_.config);
      Owner owner(client);
      ReentrantLock lock(owner, "k");
      acquired_ = lock.acquire(50s);
      ended_ = holdfast::Client::now();
      released_ = lock.release();
    });
  }
  ~PatientWaiter() {
    if (thread_.joinable()) thread_.join();
  }
  PatientWaiter(const PatientWaiter&) = delete;
  PatientWaiter& operator=(const PatientWaiter&) = delete;
  // The lock has just been released.
  void expect_woken() {
    const Instant released = holdfast::Client::now();
    thread_.join();
    TEST_ASSERT_EQUAL(Status::ok, connected_);
    TEST_ASSERT_EQUAL(Status::ok, acquired_);
    TEST_ASSERT_EQUAL(Status::ok, released_);
    TEST_ASSERT_TRUE(ended_ - released < 30s);
  }

 private:
  Guided guided_;
  Status connected_ = Status::ok;
  Status acquired_ = Status::ok;
  Status released_ = Status::ok;
  Instant ended_;
  std::thread thread_;
};

}  // namespace

// ---- Finding -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_slot_should_be_the_one_that_the_server_counts, "--cluster-enabled", "yes") {
  for (const char* key : {"orders", "{orders}", "{orders}:42", "a{}b", "a{b", "a}b{c}d", "{{x}}", "{a}{b}", "123456789",
                          "\xff\xfe{\x80}", "x"})
    TEST_ASSERT_EQUAL(ClusterSetup::slot_of(server, key), int{holdfast::slot_of(ByteView(std::string_view(key)))});
}

TEST_ON_CLUSTER(test_any_node_should_lead_to_the_master_of_the_name) {
  const std::size_t master = cluster.master_of("orders");
  for (std::size_t node = 0; node < 2 * ClusterSetup::masters; ++node) {
    Member member(cluster.host(node), "orders");
    Mutex lock(member.client, "orders");
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL("1", cluster.servers[master]->command("EXISTS orders"));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL("0", cluster.servers[master]->command("EXISTS orders"));
  }
}

TEST_ON_CLUSTER(test_locks_of_every_kind_should_exclude_each_other_in_a_cluster) {
  Member ours(cluster.host(0), "{k}");
  Member theirs(cluster.host(4), "{k}");
  Owner owner(ours.client);
  Owner other(theirs.client);
  const auto check = [](auto& lock, auto& rival) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_busy, rival.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.renew(1s));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL(Status::ok, rival.acquire(1s));
    TEST_ASSERT_EQUAL(Status::ok, rival.release());
  };
  {
    ReentrantLock lock(owner, "{k}:reentrant");
    ReentrantLock rival(other, "{k}:reentrant");
    check(lock, rival);
  }
  {
    FencedLock lock(owner, "{k}:fenced");
    FencedLock rival(other, "{k}:fenced");
    check(lock, rival);
    TEST_ASSERT_TRUE(lock.fence() < rival.fence());
  }
  {
    FairLock lock(owner, "{k}:fair");
    FairLock rival(other, "{k}:fair");
    check(lock, rival);
  }
  {
    ReadWriteLock lock(owner, "{k}:rw");
    ReadWriteLock rival(other, "{k}:rw");
    check(lock.write(), rival.write());
  }
}

TEST_ON_CLUSTER(test_replicas_of_the_slot_should_be_counted) {
  Guided guided(cluster.url("orders"));
  guided.config.acks = 1;
  guided.config.acks_timeout = 2s;
  Client client;
  Acks acks(client);
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  Owner owner(client);
  Mutex mutex(client, "{orders}:mutex");
  FencedLock fenced(owner, "{orders}:fenced");
  FairLock fair(owner, "{orders}:fair");
  for (BlockingLock* const lock :
       {static_cast<BlockingLock*>(&mutex), static_cast<BlockingLock*>(&fenced), static_cast<BlockingLock*>(&fair)}) {
    TEST_ASSERT_EQUAL(Status::ok, lock->acquire(20s));
    TEST_ASSERT_EQUAL(Status::ok, lock->release());
  }
  guided.config.acks = 2;  // The master has one.
  guided.config.acks_timeout = 50ms;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  TEST_ASSERT_EQUAL(Status::too_few_replicas, fenced.try_acquire());
  TEST_ASSERT_FALSE(fenced.held());
}

#ifndef HOLDFAST_TEST_ASIO  // Which takes such a name to its master: test_asio_cluster.cpp.
TEST_ON_CLUSTER(test_a_name_of_another_slot_should_be_refused_before_anything_is_sent) {
  Member member(cluster.host(0), "{k}");
  Mutex same(member.client, "{k}:1");
  Mutex other(member.client, "elsewhere");
  TEST_ASSERT_EQUAL(Status::ok, same.try_acquire());
  const auto calls = [&] {
    std::string text;
    for (const auto& server : cluster.servers) text += server->command("INFO commandstats");
    return text.find("cmdstat_set:calls=1,") != std::string::npos &&
           text.find("cmdstat_set:calls=2") == std::string::npos;
  };
  TEST_ASSERT_TRUE(calls());
  TEST_ASSERT_EQUAL(Status::cross_slot, other.try_acquire());
  TEST_ASSERT_EQUAL(Status::cross_slot, other.acquire(5s));
  TEST_ASSERT_TRUE(calls());
  TEST_ASSERT_TRUE(same.held());
  TEST_ASSERT_EQUAL(Status::ok, same.release());
}
#endif

TEST_ON_SERVER(test_a_server_without_cluster_mode_should_not_be_believed) {
  Guided guided("redis-cluster://127.0.0.1:" + std::to_string(server.port()) + "/k");
  Client client;
  TEST_ASSERT_EQUAL(Status::server_error, client.connect(guided.config));
  TEST_ASSERT_EQUAL("it is no node of a cluster: node 127.0.0.1:" + std::to_string(server.port()), text_of(client));
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::server_error, lock.acquire(5s));
}

// ---- Moving ------------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_a_hold_should_go_on_where_its_slot_was_moved_with_its_data) {
  Member member(cluster.host(0), "k");
  Member waiting(cluster.host(1), "k");
  Owner owner(member.client);
  Owner other(waiting.client);
  FencedLock lock(owner, "k");
  FencedLock rival(other, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const std::uint64_t fence = lock.fence();
  const std::size_t from = cluster.master_of("k");
  const std::size_t to = cluster.other_than(from);
  cluster.move_slot("k", to);
  TEST_ASSERT_EQUAL(Status::ok, lock.renew(5s));
  TEST_ASSERT_EQUAL(Status::lock_busy, rival.try_acquire());
  TEST_ASSERT_EQUAL("1", cluster.servers[to]->command("EXISTS k"));
  // And back again.
  cluster.move_slot("k", from);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", cluster.servers[from]->command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, rival.acquire(5s));
  TEST_ASSERT_TRUE(fence < rival.fence());
  TEST_ASSERT_EQUAL(Status::ok, rival.release());
}

// A key that is free might be created on the slot's new server by one, while another's is still on the old one.
TEST_ON_CLUSTER(test_a_slot_that_is_being_moved_should_give_no_lock_twice) {
  Member member(cluster.host(0), "{k}");
  Mutex held(member.client, "{k}:held");
  Mutex lock(member.client, "{k}:free");
  TEST_ASSERT_EQUAL(Status::ok, held.try_acquire());
  const std::size_t from = cluster.master_of("{k}");
  const std::size_t to = cluster.other_than(from);
  const int slot = ClusterSetup::slot_of(*cluster.servers[0], "{k}");
  cluster.open_slot(slot, from, to);
  TEST_ASSERT_EQUAL(Status::ok, held.renew(5s));
  TEST_ASSERT_EQUAL(Status::try_again, lock.try_acquire());
  TEST_ASSERT_FALSE(lock.held());
  cluster.move_keys(slot, from, to);
  TEST_ASSERT_EQUAL(Status::try_again, held.renew(5s));
  TEST_ASSERT_TRUE(held.held());
  std::thread mover([&] {
    (void)comes(
        [&] {
          return cluster.servers[from]->command("INFO errorstats").find("errorstat_ASK:count=4") != std::string::npos;
        },
        30s);
    cluster.close_slot(slot, from, to);
  });
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  mover.join();
  TEST_ASSERT_EQUAL(Status::ok, held.renew(5s));
  TEST_ASSERT_EQUAL("1", cluster.servers[to]->command("EXISTS {k}:free"));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, held.release());
}

TEST_ON_CLUSTER(test_a_hold_should_go_on_over_a_new_connection_while_its_slot_is_being_moved) {
  Member member(cluster.host(0), "{k}");
  Mutex lock(member.client, "{k}:held");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const std::size_t from = cluster.master_of("{k}");
  const std::size_t to = cluster.other_than(from);
  const int slot = ClusterSetup::slot_of(*cluster.servers[0], "{k}");
  cluster.open_slot(slot, from, to);
  cluster.servers[from]->command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew(5s));
  cluster.move_keys(slot, from, to);
  cluster.close_slot(slot, from, to);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", cluster.servers[to]->command("EXISTS {k}:held"));
}

// Its scripts want keys of the slot that they have not named. The server ends them in their middle where one of these has gone.
TEST_ON_CLUSTER(test_readers_whose_times_have_moved_before_the_lock_should_release_it) {
  const SlotOnTheMove slot(cluster, "{k}");
  Member ours(cluster.host(0), "{k}");
  Member theirs(cluster.host(1), "{k}");
  Member third(cluster.host(2), "{k}");
  Owner owner(ours.client);
  Owner other(theirs.client);
  Owner thirds(third.client);
  ReadWriteLock lock(owner, "{k}:rw");
  ReadWriteLock rival(other, "{k}:rw");
  ReadWriteLock late(thirds, "{k}:rw");
  TEST_ASSERT_EQUAL(Status::ok, lock.read().try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, rival.read().try_acquire());
  slot.open();
  slot.move("{k}:rw:");
  TEST_ASSERT_EQUAL(Status::try_again, late.read().try_acquire());
  TEST_ASSERT_FALSE(late.read().held());
  TEST_ASSERT_EQUAL(Status::lock_busy, late.write().try_acquire());
  TEST_ASSERT_EQUAL(Status::try_again, rival.read().renew(5s));
  TEST_ASSERT_TRUE(rival.read().held());
  // Nobody knows whether the other one's time runs, so he keeps the lock.
  TEST_ASSERT_EQUAL(Status::ok, lock.read().release());
  TEST_ASSERT_EQUAL("2", slot.source().command("HLEN {k}:rw"));  // `mode`, and the other one.
  TEST_ASSERT_EQUAL(Status::ok, rival.read().release());
  slot.close();
  TEST_ASSERT_EQUAL("0", slot.target().command("EXISTS {k}:rw"));
  TEST_ASSERT_EQUAL(Status::ok, late.write().acquire(5s));
  TEST_ASSERT_EQUAL(Status::ok, late.write().release());
}

TEST_ON_CLUSTER(test_a_permit_whose_end_has_moved_before_the_number_should_be_given_back_behind_it) {
  const SlotOnTheMove slot(cluster, "{k}");
  Member ours(cluster.host(0), "{k}");
  Member theirs(cluster.host(1), "{k}");
  Semaphore permit(ours.client, "{k}:s", 2);
  Semaphore rival(theirs.client, "{k}:s", 2);
  TEST_ASSERT_EQUAL(Status::ok, permit.try_acquire());
  slot.open();
  slot.move("{k}:s:timeout");
  TEST_ASSERT_EQUAL(Status::try_again, rival.try_acquire());
  TEST_ASSERT_FALSE(rival.held());
  TEST_ASSERT_EQUAL(Status::try_again, permit.renew(5s));
  TEST_ASSERT_TRUE(permit.held());
  TEST_ASSERT_EQUAL(Status::try_again, permit.release());
  TEST_ASSERT_FALSE(permit.held());
  slot.close();
  TEST_ASSERT_EQUAL("1", slot.target().command("GET {k}:s"));
  TEST_ASSERT_EQUAL(Status::ok, rival.acquire(5s));
  TEST_ASSERT_TRUE(comes(
      [&] {
        (void)permit.try_acquire();  // What is to be taken back goes with it.
        return permit.held();
      },
      30s));
  TEST_ASSERT_EQUAL("0", slot.target().command("GET {k}:s"));
  TEST_ASSERT_EQUAL(Status::ok, permit.release());
  TEST_ASSERT_EQUAL(Status::ok, rival.release());
  TEST_ASSERT_TRUE(comes([&] { return slot.target().command("GET {k}:s") == "2"; }));
}

TEST_ON_CLUSTER(test_a_place_in_a_queue_should_be_kept_where_the_queue_moves_before_its_lock) {
  const SlotOnTheMove slot(cluster, "{k}");
  Member ours(cluster.host(0), "{k}");
  Owner owner(ours.client);
  FairLock lock(owner, "{k}:fair");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const std::string who = "ZRANGE holdfast_queue:{k}:fair 0 -1 WITHSCORES";
  std::thread waiter = fair_waiter(cluster.host(1), "{k}", "{k}:fair");
  TEST_ASSERT_TRUE(comes([&] { return slot.source().command("ZCARD holdfast_queue:{k}:fair") == "1"; }, 30s));
  const std::string before = slot.source().command(who);
  const long beats = slot.source().calls("evalsha");
  slot.open();
  slot.move("holdfast_beat:{k}:fair:");
  TEST_ASSERT_TRUE(comes([&] { return slot.source().calls("evalsha") >= beats + 2; }, 30s));
  TEST_ASSERT_EQUAL(before, slot.source().command(who));
  slot.move("holdfast_queue:");
  const long more = slot.source().calls("evalsha");
  TEST_ASSERT_TRUE(comes([&] { return slot.source().calls("evalsha") >= more + 2; }, 30s));
  slot.close();
  TEST_ASSERT_EQUAL(before, slot.target().command(who));
  TEST_ASSERT_EQUAL(Status::ok, lock.renew(5s));
  TEST_ASSERT_EQUAL(before, slot.target().command(who));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  waiter.join();
}

// Its lock has gone with its release: there is no place for the next one's any more.
TEST_ON_CLUSTER(test_a_fair_lock_that_is_released_while_its_slot_moves_should_come_to_who_waits) {
  const SlotOnTheMove slot(cluster, "{k}");
  Member ours(cluster.host(0), "{k}");
  Owner owner(ours.client);
  FairLock lock(owner, "{k}:fair");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  std::thread waiter = fair_waiter(cluster.host(1), "{k}", "{k}:fair");
  TEST_ASSERT_TRUE(comes([&] { return slot.source().command("ZCARD holdfast_queue:{k}:fair") == "1"; }, 30s));
  slot.open();
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("1", slot.source().command("ZCARD holdfast_queue:{k}:fair"));  // He is still the first.
  slot.close();
  waiter.join();
}

TEST_ON_CLUSTER(test_a_counter_should_lose_nothing_while_its_slot_moves_there_and_back) {
  int counter = 0;  // Guarded by the lock alone.
  std::atomic<int> counted = 0;
  std::atomic<int> inside = 0;
  std::atomic<bool> overlapped = false;
  constexpr std::size_t workers = 3;
  constexpr int moves_wanted = 4;
  std::atomic<int> moves = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < workers; ++worker)
    threads.emplace_back([&, worker] {
      // Its slot may be on its way in this moment. Then the first call connects.
      Guided guided("redis-cluster://" + cluster.host(worker) + "/k");
      Client client;
      (void)client.connect(guided.config);
      Owner owner(client);
      ReentrantLock lock(owner, "k");
      while (!over) {
        if (lock.acquire(30s) != Status::ok) continue;
        if (inside.fetch_add(1) != 0) overlapped = true;
        counter = counter + 1;
        ++counted;
        inside.fetch_sub(1);
        (void)lock.release();
      }
    });
  const std::size_t home = cluster.master_of("k");
  const std::size_t away = cluster.other_than(home);
  std::string trouble;
  while (moves < moves_wanted && trouble.empty()) try {
      const int before = counted;
      cluster.move_slot("k", moves % 2 == 0 ? away : home);
      ++moves;
      // Each move has had its grants.
      (void)comes([&] { return counted > before + 5; }, 30s);
    } catch (const std::exception& error) {
      trouble = error.what();
    }
  over = true;
  for (std::thread& thread : threads) thread.join();
  TEST_ASSERT_EQUAL("", trouble);
  TEST_ASSERT_FALSE(overlapped.load());
  TEST_ASSERT_EQUAL(counted.load(), counter);
  TEST_ASSERT_TRUE(counter > 5 * moves_wanted);
}

// ---- Fail-overs --------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_a_hold_should_go_on_after_a_fail_over_with_its_data) {
  Member member(cluster.host(0), "k");
  Mutex lock(member.client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const std::size_t before = cluster.master_of("k");
  cluster.fail_over("k");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew(5s));
  TEST_ASSERT_EQUAL("1", cluster.servers[ClusterSetup::partner_of(before)]->command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", cluster.servers[ClusterSetup::partner_of(before)]->command("EXISTS k"));
}

TEST_ON_CLUSTER(test_a_wait_should_live_through_the_death_of_the_master, 3000) {
  const std::size_t before = cluster.master_of("k");
  Member member(cluster.hosts(), "k");
  Mutex lock(member.client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  cluster.servers[before]->stop();
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(30s));
  TEST_ASSERT_EQUAL("1", cluster.servers[ClusterSetup::partner_of(before)]->command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// ---- Push --------------------------------------------------------------------------------------------------------

// Redisson in a cluster subscribes and publishes so, too: within the slot, and not to every node.
TEST_ON_CLUSTER(test_a_waiter_should_be_woken_over_a_channel_of_the_slot) {
  Member ours(cluster.host(0), "k");
  Owner owner(ours.client);
  ReentrantLock lock(owner, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  PatientWaiter waiter(cluster.host(1));
  RedisServer& master = cluster.master("k");
  TEST_ASSERT_TRUE(comes(
      [&] { return master.command("PUBSUB SHARDNUMSUB redisson_lock__channel:{k}") == "redisson_lock__channel:{k} 1"; },
      30s));
  TEST_ASSERT_EQUAL("", master.command("PUBSUB CHANNELS"));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  waiter.expect_woken();
}

TEST_ON_CLUSTER(test_a_waiter_should_follow_a_slot_that_is_moved) {
  Member ours(cluster.host(0), "k");
  Owner owner(ours.client);
  ReentrantLock lock(owner, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  PatientWaiter waiter(cluster.host(1));
  const auto subscribed = [&](std::size_t server) {
    return comes(
        [&] {
          return cluster.servers[server]->command("PUBSUB SHARDNUMSUB redisson_lock__channel:{k}") ==
                 "redisson_lock__channel:{k} 1";
        },
        30s);
  };
  const std::size_t from = cluster.master_of("k");
  const std::size_t to = cluster.other_than(from);
  TEST_ASSERT_TRUE(subscribed(from));
  cluster.move_slot("k", to);
  TEST_ASSERT_TRUE(subscribed(to));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  waiter.expect_woken();
}

// Its channel is its client's own, and of any slot.
TEST_ON_CLUSTER(test_a_fair_lock_should_be_handed_on_in_a_cluster) {
  Member ours(cluster.host(0), "k");
  Owner owner(ours.client);
  FairLock lock(owner, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  std::thread waiter = fair_waiter(cluster.host(1), "k", "k");
  RedisServer& master = cluster.master("k");
  TEST_ASSERT_TRUE(comes([&] { return master.command("ZCARD holdfast_queue:{k}") == "1"; }, 30s));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  waiter.join();
  TEST_ASSERT_EQUAL("0", master.command("EXISTS k"));
}
