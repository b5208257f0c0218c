// SPDX-License-Identifier: MIT
#include "holdfast/blocking_lock.hpp"

#include <cstring>

#include "client_hot.hpp"
#include "fast_paths.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

// Failures that pass by themselves, so that a wait goes on.
bool worth_waiting(Status status) noexcept {
  switch (status) {
    case Status::lock_busy:
    case Status::too_many_requests:
    case Status::not_connected:
    case Status::connect_failed:
    case Status::name_not_resolved:
    case Status::transport_closed:
    case Status::timed_out:
    case Status::read_only:
    case Status::loading:
    case Status::out_of_memory:
    case Status::busy_script:
    case Status::too_few_replicas:
    case Status::stale_replica:
    case Status::disk_error:
    case Status::cluster_down:
    case Status::try_again:
    case Status::too_many_clients:
    case Status::outcome_unknown: return true;
    case Status::ok:
    case Status::invalid_argument:
    case Status::not_held:
    case Status::already_held:
    case Status::buffer_too_small:
    case Status::cancelled:
    case Status::forked:
    case Status::protocol_error:
    case Status::auth_required:
    case Status::auth_failed:
    case Status::no_permission:
    case Status::no_script:
    case Status::wrong_type:
    case Status::moved:
    case Status::ask:
    case Status::cross_slot:
    case Status::denied:
    case Status::unknown_command:
    case Status::server_error:
    case Status::lock_lost:
    case Status::system_error:
    case Status::no_entropy: return false;
  }
  return false;
}

}  // namespace

BlockingLock::BlockingLock(Client& client, const LockKind& kind, Key key, const LockTiming& timing) noexcept
    : client_(&client), machine_(kind), incarnation_(client.incarnation_.load()) {
  configuration_ = machine_.configure(key, timing);
}

BlockingLock::~BlockingLock() {
  // In a forked child the hold is the parent's.
  if (client_->forked() || client_->incarnation_.load() != incarnation_) return;
  if (machine_.state() == LockState::held || machine_.state() == LockState::at_risk) post_release();
  client_->now_ = Client::now();
  client_->session_.abandon(this, client_->now_);
  if (client_->socket_ >= 0) client_->transmit();
}

// ---- Questions ---------------------------------------------------------------------------------------------------

Instant BlockingLock::valid_until() const noexcept {
  if (client_->forked() || client_->incarnation_.load() != incarnation_) return {};
  return Instant::from_nanoseconds(valid_until_.load());
}

bool BlockingLock::held() const noexcept {
  const Instant until = valid_until();
  return until != Instant() && Client::now() < until;
}

Duration BlockingLock::remaining() const noexcept {
  const Instant until = valid_until();
  const Instant now = Client::now();
  return now < until ? until - now : Duration::zero();
}

bool BlockingLock::at_risk() const noexcept {
  const Instant now = Client::now();
  return held(now) && now.nanoseconds() >= risky_from_.load();
}

// ---- The machine's mouth and ear ---------------------------------------------------------------------------------

inline void BlockingLock::publish() noexcept {
  risky_from_.store(machine_.risky_from().nanoseconds());
  valid_until_.store(machine_.valid_until().nanoseconds());
}

void BlockingLock::submit() noexcept {
  Session& session = client_->session_;
  const Session::Place place = session.open(machine_.request_compensated());
  std::size_t size = 0;
  if (place.request != nullptr) {
    ByteView prepared;
    if (fast_paths && place.space.size >= template_size_max) prepared = machine_.poll_prepared(*place.request);
    size = prepared.size();
    if (size != 0)
      std::memcpy(place.space.data, prepared.data(), size);
    else if (machine_.poll_request(place.space, *place.request, size) != Status::ok)
      size = 0;
  }
  if (size == 0) {
    machine_.refuse_request(session.ready() ? Status::too_many_requests : Status::not_connected, client_->now_);
    return;
  }
  place.request->tag.requester = this;
  session.commit(*place.request, size, client_->now_);
}

