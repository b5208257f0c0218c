// SPDX-License-Identifier: MIT
//
// The clock of every Instant here: CLOCK_BOOTTIME, which runs on while the machine sleeps, as leases do. Drivers read it; the
// core is told.
#pragma once

#include "holdfast/core/instant.hpp"

namespace holdfast {

// Instant::max() where it cannot be read: then nothing is held any more, and errno says why. Any thread.
[[nodiscard]] Instant read_clock() noexcept;

// The same moment on a clock of <chrono>, for a program that hands valid_until() to a timer, a deadline or a log:
//
//     timer.expires_at(time_point_of<std::chrono::steady_clock>(lock.valid_until()));
//
// It is never later than the instant as both clocks stand now. A clock that is set, or that stands still while the machine
// sleeps, is wrong from then on: what counts is held(). The epoch, where nothing is held, is Clock::time_point::min(), and
// Instant::max() is Clock::time_point::max(). Any thread; reads both clocks.
template <class Clock>
[[nodiscard]] typename Clock::time_point time_point_of(Instant instant) noexcept {
  using Point = typename Clock::time_point;
  if (instant == Instant()) return Point::min();
  if (instant == Instant::max()) return Point::max();
  const Point now = Clock::now();  // First: what passes until the next line makes the answer earlier.
  const auto left = std::chrono::floor<typename Clock::duration>(instant - read_clock());
  if (left > Clock::duration::zero() && now > Point::max() - left) return Point::max();
  return now + left;
}

}  // namespace holdfast
