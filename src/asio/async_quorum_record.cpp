// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_quorum_record.hpp"

#include "async_quorum_core.hpp"
#include "holdfast/asio/async_quorum_lock.hpp"

namespace holdfast {

namespace {

// A hold whose holder gives no sign of life is looked at again so often.
constexpr int liveness_divisor = 30;

}  // namespace

AsyncQuorumRecord::AsyncQuorumRecord(const std::shared_ptr<AsyncQuorumCore>& core, const LockKind& kind,
                                     QuorumVote* const* votes, std::size_t places, Key key, const QuorumTiming& timing)
    : core_(core),
      votes_(votes),
      machine_(kind, votes, core_->size() > places ? 1 : core_->size()),
      task_(machine_, votes, core_->roll()) {
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    votes[node]->owner = this;
    votes[node]->node = static_cast<std::uint8_t>(node);
    machine_.meet(node, core_->roll().server(node), core_->roll().excluded(node));
  }
  configuration_ = machine_.configure(key, timing);
  if (core_->size() > places) configuration_ = Status::invalid_argument;
  core_->enter(sibling_);
}

AsyncQuorumRecord::~AsyncQuorumRecord() {
  if (orphaned()) {
    core_->leave_to_parent();
  } else {
    const Instant now = core_->begin();
    cancel();
    core_->read_arrived();
    if (machine_.count() != 0) (void)machine_.release(now, machine_.count());
    settle();
    stop_listening(false);
    for (std::size_t node = 0; node < machine_.nodes(); ++node) core_->node(node).session().abandon(votes_[node], now);
    core_->schedule_turn();
  }
  end();
}

AsyncLoop& AsyncQuorumRecord::loop() const noexcept { return *core_; }

// ---- Starting ----------------------------------------------------------------------------------------------------

Status AsyncQuorumRecord::may_start() const noexcept {
  if (configuration_ != Status::ok) return configuration_;
  if (orphaned()) return Status::forked;
  if (!core_->usable()) return Status::not_connected;
  return task_.life().over() ? Status::ok : Status::too_many_requests;
}

void AsyncQuorumRecord::begin(Completion& completion, AsyncHandle& handle) noexcept {
  begin_operation(completion, handle);
  if (renewal_waits_) queued_.unlink();
  renewal_waits_ = false;
}

void AsyncQuorumRecord::start_acquire(Duration wait, Completion& completion, AsyncHandle& handle) {
  const Instant now = core_->begin();
  const QuorumTiming* const timing = static_cast<const AsyncQuorumLock&>(handle).timing();
  Status refused = may_start();
  if (refused == Status::ok && wait < Duration::zero()) refused = Status::invalid_argument;
  if (refused == Status::ok) refused = task_.permit(timing, now);
  if (refused != Status::ok) return core_->complete(completion, refused);
  begin(completion, handle);
  task_.begin_acquire(now, now + wait, core_->end_of_wait(now + wait), timing);
  push_refused_ = 0;
  settle();
  proceed();
}

void AsyncQuorumRecord::start_renew(Duration timeout, Completion& completion, AsyncHandle& handle) {
  const Instant now = core_->begin();
  Status refused = may_start();
  if (refused == Status::ok && timeout < Duration::zero()) refused = Status::invalid_argument;
  if (refused != Status::ok) return core_->complete(completion, refused);
  (void)task_.permit(nullptr, now);  // So that error_text() has the reason, where it is refused.
  begin(completion, handle);
  task_.begin(Call::renew, timeout == Duration::zero() ? core_->request_deadline() : now + timeout);
  proceed();
}

void AsyncQuorumRecord::start_release(Completion& completion, AsyncHandle& handle) {
  const Instant now = core_->begin();
  if (const Status refused = may_start(); refused != Status::ok) return core_->complete(completion, refused);
  begin(completion, handle);
  task_.begin(Call::release, core_->request_deadline());
  if (machine_.count() <= 1) keeping_.begin_end();
  if (machine_.held(now) && machine_.count() <= 1) {
    keeping_.begin_release();  // Not held from here on, whatever the connections do.
  }
  proceed();
}

Status AsyncQuorumRecord::post_release() {
  const Instant now = core_->begin();
  const Status refused = may_start();
  return refused != Status::ok ? refused : post_release_now(now, 1);
}

