// SPDX-License-Identifier: MIT
//
// SlotSearch is how a node with a Cluster finds its server: a HostSearch whose listed hosts are nodes of the cluster. Each is asked who
// it is, by the identity script with the client's name as its key. So it answers only where it serves the name's slot; otherwise it
// says MOVED, and by that names the master. Where the slot is being moved and the name is no key there, the master says ASK, and is
// asked without a name.
//
// A server that answers must be a master in cluster mode: several servers without it would each grant the same lock.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/host_search.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/proto/resp_value.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class LockMachine;
struct Announcement;
struct LockKind;

class SlotSearch : public HostSearch {
 public:
  // A. Questions.
  // "MOVED 3999 10.0.0.7:6381"; the host is empty where it is the one that said so. False: it is none.
  [[nodiscard]] static bool read_moved(ByteView text, std::uint16_t& slot, ByteView& host,
                                       std::uint16_t& port) noexcept;
  // What the answer to the identity script means: ok: a master in cluster mode; server_error: it is in none; else as judge_role().
  [[nodiscard]] static Status read_member(const RespValue& value) noexcept;

  // A lock's name, of several the first; and its slot.
  [[nodiscard]] static ByteView first_name(const LockKind& kind, Key key) noexcept;
  [[nodiscard]] static std::uint16_t slot_of_lock(const LockKind& kind, Key key) noexcept;
  // The channel of this name is in the name's slot, or in none since it is a client's own: what is announced there can be heard by
  // who is connected to the slot's server. It is not where the name has a brace in an odd place: "a}b".
  [[nodiscard]] static bool may_hear(const Announcement& announcement, Key key) noexcept;

  // See Topology::Table.
  [[nodiscard]] static std::uint64_t number(const Topology& topology) noexcept;
  [[nodiscard]] static ByteView name_of(const Topology& topology) noexcept;
  // Of a configuration with a Cluster, what is wrong with it.
  [[nodiscard]] static ConfigProblem validate(const ClientConfig& config) noexcept;
  // All names of the lock are in the cluster's slot; or in one slot, whichever it is, where its driver takes care of that.
  [[nodiscard]] static bool serves(const Topology& topology, const LockMachine& machine) noexcept;

  // The server has channels that belong to a slot: Redis from 7.0, and Valkey. Redisson uses them where they are.
  [[nodiscard]] static bool has_shards(const ServerIdentity& identity) noexcept;
  // This is one of the cluster's slot.
  [[nodiscard]] static bool shards(const Topology& topology, ByteView channel) noexcept;

  // B. Commands. At the node's configuration: places the search.
  static void start(Node& node) noexcept;
  // Then: the first attempt begins at this host, before any of the list is asked.
  static void lead(Node& node, ByteView host, std::uint16_t port) noexcept;

 private:
  explicit SlotSearch(Node& node) noexcept : HostSearch(node, plan) {}
  static const Plan plan;
  static bool ask(Interview& self, CommandLine& line) noexcept;
  static Status judge(Interview& self, const RespValue& value) noexcept;
  static Status doubt(Interview& self, Session& session, Status status) noexcept;
  static std::size_t complete(const Interview& self, const ServerIdentity& identity, MutableBytes space,
                              std::size_t size) noexcept;
  static HostList hosts(const Topology& topology) noexcept;
  static void settle(const HostSearch& search, SessionSettings& settings) noexcept;
  static std::size_t question_size(const HostSearch& search) noexcept;
  static ByteView words(const HostSearch& search, Status status, Stage at, ByteView& more) noexcept;
  // Follows it. moved: its slot is another one; protocol_error: it is none.
  [[nodiscard]] Status follow(ByteView text) noexcept;
};

}  // namespace holdfast
