// SPDX-License-Identifier: MIT
//
// holdfast release --force: takes a lock from whoever holds it, and wakes who waits for it.
#pragma once

#include "options.hpp"

namespace holdfast::cli {

// Returns the exit code of this process: exit_ok when a hold was ended, exit_free when there was none.
[[nodiscard]] int release(const ReleaseOptions& options);

}  // namespace holdfast::cli
