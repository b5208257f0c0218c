// SPDX-License-Identifier: MIT
//
// The numbers that `holdfast run --stats` leaves behind.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
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

namespace {

ino_t number_of(const std::string& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 ? file.st_ino : 0;
}

// A command that runs until it is told to end, and then with 7. It says when it has begun.
struct Task {
  explicit Task(const std::string& path) : over(path) { TEST_ASSERT_EQUAL(0, ::mkfifo(over.c_str(), 0600)); }
  [[nodiscard]] Words words(const Words& options) const {
    Words all = {"run", "--stats-interval", "1"};
    all.insert(all.end(), options.begin(), options.end());
    for (const std::string& word : {std::string("k"), std::string("--"), std::string("sh"), std::string("-c"),
                                    "echo begun; cat " + over + "; exit 7"})
      all.push_back(word);
    return all;
  }
  void end() const { ::close(::open(over.c_str(), O_WRONLY)); }

  std::string over;
};

// So many renewals, each seen by what is left of the lease.
bool renewals_go_on(RedisServer& server, int count) {
  long before = 0;
  return eventually([&] {
    const long left = std::atol(server.command("PTTL k").c_str());
    if (left > before && before != 0) --count;
    before = left;
    return count <= 0;
  });
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_ON_SERVER(test_run_should_write_its_numbers_while_its_command_runs) {
  const std::string file = server.socket_path() + ".prom";
  const Task task(server.socket_path() + ".over");
  Running run(server.unix_url(), task.words({"-l", "3", "--stats", file}));
  TEST_ASSERT_EQUAL("begun", run.line());
  TEST_ASSERT_TRUE(eventually([&] { return has_line(text_in(file), "holdfast_grants_total 1"); }));
  // Each time it is another file, and whoever reads it reads all of it.
  int written = 0;
  ino_t last = number_of(file);
  TEST_ASSERT_TRUE(eventually([&] {
    const ino_t present = number_of(file);
    written += present != last ? 1 : 0;
    last = present;
    const std::string text = text_in(file);
    TEST_ASSERT_TRUE(text.size() > 6 && text.substr(text.size() - 6) == "# EOF\n");
    return written >= 2 && !has_line(text, "holdfast_renewals_total 0");
  }));
  TEST_ASSERT_TRUE(has_line(text_in(file), "holdfast_losses_total 0"));
  // What a kill leaves, it leaves as a whole; and what it may have left beside it, the next run takes.
  run.signal(SIGKILL);
  (void)run.wait();
  TEST_ASSERT_TRUE(has_line(text_in(file), "holdfast_grants_total 1"));
  const std::string beside =
      file.substr(0, file.rfind('/') + 1) + ".holdfast-" + file.substr(file.rfind('/') + 1) + ".new";
  std::ofstream(beside) << std::string(100'000, 'x');
  server.command("DEL k");
  TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), {"run", "--stats", file, "k", "--", "true"}));
  TEST_ASSERT_TRUE(has_line(text_in(file), "holdfast_grants_total 1"));
  TEST_ASSERT_FALSE(contains(text_in(file), "xxx"));
  TEST_ASSERT_FALSE(std::filesystem::exists(beside));
}

TEST_ON_SERVER(test_numbers_that_cannot_be_written_later_should_be_said_once_and_written_when_they_can) {
  const std::string folder = server.socket_path() + ".folder";
  const std::string file = folder + "/a.prom";
  std::filesystem::create_directory(folder);
  const Task task(server.socket_path() + ".over");
  Running run(server.unix_url(), task.words({"-l", "1.5", "--stats", file}));
  TEST_ASSERT_EQUAL("begun", run.line());
  TEST_ASSERT_TRUE(eventually([&] { return std::filesystem::exists(file); }));
  std::filesystem::rename(folder, folder + ".away");
  TEST_ASSERT_TRUE(renewals_go_on(server, 8));  // Half a second each.
  std::filesystem::rename(folder + ".away", folder);
  const ino_t before = number_of(file);
  TEST_ASSERT_TRUE(eventually([&] { return number_of(file) != before; }));
  task.end();
  TEST_ASSERT_EQUAL(7, run.wait());
  const std::string said = run.errors();
  TEST_MESSAGE(said);
  TEST_ASSERT_EQUAL(1U, count_of(said, "--stats: " + file + ": "));
  std::filesystem::remove_all(folder);
}

// Here somebody else has the place where it is written, which is waited for, for longer than the lease.
TEST_ON_SERVER(test_a_file_that_lets_itself_be_waited_for_should_cost_no_renewal) {
  const std::string file = server.socket_path() + ".prom";
  const std::string beside =
      file.substr(0, file.rfind('/') + 1) + ".holdfast-" + file.substr(file.rfind('/') + 1) + ".new";
  const int taken = ::open(beside.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  TEST_ASSERT_TRUE(taken >= 0 && ::flock(taken, LOCK_EX) == 0);
  const Task task(server.socket_path() + ".over");
  Running run(server.unix_url(), task.words({"-l", "0.9", "--stats", file}));
  TEST_ASSERT_EQUAL("begun", run.line());
  TEST_ASSERT_TRUE(renewals_go_on(server, 8));
  task.end();
  TEST_ASSERT_EQUAL(7, run.wait());
  TEST_ASSERT_EQUAL(1U, count_of(run.errors(), "another process writes it"));
  TEST_ASSERT_FALSE(std::filesystem::exists(file));
  ::close(taken);
  ::unlink(beside.c_str());
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

TEST_ON_SERVER(test_labels_and_intervals_that_make_no_sense_should_be_refused_by_name) {
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
      {{"--stats-interval", "10"}, "--stats-interval: there is no --stats"},
      {{"--stats", file, "--stats-interval", "0"}, "it takes from 1 to 86400 seconds, and not '0'"},
      {{"--stats", file, "--stats-interval", "0.999999999"}, "it takes from 1 to 86400 seconds"},
      {{"--stats", file, "--stats-interval", "86401"}, "it takes from 1 to 86400 seconds, and not '86401'"},
      {{"--stats", file, "--stats-interval", "-1"}, "is no time"},
      {{"--stats", file, "--stats-interval", ""}, "is no time"},
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
