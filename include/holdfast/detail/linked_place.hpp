// SPDX-License-Identifier: MIT
//
// LinkedPlace is a member's place in a list that owns nothing: an object that goes away takes itself out.
#pragma once

#include "holdfast/proto/assert.hpp"

namespace holdfast {

template <class Owner>
class LinkedPlace {
 public:
  explicit LinkedPlace(Owner* owner = nullptr) noexcept : owner_(owner) {}
  ~LinkedPlace() { unlink(); }
  LinkedPlace(const LinkedPlace&) = delete;
  LinkedPlace& operator=(const LinkedPlace&) = delete;

  [[nodiscard]] bool linked() const noexcept { return next_ != this; }
  void unlink() noexcept {
    if (!linked()) return;
    previous_->next_ = next_;
    next_->previous_ = previous_;
    previous_ = next_ = this;
  }

  // Of a list's head, which has no owner.
  void push_back(LinkedPlace& place) noexcept {
    place.unlink();
    place.previous_ = previous_;
    place.next_ = this;
    previous_->next_ = &place;
    previous_ = &place;
  }
  // nullptr: the list is empty.
  [[nodiscard]] Owner* first() const noexcept { return next_->owner_; }
  // The one behind; nullptr behind the last.
  [[nodiscard]] Owner* next() const noexcept { return next_->owner_; }
  // All of another list, in its order.
  void take_all(LinkedPlace& other) noexcept {
    while (other.linked()) push_back(*other.next_);
  }

 private:
  Owner* owner_;
  LinkedPlace* previous_ = this;
  LinkedPlace* next_ = this;
};

}  // namespace holdfast
