// SPDX-License-Identifier: MIT
//
// What holdfast doctor makes of what it has measured: clocks that no test can bend on a real server.
#include "../src/cli/diagnosis.hpp"
#include "../src/cli/kind_rights.hpp"
#include "../src/cli/seconds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>

#include "unity_style.hpp"

static void setUp() {}
static void tearDown() {}

using namespace holdfast;
using namespace holdfast::cli;

namespace {

// Where in a round trip the server reads its clock: as a part of it, from `sent` on.
struct Reading {
  double first = 0.5;
  double last = 0.5;
};

// A pair every tenth of a second, of a server whose clock runs so and was set forward at the given one.
std::vector<TimePair> pairs_of(double rate, Duration trip, int step_at = -1, std::int64_t step = 0,
                               Reading reading = {}) {
  constexpr int count = 100;
  std::vector<TimePair> pairs;
  std::int64_t set = 0;
  for (int index = 0; index < count; ++index) {
    const Instant sent = Instant() + std::chrono::milliseconds(100'000 + 100 * index);
    if (index == step_at) set = step;
    const double into =
        std::chrono::duration<double, std::micro>(trip).count() * (index < count / 2 ? reading.first : reading.last);
    const double microseconds = (1e5 * index + into) * (1 + rate);
    pairs.push_back({sent, sent + trip, 1'700'000'000'000'000 + static_cast<std::int64_t>(microseconds) + set});
  }
  return pairs;
}

ServerFacts healthy() {
  ServerFacts server;
  server.address = "a:1";
  server.host = "a";
  server.info = {{"role", "master"},
                 {"redis_version", "7.0.15"},
                 {"aof_enabled", "1"},
                 {"uptime_in_seconds", "1000"},
                 {"maxmemory_policy", "noeviction"}};
  server.appendfsync = "always";
  server.save = "";
  server.times = pairs_of(0, std::chrono::microseconds(200));
  return server;
}

std::vector<Finding> findings_of(const ServerFacts& server, Duration lease = std::chrono::seconds(30)) {
  Examination examination;
  examination.lease = lease;
  examination.servers = {server};
  return diagnose(examination);
}

bool has(const std::vector<Finding>& findings, Severity severity, const char* code) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& it) { return it.severity == severity && it.code == code; });
}

bool contains_text(const std::vector<Finding>& findings, const char* text) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& it) { return it.what.find(text) != std::string::npos; });
}

}  // namespace

TEST(test_a_healthy_server_should_have_no_findings) { TEST_ASSERT_TRUE(findings_of(healthy()).empty()); }

TEST(test_a_clock_s_rate_should_be_within_its_uncertainty) {
  for (const double rate : {0.0, 1e-4, -1e-4, 0.005, -0.02, 0.5})
    for (const Duration trip : {Duration(std::chrono::microseconds(50)), Duration(std::chrono::milliseconds(40))}) {
      // In the middle of a round trip, and as far from it as can be, the one way and the other.
      for (const Reading reading : {Reading{}, Reading{0, 1}, Reading{1, 0}}) {
        const std::optional<ClockRate> found = clock_rate_of(pairs_of(rate, trip, -1, 0, reading));
        TEST_ASSERT_TRUE(found.has_value());
        TEST_ASSERT_TRUE(std::abs(found->parts_per_million - rate * 1e6) <= found->uncertainty);
        TEST_ASSERT_TRUE(found->uncertainty < 10'000);
      }
    }
  TEST_ASSERT_FALSE(clock_rate_of({}).has_value());
  TEST_ASSERT_FALSE(clock_rate_of({TimePair{}}).has_value());
}

TEST(test_a_clock_that_runs_otherwise_than_the_drift_allows_should_be_a_danger) {
  ServerFacts server = healthy();
  server.times = pairs_of(0.02, std::chrono::microseconds(200));
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::danger, "clock-rate"));
  // Not for one that is set again and again.
  server.times = pairs_of(0.25, std::chrono::microseconds(200));
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::danger, "clock-rate"));
  TEST_ASSERT_FALSE(has(findings_of(server), Severity::danger, "clock-step"));
  server.times = pairs_of(-0.003, std::chrono::microseconds(200));
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::warning, "clock-rate"));
  server.times = pairs_of(0, std::chrono::milliseconds(90));
  server.times.resize(5);  // Too short for such round trips.
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::information, "clock-unsure"));
}

