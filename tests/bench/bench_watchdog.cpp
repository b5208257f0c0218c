// SPDX-License-Identifier: MIT
//
// How many holds does one watchdog keep? So many Mutex holds, taken one by one and then kept over its one connection for
// at least one lease, over a private server that this program starts: without one missed, and what it costs the
// watchdog's thread, the server and the memory. Prints a table for each number of holds and writes watchdog.json.
//
// A hold is missed when its holder was told of doubt or loss, when it is not held at the end by our clock or the server's,
// when the server's remaining time is below two thirds of the lease (less a margin: a renewal starts at a third), or when
// its release finds that it is not ours.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "command_stats.hpp"
#include "cpu_time.hpp"
#include "harness.hpp"
#include "holdfast/holdfast.hpp"
#include "paired_rounds.hpp"
#include "redis_server.hpp"
#include "report.hpp"

namespace {

using bench::Harness;
using holdfast::Duration;
using holdfast::Status;

void expect_ok(Status status, const char* what) {
  if (status != Status::ok)
    throw std::runtime_error(std::string(what) + ": " + std::string(holdfast::to_string(status)));
}

// ---- What is counted ---------------------------------------------------------------------------------------------

// This process has two threads: the one that calls, and the watchdog's.
std::chrono::nanoseconds other_thread_time() {
  return bench::cpu_time(CLOCK_PROCESS_CPUTIME_ID) - bench::cpu_time(CLOCK_THREAD_CPUTIME_ID);
}

struct Reading {
  bench::Clock::time_point at;
  std::chrono::nanoseconds watchdog;
  std::chrono::nanoseconds server;
  double calls;
  double keys;  // Each key of a call is looked up once.
};

Reading read_all(const RedisServer& server, const holdfast::Watchdog& watchdog) {
  return {bench::Clock::now(), other_thread_time(), bench::cpu_time_of(server.pid()),
          static_cast<double>(watchdog.calls()), static_cast<double>(server.calls("get"))};
}

// ---- The holds ---------------------------------------------------------------------------------------------------

struct Told {
  std::atomic<int> at_risk{0};
  std::atomic<int> lost{0};
};

std::string key_of(std::size_t index) {
  char text[24];
  (void)std::snprintf(text, sizeof text, "bench:%08zu", index);
  return text;
}

// The least remaining time of all on the server, in milliseconds; below zero: a key is gone.
long least_time_on_server(const RedisServer& server, std::size_t count) {
  RawConnection connection(server.socket_path());
  long least = std::numeric_limits<long>::max();
  for (std::size_t index = 0; index < count; ++index)
    least = std::min(least, std::stol(connection.command({"PTTL", key_of(index)})));
  return least;
}

std::string grouped(std::size_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

void keep(bench::Report& report, const RedisServer& server, std::size_t count, Duration lease,
          std::chrono::duration<double> window) {
  using holdfast::RenewalSchedule;
  const auto places = std::make_unique<RenewalSchedule::Place[]>(count);
  const auto heap = std::make_unique<std::uint32_t[]>(count);
  holdfast::Client client;
  expect_ok(client.connect(server.tcp_url()), "connect");
  holdfast::Watchdog watchdog({places.get(), heap.get(), count});
  expect_ok(watchdog.start(client), "watchdog");

  Told told;
  std::deque<holdfast::Mutex> locks;
  const bench::Clock::time_point begin = bench::Clock::now();
  for (std::size_t index = 0; index < count; ++index) {
    holdfast::Mutex& lock = locks.emplace_back(client, key_of(index), holdfast::LockTiming{.lease = lease});
    expect_ok(lock.keep({.keep = holdfast::Keep::always,
                         .on_at_risk = [](void* context) noexcept { ++static_cast<Told*>(context)->at_risk; },
                         .on_lost = [](void* context) noexcept { ++static_cast<Told*>(context)->lost; },
                         .context = &told}),
              "keep");
    expect_ok(lock.try_acquire(), "acquire");
  }
  const std::chrono::duration<double> taking = bench::Clock::now() - begin;

  const Reading before = read_all(server, watchdog);
  std::this_thread::sleep_for(window);
  const Reading after = read_all(server, watchdog);

  Duration least_here = lease;
  for (const holdfast::Mutex& lock : locks) least_here = std::min(least_here, lock.remaining());
  const long least_there = least_time_on_server(server, count);
  std::size_t missed = 0;
  for (holdfast::Mutex& lock : locks) missed += lock.release() == Status::ok ? 0U : 1U;
  missed += static_cast<std::size_t>(told.at_risk + told.lost);
  watchdog.stop();

  const std::chrono::duration<double> elapsed = after.at - before.at;
  const std::chrono::duration<double> lease_seconds = lease;
  const double calls = after.calls - before.calls;
  const auto percent = [&](std::chrono::nanoseconds time) {
    return 100 * std::chrono::duration<double>(time) / elapsed;
  };
  // A call that is due waits for its turn, for a reply, and for a core.
  const double margin = lease_seconds.count() / 30;
  const std::string group = grouped(count) + " holds";
  const auto add = [&](const char* name, double value, const char* unit, bench::Bound bound = {}) {
    report.add({group, name, value, unit, bound});
  };
  add("missed", static_cast<double>(missed), "holds", bench::value_at_most(0));
  add("least remaining time, on the server", static_cast<double>(least_there) / 1000, "s",
      bench::value_at_least(lease_seconds.count() * 2 / 3 - margin));
  add("least remaining time, by our clock", std::chrono::duration<double>(least_here).count(), "s");
  add("kept for", elapsed.count(), "s");
  add("lease", lease_seconds.count(), "s");
  add("renewals", after.keys - before.keys, "");
  add("renewals a hold", (after.keys - before.keys) / static_cast<double>(count), "");
  add("calls", calls, "");
  add("keys a call", calls == 0 ? 0 : (after.keys - before.keys) / calls, "");
  add("CPU of the watchdog's thread", percent(after.watchdog - before.watchdog), "% of a core");
  add("CPU of the server", percent(after.server - before.server), "% of a core");
  add("memory of the watchdog", sizeof(holdfast::Watchdog), "bytes");
  add("memory a hold: its place and heap slot", sizeof(RenewalSchedule::Place) + sizeof(std::uint32_t), "bytes");
  add("memory a hold: the Mutex", sizeof(holdfast::Mutex), "bytes");
  add("to take them one by one", taking.count(), "s");
}

// ---- The run -----------------------------------------------------------------------------------------------------

struct Asked {
  std::size_t holds = 0;  // All three numbers.
  double lease = 30;
};

void measure(Harness& harness, const Asked& asked) {
  std::vector<std::size_t> counts = {1000, 10'000, 100'000};
  if (harness.smoke()) counts = {1000};
  if (asked.holds != 0) counts = {asked.holds};
  const std::chrono::duration<double> lease(harness.smoke() ? 2 : asked.lease);
  const std::chrono::duration<double> window(harness.smoke() ? 3 : harness.seconds());
  for (const std::size_t count : counts) {
    const RedisServer server(harness.binaries()[0]);
    keep(harness.report(), server, count, std::chrono::duration_cast<std::chrono::milliseconds>(lease), window);
    harness.print_new_rows();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness({
      .name = "bench_watchdog",
      .purpose = "Keeps holds alive by one watchdog, over a private server: the first of HOLDFAST_SERVERS (separated "
                 "by colons), else\n"
                 "redis-server from the path.",
      .title = "holdfast: holds kept by one watchdog",
      .files = "watchdog",
      .plotted = false,
  });
  Asked asked;
  harness.options().add("--holds N", &asked.holds, "how many (default: 1,000, then 10,000, then 100,000)");
  harness.options().add("--lease N", &asked.lease, "in seconds (default 30)");
  harness.add_seconds(45, "how long each number is kept");
  harness.add_output("1,000 holds with a lease of 2 s, for 3 s");
  return harness.main(argc, argv, [&] { measure(harness, asked); });
}
