// SPDX-License-Identifier: MIT
//
// Client is one blocking connection to one node, for any number of locks. It reconnects by itself.
//
// Thread rule: one client, one thread at a time; the client and its locks are used together by that thread. Only
// cancel() and the locks' held(), at_risk(), valid_until() and remaining() may be called from any thread.
// Fork: a child neither touches the parent's connection nor holds its locks nor shares its random bytes; a client that
// is used in a child starts anew. A cloned virtual machine is not noticed: connect after cloning.
// Signals: none is raised (no SIGPIPE) and none is handled.
// Push: a lock whose kind announces its releases is waited for over a second connection, to the same address, which is made
// when the first waiter comes and left idle, with nothing subscribed, when the last one goes.
// No heap, except by the resolver of libc for host names. Its whole memory is sizeof(Client).
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/bytes.hpp"
#include "holdfast/cancel_signal.hpp"
#include "holdfast/client_config.hpp"
#include "holdfast/dialer.hpp"
#include "holdfast/instant.hpp"
#include "holdfast/session.hpp"
#include "holdfast/shared_value.hpp"
#include "holdfast/socket_address.hpp"
#include "holdfast/status.hpp"
#include "holdfast/subscriber.hpp"

namespace holdfast {

class CommandLine;
class HoldRecord;
class Keeper;
class LockMachine;
struct LockInfo;

class Client {
 public:
  Client() noexcept;
  // Closes the connection without a farewell, and does not block. What is still to be taken back is sent once more where that
  // can be done at once: on the connection that there is, or on a new one to a server on this machine.
  // REQUIRES: its locks are destroyed before.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Connects and does the handshake. On failure the client keeps the configuration: the next call of a lock tries
  // again. Connecting anew ends the connection before; what was in flight on it is unknown.
  // Errors: invalid_argument (problem() names the field), connect_failed, name_not_resolved, timed_out, auth_required,
  // auth_failed, no_permission, loading, too_many_clients, denied, protocol_error, system_error, cancelled.
  // Blocks for connect_timeout at most (a resolver may take longer).
  [[nodiscard]] Status connect(const ClientConfig& config) noexcept;
  // The same with a URL, see url.hpp.
  [[nodiscard]] Status connect(BytesArgument url) noexcept;
  // Sends what waits to be sent, if that is possible without blocking, and closes.
  void close() noexcept;

  [[nodiscard]] bool connected() const noexcept { return session_.ready(); }
  [[nodiscard]] const ClientConfig& config() const noexcept { return config_; }
  [[nodiscard]] const ServerIdentity& server() const noexcept { return session_.identity(); }
  // Compensations that the server has not confirmed yet.
  [[nodiscard]] std::size_t compensations_pending() const noexcept { return session_.compensations_pending(); }
  // Of those, and of releases that nobody waits for, the ones that were given up since the client was made: no place for them
  // was to be had when their locks were destroyed, or the server refused them for good. Their leases end what they would have.
  [[nodiscard]] std::uint32_t releases_dropped() const noexcept { return session_.compensations_dropped(); }
  // Words for the last failure: the server's own, or ours. A view until the next call; may be empty.
  [[nodiscard]] ByteView error_text() const noexcept;
  // errno of the last system call that failed for good, or 0.
  [[nodiscard]] int system_error_number() const noexcept { return error_number_; }
  // What was wrong with the configuration, after invalid_argument of connect().
  [[nodiscard]] ConfigProblem problem() const noexcept { return problem_; }

  // Renews what is due of the holds that are to be kept and that no watchdog keeps, calls on_at_risk and on_lost where
  // that is due, takes back what calls of before could not (compensations_pending()), over a new connection if there is none,
  // and says when to call again; Instant::max() when there is nothing to keep and nothing to take back. Blocks for the request
  // timeout at most for every in_flight_max / 2 holds that are due, and for one more when it must connect first. Every call
  // that waits for a lock renews what is due, too, meanwhile.
  Instant tend() noexcept;
  // Holds from the next one on are kept by this watchdog; nullptr: by tend(). REQUIRES: the keeper outlives the holds it
  // keeps, and is detached before it goes if the client acquires on. A forked child has none.
  void attach(Keeper* keeper) noexcept { keeper_ = keeper; }

