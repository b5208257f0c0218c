// SPDX-License-Identifier: MIT
//
// One call of a lock on several servers, without a socket: whom it asks, for whom it waits, and what becomes of what
// single nodes have granted.
#include "holdfast/core/quorum_task.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "council.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "node_desk.hpp"
#include "printers.hpp"
#include "recorder.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

const std::string granted = "+OK\r\n";
const std::string busy = "$-1\r\n";
const std::string yes = ":1\r\n";
const std::string no = ":0\r\n";
constexpr std::uint16_t most = UINT16_MAX;
constexpr Duration lease = 10s;
constexpr Duration node_timeout = lease / node_timeout_divisor;

// A driver of one call over three nodes, which decides nothing.
struct TaskDesk {
  explicit TaskDesk(const LockKind& kind = mutex_kind, const QuorumConfig& config = {}, std::size_t connected = 3,
                    const char* version = "7.0.15")
      : machine(kind, places_of(kind), 3), task(machine, places.data(), roll) {
    roll.begin(3, config, now);
    for (std::size_t node = 0; node < 3; ++node) {
      roll.attach(node, *desks[node].node);
      roll.enter(node, desks[node].node->config());
    }
    TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key("k"), {.lease = lease}));
    for (std::size_t node = 0; node < connected; ++node) connect(node, static_cast<char>('a' + node), version);
  }
  QuorumVote* const* places_of(const LockKind& kind) {
    for (std::uint8_t node = 0; node < 3; ++node) {
      places.push_back(&votes.emplace_back(kind));
      votes.back().node = node;
    }
    return places.data();
  }

  // ---- Its nodes

  void connect(std::size_t node, char run_id, const char* version = "7.0.15") {
    desks[node].connect(run_id, version);
    introduce(node);
  }
  void introduce(std::size_t node) {
    desks[node].transmit();
    desks[node].sent.clear();
    for (NodeSet left = roll.introduce(node, now); left != 0; left = static_cast<NodeSet>(left & (left - 1))) {
      const auto index = static_cast<std::size_t>(__builtin_ctz(left));
      machine.meet(index, roll.server(index), roll.excluded(index));
    }
  }
  void close(std::size_t node) {
    desks[node].close();
    roll.leave(node, Status::transport_closed);
    dispatch(node);
  }
  // Those to which something has been sent since the last look, and what.
  NodeSet asked() {
    NodeSet nodes = 0;
    for (std::size_t node = 0; node < 3; ++node) {
      desks[node].transmit();
      said[node] = desks[node].sent;
      desks[node].sent.clear();
      if (!said[node].empty()) nodes = static_cast<NodeSet>(nodes | node_bit(node));
    }
    return nodes;
  }
  bool was_told(std::size_t node, const char* text) const { return said[node].find(text) != std::string::npos; }
  void answer(std::size_t node, std::string_view bytes) {
    desks[node].receive(bytes);
    dispatch(node);
  }
  void answer_all(std::string_view bytes) {
    for (std::size_t node = 0; node < 3; ++node) answer(node, bytes);
  }
  void dispatch(std::size_t node) {
    desks[node].poll_replies();
    for (const Reply& reply : desks[node].heard) {
      if (reply.tag.requester == nullptr) continue;  // It only took room.
      TEST_ASSERT_TRUE(reply.tag.requester == places[node]);
      machine.handle_reply(node, reply, now);
    }
    desks[node].heard.clear();
    settle();
  }
  // Others have all of its places. How many they took.
  std::size_t fill(std::size_t node) {
    const Argument words[] = {ByteView("PING")};
    std::size_t taken = 0;
    while (taken < in_flight_max && desks[node].node->ask(words, {}, now) == Status::ok) ++taken;
    return taken;
  }
  void fill_compensations(std::size_t node) {
    Session& session = desks[node].node->session();
    for (std::size_t count = 0; count < compensations_max && session.may_compensate(); ++count) {
      const Token token(ByteView(std::to_string(count)));
      const Compensation other = {.kind = &mutex_kind, .key = Key("other"), .token = &token, .count = 0};
      TEST_ASSERT_EQUAL(Status::ok, session.compensate({}, other));
    }
    TEST_ASSERT_FALSE(session.may_compensate());
  }
  // The sessions judge their deadlines, and the machine its own.
  void pass(Duration time) {
    now = now + time;
    for (std::size_t node = 0; node < 3; ++node) {
      desks[node].now = now;
      desks[node].node->session().handle_timeout(now);
      dispatch(node);
    }
  }

  // ---- The driver

  void settle() {
    const NodeSet nodes = task.hand_over(machine.all(), now);
    given_up = static_cast<NodeSet>(given_up | nodes);
    TEST_ASSERT_TRUE(machine.invariants());
    for (std::size_t node = 0; node < 3 && tells_given_up; ++node)
      if ((nodes & node_bit(node)) != 0) dispatch(node);
  }
  TaskFacts facts() {
    TaskFacts facts = task.facts(connecting, now);
    if (machine.has_output()) settle();
    facts.room = task.enough_room(with_room, awaited, now);
    facts.cancelled = cancelled;
    facts.listening = confirmed != 0;
    facts.confirmed = confirmed;
    return facts;
  }
  TaskAct step() {
    const TaskAct act = task.life().step(facts());
    TEST_ASSERT_TRUE(task.life().invariants());
    return act;
  }
  void expect(TaskAct act) { TEST_ASSERT_EQUAL(act, step()); }
  void expect_over(Status status) {
    expect(TaskAct::over);
    TEST_ASSERT_EQUAL(status, task.life().status());
  }
  void acquire(Duration wait = 0s) { task.begin_acquire(now, now + wait, now + wait + 500ms); }
  void begin(Call call, Duration timeout = 500ms) { task.begin(call, now + timeout); }
  // Does what TaskAct::ask says. The nodes that were asked.
  NodeSet ask(char digit = 'a') {
    if (step() != TaskAct::ask) expect(TaskAct::ask);  // Behind an attempt of who listens.
    if (task.life().call() != Call::release) settle();
    task.ask(task.wants_token(now) ? Council::token(digit) : Token(), with_room, now);
    settle();
    return asked();
  }
  void keep() {
    expect(TaskAct::keep);
    task.life().handle_kept(task.take_grant());
  }
  void hold() {
    acquire();
    TEST_ASSERT_EQUAL(all, ask());
    answer_all(granted);
    keep();
    expect_over(Status::ok);
  }
  void plan() {
    expect(TaskAct::listen);
    task.plan(now, confirmed, random);
  }
  // How long the driver sleeps if nothing happens.
  Duration sleeps() {
    expect(TaskAct::sleep);
    return task.life().poll_timeout(false, confirmed) - now;
  }

  static constexpr NodeSet all = 0b111;
  Instant now = start;
  std::deque<NodeDesk> desks{3};
  std::string said[3];
  VoterRoll::Voter voters[3];
  VoterRoll roll{voters, 3};
  std::deque<QuorumVote> votes;
  std::vector<QuorumVote*> places;
  QuorumMachine machine;
  QuorumTask task;
  bool connecting = false;
  bool cancelled = false;
  bool tells_given_up = true;  // At once: a machine hears of it by hand_over() itself, or by the driver's next turn.
  NodeSet with_room = all;
  NodeSet awaited = 0;
  NodeSet given_up = 0;
  ListenSet confirmed = 0;
  std::uint16_t random = 0;
};

}  // namespace

