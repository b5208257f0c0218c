// SPDX-License-Identifier: MIT
#include "run_command.hpp"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "acquisition.hpp"
#include "chosen_lock.hpp"
#include "failure_text.hpp"
#include "holdfast/proto/assert.hpp"
#include "messages.hpp"
#include "new_file.hpp"
#include "run_list.hpp"
#include "seconds.hpp"
#include "signal_relay.hpp"
#include "supervision.hpp"
#include "terminal.hpp"
#include "warden.hpp"

namespace holdfast::cli {

namespace {

std::string system_text(int error) { return std::generic_category().message(error); }

// The server has said no to a release, so that the lock may stay until its lease is over. What got no answer at all is
// left to settle().
bool refused(Status released) noexcept {
  constexpr Status others[] = {Status::ok,
                               Status::not_held,
                               Status::lock_lost,
                               Status::timed_out,
                               Status::not_connected,
                               Status::connect_failed,
                               Status::transport_closed,
                               Status::name_not_resolved,
                               Status::outcome_unknown};
  return std::find(std::begin(others), std::end(others), released) == std::end(others);
}

bool set_variable(const char* name, const std::string& value) noexcept { return ::setenv(name, value.c_str(), 1) == 0; }

// What the command finds in its environment. A fence that we inherited is another run's, and must not pass for ours.
bool set_environment(const ChosenLock& lock, const RunOptions& options, const std::string& token) {
  const std::optional<std::uint64_t> fence = lock.fence();
  OuterRun inner = {.token = token, .name = options.name, .servers = {}};
  if (!options.keep_environment) inner.url_taken = take_secrets_from_environment();
  for (const ClientConfig& server : options.servers) inner.servers.push_back(database_text(server));
  return set_variable(run_list_variable, RunList::inherited().text_with(inner)) &&
         set_variable("HOLDFAST_NAME", options.name) && set_variable("HOLDFAST_TOKEN", token) &&
         set_variable("HOLDFAST_KIND", to_string(options.choice.kind)) &&
         (fence ? set_variable("HOLDFAST_FENCE", std::to_string(*fence)) : ::unsetenv("HOLDFAST_FENCE") == 0);
}

// Runs the command under the lock. REQUIRES: the lock is held, and signals are.
int run_command(ChosenLock& lock, const RunOptions& options, SignalRelay& relay, bool& lost) {
  const std::string token(lock.token().bytes().string_view());
  if (!set_environment(lock, options, token)) {
    say("cannot set the command's environment: " + system_text(errno));
    return exit_system;
  }
  Terminal terminal;
  Warden warden;
  // We may be stopped right after the fork: from its first instant on the command is guarded.
  if (!warden.start(options.command, relay, terminal, token, lock.valid_until() - margin_of(options.lease) / 2)) {
    say("cannot start a process: " + system_text(errno));
    return exit_system;
  }
  relay.begin_running(warden.command(), warden.descriptor());
  relay.release_signals();

  Supervision supervision(lock, options, relay, terminal, warden, token);
  supervision.run();
  lost = supervision.lost();

  terminal.take_back_from(warden.command());
  relay.end();
  if (const int error = warden.exec_error(); error != 0)
    say("cannot execute '" + escaped(options.command[0]) + "': " + system_text(error));
  warden.dismiss();
  return warden.exit_code();
}

// All of a run but its numbers.
int run_locked(RunOptions& options) {
  SignalRelay relay;
  ChosenLock lock(options);
  if (const std::optional<int> failed = acquire(lock, options, relay)) return *failed;
  const std::string name = escaped(options.name);

  bool lost = false;
  const int exit_code = run_command(lock, options, relay, lost);

  // When the server has dropped it by itself.
  const Instant lease_end = lock.valid_until() + drift_of(options.lease);
  const Instant until = std::min(Client::now() + patience_max, lease_end);
  relay.limit_calls(lock, until);
  const Status released = lock.held(Client::now()) ? lock.release() : Status::not_held;
  if (released == Status::lock_lost && !lost) {
    say("the lock " + name + " was lost while the command ran: " + cause(released));
    lost = true;
  }
  if (released == Status::ok && options.verbose) say("released " + name);
  if (refused(released)) say("the release of " + name + " was not confirmed: " + lock.failure_text(released));
  settle(lock, options, relay, "the release of", until, lease_end);
  return lost ? exit_lost : exit_code;
}

void tell_stats_problem(const RunOptions& options, const std::string& problem) {
  say("--stats: " + escaped(options.stats) + ": " + problem);
}

// At the end, whatever it was: that the lock was not acquired is a number, too.
void write_stats(const RunOptions& options, const Stats& stats) {
  std::vector<MetricLabel> labels;
  std::size_t label_bytes = 0;
  for (const auto& [name, value] : options.stats_labels) {
    labels.push_back({ByteView(std::string_view(name)), ByteView(std::string_view(value))});
    label_bytes += name.size() + value.size();
  }
  std::string text(openmetrics_size_max_with(labels.size(), label_bytes), '\0');
  std::size_t size = 0;
  const Status status = write_openmetrics(stats, {text.data(), text.size()}, size, labels.data(), labels.size());
  HOLDFAST_ASSERT(status == Status::ok);  // options.cpp has judged the labels, and the size is a sum.
  text.resize(size);
  if (const std::string problem = write_new_file(options.stats, text); !problem.empty())
    tell_stats_problem(options, problem);
}

}  // namespace

int run(RunOptions& options) {
  if (options.stats.empty()) return run_locked(options);
  if (const std::string problem = new_file_problem(options.stats); !problem.empty()) {
    tell_stats_problem(options, problem);
    return exit_output;
  }
  Meter meter;
  for (ClientConfig& server : options.servers) server.meter = &meter;
  options.quorum.meter = &meter;
  const int exit_code = run_locked(options);
  write_stats(options, meter.stats());
  return exit_code;
}

}  // namespace holdfast::cli
