// SPDX-License-Identifier: MIT
//
// Operations of the Asio client that are cancelled, wherever they are: what a cancelled acquire may have taken is
// released.
#include "asio_fixture.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <deque>
#include <memory>

#include "talk.hpp"

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
    Sole<AsyncReentrantLock> lock(world.client, "k", {.lease = 20s});
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
  Sole<AsyncFencedLock> fenced(world.client, "fenced", {.lease = 60s});
  Sole<AsyncReentrantLock> reentrant(world.client, "reentrant", {.lease = 60s});
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

// ---- At every step -----------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t places = 16;  // What may be in flight and have to be taken back.

// How often a lock's owner was told.
struct Told {
  int at_risk = 0;
  int lost = 0;
};

// One lock over a proxy, whose operation is brought to a step and cancelled there.
struct Patient {
  explicit Patient(RedisServer& its) : server(its), proxy(its.socket_path() + ".proxy", its.socket_path()) {
    ClientConfig config = AsioWorld::patient_config(proxy.url());
    config.request_timeout = 20s;
    config.stall_timeout = 60s;
    config.connect_timeout = 20s;
    world.emplace(config, AsyncLimits{.requests = 2 * places});
    lock.emplace(world->client, "k", LockTiming{.lease = 60s});
    TEST_ASSERT_EQUAL(Status::ok, lock->keep({.on_at_risk = [](void* self) noexcept { ++of(self).at_risk; },
                                              .on_lost = [](void* self) noexcept { ++of(self).lost; },
                                              .context = &told}));
  }
  static Told& of(void* self) { return *static_cast<Told*>(self); }

