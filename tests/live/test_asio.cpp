// SPDX-License-Identifier: MIT
//
// The Asio client as a loop's programmer meets it: completion tokens, executors, allocators, and what an
// initiating function must not do.
#include "asio_fixture.hpp"
#include "name_buffer.hpp"

#include <algorithm>
#include <asio/bind_allocator.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/redirect_error.hpp>
#include <asio/strand.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <deque>
#include <future>
#include <iterator>
#include <memory>
#include <new>
#include <optional>

#if __has_include(<asio/deferred.hpp>)
#include <asio/deferred.hpp>
using asio::deferred;
#else
#include <asio/experimental/deferred.hpp>
using asio::experimental::deferred;
#endif

using namespace holdfast;

namespace {

// Counts what is taken by it.
template <class Type>
struct CountingAllocator {
  using value_type = Type;
  explicit CountingAllocator(int& taken) : count(&taken) {}
  template <class Other>
  CountingAllocator(const CountingAllocator<Other>& other) : count(other.count) {}
  Type* allocate(std::size_t size) {
    ++*count;
    return static_cast<Type*>(::operator new(size * sizeof(Type)));
  }
  void deallocate(Type* place, std::size_t) { ::operator delete(place); }
  template <class Other>
  bool operator==(const CountingAllocator<Other>& other) const {
    return count == other.count;
  }
  int* count;
};

// Says when it goes.
struct Onlooker {
  explicit Onlooker(bool& flag) : gone(flag) {}
  ~Onlooker() { gone = true; }
  Onlooker(const Onlooker&) = delete;
  Onlooker& operator=(const Onlooker&) = delete;
  bool& gone;
};

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- Completion tokens -------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_callbacks_should_be_told_of_every_operation) {
  for (const std::string& url : {server.unix_url(), server.tcp_url()}) {
    AsioWorld world(url);
    TEST_ASSERT_TRUE(world.client.connected());
    AsyncMutex lock(world.client, "k", {.lease = 20s});
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(1U, lock.hold_count());
    TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command("GET k")));
    server.command("PEXPIRE k 1000");
    TEST_ASSERT_EQUAL(Status::ok, world.renew(lock));
    TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 10'000);
    Duration remaining = Duration::zero();
    TEST_ASSERT_EQUAL(
        Status::ok, outcome_of(world.loop, [&](auto handler) { lock.async_remaining_on_server(remaining, handler); }));
    TEST_ASSERT_TRUE(remaining > 10s);
    TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
    TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { world.client.async_close(handler); }));
    TEST_ASSERT_FALSE(world.client.connected());
  }
}

