// SPDX-License-Identifier: MIT
#include "holdfast/detail/quorum_lock.hpp"
#include "holdfast/lock_set.hpp"

namespace holdfast {

Status AnyLock::configuration() const noexcept {
  return one_ != nullptr ? one_->configuration() : many_->configuration();
}
Status AnyLock::acquire(Duration wait) const noexcept {
  return one_ != nullptr ? one_->acquire(wait) : many_->acquire(wait);
}
Status AnyLock::renew() const noexcept { return one_ != nullptr ? one_->renew() : many_->renew(); }
Status AnyLock::release() const noexcept { return one_ != nullptr ? one_->release() : many_->release(); }
Status AnyLock::post_release() const noexcept { return one_ != nullptr ? one_->post_release() : many_->post_release(); }
Instant AnyLock::valid_until() const noexcept { return one_ != nullptr ? one_->valid_until() : many_->valid_until(); }
Instant AnyLock::renewal_due() const noexcept { return one_ != nullptr ? one_->renewal_due() : many_->renewal_due(); }

void MixedLockSet::find(const AnyLock& lock, LockPlace& found) noexcept {
  if (lock.one() != nullptr) return locate(lock.one(), found);
  const QuorumLock& many = *lock.many();
  found.node_count = many.quorum().nodes();
  for (std::size_t node = 0; node < found.node_count; ++node) found.nodes[node] = &many.quorum().node(node).config();
  found.kind = &many.record_->machine().kind();
  found.key = many.key();
  found.sort();
}

CancelSignal& MixedLockSet::signal_of(const AnyLock& lock) noexcept {
  if (lock.one() != nullptr) return LockSetBase::signal_of(lock.one());
  QuorumClient& quorum = lock.many()->quorum();
  if (quorum.random_.forked()) {
    const QuorumClient::Turn turn(quorum);
    quorum.start_anew_in_child();
  }
  return quorum.cancel_;
}

}  // namespace holdfast
