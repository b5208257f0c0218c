// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_owned_lock.hpp"

#include "async_client_core.hpp"

namespace holdfast {

AsyncOwnedLock::AsyncOwnedLock(AsyncHoldOwner& owner, const LockKind& kind, Key key, const LockTiming& timing)
    : timing_(timing) {
  const bool valid = key.valid() && timing.valid();
  AsyncRecord* const hold = valid ? owner.places_.enter(owner.core_, kind, key, timing) : nullptr;
  if (hold != nullptr)
    attach(*hold);
  else
    refuse(*owner.core_, valid ? Status::too_many_requests : Status::invalid_argument);
}

AsyncOwnedLock::~AsyncOwnedLock() {
  if (!refused()) leave();
}

void AsyncOwnedLock::leave() {
  AsyncRecord& hold = record();
  hold.leave(*this);
  HoldPlace<AsyncRecord>::leave(hold, share());
}

void AsyncOwnedLock::pair(AsyncOwnedLock& one, AsyncOwnedLock& other) {
  if (one.refused())
    other.refuse_too(one);
  else if (other.refused())
    one.refuse_too(other);
  else
    AsyncRecord::pair(one.record(), other.record());
}

void AsyncOwnedLock::refuse_too(const AsyncOwnedLock& other) {
  if (refused()) return;
  leave();
  refuse(other.loop(), other.refusal());
}

}  // namespace holdfast
