// SPDX-License-Identifier: MIT
#include "holdfast/hold_record.hpp"

#include <cerrno>
#include <cstring>

#include "client_hot.hpp"
#include "fast_paths.hpp"
#include "holdfast/assert.hpp"
#include "holdfast/wait_plan.hpp"

namespace holdfast {

HoldRecord::HoldRecord(Client& client, const LockKind& kind, Key key, const LockTiming& timing,
                       const Ways& ways) noexcept
    : client_(&client), ways_(&ways), machine_(kind), incarnation_(client.random_source_.incarnation()) {
  configuration_ = machine_.configure(key, timing);
  automatic_lease_ = timing.automatic();
  choose_keeping();
}

// In a forked child the hold is the parent's.
bool HoldRecord::orphaned() const noexcept {
  return client_->forked() || client_->random_source_.incarnation() != incarnation_;
}

HoldRecord::~HoldRecord() {
  if (orphaned()) {
    leave_tended();
    return;
  }
  if (machine_.state() == LockState::held || machine_.state() == LockState::at_risk) post_releases(machine_.count());
  leave_tended();
  leave_keeper();
  if (begin() == Status::ok) settle();
  if (machine_.wants_compensation()) client_->session_.count_dropped();
  client_->session_.abandon(this, client_->now_);
  if (client_->socket_ >= 0) client_->look_and_transmit();
}

// ---- Questions ---------------------------------------------------------------------------------------------------

Instant HoldRecord::valid_until() const noexcept {
  if (orphaned()) return {};
  return Instant::from_nanoseconds(valid_until_.load());
}

bool HoldRecord::held() const noexcept {
  const Instant until = valid_until();
  return until != Instant() && Client::now() < until;
}

Duration HoldRecord::remaining() const noexcept {
  const Instant until = valid_until();
  const Instant now = Client::now();
  return now < until ? until - now : Duration::zero();
}

bool HoldRecord::at_risk() const noexcept {
  const Instant now = Client::now();
  return now < valid_until() && now.nanoseconds() >= risky_from_.load();
}

// ---- The machine's mouth and ear ---------------------------------------------------------------------------------

inline void HoldRecord::publish() noexcept {
  if (keeper_ != nullptr) [[unlikely]]
    keeper_->sync(*this);
  else
    publish_unkept();
}

void HoldRecord::submit() noexcept { client_->submit(machine_, this, client_->now_); }

// After every input: what the machine has to say, in its order.
[[gnu::noinline]] void HoldRecord::settle() noexcept {
  ReplyTag tag;
  Compensation compensation;
  if (machine_.wants_request()) submit();
  if (machine_.poll_compensation(tag, compensation)) {
    tag.requester = this;
    if (client_->session_.compensate(tag, compensation) != Status::ok) machine_.put_back_compensation();
    if (client_->socket_ >= 0) client_->transmit();  // Nothing can be asked before it has gone.
  }
  for (LockEvent event = machine_.poll_event(); event != LockEvent::none; event = machine_.poll_event())
    switch (event) {
      case LockEvent::at_risk:
        if (untold_ == Told::nothing) untold_ = Told::at_risk;
        break;
      case LockEvent::renewed:
        if (untold_ == Told::at_risk) untold_ = Told::nothing;
        break;
      case LockEvent::lost: untold_ = Told::lost; break;
      case LockEvent::protocol_doubt:
        client_->session_.fail(Status::protocol_error, "a reply of another shape than asked for");
        break;
      case LockEvent::none:
      case LockEvent::granted:
      case LockEvent::denied:
      case LockEvent::unclear:
      case LockEvent::released: break;
    }
  publish();
}

bool HoldRecord::handle_reply(const Reply& reply, Instant now) noexcept {
  if (reply.tag.operation == Operation::compensate || post_outcome_ == Status::outcome_unknown) [[unlikely]]
    note_post_outcome(reply);
  if (keeper_ != nullptr) [[unlikely]]
    keeper_->sync(*this);  // The hold may have been extended while this was on its way.
  machine_.handle_reply(reply, now);
  if (fast_paths && machine_.only_said_what_was_asked()) [[likely]] {
    publish();
    return true;
  }
  settle();
  return false;
}

// The reply to what was posted, or to its repetition: there a key that is gone proves nothing.
[[gnu::noinline]] void HoldRecord::note_post_outcome(const Reply& reply) noexcept {
  const bool deleted = reply.outcome == Status::ok && reply.value.is_integer(1);
  // That of a count says nothing of the release behind it.
  if (reply.tag.operation == Operation::compensate)
    compensated_ = deleted && reply.tag.generation == machine_.generation();
  if (post_outcome_ != Status::outcome_unknown || reply.tag.generation != posted_generation_) return;
  if (reply.tag.operation == Operation::release)
    post_outcome_ = deleted ? Status::ok : reply.outcome == Status::ok ? Status::lock_lost : reply.outcome;
  else if (reply.tag.operation == Operation::compensate && deleted)
    post_outcome_ = Status::ok;
}

inline Status HoldRecord::begin() noexcept {
  if (configuration_ != Status::ok) return configuration_;
  if (const Status status = client_->begin(); status != Status::ok) return status;
  client_->make_room();
  const std::uint32_t incarnation = client_->random_source_.incarnation();
  if (incarnation != incarnation_) [[unlikely]] {
    const bool had_hold = machine_.state() != LockState::idle;
    machine_.forget();
    leave_tended();
    keeper_ = nullptr;  // The parent's.
    untold_ = Told::nothing;
    publish();
    incarnation_ = incarnation;
    if (had_hold) return Status::forked;
  }
  return Status::ok;
}

Status HoldRecord::begin_anew() noexcept {
  const Status status = begin();
  if (status != Status::ok && status != Status::forked) return status;
  catch_up();
  return Status::ok;
}

// ---- Commands ----------------------------------------------------------------------------------------------------

// Sends what the machine wants and waits for its answer.
inline Status HoldRecord::finish(Status started) noexcept {
  if (started != Status::ok || machine_.wants_compensation()) [[unlikely]]
    settle();
  if (started != Status::ok) return started;
  client_->ask(*this);
  if (machine_.has_output()) [[unlikely]]
    settle();
  return machine_.status();
}

inline Status HoldRecord::attempt_inline(Instant connect_by, Instant bound) noexcept {
  if (client_->cancelled()) return Status::cancelled;
  if (const Status status = client_->ensure_ready(earlier(connect_by, bound)); status != Status::ok) return status;
  // Not cut short by the end of the wait: a reply that comes a little later is an answer, a deadline is none.
  const Instant deadline = earlier(request_deadline(), bound);
  Status status = Status::ok;
  if (!client_->session_.may_compensate()) [[unlikely]]
    status = client_->await_place(deadline);
  if (status != Status::ok) return status;
  for (int asked = 0; asked == 0 || (asked == 1 && may_ask_again(status, deadline)); ++asked) {
    Token token;
    const bool again = machine_.kind().reentrant && machine_.held(client_->now_);
    if (again) [[unlikely]] {
      status = finish(machine_.reenter(client_->now_, deadline));
      continue;
    }
    RandomSource& random = client_->random_source_;
    status = machine_.kind().token == TokenSource::client_ordinal ? ways_->draw_ordinal(random, token)
                                                                  : random.draw_token(token);
    if (status != Status::ok) client_->error_number_ = errno;
    if (status == Status::ok) status = machine_.acquire(token, client_->now_, deadline);
    if (status != Status::ok) return status;
    status = finish(Status::ok);
    if (status == Status::ok && !keeping_as_before()) [[unlikely]]
      status = start_keeping();
  }
  return status;
}

Status HoldRecord::attempt(Instant deadline) noexcept {
  const bool last = client_->now_ + timeout_min > deadline;
  const Instant bound = deadline + client_->config_.request_timeout;
  return attempt_inline(last ? bound : deadline, bound);
}

// True if the request failed before its first byte left and there is a connection again: then, and only then, it may
// be asked once more.
bool HoldRecord::may_ask_again(Status status, Instant deadline) noexcept {
  return status == Status::not_connected && client_->now_ < deadline && client_->ensure_ready(deadline) == Status::ok;
}

Status HoldRecord::try_acquire() noexcept {
  if (const Status status = begin_anew(); status != Status::ok) return status;
  return end_acquire(attempt_inline(Instant::max(), Instant::max()));
}

// What was granted when cancel() came is wanted by nobody any more.
inline Status HoldRecord::end_acquire(Status status) noexcept {
  if (client_->cancelled() && status == Status::ok) [[unlikely]]
    (void)post_release();
  status = client_->conclude(status, false);
  tell();
  return status;
}

Status HoldRecord::acquire(Duration wait) noexcept {
  if (wait < Duration::zero()) return Status::invalid_argument;
  if (const Status status = begin_anew(); status != Status::ok) return status;
  return end_acquire(acquire_within(client_->now_ + wait));
}

// The last attempt is made at the deadline, and has the time of a request; so has the only one where there is no time to wait.
Status HoldRecord::acquire_within(Instant deadline) noexcept {
  const Status status = attempt(deadline);
  if (client_->now_ + timeout_min > deadline || !worth_waiting(status)) return status;
  return machine_.kind().announcement != nullptr ? ways_->wait_by_push(*this, deadline, status)
                                                 : poll_until(deadline, status);
}

// Attempts with growing, jittered delays, after one that ended with `outcome`.
Status HoldRecord::poll_until(Instant deadline, Status outcome) noexcept {
  Duration delay = retry_delay_min;
  while (client_->now_ < deadline && worth_waiting(outcome)) {
    delay = delay * 2 < retry_delay_max ? delay * 2 : retry_delay_max;
    const Instant next = client_->now_ + client_->random_source_.jittered(delay);
    if (!client_->sleep_tending(earlier(next, deadline))) return Status::cancelled;
    catch_up();
    outcome = attempt(deadline);
  }
  return outcome;
}

Status HoldRecord::renew(Duration timeout) noexcept {
  if (timeout < timeout_min) return Status::invalid_argument;
  if (const Status status = begin(); status != Status::ok) return status;
  Status status = renew_within(timeout);
  status = client_->conclude(status, status == Status::ok || status == Status::lock_lost || status == Status::not_held);
  tell();
  return status;
}

Status HoldRecord::renew_within(Duration timeout) noexcept {
  catch_up();
  const Instant deadline = client_->now_ + timeout;
  if (!machine_.held(client_->now_)) return machine_.renew(client_->now_, deadline);
  if (client_->cancelled()) return Status::cancelled;
  if (const Status status = client_->ensure_ready(earlier(deadline, machine_.valid_until())); status != Status::ok) {
    catch_up();
    return status;
  }
  Status status = finish(machine_.renew(client_->now_, deadline));
  if (may_ask_again(status, deadline)) status = finish(machine_.renew(client_->now_, deadline));
  return status;
}

Status HoldRecord::start_release(bool posted) noexcept {
  if (machine_.count() > 1) return machine_.step_down(posted, client_->now_, request_deadline());
  if (keeper_ != nullptr) [[unlikely]]
    leave_keeper();
  untold_ = Told::nothing;
  const Status started =
      machine_.release(client_->session_.identity().native_delete, posted, client_->now_, request_deadline());
  valid_until_.store(0);  // Not held from here on, whatever the connection does.
  return started;
}

// cancel() ends its wait, and never keeps it from its work.
Status HoldRecord::release() noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  client_->cancel_.begin_spared();
  const Status status = release_now();
  client_->cancel_.end_spared();
  return status;
}

