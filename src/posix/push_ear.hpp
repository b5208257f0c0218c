// SPDX-License-Identifier: MIT
//
// Hears of releases on one node.
#pragma once

#include "client_hot.hpp"
#include "ear.hpp"
#include "holdfast/detail/hold_record.hpp"
#include "push_link.hpp"

namespace holdfast {

class PushEar : public Ear {
 public:
  explicit PushEar(HoldRecord& record) noexcept
      : client_(*record.client_), link_(client_, client_.push_), refused_(!client_.push_.possible()) {}
  void leave(bool with_lock) noexcept {
    if (listening()) link_.leave(*waiter_, with_lock);
    waiter_ = nullptr;
  }

 protected:
  ~PushEar() = default;
  void begin_try() noexcept override { subscriber_->begin_try(*waiter_); }

  void listen(const LockMachine& machine) noexcept override {
    if (refused_) return;
    if (listening() && place_ == machine.awaited_place()) return subscriber_->end_try(*waiter_);
    if (!listening()) {
      refused_ = client_.branched_ && !client_.brancher().table().may_hear(client_.brancher(), machine);
      if (refused_) return;
      link_.make_current();
    }
    subscriber_ = &link_.subscriber();
    // Of several names another one may be in the way now. The one that is free is another waiter's.
    Subscriber::Waiter* const before = waiter_;
    waiter_ = subscriber_->enter(*machine.kind().announcement, machine.awaited(), client_.now_);
    if (before != nullptr) subscriber_->leave(*before, false);
    place_ = machine.awaited_place();
    if (listening()) client_.task_->life().forget(1);
  }

  void work(NodeTask& task) noexcept override {
    link_.work(true);
    if (subscriber_->refused(*waiter_)) {
      refused_ = true;
      leave(false);
      task.plan_to_poll(client_.now_, client_.random_source_.number());
    }
    if (confirmed() == 0) task.life().forget(1);
  }

  void sleep(Instant until) noexcept override {
    until = earlier(until, link_.timeout(true));
    if (client_.wait_until(until, link_.socket(), link_.events())) link_.take();
  }

  ClientBase& client_;
  PushLink link_;
  bool refused_;  // The server does not let us subscribe, or there is no storage for it: the call polls.

 private:
  std::uint8_t place_ = 0;  // Of the name whose release it hears of.
};

}  // namespace holdfast