// ---- Acquire -----------------------------------------------------------------------------------------------------

TEST(test_acquire_should_ask_all_nodes_and_be_over_when_a_majority_has_granted) {
  TaskDesk desk;
  desk.acquire();
  TEST_ASSERT_TRUE(desk.task.wants_room());
  TEST_ASSERT_TRUE(desk.task.wants_token(desk.now));
  TEST_ASSERT_EQUAL(0b111, desk.ask());
  for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_TRUE(desk.was_told(node, "SET"));
  desk.answer(0, granted);
  desk.expect(TaskAct::sleep);
  TEST_ASSERT_TRUE(desk.task.waiting());
  desk.answer(2, granted);
  TEST_ASSERT_FALSE(desk.task.waiting());
  TEST_ASSERT_TRUE(desk.task.begins_hold());
  desk.keep();
  desk.expect_over(Status::ok);
  TEST_ASSERT_TRUE(desk.machine.held(desk.now));
  TEST_ASSERT_EQUAL(1, desk.machine.count());
}

TEST(test_acquire_should_be_refused_as_soon_as_a_majority_has_said_no) {
  TaskDesk desk;
  desk.acquire();
  (void)desk.ask();
  desk.answer(0, busy);
  desk.expect(TaskAct::sleep);
  desk.answer(1, busy);
  desk.expect_over(Status::lock_busy);
  TEST_ASSERT_EQUAL(0b100, desk.given_up);  // Its answer is not waited for,
  TEST_ASSERT_EQUAL(0b100, desk.asked());   // and what it may grant is taken back.
}

TEST(test_what_a_minority_has_granted_should_be_let_go_of) {
  TaskDesk desk;
  desk.acquire();
  (void)desk.ask();
  desk.answer(0, granted);
  desk.answer(1, busy);
  desk.answer(2, busy);
  desk.expect_over(Status::lock_busy);
  TEST_ASSERT_EQUAL(0, desk.given_up);
  TEST_ASSERT_EQUAL(0b001, desk.asked());
  TEST_ASSERT_FALSE(desk.machine.held(desk.now));
}

TEST(test_nodes_that_do_not_answer_should_be_given_up_after_the_node_timeout) {
  TaskDesk desk;
  desk.acquire(0s);
  (void)desk.ask();
  desk.answer(0, granted);
  desk.pass(node_timeout - 1ns);
  desk.expect(TaskAct::sleep);
  desk.pass(1ns);
  desk.expect_over(Status::no_quorum);
  TEST_ASSERT_EQUAL(0b111, desk.asked());  // All of it is taken back.
}

TEST(test_no_node_should_be_waited_for_beyond_the_end_of_the_call) {
  TaskDesk desk;
  desk.task.begin_acquire(desk.now, desk.now, desk.now + 100ms);
  (void)desk.ask();
  desk.pass(100ms);
  desk.expect_over(Status::no_quorum);
}

TEST(test_nothing_should_be_asked_at_the_end_of_the_call) {
  TaskDesk desk;
  desk.task.begin_acquire(desk.now, desk.now, desk.now + 100ms);
  desk.now = desk.now + 100ms;
  desk.expect_over(Status::timed_out);
  TEST_ASSERT_EQUAL(0, desk.asked());
}

TEST(test_what_is_denied_should_not_be_asked_once_more_in_the_same_attempt) {
  TaskDesk desk;
  desk.acquire();
  (void)desk.ask();
  for (std::size_t node = 0; node < 3; ++node) desk.close(node);
  desk.expect_over(Status::no_quorum);
}

TEST(test_a_token_that_could_not_be_drawn_should_end_the_call_unasked) {
  TaskDesk desk;
  desk.acquire(10s);
  desk.expect(TaskAct::ask);
  desk.task.refuse(Status::no_entropy);
  desk.expect_over(Status::no_entropy);
  TEST_ASSERT_EQUAL(0, desk.asked());
}

TEST(test_a_lease_above_max_lease_should_be_refused_before_a_node_is_asked) {
  TaskDesk desk(mutex_kind, {.max_lease = 5s});
  desk.acquire(10s);
  TEST_ASSERT_EQUAL(0, desk.ask());
  desk.expect_over(Status::invalid_argument);
  char text[100];
  TEST_ASSERT_EQUAL(ByteView("a lease of 10000 ms is longer than max_lease, 5000 ms"),
                    desk.roll.write_text({text, sizeof text}, desk.now));
}

// ---- Who may vote ------------------------------------------------------------------------------------------------

TEST(test_acquire_should_do_without_a_node_that_is_away) {
  TaskDesk desk(mutex_kind, {}, 2);
  desk.acquire();
  TEST_ASSERT_EQUAL(0b011, desk.ask());
  desk.answer(0, granted);
  desk.answer(1, granted);
  desk.keep();
  desk.expect_over(Status::ok);
}

