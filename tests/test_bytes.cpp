// SPDX-License-Identifier: MIT
#include <cstdint>
#include <string>
#include <string_view>

#include "decimal.hpp"
#include "holdfast/bytes.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

TEST(test_a_view_should_keep_the_nul_bytes_of_a_literal) {
  const ByteView view = "a\0b\0";
  TEST_ASSERT_EQUAL(std::size_t{4}, view.size());
  TEST_ASSERT_EQUAL('\0', view[3]);
}

TEST(test_a_view_should_be_made_of_whatever_holds_text) {
  const std::string text("k\0ey", 4);
  TEST_ASSERT_EQUAL(ByteView("k\0ey"), ByteView(text));
  TEST_ASSERT_EQUAL(ByteView("k\0ey"), ByteView(std::string_view(text)));
  TEST_ASSERT_EQUAL(ByteView("k\0ey").string_view(), std::string_view(text));
}

TEST(test_the_empty_view_should_equal_every_empty_view) {
  TEST_ASSERT_TRUE(ByteView().empty());
  TEST_ASSERT_TRUE(ByteView().data() == nullptr);
  TEST_ASSERT_EQUAL(ByteView(), ByteView(""));
  TEST_ASSERT_EQUAL(ByteView("x").slice(1), ByteView());
}

TEST(test_views_should_be_equal_only_byte_by_byte) {
  TEST_ASSERT_EQUAL(ByteView("abc"), ByteView("abc"));
  TEST_ASSERT_FALSE(ByteView("abc") == ByteView("abd"));
  TEST_ASSERT_FALSE(ByteView("abc") == ByteView("ab"));
  TEST_ASSERT_FALSE(ByteView("ab\0") == ByteView("ab"));
  TEST_ASSERT_FALSE(ByteView("\x00") == ByteView("\xff"));
}

TEST(test_a_slice_should_never_reach_past_its_view) {
  const ByteView view = "hello";
  TEST_ASSERT_EQUAL(ByteView("hello"), view.slice(0));
  TEST_ASSERT_EQUAL(ByteView("ell"), view.slice(1, 3));
  TEST_ASSERT_EQUAL(ByteView("lo"), view.slice(3, 99));
  TEST_ASSERT_EQUAL(ByteView("o"), view.slice(4, SIZE_MAX));
  TEST_ASSERT_TRUE(view.slice(5).empty());
  TEST_ASSERT_TRUE(view.slice(6, 1).empty());
  TEST_ASSERT_TRUE(view.slice(SIZE_MAX, SIZE_MAX).empty());
  TEST_ASSERT_TRUE(view.slice(0, 0).empty());
  TEST_ASSERT_TRUE(ByteView().slice(0, 1).empty());
}

TEST(test_a_view_should_know_what_it_begins_with) {
  TEST_ASSERT_TRUE(ByteView("hello").begins_with("he"));
  TEST_ASSERT_TRUE(ByteView("hello").begins_with("hello"));
  TEST_ASSERT_TRUE(ByteView("hello").begins_with(""));
  TEST_ASSERT_FALSE(ByteView("hello").begins_with("hello!"));
  TEST_ASSERT_FALSE(ByteView("hello").begins_with("el"));
  TEST_ASSERT_FALSE(ByteView().begins_with("h"));
}

TEST(test_find_should_report_the_first_place_or_none) {
  TEST_ASSERT_EQUAL(std::size_t{2}, ByteView("abcabc").find("c"));
  TEST_ASSERT_EQUAL(std::size_t{0}, ByteView("aaab").find("aa"));
  TEST_ASSERT_EQUAL(std::size_t{2}, ByteView("aaab").find("ab"));
  TEST_ASSERT_EQUAL(std::size_t{0}, ByteView("abc").find(""));
  TEST_ASSERT_EQUAL(SIZE_MAX, ByteView("abc").find("abcd"));
  TEST_ASSERT_EQUAL(SIZE_MAX, ByteView("abc").find("x"));
  TEST_ASSERT_EQUAL(SIZE_MAX, ByteView().find("x"));
}

// ---- Decimal numbers ---------------------------------------------------------------------------------------------

TEST(test_a_decimal_number_should_be_written_as_the_c_library_would) {
  for (const std::int64_t number : {INT64_MIN, INT64_C(-100), INT64_C(-9), INT64_C(0), INT64_C(9), INT64_C(10),
                                    INT64_C(99), INT64_C(100), INT64_MAX}) {
    char out[decimal_size_max];
    const char* const end = write_decimal(out, number);
    TEST_ASSERT_EQUAL(std::to_string(number), std::string(out, static_cast<std::size_t>(end - out)));
    TEST_ASSERT_EQUAL(decimal_size(number), static_cast<std::size_t>(end - out));
  }
  char out[decimal_size_max];
  const char* const end = write_decimal(out, UINT64_MAX);
  TEST_ASSERT_EQUAL(std::to_string(UINT64_MAX), std::string(out, static_cast<std::size_t>(end - out)));
}

TEST(test_a_decimal_number_should_be_read_up_to_its_limit_and_not_beyond) {
  std::uint64_t number = 7;
  TEST_ASSERT_TRUE(read_decimal("0", 0, number));
  TEST_ASSERT_EQUAL(std::uint64_t{0}, number);
  TEST_ASSERT_TRUE(read_decimal("65535", 65535, number));
  TEST_ASSERT_EQUAL(std::uint64_t{65535}, number);
  TEST_ASSERT_TRUE(read_decimal("18446744073709551615", UINT64_MAX, number));
  TEST_ASSERT_EQUAL(UINT64_MAX, number);
  for (std::uint64_t limit = 0; limit < 130; ++limit) {
    TEST_ASSERT_TRUE(read_decimal(ByteView(std::to_string(limit)), limit, number));
    TEST_ASSERT_EQUAL(limit, number);
    TEST_ASSERT_FALSE(read_decimal(ByteView(std::to_string(limit + 1)), limit, number));
    TEST_ASSERT_EQUAL(limit, number);
  }
}

TEST(test_what_is_no_decimal_number_should_leave_the_output_untouched) {
  std::uint64_t number = 7;
  for (const char* const text : {"", " 1", "1 ", "+1", "-1", "1.0", "0x1", "one", "18446744073709551616",
                                 "18446744073709551625", "99999999999999999999", "100000000000000000000", "1\n"}) {
    TEST_MESSAGE(text);
    TEST_ASSERT_FALSE(read_decimal(ByteView(std::string_view(text)), UINT64_MAX, number));
    TEST_ASSERT_EQUAL(std::uint64_t{7}, number);
  }
}

TEST(test_comparison_should_be_by_bytes_and_put_the_shorter_one_first) {
  const ByteView sorted[] = {"", ByteView("\0", 1), "a", ByteView("a\0", 2), "aa", "ab", "b", "\x7f", "\x80", "\xff"};
  for (const ByteView& left : sorted)
    for (const ByteView& right : sorted) {
      const int order = compare(left, right);
      TEST_ASSERT_EQUAL(&left < &right, order < 0);
      TEST_ASSERT_EQUAL(&left == &right, order == 0);
    }
  TEST_ASSERT_EQUAL(0, compare(ByteView(), ByteView("")));
}
