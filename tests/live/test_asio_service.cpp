// SPDX-License-Identifier: MIT
//
// The Asio client at work: waiting, thousands of locks, servers that go away, and connections that never come.
#include "asio_fixture.hpp"

#include <netdb.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "counted_sends.hpp"

using namespace holdfast;

extern "C" {
// The host two.test has an address where nobody listens, and behind it the right one.
int __real_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**);
int __wrap_getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
  if (host == nullptr || std::strcmp(host, "two.test") != 0) return __real_getaddrinfo(host, port, hints, found);
  if (const int error = __real_getaddrinfo("127.0.0.2", port, hints, found); error != 0) return error;
  addrinfo** end = found;
  while (*end != nullptr) end = &(*end)->ai_next;
  return __real_getaddrinfo("127.0.0.1", port, hints, end);
}
}

static void setUp() {}
static void tearDown() {}

namespace {

constexpr int rounds_of_each = 5;

std::deque<AsyncMutex> mutexes(AsyncClient& client, std::size_t count, const LockTiming& timing) {
  std::deque<AsyncMutex> locks;
  for (std::size_t index = 0; index < count; ++index)
    locks.emplace_back(client, ByteView("lock:" + std::to_string(index)), timing);
  return locks;
}

template <class Locks>
std::size_t held_of(const Locks& locks) {
  std::size_t count = 0;
  for (const auto& lock : locks) count += lock.held() ? 1U : 0U;
  return count;
}

}  // namespace

// ---- Waiting -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_waiter_should_be_woken_by_the_release) {
  ClientConfig config = AsioWorld::patient_config(server.unix_url());
  config.max_poll = 1h;
  AsioWorld world(config);
  AsioWorld other(config);
  Sole<AsyncReentrantLock> lock(world.client, "k", {.lease = 60s});
  Sole<AsyncReentrantLock> waiting(other.client, "k", {.lease = 60s});
  for (int round = 0; round < 3; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
    Outcome outcome;
    waiting.async_acquire(wait_forever, outcome.handler());
    TEST_ASSERT_TRUE(other.runs_until([&] { return server.command("PUBSUB CHANNELS") != ""; }));
    other.run_for(50ms);
    TEST_ASSERT_EQUAL(0, outcome.calls);
    TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
    TEST_ASSERT_TRUE(other.runs_until([&] { return outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::ok, outcome.status);
    TEST_ASSERT_EQUAL(Status::ok, other.release(waiting));
  }
}

TEST_ON_SERVER(test_an_acquire_should_end_at_its_deadline) {
  AsioWorld world(server.unix_url());
  server.command("SET mutex somebody");
  server.command("HSET hash somebody 1");
  AsyncMutex mutex(world.client, "mutex", {.lease = 60s});
  Sole<AsyncReentrantLock> hash(world.client, "hash", {.lease = 60s});
  for (AsyncLock* const lock : {static_cast<AsyncLock*>(&mutex), static_cast<AsyncLock*>(&hash)}) {
    const Instant start = Client::now();
    TEST_ASSERT_EQUAL(Status::lock_busy, world.acquire(*lock, 150ms));
    TEST_ASSERT_TRUE(Client::now() - start >= at_least(150ms));
    TEST_ASSERT_EQUAL(Status::lock_busy, world.acquire(*lock));
  }
}

// [issue 10, 18] Whatever the server and the connection do: at the end of the wait, and of one request behind it.
TEST_ON_SERVER(test_an_acquire_should_end_by_its_wait_and_one_request_timeout) {
  constexpr Duration request_timeout = 1s;
  enum Trouble { silent, silent_to_a_waiter, reconnecting, never_connected, no_room, trouble_count };
  struct Case {
    Case(RedisServer& its, const std::string& name, asio::io_context& loop, const AsyncLimits& limits)
        : proxy(its.socket_path() + name, its.socket_path()), client(loop.get_executor(), limits) {}
    Proxy proxy;
    AsyncClient client;
    std::optional<AsyncMutex> mutex{};
    std::optional<Sole<AsyncReentrantLock>> pushed{};
    std::deque<AsyncMutex> others{};
    Instant start{};
    Duration taken{};
    Status status = Status::ok;
  };
  asio::io_context loop;
  std::deque<Case> cases;
  const Duration waits[] = {Duration::zero(), 600ms, 1500ms};
  server.command("HSET hash somebody 1");
  int left = 0;
  for (int trouble = 0; trouble < trouble_count; ++trouble)
    for (std::size_t wait = 0; wait < 3; ++wait) {
      const std::string name = std::string(".") + std::to_string(trouble) + std::to_string(wait);
      Case& it = cases.emplace_back(server, name, loop, AsyncLimits{.requests = 32});
      ClientConfig config = AsioWorld::patient_config(it.proxy.url());
      config.request_timeout = request_timeout;
      config.stall_timeout = trouble == reconnecting ? 100ms : Duration(20s);
      config.connect_timeout = 20s;
      if (trouble == never_connected) {
        it.proxy.hold(true);
        it.client.async_connect(config, [](std::error_code) {});
      } else {
        TEST_ASSERT_EQUAL(Status::ok, connect(loop, it.client, config));
      }
      it.mutex.emplace(it.client, "k", LockTiming{.lease = 60s});
      it.pushed.emplace(it.client, "hash", LockTiming{.lease = 60s});
      it.proxy.hold(true);
      if (trouble == reconnecting) {  // Its connection stalls, and the next one's handshake is never answered.
        it.mutex->async_try_acquire([](std::error_code) {});
        TEST_ASSERT_TRUE(runs_until(loop, [&] { return !it.client.connected(); }));
        it.mutex.emplace(it.client, "k", LockTiming{.lease = 60s});
      }
      if (trouble == no_room)
        for (int index = 0; index < 16; ++index) {
          it.others.emplace_back(it.client, ByteView(std::to_string(index)), LockTiming{.lease = 60s});
          it.others.back().async_acquire(wait_forever, [](std::error_code) {});
        }
      if (trouble == silent_to_a_waiter) it.proxy.hold(false);
      AsyncLock& lock = trouble == silent_to_a_waiter ? static_cast<AsyncLock&>(*it.pushed) : *it.mutex;
      it.start = Client::now();
      ++left;
      lock.async_acquire(waits[wait], [&it, &left](std::error_code error) {
        it.taken = Client::now() - it.start;
        it.status = to_status(error);
        --left;
      });
      if (trouble == silent_to_a_waiter && wait != 0) {
        run_for(loop, 100ms);
        it.proxy.hold(true);
      }
    }
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return left == 0; }));
  for (std::size_t index = 0; index < cases.size(); ++index) {
    TEST_MESSAGE("trouble " << index / 3 << ", wait " << index % 3 << ": "
                            << std::chrono::duration_cast<std::chrono::milliseconds>(cases[index].taken).count());
    TEST_ASSERT_TRUE(cases[index].status != Status::ok);
    TEST_ASSERT_TRUE(cases[index].taken >= at_least(waits[index % 3]));
    TEST_ASSERT_TRUE(cases[index].taken < waits[index % 3] + request_timeout + 400ms);  // A machine that is slow.
  }
}

