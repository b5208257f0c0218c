// SPDX-License-Identifier: MIT
#include "info_command.hpp"

#include <string>
#include <vector>

#include "connection.hpp"
#include "failure_text.hpp"
#include "holdfast/core/quorum_inquiry.hpp"
#include "holdfast/inspection.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/decimal.hpp"
#include "messages.hpp"
#include "seconds.hpp"

namespace holdfast::cli {

namespace {

void add_line(std::string& text, const char* name, const std::string& value) {
  text += name;
  text += ": ";
  text += value;
  text += '\n';
}

int exit_code_for(Possession state) noexcept {
  switch (state) {
    case Possession::held: return exit_ok;
    case Possession::free: return exit_free;
    case Possession::no_lock: return exit_no_lock;
    case Possession::unknown: break;
  }
  return exit_software;
}

std::string remaining_text(const LockInfo& found) {
  return found.remaining == Duration::max() ? "no expiry" : seconds_text(found.remaining) + " seconds";
}

// A number without an end: somebody's lock, or that of the permits where nobody has one.
bool looks_like_idle_semaphore(const LockInfo& found) {
  std::uint64_t permits = 0;
  return found.form == LockForm::mutex && found.remaining == Duration::max() &&
         read_decimal(found.owner.view(), permits_max, permits) && permits != 0;
}

// Its owner field has a negative ordinal.
bool may_linger(const LockInfo& found) noexcept {
  return found.form == LockForm::reentrant && found.owner.view().string_view().find(":-") != std::string_view::npos;
}

// What one server says of it.
void add_answer(std::string& text, const LockInfo& found) {
  add_line(text, "state", to_string(state_of(found)));
  if (found.form == LockForm::semaphore) {
    add_line(text, "kind", to_string(found.form));
    add_line(text, "permits", std::to_string(found.permits));
    add_line(text, "taken", std::to_string(found.owners));
    if (found.owners != 0) add_line(text, "owner", escaped(found.owner.view()));
    if (found.owners != 0) add_line(text, "remaining", remaining_text(found));
  } else if (state_of(found) == Possession::held) {
    add_line(text, "kind", to_string(found.form));
    if (!found.owner.empty()) add_line(text, "owner", escaped(found.owner.view()));
    add_line(text, "count", std::to_string(found.count));
    if (found.owners != 1) add_line(text, "owners", std::to_string(found.owners));
    add_line(text, "remaining", remaining_text(found));
    if (looks_like_idle_semaphore(found))
      add_line(text, "note", "or it is a semaphore, and all " + escaped(found.owner.view()) + " permits are free");
    if (may_linger(found)) add_line(text, "note", "it may stay where nobody uses it; a waiter recalls it");
  }
  if (found.fence != 0) add_line(text, "fence", std::to_string(found.fence));
}

// Who waits for it, where that can be told.
void add_queue(std::string& text, const LockQueue& queue) {
  if (queue.waiting == 0) return;
  add_line(text, "waiting", std::to_string(queue.waiting));
  for (const LockQueue::Waiter* waiter = queue.waiters; waiter != queue.waiters + queue.told; ++waiter)
    add_line(text, "waiter",
             escaped(waiter->token.view()) + " for " + seconds_text(waiter->waited) + " seconds, " +
                 (waiter->heard == Duration::max() ? "not heard of for 3 seconds"
                                                   : "heard of " + seconds_text(waiter->heard) + " seconds ago"));
}

// Asks over a connection. Returns exit_ok; or says why there is no answer, and returns what to end with.
int ask(const NodeConnection& node, const std::string& name, LockInfo& found, LockQueue* queue = nullptr) {
  if (node.code != exit_ok) return node.code;
  Client& client = *node.client;
  const Status status = inspect(client, Key(ByteView(name)), found);
  if (status == Status::ok) {
    // Not every user may ask that, and not every name can have a queue.
    if (queue != nullptr) (void)inspect_queue(client, Key(ByteView(name)), *queue);
    return exit_ok;
  }
  say("cannot say who holds " + escaped(name) + ": " + failure_text(status, client));
  return exit_code_of(status, client, exit_software);
}

int info_of_quorum(const InfoOptions& options, const std::vector<NodeConnection>& nodes) {
  std::string text;
  QuorumInfo found;
  found.count = nodes.size();
  int failure = exit_no_server;
  add_line(text, "name", escaped(options.name));
  for (std::size_t index = 0; index < found.count; ++index) {
    QuorumInfo::Node& node = found.nodes[index];
    const int code = ask(nodes[index], options.name, node.info);
    add_line(text, "\nnode", address_text(*nodes[index].server));
    if (code == exit_ok) {
      node.status = Status::ok;
      add_answer(text, node.info);
    } else {
      add_line(text, "state", "unknown");
      failure = code;
    }
  }
  found.judge(static_cast<NodeSet>(node_bit(found.count) - 1U));
  std::string state = to_string(found.state);
  if (found.state == Possession::held) state += " by " + escaped(found.holder.owner.view());
  add_line(text, "\nmajority", state);
  if (!print(text)) return exit_output;
  return found.state == Possession::unknown ? failure : exit_code_for(found.state);
}

}  // namespace

int info(const InfoOptions& options) {
  const std::vector<NodeConnection> nodes = connect_all(options.servers);
  if (nodes.size() > 1) return info_of_quorum(options, nodes);
  LockInfo found;
  LockQueue queue;
  if (const int code = ask(nodes.front(), options.name, found, &queue); code != exit_ok) return code;
  std::string text;
  add_line(text, "name", escaped(options.name));
  add_answer(text, found);
  add_queue(text, queue);
  return print(text) ? exit_code_for(state_of(found)) : exit_output;
}

}  // namespace holdfast::cli
