// SPDX-License-Identifier: MIT
//
// The numbers that `holdfast run --stats` leaves behind.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "command_fixture.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool has_line(const std::string& text, const std::string& line) { return contains("\n" + text, "\n" + line + "\n"); }

}  // namespace

TEST_ON_SERVER(test_run_should_leave_its_numbers_whatever_became_of_it) {
  const std::string file = server.socket_path() + ".prom";
  const std::string over = server.socket_path() + ".over";
  TEST_ASSERT_EQUAL(0, ::mkfifo(over.c_str(), 0600));
  Running renewed(server.unix_url(),
                  {"run", "-l", "3", "--stats", file, "k", "--", "sh", "-c", "cat " + over + "; exit 7"});
  const auto remaining = [&] { return std::atol(server.command("PTTL k").c_str()); };
  long least = 0;  // It grows by a renewal alone.
  TEST_ASSERT_TRUE(eventually([&] {
    const long left = remaining();
    const bool grew = least != 0 && left > least;
    least = left > 0 && (least == 0 || left < least) ? left : least;
    return grew;
  }));
  ::close(::open(over.c_str(), O_WRONLY));  // The command reads its end.
  TEST_ASSERT_EQUAL(7, renewed.wait());
  std::string text = text_in(file);
  TEST_ASSERT_TRUE(has_line(text, "holdfast_grants_total 1"));
  TEST_ASSERT_FALSE(has_line(text, "holdfast_renewals_total 0"));  // At a third of the lease.
  TEST_ASSERT_TRUE(has_line(text, "holdfast_losses_total 0"));
  TEST_ASSERT_TRUE(has_line(text, "holdfast_acquire_seconds_count 1"));
  TEST_ASSERT_TRUE(has_line(text, "# TYPE holdfast_renewal_seconds histogram"));
  TEST_ASSERT_EQUAL("# EOF\n", text.substr(text.size() - 6));
  // Somebody else has it: a refusal, and the file is another one.
  server.command("SET k somebody");
  TEST_ASSERT_EQUAL(exit_not_acquired,
                    run_to_end(server.unix_url(), {"run", "-n", "--stats", file, "k", "--", "true"}));
  text = text_in(file);
  TEST_ASSERT_TRUE(has_line(text, "holdfast_grants_total 0"));
  TEST_ASSERT_TRUE(has_line(text, "holdfast_refusals_total 1"));
  // Nothing of its making is left beside it.
  for (const auto& each : std::filesystem::directory_iterator(std::filesystem::path(file).parent_path()))
    TEST_ASSERT_FALSE(contains(each.path().filename().string(), ".holdfast-"));
  // A lock that was lost.
  server.command("DEL k");
  Running lost(server.unix_url(), {"run", "-l", "0.6", "--stats", file, "k", "--", "sleep", "30"});
  TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS k") == "1"; }));
  server.command("DEL k");
  TEST_ASSERT_EQUAL(exit_lost, lost.wait());
  TEST_ASSERT_TRUE(has_line(text_in(file), "holdfast_losses_total 1"));
}

TEST_ON_SERVER(test_run_should_put_its_labels_on_every_number) {
  const std::string file = server.socket_path() + ".prom";
  TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), {"run", "--stats", file, "--stats-label", "job=a\"b\\c",
                                                      "--stats-label", "x=", "orders", "--", "true"}));
  const std::string text = text_in(file);
  TEST_ASSERT_TRUE(has_line(text, "holdfast_grants_total{job=\"a\\\"b\\\\c\",x=\"\"} 1"));
  TEST_ASSERT_FALSE(contains(text, "orders"));  // The lock's name is no label.
}

TEST_ON_SERVER(test_numbers_that_cannot_be_written_should_be_said_before_anything_runs) {
  const std::string ran = server.socket_path() + ".ran";
  for (const std::string& file :
       {server.socket_path() + ".none/a.prom", std::string("/dev/null"), std::string("/tmp/")}) {
    std::string said;
    TEST_ASSERT_EQUAL(exit_output,
                      run_to_end(server.unix_url(), {"run", "--stats", file, "k", "--", "touch", ran}, &said));
    TEST_ASSERT_TRUE(contains(said, "--stats: " + file + ": "));
    TEST_ASSERT_FALSE(std::filesystem::exists(ran));
  }
}

TEST_ON_SERVER(test_labels_that_no_reader_takes_should_be_refused_by_name) {
  const std::string file = server.socket_path() + ".prom";
  const struct {
    Words words;
    const char* reason;
  } refused[] = {
      {{"--stats-label", "a=b"}, "there is no --stats"},
      {{"--stats", file, "--stats-label", "ab"}, "it must be NAME=VALUE"},
      {{"--stats", file, "--stats-label", "1=b"}, "no digit first"},
      {{"--stats", file, "--stats-label", "=b"}, "no digit first"},
      {{"--stats", file, "--stats-label", "le=1"}, "its name is reserved"},
      {{"--stats", file, "--stats-label", "a=\xff"}, "its value is not UTF-8"},
      {{"--stats", file, "--stats-label", "a=1", "--stats-label", "a=2"}, "its name is given twice"},
      {{"--stats", ""}, "the file has no name"},
  };
  for (const auto& refusal : refused) {
    const char* const reason = refusal.reason;
    Words all = {"run"};
    all.insert(all.end(), refusal.words.begin(), refusal.words.end());
    for (const char* const word : {"k", "--", "true"}) all.emplace_back(word);
    std::string said;
    TEST_MESSAGE(reason);
    TEST_ASSERT_EQUAL(exit_usage, run_to_end(server.unix_url(), all, &said));
    TEST_ASSERT_TRUE(contains(said, reason));
  }
  TEST_ASSERT_FALSE(std::filesystem::exists(file));
}