// After every input: what the machine has to say, in its order.
[[gnu::noinline]] void BlockingLock::settle() noexcept {
  ReplyTag tag;
  Compensation compensation;
  if (machine_.wants_request()) submit();
  if (machine_.poll_compensation(tag, compensation)) {
    tag.requester = this;
    // Without a slot its lease ends it.
    (void)client_->session_.compensate(tag, compensation);
  }
  for (LockEvent event = machine_.poll_event(); event != LockEvent::none; event = machine_.poll_event())
    if (event == LockEvent::protocol_doubt)
      client_->session_.fail(Status::protocol_error, "a reply of another shape than asked for");
  publish();
}

bool BlockingLock::handle_reply(const Reply& reply, Instant now) noexcept {
  if (reply.tag.operation == Operation::compensate || post_outcome_ == Status::outcome_unknown) [[unlikely]]
    note_post_outcome(reply);
  machine_.handle_reply(reply, now);
  if (fast_paths && machine_.only_said_what_was_asked()) [[likely]] {
    publish();
    return true;
  }
  settle();
  return false;
}

// The reply to what was posted, or to its repetition: there a key that is gone proves nothing.
[[gnu::noinline]] void BlockingLock::note_post_outcome(const Reply& reply) noexcept {
  const bool deleted = reply.outcome == Status::ok && reply.value.is_integer(1);
  if (reply.tag.operation == Operation::compensate) compensated_ = deleted;
  if (post_outcome_ != Status::outcome_unknown) return;
  if (reply.tag.operation == Operation::release)
    post_outcome_ = deleted ? Status::ok : reply.outcome == Status::ok ? Status::lock_lost : reply.outcome;
  else if (reply.tag.operation == Operation::compensate && deleted)
    post_outcome_ = Status::ok;
}

inline Status BlockingLock::begin() noexcept {
  if (configuration_ != Status::ok) return configuration_;
  if (const Status status = client_->begin(); status != Status::ok) return status;
  const std::uint32_t incarnation = client_->incarnation_.load();
  if (incarnation != incarnation_) [[unlikely]] {
    const bool had_hold = machine_.state() != LockState::idle;
    machine_.forget();
    publish();
    incarnation_ = incarnation;
    if (had_hold) return Status::forked;
  }
  return Status::ok;
}

// What time has done to the hold since the last call.
inline void BlockingLock::catch_up() noexcept {
  machine_.handle_timeout(client_->now_);
  if (machine_.has_output()) [[unlikely]]
    settle();
}

Status BlockingLock::begin_anew() noexcept {
  const Status status = begin();
  if (status != Status::ok && status != Status::forked) return status;
  catch_up();
  return Status::ok;
}

inline Instant BlockingLock::request_deadline() const noexcept {
  return client_->now_ + client_->config_.request_timeout;
}

// ---- Commands ----------------------------------------------------------------------------------------------------

// Sends what the machine wants and waits for its answer.
inline Status BlockingLock::finish(Status started) noexcept {
  if (started != Status::ok || machine_.wants_compensation()) [[unlikely]]
    settle();
  if (started != Status::ok) return started;
  client_->ask(*this);
  if (machine_.has_output()) [[unlikely]]
    settle();
  return machine_.status();
}

inline Status BlockingLock::attempt(Instant wait_deadline) noexcept {
  if (client_->take_cancel()) return Status::cancelled;
  if (const Status status = client_->ensure_ready(wait_deadline); status != Status::ok) return status;
  const Instant deadline = earlier(request_deadline(), wait_deadline);
  Status status = Status::ok;
  for (int asked = 0; asked == 0 || (asked == 1 && may_ask_again(status, deadline)); ++asked) {
    Token token;
    if (status = client_->draw_token(token); status != Status::ok) return status;
    if (status = machine_.acquire(token, client_->now_, deadline); status != Status::ok) return status;
    status = finish(Status::ok);
  }
  return status;
}

// True if the request failed before its first byte left and there is a connection again: then, and only then, it may
// be asked once more.
bool BlockingLock::may_ask_again(Status status, Instant deadline) noexcept {
  return status == Status::not_connected && client_->now_ < deadline && client_->ensure_ready(deadline) == Status::ok;
}

Status BlockingLock::try_acquire() noexcept {
  if (const Status status = begin_anew(); status != Status::ok) return status;
  return attempt(Instant::max());
}

