// SPDX-License-Identifier: MIT
#include "holdfast/async_lock.hpp"

#include "async_client_core.hpp"

namespace holdfast {

AsyncLock::AsyncLock(AsyncClient& client, const LockKind& kind, Key key, const LockTiming& timing)
    : AsyncHold(*client.core_), core_(client.core_), machine_(kind) {
  configuration_ = machine_.configure(key, timing);
  automatic_lease_ = timing.automatic();
  core_->enter(sibling_);
}

AsyncLock::~AsyncLock() {
  if (orphaned()) {
    core_->leave_to_parent();
  } else {
    (void)core_->begin();
    cancel();
    if (machine_.held(core_->now()) || letting_go_) {
      while (machine_.count() > 1) machine_.unwind_one();
      (void)post_release();
    }
    if (!pay()) {
      core_->node().read_arrived();
      (void)pay();  // Without a place its lease ends it.
    }
    stop_listening(false);
    stop_keeping();
    core_->node().session().abandon(this, core_->now());
    core_->schedule_turn();
  }
  core_->sleep(*this, Instant::max());
}

// ---- Starting ----------------------------------------------------------------------------------------------------

Status AsyncLock::may_start() const noexcept {
  if (configuration_ != Status::ok) return configuration_;
  if (orphaned()) return Status::forked;
  if (!core_->node().configured()) return Status::not_connected;
  return doing_ == Doing::nothing ? Status::ok : Status::too_many_requests;
}

void AsyncLock::begin(Doing doing, Completion& completion, Instant deadline) {
  doing_ = doing;
  completion_ = &completion;
  queued_.unlink();  // What is owed goes before what is asked for now.
  deadline_ = deadline;
  asked_again_ = false;
  only_ = doing != Doing::acquire;
  last_ = only_;
}

void AsyncLock::start_acquire(Duration wait, Completion& completion) {
  const Instant now = core_->begin();
  Status refused = may_start();
  if (refused == Status::ok && wait < Duration::zero()) refused = Status::invalid_argument;
  if (refused != Status::ok) return core_->complete(completion, refused);
  begin(Doing::acquire, completion, now + wait);
  only_ = now + timeout_min > deadline_;
  push_refused_ = false;
  busy_for_ = remaining_unknown;
  if (!only_) plan_.begin({.deadline = deadline_, .max_poll = core_->node().config().max_poll});
  machine_.handle_timeout(now);
  if (machine_.has_output()) settle();
  attempt();
}

void AsyncLock::start_renew(Duration timeout, Completion& completion) {
  const Instant now = core_->begin();
  Status refused = may_start();
  if (refused == Status::ok && timeout < Duration::zero()) refused = Status::invalid_argument;
  if (refused != Status::ok) return core_->complete(completion, refused);
  begin(Doing::renew, completion,
        now + (timeout == Duration::zero() ? core_->node().config().request_timeout : timeout));
  proceed();
}

void AsyncLock::start_query(Duration& remaining, Completion& completion) {
  const Instant now = core_->begin();
  Status refused = may_start();
  machine_.handle_timeout(now);
  if (machine_.has_output()) settle();
  if (refused == Status::ok && now == Instant::max()) refused = Status::system_error;
  if (refused != Status::ok) return core_->complete(completion, refused);
  begin(Doing::query, completion, now + core_->node().config().request_timeout);
  remaining_out_ = &remaining;
  proceed();
}

void AsyncLock::start_release(Completion& completion) {
  const Instant now = core_->begin();
  if (const Status refused = may_start(); refused != Status::ok) return core_->complete(completion, refused);
  begin(Doing::release, completion, now + core_->node().config().request_timeout);
  if (machine_.count() <= 1) {
    stop_keeping();
    forget_untold();
    letting_go_ = machine_.held(now);
    publish();  // Not held from here on, whatever the connection does.
  }
  proceed();
}

Status AsyncLock::post_release() {
  const Instant now = core_->begin();
  if (const Status refused = may_start(); refused != Status::ok) return refused;
  AsyncNode& node = core_->node();
  if (!node.room(true)) node.read_arrived();
  const bool outermost = machine_.count() <= 1;
  const Instant deadline = now + node.config().request_timeout;
  if (outermost) stop_keeping();
  const Status status = outermost ? machine_.release(node.session().identity().native_delete, true, now, deadline)
                                  : machine_.step_down(true, now, deadline);
  letting_go_ = false;
  settle();
  if (outermost) forget_untold();  // Nobody is told behind a release: its status says what it found.
  if (outermost && status == Status::ok) tell_waiter(Status::ok);
  rest();
  core_->schedule_turn();
  return status == Status::ok && owes() ? Status::too_many_requests : status;
}

// ---- What is in progress -----------------------------------------------------------------------------------------

// One try of an acquire.
void AsyncLock::attempt() {
  const Instant now = core_->now();
  if (now == Instant::max()) return finish(Status::system_error);  // The clock cannot be read.
  last_ = only_ || plan_.last(now);
  was_woken_ = woken();
  if (!only_) plan_.begin_attempt(now, confirmed());
  if (waiter_ != nullptr) core_->node().subscriber().begin_try(*waiter_);
  proceed();
}

// As far as it goes: a connection, room on it, the request. What is owed goes first.
void AsyncLock::proceed() {
  AsyncNode& node = core_->node();
  if (doing_ == Doing::nothing || step_ == Step::compensation) {
    (void)pay();
    return rest();
  }
  const bool held_only = doing_ == Doing::renew || doing_ == Doing::release;
  if (held_only && !machine_.held(core_->now())) {
    // Refused without a word to the server, connected or not.
  } else if (!node.ready()) {
    if (node.connecting()) return wait_for(Step::connection);
    if (doing_ != Doing::release)
      return conclude(node.failure() == Status::ok ? Status::not_connected : node.failure());
  } else {
    const bool turn = step_ == Step::room || !core_->room_is_awaited();
    if (!turn || !pay() || !node.room(true)) return wait_for(Step::room);
  }
  step_ = Step::reply;
  const Status status = ask();
  settle();  // Also of a refusal: a loss that it found, and what is to be taken back.
  if (status != Status::ok) return conclude(status);
  advance();
  core_->schedule_turn();
}

// The machine has a request then, or its refusal is the outcome.
Status AsyncLock::ask() {
  const Instant now = core_->now();
  const Instant deadline = now + core_->node().config().request_timeout;
  switch (doing_) {
    case Doing::nothing: break;
    case Doing::acquire: return ask_to_acquire();
    case Doing::renew: return machine_.renew(now, deadline_);
    case Doing::release: {
      letting_go_ = false;
      if (machine_.count() > 1) return machine_.step_down(false, now, deadline);
      return machine_.release(core_->node().session().identity().native_delete, false, now, deadline);
    }
    case Doing::query: return core_->node().ask_remaining(machine_, this, question_ += 2);
  }
  return Status::ok;
}

Status AsyncLock::ask_to_acquire() {
  const Instant now = core_->now();
  // Not cut short by the end of the wait: a reply that comes a little later is an answer, a deadline is none.
  const Instant deadline = earlier(now + core_->node().config().request_timeout, acquire_end());
  const LockKind& kind = machine_.kind();
  if (kind.reentrant && machine_.held(now)) return machine_.reenter(now, deadline);
  Token token;
  const Status status = core_->node().draw_token(kind.token, token);
  return status == Status::ok ? machine_.acquire(token, now, deadline) : status;
}

Instant AsyncLock::acquire_end() const noexcept { return deadline_ + core_->node().config().request_timeout; }

Instant AsyncLock::waits_until() const noexcept {
  switch (doing_) {
    case Doing::nothing: return Instant::max();
    case Doing::acquire: return last_ ? acquire_end() : deadline_;
    case Doing::renew: return earlier(deadline_, machine_.valid_until());
    case Doing::release: return step_ == Step::room ? machine_.valid_until() : deadline_;
    case Doing::query: return deadline_;
  }
  return Instant::max();
}

void AsyncLock::wait_for(Step step) {
  step_ = step;
  if (step == Step::connection) core_->await_connection(queued_);
  if (step == Step::room) core_->await_room(queued_);
  rest();
}

// The answer to what was asked is there.
void AsyncLock::advance() {
  if (step_ != Step::reply || machine_.waiting() || doing_ == Doing::query) return;
  conclude(machine_.status());
}

void AsyncLock::conclude(Status status) {
  switch (doing_) {
    case Doing::nothing: return;
    case Doing::acquire: return conclude_acquire(status);
    case Doing::release: return conclude_release(status);
    case Doing::renew:
      if (asks_again(status)) return wait_for(Step::connection);
      return finish(status);
    case Doing::query: return finish(status);
  }
}

// Nothing had been sent: once more, on the next connection.
bool AsyncLock::asks_again(Status status) noexcept {
  if (status != Status::not_connected || asked_again_ || !core_->node().connecting()) return false;
  asked_again_ = true;
  return true;
}

void AsyncLock::conclude_acquire(Status status) {
  if (status == Status::ok) return finish(machine_.count() == 1 ? start_keeping() : status);
  if (asks_again(status)) return wait_for(Step::connection);
  AsyncNode& node = core_->node();
  // An attempt that was on its way when the wait was over was the last one. Closed, or not yet told where to connect: nobody will.
  const bool over = last_ || core_->now() >= deadline_;
  if (over || !node.wanted() || !worth_waiting(status)) return finish(status);
  const bool busy = status == Status::lock_busy;
  if (busy) {
    busy_for_ = machine_.busy_for();
    const bool elsewhere = waiter_ != nullptr && awaited_place_ != machine_.awaited_place();
    if (waiter_ != nullptr && !elsewhere) node.subscriber().end_try(*waiter_);
    if (elsewhere) stop_listening(false);  // The name that is free now is another waiter's.
    if (waiter_ == nullptr) listen();
  }
  plan_.plan(core_->now(), busy, confirmed(), busy_for_, node.random());
  wait_for(Step::retry);
}

void AsyncLock::conclude_release(Status status) {
  const bool gone = status == Status::not_connected || status == Status::transport_closed;
  if (gone && machine_.count() == 0 && core_->node().wanted()) {
    // The compensation is the first thing on the next connection: the server's word is worth waiting for. A key that
    // was still there and ours makes it a plain release.
    release_status_ = status;
    return wait_for(Step::compensation);
  }
  finish(status);
}

void AsyncLock::finish(Status status) {
  const bool released = doing_ == Doing::release && machine_.count() == 0;
  Completion& completion = *completion_;
  stop_listening(status == Status::ok);
  // A renewal, an acquire once more and a step down extend the hold; anything else says nothing new.
  if (place_ != nullptr) core_->confirm(*place_, machine_.confirmed_at());
  if (released) forget_untold();  // A loss that only the release found: its status says so.
  completion_ = nullptr;
  doing_ = Doing::nothing;
  step_ = Step::nothing;
  queued_.unlink();
  publish();
  rest();
  if (released) tell_waiter(status == Status::lock_lost ? status : Status::ok);
  core_->complete(completion, status);
}

// When time alone gives us something to do, or room for what is owed.
void AsyncLock::rest() {
  Instant at = Instant::max();
  if (owes() && !queued_.linked() && (doing_ == Doing::nothing || step_ == Step::compensation))
    core_->await_room(queued_);
  if (place_ == nullptr && watched()) at = machine_.poll_timeout();  // Else the schedule sees to it.
  switch (step_) {
    case Step::nothing:
    case Step::reply: break;
    case Step::connection:
    case Step::room: at = earlier(at, waits_until()); break;
    case Step::retry: at = earlier(at, plan_.next(woken(), confirmed())); break;
    case Step::compensation: at = earlier(at, deadline_); break;
  }
  core_->sleep(*this, at);
}

void AsyncLock::wake(Instant now) {
  machine_.handle_timeout(now);
  settle();
  switch (step_) {
    case Step::nothing:
    case Step::reply: break;
    case Step::connection:
    case Step::room: {
      if (now < waits_until()) break;
      queued_.unlink();
      if (doing_ == Doing::renew && !machine_.held(now)) return proceed();
      const bool unconnected = step_ == Step::connection;
      if (doing_ == Doing::release) {
        step_ = Step::reply;
        const Status status = ask();  // Refused for want of a connection; its compensation waits for the next one.
        settle();
        release_status_ = status == Status::ok ? machine_.status() : status;
        return finish(release_status_);
      }
      if (!unconnected) return finish(Status::too_many_requests);
      return finish(core_->node().failure() == Status::ok ? Status::not_connected : core_->node().failure());
    }
    case Step::retry:
      if (plan_.due(now, woken(), confirmed())) return attempt();
      break;
    case Step::compensation:
      if (now >= deadline_) return finish(release_status_);
      break;
  }
  rest();
}

void AsyncLock::cancel_doing() {
  const Completion* const completion = completion_;
  switch (step_) {
    case Step::nothing: break;
    case Step::reply:
      last_ = true;
      core_->node().give_up(this, Status::cancelled);  // Which is answered, and compensated behind.
      if (completion_ != completion) break;
      // Nothing was in flight for it: its request waits to be sent, or the answer is being dealt with.
      finish(Status::cancelled);
      break;
    case Step::connection:
    case Step::room:
      queued_.unlink();
      if (doing_ == Doing::release) {
        finish(Status::cancelled);
        (void)post_release();
        break;
      }
      finish(Status::cancelled);
      break;
    case Step::retry:
    case Step::compensation: finish(Status::cancelled); break;
  }
}

// ---- The machine's mouth and ear ---------------------------------------------------------------------------------

void AsyncLock::handle_reply(const Reply& reply) {
  if (reply.tag.operation == Operation::query) return take_query(reply);
  // That of an earlier hold says nothing of this one.
  const bool compensated =
      reply.tag.operation == Operation::compensate && reply.tag.generation == machine_.generation();
  const bool deleted = compensated && reply.outcome == Status::ok && reply.value.is_integer(1);
  machine_.handle_reply(reply, core_->now());
  if (machine_.only_said_what_was_asked())
    publish();
  else
    settle();
  if (step_ == Step::compensation && compensated) return finish(deleted ? Status::ok : release_status_);
  advance();
}

void AsyncLock::take_query(const Reply& reply) {
  if (doing_ == Doing::query && step_ == Step::reply && reply.tag.generation == question_) {
    Status status = reply.outcome;
    if (status == Status::ok && !reply.value.is(RespKind::integer)) {
      status = Status::protocol_error;
      core_->node().fail(status, "a reply of another shape than asked for");
    }
    if (status == Status::ok) {
      const std::int64_t milliseconds = reply.value.integer();
      constexpr std::int64_t milliseconds_max = Duration::max().count() / 1'000'000;
      *remaining_out_ = milliseconds == -1 || milliseconds > milliseconds_max ? remaining_unlimited
                        : milliseconds <= 0                                   ? Duration::zero()
                                                                              : std::chrono::milliseconds(milliseconds);
    }
    return finish(status);
  }
  // Of an attempt whose refusal did not tell the remaining time.
  if (reply.outcome != Status::ok || !reply.value.is(RespKind::integer)) return;
  if (reply.tag.generation != 2 * machine_.generation()) return;
  busy_for_ = reply.value.integer();
  if (step_ != Step::retry) return;
  plan_.plan(core_->now(), true, confirmed(), busy_for_, core_->node().random());
  rest();
}

// After every input: what the machine has to say.
void AsyncLock::settle() {
  if (machine_.wants_request()) {
    const bool acquires = machine_.state() == LockState::acquiring;
    core_->node().submit(machine_, this);
    // The first try behind a wake-up is likely to be granted, and asks for nothing else.
    if (acquires && waiter_ != nullptr && !was_woken_ && !machine_.kind().tells_remaining)
      (void)core_->node().ask_remaining(machine_, this, 2 * machine_.generation());
  }
  (void)pay();
  for (LockEvent event = machine_.poll_event(); event != LockEvent::none; event = machine_.poll_event())
    switch (event) {
      case LockEvent::at_risk: note_told(Told::at_risk); break;
      case LockEvent::renewed: doubt_is_over(); break;
      case LockEvent::lost:
        stop_keeping();
        note_told(Told::lost);
        tell_waiter(Status::lock_lost);
        break;
      case LockEvent::protocol_doubt:
        core_->node().fail(Status::protocol_error, "a reply of another shape than asked for");
        break;
      case LockEvent::none:
      case LockEvent::granted:
      case LockEvent::denied:
      case LockEvent::unclear:
      case LockEvent::released: break;
    }
  publish();
}

// False: there is no place for what is owed.
bool AsyncLock::pay() {
  Session& session = core_->node().session();
  if (!owes()) return true;
  if (!session.may_compensate()) return false;
  ReplyTag tag;
  Compensation compensation;
  (void)machine_.poll_compensation(tag, compensation);
  tag.requester = this;
  (void)session.compensate(tag, compensation);
  core_->schedule_turn();
  return true;
}

// The schedule says that it is not ours any more, or that its time has passed.
void AsyncLock::lose() {
  machine_.disown(core_->now());
  settle();
  stop_keeping();
  rest();
}

// The schedule could not renew it.
void AsyncLock::doubt() {
  if (!letting_go_) risky_from_.store(0);
  note_told(Told::at_risk);
}

// ---- Waiting by push ---------------------------------------------------------------------------------------------

bool AsyncLock::woken() const noexcept { return waiter_ != nullptr && core_->node().subscriber().woken(*waiter_); }

ListenSet AsyncLock::confirmed() const noexcept {
  return waiter_ != nullptr && core_->node().subscriber().confirmed(*waiter_) ? 1 : 0;
}

void AsyncLock::listen() {
  if (machine_.kind().announcement == nullptr || push_refused_) return;
  awaited_place_ = machine_.awaited_place();
  waiter_ = core_->node().listen(*machine_.kind().announcement, machine_.awaited());
  if (waiter_ == nullptr) return;  // The table is full: this one polls.
  plan_.forget(1);
  core_->await_message(listening_);
}

void AsyncLock::stop_listening(bool with_lock) {
  listening_.unlink();
  if (waiter_ == nullptr) return;
  core_->node().leave(*waiter_, with_lock);
  waiter_ = nullptr;
}

// Something came over the subscription.
void AsyncLock::hear() {
  if (core_->node().subscriber().refused(*waiter_)) {
    push_refused_ = true;
    stop_listening(false);
    if (step_ == Step::retry) plan_.plan(core_->now(), true, 0, busy_for_, core_->node().random());  // It polls now.
  }
  if (confirmed() == 0) plan_.forget(1);
  if (step_ != Step::retry) return;
  if (plan_.due(core_->now(), woken(), confirmed())) return attempt();
  rest();
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

Status AsyncLock::start_keeping() {
  stop_keeping();
  begin_hold(machine_.confirmed_at());
  const bool kept = keep_.keep == Keep::always || (keep_.keep == Keep::automatic && automatic_lease_);
  if (!kept) return Status::ok;
  place_ = core_->keep({.holder = this,
                        .kind = &machine_.kind(),
                        .key = machine_.key(),
                        .token = &machine_.token(),
                        .lease = machine_.timing().lease,
                        .validity = machine_.validity(),
                        .confirmed_at = machine_.confirmed_at(),
                        .valid_until = machine_.valid_until()});
  if (place_ != nullptr) return Status::ok;
  // Nobody would keep it alive: let go of.
  (void)machine_.release(core_->node().session().identity().native_delete, true, core_->now(), Instant::max());
  settle();
  return Status::too_many_requests;
}

void AsyncLock::stop_keeping() noexcept {
  if (place_ != nullptr) core_->stop_keeping(*place_);
  place_ = nullptr;
}

void AsyncLock::renewed(Instant asked_at) noexcept {
  machine_.confirm(asked_at);
  doubt_is_over();
  publish();
}

}  // namespace holdfast