  // Ends the call in progress with Status::cancelled, wherever it waits, or the next call if there is none. No call after that
  // one is ended by it.
  //   - A call that waits for a lock or a connection returns at once.
  //   - One that waits for a reply returns within a second, or at once if a signal interrupts it.
  //   - What was granted in the same moment is released again.
  //   - A renewal or a question that was answered keeps its answer.
  //   - A release always does its work. What was cancelled before it ends the next call; what is cancelled during it ends its
  //     wait for the reply.
  // Any thread; safe in a signal handler.
  void cancel() noexcept;

  // CLOCK_BOOTTIME, the clock of every Instant here. Instant::max() where it cannot be read: then nothing is held any more,
  // and calls say system_error.
  [[nodiscard]] static Instant now() noexcept;

 private:
  // With a send buffer of the caller's.
  explicit Client(MutableBytes transmit) noexcept;
  // With other buffers than its own.
  explicit Client(const Session::Storage& storage) noexcept : session_(SessionSettings(), storage) {}
  // Takes over configuration and addresses: the next attempt to connect goes where the other's goes.
  [[nodiscard]] Status prepare_like(const Client& other) noexcept;

  friend class AsyncNode;
  friend class HoldRecord;
  friend class OwnedLock;
  friend class PushLink;
  friend class PushWait;
  friend class QuorumClient;
  friend class QuorumLock;
  friend class QuorumWait;
  friend class Resolver;
  friend class Watchdog;
  friend Status inspect(Client& client, Key key, LockInfo& info) noexcept;
  friend Status fenced_set(Client& client, Key resource, std::uint64_t fence, BytesArgument value,
                           bool& written) noexcept;
  friend Status force_release(Client& client, Key key, bool& released) noexcept;

  // One page that the kernel wipes in a forked child.
  struct WipedPage;
  // The second connection. Made in place when the first waiter comes, so that a program that does not wait by push does not
  // carry its code.
  struct Push {
    Push(const SubscriberSettings& settings) noexcept : subscriber(settings, SubscriberBuffers::storage_of(&buffers)) {}
    Subscriber subscriber;
    SubscriberBuffers buffers;
  };
  enum class PushState : std::uint8_t { absent, current, closed, inherited };
  enum class Received : std::uint8_t { bytes, nothing, interrupted, closed };

  // Before every call of a lock.
  [[nodiscard]] Status begin() noexcept;
  [[nodiscard]] Status ensure_page() noexcept;
  void start_anew_in_child() noexcept;
  [[nodiscard]] bool forked() const noexcept;
  [[nodiscard]] Status draw_token(Token& token) noexcept;
  // The owner field of a hash kind: this client's id, and an ordinal that is used once.
  [[nodiscard]] Status draw_ordinal(Token& token) noexcept;
  [[nodiscard]] Duration jittered(Duration delay) noexcept;
  // Evenly from all values. Without random bytes the largest: later is safe, sooner is not.
  [[nodiscard]] std::uint16_t random() noexcept;
  [[nodiscard]] Status draw_random(unsigned char* out, std::size_t size) noexcept;
  [[nodiscard]] Status refill_pool() noexcept;
  [[nodiscard]] SessionSettings settings() const noexcept;

  [[nodiscard]] Status ensure_ready(Instant deadline) noexcept;
  [[nodiscard]] Status make_ready(Instant deadline) noexcept;
  [[nodiscard]] Status prepare(const ClientConfig& config) noexcept;

