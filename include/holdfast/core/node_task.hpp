// SPDX-License-Identifier: MIT
//
// NodeTask is one call of a lock on one node: a LockTask that asks a LockMachine, over a Node. It does no I/O, reads no clock
// and draws no random bytes.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstdint>

#include "holdfast/core/ack_lane.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/lock_task.hpp"
#include "holdfast/core/node.hpp"

namespace holdfast {

// What a server says to the question for a lock's remaining time, in milliseconds, as a Duration: zero when the lock is free,
// remaining_unlimited for a key without a TTL.
[[nodiscard]] Duration remaining_of(std::int64_t milliseconds) noexcept;

// A question that is not for the lock's remaining time. Pointers, so that a program links what it asks.
struct Question {
  // Asks by the node. Errors: too_many_requests: there is no room.
  Status (*ask)(Question& self, Node& node, const ReplyTag& tag, Instant now) noexcept;
  // A reply that is no error. False: it has another shape than was asked for.
  bool (*take)(Question& self, const RespValue& reply) noexcept;
  // After either: another request follows, or `outcome` is what to say.
  bool (*asks_on)(Question& self, Status& outcome) noexcept;
};

class NodeTask : public AckRequest {
 public:
  // The machine's replies, and those to this call's questions, have this requester.
  NodeTask(LockMachine& machine, Node& node, void* requester) noexcept
      : machine_(machine), node_(&node), requester_(requester) {}

  // A. Questions.
  [[nodiscard]] LockTask& life() noexcept { return life_; }
  [[nodiscard]] const LockTask& life() const noexcept { return life_; }
  // What machine and node say. Where there is room, who listens and who cancels is the driver's to add.
  [[nodiscard]] TaskFacts facts(Instant now) const noexcept {
    TaskFacts facts;
    facts.now = now;
    if (!node_->ready()) [[unlikely]] {
      facts.link = node_->dialer().hopeful(now) ? Link::coming : Link::absent;
      facts.link_failure = node_->dialer().failure();
    }
    facts.witness = node_->config().meter;
    facts.subject = machine_.key().bytes();
    facts.held = machine_.held(now);
    facts.valid_until = machine_.valid_until();
    facts.released = machine_.count() == 0;
    if (life_.stage() == TaskStage::answer) {  // Nobody else asks for it.
      facts.waiting = waiting();
      facts.answer = life_.call() == Call::question ? question_outcome_ : machine_.status();
      facts.unconfirmed = unconfirmed();
    } else if (life_.stage() == TaskStage::confirm) [[unlikely]] {
      facts.waiting = pending();
      facts.answer = outcome();
    }
    return facts;
  }
  // The answer to what was asked is to come.
  [[nodiscard]] bool waiting() const noexcept {
    return life_.call() == Call::question ? question_waits_ : machine_.waiting();
  }
  // The command that ask() gives needs a token.
  [[nodiscard]] bool wants_token(Instant now) const noexcept {
    return life_.call() == Call::acquire && !(machine_.kind().reentrant && machine_.held(now));
  }
  [[nodiscard]] void* requester() const noexcept { return requester_; }
  [[nodiscard]] const LockMachine& machine() const noexcept { return machine_; }
  // What the machine holds does not count yet: replicas must confirm it, after TaskAct::confirm by an AckLane. A hold that is
  // acquired once more was confirmed before.
  [[nodiscard]] bool unconfirmed() const noexcept { return life_.confirms() && outermost_; }
  // Of the question, once it is over with ok.
  [[nodiscard]] Duration remaining() const noexcept { return remaining_of(remaining_); }

