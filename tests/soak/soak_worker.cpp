// SPDX-License-Identifier: MIT
//
// A worker of the soak with the blocking client: it takes locks of every kind on one server, or Redlocks on five, works under
// them, and writes down what it believes. It ends by SIGTERM.
#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "counter_file.hpp"
#include "holdfast/holdfast.hpp"
#include "soak_log.hpp"
#include "worker_options.hpp"
#include "worker_report.hpp"
#include "worker_ways.hpp"

namespace soak {

namespace {

using namespace holdfast;

constexpr int actor = 0;  // It does one thing at a time.

// On one server or on several.
struct OneServer {
  using Lock = BlockingLock;
  using Guard = ScopedLock;

  // In a cluster with room for each of its nodes: any may be a master, or have been one.
  explicit OneServer(const WorkerOptions& options) : ways(options), config(ways.config_of(0)) {
    if (options.watch) {
      news.emplace(client);
      watchdogs_news.emplace(watchdog);
    }
    if (!options.branches) return;
    branches.emplace(client);
    lanes.emplace(watchdog);
  }
  [[nodiscard]] Status connect() { return client.connect(config); }
  Instant tend() { return client.tend(); }
  [[nodiscard]] std::size_t pending() const { return client.compensations_pending(); }
  [[nodiscard]] Status watch() {
    if (watchdog.running()) return Status::ok;
    return watchdog.start(client);
  }

  WorkerWays ways;
  ClientConfig config;
  Client client;
  std::optional<BranchesOf<soak_branches>> branches;
  WatchdogPlaces<16> places;
  Watchdog watchdog{places.storage()};
  std::optional<WatchdogBranchesOf<soak_branches, 16>> lanes;
  std::optional<SentinelWatch> news;
  std::optional<SentinelWatch> watchdogs_news;
};

struct FiveServers {
  using Lock = QuorumLock;
  using Guard = ScopedRedlock;

  explicit FiveServers(const WorkerOptions& options)
      : ways(options), config(ways.config_of(0)), longest_lease(options.lease_time()) {
    for (std::size_t node = 0; node < soak_nodes; ++node) configs[node] = ways.config_of(node);
  }
  [[nodiscard]] Status connect() {
    const Status status = quorum.connect(configs, soak_nodes, {.max_lease = longest_lease});
    return status == Status::no_quorum ? Status::ok : status;  // It goes on connecting.
  }
  Instant tend() { return quorum.tend(); }
  [[nodiscard]] std::size_t pending() const { return quorum.compensations_pending(); }
  [[nodiscard]] Status watch() {
    if (watchdog.running()) return Status::ok;
    return watchdog.start(quorum);
  }

  WorkerWays ways;
  ClientConfig config;
  ClientConfig configs[soak_nodes];
  Duration longest_lease;
  Quorum<soak_nodes> quorum;
  QuorumWatchdog watchdog;
};

template <class Servers>
class Worker {
 public:
  explicit Worker(const WorkerOptions& options)
      : options_(options), log_(options.log), choice_(options.seed), servers_(options) {}

  // Connects, and keeps trying: a server may be away.
  [[nodiscard]] bool connect() {
    log_.start(options_.role);
    while (asked_to_end == 0) {
      const Status status = servers_.connect();
      if (status == Status::invalid_argument) return false;
      if (status == Status::ok && (options_.keep != "watchdog" || servers_.watch() == Status::ok)) return true;
      pause(100ms);
    }
    return true;
  }
  // One after the other, in an order that changes, until SIGTERM.
  void run(std::vector<std::function<void()>> rounds) {
    while (asked_to_end == 0) {
      for (std::size_t left = rounds.size(); left > 1; --left) std::swap(rounds[left - 1], rounds[choice_.below(left)]);
      for (const auto& round : rounds) {
        if (asked_to_end != 0) return;
        round();
        log_.memory();
        pause(choice_.up_to(20ms));
      }
    }
  }
  // What was posted is to be confirmed.
  void farewell() {
    for (int turn = 0; turn < 100 && servers_.pending() != 0; ++turn) {
      tend();
      pause(50ms);
    }
  }
  void say_bye() { log_.bye(); }

