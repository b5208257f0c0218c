// SPDX-License-Identifier: MIT
//
// The life of a hold, rule by rule. The rules are those of proto/lock.md, quoted as [rule N].
#include "unity_style.hpp"

#include <string>

#include "heard.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "lock_desk.hpp"
#include "lock_transitions.hpp"
#include "printers.hpp"
#include "resp_text.hpp"
#include "scripts.hpp"

using namespace holdfast;
using holdfast::testing::command_of;
using holdfast::testing::Desk;
using holdfast::testing::Heard;

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
constexpr Duration lease = Desk::lease;
constexpr Duration drift = lease / 100 + 2ms;

std::string step_of(const std::string& count, bool by_text = false) {
  const Script& script = scripts::reentrant_step;
  return command_of({by_text ? "EVAL" : "EVALSHA",
                     std::string((by_text ? script.text : script.sha.bytes()).string_view()), "1", "name",
                     std::string(token_text_size, 'a'), count, "10000"});
}

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- Configuration -----------------------------------------------------------------------------------------------

TEST(test_configure_should_refuse_empty_and_overlong_keys) {
  LockMachine machine(mutex_kind);
  const std::string longest(key_size_max, 'k');
  TEST_ASSERT_EQUAL(Status::invalid_argument, machine.configure(Key(""), {}));
  TEST_ASSERT_EQUAL(Status::invalid_argument, machine.configure(Key(ByteView(longest + "k")), {}));
  TEST_ASSERT_EQUAL(Status::invalid_argument, machine.acquire(Desk::token('a'), start, start + 1s));
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key(ByteView(longest)), {}));
  TEST_ASSERT_EQUAL(ByteView(longest), machine.key().bytes());
}

TEST(test_a_timing_should_be_told_as_it_was_configured) {
  LockMachine machine(mutex_kind);
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("name"), {.lease = 10s, .drift = 3s}));
  TEST_ASSERT_EQUAL(Duration(10s), machine.timing().lease);
  TEST_ASSERT_EQUAL(Duration(3s), machine.timing().drift);
}

TEST(test_a_renewal_should_be_told_from_when_it_is_asked_for_until_it_is_answered) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_FALSE(desk.machine.renewing(Instant::max()));
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.renew(start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.machine.renewing(Instant::max()));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.machine.renewing(Instant::max()));
  // Only one that was due by then.
  TEST_ASSERT_TRUE(desk.machine.renewing(start + lease / renewal_divisor));
  TEST_ASSERT_FALSE(desk.machine.renewing(start + lease / renewal_divisor - 1ns));
  desk.machine.set_fence(7);
  TEST_ASSERT_EQUAL(7U, desk.machine.fence());
}

// [rule 4] A lease is whole milliseconds in [lease_min, lease_max], above its drift.
TEST(test_configure_should_refuse_leases_outside_their_limits) {
  LockMachine machine(mutex_kind);
  const Key key("name");
  for (const Duration bad : {Duration(0), Duration(-1s), Duration(4ms), Duration(1500us + 10ms), Duration(24h + 1ms)})
    TEST_ASSERT_EQUAL(Status::invalid_argument, machine.configure(key, {.lease = bad}));
  TEST_ASSERT_EQUAL(Status::invalid_argument, machine.configure(key, {.lease = 1s, .drift = 1s}));
  TEST_ASSERT_EQUAL(Status::invalid_argument, machine.configure(key, {.lease = 1s, .drift = -1ms}));
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(key, {.lease = lease_min}));
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(key, {.lease = lease_max}));
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(key, {.lease = 1s, .drift = 0ms}));
}

TEST(test_configure_should_say_the_lease_that_the_automatic_one_comes_to) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.configure(Key("name"), {}));
  TEST_ASSERT_EQUAL(lease_default, desk.machine.timing().lease);
  TEST_ASSERT_EQUAL(lease_default - drift_of(lease_default), desk.machine.validity());
  desk.acquire(start);
  const std::string milliseconds = std::to_string(lease_default / 1ms);
  TEST_ASSERT_TRUE(desk.bytes.find("PX\r\n$" + std::to_string(milliseconds.size()) + "\r\n" + milliseconds) !=
                   std::string::npos);
}

TEST(test_configure_should_refuse_a_new_key_while_held) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::already_held, desk.machine.configure(Key("other"), {}));
  TEST_ASSERT_EQUAL(ByteView("name"), desk.machine.key().bytes());
}

// ---- Acquire -----------------------------------------------------------------------------------------------------

TEST(test_acquire_should_send_set_nx_px_with_key_token_and_lease) {
  Desk desk;
  desk.acquire(start);
  const std::string token(token_text_size, 'a');
  TEST_ASSERT_EQUAL(
      std::string("*6\r\n$3\r\nSET\r\n$4\r\nname\r\n$32\r\n" + token + "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n"),
      desk.bytes);
  TEST_ASSERT_EQUAL(Operation::acquire == desk.request.tag.operation, true);
}

// [rule 3] valid_until counts from before the first byte, less drift.
TEST(test_grant_should_count_validity_from_the_send_less_drift) {
  Desk desk;
  desk.acquire(start);
  desk.answer(Desk::granted(), start + 700ms);
  TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
  TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
  TEST_ASSERT_TRUE(desk.machine.held(start + lease - drift - 1ns));
  TEST_ASSERT_FALSE(desk.machine.held(start + lease - drift));
}

TEST(test_grant_should_use_a_drift_of_the_callers_own) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.configure(Key("name"), {.lease = lease, .drift = 1s}));
  desk.hold(start);
  TEST_ASSERT_EQUAL(start + 9s, desk.machine.valid_until());
}

// [rule 6] A grant of which nothing is left is none; what it took is given back.
TEST(test_grant_that_comes_after_its_own_end_should_be_compensated) {
  Desk desk;
  desk.acquire(start);
  desk.answer(Desk::granted(), start + lease - drift);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_EQUAL(Status::timed_out, desk.machine.status());
  TEST_ASSERT_FALSE(desk.machine.held(start));
  Token token;
  TEST_ASSERT_TRUE(desk.compensation(&token));
  TEST_ASSERT_EQUAL(Desk::token('a').bytes(), token.bytes());
}

TEST(test_busy_should_end_idle_without_compensation) {
  Desk desk;
  desk.acquire(start);
  desk.answer(RespValue(), start + 1ms);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_EQUAL(Status::lock_busy, desk.machine.status());
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  TEST_ASSERT_FALSE(desk.compensation());
}

// [rule 11] Default-deny: what the kind does not list is a protocol error, never success.
TEST(test_acquire_should_take_no_unlisted_reply_for_success) {
  const RespValue odd[] = {RespValue::make_integer(1),
                           RespValue::make_integer(0),
                           RespValue::make_text(RespKind::bulk, "OK"),
                           RespValue::make_text(RespKind::simple, "ok"),
                           RespValue::make_text(RespKind::simple, "OKAY"),
                           RespValue::make_text(RespKind::simple, ""),
                           RespValue::make_text(RespKind::simple, "QUEUED")};
  for (const RespValue& value : odd) {
    Desk desk;
    desk.acquire(start);
    desk.answer(value, start + 1ms);
    TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::protocol_doubt, desk.event());
    TEST_ASSERT_EQUAL(Status::protocol_error, desk.machine.status());
    TEST_ASSERT_EQUAL(LockState::unknown, desk.machine.state());
    TEST_ASSERT_FALSE(desk.machine.held(start + 2ms));
    TEST_ASSERT_TRUE(desk.compensation());
  }
}

// [rule 6] An error is a denial only where its class proves that nothing ran.
TEST(test_acquire_error_should_be_unknown_unless_nothing_ran) {
  Desk refused;
  refused.acquire(start);
  refused.fail(Status::out_of_memory, true, start + 1ms);
  TEST_ASSERT_EQUAL(LockEvent::denied, refused.event());
  TEST_ASSERT_EQUAL(Status::out_of_memory, refused.machine.status());
  TEST_ASSERT_FALSE(refused.compensation());

  Desk unclear;
  unclear.acquire(start);
  unclear.fail(Status::out_of_memory, false, start + 1ms);
  TEST_ASSERT_EQUAL(LockEvent::unclear, unclear.event());
  TEST_ASSERT_EQUAL(LockState::unknown, unclear.machine.state());
  TEST_ASSERT_TRUE(unclear.compensation());

  // A script that meets a slot on the move has granted nothing yet.
  Desk moving;
  moving.acquire(start);
  moving.fail(Status::try_again, false, start + 1ms);
  TEST_ASSERT_EQUAL(LockEvent::denied, moving.event());
  TEST_ASSERT_EQUAL(LockState::idle, moving.machine.state());
  TEST_ASSERT_FALSE(moving.compensation());
}

// [rule 7] What the session gave up, the session compensates: not twice.
TEST(test_acquire_given_up_by_the_session_should_not_be_compensated_twice) {
  for (const Status outcome : {Status::timed_out, Status::transport_closed, Status::cancelled}) {
    Desk desk;
    desk.acquire(start);
    desk.fail(outcome, false, start + 1s);
    TEST_ASSERT_EQUAL(LockState::unknown, desk.machine.state());
    TEST_ASSERT_EQUAL(outcome, desk.machine.status());
    TEST_ASSERT_FALSE(desk.compensation());
  }
}

// Instant::max() is what a driver has that cannot read its clock: the end of such a hold would never come.
TEST(test_acquire_should_be_refused_without_a_clock) {
  Desk desk;
  const Instant never = Instant::max();
  TEST_ASSERT_EQUAL(Status::system_error, desk.machine.acquire(Desk::token('a'), never, never + 1s));
  TEST_ASSERT_FALSE(desk.machine.has_output());
  TEST_ASSERT_TRUE(desk.machine.state() == LockState::idle);
  desk.hold(start);
}

TEST(test_an_acquire_that_comes_too_late_should_be_no_fault_of_the_system) {
  Desk desk;
  const Instant now = Instant::from_nanoseconds(1'000'000'000'000);
  TEST_ASSERT_EQUAL(Status::timed_out, desk.machine.acquire(Desk::token('a'), now, now));
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  TEST_ASSERT_FALSE(desk.machine.has_output());
}

TEST(test_a_hold_should_be_lost_and_taken_back_without_a_clock) {
  const Instant never = Instant::max();
  for (const bool renews : {false, true}) {
    Desk desk;
    desk.hold(start);
    TEST_ASSERT_FALSE(desk.machine.held(never));
    if (renews)
      TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.renew(never, never));
    else
      TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.release(NativeDelete::none, false, never, never));
    TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
    TEST_ASSERT_TRUE(desk.compensation());
    TEST_ASSERT_FALSE(desk.machine.held(start + 1s));  // Also when it can be read again.
  }
}

// The grant comes when the clock has just failed: it is nobody's.
TEST(test_a_grant_should_be_taken_back_without_a_clock) {
  Desk desk;
  desk.acquire(start);
  desk.answer(Desk::granted(), Instant::max());
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_FALSE(desk.machine.held(start + 1s));
}

TEST(test_acquire_should_be_refused_while_held_or_asked) {
  Desk desk;
  desk.acquire(start);
  TEST_ASSERT_EQUAL(Status::already_held, desk.machine.acquire(Desk::token('b'), start, start + 1s));
  desk.answer(Desk::granted(), start + 1ms);
  TEST_ASSERT_EQUAL(Status::already_held, desk.machine.acquire(Desk::token('b'), start, start + 1s));
  TEST_ASSERT_EQUAL(Desk::token('a').bytes(), desk.machine.token().bytes());
}

TEST(test_acquire_should_be_refused_while_a_hold_is_at_risk) {
  Desk desk;
  desk.hold(start);
  desk.machine.handle_timeout(start + lease / 3 * 2);
  TEST_ASSERT_EQUAL(LockState::at_risk, desk.machine.state());
  TEST_ASSERT_EQUAL(Status::already_held, desk.machine.acquire(Desk::token('b'), start + 7s, start + 8s));
}

// It goes behind a release that nobody waits for, but not in front of the answer to one that somebody does.
TEST(test_acquire_should_wait_for_no_posted_release) {
  for (const bool posted : {false, true}) {
    Desk desk;
    desk.hold(start);
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, posted, start, start + 1s));
    TEST_ASSERT_TRUE(desk.take_request());
    TEST_ASSERT_EQUAL(posted ? Status::ok : Status::too_many_requests,
                      desk.machine.acquire(Desk::token('b'), start, start + 1s));
    if (!posted) continue;
    TEST_ASSERT_TRUE(desk.take_request());
    TEST_ASSERT_FALSE(desk.request.posted);  // It is waited for.
  }
}

TEST(test_acquire_should_be_refused_while_something_is_to_be_taken_back) {
  Desk desk;
  desk.acquire(start);
  desk.answer(RespValue::make_integer(7), start);
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.acquire(Desk::token('b'), start, start + 1s));
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Desk::token('b'), start, start + 1s));
}

