// SPDX-License-Identifier: MIT
//
// What a process or a thread has had of the processors. Unlike the time that passes, it does not grow while others have
// the core.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <stdexcept>

namespace bench {

inline std::chrono::nanoseconds cpu_time(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) throw std::runtime_error("a processor clock cannot be read");
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Of another process, all its threads.
inline std::chrono::nanoseconds cpu_time_of(pid_t process) {
  clockid_t clock{};
  if (::clock_getcpuclockid(process, &clock) != 0) throw std::runtime_error("a process has no processor clock");
  return cpu_time(clock);
}

}  // namespace bench
