// SPDX-License-Identifier: MIT
//
// Whether replicas have a grant: what is asked on the connection that is for that alone, and whom each answer is for.
#include "holdfast/core/ack_lane.hpp"

#include <string>
#include <vector>

#include "heard.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/node_task.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "node_desk.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

struct Holder {
  Holder(Node& node, const std::string& key, const LockKind& kind = mutex_kind)
      : machine(kind), task(machine, node, this) {
    TEST_ASSERT_EQUAL(Status::ok, machine.configure(Key(ByteView(key)), {.lease = 10s}));
    TEST_ASSERT_EQUAL(Status::ok, machine.acquire(Token(ByteView(std::string(32, 't'))), start, start + 500ms));
  }
  LockMachine machine;
  NodeTask task;
};

struct LaneDesk : NodeDesk {
  LaneDesk() {
    const SocketAddress address = address_of('1');
    ClientConfig config = config_of("127.0.0.1");
    config.acks = 2;
    config.acks_timeout = 150ms;
    node->configure(config, &address);
  }
  void come_up() {
    connect();
    transmit();
    sent.clear();
  }
  void work() {
    lane.work(*node, now);
    TEST_ASSERT_TRUE(lane.invariants());
    transmit();
  }
  // What it says is taken, and what was answered leaves.
  [[nodiscard]] bool answer(std::string_view bytes) {
    receive(bytes);
    return take();
  }
  [[nodiscard]] bool take() {
    bool taken = true;
    for (const Reply& reply : heard) taken = lane.handle_reply(reply, node->config()) && taken;
    heard.clear();
    TEST_ASSERT_TRUE(lane.invariants());
    told.clear();
    while (const NodeTask* const task = lane.poll_told()) told.push_back(task->requester());
    return taken;
  }
  int count(const std::string& word) const {
    int found = 0;
    for (std::size_t at = 0; (at = sent.find(word, at)) != std::string::npos; ++at) ++found;
    return found;
  }

  AckLane lane;
  Holder one{*node, "one"};
  Holder two{*node, "two"};
  Holder three{*node, "three"};
  std::vector<void*> told;
};

// One hold is asked for.
struct AskedDesk : LaneDesk {
  AskedDesk() {
    come_up();
    lane.enter(one.task);
    work();
  }
};

const std::string wait_for_two = "*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$3\r\n150\r\n";

}  // namespace

TEST(test_a_renewal_and_its_wait_should_leave_in_one_send) {
  LaneDesk desk;
  desk.come_up();
  desk.lane.enter(desk.one.task);
  TEST_ASSERT_TRUE(desk.one.task.pending());
  desk.work();
  // A millisecond more than the lease: the same lease would write nothing, and then nothing would be waited for.
  TEST_ASSERT_TRUE(desk.sent.find("*6\r\n$4\r\nEVAL\r\n") == 0);
  TEST_ASSERT_TRUE(desk.sent.find("$5\r\n10001\r\n" + wait_for_two) == desk.sent.size() - 11 - wait_for_two.size());
  TEST_ASSERT_TRUE(desk.answer(":1\r\n"));
  TEST_ASSERT_TRUE(desk.one.task.pending());
  TEST_ASSERT_TRUE(desk.answer(":2\r\n"));
  TEST_ASSERT_EQUAL(1, desk.told.size());
  TEST_ASSERT_TRUE(desk.told[0] == &desk.one);
  TEST_ASSERT_EQUAL(Status::ok, desk.one.task.outcome());
  TEST_ASSERT_TRUE(desk.lane.empty());
}

TEST(test_fewer_replicas_than_were_asked_for_should_be_too_few) {
  for (const char* const count : {":1\r\n", ":0\r\n"}) {
    AskedDesk desk;
    TEST_ASSERT_TRUE(desk.answer(":1\r\n" + std::string(count)));
    TEST_ASSERT_EQUAL(Status::too_few_replicas, desk.one.task.outcome());
  }
  AskedDesk desk;
  TEST_ASSERT_TRUE(desk.answer(":1\r\n:3\r\n"));
  TEST_ASSERT_EQUAL(Status::ok, desk.one.task.outcome());
}

