// SPDX-License-Identifier: MIT
//
// sim runs simulated worlds: one of a seed, so many, or as many as fit into some minutes. It ends with 0 where nothing
// was violated, 1 where something was, 2 where it does not understand what it is asked.
#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "canary.hpp"
#include "sitting.hpp"
#include "timeline.hpp"
#include "world_choice.hpp"

namespace holdfast::sim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int exit_violation = 1;
constexpr int exit_usage = 2;
constexpr double minutes_max = 60 * 24 * 365;
constexpr unsigned jobs_max = 64;
constexpr std::size_t lines_shown = 60;

struct Choices {
  std::vector<std::uint64_t> seeds;
  std::string seeds_from;
  std::uint64_t first = 0;  // Of fresh ones.
  double minutes = 0;
  std::uint64_t worlds = 0;
  unsigned jobs = 1;
  std::string world = "any";
  std::vector<std::string> without;
  std::vector<std::string> ignored;  // Checkers.
  std::uint64_t faults_until = UINT64_MAX;
  std::vector<std::size_t> clients;
  std::string canary;
  std::string output = "sim";  // Beginning of the names of files.
  bool trace = false;
  bool twice = false;
  bool hashes = false;
  bool brief = false;
  bool all_canaries = false;
  bool list = false;
  double canary_seconds = 60;
  std::string canary_seeds;  // A file.
};

// CLI11 takes "-1" for a large number and a number that is too large for the largest.
std::string whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && stop == text.data() + text.size();
  return whole ? std::string() : "\"" + text + "\" is no whole number from 0 to 18446744073709551615";
}
// And "nan" for a number in every range.
std::string decimal_number(const std::string& text) {
  const bool decimal = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  return decimal ? std::string() : "\"" + text + "\" is no number of digits and a point";
}

bool complain(const std::string& text) {
  std::fprintf(stderr, "sim: %s\n", text.c_str());
  return false;
}

void print_hash(const WorldChoice& choice, std::uint64_t hash) {
  std::printf("seed %" PRIu64 " trace %016" PRIx64 "\n", choice.seed, hash);
  std::fflush(stdout);
}

// ---- A failure ---------------------------------------------------------------------------------------------------

void print_shortest(const WorldChoice& choice, World& world, SimTime from) {
  std::string clients;
  for (const Process& process : world.processes())
    if (!process.plan->absent) clients += (clients.empty() ? "" : ", ") + std::to_string(process.index);
  std::printf("shortest: %" PRIu64 " events in %s s; clients %s of %zu; faults", world.events(),
              time_text(world.now()).c_str(), clients.c_str(), world.processes().size());
  std::string faults;
  for (std::size_t fault = 0; fault < fault_count; ++fault)
    if (const std::uint64_t count = world.fault_counts()[fault]; count != 0)
      faults += (faults.empty() ? " " : ", ") + std::string(to_string(static_cast<Fault>(fault))) + " " +
                std::to_string(count);
  std::printf("%s", faults.empty() ? " none" : faults.c_str());
  if (choice.narrowing.faults_until != UINT64_MAX)
    std::printf(", none behind event %" PRIu64, choice.narrowing.faults_until);
  std::printf("\n  %s: %s\n  from %s s on:\n", world.failure().checker.c_str(), world.failure().text.c_str(),
              time_text(from).c_str());
}

