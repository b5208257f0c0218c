// SPDX-License-Identifier: MIT
//
// Waiting in a queue on one node: by push, over the client's own channel.
#include "holdfast/detail/run_listening.hpp"
#include "push_ear.hpp"

namespace holdfast {

class QueueEar final : public PushEar {
 public:
  explicit QueueEar(HoldRecord& record) noexcept : PushEar(record) {
    if (refused_) return;
    link_.make_current();
    subscriber_ = &link_.subscriber();
    Token token;
    if (subscriber_->stands() && record.ways_->draw_ordinal(record, token) == Status::ok) enter(record.machine_, token);
  }

 private:
  void listen(const LockMachine& machine) noexcept override {
    client_.task_->life().lift_floor();
    if (refused_) return;
    if (listening()) return subscriber_->end_try(*waiter_);
    link_.make_current();
    enter(machine, machine.token());
    if (listening()) client_.task_->life().forget(1);
  }

  void enter(const LockMachine& machine, const Token& token) noexcept {
    waiter_ = subscriber_->enter(*machine.kind().announcement, Key(token.client()), client_.now_);
    if (listening()) Subscriber::address(*waiter_, machine.token());
  }
};

Status run_queueing(HoldRecord& record, NodeTask& task) noexcept {
  QueueEar ear(record);
  record.machine_.join_queue();
  const Status status = record.run(task, &ear);
  if (!record.strays_ && record.machine_.leave_queue()) record.settle();  // Its place goes with the slot.
  ear.leave(status == Status::ok);
  return status;
}

}  // namespace holdfast
