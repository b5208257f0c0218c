// SPDX-License-Identifier: MIT
//
// MutexOptions is what a mutex has beside its lock, on one node and under a quorum, with every client of holdfast; and which
// kind it is with them.
#pragma once

#include "holdfast/core/mutex_kind.hpp"

namespace holdfast {

// Both are off where peers that do not know them share the lock: those neither announce a release nor count a fence.
struct MutexOptions {
  bool announce = false;  // A release wakes the waiters of other holdfast clients, and waiting is by push.
  bool fence = false;     // A grant comes with a fence; see fenced_lock.hpp.
};

[[nodiscard]] inline const LockKind& kind_of(const MutexOptions& options) noexcept {
  if (options.announce) return options.fence ? announced_fenced_mutex_kind : announced_mutex_kind;
  return options.fence ? fenced_mutex_kind : mutex_kind;
}

}  // namespace holdfast
