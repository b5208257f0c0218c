// SPDX-License-Identifier: MIT
//
// One call of a lock on one server, without a socket: what is asked of the machine and of the server.
#include "holdfast/core/node_task.hpp"

#include <string>
#include <string_view>

#include "heard.hpp"
#include "holdfast/core/mutex_options.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "node_desk.hpp"
#include "printers.hpp"
#include "recorder.hpp"
#include "scripts.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

const TaskSettings settings = {.request_timeout = 500ms, .max_poll = 10s};
const std::string granted = "+OK\r\n";
const std::string busy = "$-1\r\n";

// A driver of one call. Its lock announces its releases, and a refusal of it does not tell the remaining time.
struct CallDesk : NodeDesk {
  explicit CallDesk(const LockKind& kind = kind_of(MutexOptions{.announce = true})) : machine(kind) {
    TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key(ByteView("k")), {.lease = 10s}));
    connect();
    transmit();
    sent.clear();
  }
  TaskAct step() {
    TaskFacts facts = task.facts(now);
    facts.kept = true;
    facts.listening = listening;
    facts.woken = woken;
    facts.confirmed = listening ? 1 : 0;
    return task.life().step(facts);
  }
  void acquire(Duration wait) { task.begin_acquire(now, now + wait, now + wait + 500ms, settings); }
  // As far as the reply to what is asked.
  void ask() {
    TaskAct act = step();
    if (act == TaskAct::attempt) {
      woken = false;
      act = step();
    }
    TEST_ASSERT_EQUAL(TaskAct::ask, act);
    const Status status = task.ask(Token(ByteView(std::string(32, 't'))), now);
    task.submit(listening, now);
    task.life().handle_asked(status);
    transmit();
  }
  // Replies are the machine's, and the task's.
  void answer(std::string_view bytes) {
    receive(bytes);
    for (const Reply& reply : heard) {
      told_more = task.note(reply);
      if (reply.tag.operation != Operation::query) machine.handle_reply(reply, now);
      (void)machine.only_said_what_was_asked();
    }
    heard.clear();
  }
  void plan() {
    TEST_ASSERT_EQUAL(TaskAct::listen, step());
    listening = true;
    task.plan(now, 1, least);
    transmit();
  }
  // After the answer has been dealt with: how long it sleeps if nobody wakes it.
  Duration sleeps() {
    TEST_ASSERT_EQUAL(TaskAct::sleep, step());
    return task.life().poll_timeout(woken, 1) - now;
  }
  bool asks_remaining() const { return sent.find("PTTL") != std::string::npos; }

  LockMachine machine;
  NodeTask task{machine, *node, &machine};
  bool listening = false;
  bool woken = false;
  bool told_more = false;
};

}  // namespace

TEST(test_acquire_should_be_over_when_the_server_has_granted_it) {
  CallDesk desk;
  desk.acquire(0s);
  desk.ask();
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  desk.answer(granted);
  TEST_ASSERT_EQUAL(TaskAct::over, desk.step());
  TEST_ASSERT_EQUAL(Status::ok, desk.task.life().status());
  TEST_ASSERT_TRUE(desk.machine.held(desk.now));
}

TEST(test_a_try_that_nobody_has_woken_should_ask_along_what_is_left) {
  CallDesk desk;
  desk.acquire(100s);
  desk.ask();
  TEST_ASSERT_FALSE(desk.asks_remaining());  // It does not listen yet.
  desk.answer(busy);
  desk.plan();
  desk.now = desk.now + 1s;
  desk.sent.clear();
  desk.ask();
  TEST_ASSERT_TRUE(desk.asks_remaining());
  desk.answer(busy + ":300\r\n");
  TEST_ASSERT_TRUE(desk.told_more);
  desk.plan();
  TEST_ASSERT_TRUE(desk.sleeps() < 400ms);
}

// Who found the lock held has taken nothing that was in the way of others.
TEST(test_a_try_that_was_refused_should_not_stand_back) {
  CallDesk desk;
  desk.acquire(100s);
  desk.ask();
  desk.answer(busy);
  TEST_ASSERT_EQUAL(TaskAct::listen, desk.step());
  desk.task.plan(desk.now, 1, UINT16_MAX);
  TEST_ASSERT_TRUE(desk.task.life().poll_timeout(true, 1) - desk.now <= retry_delay_min);
}

TEST(test_a_woken_try_should_ask_what_is_left_only_if_it_was_refused) {
  CallDesk desk;
  desk.acquire(100s);
  desk.listening = true;
  desk.ask();
  desk.answer(busy + ":-1\r\n");
  desk.plan();
  TEST_ASSERT_TRUE(desk.sleeps() == 10s);  // max_poll.
  desk.woken = true;
  desk.now = desk.now + 1s;
  desk.sent.clear();
  desk.ask();
  TEST_ASSERT_FALSE(desk.asks_remaining());
  desk.answer(busy);
  desk.plan();
  TEST_ASSERT_TRUE(desk.asks_remaining());
  TEST_ASSERT_TRUE(desk.sleeps() == 10s);
  desk.answer(":300\r\n");
  TEST_ASSERT_TRUE(desk.told_more);
  desk.task.plan_anew(desk.now, 1, least);
  TEST_ASSERT_TRUE(desk.sleeps() < 400ms);
}

