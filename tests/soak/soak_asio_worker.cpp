// SPDX-License-Identifier: MIT
//
// A worker of the soak on an Asio loop: several actors take locks of every kind over one client, or Redlocks over one quorum of
// five, at the same time; now and then one changes its mind while it waits. All that they believe is written down. It ends by
// SIGTERM.
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "counter_file.hpp"
#include "holdfast/asio.hpp"
#include "soak_log.hpp"
#include "worker_options.hpp"
#include "worker_report.hpp"
#include "worker_ways.hpp"

namespace soak {

namespace {

using namespace holdfast;

// How long the fair lock of every other actor stays where it was used.
constexpr Duration linger = 300ms;

// One flow of control, with locks of its own.
class Actor {
 public:
  Actor(asio::io_context& loop, const WorkerOptions& options, Log& log, int number)
      : options_(options),
        log_(log),
        number_(number),
        choice_(options.seed * 64 + static_cast<std::uint64_t>(number)),
        config_(WorkerOptions::timeouts()),
        pause_(loop),
        change_of_mind_(loop) {}

  // A lock of one name, or of several that are had together. `nests`: its owner may acquire it again.
  template <class Lock>
  asio::awaitable<void> take(Lock& lock, std::vector<Part> parts, bool nests = false) {
    WorkerReport report(options_, log_, number_, parts);
    constexpr bool is_set = std::is_same_v<Lock, AsyncLockSet>;
    const int calls = is_set ? static_cast<int>(parts.size()) : 1;
    std::error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);

    const Duration wait = choice_.wait();
    if (choice_.one_in(8)) {
      change_of_mind_.expires_after(choice_.up_to(wait + Duration(1ms)));
      change_of_mind_.async_wait([&lock](std::error_code ended) {
        if (!ended) lock.cancel();
      });
    }
    report.ask("async_acquire",
               wait + calls * config_.request_timeout +
                   (wait == Duration::zero() || calls > 1 ? calls * config_.connect_timeout : Duration::zero()));
    co_await lock.async_acquire(wait, token);
    change_of_mind_.cancel();  // Where its handler is on its way, it cancels whatever waits by then.
    if (error) {
      report.told(to_string(to_status(error)), 0);
      if constexpr (!is_set)
        if (error == Status::lock_lost) (void)lock.forget_loss();
      if (error != Status::lock_busy) co_await rest(choice_.up_to(50ms));
      co_return;
    }
    const std::int64_t at = WorkerClock::true_now();
    const std::uint64_t fence = fence_of(lock);
    report.got(at, WorkerClock::true_time(lock.valid_until()), fence);

    report.read(fence);
    const std::int64_t end = WorkerClock::true_now() + choice_.work(options_.lease_time()).count();
    bool inner = false;
    if (nests && choice_.one_in(8)) {
      report.ask("async_again", config_.request_timeout + config_.connect_timeout);
      co_await lock.async_try_acquire(token);
      report.told(to_string(to_status(error)), 0);
      inner = !error;
    }
    while (lock.held()) {
      report.until(WorkerClock::true_time(lock.valid_until()));
      const std::int64_t left = end - WorkerClock::true_now();
      if (left <= 0) break;
      co_await rest(std::min(Duration(left), work_step));
    }
    if (inner) {
      report.ask("async_release", config_.request_timeout);
      co_await lock.async_release(token);
      report.told(to_string(to_status(error)), 0);
    }
    // Who has a fence may come late: the resource refuses it.
    if (lock.held() || (fence != 0 && choice_.one_in(2))) report.write(fence);
    report.end();
    if (choice_.one_in(3)) {
      report.ask("post_release", Duration::zero());
      report.told(to_string(lock.post_release()), 0);
    } else {
      report.ask("async_release", calls * config_.request_timeout);
      co_await lock.async_release(token);
      report.told(to_string(to_status(error)), 0);
    }
  }

