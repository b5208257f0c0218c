// SPDX-License-Identifier: MIT
//
// The read/write lock for an Asio loop: see ReadWriteLock. The lock object is the owner of both sides, and the two may have an
// operation each at a time.
#pragma once

#include "holdfast/asio/async_lock.hpp"
#include "holdfast/core/read_write_kind.hpp"

namespace holdfast {

class AsyncReadWriteLock {
 public:
  class Side : public AsyncLock {
   private:
    friend class AsyncReadWriteLock;
    Side(AsyncClient& client, const LockKind& kind, Key key, const LockTiming& timing)
        : AsyncLock(client, kind, key, timing) {}
    ~Side() = default;
  };

  // The key's bytes are copied: any bytes, 1 to key_size_max of them.
  AsyncReadWriteLock(AsyncClient& client, BytesArgument key, const ReadWriteTiming& timing = {})
      : read_(client, read_kind, Key(key), checked_timing(timing).read),
        write_(client, write_kind, Key(key), checked_timing(timing).write) {
    Side::pair(read_, write_);
  }
  ~AsyncReadWriteLock() = default;

  // Where the timing of one side is invalid, both say so.
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
