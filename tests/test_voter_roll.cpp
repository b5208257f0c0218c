// SPDX-License-Identifier: MIT
//
// Who may vote, and what is kept of the nodes when a quorum is connected anew: with another order, other addresses, another
// max_lease, or fewer nodes.
#include "unity_style.hpp"

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "council.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/voter_roll.hpp"
#include "holdfast/sentinels.hpp"
#include "printers.hpp"

using namespace holdfast;

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000'000);
constexpr Duration max_lease = 30s;
constexpr Duration longest = LeasePromise::longest(max_lease);
constexpr int old = 1'000'000;
constexpr std::size_t capacity = 5;

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }

// What a server says of itself. Its run id is one letter.
struct Server {
  char id = 'a';
  int uptime = old;
  std::string standing = "-1master";
  char replication = 'f';
  bool tells = true;  // Who it is.

  [[nodiscard]] std::string handshake() const {
    if (!tells) return ":7\r\n-NOPERM this user has no permissions to run the 'info' command\r\n";
    return ":7\r\n*6\r\n" + bulk(std::string(40, id)) + bulk(std::to_string(uptime)) + bulk("7.0.15") + bulk("") +
           bulk(replication == 'f' ? std::string(40, static_cast<char>(id - 'a' + '0'))
                                   : std::string(40, replication)) +
           bulk(standing);
  }
};

// One quorum without sockets: it does what a driver does when a connection comes and goes.
struct Quorum {
  struct Node {
    NodeBuffers buffers;
    holdfast::Node node{NodeBuffers::storage_of(&buffers)};
    Session& session = node.session();
    ClientConfig config;
  };
  explicit Quorum(std::size_t size_max = capacity) : roll{voters, size_max} {}

  std::deque<Node> nodes{capacity};
  VoterRoll::Voter voters[capacity];
  VoterRoll roll;
  Instant now = start;
  NodeSet met = 0;  // What the last introduction has named.
  char text[400];

  // The addresses are ports.
  void connect(const std::vector<std::uint16_t>& ports, const QuorumConfig& config = {.max_lease = max_lease}) {
    std::vector<ClientConfig> configs(ports.size());
    for (std::size_t index = 0; index < ports.size(); ++index) configs[index].port = ports[index];
    connect(configs, config);
  }
  // To services that sentinels know.
  void connect(const std::vector<Sentinels*>& services) {
    std::vector<ClientConfig> configs(services.size());
    for (std::size_t index = 0; index < services.size(); ++index) configs[index].topology = services[index];
    connect(configs, {.max_lease = max_lease});
  }
  void connect(const std::vector<ClientConfig>& configs, const QuorumConfig& config) {
    for (std::size_t index = 0; index < roll.size(); ++index) down(index);
    roll.begin(configs.size(), config, now);
    for (std::size_t index = 0; index < configs.size(); ++index) {
      nodes[index].config = configs[index];
      nodes[index].config.client_name = "";
      nodes[index].node.configure(nodes[index].config, nullptr);
      roll.attach(index, nodes[index].node);
      roll.enter(index, nodes[index].config);
    }
  }
  void up(std::size_t index, const Server& server) {
    Session& session = nodes[index].session;
    session.handle_connected(now, now + 1s);
    transmit(session);
    const std::string bytes = server.handshake();
    const MutableBytes space = session.receive_space();
    std::memcpy(space.data, bytes.data(), bytes.size());
    session.handle_received(bytes.size(), now);
    poll(session);
    TEST_ASSERT_TRUE(session.ready());
    met = roll.introduce(index, now);
    transmit(session);
  }
  void down(std::size_t index) {
    nodes[index].session.handle_closed();
    poll(nodes[index].session);
    roll.leave(index, Status::transport_closed);
  }
  // To another server, or the same one.
  void again(std::size_t index, const Server& server) {
    down(index);
    up(index, server);
  }
  void all_up(const std::string& ids) {
    for (std::size_t index = 0; index < ids.size(); ++index) up(index, {.id = ids[index]});
  }
  [[nodiscard]] NodeSet voting() const { return roll.voters(now); }
  [[nodiscard]] std::string error() { return std::string(roll.write_text({text, sizeof text}, now).string_view()); }
  // By then every node that is there votes.
  void wait(Duration length) { now = now + length; }

 private:
  void poll(Session& session) const {
    Reply reply;
    while (session.poll_reply(reply, now)) {}
  }
  void transmit(Session& session) const { session.handle_transmitted(session.poll_transmit(now).size()); }
};

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- The first time ----------------------------------------------------------------------------------------------

