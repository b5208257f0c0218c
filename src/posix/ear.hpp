// SPDX-License-Identifier: MIT
//
// Ear is who hears of releases for a call that waits: behind calls of its own, since a program whose locks do not announce
// their releases shall not carry a subscriber. None of them is pure: that would want a function of libstdc++.
#pragma once

#include "holdfast/core/node_task.hpp"
#include "holdfast/core/subscriber.hpp"

namespace holdfast {

class Ear {
 public:
  Ear(const Ear&) = delete;
  Ear& operator=(const Ear&) = delete;

  [[nodiscard]] bool listening() const noexcept { return waiter_ != nullptr; }
  [[nodiscard]] bool woken() const noexcept { return waiter_ != nullptr && subscriber_->woken(*waiter_); }
  // An attempt begins: what was said so far is settled by it. REQUIRES of this, work() and sleep(): listening().
  virtual void begin_try() noexcept {}
  [[nodiscard]] ListenSet confirmed() const noexcept {
    return waiter_ != nullptr && subscriber_->confirmed(*waiter_) ? 1 : 0;
  }
  // The lock is another's. Hears from now on of the release that the machine waits for, if there is a place to.
  virtual void listen(const LockMachine&) noexcept {}
  // Moves its bytes, and tells the task what has become of the subscription.
  virtual void work(NodeTask&) noexcept {}
  // Sleeps until then, or until something comes for the client or for the ear.
  virtual void sleep(Instant) noexcept {}

 protected:
  Ear() noexcept = default;
  ~Ear() = default;

  Subscriber* subscriber_ = nullptr;
  Subscriber::Waiter* waiter_ = nullptr;
};

}  // namespace holdfast
