// SPDX-License-Identifier: MIT
//
// crc16(), which goes by four bits at a time, is the CRC of its polynomial, which goes bit by bit. Two bytes lead to each of the
// 65,536 remainders, so a third one is any step of any text.
//
// BOUND   all texts of 3 bytes, and with them each step of a text of any length
// WAY     enumeration
// BROKEN  include/holdfast/proto/slot.hpp: `0x8108` => `0x8109`
#include "holdfast/proto/slot.hpp"
#include "proof.hpp"

using namespace holdfast;

namespace {

unsigned step(unsigned crc, unsigned byte) {
  crc ^= byte << 8;
  for (int bit = 0; bit < 8; ++bit) crc = (crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021U : 0U)) & 0xffff;
  return crc;
}

}  // namespace

void prove() noexcept {
  static bool reached[0x10000];
  unsigned remainders = 0;
  for (unsigned text = 0; text < 1U << 24; ++text) {
    const char bytes[] = {static_cast<char>(text >> 16), static_cast<char>(text >> 8), static_cast<char>(text)};
    const unsigned before = step(step(0, text >> 16), text >> 8 & 0xff);
    claim(crc16({bytes, 3}) == step(before, text & 0xff));
    if (!reached[before]) ++remainders;
    reached[before] = true;
  }
  claim(remainders == 0x10000);
}
