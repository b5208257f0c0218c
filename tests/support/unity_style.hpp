// SPDX-License-Identifier: MIT
//
// doctest in the manner of Unity: setUp and tearDown around every test, a failed one too; a test stops at its first
// failure; what is expected comes first.
#pragma once

#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

static void setUp();
static void tearDown();

namespace {
struct Runner {
  Runner() { setUp(); }
  ~Runner() { tearDown(); }
};
}  // namespace

#define TEST(name) DOCTEST_TEST_CASE_FIXTURE(Runner, #name)
#define TEST_ASSERT_TRUE(condition) DOCTEST_REQUIRE(static_cast<bool>(condition))
#define TEST_ASSERT_FALSE(condition) DOCTEST_REQUIRE_FALSE(static_cast<bool>(condition))
#define TEST_ASSERT_EQUAL(expected, actual) DOCTEST_REQUIRE_EQ(expected, actual)
#define TEST_MESSAGE(text) DOCTEST_INFO(text)
