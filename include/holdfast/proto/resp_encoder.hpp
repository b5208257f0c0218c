// SPDX-License-Identifier: MIT
//
// Requests as RESP2: arrays of bulk strings. encode_command() writes any command into a caller's buffer; CommandWriter
// writes one argument by argument, which is the hot path: what never changes in it is encoded by the compiler.
// No heap, no locale, no format run.   Thread-safe: nothing is shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "holdfast/limits.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/decimal.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

// One argument of a command: bytes, or an integer that is written in decimal.
class Argument {
 public:
  constexpr Argument() noexcept = default;
  constexpr Argument(ByteView bytes) noexcept : bytes_(bytes) {}
  template <std::size_t array_size>
  constexpr Argument(const char (&literal)[array_size]) noexcept : bytes_(literal) {}
  constexpr explicit Argument(std::int64_t integer) noexcept : integer_(integer), is_integer_(true) {}

  [[nodiscard]] constexpr bool is_integer() const noexcept { return is_integer_; }
  [[nodiscard]] constexpr ByteView bytes() const noexcept { return bytes_; }
  [[nodiscard]] constexpr std::int64_t integer() const noexcept { return integer_; }

 private:
  ByteView bytes_;
  std::int64_t integer_ = 0;
  bool is_integer_ = false;
};

// The arguments of one command, its name first. A view: what it views must outlive the call it is passed to.
class Arguments {
 public:
  constexpr Arguments(const Argument* first, std::size_t count) noexcept : first_(first), count_(count) {}
  template <std::size_t count>
  constexpr Arguments(const Argument (&arguments)[count]) noexcept : first_(arguments), count_(count) {}

  [[nodiscard]] constexpr std::size_t count() const noexcept { return count_; }
  [[nodiscard]] constexpr const Argument* begin() const noexcept { return first_; }
  [[nodiscard]] constexpr const Argument* end() const noexcept { return first_ + count_; }

 private:
  const Argument* first_;
  std::size_t count_;
};

// Bytes that `arguments` take as a request.
[[nodiscard]] std::size_t encoded_size(Arguments arguments) noexcept;

// Writes the request to the start of `out` and its size to `size`.
// Errors: buffer_too_small (out and size are untouched); invalid_argument for a command without a name.
[[nodiscard]] Status encode_command(MutableBytes out, Arguments arguments, std::size_t& size) noexcept;

// Bytes that literals, their NULs counted, take as arguments.
template <std::size_t... sizes>
inline constexpr std::size_t encoded_literals_size = ((decimal_size(std::uint64_t{sizes - 1}) + sizes + 4) + ...);

// Arguments that never change, encoded by the compiler: to be added to a command with one copy.
template <std::size_t encoded_size>
struct EncodedArguments {
  template <std::size_t... sizes>
  consteval EncodedArguments(const char (&... literals)[sizes]) noexcept : count(sizeof...(sizes)) {
    char* at = bytes;
    ((at = append(at, literals, sizes - 1)), ...);
  }

  std::uint8_t count;
  char bytes[encoded_size];

 private:
  static consteval char* append(char* at, const char* literal, std::size_t size) noexcept {
    *at++ = '$';
    at = write_decimal(at, std::uint64_t{size});
    *at++ = '\r';
    *at++ = '\n';
    for (std::size_t index = 0; index < size; ++index) *at++ = literal[index];
    *at++ = '\r';
    *at++ = '\n';
    return at;
  }
};
template <std::size_t... sizes>
EncodedArguments(const char (&... literals)[sizes]) -> EncodedArguments<encoded_literals_size<sizes...>>;

// One command written argument by argument, straight to where it is sent from.
class CommandWriter {
 public:
  // Begins a command of `count` arguments, its name among them, at the start of `out`. REQUIRES: count > 0.
  CommandWriter(MutableBytes out, std::size_t count) noexcept;
  // The same, of fewer than a hundred arguments that are counted as they come.
  explicit CommandWriter(MutableBytes out) noexcept
      : begin_(out.data), at_(out.data), end_(out.data + out.size), announced_(0) {
    if (out.size < counted_header_size) [[unlikely]] {
      overflow();
    } else {
      std::memcpy(at_, "*0\r\n", counted_header_size);
      at_ += counted_header_size;
    }
  }
  // REQUIRES: fewer than `count` arguments so far. What does not fit is not written, nor what follows it.
  CommandWriter& add(ByteView bytes) noexcept;
  CommandWriter& add(std::int64_t integer) noexcept;
  // So many whole arguments, as they stand on the wire.
  CommandWriter& add_encoded(ByteView bytes, std::size_t count) noexcept;
  // The same of so many bytes, which the caller writes to this place; nullptr where they do not fit.
  [[nodiscard]] char* claim(std::size_t size, std::size_t count) noexcept {
    count_ += static_cast<std::uint32_t>(count);
    if (room() < size) [[unlikely]] {
      overflow();
      return nullptr;
    }
    char* const place = at_;
    at_ += size;
    return place;
  }
  // Writes the whole command's size to `size`. REQUIRES: as many arguments as were announced.
  // Errors: buffer_too_small, invalid_argument for a command without a name; size is untouched, what stands in `out` means
  // nothing.
  [[nodiscard]] Status finish(std::size_t& size) noexcept {
    const bool plain = announced_ == 0 && count_ - 1 < 9 && begin_ != nullptr;
    if (!plain) return finish_other(size);
    begin_[1] = static_cast<char>('0' + count_);
    size = static_cast<std::size_t>(at_ - begin_);
    return Status::ok;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  static constexpr std::size_t counted_header_size = 4;  // '*', a digit, CR LF.

  [[nodiscard]] std::size_t room() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  // The header of an argument; where its bytes go, or nullptr where it does not fit.
  [[nodiscard]] char* begin_bulk(std::size_t size) noexcept;
  [[nodiscard]] Status finish_other(std::size_t& size) noexcept;
  // There is no room from here on: nothing else fits.
  void overflow() noexcept { begin_ = at_ = end_ = nullptr; }
  static char* end_line(char* at) noexcept {
    *at++ = '\r';
    *at++ = '\n';
    return at;
  }

  char* begin_;  // nullptr: it did not fit.
  char* at_;
  char* end_;
  std::uint32_t announced_;  // 0: counted as they come.
  std::uint32_t count_ = 0;
};

}  // namespace holdfast
