// SPDX-License-Identifier: MIT
//
// Waiting by push on all nodes.
#include <poll.h>

#include "holdfast/detail/run_quorum_listening.hpp"
#include "push_link.hpp"
#include "quorum_ear.hpp"

namespace holdfast {

class QuorumPushEar final : public QuorumEar {
 public:
  explicit QuorumPushEar(QuorumRecord& lock) noexcept
      : lock_(lock), quorum_(*lock.quorum_), count_(lock.machine_.nodes()) {}

  void leave(bool with_lock) noexcept {
    if (!listening_) return;
    for (std::size_t index = 0; index < count_; ++index) {
      if (waiters_[index] == nullptr) continue;
      link(index).leave(*waiters_[index], with_lock);
      waiters_[index] = nullptr;
    }
    listening_ = woken_ = false;
    confirmed_ = 0;
  }

 private:
  [[nodiscard]] PushLink link(std::size_t index) const noexcept {
    return {quorum_.nodes_[index].connection, quorum_.nodes_[index].push};
  }

  void begin_try() noexcept override {
    for (std::size_t index = 0; index < count_; ++index)
      if (waiters_[index] != nullptr) link(index).subscriber().begin_try(*waiters_[index]);
    look();
  }

  void listen(bool busy) noexcept override {
    if (refused_) return;
    if (!listening_) enter();
    if (!busy) return;
    for (std::size_t index = 0; index < count_; ++index)
      if (waiters_[index] != nullptr) link(index).subscriber().end_try(*waiters_[index]);
  }

  void enter() noexcept {
    listening_ = true;
    for (std::size_t index = 0; index < count_; ++index) {
      PushLink push = link(index);
      push.make_current();
      waiters_[index] =
          push.subscriber().enter(*lock_.machine_.kind().announcement, lock_.machine_.key(), quorum_.now_);
    }
    look();
  }

  void work() noexcept override {
    for (std::size_t index = 0; index < count_; ++index)
      if (waiters_[index] != nullptr) link(index).work(quorum_.roll_.introduced(index));
    if (look() != 0) return lock_.task_.life().forget(static_cast<ListenSet>(~confirmed_));
    refused_ = true;
    leave(false);
    lock_.task_.life().plan_anew(quorum_.now_, 0, remaining_unknown, quorum_.random_.number());
  }

  // What the subscriptions say. The nodes that have not refused.
  NodeSet look() noexcept {
    NodeSet usable = 0;
    confirmed_ = 0;
    woken_ = false;
    for (std::size_t index = 0; index < count_; ++index) {
      const Subscriber::Waiter* const waiter = waiters_[index];
      if (waiter == nullptr) continue;
      const Subscriber& subscriber = link(index).subscriber();
      if (subscriber.refused(*waiter)) continue;
      usable = static_cast<NodeSet>(usable | node_bit(index));
      if (subscriber.confirmed(*waiter)) confirmed_ = static_cast<ListenSet>(confirmed_ | node_bit(index));
      woken_ = woken_ || subscriber.woken(*waiter);
    }
    return usable;
  }

  void sleep(Instant until) noexcept override {
    for (std::size_t index = 0; index < count_; ++index) until = earlier(until, prepare(index));
    quorum_.extra_ = extra_;
    quorum_.extra_count_ = count_;
    quorum_.wait_until(until);
    quorum_.extra_count_ = 0;
    for (std::size_t index = 0; index < count_; ++index)
      if (extra_[index].ready) link(index).take();
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

  QuorumRecord& lock_;
  QuorumClient& quorum_;
  std::size_t count_;
  Subscriber::Waiter* waiters_[nodes_max] = {};
  QuorumClient::Extra extra_[nodes_max] = {};
  bool refused_ = false;  // By all nodes: the call polls.
};

Status run_listening(QuorumRecord& record) noexcept {
  QuorumPushEar ear(record);
  const Status status = record.run(&ear);
  ear.leave(status == Status::ok);
  return status;
}

}  // namespace holdfast
