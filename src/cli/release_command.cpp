// SPDX-License-Identifier: MIT
#include "release_command.hpp"

#include <string>
#include <vector>

#include "connection.hpp"
#include "failure_text.hpp"
#include "holdfast/core/quorum_inquiry.hpp"
#include "holdfast/inspection.hpp"
#include "messages.hpp"

namespace holdfast::cli {

namespace {

// On one server, over its connection. `where` is empty, or " on " and its address. Returns exit_ok, exit_free, or what else to end
// with.
int release_on(const NodeConnection& node, const std::string& name, const std::string& where) {
  if (node.code != exit_ok) return node.code;
  const std::string what = escaped(name) + where;
  Client& client = *node.client;
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
  const std::vector<NodeConnection> nodes = connect_all(options.servers);
  const std::size_t count = nodes.size();
  if (count == 1) return release_on(nodes.front(), options.name, "");
  if (tell_twins(nodes)) return exit_usage;
  QuorumRelease told;
  told.count = count;
  int failure = exit_no_server;
  for (std::size_t index = 0; index < count; ++index) {
    const int code = release_on(nodes[index], options.name, " on " + address_text(*nodes[index].server));
    NodeSet& set = code == exit_ok ? told.released : code == exit_free ? told.free : told.unknown;
    set = static_cast<NodeSet>(set | node_bit(index));
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
