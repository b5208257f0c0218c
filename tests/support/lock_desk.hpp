// SPDX-License-Identifier: MIT
//
// Desk is one LockMachine and the last request that it made, with the short ways to each state.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/core/lock_machine.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

namespace holdfast::testing {

struct Desk {
  static constexpr Duration lease = 10s;

  LockMachine machine;
  Request request;
  std::string bytes;

  explicit Desk(const LockKind& kind = mutex_kind) : machine(kind) {
    TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("name"), {.lease = lease}));
  }
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
    compensated_count = compensation.count;
    compensated_lease = compensation.lease_milliseconds;
    if (token != nullptr) *token = *compensation.token;
    return true;
  }
  ReplyTag compensation_tag;
  std::uint32_t compensated_count = 99;  // Of the last compensation.
  std::uint32_t compensated_lease = 0;

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
  // A reentrant hold of so many acquisitions, the last of them asked for at `now`.
  void hold_times(std::uint32_t count, Instant now) {
    hold(now);
    for (std::uint32_t number = 2; number <= count; ++number) {
      reenter(now);
      answer(one(), now + 1ms);
      TEST_ASSERT_EQUAL(LockEvent::granted, event());
      TEST_ASSERT_EQUAL(number, machine.count());
    }
  }
  void reenter(Instant now, Duration timeout = 1s) {
    TEST_ASSERT_EQUAL(Status::ok, machine.reenter(now, now + timeout));
    TEST_ASSERT_TRUE(take_request());
  }
  void step_down(Instant now) {
    TEST_ASSERT_EQUAL(Status::ok, machine.step_down(false, now, now + 1s));
    TEST_ASSERT_TRUE(take_request());
  }
  // The count that the request in flight would be compensated by, if the session gave it up now.
  std::uint32_t would_compensate_by() const {
    TEST_ASSERT_TRUE(request.compensation != nullptr);
    TEST_ASSERT_EQUAL(machine.token().bytes(), request.compensation->token->bytes());
    return request.compensation->count;
  }
  static RespValue granted() { return RespValue::make_text(RespKind::simple, "OK"); }
  static RespValue one() { return RespValue::make_integer(1); }
  static RespValue zero() { return RespValue::make_integer(0); }
};

}  // namespace holdfast::testing
