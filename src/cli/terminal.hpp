// SPDX-License-Identifier: MIT
//
// Terminal is our controlling terminal, where standard input is one. One process group at a time is in its foreground:
// it gets the keys, ^C and ^Z. REQUIRES, for all calls: SIGTTOU is ignored or blocked.
#pragma once

#include <sys/types.h>

namespace holdfast::cli {

class Terminal {
 public:
  Terminal() noexcept;

  // Is our own group in the foreground?
  [[nodiscard]] bool ours() const noexcept;
  // Should a command get the terminal before it asks? Not when our output goes through a pipe: a pager at its end is
  // in our group, and reads keys, too.
  [[nodiscard]] bool given_at_start() const noexcept { return interactive_ && ours(); }
  // Was it given to a command and not taken back?
  [[nodiscard]] bool given() const noexcept { return given_; }

  // Puts that group into the foreground. False when that is refused.
  bool give_to(pid_t group) noexcept;
  // Puts our own group back, if the foreground is `group` or nobody.
  void take_back_from(pid_t group) noexcept;

 private:
  int descriptor_ = -1;
  bool interactive_ = false;
  bool given_ = false;
};

}  // namespace holdfast::cli
