// SPDX-License-Identifier: MIT
//
// FairLock is a ReentrantLock for which its waiters stand in a queue: a release gives it to the one who has waited longest, and
// wakes nobody else. It excludes ReentrantLock, FencedLock and Redisson's plain, fenced and fair locks of the same name.
//
//     Owner owner(client);
//     FairLock lock(owner, "orders/42");
//     if (lock.acquire(2s) == Status::ok) { ...; Status status = lock.release(); }
//
// With `linger` a lock that nobody else wants stays where it is used; see lingering.hpp.
//
// Among those who wait by FairLock, first come is first served. The others, Redisson's fair locks too, do not stand in the
// queue: where both wait, a release by FairLock serves the queue first, and one by the others is noticed here within a second.
// Who is not heard of for 3 s, by the server's clock, has lost its place. try_acquire() does not overtake. proto/handoff.md says
// more.
#pragma once

#include <cstdint>

#include "holdfast/core/fair_kind.hpp"
#include "holdfast/detail/owned_lock.hpp"
#include "holdfast/detail/owner.hpp"

namespace holdfast {

class FairLock : public OwnedLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The owner must outlive the lock. With and without fences
  // are two kinds of hold, and so it is with linger: an owner that has the one is refused the other as anybody else is. How
  // long its holds may stay is said by the first object of a name. configuration() is too_many_requests where the client has no
  // Lingering, or that has no place for one name more.
  FairLock(HoldOwner& owner, BytesArgument key, const LockTiming& timing = {}, const FairOptions& options = {}) noexcept
      : OwnedLock(owner, kind_of(options), Key(key), timing, options.lingers() ? that_lingers : in_queue) {
    if (options.lingers()) linger(options.linger);
  }
  // Posts the release of what was acquired through this object and is left. Does not block, does not throw.
  ~FairLock() { end_lingering(); }

  // With fences: of the last outermost acquire, the same on re-entry and renewal. Else 0, also where it was not granted.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};

static_assert(sizeof(FairLock) <= 64, "promised: a handle");

}  // namespace holdfast
