// SPDX-License-Identifier: MIT
//
// AsyncOwnedQuorumLock is what the reentrant kinds of an AsyncQuorum have in common: a handle of the one hold that its owner has of
// a kind and a name, with a timing of its own for the holds that begin through it. Use the kinds: AsyncRedlockReentrantLock and
// AsyncRedlockFencedLock.
#pragma once

#include <cstddef>

#include "holdfast/asio/async_quorum_lock.hpp"
#include "holdfast/asio/async_quorum_owner.hpp"

namespace holdfast {

template <std::size_t node_count>
class AsyncOwnedQuorumLock : public AsyncQuorumLock {
 protected:
  AsyncOwnedQuorumLock(AsyncQuorumHoldOwner<node_count>& owner, const LockKind& kind, Key key,
                       const QuorumTiming& timing)
      : timing_(timing) {
    const bool valid = key.valid() && timing.valid() && fits(owner.core_, node_count);
    take(valid ? owner.places_.enter(owner.core_, kind, key, timing) : nullptr, owner.core_,
         valid ? Status::too_many_requests : Status::invalid_argument);
  }
  // Completes what waits and was started through this object with Status::cancelled, and posts the release of what was acquired
  // through it and is left; what the owner's other objects acquired stays theirs. Where one of these has an operation in
  // progress, the release follows when that is over.
  ~AsyncOwnedQuorumLock() override {
    using Hold = AsyncQuorumHold<node_count>;
    if (refused()) return;
    AsyncQuorumRecord& hold = record();
    hold.leave(*this);
    HoldPlace<Hold>::leave(static_cast<Hold&>(hold), share());
  }

 private:
  [[nodiscard]] const QuorumTiming* timing() const noexcept final { return &timing_; }

  QuorumTiming timing_;
};
static_assert(sizeof(AsyncOwnedQuorumLock<3>) <= 96, "promised: a handle of a hold");

}  // namespace holdfast
