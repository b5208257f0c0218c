// SPDX-License-Identifier: MIT
#include "wait_for.hpp"

#include <poll.h>

#include "holdfast/limits.hpp"

namespace holdfast {

timespec to_timespec(Duration timeout) noexcept {
  constexpr Duration longest = sleep_max - Duration(1);  // No whole second, so that there is nothing to divide.
  static_assert(longest < std::chrono::seconds(1));
  const Duration least = timeout < Duration::zero() ? Duration::zero() : timeout;
  return {.tv_sec = 0, .tv_nsec = static_cast<long>((least < longest ? least : longest).count())};
}

int wait_for(int descriptor, short events, Duration timeout) noexcept {
  const timespec limit = to_timespec(timeout);
  pollfd entry = {.fd = descriptor, .events = events, .revents = 0};
  return ::ppoll(&entry, 1, &limit, nullptr);
}

}  // namespace holdfast
