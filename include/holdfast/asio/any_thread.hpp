// SPDX-License-Identifier: MIT
//
// A lock of an Asio client as any thread may use it: each operation first goes to the client's executor, which must be a
// strand where several threads run the loop.
//
//     on_any_thread(lock).async_acquire(2s, asio::use_future).get();
//
// Cost: a hop to the executor, for which Asio may take the heap (by the handler's associated allocator), and back to the
// handler's own executor. The lock must live until the operation is completed.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>
#include <system_error>
#include <utility>

#include "holdfast/core/instant.hpp"

namespace holdfast {

template <class Lock>
class AnyThread {
 public:
  explicit AnyThread(Lock& lock) noexcept : lock_(&lock) {}

  // See AsyncLock.
  template <class Token>
  auto async_acquire(Duration wait, Token&& token) const {
    return hop([lock = lock_, wait](auto handler) { lock->async_acquire(wait, std::move(handler)); }, token);
  }
  template <class Token>
  auto async_try_acquire(Token&& token) const {
    return hop([lock = lock_](auto handler) { lock->async_try_acquire(std::move(handler)); }, token);
  }
  template <class Token>
  auto async_renew(Token&& token) const {
    return hop([lock = lock_](auto handler) { lock->async_renew(std::move(handler)); }, token);
  }
  template <class Token>
  auto async_release(Token&& token) const {
    return hop([lock = lock_](auto handler) { lock->async_release(std::move(handler)); }, token);
  }
  template <class Token>
  auto async_wait_lost(Token&& token) const {
    return hop([lock = lock_](auto handler) { lock->async_wait_lost(std::move(handler)); }, token);
  }

 private:
  template <class Start, class Handler>
  struct Hop {
    using allocator_type = asio::associated_allocator_t<Handler>;
    // On its way to the client's executor the handler's own has work.
    using Work = asio::executor_work_guard<asio::associated_executor_t<Handler, asio::any_io_executor>>;
    Start start;
    Handler handler;
    Work work;
    [[nodiscard]] allocator_type get_allocator() const noexcept { return asio::get_associated_allocator(handler); }
    void operator()() { start(std::move(handler)); }
  };

  template <class Start, class Token>
  auto hop(Start start, Token& token) const {
    return asio::async_initiate<Token, void(std::error_code)>(
        [lock = lock_, start](auto handler) {
          if (lock->orphaned())
            return start(std::move(handler));  // The executor is the parent's, whom nothing is asked for.
          const asio::any_io_executor executor = lock->get_executor();
          auto work = asio::make_work_guard(handler, executor);
          asio::dispatch(executor, Hop<Start, decltype(handler)>{start, std::move(handler), std::move(work)});
        },
        token);
  }

  Lock* lock_;
};

template <class Lock>
[[nodiscard]] AnyThread<Lock> on_any_thread(Lock& lock) noexcept {
  return AnyThread<Lock>(lock);
}

}  // namespace holdfast
