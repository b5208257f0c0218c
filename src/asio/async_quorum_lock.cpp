// SPDX-License-Identifier: MIT
#include "holdfast/async_quorum_lock.hpp"

#include "async_quorum_core.hpp"

namespace holdfast {

namespace {

// A refusal of a plain mutex does not tell the remaining time, and nodes are not asked for it: a holder that died is noticed
// so late.
constexpr Duration busy_poll = std::chrono::seconds(1);
// A hold whose holder gives no sign of life is looked at again so often.
constexpr int liveness_divisor = 30;

[[nodiscard]] std::size_t count_of(NodeSet nodes) noexcept {
  return static_cast<std::size_t>(__builtin_popcount(nodes));
}

}  // namespace

AsyncQuorumLock::AsyncQuorumLock(AsyncQuorum& quorum, const LockKind& kind, QuorumVote* const* votes,
                                 std::size_t places, Key key, const QuorumTiming& timing)
    : AsyncHold(*quorum.core_),
      core_(quorum.core_),
      votes_(votes),
      machine_(kind, votes, core_->size() > places ? 1 : core_->size()) {
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    votes[node]->owner = this;
    votes[node]->node = static_cast<std::uint8_t>(node);
    machine_.meet(node, core_->roll().server(node), core_->roll().excluded(node));
  }
  configuration_ = machine_.configure(key, timing);
  if (core_->size() > places) configuration_ = Status::invalid_argument;
  core_->enter(sibling_);
}

AsyncQuorumLock::~AsyncQuorumLock() {
  if (orphaned()) {
    core_->leave_to_parent();
  } else {
    const Instant now = core_->begin();
    cancel();
    core_->read_arrived();
    while (machine_.count() != 0) (void)machine_.release(now);
    settle();
    stop_listening(false);
    for (std::size_t node = 0; node < machine_.nodes(); ++node) core_->node(node).session().abandon(votes_[node], now);
    core_->schedule_turn();
  }
  core_->sleep(*this, Instant::max());
}

// ---- Starting ----------------------------------------------------------------------------------------------------

Status AsyncQuorumLock::may_start() const noexcept {
  if (configuration_ != Status::ok) return configuration_;
  if (orphaned()) return Status::forked;
  if (!core_->usable()) return Status::not_connected;
  return doing_ == Doing::nothing ? Status::ok : Status::too_many_requests;
}

void AsyncQuorumLock::begin(Doing doing, Completion& completion, Instant deadline) {
  doing_ = doing;
  completion_ = &completion;
  deadline_ = deadline;
  only_ = doing != Doing::acquire;
  last_ = only_;
  roomy_ = false;
  if (renewal_waits_) queued_.unlink();
  renewal_waits_ = false;
}

Instant AsyncQuorumLock::end() const noexcept {
  return doing_ == Doing::acquire ? core_->end_of_wait(deadline_) : deadline_;
}

void AsyncQuorumLock::start_acquire(Duration wait, Completion& completion) {
  const Instant now = core_->begin();
  Status refused = may_start();
  if (refused == Status::ok && wait < Duration::zero()) refused = Status::invalid_argument;
  if (refused == Status::ok) refused = core_->roll().permit(machine_);
  if (refused != Status::ok) return core_->complete(completion, refused);
  begin(Doing::acquire, completion, now + wait);
  only_ = now + timeout_min > deadline_;
  push_refused_ = 0;
  spread_ = retry_delay_min;
  plan_.begin({.deadline = deadline_, .max_poll = core_->node(0).config().max_poll, .unknown_poll = busy_poll});
  settle();
  attempt();
}

void AsyncQuorumLock::start_renew(Duration timeout, Completion& completion) {
  const Instant now = core_->begin();
  Status refused = may_start();
  if (refused == Status::ok && timeout < Duration::zero()) refused = Status::invalid_argument;
  if (refused != Status::ok) return core_->complete(completion, refused);
  (void)core_->roll().permit(machine_);  // So that error_text() has the reason, where it is refused.
  begin(Doing::renew, completion, timeout == Duration::zero() ? core_->request_deadline() : now + timeout);
  proceed();
}

