// SPDX-License-Identifier: MIT
//
// Keeping holds alive when connections, servers and threads stand still. Whatever it is: held() is never true past the
// bound, what is lost stays lost, and nothing late of one hold touches the next.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clients.hpp"
#include "patience.hpp"
#include "proxy.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

// Short enough to be seen running out, long enough for a busy machine.
constexpr Duration lease = 600ms;

std::string proxy_path(const RedisServer& server) { return server.socket_path() + ".proxy"; }

struct Told {
  std::atomic<int> at_risk = 0;
  std::atomic<int> lost = 0;
  KeepOptions options() {
    return {.keep = Keep::always,
            .on_at_risk = [](void* self) noexcept { ++static_cast<Told*>(self)->at_risk; },
            .on_lost = [](void* self) noexcept { ++static_cast<Told*>(self)->lost; },
            .context = this};
  }
};

// A callback that goes on when it is let.
struct Gate {
  std::atomic<bool> entered = false;
  std::atomic<bool> open = false;
  KeepOptions options() {
    return {.keep = Keep::always,
            .on_lost =
                [](void* context) noexcept {
                  auto& self = *static_cast<Gate*>(context);
                  self.entered = true;
                  (void)comes([&] { return self.open.load(); }, 60s);
                },
            .context = this};
  }
  ~Gate() { open = true; }
};

// The connection that renewals go over: once a hold is kept, a watchdog has one of its own. The Asio client has but one.
#ifdef HOLDFAST_TEST_ASIO
constexpr int renewing = 0;
#else
constexpr int renewing = 1;
#endif

// A client and its watchdog, behind a proxy.
struct Kept {
  Kept(const RedisServer& server, const std::string& url) : url_(url) {
    ClientConfig config = config_for(url);
    config.request_timeout = 2s;
    config.connect_timeout = 5s;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
    TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
    TEST_ASSERT_EQUAL("PONG", server.command("PING"));
  }
  std::string url_;
  Client client;
  Owner owner{client};
  WatchdogPlaces<8> places;
  Watchdog watchdog{places.storage()};
};

// Until the bound is over held() is true, and not a moment longer. True if it is so.
bool held_until_its_bound(const BlockingLock& lock) {
  for (;;) {
    const Instant before = Client::now();
    const Instant until = lock.valid_until();
    const bool held = lock.held();
    const Instant after = Client::now();
    if (until == Instant()) return !held;
    if (held && before >= until) return false;
    if (!held) return after >= until;
    breathe(1ms);
  }
}

}  // namespace

// ---- Late renewals -----------------------------------------------------------------------------------------------

// The reply to the watchdog's renewal of one hold comes when the same lock, with a shorter lease, is held anew.
TEST_ON_SERVER(test_renewal_confirmed_after_release_should_not_extend_the_next_hold) {  // [rule 2]
  Proxy proxy(proxy_path(server), server.socket_path());
  Kept kept(server, proxy.url());
  Told told;
  ReentrantLock long_lock(kept.owner, "k", {.lease = 2400ms});
  ReentrantLock short_lock(kept.owner, "k", {.lease = 600ms});
  TEST_ASSERT_EQUAL(Status::ok, long_lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, long_lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, long_lock.renew());  // The server knows the script.
  TEST_ASSERT_TRUE(comes([&] { return proxy.connections() == renewing + 1; }));
  breathe(100ms);  // The handshake is through.
  proxy.hold_replies_of(renewing);
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= 1; }));
  TEST_ASSERT_TRUE(comes([&] { return server.calls("hexists") >= 2; }));
#ifdef HOLDFAST_TEST_ASIO  // Behind that reply, on the same connection.
  TEST_ASSERT_EQUAL(Status::ok, long_lock.post_release());
  Status acquired = Status::ok;
  std::thread acquiring([&] { acquired = short_lock.try_acquire(); });
  const bool taken = comes([&] { return server.calls("hset") >= 2; });
  proxy.hold_replies_of(Proxy::none);
  acquiring.join();
  TEST_ASSERT_TRUE(taken);
  TEST_ASSERT_EQUAL(Status::ok, acquired);
#else
  TEST_ASSERT_EQUAL(Status::ok, long_lock.release());
  TEST_ASSERT_EQUAL(Status::ok, short_lock.try_acquire());
  proxy.hold_replies_of(Proxy::none);
