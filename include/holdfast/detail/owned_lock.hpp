// SPDX-License-Identifier: MIT
//
// OwnedLock is what the reentrant kinds have in common: a handle of the one hold that its owner has of a kind and a name,
// with a timing of its own for the holds that begin through it. Use the kinds: ReentrantLock, FencedLock, MultiLock, and
// ReadWriteLock, which has two.
#pragma once

#include "holdfast/detail/blocking_lock.hpp"

namespace holdfast {

class OwnedLock : public BlockingLock {
 protected:
  static const HoldRecord::Ways alone;         // Of a lock with one side,
  static const HoldRecord::Ways of_pair;       // and with two;
  static const HoldRecord::Ways in_queue;      // and of one whose waiters stand in a queue;
  static const HoldRecord::Ways that_lingers;  // and whose holds may stay, too.

  OwnedLock(HoldOwner& owner, const LockKind& kind, Key key, const LockTiming& timing,
            const HoldRecord::Ways& ways = alone) noexcept;
  // Posts the release of what was acquired through this object and is left; what the owner's other objects acquired stays
  // theirs. Does not block.
  ~OwnedLock();

  // Its holds may stay for so long. Refused with too_many_requests where the client has no place for that. REQUIRES: of a kind
  // that lingers; called by the constructor, and end_lingering() by the destructor.
  void linger(Duration most) noexcept;
  void end_lingering() noexcept;

  // The two sides of one lock, of one owner: what the one asks for tells the server of the other's hold. If one of them was
  // refused, both are: a hold that has another side has it for as long as it stands.
  static void pair(OwnedLock& one, OwnedLock& other) noexcept;

 private:
  void leave() noexcept;
  void refuse(Status why) noexcept;

  Handle own_handle_;
};
static_assert(sizeof(OwnedLock) <= 64, "promised: a handle of a hold");

}  // namespace holdfast
