// SPDX-License-Identifier: MIT
//
// Waiting by push on real servers: who is woken, what a waiter costs, and what it survives.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "clients.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

// A holder of the lock, and a waiter on a thread of its own.
struct Pair {
  explicit Pair(const RedisServer& where, ClientConfig config = {}) : server(&where) {
    ClientConfig usual = config_for(where.tcp_url());
    usual.max_poll = config.max_poll;
    TEST_ASSERT_EQUAL(Status::ok, holding.connect(usual));
    TEST_ASSERT_EQUAL(Status::ok, waiting.connect(usual));
  }
  ~Pair() {
    if (thread.joinable()) thread.join();
  }

  template <class Lock>
  void wait_for(Lock& lock, Duration limit) {
    thread = std::thread([&lock, limit, this] {
      outcome = lock.acquire(limit);
      finished = Client::now();
      done.store(true);
    });
  }
  // Until the server says that somebody is subscribed, and a breath for the try behind it.
  void await_subscription(const std::string& channel = "redisson_lock__channel:{k}") const {
    for (int turns = 0; turns < 5000 && server->command("PUBSUB NUMSUB " + channel) != channel + " 1"; ++turns)
      ::poll(nullptr, 0, 1);
    TEST_ASSERT_EQUAL(channel + " 1", server->command("PUBSUB NUMSUB " + channel));
    ::poll(nullptr, 0, 10);
  }
  Status join() {
    thread.join();
    return outcome;
  }

  const RedisServer* server;
  Client holding;
  Client waiting;
  std::thread thread;
  Status outcome = Status::ok;
  Instant finished;
  std::atomic<bool> done = false;
};

long calls(const RedisServer& server, const std::string& command) {
  const std::string stats = server.command("INFO commandstats");
  const std::string name = "cmdstat_" + command + ":calls=";
  const std::size_t at = stats.find(name);
  return at == std::string::npos ? 0 : std::stol(stats.substr(at + name.size()));
}

// Nobody is subscribed: at once, or, by one who got the lock, within 200 ms.
void await_silence(const RedisServer& server) {
  for (int turns = 0; turns < 5000 && !server.command("PUBSUB CHANNELS").empty(); ++turns) ::poll(nullptr, 0, 1);
  TEST_ASSERT_EQUAL("", server.command("PUBSUB CHANNELS"));
}

}  // namespace

TEST_ON_SERVER(test_release_should_wake_the_waiter_at_once) {
  Pair pair(server);
  Owner holder(pair.holding);
  Owner waiter(pair.waiting);
  ReentrantLock ours(holder, "k", {.lease = 20s});
  ReentrantLock theirs(waiter, "k", {.lease = 20s});
  for (int turn = 0; turn < 3; ++turn) {
    TEST_ASSERT_EQUAL(Status::ok, ours.try_acquire());
    pair.wait_for(theirs, 20s);
    pair.await_subscription();
    const Instant released = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, ours.release());
    TEST_ASSERT_EQUAL(Status::ok, pair.join());
    TEST_ASSERT_TRUE(pair.finished - released < 5s);
    TEST_ASSERT_TRUE(theirs.held());
    TEST_ASSERT_EQUAL(Status::ok, theirs.release());
    await_silence(server);
  }
}

TEST_ON_SERVER(test_waiter_should_cost_the_server_no_command) {
  Pair pair(server);
  Owner holder(pair.holding);
  Owner waiter(pair.waiting);
  ReentrantLock ours(holder, "k", {.lease = 20s});
  ReentrantLock theirs(waiter, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, ours.try_acquire());
  pair.wait_for(theirs, 20s);
  pair.await_subscription();
  const long evaluated = calls(server, "evalsha") + calls(server, "eval");
  const long pinged = calls(server, "ping");
  ::poll(nullptr, 0, 1500);  // That nothing comes has no event.
  TEST_ASSERT_EQUAL(evaluated, calls(server, "evalsha") + calls(server, "eval"));
  TEST_ASSERT_EQUAL(pinged, calls(server, "ping"));
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::ok, pair.join());
}

TEST_ON_SERVER(test_announced_mutex_should_wake_its_waiter_and_a_plain_one_should_poll) {
  Pair pair(server);
  Mutex ours(pair.holding, "k", {.lease = 20s}, {.announce = true});
  Mutex theirs(pair.waiting, "k", {.lease = 20s}, {.announce = true});
  TEST_ASSERT_EQUAL(Status::ok, ours.try_acquire());
  pair.wait_for(theirs, 20s);
  pair.await_subscription();
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::ok, pair.join());
  TEST_ASSERT_EQUAL(Status::ok, theirs.release());
  Mutex plain(pair.waiting, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, ours.try_acquire());
  pair.wait_for(plain, 20s);
  TEST_ASSERT_EQUAL(Status::ok, ours.release());
  TEST_ASSERT_EQUAL(Status::ok, pair.join());
  await_silence(server);
}

TEST_ON_SERVER(test_waiter_should_try_when_the_hold_in_the_way_runs_out) {
  Pair pair(server);
  server.command("SET k somebody PX 300");  // Nobody will announce its end.
  Owner waiter(pair.waiting);
  ReentrantLock lock(waiter, "k", {.lease = 20s});
  Mutex mutex(pair.waiting, "k", {.lease = 20s}, {.announce = true});
  const Instant start = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(9s));
  TEST_ASSERT_TRUE(Client::now() - start < 5s);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  server.command("SET k somebody PX 300");
  TEST_ASSERT_EQUAL(Status::ok, mutex.acquire(9s));
  TEST_ASSERT_TRUE(Client::now() - start < 7s);
}

TEST_ON_SERVER(test_waiter_should_give_up_at_its_deadline_and_leave_nothing) {
  Pair pair(server);
  server.command("SET k somebody");
  Owner waiter(pair.waiting);
  ReentrantLock lock(waiter, "k", {.lease = 20s});
  const Instant start = Client::now();
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(200ms));
  TEST_ASSERT_TRUE(Client::now() - start >= at_least(200ms));
  await_silence(server);
  TEST_ASSERT_EQUAL("somebody", server.command("GET k"));
}

TEST_ON_SERVER(test_waiter_should_be_cancelled_from_another_thread) {
  Pair pair(server);
  server.command("SET k somebody");
  Owner waiter(pair.waiting);
  ReentrantLock lock(waiter, "k", {.lease = 20s});
  pair.wait_for(lock, wait_forever / 4);
  pair.await_subscription();
  pair.waiting.cancel();
  TEST_ASSERT_EQUAL(Status::cancelled, pair.join());
  TEST_ASSERT_FALSE(lock.held());
  await_silence(server);
}