#endif
  for (const Instant until = Client::now() + 400ms; Client::now() < until; breathe(1ms)) {
    TEST_ASSERT_TRUE(short_lock.remaining() <= 600ms);
    TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) <= 600);
  }
  TEST_ASSERT_EQUAL(0, told.lost);
  (void)short_lock.release();
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k") == "0"; }));
}

// A slow reply promises no more than a quick one.
TEST_ON_SERVER(test_bound_should_count_from_when_the_renewal_was_asked) {  // [rule 3]
  Proxy proxy(proxy_path(server), server.socket_path());
  Kept kept(server, proxy.url());
  Told told;
  ReentrantLock lock(kept.owner, "k", {.lease = 2400ms});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());  // The server knows the script.
  const Instant until = lock.valid_until();
  TEST_ASSERT_TRUE(comes([&] { return proxy.connections() == renewing + 1; }));
  breathe(100ms);  // The handshake is through.
  proxy.hold_replies_of(renewing);
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= 1; }));
  const Instant asked = Client::now();
  breathe(150ms);
  TEST_ASSERT_EQUAL(until, lock.valid_until());
  proxy.hold_replies_of(Proxy::none);
  Instant later = until;
  TEST_ASSERT_TRUE(comes([&] { return (later = lock.valid_until()) > until; }));
  TEST_ASSERT_TRUE(later <= asked + (2400ms - drift_of(2400ms)));
}

#ifndef HOLDFAST_TEST_ASIO  // One connection: what was asked before a release runs before it.
// The renewal itself arrives that late.
TEST_ON_SERVER(test_renewal_that_runs_after_release_should_not_extend_the_next_hold) {  // [rule 1]
  Proxy proxy(proxy_path(server), server.socket_path());
  Kept kept(server, proxy.url());
  Told told;
  ReentrantLock long_lock(kept.owner, "k", {.lease = 2400ms});
  ReentrantLock short_lock(kept.owner, "k", {.lease = 600ms});
  TEST_ASSERT_EQUAL(Status::ok, long_lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, long_lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, long_lock.renew());  // The server knows the script.
  TEST_ASSERT_TRUE(comes([&] { return proxy.connections() == renewing + 1 && proxy.requested(renewing) > 0; }));
  breathe(100ms);  // The handshake is through.
  proxy.hold_requests_of(renewing);
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= 1; }));
  const std::int64_t before = proxy.requested(renewing);
  TEST_ASSERT_EQUAL(Status::ok, long_lock.release());
  TEST_ASSERT_EQUAL(Status::ok, short_lock.try_acquire());
  proxy.hold_requests_of(Proxy::none);
  TEST_ASSERT_TRUE(comes([&] { return proxy.requested(renewing) > before; }));
  for (const Instant until = Client::now() + 300ms; Client::now() < until; breathe(1ms)) {
    TEST_ASSERT_TRUE(short_lock.remaining() <= 600ms);
    TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) <= 600);
  }
  TEST_ASSERT_EQUAL(0, told.lost);
  (void)short_lock.release();
}
#endif

// The server has extended the lease, and the word of it comes when the bound has passed.
TEST_ON_SERVER(test_renewal_confirmed_after_the_bound_should_revive_nothing) {  // [rule 2]
  Proxy proxy(proxy_path(server), server.socket_path());
  Kept kept(server, proxy.url());
  Told told;
  FencedLock lock(kept.owner, "k", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= 1; }));
  proxy.hold_replies_of(renewing);
  TEST_ASSERT_TRUE(held_until_its_bound(lock));
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
  proxy.hold_replies_of(Proxy::none);
  for (const Instant until = Client::now() + 200ms; Client::now() < until; breathe(1ms)) TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.try_acquire());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(1, told.lost);
  TEST_ASSERT_EQUAL(1, told.at_risk);
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  // What the server still keeps for us is taken back.
  TEST_ASSERT_TRUE(comes([&] {
    bool locked = true;
    return lock.is_locked(locked) == Status::ok && !locked;
  }));
}

// ---- Callbacks ---------------------------------------------------------------------------------------------------

