// SPDX-License-Identifier: MIT
//
// QuorumTask is one call of a lock on several nodes: a LockTask that asks a QuorumMachine, over the nodes of a VoterRoll. It
// does no I/O, reads no clock and draws no random bytes.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstdint>

#include "holdfast/core/lock_task.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/core/voter_roll.hpp"

namespace holdfast {

class QuorumTask {
 public:
  // REQUIRES: they outlive it; the votes are the machine's.
  QuorumTask(QuorumMachine& machine, QuorumVote* const* votes, VoterRoll& roll) noexcept
      : machine_(machine), votes_(votes), roll_(roll) {}

  // A. Questions.
  [[nodiscard]] LockTask& life() noexcept { return life_; }
  [[nodiscard]] const LockTask& life() const noexcept { return life_; }
  // What machine and roll say. `connecting`: a node is on its way to be ready. Where there is room, who listens and who cancels
  // is the driver's to add. What was granted and is over before anybody was told is let go of here: hand_over() follows.
  [[nodiscard]] TaskFacts facts(bool connecting, Instant now) noexcept;
  // The answer to what was asked is to come.
  [[nodiscard]] bool waiting() const noexcept {
    return life_.call() == Call::release ? machine_.state() == QuorumState::releasing : machine_.waiting();
  }
  // The nodes are to be asked for something.
  [[nodiscard]] bool wants_room() const noexcept { return life_.call() != Call::release || machine_.count() <= 1; }
  // The nodes that are to be asked have room, but for those that were waited for in vain: `awaited` has the others that have
  // none. Of an acquire, a majority must have it.
  [[nodiscard]] bool enough_room(NodeSet with_room, NodeSet awaited, Instant now) const noexcept;
  // The command that ask() gives needs a token.
  [[nodiscard]] bool wants_token(Instant now) const noexcept {
    return life_.call() == Call::acquire && !(machine_.kind().reentrant && machine_.held(now));
  }

  // Whether the quorum allows the lease that an acquire by this timing, or a renewal, would ask for; as VoterRoll::permit().
  [[nodiscard]] Status permit(const QuorumTiming* timing, Instant now) noexcept;

  // B. Commands.
  // With a `timing`, which stays until the call is over, the hold is acquired by it: the machine's is raised or replaced.
  void begin_acquire(Instant now, Instant deadline, Instant end, const QuorumTiming* timing = nullptr) noexcept {
    timing_ = timing;
    prepare(timing != nullptr ? *timing : machine_.timing());
    life_.begin_acquire(now, deadline, end, settings_);
  }
  void begin(Call call, Instant deadline) noexcept {
    prepare(machine_.timing());
    life_.begin(call, deadline, settings_);
  }
  // Gives the machine its command, of an acquire for the nodes `with_room`, and tells the task. hand_over() follows.
  void ask(const Token& token, NodeSet with_room, Instant now) noexcept;
  // Why there is no token: nothing is asked.
  void refuse(Status why) noexcept { life_.handle_asked(why); }
  // Asks for a renewal. What has just run out on a node is let go of there before it is asked for anew: hand_over() is called
  // before, and follows.
  [[nodiscard]] Status renew(Instant deadline, Instant now) noexcept { return renew(deadline, now, nullptr); }
  // After TaskAct::keep. A hold that was confirmed for one acquisition more has it from here on.
  // Errors: as QuorumMachine::reenter(); too_many_requests where a renewal that was on its way has confirmed it, and for a
  // shorter lease than this acquisition wants.
  [[nodiscard]] Status take_grant() noexcept;
  // After TaskAct::let_go: there is something to let go of. An acquisition more is counted by take_grant() only.
  [[nodiscard]] bool lets_go() const noexcept { return life_.call() == Call::release || !reentering_; }
  // It was granted for the first time.
  [[nodiscard]] bool begins_hold() const noexcept { return !reentering_; }
  // After TaskAct::give_up: what that is to the machine. hand_over() follows.
  void give_up(Instant now) noexcept;
  // As LockTask::plan().
  void plan(Instant now, ListenSet confirmed, std::uint16_t random) noexcept;
  // After something was done to these nodes' machines, or by time. Hands what the machines want to the nodes, until nobody has
  // anything more to say: a request that cannot be sent is an answer. Gives the nodes on which a reply was given up: their
  // replies are to be polled, and the node may be asked again.
  [[nodiscard]] NodeSet hand_over(NodeSet touched, Instant now) noexcept;
  // What the machine has to say: its own poll_event(), of which the quorum's witness is told. `releasing`: its release has begun.
  [[nodiscard]] bool poll_event(QuorumEvent& event, bool releasing, Instant now) noexcept {
    if (!machine_.poll_event(event)) return false;
    if (roll_.config().meter != nullptr) [[unlikely]]
      tell(*roll_.config().meter, event, releasing, now);
    return true;
  }

 private:
  void prepare(const QuorumTiming& timing) noexcept;
  void tell(Witness& witness, QuorumEvent event, bool releasing, Instant now) const noexcept;
  [[nodiscard]] Status renew(Instant deadline, Instant now, const QuorumTiming* timing) noexcept;
  [[nodiscard]] Status ask_to_acquire(const Token& token, NodeSet with_room, Instant now, Instant& until) noexcept;
  [[nodiscard]] Status ask_to_renew(Instant deadline, Instant now, Instant& until) noexcept;

  QuorumMachine& machine_;
  QuorumVote* const* votes_;
  VoterRoll& roll_;
  const QuorumTiming* timing_ = nullptr;  // Of the acquire; nullptr: the machine's.
  bool reentering_ = false;               // The acquire is a renewal of what is held.
  bool fleeting_ = false;                 // What was granted was over before anybody was told.
  TaskSettings settings_;
  LockTask life_;
};

}  // namespace holdfast
