// SPDX-License-Identifier: MIT
//
// For operators: who holds a lock, and taking it away. The kind is found out by the key's type, so that these work on locks
// of every client.
#pragma once

#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/client_config.hpp"

namespace holdfast {

enum class LockForm : std::uint8_t {
  free,       // There is no such key.
  mutex,      // A string: a Mutex, redis-py, redsync, node-redlock. Or a string that is no lock: a type does not tell.
  reentrant,  // A hash: ReentrantLock, FencedLock, Redisson's plain, fenced and fair locks.
  read,       // A hash with a mode: a ReadWriteLock or Redisson's that is read,
  write,      // or written. Its writer may read as well.
  semaphore,  // A Semaphore or Redisson's of which permits are taken. Where none is, its number looks like a string.
  other,      // No lock that holdfast knows.
};
// "free", "mutex", "reentrant", "read", "write", "semaphore", "other".
[[nodiscard]] const char* to_string(LockForm form) noexcept;

inline constexpr std::size_t owner_text_size_max = 128;

struct LockInfo {
  LockForm form = LockForm::free;
  // The token, or the owner field (Redisson: `uuid:thread`), a writer's without its `:write`; of several readers one of them.
  // Any bytes; cut at the limit.
  BoundedText<owner_text_size_max> owner{};
  std::uint64_t count = 0;  // How often that owner holds it.
  // More than one: readers, of whom one that has died counts until the last of them has left; or permits that are taken.
  std::uint64_t owners = 0;
  std::uint64_t permits = 0;  // Of a semaphore: how many there are.
  // Duration::max(): the key has no TTL. Of a semaphore: of the permit that ends next.
  Duration remaining = Duration::zero();
  std::uint64_t fence = 0;  // The last one given out; 0: none.
};

// One attempt, and another one where the key may be a semaphore; blocks like Mutex::try_acquire(). On failure `info` is
// untouched.
// Errors: invalid_argument (the key); connection failures; the server's refusals; protocol_error.
[[nodiscard]] Status inspect(Client& client, Key key, LockInfo& info) noexcept;

// Who waits for a FairLock. Those who wait by other kinds stand in no queue.
inline constexpr std::size_t waiters_told_max = 8;
struct LockQueue {
  struct Waiter {
    BoundedText<token_size_max> token{};  // Any bytes; cut at the limit.
    Duration waited = Duration::zero();
    // When the server last heard of it, so long ago; Duration::max(): not within 3 s, so a release passes it over.
    Duration heard = Duration::zero();
  };
  std::uint64_t waiting = 0;  // How many there are,
  std::size_t told = 0;       // and the first of them, in their order.
  Waiter waiters[waiters_told_max];
};
// As inspect(), with one error more: wrong_type where the queue's key is something else.
[[nodiscard]] Status inspect_queue(Client& client, Key key, LockQueue& queue) noexcept;

// Deletes the lock, whoever holds it, or gives all permits back, and wakes its waiters; those of a FairLock come by themselves
// within a second. `released` is false where it was free. Its holder is not asked and finds out with its next renewal: only for
// a holder that is known to be gone, and with a fence where that may be wrong.
// Errors: as inspect(); wrong_type for what is no lock; a lost reply is unknown. `released` is untouched then.
[[nodiscard]] Status force_release(Client& client, Key key, bool& released) noexcept;

}  // namespace holdfast