TEST(test_what_was_left_of_one_hold_should_not_be_taken_for_the_next) {
  CallDesk desk;
  desk.acquire(100s);
  desk.ask();
  desk.answer(busy);
  desk.plan();
  desk.now = desk.now + 10s;
  desk.ask();
  desk.answer(busy + ":300\r\n");
  desk.plan();
  desk.now = desk.now + 1s;
  desk.ask();
  desk.answer(busy);  // The answer to the question is still on its way.
  desk.plan();
  TEST_ASSERT_TRUE(desk.sleeps() == 10s);
}

TEST(test_a_question_should_have_the_answer_as_a_duration) {
  const struct {
    const char* reply;
    Duration remaining;
  } cases[] = {{":1500\r\n", 1500ms}, {":-1\r\n", remaining_unlimited}, {":-2\r\n", 0s}, {":0\r\n", 0s}};
  for (const auto& [reply, remaining] : cases) {
    CallDesk desk;
    desk.task.begin(Call::question, desk.now + 500ms, settings);
    desk.ask();
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
    desk.answer(reply);
    TEST_ASSERT_EQUAL(TaskAct::over, desk.step());
    TEST_ASSERT_EQUAL(Status::ok, desk.task.life().status());
    TEST_ASSERT_TRUE(remaining == desk.task.remaining());
  }
}

TEST(test_an_answer_of_another_shape_should_end_the_question_and_the_connection) {
  CallDesk desk;
  desk.task.begin(Call::question, desk.now + 500ms, settings);
  desk.ask();
  desk.answer("+OK\r\n");
  TEST_ASSERT_EQUAL(TaskAct::over, desk.step());
  TEST_ASSERT_EQUAL(Status::protocol_error, desk.task.life().status());
  TEST_ASSERT_TRUE(desk.node->session().state() == SessionState::failed);
}

// ---- Who is told of it -------------------------------------------------------------------------------------------

namespace {

// A hold of one client, which a witness follows.
struct WitnessedDesk : NodeDesk {
  WitnessedDesk() {
    node->use_meter(&recorder);
    TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("k"), {.lease = 10s}));
    connect();
    (void)recorder.take();
    TEST_ASSERT_EQUAL(Status::ok, machine.acquire(Token(ByteView(std::string(32, 't'))), now, now + 500ms));
    answer(granted);
    TEST_ASSERT_TRUE(machine.held(now));
    TEST_ASSERT_EQUAL(std::string(), recorder.take());  // The call tells of that.
  }
  void submit() {
    if (machine.wants_request()) node->submit(machine, &machine, now);
    transmit();
  }
  // What the machine wants is sent, and answered.
  void answer(std::string_view bytes) {
    submit();
    receive(bytes);
    for (const Reply& reply : heard) NodeTask::take(machine, *node, reply, now);
    heard.clear();
    while (machine.poll_event() != LockEvent::none) {}
  }
  void renew() { TEST_ASSERT_EQUAL(Status::ok, machine.renew(now, now + 500ms)); }

  Recorder recorder;
  LockMachine machine{mutex_kind};
};

}  // namespace

TEST(test_a_witness_should_be_told_of_each_renewal_and_how_long_it_took) {
  WitnessedDesk desk;
  desk.now = desk.now + 1s;
  desk.renew();
  desk.submit();
  desk.now = desk.now + 7ns;
  desk.answer(":1\r\n");
  TEST_ASSERT_EQUAL(std::string("renewed k ok 7"), desk.recorder.take());
  // What goes once more, by text, is not answered yet.
  desk.renew();
  desk.answer("-NOSCRIPT No matching script.\r\n");
  TEST_ASSERT_EQUAL(std::string(), desk.recorder.take());
  desk.answer(":1\r\n");
  TEST_ASSERT_EQUAL(std::string("renewed k ok 0"), desk.recorder.take());
  desk.now = desk.now + 2ns;
  desk.renew();
  desk.answer(":0\r\n");
  TEST_ASSERT_EQUAL(std::string("renewed k lock_lost 2"), desk.recorder.take());
}

TEST(test_a_witness_should_be_told_of_a_release_only_where_it_finds_the_hold_lost) {
  WitnessedDesk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, desk.now, desk.now + 500ms));
  desk.answer(":1\r\n");
  TEST_ASSERT_EQUAL(LockState::idle, desk.machine.state());
  TEST_ASSERT_EQUAL(std::string(), desk.recorder.take());
  WitnessedDesk other;
  TEST_ASSERT_EQUAL(Status::ok, other.machine.release(NativeDelete::none, false, other.now, other.now + 500ms));
  other.now = other.now + 5ns;
  other.answer(":0\r\n");
  TEST_ASSERT_EQUAL(Status::lock_lost, other.machine.status());
  TEST_ASSERT_EQUAL(std::string("lost_unnoticed k lock_lost 5"), other.recorder.take());
}

