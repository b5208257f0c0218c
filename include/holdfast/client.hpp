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
// No heap, except by the resolver of libc for host names. Its whole memory is sizeof(Client), its buffers among it. A
// SmallClient is the same with the smallest buffers that serve a Mutex, and a ClientBase has those that it is given.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/instant.hpp"
#include "holdfast/core/lock_task.hpp"
#include "holdfast/core/session.hpp"
#include "holdfast/core/socket_address.hpp"
#include "holdfast/detail/acker.hpp"
#include "holdfast/detail/brancher.hpp"
#include "holdfast/detail/cancel_signal.hpp"
#include "holdfast/detail/clock.hpp"
#include "holdfast/detail/connection.hpp"
#include "holdfast/detail/keeper.hpp"
#include "holdfast/detail/lingerer.hpp"
#include "holdfast/detail/meter.hpp"
#include "holdfast/detail/random_source.hpp"
#include "holdfast/detail/subscription.hpp"
#include "holdfast/detail/wake_pipe.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class Arguments;
class Ear;
class HoldRecord;
class Inquiry;
class LockMachine;
class NodeTask;
struct LockInfo;
struct LockQueue;
struct Question;

// Small and often used, as SocketState.
struct CallState {
  Keeper* keeper_ = nullptr;
  HoldRecord* tended_first_ = nullptr;  // Holds that tend() keeps.
  NodeTask* task_ = nullptr;            // A lock's call in progress,
  Ear* ear_ = nullptr;                  // and who hears of releases for it.
  Lingerer* lingerer_ = nullptr;
  Acker* acker_ = nullptr;
  Instant tending_since_;            // The renewals that were due then are waited for; the epoch: none.
  CancelSignal* signal_ = &cancel_;  // What its calls look at: of a branch, that of its client.
  CancelSignal cancel_;
  bool query_waiting_ = false;
  bool branched_ = false;  // The Connection's Lookout is a Brancher.
  RandomSource random_source_;
  WakePipe wake_;
  std::uint32_t spin_pause_ = 0;       // Receives to come that do not spin.
  std::uint32_t spin_pause_next_ = 0;  // Doubles with each miss.
};

class ClientBase : private CallState, private NameQuestion, private Connection {
 public:
  struct Storage {
    Node::Storage node;
    Subscription::Buffers* push;  // nullptr: who would wait by push polls.
  };
  // The storage need not be initialised. REQUIRES: it outlives the client.
  explicit ClientBase(const Storage& storage) noexcept;
  // Closes the connection without a farewell, and does not block. What is still to be taken back is sent once more where that
  // can be done at once: on the connection that there is, or on a new one to a server on this machine. Of several releases
  // that nobody has waited for, a server may not read the last ones then; the leases end those.
  // REQUIRES: its locks are destroyed before. An assertion says so where one is left.
  ~ClientBase();
  ClientBase(const ClientBase&) = delete;
  ClientBase& operator=(const ClientBase&) = delete;

  // Connects and does the handshake. On failure the client keeps the configuration: the next call of a lock tries
  // again. Connecting anew ends the connection before; what was in flight on it is unknown.
  // Errors: invalid_argument (problem() names the field, also one that does not fit into the storage), connect_failed,
  // name_not_resolved, timed_out, auth_required, auth_failed, no_permission, loading, too_many_clients, denied,
  // protocol_error, system_error, cancelled.
  // Blocks for connect_timeout at most (a resolver may take longer).
  [[nodiscard]] Status connect(const ClientConfig& config) noexcept;
  // The same with a URL, see url.hpp.
  [[nodiscard]] Status connect(BytesArgument url) noexcept;
  // Sends what waits to be sent, if that is possible without blocking, and closes.
  void close() noexcept;

  using Connection::config;
  using Connection::connected;
  using Connection::server;
  // As Connection's; with Branches of the server that the last call was for.
  [[nodiscard]] ByteView error_text() const noexcept { return speaker().Connection::error_text(); }
  [[nodiscard]] int system_error_number() const noexcept { return speaker().error_number_; }
  // As Connection's; with Branches of all servers.
  [[nodiscard]] std::size_t compensations_pending() const noexcept;
  [[nodiscard]] std::uint32_t releases_dropped() const noexcept;
  // What the meter of the configuration has counted: of this client, its watchdog's connection, and whoever else has that meter.
  // Any thread, but not during connect(). All 0 without a meter.
  [[nodiscard]] Stats stats() const noexcept { return stats_of(config().meter); }
  // What was wrong with the configuration, after invalid_argument of connect().
  [[nodiscard]] ConfigProblem problem() const noexcept { return problem_; }

