// SPDX-License-Identifier: MIT
//
// The Asio client in a forked child: nothing there is the child's, every operation says so, and the parent goes on as if there
// had been no fork.
#include "asio_fixture.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/strand.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <future>
#include <optional>

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// What the child says by its exit code, within the patience of a test.
template <class Child>
void in_child(Child&& child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    ::_exit(child() ? 0 : 1);
  }
  int status = -1;
  TEST_ASSERT_EQUAL(pid, ::waitpid(pid, &status, 0));
  TEST_ASSERT_EQUAL(0, status);
}

// Everything that can be asked of a lock and its client, by handlers on this executor.
template <class Executor>
bool all_say_forked(asio::io_context& loop, const Executor& executor, AsyncClient& client, AsyncLock& lock) {
  Outcome outcomes[10];
  Duration remaining{};
  int next = 0;
  const auto token = [&] { return asio::bind_executor(executor, outcomes[next++].handler()); };
  lock.async_acquire(1s, token());
  lock.async_try_acquire(token());
  lock.async_renew(token());
  lock.async_release(token());
  lock.async_wait_lost(token());
  lock.async_remaining_on_server(remaining, token());
  client.async_connect(client.config(), token());
  client.async_connect(ByteView("redis://127.0.0.1"), token());
  client.async_close(token());
  on_any_thread(lock).async_release(token());
  for (const Outcome& outcome : outcomes)
    if (outcome.calls != 0) return false;
  loop.restart();
  loop.run();  // Each of them is work, and there is no other.
  for (const Outcome& outcome : outcomes)
    if (outcome.calls != 1 || outcome.status != Status::forked) return false;
  return lock.post_release() == Status::forked && !lock.held() && !client.connected() &&
         client.failure() == Status::forked;
}

}  // namespace

TEST_ON_SERVER(test_a_forked_child_should_be_told_so) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  world.loop.notify_fork(asio::io_context::fork_prepare);
  const pid_t child = ::fork();
  if (child == 0) {
    world.loop.notify_fork(asio::io_context::fork_child);
    const bool held = lock.held() || lock.valid_until() != Instant();
    Outcome outcomes[4];
    lock.async_release(outcomes[0].handler());
    lock.async_wait_lost(outcomes[1].handler());
    lock.async_acquire(1s, outcomes[2].handler());
    world.client.async_connect(world.client.config(), outcomes[3].handler());
    bool good = !held && lock.post_release() == Status::forked;
    for (const Outcome& outcome : outcomes) good = good && outcome.calls == 0;
    world.loop.restart();
    for (int round = 0; round < 100; ++round) world.loop.poll_one();
    for (const Outcome& outcome : outcomes) good = good && outcome.calls == 1 && outcome.status == Status::forked;
    ::_exit(good ? 0 : 1);
  }
  world.loop.notify_fork(asio::io_context::fork_parent);
  int status = -1;
  TEST_ASSERT_EQUAL(child, ::waitpid(child, &status, 0));
  TEST_ASSERT_EQUAL(0, status);
  TEST_ASSERT_EQUAL(Status::ok, world.release(lock));  // The parent's connection is as it was.
}

// As one does that leaves by its destructors, without a word to Asio of the fork.
TEST_ON_SERVER(test_a_forked_child_should_be_free_to_destroy_its_copy) {
  AsioWorld world(server.unix_url());
  server.command("HSET busy somebody 1");
  std::optional<AsyncMutex> lock(std::in_place, world.client, "k", LockTiming{.lease = 60s});
  std::optional<Sole<AsyncReentrantLock>> waiting(std::in_place, world.client, "busy", LockTiming{.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock->keep({.on_lost = [](void*) noexcept {}}));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(*lock));
  Outcome outcome;
  waiting->async_acquire(wait_forever, outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("PUBSUB CHANNELS") != ""; }));
  world.run_for(20ms);
  const pid_t child = ::fork();
  if (child == 0) {
    lock.reset();
    waiting.reset();
    world.client.~AsyncClient();
    ::_exit(0);
  }
  int status = -1;
  TEST_ASSERT_EQUAL(child, ::waitpid(child, &status, 0));
  TEST_ASSERT_EQUAL(0, status);
  TEST_ASSERT_EQUAL("1", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, world.renew(*lock));
  server.command("DEL busy");
  server.command("PUBLISH redisson_lock__channel:{busy} 0");
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_EQUAL(Status::ok, world.release(*lock));
  TEST_ASSERT_TRUE(world.client.connected());
}

