// SPDX-License-Identifier: MIT
//
// Cuts requests out of a byte stream as a Redis server does: with its limits, with its words for what it refuses, and
// with its carelessness (the byte after a carriage return and the two bytes after a bulk are not looked at).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

enum class RequestOutcome : std::uint8_t { need_more, request, refused };

// Reads the first request of `bytes`. At `request`: its words, views into `bytes` (none for an empty request), and how
// many bytes it took. At `refused`: what the server says before it closes. An unauthenticated client has smaller
// limits. An inline request is split at blanks; quotes are refused.
[[nodiscard]] RequestOutcome read_request(std::string_view bytes, bool authenticated,
                                          std::vector<std::string_view>& words, std::size_t& size,
                                          std::string& refusal);

// A decimal number as Redis reads it: no sign but a minus, no leading zeros, no blanks.
[[nodiscard]] bool read_integer(std::string_view text, std::int64_t& number) noexcept;

}  // namespace holdfast::sim
