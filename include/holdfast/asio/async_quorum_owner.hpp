// SPDX-License-Identifier: MIT
//
// AsyncQuorumOwner is QuorumOwner for an Asio loop: who may acquire an AsyncRedlockReentrantLock or an AsyncRedlockFencedLock
// again. Two lock objects of one owner, kind and name are handles of one lock that is held or not; those of two owners exclude
// each other.
//
//     AsyncQuorumOwner<3> owner(quorum);          // has places for the holds of owner_holds_default names, on three nodes
//     AsyncRedlockReentrantLock<3> lock(owner, "orders/42");
//     AsyncQuorumOwnerOf<3, 64> many(quorum);     // of 64 names
//
// A lock object for one name more says too_many_requests from configuration() and from every operation. An owner is not a
// coroutine: give each task that must exclude the others an owner of its own.
//
// Thread rule: as AsyncClient's. No heap: the holds and their votes are in the owner itself.
#pragma once

#include <cstddef>
#include <memory>

#include "holdfast/asio/async_quorum.hpp"
#include "holdfast/asio/async_quorum_record.hpp"
#include "holdfast/core/quorum_votes.hpp"
#include "holdfast/detail/hold_places.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

// A hold with its votes.
template <std::size_t node_count>
class AsyncQuorumHold : private QuorumVotes<node_count>, public AsyncQuorumRecord {
 public:
  AsyncQuorumHold(const std::shared_ptr<AsyncQuorumCore>& core, const LockKind& kind, Key key,
                  const QuorumTiming& timing)
      : QuorumVotes<node_count>(kind), AsyncQuorumRecord(core, kind, this->pointers_, node_count, key, timing) {}
};

// What every AsyncQuorumOwner of so many nodes is: a function that makes locks for any owner takes one.
template <std::size_t node_count>
class AsyncQuorumHoldOwner {
 public:
  AsyncQuorumHoldOwner(const AsyncQuorumHoldOwner&) = delete;
  AsyncQuorumHoldOwner& operator=(const AsyncQuorumHoldOwner&) = delete;

 protected:
  AsyncQuorumHoldOwner(AsyncQuorum& quorum, HoldPlace<AsyncQuorumHold<node_count>>* places, std::size_t count) noexcept
      : core_(quorum.core_), places_(places, count) {}
  ~AsyncQuorumHoldOwner() = default;

 private:
  template <std::size_t>
  friend class AsyncOwnedQuorumLock;

  std::shared_ptr<AsyncQuorumCore> core_;
  HoldPlaces<AsyncQuorumHold<node_count>> places_;
};

// An owner of so many holds at most: one for each kind and name that it has lock objects of, however many of these.
template <std::size_t node_count, std::size_t holds>
class AsyncQuorumOwnerOf : public AsyncQuorumHoldOwner<node_count> {
 public:
  // REQUIRES: the owner outlives its locks. The quorum need not be connected yet.
  explicit AsyncQuorumOwnerOf(AsyncQuorum& quorum) noexcept
      : AsyncQuorumHoldOwner<node_count>(quorum, storage_.places, holds) {}
  // A lock of it that is left is an assertion.
  ~AsyncQuorumOwnerOf() = default;

 private:
  HoldStorage<AsyncQuorumHold<node_count>, holds> storage_;
};

template <std::size_t node_count>
class AsyncQuorumOwner : public AsyncQuorumOwnerOf<node_count, owner_holds_default> {
 public:
  using AsyncQuorumOwnerOf<node_count, owner_holds_default>::AsyncQuorumOwnerOf;
};

}  // namespace holdfast
