// SPDX-License-Identifier: MIT
//
// What goes wrong with single nodes of a quorum, and with a majority. Whatever it is: a node costs its vote and nothing
// else, nobody is told of a hold that a majority does not have, and nothing is left behind on nodes that come back.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fake_server.hpp"
#include "live_nodes.hpp"
#include "patience.hpp"
#include "proxy.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

// A node that answers does so long before; who waits for one that does not is seen.
constexpr QuorumTiming calm = {.lease = 60s, .node_timeout = 12s};
constexpr Duration at_once = 8s;
// Where a majority is silent, the node timeout is what a test waits for.
constexpr QuorumTiming brief = {.lease = 60s, .node_timeout = 1500ms};
constexpr Duration in_time = 10s;

const std::string counter = "redisson_lock_token:{k}";

std::string proxy_path(const RedisServer& server) { return server.socket_path() + ".proxy"; }

// A dead node is noticed, and asked again, soon.
std::vector<ClientConfig> brisk(std::vector<ClientConfig> configs) {
  for (ClientConfig& config : configs) config.connect_timeout = 1s;
  return configs;
}

// All that was to be taken back was.
void await_nothing_left(const LiveNodes& nodes, QuorumClient& quorum) {
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.compensations_pending() == 0 && nodes.all("EXISTS k", "0");
  }));
}

// What can become of a node, and how it comes back.
struct Trouble {
  const char* name;
  bool silent;  // It does not answer; otherwise it refuses.
  std::function<void(RedisServer&, Proxy&)> begin;
  std::function<void(RedisServer&, Proxy&)> end;
};

std::vector<Trouble> troubles() {
  return {
      {"stopped", true, [](RedisServer& server, Proxy&) { server.pause(); },
       [](RedisServer& server, Proxy&) { server.resume(); }},
      {"killed", false, [](RedisServer& server, Proxy&) { server.stop(); },
       [](RedisServer& server, Proxy&) { server.start(); }},
      {"cut off", true, [](RedisServer&, Proxy& proxy) { proxy.hold(true); },
       [](RedisServer&, Proxy& proxy) { proxy.hold(false); }},
      {"swallowed", true, [](RedisServer&, Proxy& proxy) { proxy.swallow_replies(true); },
       [](RedisServer& server, Proxy& proxy) {
         proxy.swallow_replies(false);
         server.command("CLIENT KILL TYPE normal SKIPME yes");  // What has lost bytes stays silent.
       }},
      {"without permission", false, [](RedisServer& server, Proxy&) { server.command("ACL SETUSER default -set"); },
       [](RedisServer& server, Proxy&) { server.command("ACL SETUSER default +@all"); }},
      {"with a new password", false,
       [](RedisServer& server, Proxy&) {
         RawConnection admin(server.socket_path());
         admin.command("CONFIG SET requirepass secret");
         admin.command("CLIENT KILL TYPE normal SKIPME yes");
       },
       [](RedisServer& server, Proxy&) {
         RawConnection admin(server.socket_path());
         admin.command("AUTH secret");
         admin.command({"CONFIG", "SET", "requirepass", ""});
       }},
      {"full", false, [](RedisServer& server, Proxy&) { server.command("CONFIG SET maxmemory 1"); },
       [](RedisServer& server, Proxy&) { server.command("CONFIG SET maxmemory 0"); }},
      {"a replica of nobody", false, [](RedisServer& server, Proxy&) { server.command("REPLICAOF 127.0.0.1 1"); },
       [](RedisServer& server, Proxy&) { server.command("REPLICAOF NO ONE"); }},
  };
}

}  // namespace

// ---- One node ----------------------------------------------------------------------------------------------------

// Each in turn, in each way: the lock is granted as fast as ever, renewed and released.
TEST_ON_NODES(test_one_node_in_trouble_should_cost_its_vote_and_nothing_else, 3) {
  Proxy proxy(proxy_path(nodes[1]), nodes[1].socket_path());
  for (const Trouble& trouble : troubles()) {
    TEST_MESSAGE("the second node is " << std::string(trouble.name));
    std::vector<ClientConfig> configs = brisk(nodes.configs());
    configs[1] = LiveNodes::config_at(proxy.url());
    configs[1].connect_timeout = 1s;
    Quorum<3> quorum;
    TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
    await_voters(quorum, 0b111);
    RedlockMutex<3> lock(quorum, "k", calm, {.fence = true});
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    std::uint64_t fence = lock.fence();
    trouble.begin(nodes[1], proxy);
    Status outcomes[3] = {};
    bool fenced = true;
    bool alone = true;
    const Instant begin = Client::now();
    for (int turn = 0; turn < 12 && fenced && alone && outcomes[0] == Status::ok && outcomes[2] == Status::ok; ++turn) {
      outcomes[0] = lock.try_acquire();
      alone = !lock.held_on(1);
      fenced = lock.fence() > fence;
      fence = lock.fence();
      outcomes[1] = lock.renew();
      outcomes[2] = lock.release();
    }
    const Duration took = Client::now() - begin;
    trouble.end(nodes[1], proxy);
    for (const Status outcome : outcomes) TEST_ASSERT_EQUAL(Status::ok, outcome);
    TEST_ASSERT_TRUE(alone);
    TEST_ASSERT_TRUE(fenced);
    TEST_ASSERT_TRUE(took < at_once);
    await_nothing_left(nodes, quorum);
    await_voters(quorum, 0b111);
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_TRUE(comes([&] {
      (void)quorum.tend();
      return lock.held_on(1);
    }));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    await_nothing_left(nodes, quorum);
  }
}

