// SPDX-License-Identifier: MIT
//
// What a driver does with a machine of one connection (Session, Subscriber), without a socket: bytes out are collected,
// bytes in are fed, a piece at a time, so that its user can look at the machine after each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "holdfast/core/instant.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast::testing {

// Moves what the machine wants to send next to `sent`, at most `limit` bytes, and takes as many off `limit`. False if it
// was nothing.
template <class Machine>
bool transmit_piece(Machine& machine, Instant now, std::string& sent, std::size_t& limit) {
  if (limit == 0) return false;
  const ByteView bytes = machine.poll_transmit(now).slice(0, limit);
  if (bytes.empty()) return false;
  sent.append(bytes.data(), bytes.size());
  machine.handle_transmitted(bytes.size());
  limit -= bytes.size();
  return true;
}

// Feeds the machine as much of `bytes` as it has room for, and takes that off them. False if it was nothing.
template <class Machine>
bool receive_piece(Machine& machine, Instant now, std::string_view& bytes) {
  const MutableBytes space = bytes.empty() ? MutableBytes() : machine.receive_space();
  const std::size_t count = std::min(space.size, bytes.size());
  if (count == 0) return false;
  std::memcpy(space.data, bytes.data(), count);
  bytes.remove_prefix(count);
  machine.handle_received(count, now);
  return true;
}

}  // namespace holdfast::testing
