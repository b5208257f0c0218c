// SPDX-License-Identifier: MIT
//
// QuorumTally is how the nodes of a quorum have voted on what its machine has asked of them, and the rules by which that is decided.
// Counts in, a verdict out: a rule knows no node, no clock and no request.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/quorum_machine.hpp"

namespace holdfast {

struct QuorumTally {
  explicit constexpr QuorumTally(std::size_t configured) noexcept : nodes(static_cast<std::uint8_t>(configured)) {}

  std::uint8_t nodes;  // All that are configured.
  // A node is in one of these, or in none: then it did not answer, or could not be asked.
  std::uint8_t yes = 0;   // It granted; wrote the fence; confirmed; released.
  std::uint8_t no = 0;    // It is another's there: the lock is busy; "not yours".
  std::uint8_t open = 0;  // The answer is to come.
  // Of an attempt: nodes that count for it, or may yet. Of a release: nodes that may have had the hold and have not said so.
  std::uint8_t ours = 0;
  // Of a release: nodes that have nothing of the hold any more, and those that have something but were not asked to release.
  std::uint8_t free = 0;
  std::uint8_t unreturned = 0;
  Status why = Status::outcome_unknown;  // Of a release: why a node's answer will never come.

  [[nodiscard]] constexpr bool majority(unsigned votes) const noexcept { return votes >= majority_of(nodes); }
};

enum class QuorumVerdict : std::uint8_t {
  open,     // It depends on answers that are to come.
  yes,      // A majority says yes.
  no,       // A majority that says yes cannot be had any more.
  unknown,  // No answer is to come that could tell.
};

// An acquire, the writing of its fence, a round of renewals. Never unknown.
[[nodiscard]] constexpr QuorumVerdict round_verdict(const QuorumTally& tally) noexcept {
  if (tally.majority(tally.yes)) return QuorumVerdict::yes;
  return tally.majority(0U + tally.yes + tally.open) ? QuorumVerdict::open : QuorumVerdict::no;
}

// Why an attempt failed. Where those that are in the way, and those that may be, are a majority, it is busy.
[[nodiscard]] constexpr Status refusal(const QuorumTally& tally) noexcept {
  return tally.no != 0 && tally.majority(0U + tally.no + tally.ours) ? Status::lock_busy : Status::no_quorum;
}

// A release is over when a majority has nothing of ours any more: released, taken back, or never granted. One that says "not
// yours" is a doubt of the hold itself: then a majority must have had it, and say so. That a node has nothing says nothing of
// the servers that were asked, where names have moved (`strayed`).
[[nodiscard]] constexpr QuorumVerdict release_verdict(const QuorumTally& tally, bool strayed) noexcept {
  if (tally.majority(tally.yes) || (tally.majority(tally.free) && tally.no == 0 && !strayed)) return QuorumVerdict::yes;
  if (!tally.majority(0U + tally.yes + tally.ours)) return QuorumVerdict::no;
  return tally.open != 0 || (tally.no == 0 && tally.unreturned != 0) ? QuorumVerdict::open : QuorumVerdict::unknown;
}

}  // namespace holdfast
