// SPDX-License-Identifier: MIT
//
// Semaphore is one of the permits of a name: at most so many holders have one at a time. It shares them with Redisson's
// getPermitExpirableSemaphore() of the same name, and each wakes the other's waiters.
//
//     Semaphore permit(client, "printers", 3);
//     if (permit.acquire(2s) == Status::ok) { ...; Status status = permit.release(); }
//
// A permit is a hold with a lease and a token, and a Watchdog or the automatic lease keeps it. Who wants several makes an object
// for each. One whose lease has ended goes to whoever asks next. is_locked() says whether none is free.
//
// How many there are is set once, by the first who asks, and stays on the server, without a TTL. All must name the same number.
#pragma once

#include <cstdint>

#include "holdfast/core/semaphore_kind.hpp"
#include "holdfast/detail/blocking_lock.hpp"
#include "holdfast/detail/run_listening.hpp"

namespace holdfast {

class Semaphore : public BlockingLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. `permits`: how many the name has, permits_max at most; 0:
  // as many as somebody else has set. The client must outlive the lock.
  // Errors beside the common ones: permits_differ of an acquire, where another number is set, or 0 was asked for and none is.
  Semaphore(ClientBase& client, BytesArgument key, std::uint32_t permits, const LockTiming& timing = {}) noexcept
      : BlockingLock(hold_), hold_(client, semaphore_kind, Key(key), checked_timing(permits, timing), ways) {
    hold_.set_argument(permits);
  }
  // Posts the release of a permit that is left. Does not block, does not throw.
  ~Semaphore() = default;

 private:
  static constexpr HoldRecord::Ways ways = {.draw_ordinal = nullptr, .run_listening = run_listening};

  HoldRecord hold_;
};
static_assert(sizeof(Semaphore) <= 640, "promised: a lock");

}  // namespace holdfast
