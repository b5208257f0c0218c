// SPDX-License-Identifier: MIT
//
// What is asked of a server about a lock, and what each answer means: all that a server may say, and all that it may not.
#include "holdfast/core/inquiry.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "heard.hpp"
#include "printers.hpp"
#include "resp_text.hpp"
#include "scripts.hpp"
#include "unity_style.hpp"
#include "written_line.hpp"

using namespace holdfast;
using namespace holdfast::testing;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

const Key key("name");

std::string number(std::int64_t value) { return ":" + std::to_string(value) + "\r\n"; }

// What lock_info.lua says.
struct InfoReply {
  std::string type = bulk("hash");
  std::string remaining = number(9000);
  std::string owner = bulk("me:1");
  std::string count = bulk("2");
  std::string fields = number(1);
  std::string mode = bulk("");
  std::string fence = bulk("7");
  std::string text() const { return "*7\r\n" + type + remaining + owner + count + fields + mode + fence; }
};

// What semaphore_info.lua says.
struct PermitsReply {
  std::string permits = number(5);
  std::string taken = number(2);
  std::string owner = bulk("me");
  std::string remaining = number(800);
  std::string text() const { return "*4\r\n" + permits + taken + owner + remaining; }
};

std::string queue_text(std::int64_t waiting, std::string_view lines) {
  return "*2\r\n" + number(waiting) + bulk(lines);
}

// The answer to a question that is asked once.
LockInfo info_of(const InfoReply& reply) {
  Inquiry inquiry;
  LockInfo info;
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_info(key, info));
  const Heard heard(reply.text());
  TEST_ASSERT_TRUE(inquiry.take(heard.value));
  Status outcome = Status::ok;
  TEST_ASSERT_FALSE(inquiry.asks_on(outcome));
  TEST_ASSERT_EQUAL(Status::ok, outcome);
  return info;
}

bool takes_info(const std::string& reply) {
  Inquiry inquiry;
  LockInfo info;
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_info(key, info));
  return inquiry.take(Heard(reply).value);
}

// A string that may be a semaphore is asked about, and its permits are told.
struct SemaphoreDesk {
  explicit SemaphoreDesk(const char* number_text = "3") {
    TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_info(key, info));
    const Heard heard(InfoReply{.type = bulk("string"), .owner = bulk(number_text), .count = bulk("1")}.text());
    TEST_ASSERT_TRUE(inquiry.take(heard.value));
    Status outcome = Status::ok;
    asks_on = inquiry.asks_on(outcome);
  }
  bool take(const PermitsReply& reply) { return inquiry.take(Heard(reply.text()).value); }
  Status end(Status outcome = Status::ok) {
    TEST_ASSERT_FALSE(inquiry.asks_on(outcome));
    return outcome;
  }
  Inquiry inquiry;
  LockInfo info;
  bool asks_on = false;
};

struct QueueDesk {
  QueueDesk() { TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_queue(key, queue)); }
  bool take(const std::string& reply) { return inquiry.take(Heard(reply).value); }
  Inquiry inquiry;
  LockQueue queue;
};

Words words_of(const Inquiry& inquiry) {
  WrittenLine written;
  CommandLine& line = written;
  for (const Argument& argument : inquiry.arguments()) line.add(argument.bytes());
  return written.words();
}
std::string text_of(ByteView bytes) { return std::string(bytes.string_view()); }

}  // namespace

// ---- What is asked -----------------------------------------------------------------------------------------------

