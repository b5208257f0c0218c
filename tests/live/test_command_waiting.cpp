// SPDX-License-Identifier: MIT
//
// holdfast run on its way to the lock: what it waits for, what it says meanwhile, and what ends it.
#include "command_fixture.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <thread>

#include "connection_server.hpp"
#include "proxy.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

constexpr const char* kinds[] = {"mutex", "reentrant", "fenced"};
constexpr int exit_protocol = 76;

// What the end of a wait may take beside what is promised, and a signal at all; a busy machine under sanitizers needs some. Two
// requests more than the one are found.
constexpr Duration slack = 1900ms;
static_assert(slack < 2 * request_timeout_default);

// One of a run that has ended, or is about to.
void expect_ended_by(Running& command, int number, Instant begin) {
  const int code = command.wait();
  const Duration taken = Client::now() - begin;
  TEST_MESSAGE("taken: " << taken / 1ms << " ms; stderr: " << command.errors());
  // In front of the first handler it is the signal's own effect.
  TEST_ASSERT_TRUE((code == 128 + number || code == -number));
  TEST_ASSERT_TRUE(taken < slack);
}

// Signals it, and expects it to end at once.
void expect_end_by(Running& command, int number, int times = 1) {
  const Instant begin = Client::now();
  for (int time = 0; time < times; ++time) {
    command.signal(number);
    (void)::poll(nullptr, 0, 5);
  }
  expect_ended_by(command, number, begin);
}

std::string run_url(int port) { return "redis://127.0.0.1:" + std::to_string(port); }

// A run, when it was started, and when it was seen to wait: on a loaded machine a program with sanitizers takes long to start.
struct Started {
  Started(const std::string& url, const Words& words) : command(url, words) {}
  void expect_waiting() {
    TEST_ASSERT_TRUE(command.says("waiting for lock"));
    waiting = Client::now();
  }
  Instant begin = Client::now();  // Before it: a loaded machine may come back to us late.
  Instant waiting = begin;
  Running command;
};
using Runs = std::vector<std::unique_ptr<Started>>;

// Of runs beside each other.
void expect_no_server_in_time(const Runs& runs) {
  for (const auto& run : runs) {
    const int code = run->command.wait();
    const Instant end = Client::now();
    TEST_MESSAGE("taken: " << (end - run->begin) / 1ms << " ms, of which " << (end - run->waiting) / 1ms
                           << " ms were seen; stderr: " << run->command.errors());
    TEST_ASSERT_EQUAL(exit_no_server, code);
    TEST_ASSERT_TRUE(end - run->begin >= at_least(3s));
    TEST_ASSERT_TRUE(end - run->waiting < 3s + request_timeout_default + slack);
  }
}

// A port of the loopback interface whose queue of connections is full: to connect takes for ever.
class FullPort {
 public:
  FullPort() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::listen(listener_, 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    for (int& filler : fillers_) {
      filler = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      (void)::connect(filler, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }
  }
  ~FullPort() {
    for (const int filler : fillers_) ::close(filler);
    ::close(listener_);
  }
  FullPort(const FullPort&) = delete;
  FullPort& operator=(const FullPort&) = delete;

  [[nodiscard]] std::string url() const { return run_url(port_); }

 private:
  int listener_ = -1;
  int port_ = 0;
  int fillers_[4] = {-1, -1, -1, -1};
};

// A server of one connection after the other: it answers every command of the handshake as a server does, and everything
// else with one line.
class Refuser : public ConnectionServer {
 public:
  Refuser(const std::string& path, const std::string& line)
      : ConnectionServer(path, [line](int connection) {
          char bytes[16384];
          bool first = true;
          for (ssize_t size = 0; (size = ::recv(connection, bytes, sizeof bytes, 0)) > 0; first = false) {
            const std::string text(bytes, static_cast<std::size_t>(size));
            std::string reply = first ? "+OK\r\n:7\r\n-ERR no such thing\r\n" : "";
            if (!first)
              for (std::size_t left = count(text, "\r\n*") + 1; left != 0; --left) reply += line + "\r\n";
            send_text(connection, reply);
          }
        }) {}

