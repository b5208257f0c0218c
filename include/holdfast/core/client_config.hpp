// SPDX-License-Identifier: MIT
//
// ClientConfig is everything a client wants to know, with its defaults in place:
//
//     Client client;
//     Status status = client.connect({.host = "db.internal", .password = secret, .request_timeout = 500ms});
//
// It is plain data and owns its texts, at fixed sizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

// A text of at most `size_max` bytes, in place. One that is too long is kept as such and found by validate().
template <std::size_t size_max>
class BoundedText {
 public:
  constexpr BoundedText() noexcept { bytes_[0] = '\0'; }
  // Of whatever a ByteView can be made of; its bytes are copied.
  template <BytesSource Source>
  constexpr BoundedText(Source&& text) noexcept {
    assign(static_cast<Source&&>(text));
  }

  constexpr void assign(BytesArgument argument) noexcept {
    const ByteView text = argument;
    too_long_ = text.size() > size_max;
    size_ = too_long_ ? 0 : static_cast<std::uint16_t>(text.size());
    if (size_ != 0) __builtin_memcpy(bytes_, text.data(), size_);
    bytes_[size_] = '\0';
  }
  [[nodiscard]] constexpr ByteView view() const noexcept { return {bytes_, size_}; }
  [[nodiscard]] constexpr const char* c_str() const noexcept { return bytes_; }  // Ends at a NUL byte in the text.
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] constexpr bool too_long() const noexcept { return too_long_; }

 private:
  std::uint16_t size_ = 0;
  bool too_long_ = false;
  char bytes_[size_max + 1];  // Behind the NUL: whatever was there.
};

class StreamSecurity;
class Topology;
struct Witness;

inline constexpr Duration spin_off = Duration::zero();

// The fields. Text is BoundedText, whose bytes are its own, or KeptText (core/kept_config.hpp).
template <template <std::size_t size_max> class Text>
struct ClientConfigOf {
  // Where the server listens. A literal address is used as it is; a name goes through the resolver of libc, which is
  // the one thing that may use the heap after connect(), and only when every address it gave has failed.
  Text<host_size_max> host = "127.0.0.1";
  std::uint16_t port = 6379;
  // A Unix socket; where it is set, host and port are not used.
  Text<socket_path_size_max> socket_path{};
  // TLS: a Tls that is open (tls.hpp, of the library holdfast-tls), for host and port. It must outlive every client that has it.
  // nullptr: none, and what is sent can be read on its way.
  StreamSecurity* tls = nullptr;
  // Who is asked where the server is: Sentinels (sentinels.hpp), or a Cluster (cluster.hpp). Host and port are not used then. It must
  // outlive every client that has it, and stay as it is. nullptr: the server is the one at host and port.
  Topology* topology = nullptr;

  Text<user_size_max> user{};                           // Empty: the default user.
  Text<password_size_max> password{};                   // Empty: no AUTH.
  Text<client_name_size_max> client_name = "holdfast";  // For CLIENT LIST; no spaces. Empty: none.
  int database = 0;                                     // [0, database_max]
  // A grant counts only when so many replicas have confirmed it; 0: when the server has. They are asked for acks_timeout, over a
  // connection for that alone: a blocking client needs an Acks object for it (acks.hpp). A grant that too few have confirmed is
  // released again, and told as too_few_replicas. proto/topology.md says what that does and does not buy.
  std::uint8_t acks = 0;  // [0, acks_max]

  // Each in [timeout_min, timeout_max].
  Duration connect_timeout = connect_timeout_default;  // Over all addresses, the handshake included.
  Duration request_timeout = request_timeout_default;  // From the send of one request to its reply.
  Duration stall_timeout = stall_timeout_default;      // With nothing received for so long, the connection is closed.

  // Polls the socket for so long before the process sleeps: it saves a wake-up, tens of microseconds, and costs a core
  // while it polls. Misses make it pause by itself. spin_off, or up to 10 ms.
  Duration spin = spin_off;

  // Who waits by push sleeps so long at most before it asks again, and a subscription that was silent for so long is asked
  // whether it is alive. In [poll_min, poll_max].
  Duration max_poll = max_poll_default;

  // Below stall_timeout, where there are acks. A part of a millisecond does not count.
  Duration acks_timeout = acks_timeout_default;

  bool native_delete = true;  // Releases by the server's own compare-and-delete where it has one.

  // Who counts what the client does, and its watchdog's connection: a Meter (detail/meter.hpp). It must outlive every client that
  // has it. nullptr: nobody, and nothing is counted.
  Witness* meter = nullptr;
};

using ClientConfig = ClientConfigOf<BoundedText>;
static_assert(sizeof(ClientConfig) <= 1280, "promised: a configuration");

// The first field that is outside its limits.
struct ConfigProblem {
  const char* field = nullptr;   // nullptr: none.
  const char* reason = nullptr;  // A sentence without a full stop.
  [[nodiscard]] bool found() const noexcept { return field != nullptr; }
};
[[nodiscard]] ConfigProblem validate(const ClientConfig& config) noexcept;

}  // namespace holdfast
