// SPDX-License-Identifier: MIT
#include "holdfast/lock_kind.hpp"

#include "holdfast/assert.hpp"

namespace holdfast {

CommandLine::CommandLine() noexcept = default;

CommandLine& CommandLine::add(ByteView bytes) noexcept {
  HOLDFAST_ASSERT(count_ < arguments_max);
  arguments_[count_++] = Argument(bytes);
  return *this;
}

CommandLine& CommandLine::add(std::int64_t integer) noexcept {
  HOLDFAST_ASSERT(count_ < arguments_max);
  arguments_[count_++] = Argument(integer);
  return *this;
}

CommandLine& CommandLine::add_token(const Token& token) noexcept {
  token_index_ = count_;
  return add(token.bytes());
}

CommandLine& CommandLine::add_derived(ByteView prefix, Key key) noexcept {
  HOLDFAST_ASSERT(derived_.bytes().empty());
  derived_ = DerivedName(prefix, key);
  return add(derived_.bytes());
}

CommandLine& CommandLine::add_script(const Script& script, RequestForm form) noexcept {
  return form == RequestForm::by_text ? add("EVAL").add(script.text) : add("EVALSHA").add(script.sha.bytes());
}

void ask_pttl(CommandLine& line, Key key) noexcept { line.add("PTTL").add(key.bytes()); }

}  // namespace holdfast
