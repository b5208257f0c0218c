// SPDX-License-Identifier: MIT
#include "holdfast/mutex_kind.hpp"

#include "scripts.hpp"

namespace holdfast {

namespace {

CommandLine& fill_script(CommandLine& line, const Script& script, RequestForm form, Key key,
                         const Token& token) noexcept {
  return line.add_script(script, form).add("1").add(key.bytes()).add_token(token);
}

void fill_release(CommandLine& line, RequestForm form, Key key, const Token& token) noexcept {
  switch (form) {
    case RequestForm::by_sha:
    case RequestForm::by_text: fill_script(line, scripts::mutex_release, form, key, token); return;
    case RequestForm::delex: line.add("DELEX").add(key.bytes()).add("IFEQ").add_token(token); return;
    case RequestForm::delifeq: line.add("DELIFEQ").add(key.bytes()).add_token(token); return;
  }
}

void fill(CommandLine& line, Operation operation, RequestForm form, Key key, const Token& token,
          std::chrono::milliseconds lease) noexcept {
  switch (operation) {
    case Operation::acquire:
      line.add("SET").add(key.bytes()).add_token(token).add("NX").add("PX").add(lease.count());
      return;
    case Operation::renew: fill_script(line, scripts::mutex_renew, form, key, token).add(lease.count()); return;
    case Operation::release: fill_release(line, form, key, token); return;
    case Operation::compensate:
    case Operation::query: return;  // encode_compensation() below; the client's own.
  }
}

Verdict decode(Operation operation, const RespValue& reply) noexcept {
  switch (operation) {
    case Operation::acquire:
      if (reply.is_simple("OK")) return Verdict::granted;
      return reply.is_null() ? Verdict::busy : Verdict::unexpected;
    case Operation::renew:
    case Operation::release:
      if (reply.is_integer(1)) return Verdict::granted;
      return reply.is_integer(0) ? Verdict::not_ours : Verdict::unexpected;
    case Operation::compensate:
      return reply.is_integer(1) || reply.is_integer(0) ? Verdict::granted : Verdict::unexpected;
    case Operation::query: return Verdict::unexpected;
  }
  return Verdict::unexpected;
}

Status encode_compensation(MutableBytes out, Key key, const Token& token, std::size_t& size) noexcept {
  CommandLine line;
  fill_release(line, RequestForm::by_text, key, token);
  return encode_command(out, line.view(), size);
}

// A whole EVAL of a compensation must find room in an empty send buffer, or it could never go out.
static_assert(scripts::mutex_release.text.size() + key_size_max + token_size_max + 128 < transmit_size_max / 2);

}  // namespace

constinit const LockKind mutex_kind = {
    .name = "mutex",
    .fill = fill,
    .decode = decode,
    .encode_compensation = encode_compensation,
    .native_release = true,
};

}  // namespace holdfast
