// SPDX-License-Identifier: MIT
//
// HoldRequest renews or releases one hold that is known by its token alone: another process acquired it, and has ended. It asks
// by the kind's table, as a lock does, and touches nothing but that token's hold. It does no I/O and reads no clock.
//
// It has no memory of the hold: whether it was ever ours, the server says. Nothing here makes a lock of it: who renews so has
// no watchdog and no loss to be told of.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include "holdfast/core/instant.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/node_task.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

// Whether `text` is a token as holds of this kind have: 32 lower hexadecimal digits of a string kind; `uuid:ordinal` of a hash
// kind, and `uuid:-ordinal` where it queues. Other bytes are the name of something else on the server: a hash that is read or
// written has a field `mode`, which no release may take.
[[nodiscard]] bool is_token_of(const LockKind& kind, ByteView text) noexcept;

class HoldRequest : public Question {
 public:
  HoldRequest() noexcept : Question{put, judge, conclude} {}
  HoldRequest(const HoldRequest&) = delete;
  HoldRequest& operator=(const HoldRequest&) = delete;

  // B. Commands. Each begins a request; the key's bytes stay until it is over. Errors: invalid_argument (the key, the token, the
  // timing); nothing is to be asked then.
  [[nodiscard]] Status begin_renewal(const LockKind& kind, Key key, ByteView token, const LockTiming& timing) noexcept;
  // A reentrant hold is released as a whole, however often it was acquired.
  [[nodiscard]] Status begin_release(const LockKind& kind, Key key, ByteView token) noexcept;

  // A. After a renewal that came to ok: until when the hold lasts at least, counted from before the first byte was sent, less
  // drift. It may last longer: a renewal shortens nothing.
  [[nodiscard]] Instant valid_until() const noexcept {
    return asked_at_ + timing_.effective_lease() - timing_.effective_drift();
  }

 private:
  [[nodiscard]] Status begin(const LockKind& kind, Operation operation, Key key, ByteView token,
                             const LockTiming& timing) noexcept;
  static Status put(Question& self, Node& node, const ReplyTag& tag, Instant now) noexcept;
  static bool judge(Question& self, const RespValue& reply) noexcept;
  static bool conclude(Question& self, Status& outcome) noexcept;

  const LockKind* kind_ = nullptr;
  Operation operation_ = Operation::release;
  Verdict verdict_ = Verdict::unexpected;
  Key key_;
  Token token_;
  LockTiming timing_;
  Instant asked_at_;
};

}  // namespace holdfast