// Looks for the shortest world that fails so, and shows it.
void report(const WorldChoice& choice, const Failure& failure, const Choices& choices, const Canary* canary) {
  std::printf("\nseed %" PRIu64 " FAILED after %" PRIu64 " events at %s s: %s: %s\n", choice.seed, failure.event,
              time_text(failure.at).c_str(), failure.checker.c_str(), failure.text.c_str());
  std::fflush(stdout);
  const WorldChoice shortest = shortest_failure(choice, {.canary = canary, .ignored = &choices.ignored}, failure);
  const auto world = run_world(shortest, {.recorded = true, .canary = canary, .ignored = &choices.ignored});
  if (!world->failed()) {
    std::printf("  and the shortest world that was found does not fail again: that is a defect of the simulator\n");
    return;
  }
  const std::vector<Trace::Line>& lines = world->trace().lines();
  const std::size_t shown = lines.size() < lines_shown ? 0 : lines.size() - lines_shown;
  print_shortest(shortest, *world, lines[shown].at);
  for (std::size_t index = shown; index < lines.size(); ++index)
    std::printf("  %s %s\n", time_text(lines[index].at).c_str(), lines[index].text.c_str());
  const std::string name =
      choices.output + (canary == nullptr ? "" : "-" + std::string(canary->name)) + "-" + std::to_string(choice.seed);
  std::ofstream text(name + ".txt");
  for (const Trace::Line& line : lines) text << time_text(line.at) << ' ' << line.text << '\n';
  std::ofstream picture(name + ".svg");
  picture << timeline_svg(world->trace(), {.at = world->failure().at,
                                           .checker = world->failure().checker,
                                           .text = world->failure().text,
                                           .world = arguments_of(shortest, canary),
                                           .longest = 3 * world->plan().lease_max + second});
  if (text.flush() && picture.flush())
    std::printf("trace in %s.txt, timeline in %s.svg\n", name.c_str(), name.c_str());
  else
    (void)complain("cannot write " + name + ".txt and .svg");
  std::printf("again: sim %s\n", arguments_of(choice, canary).c_str());
  std::printf("the shortest: sim %s\n", arguments_of(shortest, canary).c_str());
}

// ---- Canaries ----------------------------------------------------------------------------------------------------

bool names(const Canary& canary, const std::string& checker) {
  return (',' + std::string(canary.checkers) + ',').find(',' + checker + ',') != std::string::npos;
}

// True if it was found, by a checker that its list names.
bool hunt(const Canary& canary, WorldChoice choice, const Choices& choices) {
  const auto begin = Clock::now();
  if (choice.kind == WorldKind::any) choice.kind = canary.world;
  for (;; ++choice.seed) {
    const auto world = run_world(choice, {.canary = &canary});
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (world->failed()) {
      const Failure& failure = world->failure();
      const bool named = names(canary, failure.checker);
      if (named || seconds > choices.canary_seconds) {
        std::printf("%-28s %s by \"%s\" in %.1f s, seed %" PRIu64 "\n", std::string(canary.name).c_str(),
                    named ? "found" : "FOUND BY ANOTHER", failure.checker.c_str(), seconds, choice.seed);
        if (!choices.all_canaries) report(choice, failure, choices, &canary);
        return named;
      }
    }
    if (seconds > choices.canary_seconds) {
      std::printf("%-28s NOT FOUND in %.0f s\n", std::string(canary.name).c_str(), seconds);
      return false;
    }
  }
}

// Whether the world in which it was found once still shows it.
bool found_again(const Canary& canary, const CanarySeeds& seeds) {
  const auto old = seeds.find(canary.name);
  if (old == seeds.end()) return false;
  const auto world = run_world({.seed = old->second, .kind = canary.world, .narrowing = {}}, {.canary = &canary});
  if (!world->failed() || !names(canary, world->failure().checker)) return false;
  std::printf("%-28s found by \"%s\" again, seed %" PRIu64 "\n", std::string(canary.name).c_str(),
              world->failure().checker.c_str(), old->second);
  return true;
}

int hunt_all(const WorldChoice& fresh, const Choices& choices) {
  CanarySeeds seeds;
  std::string error;
  if (!choices.canary_seeds.empty() && !read_canary_seeds(choices.canary_seeds, seeds, error)) {
    (void)complain(error);
    return exit_usage;
  }
  int missed = 0;
  for (const Canary& canary : canaries()) {
    if (needs_loops(canary.world) && !has_loops) continue;
    missed += found_again(canary, seeds) || hunt(canary, fresh, choices) ? 0 : 1;
    std::fflush(stdout);
  }
  std::printf("%zu canaries, %d alive\n", canaries().size(), missed);
  return missed == 0 ? 0 : exit_violation;
}

// ---- Worlds ------------------------------------------------------------------------------------------------------

