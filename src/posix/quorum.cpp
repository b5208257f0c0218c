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
  roll_.begin(count, config, Client::now());
  for (std::size_t index = 0; index < count; ++index)
    roll_.attach(index, nodes_[index].client.session_, nodes_[index].client.config_);
  return Status::ok;
}

Status QuorumClient::prepare_node(std::size_t index, const ClientConfig& config) noexcept {
  Node& node = nodes_[index];
  problem_node_ = index;
  roll_.enter(index, config);
  node.client.question_ = &node.resolver;
  const Status status = node.client.prepare(config);
  problem_ = node.client.problem();
  return status;
}

// To every node, so that one that is given twice is noticed at once.
Status QuorumClient::connect_all() noexcept {
  read_clock();
  if (now_ == Instant::max()) return Status::system_error;  // It cannot be read.
  Duration longest = timeout_min;
  for (std::size_t index = 0; index < nodes(); ++index)
    if (nodes_[index].client.config_.connect_timeout > longest) longest = nodes_[index].client.config_.connect_timeout;
  Instant until = now_ + longest;
  for (bool enough = false;;) {
    move();
    tend_due();
    // Who is slower than a majority is not waited for much longer.
    if (!enough && roll_.verdict(now_) == Status::ok) {
      enough = true;
      until = earlier(until, now_ + connect_grace);
    }
    if (!any_connecting() || now_ >= until || nodes_[0].client.cancelled()) break;
    wait_until(earlier(until, earlier(tend_next(), next_timeout())));
  }
  return nodes_[0].client.conclude(roll_.verdict(now_), false);
}

void QuorumClient::close() noexcept {
  for (std::size_t index = 0; index < nodes(); ++index) {
    Node& node = nodes_[index];
    roll_.forget(index);
    node.resolver.forget();
    if (node.client.forked()) continue;
    if (node.client.socket_ >= 0) {
      node.client.now_ = Client::now();
      look_and_transmit(node);
      node.client.close_transport();
      dispatch(node);
    }
    node.client.close();
  }
}

void QuorumClient::close_node(Node& node) noexcept {
  const Status why = node.client.session_.failure();
  node.client.close_transport();
  dispatch(node);
  roll_.leave(index_of(node), why == Status::ok ? Status::transport_closed : why);
}

// The handshake is done, and nothing has been sent since: every lock learns who answers there.
void QuorumClient::look_at(std::size_t index) noexcept {
  nodes_[index].client.note_ready();
  const NodeSet changed = roll_.introduce(index, now_);
  if (roll_.moved(index)) nodes_[index].client.session_.forget_compensations();
  for (QuorumLock* lock = first_; lock != nullptr; lock = lock->next_)
    for (NodeSet left = changed; left != 0; left = static_cast<NodeSet>(left & (left - 1)))
      if (const auto node = static_cast<std::size_t>(__builtin_ctz(left)); node < lock->machine_.nodes())
        lock->machine_.meet(node, roll_.server(node), roll_.excluded(node));
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
    node.resolver.forget();  // The parent's.
    roll_.forget(index);
  }
  read_clock();
  // What has arrived counts, and those that have gone meanwhile are noticed before they are asked.
  if (expects_bytes() || now_ - looked_at_ > idle_max) {
    wait_until(now_);
    move();
  }
  for (QuorumLock* lock = first_; lock != nullptr; lock = lock->next_)
    if (lock->machine_.owed() != 0 && !lock->orphaned()) lock->catch_up();
  return Status::ok;
}

void QuorumClient::dispatch(Node& node) noexcept {
  Reply reply;
  while (node.client.session_.poll_reply(reply, now_)) {
    if (reply.tag.requester == &node.client) {
      node.client.take_query_reply(reply);
      continue;
    }
    const auto& vote = *static_cast<const QuorumVote*>(reply.tag.requester);
    static_cast<QuorumLock*>(vote.owner)->take_reply(vote.node, reply);
  }
  if (node.client.session_.ready() && !roll_.introduced(index_of(node))) look_at(index_of(node));
}

void QuorumClient::receive(Node& node) noexcept {
  const Client::Received received = node.client.look();
  now_ = later(now_, node.client.now_);
  dispatch(node);
  if (received == Client::Received::closed) close_node(node);
}

void QuorumClient::look_and_transmit(Node& node) noexcept {
  while (node.client.session_.wants_look()) receive(node);
  node.client.transmit();
}

void QuorumClient::move_node(std::size_t index) noexcept {
  Node& node = nodes_[index];
  Client& client = node.client;
  client.now_ = now_;
  node.resolver.poll(client);
  if (now_ != Instant::max()) client.dial();
  if (client.dialer_.state() == DialState::waiting) roll_.leave(index, client.dialer_.failure());
  if (client.socket_ < 0 || client.dialling()) return;
  Session& session = client.session_;
  if (now_ >= session.poll_timeout()) {
    receive(node);  // Arrived bytes are read before a deadline is judged.
    if (client.socket_ < 0) return;
    session.handle_timeout(now_);
    dispatch(node);
  }
  look_and_transmit(node);
  if (session.state() == SessionState::failed) close_node(node);
  if (now_ >= roll_.introduction_due(index)) close_node(node);
}

void QuorumClient::move() noexcept {
  for (std::size_t index = 0; index < nodes(); ++index) move_node(index);
}