void AsyncQuorumLock::start_release(Completion& completion) {
  const Instant now = core_->begin();
  if (const Status refused = may_start(); refused != Status::ok) return core_->complete(completion, refused);
  begin(Doing::release, completion, core_->request_deadline());
  if (!machine_.held(now) || machine_.count() > 1) return finish(ask());  // Nothing is asked of the nodes.
  forget_untold();
  letting_go_ = true;
  publish();  // Not held from here on, whatever the connections do.
  proceed();
}

Status AsyncQuorumLock::post_release() {
  const Instant now = core_->begin();
  if (const Status refused = may_start(); refused != Status::ok) return refused;
  core_->read_arrived();
  const Status status = machine_.release(now);
  settle();
  machine_.end_release(Status::outcome_unknown);
  if (machine_.count() == 0) {
    forget_untold();
    tell_waiter(status == Status::lock_lost ? status : Status::ok);
  }
  return status == Status::ok && machine_.release_owed() != 0 ? Status::too_many_requests : status;
}

// ---- What is in progress -----------------------------------------------------------------------------------------

// One try of an acquire.
void AsyncQuorumLock::attempt() {
  const Instant now = core_->now();
  if (now == Instant::max()) return finish(Status::system_error);  // The clock cannot be read.
  last_ = only_ || plan_.last(now);
  plan_.begin_attempt(now, confirmed(), core_->random_delay(retry_delay_min));
  for (std::size_t node = 0; node < machine_.nodes(); ++node)
    if (waiters_[node] != nullptr) core_->node(node).subscriber().begin_try(*waiters_[node]);
  core_->clear_texts();
  if (renewal_waits_) queued_.unlink();
  renewal_waits_ = false;
  roomy_ = false;
  step_ = Step::nothing;
  proceed();
}

// As far as it goes: a majority that may vote, room on the connections, the requests.
void AsyncQuorumLock::proceed() {
  const Instant now = core_->now();
  if (doing_ == Doing::acquire) {
    const Status verdict = core_->roll().verdict(now);
    const bool may_come = verdict == Status::no_quorum && core_->connecting();
    if (may_come && step_ != Step::voters) {
      const Instant until = now + core_->node(0).config().connect_timeout;
      return wait_for(Step::voters, earlier(until, last_ ? end() : deadline_));
    }
    if (may_come && now < until_) return wait_for(Step::voters, until_);
    if (verdict != Status::ok) return conclude(verdict);
    if (now >= end()) return conclude(Status::timed_out);
  }
  const bool turn = step_ == Step::room || !core_->room_is_awaited();
  if (!roomy_ && (!turn || !room_is_there()))
    return wait_for(Step::room, earlier(now + machine_.timing().effective_node_timeout(), end()));
  step_ = Step::answer;
  until_ = Instant::max();
  const Status status = ask();
  settle();
  if (status != Status::ok) conclude(status);
}

// Every node that is asked has room, but those that were waited for in vain; of an acquire, a majority has. Where that may
// not vote any more, there is nothing to wait for here.
bool AsyncQuorumLock::room_is_there() {
  const NodeSet with_room = core_->roomy();
  if (doing_ != Doing::acquire) return core_->room_awaited(core_->ready(), with_room) == 0;
  const NodeSet voters = core_->roll().voters(core_->now());
  if (count_of(voters) < machine_.majority()) return true;
  return core_->room_awaited(voters, with_room) == 0 &&
         count_of(static_cast<NodeSet>(voters & with_room)) >= machine_.majority();
}

// It came.
void AsyncQuorumLock::take_room() {
  roomy_ = true;
  if (!renewal_waits_) return proceed();
  renewal_waits_ = false;
  (void)open_round(core_->request_deadline());
}

// The machine has requests then, or its refusal is the outcome.
Status AsyncQuorumLock::ask() {
  const Instant now = core_->now();
  switch (doing_) {
    case Doing::nothing: break;
    case Doing::acquire: return ask_to_acquire();
    case Doing::renew: {
      // A round that a cancelled call, or the watch over the hold, has opened is waited for instead.
      const Status status = open_round(deadline_);
      until_ = status == Status::ok ? Instant::max() : deadline_;  // A round of our own ends by its requests' deadline.
      return status == Status::too_many_requests ? Status::ok : status;
    }
    case Doing::release: {
      letting_go_ = false;
      until_ = deadline_;
      const Status status = machine_.release(now);
      settle();
      if (machine_.count() == 0) forget_untold();  // A loss that only the release found: its status says so.
      return status;
    }
  }
  return Status::ok;
}