 private:
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
};

}  // namespace

// ---- A signal ends a wait, wherever that is ----------------------------------------------------------------------

TEST_ON_SERVER(test_a_signal_should_end_a_run_whose_server_never_answered) {
  server.pause();
  for (const int number : {SIGTERM, SIGINT})
    for (const Words& options : {Words{}, Words{"-w", "100"}, Words{"-n"}})
      for (const int times : {1, 2}) {
        Running command(server.unix_url(), run_script(options, "exit 1"));
        (void)::poll(nullptr, 0, 100);
        expect_end_by(command, number, times);
      }
  server.resume();
}

TEST(test_a_signal_should_end_a_run_that_connects) {
  FullPort port;
  for (const int delay : {100, 2500})
    for (const int times : {1, 2}) {
      Running command(port.url(), run_script({"-w", "100"}, "exit 1"));
      (void)::poll(nullptr, 0, delay);
      expect_end_by(command, SIGTERM, times);
    }
}

TEST(test_a_signal_should_end_a_run_between_two_attempts_to_connect) {
  for (const char* const url : {"redis://127.0.0.1:1", "unix:///nonexistent/socket"})
    for (const int delay : {50, 700, 1500}) {
      Running command(url, run_script({"-w", "100"}, "exit 1"));
      (void)::poll(nullptr, 0, delay);
      expect_end_by(command, SIGTERM);
    }
}

TEST_ON_SERVER(test_a_signal_should_end_a_wait_on_a_server_that_fell_silent) {
  for (const int delay : {0, 300, 1300, 3000}) {
    // Beside each other, each under a name of its own.
    std::vector<std::unique_ptr<Running>> commands;
    for (const std::string kind : kinds)
      for (const std::string& name : {kind + "1", kind + "2"}) {
        server.command("SET " + name + " foreign");
        commands.push_back(
            std::make_unique<Running>(server.unix_url(), Words{"run", "--kind", kind, name, "--", "false"}));
      }
    for (const auto& command : commands) TEST_ASSERT_TRUE(command->says("waiting for "));
    server.pause();
    (void)::poll(nullptr, 0, delay);
    const Instant begin = Client::now();
    for (const int turn : {0, 1})  // One or two of them.
      for (std::size_t index = 0; index < commands.size(); ++index)
        if (turn == 0 || index % 2 == 1) commands[index]->signal(index % 2 == 0 ? SIGTERM : SIGINT);
    for (std::size_t index = 0; index < commands.size(); ++index)
      expect_ended_by(*commands[index], index % 2 == 0 ? SIGTERM : SIGINT, begin);
    server.resume();
    for (const std::string kind : kinds)
      for (const std::string& name : {kind + "1", kind + "2"})
        TEST_ASSERT_EQUAL("foreign", server.command("GET " + name));
  }
}

TEST_ON_SERVER(test_a_signal_should_end_a_wait_on_a_server_that_is_gone) {
  for (const char* const kind : {"mutex", "reentrant"})
    for (const int delay : {0, 300, 2500}) {
      server.command("SET lock foreign");
      Running command(server.unix_url(), run_script({"--kind", kind}, "exit 1"));
      TEST_ASSERT_TRUE(command.says("waiting for lock"));
      server.stop();
      (void)::poll(nullptr, 0, delay);
      expect_end_by(command, SIGTERM);
      server.start();
    }
}