TEST(test_nodes_that_are_old_should_vote_at_once) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  TEST_ASSERT_EQUAL(0, quorum.voting());
  TEST_ASSERT_EQUAL(Status::no_quorum, quorum.roll.verdict(start));
  quorum.up(0, {.id = 'a'});
  quorum.up(2, {.id = 'c'});
  TEST_ASSERT_EQUAL(0b101, quorum.voting());
  TEST_ASSERT_EQUAL(Status::ok, quorum.roll.verdict(start));
  quorum.down(2);
  TEST_ASSERT_EQUAL(0b001, quorum.voting());
  quorum.up(1, {.id = 'b', .uptime = 3});
  TEST_ASSERT_EQUAL(0b001, quorum.voting());
  TEST_ASSERT_EQUAL("node 2 (127.0.0.1:2) was restarted, votes in 29 s; node 3 (127.0.0.1:3) transport_closed",
                    quorum.error());
}

TEST(test_a_node_that_is_first_met_late_should_vote_by_its_uptime) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.up(0, {.id = 'a'});
  quorum.connect({1, 2, 3});  // As a service does that tries until a majority is there.
  quorum.up(0, {.id = 'a'});
  quorum.up(1, {.id = 'b'});
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
}

// ---- Connected anew ----------------------------------------------------------------------------------------------

TEST(test_another_server_at_an_address_should_wait_also_behind_another_connect) {  // [redlock 9]
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  quorum.wait(10s);
  quorum.connect({1, 2, 3});
  quorum.all_up("abx");
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
  TEST_ASSERT_EQUAL("node 3 (127.0.0.1:3) was restarted, votes in 31 s", quorum.error());
  // The wait goes on behind the next one, and does not begin anew.
  quorum.wait(20s);
  for (std::size_t index = 0; index < 3; ++index) quorum.down(index);
  quorum.connect({1, 2, 3});
  quorum.all_up("abx");
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
  TEST_ASSERT_EQUAL(std::uint64_t{11}, quorum.roll.seconds_until_vote(2, quorum.now));
  quorum.wait(longest - 20s);
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
}

TEST(test_what_is_known_of_a_node_should_go_with_its_address_into_another_order) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  quorum.connect({3, 1, 2});
  quorum.all_up("cab");
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  quorum.connect({2, 1, 3});
  quorum.all_up("xac");
  TEST_ASSERT_EQUAL(0b110, quorum.voting());
  TEST_ASSERT_EQUAL("node 1 (127.0.0.1:2) was restarted, votes in 31 s", quorum.error());
}

// Their servers' addresses are what sentinels say, and mean nothing.
TEST(test_what_is_known_of_a_service_should_go_with_it_into_another_order) {
  Sentinels first({.hosts = "s1,s2:26379", .service = "first"});
  Sentinels second({.hosts = "s1,s2", .service = "second"});
  Sentinels third({.hosts = "s3", .service = "first"});
  Quorum quorum;
  quorum.connect({&first, &second, &third});
  TEST_ASSERT_EQUAL("node 1 (first) not_connected; node 2 (second) not_connected; node 3 (first) not_connected",
                    quorum.error());
  quorum.all_up("abc");
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  quorum.connect({&third, &first, &second});
  quorum.all_up("cab");
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  // The same sentinels in another order.
  first.configure({.hosts = "s2,s1", .service = "first"});
  quorum.connect({&first, &second, &third});
  quorum.all_up("xbc");
  TEST_ASSERT_EQUAL(0b110, quorum.voting());
  TEST_ASSERT_EQUAL("node 1 (first) was restarted, votes in 31 s", quorum.error());
}

TEST(test_a_server_at_a_new_address_should_be_known_by_its_run_id) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  quorum.connect({11, 12, 13});
  quorum.all_up("cab");
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  // One that waits goes on waiting there.
  quorum.again(1, {.id = 'x'});
  quorum.wait(10s);
  quorum.connect({21, 12, 13});
  quorum.all_up("xcb");
  TEST_ASSERT_EQUAL(0b100, quorum.voting());
  TEST_ASSERT_EQUAL(std::uint64_t{21}, quorum.roll.seconds_until_vote(0, quorum.now));
}

// It may have taken the place of a node that is not asked any more.
TEST(test_a_strange_server_at_a_new_address_should_wait) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  quorum.connect({1, 2, 4});
  quorum.all_up("abx");
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
  TEST_ASSERT_EQUAL(std::uint64_t{31}, quorum.roll.seconds_until_vote(2, quorum.now));
  quorum.wait(longest);
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  // One of before that comes back was no node meanwhile: what the others have granted it does not know.
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
}

TEST(test_strangers_should_wait_also_behind_a_roster_that_nobody_answered_for) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  quorum.connect({4, 5, 6});
  quorum.connect({7, 8, 9});
  quorum.all_up("xyz");
  TEST_ASSERT_EQUAL(0, quorum.voting());
}

