// SPDX-License-Identifier: MIT
//
// HoldRecord drives one LockMachine over a Client: the one place where a hold of an owner is known. Every lock object has
// one; those of a reentrant lock that share owner and name use the first one's. Not used by itself: see BlockingLock,
// whose calls these are and where each is described.
#pragma once

#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/keep_options.hpp"
#include "holdfast/keeper.hpp"
#include "holdfast/lock_machine.hpp"
#include "holdfast/shared_tick.hpp"
#include "holdfast/shared_value.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

inline constexpr Duration wait_forever = Duration::max();
// What remaining_on_server() gives for a key without a TTL: somebody else's, and busy for ever.
inline constexpr Duration remaining_unlimited = Duration::max();

class HoldRecord {
 public:
  // What only some kinds need of this driver. The kind's table says when it is used, and this where it is: without such
  // pointers every program would link it all, and one with a plain Mutex would be larger than promised. The kind's table
  // cannot hold them, as it stands below the I/O line and knows no Client. nullptr: the kind does not need it.
  struct Ways {
    // The token of a kind of TokenSource::client_ordinal.
    Status (*draw_ordinal)(RandomSource& random, Token& token) noexcept = nullptr;
    // How acquire() of a kind that announces its releases goes on after an attempt that found the lock busy.
    Status (*wait_by_push)(HoldRecord& record, Instant deadline, Status outcome) noexcept = nullptr;
  };

  HoldRecord(Client& client, const LockKind& kind, Key key, const LockTiming& timing, const Ways& ways) noexcept;
  // Posts the release of a hold that is left. Does not block.
  ~HoldRecord();
  HoldRecord(const HoldRecord&) = delete;
  HoldRecord& operator=(const HoldRecord&) = delete;

  [[nodiscard]] Status configuration() const noexcept { return configuration_; }
  // That of the next outermost acquisition, where nothing is held.
  void take_timing(const LockTiming& timing) noexcept;
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept;
  void tick() noexcept { ticked_at_.set(read_clock()); }

  [[nodiscard]] Status try_acquire() noexcept;
  [[nodiscard]] Status acquire(Duration wait) noexcept;
  [[nodiscard]] Status renew(Duration timeout) noexcept;
  [[nodiscard]] Status release() noexcept;
  Status post_release() noexcept;
  // Posts so many releases at once.
  void post_releases(std::uint32_t count) noexcept;
  [[nodiscard]] Status post_outcome() const noexcept { return post_outcome_; }

  [[nodiscard]] bool held() const noexcept;
  [[nodiscard]] Instant valid_until() const noexcept;
  [[nodiscard]] Duration remaining() const noexcept;
  [[nodiscard]] bool at_risk() const noexcept;

  [[nodiscard]] Status remaining_on_server(Duration& remaining) noexcept;

  // The hold of `other`, which is about to go, becomes ours.
  void take_over(HoldRecord& other) noexcept;

  [[nodiscard]] const LockMachine& machine() const noexcept { return machine_; }
  [[nodiscard]] Client& client() const noexcept { return *client_; }

 private:
  friend class Client;
  friend class Watchdog;
  friend class PushWait;

  enum class Told : std::uint8_t { nothing, at_risk, lost };

  // forked: a hold of the parent's was forgotten.
  [[nodiscard]] Status begin() noexcept;
  // begin() and catch_up(), for what a forgotten hold does not touch.
  [[nodiscard]] Status begin_anew() noexcept;
  [[nodiscard]] bool orphaned() const noexcept;
  [[nodiscard]] Status renew_within(Duration timeout) noexcept;
  [[nodiscard]] Status start_release(bool posted) noexcept;
  [[nodiscard]] Instant request_deadline() const noexcept { return client_->now_ + client_->config_.request_timeout; }
  // One attempt of a wait that ends at the deadline, and it by a request timeout after that.
  [[nodiscard]] Status attempt(Instant deadline) noexcept;
  // Connects until `connect_by`; all is over at `bound`.
  [[nodiscard]] Status attempt_inline(Instant connect_by, Instant bound) noexcept;
  [[nodiscard]] Status end_acquire(Status status) noexcept;
  [[nodiscard]] Status release_now() noexcept;
  [[nodiscard]] Status finish(Status started) noexcept;
  [[nodiscard]] Status await_compensation(Status status) noexcept;
  [[nodiscard]] Status acquire_within(Instant deadline) noexcept;
  [[nodiscard]] Status poll_until(Instant deadline, Status outcome) noexcept;
  // What pump() waits for.
  [[nodiscard]] bool answered() const noexcept {
    return !machine_.waiting() && !(awaits_compensation_ && machine_.state() == LockState::unknown);
  }
  [[nodiscard]] bool may_ask_again(Status status, Instant deadline) noexcept;
  // True if that was the outcome of what was asked, and all.
  bool handle_reply(const Reply& reply, Instant now) noexcept;
  // What time, and the keeper, have done to the hold since the last call.
  void catch_up() noexcept {
    if (keeper_ != nullptr) [[unlikely]]
      keeper_->sync(*this);
    machine_.handle_timeout(client_->now_);
    if (machine_.has_output()) [[unlikely]]
      settle();
  }
  // After every input: hands over what the machine has to say.
  void settle() noexcept;
  void submit() noexcept;
  void note_post_outcome(const Reply& reply) noexcept;
  void publish() noexcept;
  void publish_unkept() noexcept {
    risky_from_.store(machine_.risky_from().nanoseconds());
    valid_until_.store(machine_.valid_until().nanoseconds());
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
  [[nodiscard]] bool may_renew(Instant now) const noexcept;
  void join_tended() noexcept;
  void leave_tended() noexcept;
  // Calls what is to be called, once. Only where the client's own state may change: at the end of a call.
  void tell() noexcept {
    if (untold_ != Told::nothing) [[unlikely]]
      tell_now();
  }
  void tell_now() noexcept;

  Client* client_;
  const Ways* ways_;
  LockMachine machine_;
  // What other threads read. Written by the client's thread, or by the watchdog's under its lock.
  SharedValue<std::int64_t> valid_until_;
  SharedValue<std::int64_t> risky_from_;
  SharedTick ticked_at_;
  KeepOptions keep_;
  Instant granted_at_;
  Keeper* keeper_ = nullptr;           // Where the present hold is registered.
  void* place_ = nullptr;              // The keeper's own.
  HoldRecord* tended_next_ = nullptr;  // The client's list of holds that tend() keeps.
  HoldRecord* tended_previous_ = nullptr;
  bool tended_ = false;
  bool kept_ = false;     // To be renewed by the keeper or by tend().
  bool watched_ = false;  // There is more to a hold than its renewal: somebody to tell, or an end to it.
  bool automatic_lease_ = false;
  SharedValue<bool> risk_told_;  // Each is called once a hold, by whoever comes first.
  SharedValue<bool> loss_told_;
  Told untold_ = Told::nothing;
  Status configuration_ = Status::ok;
  Status post_outcome_ = Status::ok;
  bool awaits_compensation_ = false;
  bool compensated_ = false;             // The last compensation found the key and deleted it.
  std::uint32_t posted_generation_ = 0;  // Whose post_outcome_ that is.
  std::uint32_t incarnation_ = 0;
};

}  // namespace holdfast