TEST_ON_SERVER(test_a_signal_should_end_a_wait_on_a_server_that_refuses) {
  server.command("SET lock foreign");
  const std::pair<const char*, const char*> refusals[] = {
      {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"},
      {"CONFIG SET min-replicas-to-write 3", "CONFIG SET min-replicas-to-write 0"}};
  for (const auto& [refuse, serve] : refusals) {
    Running command(server.unix_url(), run_script({}, "exit 1"));
    TEST_ASSERT_TRUE(command.says("waiting for lock"));
    server.command(refuse);
    (void)::poll(nullptr, 0, 700);
    expect_end_by(command, SIGTERM);
    server.command(serve);
  }
}

// The second connection, over which it hears of releases, is being made, and never answered.
TEST_ON_SERVER(test_a_signal_should_end_a_wait_that_connects_its_subscription) {
  server.command("SET lock foreign");
  for (const char* const kind : {"mutex", "reentrant"})
    for (const int times : {1, 2}) {
      Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
      proxy.hold_requests_of(1);
      Running command(proxy.url(), run_script({"--kind", kind}, "exit 1"));
      TEST_ASSERT_TRUE(command.says("waiting for lock"));
      TEST_ASSERT_TRUE(eventually([&] { return proxy.connections() >= 2; }));
      (void)::poll(nullptr, 0, 50);
      expect_end_by(command, SIGTERM, times);
    }
}

TEST_ON_SERVER(test_a_signal_should_end_a_wait_for_a_quorum) {
  RedisServer second(server.binary());
  RedisServer third(server.binary());
  const std::string urls = server.unix_url() + " " + second.unix_url() + " " + third.unix_url();
  for (RedisServer* const node : {&server, &second, &third}) node->command("SET lock foreign");
  for (const int step : {0, 1, 2}) {
    Running command(urls, run_script({"--no-restart-guard", "-w", "100"}, "exit 1"));
    TEST_ASSERT_TRUE(command.says("waiting for lock"));
    if (step > 0)
      for (RedisServer* const node : {&server, &second, &third}) node->pause();
    (void)::poll(nullptr, 0, 1000 * step);
    expect_end_by(command, SIGTERM);
    for (RedisServer* const node : {&server, &second, &third}) node->resume();
  }
}

// ---- How long a wait lasts ---------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_wait_on_a_server_that_falls_silent_should_not_be_longer_than_it_was_said_and_one_request) {
  // One server for each instant.
  constexpr int delays[] = {0, 400, 1500, 2700};
  std::vector<std::unique_ptr<RedisServer>> servers;
  Runs runs;
  for (std::size_t index = 0; index < std::size(delays); ++index)
    servers.push_back(std::make_unique<RedisServer>(server.binary()));
  for (const auto& it : servers) {
    it->command("SET lock foreign");
    for (const char* const kind : {"mutex", "reentrant"})
      runs.push_back(std::make_unique<Started>(it->unix_url(), run_script({"-w", "3", "--kind", kind}, "exit 1")));
  }
  for (const auto& run : runs) run->expect_waiting();
  for (std::size_t index = 0; index < std::size(delays); ++index) {
    const auto passed = static_cast<int>((Client::now() - runs[0]->begin) / 1ms);
    (void)::poll(nullptr, 0, std::max(0, delays[index] - passed));
    servers[index]->pause();
  }
  expect_no_server_in_time(runs);
}

TEST_ON_SERVER(test_a_wait_on_a_server_that_never_answers_should_not_be_longer_than_it_was_said_and_one_request) {
  server.pause();
  FullPort port;
  Runs runs;
  for (const std::string& url : {server.unix_url(), server.tcp_url(), port.url(), std::string("redis://127.0.0.1:1")})
    for (const char* const kind : {"mutex", "reentrant"})
      runs.push_back(std::make_unique<Started>(url, run_script({"-w", "3", "--kind", kind}, "exit 1")));
  expect_no_server_in_time(runs);
  server.resume();
}

TEST_ON_SERVER(test_without_waiting_a_silent_server_should_be_given_up_soon) {
  server.pause();
  const Instant begin = Client::now();
  TEST_ASSERT_EQUAL(exit_no_server, run_to_end(server.unix_url(), run_script({"-n"}, "exit 1")));
  TEST_ASSERT_TRUE(Client::now() - begin < connect_timeout_default + request_timeout_default + slack);
  server.resume();
}

