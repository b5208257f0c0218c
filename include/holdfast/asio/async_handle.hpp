// SPDX-License-Identifier: MIT
//
// AsyncHandle is the face that all locks of the Asio clients have, on one node and on several: a handle of a hold, with
// operations that call a handler. A hold has one operation at a time, through whichever of its handles, and each handle may
// wait by async_wait_lost() beside it. Not used by itself: see AsyncLock and AsyncQuorumLock.
#pragma once

#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <cstdint>
#include <system_error>
#include <utility>

#include "holdfast/asio/async_hold.hpp"
#include "holdfast/asio/async_loop.hpp"
#include "holdfast/core/hold_share.hpp"
#include "holdfast/core/keep_options.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

class AsyncHandle : private OperationOwner {
 public:
  AsyncHandle(const AsyncHandle&) = delete;
  AsyncHandle& operator=(const AsyncHandle&) = delete;

  // Attempts until the lock is granted or `wait` is over (wait_forever: no end; zero: one attempt); the last attempt is made
  // when it is, unless one is on its way then, and may take a request timeout more. That is the end, whatever the servers and
  // the connections do. Waits, and lives through failures, as the blocking locks do.
  // Errors: those of BlockingLock::acquire(), or of QuorumLock::acquire(); too_many_requests while another operation of
  // this hold waits; not_connected, at once, of a client that is closed or was never told where to connect. On one node also
  // too_many_requests when AsyncLimits::kept has no place for the hold, which is let go of, and there is no time left to try
  // again; on several, when a majority has no room for one more request, and invalid_argument with a lease above the quorum's
  // max_lease.
  template <class Token>
  auto async_acquire(Duration wait, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler, Duration given) {
          initiate(std::move(handler), [&](Completion& completion) { hold_->start_acquire(given, completion, *this); });
        },
        token, wait);
  }
  // One attempt. Errors: as above.
  template <class Token>
  auto async_try_acquire(Token&& token) {
    return async_acquire(Duration::zero(), std::forward<Token>(token));
  }
  // Extends the lease, counted from now; on several nodes also takes the lock anew where it was lost while a majority holds it.
  // A failure leaves the hold as it is until valid_until(): try again.
  // Errors: not_held, lock_lost (final); timed_out, no_quorum and the like: not extended as far as we know.
  template <class Token>
  auto async_renew(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) {
          initiate(std::move(handler),
                   [&](Completion& completion) { hold_->start_renew(Duration::zero(), completion, *this); });
        },
        token);
  }
  // The same with a bound of its own on how long it may take. Errors: as above; invalid_argument below timeout_min.
  template <class Token>
  auto async_renew(Duration timeout, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler, Duration given) {
          const Duration bound = given < timeout_min ? Duration(-1) : given;
          initiate(std::move(handler), [&](Completion& completion) { hold_->start_renew(bound, completion, *this); });
        },
        token, timeout);
  }
  // Lets go and waits for the server's word; on several nodes until a majority has nothing of the hold any more. Whatever the
  // outcome, this acquisition is over from the call on; where the outcome is unknown, a compensation follows by itself.
  // Errors: not_held, lock_lost (there was nothing of ours to release), timed_out and the like; too_many_requests while another
  // operation of this hold waits: then nothing is let go of.
  template <class Token>
  auto async_release(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) {
          initiate(std::move(handler), [&](Completion& completion) { hold_->start_release(completion, *this); });
        },
        token);
  }
  // Completed with lock_lost when the hold is lost, with no error when it has been released, as often as it was acquired and
  // through whichever handle. Errors: not_held, at once; already_held while another one of this handle waits; cancelled.
  template <class Token>
  auto async_wait_lost(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) {
          initiate(std::move(handler), [&](Completion& completion) { hold_->start_wait_lost(completion, *this); });
        },
        token);
  }
  // Emits cancellation_type::terminal when a hold is lost, after on_lost has returned: bound to a coroutine's slot it ends the
  // work that needed the lock. nullptr: none. Each handle has one. The signal must outlive the lock, or be taken away before;
  // on_lost may do either.
  void set_lost_signal(asio::cancellation_signal* signal) {
    if (!refused()) hold_->set_lost_signal(signal, *this);
  }
  // Lets go without waiting. Errors: not_held, lock_lost; too_many_requests while an operation of this hold waits, and nothing
  // is let go of. Or too_many_requests with the lock not held any more, where there is no place for the release:
  // - On one node: AsyncLimits::requests / 2 releases that nobody waits for are on their way. The server is told when one of
  //   them has been answered, but only if the hold still has a handle; else the lease ends it. A destructor posts as well: who
  //   lets go of many at once waits for them, by async_release().
  // - On several: some node had no place. Its release follows when there is one, while the hold has a handle; or the lease
  //   ends it there.
  Status post_release() { return refused() ? refusal_ : hold_->post_release(*this); }
  // As BlockingLock::forget_loss(). Errors: as there; too_many_requests while an operation of this hold waits.
  [[nodiscard]] Status forget_loss() { return refused() ? refusal_ : hold_->forget_loss(); }
  // Completes the operation that waits, if it was started through this object, and async_wait_lost(), with Status::cancelled.
  // What a cancelled acquire may have taken is released.
  void cancel() {
    if (!refused()) hold_->cancel(*this);
  }

  // ok; invalid_argument when key or timing are outside their limits; too_many_requests when the owner has no place for the
  // hold of one name more. Then every operation says so, too.
  [[nodiscard]] Status configuration() const noexcept { return refused() ? refusal_ : hold_->configuration(); }
  // How later holds are kept alive, and whom to tell; callbacks come in a turn of the loop, where anything may be used. It is
  // the hold's, whichever handle says it. Errors: invalid_argument, already_held.
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept { return refused() ? refusal_ : hold_->keep(options); }
  // The application is alive; see KeepOptions::liveness. Any thread.
  void tick() noexcept {
    if (!refused()) hold_->tick();
  }

  // Any thread; no I/O. See BlockingLock.
  [[nodiscard]] bool held() const noexcept { return !refused() && hold_->held(); }
  [[nodiscard]] bool held(Instant now) const noexcept { return now < valid_until(); }
  [[nodiscard]] Instant valid_until() const noexcept { return refused() ? Instant() : hold_->valid_until(); }
  [[nodiscard]] Duration remaining() const noexcept { return refused() ? Duration::zero() : hold_->remaining(); }
  [[nodiscard]] bool at_risk() const noexcept { return !refused() && hold_->at_risk(); }
  // How often it was acquired and not released, through all handles; 0 when it is not held.
  [[nodiscard]] std::uint32_t hold_count() const noexcept { return held() ? hold_->count() : 0; }

  [[nodiscard]] asio::any_io_executor get_executor() const noexcept { return loop().executor(); }
  // In a forked child: the hold is the parent's, and operations say Status::forked.
  [[nodiscard]] bool orphaned() const noexcept { return loop().forked(); }

 protected:
  // attach() or refuse() follows.
  AsyncHandle() noexcept = default;
  ~AsyncHandle() override = default;

  void attach(AsyncHold& hold) noexcept {
    hold_ = &hold;
    refusal_ = Status::ok;
    hold.enter(*this);
  }
  // It has no hold. REQUIRES: it has left the one that it had.
  void refuse(AsyncLoop& loop, Status why) noexcept {
    loop_ = &loop;
    refusal_ = why;
  }
  [[nodiscard]] bool refused() const noexcept { return refusal_ != Status::ok; }
  [[nodiscard]] Status refusal() const noexcept { return refusal_; }
  [[nodiscard]] AsyncHold& hold() const noexcept { return *hold_; }
  [[nodiscard]] AsyncLoop& loop() const noexcept { return refused() ? *loop_ : hold_->loop(); }
  [[nodiscard]] const HoldShare& share() const noexcept { return share_; }

  template <class Handler, class Start>
  void initiate(Handler&& handler, Start start) {
    loop().initiate(std::forward<Handler>(handler), *this, [&](Completion& completion) {
      if (refused()) return loop().complete(completion, refusal_);
      start(completion);
    });
  }

 private:
  friend class AsyncHold;
  friend class AsyncLockSet;

  void cancel_operation(Completion& completion) final {
    if (!refused()) hold_->cancel_operation(completion, *this);
  }

  union {
    AsyncHold* hold_ = nullptr;
    AsyncLoop* loop_;  // Of one that was refused.
  };
  AsyncHandle* next_ = nullptr;            // Of the hold's handles.
  Completion* lost_completion_ = nullptr;  // Of async_wait_lost().
  asio::cancellation_signal* signal_ = nullptr;
  HoldShare share_;
  Status refusal_ = Status::invalid_argument;  // Why it has no hold.
  bool signal_due_ = false;
};

}  // namespace holdfast
