// SPDX-License-Identifier: MIT
//
// The kind of a lock on several names: on each a hash of one field, the owner of the hold, and its count, as of a
// ReentrantLock. Its key is that of a NameList.
#pragma once

#include "holdfast/core/lock_kind.hpp"

namespace holdfast {

// acquire   multi_acquire.lua: all or none               +OK granted, *2 :remaining :place busy
// renew     multi_renew.lua, of one hold                 *1 :1 granted, *1 :0 not ours, *1 :-1 refused
// step      multi_step.lua: the count, absolute          :1 granted, :0 not ours
// release   multi_release.lua: publishes                 :1 granted, :0 not ours (what was is deleted)
// query     multi_remaining.lua                          :remaining
extern const LockKind multi_kind;

}  // namespace holdfast
