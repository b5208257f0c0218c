// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "holdfast/proto/resp_parser.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

namespace holdfast::testing {

// A reply as it comes over the wire. The value lives as long as this.
struct Heard {
  RespParserStorage storage;
  RespParser parser{{storage.buffer, sizeof storage.buffer}, storage.nodes, elements_max};
  RespValue value;

  explicit Heard(const std::string& bytes) {
    TEST_ASSERT_EQUAL(bytes.size(), parser.feed(ByteView(bytes)));
    TEST_ASSERT_EQUAL(ParseResult::value, parser.poll_value(value));
  }
};

}  // namespace holdfast::testing
