// SPDX-License-Identifier: MIT
//
// AsyncQuorumLock is what the Redlock kinds of an Asio loop have in common: AsyncLock's face on an AsyncQuorum. Use the kinds:
// AsyncRedlockMutex, which has its hold in itself, and AsyncRedlockReentrantLock and AsyncRedlockFencedLock, which are handles of
// a hold of their owner's (async_redlock.hpp).
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
  [[nodiscard]] Instant renewal_due() const noexcept {
    return refused() ? Instant::max() : record().machine().renewal_due();
  }
  // What became of the last request to this node.
  [[nodiscard]] Status node_status(std::size_t node) const noexcept {
    return refused() ? refusal() : record().machine().vote(node).status;
  }
  // This node's grant counts.
  [[nodiscard]] bool held_on(std::size_t node) const noexcept {
    return !refused() && !orphaned() && read_clock() < record().machine().vote(node).counts_until;
  }
  // Empty where the owner had no place for it.
  [[nodiscard]] Key key() const noexcept { return refused() ? Key() : record().machine().key(); }
  [[nodiscard]] const Token& token() const noexcept { return refused() ? no_token : record().machine().token(); }

 protected:
  AsyncQuorumLock() noexcept = default;
  ~AsyncQuorumLock() override = default;

  [[nodiscard]] static const std::shared_ptr<AsyncQuorumCore>& core_of(const AsyncQuorum& quorum) noexcept {
    return quorum.core_;
  }
  [[nodiscard]] AsyncQuorumRecord& record() const noexcept { return static_cast<AsyncQuorumRecord&>(hold()); }
  // A hold with so many votes can be one of this quorum.
  [[nodiscard]] static bool fits(const std::shared_ptr<AsyncQuorumCore>& core, std::size_t places) noexcept;
  // attach(), or refuse() where there is no hold; REQUIRES: then `why` says why.
  void take(AsyncQuorumRecord* hold, const std::shared_ptr<AsyncQuorumCore>& core, Status why) noexcept;
  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return refused() ? 0 : record().machine().fence(); }

 private:
  friend class AsyncQuorumRecord;

  // As AsyncLock's.
  [[nodiscard]] virtual const QuorumTiming* timing() const noexcept { return nullptr; }

  static constexpr Token no_token = Token::none();
};

}  // namespace holdfast