TEST(test_acquire_should_wait_for_a_node_that_is_on_its_way_as_long_as_connecting_may_take) {
  TaskDesk desk(mutex_kind, {}, 1);
  desk.connecting = true;
  desk.acquire(100s);
  TEST_ASSERT_TRUE(desk.sleeps() == 2s);
  desk.connect(1, 'b');
  TEST_ASSERT_EQUAL(0b011, desk.ask());
}

TEST(test_acquire_should_not_wait_for_connections_that_nobody_makes) {
  TaskDesk desk(mutex_kind, {}, 1);
  desk.acquire();
  desk.expect_over(Status::no_quorum);
  TEST_ASSERT_EQUAL(0, desk.asked());
}

TEST(test_two_nodes_on_one_machine_should_end_the_call_also_while_another_is_on_its_way) {
  TaskDesk desk(mutex_kind, {}, 1);
  desk.connect(1, 'a');
  desk.connecting = true;
  desk.acquire(100s);
  desk.expect_over(Status::same_machine);
}

TEST(test_a_node_that_says_it_is_a_replica_should_have_no_vote_from_then_on) {
  TaskDesk desk;
  desk.acquire();
  (void)desk.ask();
  desk.answer(2, "-READONLY You can't write against a read only replica.\r\n");
  TEST_ASSERT_EQUAL(0b011, desk.roll.voters(desk.now));
}

TEST(test_without_a_majority_of_voters_nothing_should_be_asked) {
  TaskDesk desk;
  desk.acquire();
  desk.expect(TaskAct::ask);
  desk.close(0);
  desk.close(1);
  desk.task.ask(Council::token(), desk.all, desk.now);
  desk.settle();
  desk.expect_over(Status::no_quorum);
  TEST_ASSERT_EQUAL(0, desk.asked());
}

// ---- Room --------------------------------------------------------------------------------------------------------

TEST(test_acquire_should_wait_for_nodes_without_room_and_then_do_without_them) {
  TaskDesk desk;
  desk.with_room = 0b011;
  desk.awaited = 0b100;
  desk.acquire(100s);
  TEST_ASSERT_TRUE(desk.sleeps() == node_timeout);
  desk.pass(node_timeout);
  TEST_ASSERT_EQUAL(0b011, desk.ask());
}

TEST(test_acquire_should_wait_for_room_as_long_as_its_own_timing_says) {
  TaskDesk desk;
  desk.with_room = 0b011;
  desk.awaited = 0b100;
  const QuorumTiming timing = {.lease = 20s, .node_timeout = node_timeout / 2};
  desk.task.begin_acquire(desk.now, desk.now + 100s, desk.now + 101s, &timing);
  TEST_ASSERT_TRUE(desk.sleeps() == node_timeout / 2);
}

TEST(test_a_node_that_was_waited_for_in_vain_should_not_be_waited_for_again) {
  TaskDesk desk;
  desk.with_room = 0b011;
  desk.acquire();
  TEST_ASSERT_EQUAL(0b011, desk.ask());
}

TEST(test_acquire_should_have_too_many_requests_when_a_majority_has_no_room) {
  TaskDesk desk;
  desk.with_room = 0b001;
  desk.task.begin_acquire(desk.now, desk.now, desk.now + 2 * node_timeout);
  desk.expect(TaskAct::sleep);
  desk.pass(node_timeout);
  TEST_ASSERT_EQUAL(0, desk.ask());
  desk.expect_over(Status::too_many_requests);
  TEST_ASSERT_EQUAL(0, desk.asked());
}

TEST(test_room_of_a_node_that_may_not_vote_should_count_for_nothing) {
  TaskDesk desk(mutex_kind, {}, 2);
  desk.acquire();
  TEST_ASSERT_FALSE(desk.task.enough_room(0b101, 0, desk.now));
  TEST_ASSERT_TRUE(desk.task.enough_room(0b011, 0b100, desk.now));
  TEST_ASSERT_FALSE(desk.task.enough_room(0b011, 0b010, desk.now));
}

TEST(test_without_a_majority_of_voters_room_should_not_be_waited_for) {
  TaskDesk desk(mutex_kind, {}, 1);
  desk.acquire();
  TEST_ASSERT_TRUE(desk.task.enough_room(0, 0b001, desk.now));
}

TEST(test_renewal_should_wait_for_room_on_each_node_that_is_awaited) {
  TaskDesk desk;
  desk.hold();
  desk.begin(Call::renew);
  TEST_ASSERT_FALSE(desk.task.enough_room(0b011, 0b100, desk.now));
  TEST_ASSERT_TRUE(desk.task.enough_room(0, 0, desk.now));
}

// A node that is silent and has no place left costs half of a call's time, and not all of it, or more.
TEST(test_every_call_should_wait_for_room_for_half_of_its_time_and_then_hear_the_others) {
  TEST_ASSERT_TRUE(node_timeout > 250ms);
  for (const Call call : {Call::acquire, Call::renew, Call::release}) {
    TaskDesk desk;
    if (call != Call::acquire) desk.hold();
    desk.with_room = 0b011;
    desk.awaited = 0b100;
    if (call == Call::acquire)
      desk.task.begin_acquire(desk.now, desk.now, desk.now + 500ms);
    else
      desk.begin(call);
    TEST_ASSERT_TRUE(desk.sleeps() == 250ms);
    desk.pass(250ms);
    TEST_ASSERT_EQUAL(call == Call::acquire ? 0b011 : 0b111, desk.ask());
    desk.answer(0, call == Call::acquire ? granted : yes);
    desk.answer(1, call == Call::acquire ? granted : yes);
    if (call == Call::acquire) desk.keep();
    desk.expect_over(Status::ok);
  }
}

TEST(test_renewal_should_wait_for_room_no_longer_than_the_hold_lasts) {
  TaskDesk desk;
  desk.hold();
  desk.pass(desk.machine.valid_until() - desk.now - 10ms);
  desk.awaited = 0b001;
  desk.begin(Call::renew);
  TEST_ASSERT_TRUE(desk.sleeps() == 10ms);
}

