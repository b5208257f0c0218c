// SPDX-License-Identifier: MIT
#include "network.hpp"

#include "board.hpp"
#include "lwip/init.h"
#include "lwip/timeouts.h"
#include "netif/ethernet.h"

// ---- What lwIP asks of the board: lwip/sys.h, arch/cc.h ----------------------------------------------------------

extern "C" u32_t sys_now(void) { return board::milliseconds(); }

// For ports and first sequence numbers. Without random bytes no lock is taken either: see main.cpp.
extern "C" std::uint32_t board_random_number(void) {
  std::uint32_t number = 0;
  if (!board::draw_random(&number, sizeof number)) number = board::milliseconds();
  return number;
}

extern "C" void board_assertion_failed(const char* file, int line) {
  board::print("assertion failed: ");
  board::print(file);
  board::print(":");
  board::print_number(static_cast<std::uint64_t>(line));
  board::print("\n");
  board::stop(70);
}

namespace board {

bool Network::start(const Addresses& addresses) {
  if (!chip_.start()) return false;
  lwip_init();
  if (netif_add(&interface_, &addresses.own, &addresses.mask, &addresses.router, &chip_, Lan9118::attach,
                ethernet_input) == nullptr)
    return false;
  netif_set_default(&interface_);
  netif_set_up(&interface_);
  if (chip_.link()) netif_set_link_up(&interface_);
  return true;
}

bool Network::poll() {
  const bool came = chip_.receive(interface_);
  sys_check_timeouts();
  const std::uint32_t now = milliseconds();
  if (now - looked_at_ < look_interval) return came;
  looked_at_ = now;
  const bool link = chip_.link();
  if (link && !up()) netif_set_link_up(&interface_);
  if (!link && up()) netif_set_link_down(&interface_);
  return came;
}

}  // namespace board
