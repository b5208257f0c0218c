// SPDX-License-Identifier: MIT
//
// The slot of a key in a cluster: CRC16 (the XMODEM polynomial 0x1021, from 0) modulo 16384, of the hash tag where the key has one:
// what stands between the first '{' and the next '}', unless that is nothing.
// Source: the specification of Redis Cluster. No heap, no I/O; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/proto/bytes.hpp"

namespace holdfast {

inline constexpr std::uint16_t cluster_slots = 16384;

// By four bits at a time: sixteen numbers are all that it needs.
[[nodiscard]] constexpr std::uint16_t crc16(ByteView bytes) noexcept {
  constexpr std::uint16_t steps[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
                                       0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
  unsigned crc = 0;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    crc = ((crc << 4) ^ steps[(crc >> 12 ^ value >> 4) & 0xf]) & 0xffff;
    crc = ((crc << 4) ^ steps[(crc >> 12 ^ value) & 0xf]) & 0xffff;
  }
  return static_cast<std::uint16_t>(crc);
}

[[nodiscard]] constexpr ByteView hash_tag_of(ByteView key) noexcept {
  for (std::size_t open = 0; open < key.size(); ++open) {
    if (key[open] != '{') continue;
    for (std::size_t close = open + 1; close < key.size(); ++close)
      if (key[close] == '}') return close == open + 1 ? key : key.slice(open + 1, close - open - 1);
    return key;
  }
  return key;
}

// Not inline: several callers in a program share it.
[[nodiscard, gnu::noinline]] constexpr std::uint16_t slot_of(ByteView key) noexcept {
  return crc16(hash_tag_of(key)) % cluster_slots;
}

}  // namespace holdfast
