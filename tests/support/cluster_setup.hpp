// SPDX-License-Identifier: MIT
//
// A cluster for one test: three masters and a replica of each, on ports of their own. They go with their object.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "holdfast/proto/slot.hpp"
#include "patience.hpp"
#include "redis_server.hpp"

class ClusterSetup {
 public:
  static constexpr std::size_t masters = 3;
  static constexpr std::size_t slots = 16384;

  // The nodes need so long, in milliseconds, to find out that one of them is gone. On a machine that stands still for a moment none
  // is to be taken for that. With `tls`, one of each node, they speak TLS to everybody, and among themselves.
  explicit ClusterSetup(const std::string& binary, int node_timeout = 15000, const std::vector<ServerTls>& tls = {}) {
    for (std::size_t index = 0; index < 2 * masters; ++index) {
      start_server(binary, node_timeout, index < tls.size() ? tls[index] : ServerTls());
      ids_.push_back(servers[index]->command("CLUSTER MYID"));
    }
    for (std::size_t index = 0; index < masters; ++index) {
      expect_ok(index, "CLUSTER ADDSLOTSRANGE " + std::to_string(index * slots / masters) + " " +
                           std::to_string((index + 1) * slots / masters - 1));
      expect_ok(index, "CLUSTER SET-CONFIG-EPOCH " + std::to_string(index + 1));
    }
    // Each meets all others: by gossip it would take seconds.
    for (std::size_t index = 1; index < 2 * masters; ++index)
      for (std::size_t other = 0; other < index; ++other)
        expect_ok(other, "CLUSTER MEET 127.0.0.1 " + port_of(index) + " " + buses_[index]);
    await_nodes([](const std::string& nodes) {
      return count_in(nodes, " connected") == 2 * masters && count_in(nodes, "handshake") == 0;
    });
    for (std::size_t index = masters; index < 2 * masters; ++index)
      expect_ok(index, "CLUSTER REPLICATE " + ids_[index - masters]);
    await_nodes([](const std::string& nodes) { return count_in(nodes, "slave ") == masters; });
    await([this] {
      for (std::size_t index = 0; index < 2 * masters; ++index) {
        if (!is_well(index)) return false;
        if (index >= masters && servers[index]->command("INFO replication").find("link_status:up") == std::string::npos)
          return false;
      }
      return true;
    });
  }

  [[nodiscard]] std::string host(std::size_t index) const { return "127.0.0.1:" + port_of(index); }
  // All nodes, masters first.
  [[nodiscard]] std::string hosts() const {
    std::string text;
    for (std::size_t index = 0; index < 2 * masters; ++index) text += (index == 0 ? "" : ",") + host(index);
    return text;
  }
  [[nodiscard]] std::string url(const std::string& name) const { return "redis-cluster://" + hosts() + "/" + name; }

  [[nodiscard]] static int slot_of(const RedisServer& server, const std::string& key) {
    return std::stoi(server.command({"CLUSTER", "KEYSLOT", key}));
  }
  // Who serves it, as it says itself.
  [[nodiscard]] std::size_t master_of(const std::string& key) const {
    for (std::size_t index = 0; index < 2 * masters; ++index)
      if (servers[index]->command({"EXISTS", key}).find("-MOVED") == std::string::npos &&
          servers[index]->command("ROLE").substr(0, 6) == "master")
        return index;
    throw std::runtime_error("nobody serves " + key);
  }
  [[nodiscard]] RedisServer& master(const std::string& key) const { return *servers[master_of(key)]; }
  // A master of other slots.
  [[nodiscard]] std::size_t other_than(std::size_t index) const {
    for (std::size_t other = 0; other < 2 * masters; ++other)
      if (other != index && servers[other]->command("ROLE").substr(0, 6) == "master" && !are_related(other, index))
        return other;
    throw std::runtime_error("there is no other master");
  }
  // Of how many of those that were masters at the beginning INFO has these words.
  [[nodiscard]] std::size_t masters_that_say(const std::string& section, const std::string& words) const {
    std::size_t count = 0;
    for (std::size_t index = 0; index < masters; ++index)
      if (servers[index]->command("INFO " + section).find(words) != std::string::npos) ++count;
    return count;
  }
  // The replica, or the former master, of the same slots.
  [[nodiscard]] static std::size_t partner_of(std::size_t index) {
    return index < masters ? index + masters : index - masters;
  }
  // It knows of a master for every slot. Where it does not, it refuses every command on a key.
  [[nodiscard]] bool is_well(std::size_t index) const {
    return servers[index]->command("CLUSTER INFO").find("cluster_state:ok") != std::string::npos;
  }
  // To the replica, by agreement: nothing is lost. Returns when every node knows.
  void fail_over(const std::string& key) const {
    const std::size_t before = master_of(key);
    const std::size_t after = partner_of(before);
    await([&] {
      const std::string word = servers[after]->command("CLUSTER FAILOVER");
      return word == "OK" || servers[after]->command("ROLE").substr(0, 6) == "master";
    });
    await_move(key, after);
  }