// [issue 10, 17] The parent's loop is not the child's to run.
TEST_ON_SERVER(test_a_forked_child_should_be_told_so_on_its_own_loop) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  AsyncMutex waiting(world.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  Outcome waited;
  waiting.async_acquire(wait_forever, waited.handler());
  const auto child = [&] {
    asio::io_context own;
    if (!all_say_forked(own, own.get_executor(), world.client, lock)) return false;
    if (!all_say_forked(own, asio::make_strand(own), world.client, waiting)) return false;
    std::future<void> future = lock.async_release(asio::use_future);
    if (future.wait_for(10s) != std::future_status::ready) return false;
    bool good = false;
    try {
      future.get();
    } catch (const std::system_error& error) {
      good = to_status(error.code()) == Status::forked;
    }
    // A client of its own is as good as any.
    AsyncClient client(own.get_executor());
    AsyncMutex mine(client, "mine", {.lease = 60s});
    good = good && connect(own, client, AsioWorld::patient_config(server.unix_url())) == Status::ok;
    good = good && acquire(own, mine) == Status::ok && release(own, mine) == Status::ok;
    waiting.cancel();
    world.client.cancel();
    world.client.close();
    return good && waited.calls == 0;
  };
  in_child(child);
  // As programs do that fork where their work is done.
  bool forked = false;
  asio::post(world.loop, [&] {
    in_child(child);
    forked = true;
  });
  TEST_ASSERT_TRUE(world.runs_until([&] { return forked; }));
  Outcome from_handler;
  lock.async_renew([&, tell = from_handler.handler()](std::error_code error) mutable {
    in_child(child);
    tell(error);
  });
  TEST_ASSERT_TRUE(world.runs_until([&] { return from_handler.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, world.release(lock));  // The parent's connection is as it was.
  TEST_ASSERT_TRUE(world.runs_until([&] { return waited.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, waited.status);
}

#if defined(ASIO_HAS_CO_AWAIT)
TEST_ON_SERVER(test_a_coroutine_of_a_forked_child_should_be_told_so) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  in_child([&] {
    asio::io_context own;
    int told = 0;
    asio::co_spawn(
        own,
        [&]() -> asio::awaitable<void> {
          std::error_code error;
          co_await lock.async_release(asio::redirect_error(asio::use_awaitable, error));
          told += to_status(error) == Status::forked ? 1 : 0;
          co_await lock.async_acquire(wait_forever, asio::redirect_error(asio::use_awaitable, error));
          told += to_status(error) == Status::forked ? 1 : 0;
        },
        asio::detached);
    own.run();
    return told == 2;
  });
  TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
}
#endif

// What waited at the fork waits in the copy, too; nothing of it is the child's.
TEST_ON_SERVER(test_a_child_that_runs_its_copy_of_the_loop_should_come_to_its_end) {
  AsioWorld world(server.unix_url());
  server.command("SET busy somebody");
  server.command("HSET hash somebody 1");
  AsyncMutex held(world.client, "k", {.lease = 60s});
  AsyncMutex polled(world.client, "busy", {.lease = 60s});
  Sole<AsyncReentrantLock> pushed(world.client, "hash", {.lease = 60s});
  int lost = 0;
  TEST_ASSERT_EQUAL(Status::ok, held.keep({.keep = Keep::always,
                                           .on_lost = [](void* count) noexcept { ++*static_cast<int*>(count); },
                                           .context = &lost}));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(held));
  Outcome outcomes[3];
  held.async_wait_lost(outcomes[0].handler());
  polled.async_acquire(wait_forever, outcomes[1].handler());
  pushed.async_acquire(wait_forever, outcomes[2].handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("PUBSUB CHANNELS") != ""; }));
  world.run_for(20ms);
  world.loop.notify_fork(asio::io_context::fork_prepare);
  in_child([&] {
    world.loop.notify_fork(asio::io_context::fork_child);
    world.loop.restart();
    world.loop.run_for(std::chrono::seconds(10));
    for (const Outcome& outcome : outcomes)
      if (outcome.calls != 1 || outcome.status != Status::forked) return false;
    return world.loop.stopped() && lost == 0;
  });
  world.loop.notify_fork(asio::io_context::fork_parent);
  TEST_ASSERT_EQUAL(Status::ok, world.renew(held));
  server.command("DEL busy hash");
  server.command("PUBLISH redisson_lock__channel:{hash} 0");
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcomes[1].done() && outcomes[2].done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcomes[1].status);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[2].status);
  TEST_ASSERT_EQUAL(0, outcomes[0].calls);
}
