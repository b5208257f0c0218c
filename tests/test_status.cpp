// SPDX-License-Identifier: MIT
#include <cctype>
#include <set>
#include <string>
#include <string_view>

#include "holdfast/status.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// Calls visit() with every Status.
template <class Visit>
void for_every_status(Visit visit) {
  for (int number = 0; number < status_count; ++number) {
    TEST_MESSAGE("Status " << number);
    visit(static_cast<Status>(number));
  }
}

// It may begin with the lower-case name of a function.
bool is_sentence(std::string_view text) {
  return text.size() > 5 && std::isalpha(static_cast<unsigned char>(text.front())) != 0 && text.back() == '.' &&
         text.find('\n') == std::string_view::npos;
}

}  // namespace

TEST(test_every_status_should_have_a_name_of_its_own) {
  std::set<std::string> names;
  for_every_status([&](Status status) {
    const std::string name = to_string(status);
    TEST_ASSERT_TRUE(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos);
    TEST_ASSERT_TRUE(name != "invalid");
    TEST_ASSERT_TRUE(names.insert(name).second);
  });
  TEST_ASSERT_EQUAL(std::size_t{status_count}, names.size());
}

TEST(test_every_status_should_have_a_cause_and_a_remedy_that_are_sentences) {
  std::set<std::string> causes;
  for_every_status([&](Status status) {
    TEST_ASSERT_TRUE(is_sentence(cause(status)));
    TEST_ASSERT_TRUE(is_sentence(remedy(status)));
    TEST_ASSERT_TRUE(causes.insert(cause(status)).second);
  });
  TEST_ASSERT_TRUE(std::string(remedy(Status::no_permission)) != remedy(Status::lock_busy));
}

TEST(test_a_value_outside_the_enumeration_should_still_have_texts) {
  for (const int number : {status_count, 200, 255}) {
    const auto status = static_cast<Status>(number);
    TEST_ASSERT_EQUAL(std::string("invalid"), std::string(to_string(status)));
    TEST_ASSERT_TRUE(is_sentence(cause(status)));
    TEST_ASSERT_TRUE(is_sentence(remedy(status)));
  }
}

TEST(test_ok_should_be_the_value_of_a_zeroed_status) { TEST_ASSERT_EQUAL(Status::ok, Status{}); }
