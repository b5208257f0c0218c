// SPDX-License-Identifier: MIT
//
// Terminal is our controlling terminal, wherever the standard descriptors go: who asks for a password opens it by its name.
// One process group at a time is in its foreground: it gets the keys, ^C and ^Z, and whoever else reads is stopped.
// REQUIRES, for all calls: SIGTTOU is blocked.
#pragma once

#include <sys/types.h>

namespace holdfast::cli {

class Terminal {
 public:
  Terminal() noexcept;
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Is our own group in the foreground, the one that holdfast was started in?
  [[nodiscard]] bool ours() const noexcept;
  // Should a command get the terminal before it asks? Not where somebody else in our group may want the keys, such as a pager
  // at the end of a pipeline. Who does not get it is stopped by the kernel when it reads, and gets it then.
  [[nodiscard]] bool given_at_start() const;
  // Was it given to a command and not taken back?
  [[nodiscard]] bool given() const noexcept { return given_; }
  // Was it given to a command, and not taken from it for somebody else? Then the command gets it again when it goes on.
  [[nodiscard]] bool wanted() const noexcept { return wanted_; }

  // Puts that group into the foreground, if ours is there. Who else is there stays, and counts as given to: at the start holdfast
  // and its command both do this, and the later one finds whom the earlier one gave it to. False when that is refused.
  bool give_to(pid_t group) noexcept;
  // Puts our own group back, if the foreground is `group` or nobody.
  void take_back_from(pid_t group) noexcept;
  // The same for somebody else of our group: the command has to ask again.
  void yield_from(pid_t group) noexcept;

 private:
  int descriptor_ = -1;
  pid_t group_ = -1;  // Ours: what a forked command has by then is its own.
  bool given_ = false;
  bool wanted_ = false;
};

}  // namespace holdfast::cli
