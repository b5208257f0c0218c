// SPDX-License-Identifier: MIT
//
// What a quorum knows of its nodes, and what it has promised, outlives connect(), names that move, and promotions; and what
// is let go of finds a place, or says that it has none.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "live_nodes.hpp"
#include "patience.hpp"
#include "proxy.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

// Nothing ends by itself while a test looks.
constexpr QuorumTiming calm = {.lease = 60s, .node_timeout = 12s};

// A dead node is noticed, and asked again, soon.
std::vector<ClientConfig> brisk(std::vector<ClientConfig> configs) {
  for (ClientConfig& config : configs) config.connect_timeout = 1s;
  return configs;
}

long uptime_of(const RedisServer& server) {
  const std::string info = server.command("INFO server");
  const std::string name = "uptime_in_seconds:";
  return std::stol(info.substr(info.find(name) + name.size()));
}

void await_uptime(const LiveNodes& nodes, long seconds) {
  for (std::size_t node = 0; node < nodes.size(); ++node)
    TEST_ASSERT_TRUE(comes([&] { return uptime_of(nodes[node]) >= seconds; }));
}

void kill_connections(const RedisServer& server) { server.command("CLIENT KILL TYPE normal SKIPME yes"); }

// Another server is the same node: until the quorum has seen that.
void await_wait(QuorumClient& quorum, std::size_t node) {
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.seconds_until_vote(node) != 0;
  }));
}

}  // namespace

// ---- max_lease ---------------------------------------------------------------------------------------------------

// [redlock 9] It is compared with the max_lease of now, whatever that was when the lock was made.
TEST_ON_NODES(test_a_lease_above_the_max_lease_of_now_should_be_neither_granted_nor_extended, 3) {
  constexpr QuorumConfig large = {.max_lease = 60s, .restart_guard = false};
  constexpr QuorumConfig small = {.max_lease = 2s, .restart_guard = false};
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs(), large));
  RedlockMutex<3> free(quorum, "free", calm);
  RedlockMutex<3> mutex(quorum, "mutex", calm, {.fence = true});
  SoleRedlock<RedlockReentrantLock, 3> hash(quorum, "hash", calm);
  RedlockMutex<3> brief(quorum, "brief", {.lease = 2s, .node_timeout = 1s});
  TEST_ASSERT_EQUAL(Status::ok, mutex.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, hash.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs(), small));
  const Instant until = mutex.valid_until();
  const std::string words = "a lease of 60000 ms is longer than max_lease, 2000 ms";
  TEST_ASSERT_EQUAL(Status::invalid_argument, free.try_acquire());
  TEST_ASSERT_EQUAL(words, text_of(quorum.error_text()));
  TEST_ASSERT_EQUAL(Status::invalid_argument, free.acquire(1s));
  TEST_ASSERT_EQUAL(Status::invalid_argument, mutex.renew());
  TEST_ASSERT_EQUAL(words, text_of(quorum.error_text()));
  TEST_ASSERT_EQUAL(Status::invalid_argument, hash.try_acquire());  // A re-entry.
  TEST_ASSERT_EQUAL(Status::invalid_argument, hash.renew());
  TEST_ASSERT_TRUE(nodes.all("EXISTS free", "0"));
  // A lock that is kept by itself is not extended, either.
  for (const Instant end = Client::now() + 300ms; Client::now() < end; breathe(10ms)) (void)quorum.tend();
  // What was granted under the larger one goes on to its end, and can be let go of.
  TEST_ASSERT_EQUAL(until, mutex.valid_until());
  TEST_ASSERT_TRUE(mutex.held() && hash.held());
  TEST_ASSERT_EQUAL(Status::ok, brief.try_acquire());
  TEST_ASSERT_EQUAL("", text_of(quorum.error_text()));
  TEST_ASSERT_EQUAL(Status::ok, brief.release());
  TEST_ASSERT_EQUAL(Status::ok, mutex.release());
  TEST_ASSERT_EQUAL(Status::ok, hash.release());
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs(), large));
  TEST_ASSERT_EQUAL(Status::ok, free.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, free.renew());
}

TEST_ON_NODES(test_a_kept_lock_above_the_max_lease_of_now_should_not_be_renewed_by_tending, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs(), {.max_lease = 60s, .restart_guard = false}));
  RedlockMutex<3> lock(quorum, "k", {.lease = 1500ms, .node_timeout = 1s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const Instant until = lock.valid_until();
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs(), {.max_lease = 1s, .restart_guard = false}));
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return !lock.held();
  }));
  TEST_ASSERT_TRUE(Client::now() < until + 2s);
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
}

