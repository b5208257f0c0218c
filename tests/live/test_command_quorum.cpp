// SPDX-License-Identifier: MIT
//
// The holdfast command on a quorum of three real servers.
#include "command_fixture.hpp"

#include <time.h>

#include <memory>

static void setUp() {}
static void tearDown() {}

namespace {

// Three servers that have just started: without --no-restart-guard none of them votes.
class Nodes {
 public:
  explicit Nodes(const std::string& binary, std::size_t count = 3) {
    for (std::size_t index = 0; index < count; ++index) servers_.push_back(std::make_unique<RedisServer>(binary));
  }

  RedisServer& operator[](std::size_t index) { return *servers_[index]; }
  // As HOLDFAST_URL has them.
  [[nodiscard]] std::string urls() const {
    std::string text;
    for (const auto& server : servers_) text += (text.empty() ? "" : " ") + server->tcp_url();
    return text;
  }
  // As options.
  [[nodiscard]] Words options() const {
    Words words;
    for (const auto& server : servers_) {
      words.emplace_back("--url");
      words.push_back(server->tcp_url());
    }
    return words;
  }
  [[nodiscard]] std::string address(std::size_t index) const {
    return "127.0.0.1:" + std::to_string(servers_[index]->port());
  }
  // What the nodes say to one command, joined by spaces.
  [[nodiscard]] std::string all(const std::string& command) const {
    std::string answers;
    for (const auto& server : servers_) answers += (answers.empty() ? "" : " ") + server->command(command);
    return answers;
  }
  // How many of those that run have the lock.
  [[nodiscard]] int holding() const {
    int count = 0;
    for (const auto& server : servers_)
      if (server->pid() > 0 && server->command("EXISTS lock") == "1") ++count;
    return count;
  }

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;
};

// run --no-restart-guard OPTION... lock -- sh -c SCRIPT
Words run_unguarded(Words options, const std::string& script) {
  options.insert(options.begin(), "--no-restart-guard");
  return run_script(options, script);
}

}  // namespace

// TEST_ON_NODES(name) { ... `nodes` are three fresh servers ... }
#define TEST_ON_NODES(name)                               \
  static void name(Nodes& nodes);                         \
  TEST(name) {                                            \
    for (const std::string& binary : server_binaries()) { \
      TEST_MESSAGE("server: " << binary);                 \
      Nodes nodes(binary);                                \
      name(nodes);                                        \
    }                                                     \
  }                                                       \
  static void name([[maybe_unused]] Nodes& nodes)

// ---- Grants ------------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_each_kind_should_be_held_on_all_nodes_and_be_gone_after) {
  const std::pair<const char*, const char*> kinds[] = {
      {"mutex", "GET lock"}, {"reentrant", "HKEYS lock"}, {"fenced", "HKEYS lock"}};
  for (const auto& [kind, question] : kinds) {
    Running command(nodes.urls(), run_unguarded({"--kind", kind},
                                                "echo $HOLDFAST_NAME $HOLDFAST_KIND; "
                                                "echo $HOLDFAST_TOKEN; exec sleep 100"));
    TEST_ASSERT_EQUAL(std::string("lock ") + kind, command.line());
    const std::string token = command.line();
    const std::string wanted = question;  // A lambda of Clang 14 takes no structured binding.
    // A majority is waited for; the third may be late.
    TEST_ASSERT_TRUE(eventually([&] { return nodes.all(wanted) == token + " " + token + " " + token; }));
    TEST_ASSERT_EQUAL(exit_not_acquired, run_to_end(nodes.urls(), run_unguarded({"-n"}, "exit 1")));
    command.signal(SIGTERM);
    TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
    TEST_ASSERT_TRUE(eventually([&] { return nodes.holding() == 0; }));
  }
}

TEST_ON_NODES(test_urls_should_be_taken_as_options_too) {
  Words words = nodes.options();
  const std::string url_of_nobody = "unix:///nonexistent/socket";
  TEST_ASSERT_EQUAL(5, run_to_end(url_of_nobody, run_unguarded(words, "exit 5")));
}

TEST_ON_NODES(test_fence_should_grow_from_run_to_run) {
  for (const Words& options : {Words{"--fence"}, Words{"--kind", "fenced"}}) {
    long long last = 0;
    for (int turn = 0; turn < 3; ++turn) {
      const std::string fence = output_of(nodes.urls(), run_unguarded(options, "echo $HOLDFAST_FENCE"), 0);
      TEST_ASSERT_TRUE(std::strtoll(fence.c_str(), nullptr, 10) > last);
      last = std::strtoll(fence.c_str(), nullptr, 10);
    }
  }
}

