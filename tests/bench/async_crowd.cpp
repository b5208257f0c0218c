// SPDX-License-Identifier: MIT
#include "async_crowd.hpp"

#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "command_stats.hpp"
#include "cpu_condition.hpp"
#include "cpu_time.hpp"
#include "holdfast/asio.hpp"
#include "holdfast/holdfast.hpp"

namespace bench {

namespace {

using holdfast::Status;

void expect_ok(const std::error_code& error) {
  if (error) throw std::system_error(error, "holdfast");
}
void expect_ok(Status status) { expect_ok(make_error_code(status)); }

std::string name_of(const char* kind, std::size_t index) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "bench:%s:%06zu", kind, index);
  return text;
}

// What this process has in memory.
double resident_bytes() {
  long whole = 0, resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  const bool read = std::fscanf(file, "%ld %ld", &whole, &resident) == 2;
  (void)std::fclose(file);
  return read ? static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) : 0;
}

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// ---- The crowd ---------------------------------------------------------------------------------------------------

class Crowd {
 public:
  explicit Crowd(const CrowdSize& size)
      : size_(size),
        client_(loop_.get_executor(), {.operations = size.waiters + in_flight_max + 8,
                                       .requests = 1024,
                                       .waiters = size.waiters,
                                       .kept = size.holds}) {}

  void connect(const std::string& url) {
    client_.async_connect(url, [this](std::error_code error) { finish(error); });
    run();
  }

  // Some at a time.
  void take_holds() {
    for (std::size_t index = 0; index < size_.holds; ++index) {
      holdfast::AsyncMutex& lock =
          holds_.emplace_back(client_, name_of("hold", index), holdfast::LockTiming{.lease = size_.lease});
      expect_ok(lock.keep({.keep = holdfast::Keep::always,
                           .on_at_risk = [](void* crowd) noexcept { ++static_cast<Crowd*>(crowd)->at_risk_; },
                           .on_lost = [](void* crowd) noexcept { ++static_cast<Crowd*>(crowd)->lost_; },
                           .context = this}));
    }
    for (next_ = 0; next_ < in_flight_max && next_ < size_.holds;) take_next();
    run();
  }

  // Each waits for a name of its own, or all for one; who is granted it lets go of it.
  enum class Names : unsigned char { own, one };
  void wait(Names names) {
    waits_.clear();
    granted_ = 0;
    for (std::size_t index = 0; index < size_.waiters; ++index) {
      const std::string name = names == Names::own ? name_of("wait", index) : name_of("one", 0);
      Wait& wait = waits_.emplace_back(client_, name, holdfast::LockTiming{.lease = std::chrono::minutes(5)});
      wait.lock.async_acquire(holdfast::wait_forever, [this, &wait, names](std::error_code error) {
        if (error) return finish(error);
        handoffs_.push_back(microseconds_since(names == Names::own ? wait.released_at.load() : one_released_at_));
        one_released_at_ = Clock::now();
        wait.lock.async_release([this](std::error_code failure) {
          if (failure || ++granted_ == size_.waiters) finish(failure);
        });
      });
    }
  }

  // Until all waiters were granted their locks, or for so long.
  void run() {
    loop_.restart();
    loop_.run();
    expect_ok(outcome_);
  }
  // One name through all waiters. A function of its own, for count_handoff.sh.
  [[gnu::noinline]] void run_chain() { run(); }
  void run_for(std::chrono::milliseconds duration) {
    loop_.restart();
    loop_.run_for(duration);
    expect_ok(outcome_);
  }
  void stop_from_anywhere() {
    asio::post(loop_, [this] { loop_.stop(); });
  }

  // Anybody may call these.
  void note_release(std::size_t waiter) { waits_[waiter].released_at.store(Clock::now()); }
  void note_release_of_one() { one_released_at_ = Clock::now(); }  // Seen by who hears of the release.

  [[nodiscard]] std::vector<double> take_handoffs() { return std::move(handoffs_); }
  [[nodiscard]] bool all_granted() const { return granted_ == size_.waiters; }
  [[nodiscard]] const std::deque<holdfast::AsyncMutex>& holds() const { return holds_; }
  [[nodiscard]] int told() const { return at_risk_ + lost_; }
  [[nodiscard]] const holdfast::AsyncClient& client() const { return client_; }

  // How many were not ours any more.
  std::size_t release_holds() {
    std::size_t missed = 0;
    for (next_ = 0, released_ = 0; next_ < in_flight_max && next_ < size_.holds;) release_next(missed);
    run();
    return missed;
  }

 private:
  static constexpr std::size_t in_flight_max = 256;

