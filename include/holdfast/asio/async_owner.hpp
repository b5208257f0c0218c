// SPDX-License-Identifier: MIT
//
// AsyncOwner is Owner for an Asio loop: who may acquire a reentrant lock again. Two lock objects of one owner, kind and name are
// handles of one lock that is held or not; those of two owners exclude each other, also in one program.
//
//     AsyncOwner owner(client);                  // has places for the holds of owner_holds_default names
//     AsyncReentrantLock lock(owner, "orders/42");
//     AsyncOwnerOf<64> many(client);             // of 64 names
//
// A lock object for one name more says too_many_requests from configuration() and from every operation. An owner is not a
// coroutine: give each task that must exclude the others an owner of its own.
//
// Thread rule: as AsyncClient's. No heap: the holds are in the owner itself, wherever the program puts it.
#pragma once

#include <cstddef>
#include <memory>

#include "holdfast/asio/async_client.hpp"
#include "holdfast/asio/async_record.hpp"
#include "holdfast/detail/hold_places.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

// What every AsyncOwner is, however many holds it has places for: a function that makes locks for any owner takes one.
class AsyncHoldOwner {
 public:
  AsyncHoldOwner(const AsyncHoldOwner&) = delete;
  AsyncHoldOwner& operator=(const AsyncHoldOwner&) = delete;

 protected:
  using Place = HoldPlace<AsyncRecord>;
  static_assert(sizeof(Place) <= 968, "promised: a hold in its owner's storage");

  AsyncHoldOwner(AsyncClient& client, Place* places, std::size_t count) noexcept
      : core_(client.core_), places_(places, count) {}
  ~AsyncHoldOwner() = default;

 private:
  friend class AsyncOwnedLock;

  std::shared_ptr<AsyncClientCore> core_;
  HoldPlaces<AsyncRecord> places_;
};

// An owner of so many holds at most: one for each kind and name that it has lock objects of, however many of these.
template <std::size_t holds>
class AsyncOwnerOf : public AsyncHoldOwner {
 public:
  // REQUIRES: the owner outlives its locks.
  explicit AsyncOwnerOf(AsyncClient& client) noexcept : AsyncHoldOwner(client, storage_.places, holds) {}
  // A lock of it that is left is an assertion.
  ~AsyncOwnerOf() = default;

 private:
  HoldStorage<AsyncRecord, holds> storage_;
};

class AsyncOwner : public AsyncOwnerOf<owner_holds_default> {
 public:
  using AsyncOwnerOf::AsyncOwnerOf;
};

}  // namespace holdfast
