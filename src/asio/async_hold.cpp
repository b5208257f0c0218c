// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_hold.hpp"

namespace holdfast {

// ---- Questions ---------------------------------------------------------------------------------------------------

Instant AsyncHold::valid_until() const noexcept { return orphaned() ? Instant() : keeping_.valid_until(); }

bool AsyncHold::held() const noexcept { return !orphaned() && keeping_.held(); }

Duration AsyncHold::remaining() const noexcept { return orphaned() ? Duration::zero() : keeping_.remaining(); }

bool AsyncHold::at_risk() const noexcept { return !orphaned() && keeping_.at_risk(); }

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

Status AsyncHold::keep(const KeepOptions& options) noexcept { return keeping_.set_options(options, held()); }

void AsyncHold::tell_soon(Keeping::News news) {
  keeping_.note(news);
  if (keeping_.has_news()) loop_.await_telling(untold_place_);
}

// Whoever is called may destroy the lock, and the signal with it.
void AsyncHold::tell() {
  untold_place_.unlink();
  Keeping::Callback call = nullptr;
  const Keeping::News news = keeping_.take_news(call);
  if (news == Keeping::News::none) return;
  if (call != nullptr) {
    bool gone = false;
    gone_ = &gone;
    call(keeping_.options().context);
    if (gone) return;
    gone_ = nullptr;
  }
  // Looked up only now: the callback may have taken it away.
  if (news == Keeping::News::lost && signal_ != nullptr) signal_->emit(asio::cancellation_type::terminal);
}

}  // namespace holdfast
