// SPDX-License-Identifier: MIT
#include "holdfast/core/quorum_machine.hpp"

#include "holdfast/proto/assert.hpp"
#include "quorum_tally.hpp"
#include "quorum_transitions.hpp"

namespace holdfast {

// Not inlined: it has ten callers.
[[gnu::noinline]] void QuorumMachine::move(QuorumInput input) noexcept {
  const std::uint8_t next = quorum_transition_table.next[static_cast<int>(state_)][static_cast<int>(input)];
  HOLDFAST_ASSERT(next != QuorumTransitionTable::illegal);
  state_ = static_cast<QuorumState>(next);
}

Status QuorumMachine::configure(Key key, const QuorumTiming& timing) noexcept {
  if (!key.valid() || !timing.valid()) return Status::invalid_argument;
  if (state_ != QuorumState::idle) return Status::already_held;
  for (std::size_t node = 0; node < count_; ++node)
    if (votes_[node]->machine.state() != LockState::idle) return Status::already_held;
  for (std::size_t node = 0; node < count_; ++node) (void)votes_[node]->machine.configure(key, timing.lock());
  timing_ = timing;
  return Status::ok;
}

// ---- Questions ---------------------------------------------------------------------------------------------------

Instant QuorumMachine::renewal_due() const noexcept {
  if (!holding()) return Instant::max();
  if (retry_renewal_at_ != Instant()) return retry_renewal_at_;
  return confirmed_at_ + lease() / renewal_divisor;
}

std::int64_t QuorumMachine::busy_for() const noexcept {
  std::int64_t least = remaining_unknown;
  for (std::size_t node = 0; node < count_; ++node) {
    const QuorumVote& vote = *votes_[node];
    const std::int64_t remaining = vote.machine.busy_for();
    if (vote.status != Status::lock_busy || remaining < 0) continue;
    if (least == remaining_unknown || remaining < least) least = remaining;
  }
  return least;
}

Instant QuorumMachine::poll_timeout() const noexcept {
  switch (state_) {
    case QuorumState::idle:
    case QuorumState::releasing:
    case QuorumState::lost: break;
    case QuorumState::acquiring:
    case QuorumState::fencing: return asked_at_ + validity() - timing_.min_validity;
    case QuorumState::held: return earlier(risky_from(), valid_until_);
    case QuorumState::at_risk: return valid_until_;
  }
  return Instant::max();
}

// The last instant at which a majority still holds: of all votes' ends, the one that a majority reaches.
Instant QuorumMachine::majority_until() const noexcept {
  Instant ends[nodes_max];  // The latest first.
  for (std::size_t node = 0; node < count_; ++node) {
    std::size_t place = node;
    for (; place > 0 && ends[place - 1] < votes_[node]->counts_until; --place) ends[place] = ends[place - 1];
    ends[place] = votes_[node]->counts_until;
  }
  return ends[majority() - 1];
}

// Of an acquire, of the writing of its fence, of a round of renewals.
QuorumTally QuorumMachine::round_tally(Instant now) const noexcept {
  QuorumTally tally(count_);
  for (std::size_t node = 0; node < count_; ++node) {
    const QuorumVote& vote = *votes_[node];
    const bool held = vote.machine.held(now);
    const bool asked = vote.machine.state() == LockState::acquiring;
    if (held && (vote.renewed || state_ == QuorumState::acquiring))
      ++tally.yes;
    else if ((asked && !vote.repairing) || (held && vote.machine.waiting()))
      ++tally.open;
    if (vote.status == Status::lock_busy)
      ++tally.no;
    else if (asked || vote.counts_until != Instant())
      ++tally.ours;
  }
  return tally;
}

QuorumTally QuorumMachine::release_tally() const noexcept {
  QuorumTally tally(count_);
  for (std::size_t node = 0; node < count_; ++node) {
    const QuorumVote& vote = *votes_[node];
    const LockState state = vote.machine.state();
    if ((released_ & node_bit(node)) == 0) {
      if ((missed_ & node_bit(node)) != 0) ++tally.ours;
      // Also of a vote that is lost: the server may know of a renewal that we do not.
      ++(state == LockState::idle ? tally.free : tally.unreturned);
    } else if (state == LockState::releasing || state == LockState::unknown) {
      ++tally.ours;
      if (state == LockState::releasing)
        ++tally.open;
      else
        tally.why = vote.status;
    } else {
      ++tally.free;
      // Where a release was repeated, and found nothing, the first one may have found it.
      ++(vote.status != Status::lock_lost ? tally.yes : (repeated_ & node_bit(node)) != 0 ? tally.ours : tally.no);
    }
  }
  return tally;
}

NodeSet QuorumMachine::owed() const noexcept {
  NodeSet nodes = 0;
  for (std::size_t node = 0; node < count_; ++node)
    if (votes_[node]->owed) nodes = static_cast<NodeSet>(nodes | node_bit(node));
  return nodes;
}

// The server that answers at this node is another node's, as far as this hold is concerned. It has given its word there, and
// what is to be taken back may still be on its way to it from there: asked here, too, it would be counted twice.
bool QuorumMachine::asked_elsewhere(std::size_t node) const noexcept {
  const std::uint32_t server = votes_[node]->server;
  if (server == 0) return votes_[node]->keeper != 0;  // Whoever that is, it is not known to be the one.
  for (std::size_t other = 0; other < count_; ++other)
    if (other != node && votes_[other]->keeper == server) return true;
  return false;
}

// ---- Commands ----------------------------------------------------------------------------------------------------

Status QuorumMachine::acquire(const Token& token, Instant now, Electorate electorate, Instant deadline,
                              const QuorumTiming* timing) noexcept {
  const QuorumTiming& wanted = timing != nullptr ? *timing : timing_;
  if (!votes_[0]->machine.configured() || wanted.lock().effective_lease() > electorate.max_lease)
    return Status::invalid_argument;
  if (now == Instant::max()) return Status::system_error;  // The driver cannot read its clock.
  if (!quorum_transition_table.lists(state_, QuorumInput::acquire))
    return state_ == QuorumState::releasing ? Status::too_many_requests : Status::already_held;
  if (depth_ != 0) return Status::lock_lost;
  HOLDFAST_ASSERT(give_up_ == 0 && !token.empty());
  const auto voters = static_cast<NodeSet>(electorate.nodes & all());
  if (count_of(voters) < majority()) return Status::no_quorum;
  move(QuorumInput::acquire);
  ++generation_;
  timing_ = wanted;
  asked_ = timing_.lock();
  token_ = token;
  asked_at_ = now;
  fence_ = 0;
  changed_ = all();
  retry_renewal_at_ = Instant();
  loss_untold_ = false;
  strayed_ = false;
  repairers_ = missing_ = 0;
  events_ = 0;
  deadline_ = deadline;
  for (std::size_t node = 0; node < count_; ++node) {
    QuorumVote& vote = *votes_[node];
    vote.counts_until = Instant();
    vote.renewed = false;
    vote.repairing = false;
    vote.repaired = false;
    vote.status = Status::too_many_requests;
    if (vote.machine.wants_compensation()) continue;  // It found no place: neither would this.
    vote.keeper = 0;
    vote.status = Status::not_connected;
    if ((voters & node_bit(node)) == 0) continue;
    vote.status = Status::outcome_unknown;
    vote.keeper = vote.server;
    if (const Status status = vote.machine.acquire(token, now, node_deadline(now), &asked_); status != Status::ok)
      vote.status = status;
  }
  return Status::ok;
}

Status QuorumMachine::renew(Instant now, Instant deadline, Electorate repairers, const QuorumTiming* timing) noexcept {
  settle(now);
  if (!holding()) return loss_untold_ ? Status::lock_lost : Status::not_held;
  const LockTiming wanted = timing != nullptr ? timing_.lock().raised_by(timing->lock()) : timing_.lock();
  if (wanted.effective_lease() > repairers.max_lease) return Status::invalid_argument;
  const bool again = round_open_;
  if (again && now < retry_renewal_at_) return Status::too_many_requests;
  if (!again) {
    asked_ = wanted;
    round_open_ = true;
    asked_at_ = now;
    missing_ = 0;
  }
  // A node that does not answer keeps the round open. It must not keep those from it that can answer by now.
  retry_renewal_at_ = now + retry_delay();
  changed_ = all();
  repairers_ = repairers.nodes;
  NodeSet missing = 0;
  for (std::size_t node = 0; node < count_; ++node) {
    QuorumVote& vote = *votes_[node];
    vote.renewed = vote.renewed && again;
    if (vote.renewed) continue;
    if (vote.machine.held(now)) {
      // Refused while one is on its way: that one counts.
      if (!vote.excluded && !asked_elsewhere(node)) (void)vote.machine.renew(now, deadline, &asked_);
    } else if (vote.machine.state() != LockState::acquiring && !vote.machine.has_output()) {
      // With output it has just ended there by time, and that is taken back first; or it has said "not yours" in this round.
      missing = static_cast<NodeSet>(missing | node_bit(node));
    }
  }
  repair(missing, now);
  return Status::ok;
}

// Asks those of them for it that may be asked.
void QuorumMachine::repair(NodeSet nodes, Instant now) noexcept {
  for (auto left = static_cast<NodeSet>(nodes & repairers_); left != 0;
       left = static_cast<NodeSet>(left & (left - 1))) {
    const auto node = static_cast<std::size_t>(__builtin_ctz(left));
    QuorumVote& vote = *votes_[node];
    if (vote.excluded || asked_elsewhere(node)) continue;
    vote.machine.waive_compensation();
    vote.keeper = vote.server;
    vote.repairing = vote.machine.acquire(token_, now, now + timing_.effective_node_timeout(), &asked_) == Status::ok;
  }
}

Status QuorumMachine::reenter() noexcept {
  HOLDFAST_ASSERT(kind_->reentrant && holding());
  if (depth_ == count_max) return Status::invalid_argument;
  ++depth_;
  return Status::ok;
}

Status QuorumMachine::release(Instant now, std::uint32_t acquisitions) noexcept {
  settle(now);
  const std::uint32_t left = depth_ > acquisitions ? depth_ - acquisitions : 0;
  if (!holding()) {
    const bool lost = loss_untold_ || depth_ != 0;
    loss_untold_ = false;
    depth_ = left;
    return lost ? Status::lock_lost : Status::not_held;
  }
  if (left != 0) {
    depth_ = left;
    return Status::ok;
  }
  depth_ = 0;
  let_go_everywhere(now);
  for (std::size_t node = 0; node < count_; ++node)
    if ((released_ & node_bit(node)) != 0) votes_[node]->status = Status::outcome_unknown;
  move(QuorumInput::release);
  events_ = 0;
  return Status::ok;
}

Status QuorumMachine::forget_loss(Instant now) noexcept {
  settle(now);
  if (holding()) return Status::already_held;
  const bool lost = loss_untold_ || depth_ != 0;
  loss_untold_ = false;
  depth_ = 0;
  return lost ? Status::ok : Status::not_held;
}

void QuorumMachine::end_release(Status why) noexcept {
  if (state_ != QuorumState::releasing) return;
  move(QuorumInput::released);
  status_ = why;
}

void QuorumMachine::forget() noexcept {
  for (std::size_t node = 0; node < count_; ++node) {
    QuorumVote& vote = *votes_[node];
    vote.machine.forget();
    vote.counts_until = Instant();
    vote.renewed = false;
    vote.repairing = false;
    vote.repaired = false;
    vote.owed = false;
    vote.keeper = 0;
  }
  move(QuorumInput::forget);
  ++generation_;
  valid_until_ = Instant();
  status_ = Status::not_held;
  round_open_ = false;
  loss_untold_ = false;
  depth_ = 0;
  events_ = 0;
  missing_ = 0;
  changed_ = 0;
  give_up_ = 0;
  doubted_ = 0;
  demoted_ = 0;
}

// ---- Outcomes ----------------------------------------------------------------------------------------------------

// Every node is released: also those that have not answered, and those whose grant nobody counts any more.
void QuorumMachine::let_go_everywhere(Instant now) noexcept {
  released_ = missed_ = missing_ = repeated_ = 0;
  ++generation_;
  valid_until_ = Instant();
  round_open_ = false;
  changed_ = all();
  for (std::size_t node = 0; node < count_; ++node) {
    QuorumVote& vote = *votes_[node];
    vote.counts_until = Instant();
    vote.renewed = false;
    vote.repairing = false;
    vote.repaired = false;
    if (vote.machine.wants_request()) vote.machine.refuse_request(Status::cancelled, now);  // It was never sent.
    if (vote.machine.state() == LockState::acquiring) {
      give_up_ = static_cast<NodeSet>(give_up_ | node_bit(node));
      missed_ = static_cast<NodeSet>(missed_ | node_bit(node));
    } else if (vote.machine.release(vote.native_delete, true, now, Instant::max()) == Status::ok) {
      released_ = static_cast<NodeSet>(released_ | node_bit(node));
      if (moved(vote)) vote.machine.refuse_request(Status::not_connected, now);  // Who has it cannot be told.
    }
  }
}

void QuorumMachine::grant(Instant now) noexcept {
  valid_until_ = majority_until();
  if (now + timing_.min_validity >= valid_until_) {  // A node that granted was excluded meanwhile.
    deny(Status::timed_out, now);
    return;
  }
  move(QuorumInput::granted);
  confirmed_at_ = asked_at_;
  depth_ = 1;
  status_ = Status::ok;
  push_event(QuorumEvent::granted);
}

void QuorumMachine::deny(Status why, Instant now) noexcept {
  let_go_everywhere(now);
  move(QuorumInput::denied);
  status_ = why;
  push_event(QuorumEvent::denied);
}

void QuorumMachine::lose(Instant now) noexcept {
  let_go_everywhere(now);
  move(QuorumInput::ended);
  if (!kind_->reentrant) depth_ = 0;
  loss_untold_ = true;
  status_ = Status::lock_lost;
  push_event(QuorumEvent::lost);
}

Duration QuorumMachine::retry_delay() const noexcept {
  const Duration delay = lease() / renewal_retry_divisor;
  return delay < retry_delay_min ? retry_delay_min : delay;
}

void QuorumMachine::doubt(Instant now) noexcept {
  retry_renewal_at_ = now + retry_delay();
  if (state_ == QuorumState::held) push_event(QuorumEvent::at_risk);
  move(QuorumInput::doubted);
}

void QuorumMachine::take_grant(QuorumVote& vote, Instant now) noexcept {
  const bool wanted = state_ == QuorumState::acquiring || state_ == QuorumState::fencing || holding();
  if (!wanted) {  // It came after all was over.
    (void)vote.machine.release(vote.native_delete, true, now, Instant::max());
    return;
  }
  vote.status = Status::ok;
  vote.counts_until = vote.machine.valid_until();
  // Nobody else can have had a majority meanwhile; but what is promised to the holder does not grow by it.
  if (vote.repairing) vote.counts_until = earlier(vote.counts_until, valid_until_);
  const bool late = round_open_ && !vote.repairing;  // After the quorum's grant, and after a renewal.
  vote.repaired = vote.repairing;
  vote.repairing = false;
  if (late) (void)vote.machine.renew(now, earlier(valid_until_, now + timing_.effective_node_timeout()), &asked_);
  if (!kind_->fenced || state_ == QuorumState::acquiring) return;
  // A node that knows of a larger fence than ours must not count for it: that one was another grant's.
  const bool counts = vote.machine.fence() <= fence_;
  vote.machine.set_fence(fence_);
  if (counts && state_ == QuorumState::fencing) (void)vote.machine.renew(now, node_deadline(now));
}

// True where the node has said "not yours".
bool QuorumMachine::take_events(std::size_t node, Instant now) noexcept {
  QuorumVote& vote = *votes_[node];
  bool missing = false;
  vote.machine.handle_timeout(now);
  if (!vote.machine.has_output()) return false;
  // What has found no place is no news.
  const bool waits = vote.owed || (missing_ & node_bit(node)) != 0;
  if (!waits || vote.machine.wants_request()) changed_ = static_cast<NodeSet>(changed_ | node_bit(node));
  for (LockEvent event = vote.machine.poll_event(); event != LockEvent::none; event = vote.machine.poll_event())
    switch (event) {
      case LockEvent::granted: take_grant(vote, now); break;
      case LockEvent::denied:
      case LockEvent::unclear:
        vote.repairing = false;
        vote.status = vote.machine.status();
        break;
      case LockEvent::renewed:
        if (vote.excluded) break;
        vote.renewed = true;
        vote.repaired = false;
        vote.status = Status::ok;
        vote.keeper = vote.server;
        vote.counts_until = vote.machine.valid_until();
        break;
      case LockEvent::lost: {
        const bool refused = now < vote.counts_until;  // By the node; not by time.
        missing = refused;
        vote.status = Status::lock_lost;
        vote.counts_until = Instant();
        vote.repaired = false;
        (void)vote.machine.release(vote.native_delete, true, now, Instant::max());  // Unwinds what is counted there.
        if (refused && holding()) doubt(now);
        break;
      }
      case LockEvent::at_risk:
      case LockEvent::released:
      case LockEvent::none: vote.status = vote.machine.status(); break;
      case LockEvent::protocol_doubt: doubted_ = static_cast<NodeSet>(doubted_ | node_bit(node)); break;
    }
  return missing;
}

// ---- What is to be taken back ------------------------------------------------------------------------------------

bool QuorumMachine::poll_compensation(std::size_t node, bool room, ReplyTag& tag, Compensation& compensation) noexcept {
  QuorumVote& vote = *votes_[node];
  if (vote.owed || (missing_ & node_bit(node)) != 0 || !vote.machine.wants_compensation()) return false;
  vote.owed = !room && !moved(vote);
  return !vote.owed && vote.machine.poll_compensation(tag, compensation) && !moved(vote);
}

void QuorumMachine::retry_owed() noexcept {
  changed_ = static_cast<NodeSet>(changed_ | owed());
  for (std::size_t node = 0; node < count_; ++node) votes_[node]->owed = false;
}

void QuorumMachine::handle_reply(std::size_t node, const Reply& reply, Instant now) noexcept {
  if (reply.outcome == Status::read_only) demoted_ = static_cast<NodeSet>(demoted_ | node_bit(node));
  LockMachine& machine = votes_[node]->machine;
  if (machine.state() == LockState::releasing && reply.tag.generation == machine.generation() &&
      reply.tag.operation == Operation::compensate)
    repeated_ = static_cast<NodeSet>(repeated_ | node_bit(node));
  machine.handle_reply(reply, now);
  settle(node_bit(node), now);
}

void QuorumMachine::settle(NodeSet nodes, Instant now) noexcept {
  for (; nodes != 0; nodes = static_cast<NodeSet>(nodes & (nodes - 1)))
    if (take_events(static_cast<std::size_t>(__builtin_ctz(nodes)), now))
      missing_ = static_cast<NodeSet>(missing_ | (nodes & -nodes & repairers_));
  switch (state_) {
    case QuorumState::idle:
    case QuorumState::lost: return;
    case QuorumState::acquiring:
    case QuorumState::fencing: judge_attempt(now); return;
    case QuorumState::held:
    case QuorumState::at_risk:
      judge_hold(now);
      if (!holding() || round_open_ || missing_ == 0) return;
      // What they held of ours is gone, and nothing of it is on its way there: there is nothing to be taken back first. Only
      // now, as a majority has confirmed: one that forgets must not be mended node by node before all have said so.
      changed_ = static_cast<NodeSet>(changed_ | missing_);
      repair(missing_, now);
      missing_ = 0;
      return;
    case QuorumState::releasing: judge_release(); return;
  }
}

void QuorumMachine::judge_attempt(Instant now) noexcept {
  if (now >= poll_timeout()) {
    deny(Status::timed_out, now);
    return;
  }
  const QuorumTally votes = round_tally(now);
  const QuorumVerdict verdict = round_verdict(votes);
  if (verdict == QuorumVerdict::no)
    deny(refusal(votes), now);
  else if (verdict == QuorumVerdict::yes && kind_->fenced && state_ == QuorumState::acquiring)
    write_fence(now);
  else if (verdict == QuorumVerdict::yes)
    grant(now);
}

// The fence counts once a majority, all of which still hold this grant's token, has written it down.
void QuorumMachine::write_fence(Instant now) noexcept {
  move(QuorumInput::elected);
  changed_ = all();
  for (std::size_t node = 0; node < count_; ++node)
    if (const LockMachine& machine = votes_[node]->machine; machine.held(now) && machine.fence() > fence_)
      fence_ = machine.fence();
  for (std::size_t node = 0; node < count_; ++node) {
    LockMachine& machine = votes_[node]->machine;
    if (!machine.held(now)) continue;
    machine.set_fence(fence_);
    (void)machine.renew(now, node_deadline(now));
  }
}

// That clients have no room on nodes that would make the majority says nothing of the hold, as with one node.
bool QuorumMachine::lacks_room(Instant now) const noexcept {
  std::size_t renewed = 0;
  bool crowded = false;
  for (std::size_t node = 0; node < count_; ++node) {
    const QuorumVote& vote = *votes_[node];
    if (!vote.machine.held(now)) continue;
    const bool refused = !vote.renewed && vote.machine.status() == Status::too_many_requests;
    crowded = crowded || refused;
    renewed += vote.renewed || refused ? 1 : 0;
  }
  return crowded && renewed >= majority_of(count_);
}

void QuorumMachine::judge_hold(Instant now) noexcept {
  if (now < valid_until_) valid_until_ = majority_until();
  if (now >= valid_until_) {
    lose(now);
    return;
  }
  for (std::size_t node = 0; node < count_; ++node)
    if (QuorumVote& vote = *votes_[node]; vote.repaired && vote.counts_until != Instant())
      vote.counts_until = earlier(vote.machine.valid_until(), valid_until_);
  const QuorumVerdict verdict = round_open_ ? round_verdict(round_tally(now)) : QuorumVerdict::open;
  if (verdict != QuorumVerdict::open) round_open_ = false;
  if (verdict == QuorumVerdict::yes) {
    move(QuorumInput::renewed);
    timing_.lease = asked_.lease;
    timing_.drift = asked_.drift;
    timing_.kept = asked_.kept;
    // A renewal of a round before confirms no more than what it was asked for.
    confirmed_at_ = later(confirmed_at_, earlier(asked_at_, valid_until_ - validity()));
    retry_renewal_at_ = Instant();
    status_ = Status::ok;
    events_ = static_cast<std::uint8_t>(events_ & ~event_bit(QuorumEvent::at_risk));
    push_event(QuorumEvent::renewed);
  } else if (verdict == QuorumVerdict::no) {
    status_ = Status::no_quorum;
    repairers_ = 0;
    push_event(QuorumEvent::doubted);
    if (lacks_room(now))
      retry_renewal_at_ = now + retry_delay_min;
    else
      doubt(now);
  }
  // Overdue is no outcome of anything: a grant that took long is one.
  if (state_ == QuorumState::held && now >= risky_from()) doubt(now);
}

void QuorumMachine::judge_release() noexcept {
  const QuorumTally votes = release_tally();
  const QuorumVerdict verdict = release_verdict(votes, strayed_);
  if (verdict == QuorumVerdict::open) return;
  move(QuorumInput::released);
  status_ = verdict == QuorumVerdict::yes ? Status::ok : verdict == QuorumVerdict::no ? Status::lock_lost : votes.why;
  push_event(QuorumEvent::released);
}

}  // namespace holdfast
