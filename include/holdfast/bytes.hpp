// SPDX-License-Identifier: MIT
//
// ByteView and MutableBytes are a pointer and a size. They own nothing. std::string_view and std::span would do,
// but their checked members pull symbols of libstdc++ into programs that link with plain gcc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace holdfast {

class ByteView {
 public:
  constexpr ByteView() noexcept = default;
  constexpr ByteView(const char* data, std::size_t size) noexcept : data_(data), size_(size) {}
  // Implicit, so that literals and strings can be passed as they are. A literal may hold NUL bytes.
  template <std::size_t array_size>
  constexpr ByteView(const char (&literal)[array_size]) noexcept : data_(literal), size_(array_size - 1) {}
  constexpr ByteView(std::string_view text) noexcept : data_(text.data()), size_(text.size()) {}
  // From std::string and the like, without naming them here.
  template <class Text>
  requires requires(const Text& text) {
    { text.data() }
    noexcept;
    { text.size() }
    noexcept;
    text.c_str();
  }
  constexpr ByteView(const Text& text) noexcept : data_(text.data()), size_(text.size()) {}

  [[nodiscard]] constexpr const char* data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] constexpr const char* begin() const noexcept { return data_; }
  [[nodiscard]] constexpr const char* end() const noexcept { return data_ + size_; }
  // REQUIRES: index < size().
  [[nodiscard]] constexpr char operator[](std::size_t index) const noexcept { return data_[index]; }

  // The bytes from `offset` on, at most `count` of them; empty where `offset` is past the end.
  [[nodiscard]] constexpr ByteView slice(std::size_t offset, std::size_t count = SIZE_MAX) const noexcept {
    if (offset >= size_) return {};
    const std::size_t rest = size_ - offset;
    return {data_ + offset, count < rest ? count : rest};
  }
  [[nodiscard]] constexpr bool begins_with(ByteView prefix) const noexcept {
    return prefix.size_ <= size_ && ByteView(data_, prefix.size_) == prefix;
  }
  // Offset of the first occurrence of `needle`, or SIZE_MAX. An empty needle is found at 0.
  [[nodiscard]] constexpr std::size_t find(ByteView needle) const noexcept {
    for (std::size_t at = 0; at + needle.size_ <= size_; ++at)
      if (ByteView(data_ + at, needle.size_) == needle) return at;
    return SIZE_MAX;
  }
  [[nodiscard]] constexpr std::string_view string_view() const noexcept { return {data_, size_}; }

  friend constexpr bool operator==(ByteView left, ByteView right) noexcept {
    // The builtin, unlike memcmp(), is known to the compiler at compile time, too.
    return left.size_ == right.size_ && (left.size_ == 0 || __builtin_memcmp(left.data_, right.data_, left.size_) == 0);
  }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

// Below zero, zero or above, as memcmp(); of two that begin alike the shorter one comes first.
[[nodiscard]] inline int compare(ByteView left, ByteView right) noexcept {
  const bool shorter = left.size() < right.size();
  const std::size_t common = shorter ? left.size() : right.size();
  const int begin = common == 0 ? 0 : std::memcmp(left.data(), right.data(), common);
  if (begin != 0 || left.size() == right.size()) return begin;
  return shorter ? -1 : 1;
}

// A writable buffer that somebody else owns.
struct MutableBytes {
  char* data = nullptr;
  std::size_t size = 0;
};

}  // namespace holdfast
