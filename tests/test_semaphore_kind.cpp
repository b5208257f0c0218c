// SPDX-License-Identifier: MIT
//
// What a permit of a semaphore sends, word by word, and what it takes for an answer. The rules are those of proto/lock.md, quoted
// as [rule N].
#include "unity_style.hpp"

#include <string>

#include "holdfast/core/semaphore_kind.hpp"
#include "kind_table.hpp"
#include "scripts.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

LockMachine& with_permits(LockMachine& machine) {
  machine.set_argument(permits_max);
  return machine;
}

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- What is sent ------------------------------------------------------------------------------------------------

TEST(test_acquire_should_name_key_token_lease_and_number) {
  for (const RequestForm form : script_forms) {
    const Words filled = fill(semaphore_kind, Operation::acquire, form);
    TEST_ASSERT_TRUE(script_words(scripts::semaphore_acquire, form, {"1", "name", token_text, "10000", "0"}) == filled);
    TEST_ASSERT_TRUE(filled == fill_alone(semaphore_kind, Operation::acquire, form));
  }
}

TEST(test_acquire_should_name_the_number_of_permits_that_its_machine_has) {
  LockMachine machine(semaphore_kind);
  const Token token{ByteView(token_text)};
  WrittenLine line;
  semaphore_kind.fill(line, semaphore_kind, Operation::acquire, RequestForm::by_sha,
                      {.key = Key(ByteView("name")), .token = &token, .lease = 10s, .machine = &with_permits(machine)});
  const Words words = line.words();
  TEST_ASSERT_EQUAL("1000000000", words.back());
}

TEST(test_renewal_should_name_key_token_and_lease) {
  for (const RequestForm form : script_forms) {
    const Words filled = fill(semaphore_kind, Operation::renew, form);
    TEST_ASSERT_TRUE(script_words(scripts::semaphore_renew, form, {"1", "name", token_text, "10000"}) == filled);
  }
}

TEST(test_release_should_name_key_and_token) {
  for (const RequestForm form : script_forms) {
    const Words filled = fill(semaphore_kind, Operation::release, form);
    TEST_ASSERT_TRUE(script_words(scripts::semaphore_release, form, {"1", "name", token_text}) == filled);
  }
}

TEST(test_the_question_should_name_the_key) {
  WrittenLine line;
  semaphore_kind.ask_remaining(line, Key(ByteView("name")));
  TEST_ASSERT_TRUE(script_words(scripts::semaphore_remaining, RequestForm::by_text, {"1", "name"}) == line.words());
}

// It is not reentrant, a compensation is a release by text, and the question has a function of its own.
TEST(test_what_a_permit_does_not_send_should_be_no_command) {
  for (const Operation operation : {Operation::step, Operation::compensate, Operation::query})
    TEST_ASSERT_EQUAL(0U, fill(semaphore_kind, operation, RequestForm::by_text).size());
}

TEST(test_every_command_of_the_longest_key_should_fit_into_a_send_buffer) {
  const std::string key(key_size_max, 'k');
  const Token token{ByteView(std::string(token_size_max, 'a'))};
  LockMachine machine(semaphore_kind);
  (void)with_permits(machine);
  for (const Operation operation : {Operation::acquire, Operation::renew, Operation::release}) {
    WrittenLine line;
    semaphore_kind.fill(line, semaphore_kind, operation, RequestForm::by_text,
                        {.key = Key(ByteView(key)),
                         .token = &token,
                         .lease = std::chrono::duration_cast<std::chrono::milliseconds>(lease_max),
                         .machine = &machine});
    TEST_ASSERT_EQUAL(Status::ok, line.finish());
  }
}

// ---- What is taken for an answer ---------------------------------------------------------------------------------

// [rule 11] Default-deny.
TEST(test_acquire_should_take_ok_for_a_grant_and_a_remaining_time_for_busy) {
  expect_only(semaphore_kind, Operation::acquire, with_remaining_time({{"+OK\r\n", Verdict::granted}}));
}

TEST(test_another_number_of_permits_should_be_a_refusal_of_its_own) {
  const Heard differ("+PERMITS\r\n");
  LockFacts facts;
  TEST_ASSERT_EQUAL(Verdict::busy, semaphore_kind.decode(semaphore_kind, Operation::acquire, differ.value, facts));
  TEST_ASSERT_EQUAL(Status::permits_differ, facts.refusal);
  TEST_ASSERT_EQUAL(remaining_unknown, facts.remaining);
  for (const Operation operation : {Operation::renew, Operation::release})
    TEST_ASSERT_EQUAL(Verdict::unexpected, semaphore_kind.decode(semaphore_kind, operation, differ.value, facts));
}

TEST(test_renewal_should_take_an_array_of_one_answer) {
  expect_only(
      semaphore_kind, Operation::renew,
      {{"*1\r\n:1\r\n", Verdict::granted}, {"*1\r\n:0\r\n", Verdict::not_ours}, {"*1\r\n:-1\r\n", Verdict::refused}});
}

TEST(test_release_should_take_one_or_zero) { expect_only(semaphore_kind, Operation::release, yes_or_no); }

TEST(test_what_a_permit_does_not_send_should_have_no_answer) {
  for (const Operation operation : {Operation::step, Operation::compensate, Operation::query})
    expect_only(semaphore_kind, operation, {});
}

TEST(test_a_permit_should_say_what_it_is) {
  const LockKind& kind = semaphore_kind;
  TEST_ASSERT_TRUE(!kind.reentrant && !kind.native_release && !kind.fenced && kind.tells_remaining);
  TEST_ASSERT_TRUE(kind.renew_batch == &scripts::semaphore_renew && kind.token == TokenSource::random);
  TEST_ASSERT_TRUE(kind.announcement != nullptr && kind.announcement->counts && kind.announcement->wakes_one == '1');
}

// The scripts work the channel out.
TEST(test_what_gives_permits_back_should_publish_how_many_are_free_to_who_listens) {
  const Announcement& announcement = *semaphore_kind.announcement;
  const std::string publish = "'PUBLISH', '" + std::string(announcement.channel.string_view()) + ":' .. tag, free)";
  for (const Script* const script : {&scripts::semaphore_acquire, &scripts::semaphore_release})
    TEST_ASSERT_TRUE(script->text.string_view().find(publish) != std::string_view::npos);
}

TEST(test_a_permit_should_do_what_it_says) { expect_to_do_what_it_says(semaphore_kind); }

// ---- How many there may be ---------------------------------------------------------------------------------------

TEST(test_a_number_beyond_its_limit_should_make_the_lock_invalid) {
  TEST_ASSERT_TRUE(checked_timing(0, {}).valid());
  TEST_ASSERT_TRUE(checked_timing(permits_max, {.lease = 5s}).lease == 5s);
  TEST_ASSERT_FALSE(checked_timing(permits_max + 1, {.lease = 5s}).valid());
}
