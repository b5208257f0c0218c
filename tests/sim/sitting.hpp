// SPDX-License-Identifier: MIT
//
// Sitting runs many worlds, in one process or in several, and adds up what happened in them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "checkers.hpp"
#include "fault.hpp"
#include "trace.hpp"
#include "world_choice.hpp"

namespace holdfast::sim {

// Plain, since it goes through a pipe.
struct Sum {
  std::uint64_t worlds = 0;
  std::uint64_t failed = 0;
  std::uint64_t events = 0;
  SimTime time = 0;
  SimTime cpu = 0;  // Of the processes that ran them.
  Figures figures;
  FaultCounts faults{};

  void add(World& world);
  void add(const Sum& other);
};

struct SittingPlan {
  std::vector<WorldChoice> listed;  // Where there are none, fresh ones:
  WorldChoice fresh;                // the seeds from this one on,
  std::uint64_t worlds = 0;         // so many, or as many as fit into
  double minutes = 0;               // so long.
  unsigned jobs = 1;                // Processes. Each takes the next seed when it is done with one.
  bool to_the_end = false;          // Also behind a failure.
};

struct SittingResult {
  Sum sum;
  std::uint64_t taken = 0;  // Worlds that were begun: those of the first so many seeds.
  double seconds = 0;
  bool broken = false;  // A process ended as none should.
};

// Runs one world and adds it to the sum.
using RunOne = std::function<void(const WorldChoice& choice, Sum& sum)>;

[[nodiscard]] SittingResult sit(const SittingPlan& plan, const RunOne& run_one);
void print(const Sum& sum, double seconds);

}  // namespace holdfast::sim
