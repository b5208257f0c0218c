// SPDX-License-Identifier: MIT
//
// RespTree is a reply that owns its bytes, so that it can be kept and compared after the parser has moved on.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/proto/resp_value.hpp"

namespace holdfast::testing {

struct RespTree {
  RespKind kind = RespKind::null;
  std::string text;             // simple, error, bulk
  std::int64_t integer = 0;     // integer
  std::vector<RespTree> items;  // array

  bool operator==(const RespTree&) const = default;
};

inline RespTree tree_of(const RespValue& value) {
  RespTree tree;
  tree.kind = value.kind();
  switch (value.kind()) {
    case RespKind::simple:
    case RespKind::error:
    case RespKind::bulk: tree.text = value.text().string_view(); break;
    case RespKind::integer: tree.integer = value.integer(); break;
    case RespKind::null: break;
    case RespKind::array:
      for (std::uint32_t index = 0; index < value.count(); ++index) tree.items.push_back(tree_of(value.at(index)));
      break;
  }
  return tree;
}

// Bytes as the vectors write them: printable ones as they are, the rest escaped.
inline std::string show_bytes(std::string_view bytes) {
  std::string text = "\"";
  for (const char byte : bytes) {
    char escaped[8] = {byte};
    if (byte == '\r')
      std::snprintf(escaped, sizeof escaped, "\\r");
    else if (byte == '\n')
      std::snprintf(escaped, sizeof escaped, "\\n");
    else if (byte == '"' || byte == '\\')
      std::snprintf(escaped, sizeof escaped, "\\%c", byte);
    else if (byte < ' ' || byte > '~')
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    text += escaped;
  }
  return text + '"';
}

inline std::string to_text(const RespTree& tree) {
  switch (tree.kind) {
    case RespKind::simple: return "simple " + show_bytes(tree.text);
    case RespKind::error: return "error " + show_bytes(tree.text);
    case RespKind::bulk: return "bulk " + show_bytes(tree.text);
    case RespKind::integer: return "integer " + std::to_string(tree.integer);
    case RespKind::null: return "null";
    case RespKind::array: break;
  }
  std::string text = "array [";
  for (const RespTree& item : tree.items) text += (text.back() == '[' ? "" : ", ") + to_text(item);
  return text + "]";
}

}  // namespace holdfast::testing
