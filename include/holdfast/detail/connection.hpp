// SPDX-License-Identifier: MIT
//
// Connection is a Node with a socket: it moves bytes and time for it, and no call of it waits. When to call is the driver's to
// know: the blocking client and the watchdog by poll(2), a quorum by one poll(2) for all its nodes, Asio's loop by its own.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstddef>

#include "holdfast/core/node.hpp"
#include "holdfast/detail/clock.hpp"
#include "holdfast/detail/random_source.hpp"
#include "holdfast/detail/stream.hpp"

namespace holdfast {

class Lookout;

// Small and often used, so they stand before the node: their offsets fit into one byte.
struct SocketState {
  Instant now_;
  Stream stream_;
  int error_number_ = 0;
  std::uint32_t receive_nanoseconds_ = 0;  // Of the socket: SO_RCVTIMEO, which is below sleep_max.
  RandomSource* random_ = nullptr;
  NameQuestion* question_ = nullptr;
  Lookout* lookout_ = nullptr;
};

class Connection : protected SocketState, public Node {
 public:
  enum class Received : std::uint8_t { bytes, nothing, interrupted, closed };

  explicit Connection(const Node::Storage& storage) noexcept;
  // Closes the socket without a word, also a forked child's copy, and wipes the password.
  ~Connection();

  // A. Questions.
  [[nodiscard]] bool connected() const noexcept { return session_.ready(); }
  [[nodiscard]] const ServerIdentity& server() const noexcept { return session_.identity(); }
  // Compensations that the server has not confirmed yet.
  [[nodiscard]] std::size_t compensations_pending() const noexcept { return session_.compensations_pending(); }
  // Of those, and of releases that nobody waits for, the ones that were given up since the connection was made: no place for
  // them was to be had when their locks were destroyed, or the server refused them for good. Their leases end what they would
  // have ended.
  [[nodiscard]] std::uint32_t releases_dropped() const noexcept { return session_.compensations_dropped(); }
  // Words for the last failure: the server's own, or ours. A view until the next call; may be empty.
  [[nodiscard]] ByteView error_text() const noexcept { return session_.failure_text(); }
  // errno of the last system call that failed for good, or 0.
  [[nodiscard]] int system_error_number() const noexcept { return error_number_; }
  [[nodiscard]] int socket() const noexcept { return stream_.socket(); }
  // False: transmit() has nothing to do.
  [[nodiscard]] bool wants_transmit() const noexcept { return session_.wants_transmit() || stream_.unsent(); }
  // Something waits to be sent that the socket may take.
  [[nodiscard]] bool waits_to_send() const noexcept { return stream_.waits_to_send(session_.unsent()); }
  // Something of what was submitted has not left yet.
  [[nodiscard]] bool unsent() const noexcept { return session_.unsent() || stream_.unsent(); }
  // Something has arrived that no poll(2) sees.
  [[nodiscard]] bool pending() const noexcept { return stream_.pending(); }
  // The time of this turn: what the driver has set, or when bytes were received since.
  [[nodiscard]] Instant now() const noexcept { return now_; }
  [[nodiscard]] RandomSource& random() const noexcept { return *random_; }
  // Who hears news of its server; nullptr: nobody.
  [[nodiscard]] Lookout* lookout() const noexcept { return lookout_; }
  // AF_UNIX, AF_INET, AF_INET6.
  [[nodiscard]] int address_family() const noexcept;

  // B. Commands.
  // Where random numbers come from, and who is asked for the addresses of a name: nullptr where the driver dials by itself.
  // REQUIRES: they are given before it is configured, and outlive it; `random` is open by then.
  void use(RandomSource& random, NameQuestion* question) noexcept {
    random_ = &random;
    question_ = question;
  }
  // The driver dials by itself, and this is the socket; -1: there is none, or the driver closes it.
  void set_socket(int socket) noexcept {
    if (socket < 0) stream_.drop_layer();
    stream_.adopt(socket);
  }
  // REQUIRES: it outlives the connection, or is taken away before.
  // `heeds`: it hears nothing between two calls, so each call looks at first.
  void set_lookout(Lookout* lookout, bool heeds) noexcept {
    lookout_ = lookout;
    idle_nanoseconds_ = heeds ? -1 : idle_default;
  }
  void set_now(Instant now) noexcept { now_ = now; }
  void set_error_number(int number) noexcept { error_number_ = number; }
  // As Node's, and finds out itself whether the host is an address.
  void configure(const ClientConfig& config) noexcept;

  // Does what is due of connecting.
  void dial() noexcept {
    if (now_ >= dialer_.poll_timeout()) [[unlikely]]
      dial_on();
  }
  // What has become of the socket that is dialled, once it is writable.
  void finish_dial() noexcept { finish_dial(connect_outcome(socket())); }
  void take_addresses(const SocketAddress* addresses, std::uint8_t count) noexcept;
  // Puts into words what the session cannot know of its end. Before handle_closed(), where the driver closes the socket.
  void explain_end() noexcept;
  // Closes the socket. Poll the replies.
  void close_transport() noexcept;

  // The owner goes away. What is still to be taken back is sent once more where that needs no waiting: over a new connection, to
  // a server that accepts it at once. REQUIRES: close_transport() was called, nobody waits for a reply.
  void leave() noexcept;
  // In a forked child: everything is the parent's. Our copy of the descriptor is closed, and nothing is sent.
  void forget() noexcept;

  // A socket on its way to the address in use. Where it fails there is none, and errno says why. system_error, connect_failed,
  // not_connected: no address is known.
  [[nodiscard]] Status begin_connect(int& socket, bool& connected) noexcept;
  // What has become of it, once it is writable. Where it failed, errno says why.
  [[nodiscard]] static Status connect_outcome(int socket) noexcept;
  // The options of its socket, once it is connected, and what secures it. The socket blocks from here on, for a request timeout
  // or sleep_max at most, unless it is told not to by each call. system_error, and errno says why; too_many_requests: what
  // secures it has no place.
  [[nodiscard]] Status set_up(Stream& stream) noexcept;
  [[nodiscard]] Status set_up() noexcept { return set_up(stream_); }

  // Receives what has arrived, which the caller deals with; where that is nothing, the session knows that it was looked.
  [[nodiscard]] Received look() noexcept;
  // Sends as much as the socket takes, of what may leave without a look.
  void transmit() noexcept;
  // What is left of it, after a send() that said `count`.
  void handle_sent(std::ptrdiff_t count) noexcept;
  // After a recv() that said `count`; what it received stands in receive_space().
  HOLDFAST_ONE_COPY [[nodiscard]] Received take_received(std::ptrdiff_t count) noexcept {
    if (count <= 0) [[unlikely]]
      return nothing_received(count);
    now_ = read_clock();
    handle_used(now_);
    session_.handle_received(static_cast<std::size_t>(count), now_);
    return Received::bytes;
  }
  [[nodiscard]] Received nothing_received(std::ptrdiff_t count) noexcept;

 protected:
  [[nodiscard]] Status set_options(int socket) noexcept;
  bool blame_layer() noexcept;
  void dial_on() noexcept;
  void finish_dial(Status outcome) noexcept;
};

}  // namespace holdfast
