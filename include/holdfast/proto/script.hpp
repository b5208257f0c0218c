// SPDX-License-Identifier: MIT
//
// A Lua script as the server knows it: its text for EVAL, its SHA-1 for EVALSHA. The scripts themselves are files in
// proto/scripts; the build embeds them.
#pragma once

#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/sha1.hpp"

namespace holdfast {

struct Script {
  ByteView text;
  Sha1Hex sha;
};

template <std::size_t array_size>
[[nodiscard]] consteval Script make_script(const char (&text)[array_size]) noexcept {
  static_assert(array_size > 1 && array_size - 1 <= script_size_max, "a script is 1 to script_size_max bytes");
  return {ByteView(text), sha1(ByteView(text))};
}

}  // namespace holdfast
