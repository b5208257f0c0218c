// SPDX-License-Identifier: MIT
//
// Fair locks on real servers: who comes first, what stands in the queue, who is woken, and what becomes of those who leave.
#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "clients.hpp"
#include "patience.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

const LockTiming long_lease = {.lease = 20s};

struct Party {
  explicit Party(const RedisServer& server, const std::string& name = "k", const LockTiming& timing = long_lease,
                 const holdfast::FairOptions& options = {})
      : owner(connected(client, server)), lock(owner, ByteView(name), timing, options) {}
  // On a thread of its own. Returns when it stands in the queue, as so many's.
  void wait_in_queue(const RedisServer& server, int place, std::atomic<int>* order = nullptr, Duration wait = 60s) {
    thread = std::thread([this, order, wait] {
      outcome = lock.acquire(wait);
      if (order != nullptr) came = ++*order;
      done.store(true);
    });
    TEST_ASSERT_TRUE(comes([&] { return server.command("ZCARD holdfast_queue:{k}") == std::to_string(place); }));
  }
  ~Party() {
    if (thread.joinable()) thread.join();
  }
  Client client;
  Owner owner;
  FairLock lock;
  std::thread thread;
  std::atomic<bool> done = false;
  Status outcome = Status::outcome_unknown;
  int came = 0;
};

std::string text_of(const holdfast::Token& token) { return std::string(token.bytes().string_view()); }

}  // namespace

// ---- One alone -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_hold_should_be_a_hash_as_of_the_reentrant_kinds) {
  Party one(server);
  Party other(server);
  TEST_ASSERT_EQUAL(Status::ok, one.lock.try_acquire());
  TEST_ASSERT_EQUAL(text_of(one.lock.token()) + " 1", server.command("HGETALL k"));
  TEST_ASSERT_TRUE(std::stoi(server.command("PTTL k")) > 19'000);
  TEST_ASSERT_EQUAL(Status::ok, one.lock.acquire(1s));  // Once more.
  TEST_ASSERT_EQUAL(text_of(one.lock.token()) + " 2", server.command("HGETALL k"));
  TEST_ASSERT_EQUAL(Status::lock_busy, other.lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, one.lock.release());
  TEST_ASSERT_EQUAL(Status::lock_busy, other.lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, one.lock.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(Status::ok, other.lock.try_acquire());
}

TEST_ON_SERVER(test_fair_reentrant_and_fenced_locks_of_one_name_should_exclude_each_other) {
  Party fair(server);
  ReentrantLock reentrant(fair.owner, "k", long_lease);
  FencedLock fenced(fair.owner, "k", long_lease);
  TEST_ASSERT_EQUAL(Status::ok, fair.lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, reentrant.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, fenced.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, fair.lock.release());
  TEST_ASSERT_EQUAL(Status::ok, reentrant.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, fair.lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, reentrant.release());
}

TEST_ON_SERVER(test_fences_should_grow_with_each_grant_also_one_by_a_release) {
  Party one(server, "k", long_lease, {.fenced = true});
  Party other(server, "k", long_lease, {.fenced = true});
  TEST_ASSERT_EQUAL(Status::ok, one.lock.try_acquire());
  const std::uint64_t first = one.lock.fence();
  TEST_ASSERT_TRUE(first != 0);
  TEST_ASSERT_EQUAL(std::to_string(first), server.command("GET redisson_lock_token:{k}"));
  other.wait_in_queue(server, 1);
  TEST_ASSERT_EQUAL(Status::ok, one.lock.release());
  other.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, other.outcome);
  TEST_ASSERT_TRUE(other.lock.fence() > first);
  TEST_ASSERT_EQUAL(std::to_string(other.lock.fence()), server.command("GET redisson_lock_token:{k}"));
  TEST_ASSERT_EQUAL(Status::ok, other.lock.release());
  Party plain(server);
  TEST_ASSERT_EQUAL(Status::ok, plain.lock.try_acquire());
  TEST_ASSERT_EQUAL(std::uint64_t{0}, plain.lock.fence());
}