TEST(test_a_quorum_that_met_nobody_should_know_of_no_strangers) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.connect({4, 5, 6});
  quorum.all_up("abc");
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
}

// Three of five held it; two of three have never heard of it.
TEST(test_so_much_fewer_nodes_that_two_majorities_may_have_none_in_common_should_wait) {
  Quorum quorum;
  quorum.connect({1, 2, 3, 4, 5});
  quorum.all_up("abcde");
  TEST_ASSERT_EQUAL(0b11111, quorum.voting());
  quorum.connect({1, 2, 3, 4});
  quorum.all_up("abcd");
  TEST_ASSERT_EQUAL(0b1111, quorum.voting());
  quorum.connect({1, 2, 3, 4, 5});
  quorum.all_up("abcde");
  TEST_ASSERT_EQUAL(0b01111, quorum.voting());
  quorum.wait(longest);
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  TEST_ASSERT_EQUAL(0, quorum.voting());
  quorum.wait(longest);
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
}

// ---- max_lease ---------------------------------------------------------------------------------------------------

// Held for 30 s by another lock of this quorum, forgotten by the node, and connected anew with a second.
TEST(test_a_restarted_node_should_wait_for_the_max_lease_of_before) {  // [redlock 9]
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  quorum.connect({1, 2, 3}, {.max_lease = 1s});
  quorum.all_up("abc");
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  quorum.wait(5s);
  quorum.again(2, {.id = 'x', .uptime = 4});
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
  quorum.wait(longest - 5s + 1ns);
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  // From then on the smaller one is enough.
  quorum.again(2, {.id = 'y', .uptime = 1});
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
  quorum.wait(LeasePromise::longest(1s) + 1ns);
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
}

TEST(test_a_max_lease_under_which_nobody_was_met_should_promise_nothing) {
  Quorum quorum;
  quorum.connect({1, 2, 3}, {.max_lease = 1h});
  quorum.connect({1, 2, 3}, {.max_lease = 1s});
  quorum.up(0, {.id = 'a', .uptime = 4});
  TEST_ASSERT_EQUAL(0b001, quorum.voting());
}

TEST(test_a_connect_that_meets_nobody_should_take_back_no_promise) {
  // Whether it had the same max_lease, or a larger one: what was granted before it is held all the same.
  for (const Duration between : {max_lease, Duration(1h)}) {
    Quorum quorum;
    quorum.connect({1, 2, 3});
    quorum.all_up("abc");
    quorum.connect({1, 2, 3}, {.max_lease = between});
    quorum.connect({1, 2, 3}, {.max_lease = 1s});
    quorum.all_up("abc");
    TEST_ASSERT_EQUAL(0b111, quorum.voting());
    quorum.wait(5s);
    quorum.again(2, {.id = 'x', .uptime = 4});
    quorum.wait(longest - 5s - 1ns);
    TEST_ASSERT_EQUAL(0b011, quorum.voting());
    quorum.wait(2ns);
    TEST_ASSERT_EQUAL(0b111, quorum.voting());
  }
}

TEST(test_what_was_promised_before_should_be_counted_from_the_connect_that_ended_it) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  quorum.connect({1, 2, 3}, {.max_lease = 1s});
  quorum.wait(longest + 1ns);
  quorum.up(0, {.id = 'a', .uptime = 4});
  TEST_ASSERT_EQUAL(0b001, quorum.voting());
}

TEST(test_what_was_learnt_without_the_guard_should_count_with_it) {
  Quorum quorum;
  quorum.connect({1, 2, 3}, {.max_lease = max_lease, .restart_guard = false});
  quorum.all_up("abc");
  quorum.again(2, {.id = 'x'});
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  quorum.connect({1, 2, 3});
  quorum.all_up("abx");
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
}

TEST(test_a_lease_above_max_lease_should_be_refused_in_words) {
  Quorum quorum;
  quorum.connect({1, 2, 3}, {.max_lease = 10s});
  quorum.all_up("abc");
  TEST_ASSERT_EQUAL(Status::ok, quorum.roll.permit(10s));
  TEST_ASSERT_EQUAL("", quorum.error());
  quorum.connect({1, 2, 3}, {.max_lease = 1500ms});
  quorum.all_up("abc");
  TEST_ASSERT_EQUAL(1500ms, quorum.roll.electorate(quorum.now).max_lease);
  TEST_ASSERT_EQUAL(1500ms, quorum.roll.repairers(quorum.now).max_lease);
  TEST_ASSERT_EQUAL(Status::invalid_argument, quorum.roll.permit(10s));
  TEST_ASSERT_EQUAL("a lease of 10000 ms is longer than max_lease, 1500 ms", quorum.error());
  TEST_ASSERT_EQUAL(Status::ok, quorum.roll.permit(1s));
  TEST_ASSERT_EQUAL("", quorum.error());
}

