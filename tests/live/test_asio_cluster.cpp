// SPDX-License-Identifier: MIT
//
// What an Asio client of a cluster has that a blocking one has not: many calls at once, `acks` at many masters, a bound on what it
// makes. Names of many slots are in test_cluster_slots.cpp, over both clients.
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "answering_server.hpp"
#include "asio_fixture.hpp"
#include "client_list.hpp"
#include "cluster_setup.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/proto/slot.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// A client of a cluster, connected by these hosts.
struct ClusterWorld {
  ClusterWorld(const std::string& hosts, const std::string& name, const AsyncLimits& limits = {},
               const char* client_name = "world")
      : cluster({.hosts = ByteView(hosts), .name = ByteView(name)}), client(loop.get_executor(), limits) {
    config.topology = &cluster;
    config.request_timeout = 5s;
    config.connect_timeout = 5s;
    config.client_name = client_name;
    TEST_ASSERT_EQUAL(Status::ok, ::connect(loop, client, config));
  }
  Status acquire(AsyncLock& lock, Duration wait = Duration::zero()) { return ::acquire(loop, lock, wait); }
  Status renew(AsyncLock& lock) { return ::renew(loop, lock); }
  Status release(AsyncLock& lock) { return ::release(loop, lock); }
  template <class Condition>
  [[nodiscard]] bool runs_until(Condition&& condition, Duration limit = patience) {
    return ::runs_until(loop, std::forward<Condition>(condition), limit);
  }

  Cluster cluster;
  ClientConfig config;
  asio::io_context loop{1};
  AsyncClient client;
};

// Takes a lock, holds it for a moment, and takes it again, until it is told to end.
class Actor {
 public:
  Actor(ClusterWorld& world, AsyncLock& lock, int& inside, int& counter, bool& over)
      : world_(world), lock_(lock), inside_(inside), counter_(counter), over_(over) {}
  void start() {
    if (over_) {
      ended = true;
      return;
    }
    lock_.async_acquire(20s, [this](std::error_code error) {
      if (error) return start();
      if (inside_++ != 0) overlapped = true;
      asio::post(world_.loop, [this] {
        --inside_;
        ++counter_;
        ++grants;
        lock_.async_release([this](std::error_code) { start(); });
      });
    });
  }

  bool ended = false;
  bool overlapped = false;
  int grants = 0;

 private:
  ClusterWorld& world_;
  AsyncLock& lock_;
  int& inside_;
  int& counter_;
  bool& over_;
};

}  // namespace

// ---- Finding -----------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_names_of_two_slots_should_be_no_multi_lock_and_may_be_a_set) {
  ClusterWorld world(cluster.host(0), "k");
  AsyncOwner owner(world.client);
  const std::string names[] = {name_at(0), name_at(2)};
  const BytesArgument views[] = {names[0], names[1]};
  AsyncMultiLock multi(owner, views);
  TEST_ASSERT_EQUAL(Status::cross_slot, world.acquire(multi));
  TEST_ASSERT_EQUAL(0U, cluster.masters_that_say("errorstats", "CROSSSLOT"));  // Nothing was sent.
  AsyncMutex one(world.client, ByteView(names[0]));
  AsyncMutex other(world.client, ByteView(names[1]));
  AsyncHandle* both[] = {&one, &other};
  AsyncLockSet set(both, 2);
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { set.async_acquire(5s, handler); }));
  TEST_ASSERT_EQUAL("1", cluster.servers[0]->command({"EXISTS", names[0]}));
  TEST_ASSERT_EQUAL("1", cluster.servers[2]->command({"EXISTS", names[1]}));
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { set.async_release(handler); }));
}

// ---- Moving ------------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_holds_should_be_renewed_in_calls_of_one_slot) {
  ClusterWorld world(cluster.host(0), "k");
  std::deque<AsyncMutex> locks;
  constexpr std::size_t slots = 6;
  constexpr std::size_t each = 8;
  for (std::size_t slot = 0; slot < slots; ++slot)
    for (std::size_t number = 0; number < each; ++number) {
      const std::string name = "{" + std::to_string(slot) + "}" + std::to_string(number);
      AsyncMutex& lock = locks.emplace_back(world.client, ByteView(name), LockTiming{.lease = 3s});
      TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
    }
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
  TEST_ASSERT_EQUAL(slots * each, world.client.kept());
  const Instant begin = Client::now();
  TEST_ASSERT_TRUE(world.runs_until([&] {
    for (const AsyncMutex& lock : locks)
      if (lock.valid_until() < begin + 6s) return false;
    return true;
  }));
  for (AsyncMutex& lock : locks) TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0U, cluster.masters_that_say("errorstats", "CROSSSLOT"));  // No call was for two slots.
  // And fewer calls than one for each hold.
  TEST_ASSERT_TRUE(world.client.renewal_calls() < 3 * slots * each);
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  TEST_ASSERT_EQUAL(0U, world.client.kept());
}

