// SPDX-License-Identifier: MIT
#include "run_command.hpp"

#include <stdlib.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

#include "child_process.hpp"
#include "chosen_lock.hpp"
#include "failure_text.hpp"
#include "messages.hpp"
#include "seconds.hpp"
#include "signal_relay.hpp"
#include "supervision.hpp"
#include "terminal.hpp"
#include "warden.hpp"

namespace holdfast::cli {

namespace {

// How long a server that does not answer may keep us from going, while the lock's own end is as near.
constexpr Duration patience_max = std::chrono::seconds(2);
constexpr Duration patience_step = std::chrono::milliseconds(10);

std::string system_text(int error) { return std::generic_category().message(error); }

// Waits until the server has confirmed that what may be ours is taken back, or until patience or the lease is over.
void settle(ChosenLock& lock, const RunOptions& options, SignalRelay& relay, Instant lease_end) {
  const Instant until = std::min(Client::now() + patience_max, lease_end);
  while (!lock.settled()) {
    const Instant now = Client::now();
    if (now >= until) {
      if (now < lease_end)
        say(std::string(options.servers.size() == 1 ? "the server has" : "a majority of the nodes have") +
            " not confirmed the release of " + escaped(options.name) + "; it ends by itself in " +
            seconds_text(lease_end - now) + " seconds at the latest");
      return;
    }
    lock.move();
    if (!lock.settled()) relay.sleep_until(now + patience_step);
  }
}

// Takes the lock, with signals held from then on. `status` is ok only if it is held with enough of its lease left to
// start something.
Status acquire(ChosenLock& lock, const RunOptions& options, SignalRelay& relay) {
  const Instant deadline = Client::now() + options.wait;
  for (;;) {
    Status status = Status::ok;
    if (options.wait == no_wait)
      status = lock.try_acquire();
    else if (options.wait == wait_forever)
      status = lock.acquire(wait_forever);
    else
      status = lock.acquire(std::max(deadline - Client::now(), no_wait));
    relay.hold_signals();
    if (relay.ending_signal() != 0 || status != Status::ok) return status;
    // We may have been stopped in the middle.
    if (lock.remaining() > options.lease / 2) return Status::ok;
    status = lock.renew(options.request_timeout());
    if (status == Status::ok) return status;
    // A hold that ran out before it was of use was none: even without waiting the lock is asked for again.
    if (options.wait == no_wait && status != Status::lock_lost) return status;
    (void)lock.release();
    relay.release_signals();
  }
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
  return set_variable("HOLDFAST_NAME", options.name) && set_variable("HOLDFAST_TOKEN", token) &&
         set_variable("HOLDFAST_KIND", to_string(options.choice.kind)) &&
         (fence ? set_variable("HOLDFAST_FENCE", std::to_string(*fence)) : ::unsetenv("HOLDFAST_FENCE") == 0);
}

// Orphans of the command become our children instead of init's, so that none is lost from sight.
void adopt_orphans() noexcept {
#ifdef __linux__
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
}

// Runs the command under the lock. REQUIRES: the lock is held, and signals are.
int run_command(ChosenLock& lock, const RunOptions& options, SignalRelay& relay, bool& lost) {
  const std::string token(lock.token().bytes().string_view());
  if (!set_environment(lock, options, token)) {
    say("cannot set the command's environment: " + system_text(errno));
    return exit_system;
  }
  adopt_orphans();
  Terminal terminal;
  Warden warden;
  ChildProcess command;
  bool started = warden.start("HOLDFAST_TOKEN=" + token);
  if (started) {
    // We may be stopped right after the fork: from its first instant on the command is guarded.
    warden.instruct(0, lock.valid_until() - margin_of(options.lease) / 2);
    started = command.start(options.command, relay, terminal);
  }
  if (!started) {
    say("cannot start a process: " + system_text(errno));
    warden.dismiss();
    return exit_system;
  }
  relay.begin_running(command.group());
  relay.release_signals();

  Supervision supervision(lock, options, relay, terminal, command, warden);
  supervision.run();
  lost = supervision.lost();

  terminal.take_back_from(command.group());
  if (const int error = command.exec_error(); error != 0)
    say("cannot execute '" + escaped(options.command[0]) + "': " + system_text(error));
  relay.end_running();
  command.reap();
  warden.dismiss();
  return command.exit_code();
}

}  // namespace

int run(const RunOptions& options) {
  SignalRelay relay;
  if (!relay.opened()) {
    say("cannot open a pipe: " + system_text(errno));
    return exit_system;
  }
  ChosenLock lock(options);
  if (const Status status = lock.connect(); status != Status::ok) {
    const bool one = options.servers.size() == 1;
    say((one ? "no connection to " + address_text(options.servers.front()) : "no quorum") + ": " +
        lock.failure_text(status));
    return exit_code_of(status, exit_no_server);
  }
  const std::string name = escaped(options.name);

  relay.begin_waiting(lock);
  if (options.verbose && options.wait != no_wait) say("waiting for " + name);
  const Instant begin = Client::now();
  const Status acquired = acquire(lock, options, relay);
  if (const int signal = relay.ending_signal(); signal != 0) {
    if (lock.held(Client::now())) (void)lock.release();
    settle(lock, options, relay, Client::now() + options.lease);
    return exit_signal_base + signal;
  }
  if (acquired != Status::ok) {
    say("did not get the lock " + name + ": " + lock.failure_text(acquired));
    settle(lock, options, relay, Client::now() + options.lease);
    return exit_code_of(acquired, options.not_acquired);
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
  const Status released = lock.held(Client::now()) ? lock.release() : Status::not_held;
  if (released == Status::lock_lost && !lost) {
    say("the lock " + name + " was lost while the command ran: " + cause(released));
    lost = true;
  }
  if (released == Status::ok && options.verbose) say("released " + name);
  if (refused(released)) say("the release of " + name + " was not confirmed: " + lock.failure_text(released));
  settle(lock, options, relay, lease_end);
  return lost ? exit_lost : exit_code;
}

}  // namespace holdfast::cli