TEST_ON_NODES(test_a_minority_that_is_dead_or_stopped_should_not_be_missed) {
  nodes[2].stop();
  TEST_ASSERT_EQUAL(5, run_to_end(nodes.urls(), run_unguarded({}, "exit 5")));
  nodes[2].start();
  nodes[1].pause();
  TEST_ASSERT_EQUAL(6, run_to_end(nodes.urls(), run_unguarded({}, "exit 6")));
  nodes[1].resume();
}

TEST_ON_NODES(test_a_waiter_should_run_when_the_lock_is_let_go) {
  Running first(nodes.urls(), run_unguarded({}, "echo up; exec sleep 100"));
  TEST_ASSERT_EQUAL("up", first.line());
  Running second(nodes.urls(), run_unguarded({}, "echo late"));
  first.signal(SIGINT);
  TEST_ASSERT_EQUAL(128 + SIGINT, first.wait());
  TEST_ASSERT_EQUAL("late", second.line());
  TEST_ASSERT_EQUAL(0, second.wait());
}

TEST_ON_NODES(test_a_signal_while_waiting_should_end_the_wait_and_leave_nothing) {
  for (std::size_t index = 0; index < 3; ++index) nodes[index].command("SET lock foreign");
  Running command(nodes.urls(), run_unguarded({"-v"}, "exit 1"));
  // It has asked once.
  TEST_ASSERT_TRUE(eventually([&] { return nodes[0].calls("set") > 1; }));
  command.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
  TEST_ASSERT_EQUAL("foreign foreign foreign", nodes.all("GET lock"));
}

// ---- Keeping and losing ------------------------------------------------------------------------------------------

TEST_ON_NODES(test_the_lock_should_be_renewed_as_long_as_the_command_runs_also_without_one_node) {
  Running command(nodes.urls(), run_unguarded({"-l", "3"}, "echo up; sleep 5; exit 5"));
  TEST_ASSERT_EQUAL("up", command.line());
  nodes[0].stop();
  TEST_ASSERT_EQUAL(5, command.wait());
  TEST_ASSERT_TRUE(eventually([&] { return nodes.holding() == 0; }));
}

TEST_ON_NODES(test_a_node_that_comes_back_should_get_the_lock_again) {
  Running command(nodes.urls(), run_unguarded({"-l", "3"}, "echo up; exec sleep 100"));
  TEST_ASSERT_EQUAL("up", command.line());
  nodes[2].stop();
  nodes[2].start();
  TEST_ASSERT_TRUE(eventually([&] { return nodes[2].command("EXISTS lock") == "1"; }));
  nodes[0].stop();  // Now it is needed.
  (void)::poll(nullptr, 0, 4000);
  TEST_ASSERT_TRUE(alive(command.pid()));
  command.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
}

// The command tells the time for as long as it lives, so that how busy the machine is with us does not matter.
TEST_ON_NODES(test_a_quorum_that_stops_should_end_the_command_before_the_lock_runs_out) {
  Running command(nodes.urls(), run_unguarded({"-l", "9", "-k", "3"},
                                              "trap 'echo term' TERM; while :; do date +%s%3N; sleep 0.02; done"));
  const auto milliseconds = [](const std::string& line) { return std::strtoll(line.c_str(), nullptr, 10); };
  TEST_ASSERT_TRUE(milliseconds(command.line()) > 0);
  nodes[0].pause();
  nodes[1].pause();
  // A renewal that came in between made it longer, and none does from here on.
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const long long left = milliseconds(nodes[2].command("PTTL lock"));
  const long long runs_out = static_cast<long long>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000 + left;
  TEST_ASSERT_TRUE(left > 0);
  long long last = 0;
  bool warned = false;
  for (std::string line = command.line(); !contains(line, "(no line)"); line = command.line()) {
    warned = warned || line == "term";
    if (line != "term") last = milliseconds(line);
  }
  TEST_ASSERT_TRUE(warned);
  TEST_ASSERT_TRUE(last < runs_out);
  TEST_ASSERT_EQUAL(exit_lost, command.wait());
  nodes[0].resume();
  nodes[1].resume();
  const std::string errors = command.errors();
  TEST_MESSAGE("stderr: " << errors);
  TEST_ASSERT_TRUE(contains(errors, "could not be renewed in time"));
  TEST_ASSERT_TRUE(contains(errors, nodes.address(0)));
  TEST_ASSERT_TRUE(contains(errors, nodes.address(1)));
}

