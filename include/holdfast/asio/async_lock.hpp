// SPDX-License-Identifier: MIT
//
// AsyncLock is what all locks of an AsyncClient have in common: acquire, renew, release, and to be told of a loss. One
// operation at a time, beside async_wait_lost(). Its kinds are AsyncMutex, AsyncReentrantLock, AsyncFencedLock,
// AsyncMultiLock, AsyncSemaphore and the sides of AsyncReadWriteLock.
//
// Thread rule and heap: as AsyncClient's. Its whole memory is sizeof(AsyncLock), and a place of AsyncLimits::kept.
#pragma once

#include <asio/async_result.hpp>
#include <cstdint>
#include <memory>
#include <system_error>

#include "holdfast/asio/async_client.hpp"
#include "holdfast/asio/async_hold.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/node_task.hpp"
#include "holdfast/core/renewal_schedule.hpp"
#include "holdfast/core/subscriber.hpp"
#include "holdfast/detail/linked_place.hpp"

namespace holdfast {

class AsyncLock : public AsyncHold {
 public:
  // Lets go without waiting. Errors: not_held, lock_lost; too_many_requests: AsyncLimits::requests / 2 releases that nobody waits
  // for are on their way. It is not held any more, and the server is told when one of them has been answered, but only if this
  // object is still there; else the lease ends it. A destructor posts as well: who lets go of many at once waits for them, by
  // async_release().
  Status post_release();
  // As BlockingLock::forget_loss(). Errors: as there; too_many_requests while an operation of this lock waits.
  [[nodiscard]] Status forget_loss();
  // Asks the server for the lock's remaining time, whoever holds it, as BlockingLock::remaining_on_server(). `remaining`
  // must live until then; it is set if there is no error.
  template <class Token>
  auto async_remaining_on_server(Duration& remaining, Token&& token) {
    return asio::async_initiate<Token, void(std::error_code)>(
        [this, out = &remaining](auto handler) {
          initiate(std::move(handler), [&](Completion& completion) { start_query(*out, completion); });
        },
        token);
  }
  [[nodiscard]] Instant renewal_due() const noexcept { return machine_.renewal_due(); }
  // How often it was acquired and not released; 0 when it is not held.
  [[nodiscard]] std::uint32_t hold_count() const noexcept { return held() ? machine_.count() : 0; }
  [[nodiscard]] Key key() const noexcept { return machine_.key(); }
  // The proof of the present or last hold.
  [[nodiscard]] const Token& token() const noexcept { return machine_.token(); }

 protected:
  AsyncLock(AsyncClient& client, const LockKind& kind, Key key, const LockTiming& timing);
  // Posts the release of a hold that is left, and completes what waits with Status::cancelled.
  ~AsyncLock() override;

  // As LockMachine's.
  static void pair(AsyncLock& one, AsyncLock& other) noexcept { LockMachine::pair(one.machine_, other.machine_); }

  void set_argument(std::uint32_t argument) noexcept { machine_.set_argument(argument); }

  [[nodiscard]] std::uint64_t fence_of_grant() const noexcept { return machine_.fence(); }

 private:
  friend class AsyncClientCore;

  void wake(Instant now) override;
  void start_acquire(Duration wait, Completion& completion) override;
  void start_renew(Duration timeout, Completion& completion) override;
  void start_release(Completion& completion) override;
  void cancel_doing() final;  // The destructor calls it,
  void rest() final;          // and this.
  void start_query(Duration& remaining, Completion& completion);

  [[nodiscard]] Status may_start() const noexcept;
  void begin(Completion& completion) noexcept;
  [[nodiscard]] TaskFacts facts();
  // As far as it goes.
  void proceed();
  void ask();
  void finish();
  void handle_reply(const Reply& reply);
  void settle();
  void publish() noexcept { keeping_.publish(machine_.valid_until(), machine_.risky_from()); }
  void lose();
  void doubt();
  // The machine keeps what there is no place for: no acquire is asked for before.
  [[nodiscard]] bool owes() const noexcept { return machine_.wants_compensation(); }
  bool pay();

  void plan();
  void listen(Key key);
  void enter_queue();
  void stop_listening(bool with_lock);
  void hear();
  [[nodiscard]] bool woken() const noexcept;
  [[nodiscard]] ListenSet confirmed() const noexcept;

  [[nodiscard]] Status start_keeping();
  void stop_keeping() noexcept;
  [[nodiscard]] bool may_renew(Instant now) const noexcept { return keeping_.may_renew(now); }
  void renewed(Instant asked_at) noexcept;

  // What every operation touches stands together, and the machine begins with what it touches: of ten thousand locks few
  // are in the processor's nearest cache.
  std::shared_ptr<AsyncClientCore> core_;
  RenewalSchedule::Place* place_ = nullptr;  // While the hold is kept.
  Subscriber::Waiter* waiter_ = nullptr;     // While a release is listened for.
  std::uint8_t awaited_place_ = 0;
  bool automatic_lease_ = false;
  bool cancelled_ = false;  // The operation is being ended.
  bool push_refused_ = false;
  LinkedPlace<AsyncLock> queued_{this};  // Among those that wait for the connection or for room on it,
  LockMachine machine_;
  LinkedPlace<AsyncLock> sibling_{this};  // and all locks of the client.
  NodeTask task_;
  Duration* remaining_out_ = nullptr;  // Of a question.
};
static_assert(sizeof(AsyncLock) <= 1024, "promised: a lock of an Asio client");

}  // namespace holdfast