TEST(test_grant_should_end_what_a_refusal_said) {
  Desk desk;
  desk.acquire(start);
  desk.answer(RespValue(), start);
  TEST_ASSERT_EQUAL(Status::lock_busy, desk.machine.status());
  desk.acquire(start);
  desk.answer(Desk::granted(), start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.status());
}

TEST(test_each_acquire_should_begin_a_generation) {
  Desk desk;
  for (int round = 0; round < 3; ++round) {
    const std::uint32_t before = desk.machine.generation();
    desk.acquire(start);
    TEST_ASSERT_EQUAL(before + 1, desk.machine.generation());
    TEST_ASSERT_EQUAL(before + 1, desk.request.tag.generation);
    desk.answer(RespValue(), start);
    TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  }
}

TEST(test_each_request_should_carry_the_deadline_it_was_given) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(start + 1s, desk.request.deadline);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.renew(start + 1s, start + 3s));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_EQUAL(start + 3s, desk.request.deadline);
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 2s, start + 5s));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_EQUAL(start + 5s, desk.request.deadline);
}

TEST(test_refused_request_should_leave_nothing_behind) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Desk::token('a'), start, start + 1s));
  desk.machine.refuse_request(Status::too_many_requests, start);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  TEST_ASSERT_FALSE(desk.compensation());
}

// That there is no room in the client says nothing of the hold.
TEST(test_renewal_without_room_should_be_no_doubt_and_due_again_at_once) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.renew(start + 1s, start + 2s));
  desk.machine.refuse_request(Status::too_many_requests, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
  TEST_ASSERT_EQUAL(LockState::held, desk.machine.state());
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.status());
  TEST_ASSERT_EQUAL(start + 1s + retry_delay_min, desk.machine.renewal_due());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.renew(start + 2s, start + 3s));
  desk.machine.refuse_request(Status::not_connected, start + 2s);
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
}

// ---- Identity ----------------------------------------------------------------------------------------------------

// [rule 1] The next hold has the token of its own acquire; nothing of the one before.
TEST(test_each_hold_should_carry_the_token_it_was_given) {
  Desk desk;
  desk.hold(start, 'a');
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.bytes.find(std::string(token_text_size, 'a')) != std::string::npos);
  desk.answer(Desk::one(), start + 1s);
  (void)desk.event();
  desk.hold(start + 2s, 'b');
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 3s, start + 4s));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.bytes.find(std::string(token_text_size, 'b')) != std::string::npos);
  TEST_ASSERT_TRUE(desk.bytes.find(std::string(token_text_size, 'a')) == std::string::npos);
}

// [rule 2] A reply of a generation that is over counts for nothing.
TEST(test_late_renewal_should_not_revive_a_released_hold) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  const Request renewal = desk.request;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 2s, start + 3s));
  TEST_ASSERT_FALSE(desk.machine.held(start + 2s));
  desk.machine.handle_reply({.tag = renewal.tag, .outcome = Status::ok, .nothing_ran = false, .value = Desk::one()},
                            start + 2s);
  TEST_ASSERT_FALSE(desk.machine.held(start + 2s));
  TEST_ASSERT_EQUAL(Instant(), desk.machine.valid_until());
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
}

TEST(test_late_renewal_of_the_hold_before_should_not_extend_the_next) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  const Request renewal = desk.request;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 2s, start + 3s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::one(), start + 2s);
  (void)desk.event();
  desk.hold(start + 3s, 'b');
  const Instant until = desk.machine.valid_until();
  desk.machine.handle_reply({.tag = renewal.tag, .outcome = Status::ok, .nothing_ran = false, .value = Desk::one()},
                            start + 4s);
  TEST_ASSERT_EQUAL(until, desk.machine.valid_until());
  // Nor does a late "not yours" end it.
  desk.machine.handle_reply({.tag = renewal.tag, .outcome = Status::ok, .nothing_ran = false, .value = Desk::zero()},
                            start + 4s);
  TEST_ASSERT_TRUE(desk.machine.held(start + 4s));
}

// [rule 2] Also while a renewal of the next hold is on its way.
TEST(test_late_not_yours_of_the_hold_before_should_not_end_the_next_one_in_its_renewal) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  const Request renewal = desk.request;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 2s, start + 3s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::one(), start + 2s);
  (void)desk.event();
  desk.hold(start + 3s, 'b');
  desk.renew(start + 4s);
  desk.machine.handle_reply({.tag = renewal.tag, .outcome = Status::ok, .nothing_ran = false, .value = Desk::zero()},
                            start + 4s);
  TEST_ASSERT_TRUE(desk.machine.held(start + 4s));
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
  desk.answer(Desk::one(), start + 4s);
  TEST_ASSERT_EQUAL(LockEvent::renewed, desk.event());
}

// [rule 2] The generation ends with release and with loss, not only with the next acquire.
TEST(test_release_and_loss_should_end_the_generation) {
  Desk released;
  released.hold(start);
  const std::uint32_t held = released.machine.generation();
  TEST_ASSERT_EQUAL(Status::ok, released.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(released.machine.generation() != held);
  Desk lost;
  lost.hold(start);
  const std::uint32_t before = lost.machine.generation();
  lost.machine.handle_timeout(start + lease);
  TEST_ASSERT_TRUE(lost.machine.generation() != before);
}

// [rule 2] Queued requests of a generation that is over are dropped.
TEST(test_release_should_drop_a_renewal_that_was_not_sent) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.renew(start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(Operation::release == desk.request.tag.operation);
  TEST_ASSERT_FALSE(desk.machine.wants_request());
}

// ---- Renewal -----------------------------------------------------------------------------------------------------

TEST(test_renewal_should_extend_from_its_own_send) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 4s);
  TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
  desk.answer(Desk::one(), start + 4s + 300ms);
  TEST_ASSERT_EQUAL(LockEvent::renewed, desk.event());
  TEST_ASSERT_EQUAL(start + 4s + lease - drift, desk.machine.valid_until());
}

// [rule 2] Only before the old valid_until has passed. Lost is final.
TEST(test_renewal_that_comes_after_the_end_should_revive_nothing) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 9s);
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());  // Overdue by then.
  desk.answer(Desk::one(), start + lease - drift);
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_EQUAL(LockState::lost, desk.machine.state());
  TEST_ASSERT_FALSE(desk.machine.held(start + 9s));
  TEST_ASSERT_TRUE(desk.compensation());
}

// [rule 12] "Not yours" is a loss at once, with valid_until far away.
TEST(test_renew_should_report_lock_lost_when_token_differs) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  desk.answer(Desk::zero(), start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_EQUAL(LockState::lost, desk.machine.state());
  TEST_ASSERT_FALSE(desk.machine.held(start + 1s));
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.renew(start + 2s, start + 3s));
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.release(NativeDelete::none, false, start + 2s, start + 3s));
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.release(NativeDelete::none, false, start + 2s, start + 3s));
}

TEST(test_renew_should_report_lock_lost_when_the_key_has_another_type) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  desk.fail(Status::wrong_type, false, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
}

// [rule 10] NOSCRIPT: nothing ran, so it goes once more, with its text, and its validity counts from then. The next one
// is tried by its sum again.
TEST(test_renewal_of_an_unknown_script_should_go_once_by_its_text) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  TEST_ASSERT_TRUE(desk.bytes.find("EVALSHA") != std::string::npos);
  desk.fail(Status::no_script, true, start + 1500ms);
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.bytes.find("$4\r\nEVAL\r\n") != std::string::npos);
  TEST_ASSERT_EQUAL(start + 2s, desk.request.deadline);
  desk.answer(Desk::one(), start + 1600ms);
  TEST_ASSERT_EQUAL(LockEvent::renewed, desk.event());
  TEST_ASSERT_EQUAL(start + 1500ms, desk.machine.confirmed_at());
  TEST_ASSERT_EQUAL(start + 1500ms + lease - drift, desk.machine.valid_until());
  desk.renew(start + 2s);
  TEST_ASSERT_TRUE(desk.bytes.find("EVALSHA") != std::string::npos);
  desk.fail(Status::no_script, true, start + 2s);
  TEST_ASSERT_TRUE(desk.take_request());
  desk.fail(Status::no_script, true, start + 2s);
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
  TEST_ASSERT_EQUAL(Status::no_script, desk.machine.status());
}

TEST(test_renewal_of_an_unknown_script_should_not_go_again_at_its_deadline) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  desk.fail(Status::no_script, true, start + 2s);
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
}

// A thirtieth of the lease, and no loop turns faster than the floor.
TEST(test_failed_renewal_should_be_tried_again_after_a_share_of_the_lease) {
  const struct {
    Duration lease;
    Duration delay;
  } cases[] = {{30s, 1s}, {90ms, 3ms}, {30ms, retry_delay_min}};
  for (const auto& it : cases) {
    Desk desk;
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.configure(Key("name"), {.lease = it.lease}));
    desk.hold(start);
    desk.renew(start + 5ms);
    desk.fail(Status::loading, true, start + 6ms);
    TEST_ASSERT_EQUAL(start + 6ms + it.delay, desk.machine.renewal_due());
  }
}

// [issue 10, 14] Nobody wants to know any more, which is no doubt of the hold.
TEST(test_cancelled_renewal_should_leave_the_hold_as_it_is) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  desk.fail(Status::cancelled, false, start + 2s);
  TEST_ASSERT_EQUAL(Status::cancelled, desk.machine.status());
  TEST_ASSERT_EQUAL(LockState::held, desk.machine.state());
  TEST_ASSERT_FALSE(desk.machine.at_risk(start + 2s));
  TEST_ASSERT_FALSE(desk.machine.waiting());
  TEST_ASSERT_FALSE(desk.machine.has_output());
  TEST_ASSERT_EQUAL(start + lease / 3, desk.machine.renewal_due());
  // Its time goes on, also while it is cancelled.
  desk.renew(start + 3s);
  desk.fail(Status::cancelled, false, start + lease);
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.status());
}

TEST(test_renewal_should_say_how_it_ended) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  desk.fail(Status::loading, true, start + 1s);
  TEST_ASSERT_EQUAL(Status::loading, desk.machine.status());
  desk.renew(start + 2s);
  desk.answer(Desk::one(), start + 2s);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.status());
  desk.renew(start + 3s);
  desk.answer(Desk::granted(), start + 3s);
  TEST_ASSERT_EQUAL(Status::protocol_error, desk.machine.status());
}

// Nothing of the hold before decides when this one is renewed.
TEST(test_next_hold_should_not_wait_for_the_renewal_that_failed_before) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  desk.fail(Status::loading, true, start + 1s);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  desk.hold(start + 2s, 'b');
  TEST_ASSERT_EQUAL(start + 2s + lease / 3, desk.machine.renewal_due());
}

TEST(test_overdue_hold_should_be_at_risk_until_it_ends) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(start + lease / 3 * 2, desk.machine.poll_timeout());
  desk.machine.handle_timeout(start + lease / 3 * 2);
  TEST_ASSERT_EQUAL(LockState::at_risk, desk.machine.state());
  TEST_ASSERT_EQUAL(Status::timed_out, desk.machine.status());
  TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.poll_timeout());
  // With so much drift it ends before it would be overdue.
  Desk careful;
  TEST_ASSERT_EQUAL(Status::ok, careful.machine.configure(Key("name"), {.lease = lease, .drift = 9s}));
  careful.hold(start);
  TEST_ASSERT_EQUAL(start + 1s, careful.machine.poll_timeout());
}

// [rule 12] Errors are survived until valid_until; the first doubt is told, once.
TEST(test_failed_renewals_should_put_at_risk_once_and_be_tried_again) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 3s);
  desk.fail(Status::loading, true, start + 3s);
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
  TEST_ASSERT_TRUE(desk.machine.held(start + 3s));
  TEST_ASSERT_TRUE(desk.machine.at_risk(start + 3s));
  TEST_ASSERT_TRUE(desk.machine.renewal_due() > start + 3s);
  TEST_ASSERT_TRUE(desk.machine.renewal_due() < start + 4s);
  desk.renew(start + 4s);
  desk.fail(Status::timed_out, false, start + 5s);
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
  TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
  desk.renew(start + 6s);
  desk.answer(Desk::one(), start + 6s);
  TEST_ASSERT_EQUAL(LockEvent::renewed, desk.event());
  TEST_ASSERT_EQUAL(LockState::held, desk.machine.state());
  TEST_ASSERT_FALSE(desk.machine.at_risk(start + 6s));
}

// One whose loss nobody has asked about is over with the next hold.
TEST(test_loss_should_not_be_told_behind_the_next_hold) {
  Desk desk;
  desk.hold(start);
  desk.machine.handle_timeout(start + lease);
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  const Instant now = start + lease;
  desk.hold(now, 'b');
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, now, now + 1s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::one(), now);
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.renew(now, now + 1s));
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.release(NativeDelete::none, false, now, now + 1s));
}

