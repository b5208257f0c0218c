// SPDX-License-Identifier: MIT
#include "holdfast/async_hold.hpp"

namespace holdfast {

// ---- Questions ---------------------------------------------------------------------------------------------------

Instant AsyncHold::valid_until() const noexcept {
  if (orphaned()) return {};
  return Instant::from_nanoseconds(valid_until_.load());
}

bool AsyncHold::held() const noexcept {
  const Instant until = valid_until();
  return until != Instant() && read_clock() < until;
}

Duration AsyncHold::remaining() const noexcept {
  const Instant until = valid_until();
  const Instant now = read_clock();
  return now < until ? until - now : Duration::zero();
}

bool AsyncHold::at_risk() const noexcept {
  const Instant now = read_clock();
  return now < valid_until() && now.nanoseconds() >= risky_from_.load();
}

// ---- Operations --------------------------------------------------------------------------------------------------

void AsyncHold::start_wait_lost(Completion& completion) {
  const Instant now = loop_.begin();
  if (configuration_ != Status::ok) return loop_.complete(completion, configuration_);
  if (lost_completion_ != nullptr) return loop_.complete(completion, Status::already_held);
  if (!held(now)) return loop_.complete(completion, Status::not_held);
  lost_completion_ = &completion;
  rest();
}

void AsyncHold::set_lost_signal(asio::cancellation_signal* signal) {
  signal_ = signal;
  rest();
}

void AsyncHold::cancel() {
  if (orphaned()) return loop_.leave_to_parent();
  (void)loop_.begin();
  if (completion_ != nullptr) cancel_operation(*completion_);
  if (lost_completion_ != nullptr) cancel_operation(*lost_completion_);
}

void AsyncHold::cancel_operation(Completion& completion) {
  if (&completion == completion_) return cancel_doing();
  if (&completion != lost_completion_) return;
  tell_waiter(Status::cancelled);
  rest();
}

void AsyncHold::tell_waiter(Status status) {
  if (lost_completion_ == nullptr) return;
  loop_.complete(*lost_completion_, status);
  lost_completion_ = nullptr;
}

// ---- Keeping and telling -----------------------------------------------------------------------------------------

Status AsyncHold::keep(const KeepOptions& options) noexcept {
  if (!options.valid()) return Status::invalid_argument;
  if (held()) return Status::already_held;
  keep_ = options;
  return Status::ok;
}

void AsyncHold::begin_hold(Instant granted_at) noexcept {
  granted_at_ = granted_at;
  ticked_at_.set(granted_at);
  risk_told_ = loss_told_ = false;
  forget_untold();
}

void AsyncHold::note_told(Told told) {
  if (letting_go_) return;  // Nobody is told anything once a release has begun.
  if (told == Told::at_risk && untold_ != Told::nothing) return;
  untold_ = told;
  loop_.await_telling(untold_place_);
}

// Whoever is called may destroy the lock, and the signal with it.
void AsyncHold::tell() {
  untold_place_.unlink();
  const Told told = untold_;
  untold_ = Told::nothing;
  if (told == Told::nothing) return;
  bool& once = told == Told::lost ? loss_told_ : risk_told_;
  if (once) return;
  once = true;
  const auto call = told == Told::lost ? keep_.on_lost : keep_.on_at_risk;
  if (call != nullptr) {
    bool gone = false;
    gone_ = &gone;
    call(keep_.context);
    if (gone) return;
    gone_ = nullptr;
  }
  // Looked up only now: the callback may have taken it away.
  if (told == Told::lost && signal_ != nullptr) signal_->emit(asio::cancellation_type::terminal);
}

}  // namespace holdfast