TEST_ON_CLUSTER(test_many_calls_of_one_loop_should_lose_no_count_while_slots_move) {
  constexpr std::size_t names = 3;
  constexpr std::size_t clients = 2;
  constexpr int moves = 6;
  std::string name[names];
  for (std::size_t index = 0; index < names; ++index) name[index] = name_at(index, "counter");
  std::vector<std::unique_ptr<ClusterWorld>> worlds;
  std::vector<std::unique_ptr<AsyncOwner>> owners;
  std::vector<std::unique_ptr<AsyncReentrantLock>> locks;
  std::vector<std::unique_ptr<Actor>> actors;
  int inside[names] = {};
  int counter[names] = {};
  bool over = false;
  for (std::size_t client = 0; client < clients; ++client) {
    worlds.push_back(std::make_unique<ClusterWorld>(cluster.hosts(), name[client]));
    for (std::size_t index = 0; index < names; ++index)
      for (int twice = 0; twice < 2; ++twice) {
        owners.push_back(std::make_unique<AsyncOwner>(worlds[client]->client));
        locks.push_back(std::make_unique<AsyncReentrantLock>(*owners.back(), ByteView(name[index])));
        actors.push_back(std::make_unique<Actor>(*worlds[client], *locks.back(), inside[index], counter[index], over));
        actors.back()->start();
      }
  }
  std::atomic<int> moved = 0;
  std::atomic<int> counted = 0;
  std::string trouble;
  std::thread mover([&] {
    try {
      for (int move = 0; move < moves; ++move) {
        const std::string& key = name[static_cast<std::size_t>(move) % names];
        cluster.move_slot(key, cluster.other_than(cluster.master_of(key)));
        const int before = counted;
        (void)comes([&] { return counted > before + 20; }, std::chrono::seconds(30));
        ++moved;
      }
    } catch (const std::exception& error) {
      trouble = error.what();
      moved = moves;
    }
  });
  const auto turn = [&] {
    for (const auto& world : worlds) (void)world->loop.poll();
    int sum = 0;
    for (const int count : counter) sum += count;
    counted = sum;
  };
  TEST_ASSERT_TRUE(worlds[0]->runs_until([&] {
    turn();
    return moved == moves;
  }));
  mover.join();
  over = true;
  TEST_ASSERT_TRUE(worlds[0]->runs_until([&] {
    turn();
    for (const auto& actor : actors)
      if (!actor->ended) return false;
    return true;
  }));
  TEST_ASSERT_EQUAL("", trouble);
  int sum = 0;
  int grants = 0;
  for (const int count : counter) sum += count;
  for (const auto& actor : actors) {
    TEST_ASSERT_FALSE(actor->overlapped);
    TEST_ASSERT_TRUE(actor->grants > 0);
    grants += actor->grants;
  }
  TEST_ASSERT_EQUAL(grants, sum);
  for (const std::string& key : name) TEST_ASSERT_EQUAL("0", cluster.master(key).command({"EXISTS", key}));
}

// ---- Fail-overs --------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_the_death_of_a_master_should_not_hold_up_the_names_of_others, 3000) {
  ClusterWorld world(cluster.hosts(), name_at(0, "home"));
  const std::string well_name = name_at(2, "well");
  const std::string dead_name = name_at(1, "dead");
  AsyncMutex well(world.client, ByteView(well_name));
  AsyncMutex dead(world.client, ByteView(dead_name));
  for (AsyncMutex* const lock : {&well, &dead}) {
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(*lock));
    TEST_ASSERT_EQUAL(Status::ok, world.release(*lock));
  }
  cluster.servers[1]->stop();
  Outcome outcome;
  dead.async_acquire(40s, outcome.handler());
  for (int round = 0; round < 20; ++round) {
    const Instant begin = Client::now();
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(well));
    TEST_ASSERT_EQUAL(Status::ok, world.release(well));
    TEST_ASSERT_TRUE(Client::now() - begin < 2s);
  }
  TEST_ASSERT_FALSE(outcome.done());
  TEST_ASSERT_TRUE(runs_until(
      world.loop, [&] { return outcome.done(); }, 60s));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_EQUAL("1", cluster.servers[ClusterSetup::partner_of(1)]->command({"EXISTS", dead_name}));
  TEST_ASSERT_EQUAL(Status::ok, world.release(dead));
}

// ---- Branches of one server --------------------------------------------------------------------------------------

namespace {

// Of two masters a hold that is kept, one that is not, one lock that rests, and one that waits for another client's hold by push.
struct Household {
  static constexpr std::size_t masters = 2;
  static constexpr std::size_t resting = 3;

