// SPDX-License-Identifier: MIT
#include "holdfast/core/lock_task.hpp"

#include "holdfast/proto/assert.hpp"
#include "task_transitions.hpp"

namespace holdfast {

// ---- Commands ----------------------------------------------------------------------------------------------------

void LockTask::begin_acquire(Instant now, Instant deadline, Instant end, const TaskSettings& settings) noexcept {
  begin(Call::acquire, deadline, settings);
  began_at_ = now;
  end_ = end;
  only_ = now + timeout_min > deadline;
  spread_ = retry_delay_min;
  if (!only_)
    plan_.begin({.deadline = deadline,
                 .max_poll = settings.max_poll,
                 .unknown_poll = settings.unknown_poll,
                 .spread = settings.spread});
}

void LockTask::begin(Call call, Instant deadline, const TaskSettings& settings) noexcept {
  HOLDFAST_ASSERT(over());
  call_ = call;
  stage_ = call == Call::acquire ? TaskStage::attempt : TaskStage::link;
  settings_ = &settings;
  outcome_ = Status::timed_out;  // Of who comes too late to find out anything.
  deadline_ = end_ = deadline;
  until_ = Instant();
  only_ = last_ = true;
  asked_again_ = woken_ = false;
  vain_ = 0;
  wait_told_ = false;
  refused_ = kept_ = busy_ = planned_ = given_up_ = confirmed_ = false;
}

Instant LockTask::poll_timeout(bool woken, ListenSet confirmed) const noexcept {
  switch (stage_) {
    case TaskStage::idle:
    case TaskStage::attempt:
    case TaskStage::asking: break;
    case TaskStage::link:
    case TaskStage::room:
    case TaskStage::answer:
    case TaskStage::confirm:
    case TaskStage::compensation: return until_;
    case TaskStage::retry: return planned_ ? plan_.next(woken, confirmed) : Instant::max();
  }
  return Instant::max();
}

// ---- Stages ------------------------------------------------------------------------------------------------------

TaskAct LockTask::step(const TaskFacts& facts) noexcept {
  for (;;) {
    TaskInput input = TaskInput::none;
    switch (stage_) {
      // The plain way, from stage to stage.
      case TaskStage::attempt: {
        input = read_attempt(facts);
        if (input != TaskInput::go) break;
        const TaskAct act = go_from<TaskStage::attempt>();
        if (facts.listening) return act;  // Otherwise there is nothing to settle.
        [[fallthrough]];
      }
      case TaskStage::link:
        input = read_link(facts);
        if (input != TaskInput::go) break;
        (void)go_from<TaskStage::link>();
        [[fallthrough]];
      case TaskStage::room:
        input = read_room(facts);
        if (input != TaskInput::go) break;
        return go_from<TaskStage::room>();
      case TaskStage::answer: input = read_answer(facts); break;
      default: input = read(facts);
    }
    const TaskTransitionTable::Cell cell =
        task_transition_table.cells[static_cast<int>(stage_)][static_cast<int>(input)];
    HOLDFAST_ASSERT(cell.legal);
    const bool stays = cell.to == stage_;
    if (!stays) {
      enter(cell.to);
      if (facts.witness != nullptr && call_ == Call::acquire) [[unlikely]]
        facts.witness->table->stage(*facts.witness, *this, facts);
    }
    if (cell.act != TaskAct::sleep || stays) return cell.act;
  }
}

// The table says where to, and the compiler looks it up.
template <TaskStage stage>
[[gnu::always_inline]] inline TaskAct LockTask::go_from() noexcept {
  constexpr TaskTransitionTable::Cell cell =
      task_transition_table.cells[static_cast<int>(stage)][static_cast<int>(TaskInput::go)];
  static_assert(cell.legal && cell.to != stage);
  enter(cell.to);
  return cell.act;
}

inline void LockTask::enter(TaskStage stage) noexcept {
  stage_ = stage;
  switch (stage) {
    case TaskStage::idle: status_ = outcome_; break;
    case TaskStage::attempt:
    case TaskStage::answer:
    case TaskStage::confirm: break;
    case TaskStage::link:
    case TaskStage::room: until_ = Instant(); break;
    case TaskStage::asking: refused_ = given_up_ = confirmed_ = false; break;
    case TaskStage::retry: planned_ = false; break;
    case TaskStage::compensation:
      compensated_ = Compensated::no;
      until_ = deadline_;
      break;
  }
}

// How long the call waits for a connection, and for room.
[[gnu::noinline]] bool LockTask::late(const TaskFacts& facts) noexcept {
  const Instant now = facts.now;
  if (until_ == Instant()) {
    const bool for_room = stage_ == TaskStage::room;
    until_ = last_ ? end_ : deadline_;  // Of all calls but an acquire both are the same.
    const auto bound = [&](Instant until) {
      if (until < until_) until_ = until;
    };
    if (call_ == Call::renew) bound(facts.valid_until);
    if (call_ == Call::release && for_room) until_ = facts.valid_until;
    if (!for_room) {
      bound(now + settings_->connect_timeout);
    } else if (!settings_->one_node) {
      bound(now + settings_->room_timeout);
      bound(now + (end_ - now) / 2);  // Who waits for room on one of several servers has time left to hear the others.
    } else if (call_ == Call::acquire && last_) {
      bound(now + settings_->request_timeout);
    }
  }
  return now >= until_;
}

// What the facts mean where the call stands.
inline TaskInput LockTask::read(const TaskFacts& facts) noexcept {
  const Instant now = facts.now;
  switch (stage_) {
    case TaskStage::idle:
    case TaskStage::attempt:  // step() reads these by themselves.
    case TaskStage::link:
    case TaskStage::room:
    case TaskStage::answer: break;
    case TaskStage::asking: return refused_ ? conclude(outcome_, facts) : TaskInput::none;
    case TaskStage::confirm: return read_confirm(facts);
    case TaskStage::retry:
      if (facts.cancelled) return end(Status::cancelled);
      if (facts.link == Link::gone) return TaskInput::end;
      if (!planned_) return TaskInput::none;
      plan_.forget(static_cast<ListenSet>(~facts.confirmed));
      return plan_.due(now, facts.woken, facts.confirmed) ? TaskInput::go : TaskInput::none;
    case TaskStage::compensation:
      if (compensated_ == Compensated::deleted) return end(Status::ok);
      if (facts.cancelled) return end(Status::cancelled);
      return compensated_ != Compensated::no || now >= until_ || facts.link >= Link::absent ? TaskInput::end
                                                                                            : TaskInput::none;
  }
  return TaskInput::none;
}

inline TaskInput LockTask::read_attempt(const TaskFacts& facts) noexcept {
  const Instant now = facts.now;
  if (facts.cancelled) return end(Status::cancelled);
  if (now.never()) return end(Status::system_error);  // The clock cannot be read.
  if (now >= end_)
    return TaskInput::end;  // The process stood still. What the attempt before this one found is the answer.
  last_ = only_ || plan_.last(now);
  asked_again_ = kept_ = false;
  woken_ = facts.woken;
  attempt_at_ = now;
  if (!only_) plan_.begin_attempt(now, facts.confirmed);
  return TaskInput::go;
}

inline TaskInput LockTask::read_link(const TaskFacts& facts) noexcept {
  const bool holds = call_ == Call::renew || call_ == Call::release;
  if (holds && !facts.held) return TaskInput::skip;  // Refused without a word to the server, connected or not.
  if (facts.cancelled) [[unlikely]]
    return cancel();
  if (facts.link == Link::ready) [[likely]]
    return TaskInput::go;
  if (facts.link == Link::coming && !late(facts)) return TaskInput::none;
  if (call_ == Call::release) return TaskInput::skip;  // Its compensation waits for the next connection.
  return conclude(facts.link_failure == Status::ok ? Status::not_connected : facts.link_failure, facts);
}

inline TaskInput LockTask::read_room(const TaskFacts& facts) noexcept {
  const bool holds = call_ == Call::renew || call_ == Call::release;
  if (holds && !facts.held) return TaskInput::skip;
  if (facts.cancelled) return cancel();
  if (facts.link != Link::ready) return TaskInput::again;
  if (facts.room) [[likely]]
    return TaskInput::go;
  if (!late(facts)) return TaskInput::none;
  if (call_ == Call::release || !settings_->one_node) return TaskInput::skip;
  return conclude(Status::too_many_requests, facts);
}

inline TaskInput LockTask::read_answer(const TaskFacts& facts) noexcept {
  if (refused_) return conclude(outcome_, facts);  // By handle_kept().
  if (given_up_ && facts.waiting) return conclude(outcome_, facts);
  if (!facts.waiting) {
    // What was kept is granted as long as it is held. Its machine may have come to doubt it meanwhile.
    const Status answer = kept_ && facts.held ? Status::ok : facts.answer;
    if (answer != Status::ok || facts.cancelled) [[unlikely]]
      return conclude(answer, facts);
    outcome_ = Status::ok;
    if (facts.unconfirmed) [[unlikely]]
      return begin_confirm(facts);
    return call_ != Call::acquire || kept_ || facts.kept ? TaskInput::end : TaskInput::granted;
  }
  if (!facts.cancelled && facts.now < until_) return TaskInput::none;
  outcome_ = facts.cancelled ? Status::cancelled : Status::timed_out;
  given_up_ = true;
  return TaskInput::unwanted;
}

// The time counts from before the replicas are asked. It ends where most of the hold's would be over before it is of use.
[[gnu::noinline]] TaskInput LockTask::begin_confirm(const TaskFacts& facts) noexcept {
  const Duration half = (facts.valid_until - facts.now) / 2;
  until_ = facts.now + (half < settings_->acks_wait ? half : settings_->acks_wait);
  return TaskInput::confirm;
}

// Until the replicas have said yes, what was granted does not count: it is let go of in every other case.
[[gnu::noinline]] TaskInput LockTask::read_confirm(const TaskFacts& facts) noexcept {
  if (facts.cancelled) {
    outcome_ = Status::cancelled;
  } else if (!facts.held || (facts.waiting && facts.now >= until_)) {
    outcome_ = Status::timed_out;
  } else if (facts.waiting) {
    return TaskInput::none;
  } else {
    outcome_ = facts.answer;
    confirmed_ = outcome_ == Status::ok;
  }
  refused_ = !confirmed_;
  return confirmed_ ? TaskInput::go : TaskInput::let_go;
}

// Nothing is on its way. What is to be released is let go of all the same.
TaskInput LockTask::cancel() noexcept {
  outcome_ = Status::cancelled;
  return call_ == Call::release ? TaskInput::let_go : TaskInput::end;
}

TaskInput LockTask::end(Status status) noexcept {
  outcome_ = status;
  return TaskInput::end;
}

// The call's request, or its attempt, has this outcome.
[[gnu::noinline]] TaskInput LockTask::conclude(Status status, const TaskFacts& facts) noexcept {
  outcome_ = status;
  const bool asked = stage_ == TaskStage::asking || stage_ == TaskStage::answer;
  // It had not left: once more, on the next connection, or when what filled the send buffer has left. What the keeper refuses
  // was granted.
  const bool answered = stage_ == TaskStage::answer;
  const bool unsent = answered ? !refused_ && (status == Status::not_connected || status == Status::too_many_requests)
                               : status == Status::not_connected;
  const bool may_ask_again =
      asked && settings_->one_node && unsent && !asked_again_ && facts.link < Link::absent && !facts.cancelled;
  switch (call_) {
    case Call::question:
    case Call::renew:
      if (may_ask_again && facts.now < deadline_) {
        asked_again_ = true;
        return TaskInput::again;
      }
      [[fallthrough]];
    case Call::none: return TaskInput::end;  // Of no call nobody asks.
    case Call::release: {
      // The compensation is the first thing on the next connection: the server's word is worth waiting for. A key that was
      // still there and ours makes it a plain release.
      const bool gone = status == Status::not_connected || status == Status::transport_closed;
      return settings_->one_node && gone && facts.released && facts.link != Link::gone ? TaskInput::await
                                                                                       : TaskInput::end;
    }
    case Call::acquire: break;
  }
  if (facts.cancelled) {
    outcome_ = Status::cancelled;
    // What was granted when the cancel came is wanted by nobody any more.
    return status == Status::ok ? TaskInput::let_go : TaskInput::end;
  }
  if (may_ask_again) {
    asked_again_ = true;
    return TaskInput::again;
  }
  // An attempt that was on its way when the wait was over was the last one.
  if (last_ || facts.now >= deadline_ || facts.link == Link::gone || !worth_waiting(status)) return TaskInput::end;
  busy_ = status == Status::lock_busy;
  return TaskInput::retry;
}

// ---- Inputs ------------------------------------------------------------------------------------------------------

void LockTask::handle_asked(Status status, Instant until) noexcept {
  HOLDFAST_ASSERT(stage_ == TaskStage::asking);
  refused_ = status != Status::ok;
  until_ = asked_again_ ? end_ : until;  // A second try has no time of its own.
  if (refused_)
    outcome_ = status;
  else
    stage_ = task_transition_table.cells[static_cast<int>(TaskStage::asking)][static_cast<int>(TaskInput::go)].to;
}

void LockTask::handle_kept(Status status) noexcept {
  HOLDFAST_ASSERT(stage_ == TaskStage::answer);
  kept_ = true;
  refused_ = status != Status::ok;
  if (refused_) outcome_ = status;
}

void LockTask::plan(Instant now, ListenSet confirmed, std::int64_t remaining, bool alone,
                    std::uint16_t random) noexcept {
  if (stage_ != TaskStage::retry) return;
  if (settings_->spread == WaitSpread::whole) plan_.set_floor(attempt_at_ + drawn(retry_delay_min, random));
  // The next try is delayed at random and more and more, so that those who split the votes between them do not do so for ever.
  // So is that of a waiter that was woken in vain several times: a release wakes many, and one gets the lock.
  bool vain = busy_ && woken_;
  if (vain && vain_ < vain_wakes_free) {
    ++vain_;
    vain = false;
  }
  if (!alone && !vain) {
    spread_ = retry_delay_min;
  } else {
    const Duration most = alone ? retry_delay_max : vain_delay_max;
    spread_ = spread_ * 2 < most ? spread_ * 2 : most;
    plan_.set_floor(now + drawn(spread_, random));
  }
  plan_.plan(now, busy_, confirmed, remaining, random);
  planned_ = true;
}

void LockTask::bound_floor() noexcept {
  plan_.set_floor(earlier(plan_.floor(), later(deadline_, attempt_at_ + retry_delay_min)));
}

void LockTask::plan_anew(Instant now, ListenSet confirmed, std::int64_t remaining, std::uint16_t random) noexcept {
  if (stage_ == TaskStage::retry && planned_) plan_.plan(now, busy_, confirmed, remaining, random);
}

void LockTask::handle_compensated(bool deleted) noexcept {
  if (stage_ != TaskStage::compensation) return;
  compensated_ = deleted ? Compensated::deleted : Compensated::answered;
}

Duration LockTask::drawn(Duration most, std::uint16_t random) noexcept {
  return retry_delay_min + most * random / UINT16_MAX;
}

void LockTask::tell_stage(Witness& witness, LockTask& task, const TaskFacts& facts) noexcept {
  const bool waits = task.stage_ == TaskStage::retry && task.busy_ && !task.wait_told_;
  if (!waits && task.stage_ != TaskStage::idle) return;
  const Seen what = waits ? Seen::wait_began : task.wait_told_ ? Seen::acquired_late : Seen::acquired;
  task.wait_told_ = task.wait_told_ || waits;
  witness.tell(what, facts.subject, waits ? Status::ok : task.status_, (facts.now - task.began_at_).count());
}

void LockTask::abandon(Status status) noexcept {
  if (!over()) status_ = outcome_ = status;
  stage_ = TaskStage::idle;
}

bool LockTask::invariants() const noexcept {
  if (stage_ == TaskStage::idle) return true;
  const bool acquires = call_ == Call::acquire;
  if (call_ == Call::none) return false;
  if ((stage_ == TaskStage::attempt || stage_ == TaskStage::retry) && !acquires) return false;
  if (stage_ == TaskStage::confirm && !confirms()) return false;
  if (stage_ == TaskStage::retry && (only_ || last_)) return false;
  if (stage_ == TaskStage::compensation && call_ != Call::release) return false;
  if (end_ < deadline_) return false;
  return acquires || (only_ && last_);
}

}  // namespace holdfast
