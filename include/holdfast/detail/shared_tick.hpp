// SPDX-License-Identifier: MIT
//
// SharedTick is when a worker last said that it is alive. Any thread sets it, several at once too, and any reads it: it is
// one word on every machine, in units of about a millisecond. It wraps after 52 days, long after the hold that nobody
// renewed any more.
#pragma once

#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/detail/shared_value.hpp"

namespace holdfast {

class SharedTick {
 public:
  void set(Instant now) noexcept { units_.store(units(now)); }

  // Never less than what has passed, and up to two units more. Below zero where the tick came after `now`.
  [[nodiscard]] Duration since(Instant now) const noexcept {
    const auto passed = static_cast<std::int32_t>(units(now) - units_.load());
    return unit * (std::int64_t{passed} + 1);
  }

  static constexpr Duration unit = Duration(std::int64_t{1} << 20);

 private:
  [[nodiscard]] static std::uint32_t units(Instant instant) noexcept {
    return static_cast<std::uint32_t>(instant.nanoseconds() / unit.count());
  }

  SharedValue<std::uint32_t> units_;
};

}  // namespace holdfast
