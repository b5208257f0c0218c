// SPDX-License-Identifier: MIT
//
// Mutex is a lock on one key, held by one object at a time and not reentrant. It excludes every client that follows
// the redis.io page on distributed locks: redis-py, redsync, node-redlock, redislock.
//
//     Mutex lock(client, "orders/42", {.lease = 5s});
//     if (lock.acquire(2s) == Status::ok) {
//       ... work, and ask lock.held() before every step that must not happen twice ...
//       Status status = lock.release();
//     }
#pragma once

#include "holdfast/blocking_lock.hpp"
#include "holdfast/mutex_kind.hpp"

namespace holdfast {

class Mutex : public BlockingLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The client must outlive the lock.
  Mutex(Client& client, ByteView key, const LockTiming& timing = {}) noexcept
      : BlockingLock(client, mutex_kind, Key(key), timing) {}
  // Posts the release of a hold that is left. Does not block, does not throw.
  ~Mutex() = default;
};

}  // namespace holdfast