TEST(test_each_question_should_be_its_script_with_the_key_and_what_stands_beside_it) {
  Inquiry inquiry;
  LockInfo info;
  LockQueue queue;
  bool done = false;
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_info(key, info));
  TEST_ASSERT_TRUE((words_of(inquiry) ==
                    Words{"EVAL", text_of(scripts::lock_info.text), "2", "name", "redisson_lock_token:{name}"}));
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_permits(key, info));
  TEST_ASSERT_TRUE((words_of(inquiry) == Words{"EVAL", text_of(scripts::semaphore_info.text), "1", "name"}));
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_queue(key, queue));
  TEST_ASSERT_TRUE((words_of(inquiry) == Words{"EVAL", text_of(scripts::fair_queue.text), "1", "name"}));
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_release(key, done));
  TEST_ASSERT_TRUE((words_of(inquiry) == Words{"EVAL", text_of(scripts::force_release.text), "1", "name"}));
}

TEST(test_nothing_should_be_asked_about_a_key_that_is_none) {
  Inquiry inquiry;
  LockInfo info;
  LockQueue queue;
  bool done = false;
  const Key none("");
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_info(none, info));
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_permits(none, info));
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_queue(none, queue));
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_release(none, done));
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_fenced_set(none, 1, "value", done));
}

TEST(test_a_fence_should_be_one_that_a_server_can_count_to) {
  Inquiry inquiry;
  bool written = false;
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_fenced_set(key, 0, "value", written));
  TEST_ASSERT_EQUAL(Status::invalid_argument,
                    inquiry.begin_fenced_set(key, std::uint64_t{INT64_MAX} + 1, "value", written));
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_fenced_set(key, INT64_MAX, "value", written));
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_fenced_set(key, 1, "value", written));
  TEST_ASSERT_EQUAL(7, inquiry.arguments().count());
}

TEST(test_a_value_should_be_as_long_as_the_limit_and_no_longer) {
  Inquiry inquiry;
  bool written = false;
  const std::string longest(fenced_value_size_max, 'x');
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_fenced_set(key, 1, ByteView(longest), written));
  const std::string longer(fenced_value_size_max + 1, 'x');
  TEST_ASSERT_EQUAL(Status::buffer_too_small, inquiry.begin_fenced_set(key, 1, ByteView(longer), written));
}

// ---- Who holds it ------------------------------------------------------------------------------------------------

TEST(test_the_form_should_follow_the_type_and_the_mode) {
  struct Case {
    const char *type, *mode;
    LockForm form;
    const char* text;
  };
  const Case cases[] = {
      {"none", "", LockForm::free, "free"},           {"string", "", LockForm::mutex, "mutex"},
      {"hash", "", LockForm::reentrant, "reentrant"}, {"hash", "read", LockForm::read, "read"},
      {"hash", "write", LockForm::write, "write"},    {"hash", "wrote", LockForm::other, "other"},
      {"zset", "", LockForm::other, "other"},         {"list", "read", LockForm::other, "other"},
  };
  for (const Case& it : cases) {
    const LockInfo info = info_of({.type = bulk(it.type), .mode = bulk(it.mode)});
    TEST_ASSERT_TRUE(info.form == it.form);
    TEST_ASSERT_EQUAL(std::string(it.text), std::string(to_string(info.form)));
  }
  TEST_ASSERT_EQUAL(std::string("semaphore"), std::string(to_string(LockForm::semaphore)));
  TEST_ASSERT_EQUAL(std::string("invalid"), std::string(to_string(static_cast<LockForm>(99))));
}

TEST(test_who_holds_a_lock_should_be_told_with_its_count_its_fence_and_its_time) {
  const LockInfo info = info_of({});
  TEST_ASSERT_EQUAL(ByteView("me:1"), info.owner.view());
  TEST_ASSERT_EQUAL(2, info.count);
  TEST_ASSERT_EQUAL(1, info.owners);
  TEST_ASSERT_EQUAL(7, info.fence);
  TEST_ASSERT_TRUE(info.remaining == 9s);
  TEST_ASSERT_EQUAL(0, info.permits);
}

