// SPDX-License-Identifier: MIT
//
// Shapes of replies that several kinds share.
#pragma once

#include "holdfast/core/lock_kind.hpp"
#include "holdfast/proto/decimal.hpp"

namespace holdfast {

// 1 or 0 of a script that renews, steps or releases.
inline Verdict decode_yes_or_no(const RespValue& reply) noexcept {
  if (reply.is_integer(1)) return Verdict::granted;
  return reply.is_integer(0) ? Verdict::not_ours : Verdict::unexpected;
}

// What the kinds that are hashes answer of a hold that is there: a renewal by an array of one, which may say that the server
// refused.
inline Verdict decode_of_hold(Operation operation, const RespValue& reply) noexcept {
  switch (operation) {
    case Operation::renew:
      if (reply.count() != 1) return Verdict::unexpected;
      return reply.at(0).is_integer(-1) ? Verdict::refused : decode_yes_or_no(reply.at(0));
    case Operation::step:
    case Operation::release: return decode_yes_or_no(reply);
    case Operation::query:
    case Operation::compensate:
    case Operation::acquire: break;
  }
  return Verdict::unexpected;
}

// Busy is the remaining time as an integer, PTTL's -1 included. Grants have shapes of their own.
inline Verdict decode_busy(const RespValue& reply, LockFacts& facts) noexcept {
  if (!reply.is(RespKind::integer) || reply.integer() < -1) return Verdict::unexpected;
  facts.remaining = reply.integer();
  return Verdict::busy;
}

// A grant is its fence, as a string of digits: numbers of Lua lose the last of them.
inline Verdict decode_fenced_grant(const RespValue& reply, LockFacts& facts) noexcept {
  if (!reply.is(RespKind::bulk)) return decode_busy(reply, facts);
  std::uint64_t fence = 0;
  if (!read_decimal(reply.text(), INT64_MAX, fence) || reply.text()[0] == '0') return Verdict::unexpected;
  facts.fence = fence;
  return Verdict::granted;
}

}  // namespace holdfast
