// SPDX-License-Identifier: MIT
//
// A reentrant lock of a quorum that is its owner's only one.
#pragma once

#include <cstddef>

#include "holdfast/redlock.hpp"

template <std::size_t node_count>
struct SoleQuorumOwner {
  holdfast::QuorumOwnerOf<node_count, 1> owner;
  explicit SoleQuorumOwner(holdfast::QuorumClient& quorum) : owner(quorum) {}
};

template <template <std::size_t> class Lock, std::size_t node_count>
class SoleRedlock : private SoleQuorumOwner<node_count>, public Lock<node_count> {
 public:
  SoleRedlock(holdfast::QuorumClient& quorum, holdfast::BytesArgument key, const holdfast::QuorumTiming& timing = {})
      : SoleQuorumOwner<node_count>(quorum), Lock<node_count>(SoleQuorumOwner<node_count>::owner, key, timing) {}
};
