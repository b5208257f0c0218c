// SPDX-License-Identifier: MIT
//
// holdfast acquire, renew and release: a hold whose steps are processes of their own.
#include "answering_server.hpp"
#include "command_fixture.hpp"
#include "proxy.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <stdexcept>

static void setUp() {}
static void tearDown() {}

namespace {

constexpr int exit_unknown = 80;
const std::string foreign_random(32, 'f');
const std::string foreign_ordinal = "01234567-89ab-4cde-8f01-23456789abcd:1";

struct Form {
  Words options;  // Of acquire.
  Words kind;     // Of renew and release.
  bool random;
  bool fence = false;
};
const Form forms[] = {
    {{}, {}, true},
    {{"--fence"}, {}, true, true},
    {{"--kind", "reentrant"}, {"--kind", "reentrant"}, false},
    {{"--kind", "fenced"}, {"--kind", "fenced"}, false, true},
    {{"--kind", "fair"}, {"--kind", "fair"}, false},
    {{"--kind", "fair", "--fence"}, {"--kind", "fair"}, false, true},
    {{"--kind", "read"}, {"--kind", "read"}, false},
    {{"--kind", "write"}, {"--kind", "write"}, false},
    {{"--kind", "semaphore", "--permits", "1"}, {"--kind", "semaphore"}, true},
};

Words words_of(const char* verb, const Words& options, const Words& more = {}) {
  Words words = {verb};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("lock");
  return words;
}

// Its lines.
Words acquired(const std::string& url, const Words& options, const char* lease = "20") {
  Words words = words_of("acquire", {"-n", "-l", lease}, options);
  Running command(url, words);
  Words lines;
  std::string text = command.rest();
  const int code = command.wait();
  TEST_MESSAGE("stdout: " << text << "stderr: " << command.errors());
  TEST_ASSERT_EQUAL(0, code);
  for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
    lines.push_back(text.substr(0, end));
  TEST_ASSERT_EQUAL("", text);
  return lines;
}

// The token of a hold that each of the nodes has. The command ends with the word of a majority: on a busy machine it may not have been
// connected to one of them by then. Then it is done once more.
std::string acquired_on_all(const std::vector<RedisServer*>& nodes, const Words& kind, const char* lease = "20") {
  std::string urls;
  for (const RedisServer* const node : nodes) urls += node->unix_url() + " ";
  const auto all = [&](const char* exists) {
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](RedisServer* node) { return node->command("EXISTS lock") == exists; });
  };
  Words options = kind;
  options.emplace_back("--no-restart-guard");
  for (int turn = 0; turn < 20; ++turn) {
    const std::string token = acquired(urls, options, lease)[0];
    if (comes([&] { return all("1"); }, 2s)) return token;
    TEST_ASSERT_EQUAL(0, run_to_end(urls, words_of("release", kind, {"--token", token})));
    TEST_ASSERT_TRUE(eventually([&] { return all("0"); }));
  }
  throw std::runtime_error("one of the nodes is never asked in time");
}

