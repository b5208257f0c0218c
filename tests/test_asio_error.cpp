// SPDX-License-Identifier: MIT
#include "holdfast/asio/asio_error.hpp"

#include <set>
#include <string>

#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

template <class Visit>
void for_every_status(Visit visit) {
  for (int number = 0; number < status_count; ++number) {
    TEST_MESSAGE("Status " << number);
    visit(static_cast<Status>(number));
  }
}

}  // namespace

TEST(test_ok_should_be_no_error) {
  const std::error_code error = make_error_code(Status::ok);
  TEST_ASSERT_FALSE(error);
  TEST_ASSERT_TRUE(error == std::error_code());
  TEST_ASSERT_EQUAL(Status::ok, to_status(error));
}

TEST(test_every_status_should_survive_the_way_there_and_back) {
  for_every_status([](Status status) {
    const std::error_code error = make_error_code(status);
    TEST_ASSERT_EQUAL(status, to_status(error));
    TEST_ASSERT_EQUAL(status != Status::ok, static_cast<bool>(error));
    if (status == Status::ok) return;
    TEST_ASSERT_TRUE(error.category() == status_category());
    TEST_ASSERT_EQUAL(static_cast<int>(status), error.value());
  });
}

TEST(test_an_error_should_compare_with_its_status_and_no_other) {
  for_every_status([](Status status) {
    if (status == Status::ok) return;
    const std::error_code error = status;  // As users write it.
    for_every_status([&](Status other) {
      if (other != Status::ok) TEST_ASSERT_EQUAL(status == other, error == other);
    });
  });
}

TEST(test_conditions_should_be_those_of_the_standard_where_there_is_one) {
  TEST_ASSERT_TRUE(make_error_code(Status::cancelled) == std::errc::operation_canceled);
  TEST_ASSERT_TRUE(make_error_code(Status::timed_out) == std::errc::timed_out);
  TEST_ASSERT_TRUE(make_error_code(Status::not_connected) == std::errc::not_connected);
  TEST_ASSERT_TRUE(make_error_code(Status::invalid_argument) == std::errc::invalid_argument);
  for_every_status([](Status status) {
    int equal = 0;
    for (const std::errc condition :
         {std::errc::operation_canceled, std::errc::timed_out, std::errc::not_connected, std::errc::invalid_argument})
      equal += make_error_code(status) == condition ? 1 : 0;
    const bool named = status == Status::cancelled || status == Status::timed_out || status == Status::not_connected ||
                       status == Status::invalid_argument;
    TEST_ASSERT_EQUAL(named ? 1 : 0, equal);
  });
}

TEST(test_every_message_should_name_the_status_its_cause_and_its_remedy) {
  TEST_ASSERT_EQUAL("holdfast", std::string(status_category().name()));
  std::set<std::string> messages;
  for_every_status([&](Status status) {
    const std::string message = status_category().message(static_cast<int>(status));
    TEST_ASSERT_EQUAL(0U, message.find(std::string(to_string(status)) + ": "));
    TEST_ASSERT_TRUE(message.find(cause(status)) != std::string::npos);
    TEST_ASSERT_TRUE(message.find(remedy(status)) != std::string::npos);
    TEST_ASSERT_TRUE(messages.insert(message).second);
  });
}

TEST(test_a_value_outside_the_enumeration_should_still_have_a_message) {
  for (const int number : {status_count, 200, 255})
    TEST_ASSERT_EQUAL(0U, status_category().message(number).find("invalid: "));
}

TEST(test_an_error_of_somebody_else_should_be_a_system_error) {
  TEST_ASSERT_EQUAL(Status::system_error, to_status(std::make_error_code(std::errc::connection_refused)));
  TEST_ASSERT_EQUAL(Status::ok, to_status(std::error_code()));
  // Of the same number.
  const std::error_code other(static_cast<int>(Status::lock_busy), std::generic_category());
  TEST_ASSERT_FALSE(other == Status::lock_busy);
}

TEST(test_there_should_be_one_category) {
  TEST_ASSERT_TRUE(&status_category() == &status_category());
  TEST_ASSERT_TRUE(make_error_code(Status::lock_lost).category() == make_error_code(Status::no_quorum).category());
}
