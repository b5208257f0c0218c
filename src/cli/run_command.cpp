// SPDX-License-Identifier: MIT
#include "run_command.hpp"

#include <stdlib.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "child_process.hpp"
#include "failure_text.hpp"
#include "holdfast/mutex.hpp"
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
void settle(Mutex& lock, const RunOptions& options, SignalRelay& relay, Instant lease_end) {
  const Instant until = std::min(Client::now() + patience_max, lease_end);
  while (lock.client().compensations_pending() != 0) {
    const Instant now = Client::now();
    if (now >= until) {
      if (now < lease_end)
        say("the server has not confirmed the release of " + escaped(options.name) + "; it ends by itself in " +
            seconds_text(lease_end - now) + " seconds at the latest");
      return;
    }
    // Any call moves compensations on, ahead of its own request.
    bool locked = false;
    if (lock.is_locked(locked) != Status::ok) relay.sleep_until(now + patience_step);
  }
}

// Takes the lock, with signals held from then on. `status` is ok only if it is held with enough of its lease left to
// start something.
Status acquire(Mutex& lock, const RunOptions& options, SignalRelay& relay) {
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
    status = lock.renew(options.server.request_timeout);
    if (status == Status::ok || options.wait == no_wait) return status;
    (void)lock.release();
    relay.release_signals();
  }
}

// Orphans of the command become our children instead of init's, so that none is lost from sight.
void adopt_orphans() noexcept {
#ifdef __linux__
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
}

// Runs the command under the lock. REQUIRES: the lock is held, and signals are.
int run_command(Mutex& lock, const RunOptions& options, SignalRelay& relay, bool& lost) {
  const std::string token(lock.token().bytes().string_view());
  if (::setenv("HOLDFAST_NAME", options.name.c_str(), 1) != 0 || ::setenv("HOLDFAST_TOKEN", token.c_str(), 1) != 0) {
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
  Client client;
  if (const Status status = client.connect(options.server); status != Status::ok) {
    say("no connection to " + address_text(options.server) + ": " + failure_text(status, client));
    return exit_code_of(status, exit_no_server);
  }
  Mutex lock(client, options.name, {.lease = options.lease});
  const std::string name = escaped(options.name);

  relay.begin_waiting(client);
  if (options.verbose && options.wait != no_wait) say("waiting for " + name);
  const Instant begin = Client::now();
  const Status acquired = acquire(lock, options, relay);
  if (const int signal = relay.ending_signal(); signal != 0) {
    if (lock.held()) (void)lock.release();
    settle(lock, options, relay, Client::now() + options.lease);
    return exit_signal_base + signal;
  }
  if (acquired != Status::ok) {
    say("did not get the lock " + name + ": " + failure_text(acquired, client));
    settle(lock, options, relay, Client::now() + options.lease);
    return exit_code_of(acquired, options.not_acquired);
  }
  if (options.verbose) say("acquired " + name + " after " + seconds_text(Client::now() - begin) + " seconds");

  bool lost = false;
  const int exit_code = run_command(lock, options, relay, lost);

  // When the server has dropped it by itself.
  const Instant lease_end = lock.valid_until() + drift_of(options.lease);
  const Status released = lock.held() ? lock.release() : Status::not_held;
  if (released == Status::lock_lost && !lost) {
    say("the lock " + name + " was lost while the command ran: " + cause(released));
    lost = true;
  }
  if (released == Status::ok && options.verbose) say("released " + name);
  settle(lock, options, relay, lease_end);
  return lost ? exit_lost : exit_code;
}

}  // namespace holdfast::cli
