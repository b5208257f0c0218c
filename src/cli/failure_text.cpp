// SPDX-License-Identifier: MIT
#include "failure_text.hpp"

#include <algorithm>
#include <system_error>

#include "exit_codes.hpp"
#include "holdfast/core/topology.hpp"
#include "messages.hpp"
#include "run_list.hpp"

namespace holdfast::cli {

namespace {

// Servers cut long arguments, so the beginning of a password gives it away as well.
constexpr std::size_t telling_size = 4;

bool gives_away(ByteView text, ByteView password) noexcept {
  if (password.empty()) return false;
  return text.find(password.slice(0, std::min(password.size(), telling_size))) != SIZE_MAX;
}

// Where more is known here than in the library.
std::string remedy_of(Status status) {
  std::string text = remedy(status);
  if (status == Status::unknown_command)
    text = "A Sentinel has no locks: then its URL is redis-sentinel://HOST:PORT/SERVICE. Otherwise: " + text;
  if (status == Status::moved) text = "The server is a node of a cluster: its URL is redis-cluster://HOST:PORT.";
  if (status == Status::auth_required && !RunList::inherited().runs().empty())
    text += " The run that this one is inside of takes passwords out of the environment, but for --keep-env.";
  return text;
}

}  // namespace

std::string address_text(const ClientConfig& server) {
  if (server.topology != nullptr) return escaped(server.topology->name()) + "@" + escaped(server.topology->hosts());
  if (!server.socket_path.empty()) return escaped(server.socket_path.view());
  const std::string host = escaped(server.host.view());
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(server.port);
}

std::string database_text(const ClientConfig& server) {
  return address_text(server) + "/" + std::to_string(server.database);
}

std::string failure_text(Status status, const ClientBase& client) {
  const bool wrong_database = is_wrong_database(status, client);
  std::string text = wrong_database
                         ? "The server has no database " + std::to_string(client.config().database) + " for us."
                         : std::string(cause(status));
  // That somebody else has the lock is no error of the server's: what it said, it said to an earlier request.
  const ByteView words = status == Status::lock_busy ? ByteView() : client.error_text();
  const Topology* const topology = client.config().topology;
  if (gives_away(words, client.config().password.view()) ||
      (topology != nullptr && gives_away(words, topology->password())))
    text += " (What the server said is not shown: it has the password in it.)";
  else if (!words.empty())
    text += " (" + escaped(words) + ")";
  const int number = client.system_error_number();
  if ((status == Status::connect_failed || status == Status::system_error) && number != 0)
    text += " (" + std::generic_category().message(number) + ")";
  if (wrong_database) return text + " Check the number in the URL.";
  return text + " " + remedy_of(status);
}

std::string failure_text(Status status, QuorumClient& quorum) {
  std::string text = cause(status);
  const ByteView words = status == Status::lock_busy ? ByteView() : quorum.error_text();
  bool hidden = false;
  for (std::size_t node = 0; node < quorum.nodes(); ++node)
    hidden = hidden || gives_away(words, quorum.node(node).config().password.view());
  if (hidden)
    text += " (What the servers said is not shown: it has a password in it.)";
  else if (!words.empty())
    text += " (" + escaped(words) + ")";
  return text + " " + remedy_of(status);
}

}  // namespace holdfast::cli
