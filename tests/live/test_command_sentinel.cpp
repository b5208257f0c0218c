// SPDX-License-Identifier: MIT
//
// The holdfast command by sentinels.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command_fixture.hpp"
#include "sentinel_setup.hpp"

static void setUp() {}
static void tearDown() {}

TEST(test_run_info_and_release_should_follow_the_master) {
  SentinelSetup setup(server_binaries().at(0));
  TEST_ASSERT_EQUAL(0, outcome_of(setup.url(), {"run", "lock", "--", "true"}).code);
  RedisServer& after = setup.fail_over();
  TEST_ASSERT_EQUAL(0, outcome_of(setup.url(), {"run", "--kind", "fenced", "lock", "--", "true"}).code);
  after.command("SET lock somebody PX 20000");
  const Outcome told = outcome_of(setup.url(), {"info", "lock"});
  TEST_ASSERT_EQUAL(0, told.code);
  TEST_ASSERT_TRUE(contains(told.text, "somebody"));
  TEST_ASSERT_EQUAL(0, outcome_of(setup.url(), {"release", "--force", "lock"}).code);
  TEST_ASSERT_EQUAL("0", after.command("EXISTS lock"));

  const Outcome unknown = outcome_of("redis-sentinel://" + setup.hosts() + "/nobody", {"info", "lock"});
  TEST_ASSERT_EQUAL(exit_no_server, unknown.code);
  TEST_ASSERT_TRUE(contains(unknown.text, "no connection to nobody@127.0.0.1:"));
  TEST_ASSERT_TRUE(contains(unknown.text, "it does not know the service nobody"));
  TEST_ASSERT_TRUE(contains(unknown.text, "SENTINEL MASTERS"));
}

TEST(test_a_command_under_a_lock_should_go_on_over_a_fail_over) {
  SentinelSetup setup(server_binaries().at(0));
  // The old master is told to be a replica only ten seconds after the new one is a master; until then holds are renewed there.
  const std::string over = setup.servers[0]->socket_path() + ".over";
  TEST_ASSERT_EQUAL(0, ::mkfifo(over.c_str(), 0600));
  Running command(setup.url(), {"run", "-l", "30", "lock", "--", "cat", over}, {});
  await([&] { return setup.servers[0]->command("EXISTS lock") == "1"; });
  setup.await_replicas();
  RedisServer& after = setup.fail_over();
  const auto remaining = [&] { return std::atol(after.command("PTTL lock").c_str()); };
  await([&] { return remaining() > 25000; });  // Renewed there.
  ::close(::open(over.c_str(), O_WRONLY));     // The command reads its end.
  TEST_ASSERT_EQUAL(0, command.wait());
  TEST_ASSERT_EQUAL("0", after.command("EXISTS lock"));
}

TEST(test_watch_should_follow_the_master) {
  SentinelSetup setup(server_binaries().at(0));
  Running watch(setup.url(), {"watch", "lock"});
  TEST_ASSERT_TRUE(contains(watch.line(), " free lock"));
  RedisServer& after = setup.fail_over();
  // Only there.
  after.command("SET lock somebody PX 600000");
  std::string line;
  TEST_ASSERT_TRUE(
      eventually([&] { return contains(line = watch.line(), " acquired lock") || contains(line, "(no line)"); }));
  TEST_ASSERT_TRUE(contains(line, ": mutex somebody"));
}

TEST(test_what_is_wrong_with_a_url_should_be_said_without_its_passwords) {
  const Outcome told =
      outcome_of("redis-sentinel://:hidden1@127.0.0.1/m?sentinel_password=hidden2&wrong=1", {"info", "lock"});
  TEST_ASSERT_EQUAL(exit_usage, told.code);
  TEST_ASSERT_TRUE(contains(told.text, "sentinel_user=USER and sentinel_password=PASSWORD"));
  TEST_ASSERT_FALSE(contains(told.text, "hidden"));
}

TEST(test_run_should_count_replicas) {
  SentinelSetup setup(server_binaries().at(0));
  const std::string replica = setup.servers[1]->socket_path();
  TEST_ASSERT_EQUAL(0, outcome_of(setup.url(), {"run", "--acks", "2", "lock", "--", "true"}).code);
  setup.servers[2]->pause();
  const Outcome few =
      outcome_of(setup.url(), {"run", "-n", "--acks", "2", "--acks-timeout", "0.2", "lock", "--", "true"});
  TEST_ASSERT_EQUAL(exit_no_server, few.code);
  TEST_ASSERT_TRUE(contains(few.text, "Too few replicas"));
  TEST_ASSERT_TRUE(comes([&] { return setup.servers[0]->command("EXISTS lock") == "0"; }));
  const Outcome enough = outcome_of(setup.url(), {"acquire", "-l", "30", "--acks", "1", "lock"});
  TEST_ASSERT_EQUAL(0, enough.code);
  TEST_ASSERT_EQUAL("1", RawConnection(replica).command("EXISTS lock"));
  setup.servers[2]->resume();
}

TEST(test_run_should_refuse_acks_that_cannot_be) {
  for (const auto& [words, text] :
       {std::pair<Words, std::string>{{"--acks", "0"}, "from 1 to 15"},
        {{"--acks", "16"}, "from 1 to 15"},
        {{"--acks", "x"}, "from 1 to 15"},
        {{"--acks", "-1"}, "from 1 to 15"},
        {{"--acks-timeout", "1"}, "there is none"},
        {{"--acks", "1", "--acks-timeout", "0"}, "a quarter of the lease"},
        {{"--acks", "1", "-l", "2", "--acks-timeout", "0.6"}, "a quarter of the lease"},
        {{"--acks", "1", "--url", "redis://a", "--url", "redis://b"}, "counts its servers"}}) {
    Words run = {"run"};
    run.insert(run.end(), words.begin(), words.end());
    run.insert(run.end(), {"lock", "--", "true"});
    const Outcome told = outcome_of("redis://127.0.0.1:1", run);
    TEST_ASSERT_EQUAL(exit_usage, told.code);
    TEST_ASSERT_TRUE(contains(told.text, text));
  }
}