Status BlockingLock::acquire(Duration wait) noexcept {
  if (wait < Duration::zero()) return Status::invalid_argument;
  if (const Status status = begin_anew(); status != Status::ok) return status;
  const Instant deadline = client_->now_ + wait;
  Duration delay = retry_delay_min;
  for (;;) {
    // The last attempt is made at the deadline, and has the time of a request; so has the only one where there is no
    // time to wait.
    const bool last = client_->now_ + timeout_min > deadline;
    const Status status = attempt(last ? request_deadline() : deadline);
    if (last || client_->now_ >= deadline || !worth_waiting(status)) return status;
    delay = delay * 2 < retry_delay_max ? delay * 2 : retry_delay_max;
    const Instant next = client_->now_ + client_->jittered(delay);
    if (!client_->sleep_until(earlier(next, deadline))) return Status::cancelled;
    catch_up();
  }
}

Status BlockingLock::renew() noexcept { return renew(client_->config_.request_timeout); }

Status BlockingLock::renew(Duration timeout) noexcept {
  if (timeout < timeout_min) return Status::invalid_argument;
  if (const Status status = begin(); status != Status::ok) return status;
  catch_up();
  const Instant deadline = client_->now_ + timeout;
  if (!machine_.held(client_->now_)) return machine_.renew(client_->now_, deadline);
  if (client_->take_cancel()) return Status::cancelled;
  if (const Status status = client_->ensure_ready(earlier(deadline, machine_.valid_until())); status != Status::ok) {
    catch_up();
    return status;
  }
  Status status = finish(machine_.renew(client_->now_, deadline));
  if (may_ask_again(status, deadline)) status = finish(machine_.renew(client_->now_, deadline));
  return status;
}

Status BlockingLock::start_release(bool posted) noexcept {
  const Status started =
      machine_.release(client_->session_.identity().native_delete, posted, client_->now_, request_deadline());
  valid_until_.store(0);  // Not held from here on, whatever the connection does.
  return started;
}

Status BlockingLock::release() noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  const Status started = start_release(false);
  // Without a connection the machine is told so by submit(), and the compensation waits for the next one.
  if (started == Status::ok) (void)client_->ensure_ready(Instant::max());
  const Status status = finish(started);
  if (status != Status::not_connected && status != Status::transport_closed) return status;
  if (started != Status::ok) return status;
  return await_compensation(status);
}

// The connection went away under a release. Its compensation is the first thing on the next connection: if that is to
// be had now, the server's word is worth waiting for. A key that was still there and ours makes it a plain release.
Status BlockingLock::await_compensation(Status status) noexcept {
  const Instant deadline = request_deadline();
  awaits_compensation_ = true;
  compensated_ = false;
  if (client_->ensure_ready(deadline) == Status::ok) client_->pump(this, deadline);
  awaits_compensation_ = false;
  return compensated_ ? Status::ok : status;
}

Status BlockingLock::post_release() noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  const Status started = start_release(true);
  if (started == Status::ok) post_outcome_ = Status::outcome_unknown;
  settle();
  if (client_->socket_ >= 0) client_->transmit();
  return started;
}

// ---- Queries -----------------------------------------------------------------------------------------------------

Status BlockingLock::remaining_on_server(Duration& remaining) noexcept {
  if (const Status status = begin_anew(); status != Status::ok) return status;
  if (client_->take_cancel()) return Status::cancelled;
  if (const Status status = client_->ensure_ready(Instant::max()); status != Status::ok) return status;
  std::int64_t milliseconds = 0;
  if (const Status status = client_->query_ttl(machine_.key(), milliseconds); status != Status::ok) return status;
  constexpr std::int64_t milliseconds_max = Duration::max().count() / 1'000'000;
  if (milliseconds == -1 || milliseconds > milliseconds_max)
    remaining = remaining_unlimited;
  else if (milliseconds <= 0)
    remaining = Duration::zero();
  else
    remaining = std::chrono::milliseconds(milliseconds);
  return Status::ok;
}

Status BlockingLock::is_locked(bool& locked) noexcept {
  Duration remaining = Duration::zero();
  const Status status = remaining_on_server(remaining);
  if (status == Status::ok) locked = remaining != Duration::zero();
  return status;
}

}  // namespace holdfast