inline Status HoldRecord::release_now() noexcept {
  if (keeper_ != nullptr) keeper_->sync(*this);
  const Status started = start_release(false);
  // Without a connection the machine is told so by submit(), and the compensation waits for the next one.
  if (started == Status::ok) (void)client_->ensure_ready(Instant::max());
  const Status status = finish(started);
  if (status == Status::ok) [[likely]]
    return status;
  if (machine_.count() == 0) untold_ = Told::nothing;  // A loss that only the release found: its status says so.
  if (status != Status::not_connected && status != Status::transport_closed) return status;
  if (started != Status::ok || machine_.count() != 0) return status;
  return await_compensation(status);
}

// The connection went away under a release. Its compensation is the first thing on the next connection: if that is to
// be had now, the server's word is worth waiting for. A key that was still there and ours makes it a plain release.
Status HoldRecord::await_compensation(Status status) noexcept {
  const Instant deadline = request_deadline();
  awaits_compensation_ = true;
  compensated_ = false;
  if (client_->ensure_ready(deadline) == Status::ok) client_->pump(this, deadline);
  awaits_compensation_ = false;
  return compensated_ ? Status::ok : status;
}

Status HoldRecord::post_release() noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  if (keeper_ != nullptr) keeper_->sync(*this);
  const Status started = start_release(true);
  if (started == Status::ok) {
    post_outcome_ = Status::outcome_unknown;
    posted_generation_ = machine_.generation();
  }
  settle();
  if (machine_.count() == 0) untold_ = Told::nothing;
  if (client_->socket_ >= 0) client_->look_and_transmit();
  return started == Status::ok && machine_.wants_compensation() ? Status::too_many_requests : started;
}

