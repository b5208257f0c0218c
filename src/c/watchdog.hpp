// SPDX-License-Identifier: MIT
//
// A watchdog in the storage of a holdfast_watchdog: that of C++, and who hears of fail-overs for it.
#pragma once

#include "holdfast/watchdog.hpp"
#include "objects.hpp"

namespace holdfast::c {

struct WatchdogObject : Watchdog {
  explicit WatchdogObject(const RenewalSchedule::Storage& storage) noexcept : Watchdog(storage) {}

  holdfast_sentinel_watch* watch = nullptr;
};

template <>
struct Made<holdfast_watchdog> {
  using Object = WatchdogObject;
  static constexpr std::uintptr_t number = 4;
};

}  // namespace holdfast::c
