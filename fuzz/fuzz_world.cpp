// SPDX-License-Identifier: MIT
//
// Theorem: whatever happens, and in whichever order, in a simulated world of the blocking clients that ship, no checker
// of tests/sim/checkers.hpp finds anything: two never believe to hold one lock, nobody believes longer than the server
// keeps the key, nothing of another's is touched, what is asked is answered in time, and so on. No assertion of the
// library fails. (All of proto/lock.md that a client can be blamed for.)
//
// Input: the decisions that `sim` draws from a generator:
//   one byte        the kind of the world, modulo their number
//   two bytes       the seed of the generator, which decides behind the last byte
//   one byte        how many pairs of bytes draw the plan
//   those bytes     the plan: clients, locks, clocks, weights of the faults
//   the rest        the world as it goes: which fault when, who runs first, how late bytes arrive, what a client does
// A draw takes one byte or two, by its bound. Tokens come from the generator alone.
#include <algorithm>
#include <cstdio>
#include <string>

#include "plan.hpp"
#include "theorem.hpp"
#include "trace.hpp"
#include "world.hpp"

using namespace holdfast::sim;

namespace {

// So that an input is a matter of milliseconds. Behind the faults everybody winds down, and that takes what it takes.
constexpr std::size_t clients_max = 4;
constexpr std::uint64_t fault_events_max = 600;
constexpr std::uint64_t events_max = 4000;
constexpr std::size_t lines_shown = 80;

void print_end(const Plan& plan, DecisionBytes bytes) {
  World world(plan, {.recorded = true, .events_max = events_max, .bytes = &bytes});
  world.run();
  const std::vector<Trace::Line>& lines = world.trace().lines();
  for (std::size_t index = lines.size() < lines_shown ? 0 : lines.size() - lines_shown; index < lines.size(); ++index)
    std::fprintf(stderr, "%s %s\n", time_text(lines[index].at).c_str(), lines[index].text.c_str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  holdfast::testing::FuzzInput input(data, size);
  const auto kind = static_cast<WorldKind>(input.byte() % world_kind_names.size());
  const std::uint64_t seed = input.number(0, 65'535);
  const std::string_view of_plan = input.bytes(std::size_t{2} * input.byte());
  const std::string_view of_world = input.rest();
  const auto decisions = [](std::string_view bytes) {
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
    return DecisionBytes{begin, begin + bytes.size()};
  };

  DecisionBytes plan_bytes = decisions(of_plan);
  Plan plan = draw_plan(seed, kind, &plan_bytes);
  plan.events_max = std::min(plan.events_max, fault_events_max);
  plan.clients.resize(std::min(plan.clients.size(), clients_max));
  DecisionBytes world_bytes = decisions(of_world);
  World world(plan, {.events_max = events_max, .bytes = &world_bytes});
  world.run();
  if (!world.failed()) return 0;
  const Failure failure = world.failure();
  print_end(plan, decisions(of_world));
  HOLDFAST_THEOREM(failure.checker.empty(), failure.checker + ": " + failure.text + " at " + time_text(failure.at) +
                                                " s, event " + std::to_string(failure.event));
  return 0;
}
