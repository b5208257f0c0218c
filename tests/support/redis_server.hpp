// SPDX-License-Identifier: MIT
//
// RedisServer is a private server for one test: on a Unix socket and a free TCP port of the loopback interface, without
// persistence unless asked, in a folder of its own. It goes with its object, and with the test should that be killed.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "resp_text.hpp"

// The server binaries that live tests run over: HOLDFAST_SERVERS (separated by colons), else redis-server and
// valkey-server where they are in the path.
inline std::vector<std::string> server_binaries() {
  std::vector<std::string> found;
  const auto split = [](const std::string& list, auto&& use) {
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(':', begin), list.size());
      if (end > begin) use(list.substr(begin, end - begin));
      begin = end + 1;
    }
  };
  const char* const path = std::getenv("PATH");
  const auto look_up = [&](const std::string& name) {
    if (name.find('/') != std::string::npos) {
      if (::access(name.c_str(), X_OK) == 0) found.push_back(name);
      return;
    }
    bool done = false;
    split(path == nullptr ? "/usr/bin:/bin" : path, [&](const std::string& folder) {
      if (done || ::access((folder + "/" + name).c_str(), X_OK) != 0) return;
      found.push_back(folder + "/" + name);
      done = true;
    });
  };
  if (const char* const servers = std::getenv("HOLDFAST_SERVERS"); servers != nullptr && *servers != '\0') {
    split(servers, look_up);
  } else {
    look_up("redis-server");
    look_up("valkey-server");
  }
  // For tests whose matter is the same on each.
  if (std::getenv("HOLDFAST_ONE_SERVER") != nullptr && found.size() > 1) found.resize(1);
  return found;
}

