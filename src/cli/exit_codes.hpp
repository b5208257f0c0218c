// SPDX-License-Identifier: MIT
//
// The exit codes of the command itself. A command that ran passes its own through, so ours stay where few programs
// have theirs: the numbers of sysexits.h, and those that shells use for what cannot be executed.
#pragma once

#include "holdfast/client.hpp"
#include "holdfast/status.hpp"

namespace holdfast::cli {

inline constexpr int exit_ok = 0;
inline constexpr int exit_free = 1;            // Nobody holds the lock. Of info and release, which run no command.
inline constexpr int exit_warning = 1;         // Of doctor, by the worst that it found.
inline constexpr int exit_danger = 2;          // The same.
inline constexpr int exit_usage = 64;          // EX_USAGE: the command line or HOLDFAST_URL.
inline constexpr int exit_no_lock = 65;        // EX_DATAERR: the key is there, and no lock that holdfast knows.
inline constexpr int exit_no_server = 69;      // EX_UNAVAILABLE: no server, or none that serves locks now.
inline constexpr int exit_software = 70;       // EX_SOFTWARE: our own mistake.
inline constexpr int exit_system = 71;         // EX_OSERR: fork, memory, descriptors, random bytes.
inline constexpr int exit_output = 74;         // EX_IOERR: what was asked for could not be printed.
inline constexpr int exit_not_acquired = 75;   // EX_TEMPFAIL: somebody else has the lock. -E replaces it.
inline constexpr int exit_protocol = 76;       // EX_PROTOCOL: the peer is no Redis or Valkey server.
inline constexpr int exit_no_permission = 77;  // EX_NOPERM: the server refuses the user, the password or a command.
// The lock was lost, or could not be renewed in time, while the command ran. The first number behind sysexits.h, so
// that nothing else has it.
inline constexpr int exit_lost = 79;
inline constexpr int exit_unknown = 80;  // Renew and release by a token: sent, and the reply was lost.
inline constexpr int exit_cannot_execute = 126;
inline constexpr int exit_not_found = 127;
inline constexpr int exit_signal_base = 128;  // And the signal's number.
inline constexpr int exit_code_max = 255;

// What a failure to connect, to acquire or to ask ends with. REQUIRES: status is not ok.
[[nodiscard]] int exit_code_of(Status status, int not_acquired) noexcept;
// The same, where it is known who failed: a database that the server has not is the URL's mistake.
[[nodiscard]] int exit_code_of(Status status, const ClientBase& client, int not_acquired) noexcept;

// Time may bring an end to it.
[[nodiscard]] bool heals(Status status) noexcept;
// There is no server, or none that answers.
[[nodiscard]] bool is_absence(Status status) noexcept;
// The server refused the database of the configuration.
[[nodiscard]] bool is_wrong_database(Status status, const ClientBase& client) noexcept;

}  // namespace holdfast::cli
