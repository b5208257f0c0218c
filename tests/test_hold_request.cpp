// SPDX-License-Identifier: MIT
#include "holdfast/core/hold_request.hpp"

#include <memory>
#include <string>
#include <vector>

#include "holdfast/core/fair_kind.hpp"
#include "holdfast/core/multi_kind.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/read_write_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/core/semaphore_kind.hpp"
#include "node_desk.hpp"
#include "printers.hpp"

static void setUp() {}
static void tearDown() {}

using namespace holdfast;
using namespace holdfast::testing;

namespace {

const std::string random_token(32, 'a');
const std::string uuid = "01234567-89ab-4cde-8f01-23456789abcd";
const std::string ordinal_token = uuid + ":7";

const LockKind* const random_kinds[] = {&mutex_kind, &announced_mutex_kind, &semaphore_kind};
const LockKind* const ordinal_kinds[] = {&reentrant_kind, &fenced_kind, &fair_kind, &read_kind, &write_kind};

const std::string& token_of(const LockKind& kind) {
  return kind.token == TokenSource::random ? random_token : ordinal_token;
}

// Asks by a node that is connected, as a driver does.
struct Asking {
  Asking() {
    desk.connect();
    desk.sent.clear();
  }
  Status ask(HoldRequest& request) {
    const Status status = request.ask(request, *desk.node, {.requester = this}, desk.now);
    desk.transmit();
    return status;
  }
  // What a reply comes to; protocol_error for one that is not taken.
  Status answer(HoldRequest& request, std::string_view bytes) {
    desk.heard.clear();
    desk.transmit();
    while (receive_piece(desk.node->session(), desk.now, bytes)) {
      Reply reply;
      while (desk.node->session().poll_reply(reply, desk.now)) {
        Status outcome = reply.outcome;
        if (outcome == Status::ok && !request.take(request, reply.value)) return Status::protocol_error;
        TEST_ASSERT_FALSE(request.asks_on(request, outcome));
        return outcome;
      }
    }
    return Status::timed_out;
  }
  NodeDesk desk;
};

}  // namespace

TEST(test_tokens_of_other_shapes_should_be_refused_before_anything_is_sent) {
  const std::string nothing_of_ours[] = {"",
                                         "a",
                                         std::string(31, 'a'),
                                         std::string(33, 'a'),
                                         std::string(32, 'A'),
                                         std::string(32, 'g'),
                                         std::string(31, 'a') + " ",
                                         std::string(31, 'a') + std::string(1, '\0'),
                                         std::string(64, 'a'),
                                         std::string(65, 'a'),
                                         std::string(70000, 'a'),
                                         "mode",
                                         uuid,
                                         uuid + ":",
                                         uuid + ":-",
                                         uuid + ":--1",
                                         uuid + ":1:write",
                                         uuid + ":1 ",
                                         uuid + ":x",
                                         uuid + ";1",
                                         uuid + ":123456789012345678901",
                                         "0123456789ab-4cde-8f01-23456789abcd--:1",
                                         "01234567-89AB-4cde-8f01-23456789abcd:1",
                                         "g1234567-89ab-4cde-8f01-23456789abcd:1"};
  const auto refuse = [](const LockKind& kind, const std::string& token) {
    HoldRequest request;
    TEST_MESSAGE(kind.name << " " << token.substr(0, 70));
    TEST_ASSERT_FALSE(is_token_of(kind, token));
    TEST_ASSERT_EQUAL(Status::invalid_argument, request.begin_release(kind, Key("k"), token));
    TEST_ASSERT_EQUAL(Status::invalid_argument, request.begin_renewal(kind, Key("k"), token, {}));
  };
  for (const LockKind* kind : random_kinds) {
    for (const std::string& token : nothing_of_ours) refuse(*kind, token);
    refuse(*kind, ordinal_token);
  }
  for (const LockKind* kind : ordinal_kinds) {
    for (const std::string& token : nothing_of_ours) refuse(*kind, token);
    refuse(*kind, random_token);
  }
  TEST_ASSERT_TRUE(is_token_of(reentrant_kind, ByteView(uuid + ":12345678901234567890")));
  // Only a hold that may stay where it is used has a negative ordinal.
  TEST_ASSERT_TRUE(is_token_of(fair_kind, ByteView(uuid + ":-7")));
  refuse(reentrant_kind, uuid + ":-7");
}

