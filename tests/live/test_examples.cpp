// SPDX-License-Identifier: MIT
//
// The examples that drive the core without the client, on a real server. HOLDFAST_EXAMPLES says in which folder they are.
#include <cstdlib>
#include <fstream>
#include <string>

#include "cluster_setup.hpp"
#include "command_fixture.hpp"
#include "live_fixture.hpp"
#include "sentinel_setup.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

std::string folder() {
  const char* const path = std::getenv("HOLDFAST_EXAMPLES");
  return path == nullptr ? "." : path;
}

// The program that the fixture runs.
void use(const std::string& example) { ::setenv("HOLDFAST_COMMAND", (folder() + "/example_" + example).c_str(), 1); }
void use_c(const std::string& example) {
  ::setenv("HOLDFAST_COMMAND", (folder() + "/c/example_c_" + example).c_str(), 1);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// How often the reentrant lock of poll_loop is held.
std::string nested(const RedisServer& server) {
  const std::string text = server.command("HVALS key/nested");
  return text.empty() ? "0" : text;
}

Words by_tcp(const RedisServer& server) { return {"127.0.0.1", std::to_string(server.port()), "key"}; }

// What it said, if it ends with `code`.
std::string end(Running& program, int code) {
  const std::string text = program.rest();
  const int ended = program.wait();
  TEST_MESSAGE("stdout: " << text << "stderr: " << program.errors());
  TEST_ASSERT_EQUAL(code, ended);
  return text;
}

// A server that says nothing for a while: the program tells the end of its hold in time, and not when the server goes on.
void assert_end_told_under_silence(RedisServer& server, Running& program) {
  const Instant begin = Client::now();
  server.pause();
  std::string line;
  while (!contains(line, "lost") && !contains(line, "unclear")) {
    line = program.line();
    if (contains(line, "(no line)")) break;
  }
  const Duration taken = Client::now() - begin;
  server.resume();
  TEST_MESSAGE("last line: " << line);
  TEST_ASSERT_TRUE(taken < 10s);
  (void)end(program, exit_lost);
}

void assert_no_client_linked(const std::string& example) {
  std::ifstream map(folder() + "/" + example + ".map");
  bool core = false;
  for (std::string line; std::getline(map, line);) {
    core = core || contains(line, "core_session.cpp.o");
    TEST_MESSAGE(line);
    TEST_ASSERT_FALSE(contains(line, "libholdfast.a") && contains(line, "posix_"));
  }
  TEST_ASSERT_TRUE(core);
}

}  // namespace

TEST(test_drivers_of_their_own_should_link_nothing_of_the_client) {
  assert_no_client_linked("poll_loop");
  assert_no_client_linked("freertos_transport");
}

// ---- minimal -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_minimal_should_hold_and_release) {
  use("minimal");
  TEST_ASSERT_TRUE(contains(output_of("", {server.unix_url()}, 0), "acquire and release: ok"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS holdfast/example"));
}

// ---- stats -------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_stats_should_print_what_its_client_has_done) {
  use("stats");
  const std::string text = output_of("", {server.unix_url()}, 0);
  for (const char* const line : {"holdfast_grants_total 3\n", "holdfast_renewals_total 3\n",
                                 "holdfast_acquire_seconds_count 3\n", "holdfast_losses_total 0\n", "# EOF\n"})
    TEST_ASSERT_TRUE(contains(text, line));
}

// ---- read_write --------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_read_write_should_read_write_and_read_again) {
  use("read_write");
  TEST_ASSERT_TRUE(contains(output_of("", {server.unix_url()}, 0), "read what was changed, beside others: ok"));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// ---- fair --------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_fair_should_give_the_lock_to_who_has_waited) {
  use("fair");
  const std::string text = output_of("", {server.unix_url()}, 0);
  TEST_ASSERT_TRUE(contains(text, "the first, at once again: lock_busy\n"));
  TEST_ASSERT_TRUE(contains(text, "the second: ok\n"));
}

