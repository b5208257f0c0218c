// SPDX-License-Identifier: MIT
//
// HOLDFAST_ASSERT guards against our own mistakes and against a caller who breaks a REQUIRES line. It is on in
// release builds too. Bytes from a peer never reach it: those end in a Status.
#pragma once

#include "holdfast/proto/language.hpp"

namespace holdfast {

// Called with the place of a broken assertion. A handler must not return; if it does, the process is aborted.
using AssertionHandler = void (*)(const char* file, int line) noexcept;

// Replaces the handler for the whole process; nullptr restores the default. Set it before threads start.
// The default writes file and line to standard error, in one write(2), and aborts. Where there is no POSIX it only aborts.
void set_assertion_handler(AssertionHandler handler) noexcept;

[[noreturn]] void assertion_failed(const char* file, int line) noexcept;

}  // namespace holdfast

// The expression's text is left out on purpose: file and line are enough, and the text would cost kilobytes.
#define HOLDFAST_ASSERT(condition)                           \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::holdfast::assertion_failed(__FILE_NAME__, __LINE__); \
  } while (false)