TEST(test_keys_timings_and_kinds_that_cannot_be_should_be_refused) {
  HoldRequest request;
  TEST_ASSERT_EQUAL(Status::invalid_argument, request.begin_release(mutex_kind, Key(""), random_token));
  const std::string long_key(key_size_max + 1, 'k');
  TEST_ASSERT_EQUAL(Status::invalid_argument, request.begin_release(mutex_kind, Key(long_key), random_token));
  TEST_ASSERT_EQUAL(Status::invalid_argument, request.begin_release(multi_kind, Key("k"), ordinal_token));
  for (const Duration lease : {Duration(0), lease_min - 1ms, lease_max + 1ms, Duration(1500us)})
    TEST_ASSERT_EQUAL(Status::invalid_argument,
                      request.begin_renewal(mutex_kind, Key("k"), random_token, {.lease = lease}));
}

TEST(test_a_lease_that_the_kind_forbids_should_be_refused) {
  const auto renewed = [](const LockKind& kind, Duration lease) {
    HoldRequest request;
    return request.begin_renewal(kind, Key("k"), token_of(kind), {.lease = lease});
  };
  TEST_ASSERT_EQUAL(Status::ok, renewed(read_kind, read_lease_max));
  TEST_ASSERT_EQUAL(Status::invalid_argument, renewed(read_kind, read_lease_max + std::chrono::milliseconds(1)));
  TEST_ASSERT_EQUAL(Status::invalid_argument, renewed(read_kind, lease_max));
  for (const LockKind* kind : {&mutex_kind, &semaphore_kind, &reentrant_kind, &fair_kind, &write_kind})
    TEST_ASSERT_EQUAL(Status::ok, renewed(*kind, lease_max));
}

TEST(test_a_request_should_be_that_of_the_kind_by_text) {
  for (const auto& kinds : {std::vector<const LockKind*>(std::begin(random_kinds), std::end(random_kinds)),
                            std::vector<const LockKind*>(std::begin(ordinal_kinds), std::end(ordinal_kinds))})
    for (const LockKind* kind : kinds)
      for (const Operation operation : {Operation::renew, Operation::release}) {
        TEST_MESSAGE(kind->name);
        Asking asking;
        HoldRequest request;
        const std::string& token = token_of(*kind);
        TEST_ASSERT_EQUAL(Status::ok, operation == Operation::renew
                                          ? request.begin_renewal(*kind, Key("k"), token, {.lease = 10s})
                                          : request.begin_release(*kind, Key("k"), token));
        TEST_ASSERT_EQUAL(Status::ok, asking.ask(request));
        char space[transmit_size_max];
        CommandLine line({space, sizeof space});
        const Token copy{ByteView(token)};
        kind->fill(line, *kind, operation, RequestForm::by_text, {.key = Key("k"), .token = &copy, .lease = 10s});
        std::size_t size = 0;
        TEST_ASSERT_EQUAL(Status::ok, line.finish(size));
        TEST_ASSERT_EQUAL(std::string(space, size), asking.desk.sent);
      }
}

TEST(test_replies_should_be_judged_by_the_kind) {
  struct Case {
    const LockKind& kind;
    bool renews;
    const char* reply;
    Status status;
  };
  const Case cases[] = {
      {mutex_kind, true, ":1\r\n", Status::ok},
      {mutex_kind, true, ":0\r\n", Status::lock_lost},
      {mutex_kind, true, "+OK\r\n", Status::protocol_error},
      {mutex_kind, false, ":1\r\n", Status::ok},
      {mutex_kind, false, ":0\r\n", Status::lock_lost},
      {mutex_kind, false, "$-1\r\n", Status::protocol_error},
      {mutex_kind, false, "-WRONGTYPE no\r\n", Status::wrong_type},
      {mutex_kind, true, "-READONLY no\r\n", Status::read_only},
      {reentrant_kind, true, "*1\r\n:1\r\n", Status::ok},
      {reentrant_kind, true, "*1\r\n:0\r\n", Status::lock_lost},
      {reentrant_kind, true, "*1\r\n:-1\r\n", Status::server_error},
      {reentrant_kind, true, ":1\r\n", Status::protocol_error},
      {semaphore_kind, false, ":0\r\n", Status::lock_lost},
  };
  for (const Case& it : cases) {
    TEST_MESSAGE(it.kind.name << " " << it.reply);
    Asking asking;
    HoldRequest request;
    const std::string& token = token_of(it.kind);
    TEST_ASSERT_EQUAL(Status::ok, it.renews ? request.begin_renewal(it.kind, Key("k"), token, {.lease = 10s})
                                            : request.begin_release(it.kind, Key("k"), token));
    TEST_ASSERT_EQUAL(Status::ok, asking.ask(request));
    TEST_ASSERT_EQUAL(it.status, asking.answer(request, it.reply));
  }
}

