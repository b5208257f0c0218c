// SPDX-License-Identifier: MIT
//
// The votes of one Redlock, in place.
#pragma once

#include <cstddef>
#include <utility>

#include "holdfast/core/quorum_machine.hpp"

namespace holdfast {

// One vote a node.
template <std::size_t node_count>
class QuorumVotes {
 public:
  explicit QuorumVotes(const LockKind& kind) noexcept : QuorumVotes(kind, std::make_index_sequence<node_count>()) {}

 protected:
  QuorumVote* pointers_[node_count];

 private:
  template <std::size_t... index>
  QuorumVotes(const LockKind& kind, std::index_sequence<index...>) noexcept
      : pointers_{&votes_[index]...}, votes_{((void)index, QuorumVote(kind))...} {}

  QuorumVote votes_[node_count];
};

}  // namespace holdfast
