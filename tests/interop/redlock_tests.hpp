// SPDX-License-Identifier: MIT
//
// What must hold between a RedlockMutex and every client whose lock is a string key with a random token on a majority of
// several servers. Each of them has a runner that includes this.
#pragma once

#include "live_fixture.hpp"

#include <memory>
#include <string>
#include <vector>

#include "peer.hpp"

namespace {

using namespace holdfast;

constexpr std::size_t node_count = 3;

// Three servers, and our quorum on them. They have just started, and vote all the same.
struct Nodes {
  explicit Nodes(const std::string& binary) {
    for (auto& server : servers) server = std::make_unique<RedisServer>(binary);
    ClientConfig configs[node_count];
    for (std::size_t index = 0; index < node_count; ++index) configs[index] = config_for(servers[index]->tcp_url());
    TEST_ASSERT_EQUAL(Status::ok, quorum.connect(configs, node_count, {.restart_guard = false}));
  }

  [[nodiscard]] std::vector<int> ports() const {
    std::vector<int> ports;
    for (const auto& server : servers) ports.push_back(server->port());
    return ports;
  }
  // How many nodes have this value at `k`.
  [[nodiscard]] int with(const std::string& value) const {
    int count = 0;
    for (const auto& server : servers)
      if (server->pid() > 0 && server->command("GET k") == value) ++count;
    return count;
  }

  std::unique_ptr<RedisServer> servers[node_count];
  Quorum<node_count> quorum;
};

}  // namespace

#define TEST_ON_THREE_NODES(name)                         \
  static void name(Nodes& nodes);                         \
  TEST(name) {                                            \
    for (const std::string& binary : server_binaries()) { \
      TEST_MESSAGE("server: " << binary);                 \
      Nodes nodes(binary);                                \
      name(nodes);                                        \
    }                                                     \
  }                                                       \
  static void name([[maybe_unused]] Nodes& nodes)

TEST_ON_THREE_NODES(test_their_redlock_should_be_busy_for_us_until_they_release) {
  Peer peer(nodes.ports());
  RedlockMutex<node_count> lock(nodes.quorum, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  TEST_ASSERT_TRUE(nodes.with(peer.ask("token k")) >= 2);
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("extend k"));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(300ms));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(15s));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_THREE_NODES(test_our_redlock_should_be_busy_for_them_until_we_release) {
  Peer peer(nodes.ports());
  RedlockMutex<node_count> lock(nodes.quorum, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(15s));
  TEST_ASSERT_TRUE(nodes.with(std::string(lock.token().bytes().string_view())) >= 2);
  TEST_ASSERT_EQUAL("busy", peer.ask("lock k 20000 0"));
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL("busy", peer.ask("lock k 20000 300"));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 15000"));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
}

TEST_ON_THREE_NODES(test_both_should_exclude_each_other_without_one_node) {
  Peer peer(nodes.ports());
  RedlockMutex<node_count> lock(nodes.quorum, "k", {.lease = 20s});
  nodes.servers[2]->stop();
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(15s));
  TEST_ASSERT_TRUE(peer.ask("lock k 20000 0") != "granted");
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 15000"));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
}

// Read, then write: whoever is let in beside another one loses counts. The counter is on the first node. Ours goes on for
// as long as theirs takes, so that they meet.
TEST_ON_THREE_NODES(test_a_counter_should_lose_nothing_between_our_redlock_and_theirs) {
  constexpr int their_rounds = 20;
  Peer peer(nodes.ports());
  RedlockMutex<node_count> lock(nodes.quorum, "k", {.lease = 20s});
  RedisServer& first = *nodes.servers[0];
  TEST_ASSERT_EQUAL("counting", peer.ask("start-count k counter " + std::to_string(their_rounds)));
  int our_rounds = 0;
  do {
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(30s));
    const std::string before = first.command("GET counter");
    first.command("SET counter " + std::to_string(before == "(nil)" ? 1 : std::stol(before) + 1));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    ++our_rounds;
  } while (!peer.has_event());
  TEST_ASSERT_EQUAL("counted", peer.event().at(0));
  TEST_ASSERT_EQUAL(std::to_string(our_rounds + their_rounds), first.command("GET counter"));
}
