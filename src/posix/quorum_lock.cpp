// SPDX-License-Identifier: MIT
#include "holdfast/quorum_lock.hpp"

#include <cerrno>

#include "holdfast/wait_plan.hpp"

namespace holdfast {

QuorumLock::QuorumLock(QuorumClient& quorum, const LockKind& kind, QuorumVote* const* votes, std::size_t places,
                       Key key, const QuorumTiming& timing, const Ways& ways) noexcept
    : quorum_(&quorum),
      ways_(&ways),
      votes_(votes),
      machine_(kind, votes, quorum.nodes() == 0 || quorum.nodes() > places ? 1 : quorum.nodes()),
      incarnation_(quorum.random_.incarnation()) {
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    votes[node]->owner = this;
    votes[node]->node = static_cast<std::uint8_t>(node);
    machine_.meet(node, quorum.roll_.server(node), quorum.roll_.excluded(node));
  }
  configuration_ = machine_.configure(key, timing);
  if (quorum.nodes() == 0) configuration_ = Status::not_connected;
  if (quorum.nodes() > places || timing.lock().effective_lease() > quorum.config().max_lease)
    configuration_ = Status::invalid_argument;
  next_ = quorum.first_;
  quorum.first_ = this;
}

QuorumLock::~QuorumLock() {
  QuorumLock** place = &quorum_->first_;
  while (*place != this) place = &(*place)->next_;
  *place = next_;
  if (configuration_ != Status::ok || orphaned()) return;
  quorum_->read_time();
  while (machine_.count() != 0) (void)machine_.release(quorum_->now_);
  settle();
  if (machine_.owed() != 0) {
    quorum_->wait_until(quorum_->now_, false);  // What has arrived gives its places back.
    catch_up();
  }
  for (std::size_t node = 0; node < machine_.nodes(); ++node) {
    quorum_->nodes_[node].connection.session().abandon(votes_[node], quorum_->now_);
  }
  quorum_->transmit_all();
}

Status QuorumLock::draw_ordinal(RandomSource& random, Token& token) noexcept { return random.draw_ordinal(token); }

// In a forked child the hold is the parent's.
bool QuorumLock::orphaned() const noexcept {
  return quorum_->random_.forked() || quorum_->random_.incarnation() != incarnation_;
}

// ---- Questions ---------------------------------------------------------------------------------------------------

Instant QuorumLock::valid_until() const noexcept {
  if (orphaned()) return {};
  return Instant::from_nanoseconds(valid_until_.load());
}

bool QuorumLock::held() const noexcept {
  const Instant until = valid_until();
  return until != Instant() && read_clock() < until;
}

Duration QuorumLock::remaining() const noexcept {
  const Instant until = valid_until();
  const Instant now = read_clock();
  return now < until ? until - now : Duration::zero();
}

bool QuorumLock::at_risk() const noexcept {
  const Instant now = read_clock();
  return now < valid_until() && now.nanoseconds() >= risky_from_.load();
}

// ---- The machine's mouth and ear ---------------------------------------------------------------------------------

void QuorumLock::publish() noexcept {
  risky_from_.store(machine_.risky_from().nanoseconds());
  valid_until_.store(machine_.valid_until().nanoseconds());
}

// What time has done, and what the machines have to say.
void QuorumLock::settle() noexcept {
  machine_.settle(quorum_->now_);
  if (machine_.has_output()) hand_over();
  publish();
}

void QuorumLock::take_reply(std::size_t node, const Reply& reply) noexcept {
  machine_.handle_reply(node, reply, quorum_->now_);
  if (!machine_.has_output()) return;
  hand_over();
  publish();
}

// Until nobody has anything more to say: a request that cannot be sent is an answer.
void QuorumLock::hand_over() noexcept {
  const Instant now = quorum_->now_;
  for (NodeSet nodes = machine_.poll_nodes(); nodes != 0; nodes = machine_.poll_nodes()) {
    for (NodeSet left = nodes; left != 0; left = static_cast<NodeSet>(left & (left - 1))) {
      const auto node = static_cast<std::size_t>(__builtin_ctz(left));
      Connection& connection = quorum_->nodes_[node].connection;
      LockMachine& machine = votes_[node]->machine;
      ReplyTag tag;
      Compensation compensation;
      if (machine.wants_request()) connection.submit(machine, votes_[node], now);
      if (machine_.poll_compensation(node, connection.session().may_compensate(), tag, compensation)) {
        tag.requester = votes_[node];
        (void)connection.session().compensate(tag, compensation);
      }
    }
    machine_.settle(nodes, now);
  }
  for (NodeSet nodes = machine_.poll_give_up(); nodes != 0; nodes = static_cast<NodeSet>(nodes & (nodes - 1))) {
    const auto node = static_cast<std::size_t>(__builtin_ctz(nodes));
    quorum_->nodes_[node].connection.session().give_up(votes_[node], Status::cancelled, now);
    quorum_->dispatch(quorum_->nodes_[node]);  // That it was is known at once, and the node may be asked again.
  }
  for (NodeSet nodes = machine_.poll_protocol_doubt(); nodes != 0; nodes = static_cast<NodeSet>(nodes & (nodes - 1)))
    quorum_->nodes_[static_cast<std::size_t>(__builtin_ctz(nodes))].connection.session().fail(
        Status::protocol_error, "a reply of another shape than asked for");
  quorum_->roll_.demote(machine_.poll_demoted(), now);
  QuorumEvent event{};
  while (machine_.poll_event(event)) note(event);
  publish();
}