  explicit Household(const ClusterSetup& setup)
      : cluster(setup),
        world(setup.hosts(), name_at(0, "home")),
        rival(setup.hosts(), name_at(0, "home"), {}, "rival"),
        owner(world.client),
        other_owner(rival.client) {
    world.config.max_poll = 60s;
    TEST_ASSERT_EQUAL(Status::ok, ::connect(world.loop, world.client, world.config));
    for (std::size_t master = 0; master < masters; ++master) {
      for (const char* const kind : {"kept", "held", "waited", "resting"}) names.push_back(name_at(master, kind));
      AsyncMutex& one = kept.emplace_back(world.client, ByteView(name(master, 0)), LockTiming{.lease = 3s});
      TEST_ASSERT_EQUAL(Status::ok, one.keep({.keep = Keep::always}));
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(one));
      AsyncReentrantLock& other = held.emplace_back(owner, ByteView(name(master, 1)), LockTiming{.lease = 90s});
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(other));
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(other));
      AsyncReentrantLock& theirs =
          rivals.emplace_back(other_owner, ByteView(name(master, 2)), LockTiming{.lease = 90s});
      TEST_ASSERT_EQUAL(Status::ok, rival.acquire(theirs));
      waiters.emplace_back(owner, ByteView(name(master, 2))).async_acquire(80s, waited[master].handler());
      TEST_ASSERT_TRUE(world.runs_until([&] { return listeners_at(master, master) == 1; }));
    }
    for (std::size_t master = 0; master < masters; ++master) {
      AsyncMutex& lock = rests.emplace_back(world.client, ByteView(name(master, resting)));
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
      TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
    }
  }

  [[nodiscard]] const std::string& name(std::size_t master, std::size_t which) const {
    return names[master * 4 + which];
  }
  [[nodiscard]] std::size_t connections_at(std::size_t server) const {
    return connections_named(*cluster.servers[server], "world");
  }
  // Who waits for the rival's hold of this master, at that server.
  [[nodiscard]] int listeners_at(std::size_t master, std::size_t server) const {
    const std::string text =
        cluster.servers[server]->command("PUBSUB SHARDNUMSUB redisson_lock__channel:{" + name(master, 2) + "}");
    return std::stoi(text.substr(text.rfind(' ') + 1));
  }
  // What is kept there has been renewed there.
  [[nodiscard]] bool keeps(std::size_t master) {
    const Instant now = Client::now();
    return world.runs_until([&] { return kept[master].valid_until() > now + 3s; });
  }
  // How often somebody was told MOVED by the heirs.
  [[nodiscard]] int sent_away() const {
    int count = 0;
    for (std::size_t master = 0; master < masters; ++master) {
      const std::string text = cluster.servers[ClusterSetup::partner_of(master)]->command("INFO errorstats");
      const std::string word = "errorstat_MOVED:count=";
      if (const std::size_t at = text.find(word); at != std::string::npos)
        count += std::stoi(text.substr(at + word.size()));
    }
    return count;
  }
  void expect_connections_at_heirs_alone() {
    for (std::size_t server = 0; server < 2 * ClusterSetup::masters; ++server) {
      const bool heir = server >= ClusterSetup::masters && server < ClusterSetup::masters + masters;
      TEST_ASSERT_EQUAL(heir ? 1U : 0U, connections_at(server));
    }
  }
  // As if nothing had happened.
  void expect_all_well() {
    for (std::size_t master = 0; master < masters; ++master) {
      TEST_ASSERT_TRUE(keeps(master));
      TEST_ASSERT_TRUE(held[master].held());
      TEST_ASSERT_FALSE(waited[master].done());
      const Instant released = Client::now();
      TEST_ASSERT_EQUAL(Status::ok, rival.release(rivals[master]));
      TEST_ASSERT_TRUE(world.runs_until([&] { return waited[master].done(); }));
      TEST_ASSERT_EQUAL(Status::ok, waited[master].status);
      TEST_ASSERT_TRUE(Client::now() - released < 5s);  // By push: time alone would have brought it later.
      TEST_ASSERT_EQUAL(Status::ok, world.renew(held[master]));
      TEST_ASSERT_EQUAL(Status::ok, world.release(held[master]));
      TEST_ASSERT_TRUE(held[master].held());
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(rests[master]));
      AsyncLock* const locks[] = {&held[master], &kept[master], &waiters[master], &rests[master]};
      for (AsyncLock* const lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.release(*lock));
      for (std::size_t which = 0; which < 4; ++which)
        TEST_ASSERT_EQUAL("0", cluster.master(name(master, which)).command({"EXISTS", name(master, which)}));
    }
    TEST_ASSERT_EQUAL(0U, world.client.kept());
    TEST_ASSERT_EQUAL(0U, world.client.compensations_pending());
  }

  const ClusterSetup& cluster;
  std::vector<std::string> names;
  ClusterWorld world;
  ClusterWorld rival;
  AsyncOwner owner;
  AsyncOwner other_owner;
  std::deque<AsyncMutex> kept;
  std::deque<AsyncReentrantLock> held;
  std::deque<AsyncReentrantLock> rivals;
  std::deque<AsyncReentrantLock> waiters;
  std::deque<AsyncMutex> rests;
  Outcome waited[masters];
};

}  // namespace

// Who has not asked since a fail-over finds the new master when its connection is lost, beside those that were sent there before.
TEST_ON_CLUSTER(test_branches_that_have_come_to_one_server_should_become_one) {
  Household house(cluster);
  for (std::size_t master = Household::masters; master-- != 0;) {
    const std::size_t heir = ClusterSetup::partner_of(master);
    cluster.fail_over(house.name(master, 0));
    TEST_ASSERT_TRUE(house.keeps(master));
    TEST_ASSERT_TRUE(house.world.runs_until([&] { return house.listeners_at(master, heir) == 1; }));
    TEST_ASSERT_EQUAL(1U, house.connections_at(heir));
    TEST_ASSERT_TRUE(house.connections_at(master) != 0);  // Of what is held there, as far as it knows.
    cluster.servers[master]->command("CLIENT KILL TYPE normal SKIPME yes");
    TEST_ASSERT_EQUAL(Status::ok, house.world.renew(house.held[master]));
    TEST_ASSERT_TRUE(house.world.runs_until([&] { return house.connections_at(heir) == 1; }));
    TEST_ASSERT_EQUAL(0U, house.connections_at(master));
  }
  house.expect_connections_at_heirs_alone();
  // Who is new to a slot asks where it has gone: nobody is sent away.
  const int sent_away = house.sent_away();
  for (std::size_t master = 0; master < Household::masters; ++master) {
    const std::string name = "{" + house.name(master, 0) + "}new";
    AsyncMutex lock(house.world.client, ByteView(name));
    TEST_ASSERT_EQUAL(Status::ok, house.world.acquire(lock));
    TEST_ASSERT_EQUAL(Status::ok, house.world.release(lock));
  }
  TEST_ASSERT_EQUAL(sent_away, house.sent_away());
  house.expect_all_well();
}

