// SPDX-License-Identifier: MIT
#include "holdfast/core/mutex_kind.hpp"

#include "kind_replies.hpp"
#include "kind_requests.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

namespace mutex {

constexpr EncodedArguments set("SET");
constexpr EncodedArguments if_absent_for("NX", "PX");
constexpr EncodedScriptHead release_head(scripts::mutex_release, "1");

CommandLine& fill_script(CommandLine& line, const Script& script, RequestForm form, const HoldView& hold) noexcept {
  return line.add_script(script, form).add(one_key).add(hold.key.bytes()).add_token(*hold.token);
}

void fill_release(CommandLine& line, RequestForm form, const HoldView& hold) noexcept {
  switch (form) {
    case RequestForm::by_sha:
      if constexpr (!writes_one_piece) break;
      write_parts(line, release_head, hold.key.bytes(), *hold.token);
      return;
    case RequestForm::by_text: break;
    case RequestForm::delex: line.add("DELEX").add(hold.key.bytes()).add("IFEQ").add_token(*hold.token); return;
    case RequestForm::delifeq: line.add("DELIFEQ").add(hold.key.bytes()).add_token(*hold.token); return;
  }
  fill_script(line, scripts::mutex_release, form, hold);
}

void fill(CommandLine& line, const LockKind&, Operation operation, RequestForm form, const HoldView& hold) noexcept {
  switch (operation) {
    case Operation::acquire:
      write_parts(line, set, hold.key.bytes(), *hold.token, if_absent_for,
                  DecimalPart(static_cast<std::uint32_t>(hold.lease.count())));
      return;
    case Operation::renew: fill_script(line, scripts::mutex_renew, form, hold).add(hold.lease.count()); return;
    case Operation::release: fill_release(line, form, hold); return;
    case Operation::step:        // It is not reentrant.
    case Operation::compensate:  // A release by text.
    case Operation::query: return;
  }
}

Verdict decode(const LockKind&, Operation operation, const RespValue& reply, LockFacts&) noexcept {
  switch (operation) {
    case Operation::acquire:
      if (reply.is_simple("OK")) return Verdict::granted;
      return reply.is_null() ? Verdict::busy : Verdict::unexpected;
    case Operation::renew:
    case Operation::release: return decode_yes_or_no(reply);
    case Operation::step:
    case Operation::compensate:
    case Operation::query: break;
  }
  return Verdict::unexpected;
}

// With the text of a release or a renewal; the rest are EVAL, the number of keys, the lease, and what stands around each.
constexpr std::size_t request_size =
    scripts::mutex_renew.text.size() + key_size_max + token_size_max + 7 * bulk_overhead_max;
static_assert(scripts::mutex_release.text.size() <= scripts::mutex_renew.text.size());
static_assert(request_size <= small_transmit_size, "the smallest buffers must serve a Mutex");

static_assert(text_fits<scripts::mutex_release.text.size()> && text_fits<scripts::mutex_renew.text.size()> &&
              text_fits<scripts::mutex_renew_batch.text.size()>);

}  // namespace mutex

}  // namespace

constinit const LockKind mutex_kind = {.name = "mutex",
                                       .fill = mutex::fill,
                                       .decode = mutex::decode,
                                       .renew_batch = &scripts::mutex_renew_batch,
                                       .announcement = nullptr,
                                       .token = TokenSource::random,
                                       .native_release = true,
                                       .reentrant = false,
                                       .fenced = false,
                                       .tells_remaining = false,
                                       .request_size = mutex::request_size};

}  // namespace holdfast
