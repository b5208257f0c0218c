// SPDX-License-Identifier: MIT
//
// QuorumEar is who hears of releases on all nodes for a call that waits: as Ear.
#pragma once

#include "holdfast/core/quorum_task.hpp"
#include "holdfast/core/wait_plan.hpp"

namespace holdfast {

class QuorumEar {
 public:
  QuorumEar(const QuorumEar&) = delete;
  QuorumEar& operator=(const QuorumEar&) = delete;

  [[nodiscard]] bool listening() const noexcept { return listening_; }
  // As work() has found it.
  [[nodiscard]] bool woken() const noexcept { return woken_; }
  [[nodiscard]] ListenSet confirmed() const noexcept { return confirmed_; }

  // An attempt begins: what was said so far is settled by it.
  virtual void begin_try() noexcept {}
  // The attempt was in vain; `busy`: for the lock is another's. Hears of its release from now on.
  virtual void listen(bool) noexcept {}
  // Moves its bytes, and tells the task what has become of the subscriptions.
  virtual void work() noexcept {}
  // Sleeps until then, or until something comes for the quorum or for the ear.
  virtual void sleep(Instant) noexcept {}

 protected:
  QuorumEar() noexcept = default;
  ~QuorumEar() = default;

  bool listening_ = false;
  bool woken_ = false;
  ListenSet confirmed_ = 0;
};

}  // namespace holdfast
