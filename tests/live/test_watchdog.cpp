// SPDX-License-Identifier: MIT
//
// Holds that are kept alive: by the watchdog's thread, and by tend() where there is none.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clients.hpp"
#include "proxy.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

// Short enough to be seen running out, long enough for a busy machine.
constexpr Duration lease = 900ms;

// A client whose holds a watchdog keeps.
struct Guarded {
  explicit Guarded(const RedisServer& server) {
    connected(client, server);
    TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  }
  Client client;
  WatchdogPlaces<8> places;
  Watchdog watchdog{places.storage()};
};

struct Told {
  std::atomic<int> at_risk = 0;
  std::atomic<int> lost = 0;
  KeepOptions options(Keep keep = Keep::always) {
    return {.keep = keep,
            .on_at_risk = [](void* self) noexcept { ++static_cast<Told*>(self)->at_risk; },
            .on_lost = [](void* self) noexcept { ++static_cast<Told*>(self)->lost; },
            .context = this};
  }
};

void breathe(Duration duration) { std::this_thread::sleep_for(duration); }

bool comes(const std::function<bool()>& condition, Duration limit = 10s) {
  for (const Instant until = Client::now() + limit; Client::now() < until; breathe(2ms))
    if (condition()) return true;
  return false;
}

}  // namespace

TEST_ON_SERVER(test_watchdog_should_keep_a_hold_beyond_its_lease_and_end_with_its_release) {
  Guarded guarded(server);
  Client& client = guarded.client;
  Told told;
  Owner owner(client);
  constexpr Duration calm_lease = 2 * lease;  // A busy machine is no risk.
  Mutex mutex(client, "m", {.lease = calm_lease});
  FencedLock fenced(owner, "f", {.lease = calm_lease});
  TEST_ASSERT_EQUAL(Status::ok, mutex.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, fenced.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, mutex.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, fenced.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, fenced.try_acquire());
  const std::uint64_t fence = fenced.fence();
  for (const Instant until = Client::now() + 3 * calm_lease / 2; Client::now() < until; breathe(10ms)) {
    TEST_ASSERT_TRUE(mutex.held());
    TEST_ASSERT_TRUE(fenced.held());
  }
  TEST_ASSERT_EQUAL(mutex.token().bytes(), ByteView(server.command("GET m")));
  TEST_ASSERT_EQUAL(std::size_t{2}, guarded.watchdog.size());
  TEST_ASSERT_EQUAL(Status::ok, mutex.renew());  // The client's own works beside it.
  TEST_ASSERT_EQUAL(Status::ok, fenced.release());
  TEST_ASSERT_EQUAL(fence, fenced.fence());
  TEST_ASSERT_EQUAL(std::size_t{2}, guarded.watchdog.size());
  TEST_ASSERT_EQUAL(Status::ok, fenced.release());
  TEST_ASSERT_EQUAL(Status::ok, mutex.release());
  TEST_ASSERT_EQUAL(std::size_t{0}, guarded.watchdog.size());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS m f"));
  TEST_ASSERT_EQUAL(0, told.at_risk);
  TEST_ASSERT_EQUAL(0, told.lost);
}

TEST_ON_SERVER(test_explicit_lease_should_run_out_and_the_automatic_one_be_kept) {
  Guarded guarded(server);
  Client& client = guarded.client;
  Mutex explicit_lease(client, "e", {.lease = 300ms});
  Mutex automatic(client, "a");
  Mutex of_that_length(client, "t", {.lease = 2s, .kept = true});
  TEST_ASSERT_EQUAL(Status::ok, explicit_lease.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, automatic.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, of_that_length.try_acquire());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL t")) <= 2000);
  TEST_ASSERT_EQUAL(std::size_t{2}, guarded.watchdog.size());
  const Instant first_end = of_that_length.valid_until();
  TEST_ASSERT_TRUE(comes([&] { return !explicit_lease.held(); }));
  TEST_ASSERT_TRUE(automatic.held());
  TEST_ASSERT_TRUE(comes([&] { return of_that_length.valid_until() > first_end; }));
}