void QuorumLock::note(QuorumEvent event) noexcept {
  switch (event) {
    case QuorumEvent::denied:
    case QuorumEvent::doubted:
      quorum_->roll_.note(machine_);
      return;  // What single nodes said is kept for who asks why.
    case QuorumEvent::at_risk:
      if (untold_ == Told::nothing) untold_ = Told::at_risk;
      return;
    case QuorumEvent::renewed:
      if (untold_ == Told::at_risk) untold_ = Told::nothing;
      return;
    case QuorumEvent::lost: untold_ = Told::lost; return;
    case QuorumEvent::granted:
    case QuorumEvent::released: return;
  }
}

void QuorumLock::catch_up() noexcept {
  machine_.retry_owed();
  settle();
}

Status QuorumLock::begin() noexcept {
  if (configuration_ != Status::ok) return configuration_;
  if (const Status status = quorum_->begin(); status != Status::ok) return status;
  const std::uint32_t incarnation = quorum_->random_.incarnation();
  if (incarnation != incarnation_) {
    const bool had_hold = machine_.state() != QuorumState::idle;
    machine_.forget();
    untold_ = Told::nothing;
    publish();
    incarnation_ = incarnation;
    if (had_hold) return Status::forked;
  }
  return Status::ok;
}

// The record is left as it is to be before anybody is called: a callback may release the lock, and acquire it anew.
void QuorumLock::tell() noexcept {
  const Told told = untold_;
  untold_ = Told::nothing;
  if (told == Told::nothing || (told == Told::at_risk && risk_told_)) return;
  if (told == Told::at_risk) risk_told_ = true;
  const auto call = told == Told::lost ? keep_.on_lost : keep_.on_at_risk;
  if (call != nullptr) call(keep_.context);
}

// ---- Commands ----------------------------------------------------------------------------------------------------

Status QuorumLock::attempt(Instant gather_until, Instant end) noexcept {
  QuorumClient& quorum = *quorum_;
  if (quorum.cancelled()) return Status::cancelled;
  if (quorum.now_ == Instant::max()) return Status::system_error;
  if (const Status status = quorum.roll_.permit(machine_); status != Status::ok) return status;
  const Instant limit = quorum.now_ + quorum.nodes_[0].connection.config().connect_timeout;
  if (const Status status = quorum.gather(earlier(limit, gather_until)); status != Status::ok) return status;
  if (quorum.now_ >= end) return Status::timed_out;
  if (machine_.kind().reentrant && machine_.held(quorum.now_)) {
    const Status status = renew_within(earlier(quorum.request_deadline(), end));
    return status == Status::ok ? machine_.reenter() : status;
  }
  for (std::size_t node = 0; node < machine_.nodes(); ++node)
    votes_[node]->native_delete = quorum.nodes_[node].connection.session().identity().native_delete;
  Token token;
  Status status = machine_.kind().token == TokenSource::client_ordinal ? ways_->draw_ordinal(quorum.random_, token)
                                                                       : quorum.random_.draw_token(token);
  if (status == Status::no_entropy) quorum.nodes_[0].connection.set_error_number(errno);
  if (status == Status::ok) status = machine_.acquire(token, quorum.now_, quorum.roll_.electorate(quorum.now_), end);
  if (status != Status::ok) return status;
  settle();
  if (!quorum.pump(this, Instant::max())) {
    machine_.cancel(quorum.now_);
    settle();
    if (machine_.release(quorum.now_) == Status::ok) {  // Answered in the same moment: nobody wants it any more.
      settle();
      machine_.end_release(Status::cancelled);
    }
    quorum.transmit_all();
    return Status::cancelled;
  }
  if (machine_.status() == Status::ok) {
    granted_at_ = machine_.confirmed_at();
    ticked_at_.set(granted_at_);
    risk_told_ = false;
    untold_ = Told::nothing;
  }
  return machine_.status();
}

Status QuorumLock::try_acquire() noexcept {
  if (const Status status = begin(); status != Status::ok && status != Status::forked) return status;
  catch_up();
  return end_acquire(attempt(Instant::max(), Instant::max()));
}

// What was granted when cancel() came is wanted by nobody any more.
Status QuorumLock::end_acquire(Status status) noexcept {
  if (quorum_->cancelled() && status == Status::ok) (void)post_release();
  status = quorum_->cancel_.conclude(status, false);
  tell();
  return status;
}

