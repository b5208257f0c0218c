// SPDX-License-Identifier: MIT
//
// HoldRecord drives one LockMachine over a Client: the one place where a hold is known. A Mutex has one in itself; those of
// the reentrant kinds are in the owner's storage, one for each kind and name. Not used by itself: see BlockingLock, whose
// calls these are and where each is described.
#pragma once

#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/core/keep_options.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/node_task.hpp"
#include "holdfast/detail/keeper.hpp"
#include "holdfast/detail/keeping.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class Ear;

class HoldRecord {
 public:
  // What only some kinds need of this driver. The kind's table says when it is used, and this where it is: without such
  // pointers every program would link it all, and one with a plain Mutex would be larger than promised. The kind's table
  // cannot hold them, as it stands below the I/O line and knows no Client. nullptr: the kind does not need it.
  struct Ways {
    // The token of a kind of TokenSource but random.
    Status (*draw_ordinal)(HoldRecord& record, Token& token) noexcept = nullptr;
    // How a call of a kind that announces its releases runs, if it may wait.
    Status (*run_listening)(HoldRecord& record, NodeTask& task) noexcept = nullptr;
    // The timing of the handle through which an acquire comes. Of holds that have handles.
    void (*take_timing)(HoldRecord& record, const LockTiming& timing) noexcept = nullptr;
  };

  HoldRecord(ClientBase& client, const LockKind& kind, Key key, const LockTiming& timing, const Ways& ways) noexcept;
  // Posts the release of a hold that is left. Does not block.
  ~HoldRecord();
  HoldRecord(const HoldRecord&) = delete;
  HoldRecord& operator=(const HoldRecord&) = delete;

  // As LockMachine's.
  static void pair(HoldRecord& one, HoldRecord& other) noexcept { LockMachine::pair(one.machine_, other.machine_); }
  void set_argument(std::uint32_t argument) noexcept { machine_.set_argument(argument); }

  [[nodiscard]] Status configuration() const noexcept { return configuration_; }
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept;
  void tick() noexcept { keeping_.tick(); }

  // `timing` is that of the handle; nullptr: the record's own.
  [[nodiscard]] Status try_acquire(const LockTiming* timing) noexcept;
  [[nodiscard]] Status acquire(Duration wait, const LockTiming* timing) noexcept;
  [[nodiscard]] Status renew(Duration timeout) noexcept;
  [[nodiscard]] Status release() noexcept;
  Status post_release() noexcept;
  [[nodiscard]] Status forget_loss() noexcept;
  // Posts so many releases at once.
  void post_releases(std::uint32_t count) noexcept;
  [[nodiscard]] Status post_outcome() const noexcept { return post_outcome_; }

  [[nodiscard]] bool held() const noexcept;
  [[nodiscard]] Instant valid_until() const noexcept;
  [[nodiscard]] Duration remaining() const noexcept;
  [[nodiscard]] bool at_risk() const noexcept;

  [[nodiscard]] Status remaining_on_server(Duration& remaining) noexcept;

  [[nodiscard]] const LockMachine& machine() const noexcept { return machine_; }
  // Of its server: with Branches one of them, and another one when its slot has moved.
  [[nodiscard]] ClientBase& client() const noexcept { return *client_; }
  // The one that it was made with.
  [[nodiscard]] ClientBase& home() const noexcept { return client_->branched_ ? client_->brancher().home() : *client_; }

 private:
  friend class Branches;
  friend class ClientBase;
  friend class Lingering;
  friend class Watchdog;
  friend class PushEar;
  friend class QueueEar;
  friend Status run_listening(HoldRecord& record, NodeTask& task) noexcept;
  friend Status run_queueing(HoldRecord& record, NodeTask& task) noexcept;
  friend class OwnedLock;