TEST(test_one_wait_should_answer_for_all_that_were_renewed_before_it) {
  LaneDesk desk;
  desk.come_up();
  desk.lane.enter(desk.one.task);
  desk.lane.enter(desk.two.task);
  desk.work();
  TEST_ASSERT_EQUAL(2, desk.count("EVAL\r\n"));
  TEST_ASSERT_EQUAL(1, desk.count("WAIT\r\n"));
  // Who comes later goes with the next one.
  desk.sent.clear();
  desk.lane.enter(desk.three.task);
  desk.work();
  TEST_ASSERT_EQUAL("", desk.sent);
  TEST_ASSERT_TRUE(desk.answer(":1\r\n:0\r\n:2\r\n"));
  TEST_ASSERT_EQUAL(Status::ok, desk.one.task.outcome());
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.two.task.outcome());  // The server does not have it.
  TEST_ASSERT_TRUE(desk.three.task.pending());
  desk.work();
  TEST_ASSERT_EQUAL(1, desk.count("EVAL\r\n"));
  TEST_ASSERT_EQUAL(1, desk.count("WAIT\r\n"));
  TEST_ASSERT_TRUE(desk.answer(":1\r\n:2\r\n"));
  TEST_ASSERT_EQUAL(Status::ok, desk.three.task.outcome());
}

TEST(test_who_leaves_should_be_told_nothing_and_leave_the_others_theirs) {
  LaneDesk desk;
  desk.come_up();
  desk.lane.enter(desk.one.task);
  desk.lane.enter(desk.two.task);
  desk.work();
  desk.lane.leave(desk.one.task);
  TEST_ASSERT_FALSE(desk.one.task.pending());
  // The first renewal's answer is none of the second's.
  TEST_ASSERT_TRUE(desk.answer(":0\r\n:1\r\n:2\r\n"));
  TEST_ASSERT_EQUAL(1, desk.told.size());
  TEST_ASSERT_TRUE(desk.told[0] == &desk.two);
  TEST_ASSERT_EQUAL(Status::ok, desk.two.task.outcome());

  // Of a wait that nobody wants any more, the answer is none for who comes next.
  desk.lane.enter(desk.one.task);
  desk.work();
  desk.lane.leave(desk.one.task);
  desk.lane.enter(desk.one.task);
  desk.work();
  TEST_ASSERT_TRUE(desk.answer(":1\r\n:2\r\n"));
  TEST_ASSERT_TRUE(desk.one.task.pending());
  desk.work();
  TEST_ASSERT_TRUE(desk.answer(":1\r\n:2\r\n"));
  TEST_ASSERT_EQUAL(Status::ok, desk.one.task.outcome());
}

TEST(test_who_was_told_may_leave_or_enter_again_before_it_is_polled) {
  LaneDesk desk;
  desk.come_up();
  desk.lane.enter(desk.one.task);
  desk.lane.enter(desk.two.task);
  desk.work();
  desk.receive(":1\r\n:1\r\n:0\r\n");
  for (const Reply& reply : desk.heard) TEST_ASSERT_TRUE(desk.lane.handle_reply(reply, desk.node->config()));
  desk.heard.clear();
  TEST_ASSERT_FALSE(desk.one.task.pending());
  desk.lane.enter(desk.three.task);
  desk.lane.enter(desk.one.task);
  desk.lane.leave(desk.two.task);
  TEST_ASSERT_TRUE(desk.lane.poll_told() == nullptr);
  desk.work();
  TEST_ASSERT_TRUE(desk.answer(":1\r\n:1\r\n:2\r\n"));
  TEST_ASSERT_EQUAL(2, desk.told.size());
  TEST_ASSERT_TRUE(desk.lane.empty());
}

TEST(test_a_lost_connection_should_confirm_nothing) {
  LaneDesk desk;
  desk.come_up();
  desk.lane.enter(desk.one.task);
  desk.lane.enter(desk.two.task);
  desk.work();
  // One renewal was answered. A WAIT on the next connection would speak of what was written there: of nothing.
  (void)desk.answer(":1\r\n");
  desk.close();
  TEST_ASSERT_TRUE(desk.take());
  TEST_ASSERT_EQUAL(2, desk.told.size());
  TEST_ASSERT_EQUAL(Status::transport_closed, desk.one.task.outcome());
  TEST_ASSERT_EQUAL(Status::transport_closed, desk.two.task.outcome());
}

