// SPDX-License-Identifier: MIT
//
// Instant is a point on the driver's clock: nanoseconds of CLOCK_BOOTTIME (CLOCK_MONOTONIC where there is none). The
// core never reads a clock; drivers hand instants in. Instants of two machines or two boots must not be compared.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

#include "holdfast/proto/language.hpp"

namespace holdfast {

using Duration = std::chrono::nanoseconds;

// What compilers make of operator<=> is longer, in each place where it is used. So all that compare times, durations as
// well as instants, have their four relations plain.
constexpr bool operator<(Duration left, Duration right) noexcept { return left.count() < right.count(); }
constexpr bool operator>(Duration left, Duration right) noexcept { return left.count() > right.count(); }
constexpr bool operator<=(Duration left, Duration right) noexcept { return left.count() <= right.count(); }
constexpr bool operator>=(Duration left, Duration right) noexcept { return left.count() >= right.count(); }

// What servers are told: a fraction is cut.
[[nodiscard]] constexpr std::chrono::milliseconds whole_milliseconds(Duration duration) noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

class Instant {
 public:
  constexpr Instant() noexcept = default;  // The epoch: before everything that can be valid.
  static constexpr Instant from_nanoseconds(std::int64_t count) noexcept { return Instant(count); }
  static constexpr Instant max() noexcept { return Instant(std::numeric_limits<std::int64_t>::max()); }

  [[nodiscard]] constexpr std::int64_t nanoseconds() const noexcept { return count_; }
  // It is max(). In fewer bytes than a comparison, which would carry all of that number.
  [[nodiscard]] constexpr bool never() const noexcept {
    std::int64_t next = 0;
    return __builtin_add_overflow(count_, 1, &next);
  }

  // A deadline of "now + for ever" must not wrap to the past: both stay inside [epoch, max()].
  friend constexpr Instant operator+(Instant instant, Duration duration) noexcept {
    return Instant(saturated(instant.count_, duration.count()));
  }
  friend constexpr Instant operator-(Instant instant, Duration duration) noexcept {
    if (duration == Duration::min()) return max();
    return Instant(saturated(instant.count_, -duration.count()));
  }
  friend constexpr Duration operator-(Instant later, Instant earlier) noexcept {
    return Duration(later.count_ - earlier.count_);  // Both are non-negative, so this cannot overflow.
  }
  friend constexpr bool operator==(Instant left, Instant right) noexcept { return left.count_ == right.count_; }
  friend constexpr bool operator<(Instant left, Instant right) noexcept { return left.count_ < right.count_; }
  friend constexpr bool operator>(Instant left, Instant right) noexcept { return left.count_ > right.count_; }
  friend constexpr bool operator<=(Instant left, Instant right) noexcept { return left.count_ <= right.count_; }
  friend constexpr bool operator>=(Instant left, Instant right) noexcept { return left.count_ >= right.count_; }

 private:
  constexpr explicit Instant(std::int64_t count) noexcept : count_(count) {}

  HOLDFAST_ONE_COPY static constexpr std::int64_t saturated(std::int64_t count, std::int64_t delta) noexcept {
    std::int64_t sum = 0;  // No instant is negative, so only a positive delta can be too large.
    if (__builtin_add_overflow(count, delta, &sum)) return std::numeric_limits<std::int64_t>::max();
    return sum < 0 ? 0 : sum;
  }

  std::int64_t count_ = 0;
};

[[nodiscard]] constexpr Instant earlier(Instant left, Instant right) noexcept { return left < right ? left : right; }
[[nodiscard]] constexpr Instant later(Instant left, Instant right) noexcept { return left < right ? right : left; }

}  // namespace holdfast
