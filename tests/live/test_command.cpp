// SPDX-License-Identifier: MIT
//
// The holdfast command on a real server: HOLDFAST_COMMAND says where it is.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "command_fixture.hpp"
#include "live_fixture.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr const char* kinds[] = {"mutex", "reentrant", "fenced", "read", "write"};
constexpr char channel[] = "redisson_lock__channel:{lock}";
constexpr char read_write_channel[] = "redisson_rwlock:{lock}";

bool is_read_write(const std::string& kind) { return kind == "read" || kind == "write"; }
const char* channel_of(const std::string& kind) { return is_read_write(kind) ? read_write_channel : channel; }

// Until so many wait for `lock` by push.
void await_subscribers(const RedisServer& server, int count, const std::string& on = channel) {
  const std::string expected = on + " " + std::to_string(count);
  TEST_ASSERT_TRUE(eventually([&] { return server.command("PUBSUB NUMSUB " + on) == expected; }));
}

}  // namespace

// ---- The command's own end ---------------------------------------------------------------------------------------

TEST_ON_SERVER(test_exit_status_should_be_passed_through_and_the_lock_released) {
  for (const int code : {0, 1, 7, 255}) {
    TEST_ASSERT_EQUAL(code, run_to_end(server.unix_url(), run_script({}, "exit " + std::to_string(code))));
    TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
  }
}

TEST_ON_SERVER(test_command_ended_by_a_signal_should_give_128_and_its_number) {
  for (const int number : {SIGTERM, SIGKILL, SIGSEGV})
    TEST_ASSERT_EQUAL(128 + number, run_to_end(server.unix_url(),
                                               run_script({}, "ulimit -c 0; kill -" + std::to_string(number) + " $$")));
}

TEST_ON_SERVER(test_command_that_cannot_be_executed_should_give_126_or_127) {
  std::string errors;
  TEST_ASSERT_EQUAL(127, run_to_end(server.unix_url(), {"run", "lock", "--", "/nonexistent/x"}, &errors));
  TEST_ASSERT_TRUE(contains(errors, "cannot execute '/nonexistent/x'"));
  TEST_ASSERT_EQUAL(127, run_to_end(server.unix_url(), {"run", "lock", "--", ""}));
  TEST_ASSERT_EQUAL(126, run_to_end(server.unix_url(), {"run", "lock", "--", "/"}));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
}

TEST_ON_SERVER(test_name_and_token_should_be_in_the_environment_and_on_the_server) {
  Running command(server.unix_url(), run_script({}, "echo $HOLDFAST_NAME; echo $HOLDFAST_TOKEN; sleep 100"));
  TEST_ASSERT_EQUAL("lock", command.line());
  const std::string token = command.line();
  TEST_ASSERT_EQUAL(32u, token.size());
  TEST_ASSERT_EQUAL(token, server.command("GET lock"));
  command.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
}

TEST_ON_SERVER(test_name_of_any_bytes_should_be_the_key_byte_for_byte) {
  for (const std::string& name :
       {std::string("{}"), std::string("[a,b]"), std::string("'q'"), std::string("\""), std::string(" "),
        std::string("\n"), std::string("\xff\x01\x80"), std::string("%%"), std::string("x=y"), std::string(256, 'n')}) {
    Running command(server.unix_url(), {"run", name, "--", "sh", "-c", "echo $HOLDFAST_TOKEN; sleep 100"});
    const std::string token = command.line();
    TEST_ASSERT_EQUAL(token, server.command({"GET", name}));
    command.signal(SIGTERM);
    TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
  }
}

TEST_ON_SERVER(test_name_that_begins_with_a_dash_should_go_behind_a_mark_of_its_own) {
  for (const char* name : {"-n", "--", "-", "--help"})
    TEST_ASSERT_EQUAL(3, run_to_end(server.unix_url(), {"run", "--", name, "--", "sh", "-c",
                                                        "test \"$HOLDFAST_NAME\" = \"$0\" && exit 3", name}));
}

TEST_ON_SERVER(test_words_of_the_command_should_never_be_taken_for_options) {
  TEST_ASSERT_EQUAL(
      4, run_to_end(server.unix_url(), {"run", "lock", "--", "sh", "-c", "exit $#", "--", "-n", "--", "-w", "--help"}));
}

TEST_ON_SERVER(test_command_should_get_default_signals_and_no_descriptor_of_ours) {
  Running command(server.unix_url(), run_script({}, "grep -E 'Sig(Blk|Ign)' /proc/self/status; echo /proc/self/fd/*"));
  TEST_ASSERT_EQUAL("SigBlk:\t0000000000000000", command.line());
  TEST_ASSERT_EQUAL("SigIgn:\t0000000000000000", command.line());
  // The shell opens the folder itself.
  TEST_ASSERT_EQUAL("/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3", command.line());
  TEST_ASSERT_EQUAL(0, command.wait());
}

TEST_ON_SERVER(test_command_that_was_waited_for_by_push_should_get_no_descriptor_of_ours_either) {
  server.command("SET lock foreign");
  Running command(server.unix_url(), run_script({}, "echo /proc/self/fd/*"));
  await_subscribers(server, 1);
  server.command("DEL lock");
  TEST_ASSERT_EQUAL("/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3", command.line());
  TEST_ASSERT_EQUAL(0, command.wait());
}

TEST_ON_SERVER(test_closed_standard_descriptors_should_not_become_our_socket) {
  Running command("", {"--version"});
  TEST_ASSERT_EQUAL("holdfast 0.1.0", command.line());
  TEST_ASSERT_EQUAL(0, command.wait());
  const std::string line =
      command_path() + " run -v --url " + server.unix_url() + " lock -- sh -c 'exit 5' <&- >&- 2>&-";
  const int status = std::system(line.c_str());
  TEST_ASSERT_EQUAL(5, WEXITSTATUS(status));
}

// ---- Kinds -------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_each_kind_should_have_its_type_and_exclude_every_kind) {
  struct Case {
    const char* kind;
    const char* type;
    const char* question;
    const char* before_token;
    const char* behind_token;
  };
  const Case cases[] = {{"mutex", "string", "GET lock", "", ""},
                        {"reentrant", "hash", "HKEYS lock", "", ""},
                        {"fenced", "hash", "HKEYS lock", "", ""},
                        {"read", "hash", "HKEYS lock", "mode ", ""},
                        {"write", "hash", "HKEYS lock", "mode ", ":write"}};
  for (const auto& [kind, type, question, before_token, behind_token] : cases) {
    Running command(server.unix_url(),
                    run_script({"--kind", kind}, "echo $HOLDFAST_KIND; echo $HOLDFAST_TOKEN; exec sleep 100"));
    TEST_ASSERT_EQUAL(std::string(kind), command.line());
    const std::string token = command.line();
    TEST_ASSERT_EQUAL(std::string(type), server.command("TYPE lock"));
    TEST_ASSERT_EQUAL(before_token + token + behind_token, server.command(question));
    for (const char* const other : kinds) {
      const bool readers = kind == std::string("read") && other == std::string("read");
      TEST_ASSERT_EQUAL(readers ? 1 : exit_not_acquired,
                        run_to_end(server.unix_url(), run_script({"-n", "--kind", other}, "exit 1")));
    }
    command.signal(SIGTERM);
    TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
    TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
  }
}

