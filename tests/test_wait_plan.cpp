// SPDX-License-Identifier: MIT
//
// When a waiting acquire tries again. Every wait has a floor, a bound, and jitter unless a bound or a wake-up ends it.
#include "holdfast/core/wait_plan.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
constexpr ListenSet nobody = 0;
constexpr std::uint16_t least = 0;
constexpr std::uint16_t most = UINT16_MAX;
constexpr std::int64_t gone = -2;
constexpr std::int64_t unknown = -1;

WaitPlan tried(const WaitPlan::Settings& settings, ListenSet confirmed = nobody) {
  WaitPlan plan;
  plan.begin(settings);
  plan.begin_attempt(start, confirmed);
  return plan;
}

// How long is slept behind one refusal.
Duration wait_of(const WaitPlan::Settings& settings, ListenSet confirmed, std::int64_t remaining,
                 std::uint16_t random) {
  WaitPlan plan = tried(settings, confirmed);
  plan.plan(start, true, confirmed, remaining, random);
  return plan.next(false, confirmed) - start;
}

}  // namespace

// The table of wait_plan.hpp.
TEST(test_wait_should_go_on_behind_whatever_passes_by_itself) {
  const std::set<Status> passing = {Status::lock_busy,        Status::too_many_requests, Status::not_connected,
                                    Status::connect_failed,   Status::name_not_resolved, Status::transport_closed,
                                    Status::timed_out,        Status::read_only,         Status::loading,
                                    Status::out_of_memory,    Status::busy_script,       Status::no_script,
                                    Status::too_few_replicas, Status::stale_replica,     Status::disk_error,
                                    Status::cluster_down,     Status::try_again,         Status::too_many_clients,
                                    Status::no_quorum,        Status::system_error,      Status::outcome_unknown};
  for (int index = 0; index < status_count; ++index) {
    const auto status = static_cast<Status>(index);
    TEST_ASSERT_EQUAL(passing.count(status) != 0, worth_waiting(status));
  }
}

TEST(test_the_first_try_should_be_due_at_once) {
  WaitPlan plan;
  plan.begin({});
  TEST_ASSERT_TRUE(plan.due(start, false, nobody));
  TEST_ASSERT_TRUE(plan.due(Instant(), false, nobody));
}

// redis-py asks ten times a second, and redsync seven.
TEST(test_a_waiter_that_polls_should_ask_as_often_as_its_peers) {
  std::mt19937 random(19);
  WaitPlan plan;
  plan.begin({});
  Instant now = start;
  int asked = 0;
  for (; now < start + 60s; now = plan.next(false, nobody)) {
    ++asked;
    plan.begin_attempt(now, nobody);
    plan.plan(now, true, nobody, unknown, static_cast<std::uint16_t>(random()));
    if (asked == 1) TEST_ASSERT_TRUE(plan.next(false, nobody) <= start + 5ms);  // The first question comes again soon.
  }
  TEST_ASSERT_TRUE(asked >= 600 && asked <= 1200);
}

TEST(test_no_try_should_come_before_the_floor) {
  WaitPlan plan = tried({});
  for (const bool woken : {false, true})
    for (const ListenSet confirmed : {ListenSet{0}, ListenSet{1}}) {
      TEST_ASSERT_FALSE(plan.due(start + retry_delay_min - 1ns, woken, confirmed));
      TEST_ASSERT_TRUE(plan.next(woken, confirmed) >= start + retry_delay_min);
    }
  TEST_ASSERT_TRUE(plan.due(start + retry_delay_min, true, nobody));
  plan.begin_attempt(start, nobody, 70ms);
  TEST_ASSERT_FALSE(plan.due(start + 70ms - 1ns, true, nobody));
  TEST_ASSERT_TRUE(plan.due(start + 70ms, true, nobody));
  plan.set_floor(start + 90ms);
  TEST_ASSERT_FALSE(plan.due(start + 80ms, true, nobody));
  TEST_ASSERT_EQUAL(start + 90ms, plan.next(true, nobody));
}