#ifndef HOLDFAST_TEST_ASIO  // A callback that stands still is a loop that stands still, and every call with it.
// The watchdog's thread stands still in another hold's callback when this one's end passes, and it is released.
TEST_ON_SERVER(test_no_call_should_begin_after_release) {
  Kept kept(server, server.unix_url());
  Gate gate;
  Told told;
  Told next;
  Mutex blocker(kept.client, "blocker", {.lease = lease});
  Mutex lock(kept.client, "k", {.lease = 300ms});
  Mutex other(kept.client, "other", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, blocker.keep(gate.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, other.keep(next.options()));
  TEST_ASSERT_EQUAL(Status::ok, blocker.try_acquire());
  server.command("DEL blocker");
  TEST_ASSERT_TRUE(comes([&] { return gate.entered.load(); }));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
  TEST_ASSERT_TRUE(held_until_its_bound(lock));
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  server.command("DEL other");
  gate.open = true;
  TEST_ASSERT_TRUE(comes([&] { return next.lost == 1; }));  // So the thread has come round.
  server.command("SET k somebody");
  // Nor by the client's own calls.
  TEST_ASSERT_EQUAL(Status::not_held, lock.renew());
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_EQUAL(0, told.at_risk);
}
#endif

TEST_ON_SERVER(test_no_call_should_begin_after_a_release_without_a_watchdog) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Owner owner(client);
  Mutex mutex(client, "k", {.lease = 60ms});
  ReentrantLock reentrant(owner, "k", {.lease = 60ms});
  for (BlockingLock* lock : {static_cast<BlockingLock*>(&mutex), static_cast<BlockingLock*>(&reentrant)}) {
    for (const bool posted : {false, true}) {
      Told told;
      TEST_ASSERT_EQUAL(Status::ok, lock->keep(told.options()));
      TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock->try_acquire(); }, Status::ok));
      TEST_ASSERT_TRUE(held_until_its_bound(*lock));
      TEST_ASSERT_EQUAL(Status::lock_lost, posted ? lock->post_release() : lock->release());
      server.command("SET k somebody");
      TEST_ASSERT_EQUAL(Status::not_held, lock->renew());
      TEST_ASSERT_EQUAL(Status::lock_busy, lock->try_acquire());
      (void)client.tend();
      TEST_ASSERT_EQUAL(0, told.lost);
      TEST_ASSERT_EQUAL(0, told.at_risk);
      server.command("DEL k");
      TEST_ASSERT_EQUAL(Status::ok, lock->keep({}));
    }
  }
}

// What was posted has no deadline, and nobody waits for it.
TEST_ON_SERVER(test_tend_should_not_wait_for_the_reply_to_a_posted_release) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  ClientConfig config = config_for(proxy.url());
  config.request_timeout = 500ms;
  config.stall_timeout = 60s;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex kept(client, "kept", {.lease = 3s});
  Mutex posted(client, "posted", {.lease = 60s});
  for (Mutex* lock : {&kept, &posted}) {
    TEST_ASSERT_EQUAL(Status::ok, lock->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  }
  proxy.hold(true);
  TEST_ASSERT_EQUAL(Status::ok, posted.post_release());
  breathe(kept.renewal_due() - Client::now());
  const Instant begin = Client::now();
  (void)client.tend();
  TEST_ASSERT_TRUE(Client::now() - begin < 20s);
  expect_post_outcome(Status::outcome_unknown, posted);
  proxy.hold(false);
}

// ---- Standing still ----------------------------------------------------------------------------------------------

#ifndef HOLDFAST_TEST_ASIO  // A loop reads what comes.
// Renewals that were given up have their places until they are answered, and no other finds one.
TEST_ON_SERVER(test_tend_should_be_due_soon_while_a_renewal_finds_no_room) {
  Client client;
  ClientConfig config = config_for(server.unix_url());
  config.request_timeout = 300ms;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  std::vector<std::unique_ptr<Mutex>> locks;
  for (std::size_t index = 0; index < holdfast::in_flight_max; ++index) {
    locks.push_back(std::make_unique<Mutex>(client, "k" + std::to_string(index), LockTiming{.lease = 6s}));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->try_acquire());
  }
  const Instant end = locks.front()->valid_until();
  Instant next = client.tend();
  const auto wait = [&] {
    while (Client::now() < next) breathe(1ms);
  };
  wait();
  server.pause();
  next = client.tend();
  server.resume();
  TEST_ASSERT_TRUE(next < end - 1s);
  for (const auto& lock : locks)
    TEST_ASSERT_TRUE(comes([&] {
      wait();
      next = client.tend();
      return lock->valid_until() > end + 1s;
    }));
}
#endif

