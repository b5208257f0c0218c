// SPDX-License-Identifier: MIT
//
// holdfast acquire: takes a lock, prints what proves it, and ends; the lock stays for its lease.
#pragma once

#include "options.hpp"

namespace holdfast::cli {

// Returns the exit code of this process. Does not return where the lock is held.
[[nodiscard]] int acquire(AcquireOptions& options);

}  // namespace holdfast::cli
