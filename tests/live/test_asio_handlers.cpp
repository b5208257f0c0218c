// SPDX-License-Identifier: MIT
//
// Handlers of the Asio client that destroy what they come from, start the next operation, or throw; and loops that end
// before their operations do.
#include "asio_fixture.hpp"

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/use_awaitable.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// Says when it goes.
struct Onlooker {
  explicit Onlooker(bool& flag) : gone(flag) {}
  ~Onlooker() { gone = true; }
  Onlooker(const Onlooker&) = delete;
  Onlooker& operator=(const Onlooker&) = delete;
  bool& gone;
};

}  // namespace

// ---- Handlers that destroy, start and throw ----------------------------------------------------------------------

TEST_ON_SERVER(test_a_handler_should_be_free_to_destroy_its_lock) {
  AsioWorld world(server.unix_url());
  std::unique_ptr<AsyncMutex> lock;  // On the heap, where a sanitizer sees what is used behind its end.
  Outcome outcome;
  for (int way = 0; way < 2; ++way) {
    lock = std::make_unique<AsyncMutex>(world.client, "k", LockTiming{.lease = 60s});
    outcome = {};
    const auto destroy = [&](std::error_code error) {
      outcome.handler()(error);
      lock.reset();
    };
    if (way == 0) lock->async_acquire(1s, destroy);
    if (way == 1) {
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(*lock));
      lock->async_release(destroy);
    }
    TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::ok, outcome.status);
    TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("EXISTS k") == "0"; }));
  }
}

TEST_ON_SERVER(test_a_handler_should_be_free_to_destroy_locks_that_wait) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  AsioWorld world(proxy.url());
  server.command("SET polled somebody");
  server.command("HSET pushed somebody 1");
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  std::optional<AsyncMutex> polled(std::in_place, world.client, "polled", LockTiming{.lease = 60s});
  std::optional<Sole<AsyncReentrantLock>> pushed(std::in_place, world.client, "pushed", LockTiming{.lease = 60s});
  std::optional<AsyncMutex> granted(std::in_place, world.client, "granted", LockTiming{.lease = 60s});
  std::optional<AsyncMutex> in_flight(std::in_place, world.client, "flying", LockTiming{.lease = 60s});
  std::optional<AsyncMutex> held(std::in_place, world.client, "held", LockTiming{.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(*held));
  Outcome outcomes[5];
  polled->async_acquire(wait_forever, outcomes[0].handler());
  pushed->async_acquire(wait_forever, outcomes[1].handler());
  held->async_wait_lost(outcomes[4].handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("PUBSUB CHANNELS") != ""; }));
  // Both are granted with one receive, and the handler of the first is called first.
  lock.async_acquire(1s, [&](std::error_code) {
    in_flight->async_acquire(1s, outcomes[3].handler());
    polled.reset();
    pushed.reset();
    granted.reset();
    in_flight.reset();
    held.reset();
  });
  granted->async_acquire(1s, outcomes[2].handler());
  TEST_ASSERT_TRUE(world.runs_until([&] {
    bool done = true;
    for (const Outcome& outcome : outcomes) done = done && outcome.done();
    return done;
  }));
  for (const int index : {0, 1, 3, 4}) {
    TEST_MESSAGE("lock " << index);
    TEST_ASSERT_EQUAL(Status::cancelled, outcomes[index].status);
  }
  TEST_ASSERT_EQUAL(Status::ok, outcomes[2].status);
  TEST_ASSERT_TRUE(world.runs_until(
      [&] { return server.command("EXISTS granted flying held") == "0" && server.command("PUBSUB CHANNELS") == ""; }));
  for (const Outcome& outcome : outcomes) TEST_ASSERT_EQUAL(1, outcome.calls);
}

