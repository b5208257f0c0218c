// SPDX-License-Identifier: MIT
//
// What --json prints: one object, written member by member.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

// A JSON string. REQUIRES: valid UTF-8, as printable ASCII is; see escaped().
[[nodiscard]] std::string json_string(std::string_view text);

class JsonObject {
 public:
  void add(std::string_view name, std::string_view text) { add_raw(name, json_string(text)); }
  void add(std::string_view name, bool value) { add_raw(name, value ? "true" : "false"); }
  // A number as it stands.
  void add_number(std::string_view name, std::string_view number) { add_raw(name, number); }
  // An object, an array or a number, as it stands.
  void add_raw(std::string_view name, std::string_view json);
  [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace holdfast::cli
