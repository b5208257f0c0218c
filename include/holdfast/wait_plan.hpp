// SPDX-License-Identifier: MIT
//
// WaitPlan decides when one waiting acquire() tries again: when it is woken, when a subscription has just been confirmed,
// when the hold in the way has run out, or when it has been long enough; and never before its floor. It does no I/O,
// reads no clock and draws no random bytes.   Not thread-safe: one owner.   No heap.
#pragma once

#include <cstdint>

#include "holdfast/instant.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/lock_kind.hpp"

namespace holdfast {

// Subscriptions that tell of every release from now on: a bit for each node.
using ListenSet = std::uint16_t;

// How a delay is drawn out of the longest one.
enum class WaitSpread : std::uint8_t {
  upper_half,  // Half of it to all: waiters of one server.
  whole,       // Over its whole length: those who split the votes of a quorum between them do not do so for ever.
};

template <WaitSpread spread>
class WaitPlanOf {
 public:
  struct Settings {
    Instant deadline = Instant::max();
    Duration max_poll = max_poll_default;
    Duration unknown_poll = Duration::max();  // Where a refusal does not tell the remaining time, if shorter.
  };

  void begin(const Settings& settings) noexcept {
    settings_ = settings;
    next_try_ = floor_ = Instant();
    delay_ = retry_delay_min;
    listened_ = 0;
  }

  // A. Questions.
  // The next attempt would be the last: it is made at the deadline.
  [[nodiscard]] bool last(Instant now) const noexcept { return now + timeout_min > settings_.deadline; }
  [[nodiscard]] bool due(Instant now, bool woken, ListenSet confirmed) const noexcept {
    return now >= floor_ && (wanted(woken, confirmed) || now >= next_try_ || now >= settings_.deadline);
  }
  // When due() will be true if nothing happens until then.
  [[nodiscard]] Instant next(bool woken, ListenSet confirmed) const noexcept {
    if (wanted(woken, confirmed)) return floor_;
    return later(floor_,
                 earlier(next_try_, settings_.deadline));  // A deadline that has passed waits for the floor, too.
  }
  // No try comes before this: no loop turns faster.
  [[nodiscard]] Instant floor() const noexcept { return floor_; }

  // B. Inputs. `random` is drawn evenly from all its values.
  // A try is made: what is confirmed by now was listened to before it.
  void begin_attempt(Instant now, ListenSet confirmed, Duration floor = retry_delay_min) noexcept {
    listened_ = confirmed;
    floor_ = now + floor;
  }
  // The next try must come no sooner.
  void set_floor(Instant floor) noexcept { floor_ = floor; }
  // Another release is listened for, or a connection was lost.
  void forget(ListenSet lost) noexcept { listened_ = static_cast<ListenSet>(listened_ & ~lost); }
  // The try is over. `remaining` is that of the hold in the way, in milliseconds, as PTTL says it.
  void plan(Instant now, bool busy, ListenSet confirmed, std::int64_t remaining, std::uint16_t random) noexcept {
    if (!busy || confirmed == 0) {
      delay_ = delay_ * 2 < retry_delay_max ? delay_ * 2 : retry_delay_max;
      next_try_ = now + drawn(delay_, random);
      return;
    }
    // Behind the end of the hold in the way: its server expires it a little late, and those who wait come one by one.
    constexpr Duration expiry_jitter = std::chrono::milliseconds(20);
    constexpr std::int64_t milliseconds_max = poll_max.count() / 1'000'000;
    delay_ = retry_delay_min;
    Duration length = settings_.unknown_poll;
    if (remaining >= 0 && remaining < milliseconds_max)
      length = std::chrono::milliseconds(remaining) + drawn(expiry_jitter, random);
    else if (remaining == -2)  // It was released between the try and the question.
      length = retry_delay_min;
    if (length > settings_.max_poll) length = settings_.max_poll;
    next_try_ = now + (spread == WaitSpread::whole ? length + drawn(retry_delay_min, random) : length);
  }

 private:
  [[nodiscard]] bool wanted(bool woken, ListenSet confirmed) const noexcept {
    return woken || (confirmed & ~listened_) != 0;
  }
  [[nodiscard]] Duration drawn(Duration most, std::uint16_t random) const noexcept {
    if (spread == WaitSpread::whole) return retry_delay_min + most * random / UINT16_MAX;
    return most / 2 + most / 2 * random / UINT16_MAX;
  }

  Settings settings_;
  Instant next_try_;
  Instant floor_;
  Duration delay_ = retry_delay_min;
  ListenSet listened_ = 0;  // Confirmed before the last try.
};

using WaitPlan = WaitPlanOf<WaitSpread::upper_half>;
using QuorumWaitPlan = WaitPlanOf<WaitSpread::whole>;

}  // namespace holdfast