int run_worlds(const SittingPlan& plan, const Choices& choices, const Canary* canary) {
  const bool listed = !plan.listed.empty();
  WorldChoice last;
  std::uint64_t last_hash = 0;
  bool held_back = false;  // The last world's line stands behind the sums.
  const SittingResult result = sit(plan, [&](const WorldChoice& choice, Sum& sum) {
    const auto world = run_world(choice, {.recorded = choices.trace, .canary = canary, .ignored = &choices.ignored});
    const bool failed = world->failed();
    last = choice;
    last_hash = world->trace().hash();
    for (const Trace::Line& line : world->trace().lines())
      std::printf("%s %s\n", time_text(line.at).c_str(), line.text.c_str());
    sum.add(*world);
    if (failed && choices.brief)
      std::printf("%s: %s: %s at %s s\n", arguments_of(choice, canary).c_str(), world->failure().checker.c_str(),
                  world->failure().text.c_str(), time_text(world->failure().at).c_str());
    else if (failed && !choices.hashes)
      report(choice, world->failure(), choices, canary);
    if (choices.twice && run_world(choice, {.recorded = true, .canary = canary})->trace().hash() != last_hash) {
      std::printf("seed %" PRIu64 " is not the same twice\n", choice.seed);
      ++sum.failed;
    }
    held_back = plan.jobs == 1 && !choices.hashes && (listed ? sum.worlds == plan.listed.size() : failed);
    if (!held_back && !choices.brief && (listed || choices.hashes || failed)) print_hash(choice, last_hash);
  });
  if (!choices.hashes) {
    if (!listed && result.taken != 0)
      std::printf("seeds %" PRIu64 " to %" PRIu64 ", %s worlds\n", plan.fresh.seed, plan.fresh.seed + result.taken - 1,
                  choices.world.c_str());
    print(result.sum, result.seconds);
    if (held_back) print_hash(last, last_hash);
  }
  if (result.broken) return exit_violation;
  return result.sum.failed == 0 || choices.hashes ? 0 : exit_violation;
}

// ---- What is asked -----------------------------------------------------------------------------------------------

bool narrow(WorldChoice& choice, const Choices& choices) {
  for (const std::string& name : choices.without) {
    Fault fault{};
    if (!find_fault(name, fault)) return complain("--without: there is no fault \"" + name + "\"");
    choice.narrowing.without.set(static_cast<std::size_t>(fault));
  }
  choice.narrowing.faults_until = choices.faults_until;
  if (choices.clients.empty()) return true;
  const std::size_t count = draw_plan(choice.seed, choice.kind).clients.size();
  for (std::size_t client = 0; client < count; ++client) choice.narrowing.absent.set(client);
  for (const std::size_t client : choices.clients) {
    if (client >= count)
      return complain("--clients: the world of seed " + std::to_string(choice.seed) + " has the clients 0 to " +
                      std::to_string(count - 1) + ", and no " + std::to_string(client));
    choice.narrowing.absent.reset(client);
  }
  return true;
}

bool choose_worlds(const Choices& choices, SittingPlan& plan) {
  if (!find_world_kind(choices.world, plan.fresh.kind)) return complain("--world: there is no " + choices.world);
  if (needs_loops(plan.fresh.kind) && !has_loops)
    return complain("--world: " + choices.world + " need Asio, which this was built without");
  for (const std::uint64_t seed : choices.seeds) {
    plan.listed.push_back({.seed = seed, .kind = plan.fresh.kind, .narrowing = {}});
    if (!narrow(plan.listed.back(), choices)) return false;
  }
  std::string error;
  if (!choices.seeds_from.empty() && !read_seeds(choices.seeds_from, plan.listed, error)) return complain(error);
  plan.jobs = choices.jobs;
  plan.to_the_end = !plan.listed.empty() || choices.hashes || choices.brief;
  plan.worlds = choices.worlds;
  plan.minutes = choices.minutes == 0 ? 1 : choices.minutes;
  plan.fresh.seed = choices.first;
  if (choices.first == 0) plan.fresh.seed = (std::uint64_t{std::random_device()()} << 16) & 0xffff'ffff'ffff;
  return !plan.listed.empty() || narrow(plan.fresh, choices);
}

