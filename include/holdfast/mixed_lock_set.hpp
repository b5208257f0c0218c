// SPDX-License-Identifier: MIT
//
// MixedLockSet is a LockSet in which locks on one server and locks on quorums stand side by side: all of them or none, within
// one deadline, in one order. A Redlock has its place by the addresses of its nodes, the least of them first.
//
//     AnyLock locks[] = {&stock, &orders};      // a Mutex and a RedlockMutex<3>
//     MixedLockSet set(locks, 2);
//     if (set.acquire(2s) == Status::ok) { ...; Status status = set.release(); }
//
// What is taken is renewed while the next is waited for, whatever its client. Everything else: as LockSet.
#pragma once

#include "holdfast/detail/quorum_lock.hpp"
#include "holdfast/lock_set.hpp"

namespace holdfast {

// A lock on one server, or on a quorum: a pointer.
class AnyLock {
 public:
  AnyLock(BlockingLock* lock) noexcept : one_(lock) {}
  AnyLock(QuorumLock* lock) noexcept : many_(lock) {}

  [[nodiscard]] BlockingLock* one() const noexcept { return one_; }  // nullptr: it is on a quorum.
  [[nodiscard]] QuorumLock* many() const noexcept { return many_; }  // nullptr: it is on one server.

  [[nodiscard]] Status configuration() const noexcept {
    return one_ != nullptr ? one_->configuration() : many_->configuration();
  }
  [[nodiscard]] Status acquire(Duration wait) const noexcept {
    return one_ != nullptr ? one_->acquire(wait) : many_->acquire(wait);
  }
  [[nodiscard]] Status renew() const noexcept { return one_ != nullptr ? one_->renew() : many_->renew(); }
  [[nodiscard]] Status release() const noexcept { return one_ != nullptr ? one_->release() : many_->release(); }
  Status post_release() const noexcept { return one_ != nullptr ? one_->post_release() : many_->post_release(); }
  [[nodiscard]] Instant valid_until() const noexcept {
    return one_ != nullptr ? one_->valid_until() : many_->valid_until();
  }
  [[nodiscard]] Instant renewal_due() const noexcept {
    return one_ != nullptr ? one_->renewal_due() : many_->renewal_due();
  }
  const AnyLock* operator->() const noexcept { return this; }

 private:
  BlockingLock* one_ = nullptr;
  QuorumLock* many_ = nullptr;
};

class MixedLockSet : public LockSetBase {
 public:
  // As LockSet's. Two locks of which the second could not have a majority besides the first are refused, too.
  MixedLockSet(AnyLock* locks, std::size_t count) noexcept
      : LockSetBase(table_of<AnyLock, find>, locks, count), locks_(locks) {}

  // The lock that the last acquire() failed at; nullptr after a grant.
  [[nodiscard]] const AnyLock* blocker() const noexcept {
    return blocking_place() == LockSetTask::no_place ? nullptr : &locks_[blocking_place()];
  }

 private:
  static void find(const AnyLock& lock, LockPlace& found) noexcept;

  AnyLock* locks_;
};

}  // namespace holdfast
