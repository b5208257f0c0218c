// SPDX-License-Identifier: MIT
//
// A lock kind is a table: what to send for each operation, and what each reply means. One file in src/kinds fills one.
#pragma once

#include <cstdint>

#include "holdfast/instant.hpp"
#include "holdfast/key.hpp"
#include "holdfast/resp_encoder.hpp"
#include "holdfast/resp_value.hpp"
#include "holdfast/script.hpp"
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
class CommandLine {
 public:
  CommandLine() noexcept;  // Out of line, as all here: this is not the hot path, and it is used often.
  // REQUIRES: fewer than arguments_max arguments so far.
  CommandLine& add(ByteView bytes) noexcept;
  CommandLine& add(std::int64_t integer) noexcept;
  CommandLine& add_token(const Token& token) noexcept;
  // EVALSHA or, by text, EVAL of a script.
  CommandLine& add_script(const Script& script, RequestForm form) noexcept;

  void clear() noexcept { count_ = 0; }
  [[nodiscard]] Arguments view() const noexcept { return {arguments_, count_}; }
  [[nodiscard]] std::size_t token_index() const noexcept { return token_index_; }

 private:
  Argument arguments_[arguments_max];
  std::size_t count_ = 0;
  std::size_t token_index_ = 0;
};

struct LockKind {
  const char* name;
  // Fills in the command for `operation`: acquire, renew or release. `lease` is whole milliseconds and matters where a lease is set.
  void (*fill)(CommandLine& line, Operation operation, RequestForm form, Key key, const Token& token,
               std::chrono::milliseconds lease) noexcept;
  // Decodes a reply that is no error.
  Verdict (*decode)(Operation operation, const RespValue& reply) noexcept;
  // Takes a hold back; see Compensation.
  Compensation::Encode encode_compensation;
  bool native_release;  // May release by delex and delifeq.
};

}  // namespace holdfast
