// SPDX-License-Identifier: MIT
//
// AsyncQuorumLock is what the Redlock kinds of an Asio loop have in common: AsyncLock's face on an AsyncQuorum. One operation
// at a time, beside async_wait_lost(). Use the kinds: AsyncRedlockMutex, AsyncRedlockReentrantLock (async_redlock.hpp).
//
// Thread rule and heap: as AsyncClient's. Its whole memory is its own and that of its votes.
#pragma once

#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "holdfast/async_quorum.hpp"
#include "holdfast/client.hpp"
#include "holdfast/keep_options.hpp"
#include "holdfast/linked_place.hpp"
#include "holdfast/quorum_machine.hpp"
#include "holdfast/shared_value.hpp"
#include "holdfast/subscriber.hpp"
#include "holdfast/wait_plan.hpp"

namespace holdfast {

class AsyncQuorumLock : private OperationOwner, private Sleeper {
 public:
  AsyncQuorumLock(const AsyncQuorumLock&) = delete;
  AsyncQuorumLock& operator=(const AsyncQuorumLock&) = delete;

  // Attempts on all nodes at once until a majority grants or `wait` is over (wait_forever: no end; zero: one attempt); the
  // last attempt is made when it is. Waits, and lives through failures, as QuorumLock::acquire() does: an attempt takes the
  // node timeout at most, with a fence twice that, and longer by the connect timeout while a majority is not connected.
  // Errors: those of QuorumLock::try_acquire(); too_many_requests while another operation of this lock waits, or when a
  // majority has no room for one more request; invalid_argument with a lease above the quorum's max_lease.
  template <class Token>
  auto async_acquire(Duration wait, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler, Duration given) { start_acquire(given, store(std::move(handler))); }, token, wait);
  }
  // One attempt. Errors: as above.
  template <class Token>
  auto async_try_acquire(Token&& token) {
    return async_acquire(Duration::zero(), std::forward<Token>(token));
  }
  // Extends the lease on every node, and takes the lock anew on nodes that lost it while a majority holds it.
  // Errors: not_held, lock_lost (final); no_quorum, timed_out: not extended, and the hold goes on until valid_until().
  template <class Token>
  auto async_renew(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) { start_renew(Duration::zero(), store(std::move(handler))); }, token);
  }
  // The same with a bound of its own on how long it may take. Errors: as above; invalid_argument below timeout_min.
  template <class Token>
  auto async_renew(Duration timeout, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler, Duration given) {
          start_renew(given < timeout_min ? Duration(-1) : given, store(std::move(handler)));
        },
        token, timeout);
  }
  // Lets go on every node, and waits until a majority has nothing of the hold any more, for a request timeout at most.
  // Whatever the outcome, this acquisition is over from the call on. Errors: not_held, lock_lost (no majority had it),
  // timed_out and the like: compensations follow by themselves.
  template <class Token>
  auto async_release(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) { start_release(store(std::move(handler))); }, token);
  }
  // Lets go without waiting. Errors: not_held, lock_lost.
  Status post_release();
  // Completed with lock_lost when the hold is lost, with no error when it has been released. Errors: not_held, at once;
  // already_held while another one waits; cancelled.
  template <class Token>
  auto async_wait_lost(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) { start_wait_lost(store(std::move(handler))); }, token);
  }
  // As AsyncLock::set_lost_signal().
  void set_lost_signal(asio::cancellation_signal* signal) noexcept { signal_ = signal; }
  // Completes the operation that waits, and async_wait_lost(), with Status::cancelled. What a cancelled acquire may have
  // taken is released.
  void cancel();

  // As AsyncLock::keep(). Errors: invalid_argument, already_held.
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept;
  // Any thread.
  void tick() noexcept { ticked_at_.store(Client::now().nanoseconds()); }

  // ok, or invalid_argument when key or timing are outside their limits, or the lock has fewer places than the quorum nodes.
  [[nodiscard]] Status configuration() const noexcept { return configuration_; }

  // Any thread; no I/O.
  [[nodiscard]] bool held() const noexcept;
  [[nodiscard]] bool held(Instant now) const noexcept { return now < valid_until(); }
  [[nodiscard]] Instant valid_until() const noexcept;
  [[nodiscard]] Duration remaining() const noexcept;
  [[nodiscard]] bool at_risk() const noexcept;

  [[nodiscard]] Instant renewal_due() const noexcept { return machine_.renewal_due(); }
  [[nodiscard]] std::uint32_t hold_count() const noexcept { return held() ? machine_.count() : 0; }
  // What became of the last request to this node.
  [[nodiscard]] Status node_status(std::size_t node) const noexcept { return machine_.vote(node).status; }
  // This node's grant counts.
  [[nodiscard]] bool held_on(std::size_t node) const noexcept {
    return !orphaned() && Client::now() < machine_.vote(node).counts_until;
  }
  [[nodiscard]] Key key() const noexcept { return machine_.key(); }
  [[nodiscard]] const Token& token() const noexcept { return machine_.token(); }
  [[nodiscard]] asio::any_io_executor get_executor() const noexcept { return loop().executor(); }

 protected:
  // `places` is how many votes there are: one a node at least. With `pushed` releases are announced.
  AsyncQuorumLock(AsyncQuorum& quorum, const LockKind& kind, QuorumVote* const* votes, std::size_t places, Key key,
                  const QuorumTiming& timing, bool pushed);
  // Posts the release of a hold that is left, and completes what waits with Status::cancelled.
  ~AsyncQuorumLock() override;

  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return machine_.fence(); }

 private:
  friend class AsyncQuorumCore;

  // What is in progress,
  enum class Doing : std::uint8_t { nothing, acquire, renew, release };
  // and what it waits for.
  enum class Step : std::uint8_t {
    nothing,
    voters,  // A majority that may vote.
    room,    // On the nodes' connections.
    answer,  // The machine's.
    retry,   // Of an acquire that was denied.
  };
  enum class Told : std::uint8_t { nothing, at_risk, lost };

  template <class Handler>
  [[nodiscard]] Completion& store(Handler&& handler) {
    return loop().store(std::forward<Handler>(handler), *this);
  }
  [[nodiscard]] AsyncLoop& loop() const noexcept;
  void cancel_operation(Completion& completion) final;
  void wake(Instant now) override;

  void start_acquire(Duration wait, Completion& completion);
  void start_renew(Duration timeout, Completion& completion);
  void start_release(Completion& completion);
  void start_wait_lost(Completion& completion);

  [[nodiscard]] Status may_start() const noexcept;
  void begin(Doing doing, Completion& completion, Instant deadline);
  void attempt();
  void proceed();
  [[nodiscard]] bool room_is_there();
  void take_room();
  [[nodiscard]] Status ask();
  [[nodiscard]] Status ask_to_acquire();
  [[nodiscard]] Status open_round(Instant deadline);
  void wait_for(Step step, Instant until);
  void conclude(Status status);
  void conclude_acquire(Status status);
  void finish(Status status);
  void look();
  void rest();
  [[nodiscard]] Instant renewal_wanted_at() const noexcept;
  void renew_if_due();

  void take_reply(QuorumVote& vote, const Reply& reply);
  void exclude(std::size_t node, bool excluded);
  void settle();
  void settle(NodeSet nodes);
  void hand_over();
  void note(QuorumEvent event);
  void note_told(Told told);
  void tell();
  void publish() noexcept;
  void let_go() noexcept;
  void tell_waiter(Status status);

  void listen();
  void stop_listening(bool with_lock);
  void hear();
  [[nodiscard]] bool woken() const noexcept;
  [[nodiscard]] ListenSet confirmed() const noexcept;
  void spread(Status outcome) noexcept;

  [[nodiscard]] bool may_renew(Instant now) const noexcept;
  [[nodiscard]] bool too_old(Instant now) const noexcept;
  [[nodiscard]] bool kept() const noexcept {
    return keep_.keep == Keep::always || (keep_.keep == Keep::automatic && machine_.timing().lock().automatic());
  }
  [[nodiscard]] bool orphaned() const noexcept;

  std::shared_ptr<AsyncQuorumCore> core_;
  QuorumVote* const* votes_;
  QuorumMachine machine_;
  Completion* completion_ = nullptr;       // Of what is in progress.
  Completion* lost_completion_ = nullptr;  // Of async_wait_lost().
  asio::cancellation_signal* signal_ = nullptr;
  Subscriber::Waiter* waiters_[nodes_max] = {};  // While a release is listened for.
  Instant deadline_;                             // Of what is in progress,
  Instant until_;                                // and of the present step.
  Instant granted_at_;
  SharedValue<std::int64_t> valid_until_;
  SharedValue<std::int64_t> risky_from_;
  SharedValue<std::int64_t> ticked_at_;
  QuorumWaitPlan plan_;
  Duration spread_ = retry_delay_min;
  KeepOptions keep_;
  LinkedPlace<AsyncQuorumLock> sibling_{this};       // Among all locks of the quorum,
  LinkedPlace<AsyncQuorumLock> queued_{this};        // those that wait for voters or for room,
  LinkedPlace<AsyncQuorumLock> listening_{this};     // for a release,
  LinkedPlace<AsyncQuorumLock> stirred_{this};       // those that something has come for,
  LinkedPlace<AsyncQuorumLock> untold_place_{this};  // and those with something to tell.
  Status configuration_ = Status::ok;
  Doing doing_ = Doing::nothing;
  Step step_ = Step::nothing;
  Told untold_ = Told::nothing;
  NodeSet push_refused_ = 0;
  bool pushed_ = false;
  bool listens_ = false;
  bool only_ = false;  // There is no time to wait: one attempt.
  bool last_ = false;
  bool reentering_ = false;     // The acquire is a renewal of what is held.
  bool letting_go_ = false;     // A release has begun, and is not asked for yet.
  bool renewal_waits_ = false;  // For room.
  bool roomy_ = false;          // Enough waited for room: who has none does without.
  bool risk_told_ = false;
  bool loss_told_ = false;
};
static_assert(sizeof(AsyncQuorumLock) <= 960, "promised: a Redlock of an Asio loop, without its votes");

}  // namespace holdfast
