// SPDX-License-Identifier: MIT
#include "holdfast/core/quorum_task.hpp"

namespace holdfast {

namespace {

// A refusal of a plain mutex does not tell the remaining time, and nodes are not asked for it: a holder that died is noticed
// so late.
constexpr Duration busy_poll = std::chrono::seconds(1);

}  // namespace

void QuorumTask::prepare(const QuorumTiming& timing) noexcept {
  const KeptConfig& config = roll_.node(0).config();
  settings_ = {.request_timeout = config.request_timeout,
               .connect_timeout = config.connect_timeout,
               .max_poll = config.max_poll,
               .unknown_poll = busy_poll,
               .room_timeout = timing.effective_node_timeout(),
               .one_node = false,
               .spread = WaitSpread::whole};
  reentering_ = fleeting_ = false;
}

TaskFacts QuorumTask::facts(bool connecting, Instant now) noexcept {
  TaskFacts facts;
  facts.now = now;
  facts.witness = roll_.config().meter;
  facts.subject = machine_.key().bytes();
  facts.held = machine_.held(now);
  facts.valid_until = machine_.valid_until();
  facts.waiting = waiting();
  facts.answer = machine_.status();
  if (life_.call() == Call::release && machine_.count() != 0)
    facts.answer = Status::ok;  // One of several was released.
  if (life_.call() != Call::acquire) return facts;
  const Status verdict = roll_.verdict(now);
  facts.link_failure = verdict;
  if (verdict != Status::ok) facts.link = verdict == Status::no_quorum && connecting ? Link::coming : Link::absent;
  // Granted, and over before anybody was told of it.
  const bool answered = life_.stage() == TaskStage::answer && !facts.waiting;
  if (answered && !reentering_ && machine_.state() == QuorumState::lost) {
    (void)machine_.release(now);
    fleeting_ = true;
  }
  if (fleeting_) facts.answer = Status::timed_out;
  return facts;
}

bool QuorumTask::enough_room(NodeSet with_room, NodeSet awaited, Instant now) const noexcept {
  if (life_.call() != Call::acquire) return awaited == 0;
  const NodeSet voters = roll_.voters(now);
  if (count_of(voters) < machine_.majority())
    return true;  // Where that may not vote, there is nothing to wait for here.
  return (awaited & voters) == 0 && count_of(static_cast<NodeSet>(voters & with_room)) >= machine_.majority();
}

Status QuorumTask::permit(const QuorumTiming* timing, Instant now) noexcept {
  const LockTiming kept = machine_.timing().lock();
  if (timing == nullptr) return roll_.permit(kept.effective_lease());
  const bool raises = machine_.held(now);  // A shorter one changes nothing then.
  return roll_.permit((raises ? kept.raised_by(timing->lock()) : timing->lock()).effective_lease());
}

// ---- Commands ----------------------------------------------------------------------------------------------------

void QuorumTask::ask(const Token& token, NodeSet with_room, Instant now) noexcept {
  Instant until = Instant::max();  // What is asked for by this call ends by its requests' deadlines.
  Status status = Status::ok;
  switch (life_.call()) {
    case Call::question:
    case Call::none: break;
    case Call::acquire: status = ask_to_acquire(token, with_room, now, until); break;
    case Call::renew: status = ask_to_renew(life_.deadline(), now, until); break;
    case Call::release:
      until = life_.deadline();
      status = machine_.release(now);
      break;
  }
  life_.handle_asked(status, until);
}

Status QuorumTask::ask_to_acquire(const Token& token, NodeSet with_room, Instant now, Instant& until) noexcept {
  if (const Status status = permit(timing_, now); status != Status::ok) return status;
  if (now >= life_.end()) return Status::timed_out;
  fleeting_ = false;
  reentering_ = machine_.kind().reentrant && machine_.held(now);
  if (reentering_) return ask_to_renew(life_.request_deadline(now), now, until);
  const NodeSet voters = roll_.voters(now);
  const auto asked = static_cast<NodeSet>(voters & with_room);
  if (count_of(asked) < machine_.majority() && count_of(voters) >= machine_.majority())
    return Status::too_many_requests;
  for (std::size_t node = 0; node < machine_.nodes(); ++node)
    votes_[node]->native_delete = roll_.node(node).session().identity().native_delete;
  return machine_.acquire(token, now, {asked, roll_.config().max_lease}, life_.end(), timing_);
}

// A round that a cancelled call, or the watch over the hold, has opened is waited for instead. Neither that one nor a node that has
// not answered the hold's acquire yet ends by this call's deadline.
Status QuorumTask::ask_to_renew(Instant deadline, Instant now, Instant& until) noexcept {
  until = deadline;
  const Status status = renew(deadline, now, life_.call() == Call::acquire ? timing_ : nullptr);
  return status == Status::too_many_requests ? Status::ok : status;
}

Status QuorumTask::renew(Instant deadline, Instant now, const QuorumTiming* timing) noexcept {
  return machine_.renew(now, earlier(deadline, machine_.valid_until()), roll_.repairers(now), timing);
}

Status QuorumTask::take_grant() noexcept {
  if (!reentering_) return Status::ok;
  const Duration lease = machine_.timing().lock().effective_lease();
  if (timing_ != nullptr && timing_->lock().effective_lease() > lease) return Status::too_many_requests;
  return machine_.reenter();
}

void QuorumTask::give_up(Instant now) noexcept {
  if (life_.call() == Call::release) return machine_.end_release(life_.why_given_up());
  machine_.cancel(now);  // Of an attempt: of a hold it changes nothing.
}

// A node that granted alone, or that may have, is released again, which wakes everybody there, this waiter, too.
void QuorumTask::plan(Instant now, ListenSet confirmed, std::uint16_t random) noexcept {
  bool alone = false;
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    const Status status = machine_.vote(node).status;
    alone = alone || status == Status::ok || status == Status::outcome_unknown || status == Status::cancelled;
  }
  life_.plan(now, confirmed, machine_.busy_for(), alone, random);
  life_.bound_floor();
}

