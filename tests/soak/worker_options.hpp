// SPDX-License-Identifier: MIT
//
// WorkerOptions is what soak.py tells a worker: where its servers are, what it takes, how it is tormented from inside.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "soak_log.hpp"

namespace soak {

using namespace std::chrono_literals;
using holdfast::Duration;

inline constexpr std::size_t soak_nodes = 5;
inline constexpr std::size_t soak_branches = 5;  // Beside the first, of a cluster of six nodes.
inline constexpr std::uint32_t soak_permits = 3;
inline constexpr Duration longest_wait = 2s;
inline constexpr Duration work_step = 10ms;

struct WorkerOptions {
  std::vector<std::string> urls;
  std::string log;
  std::string counters;
  std::string prefix;
  std::string role;
  std::string keep = "watchdog";
  std::string ca_file;
  std::vector<std::string> only;
  bool branches = false;
  bool watch = false;
  bool spoilt_names = false;
  std::uint64_t seed = 1;
  int rate = 0;
  bool slow_names = false;
  int actors = 1;
  int lease = 1500;

  [[nodiscard]] std::string name_of(const char* lock) const { return prefix + lock; }
  [[nodiscard]] Duration lease_time() const { return std::chrono::milliseconds(lease); }
  // Kept by somebody, or renewed by the worker itself.
  [[nodiscard]] bool kept() const { return keep != "renew"; }
  [[nodiscard]] holdfast::LockTiming timing() const { return {.lease = lease_time(), .kept = kept()}; }
  // A lock that this worker takes; without --only, every one.
  [[nodiscard]] bool takes(const char* lock) const {
    return only.empty() || std::find(only.begin(), only.end(), lock) != only.end();
  }
  // All that does not depend on where a server is.
  [[nodiscard]] static holdfast::ClientConfig timeouts() {
    holdfast::ClientConfig config;
    config.connect_timeout = 500ms;
    config.request_timeout = 300ms;
    config.stall_timeout = 1s;
    config.max_poll = 1s;
    return config;
  }
};

// Exits with 2 where the arguments are none.
inline WorkerOptions read_options(int count, char** arguments) {
  WorkerOptions options;
  CLI::App app{"A worker of the soak: takes locks, and writes down what it believes. See soak.py."};
  app.add_option("--url", options.urls,
                 "a server, several that are found by sentinels or in a cluster, or five for Redlocks")
      ->required()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--log", options.log, "the file to write to")->required();
  app.add_option("--counters", options.counters, "the folder with the counters")->required();
  app.add_option("--prefix", options.prefix, "what the names of all locks begin with")->required();
  app.add_option("--role", options.role, "the worker's name in the figures")->required();
  app.add_option("--keep", options.keep, "who renews")->check(CLI::IsMember({"watchdog", "tend", "renew"}));
  app.add_option("--seed", options.seed, "of every choice");
  app.add_option("--rate", options.rate, "by how many millionths holdfast's clock is too fast")
      ->check(CLI::Range(-500000, 500000));
  app.add_flag("--slow-names", options.slow_names, "these hosts are found slowly, or not at all");
  app.add_flag("--spoilt-names", options.spoilt_names,
               "hosts named soak.*, and localhost, are found at 127.0.0.2, where a proxy is");
  app.add_option("--only", options.only, "a lock that it takes, of several that there are")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--watch", options.watch, "it hears of a fail-over from a sentinel");
  app.add_flag("--branches", options.branches, "a blocking client has names in any slot of a cluster");
  // Who was built without TLS does not know it, and soak.py sees that.
  if (SOAK_TLS != 0)
    app.add_option("--ca-file", options.ca_file, "the authority of servers that are spoken to over TLS");
  app.add_option("--actors", options.actors, "how many take locks at the same time, on a loop")
      ->check(CLI::Range(1, 64));
  app.add_option("--lease", options.lease, "milliseconds")->check(CLI::Range(100, 60000));
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    std::exit(code == 0 ? 0 : 2);
  }
  if (options.urls.size() != 1 && options.urls.size() != soak_nodes) {
    std::fprintf(stderr, "one server, or %zu\n", soak_nodes);
    std::exit(2);
  }
  WorkerClock::set_rate(options.rate);
  if (options.slow_names) WorkerClock::make_names_slow(options.seed);
  if (options.spoilt_names) WorkerClock::lead_names_to("127.0.0.2");
  return options;
}

// Every choice of a worker.
class Choice {
 public:
  explicit Choice(std::uint64_t seed) : source_(seed) {}
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return source_() % limit; }
  [[nodiscard]] bool one_in(std::uint64_t count) { return below(count) == 0; }
  [[nodiscard]] Duration up_to(Duration longest) {
    return Duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(longest.count()) + 1)));
  }
  // How long to hold a lock: mostly for a moment, sometimes for longer than a lease.
  [[nodiscard]] Duration work(Duration lease) {
    const std::uint64_t drawn = below(100);
    return up_to(drawn < 70 ? Duration(20ms) : drawn < 95 ? lease / 4 : 2 * lease);
  }
  [[nodiscard]] Duration wait() {
    const std::uint64_t drawn = below(10);
    return drawn == 0 ? Duration::zero() : up_to(drawn < 4 ? longest_wait / 10 : longest_wait);
  }

 private:
  std::mt19937_64 source_;
};

// SIGTERM: finish the round, and go.
inline volatile std::sig_atomic_t asked_to_end = 0;
inline void end_on_term() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked_to_end = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace soak
