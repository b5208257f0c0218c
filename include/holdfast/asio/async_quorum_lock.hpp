// SPDX-License-Identifier: MIT
//
// AsyncQuorumLock is what the Redlock kinds of an Asio loop have in common: AsyncLock's face on an AsyncQuorum. One operation
// at a time, beside async_wait_lost(). Use the kinds: AsyncRedlockMutex, AsyncRedlockReentrantLock and
// AsyncRedlockFencedLock (async_redlock.hpp).
//
// Thread rule and heap: as AsyncClient's. Its whole memory is its own and that of its votes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "holdfast/asio/async_hold.hpp"
#include "holdfast/asio/async_quorum.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/core/quorum_task.hpp"
#include "holdfast/core/subscriber.hpp"
#include "holdfast/detail/linked_place.hpp"

namespace holdfast {

class AsyncQuorumLock : public AsyncHold {
 public:
  // Lets go without waiting. Errors: not_held, lock_lost; too_many_requests: it is over, and some node had no place for its
  // release, which follows when there is one, while this object lives; or the lease ends it there.
  Status post_release();
  // As BlockingLock::forget_loss(). Errors: as there; too_many_requests while an operation of this lock waits.
  [[nodiscard]] Status forget_loss();
  [[nodiscard]] Instant renewal_due() const noexcept { return machine_.renewal_due(); }
  [[nodiscard]] std::uint32_t hold_count() const noexcept { return held() ? machine_.count() : 0; }
  // What became of the last request to this node.
  [[nodiscard]] Status node_status(std::size_t node) const noexcept { return machine_.vote(node).status; }
  // This node's grant counts.
  [[nodiscard]] bool held_on(std::size_t node) const noexcept {
    return !orphaned() && read_clock() < machine_.vote(node).counts_until;
  }
  [[nodiscard]] Key key() const noexcept { return machine_.key(); }
  [[nodiscard]] const Token& token() const noexcept { return machine_.token(); }

 protected:
  // `places` is how many votes there are: one a node at least.
  AsyncQuorumLock(AsyncQuorum& quorum, const LockKind& kind, QuorumVote* const* votes, std::size_t places, Key key,
                  const QuorumTiming& timing);
  // Posts the release of a hold that is left, and completes what waits with Status::cancelled. Where a node has no place for the
  // release, the lease ends it.
  ~AsyncQuorumLock() override;

  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return machine_.fence(); }

 private:
  friend class AsyncQuorumCore;

  void wake(Instant now) override;
  void start_acquire(Duration wait, Completion& completion) override;
  void start_renew(Duration timeout, Completion& completion) override;
  void start_release(Completion& completion) override;
  void cancel_doing() final;  // The destructor calls it,
  void rest() final;          // and this.

  [[nodiscard]] Status may_start() const noexcept;
  void begin(Completion& completion) noexcept;
  [[nodiscard]] TaskFacts facts();
  // As far as it goes.
  void proceed();
  void ask();
  void give_up();
  void plan();
  void finish();
  [[nodiscard]] bool room_is_there();
  // It came.
  void take_room();
  void look();
  [[nodiscard]] Instant renewal_wanted_at() const noexcept;
  void renew_if_due();
  void renew_now();

  void take_reply(QuorumVote& vote, const Reply& reply);
  void meet(std::size_t node);
  void pay();
  void settle();
  void settle(NodeSet nodes);
  void note(QuorumEvent event);
  void publish() noexcept { keeping_.publish(machine_.valid_until(), machine_.risky_from()); }

  void listen();
  void stop_listening(bool with_lock);
  void hear();
  [[nodiscard]] bool woken() const noexcept;
  [[nodiscard]] ListenSet confirmed() const noexcept;

  [[nodiscard]] bool kept() const noexcept { return keeping_.kept(machine_.timing().lock().automatic()); }

  std::shared_ptr<AsyncQuorumCore> core_;
  QuorumVote* const* votes_;
  QuorumMachine machine_;
  Subscriber::Waiter* waiters_[nodes_max] = {};  // While a release is listened for.
  QuorumTask task_;
  Instant renewal_until_;                       // How long a renewal waits for room.
  LinkedPlace<AsyncQuorumLock> sibling_{this};  // Among all locks of the quorum,
  LinkedPlace<AsyncQuorumLock> queued_{this};   // those that wait for voters or for room,
  LinkedPlace<AsyncQuorumLock> stirred_{this};  // and those that something has come for.
  NodeSet push_refused_ = 0;
  bool listens_ = false;
  bool cancelled_ = false;      // The operation is being ended.
  bool renewal_waits_ = false;  // For room.
};
static_assert(sizeof(AsyncQuorumLock) <= 960, "promised: a Redlock of an Asio loop, without its votes");

}  // namespace holdfast