// [redlock 9] Held for the longer time by one lock, and two nodes have forgotten it: a smaller max_lease lets nobody else in.
TEST(test_two_should_not_hold_when_max_lease_shrinks_and_nodes_come_back_empty) {
  for (const std::string& binary : server_binaries()) {
    constexpr Duration longest = 5s;
    constexpr Duration shortest = 300ms;
    LiveNodes nodes(binary, 3);
    const std::vector<ClientConfig> configs = brisk(nodes.configs());
    Quorum<3> quorum;
    (void)connect(quorum, configs, {.max_lease = longest});
    await_voters(quorum, 0b111);
    RedlockMutex<3> first(quorum, "k", {.lease = longest, .node_timeout = 2s});
    TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
    nodes[0].stop();
    nodes[1].stop();
    nodes[0].start();
    nodes[1].start();
    // In another order, too.
    (void)connect(quorum, {configs[1], configs[2], configs[0]}, {.max_lease = shortest});
    RedlockMutex<3> second(quorum, "k", {.lease = shortest, .node_timeout = 200ms});
    int asked = 0;
    while (first.held()) {
      const Status status = second.try_acquire();
      TEST_ASSERT_FALSE(status == Status::ok && first.held());
      ++asked;
      breathe(20ms);
    }
    TEST_ASSERT_TRUE(asked > 10);
    // When all is over that was promised before, the smaller one is enough.
    TEST_ASSERT_EQUAL(Status::ok, second.acquire(20s));
  }
}

// ---- Connected anew ----------------------------------------------------------------------------------------------

// [redlock 9] It has been up for long, and answers where another one did.
TEST(test_another_server_should_wait_whether_it_is_met_by_a_reconnect_or_by_connect) {
  for (const std::string& binary : server_binaries()) {
    constexpr Duration longest = 2s;
    LiveNodes nodes(binary, 4);
    await_uptime(nodes, 4);
    for (const bool closed : {false, true})
      for (const bool moved : {false, true}) {
        TEST_MESSAGE("closed: " << closed << ", in another order: " << moved);
        const Alias alias(nodes[2].socket_path() + ".alias", nodes[2]);
        std::vector<ClientConfig> configs = {LiveNodes::config_at(nodes[0].unix_url()),
                                             LiveNodes::config_at(nodes[1].tcp_url()),
                                             LiveNodes::config_at(alias.url())};
        Quorum<3> quorum;
        TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs, {.max_lease = longest}));
        await_voters(quorum, 0b111);
        if (closed) quorum.close();
        alias.lead_to(nodes[3]);
        const Instant switched = Client::now();
        std::size_t where = 2;
        if (moved) {
          std::swap(configs[0], configs[2]);
          where = 0;
        }
        TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs, {.max_lease = longest}));
        const auto others = static_cast<NodeSet>(0b111 & ~node_bit(where));
        await_voters(quorum, others);
        TEST_ASSERT_TRUE(quorum.seconds_until_vote(where) != 0);
        TEST_ASSERT_TRUE(contains(quorum.error_text(), ".alias) was restarted, votes in "));
        // Once more, and it is not forgotten; nor does it begin anew.
        TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs, {.max_lease = longest}));
        await_voters(quorum, others);
        await_voters(quorum, 0b111);
        TEST_ASSERT_TRUE(Client::now() - switched > longest);
      }
  }
}

// It is known by its run id where its address is new; a stranger is not.
TEST_ON_NODES(test_a_node_should_be_known_at_a_new_address_and_a_stranger_should_wait, 4) {
  Quorum<3> quorum;
  await_uptime(nodes, 3);
  const QuorumConfig config = {.max_lease = 1s};
  TEST_ASSERT_EQUAL(Status::ok,
                    connect(quorum,
                            {LiveNodes::config_at(nodes[0].unix_url()), LiveNodes::config_at(nodes[1].unix_url()),
                             LiveNodes::config_at(nodes[2].unix_url())},
                            config));
  await_voters(quorum, 0b111);
  TEST_ASSERT_EQUAL(Status::ok,
                    connect(quorum,
                            {LiveNodes::config_at(nodes[2].tcp_url()), LiveNodes::config_at(nodes[0].tcp_url()),
                             LiveNodes::config_at(nodes[3].tcp_url())},
                            config));
  TEST_ASSERT_EQUAL(0b011, quorum.voters());
  await_wait(quorum, 2);
  await_voters(quorum, 0b111);
}

