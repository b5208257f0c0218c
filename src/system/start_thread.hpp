// SPDX-License-Identifier: MIT
//
// A thread of a watchdog's, or of its resolver's.
#pragma once

#include <pthread.h>

namespace holdfast {

// It runs run(argument), and receives no signal: they are the application's. Returns 0, or an errno value: there is none then.
[[nodiscard]] int start_thread(pthread_t& thread, void* (*run)(void*), void* argument) noexcept;

}  // namespace holdfast