// A node that is not there from the start, or is none at all.
TEST_ON_NODES(test_node_that_never_answered_should_cost_its_vote, 2) {
  const std::string path = nodes[0].socket_path() + ".fake";
  for (const char* const garbage :
       {"\xff\xfe\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n",
        "$9999999\r\n", "*1000000\r\n", "-ERR max number of clients reached\r\n",
        "-DENIED Redis is running in protected mode\r\n", ""}) {
    TEST_MESSAGE("it says " << std::string(garbage));
    FakeServer fake(path, {garbage});
    std::vector<ClientConfig> configs = brisk(nodes.configs());
    configs.insert(configs.begin() + 1, LiveNodes::config_at(fake.url()));
    configs[1].connect_timeout = 500ms;
    Quorum<3> quorum;
    TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
    TEST_ASSERT_EQUAL(0b101, quorum.voters());
    TEST_ASSERT_FALSE(quorum.node_status(1) == Status::ok);
    TEST_ASSERT_TRUE(contains(quorum.error_text(), "node 2 (" + path + ") "));
    RedlockMutex<3> lock(quorum, "k", calm, {.fence = true});
    for (int turn = 0; turn < 3; ++turn) {
      TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
      TEST_ASSERT_FALSE(lock.held_on(1));
      TEST_ASSERT_EQUAL(Status::ok, lock.renew());
      TEST_ASSERT_EQUAL(Status::ok, lock.release());
    }
  }
  // Nobody listens there at all.
  std::vector<ClientConfig> configs = nodes.configs();
  configs.push_back(LiveNodes::config_at("unix://" + path));
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
  TEST_ASSERT_TRUE(contains(quorum.error_text(), "node 3 (" + path + ") connect_failed"));
  RedlockMutex<3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_NODES(test_node_whose_clients_are_too_many_should_be_named_and_come_back, 3) {
  RawConnection admin(nodes[2].socket_path());
  admin.command("CONFIG SET maxclients 1");
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes.configs())));
  TEST_ASSERT_EQUAL(Status::too_many_clients, quorum.node_status(2));
  TEST_ASSERT_TRUE(contains(quorum.error_text(), "node 3 (" + nodes[2].socket_path() + ") too_many_clients"));
  RedlockMutex<3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  admin.command("CONFIG SET maxclients 100");
  await_voters(quorum, 0b111);
  TEST_ASSERT_EQUAL(Status::ok, quorum.node_status(2));
  TEST_ASSERT_EQUAL("", text_of(quorum.error_text()));
}

// Something else is in the lock's place, or the reply is of no shape that a lock has.
TEST_ON_NODES(test_node_with_another_value_under_the_key_should_cost_its_vote, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  nodes[0].command("RPUSH k list");
  RedlockMutex<3> mutex(quorum, "k", calm);
  SoleRedlock<RedlockFencedLock, 3> hash(quorum, "k", calm);
  for (QuorumLock* const lock : {static_cast<QuorumLock*>(&mutex), static_cast<QuorumLock*>(&hash)}) {
    TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
    TEST_ASSERT_FALSE(lock->held_on(0));
    TEST_ASSERT_EQUAL(Status::ok, lock->renew());
    TEST_ASSERT_EQUAL(Status::ok, lock->release());
    TEST_ASSERT_TRUE(comes([&] {
      (void)quorum.tend();
      return nodes.each("TYPE k") == "list|none|none";
    }));
  }
}

// ---- A majority --------------------------------------------------------------------------------------------------

// Two of three in each way: refused in time, with the names of both, and nothing left when they are back.
TEST_ON_NODES(test_majority_in_trouble_should_be_refused_in_time_and_named, 3) {
  Proxy first(proxy_path(nodes[0]), nodes[0].socket_path());
  Proxy third(proxy_path(nodes[2]), nodes[2].socket_path());
  for (const Trouble& trouble : troubles()) {
    TEST_MESSAGE("the first and the third node are " << std::string(trouble.name));
    Quorum<3> quorum;
    const std::vector<ClientConfig> configs =
        brisk({LiveNodes::config_at(first.url()), nodes.configs()[1], LiveNodes::config_at(third.url())});
    TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
    await_voters(quorum, 0b111);
    RedlockMutex<3> lock(quorum, "k", brief);
    trouble.begin(nodes[0], first);
    trouble.begin(nodes[2], third);
    const Instant begin = Client::now();
    const Status status = lock.try_acquire();
    const Duration took = Client::now() - begin;
    const std::string text = text_of(quorum.error_text());
    const bool held = lock.held();
    trouble.end(nodes[0], first);
    trouble.end(nodes[2], third);
    TEST_MESSAGE(text);
    TEST_ASSERT_EQUAL(Status::no_quorum, status);
    TEST_ASSERT_FALSE(held);
    TEST_ASSERT_TRUE(took < in_time);
    TEST_ASSERT_TRUE(contains(ByteView(text), "node 1 (" + proxy_path(nodes[0]) + ") "));
    // Refused before it could answer, it is not known what it would have said.
    const bool second = contains(ByteView(text), "; node 2 (127.0.0.1:");
    TEST_ASSERT_TRUE(!second || !trouble.silent);
    TEST_ASSERT_TRUE(contains(ByteView(text), "; node 3 (" + proxy_path(nodes[2]) + ") "));
    if (trouble.silent) TEST_ASSERT_TRUE(contains(ByteView(text), ") timed_out"));
    await_nothing_left(nodes, quorum);
    await_voters(quorum, 0b111);
    TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    await_nothing_left(nodes, quorum);
  }
}