  // Renews what is due of the holds that are to be kept and that no watchdog keeps, calls on_at_risk and on_lost where
  // that is due, takes back what calls of before could not (compensations_pending()), over a new connection if there is none,
  // and says when to call again; Instant::max() when there is nothing to keep and nothing to take back. Blocks for the request
  // timeout at most for every in_flight_max / 2 holds that are due, and for one more when it must connect first. Every call
  // that waits for a lock renews what is due, too, meanwhile.
  Instant tend() noexcept;
  // Holds from the next one on are kept by this watchdog; nullptr: by tend(). REQUIRES: the watchdog outlives the holds it
  // keeps. One that goes detaches its clients, which are in no call then. A forked child has none.
  void attach(Keeper* keeper) noexcept;

  // Ends the call in progress with Status::cancelled, wherever it waits, or the next call if there is none. No call after that
  // one is ended by it.
  //   - A call that waits for a lock or a connection returns at once.
  //   - One that waits for a reply returns within a second, or at once if a signal interrupts it.
  //   - What was granted in the same moment is released again.
  //   - A renewal or a question that was answered keeps its answer.
  //   - A release always does its work. What was cancelled before it ends the next call; what is cancelled during it ends its
  //     wait for the reply.
  //   - A call of a set of locks is one call, and each of its clients': see lock_set.hpp.
  // Any thread; safe in a signal handler.
  void cancel() noexcept;

  // A question of yours, see core/node_task.hpp: asked once, or as often as it says; blocks like Mutex::try_acquire().
  // Errors: connection failures, the server's refusals, cancelled; protocol_error for a reply that it does not take; and what it
  // makes of these.
  [[nodiscard]] Status put(Question& question) noexcept;

  // CLOCK_BOOTTIME, the clock of every Instant here. Instant::max() where it cannot be read: then nothing is held any more,
  // and calls say system_error.
  [[nodiscard]] static Instant now() noexcept { return read_clock(); }

  // Of locks that may stay where they are used; nullptr: there is none. See lingering.hpp.
  [[nodiscard]] Lingerer* lingerer() const noexcept { return lingerer_; }

  // For a watchdog, whose own connection goes where this one goes; or it is one of another client's Branches, at another server.
  [[nodiscard]] Connection& connection() noexcept { return *this; }
  [[nodiscard]] bool branch() const noexcept { return branched_ && &brancher().home() != this; }

 private:
  friend class Acks;
  friend class Branches;
  friend class HoldRecord;
  friend class Lingering;
  friend class LockSetBase;
  friend class PushEar;
  friend class QueueEar;
  friend Status inspect(ClientBase& client, Key key, LockInfo& info) noexcept;
  friend Status inspect_queue(ClientBase& client, Key key, LockQueue& queue) noexcept;
  friend Status fenced_set(ClientBase& client, Key resource, std::uint64_t fence, BytesArgument value,
                           bool& written) noexcept;
  friend Status force_release(ClientBase& client, Key key, bool& released) noexcept;

  // Asks libc for a name, and waits for it.
  static bool look_up_name(NameQuestion& self, const char* host, std::uint16_t port) noexcept;

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
  // Before a request is lost to a server that went away while we were idle.
  void look_if_idle() noexcept;
  bool receive_arrived() noexcept;

