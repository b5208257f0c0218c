// SPDX-License-Identifier: MIT
#include "holdfast/core/read_write_kind.hpp"

#include "kind_replies.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

namespace read_write {

constexpr Announcement announcement = {.channel = read_write_channel_prefix, .wakes_one = '0', .wakes_all = '1'};

// KEYS[1] and ARGV[1], which all requests begin with.
CommandLine& add_hold(CommandLine& line, const Script& script, RequestForm form, const HoldView& hold) noexcept {
  return line.add_script(script, form).add(one_key).add(hold.key.bytes()).add_token(*hold.token);
}

void fill(CommandLine& line, const LockKind& kind, Operation operation, RequestForm form,
          const HoldView& hold) noexcept {
  switch (operation) {
    case Operation::acquire:
      add_hold(line, &kind == &read_kind ? scripts::read_acquire : scripts::write_acquire, form, hold)
          .add(hold.lease.count())
          .add(hold.machine == nullptr ? ByteView() : hold.machine->partner_token());
      return;
    case Operation::renew: add_hold(line, scripts::read_write_renew, form, hold).add(hold.lease.count()); return;
    case Operation::step:
      add_hold(line, scripts::read_write_step, form, hold).add(std::int64_t{hold.count}).add(hold.lease.count());
      return;
    case Operation::release:
      add_hold(line, scripts::read_write_release, form, hold).add_derived(announcement.channel, hold.key);
      return;
    case Operation::compensate:  // A step or a release, by text.
    case Operation::query: return;
  }
}

Verdict decode(const LockKind& kind, Operation operation, const RespValue& reply, LockFacts& facts) noexcept {
  if (operation != Operation::acquire) return decode_of_hold(operation, reply);
  if (reply.is_simple("OK")) return Verdict::granted;
  if (&kind != &write_kind || !reply.is_simple("UPGRADE")) return decode_busy(reply, facts);
  facts.refusal = Status::upgrade_refused;
  return Verdict::busy;
}

static_assert(text_fits<scripts::read_acquire.text.size()> && text_fits<scripts::write_acquire.text.size()>);
static_assert(text_fits<scripts::read_write_step.text.size()> && text_fits<scripts::read_write_release.text.size()>);
// It has no name beside its own.
static_assert(text_fits<scripts::read_write_renew.text.size() - derived_name_size_max>);

// What the scripts give a lock whose TTL was removed stands there as a literal.
static_assert(read_lease_max == std::chrono::milliseconds(30'000) &&
              lease_max == std::chrono::milliseconds(86'400'000));

consteval LockKind make_kind(const char* name, Duration lease_max) noexcept {
  return {.name = name,
          .fill = fill,
          .decode = decode,
          .renew_batch = &scripts::read_write_renew,
          .announcement = &announcement,
          .token = TokenSource::client_ordinal,
          .native_release = false,
          .reentrant = true,
          .fenced = false,
          .tells_remaining = true,
          .lease_max = std::chrono::duration_cast<KindLease>(lease_max)};
}

}  // namespace read_write

}  // namespace

constinit const LockKind read_kind = read_write::make_kind("read", read_lease_max);
constinit const LockKind write_kind = read_write::make_kind("write", lease_max);

}  // namespace holdfast
