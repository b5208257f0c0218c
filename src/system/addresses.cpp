// SPDX-License-Identifier: MIT
#include "addresses.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>

namespace holdfast {

// Both kinds of address have the port in the same place.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
static_assert(offsetof(sockaddr_in, sin_family) == offsetof(sockaddr_in6, sin6_family));

bool literal_address(const char* host, std::uint16_t port, SocketAddress& address) noexcept {
  sockaddr_in6 v6{};
  static_assert(sizeof v6 <= sizeof address.bytes && sizeof(sockaddr_in) <= sizeof v6);
  const bool is_v4 = ::inet_pton(AF_INET, host, reinterpret_cast<char*>(&v6) + offsetof(sockaddr_in, sin_addr)) == 1;
  if (!is_v4 && ::inet_pton(AF_INET6, host, &v6.sin6_addr) != 1) return false;
  address.family = is_v4 ? AF_INET : AF_INET6;
  address.size = is_v4 ? sizeof(sockaddr_in) : sizeof v6;
  v6.sin6_family = address.family;
  v6.sin6_port = htons(port);
  std::memcpy(address.bytes, &v6, sizeof v6);
  return true;
}

std::uint8_t look_up(const char* host, std::uint16_t port, SocketAddress* addresses) noexcept {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host, nullptr, &hints, &found) != 0) return 0;
  std::uint8_t count = 0;
  const in_port_t number = htons(port);
  for (const addrinfo* entry = found; entry != nullptr && count < addresses_max; entry = entry->ai_next) {
    SocketAddress& address = addresses[count];
    if (entry->ai_addrlen > sizeof address.bytes) continue;
    std::memcpy(address.bytes, entry->ai_addr, entry->ai_addrlen);
    std::memcpy(address.bytes + offsetof(sockaddr_in, sin_port), &number, sizeof number);
    address.size = static_cast<std::uint8_t>(entry->ai_addrlen);
    address.family = static_cast<std::uint8_t>(entry->ai_family);
    ++count;
  }
  ::freeaddrinfo(found);
  return count;
}

}  // namespace holdfast
