// SPDX-License-Identifier: MIT
//
// What write_decimal() writes has decimal_size() bytes, digits alone behind the sign, and decimal_size_max at most.
//
// BOUND   every number of 64 bits, signed and unsigned
// UNWIND  23
// BROKEN  include/holdfast/proto/decimal.hpp: `*--at = static_cast<char>` => `*at-- = static_cast<char>`
// BROKEN  include/holdfast/proto/decimal.hpp: `(number < 0 ? 1 : 0)` => `0`
#include "holdfast/proto/decimal.hpp"
#include "proof.hpp"

using namespace holdfast;

void prove() noexcept {
  const std::int64_t number = any_signed();
  const std::size_t size = decimal_size(number);
  claim(size >= 1 && size <= decimal_size_max);
  char text[decimal_size_max];
  char* const end = write_decimal(text, number);
  claim(end == text + size && (text[0] == '-') == (number < 0));
  const std::size_t unsigned_size = decimal_size(any_u64());
  claim(unsigned_size >= 1 && unsigned_size <= decimal_size_max);
}