TEST_ON_SERVER(test_held_should_be_right_while_the_watchdogs_thread_stands_still) {  // [rule 5]
  Kept kept(server, server.unix_url());
  Gate gate;
  Mutex blocker(kept.client, "blocker", {.lease = lease});
  Told told;
  FencedLock lock(kept.owner, "k", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, blocker.keep(gate.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, blocker.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("DEL blocker");
  TEST_ASSERT_TRUE(comes([&] { return gate.entered.load(); }));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_TRUE(held_until_its_bound(lock));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_FALSE(gate.open);
  TEST_ASSERT_EQUAL(0, told.lost);  // Nobody could say so yet, and held() did not need to be told.
  gate.open = true;
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
  TEST_ASSERT_FALSE(lock.held());
}

TEST_ON_SERVER(test_held_should_be_right_while_the_server_stands_still) {
  Kept kept(server, server.tcp_url());
  Told told;
  FencedLock lock(kept.owner, "k", {.lease = lease});
  Mutex mutex(kept.client, "m", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, mutex.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, mutex.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= 2; }));
  server.pause();
  const bool right = held_until_its_bound(lock) && held_until_its_bound(mutex);
  const bool said = comes([&] { return told.lost == 2; });
  server.resume();
  TEST_ASSERT_TRUE(right);
  TEST_ASSERT_TRUE(said);
  TEST_ASSERT_TRUE(told.at_risk == 2);
  for (const Instant until = Client::now() + 200ms; Client::now() < until; breathe(1ms)) {
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_FALSE(mutex.held());
  }
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(Status::lock_lost, mutex.release());
  // The next holds of the same names are kept as if nothing had been.
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
  const std::uint64_t calls = kept.watchdog.calls();
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= calls + 3; }));
  TEST_ASSERT_TRUE(lock.held());
}

TEST_ON_SERVER(test_paused_clients_beyond_the_lease_should_be_a_loss_that_stays) {
  Kept kept(server, server.unix_url());
  Told told;
  ReentrantLock lock(kept.owner, "k", {.lease = 400ms});
  RawConnection control(server.socket_path());
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= 1; }));
  TEST_ASSERT_EQUAL("OK", control.command("CLIENT PAUSE 800 ALL"));
  TEST_ASSERT_TRUE(held_until_its_bound(lock));
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
  TEST_ASSERT_EQUAL("PONG", server.command("PING"));  // The pause is over, and what piled up has run.
  for (const Instant until = Client::now() + 100ms; Client::now() < until; breathe(1ms)) TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k") == "0"; }));
}

// ---- Connections and servers that go -----------------------------------------------------------------------------

// Each byte of a renewal's reply may be the connection's last.
TEST_ON_SERVER(test_hold_should_be_kept_wherever_the_reply_to_a_renewal_is_cut) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Kept kept(server, proxy.url());
  Told told;
  ReentrantLock lock(kept.owner, "k", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());  // The server knows the script.
  for (std::int64_t bytes = 0; bytes <= 8; ++bytes) {
    const Instant until = lock.valid_until();
    TEST_ASSERT_TRUE(comes([&] { return lock.valid_until() > until; }));
    proxy.cut_after(bytes);
    TEST_ASSERT_TRUE(comes([&] { return proxy.cut_done(); }));
    TEST_ASSERT_TRUE(lock.held());
  }
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_EQUAL("1", server.command("HLEN k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

TEST_ON_SERVER(test_stalled_connection_of_the_watchdog_should_be_replaced_in_time) {
  Proxy proxy(proxy_path(server), server.socket_path());
  ClientConfig config = config_for(proxy.url());
  config.stall_timeout = 150ms;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  WatchdogPlaces<2> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Told told;
  Mutex lock(client, "k", {.lease = 1800ms});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return watchdog.calls() >= 1; }));
  const int before = proxy.connections();
  proxy.swallow_replies_of(before - 1);
  TEST_ASSERT_TRUE(comes([&] { return proxy.connections() > before; }));
  proxy.swallow_replies_of(Proxy::none);
  TEST_ASSERT_TRUE(comes([&] { return told.at_risk >= 1 && !lock.at_risk(); }));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0, told.lost);
}

