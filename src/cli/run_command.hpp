// SPDX-License-Identifier: MIT
//
// holdfast run: takes the lock, runs the command under it, lets it go.
#pragma once

#include "options.hpp"

namespace holdfast::cli {

// Returns the exit code of this process.
[[nodiscard]] int run(const RunOptions& options);

}  // namespace holdfast::cli
