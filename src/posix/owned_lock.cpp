// SPDX-License-Identifier: MIT
#include "holdfast/detail/owned_lock.hpp"

#include "holdfast/core/linger.hpp"
#include "holdfast/detail/run_listening.hpp"

namespace holdfast {

constinit const HoldRecord::Ways OwnedLock::alone = {.draw_ordinal = HoldRecord::draw_ordinal,
                                                     .run_listening = run_listening,
                                                     .take_timing = HoldRecord::take_owned_timing};
constinit const HoldRecord::Ways OwnedLock::of_pair = {.draw_ordinal = HoldRecord::draw_ordinal_of_pair,
                                                       .run_listening = run_listening,
                                                       .take_timing = HoldRecord::take_owned_timing};
constinit const HoldRecord::Ways OwnedLock::in_queue = {.draw_ordinal = HoldRecord::draw_ordinal,
                                                        .run_listening = run_queueing,
                                                        .take_timing = HoldRecord::take_owned_timing};
constinit const HoldRecord::Ways OwnedLock::that_lingers = {.draw_ordinal = HoldRecord::draw_negative_ordinal,
                                                            .run_listening = run_queueing,
                                                            .take_timing = HoldRecord::take_owned_timing};

void HoldRecord::take_owned_timing(HoldRecord& record, const LockTiming& timing) noexcept {
  record.to_be_kept_ = false;
  if (record.machine_.valid_until() == Instant()) {
    record.automatic_lease_ = timing.automatic();
    record.choose_keeping();
  } else if (timing.automatic() && !record.kept_) {
    record.to_be_kept_ = record.keeping_.kept(true);
  }
}

Status HoldRecord::draw_ordinal(HoldRecord& record, Token& token) noexcept {
  return record.client_->random_source_.draw_ordinal(token);
}

Status HoldRecord::draw_negative_ordinal(HoldRecord& record, Token& token) noexcept {
  const Status status = draw_ordinal(record, token);
  if (status == Status::ok) token = token.negative();
  return status;
}

// Both sides stand at the same place of their records.
Status HoldRecord::draw_ordinal_of_pair(HoldRecord& record, Token& token) noexcept {
  if (const std::ptrdiff_t distance = record.machine_.partner_distance(); distance != 0) {
    auto* const other = reinterpret_cast<HoldRecord*>(reinterpret_cast<char*>(&record) + distance);
    if (other->orphaned())
      (void)other->begin_anew();  // The parent's hold gives its child no right to anything.
    else if (other->keeper_ != nullptr)
      other->keeper_->sync(*other);
  }
  return draw_ordinal(record, token);
}

OwnedLock::OwnedLock(HoldOwner& owner, const LockKind& kind, Key key, const LockTiming& timing,
                     const HoldRecord::Ways& ways) noexcept
    : BlockingLock(&own_handle_), own_handle_{.owner = &owner, .timing = timing} {
  if (!key.valid() || !timing.valid()) {
    note_refusal(Status::invalid_argument);
    return;
  }
  OwnedHold* const hold = owner.places_.enter(owner.client(), kind, key, timing, ways);
  if (hold == nullptr) note_refusal(Status::too_many_requests);
  attach(hold);
}

OwnedLock::~OwnedLock() { leave(); }

void OwnedLock::leave() noexcept {
  if (own_handle_.refusal == Status::ok) HoldPlace<OwnedHold>::leave(hold(), own_handle_.share);
}

void OwnedLock::linger(Duration most) noexcept {
  if (own_handle_.refusal != Status::ok) return;
  Lingerer* const lingerer = client().lingerer();
  if (!valid_linger(most)) return refuse(Status::invalid_argument);
  const int place = lingerer == nullptr ? -1 : lingerer->table().enter(*lingerer, hold(), most);
  if (place < 0) return refuse(Status::too_many_requests);
  own_handle_.standing = Standing::lingers;
  own_handle_.place = static_cast<std::uint8_t>(place);
}

void OwnedLock::end_lingering() noexcept {
  if (own_handle_.standing == Standing::lingers) lingerer().table().leave(lingerer(), own_handle_.place);
}

void OwnedLock::pair(OwnedLock& one, OwnedLock& other) noexcept {
  if (one.own_handle_.refusal != Status::ok)
    other.refuse(one.own_handle_.refusal);
  else if (other.own_handle_.refusal != Status::ok)
    one.refuse(other.own_handle_.refusal);
  else
    HoldRecord::pair(one.hold(), other.hold());
}

// REQUIRES: nothing was acquired through it.
void OwnedLock::refuse(Status why) noexcept {
  leave();
  note_refusal(why);
  attach(nullptr);
}

}  // namespace holdfast
