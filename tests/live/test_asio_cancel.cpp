// SPDX-License-Identifier: MIT
//
// Operations of the Asio client that are cancelled, wherever they are: what a cancelled acquire may have taken is
// released.
#include "asio_fixture.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

// ---- Cancellation ------------------------------------------------------------------------------------------------

namespace {

// An acquire whose slot may be told to stop.
struct Cancellable {
  explicit Cancellable(AsyncLock& lock, Duration wait = wait_forever) {
    lock.async_acquire(wait, asio::bind_cancellation_slot(signal.slot(), outcome.handler()));
  }
  asio::cancellation_signal signal;
  Outcome outcome;
};

constexpr asio::cancellation_type granted_wishes[] = {asio::cancellation_type::terminal, asio::cancellation_type::total,
                                                      asio::cancellation_type::all};

}  // namespace

TEST_ON_SERVER(test_an_acquire_should_be_cancelled_while_it_connects) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  for (const asio::cancellation_type wish : granted_wishes) {
    proxy.hold(true);
    asio::io_context loop;
    AsyncClient client(loop.get_executor());
    Outcome connected;
    client.async_connect(AsioWorld::patient_config(proxy.url()), connected.handler());
    AsyncMutex lock(client, "k", {.lease = 20s});
    Cancellable acquire(lock);
    run_for(loop, 10ms);
    acquire.signal.emit(asio::cancellation_type::partial);  // Nothing partial can be promised.
    run_for(loop, 10ms);
    TEST_ASSERT_EQUAL(0, acquire.outcome.calls);
    acquire.signal.emit(wish);
    TEST_ASSERT_EQUAL(0, acquire.outcome.calls);
    TEST_ASSERT_TRUE(runs_until(loop, [&] { return acquire.outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::cancelled, acquire.outcome.status);
    TEST_ASSERT_EQUAL(0, connected.calls);
    proxy.hold(false);
    TEST_ASSERT_TRUE(runs_until(loop, [&] { return connected.done(); }));
    TEST_ASSERT_EQUAL(Status::ok, connected.status);
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
    TEST_ASSERT_EQUAL(Status::ok, ::acquire(loop, lock));
  }
}

TEST_ON_SERVER(test_an_acquire_should_be_cancelled_while_it_waits_by_push) {
  AsioWorld world(server.unix_url());
  for (const asio::cancellation_type wish : granted_wishes) {
    server.command("HSET k somebody 1");
    AsyncReentrantLock lock(world.client, "k", {.lease = 20s});
    Cancellable acquire(lock);
    TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("PUBSUB CHANNELS") != ""; }));
    acquire.signal.emit(asio::cancellation_type::partial);
    world.run_for(10ms);
    TEST_ASSERT_EQUAL(0, acquire.outcome.calls);
    acquire.signal.emit(wish);
    TEST_ASSERT_TRUE(world.runs_until([&] { return acquire.outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::cancelled, acquire.outcome.status);
    TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("PUBSUB CHANNELS") == ""; }));
    server.command("DEL k");
    world.run_for(20ms);
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
    TEST_ASSERT_EQUAL(1, acquire.outcome.calls);
  }
}

TEST_ON_SERVER(test_an_acquire_should_be_cancelled_while_it_polls) {
  AsioWorld world(server.unix_url());
  server.command("SET k somebody");
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  for (const asio::cancellation_type wish : granted_wishes) {
    const long tries = server.calls("set");
    Cancellable acquire(lock);
    TEST_ASSERT_TRUE(world.runs_until([&] { return server.calls("set") > tries + 2; }));
    acquire.signal.emit(asio::cancellation_type::partial);
    TEST_ASSERT_TRUE(world.runs_until([&] { return server.calls("set") > tries + 4; }));
    TEST_ASSERT_EQUAL(0, acquire.outcome.calls);
    acquire.signal.emit(wish);
    TEST_ASSERT_TRUE(world.runs_until([&] { return acquire.outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::cancelled, acquire.outcome.status);
  }
  server.command("DEL k");
  world.run_for(50ms);
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

// The server has granted it, and the word is on its way: what it took is released.
TEST_ON_SERVER(test_an_acquire_that_is_cancelled_in_flight_should_leave_nothing) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  AsioWorld world(proxy.url());
  AsyncMutex mutex(world.client, "mutex", {.lease = 60s});
  AsyncFencedLock fenced(world.client, "fenced", {.lease = 60s});
  AsyncReentrantLock reentrant(world.client, "reentrant", {.lease = 60s});
  AsyncLock* const locks[] = {&mutex, &fenced, &reentrant};
  for (AsyncLock* const lock : locks) {  // From here on the server knows their scripts.
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(*lock));
    TEST_ASSERT_EQUAL(Status::ok, world.release(*lock));
  }
  for (AsyncLock* const lock : locks)
    for (int how = 0; how < 3; ++how) {
      const std::string key(lock->key().bytes().string_view());
      TEST_MESSAGE("key " << key << ", way " << how);
      proxy.hold_replies_of(Proxy::all);
      Cancellable acquire(*lock);
      TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("EXISTS " + key) == "1"; }));
      TEST_ASSERT_EQUAL(0, acquire.outcome.calls);
      if (how == 0) acquire.signal.emit(asio::cancellation_type::terminal);
      if (how == 1) lock->cancel();
      if (how == 2) world.client.cancel();
      TEST_ASSERT_EQUAL(0, acquire.outcome.calls);
      TEST_ASSERT_TRUE(world.runs_until([&] { return acquire.outcome.done(); }));
      TEST_ASSERT_EQUAL(Status::cancelled, acquire.outcome.status);
      TEST_ASSERT_FALSE(lock->held());
      // Right behind it, before any reply has come.
      TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("EXISTS " + key) == "0"; }));
      proxy.hold_replies_of(Proxy::none);
      TEST_ASSERT_TRUE(world.runs_until([&] { return world.client.compensations_pending() == 0; }));
      TEST_ASSERT_FALSE(lock->held());
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(*lock));
      TEST_ASSERT_EQUAL(Status::ok, world.release(*lock));
    }
}