TEST(test_a_witness_should_not_be_told_of_replies_to_a_hold_that_is_over) {
  WitnessedDesk desk;
  desk.renew();
  desk.submit();
  desk.machine.forget();
  desk.answer(":0\r\n");
  TEST_ASSERT_EQUAL(std::string(), desk.recorder.take());
}

TEST(test_a_witness_should_be_told_of_losses_and_of_grants_without_a_question) {
  WitnessedDesk desk;
  NodeTask::tell_loss(desk.machine, *desk.node, false);
  NodeTask::tell_loss(desk.machine, *desk.node, true);
  NodeTask::tell_grant(desk.machine, *desk.node);
  TEST_ASSERT_EQUAL(std::string("lost k ok 0, lost_unnoticed k ok 0, acquired k ok 0"), desk.recorder.take());
  // Without a witness nobody is told.
  const NodeDesk other;
  NodeTask::tell_loss(desk.machine, *other.node, false);
  NodeTask::tell_grant(desk.machine, *other.node);
  TEST_ASSERT_EQUAL(std::string(), desk.recorder.take());
}

// ---- What is to be taken back ------------------------------------------------------------------------------------

TEST(test_a_compensation_for_which_there_is_no_place_should_stay_with_its_machine) {
  NodeDesk desk;
  desk.connect();
  LockMachine machine{mutex_kind};
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("k"), {.lease = 10s}));
  TEST_ASSERT_TRUE(NodeTask::pay(machine, *desk.node, &machine));  // There is none.
  TEST_ASSERT_EQUAL(Status::ok, machine.acquire(Token(ByteView(std::string(32, 't'))), desk.now, desk.now + 500ms));
  desk.node->submit(machine, &machine, desk.now);
  desk.transmit();
  desk.receive(granted);
  for (const Reply& reply : desk.heard) machine.handle_reply(reply, desk.now);
  desk.now = machine.valid_until();
  machine.handle_timeout(desk.now);
  TEST_ASSERT_TRUE(machine.wants_compensation());
  Session& session = desk.node->session();
  std::size_t taken = 0;
  for (; session.may_compensate(); ++taken) {
    const Token token(ByteView(std::to_string(taken)));
    TEST_ASSERT_EQUAL(Status::ok,
                      session.compensate({}, {.kind = &mutex_kind, .key = Key("o"), .token = &token, .count = 0}));
  }
  TEST_ASSERT_TRUE(taken != 0);
  TEST_ASSERT_FALSE(NodeTask::pay(machine, *desk.node, &machine));
  TEST_ASSERT_TRUE(machine.wants_compensation());
}

// ---- Questions of others -----------------------------------------------------------------------------------------

namespace {

// Asks twice, and takes integers.
struct TwoQuestions : Question {
  TwoQuestions() : Question{ask_it, take_it, ask_it_on} {}
  static Status ask_it(Question&, Node& node, const ReplyTag& tag, Instant now) noexcept {
    const Argument words[] = {ByteView("PING")};
    return node.ask(words, tag, now);
  }
  static bool take_it(Question& self, const RespValue& value) noexcept {
    ++static_cast<TwoQuestions&>(self).taken;
    if (!value.is(RespKind::integer)) return false;
    static_cast<TwoQuestions&>(self).sum += value.integer();
    return true;
  }
  static bool ask_it_on(Question& self, Status& outcome) noexcept {
    if (outcome == Status::loading) outcome = Status::not_held;
    return outcome == Status::ok && ++static_cast<TwoQuestions&>(self).answers < 2;
  }
  std::int64_t sum = 0;
  int taken = 0;
  int answers = 0;
};

struct QuestionDesk : CallDesk {
  QuestionDesk() {
    task.set_question(&question);
    task.begin(Call::question, now + 500ms, settings);
  }
  TwoQuestions question;
};

}  // namespace

TEST(test_a_question_should_be_asked_again_for_as_long_as_it_wants) {
  QuestionDesk desk;
  desk.ask();
  TEST_ASSERT_TRUE(desk.task.waiting());
  TEST_ASSERT_TRUE(desk.sent.find("PING") != std::string::npos);
  desk.answer(":3\r\n");
  TEST_ASSERT_FALSE(desk.told_more);
  TEST_ASSERT_FALSE(desk.task.waiting());
  Status outcome = Status::ok;
  TEST_ASSERT_TRUE(desk.task.asks_on(outcome));
  TEST_ASSERT_EQUAL(Status::ok, desk.task.ask(Token(), desk.now));
  desk.transmit();
  desk.answer(":4\r\n");
  TEST_ASSERT_FALSE(desk.task.asks_on(outcome));
  TEST_ASSERT_EQUAL(7, desk.question.sum);
  outcome = Status::loading;
  TEST_ASSERT_FALSE(desk.task.asks_on(outcome));
  TEST_ASSERT_EQUAL(Status::not_held, outcome);
  desk.task.set_question(nullptr);
  TEST_ASSERT_FALSE(desk.task.asks_on(outcome));
}

