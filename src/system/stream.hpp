// SPDX-License-Identifier: MIT
//
// What every byte passes through, inline: without a layer it is the system call itself.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include "holdfast/detail/stream.hpp"

namespace holdfast {

inline std::ptrdiff_t Stream::receive(MutableBytes space, int flags) noexcept {
  if (layer_ != nullptr) [[unlikely]]
    return layer_->security->table().receive(*layer_, space, flags);
  return ::recv(socket_, space.data, space.size, flags);
}

inline std::ptrdiff_t Stream::send(ByteView bytes, int flags) noexcept {
  if (layer_ != nullptr) [[unlikely]]
    return layer_->security->table().send(*layer_, bytes, flags | MSG_NOSIGNAL);
  return ::send(socket_, bytes.data(), bytes.size(), flags | MSG_NOSIGNAL);
}

inline void Stream::close() noexcept {
  drop_layer();
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

}  // namespace holdfast
