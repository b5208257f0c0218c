// SPDX-License-Identifier: MIT
//
// How the client waits: for the answer to a request, for a connection, for time.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

#include "client_hot.hpp"
#include "fast_paths.hpp"
#include "holdfast/assert.hpp"
#include "holdfast/client.hpp"
#include "holdfast/hold_record.hpp"
#include "poll_sockets.hpp"
#include "wait_for.hpp"

namespace holdfast {

namespace {

// Each miss of a spin doubles how many receives go without one.
constexpr std::uint32_t spin_pause_first = 16;
constexpr std::uint32_t spin_pause_max = 4096;

}  // namespace

void Client::work_connection() noexcept {
  dial();
  if (now_ >= session_.poll_timeout()) {
    receive_arrived();
    session_.handle_timeout(now_);
  }
  if (!dialling() && socket_ >= 0) look_and_transmit();
  if (session_.state() == SessionState::failed) close_transport();
  dispatch();
  (void)handle_ready(now_);
}

// What has arrived, without waiting for more. True if that is nothing.
bool Client::receive_arrived() noexcept {
  const Received received = look();
  if (received == Received::nothing) [[likely]]
    return true;
  if (received == Received::closed) close_transport();
  dispatch();
  return false;
}

// After an idle while: has the server closed, or said something that nobody asked for? With nobody waiting for a reply,
// nobody else notices a stall; and as long as its places are taken by what is given up, nobody can wait for one.
void Client::probe_idle_connection() noexcept {
  receive_arrived();
  session_.handle_timeout(now_);
  if (session_.state() == SessionState::failed) close_transport();
  dispatch();
  last_used_ = now_;
}

// ---- Sleeping ----------------------------------------------------------------------------------------------------

bool Client::wait_until(Instant then, int extra, short extra_events) noexcept {
  const Ready ready = poll_sockets(*this, wake_, then, extra, extra_events);
  if (ready.own) {
    if (dialling())
      finish_dial();
    else
      receive_arrived();
  }
  return ready.extra;
}

Status Client::await_place(Instant deadline) noexcept {
  while (session_.ready() && !session_.may_compensate()) {
    if (cancelled()) return Status::cancelled;
    if (now_ >= deadline) return Status::too_many_requests;
    (void)wait_until(earlier(deadline, next_timeout()));
    work();
  }
  return session_.ready() ? Status::ok : dialer_.failure();
}

// ---- Moving bytes ------------------------------------------------------------------------------------------------

void Client::look_and_transmit() noexcept {
  while (session_.wants_look()) (void)receive_arrived();
  transmit();
}

// Polls for a while without sleeping. True if `count` is the outcome of a receive that is not "nothing yet".
bool Client::spin_until_readable(MutableBytes space, std::ptrdiff_t& count) noexcept {
  const Instant until = now_ + config_.spin;
  do {
    count = ::recv(socket_, space.data, space.size, MSG_DONTWAIT);
    if (count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
      spin_pause_next_ = 0;
      return true;
    }
  } while (now() < until);
  // Where the reply needs the core that we spin on, every spin misses: the pauses grow until they cost nothing.
  spin_pause_next_ = spin_pause_next_ == 0 ? spin_pause_first : spin_pause_next_ * 2;
  if (spin_pause_next_ > spin_pause_max) spin_pause_next_ = spin_pause_max;
  spin_pause_ = spin_pause_next_;
  return false;
}

// Receives what comes before the deadline. Arrived bytes are taken also when it has passed.
Client::Received Client::receive(Instant deadline) noexcept {
  const MutableBytes space = session_.receive_space();
  const bool unsent = session_.unsent();
  std::ptrdiff_t count = 0;
  if (config_.spin != spin_off && !unsent && now_ < deadline) {
    if (spin_pause_ != 0) {
      --spin_pause_;
    } else {
      if (spin_until_readable(space, count)) return take_received(count);
      now_ = now();
    }
  }
  const Duration left = deadline - now_;
  if (!unsent && left >= receive_timeout_ - config_.spin) [[likely]]
    return take_received(::recv(socket_, space.data, space.size, 0));
  if (left > Duration::zero()) {
    const auto events = static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN);
    if (wait_for(socket_, events, left) < 0 && errno == EINTR) {
      now_ = now();
      return Received::interrupted;
    }
  }
  return take_received(::recv(socket_, space.data, space.size, MSG_DONTWAIT));
}

