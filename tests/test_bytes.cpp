// SPDX-License-Identifier: MIT
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/decimal.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

TEST(test_a_literal_should_keep_nul_bytes_only_with_its_size) {
  const ByteView view("a\0b", 3);
  TEST_ASSERT_EQUAL(std::size_t{3}, view.size());
  TEST_ASSERT_EQUAL('\0', view[1]);
  TEST_ASSERT_EQUAL('b', view[2]);
  TEST_ASSERT_EQUAL(ByteView("a"), ByteView("a\0b"));
  TEST_ASSERT_EQUAL(ByteView("a"), BytesArgument("a\0b").view());
  static_assert(ByteView("a\0b").size() == 1, "at compile time, too");
  static_assert(ByteView("a\0").size() == 1);
  static_assert(ByteView("\0\0b").empty());
  static_assert(ByteView("").empty());
}

// Whatever was in the buffer before, and whether it is full or not.
TEST(test_a_char_array_should_be_taken_up_to_its_nul) {
  for (const int rest : {'\0', 'x', '\xff'}) {
    char buffer[16];
    std::memset(buffer, rest, sizeof buffer);
    std::snprintf(buffer, sizeof buffer, "orders/%d", 42);
    TEST_ASSERT_EQUAL(ByteView("orders/42"), ByteView(buffer));
    TEST_ASSERT_EQUAL(ByteView("orders/42"), BytesArgument(buffer).view());
    TEST_ASSERT_EQUAL(ByteView("orders/42"), ByteView(static_cast<char(&&)[16]>(buffer)));
    buffer[0] = '\0';
    TEST_ASSERT_TRUE(ByteView(buffer).empty());
  }
  char full[4] = {'a', 'b', 'c', 'd'};
  TEST_ASSERT_EQUAL(ByteView("abcd"), ByteView(full));
  char one[1] = {'a'};
  TEST_ASSERT_EQUAL(ByteView("a"), ByteView(one));
  char reused[] = "orders/41\0/archive";  // No literal, though it was filled from one.
  TEST_ASSERT_EQUAL(ByteView("orders/41"), ByteView(reused));
}

// A type does not tell a const buffer from a literal. Whatever was in it before, and however that ends.
TEST(test_a_const_char_array_should_be_taken_up_to_its_nul) {
  struct Order {
    char name[16];
  };
  for (const int rest : {'\0', 'x'}) {
    Order order;
    std::memset(&order, rest, sizeof order);
    std::snprintf(order.name, sizeof order.name, "orders/%d", 42);
    const Order& seen = order;
    TEST_ASSERT_EQUAL(ByteView("orders/42"), ByteView(seen.name));
    TEST_ASSERT_EQUAL(ByteView("orders/42"), BytesArgument(seen.name).view());
    TEST_ASSERT_EQUAL(ByteView("orders/42"), ByteView(static_cast<const char(&&)[16]>(seen.name)));
    std::memcpy(order.name + 9, "\0/ab\0\0", 7);
    TEST_ASSERT_EQUAL(ByteView("orders/42"), ByteView(seen.name));
    std::memcpy(order.name, "a brim-full one", 16);
    TEST_ASSERT_EQUAL(ByteView("a brim-full one"), ByteView(seen.name));
    std::memcpy(order.name, "a brim-full one.", 16);
    TEST_ASSERT_EQUAL(ByteView("a brim-full one."), ByteView(seen.name));
    // It was full to its last byte, and then took a shorter text.
    std::memcpy(order.name, "orders/42\0 one", 15);
    order.name[15] = '\0';
    TEST_ASSERT_EQUAL(ByteView("orders/42"), ByteView(seen.name));
    TEST_ASSERT_EQUAL(ByteView("orders/42"), BytesArgument(seen.name).view());
    TEST_ASSERT_EQUAL(ByteView("orders/42"), ByteView(&seen.name[0]));
  }
  const char padded[64] = "x";
  TEST_ASSERT_EQUAL(ByteView("x"), ByteView(padded));
  const char without[3] = {'a', 'b', 'c'};
  TEST_ASSERT_EQUAL(ByteView("abc"), ByteView(without));
  static constexpr char name[] = "orders";
  static_assert(ByteView(name).size() == 6);
}

