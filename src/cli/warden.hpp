// SPDX-License-Identifier: MIT
//
// Warden is a second process that guards the command against our own failure. While we are stopped, or hang, or have
// been killed, nobody renews the lock and nobody ends the command; the kernel's parent-death signal reaches the command
// alone, not what it started. The warden kills them all: when it hears that we are gone, or when the deadline that it
// was last told has passed.
#pragma once

#include <sys/types.h>

#include <string>

#include "holdfast/instant.hpp"

namespace holdfast::cli {

class Warden {
 public:
  Warden() = default;
  // Without dismiss() we end by a mistake of ours, and the warden takes that for our death.
  ~Warden();
  Warden(const Warden&) = delete;
  Warden& operator=(const Warden&) = delete;

  // Forks. `mark` is the environment entry by which it knows the command and what came from it. False, with errno, if
  // there is no new process. REQUIRES: signals are held.
  [[nodiscard]] bool start(const std::string& mark);
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // What to kill, and when if nothing else is said. Never blocks.
  void instruct(pid_t group, Instant deadline) noexcept;
  // There is nothing left to guard.
  void dismiss() noexcept;

 private:
  pid_t pid_ = -1;
  int orders_ = -1;
};

}  // namespace holdfast::cli
