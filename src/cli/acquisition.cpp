// SPDX-License-Identifier: MIT
#include "acquisition.hpp"

#include <string.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "messages.hpp"
#include "run_list.hpp"
#include "seconds.hpp"
#include "waiting.hpp"

namespace holdfast::cli {

namespace {

// As patience_max, of who asks for the end. What is to be taken back has been sent by then, if there is a connection.
constexpr Duration patience_after_signal = std::chrono::milliseconds(400);
constexpr Duration patience_step = std::chrono::milliseconds(10);

}  // namespace

std::optional<int> acquire(ChosenLock& lock, AcquisitionOptions& options, SignalRelay& relay) {
  const RunList outer = RunList::inherited();
  // A reader is let in beside an outer run that reads, and there may be a permit more. Where not, the server's answer tells.
  const bool may_join = options.choice.kind == Kind::read || options.choice.kind == Kind::semaphore;
  if (options.wait != no_wait && !may_join && is_own_lock(options, outer)) return tell_own_lock(options);
  if (!relay.opened()) {
    say("cannot open a pipe: " + std::generic_category().message(errno));
    return exit_system;
  }
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
    say("acquired " + escaped(options.name) + " after " + seconds_text(Client::now() - begin) + " seconds" +
        (fence ? "; its fence is " + std::to_string(*fence) : ""));
  }
  return std::nullopt;
}

void settle(ChosenLock& lock, const AcquisitionOptions& options, SignalRelay& relay, const char* what, Instant until,
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

}  // namespace holdfast::cli
