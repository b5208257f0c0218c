// SPDX-License-Identifier: MIT
//
// A Cluster tells a client where in a Redis or Valkey Cluster the server of a name is, also after a fail-over and after its slot was
// moved:
//
//     Cluster cluster({.hosts = "10.0.0.1,10.0.0.2,10.0.0.3:6380", .name = "{orders}"});
//     Client client;
//     Status status = client.connect({.topology = &cluster, .password = secret});
//     Mutex lock(client, "{orders}:42");
//
// or, by a URL (url.hpp):
//
//     Cluster cluster;
//     ClientConfig config = {.topology = &cluster};
//     Status status = parse_url("redis-cluster://:secret@10.0.0.1,10.0.0.2/{orders}", config);
//
// A blocking client serves one slot: that of `name`, and so every name with the same hash tag (what stands between the first '{' and
// the next '}'). Its connection, its watchdog's and that for subscriptions go to the master of the slot, and follow it. Any other name
// is refused before anything is sent: cross_slot. With Branches (detail/branches.hpp) it serves names of any slot. Its
// watchdog keeps their holds with WatchdogBranchesOf (watchdog.hpp), and so does one that several clients of a cluster share.
//
// An AsyncClient serves names of any slot: it has a connection to each master that has some of them (cluster_masters_max at most),
// which all its locks share, and one more there while somebody waits by push. `name` says where it begins. It goes after each slot by
// itself, and what happens at one master does not hold up the names of others. With `acks` it has one connection more to each
// master, whose own replicas confirm what it has granted. The several names of a lock (AsyncMultiLock) must have one slot; those
// of an AsyncLockSet need not.
//
// Where a slot is, the cluster's nodes say themselves: any of the hosts is asked, by a question that names the slot, and MOVED names
// its master. No map of the slots is read, and none can be old. A request that is answered with MOVED has not run: it is asked again
// at the server that was named. While a slot is being moved (ASK, TRYAGAIN), names whose keys have left its old server are refused with
// `try_again`, which a wait lives through: no request is sent to a server that does not have the whole slot yet.
//
// All clients may have one: Client, a Watchdog, the Asio clients; a Quorum may not: replicas share their master's data, and Redlock
// over them proves nothing. What a fail-over does to holds is in proto/topology.md.
//
// Errors of connecting, where it failed with all of them: server_error: it is no node of a cluster; cluster_down: nobody serves the
// slot; no_permission: a node does not tell what it is, since its user may not run INFO; or as
// without a cluster. error_text() says what was wrong, and with which node.
//
// Thread rule: clients of different threads may share one that does not change. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/topology.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/slot.hpp"

namespace holdfast {

struct ClusterConfig {
  // "host[:port],host[:port],...", up to cluster_hosts_max nodes of the cluster, masters or replicas; the port is 6379 where it is
  // missing. IPv6 addresses stand in brackets.
  BoundedText<listed_hosts_size_max> hosts{};
  // A lock's name, whose slot the client serves. The user needs the right to read this key.
  BoundedText<key_size_max> name{};
};
[[nodiscard]] ConfigProblem validate(const ClusterConfig& config) noexcept;

class Cluster : public Topology {
 public:
  Cluster() noexcept : Topology(ways) {}
  explicit Cluster(const ClusterConfig& config) noexcept : Topology(ways) { configure(config); }

  [[nodiscard]] const ClusterConfig& config() const noexcept { return config_; }
  [[nodiscard]] std::uint16_t slot() const noexcept { return slot_; }
  // REQUIRES: no client has it.
  void configure(const ClusterConfig& config) noexcept {
    config_ = config;
    slot_ = slot_of(config_.name.view());
  }
  // Of a copy that an Asio client or a watchdog has for itself: its server may be asked for names of any slot, and where it answers
  // with MOVED, they take the name to another one. Not for others, which would be told `moved`.
  void take_any_slot() noexcept { any_slot_ = true; }
  [[nodiscard]] bool any_slot() const noexcept { return any_slot_; }

 private:
  static const Table ways;

  ClusterConfig config_;
  std::uint16_t slot_ = 0;
  bool any_slot_ = false;
};
static_assert(sizeof(Cluster) <= 1536, "promised: what is known of a cluster");
static_assert(sizeof(Cluster) >= host_search_size, "it is copied to where the search stands");

}  // namespace holdfast