TEST(test_what_had_not_left_should_be_asked_on_the_next_connection) {
  LaneDesk desk;
  desk.come_up();
  desk.lane.enter(desk.one.task);
  desk.lane.work(*desk.node, desk.now);
  desk.close();
  TEST_ASSERT_TRUE(desk.take());
  TEST_ASSERT_EQUAL(0, desk.told.size());
  TEST_ASSERT_TRUE(desk.one.task.pending());
  desk.now = desk.now + 10s;
  desk.come_up();
  desk.work();
  TEST_ASSERT_EQUAL(1, desk.count("EVAL\r\n"));
  TEST_ASSERT_TRUE(desk.answer(":1\r\n:2\r\n"));
  TEST_ASSERT_EQUAL(Status::ok, desk.one.task.outcome());
}

TEST(test_without_a_connection_the_reason_should_be_told) {
  LaneDesk desk;
  desk.lane.enter(desk.one.task);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.work();
  TEST_ASSERT_TRUE(desk.one.task.pending());  // It is being made.
  desk.node->dialer().handle_dial_failed(Status::connect_failed, desk.now, least);
  desk.work();
  TEST_ASSERT_TRUE(desk.take());
  TEST_ASSERT_EQUAL(Status::connect_failed, desk.one.task.outcome());
}

// A reply that is still to come changes nothing: it is of another server than the one that is meant by then.
TEST(test_who_waits_at_a_node_that_is_given_up_should_be_told_why_and_nothing_else) {
  AskedDesk desk;
  desk.lane.enter(desk.two.task);
  desk.lane.give_up(Status::not_connected);
  TEST_ASSERT_TRUE(desk.take());
  TEST_ASSERT_EQUAL(2, desk.told.size());
  TEST_ASSERT_EQUAL(Status::not_connected, desk.one.task.outcome());
  TEST_ASSERT_EQUAL(Status::not_connected, desk.two.task.outcome());
  TEST_ASSERT_TRUE(desk.answer(":1\r\n:2\r\n"));
  TEST_ASSERT_TRUE(desk.told.empty());
  TEST_ASSERT_EQUAL(Status::not_connected, desk.one.task.outcome());
}

TEST(test_answers_in_time_should_be_waited_for_no_longer_than_that) {
  AskedDesk desk;
  desk.now = desk.now + 649ms;
  desk.node->session().handle_timeout(desk.now);
  desk.poll_replies();
  TEST_ASSERT_TRUE(desk.take());
  TEST_ASSERT_TRUE(desk.one.task.pending());
  desk.now = desk.now + 1ms;
  desk.node->session().handle_timeout(desk.now);
  desk.poll_replies();
  TEST_ASSERT_TRUE(desk.take());
  TEST_ASSERT_EQUAL(Status::timed_out, desk.one.task.outcome());
}

TEST(test_refusals_should_be_told_in_the_servers_words) {
  AskedDesk desk;
  TEST_ASSERT_TRUE(desk.answer("-NOPERM no\r\n:2\r\n"));
  TEST_ASSERT_EQUAL(Status::no_permission, desk.one.task.outcome());
  desk.lane.enter(desk.one.task);
  desk.work();
  TEST_ASSERT_TRUE(desk.answer(":1\r\n-NOPERM no\r\n"));
  TEST_ASSERT_EQUAL(Status::no_permission, desk.one.task.outcome());
}

TEST(test_replies_of_another_shape_should_be_no_confirmation) {
  for (const char* const count : {"+OK\r\n", "$1\r\n2\r\n", ":-1\r\n", "$-1\r\n", "*1\r\n:2\r\n"}) {
    AskedDesk desk;
    TEST_ASSERT_FALSE(desk.answer(":1\r\n" + std::string(count)));
    TEST_ASSERT_EQUAL(Status::protocol_error, desk.one.task.outcome());
  }
  AskedDesk desk;
  TEST_ASSERT_FALSE(desk.answer("+OK\r\n"));
  TEST_ASSERT_EQUAL(Status::protocol_error, desk.one.task.outcome());
}

