// SPDX-License-Identifier: MIT
#include "start_thread.hpp"

#include <signal.h>

#include <cstddef>

namespace holdfast {

namespace {

// For the thread's own frames, what callbacks need, and the resolver of libc, which keeps answers of a few kilobytes on its
// stack, as may the modules that it loads.
constexpr std::size_t stack_size = 256 * 1024;

}  // namespace

int start_thread(pthread_t& thread, void* (*run)(void*), void* argument) noexcept {
  // It inherits what is blocked.
  sigset_t all;
  sigset_t before;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  int error = ::pthread_attr_init(&attributes);
  if (error == 0) {
    (void)::pthread_attr_setstacksize(&attributes, stack_size);  // Where it is refused, the default does.
    error = ::pthread_create(&thread, &attributes, run, argument);
    (void)::pthread_attr_destroy(&attributes);
  }
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace holdfast
