// SPDX-License-Identifier: MIT
#include "holdfast/detail/shared_value.hpp"

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

// What is kept in a word, and what in one of its own size, is the compiler's to say.
static_assert(sizeof(SharedValue<std::uint32_t>) == 4);
static_assert(sizeof(SharedValue<bool>) == (moves_at_once<bool> ? 1 : 4));
static_assert(moves_at_once<std::int64_t> || std::is_base_of_v<SplitValue<std::int64_t>, SharedValue<std::int64_t>>);

TEST(test_a_value_should_be_its_types_first_until_it_is_stored) {
  TEST_ASSERT_FALSE(SharedValue<bool>().load());
  TEST_ASSERT_EQUAL(0U, SharedValue<std::uint32_t>().load());
  TEST_ASSERT_EQUAL(std::int64_t{0}, SharedValue<std::int64_t>().load());
}

TEST(test_a_value_should_be_what_was_stored_last) {
  SharedValue<bool> flag;
  SharedValue<std::uint32_t> number;
  SharedValue<std::int64_t> large;
  for (const std::int64_t value : {INT64_MAX, std::int64_t{1} << 32, std::int64_t{-1}, INT64_MIN, std::int64_t{0}}) {
    flag.store(value > 0);
    number.store(static_cast<std::uint32_t>(value));
    large.store(value);
    TEST_ASSERT_EQUAL(value > 0, flag.load());
    TEST_ASSERT_EQUAL(static_cast<std::uint32_t>(value), number.load());
    TEST_ASSERT_EQUAL(value, large.load());
  }
}

TEST(test_an_exchange_should_tell_what_was_there) {
  SharedValue<bool> flag;
  TEST_ASSERT_FALSE(flag.exchange(true));
  TEST_ASSERT_TRUE(flag.exchange(true));
  TEST_ASSERT_TRUE(flag.exchange(false));
  TEST_ASSERT_FALSE(flag.load());
}

TEST(test_a_bit_should_be_raised_by_the_first_and_leave_the_others) {
  SharedValue<std::uint16_t> bits;
  TEST_ASSERT_TRUE(bits.raise(1));
  TEST_ASSERT_FALSE(bits.raise(1));
  TEST_ASSERT_TRUE(bits.raise(0));
  TEST_ASSERT_TRUE(bits.raise(15));
  TEST_ASSERT_EQUAL(0x8003U, bits.load());
  bits.store(0);
  TEST_ASSERT_TRUE(bits.raise(1));
}