TEST_ON_NODES(test_two_different_troubles_at_once_should_both_be_named, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes.configs())));
  await_voters(quorum, 0b111);
  RedlockMutex<3> lock(quorum, "k", brief);
  nodes[1].command("ACL SETUSER default -set");
  nodes[2].pause();
  const Status status = lock.try_acquire();
  const std::string text = text_of(quorum.error_text());
  nodes[2].resume();
  TEST_MESSAGE(text);
  TEST_ASSERT_EQUAL(Status::no_quorum, status);
  TEST_ASSERT_TRUE(
      contains(ByteView(text), "node 2 (127.0.0.1:" + std::to_string(nodes[1].port()) + ") no_permission"));
  TEST_ASSERT_TRUE(contains(ByteView(text), "node 3 (" + nodes[2].socket_path() + ") timed_out"));
  TEST_ASSERT_FALSE(contains(ByteView(text), "node 1"));
  await_nothing_left(nodes, quorum);
}

// Five nodes bear two, whatever the two have.
TEST_ON_NODES(test_five_nodes_should_bear_two_in_trouble_and_no_third, 5) {
  Quorum<5> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes.configs())));
  await_voters(quorum, 0b11111);
  RedlockMutex<5> lock(quorum, "k", calm, {.fence = true});
  RedlockMutex<5> impatient(quorum, "k", brief, {.fence = true});
  nodes[4].pause();
  nodes[0].stop();
  bool good = true;
  std::uint64_t fence = 0;
  const Instant begin = Client::now();
  for (int turn = 0; turn < 10 && good; ++turn) {
    good = lock.acquire(20s) == Status::ok && lock.fence() > fence && lock.renew() == Status::ok &&
           lock.release() == Status::ok;
    fence = lock.fence();
  }
  const Duration took = Client::now() - begin;
  nodes[2].pause();
  const Status refused = impatient.try_acquire();
  const std::string text = text_of(quorum.error_text());
  nodes[2].resume();
  nodes[4].resume();
  nodes[0].start();
  TEST_MESSAGE(text);
  TEST_ASSERT_TRUE(good);
  TEST_ASSERT_TRUE(took < at_once);
  TEST_ASSERT_EQUAL(Status::no_quorum, refused);
  for (const char* const name : {"node 1 (", "node 3 (", "node 5 ("}) TEST_ASSERT_TRUE(contains(ByteView(text), name));
  await_nothing_left(nodes, quorum);
  await_voters(quorum, 0b11111);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(lock.fence() > fence);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// The outcome of every attempt is one of few, and no token outlives it: the nodes come and go meanwhile.
TEST_ON_NODES(test_nothing_should_be_left_behind_by_many_attempts_among_troubles, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes.configs())));
  RedlockMutex<3> lock(quorum, "k", {.lease = 60s, .node_timeout = 30ms});
  for (int turn = 0; turn < 30; ++turn) {
    RedisServer& first = nodes[static_cast<std::size_t>(turn) % 3];
    RedisServer& second = nodes[static_cast<std::size_t>(turn + 1) % 3];
    first.pause();
    if (turn % 2 == 0) second.pause();
    const Status status = lock.try_acquire();
    if (turn % 3 == 0) first.resume();
    if (status == Status::ok && turn % 5 != 0) (void)lock.post_release();
    if (lock.held()) (void)lock.release();
    first.resume();
    second.resume();
    const bool expected = status == Status::ok || status == Status::no_quorum || status == Status::lock_busy;
    TEST_ASSERT_TRUE(expected);
    TEST_ASSERT_FALSE(lock.held());
  }
  await_nothing_left(nodes, quorum);
  TEST_ASSERT_TRUE(nodes.all("DBSIZE", "0"));
}

TEST_ON_NODES(test_connect_without_a_majority_should_say_so_and_go_on_connecting, 3) {
  nodes[0].stop();
  nodes[1].stop();
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::no_quorum, connect(quorum, brisk(nodes.configs())));
  TEST_ASSERT_FALSE(quorum.connected());
  TEST_ASSERT_TRUE(contains(quorum.error_text(), "node 1 (" + nodes[0].socket_path() + ") connect_failed; node 2 ("));
  RedlockMutex<3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::no_quorum, lock.try_acquire());
  nodes[0].start();
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  nodes[1].start();
  await_voters(quorum, 0b111);
}

// ---- A hold and its nodes ----------------------------------------------------------------------------------------

// A node that forgot the lock is asked for it anew, while a majority holds it. What is promised does not grow by that.
TEST_ON_NODES(test_renewal_should_repair_a_node_that_forgot_and_not_raise_the_bound, 3) {
  Proxy proxy(proxy_path(nodes[1]), nodes[1].socket_path());
  std::vector<ClientConfig> configs = nodes.configs();
  configs[1] = LiveNodes::config_at(proxy.url());
  for (ClientConfig& config : configs) config.request_timeout = 1s;
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
  RedlockMutex<3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return lock.held_on(0) && lock.held_on(1) && lock.held_on(2);
  }));
  const Instant until = lock.valid_until();
  // The third forgets and the second is silent: only the first extends it.
  proxy.hold(true);
  nodes[2].command("DEL k");
  TEST_ASSERT_EQUAL(Status::no_quorum, lock.renew());
  TEST_ASSERT_FALSE(lock.held_on(2));
  TEST_ASSERT_TRUE(lock.at_risk());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_TRUE(comes([&] {
    const Status status = lock.renew();
    return lock.held_on(2) || status == Status::ok;
  }));
  TEST_ASSERT_EQUAL(text_of(lock.token().bytes()), nodes[2].command("GET k"));
  TEST_ASSERT_EQUAL(until, lock.valid_until());
  TEST_ASSERT_TRUE(lock.held());
  // From now on it counts as any.
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.renew(); }, Status::ok));
  TEST_ASSERT_TRUE(lock.valid_until() > until);
  TEST_ASSERT_FALSE(lock.at_risk());
  proxy.hold(false);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  await_nothing_left(nodes, quorum);
}

