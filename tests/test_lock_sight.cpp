// SPDX-License-Identifier: MIT
//
// What a watcher takes for a lock, and what not.
#include "../src/cli/lock_sight.hpp"

#include "unity_style.hpp"

static void setUp() {}
static void tearDown() {}

using namespace holdfast;
using namespace holdfast::cli;

namespace {

const std::string token = "0123456789abcdef0123456789abcdef";
const std::string uuid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

KeyFacts string_of(const std::string& text, std::int64_t remaining = 30'000) {
  KeyFacts facts;
  facts.name = "key";
  facts.type = "string";
  facts.remaining = remaining;
  facts.size = text.size();
  facts.text = text;
  return facts;
}

KeyFacts hash_of(const std::vector<std::pair<std::string, std::string>>& fields, const std::string& mode = "",
                 std::int64_t remaining = 30'000) {
  KeyFacts facts;
  facts.name = "key";
  facts.type = "hash";
  facts.remaining = remaining;
  facts.size = fields.size() + (mode.empty() ? 0 : 1);
  facts.text = mode;
  facts.holders = fields;
  return facts;
}

bool looks_like_a_lock(const KeyFacts& facts) { return sight_of(facts, Chosen::by_shape).has_value(); }

}  // namespace

TEST(test_tokens_of_all_clients_should_look_like_locks) {
  // holdfast, redis-py and node-redlock; redsync; base64 without its end; a UUID.
  for (const char* const text :
       {"0123456789abcdef0123456789abcdef", "0123456789ABCDEF0123456789ABCDEF",
        "q3J2eXh4eHh4eHh4eHh4eA==", "q3J2eXh4eHh4eHh4eHh4eA", "1b4e28ba-2fa1-11d2-883f-0016d3cca427"}) {
    TEST_MESSAGE(text);
    const std::optional<LockSight> sight = sight_of(string_of(text), Chosen::by_shape);
    TEST_ASSERT_TRUE(sight);
    TEST_ASSERT_TRUE(sight->form == LockForm::mutex);
    TEST_ASSERT_EQUAL(std::string(text), sight->holders.at(0).id);
    TEST_ASSERT_TRUE(sight->holders.at(0).remaining == std::chrono::seconds(30));
  }
}

TEST(test_other_strings_should_be_locks_only_where_the_user_says_so) {
  for (const std::string& text : {std::string("hello"), std::string(), std::string("42"), token + "0", token.substr(1),
                                  std::string("0123456789abcdef0123456789abcdeg"), std::string(32, '\n'),
                                  std::string("q3J2eXh4eHh4eHh4eHh4eA=x"), std::string(36, '-')}) {
    TEST_MESSAGE(text);
    TEST_ASSERT_FALSE(looks_like_a_lock(string_of(text)));
    TEST_ASSERT_TRUE(sight_of(string_of(text), Chosen::by_pattern));
    TEST_ASSERT_TRUE(sight_of(string_of(text), Chosen::by_name)->form == LockForm::mutex);
  }
  // Only the beginning of it is known.
  KeyFacts long_one = string_of(token);
  long_one.size = 1'000'000;
  TEST_ASSERT_FALSE(looks_like_a_lock(long_one));
}

TEST(test_a_lock_without_a_ttl_should_have_no_end) {
  TEST_ASSERT_TRUE(sight_of(string_of(token, -1), Chosen::by_shape)->holders.at(0).remaining == Duration::max());
  TEST_ASSERT_TRUE(sight_of(hash_of({{uuid + ":1", "1"}}, "", -1), Chosen::by_shape)->holders.at(0).remaining ==
                   Duration::max());
}

TEST(test_a_remaining_time_of_any_size_should_be_no_negative_one) {
  for (const std::int64_t remaining : {INT64_MAX, std::int64_t{0}, std::int64_t{-3}, INT64_MIN}) {
    const std::optional<LockSight> sight = sight_of(string_of(token, remaining), Chosen::by_shape);
    TEST_ASSERT_TRUE(sight);
    TEST_ASSERT_TRUE(sight->holders.at(0).remaining >= Duration::zero());
  }
}

TEST(test_hashes_with_owner_fields_alone_should_look_like_locks) {
  const std::optional<LockSight> sight = sight_of(hash_of({{uuid + ":17", "3"}}), Chosen::by_shape);
  TEST_ASSERT_TRUE(sight->form == LockForm::reentrant);
  TEST_ASSERT_EQUAL(3U, sight->holders.at(0).count);
  TEST_ASSERT_TRUE(looks_like_a_lock(hash_of({{uuid + ":-17", "1"}})));  // It lingers.
  for (const char* const field : {"name", "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
                                  "1b4e28ba-2fa1-11d2-883f-0016d3cca427:", "1b4e28ba-2fa1-11d2-883f-0016d3cca427:-",
                                  "1b4e28ba-2fa1-11d2-883f-0016d3cca427:x"})
    TEST_ASSERT_FALSE(looks_like_a_lock(hash_of({{field, "1"}})));
  TEST_ASSERT_FALSE(looks_like_a_lock(hash_of({{uuid + ":1", "many"}})));
  TEST_ASSERT_FALSE(looks_like_a_lock(hash_of({{uuid + ":1", "1"}, {"name", "1"}})));
  TEST_ASSERT_FALSE(looks_like_a_lock(hash_of({})));
  TEST_ASSERT_TRUE(sight_of(hash_of({{"name", "x"}}), Chosen::by_name)->form == LockForm::reentrant);
}

