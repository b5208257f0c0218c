// SPDX-License-Identifier: MIT
//
// holdfast info: who holds a lock, of whatever client, as lines of `name: value`.
#pragma once

#include "options.hpp"

namespace holdfast::cli {

// Returns the exit code of this process: exit_ok for a lock that is held, exit_free for one that is not.
[[nodiscard]] int info(const InfoOptions& options);

}  // namespace holdfast::cli
