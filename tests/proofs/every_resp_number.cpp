// SPDX-License-Identifier: MIT
//
// The number of an integer reply, whatever comes: it is taken where it is canonical and of 64 bits, and it is that number then.
// A bulk's and an array's length keep their limits. every_string has what is around a number; this has the edge of 64 bits.
//
// BOUND   behind `:` up to 5 of 14 symbols, alone and after the first 18 digits of 2^63, with `-` and without; lengths to 99,999
// WAY     enumeration
// BROKEN  proto/resp_parser.cpp: `if (sum > integer_max + (negative ? 1U : 0U))` => `if (sum > integer_max + 1U)`
// BROKEN  proto/resp_parser.cpp: `if (at - first == digits_max)` => `if (at - first > digits_max)`
// BROKEN  proto/resp_parser.cpp: `if (type == '$' && sum > bulk_size_max)` => `if (type == '$' && sum > bulk_size_max + 1)`
#include <cstring>

#include "holdfast/proto/decimal.hpp"

#include "proof.hpp"
#include "proto/resp_parser.cpp"

using namespace holdfast;

namespace {

constexpr char symbols[] = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '-', '\r', '\n', ' '};
constexpr std::size_t tail_max = 5;
constexpr std::size_t node_count = 16;

// By the grammar: minus or nothing, digits without a leading zero, CR LF; true where all of it is there.
bool is_number(const char* text, std::size_t size, __int128& number) {
  const std::size_t first = size != 0 && text[0] == '-' ? 1 : 0;
  std::size_t at = first;
  number = 0;
  for (; at < size && text[at] >= '0' && text[at] <= '9'; ++at) number = number * 10 + (text[at] - '0');
  if (at == first || (text[first] == '0' && (at != 1 || first != 0))) return false;
  if (first != 0) number = -number;
  return at + 2 <= size && text[at] == '\r' && text[at + 1] == '\n' && number >= INT64_MIN && number <= INT64_MAX;
}

ParseResult parse(char type, const char* text, std::size_t size, RespValue& value) {
  static char buffer[bulk_size_max];
  static RespValue nodes[node_count];
  RespParser parser({buffer, sizeof buffer}, nodes, node_count);
  const MutableBytes space = parser.receive_space();
  space.data[0] = type;
  std::memcpy(space.data + 1, text, size);
  parser.handle_received(size + 1);
  return parser.poll_value(value);
}

void follow(char* text, std::size_t size, std::size_t left) {
  RespValue value;
  __int128 expected = 0;
  const bool number = is_number(text, size, expected);
  claim((parse(':', text, size, value) == ParseResult::value) == number);
  if (number) claim(value.is_integer(static_cast<std::int64_t>(expected)));
  if (left == 0) return;
  for (const char symbol : symbols) {
    text[size] = symbol;
    follow(text, size + 1, left - 1);
  }
}

}  // namespace

void prove() noexcept {
  for (const char* const begin : {"", "922337203685477580", "-922337203685477580"}) {
    char text[32];
    const std::size_t size = std::strlen(begin);
    std::memcpy(text, begin, size);
    follow(text, size, tail_max);
  }
  for (std::uint64_t length = 0; length < 100'000; ++length) {
    char text[decimal_size_max + 2];
    char* const end = write_decimal(text, length);
    std::memcpy(end, "\r\n", 2);
    const auto size = static_cast<std::size_t>(end + 2 - text);
    RespValue value;
    claim((parse('$', text, size, value) == ParseResult::invalid) == (length > bulk_size_max));
    claim((parse('*', text, size, value) == ParseResult::invalid) == (length >= node_count));
  }
}
