// SPDX-License-Identifier: MIT
//
// AckLane finds out whether enough replicas have a grant, for any number of holds, over a Node of its own. It does no I/O and
// reads no clock.
//
// The server's command for that is WAIT: it answers once so many replicas have confirmed what its own connection wrote last,
// and holds that connection up until then. So nothing else goes over this one. What it writes is the renewal of the hold
// by a millisecond more than its lease: that write stands behind the grant in the stream which replicas read, so a replica
// that has it has the grant, too. Renewals and their WAIT leave in one send.
//
// One WAIT is on its way at a time, and answers for all holds that were renewed before it: those that come meanwhile go
// together with the next one. proto/topology.md says what a confirmation is worth.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/core/node.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

class NodeTask;

// What a WAIT takes of the send buffer, whatever its numbers are.
inline constexpr std::size_t ack_wait_size_max = 64;

// How long a call waits for the confirmation of a grant: behind another WAIT and for its own, with a connection to be made. Zero:
// the configuration asks for none.
[[nodiscard]] constexpr Duration acks_wait_of(const ClientConfig& config) noexcept {
  return config.acks == 0 ? Duration::zero() : 2 * config.acks_timeout + config.request_timeout;
}

// What a NodeTask is to a lane: a hold that wants to be confirmed. It stays where it is while it is in one.
class AckRequest {
 public:
  AckRequest(const AckRequest&) = delete;
  AckRequest& operator=(const AckRequest&) = delete;

  // The replicas' answer is to come.
  [[nodiscard]] bool pending() const noexcept { return state_ != State::told; }
  // Of the last one: ok, too_few_replicas; lock_lost: the server that was asked does not have the hold; or why nobody knows.
  [[nodiscard]] Status outcome() const noexcept { return outcome_; }

 private:
  friend class AckLane;
  friend class NodeTask;
  enum class State : std::uint8_t {
    told,     // It is in no lane.
    waiting,  // To be renewed.
    sent,     // Its renewal is on its way.
    renewed,  // The hold is there, and its WAIT is on its way.
  };
  AckRequest() noexcept = default;

  AckRequest* next_ = nullptr;
  std::uint32_t ticket_ = 0;  // Of its renewal.
  State state_ = State::told;
  Status outcome_ = Status::ok;
};

class AckLane {
 public:
  AckLane() noexcept = default;
  AckLane(const AckLane&) = delete;
  AckLane& operator=(const AckLane&) = delete;

  // A. Questions.
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  // False where the members contradict each other: a defect of this class.
  [[nodiscard]] bool invariants() const noexcept;

  // B. Commands.
  // The request waits from now on. REQUIRES: it is in no lane; its machine holds, and stays.
  void enter(AckRequest& request) noexcept;
  // Its answer is not wanted any more, where one is to come.
  void leave(AckRequest& request) noexcept;
  // Asks what can be asked now. `node` is always the same, and carries nothing else; its config() says how many replicas are
  // wanted. Where no connection is to be had, the requests are told why. REQUIRES: its send buffer has room for the longest
  // request and ack_wait_size_max.
  void work(Node& node, Instant now) noexcept;
  // Its node is given up, or goes to another server: who is in it is told this, and no reply that is still to come changes it.
  void give_up(Status why) noexcept { tell_all(why); }
  // The owner's connection is closed for good: nobody is told any more.
  void forget() noexcept;

  // C. Inputs. A reply of the node's. False: no server says so, and the node's session must fail().
  [[nodiscard]] bool handle_reply(const Reply& reply, const KeptConfig& config) noexcept;

  // D. Outputs. After work() and handle_reply(), poll until it is nullptr: whose request is answered, and left the lane.
  [[nodiscard]] NodeTask* poll_told() noexcept;

 private:
  [[nodiscard]] AckRequest* find(std::uint32_t ticket) noexcept;
  static void tell(AckRequest& request, Status outcome) noexcept;
  void tell_all(Status outcome) noexcept;
  [[nodiscard]] bool renew(AckRequest& request, Node& node, Instant now) noexcept;
  void ask_wait(Node& node, Instant now) noexcept;
  [[nodiscard]] bool handle_renewed(const Reply& reply) noexcept;
  [[nodiscard]] bool handle_counted(const Reply& reply, std::uint8_t wanted) noexcept;

  AckRequest* first_ = nullptr;  // In the order in which they came.
  std::uint32_t tickets_ = 0;
  bool waits_ = false;  // Renewals are on their way, and behind them a WAIT.
};

}  // namespace holdfast
