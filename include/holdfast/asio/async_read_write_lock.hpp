// SPDX-License-Identifier: MIT
//
// AsyncReadWriteLock is ReadWriteLock for an Asio loop. The two sides may have an operation each at a time.
#pragma once

#include "holdfast/asio/async_owned_lock.hpp"
#include "holdfast/core/read_write_kind.hpp"

namespace holdfast {

class AsyncReadWriteLock {
 public:
  class Side : public AsyncOwnedLock {
   private:
    friend class AsyncReadWriteLock;
    Side(AsyncHoldOwner& owner, const LockKind& kind, Key key, const LockTiming& timing)
        : AsyncOwnedLock(owner, kind, key, timing) {}
    ~Side() override = default;
  };

  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The owner must outlive the lock, which takes
  // two of its places.
  AsyncReadWriteLock(AsyncHoldOwner& owner, BytesArgument key, const ReadWriteTiming& timing = {})
      : read_(owner, read_kind, Key(key), checked_timing(timing).read),
        write_(owner, write_kind, Key(key), checked_timing(timing).write) {
    Side::pair(read_, write_);
  }
  ~AsyncReadWriteLock() = default;

  // A side says from configuration() and from every operation what the other was refused for, too.
  [[nodiscard]] Side& read() noexcept { return read_; }
  [[nodiscard]] const Side& read() const noexcept { return read_; }
  // Errors beside the common ones: upgrade_refused of an acquire while read() is held.
  [[nodiscard]] Side& write() noexcept { return write_; }
  [[nodiscard]] const Side& write() const noexcept { return write_; }

 private:
  Side read_;
  Side write_;
};

}  // namespace holdfast
