// SPDX-License-Identifier: MIT
#include "holdfast/core/dialer.hpp"

#include "holdfast/proto/assert.hpp"

namespace holdfast {

void Dialer::start(Duration connect_timeout, std::uint8_t count, bool named, std::uint8_t first) noexcept {
  HOLDFAST_ASSERT(named || count != 0);
  const Duration most = pause_max_;
  *this = Dialer();
  pause_max_ = most;
  connect_timeout_ = connect_timeout;
  address_count_ = count;
  address_ = first;
  named_ = named;
  state_ = DialState::waiting;
}

// ---- One attempt -------------------------------------------------------------------------------------------------

void Dialer::begin_attempt(Instant now) noexcept {
  attempt_deadline_ = now + connect_timeout_;
  untried_ = address_count_;
  fresh_ = false;
  // Known addresses are not kept waiting for a resolver that is slow.
  const bool ask = named_ && (address_count_ == 0 || (exhausted_ && !asking_));
  state_ = DialState::next;
  if (ask) resolve(now);
}

void Dialer::resolve(Instant now) noexcept {
  state_ = DialState::resolving;
  address_deadline_ = now;
}

DialAction Dialer::poll_action(Instant now, std::uint16_t random) noexcept {
  if (state_ == DialState::waiting && now >= next_) begin_attempt(now);
  switch (state_) {
    case DialState::off:
    case DialState::waiting:
    case DialState::elsewhere:
    case DialState::handshaking:
    case DialState::ready: return DialAction::none;
    case DialState::resolving:
      if (!asking_) {
        asking_ = true;
        return DialAction::resolve;
      }
      if (now >= attempt_deadline_) fail(Status::name_not_resolved, now, random);
      break;
    case DialState::next: {
      // With several addresses, a silent one leaves time for the next.
      Duration share = (attempt_deadline_ - now) / untried_;
      if (share < address_timeout_min) share = address_timeout_min;
      address_deadline_ = earlier(now + share, attempt_deadline_);
      --untried_;
      state_ = DialState::dialling;
      return DialAction::dial;
    }
    case DialState::dialling:
      if (now < address_deadline_) return DialAction::none;
      go_on(Status::connect_failed, now, random);
      return DialAction::hang_up;
  }
  return DialAction::none;
}

Instant Dialer::poll_timeout() const noexcept {
  switch (state_) {
    case DialState::waiting: return next_;
    case DialState::elsewhere:
    case DialState::next: return Instant();
    case DialState::resolving: return asking_ ? attempt_deadline_ : Instant();
    case DialState::dialling: return address_deadline_;
    case DialState::off:
    case DialState::handshaking:
    case DialState::ready: break;
  }
  return Instant::max();
}

// ---- What came of it ---------------------------------------------------------------------------------------------

void Dialer::handle_resolved(std::uint8_t count, Instant now, std::uint16_t random) noexcept {
  HOLDFAST_ASSERT(count <= addresses_max && (count == 0 || takes_addresses()));
  asking_ = stale_ = false;
  if (count != 0) {
    address_count_ = count;
    address_ = 0;
    exhausted_ = false;
  }
  // Too late for its attempt, in time for the next, which is due. Where that fails, too, the pauses go on growing.
  if (state_ == DialState::waiting && count != 0) next_ = Instant();
  if (state_ != DialState::resolving) return;
  attempt_deadline_ = attempt_deadline_ + (now - address_deadline_);  // The resolver's time is not the attempt's.
  if (count != 0) {
    fresh_ = true;
    untried_ = count;
  } else if (untried_ == 0) {
    return fail(address_count_ == 0 ? Status::name_not_resolved : failure_, now, random);
  }
  state_ = DialState::next;
}

void Dialer::handle_dialled() noexcept {
  HOLDFAST_ASSERT(state_ == DialState::dialling);
  state_ = DialState::handshaking;
}

void Dialer::handle_dial_failed(Status why, Instant now, std::uint16_t random) noexcept {
  HOLDFAST_ASSERT(state_ == DialState::dialling);
  go_on(why, now, random);
}

void Dialer::handle_ready(Instant now) noexcept {
  HOLDFAST_ASSERT(state_ == DialState::handshaking);
  state_ = DialState::ready;
  guided_ = false;
  failure_ = Status::ok;
  exhausted_ = false;
  address_deadline_ = now;
}

void Dialer::handle_closed(Status why, bool used, Instant now, std::uint16_t random) noexcept {
  HOLDFAST_ASSERT(state_ == DialState::handshaking || state_ == DialState::ready);
  if (state_ == DialState::handshaking) {
    // Another address may be another server. But one that had only what others left of the time comes first next time: else a
    // silent one could take it each time.
    if (untried_ + 1 == address_count_) advance();
    return fail(why, now, random);
  }
  if (lasted(now)) hurry();
  // Connections that end soon, one after the other, are not made as fast as they end.
  if (delay_ != Duration::zero() && !used) return fail(why, now, random);
  failure_ = why;
  state_ = DialState::waiting;
  lost_ = true;
  if (delay_ != Duration::zero()) {
    // A failure between two of them makes the pauses after failures short again. These go on growing.
    static_assert(reconnect_soon_max / (reconnect_delay_min / 2) < INT8_MAX, "the factor must stay below 256");
    const Duration before = reconnect_delay_min / 2 * ended_soon_;
    if (delay_ < before) delay_ = before;
    if (before < reconnect_soon_max) ended_soon_ = static_cast<std::uint8_t>(2 * ended_soon_);
    return pause(reconnect_soon_max, now, random);
  }
  next_ = now;
  delay_ = reconnect_delay_min / 2;
}

void Dialer::go_to(bool known, Instant now, Instant deadline) noexcept {
  HOLDFAST_ASSERT(state_ == DialState::elsewhere || due(now));
  attempt_deadline_ = deadline;
  address_count_ = untried_ = known ? 1 : 0;
  address_ = 0;
  moves_ += addresses_max;
  named_ = guided_ = true;
  fresh_ = known;
  exhausted_ = false;
  stale_ = asking_;
  state_ = DialState::next;
  if (known) return;
  failure_ = Status::name_not_resolved;
  state_ = DialState::elsewhere;
  if (stale_) return;
  // As if it had been asked for when it would have to answer at once to leave the host what is left until the deadline.
  attempt_deadline_ = now + connect_timeout_;
  resolve(attempt_deadline_ - (deadline - now));
}

bool Dialer::go_on_here(Instant now) noexcept {
  HOLDFAST_ASSERT(state_ == DialState::elsewhere);
  if (untried_ == 0 || now >= attempt_deadline_) return false;
  address_ = static_cast<std::uint8_t>(address_count_ - untried_);
  state_ = DialState::next;
  return true;
}

// An address has failed: on to the next, to a new question for the name, or to the end of the attempt.
void Dialer::go_on(Status why, Instant now, std::uint16_t random) noexcept {
  failure_ = why;
  advance();
  exhausted_ = exhausted_ || untried_ == 0;
  if (now >= attempt_deadline_) return fail(why, now, random);  // The next attempt begins with the next address.
  if (untried_ != 0) {
    state_ = DialState::next;
    return;
  }
  // The name may mean another address by now.
  if (named_ && !fresh_ && !asking_)
    resolve(now);
  else
    fail(why, now, random);
}

void Dialer::advance() noexcept {
  if (++address_ >= address_count_) address_ = 0;
}

// A failure keeps the next attempt away for a growing while.
void Dialer::fail(Status why, Instant now, std::uint16_t random) noexcept {
  failure_ = why;
  if (guided_) [[unlikely]] {
    state_ = DialState::elsewhere;
    return;
  }
  state_ = DialState::waiting;
  if (lost_) delay_ = Duration::zero();  // The first failure after a connection that was of use.
  lost_ = false;
  pause(pause_max_, now, random);
}

// Half of the delay to all of it.
void Dialer::pause(Duration most, Instant now, std::uint16_t random) noexcept {
  delay_ *= 2;
  if (delay_ < reconnect_delay_min) delay_ = reconnect_delay_min;
  if (delay_ > most) delay_ = most;
  next_ = now + delay_ / 2 + delay_ / 2 * random / UINT16_MAX;
}

}  // namespace holdfast