TEST(test_a_read_write_lock_should_be_told_by_its_mode) {
  const std::optional<LockSight> read =
      sight_of(hash_of({{uuid + ":1", "1"}, {uuid + ":2", "1"}}, "read"), Chosen::by_shape);
  TEST_ASSERT_TRUE(read->form == LockForm::read);
  TEST_ASSERT_EQUAL(2U, read->owners);
  const std::optional<LockSight> write = sight_of(hash_of({{uuid + ":1:write", "1"}}, "write"), Chosen::by_shape);
  TEST_ASSERT_TRUE(write->form == LockForm::write);
  TEST_ASSERT_EQUAL(uuid + ":1", write->holders.at(0).id);
  TEST_ASSERT_FALSE(looks_like_a_lock(hash_of({{uuid + ":1", "1"}}, "dark")));
  TEST_ASSERT_TRUE(sight_of(hash_of({{uuid + ":1", "1"}}, "dark"), Chosen::by_name)->form == LockForm::other);
}

TEST(test_a_number_with_taken_permits_should_be_a_semaphore) {
  KeyFacts facts = string_of("3", -1);
  facts.taken = 2;
  facts.holders = {{token, "1500"}, {token, "no number"}};
  const std::optional<LockSight> sight = sight_of(facts, Chosen::by_shape);
  TEST_ASSERT_TRUE(sight->form == LockForm::semaphore);
  TEST_ASSERT_EQUAL(5U, sight->permits);
  TEST_ASSERT_TRUE(sight->holders.at(0).remaining == std::chrono::milliseconds(1500));
  // More are taken than there are.
  facts.size = 2;
  facts.text = "-1";
  TEST_ASSERT_EQUAL(1U, sight_of(facts, Chosen::by_shape)->permits);
  facts.text = "-9";
  TEST_ASSERT_EQUAL(0U, sight_of(facts, Chosen::by_shape)->permits);
}

TEST(test_a_counter_should_be_no_lock_unless_it_is_named) {
  TEST_ASSERT_FALSE(sight_of(string_of("7", -1), Chosen::by_pattern));
  const std::optional<LockSight> named = sight_of(string_of("7", -1), Chosen::by_name);
  TEST_ASSERT_TRUE(named->form == LockForm::semaphore);
  TEST_ASSERT_EQUAL(0U, named->owners);
}

TEST(test_what_stands_beside_locks_should_be_none_unless_it_is_named) {
  for (const char* const name : {"redisson_lock_token:{a}", "holdfast_fence:{a}", "{a}:x:rwlock_timeout:1"}) {
    KeyFacts facts = string_of(token);
    facts.name = name;
    TEST_ASSERT_FALSE(sight_of(facts, Chosen::by_pattern));
    TEST_ASSERT_TRUE(sight_of(facts, Chosen::by_name));
  }
}

TEST(test_other_types_should_be_no_lock_and_be_told_of_where_they_are_named) {
  KeyFacts facts;
  facts.name = "key";
  facts.remaining = -1;
  for (const char* const type : {"list", "set", "zset", "stream", "ReJSON-RL", ""}) {
    facts.type = type;
    TEST_ASSERT_FALSE(looks_like_a_lock(facts));
    TEST_ASSERT_FALSE(sight_of(facts, Chosen::by_pattern));
    TEST_ASSERT_TRUE(sight_of(facts, Chosen::by_name)->form == LockForm::other);
  }
  facts.type = "none";
  TEST_ASSERT_TRUE(sight_of(facts, Chosen::by_name)->form == LockForm::free);
}

TEST(test_names_beyond_the_limit_of_keys_should_be_no_locks) {
  KeyFacts facts = string_of(token);
  facts.name = std::string(257, 'a');
  TEST_ASSERT_FALSE(sight_of(facts, Chosen::by_name));
  facts.name.clear();
  TEST_ASSERT_FALSE(sight_of(facts, Chosen::by_name));
}

TEST(test_a_holder_should_be_shown_short_and_printable) {
  TEST_ASSERT_EQUAL(std::string("01234567.."), short_holder(token));
  TEST_ASSERT_EQUAL(std::string("1b4e28ba..:17"), short_holder(uuid + ":17"));
  TEST_ASSERT_EQUAL(std::string("a\\x0ab"), short_holder("a\nb"));
  TEST_ASSERT_EQUAL(24U, short_holder(std::string(100, '\x01')).size());
  TEST_ASSERT_EQUAL(uuid, client_of(uuid + ":17"));
  TEST_ASSERT_EQUAL(token, client_of(token));
}
