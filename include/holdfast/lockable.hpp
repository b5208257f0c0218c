// SPDX-License-Identifier: MIT
//
// Lockable lets std::unique_lock and std::scoped_lock use a lock on one node, and LockableRedlock one on a quorum:
//
//     Lockable lockable(lock);
//     std::unique_lock guard(lockable);   // throws LockError
//
// The one place that throws; absent when exceptions are off. Beware: a std::unique_lock says that it owns the lock
// also after the lease has run out. Ask the lock: held().
#pragma once

#if defined(__cpp_exceptions)

#include <exception>

#include "holdfast/limits.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class BlockingLock;
class QuorumLock;

class LockError : public std::exception {
 public:
  explicit LockError(Status status) noexcept : status_(status) {}
  [[nodiscard]] Status status() const noexcept { return status_; }
  [[nodiscard]] const char* what() const noexcept override { return cause(status_); }

 private:
  Status status_;
};

// Use the names below it.
template <class Lock>
class BasicLockable {
 public:
  // REQUIRES: lock outlives this. `wait` bounds lock().
  explicit BasicLockable(Lock& lock, Duration wait = wait_forever) noexcept : lock_(&lock), wait_(wait) {}

  // Throws LockError with every status but ok.
  void lock() {
    if (const Status status = lock_->acquire(wait_); status != Status::ok) throw LockError(status);
  }
  // True if granted, false if busy. Throws LockError with every other status.
  [[nodiscard]] bool try_lock() {
    const Status status = lock_->try_acquire();
    if (status != Status::ok && status != Status::lock_busy) throw LockError(status);
    return status == Status::ok;
  }
  // Does not throw, as the standard asks: it runs in destructors. Does not block either; the outcome on one node is
  // BlockingLock::post_outcome().
  void unlock() noexcept { lock_->post_release(); }

 private:
  Lock* lock_;
  Duration wait_;
};

using Lockable = BasicLockable<BlockingLock>;
using LockableRedlock = BasicLockable<QuorumLock>;

}  // namespace holdfast

#endif