TEST_ON_SERVER(test_readers_should_run_beside_each_other_and_a_writer_after_the_last_of_them) {
  const std::string go_on = "echo up; exec sleep 100";
  Running first(server.unix_url(), run_script({"--kind", "read"}, go_on));
  Running second(server.unix_url(), run_script({"--kind", "read"}, go_on));
  TEST_ASSERT_EQUAL("up", first.line());
  TEST_ASSERT_EQUAL("up", second.line());
  TEST_ASSERT_TRUE(contains(output_of(server.unix_url(), {"info", "lock"}, 0), "\nkind: read\n"));
  TEST_ASSERT_TRUE(contains(output_of(server.unix_url(), {"info", "lock"}, 0), "\nowners: 2\n"));
  Running writer(server.unix_url(), run_script({"--kind", "write"}, go_on));
  await_subscribers(server, 1, read_write_channel);
  first.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, first.wait());
  TEST_ASSERT_EQUAL("read", server.command("HGET lock mode"));
  const Instant begin = Client::now();
  second.signal(SIGTERM);
  TEST_ASSERT_EQUAL("up", writer.line());
  TEST_ASSERT_TRUE(Client::now() - begin < 5s);  // Half of what a waiter sleeps when nobody wakes it.
  TEST_ASSERT_EQUAL(128 + SIGTERM, second.wait());
  TEST_ASSERT_EQUAL("write", server.command("HGET lock mode"));
  TEST_ASSERT_TRUE(contains(output_of(server.unix_url(), {"info", "lock"}, 0), "\nkind: write\n"));
  // One message for both, and both run at once.
  Running third(server.unix_url(), run_script({"--kind", "read"}, go_on));
  Running fourth(server.unix_url(), run_script({"--kind", "read"}, go_on));
  await_subscribers(server, 2, read_write_channel);
  const Instant let_go = Client::now();
  writer.signal(SIGTERM);
  TEST_ASSERT_EQUAL("up", third.line());
  TEST_ASSERT_EQUAL("up", fourth.line());
  TEST_ASSERT_TRUE(Client::now() - let_go < 5s);
  TEST_ASSERT_EQUAL(128 + SIGTERM, writer.wait());
  for (Running* const reader : {&third, &fourth}) {
    reader->signal(SIGTERM);
    TEST_ASSERT_EQUAL(128 + SIGTERM, reader->wait());
  }
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_as_many_as_there_are_permits_should_run_at_once) {
  const Words options = {"--kind", "semaphore", "--permits", "2"};
  const std::string go_on = "echo $HOLDFAST_KIND; echo $HOLDFAST_TOKEN; exec sleep 100";
  Running first(server.unix_url(), run_script(options, go_on));
  TEST_ASSERT_EQUAL("semaphore", first.line());
  const std::string token = first.line();
  std::string text = output_of(server.unix_url(), {"info", "lock"}, exit_free);
  TEST_ASSERT_TRUE(contains(
      text, "name: lock\nstate: free\nkind: semaphore\npermits: 2\ntaken: 1\nowner: " + token + "\nremaining: "));
  Running second(server.unix_url(), run_script(options, go_on));
  TEST_ASSERT_EQUAL("semaphore", second.line());
  text = output_of(server.unix_url(), {"info", "lock"}, 0);
  TEST_ASSERT_TRUE(contains(text, "\nstate: held\nkind: semaphore\npermits: 2\ntaken: 2\nowner: " + token));

  std::string errors;
  Words at_once = options;
  at_once.emplace_back("-n");
  TEST_ASSERT_EQUAL(exit_not_acquired, run_to_end(server.unix_url(), run_script(at_once, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "it is held by " + token + " and 1 more, for "));
  Running third(server.unix_url(), run_script(options, go_on));
  await_subscribers(server, 1, "redisson_sc:{lock}");
  const Instant begin = Client::now();
  first.signal(SIGTERM);
  TEST_ASSERT_EQUAL("semaphore", third.line());
  TEST_ASSERT_TRUE(Client::now() - begin < 5s);  // Half of what a waiter sleeps when nobody wakes it.
  TEST_ASSERT_EQUAL(128 + SIGTERM, first.wait());
  for (Running* const run : {&second, &third}) {
    run->signal(SIGTERM);
    TEST_ASSERT_EQUAL(128 + SIGTERM, run->wait());
  }
  TEST_ASSERT_EQUAL("2", server.command("GET lock"));
  TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
  TEST_ASSERT_TRUE(contains(output_of(server.unix_url(), {"info", "lock"}, 0),
                            "\nnote: or it is a semaphore, and all 2 permits are free\n"));
}

TEST_ON_SERVER(test_info_should_say_that_a_lock_may_stay_where_nobody_uses_it) {
  server.command("HSET lock 6ba7b810-9dad-41d1-80b4-00c04fd430c8:-17 1");
  TEST_ASSERT_TRUE(contains(output_of(server.unix_url(), {"info", "lock"}, 0),
                            "\nnote: it may stay where nobody uses it; a waiter recalls it\n"));
  server.command("DEL lock");
  server.command("HSET lock 6ba7b810-9dad-41d1-80b4-00c04fd430c8:17 1");
  TEST_ASSERT_FALSE(contains(output_of(server.unix_url(), {"info", "lock"}, 0), "note"));
}

TEST_ON_SERVER(test_who_waits_for_a_fair_lock_should_come_in_order_and_be_listed) {
  const Words options = {"--kind", "fair", "--fence"};
  const std::string go_on = "echo $HOLDFAST_TOKEN; echo $HOLDFAST_FENCE; exec sleep 100";
  Running first(server.unix_url(), run_script(options, go_on));
  const std::string token = first.line();
  const long long fence = std::stoll(first.line());
  Running second(server.unix_url(), run_script(options, go_on));
  TEST_ASSERT_TRUE(eventually([&] { return server.command("ZCARD holdfast_queue:{lock}") == "1"; }));
  const std::string next = server.command("ZRANGE holdfast_queue:{lock} 0 0");
  Running third(server.unix_url(), run_script(options, go_on));
  TEST_ASSERT_TRUE(eventually([&] { return server.command("ZCARD holdfast_queue:{lock}") == "2"; }));
  const std::string text = output_of(server.unix_url(), {"info", "lock"}, 0);
  TEST_ASSERT_TRUE(contains(text, "\nkind: reentrant\nowner: " + token + "\ncount: 1\nremaining: "));
  TEST_ASSERT_TRUE(contains(text, "\nwaiting: 2\nwaiter: " + next + " for "));
  TEST_ASSERT_TRUE(contains(text, " seconds, heard of "));
  std::string errors;
  Words at_once = options;
  at_once.emplace_back("-n");
  TEST_ASSERT_EQUAL(exit_not_acquired, run_to_end(server.unix_url(), run_script(at_once, "exit 1"), &errors));
  first.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, first.wait());
  TEST_ASSERT_EQUAL(next, second.line());
  TEST_ASSERT_TRUE(std::stoll(second.line()) > fence);
  second.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, second.wait());
  (void)third.line();
  third.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, third.wait());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS lock holdfast_queue:{lock}"));
}

