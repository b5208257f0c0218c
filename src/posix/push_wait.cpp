// SPDX-License-Identifier: MIT
//
// Waiting by push: one waiter's life, from an attempt that found the lock busy to its end.
#include "holdfast/push_wait.hpp"

#include "client_hot.hpp"
#include "holdfast/wait_plan.hpp"
#include "push_link.hpp"

namespace holdfast {

class PushWait {
 public:
  PushWait(HoldRecord& record, Instant deadline) noexcept
      : record_(record), client_(*record.client_), link_(client_, client_.push_), deadline_(deadline) {
    plan_.begin({.deadline = deadline, .max_poll = client_.config_.max_poll});
  }

  Status run(Status outcome) noexcept {
    link_.make_current();
    waiter_ = listen();
    if (waiter_ == nullptr) return record_.poll_until(deadline_, outcome);
    asks_ttl_ = !record_.machine_.kind().tells_remaining;
    plan(outcome);
    outcome = wait(outcome);
    link_.leave(*waiter_, outcome == Status::ok);
    if (!refused_) return outcome;
    return record_.poll_until(deadline_, outcome);
  }

 private:
  [[nodiscard]] Instant now() const noexcept { return client_.now_; }
  [[nodiscard]] Subscriber& subscriber() noexcept { return link_.subscriber(); }

  Status wait(Status outcome) noexcept {
    for (;;) {
      client_.work();
      link_.work(true);
      record_.catch_up();
      if (client_.cancelled()) return Status::cancelled;
      if (subscriber().refused(*waiter_)) {
        refused_ = true;
        return outcome;
      }
      if (confirmed() == 0) plan_.forget(1);
      const bool woken = subscriber().woken(*waiter_);
      if (plan_.due(now(), woken, confirmed())) {
        plan_.begin_attempt(now(), confirmed());
        subscriber().begin_try(*waiter_);
        // The first try behind a wake-up is likely to be granted, and asks for nothing else.
        client_.ttl_wanted_ = asks_ttl_ && !woken;
        outcome = record_.attempt(deadline_);
        asked_along_ = client_.ttl_wanted_;
        client_.ttl_wanted_ = false;
        // Of several names another one is in the way now.
        const bool elsewhere = outcome == Status::lock_busy && place_ != record_.machine_.awaited_place();
        if (outcome == Status::lock_busy && !elsewhere) subscriber().end_try(*waiter_);
        if (plan_.last(now()) || !worth_waiting(outcome)) return outcome;
        if (elsewhere && !listen_elsewhere()) return outcome;
        plan(outcome);
        continue;
      }
      const Instant until =
          earlier(plan_.next(woken, confirmed()), earlier(client_.next_timeout(), link_.timeout(true)));
      if (client_.wait_until(until, link_.socket(), link_.events())) link_.take();
    }
  }

  [[nodiscard]] ListenSet confirmed() noexcept { return subscriber().confirmed(*waiter_) ? 1 : 0; }

  // nullptr: there is no place to wait by push.
  Subscriber::Waiter* listen() noexcept {
    place_ = record_.machine_.awaited_place();
    return subscriber().enter(*record_.machine_.kind().announcement, record_.machine_.awaited(), now());
  }

  // False: as above.
  [[gnu::noinline]] bool listen_elsewhere() noexcept {
    Subscriber::Waiter* const next = listen();
    refused_ = next == nullptr;
    if (refused_) return false;
    subscriber().leave(*waiter_, false);  // The name that is free now is another waiter's.
    waiter_ = next;
    plan_.forget(1);
    return true;
  }

  // When to try again if nobody wakes us.
  void plan(Status outcome) noexcept {
    const bool busy = outcome == Status::lock_busy;
    std::int64_t remaining = remaining_unknown;
    if (busy && confirmed() != 0) remaining = asks_ttl_ ? remaining_of_other() : record_.machine_.busy_for();
    plan_.plan(now(), busy, confirmed(), remaining, client_.random_source_.number());
  }

  // Of the hold in the way, in milliseconds, as PTTL says it. Mostly it was asked along with the try.
  std::int64_t remaining_of_other() noexcept {
    if (!client_.query_waiting_ && !asked_along_) {
      if (client_.ask_remaining(record_.machine_, client_.ttl_) != Status::ok) return remaining_unknown;
    }
    client_.pump(nullptr, deadline_ + client_.config_.request_timeout);
    return client_.query_waiting_ || client_.query_outcome_ != Status::ok ? remaining_unknown : client_.ttl_;
  }

  HoldRecord& record_;
  Client& client_;
  PushLink link_;
  Instant deadline_;
  Subscriber::Waiter* waiter_ = nullptr;
  std::uint8_t place_ = 0;  // Of the name whose release it hears of.
  WaitPlan plan_;
  bool asks_ttl_ = false;     // A refusal of this kind does not tell the remaining time.
  bool asked_along_ = false;  // The last try asked for it.
  bool refused_ = false;
};

Status wait_by_push(HoldRecord& record, Instant deadline, Status outcome) noexcept {
  return PushWait(record, deadline).run(outcome);
}

}  // namespace holdfast
