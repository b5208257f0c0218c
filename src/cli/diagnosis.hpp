// SPDX-License-Identifier: MIT
//
// What a server says of itself, and what follows from that for its locks: findings, the most dangerous first. Does no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/instant.hpp"
#include "lock_choice.hpp"

namespace holdfast::cli {

enum class Severity : std::uint8_t { information, warning, danger };
[[nodiscard]] const char* to_string(Severity severity) noexcept;

struct Finding {
  Severity severity = Severity::information;
  std::string server;  // Its address; empty: of all together.
  std::string code;    // A word, the same from release to release: for scripts.
  std::string what;
  std::string advice;
};

// One question for the time: ours before and after, and the server's in between.
struct TimePair {
  Instant sent;
  Instant received;
  std::int64_t server_microseconds = 0;

  [[nodiscard]] Duration round_trip() const noexcept { return received - sent; }
};

// How fast the server's clock goes beside ours.
struct ClockRate {
  double parts_per_million = 0;
  double uncertainty = 0;  // Of that, to either side: the true rate is within it.
  Duration over{};
  int steps = 0;            // Times that it did not go on evenly.
  Duration largest_step{};  // Of those, either way.
};
// Nothing for fewer than two pairs.
[[nodiscard]] std::optional<ClockRate> clock_rate_of(const std::vector<TimePair>& pairs);

// The round trip that so many per cent of all are not longer than. REQUIRES: there is one.
[[nodiscard]] Duration percentile(const std::vector<Duration>& sorted, int percent);

// What a kind asks of the server's ACL.
struct Right {
  std::string rule;  // As an ACL names it: "+pexpire", "&redisson_sc:*".
  bool needed = true;
  Kind kind = Kind::mutex;
};

struct ServerFacts {
  std::string address;
  std::string host;                         // Empty: a socket of this machine.
  std::string no_connection;                // Why there is none; empty: there is one.
  std::map<std::string, std::string> info;  // Fields of INFO; empty: not for this user.
  std::optional<std::string> save;          // CONFIG GET; nothing: not for this user.
  std::optional<std::string> appendfsync;
  std::string user;                    // ACL WHOAMI.
  std::vector<Right> missing;          // Of all kinds.
  std::vector<std::string> unchecked;  // Rules that could not be asked for harmlessly.
  bool name_refused = false;           // The user may not use the lock's key.
  std::vector<TimePair> times;

  [[nodiscard]] std::string field(const char* name) const;
  [[nodiscard]] std::uint64_t number(const char* name) const;
};

struct Examination {
  Kind kind = Kind::mutex;
  std::string name;  // Empty: none was given.
  Duration lease{};
  std::vector<ServerFacts> servers;
};

// In order of danger.
[[nodiscard]] std::vector<Finding> diagnose(const Examination& examination);

}  // namespace holdfast::cli
