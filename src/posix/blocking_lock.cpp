// SPDX-License-Identifier: MIT
//
// What the lock objects of one owner share.
#include "holdfast/blocking_lock.hpp"

#include "holdfast/owner.hpp"

namespace holdfast {

BlockingLock::BlockingLock(Owner& owner, const LockKind& kind, Key key, const LockTiming& timing,
                           HoldRecord::Wait wait) noexcept
    : owner_(&owner), timing_(timing), own_(owner.client(), kind, key, timing, wait) {
  for (BlockingLock* other = owner.first_; other != nullptr; other = other->next_of_owner_) {
    const LockMachine& theirs = other->record_->machine();
    if (&theirs.kind() != &kind || theirs.key().bytes() != own_.machine().key().bytes()) continue;
    record_ = other->record_;
    break;
  }
  next_of_owner_ = owner.first_;
  owner.first_ = this;
}

void BlockingLock::take_timing() noexcept {
  if (record_ != &own_ || record_->machine().timing().lease != timing_.effective_lease()) record_->set_timing(timing_);
}

// Acquired through one object and released through another.
void BlockingLock::count_out_of_another() noexcept {
  for (BlockingLock* other = owner_->first_; other != nullptr; other = other->next_of_owner_) {
    if (other->record_ != record_ || other->acquired_ == 0) continue;
    --other->acquired_;
    return;
  }
}

// What was acquired here is released. What the others of this owner acquired is theirs: if the record is ours, one of
// them takes it over.
void BlockingLock::leave_owner() noexcept {
  for (BlockingLock** place = &owner_->first_; *place != nullptr; place = &(*place)->next_of_owner_) {
    if (*place != this) continue;
    *place = next_of_owner_;
    break;
  }
  BlockingLock* heir = nullptr;
  for (BlockingLock* other = owner_->first_; other != nullptr; other = other->next_of_owner_) {
    if (other->record_ != record_) continue;
    if (record_ != &own_) {
      heir = other;
      break;
    }
    if (heir == nullptr) heir = other;
    other->record_ = &heir->own_;
  }
  if (heir == nullptr) return;  // The record posts what is left.
  if (acquired_ != 0) record_ == &own_ ? own_.post_releases(acquired_) : record_->post_releases(acquired_);
  if (record_ == &own_) heir->own_.take_over(own_);
}

}  // namespace holdfast
