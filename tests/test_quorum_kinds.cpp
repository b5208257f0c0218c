// SPDX-License-Identifier: MIT
//
// What the kinds of a quorum with a fence send, word by word, and what they take for an answer.
#include "unity_style.hpp"

#include <string>

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/quorum_kinds.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "kind_table.hpp"
#include "scripts.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

struct Pair {
  const LockKind* quorum;
  const LockKind* single;
};
const Pair pairs[] = {{&quorum_fenced_mutex_kind, &fenced_mutex_kind},
                      {&quorum_announced_fenced_mutex_kind, &announced_fenced_mutex_kind},
                      {&quorum_fenced_kind, &fenced_kind}};

constexpr RequestForm forms[] = {RequestForm::by_sha, RequestForm::by_text, RequestForm::delex, RequestForm::delifeq};
constexpr Operation operations[] = {Operation::acquire, Operation::renew,      Operation::step,
                                    Operation::release, Operation::compensate, Operation::query};

Words words_of(const LockKind& kind, Operation operation, RequestForm form, std::uint64_t fence,
               const std::string& key) {
  const Token token{ByteView(token_text)};
  LockMachine machine(kind);
  machine.set_fence(fence);
  WrittenLine line;
  kind.fill(
      line, kind, operation, form,
      {.key = Key(ByteView(key)), .token = &token, .lease = std::chrono::seconds(10), .count = 7, .machine = &machine});
  return line.words();
}
Words renewal(const LockKind& kind, RequestForm form, std::uint64_t fence, const std::string& key = "name") {
  return words_of(kind, Operation::renew, form, fence, key);
}

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- Which kind it is ----------------------------------------------------------------------------------------------

TEST(test_options_should_choose_a_kind_of_one_node_and_of_a_quorum) {
  const struct {
    MutexOptions options;
    const LockKind* single;
    const LockKind* quorum;
  } choices[] = {
      {{}, &mutex_kind, &mutex_kind},
      {{.announce = true}, &announced_mutex_kind, &announced_mutex_kind},
      {{.fence = true}, &fenced_mutex_kind, &quorum_fenced_mutex_kind},
      {{.announce = true, .fence = true}, &announced_fenced_mutex_kind, &quorum_announced_fenced_mutex_kind},
  };
  for (const auto& choice : choices) {
    TEST_ASSERT_TRUE(&kind_of(choice.options) == choice.single);
    TEST_ASSERT_TRUE(&quorum_kind_of(choice.options) == choice.quorum);
  }
}

// ---- What is sent ------------------------------------------------------------------------------------------------

TEST(test_all_but_the_write_back_should_be_as_on_one_node) {
  for (const Pair& pair : pairs)
    for (const Operation operation : operations)
      for (const RequestForm form : forms) {
        const Words expected = fill(*pair.single, operation, form);
        const Words filled = fill(*pair.quorum, operation, form);
        TEST_ASSERT_TRUE(expected == filled);
      }
}

TEST(test_a_renewal_with_a_fence_should_name_lock_counter_token_lease_and_fence) {
  for (const Pair& pair : pairs)
    for (const RequestForm form : script_forms) {
      const Words words = renewal(*pair.quorum, form, 42);
      TEST_ASSERT_TRUE(script_words(scripts::quorum_renew, form,
                                    {"2", "name", "redisson_lock_token:{name}", token_text, "10000", "42"}) == words);
    }
}

// The machine tells every request of it, a release too.
TEST(test_only_a_renewal_should_carry_a_fence) {
  for (const Pair& pair : pairs)
    for (const Operation operation : operations)
      if (operation != Operation::renew)
        TEST_ASSERT_TRUE(fill(*pair.single, operation, RequestForm::by_sha) ==
                         words_of(*pair.quorum, operation, RequestForm::by_sha, 9, "name"));
}

TEST(test_a_fence_should_lose_no_digit) {
  for (const std::uint64_t fence : {std::uint64_t{1}, (std::uint64_t{1} << 53) - 1, (std::uint64_t{1} << 53) + 1,
                                    std::uint64_t{INT64_MAX} - 1, std::uint64_t{INT64_MAX}})
    for (const Pair& pair : pairs)
      TEST_ASSERT_EQUAL(std::to_string(fence), renewal(*pair.quorum, RequestForm::by_sha, fence).back());
}

