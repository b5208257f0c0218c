// SPDX-License-Identifier: MIT
//
// LoopPeer is whom a program on a loop asks, and what its locks are made of: a client of one node, or a quorum of all nodes.
#pragma once

#include <asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "holdfast/asio.hpp"

namespace holdfast::sim {

class LoopPeer {
 public:
  [[nodiscard]] explicit operator bool() const noexcept { return client_ != nullptr || quorum_ != nullptr; }
  // REQUIRES: it is one.
  [[nodiscard]] AsyncClient& client() noexcept { return *client_; }
  [[nodiscard]] AsyncQuorum& quorum() noexcept { return *quorum_; }

  void make_client(const asio::any_io_executor& executor, const AsyncLimits& limits) {
    client_ = std::make_unique<AsyncClient>(executor, limits);
  }
  void make_quorum(const asio::any_io_executor& executor, std::size_t nodes, const AsyncQuorumLimits& limits) {
    quorum_ = std::make_unique<AsyncQuorum>(executor, nodes, limits);
  }
  void destroy() noexcept {
    client_.reset();
    quorum_.reset();
  }

  // REQUIRES of all of them: there is one.
  [[nodiscard]] bool connected() const noexcept { return client_ ? client_->connected() : quorum_->connected(); }
  [[nodiscard]] std::size_t compensations_pending() const noexcept {
    return client_ ? client_->compensations_pending() : quorum_->compensations_pending();
  }
  void cancel() { client_ ? client_->cancel() : quorum_->cancel(); }
  void close() { client_ ? client_->close() : quorum_->close(); }
  template <class Handler>
  void async_close(Handler handler) {
    client_ ? client_->async_close(std::move(handler)) : quorum_->async_close(std::move(handler));
  }

 private:
  std::unique_ptr<AsyncClient> client_;
  std::unique_ptr<AsyncQuorum> quorum_;
};

}  // namespace holdfast::sim
