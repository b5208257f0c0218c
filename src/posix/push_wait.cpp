// SPDX-License-Identifier: MIT
//
// Waiting by push: one waiter's life, from an attempt that found the lock busy to its end.
#include "holdfast/push_wait.hpp"

#include <poll.h>

#include "client_hot.hpp"
#include "push_link.hpp"

namespace holdfast {

namespace {

// Behind the end of the hold in the way: its server expires it a little late, and those who wait come one by one.
constexpr Duration expiry_jitter = std::chrono::milliseconds(20);

}  // namespace

class PushWait {
 public:
  PushWait(HoldRecord& record, Instant deadline) noexcept
      : record_(record), client_(*record.client_), link_(client_), deadline_(deadline) {}

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
    bool listened = false;  // A try was made since the subscription was confirmed.
    for (;;) {
      drive();
      client_.tend_due();
      record_.catch_up();
      if (client_.take_cancel()) return Status::cancelled;
      if (subscriber().refused(*waiter_)) {
        refused_ = true;
        return outcome;
      }
      const bool confirmed = subscriber().confirmed(*waiter_);
      listened = listened && confirmed;
      if (link_.elsewhere()) link_.close();
      const bool due =
          subscriber().woken(*waiter_) || (confirmed && !listened) || now() >= next_try_ || now() >= deadline_;
      if (due && now() >= floor_) {
        const bool last = now() + timeout_min > deadline_;
        listened = confirmed;
        const bool woken = subscriber().woken(*waiter_);
        subscriber().begin_try(*waiter_);
        floor_ = now() + retry_delay_min;
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
        listened = listened && !elsewhere;
        plan(outcome);
        continue;
      }
      // A deadline that has passed waits for the floor, too.
      Instant until = due ? floor_ : earlier(next_try_, deadline_);
      until = earlier(until, earlier(client_.tend_next(), subscriber().poll_timeout()));
      if (link_.socket() < 0) until = earlier(until, later(link_.connect_at(), floor_));
      sleep_until(until);
    }
  }

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
    return true;
  }

  // When to try again if nobody wakes us.
  void plan(Status outcome) noexcept {
    const Duration max_poll = client_.config_.max_poll;
    if (outcome != Status::lock_busy || !subscriber().confirmed(*waiter_)) {
      delay_ = delay_ * 2 < retry_delay_max ? delay_ * 2 : retry_delay_max;
      next_try_ = now() + client_.jittered(delay_);
      return;
    }
    delay_ = retry_delay_min;
    const std::int64_t remaining = asks_ttl_ ? remaining_of_other() : record_.machine_.busy_for();
    Duration length = max_poll;
    constexpr std::int64_t milliseconds_max = poll_max.count() / 1'000'000;
    if (remaining >= 0 && remaining < milliseconds_max)
      length = std::chrono::milliseconds(remaining) + client_.jittered(expiry_jitter);
    else if (remaining == -2)  // It was released between the try and the question.
      length = retry_delay_min;
    next_try_ = now() + (length < max_poll ? length : max_poll);
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
  Instant next_try_;
  Instant floor_;  // No try before this: no loop turns faster.
  Duration delay_ = retry_delay_min;
  bool asks_ttl_ = false;     // A refusal of this kind does not tell the remaining time.
  bool asked_along_ = false;  // The last try asked for it.
  bool refused_ = false;
};

Status wait_by_push(HoldRecord& record, Instant deadline, Status outcome) noexcept {
  return PushWait(record, deadline).run(outcome);
}

}  // namespace holdfast
