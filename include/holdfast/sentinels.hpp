// SPDX-License-Identifier: MIT
//
// Sentinels tell a client where the master of a service is, also after a fail-over:
//
//     Sentinels sentinels({.hosts = "10.0.0.1,10.0.0.2,10.0.0.3:26380", .service = "mymaster"});
//     Client client;
//     Status status = client.connect({.topology = &sentinels, .password = secret});
//
// or, by a URL (url.hpp):
//
//     Sentinels sentinels;
//     ClientConfig config = {.topology = &sentinels};
//     Status status = parse_url("redis-sentinel://:secret@10.0.0.1,10.0.0.2/mymaster", config);
//
// All clients may have them: Client, a Watchdog, the servers of a Quorum, the Asio clients. They ask whenever they connect: the
// sentinel that was right the last time first, then the others in turn, each with its share of connect_timeout. Whom it names
// must say of itself that it is a master; if not, the next sentinel is asked. A connection that is lost, or a request that is
// refused since the server has become a replica, leads to the next question. A SentinelWatch (sentinel_watch.hpp) hears of it at
// once. What a fail-over does to holds is in proto/topology.md.
//
// Errors of connecting, where it failed with all of them: unknown_service: none knows the service; read_only: the server that was
// named is a replica; no_permission: it does not tell what it is, since its user may not run INFO; or as without sentinels. What
// ends a wait, as unknown_service and a wrong password do, is told only where all of them ended so: one sentinel that is mistaken
// ends no wait while another may come back. error_text() says what was wrong, and with which sentinel.
//
// Thread rule: clients of different threads may share one that does not change. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/topology.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

struct SentinelConfig {
  // "host[:port],host[:port],...", up to sentinels_max; the port is 26379 where it is missing. IPv6 addresses stand in brackets.
  BoundedText<listed_hosts_size_max> hosts{};
  BoundedText<service_size_max> service{};  // What the sentinels call the master: `sentinel monitor SERVICE ...`.
  // Of the sentinels alone. The master's are in the ClientConfig.
  BoundedText<user_size_max> user{};          // Empty: the default user.
  BoundedText<password_size_max> password{};  // Empty: no AUTH.

  // Host and port of the sentinel at `index`, as they stand in `hosts`. False: there is none, or it is malformed.
  [[nodiscard]] bool at(std::size_t index, ByteView& host, std::uint16_t& port) const noexcept;
  [[nodiscard]] std::size_t count() const noexcept;
};
[[nodiscard]] ConfigProblem validate(const SentinelConfig& config) noexcept;

class Sentinels : public Topology {
 public:
  Sentinels() noexcept : Topology(ways) {}
  explicit Sentinels(const SentinelConfig& config) noexcept : Topology(ways), config_(config) {}

  [[nodiscard]] const SentinelConfig& config() const noexcept { return config_; }
  // REQUIRES: no client has them.
  void configure(const SentinelConfig& config) noexcept { config_ = config; }

 private:
  static const Table ways;

  SentinelConfig config_;
};
static_assert(sizeof(Sentinels) <= 2048, "promised: what is known of sentinels");
static_assert(sizeof(Sentinels) >= host_search_size, "it is copied to where the search stands");

}  // namespace holdfast