// ---- Promotions --------------------------------------------------------------------------------------------------

TEST(test_a_promoted_server_should_wait_and_be_named) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("ab");
  quorum.up(2, {.id = 'c', .standing = "4711master"});
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
  TEST_ASSERT_EQUAL("node 3 (127.0.0.1:3) may have been promoted, votes in 31 s", quorum.error());
  TEST_ASSERT_EQUAL(Status::no_quorum, quorum.roll.status(2, quorum.now));
  quorum.wait(longest);
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
}

TEST(test_a_replica_should_have_no_vote_and_be_asked_again) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("ab");
  quorum.up(2, {.id = 'c', .standing = "-1slave"});
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
  TEST_ASSERT_EQUAL("node 3 (127.0.0.1:3) is a replica", quorum.error());
  TEST_ASSERT_EQUAL(Status::read_only, quorum.roll.status(2, quorum.now));
  TEST_ASSERT_EQUAL(UINT64_MAX, quorum.roll.seconds_until_vote(2, quorum.now));
  TEST_ASSERT_EQUAL(start + 5s, quorum.roll.introduction_due(2));
  TEST_ASSERT_EQUAL(Instant::max(), quorum.roll.introduction_due(1));
  quorum.wait(5s);
  quorum.again(2, {.id = 'c', .standing = "4711master"});
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
  quorum.wait(longest);
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
}

TEST(test_a_node_that_refuses_to_write_should_have_no_vote_and_be_asked_again) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  quorum.wait(100s);
  quorum.roll.demote(0b100, quorum.now);
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
  const Instant due = quorum.now + 5s;
  TEST_ASSERT_EQUAL(due, quorum.roll.introduction_due(2));
  quorum.wait(1s);
  quorum.roll.demote(0b100, quorum.now);  // Told again and again, it is not put off.
  TEST_ASSERT_EQUAL(due, quorum.roll.introduction_due(2));
  quorum.down(2);
  quorum.roll.demote(0b010, quorum.now);
  quorum.up(2, {.id = 'c', .standing = "4711master"});
  TEST_ASSERT_EQUAL(0b001, quorum.voting());
  // Where restarts are no matter, neither is this.
  Quorum careless;
  careless.connect({1, 2, 3}, {.max_lease = max_lease, .restart_guard = false});
  careless.all_up("ab");
  careless.up(2, {.id = 'c', .standing = "-1slave"});
  careless.roll.demote(0b001, careless.now);
  TEST_ASSERT_EQUAL(0b111, careless.voting());
  TEST_ASSERT_EQUAL(Instant::max(), careless.roll.introduction_due(2));
}

// ---- One machine -------------------------------------------------------------------------------------------------

TEST(test_a_node_should_be_told_to_have_moved_when_another_server_answers_its_connection) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  quorum.again(2, {.id = 'c'});
  TEST_ASSERT_FALSE(quorum.roll.moved(2));
  const std::uint32_t first = quorum.roll.server(2);
  quorum.again(2, {.id = 'x'});
  TEST_ASSERT_TRUE(quorum.roll.moved(2));
  TEST_ASSERT_TRUE(quorum.roll.server(2) != first);
  // The connection's place counts here, not the address: what it had still to say was for the server before.
  quorum.connect({3, 2, 1});
  quorum.all_up("xba");
  TEST_ASSERT_TRUE(quorum.roll.moved(0));
  TEST_ASSERT_FALSE(quorum.roll.moved(1));
  TEST_ASSERT_TRUE(quorum.roll.moved(2));
}

TEST(test_the_second_of_two_nodes_with_one_server_should_have_no_vote) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("ab");
  quorum.up(2, {.id = 'a'});
  TEST_ASSERT_TRUE(quorum.roll.excluded(2));
  TEST_ASSERT_EQUAL(Status::same_machine, quorum.roll.verdict(quorum.now));
  TEST_ASSERT_EQUAL("node 3 (127.0.0.1:3) is the same machine as node 1 (127.0.0.1:1)", quorum.error());
  TEST_ASSERT_EQUAL(quorum.roll.server(0), quorum.roll.server(2));
  quorum.again(0, {.id = 'd'});
  TEST_ASSERT_FALSE(quorum.roll.excluded(2));
}

// ---- Who is refused ----------------------------------------------------------------------------------------------

TEST(test_a_cluster_and_counted_replicas_should_be_no_voters) {
  Cluster cluster;
  cluster.configure({.hosts = "10.0.0.1", .name = "k"});
  ClientConfig config;
  config.topology = &cluster;
  TEST_ASSERT_EQUAL(std::string("topology"), std::string(validate_voter(config).field));
  config = ClientConfig();
  config.acks = 1;
  TEST_ASSERT_EQUAL(std::string("acks"), std::string(validate_voter(config).field));
  config.acks = 0;
  TEST_ASSERT_FALSE(validate_voter(config).found());
  Sentinels sentinels;
  sentinels.configure({.hosts = "10.0.0.1", .service = "m"});
  config.topology = &sentinels;
  TEST_ASSERT_FALSE(validate_voter(config).found());
}