inline void Client::deliver(const Reply& reply) noexcept {
  if (reply.tag.requester != this) [[likely]]
    (void)static_cast<HoldRecord*>(reply.tag.requester)->handle_reply(reply, now_);
  else
    take_query_reply(reply);
}

void Client::dispatch() noexcept {
  Reply reply;
  while (session_.poll_reply(reply, now_)) deliver(reply);
}

void Client::take_query_reply(const Reply& reply) noexcept {
  query_waiting_ = false;
  query_outcome_ = reply.outcome;
  if (reply.outcome != Status::ok || query_decode_(reply.value, query_out_)) return;
  query_outcome_ = Status::protocol_error;
  session_.fail(Status::protocol_error, "a reply of another shape than asked for");
}

inline bool Client::answered(const HoldRecord* lock) const noexcept {
  if (lock != nullptr) return lock->answered();
  return !query_waiting_ && !(tending_since_ != Instant() && tended_waiting(tending_since_));
}

// The usual case: nothing else is in flight, and the reply comes whole with the first receive. One send, one receive,
// and no look at any timer, since the socket's own timeout is the request's. The moment that anything is not as usual,
// the request is committed to the session's queue, and the loop goes on from there; without fast paths it always is.
void Client::ask(HoldRecord& lock) noexcept {
  LockMachine& machine = lock.machine_;
  ByteView bytes;
  // A hold that is asked about is not renewed meanwhile.
  const bool others = tended_first_ != nullptr && (tended_first_ != &lock || lock.tended_next_ != nullptr);
  const bool renewals_wait = !others || now_ + receive_timeout_ < tend_next();
  Request* request = nullptr;
  if (fast_paths && straight_ && !ttl_wanted_ && renewals_wait && session_.quiet() &&
      machine.straight(now_, receive_timeout_)) [[likely]] {
    const bool release = machine.wants_release();
    if (release || receive_arrived()) [[likely]] {
      request = &session_.straight_request(release);
      bytes = machine.poll_prepared(*request);
    }
  }
  if (request == nullptr || bytes.empty()) [[unlikely]] {
    // A reply of before, read on the way here, may have had it submitted already.
    if (machine.wants_request()) lock.submit();
    if (ttl_wanted_)
      if (const Status status = ask_remaining(machine, ttl_); status != Status::ok) query_outcome_ = status;
    pump(&lock);
    return;
  }
  request->tag.requester = &lock;
  const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) [[unlikely]] {
    session_.commit_sent(bytes, 0, now_);
    handle_sent(sent);
    pump(&lock);
    return;
  }
  const MutableBytes space = session_.receive_space();
  const ssize_t count = ::recv(socket_, space.data, space.size, 0);
  if (count <= 0) [[unlikely]] {
    session_.commit_sent(bytes, bytes.size(), now_);
    react(nothing_received(count), &lock, session_.poll_timeout());
    pump(&lock);
    return;
  }
  const Instant asked_at = now_;
  if (machine.state() != LockState::releasing) now_ = now();  // When a release is confirmed changes nothing.
  last_used_ = now_;
  Reply reply;
  if (!session_.take_short_reply(static_cast<std::size_t>(count), now_, reply.value)) [[unlikely]] {
    session_.handle_received(static_cast<std::size_t>(count), now_);
    const ParseResult result = session_.parse_reply(reply.value);
    if (result != ParseResult::value || !session_.drained() || reply.value.is(RespKind::error)) {
      session_.commit_sent(bytes, bytes.size(), asked_at);
      ask_on(lock, result, reply.value);
      return;
    }
  }
  reply.tag = request->tag;
  if (!lock.handle_reply(reply, now_)) [[unlikely]]
    pump(&lock);
}

