// SPDX-License-Identifier: MIT
//
// A hold that may stay where it is used: when it does, when it is taken again, and when it must go.
#include "unity_style.hpp"

#include "holdfast/core/fair_kind.hpp"
#include "holdfast/core/linger.hpp"
#include "lock_desk.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
constexpr Duration most = 3s;
constexpr LockTiming timing = {.lease = Desk::lease};

// A hold since `start`, of a lease of ten seconds, that nobody has recalled and for which somebody listens.
struct Stay {
  Stay() : desk(fair_lingering_kind), linger(most) {
    desk.hold(start);
    linger.begin();
    linger.hear(start);
  }
  Desk desk;
  Linger linger;
};

}  // namespace

TEST(test_a_release_should_leave_it_idle_and_the_next_acquire_take_it) {
  Stay stay;
  TEST_ASSERT_FALSE(stay.linger.idle());
  TEST_ASSERT_FALSE(stay.linger.take(stay.desk.machine, timing, true, start));  // Somebody has it.
  TEST_ASSERT_TRUE(stay.linger.stay(stay.desk.machine, start + 10ms));
  TEST_ASSERT_TRUE(stay.linger.idle());
  TEST_ASSERT_FALSE(stay.linger.stay(stay.desk.machine, start + 10ms));  // Nobody has it.
  TEST_ASSERT_FALSE(stay.linger.due(stay.desk.machine, start + 10ms));
  TEST_ASSERT_TRUE(stay.linger.take(stay.desk.machine, timing, true, start + 20ms));
  TEST_ASSERT_FALSE(stay.linger.idle());
  TEST_ASSERT_FALSE(stay.desk.machine.has_output());
  TEST_ASSERT_EQUAL(1U, stay.desk.machine.count());
}

TEST(test_it_should_be_off_unless_it_is_asked_for) {
  Desk desk(fair_lingering_kind);
  desk.hold(start);
  Linger linger;
  linger.hear(start);
  TEST_ASSERT_FALSE(linger.stay(desk.machine, start + 1ms));
  TEST_ASSERT_TRUE(valid_linger(linger_off) && valid_linger(linger_min) && valid_linger(linger_max));
  TEST_ASSERT_FALSE(valid_linger(linger_min - 1ns) || valid_linger(linger_max + 1ns) || valid_linger(-1ms));
}

TEST(test_an_idle_hold_should_go_after_its_time) {
  Stay stay;
  TEST_ASSERT_TRUE(stay.linger.poll_timeout(stay.desk.machine) == Instant::max());
  TEST_ASSERT_TRUE(stay.linger.stay(stay.desk.machine, start + 10ms));
  const Instant end = start + 10ms + most;
  TEST_ASSERT_TRUE(stay.linger.poll_timeout(stay.desk.machine) == end);
  stay.linger.hear(end - 1ns);
  TEST_ASSERT_FALSE(stay.linger.due(stay.desk.machine, end - 1ns));
  TEST_ASSERT_TRUE(stay.linger.due(stay.desk.machine, end));
  TEST_ASSERT_FALSE(stay.linger.take(stay.desk.machine, timing, true, end));
  TEST_ASSERT_TRUE(stay.linger.take(stay.desk.machine, timing, true, end - 1ns));
  // However often it was taken meanwhile.
  TEST_ASSERT_FALSE(stay.linger.stay(stay.desk.machine, end));
  TEST_ASSERT_FALSE(stay.linger.idle());
  stay.linger.begin();  // Another hold.
  TEST_ASSERT_TRUE(stay.linger.stay(stay.desk.machine, end));
  TEST_ASSERT_TRUE(stay.linger.due(stay.desk.machine, end + most));
}

TEST(test_a_recall_should_end_an_idle_hold_and_be_remembered_while_it_is_in_use) {
  Stay idle;
  TEST_ASSERT_TRUE(idle.linger.stay(idle.desk.machine, start + 1ms));
  idle.linger.recall();
  TEST_ASSERT_TRUE(idle.linger.due(idle.desk.machine, start + 2ms));
  TEST_ASSERT_FALSE(idle.linger.take(idle.desk.machine, timing, true, start + 2ms));

  Stay used;
  used.linger.recall();
  TEST_ASSERT_TRUE(used.linger.recalled());
  TEST_ASSERT_FALSE(used.linger.due(used.desk.machine, start + 1ms));
  TEST_ASSERT_FALSE(used.linger.stay(used.desk.machine, start + 2ms));
  TEST_ASSERT_FALSE(used.linger.stay(used.desk.machine, start + 3ms));
  used.linger.begin();  // The recall was for the hold before.
  TEST_ASSERT_TRUE(used.linger.stay(used.desk.machine, start + 4ms));
}

