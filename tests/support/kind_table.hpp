// SPDX-License-Identifier: MIT
//
// What tests of lock kinds share: a command word by word, and a table of replies of which a kind lists a few and takes no
// other.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "heard.hpp"
#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "printers.hpp"
#include "unity_style.hpp"
#include "written_line.hpp"

namespace holdfast::testing {

inline const std::string token_text(32, 'a');
inline constexpr char key_text[] = "name";

// What a kind's fill() writes, word by word, without a machine: of a compensation, which may come after it.
inline Words fill_alone(const LockKind& kind, Operation operation, RequestForm form, const std::string& key = key_text,
                        const LockMachine* machine = nullptr) {
  const Token token{ByteView(token_text)};
  WrittenLine line;
  kind.fill(
      line, kind, operation, form,
      {.key = Key(ByteView(key)), .token = &token, .lease = std::chrono::seconds(10), .count = 7, .machine = machine});
  return line.words();
}
// The same with one.
inline Words fill(const LockKind& kind, Operation operation, RequestForm form, const std::string& key = key_text) {
  const LockMachine machine(kind);
  return fill_alone(kind, operation, form, key, &machine);
}
inline Words script_words(const Script& script, RequestForm form, const Words& rest) {
  Words words = {form == RequestForm::by_text ? "EVAL" : "EVALSHA",
                 std::string((form == RequestForm::by_text ? script.text : script.sha.bytes()).string_view())};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

// Every kind of reply, and odd values of each. What a kind lists for an operation is skipped by its test.
inline const char* const replies[] = {
    "+OK\r\n",
    "+ok\r\n",
    "+OKAY\r\n",
    "+\r\n",
    "+QUEUED\r\n",
    "+1\r\n",
    "-ERR no\r\n",
    "-OK\r\n",
    ":0\r\n",
    ":1\r\n",
    ":2\r\n",
    ":-1\r\n",
    ":-2\r\n",
    ":30000\r\n",
    ":9223372036854775807\r\n",
    ":-9223372036854775808\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "$0\r\n\r\n",
    "$1\r\n0\r\n",
    "$1\r\n1\r\n",
    "$2\r\nOK\r\n",
    "$2\r\n-1\r\n",
    "$2\r\n+1\r\n",
    "$2\r\n 1\r\n",
    "$2\r\n1 \r\n",
    "$3\r\n007\r\n",
    "$3\r\n1e3\r\n",
    "$3\r\n1.5\r\n",
    "$19\r\n9223372036854775807\r\n",
    "$19\r\n9223372036854775808\r\n",
    "$20\r\n18446744073709551616\r\n",
    "$20\r\n00000000000000000001\r\n",
    "$21\r\n111111111111111111111\r\n",
    "*0\r\n",
    "*1\r\n:0\r\n",
    "*1\r\n:1\r\n",
    "*1\r\n:-1\r\n",
    "*1\r\n:2\r\n",
    "*1\r\n$-1\r\n",
    "*1\r\n+OK\r\n",
    "*1\r\n$1\r\n1\r\n",
    "*1\r\n*1\r\n:1\r\n",
    "*2\r\n:1\r\n:1\r\n",
    "*2\r\n:1\r\n:0\r\n",
    "*2\r\n:-1\r\n:-1\r\n",
    "*2\r\n:-1\r\n:2\r\n",
    "*2\r\n:-2\r\n:1\r\n",
    "*2\r\n:30000\r\n:8\r\n",
    "*2\r\n:30000\r\n:9\r\n",
    "*2\r\n$1\r\n1\r\n:1\r\n",
    "*2\r\n:1\r\n$1\r\n1\r\n",
    "*3\r\n:1\r\n:1\r\n:1\r\n",
};

// What a kind lists: a reply and what it means. Every other reply must be unexpected, and say nothing else.
struct Listed {
  const char* reply;
  Verdict verdict;
  std::int64_t remaining = remaining_unknown;
  std::uint64_t fence = 0;
};
inline void expect_only(const LockKind& kind, Operation operation, const std::vector<Listed>& listed) {
  std::size_t met = 0;
  for (const char* const reply : replies) {
    TEST_MESSAGE(kind.name << ", operation " << static_cast<int>(operation) << ": " << reply);
    Listed expected = {reply, Verdict::unexpected};
    for (const Listed& it : listed) {
      if (std::string(it.reply) != reply) continue;
      expected = it;
      ++met;
    }
    const Heard heard(reply);
    LockFacts facts;
    TEST_ASSERT_TRUE(expected.verdict == kind.decode(kind, operation, heard.value, facts));
    TEST_ASSERT_EQUAL(expected.remaining, facts.remaining);
    TEST_ASSERT_EQUAL(expected.fence, facts.fence);
  }
  TEST_ASSERT_EQUAL(listed.size(), met);
}
inline const std::vector<Listed> yes_or_no = {{":1\r\n", Verdict::granted}, {":0\r\n", Verdict::not_ours}};
inline const std::vector<Listed> remaining_time = {
    {":0\r\n", Verdict::busy, 0},         {":1\r\n", Verdict::busy, 1},
    {":2\r\n", Verdict::busy, 2},         {":-1\r\n", Verdict::busy, -1},
    {":30000\r\n", Verdict::busy, 30000}, {":9223372036854775807\r\n", Verdict::busy, INT64_MAX}};
inline std::vector<Listed> with_remaining_time(std::vector<Listed> grants) {
  grants.insert(grants.end(), remaining_time.begin(), remaining_time.end());
  return grants;
}
inline const std::vector<Listed> fences = {
    {"$1\r\n1\r\n", Verdict::granted, remaining_unknown, 1},
    {"$19\r\n9223372036854775807\r\n", Verdict::granted, remaining_unknown, INT64_MAX}};

// Drivers go by what a kind says of itself: it is what its replies and its release do.
inline void expect_to_do_what_it_says(const LockKind& kind, const std::string& key = key_text) {
  TEST_MESSAGE(kind.name);
  bool refuses = false;
  for (const char* const reply : replies) {
    const Heard heard(reply);
    LockFacts facts;
    if (kind.decode(kind, Operation::acquire, heard.value, facts) != Verdict::busy) continue;
    refuses = true;
    TEST_ASSERT_EQUAL(kind.tells_remaining, facts.remaining != remaining_unknown);
  }
  TEST_ASSERT_TRUE(refuses);
  const std::string release = fill(kind, Operation::release, RequestForm::by_text, key).at(1);
  const std::size_t publish = release.find("'PUBLISH'");
  TEST_ASSERT_EQUAL(kind.announcement != nullptr, publish != std::string::npos);
  if (kind.announcement == nullptr) return;
  if (kind.announcement->addressed) return;  // Its payload is a token; this one wakes waiters of other kinds as well.
  const std::string published = release.substr(publish, release.find('\n', publish) - publish);
  const std::string one = std::string(1, '\'') + kind.announcement->wakes_one + '\'';
  const std::string payload = ", " + (kind.announcement->counts ? "free" : one) + ")";
  TEST_ASSERT_TRUE(published.size() > payload.size());
  TEST_ASSERT_EQUAL(payload, published.substr(published.size() - payload.size()));
}

inline const RequestForm script_forms[] = {RequestForm::by_sha, RequestForm::by_text};

}  // namespace holdfast::testing
