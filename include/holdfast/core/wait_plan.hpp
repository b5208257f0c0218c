// SPDX-License-Identifier: MIT
//
// WaitPlan decides when one waiting acquire() tries again: when it is woken, when a subscription has just been confirmed,
// when the hold in the way has run out, or when it has been long enough; and never before its floor. It does no I/O,
// reads no clock and draws no random bytes.   Not thread-safe: one owner.   No heap.
//
// worth_waiting() says which outcomes of an attempt a waiting acquire() lives through, on every driver:
//
//     waited out   lock_busy; no_quorum
//                  too_many_requests                 places are given back as replies come
//                  not_connected, connect_failed, name_not_resolved, transport_closed, timed_out, outcome_unknown
//                  read_only, loading, out_of_memory, busy_script, no_script, too_few_replicas, stale_replica, disk_error,
//                  cluster_down, try_again, too_many_clients
//                  system_error                      no descriptor, no memory: others give them back
//     ends it      invalid_argument, not_held, already_held, upgrade_refused, permits_differ, buffer_too_small, lock_lost:
//                  the program's own
//                  cancelled, forked
//                  protocol_error                    no Redis speaks so
//                  tls_failed, auth_required, auth_failed, no_permission, denied, wrong_type, moved, ask, cross_slot, unknown_command,
//                  unknown_service,
//                  server_error, same_machine        somebody must change something first
//                  no_entropy
//
// What is waited out is told when the time is over: acquire() answers with the outcome of its last attempt.
#pragma once

#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

// A bit for each Status; a switch over them, so that a new one is judged.
consteval std::uint64_t outcomes_worth_waiting() noexcept {
  static_assert(status_count <= 64);
  std::uint64_t set = 0;
  for (int index = 0; index < status_count; ++index) switch (static_cast<Status>(index)) {
      case Status::lock_busy:
      case Status::too_many_requests:
      case Status::not_connected:
      case Status::connect_failed:
      case Status::name_not_resolved:
      case Status::transport_closed:
      case Status::timed_out:
      case Status::read_only:
      case Status::loading:
      case Status::out_of_memory:
      case Status::busy_script:
      case Status::no_script:
      case Status::too_few_replicas:
      case Status::stale_replica:
      case Status::disk_error:
      case Status::cluster_down:
      case Status::try_again:
      case Status::too_many_clients:
      case Status::no_quorum:
      case Status::system_error:
      case Status::outcome_unknown: set |= std::uint64_t{1} << index; break;
      case Status::ok:
      case Status::invalid_argument:
      case Status::not_held:
      case Status::already_held:
      case Status::upgrade_refused:
      case Status::permits_differ:
      case Status::buffer_too_small:
      case Status::cancelled:
      case Status::forked:
      case Status::tls_failed:
      case Status::protocol_error:
      case Status::auth_required:
      case Status::auth_failed:
      case Status::no_permission:
      case Status::wrong_type:
      case Status::moved:
      case Status::ask:
      case Status::cross_slot:
      case Status::denied:
      case Status::unknown_command:
      case Status::unknown_service:
      case Status::server_error:
      case Status::lock_lost:
      case Status::same_machine:
      case Status::no_entropy: break;
    }
  return set;
}
// Whether an acquire() that may wait tries again after this outcome of an attempt: see the table above.
[[nodiscard]] constexpr bool worth_waiting(Status status) noexcept {
  return (outcomes_worth_waiting() >> static_cast<unsigned>(status) & 1U) != 0;
}

// Subscriptions that tell of every release from now on: a bit for each node.
using ListenSet = std::uint16_t;

// How a delay is drawn out of the longest one.
enum class WaitSpread : std::uint8_t {
  upper_half,  // Half of it to all: waiters of one server.
  whole,       // Over its whole length: those who split the votes of a quorum between them do not do so for ever.
};

class WaitPlan {
 public:
  struct Settings {
    Instant deadline = Instant::max();
    Duration max_poll = max_poll_default;
    Duration unknown_poll = Duration::max();  // Where a refusal does not tell the remaining time, if shorter.
    WaitSpread spread = WaitSpread::upper_half;
  };

  void begin(const Settings& settings) noexcept {
    settings_ = settings;
    next_try_ = floor_ = Instant();
    delay_nanoseconds_ = delay_least;
    listened_ = 0;
  }

  // A. Questions.
  // The next attempt would be the last: it is made at the deadline, or the driver cannot read its clock.
  [[nodiscard]] bool last(Instant now) const noexcept { return now + timeout_min > settings_.deadline || now.never(); }
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
      delay_nanoseconds_ = delay_nanoseconds_ * 2 < delay_most ? delay_nanoseconds_ * 2 : delay_most;
      next_try_ = now + drawn(Duration(delay_nanoseconds_), random);
      return;
    }
    // Behind the end of the hold in the way: its server expires it a little late, and those who wait come one by one.
    constexpr Duration expiry_jitter = std::chrono::milliseconds(20);
    constexpr std::int64_t milliseconds_max = poll_max.count() / 1'000'000;
    delay_nanoseconds_ = delay_least;
    Duration length = settings_.unknown_poll;
    if (remaining >= 0 && remaining < milliseconds_max)
      length = std::chrono::milliseconds(remaining) + drawn(expiry_jitter, random);
    else if (remaining == -2)  // It was released between the try and the question.
      length = retry_delay_min;
    if (length > settings_.max_poll) length = settings_.max_poll;
    next_try_ = now + (settings_.spread == WaitSpread::whole ? length + drawn(retry_delay_min, random) : length);
  }

 private:
  [[nodiscard]] bool wanted(bool woken, ListenSet confirmed) const noexcept {
    return woken || (confirmed & ~listened_) != 0;
  }
  [[nodiscard]] Duration drawn(Duration most, std::uint16_t random) const noexcept {
    if (settings_.spread == WaitSpread::whole) return retry_delay_min + most * random / UINT16_MAX;
    return most / 2 + most / 2 * random / UINT16_MAX;
  }

  // Half as large as a Duration: of each lock that waits on a loop there is one.
  static_assert(2 * retry_delay_max.count() <= UINT32_MAX);
  static constexpr auto delay_least = static_cast<std::uint32_t>(retry_delay_min.count());
  static constexpr auto delay_most = static_cast<std::uint32_t>(retry_delay_max.count());

  Settings settings_;
  Instant next_try_;
  Instant floor_;
  std::uint32_t delay_nanoseconds_ = delay_least;
  ListenSet listened_ = 0;  // Confirmed before the last try.
};

}  // namespace holdfast
