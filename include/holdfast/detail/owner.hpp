// SPDX-License-Identifier: MIT
//
// Owner is who may acquire a reentrant lock again: an explicit handle, never a thread. Two lock objects of one owner, kind
// and name are handles of one lock that is held or not; those of two owners exclude each other, also in one program.
//
//     Owner owner(client);                  // has places for the holds of owner_holds_default names
//     ReentrantLock lock(owner, "orders/42");
//     OwnerOf<64> many(client);             // of 64 names
//
// A lock object for one name more says too_many_requests from configuration() and from every call.
//
// Thread rule: an owner and its locks belong to its client, and are used with it by one thread at a time; they may move to
// another thread as a whole. No heap: the holds are in the owner itself, wherever the program puts it.
#pragma once

#include <cstddef>

#include "holdfast/detail/hold_owner.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

// An owner of so many holds at most: one for each kind and name that it has lock objects of, however many of these.
template <std::size_t holds>
class OwnerOf : public HoldOwner {
 public:
  // REQUIRES: the client outlives the owner, and the owner its locks.
  explicit OwnerOf(ClientBase& client) noexcept : HoldOwner(client, storage_.places, holds) {}
  // A lock of it that is left is an assertion.
  ~OwnerOf() = default;

 private:
  HoldStorage<OwnedHold, holds> storage_;
};
static_assert(sizeof(OwnerOf<8>) <= 24 + 8 * 640, "promised: an owner, and its holds");

class Owner : public OwnerOf<owner_holds_default> {
 public:
  using OwnerOf::OwnerOf;
};

}  // namespace holdfast