  // The connection is lost, and the next one is never answered.
  void lose_connection() { cut_off(*world, proxy, server); }
  // All places are taken by what is not answered.
  void take_all_places() {
    proxy.hold_replies_of(Proxy::all);
    for (std::size_t index = 0; index < places; ++index) {
      others.emplace_back(world->client, ByteView("other:" + std::to_string(index)), LockTiming{.lease = 60s});
      others.back().async_acquire(wait_forever, [](std::error_code) {});
    }
  }
  // What was begun stays as it is for a while, is cancelled and says so once.
  void cancel(int way) {
    world->run_for(10ms);
    TEST_ASSERT_EQUAL(0, outcome.calls);
    if (way == 0) signal.emit(asio::cancellation_type::terminal);
    if (way == 1) lock->cancel();
    if (way == 2) world->client.cancel();
    TEST_ASSERT_EQUAL(0, outcome.calls);
    TEST_ASSERT_TRUE(world->runs_until([&] { return outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
  }
  // From here on all is well again, and nothing of before ends what comes.
  void recover() {
    proxy.hold(false);
    others.clear();
    TEST_ASSERT_TRUE(world->runs_until([&] { return world->client.connected(); }));
    TEST_ASSERT_TRUE(world->runs_until([&] { return world->client.compensations_pending() == 0; }));
    TEST_ASSERT_EQUAL(1, outcome.calls);
    TEST_ASSERT_EQUAL(0, told.lost);
  }
  [[nodiscard]] auto token() { return asio::bind_cancellation_slot(signal.slot(), outcome.handler()); }

  RedisServer& server;
  Proxy proxy;
  Told told;
  std::optional<AsioWorld> world;
  std::deque<AsyncMutex> others;
  std::optional<Sole<AsyncReentrantLock>> lock;
  asio::cancellation_signal signal;
  Outcome outcome;
};

enum Place { connection, room, reply, place_count };

void bring_to(Patient& patient, int place) {
  if (place == connection) patient.lose_connection();
  if (place == room) patient.take_all_places();
  if (place == reply) patient.proxy.hold_replies_of(Proxy::all);
}

}  // namespace

TEST_ON_SERVER(test_an_acquire_that_is_cancelled_at_any_step_should_leave_nothing) {
  for (int place = 0; place < place_count; ++place)
    for (int way = 0; way < 3; ++way) {
      TEST_MESSAGE("place " << place << ", way " << way);
      Patient patient(server);
      bring_to(patient, place);
      patient.lock->async_acquire(wait_forever, patient.token());
      patient.cancel(way);
      TEST_ASSERT_FALSE(patient.lock->held());
      // What comes next is not ended by it, wherever it stands.
      Outcome next;
      patient.lock->async_acquire(wait_forever, next.handler());
      patient.recover();
      TEST_ASSERT_TRUE(patient.world->runs_until([&] { return next.done(); }));
      TEST_ASSERT_EQUAL(Status::ok, next.status);
      TEST_ASSERT_EQUAL("1", server.command("HLEN k"));
      TEST_ASSERT_EQUAL(Status::ok, patient.world->release(*patient.lock));
      TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
      TEST_ASSERT_EQUAL("", server.command("PUBSUB CHANNELS"));
    }
}

// The subscription is on its way; it is there; and the try behind a wake-up has been granted by the server.
TEST_ON_SERVER(test_an_acquire_that_is_cancelled_around_its_subscription_should_leave_nothing) {
  enum Moment { subscribing, subscribed, trying, moment_count };
  for (int moment = 0; moment < moment_count; ++moment)
    for (int way = 0; way < 3; ++way) {
      TEST_MESSAGE("moment " << moment << ", way " << way);
      Patient patient(server);
      server.command("HSET k somebody 1");
      const int first = patient.proxy.connections();
      if (moment == subscribing) patient.proxy.hold_replies_of(first);
      patient.lock->async_acquire(wait_forever, patient.token());
      TEST_ASSERT_TRUE(patient.world->runs_until([&] { return server.command("PUBSUB CHANNELS") != ""; }));
      patient.world->run_for(20ms);
      if (moment == trying) {
        patient.proxy.hold_replies_of(first - 1);
        server.command("DEL k");
        server.command("PUBLISH redisson_lock__channel:{k} 0");
        TEST_ASSERT_TRUE(patient.world->runs_until([&] { return server.command("EXISTS k") == "1"; }));
      }
      patient.cancel(way);
      patient.recover();
      TEST_ASSERT_TRUE(patient.world->runs_until([&] { return server.command("PUBSUB CHANNELS") == ""; }));
      TEST_ASSERT_EQUAL(moment == trying ? "0" : "1", server.command("EXISTS k"));
      server.command("DEL k");
      TEST_ASSERT_EQUAL(Status::ok, patient.world->acquire(*patient.lock));
      TEST_ASSERT_EQUAL(Status::ok, patient.world->release(*patient.lock));
    }
}

// There is no server: it waits before it connects once more.
TEST_ON_SERVER(test_an_acquire_should_be_cancelled_while_it_waits_for_a_server) {
  AsioWorld world(server.unix_url());
  AsyncMutex lock(world.client, "k", {.lease = 60s});
  server.stop();
  TEST_ASSERT_TRUE(world.runs_until([&] { return !world.client.connected(); }));
  for (int way = 0; way < 3; ++way) {
    Cancellable acquire(lock);
    world.run_for(30ms);
    TEST_ASSERT_EQUAL(0, acquire.outcome.calls);
    if (way == 0) acquire.signal.emit(asio::cancellation_type::terminal);
    if (way == 1) lock.cancel();
    if (way == 2) world.client.cancel();
    TEST_ASSERT_TRUE(world.runs_until([&] { return acquire.outcome.done(); }));
    TEST_ASSERT_EQUAL(Status::cancelled, acquire.outcome.status);
  }
  Outcome next;
  lock.async_acquire(wait_forever, next.handler());
  server.start();
  TEST_ASSERT_TRUE(world.runs_until([&] { return next.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, next.status);
}

// [issue 10, 14] It is no doubt of the hold, and nobody is told of one.
TEST_ON_SERVER(test_a_renewal_that_is_cancelled_at_any_step_should_leave_the_hold_as_it_is) {
  for (int place = 0; place < place_count; ++place)
    for (int way = 0; way < 3; ++way) {
      TEST_MESSAGE("place " << place << ", way " << way);
      Patient patient(server);
      AsyncReentrantLock& lock = *patient.lock;
      TEST_ASSERT_EQUAL(Status::ok, patient.world->acquire(lock));
      const Instant until = lock.valid_until();
      bring_to(patient, place);
      lock.async_renew(patient.token());
      patient.cancel(way);
      TEST_ASSERT_TRUE(lock.held());
      TEST_ASSERT_FALSE(lock.at_risk());
      TEST_ASSERT_TRUE(lock.valid_until() == until);
      Outcome next;
      lock.async_renew(next.handler());
      patient.recover();
      TEST_ASSERT_TRUE(patient.world->runs_until([&] { return next.done(); }));
      TEST_ASSERT_EQUAL(Status::ok, next.status);
      TEST_ASSERT_TRUE(lock.valid_until() > until);
      TEST_ASSERT_EQUAL(0, patient.told.at_risk);
      TEST_ASSERT_EQUAL(Status::ok, patient.world->release(lock));
    }
}

// One of two, and the last one.
TEST_ON_SERVER(test_a_release_that_is_cancelled_at_any_step_should_still_let_go) {
  for (int place = 0; place < place_count; ++place)
    for (int way = 0; way < 3; ++way)
      for (const std::uint32_t count : {1U, 2U}) {
        TEST_MESSAGE("place " << place << ", way " << way << ", count " << count);
        Patient patient(server);
        AsyncReentrantLock& lock = *patient.lock;
        for (std::uint32_t index = 0; index < count; ++index)
          TEST_ASSERT_EQUAL(Status::ok, patient.world->acquire(lock));
        bring_to(patient, place);
        lock.async_release(patient.token());
        patient.cancel(way);
        TEST_ASSERT_EQUAL(count - 1, lock.hold_count());
        if (count == 1) TEST_ASSERT_EQUAL(Status::not_held, lock.post_release());
        Outcome next;
        lock.async_acquire(wait_forever, next.handler());
        patient.recover();
        TEST_ASSERT_TRUE(patient.world->runs_until([&] { return next.done(); }));
        TEST_ASSERT_EQUAL(Status::ok, next.status);
        TEST_ASSERT_EQUAL(count, lock.hold_count());
        const std::string field(lock.token().bytes().string_view());
        TEST_ASSERT_EQUAL(std::to_string(count), server.command("HGET k " + field));
        TEST_ASSERT_EQUAL("1", server.command("HLEN k"));
        for (std::uint32_t index = 0; index < count; ++index)
          TEST_ASSERT_EQUAL(Status::ok, patient.world->release(lock));
        TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
      }
}

// Its connection went away under it, and it waits for the next one to tell what became of it.
TEST_ON_SERVER(test_a_release_that_is_cancelled_behind_a_lost_connection_should_still_let_go) {
  for (int way = 0; way < 3; ++way) {
    Patient patient(server);
    TEST_ASSERT_EQUAL(Status::ok, patient.world->acquire(*patient.lock));
    patient.proxy.hold_requests_of(Proxy::all);
    patient.lock->async_release(patient.token());
    patient.world->run_for(10ms);
    patient.lose_connection();
    patient.cancel(way);
    TEST_ASSERT_FALSE(patient.lock->held());
    Outcome next;
    patient.lock->async_acquire(wait_forever, next.handler());
    patient.recover();
    TEST_ASSERT_TRUE(patient.world->runs_until([&] { return next.done(); }));
    TEST_ASSERT_EQUAL(Status::ok, next.status);
    TEST_ASSERT_EQUAL("1", server.command("HLEN k"));
    TEST_ASSERT_EQUAL(Status::ok, patient.world->release(*patient.lock));
  }
}

TEST_ON_SERVER(test_a_query_that_is_cancelled_at_any_step_should_end_no_other) {
  for (int place = 0; place < place_count; ++place)
    for (int way = 0; way < 3; ++way) {
      TEST_MESSAGE("place " << place << ", way " << way);
      Patient patient(server);
      server.command("HSET k somebody 1");
      bring_to(patient, place);
      Duration untouched = 77s;
      patient.lock->async_remaining_on_server(untouched, patient.token());
      patient.cancel(way);
      server.command("PEXPIRE k 50000");
      Duration remaining{};
      Outcome next;
      patient.lock->async_remaining_on_server(remaining, next.handler());
      patient.recover();
      TEST_ASSERT_TRUE(patient.world->runs_until([&] { return next.done(); }));
      TEST_ASSERT_EQUAL(Status::ok, next.status);
      TEST_ASSERT_TRUE(remaining > 10s && remaining <= 50s);
      TEST_ASSERT_TRUE(untouched == 77s);
      server.command("DEL k");
    }
}

// ---- Word for word -----------------------------------------------------------------------------------------------

namespace {

// The identity is not told.
const std::string handshake = "+OK\r\n:7\r\n-ERR unknown command\r\n";

}  // namespace

// [issue 10, 14] An attempt's own question for the remaining time outlives it.
TEST(test_the_answer_to_a_cancelled_acquire_should_not_be_that_of_the_next_query) {
  Talk talk;
  asio::io_context loop;
  AsyncClient client(loop.get_executor());
  Outcome connected;
  client.async_connect(AsioWorld::patient_config(talk.url()), connected.handler());
  const auto hears = [&](const std::string& words) { return runs_until(loop, [&] { return talk.hears(0, words); }); };
  TEST_ASSERT_TRUE(hears("master_replid"));
  talk.say(0, handshake);
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return connected.done(); }));
  AsyncMutex lock(client, "k", {.lease = 60s}, {.announce = true});
  Outcome acquired;
  lock.async_acquire(wait_forever, acquired.handler());
  TEST_ASSERT_TRUE(hears("\r\nSET\r\n"));
  talk.say(0, "$-1\r\n");
  TEST_ASSERT_TRUE(hears("\r\nPTTL\r\n"));  // By the second attempt.
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return talk.hears(1, "\r\nSUBSCRIBE\r\n"); }));
  talk.say(1, "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$26\r\nredisson_lock__channel:{k}\r\n:1\r\n");
  run_for(loop, 20ms);
  talk.say(0, "$-1\r\n:60000\r\n");
  TEST_ASSERT_TRUE(hears("\r\nPTTL\r\n"));  // By the one behind the confirmation, after which it waits for long.
  talk.say(0, "$-1\r\n");
  run_for(loop, 20ms);
  TEST_ASSERT_EQUAL(0, acquired.calls);
  lock.cancel();
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return acquired.done(); }));
  TEST_ASSERT_EQUAL(Status::cancelled, acquired.status);
  Duration remaining{};
  Outcome asked;
  lock.async_remaining_on_server(remaining, asked.handler());
  TEST_ASSERT_TRUE(hears("\r\nPTTL\r\n"));
  talk.say(0, ":1000\r\n");
  run_for(loop, 20ms);
  TEST_ASSERT_EQUAL(0, asked.calls);
  talk.say(0, ":2000\r\n");
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return asked.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, asked.status);
  TEST_ASSERT_TRUE(remaining == 2s);
}

