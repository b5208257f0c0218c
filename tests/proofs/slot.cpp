// SPDX-License-Identifier: MIT
//
// A key's slot is below cluster_slots, its hash tag stands inside of it, and no table of the CRC is left.
//
// BOUND   keys of up to 8 bytes
// UNWIND  10
// BROKEN  include/holdfast/proto/slot.hpp: `(crc >> 12 ^ value) & 0xf` => `(crc >> 12 ^ value) & 0x1f`
// BROKEN  include/holdfast/proto/slot.hpp: `crc16(hash_tag_of(key)) % cluster_slots` => `crc16(hash_tag_of(key))`
// BROKEN  include/holdfast/proto/slot.hpp: `close < key.size()` => `close <= key.size()`
#include "holdfast/proto/slot.hpp"
#include "proof.hpp"

using namespace holdfast;

void prove() noexcept {
  for (std::size_t size = 0; size <= 8; ++size) {
    const char* const bytes = any_bytes(size);
    const ByteView tag = hash_tag_of({bytes, size});
    claim(tag.data() >= bytes && tag.data() + tag.size() <= bytes + size);
    claim(size == 0 || !tag.empty());
    claim(slot_of({bytes, size}) < cluster_slots);
  }
}
