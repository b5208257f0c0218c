// SPDX-License-Identifier: MIT
//
// AsyncMutex is Mutex for an Asio loop: the same key, the same peers, the same options.
#pragma once

#include "holdfast/asio/async_lock.hpp"
#include "holdfast/core/mutex_options.hpp"

namespace holdfast {

class AsyncMutex : public AsyncLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them.
  AsyncMutex(AsyncClient& client, BytesArgument key, const LockTiming& timing = {})
      : record_(core_of(client), mutex_kind, Key(key), timing) {
    attach(record_);
  }
  AsyncMutex(AsyncClient& client, BytesArgument key, const LockTiming& timing, const MutexOptions& options)
      : record_(core_of(client), kind_of(options), Key(key), timing) {
    attach(record_);
  }
  ~AsyncMutex() override = default;

  // Of the last acquire, the same on renewal; 0 where it was not granted, and without the option.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }

 private:
  AsyncRecord record_;
};
static_assert(sizeof(AsyncMutex) <= 1024, "promised: a lock of an Asio client");

}  // namespace holdfast