TEST(test_hold_should_be_lost_when_valid_until_passes) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(LockState::held, desk.machine.state());
  desk.machine.handle_timeout(desk.machine.poll_timeout());
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());  // Two thirds of the lease without a word.
  desk.machine.handle_timeout(desk.machine.poll_timeout());
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_EQUAL(Instant::max(), desk.machine.poll_timeout());
  TEST_ASSERT_EQUAL(Instant(), desk.machine.valid_until());
  TEST_ASSERT_TRUE(desk.compensation());
}

TEST(test_renew_should_be_refused_after_release_and_after_the_end) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.renew(start + lease, start + lease + 1s));
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  Desk released;
  released.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, released.machine.release(NativeDelete::none, false, start, start + 1s));
  TEST_ASSERT_EQUAL(Status::not_held, released.machine.renew(start, start + 1s));
}

TEST(test_renew_should_take_no_unlisted_reply_for_success) {
  const RespValue odd[] = {Desk::granted(), RespValue(), RespValue::make_integer(2), RespValue::make_integer(-1),
                           RespValue::make_text(RespKind::bulk, "1")};
  for (const RespValue& value : odd) {
    Desk desk;
    desk.hold(start);
    desk.renew(start + 1s);
    desk.answer(value, start + 1s);
    TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::protocol_doubt, desk.event());
    TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
  }
}

TEST(test_only_one_renewal_should_be_on_its_way) {
  Desk desk;
  desk.hold(start);
  desk.renew(start + 1s);
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.renew(start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(Instant::max(), desk.machine.renewal_due());
}

// ---- Release -----------------------------------------------------------------------------------------------------

// [rule 2] Release zeroes valid_until before anything is sent.
TEST(test_release_should_end_the_hold_before_it_is_sent) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_FALSE(desk.machine.held(start + 1s));
  TEST_ASSERT_TRUE(desk.machine.wants_request());
}

TEST(test_release_should_send_the_script_by_its_sha) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  const std::string sha(scripts::mutex_release.sha.digits, sha1_hex_size);
  TEST_ASSERT_EQUAL("*5\r\n$7\r\nEVALSHA\r\n$40\r\n" + sha + "\r\n$1\r\n1\r\n$4\r\nname\r\n$32\r\n" +
                        std::string(token_text_size, 'a') + "\r\n",
                    desk.bytes);
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.status());
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
}

TEST(test_release_should_use_the_servers_own_compare_and_delete) {
  const std::string token(token_text_size, 'a');
  Desk redis;
  redis.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, redis.machine.release(NativeDelete::delex, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(redis.take_request());
  TEST_ASSERT_EQUAL("*4\r\n$5\r\nDELEX\r\n$4\r\nname\r\n$4\r\nIFEQ\r\n$32\r\n" + token + "\r\n", redis.bytes);
  Desk valkey;
  valkey.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, valkey.machine.release(NativeDelete::delifeq, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(valkey.take_request());
  TEST_ASSERT_EQUAL("*3\r\n$7\r\nDELIFEQ\r\n$4\r\nname\r\n$32\r\n" + token + "\r\n", valkey.bytes);
}

TEST(test_refused_native_release_should_fall_back_to_the_script_and_then_to_its_text) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::delifeq, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.fail(Status::no_permission, true, start + 1s);
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.bytes.find("EVALSHA") != std::string::npos);
  desk.fail(Status::no_script, true, start + 1s);
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.bytes.find("$4\r\nEVAL\r\n") != std::string::npos);
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
}

// Only what proves that the server has no such command, or not for us. The script itself has no other shape.
TEST(test_only_a_native_release_that_is_unknown_or_forbidden_should_fall_back) {
  for (const NativeDelete native : {NativeDelete::none, NativeDelete::delex, NativeDelete::delifeq})
    for (const Status refusal : {Status::unknown_command, Status::no_permission, Status::loading}) {
      Desk desk;
      desk.hold(start);
      TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(native, false, start + 1s, start + 2s));
      TEST_ASSERT_TRUE(desk.take_request());
      desk.fail(refusal, true, start + 1s);
      const bool falls_back = native != NativeDelete::none && refusal != Status::loading;
      TEST_ASSERT_EQUAL(falls_back ? LockEvent::none : LockEvent::unclear, desk.event());
      TEST_ASSERT_EQUAL(!falls_back, desk.compensation());
      TEST_ASSERT_EQUAL(falls_back, desk.take_request());
      if (falls_back) TEST_ASSERT_TRUE(desk.bytes.find("EVALSHA") != std::string::npos);
    }
}

// No command of a server's own releases a hash.
TEST(test_reentrant_release_should_be_no_native_delete) {
  for (const NativeDelete native : {NativeDelete::delex, NativeDelete::delifeq}) {
    Desk desk(reentrant_kind);
    desk.hold(start);
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(native, false, start + 1s, start + 2s));
    TEST_ASSERT_TRUE(desk.take_request());
    TEST_ASSERT_TRUE(desk.bytes.find("EVALSHA") != std::string::npos);
    TEST_ASSERT_FALSE(desk.request.repeatable);
  }
}

// [rule 10] What nobody waits for cannot be stranded by a NOSCRIPT.
TEST(test_posted_release_should_carry_its_text) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, true, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.bytes.find("$4\r\nEVAL\r\n") != std::string::npos);
  TEST_ASSERT_TRUE(desk.request.posted);
  TEST_ASSERT_TRUE(desk.request.compensation != nullptr);
}

TEST(test_release_should_say_lock_lost_when_nothing_was_ours) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::zero(), start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.status());
}

TEST(test_refused_release_should_be_compensated) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.fail(Status::loading, true, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  desk.request.tag = desk.compensation_tag;
  desk.answer(Desk::one(), start + 2s);
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
}

// [rule 11] Default-deny here, too: what proves nothing is taken back.
TEST(test_release_should_take_no_unlisted_reply_for_an_answer) {
  for (const RespValue& value :
       {Desk::granted(), RespValue::make_integer(2), RespValue::make_integer(-1), RespValue()}) {
    Desk desk;
    desk.hold(start);
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
    TEST_ASSERT_TRUE(desk.take_request());
    desk.answer(value, start + 1s);
    TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::protocol_doubt, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
    TEST_ASSERT_EQUAL(Status::protocol_error, desk.machine.status());
    TEST_ASSERT_EQUAL(LockState::unknown, desk.machine.state());
    TEST_ASSERT_TRUE(desk.compensation());
  }
}

// Somebody put something else in its place.
TEST(test_release_should_say_lock_lost_when_the_key_has_another_type) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.fail(Status::wrong_type, true, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.status());
  TEST_ASSERT_FALSE(desk.compensation());
}

TEST(test_release_of_an_unknown_script_should_go_once_by_its_text) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.fail(Status::no_script, true, start + 1s);
  TEST_ASSERT_TRUE(desk.take_request());
  desk.fail(Status::no_script, true, start + 1s);
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
}

// [rule 17] The session takes back what it gave up.
TEST(test_release_given_up_by_the_session_should_not_be_compensated_twice) {
  for (const Status outcome : {Status::timed_out, Status::transport_closed, Status::cancelled}) {
    Desk desk;
    desk.hold(start);
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
    TEST_ASSERT_TRUE(desk.take_request());
    desk.fail(outcome, false, start + 2s);
    TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
    TEST_ASSERT_EQUAL(outcome, desk.machine.status());
    TEST_ASSERT_FALSE(desk.compensation());
  }
}

// The session repeats what was posted, in the shape that cannot be refused, and says so as a compensation.
TEST(test_posted_release_should_be_left_to_the_session) {
  for (const NativeDelete native : {NativeDelete::none, NativeDelete::delex, NativeDelete::delifeq})
    for (const Status refusal : {Status::unknown_command, Status::no_script, Status::loading}) {
      Desk desk;
      desk.hold(start);
      TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(native, true, start + 1s, start + 2s));
      TEST_ASSERT_TRUE(desk.take_request());
      desk.request.tag.operation = Operation::compensate;
      desk.fail(refusal, true, start + 1s);
      TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
      TEST_ASSERT_EQUAL(refusal, desk.machine.status());
      TEST_ASSERT_FALSE(desk.machine.wants_request());
      TEST_ASSERT_FALSE(desk.compensation());
    }
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, true, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.request.tag.operation = Operation::compensate;
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.status());
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
}

// [rule 6] A compensation that is refused leaves the outcome unknown.
TEST(test_refused_compensation_should_leave_the_outcome_unknown) {
  Desk desk;
  desk.acquire(start);
  desk.fail(Status::server_error, false, start + 1ms);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  desk.request.tag = desk.compensation_tag;
  desk.fail(Status::loading, true, start + 2ms);
  TEST_ASSERT_EQUAL(LockState::unknown, desk.machine.state());
  desk.answer(Desk::zero(), start + 2s);
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
}

TEST(test_release_without_a_connection_should_be_compensated_later) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  desk.machine.refuse_request(Status::not_connected, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
}

TEST(test_release_of_an_expired_hold_should_say_lock_lost_and_send_a_compensation) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.release(NativeDelete::none, false, start + lease, start + lease));
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  TEST_ASSERT_TRUE(desk.compensation());
}

// ---- Reentrant holds: up ------------------------------------------------------------------------------------------

// [rule 17] The count travels as an absolute number.
TEST(test_reentry_should_tell_the_server_the_new_count) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  TEST_ASSERT_EQUAL(1U, desk.machine.count());
  for (std::uint32_t count = 2; count <= 12; ++count) {
    desk.reenter(start + 1s);
    TEST_ASSERT_EQUAL(step_of(std::to_string(count)), desk.bytes);
    TEST_ASSERT_TRUE(Operation::step == desk.request.tag.operation);
    TEST_ASSERT_FALSE(desk.request.posted);
    TEST_ASSERT_EQUAL(count - 1, desk.machine.count());
    desk.answer(Desk::one(), start + 1s);
    TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.status());
    TEST_ASSERT_EQUAL(count, desk.machine.count());
  }
}

// [rule 1] Re-entry is resolved in the client: one hold, one token, one generation.
TEST(test_reentry_should_keep_token_and_generation) {
  Desk desk(reentrant_kind);
  desk.hold(start, 'a');
  const std::uint32_t generation = desk.machine.generation();
  desk.reenter(start + 1s);
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(generation, desk.machine.generation());
  TEST_ASSERT_EQUAL(Desk::token('a').bytes(), desk.machine.token().bytes());
}

// [rule 3] A grant counts from before its own send, and never lowers what was promised.
TEST(test_granted_reentry_should_raise_valid_until_from_its_send) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  desk.reenter(start + 4s);
  TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
  desk.answer(Desk::one(), start + 4s + 700ms);
  TEST_ASSERT_EQUAL(start + 4s + lease - drift, desk.machine.valid_until());
  TEST_ASSERT_EQUAL(start + 4s, desk.machine.confirmed_at());
}

TEST(test_granted_step_should_end_the_doubt_and_the_wait_for_the_next_renewal) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  desk.renew(start + 4s);
  desk.fail(Status::loading, true, start + 4s);
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
  desk.reenter(start + 4100ms);
  desk.answer(Desk::one(), start + 4200ms);
  TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
  TEST_ASSERT_EQUAL(LockState::held, desk.machine.state());
  TEST_ASSERT_FALSE(desk.machine.at_risk(start + 4200ms));
  TEST_ASSERT_EQUAL(start + 4100ms + lease / 3, desk.machine.renewal_due());
}

// [rule 6] A refusal that proves that nothing ran leaves the hold as it was.
TEST(test_refused_reentry_should_leave_hold_and_count) {
  for (const Status refusal : {Status::loading, Status::not_connected, Status::busy_script, Status::no_permission}) {
    Desk desk(reentrant_kind);
    desk.hold_times(2, start);
    desk.reenter(start + 4s);
    desk.fail(refusal, true, start + 4s);
    TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
    TEST_ASSERT_EQUAL(refusal, desk.machine.status());
    TEST_ASSERT_EQUAL(2U, desk.machine.count());
    TEST_ASSERT_EQUAL(LockState::held, desk.machine.state());
    TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
    TEST_ASSERT_FALSE(desk.compensation());
    TEST_ASSERT_FALSE(desk.machine.waiting());
  }
}