Status AsyncQuorumRecord::post_release_now(Instant now, std::uint32_t acquisitions) {
  core_->read_arrived();
  keeping_.end_release();
  if (machine_.count() <= acquisitions) keeping_.begin_end();
  const Status status = machine_.release(now, acquisitions);
  settle();
  machine_.end_release(Status::outcome_unknown);
  if (machine_.count() == 0) {
    keeping_.forget_news();
    tell_waiters(status == Status::lock_lost ? status : Status::ok);
  }
  return status == Status::ok && machine_.release_owed() != 0 ? Status::too_many_requests : status;
}

void AsyncQuorumRecord::leave(const HoldShare& share) {
  note_gone(share);
  if (!operating()) post_due();
}

void AsyncQuorumRecord::post_due() {
  const std::uint32_t due = orphaned() ? 0 : take_due();
  if (due != 0 && machine_.count() != 0) (void)post_release_now(core_->begin(), due);
}

void AsyncQuorumRecord::locate(LockPlace& found) const noexcept {
  found.node_count = machine_.nodes();
  for (std::size_t node = 0; node < found.node_count; ++node) found.nodes[node] = &core_->node(node).config();
  found.sort();
  found.kind = &machine_.kind();
  found.key = machine_.key();
}

Status AsyncQuorumRecord::forget_loss() {
  const Instant now = core_->begin();
  if (const Status refused = may_start(); refused != Status::ok) return refused;
  const Status status = machine_.forget_loss(now);
  settle();  // Where it was lost just now, who waits for that is told.
  if (status == Status::ok) keeping_.forget_news();
  return status;
}

// ---- What is in progress -----------------------------------------------------------------------------------------

TaskFacts AsyncQuorumRecord::facts() {
  TaskFacts facts = task_.facts(core_->connecting() != 0, core_->now());
  if (machine_.has_output()) settle();
  const TaskStage stage = task_.life().stage();
  if (stage != TaskStage::idle && stage <= TaskStage::room && task_.wants_room()) {
    // Who comes first waits longest.
    const bool turn = stage == TaskStage::room || !core_->room_is_awaited();
    facts.room = turn && room_is_there();
  }
  facts.cancelled = cancelled_;
  facts.listening = listens_;
  facts.woken = woken();
  facts.confirmed = confirmed();
  return facts;
}

void AsyncQuorumRecord::proceed() {
  LockTask& life = task_.life();
  for (;;) switch (life.step(facts())) {
      case TaskAct::sleep: return rest();
      case TaskAct::attempt:
        for (std::size_t node = 0; node < machine_.nodes(); ++node)
          if (waiters_[node] != nullptr) core_->node(node).subscriber().begin_try(*waiters_[node]);
        break;
      case TaskAct::ask: ask(); break;
      case TaskAct::listen: plan(); break;
      case TaskAct::confirm: break;  // Of one node whose replicas are counted.
      case TaskAct::keep: life.handle_kept(task_.take_grant()); break;
      case TaskAct::give_up: give_up(); break;
      case TaskAct::let_go:
        if (task_.lets_go()) (void)post_release();
        break;
      case TaskAct::over: return operating() ? finish() : rest();
    }
}

// Every node that is asked has room, but those that were waited for in vain.
bool AsyncQuorumRecord::room_is_there() {
  const NodeSet with_room = core_->roomy();
  return task_.enough_room(with_room, core_->room_awaited(core_->ready(), with_room), core_->now());
}

void AsyncQuorumRecord::take_room() {
  if (!renewal_waits_) return proceed();
  renewal_waits_ = false;
  renew_now();
}

void AsyncQuorumRecord::ask() {
  if (renewal_waits_) queued_.unlink();
  renewal_waits_ = false;
  const Instant now = core_->now();
  const Call call = task_.life().call();
  keeping_.end_release();
  NodeSet with_room = machine_.all();
  if (call == Call::acquire) {
    core_->clear_texts();
    with_room = core_->roomy();
  }
  if (task_.wants_room() && !room_is_there()) core_->note_crowded(core_->roomy());
  if (call != Call::release) settle();  // A grant that has just run out on a node is let go of there before.
  Token token;
  Status drawn = Status::ok;
  if (task_.wants_token(now)) drawn = core_->node(0).draw_token(machine_.kind().token, token);
  if (drawn == Status::ok)
    task_.ask(token, with_room, now);
  else
    task_.refuse(drawn);
  settle();
  if (call == Call::release && machine_.count() == 0) keeping_.forget_news();  // A loss that only the release found.
}

