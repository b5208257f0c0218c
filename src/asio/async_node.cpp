// SPDX-License-Identifier: MIT
#include "async_node.hpp"

#include <sys/socket.h>

#include <asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>

#include "holdfast/core/lock_machine.hpp"
#include "stream.hpp"

namespace holdfast {

namespace {

// Replies of a few hundred requests come with one receive; so do those to all calls of renewals in flight.
constexpr std::size_t receive_size = reply_size_max / 2;
constexpr std::size_t reply_elements_max = renewal_batch_max + 4;
// Half an acquire, which takes two places. What finds no room waits until others have left.
constexpr std::size_t transmit_size_each = 128;

}  // namespace

struct AsyncNode::Buffers {
  explicit Buffers(const Limits& limits)
      : in_flight_count(limits.requests),
        transmit_size(transmit_size_max + limits.requests * transmit_size_each),
        waiter_count(limits.waiters == 0 ? 1 : limits.waiters),
        transmit(new char[transmit_size]),
        in_flight(new Session::InFlight[in_flight_count]),
        compensations(new Session::CompensationSlot[in_flight_count / 2]()),
        compensation_keys(new char[in_flight_count / 2 * key_size_max]),
        waiters(new Subscriber::Waiter[waiter_count]) {}

  [[nodiscard]] Node::Storage node() noexcept {
    return {.session = {.receive = {receive, sizeof receive},
                        .nodes = nodes,
                        .node_count = reply_elements_max,
                        .transmit = {transmit.get(), transmit_size},
                        .in_flight = in_flight.get(),
                        .in_flight_count = in_flight_count,
                        .compensations = compensations.get(),
                        .compensation_count = in_flight_count / 2,
                        .compensation_keys = {compensation_keys.get(), in_flight_count / 2 * key_size_max}},
            .texts = {texts, sizeof texts},
            .addresses = addresses,
            .address_count = addresses_max};
  }
  [[nodiscard]] Subscriber::Storage subscriber() noexcept {
    return {.receive = {push_receive, sizeof push_receive},
            .nodes = push_nodes,
            .node_count = message_elements_max,
            .transmit = {push_transmit, sizeof push_transmit},
            .waiters = waiters.get(),
            .waiter_count = waiter_count};
  }

