// SPDX-License-Identifier: MIT
#include "holdfast/core/session.hpp"

#include "holdfast/core/lock_kind.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "holdfast/proto/server_error.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

static_assert(small_in_flight >= predecessors_max + 2, "kills, a first request and its compensation must fit");
static_assert(small_in_flight >= 5, "AUTH, SELECT, CLIENT SETNAME, CLIENT ID and the identity script must fit");

}  // namespace

// ---- Construction and questions ----------------------------------------------------------------------------------

Session::Session(const Storage& storage) noexcept
    : storage_{storage.transmit, storage.in_flight, storage.in_flight_count},
      compensations_(storage.compensations, storage.compensation_count, storage.compensation_keys),
      parser_(storage.receive, storage.nodes, storage.node_count) {
  HOLDFAST_ASSERT(storage.compensation_count >= 1 && storage.compensation_count <= UINT16_MAX &&
                  storage.compensation_keys.size >= key_size_max &&
                  storage.in_flight_count > storage.compensation_count && storage.in_flight_count >= small_in_flight &&
                  storage.transmit.size >= small_transmit_size);
}

void Session::configure(const SessionSettings& settings) noexcept {
  HOLDFAST_ASSERT(state_ == SessionState::closed);
  handshake_.configure(settings);
}

void Session::note_text(ByteView text) noexcept {
  const std::size_t size = text.size() < sizeof failure_text_ ? text.size() : sizeof failure_text_;
  if (size != 0) std::memcpy(failure_text_, text.data(), size);
  failure_text_size_ = static_cast<std::uint8_t>(size);
}

[[gnu::noinline]] void Session::fail(Status why, ByteView text) noexcept {
  if (state_ == SessionState::closed || state_ == SessionState::failed) return;  // The first reason is the true one.
  state_ = SessionState::failed;
  failure_ = why;
  note_text(text);
}

[[gnu::noinline]] void Session::fail_shape() noexcept {
  fail(Status::protocol_error, "a reply of another shape than asked for");
}

[[gnu::noinline]] void Session::fail_unasked() noexcept {
  fail(Status::protocol_error, "a reply that nobody asked for");
}

// ---- The queue of requests in flight -----------------------------------------------------------------------------

// Only after a short write.
[[gnu::noinline]] void Session::compact_transmit() noexcept {
  std::memmove(storage_.transmit.data, storage_.transmit.data + transmit_begin_, transmit_end_ - transmit_begin_);
  transmit_end_ -= transmit_begin_;
  guarded_end_ = guarded_end_ > transmit_begin_ ? guarded_end_ - transmit_begin_ : 0;
  transmit_begin_ = 0;
}

inline Session::InFlight& Session::push(Purpose purpose, std::size_t size, Instant now) noexcept {
  HOLDFAST_ASSERT(count_ < storage_.in_flight_count && size <= storage_.transmit.size - transmit_end_);
  if (const Interview* const other = handshake_.settings().interview; other != nullptr) [[unlikely]]
    size = other->table->complete(*other, handshake_.identity(), transmit_space(), size);
  InFlight& entry = at(count_++);
  entry.first_byte = stream_end_;
  entry.submitted_at = now;
  entry.notice = Status::ok;
  entry.purpose = static_cast<std::uint8_t>(purpose);
  transmit_end_ += static_cast<std::uint32_t>(size);
  stream_end_ += size;
  return entry;
}

// A request of the session's own, that stands in transmit_space(). nullptr where there is no room for it yet.
Session::InFlight* Session::send(Purpose purpose, CommandLine& line, Instant now) noexcept {
  std::size_t size = 0;
  if (count_ == storage_.in_flight_count || line.finish(size) != Status::ok) return nullptr;
  InFlight& entry = push(purpose, size, now);
  entry.request = Request();
  return &entry;
}

void Session::commit(const Request& request, std::size_t size, Instant now) noexcept {
  InFlight& entry = push(Purpose::request, size, now);
  if (!lets_go(request.tag.operation)) {
    guarded_end_ = transmit_end_;
    drained_ = false;
  }
  if (request.compensation != nullptr) {
    compensations_.reserve();
    if (request.compensation->count != 0) [[unlikely]]
      compensations_.supersede(*request.compensation);
  }
  if (request.posted) [[unlikely]]
    adopt(entry);
  else if (request.deadline < deadline_min_)
    deadline_min_ = request.deadline;
}

