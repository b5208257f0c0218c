// SPDX-License-Identifier: MIT
//
// What the kind of several names sends, word by word, and what it takes for an answer. The rules are those of
// proto/lock.md, quoted as [rule N].
#include "unity_style.hpp"

#include <string>
#include <vector>

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/multi_kind.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/name_list.hpp"
#include "kind_table.hpp"
#include "scripts.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

const ByteView two[] = {"name", "another"};
const NameList two_names(two, 2);

Words fill_two(Operation operation, RequestForm form) {
  return fill(multi_kind, operation, form, std::string(two_names.key().bytes().string_view()));
}

// As many and as long as a lock's names can be.
NameList longest_names() {
  std::vector<std::string> texts;
  for (std::size_t index = 0; index < names_max; ++index)
    texts.push_back(static_cast<char>('a' + index) + std::string(key_size_max / names_max - 2, 'x'));
  const std::vector<ByteView> names(texts.begin(), texts.end());
  return NameList(names.data(), names.size());
}

}  // namespace

// ---- What is sent ------------------------------------------------------------------------------------------------

TEST(test_acquire_should_name_every_name_owner_and_lease) {
  for (const RequestForm form : script_forms) {
    const Words filled = fill_two(Operation::acquire, form);
    TEST_ASSERT_TRUE(script_words(scripts::multi_acquire, form, {"2", "another", "name", token_text, "10000"}) ==
                     filled);
  }
}

TEST(test_renewal_should_be_a_batch_of_one_hold) {
  for (const RequestForm form : script_forms)
    TEST_ASSERT_TRUE(script_words(scripts::multi_renew, form, {"2", "another", "name", token_text, "10000", "2"}) ==
                     fill_two(Operation::renew, form));
}

// [rule 17] The count travels as an absolute number.
TEST(test_step_should_name_every_name_owner_count_and_lease) {
  for (const RequestForm form : script_forms)
    TEST_ASSERT_TRUE(script_words(scripts::multi_step, form, {"2", "another", "name", token_text, "7", "10000"}) ==
                     fill_two(Operation::step, form));
}

TEST(test_release_should_name_every_name_owner_and_the_beginning_of_the_channels) {
  for (const RequestForm form : script_forms) {
    const Words filled = fill_two(Operation::release, form);
    TEST_ASSERT_TRUE(script_words(scripts::multi_release, form,
                                  {"2", "another", "name", token_text, "redisson_lock__channel"}) == filled);
  }
}

TEST(test_query_should_name_every_name) {
  TEST_ASSERT_TRUE(script_words(scripts::multi_remaining, RequestForm::by_text, {"2", "another", "name"}) ==
                   fill_two(Operation::query, RequestForm::by_text));
  TEST_ASSERT_EQUAL(0U, fill_two(Operation::compensate, RequestForm::by_text).size());
}

TEST(test_every_command_of_the_longest_names_should_fit_into_half_a_send_buffer) {
  const NameList longest = longest_names();
  const Token token{ByteView(std::string(token_size_max, 'a'))};
  for (const Operation operation : {Operation::acquire, Operation::renew, Operation::step, Operation::release}) {
    WrittenLine line;
    multi_kind.fill(line, multi_kind, operation, RequestForm::by_text,
                    {.key = longest.key(),
                     .token = &token,
                     .lease = std::chrono::duration_cast<std::chrono::milliseconds>(lease_max),
                     .count = count_max});
    TEST_ASSERT_EQUAL(Status::ok, line.finish());
    TEST_ASSERT_TRUE(line.words().size() <= arguments_max);
  }
}

TEST(test_every_request_of_the_longest_names_should_be_within_its_limit) {
  const NameList longest = longest_names();
  const Token token{ByteView(std::string(token_size_max, 'a'))};
  for (const Operation operation : {Operation::acquire, Operation::renew, Operation::step, Operation::release}) {
    WrittenLine line;
    multi_kind.fill(line, multi_kind, operation, RequestForm::by_sha,
                    {.key = longest.key(),
                     .token = &token,
                     .lease = std::chrono::duration_cast<std::chrono::milliseconds>(lease_max),
                     .count = count_max});
    TEST_ASSERT_EQUAL(Status::ok, line.finish());
    TEST_ASSERT_TRUE(line.size() <= request_size_max);
  }
}

// ---- What is taken for an answer ---------------------------------------------------------------------------------

