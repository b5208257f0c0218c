// SPDX-License-Identifier: MIT
//
// ScopedLock holds a lock on one node for a scope, and ScopedRedlock one on a quorum:
//
//     ScopedLock guard(lock, 2s);
//     if (!guard) return guard.status();
//
// On an Asio loop nothing may wait, so there a guard takes what was acquired already: AsyncScopedLock.
#pragma once

#include "holdfast/core/instant.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class BlockingLock;
class QuorumLock;

// Says that the lock was acquired already.
struct AdoptHold {};
inline constexpr AdoptHold adopt_hold;

// Use the names below it.
template <class Lock>
class BasicScopedLock {
 public:
  // Acquires; see BlockingLock::acquire(). REQUIRES: lock is not held; it must outlive the guard.
  BasicScopedLock(Lock& lock, Duration wait) noexcept : lock_(&lock), status_(lock.acquire(wait)) {}
  // Takes one acquisition that was made already. REQUIRES: as above, but that it is held.
  BasicScopedLock(Lock& lock, AdoptHold) noexcept : lock_(&lock), status_(Status::ok) {}
  // Lets go of a hold that is left, without waiting for the server's word: does not throw and does not block.
  ~BasicScopedLock() {
    if (status_ == Status::ok) lock_->post_release();
  }
  BasicScopedLock(const BasicScopedLock&) = delete;
  BasicScopedLock& operator=(const BasicScopedLock&) = delete;

  // The outcome of the acquire; not_held after release() and dismiss().
  [[nodiscard]] Status status() const noexcept { return status_; }
  // Is it held, now? False as soon as the hold has run out.
  [[nodiscard]] explicit operator bool() const noexcept { return status_ == Status::ok && lock_->held(); }
  // Lets go and waits for the server's word. Errors: as BlockingLock::release().
  [[nodiscard]] Status release() noexcept {
    if (status_ != Status::ok) return Status::not_held;
    status_ = Status::not_held;
    return lock_->release();
  }
  // Somebody else releases it: the guard does nothing any more.
  void dismiss() noexcept { status_ = Status::not_held; }

 private:
  Lock* lock_;
  Status status_;
};

using ScopedLock = BasicScopedLock<BlockingLock>;
using ScopedRedlock = BasicScopedLock<QuorumLock>;
static_assert(sizeof(ScopedLock) <= 16, "promised: a guard");

}  // namespace holdfast
