// SPDX-License-Identifier: MIT
//
// AsyncSemaphore is Semaphore for an Asio loop: the same permits, the same peers.
#pragma once

#include <cstdint>

#include "holdfast/asio/async_lock.hpp"
#include "holdfast/core/semaphore_kind.hpp"

namespace holdfast {

class AsyncSemaphore : public AsyncLock {
 public:
  // As Semaphore's.
  AsyncSemaphore(AsyncClient& client, BytesArgument key, std::uint32_t permits, const LockTiming& timing = {})
      : record_(core_of(client), semaphore_kind, Key(key), checked_timing(permits, timing)) {
    record_.set_argument(permits);
    attach(record_);
  }
  ~AsyncSemaphore() override = default;

 private:
  AsyncRecord record_;
};

}  // namespace holdfast
