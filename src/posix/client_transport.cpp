// SPDX-License-Identifier: MIT
//
// The client's socket: a dumb mover of bytes and time for the session.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "addresses.hpp"
#include "client_hot.hpp"
#include "fast_paths.hpp"
#include "holdfast/assert.hpp"
#include "holdfast/client.hpp"
#include "holdfast/hold_record.hpp"

namespace holdfast {

namespace {

// No waiting for more to send; and keep-alive: a peer that vanished is noticed in about a minute, also when nothing is in
// flight.
constexpr struct {
  unsigned short level, name, value;  // SOL_SOCKET of MIPS is 65535.
} tcp_options[] = {
    {IPPROTO_TCP, TCP_NODELAY, 1},    {SOL_SOCKET, SO_KEEPALIVE, 1},
#ifdef TCP_KEEPIDLE
    {IPPROTO_TCP, TCP_KEEPIDLE, 30},   // Seconds without a byte before the first probe,
    {IPPROTO_TCP, TCP_KEEPINTVL, 10},  // and between two of them,
    {IPPROTO_TCP, TCP_KEEPCNT, 3},     // and so many without an answer.
#endif
};

// Each miss of a spin doubles how many receives go without one.
constexpr std::uint32_t spin_pause_first = 16;
constexpr std::uint32_t spin_pause_max = 4096;

void set_option(int socket, int level, int name, int value) noexcept {
  (void)::setsockopt(socket, level, name, &value, sizeof value);
}

}  // namespace

// No longer than sleep_max, since timers stand still where a lease does not.
timespec to_timespec(Duration timeout) noexcept {
  const std::int64_t left = timeout < Duration::zero() ? 0 : timeout > sleep_max ? sleep_max.count() : timeout.count();
  return {.tv_sec = static_cast<time_t>(left / 1'000'000'000), .tv_nsec = static_cast<long>(left % 1'000'000'000)};
}

int Client::wait_for(int descriptor, short events, Duration timeout) noexcept {
  const timespec limit = to_timespec(timeout);
  pollfd entry = {.fd = descriptor, .events = events, .revents = 0};
  return ::ppoll(&entry, 1, &limit, nullptr);
}

// ---- Connecting --------------------------------------------------------------------------------------------------

int Client::address_family() const noexcept {
  return config_.socket_path.empty() ? addresses_[dialer_.address()].family : AF_UNIX;
}

// A socket on its way to the address in use. Where it fails there is none, and errno says why.
Status Client::begin_connect(int& socket, bool& connected) noexcept {
  sockaddr_un path{};
  static_assert(sizeof path.sun_path > socket_path_size_max, "a path and its NUL must fit");
  const void* address = &path;
  socklen_t size = sizeof path;
  if (config_.socket_path.empty()) {
    if (dialer_.address_count() == 0) return Status::not_connected;
    address = addresses_[dialer_.address()].bytes;
    size = addresses_[dialer_.address()].size;
  } else {
    path.sun_family = AF_UNIX;
    std::memcpy(path.sun_path, config_.socket_path.c_str(), config_.socket_path.view().size() + 1);
  }
  const int opened = ::socket(address_family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (opened < 0) return Status::system_error;
  connected = ::connect(opened, static_cast<const sockaddr*>(address), size) == 0;
  // An interrupted connect goes on by itself.
  if (!connected && errno != EINPROGRESS && errno != EINTR) {
    const int error = errno;
    ::close(opened);
    errno = error;
    return Status::connect_failed;
  }
  socket = opened;
  return Status::ok;
}

// What has become of it, once it is writable. Where it failed, errno says why.
Status Client::connect_outcome(int socket) noexcept {
  int error = 0;
  socklen_t error_size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) return Status::system_error;
  if (error == 0) return Status::ok;
  errno = error;
  return Status::connect_failed;
}

[[gnu::noinline]] void Client::dial_on() noexcept {
  for (;;) {
    switch (dialer_.poll_action(now_, random())) {
      case DialAction::none: return;
      case DialAction::resolve: ask_name(); break;
      case DialAction::hang_up:
        error_number_ = ETIMEDOUT;
        ::close(socket_);
        socket_ = -1;
        break;
      case DialAction::dial: {
        bool connected = false;
        const Status status = begin_connect(socket_, connected);
        if (status != Status::ok || connected) finish_dial(status);
        break;
      }
    }
  }
}

void Client::finish_dial(Status outcome) noexcept {
  if (outcome == Status::ok) outcome = set_up_socket(socket_);
  if (outcome == Status::ok) {
    session_.handle_connected(now_, dialer_.attempt_deadline());
    dialer_.handle_dialled();
    return;
  }
  error_number_ = errno;
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  dialer_.handle_dial_failed(outcome, now_, random());
}

void Client::ask_name() noexcept {
  if (question_ != nullptr) {
    if (!question_->ask(*question_, config_.host.c_str(), config_.port)) take_addresses(nullptr, 0);
    return;
  }
  SocketAddress found[addresses_max];
  const std::uint8_t count = look_up(config_.host.c_str(), config_.port, found);
  now_ = now();
  take_addresses(found, count);
}

void Client::take_addresses(const SocketAddress* addresses, std::uint8_t count) noexcept {
  if (!dialer_.takes_addresses()) count = 0;  // The ones in use are not taken away.
  if (count != 0) std::memcpy(addresses_, addresses, count * sizeof addresses_[0]);
  dialer_.handle_resolved(count, now_, random());
}

void Client::note_ready() noexcept {
  if (!session_.ready() || dialer_.ready()) return;
  dialer_.handle_ready(now_);
  ready_at_ = last_used_ = now_;
}

void Client::work_connection() noexcept {
  dial();
  if (now_ >= session_.poll_timeout()) {
    receive_arrived();
    session_.handle_timeout(now_);
  }
  if (!dialling() && socket_ >= 0) look_and_transmit();
  if (session_.state() == SessionState::failed) close_transport();
  dispatch();
  note_ready();
}

Status Client::set_up_socket(int socket) noexcept {
  // Blocking from here on: with SO_RCVTIMEO a receive sleeps by itself, and costs one system call instead of two.
  if (::fcntl(socket, F_SETFL, 0) != 0) return Status::system_error;  // O_NONBLOCK was its only flag.
  receive_timeout_ = config_.request_timeout < sleep_max ? config_.request_timeout : sleep_max;
  straight_ = fast_paths && config_.spin == spin_off && config_.stall_timeout >= receive_timeout_;
  timeval limit{};
  limit.tv_sec = static_cast<time_t>(receive_timeout_.count() / 1'000'000'000);
  limit.tv_usec = static_cast<suseconds_t>(receive_timeout_.count() % 1'000'000'000 / 1000);
  if (::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) return Status::system_error;
  if (address_family() == AF_UNIX) return Status::ok;
  // They save time and help to notice a dead peer; a system that does not know them works without.
  for (const auto& [level, name, value] : tcp_options) set_option(socket, level, name, value);
#ifdef TCP_USER_TIMEOUT
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(config_.stall_timeout.count() / 1'000'000));
#endif
  return Status::ok;
}

void Client::close_transport() noexcept {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  note_ready();  // It may have failed in the same moment.
  session_.handle_closed();
  if (dialer_.state() >= DialState::handshaking)
    dialer_.handle_closed(session_.failure(), last_used_ != ready_at_, now_, random());
}

// What has arrived, without waiting for more. True if that is nothing.
bool Client::receive_arrived() noexcept {
  const Received received = look();
  if (received == Received::nothing) [[likely]]
    return true;
  if (received == Received::closed) close_transport();
  dispatch();
  return false;
}

// After an idle while: has the server closed, or said something that nobody asked for? With nobody waiting for a reply,
// nobody else notices a stall; and as long as its places are taken by what is given up, nobody can wait for one.
void Client::probe_idle_connection() noexcept {
  receive_arrived();
  session_.handle_timeout(now_);
  if (session_.state() == SessionState::failed) close_transport();
  dispatch();
  last_used_ = now_;
}

// ---- Sleeping ----------------------------------------------------------------------------------------------------

Client::Ready Client::poll_sockets(Instant then, int extra, short extra_events) noexcept {
  now_ = now();
  const bool writes = dialling() || session_.unsent();
  pollfd entries[] = {
      {.fd = wake_, .events = POLLIN, .revents = 0},
      {.fd = socket_, .events = static_cast<short>((dialling() ? 0 : POLLIN) | (writes ? POLLOUT : 0)), .revents = 0},
      {.fd = extra, .events = extra_events, .revents = 0}};  // A descriptor below zero is passed over.
  const timespec limit = to_timespec(then - now_);
  const bool any = ::ppoll(entries, 3, &limit, nullptr) > 0;
  now_ = now();
  if (any && entries[0].revents != 0) drain_wakes();
  return {any && entries[1].revents != 0, any && entries[2].revents != 0};
}

bool Client::wait_until(Instant then, int extra, short extra_events) noexcept {
  const Ready ready = poll_sockets(then, extra, extra_events);
  if (ready.own) {
    if (dialling())
      finish_dial();
    else
      receive_arrived();
  }
  return ready.extra;
}

Status Client::await_place(Instant deadline) noexcept {
  while (session_.ready() && !session_.may_compensate()) {
    if (cancelled()) return Status::cancelled;
    if (now_ >= deadline) return Status::too_many_requests;
    (void)wait_until(earlier(deadline, next_timeout()));
    work();
  }
  return session_.ready() ? Status::ok : dialer_.failure();
}

// ---- Moving bytes ------------------------------------------------------------------------------------------------

Client::Received Client::look() noexcept {
  const MutableBytes space = session_.receive_space();
  if (space.size == 0) return Received::nothing;  // It has failed.
  const ssize_t count = ::recv(socket_, space.data, space.size, MSG_DONTWAIT);
  if (count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) [[unlikely]]
    return take_received(count);
  session_.handle_drained();
  return Received::nothing;
}

void Client::look_and_transmit() noexcept {
  while (session_.wants_look()) (void)receive_arrived();
  transmit();
}

void Client::transmit() noexcept {
  const ByteView bytes = session_.poll_transmit(now_);
  if (bytes.empty()) return;
  handle_sent(::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

// What is left goes out when the socket takes it again.
[[gnu::noinline]] void Client::handle_sent(std::ptrdiff_t count) noexcept {
  for (;;) {
    if (count >= 0)
      session_.handle_transmitted(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      break;
    const ByteView bytes = session_.poll_transmit(now_);
    if (bytes.empty()) return;
    count = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return;
  error_number_ = errno;
  // After these the server's last words are still to be read: a refusal, or the replies to what it took.
  if (errno != EPIPE && errno != ECONNRESET) session_.fail(Status::system_error, "send failed");
}

Client::Received Client::take_received(std::ptrdiff_t count) noexcept {
  if (count <= 0) [[unlikely]]
    return nothing_received(count);
  now_ = now();
  last_used_ = now_;
  session_.handle_received(static_cast<std::size_t>(count), now_);
  return Received::bytes;
}

[[gnu::noinline]] Client::Received Client::nothing_received(std::ptrdiff_t count) noexcept {
  const int error = errno;
  now_ = now();
  if (count == 0) return Received::closed;
  if (error == EAGAIN || error == EWOULDBLOCK) return Received::nothing;
  if (error == EINTR) return Received::interrupted;
  error_number_ = error;
  return Received::closed;
}

// Polls for a while without sleeping. True if `count` is the outcome of a receive that is not "nothing yet".
bool Client::spin_until_readable(MutableBytes space, std::ptrdiff_t& count) noexcept {
  const Instant until = now_ + config_.spin;
  do {
    count = ::recv(socket_, space.data, space.size, MSG_DONTWAIT);
    if (count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
      spin_pause_next_ = 0;
      return true;
    }
  } while (now() < until);
  // Where the reply needs the core that we spin on, every spin misses: the pauses grow until they cost nothing.
  spin_pause_next_ = spin_pause_next_ == 0 ? spin_pause_first : spin_pause_next_ * 2;
  if (spin_pause_next_ > spin_pause_max) spin_pause_next_ = spin_pause_max;
  spin_pause_ = spin_pause_next_;
  return false;
}

// Receives what comes before the deadline. Arrived bytes are taken also when it has passed.
Client::Received Client::receive(Instant deadline) noexcept {
  const MutableBytes space = session_.receive_space();
  const bool unsent = session_.unsent();
  std::ptrdiff_t count = 0;
  if (config_.spin != spin_off && !unsent && now_ < deadline) {
    if (spin_pause_ != 0) {
      --spin_pause_;
    } else {
      if (spin_until_readable(space, count)) return take_received(count);
      now_ = now();
    }
  }
  const Duration left = deadline - now_;
  if (!unsent && left >= receive_timeout_ - config_.spin) [[likely]]
    return take_received(::recv(socket_, space.data, space.size, 0));
  if (left > Duration::zero()) {
    const auto events = static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN);
    if (wait_for(socket_, events, left) < 0 && errno == EINTR) {
      now_ = now();
      return Received::interrupted;
    }
  }
  return take_received(::recv(socket_, space.data, space.size, MSG_DONTWAIT));
}

inline void Client::deliver(const Reply& reply) noexcept {
  if (reply.tag.requester != this) [[likely]]
    (void)static_cast<HoldRecord*>(reply.tag.requester)->handle_reply(reply, now_);
  else
    take_query_reply(reply);
}

void Client::dispatch() noexcept {
  Reply reply;
  while (session_.poll_reply(reply, now_)) deliver(reply);
}

void Client::take_query_reply(const Reply& reply) noexcept {
  query_waiting_ = false;
  query_outcome_ = reply.outcome;
  if (reply.outcome != Status::ok || query_decode_(reply.value, query_out_)) return;
  query_outcome_ = Status::protocol_error;
  session_.fail(Status::protocol_error, "a reply of another shape than asked for");
}

inline bool Client::answered(const HoldRecord* lock) const noexcept {
  if (lock != nullptr) return lock->answered();
  return !query_waiting_ && !(tending_since_ != Instant() && tended_waiting(tending_since_));
}

// The usual case: nothing else is in flight, and the reply comes whole with the first receive. One send, one receive,
// and no look at any timer, since the socket's own timeout is the request's. The moment that anything is not as usual,
// the request is committed to the session's queue, and the loop goes on from there; without fast paths it always is.
void Client::ask(HoldRecord& lock) noexcept {
  LockMachine& machine = lock.machine_;
  ByteView bytes;
  // A hold that is asked about is not renewed meanwhile.
  const bool others = tended_first_ != nullptr && (tended_first_ != &lock || lock.tended_next_ != nullptr);
  const bool renewals_wait = !others || now_ + receive_timeout_ < tend_next();
  Request* request = nullptr;
  if (fast_paths && straight_ && !ttl_wanted_ && renewals_wait && session_.quiet() &&
      machine.straight(now_, receive_timeout_)) [[likely]] {
    const bool release = machine.wants_release();
    if (release || receive_arrived()) [[likely]] {
      request = &session_.straight_request(release);
      bytes = machine.poll_prepared(*request);
    }
  }
  if (request == nullptr || bytes.empty()) [[unlikely]] {
    // A reply of before, read on the way here, may have had it submitted already.
    if (machine.wants_request()) lock.submit();
    if (ttl_wanted_)
      if (const Status status = ask_ttl(machine.key(), ttl_); status != Status::ok) query_outcome_ = status;
    pump(&lock);
    return;
  }
  request->tag.requester = &lock;
  const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) [[unlikely]] {
    session_.commit_sent(bytes, 0, now_);
    handle_sent(sent);
    pump(&lock);
    return;
  }
  const MutableBytes space = session_.receive_space();
  const ssize_t count = ::recv(socket_, space.data, space.size, 0);
  if (count <= 0) [[unlikely]] {
    session_.commit_sent(bytes, bytes.size(), now_);
    react(nothing_received(count), &lock, session_.poll_timeout());
    pump(&lock);
    return;
  }
  const Instant asked_at = now_;
  if (machine.state() != LockState::releasing) now_ = now();  // When a release is confirmed changes nothing.
  last_used_ = now_;
  Reply reply;
  if (!session_.take_short_reply(static_cast<std::size_t>(count), now_, reply.value)) [[unlikely]] {
    session_.handle_received(static_cast<std::size_t>(count), now_);
    const ParseResult result = session_.parse_reply(reply.value);
    if (result != ParseResult::value || !session_.drained() || reply.value.is(RespKind::error)) {
      session_.commit_sent(bytes, bytes.size(), asked_at);
      ask_on(lock, result, reply.value);
      return;
    }
  }
  reply.tag = request->tag;
  if (!lock.handle_reply(reply, now_)) [[unlikely]]
    pump(&lock);
}

// Hands what the machine wants to the session, or tells the machine why not.
void Client::submit(LockMachine& machine, void* requester) noexcept {
  const Session::Place place = session_.open(machine.request_compensated());
  std::size_t size = 0;
  if (place.request != nullptr) {
    if (!(fast_paths && machine.write_prepared(place.space, *place.request, size)) &&
        machine.poll_request(place.space, *place.request, size) != Status::ok)
      size = 0;
  }
  if (size == 0) {
    machine.refuse_request(session_.ready() ? Status::too_many_requests : Status::not_connected, now_);
    return;
  }
  place.request->tag.requester = requester;
  session_.commit(*place.request, size, now_);
}

// What was sent straight stands in the queue now, and what was received, of which one value may have been parsed, is
// dealt with as ever.
[[gnu::noinline]] inline void Client::ask_on(HoldRecord& lock, ParseResult result, RespValue value) noexcept {
  Reply reply;
  now_ = now();
  if (result == ParseResult::value && session_.take_reply(value, reply, now_)) deliver(reply);
  dispatch();
  pump(&lock);
}

void Client::pump(const HoldRecord* lock, Instant until) noexcept {
  for (;;) {
    look_and_transmit();
    if (session_.state() == SessionState::failed) {
      close_transport();
      dispatch();
    }
    // Only now: what an answer calls for, a compensation, has just been sent.
    // Without a clock it is Instant::max() for ever: everything times out then, and is answered so.
    const bool over = now_ >= until && until != Instant::max();
    if (session_.state() == SessionState::closed || answered(lock) || over) return;
    Instant wake = until;
    if (tended_first_ != nullptr) [[unlikely]] {
      const bool stuck = session_.unsent();
      tend_due();  // Renewals have the right of way over what is waited for.
      if (!stuck && session_.unsent()) continue;
      wake = earlier(wake, tend_next());
    }
    const Instant timeout = session_.poll_timeout();
    react(receive(earlier(timeout, wake)), lock, timeout);
    if (tending_since_ != Instant() && cancelled()) return;  // What was asked for goes on.
  }
}

[[gnu::noinline]] void Client::react(Received received, const HoldRecord* lock, Instant timeout) noexcept {
  switch (received) {
    case Received::bytes: break;
    case Received::nothing:
      if (now_ >= timeout) session_.handle_timeout(now_);
      [[fallthrough]];
    case Received::interrupted:
      if (cancelled())
        session_.give_up(lock == nullptr ? static_cast<const void*>(this) : lock, Status::cancelled, now_);
      break;
    case Received::closed: close_transport(); break;
  }
  dispatch();
}

// ---- Questions of its own ----------------------------------------------------------------------------------------

Status Client::ask(const CommandLine& line, Decode decode, void* out) noexcept {
  const Session::Place place = session_.open(false);
  std::size_t size = 0;
  if (query_waiting_ || place.request == nullptr || encode_command(place.space, line.view(), size) != Status::ok)
    return Status::too_many_requests;
  *place.request = {.tag = {.requester = this}, .deadline = now_ + config_.request_timeout};
  session_.commit(*place.request, size, now_);
  query_waiting_ = true;
  query_outcome_ = Status::outcome_unknown;
  query_decode_ = decode;
  query_out_ = out;
  return Status::ok;
}

Status Client::query(const CommandLine& line, Decode decode, void* out) noexcept {
  if (const Status status = begin(); status != Status::ok) return status;
  make_room();
  const Status status = query_within(line, decode, out);
  return conclude(status, status == Status::ok);
}

Status Client::query_within(const CommandLine& line, Decode decode, void* out) noexcept {
  if (cancelled()) return Status::cancelled;
  if (const Status status = ensure_ready(Instant::max()); status != Status::ok) return status;
  if (query_waiting_) pump(nullptr);  // One at a time.
  if (const Status status = ask(line, decode, out); status != Status::ok) return status;
  pump(nullptr);
  query_waiting_ = false;
  return query_outcome_;
}

namespace {

bool decode_ttl(const RespValue& reply, void* out) noexcept {
  if (!reply.is(RespKind::integer)) return false;
  *static_cast<std::int64_t*>(out) = reply.integer();
  return true;
}

}  // namespace

Status Client::ask_ttl(Key key, std::int64_t& milliseconds) noexcept {
  CommandLine line;
  line.add("PTTL").add(key.bytes());
  return ask(line, decode_ttl, &milliseconds);
}

Status Client::ask_remaining(const LockMachine& machine, std::int64_t& milliseconds) noexcept {
  const LockKind& kind = machine.kind();
  if (kind.name_at == nullptr) return ask_ttl(machine.key(), milliseconds);
  CommandLine line;
  kind.fill(line, kind, Operation::query, RequestForm::by_text, {.key = machine.key()});
  return ask(line, decode_ttl, &milliseconds);
}

}  // namespace holdfast
