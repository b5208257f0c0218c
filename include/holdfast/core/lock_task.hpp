// SPDX-License-Identifier: MIT
//
// LockTask is one call's life, from its start to its Status: an acquire that may wait, a renewal, a release, a question. It
// decides what comes next; a driver tells it what it sees (TaskFacts) and does what step() says (TaskAct). It does no I/O,
// reads no clock and draws no random bytes, and it does not know whether the lock is on one node or on several.
//
//     attempt -> link -> room -> asking -> answer -> over
//        ^        ^                         |^|
//        |        '--- asked in vain -------|||
//        '-------- retry <------------------|||
//                     compensation <--------'||  of a release whose connection went away
//                          confirm <--------->'  of a grant that replicas must have
//
// src/core/task_transitions.hpp has the table. wait_plan.hpp says which outcomes a waiting acquire lives through.
//
// A driver that blocks loops: it does what step() says, and for TaskAct::sleep moves bytes until poll_timeout(). An event loop
// does the same and returns where the other sleeps. Both step again after anything has happened.
//
// Invariant: each call ends, by its deadlines, whatever its facts are; nothing is asked after a cancel but a release.
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/core/wait_plan.hpp"
#include "holdfast/core/witness.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

enum class TaskInput : std::uint8_t;  // src/core/task_transitions.hpp

enum class Call : std::uint8_t { none, acquire, renew, release, question };

enum class TaskStage : std::uint8_t {
  idle,          // No call is in progress.
  attempt,       // An acquire begins an attempt.
  link,          // It needs a connection; of a quorum, a majority that may vote.
  room,          // It needs a place for its request and for the compensation of it.
  asking,        // The driver asks the machine.
  answer,        // The machine's answer is to come.
  confirm,       // It was granted, and replicas are asked whether they have that.
  retry,         // The lock is another's, or the server is not fit: time or a message brings the next attempt.
  compensation,  // Of a release whose connection went away: the server's word may still come.
};

enum class TaskAct : std::uint8_t {
  sleep,    // Nothing, until poll_timeout() or until something happens.
  attempt,  // An attempt begins: what was said of releases so far is settled by it.
  ask,      // Give the machine its command, and tell what it said: handle_asked().
  listen,   // Hear of the release of what is in the way, where the kind says so; then plan().
  confirm,  // It is granted: have the replicas asked.
  keep,     // It is granted: see that it is kept alive, and tell: handle_kept().
  give_up,  // The answer is not wanted any more, for want of time or by a cancel: why_given_up(). What has arrived comes first.
  let_go,  // What was granted, or is to be released, is let go of without waiting for it. Replicas are asked no more.
  over,    // The call is over: status().
};

// Whether requests can be sent.
enum class Link : std::uint8_t {
  ready,
  coming,  // A connection is being made.
  absent,  // None is: link_failure says why the last attempt failed.
  gone,    // None is, and none will be: the client was closed.
};

// What the driver sees now.
struct TaskFacts {
  Instant now;
  Link link = Link::ready;
  Status link_failure = Status::ok;
  bool room = true;            // There is a place, and it is this call's turn.
  bool held = false;           // The machine's hold is valid.
  bool waiting = false;        // The machine's answer, or that to the question, is to come; or the replicas'.
  bool cancelled = false;      // The call is to end.
  bool listening = false;      // Releases of the lock are listened for:
  bool woken = false;          // a message came since the last attempt began,
  bool released = false;       // The machine counts no acquisition any more.
  bool kept = false;           // A grant needs nobody to keep it alive.
  bool unconfirmed = false;    // It counts only when replicas have it.
  ListenSet confirmed = 0;     // and none is missed from now on.
  Status answer = Status::ok;  // The machine's, or that to the question, or the replicas'.
  Instant valid_until;         // Of the machine's hold.
  Witness* witness = nullptr;  // Who is told of grants, refusals and waits; nullptr: nobody.
  ByteView subject{};          // The lock's name, where somebody is told.
};

