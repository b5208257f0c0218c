// SPDX-License-Identifier: MIT
//
// Parts of requests, in one piece and one by one: where a build is for size, the second way is the one that is taken.
#include "kind_requests.hpp"

#include <cstdint>
#include <string>

#include "holdfast/limits.hpp"
#include "printers.hpp"
#include "scripts.hpp"
#include "unity_style.hpp"
#include "written_line.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr EncodedScriptHead head(scripts::mutex_release, "1");

// The same parts both ways.
template <class... Parts>
void expect_the_same(const Words& expected, const Parts&... parts) {
  WrittenLine whole;
  write_parts(whole, head, parts...);
  WrittenLine single;
  add_part(single, head);
  (add_part(single, parts), ...);
  Words words = {"EVALSHA", std::string(scripts::mutex_release.sha.bytes().string_view()), "1"};
  words.insert(words.end(), expected.begin(), expected.end());
  TEST_ASSERT_TRUE(words == whole.words());
  TEST_ASSERT_TRUE(words == single.words());
}

}  // namespace

TEST(test_bytes_should_be_the_same_in_one_piece_and_one_by_one) {
  for (const std::size_t size : {0U, 1U, 3U, 4U, 5U, 9U, 10U, 11U, 99U, 100U, 101U, 999U, 1000U}) {
    const std::string text(size, 'x');
    expect_the_same({text}, ByteView(text));
  }
}

TEST(test_numbers_should_be_the_same_in_one_piece_and_one_by_one) {
  for (const std::uint32_t number : {0U, 9U, 10U, 99U, 100U, 999U, 1'000U, 9'999U, 10'000U, 99'999U, 100'000U, 999'999U,
                                     1'000'000U, 9'999'999U, 123'456'789U, UINT32_MAX}) {
    expect_the_same({std::to_string(number)}, DecimalPart(number));
  }
}

TEST(test_tokens_should_be_the_same_in_one_piece_and_one_by_one) {
  for (std::size_t size = 1; size <= token_size_max; ++size) {
    const std::string text(size, 't');
    expect_the_same({text}, Token(ByteView(text)));
  }
}

TEST(test_parts_for_which_there_is_no_room_should_not_be_written) {
  char space[64];
  std::size_t size = 7;
  CommandLine line({space, sizeof space});
  add_part(line, head);
  TEST_ASSERT_EQUAL(Status::buffer_too_small, line.finish(size));
  TEST_ASSERT_EQUAL(7, size);
  CommandLine whole({space, sizeof space});
  write_parts(whole, head, ByteView("name"));
  TEST_ASSERT_EQUAL(Status::buffer_too_small, whole.finish(size));
}