  struct Wait {
    Wait(holdfast::AsyncClient& client, const std::string& name, const holdfast::LockTiming& timing)
        : owner(client), lock(owner, name, timing) {}
    holdfast::AsyncOwnerOf<1> owner;
    holdfast::AsyncReentrantLock lock;
    std::atomic<Clock::time_point> released_at{};
  };

  void finish(std::error_code error) {
    if (!outcome_) outcome_ = error;
    loop_.stop();
  }
  void take_next() {
    holds_[next_++].async_try_acquire([this](std::error_code error) {
      if (error || ++taken_ == size_.holds) return finish(error);
      if (next_ < size_.holds) take_next();
    });
  }
  void release_next(std::size_t& missed) {
    holds_[next_++].async_release([this, &missed](std::error_code error) {
      if (error) ++missed;
      if (++released_ == size_.holds) return finish({});
      if (next_ < size_.holds) release_next(missed);
    });
  }

  CrowdSize size_;
  asio::io_context loop_{1};
  holdfast::AsyncClient client_;
  std::deque<holdfast::AsyncMutex> holds_;
  std::deque<Wait> waits_;
  std::vector<double> handoffs_;  // Microseconds.
  Clock::time_point one_released_at_;
  std::error_code outcome_;
  std::size_t next_ = 0;
  std::size_t taken_ = 0;
  std::size_t released_ = 0;
  std::size_t granted_ = 0;
  int at_risk_ = 0;
  int lost_ = 0;
};

// ---- The others --------------------------------------------------------------------------------------------------

// A client of its own, on a thread of its own, that holds what the crowd waits for.
class Others {
 public:
  Others(const std::string& url, std::size_t count) {
    expect_ok(client_.connect(url));
    const holdfast::LockTiming timing = {.lease = std::chrono::minutes(5)};
    for (std::size_t index = 0; index < count; ++index) {
      held_.emplace_back(client_, name_of("wait", index), timing);
      expect_ok(held_.back().lock.try_acquire());
    }
    held_.emplace_back(client_, name_of("one", 0), timing);
    expect_ok(held_.back().lock.try_acquire());
  }

  // One after the other.
  void release_each(Crowd& crowd, std::chrono::nanoseconds pace) {
    const std::size_t count = held_.size() - 1;
    Clock::time_point next = Clock::now();
    for (std::size_t index = 0; index < count; ++index) {
      std::this_thread::sleep_until(next += pace);
      crowd.note_release(index);
      expect_ok(held_[index].lock.release());
    }
  }
  void release_one(Crowd& crowd) {
    crowd.note_release_of_one();
    expect_ok(held_.back().lock.release());
  }

 private:
  struct Held {
    Held(holdfast::Client& client, const std::string& name, const holdfast::LockTiming& timing)
        : owner(client), lock(owner, name, timing) {}
    holdfast::OwnerOf<1> owner;
    holdfast::ReentrantLock lock;
  };

  holdfast::Client client_;
  std::deque<Held> held_;
};

// What the server has of the holds.
struct Seen {
  std::size_t missed = 0;  // Without a TTL, or another's.
  long least = std::numeric_limits<long>::max();
};

Seen look_at(const RedisServer& server, const std::deque<holdfast::AsyncMutex>& holds) {
  RawConnection connection(server.socket_path());
  Seen seen;
  for (const holdfast::AsyncMutex& lock : holds) {
    const std::string key(lock.key().bytes().string_view());
    const long left = std::stol(connection.command({"PTTL", key}));
    seen.least = std::min(seen.least, left);
    if (left < 0 || connection.command({"GET", key}) != lock.token().bytes().string_view()) ++seen.missed;
  }
  return seen;
}