#ifndef HOLDFAST_TEST_ASIO  // The loop keeps what it holds without a watchdog: test_owner.cpp looks.
TEST_ON_SERVER(test_inner_automatic_lease_should_have_the_hold_kept_from_then_on) {
  for (const bool watched : {true, false}) {
    Guarded guarded(server);
    if (!watched) guarded.client.attach(nullptr);
    Owner owner(guarded.client);
    ReentrantLock outer(owner, "k", {.lease = lease});
    ReentrantLock inner(owner, "k", {.lease = lease, .kept = true});
    ReentrantLock longer(owner, "k", {.lease = 3 * lease});
    const auto lives = [&](Duration duration) {
      for (const Instant until = Client::now() + duration; Client::now() < until; breathe(10ms)) {
        if (!watched) (void)guarded.client.tend();
        if (!outer.held()) return false;
      }
      return true;
    };
    TEST_ASSERT_EQUAL(Status::ok, outer.try_acquire());
    TEST_ASSERT_EQUAL(std::size_t{0}, guarded.watchdog.size());
    TEST_ASSERT_EQUAL(Status::ok, inner.try_acquire());
    TEST_ASSERT_EQUAL(std::size_t{watched ? 1U : 0U}, guarded.watchdog.size());
    TEST_ASSERT_TRUE(lives(2 * lease));
    TEST_ASSERT_EQUAL(Status::ok, longer.try_acquire());  // Whoever keeps it renews it for the longer lease.
    TEST_ASSERT_TRUE(lives(2 * lease));
    TEST_ASSERT_TRUE(outer.remaining() > lease && outer.remaining() <= 3 * lease);
    TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > lease / 1ms);
    TEST_ASSERT_EQUAL(Status::ok, longer.release());
    TEST_ASSERT_EQUAL(Status::ok, inner.release());
    TEST_ASSERT_TRUE(lives(4 * lease));  // Until the outermost release.
    TEST_ASSERT_EQUAL(Status::ok, outer.release());
    TEST_ASSERT_EQUAL(Status::ok, outer.try_acquire());
    TEST_ASSERT_EQUAL(std::size_t{0}, guarded.watchdog.size());
    TEST_ASSERT_FALSE(lives(2 * lease));
    (void)outer.forget_loss();
  }
}

TEST_ON_SERVER(test_inner_hold_should_be_let_go_of_where_the_watchdog_has_no_place_for_it) {
  Guarded guarded(server);
  Owner owner(guarded.client);
  std::vector<std::unique_ptr<Mutex>> kept;
  for (int index = 0; index < 8; ++index) {
    kept.push_back(std::make_unique<Mutex>(guarded.client, ByteView(std::to_string(index))));
    TEST_ASSERT_EQUAL(Status::ok, kept.back()->try_acquire());
  }
  ReentrantLock outer(owner, "k", {.lease = 20s});
  ReentrantLock inner(owner, "k");
  TEST_ASSERT_EQUAL(Status::ok, outer.try_acquire());
  for (int turn = 0; turn < 2; ++turn) {
    TEST_ASSERT_EQUAL(Status::too_many_requests, inner.try_acquire());
    TEST_ASSERT_TRUE(outer.held());
    TEST_ASSERT_EQUAL(1U, outer.hold_count());
    TEST_ASSERT_EQUAL(Status::ok, outer.try_acquire());  // Who does not want it kept is not refused.
    TEST_ASSERT_EQUAL(Status::ok, outer.release());
  }
  TEST_ASSERT_EQUAL(Status::ok, kept.front()->release());
  TEST_ASSERT_EQUAL(Status::ok, inner.try_acquire());
  TEST_ASSERT_EQUAL(std::size_t{8}, guarded.watchdog.size());
  TEST_ASSERT_EQUAL(2U, outer.hold_count());
}
#endif

TEST_ON_SERVER(test_loss_should_be_told_once_and_be_final) {
  Guarded guarded(server);
  Client& client = guarded.client;
  for (const char* const command : {"DEL k", "SET k somebody PX 60000", "HSET k somebody 1"}) {
    Told told;
    Mutex lock(client, "k", {.lease = lease});
    TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    if (std::string(command) == "HSET k somebody 1") server.command("DEL k");
    server.command(command);
    TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    TEST_ASSERT_EQUAL(1, told.lost);
    TEST_ASSERT_EQUAL(std::size_t{0}, guarded.watchdog.size());
    server.command("DEL k");
  }
}

