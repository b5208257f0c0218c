// SPDX-License-Identifier: MIT
//
// LockSet takes several locks, of any kinds and on any nodes, within one deadline: all of them or none. It takes them in the
// order of their nodes and names, whatever order they are given in, so that programs that name them alike cannot deadlock.
//
//     BlockingLock* locks[] = {&stock, &orders};      // on two clients
//     LockSet set(locks, 2);
//     if (set.acquire(2s) == Status::ok) { ...; Status status = set.release(); }
//
// Several names of one node are better one MultiLock. A MultiLock stands where its first name would: where programs mix it on
// one node with locks on single names of it, they may still block each other, until the deadline.
//
// It is no quorum: each lock is held on its own node, and held() wants them all. Thread rule: a set, its locks and their
// clients are used together, by one thread at a time; held(), valid_until() and remaining() may be called from any thread.
// No heap.
#pragma once

#include <cstddef>

#include "holdfast/detail/blocking_lock.hpp"

namespace holdfast {

class LockSet {
 public:
  // Sorts the caller's array: by socket path or by host and port, as configured and in the order of their bytes, then by
  // database, then by name. All programs must name a node alike.
  // REQUIRES: connect() was called for each client, and goes where it went; the array, the locks and their clients outlive
  // the set, and the locks are not acquired and released beside it while it is held.
  LockSet(BlockingLock** locks, std::size_t count) noexcept;
  // Posts the releases of what is left. Does not block.
  ~LockSet();
  LockSet(const LockSet&) = delete;
  LockSet& operator=(const LockSet&) = delete;

  // ok; invalid_argument when the set is empty, or two of its locks are on one name of one node; what the configuration() of
  // one of its locks says. Then acquire() says so, too.
  [[nodiscard]] Status configuration() const noexcept { return configuration_; }

  // One attempt for each, until one is not to be had. Errors: as acquire().
  [[nodiscard]] Status try_acquire() noexcept { return acquire(Duration::zero()); }
  // Waits for one after the other until all are taken or `wait` is over (wait_forever: no end); each has one attempt at least,
  // so it may block for a request timeout a lock more. What is taken is renewed while the next is waited for, whatever its
  // lease. Errors: as BlockingLock::acquire(), the last attempt's; already_held; lock_lost, when one that was taken ran out
  // meanwhile. What was taken is let go of then, without waiting for it.
  [[nodiscard]] Status acquire(Duration wait) noexcept;
  // The lock that the last acquire() failed at; nullptr behind a grant.
  [[nodiscard]] const BlockingLock* blocker() const noexcept { return blocker_; }
  // Extends every lease, each counted from its own request. All are asked, whatever the first ones say; a failure leaves the
  // holds as they are. Errors: not_held; the first that BlockingLock::renew() met.
  [[nodiscard]] Status renew() noexcept;
  // Lets go of all, the last taken first, and waits for each server's word. Whatever it says, each acquisition is over then.
  // Errors: not_held; the first that BlockingLock::release() met.
  [[nodiscard]] Status release() noexcept;
  // Lets go without waiting. Errors: not_held; the first that BlockingLock::post_release() met.
  Status post_release() noexcept;

  // All of them are held, now. Any thread; no I/O.
  [[nodiscard]] bool held() const noexcept {
    const Instant until = valid_until();
    return Client::now() < until;
  }
  // The first of their ends; the epoch when one is not held. Any thread.
  [[nodiscard]] Instant valid_until() const noexcept;
  // valid_until() less now, never negative. Any thread.
  [[nodiscard]] Duration remaining() const noexcept;
  // When to call renew(): the first of their times. Instant::max() when nothing is held.
  [[nodiscard]] Instant renewal_due() const noexcept;

 private:
  [[nodiscard]] Status take(std::size_t place, Instant deadline) noexcept;
  // ok, or lock_lost when one that is taken is not held any more.
  [[nodiscard]] Status check() noexcept;

  BlockingLock** locks_;
  std::size_t count_;
  std::size_t taken_ = 0;  // The first ones of the array.
  const BlockingLock* blocker_ = nullptr;
  Status configuration_ = Status::ok;
};
static_assert(sizeof(LockSet) <= 48, "promised: a set of locks without its locks");

}  // namespace holdfast