TEST(test_a_deadline_that_has_passed_should_wait_for_the_floor_too) {
  WaitPlan plan = tried({.deadline = start + 1ms});
  plan.plan(start, true, nobody, unknown, most);
  TEST_ASSERT_EQUAL(start + retry_delay_min, plan.next(false, nobody));
  TEST_ASSERT_FALSE(plan.due(start + 1ms, false, nobody));
  TEST_ASSERT_TRUE(plan.due(start + retry_delay_min, false, nobody));
}

TEST(test_the_last_try_should_be_made_at_the_deadline) {
  WaitPlan plan = tried({.deadline = start + 50ms}, 1);
  plan.plan(start, true, 1, unknown, most);
  TEST_ASSERT_EQUAL(start + 50ms, plan.next(false, 1));
  TEST_ASSERT_TRUE(plan.due(start + 50ms, false, 1));
  TEST_ASSERT_FALSE(plan.last(start + 50ms - timeout_min));
  TEST_ASSERT_TRUE(plan.last(start + 50ms - timeout_min + 1ns));
}

TEST(test_for_ever_should_have_no_last_try) {
  const WaitPlan plan = tried({});
  TEST_ASSERT_FALSE(plan.last(start + 1000h));
}

TEST(test_a_clock_that_cannot_be_read_should_make_any_try_the_last) {
  const WaitPlan plan = tried({});
  TEST_ASSERT_TRUE(plan.due(Instant::max(), false, nobody));
  TEST_ASSERT_TRUE(plan.last(Instant::max()));
}

TEST(test_polls_should_grow_twofold_up_to_their_bound) {
  WaitPlan plan;
  plan.begin({});
  Instant now = start;
  Duration expected = retry_delay_min;
  for (int round = 0; round < 20; ++round) {
    plan.begin_attempt(now, nobody);
    plan.plan(now, true, nobody, unknown, most);
    expected = expected * 2 < retry_delay_max ? expected * 2 : retry_delay_max;
    TEST_ASSERT_EQUAL(now + expected, plan.next(false, nobody));
    now = plan.next(false, nobody);
    TEST_ASSERT_TRUE(plan.due(now, false, nobody));
  }
  TEST_ASSERT_TRUE(expected == retry_delay_max);
}

TEST(test_a_poll_should_be_drawn_from_the_upper_half_of_its_length) {
  TEST_ASSERT_EQUAL(start + retry_delay_min, start + wait_of({}, nobody, unknown, least));
  TEST_ASSERT_EQUAL(start + 2 * retry_delay_min, start + wait_of({}, nobody, unknown, most));
  const Duration middle = wait_of({}, nobody, unknown, most / 2);
  TEST_ASSERT_TRUE(middle > retry_delay_min);
  TEST_ASSERT_TRUE(middle < 2 * retry_delay_min);
}

TEST(test_a_failure_should_be_polled_also_by_who_listens) {
  WaitPlan plan = tried({}, 1);
  plan.plan(start, false, 1, 5000, most);
  TEST_ASSERT_EQUAL(start + 2 * retry_delay_min, plan.next(false, 1));
}

TEST(test_who_listens_should_sleep_until_the_hold_in_the_way_has_run_out) {
  TEST_ASSERT_EQUAL(start + 310ms, start + wait_of({}, 1, 300, least));
  TEST_ASSERT_EQUAL(start + 320ms, start + wait_of({}, 1, 300, most));
  TEST_ASSERT_EQUAL(start + 10ms, start + wait_of({}, 1, 0, least));
}

TEST(test_who_listens_should_sleep_max_poll_at_most) {
  for (const std::int64_t remaining : {unknown, std::int64_t{10'000'000}, INT64_MAX, std::int64_t{999}}) {
    TEST_ASSERT_EQUAL(start + 500ms, start + wait_of({.max_poll = 500ms}, 1, remaining, most));
    TEST_ASSERT_EQUAL(start + 500ms, start + wait_of({.max_poll = 500ms}, 1, remaining, least));
  }
}