// Nobody ends a connection. Whoever is held learns that it has gone, and what rests is of no use there.
TEST_ON_CLUSTER(test_a_server_that_is_a_master_no_more_should_be_left_by_those_that_rest) {
  Household house(cluster);
  for (std::size_t master = 0; master < Household::masters; ++master) {
    const std::size_t heir = ClusterSetup::partner_of(master);
    cluster.fail_over(house.name(master, 0));
    TEST_ASSERT_TRUE(house.keeps(master));
    TEST_ASSERT_TRUE(house.world.runs_until([&] { return house.listeners_at(master, heir) == 1; }));
    TEST_ASSERT_TRUE(house.connections_at(master) != 0);
    TEST_ASSERT_EQUAL(Status::ok, house.world.renew(house.held[master]));
    TEST_ASSERT_TRUE(house.world.runs_until([&] { return house.connections_at(master) == 0; }));
    TEST_ASSERT_TRUE(house.world.runs_until([&] { return house.world.client.connected(); }));
    TEST_ASSERT_TRUE(house.world.runs_until([&] { return house.connections_at(heir) == 1; }));
  }
  house.expect_connections_at_heirs_alone();
  house.expect_all_well();
}

// One at a time is used. What one slot has cost is over with the next call of each.
TEST_ON_CLUSTER(test_locks_that_rest_should_not_lose_their_branches_to_one_another) {
  ClusterWorld world(cluster.hosts(), name_at(0, "home"));
  const std::string names[] = {name_at(1), name_at(2), name_at(1, "moved")};
  std::deque<AsyncMutex> locks;
  for (const std::string& name : names) locks.emplace_back(world.client, ByteView(name));
  const auto use_all = [&] {
    for (AsyncMutex& lock : locks) {
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock, 5s));
      TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
    }
  };
  const auto connection_at = [&](std::size_t server) {
    const std::string list = cluster.servers[server]->command("CLIENT LIST TYPE normal");
    const std::size_t name = list.find("name=world ");
    if (name == std::string::npos) return std::string();
    const std::size_t id = list.rfind("id=", name);
    return list.substr(id, list.find(' ', id) - id);
  };
  use_all();
  cluster.move_slot(names[2], 2);
  use_all();
  use_all();
  const std::string one = connection_at(1);
  const std::string other = connection_at(2);
  TEST_ASSERT_TRUE(!one.empty() && !other.empty());
  for (int round = 0; round < 3; ++round) use_all();
  TEST_ASSERT_EQUAL(one, connection_at(1));
  TEST_ASSERT_EQUAL(other, connection_at(2));
}

namespace {

// Two nodes that say the same of themselves from some moment on: two addresses of one server. The first is that of the client's
// name, and sends one name to the second.
class TwinNodes {
 public:
  explicit TwinNodes(std::string name) : far_name_(std::move(name)) {}
  ~TwinNodes() { answer_all(); }

  // The first is the second from its next connection on.
  void unite() {
    united_ = true;
    (void)::shutdown(descriptors_[0], SHUT_RDWR);
  }
  void lose_far() const { (void)::shutdown(descriptors_[1], SHUT_RDWR); }
  // The second reads on from the next of these commands on when it may.
  void stop_at(const std::string& word) {
    const std::lock_guard lock(mutex_);
    stops_at_ = word;
  }
  void answer_all() {
    stop_at("");
    stopped_ = false;
    stopped_.notify_all();
  }
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] bool far_is_connected() const { return descriptors_[1] != -1; }
  [[nodiscard]] std::string host() const { return near_.host(); }
  // What was asked there for a lock, or for its connection's end; with its first key.
  [[nodiscard]] std::string asked(std::size_t node) const {
    const std::lock_guard lock(mutex_);
    return asked_[node];
  }

 private:
  void serve(std::size_t node, int connection) {
    descriptors_[node] = connection;
    std::string bytes;
    char part[4096];
    for (ssize_t count = 0; (count = ::recv(connection, part, sizeof part, 0)) > 0;) {
      bytes.append(part, static_cast<std::size_t>(count));
      for (AnsweringServer::Words words; AnsweringServer::take_command(bytes, words);) {
        if (node == 1 && stops(words[0])) stopped_.wait(true);
        ConnectionServer::send_text(connection, answer(node, words));
      }
    }
    descriptors_[node] = -1;
  }
  bool stops(const std::string& word) {
    const std::lock_guard lock(mutex_);
    if (word != stops_at_) return false;
    stopped_ = true;
    return true;
  }
  std::string answer(std::size_t node, const AnsweringServer::Words& words) {
    const auto bulk = [](const std::string& text) {
      return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    };
    const bool first = node == 0 && !united_;
    if (words[0] == "EVAL" && words[1].find("run_id") != std::string::npos)
      return "*6\r\n" + bulk(std::string(40, first ? 'a' : 'b')) + bulk("100") + bulk("7.0.15") + bulk("") +
             bulk(std::string(40, '0')) + bulk("-1clustermaster");
    if (words[0] == "CLIENT" && words[1] == "ID") return ":" + std::to_string(++connections_) + "\r\n";
    const std::lock_guard lock(mutex_);
    if (words[0] == "CLIENT" && words[1] == "KILL") asked_[node] += "KILL;";
    if (words[0] == "CLIENT") return "+OK\r\n";
    const std::string& key = words[0] == "SET" ? words[1] : words[3];
    if (first && key == far_name_)
      return "-MOVED " + std::to_string(slot_of(ByteView(key))) + " " + far_.host() + "\r\n";
    // Such as the script of a release, its number of keys, key, token and SPUBLISH; a renewal has a lease, too.
    const bool renewal = words[0] != "SET" && words.size() == 7;
    asked_[node] += (renewal ? "RENEW" : words[0].substr(0, 4)) + " " + key + ";";
    return words[0] == "SET" ? "+OK\r\n" : renewal ? "*1\r\n:1\r\n" : ":1\r\n";
  }