TEST_ON_SERVER(test_names_in_arrays_should_be_the_same_locks_whatever_follows_their_nul) {
  AsioWorld world(server.unix_url());
  AsioWorld other(server.tcp_url());
  NameBuffer url(server.tcp_url().c_str(), '9');
  TEST_ASSERT_EQUAL(Status::ok,
                    outcome_of(other.loop, [&](auto handler) { other.client.async_connect(url.name, handler); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(other.loop, [&](auto handler) {
                      other.client.async_connect("redis" + std::string(url.name).substr(5), handler);
                    }));
  NameBuffer ours("k", 'x');
  NameBuffer theirs("k", '\0');
  const char* const missing = nullptr;
  AsyncMutex mutex(world.client, ours.name, {.lease = 20s});
  AsyncMutex other_mutex(other.client, theirs.name, {.lease = 20s});
  Sole<AsyncReentrantLock> reentrant(world.client, ours.name, {.lease = 20s});
  Sole<AsyncReentrantLock> other_reentrant(other.client, &theirs.name[0], {.lease = 20s});
  Sole<AsyncFencedLock> fenced(world.client, ours.name, {.lease = 20s});
  Sole<AsyncFencedLock> other_fenced(other.client, std::string(theirs.name), {.lease = 20s});
  Sole<AsyncMultiLock> multi(world.client, {ours.name, "m"}, {.lease = 20s});
  Sole<AsyncMultiLock> other_multi(other.client, {std::string("m"), std::string("k")}, {.lease = 20s});
  AsyncMutex nameless(world.client, missing);
  TEST_ASSERT_EQUAL(Status::invalid_argument, world.acquire(nameless));
  AsyncLock* const mine[] = {&mutex, &reentrant, &fenced, &multi};
  AsyncLock* const others[] = {&other_mutex, &other_reentrant, &other_fenced, &other_multi};
  for (int index = 0; index < 4; ++index) {
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(*mine[index]));
    TEST_ASSERT_EQUAL("1", server.command("EXISTS k"));
    TEST_ASSERT_EQUAL(Status::lock_busy, other.acquire(*others[index]));
    TEST_ASSERT_EQUAL(Status::ok, world.release(*mine[index]));
  }
}

TEST_ON_SERVER(test_every_kind_should_exclude_its_peers) {
  AsioWorld world(server.unix_url());
  AsioWorld other(server.tcp_url());
  const ByteView names[] = {"m1", "m2"};
  Sole<AsyncReentrantLock> reentrant(world.client, "r", {.lease = 20s});
  Sole<AsyncFencedLock> fenced(world.client, "f", {.lease = 20s});
  Sole<AsyncMultiLock> multi(world.client, names, {.lease = 20s});
  Sole<AsyncReentrantLock> other_reentrant(other.client, "r", {.lease = 20s});
  Sole<AsyncFencedLock> other_fenced(other.client, "f", {.lease = 20s});
  Sole<AsyncMultiLock> other_multi(other.client, names, {.lease = 20s});
  AsyncLock* const mine[] = {&reentrant, &fenced, &multi};
  AsyncLock* const theirs[] = {&other_reentrant, &other_fenced, &other_multi};
  for (int index = 0; index < 3; ++index) {
    TEST_MESSAGE("kind " << index);
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(*mine[index]));
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(*mine[index]));  // Re-entered.
    TEST_ASSERT_EQUAL(2U, mine[index]->hold_count());
    TEST_ASSERT_EQUAL(Status::lock_busy, other.acquire(*theirs[index]));
    TEST_ASSERT_EQUAL(Status::ok, world.release(*mine[index]));
    TEST_ASSERT_EQUAL(Status::lock_busy, other.acquire(*theirs[index]));
    TEST_ASSERT_EQUAL(Status::ok, world.release(*mine[index]));
    TEST_ASSERT_EQUAL(Status::ok, other.acquire(*theirs[index]));
  }
  TEST_ASSERT_TRUE(other_fenced.fence() > fenced.fence());
}

TEST_ON_SERVER(test_futures_should_return_or_throw) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  AsyncMutex rival(world.client, "k", {.lease = 20s});
  const auto get = [&](std::future<void> future) {
    TEST_ASSERT_TRUE(world.runs_until([&] { return future.wait_for(0s) == std::future_status::ready; }));
    future.get();
  };
  get(lock.async_acquire(1s, asio::use_future));
  TEST_ASSERT_TRUE(lock.held());
  Status thrown = Status::ok;
  try {
    get(rival.async_try_acquire(asio::use_future));
  } catch (const std::system_error& error) {
    thrown = to_status(error.code());
  }
  TEST_ASSERT_EQUAL(Status::lock_busy, thrown);
  get(lock.async_release(asio::use_future));
}

TEST_ON_SERVER(test_a_deferred_operation_should_begin_when_it_is_called) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  auto operation = lock.async_acquire(1s, deferred);
  world.run_for(20ms);
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  Outcome outcome;
  std::move(operation)(outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_TRUE(lock.held());
}

