// SPDX-License-Identifier: MIT
#include "sha1_text.hpp"

#include <bit>
#include <cstdint>

namespace holdfast::sim {

namespace {

struct State {
  std::uint32_t words[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

  void add_block(const unsigned char* block) noexcept {
    std::uint32_t schedule[80];
    for (std::size_t word = 0; word < 16; ++word)
      schedule[word] = std::uint32_t{block[4 * word]} << 24 | std::uint32_t{block[4 * word + 1]} << 16 |
                       std::uint32_t{block[4 * word + 2]} << 8 | std::uint32_t{block[4 * word + 3]};
    for (std::size_t word = 16; word < 80; ++word)
      schedule[word] =
          std::rotl(schedule[word - 3] ^ schedule[word - 8] ^ schedule[word - 14] ^ schedule[word - 16], 1);
    std::uint32_t a = words[0], b = words[1], c = words[2], d = words[3], e = words[4];
    for (std::size_t round = 0; round < 80; ++round) {
      std::uint32_t mix = 0;
      if (round < 20)
        mix = ((b & c) | (~b & d)) + 0x5a827999;
      else if (round < 40)
        mix = (b ^ c ^ d) + 0x6ed9eba1;
      else if (round < 60)
        mix = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
      else
        mix = (b ^ c ^ d) + 0xca62c1d6;
      const std::uint32_t next = std::rotl(a, 5) + mix + e + schedule[round];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    words[0] += a;
    words[1] += b;
    words[2] += c;
    words[3] += d;
    words[4] += e;
  }
};

}  // namespace

Sha1Text sha1_text(std::string_view text) noexcept {
  State state;
  std::size_t at = 0;
  for (; text.size() - at >= 64; at += 64) state.add_block(reinterpret_cast<const unsigned char*>(text.data()) + at);
  // The rest, a one bit, zeros, and the number of bits in the last eight bytes of a block.
  unsigned char tail[128] = {};
  const std::size_t rest = text.size() - at;
  for (std::size_t index = 0; index < rest; ++index) tail[index] = static_cast<unsigned char>(text[at + index]);
  tail[rest] = 0x80;
  const std::size_t tail_size = rest + 9 <= 64 ? 64 : 128;
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (std::size_t index = 0; index < 8; ++index)
    tail[tail_size - 1 - index] = static_cast<unsigned char>(bits >> (8 * index));
  for (std::size_t block = 0; block < tail_size; block += 64) state.add_block(tail + block);

  Sha1Text digits{};
  for (std::size_t digit = 0; digit < sha1_digits; ++digit)
    digits[digit] = "0123456789abcdef"[state.words[digit / 8] >> (28 - 4 * (digit % 8)) & 0xf];
  return digits;
}

}  // namespace holdfast::sim
