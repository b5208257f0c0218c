// SPDX-License-Identifier: MIT
//
// Holds of the Asio client: how they are kept, how they are lost, and who is told of it, and when not.
#include "asio_fixture.hpp"
#include "patience.hpp"

#include <asio/cancellation_signal.hpp>
#include <deque>
#include <memory>
#include <optional>

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// How often a lock's owner was told.
struct Told {
  int at_risk = 0;
  int lost = 0;
  [[nodiscard]] KeepOptions options(Keep keep = Keep::automatic) {
    return {.keep = keep,
            .on_at_risk = [](void* self) noexcept { ++static_cast<Told*>(self)->at_risk; },
            .on_lost = [](void* self) noexcept { ++static_cast<Told*>(self)->lost; },
            .context = this};
  }
};

}  // namespace

// ---- Losses ------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_hold_should_be_kept_until_it_is_released) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 900ms});
  Sole<AsyncFencedLock> fenced(world.client, "f", {.lease = 900ms});
  for (AsyncLock* const it : {static_cast<AsyncLock*>(&lock), static_cast<AsyncLock*>(&fenced)}) {
    TEST_ASSERT_EQUAL(Status::ok, it->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(*it));
  }
  TEST_ASSERT_EQUAL(2U, world.client.kept());
  TEST_ASSERT_TRUE(world.runs_until([&] { return world.client.renewal_calls() >= 4; }));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_TRUE(fenced.held());
  TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  TEST_ASSERT_EQUAL(Status::ok, world.release(fenced));
  TEST_ASSERT_EQUAL(0U, world.client.kept());
}

TEST_ON_SERVER(test_a_loss_should_be_told_once_by_every_way) {
  AsioWorld world(server.unix_url());
  for (const bool kept : {true, false}) {
    TEST_MESSAGE("kept " << kept);
    Told told;
    Outcome waited;
    asio::cancellation_signal signal;
    int signalled = 0;
    signal.slot().assign(
        [&](asio::cancellation_type type) { signalled += type == asio::cancellation_type::terminal ? 1 : 1000; });
    AsyncMutex lock(world.client, "k", {.lease = 400ms});
    TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options(kept ? Keep::always : Keep::never)));
    lock.set_lost_signal(&signal);
    for (int round = 1; round <= 2; ++round) {  // Once a hold.
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
      lock.async_wait_lost(waited.handler());
      TEST_ASSERT_EQUAL(Status::already_held,
                        outcome_of(world.loop, [&](auto handler) { lock.async_wait_lost(handler); }));
      TEST_ASSERT_EQUAL(round - 1, waited.calls);
      server.command("DEL k");
      TEST_ASSERT_TRUE(world.runs_until([&] { return waited.calls == round; }));
      TEST_ASSERT_EQUAL(Status::lock_lost, waited.status);
      world.run_for(20ms);
      TEST_ASSERT_EQUAL(round, told.lost);
      TEST_ASSERT_EQUAL(round, signalled);
      TEST_ASSERT_TRUE(told.at_risk <= round);
      TEST_ASSERT_FALSE(lock.held());
      TEST_ASSERT_EQUAL(Status::lock_lost, world.release(lock));
    }
    world.run_for(450ms);
    TEST_ASSERT_EQUAL(2, told.lost);
    TEST_ASSERT_EQUAL(2, waited.calls);
    lock.set_lost_signal(nullptr);
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
    server.command("DEL k");
    TEST_ASSERT_TRUE(world.runs_until([&] { return told.lost == 3; }));
    TEST_ASSERT_EQUAL(2, signalled);
  }
}

TEST_ON_SERVER(test_a_risk_should_be_told_once_and_a_renewal_should_end_it) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  AsioWorld world(proxy.url());
  Told told;
  AsyncMutex lock(world.client, "k", {.lease = 1500ms});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options(Keep::always)));
  bool seen = false;
  // A machine that stands still sees the end at once: then it is tried again.
  for (int attempt = 0; attempt < 10 && !seen; ++attempt) {
    told = {};
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
    proxy.hold_replies_of(Proxy::all);
    TEST_ASSERT_TRUE(world.runs_until([&] { return told.at_risk + told.lost != 0; }));
    proxy.hold_replies_of(Proxy::none);
    TEST_ASSERT_TRUE(world.runs_until([&] { return !lock.at_risk(); }));
    seen = told.lost == 0 && lock.held();
    if (!seen) {
      (void)world.release(lock);
      continue;
    }
    TEST_ASSERT_EQUAL(1, told.at_risk);
    proxy.hold_replies_of(Proxy::all);  // The second doubt of a hold is no news.
    TEST_ASSERT_TRUE(world.runs_until([&] { return lock.at_risk() || !lock.held(); }));
    world.run_for(20ms);
    TEST_ASSERT_EQUAL(1, told.at_risk);
  }
  TEST_ASSERT_TRUE(seen);
}