TEST_ON_SERVER(test_waiters_beyond_the_table_should_poll) {
  AsioWorld world(server.unix_url(), {.waiters = 1});
  std::deque<Sole<AsyncReentrantLock>> locks;
  std::deque<Outcome> outcomes(4);
  for (int index = 0; index < 4; ++index) {
    const std::string key = "k" + std::to_string(index);
    server.command("HSET " + key + " somebody 1");
    locks.emplace_back(world.client, ByteView(key), LockTiming{.lease = 60s});
    locks.back().async_acquire(wait_forever, outcomes[static_cast<std::size_t>(index)].handler());
  }
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("PUBSUB CHANNELS") != ""; }));
  world.run_for(50ms);
  server.command("DEL k1 k2 k3");
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcomes[1].done() && outcomes[2].done() && outcomes[3].done(); }));
  TEST_ASSERT_EQUAL(0, outcomes[0].calls);
  for (int index = 1; index < 4; ++index)
    TEST_ASSERT_EQUAL(Status::ok, outcomes[static_cast<std::size_t>(index)].status);
}

TEST_ON_SERVER(test_a_refused_subscription_should_be_polled) {
  server.command("ACL SETUSER default -subscribe");
  AsioWorld world(server.unix_url());
  server.command("HSET k somebody 1");
  Sole<AsyncReentrantLock> lock(world.client, "k", {.lease = 60s});
  Outcome outcome;
  lock.async_acquire(wait_forever, outcome.handler());
  world.run_for(100ms);
  TEST_ASSERT_EQUAL(0, outcome.calls);
  server.command("DEL k");
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
}

