// SPDX-License-Identifier: MIT
//
// LockMachine is one lock on one node, of any kind. It does no I/O, reads no clock and draws no random bytes: you
// feed it replies and time, it tells you what to send and when to wake it. proto/lock.md is its paper.
//
//     idle -> acquiring -> held <-> at_risk -> releasing -> idle
//                 |           \________/
//                 |                |
//              unknown            lost          both: compensating release -> idle
//
// A reentrant kind is acquired again while it is held: reenter() and step_down() tell the server the new count, an
// absolute number. After a loss its holder's frames are unwound first: each release answers lock_lost, and until the last
// one has, so does acquire().
//
// Invariant: held(now) implies now < valid_until(), and valid_until() is never later than what the server promised,
// counted from before the request left, less drift.   Not thread-safe: one owner.   No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/session.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/key.hpp"
#include "holdfast/proto/resp_encoder.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

enum class LockInput : std::uint8_t;  // src/core/lock_transitions.hpp

enum class LockState : std::uint8_t { idle, acquiring, held, at_risk, releasing, unknown, lost };

enum class LockEvent : std::uint8_t {
  none,
  granted,  // acquire: ok.
  denied,   // acquire: status() says why; nothing is held.
  unclear,  // acquire or release: the outcome is unknown, status() says why; a compensation is on its way.
  renewed,
  at_risk,         // The first doubt of a hold. Once until it is renewed.
  lost,            // Final. Once a hold.
  released,        // release: status() is ok, or lock_lost if there was nothing of ours to release.
  protocol_doubt,  // A reply of a shape that no server sends: the session must fail().
};

// A set of events is a bit for each.
[[nodiscard]] constexpr std::uint16_t event_bit(LockEvent event) noexcept {
  return static_cast<std::uint16_t>(1U << static_cast<unsigned>(event));
}
// Those that answer what was asked, and no more.
inline constexpr std::uint16_t plain_outcomes = event_bit(LockEvent::granted) | event_bit(LockEvent::denied) |
                                                event_bit(LockEvent::renewed) | event_bit(LockEvent::released);

// lease_default, and the hold is kept alive by the client's watchdog or by tend(); see keep_options.hpp.
inline constexpr Duration lease_automatic = Duration::min();
inline constexpr Duration drift_automatic = Duration::min();  // lease / 100 + 2 ms

[[nodiscard]] constexpr Duration drift_of(Duration lease) noexcept { return lease / drift_divisor + drift_base; }

// How long, and how sure.
struct LockTiming {
  Duration lease = lease_automatic;  // Or whole milliseconds in [lease_min, lease_max].
  Duration drift = drift_automatic;  // At least 0 and below the lease.
  bool kept = false;                 // Kept alive as with the automatic lease, whose length `lease` is then.

  [[nodiscard]] constexpr bool automatic() const noexcept { return kept || lease == lease_automatic; }
  [[nodiscard]] constexpr Duration effective_lease() const noexcept {
    return lease == lease_automatic ? lease_default : lease;
  }
  [[nodiscard]] constexpr Duration effective_drift() const noexcept {
    return drift == drift_automatic ? drift_of(effective_lease()) : drift;
  }
  // Of a hold with this timing that is acquired once more with another one: its lease grows and never shrinks, and once it is
  // kept alive it stays so.
  [[nodiscard]] constexpr LockTiming raised_by(const LockTiming& inner) const noexcept {
    const bool longer = inner.effective_lease() > effective_lease();
    const Duration length = longer ? inner.effective_lease() : effective_lease();
    const Duration validity = effective_lease() - effective_drift();
    const Duration inner_validity = inner.effective_lease() - inner.effective_drift();
    return {.lease = length,
            .drift = length - (longer && inner_validity > validity ? inner_validity : validity),
            .kept = automatic() || inner.automatic()};
  }
  [[nodiscard]] constexpr bool valid() const noexcept {
    const Duration length = effective_lease();
    return length >= lease_min && length <= lease_max && length % std::chrono::milliseconds(1) == Duration(0) &&
           effective_drift() >= Duration(0) && effective_drift() < length;
  }
};

