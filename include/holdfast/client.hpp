// SPDX-License-Identifier: MIT
//
// Client is one blocking connection to one node, for any number of locks. It reconnects by itself.
//
// Thread rule: one client, one thread at a time; the client and its locks are used together by that thread. Only
// cancel() and the locks' held(), at_risk(), valid_until() and remaining() may be called from any thread.
// Fork: a child neither touches the parent's connection nor holds its locks nor shares its random bytes; a client that
// is used in a child starts anew. A cloned virtual machine is not noticed: connect after cloning.
// Signals: none is raised (no SIGPIPE) and none is handled.
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

namespace holdfast {

class BlockingLock;

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

  // Ends the call in progress with Status::cancelled, or the next call if there is none. A call that waits for a lock
  // returns at once; one that waits for a reply returns by its request timeout, at once if a signal interrupts it.
  // Any thread; safe in a signal handler.
  void cancel() noexcept;

  // CLOCK_BOOTTIME, the clock of every Instant here.
  [[nodiscard]] static Instant now() noexcept;

 private:
  friend class BlockingLock;

  // One page that the kernel wipes in a forked child.
  struct WipedPage;
  // A socket address as bytes, so that no system header is needed here.
  struct alignas(8) SocketAddress {
    unsigned char bytes[28];  // sockaddr_in6 is the largest that a name resolves to.
    std::uint8_t size;
    std::uint8_t family;
  };
  enum class Received : std::uint8_t { bytes, nothing, interrupted, closed };

  // Before every call of a lock.
  [[nodiscard]] Status begin() noexcept;
  [[nodiscard]] Status ensure_page() noexcept;
  void start_anew_in_child() noexcept;
  [[nodiscard]] bool forked() const noexcept;
  [[nodiscard]] Status draw_token(Token& token) noexcept;
  [[nodiscard]] Duration jittered(Duration delay) noexcept;
  [[nodiscard]] Status draw_random(unsigned char* out, std::size_t size) noexcept;
  [[nodiscard]] Status refill_pool() noexcept;
  [[nodiscard]] SessionSettings settings() const noexcept;

  [[nodiscard]] Status ensure_ready(Instant deadline) noexcept;
  [[nodiscard]] Status make_ready(Instant deadline) noexcept;
  [[nodiscard]] Status connect_once(Instant deadline) noexcept;
  [[nodiscard]] Status connect_transport(Instant deadline) noexcept;
  [[nodiscard]] Status connect_cached(Instant deadline) noexcept;
  [[nodiscard]] Status connect_address(const void* address, std::size_t size, int family, Instant deadline) noexcept;
  [[nodiscard]] bool take_literal() noexcept;
  [[nodiscard]] Status resolve() noexcept;
  [[nodiscard]] Status connect_socket(int socket, const void* address, std::size_t size, Instant deadline) noexcept;
  [[nodiscard]] Status set_up_socket(int socket, int family) noexcept;
  void close_transport() noexcept;
  void probe_idle_connection() noexcept;

  // Moves bytes until the lock has its answer (nullptr: until the handshake or query has one) or the connection ends.
  void pump(const BlockingLock* lock, Instant until = Instant::max()) noexcept;
  // Sends what the lock's machine wants and waits for the answer.
  void ask(BlockingLock& lock) noexcept;
  void ask_on(BlockingLock& lock, ParseResult result, RespValue value) noexcept;
  [[nodiscard]] bool answered(const BlockingLock* lock) const noexcept;
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
  void react(Received received, const BlockingLock* lock, Instant timeout) noexcept;
  // Waits for events until the timeout or a signal, no longer than sleep_max. A negative timeout counts as none.
  static int wait_for(int descriptor, short events, Duration timeout) noexcept;
  // Sleeps until then, or until cancel(). False if cancelled.
  [[nodiscard]] bool sleep_until(Instant then) noexcept;
  [[nodiscard]] bool take_cancel() noexcept;
  [[nodiscard]] bool drain_cancel() noexcept;
  // PTTL as the server says it: -2 no key, -1 no TTL.
  [[nodiscard]] Status query_ttl(Key key, std::int64_t& milliseconds) noexcept;

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
  Status query_outcome_ = Status::ok;
  std::int64_t query_result_ = 0;
  Status failure_ = Status::not_connected;  // Why the last attempt to connect failed.
  int error_number_ = 0;
  ConfigProblem problem_;
  std::uint8_t address_count_ = 0;
  std::uint8_t address_index_ = 0;  // The one that worked last.
  SocketAddress addresses_[addresses_max];
  Session session_;
  ClientConfig config_;
  SessionBuffers buffers_;
};
static_assert(sizeof(Client) <= 28 * 1024, "promised: a client, all its buffers included");

}  // namespace holdfast
