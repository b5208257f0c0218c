// SPDX-License-Identifier: MIT
//
// QuorumLock is what the Redlock kinds have in common. Use the kinds: RedlockMutex, RedlockReentrantLock and
// RedlockFencedLock (redlock.hpp).
#pragma once

#include <cstdint>

#include "holdfast/core/keep_options.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/core/quorum_task.hpp"
#include "holdfast/detail/keeping.hpp"
#include "holdfast/quorum.hpp"

namespace holdfast {

class QuorumEar;

class QuorumLock {
 public:
  // As HoldRecord::Ways.
  struct Ways {
    Status (*draw_ordinal)(RandomSource& random, Token& token) noexcept = nullptr;
    Status (*run_listening)(QuorumLock& lock) noexcept = nullptr;
  };

  QuorumLock(const QuorumLock&) = delete;
  QuorumLock& operator=(const QuorumLock&) = delete;

  // ok; invalid_argument when key or timing are outside their limits, or the lease is above the quorum's max_lease;
  // not_connected when connect() was not called before: every call below says so, too.
  [[nodiscard]] Status configuration() const noexcept { return configuration_; }
  // As BlockingLock::keep(), by a QuorumWatchdog, QuorumClient::tend() and every call that waits. Errors: invalid_argument, already_held.
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept;
  // Any thread.
  void tick() noexcept { keeping_.tick(); }

  // One attempt on all nodes at once. Returns at the quorum, or as soon as there can be none; blocks for the node timeout at
  // most, with a fence for two of them, longer by the connect timeout while a majority is not connected.
  // Errors: lock_busy; no_quorum (QuorumClient::error_text() names the nodes); same_machine; already_held; timed_out (too
  // little of the lease was left); invalid_argument (the lease is above the max_lease that the quorum has now); cancelled;
  // too_many_requests where a callback of a call of this lock calls it. Whatever was granted by single nodes is released then.
  // A reentrant lock that is held is acquired once more, which costs a renewal; or lock_lost, until every acquisition of a lost
  // hold was released, or forget_loss() was called.
  [[nodiscard]] Status try_acquire() noexcept;
  // Attempts until it is granted or `wait` is over, with a random delay between two of them; the last when it is over. Returns
  // a request timeout later at most, whatever the nodes do.
  // Announced kinds wait by push on all nodes, and try again after max_poll or a second at the latest.
  [[nodiscard]] Status acquire(Duration wait) noexcept;
  // Extends the lease on every node, and takes the lock anew on nodes that lost it while a majority holds it.
  // Errors: not_held, lock_lost (final); no_quorum: not extended, and the hold goes on until valid_until(); so it does after
  // invalid_argument (the lease is above the max_lease that the quorum has now).
  [[nodiscard]] Status renew() noexcept { return renew(quorum_->node(0).config().request_timeout); }
  // The same with a bound on how long it may block. A renewal that was cancelled and is still on its way is waited for.
  [[nodiscard]] Status renew(Duration timeout) noexcept;
  // Lets go on every node, and waits until a majority has nothing of the hold any more. Errors: not_held, lock_lost (no
  // majority had it), timed_out and the like: compensations follow by themselves.
  [[nodiscard]] Status release() noexcept;
  // Lets go without waiting. Errors: not_held, lock_lost; too_many_requests: it is over, and some node had no place for its
  // release. That follows when there is one, by tend() or any other call, while this object lives; or the lease ends it there.
  Status post_release() noexcept;
  // As BlockingLock::forget_loss().
  [[nodiscard]] Status forget_loss() noexcept;

  // Any thread; no I/O.
  [[nodiscard]] bool held() const noexcept;
  [[nodiscard]] Instant valid_until() const noexcept;
  [[nodiscard]] Duration remaining() const noexcept;
  [[nodiscard]] bool at_risk() const noexcept;

  [[nodiscard]] Instant renewal_due() const noexcept {
    const QuorumClient::Turn turn(*quorum_);
    return machine_.renewal_due();
  }
  [[nodiscard]] std::uint32_t hold_count() const noexcept {
    const QuorumClient::Turn turn(*quorum_);
    return held() ? machine_.count() : 0;
  }
  // What became of the last request to this node.
  [[nodiscard]] Status node_status(std::size_t node) const noexcept {
    const QuorumClient::Turn turn(*quorum_);
    return machine_.vote(node).status;
  }
  // This node's grant counts.
  [[nodiscard]] bool held_on(std::size_t node) const noexcept {
    const QuorumClient::Turn turn(*quorum_);
    return !orphaned() && read_clock() < machine_.vote(node).counts_until;
  }
  [[nodiscard]] Key key() const noexcept { return machine_.key(); }
  [[nodiscard]] const LockKind& kind() const noexcept { return machine_.kind(); }
  [[nodiscard]] const Token& token() const noexcept { return machine_.token(); }
  [[nodiscard]] QuorumClient& quorum() const noexcept { return *quorum_; }

 protected:
  // `places` is how many votes there are: one a node at least.
  QuorumLock(QuorumClient& quorum, const LockKind& kind, QuorumVote* const* votes, std::size_t places, Key key,
             const QuorumTiming& timing, const Ways& ways) noexcept;
  // Posts the release of a hold that is left. Does not block: where a node has no place for it, the lease ends it.
  ~QuorumLock();

  // The owner field of a hash kind: see Client.
  static Status draw_ordinal(RandomSource& random, Token& token) noexcept;
  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return machine_.fence(); }

 private:
  friend class QuorumClient;
  friend class QuorumPushEar;
  friend class QuorumWatchdog;
  friend Status run_listening(QuorumLock& lock) noexcept;

  [[nodiscard]] Status begin() noexcept;
  [[nodiscard]] bool orphaned() const noexcept;
  void catch_up() noexcept;
  void settle() noexcept;
  void take_reply(std::size_t node, const Reply& reply) noexcept;
  void note(QuorumEvent event) noexcept;
  void publish() noexcept;
  // Runs the task to its end. `ear` hears of releases; nullptr: nobody does.
  [[nodiscard]] Status run(QuorumEar* ear) noexcept;
  [[nodiscard]] TaskFacts facts(const QuorumEar* ear) noexcept;
  void ask() noexcept;
  [[nodiscard]] Status take_grant() noexcept;
  void plan(QuorumEar* ear) noexcept;
  // Sleeps until the task, or something that is kept, has something to do; not at all where that was not looked at before.
  void rest(QuorumEar* ear, bool& looked) noexcept;
  void give_up() noexcept;
  [[nodiscard]] Status run_acquire(Instant deadline, Instant end) noexcept;
  [[nodiscard]] Status end_acquire(Status status) noexcept;
  [[nodiscard]] Status start_renewal(Instant deadline) noexcept;
  [[nodiscard]] bool may_renew(Instant now) const noexcept;
  [[nodiscard]] bool kept() const noexcept { return keeping_.kept(machine_.timing().lock().automatic()); }
  void tell() noexcept;

  QuorumClient* quorum_;
  const Ways* ways_;
  QuorumVote* const* votes_;
  QuorumMachine machine_;
  QuorumTask task_;
  Keeping keeping_;
  QuorumLock* next_ = nullptr;  // The quorum's list of its locks.
  std::uint32_t incarnation_ = 0;
  Status configuration_ = Status::ok;
};

}  // namespace holdfast