TEST(test_a_clock_that_was_set_should_be_a_danger) {
  for (const std::int64_t step : {-3'600'000'000LL, -20'000LL, 20'000LL, 500'000LL}) {
    ServerFacts server = healthy();
    server.times = pairs_of(0, std::chrono::microseconds(200), 50, step);
    const std::optional<ClockRate> rate = clock_rate_of(server.times);
    TEST_ASSERT_EQUAL(1, rate->steps);
    TEST_ASSERT_TRUE(rate->largest_step == std::chrono::microseconds(std::abs(step)));
    TEST_ASSERT_TRUE(has(findings_of(server), Severity::danger, "clock-step"));
  }
}

TEST(test_findings_should_come_in_order_of_danger) {
  ServerFacts server = healthy();
  server.info["maxmemory"] = "1000";
  server.info["maxmemory_policy"] = "allkeys-lfu";
  server.info["redis_version"] = "5.0.14";
  server.info["uptime_in_seconds"] = "1";
  server.info["maxclients"] = "100";
  server.info["connected_clients"] = "99";
  server.appendfsync = "everysec";
  const std::vector<Finding> findings = findings_of(server);
  TEST_ASSERT_EQUAL(5U, findings.size());
  TEST_ASSERT_TRUE(has(findings, Severity::danger, "eviction"));
  TEST_ASSERT_TRUE(has(findings, Severity::warning, "old-version"));
  TEST_ASSERT_TRUE(has(findings, Severity::warning, "clients"));
  TEST_ASSERT_TRUE(has(findings, Severity::information, "young"));
  TEST_ASSERT_TRUE(std::is_sorted(findings.begin(), findings.end(), [](const Finding& one, const Finding& other) {
    return one.severity > other.severity;
  }));
}

TEST(test_seconds_should_be_as_short_as_they_are_exact_also_below_zero) {
  TEST_ASSERT_EQUAL("30", seconds_text(std::chrono::seconds(30)));
  TEST_ASSERT_EQUAL("0.25", seconds_text(std::chrono::milliseconds(250)));
  TEST_ASSERT_EQUAL("-0.123", seconds_text(std::chrono::milliseconds(-123)));
  TEST_ASSERT_EQUAL("-7.005", seconds_text(std::chrono::milliseconds(-7005)));
  TEST_ASSERT_EQUAL("0", seconds_text(std::chrono::microseconds(-900)));
}

TEST(test_percentiles_should_be_values_that_occurred) {
  std::vector<Duration> sorted;
  for (int index = 1; index <= 10; ++index) sorted.push_back(Duration(index));
  TEST_ASSERT_TRUE(percentile(sorted, 50) == Duration(5));
  TEST_ASSERT_TRUE(percentile(sorted, 99) == Duration(10));
  TEST_ASSERT_TRUE(percentile({Duration(7)}, 1) == Duration(7));
}

TEST(test_a_replica_that_is_ahead_should_not_lag_and_those_not_looked_at_should_be_counted) {
  ServerFacts server = healthy();
  server.info["connected_slaves"] = "18";
  server.info["master_repl_offset"] = "1000";
  server.info["slave15"] = "ip=1.2.3.4,port=1,state=online,offset=1001,lag=0";
  TEST_ASSERT_FALSE(has(findings_of(server), Severity::warning, "replica-lag"));
  TEST_ASSERT_TRUE(contains_text(findings_of(server), "18 replicas, of which 2 were not looked at"));
  server.info["slave15"] = "ip=1.2.3.4,port=1,state=online,offset=1000,lag=6";
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::warning, "replica-lag"));
  // The master's clock was set back; or it is no master.
  server.info["slave15"] = "ip=1.2.3.4,port=1,state=online,offset=1000,lag=-1";
  TEST_ASSERT_FALSE(has(findings_of(server), Severity::warning, "replica-lag"));
  server.info["slave15"] = "ip=1.2.3.4,port=1,state=wait_bgsave,offset=0,lag=0";
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::warning, "replica-away"));
}

