// SPDX-License-Identifier: MIT
//
// The connections that every subcommand begins with.
#pragma once

#include <memory>
#include <vector>

#include "exit_codes.hpp"
#include "holdfast/client.hpp"
#include "options.hpp"

namespace holdfast::cli {

// Returns exit_ok; or says why there is no connection, and returns what to end with.
[[nodiscard]] int connect(Client& client, const ClientConfig& server);

// To one of several servers.
struct NodeConnection {
  const ClientConfig* server;
  std::unique_ptr<Client> client = std::make_unique<Client>();
  int code = exit_ok;  // As connect() returned it: whether there is a connection.
};
// Connects to each before anything is asked of one: servers that are away cost no time between two answers then. Each has its
// connect timeout. Says why one has no connection.
[[nodiscard]] std::vector<NodeConnection> connect_all(const Servers& servers);

// True, and said, if two of them lead to one server, or to servers that replicate each other: these have one vote, and what is
// asked of one is done on the other.
[[nodiscard]] bool tell_twins(const std::vector<NodeConnection>& nodes);

}  // namespace holdfast::cli
