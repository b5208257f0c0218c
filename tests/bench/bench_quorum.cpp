// SPDX-License-Identifier: MIT
//
// What does a lock on five nodes cost? Acquire and release of a mutex, uncontended, over private servers on the loopback
// interface: holdfast beside a raw program that does no more than it must (the limit) and beside hiredis, which asks one node
// after the other; and beside itself with a node that is stopped, and with one that is dead. In one process, in rounds of
// random order: bench_pairs.cpp says how to read the table, cpu_condition.hpp explains the conditions.
//
// All at once saves the waiting, not the servers' work: on one core (same-cpu) there is nothing else, so that what one node
// after the other costs is judged where client and servers have a core each (plain).
#include <sys/utsname.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpu_condition.hpp"
#include "options.hpp"
#include "paired_rounds.hpp"
#include "quorum_contenders.hpp"
#include "redis_server.hpp"
#include "report.hpp"

namespace {

using bench::Address;
using bench::at_most;
using bench::Condition;
using bench::PairedRounds;
using bench::Placement;

constexpr const char* help =
    "usage: bench_quorum [OPTION...]\n"
    "\n"
    "Measures pairs of acquire and release on five nodes against a raw program and hiredis, over private servers: the\n"
    "first of HOLDFAST_SERVERS (separated by colons), else redis-server from the path.\n"
    "\n"
    "  --seconds N         how long, all in all, about (default 30)\n"
    "  --condition WHICH   plain, no-halt, same-cpu or all (default)\n"
    "  --out DIR           where quorum.json and quorum.svg go (default .)\n"
    "  --smoke             everything once, as fast as it goes: the figures mean nothing\n"
    "  --help              this text\n"
    "\n"
    "To profile: run nothing but pairs of one contender, under one condition (all: same-cpu).\n"
    "\n"
    "  --only WHO          holdfast, raw or hiredis\n"
    "  --pairs N           how many (default 1000)\n";

struct Options {
  double seconds = 30;
  std::string condition = "all";
  std::string out = ".";
  bool smoke = false;
  std::string only;
  std::size_t pairs = 1000;
};

// Nothing where the arguments are not understood.
std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  bench::OptionParser parser;
  parser.add("--seconds", &options.seconds);
  parser.add_choice("--condition", options.condition, {"plain", "no-halt", "same-cpu", "all"});
  parser.add("--out", &options.out);
  parser.add("--smoke", &options.smoke);
  parser.add_choice("--only", options.only, {"holdfast", "raw", "hiredis"});
  parser.add("--pairs", &options.pairs);
  if (!parser.parse(argc, argv)) return std::nullopt;
  return options;
}

// Five servers, and one more for each way of failing.
class Cluster {
 public:
  explicit Cluster(const std::string& binary) {
    for (std::size_t index = 0; index < bench::quorum_nodes + 2; ++index)
      servers_.push_back(std::make_unique<RedisServer>(binary));
  }

  [[nodiscard]] RedisServer& to_stop() const { return *servers_[bench::quorum_nodes]; }
  [[nodiscard]] RedisServer& to_kill() const { return *servers_[bench::quorum_nodes + 1]; }
  [[nodiscard]] bench::Nodes nodes() const { return nodes_with(*servers_[bench::quorum_nodes - 1]); }
  // The last node is that one.
  [[nodiscard]] bench::Nodes nodes_with(const RedisServer& last) const {
    bench::Nodes nodes;
    for (std::size_t index = 0; index + 1 < bench::quorum_nodes; ++index)
      nodes.push_back({{}, servers_[index]->port()});
    nodes.push_back({{}, last.port()});
    return nodes;
  }
  [[nodiscard]] std::vector<pid_t> processes() const {
    std::vector<pid_t> processes;
    for (const auto& server : servers_)
      if (server->pid() > 0) processes.push_back(server->pid());
    return processes;
  }

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;
};

// ---- One contender alone -----------------------------------------------------------------------------------------

int run_only(const Options& options, const std::string& binary) {
  const Cluster cluster(binary);
  const std::vector<int> cpus = bench::usable_cpus();
  const Condition condition = bench::conditions_of(options.condition, cpus).back();
  const Placement placement(condition, cluster.processes(), cpus);
  std::atomic<std::size_t> refused{0};
  const PairedRounds::Run run = options.only == "raw"       ? bench::raw_quorum_pairs(cluster.nodes())
                                : options.only == "hiredis" ? bench::hiredis_quorum_pairs(cluster.nodes())
                                                            : bench::holdfast_quorum_pairs(cluster.nodes(), refused);
  run(options.pairs);
  return refused == 0 ? 0 : 1;
}