class LockMachine {
 public:
  explicit LockMachine(const LockKind& kind) noexcept : kind_(&kind) {}
  LockMachine(const LockMachine&) = delete;
  LockMachine& operator=(const LockMachine&) = delete;

  // The lock's name and timing; the key's bytes are copied. May be called again between holds.
  // Errors: invalid_argument (the machine stays as it was), already_held while state() is not idle.
  [[nodiscard]] Status configure(Key key, const LockTiming& timing) noexcept;

  // The two sides of one lock: what the one asks for tells the server of the other's hold. REQUIRES: both stand in one object or
  // one array, and neither moves.
  static void pair(LockMachine& one, LockMachine& other) noexcept {
    const std::ptrdiff_t distance = reinterpret_cast<const char*>(&other) - reinterpret_cast<const char*>(&one);
    one.argument_ = static_cast<std::int32_t>(distance);
    other.argument_ = static_cast<std::int32_t>(-distance);
    HOLDFAST_ASSERT(one.argument_ == distance && distance != 0);
  }
  // From here to the other side; 0: there is none. REQUIRES: a kind of two sides.
  [[nodiscard]] std::ptrdiff_t partner_distance() const noexcept { return argument_; }
  // A number that the acquire of some kinds tells the server: of a semaphore, how many permits it has. REQUIRES: such a kind.
  void set_argument(std::uint32_t argument) noexcept { argument_ = static_cast<std::int32_t>(argument); }
  [[nodiscard]] std::int32_t argument() const noexcept { return argument_; }

