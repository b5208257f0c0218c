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
#include "holdfast/client_config.hpp"
#include "holdfast/instant.hpp"
#include "holdfast/session.hpp"
#include "holdfast/shared_value.hpp"
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
  // Closes the connection without a farewell, and does not block. REQUIRES: its locks are destroyed before.
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
  [[nodiscard]] Status connect(ByteView url) noexcept;
  // Sends what waits to be sent, if that is possible without blocking, and closes.
  void close() noexcept;

  [[nodiscard]] bool connected() const noexcept { return session_.ready(); }
  [[nodiscard]] const ClientConfig& config() const noexcept { return config_; }
  [[nodiscard]] const ServerIdentity& server() const noexcept { return session_.identity(); }
  // Compensations that the server has not confirmed yet.
  [[nodiscard]] std::size_t compensations_pending() const noexcept { return session_.compensations_pending(); }
  // Words for the last failure: the server's own, or ours. A view until the next call; may be empty.
  [[nodiscard]] ByteView error_text() const noexcept;
  // errno of the last system call that failed for good, or 0.
  [[nodiscard]] int system_error_number() const noexcept { return error_number_; }
  // What was wrong with the configuration, after invalid_argument of connect().
  [[nodiscard]] ConfigProblem problem() const noexcept { return problem_; }

  // Renews what is due of the holds that are to be kept and that no watchdog keeps, calls on_at_risk and on_lost where
  // that is due, and says when to call again; Instant::max() when there is nothing to keep. Blocks for the request timeout at
  // most for every in_flight_max / 2 holds that are due, longer by the connect timeout when it must connect first. Every call
  // that waits for a lock does it, too, meanwhile.
  Instant tend() noexcept;
  // Holds from the next one on are kept by this watchdog; nullptr: by tend(). REQUIRES: the keeper outlives the holds it
  // keeps, and is detached before it goes if the client acquires on. A forked child has none.
  void attach(Keeper* keeper) noexcept { keeper_ = keeper; }

  // Ends the call in progress with Status::cancelled, or the next call if there is none. A call that waits for a lock
  // returns at once; one that waits for a reply returns by its request timeout, at once if a signal interrupts it.
  // Any thread; safe in a signal handler.
  void cancel() noexcept;

  // CLOCK_BOOTTIME, the clock of every Instant here.
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
  friend class Watchdog;
  friend Status inspect(Client& client, Key key, LockInfo& info) noexcept;
  friend Status fenced_set(Client& client, Key resource, std::uint64_t fence, ByteView value, bool& written) noexcept;
  friend Status force_release(Client& client, Key key, bool& released) noexcept;

  // One page that the kernel wipes in a forked child.
  struct WipedPage;
  // A socket address as bytes, so that no system header is needed here.
  struct alignas(8) SocketAddress {
    unsigned char bytes[28];  // sockaddr_in6 is the largest that a name resolves to.
    std::uint8_t size;
    std::uint8_t family;
  };
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
  [[nodiscard]] Status connect_once(Instant deadline) noexcept;
  Status note_connect(Status status) noexcept;
  [[nodiscard]] Status connect_transport(Instant deadline) noexcept;
  [[nodiscard]] Status connect_cached(Instant deadline) noexcept;
  // The address that socket_ goes to, or went to last.
  [[nodiscard]] Status connect_again(Instant deadline, int& socket) noexcept;
  [[nodiscard]] int address_family() const noexcept;
  [[nodiscard]] Status begin_connect(int& socket, bool& connected) noexcept;
  [[nodiscard]] Status await_connect(int socket, Instant deadline) noexcept;
  [[nodiscard]] static Status connect_outcome(int socket) noexcept;
  [[nodiscard]] bool take_literal() noexcept;
  [[nodiscard]] Status resolve() noexcept;
  [[nodiscard]] Status set_up_socket(int socket) noexcept;
  void close_transport() noexcept;
  void probe_idle_connection() noexcept;

  // Moves bytes until the lock has its answer (nullptr: until the handshake or query has one) or the connection ends.
  void pump(const HoldRecord* lock, Instant until = Instant::max()) noexcept;
  // Sends what the lock's machine wants and waits for the answer.
  void ask(HoldRecord& lock) noexcept;
  void submit(LockMachine& machine, void* requester) noexcept;
  void ask_on(HoldRecord& lock, ParseResult result, RespValue value) noexcept;
  [[nodiscard]] bool answered(const HoldRecord* lock) const noexcept;
  // Sends as much as the socket takes.
  void transmit() noexcept;
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
  // Sleeps until then, or until cancel(). False if cancelled.
  [[nodiscard]] bool sleep_until(Instant then) noexcept;
  // The same, and meanwhile keeps what is to be kept.
  [[nodiscard]] bool sleep_tending(Instant then) noexcept;
  void tend_due() noexcept;
  void tend_holds() noexcept;
  [[nodiscard]] Instant tend_next() const noexcept;
  [[nodiscard]] bool tended_waiting() const noexcept;
  void close_push(PushState state) noexcept;
  [[nodiscard]] bool take_cancel() noexcept;
  [[nodiscard]] bool drain_cancel() noexcept;
  // A question of the client's own. `decode` is given the reply that is no error, and `out`; false: a reply of another
  // shape than asked for. Its outcome is query_outcome_, once query_waiting_ is over.
  using Decode = bool (*)(const RespValue& reply, void* out) noexcept;
  [[nodiscard]] Status ask(const CommandLine& line, Decode decode, void* out) noexcept;
  // The same from connecting to the reply.
  [[nodiscard]] Status query(const CommandLine& line, Decode decode, void* out) noexcept;
  // PTTL: -2 no key, -1 no TTL.
  [[nodiscard]] Status ask_ttl(Key key, std::int64_t& milliseconds) noexcept;
  // The same of a lock, which may have several names.
  [[nodiscard]] Status ask_remaining(const LockMachine& machine, std::int64_t& milliseconds) noexcept;

  // Small and often used first: their offsets fit into one byte.
  WipedPage* page_ = nullptr;
  int socket_ = -1;
  int wake_ = -1;  // A pipe: cancel() makes it readable.
  int wake_write_ = -1;
  SharedValue<bool> cancelled_;
  SharedValue<std::uint32_t> incarnation_;  // Grows when a forked child starts anew: holds of before are not its own.
  Instant now_;                             // The last time that was read.
  Instant last_used_;                       // When the connection last carried a reply.
  Instant next_connect_at_;
  Duration reconnect_delay_ = Duration::zero();
  Duration receive_timeout_ = Duration::zero();  // The socket's SO_RCVTIMEO.
  std::uint32_t spin_pause_ = 0;                 // Receives to come that do not spin.
  std::uint32_t spin_pause_next_ = 0;            // Doubles with each miss.
  bool straight_ = false;                        // A request may be waited for by one receive.
  bool configured_ = false;
  bool query_waiting_ = false;
  bool ttl_wanted_ = false;  // Each attempt asks for the remaining time, too.
  bool tending_ = false;
  Status query_outcome_ = Status::ok;
  Decode query_decode_ = nullptr;
  void* query_out_ = nullptr;
  std::int64_t ttl_ = 0;
  Status failure_ = Status::not_connected;  // Why the last attempt to connect failed.
  int error_number_ = 0;
  ConfigProblem problem_;
  Keeper* keeper_ = nullptr;
  HoldRecord* tended_first_ = nullptr;  // Holds that tend() keeps.
  std::uint64_t ordinal_ = 0;           // Of the last hold of a hash kind.
  PushState push_state_ = PushState::absent;
  std::uint8_t push_address_ = 0;  // Its place in addresses_.
  int push_socket_ = -1;
  Instant push_connect_at_;
  Duration push_delay_ = Duration::zero();
  std::uint8_t address_count_ = 0;
  std::uint8_t address_index_ = 0;  // The one that worked last.
  SocketAddress addresses_[addresses_max];
  Session session_;
  ClientConfig config_;
  SessionBuffers buffers_;
  alignas(Push) unsigned char push_place_[sizeof(Push)];
};
static_assert(sizeof(Client) <= 28 * 1024, "promised: a client, all its buffers included");

}  // namespace holdfast
