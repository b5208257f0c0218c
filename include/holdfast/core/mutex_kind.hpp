// SPDX-License-Identifier: MIT
//
// The Mutex kind: a string key with the holder's token, as the redis.io page on distributed locks describes it. It
// excludes redis-py, redsync, node-redlock, redislock and all who follow that page.
#pragma once

#include "holdfast/core/lock_kind.hpp"

namespace holdfast {

// acquire   SET key token NX PX lease              +OK granted, $-1 busy
// renew     compare-and-pexpire (mutex_renew.lua)  :1 granted, :0 not ours
// release   compare-and-delete (mutex_release.lua, or DELEX key IFEQ token, or DELIFEQ key token)
//                                                  :1 granted, :0 not ours
extern const LockKind mutex_kind;

// The same for services whose every client knows them:
// announced  its release publishes (mutex_release_announced.lua), so that waiters are woken
// fenced     its grant comes with a fence (mutex_acquire_fenced.lua)   $fence granted, :remaining busy
extern const LockKind announced_mutex_kind;
extern const LockKind fenced_mutex_kind;
extern const LockKind announced_fenced_mutex_kind;

}  // namespace holdfast