TEST_ON_SERVER(test_another_number_of_permits_should_be_said_at_once) {
  std::string errors;
  TEST_ASSERT_EQUAL(exit_usage, run_to_end(server.unix_url(), run_script({"--kind", "semaphore"}, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "has another number of permits than was asked for, or none was set"));
  TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), run_script({"--kind", "semaphore", "--permits", "3"}, "exit 0")));
  TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), run_script({"--kind", "semaphore"}, "exit 0")));
  TEST_ASSERT_EQUAL(exit_usage, run_to_end(server.unix_url(),
                                           run_script({"--kind", "semaphore", "--permits", "2"}, "exit 1"), &errors));
  TEST_ASSERT_EQUAL("3", server.command("GET lock"));
}

// It would wait for its own end; where there is a permit more, it does not.
TEST_ON_SERVER(test_a_run_inside_of_the_run_that_has_the_last_permit_should_be_told_so) {
  const auto inner = [&](const char* permits) {
    return run_script({"--kind", "semaphore", "--permits", permits},
                      std::string(command_path()) + " run --kind semaphore lock -- true");
  };
  TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), inner("2")));
  server.command("DEL lock");
  TEST_ASSERT_EQUAL(exit_usage, run_to_end(server.unix_url(), inner("1")));
}

TEST_ON_SERVER(test_forced_release_should_give_every_permit_back) {
  server.command("SET lock 1");
  server.command("ZADD {lock}:timeout 9999999999999 one 9999999999999 two");
  RawConnection listener(server.socket_path());
  (void)listener.command("SUBSCRIBE redisson_sc:{lock}");
  TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), {"release", "--force", "lock"}));
  TEST_ASSERT_EQUAL("3", server.command("GET lock"));
  TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL("message redisson_sc:{lock} 3", listener.command("PING"));
}

TEST_ON_SERVER(test_without_a_kind_the_lock_should_be_a_mutex) {
  TEST_ASSERT_EQUAL("mutex\n", output_of(server.unix_url(), run_script({}, "echo $HOLDFAST_KIND"), 0));
}

TEST_ON_SERVER(test_fence_should_grow_from_run_to_run) {
  for (const Words& options : {Words{"--kind", "fenced"}, Words{"--fence"}, Words{"--fence", "--kind", "fenced"}}) {
    long long last = 0;
    for (int turn = 0; turn < 3; ++turn) {
      Running command(server.unix_url(), run_script(options, "echo $HOLDFAST_FENCE"));
      const std::string fence = command.line();
      TEST_ASSERT_EQUAL(std::string::npos, fence.find_first_not_of("0123456789"));
      TEST_ASSERT_TRUE(std::strtoll(fence.c_str(), nullptr, 10) > last);
      last = std::strtoll(fence.c_str(), nullptr, 10);
      TEST_ASSERT_EQUAL(fence, server.command("GET redisson_lock_token:{lock}"));
      TEST_ASSERT_EQUAL(0, command.wait());
    }
    TEST_ASSERT_TRUE(last > 0);
  }
}

TEST_ON_SERVER(test_an_inherited_fence_should_never_pass_for_ours) {
  const std::string tell = "echo ${HOLDFAST_FENCE-none}";
  for (const char* const kind : {"mutex", "reentrant", "read", "write"}) {
    const Words inner = {command_path(), "run", "--kind", kind, "lock", "--", "sh", "-c", tell};
    Words words = {"run", "--kind", "fenced", "outer", "--", "sh", "-c", tell + "; \"$@\"", "sh"};
    words.insert(words.end(), inner.begin(), inner.end());
    Running command(server.unix_url(), words);
    TEST_ASSERT_TRUE(command.line() != "none");
    TEST_ASSERT_EQUAL("none", command.line());
    TEST_ASSERT_EQUAL(0, command.wait());
  }
}

TEST_ON_SERVER(test_verbose_should_tell_the_fence) {
  Running command(server.unix_url(), run_script({"-v", "--kind", "fenced"}, "echo $HOLDFAST_FENCE"));
  const std::string fence = command.line();
  TEST_ASSERT_EQUAL(0, command.wait());
  TEST_ASSERT_TRUE(contains(command.errors(), "its fence is " + fence));
}

// ---- Waiting -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_without_waiting_a_busy_lock_should_give_the_chosen_exit_code) {
  server.command("SET lock foreign");
  TEST_ASSERT_EQUAL(exit_not_acquired, run_to_end(server.unix_url(), run_script({"-n"}, "exit 1")));
  TEST_ASSERT_EQUAL(33, run_to_end(server.unix_url(), run_script({"-n", "-E", "33"}, "exit 1")));
  TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), run_script({"-n", "-E", "0"}, "exit 1")));
  TEST_ASSERT_EQUAL("foreign", server.command("GET lock"));
}

TEST_ON_SERVER(test_a_wait_should_last_as_long_as_it_was_said) {
  server.command("SET lock foreign");
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL(9, run_to_end(server.unix_url(), run_script({"-w", "0.5", "-E", "9"}, "exit 1")));
  const Duration taken = Client::now() - begin;
  TEST_ASSERT_TRUE(taken >= at_least(500ms));
  TEST_ASSERT_TRUE(taken < 500ms + patience / 4);
}

TEST_ON_SERVER(test_a_waiter_should_run_when_the_lock_is_let_go) {
  Running first(server.unix_url(), run_script({}, "echo up; exec sleep 100"));
  TEST_ASSERT_EQUAL("up", first.line());
  Running second(server.unix_url(), run_script({}, "echo late"));
  Running third(server.unix_url(), run_script({"-w", "20"}, "echo late"));
  first.signal(SIGINT);
  TEST_ASSERT_EQUAL(128 + SIGINT, first.wait());
  TEST_ASSERT_EQUAL("late", second.line());
  TEST_ASSERT_EQUAL("late", third.line());
  TEST_ASSERT_EQUAL(0, second.wait());
  TEST_ASSERT_EQUAL(0, third.wait());
}

TEST_ON_SERVER(test_a_signal_while_waiting_should_end_the_wait_and_leave_nothing) {
  server.command("SET lock foreign");
  for (const char* const kind : kinds)
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
      Running command(server.unix_url(), run_script({"--kind", kind}, "exit 1"));
      await_subscribers(server, 1, channel_of(kind));
      command.signal(number);
      TEST_ASSERT_EQUAL(128 + number, command.wait());
      TEST_ASSERT_TRUE(eventually([&] { return !contains(server.command("CLIENT LIST"), "name=holdfast"); }));
    }
  TEST_ASSERT_EQUAL("foreign", server.command("GET lock"));
}

