// SPDX-License-Identifier: MIT
#include "holdfast/core/name_list.hpp"

#include <cstring>

#include "holdfast/proto/assert.hpp"

namespace holdfast {

NameList::NameList(const ByteView* names, std::size_t count) noexcept {
  ByteView sorted[names_max];
  std::size_t kept = 0;
  std::size_t size = 0;
  for (std::size_t index = 0; index < count; ++index) {
    const ByteView name = names[index];
    if (name.empty() || name.size() > name_size_max) return;
    std::size_t place = 0;
    while (place < kept && compare(sorted[place], name) < 0) ++place;
    if (place < kept && sorted[place] == name) continue;
    size += 1 + name.size();
    if (kept == names_max || size > key_size_max) return;
    for (std::size_t later = kept++; later > place; --later) sorted[later] = sorted[later - 1];
    sorted[place] = name;
  }
  char* out = bytes_;
  for (std::size_t index = 0; index < kept; ++index) {
    *out++ = static_cast<char>(static_cast<unsigned char>(sorted[index].size()));
    std::memcpy(out, sorted[index].data(), sorted[index].size());
    out += sorted[index].size();
  }
  size_ = static_cast<std::uint16_t>(size);
}

ByteView name_at(Key key, std::size_t index) noexcept {
  for (ByteView rest = key.bytes(); !rest.empty(); --index) {
    const std::size_t size = static_cast<unsigned char>(rest[0]);
    HOLDFAST_ASSERT(size != 0 && size < rest.size());
    if (index == 0) return rest.slice(1, size);
    rest = rest.slice(1 + size);
  }
  return {};
}

}  // namespace holdfast
