// SPDX-License-Identifier: MIT
//
// A pool of coroutines: workers take jobs, each under the lock of what it changes. The work itself knows nothing of locks:
// a hold that is lost cancels it where it waits, and the job goes back into the queue.
//
//     asio_workers [URL [MILLISECONDS-A-JOB]]
//
// Exit code 0 if every job was done.
#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <string_view>

#include "holdfast/asio.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr int worker_count = 4;
constexpr int job_count = 12;
constexpr int attempts_max = 3;
constexpr ByteView accounts[] = {"holdfast/example/account/1", "holdfast/example/account/2",
                                 "holdfast/example/account/3"};

struct Job {
  int number = 0;
  ByteView account;
  int attempts = 0;
};

struct Pool {
  AsyncClient client;
  std::deque<Job> queue;
  Duration job_time;
  int working = worker_count;
  int done = 0;
};

// A piece of work that waits here and there. Cancelled, it ends by an exception where it waits.
asio::awaitable<void> work(Duration job_time) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (int step = 0; step < 10; ++step) {
    timer.expires_after(job_time / 10);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

asio::awaitable<void> do_under_lock(Pool& pool, Job job) {
  asio::cancellation_signal lost;  // Outlives the lock that emits it.
  AsyncMutex lock(pool.client, job.account, {.lease = 3s});
  (void)lock.keep({.keep = Keep::always});  // Renewed by the client, for as long as this coroutine has the lock.
  lock.set_lost_signal(&lost);

  co_await lock.async_acquire(30s, asio::use_awaitable);
  std::printf("%.*s: job %d begins\n", static_cast<int>(job.account.size()), job.account.data(), job.number);
  co_await asio::co_spawn(co_await asio::this_coro::executor, work(pool.job_time),
                          asio::bind_cancellation_slot(lost.slot(), asio::use_awaitable));
  if (!lock.held()) throw std::system_error(make_error_code(Status::lock_lost));
  std::printf("%.*s: job %d ends\n", static_cast<int>(job.account.size()), job.account.data(), job.number);
  co_await lock.async_release(asio::use_awaitable);
}

asio::awaitable<void> run_worker(Pool& pool) {
  while (!pool.queue.empty()) {
    Job job = pool.queue.front();
    pool.queue.pop_front();
    try {
      co_await do_under_lock(pool, job);
      ++pool.done;
    } catch (const std::system_error& failure) {
      const bool again = ++job.attempts < attempts_max;
      if (again) pool.queue.push_back(job);
      std::printf("job %d is %s: %s\n", job.number, again ? "put back" : "given up", failure.what());
    }
  }
  // A loop has work as long as a client is connected: the last one closes it.
  if (--pool.working == 0) co_await pool.client.async_close(asio::use_awaitable);
}

asio::awaitable<void> run_pool(Pool& pool, std::string_view url) {
  co_await pool.client.async_connect(url, asio::use_awaitable);
  const auto executor = co_await asio::this_coro::executor;
  for (int worker = 0; worker < worker_count; ++worker)
    asio::co_spawn(executor, run_worker(pool), [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);  // Out of run().
    });
}

}  // namespace

int main(int argument_count, char** arguments) {
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  const std::string_view url = argument_count > 1 ? arguments[1] : "redis://127.0.0.1:6379";
  const std::chrono::milliseconds job_time(argument_count > 2 ? std::strtol(arguments[2], nullptr, 10) : 100);

  asio::io_context loop(1);  // One thread runs it.
  Pool pool{.client = AsyncClient(loop.get_executor()), .queue = {}, .job_time = job_time};
  for (int number = 0; number < job_count; ++number)
    pool.queue.push_back({.number = number, .account = accounts[number % 3]});
  asio::co_spawn(loop, run_pool(pool, url), [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  });
  try {
    loop.run();
  } catch (const std::exception& failure) {
    std::printf("%s\n", failure.what());
    return 1;
  }
  return pool.done == job_count ? 0 : 1;
}
