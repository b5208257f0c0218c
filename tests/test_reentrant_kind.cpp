// SPDX-License-Identifier: MIT
//
// What the reentrant kinds send, word by word, and what they take for an answer. The rules are those of proto/lock.md,
// quoted as [rule N].
#include "unity_style.hpp"

#include <string>
#include <vector>

#include "holdfast/core/reentrant_kind.hpp"
#include "kind_table.hpp"
#include "scripts.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const LockKind* const kinds[] = {&reentrant_kind, &fenced_kind};

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- What is sent ------------------------------------------------------------------------------------------------

TEST(test_acquire_should_name_key_owner_and_lease) {
  for (const RequestForm form : script_forms) {
    const Words filled = fill(reentrant_kind, Operation::acquire, form);
    TEST_ASSERT_TRUE(script_words(scripts::reentrant_acquire, form, {"1", "name", token_text, "10000"}) == filled);
  }
}

TEST(test_fenced_acquire_should_name_the_counter_behind_the_key) {
  for (const RequestForm form : script_forms) {
    const Words filled = fill(fenced_kind, Operation::acquire, form);
    TEST_ASSERT_TRUE(script_words(scripts::fenced_acquire, form,
                                  {"2", "name", "redisson_lock_token:{name}", token_text, "10000"}) == filled);
  }
}

TEST(test_renewal_should_name_key_owner_and_lease) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::renew, form);
      TEST_ASSERT_TRUE(script_words(scripts::reentrant_renew, form, {"1", "name", token_text, "10000"}) == filled);
    }
}

// [rule 17] The count travels as an absolute number.
TEST(test_step_should_name_key_owner_count_and_lease) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::step, form);
      TEST_ASSERT_TRUE(script_words(scripts::reentrant_step, form, {"1", "name", token_text, "7", "10000"}) == filled);
    }
}

TEST(test_release_should_name_key_owner_and_channel) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::release, form);
      TEST_ASSERT_TRUE(script_words(scripts::reentrant_release, form,
                                    {"1", "name", token_text, "redisson_lock__channel:{name}"}) == filled);
    }
}

TEST(test_names_beside_a_key_with_a_brace_should_have_none_of_their_own) {
  TEST_ASSERT_EQUAL("redisson_lock_token:{shop}:name",
                    fill(fenced_kind, Operation::acquire, RequestForm::by_sha, "{shop}:name")[4]);
  TEST_ASSERT_EQUAL("redisson_lock__channel:{shop}:name",
                    fill(fenced_kind, Operation::release, RequestForm::by_sha, "{shop}:name")[5]);
}

// A compensation is a step or a release by text; a query is no kind's business.
TEST(test_what_no_reentrant_kind_sends_should_be_no_command) {
  for (const LockKind* const kind : kinds)
    for (const Operation operation : {Operation::compensate, Operation::query})
      TEST_ASSERT_EQUAL(0U, fill(*kind, operation, RequestForm::by_text).size());
}

TEST(test_every_command_of_the_longest_key_should_fit_into_half_a_send_buffer) {
  const std::string key(key_size_max, 'k');
  const Token token{ByteView(std::string(token_size_max, 'a'))};
  for (const LockKind* const kind : kinds)
    for (const Operation operation : {Operation::acquire, Operation::renew, Operation::step, Operation::release}) {
      WrittenLine line;
      kind->fill(line, *kind, operation, RequestForm::by_text,
                 {.key = Key(ByteView(key)),
                  .token = &token,
                  .lease = std::chrono::duration_cast<std::chrono::milliseconds>(lease_max),
                  .count = count_max});
      TEST_ASSERT_EQUAL(Status::ok, line.finish());
    }
}

// ---- What is taken for an answer ---------------------------------------------------------------------------------

// [rule 11] Default-deny.
TEST(test_acquire_should_take_ok_for_a_grant_and_a_remaining_time_for_busy) {
  expect_only(reentrant_kind, Operation::acquire, with_remaining_time({{"+OK\r\n", Verdict::granted}}));
}

// [rule 11] A fence is a positive number of 63 bits as the script writes it: as a string, in plain digits.
TEST(test_fenced_acquire_should_take_a_fence_for_a_grant_and_a_remaining_time_for_busy) {
  expect_only(fenced_kind, Operation::acquire, with_remaining_time(fences));
}

// [rule 11] The server refuses for a while: no answer of an honest one is a doubt.
TEST(test_renewal_should_take_an_array_of_one_answer) {
  for (const LockKind* const kind : kinds)
    expect_only(
        *kind, Operation::renew,
        {{"*1\r\n:1\r\n", Verdict::granted}, {"*1\r\n:0\r\n", Verdict::not_ours}, {"*1\r\n:-1\r\n", Verdict::refused}});
}

TEST(test_step_and_release_should_take_one_or_zero) {
  for (const LockKind* const kind : kinds) {
    expect_only(*kind, Operation::step, yes_or_no);
    expect_only(*kind, Operation::release, yes_or_no);
  }
}

TEST(test_what_no_reentrant_kind_sends_should_have_no_answer) {
  for (const LockKind* const kind : kinds) {
    expect_only(*kind, Operation::compensate, {});
    expect_only(*kind, Operation::query, {});
  }
}

TEST(test_reentrant_kinds_should_say_what_they_are) {
  for (const LockKind* const kind : kinds) {
    TEST_ASSERT_TRUE(kind->reentrant && kind->announcement != nullptr && !kind->native_release);
    TEST_ASSERT_TRUE(kind->renew_batch == &scripts::reentrant_renew);
  }
  TEST_ASSERT_FALSE(reentrant_kind.fenced);
  TEST_ASSERT_TRUE(fenced_kind.fenced);
}

TEST(test_reentrant_kinds_should_do_what_they_say) {
  for (const LockKind* const kind : kinds) {
    expect_to_do_what_it_says(*kind);
    TEST_ASSERT_TRUE(kind->token == TokenSource::client_ordinal);
  }
}
