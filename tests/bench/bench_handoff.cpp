// SPDX-License-Identifier: MIT
//
// How long does a lock take from one client to the next that waits for it? From the call of release() on the one to the
// return of acquire() on the other, which sleeps by then (handoff.hpp), over a private server that this program starts:
// holdfast beside raw sockets, and beside redis-py's Lock and node-redlock, which poll, where those are there. And what a
// waiter costs the server while it waits. Prints tables and writes handoff.json and handoff.svg.
//
// How to read it: as bench_pairs. Each of holdfast's locks has a limit with its own scripts: `raw` has those of a Mutex
// that announces, `raw hash` those of a ReentrantLock; the ratio to that is what holdfast adds. `raw hash` to `raw` is
// what a reentrant lock's format costs anybody, in the server's scripts. A FairLock stands beside `raw`, a bare subscriber
// that is woken and then sets: its release has given it the lock by then, and it confirms that. Both clients are threads of this process, on the
// client's core. `processor time` is what all of them had of the core in one hand-off, measured in rounds of its own: the
// sum of the work, which neighbours on the core cannot stretch.
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "command_stats.hpp"
#include "cpu_condition.hpp"
#include "handoff.hpp"
#include "harness.hpp"
#include "paired_rounds.hpp"
#include "peer_program.hpp"
#include "redis_server.hpp"
#include "report.hpp"

namespace {

using bench::Address;
using bench::Condition;
using bench::Effort;
using bench::Handoff;
using bench::Harness;
using bench::PairedRounds;

// ---- Clients that are woken --------------------------------------------------------------------------------------

// What of a hand-off is compared.
enum class Measure : unsigned char { time, work };

PairedRounds::Sample sampled(std::unique_ptr<bench::HandoffClients> clients, const RedisServer& server,
                             Measure measure = Measure::time) {
  return [handoff = std::make_shared<Handoff>(std::move(clients), server), measure] {
    const bench::HandoffCost cost = handoff->once();
    return measure == Measure::time ? cost.time : cost.work;
  };
}

void compare_pushed(bench::Report& report, const RedisServer& server, const Address& address, Condition condition,
                    Measure measure, const Effort& effort) {
  PairedRounds rounds(effort.samples, 1, 1);
  rounds.add_sampled("raw", sampled(bench::raw_mutex_clients(address), server, measure));
  rounds.add_sampled("raw again", sampled(bench::raw_mutex_clients(address), server, measure));
  rounds.add_sampled("holdfast Mutex", sampled(bench::mutex_clients(address), server, measure));
  rounds.add_sampled("raw hash", sampled(bench::raw_reentrant_clients(address), server, measure));
  rounds.add_sampled("holdfast ReentrantLock", sampled(bench::reentrant_clients(address), server, measure));
  rounds.add_sampled("holdfast FairLock", sampled(bench::fair_clients(address), server, measure));
  rounds.run(effort.share, effort.rounds_min);

  const std::string group = bench::transport_of(address) + ", " + bench::to_string(condition) +
                            (measure == Measure::work ? ", processor time" : "");
  const bench::Bound promised = condition == Condition::plain ? bench::Bound{} : bench::at_most(1.10);
  report.add(group, rounds, "raw again", "raw");
  report.add(group, rounds, "holdfast Mutex", "raw", promised);
  report.add(group, rounds, "raw hash", "raw");
  report.add(group, rounds, "holdfast ReentrantLock", "raw hash", promised);
  const bool hand_off = condition == Condition::same_cpu && measure == Measure::time;
  report.add(group, rounds, "holdfast FairLock", "raw", hand_off ? bench::at_most(0.70) : bench::Bound{});
}

// ---- Clients that poll -------------------------------------------------------------------------------------------

// Two programs of one kind: one holds the lock, the other waits for it.
class PeerHandoff {
 public:
  explicit PeerHandoff(const std::vector<std::string>& command) : holder_(command), waiter_(command) {}

  [[nodiscard]] const std::string& missing() const {
    return holder_.missing().empty() ? waiter_.missing() : holder_.missing();
  }
  [[nodiscard]] const std::string& name() const { return holder_.name(); }

  // A waiter that polls is asleep nearly always. The release comes at any point between two of its tries.
  double once() {
    (void)holder_.ask("hold", "held");
    (void)waiter_.ask("wait", "waiting");
    std::this_thread::sleep_for(std::chrono::milliseconds(20) + std::chrono::microseconds(phase_(source_)));
    const std::string released_at = holder_.ask("release", "released");
    const std::string granted_at = waiter_.hear("granted");
    (void)waiter_.ask("release", "released");
    return static_cast<double>(std::stoll(granted_at) - std::stoll(released_at));
  }