// ---- The comparison ----------------------------------------------------------------------------------------------

struct Effort {
  std::size_t samples;
  std::size_t pairs_a_sample;
  std::size_t rounds_min;
  std::chrono::nanoseconds share;  // Of one condition.
};

void compare(bench::Report& report, const std::string& binary, Condition condition, const std::vector<int>& cpus,
             const Effort& effort) {
  const std::string group = std::string("five nodes, TCP, ") + bench::to_string(condition);
  const bool plain = condition == Condition::plain;
  const bool same_cpu = condition == Condition::same_cpu;
  const auto promised = [](bool here, double ratio) { return here ? at_most(ratio) : bench::Bound{}; };
  std::atomic<std::size_t> refused{0};
  {
    const Cluster cluster(binary);
    PairedRounds rounds(effort.samples, effort.pairs_a_sample, 1);
    rounds.add("raw", bench::raw_quorum_pairs(cluster.nodes()));
    rounds.add("raw again", bench::raw_quorum_pairs(cluster.nodes()));
    rounds.add("holdfast", bench::holdfast_quorum_pairs(cluster.nodes(), refused));
    rounds.add("hiredis, one by one", bench::hiredis_quorum_pairs(cluster.nodes()));
    rounds.add("holdfast, one stopped", bench::holdfast_quorum_pairs(cluster.nodes_with(cluster.to_stop()), refused));
    rounds.add("holdfast, one dead", bench::holdfast_quorum_pairs(cluster.nodes_with(cluster.to_kill()), refused));
    cluster.to_stop().pause();
    cluster.to_kill().stop();
    const Placement placement(condition, cluster.processes(), cpus);
    rounds.run(effort.share, effort.rounds_min);

    report.add(group, rounds, "raw again", "raw");
    report.add(group, rounds, "holdfast", "raw", promised(same_cpu, 1.10));
    report.add(group, rounds, "holdfast", "hiredis, one by one", promised(plain, 0.33));
    report.add(group, rounds, "holdfast, one stopped", "holdfast", promised(plain || same_cpu, 1.6));
    report.add(group, rounds, "holdfast, one dead", "holdfast", promised(plain || same_cpu, 1.6));
  }
  report.add(
      {group, "refused or not confirmed", static_cast<double>(refused.load()), "pairs", bench::value_at_most(0)});
}

int run_comparison(const Options& options, const std::string& binary) {
  const std::vector<int> cpus = bench::usable_cpus();
  const std::vector<Condition> conditions = bench::conditions_of(options.condition, cpus);
  const std::chrono::duration<double> seconds(options.seconds);
  const auto share = seconds / static_cast<double>(conditions.size());
  const Effort effort = options.smoke ? Effort{2, 2, 2, {}}
                                      : Effort{6, 8, 5, std::chrono::duration_cast<std::chrono::nanoseconds>(share)};
  bench::Report report("holdfast: a pair of acquire and release on five nodes, ratios of one run");
  utsname system{};
  (void)::uname(&system);
  (void)std::printf("%s, %s %s, %zu cores\n", binary.c_str(), system.sysname, system.release, cpus.size());
  for (const Condition condition : conditions) {
    compare(report, binary, condition, cpus, effort);
    report.print_new_rows(stdout);
  }
  (void)std::printf("\n%zu promises missed\n", report.missed());
  const bool written = report.write_json(options.out + "/quorum.json") && report.write_svg(options.out + "/quorum.svg");
  return written ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    (void)std::fputs(help, stdout);
    return 0;
  }
  const std::optional<Options> options = parse_options(argc, argv);
  if (!options) {
    (void)std::fputs(help, stderr);
    return 2;
  }
  const std::vector<std::string> binaries = server_binaries();
  if (binaries.empty()) {
    (void)std::fputs("bench_quorum: skipped, there is no redis-server\n", stderr);
    return 77;
  }
  try {
    return options->only.empty() ? run_comparison(*options, binaries[0]) : run_only(*options, binaries[0]);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "bench_quorum: %s\n", error.what());
    return 1;
  }
}