TEST(test_an_answer_that_a_question_does_not_take_should_end_the_connection) {
  QuestionDesk desk;
  desk.ask();
  desk.answer("+PONG\r\n");
  TEST_ASSERT_FALSE(desk.told_more);
  TEST_ASSERT_FALSE(desk.task.waiting());
  TEST_ASSERT_EQUAL(Status::protocol_error, desk.node->session().failure());
  TEST_ASSERT_EQUAL(Status::protocol_error, desk.task.facts(desk.now).answer);
  TEST_ASSERT_EQUAL(SessionState::failed, desk.node->session().state());
}

TEST(test_a_refused_question_should_be_its_refusal_and_leave_the_connection) {
  QuestionDesk desk;
  desk.ask();
  desk.answer("-LOADING Redis is loading the dataset in memory\r\n");
  TEST_ASSERT_FALSE(desk.task.waiting());
  TEST_ASSERT_EQUAL(Status::loading, desk.task.facts(desk.now).answer);
  TEST_ASSERT_EQUAL(0, desk.question.taken);  // It is no answer to it.
  TEST_ASSERT_TRUE(desk.node->session().ready());
}

TEST(test_the_answer_to_a_question_of_before_should_not_be_taken) {
  QuestionDesk desk;
  desk.ask();
  TEST_ASSERT_EQUAL(Status::ok, desk.task.ask(Token(), desk.now));
  desk.transmit();
  desk.answer(":3\r\n");
  TEST_ASSERT_TRUE(desk.task.waiting());
  TEST_ASSERT_EQUAL(0, desk.question.sum);
  desk.answer(":4\r\n");
  TEST_ASSERT_EQUAL(4, desk.question.sum);
}

TEST(test_a_remaining_time_should_be_none_unlimited_or_what_the_server_says) {
  constexpr std::int64_t most = Duration::max().count() / 1'000'000;
  TEST_ASSERT_TRUE(remaining_of(-1) == remaining_unlimited);
  TEST_ASSERT_TRUE(remaining_of(most + 1) == remaining_unlimited);
  TEST_ASSERT_TRUE(remaining_of(most) == std::chrono::milliseconds(most));
  TEST_ASSERT_TRUE(remaining_of(1) == 1ms);
  TEST_ASSERT_TRUE(remaining_of(0) == Duration::zero());
  TEST_ASSERT_TRUE(remaining_of(-2) == Duration::zero());
}

// ---- Counted holds -----------------------------------------------------------------------------------------------

namespace {

struct CountedDesk : NodeDesk {
  CountedDesk() {
    TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("k"), {.lease = 10s}));
    connect();
    transmit();
    sent.clear();
  }
  void begin(Call call) {
    if (call == Call::acquire)
      task.begin_acquire(now, now, now + 500ms, settings);
    else
      task.begin(call, now + 500ms, settings);
  }
  // What was sent for this call, which the server answers so.
  std::string call(Call call, std::string_view bytes) {
    begin(call);
    sent.clear();
    TEST_ASSERT_EQUAL(Status::ok, task.ask(Token(ByteView("uuid:1")), now));
    task.submit(false, now);
    transmit();
    const std::string asked = sent;
    receive(bytes);
    for (const Reply& reply : heard) {
      (void)task.note(reply);
      machine.handle_reply(reply, now);
    }
    heard.clear();
    while (machine.poll_event() != LockEvent::none) {}
    task.life().abandon(Status::ok);
    return asked;
  }
  static bool asks(const std::string& bytes, const Script& script) {
    return bytes.find(std::string(script.sha.bytes().string_view())) != std::string::npos;
  }
  LockMachine machine{reentrant_kind};
  NodeTask task{machine, *node, &machine};
};

}  // namespace

TEST(test_a_counted_hold_should_be_stepped_up_and_down_and_released_at_last) {
  CountedDesk desk;
  TEST_ASSERT_TRUE(desk.asks(desk.call(Call::acquire, "+OK\r\n"), scripts::reentrant_acquire));
  TEST_ASSERT_TRUE(desk.task.unconfirmed() == desk.task.life().confirms());
  TEST_ASSERT_TRUE(desk.asks(desk.call(Call::acquire, ":1\r\n"), scripts::reentrant_step));
  TEST_ASSERT_EQUAL(2, desk.machine.count());
  TEST_ASSERT_TRUE(desk.asks(desk.call(Call::renew, "*1\r\n:1\r\n"), scripts::reentrant_renew));
  TEST_ASSERT_TRUE(desk.asks(desk.call(Call::release, ":1\r\n"), scripts::reentrant_step));
  TEST_ASSERT_EQUAL(1, desk.machine.count());
  TEST_ASSERT_TRUE(desk.machine.held(desk.now));
  TEST_ASSERT_TRUE(desk.asks(desk.call(Call::release, ":1\r\n"), scripts::reentrant_release));
  TEST_ASSERT_EQUAL(0, desk.machine.count());
  TEST_ASSERT_TRUE(desk.asks(desk.call(Call::acquire, "+OK\r\n"), scripts::reentrant_acquire));
}

