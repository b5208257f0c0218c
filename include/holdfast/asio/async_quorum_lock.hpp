// SPDX-License-Identifier: MIT
//
// AsyncQuorumLock is what the Redlock kinds of an Asio loop have in common: AsyncLock's face on an AsyncQuorum. Use the kinds:
// AsyncRedlockMutex, AsyncRedlockReentrantLock and AsyncRedlockFencedLock (async_redlock.hpp).
//
// Thread rule and heap: as AsyncClient's. Its whole memory is its own and that of its hold with its votes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "holdfast/asio/async_handle.hpp"
#include "holdfast/asio/async_quorum_record.hpp"

namespace holdfast {

class AsyncQuorumLock : public AsyncHandle {
 public:
  [[nodiscard]] Instant renewal_due() const noexcept { return record().machine().renewal_due(); }
  // What became of the last request to this node.
  [[nodiscard]] Status node_status(std::size_t node) const noexcept { return record().machine().vote(node).status; }
  // This node's grant counts.
  [[nodiscard]] bool held_on(std::size_t node) const noexcept {
    return !orphaned() && read_clock() < record().machine().vote(node).counts_until;
  }
  [[nodiscard]] Key key() const noexcept { return record().machine().key(); }
  [[nodiscard]] const Token& token() const noexcept { return record().machine().token(); }

 protected:
  AsyncQuorumLock() noexcept = default;
  ~AsyncQuorumLock() override = default;

  [[nodiscard]] static const std::shared_ptr<AsyncQuorumCore>& core_of(const AsyncQuorum& quorum) noexcept {
    return quorum.core_;
  }
  [[nodiscard]] AsyncQuorumRecord& record() const noexcept { return static_cast<AsyncQuorumRecord&>(hold()); }
  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return record().machine().fence(); }
};

}  // namespace holdfast
