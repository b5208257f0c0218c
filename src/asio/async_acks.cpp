// SPDX-License-Identifier: MIT
#include "async_acks.hpp"

#include "async_client_core.hpp"

namespace holdfast {

AsyncAcks::AsyncAcks(AsyncClientCore& core) : core_(core), node_(core, *this, {.requests = in_flight_max}) {}

void AsyncAcks::go_to(const KeptConfig& branch) {
  const KeptConfig& own = node_.config();
  const bool there = branch.topology == nullptr || (own.host.view() == branch.host.view() && own.port == branch.port);
  if (node_.wanted() && there) return;
  close();
  ClientConfig config = branch;
  config.topology = nullptr;                 // Whoever searches may find another server.
  (void)node_.prepare(config, core_.now());  // Where it fails, who asks is told.
}

void AsyncAcks::close() {
  if (!node_.forked()) lane_.give_up(Status::not_connected);
  node_.close();
}

// The slot may be on its way from one server to another: that does not end a wait. The lock itself goes after it.
void AsyncAcks::node_reply(AsyncNode& node, const Reply& reply) {
  Reply told = reply;
  if (reply.outcome == Status::moved && core_.cluster() != nullptr) told.outcome = Status::try_again;
  if (!lane_.handle_reply(told, node.config())) node.fail_shape();
}

void AsyncAcks::work() {
  node_.work();
  if (!node_.wanted()) lane_.give_up(Status::not_connected);
  lane_.work(node_.node(), core_.now());
  node_.transmit();
}

}  // namespace holdfast
