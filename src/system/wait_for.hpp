// SPDX-License-Identifier: MIT
//
// What a poll(2) looks for, and how long it lasts at most.
#pragma once

#include <poll.h>
#include <time.h>

#include "holdfast/core/instant.hpp"

namespace holdfast {

// What to look at a socket for: whether it is connected, or for bytes, and for room where some wait to be sent.
[[nodiscard]] constexpr short events_of(bool dials, bool waits_to_send) noexcept {
  return static_cast<short>(dials ? POLLOUT : POLLIN | (waits_to_send ? POLLOUT : 0));
}

// At least nothing, and no longer than sleep_max, since timers stand still where a lease does not.
[[nodiscard]] timespec to_timespec(Duration timeout) noexcept;

// Waits for events until the timeout or a signal, no longer than sleep_max. A negative timeout counts as none. As ppoll(2).
int wait_for(int descriptor, short events, Duration timeout) noexcept;

}  // namespace holdfast
