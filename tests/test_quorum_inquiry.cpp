// SPDX-License-Identifier: MIT
//
// What a majority says of a lock, over all that its nodes may say, and which node is asked what.
#include "unity_style.hpp"

#include <chrono>
#include <deque>
#include <string>
#include <string_view>

#include "heard.hpp"
#include "holdfast/core/quorum_inquiry.hpp"
#include "node_desk.hpp"
#include "printers.hpp"

using namespace holdfast;
using namespace holdfast::testing;

static void setUp() {}
static void tearDown() {}

namespace {

enum class Word { silent, free, ours, theirs, other, words };

LockInfo held_by(const char* owner, Duration remaining, std::uint64_t fence = 0) {
  LockInfo info;
  info.form = LockForm::mutex;
  info.owner.assign(ByteView(std::string_view(owner)));
  info.count = info.owners = 1;
  info.remaining = remaining;
  info.fence = fence;
  return info;
}

void say(QuorumInfo::Node& node, Word word) {
  node.status = word == Word::silent ? Status::timed_out : Status::ok;
  node.info = LockInfo();
  if (word == Word::ours) node.info = held_by("ours", 9s);
  if (word == Word::theirs) node.info = held_by("theirs", 8s);
  if (word == Word::other) node.info.form = LockForm::other;
}

constexpr NodeSet everybody = 0xffff;

const std::string yes = ":1\r\n";
const std::string no = ":0\r\n";
// What lock_info.lua says of no key, and of a string.
const std::string is_free = "*7\r\n" + bulk("none") + ":-2\r\n" + bulk("") + bulk("0") + ":0\r\n" + bulk("") + bulk("");
std::string is_string(const char* text) {
  return "*7\r\n" + bulk("string") + ":60000\r\n" + bulk(text) + bulk("1") + ":1\r\n" + bulk("") + bulk("");
}

// A driver of one inquiry, which decides nothing.
struct Desk {
  explicit Desk(std::size_t nodes = 3, const QuorumConfig& config = {}) : desks(nodes) {
    roll.begin(nodes, config, now);
    for (std::size_t node = 0; node < nodes; ++node) {
      roll.attach(node, *desks[node].node);
      roll.enter(node, desks[node].node->config());
    }
  }
  void connect(std::size_t node, char run_id) {
    desks[node].connect(run_id);
    introduce(node);
  }
  // Its user may not ask it who it is.
  void connect_anonymous(std::size_t node) {
    TEST_ASSERT_EQUAL(DialAction::dial, desks[node].poll());
    desks[node].node->handle_connected(now);
    desks[node].receive("+OK\r\n:7\r\n-NOPERM this user has no permissions to run the 'info' command\r\n");
    TEST_ASSERT_TRUE(desks[node].node->handle_ready(now));
    introduce(node);
  }
  void connect_all() {
    for (std::size_t node = 0; node < desks.size(); ++node) connect(node, static_cast<char>('a' + node));
  }
  void introduce(std::size_t node) {
    (void)roll.introduce(node, now);
    desks[node].transmit();
    desks[node].sent.clear();
  }
  void close(std::size_t node) {
    desks[node].node->handle_closed(now, least);
    roll.leave(node, Status::transport_closed);
    dispatch(node);
  }
  // One turn. Those to which something was sent in it.
  NodeSet turn() {
    inquiry.hand_over(roll, connecting, this, now);
    NodeSet asked = 0;
    for (std::size_t node = 0; node < desks.size(); ++node) {
      desks[node].transmit();
      if (!desks[node].sent.empty()) asked = static_cast<NodeSet>(asked | node_bit(node));
      desks[node].sent.clear();
    }
    return asked;
  }
  void answer(std::size_t node, std::string_view bytes) {
    while (receive_piece(desks[node].node->session(), now, bytes)) dispatch(node);
  }
  void dispatch(std::size_t node) {
    Reply reply;
    while (desks[node].node->session().poll_reply(reply, now)) {
      TEST_ASSERT_TRUE(reply.tag.requester == this);
      taken = inquiry.take(node, reply.outcome, reply.nothing_ran, reply.value);
    }
  }
  void give_up(Status why) {
    for (NodeSet left = inquiry.give_up(roll, this, why, now); left != 0;
         left = static_cast<NodeSet>(left & (left - 1)))
      dispatch(static_cast<std::size_t>(__builtin_ctz(left)));
    TEST_ASSERT_TRUE(inquiry.over());
  }
  Status conclude() { return inquiry.conclude(roll, now); }