  // ---- A round --------------------------------------------------------------------------------------------------------

  // A lock of one name, or of several that are had together.
  template <class Lock>
  void take(Lock& lock, const std::vector<Part>& parts) {
    for (const Part& part : parts)
      if (!options_.takes(part.lock)) return;
    WorkerReport report(options_, log_, actor, parts);
    const int calls = is_set<Lock> ? static_cast<int>(parts.size()) : 1;
    if (!acquire(lock, report, calls)) return;
    const std::uint64_t fence = fence_of(lock);
    bool inner = false;
    report.read(fence);
    work(lock, report, calls, choice_.work(options_.lease_time()), [&] {
      // Reentrant kinds are acquired again, now and then.
      if constexpr (nests<Lock>)
        if (!inner && choice_.one_in(8))
          inner = told(report, "again", config().request_timeout + config().connect_timeout,
                       [&] { return lock.try_acquire(); }) == Status::ok;
    });
    // Who has a fence may come late: the resource refuses it.
    if (lock.held() || (fence != 0 && choice_.one_in(2))) report.write(fence);
    if (inner) told(report, "release", config().request_timeout, [&] { return lock.release(); });
    report.end();
    switch (choice_.below(3)) {
      case 0: told(report, "post_release", Duration::zero(), [&] { return lock.post_release(); }); break;
      case 1: {
        using Guard = std::conditional_t<is_set<Lock>, BasicScopedLock<Lock>, typename Servers::Guard>;
        told(report, "guard", Duration::zero(), [&] {
          const Guard guard(lock, adopt_hold);
          return guard.status();
        });
        break;
      }
      default: told(report, "release", calls * config().request_timeout, [&] { return lock.release(); });
    }
  }

  [[nodiscard]] Servers& servers() { return servers_; }

 private:
  template <class Lock>
  static constexpr bool is_set = std::is_same_v<Lock, LockSet>;
  template <class Lock>
  static constexpr bool nests = !is_set<Lock> && !std::is_same_v<Lock, Mutex> && !std::is_same_v<Lock, Semaphore> &&
                                !std::is_same_v<Lock, RedlockMutex<soak_nodes>>;

  [[nodiscard]] const ClientConfig& config() const { return servers_.config; }

  template <class Call>
  Status told(WorkerReport& report, const char* what, Duration bound, Call call) {
    const std::int64_t names_before = WorkerClock::waited_for_names();
    report.ask(what, bound);
    const Status status = call();
    report.told(to_string(status), WorkerClock::waited_for_names() - names_before);
    return status;
  }

  // `calls`: as many as each may block for a request longer than it was to wait.
  template <class Lock>
  [[nodiscard]] bool acquire(Lock& lock, WorkerReport& report, int calls) {
    const Duration wait = choice_.wait();
    const bool once = wait == Duration::zero();
    const std::int64_t names_before = WorkerClock::waited_for_names();
    // A first attempt may have to connect.
    report.ask("acquire", wait + calls * config().request_timeout +
                              (once || calls > 1 ? calls * config().connect_timeout : Duration::zero()));
    const Status status = once ? lock.try_acquire() : lock.acquire(wait);
    if (status != Status::ok) {
      report.told(to_string(status), WorkerClock::waited_for_names() - names_before);
      // A lost reentrant lock is forgotten, since nothing counts on it. A set has let go of what it had.
      if constexpr (!is_set<Lock>)
        if (status == Status::lock_lost) (void)lock.forget_loss();
      if (status != Status::lock_busy) pause(choice_.up_to(50ms));
      return false;
    }
    const std::int64_t at = WorkerClock::true_now();
    report.got(at, WorkerClock::true_time(lock.valid_until()), fence_of(lock));
    return true;
  }
  template <class Lock>
  [[nodiscard]] static std::uint64_t fence_of(const Lock& lock) {
    if constexpr (requires { lock.fence(); })
      return lock.fence();
    else
      return 0;
  }

