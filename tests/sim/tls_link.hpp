// SPDX-License-Identifier: MIT
//
// TLS in a world: a program's end of its connections is Tls as it ships, on OpenSSL, and each of them has an end at its server
// here. What OpenSSL draws is the world's, so that a seed gives the same bytes. What a world looks for in the bytes of a client is
// shown to it before they are encrypted.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast {
class StreamSecurity;
}

namespace holdfast::sim {

// A server's end of a connection.
class TlsPeer {
 public:
  virtual ~TlsPeer() = default;
  // Of what the client has sent: `opened` is what it says, `answer` what TLS itself says to it. False: this is no TLS.
  [[nodiscard]] virtual bool receive(std::string_view bytes, std::string& opened, std::string& answer) = 0;
  // Nothing, before the handshake is over.
  [[nodiscard]] virtual std::string seal(std::string_view bytes) = 0;
  // What a server says before it ends a connection.
  [[nodiscard]] virtual std::string farewell() = 0;
};

// What a program has, for all of its connections.
class ProgramTls {
 public:
  virtual ~ProgramTls() = default;
  [[nodiscard]] virtual StreamSecurity& security() noexcept = 0;
};

#ifdef HOLDFAST_SIM_TLS
inline constexpr bool has_tls = true;
[[nodiscard]] std::unique_ptr<TlsPeer> make_tls_peer(bool tls_1_2);
// Up to so many connections.
[[nodiscard]] std::unique_ptr<ProgramTls> make_program_tls(std::size_t connections);
// OpenSSL keeps its errors by thread, and all fibers are one: after a system call there are none.
void forget_tls_errors() noexcept;
#else
// Without OpenSSL the seeds that have some are of other worlds.
inline constexpr bool has_tls = false;
inline std::unique_ptr<TlsPeer> make_tls_peer(bool) { return nullptr; }
inline std::unique_ptr<ProgramTls> make_program_tls(std::size_t) { return nullptr; }
inline void forget_tls_errors() noexcept {}
#endif

}  // namespace holdfast::sim
