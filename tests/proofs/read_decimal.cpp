// SPDX-License-Identifier: MIT
//
// read_decimal() takes digits alone, never overflows and keeps its limit; what it refuses leaves the number as it was.
//
// BOUND   texts of up to 5 bytes, those of 20 and 21 that begin as 2^64 does, and every limit
// UNWIND  300
// BROKEN  include/holdfast/proto/decimal.hpp: `__builtin_mul_overflow(sum, 10, &sum)` => `(sum *= 10, false)`
// BROKEN  include/holdfast/proto/decimal.hpp: ` || sum > limit)` => `)`
#include "holdfast/proto/decimal.hpp"
#include "proof.hpp"

using namespace holdfast;

namespace {

void look_at(const char* bytes, std::size_t size) {
  const std::uint64_t limit = any_u64();
  const std::uint64_t before = any_u64();
  std::uint64_t number = before;
  const bool read = read_decimal({bytes, size}, limit, number);
  // The same number in twice as many bits, which cannot overflow.
  bool digits = size != 0 && size <= decimal_size_max;
  unsigned __int128 expected = 0;
  for (std::size_t at = 0; at < size && digits; ++at) {
    digits = bytes[at] >= '0' && bytes[at] <= '9';
    expected = expected * 10 + static_cast<unsigned>(bytes[at] - '0');
  }
  claim(read == (digits && expected <= limit));
  claim(number == (read ? static_cast<std::uint64_t>(expected) : before));
}

}  // namespace

void prove() noexcept {
  for (std::size_t size = 0; size <= 5; ++size) look_at(any_bytes(size), size);
  constexpr char edge[] = "1844674407370955";  // 2^64 has twenty digits, and begins so.
  for (std::size_t size = decimal_size_max; size <= decimal_size_max + 1; ++size) {
    char* const bytes = any_bytes(size);
    for (std::size_t at = 0; at + 1 < sizeof edge; ++at) bytes[at] = edge[at];
    look_at(bytes, size);
  }
}
