// SPDX-License-Identifier: MIT
//
// RESP written by hand: what tests expect on the wire, or answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::testing {

inline std::string bulk(std::string_view text) {
  return std::string("$").append(std::to_string(text.size())).append("\r\n").append(text).append("\r\n");
}

// A request: an array of bulk strings.
inline std::string command_of(const std::vector<std::string>& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) bytes += bulk(word);
  return bytes;
}

}  // namespace holdfast::testing