TEST_ON_SERVER(test_a_release_should_complete_the_wait_for_a_loss_without_error) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  for (const bool posted : {false, true}) {
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
    Outcome waited;
    lock.async_wait_lost(waited.handler());
    world.run_for(5ms);
    TEST_ASSERT_EQUAL(0, waited.calls);
    if (posted)
      TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
    else
      TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
    TEST_ASSERT_TRUE(world.runs_until([&] { return waited.done(); }));
    TEST_ASSERT_EQUAL(Status::ok, waited.status);
  }
}

// The lease ends while the release is on its way, or waits for a connection.
TEST_ON_SERVER(test_nobody_should_be_told_of_a_loss_once_a_release_has_begun) {
  for (const bool connected : {true, false}) {
    TEST_MESSAGE("connected " << connected);
    Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
    AsioWorld world(proxy.url());
    Told told;
    int signalled = 0;
    asio::cancellation_signal signal;
    signal.slot().assign([&](asio::cancellation_type) { ++signalled; });
    AsyncMutex kept(world.client, "kept", {.lease = 1s});
    AsyncMutex lock(world.client, "k", {.lease = 1s});
    TEST_ASSERT_EQUAL(Status::ok, kept.keep(told.options(Keep::always)));
    TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options(Keep::never)));
    Outcome outcomes[2];
    AsyncLock* const locks[] = {&kept, &lock};
    for (AsyncLock* const it : locks) {
      it->set_lost_signal(&signal);
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(*it));
    }
    if (connected)
      proxy.hold_replies_of(Proxy::all);
    else
      cut_off(world, proxy, server);
    for (std::size_t index = 0; index < 2; ++index) {
      TEST_ASSERT_TRUE(locks[index]->held());
      locks[index]->async_release(outcomes[index].handler());
      TEST_ASSERT_FALSE(locks[index]->held());
    }
    world.run_for(1100ms);
    TEST_ASSERT_EQUAL(0, told.lost);
    TEST_ASSERT_EQUAL(0, told.at_risk);
    TEST_ASSERT_EQUAL(0, signalled);
    proxy.hold(false);
    TEST_ASSERT_TRUE(world.runs_until([&] { return outcomes[0].done() && outcomes[1].done(); }));
    world.run_for(20ms);
    TEST_ASSERT_EQUAL(0, told.lost);
    TEST_ASSERT_EQUAL(0, signalled);
  }
}

TEST_ON_SERVER(test_nobody_should_be_told_of_a_loss_behind_the_destructor) {
  AsioWorld world(server.unix_url());
  Told told;
  std::optional<AsyncMutex> lock(std::in_place, world.client, "k", LockTiming{.lease = 400ms});
  TEST_ASSERT_EQUAL(Status::ok, lock->keep(told.options(Keep::always)));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(*lock));
  world.client.async_connect(world.client.config(), [](std::error_code) {});  // What is known is in doubt.
  lock.reset();
  world.run_for(500ms);
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_EQUAL(0, told.at_risk);
}

// The first who is told destroys the second, who has something to be told as well.
TEST_ON_SERVER(test_who_is_told_of_a_loss_should_be_free_to_destroy) {
  AsioWorld world(server.unix_url());
  struct Locks {
    std::optional<AsyncMutex> first;
    std::optional<AsyncMutex> second;
    int told = 0;
  } locks;
  const KeepOptions options = {.keep = Keep::always,
                               .on_lost =
                                   [](void* self) noexcept {
                                     auto& them = *static_cast<Locks*>(self);
                                     ++them.told;
                                     them.first.reset();
                                     them.second.reset();
                                   },
                               .context = &locks};
  locks.first.emplace(world.client, "first", LockTiming{.lease = 500ms});
  locks.second.emplace(world.client, "second", LockTiming{.lease = 500ms});
  for (std::optional<AsyncMutex>* const lock : {&locks.first, &locks.second}) {
    TEST_ASSERT_EQUAL(Status::ok, (*lock)->keep(options));
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(**lock));
  }
  server.command("DEL first second");
  TEST_ASSERT_TRUE(world.runs_until([&] { return locks.told != 0; }));
  world.run_for(600ms);
  TEST_ASSERT_EQUAL(1, locks.told);
  TEST_ASSERT_EQUAL(0U, world.client.kept());
}