TEST_ON_SERVER(test_a_signal_at_any_instant_should_leave_no_lock_and_no_process) {
  // The instants are spread over connecting, acquiring, forking and running.
  for (int step = 0; step < 30; ++step) {
    Running command(server.unix_url(), run_script({"-n", "--kind", kinds[step % 5]}, "sleep 1000"));
    const timespec delay = {.tv_sec = 0, .tv_nsec = step * 300'000};
    ::nanosleep(&delay, nullptr);
    command.signal(SIGTERM);
    const int code = command.wait();
    // Before our handler is there, the signal has its default effect.
    TEST_ASSERT_TRUE((code == 128 + SIGTERM || code == -SIGTERM));
    TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
  }
}

TEST_ON_SERVER(test_a_waiter_of_any_kind_should_be_woken_by_a_release) {
  for (const char* const kind : kinds) {
    const std::string heard_on = channel_of(kind);
    RawConnection listener(server.socket_path());
    TEST_ASSERT_EQUAL("subscribe " + heard_on + " 1", listener.command("SUBSCRIBE " + heard_on));
    const bool reads = kind == std::string("read");  // It has no longer lease, and waits for none of its kind.
    Running first(server.unix_url(),
                  run_script({"--kind", kind, "-l", reads ? "30" : "3600"}, "echo up; exec sleep 100"));
    TEST_ASSERT_EQUAL("up", first.line());
    Running second(server.unix_url(), run_script({"--kind", reads ? "write" : kind}, "echo late"));
    await_subscribers(server, 2, heard_on);
    first.signal(SIGTERM);
    const Instant begin = Client::now();
    TEST_ASSERT_EQUAL("late", second.line());
    TEST_ASSERT_TRUE(Client::now() - begin < 5s);  // Half of what a waiter of a hash kind sleeps when nobody wakes it.
    TEST_ASSERT_EQUAL(0, second.wait());
    // A mutex asks by itself so often that only the message tells.
    const std::string message = kind == std::string("write") ? "1" : "0";
    TEST_ASSERT_EQUAL("message " + heard_on + " " + message, listener.command("PING"));
  }
}

TEST_ON_SERVER(test_a_mutex_that_was_let_go_of_silently_should_not_be_waited_for_as_long_as_the_others) {
  server.command("SET lock foreign");
  Running command(server.unix_url(), run_script({}, "echo late"));
  await_subscribers(server, 1);
  server.command("DEL lock");
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL("late", command.line());
  TEST_ASSERT_TRUE(Client::now() - begin < 5s);
  TEST_ASSERT_EQUAL(0, command.wait());
}

TEST(test_no_server_should_fail_at_once) {
  const Instant begin = Client::now();
  std::string errors;
  TEST_ASSERT_EQUAL(exit_no_server, run_to_end("unix:///nonexistent/socket", run_script({}, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "no connection to /nonexistent/socket"));
  // Whoever waits with an end waits for it: see test_command_waiting.cpp.
  for (const Words& options : {Words{}, Words{"-n"}})
    TEST_ASSERT_EQUAL(exit_no_server, run_to_end("redis://127.0.0.1:1", run_script(options, "exit 1")));
  TEST_ASSERT_TRUE(Client::now() - begin < patience / 2);
}

TEST_ON_SERVER(test_a_refused_password_should_be_told_and_never_shown, "--requirepass", "right-secret") {
  const std::string place = server.socket_path();
  std::string errors;
  TEST_ASSERT_EQUAL(exit_no_permission, run_to_end("unix://:wrong-secret@" + place, run_script({}, "exit 1"), &errors));
  TEST_ASSERT_FALSE(contains(errors, "secret"));
  TEST_ASSERT_EQUAL(exit_no_permission, run_to_end("unix://" + place, run_script({}, "exit 1")));
  TEST_ASSERT_EQUAL(6, run_to_end("unix://:right-secret@" + place, run_script({"-v"}, "exit 6"), &errors));
  TEST_ASSERT_FALSE(contains(errors, "secret"));
}

TEST_ON_SERVER(test_a_server_that_repeats_the_password_should_not_make_us_repeat_it, "--rename-command", "AUTH",
               "\"\"") {
  std::string errors;
  TEST_ASSERT_TRUE(run_to_end("unix://:my-secret@" + server.socket_path(), run_script({}, "exit 0"), &errors) != 0);
  TEST_ASSERT_FALSE(contains(errors, "secret"));
}

// ---- Keeping and losing ------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_the_lock_should_be_renewed_as_long_as_the_command_runs) {
  // Beside each other, each under a name of its own. Two thirds of the lease are for a busy machine.
  std::vector<std::unique_ptr<Running>> commands;
  for (const char* const kind : kinds)
    commands.push_back(std::make_unique<Running>(server.unix_url(), Words{"run", "-l", "2", "--kind", kind, kind, "--",
                                                                          "sh", "-c", "echo up; sleep 2.8; exit 5"}));
  for (const auto& command : commands) TEST_ASSERT_EQUAL("up", command->line());
  for (const auto& command : commands) TEST_ASSERT_EQUAL(5, command->wait());
  for (const char* const kind : kinds) TEST_ASSERT_EQUAL("0", server.command(std::string("EXISTS ") + kind));
}

TEST_ON_SERVER(test_a_lost_lock_should_end_a_stubborn_command_and_give_the_code_of_loss) {
  Running command(server.unix_url(),
                  run_script({"-l", "1", "-k", "0.3"}, "trap 'echo term' TERM; echo $$; while :; do sleep 0.02; done"));
  const pid_t child = command.line_of_pid();
  TEST_ASSERT_TRUE(alive(child));
  server.command("SET lock foreign");
  TEST_ASSERT_EQUAL("term", command.line());
  const Instant term = Client::now();
  TEST_ASSERT_EQUAL(exit_lost, command.wait());
  TEST_ASSERT_TRUE(Client::now() - term >= 250ms);
  TEST_ASSERT_FALSE(alive(child));
  TEST_ASSERT_EQUAL("foreign", server.command("GET lock"));
  TEST_ASSERT_TRUE(contains(command.errors(), "was lost"));
}

TEST_ON_SERVER(test_a_lost_lock_should_let_the_command_tidy_up) {
  Running command(
      server.unix_url(),
      run_script({"-l", "1", "-k", "0.5"}, "trap 'echo tidied; exit 0' TERM; echo up; while :; do sleep 0.02; done"));
  TEST_ASSERT_EQUAL("up", command.line());
  server.command("DEL lock");
  TEST_ASSERT_EQUAL("tidied", command.line());
  TEST_ASSERT_EQUAL(exit_lost, command.wait());
}

TEST_ON_SERVER(test_a_loss_found_at_the_release_should_be_told) {
  for (const char* const kind : kinds) {
    Running command(server.unix_url(),
                    run_script({"--kind", kind}, "trap 'exit 0' USR1; echo up; while :; do sleep 0.02; done"));
    TEST_ASSERT_EQUAL("up", command.line());
    server.command("DEL lock");
    command.signal(SIGUSR1);
    TEST_ASSERT_EQUAL(exit_lost, command.wait());
  }
}

TEST_ON_SERVER(test_a_server_that_stops_should_end_the_command_before_the_lock_runs_out) {
  Running command(server.unix_url(),
                  run_script({"-l", "2", "-k", "0.4"}, "trap 'echo term' TERM; echo $$; while :; do sleep 0.02; done"));
  const pid_t child = command.line_of_pid();
  // The lock was acquired before the child spoke, and is not renewed any more.
  const Instant runs_out = Client::now() + 2s;
  server.pause();
  TEST_ASSERT_EQUAL("term", command.line());
  const Instant term = Client::now();
  TEST_ASSERT_TRUE(eventually([&] { return !alive(child); }));
  const Instant gone = Client::now();
  server.resume();
  TEST_ASSERT_TRUE(gone < runs_out);
  TEST_ASSERT_TRUE(gone - term >= 300ms);
  TEST_ASSERT_EQUAL(exit_lost, command.wait());
  TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS lock") == "0"; }));
}

TEST_ON_SERVER(test_a_server_that_is_back_in_time_should_not_be_noticed) {
  Running command(server.unix_url(), run_script({"-l", "2"}, "echo up; sleep 2; exit 5"));
  TEST_ASSERT_EQUAL("up", command.line());
  server.pause();
  (void)::poll(nullptr, 0, 1100);
  server.resume();
  TEST_ASSERT_EQUAL(5, command.wait());
}

TEST_ON_SERVER(test_a_command_that_ends_while_the_server_is_silent_should_not_be_waited_for) {
  Running command(server.unix_url(), run_script({"-l", "20"}, "echo up; exec sleep 100"));
  TEST_ASSERT_EQUAL("up", command.line());
  server.pause();
  const Instant begin = Client::now();
  command.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
  TEST_ASSERT_TRUE(Client::now() - begin < 6s);
  TEST_ASSERT_TRUE(contains(command.errors(), "has not confirmed the release"));
  server.resume();
  // It was sent, and is executed all the same.
  TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS lock") == "0"; }));
}

TEST_ON_SERVER(test_a_run_whose_lock_was_released_by_force_should_end_with_the_code_of_loss) {
  for (const char* const kind : kinds) {
    Running command(server.unix_url(), run_script({"-l", "1", "--kind", kind}, "echo $$; exec sleep 100"));
    const pid_t child = command.line_of_pid();
    TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), {"release", "--force", "lock"}));
    TEST_ASSERT_EQUAL(exit_lost, command.wait());
    TEST_ASSERT_FALSE(alive(child));
    TEST_ASSERT_TRUE(contains(command.errors(), "was lost"));
  }
}

