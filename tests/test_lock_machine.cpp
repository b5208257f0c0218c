// SPDX-License-Identifier: MIT
//
// The life of a hold, rule by rule. The rules are those of proto/lock.md, quoted as [rule N].
#include "unity_style.hpp"

#include <string>

#include "holdfast/lock_machine.hpp"
#include "holdfast/mutex_kind.hpp"
#include "lock_transitions.hpp"
#include "printers.hpp"
#include "scripts.hpp"

using namespace holdfast;

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
constexpr Duration lease = 10s;
constexpr Duration drift = lease / 100 + 2ms;

// One machine and the last request that it made.
struct Desk {
  LockMachine machine{mutex_kind};
  Request request;
  std::string bytes;

  Desk() { TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("name"), {.lease = lease})); }
  static Token token(char digit) { return Token(ByteView(std::string(token_text_size, digit))); }

  // Takes the wanted request. False if there is none.
  bool take_request() {
    if (!machine.wants_request()) return false;
    char space[4096];
    std::size_t size = 0;
    request = {};
    TEST_ASSERT_EQUAL(Status::ok, machine.poll_request({space, sizeof space}, request, size));
    bytes.assign(space, size);
    return true;
  }
  void answer(const RespValue& value, Instant now) {
    machine.handle_reply({.tag = request.tag, .outcome = Status::ok, .nothing_ran = false, .value = value}, now);
  }
  void fail(Status outcome, bool nothing_ran, Instant now) {
    machine.handle_reply({.tag = request.tag, .outcome = outcome, .nothing_ran = nothing_ran, .value = {}}, now);
  }
  LockEvent event() { return machine.poll_event(); }
  bool compensation(Token* token = nullptr) {
    ReplyTag tag;
    Compensation compensation;
    if (!machine.poll_compensation(tag, compensation)) return false;
    compensation_tag = tag;
    if (token != nullptr) *token = *compensation.token;
    return true;
  }
  ReplyTag compensation_tag;

  void acquire(Instant now, char digit = 'a') {
    TEST_ASSERT_EQUAL(Status::ok, machine.acquire(token(digit), now, now + 1s));
    TEST_ASSERT_TRUE(take_request());
  }
  void hold(Instant now, char digit = 'a') {
    acquire(now, digit);
    answer(granted(), now + 1ms);
    TEST_ASSERT_EQUAL(LockEvent::granted, event());
  }
  void renew(Instant now) {
    TEST_ASSERT_EQUAL(Status::ok, machine.renew(now, now + 1s));
    TEST_ASSERT_TRUE(take_request());
  }
  static RespValue granted() { return RespValue::make_text(RespKind::simple, "OK"); }
  static RespValue one() { return RespValue::make_integer(1); }
  static RespValue zero() { return RespValue::make_integer(0); }
};

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

TEST(test_acquire_should_be_refused_while_held_or_asked) {
  Desk desk;
  desk.acquire(start);
  TEST_ASSERT_EQUAL(Status::already_held, desk.machine.acquire(Desk::token('b'), start, start + 1s));
  desk.answer(Desk::granted(), start + 1ms);
  TEST_ASSERT_EQUAL(Status::already_held, desk.machine.acquire(Desk::token('b'), start, start + 1s));
  TEST_ASSERT_EQUAL(Desk::token('a').bytes(), desk.machine.token().bytes());
}

TEST(test_refused_request_should_leave_nothing_behind) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Desk::token('a'), start, start + 1s));
  desk.machine.refuse_request(Status::too_many_requests, start);
  TEST_ASSERT_EQUAL(LockEvent::denied, desk.event());
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  TEST_ASSERT_FALSE(desk.compensation());
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

TEST(test_forgotten_hold_should_ask_for_nothing) {
  Desk desk;
  desk.hold(start);
  desk.machine.forget();
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  TEST_ASSERT_FALSE(desk.machine.held(start + 1s));
  TEST_ASSERT_FALSE(desk.machine.wants_request());
  TEST_ASSERT_FALSE(desk.compensation());
  TEST_ASSERT_EQUAL(LockEvent::none, desk.event());
}
