// SPDX-License-Identifier: MIT
//
// The drawing of what a watcher saw.
#include "../src/cli/timeline.hpp"

#include <algorithm>

#include "unity_style.hpp"

static void setUp() {}
static void tearDown() {}

using namespace holdfast;
using namespace holdfast::cli;
using namespace std::chrono_literals;

namespace {

Instant at(Duration after) { return Instant() + 1000s + after; }

const std::string token = "0123456789abcdef0123456789abcdef";
const std::string uuid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

Change change_of(ChangeKind kind, Duration when, const std::string& holder, const std::string& lock = "lock") {
  Change change;
  change.kind = kind;
  change.at = at(when);
  change.lock = lock;
  change.holder = holder;
  return change;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t place = text.find(part); place != std::string::npos; place = text.find(part, place + 1)) ++found;
  return found;
}

// Every element is closed, in order: enough of XML to see that no name has broken it.
bool is_well_formed(const std::string& text) {
  std::vector<std::string> open;
  std::size_t place = text.find("?>");
  while ((place = text.find('<', place)) != std::string::npos) {
    const std::size_t end = text.find('>', place);
    if (end == std::string::npos || text.find('<', place + 1) < end) return false;
    const std::string tag = text.substr(place + 1, end - place - 1);
    if (count(tag, "\"") % 2 != 0) return false;
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    place = end;
  }
  return open.empty();
}

// A bar's left edge or width: pixels of its first attribute of that name.
double attribute(const std::string& text, const std::string& element, const std::string& name) {
  const std::size_t place = text.find(" " + name + "=\"", text.find(element));
  return std::strtod(text.c_str() + place + name.size() + 3, nullptr);
}

}  // namespace

TEST(test_a_hold_should_be_a_bar_of_its_time) {
  Timeline timeline(at(0s));
  timeline.handle_change(change_of(ChangeKind::found, 2s, token));
  Change over = change_of(ChangeKind::released, 7s, token);
  over.renewals = 4;
  timeline.handle_change(over);
  const std::string svg = timeline.svg("title", at(10s));
  TEST_ASSERT_TRUE(is_well_formed(svg));
  TEST_ASSERT_EQUAL(1U, count(svg, "class=\"hold\""));
  TEST_ASSERT_EQUAL(1U, count(svg, ": released, 5 s from 2 s on, 4 renewals"));
  // A plot of 960 pixels for ten seconds.
  TEST_ASSERT_EQUAL(480, attribute(svg, "class=\"hold\"", "width"));
  TEST_ASSERT_EQUAL(336 + 192, attribute(svg, "class=\"hold\"", "x"));
}

TEST(test_no_token_should_stand_in_the_drawing) {
  Timeline timeline(at(0s));
  timeline.handle_change(change_of(ChangeKind::found, 1s, token));
  Change stolen = change_of(ChangeKind::stolen, 2s, uuid + ":1");
  stolen.before = token;
  timeline.handle_change(stolen);
  const std::string svg = timeline.svg("", at(3s));
  TEST_ASSERT_EQUAL(1U, count(svg, "stolen from 01234567.."));
  TEST_ASSERT_EQUAL(0U, count(svg, token));
  TEST_ASSERT_EQUAL(0U, count(svg, uuid));
}

TEST(test_holds_of_one_client_should_share_a_lane_and_tokens_should_not) {
  Timeline timeline(at(0s));
  for (int turn = 0; turn < 5; ++turn) {
    const std::string holder = uuid + ":" + std::to_string(turn);
    timeline.handle_change(change_of(ChangeKind::acquired, turn * 2s, holder));
    timeline.handle_change(change_of(ChangeKind::released, turn * 2s + 1s, holder));
  }
  std::string svg = timeline.svg("", at(10s));
  TEST_ASSERT_EQUAL(5U, count(svg, "class=\"hold\""));
  TEST_ASSERT_EQUAL(1U, count(svg, "text-anchor=\"end\""));
  timeline.handle_change(change_of(ChangeKind::acquired, 11s, token));
  Change over = change_of(ChangeKind::handed_over, 12s, std::string(32, 'f'));
  over.before = token;
  timeline.handle_change(over);
  svg = timeline.svg("", at(14s));
  TEST_ASSERT_EQUAL(3U, count(svg, "text-anchor=\"end\""));
  TEST_ASSERT_EQUAL(1U, count(svg, "handed over, 1 s from 11 s on"));
  TEST_ASSERT_EQUAL(1U, count(svg, "held on, 2 s from 12 s on"));
}

