// SPDX-License-Identifier: MIT
//
// Fair locks that stay where they are used: what costs no word, who recalls one, and what ends it.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "clients.hpp"
#include "patience.hpp"

#ifndef HOLDFAST_TEST_ASIO
#include "holdfast/lingering.hpp"
#endif

static void setUp() {}
static void tearDown() {}

namespace {

#ifndef HOLDFAST_TEST_ASIO
using holdfast::Lingering;
#else
// The loop listens.
struct Lingering {
  explicit Lingering(Client&) {}
};
#endif

const LockTiming automatic = {};

std::string text_of(const holdfast::Token& token) { return std::string(token.bytes().string_view()); }

// Whose lock stays.
struct Keeper {
  explicit Keeper(const RedisServer& server, const LockTiming& timing = automatic,
                  const holdfast::FairOptions& options = {.linger = 20s})
      : lingering(connected(client, server)), owner(client), lock(owner, "k", timing, options) {}
  // It was acquired and released, and is on the server.
  void leave_idle(const RedisServer& server) {
    TEST_ASSERT_TRUE(comes([&] {
      TEST_ASSERT_EQUAL(Status::ok, lock.acquire(1s));
      client.tend();
      TEST_ASSERT_EQUAL(Status::ok, lock.release());
      return server.command("EXISTS k") == "1";
    }));
    TEST_ASSERT_FALSE(lock.held());
    TEST_ASSERT_EQUAL(0U, lock.hold_count());
  }
  template <class Condition>
  [[nodiscard]] bool comes_by_tending(Condition&& condition, Duration limit = patience) {
    return comes(
        [&] {
          client.tend();
          return condition();
        },
        limit);
  }
  Client client;
  Lingering lingering;
  Owner owner;
  FairLock lock;
};

// Who wants it, on a thread of its own.
template <class Lock = FairLock>
struct Rival {
  explicit Rival(const RedisServer& server) : owner(connected(client, server)), lock(owner, "k") {}
  ~Rival() {
    client.cancel();
    if (thread.joinable()) thread.join();
  }
  void want() {
    thread = std::thread([this] {
      outcome = lock.acquire(60s);
      done.store(true);
    });
  }
  Client client;
  Owner owner;
  Lock lock;
  std::thread thread;
  std::atomic<bool> done = false;
  Status outcome = Status::outcome_unknown;
};

bool stands_in_queue(const RedisServer& server, int place) {
  return server.command("ZCARD holdfast_queue:{k}") == std::to_string(place);
}

}  // namespace

// ---- One alone -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_lock_that_stays_should_be_acquired_again_without_a_word) {
  Keeper keeper(server, automatic, {.fence = true, .linger = 20s});
  keeper.leave_idle(server);
  const std::string token = text_of(keeper.lock.token());
  const std::uint64_t fence = keeper.lock.fence();
  TEST_ASSERT_TRUE(fence != 0);
  TEST_ASSERT_EQUAL(token + " 1", server.command("HGETALL k"));
  const long calls = server.calls("evalsha") + server.calls("eval");
  for (int pair = 0; pair < 100; ++pair) {
    TEST_ASSERT_EQUAL(Status::ok, pair % 2 == 0 ? keeper.lock.acquire(1s) : keeper.lock.try_acquire());
    TEST_ASSERT_TRUE(keeper.lock.held());
    TEST_ASSERT_EQUAL(1U, keeper.lock.hold_count());
    TEST_ASSERT_EQUAL(token, text_of(keeper.lock.token()));
    TEST_ASSERT_EQUAL(fence, keeper.lock.fence());
    TEST_ASSERT_EQUAL(Status::ok, pair % 3 == 0 ? keeper.lock.post_release() : keeper.lock.release());
    TEST_ASSERT_FALSE(keeper.lock.held());
    TEST_ASSERT_EQUAL(0U, keeper.lock.hold_count());
  }
  TEST_ASSERT_EQUAL(Status::not_held, keeper.lock.release());
  TEST_ASSERT_EQUAL(Status::not_held, keeper.lock.renew());
  TEST_ASSERT_EQUAL(Status::not_held, keeper.lock.forget_loss());
  TEST_ASSERT_EQUAL(calls, server.calls("evalsha") + server.calls("eval"));
  TEST_ASSERT_EQUAL(token + " 1", server.command("HGETALL k"));
}