TEST_ON_SERVER(test_dead_server_should_mean_at_risk_and_then_lost_by_the_clock) {
  Guarded guarded(server);
  Client& client = guarded.client;
  Told told;
  Mutex lock(client, "k", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  breathe(lease / 2);
  server.stop();
  TEST_ASSERT_TRUE(comes([&] { return told.at_risk == 1; }));
  TEST_ASSERT_TRUE(lock.at_risk() || !lock.held());
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(1, told.at_risk);
}

TEST_ON_SERVER(test_watchdog_should_come_back_after_its_connection_was_killed) {
  Guarded guarded(server);
  Client& client = guarded.client;
  Told told;
  Mutex lock(client, "k", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  for (int turn = 0; turn < 4; ++turn) {
    breathe(lease / 3);
    server.command("CLIENT KILL TYPE normal SKIPME yes");
  }
  server.command("SCRIPT FLUSH");
  breathe(lease);
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_SERVER(test_max_hold_should_end_what_a_hung_worker_keeps) {  // [rule 15]
  Guarded guarded(server);
  Client& client = guarded.client;
  Told told;
  KeepOptions options = told.options();
  options.max_hold = lease;
  Mutex lock(client, "k", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(options));
  const Instant start = Client::now();
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
  TEST_ASSERT_TRUE(Client::now() - start > lease);
  TEST_ASSERT_FALSE(lock.held());
}

TEST_ON_SERVER(test_hold_should_live_as_long_as_its_application_ticks) {
  Guarded guarded(server);
  Client& client = guarded.client;
  Told told;
  KeepOptions options = told.options();
  options.liveness = 500ms;
  Mutex lock(client, "k", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(options));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  for (const Instant until = Client::now() + 2 * lease; Client::now() < until; breathe(10ms)) lock.tick();
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
}

TEST_ON_SERVER(test_release_should_wait_for_a_call_in_progress_and_none_should_come_behind_it) {
  Guarded guarded(server);
  Client& client = guarded.client;
  struct Slow {
    std::atomic<bool> entered = false;
    std::atomic<bool> finished = false;
  } slow;
  {
    Mutex lock(client, "k", {.lease = lease});
    TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always,
                                             .on_lost =
                                                 [](void* self) noexcept {
                                                   static_cast<Slow*>(self)->entered = true;
                                                   std::this_thread::sleep_for(100ms);
                                                   static_cast<Slow*>(self)->finished = true;
                                                 },
                                             .context = &slow}));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    server.command("DEL k");
    TEST_ASSERT_TRUE(comes([&] { return slow.entered.load(); }));
    TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
    TEST_ASSERT_TRUE(slow.finished);
  }
  Told told;
  for (int turn = 0; turn < 30; ++turn) {
    Mutex lock(client, "k", {.lease = 60ms, .drift = 2ms});
    TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
    const Status granted = lock.try_acquire();
    if (granted != Status::ok) continue;
    breathe(std::chrono::milliseconds(turn * 3));
    (void)lock.release();
    const int calls = told.lost + told.at_risk;
    breathe(5ms);
    TEST_ASSERT_EQUAL(calls, told.lost + told.at_risk);
  }
}

#ifndef HOLDFAST_TEST_ASIO  // Which makes room in the client: AsyncLimits::kept.
TEST_ON_SERVER(test_full_watchdog_should_refuse_the_hold_and_let_it_go) {
  Client client;
  connected(client, server);
  WatchdogPlaces<1> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Mutex first(client, "a");
  Mutex second(client, "b");
  TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
  TEST_ASSERT_EQUAL(Status::too_many_requests, second.try_acquire());
  TEST_ASSERT_FALSE(second.held());
  bool locked = true;
  TEST_ASSERT_EQUAL(Status::ok, second.is_locked(locked));
  TEST_ASSERT_FALSE(locked);
  TEST_ASSERT_EQUAL(Status::ok, first.release());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
}
#endif

TEST_ON_SERVER(test_many_holds_should_be_kept_in_few_calls) {
  Client client;
  ClientConfig config = config_for(server.unix_url());
  config.request_timeout = 5s;  // Of 500 calls one may meet a machine that stalls.
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  auto places = std::make_unique<WatchdogPlaces<500>>();
  Watchdog watchdog(places->storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Told told;
  std::vector<std::unique_ptr<Mutex>> locks;
  for (int index = 0; index < 500; ++index) {
    locks.push_back(std::make_unique<Mutex>(client, "k" + std::to_string(index), LockTiming{.lease = 1500ms}));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->try_acquire());
  }
  breathe(3s);
  for (const auto& lock : locks) TEST_ASSERT_TRUE(lock->held());
  TEST_ASSERT_EQUAL(0, told.at_risk);
  TEST_ASSERT_EQUAL(0, told.lost);
  TEST_ASSERT_TRUE(watchdog.calls() < 500);
  for (const auto& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock->release());
}

