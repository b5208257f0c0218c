// SPDX-License-Identifier: MIT
//
// Which processes a run ends, and which it leaves alone: runs inside of runs, wardens that die, children of before.
#include "command_fixture.hpp"

#include <algorithm>

static void setUp() {}
static void tearDown() {}

namespace {

bool all_gone(const std::vector<pid_t>& processes) {
  return eventually([&] {
    for (const pid_t pid : processes)
      if (alive(pid)) return false;
    return true;
  });
}

// What a script starts that is hard to end: in the group, in a session of its own, orphaned, and without an environment. It
// says four ids, and waits.
constexpr char marked_brood[] =
    "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; sh -c '(setsid sleep 1000 >/dev/null & echo $!)'; "
    "setsid sh -c 'sleep 1000 & echo $!; wait' & wait";
constexpr char brood[] =
    "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; sh -c '(setsid sleep 1000 >/dev/null & echo $!)'; "
    "env -i setsid sleep 1000 & echo $!; wait";

// A run inside of a run: the inner one's command is `script`. The inner one's id is said before anything of that.
Words nested(const std::string& url, const std::string& script) {
  return {"run", "outer",        "--",  "sh",    "-c", "sh -c 'echo $$; exec \"$@\"' sh \"$@\" & wait",
          "sh",  command_path(), "run", "--url", url,  "inner",
          "--",  "sh",           "-c",  script};
}

struct Nest {
  Nest(const std::string& url, const std::string& script) : outer(url, nested(url, script)) {
    inner = outer.line_of_pid();
    for (int index = 0; index < 4; ++index) processes.push_back(outer.line_of_pid());
    processes.push_back(inner);
    outer_warden = await_warden_of(outer.pid());
    inner_warden = await_warden_of(inner);
  }
  Running outer;
  pid_t inner = 0;
  pid_t outer_warden = 0;
  pid_t inner_warden = 0;
  std::vector<pid_t> processes;  // Of the inner run, and that itself.
};

}  // namespace

// ---- Runs inside of runs -----------------------------------------------------------------------------------------

TEST_ON_SERVER(test_killing_the_outer_run_should_end_what_the_inner_one_started) {
  for (int turn = 0; turn < 5; ++turn) {
    Nest nest(server.unix_url(), brood);
    for (const pid_t pid : nest.processes) TEST_ASSERT_TRUE(alive(pid));
    nest.outer.signal(SIGKILL);
    TEST_ASSERT_TRUE(all_gone(nest.processes));
    TEST_ASSERT_TRUE(all_gone({nest.outer_warden, nest.inner_warden}));
    server.command("DEL outer inner");
  }
}

TEST_ON_SERVER(test_runs_and_wardens_that_die_in_any_order_should_leave_nothing) {
  // Each pair of the four, one a moment after the other. Where a warden is among them, its tree falls apart, and the mark in
  // the environment is all that is left to find it by.
  for (int first = 0; first < 4; ++first)
    for (int second = 0; second < 4; ++second) {
      if (first == second) continue;
      Nest nest(server.unix_url(), marked_brood);
      const pid_t whom[] = {nest.outer.pid(), nest.outer_warden, nest.inner, nest.inner_warden};
      TEST_MESSAGE("first " << first << ", second " << second);
      ::kill(whom[first], SIGKILL);
      (void)::poll(nullptr, 0, 20);
      if (alive(whom[second])) ::kill(whom[second], SIGKILL);
      // A holdfast that lives on ends by itself.
      TEST_ASSERT_TRUE(all_gone(nest.processes));
      TEST_ASSERT_TRUE(all_gone({nest.outer_warden, nest.inner_warden}));
      (void)nest.outer.wait();
      server.command("DEL outer inner");
    }
}

