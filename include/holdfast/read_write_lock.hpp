// SPDX-License-Identifier: MIT
//
// ReadWriteLock is a lock that many readers hold at a time, or one writer. It excludes Redisson's getReadWriteLock() of the same
// name as its own would, and each wakes the other's waiters. A Mutex or a ReentrantLock of that name is excluded, too.
//
//     Owner owner(client);
//     ReadWriteLock lock(owner, "catalogue");
//     if (lock.read().acquire(2s) == Status::ok) { ...; Status status = lock.read().release(); }
//     if (lock.write().acquire(2s) == Status::ok) { ...; Status status = lock.write().release(); }
//
// Each side is acquired again while it is held, and free once it was released as often. A writer may read: who releases write()
// before read() has become a reader, and nobody wrote in between. A reader who asks for write() is told upgrade_refused: it would
// wait for itself. Readers come first: while there are any, others join them, and a writer waits.
//
// Calls, errors and costs are those of a ReentrantLock; renewals go through a Watchdog as well.
#pragma once

#include "holdfast/core/read_write_kind.hpp"
#include "holdfast/detail/owned_lock.hpp"
#include "holdfast/detail/owner.hpp"

namespace holdfast {

class ReadWriteLock {
 public:
  // One side: a handle, as a ReentrantLock is.
  class Side : public OwnedLock {
   private:
    friend class ReadWriteLock;
    Side(HoldOwner& owner, const LockKind& kind, Key key, const LockTiming& timing) noexcept
        : OwnedLock(owner, kind, key, timing, of_pair) {}
    ~Side() = default;
  };

  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The owner must outlive the lock, which takes two of its
  // places.
  ReadWriteLock(HoldOwner& owner, BytesArgument key, const ReadWriteTiming& timing = {}) noexcept
      : read_(owner, read_kind, Key(key), checked_timing(timing).read),
        write_(owner, write_kind, Key(key), checked_timing(timing).write) {
    Side::pair(read_, write_);
  }
  // Posts the release of what was acquired through this object and is left. Does not block, does not throw.
  ~ReadWriteLock() = default;

  // A side says from configuration() and from every call what the other was refused for, too.
  [[nodiscard]] Side& read() noexcept { return read_; }
  [[nodiscard]] const Side& read() const noexcept { return read_; }
  // Errors beside the common ones: upgrade_refused of an acquire while read() is held.
  [[nodiscard]] Side& write() noexcept { return write_; }
  [[nodiscard]] const Side& write() const noexcept { return write_; }

 private:
  Side read_;
  Side write_;
};

static_assert(sizeof(ReadWriteLock) <= 128, "promised: two handles");

}  // namespace holdfast