TEST(test_reentry_should_be_granted_for_the_lease_that_it_wants_or_not_at_all) {
  constexpr QuorumTiming longer = {.lease = 20s};
  TaskDesk desk(reentrant_kind);
  desk.hold();
  for (const bool open : {true, false}) {  // A round for the lease before is on its way, and waited for.
    if (open) {
      TEST_ASSERT_EQUAL(Status::ok, desk.task.renew(desk.now + 500ms, desk.now));
      desk.settle();
    }
    desk.task.begin_acquire(desk.now, desk.now, desk.now + 1s, &longer);
    (void)desk.ask();
    desk.answer_all(batch_of(true));
    desk.expect(TaskAct::keep);
    const Status status = desk.task.take_grant();
    TEST_ASSERT_EQUAL(open ? Status::too_many_requests : Status::ok, status);
    desk.task.life().handle_kept(status);
    desk.expect_over(status);
    TEST_ASSERT_EQUAL(open ? 1U : 2U, desk.machine.count());
    TEST_ASSERT_TRUE(desk.machine.timing().lock().effective_lease() == (open ? lease : Duration(20s)));
  }
}

TEST(test_lease_that_is_wanted_should_be_permitted_and_not_that_of_another_handle) {
  constexpr QuorumTiming shorter = {.lease = 1s};
  constexpr QuorumTiming longer = {.lease = 20s};
  TaskDesk desk(reentrant_kind, {.max_lease = 2s});
  TEST_ASSERT_EQUAL(Status::invalid_argument, desk.task.permit(nullptr, desk.now));
  TEST_ASSERT_EQUAL(Status::ok, desk.task.permit(&shorter, desk.now));
  desk.task.begin_acquire(desk.now, desk.now, desk.now + 1s, &shorter);
  TEST_ASSERT_EQUAL(desk.all, desk.ask());
  desk.answer_all(granted);
  desk.keep();
  desk.expect_over(Status::ok);
  TEST_ASSERT_EQUAL(Status::ok, desk.task.permit(nullptr, desk.now));
  TEST_ASSERT_EQUAL(Status::invalid_argument, desk.task.permit(&longer, desk.now));
  // What is held is raised, and never shortened.
  TaskDesk held(reentrant_kind);
  held.hold();
  held.roll.begin(3, {.max_lease = 2s}, held.now);
  TEST_ASSERT_EQUAL(Status::invalid_argument, held.task.permit(&shorter, held.now));
}

TEST(test_only_the_last_release_should_want_room) {
  TaskDesk desk(reentrant_kind);
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter());
  desk.begin(Call::release);
  TEST_ASSERT_FALSE(desk.task.wants_room());
  (void)desk.ask();
  desk.expect_over(Status::ok);
  desk.begin(Call::release);
  TEST_ASSERT_TRUE(desk.task.wants_room());
}

TEST(test_every_reentry_should_want_room) {
  TaskDesk desk(reentrant_kind);
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter());
  TEST_ASSERT_EQUAL(2, desk.machine.count());
  desk.acquire();
  TEST_ASSERT_TRUE(desk.task.wants_room());
}

// ---- Cancelled, and too late -------------------------------------------------------------------------------------

TEST(test_a_cancelled_acquire_should_let_go_of_what_single_nodes_have_granted) {
  TaskDesk desk;
  desk.acquire(100s);
  (void)desk.ask();
  desk.answer(1, granted);
  desk.cancelled = true;
  desk.expect(TaskAct::give_up);
  desk.task.give_up(desk.now);
  desk.settle();
  desk.expect_over(Status::cancelled);
  TEST_ASSERT_EQUAL(0b101, desk.given_up);
  TEST_ASSERT_EQUAL(0b111, desk.asked());
  TEST_ASSERT_TRUE(desk.machine.state() == QuorumState::idle);
}

TEST(test_what_was_granted_when_the_cancel_came_should_be_let_go_of) {
  TaskDesk desk;
  desk.acquire(100s);
  (void)desk.ask();
  desk.answer_all(granted);
  desk.cancelled = true;
  desk.expect(TaskAct::let_go);
  TEST_ASSERT_TRUE(desk.task.lets_go());
}

TEST(test_a_grant_that_was_over_before_anybody_was_told_should_be_none) {
  TaskDesk desk;
  desk.acquire();
  (void)desk.ask();
  desk.answer(0, granted);
  desk.answer(1, granted);
  desk.answer(2, busy);
  desk.pass(lease);
  TEST_ASSERT_TRUE(desk.machine.state() == QuorumState::lost);
  desk.expect_over(Status::timed_out);
  // It is no loss that a release would tell of.
  TEST_ASSERT_EQUAL(Status::not_held, desk.machine.release(desk.now));
  TEST_ASSERT_EQUAL(0b011, desk.asked());  // Where it was granted it is taken back.
  desk.answer(0, no);
  desk.answer(1, no);
  desk.hold();
}

TEST(test_a_grant_behind_one_that_was_over_should_be_kept) {
  TaskDesk desk;
  desk.acquire(100s);
  (void)desk.ask();
  desk.answer(0, granted);
  desk.answer(1, granted);
  desk.answer(2, busy);
  desk.pass(lease);
  desk.plan();
  desk.answer(0, no);  // To what takes it back there.
  desk.answer(1, no);
  desk.pass(desk.sleeps());
  (void)desk.ask('b');
  desk.answer(0, granted);
  desk.answer(1, granted);
  desk.keep();
  desk.expect_over(Status::ok);
}

// ---- Waiting -----------------------------------------------------------------------------------------------------

TEST(test_who_met_a_busy_lock_should_look_again_after_a_second_at_the_latest) {
  TaskDesk desk;
  desk.confirmed = 0b111;
  desk.acquire(100s);
  (void)desk.ask();
  desk.answer_all(busy);
  desk.plan();
  TEST_ASSERT_TRUE(desk.task.life().busy());
  TEST_ASSERT_TRUE(desk.sleeps() == 1s + retry_delay_min);
}

