// SPDX-License-Identifier: MIT
//
// The codec alone, without the client: reads one reply out of memory.
#include <holdfast/proto/resp_parser.hpp>

int main() {
  static holdfast::RespParserStorage storage;
  holdfast::RespParser parser({storage.buffer, sizeof storage.buffer}, storage.nodes, holdfast::elements_max);
  holdfast::RespValue value;
  parser.feed(":42\r\n");
  const bool parsed = parser.poll_value(value) == holdfast::ParseResult::value && value.is_integer(42);
  return parsed ? 0 : 1;
}
