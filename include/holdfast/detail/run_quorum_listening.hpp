// SPDX-License-Identifier: MIT
//
// Waiting by push on all nodes of a quorum.
#pragma once

#include "holdfast/detail/quorum_record.hpp"

namespace holdfast {

// Runs the call of a kind that announces its releases. A message of any node wakes the waiter; nodes that cannot be subscribed
// to are done without, and with none of them it polls.
[[nodiscard]] Status run_listening(QuorumRecord& record) noexcept;

}  // namespace holdfast