TEST(test_the_mode_should_be_no_reader_and_a_writer_should_be_one_owner) {
  TEST_ASSERT_EQUAL(2, info_of({.fields = number(3), .mode = bulk("read")}).owners);
  TEST_ASSERT_EQUAL(1, info_of({.fields = number(3), .mode = bulk("write")}).owners);
  TEST_ASSERT_EQUAL(3, info_of({.fields = number(3)}).owners);
  TEST_ASSERT_EQUAL(0, info_of({.fields = number(0)}).owners);
}

TEST(test_a_time_should_be_none_without_an_end_and_zero_where_it_is_over) {
  constexpr std::int64_t most = Duration::max().count() / 1'000'000;
  TEST_ASSERT_TRUE(info_of({.remaining = number(-1)}).remaining == Duration::max());
  TEST_ASSERT_TRUE(info_of({.remaining = number(-2)}).remaining == Duration::zero());
  TEST_ASSERT_TRUE(info_of({.remaining = number(0)}).remaining == Duration::zero());
  TEST_ASSERT_TRUE(info_of({.remaining = number(1)}).remaining == 1ms);
  TEST_ASSERT_TRUE(info_of({.remaining = number(most)}).remaining == std::chrono::milliseconds(most));
  TEST_ASSERT_TRUE(info_of({.remaining = number(most + 1)}).remaining == Duration::max());
}

// The count and the fence are bytes that another client wrote.
TEST(test_what_is_no_number_should_count_as_none) {
  const LockInfo info = info_of({.count = bulk("many"), .fence = bulk("-1")});
  TEST_ASSERT_EQUAL(0, info.count);
  TEST_ASSERT_EQUAL(0, info.fence);
  TEST_ASSERT_EQUAL(UINT64_MAX / 2, info_of({.fence = bulk("9223372036854775807")}).fence);
  TEST_ASSERT_EQUAL(0, info_of({.fence = bulk("9223372036854775808")}).fence);
  TEST_ASSERT_EQUAL(0, info_of({.count = bulk("9223372036854775808")}).count);
}

TEST(test_an_answer_of_another_shape_should_not_be_taken) {
  const std::string nothing = "$-1\r\n";
  TEST_ASSERT_TRUE(takes_info(InfoReply().text()));
  TEST_ASSERT_FALSE(takes_info("*8\r\n" + InfoReply().text().substr(4) + nothing));
  TEST_ASSERT_FALSE(takes_info("*6\r\n" + InfoReply{.fence = ""}.text().substr(4)));
  TEST_ASSERT_FALSE(takes_info(":7\r\n"));
  TEST_ASSERT_FALSE(takes_info(InfoReply{.type = nothing}.text()));
  TEST_ASSERT_FALSE(takes_info(InfoReply{.remaining = bulk("9000")}.text()));
  TEST_ASSERT_FALSE(takes_info(InfoReply{.owner = number(1)}.text()));
  TEST_ASSERT_FALSE(takes_info(InfoReply{.count = number(1)}.text()));
  TEST_ASSERT_FALSE(takes_info(InfoReply{.fields = bulk("1")}.text()));
  TEST_ASSERT_FALSE(takes_info(InfoReply{.fields = number(-1)}.text()));
  TEST_ASSERT_FALSE(takes_info(InfoReply{.mode = nothing}.text()));
  TEST_ASSERT_FALSE(takes_info(InfoReply{.fence = number(7)}.text()));
}

TEST(test_a_failure_should_leave_what_is_told_as_it_was) {
  Inquiry inquiry;
  LockInfo info;
  info.count = 42;
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_info(key, info));
  for (const Status failure : {Status::timed_out, Status::wrong_type, Status::no_permission}) {
    Status outcome = failure;
    TEST_ASSERT_FALSE(inquiry.asks_on(outcome));
    TEST_ASSERT_EQUAL(failure, outcome);
    TEST_ASSERT_EQUAL(42, info.count);
  }
}

