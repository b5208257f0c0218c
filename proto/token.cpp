// SPDX-License-Identifier: MIT
#include "holdfast/key.hpp"

namespace holdfast {

namespace {

// Eight hexadecimal digits of four bytes at once: nibbles spread over the bytes of a word, then '0' to 'f' by
// arithmetic on all of them. The digits stand in the word's memory order on little-endian machines.
std::uint64_t hex_digits(std::uint64_t bytes) noexcept {
  bytes = (bytes | bytes << 16) & 0x0000'ffff'0000'ffffU;
  bytes = (bytes | bytes << 8) & 0x00ff'00ff'00ff'00ffU;
  const std::uint64_t nibbles = (bytes >> 4 | bytes << 8) & 0x0f0f'0f0f'0f0f'0f0fU;
  const std::uint64_t letters = (nibbles + 0x0606'0606'0606'0606U) >> 4 & 0x0101'0101'0101'0101U;
  return nibbles + 0x3030'3030'3030'3030U + letters * ('a' - '0' - 10);
}

}  // namespace

Token Token::from_random(const unsigned char (&random)[token_random_size]) noexcept {
  Token token;
  for (std::size_t at = 0; at < token_random_size; at += 4) {
    std::uint32_t four = 0;
    std::memcpy(&four, random + at, 4);
    const std::uint64_t digits = hex_digits(four);
    std::memcpy(token.bytes_ + 2 * at, &digits, 8);
  }
  token.size_ = token_text_size;
  return token;
}

}  // namespace holdfast