// [rule 11] Default-deny.
TEST(test_acquire_should_take_ok_for_a_grant_and_a_time_with_its_place_for_busy) {
  expect_only(multi_kind, Operation::acquire,
              {{"+OK\r\n", Verdict::granted},
               {"*2\r\n:1\r\n:1\r\n", Verdict::busy, 1},
               {"*2\r\n:30000\r\n:8\r\n", Verdict::busy, 30000},
               {"*2\r\n:-1\r\n:2\r\n", Verdict::busy, -1}});
  const Heard heard("*2\r\n:30000\r\n:8\r\n");
  LockFacts facts;
  TEST_ASSERT_TRUE(Verdict::busy == multi_kind.decode(multi_kind, Operation::acquire, heard.value, facts));
  TEST_ASSERT_EQUAL(7, int{facts.place});
  // A reply that is none says nothing of a place.
  const Heard odd("*2\r\n+soon\r\n:3\r\n");
  TEST_ASSERT_TRUE(Verdict::unexpected == multi_kind.decode(multi_kind, Operation::acquire, odd.value, facts));
  TEST_ASSERT_EQUAL(7, int{facts.place});
}

TEST(test_renewal_should_take_an_array_of_one_answer) {
  expect_only(
      multi_kind, Operation::renew,
      {{"*1\r\n:1\r\n", Verdict::granted}, {"*1\r\n:0\r\n", Verdict::not_ours}, {"*1\r\n:-1\r\n", Verdict::refused}});
}

TEST(test_step_and_release_should_take_one_or_zero) {
  expect_only(multi_kind, Operation::step, yes_or_no);
  expect_only(multi_kind, Operation::release, yes_or_no);
  expect_only(multi_kind, Operation::compensate, {});
  expect_only(multi_kind, Operation::query, {});
}

TEST(test_it_should_say_what_it_is) {
  TEST_ASSERT_TRUE(multi_kind.reentrant && multi_kind.announcement != nullptr && !multi_kind.native_release &&
                   !multi_kind.fenced);
  TEST_ASSERT_TRUE(multi_kind.renew_batch == &scripts::multi_renew);
  TEST_ASSERT_TRUE(multi_kind.name_at == &name_at);
  TEST_ASSERT_TRUE(multi_kind.token == TokenSource::client_ordinal);
}

TEST(test_it_should_do_what_it_says) {
  expect_to_do_what_it_says(multi_kind, std::string(two_names.key().bytes().string_view()));
}

// ---- Whom it waits for -------------------------------------------------------------------------------------------

TEST(test_machine_should_say_which_name_is_awaited) {
  const Token token{ByteView(token_text)};
  LockMachine machine(multi_kind);
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(two_names.key(), {}));
  TEST_ASSERT_EQUAL(ByteView("another"), machine.awaited().bytes());
  const struct {
    const char* reply;
    const char* name;
    std::uint8_t place;
  } answers[] = {
      {"*2\r\n:30000\r\n:2\r\n", "name", 1},
      {"*2\r\n:30000\r\n:1\r\n", "another", 0},
      {"*2\r\n:30000\r\n:3\r\n", "another", 2},  // There is none such: any is right.
  };
  for (const auto& answer : answers) {
    const Heard heard(answer.reply);
    TEST_ASSERT_EQUAL(Status::ok, machine.acquire(token, Instant(), Instant::max()));
    char space[1024];
    Request request;
    std::size_t size = 0;
    TEST_ASSERT_EQUAL(Status::ok, machine.poll_request({space, sizeof space}, request, size));
    Reply reply;
    reply.tag = request.tag;
    reply.value = heard.value;
    machine.handle_reply(reply, Instant());
    TEST_ASSERT_EQUAL(Status::lock_busy, machine.status());
    TEST_ASSERT_EQUAL(ByteView(answer.name), machine.awaited().bytes());
    TEST_ASSERT_EQUAL(answer.place, machine.awaited_place());
  }
  LockMachine plain(mutex_kind);
  TEST_ASSERT_EQUAL(Status::ok, plain.configure(Key("k"), {}));
  TEST_ASSERT_EQUAL(ByteView("k"), plain.awaited().bytes());
}

TEST(test_the_time_that_is_left_should_be_asked_of_all_names_at_once) {
  WrittenLine line;
  multi_kind.ask_remaining(line, two_names.key());
  TEST_ASSERT_TRUE(script_words(scripts::multi_remaining, RequestForm::by_text, {"2", "another", "name"}) ==
                   line.words());
}
