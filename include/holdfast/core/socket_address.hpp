// SPDX-License-Identifier: MIT
//
// SocketAddress is where a socket goes, and NameQuestion how a name's addresses are asked for. Not used by itself: see Connection.
#pragma once

#include <cstdint>

#include "holdfast/proto/language.hpp"

namespace holdfast {

// A socket address as bytes, so that no system header is needed here.
struct alignas(8) SocketAddress {
  unsigned char bytes[28];  // sockaddr_in6 is the largest that a name resolves to.
  std::uint8_t size;
  std::uint8_t family;
};

// Asks for the addresses of a name and does not wait for them. False: it cannot be asked now. A pointer, so that a program
// whose calls may wait for the resolver does not carry a thread.
struct NameQuestion {
  bool (*ask)(NameQuestion& self, const char* host, std::uint16_t port) noexcept;
};

}  // namespace holdfast