namespace {

// What a callback of a loss or a doubt may do away with, in several ways.
struct Owned {
  enum Way { lock, lock_and_signal, lock_for_another, client, all, signal_alone, the_signal_is_taken_away, way_count };
  Way way = lock;
  std::unique_ptr<AsyncClient> the_client{};
  std::unique_ptr<asio::cancellation_signal> signal = std::make_unique<asio::cancellation_signal>();
  std::optional<AsyncMutex> the_lock{};
  int told = 0;
  int signalled = 0;

  void act() {
    ++told;
    switch (way) {
      case lock: the_lock.reset(); return;
      case lock_and_signal:
        the_lock.reset();
        signal.reset();
        return;
      case lock_for_another:  // In the same place.
        the_lock.reset();
        the_lock.emplace(*the_client, "other", LockTiming{.lease = 20s});
        return;
      case client: the_client.reset(); return;
      case all:
        the_client.reset();
        the_lock.reset();
        signal.reset();
        return;
      case signal_alone:
        the_lock->set_lost_signal(nullptr);
        signal.reset();
        return;
      case the_signal_is_taken_away: the_lock->set_lost_signal(nullptr); return;
      case way_count: return;
    }
  }
};

}  // namespace

// [issue 10, 5] The signal, too, is looked for only after the callback.
TEST_ON_SERVER(test_a_callback_should_be_free_to_destroy_the_lock_the_client_and_the_lost_signal) {
  for (const bool lost : {true, false}) {
    asio::io_context loop;
    std::deque<Owned> all;
    for (int way = 0; way < Owned::way_count; ++way) {
      Owned& owned = all.emplace_back();
      owned.way = static_cast<Owned::Way>(way);
      owned.the_client = std::make_unique<AsyncClient>(loop.get_executor());
      TEST_ASSERT_EQUAL(Status::ok, connect(loop, *owned.the_client, AsioWorld::patient_config(server.unix_url())));
      const LockTiming timing = {.lease = lost ? Duration(500ms) : Duration(3s)};  // At risk for a second.
      owned.the_lock.emplace(*owned.the_client, ByteView(std::to_string(way)), timing);
      owned.signal->slot().assign([&owned](asio::cancellation_type) { ++owned.signalled; });
      owned.the_lock->set_lost_signal(owned.signal.get());
      KeepOptions options = {.keep = Keep::never, .context = &owned};
      (lost ? options.on_lost : options.on_at_risk) = [](void* self) noexcept { static_cast<Owned*>(self)->act(); };
      TEST_ASSERT_EQUAL(Status::ok, owned.the_lock->keep(options));
    }
    for (Owned& owned : all) TEST_ASSERT_EQUAL(Status::ok, acquire(loop, *owned.the_lock));
    for (Owned& owned : all) TEST_ASSERT_TRUE(runs_until(loop, [&] { return owned.told != 0; }));
    run_for(loop, 20ms);
    for (Owned& owned : all) {
      TEST_MESSAGE("lost " << lost << ", way " << owned.way);
      TEST_ASSERT_EQUAL(1, owned.told);
      const bool heard = lost && owned.way == Owned::client;  // Only there the lock lives on, with its signal.
      TEST_ASSERT_EQUAL(heard ? 1 : 0, owned.signalled);
      owned.the_lock.reset();
      owned.the_client.reset();
    }
    loop.restart();
    loop.run();  // It ends: nothing of the clients is left.
  }
}

// What the signal ends may be the owner of all.
TEST_ON_SERVER(test_who_hears_the_lost_signal_should_be_free_to_destroy) {
  asio::io_context loop;
  Owned owned{.way = Owned::client};
  owned.the_client = std::make_unique<AsyncClient>(loop.get_executor());
  TEST_ASSERT_EQUAL(Status::ok, connect(loop, *owned.the_client, AsioWorld::patient_config(server.unix_url())));
  owned.the_lock.emplace(*owned.the_client, "k", LockTiming{.lease = 300ms});
  owned.signal->slot().assign([&](asio::cancellation_type) {
    owned.the_client.reset();
    owned.the_lock.reset();
    ++owned.signalled;
  });
  owned.the_lock->set_lost_signal(owned.signal.get());
  TEST_ASSERT_EQUAL(Status::ok, acquire(loop, *owned.the_lock));
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return owned.signalled != 0; }));
  loop.restart();
  loop.run();
  TEST_ASSERT_EQUAL(1, owned.signalled);
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_keep_should_refuse_what_makes_no_sense) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::invalid_argument, lock.keep({.max_hold = 0s}));
  TEST_ASSERT_EQUAL(Status::invalid_argument, lock.keep({.liveness = -1s}));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  TEST_ASSERT_EQUAL(Status::already_held, lock.keep({}));
  TEST_ASSERT_EQUAL(0U, world.client.kept());  // An explicit lease is not kept unless asked.
}

