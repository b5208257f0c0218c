// SPDX-License-Identifier: MIT
#include "holdfast/core/quorum_inquiry.hpp"

namespace holdfast {

namespace {

// They say the same: the same holder, or the same lack of one.
bool agree(const LockInfo& left, const LockInfo& right) noexcept {
  const Possession state = state_of(left);
  if (state != state_of(right)) return false;
  return state == Possession::held ? left.form == right.form && left.owner.view() == right.owner.view() : true;
}

NodeSet with(NodeSet nodes, std::size_t node) noexcept { return static_cast<NodeSet>(nodes | node_bit(node)); }

NodeSet without(NodeSet nodes, std::size_t node) noexcept { return static_cast<NodeSet>(nodes & ~node_bit(node)); }

}  // namespace

const char* to_string(Possession state) noexcept {
  switch (state) {
    case Possession::unknown: return "unknown";
    case Possession::free: return "free";
    case Possession::held: return "held";
    case Possession::no_lock: return "no lock";
  }
  return "invalid";
}

Possession state_of(const LockInfo& info) noexcept {
  switch (info.form) {
    case LockForm::free: return Possession::free;
    case LockForm::other: return Possession::no_lock;
    case LockForm::semaphore: return info.owners < info.permits ? Possession::free : Possession::held;
    case LockForm::mutex:
    case LockForm::reentrant:
    case LockForm::read:
    case LockForm::write: return Possession::held;
  }
  return Possession::unknown;
}

// ---- The verdicts --------------------------------------------------------------------------------------------------

// What a majority says is so. Where no holder can have one, whatever the silent nodes would say, nobody has the lock.
void QuorumInfo::judge(NodeSet voters) noexcept {
  state = Possession::unknown;
  holder = LockInfo();
  agreeing = differing = silent = 0;
  NodeSet answered = 0;
  for (std::size_t node = 0; node < count; ++node) {
    const bool counts = nodes[node].status == Status::ok &&
                        ((voters & node_bit(node)) != 0 || state_of(nodes[node].info) != Possession::free);
    (counts ? answered : silent) = with(counts ? answered : silent, node);
  }
  NodeSet free = 0;
  std::size_t most = 0;  // Of one holder.
  for (std::size_t node = 0; node < count; ++node) {
    if ((answered & node_bit(node)) == 0) continue;
    const Possession said = state_of(nodes[node].info);
    NodeSet same = 0;
    for (std::size_t other = 0; other < count; ++other)
      if ((answered & node_bit(other)) != 0 && agree(nodes[node].info, nodes[other].info)) same = with(same, other);
    if (said == Possession::free) free = same;
    if (said == Possession::held && count_of(same) > most) most = count_of(same);
    if (count_of(same) < majority_of(count)) continue;
    state = said;
    agreeing = same;
  }
  if (state == Possession::unknown && most + count_of(silent) < majority_of(count)) {
    state = Possession::free;
    agreeing = free;
  }
  differing = static_cast<NodeSet>(answered & ~agreeing);
  if (state != Possession::held) return;
  for (NodeSet left = agreeing; left != 0; left = static_cast<NodeSet>(left & (left - 1))) {
    const LockInfo& info = nodes[static_cast<std::size_t>(__builtin_ctz(left))].info;
    if (left == agreeing) holder = info;
    if (info.remaining < holder.remaining) holder.remaining = info.remaining;
    if (info.count < holder.count) holder.count = info.count;
    if (info.fence > holder.fence) holder.fence = info.fence;
  }
}

Status QuorumRelease::verdict() const noexcept {
  const std::size_t done = count_of(released) + count_of(free);
  if (done >= majority_of(count)) return Status::ok;
  return done + count_of(unknown) >= majority_of(count) ? Status::outcome_unknown : Status::no_quorum;
}

// ---- Asking ----------------------------------------------------------------------------------------------------------

void QuorumInquiry::begin(Key key, std::size_t count) noexcept {
  key_ = key;
  open_ = to_ask_ = static_cast<NodeSet>(node_bit(count) - 1U);
  further_ = 0;
}

Status QuorumInquiry::begin_info(Key key, std::size_t count, QuorumInfo& info) noexcept {
  if (!key.valid() || count == 0 || count > nodes_max) return Status::invalid_argument;
  begin(key, count);
  info_ = &info;
  release_ = nullptr;
  info = QuorumInfo();
  info.count = count;
  return Status::ok;
}

Status QuorumInquiry::begin_release(Key key, std::size_t count, QuorumRelease& release) noexcept {
  if (!key.valid() || count == 0 || count > nodes_max) return Status::invalid_argument;
  begin(key, count);
  info_ = nullptr;
  release_ = &release;
  release = QuorumRelease();
  release.count = count;
  return Status::ok;
}

// Nobody refuses it: the key is valid.
void QuorumInquiry::prepare(std::size_t node) noexcept {
  if (release_ != nullptr)
    (void)inquiry_.begin_release(key_, released_);
  else if ((further_ & node_bit(node)) != 0)
    (void)inquiry_.begin_permits(key_, info_->nodes[node].info);
  else
    (void)inquiry_.begin_info(key_, info_->nodes[node].info);
}

Arguments QuorumInquiry::ask(std::size_t node) noexcept {
  prepare(node);
  to_ask_ = without(to_ask_, node);
  return inquiry_.arguments();
}

void QuorumInquiry::hand_over(VoterRoll& roll, NodeSet connecting, void* requester, Instant now) noexcept {
  for (NodeSet left = to_ask_; left != 0; left = static_cast<NodeSet>(left & (left - 1))) {
    const auto node = static_cast<std::size_t>(__builtin_ctz(left));
    Status status = Status::not_connected;
    if (roll.introduced(node)) {
      status = roll.witness(node, now);
      if (status == Status::ok) status = roll.node(node).ask(ask(node), {.requester = requester}, now);
    } else if ((connecting & node_bit(node)) != 0) {
      continue;
    }
    if (status != Status::ok) refuse(node, status);
  }
}

NodeSet QuorumInquiry::give_up(VoterRoll& roll, const void* requester, Status why, Instant now) noexcept {
  for (std::size_t node = 0; node < roll.size(); ++node) {
    if ((to_ask_ & node_bit(node)) != 0) refuse(node, why);
    if ((open_ & node_bit(node)) != 0) roll.node(node).session().give_up(requester, why, now);
  }
  return open_;
}

Status QuorumInquiry::conclude(const VoterRoll& roll, Instant now) noexcept {
  if (release_ != nullptr) return release_->verdict();
  info_->judge(roll.voters(now));
  return info_->state != Possession::unknown ? Status::ok : Status::no_quorum;
}

// Nothing that was asked of it is unanswered.
void QuorumInquiry::refuse(std::size_t node, Status why) noexcept {
  end(node, why);
  if (release_ != nullptr) release_->refused = with(release_->refused, node);
}

bool QuorumInquiry::take(std::size_t node, Status outcome, bool nothing_ran, const RespValue& reply) noexcept {
  prepare(node);  // As it was when the node was asked.
  const bool fits = outcome != Status::ok || inquiry_.take(reply);
  if (!fits) outcome = Status::protocol_error;
  if (inquiry_.asks_on(outcome)) {
    info_->nodes[node].info = inquiry_.found();
    to_ask_ = with(to_ask_, node);
    further_ = with(further_, node);
    return true;
  }
  end(node, outcome);
  if (release_ == nullptr) return fits;
  NodeSet& told = outcome == Status::ok ? (released_ ? release_->released : release_->free)
                  : nothing_ran         ? release_->refused
                                        : release_->unknown;
  told = with(told, node);
  return fits;
}

void QuorumInquiry::end(std::size_t node, Status status) noexcept {
  open_ = without(open_, node);
  to_ask_ = without(to_ask_, node);
  (release_ != nullptr ? release_->nodes[node] : info_->nodes[node].status) = status;
}

}  // namespace holdfast
