// SPDX-License-Identifier: MIT
#include "poll_sockets.hpp"

#include <poll.h>

#include "holdfast/detail/clock.hpp"
#include "holdfast/detail/lookout.hpp"
#include "wait_for.hpp"

namespace holdfast {

namespace {

// On `more` as well, where there is any.
template <bool is_more>
[[gnu::always_inline]] inline Ready poll_entries(Connection& connection, WakePipe& wake, Instant then, int extra,
                                                 int extra_events, [[maybe_unused]] pollfd* more) noexcept {
  connection.set_now(read_clock());
  pollfd entries[is_more ? 4 : 3] = {entry_of(wake.descriptor()),
                                     entry_of(connection),
                                     {.fd = extra,
                                      .events = static_cast<short>(extra_events),
                                      .revents = 0}};  // A descriptor below zero is passed over.
  if constexpr (is_more) entries[3] = *more;
  const bool pending = connection.pending();
  const timespec limit = to_timespec(pending ? Duration::zero() : then - connection.now());
  const bool any = ::ppoll(entries, is_more ? 4 : 3, &limit, nullptr) > 0;
  connection.set_now(read_clock());
  if constexpr (is_more) more->revents = any ? entries[3].revents : short{0};
  if (any && entries[0].revents != 0) wake.drain();
  return {pending || (any && entries[1].revents != 0), any && entries[2].revents != 0};
}

[[gnu::noinline]] Ready poll_alone(Connection& connection, WakePipe& wake, Instant then, int extra,
                                   int extra_events) noexcept {
  return poll_entries<false>(connection, wake, then, extra, extra_events, nullptr);
}

}  // namespace

Ready poll_sockets(Connection& connection, WakePipe& wake, Instant then, int extra, int extra_events) noexcept {
  if (const Lookout* const lookout = connection.lookout(); lookout != nullptr) [[unlikely]]
    return lookout->sleep(connection, wake, then, extra, extra_events);
  return poll_alone(connection, wake, then, extra, extra_events);
}

Ready poll_with(Connection& connection, WakePipe& wake, Instant then, int extra, int extra_events,
                pollfd& more) noexcept {
  return poll_entries<true>(connection, wake, then, extra, extra_events, &more);
}

}  // namespace holdfast
