// SPDX-License-Identifier: MIT
//
// Owner is who may acquire a reentrant lock again: an explicit handle, never a thread. Two lock objects of one owner, kind
// and name are one lock that is held or not; those of two owners exclude each other, also in one program.
//
//     Owner owner(client);
//     ReentrantLock lock(owner, "orders/42");
//
// Thread rule: an owner and its locks belong to its client, and are used with it by one thread at a time; they may move to
// another thread as a whole. No heap.
#pragma once

#include "holdfast/client.hpp"

namespace holdfast {

class BlockingLock;
class OwnedLock;

class Owner {
 public:
  // REQUIRES: the client outlives the owner, and the owner its locks.
  explicit Owner(Client& client) noexcept : client_(&client) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  [[nodiscard]] Client& client() const noexcept { return *client_; }

 private:
  friend class OwnedLock;
  class OwnedLock;

  Client* client_;
  BlockingLock* first_ = nullptr;
};
static_assert(sizeof(Owner) <= 16, "promised: an owner");

}  // namespace holdfast
