// SPDX-License-Identifier: MIT
//
// The theorem of fuzz_resp_parser for every string of a bounded length, instead of for those that a fuzzer comes upon:
//
//     every_string LENGTH [PART PARTS]
//
// All strings of up to LENGTH of the 16 symbols below go to RespParser, at once and byte by byte, up to five symbols in
// every other cut as well; the results must be those of the oracle. A string that begins with `*` is read by parsers of
// few and of many nodes. What begins with an invalid string is invalid, for the oracle by its grammar: such a string is
// followed one symbol further, and no more. PARTS processes share the work by the first two symbols.
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "holdfast/proto/resp_parser.hpp"
#include "parse_record.hpp"
#include "resp_oracle.hpp"
#include "theorem.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

// The types, what ends a line, digits that mean something to a length or a limit, and bytes that mean nothing.
constexpr char symbols[] = {'+', '-', ':', '$', '*', '\r', '\n', '0', '1', '2', '3', '9', 'a', ' ', '\0', '\xff'};
static_assert(sizeof symbols == 16);
constexpr std::size_t length_max = 12;
constexpr std::size_t every_cut_length_max = 5;
constexpr std::size_t node_counts[] = {elements_max, 3};

class EveryString {
 public:
  EveryString(std::size_t length, std::uint64_t part, std::uint64_t parts)
      : length_(length), part_(part), parts_(parts) {}

  void run() { follow(0, false); }
  void print(double seconds) const {
    std::printf("%" PRIu64 " strings read, %" PRIu64 " of them invalid, %.0f s\n", read_, invalid_, seconds);
  }

 private:
  // All strings that begin with the first `size` bytes of text_. `over`: those are invalid already.
  void follow(std::size_t size, bool over) {
    if (size == 2 && part_of_second() != part_) return;
    if (size != 0) over = read(size) == ParseResult::invalid || over;
    if (size == length_ || (over && beyond_)) return;
    const bool was_beyond = beyond_;
    beyond_ = over;
    for (const char symbol : symbols) {
      text_[size] = symbol;
      follow(size + 1, over);
    }
    beyond_ = was_beyond;
  }

  [[nodiscard]] std::uint64_t part_of_second() const {
    const auto number = [](char symbol) { return std::string_view(symbols, sizeof symbols).find(symbol); };
    return (number(text_[0]) * sizeof symbols + number(text_[1])) % parts_;
  }

  ParseResult read(std::size_t size) {
    const std::string_view text(text_, size);
    ParseResult ending = ParseResult::need_more;
    for (const std::size_t node_count : node_counts) {
      const ParseRecord expected = record_oracle(text, OracleLimits{.elements = node_count, .reply = sizeof buffer_});
      compare(text, expected, node_count, [](std::size_t rest) { return rest; });
      compare(text, expected, node_count, [](std::size_t) { return std::size_t{1}; });
      // Each bit says whether there is a cut behind that byte; of none and of all was seen above.
      for (std::uint32_t cuts = 1; size <= every_cut_length_max && cuts + 1 < 1U << (size - 1); ++cuts) {
        std::size_t at = 0;
        compare(text, expected, node_count, [&](std::size_t) {
          const std::size_t begin = at;
          do ++at;
          while (at != size && (cuts >> (at - 1) & 1) == 0);
          return at - begin;
        });
      }
      if (node_count == node_counts[0]) ending = expected.ending;
      if (text.find('*') == std::string_view::npos) break;  // Nodes are for arrays.
    }
    ++read_;
    if (ending == ParseResult::invalid) ++invalid_;
    return ending;
  }

  template <class NextPiece>
  void compare(std::string_view text, const ParseRecord& expected, std::size_t node_count, NextPiece next_piece) {
    RespParser parser({buffer_, sizeof buffer_}, nodes_, node_count);
    const ParseRecord record = record_parse(parser, text, next_piece);
    if (expected == record) return;
    std::string bytes;
    for (const char byte : text) bytes += " " + std::to_string(static_cast<unsigned char>(byte));
    HOLDFAST_THEOREM(false, "bytes" + bytes + "\n" + to_text(expected) + "\n" + to_text(record));
  }

  std::size_t length_;
  std::uint64_t part_;
  std::uint64_t parts_;
  bool beyond_ = false;  // What is followed is one symbol longer than an invalid string.
  std::uint64_t read_ = 0;
  std::uint64_t invalid_ = 0;
  char text_[length_max] = {};
  char buffer_[reply_size_max];
  RespValue nodes_[elements_max];
};

bool read_number(const char* text, unsigned long long least, unsigned long long most, std::uint64_t& number) {
  char* end = nullptr;
  number = std::strtoull(text, &end, 10);
  return end != text && *end == '\0' && *text != '-' && number >= least && number <= most;
}

}  // namespace

int main(int argument_count, char** arguments) {
  std::uint64_t length = 0;
  std::uint64_t part = 0;
  std::uint64_t parts = 1;
  if ((argument_count != 2 && argument_count != 4) || !read_number(arguments[1], 1, length_max, length) ||
      (argument_count == 4 && (!read_number(arguments[3], 1, sizeof symbols * sizeof symbols, parts) ||
                               !read_number(arguments[2], 0, parts - 1, part)))) {
    std::fprintf(stderr, "usage: every_string LENGTH [PART PARTS]; LENGTH is 1 to %zu, PART is 0 to PARTS - 1\n",
                 length_max);
    return 64;
  }
  const auto begin = std::chrono::steady_clock::now();
  static EveryString strings(static_cast<std::size_t>(length), part, parts);
  strings.run();
  strings.print(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return 0;
}
