// SPDX-License-Identifier: MIT
#include "holdfast/detail/owned_lock.hpp"

#include <memory>

#include "holdfast/detail/run_listening.hpp"

namespace holdfast {

// ---- The owner's places --------------------------------------------------------------------------------------------

OwnedHold* HoldOwner::enter(const LockKind& kind, Key key, const LockTiming& timing,
                            const HoldRecord::Ways& ways) noexcept {
  Place* free = nullptr;
  for (Place* place = places_; place != places_ + count_; ++place) {
    if (place->handles == 0) {
      if (free == nullptr) free = place;
      continue;
    }
    const LockMachine& machine = place->hold.machine();
    if (&machine.kind() != &kind || machine.key().bytes() != key.bytes()) continue;
    ++place->handles;
    return &place->hold;
  }
  if (free == nullptr) return nullptr;
  std::construct_at(&free->hold, *client_, kind, key, timing, ways);
  free->handles = 1;
  return &free->hold;
}

void HoldOwner::leave(OwnedHold& hold, std::uint32_t acquired) noexcept {
  Place* place = places_;
  while (&place->hold != &hold) ++place;
  if (--place->handles == 0)
    std::destroy_at(&hold);  // Posts the release of all that is left.
  else
    hold.post_releases(acquired);
}

// ---- Its handles ---------------------------------------------------------------------------------------------------

constinit const HoldRecord::Ways OwnedLock::ways = {.draw_ordinal = draw_ordinal, .run_listening = run_listening};

Status OwnedLock::draw_ordinal(RandomSource& random, Token& token) noexcept { return random.draw_ordinal(token); }

OwnedLock::OwnedLock(HoldOwner& owner, const LockKind& kind, Key key, const LockTiming& timing) noexcept
    : BlockingLock(&own_handle_), own_handle_{.owner = &owner, .timing = timing} {
  if (!key.valid() || !timing.valid()) {
    own_handle_.refusal = Status::invalid_argument;
    return;
  }
  OwnedHold* const hold = owner.enter(kind, key, timing, ways);
  if (hold == nullptr) own_handle_.refusal = Status::too_many_requests;
  attach(hold);
}

OwnedLock::~OwnedLock() {
  if (own_handle_.refusal == Status::ok) own_handle_.owner->leave(hold(), settle());
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
  if (own_handle_.refusal == Status::ok) own_handle_.owner->leave(hold(), 0);
  own_handle_.refusal = why;
  attach(nullptr);
}

}  // namespace holdfast
