// SPDX-License-Identifier: MIT
//
// VoterRoll knows which nodes of a quorum may vote, and why the others may not: who is away, who was restarted (RestartGuard),
// who is the same machine as another. It does no I/O and reads no clock; of the nodes' clients it only asks.
//
// Not thread-safe: one owner.   No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/quorum_config.hpp"
#include "holdfast/quorum_machine.hpp"
#include "holdfast/restart_guard.hpp"

namespace holdfast {

class VoterRoll {
 public:
  struct Voter {
    const Client* client = nullptr;
    RestartGuard guard;
    Instant introduced_at;
    bool introduced = false;  // The handshake of this connection is done, and was looked at.
    std::uint8_t twin = 0;    // One more than the node that is the same machine; 0: none.
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
  [[nodiscard]] bool introduced(std::size_t index) const noexcept { return voters_[index].introduced; }
  // Its connection leads to a machine that has a vote already.
  [[nodiscard]] bool excluded(std::size_t index) const noexcept { return voters_[index].twin != 0; }
  [[nodiscard]] NodeSet voters(Instant now) const noexcept;
  // Of those, the ones where nothing of a hold is to be taken back behind what would be asked now.
  [[nodiscard]] NodeSet repairers(Instant now) const noexcept;
  // ok: a majority may vote. Otherwise same_machine or no_quorum.
  [[nodiscard]] Status verdict(Instant now) const noexcept;
  [[nodiscard]] bool connected() const noexcept;  // A majority is.
  // What keeps this node from voting, or the outcome of its last request. ok: nothing.
  [[nodiscard]] Status status(std::size_t index, Instant now) const noexcept;
  // Seconds until the restarted node votes; 0 when it does.
  [[nodiscard]] std::uint64_t seconds_until_vote(std::size_t index, Instant now) const noexcept;
  // When a node that did not say who it is should be asked again, on a connection of its own; Instant::max(): it did.
  [[nodiscard]] Instant introduction_due(std::size_t index) const noexcept;
  [[nodiscard]] std::size_t compensations_pending() const noexcept;
  // Which nodes did not vote in what failed last, and why: a sentence a node, cut where there is no more room.
  [[nodiscard]] ByteView write_text(MutableBytes space, Instant now) const noexcept;

  // B. Inputs. REQUIRES: size() <= capacity(), and a client for each node.
  void configure(std::size_t size, const QuorumConfig& config) noexcept {
    count_ = size;
    config_ = config;
  }
  // Another server may answer there from now on.
  void enter(std::size_t index, const Client& client) noexcept {
    voters_[index] = Voter();
    voters_[index].client = &client;
  }
  // The handshake is done: who is that? The nodes for which excluded() is to be looked at again.
  [[nodiscard]] NodeSet introduce(std::size_t index, Instant now) noexcept;
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
  // What the nodes said in what has just failed.
  void note(const QuorumMachine& machine) noexcept;

 private:
  [[nodiscard]] bool guarded(const Voter& voter, Instant now) const noexcept {
    return config_.restart_guard && voter.guard.verdict(now) != RestartGuard::Verdict::votes;
  }

  Voter* voters_;
  std::size_t capacity_;
  std::size_t count_ = 0;
  QuorumConfig config_;
};

}  // namespace holdfast