  // forked: a hold of the parent's was forgotten.
  [[nodiscard]] Status begin() noexcept;
  // begin() and catch_up(), for what a forgotten hold does not touch.
  [[nodiscard]] Status begin_anew() noexcept;
  [[nodiscard]] bool orphaned() const noexcept;
  // Runs the task to its end, or until the slot is elsewhere: the record strays. `ear` hears of releases; nullptr: nobody does.
  [[nodiscard]] Status run(NodeTask& task, Ear* ear) noexcept;
  // Wherever the slot is.
  [[nodiscard]] Status run_through(NodeTask& task, bool listens = false) noexcept;
  [[nodiscard]] ListenSet confirmed() const noexcept;
  [[nodiscard]] TaskFacts facts(const NodeTask& task) const noexcept;
  void ask(NodeTask& task) noexcept;
  void plan(NodeTask& task) noexcept;
  // Sleeps until the task, or something that is kept, has something to do; not at all where that was not looked at before.
  void rest(const NodeTask& task, bool& looked) noexcept;
  void give_up(const NodeTask& task) noexcept;
  [[nodiscard]] Status run_acquire(Instant deadline, Instant end, const LockTiming* timing) noexcept;
  [[nodiscard]] Status end_acquire(Status status) noexcept;
  [[nodiscard]] Status start_release() noexcept;
  [[nodiscard]] Instant request_deadline() const noexcept { return client_->now_ + client_->config_.request_timeout; }
  // What pump() waits for.
  [[nodiscard]] bool answered() const noexcept { return calls() ? !client_->task_->waiting() : !machine_.waiting(); }
  // The client's call in progress is this record's.
  [[nodiscard]] bool calls() const noexcept { return client_->task_ != nullptr && client_->task_->requester() == this; }

  void handle_reply(const Reply& reply, Instant now) noexcept;
  // What time, and the keeper, have done to the hold since the last call.
  void catch_up() noexcept {
    if (keeper_ != nullptr) [[unlikely]]
      keeper_->sync(*this);
    machine_.handle_timeout(client_->now_);
    if (machine_.has_output()) [[unlikely]]
      settle();
  }
  // Whether the hold is kept by it: of the outermost acquisition, or from one more on.
  static void take_owned_timing(HoldRecord& record, const LockTiming& timing) noexcept;
  // The token of an owner's hold, which is about to ask for the lock.
  static Status draw_ordinal(HoldRecord& record, Token& token) noexcept;
  static Status draw_negative_ordinal(HoldRecord& record, Token& token) noexcept;
  // The same of one of two sides. What it asks for depends on the other's hold, of which a keeper may know better than its
  // machine does.
  static Status draw_ordinal_of_pair(HoldRecord& record, Token& token) noexcept;
  // After every input: hands over what the machine has to say.
  void settle() noexcept;
  void note_post_outcome(const Reply& reply) noexcept;
  void publish() noexcept;
  HOLDFAST_ONE_COPY void publish_unkept() noexcept {
    keeping_.publish(unconfirmed_ ? Instant() : machine_.valid_until(), machine_.risky_from());
  }

  // Keeping: by the watchdog or by the client's own tend().
  void choose_keeping() noexcept;
  // A record that tend() keeps stays in its list between holds.
  [[nodiscard]] bool keeping_as_before() const noexcept {
    return !watched_ && (!kept_ || (tended_ && client_->keeper_ == nullptr));
  }
  // After a grant, unless keeping_as_before(). Errors: as Keeper::enter(); the hold is let go of then.
  [[nodiscard]] Status start_keeping() noexcept;
  void leave_keeper() noexcept;
  [[nodiscard]] bool may_renew(Instant now) const noexcept { return keeping_.may_renew(now); }
  void join_tended() noexcept;
  void leave_tended() noexcept;
  // Calls what is to be called, once. Only where the client's own state may change: at the end of a call.
  void tell() noexcept {
    if (keeping_.has_news()) [[unlikely]]
      tell_now();
  }
  void tell_now() noexcept;

  // Small and often used first, as in the machine: their offsets, and those of its own small members, fit into one byte.
  ClientBase* client_;  // Other threads read it, too.
  const Ways* ways_;
  Keeper* keeper_ = nullptr;  // Where the present hold is registered.
  bool tended_ = false;
  bool kept_ = false;     // To be renewed by the keeper or by tend().
  bool watched_ = false;  // There is more to a hold than its renewal: somebody to tell, or an end to it.
  bool automatic_lease_ = false;
  bool to_be_kept_ = false;       // From the next grant on, for the rest of the hold.
  bool unconfirmed_ : 1 = false;  // What the machine holds does not count yet: replicas are asked.
  bool strays_ : 1 = false;       // The server of its call has said that its slot is at another one.
  Status configuration_ = Status::ok;
  Status post_outcome_ = Status::ok;
  std::uint32_t posted_generation_ = 0;  // Whose post_outcome_ that is.
  std::uint32_t incarnation_ = 0;
  LockMachine machine_;
  // What other threads read. Written by the client's thread, or by the watchdog's under its lock.
  Keeping keeping_;
  void* place_ = nullptr;              // The keeper's own.
  HoldRecord* tended_next_ = nullptr;  // The client's list of holds that tend() keeps.
  HoldRecord* tended_previous_ = nullptr;
};

}  // namespace holdfast
