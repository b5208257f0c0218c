// SPDX-License-Identifier: MIT
//
// Sets of locks on an Asio loop, on real servers: all of them or none, within one deadline, also with locks on a quorum.
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <memory>
#include <optional>
#include <string>

#include "asio_fixture.hpp"
#include "live_nodes.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

Status acquire(asio::io_context& loop, AsyncLockSet& set, Duration wait) {
  return outcome_of(loop, [&](auto handler) { set.async_acquire(wait, handler); });
}
Status release(asio::io_context& loop, AsyncLockSet& set) {
  return outcome_of(loop, [&](auto handler) { set.async_release(handler); });
}

}  // namespace

TEST_ON_SERVER(test_set_should_hold_all_or_nothing_on_two_nodes) {
  RedisServer far(server.binary());
  AsioWorld world(server.unix_url());
  AsyncClient there(world.loop.get_executor());
  TEST_ASSERT_EQUAL(Status::ok, connect(world.loop, there, AsioWorld::patient_config(far.unix_url())));
  AsyncMutex first(world.client, "k", {.lease = 60s});
  AsyncOwner owner(there);
  AsyncReentrantLock second(owner, "k", {.lease = 60s});
  AsyncMutex third(there, "x", {.lease = 30s});
  AsyncHandle* locks[] = {&third, &second, &first};
  AsyncLockSet set(locks, 3);
  TEST_ASSERT_EQUAL(Status::ok, set.configuration());
  TEST_ASSERT_EQUAL(Status::not_held, release(world.loop, set));
  TEST_ASSERT_EQUAL(Status::ok, acquire(world.loop, set, 0s));
  TEST_ASSERT_TRUE(set.held() && set.blocker() == nullptr);
  TEST_ASSERT_TRUE(set.valid_until() == third.valid_until());  // The least.
  TEST_ASSERT_EQUAL("1", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL("2", far.command("EXISTS k x"));
  TEST_ASSERT_EQUAL(Status::already_held, acquire(world.loop, set, 0s));
  const Instant before = set.valid_until();
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { set.async_renew(handler); }));
  TEST_ASSERT_TRUE(set.valid_until() > before);
  TEST_ASSERT_EQUAL(Status::ok, release(world.loop, set));
  TEST_ASSERT_FALSE(set.held());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL("0", far.command("DBSIZE"));

  far.command("SET x somebody PX 60000");
  TEST_ASSERT_EQUAL(Status::lock_busy, acquire(world.loop, set, 200ms));
  TEST_ASSERT_TRUE(set.blocker() == &third);
  TEST_ASSERT_FALSE(first.held() || second.held() || third.held());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("DBSIZE") == "0" && far.command("DBSIZE") == "1"; }));
  far.command("DEL x");
  TEST_ASSERT_EQUAL(Status::ok, acquire(world.loop, set, 2s));
  TEST_ASSERT_EQUAL(Status::ok, set.post_release());
  TEST_ASSERT_EQUAL(Status::not_held, set.post_release());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("DBSIZE") == "0" && far.command("DBSIZE") == "0"; }));
}

TEST_ON_SERVER(test_what_is_taken_should_be_renewed_while_the_next_is_waited_for) {
  AsioWorld world(server.unix_url());
  AsyncMutex a(world.client, "a", {.lease = 3s});  // An explicit lease: nobody else keeps it.
  AsyncMutex b(world.client, "b", {.lease = 20s});
  AsyncHandle* locks[] = {&b, &a};
  AsyncLockSet set(locks, 2);
  server.command("SET b x PX 5000");
  TEST_ASSERT_EQUAL(Status::ok, acquire(world.loop, set, 60s));
  TEST_ASSERT_TRUE(set.held());
  TEST_ASSERT_EQUAL("2", server.command("EXISTS a b"));
}

TEST_ON_SERVER(test_cancelled_wait_should_let_go_of_what_was_taken) {
  AsioWorld world(server.unix_url());
  AsyncMutex a(world.client, "a", {.lease = 60s});
  AsyncMutex b(world.client, "b", {.lease = 60s});
  AsyncHandle* locks[] = {&a, &b};
  AsyncLockSet set(locks, 2);
  server.command("SET b x");
  for (const bool by_slot : {true, false}) {
    asio::cancellation_signal signal;
    Outcome outcome;
    Outcome refused;
    set.async_acquire(wait_forever, asio::bind_cancellation_slot(signal.slot(), outcome.handler()));
    TEST_ASSERT_TRUE(world.runs_until([&] { return a.held(); }));
    set.async_acquire(0s, refused.handler());
    TEST_ASSERT_TRUE(world.runs_until([&] { return refused.done(); }));
    TEST_ASSERT_EQUAL(Status::too_many_requests, refused.status);
    TEST_ASSERT_EQUAL(Status::too_many_requests, set.post_release());
    if (by_slot)
      signal.emit(asio::cancellation_type::terminal);
    else
      set.cancel();
    TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
    TEST_ASSERT_FALSE(a.held());
    TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("EXISTS a") == "0"; }));
  }
}

