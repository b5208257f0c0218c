// SPDX-License-Identifier: MIT
//
// What every call of a lock passes through, inline: the calls themselves would cost as much as what they do.
#pragma once

#include <cerrno>

#include "holdfast/client.hpp"

// Calls inside are inlined, where speed counts more than size.
#ifdef __OPTIMIZE_SIZE__
#define HOLDFAST_FLAT
#else
#define HOLDFAST_FLAT [[gnu::flatten]]
#endif

namespace holdfast {

// Before every call of a lock.
inline Status ClientBase::begin() noexcept {
  if (!configured_) [[unlikely]]
    return Status::not_connected;  // From here on there is a page.
  if (forked()) [[unlikely]]
    start_anew_in_child();
  session_.clear_failure_text();
  now_ = now();
  if (now_.never()) [[unlikely]]
    error_number_ = errno;  // Calls say system_error, and this is why.
  return Status::ok;
}

// Where places may be short, what has arrived is read before one is refused.
inline void ClientBase::make_room() noexcept {
  if (session_.in_flight() >= session_.crowd()) [[unlikely]]
    while (!receive_arrived()) {}
}

inline void ClientBase::look_if_idle() noexcept {
  if (session_.ready() && now_ - last_used_ > Duration(idle_nanoseconds_) && !now_.never()) [[unlikely]]
    probe_idle_connection();
}

// A connection that may carry a request, or the reason why there is none.
inline Status ClientBase::ensure_ready(Instant deadline) noexcept {
  if (session_.ready() && now_ - last_used_ <= Duration(idle_nanoseconds_)) [[likely]]
    return Status::ok;
  return make_ready(deadline);
}

}  // namespace holdfast
