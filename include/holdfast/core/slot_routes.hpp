// SPDX-License-Identifier: MIT
//
// SlotRoutes is what a driver with connections to several masters of a cluster knows of slots: at which of its connections each was
// last. The connections have numbers; 0 is the first, where each slot is looked for at first. There is no map to be read: who asks at
// the wrong server is told MOVED, nothing has run, and the words say where to go. So an old belief costs one question.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/slot.hpp"

namespace holdfast {

class Node;

// A server as the words of MOVED name it.
class NamedServer {
 public:
  [[nodiscard]] ByteView host() const noexcept { return host_.view(); }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] bool operator==(const NamedServer& other) const noexcept {
    return port_ == other.port_ && host_.view() == other.host_.view();
  }
  void assign(ByteView host, std::uint16_t port) noexcept {
    host_.assign(host);
    port_ = port;
  }
  // The words with which this node has refused a request for a name of that slot. False: they are not those of MOVED, or of another
  // slot, and *this is as it was.
  [[nodiscard]] bool read(const Node& from, std::uint16_t slot) noexcept;

 private:
  BoundedText<listed_host_size_max> host_;
  std::uint16_t port_ = 0;
};

class SlotRoutes {
 public:
  [[nodiscard]] std::uint8_t at(std::uint16_t slot) const noexcept { return numbers_[slot]; }
  void lead(std::uint16_t slot, std::uint8_t number) noexcept { numbers_[slot] = number; }
  // All of one connection are asked for over another one.
  void redirect(std::uint8_t from, std::uint8_t to) noexcept {
    for (std::uint8_t& number : numbers_)
      if (number == from) number = to;
  }
  // Those of this connection, which goes to another server, are looked for at the first one again.
  void forget(std::uint8_t gone) noexcept { redirect(gone, 0); }
  // All are.
  void forget() noexcept {
    for (std::uint8_t& number : numbers_) number = 0;
  }

 private:
  std::uint8_t numbers_[cluster_slots] = {};
};
static_assert(cluster_masters_max <= UINT8_MAX);

}  // namespace holdfast