  std::deque<NodeDesk> desks;
  VoterRoll::Voter voters[nodes_max];
  VoterRoll roll{voters, nodes_max};
  QuorumInquiry inquiry;
  QuorumInfo info;
  QuorumRelease release;
  Instant now = start;
  NodeSet connecting = 0;
  bool taken = true;
};

}  // namespace

// Held by whom a majority names; free where nobody can have one, whatever the silent nodes would say; nothing else is known.
TEST(test_verdict_should_be_what_every_majority_of_answers_allows) {
  constexpr auto words = static_cast<std::size_t>(Word::words);
  for (std::size_t count = 1; count <= 5; ++count) {
    std::size_t all = 1;
    for (std::size_t node = 0; node < count; ++node) all *= words;
    for (std::size_t code = 0; code < all; ++code) {
      QuorumInfo info;
      info.count = count;
      std::size_t tally[words] = {};
      NodeSet said[words] = {};
      std::size_t rest = code;
      for (std::size_t node = 0; node < count; ++node, rest /= words) {
        say(info.nodes[node], static_cast<Word>(rest % words));
        ++tally[rest % words];
        said[rest % words] = static_cast<NodeSet>(said[rest % words] | node_bit(node));
      }
      info.judge(everybody);
      const std::size_t majority = count / 2 + 1;
      const auto of = [&](Word word) { return tally[static_cast<std::size_t>(word)]; };
      const auto nodes_of = [&](Word word) { return said[static_cast<std::size_t>(word)]; };
      Possession expected = Possession::unknown;
      NodeSet agreeing = 0;
      if (of(Word::ours) >= majority || of(Word::theirs) >= majority) {
        expected = Possession::held;
        agreeing = nodes_of(of(Word::ours) >= majority ? Word::ours : Word::theirs);
      } else if (of(Word::other) >= majority) {
        expected = Possession::no_lock;
        agreeing = nodes_of(Word::other);
      } else if (of(Word::ours) + of(Word::silent) < majority && of(Word::theirs) + of(Word::silent) < majority) {
        expected = Possession::free;
        agreeing = nodes_of(Word::free);
      }
      const std::string text = "of " + std::to_string(count) + " nodes, code " + std::to_string(code);
      DOCTEST_INFO(text);
      TEST_ASSERT_TRUE(info.state == expected);
      TEST_ASSERT_EQUAL(agreeing, info.agreeing);
      TEST_ASSERT_EQUAL(nodes_of(Word::silent), info.silent);
      TEST_ASSERT_EQUAL(static_cast<NodeSet>(node_bit(count) - 1U),
                        static_cast<NodeSet>(info.agreeing | info.differing | info.silent));
      TEST_ASSERT_EQUAL(0, info.agreeing & info.differing);
      TEST_ASSERT_EQUAL(expected != Possession::held, info.holder.owner.view().empty());
    }
  }
}

TEST(test_holder_should_have_the_lowest_remaining_time_and_the_largest_fence_of_its_majority) {
  QuorumInfo info;
  info.count = 3;
  const LockInfo answers[] = {held_by("ours", 9s, 3), held_by("ours", 7s, 5), held_by("theirs", 1s, 9)};
  for (std::size_t node = 0; node < 3; ++node) info.nodes[node] = {.status = Status::ok, .info = answers[node]};
  info.judge(everybody);
  TEST_ASSERT_TRUE(info.state == Possession::held);
  TEST_ASSERT_EQUAL(ByteView("ours"), info.holder.owner.view());
  TEST_ASSERT_TRUE(info.holder.remaining == 7s);
  TEST_ASSERT_EQUAL(std::uint64_t{5}, info.holder.fence);
  TEST_ASSERT_EQUAL(0b011, info.agreeing);
  TEST_ASSERT_EQUAL(0b100, info.differing);
}