#if defined(ASIO_HAS_CO_AWAIT)
TEST_ON_SERVER(test_coroutines_should_await_every_operation) {
  asio::io_context loop;
  std::string steps;
  std::exception_ptr failure;
  const std::string url = server.unix_url();
  asio::co_spawn(
      loop,
      [&]() -> asio::awaitable<void> {
        AsyncClient client(co_await asio::this_coro::executor);
        co_await client.async_connect(ByteView(url), asio::use_awaitable);
        AsyncMutex lock(client, "k", {.lease = 20s});
        AsyncMutex rival(client, "k", {.lease = 20s});
        co_await lock.async_acquire(1s, asio::use_awaitable);
        steps += lock.held() ? "held " : "not held ";
        std::error_code error;
        co_await rival.async_acquire(20ms, asio::redirect_error(asio::use_awaitable, error));
        steps += to_string(to_status(error));
        try {
          co_await rival.async_release(asio::use_awaitable);
        } catch (const std::system_error& thrown) {
          steps += std::string(" ") + to_string(to_status(thrown.code()));
        }
        co_await lock.async_renew(asio::use_awaitable);
        co_await lock.async_release(asio::use_awaitable);
        co_await client.async_close(asio::use_awaitable);
        steps += " closed";
      },
      [&](std::exception_ptr thrown) { failure = thrown; });
  loop.run();
  TEST_ASSERT_TRUE(failure == nullptr);
  TEST_ASSERT_EQUAL("held lock_busy not_held closed", steps);
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

TEST_ON_SERVER(test_coroutines_should_be_a_pool_of_workers_on_one_lock) {
  AsioWorld world(server.unix_url());
  int inside = 0;
  int rounds = 0;
  int ended = 0;
  for (int worker = 0; worker < 8; ++worker)
    asio::co_spawn(
        world.loop,
        [&]() -> asio::awaitable<void> {
          Sole<AsyncReentrantLock> lock(world.client, "k", {.lease = 20s});
          for (int round = 0; round < 5; ++round) {
            co_await lock.async_acquire(patience, asio::use_awaitable);
            TEST_ASSERT_EQUAL(1, ++inside);
            ++rounds;
            --inside;
            co_await lock.async_release(asio::use_awaitable);
          }
        },
        [&](std::exception_ptr thrown) {
          ++ended;
          if (thrown) std::rethrow_exception(thrown);
        });
  TEST_ASSERT_TRUE(world.runs_until([&] { return ended == 8; }));
  TEST_ASSERT_EQUAL(40, rounds);
}

// What needed the lock is ended by its loss.
TEST_ON_SERVER(test_a_coroutine_should_be_ended_by_the_lost_signal) {
  AsioWorld world(server.unix_url());
  asio::cancellation_signal lost;
  AsyncMutex lock(world.client, "k", {.lease = 500ms});
  lock.set_lost_signal(&lost);
  bool ended = false;
  bool gone = false;
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  asio::co_spawn(
      world.loop,
      [&]() -> asio::awaitable<void> {
        const Onlooker onlooker(gone);
        asio::steady_timer work(co_await asio::this_coro::executor, std::chrono::hours(1));
        co_await work.async_wait(asio::use_awaitable);
      },
      asio::bind_cancellation_slot(lost.slot(), [&](std::exception_ptr thrown) { ended = thrown != nullptr; }));
  TEST_ASSERT_TRUE(world.runs_until([&] { return ended; }));
  TEST_ASSERT_TRUE(gone);
  TEST_ASSERT_FALSE(lock.held());
}
#endif

// ---- Executors and allocators ------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_handler_should_be_called_on_its_own_executor) {
  AsioWorld world(server.unix_url());
  asio::io_context other;
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  Outcome outcome;
  lock.async_acquire(1s, asio::bind_executor(other.get_executor(), outcome.handler()));
  TEST_ASSERT_TRUE(world.runs_until([&] { return lock.held(); }));
  world.run_for(20ms);
  TEST_ASSERT_EQUAL(0, outcome.calls);
  TEST_ASSERT_EQUAL(1U, other.run());  // It has work until then, and none behind.
  TEST_ASSERT_EQUAL(1, outcome.calls);
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
}