// One command of the test's own, outside of holdfast: sent whole, the raw reply read until it is complete. Inline
// commands only, so arguments have no spaces unless quoted.
class RawConnection {
 public:
  explicit RawConnection(const std::string& socket_path) {
    descriptor_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
    connected_ = ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawConnection() { ::close(descriptor_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

  // The first line of the reply, or its bulk's bytes; "(nil)" for a null; an array's elements joined by spaces.
  std::string command(const std::string& line) {
    const std::string bytes = line + "\r\n";
    if (::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return "(closed)";
    return read_value();
  }
  // The same with arguments of any bytes.
  std::string command(const std::vector<std::string>& arguments) {
    const std::string bytes = holdfast::testing::command_of(arguments);
    if (::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return "(closed)";
    return read_value();
  }

 private:
  std::string read_line() {
    std::string line;
    char byte = 0;
    while (::recv(descriptor_, &byte, 1, 0) == 1) {
      line += byte;
      if (line.size() >= 2 && line.substr(line.size() - 2) == "\r\n") return line.substr(0, line.size() - 2);
    }
    return "-(closed)";
  }
  std::string read_value() {
    const std::string line = read_line();
    if (line[0] == '+' || line[0] == ':') return line.substr(1);
    if (line[0] == '-') return line == "-(closed)" ? "(closed)" : line;
    const long count = std::strtol(line.c_str() + 1, nullptr, 10);
    if (count < 0) return "(nil)";
    std::string value;
    if (line[0] == '$') {
      value.resize(static_cast<std::size_t>(count) + 2);
      for (std::size_t at = 0; at < value.size();) {
        const ssize_t got = ::recv(descriptor_, value.data() + at, value.size() - at, 0);
        if (got <= 0) return "(closed)";
        at += static_cast<std::size_t>(got);
      }
      value.resize(value.size() - 2);
      return value;
    }
    for (long index = 0; index < count; ++index) {
      if (index != 0) value += ' ';
      value += read_value();
    }
    return value;
  }

  int descriptor_ = -1;
  bool connected_ = false;
};

// What a server shows that speaks TLS, and by what it trusts others: PEM files. Without a certificate it speaks none.
struct ServerTls {
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;

  // Of its port, and of what it says to other servers as their client.
  [[nodiscard]] std::vector<std::string> settings(int port) const {
    if (certificate_file.empty()) return {"--port", std::to_string(port)};
    return {"--port",
            "0",
            "--tls-port",
            std::to_string(port),
            "--tls-cert-file",
            certificate_file,
            "--tls-key-file",
            key_file,
            "--tls-ca-cert-file",
            ca_file,
            "--tls-replication",
            "yes",
            "--tls-cluster",
            "yes"};
  }
};

class RedisServer {
 public:
  // With `tls` its port speaks nothing else.
  explicit RedisServer(const std::string& binary, std::vector<std::string> settings = {}, ServerTls tls = {})
      : binary_(binary), settings_(std::move(settings)), tls_(std::move(tls)) {
    char name[] = "/tmp/holdfast-test-XXXXXX";
    if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = name;
    // Another server may take the port between the look and the start.
    for (int tries = 0; tries < 5 && pid_ <= 0; ++tries) {
      if (reservation_ >= 0) ::close(reservation_);
      port_ = free_port();
      reservation_ = reserve(port_);
      if (reservation_ >= 0) launch();
    }
    expect_started();
  }
  ~RedisServer() {
    stop();
    if (reservation_ >= 0) ::close(reservation_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] std::string socket_path() const { return folder_ + "/socket"; }
  [[nodiscard]] std::string unix_url() const { return "unix://" + socket_path(); }
  [[nodiscard]] std::string tcp_url() const { return "redis://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& binary() const { return binary_; }

  // One command on a connection of its own.
  std::string command(const std::string& line) const { return RawConnection(socket_path()).command(line); }
  std::string command(const std::vector<std::string>& arguments) const {
    return RawConnection(socket_path()).command(arguments);
  }

  // How often the server has run a command, written in lower case; those of scripts count as well.
  [[nodiscard]] long calls(const std::string& name) const {
    const std::string stats = command("INFO commandstats");
    const std::string mark = "cmdstat_" + name + ":calls=";
    const std::size_t at = stats.find(mark);
    return at == std::string::npos ? 0 : std::stol(stats.substr(at + mark.size()));
  }

  // Kills the server as a crash would and waits for its end.
  void stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGCONT);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Starts it again in the same folder and on the same port.
  void start() {
    launch();
    expect_started();
  }
  // The whole process stops or goes on, as under SIGSTOP.
  void pause() const { ::kill(pid_, SIGSTOP); }
  void resume() const { ::kill(pid_, SIGCONT); }

  // A port that is free now, below those that the kernel hands out: there any connection of another test might take it
  // while this server is being started, or started again.
  static int free_port() {
    std::random_device random;
    for (int tries = 0; tries < 100; ++tries) {
      const int port = std::uniform_int_distribution(10000, 32000)(random);
      const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      const bool free = ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      ::close(descriptor);
      const int reservation = free ? reserve(port) : -1;
      if (reservation < 0) continue;
      ::close(reservation);
      return port;
    }
    throw std::runtime_error("no free port");
  }

 private:
  // While it is open, no other test's free_port() gives the port away: a server that is down for a while finds it free again.
  // Below zero where another server of a test has it.
  static int reserve(int port) {
    const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // A name without a file: it begins with a zero byte.
    const std::string name = "holdfast-test-port-" + std::to_string(port);
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size) == 0) return descriptor;
    ::close(descriptor);
    return -1;
  }

  // Returns when it answers, or, without a process, when it has ended.
  void launch() {
    ::unlink(socket_path().c_str());
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int log = ::open((folder_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(log, 1);
      ::dup2(log, 2);
      std::vector<std::string> arguments = {binary_, "--bind", "127.0.0.1", "--unixsocket", socket_path(), "--dir",
                                            folder_, "--save", "",          "--daemonize",  "no"};
      for (const auto& more : {tls_.settings(port_), settings_})
        arguments.insert(arguments.end(), more.begin(), more.end());
      std::vector<char*> pointers;
      for (std::string& argument : arguments) pointers.push_back(argument.data());
      pointers.push_back(nullptr);
      ::execv(binary_.c_str(), pointers.data());
      ::_exit(127);
    }
    // Ready when it answers. A server has no event for that; the socket is asked again after a breath.
    for (int tries = 0; tries < 2000; ++tries) {
      RawConnection connection(socket_path());
      if (connection.connected()) {
        const std::string answer = connection.command("PING");
        if (answer == "PONG" || answer.rfind("-NOAUTH", 0) == 0) return;
      }
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        return;
      }
      ::poll(nullptr, 0, 5);
    }
    stop();
  }
  void expect_started() const {
    if (pid_ <= 0) throw std::runtime_error("the server " + binary_ + " did not start; see " + folder_ + "/log");
  }

  std::string binary_;
  std::vector<std::string> settings_;
  ServerTls tls_;
  std::string folder_;
  int port_ = 0;
  int reservation_ = -1;  // Of the port.
  pid_t pid_ = -1;
};
