// SPDX-License-Identifier: MIT
//
// Ear is who hears of releases for a call that waits. Its calls are virtual, so that a program that waits by asking does not
// carry a subscription. None is pure: that would want a function of libstdc++.
#pragma once

#include "holdfast/core/instant.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/wait_plan.hpp"

namespace board {

class Ear {
 public:
  Ear(const Ear&) = delete;
  Ear& operator=(const Ear&) = delete;

  // A. Questions.
  [[nodiscard]] virtual bool listening() const { return false; }
  [[nodiscard]] virtual bool woken() const { return false; }
  [[nodiscard]] virtual bool confirmed() const { return false; }

  // B. Commands.
  // The lock is another's: from now on its release is heard of.
  virtual void listen(const holdfast::LockMachine&, holdfast::Instant) {}
  // An attempt begins: what was said so far is settled by it.
  virtual void begin_try() {}
  // True, once in a call: the server does not let us listen, and the call is to poll from here on.
  [[nodiscard]] virtual bool take_refusal() { return false; }
  // The call is over.
  virtual void leave(bool /*with_lock*/) {}
  // Moves what there is to be moved.
  virtual void work(holdfast::Instant) {}

 protected:
  constexpr Ear() = default;
  ~Ear() = default;
};

}  // namespace board