  std::string far_name_;
  std::atomic<bool> united_ = false;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> connections_ = 0;
  std::atomic<int> descriptors_[2] = {-1, -1};
  mutable std::mutex mutex_;
  std::string stops_at_;
  std::string asked_[2];
  ConnectionServer near_{"", [this](int connection) { serve(0, connection); }};
  ConnectionServer far_{"", [this](int connection) { serve(1, connection); }};
};

// A client whose lock `far` is at the second node.
struct TwinWorld {
  explicit TwinWorld(Duration request_timeout = 300ms) : nodes(name_at(1)), world(nodes.host(), name_at(0)) {
    world.config.request_timeout = request_timeout;
    TEST_ASSERT_EQUAL(Status::ok, ::connect(world.loop, world.client, world.config));
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(far));
    TEST_ASSERT_EQUAL(Status::ok, world.release(far));
    TEST_ASSERT_EQUAL("SET " + name + ";EVAL " + name + ";", nodes.asked(1));
  }
  // Both branches are at the same server from now on.
  void unite() {
    nodes.unite();
    TEST_ASSERT_TRUE(world.runs_until([&] { return !world.client.connected(); }));
    TEST_ASSERT_TRUE(world.runs_until([&] { return world.client.connected(); }));
    AsyncMutex other(world.client, ByteView(other_name));
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(other));  // Its slot is asked for there now.
    TEST_ASSERT_EQUAL(Status::ok, world.release(other));
    before = nodes.asked(0);
  }
  // An acquire of `far` is on its way when both branches have come to one server.
  void ask_far_and_unite(Outcome& outcome) {
    nodes.stop_at("SET");
    far.async_acquire(0s, outcome.handler());
    TEST_ASSERT_TRUE(world.runs_until([&] { return nodes.stopped(); }));
    unite();
  }
  [[nodiscard]] std::string asked_near() const { return nodes.asked(0).substr(before.size()); }
  // The second node's branch goes when it has nothing left, and what follows is asked at the first.
  void expect_one_branch() {
    TEST_ASSERT_TRUE(world.runs_until([&] { return !nodes.far_is_connected(); }));
    before = nodes.asked(0);
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(far));
    TEST_ASSERT_EQUAL(Status::ok, world.release(far));
    TEST_ASSERT_EQUAL("SET " + name + ";EVAL " + name + ";", asked_near());
    TEST_ASSERT_EQUAL(0U, world.client.compensations_pending());
  }

  const std::string name = name_at(1);
  const std::string other_name = "{" + name + "}other";
  TwinNodes nodes;
  ClusterWorld world;
  AsyncMutex far{world.client, ByteView(name), LockTiming{.lease = 3s}};
  std::string before;
};

}  // namespace

TEST(test_what_is_on_its_way_should_be_answered_where_it_was_asked_before_its_branch_ends) {
  TwinWorld twins;
  ClusterWorld& world = twins.world;
  Outcome outcome;
  twins.ask_far_and_unite(outcome);
  twins.nodes.answer_all();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_EQUAL("", twins.asked_near());
  TEST_ASSERT_EQUAL(Status::ok, world.release(twins.far));
  twins.expect_one_branch();
}

// What is taken back comes behind what it takes back, and before what is asked for next.
TEST(test_a_request_that_was_given_up_should_keep_its_lock_at_its_branch) {
  TwinWorld twins;
  ClusterWorld& world = twins.world;
  twins.nodes.stop_at("SET");
  TEST_ASSERT_EQUAL(Status::timed_out, world.acquire(twins.far));
  twins.unite();
  Outcome outcome;
  twins.far.async_acquire(20s, outcome.handler());
  TEST_ASSERT_EQUAL("", twins.asked_near());
  twins.nodes.answer_all();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  const std::string set = "SET " + twins.name + ";";
  const std::string eval = "EVAL " + twins.name + ";";
  TEST_ASSERT_EQUAL(set + eval + set + eval + set, twins.nodes.asked(1).substr(0, 3 * set.size() + 2 * eval.size()));
  TEST_ASSERT_EQUAL(Status::ok, world.release(twins.far));
  twins.expect_one_branch();
}

// Its answer is not waited for, and it may run still.
TEST(test_a_release_should_come_behind_a_renewal_that_was_given_up) {
  TwinWorld twins;
  ClusterWorld& world = twins.world;
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(twins.far));
  twins.nodes.stop_at("EVALSHA");
  TEST_ASSERT_EQUAL(Status::timed_out, world.renew(twins.far));
  twins.unite();
  Outcome outcome;
  twins.far.async_release(outcome.handler());
  TEST_ASSERT_FALSE(world.runs_until([&] { return outcome.done(); }, 100ms));
  TEST_ASSERT_EQUAL("", twins.asked_near());
  twins.nodes.answer_all();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  twins.expect_one_branch();
}