void Session::commit_apart(const Request& request, std::size_t size, Instant now) noexcept {
  HOLDFAST_ASSERT(!unsent() && drained_ && size != 0 && request.compensation == nullptr && !request.posted);
  (void)push(Purpose::request, 0, now);
  stream_end_ += size;
  if (witness_ != nullptr) [[unlikely]]
    tell_bytes(Seen::sent, size);
  deadline_min_ = earlier(deadline_min_, request.deadline);
}

// ---- Compensations -----------------------------------------------------------------------------------------------

// What is kept goes out before any other request, so that it cannot be overtaken by the next attempt.
[[gnu::noinline]] void Session::flush_compensations(Instant now) noexcept {
  if (state_ != SessionState::ready) return;
  CompensationSlot* slot = nullptr;
  for (;;) {
    CommandLine line(transmit_space());
    slot = compensations_.poll_transmit(slot, now, line);
    if (slot == nullptr) return;
    InFlight* const entry = send(Purpose::compensation, line, now);
    if (entry == nullptr)
      continue;  // Others that are due may be smaller; or they wait for room, too, and for no timer.
    entry->request.tag = slot->tag();
    carry(*entry, *slot);
    if (witness_ != nullptr) [[unlikely]]
      witness_->tell(Seen::compensated, compensations_.key_of(*slot));
  }
}

// The entry is the one that carries this compensation.
void Session::carry(InFlight& entry, CompensationSlot& slot) noexcept {
  entry.detail = compensations_.index_of(slot);
  compensations_.handle_sent(slot);
}

// What the entry may have done is taken back by a compensation of its own.
Session::CompensationSlot& Session::keep_for(InFlight& entry) noexcept {
  compensations_.unreserve();
  CompensationSlot& slot = compensations_.keep(entry.request.tag, *entry.request.compensation);
  entry.request.compensation = nullptr;
  return slot;
}

// ---- Giving up ---------------------------------------------------------------------------------------------------

// The reply will be consumed and thrown away, if it is one; what the request may have done is taken back right after it.
// `why` is told to the requester, where there is one.
void Session::detach(InFlight& entry, Status why) noexcept {
  entry.purpose = static_cast<std::uint8_t>(Purpose::detached);
  if (entry.request.tag.requester != nullptr) {
    entry.notice = why;
    ++notices_;
  }
  // Who gives up turns to something else: what has not left by then waits for a look of its own.
  drained_ = false;
  entry.request.deadline = Instant::max();
  entry.detail = no_slot;
  if (entry.request.compensation != nullptr) entry.detail = compensations_.index_of(keep_for(entry));
}

// Nobody wants the reply to what was given up. One of a shape that its kind does not know is no reply to it all the same, and
// then every later one would be taken for another's.
bool Session::is_reply_to(const InFlight& detached, const RespValue& value) const noexcept {
  if (detached.detail == no_slot || value.is(RespKind::error)) return true;
  const CompensationSlot& slot = compensations_.at(detached.detail);
  if (slot.generation != detached.request.tag.generation) return true;  // Another's by now.
  LockFacts facts;
  return slot.kind->decode(*slot.kind, detached.request.tag.operation, value, facts) != Verdict::unexpected;
}

// A posted release is a compensation in all but name: it is one, with key and token of its own.
void Session::adopt(InFlight& entry) noexcept {
  HOLDFAST_ASSERT(entry.request.compensation != nullptr);
  entry.purpose = static_cast<std::uint8_t>(Purpose::compensation);
  carry(entry, keep_for(entry));
}

void Session::give_up(const void* requester, Status why, Instant now) noexcept {
  for (std::size_t index = 0; index < count_; ++index) {
    InFlight& entry = at(index);
    if (!is(entry, Purpose::request)) continue;
    if (entry.request.tag.requester != requester) continue;
    detach(entry, why);
  }
  flush_compensations(now);
}

void Session::abandon(const void* requester, Instant now) noexcept {
  for (std::size_t index = 0; index < count_; ++index) {
    InFlight& entry = at(index);
    if (entry.request.tag.requester != requester) continue;
    if (is(entry, Purpose::request)) detach(entry, Status::cancelled);
    if (entry.notice != Status::ok) {
      entry.notice = Status::ok;
      --notices_;
    }
    entry.request.tag.requester = nullptr;
  }
  compensations_.abandon(requester);
  if (state_ == SessionState::closed) drop_silent();
  flush_compensations(now);
}