// What was published while the subscription was away went unheard.
TEST_ON_SERVER(test_a_lost_subscription_should_come_back_and_wake) {
  ClientConfig config = AsioWorld::patient_config(server.unix_url());
  config.max_poll = 1h;
  AsioWorld world(config);
  server.command("HSET k somebody 1");
  Sole<AsyncReentrantLock> lock(world.client, "k", {.lease = 60s});
  Outcome outcome;
  lock.async_acquire(wait_forever, outcome.handler());
  const auto subscribed = [&] { return server.command("PUBSUB CHANNELS") != ""; };
  for (int round = 0; round < 3; ++round) {
    TEST_ASSERT_TRUE(world.runs_until(subscribed));
    server.command(round == 1 ? "CLIENT KILL TYPE normal SKIPME yes" : "CLIENT KILL TYPE pubsub");
    world.run_for(20ms);
  }
  TEST_ASSERT_TRUE(world.runs_until(subscribed));
  server.command("DEL k");  // Without a word.
  server.command("CLIENT KILL TYPE pubsub");
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
}

// No order is promised, but everybody comes to hold.
TEST_ON_SERVER(test_no_waiter_should_starve) {
  AsioWorld world(server.unix_url());
  struct Worker {
    std::optional<AsyncMutex> mutex{};
    std::optional<Sole<AsyncReentrantLock>> reentrant{};
    AsyncLock* lock = nullptr;
    std::unique_ptr<asio::steady_timer> work{};
    int rounds = 0;
    Status failed = Status::ok;
    void begin() {
      lock->async_acquire(wait_forever, [this](std::error_code error) {
        if (error) failed = to_status(error);
        work->expires_after(std::chrono::milliseconds(1));
        work->async_wait([this](std::error_code) {
          lock->async_release([this](std::error_code released) {
            if (released) failed = to_status(released);
            if (++rounds < rounds_of_each) begin();
          });
        });
      });
    }
  };
  std::deque<Worker> workers;
  for (int index = 0; index < 16; ++index) {
    Worker& worker = workers.emplace_back();
    if (index % 2 == 0)
      worker.lock = &worker.reentrant.emplace(world.client, "k", LockTiming{.lease = 60s});
    else
      worker.lock = &worker.mutex.emplace(world.client, "mutex", LockTiming{.lease = 60s});
    worker.work = std::make_unique<asio::steady_timer>(world.loop);
    worker.begin();
  }
  TEST_ASSERT_TRUE(world.runs_until([&] {
    for (const Worker& worker : workers)
      if (worker.rounds < rounds_of_each) return false;
    return true;
  }));
  for (const Worker& worker : workers) TEST_ASSERT_EQUAL(Status::ok, worker.failed);
}

// ---- Many locks --------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_requests_of_one_turn_should_leave_in_one_write) {
  constexpr std::size_t count = 50;
  AsioWorld world(server.unix_url(), {.requests = 2 * count});
  std::deque<AsyncMutex> locks = mutexes(world.client, count, {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks[0]));  // From here on the server knows the scripts.
  TEST_ASSERT_EQUAL(Status::ok, world.renew(locks[0]));
  TEST_ASSERT_EQUAL(Status::ok, world.release(locks[0]));
  std::size_t done = 0;
  const auto told = [&](std::error_code error) { done += error ? 1000U : 1U; };
  for (int operation = 0; operation < 3; ++operation) {
    done = 0;
    asio::post(world.loop, [&] {
      for (AsyncMutex& lock : locks) {
        if (operation == 0) lock.async_try_acquire(told);
        if (operation == 1) lock.async_renew(told);
        if (operation == 2) lock.async_release(told);
      }
    });
    const int sends = sends_of([&] { TEST_ASSERT_TRUE(world.runs_until([&] { return done >= count; })); });
    TEST_ASSERT_EQUAL(count, done);
    TEST_ASSERT_EQUAL(1, sends);
  }
  // Asked for by the handlers of one turn, too.
  std::size_t released = 0;
  for (AsyncMutex& lock : locks)
    lock.async_try_acquire([&](std::error_code error) {
      if (!error) lock.async_release([&](std::error_code failed) { released += failed ? 0U : 1U; });
    });
  const int sends = sends_of([&] { TEST_ASSERT_TRUE(world.runs_until([&] { return released == count; })); });
  TEST_ASSERT_TRUE(sends < 10);  // Replies may come in pieces.
}