TEST(test_a_cancel_should_end_a_call_that_is_on_its_way_over_a_branch_that_ends) {
  TwinWorld twins(10s);
  ClusterWorld& world = twins.world;
  Outcome outcome;
  twins.ask_far_and_unite(outcome);
  twins.far.cancel();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }, 2s));
  TEST_ASSERT_EQUAL(Status::cancelled, outcome.status);
  TEST_ASSERT_EQUAL("", twins.asked_near());
  twins.nodes.answer_all();
  twins.expect_one_branch();
}

TEST(test_what_a_lock_that_is_gone_leaves_to_take_back_should_be_taken_back_before_its_branch_ends) {
  TwinWorld twins(10s);
  ClusterWorld& world = twins.world;
  twins.nodes.stop_at("SET");
  Outcome outcome;
  {
    AsyncMutex gone(world.client, ByteView(twins.name));
    gone.async_acquire(0s, outcome.handler());
    TEST_ASSERT_TRUE(world.runs_until([&] { return twins.nodes.stopped(); }));
  }
  twins.unite();
  TEST_ASSERT_TRUE(twins.nodes.far_is_connected());
  TEST_ASSERT_EQUAL(1U, world.client.compensations_pending());
  twins.nodes.answer_all();
  twins.expect_one_branch();
  const std::string both = "SET " + twins.name + ";EVAL " + twins.name + ";";
  TEST_ASSERT_EQUAL(both + both, twins.nodes.asked(1));
}

TEST(test_a_release_should_come_behind_a_renewal_that_is_on_its_way) {
  TwinWorld twins;
  ClusterWorld& world = twins.world;
  TEST_ASSERT_EQUAL(Status::ok, twins.far.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(twins.far));
  twins.nodes.stop_at("EVALSHA");
  TEST_ASSERT_TRUE(world.runs_until([&] { return twins.nodes.stopped(); }));
  twins.unite();
  Outcome outcome;
  twins.far.async_release(outcome.handler());
  TEST_ASSERT_FALSE(world.runs_until([&] { return outcome.done(); }, 100ms));
  TEST_ASSERT_EQUAL("", twins.asked_near());
  twins.nodes.answer_all();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_EQUAL("", twins.asked_near());
  TEST_ASSERT_EQUAL(Status::ok, twins.far.keep({.keep = Keep::never}));
  twins.expect_one_branch();
}

// The server may have bytes of the lost connection that it has not read yet. Its branch ends it there first.
TEST(test_what_a_lost_connection_leaves_to_take_back_should_not_overtake_it_over_another_branch) {
  TwinWorld twins;
  ClusterWorld& world = twins.world;
  Outcome outcome;
  twins.ask_far_and_unite(outcome);
  twins.nodes.lose_far();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::transport_closed, outcome.status);
  TEST_ASSERT_EQUAL(1U, world.client.compensations_pending());
  TEST_ASSERT_FALSE(world.runs_until([&] { return twins.asked_near() != ""; }, 100ms));
  twins.nodes.answer_all();
  TEST_ASSERT_TRUE(world.runs_until([&] { return world.client.compensations_pending() == 0; }));
  TEST_ASSERT_TRUE(twins.nodes.asked(1).find("KILL;") != std::string::npos);
  twins.expect_one_branch();
}

// ---- Replicas that are counted -----------------------------------------------------------------------------------

namespace {

// A client whose grants one replica must confirm.
struct AckedWorld : ClusterWorld {
  AckedWorld(const ClusterSetup& setup, Duration timeout, const AsyncLimits& limits = {})
      : ClusterWorld(setup.hosts(), name_at(0, "home"), limits) {
    config.acks = 1;
    config.acks_timeout = timeout;
    config.stall_timeout = 20s;
    TEST_ASSERT_EQUAL(Status::ok, ::connect(loop, client, config));
  }
};

// How often it was asked for its replicas.
int waits_at(const ClusterSetup& cluster, std::size_t server) {
  const std::string text = cluster.servers[server]->command("INFO commandstats");
  const std::string name = "cmdstat_wait:calls=";
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
}

// Who does not serve a name tells nothing of it, but for this.
bool has(const ClusterSetup& cluster, std::size_t server, const std::string& name) {
  return cluster.servers[server]->command({"KEYS", name}) == name;
}

// Replicas that stand still confirm nothing.
struct Paused {
  Paused(const ClusterSetup& setup, std::size_t which) : server(*setup.servers[which]) { server.pause(); }
  ~Paused() { server.resume(); }
  RedisServer& server;
};

bool waits_now(const ClusterSetup& cluster, std::size_t server) {
  return !blocked_in_wait(*cluster.servers[server]).empty();
}

}  // namespace

TEST_ON_CLUSTER(test_a_grant_should_be_confirmed_by_a_replica_of_the_master_that_granted_it) {
  AckedWorld world(cluster, 5s);
  for (int round = 0; round < 5; ++round)
    for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
      const std::string name = name_at(master, "acked" + std::to_string(round) + "-");
      AsyncMutex lock(world.client, ByteView(name), LockTiming{.lease = 60s});
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock));
      TEST_ASSERT_TRUE(has(cluster, ClusterSetup::partner_of(master), name));
      TEST_ASSERT_EQUAL(round + 1, waits_at(cluster, master));
      TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
    }
}

