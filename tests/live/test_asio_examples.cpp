// SPDX-License-Identifier: MIT
//
// The examples on an Asio loop, on a real server. HOLDFAST_EXAMPLES says in which folder they are.
#include <cstdlib>
#include <string>

#include "command_fixture.hpp"
#include "live_fixture.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// The program that the fixture runs.
void use(const std::string& example) {
  const char* const folder = std::getenv("HOLDFAST_EXAMPLES");
  ::setenv("HOLDFAST_COMMAND", (std::string(folder == nullptr ? "." : folder) + "/example_" + example).c_str(), 1);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What it said, if it ends with `code`.
std::string end(Running& program, int code) {
  const std::string text = program.rest();
  const int ended = program.wait();
  TEST_MESSAGE("stdout: " << text << "stderr: " << program.errors());
  TEST_ASSERT_EQUAL(code, ended);
  return text;
}

// Under this name one job begins behind the end of another. How many did.
std::size_t jobs_one_by_one(const std::string& text, const std::string& name) {
  std::size_t jobs = 0;
  bool working = false;
  for (std::size_t at = text.find(name + ": job "); at != std::string::npos; at = text.find(name + ": job ", at + 1)) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    const bool begins = contains(line, "begins");
    TEST_ASSERT_EQUAL(!working, begins);
    TEST_ASSERT_EQUAL(working, contains(line, "ends"));
    working = begins;
    jobs += begins ? 1 : 0;
  }
  TEST_ASSERT_FALSE(working);
  return jobs;
}

// Until a line with this in it. It is said, or the test fails.
void await_line(Running& program, const std::string& part) {
  for (;;) {
    const std::string line = program.line();
    TEST_MESSAGE(line);
    if (contains(line, part)) return;
    TEST_ASSERT_FALSE(contains(line, "(no line)"));
  }
}

}  // namespace

// ---- asio_callbacks ----------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_asio_callbacks_should_do_one_job_after_the_other_while_the_timer_ticks) {
  use("asio_callbacks");
  Running program("", {server.unix_url()});
  const std::string text = end(program, 0);
  TEST_ASSERT_EQUAL(4u, jobs_one_by_one(text, "holdfast/example/order/1"));
  TEST_ASSERT_EQUAL(4u, jobs_one_by_one(text, "holdfast/example/order/2"));
  TEST_ASSERT_TRUE(count_of(text, "tick\n") >= 2);
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_asio_callbacks_should_let_go_of_everything_when_they_are_stopped) {
  use("asio_callbacks");
  Running program("", {server.tcp_url()});
  await_line(program, "begins");
  program.signal(SIGINT);
  const std::string text = end(program, 1);
  TEST_ASSERT_TRUE(contains(text, "stopping"));
  TEST_ASSERT_TRUE(contains(text, "cancelled"));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_asio_callbacks_should_say_why_they_cannot_connect) {
  use("asio_callbacks");
  server.stop();
  Running program("", {server.unix_url()});
  TEST_ASSERT_TRUE(contains(end(program, 1), "connect: connect_failed"));
}

// ---- asio_workers ------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_asio_workers_should_do_every_job_once) {
  use("asio_workers");
  Running program("", {server.unix_url(), "50"});
  const std::string text = end(program, 0);
  for (const char* account : {"1", "2", "3"})
    TEST_ASSERT_EQUAL(4u, jobs_one_by_one(text, std::string("holdfast/example/account/") + account));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_asio_workers_should_break_off_work_that_has_lost_its_lock_and_do_it_again) {
  use("asio_workers");
  Running program("", {server.unix_url(), "1500"});
  await_line(program, "account/1: job 0 begins");
  TEST_ASSERT_EQUAL("1", server.command("DEL holdfast/example/account/1"));
  await_line(program, "job 0 is put back");
  const std::string text = end(program, 0);
  TEST_ASSERT_TRUE(contains(text, "account/1: job 0 ends"));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_asio_workers_should_say_why_they_cannot_connect) {
  use("asio_workers");
  server.stop();
  Running program("", {server.unix_url()});
  TEST_ASSERT_TRUE(contains(end(program, 1), "connect_failed"));
}

// ---- asio_quorum -------------------------------------------------------------------------------------------------

// Its servers have just been started: it waits until they vote.
TEST_ON_SERVER(test_asio_quorum_should_work_while_two_of_three_hold_its_lock) {
  use("asio_quorum");
  RedisServer second(server.binary());
  Running program("", {server.unix_url(), second.tcp_url(), "unix:///nonexistent"});
  const std::string text = end(program, 0);
  TEST_ASSERT_TRUE(contains(text, "not yet connected: no_quorum"));
  TEST_ASSERT_TRUE(contains(text, "held on 2 of 3 servers at least, with fence "));
  TEST_ASSERT_EQUAL(30u, count_of(text, "step "));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS holdfast/example"));
  TEST_ASSERT_EQUAL("0", second.command("EXISTS holdfast/example"));
}

TEST_ON_SERVER(test_asio_quorum_should_break_its_work_off_when_two_of_three_have_lost_its_lock) {
  use("asio_quorum");
  RedisServer second(server.binary());
  RedisServer third(server.binary());
  Running program("", {server.unix_url(), second.tcp_url(), third.unix_url()});
  await_line(program, "step 1 of");
  for (RedisServer* const node : {&server, &third}) (void)node->command("SET holdfast/example somebody");
  const std::string text = end(program, 2);
  TEST_ASSERT_TRUE(contains(text, "the work is broken off: lock_lost"));
  TEST_ASSERT_FALSE(contains(text, "step 30 of"));
  TEST_ASSERT_EQUAL("somebody", server.command("GET holdfast/example"));
  TEST_ASSERT_EQUAL("0", second.command("EXISTS holdfast/example"));
}

TEST_ON_SERVER(test_asio_quorum_should_break_its_work_off_when_two_of_three_have_died) {
  use("asio_quorum");
  RedisServer second(server.binary());
  RedisServer third(server.binary());
  Running program("", {server.unix_url(), second.tcp_url(), third.unix_url()});
  await_line(program, "step 1 of");
  server.stop();
  second.stop();
  const std::string text = end(program, 2);
  TEST_ASSERT_TRUE(contains(text, "the work is broken off: lock_lost"));
  TEST_ASSERT_TRUE(contains(text, "node 1") && contains(text, "node 2"));
}
