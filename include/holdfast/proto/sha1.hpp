// SPDX-License-Identifier: MIT
//
// SHA-1 (FIPS 180-4), for naming scripts as EVALSHA wants them: computed at compile time, so that no program carries
// the algorithm. It names, it does not protect: SHA-1 is broken for signatures.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/proto/bytes.hpp"

namespace holdfast {

inline constexpr std::size_t sha1_hex_size = 40;

struct Sha1Hex {
  char digits[sha1_hex_size];  // Lower case.
  [[nodiscard]] constexpr ByteView bytes() const noexcept { return {digits, sha1_hex_size}; }
};

// Compile time only: a run-time call does not build.
[[nodiscard]] consteval Sha1Hex sha1(ByteView text) noexcept {
  std::uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  const auto rotate = [](std::uint32_t word, int bits) { return word << bits | word >> (32 - bits); };
  const std::uint64_t bit_count = static_cast<std::uint64_t>(text.size()) * 8;
  // The text, a one bit, zeros, and the bit count in the last eight bytes of a block of 64.
  const std::size_t padded_size = (text.size() + 1 + 8 + 63) / 64 * 64;
  const auto padded = [&](std::size_t at) -> std::uint32_t {
    if (at < text.size()) return static_cast<unsigned char>(text[at]);
    if (at == text.size()) return 0x80;
    if (at >= padded_size - 8) return static_cast<std::uint32_t>(bit_count >> 8 * (padded_size - 1 - at)) & 0xff;
    return 0;
  };
  for (std::size_t block = 0; block < padded_size; block += 64) {
    std::uint32_t schedule[80] = {};
    for (std::size_t word = 0; word < 16; ++word) {
      const std::size_t at = block + 4 * word;
      schedule[word] = padded(at) << 24 | padded(at + 1) << 16 | padded(at + 2) << 8 | padded(at + 3);
    }
    for (int word = 16; word < 80; ++word)
      schedule[word] = rotate(schedule[word - 3] ^ schedule[word - 8] ^ schedule[word - 14] ^ schedule[word - 16], 1);
    std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int round = 0; round < 80; ++round) {
      std::uint32_t mix = 0;
      if (round < 20)
        mix = ((b & c) | (~b & d)) + 0x5a827999;
      else if (round < 40)
        mix = (b ^ c ^ d) + 0x6ed9eba1;
      else if (round < 60)
        mix = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
      else
        mix = (b ^ c ^ d) + 0xca62c1d6;
      const std::uint32_t next = rotate(a, 5) + mix + e + schedule[round];
      e = d;
      d = c;
      c = rotate(b, 30);
      b = a;
      a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
  }
  Sha1Hex hex{};
  for (int digit = 0; digit < 40; ++digit)
    hex.digits[digit] = "0123456789abcdef"[state[digit / 8] >> (28 - 4 * (digit % 8)) & 0xf];
  return hex;
}

}  // namespace holdfast