// One object asks many questions: nothing of an answer before is in the next one.
TEST(test_an_answer_should_have_nothing_of_the_one_before) {
  Inquiry inquiry;
  LockInfo info;
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_info(key, info));
  TEST_ASSERT_TRUE(inquiry.take(Heard(InfoReply{.fence = bulk("77")}.text()).value));
  Status outcome = Status::ok;
  TEST_ASSERT_FALSE(inquiry.asks_on(outcome));
  TEST_ASSERT_EQUAL(77, info.fence);
  TEST_ASSERT_TRUE(info.remaining != Duration::zero());
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_info(key, info));
  TEST_ASSERT_TRUE(
      inquiry.take(Heard(InfoReply{.remaining = number(0), .count = bulk("many"), .fence = bulk("")}.text()).value));
  TEST_ASSERT_FALSE(inquiry.asks_on(outcome));
  TEST_ASSERT_EQUAL(0, info.fence);
  TEST_ASSERT_EQUAL(0, info.count);
  TEST_ASSERT_EQUAL(Duration::zero(), info.remaining);
}

TEST(test_a_question_that_failed_should_not_be_asked_on_for_the_one_before) {
  SemaphoreDesk desk;
  TEST_ASSERT_TRUE(desk.asks_on);
  TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_info(key, desk.info));
  TEST_ASSERT_EQUAL(Status::timed_out, desk.end(Status::timed_out));
}

// ---- Permits -----------------------------------------------------------------------------------------------------

TEST(test_a_string_that_is_a_number_should_be_asked_for_permits) {
  for (const char* const text : {"3", "0", "-2", "18446744073709551615"}) {
    const SemaphoreDesk desk(text);
    TEST_ASSERT_TRUE(desk.asks_on);
    TEST_ASSERT_TRUE((words_of(desk.inquiry) == Words{"EVAL", text_of(scripts::semaphore_info.text), "1", "name"}));
  }
  for (const char* const text : {"", "-", "--2", "3a", "+3", "18446744073709551616"}) {
    const SemaphoreDesk desk(text);
    TEST_ASSERT_FALSE(desk.asks_on);
    TEST_ASSERT_TRUE(desk.info.form == LockForm::mutex);
  }
  // The owner of a hash may look like a number.
  TEST_ASSERT_TRUE(info_of({.owner = bulk("3")}).form == LockForm::reentrant);
}

TEST(test_permits_should_be_told_with_those_that_are_taken) {
  SemaphoreDesk desk;
  TEST_ASSERT_TRUE(desk.info.form == LockForm::free);  // Untouched until all is known.
  TEST_ASSERT_TRUE(desk.inquiry.found().form == LockForm::mutex);
  TEST_ASSERT_TRUE(desk.take({}));
  TEST_ASSERT_EQUAL(Status::ok, desk.end());
  TEST_ASSERT_TRUE(desk.info.form == LockForm::semaphore);
  TEST_ASSERT_EQUAL(ByteView("me"), desk.info.owner.view());
  TEST_ASSERT_EQUAL(5, desk.info.permits);
  TEST_ASSERT_EQUAL(2, desk.info.owners);
  TEST_ASSERT_EQUAL(1, desk.info.count);
  TEST_ASSERT_EQUAL(0, desk.info.fence);
  TEST_ASSERT_TRUE(desk.info.remaining == 800ms);
}

TEST(test_a_semaphore_of_which_nothing_is_taken_should_have_no_holder) {
  SemaphoreDesk desk;
  TEST_ASSERT_TRUE(desk.take({.taken = number(0), .owner = bulk(""), .remaining = number(0)}));
  TEST_ASSERT_EQUAL(Status::ok, desk.end());
  TEST_ASSERT_EQUAL(0, desk.info.count);
  TEST_ASSERT_EQUAL(0, desk.info.owners);
  TEST_ASSERT_TRUE(desk.info.remaining == Duration::zero());
}

