// SPDX-License-Identifier: MIT
//
// Words of a line, and the numbers among them.
#pragma once

#include <cstdint>

namespace board {

// The next word of a line, which is cut there; empty behind the last one.
[[nodiscard]] char* take_word(char*& line);
// A decimal number up to `most`. False: it is none.
[[nodiscard]] bool read_number(const char* word, std::uint32_t most, std::uint32_t& number);

}  // namespace board
