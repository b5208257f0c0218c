// SPDX-License-Identifier: MIT
//
// AsyncQuorum is connections to N independent nodes, for any number of Redlocks, on an Asio loop: QuorumClient without a
// thread and without waiting. All nodes are asked at once; connections come back by themselves, holds are kept alive and
// releases are listened for on that loop, so that a node that is dead, stopped or slow costs nothing but its vote.
//
//     AsyncQuorum quorum(loop.get_executor(), 3);
//     AsyncRedlockMutex<3> lock(quorum, "orders/42", {.lease = 10s});
//     const ByteView urls[] = {"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
//     quorum.async_connect(urls, 3, {.max_lease = 60s}, [&](std::error_code error) { ... lock.async_acquire(2s, ...); });
//
// A restarted node has no vote until max_lease is over; see QuorumClient. Completion tokens, handlers, cancellation, heap,
// threads and fork: as AsyncClient.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/async_result.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "holdfast/asio/async_loop.hpp"
#include "holdfast/core/client_config.hpp"
#include "holdfast/core/quorum_config.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/detail/meter.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class AsyncQuorumCore;

// What the quorum makes room for, once.
struct AsyncQuorumLimits {
  std::size_t operations = 256;  // Handlers that wait at the same time. More: too_many_requests.     304 bytes each
  std::size_t requests =
      128;                   // In flight on each node, at least 32; more wait for their turn.    380 bytes each a node
  std::size_t waiters = 32;  // Locks that wait by push at the same time; more are polled.        336 bytes each a node
};

class AsyncQuorum {
 public:
  using executor_type = asio::any_io_executor;

  // REQUIRES: 1 to nodes_max nodes.
  AsyncQuorum(executor_type executor, std::size_t nodes, const AsyncQuorumLimits& limits = {});
  // Lets go of what is held, without waiting, and completes what waits with Status::cancelled. A server that answers a connection
  // which is closed by then may not have read the last of many releases; the leases end those. Who lets go of many at once
  // waits for async_release().
  ~AsyncQuorum();
  AsyncQuorum(const AsyncQuorum&) = delete;
  AsyncQuorum& operator=(const AsyncQuorum&) = delete;

  [[nodiscard]] executor_type get_executor() const noexcept;

  // Connects to all nodes at once. No error when a majority is there and may vote, a quarter of a second after it is, or when
  // all are. Where it is not, the quorum goes on connecting. `configs` must live until the operation is started, which a
  // token may put off; locks stay.
  // Errors: invalid_argument (another number of nodes; a configuration, see problem() and problem_node(); max_lease outside
  // [lease_min, lease_max]); same_machine; no_quorum, after the longest connect_timeout or when no node is left that may
  // still come; already_held while another async_connect() waits; cancelled.
  template <class Token>
  auto async_connect(const ClientConfig* configs, std::size_t count, const QuorumConfig& config, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler, const ClientConfig* nodes, std::size_t number, const QuorumConfig& given) {
          this->initiate(std::move(handler),
                         [&](Completion& completion) { this->start_connect(nodes, number, given, completion); });
        },
        token, configs, count, config);
  }
  // The same with URLs, see url.hpp.
  template <class Token>
  auto async_connect(const ByteView* urls, std::size_t count, const QuorumConfig& config, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler, const ByteView* nodes, std::size_t number, const QuorumConfig& given) {
          this->initiate(std::move(handler),
                         [&](Completion& completion) { this->start_connect(nodes, number, given, completion); });
        },
        token, urls, count, config);
  }
  // Cancels what waits, waits until what was released is known to be free on every node that can be asked, for a request
  // timeout at most, and closes. Errors: timed_out (closed nevertheless).
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
  // Completes every operation of the quorum and its locks with Status::cancelled.
  void cancel();

  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t majority() const noexcept;
  [[nodiscard]] const QuorumConfig& config() const noexcept;
  [[nodiscard]] bool connected() const noexcept;  // A majority is.
  // Nodes that may vote now.
  [[nodiscard]] NodeSet voters() const noexcept;
  // What keeps this node from voting, or the outcome of its last request. ok: nothing.
  [[nodiscard]] Status node_status(std::size_t index) const noexcept;
  // Seconds until the restarted node votes; 0 when it does.
  [[nodiscard]] std::uint64_t seconds_until_vote(std::size_t index) const noexcept;
  // Which nodes did not vote in what failed last, and why: a sentence a node. A view until the next call.
  [[nodiscard]] ByteView error_text() noexcept;
  [[nodiscard]] ConfigProblem problem() const noexcept;
  // What the meter of the QuorumConfig has counted, as Client::stats(). Any thread, but not during async_connect().
  [[nodiscard]] Stats stats() const noexcept;
  [[nodiscard]] std::size_t problem_node() const noexcept;
  // Compensations that a node has not confirmed yet.
  [[nodiscard]] std::size_t compensations_pending() const noexcept;

 private:
  friend class AsyncQuorumInquiry;
  friend class AsyncQuorumLock;
  template <std::size_t>
  friend class AsyncQuorumHoldOwner;

  template <class Handler, class Start>
  void initiate(Handler&& handler, Start start) {
    loop().initiate(std::forward<Handler>(handler), owner(), start);
  }
  [[nodiscard]] AsyncLoop& loop() const noexcept;
  [[nodiscard]] OperationOwner& owner() const noexcept;
  void start_connect(const ClientConfig* configs, std::size_t count, const QuorumConfig& config,
                     Completion& completion);
  void start_connect(const ByteView* urls, std::size_t count, const QuorumConfig& config, Completion& completion);
  void start_close(Completion& completion);

  std::shared_ptr<AsyncQuorumCore> core_;
};

}  // namespace holdfast