  asio::awaitable<void> rest(Duration length) {
    std::error_code ignored;
    pause_.expires_after(length);
    co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  [[nodiscard]] Choice& choice() { return choice_; }

 private:
  template <class Lock>
  [[nodiscard]] static std::uint64_t fence_of(const Lock& lock) {
    if constexpr (requires { lock.fence(); })
      return lock.fence();
    else
      return 0;
  }

  const WorkerOptions& options_;
  Log& log_;
  int number_;
  Choice choice_;
  ClientConfig config_;
  asio::steady_timer pause_;
  asio::steady_timer change_of_mind_;
};

// ---- What an actor has to take ------------------------------------------------------------------------------------------

class OneServersActor {
 public:
  OneServersActor(asio::io_context& loop, AsyncClient& client, const WorkerOptions& options, Log& log, int number)
      : actor_(loop, options, log, number),
        owner_(client),
        mutex_(client, options.name_of("mutex"), timing(options)),
        announced_(client, options.name_of("announced"), timing(options), {.announce = true, .fence = true}),
        reentrant_(owner_, options.name_of("reentrant"), timing(options)),
        fenced_(owner_, options.name_of("fenced"), timing(options)),
        fair_(owner_, options.name_of("fair"), timing(options),
              {.fence = true, .linger = number % 2 == 0 ? linger_off : linger}),
        read_write_(owner_, options.name_of("read_write"), {.read = timing(options), .write = timing(options)}),
        permit_(client, options.name_of("permit"), soak_permits, timing(options)),
        left_(owner_, options.name_of("{pair}.left"), timing(options)),
        right_(owner_, options.name_of("{pair}.right"), timing(options)),
        both_(owner_, {options.name_of("{pair}.left"), options.name_of("{pair}.right")}, timing(options)),
        mutex_counter_(options.counters, options.name_of("mutex")),
        announced_counter_(options.counters, options.name_of("announced")),
        reentrant_counter_(options.counters, options.name_of("reentrant")),
        fenced_counter_(options.counters, options.name_of("fenced")),
        fair_counter_(options.counters, options.name_of("fair")),
        write_counter_(options.counters, options.name_of("read_write")),
        left_counter_(options.counters, options.name_of("{pair}.left")),
        right_counter_(options.counters, options.name_of("{pair}.right")) {}

  asio::awaitable<void> take_one() {
    switch (actor_.choice().below(12)) {
      case 0: return actor_.take(mutex_, {{"mutex", 'x', &mutex_counter_}});
      case 1: return actor_.take(announced_, {{"announced", 'x', &announced_counter_}});
      case 2: return actor_.take(reentrant_, {{"reentrant", 'x', &reentrant_counter_}}, true);
      case 3: return actor_.take(fenced_, {{"fenced", 'x', &fenced_counter_}}, true);
      case 4: return actor_.take(fair_, {{"fair", 'x', &fair_counter_}}, true);
      case 5: return actor_.take(read_write_.read(), {{"read_write", 'r', nullptr}}, true);
      case 6: return actor_.take(read_write_.write(), {{"read_write", 'x', &write_counter_}}, true);
      case 7: return actor_.take(permit_, {{"permit", 'p', nullptr}});
      case 8: return actor_.take(left_, {{"{pair}.left", 'x', &left_counter_}}, true);
      case 9: return actor_.take(right_, {{"{pair}.right", 'x', &right_counter_}}, true);
      case 10:
        return actor_.take(both_, {{"{pair}.left", 'x', &left_counter_}, {"{pair}.right", 'x', &right_counter_}}, true);
      default:
        return actor_.take(
            set_, {{"mutex", 'x', &mutex_counter_}, {"{pair}.right", 'x', &right_counter_}, {"permit", 'p', nullptr}});
    }
  }
  [[nodiscard]] Actor& actor() { return actor_; }

 private:
  // A loop keeps what it holds.
  static LockTiming timing(const WorkerOptions& options) { return {.lease = options.lease_time(), .kept = true}; }

  Actor actor_;
  AsyncOwner owner_;
  AsyncMutex mutex_;
  AsyncMutex announced_;
  AsyncReentrantLock reentrant_;
  AsyncFencedLock fenced_;
  AsyncFairLock fair_;
  AsyncReadWriteLock read_write_;
  AsyncSemaphore permit_;
  AsyncReentrantLock left_;
  AsyncReentrantLock right_;
  AsyncMultiLock both_;
  // In a cluster they are at any masters.
  AsyncHandle* some_[3] = {&permit_, &mutex_, &right_};
  AsyncLockSet set_{some_, 3};
  CounterFile mutex_counter_;
  CounterFile announced_counter_;
  CounterFile reentrant_counter_;
  CounterFile fenced_counter_;
  CounterFile fair_counter_;
  CounterFile write_counter_;
  CounterFile left_counter_;
  CounterFile right_counter_;
};

class FiveServersActor {
 public:
  FiveServersActor(asio::io_context& loop, AsyncQuorum& quorum, const WorkerOptions& options, Log& log, int number)
      : actor_(loop, options, log, number),
        owner_(quorum),
        mutex_(quorum, options.name_of("mutex"), timing(options)),
        announced_(quorum, options.name_of("announced"), timing(options), {.announce = true, .fence = true}),
        reentrant_(owner_, options.name_of("reentrant"), timing(options)),
        fenced_(owner_, options.name_of("fenced"), timing(options)),
        mutex_counter_(options.counters, options.name_of("mutex")),
        announced_counter_(options.counters, options.name_of("announced")),
        reentrant_counter_(options.counters, options.name_of("reentrant")),
        fenced_counter_(options.counters, options.name_of("fenced")) {}

