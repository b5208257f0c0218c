// SPDX-License-Identifier: MIT
//
// The fenced kinds as a quorum uses them: their grants step each node's own counter, and their renewals write the quorum's
// fence, the largest of a majority's, back to every node that still holds this grant's token (quorum_renew.lua). On the
// server they are what the kinds of the same names without "quorum" are.
#pragma once

#include "holdfast/lock_kind.hpp"

namespace holdfast {

extern const LockKind quorum_fenced_mutex_kind;
extern const LockKind quorum_announced_fenced_mutex_kind;
extern const LockKind quorum_fenced_kind;

}  // namespace holdfast
