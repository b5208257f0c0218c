// SPDX-License-Identifier: MIT
//
// Subscriber is the protocol state of one subscription connection: who waits for the release of which lock, what the
// server has confirmed, and who was woken. It does no I/O and reads no clock: a driver moves bytes and time.
//
//     enter(key) -> SUBSCRIBE -> confirmed() -> begin_try(), a try on another connection, end_try() -> woken()? -> ...
//                                                                                       leave() -> UNSUBSCRIBE
//
// A message is a hint, never a grant: it wakes whom the Announcement of its channel's waiters says. A new connection
// subscribes anew and then wakes all, since messages may have been lost. A waiter that was woken and leaves without the
// lock passes the wake on; where messages count, also one that leaves with it and was woken once more meanwhile.
//
// Invariants: a reply belongs to the oldest command that has none, or the connection is closed. A channel is subscribed
// while it has a waiter, and not otherwise, once what is owed has been sent: SUBSCRIBE and UNSUBSCRIBE are written by
// poll_transmit(), as its buffer has room. A channel of the client's own stays subscribed while its place is not needed.
// A wake is with a waiter, or was settled by an answer of the server.
//
// Cost: who waits for a channel is found by a hash of its name, in chains whose links stand in the places themselves. So a
// message costs the same with four waiters and with ten thousand. The hash has no seed: names are the program's own, and
// whoever chose them badly would wait longer, nothing else. Only a connection that comes or goes looks at every place.
// Not thread-safe: one owner.   No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/announcement.hpp"
#include "holdfast/core/derived_name.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/core/witness.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/proto/resp_parser.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class Topology;

// Views must outlive the subscriber; none is longer than limits.hpp says.
struct SubscriberSettings {
  ByteView user{};                                 // Empty: AUTH with the password alone.
  ByteView password{};                             // Empty: no AUTH.
  ByteView client_name{};                          // Empty: no CLIENT SETNAME.
  Duration stall_timeout = stall_timeout_default;  // A command without a reply for so long: the connection is closed.
  // Says which channels belong to a slot, and are subscribed by SSUBSCRIBE; nullptr: none.
  const Topology* shards = nullptr;
  Duration heartbeat = max_poll_default;  // Nothing received for so long, while somebody waits: PING.
  Witness* witness = nullptr;             // Who is told of bytes; nullptr: nobody.
};

enum class SubscriberState : std::uint8_t {
  closed,  // No connection.
  open,    // Commands are sent, replies and messages come.
  failed,  // The driver must close the transport and call handle_closed().
};

class Subscriber {
 public:
  // One waiter's place. Storage only; the members are the subscriber's business.
  struct Waiter {
    const Token* token;     // Of an addressed one, by which it waits.
    void* owner = nullptr;  // The driver's own.
    // Each a place in the table, counted in bytes from 1; 0: none.
    std::uint32_t first = 0;  // Of all whose channel has the hash that stands for this place, the one that came first.
    std::uint32_t next = 0;   // Behind this one in its chain, or among those that are free.
    std::uint32_t previous = 0;    // In its chain; of the first: the last.
    std::uint32_t queued[2] = {};  // The next in each Queue, the last one's is its own.
    // Asked; or the place of the command that asks, behind these. A place that is not taken keeps it until its UNSUBSCRIBE has
    // been written.
    std::uint8_t asked = 0;
    bool taken = false;
    bool woken = false;      // A message came since the last begin_try().
    bool owes_wake = false;  // It has taken a wake that no answer of the server has settled.
    bool missed = false;     // It was confirmed or refused on an earlier connection: messages may have been lost since.
    char wakes_one = '\0';   // Of its announcement.
    char wakes_all = '\0';
    bool counts = false;
    bool addressed = false;  // Also of a place that is not taken: its subscription stays.
    DerivedName channel;
  };
  struct Storage {
    MutableBytes receive;  // message_size_max is right.
    RespValue* nodes;      // message_elements_max of them are.
    std::size_t node_count;
    MutableBytes transmit;  // At least subscriber_transmit_size_max.
    Waiter* waiters;        // Default-initialised.
    std::size_t waiter_count;
  };

  // The storage need not be initialised.
  Subscriber(const SubscriberSettings& settings, const Storage& storage) noexcept;
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  // A. Questions.
  [[nodiscard]] SubscriberState state() const noexcept { return state_; }
  // Why the last connection failed or closed; ok while it is open.
  [[nodiscard]] Status failure() const noexcept { return failure_; }
  // The server's own words, or the sentence behind failure() protocol_error or timed_out; empty when there is none.
  // Valid until the next connection.
  [[nodiscard]] ByteView failure_text() const noexcept { return failure_text_; }
  [[nodiscard]] bool has_waiters() const noexcept { return waiting_ != 0; }
  // The server has granted a subscription on this connection.
  [[nodiscard]] bool established() const noexcept { return established_; }
  // From this on, no message for the waiter is missed.
  [[nodiscard]] bool confirmed(const Waiter& waiter) const noexcept {
    return state_ == SubscriberState::open && waiter.asked == is_confirmed;
  }
  // A channel of the client's own is subscribed: who enters it before its first try misses nothing of that.
  [[nodiscard]] bool stands() const noexcept;
  // A message came since the last begin_try(): try now.
  [[nodiscard]] bool woken(const Waiter& waiter) const noexcept { return waiter.woken; }
  // The server refuses the subscription (ACL): nothing will wake the waiter.
  [[nodiscard]] bool refused(const Waiter& waiter) const noexcept { return waiter.asked == is_refused; }