Status AsyncQuorumLock::ask_to_acquire() {
  const Instant now = core_->now();
  const LockKind& kind = machine_.kind();
  reentering_ = kind.reentrant && machine_.held(now);
  if (reentering_) {
    const Instant deadline = earlier(core_->request_deadline(), end());
    const Status status = open_round(deadline);
    until_ = status == Status::ok ? Instant::max() : deadline;
    return status == Status::too_many_requests ? Status::ok : status;
  }
  const NodeSet voters = static_cast<NodeSet>(core_->roll().voters(now) & core_->roomy());
  if (count_of(voters) < machine_.majority()) return Status::too_many_requests;
  for (std::size_t node = 0; node < machine_.nodes(); ++node)
    votes_[node]->native_delete = core_->node(node).session().identity().native_delete;
  Token token;
  const Status status = core_->node(0).draw_token(kind.token, token);
  if (status != Status::ok) return status;
  return machine_.acquire(token, now, {voters, core_->roll().config().max_lease}, end());
}

Status AsyncQuorumLock::open_round(Instant deadline) {
  settle();  // A grant that has just run out on a node is let go of there before it is asked for anew.
  const Instant now = core_->now();
  const Status status = machine_.renew(now, earlier(deadline, machine_.valid_until()), core_->roll().repairers(now));
  settle();
  return status;
}

void AsyncQuorumLock::wait_for(Step step, Instant until) {
  step_ = step;
  until_ = until;
  if (step == Step::voters) core_->await_voters(queued_);
  if (step == Step::room) core_->await_room(queued_);
  rest();
}

// Something has come for the lock, or time has done something.
void AsyncQuorumLock::look() {
  if (step_ == Step::answer && !machine_.waiting()) {
    Status status = machine_.status();
    if (reentering_ && status == Status::ok) status = machine_.reenter();
    if (doing_ == Doing::acquire && !reentering_ && status == Status::lock_lost) {
      (void)machine_.release(core_->now());  // Granted, and over before anybody was told of it.
      forget_untold();
      status = Status::timed_out;
    }
    return conclude(status);
  }
  renew_if_due();
  rest();
}

void AsyncQuorumLock::conclude(Status status) {
  if (doing_ == Doing::acquire) return conclude_acquire(status);
  finish(status);
}

void AsyncQuorumLock::conclude_acquire(Status status) {
  if (status == Status::ok) return finish(status);
  reentering_ = false;
  spread(status);
  // An attempt that was on its way when the wait was over was the last one.
  if (last_ || core_->now() >= deadline_ || !worth_waiting(status)) return finish(status);
  if (status == Status::lock_busy)
    for (std::size_t node = 0; node < machine_.nodes(); ++node)
      if (waiters_[node] != nullptr) core_->node(node).subscriber().end_try(*waiters_[node]);
  listen();
  plan_.plan(core_->now(), status == Status::lock_busy, confirmed(), machine_.busy_for(), core_->node(0).random());
  wait_for(Step::retry, Instant::max());
}

// A node that granted alone is released again, which wakes everybody there, this waiter, too: the next try is delayed at
// random and more and more, so that those who split the votes between them do not do so for ever.
void AsyncQuorumLock::spread(Status outcome) noexcept {
  bool alone = false;
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    const Status status = machine_.vote(node).status;
    alone = alone || status == Status::ok || status == Status::outcome_unknown || status == Status::cancelled;
  }
  if (outcome == Status::ok || !alone) {
    spread_ = retry_delay_min;
    return;
  }
  spread_ = spread_ * 2 < retry_delay_max ? spread_ * 2 : retry_delay_max;
  plan_.set_floor(core_->now() + core_->random_delay(spread_));
}

void AsyncQuorumLock::finish(Status status) {
  const bool released = doing_ == Doing::release && machine_.count() == 0;
  Completion& completion = *completion_;
  if (doing_ == Doing::acquire) stop_listening(status == Status::ok);
  completion_ = nullptr;
  doing_ = Doing::nothing;
  step_ = Step::nothing;
  queued_.unlink();
  letting_go_ = false;
  reentering_ = false;
  publish();
  rest();
  if (released) tell_waiter(status == Status::lock_lost ? status : Status::ok);
  core_->complete(completion, status);
}