  // Looks at the hold before each step, as a user should.
  template <class Lock, class Step>
  void work(Lock& lock, WorkerReport& report, int calls, Duration length, Step step) {
    const std::int64_t end = WorkerClock::true_now() + length.count();
    for (;;) {
      if (!lock.held()) return;
      report.until(WorkerClock::true_time(lock.valid_until()));
      const std::int64_t left = end - WorkerClock::true_now();
      if (left <= 0) return;
      step();
      if (options_.keep == "tend") tend();
      if (options_.keep == "renew" && lock.renewal_due() < ClientBase::now())
        told(report, "renew", calls * (config().request_timeout + config().connect_timeout),
             [&] { return lock.renew(); });
      pause(std::min(Duration(left), work_step));
    }
  }

  // Told afterwards, where it took any time.
  void tend() {
    const std::int64_t since = WorkerClock::true_now();
    const std::int64_t names_before = WorkerClock::waited_for_names();
    servers_.tend();
    if (WorkerClock::true_now() - since < 100'000'000) return;
    log_.ask(since, actor, "-", "tend", 2 * config().request_timeout + config().connect_timeout);
    log_.told(actor, "done", WorkerClock::waited_for_names() - names_before);
  }
  static void pause(Duration length) { (void)::poll(nullptr, 0, static_cast<int>(length / 1ms)); }

  const WorkerOptions& options_;
  Log log_;
  Choice choice_;
  Servers servers_;
};

// ---- What there is to take ----------------------------------------------------------------------------------------------

struct OneServersLocks {
  OneServersLocks(OneServer& servers, const WorkerOptions& options)
      : owner(servers.client),
        mutex(servers.client, options.name_of("mutex"), options.timing()),
        announced(servers.client, options.name_of("announced"), options.timing(), {.announce = true, .fence = true}),
        reentrant(owner, options.name_of("reentrant"), options.timing()),
        fenced(owner, options.name_of("fenced"), options.timing()),
        fair(owner, options.name_of("fair"), options.timing(), {.fence = true}),
        read_write(owner, options.name_of("read_write"), {.read = options.timing(), .write = options.timing()}),
        permit(servers.client, options.name_of("permit"), soak_permits, options.timing()),
        left(owner, options.name_of("{pair}.left"), options.timing()),
        right(owner, options.name_of("{pair}.right"), options.timing()),
        both(owner, {options.name_of("{pair}.left"), options.name_of("{pair}.right")}, options.timing()),
        mutex_counter(options.counters, options.name_of("mutex")),
        announced_counter(options.counters, options.name_of("announced")),
        reentrant_counter(options.counters, options.name_of("reentrant")),
        fenced_counter(options.counters, options.name_of("fenced")),
        fair_counter(options.counters, options.name_of("fair")),
        write_counter(options.counters, options.name_of("read_write")),
        left_counter(options.counters, options.name_of("{pair}.left")),
        right_counter(options.counters, options.name_of("{pair}.right")) {}

  Owner owner;
  Mutex mutex;
  Mutex announced;
  ReentrantLock reentrant;
  FencedLock fenced;
  FairLock fair;
  ReadWriteLock read_write;
  Semaphore permit;
  ReentrantLock left;
  ReentrantLock right;
  MultiLock both;
  // In a cluster they are at any masters.
  BlockingLock* some[3] = {&permit, &mutex, &right};
  LockSet set{some, 3};
  CounterFile mutex_counter;
  CounterFile announced_counter;
  CounterFile reentrant_counter;
  CounterFile fenced_counter;
  CounterFile fair_counter;
  CounterFile write_counter;
  CounterFile left_counter;
  CounterFile right_counter;
};

struct FiveServersLocks {
  FiveServersLocks(FiveServers& servers, const WorkerOptions& options)
      : owner(servers.quorum),
        mutex(servers.quorum, options.name_of("mutex"), timing(options)),
        announced(servers.quorum, options.name_of("announced"), timing(options), {.announce = true, .fence = true}),
        reentrant(owner, options.name_of("reentrant"), timing(options)),
        fenced(owner, options.name_of("fenced"), timing(options)),
        mutex_counter(options.counters, options.name_of("mutex")),
        announced_counter(options.counters, options.name_of("announced")),
        reentrant_counter(options.counters, options.name_of("reentrant")),
        fenced_counter(options.counters, options.name_of("fenced")) {}

