// SPDX-License-Identifier: MIT
#include "lan9118.hpp"

#include <cstring>

#include "lwip/etharp.h"
#include "lwip/pbuf.h"
#include "netif/ethernet.h"
#include "registers.hpp"

namespace board {

namespace {

// ---- Registers, as the chip's data sheet names them (DS00002266) -------------------------------------------------

constexpr std::uint32_t rx_data_fifo = 0x00, tx_data_fifo = 0x20, rx_status_fifo = 0x40, tx_status_fifo = 0x48;
constexpr std::uint32_t id_rev = 0x50, byte_test = 0x64, rx_cfg = 0x6c, tx_cfg = 0x70, hw_cfg = 0x74,
                        rx_fifo_inf = 0x7c;
constexpr std::uint32_t tx_fifo_inf = 0x80, mac_csr_cmd = 0xa4, mac_csr_data = 0xa8, afc_cfg = 0xac;

constexpr std::uint32_t byte_order = 0x87654321;
constexpr std::uint32_t chip_9118 = 0x0118;  // Upper half of ID_REV.
constexpr std::uint32_t hw_reset = 1U << 0, hw_must_be_one = 1U << 20, hw_tx_fifo_5k = 5U << 16;
constexpr std::uint32_t tx_on = 1U << 1;
constexpr std::uint32_t csr_busy = 1U << 31, csr_read = 1U << 30;

// Of the MAC, by index.
constexpr std::uint32_t mac_cr = 1, mac_addrh = 2, mac_addrl = 3, mac_mii_acc = 6, mac_mii_data = 7;
constexpr std::uint32_t mac_receive = 1U << 2, mac_transmit = 1U << 3, mac_full_duplex = 1U << 20;
constexpr std::uint32_t mii_busy = 1U << 0, mii_index = 6, mii_phy_1 = 1U << 11;

// Of the PHY.
constexpr std::uint32_t phy_status = 1, phy_link = 1U << 2;

// In front of each frame that is sent: two words.
constexpr std::uint32_t tx_first = 1U << 13, tx_last = 1U << 12;
// Of a frame that came: one word.
constexpr std::uint32_t rx_error = 1U << 15, rx_size_at = 16, rx_size_mask = 0x3fff, rx_checksum_size = 4;

constexpr std::uint32_t frame_size_max = 1514;
constexpr int frames_max = 8;  // In one turn of the loop.
// A busy bit clears in microseconds. Each look is a bus cycle or more: so many are milliseconds.
constexpr int looks_max = 100'000;

}  // namespace

std::uint32_t Lan9118::read(std::uint32_t at) const { return register_at(base_ + at); }
void Lan9118::write(std::uint32_t at, std::uint32_t value) const { register_at(base_ + at) = value; }

bool Lan9118::wait_while(std::uint32_t at, std::uint32_t bits) const {
  for (int looks = 0; looks < looks_max; ++looks)
    if ((read(at) & bits) == 0) return true;
  return false;
}

std::uint32_t Lan9118::read_mac(std::uint32_t index) const {
  write(mac_csr_cmd, csr_busy | csr_read | index);
  return wait_while(mac_csr_cmd, csr_busy) ? read(mac_csr_data) : 0;
}

void Lan9118::write_mac(std::uint32_t index, std::uint32_t value) const {
  write(mac_csr_data, value);
  write(mac_csr_cmd, csr_busy | index);
  (void)wait_while(mac_csr_cmd, csr_busy);
}

std::uint32_t Lan9118::read_phy(std::uint32_t index) const {
  write_mac(mac_mii_acc, mii_phy_1 | index << mii_index | mii_busy);
  for (int looks = 0; looks < looks_max; ++looks)
    if ((read_mac(mac_mii_acc) & mii_busy) == 0) return read_mac(mac_mii_data);
  return 0;
}

bool Lan9118::start() {
  if (read(byte_test) != byte_order || read(id_rev) >> 16 != chip_9118) return false;
  write(hw_cfg, hw_reset);
  if (!wait_while(hw_cfg, hw_reset)) return false;
  write(hw_cfg, hw_must_be_one | hw_tx_fifo_5k);
  write(rx_cfg, 0);            // Frames begin at their first word.
  write(afc_cfg, 0x006e3740);  // As the data sheet advises for full duplex.
  write_mac(mac_cr, mac_full_duplex | mac_receive | mac_transmit);
  write(tx_cfg, tx_on);
  return true;
}

// The bit says of the past, until it has been read: the second reading is of now.
bool Lan9118::link() const {
  (void)read_phy(phy_status);
  return (read_phy(phy_status) & phy_link) != 0;
}

// ---- Frames ------------------------------------------------------------------------------------------------------

// A frame stands in several pieces of any length; the chip takes words.
err_t Lan9118::send(const pbuf& frame) const {
  const std::uint32_t size = frame.tot_len;
  if (size > frame_size_max) return ERR_BUF;
  while ((read(tx_fifo_inf) >> 16 & 0xff) != 0) (void)read(tx_status_fifo);             // What became of earlier ones.
  if ((read(tx_fifo_inf) & 0xffff) < size + 3 * sizeof(std::uint32_t)) return ERR_BUF;  // TCP sends it again.
  write(tx_data_fifo, tx_first | tx_last | size);
  write(tx_data_fifo, size << 16 | size);
  std::uint32_t word = 0;
  std::uint32_t filled = 0;
  for (const pbuf* piece = &frame; piece != nullptr; piece = piece->next) {
    const auto* const bytes = static_cast<const unsigned char*>(piece->payload);
    for (std::uint32_t at = 0; at < piece->len; ++at) {
      word |= std::uint32_t{bytes[at]} << 8 * filled;
      if (++filled != sizeof word) continue;
      write(tx_data_fifo, word);
      word = filled = 0;
    }
    if (piece->len == piece->tot_len) break;
  }
  if (filled != 0) write(tx_data_fifo, word);
  return ERR_OK;
}

// Reads a frame out of the FIFO, also one that there is no room for. nullptr: it is dropped.
pbuf* Lan9118::take(std::uint32_t size) const {
  const bool wanted = size > rx_checksum_size && size - rx_checksum_size <= frame_size_max;
  pbuf* const frame = wanted ? pbuf_alloc(PBUF_RAW, static_cast<u16_t>(size - rx_checksum_size), PBUF_POOL) : nullptr;
  const pbuf* piece = frame;
  std::uint32_t at = 0;
  for (std::uint32_t taken = 0; taken < size; taken += sizeof(std::uint32_t)) {
    std::uint32_t word = read(rx_data_fifo);
    for (unsigned byte = 0; byte < sizeof word && piece != nullptr; ++byte, word >>= 8) {
      static_cast<unsigned char*>(piece->payload)[at] = static_cast<unsigned char>(word);
      if (++at != piece->len) continue;
      piece = piece->next;
      at = 0;
    }
  }
  return frame;
}

bool Lan9118::receive(netif& interface) {
  int frames = 0;
  for (; frames < frames_max && (read(rx_fifo_inf) >> 16 & 0xff) != 0; ++frames) {
    const std::uint32_t status = read(rx_status_fifo);
    pbuf* const frame = take(status >> rx_size_at & rx_size_mask);
    if (frame == nullptr) continue;
    if ((status & rx_error) != 0 || interface.input(frame, &interface) != ERR_OK) pbuf_free(frame);
  }
  return frames != 0;
}

err_t Lan9118::attach(netif* interface) {
  const Lan9118& chip = *static_cast<Lan9118*>(interface->state);
  const std::uint32_t low = chip.read_mac(mac_addrl);
  const std::uint32_t high = chip.read_mac(mac_addrh);
  for (unsigned at = 0; at < 4; ++at) interface->hwaddr[at] = static_cast<u8_t>(low >> 8 * at);
  for (unsigned at = 0; at < 2; ++at) interface->hwaddr[4 + at] = static_cast<u8_t>(high >> 8 * at);
  interface->hwaddr_len = ETH_HWADDR_LEN;
  interface->mtu = 1500;
  interface->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET;
  interface->name[0] = 'e';
  interface->name[1] = 'n';
  interface->output = etharp_output;
  interface->linkoutput = [](netif* self, pbuf* frame) {
    return static_cast<const Lan9118*>(self->state)->send(*frame);
  };
  return ERR_OK;
}

}  // namespace board