TEST(test_the_counter_beside_a_key_with_a_brace_should_have_none_of_its_own) {
  for (const Pair& pair : pairs)
    TEST_ASSERT_EQUAL("redisson_lock_token:{shop}:name",
                      renewal(*pair.quorum, RequestForm::by_sha, 1, "{shop}:name")[4]);
}

TEST(test_the_write_back_of_the_longest_key_should_fit_into_half_a_send_buffer) {
  const std::string key(key_size_max, 'k');
  const Token token{ByteView(std::string(token_size_max, 'a'))};
  for (const Pair& pair : pairs) {
    LockMachine machine(*pair.quorum);
    machine.set_fence(INT64_MAX);
    WrittenLine line;
    pair.quorum->fill(line, *pair.quorum, Operation::renew, RequestForm::by_text,
                      {.key = Key(ByteView(key)),
                       .token = &token,
                       .lease = std::chrono::duration_cast<std::chrono::milliseconds>(lease_max),
                       .machine = &machine});
    TEST_ASSERT_EQUAL(Status::ok, line.finish());
  }
}

// ---- What is taken for an answer ---------------------------------------------------------------------------------

// Default-deny.
TEST(test_acquire_should_take_a_fence_for_a_grant_and_a_remaining_time_for_busy) {
  for (const Pair& pair : pairs) expect_only(*pair.quorum, Operation::acquire, with_remaining_time(fences));
}

TEST(test_a_renewal_should_take_one_or_zero_and_a_reentrant_one_an_array_of_it_too) {
  expect_only(quorum_fenced_mutex_kind, Operation::renew, yes_or_no);
  expect_only(quorum_announced_fenced_mutex_kind, Operation::renew, yes_or_no);
  expect_only(quorum_fenced_kind, Operation::renew,
              {{":1\r\n", Verdict::granted},
               {":0\r\n", Verdict::not_ours},
               {"*1\r\n:1\r\n", Verdict::granted},
               {"*1\r\n:0\r\n", Verdict::not_ours},
               {"*1\r\n:-1\r\n", Verdict::refused}});
}

TEST(test_all_other_answers_should_be_as_on_one_node) {
  for (const Pair& pair : pairs) {
    expect_only(*pair.quorum, Operation::release, yes_or_no);
    for (const Operation operation : {Operation::compensate, Operation::query})
      expect_only(*pair.quorum, operation, {});
  }
  expect_only(quorum_fenced_kind, Operation::step, yes_or_no);
  expect_only(quorum_fenced_mutex_kind, Operation::step, {});
}

// The fence of the quorum is no node's to change.
TEST(test_only_an_acquire_should_set_a_fence) {
  for (const Pair& pair : pairs)
    for (const Operation operation : operations)
      for (const char* const reply : replies) {
        const Heard heard(reply);
        LockFacts facts;
        facts.fence = 77;
        const Verdict verdict = pair.quorum->decode(*pair.quorum, operation, heard.value, facts);
        if (operation != Operation::acquire || verdict != Verdict::granted) TEST_ASSERT_EQUAL(77U, facts.fence);
        if (operation == Operation::acquire && verdict == Verdict::granted) TEST_ASSERT_TRUE(facts.fence != 77U);
      }
}

TEST(test_kinds_of_a_quorum_should_say_what_they_are) {
  for (const Pair& pair : pairs) {
    TEST_ASSERT_TRUE(pair.quorum->fenced);
    TEST_ASSERT_EQUAL(pair.single->reentrant, pair.quorum->reentrant);
    TEST_ASSERT_TRUE(pair.single->announcement == pair.quorum->announcement);
    TEST_ASSERT_EQUAL(pair.single->native_release, pair.quorum->native_release);
    TEST_ASSERT_EQUAL(pair.single->tells_remaining, pair.quorum->tells_remaining);
    TEST_ASSERT_TRUE(pair.single->token == pair.quorum->token);
    expect_to_do_what_it_says(*pair.quorum);
    TEST_ASSERT_TRUE(pair.single->renew_batch == pair.quorum->renew_batch);
    TEST_ASSERT_TRUE(std::string(pair.single->name) != pair.quorum->name);
  }
}
