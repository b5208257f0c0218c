// SPDX-License-Identifier: MIT
#include "holdfast/core/openmetrics.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

std::string text_of(const Stats& stats, const std::vector<MetricLabel>& labels = {}) {
  std::string text(2 * openmetrics_size_max_with(metric_labels_max, 2048), '\0');
  std::size_t size = 0;
  TEST_ASSERT_EQUAL(Status::ok,
                    write_openmetrics(stats, {text.data(), text.size()}, size, labels.data(), labels.size()));
  text.resize(size);
  return text;
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

std::size_t samples_of(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    if (text[at] != '#') ++count;
  return count;
}

// As large as they can be.
Stats full_stats() {
  Stats stats;
  static_assert(sizeof stats % sizeof(std::uint64_t) == 0);
  std::memset(static_cast<void*>(&stats), 0xff, sizeof stats);
  return stats;
}

Status status_of(const std::vector<MetricLabel>& labels) {
  char space[1];
  std::size_t size = 0;
  return write_openmetrics({}, {space, sizeof space}, size, labels.data(), labels.size());
}

}  // namespace

TEST(test_text_should_have_each_number_under_its_name_and_end_with_eof) {
  Stats stats;
  stats.grants = 1;
  stats.refusals = 2;
  stats.failures = 3;
  stats.waits = 9;
  stats.waits_ended = 5;
  stats.losses = 6;
  stats.renewals = 7;
  stats.renewals_failed = 8;
  stats.connects = 12;
  stats.reconnects = 10;
  stats.disconnects = 11;
  stats.compensations = 13;
  stats.bytes_sent = 14;
  stats.bytes_received = 15;
  const std::string text = text_of(stats);
  for (const char* const line :
       {"holdfast_grants_total 1", "holdfast_refusals_total 2", "holdfast_acquire_failures_total 3",
        "holdfast_waits_total 9", "holdfast_losses_total 6", "holdfast_renewals_total 7",
        "holdfast_renewal_failures_total 8", "holdfast_connects_total 12", "holdfast_reconnects_total 10",
        "holdfast_compensations_total 13", "holdfast_sent_bytes_total 14", "holdfast_received_bytes_total 15",
        "holdfast_waiting_calls 4", "holdfast_connections 1", "# TYPE holdfast_grants counter",
        "# UNIT holdfast_sent_bytes bytes", "# TYPE holdfast_renewal_seconds histogram",
        "# UNIT holdfast_renewal_seconds seconds", "# TYPE holdfast_waiting_calls gauge"}) {
    TEST_MESSAGE(line);
    TEST_ASSERT_TRUE(has_line(text, line));
  }
  TEST_ASSERT_EQUAL(openmetrics_samples, samples_of(text));
  TEST_ASSERT_EQUAL("\n# EOF\n", text.substr(text.size() - 7));
  // Each family says what it is.
  std::size_t types = 0;
  for (std::size_t at = 0; (at = text.find("# TYPE ", at)) != std::string::npos; ++types) {
    at += std::strlen("# TYPE ");
    const std::string family = text.substr(at, text.find(' ', at) - at);
    TEST_MESSAGE(family);
    TEST_ASSERT_TRUE(text.find("\n# HELP " + family + " ") != std::string::npos);
  }
  TEST_ASSERT_TRUE(types > 10);
}

TEST(test_histogram_should_have_sums_of_its_buckets_and_seconds_to_the_last_digit) {
  Stats stats;
  stats.renewal.buckets[0] = 2;
  stats.renewal.buckets[3] = 5;
  stats.renewal.buckets[latency_buckets_count - 1] = 1;
  stats.renewal.nanoseconds = 61'000'000'007;
  const std::string text = text_of(stats);
  TEST_ASSERT_TRUE(has_line(text, "holdfast_renewal_seconds_bucket{le=\"0.0001\"} 2"));
  TEST_ASSERT_TRUE(has_line(text, "holdfast_renewal_seconds_bucket{le=\"0.0005\"} 2"));
  TEST_ASSERT_TRUE(has_line(text, "holdfast_renewal_seconds_bucket{le=\"0.001\"} 7"));
  TEST_ASSERT_TRUE(has_line(text, "holdfast_renewal_seconds_bucket{le=\"60.0\"} 7"));
  TEST_ASSERT_TRUE(has_line(text, "holdfast_renewal_seconds_bucket{le=\"+Inf\"} 8"));
  TEST_ASSERT_TRUE(has_line(text, "holdfast_renewal_seconds_sum 61.000000007"));
  TEST_ASSERT_TRUE(has_line(text, "holdfast_renewal_seconds_count 8"));
  TEST_ASSERT_TRUE(has_line(text, "holdfast_wait_seconds_sum 0.000000000"));
}

