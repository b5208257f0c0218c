// SPDX-License-Identifier: MIT
#include "terminal.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::cli {

Terminal::Terminal() noexcept {
  if (::isatty(STDIN_FILENO) != 1) return;
  descriptor_ = STDIN_FILENO;
  interactive_ = ::isatty(STDOUT_FILENO) == 1;
}

bool Terminal::ours() const noexcept { return descriptor_ >= 0 && ::tcgetpgrp(descriptor_) == ::getpgrp(); }

bool Terminal::give_to(pid_t group) noexcept {
  if (descriptor_ < 0 || ::tcsetpgrp(descriptor_, group) != 0) return false;
  given_ = true;
  return true;
}

void Terminal::take_back_from(pid_t group) noexcept {
  if (!given_) return;
  given_ = false;
  const pid_t foreground = ::tcgetpgrp(descriptor_);
  // Somebody else may have got it meanwhile, a shell for one: it stays theirs. A group that has ended is nobody.
  const bool nobody = foreground > 0 && ::kill(-foreground, 0) != 0 && errno == ESRCH;
  if (foreground == group || nobody) (void)::tcsetpgrp(descriptor_, ::getpgrp());
}

}  // namespace holdfast::cli
