// SPDX-License-Identifier: MIT
//
// RedlockMutex, RedlockReentrantLock and RedlockFencedLock are locks on a quorum of independent nodes: held while a majority of all that are
// configured holds them, whatever becomes of the rest. proto/redlock.md says why that is safe, and when it is not.
//
//     RedlockMutex<3> lock(quorum, "orders/42", {.lease = 10s}, {.fence = true});
//     if (lock.acquire(2s) == Status::ok) { ...; Status status = lock.release(); }
//
// A RedlockMutex excludes redsync, node-redlock and RedLock.net on the same nodes. Semaphores, fair and read/write locks are
// not offered under a quorum: their order and their counts are one server's, and N servers do not agree on them.
#pragma once

#include <cstddef>

#include "holdfast/core/quorum_kinds.hpp"
#include "holdfast/core/quorum_votes.hpp"
#include "holdfast/detail/quorum_lock.hpp"
#include "holdfast/detail/run_quorum_listening.hpp"

namespace holdfast {

template <std::size_t node_count>
class RedlockMutex : private QuorumVotes<node_count>, public QuorumLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The quorum must be connect()ed before, and outlive the
  // lock.
  RedlockMutex(QuorumClient& quorum, BytesArgument key, const QuorumTiming& timing = {},
               const MutexOptions& options = {}) noexcept
      : QuorumVotes<node_count>(quorum_kind_of(options)),
        QuorumLock(quorum, quorum_kind_of(options), this->pointers_, node_count, Key(key), timing, ways) {}
  // Posts the release of a hold that is left. Does not block, does not throw.
  ~RedlockMutex() = default;

  // Of the last acquire; grows with every grant on this quorum, also when single nodes come back empty. 0 without the option.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }

 private:
  static constexpr Ways ways = {.draw_ordinal = nullptr, .run_listening = run_listening};
};

// The object is the owner: it may be acquired again while it is held. On the nodes a hold counts 1, whatever it counts here;
// acquiring it once more renews it. Its hashes are those of Redisson's locks, so that both exclude each other on each node.
template <std::size_t node_count>
class RedlockReentrantLock : private QuorumVotes<node_count>, public QuorumLock {
 public:
  RedlockReentrantLock(QuorumClient& quorum, BytesArgument key, const QuorumTiming& timing = {}) noexcept
      : RedlockReentrantLock(quorum, reentrant_kind, Key(key), timing) {}
  ~RedlockReentrantLock() = default;

 protected:
  RedlockReentrantLock(QuorumClient& quorum, const LockKind& kind, Key key, const QuorumTiming& timing) noexcept
      : QuorumVotes<node_count>(kind), QuorumLock(quorum, kind, this->pointers_, node_count, key, timing, ways) {}

 private:
  static constexpr Ways ways = {.draw_ordinal = draw_ordinal, .run_listening = run_listening};
};

// A RedlockReentrantLock whose grants come with a fence.
template <std::size_t node_count>
class RedlockFencedLock : public RedlockReentrantLock<node_count> {
 public:
  RedlockFencedLock(QuorumClient& quorum, BytesArgument key, const QuorumTiming& timing = {}) noexcept
      : RedlockReentrantLock<node_count>(quorum, quorum_fenced_kind, Key(key), timing) {}
  ~RedlockFencedLock() = default;

  // Of the outermost acquire; grows as that of a RedlockMutex.
  [[nodiscard]] std::uint64_t fence() const noexcept { return this->fence_of_grant(); }
};

}  // namespace holdfast
