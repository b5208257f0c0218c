// SPDX-License-Identifier: MIT
//
// One call's life: what is asked of the driver, until when, and how it ends.
#include "holdfast/core/lock_task.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include "printers.hpp"
#include "recorder.hpp"
#include "task_transitions.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
constexpr TaskSettings settings = {.request_timeout = 1s, .max_poll = 10s};
constexpr std::uint16_t middle = UINT16_MAX / 2;

// A driver without a server: what it sees, and what it was told to do.
struct Desk {
  LockTask task;
  TaskFacts facts;

  Desk() { facts.now = start; }
  void acquire(Duration wait) { task.begin_acquire(start, start + wait, start + wait + 1s, settings); }
  void renew(Duration timeout) {
    hold();
    task.begin(Call::renew, start + timeout, settings);
  }
  void release() {
    hold();
    task.begin(Call::release, start + 1s, settings);
  }
  void hold() {
    facts.held = true;
    facts.valid_until = start + 30s;
  }
  TaskAct step() {
    const TaskAct act = task.step(facts);
    TEST_ASSERT_TRUE(task.invariants());
    return act;
  }
  void pass(Duration time) { facts.now = facts.now + time; }
  // The machine takes the command, and answers.
  void answer(Status status) {
    TEST_ASSERT_EQUAL(TaskAct::ask, step());
    task.handle_asked(Status::ok);
    facts.waiting = true;
    TEST_ASSERT_EQUAL(TaskAct::sleep, step());
    facts.waiting = false;
    facts.answer = status;
  }
  void expect_over(Status status) {
    TEST_ASSERT_EQUAL(TaskAct::over, step());
    TEST_ASSERT_TRUE(task.over());
    TEST_ASSERT_EQUAL(status, task.status());
  }
  void plan(std::int64_t remaining = remaining_unknown, bool alone = false) {
    TEST_ASSERT_EQUAL(TaskAct::listen, step());
    task.plan(facts.now, facts.confirmed, remaining, alone, middle);
  }
  [[nodiscard]] Instant timeout() const { return task.poll_timeout(facts.woken, facts.confirmed); }
};

}  // namespace

TEST(test_acquire_should_ask_and_be_kept_once_it_is_granted) {
  Desk desk;
  desk.acquire(0s);
  desk.answer(Status::ok);
  TEST_ASSERT_EQUAL(TaskAct::keep, desk.step());
  desk.task.handle_kept(Status::ok);
  desk.expect_over(Status::ok);
}

TEST(test_a_grant_that_nobody_need_keep_should_end_the_call_at_once) {
  Desk desk;
  desk.facts.kept = true;
  desk.acquire(0s);
  desk.answer(Status::ok);
  desk.expect_over(Status::ok);
}

TEST(test_acquire_that_may_not_wait_should_end_with_its_only_attempt) {
  Desk desk;
  desk.acquire(0s);
  desk.answer(Status::lock_busy);
  desk.expect_over(Status::lock_busy);
}

TEST(test_acquire_should_wait_for_a_connection_until_its_end) {
  Desk desk;
  desk.facts.link = Link::coming;
  desk.acquire(0s);
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(start + 1s, desk.timeout());
  desk.pass(1s);
  desk.facts.link_failure = Status::connect_failed;
  desk.expect_over(Status::connect_failed);
}

TEST(test_an_attempt_should_wait_no_longer_for_a_connection_than_it_is_told) {
  Desk desk;
  desk.facts.link = Link::coming;
  TaskSettings impatient = settings;
  impatient.connect_timeout = 100ms;
  desk.task.begin_acquire(start, start + 10s, start + 11s, impatient);
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(start + 100ms, desk.timeout());
  desk.pass(100ms);
  desk.plan();
  TEST_ASSERT_FALSE(desk.task.busy());
}

TEST(test_acquire_should_wait_for_room_and_say_so_when_there_is_none) {
  Desk desk;
  desk.facts.room = false;
  desk.acquire(0s);
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(TaskStage::room, desk.task.stage());
  desk.pass(1s);
  desk.expect_over(Status::too_many_requests);
}

TEST(test_who_waited_for_room_long_enough_should_ask_without_where_that_is_allowed) {
  Desk desk;
  desk.facts.room = false;
  TaskSettings several = settings;
  several.room_timeout = 50ms;
  several.one_node = false;
  desk.task.begin_acquire(start, start + 10s, start + 11s, several);
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(start + 50ms, desk.timeout());
  desk.pass(50ms);
  TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
}

// The time that the call has left when it begins to wait for room, and not when it began.
TEST(test_who_waits_for_room_on_one_of_several_should_have_half_of_the_time_left_for_the_others) {
  TaskSettings several = settings;
  several.room_timeout = 5s;
  several.one_node = false;
  for (const Call call : {Call::acquire, Call::renew, Call::release}) {
    Desk desk;
    desk.facts.room = false;
    desk.facts.held = true;
    desk.facts.valid_until = start + 10s;
    desk.facts.link = Link::coming;
    if (call == Call::acquire)
      desk.task.begin_acquire(start, start, start + 1s, several);
    else
      desk.task.begin(call, start + 1s, several);
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
    desk.pass(400ms);
    desk.facts.link = Link::ready;
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
    TEST_ASSERT_EQUAL(start + 700ms, desk.timeout());
    desk.pass(300ms);
    TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
  }
}

TEST(test_who_waits_for_room_should_go_back_to_the_connection_that_was_lost) {
  Desk desk;
  desk.facts.room = false;
  desk.acquire(10s);
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  desk.facts.link = Link::coming;
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(TaskStage::link, desk.task.stage());
}