  // Connecting is a state, in dialer_, that many calls may pass through. Does what is due of it; waits for nothing but, where
  // nobody else asks for names, the resolver.
  void dial() noexcept {
    if (now_ >= dialer_.poll_timeout()) [[unlikely]]
      dial_on();
  }
  void dial_on() noexcept;
  [[nodiscard]] bool dialling() const noexcept { return dialer_.state() == DialState::dialling; }
  // What has become of the socket that is dialled, once it is writable.
  void finish_dial() noexcept { finish_dial(connect_outcome(socket_)); }
  void finish_dial(Status outcome) noexcept;
  void ask_name() noexcept;
  void take_addresses(const SocketAddress* addresses, std::uint8_t count) noexcept;
  void note_ready() noexcept;
  // What is due of the connection: dials, sends, judges deadlines after what has arrived, closes what has failed.
  void work_connection() noexcept;
  [[nodiscard]] Instant connection_timeout() const noexcept {
    return earlier(dialer_.poll_timeout(), session_.poll_timeout());
  }
  // Drives the attempt under way to its end, or until then. cancelled: cancel() was called.
  [[nodiscard]] Status bring_up(Instant until) noexcept;
  [[nodiscard]] int address_family() const noexcept;
  [[nodiscard]] Status begin_connect(int& socket, bool& connected) noexcept;
  [[nodiscard]] static Status connect_outcome(int socket) noexcept;
  [[nodiscard]] Status set_up_socket(int socket) noexcept;
  void close_transport() noexcept;
  void leave() noexcept;
  void probe_idle_connection() noexcept;
  bool receive_arrived() noexcept;

  // Moves bytes until the lock has its answer (nullptr: until the handshake or query has one) or the connection ends.
  void pump(const HoldRecord* lock, Instant until = Instant::max()) noexcept;
  // Sends what the lock's machine wants and waits for the answer.
  void ask(HoldRecord& lock) noexcept;
  void submit(LockMachine& machine, void* requester) noexcept;
  void make_room() noexcept;
  // Takes in what is answered to others, until an acquire has a place for its compensation. too_many_requests: not until then.
  [[nodiscard]] Status await_place(Instant deadline) noexcept;
  void ask_on(HoldRecord& lock, ParseResult result, RespValue value) noexcept;
  [[nodiscard]] bool answered(const HoldRecord* lock) const noexcept;
  // Receives what has arrived, which the caller deals with; where that is nothing, the session knows that it was looked.
  [[nodiscard]] Received look() noexcept;
  // Sends as much as the socket takes, of what may leave without a look.
  void transmit() noexcept;
  // The same, behind a look where one is wanted. REQUIRES: no reply is being dealt with.
  void look_and_transmit() noexcept;
  void handle_sent(std::ptrdiff_t count) noexcept;
  void dispatch() noexcept;
  void deliver(const Reply& reply) noexcept;
  void take_query_reply(const Reply& reply) noexcept;
  [[nodiscard]] Received receive(Instant deadline) noexcept;
  [[nodiscard]] bool spin_until_readable(MutableBytes space, std::ptrdiff_t& count) noexcept;
  [[nodiscard]] Received take_received(std::ptrdiff_t count) noexcept;
  [[nodiscard]] Received nothing_received(std::ptrdiff_t count) noexcept;
  void react(Received received, const HoldRecord* lock, Instant timeout) noexcept;
  // Waits for events until the timeout or a signal, no longer than sleep_max. A negative timeout counts as none.
  static int wait_for(int descriptor, short events, Duration timeout) noexcept;
  struct Ready {
    bool own;    // The connection,
    bool extra;  // or what else was looked at.
  };
  // Sleeps until then, until something comes on a socket of ours or on `extra`, or until cancel(); no longer than sleep_max.
  [[nodiscard]] Ready poll_sockets(Instant then, int extra, short extra_events) noexcept;
  // The same, and what comes on our own is dealt with; true if something came on `extra`.
  bool wait_until(Instant then, int extra = -1, short extra_events = 0) noexcept;
  // Sleeps until then and meanwhile keeps what is to be kept. False if cancelled.
  [[nodiscard]] bool sleep_tending(Instant then) noexcept;
  // Sends the renewals that are due, as far as there is room. Their replies come with whatever is received next.
  void tend_due() noexcept {
    if (tended_first_ != nullptr && tend_next() <= now_) [[unlikely]]
      (void)send_renewals(now_, in_flight_max / 2);
  }
  [[nodiscard]] int send_renewals(Instant start, int most) noexcept;
  void tend_holds() noexcept;
  void tell_tended() noexcept;
  void work() noexcept;
  [[nodiscard]] Instant next_timeout() const noexcept;
  [[nodiscard]] Instant tend_next() const noexcept;
  [[nodiscard]] bool tended_waiting(Instant due) const noexcept;
  void close_push(PushState state) noexcept;
  // cancel() was called, and the call in progress is to end by it.
  [[nodiscard]] bool cancelled() const noexcept { return cancel_.pending(); }
  // The end of a call that cancel() may end, and the one place where that is judged. `final`: the outcome is known, and stands.
  [[nodiscard]] Status conclude(Status status, bool final) noexcept;
  void drain_wakes() noexcept;
  // A question of the client's own. `decode` is given the reply that is no error, and `out`; false: a reply of another
  // shape than asked for. Its outcome is query_outcome_, once query_waiting_ is over.
  using Decode = bool (*)(const RespValue& reply, void* out) noexcept;
  [[nodiscard]] Status ask(const CommandLine& line, Decode decode, void* out) noexcept;
  // The same from connecting to the reply.
  [[nodiscard]] Status query(const CommandLine& line, Decode decode, void* out) noexcept;
  [[nodiscard]] Status query_within(const CommandLine& line, Decode decode, void* out) noexcept;
  // PTTL: -2 no key, -1 no TTL.
  [[nodiscard]] Status ask_ttl(Key key, std::int64_t& milliseconds) noexcept;
  // The same of a lock, which may have several names.
  [[nodiscard]] Status ask_remaining(const LockMachine& machine, std::int64_t& milliseconds) noexcept;