// It may have forgotten a lock that its holder still has by a majority.
TEST(test_free_should_not_count_of_a_node_that_may_have_forgotten) {
  QuorumInfo info;
  info.count = 3;
  say(info.nodes[0], Word::ours);
  say(info.nodes[1], Word::free);
  say(info.nodes[2], Word::free);
  info.judge(0b101);
  TEST_ASSERT_TRUE(info.state == Possession::unknown);
  TEST_ASSERT_EQUAL(0b010, info.silent);
  info.judge(0b111);
  TEST_ASSERT_TRUE(info.state == Possession::free);
  say(info.nodes[1], Word::ours);
  info.judge(0b101);  // What it holds it has been given.
  TEST_ASSERT_TRUE(info.state == Possession::held);
}

TEST(test_release_should_be_known_where_a_majority_confirms_it) {
  for (std::size_t count = 1; count <= 5; ++count)
    for (unsigned done = 0; done <= count; ++done)
      for (unsigned unknown = 0; done + unknown <= count; ++unknown) {
        QuorumRelease release;
        release.count = count;
        release.released = static_cast<NodeSet>((1U << (done / 2)) - 1U);
        release.free = static_cast<NodeSet>(((1U << done) - 1U) & ~release.released);
        release.unknown = static_cast<NodeSet>(((1U << unknown) - 1U) << done);
        const std::size_t majority = count / 2 + 1;
        TEST_ASSERT_EQUAL(done >= majority             ? Status::ok
                          : done + unknown >= majority ? Status::outcome_unknown
                                                       : Status::no_quorum,
                          release.verdict());
      }
}

TEST(test_each_node_should_be_asked_once_and_a_lost_answer_be_unknown) {
  Desk desk(5);
  QuorumInquiry& inquiry = desk.inquiry;
  QuorumRelease& release = desk.release;
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_release(Key(ByteView("")), 3, release));
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_release(Key("k"), 0, release));
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_release(Key("k"), nodes_max + 1, release));
  TEST_ASSERT_TRUE(inquiry.over());
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_release(Key("k"), 5, release));
  for (std::size_t node = 0; node < 4; ++node) desk.connect(node, static_cast<char>('a' + node));
  TEST_ASSERT_EQUAL(0b01111, desk.turn());  // The fifth is neither there nor on its way.
  TEST_ASSERT_EQUAL(0, desk.turn());
  desk.answer(0, yes);
  desk.answer(1, no);
  desk.desks[2].node->session().give_up(&desk, Status::timed_out, desk.now);
  desk.dispatch(2);
  TEST_ASSERT_TRUE(desk.taken);
  TEST_ASSERT_FALSE(inquiry.over());
  desk.answer(3, ":7\r\n");  // That was not asked for.
  TEST_ASSERT_FALSE(desk.taken);
  TEST_ASSERT_TRUE(inquiry.over());
  TEST_ASSERT_EQUAL(0b00001, release.released);
  TEST_ASSERT_EQUAL(0b00010, release.free);
  TEST_ASSERT_EQUAL(0b01100, release.unknown);
  TEST_ASSERT_EQUAL(0b10000, release.refused);
  TEST_ASSERT_EQUAL(Status::not_connected, release.nodes[4]);
  TEST_ASSERT_EQUAL(Status::protocol_error, release.nodes[3]);
  TEST_ASSERT_EQUAL(Status::outcome_unknown, desk.conclude());
}

TEST(test_node_that_is_on_its_way_should_be_waited_for) {
  Desk desk;
  desk.connect(0, 'a');
  desk.connecting = 0b110;
  TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_info(Key("k"), 3, desk.info));
  TEST_ASSERT_EQUAL(0b001, desk.turn());
  desk.connect(1, 'b');
  desk.connecting = 0;
  TEST_ASSERT_EQUAL(0b010, desk.turn());
  TEST_ASSERT_EQUAL(Status::not_connected, desk.info.nodes[2].status);
  desk.answer(0, is_free);
  desk.answer(1, is_free);
  TEST_ASSERT_TRUE(desk.inquiry.over());
  TEST_ASSERT_EQUAL(Status::ok, desk.conclude());
  TEST_ASSERT_TRUE(desk.info.state == Possession::free);
  TEST_ASSERT_EQUAL(0b100, desk.info.silent);
}