TEST_ON_NODES(test_node_that_comes_back_empty_should_be_repaired_by_renewals, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes.configs())));
  RedlockMutex<3> mutex(quorum, "k", calm, {.fence = true});
  SoleRedlock<RedlockFencedLock, 3> hash(quorum, "hash", calm);
  TEST_ASSERT_EQUAL(Status::ok, mutex.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, hash.try_acquire());
  const std::uint64_t fence = mutex.fence();
  for (std::size_t node = 0; node < 3; ++node) {
    nodes[node].stop();
    TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return mutex.renew(); }, Status::ok));
    TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return hash.renew(); }, Status::ok));
    nodes[node].start();
    await_voters(quorum, 0b111);
    TEST_ASSERT_EQUAL("0", nodes[node].command("DBSIZE"));
    TEST_ASSERT_TRUE(comes([&] {
      return mutex.renew() == Status::ok && hash.renew() == Status::ok && nodes[node].command("DBSIZE") != "0" &&
             nodes[node].command("EXISTS k hash") == "2" && mutex.held_on(node) && hash.held_on(node);
    }));
    TEST_ASSERT_EQUAL(text_of(mutex.token().bytes()), nodes[node].command("GET k"));
    TEST_ASSERT_EQUAL(text_of(hash.token().bytes()) + " 1", nodes[node].command("HGETALL hash"));
    TEST_ASSERT_EQUAL(fence, mutex.fence());
  }
  TEST_ASSERT_EQUAL(Status::ok, mutex.release());
  TEST_ASSERT_EQUAL(Status::ok, hash.release());
  await_nothing_left(nodes, quorum);
  TEST_ASSERT_TRUE(nodes.all("EXISTS hash", "0"));
}

// By tend(), which waits for the silent one as long as for any. Its request may stay unanswered for longer than the lease.
TEST_ON_NODES(test_silent_node_should_not_keep_one_that_comes_back_out_of_the_open_round, 3, "--appendonly", "yes") {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes.configs())));
  constexpr Duration lease = 6s;
  RedlockMutex<3> lock(quorum, "k", {.lease = lease, .node_timeout = 2s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const Instant granted = Client::now();
  await_everywhere(nodes, lock);
  nodes[0].stop();
  nodes[2].pause();
  std::atomic<bool> stayed = true;
  std::thread owner([&] {
    for (; stayed && Client::now() < granted + 2 * lease; breathe(1ms)) {
      (void)quorum.tend();
      stayed = lock.held();
    }
  });
  breathe(granted + lease / 3 + 200ms - Client::now());  // The round is open, and only one of them has confirmed.
  nodes[0].start();  // By this thread: a server goes with the thread that has started it.
  owner.join();
  nodes[2].resume();
  TEST_ASSERT_TRUE(stayed.load());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  await_nothing_left(nodes, quorum);
}

// Another took the node over that forgot: it is not taken from them.
TEST_ON_NODES(test_repair_should_not_take_a_node_from_another_holder, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  RedlockMutex<3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  await_everywhere(nodes, lock);
  nodes[1].command("SET k somebody");
  for (int turn = 0; turn < 5; ++turn) TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return !lock.held_on(1);
  }));
  TEST_ASSERT_EQUAL("somebody", nodes[1].command("GET k"));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return nodes.each("GET k") == "(nil)|somebody|(nil)";
  }));
}

// A renewal that fails says which nodes failed it, as an acquire does.
TEST_ON_NODES(test_renewal_without_a_majority_should_name_the_nodes, 3) {
  std::vector<ClientConfig> configs = nodes.configs();
  for (ClientConfig& config : configs) config.request_timeout = 1s;
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
  RedlockMutex<3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  await_everywhere(nodes, lock);
  (void)quorum.tend();  // Who has not answered the acquire is not given up with the renewal.
  const Instant until = lock.valid_until();
  nodes[0].pause();
  nodes[1].command("PEXPIRE k 10000");  // So that the renewal has something to write.
  nodes[1].command("ACL SETUSER default -pexpire");
  const Status status = lock.renew();
  const std::string text = text_of(quorum.error_text());
  nodes[0].resume();
  TEST_MESSAGE(text);
  TEST_ASSERT_EQUAL(Status::no_quorum, status);
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(until, lock.valid_until());
  TEST_ASSERT_TRUE(contains(ByteView(text), "node 1 (" + nodes[0].socket_path() + ") timed_out"));
  TEST_ASSERT_TRUE(contains(ByteView(text), "node 2 ("));
  TEST_ASSERT_FALSE(contains(ByteView(text), "node 3"));
  nodes[1].command("ACL SETUSER default +@all");
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.renew(); }, Status::ok));
}

struct Told {
  std::atomic<int> at_risk = 0;
  std::atomic<int> lost = 0;
  [[nodiscard]] KeepOptions options() {
    return {.keep = Keep::always,
            .on_at_risk = [](void* self) noexcept { ++static_cast<Told*>(self)->at_risk; },
            .on_lost = [](void* self) noexcept { ++static_cast<Told*>(self)->lost; },
            .context = this};
  }
};

// An inner release finds the end of the hold, which is told all the same: only the outermost says it by its status.
TEST_ON_NODES(test_loss_that_an_inner_release_finds_should_be_told, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  Told told;
  KeepOptions options = told.options();
  options.keep = Keep::never;
  SoleRedlock<RedlockReentrantLock, 3> lock(quorum, "k", {.lease = 1s, .node_timeout = 300ms});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(options));
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return !lock.held(); }));
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return told.lost == 1;
  }));
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
}

