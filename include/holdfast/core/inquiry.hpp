// SPDX-License-Identifier: MIT
//
// Inquiry is what is asked of a server about a lock, or done to it, beside locking: which request goes out, what its reply
// means, and whether another one follows. Both clients ask by it: inspection.hpp and async_inquiry.hpp
// say what each question does. It does no I/O.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/derived_name.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "holdfast/proto/resp_value.hpp"
#include "holdfast/status.hpp"

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
// Where the largest fence of a resource stands: `holdfast_fence:{resource}`.
inline constexpr ByteView seen_fence_prefix("holdfast_fence");

class Inquiry {
 public:
  Inquiry() noexcept = default;
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  // B. Commands. Each begins an inquiry. Key, value and what the answer is written to stay until it is over; the latter is
  // untouched unless that is with ok. Errors: invalid_argument, buffer_too_small of fenced_set(); nothing is asked then.
  [[nodiscard]] Status begin_info(Key key, LockInfo& info) noexcept;
  // Goes on where another inquiry about the key asked on, whose found() this was.
  [[nodiscard]] Status begin_permits(Key key, LockInfo& info) noexcept;
  [[nodiscard]] Status begin_queue(Key key, LockQueue& queue) noexcept;
  [[nodiscard]] Status begin_release(Key key, bool& released) noexcept;
  [[nodiscard]] Status begin_fenced_set(Key resource, std::uint64_t fence, ByteView value, bool& written) noexcept;

  // A. The request that is to be sent now.
  [[nodiscard]] Arguments arguments() const noexcept { return {arguments_, count_}; }

  // C. Inputs.
  // A reply that is no error. False: it has another shape than was asked for.
  [[nodiscard]] bool take(const RespValue& reply) noexcept { return decode_(*this, reply); }
  // What became of the request: ok after take(), or why there was no such reply. True: another one follows, arguments(). False:
  // the inquiry is over, and `outcome` is what it came to.
  [[nodiscard]] bool asks_on(Status& outcome) noexcept;
  // What is known where it asks on.
  [[nodiscard]] const LockInfo& found() const noexcept { return found_; }

 private:
  using Decode = bool (*)(Inquiry& self, const RespValue& reply);

  [[nodiscard]] Status begin(Decode decode, Key key, ByteView script, ByteView beside, void* out) noexcept;
  static bool decode_info(Inquiry& self, const RespValue& reply) noexcept;
  static bool decode_permits(Inquiry& self, const RespValue& reply) noexcept;
  static bool decode_queue(Inquiry& self, const RespValue& reply) noexcept;
  static bool decode_yes_or_no(Inquiry& self, const RespValue& reply) noexcept;

  Decode decode_ = nullptr;
  void* out_ = nullptr;
  std::size_t count_ = 0;
  Argument arguments_[7];
  DerivedName beside_;
  LockInfo found_;
};

}  // namespace holdfast