TEST(test_a_busy_lock_should_be_tried_again_when_a_message_comes) {
  Desk desk;
  desk.acquire(100s);
  desk.answer(Status::lock_busy);
  desk.plan();
  TEST_ASSERT_TRUE(desk.task.busy());
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  desk.facts.listening = true;
  desk.facts.woken = true;
  desk.pass(retry_delay_min);
  TEST_ASSERT_EQUAL(TaskAct::attempt, desk.step());
  TEST_ASSERT_TRUE(desk.task.was_woken());
  desk.facts.woken = false;
  desk.answer(Status::ok);
}

// As after a change of what is listened for.
TEST(test_a_subscription_that_was_forgotten_should_be_worth_a_try_like_a_new_one) {
  Desk desk;
  desk.facts.confirmed = 1;
  desk.acquire(60s);
  desk.answer(Status::lock_busy);
  desk.plan();
  TEST_ASSERT_EQUAL(start + 10s, desk.timeout());
  desk.task.forget(2);
  TEST_ASSERT_EQUAL(start + 10s, desk.timeout());
  desk.task.forget(1);
  TEST_ASSERT_EQUAL(start + retry_delay_min, desk.timeout());
}

TEST(test_who_asks_nobody_or_waits_for_its_own_machine_should_have_no_timer) {
  Desk desk;
  TEST_ASSERT_EQUAL(Instant::max(), desk.timeout());
  desk.acquire(1s);
  TEST_ASSERT_EQUAL(Instant::max(), desk.timeout());
  TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
  TEST_ASSERT_EQUAL(Instant::max(), desk.timeout());
}

TEST(test_the_last_attempt_should_be_made_at_the_deadline) {
  Desk desk;
  desk.acquire(1s);
  for (int attempts = 0; attempts < 1000; ++attempts) {
    desk.answer(Status::lock_busy);
    if (desk.facts.now >= start + 1s) return desk.expect_over(Status::lock_busy);
    desk.plan();
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
    TEST_ASSERT_TRUE(desk.timeout() <= start + 1s);
    desk.facts.now = desk.timeout();
  }
  TEST_ASSERT_TRUE(desk.task.over());
}

TEST(test_an_outcome_that_waiting_cannot_mend_should_end_the_call) {
  Desk desk;
  desk.acquire(100s);
  desk.answer(Status::wrong_type);
  desk.expect_over(Status::wrong_type);
}

TEST(test_nobody_should_be_waited_for_after_the_client_was_closed) {
  Desk desk;
  desk.acquire(100s);
  desk.answer(Status::lock_busy);
  desk.plan();
  desk.facts.link = Link::gone;
  desk.expect_over(Status::lock_busy);
}

TEST(test_what_had_not_left_should_be_asked_once_more_and_no_more) {
  Desk desk;
  desk.acquire(0s);
  desk.answer(Status::not_connected);
  desk.facts.link = Link::coming;
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(TaskStage::link, desk.task.stage());
  desk.facts.link = Link::ready;
  desk.answer(Status::not_connected);
  desk.expect_over(Status::not_connected);
}

TEST(test_a_question_that_was_not_heard_should_be_asked_once_more_and_no_more) {
  Desk desk;
  desk.task.begin(Call::question, start + 1s, settings);
  desk.answer(Status::not_connected);  // As of one whose slot is at another server of a cluster.
  desk.answer(Status::not_connected);
  desk.expect_over(Status::not_connected);
}

TEST(test_a_question_that_is_asked_once_more_should_be_over_by_the_first_deadline) {
  Desk desk;
  desk.task.begin(Call::question, start + 1s, settings);
  desk.answer(Status::not_connected);
  desk.pass(900ms);
  TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
  desk.task.handle_asked(Status::ok);
  desk.facts.waiting = true;
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(start + 1s, desk.timeout());
  desk.pass(100ms);
  TEST_ASSERT_EQUAL(TaskAct::give_up, desk.step());
  desk.expect_over(Status::timed_out);
  // Nor is it asked once more when that has passed.
  Desk late;
  late.task.begin(Call::question, start + 1s, settings);
  late.answer(Status::not_connected);
  late.pass(1s);
  late.expect_over(Status::not_connected);
}

TEST(test_what_found_no_room_behind_a_reply_should_be_asked_once_more_and_no_more) {
  Desk desk;
  desk.acquire(0s);
  desk.answer(Status::too_many_requests);
  desk.answer(Status::too_many_requests);
  desk.expect_over(Status::too_many_requests);
}

TEST(test_a_lost_reply_should_not_be_asked_again) {
  Desk desk;
  desk.renew(1s);
  desk.answer(Status::transport_closed);
  desk.expect_over(Status::transport_closed);
}

TEST(test_a_hold_without_a_keeper_should_be_another_reason_to_wait) {
  Desk desk;
  desk.acquire(100s);
  desk.answer(Status::ok);
  TEST_ASSERT_EQUAL(TaskAct::keep, desk.step());
  desk.task.handle_kept(Status::too_many_requests);
  desk.plan();
  TEST_ASSERT_FALSE(desk.task.busy());
}

// Whatever the keeper says: the grant was answered, and was let go of. It is no request that had not left.
TEST(test_what_its_keeper_refused_should_not_be_asked_again_at_once) {
  for (const Status refusal : {Status::not_connected, Status::too_many_requests}) {
    Desk desk;
    desk.acquire(0s);
    desk.answer(Status::ok);
    TEST_ASSERT_EQUAL(TaskAct::keep, desk.step());
    desk.task.handle_kept(refusal);
    desk.expect_over(refusal);
  }
}

TEST(test_renewal_should_not_wait_longer_than_its_hold_lasts) {
  Desk desk;
  desk.facts.link = Link::coming;
  desk.renew(1000s);
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(start + 30s, desk.timeout());
  desk.pass(30s);
  desk.facts.held = false;
  TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());  // The machine says that it is lost.
  desk.task.handle_asked(Status::lock_lost);
  desk.expect_over(Status::lock_lost);
}

