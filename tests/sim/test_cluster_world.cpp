// SPDX-License-Identifier: MIT
//
// Small worlds (small_world.hpp) with a cluster: the lock's slot is moved key by key, its masters fail over, connections end at any
// byte, and nodes know late where the slot is. In others its masters die and lose what their replicas have not read, and a grant
// counts only when a replica has confirmed it.
//
// HOLDFAST_CLUSTER_WORLDS: how many worlds (default 300). HOLDFAST_CLUSTER_SEED: the first one's seed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "cluster_model.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/proto/slot.hpp"
#include "small_world.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::sim;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr std::size_t servers = 3;
constexpr std::size_t clients = 3;
constexpr std::uint16_t port_base = 7000;
const std::vector<std::string> lock_keys = {small_world_name, std::string("redisson_lock_token:") + small_world_name};

// The masters of one slot, and what each node thinks of it.
class Slot final : public Servers {
 public:
  Slot()
      : Servers(servers, {.cluster = true}),
        cluster_(nodes(), "10.0.0.1", port_base),
        slot(cluster_.add_slot(slot_of(small_world_name), 0)) {
    for (std::size_t server = 0; server < servers; ++server)
      models[server]->set_gate([this, server](ConnectionId, std::span<const std::string_view> words,
                                              std::string& reply) { return cluster_.answer(server, words, reply); });
    for (Copy& copy : copies) copy.data = models[slot.owner]->copy_data();
  }

  [[nodiscard]] std::size_t at(std::uint16_t port) const override {
    return std::min<std::size_t>(port - port_base, servers);
  }
  std::string answer(std::size_t server, ConnectionId connection, const std::string& request,
                     const std::vector<std::string_view>& words) override {
    models[server]->receive(connection, request);
    std::string reply = models[server]->take_output(connection);
    if (words[0] != "PTTL" && !reply.starts_with("-MOVED") && !reply.starts_with("-ASK") &&
        !reply.starts_with("-TRYAGAIN"))
      written[connection] = ++offset;  // As servers before 7.2 count: also what has written nothing.
    return reply;
  }
  std::optional<std::string> answer_wait(std::size_t server, ConnectionId connection,
                                         const std::vector<std::string_view>& words, bool over) override {
    if (server != slot.owner) return "-UNBLOCKED force unblock from blocking operation, instance state changed\r\n";
    const auto have = std::count_if(std::begin(copies), std::end(copies),
                                    [&](const Copy& copy) { return copy.offset >= written[connection]; });
    if (have < std::atoi(std::string(words[1]).c_str()) && !over) return std::nullopt;
    return ":" + std::to_string(have) + "\r\n";
  }
  // A replica has read all that there is.
  void replicate(std::size_t replica) { copies[replica] = {models[slot.owner]->copy_data(), offset}; }
  // The master is gone, and what no replica has read with it. The one that has read most takes its place.
  void die(std::size_t after) {
    const Copy heir = copies[0].offset >= copies[1].offset ? copies[0] : copies[1];
    models[after]->load_data(heir.data);
    models[slot.owner]->flush();
    ++deaths[slot.owner];
    cluster_.hand_over(slot, after);
    for (Copy& copy : copies) copy = {heir.data, offset};
  }
  void begin_move(std::size_t after) { cluster_.begin_move(slot, after); }
  void move_key(const std::string& key) { cluster_.move_key(slot, key, !loses_data); }
  void finish_move() { cluster_.finish_move(slot, !loses_data); }
  void call_off() { cluster_.call_off(slot); }
  // By agreement: the new master has all that the old one had.
  void fail_over(std::size_t after) { cluster_.fail_over(slot.owner, after); }
  [[nodiscard]] const Entry* lock() const override {
    if (const Entry* entry = models[slot.owner]->find(small_world_name); entry != nullptr) return entry;
    return slot.target ? models[*slot.target]->find(small_world_name) : nullptr;
  }
  [[nodiscard]] int moves() const noexcept { return static_cast<int>(cluster_.moves); }
  [[nodiscard]] int asks() const noexcept { return static_cast<int>(cluster_.asks); }

 private:
  [[nodiscard]] std::vector<ModelRedis*> nodes() const {
    std::vector<ModelRedis*> all;
    for (const auto& model : models) all.push_back(model.get());
    return all;
  }
  ClusterModel cluster_;

 public:
  ClusterModel::Slot& slot;
  // What a replica has read, and how much that is.
  struct Copy {
    Databases data;
    std::uint64_t offset = 0;
  };
  Copy copies[2];
  std::uint64_t offset = 0;
  std::map<ConnectionId, std::uint64_t> written;  // By whom, up to where.
  bool loses_data = false;                        // A canary: what is moved does not arrive.
};

// What a world is about.
struct Matter {
  Habits habits = {};  // With acks the slot stays, and its masters die.
  bool loses_data = false;
};

struct Sum {
  int grants = 0;
  int losses = 0;
  int moves = 0;
  int asks = 0;
  int refusals = 0;
};

