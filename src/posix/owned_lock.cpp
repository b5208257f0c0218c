// SPDX-License-Identifier: MIT
#include "holdfast/owned_lock.hpp"

#include "holdfast/push_wait.hpp"

namespace holdfast {

constinit const HoldRecord::Ways OwnedLock::ways = {.draw_ordinal = draw_ordinal, .wait_by_push = wait_by_push};

Status OwnedLock::draw_ordinal(RandomSource& random, Token& token) noexcept { return random.draw_ordinal(token); }

OwnedLock::OwnedLock(Owner& owner, const LockKind& kind, Key key, const LockTiming& timing) noexcept
    : BlockingLock(owner.client(), kind, key, timing, ways), owner_(&owner), own_timing_(timing) {
  for (BlockingLock* other = owner.first_; other != nullptr; other = other->next_sibling_) {
    const LockMachine& theirs = other->record_->machine();
    if (&theirs.kind() != &kind || theirs.key().bytes() != own_.machine().key().bytes()) continue;
    record_ = other->record_;
    break;
  }
  timing_ = &own_timing_;
  siblings_ = &owner.first_;
  next_sibling_ = owner.first_;
  owner.first_ = this;
}

// If the record is ours, one of the others takes it over.
OwnedLock::~OwnedLock() {
  BlockingLock** place = &owner_->first_;
  while (*place != this) place = &(*place)->next_sibling_;
  *place = next_sibling_;
  BlockingLock* heir = nullptr;
  for (BlockingLock* other = owner_->first_; other != nullptr; other = other->next_sibling_)
    if (other->record_ == record_) heir = other;
  if (heir == nullptr) return;  // The record posts what is left.
  record_->post_releases(acquired_);
  if (record_ != &own_) return;
  heir->own_.take_over(own_);
  for (BlockingLock* other = owner_->first_; other != nullptr; other = other->next_sibling_)
    if (other->record_ == &own_) other->record_ = &heir->own_;
}

}  // namespace holdfast