// As by `pkill -9 holdfast`: all at once, in any order.
TEST_ON_SERVER(test_runs_and_wardens_that_die_together_should_leave_nothing) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    Nest nest(server.unix_url(), marked_brood);
    const pid_t whom[] = {nest.outer.pid(), nest.outer_warden, nest.inner, nest.inner_warden};
    TEST_MESSAGE("order " << order[0] << order[1] << order[2] << order[3]);
    for (const int index : order) ::kill(whom[index], SIGKILL);
    TEST_ASSERT_TRUE(all_gone(nest.processes));
    TEST_ASSERT_TRUE(all_gone({nest.outer_warden, nest.inner_warden}));
    (void)nest.outer.wait();
    server.command("DEL outer inner");
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_ON_SERVER(test_a_run_should_leave_no_process_of_its_own) {
  for (const bool killed : {false, true}) {
    Running command(server.unix_url(), run_script({}, "echo up; exec sleep 1000"));
    TEST_ASSERT_EQUAL("up", command.line());
    const std::vector<pid_t> own = children_of(command.pid());
    TEST_ASSERT_EQUAL(std::size_t{2}, own.size());
    command.signal(killed ? SIGKILL : SIGTERM);
    (void)command.wait();
    TEST_ASSERT_TRUE(all_gone(own));
    server.command("DEL lock");
  }
}

TEST_ON_SERVER(test_three_runs_inside_of_each_other_should_end_with_the_first) {
  const std::string run = command_path() + " run ";
  Running command(server.unix_url(), run_script({}, run + "b -- sh -c '" + run + "c -- sh -c \"$SCRIPT\" & wait'"),
                  {.environment = {{"SCRIPT", "sleep 1000 & echo $!; wait"}}});
  const pid_t innermost = command.line_of_pid();
  TEST_ASSERT_TRUE(alive(innermost));
  command.signal(SIGKILL);
  TEST_ASSERT_TRUE(all_gone({innermost}));
}

TEST_ON_SERVER(test_an_inner_run_that_ends_should_end_nothing_of_the_outer_one) {
  const std::string run = command_path() + " run --url " + server.unix_url() + " inner -- true";
  Running command(server.unix_url(), run_script({}, "sleep 1000 & echo $!; " + run + "; echo done; wait"));
  const pid_t sibling = command.line_of_pid();
  TEST_ASSERT_EQUAL("done", command.line());
  TEST_ASSERT_TRUE(alive(sibling));
  command.signal(SIGTERM);
  (void)command.wait();
  TEST_ASSERT_FALSE(alive(sibling));
}

// ---- A warden that dies ------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_run_whose_warden_is_killed_should_end_and_say_so) {
  Running command(server.unix_url(),
                  run_script({}, "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; echo $$; wait"));
  std::vector<pid_t> processes;
  for (int index = 0; index < 3; ++index) processes.push_back(command.line_of_pid());
  ::kill(await_warden_of(command.pid()), SIGKILL);
  TEST_ASSERT_EQUAL(128 + SIGKILL, command.wait());
  for (const pid_t pid : processes) TEST_ASSERT_FALSE(alive(pid));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
  TEST_ASSERT_TRUE(contains(command.errors(), "the process that guards the command, holdfast-warden, was killed"));
}

TEST_ON_SERVER(test_the_death_of_a_warden_should_be_noticed_while_the_server_is_silent) {
  Running command(server.unix_url(), run_script({"-l", "6"}, "setsid sleep 1000 & echo $!; wait"));
  const pid_t in_session = command.line_of_pid();
  const pid_t warden = await_warden_of(command.pid());
  server.pause();
  (void)::poll(nullptr, 0, 2100);  // The renewal at a third of the lease blocks now.
  const Instant begin = Client::now();
  ::kill(warden, SIGKILL);
  TEST_ASSERT_TRUE(all_gone({in_session}));
  TEST_ASSERT_TRUE(Client::now() - begin < 700ms);
  server.resume();
  TEST_ASSERT_EQUAL(128 + SIGKILL, command.wait());
}

TEST_ON_SERVER(test_a_stopped_warden_should_be_continued) {
  Running command(server.unix_url(), run_script({}, "echo up; exec sleep 1000"));
  TEST_ASSERT_EQUAL("up", command.line());
  const pid_t warden = await_warden_of(command.pid());
  ::kill(warden, SIGSTOP);
  command.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
}

// ---- Children of before ------------------------------------------------------------------------------------------