  // B. Inputs from the wire and the clock. `now` never goes back.
  // REQUIRES: state() is closed. Sends the handshake, and a SUBSCRIBE for every channel that is waited for.
  void handle_connected(Instant now) noexcept;
  // Receive into this space, then say how much came. Empty only when the connection has failed or is closed.
  [[nodiscard]] MutableBytes receive_space() noexcept {
    if (state_ != SubscriberState::open) return {};
    return parser_.receive_space();
  }
  // Replies and messages are dealt with at once.
  void handle_received(std::size_t count, Instant now) noexcept;
  // The transport has taken the first `count` bytes of poll_transmit().
  void handle_transmitted(std::size_t count) noexcept {
    HOLDFAST_ASSERT(count <= unsent());
    tell_bytes(Seen::sent, count);
    transmit_begin_ += static_cast<std::uint32_t>(count);
    if (transmit_begin_ == transmit_end_) transmit_begin_ = transmit_end_ = 0;
  }
  // Receive what has arrived first.
  void handle_timeout(Instant now) noexcept;
  // The transport is gone. Waiters stay, unconfirmed; each that was confirmed or refused before is woken when another
  // connection has confirmed its channel.
  void handle_closed() noexcept;

  // C. Commands.
  // Settings for the next connection. REQUIRES: state() is closed.
  void configure(const SubscriberSettings& settings) noexcept;
  // A place in the table for a waiter for the release of this lock, which is announced so; nullptr when the table is full:
  // poll then. REQUIRES: key.valid().
  [[nodiscard]] Waiter* enter(const Announcement& announcement, Key key, Instant now) noexcept;
  // A message over a channel of the client's own wakes this waiter if it is the token as it is then. REQUIRES:
  // the token outlives its place.
  static void address(Waiter& waiter, const Token& token) noexcept {
    if (waiter.addressed) waiter.token = &token;
  }
  // Before a try is sent: what was said so far is settled by it.
  void begin_try(Waiter& waiter) noexcept;
  // The server answered that somebody else holds the lock: the wake that led to the try is used up.
  void end_try(Waiter& waiter) noexcept;
  // Goes away, with or without the lock; the place is free again. REQUIRES, as all with a waiter: its place is taken.
  void leave(Waiter& waiter, bool with_lock) noexcept;
  // Forgets everything without a word to anybody: in a forked child. Every place is free then; nobody leaves it.
  void forget() noexcept;

  // D. Outputs. After any call of B or C.
  // What is to be sent: writes what is owed, as far as there is room. Valid until the next call of any member but the
  // questions.
  [[nodiscard]] ByteView poll_transmit(Instant now) noexcept {
    if (state_ != SubscriberState::open) return {};
    if (queues_[owed].first != 0) flush(now);
    return {storage_.transmit.data + transmit_begin_, unsent()};
  }
  [[nodiscard]] Instant poll_timeout() const noexcept;  // Instant::max() when nothing is to come.
  // The next of the waiters that were woken, confirmed, refused or cut off since they were named last; nullptr: none is left.
  // So a driver with many of them need not look at each. Who does not poll this loses nothing.
  [[nodiscard]] Waiter* poll_stirred() noexcept;

  // For tests: what is always so between two calls. Every place is free or in the chain of its channel, by age.
  [[nodiscard]] bool invariants() const noexcept;

 private:
  enum class Command : std::uint8_t { auth, set_name, subscribe, unsubscribe, ping };
  // One command whose reply is to come.
  struct Asked {
    std::uint32_t tag;  // What it is and, as a hash, of which channel.
    std::uint32_t end;  // Its place in the stream of all bytes written, modulo 2^32.
  };
  // The handshake and, of each waiter of the usual table, a SUBSCRIBE, an UNSUBSCRIBE and the next SUBSCRIBE.
  static constexpr std::uint32_t asked_max = 16;
  static_assert(asked_max >= 2 + 3 * waiters_max && (asked_max & (asked_max - 1)) == 0);

  struct Waiters {
    Waiter* first;
    Waiter* last;
    [[nodiscard]] Waiter* begin() const noexcept { return first; }
    [[nodiscard]] Waiter* end() const noexcept { return last; }
  };
  [[nodiscard]] Waiters waiters() const noexcept {
    return {storage_.waiters, storage_.waiters + storage_.waiter_count};
  }
  // Waiter::asked: it has not been on this connection, or the server has answered. From `pending` on the answer is to come.
  static constexpr std::uint8_t unasked = 0;
  static constexpr std::uint8_t is_refused = 1;
  static constexpr std::uint8_t is_confirmed = 2;
  static constexpr std::uint8_t pending = 3;
  // First in, first out, over Waiter::queued.
  struct Queue {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  static constexpr int owed = 0;     // To whom, or after whom, a SUBSCRIBE or UNSUBSCRIBE may be owed.
  static constexpr int stirred = 1;  // Whom poll_stirred() will name.

