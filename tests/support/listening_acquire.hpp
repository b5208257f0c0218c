// SPDX-License-Identifier: MIT
//
// An acquire on a thread of its own, that has been refused and listens. Of the client that clients.hpp names.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "clients.hpp"
#include "patience.hpp"

struct ListeningAcquire {
  // Returns when so many listen on the channel.
  ListeningAcquire(const RedisServer& server, BlockingLock& lock, const std::string& channel, int listeners = 1) {
    thread = std::thread([this, &lock] {
      outcome = lock.acquire(60s);
      done.store(true);
    });
    TEST_ASSERT_TRUE(
        comes([&] { return server.command("PUBSUB NUMSUB " + channel) == channel + " " + std::to_string(listeners); }));
    breathe(20ms);
  }
  ~ListeningAcquire() {
    if (thread.joinable()) thread.join();
  }
  // By then it was woken, and came neither by the end of a lease of 20 s nor by its last attempt.
  Status join() {
    const Instant begin = Client::now();
    thread.join();
    TEST_ASSERT_TRUE(Client::now() - begin < 10s);
    return outcome;
  }
  std::thread thread;
  std::atomic<bool> done = false;
  Status outcome = Status::outcome_unknown;
};
