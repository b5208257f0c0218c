// SPDX-License-Identifier: MIT
//
// What all clients of one quorum must agree on, and who counts.
#pragma once

#include "holdfast/core/instant.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

struct Witness;

struct QuorumConfig {
  // The longest lease of any client of this quorum: one setting for all of them. A longer one is refused here.
  Duration max_lease = lease_default;
  // Off: nodes vote at once after a restart. Only where they keep what they have answered (appendfsync always). A node that does
  // not tell its run id has no vote all the same.
  bool restart_guard = true;
  // Who counts what becomes of the quorum's locks, as ClientConfig::meter; and what crosses the wire to the nodes whose own
  // configuration has none. nullptr: nobody.
  Witness* meter = nullptr;

  [[nodiscard]] constexpr bool valid() const noexcept { return max_lease >= lease_min && max_lease <= lease_max; }
};

}  // namespace holdfast
