// SPDX-License-Identifier: MIT
#include "json.hpp"

namespace holdfast::cli {

std::string json_string(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    if (byte == '"' || byte == '\\') {
      quoted += '\\';
      quoted += byte;
    } else if (value < ' ') {
      quoted += "\\u00";
      quoted += digits[value >> 4];
      quoted += digits[value & 0xf];
    } else {
      quoted += byte;
    }
  }
  return quoted + "\"";
}

void JsonObject::add_raw(std::string_view name, std::string_view json) {
  if (!members_.empty()) members_ += ", ";
  members_ += json_string(name);
  members_ += ": ";
  members_ += json;
}

}  // namespace holdfast::cli