TEST(test_a_mutex_should_not_be_stepped) {
  WitnessedDesk desk;
  NodeTask task(desk.machine, *desk.node, &desk.machine);
  task.begin_acquire(desk.now, desk.now, desk.now + 500ms, settings);
  TEST_ASSERT_EQUAL(Status::already_held, task.ask(Token(ByteView("t")), desk.now));
}

// Its refusals tell it.
TEST(test_what_is_left_should_not_be_asked_where_a_refusal_tells_it) {
  CountedDesk desk;
  desk.task.begin_acquire(desk.now, desk.now + 100s, desk.now + 101s, settings);
  TEST_ASSERT_EQUAL(Status::ok, desk.task.ask(Token(ByteView("uuid:1")), desk.now));
  desk.task.submit(true, desk.now);
  desk.transmit();
  TEST_ASSERT_TRUE(desk.sent.find("PTTL") == std::string::npos);
}

// ---- Of a release that had not left ------------------------------------------------------------------------------

TEST(test_a_compensation_of_this_hold_should_be_the_answer_to_its_release) {
  struct Case {
    std::string_view answer;
    bool this_hold, deleted;
  };
  for (const Case& it : {Case{":1\r\n", true, true}, Case{":0\r\n", true, false}, Case{"-NOPERM no\r\n", true, false},
                         Case{":1\r\n", false, false}}) {
    CallDesk desk;
    desk.acquire(0s);
    desk.ask();
    desk.answer(granted);
    TEST_ASSERT_EQUAL(TaskAct::over, desk.step());
    desk.task.begin(Call::release, desk.now + 500ms, settings);
    TEST_ASSERT_EQUAL(TaskAct::ask, desk.step());
    desk.task.life().handle_asked(desk.task.ask(Token(), desk.now));
    const ReplyTag tag = {.requester = &desk.machine, .generation = desk.machine.generation()};
    desk.machine.refuse_request(Status::not_connected, desk.now);
    TaskFacts facts = desk.task.facts(desk.now);
    facts.link = Link::coming;
    facts.released = true;
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.task.life().step(facts));
    TEST_ASSERT_EQUAL(TaskStage::compensation, desk.task.life().stage());
    // Another answer of the hold is none to that.
    const Reply other = {
        .tag = {.requester = tag.requester, .generation = tag.generation, .operation = Operation::renew},
        .outcome = Status::ok,
        .nothing_ran = false,
        .value = RespValue::make_integer(1)};
    TEST_ASSERT_FALSE(desk.task.note(other));
    TEST_ASSERT_EQUAL(TaskAct::sleep, desk.task.life().step(facts));
    const Heard heard(std::string(it.answer));
    const Reply reply = {.tag = {.requester = tag.requester,
                                 .generation = tag.generation + (it.this_hold ? 0 : 2),
                                 .operation = Operation::compensate},
                         .outcome = heard.value.is(RespKind::error) ? Status::no_permission : Status::ok,
                         .nothing_ran = false,
                         .value = heard.value};
    TEST_ASSERT_FALSE(desk.task.note(reply));
    const TaskAct act = desk.task.life().step(facts);
    TEST_ASSERT_EQUAL(it.this_hold ? TaskAct::over : TaskAct::sleep, act);
    if (it.this_hold) TEST_ASSERT_EQUAL(it.deleted ? Status::ok : Status::not_connected, desk.task.life().status());
  }
}

// ---- What is left of the hold in the way -------------------------------------------------------------------------

TEST(test_what_a_refusal_tells_should_be_waited_out_without_another_question) {
  CallDesk desk(reentrant_kind);
  desk.acquire(100s);
  desk.listening = true;
  for (const bool woken : {false, true, false}) {
    desk.sent.clear();
    desk.woken = woken;
    desk.ask();
    desk.answer(":300\r\n");
    TEST_ASSERT_FALSE(desk.told_more);
    desk.plan();
    TEST_ASSERT_TRUE(desk.sleeps() >= 300ms && desk.sleeps() < 400ms);
    TEST_ASSERT_FALSE(desk.asks_remaining());
    desk.now = desk.now + 1s;
  }
}

