// SPDX-License-Identifier: MIT
//
// ReentrantLock is a lock that its owner may acquire again while it is held, and that is free once it was released as
// often. It excludes Redisson's getLock() of the same name, and each wakes the other's waiters.
//
//     Owner owner(client);
//     ReentrantLock lock(owner, "orders/42");
//     if (lock.acquire(2s) == Status::ok) { ...; Status status = lock.release(); }
#pragma once

#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/detail/owned_lock.hpp"
#include "holdfast/detail/owner.hpp"

namespace holdfast {

class ReentrantLock : public OwnedLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The owner must outlive the lock.
  ReentrantLock(HoldOwner& owner, BytesArgument key, const LockTiming& timing = {}) noexcept
      : OwnedLock(owner, reentrant_kind, Key(key), timing) {}
  // Posts the release of what was acquired through this object and is left. Does not block, does not throw.
  ~ReentrantLock() = default;
};

static_assert(sizeof(ReentrantLock) <= 64, "promised: a handle");

}  // namespace holdfast
