// SPDX-License-Identifier: MIT
//
// Lockable lets std::unique_lock and std::scoped_lock use a lock of holdfast:
//
//     Lockable lockable(lock);
//     std::unique_lock guard(lockable);   // throws LockError
//
// The one place that throws; absent when exceptions are off. Beware: a std::unique_lock says that it owns the lock
// also after the lease has run out. Ask the lock: held().
#pragma once

#if defined(__cpp_exceptions)

#include <exception>

#include "holdfast/blocking_lock.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class LockError : public std::exception {
 public:
  explicit LockError(Status status) noexcept : status_(status) {}
  [[nodiscard]] Status status() const noexcept { return status_; }
  [[nodiscard]] const char* what() const noexcept override { return cause(status_); }

 private:
  Status status_;
};

class Lockable {
 public:
  // REQUIRES: lock outlives this. `wait` bounds lock().
  explicit Lockable(BlockingLock& lock, Duration wait = wait_forever) noexcept : lock_(&lock), wait_(wait) {}

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
  // Does not throw, as the standard asks: it runs in destructors. Does not block either; the outcome is
  // BlockingLock::post_outcome().
  void unlock() noexcept { lock_->post_release(); }

 private:
  BlockingLock* lock_;
  Duration wait_;
};

}  // namespace holdfast

#endif
