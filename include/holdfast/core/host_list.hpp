// SPDX-License-Identifier: MIT
//
// Hosts as one text: "host[:port],host[:port],...". IPv6 addresses stand in brackets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

// Letters, digits and what names and literal addresses are made of, as long as the host of a list may be. It is dialled and printed.
[[nodiscard]] bool is_host(ByteView text) noexcept;
// A number from 1 to 65535. False: it is none.
[[nodiscard]] bool read_port(ByteView text, std::uint16_t& port) noexcept;
// "host:port", where an IPv6 address may stand without brackets, as servers name each other. False: it is none.
[[nodiscard]] bool read_named_host(ByteView text, ByteView& host, std::uint16_t& port) noexcept;

struct HostList {
  ByteView text;
  std::uint16_t port_default;

  [[nodiscard]] std::size_t count() const noexcept;
  // False: there is none at `index`, or it is malformed.
  [[nodiscard]] bool at(std::size_t index, ByteView& host, std::uint16_t& port) const noexcept;
  // Of each host, whatever their order.
  [[nodiscard]] std::uint64_t sum() const noexcept;
  // What is wrong with it, if anything is.
  [[nodiscard]] const char* problem() const noexcept;
};

}  // namespace holdfast
