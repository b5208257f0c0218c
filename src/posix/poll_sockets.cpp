// SPDX-License-Identifier: MIT
#include "poll_sockets.hpp"

#include <poll.h>

#include "holdfast/detail/clock.hpp"
#include "wait_for.hpp"

namespace holdfast {

Ready poll_sockets(Connection& connection, WakePipe& wake, Instant then, int extra, short extra_events) noexcept {
  connection.set_now(read_clock());
  const bool dials = connection.dialling();
  const bool writes = dials || connection.waits_to_send();
  pollfd entries[] = {{.fd = wake.descriptor(), .events = POLLIN, .revents = 0},
                      {.fd = connection.socket(),
                       .events = static_cast<short>((dials ? 0 : POLLIN) | (writes ? POLLOUT : 0)),
                       .revents = 0},
                      {.fd = extra, .events = extra_events, .revents = 0}};  // A descriptor below zero is passed over.
  const bool pending = connection.pending();
  const timespec limit = to_timespec(pending ? Duration::zero() : then - connection.now());
  const bool any = ::ppoll(entries, 3, &limit, nullptr) > 0;
  connection.set_now(read_clock());
  if (any && entries[0].revents != 0) wake.drain();
  return {pending || (any && entries[1].revents != 0), any && entries[2].revents != 0};
}

}  // namespace holdfast
