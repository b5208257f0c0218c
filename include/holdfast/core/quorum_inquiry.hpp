// SPDX-License-Identifier: MIT
//
// QuorumInquiry asks all nodes of a quorum about one lock, or takes it away there: which node is to be asked what, which one's
// word counts, what each has said, and what a majority of all configured nodes says. A driver calls hand_over() in each of its
// turns until it is over(), or give_up(), and then conclude(). It does no I/O. inspection.hpp says what each question does.
//
// Not thread-safe: one owner. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/inquiry.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/core/voter_roll.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

enum class Possession : std::uint8_t {
  unknown,  // Of a quorum: so many nodes are silent that neither is known.
  free,     // Also a semaphore with a permit that is free. Of a quorum: nobody has it on a majority.
  held,
  no_lock,  // Something else stands under the name.
};
// "unknown", "free", "held", "no lock".
[[nodiscard]] const char* to_string(Possession state) noexcept;
// What one server says.
[[nodiscard]] Possession state_of(const LockInfo& info) noexcept;

struct QuorumInfo {
  struct Node {
    Status status = Status::not_connected;  // ok: it has answered.
    LockInfo info;
  };
  Possession state = Possession::unknown;
  // Who holds it by a majority; `remaining` and `count` are the lowest that these nodes tell. `fence` is the largest
  // that they have given out, which may be larger than the holder's. Empty unless it is held.
  LockInfo holder;
  NodeSet agreeing = 0;   // The nodes that say what `state` says;
  NodeSet differing = 0;  // those that say something else: another holder, or another state;
  NodeSet silent = 0;     // and those whose word does not count: no answer, or free where the node may have forgotten.
  std::size_t count = 0;
  Node nodes[nodes_max];

  // Judges what the first `count` nodes have said. A node that is not in `voters` may have forgotten the lock: its word that the
  // lock is free does not count.
  void judge(NodeSet voters) noexcept;
};

struct QuorumRelease {
  // What came of it on each node: ok, or why it was not done, or is not known.
  Status nodes[nodes_max] = {};
  NodeSet released = 0;  // It was held there, and is not any more.
  NodeSet free = 0;      // There was nothing to release.
  NodeSet refused = 0;   // Nothing was done there.
  NodeSet unknown = 0;   // No answer: it may have been done.
  std::size_t count = 0;

  // ok: a majority has nothing of it any more, so that nobody holds it by one. outcome_unknown: it may be so. Or no_quorum: it is
  // not.
  [[nodiscard]] Status verdict() const noexcept;
};

class QuorumInquiry {
 public:
  QuorumInquiry() noexcept = default;
  QuorumInquiry(const QuorumInquiry&) = delete;
  QuorumInquiry& operator=(const QuorumInquiry&) = delete;

  // B. Commands. Each begins an inquiry of so many nodes. The key and what is written to stay until it is over. Errors:
  // invalid_argument; nothing is asked and nothing written then.
  [[nodiscard]] Status begin_info(Key key, std::size_t count, QuorumInfo& info) noexcept;
  [[nodiscard]] Status begin_release(Key key, std::size_t count, QuorumRelease& release) noexcept;

  // A. Questions.
  [[nodiscard]] bool over() const noexcept { return open_ == 0; }

  // C. Inputs.
  // Asks whom there is to ask, as `requester`. `connecting` are those that are waited for; who is neither there nor on its way is
  // passed over, and so is who is no witness.
  void hand_over(VoterRoll& roll, NodeSet connecting, void* requester, Instant now) noexcept;
  // What became of a request. False: it has another shape than was asked for.
  [[nodiscard]] bool take(std::size_t node, Status outcome, bool nothing_ran, const RespValue& reply) noexcept;
  // It is waited for no longer: nobody is asked any more. The nodes whose replies are to be polled now: then it is over.
  [[nodiscard]] NodeSet give_up(VoterRoll& roll, const void* requester, Status why, Instant now) noexcept;
  // What it has come to: the verdict of inspection.hpp. REQUIRES: over().
  [[nodiscard]] Status conclude(const VoterRoll& roll, Instant now) noexcept;

 private:
  void begin(Key key, std::size_t count) noexcept;
  void prepare(std::size_t node) noexcept;
  [[nodiscard]] Arguments ask(std::size_t node) noexcept;
  void refuse(std::size_t node, Status why) noexcept;
  void end(std::size_t node, Status status) noexcept;

  Key key_;
  QuorumInfo* info_ = nullptr;
  QuorumRelease* release_ = nullptr;
  NodeSet open_ = 0;     // Of these more is to come;
  NodeSet to_ask_ = 0;   // those of them are to be asked.
  NodeSet further_ = 0;  // The node is asked once more.
  bool released_ = false;
  Inquiry inquiry_;  // Of the node that asks or answers now.
};

}  // namespace holdfast