  asio::awaitable<void> take_one() {
    switch (actor_.choice().below(4)) {
      case 0: return actor_.take(mutex_, {{"mutex", 'x', &mutex_counter_}});
      case 1: return actor_.take(announced_, {{"announced", 'x', &announced_counter_}});
      case 2: return actor_.take(reentrant_, {{"reentrant", 'x', &reentrant_counter_}}, true);
      default: return actor_.take(fenced_, {{"fenced", 'x', &fenced_counter_}}, true);
    }
  }
  [[nodiscard]] Actor& actor() { return actor_; }

 private:
  static QuorumTiming timing(const WorkerOptions& options) { return {.lease = options.lease_time(), .kept = true}; }

  Actor actor_;
  AsyncQuorumOwner<soak_nodes> owner_;
  AsyncRedlockMutex<soak_nodes> mutex_;
  AsyncRedlockMutex<soak_nodes> announced_;
  AsyncRedlockReentrantLock<soak_nodes> reentrant_;
  AsyncRedlockFencedLock<soak_nodes> fenced_;
  CounterFile mutex_counter_;
  CounterFile announced_counter_;
  CounterFile reentrant_counter_;
  CounterFile fenced_counter_;
};

// ---- The loop -----------------------------------------------------------------------------------------------------------

void rethrow(std::exception_ptr failure) {
  if (failure) std::rethrow_exception(failure);
}

template <class Actors, class Client>
asio::awaitable<void> act(Actors& mine, Log& log, Client& client, std::size_t& acting) {
  while (asked_to_end == 0) {
    co_await mine.take_one();
    log.memory();
    co_await mine.actor().rest(mine.actor().choice().up_to(20ms));
  }
  if (--acting != 0) co_return;
  std::error_code ignored;  // A server that is away cannot confirm.
  co_await client.async_close(asio::redirect_error(asio::use_awaitable, ignored));
}

template <class Actors, class Client>
void run_actors(asio::io_context& loop, Client& client, const WorkerOptions& options, Log& log) {
  std::vector<std::unique_ptr<Actors>> actors;
  std::size_t acting = static_cast<std::size_t>(options.actors);
  for (int number = 0; number < options.actors; ++number)
    actors.push_back(std::make_unique<Actors>(loop, client, options, log, number));
  for (const auto& each : actors) asio::co_spawn(loop, act(*each, log, client, acting), rethrow);
  loop.run();
}

// Where the server is away, the client goes on trying, and so do the actors.
void note(const char* what, std::error_code error) {
  if (error) std::fprintf(stderr, "%s: %s\n", what, error.message().c_str());
}

}  // namespace

}  // namespace soak

int main(int count, char** arguments) {
  using namespace soak;
  const WorkerOptions options = read_options(count, arguments);
  end_on_term();
  Log log(options.log);
  const auto ways = std::make_unique<WorkerWays>(options);
  asio::io_context loop(1);
  log.start(options.role);
  if (options.urls.size() == 1) {
    // What a cluster's masters take is taken at the beginning, so that memory which grows is a leak.
    holdfast::AsyncClient client(loop.get_executor(), {.masters = soak_branches + 3});
    if (options.watch) client.watch_sentinels();
    client.async_connect(ways->config_of(0), [](std::error_code error) { note("connect", error); });
    run_actors<OneServersActor>(loop, client, options, log);
  } else {
    holdfast::AsyncQuorum quorum(loop.get_executor(), soak_nodes);
    std::vector<holdfast::ClientConfig> configs;
    for (std::size_t node = 0; node < soak_nodes; ++node) configs.push_back(ways->config_of(node));
    quorum.async_connect(configs.data(), soak_nodes, {.max_lease = options.lease_time()},
                         [](std::error_code error) { note("connect", error); });
    run_actors<FiveServersActor>(loop, quorum, options, log);
  }
  log.bye();
  return 0;
}
