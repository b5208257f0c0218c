// SPDX-License-Identifier: MIT
//
// The reentrant kinds for an Asio loop. The lock object is the owner: it may be acquired again while it is held, one
// operation after the other, and is free once it was released as often. They share with Redisson what ReentrantLock,
// FencedLock and MultiLock do.
#pragma once

#include "holdfast/asio/async_lock.hpp"
#include "holdfast/core/multi_kind.hpp"
#include "holdfast/core/name_list.hpp"
#include "holdfast/core/reentrant_kind.hpp"

namespace holdfast {

class AsyncReentrantLock : public AsyncLock {
 public:
  // The key's bytes are copied: any bytes, 1 to key_size_max of them.
  AsyncReentrantLock(AsyncClient& client, BytesArgument key, const LockTiming& timing = {})
      : AsyncLock(client, reentrant_kind, Key(key), timing) {}
  ~AsyncReentrantLock() = default;
};

class AsyncFencedLock : public AsyncLock {
 public:
  AsyncFencedLock(AsyncClient& client, BytesArgument key, const LockTiming& timing = {})
      : AsyncLock(client, fenced_kind, Key(key), timing) {}
  ~AsyncFencedLock() = default;

  // Of the last outermost acquire, the same on re-entry and renewal; 0 where it was not granted. In [1, 2^63).
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};

// Several names, all or nothing; see MultiLock.
class AsyncMultiLock : public AsyncLock {
 public:
  AsyncMultiLock(AsyncClient& client, const ByteView* names, std::size_t count, const LockTiming& timing = {})
      : AsyncLock(client, multi_kind, NameList(names, count).key(), timing) {}
  // The same of a list in braces, and of an array of any texts.
  template <std::size_t count>
  AsyncMultiLock(AsyncClient& client, const BytesArgument (&names)[count], const LockTiming& timing = {})
      : AsyncLock(client, multi_kind, NameList(names).key(), timing) {}
  template <BytesElement Text, std::size_t count>
  AsyncMultiLock(AsyncClient& client, Text (&names)[count], const LockTiming& timing = {})
      : AsyncLock(client, multi_kind, NameList(names).key(), timing) {}
  ~AsyncMultiLock() = default;

  // The name at `index`, in the order of their bytes; empty behind the last one. A view of the lock's own.
  [[nodiscard]] ByteView name(std::size_t index) const noexcept { return name_at(AsyncLock::key(), index); }
  Key key() const = delete;
};

}  // namespace holdfast
