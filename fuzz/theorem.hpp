// SPDX-License-Identifier: MIT
//
// HOLDFAST_THEOREM is what a fuzz target proves: where it does not hold, the process ends, in the fuzzer and in the
// replayer alike. FuzzInput hands out the fuzzer's bytes one decision after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace holdfast::testing {

[[noreturn]] inline void refute(const char* condition, const char* file, int line, const std::string& text) {
  std::fprintf(stderr, "%s:%d: refuted: %s\n%s\n", file, line, condition, text.c_str());
  std::abort();
}

// For inputs that are a script of letters: the next byte of it, NUL behind the last.
inline char next_byte(std::string_view& rest) {
  if (rest.empty()) return '\0';
  const char byte = rest.front();
  rest.remove_prefix(1);
  return byte;
}
// A byte that is one of the letters is that; every other means one of them all the same.
template <std::size_t size>
char letter_of(char byte, const char (&letters)[size]) {
  if (byte != '\0' && std::string_view(letters, size - 1).find(byte) != std::string_view::npos) return byte;
  return letters[static_cast<std::uint8_t>(byte) % (size - 1)];
}

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  // The next byte; 0 behind the last.
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  // In [least, most].
  std::size_t number(std::size_t least, std::size_t most) {
    const std::size_t high = byte();
    return least + (high << 8 | byte()) % (most - least + 1);
  }
  std::string_view bytes(std::size_t count) {
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }
  std::string_view rest() { return bytes(rest_.size()); }

 private:
  std::string_view rest_;
};

}  // namespace holdfast::testing

#define HOLDFAST_THEOREM(condition, text)                                                \
  do {                                                                                   \
    if (!(condition)) ::holdfast::testing::refute(#condition, __FILE__, __LINE__, text); \
  } while (false)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
