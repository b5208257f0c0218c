// SPDX-License-Identifier: MIT
//
// README's program on an Asio loop, whose hold is kept: the work that it leaves to the reader takes longer than a lease.
#include "asio_head.inc"

#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>

#include <cstdlib>

#include "stage.hpp"

namespace {

bool worked = false;

asio::awaitable<void> work(holdfast::AsyncMutex& lock) {
  holdfast::AsyncClient client(co_await asio::this_coro::executor);
  co_await client.async_connect(server("redis_127_0_0_1"), asio::use_awaitable);
  holdfast::AsyncMutex other(client, "orders/42", {.lease = 5s});
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (auto left = longer_than_a_lease; left > 0s; left -= 1s) {
    expect(lock.held(), "the lock was lost during the work");
    std::error_code error;
    co_await other.async_try_acquire(asio::redirect_error(asio::use_awaitable, error));
    expect(error == holdfast::Status::lock_busy, "another client has the lock during the work");
    say("held");
    timer.expires_after(1s);
    co_await timer.async_wait(asio::use_awaitable);
  }
  expect(lock.held(), "the lock was lost at the end of the work");
  co_await client.async_close(asio::use_awaitable);
  worked = true;
}

// The example's main() has no word about its end.
const int at_the_end = std::atexit([] { say(worked ? "done" : "FAILED: the example did not come to its work"); });

}  // namespace

#include "asio.inc"
