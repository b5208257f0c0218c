// SPDX-License-Identifier: MIT
//
// AsyncFairLock is FairLock for an Asio loop: a handle of its owner's hold, as AsyncReentrantLock is.
#pragma once

#include "holdfast/asio/async_owned_lock.hpp"
#include "holdfast/core/fair_kind.hpp"

namespace holdfast {

class AsyncFairLock : public AsyncOwnedLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The owner must outlive the lock. With `linger` a lock that
  // nobody else wants stays where it is used, as lingering.hpp says; here the loop listens, and nothing else is needed. How long
  // is said by the first object of a name.
  AsyncFairLock(AsyncHoldOwner& owner, BytesArgument key, const LockTiming& timing = {},
                const FairOptions& options = {})
      : AsyncOwnedLock(owner, kind_of(options), options.valid() ? Key(key) : Key(), timing) {
    if (options.lingers() && !refused()) record().linger(options.linger);
  }
  ~AsyncFairLock() override = default;

  // As FairLock's.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};

}  // namespace holdfast