TEST(test_a_pointer_should_be_taken_up_to_its_nul_and_nullptr_as_nothing) {
  char buffer[] = "orders/42\0/archive";
  char* const changeable = buffer;
  const char* const fixed = buffer;
  const char* const none = nullptr;
  TEST_ASSERT_EQUAL(ByteView("orders/42"), ByteView(changeable));
  TEST_ASSERT_EQUAL(ByteView("orders/42"), ByteView(fixed));
  TEST_ASSERT_EQUAL(ByteView("orders/42"), BytesArgument(fixed).view());
  TEST_ASSERT_TRUE(ByteView(none).empty());
  TEST_ASSERT_TRUE(BytesArgument(none).view().empty());
  TEST_ASSERT_TRUE(ByteView(nullptr).empty());
  TEST_ASSERT_TRUE(BytesArgument(nullptr).view().empty());
}

TEST(test_a_view_should_be_made_of_whatever_holds_text) {
  const std::string text("k\0ey", 4);
  TEST_ASSERT_EQUAL(ByteView("k\0ey", 4), ByteView(text));
  TEST_ASSERT_EQUAL(ByteView("k\0ey", 4), ByteView(std::string_view(text)));
  TEST_ASSERT_EQUAL(ByteView("k\0ey", 4).string_view(), std::string_view(text));
  TEST_ASSERT_EQUAL(ByteView("k\0ey", 4), BytesArgument(std::string(text)).view());
  TEST_ASSERT_TRUE(ByteView("k\0ey", 4) == std::string(text));
}

// What is kept is not made of a temporary without a word; what a call is given may be one.
template <class Source>
constexpr bool kept = std::is_convertible_v<Source, ByteView>;
template <class Source>
constexpr bool passed = std::is_convertible_v<Source, BytesArgument>;
static_assert(!kept<std::string> && !kept<const std::string> && !kept<char (&&)[8]> && !kept<const char (&&)[8]>);
static_assert(kept<std::string&> && kept<const std::string&> && kept<std::string_view> && kept<const ByteView&>);
static_assert(kept<char (&)[8]> && kept<const char (&)[8]> && kept<const char*> && kept<char*&> &&
              kept<std::nullptr_t>);
static_assert(passed<std::string> && passed<const std::string> && passed<char (&&)[8]> && passed<const char (&&)[8]>);
static_assert(passed<std::string&> && passed<const std::string&> && passed<std::string_view> &&
              passed<const ByteView&>);
static_assert(passed<char (&)[8]> && passed<const char (&)[8]> && passed<const char*> && passed<std::nullptr_t>);
static_assert(std::is_constructible_v<ByteView, std::string>, "in so many words, for one expression");
static_assert(!kept<int> && !passed<int> && !kept<char> && !passed<bool>);
static_assert(!kept<volatile char (&)[8]> && !kept<unsigned char (&)[8]> && !kept<void*>);
// Nothing is guessed of what is no text, or of which nobody says where it ends.
static_assert(!std::is_constructible_v<ByteView, unsigned char*> && !std::is_constructible_v<ByteView, const void*> &&
              !std::is_constructible_v<ByteView, const wchar_t (&)[8]> && !std::is_constructible_v<ByteView, char> &&
              !std::is_constructible_v<ByteView, int> && !std::is_constructible_v<ByteView, const char8_t*> &&
              !std::is_constructible_v<ByteView, const char* const*>);
static_assert(!std::is_constructible_v<BytesArgument, unsigned char*> && !std::is_constructible_v<BytesArgument, int> &&
              !std::is_constructible_v<BytesArgument, const wchar_t (&)[8]>);

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
  TEST_ASSERT_FALSE(ByteView("ab\0", 3) == ByteView("ab"));
  TEST_ASSERT_FALSE(ByteView("\x00", 1) == ByteView("\xff"));
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

TEST(test_comparison_should_look_at_nothing_behind_either_end) {
  const ByteView begin = ByteView("az").slice(0, 1);
  TEST_ASSERT_TRUE(compare("ab", begin) > 0);
  TEST_ASSERT_TRUE(compare(begin, "ab") < 0);
  TEST_ASSERT_EQUAL(0, compare(begin, ByteView("ab").slice(0, 1)));
}
