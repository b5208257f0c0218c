// SPDX-License-Identifier: MIT
//
// AsyncRedlockMutex, AsyncRedlockReentrantLock and AsyncRedlockFencedLock are the locks of redlock.hpp for an Asio loop: the same
// key, the same peers, the same options. A lock may be made before its quorum is connected.
//
//     AsyncRedlockMutex<3> lock(quorum, "orders/42", {.lease = 10s}, {.fence = true});
//     lock.async_acquire(2s, [&](std::error_code error) { ... });
#pragma once

#include <cstddef>

#include "holdfast/asio/async_quorum_lock.hpp"
#include "holdfast/core/quorum_kinds.hpp"
#include "holdfast/core/quorum_votes.hpp"

namespace holdfast {

template <std::size_t node_count>
class AsyncRedlockMutex : private QuorumVotes<node_count>, public AsyncQuorumLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them.
  AsyncRedlockMutex(AsyncQuorum& quorum, BytesArgument key, const QuorumTiming& timing = {},
                    const MutexOptions& options = {})
      : QuorumVotes<node_count>(quorum_kind_of(options)),
        record_(core_of(quorum), quorum_kind_of(options), this->pointers_, node_count, Key(key), timing) {
    attach(record_);
  }
  ~AsyncRedlockMutex() override = default;

  // Of the last acquire; grows with every grant on this quorum, also when single nodes come back empty. 0 without the option.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }

 private:
  AsyncQuorumRecord record_;
};

// The object is the owner: it may be acquired again while it is held, one operation after the other. On the nodes a hold
// counts 1, whatever it counts here; acquiring it once more renews it.
template <std::size_t node_count>
class AsyncRedlockReentrantLock : private QuorumVotes<node_count>, public AsyncQuorumLock {
 public:
  AsyncRedlockReentrantLock(AsyncQuorum& quorum, BytesArgument key, const QuorumTiming& timing = {})
      : AsyncRedlockReentrantLock(quorum, reentrant_kind, Key(key), timing) {}
  ~AsyncRedlockReentrantLock() override = default;

 protected:
  AsyncRedlockReentrantLock(AsyncQuorum& quorum, const LockKind& kind, Key key, const QuorumTiming& timing)
      : QuorumVotes<node_count>(kind), record_(core_of(quorum), kind, this->pointers_, node_count, key, timing) {
    attach(record_);
  }

 private:
  AsyncQuorumRecord record_;
};

// An AsyncRedlockReentrantLock whose grants come with a fence.
template <std::size_t node_count>
class AsyncRedlockFencedLock : public AsyncRedlockReentrantLock<node_count> {
 public:
  AsyncRedlockFencedLock(AsyncQuorum& quorum, BytesArgument key, const QuorumTiming& timing = {})
      : AsyncRedlockReentrantLock<node_count>(quorum, quorum_fenced_kind, Key(key), timing) {}
  ~AsyncRedlockFencedLock() override = default;

  // Of the outermost acquire; grows as that of an AsyncRedlockMutex.
  [[nodiscard]] std::uint64_t fence() const noexcept { return this->fence_of_grant(); }
};

}  // namespace holdfast