// The reply is there and its handler is not called yet: the outcome and the lock agree.
TEST_ON_SERVER(test_a_cancellation_that_comes_behind_the_grant_should_change_nothing) {
  AsioWorld world(server.unix_url());
  AsyncMutex first(world.client, "first", {.lease = 60s});
  AsyncMutex second(world.client, "second", {.lease = 60s});
  asio::cancellation_signal signal;
  Outcome outcome;
  bool decided = false;
  first.async_acquire(1s, [&](std::error_code) {
    decided = second.held();
    signal.emit(asio::cancellation_type::terminal);
    second.cancel();
  });
  second.async_acquire(1s, asio::bind_cancellation_slot(signal.slot(), outcome.handler()));
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  world.run_for(20ms);
  TEST_ASSERT_EQUAL(1, outcome.calls);
  TEST_ASSERT_TRUE(decided);  // Both replies come with one receive.
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_TRUE(second.held());
  TEST_ASSERT_EQUAL("1", server.command("EXISTS second"));
}

TEST_ON_SERVER(test_a_slot_of_an_earlier_operation_should_cancel_nothing) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  Cancellable first(lock);
  TEST_ASSERT_TRUE(world.runs_until([&] { return first.outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  server.command("SET k somebody");
  Outcome second;  // In the same place.
  lock.async_acquire(wait_forever, second.handler());
  first.signal.emit(asio::cancellation_type::terminal);
  world.run_for(10ms);
  TEST_ASSERT_EQUAL(0, second.calls);
  server.command("DEL k");
  TEST_ASSERT_TRUE(world.runs_until([&] { return second.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, second.status);
}

TEST_ON_SERVER(test_a_slot_should_outlive_the_client) {
  asio::cancellation_signal signal;
  Outcome outcome;
  {
    AsioWorld world(server.unix_url());
    server.command("SET k somebody");
    AsyncMutex lock(world.client, "k");
    lock.async_acquire(wait_forever, asio::bind_cancellation_slot(signal.slot(), outcome.handler()));
    world.run_for(5ms);
  }
  signal.emit(asio::cancellation_type::terminal);
  TEST_ASSERT_EQUAL(0, outcome.calls);
}

TEST_ON_SERVER(test_renew_release_query_and_wait_lost_should_be_cancelled_by_their_slots) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  AsioWorld world(proxy.url());
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  Duration remaining{};
  for (int operation = 0; operation < 4; ++operation) {
    TEST_MESSAGE("operation " << operation);
    asio::cancellation_signal signal;
    Outcome outcome;
    const auto token = [&] { return asio::bind_cancellation_slot(signal.slot(), outcome.handler()); };
    proxy.hold_replies_of(Proxy::all);
    if (operation == 0) lock.async_wait_lost(token());
    if (operation == 1) lock.async_renew(token());
    if (operation == 2) lock.async_remaining_on_server(remaining, token());
    if (operation == 3) lock.async_release(token());
    world.run_for(5ms);
    TEST_ASSERT_EQUAL(0, outcome.calls);
    signal.emit(asio::cancellation_type::total);
    TEST_ASSERT_EQUAL(0, outcome.calls);
    TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
    TEST_ASSERT_EQUAL(operation != 3, lock.held());
    proxy.hold_replies_of(Proxy::none);
    TEST_ASSERT_TRUE(world.runs_until([&] { return world.client.compensations_pending() == 0; }));
  }
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("EXISTS k") == "0"; }));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
}

TEST_ON_SERVER(test_a_connect_should_be_cancelled_by_its_slot) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  proxy.hold(true);
  asio::io_context loop;
  AsyncClient client(loop.get_executor());
  asio::cancellation_signal signal;
  Outcome outcome;
  client.async_connect(AsioWorld::patient_config(proxy.url()),
                       asio::bind_cancellation_slot(signal.slot(), outcome.handler()));
  TEST_ASSERT_EQUAL(Status::already_held, connect(loop, client, server.unix_url()));
  signal.emit(asio::cancellation_type::terminal);
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
  TEST_ASSERT_EQUAL(Status::ok, connect(loop, client, server.unix_url()));
}

// A release that waits for the connection goes on without its handler, and is never taken back.
TEST_ON_SERVER(test_a_release_that_is_cancelled_should_still_let_go) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  AsioWorld world(proxy.url());
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  proxy.hold(true);
  proxy.cut_after(0);
  server.command("CLIENT KILL TYPE normal SKIPME yes");
  proxy.hold_requests_of(Proxy::all);
  TEST_ASSERT_TRUE(world.runs_until([&] {
    proxy.hold_replies_of(Proxy::none);
    return !world.client.connected();
  }));
  Outcome outcome;
  lock.async_release(outcome.handler());
  TEST_ASSERT_FALSE(lock.held());
  lock.cancel();
  TEST_ASSERT_FALSE(lock.held());
  proxy.hold(false);
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done() && server.command("EXISTS k") == "0"; }));
  TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
  TEST_ASSERT_FALSE(lock.held());
}