// ---- Words -------------------------------------------------------------------------------------------------------

TEST(test_nodes_should_be_named_by_their_path_or_their_address) {
  Quorum quorum;
  std::vector<ClientConfig> configs(3);
  configs[0].socket_path = "/run/one.sock";
  configs[1].host = "::1";
  configs[1].port = 2;
  configs[2].host = "10.0.0.3";
  configs[2].port = 3;
  quorum.connect(configs, {.max_lease = max_lease});
  TEST_ASSERT_EQUAL(
      "node 1 (/run/one.sock) not_connected; node 2 ([::1]:2) not_connected; node 3 (10.0.0.3:3) not_connected",
      quorum.error());
}

TEST(test_a_node_that_may_not_vote_should_be_named_with_the_reason) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("ab");
  Session& session = quorum.nodes[2].session;
  session.handle_connected(quorum.now, quorum.now + 1s);
  session.fail(Status::auth_failed, "WRONGPASS invalid username-password pair");
  quorum.down(2);
  quorum.roll.leave(2, Status::auth_failed);
  TEST_ASSERT_EQUAL("node 3 (127.0.0.1:3) auth_failed: WRONGPASS invalid username-password pair", quorum.error());
  TEST_ASSERT_EQUAL(Status::auth_failed, quorum.roll.status(2, quorum.now));
}

// ---- Counts ------------------------------------------------------------------------------------------------------

TEST(test_a_quorum_should_be_connected_while_a_majority_is) {
  Quorum quorum;
  TEST_ASSERT_FALSE(quorum.roll.connected());
  quorum.connect({1, 2, 3});
  TEST_ASSERT_FALSE(quorum.roll.connected());
  quorum.up(0, {.id = 'a'});
  TEST_ASSERT_FALSE(quorum.roll.connected());
  quorum.up(2, {.id = 'c'});
  TEST_ASSERT_TRUE(quorum.roll.connected());
  quorum.down(0);
  TEST_ASSERT_FALSE(quorum.roll.connected());
}

TEST(test_what_is_to_be_taken_back_should_be_counted_over_all_nodes_and_keep_each_from_repairs) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  TEST_ASSERT_EQUAL(0, quorum.roll.compensations_pending());
  TEST_ASSERT_EQUAL(0b111, quorum.roll.repairers(quorum.now).nodes);
  const Token token(ByteView("t"));
  const Compensation compensation = {.kind = &mutex_kind, .key = Key("k"), .token = &token, .count = 0};
  TEST_ASSERT_EQUAL(Status::ok, quorum.nodes[0].session.compensate({}, compensation));
  TEST_ASSERT_EQUAL(Status::ok, quorum.nodes[2].session.compensate({}, compensation));
  TEST_ASSERT_EQUAL(2, quorum.roll.compensations_pending());
  TEST_ASSERT_EQUAL(0b010, quorum.roll.repairers(quorum.now).nodes);
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
}

TEST(test_a_node_without_a_connection_should_not_vote) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  quorum.nodes[1].session.fail(Status::protocol_error, "gone");  // Nobody has told the roll yet.
  TEST_ASSERT_EQUAL(0b101, quorum.voting());
}

TEST(test_a_socket_should_be_known_by_its_path) {
  Quorum quorum;
  std::vector<ClientConfig> configs(3);
  configs[0].socket_path = "/run/a";
  configs[1].socket_path = "/run/b";
  configs[2].socket_path = "/run/c";
  quorum.connect(configs, {.max_lease = max_lease});
  quorum.all_up("abc");
  configs[1].socket_path = "/run/other";
  quorum.connect(configs, {.max_lease = max_lease});
  quorum.up(0, {.id = 'a'});
  quorum.up(1, {.id = 'x'});  // A stranger, at a path that nobody knew.
  quorum.up(2, {.id = 'c'});
  TEST_ASSERT_EQUAL(0b101, quorum.voting());
}

TEST(test_a_node_that_does_not_tell_its_run_id_should_have_no_vote_and_be_named) {
  for (const bool guarded : {true, false}) {
    Quorum quorum;
    quorum.connect({1, 2, 3}, {.max_lease = max_lease, .restart_guard = guarded});
    quorum.all_up("ab");
    quorum.up(2, {.tells = false});
    TEST_ASSERT_EQUAL(0b011, quorum.voting());
    TEST_ASSERT_EQUAL("node 3 (127.0.0.1:3) does not tell its run id (ACL: +info)", quorum.error());
    TEST_ASSERT_EQUAL(quorum.now + 5s, quorum.roll.introduction_due(2));
  }
}

