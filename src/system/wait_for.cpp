// SPDX-License-Identifier: MIT
#include "wait_for.hpp"

#include <poll.h>

#include "holdfast/limits.hpp"

namespace holdfast {

timespec to_timespec(Duration timeout) noexcept {
  const std::int64_t left = timeout < Duration::zero() ? 0 : timeout > sleep_max ? sleep_max.count() : timeout.count();
  return {.tv_sec = static_cast<time_t>(left / 1'000'000'000), .tv_nsec = static_cast<long>(left % 1'000'000'000)};
}

int wait_for(int descriptor, short events, Duration timeout) noexcept {
  const timespec limit = to_timespec(timeout);
  pollfd entry = {.fd = descriptor, .events = events, .revents = 0};
  return ::ppoll(&entry, 1, &limit, nullptr);
}

}  // namespace holdfast
