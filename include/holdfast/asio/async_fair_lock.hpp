// SPDX-License-Identifier: MIT
//
// FairLock for an Asio loop. The lock object is the owner: it may be acquired again while it is held, one operation after the
// other, and is free once it was released as often.
#pragma once

#include "holdfast/asio/async_lock.hpp"
#include "holdfast/core/fair_kind.hpp"

namespace holdfast {

class AsyncFairLock : public AsyncLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them.
  AsyncFairLock(AsyncClient& client, BytesArgument key, const LockTiming& timing = {}, const FairOptions& options = {})
      : AsyncLock(client, kind_of(options), Key(key), timing) {}
  ~AsyncFairLock() = default;

  // As FairLock's.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};

}  // namespace holdfast
