// SPDX-License-Identifier: MIT
#include "holdfast/assert.hpp"

#include <cstdlib>

namespace holdfast {

namespace {
AssertionHandler handler = nullptr;  // Set before threads start, so no atomic.
}

void set_assertion_handler(AssertionHandler replacement) noexcept { handler = replacement; }

void assertion_failed(const char* file, int line) noexcept {
  if (handler != nullptr) handler(file, line);
  std::abort();
}

}  // namespace holdfast
