// SPDX-License-Identifier: MIT
//
// How a lock is acquired, whatever is done under it; and how what may be ours is taken back before we end.
#pragma once

#include <optional>

#include "chosen_lock.hpp"
#include "holdfast/core/instant.hpp"
#include "options.hpp"
#include "signal_relay.hpp"

namespace holdfast::cli {

// How long a server that does not answer may keep us from going, while the lock's own end is as near.
inline constexpr Duration patience_max = std::chrono::seconds(2);

// Connects and waits for the lock. Nothing: it is held, and signals are held back. Otherwise it has been said why not, nothing is
// left of it as far as servers answer, and this is what to end with. The passwords of the options are wiped.
[[nodiscard]] std::optional<int> acquire(ChosenLock& lock, AcquisitionOptions& options, SignalRelay& relay);

// Until then what may be ours is taken back, so long as a server does not confirm it. `what` is said where none does.
void settle(ChosenLock& lock, const AcquisitionOptions& options, SignalRelay& relay, const char* what, Instant until,
            Instant lease_end);

}  // namespace holdfast::cli
