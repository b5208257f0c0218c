// SPDX-License-Identifier: MIT
#include "holdfast/detail/connection.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "addresses.hpp"
#include "holdfast/detail/clock.hpp"
#include "stream.hpp"
#include "wait_for.hpp"

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

void set_option(int socket, int level, int name, int value) noexcept {
  (void)::setsockopt(socket, level, name, &value, sizeof value);
}

}  // namespace

Connection::Connection(const Node::Storage& storage) noexcept : Node(storage) {}

Connection::~Connection() {
  stream_.close();
  ::explicit_bzero(texts_.data, texts_.size);  // The password is among them.
}

void Connection::configure(const ClientConfig& config) noexcept {
  SocketAddress literal;
  const bool known = config.socket_path.empty() && literal_address(config.host.c_str(), config.port, literal);
  Node::configure(config, known ? &literal : nullptr);
}

// ---- Connecting --------------------------------------------------------------------------------------------------

int Connection::address_family() const noexcept { return local() ? AF_UNIX : address()->family; }

Status Connection::begin_connect(int& socket, bool& connected) noexcept {
  sockaddr_un path{};
  static_assert(sizeof path.sun_path > socket_path_size_max, "a path and its NUL must fit");
  const void* address = &path;
  socklen_t size = sizeof path;
  if (local()) {
    path.sun_family = AF_UNIX;
    std::memcpy(path.sun_path, config().socket_path.c_str(), config().socket_path.view().size() + 1);
  } else {
    const SocketAddress* const known = Node::address();
    if (known == nullptr) return Status::not_connected;
    address = known->bytes;
    size = known->size;
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

Status Connection::connect_outcome(int socket) noexcept {
  int error = 0;
  socklen_t error_size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) return Status::system_error;
  if (error == 0) return Status::ok;
  errno = error;
  return Status::connect_failed;
}

[[gnu::noinline]] void Connection::dial_on() noexcept {
  for (;;) {
    switch (poll_dial(now_, random_->number())) {
      case DialAction::none: return;
      case DialAction::resolve:
        if (!question_->ask(*question_, config().host.c_str(), config().port)) take_addresses(nullptr, 0);
        break;
      case DialAction::hang_up:
        error_number_ = ETIMEDOUT;
        stream_.close();
        break;
      case DialAction::dial: {
        bool connected = false;
        int socket = -1;
        const Status status = begin_connect(socket, connected);
        stream_.adopt(socket);
        if (status != Status::ok || connected) finish_dial(status);
        break;
      }
    }
  }
}

void Connection::finish_dial(Status outcome) noexcept {
  if (outcome == Status::ok) outcome = set_up();
  if (outcome == Status::ok) {
    handle_connected(now_);
    return;
  }
  error_number_ = errno;
  stream_.close();
  dialer_.handle_dial_failed(outcome, now_, random_->number());
}

[[gnu::noinline]] void Connection::take_addresses(const SocketAddress* addresses, std::uint8_t count) noexcept {
  handle_addresses(addresses, count, now_, random_->number());
}

void Connection::close_transport() noexcept {
  explain_end();
  stream_.close();
  handle_closed(now_, random_->number());
}

void Connection::explain_end() noexcept {
  if (!stream_.established() && session_.failure() == Status::timed_out)
    session_.explain("the TLS handshake got no answer in time: a port without TLS gives none");
}

void Connection::leave() noexcept {
  // What secures a connection waits for the peer, and who names the server is to be asked first.
  if (!configured_ || compensations_pending() == 0 || dialer_.asks_first() || config().tls != nullptr ||
      config().topology != nullptr)
    return;
  now_ = read_clock();
  dialer_.hurry();
  dial_on();
  if (dialling() && wait_for(socket(), POLLOUT, Duration::zero()) > 0) finish_dial();
  session_.skip_handshake();
  if (open()) transmit();
  close_transport();
}

void Connection::forget() noexcept {
  stream_.close();
  session_.forget();
  dialer_.abandon();
}

Status Connection::set_up(Stream& stream) noexcept {
  if (const Status status = set_options(stream.socket()); status != Status::ok) return status;
  return stream.secure(config().tls, config().host.c_str()) ? Status::ok : Status::too_many_requests;
}

Status Connection::set_options(int socket) noexcept {
  // Blocking from here on: with SO_RCVTIMEO a receive sleeps by itself, and costs one system call instead of two.
  if (::fcntl(socket, F_SETFL, 0) != 0) return Status::system_error;  // O_NONBLOCK was its only flag.
  constexpr Duration longest = sleep_max - std::chrono::microseconds(1);
  static_assert(longest < std::chrono::seconds(1));
  const Duration timeout = config().request_timeout < longest ? config().request_timeout : longest;
  receive_nanoseconds_ = static_cast<std::uint32_t>(timeout.count());
  timeval limit{};
  limit.tv_usec = static_cast<suseconds_t>(receive_nanoseconds_ / 1000);
  if (::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) return Status::system_error;
  if (address_family() == AF_UNIX) return Status::ok;
  // They save time and help to notice a dead peer; a system that does not know them works without.
  for (const auto& [level, name, value] : tcp_options) set_option(socket, level, name, value);
#ifdef TCP_USER_TIMEOUT
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(config().stall_timeout.count() / 1'000'000));
#endif
  return Status::ok;
}

