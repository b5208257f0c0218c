// SPDX-License-Identifier: MIT
#include "terminal.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "process_tree.hpp"

namespace holdfast::cli {

namespace {

bool is_pipe(int descriptor) noexcept {
  struct stat file {};
  return ::fstat(descriptor, &file) == 0 && (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}

}  // namespace

Terminal::Terminal() noexcept : descriptor_(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)), group_(::getpgrp()) {}

Terminal::~Terminal() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Terminal::ours() const noexcept { return descriptor_ >= 0 && ::tcgetpgrp(descriptor_) == group_; }

bool Terminal::given_at_start() const {
  if (!ours()) return false;
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) return true;
  // The other end of a pipe may be about to join our group.
  return !is_pipe(STDOUT_FILENO) && alone_in_group();
}

bool Terminal::give_to(pid_t group) noexcept {
  if (descriptor_ < 0) return false;
  // Not ours any more: the other side has given it, and a shell that got it may have passed it on to a job.
  if (ours() && ::tcsetpgrp(descriptor_, group) != 0) return false;
  given_ = true;
  wanted_ = true;
  return true;
}

void Terminal::take_back_from(pid_t group) noexcept {
  if (!given_) return;
  const pid_t foreground = ::tcgetpgrp(descriptor_);
  // Somebody else may have got it meanwhile, a shell for one: it stays theirs. A group that has ended is nobody.
  const bool nobody = foreground > 0 && ::kill(-foreground, 0) != 0 && errno == ESRCH;
  if (foreground == group || nobody) (void)::tcsetpgrp(descriptor_, group_);
  if (ours()) given_ = false;
}

void Terminal::yield_from(pid_t group) noexcept {
  take_back_from(group);
  wanted_ = false;
}

}  // namespace holdfast::cli