// Two addresses of one server say the same, and so do a server and its replica: that is one word.
TEST(test_node_that_is_no_server_of_its_own_should_not_be_asked) {
  enum class Way { twin, anonymous, replica };
  for (const Way way : {Way::twin, Way::anonymous, Way::replica})
    for (const bool asks : {true, false}) {
      Desk desk;
      desk.connect(0, 'a');
      for (std::size_t node = 1; node < 3; ++node) {
        if (way == Way::anonymous)
          desk.connect_anonymous(node);
        else
          desk.connect(node, way == Way::twin ? 'a' : static_cast<char>('a' + node));
        if (way == Way::replica) desk.roll.demote(node_bit(node), desk.now);
      }
      TEST_ASSERT_EQUAL(Status::ok, asks ? desk.inquiry.begin_info(Key("k"), 3, desk.info)
                                         : desk.inquiry.begin_release(Key("k"), 3, desk.release));
      TEST_ASSERT_EQUAL(0b001, desk.turn());
      desk.answer(0, asks ? is_free : yes);
      TEST_ASSERT_TRUE(desk.inquiry.over());
      TEST_ASSERT_EQUAL(Status::no_quorum, desk.conclude());
      const Status why = way == Way::twin      ? Status::same_machine
                         : way == Way::replica ? Status::read_only
                                               : Status::no_quorum;
      for (std::size_t node = 1; node < 3; ++node)
        TEST_ASSERT_EQUAL(why, asks ? desk.info.nodes[node].status : desk.release.nodes[node]);
      TEST_ASSERT_EQUAL(asks ? 0 : 0b110, desk.release.refused);
      TEST_ASSERT_EQUAL(asks ? 0b110 : 0, desk.info.silent);
    }
}

// It may have forgotten the lock: that is judged by who may vote when the inquiry is over.
TEST(test_free_of_a_node_that_may_not_vote_should_not_be_concluded_from) {
  Desk desk(3, {.max_lease = 10min});
  desk.connect_all();
  TEST_ASSERT_EQUAL(0, desk.roll.voters(desk.now));
  TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_info(Key("k"), 3, desk.info));
  TEST_ASSERT_EQUAL(0b111, desk.turn());
  for (std::size_t node = 0; node < 3; ++node) desk.answer(node, is_free);
  TEST_ASSERT_EQUAL(Status::no_quorum, desk.conclude());
  TEST_ASSERT_EQUAL(0b111, desk.info.silent);
  desk.now = desk.now + 20min;
  TEST_ASSERT_EQUAL(Status::ok, desk.conclude());
  TEST_ASSERT_EQUAL(0b111, desk.info.agreeing);
}

// A number may be a semaphore. What is not known to be none is not said of the node.
TEST(test_node_whose_second_question_is_not_answered_should_be_silent) {
  enum class Way { lost, cancelled, gone, silent_after, answered };
  for (const Way way : {Way::lost, Way::cancelled, Way::gone, Way::silent_after, Way::answered}) {
    Desk desk;
    desk.connect_all();
    TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_info(Key("k"), 3, desk.info));
    TEST_ASSERT_EQUAL(0b111, desk.turn());
    for (std::size_t node = 0; node < 2; ++node) desk.answer(node, is_string("17"));
    desk.answer(2, is_string("somebody"));
    if (way == Way::cancelled) {
      desk.give_up(Status::cancelled);
    } else if (way == Way::gone) {
      for (std::size_t node = 0; node < 2; ++node) desk.close(node);
      TEST_ASSERT_EQUAL(0, desk.turn());
    } else {
      TEST_ASSERT_EQUAL(0b011, desk.turn());
      for (std::size_t node = 0; node < 2; ++node)
        if (way == Way::lost) desk.close(node);
      if (way == Way::silent_after) desk.give_up(Status::timed_out);
      for (std::size_t node = 0; node < 2; ++node)
        if (way == Way::answered) desk.answer(node, "*4\r\n:0\r\n:0\r\n" + bulk("") + ":0\r\n");
    }
    TEST_ASSERT_TRUE(desk.inquiry.over());
    TEST_ASSERT_EQUAL(way == Way::answered ? Status::ok : Status::no_quorum, desk.conclude());
    TEST_ASSERT_EQUAL(way == Way::answered ? 0 : 0b011, desk.info.silent);
    TEST_ASSERT_EQUAL(way == Way::answered       ? Status::ok
                      : way == Way::cancelled    ? Status::cancelled
                      : way == Way::gone         ? Status::not_connected
                      : way == Way::silent_after ? Status::timed_out
                                                 : Status::transport_closed,
                      desk.info.nodes[0].status);
  }
}