// [issue 10, 14] What a cancelled release has left is answered while the next one waits for its own word.
TEST(test_the_compensation_of_a_cancelled_release_should_not_end_the_next_release) {
  Talk talk;
  asio::io_context loop;
  AsyncClient client(loop.get_executor());
  Outcome connected;
  client.async_connect(AsioWorld::patient_config(talk.url()), connected.handler());
  std::size_t current = 0;  // Of the connections.
  const auto hears = [&](const std::string& words) {
    return runs_until(loop, [&] { return talk.hears(current, words); });
  };
  const auto shakes_hands = [&] {
    TEST_ASSERT_TRUE(hears("master_replid"));
    talk.say(current, handshake);
  };
  shakes_hands();
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return connected.done(); }));
  AsyncMutex lock(client, "k", {.lease = 60s});
  Outcome released[2];
  for (int round = 0; round < 2; ++round) {
    Outcome acquired;
    lock.async_acquire(1s, acquired.handler());
    TEST_ASSERT_TRUE(hears("\r\nSET\r\n"));
    talk.say(current, "+OK\r\n");
    TEST_ASSERT_TRUE(runs_until(loop, [&] { return acquired.done(); }));
    TEST_ASSERT_EQUAL(Status::ok, acquired.status);
    if (round == 1) run_for(loop, 2100ms);  // Until the first is to be tried again: for that there is no event.
    lock.async_release(released[round].handler());
    TEST_ASSERT_TRUE(hears("EVALSHA"));
    talk.hang_up(current);
    ++current;
    TEST_ASSERT_TRUE(runs_until(loop, [&] { return talk.connections() > current; }));
    if (round == 0) lock.cancel();
    shakes_hands();
    TEST_ASSERT_TRUE(hears("EVAL"));
    if (round == 0) talk.say(current, "-LOADING for a while\r\n");
  }
  TEST_ASSERT_EQUAL(Status::cancelled, released[0].status);
  run_for(loop, 20ms);
  talk.say(current, ":0\r\n");  // Of the first,
  run_for(loop, 20ms);
  TEST_ASSERT_EQUAL(0, released[1].calls);
  talk.say(current, ":1\r\n");  // and of the second.
  TEST_ASSERT_TRUE(runs_until(loop, [&] { return released[1].done(); }));
  TEST_ASSERT_EQUAL(Status::ok, released[1].status);
}