TEST(test_waits_losses_and_steals_should_be_marked) {
  Timeline timeline(at(0s));
  Change waits = change_of(ChangeKind::waiting, 1s, "");
  waits.waiters = {uuid + ":1", token};
  timeline.handle_change(waits);
  waits.at = at(3s);
  waits.waiters = {token};
  timeline.handle_change(waits);
  std::string svg = timeline.svg("", at(4s));
  TEST_ASSERT_EQUAL(2U, count(svg, "class=\"wait\""));
  TEST_ASSERT_EQUAL(1U, count(svg, ": waited, 2 s from 1 s on"));
  TEST_ASSERT_EQUAL(1U, count(svg, ": waits, 3 s from 1 s on"));

  // Each sign stands once more, in the legend.
  TEST_ASSERT_EQUAL(1U, count(svg, "class=\"loss\""));
  timeline.handle_change(change_of(ChangeKind::found, 4s, uuid + ":2"));
  timeline.handle_change(change_of(ChangeKind::ran_out, 5s, uuid + ":2"));
  timeline.handle_change(change_of(ChangeKind::stolen, 5s, token));
  timeline.handle_change(change_of(ChangeKind::cut_short, 6s, token));
  timeline.handle_change(change_of(ChangeKind::no_expiry, 6s, token));
  svg = timeline.svg("", at(7s));
  TEST_ASSERT_TRUE(is_well_formed(svg));
  for (const char* const sign : {"loss", "steal", "cut", "endless"})
    TEST_ASSERT_EQUAL(2U, count(svg, std::string("class=\"") + sign + "\""));
  TEST_ASSERT_EQUAL(1U, count(svg, "lost: its lease ran out, 1 s from 4 s on"));
}

TEST(test_a_hold_that_was_written_over_should_end) {
  Timeline timeline(at(0s));
  timeline.handle_change(change_of(ChangeKind::found, 1s, "a"));
  Change stolen = change_of(ChangeKind::stolen, 3s, "b");
  stolen.before = "a";
  timeline.handle_change(stolen);
  TEST_ASSERT_EQUAL(2U, count(timeline.svg("", at(5s)), ": held on, "));  // Both have it.
  stolen.at = at(6s);
  stolen.holder = "c";
  stolen.over = true;
  timeline.handle_change(stolen);
  TEST_ASSERT_EQUAL(1U, count(timeline.svg("", at(8s)), "lock, a: stolen, 5 s from 1 s on"));
}

TEST(test_a_silent_server_should_be_a_shadow) {
  Timeline timeline(at(0s));
  timeline.handle_change(change_of(ChangeKind::silent, 2s, "", ""));
  timeline.handle_change(change_of(ChangeKind::answers, 4s, "", ""));
  timeline.handle_change(change_of(ChangeKind::silent, 6s, "", ""));
  const std::string svg = timeline.svg("", at(10s));
  TEST_ASSERT_EQUAL(2U, count(svg, "class=\"silence\""));
  TEST_ASSERT_EQUAL(192, attribute(svg, "class=\"silence\"", "width"));
}

TEST(test_no_name_should_break_the_drawing) {
  Timeline timeline(at(0s));
  for (const std::string& name : {std::string("</text><script>alert(1)</script>"), std::string("]]>\"'&<!--"),
                                  std::string("\0\x01\x1b\n\xff", 5), std::string(256, '<')}) {
    timeline.handle_change(change_of(ChangeKind::found, 1s, name, name));
    Change stolen = change_of(ChangeKind::stolen, 2s, name + "2", name);
    stolen.before = name;
    timeline.handle_change(stolen);
  }
  const std::string svg = timeline.svg("<&\">\n", at(3s));
  TEST_ASSERT_TRUE(is_well_formed(svg));
  TEST_ASSERT_EQUAL(0U, count(svg, "<script"));
  TEST_ASSERT_TRUE(
      std::all_of(svg.begin(), svg.end(), [](char byte) { return (byte >= ' ' && byte <= '~') || byte == '\n'; }));
}

TEST(test_ten_thousand_locks_should_stay_within_the_bounds) {
  Timeline timeline(at(0s));
  for (int lock = 0; lock < 10'000; ++lock)
    for (const ChangeKind kind : {ChangeKind::found, ChangeKind::released, ChangeKind::acquired})
      timeline.handle_change(change_of(kind, lock * 1ms, token, "lock" + std::to_string(lock)));
  const std::string svg = timeline.svg("", at(20s));
  TEST_ASSERT_EQUAL(2 * lanes_max, count(svg, "class=\"hold\""));
  TEST_ASSERT_EQUAL(lanes_max, count(svg, "text-anchor=\"end\""));
  TEST_ASSERT_EQUAL(1U, count(svg, "19400 more are not drawn"));
}

TEST(test_a_lock_with_many_tokens_should_have_a_lane_for_those_beyond) {
  Timeline timeline(at(0s));
  for (int turn = 0; turn < 100; ++turn) {
    const std::string holder = std::to_string(turn);
    timeline.handle_change(change_of(ChangeKind::acquired, turn * 100ms, holder));
    timeline.handle_change(change_of(ChangeKind::released, turn * 100ms + 50ms, holder));
  }
  const std::string svg = timeline.svg("", at(10s));
  TEST_ASSERT_EQUAL(lanes_per_lock_max, count(svg, "text-anchor=\"end\""));
  TEST_ASSERT_EQUAL(1U, count(svg, ">others<"));
  TEST_ASSERT_EQUAL(100U, count(svg, "class=\"hold\""));
}

TEST(test_a_drawing_of_nothing_should_be_one) {
  const std::string svg = Timeline(at(0s)).svg("", at(0s));
  TEST_ASSERT_TRUE(is_well_formed(svg));
  TEST_ASSERT_EQUAL(1U, count(svg, "no lock was held"));
}
