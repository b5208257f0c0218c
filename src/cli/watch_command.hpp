// SPDX-License-Identifier: MIT
//
// holdfast watch: shows who holds which locks while that changes.
#pragma once

#include "options.hpp"

namespace holdfast::cli {

// Returns what to exit with. Everything is told. The server's password is wiped.
[[nodiscard]] int watch(WatchOptions& options);

}  // namespace holdfast::cli
