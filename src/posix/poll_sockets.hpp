// SPDX-License-Identifier: MIT
//
// How the blocking drivers sleep: in poll(2), on one connection, a WakePipe and one descriptor more.
#pragma once

#include <poll.h>

#include "holdfast/detail/connection.hpp"
#include "holdfast/detail/wake_pipe.hpp"
#include "wait_for.hpp"

namespace holdfast {

// What to look at a connection for; without a socket, poll(2) passes it over. What has arrived may stand where no poll(2) sees
// it: Connection::pending().
[[nodiscard]] inline pollfd entry_of(const Connection& connection) noexcept {
  const short events = events_of(connection.dialling(), connection.waits_to_send());
  return {.fd = connection.socket(), .events = events, .revents = 0};
}

// The same of another descriptor that is read from.
[[nodiscard]] constexpr pollfd entry_of(int descriptor) noexcept {
  return {.fd = descriptor, .events = POLLIN, .revents = 0};
}

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