// A fifo that takes nothing more.
class FullPipe {
 public:
  explicit FullPipe(const std::string& path) : path_(path) {
    if (::mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("no fifo");
    descriptor_ = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    while (::write(descriptor_, "x", 1) == 1) {}
  }
  ~FullPipe() {
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Takes all of it out.
  [[nodiscard]] std::string content() const {
    std::string text;
    char part[4096];
    for (ssize_t count = 0; (count = ::read(descriptor_, part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(count));
    return text;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

// In milliseconds: of the key, or of a permit.
long remaining_on(RedisServer& server) {
  if (server.command("TYPE {lock}:timeout") != "zset") return std::stol(server.command("PTTL lock"));
  const std::string ends = server.command(
      "EVAL \"local t=redis.call('TIME') return "
      "tostring(redis.call('ZRANGE','{lock}:timeout',0,0,'WITHSCORES')[2]-t[1]*1000-math.floor(t[2]/1000))\" 0");
  return static_cast<long>(std::stod(ends));
}

// Of a semaphore whose permits are free, their number stays.
bool busy(RedisServer& server) {
  return server.command("EXISTS {lock}:timeout") == "1" ||
         (server.command("EXISTS lock") == "1" && server.command("PTTL lock") != "-1");
}

}  // namespace

TEST_ON_SERVER(test_a_lock_should_be_acquired_renewed_and_released_by_processes_of_their_own) {
  for (const Form& form : forms) {
    TEST_MESSAGE(words_of("acquire", form.options).at(form.options.empty() ? 0 : form.options.size() - 1));
    const Words lines = acquired(server.unix_url(), form.options);
    TEST_ASSERT_EQUAL(form.fence ? 2U : 1U, lines.size());
    if (form.fence) TEST_ASSERT_TRUE(std::stoull(lines[1]) > 0);
    const std::string& token = lines[0];
    TEST_ASSERT_TRUE(busy(server));
    TEST_ASSERT_TRUE(remaining_on(server) > 10'000);

    // A renewal extends, and never shortens.
    TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), words_of("renew", form.kind, {"-l", "29", "--token", token})));
    TEST_ASSERT_TRUE(remaining_on(server) > 21'000);
    TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), words_of("renew", form.kind, {"-l", "1", "--token", token})));
    TEST_ASSERT_TRUE(remaining_on(server) > 20'000);

    // Another's token takes nothing.
    const std::string& foreign = form.random ? foreign_random : foreign_ordinal;
    const std::string before = server.command("DEBUG DIGEST");
    for (const char* const verb : {"renew", "release"}) {
      std::string errors;
      TEST_ASSERT_EQUAL(exit_lost,
                        run_to_end(server.unix_url(), words_of(verb, form.kind, {"--token", foreign}), &errors));
      TEST_ASSERT_TRUE(contains(errors, "no hold has this token any more"));
    }
    TEST_ASSERT_EQUAL(before, server.command("DEBUG DIGEST"));

    TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), words_of("release", form.kind, {"--token", token})));
    TEST_ASSERT_FALSE(busy(server));
    TEST_ASSERT_EQUAL(exit_lost, run_to_end(server.unix_url(), words_of("release", form.kind, {"--token", token})));
    TEST_ASSERT_EQUAL(exit_lost, run_to_end(server.unix_url(), words_of("renew", form.kind, {"--token", token})));
    TEST_ASSERT_FALSE(busy(server));
    server.command("FLUSHALL");
  }
}

TEST_ON_SERVER(test_a_release_by_token_should_wake_a_waiter) {
  for (const Form& form : forms) {
    if (!form.kind.empty() && form.kind[1] == "read") continue;
    const std::string token = acquired(server.unix_url(), form.options)[0];
    Words options = form.options;
    options.insert(options.end(), {"-v", "-w", "20"});
    Running waiter(server.unix_url(), run_script(options, "exit 5"));
    TEST_ASSERT_TRUE(waiter.says("waiting for lock: it is held by " + token));
    TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), words_of("release", form.kind, {"-q", "--token", token})));
    TEST_ASSERT_EQUAL(5, waiter.wait());
    server.command("FLUSHALL");
  }
}

TEST_ON_SERVER(test_the_token_should_come_from_the_environment_or_a_file) {
  char folder[] = "/tmp/holdfast-test-XXXXXX";
  TEST_ASSERT_TRUE(::mkdtemp(folder) != nullptr);
  const std::string file = std::string(folder) + "/token";
  const Words lines = acquired(server.unix_url(), {"--fence"});
  // Of Windows, too.
  std::ofstream(file) << lines[0] << "\r\n" << lines[1] << "\r\n";
  Running by_environment(server.unix_url(), {"renew", "-l", "25", "lock"},
                         {.environment = {{"HOLDFAST_TOKEN", lines[0]}}});
  TEST_ASSERT_EQUAL(0, by_environment.wait());
  TEST_ASSERT_TRUE(contains(by_environment.errors(), "renewed lock; it lasts for 24."));
  // What is given counts before what is inherited.
  Running by_file(server.unix_url(), {"release", "-q", "--token-file", file, "lock"},
                  {.environment = {{"HOLDFAST_TOKEN", foreign_random}}});
  TEST_ASSERT_EQUAL(0, by_file.wait());
  TEST_ASSERT_EQUAL("", by_file.errors());
  TEST_ASSERT_FALSE(busy(server));
  std::filesystem::remove_all(folder);
}

