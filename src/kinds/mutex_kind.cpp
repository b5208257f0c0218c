// SPDX-License-Identifier: MIT
#include "holdfast/mutex_kind.hpp"

#include "kind_replies.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

CommandLine& fill_script(CommandLine& line, const Script& script, RequestForm form, const HoldView& hold) noexcept {
  return line.add_script(script, form).add("1").add(hold.key.bytes()).add_token(*hold.token);
}

void fill_acquire(CommandLine& line, const LockKind& kind, RequestForm form, const HoldView& hold) noexcept {
  if (kind.fenced) {
    line.add_script(scripts::mutex_acquire_fenced, form).add("2").add(hold.key.bytes());
    line.add_derived(fence_prefix, hold.key).add_token(*hold.token).add(hold.lease.count());
    return;
  }
  line.add("SET").add(hold.key.bytes()).add_token(*hold.token).add("NX").add("PX").add(hold.lease.count());
}

void fill_release(CommandLine& line, const LockKind& kind, RequestForm form, const HoldView& hold) noexcept {
  switch (form) {
    case RequestForm::by_sha:
    case RequestForm::by_text:
      if (kind.announces)
        fill_script(line, scripts::mutex_release_announced, form, hold).add_derived(channel_prefix, hold.key);
      else
        fill_script(line, scripts::mutex_release, form, hold);
      return;
    case RequestForm::delex: line.add("DELEX").add(hold.key.bytes()).add("IFEQ").add_token(*hold.token); return;
    case RequestForm::delifeq: line.add("DELIFEQ").add(hold.key.bytes()).add_token(*hold.token); return;
  }
}

void fill(CommandLine& line, const LockKind& kind, Operation operation, RequestForm form,
          const HoldView& hold) noexcept {
  switch (operation) {
    case Operation::acquire: fill_acquire(line, kind, form, hold); return;
    case Operation::renew: fill_script(line, scripts::mutex_renew, form, hold).add(hold.lease.count()); return;
    case Operation::release: fill_release(line, kind, form, hold); return;
    case Operation::step:        // It is not reentrant.
    case Operation::compensate:  // A release by text.
    case Operation::query: return;
  }
}

Verdict decode(const LockKind& kind, Operation operation, const RespValue& reply, LockFacts& facts) noexcept {
  switch (operation) {
    case Operation::acquire:
      if (kind.fenced) return decode_fenced_grant(reply, facts);
      if (reply.is_simple("OK")) return Verdict::granted;
      return reply.is_null() ? Verdict::busy : Verdict::unexpected;
    case Operation::renew:
    case Operation::release: return decode_yes_or_no(reply);
    case Operation::step:
    case Operation::compensate:
    case Operation::query: return Verdict::unexpected;
  }
  return Verdict::unexpected;
}

static_assert(compensation_fits<scripts::mutex_release_announced.text.size()>);
static_assert(compensation_fits<scripts::mutex_release.text.size()>);

constexpr LockKind make_kind(const char* name, bool announces, bool fenced) noexcept {
  return {.name = name,
          .fill = fill,
          .decode = decode,
          .renew_batch = &scripts::mutex_renew_batch,
          .native_release = !announces,
          .reentrant = false,
          .announces = announces,
          .fenced = fenced};
}

}  // namespace

constinit const LockKind mutex_kind = make_kind("mutex", false, false);
constinit const LockKind announced_mutex_kind = make_kind("announced mutex", true, false);
constinit const LockKind fenced_mutex_kind = make_kind("fenced mutex", false, true);
constinit const LockKind announced_fenced_mutex_kind = make_kind("announced fenced mutex", true, true);

}  // namespace holdfast