TEST(test_who_is_told_what_is_left_should_wait_for_the_least_of_it) {
  TaskDesk desk(reentrant_kind);
  desk.confirmed = 0b111;
  desk.acquire(100s);
  (void)desk.ask();
  desk.answer(0, ":700\r\n");
  desk.answer(1, ":300\r\n");
  desk.plan();
  TEST_ASSERT_TRUE(desk.sleeps() == 300ms + 2 * retry_delay_min);
}

// The nodes spread their answers: somebody else has the others. All who split the votes wait, and ever longer.
TEST(test_who_was_granted_alone_should_stand_back_longer_and_longer) {
  TaskDesk desk;
  desk.random = most;
  desk.acquire(100s);
  Duration before = 2 * retry_delay_min;
  for (char digit = 'a'; digit < 'd'; ++digit) {
    TEST_ASSERT_EQUAL(0b111, desk.ask(digit));
    desk.answer(0, granted);
    desk.answer(1, busy);
    desk.answer(2, busy);
    desk.plan();
    // The floor, which no wake-up shortens.
    const Duration floor = desk.task.life().poll_timeout(true, 0) - desk.now;
    TEST_ASSERT_TRUE(floor > before);
    before = floor;
    desk.answer(0, yes);
    desk.pass(desk.sleeps());
  }
}

// However long it stands back: the last attempt has its request timeout, and its answer is the call's.
TEST(test_who_stands_back_should_try_once_more_at_the_end_of_the_wait) {
  TaskDesk desk;
  desk.random = most;
  const Instant deadline = desk.now + 300ms;
  desk.acquire(300ms);
  char digit = 'a';
  Instant asked_at;
  while (!desk.task.life().over()) {
    TEST_ASSERT_EQUAL(0b111, desk.ask(digit++));
    asked_at = desk.now;
    desk.answer(0, granted);
    desk.answer(1, busy);
    desk.answer(2, busy);
    if (desk.now == deadline) break;
    desk.plan();
    desk.answer(0, yes);
    desk.pass(desk.sleeps());
    TEST_ASSERT_TRUE(desk.now <= deadline);
  }
  TEST_ASSERT_EQUAL(deadline, asked_at);
}

TEST(test_who_found_no_place_on_any_node_should_not_stand_back) {
  TaskDesk desk;
  desk.random = most;
  for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_TRUE(desk.fill(node) != 0);
  (void)desk.asked();
  desk.acquire(100s);
  TEST_ASSERT_EQUAL(0, desk.ask());
  desk.plan();
  TEST_ASSERT_FALSE(desk.task.life().busy());
  TEST_ASSERT_TRUE(desk.task.life().poll_timeout(true, 0) - desk.now == 2 * retry_delay_min);
}

// Its answer may have been a grant.
TEST(test_who_has_given_up_an_answer_should_stand_back_before_and_behind_the_word_of_it) {
  for (const bool told : {false, true}) {
    TaskDesk desk;
    desk.random = most;
    desk.tells_given_up = told;
    desk.acquire(100s);
    (void)desk.ask();
    desk.answer(0, busy);
    desk.answer(1, busy);
    desk.plan();
    TEST_ASSERT_EQUAL(told ? Status::cancelled : Status::outcome_unknown, desk.machine.vote(2).status);
    TEST_ASSERT_TRUE(desk.task.life().poll_timeout(true, 0) - desk.now == 3 * retry_delay_min);
  }
}

// ---- Renewals ----------------------------------------------------------------------------------------------------

TEST(test_renewal_should_be_over_when_a_majority_has_confirmed) {
  TaskDesk desk;
  desk.hold();
  const Instant before = desk.machine.valid_until();
  desk.pass(1s);
  desk.begin(Call::renew);
  TEST_ASSERT_FALSE(desk.task.wants_token(desk.now));
  TEST_ASSERT_EQUAL(0b111, desk.ask());
  desk.answer(0, yes);
  desk.expect(TaskAct::sleep);
  desk.answer(1, yes);
  desk.expect_over(Status::ok);
  TEST_ASSERT_TRUE(desk.machine.valid_until() == before + 1s);
}

TEST(test_renewal_should_not_wait_for_a_quorum_that_is_not_connected) {
  TaskDesk desk;
  desk.hold();
  for (std::size_t node = 0; node < 3; ++node) desk.close(node);
  desk.begin(Call::renew);
  TEST_ASSERT_EQUAL(0, desk.ask());
  desk.expect_over(Status::no_quorum);
  TEST_ASSERT_TRUE(desk.machine.held(desk.now));
}

TEST(test_renewal_of_what_is_not_held_should_say_so) {
  TaskDesk desk;
  desk.begin(Call::renew);
  TEST_ASSERT_EQUAL(0, desk.ask());
  desk.expect_over(Status::not_held);
}

TEST(test_renewal_should_ask_a_node_anew_that_has_lost_the_hold) {
  TaskDesk desk;
  desk.acquire();
  (void)desk.ask();
  desk.answer(0, granted);
  desk.answer(1, granted);
  desk.answer(2, busy);
  desk.keep();
  desk.expect_over(Status::ok);
  desk.begin(Call::renew);
  TEST_ASSERT_EQUAL(0b111, desk.ask());
  TEST_ASSERT_FALSE(desk.was_told(0, "SET"));
  TEST_ASSERT_TRUE(desk.was_told(2, "SET"));
}

TEST(test_renewal_should_be_asked_for_no_longer_than_the_hold_lasts) {
  TaskDesk desk;
  desk.hold();
  desk.pass(desk.machine.valid_until() - desk.now - 10ms);
  desk.begin(Call::renew);
  (void)desk.ask();
  TEST_ASSERT_TRUE(desk.desks[0].node->session().poll_timeout() == desk.now + 10ms);
}

TEST(test_a_round_that_somebody_has_opened_should_be_waited_for_instead) {
  TaskDesk desk;
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.task.renew(desk.now + 500ms, desk.now));  // The watch over the hold.
  desk.settle();
  TEST_ASSERT_EQUAL(0b111, desk.asked());
  desk.begin(Call::renew, 100ms);
  TEST_ASSERT_EQUAL(0, desk.ask());
  TEST_ASSERT_TRUE(desk.sleeps() == 100ms);
  desk.answer(0, yes);
  desk.answer(1, yes);
  desk.expect_over(Status::ok);
}

