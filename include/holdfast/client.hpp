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
#include "holdfast/clock.hpp"
#include "holdfast/connection.hpp"
#include "holdfast/instant.hpp"
#include "holdfast/random_source.hpp"
#include "holdfast/session.hpp"
#include "holdfast/socket_address.hpp"
#include "holdfast/status.hpp"
#include "holdfast/subscription.hpp"
#include "holdfast/wake_pipe.hpp"

namespace holdfast {

class CommandLine;
class HoldRecord;
class Keeper;
class LockMachine;
struct LockInfo;

// Small and often used, as SocketState.
struct CallState {
  Keeper* keeper_ = nullptr;
  HoldRecord* tended_first_ = nullptr;  // Holds that tend() keeps.
  Instant tending_since_;               // The renewals that were due then are waited for; the epoch: none.
  CancelSignal cancel_;
  bool straight_ = false;  // A request may be waited for by one receive.
  bool query_waiting_ = false;
  bool ttl_wanted_ = false;  // Each attempt asks for the remaining time, too.
  RandomSource random_source_;
  WakePipe wake_;
  std::uint32_t spin_pause_ = 0;       // Receives to come that do not spin.
  std::uint32_t spin_pause_next_ = 0;  // Doubles with each miss.
};

class Client : private CallState, private Connection {
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

  using Connection::compensations_pending;
  using Connection::config;
  using Connection::connected;
  using Connection::error_text;
  using Connection::releases_dropped;
  using Connection::server;
  using Connection::system_error_number;
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
  [[nodiscard]] static Instant now() noexcept { return read_clock(); }

  // For a watchdog, whose own connection goes where this one goes.
  [[nodiscard]] Connection& connection() noexcept { return *this; }

 private:
  friend class HoldRecord;
  friend class PushWait;
  friend Status inspect(Client& client, Key key, LockInfo& info) noexcept;
  friend Status fenced_set(Client& client, Key resource, std::uint64_t fence, BytesArgument value,
                           bool& written) noexcept;
  friend Status force_release(Client& client, Key key, bool& released) noexcept;

  // Asks libc for a name, and waits for it.
  struct LookUp : NameQuestion {
    explicit LookUp(Client& asker) noexcept : NameQuestion{ask}, client(&asker) {}
    static bool ask(NameQuestion& self, const char* host, std::uint16_t port) noexcept;
    Client* client;
  };

  // Before every call of a lock.
  [[nodiscard]] Status begin() noexcept;
  [[nodiscard]] Status open_sources() noexcept;
  void start_anew_in_child() noexcept;
  [[nodiscard]] bool forked() const noexcept { return random_source_.forked(); }

  [[nodiscard]] Status ensure_ready(Instant deadline) noexcept;
  [[nodiscard]] Status make_ready(Instant deadline) noexcept;
  [[nodiscard]] Status prepare(const ClientConfig& config) noexcept;

  // What is due of the connection: dials, sends, judges deadlines after what has arrived, closes what has failed.
  void work_connection() noexcept;
  // Drives the attempt under way to its end, or until then. cancelled: cancel() was called.
  [[nodiscard]] Status bring_up(Instant until) noexcept;
  void leave() noexcept;
  void probe_idle_connection() noexcept;
  bool receive_arrived() noexcept;

  // Moves bytes until the lock has its answer (nullptr: until the handshake or query has one) or the connection ends.
  void pump(const HoldRecord* lock, Instant until = Instant::max()) noexcept;
  // Sends what the lock's machine wants and waits for the answer.
  void ask(HoldRecord& lock) noexcept;
  void make_room() noexcept;
  // Takes in what is answered to others, until an acquire has a place for its compensation. too_many_requests: not until then.
  [[nodiscard]] Status await_place(Instant deadline) noexcept;
  void ask_on(HoldRecord& lock, ParseResult result, RespValue value) noexcept;
  [[nodiscard]] bool answered(const HoldRecord* lock) const noexcept;
  // Sends as much as the socket takes, behind a look where one is wanted. REQUIRES: no reply is being dealt with.
  void look_and_transmit() noexcept;
  void dispatch() noexcept;
  void deliver(const Reply& reply) noexcept;
  void take_query_reply(const Reply& reply) noexcept;
  [[nodiscard]] Received receive(Instant deadline) noexcept;
  [[nodiscard]] bool spin_until_readable(MutableBytes space, std::ptrdiff_t& count) noexcept;
  void react(Received received, const HoldRecord* lock, Instant timeout) noexcept;
  // Sleeps until then, until something comes on a socket of ours or on `extra`, or until cancel(); no longer than sleep_max.
  // What comes on our own is dealt with; true if something came on `extra`.
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
  // cancel() was called, and the call in progress is to end by it.
  [[nodiscard]] bool cancelled() const noexcept { return cancel_.pending(); }
  // The end of a call that cancel() may end. `final`: the outcome is known, and stands.
  [[nodiscard]] Status conclude(Status status, bool final) noexcept;
  // A question of the client's own. `decode` is given the reply that is no error, and `out`; false: a reply of another
  // shape than asked for. Its outcome is query_outcome_, once query_waiting_ is over.
  using Decode = bool (*)(const RespValue& reply, void* out) noexcept;
  [[nodiscard]] Status ask(const CommandLine& line, Decode decode, void* out) noexcept;
  [[nodiscard]] Status await_query(Status asked, Decode decode, void* out) noexcept;
  // The same from connecting to the reply.
  [[nodiscard]] Status query(const CommandLine& line, Decode decode, void* out) noexcept;
  [[nodiscard]] Status query_within(const CommandLine& line, Decode decode, void* out) noexcept;
  // What a lock in the way has left, in milliseconds; -2: there is no key, -1: it has no TTL.
  [[nodiscard]] Status ask_remaining(const LockMachine& machine, std::int64_t& milliseconds) noexcept;

  Status query_outcome_ = Status::ok;
  Decode query_decode_ = nullptr;
  void* query_out_ = nullptr;
  std::int64_t ttl_ = 0;
  ConfigProblem problem_;
  LookUp look_up_{*this};
  Subscription push_;
  SessionBuffers buffers_;
};
static_assert(sizeof(Client) <= 28 * 1024, "promised: a client, all its buffers included");

}  // namespace holdfast