// ---- Promotions --------------------------------------------------------------------------------------------------

// [redlock 9] This client has never seen the master before it, and the server has been up for long.
TEST_ON_NODES(test_a_promoted_replica_should_have_no_vote_in_a_new_client_until_the_longest_lease_is_over, 4,
              "--repl-diskless-sync-delay", "0") {
  nodes[3].command("REPLICAOF 127.0.0.1 " + std::to_string(nodes[2].port()));
  TEST_ASSERT_TRUE(
      comes([&] { return nodes[3].command("INFO replication").find("master_link_status:up") != std::string::npos; }));
  await_uptime(nodes, 3);
  nodes[3].command("REPLICAOF NO ONE");
  nodes[2].stop();
  constexpr Duration longest = 1s;
  for (int client = 0; client < 2; ++client) {
    Quorum<3> quorum;
    const Instant begin = Client::now();
    TEST_ASSERT_EQUAL(Status::ok,
                      connect(quorum,
                              {LiveNodes::config_at(nodes[0].unix_url()), LiveNodes::config_at(nodes[1].unix_url()),
                               LiveNodes::config_at(nodes[3].unix_url())},
                              {.max_lease = longest}));
    await_wait(quorum, 2);
    TEST_ASSERT_EQUAL(0b011, quorum.voters());
    TEST_ASSERT_EQUAL(Status::no_quorum, quorum.node_status(2));
    TEST_ASSERT_TRUE(contains(quorum.error_text(), "node 3 (" + nodes[3].socket_path() + ") may have been promoted"));
    await_voters(quorum, 0b111);
    TEST_ASSERT_TRUE(Client::now() - begin > longest);
  }
}

// A connection that stays open says nothing of it; what the server refuses does.
TEST_ON_NODES(test_a_node_that_was_a_replica_for_a_while_should_wait_when_it_is_a_master_again, 3) {
  constexpr Duration longest = 1s;
  await_uptime(nodes, 3);
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs(), {.max_lease = longest}));
  await_voters(quorum, 0b111);
  RedlockMutex<3> lock(quorum, "k", {.lease = 1s, .node_timeout = 900ms});
  nodes[2].command("REPLICAOF 127.0.0.1 1");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.voters() == 0b011;
  }));
  TEST_ASSERT_EQUAL(Status::read_only, quorum.node_status(2));
  TEST_ASSERT_TRUE(contains(quorum.error_text(), ") is a replica"));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  const Instant promoted = Client::now();
  nodes[2].command("REPLICAOF NO ONE");
  await_voters(quorum, 0b111);
  TEST_ASSERT_TRUE(Client::now() - promoted > longest);
}

// ---- Names that move ---------------------------------------------------------------------------------------------

