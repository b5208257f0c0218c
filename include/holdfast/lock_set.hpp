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
// It is no quorum: each lock is held on its own node, and held() wants them all. Locks on quorums may stand beside others in a
// MixedLockSet. In its order a Redlock has its place by the addresses of its nodes, the least of them first.
//
//     AnyLock locks[] = {&stock, &orders};      // a Mutex and a RedlockMutex<3>
//     MixedLockSet set(locks, 2);
//
// A call of a set is a call of each of its clients and quorums: cancel() of any of them ends it, at once where it waits on that
// one, else before it asks for the next lock or renewal. So cancel() of all of them ends it at once, and no call after it. A
// release is ended by that of the client that it waits on; what came before, or for another one, ends that client's next call.
//
// Thread rule: a set, its locks and their clients are used together, by one thread at a time; held(), valid_until() and
// remaining() may be called from any thread. No heap.
#pragma once

#include <cstddef>

#include "holdfast/core/lock_set_task.hpp"
#include "holdfast/detail/blocking_lock.hpp"

namespace holdfast {

class QuorumLock;

// What sets of all locks have in common. Use LockSet or MixedLockSet.
class LockSetBase {
 public:
  LockSetBase(const LockSetBase&) = delete;
  LockSetBase& operator=(const LockSetBase&) = delete;

  // ok; invalid_argument when the set is empty, or two of its locks can never be had together, as on one name of one
  // node; what the configuration() of
  // one of its locks says. Then acquire() says so, too.
  [[nodiscard]] Status configuration() const noexcept { return configuration_; }

  // One attempt for each, until one is not to be had. Errors: as acquire().
  [[nodiscard]] Status try_acquire() noexcept { return acquire(Duration::zero()); }
  // Waits for one after the other until all are taken or `wait` is over (wait_forever: no end); each has one attempt at least,
  // so it may block for a request timeout a lock more. What is taken is renewed while the next is waited for, whatever its
  // lease. Errors: as BlockingLock::acquire(), the last attempt's; already_held; lock_lost, when one that was taken ran out
  // meanwhile; cancelled. What was taken is let go of then, without waiting for it.
  [[nodiscard]] Status acquire(Duration wait) noexcept;
  // Extends every lease, each counted from its own request. All are asked, whatever the first ones say; a failure leaves the
  // holds as they are. Errors: not_held; the first that BlockingLock::renew() met. Cancelled, no more are asked.
  [[nodiscard]] Status renew() noexcept;
  // Lets go of all, the last taken first, and waits for each server's word. Whatever it says, each acquisition is over then.
  // Errors: not_held; the first that BlockingLock::release() met. Cancelled, what is left is let go of without waiting.
  [[nodiscard]] Status release() noexcept;
  // Lets go without waiting. Errors: not_held; the first that BlockingLock::post_release() met.
  Status post_release() noexcept;

  // All of them are held, now. Any thread; no I/O.
  [[nodiscard]] bool held() const noexcept {
    const Instant until = valid_until();
    return ClientBase::now() < until;
  }
  // The first of their ends; the epoch when one is not held. Any thread.
  [[nodiscard]] Instant valid_until() const noexcept { return task_.valid_until(); }
  // valid_until() less now, never negative. Any thread.
  [[nodiscard]] Duration remaining() const noexcept;
  // When to call renew(): the first of their times. Instant::max() when nothing is held.
  [[nodiscard]] Instant renewal_due() const noexcept { return task_.renewal_due(); }

 protected:
  // What the set does with the locks of its array.
  struct Table {
    Status (*configuration)(void* locks, std::size_t place) noexcept;
    void (*locate)(void* locks, std::size_t place, LockPlace& found) noexcept;
    void (*move)(void* locks, std::size_t from, std::size_t to) noexcept;
    Status (*act)(void* locks, std::size_t place, LockSetTask::Act act, Duration wait) noexcept;
    Instant (*valid_until)(const void* locks, std::size_t place) noexcept;
    Instant (*renewal_due)(const void* locks, std::size_t place) noexcept;
    CancelSignal& (*signal)(void* locks, std::size_t place) noexcept;
  };
  // The table of an array of these: pointers to locks, or what stands for one; where one is; and by what its calls are cancelled.
  template <class Element, void (*find)(const Element& lock, LockPlace& found) noexcept,
            CancelSignal& (*signal_of)(const Element& lock) noexcept>
  static constexpr Table table_of = {
      [](void* locks, std::size_t place) noexcept { return static_cast<Element*>(locks)[place]->configuration(); },
      [](void* locks, std::size_t place, LockPlace& found) noexcept {
        find(static_cast<Element*>(locks)[place], found);
      },
      [](void* locks, std::size_t from, std::size_t to) noexcept { move_down(static_cast<Element*>(locks), from, to); },
      [](void* locks, std::size_t place, LockSetTask::Act act, Duration wait) noexcept {
        const Element& lock = static_cast<Element*>(locks)[place];
        switch (act) {
          case LockSetTask::Act::acquire: return lock->acquire(wait);
          case LockSetTask::Act::renew: return lock->renew();
          case LockSetTask::Act::release: return lock->release();
          case LockSetTask::Act::post_release: return lock->post_release();
          case LockSetTask::Act::over: break;
        }
        return Status::ok;
      },
      [](const void* locks, std::size_t place) noexcept {
        return static_cast<const Element*>(locks)[place]->valid_until();
      },
      [](const void* locks, std::size_t place) noexcept {
        return static_cast<const Element*>(locks)[place]->renewal_due();
      },
      [](void* locks, std::size_t place) noexcept -> CancelSignal& {
        return signal_of(static_cast<Element*>(locks)[place]);
      }};

