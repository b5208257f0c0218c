// SPDX-License-Identifier: MIT
//
// AsyncScopedLock lets go of a lock of an Asio loop at the end of a scope, and AsyncScopedRedlock of one on a quorum:
//
//     co_await lock.async_acquire(2s, asio::use_awaitable);
//     AsyncScopedLock guard(lock, adopt_hold);
//
// The release is posted: nobody waits for the server's word. Who wants it dismisses the guard and awaits async_release().
#pragma once

#include "holdfast/asio/async_lock.hpp"
#include "holdfast/asio/async_quorum_lock.hpp"
#include "holdfast/scoped_lock.hpp"

namespace holdfast {

using AsyncScopedLock = BasicScopedLock<AsyncLock>;
using AsyncScopedRedlock = BasicScopedLock<AsyncQuorumLock>;

}  // namespace holdfast
