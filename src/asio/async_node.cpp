// SPDX-License-Identifier: MIT
#include "async_node.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>

#include "holdfast/lock_machine.hpp"

namespace holdfast {

namespace {

// Replies of a few hundred requests come with one receive.
constexpr std::size_t receive_size = 16 * 1024;
// A request and its token, and a text now and then.
constexpr std::size_t transmit_size_each = 192;
// With several addresses, a silent one must leave time for the next.
constexpr Duration address_timeout_min = std::chrono::milliseconds(100);

}  // namespace

struct AsyncNode::Buffers {
  explicit Buffers(const Limits& limits)
      : in_flight_count(limits.requests),
        transmit_size(transmit_size_max + limits.requests * transmit_size_each),
        waiter_count(limits.waiters == 0 ? 1 : limits.waiters),
        transmit(new char[transmit_size]),
        in_flight(new Session::InFlight[in_flight_count]),
        compensations(new Session::CompensationSlot[in_flight_count / 2]()),
        waiters(new Subscriber::Waiter[waiter_count]) {}

  [[nodiscard]] Session::Storage session() noexcept {
    return {.receive = {receive, sizeof receive},
            .nodes = nodes,
            .node_count = elements_max,
            .transmit = {transmit.get(), transmit_size},
            .in_flight = in_flight.get(),
            .in_flight_count = in_flight_count,
            .compensations = compensations.get(),
            .compensation_count = in_flight_count / 2};
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
  std::unique_ptr<Subscriber::Waiter[]> waiters;
  char receive[receive_size];
  RespValue nodes[elements_max];
  char push_receive[8 * message_size_max];
  RespValue push_nodes[message_elements_max];
  char push_transmit[4 * subscriber_transmit_size_max];
};

AsyncNode::AsyncNode(AsyncLoop& loop, Host& host, const Limits& limits)
    : loop_(loop),
      host_(host),
      buffers_(new Buffers(limits)),
      client_(buffers_->session()),
      wire_(loop, *this),
      push_wire_(loop, *this) {
  subscriber_.emplace(push_settings(), buffers_->subscriber());
  (void)client_.ensure_page();  // Locks look at it from any thread, also while the first connection is made.
}

AsyncNode::~AsyncNode() {
  client_.socket_ = -1;  // The wire's, which closes it.
}

Status AsyncNode::draw_ordinal(Token& token) noexcept { return client_.draw_ordinal(token); }

std::uint16_t AsyncNode::random() noexcept { return client_.random(); }

// ---- Connecting --------------------------------------------------------------------------------------------------

Status AsyncNode::prepare(const ClientConfig& config, Instant now) {
  disconnect();  // Who is told of it waits for the next connection.
  const Status status = client_.prepare(config);
  client_.now_ = now;
  wanted_ = status == Status::ok;
  if (!wanted_) return status;
  subscriber_->configure(push_settings());
  exhausted_ = false;
  return Status::ok;
}

void AsyncNode::close() {
  wanted_ = false;
  disconnect();
}

void AsyncNode::disconnect() {
  ++resolving_;
  if (resolver_) resolver_->cancel();
  if (client_.socket_ >= 0 && state_ == State::open && !client_.forked()) client_.transmit();
  close_session();
  close_push();
}

// What was in flight is answered.
void AsyncNode::close_session() {
  state_ = State::closed;
  introduced_ = false;
  wire_.close(client_.forked());
  client_.socket_ = -1;
  session().handle_closed();
  dispatch();
}

void AsyncNode::start_connect() {
  const bool named = config().socket_path.empty() && !client_.take_literal();
  if (named && (client_.address_count_ == 0 || exhausted_))
    start_resolve();
  else
    open_first();
}

// One attempt goes over all addresses, the one that worked last first.
void AsyncNode::open_first() {
  const bool several = config().socket_path.empty() && client_.address_count_ > 1;
  untried_ = several ? static_cast<std::uint8_t>(client_.address_count_ - 1) : 0;
  open_wire();
}

// A thread of Asio's asks libc, so that the loop goes on; and the heap is used, as by libc itself.
void AsyncNode::start_resolve() {
  if (!resolver_) resolver_.emplace(loop_.executor());
  state_ = State::resolving;
  exhausted_ = false;
  untried_ = 0;
  connect_deadline_ = now() + config().connect_timeout;
  char port[8] = {};
  (void)std::snprintf(port, sizeof port, "%u", static_cast<unsigned>(config().port));
  resolver_->async_resolve(config().host.c_str(), port,
                           asio::ip::resolver_base::address_configured | asio::ip::resolver_base::numeric_service,
                           [this, alive = loop_.shared_from_this(), serial = ++resolving_](
                               const asio::error_code& error, const asio::ip::tcp::resolver::results_type& found) {
                             if (serial != resolving_ || state_ != State::resolving) return;
                             std::uint8_t count = 0;
                             for (const auto& entry : found) {
                               const asio::ip::tcp::endpoint endpoint = entry.endpoint();
                               if (error || count == addresses_max) break;
                               Client::SocketAddress& address = client_.addresses_[count];
                               if (endpoint.size() > sizeof address.bytes) continue;
                               std::memcpy(address.bytes, endpoint.data(), endpoint.size());
                               address.size = static_cast<std::uint8_t>(endpoint.size());
                               address.family = static_cast<std::uint8_t>(endpoint.protocol().family());
                               ++count;
                             }
                             (void)loop_.begin();
                             if (count != 0) {
                               client_.address_count_ = count;
                               client_.address_index_ = 0;
                             }
                             if (client_.address_count_ == 0)
                               finish_connect(Status::name_not_resolved, 0);
                             else
                               open_first();
                             loop_.turn();
                           });
}

void AsyncNode::open_wire() {
  bool connected = false;
  int descriptor = -1;
  const Status status = client_.begin_connect(descriptor, connected);
  if (status != Status::ok) return finish_connect(status, errno);
  const int family = client_.address_family();
  client_.socket_ = descriptor;
  state_ = State::connecting;
  Duration share = config().connect_timeout;
  if (client_.address_count_ > 1 && config().socket_path.empty()) share = share / client_.address_count_;
  if (share < address_timeout_min) share = address_timeout_min;
  connect_deadline_ = earlier(now() + share, now() + config().connect_timeout);
  if (const int error = wire_.start_connect(descriptor, family); error != 0)
    finish_connect(Status::system_error, error);
}

void AsyncNode::wire_connected(AsyncWire& wire, int error) {
  (void)loop_.begin();
  if (&wire == &push_wire_) return finish_push(error == 0 && Client::connect_outcome(wire.descriptor()) == Status::ok);
  Status status = error == 0 ? Client::connect_outcome(wire.descriptor()) : Status::system_error;
  if (status != Status::ok && error == 0) error = errno;
  finish_connect(status, error);
}

// The outcome of the transport; the handshake follows.
void AsyncNode::finish_connect(Status status, int error) {
  if (status == Status::ok) {
    error = client_.set_up_socket(client_.socket_) == Status::ok ? wire_.start_use() : errno;
    if (error != 0) status = Status::system_error;
  }
  if (status == Status::ok) {
    state_ = State::open;
    session().handle_connected(now(), now() + config().connect_timeout);
    return;
  }
  client_.error_number_ = error;
  state_ = State::closed;
  wire_.close();
  client_.socket_ = -1;
  if (client_.address_count_ != 0 && ++client_.address_index_ == client_.address_count_) client_.address_index_ = 0;
  if (untried_ != 0) {
    --untried_;
    state_ = State::next_address;
    return;
  }
  exhausted_ = client_.address_count_ != 0;
  (void)client_.note_connect(status);
  host_.node_down(*this);
}

// ---- Moving bytes ------------------------------------------------------------------------------------------------

void AsyncNode::wire_received(AsyncWire& wire, std::size_t count) {
  const Instant now = loop_.begin();
  loop_.note_heard();
  if (&wire == &wire_) {
    session().handle_received(count, now);
    client_.last_used_ = now;
    dispatch();
    return;
  }
  push_delay_ = Duration::zero();  // It is alive: the next loss is a new one.
  subscriber_->handle_received(count, now);
  push_heard_ = true;
}

void AsyncNode::wire_closed(AsyncWire& wire, int error) {
  (void)loop_.begin();
  if (&wire == &push_wire_) return close_push();
  if (error != 0) client_.error_number_ = error;
  const Status before = session().failure();
  const bool was_ready = introduced_;
  close_session();
  const Status why = before == Status::ok ? Status::transport_closed : before;
  if (was_ready) {
    client_.failure_ = why;
    client_.next_connect_at_ = now() + client_.jittered(reconnect_delay_min);
  } else {
    (void)client_.note_connect(why);
  }
  host_.node_down(*this);
}

void AsyncNode::dispatch() {
  Reply reply;
  while (session().poll_reply(reply, now())) host_.node_reply(*this, reply);
}

void AsyncNode::transmit() {
  if (state_ != State::open) return;
  client_.transmit();
  if (session().unsent()) wire_.await_writable();
}

bool AsyncNode::make_room(bool compensated) {
  if (!introduced_) return false;
  transmit();  // As much as goes.
  return session().has_room(compensated, template_size_max);
}

Status AsyncNode::ask_remaining(const LockMachine& machine, void* requester) {
  const Session::Place place = session().open(false);
  CommandLine line;
  const LockKind& kind = machine.kind();
  if (kind.name_at == nullptr)
    line.add("PTTL").add(machine.key().bytes());
  else
    kind.fill(line, kind, Operation::query, RequestForm::by_text, {.key = machine.key()});
  std::size_t size = 0;
  if (place.request == nullptr || encode_command(place.space, line.view(), size) != Status::ok)
    return Status::too_many_requests;
  *place.request = {.tag = {.requester = requester, .generation = machine.generation()},
                    .deadline = now() + config().request_timeout};
  session().commit(*place.request, size, now());
  return Status::ok;
}

void AsyncNode::give_up(const void* requester, Status why) {
  session().give_up(requester, why, now());
  dispatch();
}

void AsyncNode::work() {
  if (!wanted_) return;
  if (state_ == State::closed && now() >= client_.next_connect_at_) start_connect();
  while (state_ == State::next_address) open_wire();
  if (state_ == State::open) {
    transmit();
    if (session().state() == SessionState::failed) wire_closed(wire_, 0);
  }
  if (session().ready() && !introduced_) {
    introduced_ = true;
    (void)client_.note_connect(Status::ok);
    host_.node_ready(*this);
    transmit();
  }
  if (push_used_) work_push();
}

void AsyncNode::receive() {
  if (session().state() == SessionState::failed) return loop_.turn_again();  // Found out by the last send.
  if (state_ == State::open && !wire_.receiving()) wire_.receive(session().receive_space());
  if (push_state_ == State::open && !push_wire_.receiving()) push_wire_.receive(subscriber_->receive_space());
}

Instant AsyncNode::next_timeout() const noexcept {
  Instant next = Instant::max();
  if (wanted_) {
    switch (state_) {
      case State::closed: next = client_.next_connect_at_; break;
      case State::next_address: next = now(); break;
      case State::resolving:
      case State::connecting: next = connect_deadline_; break;
      case State::open: next = session().poll_timeout(); break;
    }
  }
  if (!push_used_) return next;
  switch (push_state_) {
    case State::closed: return subscriber_->has_waiters() && introduced_ ? earlier(next, push_connect_at_) : next;
    case State::resolving:
    case State::next_address:
    case State::connecting: return earlier(next, push_deadline_);
    case State::open: return earlier(next, subscriber_->poll_timeout());
  }
  return next;
}

void AsyncNode::judge_time() {
  if ((state_ == State::connecting || state_ == State::resolving) && now() >= connect_deadline_) {
    const bool resolving = state_ == State::resolving;
    ++resolving_;
    finish_connect(resolving ? Status::name_not_resolved : Status::connect_failed, ETIMEDOUT);
  }
  if (now() >= session().poll_timeout()) {
    session().handle_timeout(now());
    dispatch();
  }
  if (!push_used_) return;
  if (push_state_ == State::connecting && now() >= push_deadline_) finish_push(false);
  subscriber_->handle_timeout(now());
}

// ---- Subscriptions -----------------------------------------------------------------------------------------------

SubscriberSettings AsyncNode::push_settings() const noexcept {
  const ClientConfig& configuration = client_.config_;
  return {.user = configuration.user.view(),
          .password = configuration.password.view(),
          .client_name = configuration.client_name.view(),
          .stall_timeout = configuration.stall_timeout,
          .heartbeat = configuration.max_poll};
}

Subscriber::Waiter* AsyncNode::listen(Key key) {
  push_used_ = true;
  return subscriber_->enter(key, now());
}

void AsyncNode::leave(Subscriber::Waiter& waiter, bool with_lock) {
  subscriber_->leave(waiter, with_lock);
  if (!with_lock) push_heard_ = true;  // It may have passed its wake on.
}

void AsyncNode::connect_push() {
  push_address_ = client_.address_index_;
  push_delay_ *= 2;
  if (push_delay_ < reconnect_delay_min) push_delay_ = reconnect_delay_min;
  if (push_delay_ > reconnect_delay_max) push_delay_ = reconnect_delay_max;
  push_connect_at_ = now() + client_.jittered(push_delay_);
  bool connected = false;
  int descriptor = -1;
  if (client_.begin_connect(descriptor, connected) != Status::ok) return;
  push_deadline_ = now() + config().connect_timeout;
  if (push_wire_.start_connect(descriptor, client_.address_family()) == 0) push_state_ = State::connecting;
}

void AsyncNode::finish_push(bool good) {
  if (good && client_.set_up_socket(push_wire_.descriptor()) == Status::ok && push_wire_.start_use() == 0) {
    push_state_ = State::open;
    subscriber_->handle_connected(now());
  } else {
    push_state_ = State::closed;
    push_wire_.close();
  }
}

void AsyncNode::close_push() {
  push_state_ = State::closed;
  push_wire_.close(client_.forked());
  subscriber_->handle_closed();
  push_heard_ = true;
}

void AsyncNode::transmit_push() {
  for (ByteView bytes = subscriber_->poll_transmit(now()); !bytes.empty(); bytes = subscriber_->poll_transmit(now())) {
    const ssize_t sent = ::send(push_wire_.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      subscriber_->handle_transmitted(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      push_wire_.await_writable();
      return;
    } else if (errno != EINTR) {
      close_push();
      return;
    }
  }
}

void AsyncNode::work_push() {
  // Where the client went on to another address, releases are announced there.
  const bool elsewhere = push_state_ == State::open && push_address_ != client_.address_index_;
  if (elsewhere || subscriber_->state() == SubscriberState::failed) close_push();
  if (push_state_ == State::closed && introduced_ && subscriber_->has_waiters() && now() >= push_connect_at_)
    connect_push();
  if (push_state_ != State::open) return;
  transmit_push();
}

}  // namespace holdfast
