// SPDX-License-Identifier: MIT
#include "poll_sockets.hpp"

#include <poll.h>

#include "holdfast/clock.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

timespec to_timespec(Duration timeout) noexcept {
  const std::int64_t left = timeout < Duration::zero() ? 0 : timeout > sleep_max ? sleep_max.count() : timeout.count();
  return {.tv_sec = static_cast<time_t>(left / 1'000'000'000), .tv_nsec = static_cast<long>(left % 1'000'000'000)};
}

int wait_for(int descriptor, short events, Duration timeout) noexcept {
  const timespec limit = to_timespec(timeout);
  pollfd entry = {.fd = descriptor, .events = events, .revents = 0};
  return ::ppoll(&entry, 1, &limit, nullptr);
}

Ready poll_sockets(Connection& connection, WakePipe& wake, Instant then, int extra, short extra_events) noexcept {
  connection.set_now(read_clock());
  const bool dials = connection.dialling();
  const bool writes = dials || connection.session().unsent();
  pollfd entries[] = {{.fd = wake.descriptor(), .events = POLLIN, .revents = 0},
                      {.fd = connection.socket(),
                       .events = static_cast<short>((dials ? 0 : POLLIN) | (writes ? POLLOUT : 0)),
                       .revents = 0},
                      {.fd = extra, .events = extra_events, .revents = 0}};  // A descriptor below zero is passed over.
  const timespec limit = to_timespec(then - connection.now());
  const bool any = ::ppoll(entries, 3, &limit, nullptr) > 0;
  connection.set_now(read_clock());
  if (any && entries[0].revents != 0) wake.drain();
  return {any && entries[1].revents != 0, any && entries[2].revents != 0};
}

}  // namespace holdfast
