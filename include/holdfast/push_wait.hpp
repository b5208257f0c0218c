// SPDX-License-Identifier: MIT
//
// Waiting by push: the client's subscription connection hears of releases, so that a waiter costs the server nothing and
// is woken at once.
#pragma once

#include "holdfast/hold_record.hpp"

namespace holdfast {

// Goes on with an acquire that found the lock busy, until it is granted or the deadline has passed. The subscription is
// made when the first waiter comes, and given up when the last one goes (over TCP, within 200 ms of it); where it cannot be
// had, the waiter polls.
[[nodiscard]] Status wait_by_push(HoldRecord& record, Instant deadline, Status outcome) noexcept;

}  // namespace holdfast
