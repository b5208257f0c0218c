// SPDX-License-Identifier: MIT
#include "holdfast/proto/key.hpp"

namespace holdfast {

namespace {

// Eight nibbles as eight hexadecimal digits, by arithmetic on all of them at once.
constexpr std::uint64_t hex_digits(std::uint64_t nibbles) noexcept {
  const std::uint64_t letters = (nibbles + 0x0606'0606'0606'0606U) >> 4 & 0x0101'0101'0101'0101U;
  return nibbles + 0x3030'3030'3030'3030U + letters * ('a' - '0' - 10);
}

}  // namespace

Token Token::from_random(const unsigned char (&random)[token_random_size]) noexcept {
  Token token;
  // Of each eight bytes the low nibbles first, then the high ones: where all is random, the order says nothing.
  for (std::size_t at = 0; at < token_random_size; at += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, random + at, 8);
    const std::uint64_t low = hex_digits(eight & 0x0f0f'0f0f'0f0f'0f0fU);
    const std::uint64_t high = hex_digits(eight >> 4 & 0x0f0f'0f0f'0f0f'0f0fU);
    std::memcpy(token.bytes_ + 2 * at, &low, 8);
    std::memcpy(token.bytes_ + 2 * at + 8, &high, 8);
  }
  token.size_ = token_text_size;
  return token;
}

Token Token::negative() const noexcept {
  const std::size_t head = client().size() + 1;
  HOLDFAST_ASSERT(head < size_ && size_ < token_size_max);
  Token token;
  std::memcpy(token.bytes_, bytes_, head);
  token.bytes_[head] = '-';
  std::memcpy(token.bytes_ + head + 1, bytes_ + head, size_ - head);
  token.size_ = static_cast<std::uint8_t>(size_ + 1);
  return token;
}

}  // namespace holdfast
