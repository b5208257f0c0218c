// SPDX-License-Identifier: MIT
//
// What URLs of every form are read by. Those that are used once are static, so that the compiler puts them where they are used;
// so are two that cost their callers more otherwise. Of the others a program that reads URLs of two forms has one.
#pragma once

#include <cstdint>
#include <cstring>

#include "holdfast/core/client_config.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/decimal.hpp"

namespace holdfast {

[[gnu::always_inline]] inline int hex_value(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const int letter = (digit | 0x20) - 'a';
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

// Decodes %XX into `out`. Returns the size of the text that comes out, at most that of `text`; SIZE_MAX for a malformed
// escape or a NUL byte.
inline std::size_t decode(ByteView text, char* out) noexcept {
  std::size_t size = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    int byte = static_cast<unsigned char>(text[at]);
    if (byte == '%') {
      if (at + 2 >= text.size()) return SIZE_MAX;
      const int high = hex_value(text[at + 1]);
      const int low = hex_value(text[at + 2]);
      if (high < 0 || low < 0) return SIZE_MAX;
      byte = high * 16 + low;
      at += 2;
    }
    if (byte == '\0') return SIZE_MAX;
    out[size++] = static_cast<char>(byte);
  }
  return size;
}

template <std::size_t size_max>
inline bool decode(ByteView text, BoundedText<size_max>& out) noexcept {
  char decoded[url_size_max];
  const std::size_t size = decode(text, decoded);
  if (size > size_max) return false;
  out.assign({decoded, size});
  return true;
}

inline bool contains(ByteView text, char wanted) noexcept {
  return !text.empty() && std::memchr(text.data(), wanted, text.size()) != nullptr;
}

// Splits at the first `separator`: what is before it stays in `text`, what is behind it is returned. Without one, `text`
// stays whole, and what is returned has no data().
static inline ByteView split(ByteView& text, char separator) noexcept {
  for (const char& byte : text) {
    if (byte != separator) continue;
    const ByteView rest = {&byte + 1, static_cast<std::size_t>(text.end() - &byte - 1)};
    text = {text.data(), static_cast<std::size_t>(&byte - text.data())};
    return rest;
  }
  return {};
}

// Takes the prefix off `text`, if it is there.
static inline bool skip(ByteView& text, ByteView prefix) noexcept {
  if (!text.begins_with(prefix)) return false;
  text = text.slice(prefix.size());
  return true;
}

// "[user][:password]" in front of the '@'. Returns what is wrong, or nullptr.
static inline const char* read_credentials(ByteView user, ClientConfig& config) noexcept {
  const ByteView password = split(user, ':');
  if (!decode(user, config.user) || !decode(password, config.password))
    return "the user or the password is too long or has a malformed percent escape";
  if (!config.user.empty() && config.password.empty()) return "a user without a password cannot log in";
  return nullptr;
}

static inline const char* read_database(ByteView text, ClientConfig& config) noexcept {
  std::uint64_t database = 0;
  if (!read_decimal(text, static_cast<std::uint64_t>(database_max), database))
    return "the database is no number from 0 to 65535";
  config.database = static_cast<int>(database);
  return nullptr;
}

// User and password end at the last '@' of what may hold them: what is before it may hold others. Returns what is wrong, or
// nullptr; `text` is what follows.
static inline const char* take_credentials(ByteView& text, ClientConfig& config) noexcept {
  for (std::size_t at = text.size(); at > 0; --at) {
    if (text[at - 1] != '@') continue;
    const ByteView credentials = {text.data(), at - 1};
    text = text.slice(at);
    return read_credentials(credentials, config);
  }
  return nullptr;
}

}  // namespace holdfast
