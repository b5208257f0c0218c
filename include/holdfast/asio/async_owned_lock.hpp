// SPDX-License-Identifier: MIT
//
// AsyncOwnedLock is what the reentrant kinds of an AsyncClient have in common: a handle of the one hold that its owner has of a
// kind and a name, with a timing of its own for the holds that begin through it. Use the kinds: AsyncReentrantLock,
// AsyncFencedLock, AsyncFairLock, AsyncMultiLock, and AsyncReadWriteLock, which has two.
#pragma once

#include "holdfast/asio/async_lock.hpp"
#include "holdfast/asio/async_owner.hpp"

namespace holdfast {

class AsyncOwnedLock : public AsyncLock {
 protected:
  AsyncOwnedLock(AsyncHoldOwner& owner, const LockKind& kind, Key key, const LockTiming& timing);
  // Completes what waits and was started through this object with Status::cancelled, and posts the release of what was acquired
  // through it and is left; what the owner's other objects acquired stays theirs. Where one of these has an operation in
  // progress, the release follows when that is over.
  ~AsyncOwnedLock() override;

  // The two sides of one lock, of one owner: what the one asks for tells the server of the other's hold. If one of them was
  // refused, both are: a hold that has another side has it for as long as it stands.
  static void pair(AsyncOwnedLock& one, AsyncOwnedLock& other);

 private:
  [[nodiscard]] const LockTiming* timing() const noexcept final { return &timing_; }
  void leave();
  void refuse_too(const AsyncOwnedLock& other);

  LockTiming timing_;
};
static_assert(sizeof(AsyncOwnedLock) <= 80, "promised: a handle of a hold");

}  // namespace holdfast