TEST_ON_SERVER(test_what_cannot_be_a_token_should_be_refused_before_anything_is_sent) {
  const long connections = std::stol(server.command("CLIENT ID"));
  const std::pair<Words, const char*> cases[] = {
      {{}, "there is no token: give --token, --token-file or HOLDFAST_TOKEN"},
      {{"--token", ""}, "'' is no token of mutex"},
      {{"--token", "mode"}, "it has 32 hexadecimal digits in lower case"},
      {{"--kind", "read", "--token", "mode"}, "'mode' is no token of read: it has the form UUID:NUMBER"},
      {{"--kind", "write", "--token", foreign_ordinal + ":write"}, "is no token of write"},
      {{"--token", std::string(32, 'F')}, "is no token of mutex"},
      {{"--token", "\x1b[2J"}, "'\\x1b[2J' is no token"},
      {{"--token", std::string(100'000, 'a')}, "is no token of mutex"},
      {{"--token", foreign_ordinal}, "this is one of another --kind: reentrant, fenced, fair, read or write"},
      {{"--kind", "fair", "--token", foreign_random}, "this is one of another --kind: mutex or semaphore"},
      {{"--token", foreign_random, "--token-file", "/dev/null"}, "--token and --token-file exclude each other"},
      {{"--token-file", "/nonexistent/x"}, "--token-file: '/nonexistent/x': cannot read it: No such file or directory"},
      {{"--token-file", "/"}, "--token-file: '/': cannot read it: Is a directory"},
      {{"--token-file", "/dev/null"}, "there is no token in its first line"},
      {{"--token-file", "/dev/zero"}, "its first line has more than 64 bytes"},
      {{"--kind", "read", "--token", foreign_ordinal, "-l", "31"}, "a read lock has a lease of at most 30"},
      {{"--token", foreign_random, "-l", "0"}, "a lease has whole milliseconds"},
      {{"--token", foreign_random, "--max-lease", "60"}, "--max-lease is of a quorum"},
      {{"--kind", "fair", "--token", foreign_ordinal, "--url", "redis://a", "--url", "redis://b"},
       "there is no 'fair' on several servers"},
  };
  for (const auto& refused : cases) {
    const Words& options = refused.first;
    const char* const text = refused.second;
    TEST_MESSAGE(text);
    std::string errors;
    TEST_ASSERT_EQUAL(exit_usage, run_to_end(server.unix_url(), words_of("renew", options), &errors));
    TEST_ASSERT_TRUE(contains(errors, text));
  }
  std::string errors;
  TEST_ASSERT_EQUAL(exit_usage, run_to_end(server.unix_url(), {"acquire", "lock"}, &errors));
  TEST_ASSERT_TRUE(contains(errors, "-l is missing: nobody renews the lock by itself"));
  TEST_ASSERT_EQUAL(exit_usage,
                    run_to_end(server.unix_url(), {"release", "--force", "--token", foreign_random, "lock"}, &errors));
  TEST_ASSERT_TRUE(contains(errors, "--force asks for no token"));
  // Nobody but ourselves has connected.
  TEST_ASSERT_EQUAL(connections + 1, std::stol(server.command("CLIENT ID")));
}

// [rule 6] Cut at every byte of the replies, the outcome is told as it is: not sent, unknown, or done.
TEST_ON_SERVER(test_a_reply_that_was_lost_should_be_unknown_and_take_nothing_of_others) {
  const std::string token = acquired(server.unix_url(), {}, "80")[0];
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  bool unknown = false;
  for (int bytes = 1;; ++bytes) {
    proxy.cut_after(bytes);
    std::string errors;
    const int code = run_to_end(proxy.url(), {"renew", "-l", "30", "--token", token, "lock"}, &errors);
    if (code == 0) break;
    TEST_ASSERT_TRUE(code == exit_no_server || code == exit_unknown);
    TEST_ASSERT_EQUAL(code == exit_unknown,
                      contains(errors, "it is unknown whether lock was renewed; asking again is safe"));
    unknown = unknown || code == exit_unknown;
    TEST_ASSERT_TRUE(proxy.cut_done());
    TEST_ASSERT_EQUAL(token, server.command("GET lock"));
  }
  TEST_ASSERT_TRUE(unknown);
}

TEST_ON_SERVER(test_a_release_whose_reply_was_lost_should_be_unknown_and_then_lost) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  int bytes = 1;
  for (bool unknown = false; !unknown; ++bytes) {
    const std::string token = acquired(server.unix_url(), {}, "80")[0];
    proxy.cut_after(bytes);
    const int code = run_to_end(proxy.url(), {"release", "--token", token, "lock"});
    TEST_ASSERT_TRUE(code == exit_no_server || code == exit_unknown);
    unknown = code == exit_unknown;
    const int again = run_to_end(server.unix_url(), {"release", "--token", token, "lock"});
    TEST_ASSERT_TRUE(again == 0 || (unknown && again == exit_lost));
  }
}

TEST_ON_SERVER(test_a_token_that_cannot_be_printed_should_leave_no_lock) {
  for (const char* const output : {">/dev/full", ">&-", ">&- <&-"}) {
    TEST_MESSAGE(std::string(output));
    Running command(server.unix_url(), {"-c", command_path() + " acquire -l 20 lock " + output}, {.path = "/bin/sh"});
    TEST_ASSERT_EQUAL(exit_output, command.wait());
    TEST_ASSERT_TRUE(contains(command.errors(), "could not print the token of lock, and lets go of it"));
    TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
  }
  for (const char* const words : {"info lock", "doctor --seconds 0", "--help"}) {
    for (const char* const output : {" >&-", " >/dev/full"}) {
      Running command(server.unix_url(), {"-c", command_path() + " " + words + output}, {.path = "/bin/sh"});
      TEST_ASSERT_EQUAL(exit_output, command.wait());
      TEST_ASSERT_TRUE(contains(command.errors(), "standard output cannot be written: "));
    }
  }
}

TEST_ON_SERVER(test_an_acquire_whose_token_nobody_reads_should_end_by_a_signal_or_with_its_hold) {
  const FullPipe pipe(server.socket_path() + ".fifo");
  const auto acquire = [&](const char* lease) {
    return Words{"-c", "exec " + command_path() + " acquire -l " + lease + " lock >" + pipe.path()};
  };
  for (const int number : {SIGTERM, SIGINT}) {
    Running command(server.unix_url(), acquire("20"), {.path = "/bin/sh"});
    TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS lock") == "1"; }));
    command.signal(number);
    TEST_ASSERT_EQUAL(128 + number, command.wait());
    TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
  }
  Running command(server.unix_url(), acquire("0.5"), {.path = "/bin/sh"});
  TEST_ASSERT_EQUAL(exit_output, command.wait());
  TEST_ASSERT_TRUE(contains(command.errors(), "could not print the token of lock, and lets go of it"));
  TEST_ASSERT_EQUAL(std::string::npos, pipe.content().find_first_not_of('x'));
}

TEST_ON_SERVER(test_a_signal_should_end_a_waiting_acquire_and_leave_nothing) {
  server.command("SET lock x");
  Running command(server.unix_url(), {"acquire", "-l", "20", "lock"});
  TEST_ASSERT_TRUE(command.says("waiting for lock"));
  command.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
  TEST_ASSERT_EQUAL("x", server.command("GET lock"));
  TEST_ASSERT_EQUAL(exit_not_acquired, run_to_end(server.unix_url(), {"acquire", "-n", "-l", "20", "lock"}));
  TEST_ASSERT_EQUAL(7, run_to_end(server.unix_url(), {"acquire", "-n", "-l", "20", "-E", "7", "lock"}));
}

// The server has granted it, and the grant is still on its way.
TEST_ON_SERVER(test_a_signal_should_take_back_what_was_granted_at_the_same_moment) {
  server.command("SET lock x");
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  Running command(proxy.url(), {"acquire", "-l", "20", "lock"});
  TEST_ASSERT_TRUE(command.says("waiting for lock"));
  proxy.delay_replies(std::chrono::milliseconds(150));
  server.command("DEL lock");
  TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS lock") == "1"; }));
  command.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
  TEST_ASSERT_EQUAL("", command.rest());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
}

TEST_ON_SERVER(test_a_run_s_own_token_should_not_be_released_by_what_it_runs) {
  std::string errors;
  TEST_ASSERT_EQUAL(exit_usage,
                    run_to_end(server.unix_url(), run_script({}, command_path() + " release lock"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "this is the token of the run that this one is inside of"));
  TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), run_script({}, command_path() + " renew lock")));
}

