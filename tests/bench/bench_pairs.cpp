// SPDX-License-Identifier: MIT
//
// What does a lock cost, end to end? Acquire and release, uncontended, over a private server that this program starts:
// holdfast beside raw sockets (the limit) and hiredis, in one process, in rounds of random order. cpu_condition.hpp
// explains the conditions, paired_rounds.hpp how the ratios come about, pair_contenders.hpp who takes part. Prints a
// table and writes results.json and results.svg.
//
// How to read it: a row says how long one pair took, and how its time relates to another row's in the same rounds.
// `raw again` is the A/A control: the same code as `raw` on a second connection. What differs from 1 by less than its
// p10 and p90 is no difference. Ratios below 1.05 can only be had from same-cpu, where nobody waits for a core to wake
// up; those of plain are what a user feels.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu_condition.hpp"
#include "harness.hpp"
#include "holdfast/holdfast.hpp"
#include "pair_contenders.hpp"
#include "paired_rounds.hpp"
#include "patience.hpp"
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

// ---- One contender alone -----------------------------------------------------------------------------------------

// Nothing for a name that is not known.
std::optional<PairedRounds::Run> contender(const std::string& name, const Address& address) {
  if (name == "holdfast") return bench::holdfast_pairs(address);
  if (name == "holdfast-posting") return bench::holdfast_pairs(address, {.posts = true});
  if (name == "holdfast-spinning") return bench::holdfast_pairs(address, {.spins = true});
  if (name == "raw") return bench::raw_pairs(address);
  if (name == "raw-posting") return bench::raw_posting_pairs(address);
  if (name == "raw-spinning") return bench::raw_spinning_pairs(address);
  if (name == "hiredis") return bench::hiredis_pairs(address);
  return std::nullopt;
}

void run_only(const Harness& harness) {
  const auto run = contender(harness.only(), harness.running_server());
  if (!run) throw bench::UsageError("nobody is called " + harness.only());
  (*run)(harness.pairs());
}

// ---- The comparison ----------------------------------------------------------------------------------------------

// A pool of random bytes lasts for sixteen tokens: a sample of as many pairs holds its share of system calls.
constexpr std::size_t pairs_a_sample = 16;

void compare_pairs(bench::Report& report, const Address& address, Condition condition, const Effort& effort) {
  PairedRounds rounds(effort.samples, pairs_a_sample, 1);
  rounds.add("raw", bench::raw_pairs(address));
  rounds.add("raw again", bench::raw_pairs(address));
  rounds.add("holdfast", bench::holdfast_pairs(address));
  rounds.add("hiredis", bench::hiredis_pairs(address));
  rounds.add("raw spinning", bench::raw_spinning_pairs(address));
  rounds.add("holdfast spinning", bench::holdfast_pairs(address, {.spins = true}));
  rounds.add("raw posting", bench::raw_posting_pairs(address));
  rounds.add("holdfast posting", bench::holdfast_pairs(address, {.posts = true}));
  rounds.run(effort.share, effort.rounds_min);

  const std::string group = bench::transport_of(address) + ", " + bench::to_string(condition);
  const bool plain = condition == Condition::plain;
  const bool same_cpu = condition == Condition::same_cpu;
  const auto promised = [](bool here, double ratio) { return here ? at_most(ratio) : bench::Bound{}; };
  report.add(group, rounds, "raw again", "raw");
  report.add(group, rounds, "holdfast", "raw", promised(same_cpu, 1.02));
  report.add(group, rounds, "hiredis", "raw");
  report.add(group, rounds, "raw spinning", "raw");
  report.add(group, rounds, "holdfast spinning", "raw spinning", promised(plain, 1.10));
  report.add(group, rounds, "holdfast spinning", "holdfast", promised(same_cpu, 1.05));
  report.add(group, rounds, "raw posting", "raw");
  report.add(group, rounds, "holdfast posting", "raw posting", promised(same_cpu, 1.10));
}