void QuorumClient::wait_until(Instant then, bool cancellable) noexcept {
  pollfd entries[1 + 3 * nodes_max];
  entries[0] = {.fd = cancellable ? nodes_[0].client.wake_ : -1, .events = POLLIN, .revents = 0};
  std::size_t count = 1;
  for (std::size_t index = 0; index < nodes(); ++index) {
    const Node& node = nodes_[index];
    const bool dials = node.client.dialling();
    const bool writes = dials || node.client.session_.unsent();
    entries[count++] = {.fd = node.client.socket_,  // Below zero it is passed over.
                        .events = static_cast<short>((dials ? 0 : POLLIN) | (writes ? POLLOUT : 0)),
                        .revents = 0};
  }
  for (std::size_t index = 0; index < extra_count_; ++index)
    entries[count++] = {.fd = extra_[index].descriptor, .events = extra_[index].events, .revents = 0};
  for (std::size_t index = 0; index < nodes(); ++index)  // move() looks at the answer.
    entries[count++] = {.fd = nodes_[index].resolver.descriptor(), .events = POLLIN, .revents = 0};
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
  if (entries[0].revents != 0) nodes_[0].client.drain_wakes();
  for (std::size_t index = 0; index < nodes(); ++index) {
    Node& node = nodes_[index];
    const short events = entries[1 + index].revents;
    if (events == 0 || node.client.socket_ != entries[1 + index].fd) continue;
    if (node.client.dialling()) {
      node.client.finish_dial();
    } else if ((events & ~POLLOUT) != 0) {
      receive(node);
    }
  }
}

Instant QuorumClient::next_timeout() const noexcept {
  Instant next = Instant::max();
  for (std::size_t index = 0; index < nodes(); ++index) next = earlier(next, nodes_[index].client.connection_timeout());
  return next;
}

bool QuorumClient::any_connecting() const noexcept {
  for (std::size_t index = 0; index < nodes(); ++index) {
    const Client& client = nodes_[index].client;
    if (client.socket_ >= 0 ? !roll_.introduced(index) : client.dialer_.hopeful(now_)) return true;
  }
  return false;
}

bool QuorumClient::expects_bytes() const noexcept {
  for (std::size_t index = 0; index < nodes(); ++index)
    if (nodes_[index].client.dialling() || nodes_[index].client.session_.in_flight() != 0) return true;
  return false;
}

std::size_t QuorumClient::compensations_pending() const noexcept {
  std::size_t pending = roll_.compensations_pending();
  for (const QuorumLock* lock = first_; lock != nullptr; lock = lock->next_)
    pending += static_cast<std::size_t>(__builtin_popcount(lock->machine_.owed()));
  return pending;
}

bool QuorumClient::pump(QuorumLock* lock, Instant until) noexcept {
  for (;;) {
    move();
    bool answered = lock != nullptr && !lock->machine_.waiting();
    if (!answered) {
      tend_due(lock);
      if (lock != nullptr) lock->catch_up();
      answered = lock != nullptr && !lock->machine_.waiting();
    }
    if (answered || now_ >= until) {
      if (answered) transmit_all();
      return true;
    }
    Instant then = earlier(until, earlier(tend_next(), next_timeout()));
    if (lock != nullptr) then = earlier(then, lock->machine_.poll_timeout());
    if (nodes_[0].client.cancelled()) return false;
    wait_until(then);
  }
}

// What an answer calls for leaves before the call returns.
void QuorumClient::transmit_all() noexcept {
  for (std::size_t index = 0; index < nodes(); ++index)
    if (nodes_[index].client.socket_ >= 0) look_and_transmit(nodes_[index]);
}

// Waits for a majority that may vote, as long as one is on its way.
Status QuorumClient::gather(Instant until) noexcept {
  for (;;) {
    const Status status = roll_.verdict(now_);
    if (status != Status::no_quorum) return status;
    move();
    tend_due();
    if (roll_.verdict(now_) != Status::no_quorum) continue;
    if (!any_connecting() || now_ >= until) return status;
    if (nodes_[0].client.cancelled()) return Status::cancelled;
    wait_until(earlier(until, earlier(tend_next(), next_timeout())));
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

// Asks for the renewals that are due, and waits for none: who waits for something else deals with the answers as they come.
// The lock that a call waits for has an answer of its own to come.
void QuorumClient::tend_due(const QuorumLock* but) noexcept {
  for (QuorumLock* lock = first_; lock != nullptr; lock = lock->next_) {
    if (lock == but || lock->orphaned()) continue;
    if (lock->machine_.poll_timeout() <= now_ || lock->machine_.owed() != 0) lock->catch_up();
    if (lock->kept() && lock->machine_.renewal_due() <= now_ && lock->may_renew(now_))
      (void)lock->start_renewal(request_deadline());
  }
}

// What is due is asked for together, and waited for together.
void QuorumClient::tend_holds() noexcept {
  tend_due();
  const Instant until = request_deadline();
  for (bool open = true;;) {
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
  tell_holds();
}

// A callback may release, acquire or destroy any lock: after each, the list is read anew.
void QuorumClient::tell_holds() noexcept {
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
    tell_holds();
  } while (now_ < then);
  return true;
}

}  // namespace holdfast
