// SPDX-License-Identifier: MIT
//
// What every call of a lock passes through, inline: the calls themselves would cost as much as what they do.
#pragma once

#include "holdfast/client.hpp"

namespace holdfast {

// Before every call of a lock.
inline Status Client::begin() noexcept {
  if (!configured_) [[unlikely]]
    return Status::not_connected;  // From here on there is a page.
  if (forked()) [[unlikely]]
    start_anew_in_child();
  session_.clear_failure_text();
  now_ = now();
  return Status::ok;
}

// Where places may be short, what has arrived is read before one is refused.
inline void Client::make_room() noexcept {
  constexpr std::size_t crowd_min = 8;  // So many compensations of the longest keys take all bytes.
  if (session_.in_flight() >= crowd_min) [[unlikely]]
    while (!receive_arrived()) {}
}

// A connection that may carry a request, or the reason why there is none. A server that went away while we were idle
// is noticed before a request is lost to it.
inline Status Client::ensure_ready(Instant deadline) noexcept {
  constexpr Duration idle_max = std::chrono::seconds(1);
  if (session_.ready() && now_ - last_used_ <= idle_max) [[likely]]
    return Status::ok;
  return make_ready(deadline);
}

}  // namespace holdfast
