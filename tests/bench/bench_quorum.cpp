// SPDX-License-Identifier: MIT
//
// What does a lock on five nodes cost? Acquire and release of a mutex, uncontended, over private servers on the loopback
// interface: holdfast beside a raw program that does no more than it must (the limit) and beside hiredis, which asks one node
// after the other; and beside itself with a node that is stopped, and with one that is dead. In one process, in rounds of
// random order: bench_pairs.cpp says how to read the table, cpu_condition.hpp explains the conditions.
//
// All at once saves the waiting, not the servers' work: on one core (same-cpu) there is nothing else, so that what one node
// after the other costs is judged where client and servers have a core each (plain).
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpu_condition.hpp"
#include "harness.hpp"
#include "paired_rounds.hpp"
#include "quorum_contenders.hpp"
#include "redis_server.hpp"
#include "report.hpp"

namespace {

using bench::Address;
using bench::at_most;
using bench::Condition;
using bench::Effort;
using bench::Harness;
using bench::PairedRounds;
using bench::Placement;

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

void run_only(Harness& harness) {
  const Cluster cluster(harness.binaries()[0]);
  const Placement placement(harness.conditions().back(), cluster.processes(), harness.cpus());
  std::atomic<std::size_t> refused{0};
  const PairedRounds::Run run = harness.only() == "raw"       ? bench::raw_quorum_pairs(cluster.nodes())
                                : harness.only() == "hiredis" ? bench::hiredis_quorum_pairs(cluster.nodes())
                                                              : bench::holdfast_quorum_pairs(cluster.nodes(), refused);
  run(harness.pairs());
  if (refused != 0) throw std::runtime_error("pairs were refused or not confirmed");
}

// ---- The comparison ----------------------------------------------------------------------------------------------

void compare(Harness& harness, Condition condition) {
  bench::Report& report = harness.report();
  const Effort effort = harness.effort(harness.conditions().size(), 6, 2);
  const std::size_t pairs_a_sample = harness.smoke() ? 2 : 8;
  const std::string group = std::string("five nodes, TCP, ") + bench::to_string(condition);
  const bool plain = condition == Condition::plain;
  const bool same_cpu = condition == Condition::same_cpu;
  const auto promised = [](bool here, double ratio) { return here ? at_most(ratio) : bench::Bound{}; };
  std::atomic<std::size_t> refused{0};
  {
    const Cluster cluster(harness.binaries()[0]);
    PairedRounds rounds(effort.samples, pairs_a_sample, 1);
    rounds.add("raw", bench::raw_quorum_pairs(cluster.nodes()));
    rounds.add("raw again", bench::raw_quorum_pairs(cluster.nodes()));
    rounds.add("holdfast", bench::holdfast_quorum_pairs(cluster.nodes(), refused));
    rounds.add("hiredis, one by one", bench::hiredis_quorum_pairs(cluster.nodes()));
    rounds.add("holdfast, one stopped", bench::holdfast_quorum_pairs(cluster.nodes_with(cluster.to_stop()), refused));
    rounds.add("holdfast, one dead", bench::holdfast_quorum_pairs(cluster.nodes_with(cluster.to_kill()), refused));
    cluster.to_stop().pause();
    cluster.to_kill().stop();
    const Placement placement(condition, cluster.processes(), harness.cpus());
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

void run_comparison(Harness& harness) {
  for (const Condition condition : harness.conditions()) {
    compare(harness, condition);
    harness.print_new_rows();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness({
      .name = "bench_quorum",
      .purpose = "Measures pairs of acquire and release on five nodes against a raw program and hiredis, over private "
                 "servers: the\n"
                 "first of HOLDFAST_SERVERS (separated by colons), else redis-server from the path.",
      .title = "holdfast: a pair of acquire and release on five nodes, ratios of one run",
      .files = "quorum",
  });
  harness.add_seconds(30, "how long, all in all, about");
  harness.add_condition();
  harness.add_output();
  harness.add_only("To profile: run nothing but pairs of one contender, under one condition (all: same-cpu).",
                   "holdfast, raw or hiredis", "how many (default 1000)", {"holdfast", "raw", "hiredis"});
  return harness.main(
      argc, argv, [&] { run_comparison(harness); }, [&] { run_only(harness); });
}
