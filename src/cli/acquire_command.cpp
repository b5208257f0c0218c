// SPDX-License-Identifier: MIT
#include "acquire_command.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "acquisition.hpp"
#include "chosen_lock.hpp"
#include "json.hpp"
#include "messages.hpp"
#include "seconds.hpp"
#include "signal_relay.hpp"

namespace holdfast::cli {

namespace {

// Nodes that are gone are not waited for longer than this.
constexpr Duration spread_max = std::chrono::milliseconds(100);

std::string grant_text(const ChosenLock& lock, const AcquireOptions& options) {
  const std::string token(lock.token().bytes().string_view());
  const std::optional<std::uint64_t> fence = lock.fence();
  if (!options.json) return token + "\n" + (fence ? std::to_string(*fence) + "\n" : "");
  JsonObject object;
  object.add("name", escaped(options.name));
  object.add("kind", std::string_view(to_string(options.choice.kind)));
  object.add("token", token);
  if (fence) object.add_number("fence", std::to_string(*fence));
  object.add_number("remaining", seconds_text(lock.remaining()));
  return object.text() + "\n";
}

// Waits until standard output takes the text without a wait of its own: a reader may be slow, and one that never reads must keep
// neither us nor the lock. False where the hold, or our time, has ended before. Signals are held back before and after.
bool await_reader(const ChosenLock& lock, SignalRelay& relay) {
  constexpr int look_interval_milliseconds = 10;
  for (bool ready = false; relay.ending_signal() == 0 && lock.held(Client::now());) {
    if (ready) return true;
    relay.release_signals();
    // One that is closed, or that nobody reads, counts as ready: the write says so.
    pollfd entry = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    ready = ::poll(&entry, 1, look_interval_milliseconds) == 1;
    relay.hold_signals();
  }
  return false;
}

// Lets go of what nobody was told of.
void let_go(ChosenLock& lock, const AcquireOptions& options, SignalRelay& relay) {
  const Instant lease_end = Client::now() + options.lease;
  const Instant until = std::min(Client::now() + patience_max, lease_end);
  relay.limit_calls(lock, until);
  relay.release_signals();
  (void)lock.release();
  settle(lock, options, relay, "the release of", until, lease_end);
}

}  // namespace

int acquire(AcquireOptions& options) {
  SignalRelay relay;
  ChosenLock lock(options);
  if (const std::optional<int> failed = acquire(lock, options, relay)) return *failed;
  const std::string name = escaped(options.name);
  const Status spread = lock.spread(spread_max);
  if (!lock.held(Client::now())) {
    say("the lock " + name + " was acquired, and has ended before its token was printed" +
        (spread == Status::ok ? "" : ": " + lock.failure_text(spread)));
    let_go(lock, options, relay);
    return exit_lost;
  }
  // Whoever dies from here on without a word leaves a lock that nobody knows the token of.
  if (await_reader(lock, relay) && print(grant_text(lock, options))) std::_Exit(exit_ok);  // No destructor lets go.

  const int signal = relay.ending_signal();
  if (signal == 0) say("could not print the token of " + name + ", and lets go of it");
  let_go(lock, options, relay);
  return signal == 0 ? exit_output : exit_signal_base + signal;
}

}  // namespace holdfast::cli
