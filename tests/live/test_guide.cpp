// SPDX-License-Identifier: MIT
//
// The programs that the guide (proto/guide) quotes, on real servers. HOLDFAST_EXAMPLES says in which folder the examples are.
#include <cstdlib>
#include <string>

#include "command_fixture.hpp"
#include "live_fixture.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

void use(const std::string& program) {
  const char* const folder = std::getenv("HOLDFAST_EXAMPLES");
  const std::string path = std::string(folder == nullptr ? "." : folder) + "/guide/guide_" + program;
  ::setenv("HOLDFAST_COMMAND", path.c_str(), 1);
}

// One server, and three of which all have just started: the lock waits until they may vote.
void assert_alone_and_by_majority(RedisServer& server) {
  RedisServer second(server.binary());
  RedisServer third(server.binary());
  TEST_ASSERT_EQUAL("work\nok\n", output_of("", {server.unix_url(), second.unix_url(), third.unix_url()}, 0));
  TEST_ASSERT_EQUAL("0", second.command("EXISTS orders/42"));
  const std::string alone = output_of("", {server.unix_url()}, 0);
  TEST_ASSERT_TRUE(contains(alone, "work\n") && contains(alone, "ok\n"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS orders/42"));
}

}  // namespace

TEST_ON_SERVER(test_who_comes_from_redis_plus_plus_should_get_the_lock_alone_and_by_majority) {
  use("from_redis_plus_plus");
  assert_alone_and_by_majority(server);
  (void)server.command("SET orders/42 another");
  TEST_ASSERT_EQUAL("lock_busy\n", output_of("", {server.unix_url()}, 1));
}

TEST_ON_SERVER(test_who_comes_from_redsync_should_get_the_lock_alone_and_by_majority) {
  use("from_redsync");
  assert_alone_and_by_majority(server);
}

TEST_ON_SERVER(test_who_comes_from_redisson_should_get_each_of_its_locks) {
  use("from_redisson");
  const std::string text = output_of("", {server.unix_url()}, 0);
  TEST_ASSERT_EQUAL("work\nwork\nthe fence is above zero: yes\nwork\nwork\nwork\nwork\nok\n", text);
  // A semaphore's number and a counter of fences stay.
  TEST_ASSERT_EQUAL("2", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL("3", server.command("GET printers"));
}
