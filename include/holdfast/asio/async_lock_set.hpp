// SPDX-License-Identifier: MIT
//
// AsyncLockSet is LockSet for an Asio loop: several locks of any kinds, on servers and on quorums, all of them or none, within
// one deadline, in the one order that all sets have.
//
//     AsyncHandle* locks[] = {&stock, &orders};      // an AsyncMutex and an AsyncRedlockMutex<3>
//     AsyncLockSet set(locks, 2);
//     set.async_acquire(2s, [&](std::error_code error) { ...; set.async_release(...); });
//
// One operation at a time. Handlers, cancellation and errors: as AsyncClient's. It is an operation of each of its clients and
// quorums: cancel() of any of them ends it, at once where it waits on that one, else before the next lock or renewal. Thread
// rule: all its locks are on one executor, and so is the set; held(), valid_until() and remaining() may be called from any
// thread. Heap: one block, by the constructor. An operation takes a place of AsyncLimits::operations of the first lock's client,
// and each lock one of its own.
#pragma once

#include <asio/async_result.hpp>
#include <cstddef>
#include <memory>
#include <system_error>

#include "holdfast/asio/async_handle.hpp"
#include "holdfast/core/lock_set_task.hpp"

namespace holdfast {

class AsyncLockSet : private OperationOwner {
 public:
  // Sorts the caller's array as LockSet does. REQUIRES: at least one lock; async_connect() was called for each client, and
  // goes where it went; the array, the locks and their clients outlive the set, and the locks are used by nothing else
  // while it is held or acquired.
  AsyncLockSet(AsyncHandle** locks, std::size_t count);
  // Posts the releases of what is left, and completes what waits with Status::cancelled.
  ~AsyncLockSet() override;

  // As LockSet's.
  [[nodiscard]] Status configuration() const noexcept { return configuration_; }

  // As LockSet::acquire(). Errors: as there; too_many_requests while another operation of this set waits; cancelled, and what
  // was taken is let go of.
  template <class Token>
  auto async_acquire(Duration wait, Token&& token) {
    return operate(LockSetTask::Call::acquire, wait, token);
  }
  // One attempt for each. Errors: as above.
  template <class Token>
  auto async_try_acquire(Token&& token) {
    return async_acquire(Duration::zero(), std::forward<Token>(token));
  }
  // As LockSet::renew(). Errors: not_held; the first that one of them met.
  template <class Token>
  auto async_renew(Token&& token) {
    return operate(LockSetTask::Call::renew, Duration::zero(), token);
  }
  // As LockSet::release(). Errors: as above. Cancelled, what is left is let go of without waiting.
  template <class Token>
  auto async_release(Token&& token) {
    return operate(LockSetTask::Call::release, Duration::zero(), token);
  }
  // Lets go without waiting. Errors: not_held; too_many_requests while an operation waits; the first that one of them met.
  Status post_release();
  // Completes the operation that waits with Status::cancelled.
  void cancel();

  // Any thread; no I/O. As LockSet's.
  [[nodiscard]] bool held() const noexcept { return read_clock() < valid_until(); }
  [[nodiscard]] Instant valid_until() const noexcept { return task_.valid_until(); }
  [[nodiscard]] Duration remaining() const noexcept;
  [[nodiscard]] Instant renewal_due() const noexcept { return task_.renewal_due(); }
  // The lock that the last acquire failed at; nullptr after a grant.
  [[nodiscard]] const AsyncHandle* blocker() const noexcept {
    return task_.blocker() == LockSetTask::no_place ? nullptr : locks_[task_.blocker()];
  }

 private:
  // What a lock's handler finds of the set.
  struct Link {
    AsyncLockSet* set;
  };
  static const LockSetTask::Host host;

  template <class Token>
  auto operate(LockSetTask::Call call, Duration wait, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this, call](auto handler, Duration given) {
          loop().initiate(std::move(handler), *this, [&](Completion& completion) { start(call, given, completion); });
        },
        token, wait);
  }
  [[nodiscard]] AsyncLoop& loop() const noexcept { return locks_[0]->loop(); }
  void cancel_operation(Completion& completion) override;
  void start(LockSetTask::Call call, Duration wait, Completion& completion);
  void proceed();
  void answered(std::error_code error);
  void cancel_asked();
  [[nodiscard]] std::uint32_t cancels() const noexcept;

  AsyncHandle** locks_;
  LockSetTask task_;
  std::shared_ptr<Link> link_;
  Completion* completion_ = nullptr;  // Of what is in progress.
  std::uint32_t cancels_ = 0;         // Of its locks' loops, when that began.
  bool asked_ = false;                // The lock at the task's place has an operation of ours.
  Status configuration_ = Status::ok;
};

}  // namespace holdfast