TEST(test_labels_should_stand_on_every_sample_and_be_escaped) {
  const std::string text = text_of({}, {{"job", "a\"b\\c\nd"}, {"_2", "\xc3\xa4"}});
  TEST_ASSERT_TRUE(has_line(text, "holdfast_grants_total{job=\"a\\\"b\\\\c\\nd\",_2=\"\xc3\xa4\"} 0"));
  TEST_ASSERT_TRUE(
      has_line(text, "holdfast_wait_seconds_bucket{job=\"a\\\"b\\\\c\\nd\",_2=\"\xc3\xa4\",le=\"0.0001\"} 0"));
  std::size_t labelled = 0;
  for (std::size_t at = text.find("{job="); at != std::string::npos; at = text.find("{job=", at + 1)) ++labelled;
  TEST_ASSERT_EQUAL(openmetrics_samples, labelled);
}

TEST(test_longest_text_should_fit_into_what_is_named_for_it) {
  TEST_ASSERT_TRUE(text_of(full_stats()).size() <= openmetrics_size_max);
  const std::string name(metric_label_name_size_max, 'n');
  const std::string value(metric_label_value_size_max, '"');
  const std::vector<MetricLabel> labels = {{ByteView(name), ByteView(value)}, {"second", "\n"}};
  const std::size_t bytes = name.size() + value.size() + 6 + 1;
  TEST_ASSERT_TRUE(text_of(full_stats(), labels).size() <= openmetrics_size_max_with(2, bytes));
}

TEST(test_space_that_is_too_small_by_a_byte_should_be_refused_untouched) {
  const std::string whole = text_of(full_stats());
  std::string space(whole.size() - 1, '.');
  std::size_t size = 4711;
  TEST_ASSERT_EQUAL(Status::buffer_too_small, write_openmetrics(full_stats(), {space.data(), space.size()}, size));
  TEST_ASSERT_EQUAL(4711U, size);
  TEST_ASSERT_EQUAL(std::string(whole.size() - 1, '.'), space);
  TEST_ASSERT_EQUAL(Status::buffer_too_small, write_openmetrics(full_stats(), {nullptr, 0}, size));
  std::string fitting(whole.size(), '.');
  TEST_ASSERT_EQUAL(Status::ok, write_openmetrics(full_stats(), {fitting.data(), fitting.size()}, size));
  TEST_ASSERT_EQUAL(whole, fitting);
}

TEST(test_labels_that_no_parser_takes_should_be_refused) {
  const std::string long_name(metric_label_name_size_max + 1, 'n');
  const std::string long_value(metric_label_value_size_max + 1, 'v');
  const std::vector<std::vector<MetricLabel>> refused = {{{"", "v"}},
                                                         {{"1a", "v"}},
                                                         {{"a-b", "v"}},
                                                         {{"a b", "v"}},
                                                         {{"`", "v"}},
                                                         {{"{", "v"}},
                                                         {{"@", "v"}},
                                                         {{"[", "v"}},
                                                         {{"/", "v"}},
                                                         {{"a/", "v"}},
                                                         {{"a:", "v"}},
                                                         {{"\xc3\xa4", "v"}},
                                                         {{"le", "v"}},
                                                         {{"__name__", "v"}},
                                                         {{ByteView(long_name), "v"}},
                                                         {{"a", ByteView(long_value)}},
                                                         {{"a", "v"}, {"a", "w"}},
                                                         {{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}, {"e", ""}}};
  for (const std::vector<MetricLabel>& labels : refused) {
    TEST_MESSAGE(std::string(labels[0].name.string_view()));
    TEST_ASSERT_EQUAL(Status::invalid_argument, status_of(labels));
  }
  // Too small a space, so these are as they should be.
  for (const char* const name : {"a", "z", "A", "Z", "_", "a0", "a9", "aZ_z"})
    TEST_ASSERT_EQUAL(Status::buffer_too_small, status_of({{name, "v"}}));
  TEST_ASSERT_EQUAL(Status::buffer_too_small, status_of({{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}}));
}

TEST(test_label_value_should_be_any_utf8_and_nothing_else) {
  for (const char* const good : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                                 "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\x7f\x01"})
    TEST_ASSERT_EQUAL(nullptr, metric_label_problem({"a", ByteView(good, std::strlen(good))}));
  for (const char* const bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xf0\x9f\x98"}) {
    TEST_ASSERT_TRUE(metric_label_problem({"a", ByteView(bad, std::strlen(bad))}) != nullptr);
  }
  // What stands behind it in memory is no part of it.
  TEST_ASSERT_TRUE(metric_label_problem({"a", ByteView("\xc3\xa4", 1)}) != nullptr);
  TEST_ASSERT_TRUE(metric_label_problem({"a", ByteView("\xf0\x9f\x98\x80", 3)}) != nullptr);
}
