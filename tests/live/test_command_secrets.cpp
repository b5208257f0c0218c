// SPDX-License-Identifier: MIT
//
// Where the holdfast command takes passwords from, and where they must not show.
#include <sys/resource.h>

#include "command_fixture.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

constexpr char secret[] = "s3cret-word";

// All bytes of a file of /proc.
std::string shown_in(pid_t pid, const char* file) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string url_with(const RedisServer& server, const std::string& credentials) {
  return "unix://" + credentials + "@" + server.socket_path();
}

// A file of the test, with the server's.
std::string write_file(const RedisServer& server, const std::string& name, const std::string& text) {
  const std::string path = server.socket_path() + "." + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace

// ---- Where they must not show ------------------------------------------------------------------------------------

TEST_ON_SERVER(test_the_command_should_not_get_a_password, "--requirepass", secret) {
  const std::string file = write_file(server, "password", secret);
  const std::pair<std::string, Start> cases[] = {
      {url_with(server, std::string(":") + secret), {}},
      {url_with(server, std::string("default:") + secret), {}},
      {server.unix_url(), {.environment = {{"HOLDFAST_PASSWORD", secret}}}},
      {server.unix_url(), {.environment = {{"HOLDFAST_PASSWORD_FILE", file}}}},
      // Not needed, and still none of the command's business.
      {url_with(server, std::string(":") + secret), {.environment = {{"HOLDFAST_PASSWORD", "other-word"}}}},
  };
  for (const auto& [url, start] : cases) {
    Running command(url, run_script({}, "env"), start);
    const std::string environment = command.rest();
    TEST_ASSERT_EQUAL(0, command.wait());
    TEST_ASSERT_TRUE(contains(environment, "HOLDFAST_NAME=lock"));
    TEST_ASSERT_FALSE(contains(environment, "-word"));
    TEST_ASSERT_FALSE(contains(environment, "PASSWORD"));
    TEST_ASSERT_EQUAL(url == server.unix_url(), contains(environment, "HOLDFAST_URL=" + url));
    TEST_ASSERT_EQUAL(url == server.unix_url(), contains(environment, "HOLDFAST_URL="));
  }
}

TEST_ON_SERVER(test_the_command_should_get_what_is_asked_to_be_kept, "--requirepass", secret) {
  const std::string url = url_with(server, std::string(":") + secret);
  Running command(url, run_script({"--keep-env"}, "env"), {.environment = {{"HOLDFAST_PASSWORD", "other-word"}}});
  const std::string environment = command.rest();
  TEST_ASSERT_EQUAL(0, command.wait());
  TEST_ASSERT_TRUE(contains(environment, "HOLDFAST_URL=" + url));
  TEST_ASSERT_TRUE(contains(environment, "HOLDFAST_PASSWORD=other-word"));
}

TEST_ON_SERVER(test_our_own_processes_should_not_show_a_password, "--requirepass", secret) {
  RawConnection raw(server.socket_path());
  TEST_ASSERT_EQUAL("OK", raw.command(std::string("AUTH ") + secret));
  const std::string plain = url_with(server, std::string(":") + secret);
  const std::string odd = url_with(server, std::string("default:%73") + (secret + 1));
  const std::pair<Words, Start> cases[] = {
      {{"--url", plain}, {}},
      {{"--url=" + plain}, {}},
      {{"--url", odd}, {}},
      {{"--url", server.unix_url()}, {.environment = {{"HOLDFAST_PASSWORD", secret}}}},
      {{}, {.environment = {{"HOLDFAST_URL", plain}}}},
      {{"--no-restart-guard", "--url", plain, "--url", "redis://127.0.0.1:1", "--url", "unix:///nowhere"}, {}},
  };
  for (const auto& [options, start] : cases) {
    // Once it waits, and once it runs. The last one never gets a quorum.
    raw.command("SET lock foreign");
    Words words = options;
    words.insert(words.begin(), {"-w", "60"});
    Running command("", run_script(words, "echo up; exec sleep 1000"), start);
    TEST_ASSERT_TRUE(command.says("waiting for lock"));
    TEST_ASSERT_TRUE(contains(shown_in(command.pid(), "cmdline"), "run"));
    TEST_ASSERT_FALSE(contains(shown_in(command.pid(), "cmdline"), "cret-word"));
    TEST_ASSERT_FALSE(contains(shown_in(command.pid(), "environ"), "cret-word"));
    raw.command("DEL lock");
    if (options.size() > 3) continue;
    TEST_ASSERT_EQUAL("up", command.line());
    for (const pid_t pid : {command.pid(), await_warden_of(command.pid())}) {
      TEST_ASSERT_FALSE(contains(shown_in(pid, "cmdline"), "cret-word"));
      TEST_ASSERT_FALSE(contains(shown_in(pid, "environ"), "cret-word"));
    }
    command.signal(SIGTERM);
    TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
  }
}

// The limit of a byte: neither a file nor a program that takes cores gets one.
TEST_ON_SERVER(test_no_process_of_ours_should_leave_a_core_and_the_command_may, "--requirepass", secret) {
  rlimit before{};
  TEST_ASSERT_EQUAL(0, ::getrlimit(RLIMIT_CORE, &before));
  const rlimit raised = {.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
  TEST_ASSERT_EQUAL(0, ::setrlimit(RLIMIT_CORE, &raised));
  // A sanitizer would lower the limit itself.
  const char* const options = std::getenv("ASAN_OPTIONS");
  const std::string more = (options != nullptr ? options + std::string(":") : "") + "disable_coredump=0";
  const Start start = {.environment = {{"ASAN_OPTIONS", more}}};
  Running command("",
                  run_script({"--url", url_with(server, std::string(":") + secret)},
                             "sed -n 's/^Max core file size *//p' /proc/self/limits; exec sleep 1000"),
                  start);
  (void)::setrlimit(RLIMIT_CORE, &before);
  const std::string most = before.rlim_max == RLIM_INFINITY ? "unlimited" : std::to_string(before.rlim_max);
  TEST_ASSERT_TRUE(command.line().starts_with(most + " "));
  for (const pid_t pid : {command.pid(), await_warden_of(command.pid())}) {
    rlimit ours{};
    TEST_ASSERT_EQUAL(0, ::prlimit(pid, RLIMIT_CORE, nullptr, &ours));
    TEST_ASSERT_TRUE(ours.rlim_cur <= 1);
    TEST_ASSERT_EQUAL(before.rlim_max, ours.rlim_max);
  }
  command.signal(SIGTERM);
  TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
}

TEST_ON_SERVER(test_words_of_the_command_should_reach_it_as_they_are) {
  Running command(server.unix_url(),
                  {"run", "lock", "--", "sh", "-c", "echo $2", "sh", "--url", "redis://:not-ours@host"});
  TEST_ASSERT_EQUAL("redis://:not-ours@host", command.line());
  TEST_ASSERT_EQUAL(0, command.wait());
}

TEST_ON_SERVER(test_no_message_should_show_a_password, "--requirepass", secret) {
  const std::string wrong = "wr0ng-word";
  const std::string file = write_file(server, "password", wrong);
  const std::pair<Words, Start> cases[] = {
      {{"--password-file", file}, {}},
      {{}, {.environment = {{"HOLDFAST_PASSWORD", wrong}}}},
      {{}, {.environment = {{"HOLDFAST_PASSWORD_FILE", file}}}},
  };
  for (const auto& [options, start] : cases) {
    Running command(server.unix_url(), run_script(options, "exit 1"), start);
    TEST_ASSERT_EQUAL(exit_no_permission, command.wait());
    TEST_ASSERT_FALSE(contains(command.errors(), "ng-word"));
  }
}

// ---- Where they come from ----------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_password_should_be_read_from_a_file_or_the_environment, "--requirepass", secret) {
  const std::string file = write_file(server, "password", std::string(secret) + "\n");
  const std::string file_of_windows = write_file(server, "windows", std::string(secret) + "\r\n");
  const std::string other = write_file(server, "other", "other-word");
  const std::pair<Words, Start> cases[] = {
      {{"--password-file", file}, {}},
      {{"--password-file", file_of_windows}, {}},
      {{}, {.environment = {{"HOLDFAST_PASSWORD", secret}}}},
      {{}, {.environment = {{"HOLDFAST_PASSWORD_FILE", file}}}},
      {{}, {.environment = {{"HOLDFAST_PASSWORD_FILE", file}, {"HOLDFAST_PASSWORD", ""}}}},
      // What the command line says counts; so does the URL's own.
      {{"--password-file", file}, {.environment = {{"HOLDFAST_PASSWORD", "other-word"}}}},
      {{"--password-file", file}, {.environment = {{"HOLDFAST_PASSWORD_FILE", other}}}},
      {{"--url", url_with(server, std::string(":") + secret)}, {.environment = {{"HOLDFAST_PASSWORD", "other-word"}}}},
      {{"--url", url_with(server, "default"), "--password-file", file}, {}},
      {{"--url", "redis://default@127.0.0.1:" + std::to_string(server.port())},
       {.environment = {{"HOLDFAST_PASSWORD", secret}}}},
  };
  for (const auto& [options, start] : cases) {
    Running command(server.unix_url(), run_script(options, "exit 5"), start);
    const int code = command.wait();
    TEST_MESSAGE("stderr: " << command.errors());
    TEST_ASSERT_EQUAL(5, code);
  }
  for (const Words& words :
       {Words{"info", "--password-file", file, "lock"}, Words{"release", "--force", "--password-file", file, "lock"}})
    TEST_ASSERT_EQUAL(exit_free, run_to_end(server.unix_url(), words));
}

TEST_ON_SERVER(test_a_credential_of_systemd_should_be_used_where_nothing_else_gives_a_password, "--requirepass",
               secret) {
  const std::string folder = server.socket_path() + ".credentials";
  std::filesystem::create_directory(folder);
  const Start start = {.environment = {{"CREDENTIALS_DIRECTORY", folder}}};
  Running without(server.unix_url(), run_script({"-n"}, "exit 5"), start);
  TEST_ASSERT_EQUAL(exit_no_permission, without.wait());
  std::ofstream(folder + "/holdfast.password") << secret << "\n";
  for (const Words& words : {run_script({}, "env"), Words{"acquire", "-l", "1", "-n", "other"}}) {
    Running command(server.unix_url(), words, start);
    const std::string output = command.rest();
    TEST_ASSERT_EQUAL(0, command.wait());
    TEST_ASSERT_FALSE(contains(output, "cret-word"));
    TEST_ASSERT_EQUAL(words[0] == "run", contains(output, "CREDENTIALS_DIRECTORY=" + folder));
  }
  Running other(server.unix_url(), run_script({"-n"}, "exit 5"),
                {.environment = {{"CREDENTIALS_DIRECTORY", folder}, {"HOLDFAST_PASSWORD", "other-word"}}});
  TEST_ASSERT_EQUAL(exit_no_permission, other.wait());
}

// As /proc shows it to every user of the machine: what the command was started with, and with what environment.
TEST_ON_SERVER(test_proc_should_show_no_password_of_any_process_of_a_run, "--requirepass", secret) {
  const std::pair<Words, Start> cases[] = {
      {{"--url", url_with(server, std::string(":") + secret)}, {}},
      {{"--url", server.unix_url()}, {.environment = {{"HOLDFAST_PASSWORD", secret}}}},
      {{}, {.environment = {{"HOLDFAST_URL", url_with(server, std::string(":") + secret)}}}},
  };
  const std::string fifo = server.socket_path() + ".never";
  TEST_ASSERT_EQUAL(0, ::mkfifo(fifo.c_str(), 0600));
  for (const auto& [options, start] : cases) {
    // A shell that stays one: it waits for a writer who never comes. In the middle of an exec, /proc shows neither words nor
    // environment.
    Running command("", run_script(options, "echo $$; : <" + fifo), start);
    const pid_t guarded = command.line_of_pid();
    for (const pid_t pid : {guarded, command.pid(), await_warden_of(command.pid())})
      for (const char* const file : {"cmdline", "environ"}) {
        const std::string shown = shown_in(pid, file);
        TEST_ASSERT_FALSE(shown.empty());
        TEST_ASSERT_FALSE(contains(shown, "cret-word"));
      }
    TEST_ASSERT_TRUE(contains(shown_in(guarded, "environ"), "HOLDFAST_TOKEN="));
    command.signal(SIGTERM);
    TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
  }
}

TEST_ON_SERVER(test_a_user_with_a_password_from_elsewhere_should_be_that_user) {
  server.command("ACL SETUSER bob on >bobs-word ~* &* +@all");
  for (const std::string& url : {url_with(server, "bob"), "redis://bob@127.0.0.1:" + std::to_string(server.port())}) {
    Running command(url, run_script({}, "echo up; exec sleep 1000"),
                    {.environment = {{"HOLDFAST_PASSWORD", "bobs-word"}}});
    TEST_ASSERT_EQUAL("up", command.line());
    TEST_ASSERT_TRUE(contains(server.command("CLIENT LIST"), "user=bob"));
    command.signal(SIGTERM);
    TEST_ASSERT_EQUAL(128 + SIGTERM, command.wait());
  }
}

TEST_ON_SERVER(test_a_quorum_should_use_one_password_for_nodes_that_have_none_of_their_own, "--requirepass", secret) {
  RedisServer second(server.binary(), {"--requirepass", secret});
  RedisServer third(server.binary(), {"--requirepass", "third-word"});
  const std::string urls = server.unix_url() + " " + url_with(second, "default") + " " + url_with(third, ":third-word");
  Running command(urls, run_script({"--no-restart-guard", "-n"}, "exit 5"),
                  {.environment = {{"HOLDFAST_PASSWORD", secret}}});
  TEST_ASSERT_EQUAL(5, command.wait());
  TEST_ASSERT_EQUAL("", command.errors());
}

TEST(test_a_password_that_cannot_be_understood_should_be_a_usage_error) {
  char folder[] = "/tmp/holdfast-test-XXXXXX";
  TEST_ASSERT_TRUE(::mkdtemp(folder) != nullptr);
  const auto file = [&](const char* name, const std::string& text) {
    std::ofstream(std::string(folder) + "/" + name, std::ios::binary) << text;
    return std::string(folder) + "/" + name;
  };
  struct Case {
    Words options;
    Start start;
    const char* text;
  };
  const Case cases[] = {
      {{"--password-file", "/nonexistent/x"}, {}, "--password-file: '/nonexistent/x': cannot read it"},
      {{"--password-file", folder}, {}, "cannot read it"},
      {{"--password-file", file("empty", "")}, {}, "there is no password in it"},
      {{"--password-file", file("line", "\n")}, {}, "there is no password in it"},
      {{"--password-file", file("two", "a\nb\n")}, {}, "it is one line with the password, and has more"},
      {{"--password-file", file("nul", std::string("a\0b", 3))}, {}, "it is one line with the password, and has more"},
      {{"--password-file", file("long", std::string(513, 'x'))}, {}, "its first line has more than 512 bytes"},
      {{"--password-file", file("good", "x"), "--url", "redis://:y@h"}, {}, "there is a password in the URL already"},
      {{}, {.environment = {{"HOLDFAST_PASSWORD_FILE", "/nonexistent/x"}}}, "HOLDFAST_PASSWORD_FILE: '/nonexistent/x'"},
      {{},
       {.environment = {{"HOLDFAST_PASSWORD", std::string(513, 'x')}}},
       "HOLDFAST_PASSWORD: a password has at most"},
      {{}, {.environment = {{"HOLDFAST_PASSWORD", "a"}, {"HOLDFAST_PASSWORD_FILE", "b"}}}, "exclude each other"},
      {{"--url", "redis://bob@h"}, {}, "a user without a password cannot log in"},
      {{"-q", "-v"}, {}, "-q and -v exclude each other"},
  };
  for (const Case& it : cases) {
    Running command("redis://127.0.0.1:1", run_script(it.options, "exit 1"), it.start);
    const int code = command.wait();
    TEST_MESSAGE("stderr: " << command.errors());
    TEST_ASSERT_EQUAL(exit_usage, code);
    TEST_ASSERT_TRUE(contains(command.errors(), it.text));
  }
  std::filesystem::remove_all(folder);
}

// ---- Runs inside of runs -----------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_run_inside_of_a_run_that_took_the_url_should_not_use_the_default_server, "--requirepass",
               secret) {
  const std::string url = url_with(server, std::string(":") + secret);
  const std::string inner = command_path() + " run inner -- true";
  std::string errors;
  TEST_ASSERT_EQUAL(exit_usage, run_to_end(url, run_script({}, inner), &errors));
  TEST_ASSERT_TRUE(contains(errors, "no server is given: the run that this one is inside of has taken HOLDFAST_URL"));
  TEST_ASSERT_EQUAL(0, run_to_end(url, run_script({"--keep-env"}, inner), &errors));
}

TEST_ON_SERVER(test_a_run_inside_of_a_run_that_took_the_password_should_be_told_so, "--requirepass", secret) {
  const std::string inner = command_path() + " run inner -- true";
  for (const bool keep : {false, true}) {
    Words options;
    if (keep) options.emplace_back("--keep-env");
    Running command(server.unix_url(), run_script(options, inner), {.environment = {{"HOLDFAST_PASSWORD", secret}}});
    TEST_ASSERT_EQUAL(keep ? 0 : exit_no_permission, command.wait());
    TEST_ASSERT_EQUAL(!keep, contains(command.errors(), "takes passwords out of the environment, but for --keep-env"));
  }
}