// ---- What is waited for ------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_wait_should_be_for_a_server_that_is_not_up_yet) {
  server.stop();
  Running command(server.unix_url(), run_script({"-w", "60"}, "echo up"));
  TEST_ASSERT_TRUE(command.says("waiting for lock: No address accepted a connection."));
  server.start();
  TEST_ASSERT_EQUAL("up", command.line());
  TEST_ASSERT_EQUAL(0, command.wait());
}

TEST_ON_SERVER(test_a_wait_should_be_for_a_server_that_is_loading, "--key-load-delay", "50000",
               "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no") {
  for (int index = 0; index < 40; ++index)
    server.command("SET key" + std::to_string(index) + " " + std::string(100, 'x'));
  TEST_ASSERT_EQUAL("OK", server.command("SAVE"));
  server.stop();
  for (const Words& options : {Words{"-w", "60"}, Words{}}) {
    // Who is started by a thread dies with it, so the thread sees it to its end.
    bool loading = false;
    std::string line;
    std::string errors;
    int code = -1;
    std::thread runner([&] {
      loading = eventually([&] { return contains(server.command("GET key1"), "LOADING"); });
      // A server that loads answers, so that also a wait without an end waits for it.
      Running command(server.unix_url(), run_script(options, "echo up"));
      line = command.line();
      code = command.wait();
      errors = command.errors();
    });
    server.start();
    runner.join();
    TEST_MESSAGE("code: " << code << ", stderr: " << errors);
    TEST_ASSERT_TRUE(loading);
    TEST_ASSERT_EQUAL("up", line);
    TEST_ASSERT_EQUAL(0, code);
    TEST_ASSERT_TRUE(contains(errors, "waiting for lock: The server is loading its data."));
    server.stop();
  }
  server.start();
}

TEST_ON_SERVER(test_the_first_refusal_and_each_new_reason_should_be_told_once) {
  server.command("SET lock foreign");
  Running command(server.unix_url(), run_script({"-w", "60"}, "echo up"));
  TEST_ASSERT_TRUE(command.says("waiting for lock: it is held by foreign, without an expiry\n"));
  server.command("REPLICAOF 127.0.0.1 1");
  TEST_ASSERT_TRUE(command.says("waiting for lock: The server is a read-only replica."));
  server.command("REPLICAOF NO ONE");
  server.command("SET lock another PX 50000");
  TEST_ASSERT_TRUE(command.says("waiting for lock: it is held by another, for 4"));
  server.stop();
  TEST_ASSERT_TRUE(command.says("waiting for lock: "));
  (void)::poll(nullptr, 0, 2500);
  server.start();
  TEST_ASSERT_EQUAL("up", command.line());
  TEST_ASSERT_EQUAL(0, command.wait());
  const std::string all = command.errors();
  TEST_MESSAGE("stderr: " << all);
  TEST_ASSERT_EQUAL(4, std::count(all.begin(), all.end(), '\n'));
}

TEST_ON_SERVER(test_a_wait_on_a_replica_should_be_told_at_once_and_end_with_no_server) {
  server.command("REPLICAOF 127.0.0.1 1");
  for (const char* const kind : kinds) {
    std::string errors;
    TEST_ASSERT_EQUAL(exit_no_server,
                      run_to_end(server.unix_url(), run_script({"-w", "0.3", "--kind", kind}, "exit 1"), &errors));
    TEST_ASSERT_TRUE(contains(errors, "waiting for lock: The server is a read-only replica."));
    TEST_ASSERT_TRUE(contains(errors, "did not get the lock lock: The server is a read-only replica."));
  }
}

