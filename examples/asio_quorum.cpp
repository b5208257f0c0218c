// SPDX-License-Identifier: MIT
//
// A lock on three independent servers, held while two of them hold it, and work that ends when it is lost: two servers may
// die, or somebody may take the lock away. The fence is for the resource, which refuses who comes with a smaller one.
//
//     asio_quorum URL URL URL
//
// Exit code 0 if the work was done, 2 if the lock was lost meanwhile, 1 if it was not to be had.
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cinttypes>
#include <cstdio>
#include <exception>

#include "holdfast/asio.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t node_count = 3;
constexpr int steps = 30;
constexpr Duration step_time = 100ms;
// Every client of these servers has the same. Servers that have just started do not vote before it is over.
constexpr QuorumConfig config = {.max_lease = 3s};

// All of it lives longer than the loop runs.
struct Work {
  explicit Work(asio::io_context& loop) : quorum(loop.get_executor(), node_count), pause(loop) {}

  AsyncQuorum quorum;
  AsyncRedlockMutex<node_count> lock{quorum, "holdfast/example", {.lease = 2s}, {.fence = true}};
  asio::steady_timer pause;
  int exit_code = 1;

  // The quorum knows which servers did not vote, and why.
  void say(const char* what, std::error_code error) {
    const ByteView nodes = quorum.error_text();
    std::printf("%s: %s\n%.*s\n", what, error.message().c_str(), static_cast<int>(nodes.size()), nodes.data());
  }
};

// Steps that are short beside the lease, and held() before each. A loss ends the pause between two of them at once.
asio::awaitable<bool> do_steps(Work& work) {
  work.lock.async_wait_lost([&work](std::error_code error) {
    if (error == Status::lock_lost) work.pause.cancel();
  });
  for (int step = 1; step <= steps; ++step) {
    if (!work.lock.held()) co_return false;
    std::printf("step %d of %d\n", step, steps);
    std::error_code interrupted;
    work.pause.expires_after(step_time);
    co_await work.pause.async_wait(asio::redirect_error(asio::use_awaitable, interrupted));
  }
  co_return work.lock.held();
}

asio::awaitable<void> run(Work& work, const ByteView* urls) {
  std::error_code error;
  auto told = asio::redirect_error(asio::use_awaitable, error);
  co_await work.quorum.async_connect(urls, node_count, config, told);
  // Without a majority the quorum goes on connecting, and whoever wants a lock waits for it.
  if (error && error != Status::no_quorum) co_return work.say("connect", error);
  if (error) work.say("not yet connected", error);

  (void)work.lock.keep({.keep = Keep::always});  // Renewed by the quorum, on all servers.
  co_await work.lock.async_acquire(15s, told);
  if (error) co_return work.say("acquire", error);
  std::printf("held on %zu of %zu servers at least, with fence %" PRIu64 "\n", work.quorum.majority(),
              work.quorum.size(), work.lock.fence());

  const bool done = co_await do_steps(work);
  if (!done) work.say("the work is broken off", Status::lock_lost);
  co_await work.lock.async_release(told);
  if (done && error) work.say("what was done last may not have been protected", error);
  work.exit_code = done && !error ? 0 : 2;
}

// A loop has work as long as a quorum is connected.
asio::awaitable<void> run_and_close(Work& work, const ByteView* urls) {
  co_await run(work, urls);
  std::error_code ignored;  // Servers that are dead cannot confirm.
  co_await work.quorum.async_close(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace

int main(int argument_count, char** arguments) {
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  if (argument_count != 1 + static_cast<int>(node_count)) {
    std::printf("usage: asio_quorum URL URL URL\n");
    return 1;
  }
  ByteView urls[node_count];
  for (std::size_t node = 0; node < node_count; ++node) urls[node] = std::string_view(arguments[1 + node]);

  asio::io_context loop(1);  // One thread runs it.
  Work work(loop);
  asio::co_spawn(loop, run_and_close(work, urls), [](std::exception_ptr failure) {
    if (failure) std::rethrow_exception(failure);
  });
  loop.run();
  return work.exit_code;
}