Status QuorumLock::acquire(Duration wait) noexcept {
  if (wait < Duration::zero()) return Status::invalid_argument;
  if (const Status status = begin(); status != Status::ok && status != Status::forked) return status;
  catch_up();
  return end_acquire(acquire_within(wait));
}

Status QuorumLock::acquire_within(Duration wait) noexcept {
  const Instant deadline = quorum_->now_ + wait;
  const Instant end = quorum_->end_of_wait(deadline);
  const bool only = quorum_->now_ + timeout_min > deadline;
  const Status status = attempt(only ? end : deadline, end);
  if (only || quorum_->now_ >= deadline || !worth_waiting(status)) return status;
  return machine_.kind().announcement != nullptr ? ways_->wait_by_push(*this, deadline, status)
                                                 : poll_until(deadline, status);
}

// The delay is random over its whole length, so that those who split the votes between them do not do so for ever.
Status QuorumLock::poll_until(Instant deadline, Status outcome) noexcept {
  const Instant end = quorum_->end_of_wait(deadline);
  Duration most = retry_delay_min * 2;
  while (quorum_->now_ < deadline && worth_waiting(outcome)) {
    most = most * 2 < retry_delay_max ? most * 2 : retry_delay_max;
    if (!quorum_->sleep_tending(earlier(quorum_->now_ + quorum_->random_delay(most), deadline)))
      return Status::cancelled;
    const bool last = quorum_->now_ + timeout_min > deadline;
    outcome = attempt(last ? end : deadline, end);
    if (last) break;
  }
  return outcome;
}

Status QuorumLock::start_renewal(Instant deadline) noexcept {
  settle();  // A grant that has just run out on a node is let go of there before it is asked for anew.
  const Status status =
      machine_.renew(quorum_->now_, earlier(deadline, machine_.valid_until()), quorum_->roll_.repairers(quorum_->now_));
  settle();
  return status;
}

// A round that a cancelled call left open is waited for instead.
Status QuorumLock::renew_within(Instant deadline) noexcept {
  const Status started = start_renewal(deadline);
  if (started != Status::ok && started != Status::too_many_requests) return started;
  if (!quorum_->pump(this, started == Status::ok ? Instant::max() : deadline)) return Status::cancelled;
  return machine_.waiting() ? Status::timed_out : machine_.status();
}

Status QuorumLock::renew(Duration timeout) noexcept {
  if (timeout < timeout_min) return Status::invalid_argument;
  if (const Status status = begin(); status != Status::ok) return status;
  quorum_->move();
  (void)quorum_->roll_.permit(machine_);  // So that error_text() has the reason, where it is refused.
  Status status = renew_within(quorum_->now_ + timeout);
  const bool final = status == Status::ok || status == Status::lock_lost || status == Status::not_held;
  status = quorum_->cancel_.conclude(status, final);
  tell();
  return status;
}

// cancel() ends its wait, and never keeps it from its work.
Status QuorumLock::release() noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  CancelSignal& cancel = quorum_->cancel_;
  cancel.begin_spared();
  const Status status = release_now();
  cancel.end_spared();
  return status;
}

Status QuorumLock::release_now() noexcept {
  const Status started = machine_.release(quorum_->now_);
  settle();
  if (started != Status::ok || machine_.state() != QuorumState::releasing) {
    if (machine_.count() == 0) untold_ = Told::nothing;  // A loss that only the release found: its status says so.
    return started == Status::ok && machine_.count() == 0 ? machine_.status() : started;
  }
  untold_ = Told::nothing;
  const bool cancelled = !quorum_->pump(this, quorum_->request_deadline());
  machine_.end_release(cancelled ? Status::cancelled : Status::timed_out);
  return machine_.status();
}

Status QuorumLock::post_release() noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  const Status started = machine_.release(quorum_->now_);
  settle();
  machine_.end_release(Status::outcome_unknown);
  if (machine_.count() == 0) untold_ = Told::nothing;
  if (machine_.release_owed() != 0) {  // What has arrived since gives its places back.
    quorum_->wait_until(quorum_->now_, false);
    catch_up();
  }
  quorum_->move();
  return started == Status::ok && machine_.release_owed() != 0 ? Status::too_many_requests : started;
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

Status QuorumLock::keep(const KeepOptions& options) noexcept {
  if (!options.valid()) return Status::invalid_argument;
  if (held()) return Status::already_held;
  keep_ = options;
  return Status::ok;
}

bool QuorumLock::may_renew(Instant now) const noexcept {
  if (!machine_.permitted(quorum_->config().max_lease)) return false;
  if (keep_.max_hold != max_hold_unlimited && now - granted_at_ >= keep_.max_hold) return false;
  return keep_.liveness == liveness_off || ticked_at_.since(now) < keep_.liveness;
}

}  // namespace holdfast
