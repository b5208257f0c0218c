// SPDX-License-Identifier: MIT
//
// What holdfast doctor makes of what it has measured: clocks that no test can bend on a real server.
#include "../src/cli/diagnosis.hpp"

#include <algorithm>
#include <cmath>

#include "unity_style.hpp"

static void setUp() {}
static void tearDown() {}

using namespace holdfast;
using namespace holdfast::cli;

namespace {

// A pair a tenth of a second, of a server whose clock runs so and was set forward at the given one.
std::vector<TimePair> pairs_of(double rate, Duration trip, int step_at = -1, std::int64_t step = 0) {
  std::vector<TimePair> pairs;
  std::int64_t set = 0;
  for (int index = 0; index < 100; ++index) {
    const Instant sent = Instant() + std::chrono::milliseconds(100'000 + 100 * index);
    if (index == step_at) set = step;
    const double microseconds = 1e5 * index * (1 + rate) + std::chrono::duration<double, std::micro>(trip).count() / 2;
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

}  // namespace

TEST(test_a_healthy_server_should_have_no_findings) { TEST_ASSERT_TRUE(findings_of(healthy()).empty()); }

TEST(test_a_clock_s_rate_should_be_within_its_uncertainty) {
  for (const double rate : {0.0, 1e-4, -1e-4, 0.005, -0.02, 0.5})
    for (const Duration trip : {Duration(std::chrono::microseconds(50)), Duration(std::chrono::milliseconds(40))}) {
      const std::optional<ClockRate> found = clock_rate_of(pairs_of(rate, trip));
      TEST_ASSERT_TRUE(found.has_value());
      TEST_ASSERT_TRUE(std::abs(found->parts_per_million - rate * 1e6) <= found->uncertainty);
      TEST_ASSERT_TRUE(found->uncertainty < 10'000);
    }
  TEST_ASSERT_FALSE(clock_rate_of({}).has_value());
  TEST_ASSERT_FALSE(clock_rate_of({TimePair{}}).has_value());
}

TEST(test_a_clock_that_runs_otherwise_than_the_drift_allows_should_be_a_danger) {
  ServerFacts server = healthy();
  server.times = pairs_of(0.02, std::chrono::microseconds(200));
  TEST_ASSERT_TRUE(has(findings_of(server), Severity::danger, "clock-rate"));
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
  const std::vector<Finding> findings = findings_of(server);
  TEST_ASSERT_EQUAL(4U, findings.size());
  TEST_ASSERT_TRUE(has(findings, Severity::danger, "eviction"));
  TEST_ASSERT_TRUE(has(findings, Severity::warning, "old-version"));
  TEST_ASSERT_TRUE(has(findings, Severity::warning, "clients"));
  TEST_ASSERT_TRUE(has(findings, Severity::information, "young"));
  TEST_ASSERT_TRUE(std::is_sorted(findings.begin(), findings.end(), [](const Finding& one, const Finding& other) {
    return one.severity > other.severity;
  }));
}

TEST(test_percentiles_should_be_values_that_occurred) {
  std::vector<Duration> sorted;
  for (int index = 1; index <= 10; ++index) sorted.push_back(Duration(index));
  TEST_ASSERT_TRUE(percentile(sorted, 50) == Duration(5));
  TEST_ASSERT_TRUE(percentile(sorted, 99) == Duration(10));
  TEST_ASSERT_TRUE(percentile({Duration(7)}, 1) == Duration(7));
}