// What was sent straight stands in the queue now, and what was received, of which one value may have been parsed, is
// dealt with as ever.
[[gnu::noinline]] inline void Client::ask_on(HoldRecord& lock, ParseResult result, RespValue value) noexcept {
  Reply reply;
  now_ = now();
  if (result == ParseResult::value && session_.take_reply(value, reply, now_)) deliver(reply);
  dispatch();
  pump(&lock);
}

void Client::pump(const HoldRecord* lock, Instant until) noexcept {
  for (;;) {
    look_and_transmit();
    if (session_.state() == SessionState::failed) {
      close_transport();
      dispatch();
    }
    // Only now: what an answer calls for, a compensation, has just been sent.
    // Without a clock it is Instant::max() for ever: everything times out then, and is answered so.
    const bool over = now_ >= until && until != Instant::max();
    if (session_.state() == SessionState::closed || answered(lock) || over) return;
    Instant wake = until;
    if (tended_first_ != nullptr) [[unlikely]] {
      const bool stuck = session_.unsent();
      tend_due();  // Renewals have the right of way over what is waited for.
      if (!stuck && session_.unsent()) continue;
      wake = earlier(wake, tend_next());
    }
    const Instant timeout = session_.poll_timeout();
    react(receive(earlier(timeout, wake)), lock, timeout);
    if (tending_since_ != Instant() && cancelled()) return;  // What was asked for goes on.
  }
}

[[gnu::noinline]] void Client::react(Received received, const HoldRecord* lock, Instant timeout) noexcept {
  switch (received) {
    case Received::bytes: break;
    case Received::nothing:
      if (now_ >= timeout) session_.handle_timeout(now_);
      [[fallthrough]];
    case Received::interrupted:
      if (cancelled())
        session_.give_up(lock == nullptr ? static_cast<const void*>(this) : lock, Status::cancelled, now_);
      break;
    case Received::closed: close_transport(); break;
  }
  dispatch();
}

// ---- Questions of its own ----------------------------------------------------------------------------------------

inline Status Client::await_query(Status asked, Decode decode, void* out) noexcept {
  if (asked != Status::ok) return asked;
  query_waiting_ = true;
  query_outcome_ = Status::outcome_unknown;
  query_decode_ = decode;
  query_out_ = out;
  return Status::ok;
}

Status Client::ask(const CommandLine& line, Decode decode, void* out) noexcept {
  if (query_waiting_) return Status::too_many_requests;
  return await_query(Node::ask(line, {.requester = this}, now_), decode, out);
}

Status Client::query(const CommandLine& line, Decode decode, void* out) noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  make_room();
  const Status status = query_within(line, decode, out);
  return conclude(status, status == Status::ok);
}

Status Client::query_within(const CommandLine& line, Decode decode, void* out) noexcept {
  if (cancelled()) return Status::cancelled;
  if (const Status status = ensure_ready(Instant::max()); status != Status::ok) return status;
  if (query_waiting_) pump(nullptr);  // One at a time.
  if (const Status status = ask(line, decode, out); status != Status::ok) return status;
  pump(nullptr);
  query_waiting_ = false;
  return query_outcome_;
}

namespace {

bool decode_ttl(const RespValue& reply, void* out) noexcept {
  if (!reply.is(RespKind::integer)) return false;
  *static_cast<std::int64_t*>(out) = reply.integer();
  return true;
}

}  // namespace

Status Client::ask_remaining(const LockMachine& machine, std::int64_t& milliseconds) noexcept {
  if (query_waiting_) return Status::too_many_requests;
  return await_query(Node::ask_remaining(machine, {.requester = this}, now_), decode_ttl, &milliseconds);
}

}  // namespace holdfast
