// SPDX-License-Identifier: MIT
#include "holdfast/asio/async_quorum_lock.hpp"

#include "async_quorum_core.hpp"

namespace holdfast {

bool AsyncQuorumLock::fits(const std::shared_ptr<AsyncQuorumCore>& core, std::size_t places) noexcept {
  return core->size() <= places;
}

void AsyncQuorumLock::take(AsyncQuorumRecord* hold, const std::shared_ptr<AsyncQuorumCore>& core, Status why) noexcept {
  if (hold != nullptr)
    attach(*hold);
  else
    refuse(*core, why);
}

}  // namespace holdfast
