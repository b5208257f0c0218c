// SPDX-License-Identifier: MIT
//
// What a majority says of a lock, over all that its nodes may say, and which node is asked what.
#include "unity_style.hpp"

#include <chrono>
#include <string>

#include "holdfast/core/quorum_inquiry.hpp"
#include "printers.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

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
  QuorumInquiry inquiry;
  QuorumRelease release;
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_release(Key(ByteView("")), 3, release));
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_release(Key("k"), 0, release));
  TEST_ASSERT_EQUAL(Status::invalid_argument, inquiry.begin_release(Key("k"), nodes_max + 1, release));
  TEST_ASSERT_TRUE(inquiry.over());
  TEST_ASSERT_EQUAL(Status::ok, inquiry.begin_release(Key("k"), 5, release));
  for (std::size_t node = 0; node < 4; ++node) {
    TEST_ASSERT_TRUE((inquiry.to_ask() & node_bit(node)) != 0);
    TEST_ASSERT_TRUE(inquiry.ask(node).count() == 4);
  }
  TEST_ASSERT_EQUAL(0b01111, inquiry.asked());
  inquiry.refuse(4, Status::not_connected);
  TEST_ASSERT_TRUE(inquiry.take(0, Status::ok, false, RespValue::make_integer(1)));
  TEST_ASSERT_TRUE(inquiry.take(1, Status::ok, false, RespValue::make_integer(0)));
  TEST_ASSERT_TRUE(inquiry.take(2, Status::timed_out, false, RespValue()));
  TEST_ASSERT_FALSE(inquiry.over());
  TEST_ASSERT_FALSE(inquiry.take(3, Status::ok, false, RespValue::make_integer(7)));  // That was not asked for.
  TEST_ASSERT_TRUE(inquiry.over());
  TEST_ASSERT_EQUAL(0b00001, release.released);
  TEST_ASSERT_EQUAL(0b00010, release.free);
  TEST_ASSERT_EQUAL(0b01100, release.unknown);
  TEST_ASSERT_EQUAL(0b10000, release.refused);
  TEST_ASSERT_EQUAL(Status::protocol_error, release.nodes[3]);
  TEST_ASSERT_EQUAL(Status::outcome_unknown, release.verdict());
}
