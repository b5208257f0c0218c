// SPDX-License-Identifier: MIT
//
// KeepOptions says how a hold is kept alive, and whom to tell when that fails:
//
//     lock.keep({.on_lost = stop_working, .context = &worker, .max_hold = 10min});
//
// Holds are kept by the watchdog (a thread) of their client or quorum or, where it has none, by tend() and every call that waits.
#pragma once

#include <cstdint>

#include "holdfast/core/instant.hpp"

namespace holdfast {

enum class Keep : std::uint8_t {
  automatic,  // With the automatic lease, or LockTiming::kept, yes; another one runs out unless renew() is called.
  always,
  never,
};

inline constexpr Duration max_hold_unlimited = Duration::max();
inline constexpr Duration liveness_off = Duration::max();

struct KeepOptions {
  Keep keep = Keep::automatic;
  // Called once a hold at most: the first doubt, and the end; not after release() has begun. By the watchdog's thread, which
  // may call what any thread may (held(), cancel()), or at the end of a call of the client, where any lock may be used. No
  // lock of ours is held meanwhile. A release() or a destructor waits until a call in progress on another thread returned.
  void (*on_at_risk)(void* context) noexcept = nullptr;
  void (*on_lost)(void* context) noexcept = nullptr;
  void* context = nullptr;
  // Counted from the grant. A hold that is older is not renewed any more: a hung worker cannot keep its lock for ever.
  Duration max_hold = max_hold_unlimited;
  // The hold is renewed only while tick() was called within so long, less up to two milliseconds.
  Duration liveness = liveness_off;

  [[nodiscard]] constexpr bool valid() const noexcept {
    return max_hold > Duration::zero() && liveness > Duration::zero();
  }
};

}  // namespace holdfast
