// SPDX-License-Identifier: MIT
//
// Theorem: whatever the bytes, the buffer and the number of nodes, RespParser's results depend on the bytes alone, not
// on how they were cut into pieces or when they were polled; they are what the grammar of proto/resp2.md says, as the
// oracle reads it; nothing outside the buffer and the nodes is touched. (S1 to S5 of proto/security.md.)
//
// Input: two bytes for the size of the buffer, two for the number of nodes, two as the seed of the pieces, then what
// the server sends.
#include <algorithm>
#include <vector>

#include "holdfast/proto/resp_parser.hpp"
#include "parse_record.hpp"
#include "resp_oracle.hpp"
#include "theorem.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// Pieces of 1 to 37 bytes, by a generator of Lehmer's: small ones cut more states.
class Pieces {
 public:
  explicit Pieces(std::size_t seed) : state_(static_cast<std::uint32_t>(seed) + 1) {}
  std::size_t operator()(std::size_t rest) {
    state_ = static_cast<std::uint32_t>(std::uint64_t{state_} * 48271 % 2147483647);
    return std::min<std::size_t>(rest, 1 + state_ % 37);
  }

 private:
  std::uint32_t state_;
};

// A driver that polls at most one value a feed, and feeds on only when it has to.
ParseRecord record_lazily(RespParser& parser, std::string_view input, Pieces pieces) {
  ParseRecord record;
  for (;;) {
    RespValue out = RespValue::make_integer(-5);
    record.ending = parser.poll_value(out);
    if (record.ending == ParseResult::value)
      record.values.push_back(tree_of(out));
    else if (!out.is_integer(-5))
      record.sound = false;
    if (record.ending == ParseResult::invalid) break;
    if (record.ending == ParseResult::need_more && input.empty()) break;
    if (!input.empty()) input.remove_prefix(parser.feed(ByteView(input.substr(0, pieces(input.size())))));
  }
  close_record(parser, record);
  return record;
}

void expect_equal(const ParseRecord& expected, const ParseRecord& record) {
  HOLDFAST_THEOREM(expected == record, to_text(expected) + "\n" + to_text(record));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const std::size_t buffer_size = input.number(16, reply_size_max);
  const std::size_t node_count = input.number(1, elements_max);
  const Pieces pieces(input.number(0, 65535));
  const std::string_view bytes = input.rest();

  // Of exactly these sizes, so that a sanitizer sees a step outside.
  std::vector<char> buffer(buffer_size);
  std::vector<RespValue> nodes(node_count);
  RespParser parser({buffer.data(), buffer.size()}, nodes.data(), nodes.size());

  const ParseRecord expected = record_oracle(bytes, OracleLimits{.elements = node_count, .reply = buffer_size});
  expect_equal(expected, record_parse(parser, bytes, [](std::size_t rest) { return rest; }));
  const std::string error = parser.error();
  parser.reset();
  expect_equal(expected, record_parse(parser, bytes, [](std::size_t) { return std::size_t{1}; }));
  HOLDFAST_THEOREM(error == parser.error(), error + "\n" + parser.error());
  parser.reset();
  expect_equal(expected, record_parse(parser, bytes, pieces));
  HOLDFAST_THEOREM(error == parser.error(), error + "\n" + parser.error());
  parser.reset();
  expect_equal(expected, record_lazily(parser, bytes, pieces));
  HOLDFAST_THEOREM(error == parser.error(), error + "\n" + parser.error());
  return 0;
}
