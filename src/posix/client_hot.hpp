// SPDX-License-Identifier: MIT
//
// What every call of a lock passes through, inline: the calls themselves would cost as much as what they do.
#pragma once

#include <unistd.h>

#include <cstring>

#include "holdfast/assert.hpp"
#include "holdfast/client.hpp"
#include "wiped_page.hpp"

namespace holdfast {

inline bool Client::forked() const noexcept {
  if (page_ == nullptr) return false;
  return page_->alive == 0 || (page_->owner != 0 && page_->owner != ::getpid());
}

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

inline Status Client::draw_random(unsigned char* out, std::size_t size) noexcept {
  HOLDFAST_ASSERT(size <= entropy_pool_size);
  if (page_->pool_left < size)
    if (const Status status = refill_pool(); status != Status::ok) return status;
  std::memcpy(out, page_->pool + (entropy_pool_size - page_->pool_left), size);
  page_->pool_left -= static_cast<std::uint32_t>(size);
  return Status::ok;
}

inline Status Client::draw_token(Token& token) noexcept {
  unsigned char random[token_random_size];
  const Status status = draw_random(random, sizeof random);
  if (status == Status::ok) [[likely]]
    token = Token::from_random(random);
  return status;
}

}  // namespace holdfast
