// SPDX-License-Identifier: MIT
//
// holdfast doctor: faults are planted on a real server one by one, and each is found; a healthy one has nothing to fear.
#include "command_fixture.hpp"
#include "proxy.hpp"

#include <memory>

static void setUp() {}
static void tearDown() {}

namespace {

constexpr int exit_warning = 1;
constexpr int exit_danger = 2;

struct Report {
  int code = -1;
  std::string text;

  // There is a finding of this code and severity. By --json.
  [[nodiscard]] bool has(const std::string& severity, const std::string& word) const {
    return contains(text, R"("severity": ")" + severity + R"(", "code": ")" + word + "\"");
  }
};

Report examine(const std::string& url, const Words& options = {}) {
  Words words = {"doctor", "--json", "--seconds", "0.3"};
  words.insert(words.end(), options.begin(), options.end());
  Running command(url, words);
  Report report;
  report.text = command.rest();
  report.code = command.wait();
  TEST_MESSAGE("stdout: " << report.text << "stderr: " << command.errors());
  return report;
}

// What a server of this machine must have to be healthy. A test's own has neither.
void heal(RedisServer& server) {
  TEST_ASSERT_EQUAL("OK", server.command("CONFIG SET appendonly yes"));
  TEST_ASSERT_TRUE(
      eventually([&] { return contains(server.command("INFO persistence"), "aof_rewrite_in_progress:0"); }));
}

void expect(const Report& report, const char* severity, const char* code) {
  TEST_ASSERT_TRUE(report.has(severity, code));
  const bool danger = std::string(severity) == "danger";
  TEST_ASSERT_EQUAL(danger ? exit_danger : std::string(severity) == "warning" ? exit_warning : 0, report.code);
}

}  // namespace

TEST_ON_SERVER(test_a_healthy_server_should_have_nothing_above_information) {
  heal(server);
  for (const char* const kind : {"mutex", "reentrant", "fenced", "fair", "read", "write", "semaphore"}) {
    // A lease that no load of this machine makes short.
    const Report report = examine(server.unix_url(), {"--kind", kind, "-l", "25", "lock"});
    TEST_ASSERT_EQUAL(0, report.code);
    TEST_ASSERT_FALSE(contains(report.text, "\"warning\""));
    TEST_ASSERT_FALSE(contains(report.text, "rights"));
    TEST_ASSERT_TRUE(contains(report.text, "\"clock_steps\": 0"));
  }
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  const std::string text = output_of(server.unix_url(), {"doctor", "--seconds", "0.3", "lock"}, 0);
  for (const char* const part : {"version: ", "role: master", "user: default", "ppm beside ours",
                                 "round trip in ms: half", "#", "watchdog: of a lease of 30 seconds"})
    TEST_ASSERT_TRUE(contains(text, part));
}

TEST_ON_SERVER(test_eviction_should_be_a_danger_also_of_keys_that_expire) {
  heal(server);
  for (const char* const policy : {"allkeys-lru", "volatile-ttl"}) {
    server.command("CONFIG SET maxmemory 0");
    server.command(std::string("CONFIG SET maxmemory-policy ") + policy);
    expect(examine(server.unix_url()), "information", "eviction-later");
    server.command("CONFIG SET maxmemory 100mb");
    expect(examine(server.unix_url()), "danger", "eviction");
  }
}

TEST_ON_SERVER(test_a_full_memory_should_be_a_warning) {
  heal(server);
  server.command("CONFIG SET maxmemory 1000000");
  expect(examine(server.unix_url()), "warning", "memory-full");
}

TEST_ON_SERVER(test_what_a_restart_forgets_should_be_a_warning) {
  expect(examine(server.unix_url()), "warning", "no-persistence");
  server.command("CONFIG SET save \"3600 1\"");
  expect(examine(server.unix_url()), "warning", "snapshots");
}

TEST_ON_SERVER(test_a_missing_right_should_be_a_danger_with_the_rule_to_add) {
  heal(server);
  const std::string url = "redis://bob:x@127.0.0.1:" + std::to_string(server.port());
  // Once by ACL DRYRUN, and once by trying, which leaves nothing.
  for (const char* const admin : {"+acl|whoami +acl|dryrun", ""}) {
    server.command(std::string("ACL SETUSER bob reset on >x ~* &* +@all -@admin -pexpire -hkeys ") + admin);
    const Report report = examine(url, {"lock"});
    expect(report, "danger", "rights");
    TEST_ASSERT_TRUE(contains(report.text, "ACL SETUSER bob +pexpire\""));
    TEST_ASSERT_TRUE(contains(report.text, "+pexpire +hkeys\""));  // Of fair locks.
    TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
    // It is enough to do as it says.
    server.command("ACL SETUSER bob +pexpire");
    const Report mended = examine(url, {"lock"});
    TEST_ASSERT_EQUAL(0, mended.code);
    expect(examine(url, {"--kind", "fair", "lock"}), "danger", "rights");
  }
}