void Session::forget_compensations() noexcept {
  for (; count_ != 0 && is(at(count_ - 1), Purpose::compensation); --count_) {
    const std::uint64_t size = stream_end_ - at(count_ - 1).first_byte;
    HOLDFAST_ASSERT(size <= transmit_end_ - transmit_begin_);
    transmit_end_ -= static_cast<std::uint32_t>(size);
    stream_end_ -= size;
  }
  compensations_.clear();
}

void Session::forget() noexcept {
  compensations_.forget();
  handshake_.forget();
  first_ = count_ = notices_ = 0;
  clear_transmit();
  deadline_min_ = Instant::max();
  parser_.reset();
  state_ = SessionState::closed;
  failure_ = Status::not_connected;
  failure_text_size_ = 0;
}

// ---- The life of a connection ------------------------------------------------------------------------------------

void Session::handle_connected(Instant now, Instant handshake_deadline) noexcept {
  HOLDFAST_ASSERT(state_ == SessionState::closed && count_ == 0);
  parser_.reset();
  clear_transmit();
  stream_end_ = 0;
  last_input_ = now;
  failure_ = Status::ok;
  failure_text_size_ = 0;
  state_ = SessionState::handshaking;
  handshake_deadline_ = handshake_deadline;
  handshake_.begin();
  send_handshake(now);
}

void Session::send_handshake(Instant now) noexcept {
  constexpr std::size_t beside = 152;  // The names of five commands, two numbers, and what stands around each.
  static_assert(
      user_size_max + password_size_max + client_name_size_max + scripts::server_identity.text.size() + beside <=
              transmit_size_max &&
          small_texts_size + scripts::server_identity.text.size() + beside <= small_transmit_size,
      "the whole handshake must fit");
  for (;;) {
    CommandLine line(transmit_space());
    const HandshakeCommand command = handshake_.poll_command(line);
    if (command == HandshakeCommand::none) return;
    InFlight* const entry = send(Purpose::handshake, line, now);
    HOLDFAST_ASSERT(entry != nullptr);
    entry->detail = static_cast<std::uint16_t>(command);
  }
}

void Session::handle_introduced(HandshakeCommand command, const RespValue& value, Instant now) noexcept {
  const Status status = handshake_.handle_reply(command, value);
  if (status != Status::ok) return fail(status, Handshake::failure_text(value));
  if (command != HandshakeCommand::identity) return;
  state_ = SessionState::ready;
  handshake_deadline_ = Instant::max();
  // What the connections before this one left in the server's socket must not run after their compensations.
  send_handshake(now);
  flush_compensations(now);
}

// When the connection is given up unless something is received; Instant::max() while nothing is to come.
inline Instant Session::stalled_at() const noexcept {
  if (count_ == 0) return Instant::max();
  return later(storage_.in_flight[first_].submitted_at, last_input_) + handshake_.settings().stall_timeout;
}

void Session::handle_timeout(Instant now) noexcept {
  if (state_ == SessionState::handshaking && now >= handshake_deadline_) {
    fail(Status::timed_out, "the handshake took too long");
    return;
  }
  if (now >= deadline_min_) {
    deadline_min_ = Instant::max();
    for (std::size_t index = 0; index < count_; ++index) {
      InFlight& entry = at(index);
      if (!is(entry, Purpose::request)) continue;
      if (entry.request.deadline <= now) {
        detach(entry, Status::timed_out);
      } else {
        deadline_min_ = earlier(deadline_min_, entry.request.deadline);
      }
    }
  }
  if (now >= stalled_at()) fail(Status::timed_out, "nothing was received for too long");
  flush_compensations(now);
}

void Session::handle_closed() noexcept {
  if (state_ == SessionState::closed) return;
  if (failure_ == Status::ok) {
    failure_ = Status::transport_closed;
    if (state_ == SessionState::handshaking)
      note_text("it ended before the handshake was over: does the server want TLS?");
  }
  state_ = SessionState::closed;
  const std::uint64_t transmitted = stream_end_ - (transmit_end_ - transmit_begin_);
  for (std::size_t index = 0; index < count_; ++index) {
    InFlight& entry = at(index);
    if (is(entry, Purpose::compensation)) {
      compensations_.handle_lost(slot_of(entry));
    } else if (is(entry, Purpose::request)) {
      const bool sent = entry.first_byte < transmitted;
      if (!sent && entry.request.compensation != nullptr) {
        compensations_.unreserve();
        entry.request.compensation = nullptr;
      }
      detach(entry, sent ? Status::transport_closed : Status::not_connected);
    }
  }
  clear_transmit();
  deadline_min_ = Instant::max();
  drop_silent();
}

