// SPDX-License-Identifier: MIT
//
// MultiLock is a lock on several names of one node: all of them or none, taken in one step of the server, so that no order of
// names can deadlock. On each name it excludes ReentrantLock, Redisson's getLock() and every other MultiLock, and each wakes
// the other's waiters. It is reentrant by its owner, as a whole.
//
//     Owner owner(client);
//     MultiLock lock(owner, {"accounts/1", "accounts/2"});
//     if (lock.acquire(2s) == Status::ok) { ...; Status status = lock.release(); }
//
// The loss of one name is the loss of all: the rest is given back with the client's next call. Calls, errors and costs are
// those of a ReentrantLock, of as many names; renewals go through a Watchdog as well. The names of a lock belong into one
// slot, by a common {tag}, should the server ever become a cluster. Locks on several nodes: LockSet.
#pragma once

#include "holdfast/core/multi_kind.hpp"
#include "holdfast/core/name_list.hpp"
#include "holdfast/detail/owned_lock.hpp"
#include "holdfast/detail/owner.hpp"

namespace holdfast {

class MultiLock : public OwnedLock {
 public:
  // 1 to names_max different names of any bytes, 1 to name_size_max each, together key_size_max less a byte each; otherwise
  // every call says invalid_argument. In any order, and a name that is given twice counts once: the same names are the same
  // lock. The bytes are copied. The owner must outlive the lock.
  MultiLock(HoldOwner& owner, const ByteView* names, std::size_t count, const LockTiming& timing = {}) noexcept
      : OwnedLock(owner, multi_kind, NameList(names, count).key(), timing) {}
  // The same of a list in braces, and of an array of any texts.
  template <std::size_t count>
  MultiLock(HoldOwner& owner, const BytesArgument (&names)[count], const LockTiming& timing = {}) noexcept
      : OwnedLock(owner, multi_kind, NameList(names).key(), timing) {}
  template <BytesElement Text, std::size_t count>
  MultiLock(HoldOwner& owner, Text (&names)[count], const LockTiming& timing = {}) noexcept
      : OwnedLock(owner, multi_kind, NameList(names).key(), timing) {}
  // Posts the release of what was acquired through this object and is left. Does not block, does not throw.
  ~MultiLock() = default;

  // The name at `index`, in the order of their bytes; empty behind the last one. A view of the lock's own.
  [[nodiscard]] ByteView name(std::size_t index) const noexcept { return name_at(BlockingLock::key(), index); }
  // There is more than one: see name().
  Key key() const = delete;
};

static_assert(sizeof(MultiLock) <= 64, "promised: a handle");

}  // namespace holdfast
