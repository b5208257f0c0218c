// SPDX-License-Identifier: MIT
//
// How much a watcher asks of a server.
#include "../src/cli/watch_pace.hpp"

#include "unity_style.hpp"

static void setUp() {}
static void tearDown() {}

using namespace holdfast;
using namespace holdfast::cli;

TEST(test_no_round_should_look_at_more_keys_than_its_bound) {
  for (const std::size_t known : {0U, 1U, 49U, 50U, 51U, 150U, 151U, 10'000U})
    for (const std::size_t shown : {0U, 1U, 60U, 1000U})
      for (const bool swept : {false, true}) {
        const RoundPlan plan = plan_round(known, shown, true, swept);
        TEST_ASSERT_TRUE(plan.known + plan.scanned <= round_keys_max);
        TEST_ASSERT_TRUE(plan.known <= known);
        TEST_ASSERT_TRUE(plan.shown <= plan.known);
        TEST_ASSERT_TRUE(plan.scanned >= question_keys_max);  // It always goes on.
      }
}

TEST(test_the_pause_should_keep_the_rate_of_keys) {
  for (std::size_t keys = 0; keys <= round_keys_max; ++keys) {
    const double seconds = std::chrono::duration<double>(pause_after(keys)).count();
    TEST_ASSERT_TRUE(static_cast<double>(keys) <= seconds * keys_per_second_max + 0.001);
    TEST_ASSERT_TRUE(pause_after(keys) >= round_pause_min);
    TEST_ASSERT_TRUE(pause_after(keys) <= round_pause_max);
  }
}

TEST(test_pauses_before_a_silent_server_is_asked_should_grow_to_their_bound) {
  BackOff least;
  BackOff most;
  Duration before = Duration::zero();
  for (int turn = 0; turn < 40; ++turn) {
    const Duration low = least.next(0);
    const Duration high = most.next(1023);
    TEST_ASSERT_TRUE(low >= before);
    TEST_ASSERT_TRUE(high >= low);
    TEST_ASSERT_TRUE(high <= retry_pause_max);
    TEST_ASSERT_TRUE(low >= retry_pause_min / 2);
    before = low;
  }
  TEST_ASSERT_TRUE(before == retry_pause_max / 2);
  least.reset();
  TEST_ASSERT_TRUE(least.next(0) == retry_pause_min / 2);
}
