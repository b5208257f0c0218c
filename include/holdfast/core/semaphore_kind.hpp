// SPDX-License-Identifier: MIT
//
// A permit of a semaphore: a string says how many are free, and a sorted set has the token and the end of each that is taken.
// They are Redisson's getPermitExpirableSemaphore() of the same name, and each wakes the other's waiters. Ends are instants of
// the server's clock. proto/interop.md has the names.
#pragma once

#include <cstdint>

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

// acquire   semaphore_acquire.lua                     +OK granted, :remaining busy, +PERMITS another number is set, or none
// renew     semaphore_renew.lua, of one key           *1 :1 granted, *1 :0 not ours
// release   semaphore_release.lua: publishes          :1 granted, :0 not ours
extern const LockKind semaphore_kind;

// The number of permits is the machine's argument(). Beyond its limit the timing becomes invalid, and the lock with it.
[[nodiscard]] constexpr LockTiming checked_timing(std::uint32_t permits, LockTiming timing) noexcept {
  if (permits > permits_max) timing.lease = Duration::zero();
  return timing;
}

}  // namespace holdfast