TEST_ON_SERVER(test_thousands_of_locks_should_wait_for_room) {
  constexpr std::size_t count = 2000;
  AsioWorld world(server.unix_url(), {.operations = count, .requests = 64, .kept = 1});
  std::deque<AsyncMutex> locks = mutexes(world.client, count, {.lease = 60s});
  std::deque<Outcome> outcomes(count);
  const auto all = [&] {
    return std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& it) { return it.done(); });
  };
  for (const bool acquires : {true, false}) {
    for (Outcome& outcome : outcomes) outcome = {};
    for (std::size_t index = 0; index < count; ++index)
      if (acquires)
        locks[index].async_try_acquire(outcomes[index].handler());
      else
        locks[index].async_release(outcomes[index].handler());
    TEST_ASSERT_TRUE(world.runs_until(all));
    for (const Outcome& outcome : outcomes) TEST_ASSERT_EQUAL(Status::ok, outcome.status);
    TEST_ASSERT_EQUAL(acquires ? count : 0U, held_of(locks));
    TEST_ASSERT_EQUAL(std::to_string(acquires ? count : 0U), server.command("DBSIZE"));
  }
}

// ---- The server goes away ----------------------------------------------------------------------------------------

TEST_ON_SERVER(test_locks_should_live_through_restarts_under_load) {
  ClientConfig config = AsioWorld::patient_config(server.unix_url());
  config.request_timeout = 1s;
  AsioWorld world(config);
  struct Worker {
    explicit Worker(AsyncClient& client, int number)
        : lock(client, ByteView("k" + std::to_string(number % 4)), {.lease = 3s}) {}
    Sole<AsyncReentrantLock> lock;
    int granted = 0;
    bool stopping = false;
    bool ended = false;
    void begin() {
      if (stopping) {
        ended = true;
        return;
      }
      lock.async_acquire(10s, [this](std::error_code error) {
        granted += error ? 0 : 1;
        if (error) return begin();
        lock.async_release([this](std::error_code) { begin(); });
      });
    }
  };
  std::deque<Worker> workers;
  for (int number = 0; number < 12; ++number) workers.emplace_back(world.client, number).begin();
  const auto each = [&](auto condition) {
    return [&workers, condition] { return std::all_of(workers.begin(), workers.end(), condition); };
  };
  for (int restart = 0; restart < 3; ++restart) {
    for (Worker& worker : workers) worker.granted = 0;
    TEST_ASSERT_TRUE(world.runs_until(each([](const Worker& worker) { return worker.granted >= 3; })));
    server.stop();
    world.run_for(50ms);
    TEST_ASSERT_FALSE(world.client.connected());
    server.start();
  }
  for (Worker& worker : workers) {
    worker.granted = 0;
    worker.stopping = false;
  }
  TEST_ASSERT_TRUE(world.runs_until(each([](const Worker& worker) { return worker.granted >= 1; })));
  for (Worker& worker : workers) worker.stopping = true;
  TEST_ASSERT_TRUE(world.runs_until(each([](const Worker& worker) { return worker.ended; })));
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("DBSIZE") == "0"; }));
}

// What was held when the connection went is let go of on the next one.
TEST_ON_SERVER(test_locks_that_go_without_a_connection_should_leave_nothing) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  AsioWorld world(proxy.url());
  std::optional<AsyncMutex> gone(std::in_place, world.client, "gone", LockTiming{.lease = 60s});
  Sole<AsyncReentrantLock> posted(world.client, "posted", {.lease = 60s});
  AsyncMutex released(world.client, "released", {.lease = 60s});
  AsyncMutex late(world.client, "late", {.lease = 60s});
  AsyncLock* const all[] = {&*gone, &posted, &released};
  for (AsyncLock* const lock : all) TEST_ASSERT_EQUAL(Status::ok, world.acquire(*lock));
  cut_off(world, proxy, server);
  gone.reset();
  TEST_ASSERT_EQUAL(Status::ok, posted.post_release());
  Outcome outcome;
  released.async_release(outcome.handler());
  const Instant start = Client::now();
  TEST_ASSERT_TRUE(world.acquire(late, 100ms) != Status::ok);
  TEST_ASSERT_TRUE(Client::now() - start >= at_least(100ms));
  TEST_ASSERT_EQUAL("3", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL(0, outcome.calls);
  proxy.hold(false);
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done() && server.command("DBSIZE") == "0"; }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
}

