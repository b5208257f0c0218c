// SPDX-License-Identifier: MIT
//
// ConnectionServer listens on a Unix socket, or without a path on a port of the loopback interface, and hands one connection after
// the other to a function of the test's: what all peers that are no real server have in common.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>

class ConnectionServer {
 public:
  // It serves until the client closes, on a thread of this object's; the connection is closed after it.
  using Serve = std::function<void(int connection)>;

  ConnectionServer(std::string path, Serve serve) : path_(std::move(path)), serve_(std::move(serve)) {
    if (path_.empty())
      listen_on_port();
    else
      listen_on_path();
    ::listen(listener_, 16);
    thread_ = std::thread([this] { run(); });
  }
  ~ConnectionServer() {
    ::shutdown(listener_, SHUT_RDWR);
    const int connection = connection_.exchange(-1);
    if (connection >= 0) ::shutdown(connection, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  ConnectionServer(const ConnectionServer&) = delete;
  ConnectionServer& operator=(const ConnectionServer&) = delete;

  [[nodiscard]] std::string url() const { return path_.empty() ? "redis://" + host() : "unix://" + path_; }
  // REQUIRES: it has no path.
  [[nodiscard]] std::string host() const { return "127.0.0.1:" + std::to_string(port_); }

  static void send_text(int connection, const std::string& text) {
    (void)!::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
  }

 private:
  void listen_on_path() {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    ::unlink(path_.c_str());
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  void listen_on_port() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  void run() {
    for (int connection = 0; (connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      connection_ = connection;
      serve_(connection);
      connection_ = -1;
      ::close(connection);
    }
  }

  std::string path_;
  int port_ = 0;
  Serve serve_;
  int listener_ = -1;
  std::atomic<int> connection_{-1};
  std::thread thread_;
};