TEST_ON_SERVER(test_a_release_that_the_server_refuses_should_be_told) {
  for (const char* const kind : kinds) {
    server.command("ACL SETUSER limited on >secret ~* &* +@all");
    Running command("unix://limited:secret@" + server.socket_path(),
                    run_script({"--kind", kind}, "echo up; sleep 100"));
    TEST_ASSERT_EQUAL("up", command.line());
    server.command("ACL SETUSER limited -eval -evalsha");
    command.signal(SIGTERM);
    TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
    TEST_ASSERT_TRUE(contains(command.errors(), "the release of lock was not confirmed"));
    server.command("DEL lock");
  }
}

// ---- Signals -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_signals_should_go_to_the_command) {
  const std::pair<int, const char*> signals[] = {{SIGINT, "INT"},    {SIGTERM, "TERM"}, {SIGHUP, "HUP"},
                                                 {SIGQUIT, "QUIT"},  {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"},
                                                 {SIGWINCH, "WINCH"}};
  for (const auto& [number, name] : signals) {
    Running command(server.unix_url(), run_script({}, std::string("trap 'echo got; exit 9' ") + name +
                                                          "; echo up; while :; do sleep 0.02; done"));
    TEST_ASSERT_EQUAL("up", command.line());
    command.signal(number);
    TEST_ASSERT_EQUAL("got", command.line());
    TEST_ASSERT_EQUAL(9, command.wait());
  }
}

TEST_ON_SERVER(test_a_signal_should_not_wait_for_a_renewal_that_blocks) {
  Running command(server.unix_url(),
                  run_script({"-l", "3"}, "trap 'echo got' USR1; echo up; while :; do sleep 0.02; done"));
  TEST_ASSERT_EQUAL("up", command.line());
  server.pause();
  (void)::poll(nullptr, 0, 1200);  // The renewal at a third of the lease blocks now.
  const Instant begin = Client::now();
  command.signal(SIGUSR1);
  TEST_ASSERT_EQUAL("got", command.line());
  TEST_ASSERT_TRUE(Client::now() - begin < 500ms);
  server.resume();
  command.signal(SIGKILL);
}

// ---- Nothing is left behind --------------------------------------------------------------------------------------

TEST_ON_SERVER(test_grandchildren_should_end_before_the_lock_is_let_go) {
  Running command(server.unix_url(), run_script({},
                                                "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; "
                                                "sh -c '(setsid sleep 1000 & echo $!)'; exit 5"));
  const pid_t in_group = command.line_of_pid();
  const pid_t in_session = command.line_of_pid();
  const pid_t orphan = command.line_of_pid();
  TEST_ASSERT_EQUAL(5, command.wait());
  for (const pid_t pid : {in_group, in_session, orphan}) {
    TEST_ASSERT_TRUE(pid > 0);
    TEST_ASSERT_FALSE(alive(pid));
  }
  TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
}

TEST_ON_SERVER(test_a_stubborn_grandchild_in_its_own_session_should_be_killed_under_the_lock) {
  // The shell goes on when the grandchild has closed its output, and by then that ignores TERM. It outlives the shell
  // by the grace.
  Running command(
      server.unix_url(),
      run_script({"-l", "3", "-k", "0.3"},
                 "p=$(setsid sh -c 'trap \"\" TERM; echo $$; exec >/dev/null; while :; do sleep 0.02; done' &); "
                 "echo $p; exit 5"));
  const pid_t escaped = command.line_of_pid();
  TEST_ASSERT_TRUE(alive(escaped));
  const Instant begin = Client::now();
  while (server.command("EXISTS lock") == "1") (void)::poll(nullptr, 0, 5);
  TEST_ASSERT_FALSE(alive(escaped));
  TEST_ASSERT_TRUE(Client::now() - begin >= 250ms);
  TEST_ASSERT_EQUAL(5, command.wait());
}

TEST_ON_SERVER(test_killing_holdfast_should_not_leave_the_command_running) {
  Running command(server.unix_url(),
                  run_script({}, "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; echo $$; wait"));
  const pid_t in_group = command.line_of_pid();
  const pid_t in_session = command.line_of_pid();
  const pid_t child = command.line_of_pid();
  command.signal(SIGKILL);
  TEST_ASSERT_EQUAL(-SIGKILL, command.wait());
  for (const pid_t pid : {in_group, in_session, child}) TEST_ASSERT_TRUE(eventually([&] { return !alive(pid); }));
}

// The command tells the time for as long as it lives, so that how busy the machine is with us does not matter.
TEST_ON_SERVER(test_a_stopped_holdfast_should_not_leave_the_command_running_without_the_lock) {
  Running command(server.unix_url(),
                  run_script({"-l", "5"}, "setsid sleep 1000 & echo $!; while :; do date +%s%3N; sleep 0.02; done"));
  const auto milliseconds = [](const std::string& line) { return std::strtoll(line.c_str(), nullptr, 10); };
  const pid_t in_session = command.line_of_pid();
  TEST_ASSERT_TRUE(milliseconds(command.line()) > 0);
  command.signal(SIGSTOP);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const long long left = milliseconds(server.command("PTTL lock"));
  const long long runs_out = static_cast<long long>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000 + left;
  TEST_ASSERT_TRUE(left > 0);
  long long last = 0;
  for (std::string line = command.line(); !contains(line, "(no line)"); line = command.line())
    last = milliseconds(line);
  TEST_ASSERT_TRUE(last < runs_out);
  TEST_ASSERT_TRUE(eventually([&] { return !alive(in_session); }));
  command.signal(SIGCONT);
  TEST_ASSERT_EQUAL(exit_lost, command.wait());
}

