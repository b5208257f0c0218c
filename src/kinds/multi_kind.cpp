// SPDX-License-Identifier: MIT
#include "holdfast/core/multi_kind.hpp"

#include "holdfast/core/name_list.hpp"
#include "kind_replies.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

namespace multi {

std::int64_t count_names(Key key) noexcept {
  std::int64_t count = 0;
  while (!name_at(key, static_cast<std::size_t>(count)).empty()) ++count;
  return count;
}

void fill(CommandLine& line, const LockKind& kind, Operation operation, RequestForm form,
          const HoldView& hold) noexcept {
  const std::int64_t count = count_names(hold.key);
  const auto begin = [&](const Script& script) -> CommandLine& {
    line.add_script(script, form).add(count);
    for (std::int64_t index = 0; index < count; ++index) line.add(name_at(hold.key, static_cast<std::size_t>(index)));
    return line;
  };
  switch (operation) {
    case Operation::acquire: begin(scripts::multi_acquire).add_token(*hold.token).add(hold.lease.count()); return;
    case Operation::renew:
      begin(scripts::multi_renew).add_token(*hold.token).add(hold.lease.count()).add(count);
      return;
    case Operation::step:
      begin(scripts::multi_step).add_token(*hold.token).add(std::int64_t{hold.count}).add(hold.lease.count());
      return;
    case Operation::release:
      begin(scripts::multi_release).add_token(*hold.token).add(kind.announcement->channel);
      return;
    case Operation::query: begin(scripts::multi_remaining); return;
    case Operation::compensate: return;  // A step or a release, by text.
  }
}

// Busy is the remaining time of one name, and which.
Verdict decode_in_the_way(const RespValue& reply, LockFacts& facts) noexcept {
  if (reply.count() != 2 || !reply.at(1).is(RespKind::integer)) return Verdict::unexpected;
  const std::int64_t place = reply.at(1).integer();
  if (place < 1 || place > static_cast<std::int64_t>(names_max)) return Verdict::unexpected;
  const Verdict verdict = decode_busy(reply.at(0), facts);
  if (verdict == Verdict::busy) facts.place = static_cast<std::uint8_t>(place - 1);
  return verdict;
}

Verdict decode(const LockKind&, Operation operation, const RespValue& reply, LockFacts& facts) noexcept {
  if (operation != Operation::acquire) return decode_of_hold(operation, reply);
  return reply.is_simple("OK") ? Verdict::granted : decode_in_the_way(reply, facts);
}

// It has no name beside its own.
template <std::size_t script_size>
constexpr bool names_fit = text_fits<script_size + names_max * bulk_overhead_max - derived_name_size_max>;
static_assert(names_fit<scripts::multi_acquire.text.size()> && names_fit<scripts::multi_renew.text.size()>);
static_assert(names_fit<scripts::multi_step.text.size()> && names_fit<scripts::multi_release.text.size()>);
static_assert(names_fit<scripts::multi_remaining.text.size()>);

void ask_remaining(CommandLine& line, Key key) noexcept {
  fill(line, multi_kind, Operation::query, RequestForm::by_text, {.key = key});
}

}  // namespace multi

}  // namespace

constinit const LockKind multi_kind = {.name = "multi",
                                       .fill = multi::fill,
                                       .decode = multi::decode,
                                       .renew_batch = &scripts::multi_renew,
                                       .announcement = &redisson_announcement,
                                       .token = TokenSource::client_ordinal,
                                       .native_release = false,
                                       .reentrant = true,
                                       .fenced = false,
                                       .tells_remaining = true,
                                       .name_at = name_at,
                                       .ask_remaining = multi::ask_remaining};

}  // namespace holdfast
