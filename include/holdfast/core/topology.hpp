// SPDX-License-Identifier: MIT
//
// Topology is what sentinels (sentinels.hpp) and a cluster (cluster.hpp) have in common for a node: its server is found by asking
// hosts, one after the other. Not used by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/key.hpp"

namespace holdfast {

class LockMachine;
class Node;
struct ServerIdentity;
struct SocketAddress;

class Topology {
 public:
  // Pointers, so that a program whose servers are at plain addresses does not carry their code.
  struct Table {
    // What the search for the server does for a node: at its configuration, and before its dialer is polled.
    void (*start)(Node& node) noexcept;
    void (*steer)(Node& node, Instant now, std::uint16_t random) noexcept;
    // A literal address as bytes. False: it is none.
    bool (*literal)(const char* host, std::uint16_t port, SocketAddress& address) noexcept;
    ConfigProblem (*validate)(const ClientConfig& config) noexcept;
    // Tells places apart where the server's address may change: a number of what is looked for and of the hosts, whatever their
    // order. Not 0.
    std::uint64_t (*number)(const Topology& topology) noexcept;
    // What is looked for.
    ByteView (*name)(const Topology& topology) noexcept;
    // Who is asked, and with which password of their own.
    ByteView (*hosts)(const Topology& topology) noexcept;
    ByteView (*password)(const Topology& topology) noexcept;
    // Of a URL. Returns what is wrong, or nullptr.
    const char* (*parse)(ByteView url, Topology& topology, ClientConfig& config) noexcept;
    // The server has channels that belong to a slot, and this is one of the slot that is looked for. nullptr: there are none.
    bool (*has_shards)(const ServerIdentity& identity) noexcept;
    bool (*shards)(const Topology& topology, ByteView channel) noexcept;
    // Why it can be no node of a quorum; nullptr: it can.
    const char* no_voter;
    // The server that is found has the names of this lock.
    bool (*serves)(const Topology& topology, const LockMachine& machine) noexcept;
  };

  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  [[nodiscard]] const Table& table() const noexcept { return *table_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return table_->number(*this); }
  [[nodiscard]] ByteView name() const noexcept { return table_->name(*this); }
  [[nodiscard]] ByteView hosts() const noexcept { return table_->hosts(*this); }
  [[nodiscard]] ByteView password() const noexcept { return table_->password(*this); }
  [[nodiscard]] bool serves(const LockMachine& machine) const noexcept { return table_->serves(*this, machine); }
  // Each name is in a slot, and slots are at several servers.
  [[nodiscard]] bool has_slots() const noexcept { return table_->has_shards != nullptr; }
  // Itself where the server has channels that belong to a slot; nullptr where it has none.
  [[nodiscard]] const Topology* sharded_by(const ServerIdentity& identity) const noexcept {
    return table_->has_shards != nullptr && table_->has_shards(identity) ? this : nullptr;
  }
  // As many bytes as a node's search takes, which stands where the host would. REQUIRES: it is part of an object of that size.
  [[nodiscard]] ByteView search_place() const noexcept {
    return {reinterpret_cast<const char*>(this), host_search_size};
  }

 protected:
  explicit Topology(const Table& table) noexcept : table_(&table) {}
  ~Topology() = default;

 private:
  const Table* table_;
};

}  // namespace holdfast