// Also while nothing has come of the operation yet.
TEST_ON_SERVER(test_the_executor_of_a_handler_should_have_work_until_it_is_called) {
  AsioWorld world(server.unix_url());
  asio::io_context other;
  server.command("SET k somebody");
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  Outcome outcome;
  lock.async_acquire(wait_forever, asio::bind_executor(other.get_executor(), outcome.handler()));
  TEST_ASSERT_EQUAL(0U, other.run_for(std::chrono::milliseconds(20)));
  TEST_ASSERT_FALSE(other.stopped());
  lock.cancel();
  TEST_ASSERT_TRUE(world.runs_until([&] { return other.poll() != 0; }));
  TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
}

TEST_ON_SERVER(test_a_handler_should_be_called_on_its_strand) {
  AsioWorld world(server.unix_url());
  const auto strand = asio::make_strand(world.loop);
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  int on_strand = 0;
  bool called = false;
  lock.async_acquire(1s, asio::bind_executor(strand, [&](std::error_code error) {
                       called = !error;
                       on_strand = strand.running_in_this_thread() ? 1 : -1;
                     }));
  TEST_ASSERT_EQUAL(0, on_strand);
  TEST_ASSERT_TRUE(world.runs_until([&] { return on_strand != 0; }));
  TEST_ASSERT_EQUAL(1, on_strand);
  TEST_ASSERT_TRUE(called);
}

TEST_ON_SERVER(test_a_client_should_live_on_a_strand) {
  asio::io_context loop;
  const auto strand = asio::make_strand(loop);
  AsyncClient client(strand);
  TEST_ASSERT_EQUAL(Status::ok, connect(loop, client, AsioWorld::patient_config(server.unix_url())));
  AsyncMutex lock(client, "k", {.lease = 20s});
  bool on_strand = false;
  Outcome outcome;
  lock.async_acquire(1s, [&, tell = outcome.handler()](std::error_code error) mutable {
    on_strand = strand.running_in_this_thread();
    tell(error);
  });
  TEST_ASSERT_EQUAL(0, outcome.calls);
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_TRUE(on_strand);
  TEST_ASSERT_EQUAL(Status::ok, release(loop, lock));
  // What comes of no event but a posted turn, too.
  outcome = {};
  lock.async_release([&, tell = outcome.handler()](std::error_code error) mutable {
    on_strand = strand.running_in_this_thread();
    tell(error);
  });
  on_strand = false;
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::not_held, outcome.status);
  TEST_ASSERT_TRUE(on_strand);
}

TEST_ON_SERVER(test_the_associated_allocator_should_be_used_for_another_executor) {
  AsioWorld world(server.unix_url());
  asio::io_context other;
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  int taken = 0;
  Outcome outcome;
  lock.async_acquire(1s, asio::bind_allocator(CountingAllocator<void>(taken),
                                              asio::bind_executor(other.get_executor(), outcome.handler())));
  TEST_ASSERT_EQUAL(0, taken);
  TEST_ASSERT_TRUE(world.runs_until([&] { return other.poll() != 0; }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_EQUAL(1, taken);
}

TEST_ON_SERVER(test_a_handler_should_be_moved_and_never_copied) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  Outcome outcome;
  lock.async_acquire(1s, [tell = outcome.handler(), only = std::make_unique<int>(7)](std::error_code error) mutable {
    if (*only == 7) tell(error);
  });
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
}

// ---- Initiation --------------------------------------------------------------------------------------------------

// outcome_of() looks for a handler that is called too early.
TEST_ON_SERVER(test_an_immediate_error_should_come_behind_the_initiating_function) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  AsyncMutex nameless(world.client, "", {.lease = 20s});
  AsyncMutex brief(world.client, "k", {.lease = 1ms});
  const auto refused = [&](auto start) { return outcome_of(world.loop, start); };
  TEST_ASSERT_EQUAL(Status::not_held, world.release(lock));
  TEST_ASSERT_EQUAL(Status::not_held, world.renew(lock));
  TEST_ASSERT_EQUAL(Status::not_held, refused([&](auto handler) { lock.async_wait_lost(handler); }));
  TEST_ASSERT_EQUAL(Status::not_held, lock.post_release());
  TEST_ASSERT_EQUAL(Status::invalid_argument, world.acquire(lock, -1ns));
  TEST_ASSERT_EQUAL(Status::invalid_argument, world.acquire(nameless));
  TEST_ASSERT_EQUAL(Status::invalid_argument, world.acquire(brief));
  TEST_ASSERT_EQUAL(Status::invalid_argument, world.release(nameless));
  TEST_ASSERT_EQUAL(Status::invalid_argument, refused([&](auto handler) { nameless.async_wait_lost(handler); }));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  TEST_ASSERT_EQUAL(Status::already_held, world.acquire(lock, 1s));
  TEST_ASSERT_EQUAL(Status::invalid_argument, refused([&](auto handler) { lock.async_renew(0s, handler); }));
  TEST_ASSERT_EQUAL(Status::invalid_argument, refused([&](auto handler) { lock.async_renew(-5s, handler); }));
  TEST_ASSERT_EQUAL(Status::ok, refused([&](auto handler) { lock.async_renew(5s, handler); }));
  TEST_ASSERT_EQUAL(Status::invalid_argument,
                    refused([&](auto handler) { world.client.async_connect(ByteView("redis://:x@"), handler); }));
  TEST_ASSERT_TRUE(lock.held());
}

