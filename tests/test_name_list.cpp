// SPDX-License-Identifier: MIT
//
// Several names as one key, and back.
#include "unity_style.hpp"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "holdfast/core/name_list.hpp"
#include "printers.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

NameList pack(const std::vector<std::string>& names) {
  const std::vector<ByteView> views(names.begin(), names.end());
  return NameList(views.data(), views.size());
}

std::string packed(const std::vector<std::string>& names) {
  const NameList list = pack(names);
  return std::string(list.key().bytes().string_view());
}

std::vector<std::string> names_of(const NameList& list) {
  std::vector<std::string> names;
  for (ByteView name; !(name = name_at(list.key(), names.size())).empty();)
    names.push_back(std::string(name.string_view()));
  return names;
}

}  // namespace

TEST(test_names_should_stand_sorted_each_behind_its_size) {
  TEST_ASSERT_EQUAL("\1a\2bb\3c c", packed({"c c", "a", "bb"}));
  TEST_ASSERT_TRUE(pack({"a"}).key().valid());
}

TEST(test_the_same_names_should_be_the_same_key_in_any_order) {
  const std::vector<std::string> names = {"a", "aa", "ab", "b", "{t}:x", std::string("\0", 1), "\xff", "\x7f"};
  const std::string key = packed(names);
  for (std::size_t turn = 0; turn < names.size(); ++turn) {
    std::vector<std::string> turned(names.begin() + static_cast<std::ptrdiff_t>(turn), names.end());
    turned.insert(turned.end(), names.begin(), names.begin() + static_cast<std::ptrdiff_t>(turn));
    TEST_ASSERT_EQUAL(key, packed(turned));
    TEST_ASSERT_EQUAL(key, packed({turned.rbegin(), turned.rend()}));
  }
  const std::vector<std::string> sorted = {std::string("\0", 1), "a", "aa", "ab", "b", "{t}:x", "\x7f", "\xff"};
  TEST_ASSERT_TRUE(sorted == names_of(pack(names)));
}

TEST(test_a_name_that_is_given_twice_should_count_once) {
  TEST_ASSERT_EQUAL(packed({"a", "b"}), packed({"b", "a", "b", "a", "a", "b", "a", "b", "a", "b"}));
  TEST_ASSERT_TRUE(std::vector<std::string>({"a", "b"}) == names_of(pack({"b", "a", "b"})));
}

// What one name ends with and the next begins with must not be mixed up.
TEST(test_other_names_should_be_another_key) {
  TEST_ASSERT_FALSE(packed({"a", "b"}) == packed({"ab"}));
  TEST_ASSERT_FALSE(packed({"a", "bc"}) == packed({"ab", "c"}));
  TEST_ASSERT_FALSE(packed({"a"}) == packed({std::string("a\1b", 3)}));
  TEST_ASSERT_FALSE(packed({"a", "b"}) == packed({std::string("a\1b", 3)}));
}

TEST(test_names_of_any_bytes_should_come_back) {
  std::string every;
  for (int byte = 0; byte < 200; ++byte) every += static_cast<char>(byte);
  const std::vector<std::string> names = {every, "\r\n*1", std::string("\0\0", 2)};
  const std::vector<std::string> back = names_of(pack(names));
  TEST_ASSERT_EQUAL(names.size(), back.size());
  TEST_ASSERT_EQUAL(names[2], back[0]);
  TEST_ASSERT_EQUAL(every, back[1]);
  TEST_ASSERT_EQUAL(names[1], back[2]);
}

TEST(test_names_should_be_taken_from_buffers_up_to_their_nul) {
  char buffers[2][16];
  std::memset(buffers, 'x', sizeof buffers);
  std::snprintf(buffers[0], sizeof buffers[0], "b");
  std::snprintf(buffers[1], sizeof buffers[1], "a");
  const char* const pointers[] = {buffers[0], buffers[1]};
  const std::string strings[] = {"b", "a"};
  const BytesArgument arguments[] = {buffers[0], pointers[1], strings[1]};
  for (const NameList& list : {NameList(buffers), NameList(pointers), NameList(strings), NameList(arguments)})
    TEST_ASSERT_EQUAL(ByteView("\1a\1b"), list.key().bytes());
  const char* const missing[] = {"a", nullptr};
  TEST_ASSERT_FALSE(NameList(missing).key().valid());
}

TEST(test_the_limits_should_be_reached_and_not_passed) {
  TEST_ASSERT_TRUE(std::vector<std::string>({std::string(name_size_max, 'x')}) ==
                   names_of(pack({std::string(name_size_max, 'x')})));
  TEST_ASSERT_FALSE(pack({std::string(name_size_max + 1, 'x')}).key().valid());
  std::vector<std::string> full;
  for (std::size_t index = 0; index < names_max; ++index)
    full.push_back(static_cast<char>('a' + index) + std::string(key_size_max / names_max - 2, 'x'));
  TEST_ASSERT_EQUAL(key_size_max, packed(full).size());
  TEST_ASSERT_TRUE(full == names_of(pack(full)));
  full[0] += "x";
  TEST_ASSERT_FALSE(pack(full).key().valid());
  std::vector<std::string> many;
  for (std::size_t index = 0; index < names_max; ++index) many.push_back(std::to_string(index));
  TEST_ASSERT_EQUAL(names_max, names_of(pack(many)).size());
  many.push_back("9");
  TEST_ASSERT_FALSE(pack(many).key().valid());
  TEST_ASSERT_FALSE(pack({}).key().valid());
  TEST_ASSERT_FALSE(pack({"a", ""}).key().valid());
  TEST_ASSERT_FALSE(pack({"", "a"}).key().valid());
}
