// SPDX-License-Identifier: MIT
//
// The addresses of a host: literal ones, and those that libc's resolver finds.
#pragma once

#include <cstdint>

#include "holdfast/core/socket_address.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

// A literal address needs no resolver. False: it is none, and `address` is untouched.
[[nodiscard]] bool literal_address(const char* host, std::uint16_t port, SocketAddress& address) noexcept;

// Asks libc, which may use the heap and take its own time. Fills in up to addresses_max, and says how many.
[[nodiscard]] std::uint8_t look_up(const char* host, std::uint16_t port, SocketAddress* addresses) noexcept;

}  // namespace holdfast
