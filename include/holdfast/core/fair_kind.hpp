// SPDX-License-Identifier: MIT
//
// Fair locks: a hash as of the reentrant kinds, which it excludes, and beside it a queue of who waits. The release gives the
// lock to the first of them. proto/handoff.md is the paper.
#pragma once

#include "holdfast/core/linger.hpp"
#include "holdfast/core/lock_kind.hpp"

namespace holdfast {

extern const LockKind fair_kind;
// The same, with fences.
extern const LockKind fair_fenced_kind;
// The same of holds that may stay where they are used. Their owner fields have a negative ordinal: by it a waiter's script knows
// that the hold can be recalled, over the channel by which its client is told of grants. The message is the holder's field.
extern const LockKind fair_lingering_kind;
extern const LockKind fair_lingering_fenced_kind;

struct FairOptions {
  bool fence = false;  // A grant comes with a fence; see fenced_lock.hpp.
  // linger_min to linger_max: a hold that its user has let go of stays for so long where nobody else asks for it, and to acquire
  // it again costs no word to the server, and gives the same fence. A waiter of a FairLock recalls it; one that waits by
  // Redisson or by another kind waits for so long at the longest.
  // Through a lock object with a longer lease than the hold has, or whose hold would be renewed where this one is not or the other
  // way round, it is released first, and the server is asked.
  Duration linger = linger_off;

  [[nodiscard]] constexpr bool valid() const noexcept { return valid_linger(linger); }
  [[nodiscard]] constexpr bool lingers() const noexcept { return linger != linger_off; }
};

[[nodiscard]] inline const LockKind& kind_of(const FairOptions& options) noexcept {
  if (options.lingers()) return options.fence ? fair_lingering_fenced_kind : fair_lingering_kind;
  return options.fence ? fair_fenced_kind : fair_kind;
}

}  // namespace holdfast