struct TaskSettings {
  Duration request_timeout = request_timeout_default;
  Duration connect_timeout = Duration::max();  // An attempt waits no longer for a connection, if it is known.
  Duration max_poll = max_poll_default;
  Duration unknown_poll = Duration::max();  // As WaitPlan::Settings.
  // Of several servers: who waited for room so long, or for half of the time that the call has left, asks all the same, and does
  // without those who have none.
  Duration room_timeout = Duration::max();
  // Replicas are asked so long for their confirmation of a grant; zero: they are not asked.
  Duration acks_wait = Duration::zero();
  // A request may be asked once more, and the compensation of a release may be waited for.
  bool one_node = true;
  WaitSpread spread = WaitSpread::upper_half;
};

class LockTask {
 public:
  LockTask() noexcept = default;
  LockTask(const LockTask&) = delete;
  LockTask& operator=(const LockTask&) = delete;

  // A. Questions.
  [[nodiscard]] Call call() const noexcept { return call_; }
  [[nodiscard]] TaskStage stage() const noexcept { return stage_; }
  [[nodiscard]] bool over() const noexcept { return stage_ == TaskStage::idle; }
  // Such a call is in progress.
  [[nodiscard]] bool runs(Call call) const noexcept { return !over() && call_ == call; }
  // Of the last call, once it is over.
  [[nodiscard]] Status status() const noexcept { return status_; }
  [[nodiscard]] Instant deadline() const noexcept { return deadline_; }
  // When an acquire is over, whatever the servers do; but for acks_wait.
  [[nodiscard]] Instant end() const noexcept { return end_; }
  // By when a request that is asked now is to be answered.
  [[nodiscard]] Instant request_deadline(Instant now) const noexcept {
    if (call_ == Call::renew) return deadline_;
    const Instant deadline = now + settings_->request_timeout;
    // Not cut short by the end of the wait: a reply that comes a little later is an answer, a deadline is none.
    return call_ == Call::acquire ? earlier(deadline, end_) : deadline;
  }
  [[nodiscard]] Status why_given_up() const noexcept { return outcome_; }
  // A grant of this call does not count yet.
  [[nodiscard]] bool confirms() const noexcept {
    return !over() && call_ == Call::acquire && settings_->acks_wait != Duration::zero() && !confirmed_;
  }
  // The present attempt comes of a wake-up.
  [[nodiscard]] bool was_woken() const noexcept { return woken_; }
  // The last attempt found another's hold.
  [[nodiscard]] bool busy() const noexcept { return busy_; }
  // When step() has something to do if nothing happens until then; Instant::max(): never.
  [[nodiscard]] Instant poll_timeout(bool woken, ListenSet confirmed) const noexcept;
  // False where the members contradict each other: a defect of this class.
  [[nodiscard]] bool invariants() const noexcept;

  // B. Commands. Each begins a call. REQUIRES: over(); the settings stay until it is over again.
  // Attempts until `deadline`; the last one, made at the deadline, may take until `end`.
  void begin_acquire(Instant now, Instant deadline, Instant end, const TaskSettings& settings) noexcept;
  // A renewal, a release or a question, that is to be asked by the deadline. A renewal, and a question that is asked once more,
  // are to be answered by it, too.
  void begin(Call call, Instant deadline, const TaskSettings& settings) noexcept;

