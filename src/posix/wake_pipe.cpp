// SPDX-License-Identifier: MIT
#include "holdfast/detail/wake_pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast {

Status WakePipe::open() noexcept {
  // Where it fails, it leaves them as they are.
  if (ends_[0] < 0 && ::pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) return Status::system_error;
  return Status::ok;
}

void WakePipe::close() noexcept {
  for (int& end : ends_) {
    if (end >= 0) ::close(end);
    end = -1;
  }
}

void WakePipe::wake() noexcept {
  const int saved = errno;
  if (ends_[1] >= 0) (void)!::write(ends_[1], "", 1);  // A full pipe is readable, too.
  errno = saved;
}

void WakePipe::drain() noexcept {
  char drained[64];
  while (::read(ends_[0], drained, sizeof drained) > 0) {}
}

}  // namespace holdfast