  // Moves bytes until the lock has its answer (nullptr: until the handshake or query has one) or the connection ends.
  void pump(const HoldRecord* lock, Instant until = Instant::max()) noexcept;
  void make_room() noexcept;
  [[nodiscard]] bool answered(const HoldRecord* lock) const noexcept;
  // Sends as much as the socket takes, behind a look where one is wanted. REQUIRES: no reply is being dealt with.
  void look_and_transmit() noexcept {
    if (wants_transmit()) look_and_transmit_now();
  }
  void look_and_transmit_now() noexcept;
  void dispatch() noexcept;
  void settle_connection() noexcept;
  void deliver(const Reply& reply) noexcept;
  void take_query_reply(const Reply& reply) noexcept;
  [[nodiscard]] Received receive(Instant deadline) noexcept;
  [[nodiscard]] bool spin_until_readable(MutableBytes space, std::ptrdiff_t& count) noexcept;
  void react(Received received, const HoldRecord* lock, Instant timeout) noexcept;
  // Sleeps until then, until something comes on a socket of ours or on `extra`, or until cancel(); no longer than sleep_max.
  // What comes on our own is dealt with; true if something came on `extra`.
  bool wait_until(Instant then, int extra = -1, int extra_events = 0) noexcept;
  // Sends the renewals that are due, as far as there is room. Their replies come with whatever is received next. True if it
  // asked for any.
  bool tend_due() noexcept;
  // A renewal that is due is asked for now. Not while a connection is on its way, and not while this one has no room: the
  // renewal stays due then, since a refusal would put it off.
  [[nodiscard]] bool renewals_leave() const noexcept;
  [[nodiscard]] int send_renewals(Instant start, int most) noexcept;
  void tend_holds() noexcept;
  void tell_tended() noexcept;
  void work() noexcept;
  // Who listens for recalls does. When to call it again.
  Instant listen(bool closing = false) noexcept {
    return lingerer_ != nullptr ? lingerer_->table().look(*lingerer_, closing) : Instant::max();
  }
  [[nodiscard]] Instant next_timeout() const noexcept;
  // `renewals`: a renewal that is due is something to do; else only the ends of holds are.
  [[nodiscard]] Instant tend_next(bool renewals = true) const noexcept;
  [[nodiscard]] bool tended_waiting(Instant due) const noexcept;
  [[nodiscard]] Ear* listening() const noexcept;
  // cancel() was called, and the call in progress is to end by it.
  [[nodiscard]] bool cancelled() const noexcept { return signal_->pending(); }
  // The end of a call that cancel() may end. An outcome that is known stands: ok, lock_lost, not_held.
  [[nodiscard]] Status conclude(Status status) noexcept;
  // A question of the client's own. `decode` is given the reply that is no error, and `out`; false: a reply of another
  // shape than asked for. Its outcome is query_outcome_, once query_waiting_ is over.
  using Decode = bool (*)(const RespValue& reply, void* out) noexcept;
  [[nodiscard]] Status ask(Arguments arguments, Decode decode, void* out) noexcept;
  // Opens a request that is longer than the send buffer, and writes all of it but its last argument: `heading`.
  [[nodiscard]] Status begin_pieces(Arguments arguments, ByteView& heading) noexcept;
  // False where the server does not take all of it within a request timeout, or cancel() was called.
  [[nodiscard]] bool send_piece(ByteView piece, int flags) noexcept;
  // The same from connecting to the reply.
  [[nodiscard]] Status query(Arguments arguments, Decode decode, void* out) noexcept;
  [[nodiscard]] Status query_within(Arguments arguments, Decode decode, void* out) noexcept;
  // All requests of an inquiry for this key that was begun with this status.
  [[nodiscard]] Status inquire(Inquiry& inquiry, Key key, Status begun) noexcept;

  // With Branches: they, and whose words count.
  [[nodiscard]] Brancher& brancher() const noexcept { return static_cast<Brancher&>(*lookout_); }
  [[nodiscard]] const ClientBase& speaker() const noexcept { return branched_ ? brancher().last() : *this; }

  Status query_outcome_ = Status::ok;       // It and what follows take the room that their base leaves.
  std::uint32_t records_ = 0;               // All holds that there are.
  Keeper::Attachment attachment_ = {this};  // To keeper_.
  Decode query_decode_ = nullptr;
  void* query_out_ = nullptr;
  TaskSettings settings_;  // Of every call.
  ConfigProblem problem_;
  Subscription push_;
};

// The storage of a client as one object.
template <class NodeBuffersType>
struct ClientBuffersOf {
  NodeBuffersType node_buffers;
  [[nodiscard]] ClientBase::Storage client_storage() noexcept {
    return {NodeBuffersType::storage_of(&node_buffers), nullptr};
  }
};

struct ClientBuffers : ClientBuffersOf<NodeBuffers> {
  Subscription::Buffers push_buffers;
  [[nodiscard]] ClientBase::Storage client_storage() noexcept {
    return {NodeBuffers::storage_of(&node_buffers), &push_buffers};
  }
};
using SmallClientBuffers = ClientBuffersOf<NodeBuffersOf<SmallSessionBuffers, small_texts_size, small_addresses>>;

// Its buffers come before it, and go after it.
template <class Buffers>
class ClientWith : private Buffers, public ClientBase {
 public:
  ClientWith() noexcept : ClientBase(Buffers::client_storage()) {}
};

// For locks of every kind.
class Client : public ClientWith<ClientBuffers> {};
static_assert(sizeof(Client) <= 16 * 1024, "promised: a client, all its buffers included");

// For locks of type Mutex that do not announce their releases and have no fence.
//   - A lock of another kind has the configuration() buffer_too_small, as has every call of it. So have inspect() and
//     force_release().
//   - Of a host's addresses two are tried. Host, user, password and client name have 252 bytes together: connect() says
//     invalid_argument, and problem() which one does not fit.
//   - Two compensations are kept at most, or one where keys are long: while they are not confirmed, an acquire waits for its
//     place until its deadline, and then says too_many_requests.
//   - A reply that does not fit is a protocol_error: none does that holdfast asks for, errors of full length included.
class SmallClient : public ClientWith<SmallClientBuffers> {};
static_assert(sizeof(SmallClient) <= 4 * 1024, "promised: a client for a Mutex, all its buffers included");

}  // namespace holdfast