// What was still to be told of the count goes with the step that replaces it, so that a step that came to nothing tells it
// again.
TEST(test_refused_reentry_should_tell_the_count_that_was_not_known_to_be_told) {
  Desk desk(reentrant_kind);
  desk.hold_times(3, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(true, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.compensation());
  desk.reenter(start + 1s);
  desk.fail(Status::loading, true, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(2U, desk.compensated_count);
  desk.reenter(start + 2s);
  desk.answer(Desk::one(), start + 2s);
  TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
  desk.reenter(start + 3s);
  desk.fail(Status::loading, true, start + 3s);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_FALSE(desk.compensation());
}

// [rule 17] What the session gave up it takes back by the count still held, and not a second time.
TEST(test_unknown_reentry_should_be_compensated_by_the_count_still_held) {
  for (const Status outcome : {Status::timed_out, Status::transport_closed, Status::cancelled})
    for (const std::uint32_t count : {1U, 2U, 3U}) {
      Desk desk(reentrant_kind);
      desk.hold_times(count, start);
      desk.reenter(start + 4s);
      TEST_ASSERT_EQUAL(count, desk.would_compensate_by());
      desk.fail(outcome, false, start + 5s);
      TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
      TEST_ASSERT_EQUAL(outcome, desk.machine.status());
      TEST_ASSERT_EQUAL(count, desk.machine.count());
      TEST_ASSERT_TRUE(desk.machine.held(start + 5s));
      TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
      TEST_ASSERT_FALSE(desk.compensation());
      TEST_ASSERT_FALSE(desk.machine.waiting());
    }
}

// [rule 17] An error that proves nothing is taken back by the machine.
TEST(test_reentry_that_may_have_run_should_be_compensated_by_the_count_still_held) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.reenter(start + 4s);
  desk.fail(Status::server_error, false, start + 4s);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_TRUE(desk.machine.wants_compensation());
  Token token;
  TEST_ASSERT_TRUE(desk.compensation(&token));
  TEST_ASSERT_EQUAL(Desk::token('a').bytes(), token.bytes());
  TEST_ASSERT_EQUAL(2U, desk.compensated_count);
  TEST_ASSERT_EQUAL(10000U, desk.compensated_lease);
  TEST_ASSERT_EQUAL(desk.machine.generation(), desk.compensation_tag.generation);
  TEST_ASSERT_TRUE(Operation::compensate == desk.compensation_tag.operation);
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
  TEST_ASSERT_TRUE(desk.machine.held(start + 4s));
}

// Its answer, whatever it is, neither ends nor extends the hold.
TEST(test_answer_to_the_compensation_of_a_step_should_leave_the_hold) {
  const auto end_unclear = [](Desk& desk) {
    desk.hold_times(2, start);
    desk.reenter(start + 4s);
    desk.fail(Status::server_error, false, start + 4s);
    TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
    TEST_ASSERT_TRUE(desk.compensation());
    desk.request.tag = desk.compensation_tag;
  };
  for (const RespValue& value : {Desk::one(), Desk::zero()}) {
    Desk desk(reentrant_kind);
    end_unclear(desk);
    desk.answer(value, start + 5s);
    TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
    TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
    TEST_ASSERT_EQUAL(2U, desk.machine.count());
  }
  Desk refused(reentrant_kind);
  end_unclear(refused);
  refused.fail(Status::loading, true, start + 5s);
  TEST_ASSERT_EQUAL(LockState::held, refused.machine.state());
}

TEST(test_reentry_should_be_refused_where_nothing_is_held) {
  Desk desk(reentrant_kind);
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.reenter(start, start + 1s));
  desk.acquire(start);
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.reenter(start, start + 1s));
  desk.answer(Desk::granted(), start);
  TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start, start + 1s));
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.reenter(start, start + 1s));
}

// ---- Reentrant holds: down ----------------------------------------------------------------------------------------

TEST(test_step_down_should_tell_the_server_the_count_that_is_left) {
  Desk desk(reentrant_kind);
  desk.hold_times(3, start);
  desk.step_down(start + 4s);
  TEST_ASSERT_EQUAL(step_of("2"), desk.bytes);
  TEST_ASSERT_EQUAL(2U, desk.machine.count());  // From the call on.
  TEST_ASSERT_EQUAL(2U, desk.would_compensate_by());
  TEST_ASSERT_TRUE(desk.machine.held(start + 4s));
  desk.answer(Desk::one(), start + 5s);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.status());
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
  TEST_ASSERT_EQUAL(LockState::held, desk.machine.state());
  TEST_ASSERT_EQUAL(start + 4s + lease - drift, desk.machine.valid_until());  // [rule 3]
}

// [rule 17] Never a delete while it is held.
TEST(test_unknown_step_down_should_be_compensated_by_the_count_that_is_left) {
  for (const Status outcome : {Status::timed_out, Status::transport_closed, Status::cancelled}) {
    Desk desk(reentrant_kind);
    desk.hold_times(2, start);
    desk.step_down(start + 4s);
    TEST_ASSERT_EQUAL(1U, desk.would_compensate_by());
    desk.fail(outcome, false, start + 5s);
    TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
    TEST_ASSERT_EQUAL(1U, desk.machine.count());
    TEST_ASSERT_TRUE(desk.machine.held(start + 5s));
    TEST_ASSERT_FALSE(desk.compensation());  // The session's.
  }
}

// Let go of, and the server does not know: it is told.
TEST(test_refused_step_down_should_be_compensated_by_the_count_that_is_left) {
  for (const bool nothing_ran : {false, true}) {
    Desk desk(reentrant_kind);
    desk.hold_times(2, start);
    desk.step_down(start + 4s);
    desk.fail(Status::loading, nothing_ran, start + 5s);
    TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
    TEST_ASSERT_EQUAL(Status::loading, desk.machine.status());
    TEST_ASSERT_TRUE(desk.compensation());
    TEST_ASSERT_EQUAL(1U, desk.compensated_count);
    TEST_ASSERT_EQUAL(1U, desk.machine.count());
    TEST_ASSERT_TRUE(desk.machine.held(start + 5s));
  }
}

// [rule 10] What nobody waits for goes out as a compensation, and no request with it.
TEST(test_posted_step_down_should_be_a_compensation) {
  Desk desk(reentrant_kind);
  desk.hold_times(3, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(true, start + 4s, start + 5s));
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  TEST_ASSERT_FALSE(desk.machine.waiting());
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(2U, desk.compensated_count);
  TEST_ASSERT_EQUAL(10000U, desk.compensated_lease);
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
  TEST_ASSERT_TRUE(desk.machine.held(start + 4s));
  // The next is a request of its own.
  desk.step_down(start + 4s);
  TEST_ASSERT_EQUAL(step_of("1"), desk.bytes);
}

// What a step asks for is newer than what waits to be told.
TEST(test_step_should_tell_what_a_posted_one_would_have_told) {
  Desk desk(reentrant_kind);
  desk.hold_times(3, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(true, start + 4s, start + 5s));
  desk.step_down(start + 4s);
  TEST_ASSERT_EQUAL(step_of("1"), desk.bytes);
  TEST_ASSERT_FALSE(desk.compensation());
}

// [rule 17] Whatever is polled first: a compensation that waits is not made a delete.
TEST(test_renewal_should_leave_a_compensation_that_waits_as_it_is) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(true, start + 4s, start + 5s));
  desk.renew(start + 4s);
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(1U, desk.compensated_count);
}

TEST(test_last_release_should_be_a_release) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.step_down(start + 1s);
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::delex, false, start + 2s, start + 3s));
  TEST_ASSERT_FALSE(desk.machine.held(start + 2s));
  TEST_ASSERT_EQUAL(0U, desk.machine.count());
  TEST_ASSERT_TRUE(desk.take_request());
  const std::string sha(scripts::reentrant_release.sha.digits, sha1_hex_size);
  TEST_ASSERT_TRUE(desk.bytes.find(sha) != std::string::npos);
  TEST_ASSERT_FALSE(desk.request.repeatable);  // A hash has no compare-and-delete of the server's own.
  TEST_ASSERT_EQUAL(0U, desk.would_compensate_by());
  desk.answer(Desk::one(), start + 2s);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
}

// Releases that a later one answers.
TEST(test_unwound_releases_should_send_nothing) {
  Desk desk(reentrant_kind);
  desk.hold_times(4, start);
  desk.machine.unwind(1);
  TEST_ASSERT_EQUAL(4U, desk.machine.count());
  desk.machine.unwind(2);
  TEST_ASSERT_EQUAL(3U, desk.machine.count());
  desk.machine.unwind(3);
  TEST_ASSERT_EQUAL(1U, desk.machine.count());
  desk.machine.unwind(7);  // More than there is.
  TEST_ASSERT_EQUAL(1U, desk.machine.count());
  TEST_ASSERT_FALSE(desk.machine.has_output());
  TEST_ASSERT_TRUE(desk.machine.held(start));
}

// ---- Reentrant holds: the end of a step -----------------------------------------------------------------------------

// [rule 12] "Not yours" is a loss at once, whichever way the step went.
TEST(test_step_should_report_lock_lost_when_the_field_is_gone) {
  for (const bool up : {true, false}) {
    Desk desk(reentrant_kind);
    desk.hold_times(2, start);
    up ? desk.reenter(start + 1s) : desk.step_down(start + 1s);
    desk.answer(Desk::zero(), start + 1s);
    TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
    TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.status());
    TEST_ASSERT_EQUAL(LockState::lost, desk.machine.state());
    TEST_ASSERT_FALSE(desk.machine.held(start + 1s));
    TEST_ASSERT_TRUE(desk.compensation());
    TEST_ASSERT_EQUAL(0U, desk.compensated_count);
    TEST_ASSERT_EQUAL(up ? 2U : 1U, desk.machine.count());
  }
}

TEST(test_step_should_report_lock_lost_when_the_key_has_another_type) {
  for (const bool nothing_ran : {true, false}) {
    Desk desk(reentrant_kind);
    desk.hold(start);
    desk.reenter(start + 1s);
    desk.fail(Status::wrong_type, nothing_ran, start + 1s);
    TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
    TEST_ASSERT_TRUE(desk.compensation());
    TEST_ASSERT_EQUAL(0U, desk.compensated_count);
  }
}

// [rule 2] Lost is final: a step that comes after the end revives nothing.
TEST(test_step_that_comes_after_the_end_should_be_a_loss) {
  for (const bool up : {true, false}) {
    Desk desk(reentrant_kind);
    desk.hold_times(2, start);
    up ? desk.reenter(start + 1s) : desk.step_down(start + 1s);
    desk.answer(Desk::one(), start + lease - drift);
    TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
    TEST_ASSERT_EQUAL(LockState::lost, desk.machine.state());
    TEST_ASSERT_EQUAL(Instant(), desk.machine.valid_until());
    TEST_ASSERT_TRUE(desk.compensation());
    TEST_ASSERT_EQUAL(0U, desk.compensated_count);
  }
}

TEST(test_step_that_comes_just_before_the_end_should_be_granted) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  desk.reenter(start + 1s);
  desk.answer(Desk::one(), start + lease - drift - 1ns);
  TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
  TEST_ASSERT_EQUAL(start + 1s + lease - drift, desk.machine.valid_until());
}

// [rule 2] What was lost while its step was on its way stays lost; the session takes the step back by a delete then.
TEST(test_late_step_should_do_nothing_after_a_loss) {
  for (const RespValue& value : {Desk::one(), Desk::zero(), Desk::granted()}) {
    Desk desk(reentrant_kind);
    desk.hold_times(2, start);
    desk.reenter(start + 1s);
    desk.machine.handle_timeout(start + lease);
    TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
    TEST_ASSERT_TRUE(desk.compensation());
    TEST_ASSERT_EQUAL(0U, desk.compensated_count);
    TEST_ASSERT_EQUAL(0U, desk.would_compensate_by());
    TEST_ASSERT_TRUE(desk.machine.waiting());
    desk.answer(value, start + lease);
    TEST_ASSERT_FALSE(desk.machine.waiting());
    TEST_ASSERT_FALSE(desk.machine.has_output());
    TEST_ASSERT_EQUAL(2U, desk.machine.count());
    TEST_ASSERT_EQUAL(LockState::lost, desk.machine.state());
    TEST_ASSERT_FALSE(desk.machine.held(start + lease));
  }
}

// [rule 2] Nor to the next hold: its acquire waits until the step has been answered, which still views the token.
TEST(test_acquire_should_be_refused_while_a_step_is_on_its_way) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  desk.reenter(start + 1s);
  const Request step = desk.request;
  TEST_ASSERT_EQUAL(Status::already_held, desk.machine.acquire(Desk::token('b'), start + 1s, start + 2s));
  desk.machine.disown(start + 2s);
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.release(NativeDelete::none, false, start + 2s, start + 3s));
  TEST_ASSERT_EQUAL(0U, desk.machine.count());
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.acquire(Desk::token('b'), start + 2s, start + 3s));
  TEST_ASSERT_EQUAL(Desk::token('a').bytes(), step.compensation->token->bytes());
  desk.fail(Status::timed_out, false, start + 2s);
  desk.hold(start + 3s, 'b');
}