TEST_ON_SERVER(test_a_lock_that_stays_should_be_reentrant) {
  Keeper keeper(server);
  keeper.leave_idle(server);
  for (int round = 0; round < 2; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, keeper.lock.acquire(1s));
    TEST_ASSERT_EQUAL(Status::ok, keeper.lock.acquire(1s));
    TEST_ASSERT_EQUAL(text_of(keeper.lock.token()) + " 2", server.command("HGETALL k"));
    TEST_ASSERT_EQUAL(Status::ok, keeper.lock.release());
    TEST_ASSERT_TRUE(keeper.lock.held());
    TEST_ASSERT_EQUAL(Status::ok, keeper.lock.release());
    TEST_ASSERT_FALSE(keeper.lock.held());
    TEST_ASSERT_EQUAL(text_of(keeper.lock.token()) + " 1", server.command("HGETALL k"));
  }
}

TEST_ON_SERVER(test_a_lock_should_not_stay_longer_than_it_may) {
  Keeper keeper(server, automatic, {.linger = 50ms});
  keeper.leave_idle(server);
  const std::string token = text_of(keeper.lock.token());
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return server.command("EXISTS k") == "0"; }));
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.acquire(1s));
  TEST_ASSERT_TRUE(token != text_of(keeper.lock.token()));
}

TEST_ON_SERVER(test_a_hold_that_is_nobodys_should_be_renewed) {
  Keeper keeper(server, {.lease = 600ms, .kept = true});
  keeper.leave_idle(server);
  const std::string token = text_of(keeper.lock.token());
  const Instant begin = Client::now();
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return Client::now() - begin > 1500ms; }));
  TEST_ASSERT_EQUAL(token + " 1", server.command("HGETALL k"));
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.acquire(1s));
  TEST_ASSERT_EQUAL(token, text_of(keeper.lock.token()));
  TEST_ASSERT_TRUE(keeper.lock.held());
}

TEST_ON_SERVER(test_a_hold_that_is_nobodys_and_not_renewed_should_not_be_taken_again_behind_its_end) {
  Keeper keeper(server, {.lease = 300ms});
  keeper.leave_idle(server);
  const std::string token = text_of(keeper.lock.token());
  breathe(300ms);  // Nobody looks.
  TEST_ASSERT_FALSE(keeper.lock.held());
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.acquire(1s));
  TEST_ASSERT_TRUE(keeper.lock.held());
  TEST_ASSERT_TRUE(token != text_of(keeper.lock.token()));
  TEST_ASSERT_EQUAL(text_of(keeper.lock.token()) + " 1", server.command("HGETALL k"));
}

TEST_ON_SERVER(test_a_hold_that_was_lost_while_it_was_nobodys_should_be_told_to_nobody) {
  Keeper keeper(server, {.lease = 600ms, .kept = true});
  int told = 0;
  const auto count = [](void* context) noexcept { ++*static_cast<int*>(context); };
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.keep({.on_at_risk = count, .on_lost = count, .context = &told}));
  keeper.leave_idle(server);
  const std::string token = text_of(keeper.lock.token());
  server.command("DEL k");
  const Instant begin = Client::now();
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return Client::now() - begin > 700ms; }));
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.acquire(1s));
  TEST_ASSERT_TRUE(token != text_of(keeper.lock.token()));
  TEST_ASSERT_EQUAL(0, told);
  server.command("DEL k");
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return told == 1; }));  // Now somebody has it.
}