// ---- Witnesses ---------------------------------------------------------------------------------------------------

TEST(test_what_a_node_says_of_locks_should_count_where_it_is_a_server_of_its_own) {
  Quorum quorum;
  quorum.connect({1, 2, 3, 4, 5});
  quorum.up(0, {.id = 'a'});
  quorum.up(1, {.id = 'b', .uptime = 3});  // It has no vote yet, and says what it knows.
  quorum.up(2, {.id = 'a'});
  quorum.up(3, {.id = 'd', .standing = "-1slave"});
  quorum.up(4, {.tells = false});
  const Status expected[] = {Status::ok, Status::ok, Status::same_machine, Status::read_only, Status::no_quorum};
  for (std::size_t index = 0; index < 5; ++index)
    TEST_ASSERT_EQUAL(expected[index], quorum.roll.witness(index, quorum.now));
  TEST_ASSERT_EQUAL(0b00001, quorum.voting());
  // Where restarts are no matter, a replica is a server like others. One that does not say who it is may be any of them.
  quorum.connect({1, 2, 3, 4, 5}, {.max_lease = max_lease, .restart_guard = false});
  quorum.up(3, {.id = 'd', .standing = "-1slave"});
  quorum.up(4, {.tells = false});
  TEST_ASSERT_EQUAL(Status::ok, quorum.roll.witness(3, quorum.now));
  TEST_ASSERT_EQUAL(Status::no_quorum, quorum.roll.witness(4, quorum.now));
}

// ---- Introductions -----------------------------------------------------------------------------------------------

TEST(test_an_introduction_should_name_the_nodes_whose_votes_it_changes) {
  Quorum quorum;
  quorum.connect({1, 2, 3, 4});
  quorum.up(0, {.id = 'a'});
  TEST_ASSERT_EQUAL(0b0001, quorum.met);
  quorum.up(1, {.id = 'b'});
  TEST_ASSERT_EQUAL(0b0010, quorum.met);
  quorum.up(2, {.id = 'a'});
  TEST_ASSERT_EQUAL(0b0100, quorum.met);
  quorum.up(3, {.id = 'b'});
  TEST_ASSERT_EQUAL(0b1000, quorum.met);
  TEST_ASSERT_EQUAL(0b0011, quorum.voting());
  quorum.again(0, {.id = 'd'});
  TEST_ASSERT_EQUAL(0b0101, quorum.met);
  TEST_ASSERT_EQUAL(0b0110, quorum.voting());  // The new one has taken another's place.
  TEST_ASSERT_TRUE(quorum.roll.excluded(3));
}

TEST(test_of_several_nodes_with_one_server_the_first_that_was_met_should_have_the_vote_and_keep_it) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.up(1, {.id = 'a'});
  quorum.up(0, {.id = 'a'});
  quorum.up(2, {.id = 'a'});
  TEST_ASSERT_EQUAL(0b010, quorum.voting());
  TEST_ASSERT_EQUAL(
      "node 1 (127.0.0.1:1) is the same machine as node 2 (127.0.0.1:2); "
      "node 3 (127.0.0.1:3) is the same machine as node 2 (127.0.0.1:2)",
      quorum.error());
  TEST_ASSERT_EQUAL(Status::same_machine, quorum.roll.status(2, quorum.now));
  quorum.again(1, {.id = 'a'});  // It comes back, and nothing has changed.
  TEST_ASSERT_EQUAL(0b010, quorum.met);
  TEST_ASSERT_EQUAL(0b010, quorum.voting());
  quorum.down(1);  // While it is away, too.
  TEST_ASSERT_EQUAL(0, quorum.voting());
  TEST_ASSERT_EQUAL(Status::same_machine, quorum.roll.verdict(quorum.now));
  quorum.again(0, {.id = 'a'});  // Who is met anew then is the first.
  TEST_ASSERT_EQUAL(0b001, quorum.voting());
  quorum.up(1, {.id = 'a'});
  TEST_ASSERT_EQUAL(0b001, quorum.voting());
}

TEST(test_a_node_that_is_asked_anew_who_it_is_should_be_nobody_until_then) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("ab");
  quorum.up(2, {.id = 'a'});
  quorum.roll.forget(2);
  TEST_ASSERT_FALSE(quorum.roll.excluded(2));
  TEST_ASSERT_FALSE(quorum.roll.introduced(2));
  TEST_ASSERT_EQUAL(Status::not_connected, quorum.roll.status(2, quorum.now));
  TEST_ASSERT_EQUAL("node 3 (127.0.0.1:3) not_connected", quorum.error());
  TEST_ASSERT_EQUAL(0b011, quorum.voting());
}