// When time alone gives us something to do.
void AsyncQuorumLock::rest() {
  Instant at = earlier(machine_.poll_timeout(), renewal_waits_ ? until_ : renewal_wanted_at());
  switch (step_) {
    case Step::nothing: break;
    case Step::voters:
    case Step::room:
    case Step::answer: at = earlier(at, until_); break;
    case Step::retry: at = earlier(at, plan_.next(woken(), confirmed())); break;
  }
  core_->sleep(*this, at);
}

void AsyncQuorumLock::wake(Instant now) {
  settle();  // And a look follows.
  switch (step_) {
    case Step::nothing:
      if (!renewal_waits_ || now < until_) break;
      queued_.unlink();
      core_->note_crowded(core_->roomy());
      take_room();
      break;
    case Step::voters:
      if (now < until_) break;
      queued_.unlink();
      proceed();
      break;
    case Step::room:
      if (now < until_) break;
      queued_.unlink();
      core_->note_crowded(core_->roomy());
      take_room();
      break;
    case Step::answer:
      if (now < until_ || !machine_.waiting()) break;
      machine_.end_release(Status::timed_out);
      conclude(Status::timed_out);
      break;
    case Step::retry:
      if (plan_.due(now, woken(), confirmed())) attempt();
      break;
  }
}

void AsyncQuorumLock::cancel_doing() {
  const Instant now = core_->now();
  if (doing_ == Doing::acquire && step_ == Step::answer && !reentering_) {
    machine_.cancel(now);
    settle();
    if (machine_.release(now) == Status::ok) {  // Answered in the same moment: nobody wants it any more.
      settle();
      machine_.end_release(Status::cancelled);
    }
    forget_untold();
  }
  if (doing_ == Doing::release) {
    core_->read_arrived();
    if (step_ == Step::room) (void)ask();
    machine_.end_release(Status::cancelled);
  }
  finish(Status::cancelled);
}

// ---- The machine's mouth and ear ---------------------------------------------------------------------------------

void AsyncQuorumLock::take_reply(QuorumVote& vote, const Reply& reply) {
  machine_.handle_reply(vote.node, reply, core_->now());
  settle(node_bit(vote.node));
}

void AsyncQuorumLock::meet(std::size_t node) {
  if (node >= machine_.nodes()) return;
  machine_.meet(node, core_->roll().server(node), core_->roll().excluded(node));
  settle();
}

void AsyncQuorumLock::pay() {
  machine_.retry_owed();
  settle();
}

void AsyncQuorumLock::settle() { settle(machine_.all()); }

// What has been done to these nodes' machines, or by time.
void AsyncQuorumLock::settle(NodeSet nodes) {
  machine_.settle(nodes, core_->now());
  if (machine_.has_output()) hand_over();
  publish();
  core_->stir(stirred_);
}

// Until nobody has anything more to say: a request that cannot be sent is an answer.
void AsyncQuorumLock::hand_over() {
  const Instant now = core_->now();
  for (NodeSet nodes = machine_.poll_nodes(); nodes != 0; nodes = machine_.poll_nodes()) {
    for (NodeSet left = nodes; left != 0; left = static_cast<NodeSet>(left & (left - 1))) {
      const auto node = static_cast<std::size_t>(__builtin_ctz(left));
      LockMachine& machine = votes_[node]->machine;
      ReplyTag tag;
      Compensation compensation;
      Session& session = core_->node(node).session();
      // Who answers over a new connection must be known before anything is asked over it.
      if (machine.wants_request() && session.ready() && !core_->roll().introduced(node))
        machine.refuse_request(Status::not_connected, now);
      if (machine.wants_request()) core_->node(node).submit(machine, votes_[node]);
      if (machine_.poll_compensation(node, session.may_compensate(), tag, compensation)) {
        tag.requester = votes_[node];
        (void)session.compensate(tag, compensation);
      }
    }
    machine_.settle(nodes, now);
  }
  if (machine_.owed() != 0) core_->note_owing();
  core_->roll().demote(machine_.poll_demoted(), now);
  // That a reply was given up is known at once, and the node may be asked again.
  for (NodeSet nodes = machine_.poll_give_up(); nodes != 0; nodes = static_cast<NodeSet>(nodes & (nodes - 1))) {
    const auto node = static_cast<std::size_t>(__builtin_ctz(nodes));
    core_->node(node).give_up(votes_[node], Status::cancelled);
  }
  for (NodeSet nodes = machine_.poll_protocol_doubt(); nodes != 0; nodes = static_cast<NodeSet>(nodes & (nodes - 1)))
    core_->node(static_cast<std::size_t>(__builtin_ctz(nodes)))
        .fail(Status::protocol_error, "a reply of another shape than asked for");
  QuorumEvent event{};
  while (machine_.poll_event(event)) note(event);
}

