// SPDX-License-Identifier: MIT
//
// Theorem: a request is read back, by the parser and by the oracle, as an array of bulk strings that are the arguments
// that were encoded; encoded_size() is its size to the byte; where it does not fit, or by a byte less, the buffer and the
// size are untouched; what is written argument by argument is the same. (S6 of proto/security.md.)
//
// Input: a byte for the number of arguments, two for the buffer, a byte without a meaning, then each argument:
// a byte that says its kind and, times eight, its size; then its bytes.
#include <cstring>
#include <string>
#include <vector>

#include "holdfast/proto/resp_encoder.hpp"
#include "parse_record.hpp"
#include "resp_oracle.hpp"
#include "theorem.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr char canary = '\x5a';

std::int64_t read_integer(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(number);
}

void expect_untouched(const std::vector<char>& buffer, std::size_t from) {
  for (std::size_t at = from; at < buffer.size(); ++at) HOLDFAST_THEOREM(buffer[at] == canary, std::to_string(at));
}

// What comes out must be these texts, nothing before and nothing behind.
void expect_arguments(std::string_view request, const std::vector<std::string>& texts) {
  RespTree expected{RespKind::array, "", 0, {}};
  bool within_limits = request.size() <= reply_size_max && texts.size() < elements_max;
  for (const std::string& text : texts) {
    expected.items.push_back({RespKind::bulk, text, 0, {}});
    within_limits = within_limits && text.size() <= bulk_size_max;
  }
  RespTree tree;
  std::size_t size = 0;
  const OracleLimits wide = {.bulk = 1U << 20, .elements = 1U << 20, .reply = 1U << 24};
  HOLDFAST_THEOREM(RespOracle::read(request, wide, tree, size) == ParseResult::value, show_bytes(request));
  HOLDFAST_THEOREM(size == request.size() && tree == expected, to_text(tree) + "\n" + to_text(expected));
  if (!within_limits) return;
  RespParserStorage storage;
  RespParser parser({storage.buffer, sizeof storage.buffer}, storage.nodes, elements_max);
  const ParseRecord record = record_parse(parser, request, [](std::size_t rest) { return rest; });
  HOLDFAST_THEOREM(record == (ParseRecord{.values = {expected}}), to_text(record));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const std::size_t count = input.byte() % 24;
  const std::size_t room = input.number(0, 3000);
  (void)input.byte();  // Of the corpus: it once chose an argument.
  std::vector<std::string> texts;
  std::vector<std::string> bytes;
  std::vector<std::pair<bool, std::int64_t>> integers;
  for (std::size_t index = 0; index < count; ++index) {
    const std::uint8_t kind = input.byte();
    const bool is_integer = kind % 8 == 0;
    bytes.emplace_back(input.bytes(is_integer ? 8 : kind % 8 == 1 ? kind * 8U : kind / 8U));
    integers.emplace_back(is_integer, is_integer ? read_integer(bytes.back()) : 0);
    texts.push_back(is_integer ? std::to_string(integers.back().second) : bytes.back());
  }
  std::vector<Argument> list;
  for (std::size_t index = 0; index < count; ++index)
    list.push_back(integers[index].first ? Argument(integers[index].second) : Argument(ByteView(bytes[index])));
  const Arguments arguments(list.data(), list.size());

  constexpr std::size_t size_before = 4711;
  std::vector<char> buffer(room, canary);
  std::size_t written = size_before;
  const Status status = encode_command({buffer.data(), room}, arguments, written);
  const std::size_t needed = encoded_size(arguments);
  if (status != Status::ok) {
    HOLDFAST_THEOREM(status == (count == 0 ? Status::invalid_argument : Status::buffer_too_small), to_string(status));
    HOLDFAST_THEOREM(count == 0 || needed > room, std::to_string(needed));
    HOLDFAST_THEOREM(written == size_before, std::to_string(written));
    expect_untouched(buffer, 0);
  } else {
    HOLDFAST_THEOREM(written == needed && needed <= room, std::to_string(written));
    expect_untouched(buffer, written);
    expect_arguments({buffer.data(), written}, texts);
  }
  if (count == 0) return 0;

  // A buffer of exactly the size, and one of a byte less.
  std::vector<char> exact(needed, canary);
  HOLDFAST_THEOREM(encode_command({exact.data(), needed}, arguments, written) == Status::ok, "exact");
  HOLDFAST_THEOREM(written == needed, std::to_string(written));
  std::vector<char> small(needed - 1, canary);
  HOLDFAST_THEOREM(encode_command({small.data(), needed - 1}, arguments, written) == Status::buffer_too_small, "small");
  expect_untouched(small, 0);

  // Argument by argument, announced or counted, into the same rooms.
  for (const bool announced : {true, false}) {
    for (const std::size_t space : {needed, needed - 1, room}) {
      std::vector<char> out(space, canary);
      const MutableBytes bytes_out = {out.data(), space};
      CommandWriter writer = announced ? CommandWriter(bytes_out, count) : CommandWriter(bytes_out);
      for (const Argument& argument : list)
        if (argument.is_integer())
          writer.add(argument.integer());
        else
          writer.add(argument.bytes());
      written = size_before;
      const Status outcome = writer.finish(written);
      HOLDFAST_THEOREM(outcome == (needed <= space ? Status::ok : Status::buffer_too_small), to_string(outcome));
      HOLDFAST_THEOREM(written == (needed <= space ? needed : size_before), std::to_string(written));
      if (outcome == Status::ok)
        HOLDFAST_THEOREM(ByteView(out.data(), written) == ByteView(exact.data(), needed), "written bytes");
    }
  }
  return 0;
}