  // C. Inputs.
  // Goes on as far as it can, and says what the driver is to do. Call it again after that is done.
  [[nodiscard]] TaskAct step(const TaskFacts& facts) noexcept;
  // After TaskAct::ask. ok: the machine's answer is to come, or is there. The call waits for it until `until`, or, where it was
  // asked once more, until its own end.
  // Else nothing was asked, and this is why.
  void handle_asked(Status status, Instant until = Instant::max()) noexcept;
  // After TaskAct::keep. Else nobody keeps it alive, and it was let go of.
  void handle_kept(Status status) noexcept;
  // After TaskAct::listen: the next attempt is planned for the case that nobody wakes us. `remaining` is that of the hold in the
  // way, in milliseconds as PTTL says it. `alone`: a minority of the nodes has granted, and is asked to release again, which
  // wakes everybody who waits, this call, too. `random` is drawn evenly from all its values.
  void plan(Instant now, ListenSet confirmed, std::int64_t remaining, bool alone, std::uint16_t random) noexcept;
  // What is tried at the end of the wait is the last attempt, however long this call stands back. After plan(), where attempts
  // may be further apart than a request takes.
  void bound_floor() noexcept;
  // Of a call that only a grant of its own wakes, between attempt and plan(): it is tried for at once. A try that follows
  // another wake-up has its floor.
  void lift_floor() noexcept {
    if (!woken_) plan_.set_floor(attempt_at_);
  }
  // More is known of the hold in the way, or nobody will wake us any more.
  void plan_anew(Instant now, ListenSet confirmed, std::int64_t remaining, std::uint16_t random) noexcept;
  // Subscriptions were lost: nothing is known of releases until they are confirmed anew.
  void forget(ListenSet lost) noexcept { plan_.forget(lost); }
  // The compensation of this release was answered; `deleted`: the key was still there and ours.
  void handle_compensated(bool deleted) noexcept;
  // For Witness::Table: the task has come to another stage.
  static void tell_stage(Witness& witness, LockTask& task, const TaskFacts& facts) noexcept;
  // The call ends here. For a driver that goes away.
  void abandon(Status status) noexcept;

 private:
  [[nodiscard]] TaskInput read(const TaskFacts& facts) noexcept;
  [[nodiscard]] TaskInput read_attempt(const TaskFacts& facts) noexcept;
  [[nodiscard]] TaskInput read_link(const TaskFacts& facts) noexcept;
  [[nodiscard]] TaskInput read_room(const TaskFacts& facts) noexcept;
  [[nodiscard]] TaskInput read_answer(const TaskFacts& facts) noexcept;
  [[nodiscard]] TaskInput begin_confirm(const TaskFacts& facts) noexcept;
  [[nodiscard]] TaskInput read_confirm(const TaskFacts& facts) noexcept;
  [[nodiscard]] TaskInput conclude(Status status, const TaskFacts& facts) noexcept;
  [[nodiscard]] TaskInput cancel() noexcept;
  [[nodiscard]] TaskInput end(Status status) noexcept;
  // From now on the call waits where it stands; true: it has waited long enough.
  [[nodiscard]] bool late(const TaskFacts& facts) noexcept;
  [[nodiscard]] static Duration drawn(Duration most, std::uint16_t random) noexcept;
  template <TaskStage stage>
  TaskAct go_from() noexcept;
  void enter(TaskStage stage) noexcept;

  Call call_ = Call::none;
  TaskStage stage_ = TaskStage::idle;
  Status status_ = Status::ok;
  Status outcome_ = Status::ok;  // What was learnt of the present stage.
  bool only_ = false;            // There is no time to wait: one attempt.
  bool last_ = false;            // The present attempt is the last one.
  bool asked_again_ = false;
  bool woken_ = false;
  bool refused_ = false;    // handle_asked(), handle_kept() or the replicas said why not: outcome_.
  bool confirmed_ = false;  // The replicas have said so.
  bool kept_ = false;       // handle_kept() was called.
  bool given_up_ = false;
  bool busy_ = false;  // The last attempt met another's hold.
  bool planned_ = false;
  enum class Compensated : std::uint8_t { no, answered, deleted } compensated_ = Compensated::no;
  bool wait_told_ : 1 = false;
  std::uint8_t vain_ : 7 = 0;  // Wake-ups that brought another's hold.
  Instant deadline_;
  Instant end_;
  Instant until_;       // Of the present stage; the epoch: it has not been waited yet.
  Instant attempt_at_;  // When the present attempt began.
  Duration spread_ = retry_delay_min;
  const TaskSettings* settings_ = nullptr;
  Instant began_at_;  // Of an acquire.
  WaitPlan plan_;
};

}  // namespace holdfast