 private:
  bench::PeerProgram holder_;
  bench::PeerProgram waiter_;
  std::minstd_rand source_{1};
  std::uniform_int_distribution<int> phase_{0, 300'000};  // Microseconds: the longest delay of any peer.
};

void compare_polling(bench::Report& report, const RedisServer& server, Condition condition, const Effort& effort) {
  const std::string port = std::to_string(server.port());
  const std::string folder = HOLDFAST_BENCH_PEERS;
  std::vector<std::shared_ptr<PeerHandoff>> peers;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"python3", folder + "/redis_py_lock.py", port, "bench:python"},
        std::vector<std::string>{"node", folder + "/node_redlock.cjs", port, "bench:node"}}) {
    auto peer = std::make_shared<PeerHandoff>(command);
    if (peer->missing().empty())
      peers.push_back(std::move(peer));
    else
      (void)std::printf("\nskipped: %s\n", peer->missing().c_str());
  }
  if (peers.empty()) return;

  PairedRounds rounds(effort.samples, 1, 1);
  const Address address = {{}, server.port()};
  rounds.add_sampled("holdfast Mutex", sampled(bench::mutex_clients(address), server));
  for (const auto& peer : peers) rounds.add_sampled(peer->name(), [peer] { return peer->once(); });
  rounds.run(effort.share, effort.rounds_min);
  for (const auto& peer : peers)
    report.add(std::string("TCP, ") + bench::to_string(condition) + ", beside clients that poll", rounds, peer->name(),
               "holdfast Mutex", bench::at_least(200));
}

// ---- What a waiter costs -----------------------------------------------------------------------------------------

void count_commands(bench::Report& report, const RedisServer& server, std::chrono::duration<double> window) {
  char group[64];
  (void)std::snprintf(group, sizeof group, "what a waiter costs the server in %.2g s", window.count());
  const Address address = {{}, server.port()};
  const auto count = [&](const char* name, std::unique_ptr<bench::HandoffClients> clients) {
    Handoff handoff(std::move(clients), server);
    handoff.begin();
    const double before = bench::calls_of_all(server);
    std::this_thread::sleep_for(window);
    const double after = bench::calls_of_all(server);
    (void)handoff.finish();
    report.add({group, name, after - before, "commands", bench::value_at_most(0)});
  };
  count("holdfast Mutex, announced", bench::mutex_clients(address));
  count("holdfast ReentrantLock", bench::reentrant_clients(address));
}

// ---- The run -----------------------------------------------------------------------------------------------------

void measure(Harness& harness) {
  const std::vector<Condition>& conditions = harness.conditions();
  // same-cpu has two groups. The clients that poll take two shares: one hand-off of theirs is as long as ten of the others.
  const Effort effort = harness.effort(harness.transport_count() * (conditions.size() + 1) + 2, 11, 1);
  const RedisServer server(harness.binaries()[0]);
  for (const Address& address : harness.addresses_of(server)) {
    for (const Condition condition : conditions) {
      const bench::Placement placement(condition, server.pid(), harness.cpus());
      compare_pushed(harness.report(), server, address, condition, Measure::time, effort);
      harness.print_new_rows();
      if (condition != Condition::same_cpu) continue;
      compare_pushed(harness.report(), server, address, condition, Measure::work, effort);
      harness.print_new_rows();
    }
  }
  if (harness.over_tcp()) {
    const bench::Placement placement(conditions.front(), server.pid(), harness.cpus());
    const Effort polling = harness.smoke() ? effort : Effort{3, 3, 2 * effort.share};
    compare_polling(harness.report(), server, conditions.front(), polling);
    count_commands(harness.report(), server, std::chrono::duration<double>(harness.smoke() ? 0.1 : 2));
    harness.print_new_rows();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness({
      .name = "bench_handoff",
      .purpose = "Measures how long a lock takes from its holder to a waiter, over a private server: the first of "
                 "HOLDFAST_SERVERS\n"
                 "(separated by colons), else redis-server from the path. Beside them python3 with redis and node with "
                 "redlock and\n"
                 "ioredis, where they are in the path and in PYTHONPATH and NODE_PATH.",
      .title = "holdfast: a hand-off from release to acquire, ratios of one run",
      .files = "handoff",
  });
  harness.add_seconds(90, "how long, all in all, about");
  harness.add_transport();
  harness.add_condition();
  harness.add_output();
  return harness.main(argc, argv, [&] { measure(harness); });
}
