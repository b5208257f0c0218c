// SPDX-License-Identifier: MIT
//
// TcpLink is one TCP connection over lwIP's raw API: what a socket is elsewhere. lwIP calls it while frames are handed to it and
// while its timers run; its own calls never wait.
#pragma once

#include <cstddef>

#include "holdfast/proto/bytes.hpp"
#include "lwip/ip_addr.h"
#include "lwip/pbuf.h"
#include "lwip/tcp.h"

namespace board {

struct Endpoint {
  ip_addr_t address;
  std::uint16_t port;
};

class TcpLink {
 public:
  enum class State : std::uint8_t {
    closed,
    dialling,
    open,
    ended,  // By the peer, or by lwIP: close() it. What had come may still be received.
  };

  TcpLink() = default;
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  [[nodiscard]] State state() const { return state_; }
  // False: lwIP has no place for it, or no way to there. REQUIRES: closed.
  [[nodiscard]] bool dial(const Endpoint& to);
  // Bytes received; 0: nothing has come; below 0: nothing will.
  [[nodiscard]] std::ptrdiff_t receive(holdfast::MutableBytes space);
  // Bytes taken; 0: there is no room now.
  [[nodiscard]] std::size_t send(holdfast::ByteView bytes);
  void close();

 private:
  static err_t take_connected(void* self, tcp_pcb* pcb, err_t error);
  static err_t take_received(void* self, tcp_pcb* pcb, pbuf* bytes, err_t error);
  static void take_error(void* self, err_t error);

  State state_ = State::closed;
  tcp_pcb* pcb_ = nullptr;
  pbuf* received_ = nullptr;  // In a chain; taken from its front.
};

}  // namespace board
