// SPDX-License-Identifier: MIT
//
// Fair locks: a hash as of the reentrant kinds, which it excludes, and beside it a queue of who waits. The release gives the
// lock to the first of them. proto/handoff.md is the paper.
#pragma once

#include "holdfast/core/lock_kind.hpp"

namespace holdfast {

extern const LockKind fair_kind;
// The same, with fences.
extern const LockKind fair_fenced_kind;

struct FairOptions {
  bool fence = false;  // A grant comes with a fence; see fenced_lock.hpp.
};

[[nodiscard]] inline const LockKind& kind_of(const FairOptions& options) noexcept {
  return options.fence ? fair_fenced_kind : fair_kind;
}

}  // namespace holdfast