// On a closed connection no reply will come: what is left of the queue are notices for poll_reply().
void Session::drop_silent() noexcept {
  std::uint32_t kept = 0;
  for (std::size_t index = 0; index < count_; ++index)
    if (at(index).notice != Status::ok) at(kept++) = at(index);
  count_ = kept;
}

// ---- Outputs -----------------------------------------------------------------------------------------------------

[[gnu::noinline]] bool Session::poll_notice(Reply& reply) noexcept {
  std::size_t index = 0;
  while (at(index).notice == Status::ok) {
    ++index;
    HOLDFAST_ASSERT(index < count_);
  }
  InFlight& entry = at(index);
  reply.tag = entry.request.tag;
  reply.outcome = entry.notice;
  reply.nothing_ran = entry.notice == Status::not_connected;
  reply.value = RespValue();
  entry.notice = Status::ok;
  --notices_;
  if (state_ == SessionState::closed) pop();  // No reply will come for it.
  return true;
}

// A native command that the server does not know, or the user may not run, is not used again on this connection. That the
// server does not know a script is nobody's failure: it is asked with its text.
void Session::note_error(const InFlight& entry, Reply& reply) noexcept {
  const ByteView text = reply.value.text();
  const ServerError error = classify_error(text);
  reply.nothing_ran = error.nothing_ran;
  Status status = error.status;
  if (status != Status::no_script) note_text(text);
  if (entry.request.repeatable && (status == Status::unknown_command || status == Status::no_permission))
    handshake_.handle_native_refused();
  if (Interview* const other = handshake_.settings().interview; other != nullptr) [[unlikely]]
    status = other->table->doubt(*other, *this, status);
  reply.outcome = status;
}

// An error reply to the oldest request. True if its requester wants to know.
[[gnu::noinline]] bool Session::take_error(InFlight& entry, Reply& reply) noexcept {
  note_error(entry, reply);
  if (entry.request.compensation != nullptr) compensations_.unreserve();
  pop();
  return reply.tag.requester != nullptr;
}

// A reply to what is no request in force. True if somebody wants to know.
[[gnu::noinline]] bool Session::take_other(Reply& reply, Instant now) noexcept {
  const RespValue& value = reply.value;
  if (Interview* const other = handshake_.settings().interview; other != nullptr) [[unlikely]]
    if (other->table->overhear(*other, *this, value)) return false;
  if (!oldest_sent()) {
    const Status status = value.is(RespKind::error) ? classify_error(value.text()).status : Status::server_error;
    if (status == Status::too_many_clients || status == Status::denied)
      fail(status, value.text());
    else
      fail_unasked();
    return false;
  }
  InFlight& entry = at(0);
  const auto purpose = static_cast<Purpose>(entry.purpose);
  if (purpose == Purpose::detached && !is_reply_to(entry, value)) {
    fail_shape();
    return false;
  }
  if (purpose != Purpose::compensation) {
    const auto command = static_cast<HandshakeCommand>(entry.detail);
    pop();
    if (purpose == Purpose::handshake) handle_introduced(command, value, now);
    return false;
  }
  if (!value.is_integer(0) && !value.is_integer(1) && !value.is(RespKind::error)) {
    fail(Status::protocol_error, "the reply to a compensation is neither 1 nor 0");
    return false;  // It stays kept, for the next connection.
  }
  reply.tag = entry.request.tag;
  reply.outcome = Status::ok;
  if (value.is(RespKind::error)) note_error(entry, reply);
  reply.nothing_ran = false;
  compensations_.handle_reply(slot_of(entry), reply.outcome, entry.request.repeatable, now);
  pop();
  return reply.tag.requester != nullptr;
}

