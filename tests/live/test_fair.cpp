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
  Party one(server, "k", long_lease, {.fence = true});
  Party other(server, "k", long_lease, {.fence = true});
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

// ---- Faults --------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_holder_that_died_should_be_followed_by_the_first_when_its_lease_ends) {
  Party first(server);
  Party second(server);
  server.command("HSET k dead:1 1");
  server.command("PEXPIRE k 700");
  std::atomic<int> order = 0;
  first.wait_in_queue(server, 1, &order);
  second.wait_in_queue(server, 2, &order);
  const Instant begin = Client::now();
  first.thread.join();
  TEST_ASSERT_TRUE(Client::now() - begin < 3s);
  TEST_ASSERT_EQUAL(Status::ok, first.outcome);
  TEST_ASSERT_EQUAL(1, first.came);
  TEST_ASSERT_EQUAL(Status::ok, first.lock.release());
  second.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, second.outcome);
}

// As if it had stood still for longer than it may.
TEST_ON_SERVER(test_a_waiter_that_was_not_heard_of_should_be_passed_over_and_come_later) {
  Party holder(server);
  Party late(server);
  Party next(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  late.wait_in_queue(server, 1);
  next.wait_in_queue(server, 2);
  const std::string beat = "holdfast_beat:{k}:" + server.command("ZRANGE holdfast_queue:{k} 0 0");
  // It has just been heard of: its next beat is nearly a second away.
  TEST_ASSERT_TRUE(comes([&] { return std::stol(server.command({"PTTL", beat})) > 2'900; }));
  TEST_ASSERT_EQUAL("1", server.command({"DEL", beat}));
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  next.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, next.outcome);
  TEST_ASSERT_FALSE(late.done.load());
  TEST_ASSERT_EQUAL(Status::ok, next.lock.release());
  late.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, late.outcome);
}

TEST_ON_SERVER(test_who_hears_no_message_should_find_out_by_its_next_beat) {
  Party holder(server);
  Party waiter(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  server.command("ACL SETUSER default resetchannels");
  waiter.wait_in_queue(server, 1);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  const Instant begin = Client::now();
  waiter.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, waiter.outcome);
  TEST_ASSERT_TRUE(Client::now() - begin < 2s);
  server.command("ACL SETUSER default allchannels");
}

// [S15] Whoever may publish can make a waiter ask, at most every two milliseconds, and nothing else.
TEST_ON_SERVER(test_forged_messages_should_grant_nothing_and_make_nobody_spin) {
  Party holder(server);
  Party waiter(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  waiter.wait_in_queue(server, 1);
  const std::string token = server.command("ZRANGE holdfast_queue:{k} 0 0");
  const std::string channel = "holdfast_fair:{" + token.substr(0, token.find(':')) + "}";
  TEST_ASSERT_TRUE(comes([&] { return server.command("PUBSUB NUMSUB " + channel) == channel + " 1"; }));
  RawConnection forger(server.socket_path());
  const Instant begin = Client::now();
  server.command("CONFIG RESETSTAT");
  for (int message = 0; message < 3000; ++message) (void)forger.command("PUBLISH " + channel + " " + token);
  const auto taken = std::chrono::duration_cast<std::chrono::milliseconds>(Client::now() - begin).count();
  const std::string stats = server.command("INFO commandstats");
  const std::size_t at = stats.find("cmdstat_zadd:calls=");
  TEST_ASSERT_TRUE(at != std::string::npos);
  TEST_ASSERT_TRUE(std::stoll(stats.substr(at + 19)) <= taken / 2 + 5);
  TEST_ASSERT_FALSE(waiter.done.load());
  TEST_ASSERT_EQUAL(text_of(holder.lock.token()) + " 1", server.command("HGETALL k"));
  TEST_ASSERT_EQUAL(token, server.command("ZRANGE holdfast_queue:{k} 0 -1"));
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  waiter.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, waiter.outcome);
}

TEST_ON_SERVER(test_forgotten_scripts_should_cost_nobody_its_place) {
  Party holder(server);
  Party waiter(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  waiter.wait_in_queue(server, 1);
  const std::string token = server.command("ZRANGE holdfast_queue:{k} 0 0");
  server.command("SCRIPT FLUSH");
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  waiter.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, waiter.outcome);
  TEST_ASSERT_EQUAL(token, text_of(waiter.lock.token()));
}

TEST_ON_SERVER(test_a_waiter_whose_connections_are_killed_should_still_come) {
  for (const char* const type : {"pubsub", "normal"}) {
    Party holder(server);
    Party waiter(server);
    TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
    waiter.wait_in_queue(server, 1);
    TEST_ASSERT_TRUE(comes([&] { return server.command("PUBSUB CHANNELS holdfast_fair:*") != ""; }));
    server.command(std::string("CLIENT KILL TYPE ") + type);
    breathe(5ms);
    TEST_ASSERT_EQUAL(Status::ok,
                      eventually([&] { return holder.lock.held() ? holder.lock.release() : Status::ok; }, Status::ok));
    waiter.thread.join();
    TEST_ASSERT_EQUAL(Status::ok, waiter.outcome);
    TEST_ASSERT_EQUAL(Status::ok, waiter.lock.release());
    TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k holdfast_queue:{k}") == "0"; }));
  }
}

TEST_ON_SERVER(test_all_who_leave_at_once_should_leave_nothing_behind) {
  Party holder(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  std::deque<Party> crowd;
  for (int index = 0; index < 20; ++index) crowd.emplace_back(server).wait_in_queue(server, index + 1);
  for (Party& one : crowd) one.client.cancel();
  for (Party& one : crowd) {
    one.thread.join();
    TEST_ASSERT_EQUAL(Status::cancelled, one.outcome);
  }
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS holdfast_queue:{k}") == "0"; }));
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_a_release_should_give_the_lock_away_with_full_memory) {
  Party holder(server);
  Party waiter(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  waiter.wait_in_queue(server, 1);
  const std::string token = server.command("ZRANGE holdfast_queue:{k} 0 0");
  server.command("CONFIG SET maxmemory 1");
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  waiter.thread.join();
  server.command("CONFIG SET maxmemory 0");
  TEST_ASSERT_EQUAL(Status::ok, waiter.outcome);
  TEST_ASSERT_EQUAL(token, text_of(waiter.lock.token()));
}

TEST_ON_SERVER(test_what_is_no_lock_of_this_kind_should_be_waited_for_or_named) {
  Party waiter(server);
  server.command("SET k text");  // A Mutex, perhaps.
  TEST_ASSERT_EQUAL(Status::lock_busy, waiter.lock.try_acquire());
  waiter.wait_in_queue(server, 1);
  server.command("DEL k");
  waiter.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, waiter.outcome);
  TEST_ASSERT_EQUAL(Status::ok, waiter.lock.release());
  server.command("SET holdfast_queue:{k} text");
  TEST_ASSERT_EQUAL(Status::wrong_type, waiter.lock.try_acquire());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  server.command("DEL holdfast_queue:{k}");
  TEST_ASSERT_EQUAL(Status::ok, waiter.lock.try_acquire());
}

TEST_ON_SERVER(test_a_name_with_a_brace_should_have_its_queue_in_its_own_slot) {
  Party holder(server, "{tag}k");
  Party waiter(server, "{tag}k");
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  waiter.thread = std::thread([&] { waiter.outcome = waiter.lock.acquire(30s); });
  TEST_ASSERT_TRUE(comes([&] { return server.command("ZCARD holdfast_queue:{tag}k") == "1"; }));
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
  waiter.thread.join();
  TEST_ASSERT_EQUAL(Status::ok, waiter.outcome);
}

// Rule 5.
TEST_ON_SERVER(test_a_user_who_may_not_expire_keys_should_leave_none_behind) {
  Party holder(server);
  Party waiter(server);
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.try_acquire());
  server.command("ACL SETUSER default -pexpire");
  TEST_ASSERT_EQUAL(Status::no_permission, waiter.lock.acquire(30s));
  server.command("ACL SETUSER default +pexpire");
  TEST_ASSERT_EQUAL("0", server.command("EXISTS holdfast_queue:{k}"));
  TEST_ASSERT_EQUAL(Status::ok, holder.lock.release());
}
