// SPDX-License-Identifier: MIT
//
// ConnectionServer listens on a Unix socket, and hands one connection after the other to a function of the test's: what all
// peers that are no real server have in common.
#pragma once

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
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    ::unlink(path_.c_str());
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::listen(listener_, 16);
    thread_ = std::thread([this] { run(); });
  }
  ~ConnectionServer() {
    ::shutdown(listener_, SHUT_RDWR);
    const int connection = connection_.exchange(-1);
    if (connection >= 0) ::shutdown(connection, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    ::unlink(path_.c_str());
  }
  ConnectionServer(const ConnectionServer&) = delete;
  ConnectionServer& operator=(const ConnectionServer&) = delete;

  [[nodiscard]] std::string url() const { return "unix://" + path_; }

  static void send_text(int connection, const std::string& text) {
    (void)!::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
  }

 private:
  void run() {
    for (int connection = 0; (connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      connection_ = connection;
      serve_(connection);
      connection_ = -1;
      ::close(connection);
    }
  }

  std::string path_;
  Serve serve_;
  int listener_ = -1;
  std::atomic<int> connection_{-1};
  std::thread thread_;
};
