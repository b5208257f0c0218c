// SPDX-License-Identifier: MIT
//
// Waiting by push: the client's subscription connection hears of releases, so that a waiter costs the server nothing and
// is woken at once.
#pragma once

#include "holdfast/detail/hold_record.hpp"

namespace holdfast {

// Runs the task of a kind that announces its releases. The subscription is made when the first waiter comes, and given up when
// the last one goes (over TCP, within 200 ms of it). Where it cannot be had, the waiter polls.
[[nodiscard]] Status run_listening(HoldRecord& record, NodeTask& task) noexcept;
// The same of a kind whose waiters stand in a queue. Over a channel of the client's own, whose subscription stays.
[[nodiscard]] Status run_queueing(HoldRecord& record, NodeTask& task) noexcept;

}  // namespace holdfast
