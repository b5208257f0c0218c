// SPDX-License-Identifier: MIT
//
// AsyncRedlockMutex, AsyncRedlockReentrantLock and AsyncRedlockFencedLock are the locks of redlock.hpp for an Asio loop: the same
// key, the same peers, the same options. A lock may be made before its quorum is connected.
//
//     AsyncRedlockMutex<3> lock(quorum, "orders/42", {.lease = 10s}, {.fence = true});
//     lock.async_acquire(2s, [&](std::error_code error) { ... });
//
//     AsyncQuorumOwner<3> owner(quorum);
//     AsyncRedlockReentrantLock<3> again(owner, "orders/42");
#pragma once

#include <cstddef>

#include "holdfast/asio/async_owned_quorum_lock.hpp"
#include "holdfast/asio/async_quorum_lock.hpp"
#include "holdfast/asio/async_quorum_owner.hpp"
#include "holdfast/core/mutex_options.hpp"
#include "holdfast/core/quorum_kinds.hpp"

namespace holdfast {

template <std::size_t node_count>
class AsyncRedlockMutex : public AsyncQuorumLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them.
  AsyncRedlockMutex(AsyncQuorum& quorum, BytesArgument key, const QuorumTiming& timing = {},
                    const MutexOptions& options = {})
      : hold_(core_of(quorum), quorum_kind_of(options), Key(key), timing) {
    attach(hold_);
  }
  ~AsyncRedlockMutex() override = default;

  // Of the last acquire; grows with every grant on this quorum, also when single nodes come back empty. 0 without the option.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }

 private:
  AsyncQuorumHold<node_count> hold_;
};

// Its owner may acquire it again while it is held. On the nodes a hold counts 1, whatever it counts here; acquiring it once more
// renews it.
template <std::size_t node_count>
class AsyncRedlockReentrantLock : public AsyncOwnedQuorumLock<node_count> {
 public:
  AsyncRedlockReentrantLock(AsyncQuorumHoldOwner<node_count>& owner, BytesArgument key, const QuorumTiming& timing = {})
      : AsyncOwnedQuorumLock<node_count>(owner, reentrant_kind, Key(key), timing) {}
  ~AsyncRedlockReentrantLock() override = default;
};

// The same, and its grants come with a fence.
template <std::size_t node_count>
class AsyncRedlockFencedLock : public AsyncOwnedQuorumLock<node_count> {
 public:
  AsyncRedlockFencedLock(AsyncQuorumHoldOwner<node_count>& owner, BytesArgument key, const QuorumTiming& timing = {})
      : AsyncOwnedQuorumLock<node_count>(owner, quorum_fenced_kind, Key(key), timing) {}
  ~AsyncRedlockFencedLock() override = default;

  // Of the outermost acquire; grows as that of an AsyncRedlockMutex.
  [[nodiscard]] std::uint64_t fence() const noexcept { return this->fence_of_grant(); }
};

}  // namespace holdfast