// What waits goes on over the new connection, and what is held is kept.
TEST_ON_SERVER(test_locks_should_live_through_a_second_connect) {
  AsioWorld world(server.unix_url());
  server.command("HSET pushed somebody 1");
  server.command("SET polled somebody");
  Sole<AsyncReentrantLock> pushed(world.client, "pushed", {.lease = 60s});
  AsyncMutex polled(world.client, "polled", {.lease = 60s});
  AsyncMutex flying(world.client, "flying", {.lease = 60s});
  AsyncMutex kept(world.client, "kept", {.lease = 2s});
  TEST_ASSERT_EQUAL(Status::ok, kept.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(kept));
  Outcome outcomes[3];
  pushed.async_acquire(wait_forever, outcomes[0].handler());
  polled.async_acquire(wait_forever, outcomes[1].handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("PUBSUB CHANNELS") != ""; }));
  flying.async_acquire(patience, outcomes[2].handler());
  const std::uint64_t calls = world.client.renewal_calls();
  TEST_ASSERT_EQUAL(Status::ok, connect(world.loop, world.client, AsioWorld::patient_config(server.tcp_url())));
  server.command("DEL pushed polled");
  TEST_ASSERT_TRUE(world.runs_until([&] {
    return outcomes[0].done() && outcomes[1].done() && outcomes[2].done() && world.client.renewal_calls() >= calls + 2;
  }));
  for (const Outcome& outcome : outcomes) TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_TRUE(kept.held());
  TEST_ASSERT_EQUAL(flying.token().bytes(), ByteView(server.command("GET flying")));
}

// [issue 10, 8] Half of the requests are releases that nobody waits for. One more says so, and is made up for.
TEST_ON_SERVER(test_a_posted_release_that_finds_no_place_should_say_so_and_come_later) {
  constexpr std::size_t places = 16;
  constexpr std::size_t count = 40;
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  for (const bool connected : {true, false}) {
    TEST_MESSAGE("connected " << connected);
    AsioWorld world(AsioWorld::patient_config(proxy.url()), {.requests = 2 * places});
    std::deque<AsyncMutex> locks = mutexes(world.client, count, {.lease = 60s});
    for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
    if (connected)
      proxy.hold_replies_of(Proxy::all);
    else
      cut_off(world, proxy, server);
    for (std::size_t index = 0; index < count; ++index) {
      TEST_ASSERT_EQUAL(index < places ? Status::ok : Status::too_many_requests, locks[index].post_release());
      TEST_ASSERT_FALSE(locks[index].held());
      TEST_ASSERT_EQUAL(Status::not_held, locks[index].post_release());
    }
    // What is asked for of one that is still owed waits for that.
    Outcome outcome;
    locks.back().async_acquire(wait_forever, outcome.handler());
    world.run_for(20ms);
    TEST_ASSERT_EQUAL(0, outcome.calls);
    locks.pop_front();  // Its release was promised.
    proxy.hold(false);
    TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::ok, outcome.status);
    TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("DBSIZE") == "1"; }));
    TEST_ASSERT_EQUAL(locks.back().token().bytes(), ByteView(server.command("GET lock:39")));
    TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { world.client.async_close(handler); }));
    server.command("FLUSHALL");
  }
}

// A close waits for those as well.
TEST_ON_SERVER(test_async_close_should_wait_for_releases_that_have_no_place_yet) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  AsioWorld world(AsioWorld::patient_config(proxy.url()), {.requests = 32});
  std::deque<AsyncMutex> locks = mutexes(world.client, 60, {.lease = 60s});
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  proxy.hold_replies_of(Proxy::all);
  for (AsyncMutex& lock : locks) (void)lock.post_release();
  Outcome closed;
  world.client.async_close(closed.handler());
  world.run_for(20ms);
  proxy.hold(false);
  TEST_ASSERT_TRUE(world.runs_until([&] { return closed.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, closed.status);
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// [issue 10, 8] Replies that have arrived make room, also before their event has been dealt with.
TEST_ON_SERVER(test_what_has_arrived_should_be_read_before_a_release_is_refused) {
  constexpr std::size_t places = 16;
  constexpr std::size_t spares = 300;
  for (const bool in_handler : {false, true}) {
    TEST_MESSAGE("in a handler " << in_handler);
    Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
    AsioWorld world(AsioWorld::patient_config(proxy.url()), {.operations = spares, .requests = 2 * places});
    std::deque<AsyncMutex> locks = mutexes(world.client, places + spares, {.lease = 60s});
    for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
    AsyncMutex other(world.client, "other", {.lease = 60s});
    proxy.hold_replies_of(Proxy::all);
    Outcome outcome;
    Status status = Status::ok;
    std::size_t released = places;
    const auto release_all = [&] {
      for (std::size_t index = 0; index < places; ++index) TEST_ASSERT_EQUAL(Status::ok, locks[index].post_release());
      TEST_ASSERT_EQUAL(Status::too_many_requests,
                        locks[released++].post_release());  // To make room, the others leave.
      TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS lock:0 lock:15") == "0"; }));
      proxy.hold_replies_of(Proxy::none);
      // Nothing but these runs until one of them has found what the others have made room for.
      do {
        breathe(10ms);
        status = locks[released++].post_release();
      } while (status == Status::too_many_requests && released < locks.size());
    };
    if (in_handler) {
      proxy.hold_replies_of(Proxy::none);
      other.async_acquire(1s, [&, tell = outcome.handler()](std::error_code error) mutable {
        proxy.hold_replies_of(Proxy::all);
        release_all();
        tell(error);
      });
      TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
    } else {
      release_all();
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(other));
    }
    TEST_ASSERT_EQUAL(Status::ok, status);
    const std::string left = std::to_string(locks.size() - released + 1);
    TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("DBSIZE") == left; }));
    TEST_ASSERT_EQUAL(Status::ok, world.release(other));  // The connection is as good as before.
    TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { world.client.async_close(handler); }));
    server.command("FLUSHALL");
  }
}

