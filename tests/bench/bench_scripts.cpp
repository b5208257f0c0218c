// SPDX-License-Identifier: MIT
//
// What does an acquire and its release cost the server? By its own clock: the microseconds that INFO commandstats has for what
// clients sent, scripts with all that they call, over a private server that this program starts. All kinds in rounds of random
// order, each beside a Mutex; two scripts that do nothing are what any two scripts cost. Prints tables and writes scripts.json
// and scripts.svg.
//
// How to read it: the first table has, of each kind, the time of a pair and its ratio to a Mutex's in the same round. Those after
// it say of what that time is: the commands that a pair's scripts call, how often, and what is left for Lua and the replies. Each
// call has some of that, too: between Lua and a command, arguments and a reply are turned over.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "command_stats.hpp"
#include "harness.hpp"
#include "holdfast/holdfast.hpp"
#include "holdfast_party.hpp"
#include "paired_rounds.hpp"
#include "raw_client.hpp"
#include "redis_server.hpp"
#include "report.hpp"

namespace {

using bench::Address;
using bench::CommandStats;
using bench::Harness;

// ---- Pairs -------------------------------------------------------------------------------------------------------

struct Pair {
  std::string name;
  std::function<void()> once;
  std::vector<std::string> sent;  // The commands that clients send for it. No script of it calls one of these.
  bench::Bound promised;
};

const std::vector<std::string> scripts_alone = {"evalsha"};

// The lock is what `lock_of` says of the party.
template <class Party, class LockOf>
Pair pair_of(const std::string& name, const std::shared_ptr<Party>& party, LockOf lock_of, bench::Bound promised = {}) {
  return {name,
          [party, lock_of] {
            auto& lock = lock_of(*party);
            party->expect_ok(lock.try_acquire());
            party->expect_ok(lock.release());
          },
          scripts_alone, promised};
}

template <class Lock>
Pair owned_pair(const std::string& name, const Address& address, bench::Bound promised = {}) {
  auto party = std::make_shared<bench::OwnedParty<Lock>>(bench::next_key());
  party->connect(address);
  return pair_of(
      name, party, [](auto& it) -> Lock& { return it.lock; }, promised);
}

struct FencedMutexParty : bench::HoldfastParty {
  holdfast::Mutex lock{client, bench::next_key(), {.lease = bench::party_lease}, {.fence = true}};
};
struct FencedFairParty : bench::HoldfastParty {
  holdfast::Owner owner{client};
  holdfast::FairLock lock{owner, bench::next_key(), {.lease = bench::party_lease}, {.fence = true}};
};
struct TwoNamesParty : bench::HoldfastParty {
  holdfast::Owner owner{client};
  std::string names[2] = {bench::next_key(), bench::next_key()};
  holdfast::MultiLock lock{owner, names, {.lease = bench::party_lease}};
};
struct ReadWriteParty : bench::HoldfastParty {
  holdfast::Owner owner{client};
  holdfast::ReadWriteLock lock{
      owner, bench::next_key(), {.read = {.lease = bench::party_lease}, .write = {.lease = bench::party_lease}}};
};
struct SemaphoreParty : bench::HoldfastParty {
  holdfast::Semaphore lock{client, bench::next_key(), 2, {.lease = bench::party_lease}};
};

template <class Party>
std::shared_ptr<Party> connected_party(const Address& address) {
  auto party = std::make_shared<Party>();
  party->connect(address);
  return party;
}

// As many arguments as a reentrant lock's have.
Pair empty_scripts(const Address& address) {
  auto socket = std::make_shared<bench::RawSocket>(address);
  static constexpr holdfast::Script script = holdfast::make_script("return 1");
  bench::load_script(*socket, script);
  const std::string request = bench::encoded(
      {"EVALSHA", std::string(script.sha.bytes().string_view()), "1", bench::next_key(), "owner", "30000"});
  return {"two empty scripts",
          [socket, request] {
            for (int sent = 0; sent < 2; ++sent) {
              socket->send(request);
              socket->expect_reply(":1\r\n");
            }
          },
          scripts_alone,
          {}};
}

// What was promised is a multiple of what a Mutex's pair cost in the run that the promise was made by: 6.6 us.
std::vector<Pair> pairs_of(const Address& address) {
  const auto lock_of = [](auto& it) -> auto& { return it.lock; };
  auto mutex = std::make_shared<bench::MutexParty<false>>(bench::next_key());
  mutex->connect(address);
  Pair plain = pair_of("Mutex", mutex, lock_of);
  plain.sent = {"set", "evalsha", "delex", "delifeq"};
  const auto read_write = connected_party<ReadWriteParty>(address);
  return {
      std::move(plain),
      empty_scripts(address),
      pair_of("Mutex, fenced", connected_party<FencedMutexParty>(address), lock_of),
      owned_pair<holdfast::ReentrantLock>("ReentrantLock", address, bench::at_most(10 / 6.6)),
      owned_pair<holdfast::FencedLock>("FencedLock", address, bench::at_most(13 / 6.6)),
      owned_pair<holdfast::FairLock>("FairLock", address),
      pair_of("FairLock, fenced", connected_party<FencedFairParty>(address), lock_of),
      pair_of("MultiLock of two names", connected_party<TwoNamesParty>(address), lock_of),
      pair_of(
          "ReadWriteLock, read", read_write, [](auto& it) -> auto& { return it.lock.read(); }),
      pair_of(
          "ReadWriteLock, write", read_write, [](auto& it) -> auto& { return it.lock.write(); }),
      pair_of("Semaphore of two", connected_party<SemaphoreParty>(address), lock_of),
  };
}

// ---- What the server says of them --------------------------------------------------------------------------------

double microseconds_of(const CommandStats& stats, const std::vector<std::string>& commands) {
  double sum = 0;
  for (const std::string& command : commands)
    if (const auto it = stats.find(command); it != stats.end()) sum += it->second.microseconds;
  return sum;
}

// Nanoseconds of the server, for one of so many pairs.
double sampled(const RedisServer& server, const Pair& pair, int count) {
  const double before = microseconds_of(bench::command_stats(server), pair.sent);
  for (int done = 0; done < count; ++done) pair.once();
  return 1e3 * (microseconds_of(bench::command_stats(server), pair.sent) - before) / count;
}

// Of what a pair's time is.
void report_commands(bench::Report& report, const RedisServer& server, const Pair& pair, int count) {
  const CommandStats before = bench::command_stats(server);
  for (int done = 0; done < count; ++done) pair.once();
  CommandStats after = bench::command_stats(server);
  const std::string group = pair.name + ": what a pair calls";
  double inside = 0;
  for (auto& [name, stat] : after) {
    if (const auto it = before.find(name); it != before.end()) {
      stat.calls -= it->second.calls;
      stat.microseconds -= it->second.microseconds;
    }
    const bool was_sent = std::find(pair.sent.begin(), pair.sent.end(), name) != pair.sent.end();
    if (stat.calls == 0 || name == "info" || (was_sent && name == "evalsha")) continue;
    inside += stat.microseconds;
    char calls[24];
    (void)std::snprintf(calls, sizeof calls, "%g ", stat.calls / count);
    report.add({group, calls + name, stat.microseconds / count, "us"});
  }
  double all = 0;
  for (const std::string& command : pair.sent) all += after[command].microseconds;
  report.add({group, "Lua and replies", (all - inside) / count, "us"});
}

void measure(Harness& harness) {
  const RedisServer server(harness.binaries()[0]);
  const std::vector<Pair> pairs = pairs_of(harness.addresses_of(server)[0]);
  const bench::Effort effort = harness.effort(1, 1, 1);
  const int count = harness.smoke() ? 3 : 100;
  bench::PairedRounds rounds(effort.samples, 1, 1);
  for (const Pair& pair : pairs) {
    pair.once();  // The server has its scripts from here on.
    rounds.add_sampled(pair.name, [&] { return sampled(server, pair, count); });
  }
  rounds.run(effort.share, effort.rounds_min);
  for (const Pair& pair : pairs)
    harness.report().add("processor of the server, a pair", rounds, pair.name, "Mutex", pair.promised);
  for (const Pair& pair : pairs) report_commands(harness.report(), server, pair, 10 * count);
  harness.print_new_rows();
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness({
      .name = "bench_scripts",
      .purpose =
          "Measures what an acquire and its release cost the server, by INFO commandstats of a private one: the first "
          "of\n"
          "HOLDFAST_SERVERS (separated by colons), else redis-server from the path.",
      .title = "holdfast: what a pair costs the server, ratios of one run",
      .files = "scripts",
  });
  harness.add_seconds(30, "how long, all in all, about");
  harness.add_output();
  return harness.main(argc, argv, [&] { measure(harness); });
}