  LockSetBase(const Table& table, void* locks, std::size_t count) noexcept;
  // Posts the releases of what is left. Does not block.
  ~LockSetBase();

  static void locate(BlockingLock* const& lock, LockPlace& found) noexcept;
  [[nodiscard]] static CancelSignal& signal_of(BlockingLock* const& lock) noexcept;
  // As LockSetTask's.
  [[nodiscard]] std::size_t blocking_place() const noexcept { return task_.blocker(); }

 private:
  static const LockSetTask::Host host;

  // `spared`: what was cancelled before it is the next call's.
  [[nodiscard]] Status run(bool spared) noexcept;
  [[nodiscard]] bool cancelled() const noexcept;
  [[nodiscard]] Status conclude(Status status, bool acquires) noexcept;

  const Table* table_;
  void* locks_;
  LockSetTask task_;
  Status configuration_ = Status::ok;
};

class LockSet : public LockSetBase {
 public:
  // Sorts the caller's array: by socket path or by host and port, as configured and in the order of their bytes, then by
  // database, then by name. All programs must name a node alike.
  // REQUIRES: connect() was called for each client, and goes where it went; the array, the locks and their clients outlive
  // the set, and the locks are not acquired and released beside it while it is held.
  LockSet(BlockingLock** locks, std::size_t count) noexcept
      : LockSetBase(table_of<BlockingLock*, locate, signal_of>, locks, count), locks_(locks) {}

  // The lock that the last acquire() failed at; nullptr after a grant, and where cancel() came between two locks.
  [[nodiscard]] const BlockingLock* blocker() const noexcept {
    return blocking_place() == LockSetTask::no_place ? nullptr : locks_[blocking_place()];
  }

 private:
  BlockingLock** locks_;
};
static_assert(sizeof(LockSet) <= 144, "promised: a set of locks without its locks");

// A lock on one server, or on a quorum: a pointer. Its calls are the lock's.
class AnyLock {
 public:
  AnyLock(BlockingLock* lock) noexcept : one_(lock) {}
  AnyLock(QuorumLock* lock) noexcept : many_(lock) {}

  [[nodiscard]] BlockingLock* one() const noexcept { return one_; }  // nullptr: it is on a quorum.
  [[nodiscard]] QuorumLock* many() const noexcept { return many_; }  // nullptr: it is on one server.

  [[nodiscard]] Status configuration() const noexcept;
  [[nodiscard]] Status acquire(Duration wait) const noexcept;
  [[nodiscard]] Status renew() const noexcept;
  [[nodiscard]] Status release() const noexcept;
  Status post_release() const noexcept;
  [[nodiscard]] Instant valid_until() const noexcept;
  [[nodiscard]] Instant renewal_due() const noexcept;
  const AnyLock* operator->() const noexcept { return this; }

 private:
  BlockingLock* one_ = nullptr;
  QuorumLock* many_ = nullptr;
};

class MixedLockSet : public LockSetBase {
 public:
  // As LockSet's. Two locks of which the second could not have a majority besides the first are refused, too.
  MixedLockSet(AnyLock* locks, std::size_t count) noexcept
      : LockSetBase(table_of<AnyLock, find, signal_of>, locks, count), locks_(locks) {}

  // The lock that the last acquire() failed at; nullptr after a grant, and where cancel() came between two locks.
  [[nodiscard]] const AnyLock* blocker() const noexcept {
    return blocking_place() == LockSetTask::no_place ? nullptr : &locks_[blocking_place()];
  }

 private:
  static void find(const AnyLock& lock, LockPlace& found) noexcept;
  [[nodiscard]] static CancelSignal& signal_of(const AnyLock& lock) noexcept;

  AnyLock* locks_;
};

}  // namespace holdfast