TEST(test_a_permit_without_a_near_end_should_have_none) {
  constexpr std::int64_t most = Duration::max().count() / 1'000'000;
  SemaphoreDesk last;
  TEST_ASSERT_TRUE(last.take({.remaining = number(most)}));
  TEST_ASSERT_EQUAL(Status::ok, last.end());
  TEST_ASSERT_TRUE(last.info.remaining == std::chrono::milliseconds(most));
  SemaphoreDesk desk;
  TEST_ASSERT_TRUE(desk.take({.remaining = number(most + 1)}));
  TEST_ASSERT_EQUAL(Status::ok, desk.end());
  TEST_ASSERT_TRUE(desk.info.remaining == Duration::max());
}

// No permits: the string is what it looks like. So it is where what stands beside it is another's, or not for this user.
TEST(test_a_string_without_permits_should_stay_a_string) {
  SemaphoreDesk none;
  TEST_ASSERT_TRUE(none.take({.permits = number(0), .taken = number(0), .owner = bulk(""), .remaining = number(0)}));
  TEST_ASSERT_EQUAL(Status::ok, none.end());
  TEST_ASSERT_TRUE(none.info.form == LockForm::mutex);
  TEST_ASSERT_EQUAL(ByteView("3"), none.info.owner.view());
  for (const Status refusal : {Status::wrong_type, Status::no_permission}) {
    SemaphoreDesk desk;
    TEST_ASSERT_EQUAL(Status::ok, desk.end(refusal));
    TEST_ASSERT_TRUE(desk.info.form == LockForm::mutex);
    TEST_ASSERT_EQUAL(ByteView("3"), desk.info.owner.view());
  }
  SemaphoreDesk desk;
  TEST_ASSERT_EQUAL(Status::timed_out, desk.end(Status::timed_out));
  TEST_ASSERT_TRUE(desk.info.form == LockForm::free);
}

TEST(test_permits_of_another_shape_should_not_be_taken) {
  SemaphoreDesk desk;
  TEST_ASSERT_FALSE(desk.inquiry.take(Heard("*3\r\n:5\r\n:2\r\n" + bulk("me")).value));
  TEST_ASSERT_FALSE(desk.take({.permits = bulk("5")}));
  TEST_ASSERT_FALSE(desk.take({.permits = number(-1)}));
  TEST_ASSERT_FALSE(desk.take({.taken = bulk("2")}));
  TEST_ASSERT_FALSE(desk.take({.taken = number(-1)}));
  TEST_ASSERT_FALSE(desk.take({.owner = number(2)}));
  TEST_ASSERT_FALSE(desk.take({.remaining = bulk("1")}));
  TEST_ASSERT_FALSE(desk.take({.remaining = number(-1)}));
  TEST_ASSERT_TRUE(desk.inquiry.found().form == LockForm::mutex);
}

TEST(test_another_inquiry_should_go_on_where_one_asked_on) {
  const SemaphoreDesk first;
  Inquiry second;
  LockInfo info = first.inquiry.found();
  TEST_ASSERT_EQUAL(Status::ok, second.begin_permits(key, info));
  info = LockInfo();
  Status outcome = Status::no_permission;
  TEST_ASSERT_FALSE(second.asks_on(outcome));
  TEST_ASSERT_EQUAL(Status::ok, outcome);
  TEST_ASSERT_EQUAL(ByteView("3"), info.owner.view());
}

// ---- Who waits ---------------------------------------------------------------------------------------------------

TEST(test_a_queue_should_be_told_in_its_order) {
  QueueDesk desk;
  TEST_ASSERT_TRUE(desk.take(queue_text(3, "1500 20 first\n40 -1 second one\n0 0 \n")));
  TEST_ASSERT_EQUAL(3, desk.queue.waiting);
  TEST_ASSERT_EQUAL(3, desk.queue.told);
  TEST_ASSERT_EQUAL(ByteView("first"), desk.queue.waiters[0].token.view());
  TEST_ASSERT_TRUE(desk.queue.waiters[0].waited == 1500ms);
  TEST_ASSERT_TRUE(desk.queue.waiters[0].heard == 20ms);
  TEST_ASSERT_EQUAL(ByteView("second one"), desk.queue.waiters[1].token.view());
  TEST_ASSERT_TRUE(desk.queue.waiters[1].waited == 40ms);
  TEST_ASSERT_TRUE(desk.queue.waiters[1].heard == Duration::max());
  TEST_ASSERT_EQUAL(ByteView(""), desk.queue.waiters[2].token.view());
}

