// SPDX-License-Identifier: MIT
//
// Session is the protocol state of one connection to one node: the queue of requests whose replies are to come, and
// their deadlines. Its Handshake says how a connection begins; its Compensations are what was asked and never answered.
// It does no I/O and reads no clock: a driver moves bytes and time.
//
//              submit()                                  poll_reply()
//     machine -----------> [ request | request | ... ] ---------------> machine
//                             poll_transmit()   receive_space()
//                                   v                 ^
//                                 the driver's socket
//
// Before a request leaves that may grant, extend or tell something, the driver looks at its socket: a receive that does
// not wait. What lies there came before the request, so it is no answer to it, and is told from one.
//
// Invariants: every reply goes to the request that asked for it, or the connection is closed. A request that may
// have run and whose reply is given up is followed, on the same connection or first on the next, by its compensation.
// Nothing is sent twice. No byte of a request leaves behind an unread reply, but of one that only lets go.
// Not thread-safe: one owner.   No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/compensations.hpp"
#include "holdfast/core/handshake.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/core/witness.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/resp_parser.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

struct Request {
  ReplyTag tag;
  Instant deadline = Instant::max();
  // Takes back what the request may do; nullptr: it does nothing that would have to be. Viewed, with what it views,
  // until the request is answered, given up or abandoned: its owner keeps it alive and as it is so long.
  const Compensation* compensation = nullptr;
  // A compare-and-delete command of the server's own. Refused, it is repeated by text, and not used again.
  bool repeatable = false;
  // A release that nobody waits for, answered by an integer as its compensation is: the session copies that, owns it
  // from the start, and repeats it until the server has answered. No deadline.
  bool posted = false;
};

struct Reply {
  ReplyTag tag{};
  // ok: `value` is the reply and no error. A server's class: `value` is the error reply. Otherwise the reply was lost:
  // not_connected (nothing was sent), transport_closed (unknown), timed_out (unknown), cancelled (unknown).
  Status outcome = Status::ok;
  bool nothing_ran = false;  // For all but ok: proven to have had no effect.
  RespValue value;           // Valid until the session's next input.
};

enum class SessionState : std::uint8_t {
  closed,       // No connection.
  handshaking,  // Connected; requests are not accepted yet.
  ready,        // Requests are accepted.
  failed,       // The driver must close the transport and call handle_closed().
};

class Session {
 public:
  // One request whose reply is to come. Storage only; the members are the session's business.
  struct InFlight {
    Request request;
    std::uint64_t first_byte = 0;  // Its place in the stream of all bytes submitted on this connection.
    Instant submitted_at;
    Status notice = Status::ok;  // Not ok: the requester is to be told that its reply was given up.
    std::uint8_t purpose = 0;
    // The slot of its compensation, or no_slot; or the command of the handshake.
    std::uint16_t detail = 0;
  };
  using CompensationSlot = Compensations::Slot;
  struct Storage {
    MutableBytes receive;  // One whole reply must fit. What is larger closes the connection: protocol_error.
    RespValue* nodes;
    std::size_t node_count;
    MutableBytes transmit;  // At least small_transmit_size. A request that is larger cannot go out.
    InFlight* in_flight;
    std::size_t in_flight_count;
    CompensationSlot* compensations;
    std::size_t compensation_count;
    MutableBytes compensation_keys;  // At least key_size_max.
  };

