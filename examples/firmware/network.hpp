// SPDX-License-Identifier: MIT
//
// The network as one loop sees it: the chip, lwIP on it, and what both have to do.
#pragma once

#include "lan9118.hpp"
#include "lwip/netif.h"

namespace board {

class Network {
 public:
  struct Addresses {
    ip4_addr_t own, mask, router;
  };

  // False: there is no chip.
  [[nodiscard]] bool start(const Addresses& addresses);
  // Hands to lwIP what has come and what is due. True: something has come.
  bool poll();
  // The cable is in.
  [[nodiscard]] bool up() const { return netif_is_link_up(&interface_) != 0; }

 private:
  static constexpr std::uint32_t look_interval = 100;  // Milliseconds between two looks at the cable.

  Lan9118 chip_{0x40200000};
  netif interface_{};
  std::uint32_t looked_at_ = 0;
};

}  // namespace board