// A busy machine gave it no processor, while the lock was renewed all the time: the newest order counts, not the first of
// those that have come meanwhile.
TEST_ON_SERVER(test_a_warden_that_slept_over_renewals_should_not_end_the_command) {
  Running command(server.unix_url(), run_script({"-l", "2"}, "echo up; sleep 6; exit 5"));
  TEST_ASSERT_EQUAL("up", command.line());
  const pid_t warden = await_warden_of(command.pid());
  ::kill(warden, SIGSTOP);
  (void)::poll(nullptr, 0, 4500);
  ::kill(warden, SIGCONT);
  TEST_ASSERT_EQUAL(5, command.wait());
}

// ---- info --------------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_info_should_tell_a_free_lock_by_its_exit_code) {
  TEST_ASSERT_EQUAL("name: lock\nstate: free\n", output_of(server.unix_url(), {"info", "lock"}, exit_free));
  server.command("SET redisson_lock_token:{lock} 41");
  TEST_ASSERT_EQUAL("name: lock\nstate: free\nfence: 41\n", output_of(server.unix_url(), {"info", "lock"}, exit_free));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
}

TEST_ON_SERVER(test_info_should_tell_who_holds_a_lock_of_any_client) {
  const std::pair<Words, const char*> cases[] = {
      {{"SET", "lock", "foreign"}, "kind: mutex\nowner: foreign\ncount: 1\nremaining: no expiry\n"},
      {{"HSET", "lock", "uuid:1", "3"}, "kind: reentrant\nowner: uuid:1\ncount: 3\nremaining: no expiry\n"},
      {{"HSET", "lock", "mode", "read", "uuid:1", "2"}, "kind: read\nowner: uuid:1\ncount: 2\nremaining: no expiry\n"},
      {{"HSET", "lock", "mode", "read", "uuid:1", "2", "uuid:2", "2"},
       "kind: read\nowner: uuid:1\ncount: 2\nowners: 2\nremaining: no expiry\n"},
      {{"HSET", "lock", "mode", "write", "uuid:1:write", "3"},
       "kind: write\nowner: uuid:1\ncount: 3\nremaining: no expiry\n"},
      // A writer that reads.
      {{"HSET", "lock", "uuid:1", "7", "mode", "write", "uuid:1:write", "3"},
       "kind: write\nowner: uuid:1\ncount: 3\nremaining: no expiry\n"},
      {{"SET", "lock", "0x1"}, "kind: mutex\nowner: 0x1\ncount: 1\nremaining: no expiry\n"},
      {{"SET", "lock", ""}, "kind: mutex\ncount: 1\nremaining: no expiry\n"},
      {{"HSET", "lock", "f", "no number"}, "kind: reentrant\nowner: f\ncount: 0\nremaining: no expiry\n"},
  };
  for (const auto& [command, lines] : cases) {
    server.command(command);
    TEST_ASSERT_EQUAL(std::string("name: lock\nstate: held\n") + lines,
                      output_of(server.unix_url(), {"info", "lock"}, 0));
    server.command("DEL lock");
  }
}

TEST_ON_SERVER(test_info_should_tell_of_a_run) {
  for (const char* const kind : kinds) {
    Running command(server.unix_url(),
                    run_script({"--kind", kind}, "echo $HOLDFAST_TOKEN; echo $HOLDFAST_FENCE; exec sleep 100"));
    const std::string token = command.line();
    const std::string fence = command.line();
    const std::string text = output_of(server.unix_url(), {"info", "lock"}, 0);
    TEST_ASSERT_TRUE(contains(text, "\nowner: " + token + "\ncount: 1\nremaining: "));
    const bool alike = kind == std::string("fenced");
    TEST_ASSERT_TRUE(contains(text, std::string("\nkind: ") + (alike ? "reentrant" : kind) + "\n"));
    TEST_ASSERT_TRUE(contains(text, " seconds\n"));
    TEST_ASSERT_EQUAL(!fence.empty(), contains(text, "\nfence: " + fence + "\n"));
    command.signal(SIGTERM);
    TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
  }
}

TEST_ON_SERVER(test_info_should_never_show_a_raw_byte_of_others) {
  std::string bytes;
  for (int byte = 1; byte < 256; ++byte) bytes += static_cast<char>(byte);
  const std::string owner = std::string("\0\x1b[2J\n\\", 7) + bytes;
  for (const Words& command : {Words{"SET", bytes, owner}, Words{"HSET", bytes, owner, "1"}}) {
    server.command({"DEL", bytes});
    server.command(command);
    const std::string text = output_of(server.unix_url(), {"info", bytes}, 0);
    TEST_ASSERT_TRUE(contains(text, "name: \\x01\\x02"));
    TEST_ASSERT_TRUE(contains(text, "\nowner: \\x00\\x1b[2J\\x0a\\\\\\x01"));
    for (const char byte : text) TEST_ASSERT_TRUE((byte == '\n' || (byte >= ' ' && byte <= '~')));
    TEST_ASSERT_EQUAL(6, std::count(text.begin(), text.end(), '\n'));
  }
}

TEST_ON_SERVER(test_info_on_a_key_that_is_no_lock_should_say_so) {
  server.command("RPUSH lock a b");
  TEST_ASSERT_EQUAL("name: lock\nstate: no lock\n", output_of(server.unix_url(), {"info", "lock"}, exit_no_lock));
}

TEST_ON_SERVER(test_info_that_cannot_be_printed_should_not_look_like_an_answer) {
  server.command("SET lock foreign");
  const std::string line = command_path() + " info --url " + server.unix_url() + " lock >/dev/full";
  const int status = std::system(line.c_str());
  TEST_ASSERT_EQUAL(exit_output, WEXITSTATUS(status));
}

TEST(test_info_and_release_without_a_server_should_not_look_like_an_answer) {
  for (const Words& words : {Words{"info", "lock"}, Words{"release", "--force", "lock"}}) {
    std::string errors;
    TEST_ASSERT_EQUAL(exit_no_server, run_to_end("unix:///nonexistent/socket", words, &errors));
    TEST_ASSERT_TRUE(contains(errors, "no connection to /nonexistent/socket"));
  }
}

TEST_ON_SERVER(test_info_and_release_on_a_silent_server_should_end_soon) {
  server.command("SET lock foreign");
  server.pause();
  for (const Words& words : {Words{"info", "lock"}, Words{"release", "--force", "lock"}})
    TEST_ASSERT_EQUAL(exit_no_server, run_to_end(server.unix_url(), words));
  server.resume();
}

// ---- release -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_forced_release_should_free_a_lock_of_any_client) {
  for (const Words& command : {Words{"SET", "lock", "foreign"}, Words{"HSET", "lock", "uuid:1", "3"},
                               Words{"HSET", "lock", "mode", "read", "uuid:1", "1", "uuid:2", "1"},
                               Words{"HSET", "lock", "mode", "write", "uuid:1:write", "1"}}) {
    server.command(command);
    std::string errors;
    TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), {"release", "--force", "lock"}, &errors));
    TEST_ASSERT_EQUAL("holdfast: released lock; its holder was not asked\n", errors);
    TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
    TEST_ASSERT_EQUAL(exit_free, run_to_end(server.unix_url(), {"release", "-f", "lock"}, &errors));
    TEST_ASSERT_EQUAL("holdfast: lock was free: there was nothing to release\n", errors);
  }
}

