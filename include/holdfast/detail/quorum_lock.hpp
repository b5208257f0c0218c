// SPDX-License-Identifier: MIT
//
// QuorumLock is what the Redlock kinds have in common. Use the kinds: RedlockMutex, which has its hold in itself, and
// RedlockReentrantLock and RedlockFencedLock, which are handles of a hold of their owner's (redlock.hpp).
#pragma once

#include <cstdint>

#include "holdfast/core/hold_share.hpp"
#include "holdfast/detail/quorum_record.hpp"

namespace holdfast {

class QuorumLock {
 public:
  QuorumLock(const QuorumLock&) = delete;
  QuorumLock& operator=(const QuorumLock&) = delete;

  // ok; invalid_argument when key or timing are outside their limits, or the lease is above the quorum's max_lease;
  // not_connected when connect() was not called before; too_many_requests when the owner has no place for the hold of one name
  // more. Then every call below says so, too.
  [[nodiscard]] Status configuration() const noexcept {
    return refused() ? handle_->refusal : record_->configuration();
  }
  // As BlockingLock::keep(), by a QuorumWatchdog, QuorumClient::tend() and every call that waits. Errors: invalid_argument,
  // already_held.
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept {
    return refused() ? handle_->refusal : record_->keep(options);
  }
  // Any thread.
  void tick() noexcept {
    if (!refused()) record_->tick();
  }

  // One attempt on all nodes at once. Returns at the quorum, or as soon as there can be none; blocks for the node timeout at
  // most, with a fence for two of them, longer by the connect timeout while a majority is not connected.
  // Errors: lock_busy; no_quorum (QuorumClient::error_text() names the nodes); same_machine; already_held; timed_out (too
  // little of the lease was left); invalid_argument (the lease is above the max_lease that the quorum has now); cancelled;
  // too_many_requests where a callback of a call of this lock calls it. Whatever was granted by single nodes is released then.
  // A reentrant lock that is held is acquired once more, which costs a renewal; or lock_lost, until every acquisition of a lost
  // hold was released, or forget_loss() was called.
  [[nodiscard]] Status try_acquire() noexcept { return refused() ? handle_->refusal : record_->try_acquire(handle_); }
  // Attempts until it is granted or `wait` is over, with a random delay between two of them; the last when it is over. Returns
  // a request timeout later at most, whatever the nodes do.
  // Announced kinds wait by push on all nodes, and try again after max_poll or a second at the latest.
  [[nodiscard]] Status acquire(Duration wait) noexcept {
    return refused() ? handle_->refusal : record_->acquire(wait, handle_);
  }
  // Extends the lease on every node, and takes the lock anew on nodes that lost it while a majority holds it.
  // Errors: not_held, lock_lost (final); no_quorum: not extended, and the hold goes on until valid_until(); so it does after
  // invalid_argument (the lease is above the max_lease that the quorum has now).
  [[nodiscard]] Status renew() noexcept { return renew(quorum().node(0).config().request_timeout); }
  // The same with a bound on how long it may block. A renewal that was cancelled and is still on its way is waited for.
  [[nodiscard]] Status renew(Duration timeout) noexcept {
    return refused() ? handle_->refusal : record_->renew(timeout);
  }
  // Lets go on every node, and waits until a majority has nothing of the hold any more. Errors: not_held, lock_lost (no
  // majority had it), timed_out and the like: compensations follow by themselves.
  [[nodiscard]] Status release() noexcept { return handle_ == nullptr ? record_->release() : release_shared(false); }
  // Lets go without waiting. Errors: not_held, lock_lost; too_many_requests: it is over, and some node had no place for its
  // release. That follows when there is one, by tend() or any other call, while the hold has an object; or the lease ends it there.
  Status post_release() noexcept { return handle_ == nullptr ? record_->post_release() : release_shared(true); }
  // As BlockingLock::forget_loss().
  [[nodiscard]] Status forget_loss() noexcept { return refused() ? handle_->refusal : record_->forget_loss(); }

  // Any thread; no I/O.
  [[nodiscard]] bool held() const noexcept { return !refused() && record_->held(); }
  [[nodiscard]] Instant valid_until() const noexcept { return refused() ? Instant() : record_->valid_until(); }
  [[nodiscard]] Duration remaining() const noexcept { return refused() ? Duration::zero() : record_->remaining(); }
  [[nodiscard]] bool at_risk() const noexcept { return !refused() && record_->at_risk(); }

  [[nodiscard]] Instant renewal_due() const noexcept {
    if (refused()) return Instant::max();
    const QuorumClient::Turn turn(quorum());
    return record_->machine().renewal_due();
  }
  [[nodiscard]] std::uint32_t hold_count() const noexcept {
    if (refused()) return 0;
    const QuorumClient::Turn turn(quorum());
    return record_->held() ? record_->count() : 0;
  }
  // What became of the last request to this node.
  [[nodiscard]] Status node_status(std::size_t node) const noexcept {
    if (refused()) return handle_->refusal;
    const QuorumClient::Turn turn(quorum());
    return record_->machine().vote(node).status;
  }
  // This node's grant counts.
  [[nodiscard]] bool held_on(std::size_t node) const noexcept {
    if (refused()) return false;
    const QuorumClient::Turn turn(quorum());
    return !record_->orphaned() && read_clock() < record_->machine().vote(node).counts_until;
  }
  // Empty where the owner had no place for it.
  [[nodiscard]] Key key() const noexcept { return refused() ? Key() : record_->machine().key(); }
  [[nodiscard]] const Token& token() const noexcept { return refused() ? no_token : record_->machine().token(); }
  [[nodiscard]] QuorumClient& quorum() const noexcept { return refused() ? *handle_->quorum : record_->quorum(); }

 protected:
  using Handle = QuorumRecord::Handle;

  // `record` is the object's own, and may be made after this.
  explicit QuorumLock(QuorumRecord& record) noexcept : record_(&record) {}
  explicit QuorumLock(Handle* handle) noexcept : handle_(handle) {}
  // A RedlockMutex posts the release of a hold that is left, and the last handle does. Does not block: where a node has no place
  // for it, the lease ends it.
  ~QuorumLock() = default;

  void attach(OwnedQuorumHold* hold) noexcept { record_ = hold; }
  [[nodiscard]] bool refused() const noexcept { return record_ == nullptr; }
  [[nodiscard]] OwnedQuorumHold& hold() const noexcept { return static_cast<OwnedQuorumHold&>(*record_); }
  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return refused() ? 0 : record_->machine().fence(); }

 private:
  friend class MixedLockSet;

  static constexpr Token no_token = Token::none();

  // Through a handle.
  [[nodiscard]] Status release_shared(bool posted) noexcept {
    if (refused()) return handle_->refusal;
    const std::uint32_t count = record_->count();
    const Status status = posted ? record_->post_release() : record_->release();
    if (record_->count() < count) handle_->share.count_out(hold().tally);
    return status;
  }

  QuorumRecord* record_ = nullptr;  // nullptr: a handle that was refused.
  Handle* handle_ = nullptr;        // nullptr: the hold is the object's own.
};

}  // namespace holdfast