// What the server's own compare-and-delete saves, where it has one.
void compare_releases(bench::Report& report, const RedisServer& server, const std::vector<int>& cpus,
                      const Effort& effort) {
  const Address address = {server.socket_path(), 0};
  holdfast::Client client;
  if (client.connect(server.unix_url()) != holdfast::Status::ok) throw std::runtime_error("cannot connect");
  const holdfast::NativeDelete native = client.server().native_delete;
  if (native == holdfast::NativeDelete::none) return;
  const std::string command = native == holdfast::NativeDelete::delex ? "DELEX" : "DELIFEQ";
  const std::string name = std::filesystem::path(server.binary()).filename().string();

  if (cpus.size() > 1) {
    const Placement placement(Condition::plain, server.pid(), cpus);
    PairedRounds rounds(effort.samples, bench::pipelined_pairs, 1);
    rounds.add(command, bench::raw_pipelined_pairs(address, command));
    rounds.add(command + " again", bench::raw_pipelined_pairs(address, command));
    rounds.add("script", bench::raw_pipelined_pairs(address, "script"));
    rounds.run(effort.share / 2, effort.rounds_min);
    const std::string group = name + ", pipelined, " + bench::to_string(Condition::plain);
    report.add(group, rounds, command + " again", command);
    report.add(group, rounds, "script", command);
  }
  const Placement placement(Condition::same_cpu, server.pid(), cpus);
  PairedRounds rounds(effort.samples, pairs_a_sample, 1);
  rounds.add("holdfast " + command, bench::holdfast_pairs(address, {.native_delete = true}));
  rounds.add("holdfast " + command + " again", bench::holdfast_pairs(address, {.native_delete = true}));
  rounds.add("holdfast script", bench::holdfast_pairs(address));
  rounds.run(effort.share / 2, effort.rounds_min);
  const std::string group = name + ", " + bench::to_string(Condition::same_cpu);
  report.add(group, rounds, "holdfast " + command + " again", "holdfast " + command);
  report.add(group, rounds, "holdfast script", "holdfast " + command);
}

// What a cluster adds to a pair: both go to the one node that serves all slots.
void compare_topologies(bench::Report& report, const std::string& binary, const std::vector<int>& cpus,
                        const Effort& effort) {
  const RedisServer server(binary, {"--cluster-enabled", "yes"});
  if (server.command("CLUSTER ADDSLOTSRANGE 0 16383") != "OK" ||
      !comes([&] { return server.command("CLUSTER INFO").find("cluster_state:ok") != std::string::npos; }))
    throw std::runtime_error("the server becomes no cluster");
  const Address address = {"", server.port()};
  const Placement placement(Condition::same_cpu, server.pid(), cpus);
  PairedRounds rounds(effort.samples, pairs_a_sample, 1);
  rounds.add("direct", bench::holdfast_pairs(address));
  rounds.add("direct again", bench::holdfast_pairs(address));
  rounds.add("in a cluster", bench::holdfast_pairs(address, {.in_cluster = true}));
  rounds.run(effort.share, effort.rounds_min);
  const std::string group = std::string("cluster of one node, ") + bench::to_string(Condition::same_cpu);
  report.add(group, rounds, "direct again", "direct");
  report.add(group, rounds, "in a cluster", "direct", at_most(1.02));
}

void run_comparison(Harness& harness) {
  const Effort effort = harness.effort(harness.transport_count() * harness.conditions().size() + 2, 10, 2);
  {
    const RedisServer server(harness.binaries()[0]);
    for (const Address& address : harness.addresses_of(server)) {
      for (const Condition condition : harness.conditions()) {
        const Placement placement(condition, server.pid(), harness.cpus());
        compare_pairs(harness.report(), address, condition, effort);
        harness.print_new_rows();
      }
    }
  }
  compare_topologies(harness.report(), harness.binaries()[0], harness.cpus(), effort);
  harness.print_new_rows();
  for (const std::string& binary : harness.binaries()) {
    const RedisServer server(binary);
    compare_releases(harness.report(), server, harness.cpus(), effort);
    harness.print_new_rows();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness({
      .name = "bench_pairs",
      .purpose =
          "Measures pairs of acquire and release against raw sockets and hiredis, over a private server: the first of\n"
          "HOLDFAST_SERVERS (separated by colons), else redis-server from the path.",
      .title = "holdfast: a pair of acquire and release, ratios of one run",
      .files = "results",
  });
  harness.add_seconds(60, "how long, all in all, about");
  harness.add_transport();
  harness.add_condition();
  harness.add_output();
  harness.add_only(
      "To count what one pair costs (count_pair.sh does it): run nothing but pairs, against a server that runs "
      "already.",
      "holdfast, holdfast-posting, holdfast-spinning, raw, raw-posting, raw-spinning or hiredis", "how many");
  harness.add_running_server();
  return harness.main(
      argc, argv, [&] { run_comparison(harness); }, [&] { run_only(harness); });
}
