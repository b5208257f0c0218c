// SPDX-License-Identifier: MIT
//
// BlockingLock is what all kinds of lock have in common. Use the kinds: Mutex, ReentrantLock, FencedLock.
#pragma once

#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/hold_record.hpp"
#include "holdfast/lock_machine.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class BlockingLock {
 public:
  BlockingLock(const BlockingLock&) = delete;
  BlockingLock& operator=(const BlockingLock&) = delete;

  // ok, or invalid_argument when key, lease or drift are outside their limits: then every call below says so, too.
  [[nodiscard]] Status configuration() const noexcept { return own_.configuration(); }
  // How holds from the next one on are kept alive, and whom to tell. Errors: invalid_argument; already_held.
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept { return record_->keep(options); }
  // The application is alive: see KeepOptions::liveness. A grant counts as a tick. Any thread.
  void tick() noexcept { record_->tick(); }

  // One attempt. Blocks for the request timeout at most, longer by the connect timeout when it must connect first;
  // after a failed connect, calls fail at once until the reconnect delay has passed.
  // Errors: lock_busy; already_held; timed_out, transport_closed and other unknown outcomes, which are compensated;
  // connection failures; the server's refusals; too_many_requests when the watchdog has no place for the hold, which is
  // let go of. A reentrant lock that is held is acquired once more, or lock_lost: until every acquisition of a lost hold
  // has been released. Cost when connected: one send, one receive.
  [[nodiscard]] Status try_acquire() noexcept {
    if (timing_ != nullptr) record_->take_timing(*timing_);
    return count_in(record_->try_acquire());
  }
  // Attempts until the lock is granted or `wait` is over (wait_forever: no end). The last attempt is made when it is, and all
  // is over a request timeout after that, connecting included. Kinds whose release is announced are woken by it (Client, "Push"), and try again when
  // the hold in the way has run out, or after max_poll. The others poll with growing, jittered delays of retry_delay_min to
  // retry_delay_max. Lives through lost connections and passing refusals (wait_plan.hpp lists them), and tends the client's
  // other holds meanwhile. Errors: as try_acquire(), the last attempt's; cancelled, and what was granted meanwhile is let
  // go of.
  [[nodiscard]] Status acquire(Duration wait) noexcept {
    if (timing_ != nullptr) record_->take_timing(*timing_);
    return count_in(record_->acquire(wait));
  }
  // Extends the lease, counted from now. A failure leaves the hold as it is until valid_until(): try again.
  // Errors: not_held, lock_lost (final); timed_out and the like: not extended as far as we know.
  [[nodiscard]] Status renew() noexcept { return renew(client().config().request_timeout); }
  // The same with a bound on how long it may block. Errors: as above.
  [[nodiscard]] Status renew(Duration timeout) noexcept { return record_->renew(timeout); }
  // Lets go and waits for the server's word. Whatever the outcome, this acquisition is over from the call on; where the
  // outcome is unknown, a compensation follows by itself. A lock that was acquired several times is held until it was
  // released as often.
  // Errors: not_held, lock_lost (there was nothing of ours to release), timed_out and the like.
  [[nodiscard]] Status release() noexcept {
    count_out();
    return record_->release();
  }
  // Lets go without waiting: never blocks. If the socket takes nothing now, the release goes out with the next call.
  // Its outcome comes with the next call of the client; see post_outcome(). What was promised with ok is repeated until the
  // server has answered it, over as many connections as that takes, also when this object is gone.
  // Errors: not_held, lock_lost; too_many_requests: compensations_max releases, or eight with the longest names, have not been
  // answered yet. The lock is not held any more, and the server is told by this lock's next call, or by its destructor.
  Status post_release() noexcept {
    count_out();
    return record_->post_release();
  }
  // The outcome of the last post_release(): outcome_unknown as long as it has not come.
  [[nodiscard]] Status post_outcome() const noexcept { return record_->post_outcome(); }

  // Any thread; no I/O; two loads and a look at the clock. True implies that no other client was told it holds the
  // lock (README, "What is promised").
  [[nodiscard]] bool held() const noexcept { return record_->held(); }
  [[nodiscard]] bool held(Instant now) const noexcept { return now < valid_until(); }
  // The hold's end by our own reckoning: the send of the last confirmed request, plus the lease, less drift. The epoch
  // when nothing is held. Any thread.
  [[nodiscard]] Instant valid_until() const noexcept { return record_->valid_until(); }
  // valid_until() less now, never negative. Any thread.
  [[nodiscard]] Duration remaining() const noexcept { return record_->remaining(); }
  // Held, but a renewal failed or none was confirmed for two thirds of the lease. Any thread.
  [[nodiscard]] bool at_risk() const noexcept { return record_->at_risk(); }
  // When to call renew(): a third of the lease after the last confirmation, soon after a failure. Instant::max() when
  // nothing is held.
  [[nodiscard]] Instant renewal_due() const noexcept { return record_->machine().renewal_due(); }
  // How often it was acquired and not released; 0 when it is not held.
  [[nodiscard]] std::uint32_t hold_count() const noexcept { return held() ? record_->machine().count() : 0; }

  // Asks the server. True if anybody holds the lock. Errors: as try_acquire(); `locked` is untouched then.
  [[nodiscard]] Status is_locked(bool& locked) noexcept {
    Duration remaining = Duration::zero();
    const Status status = remaining_on_server(remaining);
    if (status == Status::ok) locked = remaining != Duration::zero();
    return status;
  }
  // Asks the server for the lock's remaining time, whoever holds it: zero when it is free, remaining_unlimited for a
  // key without a TTL. Errors: as above.
  [[nodiscard]] Status remaining_on_server(Duration& remaining) noexcept {
    return record_->remaining_on_server(remaining);
  }

  // Of a MultiLock its packed names, which stand for no key of the server's.
  [[nodiscard]] Key key() const noexcept { return own_.machine().key(); }
  // The proof of the present or last hold.
  [[nodiscard]] const Token& token() const noexcept { return record_->machine().token(); }
  [[nodiscard]] Client& client() const noexcept { return own_.client(); }

 protected:
  BlockingLock(Client& client, const LockKind& kind, Key key, const LockTiming& timing,
               const HoldRecord::Ways& ways = no_ways) noexcept
      : own_(client, kind, key, timing, ways) {}
  // Posts the release of a hold that is left. Does not block. A release that finds no place, where post_release() would say
  // too_many_requests, is counted by Client::releases_dropped(), and its lease ends the lock.
  ~BlockingLock() = default;

  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return record_->machine().fence(); }

 private:
  friend class LockSet;
  friend class OwnedLock;

  static constexpr HoldRecord::Ways no_ways{};

  [[nodiscard]] Status count_in(Status status) noexcept {
    if (status == Status::ok) ++acquired_;
    return status;
  }
  // Of a record that is shared, another object may have acquired what this one releases.
  void count_out() noexcept {
    BlockingLock* taken = this;
    if (acquired_ == 0 && siblings_ != nullptr)
      for (taken = *siblings_; taken != nullptr; taken = taken->next_sibling_)
        if (taken->record_ == record_ && taken->acquired_ != 0) break;
    if (taken != nullptr && taken->acquired_ != 0) --taken->acquired_;
  }

  HoldRecord* record_ = &own_;
  BlockingLock* const* siblings_ = nullptr;  // The owner's objects, of the kinds that have one.
  BlockingLock* next_sibling_ = nullptr;
  const LockTiming* timing_ = nullptr;  // Of an object that may share its record.
  std::uint32_t acquired_ = 0;          // Through this object, and not released.
  HoldRecord own_;
};
static_assert(sizeof(BlockingLock) <= 2048, "promised: a lock");

}  // namespace holdfast
