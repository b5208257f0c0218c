// SPDX-License-Identifier: MIT
//
// Decimal numbers as bytes. <charconv> would do, but its tables are symbols of libstdc++.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/proto/bytes.hpp"

namespace holdfast {

inline constexpr std::size_t decimal_size_max = 20;  // "-9223372036854775808"

[[nodiscard]] constexpr std::size_t decimal_size(std::uint64_t number) noexcept {
  std::size_t digits = 1;
  for (std::uint64_t limit = 10; number >= limit && digits < decimal_size_max; limit *= 10) ++digits;
  return digits;
}
[[nodiscard]] constexpr std::uint64_t magnitude(std::int64_t number) noexcept {
  return number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
}
[[nodiscard]] constexpr std::size_t decimal_size(std::int64_t number) noexcept {
  return decimal_size(magnitude(number)) + (number < 0 ? 1 : 0);
}

// Writes without a terminator and returns the place after the last digit. The caller made sure that it fits.
// REQUIRES: decimal_size(number) is `size`.
constexpr char* write_decimal(char* out, std::uint64_t number, std::size_t size) noexcept {
  for (char* at = out + size; at != out; number /= 10) *--at = static_cast<char>('0' + number % 10);
  return out + size;
}
constexpr char* write_decimal(char* out, std::uint64_t number) noexcept {
  return write_decimal(out, number, decimal_size(number));
}
constexpr char* write_decimal(char* out, std::int64_t number) noexcept {
  if (number < 0) *out++ = '-';
  return write_decimal(out, magnitude(number));
}

[[nodiscard]] constexpr bool is_digit(char byte) noexcept { return byte >= '0' && byte <= '9'; }

// A non-negative decimal number that is all of `text`; false, with `number` untouched, for anything else.
[[nodiscard]] constexpr bool read_decimal(ByteView text, std::uint64_t limit, std::uint64_t& number) noexcept {
  if (text.empty() || text.size() > decimal_size_max) return false;
  std::uint64_t sum = 0;
  for (const char byte : text) {
    const unsigned digit = static_cast<unsigned char>(byte) - static_cast<unsigned>('0');
    if (digit > 9 || __builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, digit, &sum) || sum > limit)
      return false;
  }
  number = sum;
  return true;
}

}  // namespace holdfast
