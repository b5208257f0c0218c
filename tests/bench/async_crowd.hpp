// SPDX-License-Identifier: MIT
//
// A crowd on one Asio loop and one thread: many holds that are kept alive and many waiters by push, for some leases. Is
// one missed, how long does a hand-off take, and what does it cost?
#pragma once

#include <chrono>
#include <cstddef>

#include "redis_server.hpp"
#include "report.hpp"

namespace bench {

struct CrowdSize {
  std::size_t holds = 10'000;
  std::size_t waiters = 1000;
  std::chrono::milliseconds lease{6000};
  int leases = 4;  // How long it is kept, in leases.
};

// The loop runs on the calling thread, the others' client on `other_cpu`.
void measure_crowd(Report& report, const RedisServer& server, const CrowdSize& size, int other_cpu);

}  // namespace bench
