// SPDX-License-Identifier: MIT
#include "tcp_link.hpp"

namespace board {

bool TcpLink::dial(const Endpoint& to) {
  pcb_ = tcp_new();
  if (pcb_ == nullptr) return false;
  tcp_arg(pcb_, this);
  tcp_recv(pcb_, take_received);
  tcp_err(pcb_, take_error);
  tcp_nagle_disable(pcb_);
  state_ = State::dialling;
  if (tcp_connect(pcb_, &to.address, to.port, take_connected) == ERR_OK) return true;
  close();
  return false;
}

std::ptrdiff_t TcpLink::receive(holdfast::MutableBytes space) {
  if (received_ == nullptr) return state_ == State::open ? 0 : -1;
  const u16_t left = received_->tot_len;
  const u16_t wanted = space.size < left ? static_cast<u16_t>(space.size) : left;
  const u16_t count = pbuf_copy_partial(received_, space.data, wanted, 0);
  received_ = pbuf_free_header(received_, count);
  if (pcb_ != nullptr) tcp_recved(pcb_, count);
  return count;
}

std::size_t TcpLink::send(holdfast::ByteView bytes) {
  if (state_ != State::open) return 0;
  const u16_t room = tcp_sndbuf(pcb_);
  const u16_t count = bytes.size() < room ? static_cast<u16_t>(bytes.size()) : room;
  if (count == 0 || tcp_write(pcb_, bytes.data(), count, TCP_WRITE_FLAG_COPY) != ERR_OK) return 0;
  (void)tcp_output(pcb_);
  return count;
}

// A connection that the peer has closed is closed in good order; of any other nothing is to linger that takes a place.
void TcpLink::close() {
  if (received_ != nullptr) pbuf_free(received_);
  received_ = nullptr;
  if (pcb_ != nullptr) {
    tcp_arg(pcb_, nullptr);
    tcp_recv(pcb_, nullptr);
    tcp_err(pcb_, nullptr);
    if (state_ != State::ended || tcp_close(pcb_) != ERR_OK) tcp_abort(pcb_);
  }
  pcb_ = nullptr;
  state_ = State::closed;
}

// ---- lwIP's calls ------------------------------------------------------------------------------------------------

err_t TcpLink::take_connected(void* self, tcp_pcb*, err_t) {
  static_cast<TcpLink*>(self)->state_ = State::open;
  return ERR_OK;
}

err_t TcpLink::take_received(void* self, tcp_pcb*, pbuf* bytes, err_t) {
  TcpLink& link = *static_cast<TcpLink*>(self);
  if (bytes == nullptr)
    link.state_ = State::ended;
  else if (link.received_ == nullptr)
    link.received_ = bytes;
  else
    pbuf_cat(link.received_, bytes);
  return ERR_OK;
}

// lwIP has freed its side already.
void TcpLink::take_error(void* self, err_t) {
  TcpLink& link = *static_cast<TcpLink*>(self);
  link.pcb_ = nullptr;
  link.state_ = State::ended;
}

}  // namespace board