// What has arrived counts, and what a node has not answered in its time is known first.
void AsyncQuorumRecord::give_up() {
  core_->catch_up();
  if (!task_.waiting()) return;
  task_.give_up(core_->now());
  settle();
}

// The lock is another's, or there was no quorum.
void AsyncQuorumRecord::plan() {
  if (task_.life().busy())
    for (std::size_t node = 0; node < machine_.nodes(); ++node)
      if (waiters_[node] != nullptr) core_->node(node).subscriber().end_try(*waiters_[node]);
  listen();
  task_.plan(core_->now(), confirmed(), core_->node(0).random());
}

// Something has come for the lock, or time has done something.
void AsyncQuorumRecord::look() {
  if (!task_.life().over()) proceed();
  renew_if_due();
  rest();
}

void AsyncQuorumRecord::finish() {
  const Status status = task_.life().status();
  const Call call = task_.life().call();
  const bool released = call == Call::release && machine_.count() == 0;
  if (call == Call::acquire) {
    stop_listening(status == Status::ok);
    if (status != Status::ok && machine_.count() == 0)
      keeping_.forget_news();  // Lost before anybody was told that it was granted.
  }
  Completion& completion = end_operation(call, status);
  queued_.unlink();
  keeping_.end_release();
  publish();
  rest();
  if (released) tell_waiters(status == Status::lock_lost ? status : Status::ok);
  core_->complete(completion, status);
  post_due();
}

// When something, or time alone, gives us something to do.
void AsyncQuorumRecord::rest() {
  const LockTask& life = task_.life();
  switch (life.stage()) {
    case TaskStage::link:
      if (!queued_.linked()) core_->await_voters(queued_);
      break;
    case TaskStage::room:
      if (!queued_.linked()) core_->await_room(queued_);
      break;
    default:
      if (!renewal_waits_) queued_.unlink();
      break;
  }
  Instant at = earlier(machine_.poll_timeout(), renewal_waits_ ? renewal_until_ : renewal_wanted_at());
  at = earlier(at, life.poll_timeout(woken(), confirmed()));
  core_->sleep(*this, at);
}

void AsyncQuorumRecord::wake(Instant now) {
  settle();  // And a look follows.
  if (!renewal_waits_ || now < renewal_until_) return;
  queued_.unlink();
  core_->note_crowded(core_->roomy());
  take_room();
}

void AsyncQuorumRecord::cancel_doing() {
  cancelled_ = true;
  proceed();
  cancelled_ = false;
}

// ---- The machine's mouth and ear ---------------------------------------------------------------------------------

void AsyncQuorumRecord::take_reply(QuorumVote& vote, const Reply& reply) {
  machine_.handle_reply(vote.node, reply, core_->now());
  settle(node_bit(vote.node));
}

void AsyncQuorumRecord::meet(std::size_t node) {
  if (node >= machine_.nodes()) return;
  machine_.meet(node, core_->roll().server(node), core_->roll().excluded(node));
  settle();
}

void AsyncQuorumRecord::pay() {
  machine_.retry_owed();
  settle();
}

void AsyncQuorumRecord::settle() { settle(machine_.all()); }

// What has been done to these nodes' machines, or by time.
void AsyncQuorumRecord::settle(NodeSet nodes) {
  // That a reply was given up is known at once, and the node may be asked again.
  for (NodeSet left = task_.hand_over(nodes, core_->now()); left != 0; left = static_cast<NodeSet>(left & (left - 1)))
    core_->node(static_cast<std::size_t>(__builtin_ctz(left))).dispatch();
  if (machine_.owed() != 0) core_->note_owing();
  QuorumEvent event{};
  while (task_.poll_event(event, keeping_.ending(), core_->now())) note(event);
  publish();
  core_->stir(stirred_);
}

