// SPDX-License-Identifier: MIT
//
// The reentrant kinds: a hash of one field, the owner of the hold, and its count. They exclude Redisson's getLock() and
// getFencedLock() of the same name and wake their waiters.
#pragma once

#include "holdfast/core/lock_kind.hpp"

namespace holdfast {

// acquire   reentrant_acquire.lua: only a free lock      +OK granted, :remaining busy
//           fenced_acquire.lua: the same, with a fence   $fence granted, :remaining busy
// renew     reentrant_renew.lua, of one key              *1 :1 granted, *1 :0 not ours
// step      reentrant_step.lua: the count, absolute      :1 granted, :0 not ours
// release   reentrant_release.lua: publishes             :1 granted, :0 not ours
extern const LockKind reentrant_kind;
extern const LockKind fenced_kind;

}  // namespace holdfast