TEST(test_a_loss_should_be_forgotten_at_once_and_once) {
  for (const int releases : {0, 1, 2}) {
    Desk desk(reentrant_kind);
    TEST_ASSERT_EQUAL(Status::not_held, desk.machine.forget_loss());
    desk.hold_times(2, start);
    TEST_ASSERT_EQUAL(Status::already_held, desk.machine.forget_loss());
    TEST_ASSERT_EQUAL(2U, desk.machine.count());
    desk.machine.handle_timeout(start + lease);
    TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
    TEST_ASSERT_TRUE(desk.compensation());  // What is to be taken back is not forgotten.
    for (int release = 0; release < releases; ++release)
      TEST_ASSERT_EQUAL(Status::lock_lost,
                        desk.machine.release(NativeDelete::none, false, start + lease, start + lease + 1s));
    TEST_ASSERT_EQUAL(releases == 2 ? Status::not_held : Status::ok, desk.machine.forget_loss());
    TEST_ASSERT_EQUAL(Status::not_held, desk.machine.forget_loss());
    TEST_ASSERT_EQUAL(Status::not_held,
                      desk.machine.release(NativeDelete::none, false, start + lease, start + lease + 1s));
    desk.hold(start + lease + 2s, 'b');
    TEST_ASSERT_EQUAL(1U, desk.machine.count());
  }
}

TEST(test_a_loss_of_a_mutex_should_be_forgotten_once) {
  Desk desk;
  desk.hold(start);
  desk.machine.handle_timeout(start + lease);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.forget_loss());
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.forget_loss());
}

// [rule 2] A step that was wanted and not sent is dropped with its hold.
TEST(test_loss_should_drop_a_step_that_was_not_sent) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start + 1s, start + 2s));
  desk.machine.handle_timeout(start + lease);
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
}

TEST(test_release_should_drop_a_step_that_was_not_sent) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(Operation::release == desk.request.tag.operation);
}

// A step whose answer is late has no deadline beyond the hold.
TEST(test_deadline_of_a_step_should_be_at_most_valid_until) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.reenter(start + 1s, 2s);
  TEST_ASSERT_EQUAL(start + 3s, desk.request.deadline);
  desk.fail(Status::loading, true, start + 1s);
  desk.reenter(start + 2s, 1h);
  TEST_ASSERT_EQUAL(start + lease - drift, desk.request.deadline);
  desk.fail(Status::loading, true, start + 2s);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(false, start + 3s, Instant::max()));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_EQUAL(start + lease - drift, desk.request.deadline);
}

// ---- Reentrant holds: one request at a time --------------------------------------------------------------------------

TEST(test_renewal_should_wait_for_a_step_and_a_step_for_a_renewal) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.reenter(start + 1s);
  TEST_ASSERT_EQUAL(Instant::max(), desk.machine.renewal_due());
  TEST_ASSERT_TRUE(desk.machine.waiting());
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.renew(start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.reenter(start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.step_down(false, start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.step_down(true, start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
  TEST_ASSERT_FALSE(desk.machine.has_output());
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
  desk.renew(start + 4s);
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.reenter(start + 4s, start + 5s));
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.step_down(false, start + 4s, start + 5s));
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.step_down(true, start + 4s, start + 5s));
  TEST_ASSERT_EQUAL(3U, desk.machine.count());
  TEST_ASSERT_FALSE(desk.machine.has_output());
}

TEST(test_wanted_request_should_keep_the_next_from_being_made) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.renew(start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.renew(start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.reenter(start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.step_down(true, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(Operation::renew == desk.request.tag.operation);
  TEST_ASSERT_TRUE(desk.request.compensation == nullptr);
}

// [rule 10] NOSCRIPT: nothing ran, so the same count goes once more, with its text; its validity counts from then.
TEST(test_step_of_an_unknown_script_should_go_once_by_its_text) {
  for (const bool up : {true, false}) {
    Desk desk(reentrant_kind);
    desk.hold_times(2, start);
    up ? desk.reenter(start + 1s) : desk.step_down(start + 1s);
    desk.fail(Status::no_script, true, start + 1500ms);
    TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
    TEST_ASSERT_TRUE(desk.machine.waiting());
    TEST_ASSERT_FALSE(desk.compensation());
    TEST_ASSERT_TRUE(desk.take_request());
    TEST_ASSERT_EQUAL(step_of(up ? "3" : "1", true), desk.bytes);
    TEST_ASSERT_EQUAL(start + 2s, desk.request.deadline);
    TEST_ASSERT_EQUAL(up ? 2U : 1U, desk.would_compensate_by());
    desk.answer(Desk::one(), start + 1600ms);
    TEST_ASSERT_EQUAL(up ? LockEvent::granted : LockEvent::released, desk.event());
    TEST_ASSERT_EQUAL(start + 1500ms + lease - drift, desk.machine.valid_until());
    TEST_ASSERT_EQUAL(up ? 3U : 1U, desk.machine.count());
  }
  Desk twice(reentrant_kind);
  twice.hold(start);
  twice.reenter(start + 1s);
  twice.fail(Status::no_script, true, start + 1s);
  TEST_ASSERT_TRUE(twice.take_request());
  twice.fail(Status::no_script, true, start + 1s);
  TEST_ASSERT_FALSE(twice.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::denied, twice.event());
  Desk late(reentrant_kind);
  late.hold(start);
  late.reenter(start + 1s);
  late.fail(Status::no_script, true, start + 2s);
  TEST_ASSERT_FALSE(late.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::denied, late.event());
}

TEST(test_step_should_be_tried_by_its_sum_behind_one_that_went_by_its_text) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  desk.reenter(start);
  desk.fail(Status::no_script, true, start);
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::one(), start);
  TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
  desk.reenter(start);
  TEST_ASSERT_EQUAL(step_of("3"), desk.bytes);
}

// [rule 11] Default-deny: no success, the connection closes, and the count is told once more.
TEST(test_step_should_take_no_unlisted_reply_for_success) {
  for (const std::string reply : {"+OK\r\n", "$-1\r\n", ":2\r\n", ":-1\r\n", ":3\r\n", "$1\r\n1\r\n", "*1\r\n:1\r\n"})
    for (const bool up : {true, false}) {
      const Heard heard(reply);
      Desk desk(reentrant_kind);
      desk.hold_times(2, start);
      up ? desk.reenter(start + 1s) : desk.step_down(start + 1s);
      desk.answer(heard.value, start + 1s);
      TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
      TEST_ASSERT_EQUAL(LockEvent::protocol_doubt, desk.event());
      TEST_ASSERT_EQUAL(Status::protocol_error, desk.machine.status());
      TEST_ASSERT_EQUAL(up ? 2U : 1U, desk.machine.count());
      TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
      TEST_ASSERT_TRUE(desk.compensation());
      TEST_ASSERT_EQUAL(up ? 2U : 1U, desk.compensated_count);
    }
}

// A step's reply of another generation is not taken for this one's.
TEST(test_reply_to_a_step_of_another_generation_should_count_for_nothing) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  desk.request.tag = {nullptr, desk.machine.generation() - 1, Operation::step};
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(1U, desk.machine.count());
  TEST_ASSERT_FALSE(desk.machine.has_output());
}

// Nor one that nobody asked for.
TEST(test_reply_to_no_step_should_count_for_nothing) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  for (const RespValue& value : {Desk::one(), Desk::zero()}) {
    desk.request.tag = {nullptr, desk.machine.generation(), Operation::step};
    desk.answer(value, start + 1s);
    TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
    TEST_ASSERT_FALSE(desk.machine.has_output());
  }
}

// Nor does one to anything else that was answered, or given up, before.
TEST(test_second_reply_should_count_for_nothing) {
  Desk desk;
  const auto answer_again = [&](Instant now) {
    const LockState state = desk.machine.state();
    const Instant until = desk.machine.valid_until();
    for (const RespValue& value : {Desk::granted(), Desk::one(), Desk::zero()}) desk.answer(value, now);
    desk.fail(Status::server_error, false, now);
    TEST_ASSERT_EQUAL(state, desk.machine.state());
    TEST_ASSERT_EQUAL(until, desk.machine.valid_until());
    TEST_ASSERT_FALSE(desk.machine.has_output());
  };
  desk.hold(start);
  answer_again(start + 1s);
  desk.renew(start + 1s);
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::renewed, desk.event());
  answer_again(start + 2s);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 2s, start + 3s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::one(), start + 2s);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  answer_again(start + 3s);
}

// What comes late for the hold before is no reply to a step of this one.
TEST(test_late_reply_of_the_hold_before_should_leave_a_step_on_its_way) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  desk.renew(start);
  const Request renewal = desk.request;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start, start + 1s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::one(), start);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  desk.hold(start + 1s, 'b');
  desk.reenter(start + 1s);
  desk.machine.handle_reply({.tag = renewal.tag, .outcome = Status::timed_out, .nothing_ran = false, .value = {}},
                            start + 2s);
  TEST_ASSERT_TRUE(desk.machine.waiting());
  desk.answer(Desk::one(), start + 2s);
  TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
}

// Frames that end while a step is on its way count, too.
TEST(test_compensation_of_a_step_should_tell_the_count_as_it_is_by_then) {
  for (const bool refused : {true, false}) {
    Desk desk(reentrant_kind);
    desk.hold_times(4, start);
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(true, start, start + 1s));
    TEST_ASSERT_TRUE(desk.compensation());
    desk.reenter(start);
    desk.machine.unwind(2);
    desk.fail(refused ? Status::loading : Status::server_error, refused, start);
    TEST_ASSERT_EQUAL(refused ? LockEvent::denied : LockEvent::unclear, desk.event());
    TEST_ASSERT_TRUE(desk.compensation());
    TEST_ASSERT_EQUAL(2U, desk.compensated_count);
  }
}

// The server may have heard the one before, or not what took it back.
TEST(test_refused_reentry_behind_an_unclear_one_should_tell_the_count_again) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.reenter(start);
  desk.fail(Status::timed_out, false, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_FALSE(desk.compensation());
  desk.reenter(start + 1s);
  desk.fail(Status::loading, true, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(2U, desk.compensated_count);
}

// ---- Reentrant holds: a request that could not be submitted ------------------------------------------------------------

TEST(test_refused_request_of_a_reentry_should_leave_everything) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start + 1s, start + 2s));
  desk.machine.refuse_request(Status::not_connected, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_EQUAL(Status::not_connected, desk.machine.status());
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
  TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
  TEST_ASSERT_FALSE(desk.compensation());
  TEST_ASSERT_FALSE(desk.machine.waiting());
}

TEST(test_refused_request_of_a_step_down_should_be_compensated_by_the_count_that_is_left) {
  Desk desk(reentrant_kind);
  desk.hold_times(3, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(false, start + 1s, start + 2s));
  desk.machine.refuse_request(Status::too_many_requests, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.status());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(2U, desk.compensated_count);
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
  TEST_ASSERT_TRUE(desk.machine.held(start + 1s));
}

// By the count that is left now, whatever was told before; and until the server has heard it, a reentry tells it, too.
TEST(test_refused_request_of_a_second_step_down_should_tell_the_newest_count) {
  Desk desk(reentrant_kind);
  desk.hold_times(4, start);
  desk.step_down(start);
  desk.answer(Desk::one(), start);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(false, start, start + 1s));
  desk.machine.refuse_request(Status::too_many_requests, start);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(2U, desk.compensated_count);
  // A reentry that was not sent changes nothing about it.
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start, start + 1s));
  desk.machine.refuse_request(Status::too_many_requests, start);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_FALSE(desk.compensation());
  desk.reenter(start);
  desk.fail(Status::loading, true, start);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(2U, desk.compensated_count);
}

TEST(test_refused_request_of_a_renewal_should_put_the_hold_at_risk) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.renew(start + 4s, start + 5s));
  desk.machine.refuse_request(Status::not_connected, start + 4s);
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
  TEST_ASSERT_TRUE(desk.machine.held(start + 4s));
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
  TEST_ASSERT_FALSE(desk.compensation());
}

TEST(test_refused_request_of_a_reentrant_release_should_be_compensated_by_a_delete) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.step_down(start + 1s);
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 2s, start + 3s));
  desk.machine.refuse_request(Status::not_connected, start + 2s);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(0U, desk.compensated_count);
}

TEST(test_refusal_of_no_request_should_do_nothing) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.machine.refuse_request(Status::not_connected, start + 1s);
  TEST_ASSERT_FALSE(desk.machine.has_output());
  TEST_ASSERT_EQUAL(LockState::held, desk.machine.state());
}

// ---- Reentrant holds: renewal and loss ---------------------------------------------------------------------------------

TEST(test_reentrant_renewal_should_be_answered_by_an_array_of_one) {
  const Heard yes("*1\r\n:1\r\n");
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.renew(start + 4s);
  desk.answer(yes.value, start + 4s);
  TEST_ASSERT_EQUAL(LockEvent::renewed, desk.event());
  TEST_ASSERT_EQUAL(start + 4s + lease - drift, desk.machine.valid_until());
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
  const Heard no("*1\r\n:0\r\n");
  desk.renew(start + 8s);
  desk.answer(no.value, start + 8s);
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
}