TEST_ON_SERVER(test_a_handler_should_be_free_to_destroy_the_client) {
  for (const bool lock_first : {true, false}) {
    asio::io_context loop;
    std::optional<AsyncClient> client(std::in_place, loop.get_executor());
    TEST_ASSERT_EQUAL(Status::ok, connect(loop, *client, AsioWorld::patient_config(server.unix_url())));
    server.command("HSET busy somebody 1");
    std::optional<AsyncMutex> lock(std::in_place, *client, "k", LockTiming{.lease = 60s});
    Sole<AsyncReentrantLock> waiting(*client, "busy");
    AsyncMutex held(*client, "held", {.lease = 60s});
    TEST_ASSERT_EQUAL(Status::ok, acquire(loop, held));
    Outcome outcomes[3];
    waiting.async_acquire(wait_forever, outcomes[0].handler());
    // It waits by push: a server drops what it has not read of a client that it cannot answer.
    TEST_ASSERT_TRUE(runs_until(loop, [&] { return server.command("PUBSUB CHANNELS") != ""; }));
    run_for(loop, 20ms);
    held.async_wait_lost(outcomes[1].handler());
    lock->async_acquire(1s, [&](std::error_code error) {
      outcomes[2].handler()(error);
      if (lock_first) lock.reset();
      client.reset();
    });
    loop.restart();
    loop.run();  // It ends: nothing of the client is left.
    TEST_ASSERT_EQUAL(Status::cancelled, outcomes[0].status);
    TEST_ASSERT_EQUAL(1, outcomes[1].calls);
    TEST_ASSERT_EQUAL(Status::ok, outcomes[2].status);
    TEST_ASSERT_FALSE(held.held());
    TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k held") == "0"; }));
    // A lock without its client is good for nothing, and says so.
    TEST_ASSERT_TRUE(acquire(loop, waiting) != Status::ok);
    TEST_ASSERT_TRUE(acquire(loop, waiting, 5s) != Status::ok);
    TEST_ASSERT_TRUE(acquire(loop, waiting, wait_forever) != Status::ok);
    TEST_ASSERT_EQUAL(Status::not_held, release(loop, held));
  }
}

TEST_ON_SERVER(test_a_handler_should_start_the_next_operation) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  int rounds = 0;
  int failures = 0;
  std::function<void()> next = [&] {
    lock.async_acquire(1s, [&](std::error_code error) {
      failures += error ? 1 : 0;
      lock.async_release([&](std::error_code failed) {
        failures += failed ? 1 : 0;
        if (++rounds < 500) next();
      });
    });
  };
  next();
  TEST_ASSERT_TRUE(world.runs_until([&] { return rounds == 500; }));
  TEST_ASSERT_EQUAL(0, failures);
}

// No handler of an immediate error is called from inside a handler either.
TEST_ON_SERVER(test_an_immediate_error_in_a_handler_should_come_behind_it) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  AsyncMutex other(world.client, "other", {.lease = 60s});
  bool inside = false;
  bool nested = false;
  Outcome outcome;
  lock.async_acquire(1s, [&](std::error_code) {
    inside = true;
    other.async_release([&, tell = outcome.handler()](std::error_code error) mutable {
      nested = inside;
      tell(error);
    });
    inside = false;
  });
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_FALSE(nested);
  TEST_ASSERT_EQUAL(Status::not_held, outcome.status);
}

TEST_ON_SERVER(test_an_exception_of_a_handler_should_come_out_of_run) {
  AsioWorld world(server.unix_url());
  std::deque<AsyncMutex> locks;
  std::deque<Outcome> outcomes(6);
  for (int index = 0; index < 6; ++index) {
    locks.emplace_back(world.client, ByteView(std::to_string(index)), LockTiming{.lease = 60s});
    locks.back().async_acquire(5s, [&, index](std::error_code error) {
      outcomes[static_cast<std::size_t>(index)].handler()(error);
      if (index % 2 == 0) throw index;
    });
  }
  std::vector<int> thrown;
  const Instant until = Client::now() + patience;
  const auto all = [&] {
    return std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& it) { return it.done(); });
  };
  while (!all() && Client::now() < until) {
    try {
      world.loop.restart();
      world.loop.run_for(std::chrono::milliseconds(10));
    } catch (int number) {
      thrown.push_back(number);
    }
  }
  TEST_ASSERT_TRUE(all());
  TEST_ASSERT_TRUE(thrown == std::vector<int>({0, 2, 4}));
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.release(lock));  // Everything goes on.
  for (const Outcome& outcome : outcomes) TEST_ASSERT_EQUAL(1, outcome.calls);
}

