// SPDX-License-Identifier: MIT
//
// The reentrant kinds for an Asio loop. Their owner may acquire them again while they are held, one operation after the other,
// and they are free once they were released as often. They share with Redisson what ReentrantLock, FencedLock and MultiLock
// do.
//
//     AsyncOwner owner(client);
//     AsyncReentrantLock lock(owner, "orders/42");
//     co_await lock.async_acquire(2s, asio::use_awaitable);
#pragma once

#include "holdfast/asio/async_owned_lock.hpp"
#include "holdfast/core/multi_kind.hpp"
#include "holdfast/core/name_list.hpp"
#include "holdfast/core/reentrant_kind.hpp"

namespace holdfast {

class AsyncReentrantLock : public AsyncOwnedLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them. The owner must outlive the lock.
  AsyncReentrantLock(AsyncHoldOwner& owner, BytesArgument key, const LockTiming& timing = {})
      : AsyncOwnedLock(owner, reentrant_kind, Key(key), timing) {}
  ~AsyncReentrantLock() override = default;
};

class AsyncFencedLock : public AsyncOwnedLock {
 public:
  AsyncFencedLock(AsyncHoldOwner& owner, BytesArgument key, const LockTiming& timing = {})
      : AsyncOwnedLock(owner, fenced_kind, Key(key), timing) {}
  ~AsyncFencedLock() override = default;

  // Of the last outermost acquire, the same on re-entry and renewal; 0 where it was not granted. In [1, 2^63).
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};

// Several names, all or nothing; see MultiLock. Together they take one of the owner's places.
class AsyncMultiLock : public AsyncOwnedLock {
 public:
  AsyncMultiLock(AsyncHoldOwner& owner, const ByteView* names, std::size_t count, const LockTiming& timing = {})
      : AsyncOwnedLock(owner, multi_kind, NameList(names, count).key(), timing) {}
  // The same of a list in braces, and of an array of any texts.
  template <std::size_t count>
  AsyncMultiLock(AsyncHoldOwner& owner, const BytesArgument (&names)[count], const LockTiming& timing = {})
      : AsyncOwnedLock(owner, multi_kind, NameList(names).key(), timing) {}
  template <BytesElement Text, std::size_t count>
  AsyncMultiLock(AsyncHoldOwner& owner, Text (&names)[count], const LockTiming& timing = {})
      : AsyncOwnedLock(owner, multi_kind, NameList(names).key(), timing) {}
  ~AsyncMultiLock() override = default;

  // The name at `index`, in the order of their bytes; empty behind the last one. A view of the lock's own.
  [[nodiscard]] ByteView name(std::size_t index) const noexcept { return name_at(AsyncLock::key(), index); }
  Key key() const = delete;
};

}  // namespace holdfast