void QuorumTask::tell(Witness& witness, QuorumEvent event, bool releasing, Instant now) const noexcept {
  const ByteView name = machine_.key().bytes();
  switch (event) {
    case QuorumEvent::renewed:
    case QuorumEvent::doubted: {
      const Status status = event == QuorumEvent::renewed ? Status::ok : machine_.status();
      return witness.tell(Seen::renewed, name, status, (now - machine_.asked_at()).count());
    }
    case QuorumEvent::lost: return witness.tell(releasing ? Seen::lost_unnoticed : Seen::lost, name);
    case QuorumEvent::released:
      if (machine_.status() == Status::lock_lost) witness.tell(Seen::lost_unnoticed, name);
      return;
    case QuorumEvent::granted:
    case QuorumEvent::denied:
    case QuorumEvent::at_risk: return;
  }
}

NodeSet QuorumTask::hand_over(NodeSet touched, Instant now) noexcept {
  machine_.settle(touched, now);
  if (!machine_.has_output()) return 0;
  for (NodeSet nodes = machine_.poll_nodes(); nodes != 0; nodes = machine_.poll_nodes()) {
    for (NodeSet left = nodes; left != 0; left = static_cast<NodeSet>(left & (left - 1))) {
      const auto index = static_cast<std::size_t>(__builtin_ctz(left));
      Node& node = roll_.node(index);
      LockMachine& machine = votes_[index]->machine;
      // Who answers over a new connection must be known before anything is asked over it.
      if (machine.wants_request() && !roll_.introduced(index)) machine.refuse_request(Status::not_connected, now);
      if (machine.wants_request()) node.submit(machine, votes_[index], now);
      ReplyTag tag;
      Compensation compensation;
      if (machine_.poll_compensation(index, node.session().may_compensate(), tag, compensation)) {
        tag.requester = votes_[index];
        (void)node.session().compensate(tag, compensation);
      }
    }
    machine_.settle(nodes, now);
  }
  roll_.demote(machine_.poll_demoted(), now);
  const NodeSet given_up = machine_.poll_give_up();
  for (NodeSet left = given_up; left != 0; left = static_cast<NodeSet>(left & (left - 1))) {
    const auto index = static_cast<std::size_t>(__builtin_ctz(left));
    roll_.node(index).session().give_up(votes_[index], Status::cancelled, now);
  }
  for (NodeSet left = machine_.poll_protocol_doubt(); left != 0; left = static_cast<NodeSet>(left & (left - 1)))
    roll_.node(static_cast<std::size_t>(__builtin_ctz(left))).session().fail_shape();
  return given_up;
}

}  // namespace holdfast
