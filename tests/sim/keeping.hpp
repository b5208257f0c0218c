// SPDX-License-Identifier: MIT
//
// Keeping watches the holds that a program keeps.
//
// kept   one whose server is in reach is not lost: while a program's thread and the server run, and the server's answers
//        come, every hold that is kept is renewed, whatever else the program waits for. Renewals have the right of way.
//
// In reach is a server since nothing hindered the program or the server, for who is connected. Who is not, has the time of
// an attempt that may have been under way, of the longest pause behind it, of a connect and of a handshake. A hold of a quorum
// is not lost while a majority of its nodes has it and is in reach, whatever the others do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "application.hpp"
#include "trace.hpp"

namespace holdfast::sim {

class World;
struct Link;
struct Node;
struct NodeUse;
struct Process;
struct Thread;

class Keeping {
 public:
  explicit Keeping(World& world) : world_(world) {}

  // A connection that was no subscription is closed by its client, after it was of use or has failed.
  void note_lost(const Link& link) const;
  // The slot believes to hold its lock until then, from now on.
  // `there`: the nodes that have it still, by their bits. `robbed`: somebody else had a hand in it.
  void note_belief(Process& process, const Application::Slot& slot, Instant until, NodeSet there, bool robbed);

  [[nodiscard]] std::uint64_t judged() const noexcept { return judged_; }

 private:
  // What the keeper has had to the server since then: all its connections, one that something is wrong with, or none.
  enum class Way : std::uint8_t { there, hindered, lost };

  [[nodiscard]] bool is_kept(const Process& process, const Application::Slot& slot) const;
  // The thread that keeps the slot's hold. nullptr: none does.
  [[nodiscard]] const Thread* keeper_of(const Process& process, const Application::Slot& slot) const;
  // Until when a thread of its own has asked for a name: who has not dialled yet may be waiting for the answer.
  [[nodiscard]] SimTime resolver_until(const Process& process) const;
  // nullptr: any thread of the program, of whose clients a quorum is the only one.
  [[nodiscard]] Way way_of(const Process& process, const Thread* keeper, std::size_t node, SimTime since) const;
  // The latest of what its threads have done there.
  [[nodiscard]] NodeUse use_of(const Process& process, const Thread* keeper, std::size_t node) const;
  // From when on a hold that was confirmed last at that time can be confirmed by the node. None: that is not known.
  [[nodiscard]] std::optional<SimTime> ready_from(Process& process, const Application::Slot& slot, std::size_t node,
                                                  SimTime confirmed) const;
  [[nodiscard]] std::optional<SimTime> majority_from(Process& process, const Application::Slot& slot, NodeSet there,
                                                     SimTime confirmed) const;
  void judge(Process& process, const Application::Slot& slot, Instant until, NodeSet there);

  World& world_;
  std::uint64_t judged_ = 0;
};

}  // namespace holdfast::sim