TEST(test_a_hold_in_doubt_should_neither_stay_nor_be_taken) {
  const Duration risk = Desk::lease / 3 * 2;
  Stay stay;
  stay.linger.hear(start + risk);
  TEST_ASSERT_FALSE(stay.linger.stay(stay.desk.machine, start + risk));
  stay.linger.hear(start + risk - 2ms);
  TEST_ASSERT_TRUE(stay.linger.stay(stay.desk.machine, start + risk - 2ms));
  TEST_ASSERT_TRUE(stay.linger.poll_timeout(stay.desk.machine) == start + risk);
  TEST_ASSERT_FALSE(stay.linger.due(stay.desk.machine, start + risk - 1ms));
  TEST_ASSERT_TRUE(stay.linger.due(stay.desk.machine, start + risk));
  TEST_ASSERT_FALSE(stay.linger.take(stay.desk.machine, timing, true, start + risk));

  Stay failed;
  failed.desk.renew(start + 10ms);
  failed.desk.fail(Status::server_error, true, start + 20ms);
  TEST_ASSERT_EQUAL(LockEvent::at_risk, failed.desk.event());
  TEST_ASSERT_FALSE(failed.linger.stay(failed.desk.machine, start + 30ms));
}

TEST(test_a_hold_that_is_over_should_not_be_taken) {
  Stay stay;
  TEST_ASSERT_TRUE(stay.linger.stay(stay.desk.machine, start + 1ms));
  const Instant end = stay.desk.machine.valid_until();
  Linger patient(linger_max);
  patient.hear(start);
  TEST_ASSERT_TRUE(patient.stay(stay.desk.machine, start + 1ms));
  patient.hear(end);
  TEST_ASSERT_FALSE(patient.take(stay.desk.machine, timing, true, end));
  stay.desk.machine.disown(start + 2ms);
  TEST_ASSERT_FALSE(stay.linger.take(stay.desk.machine, timing, true, start + 3ms));
  TEST_ASSERT_TRUE(stay.linger.due(stay.desk.machine, start + 3ms));
  stay.linger.end();
  TEST_ASSERT_FALSE(stay.linger.due(stay.desk.machine, start + 3ms));
}

TEST(test_nothing_should_stay_or_be_taken_where_nobody_listens) {
  Desk desk(fair_lingering_kind);
  desk.hold(start);
  Linger deaf(most);
  deaf.begin();
  TEST_ASSERT_FALSE(deaf.stay(desk.machine, start + 1ms));
  // A machine that has just started has a clock near its epoch.
  Desk early(fair_lingering_kind);
  early.hold(Instant::from_nanoseconds(1));
  TEST_ASSERT_FALSE(deaf.stay(early.machine, Instant::from_nanoseconds(2)));
  Stay stay;
  TEST_ASSERT_FALSE(stay.linger.stay(stay.desk.machine, start + linger_unheard_max));
  TEST_ASSERT_TRUE(stay.linger.stay(stay.desk.machine, start + linger_unheard_max - 1ns));
  TEST_ASSERT_FALSE(stay.linger.take(stay.desk.machine, timing, true, start + linger_unheard_max));
  stay.linger.hear(start + 10ms);
  stay.linger.hear(start);  // Older news.
  TEST_ASSERT_TRUE(stay.linger.take(stay.desk.machine, timing, true, start + linger_unheard_max));
}

TEST(test_only_the_outermost_release_should_leave_it_idle) {
  Desk desk(fair_lingering_kind);
  desk.hold_times(2, start);
  Linger linger(most);
  linger.begin();
  linger.hear(start);
  TEST_ASSERT_FALSE(linger.stay(desk.machine, start + 10ms));
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(true, start + 10ms, start + 1s));
  TEST_ASSERT_TRUE(linger.stay(desk.machine, start + 10ms));
}

// Whoever takes it has what a new hold would give: not less of a lease, and renewed or not.
TEST(test_an_idle_hold_should_be_taken_only_for_a_lease_that_it_has) {
  constexpr LockTiming longer = {.lease = Desk::lease + 1ms};
  constexpr LockTiming shorter = {.lease = Desk::lease - 1ms};
  Stay stay;
  TEST_ASSERT_TRUE(stay.linger.stay(stay.desk.machine, start + 1ms));
  TEST_ASSERT_FALSE(stay.linger.take(stay.desk.machine, longer, true, start + 2ms));
  TEST_ASSERT_FALSE(stay.linger.take(stay.desk.machine, timing, false, start + 2ms));
  TEST_ASSERT_TRUE(stay.linger.idle());
  TEST_ASSERT_TRUE(stay.linger.take(stay.desk.machine, shorter, true, start + 2ms));
  TEST_ASSERT_FALSE(stay.linger.idle());
}
