// SPDX-License-Identifier: MIT
//
// Small worlds (small_world.hpp) with sentinels: the master changes, sentinels learn of it late and name different servers, or none,
// connections end at any byte, and who was demoted says so or closes its connections. In the first worlds the new master has all
// that the old one had; in the others it lacks what it had not read yet, and in half of these the counter of fences, too.
//
// HOLDFAST_SENTINEL_WORLDS: how many worlds (default 300). HOLDFAST_SENTINEL_SEED: the first one's seed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/sentinels.hpp"
#include "resp_text.hpp"
#include "small_world.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::sim;
using holdfast::testing::bulk;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr std::size_t servers = 3;
constexpr std::size_t sentinels = 3;
constexpr std::size_t clients = 3;
constexpr std::size_t nobody = servers;
constexpr std::uint16_t port_base = 7000;
constexpr std::uint16_t sentinel_port_base = 26379;

// A master, its replicas, and what each sentinel thinks of them.
class Service final : public Servers {
 public:
  Service() : Servers(servers + sentinels) {}

  [[nodiscard]] std::size_t at(std::uint16_t port) const override {
    if (port >= port_base && port < port_base + servers) return port - port_base;
    if (port >= sentinel_port_base && port < sentinel_port_base + sentinels) return port - sentinel_port_base + servers;
    return models.size();
  }
  std::string answer(std::size_t server, ConnectionId connection, const std::string& request,
                     const std::vector<std::string_view>& words) override {
    if (server >= servers && words[0] == "SENTINEL") {
      ++questions;
      const std::size_t named = names[server - servers];
      return named == nobody ? "*-1\r\n" : "*2\r\n" + bulk("10.0.0.1") + bulk(std::to_string(port_base + named));
    }
    TEST_ASSERT_TRUE(server < servers || words[0] == "CLIENT");  // Nothing of a lock goes to a sentinel.
    const bool script = words[0] == "EVAL" || words[0] == "EVALSHA";
    const bool writes = words[0] == "SET" || words[0] == "DELEX" || (script && words[2] != "0");
    const bool replica = !serves(server);
    if (writes && replica) {
      ++refused;
      return "-READONLY You can't write against a read only replica.\r\n";
    }
    models[server]->receive(connection, request);
    std::string reply = models[server]->take_output(connection);
    // A model is nobody's replica.
    const std::string master = bulk("-1standalonemaster");
    if (const std::size_t found = reply.find(master); replica && found != std::string::npos) {
      ++proofs;
      reply.replace(found, master.size(), bulk("-1standaloneslave"));
    }
    return reply;
  }
  [[nodiscard]] const Entry* lock() const override { return models[owner]->find(small_world_name); }

  void demote(bool closes) {
    demoted = true;
    if (closes) ++deaths[owner];
  }
  // The new master has all that the old one had.
  void promote(std::size_t after) {
    models[after]->load_data(models[owner]->copy_data());
    owner = after;
    demoted = false;
    ++moves;
  }
  // Both replicas read all that there is.
  void replicate() { copy = models[owner]->copy_data(); }
  // The master is gone, and what no replica has read with it. It comes back as a replica.
  void die(std::size_t after) {
    ++deaths[owner];
    if (forgets) copy[0].erase(std::string("redisson_lock_token:") + small_world_name);
    models[after]->load_data(copy);
    owner = after;
    ++moves;
  }

  std::size_t owner = 0;              // The master, or who was it last.
  bool demoted = false;               // Nobody is master now.
  bool lies = false;                  // A canary: who was demoted goes on as a master.
  bool forgets = false;               // A new master has no counter of fences.
  std::size_t names[sentinels] = {};  // Whom each of them names.
  Databases copy = models[0]->copy_data();
  int moves = 0;
  int questions = 0;  // To sentinels.
  int refused = 0;    // Writes at replicas.
  int proofs = 0;     // Replicas that said what they are.

 private:
  [[nodiscard]] bool serves(std::size_t server) const { return lies || (server == owner && !demoted); }
};

struct Matter {
  bool loses_data = false;  // Fail-overs lack what was not replicated.
  bool lies = false;        // Service::lies.
  bool behind = false;      // A canary: new masters have no counter of fences, and their clocks are behind.
};

struct Sum {
  int grants = 0;
  int losses = 0;
  int moves = 0;
  int overlaps = 0;
  int refused = 0;
  int proofs = 0;
};

// What the lock protects, and who wrote last.
struct Resource {
  std::uint64_t fence = 0;
};

// What is promised where a fail-over loses holds: a hold that the master knows is above all fences that were used before, and two
// who both believe are one from before the fail-over, whose lease is not over, and one from after it.
bool hold_as_promised(const std::vector<std::unique_ptr<Program>>& programs, const Service& service, Instant now,
                      Instant lost_at, Resource& resource, Sum& sum) {
  int believers = 0;
  int unknown = 0;
  for (const auto& program : programs) {
    if (!program->held(now)) continue;
    ++believers;
    const bool known = holds(service.lock(), program->token());
    unknown += known ? 0 : 1;
    if (known && program->fence() < resource.fence) return false;
    resource.fence = std::max(resource.fence, program->fence());
  }
  if (believers > 1) ++sum.overlaps;
  if (unknown != 0 && now > lost_at + small_world_lease) return false;
  return believers - unknown <= 1;
}