TEST_ON_SERVER(test_async_close_should_wait_for_posted_releases) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  AsioWorld world(proxy.url(), {.requests = 64});
  std::deque<AsyncMutex> locks = mutexes(world.client, 20, {.lease = 60s});
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  AsyncMutex waiting(world.client, "lock:0");
  Outcome waited;
  waiting.async_acquire(wait_forever, waited.handler());
  world.run_for(5ms);
  proxy.hold_replies_of(Proxy::all);
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  Outcome closed;
  world.client.async_close(closed.handler());
  TEST_ASSERT_EQUAL(Status::already_held,
                    outcome_of(world.loop, [&](auto handler) { world.client.async_close(handler); }));
  world.run_for(50ms);
  TEST_ASSERT_EQUAL(0, closed.calls);
  TEST_ASSERT_EQUAL(Status::cancelled, waited.status);
  proxy.hold_replies_of(Proxy::none);
  TEST_ASSERT_TRUE(world.runs_until([&] { return closed.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, closed.status);
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_FALSE(world.client.connected());
  world.loop.restart();
  world.loop.run();  // It ends: there is no work.
  TEST_ASSERT_EQUAL(Status::ok, connect(world.loop, world.client, server.unix_url()));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks[0]));
}

TEST_ON_SERVER(test_async_close_should_not_wait_for_ever) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  ClientConfig config = AsioWorld::patient_config(proxy.url());
  AsioWorld world(config);
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  config.request_timeout = 100ms;
  TEST_ASSERT_EQUAL(Status::ok, connect(world.loop, world.client, config));
  proxy.hold(true);
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  TEST_ASSERT_EQUAL(Status::timed_out,
                    outcome_of(world.loop, [&](auto handler) { world.client.async_close(handler); }));
  TEST_ASSERT_FALSE(world.client.connected());
}

