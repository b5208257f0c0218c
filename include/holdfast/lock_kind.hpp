// SPDX-License-Identifier: MIT
//
// A lock kind is a table: what to send for each operation, and what each reply means. One file in src/kinds fills one.
#pragma once

#include <cstdint>

#include "holdfast/instant.hpp"
#include "holdfast/key.hpp"
#include "holdfast/resp_encoder.hpp"
#include "holdfast/resp_value.hpp"
#include "holdfast/session.hpp"

namespace holdfast {

// In which shape a request goes out.
enum class RequestForm : std::uint8_t {
  by_sha,   // EVALSHA, or the plain command where the kind has one.
  by_text,  // EVAL: cannot meet a NOSCRIPT.
  delex,    // The server's own compare-and-delete: Redis from 8.4,
  delifeq,  // Valkey from 9.0.
};

// What a reply means for the hold. Shapes that a kind does not list are `unexpected`, never a success.
enum class Verdict : std::uint8_t {
  granted,     // Acquired, renewed, released or taken back: what was asked is so.
  busy,        // Somebody else holds the lock.
  not_ours,    // The key is not ours, or not there.
  unexpected,  // Default-deny.
};

// One command: its arguments, and which of them is the token, so that it can be patched in later.
struct CommandLine {
  Argument arguments[arguments_max];
  std::size_t count = 0;
  std::size_t token_index = 0;

  template <std::size_t size>
  void assign(const Argument (&list)[size], std::size_t token_at) noexcept {
    static_assert(size <= arguments_max, "a command has arguments_max arguments at most");
    for (std::size_t index = 0; index < size; ++index) arguments[index] = list[index];
    count = size;
    token_index = token_at;
  }
  [[nodiscard]] Arguments view() const noexcept { return {arguments, count}; }
};

struct LockKind {
  const char* name;
  // Fills in the command for `operation`. `lease` is whole milliseconds and matters where a lease is set.
  void (*fill)(CommandLine& line, Operation operation, RequestForm form, Key key, const Token& token,
               std::chrono::milliseconds lease) noexcept;
  // Decodes a reply that is no error.
  Verdict (*decode)(Operation operation, const RespValue& reply) noexcept;
  // Takes a hold back; see Compensation.
  Compensation::Encode encode_compensation;
  bool native_release;  // May release by delex and delifeq.
};

}  // namespace holdfast