TEST(test_a_refusal_that_tells_no_time_should_have_a_bound_of_its_own) {
  TEST_ASSERT_EQUAL(start + 80ms, start + wait_of({.unknown_poll = 80ms}, 1, unknown, most));
  TEST_ASSERT_EQUAL(start + 320ms, start + wait_of({.unknown_poll = 80ms}, 1, 300, most));
  TEST_ASSERT_EQUAL(start + 50ms, start + wait_of({.max_poll = 50ms, .unknown_poll = 80ms}, 1, unknown, most));
}

TEST(test_a_hold_that_is_gone_already_should_be_tried_for_at_the_floor) {
  TEST_ASSERT_EQUAL(start + retry_delay_min, start + wait_of({}, 1, gone, most));
}

TEST(test_polls_should_begin_short_again_behind_a_wait_by_push) {
  WaitPlan plan = tried({});
  for (int round = 0; round < 10; ++round) plan.plan(start, true, nobody, unknown, most);
  TEST_ASSERT_EQUAL(start + retry_delay_max, plan.next(false, nobody));
  plan.plan(start, true, 1, 1000, most);
  plan.plan(start, true, nobody, unknown, most);
  TEST_ASSERT_EQUAL(start + 2 * retry_delay_min, plan.next(false, nobody));
}

TEST(test_polls_should_begin_short_again_with_the_next_acquire) {
  WaitPlan plan = tried({});
  for (int round = 0; round < 10; ++round) plan.plan(start, true, nobody, unknown, most);
  plan.begin({});
  TEST_ASSERT_TRUE(plan.due(start, false, nobody));
  plan.plan(start, true, nobody, unknown, most);
  TEST_ASSERT_EQUAL(start + 2 * retry_delay_min, plan.next(false, nobody));
}