#ifndef HOLDFAST_TEST_ASIO  // Which has one connection, and grants nothing while it is made.
TEST_ON_SERVER(test_loss_should_be_told_in_time_while_the_watchdog_waits_for_a_connection) {
  Proxy proxy(proxy_path(server), server.socket_path());
  Kept kept(server, proxy.url());
  Told told;
  Mutex first(kept.client, "k1", {.lease = 30s});
  Mutex second(kept.client, "k2", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, first.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, second.keep(told.options()));
  proxy.delay_new(60s);
  const int before = proxy.connections();
  TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return proxy.connections() > before; }));  // And is greeted by nobody for five seconds.
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  const Instant end = second.valid_until();
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
  TEST_ASSERT_TRUE(Client::now() < end + 3s);
  TEST_ASSERT_FALSE(second.held());
  TEST_ASSERT_TRUE(first.held());
}
#endif

TEST_ON_SERVER(test_restart_with_data_should_leave_the_hold, "--appendonly", "yes", "--appendfsync", "no") {
  Kept kept(server, server.tcp_url());
  Told told;
  FencedLock lock(kept.owner, "k", {.lease = 3s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= 1; }));
  server.stop();
  server.start();
  const Instant until = lock.valid_until();
  TEST_ASSERT_TRUE(comes([&] { return lock.valid_until() > until; }));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.renew(); }, Status::ok));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

TEST_ON_SERVER(test_restart_without_data_should_be_told_and_not_recreated) {
  Kept kept(server, server.tcp_url());
  Told told;
  Mutex mutex(kept.client, "m", {.lease = 3s});
  ReentrantLock lock(kept.owner, "k", {.lease = 3s});
  for (BlockingLock* one : {static_cast<BlockingLock*>(&mutex), static_cast<BlockingLock*>(&lock)}) {
    TEST_ASSERT_EQUAL(Status::ok, one->keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, one->try_acquire());
  }
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= 1; }));
  server.stop();
  server.start();
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 2; }));
  TEST_ASSERT_FALSE(mutex.held());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_killed_connections_and_forgotten_scripts_should_not_be_noticed) {
  Kept kept(server, server.tcp_url());
  Told told;
  FencedLock lock(kept.owner, "k", {.lease = lease});
  Mutex mutex(kept.client, "m", {.lease = lease});
  for (BlockingLock* one : {static_cast<BlockingLock*>(&mutex), static_cast<BlockingLock*>(&lock)}) {
    TEST_ASSERT_EQUAL(Status::ok, one->keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, one->try_acquire());
  }
  for (const Instant until = Client::now() + 2 * lease; Client::now() < until; breathe(lease / 10)) {
    server.command("CLIENT KILL TYPE normal SKIPME yes");
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_TRUE(mutex.held());
  }
  TEST_ASSERT_EQUAL(0, told.lost);
}

// A renewal is in flight when the watchdog ends, and another watchdog's life goes on with the same places.
TEST_ON_SERVER(test_stop_should_not_mind_a_renewal_in_flight) {
  Kept kept(server, server.unix_url());
  Told told;
  Mutex mutex(kept.client, "m", {.lease = 2400ms});
  ReentrantLock lock(kept.owner, "k", {.lease = 2400ms});
  for (BlockingLock* one : {static_cast<BlockingLock*>(&mutex), static_cast<BlockingLock*>(&lock)}) {
    TEST_ASSERT_EQUAL(Status::ok, one->keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, one->try_acquire());
  }
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= 2; }));
  for (int turn = 0; turn < 5; ++turn) {  // More often than calls may be in flight at once.
    const std::uint64_t before = kept.watchdog.calls();
    server.pause();
    // Within a third of the lease one is asked for; or it had been when the server stopped, and no other follows it.
    (void)comes([&] { return kept.watchdog.calls() > before; }, 1s);
    kept.watchdog.stop();
    server.resume();
    TEST_ASSERT_TRUE(mutex.held());
    TEST_ASSERT_TRUE(lock.held());
    const Instant until = lock.valid_until();
    TEST_ASSERT_EQUAL(Status::ok, kept.watchdog.start(kept.client));
    TEST_ASSERT_TRUE(comes([&] { return lock.valid_until() > until && !mutex.at_risk(); }));
  }
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_EQUAL(Status::ok, mutex.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// ---- Others that meddle ------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_key_that_others_took_should_be_a_loss_and_stay_theirs) {
  Kept kept(server, server.unix_url());
  for (const char* const meddling : {"DEL k", "SET k somebody", "HSET k somebody 1", "RPUSH k somebody", "SADD k a"}) {
    TEST_MESSAGE("after " << std::string(meddling));
    Told told;
    Told others;
    ReentrantLock lock(kept.owner, "k", {.lease = lease});
    ReentrantLock neighbour(kept.owner, "n", {.lease = lease});  // In the same calls.
    TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, neighbour.keep(others.options()));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, neighbour.try_acquire());
    server.command("DEL k");
    server.command(meddling);
    const std::string theirs = server.command("DUMP k");
    TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    TEST_ASSERT_EQUAL(theirs, server.command("DUMP k"));
    TEST_ASSERT_TRUE(neighbour.held());
    TEST_ASSERT_EQUAL(0, others.lost);
    TEST_ASSERT_EQUAL(Status::ok, neighbour.release());
    server.command("DEL k");
  }
}

