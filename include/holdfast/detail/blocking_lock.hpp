// SPDX-License-Identifier: MIT
//
// BlockingLock is what all kinds of lock on one server have in common. Use the kinds: Mutex and Semaphore, which have their
// hold in themselves, and ReentrantLock, FencedLock, MultiLock and the sides of a ReadWriteLock, which are handles of a
// hold of their owner's.
#pragma once

#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/core/hold_share.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/detail/hold_owner.hpp"
#include "holdfast/detail/hold_record.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class BlockingLock {
 public:
  BlockingLock(const BlockingLock&) = delete;
  BlockingLock& operator=(const BlockingLock&) = delete;

  // ok; invalid_argument when key, lease or drift are outside their limits; too_many_requests when the owner has no place for
  // the hold of one name more. Then every call below says so, too.
  [[nodiscard]] Status configuration() const noexcept {
    return refused() ? handle_->refusal : record_->configuration();
  }
  // How holds from the next one on are kept alive, and whom to tell. Errors: invalid_argument; already_held.
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept {
    return refused() ? handle_->refusal : record_->keep(options);
  }
  // The application is alive: see KeepOptions::liveness. A grant counts as a tick. Any thread.
  void tick() noexcept {
    if (!refused()) record_->tick();
  }

  // One attempt. Blocks for the request timeout at most, longer by the connect timeout when it must connect first;
  // after a failed connect, calls fail at once until the reconnect delay has passed.
  // Errors: lock_busy; already_held; timed_out, transport_closed and other unknown outcomes, which are compensated;
  // connection failures; the server's refusals; too_many_requests when the watchdog has no place for the hold, which is
  // let go of. A reentrant lock that is held is acquired once more. Where this object's lease is longer than that of the hold,
  // the hold has it from then on, until the outermost release; a shorter one changes nothing. Where this object's lease is the
  // automatic one, the hold is kept alive from then on. Or lock_lost: until every acquisition of a lost hold has been released,
  // or forget_loss() was called. Cost when connected: one send, one receive.
  [[nodiscard]] Status try_acquire() noexcept {
    if (handle_ == nullptr) return record_->try_acquire(nullptr);
    if (handle_->standing != Standing::plain) [[unlikely]]
      return acquire_otherwise(Duration::zero(), true);
    return count_in(record_->try_acquire(&handle_->timing));
  }
  // Attempts until the lock is granted or `wait` is over (wait_forever: no end). The last attempt is made when it is, and all
  // is over a request timeout after that, connecting included. Kinds whose release is announced are woken by it (Client,
  // "Push"), and try again when the hold in the way has run out, or after max_poll. The others poll with growing, jittered
  // delays of retry_delay_min to retry_delay_max. Lives through lost connections and passing refusals (wait_plan.hpp lists
  // them), and tends the client's other holds meanwhile. Errors: as try_acquire(), the last attempt's; cancelled, and what was
  // granted meanwhile is let go of.
  [[nodiscard]] Status acquire(Duration wait) noexcept {
    if (handle_ == nullptr) return record_->acquire(wait, nullptr);
    if (handle_->standing != Standing::plain) [[unlikely]]
      return acquire_otherwise(wait, false);
    return count_in(record_->acquire(wait, &handle_->timing));
  }
  // Extends the lease, counted from now. A failure leaves the hold as it is until valid_until(): try again.
  // Errors: not_held, lock_lost (final); timed_out and the like: not extended as far as we know.
  [[nodiscard]] Status renew() noexcept { return renew(request_timeout()); }
  // The same with a bound on how long it may block. Errors: as above.
  [[nodiscard]] Status renew(Duration timeout) noexcept {
    if (refused()) return handle_->refusal;
    return idle() ? Status::not_held : record_->renew(timeout);
  }
  // Lets go and waits for the server's word. Whatever the outcome, this acquisition is over from the call on; where the
  // outcome is unknown, a compensation follows by itself. A lock that was acquired several times is held until it was
  // released as often.
  // Errors: not_held, lock_lost (there was nothing of ours to release), timed_out and the like.
  [[nodiscard]] Status release() noexcept {
    if (handle_ == nullptr) return record_->release();
    if (handle_->standing != Standing::plain) [[unlikely]]
      return release_otherwise(false);
    const std::uint32_t count = record_->machine().count();
    return count_out(count, record_->release());
  }
  // Lets go without waiting: never blocks. If the socket takes nothing now, the release goes out with the next call.
  // Its outcome comes with the next call of the client; see post_outcome(). What was promised with ok is repeated until the
  // server has answered it, over as many connections as that takes, also when this object is gone.
  // Errors: not_held, lock_lost; too_many_requests: compensations_max releases, or eight with the longest names, have not been
  // answered yet. The lock is not held any more, and the server is told by this lock's next call, or by its destructor.
  Status post_release() noexcept {
    if (handle_ == nullptr) return record_->post_release();
    if (handle_->standing != Standing::plain) [[unlikely]]
      return release_otherwise(true);
    const std::uint32_t count = record_->machine().count();
    return count_out(count, record_->post_release());
  }
  // You know that the hold was lost, and have stopped what needed it: forgets every acquisition of it, so that the next acquire
  // begins a new hold. Without it a lost reentrant lock answers lock_lost until it was released as often as it was acquired,
  // through whichever object. Nothing is sent; on_lost is not called after it. on_lost may call it, where it runs at the end
  // of a call of the client. Errors: already_held (release it); not_held, where nothing was lost.
  [[nodiscard]] Status forget_loss() noexcept {
    if (refused()) return handle_->refusal;
    return idle() ? Status::not_held : record_->forget_loss();
  }
  // The outcome of the last post_release(): outcome_unknown as long as it has not come.
  [[nodiscard]] Status post_outcome() const noexcept { return refused() ? Status::ok : record_->post_outcome(); }

  // Any thread; no I/O; two loads and a look at the clock. True implies that no other client was told it holds the
  // lock (README, "What is promised").
  [[nodiscard]] bool held() const noexcept { return !refused() && record_->held(); }
  [[nodiscard]] bool held(Instant now) const noexcept { return now < valid_until(); }
  // The hold's end by our own reckoning: the send of the last confirmed request, plus the lease, less drift. The epoch
  // when nothing is held. Any thread.
  [[nodiscard]] Instant valid_until() const noexcept { return refused() ? Instant() : record_->valid_until(); }
  // valid_until() less now, never negative. Any thread.
  [[nodiscard]] Duration remaining() const noexcept { return refused() ? Duration::zero() : record_->remaining(); }
  // Held, but a renewal failed or none was confirmed for two thirds of the lease. Any thread.
  [[nodiscard]] bool at_risk() const noexcept { return !refused() && record_->at_risk(); }
  // When to call renew(): a third of the lease after the last confirmation, soon after a failure. Instant::max() when
  // nothing is held.
  [[nodiscard]] Instant renewal_due() const noexcept {
    return refused() ? Instant::max() : record_->machine().renewal_due();
  }
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
    return refused() ? handle_->refusal : record_->remaining_on_server(remaining);
  }

  // Of a MultiLock its packed names, which stand for no key of the server's. Empty where configuration() is not ok.
  [[nodiscard]] Key key() const noexcept { return refused() ? Key() : record_->machine().key(); }
  // The proof of the present or last hold; empty before the first.
  [[nodiscard]] const Token& token() const noexcept { return refused() ? no_token : record_->machine().token(); }
  [[nodiscard]] ClientBase& client() const noexcept { return refused() ? handle_->owner->client() : record_->home(); }

 protected:
  enum class Standing : std::uint8_t {
    plain,
    refused,  // It has no hold.
    lingers,  // Its hold may stay where it is used, and has a place of the client's Lingerer.
  };
  // What an object has that is a handle of its owner's hold.
  struct Handle {
    HoldOwner* owner;
    LockTiming timing;
    HoldShare share = {};         // What it has acquired.
    Status refusal = Status::ok;  // Why it has no hold.
    Standing standing = Standing::plain;
    std::uint8_t place = 0;
  };

  // `record` is the object's own, and may be made after this.
  explicit BlockingLock(HoldRecord& record) noexcept : record_(&record) {}
  explicit BlockingLock(Handle* handle) noexcept : handle_(handle) {}
  // A Mutex posts the release of a hold that is left, and the last handle does. Does not block. A release that finds no place,
  // where post_release() would say too_many_requests, is counted by ClientBase::releases_dropped(), and its lease ends the lock.
  ~BlockingLock() = default;

  void attach(OwnedHold* hold) noexcept { record_ = hold; }
  [[nodiscard]] OwnedHold& hold() const noexcept { return static_cast<OwnedHold&>(*record_); }

  void note_refusal(Status why) noexcept {
    handle_->refusal = why;
    handle_->standing = Standing::refused;
  }
  // The hold is there, and nobody has it.
  [[nodiscard]] bool idle() const noexcept {
    return handle_ != nullptr && handle_->standing == Standing::lingers &&
           lingerer().table().idle(lingerer(), handle_->place);
  }
  // Of a handle that lingers.
  [[nodiscard]] Lingerer& lingerer() const noexcept { return *handle_->owner->client().lingerer(); }

  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return refused() ? 0 : record_->machine().fence(); }

 private:
  friend class Lingering;
  friend class LockSetBase;

  static constexpr Token no_token = Token::none();

  [[nodiscard]] bool refused() const noexcept { return record_ == nullptr; }
  [[nodiscard]] Duration request_timeout() const noexcept {
    return (refused() ? handle_->owner->client() : record_->client()).config().request_timeout;
  }
  [[nodiscard]] Status acquire_otherwise(Duration wait, bool once) noexcept {
    if (refused()) return handle_->refusal;
    return lingerer().table().acquire(lingerer(), *this, wait, once);
  }
  [[nodiscard]] Status release_otherwise(bool posted) noexcept {
    if (refused()) return handle_->refusal;
    return lingerer().table().release(lingerer(), *this, posted);
  }
  // The machine's count may be what a callback has left of it, at the end of the call.
  [[nodiscard]] Status count_in(Status status) noexcept {
    if (status == Status::ok) handle_->share.count_in(hold().tally, record_->machine().count());
    return status;
  }
  [[nodiscard]] Status count_out(std::uint32_t before, Status status) noexcept {
    if (record_->machine().count() < before) take_out();
    return status;
  }
  void take_out() noexcept { handle_->share.count_out(hold().tally); }

  HoldRecord* record_ = nullptr;  // nullptr: a handle that was refused.
  Handle* handle_ = nullptr;      // nullptr: the hold is the object's own.
};

}  // namespace holdfast