TEST(test_only_a_number_in_answer_to_this_attempt_should_tell_what_is_left) {
  for (const char* const answer : {"+OK\r\n", "-NOPERM no\r\n", "$3\r\n300\r\n"}) {
    CallDesk desk;
    desk.acquire(100s);
    desk.listening = true;
    desk.ask();
    TEST_ASSERT_TRUE(desk.asks_remaining());
    desk.answer(busy + answer);
    TEST_ASSERT_FALSE(desk.told_more);
    TEST_ASSERT_TRUE(desk.node->session().ready());
    desk.plan();
    TEST_ASSERT_TRUE(desk.sleeps() == 10s);
  }
  // The answer to the attempt before says nothing of who is in the way now.
  CallDesk desk;
  desk.acquire(100s);
  desk.listening = true;
  desk.ask();
  desk.answer(busy);
  desk.plan();
  desk.now = desk.now + 10s;
  desk.ask();
  desk.answer(":300\r\n" + busy);
  TEST_ASSERT_FALSE(desk.told_more);
  desk.plan();
  TEST_ASSERT_TRUE(desk.sleeps() == 10s);
}

TEST(test_an_attempt_that_has_nothing_to_send_should_ask_nothing_along) {
  CallDesk desk;
  desk.listening = true;
  desk.task.submit(true, desk.now);
  desk.transmit();
  TEST_ASSERT_EQUAL("", desk.sent);
  // A renewal is no attempt.
  desk.acquire(0s);
  desk.listening = false;
  desk.ask();
  desk.answer(granted);
  TEST_ASSERT_EQUAL(TaskAct::over, desk.step());
  desk.sent.clear();
  desk.listening = true;
  desk.task.begin(Call::renew, desk.now + 500ms, settings);
  desk.ask();
  TEST_ASSERT_FALSE(desk.sent.empty());
  TEST_ASSERT_FALSE(desk.asks_remaining());
}

TEST(test_each_question_should_begin_without_the_answer_of_the_last) {
  CallDesk desk;
  desk.task.begin(Call::question, desk.now + 500ms, settings);
  desk.ask();
  desk.answer(":1500\r\n");
  TEST_ASSERT_EQUAL(TaskAct::over, desk.step());
  TEST_ASSERT_TRUE(desk.task.remaining() == 1500ms);
  desk.task.begin(Call::question, desk.now + 500ms, settings);
  desk.ask();
  desk.answer("-LOADING Redis is loading the dataset in memory\r\n");
  TEST_ASSERT_EQUAL(Status::loading, desk.task.facts(desk.now).answer);
  TEST_ASSERT_FALSE(desk.task.remaining() == 1500ms);
}

TEST(test_a_question_that_finds_no_room_should_not_be_waited_for) {
  CallDesk desk;
  desk.task.begin(Call::question, desk.now + 500ms, settings);
  const Argument ping[] = {ByteView("PING")};
  while (desk.node->ask(ping, {}, desk.now) == Status::ok) {}
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.task.ask(Token(), desk.now));
  TEST_ASSERT_FALSE(desk.task.waiting());
}

// ---- Confirmed by replicas ---------------------------------------------------------------------------------------

TEST(test_a_hold_should_be_confirmed_by_replicas_once_and_not_when_it_is_acquired_again) {
  constexpr TaskSettings acked = {.request_timeout = 500ms, .max_poll = 10s, .acks_wait = 200ms};
  CallDesk desk(reentrant_kind);
  const auto acquire = [&] {
    desk.task.begin_acquire(desk.now, desk.now, desk.now + 500ms, acked);
    desk.ask();
    TEST_ASSERT_TRUE(desk.task.waiting());
    return desk.task.unconfirmed();
  };
  TEST_ASSERT_TRUE(acquire());
  desk.answer(granted);
  desk.task.life().abandon(Status::ok);
  TEST_ASSERT_FALSE(desk.task.unconfirmed());
  // It counts also while one that acquires it again waits for a connection or for room.
  desk.task.begin_acquire(desk.now, desk.now, desk.now + 500ms, acked);
  TEST_ASSERT_FALSE(desk.task.unconfirmed());
  desk.task.life().abandon(Status::not_connected);
  TEST_ASSERT_FALSE(acquire());
}

// ---- Whose reply it is -------------------------------------------------------------------------------------------

TEST(test_what_was_taken_back_should_be_answered_to_who_had_it) {
  NodeDesk desk;
  desk.connect();
  LockMachine machine{mutex_kind};
  int owner = 0;
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("k"), {.lease = 10s}));
  TEST_ASSERT_EQUAL(Status::ok, machine.acquire(Token(ByteView(std::string(32, 't'))), desk.now, desk.now + 500ms));
  desk.node->submit(machine, &owner, desk.now);
  desk.receive(granted);
  for (const Reply& reply : desk.heard) machine.handle_reply(reply, desk.now);
  desk.heard.clear();
  desk.now = machine.valid_until();
  machine.handle_timeout(desk.now);
  TEST_ASSERT_TRUE(machine.wants_compensation());
  TEST_ASSERT_TRUE(NodeTask::pay(machine, *desk.node, &owner));
  TEST_ASSERT_FALSE(machine.wants_compensation());
  TEST_ASSERT_EQUAL(1U, desk.node->session().compensations_pending());
  desk.sent.clear();
  desk.receive(":1\r\n");
  TEST_ASSERT_TRUE(desk.sent.find(std::string(32, 't')) != std::string::npos);
  TEST_ASSERT_EQUAL(1U, desk.heard.size());
  TEST_ASSERT_TRUE(desk.heard[0].tag.requester == &owner);
  TEST_ASSERT_TRUE(desk.heard[0].tag.operation == Operation::compensate);
  TEST_ASSERT_EQUAL(0U, desk.node->session().compensations_pending());
}

