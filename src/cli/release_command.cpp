// SPDX-License-Identifier: MIT
#include "release_command.hpp"

#include <string>

#include "connection.hpp"
#include "failure_text.hpp"
#include "holdfast/core/quorum_inquiry.hpp"
#include "holdfast/inspection.hpp"
#include "messages.hpp"

namespace holdfast::cli {

namespace {

// On one server. `where` is empty, or " on " and its address. Returns exit_ok, exit_free, or what else to end with.
int release_on(const ClientConfig& server, const std::string& name, const std::string& where) {
  const std::string what = escaped(name) + where;
  Client client;
  if (const int code = connect(client, server); code != exit_ok) return code;
  bool released = false;
  const Status status = force_release(client, Key(ByteView(name)), released);
  if (status == Status::wrong_type) {
    say("did not release " + what + ": it is no lock that can be released (" + escaped(client.error_text()) + ")");
    return exit_no_lock;
  }
  if (status != Status::ok) {
    say("the release of " + what + " was not confirmed: " + failure_text(status, client));
    return exit_code_of(status, client, exit_software);
  }
  if (!released) {
    say(what + " was free: there was nothing to release");
    return exit_free;
  }
  say("released " + what + "; its holder was not asked");
  return exit_ok;
}

}  // namespace

int release(const ReleaseOptions& options) {
  const std::size_t count = options.servers.size();
  if (count == 1) return release_on(options.servers.front(), options.name, "");
  QuorumRelease told;
  told.count = count;
  int failure = exit_no_server;
  for (std::size_t index = 0; index < count; ++index) {
    const ClientConfig& server = options.servers[index];
    const int code = release_on(server, options.name, " on " + address_text(server));
    NodeSet& nodes = code == exit_ok ? told.released : code == exit_free ? told.free : told.unknown;
    nodes = static_cast<NodeSet>(nodes | node_bit(index));
    if (code != exit_ok && code != exit_free) failure = code;
  }
  // Whoever held it by a majority has it no more once a majority has none of it.
  if (told.verdict() != Status::ok) {
    say("a majority of the " + std::to_string(count) + " nodes did not confirm it: " + escaped(options.name) +
        " may still be held");
    return failure;
  }
  return told.released != 0 ? exit_ok : exit_free;
}

}  // namespace holdfast::cli