// ---- Moving bytes ------------------------------------------------------------------------------------------------

Connection::Received Connection::look() noexcept {
  const MutableBytes space = session_.receive_space();
  if (space.size == 0) return Received::nothing;  // It has failed.
  const std::ptrdiff_t count = stream_.receive(space, MSG_DONTWAIT);
  if (count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) [[unlikely]]
    return take_received(count);
  session_.handle_drained();
  return Received::nothing;
}

void Connection::transmit() noexcept {
  const ByteView bytes = session_.poll_transmit(now_);
  if (bytes.empty()) {
    if (stream_.unsent()) [[unlikely]]
      handle_sent(0);
    return;
  }
  const std::ptrdiff_t count = stream_.send(bytes, MSG_DONTWAIT);
  if (count == static_cast<std::ptrdiff_t>(bytes.size())) [[likely]] {
    session_.handle_transmitted(bytes.size());
    if (session_.wants_transmit()) [[unlikely]]
      handle_sent(0);
    return;
  }
  handle_sent(count);
}

// Where what secures the connection knows why the last call failed, that is told.
[[gnu::noinline]] bool Connection::blame_layer() noexcept {
  const char* const problem = stream_.problem();
  if (problem == nullptr) [[likely]]
    return false;
  session_.fail(Status::tls_failed, problem);
  return true;
}

// What is left goes out when the socket takes it again.
[[gnu::noinline]] void Connection::handle_sent(std::ptrdiff_t count) noexcept {
  for (;;) {
    if (count >= 0)
      session_.handle_transmitted(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      break;
    if (!session_.wants_transmit() && !stream_.unsent()) return;
    const ByteView bytes = session_.poll_transmit(now_);
    if (bytes.empty() && !stream_.unsent()) return;
    count = stream_.send(bytes, MSG_DONTWAIT);
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return;
  error_number_ = errno;
  if (blame_layer()) return;
  // After these the server's last words are still to be read: a refusal, or the replies to what it took.
  if (errno != EPIPE && errno != ECONNRESET) session_.fail(Status::system_error, "send failed");
}

[[gnu::noinline]] Connection::Received Connection::nothing_received(std::ptrdiff_t count) noexcept {
  const int error = errno;
  now_ = read_clock();
  if (count == 0) return Received::closed;
  if (error == EAGAIN || error == EWOULDBLOCK) return Received::nothing;
  if (error == EINTR) return Received::interrupted;
  error_number_ = error;
  (void)blame_layer();
  return Received::closed;
}

}  // namespace holdfast