TEST_ON_SERVER(test_the_end_of_a_client_or_of_its_lock_should_end_what_is_nobodys) {
  {
    Keeper keeper(server);
    keeper.leave_idle(server);
    keeper.client.close();
    TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k") == "0"; }, 2s));
  }
  {
    Keeper keeper(server);
    keeper.leave_idle(server);
  }
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k") == "0"; }, 2s));
}

// More locks than there are places for who listens, one after the other.
TEST_ON_SERVER(test_the_end_of_a_lock_that_stays_should_make_room_for_another) {
  Client client;
  Lingering lingering(connected(client, server));
  Owner owner(client);
  for (int lock_of_many = 0; lock_of_many < 100; ++lock_of_many) {
    FairLock lock(owner, "k", automatic, {.linger = 20s});
    TEST_ASSERT_TRUE(comes([&] {
      TEST_ASSERT_EQUAL(Status::ok, lock.acquire(1s));
      client.tend();
      TEST_ASSERT_EQUAL(Status::ok, lock.release());
      return server.command("EXISTS k") == "1";
    }));
  }
  TEST_ASSERT_TRUE(comes([&] {
    client.tend();
    return server.command("EXISTS k") == "0";
  }));
}

// An idle hold is taken for a lease that it has, and is asked for anew for any other.
TEST_ON_SERVER(test_a_lock_that_stays_should_have_the_lease_of_who_takes_it) {
  Keeper keeper(server, {.lease = 10s});
  FairLock longer(keeper.owner, "k", {.lease = 60s}, {.linger = 20s});
  FairLock kept(keeper.owner, "k", {.lease = 10s, .kept = true}, {.linger = 20s});
  keeper.leave_idle(server);
  const std::string first = text_of(keeper.lock.token());
  TEST_ASSERT_EQUAL(Status::ok, longer.acquire(1s));
  const std::string second = text_of(longer.token());
  TEST_ASSERT_TRUE(first != second);
  TEST_ASSERT_TRUE(longer.remaining() > 50s);
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 50'000);
  TEST_ASSERT_TRUE(comes([&] {  // Where nobody listened in time, it was released.
    TEST_ASSERT_EQUAL(Status::ok, longer.release());
    if (server.command("EXISTS k") == "1") return true;
    TEST_ASSERT_EQUAL(Status::ok, longer.acquire(1s));
    keeper.client.tend();
    return false;
  }));
  const std::string third = text_of(longer.token());
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.acquire(1s));  // A shorter one changes nothing.
  TEST_ASSERT_EQUAL(third, text_of(keeper.lock.token()));
  TEST_ASSERT_TRUE(keeper.lock.remaining() > 50s);
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.release());
  TEST_ASSERT_EQUAL("1", server.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, kept.acquire(1s));  // It is not renewed, and this one is.
  TEST_ASSERT_TRUE(third != text_of(kept.token()));
  TEST_ASSERT_EQUAL(text_of(kept.token()) + " 1", server.command("HGETALL k"));
}

// ---- Recalls -------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_lock_that_nobody_has_should_be_recalled_by_who_waits_for_it) {
  Keeper keeper(server);
  Rival rival(server);
  keeper.leave_idle(server);
  const Instant begin = Client::now();
  rival.want();
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return rival.done.load(); }));
  TEST_ASSERT_TRUE(Client::now() - begin < 900ms);  // By a message, and not by the next one.
  TEST_ASSERT_EQUAL(Status::ok, rival.outcome);
  TEST_ASSERT_EQUAL(Status::lock_busy, keeper.lock.try_acquire());
}

TEST_ON_SERVER(test_who_tries_should_recall_it_too) {
  Keeper keeper(server);
  Rival rival(server);
  keeper.leave_idle(server);
  TEST_ASSERT_EQUAL(Status::lock_busy, rival.lock.try_acquire());
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return server.command("EXISTS k") == "0"; }));
  TEST_ASSERT_EQUAL(Status::ok, rival.lock.try_acquire());
}