TEST_ON_SERVER(test_release_without_force_should_touch_nothing) {
  server.command("SET lock foreign");
  std::string errors;
  TEST_ASSERT_EQUAL(exit_usage, run_to_end(server.unix_url(), {"release", "lock"}, &errors));
  TEST_ASSERT_TRUE(contains(errors, "there is no token: give --token, --token-file or HOLDFAST_TOKEN"));
  TEST_ASSERT_EQUAL("foreign", server.command("GET lock"));
}

TEST_ON_SERVER(test_forced_release_should_not_touch_what_is_no_lock) {
  for (const Words& command : {Words{"RPUSH", "lock", "a"}, Words{"HSET", "lock", "mode", "other", "uuid:1", "1"}}) {
    server.command(command);
    std::string errors;
    TEST_ASSERT_EQUAL(exit_no_lock, run_to_end(server.unix_url(), {"release", "--force", "lock"}, &errors));
    TEST_ASSERT_TRUE(contains(errors, "it is no lock that can be released"));
    TEST_ASSERT_EQUAL("1", server.command("EXISTS lock"));
    server.command("DEL lock");
  }
}

TEST_ON_SERVER(test_forced_release_should_wake_a_waiting_run) {
  for (const std::string kind : kinds) {
    const char* const mode = kind == "read" ? "write" : "read";
    server.command(is_read_write(kind) ? Words{"HSET", "lock", "mode", mode, "foreign", "1"}
                                       : Words{"SET", "lock", "foreign"});
    const std::string heard_on = channel_of(kind);
    RawConnection listener(server.socket_path());
    TEST_ASSERT_EQUAL("subscribe " + heard_on + " 1", listener.command("SUBSCRIBE " + heard_on));
    Running waiter(server.unix_url(), run_script({"--kind", kind}, "echo late"));
    await_subscribers(server, 2, heard_on);
    const Instant begin = Client::now();
    TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), {"release", "--force", "lock"}));
    TEST_ASSERT_EQUAL("late", waiter.line());
    TEST_ASSERT_TRUE(Client::now() - begin < 5s);  // See above.
    TEST_ASSERT_EQUAL("message " + heard_on + (kind == "read" ? " 1" : " 0"), listener.command("PING"));
    TEST_ASSERT_EQUAL(0, waiter.wait());
  }
}

TEST_ON_SERVER(test_info_and_release_should_take_a_name_that_begins_with_a_dash_behind_a_mark) {
  for (const std::string name : {"-f", "--", "--force", "-h"}) {
    server.command({"SET", name, "foreign"});
    TEST_ASSERT_TRUE(contains(output_of(server.unix_url(), {"info", "--", name}, 0), "name: " + name + "\n"));
    TEST_ASSERT_EQUAL(exit_usage, run_to_end(server.unix_url(), {"release", "--", name}));
    TEST_ASSERT_EQUAL(0, run_to_end(server.unix_url(), {"release", "--force", "--", name}));
    TEST_ASSERT_EQUAL("0", server.command({"EXISTS", name}));
  }
}

TEST_ON_SERVER(test_names_of_subcommands_should_be_names_of_locks_as_well) {
  for (const std::string name : {"run", "info", "release"}) {
    TEST_ASSERT_EQUAL(3, run_to_end(server.unix_url(), {"run", name, "--", "sh", "-c",
                                                        "test \"$HOLDFAST_NAME\" = \"$0\" && exit 3", name}));
    TEST_ASSERT_EQUAL("name: " + name + "\nstate: free\n", output_of(server.unix_url(), {"info", name}, exit_free));
    TEST_ASSERT_EQUAL(exit_free, run_to_end(server.unix_url(), {"release", "--force", name}));
  }
}

// ---- The command line --------------------------------------------------------------------------------------------

