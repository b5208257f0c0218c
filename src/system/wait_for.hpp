// SPDX-License-Identifier: MIT
//
// How long a poll(2) lasts at most.
#pragma once

#include <time.h>

#include "holdfast/core/instant.hpp"

namespace holdfast {

// At least nothing, and no longer than sleep_max, since timers stand still where a lease does not.
[[nodiscard]] timespec to_timespec(Duration timeout) noexcept;

// Waits for events until the timeout or a signal, no longer than sleep_max. A negative timeout counts as none. As ppoll(2).
int wait_for(int descriptor, short events, Duration timeout) noexcept;

}  // namespace holdfast
