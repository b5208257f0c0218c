// SPDX-License-Identifier: MIT
//
// The fenced kinds as a quorum uses them: their grants step each node's own counter, and their renewals write the quorum's
// fence, the largest of a majority's, back to every node that still holds this grant's token (quorum_renew.lua). On the
// server they are what the kinds of the same names without "quorum" are.
#pragma once

#include "holdfast/core/mutex_options.hpp"
#include "holdfast/core/reentrant_kind.hpp"

namespace holdfast {

extern const LockKind quorum_fenced_mutex_kind;
extern const LockKind quorum_announced_fenced_mutex_kind;
extern const LockKind quorum_fenced_kind;

// What a RedlockMutex with these options is. A RedlockReentrantLock is of reentrant_kind, a RedlockFencedLock of
// quorum_fenced_kind.
[[nodiscard]] inline const LockKind& quorum_kind_of(const MutexOptions& options) noexcept {
  if (!options.fence) return kind_of(options);
  return options.announce ? quorum_announced_fenced_mutex_kind : quorum_fenced_mutex_kind;
}

}  // namespace holdfast
