// SPDX-License-Identifier: MIT
#include "holdfast/core/semaphore_kind.hpp"

#include "kind_replies.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

namespace semaphore {

constexpr Announcement announcement = {
    .channel = semaphore_channel_prefix, .wakes_one = '1', .wakes_all = '\0', .counts = true};

void fill(CommandLine& line, const LockKind&, Operation operation, RequestForm form, const HoldView& hold) noexcept {
  const auto begin = [&](const Script& script) -> CommandLine& {
    return line.add_script(script, form).add(one_key).add(hold.key.bytes()).add_token(*hold.token);
  };
  switch (operation) {
    case Operation::acquire:
      begin(scripts::semaphore_acquire)
          .add(hold.lease.count())
          .add(hold.machine == nullptr ? 0 : std::int64_t{hold.machine->argument()});
      return;
    case Operation::renew: begin(scripts::semaphore_renew).add(hold.lease.count()); return;
    case Operation::release: begin(scripts::semaphore_release); return;
    case Operation::step:        // It is not reentrant.
    case Operation::compensate:  // A release by text.
    case Operation::query: return;
  }
}

Verdict decode(const LockKind&, Operation operation, const RespValue& reply, LockFacts& facts) noexcept {
  if (operation == Operation::step) return Verdict::unexpected;
  if (operation != Operation::acquire) return decode_of_hold(operation, reply);
  if (reply.is_simple("OK")) return Verdict::granted;
  if (!reply.is_simple("PERMITS")) return decode_busy(reply, facts);
  facts.refusal = Status::permits_differ;
  return Verdict::busy;
}

void ask_remaining(CommandLine& line, Key key) noexcept {
  line.add_script(scripts::semaphore_remaining, RequestForm::by_text).add(one_key).add(key.bytes());
}

// It has no name beside its own: its scripts work the others out.
template <std::size_t script_size>
constexpr bool fits = text_fits<script_size - derived_name_size_max>;
static_assert(fits<scripts::semaphore_acquire.text.size()> && fits<scripts::semaphore_renew.text.size()>);
static_assert(fits<scripts::semaphore_release.text.size()> && fits<scripts::semaphore_remaining.text.size()>);

}  // namespace semaphore

}  // namespace

constinit const LockKind semaphore_kind = {.name = "semaphore",
                                           .fill = semaphore::fill,
                                           .decode = semaphore::decode,
                                           .renew_batch = &scripts::semaphore_renew,
                                           .announcement = &semaphore::announcement,
                                           .token = TokenSource::random,
                                           .native_release = false,
                                           .reentrant = false,
                                           .fenced = false,
                                           .tells_remaining = true,
                                           .ask_remaining = semaphore::ask_remaining};

}  // namespace holdfast
