// SPDX-License-Identifier: MIT
#include "trace.hpp"

#include <cstdio>

namespace holdfast::sim {

std::string time_text(SimTime at) {
  char text[48];
  std::snprintf(text, sizeof text, "%lld.%09lld", static_cast<long long>(at / second),
                static_cast<long long>(at % second));
  return text;
}

std::string bytes_text(std::string_view bytes, std::size_t size_max) {
  std::string text;
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (byte == '\r') continue;
    if (byte == '\n') {
      text += ' ';
    } else if (code >= 0x20 && code < 0x7f) {
      text += byte;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", code);
      text += escaped;
    }
  }
  if (text.size() > size_max)
    text = text.substr(0, size_max * 2 / 3) + " ... " + text.substr(text.size() - size_max / 3);
  return text;
}

void Trace::record(SimTime at, std::string_view what, std::uint64_t who, std::uint64_t detail, std::string_view bytes) {
  std::string text(what);
  text += ' ';
  text += std::to_string(who);
  text += ' ';
  text += std::to_string(detail);
  if (!bytes.empty()) {
    text += " | ";
    text += bytes_text(bytes);
  }
  lines_.push_back({at, std::move(text)});
}

}  // namespace holdfast::sim