// What its user may not be told of permits is known of the string itself.
TEST(test_node_whose_second_question_is_refused_should_be_told_as_the_first_one_said) {
  Desk desk;
  desk.connect_all();
  TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_info(Key("k"), 3, desk.info));
  TEST_ASSERT_EQUAL(0b111, desk.turn());
  for (std::size_t node = 0; node < 3; ++node) desk.answer(node, is_string("17"));
  TEST_ASSERT_EQUAL(0b111, desk.turn());
  for (std::size_t node = 0; node < 3; ++node)
    desk.answer(node, "-NOPERM this user has no permissions to access one of the keys\r\n");
  TEST_ASSERT_TRUE(desk.inquiry.over());
  TEST_ASSERT_EQUAL(Status::ok, desk.conclude());
  for (std::size_t node = 0; node < 3; ++node) {
    TEST_ASSERT_EQUAL(Status::ok, desk.info.nodes[node].status);
    TEST_ASSERT_TRUE(desk.info.nodes[node].info.form == LockForm::mutex);
    TEST_ASSERT_EQUAL(ByteView("17"), desk.info.nodes[node].info.owner.view());
  }
  TEST_ASSERT_TRUE(desk.info.state == Possession::held);
}

// Who was not asked has done nothing; who was asked may have.
TEST(test_release_that_is_given_up_should_tell_who_was_asked) {
  Desk desk(5);
  for (std::size_t node = 0; node < 4; ++node) desk.connect(node, static_cast<char>('a' + node));
  desk.connecting = 0b10000;
  TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_release(Key("k"), 5, desk.release));
  TEST_ASSERT_EQUAL(0b01111, desk.turn());
  desk.answer(0, yes);
  desk.give_up(Status::cancelled);
  TEST_ASSERT_EQUAL(0b00001, desk.release.released);
  TEST_ASSERT_EQUAL(0b01110, desk.release.unknown);
  TEST_ASSERT_EQUAL(0b10000, desk.release.refused);
  TEST_ASSERT_EQUAL(Status::cancelled, desk.release.nodes[1]);
  TEST_ASSERT_EQUAL(Status::cancelled, desk.release.nodes[4]);
  TEST_ASSERT_EQUAL(Status::outcome_unknown, desk.conclude());
}

// ---- What one node says ------------------------------------------------------------------------------------------

TEST(test_each_possession_should_have_its_word) {
  TEST_ASSERT_EQUAL(std::string("unknown"), std::string(to_string(Possession::unknown)));
  TEST_ASSERT_EQUAL(std::string("free"), std::string(to_string(Possession::free)));
  TEST_ASSERT_EQUAL(std::string("held"), std::string(to_string(Possession::held)));
  TEST_ASSERT_EQUAL(std::string("no lock"), std::string(to_string(Possession::no_lock)));
  TEST_ASSERT_EQUAL(std::string("invalid"), std::string(to_string(static_cast<Possession>(99))));
}

TEST(test_every_form_should_be_held_free_or_no_lock) {
  LockInfo info;
  TEST_ASSERT_TRUE(state_of(info) == Possession::free);
  for (const LockForm form : {LockForm::mutex, LockForm::reentrant, LockForm::read, LockForm::write}) {
    info.form = form;
    TEST_ASSERT_TRUE(state_of(info) == Possession::held);
  }
  info.form = LockForm::other;
  TEST_ASSERT_TRUE(state_of(info) == Possession::no_lock);
  info.form = static_cast<LockForm>(99);
  TEST_ASSERT_TRUE(state_of(info) == Possession::unknown);
}

