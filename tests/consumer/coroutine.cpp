// SPDX-License-Identifier: MIT
//
// What a consumer with an Asio loop writes: a coroutine that takes a lock, works, and lets it go. It links what
// holdfast-asio says, and includes what it needs of Asio itself.
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <holdfast/asio.hpp>
#include <stdexcept>
#include <string_view>

namespace {

asio::awaitable<void> lock_and_release(holdfast::AsyncClient& client, std::string_view url) {
  co_await client.async_connect(url, asio::use_awaitable);
  holdfast::AsyncMutex lock(client, "consumer", {.lease = std::chrono::seconds(5)});
  co_await lock.async_acquire(std::chrono::seconds(2), asio::use_awaitable);
  std::printf("held: %s\n", lock.held() ? "yes" : "no");
  co_await lock.async_release(asio::use_awaitable);
  co_await lock.async_acquire(std::chrono::seconds(2), asio::use_awaitable);
  {
    const holdfast::AsyncScopedLock guard(lock, holdfast::adopt_hold);
    if (!guard) throw std::runtime_error("a guard of a lock that is held says that it is not");
  }
  if (lock.held()) throw std::runtime_error("the lock outlived its guard");
  co_await client.async_close(asio::use_awaitable);
}

}  // namespace

int main(int argc, char** argv) {
  asio::io_context loop;
  holdfast::AsyncClient client(loop.get_executor());
  std::exception_ptr failure;
  asio::co_spawn(loop, lock_and_release(client, argc > 1 ? argv[1] : "redis://127.0.0.1:6379"),
                 [&failure](std::exception_ptr thrown) { failure = thrown; });
  loop.run();
  if (!failure) return 0;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "%s\n", thrown.what());
  }
  return 1;
}
