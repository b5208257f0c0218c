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
#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpu_condition.hpp"
#include "holdfast/holdfast.hpp"
#include "options.hpp"
#include "pair_contenders.hpp"
#include "paired_rounds.hpp"
#include "redis_server.hpp"
#include "report.hpp"

namespace {

using bench::Address;
using bench::at_most;
using bench::Condition;
using bench::PairedRounds;
using bench::Placement;

constexpr const char* help =
    "usage: bench_pairs [OPTION...]\n"
    "\n"
    "Measures pairs of acquire and release against raw sockets and hiredis, over a private server: the first of\n"
    "HOLDFAST_SERVERS (separated by colons), else redis-server from the path.\n"
    "\n"
    "  --seconds N         how long, all in all, about (default 60)\n"
    "  --transport WHICH   tcp, unix or both (default)\n"
    "  --condition WHICH   plain, no-halt, same-cpu or all (default)\n"
    "  --out DIR           where results.json and results.svg go (default .)\n"
    "  --smoke             everything once, as fast as it goes: the figures mean nothing\n"
    "  --help              this text\n"
    "\n"
    "To count what one pair costs (count_pair.sh does it): run nothing but pairs, against a server that runs already.\n"
    "\n"
    "  --only WHO          holdfast, holdfast-posting, holdfast-spinning, raw, raw-posting, raw-spinning or hiredis\n"
    "  --pairs N           how many\n"
    "  --socket PATH       with --transport unix\n"
    "  --port N            with --transport tcp\n";

struct Options {
  double seconds = 60;
  std::string transport = "both";
  std::string condition = "all";
  std::string out = ".";
  bool smoke = false;
  std::string only;
  std::size_t pairs = 1000;
  std::string socket_path;
  int port = 0;
};

// Nothing where the arguments are not understood.
std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  bench::OptionParser parser;
  parser.add("--seconds", &options.seconds);
  parser.add_choice("--transport", options.transport, {"tcp", "unix", "both"});
  parser.add_choice("--condition", options.condition, {"plain", "no-halt", "same-cpu", "all"});
  parser.add("--out", &options.out);
  parser.add("--smoke", &options.smoke);
  parser.add("--only", &options.only);
  parser.add("--pairs", &options.pairs);
  parser.add("--socket", &options.socket_path);
  parser.add("--port", &options.port);
  if (!parser.parse(argc, argv)) return std::nullopt;
  return options;
}

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

int run_only(const Options& options) {
  const bool tcp = options.transport == "tcp";
  if (tcp ? options.port == 0 : options.socket_path.empty()) {
    (void)std::fputs("bench_pairs: --only wants --transport tcp --port N, or --transport unix --socket PATH\n", stderr);
    return 2;
  }
  const auto run = contender(options.only, {tcp ? std::string() : options.socket_path, options.port});
  if (!run) {
    (void)std::fprintf(stderr, "bench_pairs: nobody is called %s\n", options.only.c_str());
    return 2;
  }
  (*run)(options.pairs);
  return 0;
}

// ---- The comparison ----------------------------------------------------------------------------------------------

// A pool of random bytes lasts for sixteen tokens: a sample of as many pairs holds its share of system calls.
constexpr std::size_t pairs_a_sample = 16;

struct Effort {
  std::size_t samples;
  std::size_t rounds_min;
  std::chrono::nanoseconds share;  // Of one group.
};

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

  const std::string group =
      std::string(address.socket_path.empty() ? "TCP" : "Unix socket") + ", " + bench::to_string(condition);
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

int run_comparison(const Options& options) {
  const std::vector<std::string> binaries = server_binaries();
  if (binaries.empty()) {
    (void)std::fputs("bench_pairs: skipped, there is no redis-server\n", stderr);
    return 77;
  }
  const std::vector<int> cpus = bench::usable_cpus();
  const std::vector<Condition> conditions = bench::conditions_of(options.condition, cpus);

  const std::size_t transport_count = options.transport == "both" ? 2 : 1;
  const std::chrono::duration<double> seconds(options.seconds);
  const auto group_count = static_cast<double>(transport_count * conditions.size() + 1);
  const Effort effort =
      options.smoke ? Effort{2, 2, {}}
                    : Effort{10, 5, std::chrono::duration_cast<std::chrono::nanoseconds>(seconds / group_count)};

  bench::Report report("holdfast: a pair of acquire and release, ratios of one run");
  {
    const RedisServer server(binaries[0]);
    utsname system{};
    (void)::uname(&system);
    (void)std::printf("%s, %s %s, %zu cores\n", server.binary().c_str(), system.sysname, system.release, cpus.size());
    for (const bool tcp : {true, false}) {
      if (options.transport == (tcp ? "unix" : "tcp")) continue;
      const Address address = tcp ? Address{{}, server.port()} : Address{server.socket_path(), 0};
      for (const Condition condition : conditions) {
        const Placement placement(condition, server.pid(), cpus);
        compare_pairs(report, address, condition, effort);
        report.print_new_rows(stdout);
      }
    }
  }
  for (const std::string& binary : binaries) {
    const RedisServer server(binary);
    compare_releases(report, server, cpus, effort);
    report.print_new_rows(stdout);
  }
  (void)std::printf("\n%zu promises missed\n", report.missed());
  const bool written =
      report.write_json(options.out + "/results.json") && report.write_svg(options.out + "/results.svg");
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
  try {
    return options->only.empty() ? run_comparison(*options) : run_only(*options);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "bench_pairs: %s\n", error.what());
    return 1;
  }
}
