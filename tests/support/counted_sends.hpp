// SPDX-License-Identifier: MIT
//
// Counts the sends of one thread. REQUIRES: one source of the runner includes this, and it is linked with -Wl,--wrap=send.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>

inline thread_local int sends_counted = 0;

extern "C" {
ssize_t __real_send(int, const void*, std::size_t, int);
ssize_t __wrap_send(int descriptor, const void* bytes, std::size_t size, int flags) {
  ++sends_counted;
  return __real_send(descriptor, bytes, size, flags);
}
}

// How many sends it takes.
template <class Action>
[[nodiscard]] int sends_of(Action&& action) {
  const int before = sends_counted;
  action();
  return sends_counted - before;
}
