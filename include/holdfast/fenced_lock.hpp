// SPDX-License-Identifier: MIT
//
// FencedLock is what a ReentrantLock with a fence is called, since Redisson calls it so; the other kinds have an option named
// `fence`, with every client. It is a ReentrantLock whose every grant comes with a fence: a number that grows with each grant of that name, so
// that the protected resource can refuse a holder that was paused and came back too late. It excludes Redisson's
// getFencedLock() of the same name and counts on with it.
//
//     FencedLock lock(owner, "orders/42");   // the automatic lease, 30 s: longer if a Watchdog keeps it, or tend()
//     if (lock.acquire(2s) == Status::ok) store.write(order, lock.fence());   // refuses a smaller fence than it has seen
//
// The fence is the larger of the last one plus one and the server's time in microseconds, so that it grows on after the
// server lost its data. A resource that does not check it gains nothing: examples/fenced_resource.cpp shows the check.
#pragma once

#include <cstdint>

#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/detail/owned_lock.hpp"
#include "holdfast/detail/owner.hpp"

namespace holdfast {

class FencedLock : public OwnedLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The owner must outlive the lock.
  FencedLock(HoldOwner& owner, BytesArgument key, const LockTiming& timing = {}) noexcept
      : OwnedLock(owner, fenced_kind, Key(key), timing) {}
  // Posts the release of what was acquired through this object and is left. Does not block, does not throw.
  ~FencedLock() = default;

  // Of the last outermost acquire, the same on re-entry and renewal; 0 where it was not granted. In [1, 2^63).
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};

static_assert(sizeof(FencedLock) <= 64, "promised: a handle");

}  // namespace holdfast
