// SPDX-License-Identifier: MIT
//
// RedlockMutex, RedlockReentrantLock and RedlockFencedLock are locks on a quorum of independent nodes: held while a majority of all that are
// configured holds them, whatever becomes of the rest. proto/redlock.md says why that is safe, and when it is not.
//
//     RedlockMutex<3> lock(quorum, "orders/42", {.lease = 10s}, {.fence = true});
//     if (lock.acquire(2s) == Status::ok) { ...; Status status = lock.release(); }
//
//     QuorumOwner<3> owner(quorum);
//     RedlockReentrantLock<3> again(owner, "orders/42");
//
// A RedlockMutex excludes redsync, node-redlock and RedLock.net on the same nodes. Semaphores, fair and read/write locks are
// not offered under a quorum: their order and their counts are one server's, and N servers do not agree on them.
#pragma once

#include <cstddef>

#include "holdfast/core/mutex_options.hpp"
#include "holdfast/core/quorum_kinds.hpp"
#include "holdfast/detail/owned_quorum_lock.hpp"
#include "holdfast/detail/quorum_lock.hpp"
#include "holdfast/detail/quorum_owner.hpp"
#include "holdfast/detail/run_quorum_listening.hpp"

namespace holdfast {

template <std::size_t node_count>
class RedlockMutex : public QuorumLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The quorum must be connect()ed before, and outlive the
  // lock.
  RedlockMutex(QuorumClient& quorum, BytesArgument key, const QuorumTiming& timing = {},
               const MutexOptions& options = {}) noexcept
      : QuorumLock(hold_), hold_(quorum, quorum_kind_of(options), Key(key), timing, ways) {}
  // Posts the release of a hold that is left. Does not block, does not throw.
  ~RedlockMutex() = default;

  // Of the last acquire; grows with every grant on this quorum, also when single nodes come back empty. 0 without the option.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }

 private:
  static constexpr QuorumRecord::Ways ways = {.draw_ordinal = nullptr, .run_listening = run_listening};

  QuorumHold<node_count> hold_;
};

// Its owner may acquire it again while it is held. On the nodes a hold counts 1, whatever it counts here; acquiring it once more
// renews it. Its hashes are those of Redisson's locks, so that both exclude each other on each node.
template <std::size_t node_count>
class RedlockReentrantLock : public OwnedQuorumLock<node_count> {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The quorum must be connect()ed before; the owner must
  // outlive the lock.
  RedlockReentrantLock(QuorumHoldOwner<node_count>& owner, BytesArgument key, const QuorumTiming& timing = {}) noexcept
      : OwnedQuorumLock<node_count>(owner, reentrant_kind, Key(key), timing) {}
  // Posts the release of what was acquired through this object and is left. Does not block, does not throw.
  ~RedlockReentrantLock() = default;
};

// The same, and its grants come with a fence.
template <std::size_t node_count>
class RedlockFencedLock : public OwnedQuorumLock<node_count> {
 public:
  RedlockFencedLock(QuorumHoldOwner<node_count>& owner, BytesArgument key, const QuorumTiming& timing = {}) noexcept
      : OwnedQuorumLock<node_count>(owner, quorum_fenced_kind, Key(key), timing) {}
  ~RedlockFencedLock() = default;

  // Of the outermost acquire; grows as that of a RedlockMutex.
  [[nodiscard]] std::uint64_t fence() const noexcept { return this->fence_of_grant(); }
};

}  // namespace holdfast