TEST(test_a_semaphore_should_be_held_when_no_permit_is_left) {
  LockInfo info;
  info.form = LockForm::semaphore;
  info.permits = 2;
  info.owners = 1;
  TEST_ASSERT_TRUE(state_of(info) == Possession::free);
  info.owners = 2;
  TEST_ASSERT_TRUE(state_of(info) == Possession::held);
}

TEST(test_a_question_should_be_refused_for_no_key_no_node_and_too_many_nodes) {
  QuorumInquiry inquiry;
  QuorumInfo info;
  info.count = 42;
  QuorumRelease release;
  release.count = 42;
  for (const std::size_t count : {std::size_t{0}, nodes_max + 1}) {
    TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_info(Key("k"), count, info));
    TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_release(Key("k"), count, release));
  }
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_info(Key(""), 3, info));
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_release(Key(""), 3, release));
  TEST_ASSERT_EQUAL(42, info.count);
  TEST_ASSERT_EQUAL(42, release.count);
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_info(Key("k"), nodes_max, info));
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_release(Key("k"), nodes_max, release));
}

TEST(test_a_holder_should_have_the_least_that_its_nodes_say_and_the_largest_fence) {
  QuorumInfo info;
  info.count = 3;
  const LockInfo said[] = {held_by("ours", 7s, 5), held_by("ours", 9s, 8), held_by("ours", 8s, 6)};
  for (std::size_t first = 0; first < 3; ++first) {
    for (std::size_t node = 0; node < 3; ++node) {
      info.nodes[node].status = Status::ok;
      info.nodes[node].info = said[(first + node) % 3];
      info.nodes[node].info.count = 2 + (first + node) % 3;
    }
    info.judge(everybody);
    TEST_ASSERT_TRUE(info.state == Possession::held);
    TEST_ASSERT_TRUE(info.holder.remaining == 7s);
    TEST_ASSERT_EQUAL(2, info.holder.count);
    TEST_ASSERT_EQUAL(8, info.holder.fence);
    TEST_ASSERT_EQUAL(0b111, info.agreeing);
  }
  // What was judged before is no part of it.
  for (QuorumInfo::Node& node : info.nodes) node.status = Status::timed_out;
  info.judge(everybody);
  TEST_ASSERT_TRUE(info.state == Possession::unknown);
  TEST_ASSERT_EQUAL(0, info.agreeing);
  TEST_ASSERT_EQUAL(0, info.differing);
  TEST_ASSERT_EQUAL(0b111, info.silent);
  TEST_ASSERT_EQUAL(0, info.holder.count);
}

TEST(test_holders_of_one_name_by_two_kinds_should_not_agree) {
  QuorumInfo info;
  info.count = 3;
  for (std::size_t node = 0; node < 3; ++node) {
    info.nodes[node].status = Status::ok;
    info.nodes[node].info = held_by("ours", 9s);
  }
  info.nodes[1].info.form = LockForm::reentrant;
  info.nodes[2].status = Status::timed_out;
  info.judge(everybody);
  TEST_ASSERT_TRUE(info.state == Possession::unknown);
}

TEST(test_a_release_that_was_surely_not_done_should_be_refused_and_another_unknown) {
  QuorumInquiry inquiry;
  QuorumRelease release;
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_release(Key("k"), 3, release));
  TEST_ASSERT_TRUE(inquiry.take(0, Status::loading, true, {}));
  TEST_ASSERT_TRUE(inquiry.take(1, Status::timed_out, false, {}));
  const Heard odd("+OK\r\n");
  TEST_ASSERT_FALSE(inquiry.take(2, Status::ok, false, odd.value));
  TEST_ASSERT_EQUAL(0b001, release.refused);
  TEST_ASSERT_EQUAL(0b110, release.unknown);
  TEST_ASSERT_EQUAL(0, release.released | release.free);
  TEST_ASSERT_EQUAL(Status::loading, release.nodes[0]);
  TEST_ASSERT_EQUAL(Status::protocol_error, release.nodes[2]);
  TEST_ASSERT_EQUAL(Status::outcome_unknown, release.verdict());
  // The next one begins with nothing.
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_release(Key("k"), 3, release));
  TEST_ASSERT_EQUAL(0, release.refused | release.unknown);
}

