// SPDX-License-Identifier: MIT
//
// What does it cost when many processes fight for one lock, and how fairly do they share it? N clients acquire, hold for a
// while (asleep), release and begin again at once, over a private server that this program starts. A client of holdfast or
// redis-py is a process of its own, one of Redisson a thread of one program. Contenders come in rounds of random order.
// Prints a table for each N and writes contention.json. That two were never inside at once is checked all the while.
//
// How to read it. All figures are of the window, which begins some time after the clients; those of a round are its own, and
// what is printed is the median of the rounds, with the 10th and the 90th percentile below it:
//
//     grants/s        of all clients; a hold of 1 ms allows less than 1,000
//     least, most     grants of the client that had fewest, and of the one that had most; share: the one by the other
//     p50, p99        from the call of acquire() to its return, in milliseconds, of all grants
//     longest         the same of one grant; or how long a client has waited that was not granted the lock by the end
//     commands        that the server ran, those in scripts too, by grants
//     sent            requests that clients sent, by grants: what the server read from their sockets
//     (un)subs        SUBSCRIBE and UNSUBSCRIBE among the commands, by grants
//     server us       processor time of the server, in microseconds, by grants
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "command_stats.hpp"
#include "contention_contenders.hpp"
#include "contention_memory.hpp"
#include "cpu_time.hpp"
#include "harness.hpp"
#include "paired_rounds.hpp"
#include "redis_server.hpp"
#include "report.hpp"

