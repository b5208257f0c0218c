// SPDX-License-Identifier: MIT
//
// The command line, read and checked.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "exit_codes.hpp"
#include "holdfast/core/client_config.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/detail/blocking_lock.hpp"
#include "holdfast/quorum.hpp"
#include "lock_choice.hpp"
#include "secrets.hpp"

namespace holdfast::cli {

// A wait of nothing: one attempt.
inline constexpr Duration no_wait = Duration::zero();

// One, or the nodes of a quorum: up to nodes_max, no two alike.
using Servers = std::vector<ClientConfig>;

// What acquires a lock.
struct AcquisitionOptions {
  std::string name;  // The key's bytes, 1 to key_size_max of them.
  LockChoice choice;
  Duration wait = wait_forever;
  Duration lease = lease_default;  // Within the limits of a LockTiming.
  int not_acquired = exit_not_acquired;
  Servers servers;
  QuorumConfig quorum;  // Where there are several.
  bool verbose = false;
  bool quiet = false;

  [[nodiscard]] Duration request_timeout() const noexcept { return servers.front().request_timeout; }
};

// Between two writes of a run's numbers. A disk is asked for each of them, so there is a least; with the most, a day, they are as
// good as written at the end alone.
inline constexpr Duration stats_interval_default = std::chrono::seconds(10);
inline constexpr Duration stats_interval_min = std::chrono::seconds(1);
inline constexpr Duration stats_interval_max = std::chrono::hours(24);

// holdfast run
struct RunOptions : AcquisitionOptions {
  std::vector<std::string> command;                  // Never empty.
  Duration grace = Duration::zero();                 // From TERM to KILL; at most half of the lease.
  bool keep_environment = false;                     // Passwords stay in what the command gets.
  std::string stats;                                 // The file for the numbers; empty: there is none.
  Duration stats_interval = stats_interval_default;  // Within the limits.
  // Labels of those: names and values that OpenMetrics takes, no two names alike.
  std::vector<std::pair<std::string, std::string>> stats_labels;
};

// holdfast acquire
struct AcquireOptions : AcquisitionOptions {
  bool json = false;
};

// A hold that another process acquired.
struct HeldToken {
  std::string name;  // As above.
  Servers servers;
  Kind kind = Kind::mutex;
  std::string token;  // As holds of that kind have.
  bool quiet = false;
};

// holdfast renew
struct RenewOptions {
  HeldToken hold;
  Duration lease = lease_default;  // Within the limits of a LockTiming.
};

// holdfast release, without --force
struct TokenReleaseOptions {
  HeldToken hold;
};

// holdfast info
struct InfoOptions {
  std::string name;  // As above.
  Servers servers;
};

// holdfast doctor
struct DoctorOptions {
  std::string name;  // As above, or empty.
  Servers servers;
  Kind kind = Kind::mutex;
  std::uint8_t acks = 0;  // Replicas that are to have each grant; 0: it is not asked.
  Duration lease = lease_default;
  Duration duration = std::chrono::seconds(3);  // Of the look at the clocks.
  bool json = false;
};

// holdfast watch
struct WatchOptions {
  std::string name;     // As above, or empty.
  std::string pattern;  // Of SCAN, or empty. One of both is.
  ClientConfig server;
  std::string svg;                   // The file for the timeline; empty: there is none.
  Duration duration = wait_forever;  // Until a signal comes.
  bool json = false;
};

// holdfast release --force
struct ReleaseOptions {
  std::string name;  // As above.
  Servers servers;
};

// The command line is dealt with: help or a complaint has been printed.
struct Answered {
  int exit_code = exit_ok;
};

// One alternative a subcommand.
using Invocation = std::variant<Answered, RunOptions, AcquireOptions, RenewOptions, TokenReleaseOptions, InfoOptions,
                                DoctorOptions, WatchOptions, ReleaseOptions>;

// The copies that it makes of passwords are wiped, but for those of the servers.
[[nodiscard]] Invocation read_command_line(int argument_count, char** arguments, const Environment& environment);

// One option that read_command_line() takes, for what writes the completions of shells.
struct DeclaredOption {
  std::string subcommand;          // Empty: of the command itself.
  std::vector<std::string> names;  // "-w", "--wait".
  bool takes_value = false;
};
[[nodiscard]] std::vector<DeclaredOption> declared_options();

}  // namespace holdfast::cli
