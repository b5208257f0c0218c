// SPDX-License-Identifier: MIT
//
// The checking half of a fence, for a resource that is kept in Redis: a holder that was paused and came back too late is
// refused by the resource itself, which no lock can do. proto/scripts/fenced_set.lua is the check; a resource elsewhere does
// the same by its own means (examples/fenced_resource.cpp shows SQLite).
#pragma once

#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/core/inquiry.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

// Writes `value` to the string key `resource` if `fence` is no smaller than any that has written there; `written` says
// whether it was. The client may be any that speaks to the resource's server. One attempt; blocks like Mutex::try_acquire().
// Errors: invalid_argument (the key; a fence of 0 or above 2^63 - 1); buffer_too_small (a value above fenced_value_size_max);
// connection failures; the server's refusals; a lost reply is unknown, and asking again is safe while the fence is the
// largest. `written` is untouched then. A long value that the server does not take within a request timeout ends the connection.
[[nodiscard]] Status fenced_set(ClientBase& client, Key resource, std::uint64_t fence, BytesArgument value,
                                bool& written) noexcept;

}  // namespace holdfast
