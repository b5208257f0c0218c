// SPDX-License-Identifier: MIT
//
// Handles of one hold on an Asio loop, where operations through them overlap: what belongs to the hold and what to a handle, and
// what a handle leaves behind that goes while another one waits. What both clients do alike is in test_owner.cpp.
#include <asio/cancellation_signal.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "asio_fixture.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr LockTiming calm = {.lease = 60s};

struct OwnerWorld : AsioWorld {
  AsyncOwner owner{client};
  using AsioWorld::AsioWorld;
};

std::string count_on(const RedisServer& server, const AsyncLock& lock) {
  return server.command({"HGET", "k", std::string(lock.token().bytes().string_view())});
}

}  // namespace

TEST_ON_SERVER(test_hold_should_have_one_operation_at_a_time_whichever_handle_began_it) {
  OwnerWorld world(server.unix_url());
  AsyncReentrantLock first(world.owner, "k", calm);
  AsyncReentrantLock second(world.owner, "k", calm);
  AsyncReentrantLock other(world.owner, "another", calm);
  Outcome acquired;
  Outcome refused;
  Outcome apart;
  first.async_try_acquire(acquired.handler());
  second.async_try_acquire(refused.handler());
  other.async_try_acquire(apart.handler());
  TEST_ASSERT_EQUAL(Status::too_many_requests, second.post_release());
  TEST_ASSERT_EQUAL(Status::too_many_requests, second.forget_loss());
  TEST_ASSERT_TRUE(world.runs_until([&] { return acquired.done() && refused.done() && apart.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, acquired.status);
  TEST_ASSERT_EQUAL(Status::too_many_requests, refused.status);
  TEST_ASSERT_EQUAL(Status::ok, apart.status);
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(second));
  TEST_ASSERT_EQUAL("2", count_on(server, first));
}

TEST_ON_SERVER(test_owners_of_one_client_should_exclude_each_other) {
  OwnerWorld world(server.unix_url());
  AsyncOwnerOf<1> another(world.client);
  AsyncReentrantLock lock(world.owner, "k", calm);
  AsyncReentrantLock theirs(another, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  TEST_ASSERT_EQUAL(Status::lock_busy, world.acquire(theirs));
  Outcome waiting;
  theirs.async_acquire(60s, waiting.handler());
  TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  TEST_ASSERT_TRUE(world.runs_until([&] { return waiting.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, waiting.status);
}

// Its release comes after what the other handle has asked for, and is neither lost nor made twice.
TEST_ON_SERVER(test_handle_that_goes_while_another_waits_should_leave_its_release_to_the_end_of_that) {
  enum class Deed { acquire, renew, release };
  for (const Deed deed : {Deed::acquire, Deed::renew, Deed::release}) {
    OwnerWorld world(server.unix_url());
    std::optional<AsyncReentrantLock> first(std::in_place, world.owner, "k", calm);
    AsyncReentrantLock second(world.owner, "k", calm);
    for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL(Status::ok, world.acquire(*first));
    for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL(Status::ok, world.acquire(second));
    Outcome outcome;
    if (deed == Deed::acquire) second.async_try_acquire(outcome.handler());
    if (deed == Deed::renew) second.async_renew(outcome.handler());
    if (deed == Deed::release) second.async_release(outcome.handler());
    first.reset();
    TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::ok, outcome.status);
    const unsigned left = deed == Deed::acquire ? 3U : deed == Deed::renew ? 2U : 1U;
    TEST_ASSERT_EQUAL(left, second.hold_count());
    TEST_ASSERT_TRUE(world.runs_until([&] { return count_on(server, second) == std::to_string(left); }));
    for (unsigned turn = left; turn != 0; --turn) TEST_ASSERT_EQUAL(Status::ok, world.release(second));
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  }
}

TEST_ON_SERVER(test_handle_that_goes_should_cancel_its_own_operation_and_no_other) {
  OwnerWorld world(server.unix_url());
  server.command("HSET k foreign:1 1");
  server.command("PEXPIRE k 60000");
  std::optional<AsyncReentrantLock> first(std::in_place, world.owner, "k", calm);
  std::optional<AsyncReentrantLock> second(std::in_place, world.owner, "k", calm);
  Outcome waiting;
  first->async_acquire(60s, waiting.handler());
  world.run_for(20ms);
  second->cancel();
  second.reset();
  world.run_for(20ms);
  TEST_ASSERT_FALSE(waiting.done());
  second.emplace(world.owner, "k", calm);
  first.reset();
  TEST_ASSERT_TRUE(world.runs_until([&] { return waiting.done(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, waiting.status);
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(*second));  // The hold has none in progress.
  TEST_ASSERT_EQUAL("1", count_on(server, *second));
}

// An acquire that has not been answered is taken back with its handle, and what the other handle acquired stays.
TEST_ON_SERVER(test_handle_that_goes_while_it_acquires_once_more_should_leave_the_others_theirs) {
  OwnerWorld world(server.unix_url());
  std::optional<AsyncReentrantLock> first(std::in_place, world.owner, "k", calm);
  AsyncReentrantLock second(world.owner, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(second));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(*first));
  Outcome outcome;
  first->async_try_acquire(outcome.handler());
  first.reset();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
  TEST_ASSERT_EQUAL(1U, second.hold_count());
  TEST_ASSERT_TRUE(world.runs_until([&] { return count_on(server, second) == "1"; }));
  TEST_ASSERT_EQUAL(Status::ok, world.release(second));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

TEST_ON_SERVER(test_each_handle_should_be_told_of_the_loss) {
  OwnerWorld world(server.unix_url());
  AsyncReentrantLock first(world.owner, "k", calm);
  AsyncReentrantLock second(world.owner, "k", calm);
  std::optional<AsyncReentrantLock> gone(std::in_place, world.owner, "k", calm);
  asio::cancellation_signal signals[2];
  int emitted[2] = {};
  for (int index = 0; index < 2; ++index)
    signals[index].slot().assign([&, index](asio::cancellation_type) { ++emitted[index]; });
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(first));
  first.set_lost_signal(&signals[0]);
  second.set_lost_signal(&signals[1]);
  Outcome told[3];
  first.async_wait_lost(told[0].handler());
  second.async_wait_lost(told[1].handler());
  gone->async_wait_lost(told[2].handler());
  Outcome once_more;
  second.async_wait_lost(once_more.handler());
  gone.reset();
  TEST_ASSERT_TRUE(world.runs_until([&] { return told[2].done() && once_more.done(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, told[2].status);
  TEST_ASSERT_EQUAL(Status::already_held, once_more.status);
  TEST_ASSERT_FALSE(told[0].done() || told[1].done());
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, world.renew(second));
  TEST_ASSERT_TRUE(world.runs_until([&] { return told[0].done() && told[1].done() && emitted[0] + emitted[1] == 2; }));
  for (const int index : {0, 1}) {
    TEST_ASSERT_EQUAL(Status::lock_lost, told[index].status);
    TEST_ASSERT_EQUAL(1, emitted[index]);
  }
}

// The first signal destroys both locks, and their owner's hold with them: nobody else is called.
TEST_ON_SERVER(test_signal_should_be_free_to_destroy_all_handles) {
  OwnerWorld world(server.unix_url());
  std::optional<AsyncReentrantLock> locks[2];
  asio::cancellation_signal signals[2];
  int emitted = 0;
  for (int index = 0; index < 2; ++index) {
    locks[index].emplace(world.owner, "k", calm);
    signals[index].slot().assign([&](asio::cancellation_type) {
      ++emitted;
      for (auto& lock : locks) lock.reset();
    });
    locks[index]->set_lost_signal(&signals[index]);
  }
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(*locks[0]));
  server.command("DEL k");
  Outcome renewed;
  locks[0]->async_renew(renewed.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return renewed.done(); }));
  TEST_ASSERT_TRUE(world.runs_until([&] { return emitted != 0; }));
  TEST_ASSERT_EQUAL(1, emitted);
  AsyncReentrantLock next(world.owner, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(next));
}

// Who waits for the end of a hold is told when nobody has acquired it any more.
TEST_ON_SERVER(test_wait_should_end_with_the_last_release_through_any_handle) {
  OwnerWorld world(server.unix_url());
  AsyncReentrantLock first(world.owner, "k", calm);
  std::optional<AsyncReentrantLock> second(std::in_place, world.owner, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(first));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(*second));
  Outcome told;
  first.async_wait_lost(told.handler());
  TEST_ASSERT_EQUAL(Status::ok, world.release(first));
  world.run_for(20ms);
  TEST_ASSERT_FALSE(told.done());
  second.reset();
  TEST_ASSERT_TRUE(world.runs_until([&] { return told.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, told.status);
  TEST_ASSERT_FALSE(first.held());
}

TEST_ON_SERVER(test_acquire_that_waits_should_keep_its_timing_whatever_another_handle_asks_for) {
  OwnerWorld world(server.unix_url());
  server.command("HSET k foreign:1 1");
  server.command("PEXPIRE k 60000");
  AsyncReentrantLock first(world.owner, "k", calm);
  AsyncReentrantLock second(world.owner, "k", {.lease = 600s});
  Outcome waiting;
  first.async_acquire(60s, waiting.handler());
  world.run_for(20ms);
  TEST_ASSERT_EQUAL(Status::too_many_requests, world.acquire(second));
  server.command("DEL k");
  server.command("PUBLISH redisson_lock__channel:{k} 0");
  TEST_ASSERT_TRUE(world.runs_until([&] { return waiting.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, waiting.status);
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) <= 60'000);
}

TEST_ON_SERVER(test_handle_should_outlive_its_client_and_be_held_no_more) {
  asio::io_context loop(1);
  std::optional<AsyncClient> client(std::in_place, loop.get_executor());
  TEST_ASSERT_EQUAL(Status::ok, connect(loop, *client, AsioWorld::patient_config(server.unix_url())));
  AsyncOwnerOf<1> owner(*client);
  AsyncReentrantLock first(owner, "k", calm);
  AsyncReentrantLock second(owner, "k", calm);
  AsyncReentrantLock refused(owner, "another", calm);
  TEST_ASSERT_EQUAL(Status::ok, acquire(loop, first));
  TEST_ASSERT_EQUAL(Status::ok, acquire(loop, second));
  TEST_ASSERT_EQUAL(Status::too_many_requests, acquire(loop, refused));
  client.reset();
  TEST_ASSERT_FALSE(first.held());
  TEST_ASSERT_FALSE(second.held());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::not_connected, acquire(loop, second));
  TEST_ASSERT_EQUAL(Status::too_many_requests, acquire(loop, refused));
}