TEST(test_more_requests_than_there_is_room_for_should_wait_for_theirs) {
  LaneDesk desk;
  desk.come_up();
  std::vector<std::unique_ptr<Holder>> holders;
  for (std::size_t index = 0; index < 2 * in_flight_max; ++index) {
    holders.push_back(std::make_unique<Holder>(*desk.node, "k" + std::to_string(index)));
    desk.lane.enter(holders.back()->task);
  }
  std::size_t told = 0;
  for (int round = 0; told < holders.size(); ++round) {
    TEST_ASSERT_TRUE(round < 100);
    desk.sent.clear();
    desk.work();
    const int renewals = desk.count("EVAL\r\n");
    TEST_ASSERT_TRUE(renewals > 0);
    TEST_ASSERT_EQUAL(1, desk.count("WAIT\r\n"));
    std::string answers;
    for (int index = 0; index < renewals; ++index) answers += ":1\r\n";
    TEST_ASSERT_TRUE(desk.answer(answers + ":2\r\n"));
    told += desk.told.size();
  }
  for (const auto& holder : holders) TEST_ASSERT_EQUAL(Status::ok, holder->task.outcome());
}

// What was asked before the lane forgot is still on its way, and takes its places: in the queue or in the send buffer.
TEST(test_a_renewal_should_be_asked_with_a_wait_behind_it_or_not_at_all) {
  for (const bool leaves : {true, false}) {
    LaneDesk desk;
    desk.come_up();
    int rounds = 0;
    for (; !desk.one.task.pending(); ++rounds) {
      TEST_ASSERT_TRUE(rounds < 1000);
      const std::size_t before = desk.node->session().in_flight();
      desk.lane.enter(desk.one.task);
      desk.lane.work(*desk.node, desk.now);
      TEST_ASSERT_TRUE(desk.lane.invariants());
      if (desk.node->session().in_flight() == before) break;
      TEST_ASSERT_EQUAL(before + 2, desk.node->session().in_flight());
      if (leaves) desk.transmit();
      desk.lane.forget();
    }
    TEST_ASSERT_TRUE(rounds > 2);
    TEST_ASSERT_TRUE(desk.one.task.pending());
    desk.transmit();
    TEST_ASSERT_EQUAL(rounds, desk.count("EVAL\r\n"));
    TEST_ASSERT_EQUAL(rounds, desk.count("WAIT\r\n"));
  }
}

TEST(test_a_renewal_should_not_take_the_place_of_its_wait) {
  LaneDesk desk;
  desk.come_up();
  Session& session = desk.node->session();
  int asker = 0;
  const Argument ping[] = {"PING"};
  while (session.in_flight() + 1 < in_flight_max)
    TEST_ASSERT_EQUAL(Status::ok, desk.node->ask({ping, 1}, {.requester = &asker}, desk.now));
  desk.sent.clear();
  desk.lane.enter(desk.one.task);
  desk.work();
  TEST_ASSERT_TRUE(desk.one.task.pending());
  TEST_ASSERT_EQUAL(in_flight_max - 1, session.in_flight());
  TEST_ASSERT_EQUAL(0, desk.count("EVAL\r\n"));
}

// However much of the send buffer is taken.
TEST(test_a_renewal_should_not_take_the_room_of_its_wait) {
  const std::string key(key_size_max, 'k');
  bool asked_once = false;
  bool waited_once = false;
  for (std::size_t left = 0; left < mutex_kind.request_size + 2 * ack_wait_size_max; ++left) {
    LaneDesk desk;
    Holder longest(*desk.node, key);
    desk.come_up();
    Session& session = desk.node->session();
    const std::size_t head = std::string_view("*2\r\n$4\r\nECHO\r\n$1000\r\n\r\n").size();
    const std::string text(session.request_size() - left - head, 'x');
    TEST_ASSERT_TRUE(text.size() >= 1000 && text.size() < 10000);
    int asker = 0;
    const Argument echo[] = {"ECHO", ByteView(text)};
    TEST_ASSERT_EQUAL(Status::ok, desk.node->ask({echo, 2}, {.requester = &asker}, desk.now));
    desk.lane.enter(longest.task);
    desk.lane.work(*desk.node, desk.now);
    const bool asked = session.in_flight() == 3;
    TEST_ASSERT_TRUE(asked || session.in_flight() == 1);
    asked_once = asked_once || asked;
    waited_once = waited_once || !asked;
  }
  TEST_ASSERT_TRUE(asked_once && waited_once);
}

// What a script says where the server refuses PEXPIRE.
TEST(test_a_renewal_that_the_server_refused_should_be_no_confirmation) {
  LaneDesk desk;
  Holder refused(*desk.node, "four", reentrant_kind);
  desk.come_up();
  desk.lane.enter(refused.task);
  desk.work();
  TEST_ASSERT_TRUE(desk.answer("*1\r\n:-1\r\n:2\r\n"));
  TEST_ASSERT_EQUAL(Status::server_error, refused.task.outcome());
}

