// SPDX-License-Identifier: MIT
//
// holdfast run: takes the lock, runs the command under it, lets it go.
#pragma once

#include "options.hpp"

namespace holdfast::cli {

// Returns the exit code of this process. The passwords in the options are wiped as soon as the client has them.
[[nodiscard]] int run(RunOptions& options);

}  // namespace holdfast::cli
