// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_hold.hpp"

#include "holdfast/asio/async_handle.hpp"

namespace holdfast {

// ---- Handles -----------------------------------------------------------------------------------------------------

void AsyncHold::enter(AsyncHandle& handle) noexcept {
  handle.next_ = handles_;
  handles_ = &handle;
}

void AsyncHold::leave(AsyncHandle& handle) {
  cancel(handle);
  if (handle.signal_ != nullptr) --watchers_;
  AsyncHandle** place = &handles_;
  while (*place != &handle) place = &(*place)->next_;
  *place = handle.next_;
}

void AsyncHold::end() {
  loop().sleep(*this, Instant::max());
  if (loop().telling() == this) loop().set_telling(nullptr);
}

// ---- Operations --------------------------------------------------------------------------------------------------

void AsyncHold::begin_operation(Completion& completion, AsyncHandle& handle) noexcept {
  completion_ = &completion;
  user_ = &handle;
  count_before_ = count();
}

Completion& AsyncHold::end_operation(Call call, Status status) noexcept {
  if (call == Call::acquire && status == Status::ok) user_->share_.count_in(tally_, count());
  if (call == Call::release && count() < count_before_) user_->share_.count_out(tally_);
  Completion& completion = *completion_;
  completion_ = nullptr;
  user_ = nullptr;
  return completion;
}

Status AsyncHold::post_release(AsyncHandle& handle) {
  const std::uint32_t before = count();
  const Status status = post_release();
  if (count() < before) handle.share_.count_out(tally_);
  return status;
}

void AsyncHold::start_wait_lost(Completion& completion, AsyncHandle& handle) {
  const Instant now = loop().begin();
  if (configuration_ != Status::ok) return loop().complete(completion, configuration_);
  if (handle.lost_completion_ != nullptr) return loop().complete(completion, Status::already_held);
  if (now >= valid_until()) return loop().complete(completion, Status::not_held);
  handle.lost_completion_ = &completion;
  ++watchers_;
  rest();
}

void AsyncHold::set_lost_signal(asio::cancellation_signal* signal, AsyncHandle& handle) {
  if (handle.signal_ != nullptr) --watchers_;
  handle.signal_ = signal;
  if (signal != nullptr) ++watchers_;
  rest();
}

void AsyncHold::cancel(AsyncHandle& handle) {
  if (orphaned()) return loop().leave_to_parent();
  (void)loop().begin();
  if (user_ == &handle) cancel_doing();
  tell_waiter(handle, Status::cancelled);
  rest();
}

void AsyncHold::cancel() {
  if (orphaned()) return loop().leave_to_parent();
  (void)loop().begin();
  if (user_ != nullptr) cancel_doing();
  tell_waiters(Status::cancelled);
  rest();
}

void AsyncHold::cancel_operation(Completion& completion, AsyncHandle& handle) {
  if (&completion == completion_) return cancel_doing();
  if (&completion != handle.lost_completion_) return;
  tell_waiter(handle, Status::cancelled);
  rest();
}

void AsyncHold::tell_waiter(AsyncHandle& handle, Status status) {
  if (handle.lost_completion_ == nullptr) return;
  loop().complete(*handle.lost_completion_, status);
  handle.lost_completion_ = nullptr;
  --watchers_;
}

void AsyncHold::tell_waiters(Status status) {
  if (watchers_ == 0) return;
  for (AsyncHandle* handle = handles_; handle != nullptr; handle = handle->next_) tell_waiter(*handle, status);
}

// ---- Telling -----------------------------------------------------------------------------------------------------

void AsyncHold::tell_soon(Keeping::News news) {
  keeping_.note(news);
  if (keeping_.has_news()) loop().await_telling(untold_place_);
}

// Whoever is called may destroy the locks, and with the last one the hold, and signals with them. A callback may have taken a
// signal away, so each is looked up when it is its turn.
void AsyncHold::tell() {
  untold_place_.unlink();
  Keeping::Callback call = nullptr;
  const Keeping::News news = keeping_.take_news(call);
  if (news == Keeping::News::none) return;
  AsyncLoop& loop = this->loop();
  loop.set_telling(this);
  if (call != nullptr) call(keeping_.options().context);
  if (news != Keeping::News::lost || loop.telling() != this) return;
  for (AsyncHandle* handle = handles_; handle != nullptr; handle = handle->next_)
    handle->signal_due_ = handle->signal_ != nullptr;
  while (loop.telling() == this) {
    asio::cancellation_signal* const signal = next_due_signal();
    if (signal == nullptr) return;
    signal->emit(asio::cancellation_type::terminal);
  }
}

asio::cancellation_signal* AsyncHold::next_due_signal() noexcept {
  for (AsyncHandle* handle = handles_; handle != nullptr; handle = handle->next_) {
    if (!handle->signal_due_) continue;
    handle->signal_due_ = false;
    if (handle->signal_ != nullptr) return handle->signal_;
  }
  return nullptr;
}

}  // namespace holdfast
