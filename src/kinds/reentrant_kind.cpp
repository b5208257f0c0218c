// SPDX-License-Identifier: MIT
#include "holdfast/core/reentrant_kind.hpp"

#include "kind_replies.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

namespace reentrant {

void fill(CommandLine& line, const LockKind& kind, Operation operation, RequestForm form,
          const HoldView& hold) noexcept {
  const ByteView key = hold.key.bytes();
  switch (operation) {
    case Operation::acquire:
      if (kind.fenced)
        line.add_script(scripts::fenced_acquire, form).add(two_keys).add(key).add_derived(fence_prefix, hold.key);
      else
        line.add_script(scripts::reentrant_acquire, form).add(one_key).add(key);
      line.add_token(*hold.token).add(hold.lease.count());
      return;
    case Operation::renew:
      line.add_script(scripts::reentrant_renew, form)
          .add(one_key)
          .add(key)
          .add_token(*hold.token)
          .add(hold.lease.count());
      return;
    case Operation::step:
      line.add_script(scripts::reentrant_step, form).add(one_key).add(key).add_token(*hold.token);
      line.add(std::int64_t{hold.count}).add(hold.lease.count());
      return;
    case Operation::release:
      line.add_script(scripts::reentrant_release, form).add(one_key).add(key).add_token(*hold.token);
      line.add_derived(kind.announcement->channel, hold.key);
      return;
    case Operation::compensate:  // A step or a release, by text.
    case Operation::query: return;
  }
}

Verdict decode(const LockKind& kind, Operation operation, const RespValue& reply, LockFacts& facts) noexcept {
  if (operation != Operation::acquire) return decode_of_hold(operation, reply);
  if (kind.fenced) return decode_fenced_grant(reply, facts);
  return reply.is_simple("OK") ? Verdict::granted : decode_busy(reply, facts);
}

static_assert(text_fits<scripts::reentrant_release.text.size()>);
static_assert(text_fits<scripts::reentrant_step.text.size()> && text_fits<scripts::reentrant_renew.text.size()>);
static_assert(text_fits<scripts::reentrant_acquire.text.size()> && text_fits<scripts::fenced_acquire.text.size()>);

consteval LockKind make_kind(const char* name, bool fenced) noexcept {
  return {.name = name,
          .fill = fill,
          .decode = decode,
          .renew_batch = &scripts::reentrant_renew,
          .announcement = &redisson_announcement,
          .token = TokenSource::client_ordinal,
          .native_release = false,
          .reentrant = true,
          .fenced = fenced,
          .tells_remaining = true};
}

}  // namespace reentrant

}  // namespace

constinit const LockKind reentrant_kind = reentrant::make_kind("reentrant", false);
constinit const LockKind fenced_kind = reentrant::make_kind("fenced", true);

}  // namespace holdfast
