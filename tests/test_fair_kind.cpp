// SPDX-License-Identifier: MIT
//
// What a fair lock sends, word by word, and what it takes for an answer; and how its machine keeps a place in the queue. The
// rules are those of proto/lock.md, quoted as [rule N].
#include "unity_style.hpp"

#include <string>

#include "holdfast/core/fair_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "kind_table.hpp"
#include "lock_desk.hpp"
#include "scripts.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr const LockKind* kinds[] = {&fair_kind, &fair_fenced_kind, &fair_lingering_kind, &fair_lingering_fenced_kind};
constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);

// The server put it into the queue.
void refuse(Desk& desk, Instant now, char digit) {
  desk.acquire(now, digit);
  const Heard busy(":900\r\n");
  desk.answer(busy.value, now + 1ms);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_EQUAL(std::int64_t{900}, desk.machine.busy_for());
}

}  // namespace

// ---- What is sent ------------------------------------------------------------------------------------------------

TEST(test_acquire_should_name_key_token_lease_and_whether_it_waits_and_wants_a_fence) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const char* const fence = kind->fenced ? "1" : "0";
      const Words filled = fill(*kind, Operation::acquire, form);
      TEST_ASSERT_TRUE(script_words(scripts::fair_acquire, form, {"1", "name", token_text, "10000", "0", fence}) ==
                       filled);
      TEST_ASSERT_TRUE(filled == fill_alone(*kind, Operation::acquire, form));
      LockMachine machine(*kind);
      machine.join_queue();
      const Token token{ByteView(token_text)};
      WrittenLine line;
      kind->fill(line, *kind, Operation::acquire, form,
                 {.key = Key(ByteView("name")), .token = &token, .lease = 10s, .machine = &machine});
      TEST_ASSERT_TRUE(script_words(scripts::fair_acquire, form, {"1", "name", token_text, "10000", "1", fence}) ==
                       line.words());
    }
}

TEST(test_what_is_held_should_be_renewed_and_stepped_as_of_the_reentrant_kinds) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms)
      for (const Operation operation : {Operation::renew, Operation::step})
        TEST_ASSERT_TRUE(fill(reentrant_kind, operation, form) == fill(*kind, operation, form));
}

TEST(test_release_should_name_key_and_token) {
  for (const LockKind* const kind : kinds)
    for (const RequestForm form : script_forms) {
      const Words filled = fill(*kind, Operation::release, form);
      TEST_ASSERT_TRUE(script_words(scripts::fair_release, form, {"1", "name", token_text}) == filled);
    }
}

TEST(test_every_command_of_the_longest_key_should_fit_into_a_send_buffer) {
  const std::string key(key_size_max, 'k');
  const Token token{ByteView(std::string(token_size_max, 'a'))};
  LockMachine machine(fair_fenced_kind);
  machine.join_queue();
  for (const Operation operation : {Operation::acquire, Operation::renew, Operation::step, Operation::release}) {
    WrittenLine line;
    fair_fenced_kind.fill(line, fair_fenced_kind, operation, RequestForm::by_text,
                          {.key = Key(ByteView(key)),
                           .token = &token,
                           .lease = std::chrono::duration_cast<std::chrono::milliseconds>(lease_max),
                           .count = count_max,
                           .machine = &machine});
    TEST_ASSERT_EQUAL(Status::ok, line.finish());
  }
}

// ---- What is taken for an answer ---------------------------------------------------------------------------------

// [rule 11] Default-deny.
TEST(test_acquire_should_take_ok_or_a_fence_for_a_grant_and_a_time_for_busy) {
  expect_only(fair_kind, Operation::acquire, with_remaining_time({{"+OK\r\n", Verdict::granted}}));
}

TEST(test_acquire_with_a_fence_should_take_what_a_fenced_lock_takes) {
  for (const char* const reply : replies) {
    const Heard heard(reply);
    LockFacts ours;
    LockFacts theirs;
    TEST_ASSERT_EQUAL(fenced_kind.decode(fenced_kind, Operation::acquire, heard.value, theirs),
                      fair_fenced_kind.decode(fair_fenced_kind, Operation::acquire, heard.value, ours));
    TEST_ASSERT_EQUAL(theirs.fence, ours.fence);
    TEST_ASSERT_EQUAL(theirs.remaining, ours.remaining);
  }
}

TEST(test_renewal_step_and_release_should_take_what_the_reentrant_kinds_take) {
  for (const char* const reply : replies)
    for (const Operation operation : {Operation::renew, Operation::step, Operation::release, Operation::query}) {
      const Heard heard(reply);
      LockFacts facts;
      TEST_ASSERT_EQUAL(reentrant_kind.decode(reentrant_kind, operation, heard.value, facts),
                        fair_kind.decode(fair_kind, operation, heard.value, facts));
    }
}

TEST(test_a_fair_lock_should_say_what_it_is) {
  for (const LockKind* const kind : kinds) {
    TEST_ASSERT_TRUE(kind->reentrant && !kind->native_release && kind->tells_remaining && kind->queues);
    TEST_ASSERT_TRUE(kind->renew_batch == &scripts::reentrant_renew);
    TEST_ASSERT_TRUE(kind->token == (kind->lingers ? TokenSource::negative_ordinal : TokenSource::client_ordinal));
    TEST_ASSERT_TRUE(kind->announcement->addressed);
    TEST_ASSERT_TRUE(kind == &kind_of(FairOptions{.fence = kind->fenced, .linger = kind->lingers ? 1s : linger_off}));
    expect_to_do_what_it_says(*kind);
  }
}

