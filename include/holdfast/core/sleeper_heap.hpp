// SPDX-License-Identifier: MIT
//
// SleeperHeap orders what sleeps by when it is to be woken. A pairing heap whose links stand in its members, so that a
// loop with ten thousand locks needs neither a table of timers nor the heap. Insertion costs a constant, removal a
// logarithm, amortised.   Not thread-safe: one owner.
#pragma once

#include "holdfast/core/instant.hpp"
#include "holdfast/proto/assert.hpp"

namespace holdfast {

class Sleeper {
 public:
  Sleeper() noexcept = default;
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // Called once, when it is time; the sleeper is awake then.
  virtual void wake(Instant now) = 0;
  // Instant::max() when awake.
  [[nodiscard]] Instant wakes_at() const noexcept { return wakes_at_; }

 protected:
  virtual ~Sleeper() { HOLDFAST_ASSERT(wakes_at_ == Instant::max()); }

 private:
  friend class SleeperHeap;
  Instant wakes_at_ = Instant::max();
  Sleeper* child_ = nullptr;     // The first of those below.
  Sleeper* next_ = nullptr;      // Its next sibling.
  Sleeper* previous_ = nullptr;  // Its previous one; of a first child: what is above.
};

class SleeperHeap {
 public:
  [[nodiscard]] Instant next() const noexcept { return root_ == nullptr ? Instant::max() : root_->wakes_at_; }

  // Instant::max(): it sleeps no longer, and is not woken.
  void put(Sleeper& sleeper, Instant wakes_at) noexcept {
    if (sleeper.wakes_at_ == wakes_at) return;
    if (sleeper.wakes_at_ != Instant::max()) remove(sleeper);
    if (wakes_at == Instant::max()) return;
    sleeper.wakes_at_ = wakes_at;
    root_ = merge(root_, &sleeper);
  }

  // Who is due, awake now; nullptr: nobody.
  [[nodiscard]] Sleeper* take_due(Instant now) noexcept {
    if (root_ == nullptr || root_->wakes_at_ > now) return nullptr;
    Sleeper* const due = root_;
    remove(*due);
    return due;
  }

 private:
  [[nodiscard]] static Sleeper* merge(Sleeper* one, Sleeper* other) noexcept {
    if (one == nullptr) return other;
    if (other == nullptr) return one;
    if (other->wakes_at_ < one->wakes_at_) {
      Sleeper* const first = other;
      other = one;
      one = first;
    }
    other->next_ = one->child_;
    other->previous_ = one;
    if (one->child_ != nullptr) one->child_->previous_ = other;
    one->child_ = other;
    one->next_ = one->previous_ = nullptr;
    return one;
  }

  // Siblings in pairs, from the first to the last, then the pairs from the last to the first.
  [[nodiscard]] static Sleeper* merge_all(Sleeper* first) noexcept {
    Sleeper* pairs = nullptr;
    while (first != nullptr) {
      Sleeper* const second = first->next_;
      Sleeper* const rest = second == nullptr ? nullptr : second->next_;
      first->next_ = first->previous_ = nullptr;
      if (second != nullptr) second->next_ = second->previous_ = nullptr;
      Sleeper* const pair = merge(first, second);
      pair->next_ = pairs;
      pairs = pair;
      first = rest;
    }
    Sleeper* whole = nullptr;
    while (pairs != nullptr) {
      Sleeper* const rest = pairs->next_;
      pairs->next_ = nullptr;
      whole = merge(whole, pairs);
      pairs = rest;
    }
    return whole;
  }

  void remove(Sleeper& sleeper) noexcept {
    Sleeper* const below = merge_all(sleeper.child_);
    if (&sleeper == root_) {
      root_ = below;
    } else {
      (sleeper.previous_->child_ == &sleeper ? sleeper.previous_->child_ : sleeper.previous_->next_) = sleeper.next_;
      if (sleeper.next_ != nullptr) sleeper.next_->previous_ = sleeper.previous_;
      root_ = merge(root_, below);
    }
    sleeper.child_ = sleeper.next_ = sleeper.previous_ = nullptr;
    sleeper.wakes_at_ = Instant::max();
  }

  Sleeper* root_ = nullptr;
};

}  // namespace holdfast