// One value of the server belongs to the oldest request. True if somebody wants to know.
inline bool Session::take_reply(Reply& reply, Instant now) noexcept {
  InFlight& entry = storage_.in_flight[first_];
  if (!oldest_sent() || !is(entry, Purpose::request)) [[unlikely]]
    return take_other(reply, now);
  reply.tag = entry.request.tag;
  if (reply.value.is(RespKind::error)) [[unlikely]]
    return take_error(entry, reply);
  reply.outcome = Status::ok;
  reply.nothing_ran = false;
  if (entry.request.compensation != nullptr) compensations_.unreserve();
  pop();
  return reply.tag.requester != nullptr;
}

bool Session::take_next(Reply& reply, Instant now) noexcept {
  for (;;) {
    if (notices_ != 0) [[unlikely]]
      return poll_notice(reply);
    if (state_ != SessionState::ready && state_ != SessionState::handshaking) return false;
    const ParseResult result = parser_.poll_value(reply.value);
    if (result != ParseResult::value) {
      if (result == ParseResult::invalid) fail(Status::protocol_error, ByteView(std::string_view(parser_.error())));
      return false;
    }
    if (take_reply(reply, now)) return true;
  }
}

Instant Session::poll_timeout() const noexcept {
  if (state_ == SessionState::closed || state_ == SessionState::failed) return Instant::max();
  const Instant next = earlier(deadline_min_, stalled_at());
  if (state_ == SessionState::handshaking) return earlier(next, handshake_deadline_);
  // What waits for room or for the handshake waits for no timer; nor does what comes after it.
  return compensations_.unsent() ? earlier(next, compensations_.poll_timeout()) : next;
}

// ---- What a witness is told --------------------------------------------------------------------------------------

[[gnu::noinline]] void Session::tell_bytes(Seen what, std::size_t count) const noexcept {
  witness_->tell(what, {}, Status::ok, static_cast<std::int64_t>(count));
}

// ---- What is always so -------------------------------------------------------------------------------------------

bool Session::invariants() const noexcept {
  const bool open = state_ == SessionState::ready || state_ == SessionState::handshaking;
  const std::uint32_t unsent = transmit_end_ - transmit_begin_;
  if (!compensations_.invariants() || !handshake_.invariants()) return false;
  if (open != (failure_ == Status::ok) || (state_ == SessionState::handshaking && handshake_.done())) return false;
  if (first_ >= storage_.in_flight_count || count_ > storage_.in_flight_count) return false;
  if (transmit_begin_ > transmit_end_ || transmit_end_ > storage_.transmit.size || guarded_end_ > transmit_end_ ||
      unsent > stream_end_ || failure_text_size_ > sizeof failure_text_)
    return false;

  std::uint32_t notices = 0;
  std::uint32_t compensated = 0;
  std::uint32_t sent = 0;
  std::size_t kills = 0;
  HandshakeCommand last = HandshakeCommand::none;
  for (std::size_t index = 0; index < count_; ++index) {
    const InFlight& entry = at(index);
    if (entry.first_byte >= stream_end_ || (index != 0 && entry.first_byte <= at(index - 1).first_byte)) return false;
    if (entry.notice != Status::ok) ++notices;
    if (entry.request.compensation != nullptr) ++compensated;
    switch (static_cast<Purpose>(entry.purpose)) {
      case Purpose::request:
        if (entry.notice != Status::ok || entry.request.posted || entry.request.deadline < deadline_min_) return false;
        break;
      case Purpose::detached:
        if (entry.request.compensation != nullptr) return false;
        break;
      case Purpose::compensation:
        // Each is carried by one request, which nobody else gives up.
        if (entry.notice != Status::ok || !slot_of(entry).carried()) return false;
        for (std::size_t other = 0; other < index; ++other)
          if (is(at(other), Purpose::compensation) && at(other).detail == entry.detail) return false;
        ++sent;
        break;
      case Purpose::handshake: {
        const auto command = static_cast<HandshakeCommand>(entry.detail);
        if (command == HandshakeCommand::client_kill) ++kills;
        if (command <= last && command != HandshakeCommand::client_kill) return false;
        last = command;
        break;
      }
    }
  }
  if (notices != notices_ || compensated != compensations_.reserved() || sent != compensations_.in_flight())
    return false;
  if (state_ == SessionState::closed) return count_ == notices_ && unsent == 0;
  if (!open) return true;
  // Until it is done, the reply to the identity is to come; from then on those of the predecessors.
  const bool introduced = last == HandshakeCommand::none || last == HandshakeCommand::client_kill;
  return introduced == handshake_.done() && kills == handshake_.kills_in_flight();
}

}  // namespace holdfast
