// SPDX-License-Identifier: MIT
//
// AsyncQuorumRecord drives one QuorumMachine over an AsyncQuorum, on its loop. Not used by itself: see AsyncQuorumLock.
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

class AsyncQuorumRecord : public AsyncHold {
 public:
  // `places` is how many votes there are: one a node at least.
  AsyncQuorumRecord(const std::shared_ptr<AsyncQuorumCore>& core, const LockKind& kind, QuorumVote* const* votes,
                    std::size_t places, Key key, const QuorumTiming& timing);
  // Posts the release of a hold that is left, and completes what waits with Status::cancelled. Where a node has no place for the
  // release, the lease ends it.
  ~AsyncQuorumRecord() override;

  [[nodiscard]] const QuorumMachine& machine() const noexcept { return machine_; }
  [[nodiscard]] AsyncLoop& loop() const noexcept override;
  [[nodiscard]] std::uint32_t count() const noexcept override { return machine_.count(); }
  [[nodiscard]] Instant renewal_due() const noexcept override { return machine_.renewal_due(); }
  void locate(LockPlace& found) const noexcept override;

  void start_acquire(Duration wait, Completion& completion, AsyncHandle& handle) override;
  void start_renew(Duration timeout, Completion& completion, AsyncHandle& handle) override;
  void start_release(Completion& completion, AsyncHandle& handle) override;
  using AsyncHold::post_release;
  Status post_release() override;
  [[nodiscard]] Status forget_loss() override;
  // A handle with this share has gone, and others stay.
  void leave(const HoldShare& share);
  using AsyncHold::leave;

 private:
  friend class AsyncQuorumCore;

  void wake(Instant now) override;
  Status post_release_now(Instant now, std::uint32_t acquisitions);
  // What handles that are gone have left to release.
  void post_due();
  void cancel_doing() final;  // The destructor calls it,
  void rest() final;          // and this.

  [[nodiscard]] Status may_start() const noexcept;
  void begin(Completion& completion, AsyncHandle& handle) noexcept;
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
  Instant renewal_until_;                         // How long a renewal waits for room.
  LinkedPlace<AsyncQuorumRecord> sibling_{this};  // Among all holds of the quorum,
  LinkedPlace<AsyncQuorumRecord> queued_{this};   // those that wait for voters or for room,
  LinkedPlace<AsyncQuorumRecord> stirred_{this};  // and those that something has come for.
  NodeSet push_refused_ = 0;
  bool listens_ = false;
  bool cancelled_ = false;      // The operation is being ended.
  bool renewal_waits_ = false;  // For room.
};
static_assert(sizeof(AsyncQuorumRecord) <= 896, "promised: a Redlock's hold of an Asio loop, without its votes");

}  // namespace holdfast