TEST(test_a_witness_should_not_be_told_of_answers_but_to_renewals_and_releases) {
  WitnessedDesk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, desk.now, desk.now + 500ms));
  desk.answer(":1\r\n");
  TEST_ASSERT_EQUAL(std::string(), desk.recorder.take());
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.acquire(Token(ByteView(std::string(32, 'u'))), desk.now, desk.now + 1s));
  desk.answer(busy);
  TEST_ASSERT_EQUAL(Status::lock_busy, desk.machine.status());
  TEST_ASSERT_EQUAL(std::string(), desk.recorder.take());
}

// ---- What is seen of machine and node ----------------------------------------------------------------------------

TEST(test_a_call_should_see_whether_a_connection_is_there_or_comes_and_why_not) {
  CallDesk desk;
  TEST_ASSERT_TRUE(desk.task.facts(desk.now).link == Link::ready);
  desk.now = desk.now + 10s;
  desk.close();
  TaskFacts facts = desk.task.facts(desk.now);
  TEST_ASSERT_TRUE(facts.link == Link::coming);
  TEST_ASSERT_EQUAL(Status::transport_closed, facts.link_failure);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.node->dialer().handle_dial_failed(Status::connect_failed, desk.now, least);
  facts = desk.task.facts(desk.now);
  TEST_ASSERT_TRUE(facts.link == Link::absent);
  TEST_ASSERT_EQUAL(Status::connect_failed, facts.link_failure);
}

TEST(test_a_call_should_see_the_hold_and_whose_it_is) {
  WitnessedDesk desk;
  const NodeTask task(desk.machine, *desk.node, &desk.machine);
  TaskFacts facts = task.facts(desk.now);
  TEST_ASSERT_TRUE(facts.witness == &desk.recorder);
  TEST_ASSERT_EQUAL(ByteView("k"), facts.subject);
  TEST_ASSERT_TRUE(facts.held);
  TEST_ASSERT_FALSE(facts.released);
  TEST_ASSERT_EQUAL(desk.machine.valid_until(), facts.valid_until);
  TEST_ASSERT_FALSE(facts.waiting || facts.unconfirmed);
  facts = task.facts(desk.machine.valid_until());
  TEST_ASSERT_FALSE(facts.held);
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.release(NativeDelete::none, false, desk.now, desk.now + 500ms));
  TEST_ASSERT_TRUE(task.facts(desk.now).released);
  TEST_ASSERT_FALSE(task.facts(desk.now).waiting);  // Nobody asks by this call.
}

TEST(test_a_call_should_see_what_replicas_have_confirmed) {
  constexpr TaskSettings acked = {.request_timeout = 500ms, .max_poll = 10s, .acks_wait = 200ms};
  CallDesk desk;
  desk.task.begin_acquire(desk.now, desk.now, desk.now + 500ms, acked);
  desk.ask();
  TEST_ASSERT_TRUE(desk.task.facts(desk.now).waiting);
  TEST_ASSERT_TRUE(desk.task.facts(desk.now).unconfirmed);
  desk.answer(granted);
  TEST_ASSERT_FALSE(desk.task.facts(desk.now).waiting);
  TEST_ASSERT_EQUAL(TaskAct::confirm, desk.step());
  TEST_ASSERT_EQUAL(TaskStage::confirm, desk.task.life().stage());
  AckLane lane;
  lane.enter(desk.task);
  TEST_ASSERT_TRUE(desk.task.facts(desk.now).waiting);
  lane.forget();  // Its connection is gone.
  TEST_ASSERT_FALSE(desk.task.facts(desk.now).waiting);
  TEST_ASSERT_TRUE(desk.task.outcome() != Status::ok);
  TEST_ASSERT_EQUAL(desk.task.outcome(), desk.task.facts(desk.now).answer);
  TEST_ASSERT_FALSE(desk.task.facts(desk.now).unconfirmed);
}

TEST(test_only_an_acquire_of_what_is_not_held_should_need_a_token) {
  CountedDesk counted;
  counted.begin(Call::acquire);
  TEST_ASSERT_TRUE(counted.task.wants_token(counted.now));
  counted.task.life().abandon(Status::ok);
  (void)counted.call(Call::acquire, "+OK\r\n");
  counted.begin(Call::acquire);
  TEST_ASSERT_FALSE(counted.task.wants_token(counted.now));  // It is acquired once more.
  TEST_ASSERT_TRUE(counted.task.wants_token(counted.machine.valid_until()));
  counted.task.life().abandon(Status::ok);
  counted.begin(Call::renew);
  TEST_ASSERT_FALSE(counted.task.wants_token(counted.now));
  TEST_ASSERT_FALSE(counted.task.wants_token(counted.machine.valid_until()));
  WitnessedDesk plain;
  NodeTask task(plain.machine, *plain.node, &plain.machine);
  task.begin_acquire(plain.now, plain.now, plain.now + 500ms, settings);
  TEST_ASSERT_TRUE(task.wants_token(plain.now));
}

