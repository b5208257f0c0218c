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
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "async_crowd.hpp"
#include "cpu_condition.hpp"
#include "cpu_time.hpp"
#include "flight_contenders.hpp"
#include "harness.hpp"
#include "heap_trap.hpp"
#include "pair_contenders.hpp"
#include "paired_rounds.hpp"
#include "redis_server.hpp"
#include "report.hpp"

namespace {

using bench::Address;
using bench::at_most;
using bench::Condition;
using bench::Effort;
using bench::Flight;
using bench::Harness;
using bench::PairedRounds;
using bench::Placement;

// Options of this program alone.
struct Asked {
  std::string part = "all";
  std::string in_flight = "all";
  std::size_t holds = 10'000;
  std::size_t waiters = 1000;
  double lease = 6;
};

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

void run_only(const Harness& harness) {
  const Address address = harness.running_server();
  const auto run = contender(harness.only(), {.address = address, .release = bench::default_release(address)});
  if (!run) throw bench::UsageError("nobody is called " + harness.only());
  (*run)(harness.pairs());
}

// ---- Pairs -------------------------------------------------------------------------------------------------------

// So many that the flight's take-off and landing are little of it.
std::size_t pairs_a_sample(std::size_t in_flight, const Harness& harness) {
  const std::size_t waves = harness.smoke() ? 2 : 40;  // Pairs of each key in a sample.
  return std::max<std::size_t>(64, waves * in_flight);
}

// A share of the limit's throughput, as a bound of the time.
bench::Bound throughput_at_least(double share) { return at_most(1 / share); }

bench::Bound promised(std::size_t in_flight) {
  if (in_flight == 8 || in_flight == 64) return throughput_at_least(0.95);
  return in_flight == 512 ? throughput_at_least(0.97) : bench::Bound{};
}

std::string group_of(const Address& address, Condition condition, std::size_t in_flight) {
  return bench::transport_of(address) + ", " + bench::to_string(condition) + ", " + std::to_string(in_flight) +
         " in flight";
}

void compare_pairs(Harness& harness, const Flight& flight, Condition condition, const Effort& effort) {
  PairedRounds rounds(effort.samples, pairs_a_sample(flight.in_flight, harness), 1);
  const bool many = flight.in_flight >= 64;
  rounds.add("raw", bench::raw_flight(flight));
  rounds.add("raw again", bench::raw_flight(flight));
  rounds.add("holdfast", bench::callback_flight(flight));
  if (many) rounds.add("holdfast coroutines", bench::coroutine_flight(flight));
  rounds.add("hiredis", bench::hiredis_flight(flight));
  if (flight.in_flight == 1)
    rounds.add("holdfast blocking", bench::holdfast_pairs(flight.address, {.native_delete = true}));
  rounds.run(effort.share, effort.rounds_min);

  bench::Report& report = harness.report();
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

void compare_work(Harness& harness, const Flight& flight, Condition condition, const Effort& effort) {
  const std::size_t pairs = pairs_a_sample(flight.in_flight, harness);
  PairedRounds rounds(effort.samples, 1, 1);
  rounds.add_sampled("raw", processor_time(bench::raw_flight(flight), pairs));
  rounds.add_sampled("raw again", processor_time(bench::raw_flight(flight), pairs));
  rounds.add_sampled("holdfast", processor_time(bench::callback_flight(flight), pairs));
  rounds.add_sampled("holdfast coroutines", processor_time(bench::coroutine_flight(flight), pairs));
  rounds.add_sampled("hiredis", processor_time(bench::hiredis_flight(flight), pairs));
  rounds.run(effort.share, effort.rounds_min);

  bench::Report& report = harness.report();
  const std::string group = group_of(flight.address, condition, flight.in_flight) + ", processor time";
  report.add(group, rounds, "raw again", "raw");
  report.add(group, rounds, "holdfast", "raw", bench::at_most_nanoseconds(450));
  report.add(group, rounds, "holdfast coroutines", "raw");
  report.add(group, rounds, "hiredis", "raw");
}

void count_allocations(Harness& harness, const Flight& flight) {
  const std::size_t pairs = pairs_a_sample(flight.in_flight, harness);
  const auto count = [&](const char* name, const PairedRounds::Run& run, bench::Bound bound) {
    run(pairs);
    const HeapTrap trap;
    run(pairs);
    const double allocations = static_cast<double>(trap.count()) / static_cast<double>(pairs);
    harness.report().add(
        {"heap allocations a pair, " + std::to_string(flight.in_flight) + " in flight", name, allocations, "", bound});
  };
  count("holdfast", bench::callback_flight(flight), bench::value_at_most(0));
  count("holdfast coroutines, with their frames", bench::coroutine_flight(flight), {});
  count("hiredis", bench::hiredis_flight(flight), {});
}

void measure_pairs(Harness& harness, const Asked& asked, const RedisServer& server) {
  std::vector<std::size_t> flights = {1, 8, 64, 512};
  if (asked.in_flight != "all") flights = {std::strtoul(asked.in_flight.c_str(), nullptr, 10)};
  const bool work = flights.back() == 512;
  const std::vector<Condition>& conditions = harness.conditions();
  const std::size_t group_count = harness.transport_count() * conditions.size() * (flights.size() + (work ? 1 : 0));
  const Effort effort = harness.effort(group_count, 3, 1);
  const std::vector<Address> addresses = harness.addresses_of(server);
  for (const Address& address : addresses) {
    Flight flight = {.address = address, .release = bench::default_release(address)};
    for (const Condition condition : conditions) {
      const Placement placement(condition, server.pid(), harness.cpus());
      for (const std::size_t in_flight : flights) {
        flight.in_flight = in_flight;
        compare_pairs(harness, flight, condition, effort);
        if (in_flight == 512) compare_work(harness, flight, condition, effort);
        harness.print_new_rows();
      }
    }
    if (&address != &addresses.front()) continue;  // Allocations do not depend on the transport.
    for (const std::size_t in_flight : flights) {
      flight.in_flight = in_flight;
      count_allocations(harness, flight);
    }
    harness.print_new_rows();
  }
}

// ---- The run -----------------------------------------------------------------------------------------------------

void measure(Harness& harness, const Asked& asked) {
  const RedisServer server(harness.binaries()[0]);
  if (asked.part != "crowd") measure_pairs(harness, asked, server);
  if (asked.part == "pairs") return;
  bench::CrowdSize size = {.holds = asked.holds, .waiters = asked.waiters};
  size.lease = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(asked.lease));
  if (harness.smoke()) size = {.holds = 500, .waiters = 50, .lease = std::chrono::seconds(1), .leases = 2};
  const std::vector<int>& cpus = harness.cpus();
  const Placement placement(cpus.size() > 1 ? Condition::plain : Condition::same_cpu, server.pid(), cpus);
  bench::measure_crowd(harness.report(), server, size, cpus.back());
  harness.print_new_rows();
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness({
      .name = "bench_asio",
      .purpose =
          "Measures many pairs of acquire and release in flight on one connection, and a crowd of holds and waiters, "
          "over a\n"
          "private server: the first of HOLDFAST_SERVERS (separated by colons), else redis-server from the path.",
      .title = "holdfast: pairs in flight on one connection of an Asio loop, ratios of one run",
      .files = "asio",
  });
  Asked asked;
  harness.add_seconds(120, "how long the pairs take, all in all, about");
  harness.add_transport();
  harness.add_condition();
  bench::OptionParser& options = harness.options();
  options.add("--part WHICH", &asked.part, "pairs, crowd or all (default)", {"pairs", "crowd", "all"});
  options.add("--in-flight N", &asked.in_flight, "1, 8, 64, 512 or all (default)", {"1", "8", "64", "512", "all"});
  options.add("--holds N", &asked.holds, "of the crowd (default 10000)");
  options.add("--waiters N", &asked.waiters, "of the crowd (default 1000)");
  options.add("--lease N", &asked.lease, "of the crowd, in seconds (default 6)");
  harness.add_output();
  harness.add_only(
      "To count what one pair costs (count_pair.sh does it): run nothing but pairs, against a server that runs "
      "already.",
      "callbacks-N, coroutines-N, raw-N or hiredis-N, with N in flight", "how many");
  harness.add_running_server();
  return harness.main(
      argc, argv, [&] { measure(harness, asked); }, [&] { run_only(harness); });
}