TEST_ON_NODES(test_a_lock_that_a_majority_has_dropped_should_end_the_command) {
  for (const char* const kind : {"mutex", "reentrant"}) {
    Running command(nodes.urls(), run_unguarded({"-l", "3", "--kind", kind}, "echo $$; exec sleep 100"));
    const pid_t child = command.line_of_pid();
    // Those that lose it are given it anew while a majority holds it: both at once.
    TEST_ASSERT_EQUAL(0, run_to_end(nodes.urls(), {"release", "--force", "lock"}));
    TEST_ASSERT_EQUAL(exit_lost, command.wait());
    TEST_ASSERT_FALSE(alive(child));
    TEST_ASSERT_TRUE(contains(command.errors(), "was lost"));
  }
}

TEST_ON_NODES(test_a_release_should_not_wait_for_a_node_that_is_silent) {
  Running command(nodes.urls(), run_unguarded({}, "echo up; exec sleep 100"));
  TEST_ASSERT_EQUAL("up", command.line());
  TEST_ASSERT_TRUE(eventually([&] { return nodes.holding() == 3; }));
  nodes[1].pause();
  command.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
  TEST_ASSERT_FALSE(contains(command.errors(), "not confirmed"));
  TEST_ASSERT_EQUAL("0", nodes[0].command("EXISTS lock"));
  TEST_ASSERT_EQUAL("0", nodes[2].command("EXISTS lock"));
  nodes[1].resume();
  // It was sent, and is executed all the same, long before the lease is over.
  TEST_ASSERT_TRUE(eventually([&] { return nodes[1].command("EXISTS lock") == "0"; }));
}

// ---- Refusals ----------------------------------------------------------------------------------------------------

