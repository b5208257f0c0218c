// SPDX-License-Identifier: MIT
#include "holdfast/detail/shared_tick.hpp"

#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr Duration unit = SharedTick::unit;

Instant at(Duration time) { return Instant() + time; }

}  // namespace

// A hold must not be renewed for longer than it was asked for.
TEST(test_a_tick_should_never_seem_younger_than_it_is) {
  using namespace std::chrono_literals;
  for (const Duration ticked : {Duration(0), unit - 1ns, unit, Duration(1h), Duration(24h * 365 * 10)})
    for (const Duration passed : {Duration(0), Duration(1), unit - 1ns, unit, Duration(10ms), Duration(24h * 24)}) {
      SharedTick tick;
      tick.set(at(ticked));
      const Duration since = tick.since(at(ticked + passed));
      TEST_ASSERT_TRUE(since >= passed);
      TEST_ASSERT_TRUE(since <= passed + 2 * unit);
    }
}

TEST(test_a_tick_that_comes_after_the_time_was_read_should_be_young) {
  using namespace std::chrono_literals;
  SharedTick tick;
  tick.set(at(1h));
  TEST_ASSERT_TRUE(tick.since(at(1h - 5ms)) <= unit);
  TEST_ASSERT_TRUE(tick.since(at(1h - 1s)) < Duration::zero());
}
