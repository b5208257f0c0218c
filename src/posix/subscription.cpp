// SPDX-License-Identifier: MIT
#include "holdfast/detail/subscription.hpp"

#include <unistd.h>

namespace holdfast {

void Subscription::close(State state) noexcept {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  if (state_ != State::absent) state_ = state;
}

}  // namespace holdfast