  // The storage need not be initialised.
  // REQUIRES: more places in flight than compensations, at least one compensation, and small_in_flight places.
  explicit Session(const Storage& storage) noexcept;
  Session(const SessionSettings& settings, const Storage& storage) noexcept : Session(storage) { configure(settings); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A. Questions.
  [[nodiscard]] SessionState state() const noexcept { return state_; }
  [[nodiscard]] bool ready() const noexcept { return state_ == SessionState::ready; }
  // Why the last connection failed or closed; ok while it is open.
  [[nodiscard]] Status failure() const noexcept { return failure_; }
  // The sentence behind failure() protocol_error, and the server's own words for its errors. Empty when there is none.
  [[nodiscard]] ByteView failure_text() const noexcept { return {failure_text_, failure_text_size_}; }
  [[nodiscard]] const ServerIdentity& identity() const noexcept { return handshake_.identity(); }
  // When bytes have come last, or the connection was made.
  [[nodiscard]] Instant last_input() const noexcept { return last_input_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return count_; }
  // Bytes that the transport has not taken yet.
  [[nodiscard]] bool unsent() const noexcept { return transmit_begin_ != transmit_end_; }
  // Whether poll_transmit() may have something. False: it has nothing.
  [[nodiscard]] bool wants_transmit() const noexcept { return unsent() || compensations_.unsent(); }
  // Something waits to be sent that must not leave before the driver has looked: poll_transmit() has nothing until it has
  // received what has arrived, polled the replies, and said handle_drained().
  [[nodiscard]] bool wants_look() const noexcept {
    return guarded_end_ > transmit_begin_ && !drained_ && state_ == SessionState::ready;
  }
  // Compensations that have not been confirmed yet.
  [[nodiscard]] std::size_t compensations_pending() const noexcept { return compensations_.pending(); }
  // Compensations that were given up since the beginning, posted releases among them: no place for them was to be had when
  // their owners went away (count_dropped()), or the server refused them for good. Their leases end what they would have.
  [[nodiscard]] std::uint32_t compensations_dropped() const noexcept { return compensations_.dropped(); }

  // For tests: what is always so between two calls, of its handshake and its compensations, too. The queue, its sums and the
  // places that are promised belong together.
  [[nodiscard]] bool invariants() const noexcept;

  // B. Inputs. `now` never goes back.
  // The transport is up. The handshake goes out at once.
  // It fails when the handshake is not done by the deadline.
  // REQUIRES: state() is closed, and poll_reply() has been polled until it was empty.
  void handle_connected(Instant now, Instant handshake_deadline) noexcept;
  // Receive into this space, then say how much came: more than nothing, since it counts as a sign of life. Empty only when
  // the session has failed or is closed.
  HOLDFAST_ONE_COPY [[nodiscard]] MutableBytes receive_space() noexcept {
    if (state_ == SessionState::closed || state_ == SessionState::failed) return {};
    return parser_.receive_space();
  }
  void handle_received(std::size_t count, Instant now) noexcept {
    if (witness_ != nullptr) [[unlikely]]
      tell_bytes(Seen::received, count);
    parser_.handle_received(count);
    last_input_ = now;
    drained_ = false;
  }
  // A receive that does not wait has just found nothing, or less than the space it was given, and what was received has
  // been polled. Good for one poll_transmit(). A reply that has begun, and that nobody asked
  // for, fails the session.
  void handle_drained() noexcept {
    drained_ = true;
    if (!parser_.idle() && !oldest_sent()) [[unlikely]]
      fail_unasked();
  }
  // The transport has taken the first `count` bytes of poll_transmit().
  void handle_transmitted(std::size_t count) noexcept {
    HOLDFAST_ASSERT(count <= transmit_end_ - transmit_begin_);
    if (witness_ != nullptr) [[unlikely]]
      tell_bytes(Seen::sent, count);
    transmit_begin_ += static_cast<std::uint32_t>(count);
    if (transmit_begin_ == transmit_end_) clear_transmit();
  }
  // Judges deadlines. Receive what has arrived and poll the replies first.
  void handle_timeout(Instant now) noexcept;
  // The transport is gone. Poll the replies: every request in flight reports its outcome.
  void handle_closed() noexcept;

  // C. Commands.
  // Settings for the next connection. REQUIRES: state() is closed.
  void configure(const SessionSettings& settings) noexcept;
  // Who is told of bytes and compensations from now on; nullptr: nobody. It outlives the session.
  void set_witness(Witness* witness) noexcept { witness_ = witness; }
  // Where to write and describe the next request; what was there before is not cleared. `request` is nullptr when
  // there is no place for it and, if `compensated`, for its compensation. Fill both in, then commit().
  struct Place {
    MutableBytes space;
    Request* request = nullptr;
  };
  [[nodiscard]] Place open(bool compensated) noexcept {
    if (!has_place(compensated)) return {};
    return {transmit_space(), &at(count_).request};
  }
  // Whether open() has a place, with space for `size` bytes, or for as many as there ever are.
  [[nodiscard]] bool has_room(bool compensated, std::size_t size) const noexcept {
    const std::size_t taken = transmit_end_ - transmit_begin_;
    return has_place(compensated) && (taken == 0 || storage_.transmit.size - taken >= size);
  }
  // The longest request that finds room at all.
  [[nodiscard]] std::size_t request_size() const noexcept { return storage_.transmit.size; }
  // REQUIRES: `request` is the place's own, `size` bytes of it stand in its space, and open() was called with
  // `compensated` where it has a compensation.
  void commit(const Request& request, std::size_t size, Instant now) noexcept;
  // The same for a request that is longer than the send buffer: its `size` bytes do not stand in its space. The driver sends
  // them itself, at once and as a whole, or else fails the session.
  // REQUIRES: the place was opened without a compensation, nothing is unsent, and handle_drained() was the last input.
  void commit_apart(const Request& request, std::size_t size, Instant now) noexcept;
  // Gives up all replies of this requester: each is reported with `why` (timed_out or cancelled), and what may have
  // run is compensated.
  void give_up(const void* requester, Status why, Instant now) noexcept;
  // The requester goes away: as give_up(), but nothing is reported to it any more. What it posted goes on.
  void abandon(const void* requester, Instant now) noexcept;
  // With fewer requests in flight, places are not short.
  [[nodiscard]] std::size_t crowd() const noexcept { return compensations_.longest_keys(); }
  // Whether compensate() has a place, however long the key: beside those that are kept, and those that are reserved.
  [[nodiscard]] bool may_compensate() const noexcept { return compensations_.has_room(); }
  // Takes back a hold that no request in flight covers. Errors: too_many_requests (its lease will end it).
  [[nodiscard]] Status compensate(const ReplyTag& tag, const Compensation& compensation) noexcept {
    return compensations_.add(tag, compensation);
  }
  // One that found no place is given up.
  void count_dropped() noexcept { compensations_.count_dropped(); }
  // The owner goes away, and waits for nobody: what is to be taken back leaves with the next poll_transmit(), also behind a
  // handshake that is not answered yet. Nothing else is asked from here on.
  void skip_handshake() noexcept {
    if (state_ == SessionState::handshaking) state_ = SessionState::ready;
  }
  // What is to be taken back and is on no way to the server; and another server takes it over. See Compensations.
  [[nodiscard]] CompensationSlot* next_unsent(CompensationSlot* after) noexcept {
    return compensations_.next_unsent(after);
  }
  [[nodiscard]] bool takes_back_for(const void* requester) const noexcept {
    return compensations_.carries_for(requester);
  }
  // How many requests in flight are this requester's; also of those whose replies it has given up.
  [[nodiscard]] std::size_t in_flight_of(const void* requester) const noexcept {
    std::size_t count = 0;
    for (std::size_t index = 0; index < count_; ++index)
      if (at(index).request.tag.requester == requester) ++count;
    return count;
  }
  [[nodiscard]] Key key_of(const CompensationSlot& slot) const noexcept { return Key(compensations_.key_of(slot)); }
  void take_over(Session& other, CompensationSlot& slot) noexcept {
    compensations_.take_over(other.compensations_, slot);
  }
  // All that `other` has to take back for this requester comes to us. False: some of it is on its way there, or has no room here.
  [[nodiscard]] bool take_along(Session& other, const void* requester) noexcept {
    if (other.takes_back_for(requester)) return false;
    CompensationSlot* slot = nullptr;
    while ((slot = other.next_unsent(slot)) != nullptr) {
      if (slot->requester != requester) continue;
      if (!may_compensate()) return false;
      take_over(other, *slot);
    }
    return true;
  }
  // What `other` has to take back whole is taken back by us, too, as far as there is room: it may not be called again. It
  // keeps it, to be the first on its next connection. Nobody hears of the outcome here. Transmits nothing by itself.
  void take_back_for(const Session& other) noexcept { compensations_.copy_whole(other.compensations_); }
  // Drops what is to be taken back: it was asked of another server than the one that answers now.
  // REQUIRES: the handshake is done, and since then nothing has been sent or submitted.
  void forget_compensations() noexcept;
  // The driver or a machine has found a reply that cannot be: the connection must close.
  void fail(Status why, ByteView text) noexcept;
  // The same of a reply whose shape was not asked for: protocol_error.
  void fail_shape() noexcept;
  // Other words for the failure that there was: the driver knows more.
  void explain(ByteView text) noexcept { note_text(text); }
  // Empties failure_text(), so that it speaks of what comes next.
  void clear_failure_text() noexcept { failure_text_size_ = 0; }
  // Forgets everything, compensations too, without a word to anybody: in a forked child, where they are the parent's.
  void forget() noexcept;

  // D. Outputs. After any call of B or C, poll each until it is empty.
  [[nodiscard]] bool poll_reply(Reply& reply, Instant now) noexcept {
    return (notices_ != 0 || !parser_.idle()) && take_next(reply, now);
  }
  [[nodiscard]] ByteView poll_transmit(Instant now) noexcept {
    if (state_ == SessionState::closed || state_ == SessionState::failed) return {};
    if (compensations_.unsent()) flush_compensations(now);
    if (wants_look()) [[unlikely]]
      return {};
    drained_ = false;
    return {storage_.transmit.data + transmit_begin_, transmit_end_ - transmit_begin_};
  }
  [[nodiscard]] Instant poll_timeout() const noexcept;  // Instant::max() when nothing is to come.

 private:
  enum class Purpose : std::uint8_t {
    request,
    detached,  // A request whose reply is consumed and thrown away.
    compensation,
    handshake
  };
  // What is left of the storage for the queue.
  struct Queue {
    MutableBytes transmit;
    InFlight* in_flight;
    std::size_t in_flight_count;
  };

  // The entry `index` behind the oldest.
  [[nodiscard]] InFlight& at(std::size_t index) const noexcept {
    const std::size_t place = first_ + index;
    return storage_.in_flight[place < storage_.in_flight_count ? place : place - storage_.in_flight_count];
  }
  InFlight& push(Purpose purpose, std::size_t size, Instant now) noexcept;
  InFlight* send(Purpose purpose, CommandLine& line, Instant now) noexcept;
  void pop() noexcept {
    if (++first_ == storage_.in_flight_count) first_ = 0;
    if (--count_ == 0) deadline_min_ = Instant::max();
  }
  HOLDFAST_ONE_COPY [[nodiscard]] bool has_place(bool compensated) const noexcept {
    const std::size_t compensations = compensated ? 1 : 0;
    return state_ == SessionState::ready && !compensations_.waiting() &&
           count_ + compensations_.reserved() + compensations < storage_.in_flight_count &&
           (!compensated || may_compensate());
  }
  [[nodiscard]] Instant stalled_at() const noexcept;
  void send_handshake(Instant now) noexcept;
  void handle_introduced(HandshakeCommand command, const RespValue& value, Instant now) noexcept;
  bool poll_notice(Reply& reply) noexcept;
  // Before the oldest request has left as a whole, nothing can be a reply to it.
  [[nodiscard]] bool oldest_sent() noexcept {
    if (count_ == 0) return false;
    if (!unsent()) [[likely]]
      return true;
    const std::uint64_t end = count_ > 1 ? at(1).first_byte : stream_end_;
    return end + (transmit_end_ - transmit_begin_) <= stream_end_;
  }
  void fail_unasked() noexcept;
  void note_error(const InFlight& entry, Reply& reply) noexcept;
  [[nodiscard]] bool take_next(Reply& reply, Instant now) noexcept;
  [[nodiscard]] bool take_reply(Reply& reply, Instant now) noexcept;
  [[nodiscard]] bool take_other(Reply& reply, Instant now) noexcept;
  bool take_error(InFlight& entry, Reply& reply) noexcept;
  [[nodiscard]] bool is(const InFlight& entry, Purpose purpose) const noexcept {
    return entry.purpose == static_cast<std::uint8_t>(purpose);
  }
  static constexpr std::uint16_t no_slot = UINT16_MAX;
  void detach(InFlight& entry, Status why) noexcept;
  [[nodiscard]] bool is_reply_to(const InFlight& detached, const RespValue& value) const noexcept;
  void adopt(InFlight& entry) noexcept;
  void carry(InFlight& entry, CompensationSlot& slot) noexcept;
  CompensationSlot& keep_for(InFlight& entry) noexcept;
  [[nodiscard]] CompensationSlot& slot_of(const InFlight& entry) const noexcept {
    return compensations_.at(entry.detail);
  }
  void drop_silent() noexcept;
  void tell_bytes(Seen what, std::size_t count) const noexcept;
  void flush_compensations(Instant now) noexcept;
  [[nodiscard]] MutableBytes transmit_space() noexcept {
    if (transmit_begin_ != 0) [[unlikely]]
      compact_transmit();
    return {storage_.transmit.data + transmit_end_, storage_.transmit.size - transmit_end_};
  }
  void compact_transmit() noexcept;
  void clear_transmit() noexcept { transmit_begin_ = transmit_end_ = guarded_end_ = 0; }
  void note_text(ByteView text) noexcept;

  // Small and often used first: their offsets fit into one byte.
  SessionState state_ = SessionState::closed;
  Status failure_ = Status::not_connected;
  std::uint8_t failure_text_size_ = 0;
  bool drained_ = false;     // The socket has been looked at, and nothing has happened since.
  std::uint32_t first_ = 0;  // Ring of storage_.in_flight.
  std::uint32_t count_ = 0;
  std::uint32_t notices_ = 0;  // Entries with a notice.
  std::uint32_t transmit_begin_ = 0;
  std::uint32_t transmit_end_ = 0;
  std::uint32_t guarded_end_ = 0;  // Of the bytes to be sent, behind the last that must not leave without a look.
  std::uint64_t stream_end_ = 0;   // Bytes submitted on this connection.
  Instant last_input_;
  Instant deadline_min_ = Instant::max();  // Not later than the first deadline; may be earlier.
  Instant handshake_deadline_ = Instant::max();
  Queue storage_;
  Compensations compensations_;
  RespParser parser_;
  Handshake handshake_;
  Witness* witness_ = nullptr;
  char failure_text_[failure_text_size_max];
};

static_assert(sizeof(Session::InFlight) <= 64, "promised: a request in flight");
static_assert(sizeof(Session) <= 768, "promised: a session without its buffers");

// Storage of one session as one object, with room for replies and requests of these sizes.
// Raw bytes: a session writes each part before it reads it, so that nothing has to be initialised here.
template <std::size_t elements, std::size_t reply_size, std::size_t transmit_size,
          std::size_t in_flight_size = in_flight_max, std::size_t compensations_size = compensations_max,
          std::size_t keys_size = compensation_keys_size>
struct SessionBuffersOf {
  alignas(RespValue) unsigned char nodes[elements * sizeof(RespValue)];
  alignas(Session::InFlight) unsigned char in_flight[in_flight_size * sizeof(Session::InFlight)];
  alignas(
      Session::CompensationSlot) unsigned char compensations[compensations_size * sizeof(Session::CompensationSlot)];
  char receive[reply_size];
  char transmit[transmit_size];
  char compensation_keys[keys_size];