// ---- Several -------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_first_come_should_be_first_served) {
  Party holder(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  std::atomic<int> order = 0;
  std::deque<Party> waiters;
  for (int index = 0; index < 5; ++index) waiters.emplace_back(server).wait_in_queue(server, index + 1, &order);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  for (int index = 0; index < 5; ++index) {
    Party& next = waiters[static_cast<std::size_t>(index)];
    const Instant begin = Client::now();
    next.thread.join();
    TEST_ASSERT_TRUE(Client::now() - begin < 900ms);  // It was told, and did not find out by its next beat.
    TEST_ASSERT_EQUAL(Status::ok, next.outcome);
    TEST_ASSERT_EQUAL(index + 1, next.came);
    TEST_ASSERT_TRUE(next.lock.held());
    TEST_ASSERT_TRUE(std::stoi(server.command("PTTL k")) > 15'000);  // Its lease, and not the offer.
    TEST_ASSERT_EQUAL(Status::ok, next.lock.release());
  }
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k holdfast_queue:{k}") == "0"; }));
}

TEST_ON_SERVER(test_try_acquire_should_not_overtake_and_leave_nothing) {
  Party holder(server);
  Party waiter(server);
  Party trier(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, trier.lock.try_acquire());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS holdfast_queue:{k}"));
  waiter.wait_in_queue(server, 1);
  server.command("DEL k");  // Free, and nobody was told.
  TEST_ASSERT_EQUAL(Status::lock_busy, trier.lock.try_acquire());
  waiter.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, waiter.outcome);
  TEST_ASSERT_EQUAL(text_of(waiter.lock.token()) + " 1", server.command("HGETALL k"));
}

TEST_ON_SERVER(test_who_gives_up_should_leave_the_queue) {
  Party holder(server);
  Party impatient(server);
  Party patient(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  impatient.wait_in_queue(server, 1, nullptr, 300ms);
  patient.wait_in_queue(server, 2);
  impatient.thread.join();
  TEST_ASSERT_EQUAL(Status::lock_busy, impatient.outcome);
  TEST_ASSERT_TRUE(comes([&] { return server.command("ZCARD holdfast_queue:{k}") == "1"; }));
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  patient.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, patient.outcome);
}

TEST_ON_SERVER(test_who_is_cancelled_should_leave_the_queue) {
  Party holder(server);
  Party waiter(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  waiter.wait_in_queue(server, 1);
  waiter.client.cancel();
  waiter.thread.join();
  TEST_ASSERT_EQUAL(Status::cancelled, waiter.outcome);
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS holdfast_queue:{k}") == "0"; }));
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  TEST_ASSERT_TRUE(comes([&] { return server.command("DBSIZE") == "0"; }));
}

// What was given to one who leaves goes on to the next.
TEST_ON_SERVER(test_a_release_should_skip_who_was_not_heard_of_and_serve_the_next) {
  Party holder(server);
  Party waiter(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  server.command("ZADD holdfast_queue:{k} 1 dead:1 2 dead:2");
  waiter.wait_in_queue(server, 3);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  waiter.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, waiter.outcome);
  TEST_ASSERT_EQUAL(text_of(waiter.lock.token()) + " 1", server.command("HGETALL k"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS holdfast_queue:{k}"));
}

// Given to a waiter who died meanwhile it costs one offer, not a lease.
TEST_ON_SERVER(test_a_grant_to_the_dead_should_cost_one_offer) {
  Party holder(server);
  Party waiter(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  server.command("ZADD holdfast_queue:{k} 1 dead:1");
  server.command("SET holdfast_beat:{k}:dead:1 x PX 60000");
  waiter.wait_in_queue(server, 2);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL("dead:1 1", server.command("HGETALL k"));
  TEST_ASSERT_TRUE(std::stoi(server.command("PTTL k")) <= 3'000);
  waiter.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, waiter.outcome);
  TEST_ASSERT_TRUE(Client::now() - begin < 8s);
}

TEST_ON_SERVER(test_nothing_beside_the_lock_should_be_without_a_ttl) {
  Party holder(server);
  Party waiter(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  waiter.wait_in_queue(server, 1);
  TEST_ASSERT_TRUE(std::stoi(server.command("PTTL holdfast_queue:{k}")) > 50'000);
  TEST_ASSERT_TRUE(std::stoi(server.command("PTTL holdfast_beat:{k}:" + text_of(waiter.lock.token()))) > 0);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  waiter.thread.join();
}
