// SPDX-License-Identifier: MIT
#include "site.hpp"

#include "board.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/assert.hpp"

namespace board {

namespace {

// QEMU's user network, in the range that documents use. The host's loopback interface answers at its router's address.
Network::Addresses addresses() {
  Network::Addresses found;
  IP4_ADDR(&found.own, 192, 0, 2, 15);
  IP4_ADDR(&found.mask, 255, 255, 255, 0);
  IP4_ADDR(&found.router, 192, 0, 2, 2);
  return found;
}

}  // namespace

const char* start(Network& network) {
  holdfast::set_assertion_handler([](const char* file, int line) noexcept { board_assertion_failed(file, line); });
  unsigned char probe[holdfast::token_random_size];
  if (!draw_random(probe, sizeof probe)) return "no random bytes";
  if (!network.start(addresses())) return "no network chip";
  return nullptr;
}

Endpoint server_at(std::uint16_t port) {
  Endpoint server{};
  server.address = addresses().router;
  server.port = port;
  return server;
}

// The deadlines of a local network: far below any lease.
holdfast::ClientConfig server_config() {
  using namespace std::chrono_literals;
  return {.host = "192.0.2.2",
          .client_name = "firmware",
          .connect_timeout = 1s,
          .request_timeout = 500ms,
          .stall_timeout = 2s};
}

}  // namespace board
