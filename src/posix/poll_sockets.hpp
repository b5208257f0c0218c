// SPDX-License-Identifier: MIT
//
// How the blocking drivers sleep: in poll(2), on one connection, a WakePipe and one descriptor more.
#pragma once

#include <poll.h>

#include "holdfast/detail/connection.hpp"
#include "holdfast/detail/wake_pipe.hpp"

namespace holdfast {

struct Ready {
  bool own;    // The connection,
  bool extra;  // or what else was looked at.
};
// Sleeps until then, until something comes on the connection, on `extra` (below zero: none), or until a wake-up, which it
// takes; no longer than sleep_max. Reads the clock before and after.
[[nodiscard]] Ready poll_sockets(Connection& connection, WakePipe& wake, Instant then, int extra,
                                 int extra_events) noexcept;

// The same, whatever the connection has for a Lookout, and on `more`, whose revents it sets.
[[nodiscard]] Ready poll_with(Connection& connection, WakePipe& wake, Instant then, int extra, int extra_events,
                              pollfd& more) noexcept;

}  // namespace holdfast
