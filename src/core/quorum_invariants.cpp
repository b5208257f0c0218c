// SPDX-License-Identifier: MIT
//
// What is always so of a QuorumMachine. Its own source, since tests ask and no program has to carry it.
#include "holdfast/core/quorum_machine.hpp"

namespace holdfast {

bool QuorumMachine::invariants() const noexcept {
  const bool attempt = state_ == QuorumState::acquiring || state_ == QuorumState::fencing;
  const bool unwinding = state_ == QuorumState::lost && kind_->reentrant;
  // A hold was confirmed before its end, and is counted. Nothing else has an end.
  if (holding() ? valid_until_ == Instant() || confirmed_at_ >= valid_until_ || depth_ == 0
                : valid_until_ != Instant() || round_open_ || (depth_ != 0 && !unwinding))
    return false;
  if ((depth_ > 1 && !kind_->reentrant) || (loss_untold_ && state_ != QuorumState::lost)) return false;
  if ((fence_ != 0 || state_ == QuorumState::fencing) && !kind_->fenced) return false;

  // Who is given up was asked, was not released, and is not asked for the next hold before that is told.
  if ((released_ & missed_) != 0 || (give_up_ & missed_) != give_up_ || (give_up_ != 0 && (attempt || holding())))
    return false;
  if ((released_ | missed_ | changed_ | doubted_ | demoted_ | all()) != all()) return false;

  // An event is told while it is so.
  int tellable = 0;
  switch (state_) {
    case QuorumState::idle: tellable = event_bit(QuorumEvent::denied) | event_bit(QuorumEvent::released); break;
    case QuorumState::acquiring:
    case QuorumState::fencing:
    case QuorumState::releasing: break;
    case QuorumState::lost: tellable = event_bit(QuorumEvent::lost); [[fallthrough]];
    case QuorumState::at_risk: tellable |= event_bit(QuorumEvent::at_risk); [[fallthrough]];
    case QuorumState::held:
      tellable |= event_bit(QuorumEvent::granted) | event_bit(QuorumEvent::renewed) | event_bit(QuorumEvent::doubted);
      break;
  }
  if ((events_ & ~tellable) != 0) return false;

  std::size_t lasting = 0;  // Votes that count until the end of the hold,
  std::size_t longer = 0;   // and beyond it.
  for (std::size_t node = 0; node < count_; ++node) {
    const QuorumVote& vote = *votes_[node];
    lasting += vote.counts_until >= valid_until_ ? 1U : 0U;
    longer += vote.counts_until > valid_until_ ? 1U : 0U;
    if (vote.owed && !vote.machine.wants_compensation()) return false;
    if (vote.repairing && !(holding() && vote.machine.state() == LockState::acquiring)) return false;
    // What was repaired adds nothing to the hold before it is renewed.
    if (vote.repaired && (vote.repairing || !holding() || vote.counts_until > valid_until_)) return false;
    if (vote.renewed && !attempt && !holding()) return false;
    if (vote.counts_until == Instant()) continue;
    // It counts for what is asked or held, no longer than the node's own part lasts, and for the fence of all.
    if ((!attempt && !holding()) || vote.excluded || vote.counts_until > vote.machine.valid_until()) return false;
    if (kind_->fenced && state_ != QuorumState::acquiring && vote.machine.fence() != fence_) return false;
    // No two of them are one server's.
    for (std::size_t other = 0; other < node; ++other)
      if (vote.keeper != 0 && votes_[other]->keeper == vote.keeper && votes_[other]->counts_until != Instant())
        return false;
  }
  // It lasts as long as a majority's votes do, and no less.
  return !holding() || (lasting >= majority() && longer < majority());
}

}  // namespace holdfast