TEST_ON_CLUSTER(test_a_replica_that_is_down_should_concern_the_names_of_its_master_alone) {
  AckedWorld world(cluster, 200ms, {.masters = ClusterSetup::masters});
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<AsyncMutex> locks;
  for (const std::string& name : names) {
    AsyncMutex& lock = locks.emplace_back(world.client, ByteView(name), LockTiming{.lease = 60s});
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock, 20s));
    TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  }
  Outcome outcome;
  {
    const Paused paused(cluster, ClusterSetup::partner_of(1));
    TEST_ASSERT_EQUAL(Status::too_few_replicas, world.acquire(locks[1]));
    TEST_ASSERT_FALSE(locks[1].held());
    TEST_ASSERT_TRUE(world.runs_until([&] { return !has(cluster, 1, names[1]); }));
    locks[1].async_acquire(40s, outcome.handler());
    for (const std::size_t other : {0U, 2U}) {
      TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks[other], 20s));
      TEST_ASSERT_TRUE(has(cluster, ClusterSetup::partner_of(other), names[other]));
      TEST_ASSERT_EQUAL(Status::ok, world.release(locks[other]));
    }
    TEST_ASSERT_FALSE(outcome.done());
  }
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::ok, outcome.status);
  TEST_ASSERT_EQUAL(Status::ok, world.release(locks[1]));
}

// The first grant's WAIT stands in the way of the others, and their slots go away meanwhile. Where they have gone, a replica is
// well: it would confirm them.
TEST_ON_CLUSTER(test_a_grant_whose_slot_moves_before_replicas_are_asked_should_be_let_go_of) {
  // Valkey moves no slot of a master whose replica stands still: CLUSTER SETSLOT says NOREPLICAS.
  if (cluster.servers[0]->command("INFO server").find("valkey_version") != std::string::npos) return;
  AckedWorld world(cluster, 3s);
  const std::string first_name = name_at(0, "first");
  const std::string once_name = name_at(0, "once");
  const std::string waited_name = name_at(0, "waited");
  const std::string there_name = name_at(1, "there");
  AsyncMutex first(world.client, ByteView(first_name), LockTiming{.lease = 60s});
  AsyncMutex once(world.client, ByteView(once_name), LockTiming{.lease = 60s});
  AsyncMutex waited(world.client, ByteView(waited_name), LockTiming{.lease = 60s});
  AsyncMutex there(world.client, ByteView(there_name), LockTiming{.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(there, 20s));
  const Paused paused(cluster, ClusterSetup::partner_of(0));
  Outcome first_outcome;
  Outcome once_outcome;
  Outcome waited_outcome;
  first.async_acquire(0s, first_outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return waits_now(cluster, 0); }));
  once.async_acquire(0s, once_outcome.handler());
  waited.async_acquire(40s, waited_outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return has(cluster, 0, once_name) && has(cluster, 0, waited_name); }));
  const int waits = waits_at(cluster, 1);
  // The loop stands still meanwhile. By hand: a replica that stands still cannot be asked whether it knows.
  for (const std::string& name : {once_name, waited_name}) {
    const int slot = slot_of(ByteView(name));
    cluster.open_slot(slot, 0, 1);
    cluster.move_keys(slot, 0, 1);
    cluster.close_slot(slot, 0, 1);
  }
  TEST_ASSERT_TRUE(has(cluster, 1, once_name));
  TEST_ASSERT_FALSE(once_outcome.done());
  TEST_ASSERT_TRUE(world.runs_until([&] { return once_outcome.done() && waited_outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::too_few_replicas, first_outcome.status);
  TEST_ASSERT_EQUAL(Status::try_again, once_outcome.status);
  TEST_ASSERT_FALSE(once.held());
  TEST_ASSERT_TRUE(world.runs_until([&] { return !has(cluster, 1, once_name); }));
  TEST_ASSERT_FALSE(has(cluster, 0, once_name));
  // This one has asked again where its slot is now.
  TEST_ASSERT_EQUAL(Status::ok, waited_outcome.status);
  TEST_ASSERT_TRUE(waits_at(cluster, 1) > waits);
  TEST_ASSERT_TRUE(has(cluster, ClusterSetup::partner_of(1), waited_name));
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(once, 20s));
  for (AsyncMutex* const lock : {&once, &waited, &there}) TEST_ASSERT_EQUAL(Status::ok, world.release(*lock));
}

TEST_ON_CLUSTER(test_grants_should_be_confirmed_by_the_new_masters_replicas_after_a_fail_over) {
  AckedWorld world(cluster, 5s);
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<AsyncMutex> locks;
  for (const std::string& name : names)
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks.emplace_back(world.client, ByteView(name)), 20s));
  cluster.fail_over(names[1]);
  const std::size_t heir = ClusterSetup::partner_of(1);
  TEST_ASSERT_TRUE(comes([&] {
    return cluster.servers[1]->command("INFO replication").find("master_link_status:up") != std::string::npos;
  }));
  const int waits = waits_at(cluster, heir);
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  for (std::size_t master = 0; master < ClusterSetup::masters; ++master) {
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks[master], 20s));
    const std::size_t replica = master == 1 ? 1 : ClusterSetup::partner_of(master);
    TEST_ASSERT_TRUE(has(cluster, replica, names[master]));
  }
  TEST_ASSERT_TRUE(waits_at(cluster, heir) > waits);
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
}