bool run_world(std::uint64_t seed, Sum& sum, const Matter& matter = {}) {
  Random random(seed);
  const LockKind& kind = !matter.loses_data && random.below(2) == 0 ? mutex_kind : fenced_kind;
  Sentinels guides({.hosts = "10.0.0.1:26379,10.0.0.1:26380,10.0.0.1:26381", .service = "s"});
  Service service;
  service.lies = matter.lies;
  service.forgets = matter.behind || (matter.loses_data && random.below(2) == 0);
  std::vector<std::unique_ptr<Program>> programs;
  for (std::size_t index = 0; index < clients; ++index)
    programs.push_back(std::make_unique<Program>(service, guides, index, kind, random, Habits{}));
  Resource resource;
  Instant now = small_world_start;
  Instant lost_at;
  constexpr int turns = 4000;
  constexpr int quiet_turns = 1500;
  for (int turn = 0; turn < turns + quiet_turns; ++turn) {
    now = now + std::chrono::milliseconds(random.between(1, 10));
    service.set_now(now);
    if (matter.behind) service.models[service.owner]->set_now(small_world_wall_start - service.moves * 1'000'000'000LL);
    const bool quiet = turn >= turns;
    const auto other = [&] { return (service.owner + 1 + random.below(servers - 1)) % servers; };
    if (random.below(20) == 0) service.replicate();
    if (!quiet) switch (random.below(150)) {
        case 0:
          if (matter.loses_data) {
            service.die(other());
            lost_at = now;
          } else if (!service.demoted) {
            service.demote(random.below(2) == 0);
          }
          break;
        case 1:
        case 2:
          if (service.demoted) service.promote(other());
          break;
        case 3:
        case 4:
        case 5: service.names[random.below(sentinels)] = service.owner; break;
        case 6: service.names[random.below(sentinels)] = random.below(servers + 1); break;
        case 7: programs[random.below(clients)]->cut(); break;
        default: break;
      }
    if (quiet && service.demoted) service.promote(other());
    if (quiet) std::fill(std::begin(service.names), std::end(service.names), service.owner);
    for (const auto& program : programs) {
      if (quiet) program->rests = true;
      if (random.below(3) != 0) program->serve();
      program->turn(now);
      if (matter.loses_data ? !hold_as_promised(programs, service, now, lost_at, resource, sum)
                            : !exclude_each_other(programs, service, now))
        return false;
    }
  }
  for (const auto& program : programs) {
    TEST_ASSERT_TRUE(program->settled());
    sum.grants += program->grants;
    sum.losses += program->losses;
  }
  TEST_ASSERT_TRUE(service.lock() == nullptr);
  sum.moves += service.moves;
  sum.refused += service.refused;
  sum.proofs += service.proofs;
  return true;
}

Sum run_worlds(const Matter& matter) {
  const std::uint64_t first = number_from("HOLDFAST_SENTINEL_SEED", 1);
  const std::uint64_t worlds = number_from("HOLDFAST_SENTINEL_WORLDS", 300);
  Sum sum;
  for (std::uint64_t seed = first; seed != first + worlds; ++seed) {
    TEST_MESSAGE("seed " << seed);
    TEST_ASSERT_TRUE(run_world(seed, sum, matter));
  }
  std::printf(
      "%llu worlds: %d grants, %d losses, %d new masters, %d overlaps, %d writes refused and %d times disbelieved\n",
      static_cast<unsigned long long>(worlds), sum.grants, sum.losses, sum.moves, sum.overlaps, sum.refused,
      sum.proofs);
  // It went on all the time, and what it is about has happened.
  TEST_ASSERT_TRUE(sum.grants > static_cast<int>(worlds) * 5);
  TEST_ASSERT_TRUE(sum.moves > static_cast<int>(worlds) * 5);
  TEST_ASSERT_TRUE(sum.proofs > static_cast<int>(worlds));
  return sum;
}

int seen_in(const Matter& matter) {
  Sum sum;
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) seen += run_world(seed, sum, matter) ? 0 : 1;
  return seen;
}

}  // namespace

TEST(test_a_master_that_changes_should_give_its_lock_to_one_at_a_time) {
  const Sum sum = run_worlds({});
  TEST_ASSERT_TRUE(sum.refused > 0 && sum.overlaps == 0);
}

TEST(test_a_hold_that_the_new_master_does_not_know_should_end_and_be_below_all_later_fences) {
  const Sum sum = run_worlds({.loses_data = true});
  TEST_ASSERT_TRUE(sum.losses > 0 && sum.overlaps > 0);
}

TEST(test_replicas_that_say_that_they_are_masters_should_be_seen_by_the_checker) {
  TEST_ASSERT_TRUE(seen_in({.lies = true}) > 10);
}

TEST(test_masters_that_forget_fences_and_have_clocks_behind_should_be_seen_by_the_checker) {
  TEST_ASSERT_TRUE(seen_in({.loses_data = true, .behind = true}) > 10);
}
