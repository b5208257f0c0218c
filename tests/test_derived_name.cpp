// SPDX-License-Identifier: MIT
//
// Names beside a key, as Redisson derives them: both sides of a shared lock must come to the same bytes.
#include "unity_style.hpp"

#include <string>

#include "holdfast/core/derived_name.hpp"
#include "printers.hpp"

using namespace holdfast;

namespace {

std::string derive(ByteView prefix, const std::string& key) {
  return std::string(DerivedName(prefix, Key(ByteView(key))).bytes().string_view());
}

}  // namespace

static void setUp() {}
static void tearDown() {}

TEST(test_name_should_put_the_key_into_braces) {
  TEST_ASSERT_EQUAL("redisson_lock__channel:{orders/42}", derive(channel_prefix, "orders/42"));
  TEST_ASSERT_EQUAL("redisson_lock_token:{orders/42}", derive(fence_prefix, "orders/42"));
}

// Redisson asks for the opening brace alone, wherever it stands.
TEST(test_name_should_leave_a_key_with_an_opening_brace_as_it_is) {
  for (const std::string key : {"{shop}:orders", "orders:{shop}", "a{b", "{", "{}x", "}{"})
    TEST_ASSERT_EQUAL("redisson_lock__channel:" + key, derive(channel_prefix, key));
}

TEST(test_name_should_put_a_key_with_a_closing_brace_alone_into_braces) {
  for (const std::string key : {"a}b", "}", "}}"})
    TEST_ASSERT_EQUAL("redisson_lock_token:{" + key + "}", derive(fence_prefix, key));
}

// A key is bytes.
TEST(test_name_should_keep_every_byte_of_the_key) {
  const std::string odd("\0\r\n \xff{", 6);
  TEST_ASSERT_EQUAL(channel_prefix.size() + 1 + odd.size(), derive(channel_prefix, odd).size());
  TEST_ASSERT_EQUAL("redisson_lock__channel:" + odd, derive(channel_prefix, odd));
  const std::string plain("\0\r\n", 3);
  TEST_ASSERT_EQUAL("redisson_lock__channel:{" + plain + "}", derive(channel_prefix, plain));
}

TEST(test_name_of_the_longest_key_and_prefix_should_fit) {
  const std::string key(key_size_max, 'k');
  const std::string prefix(name_prefix_size_max, 'p');
  const std::string name = derive(ByteView(prefix), key);
  TEST_ASSERT_EQUAL(prefix + ":{" + key + "}", name);
  TEST_ASSERT_EQUAL(derived_name_size_max, name.size());
  TEST_ASSERT_TRUE(channel_prefix.size() <= name_prefix_size_max && fence_prefix.size() <= name_prefix_size_max);
}

TEST(test_name_that_was_not_derived_should_be_empty) { TEST_ASSERT_TRUE(DerivedName().bytes().empty()); }
