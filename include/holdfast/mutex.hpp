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

#include <cstdint>

#include "holdfast/core/mutex_options.hpp"
#include "holdfast/detail/blocking_lock.hpp"
#include "holdfast/detail/run_listening.hpp"

namespace holdfast {

class Mutex : public BlockingLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The client must outlive the lock.
  Mutex(ClientBase& client, BytesArgument key, const LockTiming& timing = {}) noexcept
      : BlockingLock(hold_), hold_(client, mutex_kind, Key(key), timing, no_ways) {}
  Mutex(ClientBase& client, BytesArgument key, const LockTiming& timing, const MutexOptions& options) noexcept
      : BlockingLock(hold_), hold_(client, kind_of(options), Key(key), timing, ways) {}
  // Posts the release of a hold that is left. Does not block, does not throw.
  ~Mutex() = default;

  // Of the last acquire, the same on renewal; 0 where it was not granted, and without the option.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }

 private:
  static constexpr HoldRecord::Ways no_ways{};
  static constexpr HoldRecord::Ways ways = {.draw_ordinal = nullptr, .run_listening = run_listening};

  HoldRecord hold_;
};
static_assert(sizeof(Mutex) <= 640, "promised: a lock");

}  // namespace holdfast
