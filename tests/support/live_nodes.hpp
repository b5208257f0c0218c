// SPDX-License-Identifier: MIT
//
// The nodes of a quorum for one test: private servers, and what a test asks of all of them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "patience.hpp"
#include "quorum_clients.hpp"

class LiveNodes {
 public:
  LiveNodes(const std::string& binary, std::size_t count, const std::vector<std::string>& settings = {}) {
    for (std::size_t index = 0; index < count; ++index)
      servers_.push_back(std::make_unique<RedisServer>(binary, settings));
  }

  [[nodiscard]] std::size_t size() const { return servers_.size(); }
  [[nodiscard]] RedisServer& operator[](std::size_t index) const { return *servers_[index]; }

  // One command to each; their answers, with a bar between two.
  [[nodiscard]] std::string each(const std::string& command) const {
    std::string answers;
    for (const auto& server : servers_) answers += (answers.empty() ? "" : "|") + server->command(command);
    return answers;
  }
  // True if each answers so.
  [[nodiscard]] bool all(const std::string& command, const std::string& answer) const {
    for (const auto& server : servers_)
      if (server->command(command) != answer) return false;
    return true;
  }

  // Deadlines that only a broken program reaches; those of a test that waits for one are its own.
  [[nodiscard]] static holdfast::ClientConfig config_at(const std::string& url) {
    holdfast::ClientConfig config = config_for(url);
    config.request_timeout = patience;
    config.connect_timeout = patience;
    config.stall_timeout = patience;
    config.max_poll = std::chrono::seconds(60);
    return config;
  }
  // Every other node by TCP.
  [[nodiscard]] std::vector<holdfast::ClientConfig> configs() const {
    std::vector<holdfast::ClientConfig> list;
    for (std::size_t index = 0; index < servers_.size(); ++index)
      list.push_back(config_at(index % 2 == 0 ? servers_[index]->unix_url() : servers_[index]->tcp_url()));
    return list;
  }

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;
};

// Nodes that were started a moment ago vote: what is tested is not the guard.
inline constexpr holdfast::QuorumConfig unguarded = {.max_lease = std::chrono::seconds(60), .restart_guard = false};

inline holdfast::Status connect(QuorumClient& quorum, const std::vector<holdfast::ClientConfig>& configs,
                                const holdfast::QuorumConfig& config = unguarded) {
  return quorum.connect(configs.data(), configs.size(), config);
}

// Every node holds the lock. It is granted by a majority; the others' answers are dealt with by the next call.
inline void await_everywhere(const LiveNodes& nodes, const QuorumLock& lock) {
  const std::string key(lock.key().bytes().string_view());
  TEST_ASSERT_TRUE(comes([&] {
    (void)lock.quorum().tend();
    return nodes.all("EXISTS " + key, "1");
  }));
}

// All nodes can be asked.
inline void await_voters(QuorumClient& quorum, NodeSet wanted) {
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.voters() == wanted;
  }));
}

// A socket's second name, which can be given to another server.
class Alias {
 public:
  Alias(const std::string& path, const RedisServer& server) : path_(path) { lead_to(server); }
  ~Alias() { std::filesystem::remove(path_); }
  Alias(const Alias&) = delete;
  Alias& operator=(const Alias&) = delete;

  void lead_to(const RedisServer& server) const {
    std::filesystem::remove(path_);
    std::filesystem::create_symlink(server.socket_path(), path_);
  }
  [[nodiscard]] std::string url() const { return "unix://" + path_; }

 private:
  std::string path_;
};

inline std::string text_of(holdfast::ByteView bytes) { return std::string(bytes.string_view()); }

inline bool contains(holdfast::ByteView text, const std::string& words) {
  return text_of(text).find(words) != std::string::npos;
}

// TEST_ON_NODES(name, count) { ... `nodes` are fresh servers ... }
#define TEST_ON_NODES(name, count, ...)                   \
  static void name(LiveNodes& nodes);                     \
  TEST(name) {                                            \
    for (const std::string& binary : server_binaries()) { \
      TEST_MESSAGE("server: " << binary);                 \
      LiveNodes nodes(binary, count, {__VA_ARGS__});      \
      name(nodes);                                        \
    }                                                     \
  }                                                       \
  static void name([[maybe_unused]] LiveNodes& nodes)