TEST_ON_SERVER(test_a_wait_on_a_slot_that_nobody_serves_should_be_told, "--cluster-enabled", "yes") {
  std::string errors;
  TEST_ASSERT_EQUAL(exit_no_server, run_to_end(server.unix_url(), run_script({"-w", "0.3"}, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "waiting for lock: The cluster does not serve the key's slot."));
}

// ---- What waiting cannot heal ------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_refused_login_should_end_every_wait, "--requirepass", "right-secret") {
  const std::string place = server.socket_path();
  for (const Words& options : {Words{}, Words{"-w", "100"}, Words{"-n"}}) {
    TEST_ASSERT_EQUAL(exit_no_permission, run_to_end("unix://" + place, run_script(options, "exit 1")));
    TEST_ASSERT_EQUAL(exit_no_permission, run_to_end("unix://:wrong@" + place, run_script(options, "exit 1")));
    TEST_ASSERT_EQUAL(exit_no_permission, run_to_end("unix://who:wrong@" + place, run_script(options, "exit 1")));
  }
}

TEST_ON_SERVER(test_a_password_that_is_changed_while_it_waits_should_end_the_wait) {
  for (const char* const kind : {"mutex", "reentrant"}) {
    server.command("SET lock foreign");
    Running command(server.unix_url(), run_script({"--kind", kind}, "exit 1"));
    TEST_ASSERT_TRUE(command.says("waiting for lock"));
    RawConnection raw(server.socket_path());
    raw.command("CONFIG SET requirepass changed");
    raw.command("AUTH changed");
    raw.command("CLIENT KILL TYPE pubsub SKIPME yes");
    raw.command("CLIENT KILL TYPE normal SKIPME yes");
    TEST_ASSERT_EQUAL(exit_no_permission, command.wait());
    raw.command("CONFIG SET requirepass \"\"");
  }
}

TEST_ON_SERVER(test_a_missing_permission_should_end_every_wait) {
  server.command("ACL SETUSER limited on >secret ~* &* +@connection +info");
  for (const Words& options : {Words{}, Words{"-w", "100"}})
    for (const char* const kind : kinds) {
      Words words = options;
      words.insert(words.end(), {"--kind", kind});
      TEST_ASSERT_EQUAL(exit_no_permission,
                        run_to_end("unix://limited:secret@" + server.socket_path(), run_script(words, "exit 1")));
    }
}

TEST_ON_SERVER(test_a_key_that_is_no_lock_should_end_every_wait) {
  server.command("RPUSH lock a");
  for (const Words& options : {Words{}, Words{"-w", "100"}, Words{"-n"}})
    for (const char* const kind : kinds) {
      Words words = options;
      words.insert(words.end(), {"--kind", kind});
      TEST_ASSERT_EQUAL(exit_no_lock, run_to_end(server.unix_url(), run_script(words, "exit 1")));
    }
}

TEST_ON_SERVER(test_refusals_of_the_place_should_end_every_wait) {
  const std::pair<const char*, int> cases[] = {
      {"-MOVED 1 127.0.0.1:7001", exit_no_server},    {"-CROSSSLOT Keys do not hash to the same slot", exit_no_server},
      {"-ERR unknown command 'SET'", exit_no_server}, {"+what", exit_protocol},
      {"-ERR something else", exit_protocol},
  };
  for (const auto& refusal : cases)
    for (const Words& options : {Words{}, Words{"-w", "100"}}) {
      Refuser refuser(server.socket_path() + ".refuser", refusal.first);
      TEST_MESSAGE("line: " << std::string(refusal.first));
      TEST_ASSERT_EQUAL(refusal.second, run_to_end(refuser.url(), run_script(options, "exit 1")));
    }
}

TEST_ON_SERVER(test_a_wrong_database_should_be_the_urls_mistake) {
  const std::string url = server.tcp_url() + "/99";
  for (const Words& words : {run_script({}, "exit 1"), run_script({"-w", "100"}, "exit 1"), Words{"info", "lock"},
                             Words{"release", "--force", "lock"}}) {
    std::string errors;
    TEST_ASSERT_EQUAL(exit_usage, run_to_end(url, words, &errors));
    TEST_ASSERT_TRUE(contains(errors, "no database 99"));
  }
}

