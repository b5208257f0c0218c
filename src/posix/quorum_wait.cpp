// SPDX-License-Identifier: MIT
//
// Waiting by push on all nodes: one waiter's life, from an attempt that found the lock busy to its end.
#include "holdfast/quorum_wait.hpp"

#include <poll.h>

#include "holdfast/wait_plan.hpp"
#include "push_link.hpp"

namespace holdfast {

namespace {

// A refusal of a plain mutex does not tell the remaining time, and nodes are not asked for it: a holder that died is noticed
// so late.
constexpr Duration busy_poll = std::chrono::seconds(1);

}  // namespace

class QuorumWait {
 public:
  QuorumWait(QuorumLock& lock, Instant deadline) noexcept
      : lock_(lock), quorum_(*lock.quorum_), count_(lock.machine_.nodes()), deadline_(deadline) {
    plan_.begin(
        {.deadline = deadline, .max_poll = quorum_.nodes_[0].connection.config().max_poll, .unknown_poll = busy_poll});
  }

  Status run(Status outcome) noexcept {
    for (std::size_t index = 0; index < count_; ++index) {
      PushLink push = link(index);
      push.make_current();
      waiters_[index] = push.subscriber().enter(*lock_.machine_.kind().announcement, lock_.machine_.key(), now());
    }
    plan(outcome);
    outcome = wait(outcome);
    for (std::size_t index = 0; index < count_; ++index) {
      if (waiters_[index] == nullptr) continue;
      PushLink push = link(index);
      push.leave(*waiters_[index], outcome == Status::ok);
    }
    return refused_ ? lock_.poll_until(deadline_, outcome) : outcome;
  }

 private:
  [[nodiscard]] PushLink link(std::size_t index) const noexcept {
    return {quorum_.nodes_[index].connection, quorum_.nodes_[index].push};
  }
  [[nodiscard]] Instant now() const noexcept { return quorum_.now_; }

  Status wait(Status outcome) noexcept {
    for (;;) {
      quorum_.move();
      for (std::size_t index = 0; index < count_; ++index) drive(index);
      quorum_.tend_due();
      quorum_.tell_holds();
      lock_.catch_up();
      if (quorum_.cancelled()) return Status::cancelled;
      look();
      if (usable_ == 0) {
        refused_ = true;
        return outcome;
      }
      plan_.forget(static_cast<ListenSet>(~confirmed_));
      if (plan_.due(now(), woken_, confirmed_)) {
        const bool last = plan_.last(now());
        for (std::size_t index = 0; index < count_; ++index)
          if (waiters_[index] != nullptr) link(index).subscriber().begin_try(*waiters_[index]);
        plan_.begin_attempt(now(), confirmed_, quorum_.random_delay(retry_delay_min));
        const Instant end = quorum_.end_of_wait(deadline_);
        outcome = lock_.attempt(last ? end : deadline_, end);
        spread(outcome);
        if (outcome == Status::lock_busy)
          for (std::size_t index = 0; index < count_; ++index)
            if (waiters_[index] != nullptr) link(index).subscriber().end_try(*waiters_[index]);
        if (last || !worth_waiting(outcome)) return outcome;
        plan(outcome);
        continue;
      }
      Instant until = plan_.next(woken_, confirmed_);
      until = earlier(until, earlier(quorum_.tend_next(), quorum_.next_timeout()));
      for (std::size_t index = 0; index < count_; ++index) until = earlier(until, prepare(index));
      quorum_.extra_ = extra_;
      quorum_.extra_count_ = count_;
      quorum_.wait_until(until);
      quorum_.extra_count_ = 0;
      for (std::size_t index = 0; index < count_; ++index) take(index);
    }
  }

  // A node that granted alone is released again, which wakes everybody there, this waiter, too: the next try is delayed at
  // random and more and more, so that those who split the votes between them do not do so for ever.
  void spread(Status outcome) noexcept {
    bool alone = false;
    for (std::size_t index = 0; index < count_; ++index) {
      const Status status = lock_.machine_.vote(index).status;
      alone = alone || status == Status::ok || status == Status::outcome_unknown || status == Status::cancelled;
    }
    if (outcome == Status::ok || !alone) {
      spread_ = retry_delay_min;
      return;
    }
    spread_ = spread_ * 2 < retry_delay_max ? spread_ * 2 : retry_delay_max;
    plan_.set_floor(now() + quorum_.random_delay(spread_));
  }

  // What the subscriptions say.
  void look() noexcept {
    usable_ = confirmed_ = 0;
    woken_ = false;
    for (std::size_t index = 0; index < count_; ++index) {
      const Subscriber::Waiter* const waiter = waiters_[index];
      if (waiter == nullptr) continue;
      const Subscriber& subscriber = link(index).subscriber();
      if (subscriber.refused(*waiter)) continue;
      usable_ = static_cast<NodeSet>(usable_ | node_bit(index));
      if (subscriber.confirmed(*waiter)) confirmed_ = static_cast<NodeSet>(confirmed_ | node_bit(index));
      woken_ = woken_ || subscriber.woken(*waiter);
    }
  }

  // When to try again if nobody wakes us.
  void plan(Status outcome) noexcept {
    plan_.plan(now(), outcome == Status::lock_busy, confirmed_, lock_.machine_.busy_for(), quorum_.random_.number());
  }

  void drive(std::size_t index) noexcept {
    if (waiters_[index] != nullptr) link(index).work(quorum_.roll_.introduced(index));
  }

  // What to look at, and until when.
  Instant prepare(std::size_t index) noexcept {
    extra_[index] = {.descriptor = -1, .events = POLLIN, .ready = false};
    if (waiters_[index] == nullptr) return Instant::max();
    PushLink push = link(index);
    extra_[index].descriptor = push.socket();
    extra_[index].events = push.events();
    return push.timeout(quorum_.roll_.introduced(index));
  }

  void take(std::size_t index) noexcept {
    if (extra_[index].ready) link(index).take();
  }

  QuorumLock& lock_;
  QuorumClient& quorum_;
  std::size_t count_;
  Instant deadline_;
  Subscriber::Waiter* waiters_[nodes_max] = {};
  QuorumClient::Extra extra_[nodes_max] = {};
  NodeSet usable_ = 0;  // Nodes whose subscription was not refused.
  NodeSet confirmed_ = 0;
  bool woken_ = false;
  bool refused_ = false;
  QuorumWaitPlan plan_;
  Duration spread_ = retry_delay_min;
};

Status wait_by_push(QuorumLock& lock, Instant deadline, Status outcome) noexcept {
  return QuorumWait(lock, deadline).run(outcome);
}

}  // namespace holdfast