TEST(test_a_wake_up_should_be_answered_at_the_floor_without_jitter) {
  WaitPlan plan = tried({}, 1);
  plan.plan(start, true, 1, 10'000, most);
  TEST_ASSERT_EQUAL(start + retry_delay_min, plan.next(true, 1));
  TEST_ASSERT_TRUE(plan.due(start + retry_delay_min, true, 1));
  TEST_ASSERT_FALSE(plan.due(start + retry_delay_min, false, 1));
}

// What was released before the subscription was confirmed went unheard.
TEST(test_a_subscription_that_is_confirmed_should_be_worth_one_try) {
  WaitPlan plan = tried({}, nobody);
  plan.plan(start, true, 1, 10'000, most);
  TEST_ASSERT_TRUE(plan.due(start + retry_delay_min, false, 1));
  const Instant next = start + retry_delay_min;
  plan.begin_attempt(next, 1);
  plan.plan(next, true, 1, 10'000, most);
  TEST_ASSERT_FALSE(plan.due(next + 1s, false, 1));
  TEST_ASSERT_TRUE(plan.due(next + 1s, false, 3));  // Another node's.
  plan.begin_attempt(next + 1s, 3);
  plan.plan(next + 1s, true, 3, 10'000, most);
  TEST_ASSERT_FALSE(plan.due(next + 2s, false, 3));
  TEST_ASSERT_FALSE(plan.due(next + 2s, false, 1));  // One that is lost is no news.
}

TEST(test_a_subscription_that_was_lost_should_be_worth_a_try_when_it_is_back) {
  WaitPlan plan = tried({}, 3);
  plan.plan(start, true, 3, 10'000, most);
  plan.forget(1);
  TEST_ASSERT_FALSE(plan.due(start + 1s, false, 2));
  TEST_ASSERT_TRUE(plan.due(start + 1s, false, 3));
}

TEST(test_a_whole_spread_should_be_drawn_over_its_whole_length) {
  TEST_ASSERT_EQUAL(start + retry_delay_min, start + wait_of({.spread = WaitSpread::whole}, nobody, unknown, least));
  TEST_ASSERT_EQUAL(start + 3 * retry_delay_min, start + wait_of({.spread = WaitSpread::whole}, nobody, unknown, most));
  WaitPlan plan = tried({.spread = WaitSpread::whole});
  for (int round = 0; round < 10; ++round) plan.plan(start, true, nobody, unknown, least);
  TEST_ASSERT_EQUAL(start + retry_delay_min, plan.next(false, nobody));
}

TEST(test_a_whole_spread_should_have_jitter_behind_a_bound_as_well) {
  constexpr WaitPlan::Settings settings = {.max_poll = 50ms, .spread = WaitSpread::whole};
  const auto length = [&](std::int64_t remaining, std::uint16_t random) {
    return wait_of(settings, 1, remaining, random);
  };
  TEST_ASSERT_TRUE(length(unknown, least) < length(unknown, most));
  TEST_ASSERT_TRUE(length(gone, least) < length(gone, most));
  TEST_ASSERT_TRUE(length(unknown, most) <= 50ms + 2 * retry_delay_min);
}

namespace {

void expect_a_floor_a_bound_and_jitter(WaitSpread spread) {
  const bool whole = spread == WaitSpread::whole;
  std::mt19937 random(6);
  for (int round = 0; round < 10'000; ++round) {
    const Duration max_poll = poll_min + std::chrono::milliseconds(static_cast<int>(random() % 1000));
    const auto confirmed = static_cast<ListenSet>(random() % 3);
    const bool busy = random() % 4 != 0;
    const std::int64_t remaining = static_cast<std::int64_t>(random() % 1500) - 2;
    std::set<std::int64_t> lengths;
    const auto polls = static_cast<unsigned>(random() % 12);
    for (const std::uint16_t drawn : {std::uint16_t{0}, std::uint16_t{1000}, std::uint16_t{40000}, most}) {
      WaitPlan plan = tried({.max_poll = max_poll, .spread = spread}, confirmed);
      for (unsigned poll = 0; poll < polls; ++poll) plan.plan(start, false, nobody, unknown, least);
      plan.plan(start, busy, confirmed, remaining, drawn);
      const Duration length = plan.next(false, confirmed) - start;
      TEST_ASSERT_TRUE(length >= retry_delay_min);
      const Duration bound = busy && confirmed != 0 ? max_poll : retry_delay_max;
      TEST_ASSERT_TRUE(length <= bound + 2 * retry_delay_min);
      TEST_ASSERT_TRUE(plan.due(start + length, false, confirmed));
      TEST_ASSERT_FALSE(plan.due(start + length - 1ns, false, confirmed));
      lengths.insert(length.count());
    }
    // max_poll is a bound and gone is a wake-up: neither has jitter where waiters of one server are meant.
    const bool ended =
        !whole && busy && confirmed != 0 && (remaining < 0 || std::chrono::milliseconds(remaining) + 20ms > max_poll);
    TEST_ASSERT_TRUE(ended || lengths.size() == 4);
  }
}

}  // namespace

TEST(test_every_wait_should_have_a_floor_a_bound_and_jitter) {
  expect_a_floor_a_bound_and_jitter(WaitSpread::upper_half);
  expect_a_floor_a_bound_and_jitter(WaitSpread::whole);
}

TEST(test_each_wait_of_who_polls_should_be_twice_the_last_one_up_to_the_longest) {
  const auto waits_of = [](int tries) {
    WaitPlan plan = tried({});
    for (int index = 0; index < tries; ++index) plan.plan(start, true, nobody, unknown, most);
    return plan.next(false, nobody) - start;
  };
  const Duration longest = waits_of(30);
  for (int tries = 1; tries < 30; ++tries)
    TEST_ASSERT_EQUAL(std::min(2 * waits_of(tries), longest), waits_of(tries + 1));
}

TEST(test_a_remaining_time_of_an_hour_should_count_as_unknown) {
  WaitPlan::Settings settings;
  settings.unknown_poll = 5s;
  settings.max_poll = 1min;
  const std::int64_t hour = poll_max.count() / 1'000'000;
  TEST_ASSERT_EQUAL(Duration(5s), wait_of(settings, 1, hour, least));
  TEST_ASSERT_EQUAL(Duration(1min), wait_of(settings, 1, hour - 1, least));
}