  [[nodiscard]] std::uint32_t place_of(const Waiter& waiter) const noexcept {
    return static_cast<std::uint32_t>(reinterpret_cast<const char*>(&waiter) -
                                      reinterpret_cast<const char*>(storage_.waiters)) +
           1;
  }
  [[nodiscard]] Waiter& at(std::uint32_t place) const noexcept {
    return *reinterpret_cast<Waiter*>(reinterpret_cast<char*>(storage_.waiters) + (place - 1));
  }
  // Where the chain of the channel begins whose tag this is, whatever the command.
  [[nodiscard]] std::uint32_t& chain_of(std::uint32_t tag) const noexcept {
    return storage_.waiters[(tag >> 3) % storage_.waiter_count].first;
  }
  [[nodiscard]] std::uint32_t& chain_of(ByteView channel) const noexcept {
    return chain_of(tag_of(Command::subscribe, channel));
  }
  // Of the channel, from this place of its chain on; nullptr: there is none.
  [[nodiscard]] Waiter* find(ByteView channel, std::uint32_t place) const noexcept;
  void release(Waiter& waiter, std::uint32_t& first) noexcept;
  void push(int queue, Waiter& waiter) noexcept;
  [[nodiscard]] Waiter* pop(int queue) noexcept;
  void empty_table() noexcept;
  [[nodiscard]] std::uint32_t unsent() const noexcept { return transmit_end_ - transmit_begin_; }
  [[nodiscard]] static std::uint32_t tag_of(Command command, ByteView channel) noexcept;
  // The place is free, or would be.
  [[nodiscard]] static bool unused(const Waiter& waiter) noexcept {
    return !waiter.taken && waiter.asked <= is_refused;
  }
  bool send(Command command, ByteView name, ByteView first, ByteView second, Instant now) noexcept;
  void flush(Instant now) noexcept;
  void wake(ByteView channel, ByteView payload) noexcept;
  void handle_value(const RespValue& value) noexcept;
  void handle_unasked(const RespValue& value) noexcept;
  void handle_error(ByteView line, Command command) noexcept;
  void settle(bool granted) noexcept;
  [[nodiscard]] bool sharded(ByteView channel) const noexcept;
  void tell_bytes(Seen what, std::size_t count) const noexcept {
    if (settings_.witness != nullptr) [[unlikely]]
      settings_.witness->tell(what, {}, Status::ok, static_cast<std::int64_t>(count));
  }
  void clear() noexcept;
  void fail(Status why, ByteView text) noexcept;

  // Small and often used first: their offsets fit into one byte.
  SubscriberState state_ = SubscriberState::closed;
  Status failure_ = Status::not_connected;
  bool established_ = false;
  std::uint32_t waiting_ = 0;  // Places taken.
  std::uint32_t transmit_begin_ = 0;
  std::uint32_t transmit_end_ = 0;
  std::uint32_t stream_end_ = 0;  // Bytes written on this connection, modulo 2^32.
  std::uint64_t sent_ = 0;        // Commands written on this connection: the number of the newest.
  std::uint64_t answered_ = 0;    // Replies to them.
  std::uint32_t free_ = 0;        // The first place that is.
  Queue queues_[2];
  Instant asked_at_;  // When the first command was written that found none before it unanswered.
  Instant last_input_;
  ByteView failure_text_;
  Storage storage_;
  SubscriberSettings settings_;
  RespParser parser_;
  Asked asked_[asked_max];  // Ring: command n at n modulo its size.
};

static_assert(sizeof(Subscriber::Waiter) <= 336, "promised: a waiter's place");
static_assert(sizeof(Subscriber) <= 512, "promised: a subscriber without its buffers");

// Storage of the usual size, as one object.
// Raw bytes, as SessionBuffers.
struct SubscriberBuffers {
  alignas(RespValue) unsigned char nodes[message_elements_max * sizeof(RespValue)];
  alignas(Subscriber::Waiter) unsigned char waiters[waiters_max * sizeof(Subscriber::Waiter)];
  char receive[message_size_max];
  char transmit[subscriber_transmit_size_max];

  [[nodiscard]] Subscriber::Storage storage() noexcept { return storage_of(this); }
  // The same of buffers that need not be alive yet: their owner may declare them after its subscriber.
  [[nodiscard]] static Subscriber::Storage storage_of(SubscriberBuffers* buffers) noexcept {
    return {{buffers->receive, sizeof buffers->receive},
            reinterpret_cast<RespValue*>(buffers->nodes),
            message_elements_max,
            {buffers->transmit, sizeof buffers->transmit},
            reinterpret_cast<Subscriber::Waiter*>(buffers->waiters),
            waiters_max};
  }
};

static_assert(sizeof(SubscriberBuffers) <= 3584, "promised: the usual buffers of a subscriber");

}  // namespace holdfast