TEST_ON_SERVER(test_close_should_cancel_what_waits_and_send_what_is_left) {
  AsioWorld world(server.unix_url());
  server.command("SET busy somebody");
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  AsyncMutex waiting(world.client, "busy", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  Outcome waited;
  waiting.async_acquire(wait_forever, waited.handler());
  world.run_for(5ms);
  TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  world.client.close();
  TEST_ASSERT_FALSE(world.client.connected());
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k") == "0"; }));
  TEST_ASSERT_TRUE(world.runs_until([&] { return waited.done(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, waited.status);
  TEST_ASSERT_EQUAL(Status::not_connected, world.acquire(lock));
  TEST_ASSERT_EQUAL(Status::not_connected, world.acquire(lock, wait_forever));  // Nobody will connect.
  world.loop.restart();
  world.loop.run();
}

// As many as leave in one send: a server that answers a connection which is closed by then drops what it has not read. Who lets
// go of many at once waits for the answers.
constexpr std::size_t few = 4;

TEST_ON_SERVER(test_a_client_that_goes_should_let_go_of_all_it_holds) {
  constexpr std::size_t count = few;
  for (const std::string& url : {server.unix_url(), server.tcp_url()}) {
    std::optional<AsioWorld> world(std::in_place, url, AsyncLimits{.requests = 128});
    {
      std::deque<AsyncMutex> locks = mutexes(world->client, count, {.lease = 60s});
      const ByteView names[] = {"m1", "m2"};
      Sole<AsyncMultiLock> multi(world->client, names, {.lease = 60s});
      Sole<AsyncReentrantLock> twice(world->client, "twice", {.lease = 60s});
      for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world->acquire(lock));
      TEST_ASSERT_EQUAL(Status::ok, world->acquire(multi));
      TEST_ASSERT_EQUAL(Status::ok, world->acquire(twice));
      TEST_ASSERT_EQUAL(Status::ok, world->acquire(twice));
      TEST_ASSERT_EQUAL(std::to_string(count + 3), server.command("DBSIZE"));
    }
    TEST_ASSERT_EQUAL(1, sends_of([&] { world.reset(); }));
    TEST_ASSERT_TRUE(comes([&] { return server.command("DBSIZE") == "0"; }));
  }
}

TEST_ON_SERVER(test_a_client_that_goes_before_its_locks_should_let_go_of_them) {
  asio::io_context loop;
  std::optional<AsyncClient> client(std::in_place, loop.get_executor(), AsyncLimits{.requests = 128});
  TEST_ASSERT_EQUAL(Status::ok, connect(loop, *client, AsioWorld::patient_config(server.unix_url())));
  std::deque<AsyncMutex> locks = mutexes(*client, few, {.lease = 60s});
  Sole<AsyncReentrantLock> twice(*client, "twice", {.lease = 60s});
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, acquire(loop, lock));
  TEST_ASSERT_EQUAL(Status::ok, acquire(loop, twice));
  TEST_ASSERT_EQUAL(Status::ok, acquire(loop, twice));
  TEST_ASSERT_EQUAL(1, sends_of([&] { client.reset(); }));
  TEST_ASSERT_EQUAL(0U, held_of(locks));
  TEST_ASSERT_FALSE(twice.held());
  TEST_ASSERT_TRUE(comes([&] { return server.command("DBSIZE") == "0"; }));
  loop.restart();
  loop.run();
}

// ---- Connecting --------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_the_outcome_of_a_connect_should_say_what_is_wrong) {
  asio::io_context loop;
  AsyncClient client(loop.get_executor());
  const auto outcome = [&](const std::string& url) {
    ClientConfig config;
    if (parse_url(ByteView(url), config) != Status::ok) return connect(loop, client, url);
    config.connect_timeout = 5s;
    return connect(loop, client, config);
  };
  TEST_ASSERT_EQUAL(Status::invalid_argument, outcome("http://127.0.0.1"));
  TEST_ASSERT_TRUE(client.problem().found());
  TEST_ASSERT_EQUAL(Status::connect_failed, outcome("unix://" + server.socket_path() + ".nobody"));
  TEST_ASSERT_EQUAL(Status::connect_failed, client.failure());
  TEST_ASSERT_EQUAL(ENOENT, client.system_error_number());
  TEST_ASSERT_EQUAL(Status::connect_failed, outcome("redis://127.0.0.1:1"));
  TEST_ASSERT_EQUAL(ECONNREFUSED, client.system_error_number());
  TEST_ASSERT_EQUAL(Status::name_not_resolved, outcome("redis://nobody.invalid:6379"));
  server.command("CONFIG SET requirepass secret");
  TEST_ASSERT_EQUAL(Status::auth_required, outcome(server.tcp_url()));
  TEST_ASSERT_EQUAL(Status::auth_failed, outcome("redis://:wrong@127.0.0.1:" + std::to_string(server.port())));
  TEST_ASSERT_TRUE(client.error_text().size() != 0);
  TEST_ASSERT_EQUAL(Status::auth_failed, client.failure());
  TEST_ASSERT_EQUAL(Status::ok, outcome("redis://:secret@127.0.0.1:" + std::to_string(server.port())));
  TEST_ASSERT_EQUAL(Status::ok, client.failure());
  ClientConfig config;
  config.connect_timeout = Duration::zero();
  TEST_ASSERT_EQUAL(Status::invalid_argument, connect(loop, client, config));
  TEST_ASSERT_EQUAL(std::string("connect_timeout"), std::string(client.problem().field));
}

// There is nothing to wait for any more.
TEST_ON_SERVER(test_a_bad_configuration_should_end_the_waits_for_a_connection) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  proxy.hold(true);
  asio::io_context loop;
  AsyncClient client(loop.get_executor());
  ClientConfig config = AsioWorld::patient_config(proxy.url());
  Outcome connected;
  client.async_connect(config, connected.handler());
  AsyncMutex lock(client, "k");
  Outcome outcome;
  lock.async_acquire(wait_forever, outcome.handler());
  run_for(loop, 10ms);
  TEST_ASSERT_EQUAL(Status::already_held, connect(loop, client, config));
  client.cancel();
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return connected.done() && outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
  outcome = {};
  lock.async_acquire(wait_forever, outcome.handler());
  run_for(loop, 10ms);
  TEST_ASSERT_EQUAL(0, outcome.calls);
  config.connect_timeout = Duration::zero();
  TEST_ASSERT_EQUAL(Status::invalid_argument, connect(loop, client, config));
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::not_connected, outcome.status);
}