TEST_ON_CLUSTER(test_a_master_that_dies_while_a_grant_waits_should_confirm_nothing) {
  AckedWorld world(cluster, 10s);
  const std::string name = name_at(1, "dead");
  const std::string well_name = name_at(2, "well");
  AsyncMutex lock(world.client, ByteView(name), LockTiming{.lease = 60s});
  AsyncMutex well(world.client, ByteView(well_name), LockTiming{.lease = 60s});
  const Paused paused(cluster, ClusterSetup::partner_of(1));
  Outcome outcome;
  lock.async_acquire(0s, outcome.handler());
  TEST_ASSERT_TRUE(world.runs_until([&] { return waits_now(cluster, 1); }));
  cluster.servers[1]->stop();
  TEST_ASSERT_TRUE(world.runs_until([&] { return outcome.done(); }));
  TEST_ASSERT_EQUAL(Status::transport_closed, outcome.status);
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(well, 20s));
  TEST_ASSERT_EQUAL(Status::ok, world.release(well));
}

// The heir has no replica any more. That this is what the calls say, the heir alone can tell them.
TEST_ON_CLUSTER(test_the_heir_of_a_master_that_died_should_be_asked_for_its_own_replicas, 3000) {
  AckedWorld world(cluster, 200ms);
  const std::string name = name_at(1, "dead");
  AsyncMutex lock(world.client, ByteView(name), LockTiming{.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, world.acquire(lock, 20s));
  TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  const std::size_t heir = ClusterSetup::partner_of(1);
  cluster.servers[1]->stop();
  TEST_ASSERT_TRUE(
      comes([&] { return world.acquire(lock, 1s) == Status::too_few_replicas; }, std::chrono::seconds(40)));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_TRUE(waits_at(cluster, heir) > 0);
}

// ---- Anew --------------------------------------------------------------------------------------------------------

TEST_ON_CLUSTER(test_locks_should_find_their_servers_after_connecting_anew) {
  ClusterWorld world(cluster.host(0), name_at(0, "home"));
  const std::string names[] = {name_at(0), name_at(1), name_at(2)};
  std::deque<AsyncMutex> locks;
  for (const std::string& name : names)
    TEST_ASSERT_EQUAL(Status::ok, world.acquire(locks.emplace_back(world.client, ByteView(name))));
  // By its own words, in which the Cluster is ours.
  TEST_ASSERT_TRUE(world.client.config().topology == &world.cluster);
  TEST_ASSERT_EQUAL(Status::ok, connect(world.loop, world.client, world.client.config()));
  for (AsyncMutex& lock : locks) {
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, world.release(lock));
  }
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { world.client.async_close(handler); }));
  for (AsyncMutex& lock : locks) TEST_ASSERT_EQUAL(Status::not_connected, world.acquire(lock));
}

// ---- Lies --------------------------------------------------------------------------------------------------------

// A node that sends each name to another server, where nobody is, costs each lock its call, and no more than it may.
TEST(test_a_node_that_sends_everybody_away_should_cost_a_bounded_number_of_branches) {
  const auto bulk = [](const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; };
  std::atomic<int> moves = 0;
  AnsweringServer node("", [&](const AnsweringServer::Words& words) -> std::string {
    if (words[0] == "CLIENT") return words[1] == "ID" ? ":7\r\n" : "+OK\r\n";
    if (words[0] == "EVAL" && words[1].find("run_id") != std::string::npos)
      return "*6\r\n" + bulk(std::string(40, 'f')) + bulk("100") + bulk("7.0.15") + bulk("") +
             bulk(std::string(40, '0')) + bulk("-1clustermaster");
    const std::string& key = words[0] == "SET" ? words[1] : words[3];
    return "-MOVED " + std::to_string(slot_of(ByteView(key))) + " 127.0.0.1:" + std::to_string(1 + ++moves % 900) +
           "\r\n";
  });
  ClusterWorld world(node.host(), "k", {.operations = 256});
  world.config.connect_timeout = 300ms;
  world.config.request_timeout = 300ms;
  TEST_ASSERT_EQUAL(Status::ok, connect(world.loop, world.client, world.config));
  constexpr std::size_t count = 200;
  std::deque<AsyncMutex> locks;
  std::deque<Outcome> outcomes;
  const Instant begin = Client::now();
  for (std::size_t number = 0; number < count; ++number)
    locks.emplace_back(world.client, ByteView("name " + std::to_string(number)))
        .async_acquire(0s, outcomes.emplace_back().handler());
  const auto ended = [&] {
    std::size_t calls = 0;
    for (const Outcome& outcome : outcomes) calls += outcome.done() ? 1U : 0U;
    return calls;
  };
  TEST_ASSERT_TRUE(world.runs_until([&] { return ended() == count; }));
  TEST_ASSERT_TRUE(Client::now() - begin < 20s);
  std::size_t refused = 0;
  for (const Outcome& outcome : outcomes) {
    TEST_ASSERT_TRUE(outcome.status != Status::ok);
    refused += outcome.status == Status::moved ? 1U : 0U;
  }
  TEST_ASSERT_TRUE(refused >= count - 2 * cluster_masters_max);  // There was no branch for these.
  TEST_ASSERT_TRUE(world.client.connected());
  TEST_ASSERT_EQUAL(Status::ok, outcome_of(world.loop, [&](auto handler) { world.client.async_close(handler); }));
}