TEST_ON_SERVER(test_several_clients_should_share_one_watchdog) {
  Client first;
  Client second;
  connected(first, server);
  connected(second, server);
  WatchdogPlaces<8> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(first));
  second.attach(&watchdog);
  const auto work = [](Client& client, const std::string& name) {
    for (int turn = 0; turn < 200; ++turn) {
      Mutex lock(client, name);
      (void)lock.try_acquire();
      (void)lock.renew();
      (void)lock.release();
    }
  };
  std::thread other([&] { work(second, "b"); });
  work(first, "a");
  other.join();
  TEST_ASSERT_EQUAL(std::size_t{0}, watchdog.size());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

#ifndef HOLDFAST_TEST_ASIO  // A loop is never detached.
// Issue 10, point 6: detaching is for the holds to come, and the present one stays where it is kept.
TEST_ON_SERVER(test_object_that_goes_should_leave_its_hold_with_the_watchdog_that_keeps_it) {
  for (const bool another : {false, true}) {
    WatchdogPlaces<4> places;
    Watchdog watchdog{places.storage()};
    Guarded guarded(server);
    TEST_ASSERT_EQUAL(Status::ok, watchdog.start(guarded.client));
    Told told;
    Owner owner(guarded.client);
    auto first = std::make_unique<ReentrantLock>(owner, "k", LockTiming{.lease = lease});
    ReentrantLock second(owner, "k", {.lease = lease});
    TEST_ASSERT_EQUAL(Status::ok, first->keep(told.options()));
    TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
    TEST_ASSERT_EQUAL(std::size_t{1}, watchdog.size());
    guarded.client.attach(another ? &guarded.watchdog : nullptr);
    first.reset();
    TEST_ASSERT_EQUAL(std::size_t{1}, watchdog.size());
    TEST_ASSERT_EQUAL(std::size_t{0}, guarded.watchdog.size());
    TEST_ASSERT_EQUAL(1U, second.hold_count());
    for (const Instant until = Client::now() + 3 * lease / 2; Client::now() < until; breathe(10ms))
      TEST_ASSERT_TRUE(second.held());
    TEST_ASSERT_EQUAL(Status::ok, second.release());
    TEST_ASSERT_EQUAL(std::size_t{0}, watchdog.size());
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
    TEST_ASSERT_EQUAL(0, told.lost);
  }
}

// The same of a hold that tend() keeps, and of a client that a watchdog was attached to meanwhile.
TEST_ON_SERVER(test_object_that_goes_should_leave_its_hold_with_tend_that_keeps_it) {
  Client client;
  connected(client, server);
  Owner owner(client);
  auto first = std::make_unique<ReentrantLock>(owner, "k", LockTiming{.lease = lease});
  ReentrantLock second(owner, "k", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, first->keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  WatchdogPlaces<4> places;
  Watchdog watchdog{places.storage()};
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  first.reset();
  TEST_ASSERT_EQUAL(std::size_t{0}, watchdog.size());
  for (const Instant until = Client::now() + 3 * lease / 2; Client::now() < until; breathe(10ms)) {
    (void)client.tend();
    TEST_ASSERT_TRUE(second.held());
  }
  TEST_ASSERT_EQUAL(Status::ok, second.release());
  client.attach(nullptr);
}
#endif

TEST_ON_SERVER(test_tend_should_keep_holds_without_a_thread_and_say_when_to_come_again) {
  Client client;
  connected(client, server);
  TEST_ASSERT_TRUE(client.tend() == Instant::max());
  Told told;
  Mutex lock(client, "k", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  for (const Instant until = Client::now() + 2 * lease; Client::now() < until;) {
    const Instant next = client.tend();
    TEST_ASSERT_TRUE(next - Client::now() <= lease / 3);
    breathe(next - Client::now());
  }
  TEST_ASSERT_TRUE(lock.held());
  server.command("DEL k");
  while (told.lost == 0) {
    const Instant next = client.tend();
    if (told.lost == 0) breathe(next - Client::now());
  }
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(1, told.lost);
  // What may have been left of it is taken back, and then there is nothing to come again for.
  TEST_ASSERT_TRUE(comes([&] { return client.tend() == Instant::max() && client.compensations_pending() == 0; }));
}

// Replies take longer than it is to the next hold's turn: what falls due meanwhile is asked for, and not waited for.
TEST_ON_SERVER(test_tend_should_return_though_some_hold_is_always_due) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  Client client;
  ClientConfig config = config_for(proxy.url());
  config.request_timeout = 2s;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  constexpr std::size_t count = 20;
  constexpr Duration calm_lease = 3 * lease;  // A busy machine is no risk.
  std::vector<std::unique_ptr<Mutex>> locks;
  const Duration turn = calm_lease / 3 / count;
  for (std::size_t index = 0; index < count; ++index) {
    const std::string name = "k" + std::to_string(index);
    locks.push_back(std::make_unique<Mutex>(client, ByteView(name), LockTiming{.lease = calm_lease}));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->try_acquire());
    breathe(turn);
  }
  proxy.delay_replies(std::chrono::milliseconds(calm_lease / 4 / 1ms));
  std::atomic<bool> over{false};
  std::thread rescue([&] {
    for (int waits = 0; !over && waits < 400; ++waits) breathe(10ms);
    client.cancel();
  });
  Duration longest{};
  for (int calls = 0; calls < 5 && longest < 3s; ++calls) {
    const Instant before = Client::now();
    (void)client.tend();
    longest = std::max<Duration>(longest, Client::now() - before);
    breathe(turn);
  }
  over = true;
  rescue.join();
  TEST_ASSERT_TRUE(longest < 3s);
  for (const auto& lock : locks) TEST_ASSERT_TRUE(lock->held());
}

