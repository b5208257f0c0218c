// SPDX-License-Identifier: MIT
//
// Where this board stands: its addresses, its server, and what it needs before it may lock anything.
#pragma once

#include "holdfast/core/client_config.hpp"
#include "network.hpp"
#include "tcp_link.hpp"

namespace board {

// What is missing, in words; nullptr: nothing, and the network runs.
[[nodiscard]] const char* start(Network& network);
[[nodiscard]] Endpoint server_at(std::uint16_t port);
[[nodiscard]] holdfast::ClientConfig server_config();

}  // namespace board
