// SPDX-License-Identifier: MIT
#include "holdfast/core/slot_search.hpp"

#include <cstring>
#include <new>

#include "holdfast/cluster.hpp"
#include "holdfast/core/announcement.hpp"
#include "holdfast/core/derived_name.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/core/slot_routes.hpp"
#include "holdfast/proto/decimal.hpp"
#include "holdfast/proto/server_error.hpp"
#include "holdfast/proto/slot.hpp"
#include "place_number.hpp"
#include "scripts.hpp"
#include "text_writer.hpp"

namespace holdfast {

namespace {

constexpr std::uint16_t node_port_default = 6379;

const Cluster& cluster_of(const Topology& topology) noexcept { return static_cast<const Cluster&>(topology); }

// A node that sends its clients to names says "?" for one that has just come back, until it has heard its name. No host has a "?".
[[gnu::noinline]] bool names_nobody(ByteView moved) noexcept {
  return std::memchr(moved.data(), '?', moved.size()) != nullptr;
}

}  // namespace

// ---- The configuration -------------------------------------------------------------------------------------------

HostList SlotSearch::hosts(const Topology& topology) noexcept {
  return {cluster_of(topology).config().hosts.view(), node_port_default};
}

// Names of one slot are at one place, whatever they are.
std::uint64_t SlotSearch::number(const Topology& topology) noexcept {
  const std::uint16_t slot = cluster_of(topology).slot();
  const std::uint64_t sum = PlaceNumber().add({}, slot).add('\3').get() + hosts(topology).sum();
  return sum != 0 ? sum : 1;
}

ByteView SlotSearch::name_of(const Topology& topology) noexcept { return cluster_of(topology).config().name.view(); }

ConfigProblem SlotSearch::validate(const ClientConfig& config) noexcept {
  if (!config.socket_path.empty()) return {"topology", "a Unix socket has no cluster"};
  if (config.database != 0) return {"database", "a cluster has none but 0"};
  return holdfast::validate(cluster_of(*config.topology).config());
}

ConfigProblem validate(const ClusterConfig& config) noexcept {
  constexpr const char* too_long = "it is longer than limits.hpp allows";
  if (config.hosts.too_long()) return {"cluster.hosts", too_long};
  if (const char* const problem = HostList{config.hosts.view(), node_port_default}.problem(); problem != nullptr)
    return {"cluster.hosts", problem};
  if (config.name.too_long()) return {"cluster.name", too_long};
  if (config.name.empty()) return {"cluster.name", "it is empty: whose slot is looked for?"};
  return {};
}

ByteView SlotSearch::first_name(const LockKind& kind, Key key) noexcept {
  return kind.name_at == nullptr ? key.bytes() : kind.name_at(key, 0);
}

std::uint16_t SlotSearch::slot_of_lock(const LockKind& kind, Key key) noexcept {
  return slot_of(first_name(kind, key));
}

bool SlotSearch::may_hear(const Announcement& announcement, Key key) noexcept {
  return announcement.addressed || slot_of(DerivedName(announcement.channel, key).bytes()) == slot_of(key.bytes());
}

bool SlotSearch::serves(const Topology& topology, const LockMachine& machine) noexcept {
  const LockKind& kind = machine.kind();
  const Cluster& cluster = cluster_of(topology);
  if (kind.name_at == nullptr) return cluster.any_slot() || slot_of(machine.key().bytes()) == cluster.slot();
  const std::uint16_t slot = cluster.any_slot() ? slot_of_lock(kind, machine.key()) : cluster.slot();
  for (std::size_t index = 0;; ++index) {
    const ByteView name = kind.name_at(machine.key(), index);
    if (name.empty()) return true;
    if (slot_of(name) != slot) return false;
  }
}

// ---- What answers mean -------------------------------------------------------------------------------------------

bool SlotSearch::read_moved(ByteView text, std::uint16_t& slot, ByteView& host, std::uint16_t& port) noexcept {
  constexpr ByteView word("MOVED ");
  if (!text.begins_with(word)) return false;
  text = text.slice(word.size());
  const std::size_t space = text.find(" ");
  std::uint64_t number = 0;
  if (!read_decimal(text.slice(0, space), cluster_slots - 1, number)) return false;
  if (!read_named_host(text.slice(space + 1), host, port))
    return false;  // Without a space: the number, which is no host.
  slot = static_cast<std::uint16_t>(number);
  return true;
}

bool NamedServer::read(const Node& from, std::uint16_t slot) noexcept {
  std::uint16_t moved = 0;
  ByteView host;
  std::uint16_t port = 0;
  if (!SlotSearch::read_moved(from.session().failure_text(), moved, host, port) || moved != slot) return false;
  assign(host.empty() ? from.config().host.view() : host, port);
  return true;
}

Status SlotSearch::read_member(const RespValue& value) noexcept {
  const Status role = judge_role(value);
  if (role != Status::ok) return role;
  // The role stands behind the mode.
  return value.at(5).text().find("cluster") != SIZE_MAX ? Status::ok : Status::server_error;
}

Status SlotSearch::follow(ByteView text) noexcept {
  std::uint16_t slot = 0;
  ByteView host;
  std::uint16_t port = 0;
  if (!read_moved(text, slot, host, port)) return Status::protocol_error;
  if (slot != cluster_of(topology()).slot()) return Status::moved;
  name(host.empty() ? node_->config().host.view() : host, port);
  return Status::not_connected;
}

// ---- The handshake -----------------------------------------------------------------------------------------------

constinit const HostSearch::Plan SlotSearch::plan = {
    {ask, judge, doubt, complete, overhear_nothing}, hosts, settle, question_size, words, "node ", true};

void SlotSearch::start(Node& node) noexcept {
  new (place_in(node)) SlotSearch(node);
  begin_at(node);
}

void SlotSearch::lead(Node& node, ByteView host, std::uint16_t port) noexcept {
  static_cast<SlotSearch*>(place_in(node))->begin_with(host, port);
}

void SlotSearch::settle(const HostSearch& search, SessionSettings& settings) noexcept {
  const KeptConfig& config = static_cast<const SlotSearch&>(search).node_->config();
  settings.user = config.user.view();
  settings.password = config.password.view();
  settings.native_delete = config.native_delete;
}

std::size_t SlotSearch::question_size(const HostSearch& search) noexcept {
  const auto& self = static_cast<const SlotSearch&>(search);
  const KeptConfig& config = self.node_->config();
  return config.user.view().size() + config.password.view().size() + name_of(self.topology()).size() +
         scripts::server_identity.text.size();
}

bool SlotSearch::ask(Interview& self, CommandLine& line) noexcept {
  auto& search = static_cast<SlotSearch&>(self);
  if (search.owner()) {
    search.set_owner(false);
    return false;  // Who it is, without a key.
  }
  line.add_script(scripts::server_identity, RequestForm::by_text).add("1").add(name_of(search.topology()));
  return true;
}

// ASK says that it serves the slot still, and has no key of this name: it is asked once more, without one. Holds whose keys are there
// go on.
Status SlotSearch::judge(Interview& self, const RespValue& value) noexcept {
  auto& search = static_cast<SlotSearch&>(self);
  search.note_reply(value);
  if (!value.is(RespKind::error)) {
    const Status status = read_member(value);
    if (status == Status::ok) search.believe();
    return status;
  }
  const Status status = classify_error(value.text()).status;
  if (status == Status::ask) {
    search.set_owner(true);
    search.name(search.node_->config().host.view(), search.node_->config().port);
    return Status::not_connected;
  }
  if (status != Status::moved) return status;
  if (names_nobody(value.text())) return Status::try_again;
  const Status followed = search.follow(value.text());
  if (followed == Status::not_connected) return followed;
  search.note_judged();
  return Status::protocol_error;
}

// The slot has moved, or this server does not serve it any more. What was asked has not run.
Status SlotSearch::doubt(Interview& self, Session& session, Status status) noexcept {
  auto& search = static_cast<SlotSearch&>(self);
  char space[failure_text_size_max];
  const ByteView text = TextWriter({space, sizeof space}).add(session.failure_text()).view();
  switch (status) {
    case Status::moved: {
      if (names_nobody(text)) return Status::try_again;
      if (cluster_of(search.topology()).any_slot()) return status;  // Its driver knows the way.
      const Status followed = search.follow(text);
      if (followed == Status::moved) return Status::cross_slot;
      session.fail(followed, text);
      return followed;
    }
    case Status::ask: return Status::try_again;
    case Status::cluster_down:
    case Status::read_only:
    case Status::stale_replica: session.fail(status, text); return status;
    default: return status;
  }
}

// ---- Channels ----------------------------------------------------------------------------------------------------

bool SlotSearch::has_shards(const ServerIdentity& identity) noexcept {
  return identity.is_valkey || identity.version >= 70000;
}

bool SlotSearch::shards(const Topology& topology, ByteView channel) noexcept {
  const Cluster& cluster = cluster_of(topology);
  return cluster.any_slot() ? !channel.begins_with(fair_channel_prefix) : slot_of(channel) == cluster.slot();
}

// A script that publishes takes the command for it as one argument more. The others do not look at it. Without room for it, it
// publishes to all: who waits for a channel of the slot finds out by time.
std::size_t SlotSearch::complete(const Interview& /*self*/, const ServerIdentity& identity, MutableBytes space,
                                 std::size_t size) noexcept {
  constexpr ByteView verb("$8\r\nSPUBLISH\r\n");
  if (!has_shards(identity) || space.size - size < verb.size() + 1) return size;
  const ByteView request(space.data, size);
  const std::size_t end = request.find("\r\n");  // Of "*" and how many arguments there are.
  if (end == SIZE_MAX) return size;
  const ByteView command = request.slice(end);
  if (!command.begins_with("\r\n$7\r\nEVALSHA\r\n") && !command.begins_with("\r\n$4\r\nEVAL\r\n")) return size;
  std::uint64_t count = 0;
  if (!read_decimal(request.slice(1, end - 1), arguments_max, count)) return size;
  char head[decimal_size_max];
  const auto digits = static_cast<std::size_t>(write_decimal(head, count + 1) - head);
  std::memmove(space.data + 1 + digits, space.data + end, size - end);
  std::memcpy(space.data + 1, head, digits);
  size += digits + 1 - end;
  std::memcpy(space.data + size, verb.data(), verb.size());
  return size + verb.size();
}

ByteView SlotSearch::words(const HostSearch& /*search*/, Status status, Stage /*at*/, ByteView& /*more*/) noexcept {
  switch (status) {
    case Status::server_error: return "it is no node of a cluster";
    case Status::read_only: return "it is a replica";
    case Status::no_permission: return "it does not tell its role: may its user run INFO?";
    case Status::cluster_down: return "the nodes name one another";
    default: return "it does not tell who it is, or who serves the slot";  // protocol_error: nothing else is judged.
  }
}

}  // namespace holdfast
