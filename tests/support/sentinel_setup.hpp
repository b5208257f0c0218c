// SPDX-License-Identifier: MIT
//
// A master, two replicas and three sentinels for one test, on ports of their own. They go with their object.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "patience.hpp"
#include "redis_server.hpp"
#include "replica_setup.hpp"

// One sentinel. Its configuration is a file, which it writes to. It fails over when it is told to: on a machine that stands still for
// a moment none does so by itself.
class SentinelServer {
 public:
  // With the name of a host it resolves names, and says names to everybody.
  SentinelServer(const std::string& binary, int master_port, const ServerTls& tls = {},
                 const std::string& host = "127.0.0.1") {
    char name[] = "/tmp/holdfast-test-XXXXXX";
    if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = name;
    for (int tries = 0; tries < 5 && pid_ <= 0; ++tries) {
      port_ = RedisServer::free_port();
      launch(binary, master_port, tls, host);
    }
    if (pid_ <= 0) throw std::runtime_error("the sentinel did not start; see " + folder_ + "/log");
  }
  ~SentinelServer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  SentinelServer(const SentinelServer&) = delete;
  SentinelServer& operator=(const SentinelServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  std::string command(const std::string& line) const { return RawConnection(folder_ + "/socket").command(line); }
  void pause() const { ::kill(pid_, SIGSTOP); }
  void resume() const { ::kill(pid_, SIGCONT); }
  // What it has told its subscribers stands there, too.
  [[nodiscard]] std::string log() const {
    std::ifstream file(folder_ + "/log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  void launch(const std::string& binary, int master_port, const ServerTls& tls, const std::string& host) {
    std::ofstream file(folder_ + "/sentinel.conf");
    const std::vector<std::string> words = tls.settings(port_);  // --NAME VALUE ...
    for (std::size_t at = 0; at < words.size(); at += 2) file << words[at].substr(2) << ' ' << words[at + 1] << '\n';
    const bool named = host != "127.0.0.1";
    file << "bind 127.0.0.1" << (named ? " -::1" : "") << "\nprotected-mode no\ndir " << folder_ << "\n";
    if (named) file << "sentinel resolve-hostnames yes\nsentinel announce-hostnames yes\n";
    file << "unixsocket " << folder_ << "/socket\nsentinel monitor mymaster " << host << ' ' << master_port
         << " 2\nsentinel down-after-milliseconds mymaster 30000\nsentinel failover-timeout mymaster 5000\n"
         << "sentinel parallel-syncs mymaster 2\n";
    file.close();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int log = ::open((folder_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(log, 1);
      ::dup2(log, 2);
      ::execl(binary.c_str(), binary.c_str(), (folder_ + "/sentinel.conf").c_str(), "--sentinel",
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    for (int tries = 0; tries < 2000; ++tries) {
      RawConnection connection(folder_ + "/socket");
      if (connection.connected() && connection.command("PING") == "PONG") return;
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        return;
      }
      ::poll(nullptr, 0, 5);
    }
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  std::string folder_;
  int port_ = 0;
  pid_t pid_ = -1;
};

class SentinelSetup : public ReplicaSetup {
 public:
  static constexpr std::size_t processes = 6;

  // With `tls`, one of each process, the servers first, all of them speak TLS. `host`: how everybody names everybody.
  explicit SentinelSetup(const std::string& binary, const std::vector<ServerTls>& tls = {},
                         const std::string& host = "127.0.0.1")
      : ReplicaSetup(binary, 2, tls, host) {
    for (std::size_t index = servers.size(); index < processes; ++index)
      sentinels.push_back(std::make_unique<SentinelServer>(binary, servers[0]->port(),
                                                           index < tls.size() ? tls[index] : ServerTls(), host));
    // A sentinel that knows no replica yet cannot fail over.
    await([this] {
      for (const auto& sentinel : sentinels)
        if (count_in(sentinel->command("SENTINEL REPLICAS mymaster"), "master-link-status ok") != 2) return false;
      return servers[0]->command("INFO replication").find("connected_slaves:2") != std::string::npos;
    });
  }

  [[nodiscard]] std::string hosts() const {
    std::string text;
    for (const auto& sentinel : sentinels)
      text += (text.empty() ? "" : ",") + host() + ":" + std::to_string(sentinel->port());
    return text;
  }
  [[nodiscard]] std::string url() const { return "redis-sentinel://" + hosts() + "/mymaster"; }
  // As the sentinel sees it.
  [[nodiscard]] RedisServer& master() const {
    const std::string address = sentinels[0]->command("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster");
    for (const auto& server : servers)
      if (address == host() + " " + std::to_string(server->port())) return *server;
    throw std::runtime_error("the sentinel names nobody that we know: " + address);
  }
  // To one of the replicas; returns when all sentinels name it and it is a master, and the old master is none any more.
  RedisServer& fail_over() {
    RedisServer& before = master();
    const std::string word = sentinels[0]->command("SENTINEL FAILOVER mymaster");
    if (word != "OK") throw std::runtime_error("no fail-over: " + word);
    await([&] {
      RedisServer& after = master();
      if (&after == &before || role_of(after) != "master" || role_of(before) != "slave") return false;
      for (const auto& sentinel : sentinels)
        if (sentinel->command("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster") !=
            host() + " " + std::to_string(after.port()))
          return false;
      return true;
    });
    return master();
  }
  [[nodiscard]] static std::string role_of(const RedisServer& server) {
    const std::string role = server.command("ROLE");
    return role.substr(0, role.find(' '));
  }
  // Each replica has what the master has.
  void await_replicas() const { await_replicas_of(master()); }

  std::vector<std::unique_ptr<SentinelServer>> sentinels;

 private:
  static int count_in(const std::string& text, const std::string& wanted) {
    int count = 0;
    for (std::size_t at = 0; (at = text.find(wanted, at)) != std::string::npos; ++at) ++count;
    return count;
  }
};

// TEST_ON_SETUP(name) { ... `setup` is a fresh SentinelSetup ... }
#define TEST_ON_SETUP(name) TEST_ON(SentinelSetup, setup, name)
// The same with servers and sentinels that name each other `localhost`.
#define TEST_ON_NAMED_SETUP(name) TEST_ON(SentinelSetup, setup, name, {}, "localhost")
