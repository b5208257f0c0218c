// SPDX-License-Identifier: MIT
//
// ReplyWriter appends RESP2 replies to a string, as a server forms them.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace holdfast::sim {

class ReplyWriter {
 public:
  explicit ReplyWriter(std::string& out) : out_(&out) {}

  void ok() { out_->append("+OK\r\n"); }
  void status(std::string_view text) { line('+', text); }
  // `text` begins with the error's class, without the dash. Line ends inside of it become spaces.
  void error(std::string_view text) {
    while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
    out_->push_back('-');
    for (const char byte : text) out_->push_back(byte == '\r' || byte == '\n' ? ' ' : byte);
    out_->append("\r\n");
  }
  void integer(std::int64_t number) { head(':', number); }
  void bulk(std::string_view bytes) {
    head('$', static_cast<std::int64_t>(bytes.size()));
    out_->append(bytes);
    out_->append("\r\n");
  }
  void bulk_number(std::int64_t number) {
    char text[24];
    bulk({text, std::to_chars(text, text + sizeof text, number).ptr});
  }
  // A score. RESP2 has no type for it.
  void real(double number) {
    if (std::isinf(number)) return bulk(number > 0 ? "inf" : "-inf");
    char text[64];
    const int size = std::snprintf(text, sizeof text, "%.17g", number);
    bulk({text, static_cast<std::size_t>(size)});
  }
  void null_bulk() { out_->append("$-1\r\n"); }
  void null_array() { out_->append("*-1\r\n"); }
  void array(std::size_t size) { head('*', static_cast<std::int64_t>(size)); }

  [[nodiscard]] std::string& text() { return *out_; }

 private:
  void head(char kind, std::int64_t number) {
    char text[24];
    text[0] = kind;
    char* end = std::to_chars(text + 1, text + sizeof text - 2, number).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out_->append(text, static_cast<std::size_t>(end - text));
  }
  void line(char kind, std::string_view text) {
    out_->push_back(kind);
    out_->append(text);
    out_->append("\r\n");
  }

  std::string* out_;
};

}  // namespace holdfast::sim
