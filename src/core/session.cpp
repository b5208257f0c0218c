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

// AUTH, SELECT, CLIENT SETNAME, CLIENT ID and the identity script; then CLIENT KILL of each predecessor, and a first
// request.
constexpr std::size_t handshake_places = predecessors_max + 2;
static_assert(handshake_places >= 5);

// A compensation that the server refuses for the moment (loading, busy, read-only, ...) is tried again so often and
// so long after: about two minutes, more than any default lease.
constexpr std::uint8_t compensation_attempts_max = 60;
constexpr Duration compensation_retry_delay = 2s;

constexpr std::uint32_t delex_since = 80400;    // Redis 8.4
constexpr std::uint32_t delifeq_since = 90000;  // Valkey 9.0

// "8.4.1" as 80401; what is missing counts as 0, what is no version is 0.
std::uint32_t read_version(ByteView text) noexcept {
  std::uint32_t version = 0;
  const char* at = text.begin();
  for (int part = 0; part < 3; ++part) {
    std::uint32_t number = 0;
    for (; at != text.end() && *at != '.'; ++at) {
      if (*at < '0' || *at > '9' || number > 9) return 0;
      number = number * 10 + static_cast<std::uint32_t>(*at - '0');
    }
    if (at != text.end()) ++at;
    version = version * 100 + number;
  }
  return version;
}

// The first 64 bits; 0 of what is no hexadecimal number.
std::uint64_t read_hexadecimal(ByteView text) noexcept {
  std::uint64_t number = 0;
  for (std::size_t index = 0; index < 16; ++index) {
    const char digit = text[index];
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && (digit < 'a' || digit > 'f')) return 0;
    number = number << 4 | static_cast<std::uint64_t>(decimal ? digit - '0' : digit - 'a' + 10);
  }
  return number;
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
    : storage_(storage), settings_(settings), parser_(storage.receive, storage.nodes, storage.node_count) {
  HOLDFAST_ASSERT(storage.compensation_count >= 1 && storage.compensation_count <= UINT16_MAX &&
                  storage.compensation_keys.size >= key_size_max &&
                  storage.in_flight_count > storage.compensation_count &&
                  storage.in_flight_count >= handshake_places + 4 && storage.transmit.size >= transmit_size_max / 2);
}

