// SPDX-License-Identifier: MIT
//
// An acquire on a thread of its own, that a test looks at and joins. Stand it behind its client and its lock: it cancels the
// call when it goes. Of the client that clients.hpp names.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "clients.hpp"
#include "patience.hpp"

class Waiting {
 public:
  explicit Waiting(Client& client) : client_(client) {}
  ~Waiting() {
    if (!thread_.joinable()) return;
    client_.cancel();
    thread_.join();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void begin(BlockingLock& lock, Duration limit = 60s) {
    done_ = false;
    thread_ = std::thread([this, &lock, limit] {
      outcome_ = lock.acquire(limit);
      done_ = true;
    });
  }
  [[nodiscard]] bool done() const { return done_; }
  // What the call has said, by then.
  Status join(Duration limit = patience) {
    TEST_ASSERT_TRUE(comes([&] { return done(); }, limit));
    thread_.join();
    return outcome_;
  }

 private:
  Client& client_;
  std::thread thread_;
  std::atomic<bool> done_ = false;
  Status outcome_ = Status::outcome_unknown;
};
