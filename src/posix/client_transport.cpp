// SPDX-License-Identifier: MIT
//
// How the client waits: for the answer to a request, for a connection, for time.
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

#include "client_hot.hpp"
#include "hold_record_hot.hpp"
#include "holdfast/client.hpp"
#include "holdfast/detail/hold_record.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/decimal.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "poll_sockets.hpp"
#include "stream.hpp"
#include "wait_for.hpp"

namespace holdfast {

namespace {

// Each miss of a spin doubles how many receives go without one.
constexpr std::uint32_t spin_pause_first = 16;
constexpr std::uint32_t spin_pause_max = 4096;

// More follows at once.
#ifdef MSG_MORE
constexpr int unfinished = MSG_MORE;
#else
constexpr int unfinished = 0;
#endif

}  // namespace

void ClientBase::work_connection() noexcept {
  dial();
  if (now_ >= session_.poll_timeout()) {
    receive_arrived();
    session_.handle_timeout(now_);
  }
  if (!dialling() && stream_.is_open()) look_and_transmit();
  settle_connection();
  (void)handle_ready(now_);
}

// A connection whose session has failed is closed, and whoever is answered by that or before is told.
[[gnu::noinline]] void ClientBase::settle_connection() noexcept {
  if (session_.state() == SessionState::failed) close_transport();
  dispatch();
}

// What has arrived, without waiting for more. True if that is nothing.
bool ClientBase::receive_arrived() noexcept {
  const Received received = look();
  if (received == Received::nothing) [[likely]]
    return true;
  if (received == Received::closed) close_transport();
  dispatch();
  return false;
}

// After an idle while: has the server closed, or said something that nobody asked for, or is there news of it? With nobody
// waiting for a reply, nobody else notices a stall; and as long as its places are taken by what is given up, nobody can wait for
// one.
void ClientBase::probe_idle_connection() noexcept {
  wait_until(now_);
  session_.handle_timeout(now_);
  settle_connection();
  last_used_ = now_;
}

// ---- Sleeping ----------------------------------------------------------------------------------------------------

bool ClientBase::wait_until(Instant then, int extra, int extra_events) noexcept {
  const Ready ready = poll_sockets(*this, wake_, then, extra, extra_events);
  if (ready.own) {
    if (dialling())
      finish_dial();
    else
      receive_arrived();
  }
  return ready.extra;
}

// ---- Moving bytes ------------------------------------------------------------------------------------------------

void ClientBase::look_and_transmit_now() noexcept {
  while (session_.wants_look()) (void)receive_arrived();
  transmit();
}

// Polls for a while without sleeping. True if `count` is the outcome of a receive that is not "nothing yet".
bool ClientBase::spin_until_readable(MutableBytes space, std::ptrdiff_t& count) noexcept {
  const Instant until = now_ + config_.spin;
  do {
    count = stream_.receive(space, MSG_DONTWAIT);
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
ClientBase::Received ClientBase::receive(Instant deadline) noexcept {
  const MutableBytes space = session_.receive_space();
  const bool unsent = waits_to_send();
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
  int flags = MSG_DONTWAIT;
  if (!unsent && left >= Duration(receive_nanoseconds_) - config_.spin) [[likely]] {
    flags = 0;
  } else if (left > Duration::zero() && !pending()) {
    const auto events = static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN);
    if (wait_for(socket(), events, left) < 0 && errno == EINTR) {
      now_ = now();
      return Received::interrupted;
    }
  }
  return take_received(stream_.receive(space, flags));
}

inline void ClientBase::deliver(const Reply& reply) noexcept {
  if (reply.outcome == Status::moved && branched_ && reply.tag.requester != this) [[unlikely]]
    return brancher().table().take_moved(*static_cast<HoldRecord*>(reply.tag.requester), reply, *this);
  if (reply.tag.requester != this) [[likely]]
    static_cast<HoldRecord*>(reply.tag.requester)->handle_reply(reply, now_);
  else
    take_query_reply(reply);
}

void ClientBase::dispatch() noexcept {
  Reply reply;
  while (session_.poll_reply(reply, now_)) deliver(reply);
}

void ClientBase::take_query_reply(const Reply& reply) noexcept {
  query_waiting_ = false;
  query_outcome_ = reply.outcome;
  if (reply.outcome != Status::ok || query_decode_(reply.value, query_out_)) return;
  query_outcome_ = Status::protocol_error;
  session_.fail_shape();
}

inline bool ClientBase::answered(const HoldRecord* lock) const noexcept {
  if (lock != nullptr) return lock->answered();
  return !query_waiting_ && !(tending_since_ != Instant() && tended_waiting(tending_since_));
}

HOLDFAST_FLAT void ClientBase::pump(const HoldRecord* lock, Instant until) noexcept {
  // A hold that is asked about is not renewed meanwhile.
  const bool others = tended_first_ != nullptr && (tended_first_ != lock || lock->tended_next_ != nullptr);
  for (;;) {
    look_and_transmit();
    if (session_.state() == SessionState::failed) [[unlikely]]
      settle_connection();
    // Only now: what an answer calls for, a compensation, has just been sent.
    // Without a clock it is Instant::max() for ever: everything times out then, and is answered so.
    if (session_.state() == SessionState::closed || answered(lock)) return;
    if (now_ >= until && !until.never()) return;
    Instant wake = until;
    if (branched_) [[unlikely]]
      wake = brancher().table().work(*this, until);
    if (others) [[unlikely]] {
      if (tend_due()) continue;  // Renewals have the right of way over what is waited for.
      wake = earlier(wake, tend_next(renewals_leave()));
    }
    const Instant timeout = session_.poll_timeout();
    const Received received = receive(earlier(timeout, wake));
    if (received == Received::bytes) [[likely]]
      dispatch();
    else
      react(received, lock, timeout);
    // What was asked for by tend() goes on; what a lock has asked for is the lock's to give up.
    if (cancelled() && (lock != nullptr || tending_since_ != Instant())) [[unlikely]]
      return;
  }
}

[[gnu::noinline]] void ClientBase::react(Received received, const HoldRecord* lock, Instant timeout) noexcept {
  switch (received) {
    case Received::bytes: break;
    case Received::nothing:
      if (now_ >= timeout) session_.handle_timeout(now_);
      [[fallthrough]];
    case Received::interrupted:
      if (cancelled() && lock == nullptr) session_.give_up(this, Status::cancelled, now_);
      break;
    case Received::closed: close_transport(); break;
  }
  dispatch();
}

// ---- Questions of its own ----------------------------------------------------------------------------------------

Status ClientBase::ask(Arguments arguments, Decode decode, void* out) noexcept {
  if (query_waiting_) return Status::too_many_requests;
  ByteView heading;
  const bool whole = encoded_size(arguments) <= session_.request_size();
  const Status status = whole ? Node::ask(arguments, {.requester = this}, now_) : begin_pieces(arguments, heading);
  if (status != Status::ok) return status;
  query_waiting_ = true;
  query_outcome_ = Status::outcome_unknown;
  query_decode_ = decode;
  query_out_ = out;
  if (whole) return Status::ok;
  const ByteView last = arguments.end()[-1].bytes();
  if (!send_piece(heading, unfinished) || !send_piece(last, unfinished) || !send_piece("\r\n", 0)) {
    // The server could not tell where the next request begins.
    session_.fail(Status::timed_out, "a long request was not taken in time");
    close_transport();
    dispatch();
  }
  return Status::ok;
}

// A request that is longer than the send buffer leaves in pieces, at once, and nothing leaves between them: what stands before
// its last argument, which is the caller's bytes, and what stands behind. `heading` is in the send buffer.
Status ClientBase::begin_pieces(Arguments arguments, ByteView& heading) noexcept {
  look_and_transmit();
  while (session_.ready() && !receive_arrived()) {}
  if (!session_.ready()) return Status::not_connected;
  const Session::Place place = session_.open(false);
  if (place.request == nullptr || unsent()) return Status::too_many_requests;
  Argument others[arguments_max];
  std::size_t count = 0;
  for (const Argument& argument : arguments) others[count++] = argument;
  const std::size_t last = others[count - 1].bytes().size();
  others[count - 1] = ByteView();
  constexpr ByteView empty("$0\r\n\r\n");
  std::size_t size = 0;
  if (const Status status = encode_command(place.space, {others, count}, size); status != Status::ok) return status;
  char* at = place.space.data + size - empty.size();
  at = write_decimal(at + 1, std::uint64_t{last});
  *at++ = '\r';
  *at++ = '\n';
  heading = {place.space.data, static_cast<std::size_t>(at - place.space.data)};
  *place.request = {.tag = {.requester = this}, .deadline = now_ + config_.request_timeout};
  session_.commit_apart(*place.request, encoded_size(arguments), now_);
  return Status::ok;
}

// All of it, unless the server takes nothing for a request timeout.
bool ClientBase::send_piece(ByteView piece, int flags) noexcept {
  const Instant deadline = now_ + config_.request_timeout;
  const char* at = piece.data();
  for (std::size_t left = piece.size(); left != 0;) {
    const std::ptrdiff_t count = stream_.send({at, left}, MSG_DONTWAIT | flags);
    if (count >= 0) {
      at += count;
      left -= static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      now_ = now();
      if (now_ >= deadline || cancelled()) return false;
      (void)wait_for(socket(), POLLOUT, deadline - now_);
    } else if (errno != EINTR) {
      error_number_ = errno;
      return false;
    }
  }
  return true;
}

Status ClientBase::query(Arguments arguments, Decode decode, void* out) noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  make_room();
  const Status status = query_within(arguments, decode, out);
  return conclude(status);
}

Status ClientBase::query_within(Arguments arguments, Decode decode, void* out) noexcept {
  if (cancelled()) return Status::cancelled;
  if (const Status status = ensure_ready(Instant::max()); status != Status::ok) return status;
  if (query_waiting_) pump(nullptr);  // One at a time.
  if (const Status status = ask(arguments, decode, out); status != Status::ok) return status;
  pump(nullptr);
  query_waiting_ = false;
  return query_outcome_;
}

}  // namespace holdfast