// A majority says "not yours": the hold ends long before its bound, and the holder is told by the next tend().
TEST_ON_NODES(test_hold_that_a_majority_forgot_should_be_lost_at_once_and_told, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  Told told;
  RedlockMutex<3> lock(quorum, "k", {.lease = 9s, .node_timeout = 3s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  await_everywhere(nodes, lock);
  const Instant until = lock.valid_until();
  nodes[0].command("DEL k");
  nodes[2].command("SET k somebody");
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return told.lost == 1;
  }));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_TRUE(Client::now() < until);
  TEST_ASSERT_TRUE(told.at_risk <= 1);
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
  TEST_ASSERT_EQUAL(1, told.lost);
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return nodes.each("GET k") == "(nil)|(nil)|somebody";
  }));
}

// A majority is silent: the doubt is told first, then the end, and the end is the clock's.
TEST_ON_NODES(test_hold_that_a_majority_cannot_confirm_should_be_at_risk_and_then_lost_by_the_clock, 3) {
  std::vector<ClientConfig> configs = brisk(nodes.configs());
  for (ClientConfig& config : configs) config.request_timeout = 200ms;
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
  Told told;
  RedlockMutex<3> lock(quorum, "k", {.lease = 3s, .node_timeout = 2s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  nodes[0].pause();
  nodes[1].stop();
  const Instant until = lock.valid_until();
  bool at_risk_first = true;
  const bool lost = comes([&] {
    (void)quorum.tend();
    if (told.lost != 0 && told.at_risk == 0) at_risk_first = false;
    return told.lost != 0;
  });
  const Instant seen = Client::now();
  const bool held = lock.held();
  nodes[0].resume();
  nodes[1].start();
  TEST_ASSERT_TRUE(lost);
  TEST_ASSERT_FALSE(held);
  TEST_ASSERT_TRUE(at_risk_first);
  TEST_ASSERT_TRUE(seen >= until);
  TEST_ASSERT_EQUAL(1, told.at_risk);
  TEST_ASSERT_EQUAL(1, told.lost);
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  await_nothing_left(nodes, quorum);
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_EQUAL(1, told.lost);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// Nobody calls anything: held() looks at the clock alone.
TEST_ON_NODES(test_hold_should_end_by_the_clock_without_any_call, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  RedlockMutex<3> lock(quorum, "k", {.lease = 500ms});
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
  const Instant until = lock.valid_until();
  TEST_ASSERT_TRUE(comes([&] { return !lock.held(); }));
  TEST_ASSERT_TRUE(Client::now() >= until);
  TEST_ASSERT_EQUAL(Duration::zero(), lock.remaining());
  TEST_ASSERT_FALSE(lock.held_on(0) || lock.held_on(1) || lock.held_on(2));
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
}

TEST_ON_NODES(test_release_with_a_silent_majority_should_be_unknown_and_follow_later, 3) {
  std::vector<ClientConfig> configs = nodes.configs();
  for (ClientConfig& config : configs) config.request_timeout = 1s;
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
  RedlockMutex<3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  await_everywhere(nodes, lock);
  nodes[0].pause();
  nodes[1].pause();
  const Status status = lock.release();
  const bool held = lock.held();
  nodes[0].resume();
  nodes[1].resume();
  TEST_ASSERT_EQUAL(Status::timed_out, status);
  TEST_ASSERT_FALSE(held);
  await_nothing_left(nodes, quorum);
}

TEST_ON_NODES(test_destructors_should_release_and_not_block_on_a_stopped_node, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  Instant begin;
  {
    RedlockMutex<3> mutex(quorum, "k", calm);
    SoleRedlock<RedlockReentrantLock, 3> hash(quorum, "hash", calm);
    TEST_ASSERT_EQUAL(Status::ok, mutex.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, hash.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, hash.try_acquire());
    await_everywhere(nodes, mutex);
    await_everywhere(nodes, hash);
    nodes[1].pause();
    begin = Client::now();
  }
  const Duration took = Client::now() - begin;
  const bool released = comes([&] { return nodes[0].command("DBSIZE") == "0" && nodes[2].command("DBSIZE") == "0"; });
  nodes[1].resume();
  TEST_ASSERT_TRUE(took < at_once);
  TEST_ASSERT_TRUE(released);
  TEST_ASSERT_TRUE(comes([&] { return nodes[1].command("DBSIZE") == "0"; }));  // It was in its socket.
}

// A node may be free while a majority is another's: whoever waits must not be woken by its own releases there for ever.
TEST_ON_NODES(test_waiter_should_not_be_kept_busy_by_a_node_that_grants_alone, 3) {
  Quorum<3> holding;
  Quorum<3> waiting;
  TEST_ASSERT_EQUAL(Status::ok, connect(holding, nodes.configs()));
  TEST_ASSERT_EQUAL(Status::ok, connect(waiting, nodes.configs()));
  SoleRedlock<RedlockReentrantLock, 3> ours(holding, "k", calm);
  SoleRedlock<RedlockReentrantLock, 3> theirs(waiting, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, ours.try_acquire());
  await_everywhere(nodes, ours);
  nodes[0].command("DEL k");
  Status status = Status::ok;
  const Instant begin = Client::now();
  const long before = nodes[1].calls("evalsha") + nodes[1].calls("eval");
  status = theirs.acquire(2s);
  const long tries = nodes[1].calls("evalsha") + nodes[1].calls("eval") - before;
  const Duration took = Client::now() - begin;
  TEST_MESSAGE("tries: " << tries);
  TEST_ASSERT_EQUAL(Status::lock_busy, status);
  TEST_ASSERT_TRUE(ours.held());
  // On the average of a delay that is random up to its bound, and half as much again.
  TEST_ASSERT_TRUE(tries <= took / (retry_delay_max / 4) + 15);
}

// ---- Fences ------------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_fences_should_grow_while_nodes_come_back_empty_in_turn, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes.configs())));
  RedlockMutex<3> mutex(quorum, "k", calm, {.fence = true});
  SoleRedlock<RedlockFencedLock, 3> hash(quorum, "k", calm);
  std::uint64_t last = 0;
  for (std::size_t turn = 0; turn < 9; ++turn) {
    RedisServer& server = nodes[turn % 3];
    server.stop();
    for (int grants = 0; grants < 6; ++grants) {
      if (grants == 3) server.start();
      QuorumLock& lock = grants % 2 == 0 ? static_cast<QuorumLock&>(mutex) : hash;
      TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.acquire(20s); }, Status::ok));
      const std::uint64_t fence = grants % 2 == 0 ? mutex.fence() : hash.fence();
      TEST_ASSERT_TRUE(fence > last);
      last = fence;
      TEST_ASSERT_EQUAL(Status::ok, lock.release());
    }
    await_nothing_left(nodes, quorum);
    await_voters(quorum, 0b111);
  }
}

