// SPDX-License-Identifier: MIT
//
// For operators: who holds a lock, and taking it away. The kind is found out by the key's type, so that these work on locks
// of every client. And for scripts whose steps are processes of their own: a hold is renewed and released by its token.
#pragma once

#include "holdfast/client.hpp"
#include "holdfast/core/inquiry.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/quorum_inquiry.hpp"

namespace holdfast {

class QuorumClient;

// One attempt, and another one where the key may be a semaphore; blocks like Mutex::try_acquire(). On failure `info` is
// untouched.
// Errors: invalid_argument (the key); connection failures; the server's refusals; protocol_error.
[[nodiscard]] Status inspect(ClientBase& client, Key key, LockInfo& info) noexcept;

// As inspect(), with one error more: wrong_type where the queue's key is something else.
[[nodiscard]] Status inspect_queue(ClientBase& client, Key key, LockQueue& queue) noexcept;

// Deletes the lock, whoever holds it, or gives all permits back, and wakes its waiters; those of a FairLock come by themselves
// within a second. `released` is false where it was free. Its holder is not asked and finds out with its next renewal: only for
// a holder that is known to be gone, and with a fence where that may be wrong.
// Errors: as inspect(); wrong_type for what is no lock; a lost reply is unknown. `released` is untouched then.
[[nodiscard]] Status force_release(ClientBase& client, Key key, bool& released) noexcept;

// The same of a quorum: all nodes are asked at once, and those that cannot be asked are passed over. What each has said stands in
// `info`, also when there is no verdict. A node that may not vote, since it was started a moment ago, may have forgotten the
// lock: what it holds counts, and that it is free there does not. A node that is no server of its own is not asked: a replica,
// the same machine as another node, or one whose user may not ask who it is (ACL: +info); QuorumClient::error_text() names it.
// Blocks for a connect timeout and a request timeout at most.
// Errors: invalid_argument (the key), not_connected (connect() was not called before) and `info` is untouched; no_quorum: the state
// is unknown; cancelled.
[[nodiscard]] Status inspect(QuorumClient& quorum, Key key, QuorumInfo& info) noexcept;
// Deletes the lock on every node that is asked, as above. Whoever held it by a majority has it no more once a majority has nothing of it.
// Errors: as QuorumRelease::verdict(), and as above; outcome_unknown where it was cancelled in between.
[[nodiscard]] Status force_release(QuorumClient& quorum, Key key, QuorumRelease& release) noexcept;

// ---- A hold that another process acquired, adopted by its token ----
// The kind's table says how, for example mutex_kind of core/mutex_kind.hpp; on the server an adopted hold is no different from
// any other. The lock object that acquired it must be gone without its destructor, which would let go.

// One attempt, never resent; blocks like Mutex::try_acquire(). The hold then lasts until valid_until at least, counted from
// before the first byte was sent, less drift. It is never shortened. On failure `valid_until` is untouched.
// Errors:
//   invalid_argument   the key, the timing, or a token that no hold of this kind has (is_token_of()): nothing was sent
//   lock_lost          there is no such hold: it ended, was released, or is another's. Final
//   wrong_type         the key is no lock of this kind
//   outcome_unknown    sent, and the reply was lost: it may be extended. Asking again is safe
//   connection failures before anything was sent; the server's refusals; protocol_error
[[nodiscard]] Status renew_adopted(ClientBase& client, const LockKind& kind, Key key, BytesArgument token,
                                   const LockTiming& timing, Instant& valid_until) noexcept;

// The same for a release, which wakes waiters as the kind does. A reentrant hold is released as a whole. After outcome_unknown
// it may be released: asked again, lock_lost may mean that the first one did it.
[[nodiscard]] Status release_adopted(ClientBase& client, const LockKind& kind, Key key, BytesArgument token) noexcept;

// ---- What a fence guards ----
// The checking half of a fence, for a resource that is kept in Redis: a holder that was paused and came back too late is
// refused by the resource itself, which no lock can do. proto/scripts/fenced_set.lua is the check; a resource elsewhere does
// the same by its own means (examples/fenced_resource.cpp shows SQLite).

// Writes `value` to the string key `resource` if `fence` is no smaller than any that has written there; `written` says
// whether it was. The client may be any that speaks to the resource's server. One attempt; blocks like Mutex::try_acquire().
// Errors: invalid_argument (the key; a fence of 0 or above 2^63 - 1); buffer_too_small (a value above fenced_value_size_max);
// connection failures; the server's refusals; a lost reply is unknown, and asking again is safe while the fence is the
// largest. `written` is untouched then. A long value that the server does not take within a request timeout ends the connection.
[[nodiscard]] Status fenced_set(ClientBase& client, Key resource, std::uint64_t fence, BytesArgument value,
                                bool& written) noexcept;

}  // namespace holdfast