// ---- The end of the loop -----------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_loop_that_ends_should_drop_what_waits) {
  bool gone[3] = {};
  Outcome outcomes[3];
  server.command("SET busy somebody");
  {
    AsioWorld world(server.unix_url());
    AsyncMutex lock(world.client, "k", {.lease = 60s});
    AsyncMutex waiting(world.client, "busy", {.lease = 60s});
    Sole<AsyncReentrantLock> pushed(world.client, "pushed", {.lease = 60s});
    AsyncLock* const locks[] = {&lock, &waiting, &pushed};
    server.command("HSET pushed somebody 1");
    for (std::size_t index = 0; index < 3; ++index)
      locks[index]->async_acquire(wait_forever, [&, index, onlooker = std::make_unique<Onlooker>(gone[index])](
                                                    std::error_code error) { outcomes[index].handler()(error); });
    world.loop.poll();
  }
  for (std::size_t index = 0; index < 3; ++index) {
    TEST_ASSERT_TRUE(gone[index]);
    TEST_ASSERT_TRUE(outcomes[index].calls <= 1);
  }
}

namespace {

struct Owned {
  Owned(asio::io_context& loop, const std::string& key, bool& gone)
      : onlooker(gone), client(loop.get_executor()), lock(client, ByteView(key), {.lease = 60s}) {}
  Onlooker onlooker;
  AsyncClient client;
  AsyncMutex lock;
};

}  // namespace

// As programs are written: the handler owns what it waits for, and the loop owns the handler.
TEST_ON_SERVER(test_a_loop_that_ends_should_destroy_handlers_that_own_their_client) {
  for (const bool connected : {true, false}) {
    bool gone = false;
    server.command("SET busy somebody");
    {
      asio::io_context loop;
      auto session = std::make_shared<Owned>(loop, "busy", gone);
      if (connected) TEST_ASSERT_EQUAL(Status::ok, connect(loop, session->client, server.unix_url()));
      AsyncMutex& lock = session->lock;
      AsyncClient& client = session->client;
      if (connected)
        lock.async_acquire(wait_forever, [session](std::error_code) {});
      else
        client.async_connect(ByteView(server.unix_url()), [session](std::error_code) {});
      session.reset();
      if (connected) run_for(loop, 10ms);
      TEST_ASSERT_FALSE(gone);
    }
    TEST_ASSERT_TRUE(gone);
  }
}

// A name is looked up by a thread of Asio's.
TEST_ON_SERVER(test_a_loop_that_ends_should_drop_a_name_that_is_looked_up) {
  for (int round = 0; round < 4; ++round) {
    bool gone = false;
    {
      asio::io_context loop;
      auto session = std::make_shared<Owned>(loop, "k", gone);
      session->client.async_connect(ByteView("redis://nobody.invalid"), [session](std::error_code) {});
      if (round % 2 == 0) session->client.close();
      session.reset();
      if (round < 2) loop.poll();
    }
    TEST_ASSERT_TRUE(gone);
  }
}

#if defined(ASIO_HAS_CO_AWAIT)
TEST_ON_SERVER(test_a_loop_that_ends_should_destroy_coroutines_that_wait) {
  bool gone = false;
  server.command("SET busy somebody");
  {
    asio::io_context loop;
    const std::string url = server.unix_url();
    asio::co_spawn(
        loop,
        [&]() -> asio::awaitable<void> {
          Owned session(loop, "busy", gone);
          co_await session.client.async_connect(ByteView(url), asio::use_awaitable);
          co_await session.lock.async_acquire(wait_forever, asio::use_awaitable);
        },
        asio::detached);
    run_for(loop, 20ms);
    TEST_ASSERT_FALSE(gone);
  }
  TEST_ASSERT_TRUE(gone);
}
#endif