TEST(test_numbers_below_zero_should_be_none) {
  ServerFacts server = healthy();
  for (const char* const name : {"connected_slaves", "used_memory", "maxmemory", "connected_clients", "maxclients"})
    server.info[name] = "-1";
  server.settings["min-replicas-to-write"] = " -1";
  TEST_ASSERT_TRUE(findings_of(server).empty());
  server.info["redis_version"] = "-7.-4";
  TEST_ASSERT_EQUAL(0U, server.version().major + server.version().minor);
  TEST_ASSERT_EQUAL(7U, leading_number("7\x1b[2J"));
}

TEST(test_a_server_that_says_nothing_of_itself_should_not_pass_for_one_that_was_checked) {
  ServerFacts server = healthy();
  server.info.clear();
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::information, "no-info"));
  server.no_info = "its answer is no text";
  TEST_ASSERT_TRUE(contains_text(findings_of(server), "(its answer is no text)"));
}

TEST(test_a_server_that_does_not_say_which_one_it_is_should_be_a_danger_in_a_quorum_alone) {
  ServerFacts server = healthy();
  TEST_ASSERT_FALSE(has(findings_of(server), Severity::danger, "no-vote"));
  Examination examination;
  examination.servers = {server, server};
  TEST_ASSERT_TRUE(has(diagnose(examination), Severity::danger, "no-vote"));
  examination.servers[0].info["run_id"] = "a";
  examination.servers[1].info["run_id"] = "b";
  TEST_ASSERT_FALSE(has(diagnose(examination), Severity::danger, "no-vote"));
  examination.servers[1].info.clear();
  examination.servers[1].info_refused = true;
  const std::vector<Finding> refused = diagnose(examination);
  TEST_ASSERT_TRUE(has(refused, Severity::danger, "no-vote"));
  TEST_ASSERT_TRUE(contains_text(refused, "in a quorum it has no vote"));
  // Nothing more is known of one that says nothing at all.
  examination.servers[1].silent = true;
  TEST_ASSERT_FALSE(has(diagnose(examination), Severity::danger, "no-vote"));
}

TEST(test_servers_whose_hosts_sentinels_know_should_not_be_taken_for_one_host) {
  const auto one_host = [](const std::optional<std::string>& one, const std::optional<std::string>& other) {
    Examination examination;
    examination.servers = {healthy(), healthy()};
    examination.servers[0].host = one;
    examination.servers[1].host = other;
    return has(diagnose(examination), Severity::warning, "one-host");
  };
  TEST_ASSERT_TRUE(one_host("a", "a"));
  TEST_ASSERT_FALSE(one_host("a", "b"));
  TEST_ASSERT_FALSE(one_host(std::nullopt, std::nullopt));
}

TEST(test_what_hosts_leave_out_or_exaggerate_should_be_no_finding) {
  ServerFacts server = healthy();
  server.set_up.kind = SetUp::cluster;
  server.set_up.name = "lock";
  server.set_up.server.fields = {{"cluster_state", "ok"}, {"owner", "a:1"}};
  server.settings["cluster-node-timeout"] = "99999999999999999999";
  TEST_ASSERT_TRUE(findings_of(server).empty());
  server.set_up = {};
  server.set_up.kind = SetUp::sentinels;
  for (const char* const host : {"a", "b", "c"}) {
    HostFacts sentinel;
    sentinel.address = sentinel.host = host;
    sentinel.master = "m:1";
    sentinel.fields = {{"quorum", "2"}, {"num-other-sentinels", "99999999999999999999"}};
    server.set_up.hosts.push_back(sentinel);
  }
  TEST_ASSERT_TRUE(findings_of(server).empty());
}