TEST_ON_SERVER(test_a_key_that_the_user_may_not_use_should_be_a_danger) {
  heal(server);
  server.command("ACL SETUSER bob on >x ~lock:* &* +@all");
  const std::string url = "redis://bob:x@127.0.0.1:" + std::to_string(server.port());
  const Report report = examine(url, {"other"});
  expect(report, "danger", "key");
  TEST_ASSERT_TRUE(contains(report.text, "ACL SETUSER bob ~other"));
  TEST_ASSERT_EQUAL(0, examine(url, {"lock:1"}).code);
}

TEST_ON_SERVER(test_optional_rights_should_be_information) {
  heal(server);
  server.command("ACL SETUSER bob on >x ~* &* +@all -publish -subscribe");
  const Report report = examine("redis://bob:x@127.0.0.1:" + std::to_string(server.port()));
  expect(report, "information", "optional-rights");
  TEST_ASSERT_TRUE(contains(report.text, "ACL SETUSER bob +publish +subscribe"));
}

TEST_ON_SERVER(test_a_user_who_may_not_ask_should_be_told_what_is_not_checked) {
  server.command("ACL SETUSER bob on >x ~* &* +@all -info -config");
  expect(examine("redis://bob:x@127.0.0.1:" + std::to_string(server.port())), "information", "no-info");
}

TEST_ON_SERVER(test_a_replica_should_be_a_danger_and_its_master_told_of_it) {
  heal(server);
  RedisServer replica(server.binary());
  heal(replica);
  replica.command("REPLICAOF 127.0.0.1 " + std::to_string(server.port()));
  TEST_ASSERT_TRUE(eventually([&] { return contains(server.command("INFO replication"), "state=online"); }));
  expect(examine(replica.unix_url()), "danger", "replica");
  expect(examine(server.unix_url()), "information", "replicas");
  // One that does not get on any more.
  ::kill(replica.pid(), SIGSTOP);
  TEST_ASSERT_TRUE(eventually([&] {
    const std::string info = server.command("INFO replication");
    const std::size_t at = info.find("lag=");
    return at != std::string::npos && std::stoi(info.substr(at + 4)) > 6;
  }));
  const Report report = examine(server.unix_url());
  ::kill(replica.pid(), SIGCONT);
  expect(report, "warning", "replica-lag");
}

TEST_ON_SERVER(test_a_quorum_that_is_none_should_be_a_danger) {
  heal(server);
  RedisServer second(server.binary());
  heal(second);
  expect(examine(server.unix_url() + " " + server.tcp_url() + " " + second.tcp_url()), "danger", "one-server");
  second.command("REPLICAOF 127.0.0.1 " + std::to_string(server.port()));
  TEST_ASSERT_TRUE(eventually([&] { return contains(server.command("INFO replication"), "state=online"); }));
  TEST_ASSERT_TRUE(examine(server.tcp_url() + " " + second.tcp_url()).has("danger", "one-data"));
}

TEST_ON_SERVER(test_a_quorum_on_one_machine_should_be_a_warning) {
  heal(server);
  RedisServer second(server.binary());
  heal(second);
  const Report report = examine(server.tcp_url() + " " + second.tcp_url(), {"-l", "25"});
  expect(report, "warning", "one-host");
  TEST_ASSERT_TRUE(report.has("information", "two-nodes"));
}

TEST_ON_SERVER(test_slow_round_trips_should_be_judged_by_the_lease) {
  heal(server);
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  proxy.delay_replies(std::chrono::milliseconds(100));
  expect(examine(proxy.url(), {"-l", "0.3"}), "danger", "round-trip");
  expect(examine(proxy.url(), {"-l", "1"}), "warning", "round-trip");
  proxy.delay_replies(std::chrono::milliseconds(0));
}

TEST_ON_SERVER(test_a_server_that_cannot_write_should_be_a_danger) {
  server.command("CONFIG SET save \"3600 1\"");
  server.command("CONFIG SET dbfilename dump.rdb");
  server.command("SET x y");
  const std::string folder = server.command("CONFIG GET dir").substr(4);
  std::filesystem::create_directory(folder + "/dump.rdb");  // Nothing can be renamed over it.
  std::ofstream(folder + "/dump.rdb/x") << "x";
  server.command("BGSAVE");
  TEST_ASSERT_TRUE(
      eventually([&] { return contains(server.command("INFO persistence"), "rdb_last_bgsave_status:err"); }));
  expect(examine(server.unix_url()), "danger", "disk");
}

TEST_ON_SERVER(test_a_server_that_is_not_there_or_not_for_us_should_be_a_danger_without_its_password, "--requirepass",
               "s3cret-word") {
  expect(examine("redis://127.0.0.1:1"), "danger", "no-connection");
  const Report report = examine("unix://:wr0ng-word@" + server.socket_path());
  expect(report, "danger", "no-connection");
  TEST_ASSERT_FALSE(contains(report.text, "ng-word"));
}

TEST(test_what_doctor_cannot_do_should_be_a_usage_error) {
  for (const Words& words :
       {Words{"doctor", "--kind", "x"}, Words{"doctor", "--seconds", "x"}, Words{"doctor", "-l", "0"},
        Words{"doctor", "--seconds", "3601"}, Words{"doctor", "a", "--", "b"}, Words{"doctor", ""}})
    TEST_ASSERT_EQUAL(exit_usage, run_to_end("", words));
}
