// SPDX-License-Identifier: MIT
#include "holdfast/session.hpp"

#include "decimal.hpp"
#include "holdfast/assert.hpp"
#include "holdfast/lock_kind.hpp"
#include "holdfast/resp_encoder.hpp"
#include "holdfast/server_error.hpp"
#include "scripts.hpp"

namespace holdfast {

namespace {

// AUTH, SELECT, CLIENT SETNAME, CLIENT ID, the identity script, CLIENT KILL, and a first request.
constexpr std::size_t handshake_places = 6;

// A compensation that the server refuses for the moment (loading, busy, read-only, ...) is tried again so often and
// so long after: about two minutes, more than any default lease.
constexpr std::uint8_t compensation_attempts_max = 60;
constexpr Duration compensation_retry_delay = 2s;

constexpr std::uint32_t delex_since = 80400;    // Redis 8.4
constexpr std::uint32_t delifeq_since = 90000;  // Valkey 9.0

// "8.4.1" as 80401; what is missing counts as 0, what is no version is 0.
std::uint32_t read_version(ByteView text) noexcept {
  std::uint32_t parts[3] = {};
  std::size_t part = 0;
  for (const char byte : text) {
    if (byte == '.') {
      if (++part == 3) break;
      continue;
    }
    if (byte < '0' || byte > '9' || parts[part] > 9) return 0;
    parts[part] = parts[part] * 10 + static_cast<std::uint32_t>(byte - '0');
  }
  return parts[0] * 10000 + parts[1] * 100 + parts[2];
}

// Refusals that pass by themselves.
bool transient(Status status) noexcept {
  return status == Status::loading || status == Status::busy_script || status == Status::read_only ||
         status == Status::stale_replica || status == Status::too_few_replicas || status == Status::disk_error ||
         status == Status::out_of_memory || status == Status::try_again || status == Status::cluster_down;
}

}  // namespace

// ---- Construction and questions ----------------------------------------------------------------------------------

Session::Session(const SessionSettings& settings, const Storage& storage) noexcept
    : settings_(settings), storage_(storage), parser_(storage.receive, storage.nodes, storage.node_count) {
  HOLDFAST_ASSERT(storage.compensation_count >= 1 && storage.compensation_count <= UINT8_MAX);
  HOLDFAST_ASSERT(storage.in_flight_count >= 2 * storage.compensation_count);
  HOLDFAST_ASSERT(storage.in_flight_count >= handshake_places + 4);
  HOLDFAST_ASSERT(storage.transmit.size >= transmit_size_max / 2);
}

void Session::configure(const SessionSettings& settings) noexcept {
  HOLDFAST_ASSERT(state_ == SessionState::closed);
  settings_ = settings;
}

std::size_t Session::compensations_pending() const noexcept { return kept_; }

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

// ---- The queue of requests in flight -----------------------------------------------------------------------------

Session::InFlight& Session::at(std::size_t index) noexcept {
  std::size_t place = first_ + index;
  if (place >= storage_.in_flight_count) place -= storage_.in_flight_count;
  return storage_.in_flight[place];
}

MutableBytes Session::transmit_space() noexcept {
  if (transmit_begin_ != 0) {  // Only after a short write.
    std::memmove(storage_.transmit.data, storage_.transmit.data + transmit_begin_, transmit_end_ - transmit_begin_);
    transmit_end_ -= transmit_begin_;
    transmit_begin_ = 0;
  }
  return {storage_.transmit.data + transmit_end_, storage_.transmit.size - transmit_end_};
}

Session::Place Session::open(bool compensated) noexcept {
  if (state_ != SessionState::ready || unflushed_ != 0) return {};
  const std::size_t compensations = compensated ? 1 : 0;
  if (count_ + reserved_ + compensations >= storage_.in_flight_count) return {};
  if (compensated && kept_ + reserved_ >= storage_.compensation_count) return {};
  return {transmit_space(), &at(count_).request};
}

Session::InFlight& Session::push(Purpose purpose, std::size_t size, Instant now) noexcept {
  HOLDFAST_ASSERT(count_ < storage_.in_flight_count && size <= storage_.transmit.size - transmit_end_);
  InFlight& entry = at(count_++);
  entry.first_byte = stream_end_;
  entry.submitted_at = now;
  entry.notice = Status::ok;
  entry.purpose = static_cast<std::uint8_t>(purpose);
  transmit_end_ += size;
  stream_end_ += size;
  return entry;
}

void Session::commit(const Request& request, std::size_t size, Instant now) noexcept {
  push(Purpose::request, size, now);
  if (request.compensation != nullptr) ++reserved_;
  if (request.posted) [[unlikely]] adopt(at(count_ - 1));
  else if (request.deadline < deadline_min_) deadline_min_ = request.deadline;
}

void Session::commit_sent(ByteView bytes, std::size_t sent, Instant asked_at) noexcept {
  HOLDFAST_ASSERT(count_ == 0 && bytes.size() <= storage_.transmit.size);
  std::memcpy(storage_.transmit.data, bytes.data(), bytes.size());
  commit(quiet_request(), bytes.size(), asked_at);
  handle_transmitted(sent);
}

// ---- Compensations -----------------------------------------------------------------------------------------------

Session::CompensationSlot& Session::keep_compensation(const ReplyTag& tag, const Compensation& compensation) noexcept {
  for (std::size_t index = 0; index < storage_.compensation_count; ++index) {
    CompensationSlot& slot = storage_.compensations[index];
    if (slot.encode != nullptr) continue;
    slot.encode = compensation.encode;
    slot.tag = tag;
    slot.tag.operation = Operation::compensate;
    slot.not_before = Instant();
    slot.attempts = 0;
    slot.in_flight = false;
    slot.deferred = false;
    slot.key_size = static_cast<std::uint16_t>(compensation.key.bytes().size());
    std::memcpy(slot.key, compensation.key.bytes().data(), slot.key_size);
    slot.token = *compensation.token;
    ++kept_;
    ++unflushed_;
    return slot;
  }
  assertion_failed(__FILE_NAME__, __LINE__);  // Reserved before the request was sent.
}

Status Session::compensate(const ReplyTag& tag, const Compensation& compensation) noexcept {
  HOLDFAST_ASSERT(compensation.encode != nullptr && compensation.key.valid() && compensation.token != nullptr);
  if (kept_ + reserved_ >= storage_.compensation_count) return Status::too_many_requests;
  keep_compensation(tag, compensation);
  return Status::ok;
}

// What is kept goes out before any other request, so that it cannot be overtaken by the next attempt.
[[gnu::noinline]] void Session::flush_compensations(Instant now) noexcept {
  if (state_ != SessionState::ready) return;
  for (std::size_t index = 0; index < storage_.compensation_count && unflushed_ + deferred_ != 0; ++index) {
    CompensationSlot& slot = storage_.compensations[index];
    if (slot.encode == nullptr || slot.in_flight || slot.not_before > now) continue;
    if (slot.deferred) {
      slot.deferred = false;
      --deferred_;
      ++unflushed_;
    }
    if (count_ == storage_.in_flight_count) return;
    std::size_t size = 0;
    if (slot.encode(transmit_space(), Key({slot.key, slot.key_size}), slot.token, size) != Status::ok) return;
    InFlight& entry = push(Purpose::compensation, size, now);
    entry.request = Request();
    entry.request.tag = slot.tag;
    entry.slot = static_cast<std::uint8_t>(index);
    slot.in_flight = true;
    --unflushed_;
  }
}

void Session::handle_compensated(const InFlight& entry, const Reply& reply, Instant now) noexcept {
  CompensationSlot& slot = storage_.compensations[entry.slot];
  slot.in_flight = false;
  if (reply.outcome != Status::ok && entry.request.native) {  // Once more, as a script.
    ++unflushed_;
    return;
  }
  if (reply.outcome != Status::ok && transient(reply.outcome) && ++slot.attempts < compensation_attempts_max) {
    // Others need not wait for it: the server refuses what they would ask, too.
    slot.not_before = now + compensation_retry_delay;
    slot.deferred = true;
    ++deferred_;
    return;
  }
  slot.encode = nullptr;
  --kept_;
}

// ---- Giving up ---------------------------------------------------------------------------------------------------

// The reply will be consumed and thrown away; what the request may have done is taken back right behind it.
// `why` is told to the requester, where there is one.
void Session::detach(InFlight& entry, Status why) noexcept {
  entry.purpose = static_cast<std::uint8_t>(Purpose::detached);
  if (entry.request.tag.requester != nullptr) {
    entry.notice = why;
    ++notices_;
  }
  entry.request.deadline = Instant::max();
  if (entry.request.compensation == nullptr) return;
  --reserved_;
  keep_compensation(entry.request.tag, *entry.request.compensation);
  entry.request.compensation = nullptr;
}

// A posted release is a compensation in all but name: it is one, with key and token of its own.
void Session::adopt(InFlight& entry) noexcept {
  HOLDFAST_ASSERT(entry.request.compensation != nullptr);
  --reserved_;
  CompensationSlot& slot = keep_compensation(entry.request.tag, *entry.request.compensation);
  slot.in_flight = true;
  --unflushed_;
  entry.purpose = static_cast<std::uint8_t>(Purpose::compensation);
  entry.slot = static_cast<std::uint8_t>(&slot - storage_.compensations);
  entry.request.compensation = nullptr;
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
  for (std::size_t index = 0; index < storage_.compensation_count; ++index)
    if (storage_.compensations[index].tag.requester == requester)
      storage_.compensations[index].tag.requester = nullptr;
  if (state_ == SessionState::closed) drop_silent();
  flush_compensations(now);
}

void Session::forget() noexcept {
  for (std::size_t index = 0; index < storage_.compensation_count; ++index)
    storage_.compensations[index].encode = nullptr;
  first_ = count_ = reserved_ = kept_ = unflushed_ = deferred_ = notices_ = 0;
  transmit_begin_ = transmit_end_ = 0;
  deadline_min_ = Instant::max();
  identity_ = {};
  previous_ = {};
  parser_.reset();
  state_ = SessionState::closed;
  failure_ = Status::not_connected;
  failure_text_size_ = 0;
}

// ---- The life of a connection ------------------------------------------------------------------------------------

void Session::handle_connected(Instant now, Instant handshake_deadline) noexcept {
  HOLDFAST_ASSERT(state_ == SessionState::closed && count_ == 0);
  parser_.reset();
  transmit_begin_ = 0;
  transmit_end_ = 0;
  stream_end_ = 0;
  if (identity_.client_id != 0 && identity_.run_id_known) previous_ = identity_;
  identity_ = {};
  last_input_ = now;
  failure_ = Status::ok;
  failure_text_size_ = 0;
  state_ = SessionState::handshaking;
  begin_handshake(now, handshake_deadline);
}

void Session::begin_handshake(Instant now, Instant deadline) noexcept {
  const auto send = [&](Purpose purpose, const CommandLine& line) {
    std::size_t size = 0;
    const Status status = encode_command(transmit_space(), line.view(), size);
    HOLDFAST_ASSERT(status == Status::ok);
    push(purpose, size, now).request = Request{};
    ++handshake_left_;
  };
  static_assert(user_size_max + password_size_max + client_name_size_max + scripts::server_identity.text.size() + 512 <
                    transmit_size_max / 2,
                "the whole handshake must fit");
  handshake_left_ = 0;
  handshake_deadline_ = deadline;
  if (!settings_.password.empty()) {
    CommandLine line;
    line.add("AUTH");
    if (!settings_.user.empty()) line.add(settings_.user);
    send(Purpose::auth, line.add(settings_.password));
  }
  if (settings_.database != 0) send(Purpose::select, CommandLine().add("SELECT").add(settings_.database));
  if (!settings_.client_name.empty())
    send(Purpose::set_name, CommandLine().add("CLIENT").add("SETNAME").add(settings_.client_name));
  send(Purpose::client_id, CommandLine().add("CLIENT").add("ID"));
  send(Purpose::identity, CommandLine().add_script(scripts::server_identity, RequestForm::by_text).add("0"));
}

// AUTH and SELECT must succeed. The rest is knowledge that we can do without where the ACL refuses it.
void Session::handshake_reply(Purpose purpose, const RespValue& value, Instant now) noexcept {
  const ServerError error =
      value.is(RespKind::error) ? classify_error(value.text()) : ServerError{Status::ok, false};
  if (error.status == Status::auth_required || error.status == Status::auth_failed ||
      error.status == Status::denied || error.status == Status::too_many_clients ||
      error.status == Status::loading) {
    fail(error.status, value.text());
    return;
  }
  switch (purpose) {
    case Purpose::auth:
    case Purpose::select:
      if (error.status != Status::ok) {
        fail(error.status, value.text());
        return;
      }
      if (!value.is_simple("OK")) {
        fail(Status::protocol_error, "AUTH or SELECT was not answered by OK");
        return;
      }
      break;
    case Purpose::client_id:
      if (value.is(RespKind::integer) && value.integer() > 0) identity_.client_id = value.integer();
      break;
    case Purpose::identity: read_identity(value); break;
    case Purpose::set_name:
    case Purpose::client_kill:
    case Purpose::request:
    case Purpose::detached:
    case Purpose::compensation: break;
  }
  if (purpose == Purpose::client_kill || --handshake_left_ != 0) return;

  state_ = SessionState::ready;
  handshake_deadline_ = Instant::max();
  // What the connection before this one left in the server's socket must not run after its compensation.
  const bool same_node = identity_.run_id_known && previous_.run_id_known &&
                         std::memcmp(identity_.run_id, previous_.run_id, run_id_size) == 0;
  if (same_node && previous_.client_id != identity_.client_id) {
    std::size_t size = 0;
    CommandLine line;
    line.add("CLIENT").add("KILL").add("ID").add(previous_.client_id);
    if (encode_command(transmit_space(), line.view(), size) == Status::ok)
      push(Purpose::client_kill, size, now).request = Request{};
  }
  previous_ = {};
  flush_compensations(now);
}

void Session::read_identity(const RespValue& value) noexcept {
  if (!value.is(RespKind::array) || value.count() != 4) return;
  for (std::uint32_t index = 0; index < 4; ++index)
    if (!value.at(index).is(RespKind::bulk)) return;
  const ByteView run_id = value.at(0).text();
  if (run_id.size() == run_id_size) {
    std::memcpy(identity_.run_id, run_id.data(), run_id_size);
    identity_.run_id_known = true;
  }
  (void)read_decimal(value.at(1).text(), UINT64_MAX / 2, identity_.uptime_seconds);
  identity_.is_valkey = !value.at(3).text().empty();
  identity_.version = read_version(value.at(identity_.is_valkey ? 3 : 2).text());
  if (!settings_.native_delete) return;
  if (identity_.is_valkey && identity_.version >= delifeq_since) identity_.native_delete = NativeDelete::delifeq;
  if (!identity_.is_valkey && identity_.version >= delex_since) identity_.native_delete = NativeDelete::delex;
}

void Session::handle_timeout(Instant now) noexcept {
  if (state_ == SessionState::handshaking && now >= handshake_deadline_) {
    fail(Status::timed_out, "the server did not finish the handshake");
    return;
  }
  if (now >= deadline_min_) {
    deadline_min_ = Instant::max();
    for (std::size_t index = 0; index < count_; ++index) {
      InFlight& entry = at(index);
      if (!is(entry, Purpose::request)) continue;
      if (entry.request.deadline <= now) {
        detach(entry, Status::timed_out);
      } else if (entry.request.deadline < deadline_min_) {
        deadline_min_ = entry.request.deadline;
      }
    }
  }
  if (count_ != 0) {
    const Instant since = at(0).submitted_at < last_input_ ? last_input_ : at(0).submitted_at;
    if (now - since >= settings_.stall_timeout)
      fail(Status::timed_out, "nothing was received for the stall timeout");
  }
  flush_compensations(now);
}

void Session::handle_closed() noexcept {
  if (state_ == SessionState::closed) return;
  if (failure_ == Status::ok) failure_ = Status::transport_closed;
  state_ = SessionState::closed;
  const std::uint64_t transmitted = stream_end_ - (transmit_end_ - transmit_begin_);
  for (std::size_t index = 0; index < count_; ++index) {
    InFlight& entry = at(index);
    if (is(entry, Purpose::compensation)) {
      storage_.compensations[entry.slot].in_flight = false;
      ++unflushed_;
    } else if (is(entry, Purpose::request)) {
      const bool sent = entry.first_byte < transmitted;
      if (!sent && entry.request.compensation != nullptr) {
        --reserved_;
        entry.request.compensation = nullptr;
      }
      detach(entry, sent ? Status::transport_closed : Status::not_connected);
    }
  }
  transmit_begin_ = 0;
  transmit_end_ = 0;
  deadline_min_ = Instant::max();
  drop_silent();
}

// On a closed connection no reply will come: what is left of the queue are notices for poll_reply().
void Session::drop_silent() noexcept {
  std::size_t kept = 0;
  for (std::size_t index = 0; index < count_; ++index)
    if (at(index).notice != Status::ok) at(kept++) = at(index);
  count_ = kept;
}

// ---- Outputs -----------------------------------------------------------------------------------------------------

[[gnu::noinline]] bool Session::poll_notice(Reply& reply) noexcept {
  for (std::size_t index = 0; index < count_; ++index) {
    InFlight& entry = at(index);
    if (entry.notice == Status::ok) continue;
    reply.tag = entry.request.tag;
    reply.outcome = entry.notice;
    reply.nothing_ran = entry.notice == Status::not_connected;
    reply.value = RespValue();
    entry.notice = Status::ok;
    --notices_;
    if (state_ == SessionState::closed) pop();  // No reply will come for it.
    return true;
  }
  HOLDFAST_ASSERT(false);
  return false;
}

// An error reply to the oldest request. True if its requester wants to know.
[[gnu::noinline]] bool Session::take_error(InFlight& entry, Reply& reply) noexcept {
  const ServerError error = classify_error(reply.value.text());
  reply.outcome = error.status;
  reply.nothing_ran = error.nothing_ran;
  note_text(reply.value.text());
  if (entry.request.native && (error.status == Status::unknown_command || error.status == Status::no_permission))
    identity_.native_delete = NativeDelete::none;
  if (entry.request.compensation != nullptr) --reserved_;
  pop();
  return reply.tag.requester != nullptr;
}

// A reply to what is no request in force. True if somebody wants to know.
[[gnu::noinline]] bool Session::take_other(const RespValue& value, Reply& reply, Instant now) noexcept {
  if (count_ == 0) {
    const ServerError error =
        value.is(RespKind::error) ? classify_error(value.text()) : ServerError{Status::server_error, false};
    const bool farewell = error.status == Status::too_many_clients || error.status == Status::denied;
    fail(farewell ? error.status : Status::protocol_error,
         farewell ? value.text() : ByteView("a reply that nobody asked for"));
    return false;
  }
  InFlight& entry = at(0);
  const auto purpose = static_cast<Purpose>(entry.purpose);
  if (purpose == Purpose::detached) {
    pop();
    return false;
  }
  if (purpose != Purpose::compensation) {
    pop();
    handshake_reply(purpose, value, now);
    return false;
  }
  if (!value.is(RespKind::integer) && !value.is(RespKind::error)) {
    fail(Status::protocol_error, "a compensation was not answered by an integer");
    return false;  // It stays kept, for the next connection.
  }
  reply.tag = entry.request.tag;
  reply.value = value;
  reply.outcome = Status::ok;
  reply.nothing_ran = false;
  if (value.is(RespKind::error)) {
    reply.outcome = classify_error(value.text()).status;
    note_text(value.text());
    if (entry.request.native) identity_.native_delete = NativeDelete::none;
  }
  handle_compensated(entry, reply, now);
  pop();
  return reply.tag.requester != nullptr;
}

// One value of the server belongs to the oldest request.
bool Session::take_reply(const RespValue& value, Reply& reply, Instant now) noexcept {
  if (count_ == 0 || !is(at(0), Purpose::request)) [[unlikely]] return take_other(value, reply, now);
  InFlight& entry = at(0);
  reply.tag = entry.request.tag;
  reply.value = value;
  if (value.is(RespKind::error)) [[unlikely]] return take_error(entry, reply);
  reply.outcome = Status::ok;
  reply.nothing_ran = false;
  if (entry.request.compensation != nullptr) --reserved_;
  pop();
  return reply.tag.requester != nullptr;
}

bool Session::poll_reply(Reply& reply, Instant now) noexcept {
  for (;;) {
    if (notices_ != 0) [[unlikely]] return poll_notice(reply);
    if (state_ != SessionState::ready && state_ != SessionState::handshaking) return false;
    RespValue value;
    const ParseResult result = parser_.poll_value(value);
    if (result != ParseResult::value) {
      if (result == ParseResult::invalid) fail(Status::protocol_error, ByteView(std::string_view(parser_.error())));
      return false;
    }
    if (take_reply(value, reply, now)) return true;
  }
}

Instant Session::poll_timeout() const noexcept {
  if (state_ == SessionState::closed || state_ == SessionState::failed) return Instant::max();
  Instant next = deadline_min_ < handshake_deadline_ ? deadline_min_ : handshake_deadline_;
  if (count_ != 0) {
    const Instant submitted = storage_.in_flight[first_].submitted_at;
    const Instant stall = (submitted < last_input_ ? last_input_ : submitted) + settings_.stall_timeout;
    if (stall < next) next = stall;
  }
  if (unflushed_ + deferred_ != 0) {
    for (std::size_t index = 0; index < storage_.compensation_count; ++index) {
      const CompensationSlot& slot = storage_.compensations[index];
      if (slot.encode != nullptr && !slot.in_flight && slot.not_before < next) next = slot.not_before;
    }
  }
  return next;
}

}  // namespace holdfast
