// SPDX-License-Identifier: MIT
#include "holdfast/mixed_lock_set.hpp"

namespace holdfast {

void MixedLockSet::find(const AnyLock& lock, LockPlace& found) noexcept {
  if (lock.one() != nullptr) return locate(lock.one(), found);
  const QuorumLock& many = *lock.many();
  found.node_count = many.quorum().nodes();
  for (std::size_t node = 0; node < found.node_count; ++node) found.nodes[node] = &many.quorum().node(node).config();
  found.kind = &many.record_->machine().kind();
  found.key = many.key();
  found.sort();
}

}  // namespace holdfast