  std::size_t in_flight_count;
  std::size_t transmit_size;
  std::size_t waiter_count;
  std::unique_ptr<char[]> transmit;
  std::unique_ptr<Session::InFlight[]> in_flight;
  std::unique_ptr<Session::CompensationSlot[]> compensations;
  std::unique_ptr<char[]> compensation_keys;
  std::unique_ptr<Subscriber::Waiter[]> waiters;
  char receive[receive_size];
  RespValue nodes[reply_elements_max];
  char texts[config_texts_size_max];
  SocketAddress addresses[addresses_max];
  char push_receive[2 * message_size_max];
  RespValue push_nodes[message_elements_max];
  char push_transmit[subscriber_transmit_size_max];
};

AsyncNode::AsyncNode(AsyncLoop& loop, Host& host, const Limits& limits)
    : loop_(loop),
      host_(host),
      buffers_(new Buffers(limits)),
      connection_(buffers_->node()),
      wire_(loop, *this),
      push_wire_(loop, *this) {
  connection_.use(random_, nullptr);
  subscriber_.emplace(connection_.subscriber_settings(), buffers_->subscriber());
  (void)random_.open();  // Locks look at it from any thread, also while the first connection is made.
}

AsyncNode::~AsyncNode() {
  connection_.set_socket(-1);  // The wire's, which closes it.
  push_stream_.drop_layer();
}

// ---- Connecting --------------------------------------------------------------------------------------------------

Status AsyncNode::prepare(const ClientConfig& config, Instant now) {
  disconnect();  // Who is told of it waits for the next connection.
  wanted_ = false;
  problem_ = validate(config);
  if (problem_.found()) return Status::invalid_argument;
  if (const Status status = random_.open(); status != Status::ok) {
    connection_.set_error_number(errno);
    return status;
  }
  wanted_ = true;
  connection_.configure(config);
  connection_.set_now(now);
  push_dialer_.start(config.connect_timeout, 1, false);
  return Status::ok;
}

void AsyncNode::close() {
  wanted_ = false;
  if (random_.forked())
    forget();
  else
    disconnect();
}

// Everything is the parent's: it is not touched, and nobody is told anything.
void AsyncNode::forget() {
  connection_.dialer().stop();
  push_dialer_.stop();
  push_used_ = false;
  wire_.close(true);
  push_stream_.drop_layer();
  push_wire_.close(true);
  connection_.set_socket(-1);
  session().forget();
  subscriber_->forget();
}

void AsyncNode::disconnect() {
  ++resolving_;
  if (resolver_) resolver_->cancel();
  // Before it is introduced, what would be sent may be for another server.
  if (ready()) {
    while (session().wants_look() && connection_.look() == Connection::Received::bytes) dispatch();
    connection_.transmit();
  }
  close_session();
  connection_.dialer().abandon();
  close_push();
  push_dialer_.abandon();
}

// What was in flight is answered.
void AsyncNode::close_session() {
  connection_.explain_end();
  wire_.close();
  connection_.set_socket(-1);
  connection_.handle_closed(now(), random());
  dispatch();
}

bool AsyncNode::due(const Dialer& dialer, bool judging) const noexcept {
  const Instant timeout = dialer.poll_timeout();
  if (now() < timeout) return false;
  const DialState state = dialer.state();
  const bool under_way = state == DialState::dialling || state == DialState::resolving;
  return judging || !under_way || timeout == Instant();
}

// What is due of connecting. The host hears when an attempt has failed.
void AsyncNode::dial(bool judging) {
  if (now() == Instant::max()) return;  // The clock cannot be read.
  Dialer& dialer = connection_.dialer();
  for (bool more = true; more && due(dialer, judging);) {
    const DialAction action = connection_.poll_dial(now(), random());
    if (action != DialAction::none || dialer.connecting()) attempted_ = true;
    switch (action) {
      case DialAction::none: more = false; break;
      case DialAction::resolve: ask_name(); break;
      case DialAction::dial: open_wire(); break;
      case DialAction::hang_up:
        connection_.set_error_number(ETIMEDOUT);
        wire_.close();
        connection_.set_socket(-1);
        break;
    }
  }
  if (!attempted_ || dialer.state() != DialState::waiting) return;
  attempted_ = false;
  host_.node_down(*this);
}

// A thread of Asio's asks libc, so that the loop goes on; and the heap is used, as by libc itself.
void AsyncNode::ask_name() {
  if (!resolver_) resolver_.emplace(loop_.executor());
  char port[8] = {};
  (void)std::snprintf(port, sizeof port, "%u", static_cast<unsigned>(config().port));
  resolver_->async_resolve(config().host.c_str(), port,
                           asio::ip::resolver_base::address_configured | asio::ip::resolver_base::numeric_service,
                           [this, alive = loop_.shared_from_this(), serial = ++resolving_](
                               const asio::error_code& error, const asio::ip::tcp::resolver::results_type& found) {
                             if (serial != resolving_) return;
                             SocketAddress addresses[addresses_max];
                             std::uint8_t count = 0;
                             for (const auto& entry : found) {
                               const asio::ip::tcp::endpoint endpoint = entry.endpoint();
                               if (error || count == addresses_max) break;
                               SocketAddress& address = addresses[count];
                               if (endpoint.size() > sizeof address.bytes) continue;
                               std::memcpy(address.bytes, endpoint.data(), endpoint.size());
                               address.size = static_cast<std::uint8_t>(endpoint.size());
                               address.family = static_cast<std::uint8_t>(endpoint.protocol().family());
                               ++count;
                             }
                             loop_.take([&] {
                               (void)loop_.begin();
                               connection_.take_addresses(addresses, count);
                             });
                           });
}

void AsyncNode::open_wire() {
  bool connected = false;
  int descriptor = -1;
  const Status status = connection_.begin_connect(descriptor, connected);
  connection_.set_socket(descriptor);
  if (status != Status::ok) return finish_connect(status, errno);
  if (const int error = wire_.start_connect(descriptor, connection_.address_family()); error != 0)
    finish_connect(Status::system_error, error);
}

void AsyncNode::wire_connected(AsyncWire& wire, int error) {
  (void)loop_.begin();
  if (&wire == &push_wire_)
    return finish_push(error == 0 ? Connection::connect_outcome(wire.descriptor()) : Status::system_error);
  Status status = error == 0 ? Connection::connect_outcome(wire.descriptor()) : Status::system_error;
  if (status != Status::ok && error == 0) error = errno;
  finish_connect(status, error);
}

// The outcome of the transport; the handshake follows.
void AsyncNode::finish_connect(Status status, int error) {
  if (status == Status::ok) {
    status = connection_.set_up();
    error = status == Status::ok ? wire_.start_use() : errno;
    if (status == Status::ok && error != 0) status = Status::system_error;
  }
  if (status == Status::ok) {
    connection_.handle_connected(now());
    return;
  }
  connection_.set_error_number(error);
  wire_.close();
  connection_.set_socket(-1);
  connection_.dialer().handle_dial_failed(status, now(), random());
}

// ---- Moving bytes ------------------------------------------------------------------------------------------------

void AsyncNode::wire_readable(AsyncWire& wire) {
  (void)loop_.begin();
  if (&wire == &wire_)
    receive_arrived();
  else
    receive_push();
}

void AsyncNode::receive_arrived() {
  Connection::Received received;
  do {
    received = connection_.look();
    take(received);
  } while (received == Connection::Received::bytes && connection_.pending());
}

void AsyncNode::take(Connection::Received received) {
  switch (received) {
    case Connection::Received::nothing:
    case Connection::Received::interrupted: return;
    case Connection::Received::bytes:
      loop_.note_heard();
      dispatch();
      break;
    case Connection::Received::closed: wire_closed(wire_, 0); break;
  }
  loop_.turn_again();  // This one may be past what has come of it.
}

void AsyncNode::wire_closed(AsyncWire& wire, int error) {
  (void)loop_.begin();
  if (&wire == &push_wire_) return close_push();
  if (error != 0) connection_.set_error_number(error);
  close_session();
  if (connection_.dialer().connecting()) return;  // The attempt goes on elsewhere.
  attempted_ = false;
  host_.node_down(*this);
}

void AsyncNode::dispatch() {
  Reply reply;
  while (session().poll_reply(reply, now())) host_.node_reply(*this, reply);
}

void AsyncNode::transmit_now() {
  while (open() && session().wants_look()) take(connection_.look());
  if (!open()) return;
  if (session().ready() && !ready()) return;  // Who answers there is told first, by work().
  connection_.transmit();
  if (connection_.waits_to_send()) wire_.await_writable();
}

bool AsyncNode::make_room(bool compensated) {
  if (!ready()) return false;
  connection_.transmit();  // As much as goes without a look: replies cannot be told here.
  // The end of this turn makes room, or, where the socket is full, the one that follows when it takes bytes again.
  if (session().wants_look() && !wire_.awaits_writable()) loop_.turn_again();
  return session().has_room(compensated, request_size_max);
}

void AsyncNode::read_arrived() {
  constexpr int receives_max = 16;  // A server that never stops sending must not keep a release from its end.
  if (!open()) return;
  loop_.schedule_turn();  // For what follows of it.
  transmit();
  for (int left = receives_max; open() && left != 0; --left) {
    const Connection::Received received = connection_.look();
    if (received == Connection::Received::nothing) return;
    take(received);
  }
}

void AsyncNode::give_up(const void* requester, Status why) {
  session().give_up(requester, why, now());
  dispatch();
}

void AsyncNode::work() {
  if (!wanted_) return;
  if (!ready()) {
    dial(false);
    if (connection_.handle_ready(now())) {
      attempted_ = false;
      host_.node_ready(*this);
    }
  }
  if (open()) {
    transmit();
    if (session().state() == SessionState::failed) wire_closed(wire_, 0);
  }
  if (push_used_) work_push();
}

void AsyncNode::receive() {
  if (session().state() == SessionState::failed) return loop_.turn_again();  // Found out by the last send.
  if (open()) wire_.await_readable();
  if (push_open()) push_wire_.await_readable();
}

Instant AsyncNode::next_timeout() const noexcept {
  const Instant next = wanted_ ? connection_.timeout() : Instant::max();
  if (!push_used_ || (!push_open() && push_dialer_.state() != DialState::dialling && !push_wanted())) return next;
  return earlier(next, earlier(push_dialer_.poll_timeout(), subscriber_->poll_timeout()));
}

void AsyncNode::judge_time() {
  if (wanted_) dial(true);
  if (push_dialer_.state() == DialState::dialling) dial_push(true);
  judge_requests();
  if (push_used_) subscriber_->handle_timeout(now());
}

void AsyncNode::judge_requests() {
  if (now() < session().poll_timeout()) return;
  session().handle_timeout(now());
  dispatch();
}

// ---- Subscriptions -----------------------------------------------------------------------------------------------

Subscriber::Waiter* AsyncNode::listen(const Announcement& announcement, Key key, void* owner) {
  push_used_ = true;
  Subscriber::Waiter* const waiter = subscriber_->enter(announcement, key, now());
  if (waiter != nullptr) waiter->owner = owner;
  return waiter;
}

void AsyncNode::leave(Subscriber::Waiter& waiter, bool with_lock) { subscriber_->leave(waiter, with_lock); }

void AsyncNode::receive_push() {
  do {
    const MutableBytes space = subscriber_->receive_space();
    if (space.size == 0) return;  // It has failed.
    const std::ptrdiff_t count = push_stream_.receive(space, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (count <= 0) return close_push();
    loop_.note_heard();
    subscriber_->handle_received(static_cast<std::size_t>(count), now());
  } while (push_stream_.pending());
  // Only a subscription that was granted is a success: a server that refuses it is left alone for longer and longer.
  if (subscriber_->established() && !push_dialer_.ready()) push_dialer_.handle_ready(now());
}

void AsyncNode::dial_push(bool judging) {
  Dialer& dialer = push_dialer_;
  while (due(dialer, judging)) switch (dialer.poll_action(now(), random())) {
      case DialAction::none:
      case DialAction::resolve: return;  // It goes where the client goes, and asks for no name.
      case DialAction::dial: open_push(); break;
      case DialAction::hang_up: hang_up_push(); break;
    }
}

void AsyncNode::open_push() {
  subscriber_->configure(connection_.subscriber_settings());  // Which channels the server has is known by now.
  push_place_ = connection_.dialer().place();
  bool connected = false;
  int descriptor = -1;
  Status status = connection_.begin_connect(descriptor, connected);
  if (status == Status::ok && push_wire_.start_connect(descriptor, connection_.address_family()) != 0)
    status = Status::system_error;
  if (status != Status::ok) finish_push(status);
}

void AsyncNode::finish_push(Status status) {
  push_stream_.adopt(push_wire_.descriptor());
  // The client may have gone on to another host, whose address is not known yet, while this one was slow to accept.
  if (status == Status::ok && push_place_ != connection_.dialer().place()) status = Status::not_connected;
  if (status == Status::ok) status = connection_.set_up(push_stream_);
  if (status == Status::ok && push_wire_.start_use() == 0) {
    subscriber_->handle_connected(now());
    push_dialer_.handle_dialled();
    return;
  }
  hang_up_push();
  push_dialer_.handle_dial_failed(status == Status::ok ? Status::system_error : status, now(), random());
}

void AsyncNode::hang_up_push() {
  push_stream_.drop_layer();
  push_stream_.adopt(-1);  // The wire's, which closes it.
  push_wire_.close();
}

void AsyncNode::close_push() {
  hang_up_push();
  subscriber_->handle_closed();
  Dialer& dialer = push_dialer_;
  if (push_open())
    dialer.handle_closed(subscriber_->failure(), dialer.lasted(now()), now(), random());
  else
    dialer.abandon();
}

void AsyncNode::transmit_push() {
  for (ByteView bytes = subscriber_->poll_transmit(now()); !bytes.empty() || push_stream_.unsent();
       bytes = subscriber_->poll_transmit(now())) {
    const std::ptrdiff_t sent = push_stream_.send(bytes, MSG_DONTWAIT);
    if (sent >= 0) {
      subscriber_->handle_transmitted(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (push_stream_.waits_to_send(true)) push_wire_.await_writable();
      return;
    } else if (errno != EINTR) {
      close_push();
      return;
    }
  }
}

void AsyncNode::work_push() {
  // Where the client went on to another address, releases are announced there.
  const bool elsewhere = push_open() && push_place_ != connection_.dialer().place();
  if (elsewhere || subscriber_->state() == SubscriberState::failed) close_push();
  if (!push_dialer_.ready() && (push_wanted() || push_dialer_.state() == DialState::dialling)) dial_push(false);
  if (push_open()) transmit_push();
}

}  // namespace holdfast
