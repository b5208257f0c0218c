// SPDX-License-Identifier: MIT
//
// ByteView, BytesArgument and MutableBytes are a pointer and a size. They own nothing. std::string_view and std::span would
// do, but their checked members pull symbols of libstdc++ into programs that link with plain gcc.
//
// What each kind of text becomes:
//
//     a std::string, a std::string_view, a pointer with a size   all of its bytes, NUL bytes included
//     a const char* (argv, getenv())                             up to its NUL; nothing, where it is nullptr
//     a char array, a literal among them                         up to its first NUL, or all of it where there is none
//
// A type does not tell a literal from a buffer that is seen through a const reference, so nothing is guessed: what stands after
// the first NUL of an array is never taken. A literal with NUL bytes of its own is said with its size: ByteView("a\0b", 3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "holdfast/proto/language.hpp"

// Clang warns of a temporary that does not live as long as what is made of it. GCC knows no such word.
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define HOLDFAST_LIFETIMEBOUND [[clang::lifetimebound]]
#endif
#endif
#ifndef HOLDFAST_LIFETIMEBOUND
#define HOLDFAST_LIFETIMEBOUND
#endif

namespace holdfast {

// A pointer to a text that ends with a NUL, or nullptr itself.
template <class Pointer>
concept TextPointer =
    std::is_same_v<Pointer, const char*> || std::is_same_v<Pointer, char*> || std::is_same_v<Pointer, std::nullptr_t>;
template <class Array>
concept TextArray =
    std::is_same_v<Array, char[std::extent_v<Array>]> || std::is_same_v<Array, const char[std::extent_v<Array>]>;
// std::string and the like, without naming them here.
template <class Text>
concept TextOwner = requires(const Text& text) {
  { text.data() }
  noexcept;
  { text.size() }
  noexcept;
  text.c_str();
};

// A view to keep. It is not made of a temporary string by itself, since it would outlive it: `ByteView names[] = {a + b}` does
// not compile. ByteView(a + b) does, for use in one expression. Whoever calls c_str() of a temporary is not warned.
class ByteView {
 public:
  constexpr ByteView() noexcept = default;
  constexpr ByteView(const char* data, std::size_t size) noexcept : data_(data), size_(size) {}
  // Implicit, so that texts can be passed as they are.
  constexpr ByteView(std::string_view text) noexcept : data_(text.data()), size_(text.size()) {}
  template <TextPointer Pointer>
  constexpr ByteView(const Pointer& text) noexcept : ByteView(of_pointer(text)) {}
  template <class Array>
  requires TextArray<std::remove_reference_t<Array>>
  [[gnu::always_inline]] constexpr explicit(!std::is_lvalue_reference_v<Array>)
      ByteView(Array&& array HOLDFAST_LIFETIMEBOUND) noexcept
      : data_(array), size_(size_to_nul(array, std::extent_v<std::remove_reference_t<Array>>)) {}
  template <class Text>
  requires TextOwner<std::remove_reference_t<Text>>
  constexpr explicit(!std::is_lvalue_reference_v<Text>) ByteView(Text&& text HOLDFAST_LIFETIMEBOUND) noexcept
      : data_(text.data()), size_(text.size()) {}

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
  // With a temporary as well, which lives for as long as the comparison.
  template <TextOwner Text>
  friend constexpr bool operator==(ByteView left, const Text& right) noexcept {
    return left == ByteView(right);
  }

 private:
  // Inline, down from the constructor: of a literal only a number is left then.
  [[nodiscard, gnu::always_inline]] static constexpr std::size_t size_to_nul(const char* bytes,
                                                                             std::size_t limit) noexcept {
    if (std::is_constant_evaluated()) {
      std::size_t size = 0;
      while (size < limit && bytes[size] != '\0') ++size;
      return size;
    }
    const void* const nul = __builtin_memchr(bytes, '\0', limit);
    return nul == nullptr ? limit : static_cast<std::size_t>(static_cast<const char*>(nul) - bytes);
  }
  [[nodiscard]] static constexpr ByteView of_pointer(const char* text) noexcept {
    return text == nullptr ? ByteView() : ByteView(text, __builtin_strlen(text));
  }

  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

// Whatever a ByteView can be made of; and what an array has as elements then.
template <class Source>
concept BytesSource = std::is_constructible_v<ByteView, Source>;
template <class Element>
concept BytesElement = BytesSource<Element&>;

// The bytes that a call is given and does not keep: it copies them, or is done with them when it returns. So a temporary string
// will do. REQUIRES: used as a parameter only.
class BytesArgument {
 public:
  constexpr BytesArgument() noexcept = default;
  constexpr BytesArgument(const char* data, std::size_t size) noexcept : bytes_(data, size) {}
  template <BytesSource Source>
  constexpr BytesArgument(Source&& source HOLDFAST_LIFETIMEBOUND) noexcept : bytes_(static_cast<Source&&>(source)) {}

  [[nodiscard]] constexpr ByteView view() const noexcept { return bytes_; }
  constexpr operator ByteView() const noexcept { return bytes_; }

 private:
  ByteView bytes_;
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
