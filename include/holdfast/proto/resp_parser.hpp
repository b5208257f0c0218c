// SPDX-License-Identifier: MIT
//
// RespParser reads RESP2 replies in place: the caller receives into the parser's buffer, the parser hands out values
// that view it. It is strict (proto/resp2.md is the grammar), resumes at any byte, does not recurse and does not
// allocate. An error sticks until reset(): behind a malformed byte no reply can be told from another.
//
//     MutableBytes space = parser.receive_space();   // receive into it
//     parser.handle_received(count);
//     while (parser.poll_value(value) == ParseResult::value) use(value);
//
// Invariant: the results depend on the bytes alone, not on how they were cut into pieces.
// Not thread-safe: one owner.   No heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/resp_value.hpp"

namespace holdfast {

enum class ParseResult : std::uint8_t {
  need_more,  // The bytes so far are the beginning of a reply, or there are none.
  value,      // One whole reply.
  invalid,    // No RESP2, or over a limit. Sticks until reset().
};

class RespParser {
 public:
  // The storage is the caller's and must outlive the parser. One whole reply must fit into `buffer`, and the elements
  // of one reply, itself included, into `nodes`; what is larger is invalid.
  // REQUIRES: buffer.size >= 16, node_count >= 1.
  RespParser(MutableBytes buffer, RespValue* nodes, std::size_t node_count) noexcept;
  RespParser(const RespParser&) = delete;
  RespParser& operator=(const RespParser&) = delete;

  // Free space for the next receive; never empty after poll_value() has said need_more. Values handed out end here.
  [[nodiscard]] MutableBytes receive_space() noexcept {
    if (!idle()) return receive_more();
    cursor_ = begin_;
    end_ = begin_;
    return {begin_, static_cast<std::size_t>(limit_ - begin_)};
  }
  // `count` bytes have been written to the start of receive_space().
  // REQUIRES: count <= receive_space().size.
  void handle_received(std::size_t count) noexcept {
    HOLDFAST_ASSERT(count <= static_cast<std::size_t>(limit_ - end_));
    end_ += count;
  }
  // Copies as many bytes as fit into receive_space() and returns their number: for bytes that are elsewhere.
  std::size_t feed(ByteView bytes) noexcept;

  // The next whole reply. On need_more and invalid `out` is untouched. An array and its elements are valid until the
  // next call of any member but the questions.
  [[nodiscard]] ParseResult poll_value(RespValue& out) noexcept;

  // True if no byte of an unfinished or unpolled reply is held.
  [[nodiscard]] bool idle() const noexcept { return cursor_ == end_ && depth_ == 0; }
  // What was wrong, as a sentence without a full stop; empty unless the parser is invalid.
  [[nodiscard]] const char* error() const noexcept { return error_ == nullptr ? "" : error_; }
  // Forgets everything: for a new connection.
  void reset() noexcept;

 private:
  struct Level {
    std::uint32_t remaining;  // Elements still to come.
    std::uint32_t node;       // The array's place in nodes_.
  };

  MutableBytes receive_more() noexcept;
  ParseResult invalidate(const char* error) noexcept;
  bool take_array(RespValue& out) noexcept;
  ParseResult read_reply(RespValue& out) noexcept;
  ParseResult read_element(RespValue& element) noexcept;
  ParseResult read_number(const char*& place, char type, std::int64_t& number) noexcept;

  char* begin_;              // The buffer.
  char* limit_;              // Behind its last byte.
  char* end_;                // Behind the last byte received.
  const char* cursor_;       // The first byte of the next element.
  const char* value_begin_;  // The first byte of the reply in progress.
  const char* error_;
  RespValue* nodes_;
  std::uint32_t node_count_;
  std::uint32_t nodes_used_;  // By the reply in progress.
  std::uint32_t scanned_;     // Bytes of the line in progress that were found to be plain.
  std::uint8_t depth_;        // Arrays that are open.
  Level levels_[depth_max];
};

static_assert(sizeof(RespParser) <= 112, "promised: a parser without its buffers");

// Storage for a parser whose capacities are the limits' defaults.
struct RespParserStorage {
  char buffer[reply_size_max];
  RespValue nodes[elements_max];
};

}  // namespace holdfast