TEST(test_a_call_should_go_on_at_the_node_that_it_is_sent_to) {
  CallDesk desk;
  CallDesk other;
  desk.task.go_to(*other.node);
  desk.acquire(0s);
  TEST_ASSERT_EQUAL(Status::ok, desk.task.ask(Token(ByteView(std::string(32, 't'))), desk.now));
  desk.task.submit(false, desk.now);
  desk.transmit();
  other.transmit();
  TEST_ASSERT_EQUAL("", desk.sent);
  TEST_ASSERT_TRUE(other.sent.find(std::string(32, 't')) != std::string::npos);
}

TEST(test_an_acquire_should_have_the_timing_that_it_was_begun_with) {
  CallDesk desk;
  const LockTiming timing = {.lease = 33s};
  desk.task.begin_acquire(desk.now, desk.now, desk.now + 500ms, settings, &timing);
  desk.ask();
  TEST_ASSERT_TRUE(desk.sent.find("33000") != std::string::npos);
}

TEST(test_a_call_that_nobody_will_wake_should_poll) {
  CallDesk desk;
  desk.acquire(100s);
  desk.listening = true;
  desk.ask();
  desk.answer(busy + ":-1\r\n");
  desk.plan();
  TEST_ASSERT_TRUE(desk.sleeps() == 10s);
  desk.task.plan_to_poll(desk.now, least);
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  TEST_ASSERT_TRUE(desk.task.life().poll_timeout(false, 0) - desk.now < 10s);
}

TEST(test_a_call_should_say_whether_what_is_to_be_taken_back_has_found_a_place) {
  CallDesk desk;
  TEST_ASSERT_TRUE(desk.task.pay());
}

TEST(test_a_reply_should_be_the_machines_where_there_is_no_witness) {
  NodeDesk desk;
  desk.connect();
  LockMachine machine{mutex_kind};
  TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("k"), {.lease = 10s}));
  TEST_ASSERT_EQUAL(Status::ok, machine.acquire(Token(ByteView(std::string(32, 't'))), desk.now, desk.now + 500ms));
  desk.node->submit(machine, &machine, desk.now);
  desk.receive(granted);
  TEST_ASSERT_EQUAL(1U, desk.heard.size());
  NodeTask::take(machine, *desk.node, desk.heard[0], desk.now);
  TEST_ASSERT_TRUE(machine.held(desk.now));
}

// Each question has a number of its own, also beside those that attempts ask along.
TEST(test_the_answer_to_an_attempts_question_should_not_be_that_of_a_call) {
  for (int attempts = 1; attempts <= 6; ++attempts) {
    CallDesk desk;
    desk.listening = true;
    std::string late;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      desk.acquire(0s);
      desk.ask();
      desk.answer(late + busy);
      late = ":300\r\n";  // It comes after the call that had asked is over.
      desk.task.life().abandon(Status::lock_busy);
    }
    desk.task.begin(Call::question, desk.now + 500ms, settings);
    desk.listening = false;
    desk.ask();
    desk.answer(late);
    TEST_ASSERT_TRUE(desk.task.waiting());
    desk.answer(":77\r\n");
    TEST_ASSERT_FALSE(desk.task.waiting());
    TEST_ASSERT_TRUE(desk.task.remaining() == 77ms);
  }
}

TEST(test_a_woken_try_that_did_not_meet_a_lock_should_not_ask_what_is_left) {
  CallDesk desk;
  desk.acquire(100s);
  desk.listening = true;
  desk.ask();
  desk.answer(busy + ":-1\r\n");
  desk.plan();
  TEST_ASSERT_EQUAL(TaskAct::sleep, desk.step());
  desk.woken = true;
  desk.now = desk.now + 1s;
  desk.ask();
  desk.sent.clear();
  desk.answer("-LOADING Redis is loading the dataset in memory\r\n");
  TEST_ASSERT_EQUAL(TaskAct::listen, desk.step());
  desk.task.plan(desk.now, 1, least);
  desk.transmit();
  TEST_ASSERT_FALSE(desk.asks_remaining());
}

TEST(test_a_step_that_finds_the_hold_lost_should_not_be_told_as_a_release_that_did) {
  Recorder recorder;
  CountedDesk desk;
  desk.node->use_meter(&recorder);
  (void)desk.call(Call::acquire, "+OK\r\n");
  (void)recorder.take();
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter(desk.now, desk.now + 500ms));
  desk.node->submit(desk.machine, &desk.machine, desk.now);
  desk.receive(":0\r\n");
  for (const Reply& reply : desk.heard) NodeTask::take(desk.machine, *desk.node, reply, desk.now);
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.status());
  TEST_ASSERT_EQUAL(std::string(), recorder.take());
}