// ---- semaphore ---------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_semaphore_should_lend_two_printers_to_three) {
  use("semaphore");
  const std::string text = output_of("", {server.unix_url()}, 0);
  TEST_ASSERT_TRUE(contains(text, "the third: lock_busy\nthe third, after a release: ok\nok: "));
  TEST_ASSERT_EQUAL("2", server.command("GET holdfast/printers"));
  TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
}

// The recipes fail as the pictures say, and holdfast does not: four of each.
TEST_ON_SERVER(test_old_recipes_should_fail_where_holdfast_does_not) {
  use("old_recipes");
  const std::string text = output_of("", {server.socket_path()}, 0);
  TEST_ASSERT_EQUAL(std::size_t{8}, count_of(text, "     => "));
  TEST_ASSERT_EQUAL(std::size_t{0}, count_of(text, "NOT SEEN"));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_TRUE(contains(output_of("", {}, 64), "usage: "));
  TEST_ASSERT_TRUE(contains(output_of("", {"/nonexistent/socket"}, 1), "no server answers"));
}

// ---- in C --------------------------------------------------------------------------------------------------------
// Left out by the build where they are not built.

TEST_ON_SERVER(test_minimal_in_c_should_hold_and_release) {
  use_c("minimal");
  TEST_ASSERT_TRUE(contains(output_of("", {server.unix_url()}, 0), "acquire and release: ok"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS holdfast/example"));
  TEST_ASSERT_TRUE(contains(output_of("", {"unix:///nowhere"}, 1), "connect: connect_failed"));
  TEST_ASSERT_TRUE(contains(output_of("", {"http://127.0.0.1"}, 1), "connect: invalid_argument"));
}

TEST_ON_SERVER(test_watchdog_in_c_should_hold_with_a_fence_and_release) {
  use_c("watchdog");
  TEST_ASSERT_TRUE(contains(output_of("", {server.unix_url(), "0.1"}, 0), "fence: yes\nlost: no\nrelease: ok\n"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS holdfast/kept"));
}

TEST_ON_SERVER(test_redlock_in_c_should_be_held_by_three) {
  use_c("redlock");
  RedisServer second(server.binary(), {});
  RedisServer third(server.binary(), {});
  const std::string text =
      output_of("", {"--no-restart-guard", server.unix_url(), second.unix_url(), third.unix_url()}, 0);
  TEST_ASSERT_TRUE(contains(text, "acquire: ok\nheld for: more than 5 s\nrelease: ok\n"));
  const std::string young = output_of("", {server.unix_url(), second.unix_url(), third.unix_url()}, 1);
  TEST_ASSERT_TRUE(contains(young, "connect: no_quorum\n") && contains(young, "was restarted"));
  const std::string wrong = output_of("", {server.unix_url(), "redis://h:0", third.unix_url()}, 1);
  TEST_ASSERT_TRUE(contains(wrong, "connect: invalid_argument\n") && contains(wrong, "URL 2: "));
}

TEST_ON_SERVER(test_stats_in_c_should_print_what_was_done) {
  use_c("stats");
  const std::string text = output_of("", {server.unix_url()}, 0);
  TEST_ASSERT_TRUE(contains(text, "\nholdfast_grants_total{job=\"an example in C\"} 3\n"));
  TEST_ASSERT_TRUE(contains(text, "\nholdfast_renewals_total{job=\"an example in C\"} 3\n"));
  TEST_ASSERT_EQUAL("# EOF\n", text.substr(text.size() - 6));
  TEST_ASSERT_TRUE(
      contains(output_of("", {"unix:///nowhere"}, 1), "holdfast_grants_total{job=\"an example in C\"} 0\n"));
}

TEST(test_topology_in_c_should_hold_where_sentinels_and_a_cluster_say) {
  use_c("topology");
  {
    const SentinelSetup setup(server_binaries().front());
    const std::string text = output_of("", {setup.url(), "2"}, 0);
    TEST_ASSERT_TRUE(contains(text, "acquire: ok\nheld: yes\nrelease: ok\n"));
    const std::string wrong = output_of("", {"redis-sentinel://" + setup.hosts() + "/nobody"}, 1);
    TEST_ASSERT_TRUE(contains(wrong, "connect: unknown_service\n") && contains(wrong, "nobody"));
    const std::string none = output_of("", {"redis-sentinel://" + setup.hosts()}, 1);
    TEST_ASSERT_TRUE(contains(none, "connect: invalid_argument\nurl: "));
  }
  const ClusterSetup setup(server_binaries().front());
  const std::string text = output_of("", {"redis-cluster://" + setup.hosts()}, 0);
  TEST_ASSERT_TRUE(contains(text, "acquire: ok\nheld: yes\nrelease: ok\n"));
}

TEST(test_python_should_hold_a_lock_where_sentinels_say) {
  const SentinelSetup setup(server_binaries().front());
  const std::string program = std::string(std::getenv("HOLDFAST_SOURCE_ROOT")) + "/examples/c/from_python.py";
  ::setenv("HOLDFAST_COMMAND", "python3", 1);
  const std::string text = output_of("", {program, folder() + "/c/libholdfast-c.so", setup.url()}, 0);
  TEST_ASSERT_TRUE(contains(text, "acquire: ok\nheld: True fence: True\na rival: lock_busy\nrelease: ok\n"));
}

TEST_ON_SERVER(test_python_should_hold_a_lock) {
  const std::string program = std::string(std::getenv("HOLDFAST_SOURCE_ROOT")) + "/examples/c/from_python.py";
  ::setenv("HOLDFAST_COMMAND", "python3", 1);
  const std::string text = output_of("", {program, folder() + "/c/libholdfast-c.so", server.unix_url()}, 0);
  TEST_ASSERT_TRUE(contains(text, "acquire: ok\nheld: True fence: True\na rival: lock_busy\nrelease: ok\n"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS holdfast/python"));
}

// ---- poll_loop ---------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_poll_loop_should_keep_three_locks_and_refuse_a_second_one) {
  use("poll_loop");
  Running first("", by_tcp(server));
  TEST_ASSERT_TRUE(eventually([&] { return nested(server) == "2"; }));
  const std::string refused = output_of("", {server.socket_path(), "key"}, exit_not_acquired);
  TEST_ASSERT_EQUAL(3u, count_of(refused, "denied: lock_busy"));
  TEST_ASSERT_EQUAL("3", server.command("EXISTS key key/second key/nested"));
  const std::string text = end(first, 0);
  TEST_ASSERT_EQUAL(18u, count_of(text, "step "));
  for (const char* part : {"key: renewed", "key/second: renewed", "key/nested: renewed",
                           "key/nested: granted, held 2 times", "key/nested: released: ok, held 1 times",
                           "key/nested: released: ok, held 0 times", "key: released: ok", "key/second: released: ok"})
    TEST_ASSERT_TRUE(contains(text, part));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS key key/second key/nested"));
}

TEST_ON_SERVER(test_poll_loop_should_keep_its_locks_over_a_lost_connection) {
  use("poll_loop");
  Running program("", by_tcp(server));
  TEST_ASSERT_TRUE(eventually([&] { return nested(server) == "2"; }));
  const std::string key = server.command("GET key");
  (void)server.command("CLIENT KILL TYPE normal");
  TEST_ASSERT_EQUAL(key, server.command("GET key"));
  const std::string text = end(program, 0);
  TEST_ASSERT_EQUAL(1u, count_of(text, "connection lost: transport_closed"));
  TEST_ASSERT_EQUAL(2u, count_of(text, "s  connected\n"));
  TEST_ASSERT_TRUE(contains(text, "key: released: ok"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS key key/second key/nested"));
}

TEST_ON_SERVER(test_poll_loop_should_tell_a_lock_that_was_taken_away) {
  use("poll_loop");
  Running program("", by_tcp(server));
  TEST_ASSERT_TRUE(eventually([&] { return nested(server) == "2"; }));
  (void)server.command("DEL key");
  const std::string text = end(program, exit_lost);
  TEST_ASSERT_TRUE(contains(text, "key: lost"));
  TEST_ASSERT_TRUE(contains(text, "key/second: released: ok"));
}

TEST_ON_SERVER(test_poll_loop_should_give_up_without_a_server) {
  use("poll_loop");
  Running program("", by_tcp(server));
  TEST_ASSERT_TRUE(eventually([&] { return nested(server) == "2"; }));
  server.stop();
  TEST_ASSERT_TRUE(contains(end(program, exit_no_server), "what is held ends by its lease"));
  TEST_ASSERT_TRUE(contains(output_of("", by_tcp(server), exit_no_server), "Connection refused"));
}

TEST_ON_SERVER(test_poll_loop_should_tell_the_end_of_its_holds_under_silence) {
  use("poll_loop");
  Running program("", by_tcp(server));
  TEST_ASSERT_TRUE(eventually([&] { return nested(server) == "2"; }));
  assert_end_told_under_silence(server, program);
}

TEST(test_poll_loop_should_explain_its_arguments) {
  use("poll_loop");
  TEST_ASSERT_TRUE(contains(output_of("", {"--help"}, 0), "usage: poll_loop HOST PORT KEY"));
  TEST_ASSERT_EQUAL("", output_of("", {}, exit_usage));
  TEST_ASSERT_EQUAL("", output_of("", {"/nonexistent/socket", std::string(key_size_max, 'k')}, exit_usage));
  TEST_ASSERT_EQUAL("", output_of("", {std::string(200, '/'), "key"}, exit_no_server));
}

// ---- freertos_transport ------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_freertos_transport_should_hold_across_the_overflow_of_the_tick) {
  use("freertos_transport");
  Running first("", by_tcp(server));
  TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS key") == "1"; }));
  const std::string refused = output_of("", by_tcp(server), exit_not_acquired);
  TEST_ASSERT_TRUE(contains(refused, "denied: lock_busy"));
  const std::string text = end(first, 0);
  const std::size_t overflow = text.find("the tick counter has started again at 0");
  TEST_ASSERT_TRUE(text.find("granted") < overflow);
  TEST_ASSERT_TRUE(overflow < text.find("released: ok"));
  TEST_ASSERT_TRUE(contains(text, "renewed"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS key"));
}

TEST_ON_SERVER(test_freertos_transport_should_keep_its_lock_over_a_lost_connection) {
  use("freertos_transport");
  Running program("", by_tcp(server));
  TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS key") == "1"; }));
  (void)server.command("CLIENT KILL TYPE normal");
  const std::string text = end(program, 0);
  TEST_ASSERT_TRUE(contains(text, "no connection: transport_closed"));
  TEST_ASSERT_TRUE(contains(text, "released: ok"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS key"));
}

TEST_ON_SERVER(test_freertos_transport_should_tell_a_lost_lock_and_a_lost_server) {
  use("freertos_transport");
  Running program("", by_tcp(server));
  TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS key") == "1"; }));
  (void)server.command("DEL key");
  TEST_ASSERT_TRUE(contains(end(program, exit_lost), "lost"));
  server.stop();
  TEST_ASSERT_TRUE(contains(output_of("", by_tcp(server), exit_no_server), "outcome: not_connected"));
}

TEST_ON_SERVER(test_freertos_transport_should_tell_the_end_of_its_hold_under_silence) {
  use("freertos_transport");
  Running program("", by_tcp(server));
  TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS key") == "1"; }));
  assert_end_told_under_silence(server, program);
}