void AsyncQuorumLock::note(QuorumEvent event) {
  switch (event) {
    case QuorumEvent::granted: begin_hold(machine_.confirmed_at()); return;
    case QuorumEvent::denied:
    case QuorumEvent::doubted:
      core_->roll().note(machine_);
      return;  // What single nodes said is kept for who asks why.
    case QuorumEvent::renewed: doubt_is_over(); return;
    case QuorumEvent::at_risk:
      if (doing_ != Doing::release) note_told(Told::at_risk);
      return;
    case QuorumEvent::lost:
      if (doing_ != Doing::release) note_told(Told::lost);
      tell_waiter(Status::lock_lost);
      return;
    case QuorumEvent::released: return;
  }
}

// ---- Waiting by push ---------------------------------------------------------------------------------------------

bool AsyncQuorumLock::woken() const noexcept {
  if (!listens_) return false;
  for (std::size_t node = 0; node < machine_.nodes(); ++node)
    if (waiters_[node] != nullptr && core_->node(node).subscriber().woken(*waiters_[node])) return true;
  return false;
}

ListenSet AsyncQuorumLock::confirmed() const noexcept {
  ListenSet confirmed = 0;
  if (!listens_) return confirmed;
  for (std::size_t node = 0; node < machine_.nodes(); ++node)
    if (waiters_[node] != nullptr && core_->node(node).subscriber().confirmed(*waiters_[node]))
      confirmed = static_cast<ListenSet>(confirmed | node_bit(node));
  return confirmed;
}

// Nodes whose table is full, or that refuse it, are done without; without any of them it polls.
void AsyncQuorumLock::listen() {
  if (machine_.kind().announcement == nullptr || listens_) return;
  listens_ = true;
  for (std::size_t node = 0; node < machine_.nodes(); ++node)
    if ((push_refused_ & node_bit(node)) == 0)
      waiters_[node] = core_->node(node).listen(*machine_.kind().announcement, machine_.key());
  plan_.forget(machine_.all());
  core_->await_message(listening_);
}

void AsyncQuorumLock::stop_listening(bool with_lock) {
  if (!listens_) return;
  listens_ = false;
  listening_.unlink();
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    if (waiters_[node] != nullptr) core_->node(node).leave(*waiters_[node], with_lock);
    waiters_[node] = nullptr;
  }
}

// Something came over a subscription.
void AsyncQuorumLock::hear() {
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    if (waiters_[node] == nullptr || !core_->node(node).subscriber().refused(*waiters_[node])) continue;
    push_refused_ = static_cast<NodeSet>(push_refused_ | node_bit(node));
    core_->node(node).leave(*waiters_[node], false);
    waiters_[node] = nullptr;
  }
  plan_.forget(static_cast<ListenSet>(~confirmed()));
  if (step_ != Step::retry) return;
  if (plan_.due(core_->now(), woken(), confirmed())) return attempt();
  rest();
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

Instant AsyncQuorumLock::renewal_wanted_at() const noexcept {
  const Instant now = core_->now();
  if (!kept() || doing_ == Doing::release || too_old(now)) return Instant::max();
  if (!machine_.permitted(core_->roll().config().max_lease)) return Instant::max();
  const Instant due = machine_.renewal_due();
  if (due > now || alive(now)) return due;
  const Duration pause = machine_.timing().lock().effective_lease() / liveness_divisor;
  return now + (pause < retry_delay_min ? retry_delay_min : pause);
}

void AsyncQuorumLock::renew_if_due() {
  const Instant wanted = renewal_wanted_at();
  // At Instant::max() nothing is wanted, whatever the time is.
  if (renewal_waits_ || wanted > core_->now() || wanted == Instant::max()) return;
  const bool turn = !core_->room_is_awaited() && room_is_there();
  if (turn || step_ != Step::nothing) {
    (void)open_round(core_->request_deadline());
    return;
  }
  renewal_waits_ = true;
  until_ = core_->now() + machine_.timing().effective_node_timeout();
  core_->await_room(queued_);
}

}  // namespace holdfast