TEST(test_release_should_be_asked_for_without_a_connection_when_there_is_none) {
  Desk desk;
  desk.facts.link = Link::absent;
  desk.release();
  TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
}

TEST(test_release_should_wait_for_the_word_of_its_compensation) {
  for (const bool deleted : {true, false}) {
    Desk desk;
    desk.release();
    desk.answer(Status::transport_closed);
    desk.facts.released = true;
    desk.facts.link = Link::coming;
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
    TEST_ASSERT_EQUAL(TaskStage::compensation, desk.task.stage());
    TEST_ASSERT_EQUAL(start + 1s, desk.timeout());
    desk.task.handle_compensated(deleted);
    desk.expect_over(deleted ? Status::ok : Status::transport_closed);
  }
}

TEST(test_release_should_not_wait_for_a_server_that_cannot_be_reached) {
  Desk desk;
  desk.release();
  desk.answer(Status::transport_closed);
  desk.facts.released = true;
  desk.facts.link = Link::absent;
  desk.expect_over(Status::transport_closed);
}

TEST(test_a_cancelled_wait_should_end_at_once) {
  Desk desk;
  desk.acquire(100s);
  desk.answer(Status::lock_busy);
  desk.plan();
  desk.facts.cancelled = true;
  desk.expect_over(Status::cancelled);
}

TEST(test_a_cancelled_acquire_should_give_up_its_answer) {
  Desk desk;
  desk.acquire(100s);
  TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
  desk.task.handle_asked(Status::ok);
  desk.facts.waiting = true;
  desk.facts.cancelled = true;
  TEST_ASSERT_EQUAL(TaskAct::give_up, desk.step());
  TEST_ASSERT_EQUAL(Status::cancelled, desk.task.why_given_up());
  desk.facts.waiting = false;
  desk.facts.answer = Status::cancelled;
  desk.expect_over(Status::cancelled);
}

TEST(test_what_was_granted_when_the_cancel_came_should_be_let_go) {
  Desk desk;
  desk.acquire(100s);
  desk.answer(Status::ok);
  desk.facts.cancelled = true;
  TEST_ASSERT_EQUAL(TaskAct::let_go, desk.step());
  desk.expect_over(Status::cancelled);
}

TEST(test_a_renewal_that_was_answered_should_keep_its_answer) {
  Desk desk;
  desk.renew(1s);
  desk.answer(Status::ok);
  desk.facts.cancelled = true;
  desk.expect_over(Status::ok);
}

TEST(test_a_cancelled_release_should_let_go_all_the_same) {
  Desk desk;
  desk.facts.link = Link::coming;
  desk.release();
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  desk.facts.cancelled = true;
  TEST_ASSERT_EQUAL(TaskAct::let_go, desk.step());
  desk.expect_over(Status::cancelled);
}

TEST(test_an_answer_that_is_too_late_should_be_given_up) {
  Desk desk;
  desk.release();
  TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
  desk.task.handle_asked(Status::ok, start + 1s);
  desk.facts.waiting = true;
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(start + 1s, desk.timeout());
  desk.pass(1s);
  TEST_ASSERT_EQUAL(TaskAct::give_up, desk.step());
  TEST_ASSERT_EQUAL(Status::timed_out, desk.task.why_given_up());
  desk.expect_over(Status::timed_out);
}

TEST(test_without_a_clock_nothing_should_be_attempted) {
  Desk desk;
  desk.facts.now = Instant::max();
  desk.acquire(0s);
  desk.expect_over(Status::system_error);
}

