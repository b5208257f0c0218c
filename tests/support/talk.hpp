// SPDX-License-Identifier: MIT
//
// Talk is a server whose every word is the test's: it says nothing by itself, and tells what it was asked. Connections are
// numbered from 0 in the order in which they were accepted. Without a thread: it moves its bytes when it is asked something.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

class Talk {
 public:
  Talk() : path_("/tmp/holdfast-talk-" + std::to_string(::getpid()) + "-" + std::to_string(++made_)) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    ::unlink(path_.c_str());
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 64) != 0)
      throw std::runtime_error("nobody can talk at " + path_);
  }
  ~Talk() {
    for (const Line& line : lines_) ::close(line.descriptor);
    ::close(listener_);
    ::unlink(path_.c_str());
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  [[nodiscard]] std::string url() const { return "unix://" + path_; }
  [[nodiscard]] std::size_t connections() {
    for (int caller = accept(); caller >= 0; caller = accept()) lines_.push_back({caller, {}});
    return lines_.size();
  }
  // These words have been said on this connection. What stands before them is forgotten, and they with it.
  [[nodiscard]] bool hears(std::size_t number, const std::string& words) {
    if (number >= connections()) return false;
    Line& line = lines_[number];
    char bytes[4096];
    for (ssize_t count = 0; (count = ::recv(line.descriptor, bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
      line.heard.append(bytes, static_cast<std::size_t>(count));
    const std::size_t at = line.heard.find(words);
    if (at == std::string::npos) return false;
    line.heard.erase(0, at + words.size());
    return true;
  }
  void say(std::size_t number, const std::string& words) {
    (void)!::send(lines_[number].descriptor, words.data(), words.size(), MSG_NOSIGNAL);
  }
  void hang_up(std::size_t number) { ::shutdown(lines_[number].descriptor, SHUT_RDWR); }

 private:
  struct Line {
    int descriptor;
    std::string heard;
  };
  [[nodiscard]] int accept() const { return ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); }

  static inline std::atomic<int> made_{0};
  std::string path_;
  int listener_ = -1;
  std::vector<Line> lines_;
};
