// SPDX-License-Identifier: MIT
//
// A deadline of "now and for ever" must not wrap to the past: sums of instants saturate.
#include <cstdint>

#include "holdfast/core/instant.hpp"
#include "holdfast/detail/clock.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {
constexpr Instant at(std::int64_t nanoseconds) { return Instant::from_nanoseconds(nanoseconds); }
}  // namespace

TEST(test_instants_should_add_and_subtract_as_numbers_do) {
  TEST_ASSERT_EQUAL(at(1'500'000'000), at(500'000'000) + 1s);
  TEST_ASSERT_EQUAL(at(500'000'000), at(1'500'000'000) - 1s);
  TEST_ASSERT_EQUAL(at(500'000'000), at(1'500'000'000) + -1s);
  TEST_ASSERT_EQUAL(at(1'500'000'000), at(500'000'000) - -1s);
  TEST_ASSERT_TRUE(Duration(1s) == at(1'500'000'000) - at(500'000'000));
  TEST_ASSERT_TRUE(Duration(-1s) == at(500'000'000) - at(1'500'000'000));
}

TEST(test_an_instant_should_never_pass_the_end_of_time) {
  TEST_ASSERT_EQUAL(Instant::max(), at(1) + Duration::max());
  TEST_ASSERT_EQUAL(Instant::max(), Instant::max() + 1ns);
  TEST_ASSERT_EQUAL(Instant::max(), Instant::max() + Duration::max());
  TEST_ASSERT_EQUAL(Instant::max(), Instant::max() - -1ns);
  TEST_ASSERT_EQUAL(Instant::max(), at(0) - Duration::min());
  TEST_ASSERT_EQUAL(Instant::max(), at(7) - Duration::min());
  TEST_ASSERT_EQUAL(Instant::max(), Instant() + Duration::max());
}

TEST(test_an_instant_should_never_come_before_the_epoch) {
  TEST_ASSERT_EQUAL(Instant(), at(5) - 6ns);
  TEST_ASSERT_EQUAL(Instant(), at(5) + -6ns);
  TEST_ASSERT_EQUAL(Instant(), Instant() - Duration::max());
  TEST_ASSERT_EQUAL(Instant(), at(5) + Duration::min());
  TEST_ASSERT_EQUAL(Instant(), Instant::max() + Duration::min());
}

TEST(test_the_epoch_should_come_before_everything_and_the_end_behind) {
  TEST_ASSERT_TRUE(Instant() == at(0));
  TEST_ASSERT_TRUE(Instant() < at(1));
  TEST_ASSERT_TRUE(at(1) < Instant::max());
  TEST_ASSERT_TRUE(at(1) <= at(1));
  TEST_ASSERT_FALSE(at(1) < at(1));
}

TEST(test_only_the_end_of_time_should_never_come) {
  TEST_ASSERT_TRUE(Instant::max().never());
  TEST_ASSERT_FALSE(Instant::from_nanoseconds(INT64_MAX - 1).never());
  TEST_ASSERT_FALSE(Instant().never());
}

TEST(test_the_longest_distance_should_not_overflow) {
  TEST_ASSERT_TRUE(Duration::max() == Instant::max() - Instant());
  TEST_ASSERT_TRUE(-Duration::max() == Instant() - Instant::max());
}

namespace {
// A clock of <chrono> that says what it is told.
struct SetClock {
  using duration = std::chrono::microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SetClock>;
  static inline time_point shown;
  static time_point now() { return shown; }
};
}  // namespace

TEST(test_an_instant_should_be_the_same_moment_on_another_clock_or_earlier) {
  SetClock::shown = SetClock::time_point(1h);
  for (const Duration left : {Duration(0s), Duration(1500ms), Duration(-1500ms), Duration(24h)}) {
    const Instant before = read_clock();
    const auto point = time_point_of<SetClock>(before + left);
    const Duration passed = read_clock() - before;
    TEST_ASSERT_TRUE(point - SetClock::shown <= left);
    TEST_ASSERT_TRUE(point - SetClock::shown + 1us >= left - passed);
  }
}

TEST(test_an_instant_without_a_moment_should_be_an_end_of_the_other_clock) {
  SetClock::shown = SetClock::time_point(1h);
  TEST_ASSERT_TRUE(SetClock::time_point::min() == time_point_of<SetClock>(Instant()));
  TEST_ASSERT_TRUE(SetClock::time_point::max() == time_point_of<SetClock>(Instant::max()));
  SetClock::shown = SetClock::time_point::max() - 1s;
  TEST_ASSERT_TRUE(SetClock::time_point::max() == time_point_of<SetClock>(read_clock() + 1h));
  SetClock::shown = SetClock::time_point(0s);
  TEST_ASSERT_TRUE(time_point_of<SetClock>(at(1)) < SetClock::shown);
}
