// SPDX-License-Identifier: MIT
//
// Key names a lock on the server; Token proves one hold of it. Both are bytes, and they are types of their own so
// that the one cannot be passed for the other.
#pragma once

#include <cstdint>
#include <cstring>

#include "holdfast/limits.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

// A view of a key's bytes: any bytes, 1 to key_size_max of them. Owns nothing.
class Key {
 public:
  constexpr Key() noexcept = default;
  constexpr explicit Key(ByteView bytes) noexcept : bytes_(bytes) {}
  // Of a temporary string: for use in one expression.
  template <BytesSource Source>
  constexpr explicit Key(Source&& bytes HOLDFAST_LIFETIMEBOUND) noexcept : bytes_(static_cast<Source&&>(bytes)) {}
  [[nodiscard]] constexpr ByteView bytes() const noexcept { return bytes_; }
  [[nodiscard]] constexpr bool valid() const noexcept { return !bytes_.empty() && bytes_.size() <= key_size_max; }

 private:
  ByteView bytes_;
};

// The proof of one hold; a value. Fresh for every hold, never reused.
class Token {
 public:
  Token() noexcept {}  // Empty. Its bytes are not cleared: a token is copied on the hot path.
  // The same, as a constant.
  static constexpr Token none() noexcept { return Token(None()); }
  // REQUIRES: 0 < bytes.size() <= token_size_max.
  explicit Token(ByteView bytes) noexcept : size_(static_cast<std::uint8_t>(bytes.size())) {
    HOLDFAST_ASSERT(!bytes.empty() && bytes.size() <= token_size_max);
    std::memcpy(bytes_, bytes.data(), bytes.size());
  }
  // The random token of the string kinds: 16 random bytes as 32 lower hexadecimal digits, in an order of its own.
  static Token from_random(const unsigned char (&random)[token_random_size]) noexcept;

  [[nodiscard]] ByteView bytes() const noexcept { return {bytes_, size_}; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  // Of `uuid:ordinal`: `uuid:-ordinal`. REQUIRES: such a token, not negative yet.
  [[nodiscard]] Token negative() const noexcept;
  // Of `uuid:ordinal`: whose it is. Of another: all of it.
  [[nodiscard]] ByteView client() const noexcept {
    const void* const colon = std::memchr(bytes_, ':', size_);
    return {bytes_, colon == nullptr ? size_ : static_cast<std::size_t>(static_cast<const char*>(colon) - bytes_)};
  }

 private:
  struct None {};
  constexpr explicit Token(None) noexcept : bytes_{} {}

  char bytes_[token_size_max];
  std::uint8_t size_ = 0;
};

}  // namespace holdfast
