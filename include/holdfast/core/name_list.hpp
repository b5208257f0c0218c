// SPDX-License-Identifier: MIT
//
// NameList is several names as one key: what a lock of all of them has in a machine that knows one key. Each name stands
// behind a byte that says its size, in the order of their bytes, each once, so that the same names are the same key however
// they were given.
//
//     +---+-------------+---+-----------+
//     | 9 | accounts/1  | 9 | ...       |      at most key_size_max bytes in all
//     +---+-------------+---+-----------+
//
// No heap; a value.   Such a key never goes to a server.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/key.hpp"

namespace holdfast {

class NameList {
 public:
  // Names of any bytes, 1 to name_size_max of them; 1 to names_max different ones, which come to key_size_max bytes with a
  // byte each. Their bytes are copied. What is outside these limits makes a list whose key() is not valid().
  // Cost: a comparison for each pair of names.
  NameList(const ByteView* names, std::size_t count) noexcept;
  template <class Text, std::size_t count>
  explicit NameList(Text (&names)[count]) noexcept : NameList(Views<count>(names).views, count) {}

  // A view of this list. Empty, and so not valid(), where the names were outside their limits.
  [[nodiscard]] Key key() const noexcept { return Key({bytes_, size_}); }

 private:
  template <std::size_t count>
  struct Views {
    template <class Text>
    explicit Views(Text (&names)[count]) noexcept {
      for (std::size_t index = 0; index < count; ++index) views[index] = ByteView(names[index]);
    }
    ByteView views[count];
  };

  std::uint16_t size_ = 0;
  char bytes_[key_size_max];  // Not cleared.
};

// The name at `index` of the key of a NameList, in its order; empty behind the last one. A view of the key's bytes.
// REQUIRES: the key of a NameList.
[[nodiscard]] ByteView name_at(Key key, std::size_t index) noexcept;

}  // namespace holdfast
