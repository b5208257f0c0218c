// SPDX-License-Identifier: MIT
//
// The ways of taking and releasing a lock on a quorum that bench_quorum compares. Each has connections and a key of its own;
// one operation is one pair: SET key token NX PX 30000 on the nodes, and the compare-and-delete that holdfast uses.
// A reply that is not the expected one throws std::runtime_error.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "address.hpp"
#include "paired_rounds.hpp"

namespace bench {

inline constexpr std::size_t quorum_nodes = 5;
inline constexpr std::size_t quorum_majority = 3;
using Nodes = std::vector<Address>;  // quorum_nodes of them.

// RedlockMutex<5>, whose nodes vote at once. What is not granted is counted in `refused`, which outlives the contender; a
// release that no majority confirmed is, too.
PairedRounds::Run holdfast_quorum_pairs(const Nodes& nodes, std::atomic<std::size_t>& refused);

// The limit: precomputed bytes with the token patched in, sent to all; poll(2) until a majority has answered. The others'
// answers are read with the next.
PairedRounds::Run raw_quorum_pairs(const Nodes& nodes);

// hiredis' synchronous calls, one node after the other, all five of them.
PairedRounds::Run hiredis_quorum_pairs(const Nodes& nodes);

}  // namespace bench
