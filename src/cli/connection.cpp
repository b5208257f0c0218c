// SPDX-License-Identifier: MIT
#include "connection.hpp"

#include "failure_text.hpp"
#include "holdfast/core/restart_guard.hpp"
#include "messages.hpp"

namespace holdfast::cli {

namespace {

// Returns exit_ok; or says why there is no connection, and returns what to end with.
int tell(Status status, Client& client, const ClientConfig& server) {
  if (status == Status::ok) return exit_ok;
  say("no connection to " + address_text(server) + ": " + failure_text(status, client));
  return exit_code_of(status, client, exit_no_server);
}

}  // namespace

std::vector<NodeConnection> connect_all(const Servers& servers) {
  std::vector<NodeConnection> nodes;
  for (const ClientConfig& server : servers) nodes.push_back(NodeConnection{.server = &server});
  std::vector<Status> statuses(nodes.size());
  at_once(nodes.size(),
          [&](std::size_t index) { statuses[index] = nodes[index].client->connect(*nodes[index].server); });
  // In their order, whoever was first.
  for (std::size_t index = 0; index < nodes.size(); ++index)
    nodes[index].code = tell(statuses[index], *nodes[index].client, *nodes[index].server);
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
