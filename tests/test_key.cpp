// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "holdfast/proto/key.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

TEST(test_key_should_be_valid_from_one_byte_to_its_limit) {
  const std::string longest(key_size_max, 'k');
  TEST_ASSERT_FALSE(Key().valid());
  TEST_ASSERT_FALSE(Key("").valid());
  TEST_ASSERT_TRUE(Key("k").valid());
  TEST_ASSERT_TRUE(Key(ByteView("\0", 1)).valid());
  TEST_ASSERT_TRUE(Key(ByteView(longest)).valid());
  TEST_ASSERT_FALSE(Key(ByteView(longest + "k")).valid());
}

TEST(test_key_should_be_made_of_any_text) {
  char buffer[64];
  std::memset(buffer, 'x', sizeof buffer);
  std::snprintf(buffer, sizeof buffer, "orders/%d", 42);
  const char* const none = nullptr;
  TEST_ASSERT_EQUAL(ByteView("orders/42"), Key(buffer).bytes());
  TEST_ASSERT_EQUAL(ByteView("orders/42"), Key(&buffer[0]).bytes());
  TEST_ASSERT_TRUE(Key(std::string("orders/") + "42").bytes() == "orders/42");
  TEST_ASSERT_FALSE(Key(none).valid());
}

TEST(test_token_should_be_empty_until_it_has_bytes_and_a_value_from_then_on) {
  TEST_ASSERT_TRUE(Token().empty());
  TEST_ASSERT_TRUE(Token().bytes().empty());
  std::string text(token_size_max, 't');
  const Token token{ByteView(text)};
  text.assign(token_size_max, 'x');
  TEST_ASSERT_EQUAL(ByteView(std::string(token_size_max, 't')), token.bytes());
  const Token copy = token;
  TEST_ASSERT_EQUAL(token.bytes(), copy.bytes());
}

// Of each eight bytes the low nibbles first, then the high ones.
TEST(test_random_token_should_write_every_nibble_as_its_hexadecimal_digit) {
  const std::string digits = "0123456789abcdef";
  unsigned char random[token_random_size];
  for (int byte = 0; byte < 256; ++byte)
    for (std::size_t at = 0; at < token_random_size; ++at) {
      for (unsigned char& other : random) other = 0;
      random[at] = static_cast<unsigned char>(byte);
      std::string expected(token_text_size, '0');
      const std::size_t low = at / 8 * 16 + at % 8;
      expected[low] = digits[static_cast<std::size_t>(byte) & 15];
      expected[low + 8] = digits[static_cast<std::size_t>(byte) >> 4];
      TEST_ASSERT_EQUAL(ByteView(expected), Token::from_random(random).bytes());
    }
}

TEST(test_random_tokens_should_differ_where_one_bit_does) {
  std::set<std::string> texts;
  unsigned char random[token_random_size] = {};
  for (std::size_t bit = 0; bit < 8 * token_random_size; ++bit) {
    random[bit / 8] = static_cast<unsigned char>(random[bit / 8] ^ (1U << bit % 8));
    TEST_ASSERT_TRUE(texts.insert(std::string(Token::from_random(random).bytes().string_view())).second);
  }
}

TEST(test_a_negative_token_should_have_the_same_client_and_the_same_digits) {
  const std::string uuid = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
  for (const char* const ordinal : {"1", "17", "18446744073709551615"}) {
    const Token token{ByteView(uuid + ":" + ordinal)};
    TEST_ASSERT_EQUAL(ByteView(uuid + ":-" + ordinal), token.negative().bytes());
    TEST_ASSERT_EQUAL(ByteView(uuid), token.negative().client());
  }
}

TEST(test_the_token_that_is_none_should_be_empty) {
  const Token none = Token::none();
  TEST_ASSERT_TRUE(none.empty());
  TEST_ASSERT_TRUE(none.bytes().empty());
}

TEST(test_the_client_of_a_token_should_be_what_stands_before_its_ordinal) {
  TEST_ASSERT_EQUAL(ByteView("uuid"), Token(ByteView("uuid:7")).client());
  TEST_ASSERT_EQUAL(ByteView("plain"), Token(ByteView("plain")).client());
  TEST_ASSERT_EQUAL(ByteView(""), Token(ByteView(":7")).client());
}
