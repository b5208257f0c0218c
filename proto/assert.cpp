// SPDX-License-Identifier: MIT
#include "holdfast/assert.hpp"

#include <cstdlib>

namespace holdfast {

namespace {
AssertionHandler installed = nullptr;  // Set before threads start, so no atomic.
}

void set_assertion_handler(AssertionHandler handler) noexcept { installed = handler; }

void assertion_failed(const char* file, int line) noexcept {
  if (installed != nullptr) installed(file, line);
  std::abort();
}

}  // namespace holdfast
