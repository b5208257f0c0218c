// SPDX-License-Identifier: MIT
//
// The clock of every Instant here: CLOCK_BOOTTIME, which runs on while the machine sleeps, as leases do. Drivers read it; the
// core is told.
#pragma once

#include "holdfast/instant.hpp"

namespace holdfast {

// Instant::max() where it cannot be read: then nothing is held any more, and errno says why. Any thread.
[[nodiscard]] Instant read_clock() noexcept;

}  // namespace holdfast