TEST(test_a_round_of_somebody_else_should_be_waited_for_until_the_deadline_only) {
  TaskDesk desk;
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.task.renew(desk.now + 500ms, desk.now));
  desk.settle();
  desk.begin(Call::renew, 100ms);
  (void)desk.ask();
  desk.expect(TaskAct::sleep);
  desk.pass(100ms);
  desk.expect(TaskAct::give_up);
  desk.task.give_up(desk.now);
  desk.expect_over(Status::timed_out);
  TEST_ASSERT_TRUE(desk.machine.held(desk.now));  // The round goes on.
  TEST_ASSERT_TRUE(desk.machine.waiting());
}

TEST(test_renewal_should_end_at_its_deadline_while_a_node_has_not_answered_the_acquire_yet) {
  TaskDesk desk;
  desk.acquire();
  (void)desk.ask();
  desk.answer(0, granted);
  desk.answer(1, granted);
  desk.keep();
  desk.expect_over(Status::ok);
  desk.begin(Call::renew, 100ms);
  TEST_ASSERT_EQUAL(0b011, desk.ask());  // The acquire of the third may take longer than this call.
  desk.answer(0, yes);
  desk.answer(1, "-NOREPLICAS Not enough good replicas to write.\r\n");
  desk.pass(99ms);
  desk.expect(TaskAct::sleep);
  desk.pass(1ms);
  desk.expect(TaskAct::give_up);
  desk.task.give_up(desk.now);
  desk.expect_over(Status::timed_out);
  TEST_ASSERT_TRUE(desk.machine.held(desk.now));
}

// ---- Reentrant ---------------------------------------------------------------------------------------------------

TEST(test_who_holds_a_reentrant_lock_should_enter_it_again_by_a_renewal) {
  TaskDesk desk(reentrant_kind);
  desk.hold();
  desk.pass(1s);
  desk.acquire();
  TEST_ASSERT_FALSE(desk.task.wants_token(desk.now));
  TEST_ASSERT_EQUAL(0b111, desk.ask());
  TEST_ASSERT_FALSE(desk.task.begins_hold());
  desk.answer(0, batch_of(true));
  desk.answer(1, batch_of(true));
  TEST_ASSERT_EQUAL(1, desk.machine.count());
  desk.keep();
  desk.expect_over(Status::ok);
  TEST_ASSERT_EQUAL(2, desk.machine.count());
  // What is called next is no reentry any more.
  desk.begin(Call::renew);
  TEST_ASSERT_TRUE(desk.task.begins_hold());
}

TEST(test_a_reentry_should_be_answered_within_a_request_timeout) {
  TaskDesk desk(reentrant_kind);
  desk.hold();
  desk.acquire(100s);
  (void)desk.ask();
  TEST_ASSERT_TRUE(desk.desks[0].node->session().poll_timeout() == desk.now + 500ms);
}

TEST(test_the_times_of_a_call_should_be_those_of_the_first_node) {
  TaskDesk desk(reentrant_kind, {}, 0);
  for (std::size_t node = 1; node < 3; ++node) {
    ClientConfig slower = config_of("127.0.0.1");
    slower.request_timeout = 900ms;
    const SocketAddress address = address_of('1');
    desk.desks[node].node->configure(slower, &address);
  }
  for (std::size_t node = 0; node < 3; ++node) desk.connect(node, static_cast<char>('a' + node));
  desk.hold();
  desk.acquire(100s);
  (void)desk.ask();
  TEST_ASSERT_TRUE(desk.desks[0].node->session().poll_timeout() == desk.now + 500ms);
}

TEST(test_a_reentry_that_is_cancelled_should_leave_the_hold_as_it_was) {
  TaskDesk desk(reentrant_kind);
  desk.hold();
  desk.acquire(100s);
  (void)desk.ask();
  desk.cancelled = true;
  desk.expect(TaskAct::give_up);
  desk.task.give_up(desk.now);
  desk.settle();
  desk.expect_over(Status::cancelled);
  TEST_ASSERT_TRUE(desk.machine.held(desk.now));
  TEST_ASSERT_EQUAL(0, desk.given_up);
}

TEST(test_a_reentry_that_was_confirmed_when_the_cancel_came_should_have_nothing_to_let_go_of) {
  TaskDesk desk(reentrant_kind);
  desk.hold();
  desk.acquire(100s);
  (void)desk.ask();
  desk.answer_all(batch_of(true));
  desk.cancelled = true;
  desk.expect(TaskAct::let_go);
  TEST_ASSERT_FALSE(desk.task.lets_go());
}

TEST(test_a_reentry_that_finds_the_hold_lost_should_leave_the_loss_to_be_told) {
  TaskDesk desk(reentrant_kind);
  desk.hold();
  desk.acquire();
  (void)desk.ask();
  desk.pass(lease);
  desk.expect_over(Status::lock_lost);
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.machine.release(desk.now));
}

TEST(test_acquire_behind_a_loss_that_is_not_unwound_should_say_so_and_leave_it) {
  TaskDesk desk(reentrant_kind);
  desk.hold();
  desk.pass(lease);
  (void)desk.asked();
  desk.acquire();
  TEST_ASSERT_EQUAL(0, desk.ask());
  desk.expect_over(Status::lock_lost);
  TEST_ASSERT_EQUAL(1, desk.machine.count());
}

// ---- Release -----------------------------------------------------------------------------------------------------

TEST(test_release_should_ask_all_nodes_and_be_over_when_a_majority_has_answered) {
  TaskDesk desk;
  desk.hold();
  desk.begin(Call::release);
  TEST_ASSERT_EQUAL(0b111, desk.ask());
  TEST_ASSERT_FALSE(desk.machine.held(desk.now));
  TEST_ASSERT_TRUE(desk.task.waiting());
  TEST_ASSERT_TRUE(desk.sleeps() == 500ms);
  desk.answer(0, yes);
  desk.expect(TaskAct::sleep);
  desk.answer(1, yes);
  desk.expect_over(Status::ok);
}

TEST(test_release_of_what_is_another_s_should_say_that_it_was_lost) {
  TaskDesk desk;
  desk.hold();
  desk.begin(Call::release);
  (void)desk.ask();
  desk.answer_all(no);
  desk.expect_over(Status::lock_lost);
}

