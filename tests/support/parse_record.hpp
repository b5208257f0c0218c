// SPDX-License-Identifier: MIT
//
// What came out of a parser, or of the oracle, for all of an input: the values and how it ended. Two records compare
// equal if no caller could tell them apart.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/proto/resp_parser.hpp"
#include "resp_oracle.hpp"
#include "resp_tree.hpp"

namespace holdfast::testing {

struct ParseRecord {
  std::vector<RespTree> values;
  ParseResult ending = ParseResult::need_more;
  bool idle = true;   // At the end: no byte of an unfinished reply is held. Not told where the ending is invalid.
  bool sound = true;  // An output that should stay untouched did, an error stuck, and there was room while valid.

  bool operator==(const ParseRecord&) const = default;
};

inline std::string to_text(const ParseRecord& record) {
  std::string text;
  for (const RespTree& value : record.values) text += to_text(value) + "; ";
  text += record.ending == ParseResult::invalid ? "invalid" : record.idle ? "nothing more" : "need_more";
  return record.sound ? text : text + " (unsound)";
}

// Takes every whole value out of `parser`.
inline void drain(RespParser& parser, ParseRecord& record) {
  for (;;) {
    RespValue out = RespValue::make_integer(-5);
    record.ending = parser.poll_value(out);
    if (record.ending != ParseResult::value) {
      record.sound = record.sound && out.is_integer(-5);
      return;
    }
    record.values.push_back(tree_of(out));
  }
}

inline void close_record(RespParser& parser, ParseRecord& record) {
  if (record.ending == ParseResult::invalid) {
    RespValue out = RespValue::make_integer(-5);
    record.sound = record.sound && parser.poll_value(out) == ParseResult::invalid && out.is_integer(-5) &&
                   parser.feed("+OK\r\n") == 0 && parser.receive_space().size == 0 && parser.error()[0] != '\0';
  } else {
    record.idle = parser.idle();
    record.sound = record.sound && parser.error()[0] == '\0';
  }
}

// Feeds `input` in pieces; next_piece(rest) is the size of the next one, 1 to rest. After each feed all is polled.
template <class NextPiece>
ParseRecord record_parse(RespParser& parser, std::string_view input, NextPiece next_piece) {
  ParseRecord record;
  while (!input.empty() && record.ending != ParseResult::invalid) {
    std::string_view piece = input.substr(0, next_piece(input.size()));
    input.remove_prefix(piece.size());
    while (!piece.empty() && record.ending != ParseResult::invalid) {
      const std::size_t taken = parser.feed(ByteView(piece));
      record.sound = record.sound && taken != 0;
      piece.remove_prefix(taken);
      drain(parser, record);
      if (taken == 0) break;
    }
  }
  close_record(parser, record);
  return record;
}

inline ParseRecord record_oracle(std::string_view input, const OracleLimits& limits) {
  ParseRecord record;
  for (;;) {
    RespTree tree;
    std::size_t size = 0;
    record.ending = RespOracle::read(input, limits, tree, size);
    if (record.ending != ParseResult::value) break;
    record.values.push_back(tree);
    input.remove_prefix(size);
  }
  if (record.ending == ParseResult::need_more) record.idle = input.empty();
  return record;
}

}  // namespace holdfast::testing
