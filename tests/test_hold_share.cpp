// SPDX-License-Identifier: MIT
//
// What several handles have acquired of one hold: whoever goes, and in which order, exactly that is left to release.
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "holdfast/core/hold_share.hpp"
#include "unity_style.hpp"

using namespace holdfast;

namespace {

HoldTally tally;
std::uint32_t count = 0;

void acquire(HoldShare& share) { share.count_in(tally, ++count); }
void release(HoldShare& share) {
  --count;
  share.count_out(tally);
}
// As the drivers do.
std::uint32_t leave(HoldShare& share) {
  tally.leave(share);
  share = HoldShare();
  const std::uint32_t due = tally.take_due();
  const std::uint32_t made = due < count ? due : count;
  count -= made;
  return made;
}

}  // namespace

static void setUp() {
  tally = HoldTally();
  count = 0;
}
static void tearDown() {}

TEST(test_handle_that_goes_should_leave_to_release_what_it_acquired) {
  HoldShare first;
  HoldShare second;
  acquire(first);
  acquire(second);
  acquire(second);
  TEST_ASSERT_EQUAL(2U, leave(second));
  TEST_ASSERT_EQUAL(1U, count);
  TEST_ASSERT_EQUAL(1U, leave(first));
}

TEST(test_release_through_another_handle_should_be_settled_by_who_goes) {
  HoldShare first;
  HoldShare second;
  acquire(first);
  acquire(first);
  release(second);
  TEST_ASSERT_EQUAL(1U, leave(first));
  TEST_ASSERT_EQUAL(0U, leave(second));
  TEST_ASSERT_EQUAL(0U, count);
}

// A handle may go while another one's release is on its way: what is due is told when that is over.
TEST(test_release_that_comes_after_its_acquirer_went_should_be_settled) {
  HoldShare first;
  HoldShare second;
  acquire(first);
  acquire(first);
  acquire(first);
  tally.leave(first);
  release(second);
  TEST_ASSERT_EQUAL(2U, tally.take_due());
  TEST_ASSERT_EQUAL(0U, tally.take_due());
}

TEST(test_share_of_an_earlier_grant_should_be_over) {
  HoldShare first;
  HoldShare second;
  acquire(first);
  release(second);
  acquire(second);
  TEST_ASSERT_EQUAL(0U, leave(first));
  TEST_ASSERT_EQUAL(1U, leave(second));
}

TEST(test_debt_of_an_earlier_grant_should_be_over) {
  HoldShare first;
  HoldShare second;
  acquire(first);
  release(second);
  acquire(first);
  acquire(second);
  TEST_ASSERT_EQUAL(1U, leave(first));
  TEST_ASSERT_EQUAL(1U, count);
}

TEST(test_acquisition_that_a_callback_released_should_not_be_counted) {
  HoldShare share;
  share.count_in(tally, 0);
  TEST_ASSERT_EQUAL(0U, leave(share));
}

// Whatever the order: when all handles are gone nothing is held, and no more was released than was acquired.
TEST(test_handles_that_are_all_gone_should_leave_nothing) {
  std::minstd_rand random(7);
  std::array<HoldShare, 3> shares;
  for (int round = 0; round < 20'000; ++round) {
    setUp();
    shares = {};
    for (auto steps = random() % 12; steps != 0; --steps) {
      HoldShare& share = shares[random() % shares.size()];
      const auto deed = random() % 5;
      if (deed < 3)
        acquire(share);
      else if (deed == 3 && count != 0)
        release(share);
      else if (deed == 4)
        (void)leave(share);
    }
    for (HoldShare& share : shares) (void)leave(share);
    TEST_ASSERT_EQUAL(0U, count);
  }
}
