// SPDX-License-Identifier: MIT
//
// AsyncClient is one connection to one node for any number of locks, on an Asio loop. It reconnects by itself, keeps holds
// alive and listens for releases on that loop: there is no thread. In a cluster it is one connection to each master that has names of
// its locks (cluster.hpp); connected(), server(), failure() and config() speak of that of the configuration's name then.
//
//     asio::io_context loop;
//     AsyncClient client(loop.get_executor());
//     AsyncMutex lock(client, "orders/42");
//     client.async_connect("redis://db.internal", [&](std::error_code error) { ... lock.async_acquire(2s, ...); });
//     loop.run();
//
// Every async_ function takes any completion token of the signature void(std::error_code): a callback, asio::use_future,
// asio::use_awaitable, asio::deferred. Errors are Status values (asio_error.hpp). A handler is called on its associated
// executor, never from inside the function that was given it, and may start, cancel or destroy anything: what waits when a
// lock or the client is destroyed is completed with Status::cancelled. Cancellation by slot: terminal and total; what a
// cancelled acquire may have taken is released.
//
// Cost: requests that were asked for in one turn of the loop leave in one write. A pair of acquire and release costs 6
// system calls when it is alone, and 8 where the server takes longer than Asio's first look for its answer.
// Heap: the constructor takes all there will be, but for host names (Asio's resolver has a thread and uses the heap; give
// literal addresses where that matters) and what tokens and handlers use themselves: a coroutine its frame, a future
// its state. With a strand as executor Asio may take some from its recycled blocks.
// Thread rule: all of it on the executor, which runs one thing at a time: an io_context that one thread runs, or a strand.
// on_any_thread() of any_thread.hpp is the way from elsewhere. The locks' held(), at_risk(), valid_until(), remaining() and
// tick() may be called from any thread.
// Fork: a child must not run the parent's loop; held() is false there, and operations say Status::forked, to a handler with an
// executor of the child's own.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/async_result.hpp>
#include <cstddef>
#include <memory>
#include <system_error>

#include "holdfast/asio/async_loop.hpp"
#include "holdfast/core/client_config.hpp"
#include "holdfast/core/session.hpp"
#include "holdfast/detail/meter.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class AsyncClientCore;

// What the client makes room for, once. A client with these defaults takes 64 KiB; a service with many locks asks for more. In a
// cluster it makes room for requests, waiters and holds once more for each further master, when it is first used.
struct AsyncLimits {
  std::size_t operations = 64;  // Handlers that wait at the same time. More: too_many_requests.        304 bytes each
  std::size_t requests = 32;    // In flight on the connection, 32 to 131,070; more wait their turn.   380 bytes each
                                // An acquire or release takes two places.
  std::size_t waiters = 8;      // Locks that wait by push at the same time; more are polled.           336 bytes each
  std::size_t kept = 64;        // Holds that are kept alive at the same time.                          116 bytes each
  std::size_t masters =
      0;  // Of a cluster, for which the first connect makes room at once, its own among them. More have
          // theirs made when first used, 64 in all. Room for the requests, waiters and holds above each.
};

class AsyncClient {
 public:
  using executor_type = asio::any_io_executor;

  explicit AsyncClient(executor_type executor, const AsyncLimits& limits = {});
  // Lets go of what is held, without waiting, and completes what waits with Status::cancelled. A server that answers a connection
  // which is closed by then may not have read the last of many releases; the leases end those. Who lets go of many at once
  // waits for async_release().
  ~AsyncClient();
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;

  [[nodiscard]] executor_type get_executor() const noexcept;

  // Connects and does the handshake: the outcome of the first attempt. On failure the client keeps the configuration and
  // goes on trying. What was connected before is closed; locks stay.
  // Errors: as Client::connect(); already_held while another async_connect() waits.
  template <class Token>
  auto async_connect(const ClientConfig& config, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler, const ClientConfig& given) {
          initiate(std::move(handler), [&](Completion& completion) { start_connect(given, completion); });
        },
        token, config);
  }
  // The same with a URL, see url.hpp.
  template <class Token>
  auto async_connect(BytesArgument url, Token&& token) {
    ClientConfig config;
    const Status status = read_url(url, config);
    return asio::async_initiate<Token, void(std::error_code)>(
        [this, status](auto handler, const ClientConfig& given) {
          initiate(std::move(handler), [&](Completion& completion) { start_connect(given, completion, status); });
        },
        token, config);
  }
  // Cancels what waits, waits until what was released is known to be free, for a request timeout at most, and closes. A loop
  // has work as long as a client is connected. Errors: timed_out (closed nevertheless).
  template <class Token>
  auto async_close(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) {
          initiate(std::move(handler), [&](Completion& completion) { start_close(completion); });
        },
        token);
  }
  // The same without waiting: sends what waits to be sent, and closes.
  void close();
  // Completes every operation of the client and its locks with Status::cancelled.
  void cancel();
  // Where the configuration has Sentinels, one of them is subscribed to, and it is heard at once that the master was replaced: see
  // sentinel_watch.hpp. What is kept is renewed at once then. From the next connection on, and as long as the client lives. Takes
  // heap, once: a connection and its buffers.
  void watch_sentinels();

  [[nodiscard]] bool connected() const noexcept;
  [[nodiscard]] ClientConfig config() const noexcept;
  [[nodiscard]] const ServerIdentity& server() const noexcept;
  // Why it is not connected; ok when it is.
  [[nodiscard]] Status failure() const noexcept;
  // Words for the last failure: the server's own, or ours. A view until the next turn; may be empty.
  [[nodiscard]] ByteView error_text() const noexcept;
  // errno of the last system call that failed for good, or 0.
  [[nodiscard]] int system_error_number() const noexcept;
  // What was wrong with the configuration, after invalid_argument of async_connect().
  [[nodiscard]] ConfigProblem problem() const noexcept;
  // What the meter of the configuration has counted, as Client::stats(). Any thread, but not during async_connect().
  [[nodiscard]] Stats stats() const noexcept;
  // Compensations that the server has not confirmed yet.
  [[nodiscard]] std::size_t compensations_pending() const noexcept;
  // Holds that are kept alive at present, and calls sent for that so far.
  [[nodiscard]] std::size_t kept() const noexcept;
  [[nodiscard]] std::uint64_t renewal_calls() const noexcept;

 private:
  friend class AsyncHoldOwner;
  friend class AsyncLock;

  template <class Handler, class Start>
  void initiate(Handler&& handler, Start start) {
    loop().initiate(std::forward<Handler>(handler), owner(), start);
  }
  [[nodiscard]] AsyncLoop& loop() const noexcept;
  [[nodiscard]] OperationOwner& owner() const noexcept;
  [[nodiscard]] Status read_url(ByteView url, ClientConfig& config);
  void start_connect(const ClientConfig& config, Completion& completion, Status status = Status::ok);
  void start_close(Completion& completion);

  std::shared_ptr<AsyncClientCore> core_;
};

}  // namespace holdfast
