// SPDX-License-Identifier: MIT
//
// The holdfast command over TLS.
#include "command_fixture.hpp"
#include "tls_server.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

std::vector<std::string> trusting(const TlsServer& server, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin() + 1, {"--tls-ca", server.authority().file()});
  return arguments;
}

}  // namespace

TEST(test_run_info_and_release_should_work_over_tls) {
  const TlsServer server;
  const Outcome ran = outcome_of(server.url(), trusting(server, {"run", "lock", "--", "true"}));
  TEST_ASSERT_EQUAL(0, ran.code);
  server.plain().command("SET lock somebody PX 20000");
  const Outcome told = outcome_of(server.url(), trusting(server, {"info", "lock"}));
  TEST_ASSERT_EQUAL(0, told.code);
  TEST_ASSERT_TRUE(contains(told.text, "somebody"));
  TEST_ASSERT_EQUAL(0, outcome_of(server.url(), trusting(server, {"release", "--force", "lock"})).code);
  TEST_ASSERT_EQUAL("0", server.plain().command("EXISTS lock"));
}

// Its looks, and what the server says by itself over a connection of its own.
TEST(test_watch_should_look_and_hear_over_tls) {
  const TlsServer server;
  server.plain().command("CONFIG SET notify-keyspace-events KA");
  Running watch(server.url(), trusting(server, {"watch", "lock"}));
  TEST_ASSERT_TRUE(contains(watch.line(), " free lock"));
  TEST_ASSERT_TRUE(
      eventually([&] { return contains(server.plain().command("PUBSUB CHANNELS"), "__keyspace@0__:lock"); }));
  server.plain().command("SET lock somebody PX 20000");
  TEST_ASSERT_TRUE(contains(watch.line(), " acquired lock"));
  server.plain().command("SET lock another PX 20000");
  TEST_ASSERT_TRUE(contains(watch.line(), " stolen lock: mutex another wrote over somebody"));
  watch.signal(SIGTERM);
  TEST_ASSERT_EQUAL(0, watch.wait());
}

TEST(test_a_server_that_is_not_trusted_should_be_named_with_the_reason) {
  const TlsServer server;
  const Outcome told = outcome_of(server.url(), {"run", "-w", "5", "lock", "--", "true"});
  TEST_ASSERT_EQUAL(exit_no_permission, told.code);
  TEST_ASSERT_TRUE(contains(told.text, "the server's certificate: "));
  TEST_ASSERT_EQUAL(0, outcome_of(server.url(), {"run", "--tls-insecure", "lock", "--", "true"}).code);
}

TEST(test_options_of_tls_should_be_refused_where_they_count_for_nothing) {
  const TlsServer server;
  const Outcome plain = outcome_of(server.plain().unix_url(), trusting(server, {"run", "lock", "--", "true"}));
  TEST_ASSERT_EQUAL(exit_usage, plain.code);
  TEST_ASSERT_TRUE(contains(plain.text, "--tls-ca is of rediss://, and no URL begins so"));
  const Outcome missing = outcome_of(server.url(), {"info", "--tls-ca", "/nowhere/ca.pem", "lock"});
  TEST_ASSERT_EQUAL(exit_usage, missing.code);
  TEST_ASSERT_TRUE(contains(missing.text, "ca_file"));
}
