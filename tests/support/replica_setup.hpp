// SPDX-License-Identifier: MIT
//
// A master and its replicas for one test, on ports of their own. They go with their object.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "patience.hpp"
#include "redis_server.hpp"

// Servers take their time to get to know each other.
template <class Condition>
void await(Condition&& condition) {
  if (!comes(condition, std::chrono::seconds(60))) throw std::runtime_error("it did not come about within a minute");
}

class ReplicaSetup {
 public:
  // With `tls`, one of each server, the master first, they speak TLS to everybody, and among themselves. `host` is the name by
  // which replicas know their master, and say where they are.
  explicit ReplicaSetup(const std::string& binary, int replicas = 2, const std::vector<ServerTls>& tls = {},
                        const std::string& host = "127.0.0.1")
      : host_(host) {
    const auto of = [&](std::size_t index) { return index < tls.size() ? tls[index] : ServerTls(); };
    start_server(binary, {}, of(0));
    for (int replica = 0; replica < replicas; ++replica)
      start_server(binary, {"--replicaof", host_ + " " + std::to_string(servers[0]->port())}, of(servers.size()));
    await([&] { return servers[0]->command("WAIT " + std::to_string(replicas) + " 100") == std::to_string(replicas); });
  }
  // Each replica has what this master has.
  void await_replicas_of(const RedisServer& master) const {
    RawConnection connection(master.socket_path());
    (void)connection.command("SET holdfast:barrier 1");  // WAIT speaks of what its own connection has written.
    const std::string replicas = std::to_string(servers.size() - 1);
    await([&] { return connection.command("WAIT " + replicas + " 100") == replicas; });
  }

  [[nodiscard]] const std::string& host() const { return host_; }
  // The name is of this machine. Which of its addresses comes first there is the resolver's to say.
  [[nodiscard]] bool named() const { return host_ != "127.0.0.1"; }

  std::vector<std::unique_ptr<RedisServer>> servers;  // The master first.

 private:
  void start_server(const std::string& binary, std::vector<std::string> settings, const ServerTls& tls) {
    settings.insert(settings.end(), {"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"});
    if (named()) settings.insert(settings.end(), {"--bind", "127.0.0.1 -::1", "--replica-announce-ip", host_});
    servers.push_back(std::make_unique<RedisServer>(binary, std::move(settings), tls));
  }

  std::string host_;
};