// "Free" is one word, whatever there is at the key; the holder of what is free is nobody.
TEST(test_a_semaphore_with_permits_left_should_be_as_free_as_no_key) {
  QuorumInfo info;
  info.count = 3;
  say(info.nodes[0], Word::free);
  info.nodes[0].info.form = LockForm::semaphore;
  info.nodes[0].info.permits = 2;
  say(info.nodes[1], Word::free);
  say(info.nodes[2], Word::silent);
  info.judge(everybody);
  TEST_ASSERT_TRUE(info.state == Possession::free);
  TEST_ASSERT_EQUAL(0b011, info.agreeing);
  TEST_ASSERT_EQUAL(0, info.differing);
  TEST_ASSERT_TRUE(info.holder.form == LockInfo().form);
}

TEST(test_an_inquiry_should_begin_with_nothing_of_the_one_before) {
  Desk desk;
  desk.connect_all();
  TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_release(Key("k"), 3, desk.release));
  TEST_ASSERT_EQUAL(0b111, desk.turn());
  for (std::size_t node = 0; node < 3; ++node) desk.answer(node, yes);
  TEST_ASSERT_EQUAL(Status::ok, desk.conclude());
  // Two nodes are asked a second question.
  TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_info(Key("k"), 3, desk.info));
  TEST_ASSERT_EQUAL(0b111, desk.turn());
  for (std::size_t node = 0; node < 2; ++node) {
    desk.answer(node, is_string("17"));
    TEST_ASSERT_TRUE(desk.taken);
  }
  desk.answer(2, is_free);
  TEST_ASSERT_TRUE(desk.taken);
  TEST_ASSERT_EQUAL(0b011, desk.turn());
  for (std::size_t node = 0; node < 2; ++node) desk.answer(node, "*4\r\n:0\r\n:0\r\n" + bulk("") + ":0\r\n");
  TEST_ASSERT_TRUE(desk.inquiry.over());
  // And all are asked the first one again, as of another lock.
  desk.info.state = Possession::held;
  desk.info.nodes[2].info = held_by("somebody", 9s);
  TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_info(Key("other"), 3, desk.info));
  TEST_ASSERT_TRUE(desk.info.state == Possession::unknown);
  TEST_ASSERT_TRUE(desk.info.nodes[2].info.form == LockInfo().form);
  TEST_ASSERT_EQUAL(0b111, desk.turn());
  for (std::size_t node = 0; node < 3; ++node) desk.answer(node, is_string("somebody"));
  TEST_ASSERT_TRUE(desk.taken);
  TEST_ASSERT_EQUAL(Status::ok, desk.conclude());
  TEST_ASSERT_TRUE(desk.info.state == Possession::held);
  TEST_ASSERT_EQUAL(0b111, desk.info.agreeing);
}

TEST(test_an_answer_of_another_shape_should_be_told_to_who_must_close_the_connection) {
  Desk desk;
  desk.connect_all();
  TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_info(Key("k"), 3, desk.info));
  TEST_ASSERT_EQUAL(0b111, desk.turn());
  desk.answer(0, "+what\r\n");
  TEST_ASSERT_FALSE(desk.taken);
  TEST_ASSERT_EQUAL(Status::protocol_error, desk.info.nodes[0].status);
}

TEST(test_a_node_that_was_passed_over_should_not_be_asked_when_it_comes) {
  Desk desk;
  desk.connect(0, 'a');
  desk.connect(1, 'b');
  TEST_ASSERT_EQUAL(Status::ok, desk.inquiry.begin_info(Key("k"), 3, desk.info));
  TEST_ASSERT_EQUAL(0b011, desk.turn());
  TEST_ASSERT_EQUAL(Status::not_connected, desk.info.nodes[2].status);
  desk.connect(2, 'c');
  TEST_ASSERT_EQUAL(0, desk.turn());
  TEST_ASSERT_EQUAL(Status::not_connected, desk.info.nodes[2].status);
}
