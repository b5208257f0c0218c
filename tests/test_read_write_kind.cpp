// SPDX-License-Identifier: MIT
//
// What the two sides of a read/write lock send, word by word, and what they take for an answer. The rules are those of
// proto/lock.md, quoted as [rule N].
#include "unity_style.hpp"

#include <string>

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/read_write_kind.hpp"
#include "kind_table.hpp"
#include "scripts.hpp"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const LockKind* const kinds[] = {&read_kind, &write_kind};

const Script& acquire_script(const LockKind& kind) {
  return &kind == &read_kind ? scripts::read_acquire : scripts::write_acquire;
}

// The last word of what a machine asks for.
std::string last_word_of(LockMachine& machine) {
  char space[1024];
  Request request;
  std::size_t size = 0;
  TEST_ASSERT_EQUAL(Status::ok, machine.poll_request({space, sizeof space}, request, size));
  const std::string bytes(space, size - 2);
  return bytes.substr(bytes.rfind('\n') + 1);
}

constexpr Instant at(Duration after) { return Instant() + after; }
Token token_of(const char* text) { return Token(ByteView(text)); }
void grant(LockMachine& machine, Instant now) {
  const Heard heard("+OK\r\n");
  machine.handle_reply({.tag = {.generation = machine.generation(), .operation = Operation::acquire},
                        .outcome = Status::ok,
                        .value = heard.value},
                       now);
  TEST_ASSERT_EQUAL(LockEvent::granted, machine.poll_event());
}

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- What is sent ------------------------------------------------------------------------------------------------

TEST(test_acquire_should_name_key_token_lease_and_the_partner_that_it_has_not) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::acquire, form);
      TEST_ASSERT_TRUE(script_words(acquire_script(*kind), form, {"1", "name", token_text, "10000", ""}) == filled);
    }
}

TEST(test_acquire_should_name_the_token_of_the_other_side_while_it_is_held) {
  for (const bool reads_first : {true, false}) {
    LockMachine first(reads_first ? read_kind : write_kind);
    LockMachine second(reads_first ? write_kind : read_kind);
    LockMachine::pair(first, second);
    const LockTiming timing = {.lease = 10s};
    TEST_ASSERT_EQUAL(Status::ok, first.configure(Key(ByteView("name")), timing));
    TEST_ASSERT_EQUAL(Status::ok, second.configure(Key(ByteView("name")), timing));
    TEST_ASSERT_EQUAL(Status::ok, first.acquire(token_of("one"), at(1s), at(2s)));
    TEST_ASSERT_EQUAL("", last_word_of(first));
    TEST_ASSERT_EQUAL(Status::ok, second.acquire(token_of("two"), at(1s), at(2s)));
    TEST_ASSERT_EQUAL("", last_word_of(second));  // Asked for, and not held yet.
    grant(first, at(1s));
    const Heard busy(":5000\r\n");
    const ReplyTag tag = {.generation = second.generation(), .operation = Operation::acquire};
    second.handle_reply({.tag = tag, .outcome = Status::ok, .value = busy.value}, at(1s));
    TEST_ASSERT_EQUAL(LockEvent::denied, second.poll_event());
    TEST_ASSERT_EQUAL(Status::ok, second.acquire(token_of("three"), at(2s), at(3s)));
    TEST_ASSERT_EQUAL("one", last_word_of(second));
  }
}

TEST(test_each_side_should_know_how_far_it_is_to_the_other) {
  LockMachine sides[2] = {LockMachine(read_kind), LockMachine(write_kind)};
  LockMachine::pair(sides[0], sides[1]);
  TEST_ASSERT_EQUAL(std::ptrdiff_t{sizeof(LockMachine)}, sides[0].partner_distance());
  TEST_ASSERT_EQUAL(-std::ptrdiff_t{sizeof(LockMachine)}, sides[1].partner_distance());
}

// The server may still have it, and this program has nothing of it any more.
TEST(test_acquire_should_not_name_a_hold_whose_time_is_over) {
  LockMachine reads(read_kind);
  LockMachine writes(write_kind);
  LockMachine::pair(reads, writes);
  TEST_ASSERT_EQUAL(Status::ok, reads.configure(Key(ByteView("name")), {.lease = 10s}));
  TEST_ASSERT_EQUAL(Status::ok, writes.configure(Key(ByteView("name")), {.lease = 10s}));
  TEST_ASSERT_EQUAL(Status::ok, reads.acquire(token_of("one"), at(1s), at(2s)));
  (void)last_word_of(reads);
  grant(reads, at(1s));
  TEST_ASSERT_EQUAL(Status::ok, writes.acquire(token_of("two"), at(12s), at(13s)));
  TEST_ASSERT_EQUAL("", last_word_of(writes));
}

