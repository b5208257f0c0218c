// SPDX-License-Identifier: MIT
//
// Theorem: two quorums of one name on nodes that keep their data, under every order of requests, executions, replies, losses,
// breaks, restarts and moved names, and whatever their owners do:
//   1. No two of them are held at once.
//   2. While one is held, a majority of servers keeps its token until valid_until() at least. (redlock.md, rules 1, 2 and 10)
//   3. Of a fenced kind, every grant has a larger fence than those before. (rules 11 and 12)
//   4. invariants() of both machines hold after each step, and no assertion of the library fails.
//
// Input: the decisions of a quorum_world.hpp:
//   one byte    how many nodes, the kind of lock, and whether names move
//   one byte    the seed of the generator, which decides the rest of a large draw
//   the rest    what happens. A draw takes one byte or two, by its bound; the world ends with the last byte.
#include <cstddef>
#include <string>

#include "holdfast/core/quorum_kinds.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "quorum_world.hpp"
#include "theorem.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr std::size_t sizes[] = {1, 2, 3, 4, 5, 9};
const LockKind* const kinds[] = {&mutex_kind, &quorum_fenced_mutex_kind, &reentrant_kind, &quorum_fenced_kind};
constexpr std::size_t steps_max = 2000;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const std::size_t choice = input.byte();
  const std::uint64_t seed = input.byte();
  const std::string_view rest = input.rest();
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(rest.data());
  sim::DecisionBytes bytes{begin, begin + rest.size()};
  QuorumWorld world(seed, *kinds[choice / 6 % 4], sizes[choice % 6], false, choice / 24 % 2 != 0, &bytes);
  for (std::size_t step = 0; step < steps_max && bytes.next != bytes.end; ++step) {
    world.step();
    const std::string at = "step " + std::to_string(step);
    HOLDFAST_THEOREM(world.both_held == 0, at);
    HOLDFAST_THEOREM(world.promises_broken == 0, at);
    HOLDFAST_THEOREM(world.fences_broken == 0, at);
    HOLDFAST_THEOREM(world.invariants_broken == 0, at);
    HOLDFAST_THEOREM(world.surprises == 0, at);
  }
  return 0;
}
