// SPDX-License-Identifier: MIT
//
// OwnedLock is what the reentrant kinds have in common: an owner, and the one hold record that its objects of a kind and
// name share, with the timing of the object that acquires it first. Use the kinds: ReentrantLock, FencedLock.
#pragma once

#include "holdfast/blocking_lock.hpp"
#include "holdfast/owner.hpp"

namespace holdfast {

class OwnedLock : public BlockingLock {
 protected:
  OwnedLock(Owner& owner, const LockKind& kind, Key key, const LockTiming& timing) noexcept;
  // Posts the release of what was acquired through this object and is left; what the owner's other objects acquired stays
  // theirs. Does not block.
  ~OwnedLock();

 private:
  static const HoldRecord::Ways ways;
  static Status draw_ordinal(RandomSource& random, Token& token) noexcept;

  Owner* owner_;
  LockTiming own_timing_;
};

}  // namespace holdfast
