// SPDX-License-Identifier: MIT
//
// AsyncHold is the face that all locks of the Asio clients have, on one node and on several: operations with a handler,
// whom to tell of a loss, and what any thread may ask. One operation at a time, beside async_wait_lost(). Not used by
// itself: see AsyncLock and AsyncQuorumLock.
#pragma once

#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <cstdint>
#include <system_error>
#include <utility>

#include "holdfast/asio/async_loop.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/core/keep_options.hpp"
#include "holdfast/detail/keeping.hpp"
#include "holdfast/detail/linked_place.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

class AsyncHold : private OperationOwner, protected Sleeper {
 public:
  AsyncHold(const AsyncHold&) = delete;
  AsyncHold& operator=(const AsyncHold&) = delete;

  // Attempts until the lock is granted or `wait` is over (wait_forever: no end; zero: one attempt); the last attempt is made
  // when it is, unless one is on its way then, and may take a request timeout more. That is the end, whatever the servers and
  // the connections do. Waits, and lives through failures, as the blocking locks do.
  // Errors: those of BlockingLock::acquire(), or of QuorumLock::acquire(); too_many_requests while another operation of
  // this lock waits; not_connected, at once, of a client that is closed or was never told where to connect. On one node also
  // too_many_requests when AsyncLimits::kept has no place for the hold, which is let go of, and there is no time left to try again; on several, when a majority has
  // no room for one more request, and invalid_argument with a lease above the quorum's max_lease.
  template <class Token>
  auto async_acquire(Duration wait, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler, Duration given) {
          initiate(std::move(handler), [&](Completion& completion) { start_acquire(given, completion); });
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
          initiate(std::move(handler), [&](Completion& completion) { start_renew(Duration::zero(), completion); });
        },
        token);
  }
  // The same with a bound of its own on how long it may take. Errors: as above; invalid_argument below timeout_min.
  template <class Token>
  auto async_renew(Duration timeout, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler, Duration given) {
          const Duration bound = given < timeout_min ? Duration(-1) : given;
          initiate(std::move(handler), [&](Completion& completion) { start_renew(bound, completion); });
        },
        token, timeout);
  }
  // Lets go and waits for the server's word; on several nodes until a majority has nothing of the hold any more. Whatever the
  // outcome, this acquisition is over from the call on; where the outcome is unknown, a compensation follows by itself.
  // Errors: not_held, lock_lost (there was nothing of ours to release), timed_out and the like.
  template <class Token>
  auto async_release(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) {
          initiate(std::move(handler), [&](Completion& completion) { start_release(completion); });
        },
        token);
  }
  // Completed with lock_lost when the hold is lost, with no error when it has been released. Errors: not_held, at once;
  // already_held while another one waits; cancelled.
  template <class Token>
  auto async_wait_lost(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) {
          initiate(std::move(handler), [&](Completion& completion) { start_wait_lost(completion); });
        },
        token);
  }
  // Emits cancellation_type::terminal when a hold is lost, after on_lost has returned: bound to a coroutine's slot it ends the
  // work that needed the lock. nullptr: none. The signal must outlive the lock, or be taken away before; on_lost may do either.
  void set_lost_signal(asio::cancellation_signal* signal);
  // Completes the operation that waits, and async_wait_lost(), with Status::cancelled. What a cancelled acquire may have
  // taken is released.
  void cancel();

  // ok, or invalid_argument when key or timing are outside their limits: then every operation says so, too.
  [[nodiscard]] Status configuration() const noexcept { return configuration_; }
  // How later holds are kept alive, and whom to tell; callbacks come in a turn of the loop, where anything may be used.
  // Errors: invalid_argument, already_held.
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept;
  // The application is alive; see KeepOptions::liveness. Any thread.
  void tick() noexcept { keeping_.tick(); }

  // Any thread; no I/O. See BlockingLock.
  [[nodiscard]] bool held() const noexcept;
  [[nodiscard]] bool held(Instant now) const noexcept { return now < valid_until(); }
  [[nodiscard]] Instant valid_until() const noexcept;
  [[nodiscard]] Duration remaining() const noexcept;
  [[nodiscard]] bool at_risk() const noexcept;

  [[nodiscard]] asio::any_io_executor get_executor() const noexcept { return loop_.executor(); }
  // In a forked child: the hold is the parent's, and operations say Status::forked.
  [[nodiscard]] bool orphaned() const noexcept { return loop_.forked(); }

 protected:
  explicit AsyncHold(AsyncLoop& loop) noexcept : loop_(loop) {}
  ~AsyncHold() override {
    if (gone_ != nullptr) *gone_ = true;
  }

  template <class Handler, class Start>
  void initiate(Handler&& handler, Start start) {
    loop_.initiate(std::forward<Handler>(handler), *this, start);
  }
  virtual void start_acquire(Duration wait, Completion& completion) = 0;
  // A timeout of zero is the client's request timeout; one below is refused.
  virtual void start_renew(Duration timeout, Completion& completion) = 0;
  virtual void start_release(Completion& completion) = 0;
  // What is in progress is not wanted any more.
  virtual void cancel_doing() = 0;
  // Sleeps until time alone gives it something to do.
  virtual void rest() = 0;

  // Somebody wants to know of a doubt or a loss.
  [[nodiscard]] bool watched() const noexcept {
    return lost_completion_ != nullptr || signal_ != nullptr || keeping_.tells();
  }
  // In this turn or the next, unless a release has begun.
  void tell_soon(Keeping::News news);
  void tell_waiter(Status status);

  AsyncLoop& loop_;
  Completion* completion_ = nullptr;  // Of what is in progress.
  Keeping keeping_;
  Status configuration_ = Status::ok;

 private:
  friend class AsyncLoop;

  void cancel_operation(Completion& completion) final;
  void start_wait_lost(Completion& completion);
  void tell();

  Completion* lost_completion_ = nullptr;  // Of async_wait_lost().
  asio::cancellation_signal* signal_ = nullptr;
  bool* gone_ = nullptr;  // While a callback runs: it is told so when the lock is destroyed.
  LinkedPlace<AsyncHold> untold_place_{this};
};

}  // namespace holdfast