  // A slot on its way, in steps: open_slot(), move_keys(), close_slot().
  void open_slot(int slot, std::size_t from, std::size_t to) const {
    expect_ok(to, "CLUSTER SETSLOT " + std::to_string(slot) + " IMPORTING " + ids_[from]);
    expect_ok(from, "CLUSTER SETSLOT " + std::to_string(slot) + " MIGRATING " + ids_[to]);
  }
  void move_keys(int slot, std::size_t from, std::size_t to) const {
    for (;;) {
      const std::vector<std::string> keys = keys_in(slot, from);
      if (keys.empty()) return;
      migrate(keys, from, to);
    }
  }
  // Of that slot, those alone whose names begin so.
  void move_keys(int slot, std::size_t from, std::size_t to, const std::string& prefix) const {
    std::vector<std::string> moving;
    for (const std::string& key : keys_in(slot, from))
      if (key.starts_with(prefix)) moving.push_back(key);
    if (moving.empty()) throw std::runtime_error("there is no key to move: " + prefix);
    migrate(moving, from, to);
  }
  void close_slot(int slot, std::size_t from, std::size_t to) const {
    for (const std::size_t index : {to, from})
      expect_ok(index, "CLUSTER SETSLOT " + std::to_string(slot) + " NODE " + ids_[to]);
  }
  // The slot of a key, with all its keys.
  void move_slot(const std::string& key, std::size_t to) const {
    const std::size_t from = master_of(key);
    const int slot = slot_of(*servers[0], key);
    open_slot(slot, from, to);
    move_keys(slot, from, to);
    close_slot(slot, from, to);
    await_move(key, to);
  }
  // Every node sends who asks for the key to this one, and knows its epoch. A node that takes the slot without knowing this would not
  // raise its own, and two masters would send to each other for ever.
  void await_move(const std::string& key, std::size_t to) const {
    await([&] {
      for (std::size_t index = 0; index < 2 * masters; ++index) {
        const std::string word = servers[index]->command({"EXISTS", key});
        if (index == to ? word.find("-") == 0 : word.find(":" + port_of(to)) == std::string::npos) return false;
        if (epoch_of(to, index) != epoch_of(to, to)) return false;
      }
      return true;
    });
  }

  std::vector<std::unique_ptr<RedisServer>> servers;

 private:
  // Another server may take the port of the bus between the look and the start.
  void start_server(const std::string& binary, int node_timeout, const ServerTls& tls) {
    for (int tries = 0; servers.size() == buses_.size(); ++tries) try {
        const std::string bus = std::to_string(RedisServer::free_port());
        servers.push_back(std::make_unique<RedisServer>(
            binary,
            std::vector<std::string>{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
                                     "--cluster-port", bus, "--cluster-node-timeout", std::to_string(node_timeout),
                                     "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0",
                                     "--cluster-allow-replica-migration", "no", "--repl-ping-replica-period", "1"},
            tls));
        buses_.push_back(bus);
        return;
      } catch (const std::runtime_error&) {
        if (tries == 4) throw;
      }
  }
  [[nodiscard]] std::vector<std::string> keys_in(int slot, std::size_t index) const {
    const std::string text = servers[index]->command("CLUSTER GETKEYSINSLOT " + std::to_string(slot) + " 100");
    std::vector<std::string> keys;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      keys.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return keys;
  }
  void migrate(const std::vector<std::string>& keys, std::size_t from, std::size_t to) const {
    std::vector<std::string> line = {"MIGRATE", "127.0.0.1", port_of(to), "", "0", "5000", "KEYS"};
    line.insert(line.end(), keys.begin(), keys.end());
    const std::string word = servers[from]->command(line);
    if (word != "OK" && word != "NOKEY") throw std::runtime_error("MIGRATE: " + word);
  }
  template <class Condition>
  static void await(Condition&& condition) {
    if (!comes(condition, std::chrono::seconds(60)))
      throw std::runtime_error("the cluster did not come about within a minute");
  }
  template <class Condition>
  void await_nodes(Condition&& condition) const {
    await([&] {
      for (const auto& server : servers)
        if (!condition(server->command("CLUSTER NODES"))) return false;
      return true;
    });
  }
  static std::size_t count_in(const std::string& text, const std::string& wanted) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(wanted, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  // As `asked` knows it: ID ADDRESS FLAGS MASTER PING PONG EPOCH ...
  [[nodiscard]] std::string epoch_of(std::size_t index, std::size_t asked) const {
    const std::string nodes = servers[asked]->command("CLUSTER NODES");
    for (std::size_t at = nodes.find(ids_[index]); at != std::string::npos; at = nodes.find(ids_[index], at + 1)) {
      if (at != 0 && nodes[at - 1] != '\n') continue;  // The master of another line.
      for (int word = 0; word < 6; ++word) at = nodes.find(' ', at) + 1;
      return nodes.substr(at, nodes.find(' ', at) - at);
    }
    return "";
  }
  [[nodiscard]] bool are_related(std::size_t one, std::size_t other) const { return partner_of(one) == other; }
  [[nodiscard]] std::string port_of(std::size_t index) const { return std::to_string(servers[index]->port()); }
  void expect_ok(std::size_t index, const std::string& line) const {
    const std::string word = servers[index]->command(line);
    if (word != "OK") throw std::runtime_error(line + ": " + word);
  }

  std::vector<std::string> ids_;
  std::vector<std::string> buses_;
};

// A name whose slot is that master's at the beginning; several of one `kind` are in several of its slots.
inline std::string name_at(std::size_t master, const std::string& kind = "n") {
  for (int number = 0;; ++number) {
    std::string name = kind + std::to_string(number);
    if (holdfast::slot_of(holdfast::ByteView(name)) * ClusterSetup::masters / ClusterSetup::slots == master)
      return name;
  }
}

// TEST_ON_CLUSTER(name) { ... `cluster` is a fresh ClusterSetup ... }
#define TEST_ON_CLUSTER(name, ...) TEST_ON(ClusterSetup, cluster, name __VA_OPT__(, ) __VA_ARGS__)