TEST_ON_SERVER(test_a_second_operation_of_a_lock_should_be_refused) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  Outcome first;
  lock.async_acquire(1s, first.handler());
  for (int round = 0; round < 3; ++round) TEST_ASSERT_EQUAL(Status::too_many_requests, lock.post_release());
  Outcome outcomes[4];
  lock.async_acquire(1s, outcomes[0].handler());
  lock.async_release(outcomes[1].handler());
  lock.async_renew(outcomes[2].handler());
  Duration remaining{};
  lock.async_remaining_on_server(remaining, outcomes[3].handler());
  for (const Outcome& outcome : outcomes) TEST_ASSERT_EQUAL(0, outcome.calls);
  TEST_ASSERT_TRUE(world.runs_until([&] { return first.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, first.status);
  for (const Outcome& outcome : outcomes) {
    TEST_ASSERT_EQUAL(1, outcome.calls);
    TEST_ASSERT_EQUAL(Status::too_many_requests, outcome.status);
  }
}

// [issue 10, 17] Whoever asks for more hears of it, and what waits goes on.
TEST_ON_SERVER(test_an_operation_that_finds_no_slot_should_be_refused) {
  AsioWorld world(server.unix_url(), {.operations = 2});
  server.command("SET k somebody");
  AsyncMutex locks[3] = {{world.client, "k"}, {world.client, "k"}, {world.client, "k"}};
  Outcome outcomes[2];
  for (int index = 0; index < 2; ++index) locks[index].async_acquire(wait_forever, outcomes[index].handler());
  Duration remaining{};
  asio::io_context other;
  const auto refused = [&](auto start) { return outcome_of(world.loop, start); };
  for (int round = 0; round < 3; ++round) {
    TEST_ASSERT_EQUAL(Status::too_many_requests, world.acquire(locks[2], 1s));
    TEST_ASSERT_EQUAL(Status::too_many_requests, world.renew(locks[2]));
    TEST_ASSERT_EQUAL(Status::too_many_requests, world.release(locks[2]));
    TEST_ASSERT_EQUAL(Status::too_many_requests, refused([&](auto handler) { locks[2].async_wait_lost(handler); }));
    TEST_ASSERT_EQUAL(Status::too_many_requests,
                      refused([&](auto handler) { locks[2].async_remaining_on_server(remaining, handler); }));
    TEST_ASSERT_EQUAL(Status::too_many_requests,
                      refused([&](auto handler) { world.client.async_connect(world.client.config(), handler); }));
    TEST_ASSERT_EQUAL(Status::too_many_requests, refused([&](auto handler) { world.client.async_close(handler); }));
    // On its own executor, as any other.
    Outcome elsewhere;
    locks[2].async_try_acquire(asio::bind_executor(other.get_executor(), elsewhere.handler()));
    world.run_for(5ms);
    TEST_ASSERT_EQUAL(0, elsewhere.calls);
    other.restart();
    TEST_ASSERT_EQUAL(1U, other.run());
    TEST_ASSERT_EQUAL(Status::too_many_requests, elsewhere.status);
  }
  for (const Outcome& outcome : outcomes) TEST_ASSERT_EQUAL(0, outcome.calls);
  TEST_ASSERT_TRUE(world.client.connected());
  locks[0].cancel();  // Which makes room.
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcomes[0].done(); }));
  Outcome outcome;
  locks[2].async_acquire(wait_forever, outcome.handler());
  server.command("DEL k");
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcomes[1].done() || outcome.done(); }));
}

