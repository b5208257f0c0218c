// SPDX-License-Identifier: MIT
#include "connection.hpp"

#include "failure_text.hpp"
#include "holdfast/core/restart_guard.hpp"
#include "messages.hpp"

namespace holdfast::cli {

int connect(Client& client, const ClientConfig& server) {
  const Status status = client.connect(server);
  if (status == Status::ok) return exit_ok;
  say("no connection to " + address_text(server) + ": " + failure_text(status, client));
  return exit_code_of(status, client, exit_no_server);
}

std::vector<NodeConnection> connect_all(const Servers& servers) {
  std::vector<NodeConnection> nodes;
  for (const ClientConfig& server : servers) {
    NodeConnection& node = nodes.emplace_back(NodeConnection{.server = &server});
    node.code = connect(*node.client, server);
  }
  return nodes;
}

bool tell_twins(const std::vector<NodeConnection>& nodes) {
  for (auto node = nodes.begin(); node != nodes.end(); ++node)
    for (auto other = nodes.begin(); other != node; ++other)
      if (node->code == exit_ok && other->code == exit_ok &&
          same_machine(node->client->server(), other->client->server())) {
        say(address_text(*other->server) + " and " + address_text(*node->server) +
            " are one server, or replicate each other: a quorum needs a server for each, and nothing was asked of any");
        return true;
      }
  return false;
}

}  // namespace holdfast::cli
