// SPDX-License-Identifier: MIT
#include "holdfast/core/node_task.hpp"

namespace holdfast {

Duration remaining_of(std::int64_t milliseconds) noexcept {
  constexpr std::int64_t milliseconds_max = Duration::max().count() / 1'000'000;
  if (milliseconds == -1 || milliseconds > milliseconds_max) return remaining_unlimited;
  return milliseconds <= 0 ? Duration::zero() : std::chrono::milliseconds(milliseconds);
}

Status NodeTask::ask(const Token& token, Instant now) noexcept {
  const Instant deadline = life_.request_deadline(now);
  switch (life_.call()) {
    case Call::acquire:
      remaining_ = remaining_unknown;  // Of whoever is in the way now.
      outermost_ = !(machine_.kind().reentrant && machine_.held(now));
      if (!outermost_) return machine_.reenter(now, deadline, timing_);
      return machine_.acquire(token, now, deadline, timing_);
    case Call::renew: return machine_.renew(now, deadline);
    case Call::release:
      if (machine_.count() > 1) return machine_.step_down(false, now, deadline);
      return machine_.release(node_->session().identity().native_delete, false, now, deadline);
    case Call::question:
    case Call::none: break;  // Of no call nobody asks.
  }
  question_ += 2;
  const ReplyTag tag = {.requester = requester_, .generation = question_};
  const Status status =
      asked_ != nullptr ? asked_->ask(*asked_, *node_, tag, now) : node_->ask_remaining(machine_, tag, now);
  question_waits_ = status == Status::ok;
  return status;
}

// How long the hold in the way has left, where a refusal does not tell.
void NodeTask::ask_along(Instant now) noexcept {
  if (machine_.kind().tells_remaining) return;
  (void)node_->ask_remaining(machine_, {.requester = requester_, .generation = 2 * machine_.generation()}, now);
}

bool NodeTask::pay(LockMachine& machine, Node& node, void* requester) noexcept {
  if (!machine.wants_compensation()) return true;
  if (!node.session().may_compensate()) return false;
  ReplyTag tag;
  Compensation compensation;
  (void)machine.poll_compensation(tag, compensation);
  tag.requester = requester;
  (void)node.session().compensate(tag, compensation);  // There is a place.
  return true;
}

void NodeTask::plan(Instant now, ListenSet confirmed, std::uint16_t random) noexcept {
  if (machine_.kind().tells_remaining) remaining_ = machine_.busy_for();
  if (life_.busy() && life_.was_woken()) ask_along(now);
  life_.plan(now, confirmed, remaining_, false, random);
}

// Replies of a hold that is over say nothing. What goes once more, with the script's text, is not answered yet.
void NodeTask::tell_reply(Witness& witness, LockMachine& machine, const Reply& reply, Instant now) noexcept {
  const bool counts = reply.tag.generation == machine.generation();
  const bool releasing = machine.state() == LockState::releasing;
  machine.handle_reply(reply, now);
  if (!counts || machine.wants_request()) return;
  const Status status = machine.status();
  const bool renews = reply.tag.operation == Operation::renew;
  if (renews || (reply.tag.operation == Operation::release && releasing && status == Status::lock_lost))
    witness.tell(renews ? Seen::renewed : Seen::lost_unnoticed, machine.key().bytes(), status,
                 (now - machine.confirmed_at()).count());
}

void NodeTask::tell_loss(const LockMachine& machine, const Node& node, bool unnoticed) noexcept {
  if (node.config().meter != nullptr) [[unlikely]]
    node.config().meter->tell(unnoticed ? Seen::lost_unnoticed : Seen::lost, machine.key().bytes());
}

bool NodeTask::note(const Reply& reply) noexcept {
  if (reply.tag.operation == Operation::query) return take_answer(reply);
  // That of an earlier hold says nothing of this one.
  if (reply.tag.operation == Operation::compensate && reply.tag.generation == machine_.generation())
    life_.handle_compensated(reply.outcome == Status::ok && reply.value.is_integer(1));
  return false;
}

bool NodeTask::take_answer(const Reply& reply) noexcept {
  bool told = reply.outcome == Status::ok && reply.value.is(RespKind::integer);
  if (question_waits_ && reply.tag.generation == question_) {
    question_waits_ = false;
    question_outcome_ = reply.outcome;
    if (asked_ != nullptr)
      told = reply.outcome == Status::ok && asked_->take(*asked_, reply.value);
    else if (told)
      remaining_ = reply.value.integer();
    if (told || reply.outcome != Status::ok) return false;
    question_outcome_ = Status::protocol_error;
    node_->session().fail_shape();
    return false;
  }
  // Of an attempt whose refusal did not tell the remaining time.
  if (!told || reply.tag.generation != 2 * machine_.generation()) return false;
  remaining_ = reply.value.integer();
  return true;
}

}  // namespace holdfast
