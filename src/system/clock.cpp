// SPDX-License-Identifier: MIT
#include "holdfast/detail/clock.hpp"

#include <time.h>

namespace holdfast {

Instant read_clock() noexcept {
#ifdef CLOCK_BOOTTIME
  constexpr clockid_t clock = CLOCK_BOOTTIME;
#else
  constexpr clockid_t clock = CLOCK_MONOTONIC;
#endif
  timespec time;
  if (::clock_gettime(clock, &time) != 0) [[unlikely]]
    return Instant::max();
  return Instant::from_nanoseconds(static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec);
}

}  // namespace holdfast
