// SPDX-License-Identifier: MIT
//
// Requests as RESP2: arrays of bulk strings. encode_command() writes any command into a caller's buffer; CommandWriter
// writes one argument by argument; RequestTemplate keeps one prepared, so that the hot path is a copy with the token
// patched in.
// No heap, no locale, no format run.   Thread-safe: nothing is shared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/assert.hpp"
#include "holdfast/bytes.hpp"
#include "holdfast/limits.hpp"
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

// One command written argument by argument, where a table of all its arguments would be too large for a stack.
class CommandWriter {
 public:
  // Begins a command of `count` arguments, its name among them, at the start of `out`. REQUIRES: count > 0.
  CommandWriter(MutableBytes out, std::size_t count) noexcept;
  // REQUIRES: fewer than `count` arguments so far. What does not fit is not written, nor what follows it.
  CommandWriter& add(ByteView bytes) noexcept;
  CommandWriter& add(std::int64_t integer) noexcept;
  // Writes the whole command's size to `size`. REQUIRES: as many arguments as were announced.
  // Errors: buffer_too_small; size is untouched, what stands in `out` means nothing.
  [[nodiscard]] Status finish(std::size_t& size) const noexcept;

 private:
  CommandWriter& append(const Argument& argument) noexcept;

  MutableBytes out_;
  std::size_t size_ = 0;
  std::size_t missing_;  // Arguments to come.
  bool fits_ = true;
};

// A prepared request of which one argument, of a fixed size, changes from use to use.
class RequestTemplate {
 public:
  // Prepares the request; argument `patched` is the one that patch() replaces later.
  // Errors: as encode_command(), with template_size_max for a buffer; the template is untouched then.
  // REQUIRES: patched < arguments.count(), and that argument is bytes.
  [[nodiscard]] Status prepare(Arguments arguments, std::size_t patched) noexcept;
  // Replaces the patched argument's bytes.
  // REQUIRES: prepared, and as many bytes as it was prepared with.
  void patch(ByteView bytes) noexcept {
    HOLDFAST_ASSERT(bytes.size() == patched_size_ && size_ != 0);
    // A size known at compile time is two moves; the usual token has it.
    if (bytes.size() == token_text_size)
      std::memcpy(bytes_ + patched_offset_, bytes.data(), token_text_size);
    else if (!bytes.empty())
      std::memcpy(bytes_ + patched_offset_, bytes.data(), bytes.size());
  }
  // Writes the request, with `bytes` in the patched argument's place, to the start of `out` and its size to `size`; the
  // template stays as it is. Two copies: patch() and a copy of bytes() would cost three times as much, since that copy
  // waits for what was just stored.
  // Errors: buffer_too_small (out and size are untouched). REQUIRES: as patch().
  [[nodiscard]] Status write(MutableBytes out, ByteView bytes, std::size_t& size) const noexcept {
    HOLDFAST_ASSERT(bytes.size() == patched_size_ && size_ != 0);
    if (size_ > out.size) return Status::buffer_too_small;
    std::memcpy(out.data, bytes_, size_);
    if (bytes.size() == token_text_size)
      std::memcpy(out.data + patched_offset_, bytes.data(), token_text_size);
    else if (!bytes.empty())
      std::memcpy(out.data + patched_offset_, bytes.data(), bytes.size());
    size = size_;
    return Status::ok;
  }
  [[nodiscard]] bool prepared() const noexcept { return size_ != 0; }
  // The whole request; valid until the template changes.
  [[nodiscard]] ByteView bytes() const noexcept { return {bytes_, size_}; }
  [[nodiscard]] ByteView patched() const noexcept { return {bytes_ + patched_offset_, patched_size_}; }
  void clear() noexcept {
    size_ = 0;
    patched_size_ = 0;
  }

 private:
  std::uint16_t size_ = 0;
  std::uint16_t patched_offset_ = 0;
  std::uint16_t patched_size_ = 0;
  char bytes_[template_size_max];
};

static_assert(sizeof(RequestTemplate) <= 672, "promised: a prepared request");

}  // namespace holdfast