TEST(test_only_who_is_there_and_may_not_vote_should_be_asked_again_who_it_is) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.wait(7s);
  quorum.up(0, {.id = 'a', .uptime = 3});
  quorum.up(1, {.id = 'b', .standing = "-1slave"});
  quorum.up(2, {.tells = false});
  TEST_ASSERT_EQUAL(Instant::max(), quorum.roll.introduction_due(0));  // Its time comes by itself.
  TEST_ASSERT_EQUAL(start + 12s, quorum.roll.introduction_due(1));
  TEST_ASSERT_EQUAL(start + 12s, quorum.roll.introduction_due(2));
  quorum.down(1);
  TEST_ASSERT_EQUAL(Instant::max(), quorum.roll.introduction_due(1));
}

TEST(test_seconds_should_be_told_up_to_the_vote_and_be_none_from_then_on) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.up(0, {.id = 'a', .uptime = 3});
  const Duration left = longest + 1s - 3s;
  TEST_ASSERT_EQUAL(static_cast<std::uint64_t>(left.count() / 1'000'000'000 + 1),
                    quorum.roll.seconds_until_vote(0, quorum.now));
  quorum.wait(left - 1s);
  TEST_ASSERT_EQUAL(std::uint64_t{2}, quorum.roll.seconds_until_vote(0, quorum.now));
  quorum.wait(1s);
  TEST_ASSERT_EQUAL(std::uint64_t{1}, quorum.roll.seconds_until_vote(0, quorum.now));
  TEST_ASSERT_EQUAL(0, quorum.voting());
  quorum.wait(1ns);
  TEST_ASSERT_EQUAL(std::uint64_t{0}, quorum.roll.seconds_until_vote(0, quorum.now));
  TEST_ASSERT_EQUAL(0b001, quorum.voting());
}

// ---- What is not kept --------------------------------------------------------------------------------------------

TEST(test_a_quorum_that_is_connected_anew_should_have_met_nobody) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("aab");
  TEST_ASSERT_EQUAL(Status::same_machine, quorum.roll.verdict(quorum.now));
  quorum.connect({1, 2, 3});
  for (std::size_t index = 0; index < 3; ++index) {
    TEST_ASSERT_FALSE(quorum.roll.introduced(index));
    TEST_ASSERT_FALSE(quorum.roll.excluded(index));
    TEST_ASSERT_EQUAL(Status::not_connected, quorum.roll.status(index, quorum.now));
  }
  TEST_ASSERT_EQUAL(Status::no_quorum, quorum.roll.verdict(quorum.now));
}

// What was known of a place goes to the next connect, and not to the one after it.
TEST(test_a_place_that_was_left_out_once_should_be_a_strangers) {
  Quorum quorum;
  quorum.connect({1, 2, 3, 4, 5});
  quorum.all_up("abcde");
  quorum.connect({1, 2, 3, 4});
  quorum.all_up("abcd");
  quorum.connect({1, 2, 3, 4});
  quorum.all_up("abcd");
  quorum.connect({5, 2, 3, 4});
  quorum.all_up("ebcd");
  TEST_ASSERT_EQUAL(0b1110, quorum.voting());
}

// ---- What came of it ---------------------------------------------------------------------------------------------

TEST(test_what_nodes_have_said_should_be_told_of_those_that_are_there_but_for_what_is_let_go_of) {
  Quorum quorum;
  quorum.connect({1, 2, 3, 4});
  quorum.all_up("abc");
  holdfast::testing::Council council(4);
  council.votes[0].status = Status::out_of_memory;
  council.votes[1].status = Status::outcome_unknown;
  council.votes[2].status = Status::ok;
  council.votes[3].status = Status::lock_busy;
  quorum.roll.note(*council.machine);
  TEST_ASSERT_EQUAL(Status::out_of_memory, quorum.roll.status(0, quorum.now));
  TEST_ASSERT_EQUAL(Status::ok, quorum.roll.status(1, quorum.now));
  TEST_ASSERT_EQUAL(Status::ok, quorum.roll.status(2, quorum.now));
  TEST_ASSERT_EQUAL(Status::not_connected, quorum.roll.status(3, quorum.now));
  TEST_ASSERT_EQUAL("node 1 (127.0.0.1:1) out_of_memory; node 4 (127.0.0.1:4) not_connected", quorum.error());
  quorum.again(0, {.id = 'a'});  // On another connection that is over.
  TEST_ASSERT_EQUAL(Status::ok, quorum.roll.status(0, quorum.now));
}