TEST(test_hostile_command_lines_should_end_in_a_usage_error_with_a_clear_text) {
  const std::string overlong(257, 'n');
  const std::pair<Words, const char*> cases[] = {
      {{}, "a subcommand is required; there are run, acquire, renew, info, doctor, watch and release"},
      {{"walk"}, "'walk' is no subcommand; there are run, acquire"},
      {{"redis://:hidden@localhost"}, "'(a URL stands behind --url)' is no subcommand"},
      {{"redis://:hidden@localhost", "run"}, "not expected: (a URL stands behind --url)"},
      {{"run", "lock", "redis://:hidden@localhost", "--", "true"}, "not expected: (a URL stands behind --url)"},
      {{"--url", "redis://localhost"}, "--url: options stand after a subcommand; there are run"},
      {{"--url=redis://localhost", "run"}, "--url: options stand after a subcommand; there are run"},
      {{"run"}, "NAME is missing"},
      {{"run", "--", "true"}, "NAME is missing"},
      {{"run", "lock"}, "no command"},
      {{"run", "lock", "--"}, "no command"},
      {{"run", "--", "lock", "--"}, "no command"},
      {{"run", "", "--", "true"}, "NAME is empty"},
      {{"run", overlong, "--", "true"}, "NAME has 257 bytes"},
      {{"run", "lock", "true"}, "not expected"},
      {{"run", "lock", "other", "--", "true"}, "not expected"},
      {{"run", "--frobnicate", "lock", "--", "true"}, "not expected"},
      {{"run", "-n", "-w", "1", "lock", "--", "true"}, "exclude each other"},
      {{"run", "-w", "-1", "lock", "--", "true"}, "'-1' is no time"},
      {{"run", "-w", "", "lock", "--", "true"}, "'' is no time"},
      {{"run", "-w", "nan", "lock", "--", "true"}, "'nan' is no time"},
      {{"run", "-w", "inf", "lock", "--", "true"}, "'inf' is no time"},
      {{"run", "-w", "1e300", "lock", "--", "true"}, "'1e300' is no time"},
      {{"run", "-w", "0x10", "lock", "--", "true"}, "'0x10' is no time"},
      {{"run", "-w", "1s", "lock", "--", "true"}, "'1s' is no time"},
      {{"run", "-w", " 1", "lock", "--", "true"}, "' 1' is no time"},
      {{"run", "-w", "1.2.3", "lock", "--", "true"}, "'1.2.3' is no time"},
      {{"run", "-w", "1.", "lock", "--", "true"}, "'1.' is no time"},
      {{"run", "-w", "1.0000000001", "lock", "--", "true"}, "is no time"},
      {{"run", "-w", "1000000000", "lock", "--", "true"}, "is no time"},
      {{"run", "-w", "\x1b[31m", "lock", "--", "true"}, "\\x1b[31m"},
      {{"run", "-l", "0", "lock", "--", "true"}, "0.005 to 86400"},
      {{"run", "-l", "0.0055", "lock", "--", "true"}, "0.005 to 86400"},
      {{"run", "-l", "86400.001", "lock", "--", "true"}, "0.005 to 86400"},
      {{"run", "-l", "1", "-k", "0.501", "lock", "--", "true"}, "half of the lease"},
      {{"run", "-k", "-0", "lock", "--", "true"}, "is no time"},
      {{"run", "-E", "-1", "lock", "--", "true"}, "is no exit code"},
      {{"run", "-E", "256", "lock", "--", "true"}, "is no exit code"},
      {{"run", "-E", "0x1", "lock", "--", "true"}, "is no exit code"},
      {{"run", "-E", "", "lock", "--", "true"}, "is no exit code"},
      {{"run", "--kind", "unfair", "lock", "--", "true"},
       "'unfair' is no kind of lock; there are mutex, reentrant, fenced, fair, read, write and semaphore"},
      {{"run", "--kind", "", "lock", "--", "true"}, "'' is no kind of lock"},
      {{"run", "--kind", "Mutex", "lock", "--", "true"}, "'Mutex' is no kind of lock"},
      {{"run", "--kind", "\x1b[31m", "lock", "--", "true"}, "'\\x1b[31m' is no kind of lock"},
      {{"run", "--kind", "reentrant", "--fence", "lock", "--", "true"}, "has no fence"},
      {{"run", "--kind", "fair", "--url", "redis://a", "--url", "redis://b", "lock", "--", "true"},
       "--kind: there is no 'fair' on several servers"},
      {{"run", "--kind", "read", "--fence", "lock", "--", "true"}, "a read lock has no fence"},
      {{"run", "--kind", "write", "--fence", "lock", "--", "true"}, "a write lock has no fence"},
      {{"run", "--kind", "read", "-l", "30.001", "lock", "--", "true"},
       "-l: a read lock has a lease of at most 30 seconds, and 30.001 are more: a Redisson that reads, too"},
      {{"run", "--kind", "semaphore", "--fence", "lock", "--", "true"}, "a semaphore lock has no fence"},
      {{"run", "--permits", "2", "lock", "--", "true"}, "--permits is of --kind semaphore"},
      {{"run", "--kind", "semaphore", "--permits", "0", "lock", "--", "true"}, "'0' is no number of permits"},
      {{"run", "--kind", "semaphore", "--permits", "-1", "lock", "--", "true"}, "'-1' is no number of permits"},
      {{"run", "--kind", "semaphore", "--permits", "two", "lock", "--", "true"}, "from 1 to 1000000000"},
      {{"run", "--kind", "semaphore", "--permits", "1000000001", "lock", "--", "true"}, "is no number of permits"},
      {{"run", "--force", "lock", "--", "true"}, "not expected"},
      {{"info"}, "NAME is missing"},
      {{"info", "--"}, "NAME is missing"},
      {{"info", ""}, "NAME is empty"},
      {{"info", overlong}, "NAME has 257 bytes"},
      {{"info", "--", overlong}, "NAME has 257 bytes"},
      {{"info", "lock", "other"}, "not expected"},
      {{"info", "lock", "--", "other"}, "more behind the --"},
      {{"info", "--", "lock", "other"}, "more behind the --"},
      {{"info", "--force", "lock"}, "not expected"},
      {{"info", "--url", "redis://:hidden@host:x", "lock"}, "--url: "},
      {{"release"}, "NAME is missing"},
      {{"release", "--force"}, "NAME is missing"},
      {{"release", "--force", "-q", "lock"}, "-q is of a release by token"},
      {{"release", "lock"}, "--force, which takes the lock from whoever holds it"},
      {{"release", "--token", "\x1b[31m", "lock"}, "'\\x1b[31m' is no token of mutex"},
      {{"release", "lock", "--", "--force"}, "more behind the --"},
      {{"release", "--force", "--url", "redis://:hidden@host:x", "lock"}, "--url: "},
      {{"run", "--url", "", "lock", "--", "true"}, "--url: "},
      {{"run", "--url", "http://x", "lock", "--", "true"}, "--url: "},
      {{"run", "--url", "redis://:hidden@host:x", "lock", "--", "true"}, "--url: "},
      {{"run", "--url", "redis://host/99999999999999999999", "lock", "--", "true"}, "--url: "},
      {{"run", "--url", "localhost", "lock", "--", "true"}, "written redis://HOST, as redis://localhost"},
      {{"run", "--url", "db.internal", "lock", "--", "true"}, "written redis://HOST, as redis://localhost"},
      {{"run", "--url", "localhost:6379", "lock", "--", "true"}, "written redis://HOST:PORT"},
      {{"run", "--url=127.0.0.1:6379/2", "lock", "--", "true"}, "written redis://HOST:PORT"},
      {{"info", "--url", "/run/redis.sock", "lock"}, "written unix:///PATH"},
      {{"info", "--url", "unix:/run/redis.sock", "lock"}, "written unix:///PATH"},
      {{"run", "--url", "rediss:host", "lock", "--", "true"}, "a URL begins with"},
      {{"run", "--url", "redis://:hid/den@host", "lock", "--", "true"}, "'/', '?' and '#' in a password are %2F"},
      {{"run", "--url", "redis://:hid#den@host", "lock", "--", "true"}, "'/', '?' and '#' in a password are %2F"},
      {{"run", "--url", "redis://:hid?den@host", "lock", "--", "true"}, "'/', '?' and '#' in a password are %2F"},
      {{"run", "--url", "unix://:hid/den@/socket", "lock", "--", "true"}, "'/' in a password is %2F"},
  };
  for (const auto& [words, text] : cases) {
    std::string errors;
    const char* const expected = text;  // A lambda of Clang 14 takes no structured binding.
    TEST_MESSAGE("expected: " << expected);
    TEST_ASSERT_EQUAL(exit_usage, run_to_end("", words, &errors));
    TEST_ASSERT_TRUE(contains(errors, text));
    TEST_ASSERT_TRUE(errors.rfind("holdfast: ", 0) == 0);
    TEST_ASSERT_FALSE(contains(errors, "hidden"));
    TEST_ASSERT_FALSE(contains(errors, "\x1b"));
  }
  std::string errors;
  TEST_ASSERT_EQUAL(exit_usage, run_to_end("redis://:hidden@host:x", run_script({}, "true"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "HOLDFAST_URL: "));
  TEST_ASSERT_FALSE(contains(errors, "hidden"));
}

TEST(test_help_and_version_should_be_printed_on_request) {
  for (const Words& words :
       {Words{"--help"}, Words{"run", "--help"}, Words{"run", "-h"}, Words{"run", "-n", "x", "--help"}}) {
    Running command("", words);
    TEST_ASSERT_TRUE(contains(command.line(), "Usage: holdfast run"));
    TEST_ASSERT_EQUAL(0, command.wait());
  }
  TEST_ASSERT_TRUE(contains(output_of("", {"release", "--help"}, 0), "Usage: holdfast release [--token"));
  for (const std::string word : {"acquire", "renew", "info", "doctor", "release"}) {
    const std::string text = output_of("", {word, "--help"}, 0);
    TEST_ASSERT_EQUAL(0U, text.find("Usage: holdfast " + word + " "));
    for (const char* const part : {"--url", "Exit codes:"}) TEST_ASSERT_TRUE(contains(text, part));
  }
}