// False: somebody was told that it has the lock, and has not, or another has it, too.
bool run_world(std::uint64_t seed, Sum& sum, const Matter& matter = {}) {
  Random random(seed);
  const LockKind& kind = random.below(2) == 0 ? mutex_kind : fenced_kind;
  Cluster cluster({.hosts = "10.0.0.1:7000,10.0.0.1:7001,10.0.0.1:7002", .name = small_world_name});
  Slot slot;
  slot.loses_data = matter.loses_data;
  std::vector<std::unique_ptr<Program>> programs;
  for (std::size_t index = 0; index < clients; ++index)
    programs.push_back(std::make_unique<Program>(slot, cluster, index, kind, random, matter.habits));
  const std::uint64_t lag = matter.habits.acks ? 2 + random.below(60) : 1;
  Instant now = small_world_start;
  constexpr int turns = 4000;
  constexpr int quiet_turns = 1500;
  for (int turn = 0; turn < turns + quiet_turns; ++turn) {
    now = now + std::chrono::milliseconds(random.between(1, 10));
    slot.set_now(now);
    const bool quiet = turn >= turns;
    const auto other = [&] { return (slot.slot.owner + 1 + random.below(servers - 1)) % servers; };
    if (matter.habits.acks)
      for (std::size_t replica = 0; replica < std::size(slot.copies); ++replica)
        if (random.below(lag) == 0) slot.replicate(replica);
    if (!quiet) switch (random.below(150)) {
        case 0:
          if (matter.habits.acks)
            slot.die(other());
          else if (!slot.slot.target)
            slot.begin_move(other());
          break;
        case 1: slot.move_key(lock_keys[random.below(lock_keys.size())]); break;
        case 2:
          if (slot.slot.target) random.below(4) == 0 ? slot.call_off() : slot.finish_move();
          break;
        case 3:
          // A new master does not know of a move under way: what was moved already would be lost.
          if (!matter.habits.acks && !slot.slot.target && random.below(2) == 0) slot.fail_over(other());
          break;
        case 4: programs[random.below(clients)]->cut(); break;
        case 5:
        case 6: ClusterModel::learn(slot.slot, random.below(servers)); break;
        default: break;
      }
    if (quiet && slot.slot.target) slot.finish_move();
    if (quiet) std::fill(slot.slot.known.begin(), slot.slot.known.end(), slot.slot.owner);
    for (const auto& program : programs) {
      if (quiet) program->rests = true;
      if (random.below(3) != 0) program->serve();
      program->turn(now);
      if (!exclude_each_other(programs, slot, now)) return false;
    }
  }
  for (const auto& program : programs) {
    TEST_ASSERT_TRUE(program->settled());
    sum.grants += program->grants;
    sum.losses += program->losses;
    sum.refusals += program->refusals;
  }
  for (const auto& model : slot.models) TEST_ASSERT_TRUE(model->find(small_world_name) == nullptr);
  sum.moves += slot.moves();
  sum.asks += slot.asks();
  return true;
}

}  // namespace

TEST(test_a_slot_that_moves_should_give_its_lock_to_one_at_a_time) {
  const std::uint64_t first = number_from("HOLDFAST_CLUSTER_SEED", 1);
  const std::uint64_t worlds = number_from("HOLDFAST_CLUSTER_WORLDS", 300);
  Sum sum;
  for (std::uint64_t seed = first; seed != first + worlds; ++seed) {
    TEST_MESSAGE("seed " << seed);
    TEST_ASSERT_TRUE(run_world(seed, sum));
  }
  std::printf("%llu worlds: %d grants, %d losses, %d moves, %d times ASK\n", static_cast<unsigned long long>(worlds),
              sum.grants, sum.losses, sum.moves, sum.asks);
  // It went on all the time, and what it is about has happened.
  TEST_ASSERT_TRUE(sum.grants > static_cast<int>(worlds) * 5);
  TEST_ASSERT_TRUE(sum.moves > static_cast<int>(worlds));
  TEST_ASSERT_TRUE(sum.asks > static_cast<int>(worlds));
}

TEST(test_a_move_that_loses_data_should_be_seen_by_the_checker) {
  Sum sum;
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) seen += run_world(seed, sum, {.loses_data = true}) ? 0 : 1;
  TEST_ASSERT_TRUE(seen > 10);
}

TEST(test_a_confirmed_grant_should_outlive_masters_that_die) {
  const std::uint64_t first = number_from("HOLDFAST_CLUSTER_SEED", 1);
  const std::uint64_t worlds = number_from("HOLDFAST_CLUSTER_WORLDS", 300);
  Sum sum;
  for (std::uint64_t seed = first; seed != first + worlds; ++seed) {
    TEST_MESSAGE("seed " << seed);
    TEST_ASSERT_TRUE(run_world(seed, sum, {.habits = {.acks = true}}));
  }
  std::printf("%llu worlds: %d grants, %d losses, %d dead masters, %d grants that were not confirmed\n",
              static_cast<unsigned long long>(worlds), sum.grants, sum.losses, sum.moves, sum.refusals);
  TEST_ASSERT_TRUE(sum.grants > static_cast<int>(worlds) * 5);
  TEST_ASSERT_TRUE(sum.moves > static_cast<int>(worlds) * 5);
  TEST_ASSERT_TRUE(sum.refusals > static_cast<int>(worlds));
}

TEST(test_grants_that_count_at_once_should_be_seen_by_the_checker) {
  Sum sum;
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    seen += run_world(seed, sum, {.habits = {.acks = true, .ignores_acks = true}}) ? 0 : 1;
  TEST_ASSERT_TRUE(seen > 10);
}