TEST_ON_NODES(test_no_majority_should_fail_at_once_and_name_the_nodes) {
  nodes[0].stop();
  nodes[2].stop();
  std::string errors;
  TEST_ASSERT_EQUAL(exit_no_server, run_to_end(nodes.urls(), run_unguarded({}, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "no quorum"));
  TEST_ASSERT_TRUE(contains(errors, nodes.address(0)));
  TEST_ASSERT_FALSE(contains(errors, nodes.address(1)));
  TEST_ASSERT_TRUE(contains(errors, nodes.address(2)));
}

TEST_ON_NODES(test_one_server_that_is_given_twice_should_be_refused_with_both_names) {
  std::string errors;
  Words words = {"--url", nodes[0].tcp_url(), "--url", nodes[1].tcp_url(), "--url", nodes[0].unix_url()};
  TEST_ASSERT_EQUAL(exit_usage, run_to_end("", run_unguarded(words, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, nodes.address(0)));
  TEST_ASSERT_TRUE(contains(errors, nodes[0].socket_path()));
  TEST_ASSERT_FALSE(contains(errors, nodes.address(1)));
  TEST_ASSERT_EQUAL(0, nodes.holding());
}

TEST_ON_NODES(test_a_replica_of_a_node_should_be_refused) {
  const std::string port = std::to_string(nodes[0].port());
  nodes[1].command("REPLICAOF 127.0.0.1 " + port);
  TEST_ASSERT_TRUE(eventually([&] { return contains(nodes[1].command("INFO replication"), "master_link_status:up"); }));
  std::string errors;
  TEST_ASSERT_EQUAL(exit_usage, run_to_end(nodes.urls(), run_unguarded({}, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, nodes.address(0)));
  TEST_ASSERT_TRUE(contains(errors, nodes.address(1)));
}

TEST_ON_NODES(test_nodes_that_have_just_started_should_not_vote_until_a_lease_is_over) {
  std::string errors;
  TEST_ASSERT_EQUAL(exit_no_server,
                    run_to_end(nodes.urls(), run_script({"--max-lease", "3600", "-l", "30"}, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, nodes.address(0) + ") was restarted, votes in 3"));
  // With a short one they soon do.
  TEST_ASSERT_TRUE(eventually([&] {
    return run_to_end(nodes.urls(), run_script({"--max-lease", "0.5", "-l", "0.5"}, "exit 4")) == 4;
  }));
}

TEST_ON_NODES(test_a_wait_should_be_for_nodes_that_are_not_up_yet) {
  nodes[0].stop();
  nodes[1].stop();
  Running command(nodes.urls(), run_unguarded({"-w", "60"}, "echo up"));
  TEST_ASSERT_TRUE(command.says("waiting for lock: Fewer than a majority of the nodes answered"));
  nodes[0].start();
  TEST_ASSERT_EQUAL("up", command.line());
  TEST_ASSERT_EQUAL(0, command.wait());
}

TEST_ON_NODES(test_a_login_that_too_many_nodes_refuse_should_end_every_wait) {
  nodes[0].command("CONFIG SET requirepass other");
  TEST_ASSERT_EQUAL(5, run_to_end(nodes.urls(), run_unguarded({"-w", "60"}, "exit 5")));
  nodes[1].command("CONFIG SET requirepass other");
  for (const Words& options : {Words{}, Words{"-n"}, Words{"-w", "60"}}) {
    std::string errors;
    TEST_ASSERT_EQUAL(exit_no_permission, run_to_end(nodes.urls(), run_unguarded(options, "exit 1"), &errors));
    TEST_ASSERT_TRUE(contains(errors, nodes.address(0)));
    TEST_ASSERT_TRUE(contains(errors, nodes.address(1)));
  }
}

TEST_ON_NODES(test_a_password_should_never_be_shown) {
  for (std::size_t index = 0; index < 3; ++index) nodes[index].command("CONFIG SET requirepass right-secret");
  std::string urls;
  for (std::size_t index = 0; index < 3; ++index) urls += "redis://:wrong-secret@" + nodes.address(index) + " ";
  std::string errors;
  TEST_ASSERT_TRUE(run_to_end(urls, run_unguarded({}, "exit 0"), &errors) != 0);
  TEST_ASSERT_FALSE(contains(errors, "secret"));
  TEST_ASSERT_TRUE(run_to_end(urls, {"info", "lock"}, &errors) != 0);
  TEST_ASSERT_FALSE(contains(errors, "secret"));
}

// ---- info and release --------------------------------------------------------------------------------------------

TEST_ON_NODES(test_info_should_show_each_node_and_what_a_majority_says) {
  const std::string node[] = {"\nnode: " + nodes.address(0) + "\n", "\nnode: " + nodes.address(1) + "\n",
                              "\nnode: " + nodes.address(2) + "\n"};
  const std::string free = "state: free\n";
  const std::string held = "state: held\nkind: mutex\nowner: me\ncount: 1\nremaining: no expiry\n";
  const auto shown = [&](const std::string& first, const std::string& second, const std::string& third,
                         const std::string& majority) {
    return "name: lock\n" + node[0] + first + node[1] + second + node[2] + third + "\nmajority: " + majority + "\n";
  };
  TEST_ASSERT_EQUAL(shown(free, free, free, "free"), output_of(nodes.urls(), {"info", "lock"}, exit_free));
  nodes[0].command("SET lock me");
  TEST_ASSERT_EQUAL(shown(held, free, free, "free"), output_of(nodes.urls(), {"info", "lock"}, exit_free));
  nodes[2].command("SET lock me");
  TEST_ASSERT_EQUAL(shown(held, free, held, "held by me"), output_of(nodes.urls(), {"info", "lock"}, 0));
  nodes[1].stop();
  TEST_ASSERT_EQUAL(shown(held, "state: unknown\n", held, "held by me"), output_of(nodes.urls(), {"info", "lock"}, 0));
  nodes[2].command("DEL lock");
  TEST_ASSERT_EQUAL(shown(held, "state: unknown\n", free, "unknown"),
                    output_of(nodes.urls(), {"info", "lock"}, exit_no_server));
  nodes[0].command("DEL lock");
  TEST_ASSERT_EQUAL(shown(free, "state: unknown\n", free, "free"),
                    output_of(nodes.urls(), {"info", "lock"}, exit_free));
}

TEST_ON_NODES(test_release_by_force_should_tell_of_each_node) {
  std::string errors;
  nodes[0].command("SET lock me");
  TEST_ASSERT_EQUAL(0, run_to_end(nodes.urls(), {"release", "--force", "lock"}, &errors));
  TEST_ASSERT_TRUE(contains(errors, "released lock on " + nodes.address(0)));
  TEST_ASSERT_TRUE(contains(errors, "lock on " + nodes.address(1) + " was free"));
  TEST_ASSERT_EQUAL(exit_free, run_to_end(nodes.urls(), {"release", "--force", "lock"}));
  nodes[0].stop();
  nodes[1].stop();
  nodes[2].command("SET lock me");
  TEST_ASSERT_EQUAL(exit_no_server, run_to_end(nodes.urls(), {"release", "--force", "lock"}, &errors));
  TEST_ASSERT_TRUE(contains(errors, "released lock on " + nodes.address(2)));
  TEST_ASSERT_TRUE(contains(errors, "may still be held"));
}

// ---- The command line --------------------------------------------------------------------------------------------

TEST(test_hostile_command_lines_of_a_quorum_should_end_in_a_usage_error_with_a_clear_text) {
  const Words three = {"run", "--url", "redis://a", "--url", "redis://b", "--url", "redis://c"};
  const std::pair<Words, const char*> cases[] = {
      {{"--kind", "fair", "lock", "--", "true"}, "'fair' on several servers: its order and its counts"},
      {{"--kind", "semaphore", "lock", "--", "true"}, "'semaphore' on several servers"},
      {{"--kind", "read", "lock", "--", "true"}, "there is no 'read' on several servers: its order and its counts"},
      {{"--kind", "write", "lock", "--", "true"}, "do not agree on them; there are mutex, reentrant and fenced"},
      {{"--kind", "frob", "lock", "--", "true"}, "'frob' is no kind of lock"},
      {{"--kind", "reentrant", "--fence", "lock", "--", "true"}, "has no fence"},
      {{"-l", "31", "lock", "--", "true"}, "longer than --max-lease, 30 seconds"},
      {{"--max-lease", "10", "-l", "10.001", "lock", "--", "true"}, "longer than --max-lease, 10 seconds"},
      {{"--max-lease", "10", "lock", "--", "true"}, "longer than --max-lease"},
      {{"--max-lease", "0", "lock", "--", "true"}, "--max-lease: a lease has whole milliseconds"},
      {{"--max-lease", "nan", "lock", "--", "true"}, "--max-lease: 'nan' is no time"},
      {{"--max-lease", "-1", "lock", "--", "true"}, "is no time"},
      {{"--url", "redis://:hidden@b:6379", "lock", "--", "true"}, "--url: nodes 2 and 4 are both b:6379"},
      {{"--url", "redis://:hidden@d:x", "lock", "--", "true"}, "--url, number 4: "},
      {{"--url", "", "lock", "--", "true"}, "--url, number 4: "},
      {{"--url", "redis://d", "--url", "redis://e", "--url", "redis://f", "--url", "redis://g", "--url", "redis://h",
        "--url", "redis://i", "--url", "redis://j", "lock", "--", "true"},
       "at most 9 nodes, and these are 10"},
  };
  const auto expect_usage = [](const std::string& url, const Words& words, const std::string& text) {
    std::string errors;
    TEST_MESSAGE("expected: " << text);
    TEST_ASSERT_EQUAL(exit_usage, run_to_end(url, words, &errors));
    TEST_ASSERT_TRUE(contains(errors, text));
    TEST_ASSERT_TRUE(errors.rfind("holdfast: ", 0) == 0);
    TEST_ASSERT_FALSE(contains(errors, "hidden"));
  };
  for (const auto& [rest, text] : cases) {
    Words words = three;
    words.insert(words.end(), rest.begin(), rest.end());
    expect_usage("", words, text);
  }
  const Words run = {"run", "lock", "--", "true"};
  expect_usage("redis://a redis://:hidden@b:x", run, "HOLDFAST_URL, number 2: ");
  expect_usage("redis://a  redis://a", run, "HOLDFAST_URL: nodes 1 and 2 are both a:6379");
  expect_usage("  ", run, "HOLDFAST_URL: ");
  expect_usage("redis://a", {"run", "--max-lease", "10", "lock", "--", "true"}, "one server");
  expect_usage("redis://a", {"run", "--no-restart-guard", "lock", "--", "true"}, "one server");
  expect_usage("redis://a", {"info", "--max-lease", "10", "lock"}, "not expected");
}

TEST(test_help_should_tell_of_quorums) {
  const std::string help = output_of("", {"run", "--help"}, 0);
  for (const char* const word : {"--url URL", "--max-lease TIME", "--no-restart-guard", "quorum", "majority"})
    TEST_ASSERT_TRUE(contains(help, word));
  TEST_ASSERT_TRUE(contains(output_of("", {"info", "--help"}, 0), "majority"));
  TEST_ASSERT_TRUE(contains(output_of("", {"release", "--help"}, 0), "majority"));
}
