// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace bench {

// Where the server listens: on a Unix socket, or, where the path is empty, on a port of the loopback interface.
struct Address {
  std::string socket_path;
  int port = 0;
};

// How tables call it.
inline std::string transport_of(const Address& address) { return address.socket_path.empty() ? "TCP" : "Unix socket"; }

}  // namespace bench
