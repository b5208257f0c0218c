// SPDX-License-Identifier: MIT
#include "holdfast/core/lock_kind.hpp"

#include "holdfast/proto/assert.hpp"

namespace holdfast {

CommandLine& CommandLine::add_derived(ByteView prefix, Key key) noexcept {
  return add(DerivedName(prefix, key).bytes());
}

CommandLine& CommandLine::add_script(const Script& script, RequestForm form) noexcept {
  static constexpr EncodedArguments eval("EVAL");
  static constexpr EncodedArguments evalsha("EVALSHA");
  return form == RequestForm::by_text ? add(eval).add(script.text) : add(evalsha).add(script.sha.bytes());
}

void ask_pttl(CommandLine& line, Key key) noexcept { line.add("PTTL").add(key.bytes()); }

}  // namespace holdfast
