// SPDX-License-Identifier: MIT
//
// The SHA-1 of a text as forty digits, at run time: a server names scripts that it sees for the first time. What
// include/holdfast/proto/sha1.hpp computes at compile time, and checked against it.
#pragma once

#include <array>
#include <string_view>

namespace holdfast::sim {

inline constexpr std::size_t sha1_digits = 40;
using Sha1Text = std::array<char, sha1_digits>;  // Lower case.

[[nodiscard]] Sha1Text sha1_text(std::string_view text) noexcept;

}  // namespace holdfast::sim