TEST_ON_SERVER(test_a_recall_should_be_remembered_while_the_lock_is_in_use) {
  Keeper keeper(server);
  Rival rival(server);
  keeper.leave_idle(server);
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.acquire(1s));
  rival.want();
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return stands_in_queue(server, 1); }));
  const Instant begin = Client::now();
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return Client::now() - begin > 50ms; }));
  TEST_ASSERT_TRUE(keeper.lock.held());
  TEST_ASSERT_FALSE(rival.done.load());
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.release());
  TEST_ASSERT_TRUE(comes([&] { return rival.done.load(); }, 800ms));  // Without anybody who listens.
  TEST_ASSERT_EQUAL(Status::ok, rival.outcome);
}

TEST_ON_SERVER(test_a_recall_that_was_lost_should_cost_a_beat) {
  Keeper keeper(server);
  Rival rival(server);
  keeper.leave_idle(server);
  server.command("CLIENT KILL TYPE pubsub");
  rival.want();
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return rival.done.load(); }, 4s));
  TEST_ASSERT_EQUAL(Status::ok, rival.outcome);
}

TEST_ON_SERVER(test_a_recall_of_another_hold_should_be_ignored) {
  Keeper keeper(server);
  keeper.leave_idle(server);
  const std::string token = text_of(keeper.lock.token());
  const std::string channel = "holdfast_fair:{" + token.substr(0, token.find(':')) + "}";
  TEST_ASSERT_EQUAL("1", server.command({"PUBLISH", channel, token + "1"}));
  TEST_ASSERT_EQUAL("1", server.command({"PUBLISH", channel, "0"}));
  const Instant begin = Client::now();
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return Client::now() - begin > 50ms; }));
  TEST_ASSERT_EQUAL(token + " 1", server.command("HGETALL k"));
  TEST_ASSERT_EQUAL("1", server.command({"PUBLISH", channel, token}));  // Whoever may publish can do that, and no more.
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return server.command("EXISTS k") == "0"; }));
}

// Others stand in the queue behind whoever was given the lock.
TEST_ON_SERVER(test_a_lock_that_was_waited_for_should_not_stay) {
  Rival first(server);
  Rival last(server);
  Keeper keeper(server);
  keeper.leave_idle(server);  // It listens.
  first.want();
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return first.done.load(); }));
  std::thread thread([&] { TEST_ASSERT_EQUAL(Status::ok, keeper.lock.acquire(20s)); });
  TEST_ASSERT_TRUE(comes([&] { return stands_in_queue(server, 1); }));
  last.want();
  TEST_ASSERT_TRUE(comes([&] { return stands_in_queue(server, 2); }));
  TEST_ASSERT_EQUAL(Status::ok, first.lock.release());
  thread.join();
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.release());
  TEST_ASSERT_TRUE(comes([&] { return last.done.load(); }, 800ms));
  TEST_ASSERT_EQUAL(Status::ok, last.outcome);
}

// It waits as Redisson does.
TEST_ON_SERVER(test_who_cannot_recall_it_should_wait_no_longer_than_it_may_stay) {
  Keeper keeper(server, automatic, {.linger = 300ms});
  Rival<ReentrantLock> rival(server);
  keeper.leave_idle(server);
  rival.want();
  const Instant begin = Client::now();
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return rival.done.load(); }));
  TEST_ASSERT_TRUE(Client::now() - begin < 2s);
  TEST_ASSERT_EQUAL(Status::ok, rival.outcome);
}

// ---- The blocking client alone -------------------------------------------------------------------------------------

#ifndef HOLDFAST_TEST_ASIO