TEST(test_release_should_give_up_at_its_deadline_and_go_on_without_it) {
  TaskDesk desk;
  desk.hold();
  desk.begin(Call::release);
  (void)desk.ask();
  desk.pass(500ms);
  desk.expect(TaskAct::give_up);
  desk.task.give_up(desk.now);
  desk.settle();
  desk.expect_over(Status::timed_out);
  TEST_ASSERT_EQUAL(0, desk.given_up);  // What is to be released is released all the same.
  TEST_ASSERT_TRUE(desk.machine.state() == QuorumState::idle);
  desk.answer_all(yes);
  desk.hold();
}

TEST(test_release_of_one_of_several_should_be_ok_whatever_the_renewal_before_has_said) {
  TaskDesk desk(reentrant_kind);
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter());
  desk.begin(Call::renew);
  (void)desk.ask();
  for (std::size_t node = 0; node < 3; ++node) desk.close(node);
  desk.expect_over(Status::no_quorum);
  desk.begin(Call::release);
  TEST_ASSERT_EQUAL(0, desk.ask());
  desk.expect_over(Status::ok);
  TEST_ASSERT_EQUAL(1, desk.machine.count());
}

TEST(test_release_of_one_of_several_should_not_wait_for_a_round_that_is_open) {
  TaskDesk desk(reentrant_kind);
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.machine.reenter());
  TEST_ASSERT_EQUAL(Status::ok, desk.task.renew(desk.now + 500ms, desk.now));
  desk.settle();
  TEST_ASSERT_TRUE(desk.machine.waiting());
  desk.begin(Call::release);
  (void)desk.ask();
  TEST_ASSERT_FALSE(desk.task.waiting());
  desk.expect_over(Status::ok);
}

TEST(test_release_should_use_the_command_of_the_servers_that_have_one) {
  for (const bool has : {false, true}) {
    TaskDesk desk(mutex_kind, {}, 3, has ? "8.4.0" : "7.0.15");
    desk.hold();
    desk.begin(Call::release);
    (void)desk.ask();
    for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_EQUAL(has, desk.was_told(node, "DELEX"));
  }
}

TEST(test_what_is_to_be_released_is_something_to_let_go_of) {
  TaskDesk desk;
  desk.hold();
  desk.begin(Call::release);
  desk.cancelled = true;
  desk.expect(TaskAct::let_go);
  TEST_ASSERT_TRUE(desk.task.lets_go());
}

// ---- Question ----------------------------------------------------------------------------------------------------

TEST(test_a_question_should_ask_no_node) {
  TaskDesk desk;
  desk.begin(Call::question);
  TEST_ASSERT_FALSE(desk.task.wants_token(desk.now));
  TEST_ASSERT_EQUAL(0, desk.ask());
  desk.expect_over(Status::ok);
}

// ---- The nodes ---------------------------------------------------------------------------------------------------

TEST(test_nothing_should_be_handed_over_when_nobody_has_anything_to_say) {
  TaskDesk desk;
  TEST_ASSERT_EQUAL(0, desk.task.hand_over(desk.machine.all(), desk.now));
  TEST_ASSERT_EQUAL(0, desk.asked());
}

TEST(test_a_server_that_nobody_has_been_introduced_to_should_not_be_asked) {
  TaskDesk desk;
  desk.hold();
  desk.close(2);
  desk.now = desk.now + 3s;
  for (NodeDesk& node : desk.desks) node.now = desk.now;
  desk.desks[2].connect('c');
  desk.desks[2].transmit();
  desk.desks[2].sent.clear();
  desk.begin(Call::renew);
  TEST_ASSERT_EQUAL(0b011, desk.ask());
  TEST_ASSERT_EQUAL(Status::not_connected, desk.votes[2].machine.status());
  desk.introduce(2);
  desk.answer(0, yes);
  desk.answer(1, yes);
  desk.expect_over(Status::ok);
  desk.begin(Call::renew);
  TEST_ASSERT_EQUAL(0b111, desk.ask());
}

TEST(test_an_answer_of_another_shape_should_end_that_node_s_connection_and_no_other) {
  TaskDesk desk;
  desk.acquire();
  (void)desk.ask();
  desk.answer(1, ":77\r\n");
  TEST_ASSERT_TRUE(desk.desks[1].node->session().state() == SessionState::failed);
  TEST_ASSERT_EQUAL(ByteView("a reply of another shape than asked for"), desk.desks[1].node->session().failure_text());
  TEST_ASSERT_TRUE(desk.desks[0].node->session().ready());
  desk.answer(0, granted);
  desk.answer(2, granted);
  desk.keep();
  desk.expect_over(Status::ok);
  TEST_ASSERT_TRUE(std::any_of(desk.desks.begin(), desk.desks.end(), [](const NodeDesk& it) {
    return it.node->session().failure() == Status::protocol_error;
  }));
}

// Its release finds no place among the requests, and goes out as a compensation.
TEST(test_the_word_on_what_was_taken_back_should_be_a_node_s_answer_to_the_release) {
  TaskDesk desk;
  desk.hold();
  std::string pongs;
  for (std::size_t count = desk.fill(1); count != 0; --count) pongs += "+PONG\r\n";
  desk.begin(Call::release);
  (void)desk.ask();
  TEST_ASSERT_EQUAL(1, desk.desks[1].node->session().compensations_pending());
  desk.answer(0, yes);
  desk.expect(TaskAct::sleep);
  desk.answer(1, pongs);
  desk.expect(TaskAct::sleep);
  desk.answer(1, yes);
  desk.expect_over(Status::ok);
}

TEST(test_what_finds_no_place_to_be_taken_back_should_be_owed) {
  for (const bool full : {false, true}) {
    TaskDesk desk;
    Session& session = desk.desks[1].node->session();
    desk.acquire();
    (void)desk.ask();
    desk.desks[1].receive("+WHAT\r\n");  // Nobody knows what that has done.
    if (full) desk.fill_compensations(1);
    const std::size_t before = session.compensations_pending();
    desk.dispatch(1);
    TEST_ASSERT_EQUAL(full ? 0b010 : 0, desk.machine.owed());
    TEST_ASSERT_EQUAL(before + (full ? 0 : 1), session.compensations_pending());
  }
}

