// SPDX-License-Identifier: MIT
#include "holdfast/core/lock_machine.hpp"

#include "holdfast/proto/assert.hpp"
#include "lock_transitions.hpp"

namespace holdfast {

namespace {

[[gnu::noinline]] Duration validity_of(const LockTiming& timing) noexcept {
  return timing.effective_lease() - timing.effective_drift();
}

[[gnu::noinline]] std::uint32_t lease_milliseconds(const LockTiming& timing) noexcept {
  return static_cast<std::uint32_t>(whole_milliseconds(timing.effective_lease()).count());
}

// The reply was given up by the session, which compensates what may have run.
bool given_up(Status outcome) noexcept {
  return outcome == Status::timed_out || outcome == Status::transport_closed || outcome == Status::cancelled;
}

// A script that the server does not know is our business. That it was read too late to ask with its text is the caller's: the
// time is over.
Status refusal(const Reply& reply, RequestForm form) noexcept {
  return reply.outcome == Status::no_script && form == RequestForm::by_sha ? Status::timed_out : reply.outcome;
}

bool refused_native(RequestForm form, Status outcome) noexcept {
  return (form == RequestForm::delex || form == RequestForm::delifeq) &&
         (outcome == Status::unknown_command || outcome == Status::no_permission);
}

}  // namespace

inline void LockMachine::move(LockInput input) noexcept {
  const std::uint8_t next = lock_transition_table.next[static_cast<int>(state_)][static_cast<int>(input)];
  HOLDFAST_ASSERT(next != LockTransitionTable::illegal);
  state_ = static_cast<LockState>(next);
}

inline void LockMachine::push_event(LockEvent event) noexcept {
  events_ = static_cast<std::uint16_t>(events_ | event_bit(event));
}

// The generation is over: what is still on its way for it counts for nothing.
inline void LockMachine::end_hold() noexcept {
  ++generation_;
  valid_until_ = Instant();
  renewal_in_flight_ = false;
  wanted_ = nothing;
  compensation_.count = 0;
}

// Confirmed by a request made then.
inline void LockMachine::raise(Instant asked_at, Instant until) noexcept {
  move(LockInput::renewed);
  valid_until_ = later(valid_until_, until);
  confirmed_at_ = later(confirmed_at_, asked_at);
  retry_renewal_at_ = Instant();
  events_ = static_cast<std::uint16_t>(events_ & ~event_bit(LockEvent::at_risk));  // The doubt is over.
}

ByteView LockMachine::partner_token() const noexcept {
  if (argument_ == 0) return {};
  const auto* const partner = reinterpret_cast<const LockMachine*>(reinterpret_cast<const char*>(this) + argument_);
  return partner->held(asked_at_) ? partner->token_.bytes() : ByteView();
}

// ---- Commands ----------------------------------------------------------------------------------------------------

Status LockMachine::configure(Key key, const LockTiming& timing) noexcept {
  if (!key.valid() || !timing.valid()) return Status::invalid_argument;
  if (state_ != LockState::idle) return Status::already_held;
  std::memmove(key_, key.bytes().data(), key.bytes().size());
  key_size_ = static_cast<std::uint16_t>(key.bytes().size());
  compensation_ = {.kind = kind_, .key = this->key(), .token = &token_, .count = 0, .lease_milliseconds = 0};
  set_timing(timing);
  return Status::ok;
}

void LockMachine::set_timing(const LockTiming& timing) noexcept {
  validity_ = validity_of(timing);
  compensation_.lease_milliseconds = lease_milliseconds(timing);
}

// What extends the hold asks for this, or for what it has.
[[gnu::noinline]] void LockMachine::ask_for(const LockTiming* timing) noexcept {
  raised_milliseconds_ = 0;
  if (timing == nullptr || timing->effective_lease() <= lease()) return;
  // As LockTiming::raised_by() says, in fewer bytes.
  const Duration validity = validity_of(*timing);
  raised_milliseconds_ = lease_milliseconds(*timing);
  raised_validity_ = validity > validity_ ? validity : validity_;
}

// It was confirmed.
[[gnu::noinline]] void LockMachine::take_raised() noexcept {
  if (raised_milliseconds_ == 0) return;
  compensation_.lease_milliseconds = raised_milliseconds_;
  validity_ = raised_validity_;
}

Status LockMachine::acquire(const Token& token, Instant now, Instant deadline, const LockTiming* timing) noexcept {
  if (!configured()) return Status::invalid_argument;
  if (deadline <= now) return now.never() ? Status::system_error : Status::timed_out;  // No clock, or too late.
  if (state_ == LockState::acquiring || state_ == LockState::held || state_ == LockState::at_risk)
    return Status::already_held;
  if ((state_ == LockState::releasing && !posted_) || step_in_flight_ || compensation_wanted_)
    return Status::too_many_requests;
  if (count_ != 0) return Status::lock_lost;
  HOLDFAST_ASSERT(wanted_ == nothing && !token.empty());
  move(LockInput::acquire);
  ++generation_;
  if (timing != nullptr) set_timing(*timing);
  raised_milliseconds_ = 0;
  if (!kind_->queues || facts_.place == 0) token_ = token;
  asked_at_ = now;
  deadline_ = deadline;
  form_ = RequestForm::by_sha;
  posted_ = false;
  loss_untold_ = false;
  facts_ = {.place = facts_.place};
  wanted_ = Operation::acquire;
  return Status::ok;
}

Status LockMachine::renew(Instant now, Instant deadline, const LockTiming* timing) noexcept {
  handle_timeout(now);
  if (!held(now)) return loss_untold_ ? Status::lock_lost : Status::not_held;
  if (renewal_in_flight_ || step_in_flight_ || wanted_ != nothing) return Status::too_many_requests;
  ask_for(timing);
  asked_at_ = now;
  form_ = RequestForm::by_sha;
  deadline_ = deadline;
  wanted_ = Operation::renew;
  return Status::ok;
}

Status LockMachine::start_step(std::uint32_t target, Instant now, Instant deadline) noexcept {
  HOLDFAST_ASSERT(kind_->reentrant && target != 0);
  asked_at_ = now;
  // Whatever is not known by then is lost.
  deadline_ = earlier(deadline, valid_until_);
  form_ = RequestForm::by_sha;
  posted_ = false;
  raised_milliseconds_ = 0;
  step_target_ = target;
  wanted_ = Operation::step;
  return Status::ok;
}

Status LockMachine::reenter(Instant now, Instant deadline, const LockTiming* timing) noexcept {
  handle_timeout(now);
  if (!held(now)) return count_ != 0 ? Status::lock_lost : Status::not_held;
  if (renewal_in_flight_ || step_in_flight_ || wanted_ != nothing) return Status::too_many_requests;
  if (count_ == count_max) return Status::invalid_argument;
  const Status status = start_step(count_ + 1, now, deadline);
  ask_for(timing);
  return status;
}

Status LockMachine::step_down(bool posted, Instant now, Instant deadline) noexcept {
  HOLDFAST_ASSERT(count_ > 1);
  handle_timeout(now);
  if (!held(now)) return answer_unheld();
  if (renewal_in_flight_ || step_in_flight_ || wanted_ != nothing) return Status::too_many_requests;
  --count_;
  if (!posted) return start_step(count_, now, deadline);
  compensation_.count = count_;
  compensation_wanted_ = true;
  count_unsure_ = true;
  return Status::ok;
}

// What a release of something that is not held any more says. A lost reentrant hold is unwound by it.
Status LockMachine::answer_unheld() noexcept {
  const bool lost = loss_untold_ || count_ != 0;
  loss_untold_ = false;
  if (count_ != 0) --count_;
  return lost ? Status::lock_lost : Status::not_held;
}

Status LockMachine::forget_loss() noexcept {
  if (valid_until_ != Instant()) return Status::already_held;
  const bool lost = loss_untold_ || count_ != 0;
  loss_untold_ = false;
  count_ = 0;
  return lost ? Status::ok : Status::not_held;
}

Status LockMachine::release(NativeDelete native, bool posted, Instant now, Instant deadline) noexcept {
  handle_timeout(now);
  if (!held(now)) return answer_unheld();
  HOLDFAST_ASSERT(!step_in_flight_);
  move(LockInput::release);
  end_hold();
  count_ = 0;
  deadline_ = deadline;
  posted_ = posted;
  form_ = posted ? RequestForm::by_text : RequestForm::by_sha;
  if (kind_->native_release && native == NativeDelete::delex) form_ = RequestForm::delex;
  if (kind_->native_release && native == NativeDelete::delifeq) form_ = RequestForm::delifeq;
  wanted_ = Operation::release;
  return Status::ok;
}

void LockMachine::forget() noexcept {
  end_hold();
  state_ = LockState::idle;
  status_ = Status::not_held;
  compensation_wanted_ = false;
  loss_untold_ = false;
  step_in_flight_ = false;
  facts_.place = 0;
  count_ = 0;
  events_ = 0;
}

// ---- Time --------------------------------------------------------------------------------------------------------

void LockMachine::judge_time(Instant now) noexcept {
  if (now >= valid_until_) {
    lose(LockInput::expired);
  } else if (state_ == LockState::held && at_risk(now)) {
    move(LockInput::doubted);
    status_ = Status::timed_out;
    push_event(LockEvent::at_risk);
  }
}

Instant LockMachine::poll_timeout() const noexcept {
  if (state_ == LockState::at_risk) return valid_until_;
  if (state_ != LockState::held) return Instant::max();
  const Instant overdue = risky_from();
  return overdue < valid_until_ ? overdue : valid_until_;
}

// ---- Outcomes ----------------------------------------------------------------------------------------------------

[[gnu::noinline]] void LockMachine::deny(Status why) noexcept {
  move(LockInput::denied);
  status_ = why;
  push_event(LockEvent::denied);
}

[[gnu::noinline]] void LockMachine::unclear(Status why, bool compensate) noexcept {
  move(LockInput::unclear);
  status_ = why;
  facts_.place = 0;  // Out of any queue: what takes it back sees to that.
  compensation_wanted_ = compensate;
  push_event(LockEvent::unclear);
}

[[gnu::noinline]] void LockMachine::lose(LockInput input) noexcept {
  move(input);
  end_hold();
  if (!kind_->reentrant) count_ = 0;
  status_ = Status::lock_lost;
  compensation_wanted_ = true;
  loss_untold_ = true;
  push_event(LockEvent::lost);
}

[[gnu::noinline]] void LockMachine::doubt(Status why, Instant now) noexcept {
  const bool first = state_ == LockState::held;
  move(LockInput::doubted);
  status_ = why;
  Duration delay = lease() / renewal_retry_divisor;
  if (delay < retry_delay_min) delay = retry_delay_min;
  retry_renewal_at_ = now + delay;
  if (first) push_event(LockEvent::at_risk);
}

// Nothing ran for want of the script: it goes once more, with its text.
bool LockMachine::asks_by_text(const Reply& reply, Instant now) noexcept {
  if (reply.outcome != Status::no_script || form_ != RequestForm::by_sha || now >= deadline_) return false;
  form_ = RequestForm::by_text;
  asked_at_ = now;
  wanted_ = reply.tag.operation;
  return true;
}

inline void LockMachine::handle_acquired(const Reply& reply, Instant now) noexcept {
  if (reply.outcome == Status::ok) {
    switch (kind_->decode(*kind_, Operation::acquire, reply.value, facts_)) {
      case Verdict::granted: {
        const Instant until = asked_at_ + validity_;
        if (now >= until) {  // It took so long that nothing is left of it.
          unclear(Status::timed_out, true);
          return;
        }
        move(LockInput::granted);
        valid_until_ = until;
        confirmed_at_ = asked_at_;
        count_ = 1;
        count_unsure_ = false;
        retry_renewal_at_ = Instant();
        status_ = Status::ok;
        push_event(LockEvent::granted);
        return;
      }
      case Verdict::busy: deny(facts_.refusal); return;
      case Verdict::not_ours:
      case Verdict::refused:
      case Verdict::unexpected:
        unclear(Status::protocol_error, true);
        push_event(LockEvent::protocol_doubt);
        return;
    }
  }
  if (asks_by_text(reply, now)) return;
  // TRYAGAIN comes out of a script, too, where the slot of what it wants is on the move. No kind's script has granted anything by
  // then. Who stands in a queue keeps its place.
  if (reply.nothing_ran || reply.outcome == Status::try_again)
    deny(refusal(reply, form_));
  else
    unclear(reply.outcome, !given_up(reply.outcome));
}

void LockMachine::handle_renewed(const Reply& reply, Instant now) noexcept {
  renewal_in_flight_ = false;
  if (now >= valid_until_) {  // Lost is final: what came after the end revives nothing.
    lose(LockInput::expired);
    return;
  }
  if (reply.outcome == Status::cancelled) {  // Nobody wants to know, which is no doubt.
    status_ = Status::cancelled;
    return;
  }
  if (reply.outcome == Status::ok) {
    switch (kind_->decode(*kind_, Operation::renew, reply.value, facts_)) {
      case Verdict::granted:
        take_raised();
        raise(asked_at_, asked_at_ + validity_);
        status_ = Status::ok;
        push_event(LockEvent::renewed);
        return;
      case Verdict::not_ours: lose(LockInput::disowned); return;
      case Verdict::refused: doubt(Status::server_error, now); return;
      case Verdict::busy:
      case Verdict::unexpected:
        doubt(Status::protocol_error, now);
        push_event(LockEvent::protocol_doubt);
        return;
    }
  }
  if (reply.outcome == Status::wrong_type) {  // Somebody put something else in its place.
    lose(LockInput::disowned);
    return;
  }
  if (asks_by_text(reply, now)) return;
  doubt(refusal(reply, form_), now);
}

// The hold goes on, whatever becomes of the step; only "not ours" and time end it.
[[gnu::noinline]] void LockMachine::handle_stepped(const Reply& reply, Instant now) noexcept {
  const bool up = step_target_ > count_;
  step_in_flight_ = false;
  if (now >= valid_until_) {
    lose(LockInput::expired);
    return;
  }
  status_ = refusal(reply, form_);
  if (reply.outcome == Status::ok) {
    switch (kind_->decode(*kind_, Operation::step, reply.value, facts_)) {
      case Verdict::granted:
        count_ = step_target_;
        count_unsure_ = false;
        take_raised();
        raise(asked_at_, asked_at_ + validity_);
        push_event(up ? LockEvent::granted : LockEvent::released);
        return;
      case Verdict::not_ours: lose(LockInput::disowned); return;
      case Verdict::busy:
      case Verdict::refused:
      case Verdict::unexpected:
        status_ = Status::protocol_error;
        push_event(LockEvent::protocol_doubt);
        break;
    }
  } else if (reply.outcome == Status::wrong_type) {
    lose(LockInput::disowned);
    return;
  } else if (asks_by_text(reply, now)) {
    return;
  } else if (up && reply.nothing_ran) {
    compensation_.count = count_;
    compensation_wanted_ = count_unsure_;
    push_event(LockEvent::denied);
    return;
  }
  count_unsure_ = true;
  // The server may count otherwise than we do, and is told. What the session gave up it compensates by itself.
  compensation_.count = count_;
  compensation_wanted_ = !given_up(reply.outcome);
  push_event(LockEvent::unclear);
}

void LockMachine::confirm(Instant asked_at, Instant until) noexcept {
  if (valid_until_ != Instant() && asked_at > confirmed_at_) raise(asked_at, until);
}

void LockMachine::disown(Instant now) noexcept {
  handle_timeout(now);
  if (held(now)) lose(LockInput::disowned);
}

inline void LockMachine::handle_released(const Reply& reply) noexcept {
  Verdict verdict = Verdict::unexpected;
  if (reply.outcome == Status::ok) {
    verdict = kind_->decode(*kind_, Operation::release, reply.value, facts_);
    if (verdict != Verdict::granted && verdict != Verdict::not_ours) {
      unclear(Status::protocol_error, true);
      push_event(LockEvent::protocol_doubt);
      return;
    }
  } else if (reply.outcome == Status::wrong_type) {
    verdict = Verdict::not_ours;
  }
  if (verdict != Verdict::unexpected) {
    move(LockInput::released);
    status_ = verdict == Verdict::granted ? Status::ok : Status::lock_lost;
    push_event(LockEvent::released);
    return;
  }
  if (!posted_) {
    // Nothing ran, so the same release goes out in another shape.
    if (refused_native(form_, reply.outcome)) {
      form_ = RequestForm::by_sha;
      wanted_ = Operation::release;
      return;
    }
    if (reply.outcome == Status::no_script && form_ == RequestForm::by_sha) {
      form_ = RequestForm::by_text;
      wanted_ = Operation::release;
      return;
    }
  }
  // The session compensates what it gave up and repeats what was posted; the rest is ours to hand over.
  unclear(reply.outcome, !given_up(reply.outcome) && !posted_);
}

void LockMachine::handle_reply(const Reply& reply, Instant now) noexcept {
  if (reply.tag.generation != generation_) {
    if (reply.tag.operation == Operation::step) step_in_flight_ = false;
    return;
  }
  switch (reply.tag.operation) {
    case Operation::acquire:
      if (state_ == LockState::acquiring) handle_acquired(reply, now);
      return;
    case Operation::renew:
      if (renewal_in_flight_) handle_renewed(reply, now);
      return;
    case Operation::step:
      if (step_in_flight_) handle_stepped(reply, now);
      return;
    case Operation::release:
      if (state_ == LockState::releasing) handle_released(reply);
      return;
    case Operation::compensate:
      // A refusal confirms nothing: the session tries again, or the lease ends it.
      if (reply.outcome == Status::ok && (state_ == LockState::unknown || state_ == LockState::lost))
        move(LockInput::compensated);
      if (state_ == LockState::releasing) handle_released(reply);  // What was posted, once more.
      return;
    case Operation::query: return;
  }
}

void LockMachine::refuse_request(Status why, Instant now) noexcept {
  const Operation refused = wanted_;
  wanted_ = nothing;
  switch (refused) {
    case nothing:
    case Operation::compensate: return;
    case Operation::acquire: deny(why); return;
    case Operation::renew:
      if (why != Status::too_many_requests) return doubt(why, now);
      // That the client has no room says nothing of the hold. The renewal is due again as soon as a delay may end.
      status_ = why;
      retry_renewal_at_ = now + retry_delay_min;
      return;
    case Operation::step:
      status_ = why;
      push_event(step_target_ > count_ ? LockEvent::denied : LockEvent::unclear);
      compensation_.count = count_;
      if (step_target_ == count_) compensation_wanted_ = true;  // Let go of, and the server does not know.
      count_unsure_ = count_unsure_ || compensation_wanted_;
      return;
    case Operation::release: unclear(why, true); return;
  }
}

// ---- Outputs -----------------------------------------------------------------------------------------------------

bool LockMachine::poll_compensation(ReplyTag& tag, Compensation& compensation) noexcept {
  if (!compensation_wanted_) return false;
  compensation_wanted_ = false;
  tag.generation = generation_;
  tag.operation = Operation::compensate;
  compensation = compensation_;
  return true;
}

inline void LockMachine::describe(Request& request, Operation operation) noexcept {
  request.tag.generation = generation_;
  request.tag.operation = operation;
  request.deadline = deadline_;
  request.repeatable = form_ >= RequestForm::delex;
  request.posted = posted_;
  request.compensation = &compensation_;
  // A renewal has none, and leaves one that waits as it is. What a step asks for is newer than a count that waits.
  if (operation != Operation::renew) compensation_.count = operation == Operation::step ? count_ : 0;
  if (operation == Operation::step) compensation_wanted_ = false;
  wanted_ = nothing;
}

Status LockMachine::poll_request(MutableBytes space, Request& request, std::size_t& size) noexcept {
  HOLDFAST_ASSERT(wants_request());
  const Operation operation = wanted_;
  CommandLine line(space);
  kind_->fill(line, *kind_, operation, form_,
              {.key = key(),
               .token = &token_,
               .lease = std::chrono::milliseconds(raised_milliseconds_ != 0 ? raised_milliseconds_
                                                                            : compensation_.lease_milliseconds),
               .count = step_target_,
               .machine = this});
  if (const Status status = line.finish(size); status != Status::ok) return status;
  describe(request, operation);
  if (operation == Operation::renew) {
    request.compensation = nullptr;
    request.posted = false;
    renewal_in_flight_ = true;
    return Status::ok;
  }
  if (operation == Operation::step) step_in_flight_ = true;
  return Status::ok;
}

}  // namespace holdfast
