// SPDX-License-Identifier: MIT
//
// Proxy stands between a client and a server and does what networks do: it cuts the connection after a number of reply
// bytes, dribbles replies byte by byte, swallows or holds them, says what the server has not said. Connections are numbered
// from 0 in the order in which they were accepted. One thread; everything is said by atomics.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

class Proxy {
 public:
  // Listens at `path` and connects to the server's socket for each client.
  Proxy(const std::string& path, const std::string& server) : path_(path), server_(server) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const sockaddr_un address = make_address(path_);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 16) != 0 || ::pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0)
      throw std::runtime_error("the proxy cannot listen at " + path_);
    thread_ = std::thread([this] { run(); });
  }
  ~Proxy() {
    stop_ = true;
    wake();
    thread_.join();
    for (const Pair& pair : pairs_) close_pair(pair);
    ::close(listener_);
    ::close(wake_[0]);
    ::close(wake_[1]);
    ::unlink(path_.c_str());
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  [[nodiscard]] std::string url() const { return "unix://" + path_; }
  static constexpr std::int64_t never = INT64_MAX;
  // Closes the client's connection after so many more bytes of replies, over all connections; then no more.
  void cut_after(std::int64_t bytes) { cut_after_ = bytes; }
  [[nodiscard]] bool cut_done() const { return cut_after_ == never; }
  // Replies go to the client one byte a write.
  void dribble(bool on) { dribble_ = on; }
  // Replies are read from the server and thrown away. A connection that has lost some stays silent until its end: bytes
  // may stop for good, but they are never left out in the middle.
  void swallow_replies(bool on) { swallow_ = on ? all : none; }
  void swallow_replies_of(int connection) { swallow_ = connection; }
  // Nothing moves in either direction; it piles up in the sockets until let go.
  void hold(bool on) {
    hold_requests_ = on ? all : none;
    hold_replies_of(on ? all : none);
  }
  // The same of one direction, of one connection, of all or of none.
  static constexpr int none = -1;
  static constexpr int all = -2;
  void hold_requests_of(int connection) {
    hold_requests_ = connection;
    wake();
  }
  void hold_replies_of(int connection) {
    hold_replies_ = connection;
    wake();
  }
  // A connection that is accepted from now on hands on no reply before it is so old.
  void delay_new(std::chrono::milliseconds age) { delay_new_ = age.count(); }
  // Each reply that comes from now on is so long on its way.
  void delay_replies(std::chrono::milliseconds by) { late_by_ = by.count(); }
  // Ends every connection; what was held is lost. They have ended when this returns.
  void close_all() {
    std::unique_lock lock(saying_);
    close_all_ = true;
    wake();
    said_.wait(lock, [this] { return !close_all_; });
  }
  // The client receives this as if the server had said it. It lies in the client's socket when this returns.
  void say(int connection, const std::string& text) {
    std::unique_lock lock(saying_);
    said_to_ = connection;
    said_text_ = text;
    wake();
    said_.wait(lock, [this] { return said_text_.empty(); });
  }
  [[nodiscard]] int connections() const { return accepted_; }
  // Bytes that the client sent over one of the first connections, and that were handed on.
  [[nodiscard]] std::int64_t requested(int connection) const { return requested_[index_of(connection)]; }

 private:
  struct Pair {
    int client;
    int server;
    int number;
    bool silent;
    std::chrono::steady_clock::time_point replies_from{};
    [[nodiscard]] bool young() const { return std::chrono::steady_clock::now() < replies_from; }
  };

  [[nodiscard]] static std::size_t index_of(int connection) { return static_cast<std::size_t>(connection) % 64; }
  [[nodiscard]] static bool concerns(int whom, const Pair& pair) { return whom == all || whom == pair.number; }

  static sockaddr_un make_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
  }
  static void close_pair(const Pair& pair) {
    ::close(pair.client);
    ::close(pair.server);
  }
  void wake() const { (void)!::write(wake_[1], "", 1); }

  void accept_one() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = make_address(server_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close_pair({client, server, 0, false});
      return;
    }
    const auto replies_from = std::chrono::steady_clock::now() + std::chrono::milliseconds(delay_new_.load());
    pairs_.push_back({client, server, accepted_, false, replies_from});
    ++accepted_;
  }
  // False when the pair is done for.
  bool to_server(const Pair& pair) {
    char bytes[4096];
    const ssize_t count = ::recv(pair.client, bytes, sizeof bytes, 0);
    if (count <= 0 || ::send(pair.server, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL) != count) return false;
    requested_[index_of(pair.number)] += count;
    return true;
  }
  bool to_client(Pair& pair) {
    char bytes[4096];
    ssize_t count = ::recv(pair.server, bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    pair.silent = pair.silent || concerns(swallow_, pair);
    if (pair.silent) return true;
    std::int64_t left = cut_after_;
    bool cut = false;
    if (left != never) {
      cut = count >= left;
      if (cut) count = static_cast<ssize_t>(left);
      cut_after_ = cut ? never : left - count;
    }
    if (const std::chrono::milliseconds by(late_by_.load()); by.count() != 0) {
      late_.push_back({std::chrono::steady_clock::now() + by, pair.number, {bytes, static_cast<std::size_t>(count)}});
      return !cut;
    }
    const std::size_t piece = dribble_ ? 1 : sizeof bytes;
    for (std::size_t at = 0; at < static_cast<std::size_t>(count);) {
      const std::size_t size = std::min(piece, static_cast<std::size_t>(count) - at);
      if (::send(pair.client, bytes + at, size, MSG_NOSIGNAL) < 0) return false;
      at += size;
    }
    return !cut;
  }
  void send_late() {
    const auto now = std::chrono::steady_clock::now();
    for (; !late_.empty() && late_.front().at <= now; late_.pop_front())
      for (const Pair& pair : pairs_)
        if (pair.number == late_.front().connection)
          (void)!::send(pair.client, late_.front().bytes.data(), late_.front().bytes.size(), MSG_NOSIGNAL);
  }
  void say_now() {
    const std::lock_guard lock(saying_);
    for (const Pair& pair : pairs_)
      if (!said_text_.empty() && concerns(said_to_, pair))
        (void)!::send(pair.client, said_text_.data(), said_text_.size(), MSG_NOSIGNAL);
    said_text_.clear();
    if (close_all_) {
      for (const Pair& pair : pairs_) close_pair(pair);
      pairs_.clear();
      close_all_ = false;
    }
    said_.notify_all();
  }
  void run() {
    while (!stop_) {
      std::vector<pollfd> entries = {{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const Pair& pair : pairs_) {  // A descriptor below zero is passed over.
        entries.push_back({concerns(hold_requests_, pair) ? -1 : pair.client, POLLIN, 0});
        entries.push_back({concerns(hold_replies_, pair) || pair.young() ? -1 : pair.server, POLLIN, 0});
      }
      const bool waits = std::any_of(pairs_.begin(), pairs_.end(), [](const Pair& pair) { return pair.young(); });
      ::poll(entries.data(), entries.size(), !late_.empty() ? 1 : waits ? 5 : -1);
      char drained[16];
      while (::read(wake_[0], drained, sizeof drained) > 0) {}
      say_now();
      send_late();
      std::vector<Pair> kept;
      for (std::size_t index = 0; index < pairs_.size(); ++index) {
        Pair pair = pairs_[index];
        bool alive = true;
        // Asked again: what came after a hold began may have ended the poll that did not know of it.
        if (entries[2 + 2 * index].revents != 0 && !concerns(hold_requests_, pair)) alive = to_server(pair);
        if (alive && entries[3 + 2 * index].revents != 0 && !concerns(hold_replies_, pair)) alive = to_client(pair);
        if (alive)
          kept.push_back(pair);
        else
          close_pair(pair);
      }
      pairs_.swap(kept);
      if (entries[1].revents != 0) accept_one();
    }
  }

  std::string path_;
  std::string server_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  struct Late {
    std::chrono::steady_clock::time_point at;
    int connection;
    std::string bytes;
  };
  std::vector<Pair> pairs_;
  std::deque<Late> late_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> dribble_{false};
  std::atomic<int> swallow_{none};
  std::atomic<int> hold_requests_{none};
  std::atomic<int> hold_replies_{none};
  std::atomic<std::int64_t> cut_after_{never};
  std::atomic<std::int64_t> delay_new_{0};
  std::atomic<std::int64_t> late_by_{0};
  std::atomic<int> accepted_{0};
  std::array<std::atomic<std::int64_t>, 64> requested_{};
  std::mutex saying_;
  std::condition_variable said_;
  std::string said_text_;
  bool close_all_ = false;
  int said_to_ = none;
  std::thread thread_;
};
