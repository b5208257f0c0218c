// SPDX-License-Identifier: MIT
#include "holdfast/detail/subscription.hpp"

#include "stream.hpp"

namespace holdfast {

void Subscription::close(State state) noexcept {
  stream_.close();
  if (state_ != State::absent) state_ = state;
}

}  // namespace holdfast