// Bug 38: when its first lock had been granted, and its handler was still to be called, nobody told the set.
TEST_ON_SERVER(test_cancel_of_a_client_as_a_lock_is_granted_should_end_the_acquire_of_the_set) {
  AsioWorld world(server.unix_url());
  AsyncMutex before(world.client, "before", {.lease = 60s});
  AsyncMutex a(world.client, "a", {.lease = 60s});
  AsyncMutex b(world.client, "b", {.lease = 60s});
  AsyncHandle* locks[] = {&a, &b};
  AsyncLockSet set(locks, 2);
  server.command("SET b x");
  // Both are asked for in one turn, and answered in one: of the two handlers this one is called first.
  bool held = false;
  before.async_try_acquire([&](std::error_code) {
    held = a.held();
    world.client.cancel();
  });
  Outcome outcome;
  set.async_acquire(2s, outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_TRUE(held);
  TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
  TEST_ASSERT_FALSE(a.held());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("EXISTS a") == "0"; }));
  server.command("DEL b");
  TEST_ASSERT_EQUAL(Status::ok, acquire(world.loop, set, 20s));  // It ended one call.
}

TEST_ON_SERVER(test_cancel_of_a_client_that_is_not_waited_on_should_end_the_acquire_of_the_set) {
  RedisServer far(server.binary());
  AsioWorld world(server.unix_url());
  AsyncClient there(world.loop.get_executor());
  TEST_ASSERT_EQUAL(Status::ok, connect(world.loop, there, AsioWorld::patient_config(far.unix_url())));
  AsyncMutex here(world.client, "k", {.lease = 60s});
  AsyncMutex apart(there, "k", {.lease = 60s});
  AsyncHandle* locks[] = {&here, &apart};
  AsyncLockSet set(locks, 2);
  const bool here_first = locks[0] == &here;
  AsyncMutex& first = here_first ? here : apart;
  RedisServer& late = here_first ? far : server;
  late.command("SET k x");
  Outcome outcome;
  set.async_acquire(wait_forever, outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return first.held(); }));
  (here_first ? world.client : there).cancel();
  late.command("DEL k");
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
  TEST_ASSERT_FALSE(here.held() || apart.held());
  TEST_ASSERT_TRUE(world.runs_until([&] { return late.command("EXISTS k") == "0"; }));
  TEST_ASSERT_EQUAL(Status::ok, acquire(world.loop, set, 20s));
}

TEST_ON_SERVER(test_set_that_goes_should_release_what_is_left_and_complete_what_waits) {
  AsioWorld world(server.unix_url());
  AsyncMutex a(world.client, "a", {.lease = 60s});
  AsyncMutex b(world.client, "b", {.lease = 60s});
  AsyncHandle* locks[] = {&a, &b};
  std::optional<AsyncLockSet> set(std::in_place, locks, std::size_t{2});
  TEST_ASSERT_EQUAL(Status::ok, acquire(world.loop, *set, 2s));
  set.reset();
  TEST_ASSERT_FALSE(a.held() || b.held());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("DBSIZE") == "0"; }));
  server.command("SET b x");
  Outcome outcome;
  set.emplace(locks, std::size_t{2});
  set->async_acquire(wait_forever, outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return a.held(); }));
  set.reset();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("EXISTS a") == "0"; }));
  server.command("DEL b");
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(b, 2s));  // The locks are as they were.
}

TEST_ON_SERVER(test_loss_of_a_taken_one_should_end_the_wait) {
  AsioWorld world(server.unix_url());
  AsyncMutex a(world.client, "a", {.lease = 1s});
  AsyncMutex b(world.client, "b", {.lease = 60s});
  AsyncHandle* locks[] = {&a, &b};
  AsyncLockSet set(locks, 2);
  server.command("SET b x");
  Outcome outcome;
  set.async_acquire(60s, outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return a.held(); }));
  server.command("SET a stolen PX 60000");
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::lock_lost, outcome.status);
  TEST_ASSERT_TRUE(set.blocker() == &a);
  TEST_ASSERT_EQUAL("stolen", server.command("GET a"));
}

TEST_ON_SERVER(test_set_should_hold_locks_on_a_server_and_on_a_quorum) {
  LiveNodes nodes(server.binary(), 3);
  AsioWorld world(server.unix_url());
  AsyncQuorum quorum(world.loop.get_executor(), 3);
  const std::vector<ClientConfig> configs = nodes.configs();
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) {
                      quorum.async_connect(configs.data(), configs.size(), unguarded, handler);
                    }));
  AsyncMutex stock(world.client, "stock", {.lease = 60s});
  AsyncRedlockMutex<3> orders(quorum, "orders", {.lease = 60s, .node_timeout = 12s});
  AsyncHandle* locks[] = {&orders, &stock};
  AsyncLockSet set(locks, 2);
  TEST_ASSERT_EQUAL(Status::ok, acquire(world.loop, set, 20s));
  TEST_ASSERT_TRUE(set.held() && stock.held() && orders.held());
  TEST_ASSERT_EQUAL(Status::ok, release(world.loop, set));
  TEST_ASSERT_FALSE(stock.held() || orders.held());
  server.command("SET stock somebody PX 60000");
  TEST_ASSERT_EQUAL(Status::lock_busy, acquire(world.loop, set, 200ms));
  TEST_ASSERT_FALSE(orders.held());
  TEST_ASSERT_TRUE(world.runs_until([&] { return nodes.all("EXISTS orders", "0"); }));
  AsyncRedlockMutex<3> twin(quorum, "orders");
  AsyncHandle* twins[] = {&orders, &twin};
  AsyncLockSet none(twins, 2);
  TEST_ASSERT_EQUAL(Status::invalid_argument, acquire(world.loop, none, 1s));
}
