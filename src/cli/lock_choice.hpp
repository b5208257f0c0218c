// SPDX-License-Identifier: MIT
//
// Which lock a run takes: its kind, and what belongs to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "holdfast/core/lock_kind.hpp"

namespace holdfast::cli {

enum class Kind : std::uint8_t { mutex, reentrant, fenced, fair, read, write, semaphore };

// "mutex", "reentrant", "fenced", "fair", "read", "write", "semaphore".
[[nodiscard]] const char* to_string(Kind kind) noexcept;
// The kind of that name, byte for byte.
[[nodiscard]] std::optional<Kind> kind_named(std::string_view name) noexcept;
// How it speaks of a hold on one server. That of a mutex wakes waiters, as all locks of this command do.
[[nodiscard]] const LockKind& kind_table(Kind kind) noexcept;
// All names, and those of the kinds that several servers agree on, for a message.
inline constexpr char kind_names[] = "mutex, reentrant, fenced, fair, read, write and semaphore";
inline constexpr char quorum_kind_names[] = "mutex, reentrant and fenced";

struct LockChoice {
  Kind kind = Kind::mutex;
  std::uint32_t permits = 0;  // Of a Kind::semaphore: how many there are; 0: as many as were set.
  bool fence =
      false;  // A grant comes with a fence. Always so for Kind::fenced; a Kind::mutex and a Kind::fair may have one.
};

}  // namespace holdfast::cli
