// SPDX-License-Identifier: MIT
//
// A hold that another process acquired, adopted by its token: for pipelines whose steps are processes of their own. The kind's
// table says how, for example mutex_kind of core/mutex_kind.hpp; on the server an adopted hold is no different from any other.
// The lock object that acquired it must be gone without its destructor, which would let go.
#pragma once

#include "holdfast/client.hpp"
#include "holdfast/core/lock_machine.hpp"

namespace holdfast {

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

}  // namespace holdfast
