// SPDX-License-Identifier: MIT
//
// OwnedQuorumLock is what the reentrant kinds of a quorum have in common: a handle of the one hold that its owner has of a kind and
// a name, with a timing of its own for the holds that begin through it. Use the kinds: RedlockReentrantLock and
// RedlockFencedLock.
#pragma once

#include <cstddef>

#include "holdfast/detail/quorum_lock.hpp"
#include "holdfast/detail/quorum_owner.hpp"
#include "holdfast/detail/run_quorum_listening.hpp"

namespace holdfast {

template <std::size_t node_count>
class OwnedQuorumLock : public QuorumLock {
 protected:
  OwnedQuorumLock(QuorumHoldOwner<node_count>& owner, const LockKind& kind, Key key,
                  const QuorumTiming& timing) noexcept
      : QuorumLock(&own_handle_), own_handle_{.quorum = &owner.quorum(), .timing = timing} {
    own_handle_.refusal = QuorumRecord::judge(owner.quorum(), node_count, key, timing);
    if (own_handle_.refusal != Status::ok) return;
    OwnedQuorumHold* const hold = owner.places_.enter(owner.quorum(), kind, key, timing, ways);
    if (hold == nullptr) own_handle_.refusal = Status::too_many_requests;
    attach(hold);
  }
  // Posts the release of what was acquired through this object and is left; what the owner's other objects acquired stays
  // theirs. Does not block.
  ~OwnedQuorumLock() {
    using Hold = QuorumHold<node_count>;
    if (!refused()) HoldPlace<Hold>::leave(static_cast<Hold&>(hold()), own_handle_.share);
  }

 private:
  static constexpr QuorumRecord::Ways ways = {.draw_ordinal = QuorumRecord::draw_ordinal,
                                              .run_listening = run_listening};

  Handle own_handle_;
};
static_assert(sizeof(OwnedQuorumLock<3>) <= 80, "promised: a handle of a hold");

}  // namespace holdfast
