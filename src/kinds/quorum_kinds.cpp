// SPDX-License-Identifier: MIT
#include "holdfast/core/quorum_kinds.hpp"

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "kind_replies.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

namespace of_quorum {

// Everything but a renewal that has a fence to write is as on one node.
template <const LockKind& single>
void fill(CommandLine& line, const LockKind&, Operation operation, RequestForm form, const HoldView& hold) noexcept {
  const std::uint64_t fence = operation == Operation::renew ? hold.machine->fence() : 0;
  if (fence == 0) {
    single.fill(line, single, operation, form, hold);
    return;
  }
  line.add_script(scripts::quorum_renew, form).add(two_keys).add(hold.key.bytes()).add_derived(fence_prefix, hold.key);
  line.add_token(*hold.token).add(hold.lease.count()).add(static_cast<std::int64_t>(fence));
}

template <const LockKind& single>
Verdict decode(const LockKind&, Operation operation, const RespValue& reply, LockFacts& facts) noexcept {
  if (operation == Operation::renew && reply.is(RespKind::integer)) return decode_yes_or_no(reply);
  const std::uint64_t fence = facts.fence;
  const Verdict verdict = single.decode(single, operation, reply, facts);
  if (operation != Operation::acquire) facts.fence = fence;
  return verdict;
}

template <const LockKind& single>
consteval LockKind make_kind(const char* name, bool reentrant, bool announces) noexcept {
  return {.name = name,
          .fill = fill<single>,
          .decode = decode<single>,
          .renew_batch = reentrant ? &scripts::reentrant_renew : &scripts::mutex_renew_batch,
          .announcement = announces ? &redisson_announcement : nullptr,
          .token = reentrant ? TokenSource::client_ordinal : TokenSource::random,
          .native_release = !announces,
          .reentrant = reentrant,
          .fenced = true,
          .tells_remaining = true};
}

}  // namespace of_quorum

}  // namespace

constinit const LockKind quorum_fenced_mutex_kind =
    of_quorum::make_kind<fenced_mutex_kind>("quorum fenced mutex", false, false);
constinit const LockKind quorum_announced_fenced_mutex_kind =
    of_quorum::make_kind<announced_fenced_mutex_kind>("quorum announced fenced mutex", false, true);
constinit const LockKind quorum_fenced_kind = of_quorum::make_kind<fenced_kind>("quorum fenced", true, true);

}  // namespace holdfast