// Counters far beyond the clock, so that only what is written back can make the next fence larger: the node with the
// large counter is in the first majority, and not in the second.
TEST_ON_NODES(test_fence_should_be_written_back_to_a_majority_before_the_grant, 3) {
  const std::string far = "5000000000000000000";
  for (std::size_t large = 0; large < 3; ++large) {
    const std::size_t both = (large + 1) % 3;
    const std::size_t late = (large + 2) % 3;
    TEST_MESSAGE("the large counter is on node " << large + 1);
    for (std::size_t node = 0; node < 3; ++node) nodes[node].command("FLUSHALL");
    nodes[large].command("SET " + counter + " " + far);
    Quorum<3> quorum;
    TEST_ASSERT_EQUAL(Status::ok, connect(quorum, brisk(nodes.configs())));
    await_voters(quorum, 0b111);
    RedlockMutex<3> lock(quorum, "k", calm, {.fence = true});
    nodes[late].pause();
    const Status first = lock.try_acquire();
    const std::uint64_t fence = lock.fence();
    const std::string written = nodes[both].command("GET " + counter);
    const Status released = lock.release();
    nodes[late].resume();
    TEST_ASSERT_EQUAL(Status::ok, first);
    TEST_ASSERT_EQUAL(std::uint64_t{5000000000000000001}, fence);
    TEST_ASSERT_EQUAL("5000000000000000001", written);
    TEST_ASSERT_EQUAL(Status::ok, released);
    await_nothing_left(nodes, quorum);
    nodes[late].command("DEL " + counter);
    nodes[large].pause();
    const Status second = lock.try_acquire();
    const std::uint64_t larger = lock.fence();
    const Status end = lock.release();
    nodes[large].resume();
    TEST_ASSERT_EQUAL(Status::ok, second);
    TEST_ASSERT_TRUE(larger > fence);
    TEST_ASSERT_EQUAL(Status::ok, end);
    await_nothing_left(nodes, quorum);
  }
}

// ---- Restarts ----------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_young_nodes_should_have_no_vote_and_be_named_with_their_seconds, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::no_quorum, connect(quorum, nodes.configs(), {.max_lease = 600s}));
  TEST_ASSERT_TRUE(quorum.connected());
  TEST_ASSERT_EQUAL(0, quorum.voters());
  for (std::size_t node = 0; node < 3; ++node) {
    TEST_ASSERT_EQUAL(Status::no_quorum, quorum.node_status(node));
    TEST_ASSERT_TRUE(quorum.seconds_until_vote(node) > 500);
    TEST_ASSERT_TRUE(quorum.seconds_until_vote(node) <= 608);
    const std::string name = node == 1 ? "127.0.0.1:" + std::to_string(nodes[1].port()) : nodes[node].socket_path();
    const auto said = [&](std::uint64_t seconds) {
      return contains(quorum.error_text(), "node " + std::to_string(node + 1) + " (" + name +
                                               ") was restarted, votes in " + std::to_string(seconds) + " s");
    };
    const std::uint64_t seconds = quorum.seconds_until_vote(node);
    TEST_ASSERT_TRUE(said(seconds) || said(seconds - 1));  // A second may end between the two questions.
  }
  RedlockMutex<3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::no_quorum, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::no_quorum, lock.acquire(50ms));
  TEST_ASSERT_TRUE(nodes.all("DBSIZE", "0"));
  TEST_ASSERT_EQUAL(0, nodes[0].calls("set"));  // Not even asked.
  // A lease that the guard would not outlast is refused.
  RedlockMutex<3> longer(quorum, "k", {.lease = 601s});
#ifndef HOLDFAST_TEST_ASIO  // Whose locks may be there before the quorum knows its longest lease.
  TEST_ASSERT_EQUAL(Status::invalid_argument, longer.configuration());
#endif
  TEST_ASSERT_EQUAL(Status::invalid_argument, longer.try_acquire());
  // The switch.
  Quorum<3> careless;
  TEST_ASSERT_EQUAL(Status::ok, connect(careless, nodes.configs(), {.max_lease = 600s, .restart_guard = false}));
  TEST_ASSERT_EQUAL(0b111, careless.voters());
  TEST_ASSERT_EQUAL(std::uint64_t{0}, careless.seconds_until_vote(0));
  RedlockMutex<3> works(careless, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, works.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, works.release());
}