TEST_ON_SERVER(test_a_hung_worker_should_lose_its_lock) {
  AsioWorld world(server.unix_url());
  Told told;
  for (const bool by_age : {true, false}) {
    told = {};
    AsyncMutex lock(world.client, "k", {.lease = 500ms});
    KeepOptions options = told.options(Keep::always);
    (by_age ? options.max_hold : options.liveness) = 500ms;
    TEST_ASSERT_EQUAL(Status::ok, lock.keep(options));
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
    TEST_ASSERT_TRUE(world.runs_until([&] { return told.lost == 1; }));
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL(Status::lock_lost, world.release(lock));
    TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("EXISTS k") == "0"; }));
  }
}

TEST_ON_SERVER(test_a_worker_that_ticks_should_keep_its_lock) {
  AsioWorld world(server.unix_url());
  Told told;
  AsyncMutex lock(world.client, "k", {.lease = 1500ms});
  KeepOptions options = told.options(Keep::always);
  options.liveness = 1200ms;
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(options));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  TEST_ASSERT_TRUE(world.runs_until([&] {
    lock.tick();
    return world.client.renewal_calls() >= 3;
  }));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0, told.lost);
}

// What extends a hold beside its own renewals, an acquire once more and the release of one of two, counts for its keeping.
TEST_ON_SERVER(test_a_hold_that_was_acquired_again_should_not_be_lost_when_its_first_lease_ends) {
  AsioWorld world(server.unix_url());
  Told told;
  Sole<AsyncReentrantLock> lock(world.client, "k", {.lease = 3s});
  KeepOptions options = told.options(Keep::always);
  options.max_hold = 1ms;  // Nothing renews it.
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(options));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  const Instant first_end = lock.valid_until();
  world.run_for(1s);
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  TEST_ASSERT_TRUE(lock.valid_until() > first_end);
  TEST_ASSERT_TRUE(world.runs_until([&] { return Client::now() > first_end + 100ms; }));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_EQUAL("1", server.command("EXISTS k"));
}

// The turn in which the connection is there again is the first after the end of the hold.
TEST_ON_SERVER(test_a_hold_that_is_over_should_not_be_acquired_once_more_where_the_loop_was_late) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  AsioWorld world(proxy.url());
  Sole<AsyncReentrantLock> lock(world.client, "k", {.lease = 1500ms});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  cut_off(world, proxy, server);
  Outcome again;
  lock.async_acquire(60s, again.handler());
  world.run_for(100ms);  // It has dialled, and waits for the server's word.
  TEST_ASSERT_TRUE(comes([&] { return !lock.held(); }));
  proxy.hold_requests_of(Proxy::none);
  TEST_ASSERT_TRUE(comes([&] { return server.command("CLIENT LIST").find("name=holdfast") != std::string::npos; }));
  breathe(20ms);  // The answer comes through the proxy, too.
  TEST_ASSERT_TRUE(world.runs_until([&] { return again.done(); }));
  TEST_ASSERT_EQUAL(Status::lock_lost, again.status);
  TEST_ASSERT_EQUAL(Status::ok, lock.forget_loss());
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock, 60s));
}

TEST_ON_SERVER(test_a_hold_that_cannot_be_kept_should_be_let_go_of) {
  AsioWorld world(server.unix_url(), {.kept = 2});
  std::deque<AsyncMutex> locks;
  for (const char key : {'0', '1', '2', '3'}) locks.emplace_back(world.client, ByteView(&key, 1));  // Automatic leases.
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks[0]));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks[1]));
  TEST_ASSERT_EQUAL(Status::too_many_requests, world.acquire(locks[2]));
  TEST_ASSERT_FALSE(locks[2].held());
  TEST_ASSERT_TRUE(world.runs_until([&] { return server.command("EXISTS 2") == "0"; }));
  TEST_ASSERT_EQUAL(Status::ok, world.release(locks[0]));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks[2]));
  TEST_ASSERT_EQUAL(2U, world.client.kept());
  locks.clear();
  TEST_ASSERT_EQUAL(0U, world.client.kept());
}
