// SPDX-License-Identifier: MIT
//
// AsyncRecord drives one LockMachine over an AsyncClient, on its loop. An AsyncMutex has one in itself; those of the reentrant
// kinds are in the owner's storage, one for each kind and name. Not used by itself: see AsyncLock.
//
// Thread rule and heap: as AsyncClient's. Its whole memory is its own, and a place of AsyncLimits::kept.
#pragma once

#include <cstdint>
#include <memory>

#include "holdfast/asio/async_client.hpp"
#include "holdfast/asio/async_hold.hpp"
#include "holdfast/core/linger.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/node_task.hpp"
#include "holdfast/core/renewal_schedule.hpp"
#include "holdfast/core/subscriber.hpp"
#include "holdfast/detail/linked_place.hpp"

namespace holdfast {

class AsyncBranch;
class AsyncNode;

class AsyncRecord final : public AsyncHold {
 public:
  AsyncRecord(const std::shared_ptr<AsyncClientCore>& core, const LockKind& kind, Key key, const LockTiming& timing);
  // Posts the release of a hold that is left, and completes what waits with Status::cancelled.
  ~AsyncRecord() override;

  // As LockMachine's.
  static void pair(AsyncRecord& one, AsyncRecord& other) noexcept { LockMachine::pair(one.machine_, other.machine_); }
  void set_argument(std::uint32_t argument) noexcept { machine_.set_argument(argument); }
  [[nodiscard]] const LockMachine& machine() const noexcept { return machine_; }
  [[nodiscard]] AsyncLoop& loop() const noexcept override;
  [[nodiscard]] std::uint32_t count() const noexcept override { return idle() ? 0 : machine_.count(); }
  [[nodiscard]] Instant renewal_due() const noexcept override { return machine_.renewal_due(); }
  void locate(LockPlace& found) const noexcept override;
  // Of a kind that lingers: its holds may stay for so long, as was said first.
  void linger(Duration most);

  void start_acquire(Duration wait, Completion& completion, AsyncHandle& handle) override;
  void start_renew(Duration timeout, Completion& completion, AsyncHandle& handle) override;
  void start_release(Completion& completion, AsyncHandle& handle) override;
  // What a question is refused with; ok: it may be asked.
  [[nodiscard]] Status may_ask();
  // Asks this, or, with nullptr, for the lock's remaining time; `refused` is what it was begun with.
  void start_query(Question* question, Duration* remaining, Status refused, Completion& completion,
                   AsyncHandle& handle);
  using AsyncHold::post_release;
  Status post_release() override;
  [[nodiscard]] Status forget_loss() override;
  // A handle with this share has gone, and others stay.
  void leave(const HoldShare& share);
  using AsyncHold::leave;

 private:
  friend class AsyncBranch;
  friend class AsyncClientCore;
  friend class AsyncCluster;

  [[nodiscard]] AsyncBranch& branch() const noexcept;
  [[nodiscard]] AsyncNode& node() const noexcept;
  // Its name is at another server of the cluster: what it asks for from now on is asked there. Not while an answer is to come: that
  // says the same.
  void go_to(AsyncBranch& to);
  void go_home(AsyncBranch& home);
  // Another connection is to the same server: what it asks for from now on goes over that. Not while anything of it is on its way
  // over this one, which could be overtaken.
  void join(AsyncBranch& to);
  void change_to(AsyncBranch& to, bool same_server = false);
  // Something of it is on its way over its branch, or was given up and may be.
  [[nodiscard]] bool in_transit() const noexcept;
  // Nothing is held, asked for or waited for.
  [[nodiscard]] bool rests() const noexcept;

  void wake(Instant now) override;
  void cancel_doing() override;
  void rest() override;

  [[nodiscard]] Status may_start() const noexcept;
  void begin(Completion& completion, AsyncHandle& handle) noexcept;
  [[nodiscard]] TaskFacts facts();
  // As far as it goes.
  void proceed();
  void ask();
  [[nodiscard]] bool asks_on(Status& status);
  void finish(Status status);
  void handle_reply(const Reply& reply, AsyncBranch& from);
  void handle_moved(const Reply& reply, AsyncBranch& from);
  void take_reply(const Reply& reply, AsyncBranch* to);
  void settle();
  void post_due();
  void publish() noexcept {
    keeping_.publish(task_.unconfirmed() ? Instant() : machine_.valid_until(), machine_.risky_from());
  }
  void lose();
  void doubt();
  Status post_release_now();
  void let_go_of_all();
  Status let_go();
  // Of a hold that may stay where it is used.
  [[nodiscard]] bool idle() const noexcept { return linger_ != nullptr && linger_->idle(); }
  void begin_lingering();
  [[nodiscard]] bool let_lie(Instant now);
  [[nodiscard]] bool pick_up(const LockTiming& timing, Instant now);
  void take_recall();
  void let_go_if_due();
  void end_idle();
  // The machine keeps what there is no place for: no acquire is asked for before.
  [[nodiscard]] bool owes() const noexcept { return machine_.wants_compensation(); }
  bool pay();

  void plan();
  void listen(Key key);
  // Where its release is announced, or its grant.
  [[nodiscard]] Key awaited() const noexcept {
    return machine_.kind().queues ? Key(machine_.token().client()) : machine_.awaited();
  }
  void enter_queue();
  void stop_listening(bool with_lock);
  void hear();
  [[nodiscard]] bool woken() const noexcept;
  [[nodiscard]] ListenSet confirmed() const noexcept;

  [[nodiscard]] Status start_keeping();
  void stop_keeping() noexcept;
  [[nodiscard]] bool may_renew(Instant now) const noexcept { return keeping_.may_renew(now); }
  void renewed(const KeptHold& hold) noexcept;
  // Whether the hold is kept by it: of the outermost acquisition, or from one more on.
  void take_timing(const LockTiming& timing) noexcept;

  // What every operation touches stands together, and the machine begins with what it touches: of ten thousand locks few
  // are in the processor's nearest cache.
  std::uint8_t awaited_place_ = 0;
  bool automatic_lease_ = false;
  bool to_be_kept_ = false;  // From the next grant on, for the rest of the hold.
  bool cancelled_ = false;   // The operation is being ended.
  bool push_refused_ = false;
  std::uint8_t branch_ = 0;  // Of the server that has its name, or is believed to.
  std::shared_ptr<AsyncClientCore> core_;
  RenewalSchedule::Place* place_ = nullptr;  // While the hold is kept.
  Subscriber::Waiter* waiter_ = nullptr;     // While a release is listened for.
  LinkedPlace<AsyncRecord> queued_{this};    // Among those that wait for the connection or for room on it,
  LockMachine machine_;
  LinkedPlace<AsyncRecord> sibling_{this};  // and all holds of the client.
  NodeTask task_;
  Duration* remaining_out_ = nullptr;  // Of a question.
  std::unique_ptr<Linger> linger_;     // Of one that may stay where it is used: few do.
};
static_assert(sizeof(AsyncRecord) <= 960, "promised: a hold of an Asio client");

}  // namespace holdfast