namespace {

// sh -c 'SERVICE & ... exec holdfast run ...': the service was there before. It says an id.
std::string behind(const std::string& service, const std::string& url, const std::string& options,
                   const std::string& script) {
  return service + " exec " + command_path() + " run --url " + url + " " + options + " lock -- sh -c '" + script + "'";
}

// They go with the test, whatever it finds.
struct Services : std::vector<pid_t> {
  Services() = default;
  ~Services() {
    for (const pid_t pid : *this)
      if (pid > 0) ::kill(pid, SIGKILL);
  }
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;
};

// A shell in the place of a holdfast, which it becomes.
class Shell : public Running {
 public:
  explicit Shell(const std::string& line) : Running("", {"-c", line}, {.path = "/bin/sh"}) {}
};

}  // namespace

TEST_ON_SERVER(test_children_of_before_should_outlive_every_end_of_a_run) {
  const std::string service = "sleep 1000 & echo $!;";
  const std::string orphan = "sh -c 'sleep 1000 & echo $!';";
  const std::string url = server.unix_url();
  Services before;
  {
    // The command ends by itself, and leaves something behind.
    Shell shell(behind(service + orphan, url, "-k 0.2", "sleep 1000 & echo $!; echo up; exit 5"));
    for (int index = 0; index < 2; ++index) before.push_back(shell.line_of_pid());
    const pid_t left = shell.line_of_pid();
    TEST_ASSERT_EQUAL(5, shell.wait());
    TEST_ASSERT_FALSE(alive(left));
  }
  {
    // The lock is lost, and the command is stubborn.
    Shell shell(behind(service, url, "-l 0.5", "trap \"\" TERM; echo up; while :; do sleep 0.02; done"));
    before.push_back(shell.line_of_pid());
    TEST_ASSERT_EQUAL("up", shell.line());
    server.command("DEL lock");
    TEST_ASSERT_EQUAL(exit_lost, shell.wait());
  }
  {
    // It is killed.
    Shell shell(behind(service, url, "", "echo $$; exec sleep 1000"));
    before.push_back(shell.line_of_pid());
    const pid_t child = shell.line_of_pid();
    shell.signal(SIGKILL);
    TEST_ASSERT_TRUE(all_gone({child}));
  }
  server.command("DEL lock");
  {
    // Its warden is.
    Shell shell(behind(service, url, "", "echo up; exec sleep 1000"));
    before.push_back(shell.line_of_pid());
    TEST_ASSERT_EQUAL("up", shell.line());
    ::kill(await_warden_of(shell.pid()), SIGKILL);
    TEST_ASSERT_EQUAL(128 + SIGKILL, shell.wait());
  }
  (void)::poll(nullptr, 0, 100);
  for (const pid_t pid : before) TEST_ASSERT_TRUE(alive(pid));
}

// A service that was there before goes on starting workers, and leaves one an orphan, while the command runs.
TEST_ON_SERVER(test_orphans_of_children_of_before_should_outlive_the_run) {
  const std::string service =
      "mkfifo " + server.socket_path() + ".go; sh -c 'read x <" + server.socket_path() + ".go; sleep 1000 & echo $!' &";
  Shell shell(behind(service, server.unix_url(), "", "echo up; echo >" + server.socket_path() + ".go; exec sleep 2"));
  TEST_ASSERT_EQUAL("up", shell.line());
  Services orphans;
  orphans.push_back(shell.line_of_pid());
  TEST_ASSERT_TRUE(alive(orphans[0]));
  TEST_ASSERT_EQUAL(0, shell.wait());
  (void)::poll(nullptr, 0, 50);
  TEST_ASSERT_TRUE(alive(orphans[0]));
}

TEST_ON_SERVER(test_children_of_before_should_not_stay_zombies) {
  Shell shell(behind("sleep 0.3 & echo $!;", server.unix_url(), "", "echo up; exec sleep 1000"));
  const pid_t service = shell.line_of_pid();
  TEST_ASSERT_EQUAL("up", shell.line());
  TEST_ASSERT_TRUE(eventually([&] { return state_of(service) == '?'; }));
  shell.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, shell.wait());
}
