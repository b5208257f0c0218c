// SPDX-License-Identifier: MIT
//
// ScopedLock holds a lock for a scope:
//
//     ScopedLock guard(lock, 2s);
//     if (!guard) return guard.status();
#pragma once

#include "holdfast/blocking_lock.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class ScopedLock {
 public:
  // Acquires; see BlockingLock::acquire(). REQUIRES: lock is not held; it must outlive the guard.
  ScopedLock(BlockingLock& lock, Duration wait) noexcept : lock_(&lock), status_(lock.acquire(wait)) {}
  // Lets go of a hold that is left, without waiting for the server's word: does not throw and does not block.
  ~ScopedLock() {
    if (status_ == Status::ok) lock_->post_release();
  }
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;

  // The outcome of the acquire; not_held after release().
  [[nodiscard]] Status status() const noexcept { return status_; }
  // Is it held, now? False as soon as the hold has run out.
  [[nodiscard]] explicit operator bool() const noexcept { return status_ == Status::ok && lock_->held(); }
  // Lets go and waits for the server's word. Errors: as BlockingLock::release().
  [[nodiscard]] Status release() noexcept {
    if (status_ != Status::ok) return Status::not_held;
    status_ = Status::not_held;
    return lock_->release();
  }

 private:
  BlockingLock* lock_;
  Status status_;
};

static_assert(sizeof(ScopedLock) <= 16, "promised: a guard");

}  // namespace holdfast
