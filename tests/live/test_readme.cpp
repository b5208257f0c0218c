// SPDX-License-Identifier: MIT
//
// The examples of README.md, on real servers: tests/readme/extract.py takes them out of it. Those that say that their hold
// is kept run for longer than a lease, which is 30 s. HOLDFAST_README says in which folder the programs are.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "command_fixture.hpp"
#include "live_fixture.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

std::string folder() {
  const char* const path = std::getenv("HOLDFAST_README");
  return path == nullptr ? "." : path;
}

// Which server an example's URL leads to.
void lead(const std::string& variable, const RedisServer& server) {
  ::setenv(variable.c_str(), server.tcp_url().c_str(), 1);
}

std::size_t count_of(const std::string& text, const std::string& line) {
  std::size_t count = 0;
  for (std::size_t at = text.find(line + "\n"); at != std::string::npos; at = text.find(line + "\n", at + 1)) ++count;
  return count;
}

// What the program of an example says until it ends well.
std::string said_by(const std::string& example) {
  ::setenv("HOLDFAST_COMMAND", (folder() + "/readme_" + example).c_str(), 1);
  const std::string text = output_of("", {}, 0);
  TEST_ASSERT_EQUAL(1u, count_of(text, "done"));
  return text;
}

constexpr std::size_t seconds_kept = lease_default / 1s + 1;

}  // namespace

TEST_ON_SERVER(test_readme_mutex_should_be_held_during_the_work_and_released) {
  lead("redis_127_0_0_1", server);
  (void)said_by("mutex");
  TEST_ASSERT_EQUAL("0", server.command("EXISTS orders/42"));
}

TEST_ON_SERVER(test_readme_fenced_lock_should_be_held_for_longer_than_a_lease) {
  lead("redis_127_0_0_1", server);
  TEST_ASSERT_EQUAL(seconds_kept, count_of(said_by("fenced"), "held"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS orders/42"));
}

TEST_ON_SERVER(test_readme_quorum_should_be_locked_when_its_servers_may_vote) {
  RedisServer second(server.binary());
  RedisServer third(server.binary());
  lead("redis_10_0_0_1", server);
  lead("redis_10_0_0_2", second);
  lead("redis_10_0_0_3", third);
  (void)said_by("quorum");
}

#ifdef HOLDFAST_README_ASIO
TEST_ON_SERVER(test_readme_coroutine_should_hold_for_longer_than_a_lease) {
  lead("redis_127_0_0_1", server);
  TEST_ASSERT_EQUAL(seconds_kept, count_of(said_by("asio"), "held"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS orders/42"));
}
#endif

#ifdef HOLDFAST_README_COMMAND
TEST_ON_SERVER(test_readme_command_should_hold_for_longer_than_a_lease) {
  lead("redis_127_0_0_1", server);
  // The shell finds the command by its name, and the script of the example in its folder.
  const std::string path = std::filesystem::path(HOLDFAST_README_COMMAND).parent_path().string();
  ::setenv("PATH", (path + ":" + std::getenv("PATH")).c_str(), 1);
  const std::string place = std::filesystem::path(server.socket_path()).parent_path().string();
  const std::string script = place + "/report.sh";
  std::ofstream(script) << "#!/bin/sh\n"
                        << "for second in $(seq " << seconds_kept << "); do\n"
                        << "  holdfast info --url \"$redis_127_0_0_1\" nightly-report >&2 && echo held\n"
                        << "  sleep 1\n"
                        << "done\n"
                        << "echo done\n";
  ::chmod(script.c_str(), 0700);
  ::setenv("HOLDFAST_COMMAND", "/bin/sh", 1);
  const std::string text = output_of("", {"-ec", "cd " + place + "; . " + folder() + "/command.sh"}, 0);
  TEST_MESSAGE("stdout: " << text);
  TEST_ASSERT_EQUAL(seconds_kept, count_of(text, "held"));
  TEST_ASSERT_EQUAL(1u, count_of(text, "done"));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS nightly-report"));
}
#endif