void Session::configure(const SessionSettings& settings) noexcept {
  HOLDFAST_ASSERT(state_ == SessionState::closed);
  settings_ = settings;
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

// ---- The queue of requests in flight -----------------------------------------------------------------------------

inline MutableBytes Session::transmit_space() noexcept {
  if (transmit_begin_ != 0) {  // Only after a short write.
    std::memmove(storage_.transmit.data, storage_.transmit.data + transmit_begin_, transmit_end_ - transmit_begin_);
    transmit_end_ -= transmit_begin_;
    guarded_end_ = guarded_end_ > transmit_begin_ ? guarded_end_ - transmit_begin_ : 0;
    transmit_begin_ = 0;
  }
  return {storage_.transmit.data + transmit_end_, storage_.transmit.size - transmit_end_};
}

Session::Place Session::open(bool compensated) noexcept {
  if (!has_place(compensated)) return {};
  return {transmit_space(), &at(count_).request};
}

inline Session::InFlight& Session::push(Purpose purpose, std::size_t size, Instant now) noexcept {
  HOLDFAST_ASSERT(count_ < storage_.in_flight_count && size <= storage_.transmit.size - transmit_end_);
  InFlight& entry = at(count_++);
  entry.first_byte = stream_end_;
  entry.submitted_at = now;
  entry.notice = Status::ok;
  entry.purpose = static_cast<std::uint8_t>(purpose);
  transmit_end_ += static_cast<std::uint32_t>(size);
  stream_end_ += size;
  return entry;
}

// A request of the session's own, with a place that was kept for it.
Session::InFlight& Session::push_own(Purpose purpose, std::size_t size, Instant now) noexcept {
  InFlight& entry = push(purpose, size, now);
  entry.request = Request();
  return entry;
}

void Session::commit(const Request& request, std::size_t size, Instant now) noexcept {
  InFlight& entry = push(Purpose::request, size, now);
  if (!lets_go(request.tag.operation)) {
    guarded_end_ = transmit_end_;
    drained_ = false;
  }
  if (request.compensation != nullptr) {
    ++reserved_;
    if (kept_ != 0 && request.compensation->count != 0) [[unlikely]]
      supersede(*request.compensation);
  }
  if (request.posted) [[unlikely]]
    adopt(entry);
  else if (request.deadline < deadline_min_)
    deadline_min_ = request.deadline;
}

// ---- Compensations -----------------------------------------------------------------------------------------------

// The keys of the others close up, so that one which waits for long takes no more room than its own.
void Session::free_slot(CompensationSlot& slot) noexcept {
  slot.kind = nullptr;
  kept_bytes_ -= slot.key_size;
  if (--kept_ == 0) return;
  char* const gap = storage_.compensation_keys.data + slot.key_begin;
  std::memmove(gap, gap + slot.key_size, kept_bytes_ - slot.key_begin);
  for (CompensationSlot& other : slots())
    if (other.kind != nullptr && other.key_begin > slot.key_begin) other.key_begin -= slot.key_size;
}

// A hold's count is told by the newest alone: an older number that waits, or that has to be repeated, must not come
// behind it.
[[gnu::noinline]] void Session::supersede(const Compensation& newer) noexcept {
  for (CompensationSlot& slot : slots()) {
    if (slot.kind != newer.kind || slot.token.bytes() != newer.token->bytes()) continue;
    if (key_of(slot) != newer.key.bytes()) continue;
    slot.superseded = true;
    if (slot.in_flight) continue;
    --(slot.deferred ? deferred_ : unflushed_);
    free_slot(slot);
  }
}

Session::CompensationSlot& Session::keep_compensation(const ReplyTag& tag, const Compensation& compensation) noexcept {
  if (kept_ != 0) [[unlikely]]
    supersede(compensation);
  HOLDFAST_ASSERT(may_compensate());  // Reserved before the request was sent.
  CompensationSlot* free = storage_.compensations;
  while (free->kind != nullptr) ++free;
  CompensationSlot& slot = *free;
  slot.kind = compensation.kind;
  slot.count = compensation.count;
  slot.lease_milliseconds = compensation.lease_milliseconds;
  slot.tag = tag;
  slot.tag.operation = Operation::compensate;
  slot.not_before = Instant();
  slot.attempts = 0;
  slot.in_flight = false;
  slot.deferred = false;
  slot.superseded = false;
  slot.key_size = static_cast<std::uint16_t>(compensation.key.bytes().size());
  slot.key_begin = kept_bytes_;
  std::memcpy(storage_.compensation_keys.data + kept_bytes_, compensation.key.bytes().data(), slot.key_size);
  kept_bytes_ += slot.key_size;
  slot.token = *compensation.token;
  ++kept_;
  ++unflushed_;
  return slot;
}

Status Session::compensate(const ReplyTag& tag, const Compensation& compensation) noexcept {
  HOLDFAST_ASSERT(compensation.kind != nullptr && compensation.key.valid() && compensation.token != nullptr);
  if (!may_compensate()) return Status::too_many_requests;
  keep_compensation(tag, compensation);
  return Status::ok;
}

void Session::take_back_for(const Session& other) noexcept {
  for (const CompensationSlot& slot : other.slots()) {
    // A hold that goes on by a smaller count is the other's to speak for.
    if (slot.kind == nullptr || slot.count != 0) continue;
    (void)compensate({}, {slot.kind, Key(other.key_of(slot)), &slot.token, 0, slot.lease_milliseconds});
  }
}

// What is kept goes out before any other request, so that it cannot be overtaken by the next attempt.
[[gnu::noinline]] void Session::flush_compensations(Instant now) noexcept {
  if (state_ != SessionState::ready) return;
  for (CompensationSlot& slot : slots()) {
    if (unflushed_ + deferred_ == 0) return;
    if (slot.kind == nullptr || slot.in_flight || slot.not_before > now) continue;
    if (slot.deferred) {
      slot.deferred = false;
      --deferred_;
      ++unflushed_;
    }
    if (count_ == storage_.in_flight_count)
      continue;  // The others that are due wait for room as well, and for no timer.
    std::size_t size = 0;
    CommandLine line;
    slot.kind->fill(line, *slot.kind, slot.count == 0 ? Operation::release : Operation::step, RequestForm::by_text,
                    {.key = Key(key_of(slot)),
                     .token = &slot.token,
                     .lease = std::chrono::milliseconds(slot.lease_milliseconds),
                     .count = slot.count});
    if (encode_command(transmit_space(), line.view(), size) != Status::ok) continue;
    InFlight& entry = push_own(Purpose::compensation, size, now);
    entry.request.tag = slot.tag;
    carry(entry, slot);
  }
}

// The entry is the one that carries this compensation.
void Session::carry(InFlight& entry, CompensationSlot& slot) noexcept {
  entry.purpose = static_cast<std::uint8_t>(Purpose::compensation);
  entry.slot = static_cast<std::uint16_t>(&slot - storage_.compensations);
  slot.in_flight = true;
  --unflushed_;
}

void Session::handle_compensated(const InFlight& entry, const Reply& reply, Instant now) noexcept {
  CompensationSlot& slot = storage_.compensations[entry.slot];
  slot.in_flight = false;
  if (slot.superseded) {
    free_slot(slot);
    return;
  }
  if (reply.outcome != Status::ok && entry.request.repeatable) {  // Once more, as a script.
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
  if (reply.outcome != Status::ok) ++dropped_;
  free_slot(slot);
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
  carry(entry, keep_compensation(entry.request.tag, *entry.request.compensation));
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
  for (CompensationSlot& slot : slots())
    if (slot.tag.requester == requester) slot.tag.requester = nullptr;
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
  for (CompensationSlot& slot : slots()) slot.kind = nullptr;
  kept_ = kept_bytes_ = unflushed_ = deferred_ = 0;
}

void Session::forget() noexcept {
  for (CompensationSlot& slot : slots()) slot.kind = nullptr;
  first_ = count_ = reserved_ = kept_ = kept_bytes_ = unflushed_ = deferred_ = notices_ = 0;
  clear_transmit();
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
  clear_transmit();
  stream_end_ = 0;
  note_predecessor();
  identity_ = {};
  last_input_ = now;
  failure_ = Status::ok;
  failure_text_size_ = 0;
  state_ = SessionState::handshaking;
  begin_handshake(now, handshake_deadline);
}

void Session::note_predecessor() noexcept {
  previous_.asked = 0;
  if (identity_.client_id == 0 || !identity_.run_id_known) return;
  if (std::memcmp(previous_.run_id, identity_.run_id, run_id_size) != 0) previous_.count = 0;
  std::memcpy(previous_.run_id, identity_.run_id, run_id_size);
  if (previous_.count == predecessors_max) forget_predecessor();
  previous_.client_ids[previous_.count++] = identity_.client_id;
}

void Session::forget_predecessor() noexcept {
  --previous_.count;
  std::memmove(previous_.client_ids, previous_.client_ids + 1, previous_.count * sizeof previous_.client_ids[0]);
}

// Leaves `line` empty.
void Session::send(Purpose purpose, CommandLine& line, Instant now) noexcept {
  std::size_t size = 0;
  const Status status = encode_command(transmit_space(), line.view(), size);
  HOLDFAST_ASSERT(status == Status::ok);
  push_own(purpose, size, now);
  line.clear();
}

void Session::begin_handshake(Instant now, Instant deadline) noexcept {
  static_assert(user_size_max + password_size_max + client_name_size_max + scripts::server_identity.text.size() + 512 <
                    transmit_size_max / 2,
                "the whole handshake must fit");
  handshake_deadline_ = deadline;
  CommandLine line;
  if (!settings_.password.empty()) {
    line.add("AUTH");
    if (!settings_.user.empty()) line.add(settings_.user);
    send(Purpose::auth, line.add(settings_.password), now);
  }
  if (settings_.database != 0) send(Purpose::select, line.add("SELECT").add(settings_.database), now);
  if (!settings_.client_name.empty())
    send(Purpose::set_name, line.add("CLIENT").add("SETNAME").add(settings_.client_name), now);
  send(Purpose::client_id, line.add("CLIENT").add("ID"), now);
  // The last: its reply ends the handshake.
  send(Purpose::identity, line.add_script(scripts::server_identity, RequestForm::by_text).add("0"), now);
}

// AUTH and SELECT must succeed. The rest is knowledge that we can do without where the ACL refuses it.
void Session::handshake_reply(Purpose purpose, const RespValue& value, Instant now) noexcept {
  const bool needed = purpose == Purpose::auth || purpose == Purpose::select;
  if (value.is(RespKind::error)) {
    const Status status = classify_error(value.text()).status;
    if (needed || status == Status::auth_required || status == Status::auth_failed || status == Status::denied ||
        status == Status::too_many_clients || status == Status::loading) {
      fail(status, value.text());
      return;
    }
  } else if (needed && !value.is_simple("OK")) {
    fail(Status::protocol_error, "AUTH or SELECT was not answered OK");
    return;
  }
  if (purpose == Purpose::client_id && value.is(RespKind::integer) && value.integer() > 0)
    identity_.client_id = value.integer();
  if (purpose == Purpose::client_kill && previous_.asked != 0) {
    --previous_.asked;
    forget_predecessor();
  }
  if (purpose != Purpose::identity) return;

  read_identity(value);
  state_ = SessionState::ready;
  handshake_deadline_ = Instant::max();
  // What the connections before this one left in the server's socket must not run after their compensations.
  if (!identity_.run_id_known || std::memcmp(identity_.run_id, previous_.run_id, run_id_size) != 0) previous_ = {};
  if (previous_.count != 0 && previous_.client_ids[previous_.count - 1] == identity_.client_id) previous_ = {};
  for (previous_.asked = 0; previous_.asked != previous_.count; ++previous_.asked) {
    CommandLine line;
    send(Purpose::client_kill, line.add("CLIENT").add("KILL").add("ID").add(previous_.client_ids[previous_.asked]),
         now);
  }
  flush_compensations(now);
}

void Session::read_identity(const RespValue& value) noexcept {
  if (!value.is(RespKind::array) || value.count() != 6) return;
  ByteView fields[6];
  for (std::uint32_t index = 0; index < 6; ++index) {
    const RespValue& field = value.at(index);
    if (!field.is(RespKind::bulk)) return;
    fields[index] = field.text();
  }
  const auto& [run_id, uptime, redis_version, valkey_version, replication_id, standing] = fields;
  if (run_id.size() == run_id_size) {
    std::memcpy(identity_.run_id, run_id.data(), run_id_size);
    identity_.run_id_known = true;
  }
  (void)read_decimal(uptime, UINT64_MAX / 2, identity_.uptime_seconds);
  if (replication_id.size() == run_id_size) identity_.replication_id = read_hexadecimal(replication_id);
  if (!standing.empty()) {
    identity_.standing_first = standing[0];
    identity_.standing_last = standing.end()[-1];
  }
  identity_.is_valkey = !valkey_version.empty();
  identity_.version = read_version(identity_.is_valkey ? valkey_version : redis_version);
  if (!settings_.native_delete) return;
  if (identity_.is_valkey && identity_.version >= delifeq_since) identity_.native_delete = NativeDelete::delifeq;
  if (!identity_.is_valkey && identity_.version >= delex_since) identity_.native_delete = NativeDelete::delex;
}

// When the connection is given up unless something is received; Instant::max() while nothing is to come.
Instant Session::stalled_at() const noexcept {
  if (count_ == 0) return Instant::max();
  return later(storage_.in_flight[first_].submitted_at, last_input_) + settings_.stall_timeout;
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
  if (failure_ == Status::ok) failure_ = Status::transport_closed;
  state_ = SessionState::closed;
  const std::uint64_t transmitted = stream_end_ - (transmit_end_ - transmit_begin_);
  for (std::size_t index = 0; index < count_; ++index) {
    InFlight& entry = at(index);
    if (is(entry, Purpose::compensation)) {
      CompensationSlot& slot = storage_.compensations[entry.slot];
      slot.in_flight = false;
      if (slot.superseded)
        free_slot(slot);
      else
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
void Session::note_error(const InFlight& entry, const RespValue& value, Status status) noexcept {
  if (status != Status::no_script) note_text(value.text());
  if (entry.request.repeatable && (status == Status::unknown_command || status == Status::no_permission))
    identity_.native_delete = NativeDelete::none;
}

// An error reply to the oldest request. True if its requester wants to know.
[[gnu::noinline]] bool Session::take_error(InFlight& entry, Reply& reply) noexcept {
  const ServerError error = classify_error(reply.value.text());
  reply.outcome = error.status;
  reply.nothing_ran = error.nothing_ran;
  note_error(entry, reply.value, error.status);
  if (entry.request.compensation != nullptr) --reserved_;
  pop();
  return reply.tag.requester != nullptr;
}

// A reply to what is no request in force. True if somebody wants to know.
[[gnu::noinline]] bool Session::take_other(const RespValue& value, Reply& reply, Instant now) noexcept {
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
  if (purpose != Purpose::compensation) {
    pop();
    if (purpose != Purpose::detached) handshake_reply(purpose, value, now);
    return false;
  }
  if (!value.is_integer(0) && !value.is_integer(1) && !value.is(RespKind::error)) {
    fail(Status::protocol_error, "the reply to a compensation is neither 1 nor 0");
    return false;  // It stays kept, for the next connection.
  }
  reply = {.tag = entry.request.tag, .value = value};
  if (value.is(RespKind::error)) {
    reply.outcome = classify_error(value.text()).status;
    note_error(entry, value, reply.outcome);
  }
  handle_compensated(entry, reply, now);
  pop();
  return reply.tag.requester != nullptr;
}

// One value of the server belongs to the oldest request.
bool Session::take_reply(const RespValue& value, Reply& reply, Instant now) noexcept {
  if (!oldest_sent() || !is(at(0), Purpose::request)) [[unlikely]]
    return take_other(value, reply, now);
  InFlight& entry = at(0);
  reply.tag = entry.request.tag;
  reply.value = value;
  if (value.is(RespKind::error)) [[unlikely]]
    return take_error(entry, reply);
  reply.outcome = Status::ok;
  reply.nothing_ran = false;
  if (entry.request.compensation != nullptr) --reserved_;
  pop();
  return reply.tag.requester != nullptr;
}

bool Session::poll_reply(Reply& reply, Instant now) noexcept {
  for (;;) {
    if (notices_ != 0) [[unlikely]]
      return poll_notice(reply);
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
  Instant next = earlier(earlier(deadline_min_, handshake_deadline_), stalled_at());
  // What waits for room or for the handshake waits for no timer; nor does what comes behind it.
  if (deferred_ != 0 && unflushed_ == 0 && state_ == SessionState::ready)
    for (const CompensationSlot& slot : slots())
      if (slot.kind != nullptr && slot.deferred) next = earlier(next, slot.not_before);
  return next;
}

}  // namespace holdfast