  // A. Questions. Never change state.
  [[nodiscard]] bool held(Instant now) const noexcept { return now < valid_until_; }
  [[nodiscard]] LockState state() const noexcept { return state_; }
  // Held, and in doubt: a renewal failed, or two thirds of the lease have passed since the last confirmation.
  [[nodiscard]] bool at_risk(Instant now) const noexcept { return held(now) && now >= risky_from(); }
  // From when on a hold is at risk; the epoch when it is already.
  [[nodiscard]] Instant risky_from() const noexcept {
    return state_ == LockState::at_risk ? Instant() : confirmed_at_ + risk_after();
  }
  // The epoch when nothing is held.
  [[nodiscard]] Instant valid_until() const noexcept { return valid_until_; }
  // When the next renewal should be asked for; Instant::max() when nothing is held or one is on its way. It stays in the past
  // until renew() is called: also without a connection, where the refusal puts the next one off.
  [[nodiscard]] Instant renewal_due() const noexcept {
    if (valid_until_ == Instant() || renewal_in_flight_ || step_in_flight_) return Instant::max();
    return renewal_turn();
  }
  // The last outcome, as events report it.
  [[nodiscard]] Status status() const noexcept { return status_; }
  // True while the answer to an acquire, a renewal or a release is to come.
  [[nodiscard]] bool waiting() const noexcept {
    constexpr unsigned asking =
        1U << static_cast<unsigned>(LockState::acquiring) | 1U << static_cast<unsigned>(LockState::releasing);
    const bool state_waits = (asking >> static_cast<unsigned>(state_) & 1U) != 0;
    return state_waits || renewal_in_flight_ || step_in_flight_ || wants_request();
  }
  // The same of a renewal alone, that was due by then.
  [[nodiscard]] bool renewing(Instant due) const noexcept {
    return (renewal_in_flight_ || wanted_ == Operation::renew) && renewal_turn() <= due;
  }
  // How often it was acquired and not released. Reentrant kinds: also behind a loss, until it is unwound.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  // Of the last acquire; 0 where it was not granted, or the kind has none.
  [[nodiscard]] std::uint64_t fence() const noexcept { return facts_.fence; }
  // Of a quorum, whose fence is the largest of its nodes': renewals of its kinds write it back.
  void set_fence(std::uint64_t fence) noexcept { facts_.fence = fence; }
  // What the last acquire that met a busy lock was told of the other's remaining time, in milliseconds; -1 for a key
  // without a TTL, or remaining_unknown.
  [[nodiscard]] std::int64_t busy_for() const noexcept { return facts_.remaining; }
  // Of several names, the one that the last acquire was told of, as LockKind::name_at() counts; 0 of one.
  [[nodiscard]] std::uint8_t awaited_place() const noexcept { return facts_.place; }
  // That name, or the key: whose release would tell that the lock may be had. A view of this machine's key.
  [[nodiscard]] Key awaited() const noexcept {
    if (kind_->name_at == nullptr) return key();
    const ByteView name = kind_->name_at(key(), facts_.place);
    return Key(name.empty() ? kind_->name_at(key(), 0) : name);  // A server may say anything.
  }
  // Instant by which the present hold was last confirmed.
  [[nodiscard]] Instant confirmed_at() const noexcept { return confirmed_at_; }
  // Lease less drift.
  [[nodiscard]] Duration validity() const noexcept { return validity_; }
  // How long behind its last confirmation a hold is at risk.
  [[nodiscard]] Duration risk_after() const noexcept { return lease() / renewal_divisor * 2; }
  // Grows with every acquire, release and loss.
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_; }
  [[nodiscard]] Key key() const noexcept { return Key({key_, key_size_}); }
  [[nodiscard]] const Token& token() const noexcept { return token_; }
  // The token of the other side's hold; empty where there is no other side, or it was not held when the request in progress was
  // made.
  [[nodiscard]] ByteView partner_token() const noexcept;
  // As configured, with the lease and the drift that it comes to.
  [[nodiscard]] LockTiming timing() const noexcept { return {.lease = lease(), .drift = lease() - validity_}; }
  [[nodiscard]] const LockKind& kind() const noexcept { return *kind_; }
  [[nodiscard]] bool configured() const noexcept { return key_size_ != 0; }

  // B. Inputs from the wire and the clock. `now` never goes back.
  // A reply whose tag this machine made. Replies of a generation that is over are ignored.
  void handle_reply(const Reply& reply, Instant now) noexcept;
  void handle_timeout(Instant now) noexcept {
    if (state_ == LockState::held || state_ == LockState::at_risk) judge_time(now);
  }

  // The hold was confirmed over another connection, by a request made at `asked_at`, before valid_until() had passed by
  // the reckoning of who asked, and is promised until then: for the present lease, or for a shorter one that it had before.
  void confirm(Instant asked_at, Instant until) noexcept;
  // The server said over another connection that the key is not ours.
  void disown(Instant now) noexcept;

  // C. Commands from the application. Each answers ok when its request is ready for poll_request().
  // `token` is fresh for every call; who was refused and stands in a queue keeps the one by which it does.
  // Errors: already_held, invalid_argument when not configured, too_many_requests while a release is waited for or a
  // compensation has found no place, lock_lost while a lost reentrant hold is not unwound, timed_out where the deadline has
  // passed, system_error without a clock. `timing`, if there is one, is the machine's from here on.
  [[nodiscard]] Status acquire(const Token& token, Instant now, Instant deadline,
                               const LockTiming* timing = nullptr) noexcept;
  // Errors: not_held, lock_lost; too_many_requests while a renewal or a step is on its way. With a `timing` the hold's lease is
  // raised by it, if this renewal is confirmed: see LockTiming::raised_by().
  [[nodiscard]] Status renew(Instant now, Instant deadline, const LockTiming* timing = nullptr) noexcept;
  // Acquires once more; granted or denied like an acquire, and an unknown outcome leaves the hold as it was. A grant
  // counts as a renewal, and raises the lease as one. REQUIRES: the kind is reentrant. Errors: as renew(); invalid_argument
  // beyond count_max.
  [[nodiscard]] Status reenter(Instant now, Instant deadline, const LockTiming* timing = nullptr) noexcept;
  // Releases once, of several times: from here on count() is one less, whatever comes. With `posted` nobody waits: the new
  // count goes out as a compensation. REQUIRES: count() > 1. Errors: as renew(), and lock_lost takes one off, too.
  [[nodiscard]] Status step_down(bool posted, Instant now, Instant deadline) noexcept;
  // Of a kind that queues: its acquires wait, and so its token is put into the queue and stays there while it is refused.
  void join_queue() noexcept { argument_ = 1; }
  // They do not any more. True: its token may stand there, and is taken out by a compensation.
  bool leave_queue() noexcept {
    const bool stands = argument_ != 0 && facts_.place == queue_place;
    argument_ = 0;
    facts_.place = 0;
    compensation_wanted_ = compensation_wanted_ || stands;
    return stands;
  }
  // Of so many releases, all but the last one: the count is taken down and nothing sent, since the last one is answered for all.
  // REQUIRES: neither they nor count() are 0.
  void unwind(std::uint32_t releases) noexcept { count_ = releases < count_ ? count_ - releases + 1 : 1; }
  // From here on the lock is not held, whatever comes, also while a renewal is on its way. `native` is the session's
  // identity().native_delete. With `posted` nobody waits: the request goes out in a shape
  // that cannot be refused for want of a script. Errors: not_held, lock_lost, which takes one off the count of a lost
  // reentrant hold.
  [[nodiscard]] Status release(NativeDelete native, bool posted, Instant now, Instant deadline) noexcept;
  // The holder knows of the loss: what is still counted of the hold that was lost is forgotten, as if it had been released as
  // often as it was acquired. REQUIRES: handle_timeout() before. Errors: already_held; not_held where nothing was lost, or
  // nothing of it is left to forget.
  [[nodiscard]] Status forget_loss() noexcept;
  // The request that poll_request() offers could not be submitted: nothing was sent.
  void refuse_request(Status why, Instant now) noexcept;
  // Everything is over without a word to the server: the hold is another process's.
  void forget() noexcept;

  // D. Outputs. After any B or C call, poll each until has_output() is false: a request that is refused may call for a
  // compensation.
  // A hold that must be taken back and that no request covers: hand it to Session::compensate().
  [[nodiscard]] bool poll_compensation(ReplyTag& tag, Compensation& compensation) noexcept;
  // Who has no place for it puts it back, to be offered again.
  void put_back_compensation() noexcept { compensation_wanted_ = true; }
  // The server has just said that it has nothing of the hold, and is asked anew with the same token.
  void waive_compensation() noexcept { compensation_wanted_ = false; }
  [[nodiscard]] bool wants_compensation() const noexcept { return compensation_wanted_; }
  [[nodiscard]] bool wants_request() const noexcept { return wanted_ != nothing; }
  [[nodiscard]] bool request_compensated() const noexcept { return wanted_ != Operation::renew; }
  // Writes the wanted request into `space` (of Session::open()) and describes it; the requester is left to
  // the caller.
  // Errors: buffer_too_small; the request stays wanted.
  [[nodiscard]] Status poll_request(MutableBytes space, Request& request, std::size_t& size) noexcept;
  // When a hold comes to be at risk, or ends. Instant::max() when nothing is held: what waits for an answer has its deadline
  // in the session, and renewal_due() is apart.
  [[nodiscard]] Instant poll_timeout() const noexcept;
  // LockEvent::none when drained. Those that came since the last poll, in the order of LockEvent.
  [[nodiscard]] LockEvent poll_event() noexcept {
    if (events_ == 0) return LockEvent::none;
    const int first = __builtin_ctz(events_);
    events_ = static_cast<std::uint16_t>(events_ & (events_ - 1));
    return static_cast<LockEvent>(first);
  }
  // The shortest way for a driver that waits for one answer: true, with the events drained, if the outcome of what was
  // asked was the only event and nothing else wants attention.
  [[nodiscard]] bool only_said_what_was_asked() noexcept {
    if (compensation_wanted_ || wants_request() || (events_ & ~plain_outcomes) != 0) return false;
    events_ = 0;
    return true;
  }
  // False if none of the above has anything to say.
  [[nodiscard]] bool has_output() const noexcept { return compensation_wanted_ || wants_request() || events_ != 0; }

 private:
  static constexpr Operation nothing = Operation::query;  // What a machine asks changes something.

  void judge_time(Instant now) noexcept;
  void move(LockInput input) noexcept;
  void push_event(LockEvent event) noexcept;
  void end_hold() noexcept;
  void lose(LockInput input) noexcept;
  [[nodiscard]] bool asks_by_text(const Reply& reply, Instant now) noexcept;
  void handle_acquired(const Reply& reply, Instant now) noexcept;
  void handle_renewed(const Reply& reply, Instant now) noexcept;
  void handle_stepped(const Reply& reply, Instant now) noexcept;
  [[nodiscard]] Duration lease() const noexcept { return std::chrono::milliseconds(compensation_.lease_milliseconds); }
  void raise(Instant asked_at, Instant until) noexcept;
  void set_timing(const LockTiming& timing) noexcept;
  void ask_for(const LockTiming* timing) noexcept;
  void take_raised() noexcept;
  [[nodiscard]] Status start_step(std::uint32_t target, Instant now, Instant deadline) noexcept;
  [[nodiscard]] Status answer_unheld() noexcept;
  void handle_released(const Reply& reply) noexcept;
  void doubt(Status why, Instant now) noexcept;
  [[nodiscard]] Instant renewal_turn() const noexcept {
    return retry_renewal_at_ != Instant() ? retry_renewal_at_ : confirmed_at_ + lease() / renewal_divisor;
  }
  void describe(Request& request, Operation operation) noexcept;
  void deny(Status why) noexcept;
  void unclear(Status why, bool compensate) noexcept;

  // Small and often used first: their offsets fit into one byte.
  const LockKind* kind_;
  Duration validity_{};   // Lease less drift.
  Instant valid_until_;   // The epoch: nothing is held.
  Instant confirmed_at_;  // When the last confirmed acquire or renewal was about to be sent.
  Instant asked_at_;      // When the request in progress was made: of the present generation there is one at a time.
  Instant deadline_ = Instant::max();  // Of the request in progress.
  Instant retry_renewal_at_;           // The epoch: as the interval says.
  std::uint32_t generation_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t step_target_ = 0;
  // What one kind alone has, its number or the distance to its partner in bytes. A second one, or a pointer, would not fit in.
  std::int32_t argument_ = 0;
  // The longer lease that the renewal or the step in progress asks for; 0: it asks for the hold's.
  std::uint32_t raised_milliseconds_ = 0;
  std::uint16_t key_size_ = 0;
  LockState state_ = LockState::idle;
  Status status_ = Status::ok;
  Operation wanted_ = nothing;              // The request that poll_request() has.
  RequestForm form_ = RequestForm::by_sha;  // Of the request in progress.
  bool compensation_wanted_ = false;
  // Bits, since a byte for each would be more than is promised for the machine.
  bool renewal_in_flight_ : 1 = false;
  bool step_in_flight_ : 1 = false;
  bool count_unsure_ : 1 = false;  // The server may count otherwise, and what tells it may have been superseded.
  bool posted_ : 1 = false;
  bool loss_untold_ : 1 = false;  // Neither renew() nor release() has answered lock_lost yet.
  std::uint16_t events_ = 0;      // As event_bit().
  char key_[key_size_max];
  Token token_;
  Duration raised_validity_{};  // As validity_, of raised_milliseconds_.
  LockFacts facts_;
  Compensation compensation_;  // Of the present hold: views key_ and token_.
};

static_assert(sizeof(LockMachine) <= 480, "promised: a lock without its driver");

}  // namespace holdfast
