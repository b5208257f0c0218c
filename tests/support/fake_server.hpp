// SPDX-License-Identifier: MIT
//
// FakeServer says what it is told to, whatever it is asked: a hostile or broken peer. For each connection it sends the
// next text of its list as soon as the client has sent something, then reads on until the client closes.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

class FakeServer {
 public:
  FakeServer(const std::string& path, std::vector<std::string> texts) : path_(path), texts_(std::move(texts)) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ::unlink(path.c_str());
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::listen(listener_, 16);
    thread_ = std::thread([this] { run(); });
  }
  ~FakeServer() {
    ::shutdown(listener_, SHUT_RDWR);
    const int connection = connection_.exchange(-1);
    if (connection >= 0) ::shutdown(connection, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    ::unlink(path_.c_str());
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  [[nodiscard]] std::string url() const { return "unix://" + path_; }

 private:
  void run() {
    for (std::size_t index = 0;; ++index) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      connection_ = connection;
      char bytes[4096];
      bool answered = false;
      while (::recv(connection, bytes, sizeof bytes, 0) > 0) {
        const std::string& text = texts_[index < texts_.size() ? index : texts_.size() - 1];
        if (!answered) (void)!::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
        answered = true;
      }
      connection_ = -1;
      ::close(connection);
    }
  }

  std::string path_;
  std::vector<std::string> texts_;
  int listener_ = -1;
  std::atomic<int> connection_{-1};
  std::thread thread_;
};
