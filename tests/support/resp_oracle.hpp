// SPDX-License-Identifier: MIT
//
// A second reading of the grammar in proto/resp2.md, written to be compared with RespParser and therefore written
// differently: recursive descent over the whole input, numbers as strings of digits, no state between two calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/limits.hpp"
#include "holdfast/proto/resp_parser.hpp"
#include "resp_tree.hpp"

namespace holdfast::testing {

struct OracleLimits {
  std::size_t line = line_size_max;
  std::size_t bulk = bulk_size_max;
  std::size_t elements = elements_max;
  std::size_t depth = depth_max;
  std::size_t reply = reply_size_max;
};

class RespOracle {
 public:
  // Reads the reply at the start of `input`. On value, `tree` is that reply and `size` its number of bytes.
  static ParseResult read(std::string_view input, const OracleLimits& limits, RespTree& tree, std::size_t& size) {
    RespOracle oracle(input.substr(0, limits.reply), limits);
    const ParseResult result = oracle.element(0, tree);
    if (result == ParseResult::value) size = oracle.at_;
    // A buffer that is full of one unfinished reply can never finish it.
    if (result == ParseResult::need_more && input.size() >= limits.reply) return ParseResult::invalid;
    return result;
  }

 private:
  RespOracle(std::string_view input, const OracleLimits& limits) : input_(input), limits_(limits) {}

  static constexpr ParseResult need_more = ParseResult::need_more;
  static constexpr ParseResult value = ParseResult::value;
  static constexpr ParseResult invalid = ParseResult::invalid;

  ParseResult element(std::size_t depth, RespTree& tree) {
    if (at_ == input_.size()) return need_more;
    const char type = input_[at_++];
    tree = RespTree();
    if (type == '+') return line(RespKind::simple, tree);
    if (type == '-') return line(RespKind::error, tree);
    if (type == ':') return integer(tree);
    if (type == '$') return bulk(tree);
    if (type == '*') return array(depth, tree);
    return invalid;
  }

  ParseResult line(RespKind kind, RespTree& tree) {
    const std::size_t found = input_.find_first_of("\r\n", at_);
    const std::size_t end = found == std::string_view::npos ? input_.size() : found;
    const std::string_view text = input_.substr(at_, end - at_);
    if (text.size() > limits_.line) return invalid;
    at_ = end;
    if (const ParseResult ended = line_end(); ended != value) return ended;
    tree.kind = kind;
    tree.text = text;
    return value;
  }

  ParseResult line_end() {
    for (const char expected : {'\r', '\n'}) {
      if (at_ == input_.size()) return need_more;
      if (input_[at_++] != expected) return invalid;
    }
    return value;
  }

  // The digits, with their sign, of a number that ends at CR LF. A number is refused at the first byte that cannot
  // stand there, with two exceptions that are refused at their CR: minus zero, and 19 digits beyond 64 bits.
  ParseResult number(char type, std::string_view& text) {
    const std::size_t begin = at_;
    while (at_ < input_.size() && input_[at_] != '\r')
      if (!may_begin_number(type, input_.substr(begin, ++at_ - begin))) return invalid;
    text = input_.substr(begin, at_ - begin);
    if (at_ == input_.size()) return need_more;
    if (!is_number(text)) return invalid;
    return line_end();
  }

  [[nodiscard]] bool may_begin_number(char type, std::string_view text) const {
    const bool negative = text.front() == '-';
    const std::string_view digits = text.substr(negative ? 1 : 0);
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return false;
    if (digits.size() > 1 && digits.front() == '0') return false;
    if (digits.size() > 19) return false;
    if (type == ':' || digits.empty()) return true;
    if (negative) return digits == "1";
    const unsigned long long length = std::stoull(std::string(digits));
    return type == '$' ? length <= limits_.bulk : length < limits_.elements;
  }

  static bool is_number(std::string_view text) {
    const bool negative = !text.empty() && text.front() == '-';
    const std::string_view digits = text.substr(negative ? 1 : 0);
    if (digits.empty() || (negative && digits == "0")) return false;
    const std::string_view largest = negative ? "9223372036854775808" : "9223372036854775807";
    return digits.size() < largest.size() || digits <= largest;
  }

  ParseResult integer(RespTree& tree) {
    std::string_view text;
    if (const ParseResult result = number(':', text); result != value) return result;
    tree.kind = RespKind::integer;
    tree.integer = std::stoll(std::string(text));
    return value;
  }

  ParseResult bulk(RespTree& tree) {
    std::string_view text;
    if (const ParseResult result = number('$', text); result != value) return result;
    if (text == "-1") return value;  // null
    const unsigned long long size = std::stoull(std::string(text));
    if (input_.size() - at_ < size) return need_more;
    const std::string_view bytes = input_.substr(at_, static_cast<std::size_t>(size));
    at_ += bytes.size();
    if (const ParseResult ended = line_end(); ended != value) return ended;
    tree.kind = RespKind::bulk;
    tree.text = bytes;
    return value;
  }

  ParseResult array(std::size_t depth, RespTree& tree) {
    std::string_view text;
    if (const ParseResult result = number('*', text); result != value) return result;
    if (text == "-1") return value;  // null
    if (depth == limits_.depth) return invalid;
    const unsigned long long count = std::stoull(std::string(text));
    // An array was promised a place by the array around it; the outermost one by nobody.
    promised_ += count + (depth == 0 ? 1 : 0);
    if (promised_ > limits_.elements) return invalid;
    tree.kind = RespKind::array;
    for (unsigned long long index = 0; index < count; ++index) {
      RespTree item;
      if (const ParseResult result = element(depth + 1, item); result != value) return result;
      tree.items.push_back(item);
    }
    return value;
  }

  std::string_view input_;
  const OracleLimits& limits_;
  std::size_t at_ = 0;
  unsigned long long promised_ = 0;
};

}  // namespace holdfast::testing
