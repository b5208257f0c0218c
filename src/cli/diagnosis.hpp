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

#include "findings.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/status.hpp"
#include "lock_choice.hpp"
#include "set_up_facts.hpp"

namespace holdfast::cli {

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
// Nothing for fewer than two pairs, and where no time is between them.
[[nodiscard]] std::optional<ClockRate> clock_rate_of(const std::vector<TimePair>& pairs);

// The round trip that so many per cent of all are not longer than. REQUIRES: there is one.
[[nodiscard]] Duration percentile(const std::vector<Duration>& sorted, int percent);

// What is left of a lease when a renewal is due, at a third of it.
[[nodiscard]] Duration renewal_margin(Duration lease) noexcept;

// How many replicas are looked at, one by one.
inline constexpr std::uint64_t replicas_max = 16;

// What a kind asks of the server.
struct Right {
  std::string rule;  // As an ACL names it: "+pexpire".
  bool needed = true;
  Kind kind = Kind::mutex;
};

// As INFO has it.
struct Version {
  bool valkey = false;
  std::string text;  // Empty: it is not known.
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
};

// The server answers everything with this: a script of somebody's runs, or its data are being loaded.
[[nodiscard]] constexpr bool is_standstill(Status status) noexcept {
  return status == Status::busy_script || status == Status::loading;
}

// One that a master knows of.
struct Replica {
  std::string address;
  std::string state;  // "online", or another word of the server's.
  std::uint64_t lag_seconds = 0;
  std::uint64_t behind_bytes = 0;
};

struct ServerFacts {
  std::string address;
  std::optional<std::string> host;          // Empty: a socket of this machine; nothing: sentinels say which one it is.
  SetUpFacts set_up;                        // How it is found.
  std::string no_connection;                // Why there is none; empty: there is one.
  Status connection = Status::ok;           // What connecting ended with.
  bool silent = false;                      // A question had no answer; none was asked after it.
  bool info_refused = false;                // INFO is not for this user.
  std::map<std::string, std::string> info;  // Fields of INFO.
  std::string no_info;                      // Why there are none, or not all, in the server's words.
  std::optional<std::string> save;          // CONFIG GET; nothing: not for this user.
  std::optional<std::string> appendfsync;
  std::map<std::string, std::string> settings;  // More of them.
  // Why it takes no writes of locks now, or nothing at all: out_of_memory, disk_error, too_few_replicas, busy_script, loading,
  // cluster_down or stale_replica; and its words. ok: it does, as far as is known.
  Status refusal = Status::ok;
  std::string refusal_words;
  std::string user;                    // ACL WHOAMI.
  std::vector<Right> missing;          // Of all kinds: what the user may not do,
  std::vector<Right> absent;           // and what the server cannot do.
  std::vector<std::string> unchecked;  // Rules that could not be asked for harmlessly.
  // Of the lock that was asked about: rules that would let the user have them.
  std::vector<std::string> keys_refused;
  std::vector<std::string> channels_refused;
  std::vector<TimePair> times;
  bool time_refused = false;  // They are not for this user.
  // Where acks are asked about.
  bool wait_refused = false;  // The user may not WAIT,
  bool wait_absent = false;   // or there is no such command.

  [[nodiscard]] std::string field(const std::string& name) const;
  // The number that a field begins with, or 0.
  [[nodiscard]] std::uint64_t number(const std::string& name) const;
  // The same of a setting; nothing: it is not for this user.
  [[nodiscard]] std::optional<std::uint64_t> setting(const std::string& name) const;
  [[nodiscard]] Version version() const;
  [[nodiscard]] std::vector<Duration> sorted_round_trips() const;
  // Those of the first replicas_max that the server told of. Not escaped.
  [[nodiscard]] std::vector<Replica> replicas() const;
};

struct Examination {
  Kind kind = Kind::mutex;
  std::string name;        // Empty: none was given.
  std::uint64_t acks = 0;  // Replicas that are to have each grant; 0: it is not asked.
  Duration lease{};
  std::vector<ServerFacts> servers;
};

// In order of danger.
[[nodiscard]] std::vector<Finding> diagnose(const Examination& examination);

}  // namespace holdfast::cli
