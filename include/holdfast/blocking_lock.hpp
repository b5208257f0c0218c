// SPDX-License-Identifier: MIT
//
// BlockingLock drives one LockMachine over a Client: what all kinds of lock have in common. Use the kinds: Mutex.
#pragma once

#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/lock_machine.hpp"
#include "holdfast/shared_value.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

inline constexpr Duration wait_forever = Duration::max();
// What remaining_on_server() gives for a key without a TTL: somebody else's, and busy for ever.
inline constexpr Duration remaining_unlimited = Duration::max();

class BlockingLock {
 public:
  BlockingLock(const BlockingLock&) = delete;
  BlockingLock& operator=(const BlockingLock&) = delete;

  // ok, or invalid_argument when key, lease or drift are outside their limits: then every call below says so, too.
  [[nodiscard]] Status configuration() const noexcept { return configuration_; }

  // One attempt. Blocks for the request timeout at most, longer by the connect timeout when it must connect first;
  // after a failed connect, calls fail at once until the reconnect delay has passed.
  // Errors: lock_busy; already_held; timed_out, transport_closed and other unknown outcomes, which are compensated;
  // connection failures; the server's refusals. Cost when connected: one send, one receive.
  [[nodiscard]] Status try_acquire() noexcept;
  // Attempts until the lock is granted or `wait` is over (wait_forever: no end); the last attempt is made when it is, and
  // may take a request timeout more. Polls with growing, jittered delays of
  // retry_delay_min to retry_delay_max. Lives through lost connections and passing refusals of the server.
  // Errors: as try_acquire(), the last attempt's; cancelled.
  [[nodiscard]] Status acquire(Duration wait) noexcept;
  // Extends the lease, counted from now. A failure leaves the hold as it is until valid_until(): try again.
  // Errors: not_held, lock_lost (final); timed_out and the like: not extended as far as we know.
  [[nodiscard]] Status renew() noexcept;
  // The same with a bound on how long it may block. Errors: as above.
  [[nodiscard]] Status renew(Duration timeout) noexcept;
  // Lets go and waits for the server's word. Whatever the outcome, the lock is not held from the call on; where the
  // outcome is unknown, a compensation follows by itself.
  // Errors: not_held, lock_lost (there was nothing of ours to release), timed_out and the like.
  [[nodiscard]] Status release() noexcept;
  // Lets go without waiting: never blocks. If the socket takes nothing now, the release goes out with the next call.
  // Its outcome comes with the next call of the client; see post_outcome().
  // Errors: not_held, lock_lost.
  Status post_release() noexcept;
  // The outcome of the last post_release(): outcome_unknown as long as it has not come.
  [[nodiscard]] Status post_outcome() const noexcept { return post_outcome_; }

  // Any thread; no I/O; two loads and a look at the clock. True implies that no other client was told it holds the
  // lock (README, "What is promised").
  [[nodiscard]] bool held() const noexcept;
  [[nodiscard]] bool held(Instant now) const noexcept { return now < valid_until(); }
  // The hold's end by our own reckoning: the send of the last confirmed request, plus the lease, less drift. The epoch
  // when nothing is held. Any thread.
  [[nodiscard]] Instant valid_until() const noexcept;
  // valid_until() less now, never negative. Any thread.
  [[nodiscard]] Duration remaining() const noexcept;
  // Held, but a renewal failed or none was confirmed for two thirds of the lease. Any thread.
  [[nodiscard]] bool at_risk() const noexcept;
  // When to call renew(): a third of the lease after the last confirmation, soon after a failure. Instant::max() when
  // nothing is held.
  [[nodiscard]] Instant renewal_due() const noexcept { return machine_.renewal_due(); }

  // Asks the server. True if anybody holds the lock. Errors: as try_acquire(); `locked` is untouched then.
  [[nodiscard]] Status is_locked(bool& locked) noexcept;
  // Asks the server for the lock's remaining time, whoever holds it: zero when it is free, remaining_unlimited for a
  // key without a TTL. Errors: as above.
  [[nodiscard]] Status remaining_on_server(Duration& remaining) noexcept;

  [[nodiscard]] Key key() const noexcept { return machine_.key(); }
  // The proof of the present or last hold.
  [[nodiscard]] const Token& token() const noexcept { return machine_.token(); }
  [[nodiscard]] Client& client() const noexcept { return *client_; }

 protected:
  BlockingLock(Client& client, const LockKind& kind, Key key, const LockTiming& timing) noexcept;
  // Posts the release of a hold that is left. Does not block.
  ~BlockingLock();

 private:
  friend class Client;

  // forked: a hold of the parent's was forgotten.
  [[nodiscard]] Status begin() noexcept;
  // begin() and catch_up(), for what a forgotten hold does not touch.
  [[nodiscard]] Status begin_anew() noexcept;
  [[nodiscard]] Status start_release(bool posted) noexcept;
  [[nodiscard]] Instant request_deadline() const noexcept;
  [[nodiscard]] Status attempt(Instant wait_deadline) noexcept;
  [[nodiscard]] Status finish(Status started) noexcept;
  [[nodiscard]] Status await_compensation(Status status) noexcept;
  // What pump() waits for.
  [[nodiscard]] bool answered() const noexcept {
    return !machine_.waiting() && !(awaits_compensation_ && machine_.state() == LockState::unknown);
  }
  [[nodiscard]] bool may_ask_again(Status status, Instant deadline) noexcept;
  // True if that was the outcome of what was asked, and all.
  bool handle_reply(const Reply& reply, Instant now) noexcept;
  void catch_up() noexcept;
  // After every input: hands over what the machine has to say.
  void settle() noexcept;
  void submit() noexcept;
  void note_post_outcome(const Reply& reply) noexcept;
  void publish() noexcept;

  Client* client_;
  LockMachine machine_;
  // What other threads read. Written by the client's thread only.
  SharedValue<std::int64_t> valid_until_;
  SharedValue<std::int64_t> risky_from_;
  std::uint32_t incarnation_ = 0;
  Status configuration_ = Status::ok;
  Status post_outcome_ = Status::ok;
  bool awaits_compensation_ = false;
  bool compensated_ = false;  // The last compensation found the key and deleted it.
};
static_assert(sizeof(BlockingLock) <= 2048, "promised: a lock");

}  // namespace holdfast