TEST(test_a_renewal_should_count_from_before_it_was_sent_less_drift) {
  Asking asking;
  HoldRequest request;
  TEST_ASSERT_EQUAL(Status::ok, request.begin_renewal(mutex_kind, Key("k"), random_token, {.lease = 10s}));
  const Instant sent_at = asking.desk.now;
  TEST_ASSERT_EQUAL(Status::ok, asking.ask(request));
  asking.desk.now = asking.desk.now + 300ms;
  TEST_ASSERT_EQUAL(Status::ok, asking.answer(request, ":1\r\n"));
  TEST_ASSERT_TRUE(sent_at + 10s - drift_of(10s) == request.valid_until());
}

TEST(test_a_reply_that_was_lost_should_be_unknown) {
  HoldRequest request;
  for (Status outcome : {Status::timed_out, Status::transport_closed, Status::cancelled, Status::outcome_unknown}) {
    TEST_ASSERT_FALSE(request.asks_on(request, outcome));
    TEST_ASSERT_EQUAL(Status::outcome_unknown, outcome);
  }
  Status outcome = Status::not_connected;  // Nothing was sent.
  TEST_ASSERT_FALSE(request.asks_on(request, outcome));
  TEST_ASSERT_EQUAL(Status::not_connected, outcome);
}

TEST(test_a_request_should_be_given_up_when_its_time_is_over) {
  Asking asking;
  HoldRequest request;
  TEST_ASSERT_EQUAL(Status::ok, request.begin_release(mutex_kind, Key("k"), random_token));
  TEST_ASSERT_EQUAL(Status::ok, asking.ask(request));
  asking.desk.heard.clear();
  const Duration timeout = asking.desk.node->config().request_timeout;
  for (const bool over : {false, true}) {
    asking.desk.node->session().handle_timeout(asking.desk.now + timeout - (over ? 0ns : 1ns));
    asking.desk.poll_replies();
    TEST_ASSERT_EQUAL(over ? 1U : 0U, asking.desk.heard.size());
  }
  TEST_ASSERT_EQUAL(Status::timed_out, asking.desk.heard[0].outcome);
}

TEST(test_a_request_without_a_place_should_be_refused) {
  Asking asking;
  int other = 0;
  const Argument ping[] = {"PING"};
  while (asking.desk.node->session().in_flight() < in_flight_max)
    TEST_ASSERT_EQUAL(Status::ok, asking.desk.node->ask({ping, 1}, {.requester = &other}, asking.desk.now));
  HoldRequest request;
  TEST_ASSERT_EQUAL(Status::ok, request.begin_release(mutex_kind, Key("k"), random_token));
  TEST_ASSERT_EQUAL(Status::too_many_requests, asking.ask(request));
  TEST_ASSERT_EQUAL(std::size_t{in_flight_max}, asking.desk.node->session().in_flight());
}

TEST(test_a_request_without_room_should_be_refused) {
  Asking asking;
  int other = 0;
  const std::string text(asking.desk.node->session().request_size() - 100, 'x');
  const Argument echo[] = {"ECHO", ByteView(text)};
  TEST_ASSERT_EQUAL(Status::ok, asking.desk.node->ask({echo, 2}, {.requester = &other}, asking.desk.now));
  HoldRequest request;
  TEST_ASSERT_EQUAL(Status::ok, request.begin_release(mutex_kind, Key("k"), random_token));
  TEST_ASSERT_EQUAL(Status::too_many_requests,
                    request.ask(request, *asking.desk.node, {.requester = &asking}, asking.desk.now));
  TEST_ASSERT_EQUAL(1U, asking.desk.node->session().in_flight());
}

// It takes nothing back.
TEST(test_a_request_should_need_no_place_among_what_is_to_be_taken_back) {
  Asking asking;
  std::vector<std::unique_ptr<Locked>> locks;
  while (asking.desk.node->session().may_compensate()) {
    locks.push_back(std::make_unique<Locked>());
    locks.back()->acquire(asking.desk.now);
    asking.desk.node->submit(locks.back()->machine, locks.back().get(), asking.desk.now);
    TEST_ASSERT_TRUE(locks.size() < in_flight_max);
  }
  HoldRequest request;
  TEST_ASSERT_EQUAL(Status::ok, request.begin_release(mutex_kind, Key("k"), random_token));
  TEST_ASSERT_EQUAL(Status::ok, asking.ask(request));
}