// Started, grown up, and one of them started anew.
TEST(test_restarted_node_should_vote_only_after_the_longest_lease) {
  for (const std::string& binary : server_binaries()) {
    constexpr Duration longest = 2s;
    const Instant before = Client::now();
    LiveNodes nodes(binary, 3);
    Quorum<3> quorum;
    (void)connect(quorum, brisk(nodes.configs()), {.max_lease = longest});
    RedlockMutex<3> lock(quorum, "k", {.lease = 2s});
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(30s));
    TEST_ASSERT_TRUE(Client::now() - before > longest);
    (void)lock.release();
    await_voters(quorum, 0b111);
    TEST_ASSERT_EQUAL("", text_of(quorum.error_text()));
    // With the first away, the second's vote is needed.
    nodes[0].stop();
    nodes[1].stop();
    const Instant killed = Client::now();
    nodes[1].start();
    TEST_ASSERT_TRUE(comes(
        [&] {
          (void)quorum.tend();
          return quorum.voters() == 0b100 && quorum.seconds_until_vote(1) != 0;
        },
        2s));
    const std::string text = text_of(quorum.error_text());
    TEST_MESSAGE(text);
    TEST_ASSERT_TRUE(contains(ByteView(text),
                              "node 2 (127.0.0.1:" + std::to_string(nodes[1].port()) + ") was restarted, votes in "));
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(30s));
    TEST_ASSERT_TRUE(Client::now() - killed > longest);
  }
}

// Another server answers where one did before, and has been up for long: a fail-over, or a start that was not seen.
TEST(test_another_run_id_at_the_same_address_should_vote_only_after_the_longest_lease) {
  for (const std::string& binary : server_binaries()) {
    constexpr Duration longest = 2s;
    LiveNodes nodes(binary, 3);
    const Alias alias(nodes[0].socket_path() + ".alias", nodes[0]);
    std::vector<ClientConfig> configs = {LiveNodes::config_at(alias.url()), LiveNodes::config_at(nodes[1].unix_url())};
    Quorum<2> quorum;
    (void)connect(quorum, configs, {.max_lease = longest});
    await_voters(quorum, 0b11);
    // The third is as old as they are, and grown up by now.
    TEST_ASSERT_TRUE(comes([&] {
      return std::stol(nodes[2]
                           .command("INFO server")
                           .substr(nodes[2].command("INFO server").find("uptime_in_seconds:") + 18)) > 4;
    }));
    const Instant switched = Client::now();
    alias.lead_to(nodes[2]);
    nodes[0].command("CLIENT KILL TYPE normal SKIPME yes");
    TEST_ASSERT_TRUE(comes(
        [&] {
          (void)quorum.tend();
          return quorum.seconds_until_vote(0) != 0;
        },
        2s));
    TEST_ASSERT_EQUAL(0b10, quorum.voters());
    TEST_ASSERT_TRUE(contains(quorum.error_text(), "node 1 (" + nodes[0].socket_path() + ".alias) was restarted"));
    await_voters(quorum, 0b11);
    TEST_ASSERT_TRUE(Client::now() - switched > longest);
    // The same one again, over a new connection: nothing to wait for.
    nodes[2].command("CLIENT KILL TYPE normal SKIPME yes");
    TEST_ASSERT_TRUE(comes([&] {
      (void)quorum.tend();
      TEST_ASSERT_EQUAL(std::uint64_t{0}, quorum.seconds_until_vote(0));
      return quorum.voters() == 0b11;
    }));
  }
}

// A node without a vote that still holds the token counts for a renewal; one that forgot it is not asked for it anew.
TEST(test_renewal_of_a_token_that_a_restarted_node_still_holds_should_count) {
  const std::vector<std::string> kept = {"--appendonly", "yes", "--appendfsync", "no"};
  for (const std::string& binary : server_binaries()) {
    constexpr Duration longest = 4s;
    LiveNodes nodes(binary, 3, kept);
    Quorum<3> quorum;
    (void)connect(quorum, brisk(nodes.configs()), {.max_lease = longest});
    RedlockMutex<3> lock(quorum, "k", {.lease = 4s, .node_timeout = 2s});
    bool seen = false;
    for (int turn = 0; turn < 3 && !seen; ++turn) {  // Again where the machine was so slow that the lease ran out.
      await_voters(quorum, 0b111);
      TEST_ASSERT_EQUAL(Status::ok, lock.acquire(30s));
      await_everywhere(nodes, lock);
      nodes[0].stop();
      nodes[1].stop();
      nodes[1].start();
      const std::string there = nodes[1].command("GET k");
      if (!lock.held()) continue;
      TEST_ASSERT_EQUAL(text_of(lock.token().bytes()), there);
      const Instant until = lock.valid_until();
      Status status = Status::no_quorum;
      while (status != Status::ok && lock.held()) status = lock.renew();
      if (status == Status::ok) {
        TEST_ASSERT_TRUE(lock.valid_until() > until);
        if (quorum.seconds_until_vote(1) != 0) {
          TEST_ASSERT_EQUAL(0b100, quorum.voters());
          TEST_ASSERT_TRUE(lock.held_on(1));
          seen = true;
        }
      }
      (void)lock.release();
      nodes[0].start();
    }
    TEST_ASSERT_TRUE(seen);
  }
}