// A name may stand for several addresses, of which the first is not always the one that listens.
TEST_ON_SERVER(test_a_host_name_should_be_resolved) {
  asio::io_context loop;
  AsyncClient client(loop.get_executor());
  ClientConfig config = AsioWorld::patient_config("redis://localhost:" + std::to_string(server.port()));
  TEST_ASSERT_EQUAL(Status::ok, connect(loop, client, config));
  AsyncMutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, acquire(loop, lock));
  for (int round = 0; round < 2; ++round) {
    TEST_MESSAGE("round " << round);
    config = AsioWorld::patient_config("redis://two.test:" + std::to_string(server.port()));
    TEST_ASSERT_EQUAL(Status::ok, connect(loop, client, config));
    server.command("CLIENT KILL TYPE normal SKIPME yes");
    TEST_ASSERT_TRUE(runs_until(loop, [&] { return !client.connected(); }));
    TEST_ASSERT_EQUAL(Status::ok, renew(loop, lock));  // It waits for the next connection.
  }
  server.stop();
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return !client.connected(); }));
  TEST_ASSERT_EQUAL(Status::connect_failed, connect(loop, client, config));
}

TEST_ON_SERVER(test_a_black_hole_should_end_by_the_connect_timeout) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  proxy.hold(true);  // The handshake is swallowed.
  // A listener that never accepts, and whose queue is full.
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  TEST_ASSERT_EQUAL(0, ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address));
  TEST_ASSERT_EQUAL(0, ::listen(listener, 0));
  TEST_ASSERT_EQUAL(0, ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size));
  std::vector<int> queued;
  for (int number = 0; number < 4; ++number) {
    queued.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)::connect(queued.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  for (const std::string& url : {proxy.url(), "redis://127.0.0.1:" + std::to_string(ntohs(address.sin_port))}) {
    TEST_MESSAGE("url " << url);
    asio::io_context loop;
    AsyncClient client(loop.get_executor());
    ClientConfig config = config_for(url);
    config.connect_timeout = 200ms;
    const Instant start = Client::now();
    const Status status = connect(loop, client, config);
    TEST_ASSERT_TRUE(status == Status::connect_failed || status == Status::timed_out);
    TEST_ASSERT_TRUE(Client::now() - start >= 200ms);
    AsyncMutex lock(client, "k");
    TEST_ASSERT_TRUE(acquire(loop, lock, 100ms) != Status::ok);
  }
  for (const int descriptor : queued) ::close(descriptor);
  ::close(listener);
}

// A loop that tries in vain goes on trying, as its locks do.
TEST_ON_SERVER(test_a_server_that_comes_late_should_be_found) {
  server.stop();
  asio::io_context loop;
  AsyncClient client(loop.get_executor());
  TEST_ASSERT_EQUAL(Status::connect_failed, connect(loop, client, AsioWorld::patient_config(server.unix_url())));
  AsyncMutex lock(client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::connect_failed, acquire(loop, lock));
  Outcome outcome;
  lock.async_acquire(wait_forever, outcome.handler());
  run_for(loop, 50ms);
  TEST_ASSERT_EQUAL(0, outcome.calls);
  server.start();
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
}

TEST_ON_SERVER(test_an_acquire_before_any_connect_should_say_not_connected) {
  asio::io_context loop;
  AsyncClient client(loop.get_executor());
  AsyncMutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::not_connected, acquire(loop, lock));
  TEST_ASSERT_EQUAL(Status::not_connected, acquire(loop, lock, 20ms));
  TEST_ASSERT_EQUAL(Status::not_connected, release(loop, lock));
  TEST_ASSERT_EQUAL(Status::not_connected, renew(loop, lock));
}
