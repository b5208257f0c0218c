// SPDX-License-Identifier: MIT
//
// A driver for the network chip LAN9118 of Microchip (formerly SMSC), for lwIP. It is polled, and takes nothing but FIFOs: no
// interrupt, no DMA.
#pragma once

#include <cstdint>

#include "lwip/netif.h"

namespace board {

class Lan9118 {
 public:
  // At this address of the bus.
  explicit Lan9118(std::uintptr_t base) : base_(base) {}
  Lan9118(const Lan9118&) = delete;
  Lan9118& operator=(const Lan9118&) = delete;

  // Resets the chip and starts it. False: there is none, or it does not wake up.
  [[nodiscard]] bool start();
  // The cable is in, and somebody is at its other end.
  [[nodiscard]] bool link() const;
  // Hands the frames that have come to lwIP, a few at most: the loop has other work, too. False: there were none.
  bool receive(netif& interface);

  // For netif_add(): `interface.state` is a Lan9118 that has been started.
  static err_t attach(netif* interface);

 private:
  [[nodiscard]] std::uint32_t read(std::uint32_t at) const;
  void write(std::uint32_t at, std::uint32_t value) const;
  [[nodiscard]] bool wait_while(std::uint32_t at, std::uint32_t bits) const;
  [[nodiscard]] std::uint32_t read_mac(std::uint32_t index) const;
  void write_mac(std::uint32_t index, std::uint32_t value) const;
  [[nodiscard]] std::uint32_t read_phy(std::uint32_t index) const;
  [[nodiscard]] err_t send(const pbuf& frame) const;
  [[nodiscard]] pbuf* take(std::uint32_t size) const;

  std::uintptr_t base_;
};

}  // namespace board
