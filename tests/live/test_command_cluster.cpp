// SPDX-License-Identifier: MIT
//
// The holdfast command in a cluster.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster_setup.hpp"
#include "command_fixture.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

// Of one node, which leads to all others.
std::string url_of(const ClusterSetup& cluster) { return "redis-cluster://" + cluster.host(4); }

}  // namespace

TEST(test_every_subcommand_should_find_the_server_of_the_name) {
  const ClusterSetup cluster(server_binaries().at(0));
  const std::string url = url_of(cluster);
  for (const std::string name : {"a", "b", "{tag}c", "d"}) {
    TEST_MESSAGE(name);
    RedisServer& master = cluster.master(name);
    TEST_ASSERT_EQUAL(0, outcome_of(url, {"run", "--kind", "fenced", name, "--", "true"}).code);
    const Outcome token = outcome_of(url, {"acquire", name, "-l", "60"});
    TEST_ASSERT_EQUAL(0, token.code);
    TEST_ASSERT_EQUAL("1", master.command("EXISTS " + name));
    TEST_ASSERT_TRUE(contains(outcome_of(url, {"info", name}).text, "state: held"));
    TEST_ASSERT_EQUAL(exit_not_acquired, outcome_of(url, {"run", "-n", name, "--", "true"}).code);
    TEST_ASSERT_EQUAL(0, outcome_of(url, {"release", "--force", name}).code);
    TEST_ASSERT_EQUAL("0", master.command("EXISTS " + name));
  }
  TEST_ASSERT_FALSE(contains(outcome_of(url, {"doctor", "--seconds", "1"}).text, "no connection"));
}

TEST(test_a_command_under_a_lock_should_go_on_while_its_slot_is_moved) {
  const ClusterSetup cluster(server_binaries().at(0));
  const std::size_t from = cluster.master_of("lock");
  const std::size_t to = cluster.other_than(from);
  const std::string over = cluster.servers[0]->socket_path() + ".over";
  TEST_ASSERT_EQUAL(0, ::mkfifo(over.c_str(), 0600));
  Running command(url_of(cluster), {"run", "-l", "6", "lock", "--", "cat", over}, {});
  TEST_ASSERT_TRUE(
      comes([&] { return cluster.servers[from]->command("EXISTS lock") == "1"; }, std::chrono::seconds(20)));
  cluster.move_slot("lock", to);
  const std::string token = cluster.servers[to]->command("GET lock");
  cluster.servers[to]->command("PEXPIRE lock 4000");
  const auto remaining = [&] { return std::atol(cluster.servers[to]->command("PTTL lock").c_str()); };
  TEST_ASSERT_TRUE(comes([&] { return remaining() > 4500; }, std::chrono::seconds(20)));  // Renewed there.
  ::close(::open(over.c_str(), O_WRONLY));                                                // The command reads its end.
  TEST_ASSERT_EQUAL(0, command.wait());
  TEST_ASSERT_EQUAL("0", cluster.servers[to]->command("EXISTS lock"));
}

TEST(test_what_is_wrong_with_a_cluster_should_be_said) {
  const ClusterSetup cluster(server_binaries().at(0));
  const std::size_t master = cluster.master_of("lock");
  const Outcome alone = outcome_of("redis://" + cluster.host((master + 1) % ClusterSetup::masters), {"info", "lock"});
  TEST_ASSERT_EQUAL(exit_no_server, alone.code);
  TEST_ASSERT_TRUE(contains(alone.text, "its URL is redis-cluster://HOST:PORT"));
  const Outcome foreign = outcome_of(url_of(cluster) + "/elsewhere", {"run", "-n", "lock", "--", "true"});
  TEST_ASSERT_EQUAL(exit_no_server, foreign.code);
  TEST_ASSERT_TRUE(contains(foreign.text, "Use one hash tag"));
  const RedisServer plain(server_binaries().at(0));
  const Outcome none = outcome_of("redis-cluster://127.0.0.1:" + std::to_string(plain.port()), {"info", "lock"});
  TEST_ASSERT_EQUAL(76, none.code);
  TEST_ASSERT_TRUE(contains(none.text, "it is no node of a cluster"));
  const Outcome several =
      outcome_of("", {"run", "--url", url_of(cluster), "--url", "redis://127.0.0.1:1", "lock", "--", "true"});
  TEST_ASSERT_EQUAL(exit_usage, several.code);
  TEST_ASSERT_TRUE(contains(several.text, "a quorum is of independent servers"));
  const Outcome hidden = outcome_of("redis-cluster://:hidden@127.0.0.1/a?b", {"info", "lock"});
  TEST_ASSERT_EQUAL(exit_usage, hidden.code);
  TEST_ASSERT_FALSE(contains(hidden.text, "hidden"));
}