TEST(test_an_empty_queue_should_be_told_and_a_last_line_without_its_end) {
  QueueDesk desk;
  TEST_ASSERT_TRUE(desk.take(queue_text(1, "7 8 only")));
  TEST_ASSERT_EQUAL(1, desk.queue.told);
  TEST_ASSERT_EQUAL(ByteView("only"), desk.queue.waiters[0].token.view());
  TEST_ASSERT_TRUE(desk.take(queue_text(0, "")));
  TEST_ASSERT_EQUAL(0, desk.queue.waiting);
  TEST_ASSERT_EQUAL(0, desk.queue.told);
}

TEST(test_a_queue_longer_than_the_room_should_be_told_in_part) {
  QueueDesk desk;
  std::string lines;
  for (std::size_t waiter = 0; waiter <= waiters_told_max; ++waiter) lines += "1 1 w" + std::to_string(waiter) + "\n";
  TEST_ASSERT_TRUE(desk.take(queue_text(100, lines)));
  TEST_ASSERT_EQUAL(100, desk.queue.waiting);
  TEST_ASSERT_EQUAL(waiters_told_max, desk.queue.told);
  TEST_ASSERT_EQUAL(ByteView("w7"), desk.queue.waiters[waiters_told_max - 1].token.view());
}

TEST(test_a_queue_of_another_shape_should_not_be_taken_and_nothing_of_it_told) {
  QueueDesk desk;
  TEST_ASSERT_TRUE(desk.take(queue_text(1, "7 8 only")));
  TEST_ASSERT_FALSE(desk.take("*3\r\n:1\r\n" + bulk("7 8 x") + ":1\r\n"));
  TEST_ASSERT_FALSE(desk.take("*2\r\n" + bulk("1") + bulk("7 8 x")));
  TEST_ASSERT_FALSE(desk.take("*2\r\n:1\r\n:1\r\n"));
  TEST_ASSERT_FALSE(desk.take(queue_text(-1, "7 8 x")));
  TEST_ASSERT_FALSE(desk.take(queue_text(2, "7 8 x\nlong 8 y\n")));
  TEST_ASSERT_FALSE(desk.take(queue_text(1, "\n")));
  TEST_ASSERT_EQUAL(1, desk.queue.waiting);
  TEST_ASSERT_EQUAL(ByteView("only"), desk.queue.waiters[0].token.view());
}

// ---- Yes or no ---------------------------------------------------------------------------------------------------

TEST(test_yes_and_no_should_be_told_and_nothing_else_taken) {
  Inquiry inquiry;
  bool released = false;
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_release(key, released));
  TEST_ASSERT_TRUE(inquiry.take(Heard(":1\r\n").value));
  TEST_ASSERT_TRUE(released);
  for (const char* const reply : {":2\r\n", ":-1\r\n", "+OK\r\n", "$1\r\n0\r\n", "$-1\r\n", "*0\r\n"})
    TEST_ASSERT_FALSE(inquiry.take(Heard(reply).value));
  TEST_ASSERT_TRUE(released);
  TEST_ASSERT_TRUE(inquiry.take(Heard(":0\r\n").value));
  TEST_ASSERT_FALSE(released);
  // It is over with its outcome, whatever that is.
  for (const Status status : {Status::ok, Status::wrong_type, Status::no_permission}) {
    Status outcome = status;
    TEST_ASSERT_FALSE(inquiry.asks_on(outcome));
    TEST_ASSERT_EQUAL(status, outcome);
  }
}
