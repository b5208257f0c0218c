// SPDX-License-Identifier: MIT
//
// AsyncWire is one socket of a loop: it connects, and says when it can be read and written, and never waits. Receives and
// sends are its owner's, straight to the descriptor: so no byte is in the hands of Asio, and who is about to send sees all
// that has arrived.
#pragma once

#include <asio/generic/stream_protocol.hpp>
#include <cstdint>

#include "holdfast/asio/async_loop.hpp"

namespace holdfast {

class AsyncWire {
 public:
  // What its owner is told, each followed by a turn of the loop.
  class Host {
   public:
    // The outcome of start_connect(): system error 0 is success.
    virtual void wire_connected(AsyncWire& wire, int error) = 0;
    virtual void wire_readable(AsyncWire& wire) = 0;
    virtual void wire_closed(AsyncWire& wire, int error) = 0;

   protected:
    ~Host() = default;
  };

  AsyncWire(AsyncLoop& loop, Host& host);

  // A socket that is on its way, or connected already, and is ours from here on. 0, or errno.
  [[nodiscard]] int start_connect(int descriptor, int family);
  // Behind wire_connected(): the descriptor has been set up for its use. It is not waited for writing any more, which
  // Asio does for good once it was asked, and which would wake the loop for each send. 0, or errno.
  [[nodiscard]] int start_use();
  // Once, for what comes from here on or lies there already. REQUIRES: start_use().
  void await_readable();
  // A turn follows when the socket takes bytes again.
  void await_writable();
  [[nodiscard]] bool awaits_writable() const noexcept { return writing_; }
  // Nothing is told of what was in progress. In a forked child the connection stays the parent's.
  void close(bool forked = false) noexcept;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  AsyncLoop& loop_;
  Host& host_;
  asio::generic::stream_protocol::socket socket_;
  int descriptor_ = -1;
  int family_ = 0;
  std::uint64_t serial_ = 0;  // Of the socket: what an earlier one says is not heard.
  bool reading_ = false;
  bool writing_ = false;
};

}  // namespace holdfast