  static QuorumTiming timing(const WorkerOptions& options) {
    return {.lease = options.lease_time(), .kept = options.kept()};
  }

  QuorumOwner<soak_nodes> owner;
  RedlockMutex<soak_nodes> mutex;
  RedlockMutex<soak_nodes> announced;
  RedlockReentrantLock<soak_nodes> reentrant;
  RedlockFencedLock<soak_nodes> fenced;
  CounterFile mutex_counter;
  CounterFile announced_counter;
  CounterFile reentrant_counter;
  CounterFile fenced_counter;
};

int run_on_one(const WorkerOptions& options) {
  const auto worker = std::make_unique<Worker<OneServer>>(options);
  if (!worker->connect()) return 2;
  {
    const auto locks = std::make_unique<OneServersLocks>(worker->servers(), options);
    worker->run({
        [&] {
          worker->take(locks->mutex, {{"mutex", 'x', &locks->mutex_counter}});
        },
        [&] {
          worker->take(locks->announced, {{"announced", 'x', &locks->announced_counter}});
        },
        [&] {
          worker->take(locks->reentrant, {{"reentrant", 'x', &locks->reentrant_counter}});
        },
        [&] {
          worker->take(locks->fenced, {{"fenced", 'x', &locks->fenced_counter}});
        },
        [&] {
          worker->take(locks->fair, {{"fair", 'x', &locks->fair_counter}});
        },
        [&] {
          worker->take(locks->read_write.read(), {{"read_write", 'r', nullptr}});
        },
        [&] {
          worker->take(locks->read_write.write(), {{"read_write", 'x', &locks->write_counter}});
        },
        [&] {
          worker->take(locks->permit, {{"permit", 'p', nullptr}});
        },
        [&] {
          worker->take(locks->left, {{"{pair}.left", 'x', &locks->left_counter}});
        },
        [&] {
          worker->take(locks->right, {{"{pair}.right", 'x', &locks->right_counter}});
        },
        [&] {
          worker->take(locks->both,
                       {{"{pair}.left", 'x', &locks->left_counter}, {"{pair}.right", 'x', &locks->right_counter}});
        },
        [&] {
          worker->take(locks->set, {{"mutex", 'x', &locks->mutex_counter},
                                    {"{pair}.right", 'x', &locks->right_counter},
                                    {"permit", 'p', nullptr}});
        },
    });
    worker->farewell();
  }
  worker->say_bye();
  return 0;
}

int run_on_five(const WorkerOptions& options) {
  const auto worker = std::make_unique<Worker<FiveServers>>(options);
  if (!worker->connect()) return 2;
  {
    const auto locks = std::make_unique<FiveServersLocks>(worker->servers(), options);
    worker->run({
        [&] {
          worker->take(locks->mutex, {{"mutex", 'x', &locks->mutex_counter}});
        },
        [&] {
          worker->take(locks->announced, {{"announced", 'x', &locks->announced_counter}});
        },
        [&] {
          worker->take(locks->reentrant, {{"reentrant", 'x', &locks->reentrant_counter}});
        },
        [&] {
          worker->take(locks->fenced, {{"fenced", 'x', &locks->fenced_counter}});
        },
    });
    worker->farewell();
  }
  worker->say_bye();
  return 0;
}

}  // namespace

}  // namespace soak

int main(int count, char** arguments) {
  const soak::WorkerOptions options = soak::read_options(count, arguments);
  soak::end_on_term();
  return options.urls.size() == 1 ? soak::run_on_one(options) : soak::run_on_five(options);
}
