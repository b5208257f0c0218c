// SPDX-License-Identifier: MIT
//
// Waiting by push on all nodes of a quorum.
#pragma once

#include "holdfast/quorum_lock.hpp"

namespace holdfast {

// Goes on with an acquire that found the lock busy, until it is granted or the deadline has passed. A message of any node
// wakes the waiter; nodes that cannot be subscribed to are done without, and with none of them it polls.
[[nodiscard]] Status wait_by_push(QuorumLock& lock, Instant deadline, Status outcome) noexcept;

}  // namespace holdfast