  [[nodiscard]] Session::Storage storage() noexcept { return storage_of(this); }
  // The same of buffers that need not be alive yet: their owner may declare them after its session.
  [[nodiscard]] static Session::Storage storage_of(SessionBuffersOf* buffers) noexcept {
    return {{buffers->receive, sizeof buffers->receive},
            reinterpret_cast<RespValue*>(buffers->nodes),
            elements,
            {buffers->transmit, sizeof buffers->transmit},
            reinterpret_cast<Session::InFlight*>(buffers->in_flight),
            in_flight_size,
            reinterpret_cast<Session::CompensationSlot*>(buffers->compensations),
            compensations_size,
            {buffers->compensation_keys, sizeof buffers->compensation_keys}};
  }
};

// Of a connection that carries the requests of single locks: a blocking client's, or that of one server of a quorum.
using SessionBuffers = SessionBuffersOf<client_elements_max, client_reply_size_max, transmit_size_max>;
static_assert(sizeof(SessionBuffers) <= 10 * 1024, "promised: the usual buffers");
// The smallest ones that serve a Mutex.
using SmallSessionBuffers = SessionBuffersOf<small_elements, small_reply_size, small_transmit_size, small_in_flight,
                                             small_compensations, small_compensation_keys_size>;

}  // namespace holdfast