int main(int argc, char** argv) {
  Choices choices;
  CLI::App app{"Runs simulated worlds: the code that ships, in a world that lies to it."};
  auto* const seed =
      app.add_option("--seed", choices.seeds, "run the world of this seed, or of these")->check(whole_number);
  auto* const from = app.add_option("--seeds-from", choices.seeds_from, "run the worlds that this file lists");
  auto* const minutes = app.add_option("--minutes", choices.minutes, "run fresh worlds for so long (1)")
                            ->check(decimal_number)
                            ->check(CLI::Range(0.001, minutes_max));
  auto* const worlds = app.add_option("--worlds", choices.worlds, "run so many fresh worlds")
                           ->check(whole_number)
                           ->check(CLI::Range(std::uint64_t{1}, UINT64_MAX));
  auto* const first = app.add_option("--first", choices.first, "the first of the fresh seeds; without, a random one")
                          ->check(whole_number);
  app.add_option("--jobs", choices.jobs, "in so many processes (1)")
      ->check(whole_number)
      ->check(CLI::Range(1U, jobs_max));
  app.add_option("--world", choices.world,
                 "what may go wrong, or who is there: any, calm, network, servers, processes, data, clocks, quorum, "
                 "connecting, loops, quorum_loops, sets, sentinels, clusters, acks, handles")
      ->check(CLI::IsMember(std::vector<std::string>(world_kind_names.begin(), world_kind_names.end())));
  app.add_option("--without", choices.without, "leave out these faults, separated by commas")->delimiter(',');
  app.add_option("--ignore", choices.ignored, "what these checkers find is nothing, separated by commas")
      ->delimiter(',');
  app.add_option("--faults-until", choices.faults_until, "inject none behind so many events")->check(whole_number);
  app.add_option("--clients", choices.clients, "start these clients alone, separated by commas")
      ->delimiter(',')
      ->check(whole_number)
      ->needs(seed);
  app.add_option("--output", choices.output, "how the names of a failure's files begin");
  app.add_flag("--trace", choices.trace, "print every event");
  app.add_flag("--twice", choices.twice, "run each world twice and compare");
  app.add_flag("--hashes", choices.hashes, "print the hash of each world and nothing else, whether it fails or not");
  app.add_option("--canary", choices.canary, "a wrong client, which a checker must find; with --seed, in that world");
  app.add_flag("--brief", choices.brief, "say what each failed by in a line, and go on");
  app.add_flag("--canaries", choices.all_canaries, "all of them");
  app.add_flag("--list-canaries", choices.list, "say what they do wrong");
  app.add_option("--canary-seeds", choices.canary_seeds, "look for each in the world that this file names first");
  app.add_option("--canary-seconds", choices.canary_seconds, "how long to look for each (60)")
      ->check(decimal_number)
      ->check(CLI::Range(0.1, 86'400.0));
  for (CLI::Option* const fresh : {minutes, worlds, first}) fresh->excludes(seed)->excludes(from);
  minutes->excludes(worlds);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }

  if (choices.list) {
    for (const Canary& canary : canaries())
      std::printf("%-28s %s\n", std::string(canary.name).c_str(), std::string(canary.what).c_str());
    return 0;
  }
  const Canary* const canary = choices.canary.empty() ? nullptr : find_canary(choices.canary);
  if (canary == nullptr && !choices.canary.empty()) {
    (void)complain("there is no canary " + choices.canary + "; --list-canaries names them");
    return exit_usage;
  }
  if (!has_loops)
    std::fprintf(stderr, "built without Asio: no program runs on a loop, and some seeds are of other worlds\n");
  SittingPlan plan;
  if (!choose_worlds(choices, plan)) return exit_usage;
  if (plan.listed.empty() && !choices.hashes) {
    std::printf("seeds from %" PRIu64 "\n", plan.fresh.seed);
    std::fflush(stdout);
  }
  if (choices.all_canaries) return hunt_all(plan.fresh, choices);
  if (canary != nullptr && plan.listed.empty()) return hunt(*canary, plan.fresh, choices) ? 0 : exit_violation;
  return run_worlds(plan, choices, canary);
}

}  // namespace
}  // namespace holdfast::sim

int main(int argc, char** argv) { return holdfast::sim::main(argc, argv); }
