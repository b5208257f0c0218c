// SPDX-License-Identifier: MIT
//
// Requests that every acquisition and release sends: their arguments are written as one piece, with one look at the room.
// Where size counts more, -Os, each argument is added by itself. The bytes are the same.
#pragma once

#include <cstring>

#include "holdfast/core/lock_kind.hpp"
#include "holdfast/proto/decimal.hpp"

namespace holdfast {

#ifdef __OPTIMIZE_SIZE__
inline constexpr bool writes_one_piece = false;
#else
inline constexpr bool writes_one_piece = true;
#endif

// Arguments that never change, as EncodedArguments: a script by its SHA-1, with the number of its keys.
struct EncodedScriptHead {
  static constexpr std::uint8_t count = 3;
  char bytes[13 + 5 + sha1_hex_size + 2 + 7];

  consteval EncodedScriptHead(const Script& script, const char (&key_count)[2]) noexcept : bytes() {
    char* at = bytes;
    for (const char byte : ByteView("$7\r\nEVALSHA\r\n$40\r\n")) *at++ = byte;
    for (const char digit : script.sha.digits) *at++ = digit;
    for (const char byte : ByteView("\r\n$1\r\n")) *at++ = byte;
    *at++ = key_count[0];
    *at++ = '\r';
    *at++ = '\n';
  }
};

// One bulk string: how many bytes it takes, and the place behind it.
namespace bulk {

inline std::size_t header_size(std::size_t size) noexcept {
  if (size >= 100) [[unlikely]]
    return 3 + decimal_size(std::uint64_t{size});
  return size < 10 ? 4 : 5;
}

// Headers of fewer than a hundred bytes, ready to be copied.
struct HeaderTable {
  static constexpr std::size_t copied = 8;
  static constexpr std::size_t first = 4;  // From here on what is copied too much is written over.
  char headers[100][copied];

  consteval HeaderTable() noexcept : headers() {
    for (std::uint64_t size = 0; size < 100; ++size) {
      headers[size][0] = '$';
      char* const at = write_decimal(headers[size] + 1, size);
      at[0] = '\r';
      at[1] = '\n';
    }
  }
};
inline constexpr HeaderTable header_table;

[[gnu::always_inline]] inline char* end_line(char* at) noexcept {
  at[0] = '\r';
  at[1] = '\n';
  return at + 2;
}

[[gnu::always_inline]] inline char* write_header(char* at, std::size_t size) noexcept {
  if (size - HeaderTable::first < 100 - HeaderTable::first) [[likely]] {
    std::memcpy(at, header_table.headers[size], HeaderTable::copied);
    return at + (size < 10 ? 4 : 5);
  }
  *at = '$';
  return end_line(write_decimal(at + 1, std::uint64_t{size}));
}

}  // namespace bulk

// A number, and how many digits it has.
struct DecimalPart {
  explicit DecimalPart(std::uint32_t of) noexcept
      : number(of),
        digits(of < 10'000 || of >= 1'000'000 ? decimal_size(std::uint64_t{of})
               : of < 100'000                 ? 5
                                              : 6) {}
  std::uint32_t number;
  std::size_t digits;
};

// A part of a request: literals, bytes, a token, a number.
template <std::size_t encoded_size>
[[gnu::always_inline]] inline std::size_t part_size(const EncodedArguments<encoded_size>&) noexcept {
  return encoded_size;
}
inline std::size_t part_size(const EncodedScriptHead& head) noexcept { return sizeof head.bytes; }
inline std::size_t part_size(ByteView bytes) noexcept { return bulk::header_size(bytes.size()) + bytes.size() + 2; }
inline std::size_t part_size(const Token& token) noexcept { return part_size(token.bytes()); }
inline std::size_t part_size(const DecimalPart& part) noexcept {
  return bulk::header_size(part.digits) + part.digits + 2;
}

template <std::size_t encoded_size>
[[gnu::always_inline]] inline char* write_part(char* at, const EncodedArguments<encoded_size>& literals) noexcept {
  std::memcpy(at, literals.bytes, encoded_size);
  return at + encoded_size;
}
[[gnu::always_inline]] inline char* write_part(char* at, const EncodedScriptHead& head) noexcept {
  std::memcpy(at, head.bytes, sizeof head.bytes);
  return at + sizeof head.bytes;
}
[[gnu::always_inline]] inline char* write_part(char* at, ByteView bytes) noexcept {
  at = bulk::write_header(at, bytes.size());
  std::memcpy(at, bytes.data(), bytes.size());
  return bulk::end_line(at + bytes.size());
}
[[gnu::always_inline]] inline char* write_part(char* at, const Token& token) noexcept {
  const ByteView bytes = token.bytes();
  if (bytes.size() != token_text_size) [[unlikely]]
    return write_part(at, bytes);
  at = bulk::write_header(at, token_text_size);  // The usual size: known, so all of it is a few moves.
  std::memcpy(at, bytes.data(), token_text_size);
  return bulk::end_line(at + token_text_size);
}
// Two digits at a time.
[[gnu::always_inline]] inline char* write_part(char* at, const DecimalPart& part) noexcept {
  char* const behind = bulk::write_header(at, part.digits) + part.digits;
  std::uint32_t rest = part.number;
  at = behind;
  for (; rest >= 10; rest /= 100) {
    const std::uint32_t two = rest % 100;
    *--at = static_cast<char>('0' + two % 10);
    *--at = static_cast<char>('0' + two / 10);
  }
  if (part.digits % 2 != 0) *--at = static_cast<char>('0' + rest);
  return bulk::end_line(behind);
}

template <class Literals>
[[gnu::always_inline]] inline std::size_t part_count(const Literals& literals) noexcept {
  if constexpr (requires { literals.count; })
    return literals.count;
  else
    return 1;
}

inline void add_part(CommandLine& line, const EncodedScriptHead& head) noexcept {
  if (char* const at = line.claim(sizeof head.bytes, EncodedScriptHead::count); at != nullptr)
    (void)write_part(at, head);
}
inline void add_part(CommandLine& line, const Token& token) noexcept { line.add_token(token); }
inline void add_part(CommandLine& line, const DecimalPart& part) noexcept {
  line.add(static_cast<std::int64_t>(part.number));
}
template <class Part>
inline void add_part(CommandLine& line, const Part& part) noexcept {
  line.add(part);
}

// What does not fit is not written, and finish() says so.
template <class... Parts>
[[gnu::always_inline]] inline void write_parts(CommandLine& line, const Parts&... parts) noexcept {
  if constexpr (writes_one_piece) {
    char* at = line.claim((part_size(parts) + ...), (part_count(parts) + ...));
    if (at != nullptr) [[likely]]
      ((at = write_part(at, parts)), ...);
  } else {
    (add_part(line, parts), ...);
  }
}

}  // namespace holdfast
