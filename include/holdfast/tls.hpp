// SPDX-License-Identifier: MIT
//
// Tls lets clients speak TLS with their servers. It is in a library of its own, holdfast-tls, which needs OpenSSL from 3.0 on:
//
//     TlsPlaces<2> places;                  // one per connection: see below
//     Tls tls(places.storage());
//     if (tls.open({.ca_file = "/etc/redis/ca.pem"}) != Status::ok) report(tls.error_text());
//     ClientConfig config = {.tls = &tls};
//     if (parse_url("rediss://db.internal", config) != Status::ok) ...
//     Client client;
//     Status status = client.connect(config);
//
// All clients may have it: Client, a Quorum, a Watchdog, the Asio clients. A client takes one place, and a second one once it waits
// by push; a Watchdog takes one; a quorum takes that of a client per server. Without a place connecting fails with
// too_many_requests.
//
// The peer's certificate is verified: its chain by the system's store or by `ca_file`, its time, and its name. TLS 1.2 is the
// least. Where that fails, calls say tls_failed, and the client's error_text() says why. Sentinels and clusters name servers by
// address as a rule: then certificates have the addresses, or `server_name` is given (proto/topology.md, TLS).
//
// Memory: sizeof(Tls), and a place of 18 KiB per connection. OpenSSL takes memory of its own from the heap: some 80 KiB for the
// certificates and 40 KiB per connection, also while it is connected. OpenSSL reads the wall clock, for the time of certificates.
// Thread rule: open() before any client has it, by one thread; after that, clients of different threads may share it.
// Fork: as Client's; nothing is said over the parent's connections.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/detail/stream.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/status.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace holdfast {

inline constexpr std::size_t tls_path_size_max = 511;
// A record of TLS, 16 KiB and what it adds, and as much again for what a handshake says at once: a chain of certificates.
inline constexpr std::size_t tls_output_size = 17 * 1024;

enum class TlsVerify : std::uint8_t {
  full,     // The chain, the time and the name.
  nothing,  // Nothing at all: whoever is on the way can read and change everything. For a test bench.
};

struct TlsConfig {
  BoundedText<tls_path_size_max> ca_file{};  // PEM. Empty: the system's store.
  BoundedText<tls_path_size_max>
      certificate_file{};                     // PEM, of the client, with what leads to its CA. Empty: it has none.
  BoundedText<tls_path_size_max> key_file{};  // PEM, of that certificate, without a pass phrase.
  BoundedText<host_size_max> server_name{};   // The name that each server has to have. Empty: its host.
  TlsVerify verify = TlsVerify::full;
};

class Tls final : public StreamSecurity {
 public:
  // One connection's. Storage only; the members are the business of Tls.
  struct Place : StreamLayer {
    ssl_st* session = nullptr;
    int socket = -1;
    int flags = 0;            // Of the receive or send in progress.
    std::uint32_t begin = 0;  // Of `output`, what the socket has not taken yet.
    std::uint32_t end = 0;
    bool taken = false;
    char words[120];  // What `problem` may point to.
    char output[tls_output_size];
  };
  struct Storage {
    Place* places;
    std::size_t count;
  };

  // The storage must outlive it.
  explicit Tls(const Storage& storage) noexcept;
  // REQUIRES: every client that has it is closed, or gone.
  ~Tls();

  // Reads the files. Again: what was opened before stays for the connections that there are.
  // Errors: invalid_argument: a text is too long, or a file is none of the kind; system_error. error_text() says which.
  [[nodiscard]] Status open(const TlsConfig& config) noexcept;
  // A sentence on what was wrong with the last open(); empty: nothing.
  [[nodiscard]] ByteView error_text() const noexcept { return {text_, text_size_}; }

 private:
  static const Table table;
  static StreamLayer* open_layer(StreamSecurity& security, int socket, const char* host) noexcept;
  static std::ptrdiff_t receive(StreamLayer& layer, MutableBytes space, int flags) noexcept;
  static std::ptrdiff_t send(StreamLayer& layer, ByteView bytes, int flags) noexcept;
  static void close(StreamLayer& layer) noexcept;

  [[nodiscard]] bool set_up(Place& place, int socket, const char* host) noexcept;
  [[nodiscard]] Status refuse(Status status, ByteView what, const char* why) noexcept;

  Storage storage_;
  ssl_ctx_st* context_ = nullptr;
  TlsConfig config_;
  std::size_t text_size_ = 0;
  char text_[200];
};

template <std::size_t count>
struct TlsPlaces {
  Tls::Place places[count];

  [[nodiscard]] Tls::Storage storage() noexcept { return {places, count}; }
};
static_assert(sizeof(Tls::Place) <= 18 * 1024, "promised: a place for a connection over TLS");

}  // namespace holdfast