TEST_ON_SERVER(test_a_lock_should_not_stay_where_nobody_listens) {
  Keeper keeper(server);
  for (int round = 0; round < 5; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, keeper.lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, keeper.lock.release());
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  }
  // It has listened, and does not any more.
  keeper.leave_idle(server);
  const std::string token = text_of(keeper.lock.token());
  breathe(holdfast::linger_unheard_max);
  TEST_ASSERT_EQUAL(0U, keeper.lock.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.try_acquire());
  TEST_ASSERT_TRUE(token != text_of(keeper.lock.token()));
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

TEST_ON_SERVER(test_a_call_that_waits_for_another_lock_should_hear_recalls) {
  Keeper keeper(server);
  Rival rival(server);
  Rival<ReentrantLock> in_the_way(server);
  holdfast::ReentrantLock other_of_rival(in_the_way.owner, "other");
  holdfast::ReentrantLock other(keeper.owner, "other");
  TEST_ASSERT_EQUAL(Status::ok, other_of_rival.try_acquire());
  keeper.leave_idle(server);
  rival.want();
  TEST_ASSERT_EQUAL(Status::lock_busy, other.acquire(2s));
  TEST_ASSERT_TRUE(rival.done.load());
  TEST_ASSERT_EQUAL(Status::ok, rival.outcome);
}

TEST_ON_SERVER(test_a_watchdog_should_renew_what_stays) {
  Client client;
  Lingering lingering(connected(client, server));
  WatchdogPlaces<2> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Owner owner(client);
  FairLock lock(owner, "k", {.lease = 600ms, .kept = true}, {.linger = 20s});
  TEST_ASSERT_TRUE(comes([&] {
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(1s));
    client.tend();
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    return server.command("EXISTS k") == "1";
  }));
  const std::string token = text_of(lock.token());
  const Instant begin = Client::now();
  TEST_ASSERT_TRUE(comes([&] {
    client.tend();
    return Client::now() - begin > 1500ms;
  }));
  TEST_ASSERT_EQUAL(std::size_t{1}, watchdog.size());
  TEST_ASSERT_FALSE(lock.held());
  const std::uint64_t calls = watchdog.calls();
  TEST_ASSERT_TRUE(calls > 2);
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(1s));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(token, text_of(lock.token()));
  TEST_ASSERT_TRUE(comes([&] { return watchdog.calls() > calls; }));
  TEST_ASSERT_TRUE(lock.held());
  Rival rival(server);
  rival.want();
  TEST_ASSERT_TRUE(comes([&] {
    client.tend();
    return stands_in_queue(server, 1);
  }));
  TEST_ASSERT_TRUE(comes([&] { return client.tend() < Client::now() + 1s && stands_in_queue(server, 1); }));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(comes([&] {
    client.tend();
    return rival.done.load();
  }));
  TEST_ASSERT_EQUAL(std::size_t{0}, watchdog.size());
}

