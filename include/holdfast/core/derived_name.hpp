// SPDX-License-Identifier: MIT
//
// What stands beside a lock's key on the server has a name derived from it, as Redisson derives it (4.7.0,
// RedissonObject.prefixName): `prefix:{key}`, or `prefix:key` where the key has a brace of its own, so that both stand
// in one slot of a cluster.
#pragma once

#include <cstring>

#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/key.hpp"

namespace holdfast {

// The channel that announces releases.
inline constexpr ByteView channel_prefix("redisson_lock__channel");
// The same of a read/write lock.
inline constexpr ByteView read_write_channel_prefix("redisson_rwlock");
// And of a semaphore.
inline constexpr ByteView semaphore_channel_prefix("redisson_sc");
// A client's own, over which it hears that a fair lock was given to one of its waiters: of its id instead of a key.
inline constexpr ByteView fair_channel_prefix("holdfast_fair");
// The counter that fences come from.
inline constexpr ByteView fence_prefix("redisson_lock_token");

class DerivedName {
 public:
  DerivedName() noexcept {}  // Empty. Its bytes are not cleared.
  // REQUIRES: key.valid(), and a prefix of at most name_prefix_size_max.
  DerivedName(ByteView prefix, Key key) noexcept {
    HOLDFAST_ASSERT(key.valid() && prefix.size() <= name_prefix_size_max);
    const ByteView name = key.bytes();
    const bool tagged = std::memchr(name.data(), '{', name.size()) != nullptr;
    append(prefix);
    append(tagged ? ByteView(":") : ByteView(":{"));
    append(name);
    if (!tagged) append("}");
  }
  [[nodiscard]] ByteView bytes() const noexcept { return {bytes_, size_}; }

 private:
  void append(ByteView part) noexcept {
    std::memcpy(bytes_ + size_, part.data(), part.size());
    size_ = static_cast<std::uint16_t>(size_ + part.size());
  }

  std::uint16_t size_ = 0;
  char bytes_[derived_name_size_max];
};

}  // namespace holdfast
