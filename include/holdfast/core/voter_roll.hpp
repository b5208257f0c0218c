// SPDX-License-Identifier: MIT
//
// VoterRoll knows which nodes of a quorum may vote, and why the others may not: who is away, who was restarted or promoted
// (RestartGuard), who is the same machine as another. What it has learnt of a node it keeps when the quorum is connected anew,
// by the node's address and run id, and what was promised under a larger max_lease, too. It does no I/O and reads no clock; of
// the nodes' sessions it only asks.
//
// Not thread-safe: one owner.   No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/client_config.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/core/quorum_config.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/core/restart_guard.hpp"

namespace holdfast {

// What is wrong with a configuration of a quorum's node, as validate(). A cluster cannot be one: its replicas have their master's data,
// and its masters have different locks.
[[nodiscard]] ConfigProblem validate_voter(const ClientConfig& config) noexcept;

class VoterRoll {
 public:
  // What is known of a place where a node is asked.
  struct Place {
    std::uint64_t address = 0;  // A number of it, or of the service that sentinels know and of the sentinels; 0: none.
    RestartGuard guard;
  };
  struct Voter {
    Node* node = nullptr;
    Place place;
    Place before;  // Of the node that had this number when the quorum was last connected, until it is connected anew.
    Instant introduced_at;
    bool introduced = false;   // The handshake of this connection is done, and was looked at.
    bool moved = false;        // It led to another server than the connection before.
    std::uint32_t server = 0;  // Who that was: RestartGuard::server().
    std::uint8_t twin = 0;     // One more than the node that is the same machine; 0: none.
    Status status = Status::not_connected;
  };

  // The voters outlive the roll, and are touched by nobody else.
  VoterRoll(Voter* voters, std::size_t capacity) noexcept : voters_(voters), capacity_(capacity) {}
  VoterRoll(const VoterRoll&) = delete;
  VoterRoll& operator=(const VoterRoll&) = delete;

  // A. Questions.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t majority() const noexcept { return majority_of(count_); }
  [[nodiscard]] const QuorumConfig& config() const noexcept { return config_; }
  [[nodiscard]] Node& node(std::size_t index) const noexcept { return *voters_[index].node; }
  [[nodiscard]] bool introduced(std::size_t index) const noexcept { return voters_[index].introduced; }
  // Its connection leads to a machine that has a vote already.
  [[nodiscard]] bool excluded(std::size_t index) const noexcept { return voters_[index].twin != 0; }
  // Whether what an introduced node says of locks counts beside the words of the others. Not that of one that is no server of its
  // own, as far as is known: same_machine, read_only (a replica), or no_quorum (it does not say who it is).
  [[nodiscard]] Status witness(std::size_t index, Instant now) const noexcept;
  // Who answers there: RestartGuard::server().
  [[nodiscard]] std::uint32_t server(std::size_t index) const noexcept { return voters_[index].place.guard.server(); }
  [[nodiscard]] NodeSet voters(Instant now) const noexcept;
  // Whom an acquire may ask,
  [[nodiscard]] Electorate electorate(Instant now) const noexcept { return {voters(now), config_.max_lease}; }
  // and whom a renewal may ask anew: those on which nothing of a hold is to be taken back behind what would be asked now.
  [[nodiscard]] Electorate repairers(Instant now) const noexcept;
  // ok: a majority may vote. Otherwise same_machine or no_quorum.
  [[nodiscard]] Status verdict(Instant now) const noexcept;
  [[nodiscard]] bool connected() const noexcept;  // A majority is.
  // What keeps this node from voting, or the outcome of its last request. ok: nothing.
  [[nodiscard]] Status status(std::size_t index, Instant now) const noexcept;
  // Seconds until the restarted node votes; 0 when it does.
  [[nodiscard]] std::uint64_t seconds_until_vote(std::size_t index, Instant now) const noexcept;
  // When a node that did not say who it is, or that is a replica, should be asked again, on a connection of its own;
  // Instant::max(): it need not.
  [[nodiscard]] Instant introduction_due(std::size_t index) const noexcept;
  [[nodiscard]] std::size_t compensations_pending() const noexcept;
  // Why the last lock was refused, or which nodes did not vote in what failed last: a sentence a node, cut where there is no
  // more room.
  [[nodiscard]] ByteView write_text(MutableBytes space, Instant now) const noexcept;

  // B. Inputs.
  // The quorum is connected, for the first time or anew; nobody is introduced. attach() and enter() follow for each node. Before
  // somebody is, nothing is promised under this configuration, and what was promised before stays.
  // REQUIRES: size() <= capacity().
  void begin(std::size_t size, const QuorumConfig& config, Instant now) noexcept;
  void attach(std::size_t index, Node& node) noexcept { voters_[index].node = &node; }
  // Where the node will be asked. What is known of an address goes with it. At another one than any of before somebody may have
  // answered whom nobody here remembers, unless it is a server that was a node of the quorum already.
  void enter(std::size_t index, const ClientConfig& config) noexcept;
  // The handshake is done: who is that? The nodes for which QuorumMachine::meet() is to be called.
  [[nodiscard]] NodeSet introduce(std::size_t index, Instant now) noexcept;
  // The server that was just introduced is another one than before.
  [[nodiscard]] bool moved(std::size_t index) const noexcept { return voters_[index].moved; }
  // Its connection is gone. Of two that are one, each stays what it is.
  void leave(std::size_t index, Status why) noexcept {
    voters_[index].introduced = false;
    voters_[index].status = why;
  }
  // The same without a reason; and who it is will be asked anew.
  void forget(std::size_t index) noexcept {
    voters_[index].introduced = false;
    voters_[index].twin = 0;
  }
  // They have refused to write, as replicas do: no vote before they say that they are masters.
  void demote(NodeSet nodes, Instant now) noexcept;
  // What the nodes said in what has just failed.
  void note(const QuorumMachine& machine) noexcept;
  // Whether the quorum allows this lease: invalid_argument, and write_text() says why.
  [[nodiscard]] Status permit(Duration lease) noexcept;

 private:
  [[nodiscard]] RestartGuard::Verdict judge(const Voter& voter, Instant now) const noexcept;

  Voter* voters_;
  std::size_t capacity_;
  std::size_t count_ = 0;
  QuorumConfig config_;
  LeasePromise promise_;
  Duration refused_lease_ = Duration::zero();  // Of the last lock, where that was too long.
  Instant begun_at_;                           // This configuration.
  bool strangers_ = false;                     // Who stands at a new address may have taken somebody's place.
};

}  // namespace holdfast
