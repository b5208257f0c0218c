// SPDX-License-Identifier: MIT
#include "acquire_command.hpp"

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

}  // namespace

int acquire(AcquireOptions& options) {
  SignalRelay relay;
  ChosenLock lock(options);
  if (const std::optional<int> failed = acquire(lock, options, relay)) return *failed;
  lock.spread(Client::now() + spread_max);
  // Whoever dies here without a word leaves a lock that nobody knows the token of: signals are still held back.
  if (print(grant_text(lock, options))) std::_Exit(exit_ok);  // No destructor lets go.

  say("could not print the token of " + escaped(options.name) + ", and lets go of it");
  const Instant lease_end = lock.valid_until() + drift_of(options.lease);
  const Instant until = std::min(Client::now() + patience_max, lease_end);
  relay.limit_calls(lock, until);
  relay.release_signals();
  (void)lock.release();
  settle(lock, options, relay, "the release of", until, lease_end);
  return exit_output;
}

}  // namespace holdfast::cli
