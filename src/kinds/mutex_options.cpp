// SPDX-License-Identifier: MIT
//
// The Mutex with its options: what they change, and the plain kind for the rest. A file of its own, so that a program
// with a plain Mutex does not carry it.
#include "holdfast/core/mutex_options.hpp"

#include "kind_replies.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

namespace optioned_mutex {

void fill(CommandLine& line, const LockKind& kind, Operation operation, RequestForm form,
          const HoldView& hold) noexcept {
  if (operation == Operation::acquire && kind.fenced) {
    line.add_script(scripts::mutex_acquire_fenced, form).add(two_keys).add(hold.key.bytes());
    line.add_derived(fence_prefix, hold.key).add_token(*hold.token).add(hold.lease.count());
  } else if (operation == Operation::release && kind.announcement != nullptr) {
    line.add_script(scripts::mutex_release_announced, form).add(one_key).add(hold.key.bytes()).add_token(*hold.token);
    line.add_derived(kind.announcement->channel, hold.key);
  } else {
    mutex_kind.fill(line, mutex_kind, operation, form, hold);
  }
}

Verdict decode(const LockKind& kind, Operation operation, const RespValue& reply, LockFacts& facts) noexcept {
  if (operation == Operation::acquire && kind.fenced) return decode_fenced_grant(reply, facts);
  return mutex_kind.decode(mutex_kind, operation, reply, facts);
}

static_assert(text_fits<scripts::mutex_release_announced.text.size()> &&
              text_fits<scripts::mutex_acquire_fenced.text.size()>);

consteval LockKind make_kind(const char* name, bool announces, bool fenced) noexcept {
  return {.name = name,
          .fill = fill,
          .decode = decode,
          .renew_batch = &scripts::mutex_renew_batch,
          .announcement = announces ? &redisson_announcement : nullptr,
          .token = TokenSource::random,
          .native_release = !announces,
          .reentrant = false,
          .fenced = fenced,
          .tells_remaining = fenced};
}

}  // namespace optioned_mutex

}  // namespace

constinit const LockKind announced_mutex_kind = optioned_mutex::make_kind("announced mutex", true, false);
constinit const LockKind fenced_mutex_kind = optioned_mutex::make_kind("fenced mutex", false, true);
constinit const LockKind announced_fenced_mutex_kind = optioned_mutex::make_kind("announced fenced mutex", true, true);

}  // namespace holdfast