// [redlock 10] The third node's name leads to the first one's server while a lock is held. Its vote ends with the time, and is
// not taken back there: that would delete what the first node's vote stands for.
TEST_ON_NODES(test_a_name_that_moves_to_another_nodes_server_should_not_cost_that_one_its_vote, 3) {
  const Alias alias(nodes[2].socket_path() + ".alias", nodes[2]);
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(
      Status::ok, connect(quorum, {LiveNodes::config_at(nodes[0].unix_url()), LiveNodes::config_at(nodes[1].tcp_url()),
                                   LiveNodes::config_at(alias.url())}));
  await_voters(quorum, 0b111);
  RedlockMutex<3> mutex(quorum, "k", {.lease = 1200ms, .node_timeout = 1s});
  SoleRedlock<RedlockReentrantLock, 3> hash(quorum, "hash", {.lease = 1200ms, .node_timeout = 1s});
  for (QuorumLock* const lock : {static_cast<QuorumLock*>(&mutex), static_cast<QuorumLock*>(&hash)}) {
    TEST_ASSERT_EQUAL(Status::ok, lock->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
    await_everywhere(nodes, *lock);
  }
  alias.lead_to(nodes[0]);
  kill_connections(nodes[2]);
  // Twice as long as the lease: the vote of the third node is over.
  const Instant end = Client::now() + 2500ms;
  while (Client::now() < end) {
    (void)quorum.tend();
    TEST_ASSERT_EQUAL("1|1", nodes[0].command("EXISTS k") + "|" + nodes[1].command("EXISTS k"));
    TEST_ASSERT_EQUAL("1|1", nodes[0].command("EXISTS hash") + "|" + nodes[1].command("EXISTS hash"));
    TEST_ASSERT_TRUE(mutex.held() && hash.held());
    breathe(5ms);
  }
  TEST_ASSERT_FALSE(mutex.held_on(2));
  TEST_ASSERT_TRUE(mutex.held_on(0) && mutex.held_on(1));
  TEST_ASSERT_EQUAL(Status::ok, mutex.release());
  TEST_ASSERT_EQUAL(Status::ok, hash.release());
}

// [redlock 7] The third node has not answered, and what it may have granted is to be taken back there, not where its name leads
// next.
TEST_ON_NODES(test_what_one_server_was_asked_should_not_be_taken_back_on_another, 3) {
  const Alias alias(nodes[2].socket_path() + ".alias", nodes[2]);
  std::vector<ClientConfig> configs = {LiveNodes::config_at(nodes[0].unix_url()),
                                       LiveNodes::config_at(nodes[1].tcp_url()), LiveNodes::config_at(alias.url())};
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs));
  await_voters(quorum, 0b111);
  RedlockMutex<3> lock(quorum, "k", {.lease = 60s, .node_timeout = 300ms});
  nodes[2].pause();
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.compensations_pending() != 0;
  }));
  const std::string token = text_of(lock.token().bytes());
  alias.lead_to(nodes[0]);
  nodes[2].stop();
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.node_status(2) == Status::same_machine;
  }));
  TEST_ASSERT_EQUAL(std::size_t{0}, quorum.compensations_pending());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(token + "|" + token, nodes[0].command("GET k") + "|" + nodes[1].command("GET k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  nodes[2].start();
}

// ---- A place for what is let go of -------------------------------------------------------------------------------

// One node is stopped, so that nothing of it is answered: what it has no place for is told, and sent when it has one.
TEST_ON_NODES(test_a_posted_release_without_a_place_should_say_so_and_follow, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  await_voters(quorum, 0b111);
  std::vector<std::unique_ptr<RedlockMutex<3>>> locks;
  for (int index = 0; index < 80; ++index) {
    locks.push_back(std::make_unique<RedlockMutex<3>>(quorum, "k" + std::to_string(index), calm));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->acquire(20s));
  }
  // A node that was late for several is asked anew.
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    for (const auto& lock : locks)
      if (!lock->held_on(0) || !lock->held_on(1) || !lock->held_on(2)) (void)lock->renew();
    return nodes.all("DBSIZE", "80");
  }));
  nodes[1].pause();
  int placed = 0;
  int told = 0;
  for (const auto& lock : locks) {
    const Status status = lock->post_release();
    placed += status == Status::ok ? 1 : 0;
    told += status == Status::too_many_requests ? 1 : 0;
    if (status != Status::ok && status != Status::too_many_requests) break;
  }
  bool any_held = false;
  for (const auto& lock : locks) any_held = any_held || lock->held();
  const std::size_t pending = quorum.compensations_pending();
  nodes[1].resume();
  TEST_MESSAGE(placed << " had a place, " << told << " had none");
  TEST_ASSERT_EQUAL(80, placed + told);
  TEST_ASSERT_TRUE(placed >= 8);
  TEST_ASSERT_TRUE(told > 0);
  TEST_ASSERT_FALSE(any_held);
  TEST_ASSERT_TRUE(pending >= 80);
  // Long before their leases end.
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.compensations_pending() == 0 && nodes.all("DBSIZE", "0");
  }));
  // And the locks can be had again.
  for (const auto& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock->acquire(20s));
}

// Places that have been given back are found, and one that is asked for is not refused for them.
TEST_ON_NODES(test_many_posted_releases_in_a_row_should_all_be_sent, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  await_voters(quorum, 0b111);
  std::vector<std::unique_ptr<RedlockMutex<3>>> locks;
  for (int index = 0; index < 20; ++index) {
    locks.push_back(std::make_unique<RedlockMutex<3>>(quorum, "k" + std::to_string(index), calm));
    TEST_ASSERT_EQUAL(Status::ok, locks.back()->acquire(20s));
  }
  for (const auto& lock : locks) {
    const Status status = lock->post_release();
    TEST_ASSERT_TRUE(status == Status::ok || status == Status::too_many_requests);
  }
  RedlockMutex<3> other(quorum, "other", calm);
  TEST_ASSERT_EQUAL(Status::ok, other.acquire(20s));
  TEST_ASSERT_EQUAL(Status::ok, other.release());
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.compensations_pending() == 0 && nodes.all("DBSIZE", "0");
  }));
}
