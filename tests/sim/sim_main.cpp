// SPDX-License-Identifier: MIT
//
// sim runs simulated worlds: one of a seed, so many, or as many as fit into some minutes.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "canary.hpp"
#include "checkers.hpp"
#include "timeline.hpp"
#include "world.hpp"

namespace holdfast::sim {
namespace {

using Clock = std::chrono::steady_clock;

struct Choices {
  std::vector<std::uint64_t> seeds;
  std::uint64_t first = 0;  // Of fresh ones.
  double minutes = 0;
  std::uint64_t worlds = 0;
  std::string world = "any";
  std::string canary;
  std::string output = "sim";  // Beginning of the names of files.
  bool trace = false;
  bool twice = false;
  bool all_canaries = false;
  bool list = false;
  double canary_seconds = 60;
};

struct Sum {
  std::uint64_t worlds = 0;
  std::uint64_t events = 0;
  SimTime time = 0;
  Figures figures;
  FaultCounts faults{};
};

WorldKind kind_of(const std::string& name) {
  for (std::size_t index = 0; index < world_kind_names.size(); ++index)
    if (world_kind_names[index] == name) return static_cast<WorldKind>(index);
  return WorldKind::any;
}

void add(Sum& sum, World& world) {
  ++sum.worlds;
  sum.events += world.events();
  sum.time += world.now();
  const Figures& figures = world.checkers().figures();
  sum.figures.grants += figures.grants;
  sum.figures.held += figures.held;
  sum.figures.renewals += figures.renewals;
  sum.figures.steps += figures.steps;
  sum.figures.releases += figures.releases;
  sum.figures.lost += figures.lost;
  sum.figures.busy += figures.busy;
  sum.figures.unclear += figures.unclear;
  sum.figures.writes += figures.writes;
  sum.figures.writes_refused += figures.writes_refused;
  sum.figures.overlaps_excused += figures.overlaps_excused;
  sum.figures.commands += figures.commands;
  for (int fault = 0; fault < fault_count; ++fault)
    sum.faults[static_cast<std::size_t>(fault)] += world.fault_counts()[static_cast<std::size_t>(fault)];
}

void print(const Sum& sum, double seconds) {
  const double hours = static_cast<double>(sum.time) / 3.6e12;
  std::printf("%" PRIu64 " worlds, %" PRIu64
              " events, %.1f simulated hours in %.1f s: %.3f hours/s, %.0f times real time\n",
              sum.worlds, sum.events, hours, seconds, hours / seconds, hours * 3600 / seconds);
  const Figures& f = sum.figures;
  std::printf("%" PRIu64 " grants (%.0f/s), %" PRIu64 " told, %" PRIu64 " renewals, %" PRIu64 " steps, %" PRIu64
              " releases, %" PRIu64 " busy, %" PRIu64 " unclear, %" PRIu64 " lost, %" PRIu64 " commands\n",
              f.grants, static_cast<double>(f.grants) / seconds, f.held, f.renewals, f.steps, f.releases, f.busy,
              f.unclear, f.lost, f.commands);
  std::printf("%" PRIu64 " fenced writes, %" PRIu64 " refused; %" PRIu64 " overlaps outside the model\nfaults:",
              f.writes, f.writes_refused, f.overlaps_excused);
  std::string absent;
  for (int fault = 0; fault < fault_count; ++fault) {
    const std::string name(to_string(static_cast<Fault>(fault)));
    const std::uint64_t count = sum.faults[static_cast<std::size_t>(fault)];
    if (count == 0)
      absent += (absent.empty() ? "" : ", ") + name;
    else
      std::printf(" %s %" PRIu64 ",", name.c_str(), count);
  }
  std::printf("\n");
  if (!absent.empty()) std::printf("never fired: %s\n", absent.c_str());
}

std::unique_ptr<World> run(std::uint64_t seed, const Choices& choices, const Canary* canary, bool recorded,
                           const Plan* changed = nullptr) {
  const Plan plan = changed != nullptr ? *changed : draw_plan(seed, kind_of(choices.world));
  auto world = std::make_unique<World>(plan, WorldOptions{.recorded = recorded, .canary = canary});
  world->run();
  return world;
}

// Faults that the failure does not need are left out, one after the other, as long as the same checker finds it; and of
// what is left the world that fails first is kept.
Plan shorten(std::uint64_t seed, const Choices& choices, const Canary* canary, const std::string& checker) {
  Plan plan = draw_plan(seed, kind_of(choices.world));
  std::uint64_t events = run(seed, choices, canary, false, &plan)->events();
  for (bool again = true; again;) {
    again = false;
    for (std::size_t fault = 0; fault < fault_count; ++fault) {
      if (plan.weights[fault] == 0) continue;
      Plan without = plan;
      without.weights[fault] = 0;
      const auto world = run(seed, choices, canary, false, &without);
      if (!world->failed() || world->failure().checker != checker || world->events() > events * 2) continue;
      plan = without;
      events = world->events();
      again = true;
    }
  }
  return plan;
}

void report(std::uint64_t seed, const Choices& choices, const Canary* canary) {
  auto first = run(seed, choices, canary, true);
  const Failure failure = first->failure();
  std::printf("\nseed %" PRIu64 " FAILED after %" PRIu64 " events at %s s: %s: %s\n", seed, failure.event,
              time_text(failure.at).c_str(), failure.checker.c_str(), failure.text.c_str());
  first.reset();
  const Plan plan = shorten(seed, choices, canary, failure.checker);
  const auto world = run(seed, choices, canary, true, &plan);
  std::printf("shortest: %" PRIu64 " events, to %s s, with", world->events(), time_text(world->now()).c_str());
  for (std::size_t fault = 0; fault < fault_count; ++fault)
    if (plan.weights[fault] != 0) std::printf(" %s,", std::string(to_string(static_cast<Fault>(fault))).c_str());
  std::printf("\n  %s: %s\n", world->failure().checker.c_str(), world->failure().text.c_str());
  const std::string name = choices.output + "-" + std::to_string(seed);
  std::ofstream text(name + ".txt");
  const std::vector<Trace::Line>& lines = world->trace().lines();
  for (const Trace::Line& line : lines) text << time_text(line.at) << ' ' << line.text << '\n';
  for (std::size_t index = lines.size() < 60 ? 0 : lines.size() - 60; index < lines.size(); ++index)
    std::printf("  %s %s\n", time_text(lines[index].at).c_str(), lines[index].text.c_str());
  const SimTime from = std::max<SimTime>(0, world->now() - 3 * plan.lease_max - second);
  std::ofstream(name + ".svg") << timeline_svg(
      world->trace(), from, world->now() + millisecond,
      "seed " + std::to_string(seed) + ": " + world->failure().checker + ": " + world->failure().text);
  std::printf("trace in %s.txt, timeline in %s.svg; again: sim --seed %" PRIu64 " --world %s\n", name.c_str(),
              name.c_str(), seed, choices.world.c_str());
}

// True if it was found, by a checker that its list names.
bool hunt(const Canary& canary, const Choices& choices) {
  const auto begin = Clock::now();
  for (std::uint64_t seed = choices.first;; ++seed) {
    const auto world = run(seed, choices, &canary, false);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (world->failed()) {
      const Failure& failure = world->failure();
      const bool named =
          (',' + std::string(canary.checkers) + ',').find(',' + failure.checker + ',') != std::string::npos;
      if (named || seconds > choices.canary_seconds) {
        std::printf("%-28s %s by \"%s\" in world %" PRIu64 ", %.1f s%s\n", std::string(canary.name).c_str(),
                    named ? "found" : "FOUND BY ANOTHER", failure.checker.c_str(), seed - choices.first + 1, seconds,
                    choices.canary.empty() ? "" : ("\n  " + failure.text).c_str());
        return named;
      }
    }
    if (seconds > choices.canary_seconds) {
      std::printf("%-28s NOT FOUND in %.0f s\n", std::string(canary.name).c_str(), seconds);
      return false;
    }
  }
}

int run_canaries(const Choices& choices) {
  if (choices.list) {
    for (const Canary& canary : canaries())
      std::printf("%-28s %s\n", std::string(canary.name).c_str(), std::string(canary.what).c_str());
    return 0;
  }
  int missed = 0;
  if (!choices.all_canaries) {
    const Canary* const canary = find_canary(choices.canary);
    if (canary == nullptr) {
      std::fprintf(stderr, "sim: there is no canary %s; --list-canaries names them\n", choices.canary.c_str());
      return 2;
    }
    return hunt(*canary, choices) ? 0 : 1;
  }
  for (const Canary& canary : canaries()) {
    missed += hunt(canary, choices) ? 0 : 1;
    std::fflush(stdout);
  }
  std::printf("%zu canaries, %d alive\n", canaries().size(), missed);
  return missed == 0 ? 0 : 1;
}

int run_worlds(const Choices& choices) {
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Sum sum;
  std::uint64_t hash = 0;
  for (std::uint64_t number = 0;; ++number) {
    const bool listed = !choices.seeds.empty();
    if (listed ? number == choices.seeds.size()
               : (choices.worlds != 0 ? number == choices.worlds : elapsed() > choices.minutes * 60))
      break;
    const std::uint64_t seed = listed ? choices.seeds[number] : choices.first + number;
    const auto world = run(seed, choices, nullptr, choices.trace);
    add(sum, *world);
    hash = world->trace().hash();
    if (choices.trace)
      for (const Trace::Line& line : world->trace().lines())
        std::printf("%s %s\n", time_text(line.at).c_str(), line.text.c_str());
    if (world->failed()) {
      print(sum, elapsed());
      report(seed, choices, nullptr);
      std::printf("seed %" PRIu64 " trace %016" PRIx64 "\n", seed, hash);
      return 1;
    }
    if (choices.twice && run(seed, choices, nullptr, true)->trace().hash() != hash) {
      std::printf("seed %" PRIu64 " is not the same twice\n", seed);
      return 1;
    }
  }
  print(sum, elapsed());
  if (choices.seeds.size() == 1) std::printf("seed %" PRIu64 " trace %016" PRIx64 "\n", choices.seeds[0], hash);
  return 0;
}

int main(int argc, char** argv) {
  Choices choices;
  CLI::App app{"Runs simulated worlds: the code that ships, in a world that lies to it."};
  app.add_option("--seed", choices.seeds, "run the world of this seed, or of these");
  app.add_option("--minutes", choices.minutes, "run fresh worlds for so long");
  app.add_option("--worlds", choices.worlds, "run so many fresh worlds");
  app.add_option("--first", choices.first, "the first of the fresh seeds; without, a random one");
  app.add_option("--world", choices.world, "what may go wrong: any, calm, network, servers, processes, data, clocks")
      ->check(CLI::IsMember(std::vector<std::string>(world_kind_names.begin(), world_kind_names.end())));
  app.add_option("--output", choices.output, "how the names of a failure's files begin");
  app.add_flag("--trace", choices.trace, "print every event");
  app.add_flag("--twice", choices.twice, "run each world twice and compare");
  app.add_option("--canary", choices.canary, "a wrong client, which a checker must find");
  app.add_flag("--canaries", choices.all_canaries, "all of them");
  app.add_flag("--list-canaries", choices.list, "say what they do wrong");
  app.add_option("--canary-seconds", choices.canary_seconds, "how long to look for each");
  CLI11_PARSE(app, argc, argv);
  if (choices.list || choices.all_canaries || !choices.canary.empty()) return run_canaries(choices);
  if (choices.seeds.empty()) {
    if (choices.first == 0) choices.first = (std::uint64_t{std::random_device()()} << 16) & 0xffff'ffff'ffff;
    if (choices.minutes == 0 && choices.worlds == 0) choices.minutes = 1;
    std::printf("seeds from %" PRIu64 "\n", choices.first);
    std::fflush(stdout);
  }
  return run_worlds(choices);
}

}  // namespace
}  // namespace holdfast::sim

int main(int argc, char** argv) { return holdfast::sim::main(argc, argv); }