void AsyncQuorumRecord::note(QuorumEvent event) {
  switch (event) {
    case QuorumEvent::granted: keeping_.begin_hold(machine_.confirmed_at()); return;
    case QuorumEvent::denied:
    case QuorumEvent::doubted:
      core_->roll().note(machine_);
      return;  // What single nodes said is kept for who asks why.
    case QuorumEvent::renewed: keeping_.doubt_is_over(); return;
    case QuorumEvent::at_risk:
      if (!keeping_.ending()) tell_soon(Keeping::News::at_risk);
      return;
    case QuorumEvent::lost:
      if (!keeping_.ending()) tell_soon(Keeping::News::lost);  // An inner release ends nothing.
      tell_waiters(Status::lock_lost);
      return;
    case QuorumEvent::released: return;
  }
}

// ---- Waiting by push ---------------------------------------------------------------------------------------------

bool AsyncQuorumRecord::woken() const noexcept {
  if (!listens_) return false;
  for (std::size_t node = 0; node < machine_.nodes(); ++node)
    if (waiters_[node] != nullptr && core_->node(node).subscriber().woken(*waiters_[node])) return true;
  return false;
}

ListenSet AsyncQuorumRecord::confirmed() const noexcept {
  ListenSet confirmed = 0;
  if (!listens_) return confirmed;
  for (std::size_t node = 0; node < machine_.nodes(); ++node)
    if (waiters_[node] != nullptr && core_->node(node).subscriber().confirmed(*waiters_[node]))
      confirmed = static_cast<ListenSet>(confirmed | node_bit(node));
  return confirmed;
}

// Nodes whose table is full, or that refuse it, are done without; without any of them it polls.
void AsyncQuorumRecord::listen() {
  if (machine_.kind().announcement == nullptr || listens_) return;
  listens_ = true;
  for (std::size_t node = 0; node < machine_.nodes(); ++node)
    if ((push_refused_ & node_bit(node)) == 0)
      waiters_[node] = core_->node(node).listen(*machine_.kind().announcement, machine_.key(), this);
  task_.life().forget(machine_.all());
}

void AsyncQuorumRecord::stop_listening(bool with_lock) {
  if (!listens_) return;
  listens_ = false;
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    if (waiters_[node] != nullptr) core_->node(node).leave(*waiters_[node], with_lock);
    waiters_[node] = nullptr;
  }
}

// Something came over a subscription.
void AsyncQuorumRecord::hear() {
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    if (waiters_[node] == nullptr || !core_->node(node).subscriber().refused(*waiters_[node])) continue;
    push_refused_ = static_cast<NodeSet>(push_refused_ | node_bit(node));
    core_->node(node).leave(*waiters_[node], false);
    waiters_[node] = nullptr;
  }
  task_.life().forget(static_cast<ListenSet>(~confirmed()));
  if (task_.life().stage() == TaskStage::retry) proceed();
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

Instant AsyncQuorumRecord::renewal_wanted_at() const noexcept {
  const Instant now = core_->now();
  if (!kept() || task_.life().runs(Call::release) || keeping_.too_old(now)) return Instant::max();
  if (!machine_.permitted(core_->roll().config().max_lease)) return Instant::max();
  const Instant due = machine_.renewal_due();
  if (due > now || keeping_.alive(now)) return due;
  const Duration pause = machine_.timing().lock().effective_lease() / liveness_divisor;
  return now + (pause < retry_delay_min ? retry_delay_min : pause);
}

void AsyncQuorumRecord::renew_if_due() {
  const Instant wanted = renewal_wanted_at();
  // At Instant::max() nothing is wanted, whatever the time is.
  if (renewal_waits_ || wanted > core_->now() || wanted == Instant::max()) return;
  const bool turn = !core_->room_is_awaited() && room_is_there();
  if (turn || !task_.life().over()) return renew_now();
  renewal_waits_ = true;
  renewal_until_ = core_->now() + machine_.timing().effective_node_timeout();
  core_->await_room(queued_);
}

void AsyncQuorumRecord::renew_now() {
  settle();  // A grant that has just run out on a node is let go of there before it is asked for anew.
  (void)task_.renew(core_->request_deadline(), core_->now());
  settle();
}

}  // namespace holdfast
