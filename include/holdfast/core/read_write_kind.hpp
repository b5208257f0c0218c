// SPDX-License-Identifier: MIT
//
// The two sides of a read/write lock: a hash with the mode, and of each hold a field and its count; beside it, of each
// reader, a key with its own time. They share Redisson's getReadWriteLock() of the same name, and each wakes the other's
// waiters. A hold's field is its token, a writer's with `:write` behind it. proto/interop.md has the names.
#pragma once

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

// acquire   read_acquire.lua, write_acquire.lua          +OK granted, :remaining busy, +UPGRADE the own side reads
// renew     read_write_renew.lua, of one key             *1 :1 granted, *1 :0 not ours
// step      read_write_step.lua: the count, absolute     :1 granted, :0 not ours
// release   read_write_release.lua: publishes            :1 granted, :0 not ours
extern const LockKind read_kind;
extern const LockKind write_kind;

// How long, for either side.
struct ReadWriteTiming {
  LockTiming read{};  // A lease of read_lease_max at most, which is also the automatic one.
  LockTiming write{};
};

// When Redisson renews one reader it gives the whole lock its own lease, and cuts a longer one of another reader's short. So no
// lease of a reader is longer than Redisson's is by default. Where one side's timing is invalid, both are.
[[nodiscard]] constexpr ReadWriteTiming checked_timing(ReadWriteTiming timing) noexcept {
  const bool fits = timing.read.valid() && timing.read.effective_lease() <= read_lease_max && timing.write.valid();
  if (!fits) timing.read.lease = timing.write.lease = Duration::zero();
  return timing;
}

}  // namespace holdfast