TEST(test_restarted_node_that_forgot_should_not_be_repaired_before_it_votes) {
  for (const std::string& binary : server_binaries()) {
    LiveNodes nodes(binary, 3);
    Quorum<3> quorum;
    (void)connect(quorum, brisk(nodes.configs()), {.max_lease = 3s});
    RedlockMutex<3> lock(quorum, "k", {.lease = 3s, .node_timeout = 2s});
    await_voters(quorum, 0b111);
    TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(30s));
    nodes[2].stop();
    nodes[2].start();
    const auto repaired = [&] { return nodes[2].command("EXISTS k") == "1"; };
    bool guarded = false;
    bool early = false;
    TEST_ASSERT_TRUE(comes(
        [&] {
          (void)quorum.tend();
          (void)lock.renew();
          if (repaired()) return true;
          guarded = guarded || quorum.seconds_until_vote(2) != 0;
          early = early || (quorum.voters() & node_bit(2)) != 0;
          return false;
        },
        2 * patience));
    TEST_ASSERT_TRUE(guarded);
    TEST_ASSERT_EQUAL(0b111, quorum.voters());
    TEST_ASSERT_TRUE(lock.held());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

TEST_ON_NODES(test_node_that_does_not_tell_its_run_id_should_have_no_vote, 3) {
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("ACL SETUSER default -info");
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::no_quorum, connect(quorum, nodes.configs(), {.max_lease = 1s}));
  TEST_ASSERT_TRUE(
      contains(quorum.error_text(), "node 1 (" + nodes[0].socket_path() + ") does not tell its run id (ACL: +info)"));
  RedlockMutex<3> lock(quorum, "k", {.lease = 1s});
  TEST_ASSERT_EQUAL(Status::no_quorum, lock.try_acquire());
  breathe(2500ms);  // However long it waits: older than the longest lease.
  TEST_ASSERT_EQUAL(Status::no_quorum, lock.try_acquire());
  TEST_ASSERT_EQUAL(0, quorum.voters());
  TEST_ASSERT_EQUAL(UINT64_MAX, quorum.seconds_until_vote(0));
  for (std::size_t node = 0; node < 3; ++node) {
    nodes[node].command("ACL SETUSER default +info");
    nodes[node].command("CLIENT KILL TYPE normal SKIPME yes");
  }
  await_voters(quorum, 0b111);
}

// ---- One machine for two nodes -----------------------------------------------------------------------------------

TEST_ON_NODES(test_server_that_is_given_twice_should_be_refused, 2) {
  std::vector<ClientConfig> configs = nodes.configs();
  configs.insert(configs.begin(), LiveNodes::config_at(nodes[1].unix_url()));
  for (const bool guard : {false, true}) {
    Quorum<3> quorum;
    TEST_ASSERT_EQUAL(Status::same_machine, connect(quorum, configs, {.max_lease = 60s, .restart_guard = guard}));
    const std::string text = text_of(quorum.error_text());
    TEST_MESSAGE(text);
    const std::string tcp = "127.0.0.1:" + std::to_string(nodes[1].port());
    const bool last = contains(ByteView(text), "node 3 (" + tcp + ") is the same machine as node 1");
    const bool first =
        contains(ByteView(text), "node 1 (" + nodes[1].socket_path() + ") is the same machine as node 3");
    TEST_ASSERT_TRUE(first || last);
    TEST_ASSERT_EQUAL(Status::same_machine, quorum.node_status(last ? 2 : 0));
    RedlockMutex<3> lock(quorum, "k", calm);
    TEST_ASSERT_EQUAL(Status::same_machine, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::same_machine, lock.acquire(50ms));
    TEST_ASSERT_TRUE(nodes.all("DBSIZE", "0"));
  }
}

TEST_ON_NODES(test_replica_of_another_node_should_be_refused_until_it_is_none, 3, "--repl-diskless-sync-delay", "0") {
  nodes[2].command("REPLICAOF 127.0.0.1 " + std::to_string(nodes[0].port()));
  TEST_ASSERT_TRUE(
      comes([&] { return nodes[2].command("INFO replication").find("master_link_status:up") != std::string::npos; }));
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::same_machine, connect(quorum, nodes.configs()));
  const std::string text = text_of(quorum.error_text());
  TEST_MESSAGE(text);
  const bool named =
      contains(ByteView(text), "node 3 (" + nodes[2].socket_path() + ") is the same machine as node 1") ||
      contains(ByteView(text), "node 1 (" + nodes[0].socket_path() + ") is the same machine as node 3");
  TEST_ASSERT_TRUE(named);
  RedlockMutex<3> lock(quorum, "k", calm);
  TEST_ASSERT_EQUAL(Status::same_machine, lock.try_acquire());
  nodes[2].command("REPLICAOF NO ONE");
  nodes[2].command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.acquire(1s); }, Status::ok));
  await_voters(quorum, 0b111);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// A second node that moves to a machine that is there already loses its vote, and gets it back when it moves on.
TEST_ON_NODES(test_node_that_moves_to_the_machine_of_another_should_be_refused, 3) {
  const Alias alias(nodes[0].socket_path() + ".alias", nodes[0]);
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok,
                    connect(quorum, {LiveNodes::config_at(alias.url()), LiveNodes::config_at(nodes[1].unix_url()),
                                     LiveNodes::config_at(nodes[2].tcp_url())}));
  await_voters(quorum, 0b111);
  RedlockMutex<3> lock(quorum, "k", calm);
  alias.lead_to(nodes[1]);
  nodes[0].command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_EQUAL(Status::same_machine, eventually(
                                              [&] {
                                                const Status status = lock.try_acquire();
                                                if (status == Status::ok) (void)lock.release();
                                                return status;
                                              },
                                              Status::same_machine));
  TEST_ASSERT_TRUE(contains(quorum.error_text(), ".alias) is the same machine as node 2"));
  alias.lead_to(nodes[0]);
  nodes[1].command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.acquire(1s); }, Status::ok));
  await_voters(quorum, 0b111);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  await_nothing_left(nodes, quorum);
}