// As after a stop of the process: it answers by what it found before, and asks no more.
TEST(test_who_comes_back_behind_the_end_of_its_call_should_be_told_what_it_found) {
  Desk desk;
  desk.acquire(2s);
  TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
  desk.task.handle_asked(Status::ok);
  desk.facts.waiting = true;
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  desk.facts.waiting = false;
  desk.facts.answer = Status::lock_busy;
  desk.plan(20'000);
  desk.pass(4s);
  desk.expect_over(Status::lock_busy);
}

// It stood still before its first attempt, and must not say what an earlier call was told.
TEST(test_who_comes_too_late_for_any_attempt_should_be_told_so) {
  Desk desk;
  desk.facts.kept = true;
  desk.acquire(0s);
  desk.answer(Status::ok);
  desk.expect_over(Status::ok);
  desk.acquire(2s);
  desk.pass(4s);
  desk.expect_over(Status::timed_out);
}

TEST(test_who_split_the_votes_should_wait_longer_and_longer) {
  Desk desk;
  TaskSettings several = settings;
  several.spread = WaitSpread::whole;
  desk.task.begin_acquire(start, start + 1000s, start + 1001s, several);
  Duration waited = 0s;
  desk.facts.woken = true;  // By what the node that granted alone has released.
  for (int round = 0; round < 4; ++round) {
    desk.answer(Status::no_quorum);
    desk.plan(remaining_unknown, true);
    const Duration wait = desk.timeout() - desk.facts.now;
    TEST_ASSERT_TRUE(wait > waited);
    waited = wait;
    desk.facts.now = desk.timeout();
  }
}

// Whatever is seen and said: the table is never left, the call ends, and a cancelled one asks for nothing any more.
TEST(test_who_is_woken_in_vain_again_and_again_should_spread_its_tries) {
  Desk desk;
  desk.facts.listening = true;
  desk.acquire(1min);
  const auto refused = [&] {
    TEST_ASSERT_EQUAL(TaskAct::attempt, desk.step());
    desk.answer(Status::lock_busy);
    desk.facts.confirmed = 1;
    desk.facts.woken = false;
    const Instant began = desk.facts.now;
    desk.plan(20'000);
    desk.facts.woken = true;
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
    const Duration delay = desk.timeout() - began;
    desk.facts.now = desk.timeout();
    return delay;
  };
  for (int vain = 0; vain <= vain_wakes_free; ++vain)
    TEST_ASSERT_EQUAL(retry_delay_min, refused());  // The first was not woken.
  Duration last = retry_delay_min;
  for (int vain = 0; vain < 4; ++vain) {
    const Duration delay = refused();
    TEST_ASSERT_TRUE(delay > last || delay == retry_delay_min + vain_delay_max * middle / UINT16_MAX);
    last = delay;
  }
  TEST_ASSERT_EQUAL(retry_delay_min + vain_delay_max * middle / UINT16_MAX, last);
}

// Only another's hold makes a wake-up vain.
TEST(test_who_is_woken_before_a_server_that_is_not_fit_should_not_spread_its_tries) {
  Desk desk;
  desk.facts.listening = true;
  desk.acquire(1min);
  for (int turn = 0; turn < vain_wakes_free + 5; ++turn) {
    TEST_ASSERT_EQUAL(TaskAct::attempt, desk.step());
    desk.answer(Status::loading);
    desk.facts.woken = false;
    desk.facts.confirmed = 1;
    const Instant began = desk.facts.now;
    desk.plan();
    desk.facts.woken = true;
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
    TEST_ASSERT_EQUAL(retry_delay_min, desk.timeout() - began);
    desk.facts.now = desk.timeout();
  }
}

// ---- Replicas ----------------------------------------------------------------------------------------------------

namespace {

constexpr TaskSettings acked = {.request_timeout = 1s, .max_poll = 10s, .acks_wait = 200ms};

struct AckDesk : Desk {
  explicit AckDesk(Duration wait = 0s) {
    facts.unconfirmed = true;
    task.begin_acquire(start, start + wait, start + wait + 1s, acked);
    answer(Status::ok);
    hold();
    TEST_ASSERT_EQUAL(TaskAct::confirm, step());
    TEST_ASSERT_TRUE(task.confirms());
    facts.unconfirmed = false;
    facts.waiting = true;
    facts.now = facts.now + 1ms;  // That is how long asking took.
    TEST_ASSERT_EQUAL(TaskAct::sleep, step());
  }
  void confirm(Status status) {
    facts.waiting = false;
    facts.answer = status;
  }
};

}  // namespace

TEST(test_a_grant_should_be_kept_once_replicas_have_confirmed_it) {
  AckDesk desk;
  TEST_ASSERT_EQUAL(start + 200ms, desk.timeout());
  desk.confirm(Status::ok);
  TEST_ASSERT_EQUAL(TaskAct::keep, desk.step());
  TEST_ASSERT_FALSE(desk.task.confirms());
  desk.task.handle_kept(Status::ok);
  desk.expect_over(Status::ok);
}

// Two thirds of the lease may be over by then: that is a doubt of the machine's, and no answer.
TEST(test_a_grant_that_was_confirmed_late_should_be_told_as_long_as_it_is_held) {
  for (const bool held : {true, false}) {
    AckDesk desk;
    desk.confirm(Status::ok);
    TEST_ASSERT_EQUAL(TaskAct::keep, desk.step());
    desk.task.handle_kept(Status::ok);
    desk.facts.held = held;
    desk.facts.answer = held ? Status::timed_out : Status::lock_lost;
    desk.expect_over(held ? Status::ok : Status::lock_lost);
  }
}

TEST(test_a_grant_that_replicas_do_not_confirm_should_be_let_go_of) {
  for (const Status status : {Status::too_few_replicas, Status::no_permission, Status::lock_lost}) {
    AckDesk desk;
    desk.confirm(status);
    TEST_ASSERT_EQUAL(TaskAct::let_go, desk.step());
    desk.facts.answer = Status::ok;
    desk.expect_over(status);
  }
}

TEST(test_an_acquire_that_waits_should_try_again_for_replicas) {
  AckDesk desk(5s);
  desk.confirm(Status::too_few_replicas);
  TEST_ASSERT_EQUAL(TaskAct::let_go, desk.step());
  desk.plan();
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  desk.facts.now = desk.timeout();
  desk.facts.unconfirmed = true;
  desk.answer(Status::ok);
  TEST_ASSERT_EQUAL(TaskAct::confirm, desk.step());
  desk.facts.unconfirmed = false;
  desk.confirm(Status::ok);
  TEST_ASSERT_EQUAL(TaskAct::keep, desk.step());

  AckDesk refused(5s);
  refused.confirm(Status::no_permission);
  TEST_ASSERT_EQUAL(TaskAct::let_go, refused.step());
  refused.expect_over(Status::no_permission);
}

TEST(test_replicas_should_be_waited_for_no_longer_than_half_of_what_is_left) {
  AckDesk late;
  late.pass(200ms);
  TEST_ASSERT_EQUAL(TaskAct::let_go, late.step());
  late.expect_over(Status::timed_out);

  Desk brief;
  brief.facts.unconfirmed = true;
  brief.task.begin_acquire(start, start, start + 1s, acked);
  brief.answer(Status::ok);
  brief.facts.held = true;
  brief.facts.valid_until = start + 100ms;
  TEST_ASSERT_EQUAL(TaskAct::confirm, brief.step());
  brief.facts.waiting = true;
  TEST_ASSERT_EQUAL(TaskAct::sleep, brief.step());
  TEST_ASSERT_EQUAL(start + 50ms, brief.timeout());
}

TEST(test_a_hold_that_is_over_should_not_be_confirmed_any_more) {
  AckDesk desk;
  desk.confirm(Status::ok);
  desk.facts.held = false;
  TEST_ASSERT_EQUAL(TaskAct::let_go, desk.step());
  desk.expect_over(Status::timed_out);
}

TEST(test_a_cancel_should_end_the_wait_for_replicas) {
  AckDesk waiting(5s);
  waiting.facts.cancelled = true;
  TEST_ASSERT_EQUAL(TaskAct::let_go, waiting.step());
  waiting.expect_over(Status::cancelled);

  AckDesk confirmed;
  confirmed.confirm(Status::ok);
  confirmed.facts.cancelled = true;
  TEST_ASSERT_EQUAL(TaskAct::let_go, confirmed.step());
  confirmed.expect_over(Status::cancelled);
}

TEST(test_every_call_should_end_whatever_is_seen) {
  for (unsigned seed = 1; seed <= 20'000; ++seed) {
    std::mt19937 random(seed);
    const auto chance = [&](unsigned of) { return random() % of == 0; };
    LockTask task;
    TaskFacts facts;
    facts.now = start;
    TaskSettings drawn = settings;
    if (chance(2))
      drawn = {.connect_timeout = 50ms, .room_timeout = 20ms, .one_node = false, .spread = WaitSpread::whole};
    if (chance(2)) drawn.acks_wait = 30ms;
    const auto call = static_cast<Call>(1 + random() % 4);
    if (call == Call::acquire)
      task.begin_acquire(start, start + Duration(random() % 3'000'000'000), start + 4s, drawn);
    else
      task.begin(call, start + 1s, drawn);
    int steps = 0;
    for (;; ++steps) {
      TEST_ASSERT_TRUE(steps < 5000);
      facts.link = static_cast<Link>(random() % 4);
      facts.room = chance(2);
      facts.held = chance(2);
      facts.waiting = chance(2);
      facts.woken = chance(8);
      facts.confirmed = static_cast<ListenSet>(random() % 2);
      facts.listening = facts.confirmed != 0;
      facts.released = chance(2);
      facts.kept = chance(2);
      facts.unconfirmed = task.confirms() && chance(2);
      facts.cancelled = facts.cancelled || chance(200);
      facts.valid_until = start + 2s;
      facts.answer = static_cast<Status>(random() % status_count);
      const TaskAct act = task.step(facts);
      TEST_ASSERT_TRUE(task.invariants());
      if (act == TaskAct::over) break;
      if (act == TaskAct::ask) {
        TEST_ASSERT_FALSE(facts.cancelled && call != Call::release && call != Call::renew);
        task.handle_asked(chance(4) ? static_cast<Status>(random() % status_count) : Status::ok,
                          chance(2) ? facts.now + 100ms : facts.now + 10s);
      }
      if (act == TaskAct::keep) task.handle_kept(chance(4) ? Status::too_many_requests : Status::ok);
      if (act == TaskAct::listen)
        task.plan(facts.now, facts.confirmed, static_cast<std::int64_t>(random() % 100), chance(2),
                  static_cast<std::uint16_t>(random()));
      if (chance(8)) task.handle_compensated(chance(2));
      if (act != TaskAct::sleep) continue;
      const Instant until = task.poll_timeout(facts.woken, facts.confirmed);
      TEST_ASSERT_TRUE(until != Instant::max());
      facts.now = chance(2) ? later(facts.now, until) : facts.now + Duration(random() % 50'000'000);
    }
    TEST_ASSERT_TRUE(task.over());
  }
}

// ---- Who is told of it -------------------------------------------------------------------------------------------

TEST(test_a_witness_should_be_told_once_how_an_acquire_has_ended_and_after_what_time) {
  for (const Status status : {Status::ok, Status::lock_busy, Status::no_permission}) {
    holdfast::testing::Recorder recorder;
    Desk desk;
    desk.facts.witness = &recorder;
    desk.facts.subject = "k";
    desk.facts.kept = true;
    desk.acquire(0s);
    desk.answer(status);
    TEST_ASSERT_EQUAL(std::string(), recorder.take());
    desk.pass(3ns);
    desk.expect_over(status);
    TEST_ASSERT_EQUAL(std::string("acquired k ") + to_string(status) + " 3", recorder.take());
  }
}

TEST(test_a_witness_should_be_told_that_an_acquire_waits_for_a_lock_and_once) {
  holdfast::testing::Recorder recorder;
  Desk desk;
  desk.facts.witness = &recorder;
  desk.facts.subject = "k";
  desk.facts.kept = true;
  desk.acquire(20s);
  desk.answer(Status::loading);
  desk.plan();
  TEST_ASSERT_EQUAL(std::string(), recorder.take());  // The lock was not busy: it was not asked.
  desk.facts.now = desk.timeout();
  desk.answer(Status::lock_busy);
  const std::string until_then = std::to_string((desk.facts.now - start).count());
  desk.plan();
  TEST_ASSERT_EQUAL("wait_began k ok " + until_then, recorder.take());
  desk.facts.now = desk.timeout();
  desk.answer(Status::lock_busy);
  desk.plan();
  TEST_ASSERT_EQUAL(std::string(), recorder.take());
  desk.facts.now = desk.timeout();
  desk.answer(Status::ok);
  desk.expect_over(Status::ok);
  TEST_ASSERT_EQUAL("acquired_late k ok " + std::to_string((desk.facts.now - start).count()), recorder.take());
  // The next call has not waited yet.
  desk.facts.woken = false;
  desk.task.begin_acquire(desk.facts.now, desk.facts.now, desk.facts.now + 1s, settings);
  desk.answer(Status::lock_busy);
  desk.expect_over(Status::lock_busy);
  TEST_ASSERT_EQUAL(std::string("acquired k lock_busy 0"), recorder.take());
  // One that waits has not ended yet, however the call before it has.
  desk.task.begin_acquire(desk.facts.now, desk.facts.now + 20s, desk.facts.now + 21s, settings);
  desk.answer(Status::lock_busy);
  desk.plan();
  TEST_ASSERT_EQUAL(std::string("wait_began k ok 0"), recorder.take());
}

TEST(test_a_witness_should_be_told_nothing_of_the_stages_of_other_calls) {
  holdfast::testing::Recorder recorder;
  Desk desk;
  desk.facts.witness = &recorder;
  desk.renew(1s);
  desk.answer(Status::ok);
  desk.expect_over(Status::ok);
  desk.release();
  desk.answer(Status::ok);
  desk.expect_over(Status::ok);
  TEST_ASSERT_EQUAL(std::string(), recorder.take());
}

// ---- What one call leaves to the next ----------------------------------------------------------------------------

TEST(test_a_renewal_that_had_not_left_should_be_asked_once_more_in_each_call) {
  Desk desk;
  for (int call = 0; call < 2; ++call) {
    desk.renew(1s);
    desk.answer(Status::not_connected);
    desk.answer(Status::not_connected);
    desk.expect_over(Status::not_connected);
  }
}

TEST(test_an_acquire_that_had_not_left_should_be_asked_once_more_in_each_attempt) {
  Desk desk;
  desk.acquire(20s);
  desk.answer(Status::not_connected);
  desk.answer(Status::not_connected);
  desk.plan();
  desk.facts.now = desk.timeout();
  desk.answer(Status::not_connected);
  desk.answer(Status::lock_busy);
  desk.plan();
}

TEST(test_what_had_not_left_should_not_be_asked_again_without_a_connection_to_come) {
  for (const Link link : {Link::absent, Link::gone}) {
    Desk desk;
    desk.renew(1s);
    desk.answer(Status::not_connected);
    desk.facts.link = link;
    desk.expect_over(Status::not_connected);
  }
}

TEST(test_delays_between_tries_should_be_short_again_in_the_next_call) {
  Desk desk;
  desk.acquire(1min);
  Duration first = Duration::zero();
  Duration delay = Duration::zero();
  for (int attempt = 0; attempt < 8; ++attempt) {
    desk.answer(Status::lock_busy);
    desk.plan(remaining_unknown, true);
    delay = desk.timeout() - desk.facts.now;
    if (attempt == 0) first = delay;
    desk.facts.now = desk.timeout();
  }
  TEST_ASSERT_TRUE(delay > first);
  desk.facts.cancelled = true;
  desk.expect_over(Status::cancelled);
  desk.facts.cancelled = false;
  desk.task.begin_acquire(desk.facts.now, desk.facts.now + 1min, desk.facts.now + 2min, settings);
  desk.answer(Status::lock_busy);
  desk.plan(remaining_unknown, true);
  TEST_ASSERT_EQUAL(first, desk.timeout() - desk.facts.now);
}

TEST(test_the_first_vain_wake_ups_should_be_free_in_each_call) {
  Desk desk;
  desk.facts.listening = true;
  for (int call = 0; call < 2; ++call) {
    desk.facts.woken = false;
    desk.task.begin_acquire(desk.facts.now, desk.facts.now + 1min, desk.facts.now + 2min, settings);
    for (int vain = 0; vain <= vain_wakes_free; ++vain) {
      TEST_ASSERT_EQUAL(TaskAct::attempt, desk.step());
      desk.answer(Status::lock_busy);
      desk.facts.confirmed = 1;
      desk.facts.woken = false;
      desk.plan(20'000);
      desk.facts.woken = true;
      TEST_ASSERT_EQUAL(retry_delay_min, desk.timeout() - desk.facts.now);
      desk.facts.now = desk.timeout();
    }
    desk.facts.cancelled = true;
    desk.expect_over(Status::cancelled);
    desk.facts.cancelled = false;
  }
}

// ---- What is waited for ------------------------------------------------------------------------------------------

TEST(test_nothing_should_be_tried_before_the_wait_is_planned) {
  Desk desk;
  desk.acquire(20s);
  for (int attempt = 0; attempt < 2; ++attempt) {
    desk.answer(Status::lock_busy);
    TEST_ASSERT_EQUAL(TaskAct::listen, desk.step());
    TEST_ASSERT_EQUAL(Instant::max(), desk.timeout());
    desk.pass(3s);
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
    desk.task.plan(desk.facts.now, 0, remaining_unknown, false, middle);
    desk.facts.now = desk.timeout();
  }
}

TEST(test_an_answer_should_not_be_looked_for_before_the_machine_was_asked) {
  Desk desk;
  desk.acquire(0s);
  TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(TaskStage::asking, desk.task.stage());
}

TEST(test_a_try_at_the_end_of_the_wait_should_be_the_last) {
  Desk desk;
  desk.acquire(20s);
  desk.answer(Status::lock_busy);
  desk.plan();
  desk.facts.now = start + 20s - 1ns;
  desk.answer(Status::lock_busy);
  desk.expect_over(Status::lock_busy);
}

TEST(test_only_the_last_try_of_an_acquire_should_wait_for_room_no_longer_than_a_request) {
  Desk last;
  last.facts.room = false;
  last.task.begin_acquire(start, start, start + 10s, settings);
  TEST_ASSERT_EQUAL(TaskAct::sleep, last.step());
  TEST_ASSERT_EQUAL(start + 1s, last.timeout());
  Desk first;
  first.facts.room = false;
  first.acquire(20s);
  TEST_ASSERT_EQUAL(TaskAct::sleep, first.step());
  TEST_ASSERT_EQUAL(start + 20s, first.timeout());
  Desk renewal;
  renewal.facts.room = false;
  renewal.renew(5s);
  TEST_ASSERT_EQUAL(TaskAct::sleep, renewal.step());
  TEST_ASSERT_EQUAL(start + 5s, renewal.timeout());
}

TEST(test_a_release_should_wait_for_a_connection_also_beyond_the_end_of_its_hold) {
  Desk desk;
  desk.release();
  desk.facts.valid_until = start + 300ms;
  desk.facts.link = Link::coming;
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(start + 1s, desk.timeout());
}

TEST(test_a_renewal_that_waits_for_room_should_be_refused_once_its_hold_is_over) {
  Desk desk;
  desk.facts.room = false;
  desk.renew(5s);
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  desk.facts.held = false;
  TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
}

// [rule 17] What has arrived is read before a deadline is judged.
TEST(test_replicas_that_answered_in_the_last_moment_should_have_confirmed) {
  AckDesk desk;
  desk.facts.now = desk.timeout();
  desk.confirm(Status::ok);
  TEST_ASSERT_EQUAL(TaskAct::keep, desk.step());
}

TEST(test_a_release_that_had_not_left_should_wait_for_its_compensation_where_there_is_one) {
  struct Case {
    bool released;
    Link link;
    TaskAct act;
  };
  for (const Case& it : {Case{true, Link::coming, TaskAct::sleep}, Case{false, Link::coming, TaskAct::over},
                         Case{true, Link::gone, TaskAct::over}}) {
    Desk desk;
    desk.release();
    desk.answer(Status::not_connected);
    desk.facts.link = it.link;
    desk.facts.released = it.released;
    TEST_ASSERT_EQUAL(it.act, desk.step());
    if (it.act == TaskAct::over) continue;
    TEST_ASSERT_EQUAL(TaskStage::compensation, desk.task.stage());
    desk.task.handle_compensated(true);
    desk.expect_over(Status::ok);
    // What became of that one is none of the next one's business.
    desk.release();
    desk.facts.link = Link::ready;
    desk.answer(Status::not_connected);
    desk.facts.link = Link::coming;
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  }
}

// ---- What a driver asks ------------------------------------------------------------------------------------------

TEST(test_a_call_should_run_until_it_is_over_and_no_other_with_it) {
  Desk desk;
  TEST_ASSERT_FALSE(desk.task.runs(Call::acquire) || desk.task.runs(Call::none));
  desk.acquire(0s);
  TEST_ASSERT_TRUE(desk.task.runs(Call::acquire));
  TEST_ASSERT_FALSE(desk.task.runs(Call::renew));
  desk.answer(Status::lock_busy);
  desk.expect_over(Status::lock_busy);
  TEST_ASSERT_FALSE(desk.task.runs(Call::acquire));
}

// The end of an acquire of before is nothing to it.
TEST(test_a_release_should_have_the_time_of_a_request) {
  Desk desk;
  desk.acquire(0s);
  TEST_ASSERT_EQUAL(start + 1s, desk.task.request_deadline(start + 500ms));  // Not behind its own end.
  desk.answer(Status::lock_busy);
  desk.expect_over(Status::lock_busy);
  desk.pass(10s);
  desk.release();
  TEST_ASSERT_EQUAL(desk.facts.now + 1s, desk.task.request_deadline(desk.facts.now));
}

TEST(test_only_an_acquire_whose_replicas_are_asked_should_await_confirmation) {
  TaskSettings confirmed = settings;
  confirmed.acks_wait = 500ms;
  Desk desk;
  TEST_ASSERT_FALSE(desk.task.confirms());
  desk.task.begin_acquire(start, start, start + 1s, confirmed);
  TEST_ASSERT_TRUE(desk.task.confirms());
  desk.answer(Status::lock_busy);
  desk.expect_over(Status::lock_busy);
  TEST_ASSERT_FALSE(desk.task.confirms());
  desk.hold();
  desk.task.begin(Call::renew, start + 1s, confirmed);
  TEST_ASSERT_FALSE(desk.task.confirms());
  Desk plain;
  plain.acquire(0s);
  TEST_ASSERT_FALSE(plain.task.confirms());
}

TEST(test_an_acquire_with_time_for_one_more_try_should_make_it) {
  Desk desk;
  desk.acquire(timeout_min);
  desk.answer(Status::lock_busy);
  TEST_ASSERT_EQUAL(TaskAct::listen, desk.step());
}

TEST(test_a_release_of_what_is_not_held_should_wait_for_no_connection) {
  Desk desk;
  desk.facts.link = Link::coming;
  desk.task.begin(Call::release, start + 1s, settings);
  TEST_ASSERT_TRUE(desk.step() != TaskAct::sleep);
}

TEST(test_a_release_on_a_connection_that_is_gone_for_good_should_not_be_waited_for) {
  Desk desk;
  desk.release();
  desk.answer(Status::transport_closed);
  desk.facts.released = true;
  desk.facts.held = false;
  desk.facts.link = Link::gone;
  desk.expect_over(Status::transport_closed);
}

// ---- When the next attempt is made -------------------------------------------------------------------------------

// Those who have a minority each stand back at random, and twice as far each time, so that one of them wins.
TEST(test_who_has_a_minority_should_stand_back_twice_as_far_each_time) {
  Desk desk;
  desk.acquire(1h);
  const auto back = [&](bool alone) {
    desk.answer(Status::lock_busy);
    TEST_ASSERT_EQUAL(TaskAct::listen, desk.step());
    desk.task.plan(desk.facts.now, 0, remaining_unknown, alone, UINT16_MAX);
    const Duration floor = desk.task.poll_timeout(true, 0) - desk.facts.now;
    desk.pass(desk.timeout() - desk.facts.now);
    return floor;
  };
  for (Duration spread = 2 * retry_delay_min; spread < retry_delay_max; spread *= 2)
    TEST_ASSERT_EQUAL(retry_delay_min + spread, back(true));
  TEST_ASSERT_EQUAL(retry_delay_min + retry_delay_max, back(true));
  TEST_ASSERT_EQUAL(retry_delay_min + retry_delay_max, back(true));
  // One that found another's hold begins anew.
  TEST_ASSERT_EQUAL(retry_delay_min, back(false));
  TEST_ASSERT_EQUAL(3 * retry_delay_min, back(true));
}

TEST(test_who_has_nothing_to_plan_should_not_stand_back_for_it) {
  Desk desk;
  desk.acquire(1h);
  for (int turn = 0; turn < 5; ++turn)
    desk.task.plan(desk.facts.now, 0, remaining_unknown, true, UINT16_MAX);  // It has not even asked.
  desk.answer(Status::lock_busy);
  TEST_ASSERT_EQUAL(TaskAct::listen, desk.step());
  desk.task.plan(desk.facts.now, 0, remaining_unknown, true, UINT16_MAX);
  TEST_ASSERT_EQUAL(3 * retry_delay_min, desk.task.poll_timeout(true, 0) - desk.facts.now);
}

TEST(test_the_last_attempt_should_be_at_the_end_of_the_wait_or_one_pause_behind_the_one_before) {
  for (const Duration wait : {Duration(retry_delay_min / 2) + timeout_min / 2, Duration(50ms)}) {
    Desk desk;
    desk.acquire(wait);
    desk.answer(Status::lock_busy);
    TEST_ASSERT_EQUAL(TaskAct::listen, desk.step());
    for (int times = 0; times < 8; ++times) desk.task.plan(start, 0, remaining_unknown, true, UINT16_MAX);
    desk.task.bound_floor();
    TEST_ASSERT_EQUAL(start + std::max(wait, retry_delay_min), desk.task.poll_timeout(true, 0));
  }
}

TEST(test_a_plan_should_follow_what_becomes_known_of_the_hold_in_the_way) {
  Desk desk;
  desk.facts.confirmed = 1;
  desk.acquire(1h);
  desk.answer(Status::lock_busy);
  desk.plan();
  const Instant before = desk.timeout();
  TEST_ASSERT_TRUE(before > start + 1s);
  desk.task.plan_anew(start, 1, 500, middle);
  TEST_ASSERT_TRUE(desk.timeout() > start + 500ms && desk.timeout() < start + 600ms);
  desk.task.plan_anew(start, 1, remaining_unknown, middle);
  TEST_ASSERT_EQUAL(before, desk.timeout());
}

// Of a call that only a grant of its own wakes. A try behind another's wake-up keeps its distance.
TEST(test_a_floor_should_be_lifted_for_who_was_not_woken) {
  for (const bool woken : {false, true}) {
    Desk desk;
    desk.facts.confirmed = 1;
    desk.acquire(1h);
    desk.answer(Status::lock_busy);
    desk.plan();
    if (woken) {
      desk.facts.woken = true;
      desk.pass(retry_delay_min);
      desk.answer(Status::lock_busy);
      desk.facts.woken = false;
      desk.plan();
    }
    TEST_ASSERT_EQUAL(woken, desk.task.was_woken());
    const Instant attempt = desk.facts.now;
    TEST_ASSERT_EQUAL(attempt + retry_delay_min, desk.task.poll_timeout(true, 1));
    desk.task.lift_floor();
    TEST_ASSERT_EQUAL(woken ? attempt + retry_delay_min : attempt, desk.task.poll_timeout(true, 1));
  }
}

// What comes too early, or too late, is no part of a plan.
TEST(test_what_becomes_known_before_there_is_a_plan_should_not_count) {
  const auto planned = [](bool early) {
    Desk desk;
    desk.acquire(1h);
    if (early) desk.task.plan_anew(start, 0, remaining_unknown, middle);
    desk.answer(Status::lock_busy);
    TEST_ASSERT_EQUAL(TaskAct::listen, desk.step());
    for (int times = 0; early && times < 3; ++times) desk.task.plan_anew(start, 0, remaining_unknown, middle);
    desk.task.plan(start, 0, remaining_unknown, false, middle);
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
    const Instant next = desk.timeout();
    desk.pass(next - start);
    TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
    if (early) desk.task.plan_anew(desk.facts.now, 0, remaining_unknown, middle);
    desk.task.handle_asked(Status::ok);
    desk.facts.answer = Status::lock_busy;
    TEST_ASSERT_EQUAL(TaskAct::listen, desk.step());
    desk.task.plan(desk.facts.now, 0, remaining_unknown, false, middle);
    return desk.timeout();
  };
  TEST_ASSERT_EQUAL(planned(false), planned(true));
}

TEST(test_a_renewal_that_nobody_may_carry_should_end_with_its_own_reason) {
  Desk desk;
  desk.renew(1s);
  desk.answer(Status::not_connected);
  desk.facts.link = Link::absent;
  desk.facts.link_failure = Status::connect_failed;
  desk.expect_over(Status::not_connected);
}

TEST(test_only_a_compensation_that_is_waited_for_should_end_a_release) {
  Desk desk;
  desk.release();
  desk.task.handle_compensated(true);
  desk.answer(Status::transport_closed);
  desk.task.handle_compensated(true);
  desk.facts.released = true;
  desk.facts.held = false;
  desk.facts.link = Link::coming;
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_EQUAL(TaskStage::compensation, desk.task.stage());
  desk.task.handle_compensated(true);
  desk.expect_over(Status::ok);
}