#ifndef HOLDFAST_TEST_ASIO  // A loop takes every answer by itself.
// A call that waited for another lock has asked for the renewal, and has gone before its answer came.
TEST_ON_SERVER(test_tend_should_take_the_answer_of_a_renewal_that_another_call_asked_for) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  ClientConfig config = config_for(proxy.url());
  config.request_timeout = 300ms;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex kept(client, "kept", {.lease = 2700ms});
  Mutex other(client, "other");
  TEST_ASSERT_EQUAL(Status::ok, kept.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, kept.try_acquire());
  const Instant due = kept.renewal_due();
  breathe(due - Client::now() - 100ms);
  proxy.hold_replies_of(Proxy::all);
  TEST_ASSERT_EQUAL(Status::timed_out, other.try_acquire());
  TEST_ASSERT_TRUE(kept.renewal_due() == Instant::max());  // On its way.
  proxy.hold_replies_of(Proxy::none);
  (void)client.tend();
  TEST_ASSERT_TRUE(kept.renewal_due() > due);
  TEST_ASSERT_TRUE(kept.renewal_due() < Instant::max());
}
#endif

TEST_ON_SERVER(test_waiting_should_tend_the_clients_other_holds) {
  Client client;
  connected(client, server);
  Told told;
  Owner owner(client);
  Mutex kept(client, "kept", {.lease = lease});
  TEST_ASSERT_EQUAL(Status::ok, kept.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, kept.try_acquire());
  server.command("SET busy somebody");
  Mutex polled(client, "busy");
  ReentrantLock pushed(owner, "busy");
  TEST_ASSERT_EQUAL(Status::lock_busy, polled.acquire(2 * lease));
  TEST_ASSERT_TRUE(kept.held());
  TEST_ASSERT_EQUAL(Status::lock_busy, pushed.acquire(2 * lease));
  TEST_ASSERT_TRUE(kept.held());
  TEST_ASSERT_EQUAL(0, told.at_risk);
}

TEST_ON_SERVER(test_callback_of_tend_may_destroy_its_lock) {
  Client client;
  connected(client, server);
  auto lock = std::make_unique<Mutex>(client, "k", LockTiming{.lease = lease});
  TEST_ASSERT_EQUAL(
      Status::ok,
      lock->keep({.keep = Keep::always,
                  .on_lost = [](void* self) noexcept { static_cast<std::unique_ptr<Mutex>*>(self)->reset(); },
                  .context = &lock}));
  TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  server.command("DEL k");
  while (lock != nullptr) breathe(std::min<Duration>(client.tend() - Client::now(), 50ms));
  TEST_ASSERT_TRUE(client.tend() == Instant::max());
}