TEST(test_slots_that_failed_should_be_a_warning_where_others_go_on) {
  ServerFacts server = healthy();
  server.set_up.kind = SetUp::cluster;
  server.set_up.server.fields = {{"cluster_state", "ok"}, {"owner", "a:1"}, {"cluster_slots_fail", "5461"}};
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::warning, "cluster-slots-failed"));
  server.set_up.server.fields["cluster_state"] = "fail";
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::danger, "cluster-slots-failed"));
}

TEST(test_two_names_of_one_master_should_be_no_disagreement) {
  ServerFacts server = healthy();
  server.set_up.kind = SetUp::sentinels;
  for (const char* const host : {"a", "b", "c"}) {
    HostFacts sentinel;
    sentinel.address = sentinel.host = host;
    sentinel.master = std::string(host) == "b" ? "10.0.0.1:6379" : "db.internal:6379";
    sentinel.fields = {{"quorum", "2"}, {"num-other-sentinels", "2"}, {"num-slaves", "1"}, {"runid", "r"}};
    server.set_up.hosts.push_back(sentinel);
  }
  TEST_ASSERT_TRUE(findings_of(server).empty());
  server.set_up.hosts[1].fields["runid"] = "other";
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::danger, "sentinel-disagrees"));
  TEST_ASSERT_EQUAL("b", findings_of(server)[0].server);
}

TEST(test_silence_should_be_a_danger) {
  ServerFacts server = healthy();
  server.silent = true;
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::danger, "no-answer"));
  server.silent = false;
  server.times.clear();
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::danger, "no-answer"));
  // A user that may not ask for the time is no danger: a mutex does without it.
  server.time_refused = true;
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::information, "no-time"));
  TEST_ASSERT_FALSE(has(findings_of(server), Severity::danger, "no-answer"));
}