// What the server refuses is a doubt, and the end comes by the clock.
TEST_ON_SERVER(test_refused_renewals_should_be_at_risk_and_then_lost_and_be_over_when_they_are_granted_again) {
  server.command("ACL SETUSER joe on >secret ~* &* +@all");
  ClientConfig config = config_for(server.unix_url());
  config.user = "joe";
  config.password = "secret";
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  WatchdogPlaces<4> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Owner owner(client);
  for (const char* const missing : {"evalsha", "hexists"}) {
    TEST_MESSAGE("without " << std::string(missing));
    Told told;
    ReentrantLock lock(owner, "k", {.lease = 2 * lease});  // It must not be over before it is at risk.
    TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    server.command(std::string("ACL SETUSER joe -") + missing);
    TEST_ASSERT_TRUE(comes([&] { return told.at_risk == 1; }));
    server.command(std::string("ACL SETUSER joe +") + missing);
    TEST_ASSERT_TRUE(comes([&] { return !lock.at_risk(); }));
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(0, told.lost);
    server.command(std::string("ACL SETUSER joe -") + missing);
    TEST_ASSERT_TRUE(held_until_its_bound(lock));
    TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    server.command(std::string("ACL SETUSER joe +") + missing);
    TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k") == "0"; }));
  }
}

TEST_ON_SERVER(test_replica_should_mean_at_risk_and_the_promoted_one_keep_the_hold) {
  Kept kept(server, server.unix_url());
  Told told;
  Mutex mutex(kept.client, "m", {.lease = 3s});
  ReentrantLock lock(kept.owner, "k", {.lease = 3s});
  for (BlockingLock* one : {static_cast<BlockingLock*>(&mutex), static_cast<BlockingLock*>(&lock)}) {
    TEST_ASSERT_EQUAL(Status::ok, one->keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, one->try_acquire());
  }
  server.command("REPLICAOF 127.0.0.1 1");
  TEST_ASSERT_TRUE(comes([&] { return told.at_risk == 2; }));
  server.command("REPLICAOF NO ONE");
  TEST_ASSERT_TRUE(comes([&] { return !mutex.at_risk() && !lock.at_risk(); }));
  TEST_ASSERT_TRUE(mutex.held());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_EQUAL(Status::ok, mutex.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_SERVER(test_full_memory_should_not_keep_renewals_from_theirs) {
  Kept kept(server, server.unix_url());
  Told told;
  Mutex mutex(kept.client, "m", {.lease = lease});
  FencedLock lock(kept.owner, "k", {.lease = lease});
  for (BlockingLock* one : {static_cast<BlockingLock*>(&mutex), static_cast<BlockingLock*>(&lock)}) {
    TEST_ASSERT_EQUAL(Status::ok, one->keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, one->try_acquire());
  }
  server.command("CONFIG SET maxmemory 1");
  const std::uint64_t before = kept.watchdog.calls();
  TEST_ASSERT_TRUE(comes([&] { return kept.watchdog.calls() >= before + 6; }));
  TEST_ASSERT_TRUE(mutex.held());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0, told.lost + told.at_risk);
  TEST_ASSERT_EQUAL(Status::ok, mutex.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}