// cancel() as a signal's handler calls it, in the middle of the acquire.
TEST_ON_SERVER(test_a_cancel_of_an_acquire_of_what_stays_should_end_that_call_alone) {
  static Client* cancelled = nullptr;
  bool cancels = false;
  (void)std::signal(SIGUSR1, [](int) { cancelled->cancel(); });
  const holdfast::Observer observer = {.context = &cancels,
                                       .on_grant = [](void* context, const holdfast::Observation&) noexcept {
                                         if (*static_cast<bool*>(context)) (void)std::raise(SIGUSR1);
                                       }};
  holdfast::Meter meter(observer);
  holdfast::ClientConfig config = config_for(server.unix_url());
  config.meter = &meter;
  Client client;
  cancelled = &client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Lingering lingering(client);
  Owner owner(client);
  FairLock lock(owner, "k", automatic, {.linger = 20s});
  TEST_ASSERT_TRUE(comes([&] {
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(1s));
    client.tend();
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    return lingering.idle() == 1;
  }));
  cancels = true;
  TEST_ASSERT_EQUAL(Status::cancelled, lock.acquire(1s));
  cancels = false;
  (void)std::signal(SIGUSR1, SIG_DFL);
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(0U, lock.hold_count());
  TEST_ASSERT_EQUAL(std::size_t{0}, lingering.idle());
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(1s));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_SERVER(test_handles_of_one_hold_should_share_it) {
  Keeper keeper(server);
  auto other = std::make_unique<FairLock>(keeper.owner, "k", automatic, holdfast::FairOptions{.linger = 20s});
  keeper.leave_idle(server);
  const std::string token = text_of(keeper.lock.token());
  TEST_ASSERT_EQUAL(Status::ok, other->acquire(1s));
  TEST_ASSERT_TRUE(keeper.lock.held());
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.release());
  TEST_ASSERT_FALSE(other->held());
  TEST_ASSERT_EQUAL(std::size_t{1}, keeper.lingering.idle());
  other.reset();  // It has nothing.
  TEST_ASSERT_EQUAL(token + " 1", server.command("HGETALL k"));
  TEST_ASSERT_EQUAL(Status::ok, keeper.lock.acquire(1s));
  TEST_ASSERT_EQUAL(token, text_of(keeper.lock.token()));
  other = std::make_unique<FairLock>(keeper.owner, "k", automatic, holdfast::FairOptions{.linger = 20s});
  TEST_ASSERT_EQUAL(Status::ok, other->acquire(1s));
  other.reset();
  TEST_ASSERT_TRUE(comes([&] { return server.command("HGETALL k") == token + " 1"; }));
  TEST_ASSERT_TRUE(keeper.lock.held());
}

TEST_ON_SERVER(test_a_child_should_have_nothing_of_what_stays_with_its_parent) {
  Keeper keeper(server);
  keeper.leave_idle(server);
  const std::string token = text_of(keeper.lock.token());
  const pid_t child = ::fork();
  if (child == 0) {
    if (keeper.lock.held() || keeper.lingering.idle() != 0) ::_exit(1);
    if (keeper.lock.try_acquire() != Status::lock_busy) ::_exit(2);
    keeper.client.tend();
    if (keeper.lock.release() != Status::not_held) ::_exit(3);
    ::_exit(0);
  }
  int status = -1;
  TEST_ASSERT_EQUAL(child, ::waitpid(child, &status, 0));
  TEST_ASSERT_EQUAL(0, status);
  TEST_ASSERT_EQUAL(token + " 1", server.command("HGETALL k"));
  TEST_ASSERT_TRUE(keeper.comes_by_tending([&] { return server.command("EXISTS k") == "0"; }));  // It was recalled.
}

TEST_ON_SERVER(test_a_lock_without_a_place_to_linger_should_say_so) {
  Client client;
  Owner owner(connected(client, server));
  FairLock homeless(owner, "k", {}, {.linger = 1s});
  TEST_ASSERT_EQUAL(Status::too_many_requests, homeless.configuration());
  TEST_ASSERT_EQUAL(Status::too_many_requests, homeless.acquire(1s));
  TEST_ASSERT_EQUAL(Status::too_many_requests, homeless.release());
  Lingering lingering(client);
  FairLock first(owner, "1", {}, {.linger = holdfast::linger_max});
  FairLock second(owner, "2", {}, {.linger = holdfast::linger_min});
  FairLock third(owner, "3", {}, {.linger = 1s});
  FairLock again(owner, "3", {}, {.linger = 1s});
  FairLock fourth(owner, "4", {}, {.linger = 1s});
  FairLock too_long(owner, "5", {}, {.linger = holdfast::linger_max + 1ms});
  TEST_ASSERT_EQUAL(Status::ok, first.configuration());
  TEST_ASSERT_EQUAL(Status::ok, second.configuration());
  TEST_ASSERT_EQUAL(Status::ok, third.configuration());
  TEST_ASSERT_EQUAL(Status::ok, again.configuration());
  TEST_ASSERT_EQUAL(Status::too_many_requests, fourth.try_acquire());
  TEST_ASSERT_EQUAL(Status::invalid_argument, too_long.try_acquire());
}

#endif
