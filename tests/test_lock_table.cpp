// SPDX-License-Identifier: MIT
//
// The table that a watcher draws, and its lines: at every size of a window, with any names.
#include "../src/cli/lock_table.hpp"

#include <algorithm>

#include "unity_style.hpp"

static void setUp() {}
static void tearDown() {}

using namespace holdfast;
using namespace holdfast::cli;
using namespace std::chrono_literals;

namespace {

const std::string token = "0123456789abcdef0123456789abcdef";

Instant at(Duration after) { return Instant() + 1000s + after; }

void add(Logbook& book, const std::string& name, Duration remaining, std::uint64_t waiting = 0) {
  LockSight sight;
  sight.name = name;
  sight.form = LockForm::mutex;
  sight.holders.push_back({.id = token, .remaining = remaining});
  sight.owners = 1;
  sight.waiting = waiting;
  book.handle_sight(sight, at(0s), at(0s));
}

TableHead head() { return {.server = "127.0.0.1:6379", .scope = "pattern x"}; }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

bool is_printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return byte >= ' ' && byte <= '~'; });
}

}  // namespace

TEST(test_the_table_should_fit_into_every_window) {
  Logbook book(at(0s));
  for (std::size_t index = 0; index < 50; ++index) add(book, "lock\x1b[31m\n" + std::string(index * 5, 'x'), 30s);
  for (std::size_t rows = 1; rows < 70; rows += 3)
    for (std::size_t columns = 1; columns < 200; columns += 7) {
      const Table table = table_of(book, head(), {rows, columns}, at(1s));
      TEST_ASSERT_TRUE(table.lines.size() <= rows);
      for (const std::string& line : table.lines) {
        TEST_ASSERT_TRUE(line.size() <= columns);
        TEST_ASSERT_TRUE(is_printable(line));
      }
      if (rows > 4) TEST_ASSERT_EQUAL(std::min<std::size_t>(rows, 53), table.lines.size());
    }
}

TEST(test_a_narrow_window_should_lose_its_last_columns_and_keep_names) {
  Logbook book(at(0s));
  add(book, "a name of some length", 30s);
  const auto titles_at = [&](std::size_t columns) { return table_of(book, head(), {24, columns}, at(1s)).lines.at(2); };
  TEST_ASSERT_EQUAL(std::string("LOCK           KIND       HOLDER"), titles_at(50));
  TEST_ASSERT_EQUAL(std::string("LOCK"), titles_at(18));
  TEST_ASSERT_TRUE(has(titles_at(90), "SEEN"));
  TEST_ASSERT_TRUE(has(table_of(book, head(), {24, 18}, at(1s)).lines.at(3), "a name of some l.."));
}

TEST(test_what_does_not_fit_should_be_counted) {
  Logbook book(at(0s));
  for (int index = 0; index < 50; ++index) add(book, "lock" + std::to_string(index), 30s);
  const Table table = table_of(book, head(), {.rows = 13, .columns = 120}, at(1s));
  TEST_ASSERT_EQUAL(std::string("and 41 more"), table.lines.back());
  TEST_ASSERT_EQUAL(9U, table.names.size());
}

TEST(test_dangers_should_come_first_and_then_waiters) {
  Logbook book(at(0s));
  add(book, "a", 30s);
  add(book, "w", 30s, 3);
  add(book, "z", Duration::max());
  const Table table = table_of(book, head(), {}, at(1s));
  TEST_ASSERT_TRUE((table.names == std::vector<std::string>{"z", "w", "a"}));
  TEST_ASSERT_TRUE(has(table.lines.at(1), "DANGER: 1 without a TTL"));
  TEST_ASSERT_TRUE(has(table.lines.at(3), "no TTL"));
  TEST_ASSERT_TRUE(has(table.lines.at(5), "29 s"));
}

TEST(test_what_is_not_seen_should_be_said) {
  Logbook book(at(0s));
  TableHead above = head();
  TEST_ASSERT_EQUAL(std::string(), limits_text(book, above));
  above.refused = 2;
  above.left_out = 1;
  for (std::size_t index = 0; index < locks_max + 3; ++index) add(book, std::to_string(index), 30s);
  book.handle_sweep();
  TEST_ASSERT_EQUAL(std::string("3 locks more are not followed, 2 keys are refused to this user, 1 keys are left out"),
                    limits_text(book, above));
  TEST_ASSERT_TRUE(has(table_of(book, above, {24, 200}, at(1s)).lines.at(1), "; 3 locks more are not followed, "));
}

TEST(test_a_silent_server_should_be_said_above_the_table) {
  Logbook book(at(0s));
  add(book, "a", 30s);
  book.handle_silence("No reply came in time.", at(1s));
  TableHead above = head();
  above.retry = 2s;
  const Table table = table_of(book, above, {.rows = 5, .columns = 120}, at(4s));
  TEST_ASSERT_EQUAL(std::string("NO ANSWER for 3.0 s, asked again within 2.0 s: No reply came in time."),
                    table.lines.at(1));
}

TEST(test_an_empty_table_should_say_so) {
  const Logbook book(at(0s));
  TEST_ASSERT_EQUAL(std::string("no lock is held"), table_of(book, head(), {}, at(1s)).lines.back());
}

TEST(test_ages_should_be_short_at_every_size) {
  for (const auto& [age, text] : {std::pair<Duration, const char*>{0s, "0.0 s"},
                                  {-5s, "0.0 s"},
                                  {9940ms, "9.9 s"},
                                  {95s, "95 s"},
                                  {121s, "2 min"},
                                  {3h, "3 h"},
                                  {75h, "3 d"}})
    TEST_ASSERT_EQUAL(std::string(text), age_text(age));
  TEST_ASSERT_TRUE(age_text(Duration::max()).size() <= 8);
}

TEST(test_times_should_be_told_in_utc_with_milliseconds) {
  TEST_ASSERT_EQUAL(std::string("1970-01-01T00:00:00.001Z"), time_text(1'999'999));
  TEST_ASSERT_EQUAL(std::string("2026-11-25T13:20:43.000Z"), time_text(1'795'612'843'000'000'000));
}

TEST(test_every_change_should_be_one_line_of_printable_text_and_of_json) {
  Change change;
  change.lock = "a\"b\n\x1b</svg>\xff";
  change.holder = "x\ny\"";
  change.before = token;
  change.text = "why\r\n";
  change.waiters = {"w\n", "v"};
  change.waiting = 2;
  for (int kind = 0; kind <= static_cast<int>(ChangeKind::answers); ++kind) {
    change.kind = static_cast<ChangeKind>(kind);
    const std::string line = change_line(change, "T");
    const std::string json = change_json(change, "T");
    TEST_MESSAGE(line << " " << json);
    TEST_ASSERT_TRUE(is_printable(line));
    TEST_ASSERT_TRUE(is_printable(json));
    TEST_ASSERT_TRUE(has(line, to_string(change.kind)));
    TEST_ASSERT_TRUE(has(json, R"("lock": "a\"b\\x0a\\x1b</svg>\\xff")"));
    TEST_ASSERT_EQUAL('{', json.front());
    TEST_ASSERT_EQUAL('}', json.back());
  }
}

TEST(test_a_missing_ttl_should_be_null_in_json) {
  Change change;
  change.lock = "a";
  change.remaining = Duration::max();
  TEST_ASSERT_TRUE(has(change_json(change, "T"), "\"remaining\": null"));
  TEST_ASSERT_TRUE(has(change_line(change, "T"), "no TTL"));
}