TEST(test_a_wait_that_had_not_left_should_be_asked_again_with_its_renewal) {
  LaneDesk desk;
  desk.come_up();
  desk.lane.enter(desk.one.task);
  desk.lane.enter(desk.two.task);
  desk.lane.work(*desk.node, desk.now);
  if (desk.node->session().wants_look()) desk.node->session().handle_drained();
  std::string all;
  std::size_t limit = desk.node->session().poll_transmit(desk.now).size() - wait_for_two.size();
  do {
    if (desk.node->session().wants_look()) desk.node->session().handle_drained();
  } while (transmit_piece(desk.node->session(), desk.now, all, limit));
  TEST_ASSERT_EQUAL(0, limit);
  TEST_ASSERT_TRUE(all.find("EVAL") != std::string::npos && all.find("WAIT") == std::string::npos);
  std::string_view renewed = ":1\r\n:0\r\n";
  TEST_ASSERT_TRUE(receive_piece(desk.node->session(), desk.now, renewed));
  desk.poll_replies();
  desk.close();
  TEST_ASSERT_TRUE(desk.take());
  TEST_ASSERT_EQUAL(1, desk.told.size());  // It was told before that, and is not asked for again.
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.two.task.outcome());
  TEST_ASSERT_TRUE(desk.one.task.pending());
  desk.now = desk.now + 10s;
  desk.come_up();
  desk.work();
  TEST_ASSERT_EQUAL(1, desk.count("EVAL\r\n"));
  TEST_ASSERT_TRUE(desk.answer(":1\r\n:2\r\n"));
  TEST_ASSERT_EQUAL(Status::ok, desk.one.task.outcome());
}

// A session tells replies in the order of their requests; whoever did not would confirm what was not written.
TEST(test_a_count_that_comes_ahead_of_a_renewals_answer_should_confirm_nothing) {
  for (const Status outcome : {Status::ok, Status::timed_out}) {
    AskedDesk desk;
    const Heard two(":2\r\n");
    TEST_ASSERT_TRUE(desk.lane.handle_reply({.tag = {.requester = &desk.lane, .generation = 0},
                                             .outcome = outcome,
                                             .nothing_ran = false,
                                             .value = two.value},
                                            desk.node->config()));
    TEST_ASSERT_EQUAL(outcome == Status::ok ? Status::outcome_unknown : outcome, desk.one.task.outcome());
    TEST_ASSERT_FALSE(desk.one.task.pending());
  }
}

TEST(test_a_lane_that_forgets_should_owe_nobody_and_ask_anew) {
  LaneDesk desk;
  desk.come_up();
  desk.lane.enter(desk.one.task);
  desk.lane.enter(desk.two.task);
  desk.work();
  desk.lane.forget();
  TEST_ASSERT_TRUE(desk.lane.empty());
  TEST_ASSERT_FALSE(desk.one.task.pending());
  desk.lane.enter(desk.three.task);
  desk.sent.clear();
  desk.work();
  TEST_ASSERT_EQUAL(1, desk.count("EVAL\r\n"));
  TEST_ASSERT_EQUAL(1, desk.count("WAIT\r\n"));
}

TEST(test_what_a_request_was_told_should_stay_until_it_is_polled) {
  LaneDesk desk;
  desk.lane.enter(desk.one.task);
  TEST_ASSERT_EQUAL(Status::outcome_unknown, desk.one.task.outcome());
  desk.come_up();
  desk.work();
  desk.receive(":0\r\n:2\r\n");
  for (const Reply& reply : desk.heard) TEST_ASSERT_TRUE(desk.lane.handle_reply(reply, desk.node->config()));
  desk.heard.clear();
  // It is told, and not polled yet: it is neither asked again nor told another thing.
  desk.sent.clear();
  desk.work();
  TEST_ASSERT_EQUAL("", desk.sent);
  desk.close();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.node->dialer().handle_dial_failed(Status::connect_failed, desk.now, least);
  desk.work();
  TEST_ASSERT_EQUAL(Status::lock_lost, desk.one.task.outcome());
  // The next time it is unknown again.
  desk.lane.enter(desk.one.task);
  TEST_ASSERT_EQUAL(Status::outcome_unknown, desk.one.task.outcome());
}
