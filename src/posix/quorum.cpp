// SPDX-License-Identifier: MIT
//
// The connections of a quorum: N clients whose sockets are waited for together.
#include "holdfast/quorum.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "client_hot.hpp"
#include "holdfast/quorum_lock.hpp"
#include "holdfast/url.hpp"

namespace holdfast {

namespace {

// A resolver may take seconds: it is asked again no sooner than this.
constexpr Duration resolve_interval = std::chrono::seconds(10);
// With several addresses, a silent one must leave time for the next.
constexpr Duration address_timeout_min = std::chrono::milliseconds(100);
// How long connect() waits for the rest once a majority is there.
constexpr Duration connect_grace = std::chrono::milliseconds(250);
// Connections that were not looked at for so long may be gone.
constexpr Duration idle_max = std::chrono::seconds(1);

}  // namespace

// ---- Connecting --------------------------------------------------------------------------------------------------

Status QuorumClient::connect(const ByteView* urls, std::size_t count, const QuorumConfig& config) noexcept {
  problem_ = {};
  if (count == 0 || count > roll_.capacity()) {
    problem_ = {"nodes", "a quorum has 1 to nodes_max nodes, and no more than it was made for"};
    return Status::invalid_argument;
  }
  // One after the other, since nine configurations are more than a small stack has.
  for (std::size_t index = 0; index < count; ++index) {
    ClientConfig node;
    const char* reason = nullptr;
    problem_node_ = index;
    if (const Status status = parse_url(urls[index], node, &reason); status != Status::ok) {
      problem_ = {"url", reason};
      return status;
    }
    problem_ = validate(node);
    if (problem_.found()) return Status::invalid_argument;
  }
  if (const Status status = prepare(count, config); status != Status::ok) return status;
  for (std::size_t index = 0; index < count; ++index) {
    ClientConfig node;
    (void)parse_url(urls[index], node, nullptr);
    if (const Status status = prepare_node(index, node); status != Status::ok) return status;
  }
  return connect_all();
}

Status QuorumClient::connect(const ClientConfig* configs, std::size_t count, const QuorumConfig& config) noexcept {
  problem_ = {};
  if (count == 0 || count > roll_.capacity()) {
    problem_ = {"nodes", "a quorum has 1 to nodes_max nodes, and no more than it was made for"};
    return Status::invalid_argument;
  }
  for (std::size_t index = 0; index < count; ++index) {
    problem_node_ = index;
    problem_ = validate(configs[index]);
    if (problem_.found()) return Status::invalid_argument;
  }
  if (const Status status = prepare(count, config); status != Status::ok) return status;
  for (std::size_t index = 0; index < count; ++index)
    if (const Status status = prepare_node(index, configs[index]); status != Status::ok) return status;
  return connect_all();
}

Status QuorumClient::prepare(std::size_t count, const QuorumConfig& config) noexcept {
  problem_node_ = 0;
  if (!config.valid()) {
    problem_ = {"max_lease", "it must be from lease_min to lease_max"};
    return Status::invalid_argument;
  }
  if (first_ != nullptr && count != nodes()) return Status::already_held;
  close();
  roll_.configure(count, config);
  for (std::size_t index = 0; index < count; ++index) roll_.enter(index, nodes_[index].client);
  return Status::ok;
}

Status QuorumClient::prepare_node(std::size_t index, const ClientConfig& config) noexcept {
  Node& node = nodes_[index];
  problem_node_ = index;
  const Status status = node.client.prepare(config);
  problem_ = node.client.problem();
  node.connecting = false;
  node.resolved_at = Instant();
  return status;
}

// To every node, so that one that is given twice is noticed at once.
Status QuorumClient::connect_all() noexcept {
  read_clock();
  Duration longest = timeout_min;
  for (std::size_t index = 0; index < nodes(); ++index)
    if (nodes_[index].client.config_.connect_timeout > longest) longest = nodes_[index].client.config_.connect_timeout;
  Instant until = now_ + longest;
  for (bool enough = false;;) {
    move();
    // Who is slower than a majority is not waited for much longer.
    if (!enough && roll_.verdict(now_) == Status::ok) {
      enough = true;
      until = earlier(until, now_ + connect_grace);
    }
    if (!any_connecting() || now_ >= until) break;
    wait_until(earlier(until, next_timeout()));
    if (nodes_[0].client.take_cancel()) return Status::cancelled;
  }
  return roll_.verdict(now_);
}

void QuorumClient::close() noexcept {
  for (std::size_t index = 0; index < nodes(); ++index) {
    Node& node = nodes_[index];
    node.connecting = false;
    roll_.forget(index);
    if (node.client.forked()) continue;
    if (node.client.session_.state() == SessionState::closed && node.client.socket_ >= 0) {
      ::close(node.client.socket_);  // It was on its way.
      node.client.socket_ = -1;
    }
    if (node.client.socket_ >= 0) {
      node.client.now_ = Client::now();
      node.client.transmit();
      node.client.close_transport();
      dispatch(node);
    }
    node.client.close_push(Client::PushState::closed);
  }
}

void QuorumClient::start_connect(Node& node) noexcept {
  Client& client = node.client;
  const bool named = client.config_.socket_path.empty() && !client.take_literal();
  const bool ask = named && (client.address_count_ == 0 || node.exhausted) &&
                   (node.resolved_at == Instant() || now_ - node.resolved_at >= resolve_interval);
  if (ask) {
    node.resolved_at = now_;
    node.exhausted = false;
    const Status resolved = client.resolve();
    read_clock();
    if (resolved != Status::ok && client.address_count_ == 0) {
      finish_connect(node, resolved);
      return;
    }
  }
  bool connected = false;
  const Status status = client.begin_connect(client.socket_, connected);
  if (status != Status::ok) {
    client.error_number_ = errno;
    finish_connect(node, status == Status::not_connected ? Status::name_not_resolved : status);
    return;
  }
  Duration share = client.config_.connect_timeout;
  if (client.address_count_ > 1 && client.config_.socket_path.empty()) share = share / client.address_count_;
  if (share < address_timeout_min)
    share = earlier(now_ + client.config_.connect_timeout, now_ + address_timeout_min) - now_;
  node.connect_deadline = now_ + share;
  node.connecting = !connected;
  if (connected) finish_connect(node, Status::ok);
}

// The outcome of the transport; the handshake follows.
void QuorumClient::finish_connect(Node& node, Status status) noexcept {
  Client& client = node.client;
  node.connecting = false;
  if (status == Status::ok && client.set_up_socket(client.socket_) != Status::ok) status = Status::system_error;
  if (status == Status::ok) {
    client.session_.handle_connected(now_, now_ + client.config_.connect_timeout);
    return;
  }
  if (client.socket_ >= 0) ::close(client.socket_);
  client.socket_ = -1;
  if (client.address_count_ != 0 && ++client.address_index_ == client.address_count_) {
    client.address_index_ = 0;
    node.exhausted = true;
  }
  roll_.leave(index_of(node), client.note_connect(status));
}

void QuorumClient::close_node(Node& node) noexcept {
  Client& client = node.client;
  const Status why = client.session_.failure();
  client.close_transport();
  dispatch(node);
  const Status status = why == Status::ok ? Status::transport_closed : why;
  if (!roll_.introduced(index_of(node))) {
    (void)client.note_connect(status);
  } else {
    client.failure_ = status;
    client.next_connect_at_ = now_ + client.jittered(reconnect_delay_min);
  }
  roll_.leave(index_of(node), status);
}

// The handshake is done; every lock learns whether the node is one of its own.
void QuorumClient::look_at(std::size_t index) noexcept {
  (void)nodes_[index].client.note_connect(Status::ok);
  const NodeSet changed = roll_.introduce(index, now_);
  for (QuorumLock* lock = first_; lock != nullptr; lock = lock->next_)
    for (NodeSet left = changed; left != 0; left = static_cast<NodeSet>(left & (left - 1)))
      if (const auto node = static_cast<std::size_t>(__builtin_ctz(left)); node < lock->machine_.nodes())
        lock->machine_.exclude(node, roll_.excluded(node));
}

Instant QuorumClient::request_deadline() const noexcept { return now_ + nodes_[0].client.config_.request_timeout; }

// ---- Moving bytes ------------------------------------------------------------------------------------------------

void QuorumClient::read_clock() noexcept {
  now_ = Client::now();
  for (std::size_t index = 0; index < nodes(); ++index) nodes_[index].client.now_ = now_;
}

Status QuorumClient::begin() noexcept {
  if (nodes() == 0) return Status::not_connected;
  for (std::size_t index = 0; index < nodes(); ++index) {
    Node& node = nodes_[index];
    const std::uint32_t incarnation = node.client.incarnation_.load();
    if (const Status status = node.client.begin(); status != Status::ok) return status;
    if (node.client.incarnation_.load() == incarnation) continue;
    node.connecting = false;
    roll_.forget(index);
  }
  read_clock();
  // What has arrived counts, and those that have gone meanwhile are noticed before they are asked.
  if (expects_bytes() || now_ - looked_at_ > idle_max) {
    wait_until(now_);
    move();
  }
  return Status::ok;
}

void QuorumClient::dispatch(Node& node) noexcept {
  Reply reply;
  while (node.client.session_.poll_reply(reply, now_)) {
    if (reply.tag.requester == &node.client) {
      node.client.take_query_reply(reply);
      continue;
    }
    auto& vote = *static_cast<QuorumVote*>(reply.tag.requester);
    vote.machine.handle_reply(reply, now_);
    static_cast<QuorumLock*>(vote.owner)->settle(vote);
  }
}

void QuorumClient::receive(Node& node) noexcept {
  Client& client = node.client;
  const MutableBytes space = client.session_.receive_space();
  if (space.size == 0) return;
  const ssize_t count = ::recv(client.socket_, space.data, space.size, MSG_DONTWAIT);
  const Client::Received received = client.take_received(count);
  now_ = later(now_, client.now_);
  dispatch(node);
  if (received == Client::Received::closed) close_node(node);
}

void QuorumClient::move_node(std::size_t index) noexcept {
  Node& node = nodes_[index];
  Client& client = node.client;
  client.now_ = now_;
  if (node.connecting) {
    if (now_ >= node.connect_deadline) finish_connect(node, Status::connect_failed);
    if (node.connecting || client.socket_ < 0) return;
  }
  if (client.socket_ < 0) {
    if (now_ < client.next_connect_at_) return;
    start_connect(node);
    if (client.socket_ < 0 || node.connecting) return;
  }
  Session& session = client.session_;
  if (now_ >= session.poll_timeout()) {
    receive(node);  // Arrived bytes are read before a deadline is judged.
    if (client.socket_ < 0) return;
    session.handle_timeout(now_);
    dispatch(node);
  }
  client.transmit();
  if (session.state() == SessionState::failed) close_node(node);
  if (session.ready() && !roll_.introduced(index)) look_at(index);
  if (now_ >= roll_.introduction_due(index)) close_node(node);
}

void QuorumClient::move() noexcept {
  for (std::size_t index = 0; index < nodes(); ++index) move_node(index);
}

void QuorumClient::wait_until(Instant then, bool cancellable) noexcept {
  pollfd entries[1 + 2 * nodes_max];
  entries[0] = {.fd = cancellable ? nodes_[0].client.wake_ : -1, .events = POLLIN, .revents = 0};
  std::size_t count = 1;
  for (std::size_t index = 0; index < nodes(); ++index) {
    const Node& node = nodes_[index];
    const bool writes = node.connecting || node.client.session_.unsent();
    const bool reads = !node.connecting;
    entries[count++] = {.fd = node.client.socket_,  // Below zero it is passed over.
                        .events = static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)),
                        .revents = 0};
  }
  for (std::size_t index = 0; index < extra_count_; ++index)
    entries[count++] = {.fd = extra_[index].descriptor, .events = extra_[index].events, .revents = 0};
  const Duration left = now_ < then ? then - now_ : Duration::zero();
  const std::int64_t sleep = left > sleep_max ? sleep_max.count() : left.count();
  const timespec limit = {.tv_sec = static_cast<time_t>(sleep / 1'000'000'000),
                          .tv_nsec = static_cast<long>(sleep % 1'000'000'000)};
  const int ready = ::ppoll(entries, count, &limit, nullptr);
  read_clock();
  looked_at_ = now_;
  for (std::size_t index = 0; index < extra_count_; ++index)
    extra_[index].ready = ready > 0 && entries[1 + nodes() + index].revents != 0;
  if (ready <= 0) return;
  for (std::size_t index = 0; index < nodes(); ++index) {
    Node& node = nodes_[index];
    const short events = entries[1 + index].revents;
    if (events == 0 || node.client.socket_ != entries[1 + index].fd) continue;
    if (node.connecting) {
      const Status status = Client::connect_outcome(node.client.socket_);
      node.client.error_number_ = status == Status::ok ? 0 : errno;
      finish_connect(node, status);
    } else if ((events & ~POLLOUT) != 0) {
      receive(node);
    }
  }
}

Instant QuorumClient::next_timeout() const noexcept {
  Instant next = Instant::max();
  for (std::size_t index = 0; index < nodes(); ++index) {
    const Node& node = nodes_[index];
    next = earlier(next, node.connecting           ? node.connect_deadline
                         : node.client.socket_ < 0 ? node.client.next_connect_at_
                                                   : node.client.session_.poll_timeout());
  }
  return next;
}

bool QuorumClient::any_connecting() const noexcept {
  for (std::size_t index = 0; index < nodes(); ++index) {
    const Node& node = nodes_[index];
    if (node.connecting || (node.client.socket_ >= 0 && !roll_.introduced(index))) return true;
  }
  return false;
}

bool QuorumClient::expects_bytes() const noexcept {
  for (std::size_t index = 0; index < nodes(); ++index)
    if (nodes_[index].connecting || nodes_[index].client.session_.in_flight() != 0) return true;
  return false;
}

bool QuorumClient::pump(QuorumLock* lock, Instant until) noexcept {
  for (;;) {
    move();
    if (lock != nullptr) lock->catch_up();
    const bool answered = lock != nullptr && !lock->machine_.waiting();
    if (answered || now_ >= until) {
      if (answered) transmit_all();
      return true;
    }
    Instant then = earlier(until, next_timeout());
    if (lock != nullptr) then = earlier(then, lock->machine_.poll_timeout());
    wait_until(then);
    if (nodes_[0].client.take_cancel()) return false;
  }
}

// What an answer calls for leaves before the call returns.
void QuorumClient::transmit_all() noexcept {
  for (std::size_t index = 0; index < nodes(); ++index)
    if (nodes_[index].client.socket_ >= 0 && !nodes_[index].connecting) nodes_[index].client.transmit();
}

// Waits for a majority that may vote, as long as one is on its way.
Status QuorumClient::gather(Instant until) noexcept {
  for (;;) {
    const Status status = roll_.verdict(now_);
    if (status != Status::no_quorum) return status;
    move();
    if (roll_.verdict(now_) != Status::no_quorum) continue;
    if (!any_connecting() || now_ >= until) return status;
    wait_until(earlier(until, next_timeout()));
    if (nodes_[0].client.take_cancel()) return Status::cancelled;
  }
}

Duration QuorumClient::random_delay(Duration most) noexcept {
  return retry_delay_min + most * nodes_[0].client.random() / UINT16_MAX;
}

// ---- Keeping holds alive -----------------------------------------------------------------------------------------

Instant QuorumClient::tend_next() const noexcept {
  Instant next = Instant::max();
  for (const QuorumLock* lock = first_; lock != nullptr; lock = lock->next_) {
    if (lock->orphaned() || !lock->kept()) continue;
    next = earlier(next, lock->machine_.poll_timeout());
    if (lock->may_renew(now_)) next = earlier(next, lock->machine_.renewal_due());
  }
  return next;
}

Instant QuorumClient::tend() noexcept {
  if (begin() != Status::ok) return Instant::max();
  if (looked_at_ != now_) wait_until(now_);  // What has arrived since the last call.
  move();
  tend_holds();
  const Instant next = tend_next();
  return compensations_pending() == 0 ? next : earlier(next, next_timeout());
}

void QuorumClient::tend_due() noexcept {
  if (tend_next() <= now_) tend_holds();
}

// What is due is asked for together, and waited for together.
void QuorumClient::tend_holds() noexcept {
  bool open = false;
  const Instant until = request_deadline();
  for (QuorumLock* lock = first_; lock != nullptr; lock = lock->next_) {
    if (lock->orphaned()) continue;
    lock->catch_up();
    if (!lock->kept() || lock->machine_.renewal_due() > now_ || !lock->may_renew(now_)) continue;
    open = lock->start_renewal(until) == Status::ok || open;
  }
  while (open) {
    move();
    open = false;
    Instant then = earlier(until, next_timeout());
    for (QuorumLock* lock = first_; lock != nullptr; lock = lock->next_) {
      if (lock->orphaned()) continue;
      lock->catch_up();
      if (!lock->machine_.waiting() || !lock->kept()) continue;
      open = true;
      then = earlier(then, lock->machine_.poll_timeout());
    }
    if (!open || now_ >= until) break;
    wait_until(then, false);
  }
  transmit_all();
  // A callback may release, acquire or destroy any lock: after each, the list is read anew.
  for (QuorumLock* lock = first_; lock != nullptr;) {
    QuorumLock* const next = lock->next_;
    const bool told = lock->untold_ != QuorumLock::Told::nothing && !lock->orphaned();
    if (told) lock->tell();
    lock = told ? first_ : next;
  }
}

bool QuorumClient::sleep_tending(Instant then) noexcept {
  do {
    if (!pump(nullptr, earlier(then, tend_next()))) return false;
    tend_due();
  } while (now_ < then);
  return true;
}

}  // namespace holdfast
