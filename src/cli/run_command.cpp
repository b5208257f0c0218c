// SPDX-License-Identifier: MIT
#include "run_command.hpp"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

#include "acquisition.hpp"
#include "chosen_lock.hpp"
#include "failure_text.hpp"
#include "messages.hpp"
#include "run_list.hpp"
#include "seconds.hpp"
#include "signal_relay.hpp"
#include "stats_file.hpp"
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
int run_command(ChosenLock& lock, const RunOptions& options, SignalRelay& relay, StatsFile* stats, bool& lost) {
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
  if (stats != nullptr) stats->begin();

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

// All of a run but what becomes of its numbers: `stats`, or nullptr where nobody wants them.
int run_locked(RunOptions& options, StatsFile* stats) {
  SignalRelay relay;
  ChosenLock lock(options);
  if (const std::optional<int> failed = acquire(lock, options, relay)) return *failed;
  const std::string name = escaped(options.name);

  bool lost = false;
  const int exit_code = run_command(lock, options, relay, stats, lost);

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

}  // namespace

int run(RunOptions& options) {
  if (options.stats.empty()) return run_locked(options, nullptr);
  Meter meter;
  StatsFile stats(options, meter);
  if (!stats.writable()) return exit_output;
  for (ClientConfig& server : options.servers) server.meter = &meter;
  options.quorum.meter = &meter;
  const int exit_code = run_locked(options, &stats);
  stats.finish();  // Whatever became of it: that the lock was not acquired is a number, too.
  return exit_code;
}

}  // namespace holdfast::cli