  // Small and often used first: their offsets fit into one byte.
  WipedPage* page_ = nullptr;
  int socket_ = -1;
  int wake_ = -1;  // A pipe: cancel() makes it readable.
  int wake_write_ = -1;
  CancelSignal cancel_;
  SharedValue<std::uint32_t> incarnation_;  // Grows when a forked child starts anew: holds of before are not its own.
  Instant now_;                             // The last time that was read.
  Instant last_used_;                       // When the connection last carried a reply.
  Instant ready_at_;                        // When the connection became ready.
  Instant tending_since_;                   // The renewals that were due then are waited for; the epoch: none.
  Duration receive_timeout_ = Duration::zero();  // The socket's SO_RCVTIMEO.
  std::uint32_t spin_pause_ = 0;                 // Receives to come that do not spin.
  std::uint32_t spin_pause_next_ = 0;            // Doubles with each miss.
  bool straight_ = false;                        // A request may be waited for by one receive.
  bool configured_ = false;
  bool query_waiting_ = false;
  bool ttl_wanted_ = false;  // Each attempt asks for the remaining time, too.
  Status query_outcome_ = Status::ok;
  Decode query_decode_ = nullptr;
  void* query_out_ = nullptr;
  std::int64_t ttl_ = 0;
  int error_number_ = 0;
  ConfigProblem problem_;
  Keeper* keeper_ = nullptr;
  HoldRecord* tended_first_ = nullptr;  // Holds that tend() keeps.
  std::uint64_t ordinal_ = 0;           // Of the last hold of a hash kind.
  PushState push_state_ = PushState::absent;
  std::uint8_t push_address_ = 0;  // Its place in addresses_.
  int push_socket_ = -1;
  Dialer push_dialer_;
  NameQuestion* question_ = nullptr;  // nullptr: libc is asked, and waited for.
  Dialer dialer_;
  SocketAddress addresses_[addresses_max];  // The dialer knows how many.
  Session session_;
  ClientConfig config_;
  SessionBuffers buffers_;
  alignas(Push) unsigned char push_place_[sizeof(Push)];
};
static_assert(sizeof(Client) <= 28 * 1024, "promised: a client, all its buffers included");

}  // namespace holdfast
