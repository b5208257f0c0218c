// SPDX-License-Identifier: MIT
//
// AnsweringServer answers each command as a function of the test says: a peer that is well-behaved, hostile or silent, word by
// word. One connection at a time.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

class AnsweringServer {
 public:
  using Words = std::vector<std::string>;
  // What it answers, on its thread; nothing: it is silent.
  using Answer = std::function<std::string(const Words& words)>;

  AnsweringServer(const std::string& path, Answer answer) : path_(path), answer_(std::move(answer)) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ::unlink(path.c_str());
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::listen(listener_, 16);
    thread_ = std::thread([this] { run(); });
  }
  ~AnsweringServer() {
    ::shutdown(listener_, SHUT_RDWR);
    const int connection = connection_.exchange(-1);
    if (connection >= 0) ::shutdown(connection, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    ::unlink(path_.c_str());
  }
  AnsweringServer(const AnsweringServer&) = delete;
  AnsweringServer& operator=(const AnsweringServer&) = delete;

  [[nodiscard]] std::string url() const { return "unix://" + path_; }

 private:
  // Takes one line, or so many bytes and a line's end, off the front. False: they are not all there yet.
  static bool take(const std::string& bytes, std::size_t& at, std::string& text, std::size_t size) {
    const std::size_t end = size == std::string::npos ? bytes.find("\r\n", at) : at + size;
    if (end == std::string::npos || end + 2 > bytes.size()) return false;
    text = bytes.substr(at, end - at);
    at = end + 2;
    return true;
  }
  static bool take_command(std::string& bytes, Words& words) {
    std::size_t at = 0;
    std::string head;
    if (!take(bytes, at, head, std::string::npos)) return false;
    words.resize(std::strtoul(head.c_str() + 1, nullptr, 10));
    for (std::string& word : words)
      if (!take(bytes, at, head, std::string::npos) ||
          !take(bytes, at, word, std::strtoul(head.c_str() + 1, nullptr, 10)))
        return false;
    bytes.erase(0, at);
    return true;
  }
  void run() {
    for (int connection = 0; (connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      connection_ = connection;
      std::string bytes;
      char part[4096];
      for (ssize_t count = 0; (count = ::recv(connection, part, sizeof part, 0)) > 0;) {
        bytes.append(part, static_cast<std::size_t>(count));
        for (Words words; take_command(bytes, words);) {
          const std::string text = answer_(words);
          (void)!::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
        }
      }
      connection_ = -1;
      ::close(connection);
    }
  }

  std::string path_;
  Answer answer_;
  int listener_ = -1;
  std::atomic<int> connection_{-1};
  std::thread thread_;
};