// [rule 12] A script that asks by pcall says -1 where the server refuses for a while: it is tried again, and the
// connection has done nothing wrong.
TEST(test_refused_reentrant_renewal_should_be_survived_without_protocol_doubt) {
  const Heard refused("*1\r\n:-1\r\n");
  Desk desk(reentrant_kind);
  desk.hold(start);
  desk.renew(start + 4s);
  desk.answer(refused.value, start + 4s);
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
  TEST_ASSERT_EQUAL(Status::server_error, desk.machine.status());
  TEST_ASSERT_TRUE(desk.machine.held(start + 4s));
  TEST_ASSERT_TRUE(desk.machine.renewal_due() > start + 4s && desk.machine.renewal_due() < start + 5s);
}

// After a loss its holder's frames are unwound: each release says so, and until the last has, so does acquire().
TEST(test_lost_hold_should_be_unwound_before_it_is_acquired_anew) {
  Desk desk(reentrant_kind);
  desk.hold_times(3, start);
  desk.machine.handle_timeout(start + lease);
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(0U, desk.compensated_count);
  TEST_ASSERT_EQUAL(3U, desk.machine.count());
  const Instant now = start + lease + 1s;
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.reenter(now, now + 1s));
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.acquire(Desk::token('b'), now, now + 1s));
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.step_down(false, now, now + 1s));
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.acquire(Desk::token('b'), now, now + 1s));
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.step_down(true, now, now + 1s));
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.acquire(Desk::token('b'), now, now + 1s));
  TEST_ASSERT_EQUAL(1U, desk.machine.count());
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.release(NativeDelete::none, false, now, now + 1s));
  TEST_ASSERT_EQUAL(0U, desk.machine.count());
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.release(NativeDelete::none, false, now, now + 1s));
  TEST_ASSERT_FALSE(desk.machine.has_output());
  desk.hold(now, 'b');
  TEST_ASSERT_EQUAL(1U, desk.machine.count());
}

// What the server was told of the count of the hold before is nothing to tell of this one.
TEST(test_refused_reentry_of_the_next_hold_should_not_be_compensated) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(true, start, start + 1s));
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start, start + 1s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::one(), start);
  TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  desk.hold(start, 'b');
  desk.reenter(start);
  desk.fail(Status::loading, true, start);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_FALSE(desk.compensation());
}

// Also when its compensation was confirmed long ago.
TEST(test_lost_hold_should_be_unwound_behind_its_compensation_too) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.machine.handle_timeout(start + lease);
  TEST_ASSERT_TRUE(desk.compensation());
  desk.request.tag = desk.compensation_tag;
  desk.answer(Desk::one(), start + lease);
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.acquire(Desk::token('b'), start + lease, start + lease + 1s));
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.step_down(false, start + lease, start + lease + 1s));
  TEST_ASSERT_EQUAL(Status::lock_lost,
                    desk.machine.release(NativeDelete::none, true, start + lease, start + lease + 1s));
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Desk::token('b'), start + lease, start + lease + 1s));
}

// A Mutex has no frames: the next acquire may come at once.
TEST(test_lost_mutex_should_be_acquired_anew_at_once) {
  Desk desk;
  desk.hold(start);
  desk.machine.handle_timeout(start + lease);
  TEST_ASSERT_EQUAL(0U, desk.machine.count());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Desk::token('b'), start + lease, start + lease + 1s));
}

TEST(test_step_down_that_finds_the_hold_expired_should_tell_the_loss) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.step_down(false, start + lease, start + lease + 1s));
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(0U, desk.compensated_count);
  TEST_ASSERT_EQUAL(1U, desk.machine.count());
}

TEST(test_reentry_that_finds_the_hold_expired_should_tell_the_loss) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.reenter(start + lease - drift, start + lease));
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_FALSE(desk.machine.wants_request());
}

// ---- A longer lease ----------------------------------------------------------------------------------------------------

TEST(test_reentry_with_a_longer_lease_should_raise_that_of_the_hold_until_its_end) {
  constexpr LockTiming longer = {.lease = 60s};
  Desk desk(reentrant_kind);
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start + 1s, start + 2s, &longer));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.bytes.find("60000") != std::string::npos);
  TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());  // Nothing is promised before the answer.
  TEST_ASSERT_EQUAL(lease, desk.machine.timing().lease);
  desk.answer(Desk::one(), start + 1s);
  const Duration validity = 60s - drift_of(60s);
  TEST_ASSERT_EQUAL(start + 1s + validity, desk.machine.valid_until());
  TEST_ASSERT_EQUAL(start + 1s + 20s, desk.machine.renewal_due());
  TEST_ASSERT_EQUAL(start + 1s + 40s, desk.machine.risky_from());
  // So do the renewals and the steps that follow.
  desk.renew(start + 21s);
  TEST_ASSERT_TRUE(desk.bytes.find("60000") != std::string::npos);
  desk.answer(Heard("*1\r\n:1\r\n").value, start + 21s);
  TEST_ASSERT_EQUAL(start + 21s + validity, desk.machine.valid_until());
  desk.step_down(start + 22s);
  TEST_ASSERT_TRUE(desk.bytes.find("60000") != std::string::npos);
  desk.answer(Desk::one(), start + 22s);
  TEST_ASSERT_EQUAL(start + 22s + validity, desk.machine.valid_until());
  // The next hold has its own.
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, true, start + 23s, start + 24s));
  TEST_ASSERT_TRUE(desk.take_request());
  constexpr LockTiming next = {.lease = 5s};
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Desk::token('b'), start + 24s, start + 25s, &next));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.bytes.find("5000") != std::string::npos);
  desk.answer(Desk::granted(), start + 24s);
  TEST_ASSERT_EQUAL(start + 24s + 5s - drift_of(5s), desk.machine.valid_until());
}

TEST(test_reentry_with_a_shorter_lease_should_change_nothing) {
  for (const LockTiming& shorter : {LockTiming{.lease = 1s}, LockTiming{.lease = lease, .drift = 0s}}) {
    Desk desk(reentrant_kind);
    desk.hold(start);
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start + 1s, start + 2s, &shorter));
    TEST_ASSERT_TRUE(desk.take_request());
    TEST_ASSERT_EQUAL(step_of("2"), desk.bytes);
    desk.answer(Desk::one(), start + 1s);
    TEST_ASSERT_EQUAL(start + 1s + lease - drift, desk.machine.valid_until());
    TEST_ASSERT_EQUAL(lease, desk.machine.timing().lease);
  }
}

// [rule 3] Only what was confirmed for the longer lease is promised for so long.
TEST(test_lease_should_not_be_raised_by_a_reentry_that_was_not_granted) {
  constexpr LockTiming longer = {.lease = 60s};
  for (const bool refused : {false, true}) {
    Desk desk(reentrant_kind);
    desk.hold(start);
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start + 1s, start + 2s, &longer));
    TEST_ASSERT_TRUE(desk.take_request());
    desk.fail(refused ? Status::busy_script : Status::timed_out, refused, start + 2s);
    TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
    TEST_ASSERT_EQUAL(start + lease / 3, desk.machine.renewal_due());
    desk.renew(start + 3s);
    TEST_ASSERT_TRUE(desk.bytes.find("60000") == std::string::npos);
    desk.answer(Heard("*1\r\n:1\r\n").value, start + 3s);
    TEST_ASSERT_EQUAL(start + 3s + lease - drift, desk.machine.valid_until());
    desk.reenter(start + 4s);
    desk.answer(Desk::one(), start + 4s);
    TEST_ASSERT_EQUAL(start + 4s + lease - drift, desk.machine.valid_until());
  }
}

// What a renewal asked for in vain is not what the next step or the next hold asks for.
TEST(test_longer_lease_that_was_not_confirmed_should_be_forgotten) {
  constexpr LockTiming longer = {.lease = 60s};
  for (const bool steps : {false, true}) {
    Desk desk(reentrant_kind);
    desk.hold_times(2, start);
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.renew(start + 1s, start + 2s, &longer));
    TEST_ASSERT_TRUE(desk.take_request());
    TEST_ASSERT_TRUE(desk.bytes.find("60000") != std::string::npos);
    desk.fail(Status::busy_script, true, start + 1s);
    if (steps) {
      desk.step_down(start + 2s);
      TEST_ASSERT_EQUAL(step_of("1"), desk.bytes);
      desk.answer(Desk::one(), start + 2s);
      TEST_ASSERT_EQUAL(start + 2s + lease - drift, desk.machine.valid_until());
    } else {
      desk.machine.unwind(2);
      TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 2s, start + 3s));
      TEST_ASSERT_TRUE(desk.take_request());
      desk.answer(Desk::one(), start + 2s);
      desk.acquire(start + 3s, 'b');
      TEST_ASSERT_TRUE(desk.bytes.find("60000") == std::string::npos);
      desk.answer(Desk::granted(), start + 3s);
      TEST_ASSERT_EQUAL(start + 3s + lease - drift, desk.machine.valid_until());
    }
  }
}

// Its validity is no shorter than the one before, whatever the drift.
TEST(test_longer_lease_with_a_large_drift_should_promise_no_less_than_before) {
  constexpr LockTiming longer = {.lease = 11s, .drift = 5s};
  Desk desk(reentrant_kind);
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start + 1s, start + 2s, &longer));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(start + 1s + lease - drift, desk.machine.valid_until());
  TEST_ASSERT_EQUAL(Duration(11s), desk.machine.timing().lease);
}

TEST(test_longer_lease_should_be_asked_for_again_with_the_scripts_text) {
  constexpr LockTiming longer = {.lease = 60s};
  Desk desk(reentrant_kind);
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start + 1s, start + 3s, &longer));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.fail(Status::no_script, true, start + 1s);
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.bytes.find("60000") != std::string::npos);
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(start + 1s + 60s - drift_of(60s), desk.machine.valid_until());
}

TEST(test_raised_timing_should_be_no_shorter_in_anything) {
  constexpr LockTiming outer = {.lease = 10s, .drift = 0s};
  static_assert(outer.raised_by({.lease = 11s, .drift = 5s}).lease == 11s);
  static_assert(outer.raised_by({.lease = 11s, .drift = 5s}).drift == 1s);  // As long as before.
  static_assert(outer.raised_by({.lease = 20s, .drift = 1s}).drift == 1s);
  static_assert(outer.raised_by({.lease = 5s, .drift = 0s}).lease == 10s);
  static_assert(outer.raised_by({}).lease == lease_default && outer.raised_by({}).automatic());
  static_assert(LockTiming{.lease = 60s}.raised_by({}).lease == 60s &&
                LockTiming{.lease = 60s}.raised_by({}).automatic());
  static_assert(LockTiming{}.raised_by({.lease = 60s}).automatic() && !outer.raised_by({.lease = 60s}).automatic());
}

// Of a keeper's renewal for the lease before, that comes after the longer one was granted.
TEST(test_confirmation_for_a_shorter_lease_should_promise_no_more_than_that) {
  constexpr LockTiming longer = {.lease = 12s};
  Desk desk(reentrant_kind);
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start + 1s, start + 2s, &longer));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.answer(Desk::one(), start + 2s);
  TEST_ASSERT_EQUAL(start + 1s + 12s - drift_of(12s), desk.machine.valid_until());
  desk.machine.confirm(start + 2s, start + 2s + lease - drift);
  TEST_ASSERT_EQUAL(start + 1s + 12s - drift_of(12s), desk.machine.valid_until());
  desk.machine.confirm(start + 5s, start + 5s + lease - drift);
  TEST_ASSERT_EQUAL(start + 5s + lease - drift, desk.machine.valid_until());
}

// ---- What another connection says --------------------------------------------------------------------------------------

TEST(test_confirmation_should_raise_valid_until_and_end_the_doubt) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.machine.handle_timeout(start + 7s);
  TEST_ASSERT_EQUAL(LockState::at_risk, desk.machine.state());
  desk.machine.confirm(start + 7s, start + 7s + lease - drift);
  TEST_ASSERT_EQUAL(LockState::held, desk.machine.state());
  TEST_ASSERT_EQUAL(start + 7s + lease - drift, desk.machine.valid_until());
  TEST_ASSERT_EQUAL(start + 7s, desk.machine.confirmed_at());
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());  // The doubt is over before it was told.
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
}

// [rule 3] It never lowers.
TEST(test_older_confirmation_should_change_nothing) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  desk.renew(start + 4s);
  desk.answer(Heard("*1\r\n:1\r\n").value, start + 4s);
  TEST_ASSERT_EQUAL(LockEvent::renewed, desk.event());
  for (const Instant older : {start + 4s, start + 3s, start - 1h}) {
    desk.machine.confirm(older, older + lease - drift);
    TEST_ASSERT_EQUAL(start + 4s + lease - drift, desk.machine.valid_until());
    TEST_ASSERT_EQUAL(start + 4s, desk.machine.confirmed_at());
  }
}

TEST(test_older_confirmation_should_not_end_a_newer_doubt) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  desk.renew(start + 4s);
  desk.fail(Status::loading, true, start + 4s);
  desk.machine.confirm(start, start + lease - drift);
  TEST_ASSERT_EQUAL(LockState::at_risk, desk.machine.state());
  TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
}

