// SPDX-License-Identifier: MIT
//
// The connections of a quorum, whose sockets are waited for together.
#include "holdfast/quorum.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "holdfast/detail/quorum_record.hpp"
#include "holdfast/url.hpp"
#include "poll_sockets.hpp"
#include "wait_for.hpp"

namespace holdfast {

namespace {

// How long connect() waits for the rest once a majority is there.
constexpr Duration connect_grace = std::chrono::milliseconds(250);
// Connections that were not looked at for so long may be gone.
constexpr Duration idle_max = std::chrono::seconds(1);

}  // namespace

// ---- Whose turn it is --------------------------------------------------------------------------------------------

void QuorumClient::take_turn(const QuorumRecord* lock) const noexcept {
  if (attachment_.depth++ != 0 || attachment_.keeper == nullptr) return;
  if (random_.forked())
    attachment_.keeper = nullptr;  // The parent's.
  else
    attachment_.keeper->take(attachment_, lock);
}

void QuorumClient::give_turn() const noexcept {
  if (--attachment_.depth != 0 || attachment_.keeper == nullptr) return;
  if (random_.forked())
    attachment_.keeper = nullptr;
  else
    attachment_.keeper->give(attachment_);
}

// Holds are kept meanwhile, however long it takes. Who is called may destroy any lock, and may start or stop the watchdog:
// the calls that stand go on as the quorum's owner, whoever keeps it by then.
void QuorumClient::call_back(void (*call)(void* context) noexcept, void* context) noexcept {
  const unsigned depth = attachment_.depth;
  attachment_.depth = 1;
  give_turn();
  call(context);
  take_turn(nullptr);
  attachment_.depth = depth;
}

// ---- Connecting --------------------------------------------------------------------------------------------------

Status QuorumClient::connect(const ByteView* urls, std::size_t count, const QuorumConfig& config) noexcept {
  const Turn turn(*this);
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
    problem_ = validate_voter(node);
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
  const Turn turn(*this);
  problem_ = {};
  if (count == 0 || count > roll_.capacity()) {
    problem_ = {"nodes", "a quorum has 1 to nodes_max nodes, and no more than it was made for"};
    return Status::invalid_argument;
  }
  for (std::size_t index = 0; index < count; ++index) {
    problem_node_ = index;
    problem_ = validate_voter(configs[index]);
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
  if (random_.forked()) start_anew_in_child();
  close();
  Status status = random_.open();
  if (status == Status::ok) status = wake_.open();
  if (status != Status::ok) {
    nodes_[0].connection.set_error_number(errno);
    return status;
  }
  roll_.begin(count, config, read_clock());
  for (std::size_t index = 0; index < count; ++index) roll_.attach(index, nodes_[index].connection);
  return Status::ok;
}

Status QuorumClient::prepare_node(std::size_t index, const ClientConfig& config) noexcept {
  Node& node = nodes_[index];
  problem_node_ = index;
  roll_.enter(index, config);
  node.connection.use(random_, &node.resolver);
  node.connection.configure(config);
  node.connection.use_meter(roll_.config().meter);
  node.connection.set_now(read_clock());
  return Status::ok;
}

// To every node, so that one that is given twice is noticed at once.
Status QuorumClient::connect_all() noexcept {
  read_time();
  if (now_ == Instant::max()) return Status::system_error;  // It cannot be read.
  Duration longest = timeout_min;
  for (std::size_t index = 0; index < nodes(); ++index)
    if (nodes_[index].connection.config().connect_timeout > longest)
      longest = nodes_[index].connection.config().connect_timeout;
  Instant until = now_ + longest;
  for (bool enough = false;;) {
    move();
    tend_due();
    // Who is slower than a majority is not waited for much longer.
    if (!enough && roll_.verdict(now_) == Status::ok) {
      enough = true;
      until = earlier(until, now_ + connect_grace);
    }
    if (connecting() == 0 || now_ >= until || cancelled()) break;
    wait_until(earlier(until, earlier(tend_next(), next_timeout())));
  }
  return cancel_.conclude(roll_.verdict(now_), false);
}

void QuorumClient::close() noexcept {
  const Turn turn(*this);
  for (std::size_t index = 0; index < nodes(); ++index) {
    Node& node = nodes_[index];
    roll_.forget(index);
    node.resolver.forget();
    if (random_.forked()) continue;
    node.push.close(Subscription::State::closed);
    if (node.connection.socket() >= 0) {
      node.connection.set_now(read_clock());
      look_and_transmit(node);
      node.connection.close_transport();
      dispatch(node);
    }
    node.connection.dialer().abandon();
  }
}

// What is still to be taken back is sent once more where that can be done at once.
void QuorumClient::leave() noexcept {
  if (attachment_.keeper != nullptr && !random_.forked()) attachment_.keeper->detach(attachment_);
  attachment_.keeper = nullptr;
  close();
  if (random_.forked()) return;
  for (std::size_t index = 0; index < nodes(); ++index) nodes_[index].connection.leave();
}

void QuorumClient::close_node(Node& node) noexcept {
  const Status why = node.connection.session().failure();
  node.connection.close_transport();
  dispatch(node);
  roll_.leave(index_of(node), why == Status::ok ? Status::transport_closed : why);
}

// The handshake is done, and nothing has been sent since: every lock learns who answers there.
void QuorumClient::look_at(std::size_t index) noexcept {
  (void)nodes_[index].connection.handle_ready(now_);
  const NodeSet changed = roll_.introduce(index, now_);
  if (roll_.moved(index)) nodes_[index].connection.session().forget_compensations();
  for (QuorumRecord* lock = first_; lock != nullptr; lock = lock->next_)
    for (NodeSet left = changed; left != 0; left = static_cast<NodeSet>(left & (left - 1)))
      if (const auto node = static_cast<std::size_t>(__builtin_ctz(left)); node < lock->machine_.nodes())
        lock->machine_.meet(node, roll_.server(node), roll_.excluded(node));
}

Instant QuorumClient::request_deadline() const noexcept { return now_ + nodes_[0].connection.config().request_timeout; }

// ---- Moving bytes ------------------------------------------------------------------------------------------------

void QuorumClient::set_now(Instant now) noexcept {
  now_ = now;
  for (std::size_t index = 0; index < nodes(); ++index) nodes_[index].connection.set_now(now);
}

// What the parent knows is not the child's.
void QuorumClient::start_anew_in_child() noexcept {
  for (std::size_t index = 0; index < nodes(); ++index) {
    Node& node = nodes_[index];
    node.connection.forget();
    node.push.close(Subscription::State::inherited);
    node.resolver.forget();
    roll_.forget(index);
  }
  attachment_.keeper = nullptr;
  wake_.close();
  cancel_.take();
  random_.start_anew();
  (void)wake_.open();  // Without a pipe cancel() works by its flag alone.
}

Status QuorumClient::begin() noexcept {
  if (nodes() == 0) return Status::not_connected;
  if (random_.forked()) start_anew_in_child();
  for (std::size_t index = 0; index < nodes(); ++index) nodes_[index].connection.session().clear_failure_text();
  read_time();
  // What has arrived counts, and those that have gone meanwhile are noticed before they are asked.
  if (expects_bytes() || now_ - looked_at_ > idle_max) {
    wait_until(now_);
    move();
  }
  for (QuorumRecord* lock = first_; lock != nullptr; lock = lock->next_)
    if (lock->machine_.owed() != 0 && !lock->orphaned()) lock->catch_up();
  return Status::ok;
}

// A reply may settle its lock, which may give others up and come back here: each time one that was in flight is taken away, so that
// this goes no deeper than there are requests in flight. NOLINTNEXTLINE(misc-no-recursion)
void QuorumClient::dispatch(Node& node) noexcept {
  Reply reply;
  while (node.connection.session().poll_reply(reply, now_)) {
    if (asking_ != nullptr && reply.tag.requester == asking_) {
      asking_->take(*asking_, index_of(node), reply);
      continue;
    }
    const auto& vote = *static_cast<const QuorumVote*>(reply.tag.requester);
    static_cast<QuorumRecord*>(vote.owner)->take_reply(vote.node, reply);
  }
  if (node.connection.session().ready() && !roll_.introduced(index_of(node))) look_at(index_of(node));
}

void QuorumClient::receive(Node& node) noexcept {
  const Connection::Received received = node.connection.look();
  now_ = later(now_, node.connection.now());
  dispatch(node);
  if (received == Connection::Received::closed) close_node(node);
}

void QuorumClient::look_and_transmit(Node& node) noexcept {
  while (node.connection.session().wants_look()) receive(node);
  node.connection.transmit();
}

void QuorumClient::move_node(std::size_t index) noexcept {
  Node& node = nodes_[index];
  Connection& connection = node.connection;
  connection.set_now(now_);
  node.resolver.poll(connection);
  if (now_ != Instant::max()) connection.dial();
  if (connection.dialer().state() == DialState::waiting) roll_.leave(index, connection.dialer().failure());
  if (connection.socket() < 0 || connection.dialling()) return;
  Session& session = connection.session();
  if (now_ >= session.poll_timeout()) {
    receive(node);  // Arrived bytes are read before a deadline is judged.
    if (connection.socket() < 0) return;
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
  entries[0] = entry_of(cancellable ? wake_.descriptor() : -1);
  std::size_t count = 1;
  bool pending = false;
  for (std::size_t index = 0; index < nodes(); ++index) {
    const Connection& connection = nodes_[index].connection;
    pending |= connection.pending();
    entries[count++] = entry_of(connection);
  }
  for (std::size_t index = 0; index < extra_count_; ++index)
    entries[count++] = {.fd = extra_[index].descriptor, .events = extra_[index].events, .revents = 0};
  for (std::size_t index = 0; index < nodes(); ++index)  // move() looks at the answer.
    entries[count++] = entry_of(nodes_[index].resolver.descriptor());
  const timespec limit = to_timespec(pending ? Duration::zero() : then - now_);
  const int ready = ::ppoll(entries, count, &limit, nullptr);
  read_time();
  looked_at_ = now_;
  for (std::size_t index = 0; index < extra_count_; ++index)
    extra_[index].ready = ready > 0 && entries[1 + nodes() + index].revents != 0;
  if (ready <= 0 && !pending) return;
  if (entries[0].revents != 0) wake_.drain();
  for (std::size_t index = 0; index < nodes(); ++index) {
    Node& node = nodes_[index];
    const short events = entries[1 + index].revents;
    if (node.connection.socket() != entries[1 + index].fd) continue;
    if (node.connection.dialling()) {
      if (events != 0) node.connection.finish_dial();
    } else if ((events & ~POLLOUT) != 0 || node.connection.pending()) {
      receive(node);
    }
  }
}

Instant QuorumClient::next_timeout() const noexcept {
  Instant next = Instant::max();
  for (std::size_t index = 0; index < nodes(); ++index) next = earlier(next, nodes_[index].connection.timeout());
  return next;
}

NodeSet QuorumClient::connecting() const noexcept {
  NodeSet found = 0;
  for (std::size_t index = 0; index < nodes(); ++index) {
    const Connection& connection = nodes_[index].connection;
    if (connection.socket() >= 0 ? !roll_.introduced(index) : connection.dialer().hopeful(now_))
      found = static_cast<NodeSet>(found | node_bit(index));
  }
  return found;
}

bool QuorumClient::expects_bytes() const noexcept {
  for (std::size_t index = 0; index < nodes(); ++index)
    if (nodes_[index].connection.dialling() || nodes_[index].connection.session().in_flight() != 0) return true;
  return false;
}

std::size_t QuorumClient::compensations_pending() const noexcept {
  const Turn turn(*this);
  std::size_t pending = roll_.compensations_pending();
  for (const QuorumRecord* lock = first_; lock != nullptr; lock = lock->next_)
    pending += count_of(lock->machine_.owed());
  return pending;
}

// What an answer calls for leaves before the call returns.
void QuorumClient::transmit_all() noexcept {
  for (std::size_t index = 0; index < nodes(); ++index)
    if (nodes_[index].connection.socket() >= 0) look_and_transmit(nodes_[index]);
}

// ---- Keeping holds alive -----------------------------------------------------------------------------------------

Instant QuorumClient::tend_next() const noexcept {
  Instant next = Instant::max();
  for (const QuorumRecord* lock = first_; lock != nullptr; lock = lock->next_) {
    if (lock->orphaned() || !lock->kept()) continue;
    next = earlier(next, lock->machine_.poll_timeout());
    if (lock->may_renew(now_)) next = earlier(next, lock->machine_.renewal_due());
  }
  return next;
}

// A hold of a short lease does not outlive a long pause. They stay short: who keeps holds once does so again.
void QuorumClient::shorten_pauses() noexcept {
  for (std::size_t index = 0; index < nodes(); ++index)
    nodes_[index].connection.dialer().set_pause_max(reconnect_kept_max);
}

Instant QuorumClient::tend() noexcept {
  const Turn turn(*this);
  if (begin() != Status::ok) return Instant::max();
  shorten_pauses();
  if (looked_at_ != now_) wait_until(now_);  // What has arrived since the last call.
  tend_holds();
  const Instant next = tend_next();
  return compensations_pending() == 0 ? next : earlier(next, next_timeout());
}

// Asks for the renewals that are due, and waits for none: who waits for something else deals with the answers as they come.
// For the lock that a call waits for, no other round is begun; an open one goes on.
void QuorumClient::tend_due(const QuorumRecord* but) noexcept {
  for (QuorumRecord* lock = first_; lock != nullptr; lock = lock->next_) {
    if ((lock == but && !lock->machine_.waiting()) || lock->orphaned()) continue;
    if (lock->machine_.poll_timeout() <= now_ || lock->machine_.owed() != 0) lock->catch_up();
    if (!lock->kept() || lock->machine_.renewal_due() > now_ || !lock->may_renew(now_)) continue;
    transmit_all();  // What stands before it makes room: a renewal that finds none is a doubt.
    (void)lock->start_renewal(request_deadline());
  }
}

// What is due is asked for together, and waited for together.
void QuorumClient::tend_holds() noexcept {
  const Instant until = request_deadline();
  for (bool open = true;;) {
    move();
    tend_due();
    open = false;
    for (const QuorumRecord* lock = first_; lock != nullptr; lock = lock->next_)
      open = open || (lock->machine_.waiting() && lock->kept() && !lock->orphaned());
    if (!open || now_ >= until) break;
    wait_until(earlier(until, earlier(tend_next(), next_timeout())), false);
  }
  transmit_all();
  tell_holds();
}

// A callback may release, acquire or destroy any lock: after each, the list is read anew.
void QuorumClient::tell_holds() noexcept {
  for (QuorumRecord* lock = first_; lock != nullptr;) {
    QuorumRecord* const next = lock->next_;
    const bool told = lock->keeping_.has_news() && !lock->orphaned();
    if (told) lock->tell();
    lock = told ? first_ : next;
  }
}

}  // namespace holdfast
