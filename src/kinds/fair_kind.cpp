// SPDX-License-Identifier: MIT
#include "holdfast/core/fair_kind.hpp"

#include "holdfast/core/lock_machine.hpp"
#include "kind_replies.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

namespace fair {

constexpr Announcement announcement = {
    .channel = fair_channel_prefix, .wakes_one = '\0', .wakes_all = '\0', .addressed = true};

// Renewals and steps are those of the reentrant kinds: what is held is the same.
void fill(CommandLine& line, const LockKind& kind, Operation operation, RequestForm form,
          const HoldView& hold) noexcept {
  const auto begin = [&](const Script& script) -> CommandLine& {
    return line.add_script(script, form).add(one_key).add(hold.key.bytes()).add_token(*hold.token);
  };
  switch (operation) {
    case Operation::acquire:
      begin(scripts::fair_acquire)
          .add(hold.lease.count())
          .add(hold.machine != nullptr && hold.machine->argument() != 0 ? "1" : "0")
          .add(kind.fenced ? "1" : "0");
      return;
    case Operation::renew: begin(scripts::reentrant_renew).add(hold.lease.count()); return;
    case Operation::step: begin(scripts::reentrant_step).add(std::int64_t{hold.count}).add(hold.lease.count()); return;
    case Operation::release: begin(scripts::fair_release); return;
    case Operation::compensate:  // A step or a release, by text.
    case Operation::query: return;
  }
}

Verdict decode(const LockKind& kind, Operation operation, const RespValue& reply, LockFacts& facts) noexcept {
  if (operation != Operation::acquire) return decode_of_hold(operation, reply);
  Verdict verdict = Verdict::granted;
  if (kind.fenced)
    verdict = decode_fenced_grant(reply, facts);
  else if (!reply.is_simple("OK"))
    verdict = decode_busy(reply, facts);
  facts.place = verdict == Verdict::busy ? queue_place : 0;
  return verdict;
}

// It has no name beside its own: its scripts work the others out. What else goes out with a text is EVAL, the number of keys, a
// lease of eight digits, two flags, and the headers of all of them.
template <std::size_t script_size>
constexpr bool fits = script_size + key_size_max + token_size_max + 80 <= transmit_size_max;
static_assert(fits<scripts::fair_acquire.text.size()> && fits<scripts::fair_release.text.size()>);

consteval LockKind make_kind(const char* name, bool fenced, bool lingers) noexcept {
  return {.name = name,
          .fill = fill,
          .decode = decode,
          .renew_batch = &scripts::reentrant_renew,
          .announcement = &announcement,
          .token = lingers ? TokenSource::negative_ordinal : TokenSource::client_ordinal,
          .native_release = false,
          .reentrant = true,
          .fenced = fenced,
          .tells_remaining = true,
          .queues = true,
          .lingers = lingers};
}

}  // namespace fair

}  // namespace

constinit const LockKind fair_kind = fair::make_kind("fair", false, false);
constinit const LockKind fair_fenced_kind = fair::make_kind("fair fenced", true, false);
constinit const LockKind fair_lingering_kind = fair::make_kind("fair", false, true);
constinit const LockKind fair_lingering_fenced_kind = fair::make_kind("fair fenced", true, true);

}  // namespace holdfast
