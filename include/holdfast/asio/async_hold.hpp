// SPDX-License-Identifier: MIT
//
// AsyncHold is what a hold of the Asio clients is, on one node and on several, whatever lock objects are handles of it: the one
// operation in progress, whom to tell of a loss, and what any thread may ask. Not used by itself: see AsyncHandle, whose
// calls these are and where each is described.
#pragma once

#include <asio/cancellation_signal.hpp>
#include <cstdint>

#include "holdfast/asio/async_loop.hpp"
#include "holdfast/core/hold_share.hpp"
#include "holdfast/core/keep_options.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/lock_set_task.hpp"
#include "holdfast/core/lock_task.hpp"
#include "holdfast/detail/keeping.hpp"
#include "holdfast/detail/linked_place.hpp"

namespace holdfast {

class AsyncHandle;

class AsyncHold : protected Sleeper {
 public:
  AsyncHold(const AsyncHold&) = delete;
  AsyncHold& operator=(const AsyncHold&) = delete;

  [[nodiscard]] virtual AsyncLoop& loop() const noexcept = 0;
  [[nodiscard]] Status configuration() const noexcept { return configuration_; }
  // As its machine counts.
  [[nodiscard]] virtual std::uint32_t count() const noexcept = 0;
  [[nodiscard]] virtual Instant renewal_due() const noexcept = 0;
  // Where it is: see LockSetTask.
  virtual void locate(LockPlace& found) const noexcept = 0;

  // Any thread.
  [[nodiscard]] bool held() const noexcept { return !orphaned() && keeping_.held(); }
  [[nodiscard]] Instant valid_until() const noexcept { return orphaned() ? Instant() : keeping_.valid_until(); }
  [[nodiscard]] Duration remaining() const noexcept { return orphaned() ? Duration::zero() : keeping_.remaining(); }
  [[nodiscard]] bool at_risk() const noexcept { return !orphaned() && keeping_.at_risk(); }
  [[nodiscard]] bool orphaned() const noexcept { return loop().forked(); }
  void tick() noexcept { keeping_.tick(); }

  [[nodiscard]] Status keep(const KeepOptions& options) noexcept { return keeping_.set_options(options, held()); }

  // Handles enter and leave. What one waits for is cancelled when it leaves.
  void enter(AsyncHandle& handle) noexcept;
  void leave(AsyncHandle& handle);
  // Each through a handle.
  virtual void start_acquire(Duration wait, Completion& completion, AsyncHandle& handle) = 0;
  // A timeout of zero is the client's request timeout; one below is refused.
  virtual void start_renew(Duration timeout, Completion& completion, AsyncHandle& handle) = 0;
  virtual void start_release(Completion& completion, AsyncHandle& handle) = 0;
  void start_wait_lost(Completion& completion, AsyncHandle& handle);
  void set_lost_signal(asio::cancellation_signal* signal, AsyncHandle& handle);
  [[nodiscard]] Status post_release(AsyncHandle& handle);
  void cancel(AsyncHandle& handle);
  void cancel_operation(Completion& completion, AsyncHandle& handle);
  virtual Status post_release() = 0;
  [[nodiscard]] virtual Status forget_loss() = 0;
  // Of all handles.
  void cancel();

 protected:
  AsyncHold() noexcept = default;
  ~AsyncHold() override = default;
  // The last that a destructor of what is derived from it calls.
  void end();

  // What is in progress is not wanted any more.
  virtual void cancel_doing() = 0;
  // Sleeps until time alone gives it something to do.
  virtual void rest() = 0;

  void begin_operation(Completion& completion, AsyncHandle& handle) noexcept;
  [[nodiscard]] bool operating() const noexcept { return completion_ != nullptr; }
  // What it has changed is its handle's. Then complete() what this returns, and see to what is due.
  [[nodiscard]] Completion& end_operation(Call call, Status status) noexcept;
  // A handle with this share has gone. The releases that it has left to make are due when no operation is in progress.
  void note_gone(const HoldShare& share) noexcept { tally_.leave(share); }
  [[nodiscard]] std::uint32_t take_due() noexcept { return tally_.take_due(); }

  // Somebody wants to know of a doubt or a loss.
  [[nodiscard]] bool watched() const noexcept { return watchers_ != 0 || keeping_.tells(); }
  // In this turn or the next, unless a release has begun.
  void tell_soon(Keeping::News news);
  // Who waits for the end of the hold.
  void tell_waiters(Status status);

  Keeping keeping_;

 private:
  friend class AsyncLoop;
  friend class AsyncLockSet;

  void tell_waiter(AsyncHandle& handle, Status status);
  void tell();
  // Of a handle that has not been told.
  [[nodiscard]] asio::cancellation_signal* next_due_signal() noexcept;

  Completion* completion_ = nullptr;  // Of what is in progress,
  AsyncHandle* user_ = nullptr;       // and through which handle it is.
  AsyncHandle* handles_ = nullptr;
  LinkedPlace<AsyncHold> untold_place_{this};
  HoldTally tally_;
  std::uint32_t count_before_ = 0;  // What is in progress.
  std::uint32_t watchers_ = 0;      // Waiters and signals of the handles.

 protected:
  Status configuration_ = Status::ok;
};

}  // namespace holdfast