// [rule 2] It revives nothing.
TEST(test_confirmation_should_not_revive_what_is_over) {
  Desk lost(reentrant_kind);
  lost.hold(start);
  lost.machine.handle_timeout(start + lease);
  lost.machine.confirm(start + 9s, start + 9s + lease - drift);
  TEST_ASSERT_EQUAL(LockState::lost, lost.machine.state());
  TEST_ASSERT_FALSE(lost.machine.held(start + 9s));
  Desk released(reentrant_kind);
  released.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, released.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  released.machine.confirm(start + 1s, start + 1s + lease - drift);
  TEST_ASSERT_FALSE(released.machine.held(start + 1s));
  TEST_ASSERT_EQUAL(LockState::releasing, released.machine.state());
  Desk asking(reentrant_kind);
  asking.acquire(start);
  asking.machine.confirm(start + 1s, start + 1s + lease - drift);
  TEST_ASSERT_FALSE(asking.machine.held(start + 1s));
  TEST_ASSERT_EQUAL(LockState::acquiring, asking.machine.state());
}

TEST(test_disowned_hold_should_be_lost_at_once) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.machine.disown(start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_FALSE(desk.machine.held(start + 1s));
  TEST_ASSERT_EQUAL(2U, desk.machine.count());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(0U, desk.compensated_count);
  desk.machine.disown(start + 1s);
  TEST_ASSERT_FALSE(desk.machine.has_output());
}

TEST(test_disowning_should_find_a_hold_that_has_expired) {
  Desk desk;
  desk.hold(start);
  desk.machine.disown(start + lease);
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_EQUAL(LockState::lost, desk.machine.state());
  TEST_ASSERT_TRUE(desk.compensation());
}

TEST(test_disowning_what_is_not_held_should_do_nothing) {
  Desk desk(reentrant_kind);
  desk.machine.disown(start);
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  desk.acquire(start);
  desk.machine.disown(start);
  TEST_ASSERT_EQUAL(LockState::acquiring, desk.machine.state());
  TEST_ASSERT_FALSE(desk.machine.has_output());
}

// ---- Facts -------------------------------------------------------------------------------------------------------------

TEST(test_fence_should_be_the_grants_and_stay_on_reentry_and_renewal) {
  for (const LockKind* const kind : {&fenced_kind, &fenced_mutex_kind}) {
    Desk desk(*kind);
    TEST_ASSERT_EQUAL(0U, desk.machine.fence());
    desk.acquire(start);
    desk.answer(RespValue::make_text(RespKind::bulk, "1699999999000001"), start);
    TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
    TEST_ASSERT_EQUAL(1699999999000001U, desk.machine.fence());
    TEST_ASSERT_EQUAL(1U, desk.machine.count());
    if (kind->reentrant) {
      desk.reenter(start + 1s);
      desk.answer(Desk::one(), start + 1s);
      TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
    }
    desk.renew(start + 2s);
    kind->reentrant ? desk.answer(Heard("*1\r\n:1\r\n").value, start + 2s) : desk.answer(Desk::one(), start + 2s);
    TEST_ASSERT_EQUAL(LockEvent::renewed, desk.event());
    TEST_ASSERT_EQUAL(1699999999000001U, desk.machine.fence());
  }
}

// [rule 11] No fence, no grant.
TEST(test_fenced_acquire_should_take_no_plain_grant) {
  Desk desk(fenced_kind);
  desk.acquire(start);
  desk.answer(Desk::granted(), start);
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_EQUAL(LockEvent::protocol_doubt, desk.event());
  TEST_ASSERT_FALSE(desk.machine.held(start));
  TEST_ASSERT_EQUAL(0U, desk.machine.fence());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(0U, desk.compensated_count);
}

// [rule 11] No remaining time is a grant, not even the one of a key without a TTL.
TEST(test_busy_should_tell_the_remaining_time_of_the_hold_in_the_way) {
  for (const LockKind* const kind : {&reentrant_kind, &fenced_kind, &fenced_mutex_kind})
    for (const std::int64_t remaining : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{29'999}}) {
      Desk desk(*kind);
      TEST_ASSERT_EQUAL(remaining_unknown, desk.machine.busy_for());
      desk.acquire(start);
      desk.answer(RespValue::make_integer(remaining), start);
      TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
      TEST_ASSERT_EQUAL(Status::lock_busy, desk.machine.status());
      TEST_ASSERT_EQUAL(remaining, desk.machine.busy_for());
      TEST_ASSERT_EQUAL(0U, desk.machine.fence());
      TEST_ASSERT_FALSE(desk.machine.held(start));
      // The next attempt knows nothing of it.
      desk.acquire(start, 'b');
      TEST_ASSERT_EQUAL(remaining_unknown, desk.machine.busy_for());
    }
  Desk mutex;
  mutex.acquire(start);
  mutex.answer(RespValue(), start);
  TEST_ASSERT_EQUAL(remaining_unknown, mutex.machine.busy_for());
}

TEST(test_reentrant_acquire_of_an_unknown_script_should_go_once_by_its_text) {
  Desk desk(reentrant_kind);
  desk.acquire(start);
  desk.fail(Status::no_script, true, start + 500ms);
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.bytes.find("$4\r\nEVAL\r\n") != std::string::npos);
  TEST_ASSERT_TRUE(Operation::acquire == desk.request.tag.operation);
  desk.answer(Desk::granted(), start + 600ms);
  TEST_ASSERT_EQUAL(start + 500ms + lease - drift, desk.machine.valid_until());
  Desk twice(reentrant_kind);
  twice.acquire(start);
  twice.fail(Status::no_script, true, start);
  TEST_ASSERT_TRUE(twice.take_request());
  twice.fail(Status::no_script, true, start);
  TEST_ASSERT_EQUAL(LockEvent::denied, twice.event());
  TEST_ASSERT_EQUAL(LockState::idle, twice.machine.state());
  twice.acquire(start + 1s);
  TEST_ASSERT_TRUE(twice.bytes.find("EVALSHA") != std::string::npos);
  twice.fail(Status::no_script, true, start + 2s);  // Its deadline.
  TEST_ASSERT_FALSE(twice.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::denied, twice.event());
}

TEST(test_release_should_not_be_sent_in_the_shape_of_the_one_before) {
  Desk desk;
  for (const NativeDelete native : {NativeDelete::delex, NativeDelete::none, NativeDelete::delifeq}) {
    desk.hold(start);
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(native, false, start, start + 1s));
    TEST_ASSERT_TRUE(desk.take_request());
    const char* const name = native == NativeDelete::delex     ? "DELEX"
                             : native == NativeDelete::delifeq ? "DELIFEQ"
                                                               : "EVALSHA";
    TEST_ASSERT_TRUE(desk.bytes.find(std::string("\r\n") + name + "\r\n") != std::string::npos);
    desk.answer(Desk::one(), start);
    TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  }
}

// An ordinal grows by a digit now and then.
TEST(test_request_should_have_a_token_of_any_size) {
  Desk desk(reentrant_kind);
  const auto acquire_and_release = [&](const std::string& owner, Instant now) {
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Token(ByteView(owner)), now, now + 1s));
    TEST_ASSERT_TRUE(desk.take_request());
    const std::string field = "\r\n$" + std::to_string(owner.size()) + "\r\n" + owner + "\r\n";
    TEST_ASSERT_TRUE(desk.bytes.find(field) != std::string::npos);
    desk.answer(Desk::granted(), now);
    TEST_ASSERT_EQUAL(LockEvent::granted, desk.event());
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, now, now + 1s));
    TEST_ASSERT_TRUE(desk.take_request());
    TEST_ASSERT_TRUE(desk.bytes.find(field) != std::string::npos);
    desk.answer(Desk::one(), now);
    TEST_ASSERT_EQUAL(LockEvent::released, desk.event());
  };
  for (const char* const owner : {"u:8", "u:9", "u:10", "u:11", "u:9"}) acquire_and_release(owner, start);
}

TEST(test_step_without_room_should_stay_wanted) {
  Desk desk(reentrant_kind);
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start, start + 1s));
  char space[32];
  std::size_t size = 7;
  TEST_ASSERT_EQUAL(Status::buffer_too_small, desk.machine.poll_request({space, sizeof space}, desk.request, size));
  TEST_ASSERT_EQUAL(7U, size);
  TEST_ASSERT_TRUE(desk.machine.wants_request());
  TEST_ASSERT_TRUE(desk.machine.request_compensated());
}

// ---- The table ---------------------------------------------------------------------------------------------------

TEST(test_every_transition_should_be_listed_once) {
  constexpr int count = sizeof lock_transitions / sizeof lock_transitions[0];
  for (int left = 0; left < count; ++left)
    for (int right = left + 1; right < count; ++right)
      TEST_ASSERT_FALSE(lock_transitions[left].from == lock_transitions[right].from &&
                        lock_transitions[left].input == lock_transitions[right].input);
}

TEST(test_no_transition_should_leave_a_lost_hold_for_held) {
  for (const LockTransition& transition : lock_transitions) {
    if (transition.to != LockState::held) continue;
    TEST_ASSERT_TRUE(transition.from == LockState::acquiring || transition.from == LockState::held ||
                     transition.from == LockState::at_risk);
  }
}

// The parent's hold, with all that was on its way for it.
TEST(test_forgotten_reentrant_hold_should_leave_nothing_to_unwind) {
  Desk desk(reentrant_kind);
  desk.hold_times(3, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(true, start + 1s, start + 2s));
  desk.reenter(start + 1s);
  desk.machine.forget();
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  TEST_ASSERT_EQUAL(0U, desk.machine.count());
  TEST_ASSERT_FALSE(desk.machine.held(start + 1s));
  TEST_ASSERT_FALSE(desk.machine.has_output());
  TEST_ASSERT_FALSE(desk.machine.waiting());
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_EQUAL(0U, desk.machine.count());
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  desk.hold(start + 2s, 'b');
}

TEST(test_forgotten_loss_should_leave_nothing_to_unwind) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  desk.machine.handle_timeout(start + lease);
  desk.machine.forget();
  TEST_ASSERT_FALSE(desk.machine.has_output());
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.renew(start + lease, start + lease + 1s));
  desk.hold(start + lease, 'b');
}

TEST(test_forgotten_hold_should_ask_for_nothing) {
  Desk desk;
  desk.hold(start);
  desk.machine.forget();
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.status());
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  TEST_ASSERT_FALSE(desk.machine.held(start + 1s));
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  TEST_ASSERT_FALSE(desk.compensation());
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
}

// ---- Rarely met --------------------------------------------------------------------------------------------------

namespace {

// A kind that gives whatever verdict a test wants of it.
Verdict wanted_verdict = Verdict::granted;
const LockKind obedient_kind = [] {
  LockKind kind = reentrant_kind;
  kind.decode = [](const LockKind&, Operation, const RespValue&, LockFacts&) noexcept { return wanted_verdict; };
  return kind;
}();

}  // namespace

// [rule 11] Whatever kind: a verdict that says nothing about the question is a doubt, never success.
TEST(test_verdict_that_does_not_fit_the_request_should_be_a_protocol_doubt) {
  for (const Verdict odd : {Verdict::not_ours, Verdict::refused, Verdict::unexpected}) {
    wanted_verdict = odd;
    Desk desk(obedient_kind);
    desk.acquire(start);
    desk.answer(Desk::granted(), start + 1ms);
    TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::protocol_doubt, desk.event());
    TEST_ASSERT_FALSE(desk.machine.held(start + 1ms));
    TEST_ASSERT_TRUE(desk.compensation());
  }
  for (const Verdict odd : {Verdict::busy, Verdict::unexpected}) {
    wanted_verdict = Verdict::granted;
    Desk desk(obedient_kind);
    desk.hold(start);
    desk.renew(start + 1s);
    wanted_verdict = odd;
    desk.answer(Desk::one(), start + 1s);
    TEST_ASSERT_EQUAL(LockEvent::at_risk, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::protocol_doubt, desk.event());
    TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
  }
  for (const Verdict odd : {Verdict::busy, Verdict::refused, Verdict::unexpected}) {
    wanted_verdict = Verdict::granted;
    Desk desk(obedient_kind);
    desk.hold(start);
    desk.reenter(start + 1s);
    wanted_verdict = odd;
    desk.answer(Desk::one(), start + 1s);
    TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::protocol_doubt, desk.event());
    TEST_ASSERT_EQUAL(1U, desk.machine.count());
    TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
    TEST_ASSERT_TRUE(desk.compensation());
    TEST_ASSERT_EQUAL(1U, desk.compensated_count);
  }
  for (const Verdict odd : {Verdict::busy, Verdict::refused, Verdict::unexpected}) {
    wanted_verdict = Verdict::granted;
    Desk desk(obedient_kind);
    desk.hold(start);
    TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
    TEST_ASSERT_TRUE(desk.take_request());
    wanted_verdict = odd;
    desk.answer(Desk::one(), start + 1s);
    TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
    TEST_ASSERT_EQUAL(LockEvent::protocol_doubt, desk.event());
    TEST_ASSERT_EQUAL(LockState::unknown, desk.machine.state());
    TEST_ASSERT_TRUE(desk.compensation());
  }
}

