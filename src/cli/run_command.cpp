// SPDX-License-Identifier: MIT
#include "run_command.hpp"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

#include "chosen_lock.hpp"
#include "failure_text.hpp"
#include "messages.hpp"
#include "run_list.hpp"
#include "seconds.hpp"
#include "signal_relay.hpp"
#include "supervision.hpp"
#include "terminal.hpp"
#include "waiting.hpp"
#include "warden.hpp"

namespace holdfast::cli {

namespace {

// How long a server that does not answer may keep us from going, while the lock's own end is as near.
constexpr Duration patience_max = std::chrono::seconds(2);
// The same of who asks for the end. What is to be taken back has been sent by then, if there is a connection.
constexpr Duration patience_after_signal = std::chrono::milliseconds(400);
constexpr Duration patience_step = std::chrono::milliseconds(10);

std::string system_text(int error) { return std::generic_category().message(error); }

// Until then what may be ours is taken back, so long as a server does not confirm it. `what` is said where none does.
void settle(ChosenLock& lock, const RunOptions& options, SignalRelay& relay, const char* what, Instant until,
            Instant lease_end) {
  relay.limit_calls(lock, until);
  while (!lock.settled()) {
    const Instant now = Client::now();
    if (now >= until) {
      if (now < lease_end)
        say(std::string(options.servers.size() == 1 ? "the server has" : "a majority of the nodes have") +
            " not confirmed " + what + " " + escaped(options.name) + "; it ends by itself in " +
            seconds_text(lease_end - now) + " seconds at the latest");
      break;
    }
    lock.move();
    if (!lock.settled()) relay.sleep_until(std::min(now + patience_step, until));
  }
  relay.end_limit();
}

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

}  // namespace

int run(RunOptions& options) {
  const RunList outer = RunList::inherited();
  const std::string name = escaped(options.name);
  // A reader is let in beside an outer run that reads, and there may be a permit more. Where not, the server's answer tells.
  const bool may_join = options.choice.kind == Kind::read || options.choice.kind == Kind::semaphore;
  if (options.wait != no_wait && !may_join && is_own_lock(options, outer)) return tell_own_lock(options);
  SignalRelay relay;
  if (!relay.opened()) {
    say("cannot open a pipe: " + system_text(errno));
    return exit_system;
  }
  ChosenLock lock(options);
  const Instant begin = Client::now();
  Waiting waiting(lock, options, relay, outer);
  const Status acquired = waiting.run();
  for (ClientConfig& server : options.servers) ::explicit_bzero(&server.password, sizeof server.password);

  if (const int signal = relay.ending_signal(); signal != 0) {
    const Instant until = Client::now() + patience_after_signal;
    relay.limit_calls(lock, until);
    relay.release_signals();
    if (lock.held(Client::now())) (void)lock.release();
    settle(lock, options, relay, "that nothing is left of", until, Client::now() + options.lease);
    return exit_signal_base + signal;
  }
  if (acquired != Status::ok) {
    const int exit_code = waiting.tell_failure(acquired);
    relay.release_signals();
    settle(lock, options, relay, "that nothing is left of", std::min(waiting.limit(), Client::now() + patience_max),
           Client::now() + options.lease);
    return exit_code;
  }
  if (options.verbose) {
    const std::optional<std::uint64_t> fence = lock.fence();
    say("acquired " + name + " after " + seconds_text(Client::now() - begin) + " seconds" +
        (fence ? "; its fence is " + std::to_string(*fence) : ""));
  }

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

}  // namespace holdfast::cli
