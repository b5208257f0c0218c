// SPDX-License-Identifier: MIT
//
// What the Mutex kinds send, word by word, and what they take for an answer. The rules are those of proto/lock.md, quoted
// as [rule N].
#include "unity_style.hpp"

#include <string>
#include <vector>

#include "holdfast/mutex_kind.hpp"
#include "kind_table.hpp"
#include "scripts.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const LockKind* const kinds[] = {&mutex_kind, &announced_mutex_kind, &fenced_mutex_kind, &announced_fenced_mutex_kind};

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- What is sent ------------------------------------------------------------------------------------------------

// The plain command in whatever form: peers follow the redis.io page.
TEST(test_acquire_should_be_set_nx_px) {
  for (const LockKind* const kind : {&mutex_kind, &announced_mutex_kind})
    for (const RequestForm form : script_forms) {
      const Filled filled = fill(*kind, Operation::acquire, form);
      TEST_ASSERT_TRUE(Words({"SET", "name", token_text, "NX", "PX", "10000"}) == filled.words);
      TEST_ASSERT_EQUAL(2U, filled.token_index);
    }
}

TEST(test_fenced_acquire_should_name_the_counter_behind_the_key) {
  for (const LockKind* const kind : {&fenced_mutex_kind, &announced_fenced_mutex_kind})
    for (const RequestForm form : script_forms) {
      const Filled filled = fill(*kind, Operation::acquire, form);
      TEST_ASSERT_TRUE(script_words(scripts::mutex_acquire_fenced, form,
                                    {"2", "name", "redisson_lock_token:{name}", token_text, "10000"}) == filled.words);
      TEST_ASSERT_EQUAL(5U, filled.token_index);
    }
}

TEST(test_renewal_should_name_key_token_and_lease) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const Filled filled = fill(*kind, Operation::renew, form);
      TEST_ASSERT_TRUE(script_words(scripts::mutex_renew, form, {"1", "name", token_text, "10000"}) == filled.words);
    }
}

TEST(test_release_should_name_key_and_token) {
  for (const LockKind* const kind : {&mutex_kind, &fenced_mutex_kind}) {
    for (const RequestForm form : script_forms) {
      const Filled filled = fill(*kind, Operation::release, form);
      TEST_ASSERT_TRUE(script_words(scripts::mutex_release, form, {"1", "name", token_text}) == filled.words);
      TEST_ASSERT_EQUAL(4U, filled.token_index);
    }
    const Filled delex = fill(*kind, Operation::release, RequestForm::delex);
    TEST_ASSERT_TRUE(Words({"DELEX", "name", "IFEQ", token_text}) == delex.words);
    TEST_ASSERT_EQUAL(3U, delex.token_index);
    const Filled delifeq = fill(*kind, Operation::release, RequestForm::delifeq);
    TEST_ASSERT_TRUE(Words({"DELIFEQ", "name", token_text}) == delifeq.words);
    TEST_ASSERT_EQUAL(2U, delifeq.token_index);
  }
}

TEST(test_announced_release_should_name_the_channel_behind_the_token) {
  for (const LockKind* const kind : {&announced_mutex_kind, &announced_fenced_mutex_kind})
    for (const RequestForm form : script_forms) {
      const Filled filled = fill(*kind, Operation::release, form);
      TEST_ASSERT_TRUE(script_words(scripts::mutex_release_announced, form,
                                    {"1", "name", token_text, "redisson_lock__channel:{name}"}) == filled.words);
      TEST_ASSERT_EQUAL(4U, filled.token_index);
    }
}

TEST(test_names_beside_a_key_with_a_brace_should_have_none_of_their_own) {
  TEST_ASSERT_EQUAL("redisson_lock_token:{shop}:name",
                    fill(fenced_mutex_kind, Operation::acquire, RequestForm::by_sha, "{shop}:name").words[4]);
  TEST_ASSERT_EQUAL("redisson_lock__channel:{shop}:name",
                    fill(announced_mutex_kind, Operation::release, RequestForm::by_sha, "{shop}:name").words[5]);
}

// A Mutex is held once; its compensation is a release by text.
TEST(test_what_no_mutex_sends_should_be_no_command) {
  for (const LockKind* const kind : kinds)
    for (const Operation operation : {Operation::step, Operation::compensate, Operation::query})
      TEST_ASSERT_EQUAL(0U, fill(*kind, operation, RequestForm::by_text).words.size());
}

// ---- What is taken for an answer ---------------------------------------------------------------------------------

// [rule 11] Default-deny.
TEST(test_acquire_should_take_ok_for_a_grant_and_nil_for_busy) {
  for (const LockKind* const kind : {&mutex_kind, &announced_mutex_kind})
    expect_only(*kind, Operation::acquire,
                {{"+OK\r\n", Verdict::granted}, {"$-1\r\n", Verdict::busy}, {"*-1\r\n", Verdict::busy}});
}

// [rule 11] A fence is a positive number of 63 bits as the script writes it: as a string, in plain digits.
TEST(test_fenced_acquire_should_take_a_fence_for_a_grant_and_a_remaining_time_for_busy) {
  for (const LockKind* const kind : {&fenced_mutex_kind, &announced_fenced_mutex_kind})
    expect_only(*kind, Operation::acquire, with_remaining_time(fences));
}

TEST(test_renewal_and_release_should_take_one_or_zero) {
  for (const LockKind* const kind : kinds) {
    expect_only(*kind, Operation::renew, yes_or_no);
    expect_only(*kind, Operation::release, yes_or_no);
  }
}

TEST(test_what_no_mutex_sends_should_have_no_answer) {
  for (const LockKind* const kind : kinds)
    for (const Operation operation : {Operation::step, Operation::compensate, Operation::query})
      expect_only(*kind, operation, {});
}

// Who announces releases by a script, so that a waiter hears of it.
TEST(test_only_silent_mutexes_should_release_natively) {
  for (const LockKind* const kind : kinds) {
    TEST_ASSERT_FALSE(kind->reentrant);
    TEST_ASSERT_TRUE(kind->native_release == (kind->announcement == nullptr));
    TEST_ASSERT_TRUE(kind->renew_batch == &scripts::mutex_renew_batch);
  }
  TEST_ASSERT_TRUE(mutex_kind.native_release && fenced_mutex_kind.native_release);
  TEST_ASSERT_TRUE(!mutex_kind.fenced && !announced_mutex_kind.fenced);
  TEST_ASSERT_TRUE(fenced_mutex_kind.fenced && announced_fenced_mutex_kind.fenced);
}

TEST(test_mutexes_should_do_what_they_say) {
  for (const LockKind* const kind : kinds) {
    expect_to_do_what_it_says(*kind);
    TEST_ASSERT_TRUE(kind->token == TokenSource::random);
  }
}