// proto/interop.md has the rights as a table: its rows, by what they are for.
TEST(test_rights_of_a_kind_should_be_those_of_the_document) {
  using Rules = std::set<std::string>;
  const char* const root = std::getenv("HOLDFAST_SOURCE_ROOT");
  std::ifstream document(std::string(root == nullptr ? "." : root) + "/proto/interop.md");
  std::map<std::string, Rules> needed;  // By the words of the second column; of optional rows by their first word.
  Rules optional;
  Rules clustered;
  Rules optional_of[3];  // Channels of a ReadWriteLock, a Semaphore and a FairLock.
  bool in_table = false;
  int rows = 0;
  for (std::string line; std::getline(document, line);) {
    in_table = in_table ? line.rfind("|", 0) == 0 : line == "| right | for |";
    const std::size_t middle = line.find(" | ");
    if (!in_table || middle == std::string::npos) continue;
    ++rows;
    // Rules stand between two backquotes.
    const auto rules_in = [](const std::string& text) {
      Rules rules;
      bool quoted = false;
      for (std::size_t begin = 0; begin <= text.size(); quoted = !quoted) {
        const std::size_t end = std::min(text.find('`', begin), text.size());
        if (quoted)
          for (const std::string& rule : rules_of(text.substr(begin, end - begin).c_str())) rules.insert(rule);
        begin = end + 1;
      }
      return rules;
    };
    const std::string what = line.substr(middle + 3);
    const Rules rules = rules_in(line.substr(0, middle));
    if (what.rfind("in a cluster", 0) == 0)
      clustered = rules;
    else if (what.find("ptional: without") == std::string::npos) {
      needed[what.substr(0, what.rfind(" |"))].insert(rules.begin(), rules.end());
    } else {
      optional.insert(rules.begin(), rules.end());
      const char* const names[] = {"`ReadWriteLock` ", "`Semaphore` ", "`FairLock` "};
      for (std::size_t index = 0; index < 3; ++index)
        if (const std::size_t at = what.find(names[index]); at != std::string::npos)
          optional_of[index].insert(*rules_in(what.substr(at + std::string(names[index]).size(), 25)).begin());
    }
  }
  TEST_ASSERT_TRUE(rows > 12);
  const std::vector<std::string> of_cluster = rules_of(cluster_rights);
  TEST_ASSERT_TRUE(clustered == Rules(of_cluster.begin(), of_cluster.end()));

  const auto all_of = [](std::initializer_list<Rules> parts) {
    Rules all;
    for (const Rules& part : parts) all.insert(part.begin(), part.end());
    all.erase("ReentrantLock");
    all.erase("NAME");
    return all;
  };
  const Rules reentrant = needed.at("`ReentrantLock`, `FencedLock`, `MultiLock`");
  const Rules& name = needed.at("all");
  for (const KindRights& rights : kind_rights) {
    TEST_MESSAGE(to_string(rights.kind));
    const Rules by_document = [&] {
      switch (rights.kind) {
        case Kind::mutex: return all_of({name, needed.at("`Mutex`")});
        case Kind::reentrant: return all_of({name, reentrant});
        case Kind::fenced: return all_of({name, reentrant, needed.at("fences")});
        case Kind::fair: return all_of({name, reentrant, needed.at("`FairLock`")});
        case Kind::read:
        case Kind::write: return all_of({name, needed.at("`ReadWriteLock`")});
        case Kind::semaphore: return all_of({name, needed.at("`Semaphore`")});
      }
      return Rules();
    }();
    Rules more = optional;
    if (rights.kind == Kind::read || rights.kind == Kind::write) more = all_of({more, optional_of[0]});
    if (rights.kind == Kind::semaphore) more = all_of({more, optional_of[1]});
    if (rights.kind == Kind::fair) more = all_of({more, optional_of[2]});
    // A string is compared and deleted by these; a hash is not.
    if (rights.kind != Kind::mutex) more.erase("+delex");
    if (rights.kind != Kind::mutex) more.erase("+delifeq");
    const auto ours = [](const char* list) {
      const std::vector<std::string> rules = rules_of(list);
      TEST_ASSERT_EQUAL(rules.size(), Rules(rules.begin(), rules.end()).size());
      return Rules(rules.begin(), rules.end());
    };
    TEST_ASSERT_TRUE(ours(rights.needed) == by_document);
    TEST_ASSERT_TRUE(ours(rights.optional) == more);
  }
}

TEST(test_keys_beside_a_lock_should_be_named_as_on_the_server) {
  TEST_ASSERT_EQUAL("a", named("~NAME", "a").example);
  TEST_ASSERT_EQUAL("~a", named("~NAME", "a").rule);
  // A rule is for its name alone, and can be typed.
  TEST_ASSERT_EQUAL("~a[*]b[?]c[[]d]", named("~NAME", "a*b?c[d]").rule);
  TEST_ASSERT_EQUAL("a*b?c[d]", named("~NAME", "a*b?c[d]").example);
  TEST_ASSERT_EQUAL("~?a?b?c?d??", named("~NAME", std::string(" a'b\"c\\d\xc3\0", 10)).rule);
  TEST_ASSERT_EQUAL("~{a[*]}*", named("~{NAME}*", "a*").rule);
  TEST_ASSERT_EQUAL("{a}:timeout", named("~{NAME}*", "a").example);
  TEST_ASSERT_EQUAL("~{a}*", named("~{NAME}*", "a").rule);
  TEST_ASSERT_EQUAL("x{a}:timeout", named("~{NAME}*", "x{a}").example);
  TEST_ASSERT_EQUAL("~x{a}*", named("~{NAME}*", "x{a}").rule);
  TEST_ASSERT_EQUAL("redisson_sc:{a}", named("&redisson_sc:*", "a").example);
  TEST_ASSERT_EQUAL("&redisson_sc:*", named("&redisson_sc:*", "a").rule);
}