TEST(test_why_somebody_is_no_voter_should_be_said) {
  Cluster cluster;
  cluster.configure({.hosts = "10.0.0.1", .name = "k"});
  ClientConfig config;
  config.topology = &cluster;
  TEST_ASSERT_TRUE(std::string(validate_voter(config).reason).find("cluster") != std::string::npos);
  config = ClientConfig();
  config.acks = 1;
  TEST_ASSERT_TRUE(std::string(validate_voter(config).reason).find("replicas") != std::string::npos);
  config.acks = 0;
  config.connect_timeout = 0s;
  TEST_ASSERT_EQUAL(std::string("connect_timeout"), std::string(validate_voter(config).field));
}

TEST(test_a_quorum_of_one_node_should_be_connected_and_told_by_it) {
  Quorum quorum;
  quorum.connect(std::vector<std::uint16_t>{1});
  TEST_ASSERT_FALSE(quorum.roll.connected());
  quorum.up(0, {.id = 'a'});
  TEST_ASSERT_TRUE(quorum.roll.connected());
  TEST_ASSERT_EQUAL(Status::ok, quorum.roll.verdict(quorum.now));
}

TEST(test_the_first_node_should_be_told_like_the_others) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.up(1, {.id = 'a'});
  quorum.up(2, {.id = 'c'});
  quorum.up(0, {.id = 'a'});
  TEST_ASSERT_EQUAL(Status::same_machine, quorum.roll.verdict(quorum.now));
  quorum.again(0, {.id = 'b'});
  quorum.wait(2 * longest);
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  quorum.roll.demote(0b001, quorum.now);
  TEST_ASSERT_EQUAL(0b110, quorum.voting());
}

TEST(test_who_is_away_should_not_be_told_to_be_a_replica_by_what_it_said_before) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  quorum.down(1);
  quorum.roll.demote(0b010, quorum.now);
  quorum.up(1, {.id = 'b'});
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
}

TEST(test_a_server_that_nobody_knows_should_be_another_one_each_time) {
  Quorum quorum;
  quorum.connect({1, 2, 3});
  quorum.up(2, {.tells = false});
  TEST_ASSERT_TRUE(quorum.roll.moved(2));
  quorum.again(2, {.tells = false});
  TEST_ASSERT_TRUE(quorum.roll.moved(2));
  TEST_ASSERT_EQUAL(0U, quorum.roll.server(2));
}

TEST(test_a_connect_should_begin_with_nobody_and_without_a_word_of_the_last_lock) {
  Quorum quorum;
  quorum.connect({1, 2, 3}, {.max_lease = 1s});
  quorum.all_up("abc");
  TEST_ASSERT_EQUAL(Status::invalid_argument, quorum.roll.permit(10s));
  quorum.roll.begin(3, {.max_lease = 1s}, quorum.now);  // Before the connections of before are closed.
  for (std::size_t index = 0; index < 3; ++index) TEST_ASSERT_FALSE(quorum.roll.introduced(index));
  TEST_ASSERT_EQUAL(
      "node 1 (127.0.0.1:1) not_connected; node 2 (127.0.0.1:2) not_connected; node 3 (127.0.0.1:3) not_connected",
      quorum.error());
}

// What stands behind the roll's voters is somebody else's.
TEST(test_a_roll_should_look_at_its_own_voters_alone) {
  Quorum quorum(3);
  Quorum other;
  other.connect({1, 2, 3, 4});
  other.all_up("zyxw");
  quorum.connect({1, 2, 3});
  quorum.all_up("abc");
  VoterRoll::Voter& next = quorum.voters[3];
  next = other.voters[0];  // At the first one's address, another server; and it is there.
  next.before = next.place;
  TEST_ASSERT_EQUAL(0b111, quorum.voting());
  TEST_ASSERT_TRUE(quorum.roll.connected());
  quorum.roll.demote(0b1000, quorum.now);
  TEST_ASSERT_FALSE(next.place.guard.replica());
  quorum.connect({1, 2, 4});
  TEST_ASSERT_TRUE(next.introduced);
  quorum.up(0, {.id = 'a'});
  TEST_ASSERT_EQUAL(0b001, quorum.voting());
  quorum.up(1, {.id = 'z'});  // Nobody here has met it.
  TEST_ASSERT_FALSE(quorum.roll.excluded(1));
  next.before = other.voters[2].place;
  quorum.up(2, {.id = 'x'});  // Nor this one, which comes to a new address.
  TEST_ASSERT_EQUAL(0b001, quorum.voting());
}

TEST(test_a_lock_of_fewer_nodes_should_tell_nothing_of_the_others) {
  Quorum quorum;
  quorum.connect({1, 2, 3, 4});
  quorum.all_up("abcd");
  holdfast::testing::Council council(4);
  council.votes[3].status = Status::lock_busy;
  const QuorumMachine smaller(mutex_kind, council.places.data(), 3);
  quorum.roll.note(smaller);
  TEST_ASSERT_EQUAL(Status::ok, quorum.roll.status(3, quorum.now));
}
