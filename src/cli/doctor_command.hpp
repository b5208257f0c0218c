// SPDX-License-Identifier: MIT
//
// holdfast doctor: whether locks are safe on these servers, for this user.
#pragma once

#include "options.hpp"

namespace holdfast::cli {

// Returns the exit code of this process, by the worst finding: exit_ok, exit_warning or exit_danger.
[[nodiscard]] int doctor(DoctorOptions& options);

}  // namespace holdfast::cli
