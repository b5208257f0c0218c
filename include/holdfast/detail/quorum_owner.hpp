// SPDX-License-Identifier: MIT
//
// QuorumOwner is Owner for a quorum: who may acquire a RedlockReentrantLock or a RedlockFencedLock again. Two lock objects of one
// owner, kind and name are handles of one lock that is held or not; those of two owners exclude each other.
//
//     QuorumOwner<3> owner(quorum);              // has places for the holds of owner_holds_default names, on three nodes
//     RedlockReentrantLock<3> lock(owner, "orders/42");
//     QuorumOwnerOf<3, 64> many(quorum);         // of 64 names
//
// A lock object for one name more says too_many_requests from configuration() and from every call.
//
// Thread rule: as Owner's, of the quorum. No heap: the holds and their votes are in the owner itself.
#pragma once

#include <cstddef>

#include "holdfast/detail/hold_places.hpp"
#include "holdfast/detail/quorum_record.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

// What every QuorumOwner of so many nodes is: a function that makes locks for any owner takes one.
template <std::size_t node_count>
class QuorumHoldOwner {
 public:
  QuorumHoldOwner(const QuorumHoldOwner&) = delete;
  QuorumHoldOwner& operator=(const QuorumHoldOwner&) = delete;

  [[nodiscard]] QuorumClient& quorum() const noexcept { return *quorum_; }

 protected:
  QuorumHoldOwner(QuorumClient& quorum, HoldPlace<QuorumHold<node_count>>* places, std::size_t count) noexcept
      : quorum_(&quorum), places_(places, count) {}
  ~QuorumHoldOwner() = default;

 private:
  template <std::size_t>
  friend class OwnedQuorumLock;

  QuorumClient* quorum_;
  HoldPlaces<QuorumHold<node_count>> places_;
};

// An owner of so many holds at most: one for each kind and name that it has lock objects of, however many of these.
template <std::size_t node_count, std::size_t holds>
class QuorumOwnerOf : public QuorumHoldOwner<node_count> {
 public:
  // REQUIRES: the quorum outlives the owner, and the owner its locks.
  explicit QuorumOwnerOf(QuorumClient& quorum) noexcept : QuorumHoldOwner<node_count>(quorum, storage_.places, holds) {}
  // A lock of it that is left is an assertion.
  ~QuorumOwnerOf() = default;

 private:
  HoldStorage<QuorumHold<node_count>, holds> storage_;
};

template <std::size_t node_count>
class QuorumOwner : public QuorumOwnerOf<node_count, owner_holds_default> {
 public:
  using QuorumOwnerOf<node_count, owner_holds_default>::QuorumOwnerOf;
};

}  // namespace holdfast
