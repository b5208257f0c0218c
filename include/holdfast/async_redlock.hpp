// SPDX-License-Identifier: MIT
//
// AsyncRedlockMutex and AsyncRedlockReentrantLock are RedlockMutex and RedlockReentrantLock for an Asio loop: the same key, the
// same peers, the same options. A lock may be made before its quorum is connected.
//
//     AsyncRedlockMutex<3> lock(quorum, "orders/42", {.lease = 10s}, {.fence = true});
//     lock.async_acquire(2s, [&](std::error_code error) { ... });
#pragma once

#include <cstddef>

#include "holdfast/async_quorum_lock.hpp"
#include "holdfast/quorum_kinds.hpp"
#include "holdfast/quorum_votes.hpp"

namespace holdfast {

template <std::size_t node_count>
class AsyncRedlockMutex : private QuorumVotes<node_count>, public AsyncQuorumLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them.
  AsyncRedlockMutex(AsyncQuorum& quorum, BytesArgument key, const QuorumTiming& timing = {},
                    const MutexOptions& options = {})
      : QuorumVotes<node_count>(quorum_kind_of(options)),
        AsyncQuorumLock(quorum, quorum_kind_of(options), this->pointers_, node_count, Key(key), timing) {}
  ~AsyncRedlockMutex() = default;

  // Of the last acquire; grows with every grant on this quorum, also when single nodes come back empty. 0 without the option.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};

// The object is the owner: it may be acquired again while it is held, one operation after the other. On the nodes a hold
// counts 1, whatever it counts here; acquiring it once more renews it.
template <std::size_t node_count>
class AsyncRedlockReentrantLock : private QuorumVotes<node_count>, public AsyncQuorumLock {
 public:
  AsyncRedlockReentrantLock(AsyncQuorum& quorum, BytesArgument key, const QuorumTiming& timing = {}, bool fence = false)
      : QuorumVotes<node_count>(quorum_reentrant_kind(fence)),
        AsyncQuorumLock(quorum, quorum_reentrant_kind(fence), this->pointers_, node_count, Key(key), timing) {}
  ~AsyncRedlockReentrantLock() = default;

  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};

}  // namespace holdfast
