// SPDX-License-Identifier: MIT
//
// WorldChoice names a world so that it can be run again: its seed, its kind, and what of it is left out.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plan.hpp"
#include "world.hpp"

namespace holdfast::sim {

// What a failure does not need. By default nothing is left out.
struct Narrowing {
  std::bitset<fault_count> without;
  std::uint64_t faults_until = UINT64_MAX;  // No fault is injected behind so many events.
  std::bitset<64> absent;                   // Clients that never start.
};

struct WorldChoice {
  std::uint64_t seed = 0;
  WorldKind kind = WorldKind::any;
  Narrowing narrowing;
};

// False where there is none of that name.
[[nodiscard]] bool find_world_kind(std::string_view name, WorldKind& kind) noexcept;
[[nodiscard]] bool find_fault(std::string_view name, Fault& fault) noexcept;

[[nodiscard]] Plan plan_of(const WorldChoice& choice);
[[nodiscard]] std::unique_ptr<World> run_world(const WorldChoice& choice, const WorldOptions& options);
// The arguments of `sim` that run it again.
[[nodiscard]] std::string arguments_of(const WorldChoice& choice, const Canary* canary);

// The shortest failing prefix: leaves out clients, kinds of faults and the last faults, one after the other, as long as
// the same checker finds something no later than `failure`. A few hundred worlds.
[[nodiscard]] WorldChoice shortest_failure(const WorldChoice& choice, const WorldOptions& options,
                                           const Failure& failure);

// Seeds of a text: one a line, with the kind of its world behind it where it is not `any`; what follows # is a comment.
// False if the text cannot be read or understood; `error` says why.
[[nodiscard]] bool read_seeds(const std::string& path, std::vector<WorldChoice>& seeds, std::string& error);

// In which world each canary was found once. A line is its name and a seed.
using CanarySeeds = std::map<std::string, std::uint64_t, std::less<>>;
[[nodiscard]] bool read_canary_seeds(const std::string& path, CanarySeeds& seeds, std::string& error);

}  // namespace holdfast::sim
