// SPDX-License-Identifier: MIT
//
// What a cancel() ends: one call, and of a release its wait alone.
#include "unity_style.hpp"

#include "holdfast/detail/cancel_signal.hpp"
#include "printers.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

TEST(test_cancel_should_end_one_call_however_often_it_came) {
  CancelSignal signal;
  TEST_ASSERT_EQUAL(Status::lock_busy, signal.conclude(Status::lock_busy, false));
  signal.raise();
  signal.raise();
  TEST_ASSERT_TRUE(signal.pending());
  TEST_ASSERT_EQUAL(Status::cancelled, signal.conclude(Status::lock_busy, false));
  TEST_ASSERT_FALSE(signal.pending());
  TEST_ASSERT_EQUAL(Status::lock_busy, signal.conclude(Status::lock_busy, false));
}

TEST(test_cancel_that_a_known_outcome_stands_against_should_be_over_with_it) {
  CancelSignal signal;
  signal.raise();
  TEST_ASSERT_EQUAL(Status::ok, signal.conclude(Status::ok, true));
  TEST_ASSERT_FALSE(signal.pending());
}

// A set's call compares it around each call of a lock.
TEST(test_what_was_taken_should_be_known_with_whatever_outcome) {
  CancelSignal signal;
  std::uint32_t before = signal.taken();
  TEST_ASSERT_EQUAL(Status::ok, signal.conclude(Status::ok, true));
  TEST_ASSERT_EQUAL(before, signal.taken());
  signal.raise();
  TEST_ASSERT_EQUAL(before, signal.taken());
  TEST_ASSERT_EQUAL(Status::ok, signal.conclude(Status::ok, true));
  TEST_ASSERT_TRUE(signal.taken() != before);
  before = signal.taken();
  signal.raise();  // Before a release: the next call's.
  signal.begin_spared();
  TEST_ASSERT_FALSE(signal.pending());
  signal.end_spared();
  TEST_ASSERT_EQUAL(before, signal.taken());
  TEST_ASSERT_TRUE(signal.pending());
  signal.begin_spared();
  signal.raise();  // During it.
  TEST_ASSERT_TRUE(signal.pending());
  signal.end_spared();
  TEST_ASSERT_TRUE(signal.taken() != before);
  TEST_ASSERT_FALSE(signal.pending());
}