TEST(test_a_sentinel_should_be_named_as_what_it_may_be) {
  for (const std::string& binary : server_binaries()) {
    // A server becomes one by its second argument, and wants a file that it can write to.
    RedisServer watched(binary);
    const std::string folder = watched.socket_path().substr(0, watched.socket_path().rfind('/'));
    const std::string file = folder + "/sentinel.conf";
    std::ofstream(file) << "port 0\nunixsocket " << folder << "/sentinel\nsentinel monitor m 127.0.0.1 "
                        << watched.port() << " 1\n";
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int nowhere = ::open("/dev/null", O_WRONLY);
      ::dup2(nowhere, 1);
      ::execl(binary.c_str(), binary.c_str(), file.c_str(), "--sentinel", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    TEST_ASSERT_TRUE(eventually([&] { return RawConnection(folder + "/sentinel").connected(); }));
    for (const Words& options : {Words{}, Words{"-w", "100"}}) {
      std::string errors;
      TEST_ASSERT_EQUAL(exit_no_server,
                        run_to_end("unix://" + folder + "/sentinel", run_script(options, "exit 1"), &errors));
      TEST_ASSERT_TRUE(contains(errors, "A Sentinel has no locks"));
    }
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

// ---- Who has it --------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_refusal_should_say_who_holds_the_lock) {
  const std::pair<Words, const char*> cases[] = {
      {{"SET", "lock", "foreign", "PX", "60000"}, "it is held by foreign, for 59."},
      {{"SET", "lock", "for\n\x1b[31meign"}, "it is held by for\\x0a\\x1b[31meign, without an expiry"},
      {{"HSET", "lock", "uuid:1", "3"}, "it is held by uuid:1, without an expiry"},
      {{"HSET", "lock", "mode", "read", "uuid:1", "2", "uuid:2", "2"},
       "it is held by uuid:1 and 1 more, without an expiry"},
      {{"HSET", "lock", "mode", "write", "uuid:1:write", "2"}, "it is held by uuid:1, without an expiry"},
  };
  for (const auto& [holder, text] : cases) {
    server.command(holder);
    for (const char* const kind : {"mutex", "reentrant"}) {
      std::string errors;
      TEST_ASSERT_EQUAL(exit_not_acquired,
                        run_to_end(server.unix_url(), run_script({"-n", "--kind", kind}, "exit 1"), &errors));
      TEST_ASSERT_TRUE(contains(errors, std::string("did not get the lock lock: ")));
      TEST_ASSERT_TRUE(contains(errors, text));
      TEST_ASSERT_FALSE(contains(errors, "\x1b"));
    }
    server.command("DEL lock");
  }
}

TEST_ON_SERVER(test_a_refusal_after_a_wait_should_say_who_holds_the_lock_then) {
  server.command("SET lock first");
  Running command(server.unix_url(), run_script({"-w", "1"}, "exit 1"));
  TEST_ASSERT_TRUE(command.says("held by first"));
  server.command("SET lock second");
  TEST_ASSERT_EQUAL(exit_not_acquired, command.wait());
  TEST_ASSERT_TRUE(contains(command.errors(), "did not get the lock lock: it is held by second"));
}

TEST_ON_SERVER(test_a_user_who_may_not_look_should_still_be_told_that_it_is_busy) {
  server.command("SET lock foreign");
  server.command("ACL SETUSER limited on >secret ~* &* +@connection +info +set +get");
  std::string errors;
  TEST_ASSERT_EQUAL(exit_not_acquired,
                    run_to_end("unix://limited:secret@" + server.socket_path(), run_script({"-n"}, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "did not get the lock lock: somebody else has it"));
}

TEST_ON_SERVER(test_a_refusal_by_a_quorum_should_say_who_holds_the_lock) {
  RedisServer second(server.binary());
  RedisServer third(server.binary());
  const std::string urls = server.unix_url() + " " + second.unix_url() + " " + third.unix_url();
  for (RedisServer* const node : {&second, &third}) node->command("SET lock foreign");
  std::string errors;
  TEST_ASSERT_EQUAL(exit_not_acquired, run_to_end(urls, run_script({"--no-restart-guard", "-n"}, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "did not get the lock lock: it is held by foreign"));
}

TEST_ON_SERVER(test_quiet_should_silence_waiting_and_a_busy_lock_and_nothing_else) {
  server.command("SET lock foreign");
  std::string errors;
  TEST_ASSERT_EQUAL(exit_not_acquired, run_to_end(server.unix_url(), run_script({"-q", "-n"}, "exit 1"), &errors));
  TEST_ASSERT_EQUAL("", errors);
  TEST_ASSERT_EQUAL(9,
                    run_to_end(server.unix_url(), run_script({"--quiet", "-w", "0.2", "-E", "9"}, "exit 1"), &errors));
  TEST_ASSERT_EQUAL("", errors);
  server.command("REPLICAOF 127.0.0.1 1");
  TEST_ASSERT_EQUAL(exit_no_server, run_to_end(server.unix_url(), run_script({"-q", "-w", "0.2"}, "exit 1"), &errors));
  TEST_ASSERT_EQUAL(1, std::count(errors.begin(), errors.end(), '\n'));
  TEST_ASSERT_EQUAL(exit_no_server, run_to_end("unix:///nonexistent/socket", run_script({"-q"}, "exit 1"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "no connection to /nonexistent/socket"));
}

// ---- A lock of an outer run --------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_run_inside_of_the_run_that_holds_its_lock_should_be_refused) {
  const std::string run = command_path() + " run ";
  const std::string inners[] = {
      run + "lock -- true",
      run + "-w 100 lock -- true",
      run + "--kind reentrant lock -- true",
      run + "other -- " + run + "lock -- true",             // Further out.
      run + "--url " + server.tcp_url() + " lock -- true",  // The same server by another name.
      "unset HOLDFAST_RUNS; " + run + "lock -- true",       // The name alone tells.
      "unset HOLDFAST_RUNS; unset HOLDFAST_NAME; HOLDFAST_NAME=lock " + run + "lock -- true",
  };
  for (const std::string& inner : inners) {
    std::string errors;
    TEST_MESSAGE("inner: " << inner);
    TEST_ASSERT_EQUAL(exit_usage, run_to_end(server.unix_url(), run_script({}, inner), &errors));
    TEST_ASSERT_TRUE(contains(errors, "did not wait for the lock lock: the run that this one is inside of holds it"));
  }
}

TEST_ON_SERVER(test_a_run_inside_of_the_run_that_holds_its_lock_should_find_it_busy_without_waiting) {
  std::string errors;
  TEST_ASSERT_EQUAL(exit_not_acquired,
                    run_to_end(server.unix_url(), run_script({}, command_path() + " run -n lock -- true"), &errors));
  TEST_ASSERT_TRUE(contains(errors, "the run that this one is inside of holds it"));
}

TEST_ON_SERVER(test_a_reader_inside_of_a_run_should_be_let_in_beside_a_reader_and_refused_beside_a_writer) {
  const std::string read = command_path() + " run --kind read lock -- sh -c \"exit 5\"";
  const std::string write = command_path() + " run --kind write lock -- true";
  TEST_ASSERT_EQUAL(5, run_to_end(server.unix_url(), run_script({"--kind", "read"}, read)));
  const std::pair<const char*, std::string> refused[] = {{"write", read}, {"write", write}, {"read", write}};
  for (const auto& [kind, inner] : refused) {
    std::string errors;
    TEST_ASSERT_EQUAL(exit_usage, run_to_end(server.unix_url(), run_script({"--kind", kind}, inner), &errors));
    TEST_ASSERT_TRUE(contains(errors, "did not wait for the lock lock: the run that this one is inside of holds it"));
  }
}

TEST_ON_SERVER(test_a_lock_of_the_same_name_elsewhere_should_not_be_refused) {
  RedisServer other(server.binary());
  const std::string inner = command_path() + " run --url " + other.unix_url() + " lock -- sh -c \"exit 5\"";
  TEST_ASSERT_EQUAL(5, run_to_end(server.unix_url(), run_script({}, inner)));
  const std::string database = command_path() + " run --url " + server.unix_url() + "?db=1 lock -- sh -c \"exit 6\"";
  TEST_ASSERT_EQUAL(6, run_to_end(server.unix_url(), run_script({}, database)));
}

// ---- What is left ------------------------------------------------------------------------------------------------

// The connection is cut at many an instant, so also between the grant and its reply. What was granted is taken back before the
// end, over another connection.
TEST_ON_SERVER(test_a_run_that_ends_without_the_lock_should_not_leave_its_key) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  int cut = 0;
  for (const char* const kind : {"mutex", "reentrant", "read", "write"})
    for (std::int64_t bytes = 120; bytes <= 330; bytes += 3) {
      proxy.cut_after(bytes);
      Running command(proxy.url(), run_script({"-n", "--kind", kind}, "exit 0"));
      const int code = command.wait();
      TEST_MESSAGE("kind " << kind << ", bytes " << bytes << ": " << code << ", " << command.errors());
      TEST_ASSERT_TRUE((code == 0 || code == exit_no_server));
      TEST_ASSERT_EQUAL("0", server.command("EXISTS lock"));
      if (contains(command.errors(), "did not get the lock lock: The connection ended before the reply.")) ++cut;
    }
  TEST_ASSERT_TRUE(cut > 0);
}

TEST_ON_SERVER(test_a_run_that_cannot_say_that_nothing_is_left_should_say_how_long_it_may_stay) {
  server.command("SET lock foreign");
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  Running command(proxy.url(), run_script({"-w", "2"}, "exit 1"));
  TEST_ASSERT_TRUE(command.says("waiting for lock"));
  proxy.hold_replies_of(Proxy::all);
  server.command("DEL lock");
  TEST_ASSERT_EQUAL(exit_no_server, command.wait());
  TEST_ASSERT_TRUE(contains(command.errors(), "has not confirmed that nothing is left of lock; it ends by itself in "));
  // The request to take it back was sent behind it, and is executed all the same.
  TEST_ASSERT_TRUE(eventually([&] { return server.command("EXISTS lock") == "0"; }));
  proxy.hold_replies_of(Proxy::none);
}

// It came back behind the end of a call, and asks anew. For all kinds of waiting.
TEST_ON_SERVER(test_a_waiter_that_was_stopped_should_wait_on) {
  server.command("SET mutex other PX 60000");
  server.command("HSET reentrant other:1 1");
  server.command("HSET fair other:1 1");
  std::vector<std::unique_ptr<Running>> waiters;
  for (const char* const kind : {"mutex", "reentrant", "fair"})
    waiters.push_back(
        std::make_unique<Running>(server.unix_url(), Words{"run", "-q", "--kind", kind, kind, "--", "true"}));
  TEST_ASSERT_TRUE(eventually([&] { return server.command("PUBSUB CHANNELS *{reentrant}") != ""; }));
  TEST_ASSERT_TRUE(eventually([&] { return server.command("ZCARD holdfast_queue:{fair}") == "1"; }));
  for (const auto& waiter : waiters) waiter->signal(SIGSTOP);
  (void)::poll(nullptr, 0, 3'500);  // Longer than any of its calls may take.
  for (const auto& waiter : waiters) waiter->signal(SIGCONT);
  (void)::poll(nullptr, 0, 50);
  server.command("DEL mutex reentrant fair");
  for (const auto& waiter : waiters) TEST_ASSERT_EQUAL(0, waiter->wait());
}
