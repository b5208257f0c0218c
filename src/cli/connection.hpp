// SPDX-License-Identifier: MIT
//
// The connections that every subcommand begins with.
#pragma once

#include <future>
#include <memory>
#include <vector>

#include "exit_codes.hpp"
#include "holdfast/client.hpp"
#include "options.hpp"

namespace holdfast::cli {

// To one of several servers.
struct NodeConnection {
  const ClientConfig* server;
  std::unique_ptr<Client> client = std::make_unique<Client>();
  int code = exit_ok;  // There is a connection; or what to end with.
};
// Calls `use` with the place of each of them, all at once: one that is silent takes no time from the others. Returns after the
// last. What `use` writes to must be of that place alone.
template <class Use>
void at_once(std::size_t count, const Use& use) {
  std::vector<std::future<void>> others;  // Their destructors wait, too.
  for (std::size_t index = 1; index < count; ++index)
    others.push_back(std::async(std::launch::async, [&use, index] { use(index); }));
  use(0);
  for (std::future<void>& other : others) other.get();
}

// Connects to all at once, before anything is asked of one. Each has its connect timeout. Says why one has no connection.
[[nodiscard]] std::vector<NodeConnection> connect_all(const Servers& servers);

// True, and said, if two of them lead to one server, or to servers that replicate each other: these have one vote, and what is
// asked of one is done on the other.
[[nodiscard]] bool tell_twins(const std::vector<NodeConnection>& nodes);

}  // namespace holdfast::cli
