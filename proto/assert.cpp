// SPDX-License-Identifier: MIT
#include "holdfast/proto/assert.hpp"

#include <cstddef>
#include <cstdlib>

// A process that is about to die may say why: the one system call below the I/O line. A microcontroller has none, and is
// built without it.
#if defined(__unix__) || defined(__APPLE__)
#define HOLDFAST_LAST_WORDS 1
#include <sys/uio.h>
#include <unistd.h>
#else
#define HOLDFAST_LAST_WORDS 0
#endif

namespace holdfast {

namespace {

AssertionHandler installed = nullptr;  // Set before threads start, so no atomic.

#if HOLDFAST_LAST_WORDS
constexpr const char* failed = ": an assertion failed; see REQUIRES in the headers\n";

iovec word(const char* text) noexcept { return {const_cast<char*>(text), __builtin_strlen(text)}; }

// In one write, so that another thread's words do not come between.
void tell(const char* file, int line) noexcept {
  char number[12];  // ":2147483647"
  char* const end = number + sizeof number;
  char* at = end;
  auto left = static_cast<unsigned>(line);
  do *--at = static_cast<char>('0' + left % 10);
  while ((left /= 10) != 0);
  *--at = ':';
  iovec words[] = {word("holdfast: "), word(file), {at, static_cast<std::size_t>(end - at)}, word(failed)};
  if (::writev(STDERR_FILENO, words, 4) < 0) return;  // Nobody hears it.
}
#else
void tell(const char*, int) noexcept {}
#endif

}  // namespace

void set_assertion_handler(AssertionHandler handler) noexcept { installed = handler; }

void assertion_failed(const char* file, int line) noexcept {
  if (installed != nullptr)
    installed(file, line);
  else
    tell(file, line);
  std::abort();
}

}  // namespace holdfast