namespace {

using bench::Clock;
using bench::Contender;
using bench::ContentionMemory;
using bench::ContentionPhase;
using bench::Harness;

// ---- One run -----------------------------------------------------------------------------------------------------

struct Outcome {
  double grants_per_second;
  double least;
  double most;
  double share;
  double wait_median;  // Waits are milliseconds.
  double wait_p99;
  double wait_longest;
  double commands;  // This and what follows is by grants.
  double sent;
  double subscriptions;
  double server_time;  // Microseconds.
};

struct Reading {
  Clock::time_point at;
  double commands;
  double reads;
  double subscriptions;
  std::chrono::nanoseconds server_time;
  std::vector<std::uint32_t> grants;  // A client each.
};

double subscriptions_of(const RedisServer& server) {
  const bench::CommandStats stats = bench::command_stats(server);
  double calls = 0;
  for (const char* const name : {"subscribe", "unsubscribe"})
    if (const auto it = stats.find(name); it != stats.end()) calls += it->second.calls;
  return calls;
}

Reading read_all(const RedisServer& server, const ContentionMemory& memory) {
  Reading reading{.at = Clock::now(),
                  .commands = bench::calls_of_all(server),
                  .reads = bench::reads_of(server),
                  .subscriptions = subscriptions_of(server),
                  .server_time = bench::cpu_time_of(server.pid()),
                  .grants = {}};
  for (std::size_t client = 0; client < memory.clients(); ++client)
    reading.grants.push_back(memory.slot(client).grants.load());
  return reading;
}

// What the server reads for one Reading, which asks it, too. REQUIRES: it has no clients.
double reads_of_reading(const RedisServer& server) {
  const ContentionMemory memory(0);
  const Reading first = read_all(server, memory);
  return read_all(server, memory).reads - first.reads;
}

void await_ready(const ContentionMemory& memory, bench::Crowd& crowd) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(30);
  for (std::size_t client = 0; client < memory.clients();) {
    if (memory.slot(client).ready != 0) {
      ++client;
      continue;
    }
    crowd.expect_alive();
    if (Clock::now() > end) throw std::runtime_error("a client does not get ready");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Outcome outcome_of(const ContentionMemory& memory, const Reading& before, const Reading& after, double own_reads) {
  std::vector<double> waits;
  double longest = 0;
  std::uint32_t least = UINT32_MAX;
  std::uint32_t most = 0;
  for (std::size_t client = 0; client < memory.clients(); ++client) {
    const bench::ContentionSlot& slot = memory.slot(client);
    if (after.grants[client] == bench::ContentionSlot::waits_max)
      throw std::runtime_error("a client had more grants than it has memory for: ask for fewer seconds");
    for (std::uint32_t grant = before.grants[client]; grant < after.grants[client]; ++grant)
      waits.push_back(slot.waits[grant] / 1e3);
    const std::uint32_t grants = after.grants[client] - before.grants[client];
    least = std::min(least, grants);
    most = std::max(most, grants);
    if (const std::int64_t since = slot.waiting_since; since != 0) {
      const std::chrono::duration<double, std::milli> waited =
          after.at.time_since_epoch() - std::chrono::nanoseconds(since);
      longest = std::max(longest, waited.count());
    }
  }
  if (waits.empty()) throw std::runtime_error("nobody was granted the lock");
  std::sort(waits.begin(), waits.end());
  const auto grants = static_cast<double>(waits.size());
  return {
      .grants_per_second = grants / std::chrono::duration<double>(after.at - before.at).count(),
      .least = static_cast<double>(least),
      .most = static_cast<double>(most),
      .share = static_cast<double>(least) / static_cast<double>(most),
      .wait_median = bench::percentile(waits, 0.5),
      .wait_p99 = bench::percentile(waits, 0.99),
      .wait_longest = std::max(longest, waits.back()),
      .commands = (after.commands - before.commands) / grants,
      .sent = (after.reads - before.reads - own_reads) / grants,
      .subscriptions = (after.subscriptions - before.subscriptions) / grants,
      .server_time = std::chrono::duration<double, std::micro>(after.server_time - before.server_time).count() / grants,
  };
}

struct Setting {
  std::size_t clients;
  std::chrono::duration<double> warm_up;
  std::chrono::duration<double> window;
  std::chrono::duration<double> hold;
  std::chrono::duration<double> pause;
  double own_reads;  // Of the server, for a Reading.
};

Outcome run(const RedisServer& server, const Contender& contender, const Setting& setting) {
  static int runs = 0;
  const ContentionMemory memory(setting.clients);
  const std::unique_ptr<bench::Crowd> crowd =
      contender.start({memory, server.port(), "bench:" + std::to_string(++runs),
                       std::chrono::duration_cast<std::chrono::nanoseconds>(setting.hold),
                       std::chrono::duration_cast<std::chrono::nanoseconds>(setting.pause)});
  await_ready(memory, *crowd);
  memory.set_phase(ContentionPhase::running);
  std::this_thread::sleep_for(setting.warm_up);
  const Reading before = read_all(server, memory);
  std::this_thread::sleep_for(setting.window);
  const Reading after = read_all(server, memory);
  // The waits of now are looked at before those who wait are let go.
  const Outcome outcome = outcome_of(memory, before, after, setting.own_reads);
  memory.set_phase(ContentionPhase::ending);
  crowd->finish();
  if (memory.head().violated != 0) throw std::runtime_error("two clients were inside at once");
  return outcome;
}

// ---- The table ---------------------------------------------------------------------------------------------------

struct Column {
  const char* heading;
  const char* name;  // In the report.
  const char* unit;
  double Outcome::*value;
};
constexpr Column columns[] = {
    {"grants/s", "grants a second", "", &Outcome::grants_per_second},
    {"least", "grants of the client that had fewest", "", &Outcome::least},
    {"most", "grants of the client that had most", "", &Outcome::most},
    {"share", "fewest grants by most", "", &Outcome::share},
    {"p50 ms", "wait, median", "ms", &Outcome::wait_median},
    {"p99 ms", "wait, 99th percentile", "ms", &Outcome::wait_p99},
    {"longest ms", "wait, longest", "ms", &Outcome::wait_longest},
    {"commands", "commands run by the server, a grant", "", &Outcome::commands},
    {"sent", "requests sent by clients, a grant", "", &Outcome::sent},
    {"(un)subs", "SUBSCRIBE and UNSUBSCRIBE, a grant", "", &Outcome::subscriptions},
    {"server us", "processor time of the server, a grant", "us", &Outcome::server_time},
};

// Three digits, and no fraction where there are that many without it.
std::string number_text(double value) {
  char text[32];
  (void)std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : "%.3g", value);
  return text;
}

void print_heading(const Setting& setting, std::size_t rounds) {
  (void)std::printf("\n%zu clients, %g ms a hold, %g ms a pause, %g s a run, %zu rounds\n  %-26s", setting.clients,
                    1e3 * setting.hold.count(), 1e3 * setting.pause.count(), setting.window.count(), rounds, "");
  for (const Column& column : columns) (void)std::printf(" %13s", column.heading);
  (void)std::printf("\n");
}

void report_contender(bench::Report& report, std::size_t clients, const std::string& name,
                      const std::vector<Outcome>& outcomes) {
  std::string medians;
  std::string spreads;
  const auto add_cell = [](std::string& line, const std::string& text) {
    char cell[64];
    (void)std::snprintf(cell, sizeof cell, " %13s", text.c_str());
    line += cell;
  };
  for (const Column& column : columns) {
    std::vector<double> values;
    for (const Outcome& outcome : outcomes) values.push_back(outcome.*column.value);
    const bench::Spread spread = bench::spread(std::move(values));
    add_cell(medians, number_text(spread.median));
    add_cell(spreads, number_text(spread.p10) + "-" + number_text(spread.p90));
    report.add({.group = std::to_string(clients) + " clients: " + name,
                .name = column.name,
                .value = spread.median,
                .unit = column.unit,
                .rounds = outcomes.size(),
                .p10 = spread.p10,
                .p90 = spread.p90});
  }
  (void)std::printf("  %-26s%s\n  %-26s%s\n", name.c_str(), medians.c_str(), "", spreads.c_str());
  (void)std::fflush(stdout);
}

// ---- What was promised -------------------------------------------------------------------------------------------

// Of 32 clients that hold for 1 ms. What a ReentrantLock had when it was promised: 420 grants a second, 85 commands a grant.
constexpr std::size_t promised_clients = 32;
constexpr double promised_hold = 1e-3;
constexpr double former_grants = 420;
constexpr double former_commands = 85;

using Outcomes = std::vector<Outcome>;

double median_of(const Outcomes& outcomes, double Outcome::*value) {
  std::vector<double> values;
  for (const Outcome& outcome : outcomes) values.push_back(outcome.*value);
  return bench::spread(std::move(values)).median;
}

void report_promises(bench::Report& report, const Outcomes& fair, const Outcomes& reentrant) {
  const std::string group = "32 clients: what was promised";
  (void)std::printf("\n%s\n", group.c_str());
  const auto add = [&](const char* name, double value, bench::Bound bound = {}) {
    const bench::Figure figure = {group, name, value, "", bound};
    (void)std::printf("  %-48s %8s", name, number_text(value).c_str());
    if (bound.kind != bench::BoundKind::none)
      (void)std::printf("  %s %g%s", bound.kind == bench::BoundKind::value_at_least ? ">=" : "<=", bound.value,
                        figure.bound_met() ? "" : " MISSED");
    (void)std::printf("\n");
    report.add(figure);
  };
  std::vector<double> ratios;
  for (std::size_t round = 0; round < fair.size(); ++round)
    ratios.push_back(fair[round].grants_per_second / reentrant[round].grants_per_second);
  add("FairLock, grants by a ReentrantLock's", bench::spread(std::move(ratios)).median, bench::value_at_least(1.4));
  add("FairLock, grants by a ReentrantLock's of that time",
      median_of(fair, &Outcome::grants_per_second) / former_grants, bench::value_at_least(1.4));
  add("FairLock, fewest grants by most", median_of(fair, &Outcome::share), bench::value_at_least(0.8));
  // 22 and 3 were promised. Of the grants at the edges of the window, some have more of their requests in it, and some fewer.
  add("FairLock, commands a grant", median_of(fair, &Outcome::commands), bench::value_at_most(22.1));
  add("FairLock, requests a grant", median_of(fair, &Outcome::sent), bench::value_at_most(3.01));
  add("ReentrantLock, commands a grant", median_of(reentrant, &Outcome::commands), bench::value_at_most(30));
  add("ReentrantLock, commands by those of that time", median_of(reentrant, &Outcome::commands) / former_commands);
  add("ReentrantLock, grants by those of that time", median_of(reentrant, &Outcome::grants_per_second) / former_grants);
}

// ---- The program -------------------------------------------------------------------------------------------------

struct Asked {
  std::size_t processes = 0;  // All three numbers.
  double hold = 1;            // Milliseconds.
  double pause = 0;
  std::size_t rounds = 3;
  std::string contender;
};

std::vector<Contender> contenders_of(const Asked& asked) {
  std::vector<Contender> contenders = bench::contention_contenders();
  const auto other = [&](const Contender& it) { return it.name.find(asked.contender) == std::string::npos; };
  contenders.erase(std::remove_if(contenders.begin(), contenders.end(), other), contenders.end());
  if (contenders.empty()) throw bench::UsageError("there is no such contender: " + asked.contender);
  return contenders;
}

void measure(Harness& harness, const Asked& asked) {
  const bool smoke = harness.smoke();
  const RedisServer server(harness.binaries()[0]);
  const double own_reads = reads_of_reading(server);
  const std::vector<Contender> contenders = contenders_of(asked);
  std::vector<std::size_t> counts = {2, 8, 32};
  if (smoke) counts = {2};
  if (asked.processes != 0) counts = {asked.processes};
  const std::size_t rounds = smoke ? 1 : std::max<std::size_t>(asked.rounds, 1);
  std::mt19937 order_source(1);
  for (const std::size_t clients : counts) {
    const Setting setting = {
        .clients = clients,
        .warm_up = std::chrono::duration<double>(smoke ? 0.05 : 1),
        .window = std::chrono::duration<double>(smoke ? 0.2 : harness.seconds()),
        .hold = std::chrono::duration<double, std::milli>(smoke ? 0.1 : asked.hold),
        .pause = std::chrono::duration<double, std::milli>(asked.pause),
        .own_reads = own_reads,
    };
    std::vector<Outcomes> outcomes(contenders.size());
    std::vector<std::size_t> order;
    for (std::size_t index = 0; index < contenders.size(); ++index) order.push_back(index);
    for (std::size_t round = 0; round < rounds; ++round) {
      std::shuffle(order.begin(), order.end(), order_source);
      for (const std::size_t index : order) {
        try {
          outcomes[index].push_back(run(server, contenders[index], setting));
        } catch (const std::exception& error) {
          throw std::runtime_error(contenders[index].name + ": " + error.what());
        }
      }
    }
    print_heading(setting, rounds);
    for (std::size_t index = 0; index < contenders.size(); ++index)
      report_contender(harness.report(), clients, contenders[index].name, outcomes[index]);
    const auto outcomes_of = [&](const char* name) -> const Outcomes* {
      for (std::size_t index = 0; index < contenders.size(); ++index)
        if (contenders[index].name == name) return &outcomes[index];
      return nullptr;
    };
    const Outcomes* const fair = outcomes_of("holdfast FairLock");
    const Outcomes* const reentrant = outcomes_of("holdfast ReentrantLock");
    if (clients != promised_clients || setting.hold.count() != promised_hold || setting.pause.count() != 0) continue;
    if (fair == nullptr || reentrant == nullptr) continue;
    report_promises(harness.report(), *fair, *reentrant);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness({
      .name = "bench_contention",
      .purpose = "Measures what it costs when many clients fight for one lock, and how fairly they share it, over a "
                 "private server: the\n"
                 "first of HOLDFAST_SERVERS (separated by colons), else redis-server from the path. Beside holdfast's "
                 "python3 with redis,\n"
                 "and java (17) with Redisson, where they are in the path and in PYTHONPATH and CLASSPATH.",
      .title = "holdfast: many clients that fight for one lock",
      .files = "contention",
      .plotted = false,
  });
  Asked asked;
  harness.options().add("--processes N", &asked.processes, "how many clients (default: 2, then 8, then 32)");
  harness.options().add("--hold N", &asked.hold, "how long each holds the lock, in milliseconds (default 1)");
  harness.options().add("--pause N", &asked.pause, "how long each works between, in milliseconds (default 0)");
  harness.options().add("--rounds N", &asked.rounds, "how often each contender runs (default 3)");
  harness.options().add("--contender TEXT", &asked.contender, "only those with that in their name");
  harness.add_seconds(4, "how long each run is measured");
  harness.add_output("two clients, once and for 0.2 s: the figures mean nothing");
  return harness.main(argc, argv, [&] { measure(harness, asked); });
}