  // B. Commands.
  // Its lock is at another node from now on. REQUIRES: no answer is to come.
  void go_to(Node& node) noexcept { node_ = &node; }
  void begin(Call call, Instant deadline, const TaskSettings& settings) noexcept {
    remaining_ = remaining_unknown;
    life_.begin(call, deadline, settings);
  }
  // From now on Call::question asks this; nullptr: for the lock's remaining time. REQUIRES: no call is in progress.
  void set_question(Question* question) noexcept { asked_ = question; }
  // The question was answered so: it is to be asked once more, or `outcome` is what it came to. REQUIRES: Call::question.
  [[nodiscard]] bool asks_on(Status& outcome) const noexcept {
    return asked_ != nullptr && asked_->asks_on(*asked_, outcome);
  }
  // With a `timing`, which stays until the call is over, the hold is acquired by it: the machine's is raised or replaced.
  void begin_acquire(Instant now, Instant deadline, Instant end, const TaskSettings& settings,
                     const LockTiming* timing = nullptr) noexcept {
    timing_ = timing;
    remaining_ = remaining_unknown;
    outermost_ = false;  // Until it is asked for, what is held is of a call before.
    life_.begin_acquire(now, deadline, end, settings);
  }
  // Gives the machine its command. Then submit(), and LockTask::handle_asked().
  [[nodiscard]] Status ask(const Token& token, Instant now) noexcept;
  // Hands what the machine wants to the node. With `listening`, a try that no wake-up has brought asks along how long the hold
  // in the way has left, where a refusal does not tell: the first try after a wake-up is likely to be granted, and plan() asks
  // if it was not.
  void submit(bool listening, Instant now) noexcept {
    if (!machine_.wants_request()) return;
    const bool asks = listening && machine_.state() == LockState::acquiring && !life_.was_woken();
    node_->submit(machine_, requester_, now);
    if (asks) [[unlikely]]
      ask_along(now);
  }
  // What is to be taken back goes to the session. False: there is no place for it, and the machine keeps it.
  [[nodiscard]] bool pay() noexcept { return pay(machine_, *node_, requester_); }
  [[nodiscard]] static bool pay(LockMachine& machine, Node& node, void* requester) noexcept;
  // As LockTask::plan(), after an attempt that found the lock busy or the server not fit.
  void plan(Instant now, ListenSet confirmed, std::uint16_t random) noexcept;
  // Nobody will wake it any more.
  void plan_to_poll(Instant now, std::uint16_t random) noexcept { life_.plan_anew(now, 0, remaining_, random); }

  // C. Inputs.
  // A reply to the machine's request, over this node: its own handle_reply(), and what the node's witness is told of it.
  static void take(LockMachine& machine, const Node& node, const Reply& reply, Instant now) noexcept {
    if (node.config().meter == nullptr) [[likely]]
      machine.handle_reply(reply, now);
    else
      node.config().meter->table->reply(*node.config().meter, machine, reply, now);
  }
  // For Witness::Table: the same of who has a witness.
  static void tell_reply(Witness& witness, LockMachine& machine, const Reply& reply, Instant now) noexcept;
  // It was granted without asking: nobody had it since its last release.
  static void tell_grant(const LockMachine& machine, const Node& node) noexcept {
    if (node.config().meter != nullptr) [[unlikely]]
      node.config().meter->tell(Seen::acquired, machine.key().bytes());
  }
  // The hold is lost, which is said once. `unnoticed`: its release has found that out.
  static void tell_loss(const LockMachine& machine, const Node& node, bool unnoticed) noexcept;
  // A reply to the requester, beside what the machine makes of it. True: it tells more of the hold in the way, and plan_anew()
  // is to follow.
  [[nodiscard]] bool note(const Reply& reply) noexcept;
  void plan_anew(Instant now, ListenSet confirmed, std::uint16_t random) noexcept {
    life_.plan_anew(now, confirmed, remaining_, random);
  }

 private:
  [[nodiscard]] bool take_answer(const Reply& reply) noexcept;
  void ask_along(Instant now) noexcept;

  LockMachine& machine_;
  Node* node_;
  void* requester_;
  union {
    Question* asked_ = nullptr;  // Of a question; nullptr: it is for the lock's remaining time.
    const LockTiming* timing_;   // Of an acquire; nullptr: the machine's.
  };
  std::int64_t remaining_ = remaining_unknown;  // Of the hold in the way, or what the question was answered.
  std::uint32_t question_ = 1;  // The question's number: an odd one, as an attempt's own question has an even one.
  bool question_waits_ = false;
  bool outermost_ = false;  // Of an acquire: the hold is of this call.
  Status question_outcome_ = Status::ok;
  LockTask life_;
};

}  // namespace holdfast