// [rule 11] A release is confirmed by one or zero alone.
TEST(test_release_should_take_no_unlisted_reply_for_success) {
  for (const RespValue& value : {RespValue::make_integer(2), RespValue::make_integer(-1), RespValue(), Desk::granted(),
                                 RespValue::make_text(RespKind::bulk, "1")})
    for (const bool posted : {false, true}) {
      Desk desk;
      desk.hold(start);
      TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, posted, start + 1s, start + 2s));
      TEST_ASSERT_TRUE(desk.take_request());
      desk.answer(value, start + 1s);
      TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
      TEST_ASSERT_EQUAL(LockEvent::protocol_doubt, desk.event());
      TEST_ASSERT_EQUAL(Status::protocol_error, desk.machine.status());
      Token token;
      TEST_ASSERT_TRUE(desk.compensation(&token));
      TEST_ASSERT_EQUAL(Desk::token('a').bytes(), token.bytes());
      TEST_ASSERT_EQUAL(0U, desk.compensated_count);
    }
}

TEST(test_release_whose_text_is_an_unknown_script_should_be_compensated) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.take_request());
  desk.fail(Status::no_script, true, start + 1s);
  TEST_ASSERT_TRUE(desk.take_request());
  desk.fail(Status::no_script, true, start + 1s);
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
}

// Another error of a native release may be that of what ran.
TEST(test_native_release_should_fall_back_only_where_nothing_ran) {
  for (const NativeDelete native : {NativeDelete::delex, NativeDelete::delifeq}) {
    for (const Status refusal : {Status::unknown_command, Status::no_permission}) {
      Desk desk;
      desk.hold(start);
      TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(native, false, start + 1s, start + 2s));
      TEST_ASSERT_TRUE(desk.take_request());
      TEST_ASSERT_TRUE(desk.request.repeatable);
      desk.fail(refusal, true, start + 1s);
      TEST_ASSERT_TRUE(desk.take_request());
      TEST_ASSERT_FALSE(desk.request.repeatable);
      TEST_ASSERT_TRUE(desk.bytes.find("EVALSHA") != std::string::npos);
    }
    for (const Status error : {Status::server_error, Status::no_script, Status::loading}) {
      Desk desk;
      desk.hold(start);
      TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(native, false, start + 1s, start + 2s));
      TEST_ASSERT_TRUE(desk.take_request());
      desk.fail(error, false, start + 1s);
      TEST_ASSERT_FALSE(desk.machine.wants_request());
      TEST_ASSERT_EQUAL(LockEvent::unclear, desk.event());
      TEST_ASSERT_EQUAL(error, desk.machine.status());
      TEST_ASSERT_TRUE(desk.compensation());
    }
  }
}

TEST(test_acquire_should_be_refused_while_at_risk) {
  Desk desk;
  desk.hold(start);
  desk.machine.handle_timeout(start + lease * 2 / 3);
  TEST_ASSERT_EQUAL(LockState::at_risk, desk.machine.state());
  TEST_ASSERT_EQUAL(Status::already_held, desk.machine.acquire(Desk::token('b'), start + lease * 2 / 3, start + lease));
  TEST_ASSERT_EQUAL(Desk::token('a').bytes(), desk.machine.token().bytes());
}

TEST(test_hold_should_be_at_risk_from_two_thirds_of_its_lease_to_its_end) {
  Desk desk;
  desk.hold(start);
  const Instant risky = start + lease / 3 * 2;
  TEST_ASSERT_EQUAL(risky, desk.machine.risky_from());
  TEST_ASSERT_EQUAL(risky - start, desk.machine.risk_after());
  TEST_ASSERT_FALSE(desk.machine.at_risk(risky - 1ns));
  TEST_ASSERT_TRUE(desk.machine.at_risk(risky));
  TEST_ASSERT_TRUE(desk.machine.at_risk(start + lease - drift - 1ns));
  TEST_ASSERT_FALSE(desk.machine.at_risk(start + lease - drift));
}

// A drift so large that the hold ends before two thirds of its lease: it is lost without having been at risk.
TEST(test_hold_whose_end_comes_before_its_risk_should_be_looked_at_then) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.configure(Key("name"), {.lease = lease, .drift = lease / 2}));
  desk.hold(start);
  TEST_ASSERT_EQUAL(start + lease / 2, desk.machine.poll_timeout());
  desk.machine.handle_timeout(desk.machine.poll_timeout());
  TEST_ASSERT_EQUAL(LockEvent::lost, desk.event());
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
  TEST_ASSERT_EQUAL(Instant::max(), desk.machine.poll_timeout());
}

// No loop turns faster than the floor, however short the lease.
TEST(test_failed_renewal_of_a_short_lease_should_wait_for_the_floor) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.configure(Key("name"), {.lease = 30ms}));
  desk.hold(start);
  desk.renew(start + 10ms);
  desk.fail(Status::timed_out, false, start + 12ms);
  TEST_ASSERT_EQUAL(start + 12ms + retry_delay_min, desk.machine.renewal_due());
}

TEST(test_only_one_renewal_should_be_wanted) {
  Desk desk;
  desk.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.renew(start + 1s, start + 2s));
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.machine.renew(start + 3s, start + 4s));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_EQUAL(start + 2s, desk.request.deadline);
  desk.answer(Desk::one(), start + 3s);
  TEST_ASSERT_EQUAL(start + 1s + lease - drift, desk.machine.valid_until());
}

// What is left of the deadline belongs to the caller: its time is over, whatever the reply was. A waiting acquire goes on.
TEST(test_unknown_script_should_not_be_asked_again_behind_the_deadline) {
  Desk acquiring(reentrant_kind);
  acquiring.acquire(start);
  acquiring.fail(Status::no_script, true, start + 1s);
  TEST_ASSERT_FALSE(acquiring.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::denied, acquiring.event());
  TEST_ASSERT_EQUAL(Status::timed_out, acquiring.machine.status());
  TEST_ASSERT_EQUAL(LockState::idle, acquiring.machine.state());  // Nothing ran, and nothing is to be taken back.
  TEST_ASSERT_FALSE(acquiring.machine.wants_compensation());

  Desk renewing;
  renewing.hold(start);
  renewing.renew(start + 1s);
  renewing.fail(Status::no_script, true, start + 2s);
  TEST_ASSERT_FALSE(renewing.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::at_risk, renewing.event());
  TEST_ASSERT_EQUAL(Status::timed_out, renewing.machine.status());

  Desk stepping(reentrant_kind);
  stepping.hold(start);
  stepping.reenter(start + 1s);
  stepping.fail(Status::no_script, true, start + 2s);
  TEST_ASSERT_FALSE(stepping.machine.wants_request());
  TEST_ASSERT_EQUAL(LockEvent::denied, stepping.event());
  TEST_ASSERT_EQUAL(Status::timed_out, stepping.machine.status());
}

// [rule 2] Each reply counts once, for what was asked.
TEST(test_reply_to_what_was_not_asked_should_count_for_nothing) {
  for (const Operation operation : {Operation::acquire, Operation::renew, Operation::step, Operation::release,
                                    Operation::compensate, Operation::query})
    for (const RespValue& value : {Desk::granted(), Desk::one(), Desk::zero(), RespValue()}) {
      Desk desk(reentrant_kind);
      desk.hold(start);
      desk.request.tag = {nullptr, desk.machine.generation(), operation};
      desk.answer(value, start + 1s);
      desk.fail(Status::wrong_type, false, start + 1s);
      TEST_ASSERT_FALSE(desk.machine.has_output());
      TEST_ASSERT_EQUAL(LockState::held, desk.machine.state());
      TEST_ASSERT_EQUAL(1U, desk.machine.count());
      TEST_ASSERT_EQUAL(start + lease - drift, desk.machine.valid_until());
    }
}

// A count that the server may not know, and a step that could not be sent: the next to be told is the true one.
TEST(test_refused_request_of_a_reentry_should_keep_the_count_unsure) {
  Desk desk(reentrant_kind);
  desk.hold_times(2, start);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.step_down(true, start + 1s, start + 2s));
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(start + 1s, start + 2s));
  desk.machine.refuse_request(Status::too_many_requests, start + 1s);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_FALSE(desk.compensation());
  desk.reenter(start + 1s);
  desk.fail(Status::out_of_memory, true, start + 1s);  // It may have taken the place of what told the count.
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_EQUAL(1U, desk.compensated_count);
}

// ---- What a driver asks ------------------------------------------------------------------------------------------

TEST(test_machine_should_wait_until_each_answer_has_come) {
  Desk desk;
  TEST_ASSERT_FALSE(desk.machine.waiting());
  TEST_ASSERT_EQUAL(Instant::max(), desk.machine.renewal_due());
  desk.acquire(start);
  TEST_ASSERT_TRUE(desk.machine.waiting());
  desk.answer(Desk::granted(), start);
  TEST_ASSERT_FALSE(desk.machine.waiting());
  TEST_ASSERT_EQUAL(start + lease / 3, desk.machine.renewal_due());
  desk.renew(start + 1s);
  TEST_ASSERT_TRUE(desk.machine.waiting());
  TEST_ASSERT_EQUAL(Instant::max(), desk.machine.renewal_due());
  desk.answer(Desk::one(), start + 1s);
  TEST_ASSERT_FALSE(desk.machine.waiting());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, start + 2s, start + 3s));
  TEST_ASSERT_TRUE(desk.take_request());
  TEST_ASSERT_TRUE(desk.machine.waiting());
  desk.answer(Desk::one(), start + 2s);
  TEST_ASSERT_FALSE(desk.machine.waiting());
}

TEST(test_plain_outcome_should_be_all_that_was_said_only_where_nothing_else_wants_attention) {
  Desk plain;
  plain.acquire(start);
  plain.answer(Desk::granted(), start);
  TEST_ASSERT_TRUE(plain.machine.has_output());
  TEST_ASSERT_TRUE(plain.machine.only_said_what_was_asked());
  TEST_ASSERT_FALSE(plain.machine.has_output());
  TEST_ASSERT_EQUAL(LockEvent::none, plain.event());
  plain.machine.handle_timeout(start + lease / 3 * 2);  // An event of another kind,
  TEST_ASSERT_FALSE(plain.machine.only_said_what_was_asked());
  TEST_ASSERT_TRUE(plain.machine.has_output());
  TEST_ASSERT_EQUAL(LockEvent::at_risk, plain.event());
  TEST_ASSERT_EQUAL(Status::ok, plain.machine.renew(start + 7s, start + 8s));  // a request,
  TEST_ASSERT_FALSE(plain.machine.only_said_what_was_asked());
  TEST_ASSERT_TRUE(plain.machine.has_output());
  Desk counted(reentrant_kind);
  counted.hold_times(2, start);
  TEST_ASSERT_EQUAL(Status::ok, counted.machine.step_down(true, start + 1s, start + 2s));  // or a compensation.
  TEST_ASSERT_FALSE(counted.machine.only_said_what_was_asked());
  TEST_ASSERT_TRUE(counted.machine.has_output());
  TEST_ASSERT_TRUE(counted.compensation());
  TEST_ASSERT_FALSE(counted.machine.has_output());
}

TEST(test_a_compensation_that_found_no_place_should_be_offered_again) {
  Desk desk;
  desk.acquire(start);
  desk.answer(Desk::granted(), start);
  desk.machine.handle_timeout(start + lease);
  TEST_ASSERT_TRUE(desk.compensation());
  TEST_ASSERT_FALSE(desk.machine.wants_compensation());
  desk.machine.put_back_compensation();
  TEST_ASSERT_TRUE(desk.machine.wants_compensation());
  TEST_ASSERT_TRUE(desk.compensation());
}

TEST(test_a_compensation_that_is_waived_should_not_be_offered) {
  Desk desk;
  desk.acquire(start);
  desk.answer(Desk::granted(), start);
  desk.machine.handle_timeout(start + lease);
  TEST_ASSERT_TRUE(desk.machine.wants_compensation());
  desk.machine.waive_compensation();
  TEST_ASSERT_FALSE(desk.machine.wants_compensation());
  TEST_ASSERT_FALSE(desk.compensation());
}

TEST(test_who_leaves_a_queue_in_which_it_does_not_stand_should_owe_what_it_owed) {
  Desk desk;
  desk.acquire(start);
  desk.answer(Desk::granted(), start);
  desk.machine.join_queue();
  TEST_ASSERT_FALSE(desk.machine.leave_queue());
  TEST_ASSERT_FALSE(desk.machine.wants_compensation());
  desk.machine.put_back_compensation();
  TEST_ASSERT_FALSE(desk.machine.leave_queue());
  TEST_ASSERT_TRUE(desk.machine.wants_compensation());
}
