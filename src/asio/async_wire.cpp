// SPDX-License-Identifier: MIT
#include "async_wire.hpp"

#include <sys/socket.h>
#include <unistd.h>

namespace holdfast {

// Asio's reactor takes memory for each descriptor that it has at the same time, and keeps it for the next: it is taken here, and
// not when the first waiter's subscription is connected. A socket that goes nowhere holds the place until then.
AsyncWire::AsyncWire(AsyncLoop& loop, Host& host) : loop_(loop), host_(host), socket_(loop.executor()) {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return;
  asio::error_code error;
  socket_.assign(asio::generic::stream_protocol(AF_UNIX, 0), descriptor, error);
  if (error) ::close(descriptor);
}

int AsyncWire::start_connect(int descriptor, int family) {
  asio::error_code error;
  socket_.close(error);
  socket_.assign(asio::generic::stream_protocol(family, 0), descriptor, error);
  if (error) {
    ::close(descriptor);
    return error.value();
  }
  descriptor_ = descriptor;
  family_ = family;
  socket_.async_wait(asio::socket_base::wait_write,
                     loop_.own([this, serial = ++serial_](const asio::error_code& failed) {
                       if (serial != serial_) return;
                       loop_.take([&] { host_.wire_connected(*this, failed.value()); });
                     }));
  return 0;
}

int AsyncWire::start_use() {
  asio::error_code error;
  descriptor_ = socket_.release(error);
  if (!error) socket_.assign(asio::generic::stream_protocol(family_, 0), descriptor_, error);
  if (!error) socket_.native_non_blocking(true, error);
  return error.value();
}

void AsyncWire::await_readable() {
  if (reading_) return;
  reading_ = true;
  socket_.async_wait(asio::socket_base::wait_read, loop_.own([this, serial = serial_](const asio::error_code& failed) {
    if (serial != serial_) return;
    reading_ = false;
    loop_.take([&] {
      if (!failed) return host_.wire_readable(*this);
      const bool known = failed.category() == asio::error::get_system_category();
      host_.wire_closed(*this, known ? failed.value() : 0);
    });
  }));
}

void AsyncWire::await_writable() {
  if (writing_) return;
  writing_ = true;
  socket_.async_wait(asio::socket_base::wait_write, loop_.own([this, serial = serial_](const asio::error_code&) {
    if (serial != serial_) return;
    writing_ = false;
    loop_.turn();
  }));
}

void AsyncWire::close(bool forked) noexcept {
  ++serial_;
  reading_ = writing_ = false;
  // The child shares the parent's epoll as well, and Asio would take the descriptor out of it: not one that is closed.
  if (forked && descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  asio::error_code ignored;
  socket_.close(ignored);
}

}  // namespace holdfast
