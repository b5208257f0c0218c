// SPDX-License-Identifier: MIT
#include "holdfast/mutex_kind.hpp"

#include "scripts.hpp"

namespace holdfast {

namespace {

void fill_release(CommandLine& line, RequestForm form, Key key, const Token& token) noexcept {
  switch (form) {
    case RequestForm::by_sha:
      line.assign({"EVALSHA", scripts::mutex_release.sha.bytes(), "1", key.bytes(), token.bytes()}, 4);
      return;
    case RequestForm::by_text:
      line.assign({"EVAL", scripts::mutex_release.text, "1", key.bytes(), token.bytes()}, 4);
      return;
    case RequestForm::delex: line.assign({"DELEX", key.bytes(), "IFEQ", token.bytes()}, 3); return;
    case RequestForm::delifeq: line.assign({"DELIFEQ", key.bytes(), token.bytes()}, 2); return;
  }
}

void fill(CommandLine& line, Operation operation, RequestForm form, Key key, const Token& token,
          std::chrono::milliseconds lease) noexcept {
  const Argument lease_argument(static_cast<std::int64_t>(lease.count()));
  switch (operation) {
    case Operation::acquire:
      line.assign({"SET", key.bytes(), token.bytes(), "NX", "PX", lease_argument}, 2);
      return;
    case Operation::renew:
      if (form == RequestForm::by_text)
        line.assign({"EVAL", scripts::mutex_renew.text, "1", key.bytes(), token.bytes(), lease_argument}, 4);
      else
        line.assign({"EVALSHA", scripts::mutex_renew.sha.bytes(), "1", key.bytes(), token.bytes(), lease_argument}, 4);
      return;
    case Operation::release: fill_release(line, form, key, token); return;
    case Operation::compensate: fill_release(line, RequestForm::by_text, key, token); return;
    case Operation::query: line.assign({"PTTL", key.bytes()}, 1); return;
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
