// SPDX-License-Identifier: MIT
//
// What does the Asio client carry? Pairs of acquire and release on independent names, with 1, 8, 64 and 512 of them in
// flight on one connection: holdfast by callbacks and by coroutines beside a raw pipelining program (the limit) and
// hiredis' asynchronous calls, over a private server that this program starts; the client's processor time; the latency
// of one pair beside the blocking client; and a crowd: ten thousand holds that are kept and a thousand waiters by push on
// one loop (async_crowd.hpp). Prints tables and writes asio.json and asio.svg.
//
// How to read it: as bench_pairs. Ratios are of time: a throughput of 0.95 of the limit is a ratio of 1.053.
// flight_contenders.hpp says who takes part. `processor time` is what the client's thread had of its core for a pair, user
// and system.
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async_crowd.hpp"
#include "cpu_condition.hpp"
#include "cpu_time.hpp"
#include "flight_contenders.hpp"
#include "heap_trap.hpp"
#include "options.hpp"
#include "pair_contenders.hpp"
#include "paired_rounds.hpp"
#include "redis_server.hpp"
#include "report.hpp"

namespace {

using bench::Address;
using bench::at_most;
using bench::Condition;
using bench::Flight;
using bench::PairedRounds;
using bench::Placement;

constexpr const char* help =
    "usage: bench_asio [OPTION...]\n"
    "\n"
    "Measures many pairs of acquire and release in flight on one connection, and a crowd of holds and waiters, over a\n"
    "private server: the first of HOLDFAST_SERVERS (separated by colons), else redis-server from the path.\n"
    "\n"
    "  --seconds N         how long the pairs take, all in all, about (default 120)\n"
    "  --transport WHICH   tcp, unix or both (default)\n"
    "  --condition WHICH   plain, no-halt, same-cpu or all (default)\n"
    "  --part WHICH        pairs, crowd or all (default)\n"
    "  --in-flight N       1, 8, 64, 512 or all (default)\n"
    "  --holds N           of the crowd (default 10000)\n"
    "  --waiters N         of the crowd (default 1000)\n"
    "  --lease N           of the crowd, in seconds (default 6)\n"
    "  --out DIR           where asio.json and asio.svg go (default .)\n"
    "  --smoke             everything once, as fast as it goes: the figures mean nothing\n"
    "  --help              this text\n"
    "\n"
    "To count what one pair costs (count_pair.sh does it): run nothing but pairs, against a server that runs already.\n"
    "\n"
    "  --only WHO          callbacks-N, coroutines-N, raw-N or hiredis-N, with N in flight\n"
    "  --pairs N           how many\n"
    "  --socket PATH       with --transport unix\n"
    "  --port N            with --transport tcp\n";

struct Options {
  double seconds = 120;
  std::string transport = "both";
  std::string condition = "all";
  std::string part = "all";
  std::string in_flight = "all";
  std::size_t holds = 10'000;
  std::size_t waiters = 1000;
  double lease = 6;
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
  parser.add_choice("--part", options.part, {"pairs", "crowd", "all"});
  parser.add_choice("--in-flight", options.in_flight, {"1", "8", "64", "512", "all"});
  parser.add("--holds", &options.holds);
  parser.add("--waiters", &options.waiters);
  parser.add("--lease", &options.lease);
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
std::optional<PairedRounds::Run> contender(const std::string& name, Flight flight) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  const std::string who = name.substr(0, dash);
  flight.in_flight = std::strtoul(name.c_str() + dash + 1, nullptr, 10);
  if (flight.in_flight == 0) return std::nullopt;
  if (who == "callbacks") return bench::callback_flight(flight);
  if (who == "coroutines") return bench::coroutine_flight(flight);
  if (who == "raw") return bench::raw_flight(flight);
  if (who == "hiredis") return bench::hiredis_flight(flight);
  return std::nullopt;
}

int run_only(const Options& options) {
  const bool tcp = options.transport == "tcp";
  if (tcp ? options.port == 0 : options.socket_path.empty()) {
    (void)std::fputs("bench_asio: --only wants --transport tcp --port N, or --transport unix --socket PATH\n", stderr);
    return 2;
  }
  const Address address = {tcp ? std::string() : options.socket_path, options.port};
  const auto run = contender(options.only, {.address = address, .release = bench::default_release(address)});
  if (!run) {
    (void)std::fprintf(stderr, "bench_asio: nobody is called %s\n", options.only.c_str());
    return 2;
  }
  (*run)(options.pairs);
  return 0;
}

// ---- Pairs -------------------------------------------------------------------------------------------------------

struct Effort {
  std::size_t samples;
  std::size_t rounds_min;
  std::size_t waves;               // Pairs of each key in a sample.
  std::chrono::nanoseconds share;  // Of one group.
};

// So many that the flight's take-off and landing are little of it.
std::size_t pairs_a_sample(std::size_t in_flight, const Effort& effort) {
  return std::max<std::size_t>(64, effort.waves * in_flight);
}

// A share of the limit's throughput, as a bound of the time.
bench::Bound throughput_at_least(double share) { return at_most(1 / share); }

bench::Bound promised(std::size_t in_flight) {
  if (in_flight == 8 || in_flight == 64) return throughput_at_least(0.95);
  return in_flight == 512 ? throughput_at_least(0.97) : bench::Bound{};
}

std::string group_of(const Address& address, Condition condition, std::size_t in_flight) {
  return std::string(address.socket_path.empty() ? "TCP" : "Unix socket") + ", " + bench::to_string(condition) + ", " +
         std::to_string(in_flight) + " in flight";
}

void compare_pairs(bench::Report& report, const Flight& flight, Condition condition, const Effort& effort) {
  PairedRounds rounds(effort.samples, pairs_a_sample(flight.in_flight, effort), 1);
  const bool many = flight.in_flight >= 64;
  rounds.add("raw", bench::raw_flight(flight));
  rounds.add("raw again", bench::raw_flight(flight));
  rounds.add("holdfast", bench::callback_flight(flight));
  if (many) rounds.add("holdfast coroutines", bench::coroutine_flight(flight));
  rounds.add("hiredis", bench::hiredis_flight(flight));
  if (flight.in_flight == 1)
    rounds.add("holdfast blocking", bench::holdfast_pairs(flight.address, {.native_delete = true}));
  rounds.run(effort.share, effort.rounds_min);

  const std::string group = group_of(flight.address, condition, flight.in_flight);
  report.add(group, rounds, "raw again", "raw");
  report.add(group, rounds, "holdfast", "raw", promised(flight.in_flight));
  if (many) report.add(group, rounds, "holdfast coroutines", "raw");
  report.add(group, rounds, "hiredis", "raw");
  if (flight.in_flight == 1) report.add(group, rounds, "holdfast", "holdfast blocking", at_most(1.1));
}

// What the client's thread has of its core for a pair. Others on the core cannot stretch it, but for its caches.
PairedRounds::Sample processor_time(PairedRounds::Run run, std::size_t pairs) {
  return [run = std::move(run), pairs] {
    const std::chrono::nanoseconds before = bench::cpu_time(CLOCK_THREAD_CPUTIME_ID);
    run(pairs);
    const std::chrono::nanoseconds spent = bench::cpu_time(CLOCK_THREAD_CPUTIME_ID) - before;
    return static_cast<double>(spent.count()) / static_cast<double>(pairs);
  };
}

void compare_work(bench::Report& report, const Flight& flight, Condition condition, const Effort& effort) {
  const std::size_t pairs = pairs_a_sample(flight.in_flight, effort);
  PairedRounds rounds(effort.samples, 1, 1);
  rounds.add_sampled("raw", processor_time(bench::raw_flight(flight), pairs));
  rounds.add_sampled("raw again", processor_time(bench::raw_flight(flight), pairs));
  rounds.add_sampled("holdfast", processor_time(bench::callback_flight(flight), pairs));
  rounds.add_sampled("holdfast coroutines", processor_time(bench::coroutine_flight(flight), pairs));
  rounds.add_sampled("hiredis", processor_time(bench::hiredis_flight(flight), pairs));
  rounds.run(effort.share, effort.rounds_min);

  const std::string group = group_of(flight.address, condition, flight.in_flight) + ", processor time";
  report.add(group, rounds, "raw again", "raw");
  report.add(group, rounds, "holdfast", "raw", bench::at_most_nanoseconds(450));
  report.add(group, rounds, "holdfast coroutines", "raw");
  report.add(group, rounds, "hiredis", "raw");
}

void count_allocations(bench::Report& report, const Flight& flight, const Effort& effort) {
  const std::size_t pairs = pairs_a_sample(flight.in_flight, effort);
  const auto count = [&](const char* name, const PairedRounds::Run& run, bench::Bound bound) {
    run(pairs);
    const HeapTrap trap;
    run(pairs);
    const double allocations = static_cast<double>(trap.count()) / static_cast<double>(pairs);
    report.add(
        {"heap allocations a pair, " + std::to_string(flight.in_flight) + " in flight", name, allocations, "", bound});
  };
  count("holdfast", bench::callback_flight(flight), bench::value_at_most(0));
  count("holdfast coroutines, with their frames", bench::coroutine_flight(flight), {});
  count("hiredis", bench::hiredis_flight(flight), {});
}

void measure_pairs(bench::Report& report, const Options& options, const RedisServer& server,
                   const std::vector<int>& cpus) {
  const std::vector<Condition> conditions = bench::conditions_of(options.condition, cpus);
  std::vector<std::size_t> flights = {1, 8, 64, 512};
  if (options.in_flight != "all") flights = {std::strtoul(options.in_flight.c_str(), nullptr, 10)};
  const bool work = flights.back() == 512;
  const std::size_t transport_count = options.transport == "both" ? 2 : 1;
  const auto group_count = static_cast<double>(transport_count * conditions.size() * (flights.size() + (work ? 1 : 0)));
  const std::chrono::duration<double> seconds(options.seconds);
  const Effort effort =
      options.smoke ? Effort{1, 2, 2, {}}
                    : Effort{3, 5, 40, std::chrono::duration_cast<std::chrono::nanoseconds>(seconds / group_count)};
  for (const bool tcp : {true, false}) {
    if (options.transport == (tcp ? "unix" : "tcp")) continue;
    const Address address = tcp ? Address{{}, server.port()} : Address{server.socket_path(), 0};
    Flight flight = {.address = address, .release = bench::default_release(address)};
    for (const Condition condition : conditions) {
      const Placement placement(condition, server.pid(), cpus);
      for (const std::size_t in_flight : flights) {
        flight.in_flight = in_flight;
        compare_pairs(report, flight, condition, effort);
        if (in_flight == 512) compare_work(report, flight, condition, effort);
        report.print_new_rows(stdout);
      }
    }
    if (options.transport == "both" && !tcp) continue;
    for (const std::size_t in_flight : flights) {
      flight.in_flight = in_flight;
      count_allocations(report, flight, effort);
    }
    report.print_new_rows(stdout);
  }
}

// ---- The run -----------------------------------------------------------------------------------------------------

int run(const Options& options) {
  const std::vector<std::string> binaries = server_binaries();
  if (binaries.empty()) {
    (void)std::fputs("bench_asio: skipped, there is no redis-server\n", stderr);
    return 77;
  }
  const std::vector<int> cpus = bench::usable_cpus();
  bench::Report report("holdfast: pairs in flight on one connection of an Asio loop, ratios of one run");
  const RedisServer server(binaries[0]);
  utsname system{};
  (void)::uname(&system);
  (void)std::printf("%s, %s %s, %zu cores\n", server.binary().c_str(), system.sysname, system.release, cpus.size());
  if (options.part != "crowd") measure_pairs(report, options, server, cpus);
  if (options.part != "pairs") {
    bench::CrowdSize size = {.holds = options.holds, .waiters = options.waiters};
    size.lease = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(options.lease));
    if (options.smoke) size = {.holds = 500, .waiters = 50, .lease = std::chrono::seconds(1), .leases = 2};
    const Placement placement(cpus.size() > 1 ? Condition::plain : Condition::same_cpu, server.pid(), cpus);
    bench::measure_crowd(report, server, size, cpus.back());
    report.print_new_rows(stdout);
  }
  (void)std::printf("\n%zu promises missed\n", report.missed());
  const bool written = report.write_json(options.out + "/asio.json") && report.write_svg(options.out + "/asio.svg");
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
    return options->only.empty() ? run(*options) : run_only(*options);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "bench_asio: %s\n", error.what());
    return 1;
  }
}
