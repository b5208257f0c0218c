// SPDX-License-Identifier: MIT
//
// AsyncLock is what all locks of an AsyncClient have in common: acquire, renew, release, and to be told of a loss. One
// operation at a time, beside async_wait_lost(). Its kinds are AsyncMutex, AsyncReentrantLock, AsyncFencedLock and
// AsyncMultiLock.
//
// Thread rule and heap: as AsyncClient's. Its whole memory is sizeof(AsyncLock), and a place of AsyncLimits::kept.
#pragma once

#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <cstdint>
#include <memory>
#include <system_error>

#include "holdfast/async_client.hpp"
#include "holdfast/hold_record.hpp"
#include "holdfast/keep_options.hpp"
#include "holdfast/linked_place.hpp"
#include "holdfast/lock_machine.hpp"
#include "holdfast/renewal_schedule.hpp"
#include "holdfast/shared_value.hpp"
#include "holdfast/subscriber.hpp"
#include "holdfast/wait_plan.hpp"

namespace holdfast {

class AsyncLock : private OperationOwner, private Sleeper {
 public:
  AsyncLock(const AsyncLock&) = delete;
  AsyncLock& operator=(const AsyncLock&) = delete;

  // Attempts until the lock is granted or `wait` is over (wait_forever: no end; zero: one attempt); the last attempt is made
  // when it is, and may take a request timeout more. Waits, and lives through failures, as BlockingLock::acquire() does.
  // Errors: those of BlockingLock::acquire(); too_many_requests while another operation of this lock waits, or when
  // AsyncLimits::kept has no place for the hold, which is let go of; not_connected, at once, of a client that is closed or
  // was not told yet where to connect.
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
  // Extends the lease, counted from now. A failure leaves the hold as it is until valid_until(): try again.
  // Errors: not_held, lock_lost (final); timed_out and the like: not extended as far as we know.
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
  // Lets go and waits for the server's word. Whatever the outcome, this acquisition is over from the call on; where the
  // outcome is unknown, a compensation follows by itself. Errors: not_held, lock_lost (there was nothing of ours to
  // release), timed_out and the like.
  template <class Token>
  auto async_release(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) { start_release(store(std::move(handler))); }, token);
  }
  // Lets go without waiting. Errors: not_held, lock_lost; too_many_requests: it is not held any more, and left to the end of
  // its lease, because AsyncLimits::requests / 2 releases that nobody waits for are on their way. A destructor posts as well:
  // who lets go of many at once waits for them, by async_release().
  Status post_release();
  // Completed with lock_lost when the hold is lost, with no error when it has been released. Errors: not_held, at once;
  // already_held while another one waits; cancelled.
  template <class Token>
  auto async_wait_lost(Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this](auto handler) { start_wait_lost(store(std::move(handler))); }, token);
  }
  // Asks the server for the lock's remaining time, whoever holds it, as BlockingLock::remaining_on_server(). `remaining`
  // must live until then; it is set if there is no error.
  template <class Token>
  auto async_remaining_on_server(Duration& remaining, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this, out = &remaining](auto handler) { start_query(*out, store(std::move(handler))); }, token);
  }
  // Emits cancellation_type::terminal when a hold is lost: bound to a coroutine's slot it ends the work that needed the
  // lock. nullptr: none. The signal must outlive the lock, or be taken away before.
  void set_lost_signal(asio::cancellation_signal* signal) noexcept;
  // Completes the operation that waits, and async_wait_lost(), with Status::cancelled.
  void cancel();

  // ok, or invalid_argument when key or timing are outside their limits: then every operation says so, too.
  [[nodiscard]] Status configuration() const noexcept { return configuration_; }
  // How later holds are kept alive, and whom to tell; callbacks come in a turn of the loop, where anything may be used.
  // Errors: invalid_argument, already_held.
  [[nodiscard]] Status keep(const KeepOptions& options) noexcept;
  // The application is alive; see KeepOptions::liveness. Any thread.
  void tick() noexcept { ticked_at_.store(Client::now().nanoseconds()); }

  // Any thread; no I/O. See BlockingLock.
  [[nodiscard]] bool held() const noexcept;
  [[nodiscard]] bool held(Instant now) const noexcept { return now < valid_until(); }
  [[nodiscard]] Instant valid_until() const noexcept;
  [[nodiscard]] Duration remaining() const noexcept;
  [[nodiscard]] bool at_risk() const noexcept;

  [[nodiscard]] Instant renewal_due() const noexcept { return machine_.renewal_due(); }
  // How often it was acquired and not released; 0 when it is not held.
  [[nodiscard]] std::uint32_t hold_count() const noexcept { return held() ? machine_.count() : 0; }
  [[nodiscard]] Key key() const noexcept { return machine_.key(); }
  // The proof of the present or last hold.
  [[nodiscard]] const Token& token() const noexcept { return machine_.token(); }
  [[nodiscard]] asio::any_io_executor get_executor() const noexcept { return loop().executor(); }

 protected:
  AsyncLock(AsyncClient& client, const LockKind& kind, Key key, const LockTiming& timing, bool pushed);
  // Posts the release of a hold that is left, and completes what waits with Status::cancelled.
  ~AsyncLock() override;

  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return machine_.fence(); }

 private:
  friend class AsyncClientCore;

  // What is in progress,
  enum class Doing : std::uint8_t { nothing, acquire, renew, release, query };
  // and what it waits for.
  enum class Step : std::uint8_t {
    nothing,
    connection,
    room,  // On the connection.
    reply,
    retry,         // Of an acquire that found the lock busy, or the server not fit.
    compensation,  // Of a release whose connection went away.
  };
  enum class Told : std::uint8_t { nothing, at_risk, lost };

  template <class Handler>
  [[nodiscard]] Completion& store(Handler&& handler) {
    return loop().store(std::forward<Handler>(handler), *this);
  }
  [[nodiscard]] AsyncLoop& loop() const noexcept;
  void cancel_operation(Completion& completion) final;  // The destructor calls it.
  void wake(Instant now) override;

  void start_acquire(Duration wait, Completion& completion);
  void start_renew(Duration timeout, Completion& completion);
  void start_release(Completion& completion);
  void start_wait_lost(Completion& completion);
  void start_query(Duration& remaining, Completion& completion);

  [[nodiscard]] Status may_start() const noexcept;
  void begin(Doing doing, Completion& completion, Instant deadline);
  void attempt();
  void proceed();
  [[nodiscard]] Status ask();
  [[nodiscard]] Status ask_to_acquire();
  void wait_for(Step step);
  void conclude(Status status);
  [[nodiscard]] bool asks_again(Status status) noexcept;
  void conclude_acquire(Status status);
  void conclude_release(Status status);
  void finish(Status status);
  void handle_reply(const Reply& reply);
  void take_query(const Reply& reply);
  void settle();
  void advance();
  void rest();
  void publish() noexcept;
  void lose();
  void note_told(Told told);
  void tell();

  void listen();
  void stop_listening(bool with_lock);
  void hear();
  [[nodiscard]] bool woken() const noexcept;
  [[nodiscard]] ListenSet confirmed() const noexcept;

  [[nodiscard]] Status start_keeping();
  void stop_keeping() noexcept;
  [[nodiscard]] bool may_renew(Instant now) const noexcept;
  void renewed(Instant asked_at) noexcept;
  [[nodiscard]] bool watched() const noexcept;
  [[nodiscard]] bool orphaned() const noexcept;

  // What every operation touches stands together, and the machine begins with what it touches: of ten thousand locks few
  // are in the processor's nearest cache.
  std::shared_ptr<AsyncClientCore> core_;
  Completion* completion_ = nullptr;       // Of what is in progress.
  Completion* lost_completion_ = nullptr;  // Of async_wait_lost().
  asio::cancellation_signal* signal_ = nullptr;
  RenewalSchedule::Place* place_ = nullptr;  // While the hold is kept.
  Subscriber::Waiter* waiter_ = nullptr;     // While a release is listened for.
  Instant deadline_;                         // Of what is in progress.
  Instant granted_at_;
  SharedValue<std::int64_t> valid_until_;
  SharedValue<std::int64_t> risky_from_;
  SharedValue<std::int64_t> ticked_at_;
  KeepOptions keep_;
  Status configuration_ = Status::ok;
  Status release_status_ = Status::ok;  // While the compensation is waited for.
  Doing doing_ = Doing::nothing;
  Step step_ = Step::nothing;
  Told untold_ = Told::nothing;
  std::uint8_t awaited_place_ = 0;
  bool pushed_ = false;  // Releases are announced.
  bool automatic_lease_ = false;
  bool only_ = false;  // There is no time to wait: one attempt.
  bool last_ = false;
  bool asked_again_ = false;
  bool was_woken_ = false;  // The present attempt comes of a wake-up.
  bool push_refused_ = false;
  bool letting_go_ = false;  // A release has begun, and is not asked for yet.
  bool stranded_ = false;    // Nothing but its lease takes the last hold back.
  bool risk_told_ = false;
  bool loss_told_ = false;
  LinkedPlace<AsyncLock> queued_{this};     // Among those that wait for the connection or for room on it,
  LinkedPlace<AsyncLock> listening_{this};  // for a release,
  LockMachine machine_;
  LinkedPlace<AsyncLock> sibling_{this};       // all locks of the client,
  LinkedPlace<AsyncLock> untold_place_{this};  // and those with something to tell.
  WaitPlan plan_;
  std::int64_t busy_for_ = remaining_unknown;
  Duration* remaining_out_ = nullptr;  // Of a query.
};
static_assert(sizeof(AsyncLock) <= 2432, "promised: a lock of an Asio client");

}  // namespace holdfast
