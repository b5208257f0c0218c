// SPDX-License-Identifier: MIT
//
// AsyncAcks is what a branch has beside its node where grants are to be confirmed: a lane for WAIT (AckLane) over a node of its
// own. That goes to the server of the branch and nowhere else. It asks nobody where that is: it is told each time the branch is ready.
// So a grant is confirmed by replicas of the server that has granted it, or not at all.
#pragma once

#include "async_node.hpp"
#include "holdfast/core/ack_lane.hpp"

namespace holdfast {

class AsyncClientCore;

class AsyncAcks final : private AsyncNode::Host {
 public:
  explicit AsyncAcks(AsyncClientCore& core);
  ~AsyncAcks() = default;
  AsyncAcks(const AsyncAcks&) = delete;
  AsyncAcks& operator=(const AsyncAcks&) = delete;

  [[nodiscard]] AsyncNode& node() noexcept { return node_; }

  // The branch is ready, and this is its configuration, with the server that it is at. What another server was asked is not known.
  void go_to(const KeptConfig& branch);
  // Nobody is asked any more, and who waits is told.
  void close();

  // Whether replicas have a grant. Its owner is the record.
  void confirm(AckRequest& request) noexcept { lane_.enter(request); }
  void stop_confirming(AckRequest& request) noexcept { lane_.leave(request); }

  // Of a turn. Then poll until it is nullptr: whose request is answered. Who is told of that may ask anew.
  void work();
  [[nodiscard]] NodeTask* poll_told() noexcept { return lane_.poll_told(); }

 private:
  void node_reply(AsyncNode& node, const Reply& reply) override;
  void node_ready(AsyncNode& /*node*/) override {}
  void node_down(AsyncNode& /*node*/) override {}

  AsyncClientCore& core_;
  AsyncNode node_;
  AckLane lane_;
};

}  // namespace holdfast