TEST(test_options_should_let_a_hold_stay_within_the_limits_or_not_at_all) {
  for (const Duration linger : {linger_off, linger_min, linger_max}) {
    TEST_ASSERT_TRUE(FairOptions{.linger = linger}.valid());
    TEST_ASSERT_EQUAL(linger != linger_off, FairOptions{.linger = linger}.lingers());
  }
  for (const Duration linger : {-1ns, 1ns, linger_min - 1ns, linger_max + 1ns})
    TEST_ASSERT_FALSE(FairOptions{.linger = linger}.valid());
}

// The scripts work the channel out.
TEST(test_who_is_given_the_lock_should_be_told_over_the_channel_that_its_client_listens_to) {
  const std::string publish = "'PUBLISH', '" + std::string(fair_kind.announcement->channel.string_view()) + ":{' .. ";
  for (const auto& [script, who] : {std::pair{&scripts::fair_acquire, "top"}, {&scripts::fair_release, "head"}}) {
    const std::string_view text = script->text.string_view();
    TEST_ASSERT_TRUE(text.find(publish + who + ":match('[^:]*') .. '}', " + who + ")") != std::string_view::npos);
  }
}

// ---- A place in the queue ----------------------------------------------------------------------------------------

TEST(test_who_was_refused_should_ask_again_by_the_same_token) {
  for (const LockKind* const kind : kinds) {
    Desk desk(*kind);
    desk.machine.join_queue();
    refuse(desk, start, 'a');
    refuse(desk, start + 1s, 'b');
    TEST_ASSERT_EQUAL(Desk::token('a').bytes(), desk.machine.token().bytes());
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Desk::token('c'), start + 2s, start + 3s));
    TEST_ASSERT_TRUE(desk.take_request());
    desk.fail(Status::loading, true, start + 2s);  // Nothing ran: the place is still there.
    TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Desk::token('d'), start + 3s, start + 4s));
    TEST_ASSERT_EQUAL(Desk::token('a').bytes(), desk.machine.token().bytes());
  }
}

// In a slot on the move a script may miss a key in its middle. It has given nothing, and the next one asks for the same place.
TEST(test_who_meets_a_slot_on_the_move_should_keep_its_place) {
  Desk desk(fair_kind);
  desk.machine.join_queue();
  refuse(desk, start, 'a');
  desk.acquire(start + 1s, 'b');
  desk.fail(Status::try_again, false, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_FALSE(desk.compensation());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Desk::token('c'), start + 2s, start + 3s));
  TEST_ASSERT_EQUAL(Desk::token('a').bytes(), desk.machine.token().bytes());
}

// What takes the lost attempt back takes that token out of the queue.
TEST(test_after_a_lost_reply_the_token_should_be_another_one) {
  Desk desk(fair_kind);
  desk.machine.join_queue();
  refuse(desk, start, 'a');
  desk.acquire(start + 1s, 'b');
  desk.fail(Status::timed_out, false, start + 2s);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_FALSE(desk.machine.leave_queue());  // The session compensates it.
  desk.machine.join_queue();
  desk.acquire(start + 3s, 'c');
  TEST_ASSERT_EQUAL(Desk::token('c').bytes(), desk.machine.token().bytes());
}

TEST(test_who_gives_up_should_leave_the_queue_by_one_compensation) {
  Desk desk(fair_kind);
  desk.machine.join_queue();
  refuse(desk, start, 'a');
  TEST_ASSERT_TRUE(desk.machine.leave_queue());
  Token token;
  TEST_ASSERT_TRUE(desk.compensation(&token));
  TEST_ASSERT_EQUAL(Desk::token('a').bytes(), token.bytes());
  TEST_ASSERT_EQUAL(0U, desk.compensated_count);
  TEST_ASSERT_FALSE(desk.machine.leave_queue());
  TEST_ASSERT_FALSE(desk.compensation());
  refuse(desk, start + 1s, 'b');  // Which does not wait.
  TEST_ASSERT_EQUAL(Desk::token('b').bytes(), desk.machine.token().bytes());
  TEST_ASSERT_FALSE(desk.machine.leave_queue());
}

TEST(test_who_was_granted_should_have_no_queue_to_leave) {
  Desk desk(fair_kind);
  desk.machine.join_queue();
  refuse(desk, start, 'a');
  desk.acquire(start + 1s, 'b');
  desk.answer(Heard("+OK\r\n").value, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
  TEST_ASSERT_EQUAL(Desk::token('a').bytes(), desk.machine.token().bytes());
  TEST_ASSERT_EQUAL(start + 1s + desk.machine.validity(), desk.machine.valid_until());  // [rule 1]
  TEST_ASSERT_FALSE(desk.machine.leave_queue());
  TEST_ASSERT_FALSE(desk.machine.has_output());
}

TEST(test_a_forked_child_should_not_wait_by_its_parents_token) {
  Desk desk(fair_kind);
  desk.machine.join_queue();
  refuse(desk, start, 'a');
  desk.machine.forget();
  TEST_ASSERT_FALSE(desk.machine.leave_queue());
  desk.acquire(start + 1s, 'b');
  TEST_ASSERT_EQUAL(Desk::token('b').bytes(), desk.machine.token().bytes());
}

TEST(test_another_kind_should_have_a_fresh_token_for_every_attempt) {
  Desk desk(reentrant_kind);
  refuse(desk, start, 'a');
  refuse(desk, start + 1s, 'b');
  TEST_ASSERT_EQUAL(Desk::token('b').bytes(), desk.machine.token().bytes());
}

// What is taken back goes as a step or a release, and what is left is told with each refusal.
TEST(test_what_a_fair_lock_has_no_request_for_should_write_nothing) {
  for (const Operation operation : {Operation::compensate, Operation::query})
    TEST_ASSERT_TRUE(fill(fair_kind, operation, RequestForm::by_text).empty());
}