std::string grouped(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace

void measure_crowd(Report& report, const RedisServer& server, const CrowdSize& size, int other_cpu) {
  const std::string group = grouped(size.holds) + " holds and " + grouped(size.waiters) + " waiters on one loop";
  const auto add = [&](const char* name, double value, const char* unit, Bound bound = {}) {
    report.add({group, name, value, unit, bound});
  };
  const auto holds = static_cast<double>(size.holds);

  const double memory_before = resident_bytes();
  Crowd crowd(size);
  crowd.connect(server.tcp_url());
  const double memory_of_client = resident_bytes();
  const Clock::time_point taking = Clock::now();
  crowd.take_holds();
  const double took = microseconds_since(taking) / 1e6;
  const double memory_of_holds = resident_bytes();

  // Everything of the others happens on their thread; this one runs the loop.
  std::exception_ptr failure;
  const auto beside = [&](const std::function<void()>& work, void (Crowd::*loop)() = &Crowd::run) {
    std::thread thread([&] {
      place_thread(0, other_cpu, SCHED_OTHER);
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
        crowd.stop_from_anywhere();
      }
    });
    try {
      (crowd.*loop)();
    } catch (...) {
      thread.join();
      throw;
    }
    thread.join();
    if (failure != nullptr) std::rethrow_exception(failure);
  };
  std::optional<Others> others;
  beside([&] {
    others.emplace(server.tcp_url(), size.waiters);
    crowd.stop_from_anywhere();
  });

  const double memory_of_others = resident_bytes();
  crowd.wait(Crowd::Names::own);
  crowd.run_for(size.lease / 4);  // They try, subscribe, try again and sleep.
  const double memory_of_waiters = resident_bytes();

  // The kept ones alone, and then with hand-offs.
  struct Reading {
    Clock::time_point at = Clock::now();
    std::chrono::nanoseconds loop = cpu_time(CLOCK_THREAD_CPUTIME_ID);
    std::chrono::nanoseconds server;
    double keys;  // Each key of a renewal is looked up once.
    double calls;
    Reading(const RedisServer& its_server, const Crowd& its_crowd)
        : server(cpu_time_of(its_server.pid())),
          keys(static_cast<double>(its_server.calls("get"))),
          calls(static_cast<double>(its_crowd.client().renewal_calls())) {}
  };
  const Reading before(server, crowd);
  crowd.run_for(size.lease * size.leases / 2);
  const Reading between(server, crowd);
  beside([&] { others->release_each(crowd, std::chrono::nanoseconds(size.lease) * size.leases / 2 / size.waiters); });
  const Reading after(server, crowd);
  std::vector<double> each = crowd.take_handoffs();
  const bool each_granted = crowd.all_granted();

  crowd.wait(Crowd::Names::one);
  crowd.run_for(size.lease / 4);
  const std::chrono::nanoseconds chain_begin = cpu_time(CLOCK_THREAD_CPUTIME_ID);
  beside([&] { others->release_one(crowd); }, &Crowd::run_chain);
  const std::chrono::nanoseconds chain_time = cpu_time(CLOCK_THREAD_CPUTIME_ID) - chain_begin;
  std::vector<double> chain = crowd.take_handoffs();

  Seen seen;
  beside([&] {
    seen = look_at(server, crowd.holds());
    crowd.stop_from_anywhere();
  });
  std::size_t missed = seen.missed + static_cast<std::size_t>(crowd.told());
  missed += crowd.release_holds();
  others.reset();

  const auto percent = [](std::chrono::nanoseconds time, const Reading& from, const Reading& until) {
    return 100 * std::chrono::duration<double>(time) / std::chrono::duration<double>(until.at - from.at);
  };
  const double seconds = std::chrono::duration<double>(after.at - before.at).count();
  const double keys = after.keys - before.keys;
  const std::chrono::duration<double> lease = size.lease;
  add("holds missed", static_cast<double>(missed), "", value_at_most(0));
  add("waiters not granted", each_granted && crowd.all_granted() ? 0 : 1, "", value_at_most(0));
  add("lease", lease.count(), "s");
  add("kept for", seconds, "s");
  // A call that is due waits for its turn, for a reply, and for a core.
  add("least remaining time, on the server", static_cast<double>(seen.least) / 1000, "s",
      value_at_least(lease.count() * 2 / 3 - lease.count() / 30));
  add("renewals", keys / seconds, "a second");
  add("keys a renewal call", keys / (after.calls - before.calls), "");
  add("CPU of the loop, keeping alone", percent(between.loop - before.loop, before, between), "% of a core");
  add("CPU of the loop, with hand-offs", percent(after.loop - between.loop, between, after), "% of a core");
  add("CPU of the server, keeping alone", percent(between.server - before.server, before, between), "% of a core");
  std::sort(each.begin(), each.end());
  add("hand-off by another client, median", percentile(each, 0.5), "us");
  add("hand-off by another client, p99", percentile(each, 0.99), "us");
  add("hand-off by another client, longest", each.back(), "us");
  std::sort(chain.begin(), chain.end());
  add("hand-off of one name through all, median", percentile(chain, 0.5), "us");
  add("hand-off of one name through all, p99", percentile(chain, 0.99), "us");
  add("the same, CPU of the loop",
      std::chrono::duration<double, std::micro>(chain_time).count() / static_cast<double>(size.waiters), "us");
  add("to take the holds", took, "s");
  using holdfast::RenewalSchedule;
  add("memory a hold: the AsyncMutex", sizeof(holdfast::AsyncMutex), "bytes");
  add("memory a hold: its place", sizeof(RenewalSchedule::Place) + sizeof(std::uint32_t), "bytes");
  add("memory a hold: resident", (memory_of_holds - memory_of_client) / holds, "bytes");
  add("memory of the client: resident", memory_of_client - memory_before, "bytes");
  add("memory a waiter: resident", (memory_of_waiters - memory_of_others) / static_cast<double>(size.waiters), "bytes");
}

}  // namespace bench