TEST(test_renewal_should_name_key_token_and_lease) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::renew, form);
      TEST_ASSERT_TRUE(script_words(scripts::read_write_renew, form, {"1", "name", token_text, "10000"}) == filled);
    }
}

// [rule 17] The count travels as an absolute number.
TEST(test_step_should_name_key_token_count_and_lease) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::step, form);
      TEST_ASSERT_TRUE(script_words(scripts::read_write_step, form, {"1", "name", token_text, "7", "10000"}) == filled);
    }
}

TEST(test_release_should_name_key_token_and_the_channel_of_both_sides) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::release, form);
      TEST_ASSERT_TRUE(script_words(scripts::read_write_release, form,
                                    {"1", "name", token_text, "redisson_rwlock:{name}"}) == filled);
    }
  TEST_ASSERT_EQUAL("redisson_rwlock:{shop}:name",
                    fill(read_kind, Operation::release, RequestForm::by_sha, "{shop}:name").back());
}

// A compensation is a step or a release by text; a query is no kind's business.
TEST(test_what_neither_side_sends_should_be_no_command) {
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
  for (const LockKind* const kind : kinds)
    expect_only(*kind, Operation::acquire, with_remaining_time({{"+OK\r\n", Verdict::granted}}));
}

TEST(test_only_a_writer_should_be_told_that_its_own_side_reads) {
  const Heard upgrade("+UPGRADE\r\n");
  LockFacts facts;
  TEST_ASSERT_EQUAL(Verdict::unexpected, read_kind.decode(read_kind, Operation::acquire, upgrade.value, facts));
  TEST_ASSERT_EQUAL(Status::lock_busy, facts.refusal);
  TEST_ASSERT_EQUAL(Verdict::busy, write_kind.decode(write_kind, Operation::acquire, upgrade.value, facts));
  TEST_ASSERT_EQUAL(Status::upgrade_refused, facts.refusal);
  TEST_ASSERT_EQUAL(remaining_unknown, facts.remaining);
  for (const Operation operation : {Operation::renew, Operation::step, Operation::release})
    TEST_ASSERT_EQUAL(Verdict::unexpected, write_kind.decode(write_kind, operation, upgrade.value, facts));
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

TEST(test_what_neither_side_sends_should_have_no_answer) {
  for (const LockKind* const kind : kinds) {
    expect_only(*kind, Operation::compensate, {});
    expect_only(*kind, Operation::query, {});
  }
}

TEST(test_both_sides_should_say_what_they_are) {
  for (const LockKind* const kind : kinds) {
    TEST_ASSERT_TRUE(kind->reentrant && kind->announcement != nullptr && !kind->native_release && !kind->fenced);
    TEST_ASSERT_TRUE(kind->renew_batch == &scripts::read_write_renew);
    TEST_ASSERT_TRUE(kind->token == TokenSource::client_ordinal);
    TEST_ASSERT_TRUE(kind->tells_remaining);
  }
}

// A reader that goes lets one writer in, a writer all readers.
TEST(test_release_should_publish_what_waiters_listen_for) {
  const std::string release(scripts::read_write_release.text.string_view());
  for (const LockKind* const kind : kinds) {
    TEST_ASSERT_TRUE(release.find(std::string("'read', '") + kind->announcement->wakes_one + "'") != std::string::npos);
    TEST_ASSERT_TRUE(release.find(std::string("'write', '") + kind->announcement->wakes_all + "'") !=
                     std::string::npos);
    TEST_ASSERT_EQUAL("redisson_rwlock", std::string(kind->announcement->channel.string_view()));
  }
}

// ---- What a reader may ask for -----------------------------------------------------------------------------------

TEST(test_no_reader_should_have_a_lease_that_a_peers_renewal_would_cut) {
  const auto fits = [](const ReadWriteTiming& timing) {
    TEST_ASSERT_EQUAL(checked_timing(timing).read.valid(), checked_timing(timing).write.valid());
    return checked_timing(timing).read.valid();
  };
  TEST_ASSERT_TRUE(fits({}));
  TEST_ASSERT_TRUE(fits({.read = {.lease = read_lease_max}, .write = {.lease = lease_max}}));
  TEST_ASSERT_FALSE(fits({.read = {.lease = read_lease_max + 1ms}}));
  TEST_ASSERT_FALSE(fits({.read = {.lease = 60s, .kept = true}}));
  TEST_ASSERT_FALSE(fits({.read = {.lease = 5s, .drift = 5s}}));
  TEST_ASSERT_FALSE(fits({.write = {.lease = lease_max + 1ms}}));
  const ReadWriteTiming timing =
      checked_timing({.read = {.lease = 5s, .drift = 1s}, .write = {.lease = 60s, .kept = true}});
  TEST_ASSERT_TRUE(timing.read.lease == 5s && timing.read.drift == 1s && timing.write.lease == 60s &&
                   timing.write.kept);
}
