// SPDX-License-Identifier: MIT
//
// A failure of the client in words, for a message: what happened, what the server or the system said, what to do.
#pragma once

#include <string>

#include "holdfast/client.hpp"
#include "holdfast/quorum.hpp"
#include "holdfast/status.hpp"

namespace holdfast::cli {

// "host:port" or the socket's path: never the user or the password.
[[nodiscard]] std::string address_text(const ClientConfig& server);
// The same, and which database.
[[nodiscard]] std::string database_text(const ClientConfig& server);

// Sentences. Never contains the password: servers repeat the arguments of commands that they do not know, so words of
// theirs that hold the beginning of it are left out.
[[nodiscard]] std::string failure_text(Status status, const ClientBase& client);
// The same of a quorum: it names the nodes, and what became of each.
[[nodiscard]] std::string failure_text(Status status, QuorumClient& quorum);

}  // namespace holdfast::cli