// ---- Who is told of it -------------------------------------------------------------------------------------------

namespace {

// Its witness, and what it was told.
struct WitnessedQuorum {
  std::string take(bool releasing = false) {
    QuorumEvent event{};
    while (desk.task.poll_event(event, releasing, desk.now)) ++events;
    return recorder.take();
  }
  Recorder recorder;
  TaskDesk desk{mutex_kind, {.meter = &recorder}};
  int events = 0;
};

}  // namespace

TEST(test_a_witness_should_be_told_how_an_acquire_of_a_quorum_has_ended) {
  WitnessedQuorum it;
  it.desk.hold();
  TEST_ASSERT_EQUAL(std::string("acquired k ok 0"), it.take());
  TEST_ASSERT_EQUAL(1, it.events);
}

TEST(test_a_witness_should_be_told_of_each_round_of_renewals_and_how_long_it_took) {
  WitnessedQuorum it;
  it.desk.hold();
  (void)it.take();
  it.desk.begin(Call::renew);
  (void)it.desk.ask();
  it.desk.pass(9ns);
  it.desk.answer_all(yes);
  it.desk.expect_over(Status::ok);
  TEST_ASSERT_EQUAL(std::string("renewed k ok 9"), it.take());
  it.desk.begin(Call::renew);
  (void)it.desk.ask();
  it.desk.pass(4ns);
  it.desk.answer_all("-READONLY You can't write against a read only replica.\r\n");
  TEST_ASSERT_EQUAL(std::string("renewed k no_quorum 4"), it.take());
}

TEST(test_a_witness_should_be_told_of_a_loss_and_whether_somebody_is_told) {
  for (const bool releasing : {false, true}) {
    WitnessedQuorum it;
    it.desk.hold();
    (void)it.take();
    it.desk.pass(lease);
    it.desk.settle();
    TEST_ASSERT_EQUAL(std::string(releasing ? "lost_unnoticed k ok 0" : "lost k ok 0"), it.take(releasing));
  }
}

TEST(test_a_witness_should_be_told_of_a_release_of_a_quorum_only_where_it_finds_the_hold_lost) {
  for (const bool lost : {false, true}) {
    WitnessedQuorum it;
    it.desk.hold();
    (void)it.take();
    it.desk.begin(Call::release);
    (void)it.desk.ask();
    it.desk.answer_all(lost ? no : yes);
    it.desk.expect_over(lost ? Status::lock_lost : Status::ok);
    TEST_ASSERT_EQUAL(std::string(lost ? "lost_unnoticed k ok 0" : ""), it.take(true));
  }
}

// ---- What comes too late -----------------------------------------------------------------------------------------

TEST(test_an_acquire_whose_time_is_over_when_it_has_its_token_should_ask_nobody) {
  for (const Duration late : {500ms, 499ms}) {
    TaskDesk desk;
    desk.acquire();
    desk.expect(TaskAct::ask);
    desk.pass(late);
    desk.task.ask(Council::token('a'), desk.with_room, desk.now);
    desk.settle();
    TEST_ASSERT_EQUAL(late == 500ms ? 0 : 0b111, desk.asked());
    if (late == 500ms) desk.expect_over(Status::timed_out);
  }
}

TEST(test_an_acquire_whose_majority_has_lost_its_room_should_be_refused) {
  TaskDesk desk(mutex_kind, {}, 2);
  desk.acquire();
  desk.expect(TaskAct::ask);
  desk.task.ask(Council::token('a'), 0b001, desk.now);
  desk.settle();
  TEST_ASSERT_EQUAL(0, desk.asked());
  desk.expect_over(Status::too_many_requests);
}

TEST(test_an_acquire_that_may_wait_should_wait_for_a_majority_to_come_back) {
  TaskDesk desk(mutex_kind, {}, 1);
  desk.acquire(10s);
  desk.plan();
  TEST_ASSERT_TRUE(desk.sleeps() > Duration::zero());
}

TEST(test_a_mutex_that_is_held_should_not_be_acquired_once_more) {
  TaskDesk desk;
  desk.hold();
  desk.acquire();
  TEST_ASSERT_TRUE(desk.task.wants_token(desk.now));
  TEST_ASSERT_EQUAL(0, desk.ask('b'));
  desk.expect_over(Status::already_held);
  TEST_ASSERT_TRUE(desk.machine.held(desk.now));
}

TEST(test_a_renewal_should_not_look_at_the_timing_of_an_acquire_that_is_over) {
  TaskDesk desk;
  QuorumTiming timing = {.lease = 20s};
  desk.task.begin_acquire(desk.now, desk.now, desk.now + 500ms, &timing);
  (void)desk.ask();
  desk.answer_all(granted);
  desk.keep();
  desk.expect_over(Status::ok);
  timing.lease = 25s;
  desk.begin(Call::renew);
  TEST_ASSERT_EQUAL(0b111, desk.ask());
  for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_TRUE(desk.was_told(node, "20000"));
}

TEST(test_a_server_that_was_not_asked_should_be_told_to_be_not_connected) {
  TaskDesk desk;
  desk.close(2);
  desk.desks[2].now = desk.now = desk.now + 10s;
  desk.desks[2].connect('c');  // Nobody has been introduced to it.
  desk.acquire();
  (void)desk.ask();
  TEST_ASSERT_EQUAL(Status::not_connected, desk.machine.vote(2).status);
}

TEST(test_what_has_become_of_a_hold_should_be_told_without_a_witness) {
  TaskDesk desk;
  desk.hold();
  desk.begin(Call::renew);
  (void)desk.ask();
  desk.answer_all(yes);
  desk.expect_over(Status::ok);
  std::vector<QuorumEvent> events;
  for (QuorumEvent event{}; desk.task.poll_event(event, false, desk.now);) events.push_back(event);
  TEST_ASSERT_TRUE((events == std::vector{QuorumEvent::granted, QuorumEvent::renewed}));
}
