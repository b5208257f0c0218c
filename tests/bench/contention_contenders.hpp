// SPDX-License-Identifier: MIT
//
// Who fights for one lock in bench_contention: each contender is many clients of one kind, which acquire, hold and release
// in a loop and write into a ContentionMemory.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "contention_memory.hpp"

namespace bench {

struct ContentionTask {
  const ContentionMemory& memory;
  int port;  // Of the server on the loopback interface.
  std::string key;
  std::chrono::nanoseconds hold;
  std::chrono::nanoseconds pause;  // Of each client, between a release and its next acquire.
};

// The clients of one run. Those that are left when it goes are killed, and they do not outlive this process.
class Crowd {
 public:
  virtual ~Crowd() = default;
  // Throws std::runtime_error where a client has ended, which none does by itself before the phase is ending.
  virtual void expect_alive() = 0;
  // Waits until all have ended. Throws where one has failed, or takes too long.
  virtual void finish() = 0;
};

struct Contender {
  std::string name;
  std::function<std::unique_ptr<Crowd>(const ContentionTask&)> start;
};

// All that can run here. Of the others it says on stdout why they cannot.
std::vector<Contender> contention_contenders();

}  // namespace bench
