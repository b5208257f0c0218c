// SPDX-License-Identifier: MIT
//
// Waiting by push: one waiter's life, from an attempt that found the lock busy to its end.
#include "holdfast/push_wait.hpp"

#include <poll.h>

#include "client_hot.hpp"
#include "holdfast/wait_plan.hpp"
#include "push_link.hpp"

namespace holdfast {

class PushWait {
 public:
  PushWait(HoldRecord& record, Instant deadline) noexcept
      : record_(record), client_(*record.client_), link_(client_), deadline_(deadline) {
    plan_.begin({.deadline = deadline, .max_poll = client_.config_.max_poll});
  }

  Status run(Status outcome) noexcept {
    link_.make_current();
    waiter_ = listen();
    if (waiter_ == nullptr) return record_.poll_until(deadline_, outcome);
    const LockKind& kind = record_.machine_.kind();
    asks_ttl_ = !kind.reentrant && !kind.fenced;  // Those are told with the refusal.
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
      drive();
      client_.tend_due();
      record_.catch_up();
      if (client_.take_cancel()) return Status::cancelled;
      if (subscriber().refused(*waiter_)) {
        refused_ = true;
        return outcome;
      }
      if (confirmed() == 0) plan_.forget(1);
      if (link_.elsewhere()) link_.close();
      const bool woken = subscriber().woken(*waiter_);
      if (plan_.due(now(), woken, confirmed())) {
        const bool last = plan_.last(now());
        plan_.begin_attempt(now(), confirmed());
        subscriber().begin_try(*waiter_);
        // The first try behind a wake-up is likely to be granted, and asks for nothing else.
        client_.ttl_wanted_ = asks_ttl_ && !woken;
        outcome = record_.attempt(last ? record_.request_deadline() : deadline_);
        asked_along_ = client_.ttl_wanted_;
        client_.ttl_wanted_ = false;
        // Of several names another one is in the way now.
        const bool elsewhere = outcome == Status::lock_busy && place_ != record_.machine_.awaited_place();
        if (outcome == Status::lock_busy && !elsewhere) subscriber().end_try(*waiter_);
        if (last || !HoldRecord::worth_waiting(outcome)) return outcome;
        if (elsewhere && !listen_elsewhere()) return outcome;
        plan(outcome);
        continue;
      }
      Instant until =
          earlier(plan_.next(woken, confirmed()), earlier(client_.tend_next(), subscriber().poll_timeout()));
      if (link_.socket() < 0) until = earlier(until, later(link_.connect_at(), plan_.floor()));
      sleep_until(until);
    }
  }

  [[nodiscard]] ListenSet confirmed() noexcept { return subscriber().confirmed(*waiter_) ? 1 : 0; }

  // nullptr: there is no place to wait by push.
  Subscriber::Waiter* listen() noexcept {
    place_ = record_.machine_.awaited_place();
    return subscriber().enter(record_.machine_.awaited(), now());
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
    plan_.plan(now(), busy, confirmed(), remaining, client_.random());
  }

  // Of the hold in the way, in milliseconds, as PTTL says it. Mostly it was asked along with the try.
  std::int64_t remaining_of_other() noexcept {
    if (!client_.query_waiting_ && !asked_along_) {
      if (client_.ask_ttl(record_.machine_.key(), client_.ttl_) != Status::ok) return remaining_unknown;
    }
    client_.pump(nullptr);
    if (client_.query_outcome_ == Status::cancelled) client_.cancel();  // It was meant for the wait.
    return client_.query_outcome_ == Status::ok ? client_.ttl_ : remaining_unknown;
  }

  // Connects where that is due, and sends what is to be sent.
  void drive() noexcept {
    if (subscriber().state() == SubscriberState::failed) link_.close();
    if (link_.socket() < 0 && now() >= link_.connect_at())
      link_.connect(earlier(now() + client_.config_.connect_timeout, deadline_));
    subscriber().handle_timeout(now());
    link_.transmit();
    if (subscriber().state() == SubscriberState::failed) link_.close();
  }

  // Until then, until something arrives, or until cancel(); no longer than sleep_max.
  void sleep_until(Instant until) noexcept {
    client_.now_ = Client::now();
    Duration left = until - now();
    if (left < Duration::zero()) left = Duration::zero();
    if (left > sleep_max) left = sleep_max;
    const timespec limit = {.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                            .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
    const bool unsent = !subscriber().poll_transmit(now()).empty();
    pollfd entries[] = {
        {.fd = client_.wake_, .events = POLLIN, .revents = 0},
        {.fd = link_.socket(), .events = static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), .revents = 0}};
    const int ready = ::ppoll(entries, 2, &limit, nullptr);  // A descriptor below zero is passed over.
    client_.now_ = Client::now();
    if (ready > 0 && entries[1].revents != 0 && link_.socket() >= 0) link_.receive();
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