// ---- Queries -----------------------------------------------------------------------------------------------------

Status HoldRecord::remaining_on_server(Duration& remaining) noexcept {
  if (const Status status = begin_anew(); status != Status::ok) return status;
  std::int64_t milliseconds = 0;
  Status status = client_->cancelled() ? Status::cancelled : client_->ensure_ready(Instant::max());
  if (status == Status::ok) {
    if (client_->query_waiting_) client_->pump(nullptr);  // One at a time.
    status = client_->ask_remaining(machine_, milliseconds);
  }
  if (status == Status::ok) {
    client_->pump(nullptr);
    client_->query_waiting_ = false;
    status = client_->query_outcome_;
  }
  status = client_->conclude(status, status == Status::ok);
  tell();
  if (status != Status::ok) return status;
  constexpr std::int64_t milliseconds_max = Duration::max().count() / 1'000'000;
  if (milliseconds == -1 || milliseconds > milliseconds_max)
    remaining = remaining_unlimited;
  else if (milliseconds <= 0)
    remaining = Duration::zero();
  else
    remaining = std::chrono::milliseconds(milliseconds);
  return Status::ok;
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

void HoldRecord::take_timing(const LockTiming& timing) noexcept {
  const LockTiming& present = machine_.timing();
  if (present.lease == timing.effective_lease() && present.effective_drift() == timing.effective_drift() &&
      automatic_lease_ == timing.automatic())
    return;
  if (machine_.configure(machine_.key(), timing) != Status::ok) return;
  automatic_lease_ = timing.automatic();
  choose_keeping();
}

void HoldRecord::choose_keeping() noexcept {
  kept_ = keep_.keep == Keep::always || (keep_.keep == Keep::automatic && automatic_lease_);
  watched_ = keep_.on_lost != nullptr || keep_.on_at_risk != nullptr || keep_.max_hold != max_hold_unlimited ||
             keep_.liveness != liveness_off;
  if (!kept_) leave_tended();
}

Status HoldRecord::keep(const KeepOptions& options) noexcept {
  if (!options.valid()) return Status::invalid_argument;
  if (held()) return Status::already_held;
  leave_keeper();  // A lost hold may still be known; nobody is told of it any more.
  keep_ = options;
  choose_keeping();
  return Status::ok;
}

Status HoldRecord::start_keeping() noexcept {
  leave_keeper();  // A lost hold may still be known.
  granted_at_ = machine_.confirmed_at();
  ticked_at_.set(granted_at_);
  risk_told_.store(false);
  loss_told_.store(false);
  untold_ = Told::nothing;
  if (!kept_) return Status::ok;
  if (client_->keeper_ == nullptr) {
    join_tended();
    return Status::ok;
  }
  leave_tended();
  const Status status = client_->keeper_->enter(*this);
  if (status != Status::ok) (void)post_release();
  return status;
}

void HoldRecord::leave_keeper() noexcept {
  if (keeper_ != nullptr && !orphaned()) keeper_->leave(*this);  // In a child its lock may be held by nobody, for ever.
}

bool HoldRecord::may_renew(Instant now) const noexcept {
  if (keep_.max_hold != max_hold_unlimited && now - granted_at_ >= keep_.max_hold) return false;
  return keep_.liveness == liveness_off || ticked_at_.since(now) < keep_.liveness;
}

void HoldRecord::join_tended() noexcept {
  if (tended_) return;
  tended_ = true;
  tended_previous_ = nullptr;
  tended_next_ = client_->tended_first_;
  if (tended_next_ != nullptr) tended_next_->tended_previous_ = this;
  client_->tended_first_ = this;
  client_->dialer_.set_pause_max(reconnect_kept_max);
}

void HoldRecord::leave_tended() noexcept {
  if (!tended_) return;
  tended_ = false;
  (tended_previous_ != nullptr ? tended_previous_->tended_next_ : client_->tended_first_) = tended_next_;
  if (tended_next_ != nullptr) tended_next_->tended_previous_ = tended_previous_;
  if (client_->tended_first_ == nullptr) client_->dialer_.set_pause_max(reconnect_delay_max);
}

// The record is left as it is to be before anybody is called: a callback may release the lock, and acquire it anew.
void HoldRecord::tell_now() noexcept {
  const Told told = untold_;
  untold_ = Told::nothing;
  if (told == Told::lost) leave_keeper();
  const auto call = told == Told::lost ? keep_.on_lost : keep_.on_at_risk;
  SharedValue<bool>& once = told == Told::lost ? loss_told_ : risk_told_;
  if (!once.exchange(true) && call != nullptr) call(keep_.context);
}

void HoldRecord::post_releases(std::uint32_t count) noexcept {
  if (count == 0 || begin() != Status::ok || machine_.count() == 0) return;
  if (count >= machine_.count()) machine_.unwind_to_one();
  for (; count > 1 && machine_.count() > 1; --count) machine_.unwind_one();
  (void)post_release();
}

// The other's reply that is still on its way is nobody's; what it posted goes on.
void HoldRecord::take_over(HoldRecord& other) noexcept {
  if (other.orphaned()) return;
  Keeper* const keeper = other.keeper_;  // The client may have been detached from it since.
  const bool tended = other.tended_;
  other.leave_keeper();
  other.leave_tended();
  client_->session_.abandon(&other, client_->now_);
  if (other.machine_.count() == 0) return;
  machine_.take_over(other.machine_);
  keep_ = other.keep_;
  granted_at_ = other.granted_at_;
  ticked_at_.set(other.ticked_at_);
  risk_told_.store(other.risk_told_.load());
  loss_told_.store(other.loss_told_.load());
  untold_ = other.untold_;
  automatic_lease_ = other.automatic_lease_;
  choose_keeping();
  incarnation_ = other.incarnation_;
  if (tended || (keeper != nullptr && keeper->enter(*this) != Status::ok)) join_tended();
  publish();
  other.publish();
}

}  // namespace holdfast
