// SPDX-License-Identifier: MIT
//
// holdfast doctor: faults are planted on a real server one by one, and each is found; a healthy one has nothing to fear.
#include "answering_server.hpp"
#include "command_fixture.hpp"
#include "proxy.hpp"

#include <atomic>

static void setUp() {}
static void tearDown() {}

namespace {

constexpr int exit_warning = 1;
constexpr int exit_danger = 2;
const std::string time_reply = "*2\r\n$10\r\n1700000000\r\n$1\r\n5\r\n";

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

TEST_ON_SERVER(test_a_full_memory_should_be_a_danger_and_one_that_is_nearly_full_a_warning) {
  heal(server);
  server.command("CONFIG SET maxmemory 1000000");
  expect(examine(server.unix_url()), "danger", "memory-full");
  // More than nine tenths of it, and with the buffers of two connections less than all.
  server.command("SET ballast " + std::string(40'000'000, 'x'));
  const std::string info = server.command("INFO memory");
  const long used = std::atol(info.c_str() + info.find("used_memory:") + std::string("used_memory:").size());
  server.command("CONFIG SET maxmemory " + std::to_string(used + used / 20));
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

// As proto/interop.md grants them: nothing that this kind does without may make it a danger.
TEST_ON_SERVER(test_a_user_with_the_rights_of_a_kind_alone_should_be_in_no_danger) {
  heal(server);
  server.command("ACL SETUSER bob on >x ~lock resetchannels -@all +set +eval +evalsha +get +del +pexpire +pttl");
  const Report report = examine("redis://bob:x@127.0.0.1:" + std::to_string(server.port()), {"lock"});
  TEST_ASSERT_TRUE(report.has("information", "no-time"));
  TEST_ASSERT_FALSE(contains(report.text, "\"danger\""));
}

TEST_ON_SERVER(test_a_key_that_the_user_may_not_use_should_be_a_danger) {
  heal(server);
  server.command("ACL SETUSER bob on >x ~lock:* &* +@all");
  const std::string url = "redis://bob:x@127.0.0.1:" + std::to_string(server.port());
  const Report report = examine(url, {"other"});
  expect(report, "danger", "key");
  TEST_ASSERT_TRUE(contains(report.text, "ACL SETUSER bob ~other\""));
  TEST_ASSERT_EQUAL(0, examine(url, {"lock:1"}).code);
}

TEST_ON_SERVER(test_the_rule_for_a_name_should_be_one_that_can_be_typed_and_is_for_that_name) {
  heal(server);
  const std::string url = "redis://bob:x@127.0.0.1:" + std::to_string(server.port());
  const struct {
    std::string name;
    std::string rule;
    std::string other;
  } cases[] = {{"two words", "~two?words", "two"},
               {"a*b", "~a[*]b", "aXb"},
               {"a?[b]", "~a[?][[]b]", "aXb"},
               {"a\\b'c\"d", "~a?b?c?d", "ab"},
               {"gr\xc3\xb6\x1b[2J", "~gr???[[]2J", "gr"}};
  for (const auto& it : cases) {
    TEST_MESSAGE(it.rule);
    server.command("ACL SETUSER bob reset on >x resetchannels &* +@all");
    const Report report = examine(url, {it.name});
    expect(report, "danger", "key");
    TEST_ASSERT_TRUE(contains(report.text, "ACL SETUSER bob " + it.rule + "\""));
    TEST_ASSERT_EQUAL("OK", server.command("ACL SETUSER bob " + it.rule));
    TEST_ASSERT_EQUAL(0, examine(url, {it.name}).code);
    TEST_ASSERT_EQUAL(0, run_to_end(url, {"run", "-n", it.name, "--", "true"}));
    expect(examine(url, {it.other}), "danger", "key");
  }
}

// [interop] What stands beside the key, and the channels, are the kind's.
TEST_ON_SERVER(test_keys_beside_a_lock_should_be_looked_at_for_its_kind) {
  heal(server);
  const std::string url = "redis://bob:x@127.0.0.1:" + std::to_string(server.port());
  const struct {
    const char* kind;
    const char* keys;
    const char* channels;
  } cases[] = {{"mutex", "", "&redisson_lock__channel:*"},
               {"reentrant", "", "&redisson_lock__channel:*"},
               {"fenced", " ~redisson_lock_token:*", "&redisson_lock__channel:*"},
               {"fair", " ~holdfast_queue:* ~holdfast_beat:*", "&redisson_lock__channel:* &holdfast_fair:*"},
               {"read", " ~{orders}*", "&redisson_lock__channel:* &redisson_rwlock:*"},
               {"write", " ~{orders}*", "&redisson_lock__channel:* &redisson_rwlock:*"},
               {"semaphore", " ~{orders}*", "&redisson_lock__channel:* &redisson_sc:*"}};
  for (const auto& it : cases) {
    const std::string kind = it.kind;
    TEST_MESSAGE(kind);
    Words acquire = {"acquire", "-n", "-l", "5", "--kind", kind, "orders"};
    if (kind == "semaphore") acquire.insert(acquire.end() - 1, {"--permits", "1"});
    server.command("ACL SETUSER bob reset on >x ~orders resetchannels +@all");
    const Report report = examine(url, {"--kind", kind, "orders"});
    TEST_ASSERT_EQUAL(it.keys[0] != '\0', report.has("danger", "key"));
    if (it.keys[0] != '\0') {
      TEST_ASSERT_TRUE(contains(report.text, "ACL SETUSER bob" + std::string(it.keys) + "\""));
      // A writer asks for them only where there are readers.
      if (kind != "write") TEST_ASSERT_EQUAL(exit_no_permission, run_to_end(url, acquire));
    }
    // Redis 7 has ACL DRYRUN.
    TEST_ASSERT_TRUE(report.has("information", "channel"));
    TEST_ASSERT_TRUE(contains(report.text, std::string("ACL SETUSER bob ") + it.channels + "\""));
    // It is enough to do as it says.
    server.command(std::string("ACL SETUSER bob ") + it.channels + it.keys);
    TEST_ASSERT_EQUAL(0, examine(url, {"--kind", kind, "orders"}).code);
    TEST_ASSERT_EQUAL(0, run_to_end(url, acquire));
    server.command("FLUSHALL");
  }
}

TEST_ON_SERVER(test_a_command_that_the_server_lacks_should_be_a_danger, "--rename-command", "EVAL", "") {
  heal(server);
  server.command("ACL SETUSER bob on >x ~* &* +@all -@admin");
  for (const char* const user : {"", "bob:x@"}) {
    const Report report = examine("redis://" + std::string(user) + "127.0.0.1:" + std::to_string(server.port()));
    expect(report, "danger", "missing-command");
    TEST_ASSERT_TRUE(contains(report.text, "the server has no command for +eval: no locks of kind mutex"));
    TEST_ASSERT_TRUE(report.has("information", "no-info"));
    TEST_ASSERT_FALSE(contains(report.text, "+info +eval"));  // No right would help.
  }
}

TEST_ON_SERVER(test_a_server_that_falls_silent_should_be_a_danger_and_be_asked_no_more) {
  for (const char* const last : {"EVAL", "CONFIG", "ACL", "TIME"}) {
    TEST_MESSAGE(std::string(last));
    std::atomic<int> more{-1};  // After the question without an answer.
    AnsweringServer mute(server.socket_path() + ".mute", [&](const Words& words) -> std::string {
      // Nobody knows it by anything but its questions: the handshake's own script has no ARGV.
      const bool of_doctor = words[0] != "EVAL" || contains(words[1], "ARGV");
      if (more >= 0 || (words[0] == last && of_doctor)) {
        if (of_doctor) ++more;
        return "";
      }
      return words[0] == "TIME" ? time_reply : "-ERR of no use\r\n";
    });
    // Though it would look for longer than a test may take.
    const Report report = examine(mute.url(), {"--seconds", "600"});
    expect(report, "danger", "no-answer");
    TEST_ASSERT_FALSE(contains(report.text, "unchecked"));
    TEST_ASSERT_EQUAL(0, more);
  }
}

// A user who may neither use ACL DRYRUN nor delete, and a link on which the questions take their time.
TEST_ON_SERVER(test_probes_should_leave_no_key_however_long_they_take) {
  heal(server);
  server.command("ACL SETUSER bob on >x ~* &* +@all -@admin -del");
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  proxy.delay_replies(std::chrono::milliseconds(60));
  const Report report = examine("unix://bob:x@" + server.socket_path() + ".proxy", {"--kind", "fenced"});
  proxy.delay_replies(std::chrono::milliseconds(0));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_EQUAL("0", server.command("INFO commandstats").find("cmdstat_incr:") == std::string::npos ? "0" : "1");
  TEST_ASSERT_TRUE(contains(report.text, "+incr"));  // It is told that this one was not tried.
}

TEST_ON_SERVER(test_what_a_hostile_server_says_should_reach_no_terminal_and_bend_no_clock) {
  const std::string info =
      "role:\x1b[2Jmaster\nconnected_slaves:18446744073709551615\x1b[2J\nuptime_in_seconds:\x1b[2J\n"
      "redis_version:\x1b[2J7\nslave0:ip=\x1b[2J,port=1,state=\x1b[2J,offset=99999999999999999999,lag=-1\n";
  for (const char* const time :
       {"*2\r\n$19\r\n9223372036854775807\r\n$1\r\n0\r\n", "*2\r\n$2\r\n-1\r\n$1\r\n0\r\n",
        "*2\r\n$1\r\n1\r\n$7\r\n9999999\r\n", "*2\r\n$20\r\n18446744073709551615\r\n$1\r\n0\r\n", "+\x1b[2J\r\n"}) {
    TEST_MESSAGE(std::string(time));
    AnsweringServer hostile(server.socket_path() + ".hostile", [&](const Words& words) -> std::string {
      if (words[0] == "TIME") return time;
      if (words[0] == "EVAL" && contains(words[1], "ARGV"))
        return "$" + std::to_string(info.size()) + "\r\n" + info + "\r\n";
      return words[0] == "ACL" ? "+\x1b[2J\r\n" : "-ERR \x1b[2J\r\n";
    });
    for (const Words& words :
         {Words{"doctor", "--seconds", "0.1", "lock"}, Words{"doctor", "--json", "--seconds", "0.1"}}) {
      const Outcome outcome = outcome_of(hostile.url(), words);
      TEST_MESSAGE(outcome.text);
      TEST_ASSERT_EQUAL(exit_danger, outcome.code);
      TEST_ASSERT_FALSE(contains(outcome.text, "\x1b"));
      TEST_ASSERT_FALSE(contains(outcome.text, "ppm"));
      TEST_ASSERT_TRUE(contains(outcome.text, "did not say what time it is"));
      TEST_ASSERT_TRUE(contains(outcome.text, "were not looked at"));
    }
  }
}

namespace {

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }
std::string array(const Words& texts) {
  std::string reply = "*" + std::to_string(texts.size()) + "\r\n";
  for (const std::string& text : texts) reply += bulk(text);
  return reply;
}

// As a report that steers no terminal and as JSON that any reader takes.
void expect_plain_words(const std::string& url) {
  for (const Words& words :
       {Words{"doctor", "--seconds", "0.1", "lock"}, Words{"doctor", "--json", "--seconds", "0.1", "lock"}}) {
    const Outcome outcome = outcome_of(url, words);
    TEST_MESSAGE(outcome.text);
    TEST_ASSERT_EQUAL(exit_danger, outcome.code);
    for (const char byte : outcome.text) TEST_ASSERT_TRUE(byte == '\n' || (byte >= ' ' && byte <= '~'));
    TEST_ASSERT_TRUE(outcome.text.size() < 16'000);
  }
}

}  // namespace

TEST_ON_SERVER(test_what_a_hostile_sentinel_says_should_reach_no_terminal) {
  heal(server);
  const std::string escape = "\x1b[2J\r\n\x9b\",";
  for (const std::string& described :
       {array({"flags", "o_down," + escape, "quorum", escape, "num-other-sentinels", "18446744073709551615",
               "num-slaves", escape, "down-after-milliseconds", "99999999999999999999", escape, escape}),
        array({"quorum"}), std::string("*1000000\r\n"), std::string("$99999999999\r\n"), std::string("*-1\r\n"),
        std::string("-ERR \x1b[2J\r\n"), std::string("+\x1b[2J\r\n"), std::string(":1\r\n")}) {
    TEST_MESSAGE(described);
    int asked = 0;
    const AnsweringServer hostile("", [&](const Words& words) -> std::string {
      if (words[0] != "SENTINEL") return "-ERR \x1b[2J\r\n";
      if (words[1] == "CKQUORUM") return "-NOQUORUM \x1b[2J\r\n";
      if (words[1] == "MASTER") return described;
      // The first answer leads to a server, so that there is something to report.
      return asked++ % 2 == 0 ? array({"127.0.0.1", std::to_string(server.port())}) : array({escape, escape});
    });
    expect_plain_words("redis-sentinel://" + hostile.host() + "/mymaster");
  }
}

TEST(test_what_a_hostile_node_of_a_cluster_says_should_reach_no_terminal) {
  const std::string id(40, 'a');
  const std::string escape = "\x1b[2J\x9b\"";
  const std::string lines =
      "cluster_state:" + escape + "\ncluster_slots_assigned:-1\ncluster_slots_fail:99999999999999999999" + escape +
      "\nfailed:18446744073709551615\nfailed1:" + escape + "\nlonely:1\nlonely1:" + escape + "\nowner:" + escape +
      "\nowner_id:" + escape + "\nmasters:" + escape + "\n:\n" + escape + "\n";
  for (const std::string& said : {bulk(lines), std::string("*1000000\r\n"), std::string("*-1\r\n"),
                                  std::string("-ERR \x1b[2J\r\n"), bulk(std::string(1024, '\x1b')), bulk("")}) {
    TEST_MESSAGE(said);
    // One that has the slot, and one that leads to it: each serves one connection at a time.
    const auto answer = [&](const Words& words) -> std::string {
      if (words[0] == "EVAL" && contains(words[1], "'NODES'")) return said;
      if (words[0] == "EVAL" && !contains(words[1], "ARGV"))
        return array({id, "1", "7.0.15", "", id, "-1clustermaster"});
      return words[0] == "TIME" ? time_reply : "-ERR \x1b[2J\r\n";
    };
    const AnsweringServer master("", answer);
    const std::string moved = "-MOVED " + std::to_string(slot_of("lock")) + " " + master.host() + "\r\n";
    const AnsweringServer listed("", [&](const Words& words) {
      return words[0] == "EVAL" && !contains(words[1], "'NODES'") && !contains(words[1], "ARGV") ? moved
                                                                                                 : answer(words);
    });
    expect_plain_words("redis-cluster://" + listed.host());
  }
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
  const std::string url = "redis://bob:x@127.0.0.1:" + std::to_string(server.port());
  const Report alone = examine(url);
  expect(alone, "information", "no-info");
  TEST_ASSERT_FALSE(alone.has("danger", "no-vote"));
  // A quorum has to know which servers it has.
  RedisServer second(server.binary());
  const Report both = examine(url + " " + second.tcp_url());
  expect(both, "danger", "no-vote");
  TEST_ASSERT_TRUE(contains(both.text, "ACL SETUSER bob +info +eval"));
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