TEST_ON_SERVER(test_a_key_of_another_type_should_be_no_lock) {
  server.command("LPUSH lock x");
  TEST_ASSERT_EQUAL(exit_no_lock, run_to_end(server.unix_url(), {"renew", "--token", foreign_random, "lock"}));
  TEST_ASSERT_EQUAL(exit_no_lock, run_to_end(server.unix_url(), {"release", "--token", foreign_random, "lock"}));
  TEST_ASSERT_EQUAL("1", server.command("LLEN lock"));
}

TEST_ON_SERVER(test_json_should_have_what_was_granted) {
  const std::string text = output_of(server.unix_url(), {"acquire", "--json", "--fence", "-l", "20", "a\"\x01"}, 0);
  TEST_ASSERT_TRUE(contains(text, R"({"name": "a\"\\x01", "kind": "mutex", "token": ")"));
  TEST_ASSERT_TRUE(contains(text, R"(", "fence": )"));
  TEST_ASSERT_TRUE(contains(text, R"(, "remaining": 19.)"));
}

// ---- A quorum ----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_quorum_should_be_renewed_and_released_by_a_majority) {
  RedisServer second(server.binary());
  RedisServer third(server.binary());
  const std::string urls = server.unix_url() + " " + second.unix_url() + " " + third.unix_url();
  for (const Words& kind : {Words{}, Words{"--kind", "reentrant"}, Words{"--kind", "fenced"}}) {
    const std::string token = acquired_on_all({&server, &second, &third}, kind);
    TEST_ASSERT_EQUAL(0, run_to_end(urls, words_of("renew", kind, {"-l", "29", "--token", token})));
    for (RedisServer* node : {&server, &second, &third}) TEST_ASSERT_TRUE(remaining_on(*node) > 21'000);
    TEST_ASSERT_EQUAL(exit_usage, run_to_end(urls, words_of("renew", kind, {"-l", "31", "--token", token})));

    third.command("DEL lock");  // One that has lost it changes nothing.
    TEST_ASSERT_EQUAL(0, run_to_end(urls, words_of("renew", kind, {"--token", token})));
    second.command("DEL lock");
    TEST_ASSERT_EQUAL(exit_lost, run_to_end(urls, words_of("renew", kind, {"--token", token})));
    TEST_ASSERT_EQUAL(exit_lost, run_to_end(urls, words_of("release", kind, {"--token", token})));
    TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
  }
}

TEST_ON_SERVER(test_a_node_that_is_gone_should_cost_its_vote_and_one_server_should_have_one) {
  auto second = std::make_unique<RedisServer>(server.binary());
  auto third = std::make_unique<RedisServer>(server.binary());
  const std::string urls = server.unix_url() + " " + second->unix_url() + " " + third->unix_url();
  const std::string token = acquired_on_all({&server, second.get(), third.get()}, {});
  std::string errors;
  // One server under two names: it is seen before anything is done.
  const std::string twins = server.unix_url() + " " + server.tcp_url() + " " + second->unix_url();
  for (const Words& words : {Words{"renew", "--token", token, "lock"}, Words{"release", "--token", token, "lock"},
                             Words{"release", "--force", "lock"}}) {
    TEST_ASSERT_EQUAL(exit_usage, run_to_end(twins, words, &errors));
    TEST_ASSERT_TRUE(contains(errors, "are one server, or replicate each other"));
    TEST_ASSERT_EQUAL(token, server.command("GET lock"));
    TEST_ASSERT_EQUAL(token, second->command("GET lock"));
  }
  third.reset();
  TEST_ASSERT_EQUAL(0, run_to_end(urls, {"renew", "--token", token, "lock"}));
  second.reset();
  TEST_ASSERT_EQUAL(exit_no_server, run_to_end(urls, {"renew", "--token", token, "lock"}, &errors));
  TEST_ASSERT_TRUE(contains(errors, "a majority of the 3 nodes did not confirm it"));
  TEST_ASSERT_EQUAL(exit_no_server, run_to_end(urls, {"release", "--token", token, "lock"}));
}

TEST_ON_SERVER(test_a_silent_node_should_not_cost_the_others_their_lease) {
  RedisServer second(server.binary());
  RedisServer third(server.binary());
  const std::string token = acquired_on_all({&server, &second, &third}, {}, "10");
  second.pause();
  const std::string urls = server.unix_url() + " " + second.unix_url() + " " + third.unix_url();
  TEST_ASSERT_EQUAL(0, run_to_end(urls, {"renew", "-l", "1.5", "--token", token, "lock"}));
  TEST_ASSERT_EQUAL(0, run_to_end(urls, {"release", "--token", token, "lock"}));
}

// No node answers before all were asked: the first one, and then another, would have to wait for its timeout otherwise.
TEST_ON_SERVER(test_nodes_should_be_connected_to_at_once_and_asked_at_once) {
  constexpr int count = 3;
  for (const char* const verb : {"renew", "release"}) {
    TEST_MESSAGE(std::string(verb));
    std::atomic<int> greeted{0};
    std::atomic<int> asked{0};
    const auto answer = [&, known = false](const Words& words) mutable -> std::string {
      const bool of_hold = std::find(words.begin(), words.end(), foreign_random) != words.end();
      std::atomic<int>& heard = of_hold ? asked : greeted;
      if (of_hold || !known) ++heard;
      known = true;
      (void)eventually([&] { return heard >= count; });
      return "-ERR of no use\r\n";
    };
    std::string urls;
    std::deque<AnsweringServer> servers;
    for (int index = 0; index < count; ++index)
      urls += servers.emplace_back(server.socket_path() + "." + std::to_string(index), answer).url() + " ";
    std::string errors;
    (void)run_to_end(urls, {verb, "--token", foreign_random, "lock"}, &errors);
    TEST_ASSERT_EQUAL(count, asked);
    for (const char* const word : {"no connection", "the reply was lost"}) TEST_ASSERT_FALSE(contains(errors, word));
  }
}

// With a node that is silent, others are waited for after the grant; a short lease must not run out meanwhile.
TEST_ON_SERVER(test_a_token_of_a_quorum_should_be_printed_while_its_hold_lasts) {
  RedisServer second(server.binary());
  RedisServer third(server.binary());
  third.pause();
  const std::string urls = server.unix_url() + " " + second.unix_url() + " " + third.unix_url();
  const auto acquire = [&](const char* lease) {
    return Words{"acquire", "-n", "-l", lease, "--json", "--no-restart-guard", "lock"};
  };
  TEST_ASSERT_TRUE(eventually([&] {
    const Outcome outcome = outcome_of(urls, acquire("0.1"));
    TEST_MESSAGE(outcome.code << ": " << outcome.text);
    TEST_ASSERT_EQUAL(outcome.code == 0, contains(outcome.text, "\"token\""));
    TEST_ASSERT_FALSE(contains(outcome.text, "\"remaining\": 0}"));
    return outcome.code == 0;
  }));
  // And where it is gone by then, no token is printed, and nothing is left.
  TEST_ASSERT_TRUE(eventually([&] {
    server.command("FLUSHALL");
    second.command("FLUSHALL");
    Running command(urls, acquire("20"));
    const auto taken = [&] { return server.command("DEL lock") == "1" && second.command("DEL lock") == "1"; };
    TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS lock") + second.command("EXISTS lock") == "11"; }));
    TEST_ASSERT_TRUE(taken());
    const std::string text = command.rest();
    const int code = command.wait();
    TEST_ASSERT_EQUAL(code == 0, contains(text, "\"token\""));
    if (code != exit_lost) return false;
    TEST_ASSERT_TRUE(contains(command.errors(), "has ended before its token was printed"));
    TEST_ASSERT_EQUAL("00", server.command("EXISTS lock") + second.command("EXISTS lock"));
    return true;
  }));
}
