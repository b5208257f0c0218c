// SPDX-License-Identifier: MIT
//
// A CommandLine with a buffer of its own, and what was written, word by word.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/lock_kind.hpp"
#include "unity_style.hpp"

namespace holdfast::testing {

using Words = std::vector<std::string>;

class WrittenLine {
 public:
  operator CommandLine&() { return line_; }
  [[nodiscard]] Status finish() { return line_.finish(size_); }
  [[nodiscard]] std::size_t size() const { return size_; }
  // None where nothing was added. It must be an array of bulk strings, and nothing behind it.
  [[nodiscard]] Words words() {
    Words words;
    const Status status = finish();
    if (status == Status::invalid_argument) return words;
    TEST_ASSERT_EQUAL(Status::ok, status);
    const std::string bytes(space_, size_);
    std::size_t at = 0;
    const auto header = [&](char type) {
      TEST_ASSERT_EQUAL(type, bytes[at++]);
      const std::size_t end = bytes.find("\r\n", at);
      const std::size_t number = std::stoul(bytes.substr(at, end - at));
      at = end + 2;
      return number;
    };
    for (std::size_t count = header('*'); count != 0; --count) {
      const std::size_t length = header('$');
      words.push_back(bytes.substr(at, length));
      TEST_ASSERT_EQUAL("\r\n", bytes.substr(at + length, 2));
      at += length + 2;
    }
    TEST_ASSERT_EQUAL(size_, at);
    return words;
  }

 private:
  char space_[4096];
  std::size_t size_ = 0;
  CommandLine line_{{space_, sizeof space_}};
};

}  // namespace holdfast::testing
