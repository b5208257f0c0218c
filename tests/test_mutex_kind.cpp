// SPDX-License-Identifier: MIT
//
// What the Mutex kinds send, word by word, and what they take for an answer. The rules are those of proto/lock.md, quoted
// as [rule N].
#include "unity_style.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "guard_page.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "kind_table.hpp"
#include "scripts.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const LockKind* const kinds[] = {&mutex_kind, &announced_mutex_kind, &fenced_mutex_kind, &announced_fenced_mutex_kind};

// What the general encoder makes of these words.
std::string encoded(const Words& words) {
  const std::vector<Argument> arguments(words.begin(), words.end());
  std::string text(encoded_size({arguments.data(), arguments.size()}), '\0');
  std::size_t size = 0;
  TEST_ASSERT_EQUAL(Status::ok, encode_command({text.data(), text.size()}, {arguments.data(), arguments.size()}, size));
  return text;
}

// The request is `expected` where it fits, and nothing is written behind the room where it does not.
void expect_request(Operation operation, const HoldView& hold, const std::string& expected, std::size_t less_max) {
  static const GuardPage guarded(4096);
  for (std::size_t less = 0; less <= std::min(less_max, expected.size()); ++less) {
    const MutableBytes out = guarded.last(expected.size() - less);
    CommandLine line(out);
    mutex_kind.fill(line, mutex_kind, operation, RequestForm::by_sha, hold);
    std::size_t size = 0;
    TEST_ASSERT_EQUAL(less == 0 ? Status::ok : Status::buffer_too_small, line.finish(size));
    if (less == 0) TEST_ASSERT_TRUE(expected == std::string(out.data, size));
  }
}

void expect_pair(const std::string& key, const std::string& token_bytes, std::chrono::milliseconds lease,
                 std::size_t less_max) {
  const Token token{ByteView(token_bytes)};
  const HoldView hold = {.key = Key(ByteView(key)), .token = &token, .lease = lease};
  expect_request(Operation::acquire, hold,
                 encoded({"SET", key, token_bytes, "NX", "PX", std::to_string(lease.count())}), less_max);
  const std::string sha(scripts::mutex_release.sha.bytes().string_view());
  expect_request(Operation::release, hold, encoded({"EVALSHA", sha, "1", key, token_bytes}), less_max);
}

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- What is sent ------------------------------------------------------------------------------------------------

// The plain command in whatever form: peers follow the redis.io page.
TEST(test_acquire_should_be_set_nx_px) {
  for (const LockKind* const kind : {&mutex_kind, &announced_mutex_kind})
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::acquire, form);
      TEST_ASSERT_TRUE(Words({"SET", "name", token_text, "NX", "PX", "10000"}) == filled);
    }
}

// They are written as one piece: the bytes are those of the general encoder.
TEST(test_plain_requests_should_be_written_for_keys_of_every_size) {
  for (std::size_t size = 1; size <= key_size_max; ++size)
    expect_pair(std::string(size, 'k'), token_text, std::chrono::seconds(10), 8);
}

TEST(test_plain_requests_should_be_written_for_tokens_of_every_size) {
  for (std::size_t size = 1; size <= token_size_max; ++size)
    expect_pair("name", std::string(size, 't'), std::chrono::seconds(10), 8);
}

TEST(test_plain_requests_should_be_written_for_leases_of_every_length) {
  for (std::int64_t lease = 1; lease <= 10'000'000; lease *= 10)
    for (const std::int64_t beside : {-1, 0, 1, 2}) {
      const std::chrono::milliseconds length(lease * 8 + beside), power(lease * 10 + beside);
      expect_pair("name", token_text, length, 0);
      if (power.count() <= 86'400'000) expect_pair("name", token_text, power, 0);
    }
  expect_pair("name", token_text, std::chrono::duration_cast<std::chrono::milliseconds>(lease_max), 0);
}

TEST(test_plain_requests_should_be_refused_by_any_smaller_room) {
  expect_pair("name", token_text, std::chrono::seconds(10), SIZE_MAX);
}

TEST(test_fenced_acquire_should_name_the_counter_behind_the_key) {
  for (const LockKind* const kind : {&fenced_mutex_kind, &announced_fenced_mutex_kind})
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::acquire, form);
      TEST_ASSERT_TRUE(script_words(scripts::mutex_acquire_fenced, form,
                                    {"2", "name", "redisson_lock_token:{name}", token_text, "10000"}) == filled);
    }
}

TEST(test_renewal_should_name_key_token_and_lease) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::renew, form);
      TEST_ASSERT_TRUE(script_words(scripts::mutex_renew, form, {"1", "name", token_text, "10000"}) == filled);
    }
}

TEST(test_release_should_name_key_and_token) {
  for (const LockKind* const kind : {&mutex_kind, &fenced_mutex_kind}) {
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::release, form);
      TEST_ASSERT_TRUE(script_words(scripts::mutex_release, form, {"1", "name", token_text}) == filled);
    }
    const Words delex = fill(*kind, Operation::release, RequestForm::delex);
    TEST_ASSERT_TRUE(Words({"DELEX", "name", "IFEQ", token_text}) == delex);
    const Words delifeq = fill(*kind, Operation::release, RequestForm::delifeq);
    TEST_ASSERT_TRUE(Words({"DELIFEQ", "name", token_text}) == delifeq);
  }
}

TEST(test_announced_release_should_name_the_channel_behind_the_token) {
  for (const LockKind* const kind : {&announced_mutex_kind, &announced_fenced_mutex_kind})
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::release, form);
      TEST_ASSERT_TRUE(script_words(scripts::mutex_release_announced, form,
                                    {"1", "name", token_text, "redisson_lock__channel:{name}"}) == filled);
    }
}

TEST(test_names_beside_a_key_with_a_brace_should_have_none_of_their_own) {
  TEST_ASSERT_EQUAL("redisson_lock_token:{shop}:name",
                    fill(fenced_mutex_kind, Operation::acquire, RequestForm::by_sha, "{shop}:name")[4]);
  TEST_ASSERT_EQUAL("redisson_lock__channel:{shop}:name",
                    fill(announced_mutex_kind, Operation::release, RequestForm::by_sha, "{shop}:name")[5]);
}

// A Mutex is held once; its compensation is a release by text.
TEST(test_what_no_mutex_sends_should_be_no_command) {
  for (const LockKind* const kind : kinds)
    for (const Operation operation : {Operation::step, Operation::compensate, Operation::query})
      TEST_ASSERT_EQUAL(0U, fill(*kind, operation, RequestForm::by_text).size());
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