// The answer to its release comes behind its end. What stands in its place by then is not it.
TEST_ON_SERVER(test_the_answer_to_a_lock_that_is_gone_should_be_nobodys) {
  AsioWorld world(server.unix_url());
  alignas(AsyncMutex) unsigned char place[sizeof(AsyncMutex)];
  for (int round = 0; round < 3; ++round) {
    auto* const lock = new (place) AsyncMutex(world.client, "k", {.lease = 20s});
    TEST_ASSERT_EQUAL(Status::ok, acquire(world.loop, *lock));
    lock->~AsyncMutex();
    std::fill(std::begin(place), std::end(place), static_cast<unsigned char>(0xAB));
    TEST_ASSERT_TRUE(world.runs_until([&] { return world.client.compensations_pending() == 0; }));
    TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("EXISTS k") == "0"; }));
    world.run_for(20ms);
    for (const unsigned char byte : place) TEST_ASSERT_EQUAL(0xAB, static_cast<int>(byte));
  }
}

TEST_ON_SERVER(test_the_257th_operation_that_waits_should_be_refused) {
  AsioWorld world(server.unix_url());
  server.command("SET k somebody");
  constexpr std::size_t count = 300;
  constexpr std::size_t most = AsyncLimits().operations;
  std::deque<AsyncMutex> locks;
  std::deque<Outcome> outcomes(count);
  for (Outcome& outcome : outcomes) {
    locks.emplace_back(world.client, "k", LockTiming{.lease = 20s});
    locks.back().async_acquire(wait_forever, outcome.handler());
  }
  for (const Outcome& outcome : outcomes) TEST_ASSERT_EQUAL(0, outcome.calls);
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcomes.back().done(); }));
  for (std::size_t index = 0; index < count; ++index) {
    TEST_ASSERT_EQUAL(index < most ? 0 : 1, outcomes[index].calls);
    if (index >= most) TEST_ASSERT_EQUAL(Status::too_many_requests, outcomes[index].status);
  }
  world.client.cancel();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcomes[most - 1].done(); }));
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks.back()));
}

// A handler that is refused may own what it was refused by, and its loop may end before it is called.
TEST_ON_SERVER(test_a_refused_handler_should_be_free_to_own_its_client) {
  struct Session {
    Session(asio::io_context& loop, bool& gone) : onlooker(gone), client(loop.get_executor(), {.operations = 1}) {}
    Onlooker onlooker;
    AsyncClient client;
    AsyncMutex lock{client, "k"};
  };
  for (const bool runs : {true, false}) {
    bool gone = false;
    int told = 0;
    {
      asio::io_context loop;
      auto session = std::make_shared<Session>(loop, gone);
      TEST_ASSERT_EQUAL(Status::ok, connect(loop, session->client, AsioWorld::patient_config(server.unix_url())));
      server.command("SET k somebody");
      session->lock.async_acquire(wait_forever, [](std::error_code) {});
      Session& its = *session;
      its.client.async_close([&told, session](std::error_code error) {
        if (to_status(error) == Status::too_many_requests) ++told;
      });
      session.reset();
      TEST_ASSERT_FALSE(gone);
      if (runs) {
        TEST_ASSERT_TRUE(runs_until(loop, [&] { return told != 0; }));
        TEST_ASSERT_TRUE(gone);
      }
    }
    TEST_ASSERT_TRUE(gone);
    TEST_ASSERT_EQUAL(runs ? 1 : 0, told);
  }
}
