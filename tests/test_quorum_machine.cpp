// SPDX-License-Identifier: MIT
//
// The life of a lock on N nodes, rule by rule, and two of them against each other on nodes that a seed torments.
#include "unity_style.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "council.hpp"
#include "heard.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/quorum_kinds.hpp"
#include "holdfast/core/quorum_machine.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "printers.hpp"
#include "quorum_tally.hpp"
#include "quorum_world.hpp"
#include "scripts.hpp"

namespace holdfast {
static doctest::String toString(QuorumState state) {
  static const char* const names[] = {"idle", "acquiring", "fencing", "held", "at_risk", "releasing", "lost"};
  return names[static_cast<int>(state)];
}
}  // namespace holdfast

using namespace holdfast;
using holdfast::testing::all_of;
using holdfast::testing::batch_of;
using holdfast::testing::Council;
using holdfast::testing::Heard;
using holdfast::testing::QuorumWorld;

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
constexpr Duration lease = Council::lease;
constexpr Duration drift = lease / 100 + 2ms;
constexpr Duration validity = lease - drift;
constexpr Duration node_timeout = lease / 20;
constexpr std::size_t sizes[] = {1, 2, 3, 4, 5, 9};
const LockKind* const kinds[] = {&mutex_kind, &quorum_fenced_mutex_kind, &reentrant_kind, &quorum_fenced_kind};

}  // namespace

static void setUp() {}
static void tearDown() {}

// ---- Configuration -----------------------------------------------------------------------------------------------

TEST(test_a_majority_should_be_more_than_half_of_all_that_are_configured) {
  const std::size_t expected[] = {1, 2, 2, 3, 3, 4, 4, 5, 5};
  for (std::size_t nodes = 1; nodes <= nodes_max; ++nodes) {
    Council council(nodes);
    TEST_ASSERT_EQUAL(expected[nodes - 1], majority_of(nodes));
    TEST_ASSERT_EQUAL(expected[nodes - 1], council->majority());
  }
}

TEST(test_configure_should_refuse_what_no_lock_could_keep) {
  Council council(3);
  const QuorumTiming bad[] = {
      {.lease = 1ms},
      {.lease = lease, .drift = lease},
      {.lease = lease, .node_timeout = 0ms},
      {.lease = lease, .node_timeout = lease},
      {.lease = lease, .min_validity = -1ns},
      {.lease = lease, .min_validity = validity},
  };
  for (const QuorumTiming& timing : bad)
    TEST_ASSERT_EQUAL(Status::invalid_argument, council->configure(Key("other"), timing));
  TEST_ASSERT_EQUAL(Status::invalid_argument, council->configure(Key(""), {.lease = lease}));
  TEST_ASSERT_EQUAL(ByteView("name"), council->key().bytes());
  const QuorumTiming good[] = {{.lease = lease, .node_timeout = 1ms},
                               {.lease = lease, .node_timeout = lease - 1ns},
                               {.lease = lease, .min_validity = validity - 1ns},
                               {.lease = lease_min}};
  for (const QuorumTiming& timing : good) TEST_ASSERT_EQUAL(Status::ok, council->configure(Key("other"), timing));
  TEST_ASSERT_EQUAL(ByteView("other"), council->key().bytes());
}

TEST(test_configure_should_be_refused_unless_all_is_idle) {
  Council council(3);
  council.acquire(start);
  TEST_ASSERT_EQUAL(Status::already_held, council->configure(Key("other"), {.lease = lease}));
  for (std::size_t node = 0; node < 3; ++node) council.busy(node, start + 1ms);
  (void)council.take();
  TEST_ASSERT_EQUAL(Status::ok, council->configure(Key("other"), {.lease = lease}));
  council.acquire(start + 1s);
  council.fail(0, Status::timed_out, start + 2s);
  council.busy(1, start + 2s);
  council.busy(2, start + 2s);
  TEST_ASSERT_EQUAL(QuorumState::idle, council->state());
  TEST_ASSERT_EQUAL(LockState::unknown, council.node(0).state());
  TEST_ASSERT_EQUAL(Status::already_held, council->configure(Key("third"), {.lease = lease}));
  TEST_ASSERT_EQUAL(ByteView("other"), council->key().bytes());
}

TEST(test_acquire_should_be_refused_before_it_is_configured) {
  QuorumVote vote(mutex_kind);
  QuorumVote* const places[] = {&vote};
  QuorumMachine machine(mutex_kind, places, 1);
  TEST_ASSERT_EQUAL(Status::invalid_argument, machine.acquire(Council::token(), start, 1));
}

TEST(test_each_node_should_have_a_share_of_the_lease_to_answer_in_and_a_least_time) {
  TEST_ASSERT_EQUAL(Duration(500ms).count(), QuorumTiming{.lease = lease}.effective_node_timeout().count());
  TEST_ASSERT_EQUAL(Duration(5ms).count(), QuorumTiming{.lease = 20ms}.effective_node_timeout().count());
  Council council(3);
  council.acquire(start);
  for (std::size_t node = 0; node < 3; ++node)
    TEST_ASSERT_EQUAL(start + node_timeout, council.asked[node].request.deadline);
}

// ---- Acquire -----------------------------------------------------------------------------------------------------

TEST(test_grant_should_come_at_the_majority_and_not_before) {
  for (const LockKind* const kind : kinds)
    for (const std::size_t nodes : sizes) {
      Council council(nodes, *kind);
      council.acquire(start);
      TEST_ASSERT_TRUE(council->waiting());
      for (std::size_t node = 0; node < majority_of(nodes); ++node) {
        TEST_ASSERT_EQUAL(QuorumState::acquiring, council->state());
        TEST_ASSERT_EQUAL("", council.events());
        TEST_ASSERT_FALSE(council->held(start));
        TEST_ASSERT_EQUAL(0U, council->count());
        council.grant(node, start + 1ms);
      }
      if (kind->fenced) {
        for (std::size_t node = 0; node < majority_of(nodes); ++node) {
          TEST_ASSERT_EQUAL(QuorumState::fencing, council->state());
          TEST_ASSERT_FALSE(council->held(start));
          (void)council.take();
          council.say(node, true, start + 1ms);
        }
      }
      TEST_ASSERT_EQUAL("granted", council.events());
      TEST_ASSERT_EQUAL(QuorumState::held, council->state());
      TEST_ASSERT_EQUAL(Status::ok, council->status());
      TEST_ASSERT_EQUAL(1U, council->count());
      TEST_ASSERT_EQUAL(start, council->confirmed_at());
      TEST_ASSERT_FALSE(council->waiting());
      const Instant until = start + validity + (kind->fenced ? Duration(1ms) : Duration::zero());
      TEST_ASSERT_EQUAL(until, council->valid_until());
      TEST_ASSERT_TRUE(council->held(until - 1ns));
      TEST_ASSERT_FALSE(council->held(until));
    }
}

TEST(test_acquire_should_ask_the_voters_and_no_other_node) {
  Council council(5);
  council.acquire(start, 'a', 0b10101);
  TEST_ASSERT_EQUAL(Status::not_connected, council->vote(1).status);
  TEST_ASSERT_EQUAL(Status::outcome_unknown, council->vote(0).status);
  TEST_ASSERT_EQUAL(LockState::idle, council.node(1).state());
}

// Instant::max() is what a driver has that cannot read its clock.
TEST(test_acquire_should_be_refused_without_a_clock) {
  Council council(3);
  TEST_ASSERT_EQUAL(Status::system_error, council->acquire(Council::token(), Instant::max(), all_of(3)));
  TEST_ASSERT_EQUAL(0, council.take());
  TEST_ASSERT_TRUE(council->state() == QuorumState::idle);
}

TEST(test_acquire_should_ask_nobody_where_the_voters_are_no_majority) {
  for (const std::size_t nodes : sizes) {
    Council council(nodes);
    const NodeSet few = all_of(nodes / 2);
    TEST_ASSERT_EQUAL(Status::no_quorum, council->acquire(Council::token(), start, few));
    // Bits beyond the last node are nobody.
    TEST_ASSERT_EQUAL(Status::no_quorum,
                      council->acquire(Council::token(), start, static_cast<NodeSet>(few | ~all_of(nodes))));
    TEST_ASSERT_EQUAL(0, council.take());
    TEST_ASSERT_EQUAL(QuorumState::idle, council->state());
    TEST_ASSERT_EQUAL(0U, council->generation());
  }
}

TEST(test_acquire_should_be_refused_while_asked_held_or_released) {
  Council council(3);
  council.acquire(start);
  TEST_ASSERT_EQUAL(Status::already_held, council->acquire(Council::token('b'), start, 7));
  for (std::size_t node = 0; node < 3; ++node) council.grant(node, start);
  TEST_ASSERT_EQUAL(Status::already_held, council->acquire(Council::token('b'), start, 7));
  TEST_ASSERT_EQUAL(Council::token('a').bytes(), council->token().bytes());
  council.release(start);
  TEST_ASSERT_EQUAL(Status::too_many_requests, council->acquire(Council::token('b'), start, 7));
  council->end_release(Status::timed_out);
  TEST_ASSERT_EQUAL(Status::timed_out, council->status());
  TEST_ASSERT_EQUAL(QuorumState::idle, council->state());
  council.acquire(start, 'b');
  TEST_ASSERT_EQUAL(Council::token('b').bytes(), council->token().bytes());
}

TEST(test_acquire_should_be_refused_while_its_fence_is_written) {
  Council council(3, quorum_fenced_mutex_kind);
  council.acquire(start);
  council.grant(0, start);
  council.grant(1, start);
  TEST_ASSERT_EQUAL(QuorumState::fencing, council->state());
  TEST_ASSERT_TRUE(council->waiting());
  TEST_ASSERT_EQUAL(Status::already_held, council->acquire(Council::token('b'), start, 7));
}

// As soon as no majority can be had any more: not later, and not earlier.
TEST(test_denial_should_come_once_a_majority_is_out_of_reach) {
  for (const LockKind* const kind : kinds)
    for (const std::size_t nodes : sizes) {
      Council council(nodes, *kind);
      council.acquire(start);
      const std::size_t spare = nodes - majority_of(nodes);
      for (std::size_t node = 0; node <= spare; ++node) {
        TEST_ASSERT_EQUAL(QuorumState::acquiring, council->state());
        council.busy(node, start + 1ms);
      }
      TEST_ASSERT_EQUAL("denied", council.events());
      TEST_ASSERT_EQUAL(Status::lock_busy, council->status());
      TEST_ASSERT_EQUAL(QuorumState::idle, council->state());
      TEST_ASSERT_FALSE(council->waiting());
      (void)council.take();
      TEST_ASSERT_EQUAL(static_cast<NodeSet>(all_of(nodes) & ~all_of(spare + 1)), council.given_up);
    }
}

TEST(test_half_of_an_even_number_should_be_no_majority) {
  for (const std::size_t nodes : {2U, 4U}) {
    Council council(nodes);
    council.acquire(start);
    for (std::size_t node = 0; node < nodes / 2; ++node) council.grant(node, start + 1ms);
    TEST_ASSERT_EQUAL(QuorumState::acquiring, council->state());
    for (std::size_t node = nodes / 2; node < nodes && council->state() == QuorumState::acquiring; ++node)
      council.busy(node, start + 1ms);
    TEST_ASSERT_EQUAL("denied", council.events());
    TEST_ASSERT_FALSE(council->held(start + 1ms));
  }
}

// Busy: those that are in the way, with those that are or may be ours, would be a majority. Else nodes are missing.
TEST(test_denial_should_say_busy_where_others_are_in_the_way_and_no_quorum_where_nodes_are_missing) {
  struct Case {
    const char* answers;  // g(ranted), b(usy), f(ailed), u(nknown)
    Status status;
  };
  const Case cases[] = {{"bb", Status::lock_busy},    {"gbb", Status::lock_busy},   {"ff", Status::no_quorum},
                        {"gff", Status::no_quorum},   {"gbf", Status::lock_busy},   {"fb", Status::lock_busy},
                        {"uu", Status::no_quorum},    {"ub", Status::lock_busy},    {"fff", Status::no_quorum},
                        {"ggbfb", Status::lock_busy}, {"ggfff", Status::no_quorum}, {"fbfu", Status::lock_busy}};
  for (const Case& it : cases) {
    const std::string answers = it.answers;
    TEST_MESSAGE(answers);
    const std::size_t nodes = answers == "fff" || answers.size() > 3 ? 5 : 3;
    Council council(nodes);
    council.acquire(start);
    for (std::size_t node = 0; node < answers.size(); ++node) {
      if (council->state() != QuorumState::acquiring) break;
      switch (answers[node]) {
        case 'g': council.grant(node, start + 1ms); break;
        case 'b': council.busy(node, start + 1ms); break;
        case 'f': council.fail(node, Status::loading, start + 1ms, true); break;
        default: council.fail(node, Status::timed_out, start + 1ms); break;
      }
    }
    TEST_ASSERT_EQUAL("denied", council.events());
    TEST_ASSERT_EQUAL(it.status, council->status());
  }
}

TEST(test_denial_should_not_say_busy_where_all_that_may_be_in_the_way_are_a_minority) {
  Council council(5);
  council.acquire(start);
  const auto hear = [&](std::size_t node, Status outcome) {
    const Reply reply = {.tag = council.asked[node].request.tag, .outcome = outcome, .nothing_ran = true, .value = {}};
    council.node(node).handle_reply(reply, start + 1ms);
  };
  hear(0, Status::ok);  // Nil: busy.
  for (std::size_t node = 1; node < 4; ++node) hear(node, Status::loading);
  council->settle(start + 1ms);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_EQUAL(Status::lock_busy, council->vote(0).status);
  TEST_ASSERT_EQUAL(Status::no_quorum, council->status());
}

TEST(test_nodes_that_could_not_be_asked_should_be_no_votes) {
  Council council(3);
  TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token(), start, 7));
  council.node(0).refuse_request(Status::too_many_requests, start);
  council->settle(start);
  TEST_ASSERT_EQUAL(Status::too_many_requests, council->vote(0).status);
  TEST_ASSERT_EQUAL(QuorumState::acquiring, council->state());
  council.node(1).refuse_request(Status::not_connected, start);
  council->settle(start);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_EQUAL(Status::no_quorum, council->status());
  // Never sent, so nothing is to be given up.
  TEST_ASSERT_EQUAL(0, council.take());
  TEST_ASSERT_EQUAL(0, council.given_up);
  TEST_ASSERT_EQUAL(LockState::idle, council.node(2).state());
}

// It is held, at risk from the start, and the caller is told so by both.
TEST(test_a_grant_that_took_two_thirds_of_its_lease_should_still_be_one) {
  Council council(3, mutex_kind, {.lease = lease, .node_timeout = lease - 1ms});
  council.acquire(start);
  const Instant late = start + lease / 3 * 2 + 1ms;
  council.grant(0, late);
  council.grant(1, late);
  council->settle(late);
  TEST_ASSERT_TRUE(council->held(late));
  TEST_ASSERT_EQUAL(Status::ok, council->status());
  TEST_ASSERT_EQUAL("granted at_risk", council.events());
}

TEST(test_a_grant_with_too_little_left_should_be_none) {
  for (const Duration late : {Duration(2s - 1ns), Duration(2s)}) {
    Council council(3, mutex_kind, {.lease = lease, .min_validity = validity - 2s});
    council.acquire(start);
    TEST_ASSERT_EQUAL(start + 2s, council->poll_timeout());
    council.grant(0, start + 1ms);
    council.grant(1, start + late);
    const bool granted = late < Duration(2s);
    TEST_ASSERT_EQUAL(granted ? "granted" : "denied", council.events());
    TEST_ASSERT_EQUAL(granted ? Status::ok : Status::timed_out, council->status());
    TEST_ASSERT_EQUAL(granted, council->held(start + late));
    TEST_ASSERT_EQUAL(granted ? 0 : 3, council.take());
    TEST_ASSERT_EQUAL(granted ? 0 : 4, council.given_up);
  }
}

TEST(test_an_acquire_that_nobody_answers_should_end_by_time) {
  Council council(3);
  council.acquire(start);
  TEST_ASSERT_EQUAL(start + validity, council->poll_timeout());
  council->settle(start + validity - 1ns);
  TEST_ASSERT_EQUAL("", council.events());
  council->settle(start + validity);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_EQUAL(Status::timed_out, council->status());
  (void)council.take();
  TEST_ASSERT_EQUAL(7, council.given_up);
}

TEST(test_a_late_grant_should_be_folded_in) {
  Council council(3);
  council.acquire(start);
  council.grant(0, start + 1ms);
  council.grant(1, start + 1ms);
  TEST_ASSERT_EQUAL("granted", council.events());
  council.grant(2, start + 300ms);
  TEST_ASSERT_EQUAL(0, council.take());
  TEST_ASSERT_TRUE(council.node(2).held(start + 1s));
  TEST_ASSERT_EQUAL(start + validity, council->vote(2).counts_until);
  TEST_ASSERT_EQUAL("", council.events());
  // It counts: one of the others may go.
  TEST_ASSERT_EQUAL(7, council.renew(start + 1s));
  council.say(0, false, start + 1s);
  TEST_ASSERT_TRUE(council->held(start + 1s));
  TEST_ASSERT_EQUAL(start + validity, council->valid_until());
}

TEST(test_a_grant_that_comes_after_the_denial_should_be_released) {
  Council council(3);
  council.acquire(start);
  council.busy(0, start + 1ms);
  council.busy(1, start + 1ms);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_EQUAL(0, council.take());
  TEST_ASSERT_EQUAL(4, council.given_up);
  council.grant(2, start + 2ms);  // Its reply was faster than the giving up.
  TEST_ASSERT_EQUAL(Status::outcome_unknown, council->vote(2).status);
  TEST_ASSERT_FALSE(council.node(2).held(start + 2ms));
  TEST_ASSERT_EQUAL(4, council.take());
  TEST_ASSERT_EQUAL(Operation::release == council.asked[2].request.tag.operation, true);
  TEST_ASSERT_TRUE(council.asked[2].request.posted);
  TEST_ASSERT_EQUAL(QuorumState::idle, council->state());
  TEST_ASSERT_EQUAL(Instant(), council->vote(2).counts_until);
}

TEST(test_denial_should_release_what_single_nodes_granted) {
  Council council(5);
  council.acquire(start);
  council.grant(0, start + 1ms);
  council.grant(1, start + 1ms);
  for (std::size_t node = 2; node < 5; ++node) council.busy(node, start + 2ms);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_EQUAL(3, council.take());
  for (std::size_t node = 0; node < 2; ++node) {
    TEST_ASSERT_FALSE(council.node(node).held(start + 2ms));
    TEST_ASSERT_TRUE(council.asked[node].request.posted);
    TEST_ASSERT_TRUE(council.asked[node].bytes.find(std::string(token_text_size, 'a')) != std::string::npos);
  }
  TEST_ASSERT_EQUAL(0, council.given_up);
}

TEST(test_giving_up_should_be_told_once) {
  Council council(3);
  council.acquire(start);
  council->cancel(start + 1ms);
  TEST_ASSERT_EQUAL(7, council->poll_give_up());
  TEST_ASSERT_EQUAL(0, council->poll_give_up());
}

TEST(test_cancel_should_deny_what_is_asked_and_nothing_else) {
  for (const LockKind* const kind : kinds) {
    Council council(3, *kind);
    council->cancel(start);
    TEST_ASSERT_EQUAL("", council.events());
    council.acquire(start);
    council.grant(0, start);
    if (kind->fenced) {
      council.grant(1, start);
      (void)council.take();
      TEST_ASSERT_EQUAL(QuorumState::fencing, council->state());
    }
    council->cancel(start + 1ms);
    TEST_ASSERT_EQUAL("denied", council.events());
    TEST_ASSERT_EQUAL(Status::cancelled, council->status());
    TEST_ASSERT_EQUAL(QuorumState::idle, council->state());
    TEST_ASSERT_EQUAL(kind->fenced ? 3 : 1, council.take());
    TEST_ASSERT_EQUAL(kind->fenced ? 4 : 6, council.given_up);
    TEST_ASSERT_FALSE(council->held(start + 1ms));

    Council held(3, *kind);
    held.hold(start);
    held->cancel(start + 1s);
    TEST_ASSERT_TRUE(held->held(start + 1s));
    TEST_ASSERT_EQUAL("", held.events());
  }
}

TEST(test_cancel_should_refuse_what_was_never_sent) {
  Council council(3);
  TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token(), start, 7));
  council->cancel(start);
  council->settle(start);
  TEST_ASSERT_EQUAL(0, council.take());
  TEST_ASSERT_EQUAL(0, council.given_up);
  for (std::size_t node = 0; node < 3; ++node) {
    TEST_ASSERT_EQUAL(LockState::idle, council.node(node).state());
    TEST_ASSERT_EQUAL(Status::cancelled, council->vote(node).status);
    TEST_ASSERT_EQUAL(0, council.compensations[node]);
  }
  council.acquire(start, 'b');
}

TEST(test_an_unlisted_reply_should_be_a_protocol_doubt_of_its_node_alone) {
  Council council(3);
  council.acquire(start);
  council.answer(1, RespValue::make_integer(1), start + 1ms);
  TEST_ASSERT_EQUAL(2, council->poll_protocol_doubt());
  TEST_ASSERT_EQUAL(0, council->poll_protocol_doubt());
  TEST_ASSERT_EQUAL(Status::protocol_error, council->vote(1).status);
  TEST_ASSERT_EQUAL(QuorumState::acquiring, council->state());
  council.grant(0, start + 1ms);
  council.grant(2, start + 1ms);
  TEST_ASSERT_EQUAL("granted", council.events());
  TEST_ASSERT_FALSE(council.node(1).held(start + 1ms));
}

TEST(test_busy_for_should_be_the_least_that_a_node_in_the_way_has_told) {
  Council council(5, reentrant_kind);
  TEST_ASSERT_EQUAL(remaining_unknown, council->busy_for());
  council.acquire(start);
  council.busy(0, start, -1);  // No TTL: no time to wait for.
  TEST_ASSERT_EQUAL(remaining_unknown, council->busy_for());
  council.busy(1, start, 900);
  TEST_ASSERT_EQUAL(900, council->busy_for());
  council.busy(2, start, 400);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_EQUAL(400, council->busy_for());
  // What the attempt before was told is forgotten.
  (void)council.take();
  council.fail(3, Status::cancelled, start);
  council.fail(4, Status::cancelled, start);
  council.acquire(start + 1s, 'b');
  TEST_ASSERT_EQUAL(remaining_unknown, council->busy_for());
  council.busy(0, start + 1s, 0);
  TEST_ASSERT_EQUAL(0, council->busy_for());
}

TEST(test_busy_for_should_not_ask_a_node_that_was_not_asked) {
  Council council(3, reentrant_kind);
  council.acquire(start);
  council.busy(0, start, 100);
  council.busy(1, start, 900);
  TEST_ASSERT_EQUAL(100, council->busy_for());
  (void)council.take();
  council.fail(2, Status::cancelled, start);
  council.acquire(start + 1s, 'b', 6);
  council.busy(1, start + 1s, 700);
  TEST_ASSERT_EQUAL(700, council->busy_for());
}

TEST(test_a_script_that_a_node_does_not_know_should_be_sent_as_text) {
  Council council(3, reentrant_kind);
  council.acquire(start);
  for (std::size_t node = 0; node < 3; ++node) council.fail(node, Status::no_script, start + 100ms, true);
  TEST_ASSERT_EQUAL(QuorumState::acquiring, council->state());
  TEST_ASSERT_EQUAL(7, council.take());
  TEST_ASSERT_TRUE(council.asked[0].bytes.find("\r\nEVAL\r\n") != std::string::npos);
  council.grant(0, start + 200ms);
  council.grant(2, start + 200ms);
  TEST_ASSERT_EQUAL("granted", council.events());
  // Counted from when the text was sent, which is what was granted.
  TEST_ASSERT_EQUAL(start + 100ms + validity, council->valid_until());
  TEST_ASSERT_EQUAL(start, council->confirmed_at());
}

TEST(test_each_acquire_should_begin_anew) {
  Council council(3);
  council.hold(start);
  council.release(start + 1s);
  for (std::size_t node = 0; node < 3; ++node) council.say(node, true, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  const std::uint32_t generation = council->generation();
  council.acquire(start + 2s, 'b');
  TEST_ASSERT_TRUE(council->generation() != generation);
  council.grant(0, start + 2s);
  TEST_ASSERT_EQUAL(QuorumState::acquiring, council->state());
  council.grant(1, start + 2s);
  TEST_ASSERT_EQUAL(start + 2s + validity, council->valid_until());
}

// ---- Fence -------------------------------------------------------------------------------------------------------

TEST(test_fence_should_be_the_largest_and_written_back_to_those_that_granted) {
  for (const LockKind* const kind : {&quorum_fenced_mutex_kind, &quorum_fenced_kind}) {
    Council council(5, *kind);
    council.acquire(start);
    council.grant(0, start + 1ms, 11);
    council.grant(3, start + 1ms, 9'007'199'254'740'995);
    TEST_ASSERT_EQUAL(0U, council->fence());
    council.grant(4, start + 1ms, 12);
    TEST_ASSERT_EQUAL(9'007'199'254'740'995U, council->fence());
    TEST_ASSERT_EQUAL(0b11001, council.take());
    for (const std::size_t node : {0U, 3U, 4U}) {
      TEST_ASSERT_EQUAL(Operation::renew == council.asked[node].request.tag.operation, true);
      TEST_ASSERT_EQUAL(start + 1ms + node_timeout, council.asked[node].request.deadline);
      TEST_ASSERT_TRUE(council.asked[node].bytes.find("$16\r\n9007199254740995\r\n") != std::string::npos);
      TEST_ASSERT_TRUE(council.asked[node].bytes.find(std::string(scripts::quorum_renew.sha.bytes().string_view())) !=
                       std::string::npos);
    }
    council.say(0, true, start + 2ms);
    council.say(3, true, start + 2ms);
    TEST_ASSERT_EQUAL("", council.events());
    TEST_ASSERT_FALSE(council->held(start + 2ms));
    council.say(4, true, start + 2ms);
    TEST_ASSERT_EQUAL("granted", council.events());
    TEST_ASSERT_EQUAL(9'007'199'254'740'995U, council->fence());
  }
}

TEST(test_a_late_granter_should_join_the_second_round) {
  for (const std::uint64_t offered : {19U, 20U}) {
    Council council(3, quorum_fenced_mutex_kind);
    council.acquire(start);
    council.grant(0, start + 1ms, 20);
    council.grant(1, start + 1ms, 10);
    TEST_ASSERT_EQUAL(3, council.take());
    council.grant(2, start + 3ms, offered);
    TEST_ASSERT_EQUAL(20U, council->fence());
    TEST_ASSERT_EQUAL(4, council.take());
    TEST_ASSERT_TRUE(council.asked[2].bytes.find("$2\r\n20\r\n") != std::string::npos);
    council.say(0, false, start + 4ms);
    TEST_ASSERT_EQUAL("", council.events());
    council.say(1, true, start + 4ms);
    TEST_ASSERT_EQUAL("", council.events());
    council.say(2, true, start + 4ms);
    TEST_ASSERT_EQUAL("granted", council.events());
    TEST_ASSERT_EQUAL(20U, council->fence());
  }
}

// [redlock 12] It knows of another grant's fence: as a witness for a smaller one it would hide that.
TEST(test_a_late_granter_that_offers_a_larger_fence_should_not_count_for_it) {
  Council council(3, quorum_fenced_mutex_kind);
  council.acquire(start);
  council.grant(0, start + 1ms, 20);
  council.grant(1, start + 1ms, 10);
  TEST_ASSERT_EQUAL(3, council.take());
  council.grant(2, start + 3ms, 21);
  TEST_ASSERT_EQUAL(0, council.take());
  council.say(0, true, start + 4ms);
  TEST_ASSERT_EQUAL("", council.events());
  council.say(1, false, start + 4ms);
  TEST_ASSERT_EQUAL("denied", council.events());
}

// A vote that is still to come keeps the round open: it may yet make the majority.
TEST(test_the_second_round_should_wait_for_a_vote_that_is_still_to_come) {
  Council council(3, quorum_fenced_mutex_kind);
  council.acquire(start);
  council.grant(0, start + 1ms);
  council.grant(1, start + 1ms);
  (void)council.take();
  council.say(0, true, start + 2ms);
  council.fail(1, Status::timed_out, start + 3ms);
  TEST_ASSERT_EQUAL(QuorumState::fencing, council->state());
  council.busy(2, start + 4ms);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_EQUAL(Status::lock_busy, council->status());
  TEST_ASSERT_EQUAL(3, council.take());
  TEST_ASSERT_FALSE(council->held(start + 4ms));
}

TEST(test_a_fence_that_no_majority_has_written_should_be_no_grant) {
  Council council(3, quorum_fenced_mutex_kind);
  council.acquire(start);
  for (std::size_t node = 0; node < 3; ++node) council.grant(node, start + 1ms);
  (void)council.take();
  council.say(0, true, start + 2ms);
  council.fail(1, Status::out_of_memory, start + 2ms, true);
  TEST_ASSERT_EQUAL(QuorumState::fencing, council->state());
  council.say(2, false, start + 2ms);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_EQUAL(Status::no_quorum, council->status());
  TEST_ASSERT_EQUAL(3, council.take());
  TEST_ASSERT_EQUAL(1,
                    council.compensations[2]);  // It is not ours there: what may be counted is taken back all the same.
}

TEST(test_a_fence_that_is_written_too_late_should_be_no_grant) {
  Council council(3, quorum_fenced_mutex_kind, {.lease = lease, .min_validity = 9s});
  council.acquire(start);
  council.grant(0, start + 1ms);
  council.grant(1, start + 1ms);
  (void)council.take();
  const Instant end = start + validity - 9s;
  TEST_ASSERT_EQUAL(end, council->poll_timeout());
  council.say(0, true, start + 2ms);
  council.say(1, true, end);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_EQUAL(Status::timed_out, council->status());
}

TEST(test_the_write_back_should_fall_back_to_the_text_of_its_script) {
  Council council(3, quorum_fenced_mutex_kind);
  council.acquire(start);
  council.grant(0, start + 1ms);
  council.grant(1, start + 1ms);
  (void)council.take();
  council.fail(0, Status::no_script, start + 2ms, true);
  council.fail(1, Status::no_script, start + 2ms, true);
  council.busy(2, start + 2ms);
  TEST_ASSERT_EQUAL(QuorumState::fencing, council->state());
  TEST_ASSERT_EQUAL(3, council.take());
  TEST_ASSERT_TRUE(council.asked[0].bytes.find("\r\nEVAL\r\n") != std::string::npos);
  council.say(0, true, start + 3ms);
  council.say(1, true, start + 3ms);
  TEST_ASSERT_EQUAL("granted", council.events());
  TEST_ASSERT_EQUAL(start + 2ms + validity, council->valid_until());
}

TEST(test_renewals_and_repairs_of_a_fenced_lock_should_carry_its_fence) {
  Council council(3, quorum_fenced_mutex_kind);
  council.acquire(start);
  council.grant(0, start, 40);
  council.grant(1, start, 50);
  (void)council.take();
  council.say(0, true, start);
  council.say(1, true, start);
  TEST_ASSERT_EQUAL("granted", council.events());
  council.fail(2, Status::loading, start + 1ms, true);
  TEST_ASSERT_EQUAL(7, council.renew(start + 3s, 4));
  TEST_ASSERT_TRUE(council.asked[0].bytes.find("$2\r\n50\r\n") != std::string::npos);
  council.say(0, true, start + 3s);
  council.say(1, true, start + 3s);
  council.grant(2, start + 3s, 99);
  TEST_ASSERT_EQUAL(0, council.take());
  TEST_ASSERT_EQUAL(50U, council->fence());
  TEST_ASSERT_EQUAL(7, council.renew(start + 6s));
  TEST_ASSERT_TRUE(council.asked[2].bytes.find("$2\r\n50\r\n") != std::string::npos);
}

TEST(test_fence_should_be_none_without_a_grant) {
  Council council(3, quorum_fenced_mutex_kind);
  council.hold(start);
  TEST_ASSERT_EQUAL(7U, council->fence());
  council.release(start + 1s);
  for (std::size_t node = 0; node < 3; ++node) council.say(node, true, start + 1s);
  council.acquire(start + 2s, 'b');
  TEST_ASSERT_EQUAL(0U, council->fence());
  council.grant(0, start + 2s, 3);
  council.grant(1, start + 2s, 4);
  TEST_ASSERT_EQUAL(4U, council->fence());
}

// ---- Renewal -----------------------------------------------------------------------------------------------------

TEST(test_renewal_should_be_due_after_a_third_of_the_lease) {
  Council council(3);
  TEST_ASSERT_EQUAL(Instant::max(), council->renewal_due());
  council.hold(start);
  TEST_ASSERT_EQUAL(start + lease / 3, council->renewal_due());
  (void)council.renew(start + 3s);
  TEST_ASSERT_EQUAL(start + 3s + lease / 30, council->renewal_due());
  for (std::size_t node = 0; node < 3; ++node) council.fail(node, Status::loading, start + 4s, true);
  TEST_ASSERT_EQUAL(start + 4s + lease / 30, council->renewal_due());
  (void)council.renew(start + 5s);
  council.say(0, true, start + 5s);
  council.say(1, true, start + 5s);
  TEST_ASSERT_EQUAL(start + 5s + lease / 3, council->renewal_due());
}

TEST(test_a_renewal_that_a_majority_confirms_should_raise_valid_until) {
  for (const LockKind* const kind : kinds)
    for (const std::size_t nodes : sizes) {
      Council council(nodes, *kind);
      council.hold(start);
      const Instant before = council->valid_until();
      TEST_ASSERT_EQUAL(all_of(nodes), council.renew(start + 3s));
      TEST_ASSERT_TRUE(council->waiting());
      for (std::size_t node = 0; node < majority_of(nodes); ++node) {
        TEST_ASSERT_EQUAL(before, council->valid_until());
        TEST_ASSERT_EQUAL("", council.events());
        council.say(node, true, start + 4s);
      }
      TEST_ASSERT_EQUAL("renewed", council.events());
      TEST_ASSERT_EQUAL(start + 3s + validity, council->valid_until());
      TEST_ASSERT_EQUAL(start + 3s, council->confirmed_at());
      TEST_ASSERT_EQUAL(Status::ok, council->status());
      TEST_ASSERT_FALSE(council->waiting());
    }
}

TEST(test_a_renewal_that_a_minority_confirms_should_leave_valid_until_and_be_doubted) {
  for (const LockKind* const kind : kinds)
    for (const std::size_t nodes : {2U, 3U, 4U, 5U, 9U}) {
      Council council(nodes, *kind);
      council.hold(start);
      const Instant before = council->valid_until();
      (void)council.renew(start + 3s);
      for (std::size_t node = 0; node < majority_of(nodes) - 1; ++node) council.say(node, true, start + 4s);
      for (std::size_t node = majority_of(nodes) - 1; node < nodes; ++node) {
        TEST_ASSERT_EQUAL("", council.events());
        council.fail(node, Status::timed_out, start + 4s);
      }
      TEST_ASSERT_EQUAL("doubted at_risk", council.events());
      TEST_ASSERT_EQUAL(before, council->valid_until());
      TEST_ASSERT_EQUAL(QuorumState::at_risk, council->state());
      TEST_ASSERT_EQUAL(Status::no_quorum, council->status());
      TEST_ASSERT_EQUAL(start, council->confirmed_at());
      TEST_ASSERT_EQUAL(Instant(), council->risky_from());
      TEST_ASSERT_EQUAL(before, council->poll_timeout());
      // The doubt is told once, until it is over.
      (void)council.renew(start + 5s);
      for (std::size_t node = 0; node < nodes; ++node) council.fail(node, Status::timed_out, start + 5s);
      TEST_ASSERT_EQUAL("doubted", council.events());
      (void)council.renew(start + 6s);
      for (std::size_t node = 0; node < nodes; ++node) council.say(node, true, start + 6s);
      TEST_ASSERT_EQUAL("renewed", council.events());
      TEST_ASSERT_EQUAL(QuorumState::held, council->state());
      TEST_ASSERT_EQUAL(start + 6s + validity, council->valid_until());
    }
}

// Of all votes' ends, sorted, the one that a majority reaches.
TEST(test_valid_until_should_be_the_end_that_a_majority_reaches) {
  for (const std::size_t nodes : sizes) {
    Council council(nodes);
    council.hold(start);
    std::vector<Instant> ends(nodes, start + validity);
    // Each round reaches one node less: the others' replies are lost.
    for (std::size_t round = 0; round < nodes; ++round) {
      const Instant now = start + 1s * (static_cast<std::int64_t>(round) + 1) / 2;
      TEST_ASSERT_EQUAL(Status::ok, council->renew(now, now + 1s, 0));
      (void)council.take();
      for (std::size_t step = 0; step < nodes; ++step) {
        const std::size_t node = (step * 2 + 1) % nodes;  // In some order; each once where the number is odd.
        if (!council.asked[node].open) continue;
        if (node < round) {
          council.fail(node, Status::timed_out, now);
        } else {
          council.say(node, true, now);
          ends[node] = now + validity;
        }
        std::vector<Instant> sorted = ends;
        std::sort(sorted.begin(), sorted.end(), [](Instant left, Instant right) { return right < left; });
        TEST_ASSERT_EQUAL(sorted[majority_of(nodes) - 1], council->valid_until());
      }
      for (std::size_t node = 0; node < nodes; ++node)
        if (council.asked[node].open) council.fail(node, Status::timed_out, now);
    }
  }
}

TEST(test_a_second_renewal_should_wait_for_the_first) {
  Council council(3);
  TEST_ASSERT_EQUAL(Status::not_held, council->renew(start, start + 1s, 0));
  council.hold(start);
  (void)council.renew(start + 1s);
  TEST_ASSERT_EQUAL(Status::too_many_requests, council->renew(start + 1s, start + 2s, 0));
}

// A node that does not answer costs its own vote: another one that could not be asked, and can be by now, is not kept from the
// round by it. [redlock 6]
TEST(test_an_open_round_should_ask_those_once_more_that_can_answer_by_now) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 3s);
  council.say(0, true, start + 3s);
  council.fail(1, Status::not_connected, start + 3s, true);
  const Instant again = start + 3s + lease / 30;
  TEST_ASSERT_EQUAL(Status::too_many_requests, council->renew(again - 1ns, start + 9s, 0));
  TEST_ASSERT_EQUAL(0b010, council.renew(again));  // Neither who has confirmed nor who is still to answer.
  TEST_ASSERT_EQUAL(again + lease / 30, council->renewal_due());
  TEST_ASSERT_EQUAL(start + validity, council->valid_until());
  council.say(1, true, again);
  TEST_ASSERT_EQUAL("renewed", council.events());
  TEST_ASSERT_EQUAL(start + 3s + validity, council->valid_until());  // As long as both have promised.
  TEST_ASSERT_EQUAL(start + 3s, council->confirmed_at());
  TEST_ASSERT_EQUAL(start + 3s + lease / 3, council->renewal_due());
  council.say(2, true, start + 8s);  // The silent one's answer counts whenever it comes.
  TEST_ASSERT_EQUAL(start + 3s + validity, council->vote(2).counts_until);
}

TEST(test_a_repaired_vote_should_confirm_its_round_where_another_node_is_silent) {
  for (const LockKind* const kind : kinds) {
    Council council(3, *kind);
    council.hold(start);
    (void)council.renew(start + 1s);
    council.say(0, false, start + 1s);
    council.say(1, true, start + 1s);
    council.say(2, true, start + 1s);
    (void)council.take();
    const Instant before = council->valid_until();
    TEST_ASSERT_EQUAL(7, council.renew(start + 4s, 1));
    council.grant(0, start + 4s);
    council.say(1, true, start + 4s);
    (void)council.events();
    TEST_ASSERT_EQUAL(before, council->valid_until());
    TEST_ASSERT_TRUE(council->waiting());
    const Instant again = council->renewal_due();
    TEST_ASSERT_EQUAL(0b001, council.renew(again, 1));
    TEST_ASSERT_TRUE(council.asked[0].request.tag.operation == Operation::renew);
    council.say(0, true, again);
    TEST_ASSERT_EQUAL("renewed", council.events());
    TEST_ASSERT_EQUAL(start + 4s + validity, council->valid_until());
  }
}

// All but one have forgotten, and that one is silent. Were they mended one by one, nobody would see the loss.
TEST(test_an_open_round_should_not_mend_who_has_said_not_yours_in_it) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s, 7);
  council.say(0, false, start + 1s);
  TEST_ASSERT_EQUAL("at_risk", council.events());
  TEST_ASSERT_EQUAL(0, council.renew(council->renewal_due(), 7));
  TEST_ASSERT_FALSE(council->vote(0).repairing);
  council.say(1, false, start + 2s);
  TEST_ASSERT_EQUAL("lost", council.events());
}

// The lease that a round was opened with is that of all who confirm it.
TEST(test_an_open_round_should_keep_the_lease_that_it_was_opened_with) {
  Council council(3);
  council.hold(start);
  const QuorumTiming longer = {.lease = 2 * lease};
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 1s, start + 9s, 0, &longer));
  (void)council.take();
  council.say(0, true, start + 1s);
  council.fail(1, Status::not_connected, start + 1s, true);
  const Instant again = council->renewal_due();
  TEST_ASSERT_EQUAL(0b010, council.renew(again));
  council.say(1, true, again);
  TEST_ASSERT_EQUAL("renewed", council.events());
  TEST_ASSERT_EQUAL((2 * lease).count(), council->timing().lock().effective_lease().count());
  TEST_ASSERT_TRUE(council->valid_until() > start + lease + 5s);
}

TEST(test_a_doubt_of_the_hold_before_should_not_hurry_the_next) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s);
  for (std::size_t node = 0; node < 3; ++node) council.fail(node, Status::loading, start + 1s, true);
  TEST_ASSERT_TRUE(council->renewal_due() < start + 3s);
  council.release(start + 2s);
  council->end_release(Status::outcome_unknown);
  council.acquire(start + 3s, 'b');
  council.grant(0, start + 3s);
  council.grant(1, start + 3s);
  TEST_ASSERT_EQUAL(start + 3s + lease / 3, council->renewal_due());
}

TEST(test_renewals_of_the_shortest_leases_should_not_spin) {
  Council council(3, mutex_kind, {.lease = 30ms});
  council.hold(start);
  (void)council.renew(start + 10ms);
  for (std::size_t node = 0; node < 3; ++node) council.fail(node, Status::loading, start + 11ms, true);
  TEST_ASSERT_EQUAL(start + 11ms + retry_delay_min, council->renewal_due());
}

TEST(test_a_doubt_that_is_over_before_it_is_told_should_not_be_told) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s);
  council.say(0, false, start + 1s);
  TEST_ASSERT_EQUAL(QuorumState::at_risk, council->state());
  council.say(1, true, start + 1s);
  council.say(2, true, start + 1s);
  TEST_ASSERT_EQUAL("renewed", council.events());
}

TEST(test_a_renewal_that_clients_have_no_room_for_should_be_tried_soon_and_be_no_doubt) {
  for (const std::size_t nodes : {2U, 3U, 5U})
    for (std::size_t crowded = 0; crowded <= nodes; ++crowded) {
      Council council(nodes);
      council.hold(start);
      const Instant risky = council->risky_from();
      (void)council->renew(start + 3s, start + 4s, 0);
      for (std::size_t node = 0; node < nodes; ++node)
        council.node(node).refuse_request(node < crowded ? Status::too_many_requests : Status::not_connected,
                                          start + 3s);
      council->settle(start + 3s);
      const bool enough = crowded >= majority_of(nodes);
      TEST_ASSERT_EQUAL(enough ? "doubted" : "doubted at_risk", council.events());
      TEST_ASSERT_EQUAL(enough ? risky : Instant(), council->risky_from());
      if (enough) TEST_ASSERT_EQUAL(start + 3s + retry_delay_min, council->renewal_due());
      TEST_ASSERT_TRUE(council->held(start + 3s));
    }
}

// Nodes that have confirmed count with those that have no room. One that has nothing of ours does not, whatever it refused.
TEST(test_a_renewal_of_some_should_be_no_doubt_where_the_others_have_no_room) {
  for (const bool disowned : {false, true}) {
    Council council(5, reentrant_kind);
    council.hold(start);
    (void)council.renew(start + 1s);
    for (std::size_t node = 0; node < 5; ++node) council.say(node, !(disowned && node == 2), start + 1s);
    (void)council.take();
    TEST_ASSERT_EQUAL("renewed", council.events());
    (void)council->renew(start + 3s, start + 4s, council->all());
    (void)council.take();
    council.say(0, true, start + 3s);
    for (const std::size_t node : {1U, 2U}) council.fail(node, Status::too_many_requests, start + 3s, true);
    for (const std::size_t node : {3U, 4U}) council.fail(node, Status::not_connected, start + 3s, true);
    TEST_ASSERT_EQUAL(std::string(disowned ? "doubted at_risk" : "doubted"), council.events());
  }
}

TEST(test_a_hold_with_a_large_drift_should_end_before_it_is_at_risk) {
  Council council(3, mutex_kind, {.lease = lease, .drift = 5s});
  council.hold(start);
  TEST_ASSERT_EQUAL(start + 5s, council->poll_timeout());
  council->settle(start + 5s);
  TEST_ASSERT_EQUAL("lost", council.events());
}

// Lost is final: a grant that comes behind the end revives nothing, though its own end is later.
TEST(test_a_late_grant_should_not_revive_a_hold_that_has_ended) {
  Council council(3, reentrant_kind);
  council.acquire(start);
  council.grant(0, start + 1ms);
  council.grant(1, start + 1ms);
  council.fail(2, Status::no_script, start + 400ms, true);
  TEST_ASSERT_EQUAL(4, council.take());
  TEST_ASSERT_EQUAL("granted", council.events());
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 3s, start + 4s, 0));
  TEST_ASSERT_EQUAL(3, council.take());
  council.say(1, true, start + 3s);
  council.fail(0, Status::timed_out, start + 4s);
  TEST_ASSERT_EQUAL("", council.events());  // The vote that is still to come may yet make the majority.
  council.grant(2, start + validity + 100ms);
  TEST_ASSERT_EQUAL("lost", council.events());
  TEST_ASSERT_FALSE(council->held(start + validity + 100ms));
  TEST_ASSERT_EQUAL(6, council.take());
}

// The round is over at the majority. The straggler's answer counts for its own vote, when it comes.
TEST(test_a_straggler_of_a_round_should_count_when_it_comes) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s);
  council.say(0, true, start + 1s);
  council.say(1, true, start + 1s);
  TEST_ASSERT_EQUAL("renewed", council.events());
  council.say(2, true, start + 2s);
  TEST_ASSERT_EQUAL(start + 1s + validity, council->vote(2).counts_until);
  TEST_ASSERT_EQUAL("", council.events());
}

// It confirms no more than what it was asked for.
TEST(test_an_older_renewal_should_not_confirm_the_instant_of_a_newer_round) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s);
  council.say(0, true, start + 1s);
  council.say(1, true, start + 1s);
  TEST_ASSERT_EQUAL("renewed", council.events());
  TEST_ASSERT_EQUAL(3, council.renew(start + 4s));  // The third's first renewal is still on its way.
  council.say(0, true, start + 5s);
  council.say(2, true, start + 5s);
  TEST_ASSERT_EQUAL("renewed", council.events());
  TEST_ASSERT_EQUAL(start + 1s + validity, council->valid_until());
  TEST_ASSERT_EQUAL(start + 1s, council->confirmed_at());
  TEST_ASSERT_TRUE(council->risky_from() < council->valid_until());
}

TEST(test_a_refusal_by_a_minority_should_put_the_hold_at_risk) {
  for (const LockKind* const kind : kinds) {
    Council council(3, *kind);
    council.hold(start);
    const Instant before = council->valid_until();
    (void)council.renew(start + 1s);
    council.say(1, false, start + 2s);
    TEST_ASSERT_EQUAL("at_risk", council.events());
    TEST_ASSERT_EQUAL(QuorumState::at_risk, council->state());
    TEST_ASSERT_EQUAL(before, council->valid_until());
    TEST_ASSERT_EQUAL(Status::lock_lost, council->vote(1).status);
    TEST_ASSERT_EQUAL(Instant(), council->vote(1).counts_until);
    TEST_ASSERT_EQUAL(0, council.take());
    TEST_ASSERT_EQUAL(1, council.compensations[1]);
    council.say(0, true, start + 2s);
    council.say(2, true, start + 2s);
    TEST_ASSERT_EQUAL("renewed", council.events());
    TEST_ASSERT_EQUAL(QuorumState::held, council->state());
    // One more, and there is no majority.
    (void)council.renew(start + 3s);
    council.say(0, false, start + 3s);
    TEST_ASSERT_EQUAL("at_risk lost", council.events());
  }
}

TEST(test_a_refusal_by_a_majority_should_be_a_loss_at_once) {
  for (const LockKind* const kind : kinds)
    for (const std::size_t nodes : sizes) {
      Council council(nodes, *kind);
      council.hold(start);
      (void)council.renew(start + 1s);
      const std::size_t spare = nodes - majority_of(nodes);
      for (std::size_t node = 0; node <= spare; ++node) {
        TEST_ASSERT_TRUE(council->held(start + 2s));
        council.say(node, false, start + 2s);
      }
      TEST_ASSERT_EQUAL("at_risk lost", council.events());
      TEST_ASSERT_FALSE(council->held(start + 2s));
      TEST_ASSERT_EQUAL(Instant(), council->valid_until());
      TEST_ASSERT_EQUAL(QuorumState::lost, council->state());
      TEST_ASSERT_EQUAL(Status::lock_lost, council->status());
      TEST_ASSERT_FALSE(council->waiting());
      // The others are released.
      TEST_ASSERT_EQUAL(static_cast<NodeSet>(all_of(nodes) & ~all_of(spare + 1)), council.take());
      for (std::size_t node = spare + 1; node < nodes; ++node)
        TEST_ASSERT_EQUAL(Operation::release == council.asked[node].request.tag.operation, true);
      TEST_ASSERT_EQUAL(Instant::max(), council->poll_timeout());
      TEST_ASSERT_EQUAL(Status::lock_lost, council->renew(start + 2s, start + 3s, 0));
      TEST_ASSERT_EQUAL(Status::lock_lost, council->release(start + 2s));
      TEST_ASSERT_EQUAL(Status::not_held, council->release(start + 2s));
      TEST_ASSERT_EQUAL(Status::not_held, council->renew(start + 2s, start + 3s, 0));
    }
}

TEST(test_a_hold_should_be_lost_by_time_and_stay_lost) {
  for (const LockKind* const kind : kinds) {
    Council council(3, *kind);
    council.hold(start);
    const Instant until = council->valid_until();
    TEST_ASSERT_EQUAL(start + lease / 3 * 2, council->poll_timeout());
    council->settle(start + lease / 3 * 2 - 1ns);
    TEST_ASSERT_EQUAL("", council.events());
    council->settle(start + lease / 3 * 2);
    TEST_ASSERT_EQUAL("at_risk", council.events());
    TEST_ASSERT_EQUAL(Status::ok, council->status());
    TEST_ASSERT_EQUAL(until, council->poll_timeout());
    (void)council.renew(start + 9s);
    council->settle(until - 1ns);
    TEST_ASSERT_EQUAL("", council.events());
    council->settle(until);
    TEST_ASSERT_EQUAL("lost", council.events());
    // The renewal comes too late.
    for (std::size_t node = 0; node < 3; ++node) council.say(node, true, until);
    TEST_ASSERT_FALSE(council->held(until));
    TEST_ASSERT_EQUAL("", council.events());
    (void)council.take();
    for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_EQUAL(1, council.compensations[node]);
  }
}

TEST(test_a_renewal_that_is_answered_at_the_end_should_come_too_late) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 9s);
  council.say(0, true, start + validity - 1ns);
  council.say(1, true, start + validity);
  TEST_ASSERT_EQUAL("at_risk lost", council.events());
}

TEST(test_renewals_that_cannot_be_sent_should_be_doubted) {
  Council council(3);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 1s, start + 2s, 0));
  for (std::size_t node = 0; node < 2; ++node) council.node(node).refuse_request(Status::not_connected, start + 1s);
  council->settle(start + 1s);
  TEST_ASSERT_EQUAL("doubted at_risk", council.events());
  TEST_ASSERT_EQUAL(start + validity, council->valid_until());
}

TEST(test_a_loss_should_refuse_renewals_that_were_never_sent) {
  Council council(3);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 9s, start + 10s, 0));
  council->settle(start + validity);
  TEST_ASSERT_EQUAL("at_risk lost", council.events());
  TEST_ASSERT_EQUAL(0, council.take());
}

TEST(test_renew_should_notice_the_end_by_itself) {
  Council council(3);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::lock_lost, council->renew(start + validity, start + validity + 1s, 0));
  TEST_ASSERT_EQUAL("lost", council.events());
}

// ---- Repair ------------------------------------------------------------------------------------------------------

TEST(test_repair_should_be_asked_of_repairers_alone) {
  Council council(5);
  council.acquire(start, 'a', 0b00111);
  for (std::size_t node = 0; node < 3; ++node) council.grant(node, start);
  TEST_ASSERT_EQUAL("granted", council.events());
  TEST_ASSERT_EQUAL(0b00111, council.renew(start + 1s));
  for (std::size_t node = 0; node < 3; ++node) council.say(node, true, start + 1s);
  (void)council.events();
  TEST_ASSERT_EQUAL(0b01111, council.renew(start + 2s, 0b01000));
  TEST_ASSERT_EQUAL(Operation::acquire == council.asked[3].request.tag.operation, true);
  TEST_ASSERT_EQUAL(start + 2s + node_timeout, council.asked[3].request.deadline);
  TEST_ASSERT_TRUE(council.asked[3].bytes.find(std::string(token_text_size, 'a')) != std::string::npos);
  TEST_ASSERT_TRUE(council->vote(3).repairing);
}

TEST(test_a_repair_should_not_hold_up_its_round) {
  Council council(3);
  council.acquire(start, 'a', 3);
  council.grant(0, start);
  council.grant(1, start);
  TEST_ASSERT_EQUAL(7, council.renew(start + 1s, 4));
  council.say(0, true, start + 1s);
  council.say(1, true, start + 1s);
  TEST_ASSERT_EQUAL("granted renewed", council.events());
  // It is still on its way: not asked twice.
  TEST_ASSERT_EQUAL(3, council.renew(start + 2s, 4));
}

// It joins a majority that is there; what was promised does not grow by it.
TEST(test_a_repaired_vote_should_never_raise_valid_until_before_its_renewal) {
  Council council(3);
  council.acquire(start, 'a', 3);
  council.grant(0, start);
  council.grant(1, start);
  const Instant before = council->valid_until();
  (void)council.renew(start + 2s, 4);
  council.say(0, true, start + 2s);
  council.fail(1, Status::timed_out, start + 3s);
  TEST_ASSERT_EQUAL("granted doubted at_risk", council.events());
  TEST_ASSERT_EQUAL(before, council->valid_until());
  council.grant(2, start + 2s + 400ms);
  TEST_ASSERT_FALSE(council->vote(2).repairing);
  TEST_ASSERT_EQUAL(before, council->vote(2).counts_until);
  TEST_ASSERT_EQUAL(before, council->valid_until());
  TEST_ASSERT_TRUE(council.node(2).held(before));
  // Renewed, it counts in full.
  TEST_ASSERT_EQUAL(7, council.renew(start + 4s));
  council.say(2, true, start + 4s);
  TEST_ASSERT_EQUAL(start + 2s + validity, council->valid_until());
  council.say(0, true, start + 4s);
  TEST_ASSERT_EQUAL("renewed", council.events());
  TEST_ASSERT_EQUAL(start + 4s + validity, council->valid_until());
}

TEST(test_a_repaired_vote_should_be_no_confirmation_of_its_round) {
  Council council(3);
  council.acquire(start, 'a', 3);
  council.grant(0, start);
  council.grant(1, start);
  (void)council.renew(start + 2s, 4);
  council.grant(2, start + 2s);
  council.say(0, true, start + 2s);
  TEST_ASSERT_EQUAL("granted", council.events());
  council.fail(1, Status::timed_out, start + 3s);
  TEST_ASSERT_EQUAL("doubted at_risk", council.events());
}

TEST(test_a_repaired_vote_should_make_a_majority_with_what_is_left) {
  Council council(3);
  council.acquire(start, 'a', 3);
  council.grant(0, start);
  council.grant(1, start);
  (void)council.renew(start + 2s, 4);
  council.grant(2, start + 2s);
  council.say(0, false, start + 2s);
  TEST_ASSERT_EQUAL("granted doubted at_risk", council.events());
  TEST_ASSERT_TRUE(council->held(start + 2s));
  TEST_ASSERT_EQUAL(start + validity, council->valid_until());
  council.say(1, true, start + 2s);
  (void)council.renew(start + 3s);
  council.say(1, true, start + 3s);
  council.say(2, true, start + 3s);
  TEST_ASSERT_EQUAL(start + 3s + validity, council->valid_until());
}

// One renewal finds a node that forgot, and mends it. [redlock 7]
TEST(test_a_node_that_says_not_yours_should_be_asked_anew_by_the_same_renewal) {
  for (const LockKind* const kind : kinds) {
    Council council(3, *kind);
    council.hold(start);
    const Instant end = council->valid_until();
    TEST_ASSERT_EQUAL(7, council.renew(start + 1s, 7));
    council.say(0, true, start + 1s);
    council.say(2, false, start + 1s);
    TEST_ASSERT_EQUAL(0, council.take());  // A majority first.
    council.say(1, true, start + 1s);
    TEST_ASSERT_EQUAL(4, council.take());
    TEST_ASSERT_EQUAL(Operation::acquire == council.asked[2].request.tag.operation, true);
    TEST_ASSERT_EQUAL(start + 1s + node_timeout, council.asked[2].request.deadline);
    TEST_ASSERT_TRUE(council.asked[2].bytes.find(std::string(council->token().bytes().string_view())) !=
                     std::string::npos);
    TEST_ASSERT_TRUE(council->vote(2).repairing);
    TEST_ASSERT_EQUAL(0, council.compensations[2]);  // It would delete what is asked for, were it repeated.
    council.grant(2, start + 1s);
    TEST_ASSERT_TRUE(end < council->valid_until());
    TEST_ASSERT_EQUAL("renewed", council.events());
    // It follows the end of the hold, which it has no part in.
    TEST_ASSERT_EQUAL(start + 1s + validity, council->valid_until());
    TEST_ASSERT_EQUAL(start + 1s + validity, council->vote(2).counts_until);
    TEST_ASSERT_EQUAL(7, council.renew(start + 2s));
  }
}

// Also where its answer comes after the majority's.
TEST(test_a_late_not_yours_should_be_asked_anew_too) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s, 7);
  council.say(0, true, start + 1s);
  council.say(1, true, start + 1s);
  council.say(2, false, start + 1s + 200ms);
  TEST_ASSERT_EQUAL(4, council.take());
  council.grant(2, start + 1s + 300ms);
  TEST_ASSERT_EQUAL(start + 1s + validity, council->vote(2).counts_until);
}

TEST(test_a_node_that_says_not_yours_and_may_not_vote_should_be_taken_back_there) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s, 3);
  council.say(2, false, start + 1s);
  TEST_ASSERT_EQUAL(0, council.take());
  TEST_ASSERT_EQUAL(1, council.compensations[2]);
}

// Nobody is asked anew for what is lost: a majority has said "not yours".
TEST(test_a_not_yours_that_ends_the_hold_should_not_be_asked_anew) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s, 7);
  council.say(1, false, start + 1s);
  TEST_ASSERT_EQUAL(0, council.take());
  council.say(2, false, start + 1s);
  TEST_ASSERT_EQUAL(1, council.take());  // What is left is released.
  TEST_ASSERT_EQUAL(1, council.compensations[1]);
  TEST_ASSERT_EQUAL(1, council.compensations[2]);
  TEST_ASSERT_EQUAL("at_risk lost", council.events());
}

// What a repaired node has promised never counts beyond what the others have, whatever becomes of them.
TEST(test_a_repaired_vote_should_follow_the_end_of_the_hold_and_never_its_own) {
  Council council(5);
  council.hold(start);
  (void)council.renew(start + 1s, 31);
  council.say(0, true, start + 1s);
  council.say(1, true, start + 1s);
  council.say(4, false, start + 1s);
  council.say(2, true, start + 1s);
  TEST_ASSERT_EQUAL(16, council.take());
  council.grant(4, start + 1s);
  TEST_ASSERT_EQUAL(start + 1s + validity, council->valid_until());
  council.say(3, false, start + 1s);
  (void)council.take();
  (void)council.renew(start + 2s, 0);
  council.say(0, true, start + 2s);
  council.say(1, true, start + 2s);
  TEST_ASSERT_EQUAL(start + 1s + validity, council->valid_until());
  TEST_ASSERT_EQUAL(start + 1s + validity, council->vote(4).counts_until);
  council.say(2, false, start + 2s);
  TEST_ASSERT_EQUAL(start + 1s + validity, council->valid_until());
  council.say(4, true, start + 2s);
  TEST_ASSERT_EQUAL(start + 2s + validity, council->valid_until());
}

TEST(test_a_repair_that_is_refused_should_change_nothing) {
  Council council(3);
  council.acquire(start, 'a', 3);
  council.grant(0, start);
  council.grant(1, start);
  (void)council.renew(start + 2s, 4);
  council.busy(2, start + 2s);
  TEST_ASSERT_FALSE(council->vote(2).repairing);
  TEST_ASSERT_EQUAL(Status::lock_busy, council->vote(2).status);
  council.say(0, true, start + 2s);
  council.say(1, true, start + 2s);
  TEST_ASSERT_EQUAL("granted renewed", council.events());
  TEST_ASSERT_EQUAL(7, council.renew(start + 3s, 4));  // Asked again.
  council.fail(2, Status::timed_out, start + 4s);
  TEST_ASSERT_FALSE(council->vote(2).repairing);
}

TEST(test_a_reentrant_vote_that_was_lost_should_be_repaired) {
  for (const LockKind* const kind : kinds) {
    Council council(3, *kind);
    council.hold(start);
    (void)council.renew(start + 1s);
    council.say(2, false, start + 1s);
    council.say(0, true, start + 1s);
    council.say(1, true, start + 1s);
    (void)council.take();
    TEST_ASSERT_EQUAL(7, council.renew(start + 2s, 4));
    TEST_ASSERT_TRUE(council->vote(2).repairing);
    council.grant(2, start + 2s);
    TEST_ASSERT_TRUE(council.node(2).held(start + 2s));
    TEST_ASSERT_EQUAL(start + 1s + validity, council->vote(2).counts_until);
  }
}

// Whatever ends by time in the same call is still to be taken back there: it is asked the next time.
TEST(test_a_vote_that_ends_in_the_very_call_should_not_be_repaired_by_it) {
  Council council(3);
  council.hold(start);
  for (const Duration after : {Duration(3s), Duration(6s), Duration(9s)}) {
    (void)council.renew(start + after);
    council.say(0, true, start + after);
    council.say(1, true, start + after);
    council.fail(2, Status::timed_out, start + after);
    TEST_ASSERT_EQUAL("renewed", council.events());
  }
  TEST_ASSERT_EQUAL(3, council.renew(start + validity, 4));
  TEST_ASSERT_EQUAL(1, council.compensations[2]);
  council.say(0, true, start + validity);
  council.say(1, true, start + validity);
  TEST_ASSERT_EQUAL(7, council.renew(start + validity + 1s, 4));
}

TEST(test_a_repair_that_is_granted_after_the_release_should_be_released) {
  Council council(3);
  council.acquire(start, 'a', 3);
  council.grant(0, start);
  council.grant(1, start);
  (void)council.renew(start + 2s, 4);
  council.release(start + 2s);
  TEST_ASSERT_EQUAL(4, council.given_up);
  TEST_ASSERT_FALSE(council->vote(2).repairing);
  council.grant(2, start + 2s);
  TEST_ASSERT_EQUAL(4, council.take());
  TEST_ASSERT_EQUAL(Operation::release == council.asked[2].request.tag.operation, true);
}

// ---- One machine, one vote ---------------------------------------------------------------------------------------

TEST(test_an_excluded_node_should_confirm_nothing_and_keep_what_it_has) {  // [redlock 10]
  Council council(3);
  council.hold(start);
  council->meet(2, 0, true);
  TEST_ASSERT_EQUAL(Instant(), council->vote(2).counts_until);
  TEST_ASSERT_EQUAL(3, council.renew(start + 1s));
  council.say(0, true, start + 1s);
  TEST_ASSERT_EQUAL("", council.events());
  council.say(1, true, start + 1s);
  TEST_ASSERT_EQUAL("renewed", council.events());
  TEST_ASSERT_EQUAL(0, council.take());  // Nothing is taken back over its connection.
  council->meet(2, 0, false);
  TEST_ASSERT_EQUAL(7, council.renew(start + 2s));
  council.say(2, true, start + 2s);
  council.say(0, true, start + 2s);
  TEST_ASSERT_EQUAL("renewed", council.events());
}

TEST(test_what_an_excluded_node_had_been_asked_should_count_for_nothing) {
  Council council(3);
  council.hold(start);
  TEST_ASSERT_EQUAL(7, council.renew(start + 1s));
  council->meet(2, 0, true);
  council.say(2, true, start + 1s);
  TEST_ASSERT_FALSE(council->vote(2).renewed);
  TEST_ASSERT_EQUAL(Instant(), council->vote(2).counts_until);
  council.say(0, true, start + 1s);
  TEST_ASSERT_EQUAL("", council.events());
  council.say(1, true, start + 1s);
  TEST_ASSERT_EQUAL("renewed", council.events());
}

TEST(test_a_node_that_is_excluded_while_it_is_asked_should_make_no_majority) {
  Council council(3);
  council.acquire(start);
  council.grant(0, start);
  council->meet(0, 0, true);
  council.grant(1, start);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_FALSE(council->held(start));
  TEST_ASSERT_EQUAL(QuorumState::idle, council->state());
}

// Node 2's name has moved to node 0's server: that one has given its word there.
TEST(test_a_server_should_be_asked_for_a_hold_at_one_node_only) {  // [redlock 10]
  for (const LockKind* const kind : kinds) {
    Council council(3, *kind);
    for (std::size_t node = 0; node < 3; ++node) council->meet(node, static_cast<std::uint32_t>(node + 1), false);
    council.hold(start);
    council->meet(2, 1, false);  // Nobody has noticed, since node 0 is away.
    TEST_ASSERT_EQUAL(3, council.renew(start + 1s, 0b100));
    // Nor where its vote was lost: neither renewed nor repaired.
    council.say(0, true, start + 1s);
    council.say(1, true, start + 1s);
    TEST_ASSERT_EQUAL("renewed", council.events());
    const Instant later_on = start + validity + 10ms;
    council->settle(later_on);
    TEST_ASSERT_TRUE(council->held(later_on));
    TEST_ASSERT_FALSE(council.node(2).held(later_on));
    (void)council.take();
    TEST_ASSERT_EQUAL(3, council.renew(later_on, 0b100));
    // Another server, which is no other node's, may be asked: a fail-over.
    council->meet(2, 7, false);
    council.say(0, true, later_on);
    council.say(1, true, later_on);
    TEST_ASSERT_EQUAL(7, council.renew(later_on + 1s, 0b100));
    // The next hold begins anew.
    council.release(later_on + 1s);
    council->end_release(Status::timed_out);
    council->meet(0, 2, false);
    council->meet(1, 1, false);
    TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token('b'), later_on + 2s, 3));
    TEST_ASSERT_EQUAL(3, council.take() & 3);
  }
}

TEST(test_a_renewal_by_the_server_that_has_taken_over_should_count) {
  Council council(3);
  for (std::size_t node = 0; node < 3; ++node) council->meet(node, static_cast<std::uint32_t>(node + 1), false);
  council.hold(start);
  council->meet(2, 9, false);
  TEST_ASSERT_EQUAL(7, council.renew(start + 1s));
  council.say(2, true, start + 1s);
  TEST_ASSERT_TRUE(council->vote(2).renewed);
  TEST_ASSERT_EQUAL(start + 1s + validity, council->vote(2).counts_until);
  TEST_ASSERT_EQUAL(9U, council->vote(2).keeper);
}

// It would delete what that server keeps for another node.
TEST(test_what_one_server_was_asked_should_not_be_taken_back_on_another) {  // [redlock 7]
  for (const LockKind* const kind : kinds)
    for (const bool excluded : {false, true}) {
      Council council(3, *kind);
      for (std::size_t node = 0; node < 3; ++node) council->meet(node, static_cast<std::uint32_t>(node + 1), false);
      council.hold(start);
      council->meet(2, excluded ? 3 : 1, excluded);
      for (Instant now = start + 1s; now < start + validity + 2s; now = now + 1s) {
        (void)council.renew(now);
        council.say(0, true, now);
        council.say(1, true, now);
        (void)council.take();
      }
      TEST_ASSERT_TRUE(council->held(start + validity + 1s));
      TEST_ASSERT_FALSE(council.node(2).held(start + validity + 1s));
      TEST_ASSERT_EQUAL(0, council.compensations[2]);
      // Nor is it released there.
      council.release(start + validity + 1s);
      TEST_ASSERT_EQUAL(0, council.compensations[2]);
      TEST_ASSERT_FALSE(council.asked[2].open && council.asked[2].request.tag.operation == Operation::release);
    }
}

TEST(test_release_should_not_go_to_a_server_that_was_not_asked) {
  Council council(3);
  for (std::size_t node = 0; node < 3; ++node) council->meet(node, static_cast<std::uint32_t>(node + 1), false);
  council.hold(start);
  council->meet(2, 1, false);
  council.asked[2].open = false;
  council.release(start + 1s);
  TEST_ASSERT_FALSE(council.asked[2].open);
  TEST_ASSERT_EQUAL(0, council.compensations[2]);
  council.say(0, true, start + 1s);
  council.say(1, true, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::ok, council->status());
}

// One of the three has let go, and where the others' servers are nobody knows: it is not over for a majority.
TEST(test_release_should_not_say_ok_for_nodes_that_are_not_those_that_were_asked) {
  Council council(3);
  for (std::size_t node = 0; node < 3; ++node) council->meet(node, static_cast<std::uint32_t>(node + 1), false);
  council.acquire(start, 'a', 0b011);
  council.grant(0, start);
  council.grant(1, start);
  council->meet(1, 3, false);
  council->meet(2, 2, false);
  council.release(start + 1s);
  council.say(0, true, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::outcome_unknown, council->status());
  // The next one is whole again.
  council.acquire(start + 2s, 'b');
  for (std::size_t node = 0; node < 3; ++node) council.grant(node, start + 2s);
  council.release(start + 3s);
  for (std::size_t node = 0; node < 3; ++node)
    if (council.asked[node].open) council.say(node, true, start + 3s);
  TEST_ASSERT_EQUAL(Status::ok, council->status());
}

TEST(test_a_node_that_refuses_as_a_replica_should_be_named_once) {
  Council council(3);
  council.acquire(start);
  council.grant(0, start);
  council.grant(1, start);
  TEST_ASSERT_EQUAL(0, council->poll_demoted());
  council.fail(2, Status::read_only, start, true);
  TEST_ASSERT_EQUAL(4, council->poll_demoted());
  TEST_ASSERT_EQUAL(0, council->poll_demoted());
  // Each time that it does, also where nothing else comes of it.
  for (int turn = 1; turn <= 2; ++turn) {
    (void)council.renew(start + turn * 1s);
    council.fail(0, Status::read_only, start + turn * 1s, true);
    council.fail(1, Status::out_of_memory, start + turn * 1s, true);
    TEST_ASSERT_EQUAL(1, council->poll_demoted());
  }
}

// ---- max_lease ---------------------------------------------------------------------------------------------------

// [redlock 9] The quorum's, as it is now: a node that was restarted waits no longer than that.
TEST(test_a_lease_above_max_lease_should_be_neither_granted_nor_extended) {
  for (const LockKind* const kind : kinds) {
    Council council(3, *kind);
    TEST_ASSERT_TRUE(council->permitted(lease));
    TEST_ASSERT_FALSE(council->permitted(lease - 1ns));
    TEST_ASSERT_EQUAL(Status::invalid_argument, council->acquire(Council::token(), start, Electorate(7, lease - 1ns)));
    TEST_ASSERT_EQUAL(0, council.take());
    TEST_ASSERT_EQUAL(QuorumState::idle, council->state());
    TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token(), start, Electorate(7, lease)));
    (void)council.take();
    for (std::size_t node = 0; node < 3; ++node) council.grant(node, start);
    (void)council.take();
    for (std::size_t node = 0; node < 3; ++node)
      if (council.asked[node].open) council.say(node, true, start);
    TEST_ASSERT_TRUE(council->held(start));
    const Instant until = council->valid_until();
    // What was granted before goes on to its end.
    TEST_ASSERT_EQUAL(Status::invalid_argument, council->renew(start + 1s, start + 2s, Electorate(7, lease - 1ns)));
    TEST_ASSERT_EQUAL(0, council.take());
    TEST_ASSERT_TRUE(council->held(start + 1s));
    TEST_ASSERT_EQUAL(until, council->valid_until());
    TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 1s, start + 2s, Electorate(7, lease)));
  }
}

// ---- Deadlines ---------------------------------------------------------------------------------------------------

TEST(test_an_acquire_should_be_over_by_its_deadline_in_both_rounds) {
  Council council(3, quorum_fenced_mutex_kind);
  const Instant deadline = start + node_timeout + node_timeout / 2;
  TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token(), start, 7, deadline));
  (void)council.take();
  TEST_ASSERT_EQUAL(start + node_timeout, council.asked[0].request.deadline);
  const Instant late = start + node_timeout - 1ms;
  council.grant(0, late);
  council.grant(1, late);
  (void)council.take();
  TEST_ASSERT_EQUAL(deadline, council.asked[0].request.deadline);
  council.grant(2, late);  // It joins the second round.
  (void)council.take();
  TEST_ASSERT_EQUAL(deadline, council.asked[2].request.deadline);
  Council brief(3);
  TEST_ASSERT_EQUAL(Status::ok, brief->acquire(Council::token(), start, 7, start + 7ms));
  (void)brief.take();
  TEST_ASSERT_EQUAL(start + 7ms, brief.asked[0].request.deadline);
}

// ---- What finds no place -----------------------------------------------------------------------------------------

TEST(test_what_finds_no_place_to_be_taken_back_should_be_owed_and_offered_again) {
  Council council(3);
  council.hold(start);
  TEST_ASSERT_EQUAL(0, council->owed());
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s));
  council.node(2).refuse_request(Status::too_many_requests, start + 1s);
  council->settle(start + 1s);
  ReplyTag tag;
  Compensation compensation;
  TEST_ASSERT_FALSE(council->poll_compensation(2, false, tag, compensation));
  TEST_ASSERT_EQUAL(4, council->owed());
  TEST_ASSERT_EQUAL(4, council->release_owed());
  // It is no news until it is asked for again.
  TEST_ASSERT_EQUAL(3, council.take());
  (void)council->poll_nodes();
  council->settle(start + 1s);
  TEST_ASSERT_EQUAL(0, council->poll_nodes());
  TEST_ASSERT_FALSE(council->poll_compensation(2, true, tag, compensation));
  council->end_release(Status::outcome_unknown);
  // Nor is that node asked for another hold, which could not be taken back either; the others are.
  TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token('b'), start + 2s, 7));
  TEST_ASSERT_EQUAL(Status::too_many_requests, council->vote(2).status);
  TEST_ASSERT_EQUAL(3, council.take());
  council.grant(0, start + 2s);
  council.grant(1, start + 2s);
  TEST_ASSERT_EQUAL("granted", council.events());
  TEST_ASSERT_EQUAL(3, council.renew(start + 3s, 4));
  council.say(0, true, start + 3s);
  council.say(1, true, start + 3s);
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 3s));
  TEST_ASSERT_EQUAL(4, council->owed());
  TEST_ASSERT_EQUAL(0, council->release_owed());  // It is of the hold before.
  council->retry_owed();
  TEST_ASSERT_EQUAL(0, council->owed());
  TEST_ASSERT_TRUE((council->poll_nodes() & 4) != 0);
  TEST_ASSERT_TRUE(council->poll_compensation(2, true, tag, compensation));
  TEST_ASSERT_EQUAL(Council::token().bytes(), compensation.token->bytes());
}

TEST(test_what_is_owed_to_a_server_that_is_gone_should_be_dropped) {
  Council council(3);
  for (std::size_t node = 0; node < 3; ++node) council->meet(node, static_cast<std::uint32_t>(node + 1), false);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s));
  council.node(2).refuse_request(Status::too_many_requests, start + 1s);
  council->settle(start + 1s);
  ReplyTag tag;
  Compensation compensation;
  TEST_ASSERT_FALSE(council->poll_compensation(2, false, tag, compensation));
  council->meet(2, 1, false);
  council->retry_owed();
  TEST_ASSERT_FALSE(council->poll_compensation(2, true, tag, compensation));
  TEST_ASSERT_EQUAL(0, council->owed());
}

TEST(test_nodes_with_something_to_say_should_be_named_once) {
  Council council(3);
  TEST_ASSERT_FALSE(council->has_output());
  TEST_ASSERT_EQUAL(Instant::max(), council->poll_timeout());
  TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token(), start, 7));
  TEST_ASSERT_TRUE(council->has_output());
  TEST_ASSERT_EQUAL(7, council->poll_nodes());
  TEST_ASSERT_EQUAL(0, council->poll_nodes());
  TEST_ASSERT_FALSE(council->has_output());
}

// ---- Release -----------------------------------------------------------------------------------------------------

TEST(test_release_should_go_to_every_node_and_end_at_the_majority) {
  for (const LockKind* const kind : kinds)
    for (const std::size_t nodes : sizes) {
      Council council(nodes, *kind);
      council.hold(start);
      TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s));
      TEST_ASSERT_FALSE(council->held(start + 1s));
      TEST_ASSERT_EQUAL(0U, council->count());
      TEST_ASSERT_TRUE(council->waiting());
      TEST_ASSERT_EQUAL(Instant::max(), council->poll_timeout());
      TEST_ASSERT_EQUAL(all_of(nodes), council.take());
      for (std::size_t node = 0; node < nodes; ++node) {
        TEST_ASSERT_TRUE(council.asked[node].request.posted);
        TEST_ASSERT_EQUAL(Instant::max(), council.asked[node].request.deadline);
        TEST_ASSERT_TRUE(council.asked[node].bytes.find("\r\nEVAL\r\n") != std::string::npos);
      }
      for (std::size_t node = 0; node < majority_of(nodes); ++node) {
        TEST_ASSERT_EQUAL("", council.events());
        council.say(node, true, start + 1s);
      }
      TEST_ASSERT_EQUAL("released", council.events());
      TEST_ASSERT_EQUAL(Status::ok, council->status());
      TEST_ASSERT_EQUAL(QuorumState::idle, council->state());
    }
}

TEST(test_generation_should_grow_with_every_acquire_release_denial_and_loss) {
  Council council(3);
  council.hold(start);
  TEST_ASSERT_EQUAL(1U, council->generation());
  council.release(start + 1s);
  TEST_ASSERT_EQUAL(2U, council->generation());
  for (std::size_t node = 0; node < 3; ++node) {
    TEST_ASSERT_EQUAL(Status::outcome_unknown, council->vote(node).status);
    council.say(node, true, start + 1s);
  }
  council.acquire(start + 2s, 'b');
  council->cancel(start + 2s);
  TEST_ASSERT_EQUAL(4U, council->generation());
  (void)council.take();
  for (std::size_t node = 0; node < 3; ++node) council.fail(node, Status::cancelled, start + 2s);
  council.acquire(start + 3s, 'c');
  for (std::size_t node = 0; node < 3; ++node) council.grant(node, start + 3s);
  council->settle(start + 20s);
  TEST_ASSERT_EQUAL(6U, council->generation());
  council->forget();
  TEST_ASSERT_EQUAL(7U, council->generation());
}

TEST(test_release_should_use_what_each_server_deletes_by) {
  Council council(3);
  council.places[1]->native_delete = NativeDelete::delex;
  council.places[2]->native_delete = NativeDelete::delifeq;
  council.hold(start);
  council.release(start + 1s);
  TEST_ASSERT_TRUE(council.asked[0].bytes.find("\r\nEVAL\r\n") != std::string::npos);
  TEST_ASSERT_TRUE(council.asked[1].bytes.find("\r\nDELEX\r\n") != std::string::npos);
  TEST_ASSERT_TRUE(council.asked[2].bytes.find("\r\nDELIFEQ\r\n") != std::string::npos);
  TEST_ASSERT_TRUE(council.asked[1].request.repeatable && council.asked[1].request.posted);
}

TEST(test_denial_should_use_what_each_server_deletes_by) {
  Council council(3);
  council.places[0]->native_delete = NativeDelete::delex;
  council.places[2]->native_delete = NativeDelete::delifeq;
  council.acquire(start);
  council.grant(0, start);
  council->cancel(start);
  (void)council.take();
  TEST_ASSERT_TRUE(council.asked[0].bytes.find("\r\nDELEX\r\n") != std::string::npos);
  council.grant(2, start);
  (void)council.take();
  TEST_ASSERT_TRUE(council.asked[2].bytes.find("\r\nDELIFEQ\r\n") != std::string::npos);
}

TEST(test_release_should_report_lock_lost_when_a_majority_had_nothing) {
  Council council(3);
  council.hold(start);
  council.release(start + 1s);
  council.say(0, true, start + 1s);
  council.say(1, false, start + 1s);
  TEST_ASSERT_EQUAL("", council.events());
  council.say(2, false, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::lock_lost, council->status());
}

TEST(test_release_should_end_once_a_majority_is_out_of_reach) {
  Council council(5);
  council.hold(start);
  council.release(start + 1s);
  council.say(0, false, start + 1s);
  council.say(1, false, start + 1s);
  TEST_ASSERT_EQUAL("", council.events());
  council.say(2, false, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::lock_lost, council->status());
}

TEST(test_release_should_report_why_it_is_unknown) {
  Council council(3);
  council.hold(start);
  council.release(start + 1s);
  council.say(0, true, start + 1s);
  council.fail(1, Status::transport_closed, start + 1s);
  TEST_ASSERT_EQUAL("", council.events());
  council.fail(2, Status::transport_closed, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::transport_closed, council->status());
}

// A majority has nothing of ours once what was given up is taken back.
TEST(test_release_should_count_those_whose_grant_was_taken_back) {
  Council council(3);
  council.acquire(start);
  council.grant(0, start);
  council.grant(1, start);
  council.release(start + 1s);
  council.fail(2, Status::cancelled, start + 1s);
  council.say(0, true, start + 1s);
  TEST_ASSERT_EQUAL("", council.events());
  QuorumVote& missed = *council.places[2];
  Reply reply;
  reply.tag.generation = missed.machine.generation();
  reply.tag.operation = Operation::compensate;
  reply.outcome = Status::ok;
  missed.machine.handle_reply(reply, start + 1s);
  council->settle(start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::ok, council->status());
}

// The session repeats a release whose answer went down with its connection, and says so as a compensation. That the repeat finds
// nothing is neither "yes" nor "not yours": the first one may have run.
TEST(test_release_that_was_repeated_should_not_take_a_node_that_has_nothing_for_one_that_lost_it) {
  struct {
    std::size_t disowned;  // Nodes whose first answer is 0,
    std::size_t repeated;  // and those whose first answer was lost, and whose second one is 0. The rest has released.
    Status expected;
  } const rows[] = {{0, 5, Status::ok},
                    {0, 3, Status::ok},
                    {0, 2, Status::ok},
                    {1, 2, Status::outcome_unknown},
                    {1, 4, Status::outcome_unknown},
                    {2, 3, Status::outcome_unknown},
                    {3, 2, Status::lock_lost},
                    {3, 0, Status::lock_lost}};
  for (const LockKind* const kind : kinds)
    for (const auto& row : rows) {
      TEST_MESSAGE(row.repeated << " repeated, " << row.disowned << " not ours");
      Council council(5, *kind);
      council.hold(start);
      council.release(start + 1s);
      for (std::size_t node = row.disowned; node < row.disowned + row.repeated; ++node)
        council.asked[node].request.tag.operation = Operation::compensate;
      for (std::size_t node = 0; node < 5; ++node)
        council.say(node, node >= row.disowned + row.repeated, start + 1s + 30ms);
      TEST_ASSERT_EQUAL("released", council.events());
      TEST_ASSERT_EQUAL(row.expected, council->status());
      TEST_ASSERT_EQUAL(QuorumState::idle, council->state());
      for (std::size_t node = 0; node < 5; ++node) TEST_ASSERT_EQUAL(LockState::idle, council.node(node).state());
    }
}

// Word of what was taken back of the hold before is no repeat of this one's release.
TEST(test_release_should_not_be_taken_for_a_repeat_by_word_of_the_hold_before) {
  Council council(3);
  council.hold(start);
  Reply before;
  before.tag.operation = Operation::compensate;
  before.outcome = Status::ok;
  std::uint32_t generations[3];
  for (std::size_t node = 0; node < 3; ++node) generations[node] = council.node(node).generation();
  council.release(start + 1s);
  for (std::size_t node = 0; node < 3; ++node) council.say(node, true, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  council.hold(start + 2s);
  council.release(start + 3s);
  for (std::size_t node = 0; node < 3; ++node) {
    before.tag.generation = generations[node];
    council->handle_reply(node, before, start + 3s);
    council.say(node, false, start + 3s);
  }
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::lock_lost, council->status());
}

// Nor is word of what was taken back of this hold, once its release is answered.
TEST(test_release_that_was_answered_should_not_be_taken_for_a_repeat_afterwards) {
  Council council(3);
  council.hold(start);
  council.release(start + 1s);
  Reply word;
  word.tag.operation = Operation::compensate;
  word.outcome = Status::ok;
  for (std::size_t node = 0; node < 2; ++node) {
    council.say(node, false, start + 1s);
    word.tag.generation = council.node(node).generation();
    if (node == 0) council->handle_reply(node, word, start + 1s);
  }
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::lock_lost, council->status());
}

// A repeat that finds the hold has released it as any other.
TEST(test_release_that_was_repeated_should_count_where_it_found_the_hold) {
  Council council(3);
  council.hold(start);
  council.release(start + 1s);
  council.asked[0].request.tag.operation = Operation::compensate;
  council.say(0, true, start + 1s);
  council.say(1, false, start + 1s);
  TEST_ASSERT_EQUAL("", council.events());
  council.say(2, true, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::ok, council->status());
}

// Whoever was given up was given up by us, and the release was not.
TEST(test_release_should_not_report_the_giving_up_of_a_straggler_as_its_own_cancel) {
  Council council(3);
  council.acquire(start);
  council.grant(0, start);
  council.grant(1, start);
  council.release(start + 1s);
  TEST_ASSERT_EQUAL(7, council.given_up | 3);
  council.fail(2, Status::cancelled, start + 1s);
  council.say(0, true, start + 1s);
  TEST_ASSERT_EQUAL("", council.events());
  council.say(1, false, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::outcome_unknown, council->status());
}

TEST(test_release_should_give_up_those_that_have_not_answered) {
  Council council(3);
  council.acquire(start);
  council.grant(0, start);
  council.grant(2, start);
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s));
  TEST_ASSERT_EQUAL(5, council.take());
  TEST_ASSERT_EQUAL(2, council.given_up);
  council.say(0, true, start + 1s);
  council.say(2, true, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
}

TEST(test_release_of_nothing_should_say_so) {
  Council council(3);
  TEST_ASSERT_EQUAL(Status::not_held, council->release(start));
  council.acquire(start);
  TEST_ASSERT_EQUAL(Status::not_held, council->release(start));
  council.grant(0, start);
  council.grant(1, start);
  TEST_ASSERT_EQUAL(Status::lock_lost, council->release(start + validity));
  TEST_ASSERT_EQUAL(QuorumState::lost, council->state());
}

TEST(test_late_replies_should_not_revive_what_was_released) {
  for (const LockKind* const kind : kinds) {
    Council council(3, *kind);
    council.hold(start);
    (void)council.renew(start + 1s);
    const std::vector<Council::Asked> renewals = council.asked;
    council.release(start + 1s);
    for (std::size_t node = 0; node < 3; ++node)
      council.tell(node, renewals[node].request, Status::ok, false, RespValue::make_integer(1), start + 1s);
    TEST_ASSERT_FALSE(council->held(start + 1s));
    TEST_ASSERT_EQUAL(Instant(), council->valid_until());
    TEST_ASSERT_EQUAL("", council.events());
  }
}

// ---- Re-entry ----------------------------------------------------------------------------------------------------

TEST(test_several_releases_at_once_should_let_go_of_no_more_than_so_many) {
  Council council(3, reentrant_kind);
  council.hold(start);
  for (int times = 0; times < 4; ++times) TEST_ASSERT_EQUAL(Status::ok, council->reenter());
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s, 3));
  TEST_ASSERT_EQUAL(2U, council->count());
  TEST_ASSERT_EQUAL(QuorumState::held, council->state());
  TEST_ASSERT_EQUAL(0, council.take());  // No server is told.
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s, count_max));
  TEST_ASSERT_EQUAL(0U, council->count());
  TEST_ASSERT_EQUAL(QuorumState::releasing, council->state());
  TEST_ASSERT_EQUAL(7, council.take());
}

TEST(test_a_reentrant_hold_should_be_released_as_often_as_it_was_acquired) {
  Council council(3, reentrant_kind);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->reenter());
  TEST_ASSERT_EQUAL(Status::ok, council->reenter());
  TEST_ASSERT_EQUAL(3U, council->count());
  for (const std::uint32_t left : {2U, 1U}) {
    TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s));
    TEST_ASSERT_EQUAL(left, council->count());
    TEST_ASSERT_TRUE(council->held(start + 1s));
    TEST_ASSERT_EQUAL(0, council.take());
  }
  council.release(start + 1s);
  TEST_ASSERT_EQUAL(0U, council->count());
  TEST_ASSERT_EQUAL(QuorumState::releasing, council->state());
}

TEST(test_round_with_a_longer_lease_should_raise_that_of_the_hold_where_a_majority_confirms_it) {
  constexpr QuorumTiming longer = {.lease = 60s};
  Council council(3, reentrant_kind);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 1s, start + 2s, NodeSet{7}, &longer));
  TEST_ASSERT_EQUAL(7, council.take());
  for (std::size_t node = 0; node < 3; ++node)
    TEST_ASSERT_TRUE(council.asked[node].bytes.find("60000") != std::string::npos);
  council.say(0, true, start + 1s);
  TEST_ASSERT_EQUAL(start + validity, council->valid_until());  // One alone promises nothing.
  council.say(1, true, start + 1s);
  const Duration longer_validity = 60s - drift_of(60s);
  TEST_ASSERT_EQUAL(start + 1s + longer_validity, council->valid_until());
  TEST_ASSERT_EQUAL(start + 21s, council->renewal_due());
  TEST_ASSERT_EQUAL(start + 41s, council->risky_from());
  TEST_ASSERT_FALSE(council->permitted(59s));
  council.fail(2, Status::timed_out, start + 2s);
  // Who missed it is asked for it by the next round, and so is who lost it.
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 21s, start + 22s, NodeSet{7}));
  (void)council.take();
  TEST_ASSERT_TRUE(council.asked[2].bytes.find("60000") != std::string::npos);
  council.say(0, true, start + 21s);
  council.say(1, true, start + 21s);
  TEST_ASSERT_EQUAL(start + 21s + longer_validity, council->valid_until());
}

TEST(test_node_that_is_asked_anew_should_be_asked_for_the_lease_of_that_round) {
  constexpr QuorumTiming longer = {.lease = 60s};
  Council council(3, reentrant_kind);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 1s, start + 2s, NodeSet{7}, &longer));
  (void)council.take();
  council.say(0, true, start + 1s);
  council.say(2, false, start + 1s);
  council.say(1, true, start + 1s);
  TEST_ASSERT_EQUAL(4, council.take());
  TEST_ASSERT_EQUAL(Operation::acquire == council.asked[2].request.tag.operation, true);
  TEST_ASSERT_TRUE(council.asked[2].bytes.find("60000") != std::string::npos);
  council.grant(2, start + 1s);
  TEST_ASSERT_EQUAL(start + 1s + (60s - drift_of(60s)), council->vote(2).counts_until);
}

TEST(test_round_with_a_longer_lease_that_fails_should_leave_the_hold_its_own) {
  constexpr QuorumTiming longer = {.lease = 60s};
  Council council(3, reentrant_kind);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 1s, start + 2s, NodeSet{0}, &longer));
  (void)council.take();
  council.say(0, true, start + 1s);
  council.fail(1, Status::timed_out, start + 2s);
  council.fail(2, Status::timed_out, start + 2s);
  TEST_ASSERT_EQUAL(start + validity, council->valid_until());
  TEST_ASSERT_TRUE(council->permitted(lease));
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 3s, start + 4s, NodeSet{0}));
  (void)council.take();
  TEST_ASSERT_TRUE(council.asked[1].bytes.find("60000") == std::string::npos);
  council.say(1, true, start + 3s);
  council.say(2, true, start + 3s);
  TEST_ASSERT_EQUAL(start + 3s + validity, council->valid_until());
}

TEST(test_longer_lease_should_stay_below_the_quorums_max_lease) {
  constexpr QuorumTiming longer = {.lease = 60s};
  Council council(3, reentrant_kind);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::invalid_argument, council->renew(start + 1s, start + 2s, {7, 30s}, &longer));
  TEST_ASSERT_EQUAL(0, council.take());
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 1s, start + 2s, {7, 60s}, &longer));
}

TEST(test_each_hold_should_have_the_timing_that_it_was_acquired_with) {
  constexpr QuorumTiming longer = {.lease = 60s};
  constexpr QuorumTiming shorter = {.lease = 5s};
  Council council(3, reentrant_kind);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 1s, start + 2s, NodeSet{0}, &longer));
  (void)council.take();
  for (std::size_t node = 0; node < 3; ++node) council.say(node, true, start + 1s);
  TEST_ASSERT_TRUE(council->timing().lease == 60s);
  council.release(start + 2s);
  for (std::size_t node = 0; node < 3; ++node) council.say(node, true, start + 2s);
  TEST_ASSERT_EQUAL(Status::invalid_argument,
                    council->acquire(Council::token('b'), start + 3s, {7, 30s}, Instant::max(), &longer));
  TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token('b'), start + 3s, {7, 30s}, Instant::max(), &shorter));
  TEST_ASSERT_EQUAL(7, council.take());
  council.grant(0, start + 3s);
  council.grant(1, start + 3s);
  TEST_ASSERT_EQUAL(start + 3s + 5s - drift_of(5s), council->valid_until());
}

TEST(test_a_lost_reentrant_hold_should_be_unwound_by_several_releases_at_once) {
  Council council(3, reentrant_kind);
  council.hold(start);
  for (int times = 0; times < 4; ++times) TEST_ASSERT_EQUAL(Status::ok, council->reenter());
  council->settle(start + validity);
  TEST_ASSERT_EQUAL(Status::lock_lost, council->release(start + 11s, 3));
  TEST_ASSERT_EQUAL(2U, council->count());
  TEST_ASSERT_EQUAL(Status::lock_lost, council->release(start + 11s, 2));
  TEST_ASSERT_EQUAL(Status::not_held, council->release(start + 11s, 2));
}

TEST(test_a_lost_reentrant_hold_should_be_unwound_before_the_next) {
  Council council(3, reentrant_kind);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->reenter());
  council->settle(start + validity);
  TEST_ASSERT_EQUAL(2U, council->count());
  (void)council.take();
  TEST_ASSERT_EQUAL(Status::lock_lost, council->acquire(Council::token('b'), start + 11s, 7));
  TEST_ASSERT_EQUAL(Status::lock_lost, council->release(start + 11s));
  TEST_ASSERT_EQUAL(Status::lock_lost, council->acquire(Council::token('b'), start + 11s, 7));
  TEST_ASSERT_EQUAL(Status::lock_lost, council->release(start + 11s));
  TEST_ASSERT_EQUAL(0U, council->count());
  TEST_ASSERT_EQUAL(Status::not_held, council->release(start + 11s));
  council.acquire(start + 12s, 'b');
  council.grant(0, start + 12s);
  council.grant(1, start + 12s);
  TEST_ASSERT_TRUE(council->held(start + 12s));
  TEST_ASSERT_EQUAL(1U, council->count());
}

TEST(test_a_loss_should_be_forgotten_at_once_and_once) {
  for (const bool told : {false, true}) {
    Council council(3, reentrant_kind);
    TEST_ASSERT_EQUAL(Status::not_held, council->forget_loss(start));
    council.hold(start);
    TEST_ASSERT_EQUAL(Status::ok, council->reenter());
    TEST_ASSERT_EQUAL(Status::already_held, council->forget_loss(start + 1s));
    TEST_ASSERT_EQUAL(2U, council->count());
    if (told) TEST_ASSERT_EQUAL(Status::lock_lost, council->release(start + validity));
    TEST_ASSERT_EQUAL(Status::ok, council->forget_loss(start + validity));
    TEST_ASSERT_EQUAL(0U, council->count());
    TEST_ASSERT_EQUAL(Status::not_held, council->forget_loss(start + validity));
    TEST_ASSERT_EQUAL(Status::not_held, council->release(start + validity));
    TEST_ASSERT_TRUE(council->invariants());
  }
}

TEST(test_a_lost_mutex_should_not_have_to_be_unwound) {
  Council council(3);
  council.hold(start);
  council->settle(start + validity);
  TEST_ASSERT_EQUAL(0U, council->count());
  (void)council.take();
  council.acquire(start + 11s, 'b');
  for (std::size_t node = 0; node < 3; ++node) council.grant(node, start + 11s);
  TEST_ASSERT_EQUAL("granted", council.events());
  // The loss before is forgotten with it.
  council.release(start + 12s);
  council->end_release(Status::outcome_unknown);
  TEST_ASSERT_EQUAL(Status::not_held, council->release(start + 12s));
}

// ---- Forget ------------------------------------------------------------------------------------------------------

TEST(test_forget_should_end_everything_without_a_word) {
  for (const LockKind* const kind : kinds) {
    Council asked(3, *kind);
    asked.acquire(start);
    asked.grant(0, start);
    asked->forget();
    Council held(3, *kind);
    held.hold(start);
    (void)held.renew(start + 1s, 0);
    held->forget();
    Council lost(3, *kind);
    lost.hold(start);
    lost->settle(start + validity);
    lost->forget();
    Council doubtful(3, *kind);
    doubtful.acquire(start);
    doubtful.answer(0, RespValue::make_text(RespKind::simple, "odd"), start);
    doubtful->cancel(start);
    doubtful->forget();
    for (Council* const council : {&asked, &held, &lost, &doubtful}) {
      TEST_ASSERT_EQUAL(0, council->take());
      TEST_ASSERT_EQUAL(0, council->given_up);
      TEST_ASSERT_EQUAL(0, council->doubted);
      for (std::size_t node = 0; node < 3; ++node) {
        TEST_ASSERT_EQUAL(0, council->compensations[node]);
        TEST_ASSERT_EQUAL(LockState::idle, council->node(node).state());
        TEST_ASSERT_EQUAL(Instant(), (*council)->vote(node).counts_until);
      }
      TEST_ASSERT_EQUAL("", council->events());
      TEST_ASSERT_EQUAL(QuorumState::idle, (*council)->state());
      TEST_ASSERT_EQUAL(Status::not_held, (*council)->status());
      TEST_ASSERT_FALSE((*council)->held(start));
      TEST_ASSERT_FALSE((*council)->waiting());
      TEST_ASSERT_EQUAL(0U, (*council)->count());
      TEST_ASSERT_EQUAL(Status::not_held, (*council)->release(start));
      council->acquire(start + 20s, 'b');
      for (std::size_t node = 0; node < 3; ++node) council->grant(node, start + 20s);
    }
  }
}

TEST(test_forget_should_owe_nothing) {
  Council council(3);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s));
  council.node(2).refuse_request(Status::too_many_requests, start + 1s);
  council->settle(start + 1s);
  ReplyTag tag;
  Compensation compensation;
  TEST_ASSERT_FALSE(council->poll_compensation(2, false, tag, compensation));
  TEST_ASSERT_EQUAL(4, council->owed());
  council->forget();
  council.check();
  TEST_ASSERT_EQUAL(0, council->owed());
}

// ---- The verdicts, over all tallies ------------------------------------------------------------------------------
//
// The rules are written anew here: by what single nodes say, and by what may still come of it.

namespace {

// Calls with the number of nodes, and with every way to split them into so many classes.
template <std::size_t classes, class Call>
void for_all_splits(const Call& call) {
  std::size_t of[classes] = {};
  const auto split = [&](const auto& self, std::size_t nodes, std::size_t each, std::size_t left) -> void {
    if (each + 1 == classes) {
      of[each] = left;
      call(nodes, of);
      return;
    }
    for (of[each] = 0; of[each] <= left; ++of[each]) self(self, nodes, each + 1, left - of[each]);
  };
  for (std::size_t nodes = 1; nodes <= nodes_max; ++nodes) split(split, nodes, 0, nodes);
}
std::uint8_t small(std::size_t number) { return static_cast<std::uint8_t>(number); }
bool more_than_half(std::size_t votes, std::size_t nodes) { return votes * 2 > nodes; }

QuorumTally round_of(std::size_t nodes, std::size_t yes, std::size_t open) {
  QuorumTally tally(nodes);
  tally.yes = small(yes);
  tally.open = small(open);
  return tally;
}

// What one node is to a release, and what the tally makes of it.
enum ReleaseVote : std::uint8_t {
  freed,        // It has released the hold.
  disowned,     // "Not yours".
  asked,        // It has not answered.
  unclear,      // Its answer is lost.
  missed,       // Its grant was given up, and is not taken back yet.
  taken_back,   // It is by now; or its release was repeated, and found nothing.
  never_asked,  // It has nothing of the hold.
  left_over,    // It has, or may have, something that counted no more.
  release_votes
};
QuorumTally release_of(std::size_t nodes, const std::size_t (&of)[release_votes]) {
  QuorumTally tally(nodes);
  tally.yes = small(of[freed]);
  tally.no = small(of[disowned]);
  tally.open = small(of[asked]);
  tally.ours = small(of[asked] + of[unclear] + of[missed] + of[taken_back]);
  tally.free = small(of[freed] + of[disowned] + of[taken_back] + of[never_asked]);
  tally.unreturned = small(of[missed] + of[left_over]);
  return tally;
}
QuorumVerdict release_after(std::size_t nodes, std::size_t (&of)[release_votes], ReleaseVote from, ReleaseVote to,
                            bool strayed) {
  --of[from], ++of[to];
  const QuorumVerdict verdict = release_verdict(release_of(nodes, of), strayed);
  ++of[from], --of[to];
  return verdict;
}

}  // namespace

// [redlock 1] [redlock 3]
TEST(test_a_round_should_be_decided_as_soon_as_it_is_and_never_otherwise) {
  for_all_splits<3>([](std::size_t nodes, const std::size_t(&of)[3]) {
    const std::size_t yes = of[0], open = of[1], rest = of[2];
    // What may come of it: each vote that is to come says yes, or does not.
    bool may_win = false;
    bool may_fail = false;
    for (std::size_t more = 0; more <= open; ++more) (more_than_half(yes + more, nodes) ? may_win : may_fail) = true;
    const QuorumVerdict verdict = round_verdict(round_of(nodes, yes, open));
    TEST_MESSAGE(nodes << " nodes, " << yes << " yes, " << open << " open, " << rest << " neither");
    TEST_ASSERT_EQUAL(!may_fail, verdict == QuorumVerdict::yes);
    TEST_ASSERT_EQUAL(!may_win, verdict == QuorumVerdict::no);
    TEST_ASSERT_EQUAL(may_win && may_fail, verdict == QuorumVerdict::open);
  });
}

TEST(test_one_more_yes_should_never_turn_a_round_away) {
  for_all_splits<3>([](std::size_t nodes, const std::size_t(&of)[3]) {
    const std::size_t yes = of[0], open = of[1], rest = of[2];
    const QuorumVerdict verdict = round_verdict(round_of(nodes, yes, open));
    // A node that did not answer after all, and one that nobody expected.
    if (rest != 0 && verdict == QuorumVerdict::yes)
      TEST_ASSERT_TRUE(round_verdict(round_of(nodes, yes + 1, open)) == QuorumVerdict::yes);
    if (rest != 0 && verdict == QuorumVerdict::open)
      TEST_ASSERT_TRUE(round_verdict(round_of(nodes, yes + 1, open)) != QuorumVerdict::no);
    if (open == 0) {  // Nobody is waited for who does not come.
      TEST_ASSERT_TRUE(verdict != QuorumVerdict::open);
      return;
    }
    // What is decided stays so, whatever the next one says.
    if (verdict == QuorumVerdict::open) {
      TEST_ASSERT_TRUE(round_verdict(round_of(nodes, yes + 1, open - 1)) != QuorumVerdict::no);
      TEST_ASSERT_TRUE(round_verdict(round_of(nodes, yes, open - 1)) != QuorumVerdict::yes);
    } else {
      TEST_ASSERT_TRUE(round_verdict(round_of(nodes, yes + 1, open - 1)) == verdict);
      TEST_ASSERT_TRUE(round_verdict(round_of(nodes, yes, open - 1)) == verdict);
    }
  });
}

// [redlock 1] The nodes that say yes to one say it to nobody else.
TEST(test_two_should_never_both_have_a_majority) {
  for_all_splits<3>([](std::size_t nodes, const std::size_t(&of)[3]) {
    const bool one = round_verdict(round_of(nodes, of[0], 0)) == QuorumVerdict::yes;
    const bool other = round_verdict(round_of(nodes, of[1], 0)) == QuorumVerdict::yes;
    TEST_ASSERT_FALSE(one && other);
  });
}

TEST(test_a_refusal_should_be_busy_where_no_majority_can_be_had_for_those_in_the_way) {
  for_all_splits<3>([](std::size_t nodes, const std::size_t(&of)[3]) {
    const std::size_t busy = of[0], ours = of[1], missing = of[2];
    QuorumTally tally(nodes);
    tally.no = small(busy);
    tally.ours = small(ours);
    // Those that are missing are not why: without them, all others would be a majority.
    const bool in_the_way = busy != 0 && missing * 2 < nodes;
    TEST_ASSERT_EQUAL(in_the_way ? Status::lock_busy : Status::no_quorum, refusal(tally));
  });
}

// [redlock 5]
TEST(test_a_release_should_say_what_is_known_and_wait_for_what_may_be) {
  for_all_splits<release_votes>([](std::size_t nodes, const std::size_t(&of)[release_votes]) {
    for (const bool strayed : {false, true}) {
      const QuorumVerdict verdict = release_verdict(release_of(nodes, of), strayed);
      const bool released = more_than_half(of[freed], nodes);
      // Nobody doubts that it was ours, and a majority has nothing of it.
      const bool gone =
          !strayed && of[disowned] == 0 && more_than_half(of[freed] + of[taken_back] + of[never_asked], nodes);
      // Even if each that may have had it had it.
      const std::size_t had = of[freed] + of[asked] + of[unclear] + of[missed] + of[taken_back];
      const bool lost = !more_than_half(had, nodes);
      const bool comes = of[asked] != 0 || (of[disowned] == 0 && of[missed] + of[left_over] != 0);
      const QuorumVerdict expected = released || gone ? QuorumVerdict::yes
                                     : lost           ? QuorumVerdict::no
                                     : comes          ? QuorumVerdict::open
                                                      : QuorumVerdict::unknown;
      TEST_ASSERT_TRUE(expected == verdict);
    }
  });
}

TEST(test_one_more_answer_should_never_turn_a_release_back) {
  for_all_splits<release_votes>([](std::size_t nodes, const std::size_t(&split)[release_votes]) {
    std::size_t of[release_votes];
    std::copy(std::begin(split), std::end(split), std::begin(of));
    for (const bool strayed : {false, true}) {
      const QuorumVerdict before = release_verdict(release_of(nodes, of), strayed);
      const auto after = [&](ReleaseVote from, ReleaseVote to) { return release_after(nodes, of, from, to, strayed); };
      if (of[asked] != 0) {
        if (before == QuorumVerdict::open) TEST_ASSERT_TRUE(after(asked, freed) != QuorumVerdict::no);
        if (before != QuorumVerdict::yes) {
          TEST_ASSERT_TRUE(after(asked, disowned) != QuorumVerdict::yes);
          TEST_ASSERT_TRUE(after(asked, unclear) != QuorumVerdict::yes);
        } else {
          TEST_ASSERT_TRUE(after(asked, freed) == QuorumVerdict::yes);
          TEST_ASSERT_TRUE(after(asked, unclear) == QuorumVerdict::yes);
        }
        if (before == QuorumVerdict::no) TEST_ASSERT_TRUE(after(asked, disowned) == QuorumVerdict::no);
      } else if (of[missed] + of[left_over] == 0) {
        TEST_ASSERT_TRUE(before != QuorumVerdict::open);  // Nobody waits for what does not come.
      }
      if (of[missed] != 0 && before == QuorumVerdict::yes)
        TEST_ASSERT_TRUE(after(missed, taken_back) == QuorumVerdict::yes);
      if (of[missed] != 0 && before == QuorumVerdict::open)
        TEST_ASSERT_TRUE(after(missed, taken_back) != QuorumVerdict::no);
    }
  });
}

// ---- Against each other: quorum_world.hpp ------------------------------------------------------------------------

namespace {

struct Sums {
  std::size_t grants = 0, losses = 0, renewals = 0, repairs = 0, denials = 0, releases = 0, reentries = 0;
  std::size_t moves = 0, moved_while_held = 0;
};

}  // namespace

static void torment(bool names_move) {
  for (const LockKind* const kind : kinds) {
    Sums tally;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
      QuorumWorld world(seed, *kind, sizes[seed % std::size(sizes)], false, names_move);
      for (int step = 0; step < 800; ++step) {
        world.step();
        TEST_MESSAGE(kind->name << ", seed " << seed << ", step " << step);
        if (world.sound()) continue;
        TEST_ASSERT_EQUAL(0U, world.surprises);
        TEST_ASSERT_EQUAL(0U, world.invariants_broken);
        TEST_ASSERT_EQUAL(0U, world.both_held);
        TEST_ASSERT_EQUAL(0U, world.promises_broken);
        TEST_ASSERT_EQUAL(0U, world.fences_broken);
      }
      tally.grants += world.grants;
      tally.losses += world.losses;
      tally.renewals += world.renewals;
      tally.repairs += world.repairs;
      tally.denials += world.denials;
      tally.releases += world.releases;
      tally.reentries += world.reentries;
      tally.moves += world.moves;
      tally.moved_while_held += world.moved_while_held;
    }
    DOCTEST_MESSAGE(std::string(kind->name)
                    << ": " << tally.grants << " grants, " << tally.denials << " denials, " << tally.renewals
                    << " renewals, " << tally.repairs << " repairs, " << tally.losses << " losses, " << tally.releases
                    << " releases, " << tally.reentries << " re-entries, " << tally.moves << " moves, "
                    << tally.moved_while_held << " of them under a hold");
    for (const std::size_t count :
         {tally.grants, tally.losses, tally.renewals, tally.repairs, tally.denials, tally.releases})
      TEST_ASSERT_TRUE(count >= 50);
    TEST_ASSERT_EQUAL(kind->reentrant, tally.reentries >= 50);
    TEST_ASSERT_EQUAL(names_move, tally.moved_while_held >= 50);
  }
}

TEST(test_no_two_should_ever_hold_on_nodes_that_keep_their_data) { torment(false); }

// [redlock 10] One server never counts twice, whichever names lead to it.
TEST(test_no_two_should_ever_hold_while_names_move_between_the_servers) { torment(true); }

// The checks see what nobody promises to survive.
TEST(test_nodes_that_forget_should_be_seen_to_break_the_promise) {
  std::size_t both = 0;
  std::size_t broken = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    QuorumWorld world(seed, mutex_kind, 3, true);
    for (int step = 0; step < 800; ++step) world.step();
    both += world.both_held;
    TEST_ASSERT_EQUAL(0U, world.invariants_broken);
    broken += world.promises_broken;
  }
  TEST_ASSERT_TRUE(both > 0);
  TEST_ASSERT_TRUE(broken > 0);
}

// ---- Rounds, and what one leaves to the next ---------------------------------------------------------------------

TEST(test_a_grant_that_comes_while_a_round_is_open_should_be_renewed_in_it) {
  Council council(3);
  council.acquire(start);
  council.grant(0, start + 1ms);
  council.grant(1, start + 1ms);
  TEST_ASSERT_EQUAL("granted", council.events());
  TEST_ASSERT_EQUAL(0b011, council.renew(start + 1s));
  council.grant(2, start + 1001ms);
  TEST_ASSERT_EQUAL(0b100, council.take());
  TEST_ASSERT_TRUE(council.asked[2].request.tag.operation == Operation::renew);
  TEST_ASSERT_EQUAL(start + 1001ms + node_timeout, council.asked[2].request.deadline);
  council.say(2, true, start + 1002ms);
  council.say(0, true, start + 1002ms);
  TEST_ASSERT_EQUAL("renewed", council.events());
}

TEST(test_a_release_that_is_no_longer_on_its_way_should_not_be_ended) {
  Council council(3);
  council.hold(start);
  council->end_release(Status::timed_out);
  TEST_ASSERT_EQUAL(QuorumState::held, council->state());
  TEST_ASSERT_EQUAL(Status::ok, council->status());
}

TEST(test_a_forgotten_hold_should_leave_nobody_to_be_asked_or_demoted) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s);
  council.fail(0, Status::read_only, start + 1s);
  council->forget();
  TEST_ASSERT_EQUAL(0, council->poll_demoted());
  TEST_ASSERT_EQUAL(0, council->poll_nodes());
  TEST_ASSERT_EQUAL(0, council->poll_give_up());
  TEST_ASSERT_EQUAL("", council.events());
}

TEST(test_a_round_that_succeeds_after_one_that_did_not_should_be_ok) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s);
  for (std::size_t node = 0; node < 3; ++node) council.fail(node, Status::loading, start + 1s);
  TEST_ASSERT_EQUAL("doubted at_risk", council.events());
  TEST_ASSERT_EQUAL(Status::no_quorum, council->status());
  TEST_ASSERT_EQUAL(0b111, council.renew(start + 2s));
  for (std::size_t node = 0; node < 3; ++node) council.say(node, true, start + 2s);
  TEST_ASSERT_EQUAL("renewed", council.events());
  TEST_ASSERT_EQUAL(Status::ok, council->status());
}

TEST(test_a_node_that_has_no_place_for_what_is_to_be_taken_back_should_not_be_asked_anew) {
  Council council(3);
  council.hold(start);
  council->settle(start + lease);
  TEST_ASSERT_EQUAL("lost", council.events());
  ReplyTag tag;
  Compensation compensation;
  TEST_ASSERT_TRUE(council->poll_compensation(0, true, tag, compensation));
  TEST_ASSERT_TRUE(council->poll_compensation(1, true, tag, compensation));
  TEST_ASSERT_FALSE(council->poll_compensation(2, false, tag, compensation));
  TEST_ASSERT_EQUAL(Status::lock_lost, council->release(start + lease));
  TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token('b'), start + lease, all_of(3)));
  TEST_ASSERT_EQUAL(Status::too_many_requests, council->vote(2).status);
  TEST_ASSERT_EQUAL(Status::outcome_unknown, council->vote(0).status);
  TEST_ASSERT_EQUAL(0b011, council.take());
}

TEST(test_a_node_that_has_not_answered_the_attempt_before_should_refuse_the_next) {
  Council council(3);
  council.acquire(start);
  council.busy(0, start + 1ms);
  council.busy(1, start + 1ms);
  TEST_ASSERT_EQUAL("denied", council.events());
  (void)council.take();
  TEST_ASSERT_EQUAL(0b100, council.given_up);
  TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token('b'), start + 2ms, all_of(3)));
  TEST_ASSERT_EQUAL(Status::already_held, council->vote(2).status);
  TEST_ASSERT_EQUAL(0b011, council.take());
}

// ---- Who is asked, and who is not --------------------------------------------------------------------------------

namespace {

// Each node's connection leads to a server of its own.
struct Met : Council {
  using Council::Council;
  void meet_all() {
    for (std::size_t node = 0; node < count; ++node) machine->meet(node, static_cast<std::uint32_t>(node + 1), false);
  }
};

}  // namespace

TEST(test_a_lock_whose_loss_is_still_to_be_told_should_not_be_configured) {
  Council council(3);
  council.hold(start);
  council->settle(start + validity);
  TEST_ASSERT_EQUAL("lost", council.events());
  (void)council.take();
  for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_EQUAL(LockState::lost, council.node(node).state());
  for (std::size_t node = 0; node < 3; ++node) council.node(node).forget();
  TEST_ASSERT_EQUAL(Status::already_held, council->configure(Key("other"), {.lease = lease}));
  TEST_ASSERT_EQUAL(ByteView("name"), council->key().bytes());
}

// A node that was not asked, and has said nothing, cannot make a majority that has had the hold.
TEST(test_release_should_be_lost_once_those_that_were_asked_cannot_be_a_majority_any_more) {
  for (const std::size_t absent : {0U, 2U}) {
    Council council(3);
    council.acquire(start, 'a', static_cast<NodeSet>(7 & ~node_bit(absent)));
    for (std::size_t node = 0; node < 3; ++node)
      if (node != absent) council.grant(node, start);
    TEST_ASSERT_EQUAL("granted", council.events());
    council.release(start + 1s);
    TEST_ASSERT_EQUAL(Status::not_connected, council->vote(absent).status);  // It was not asked now, either.
    council.say(1, false, start + 1s);
    TEST_ASSERT_EQUAL("released", council.events());
    TEST_ASSERT_EQUAL(Status::lock_lost, council->status());
  }
}

TEST(test_a_hold_whose_names_have_not_moved_should_be_released_like_any_whatever_was_before) {
  Met council(3);
  council.meet_all();
  council.hold(start);
  council->meet(0, 9, false);  // The first hold strays.
  council.release(start + 1s);
  council->end_release(Status::timed_out);
  for (std::size_t node = 0; node < 3; ++node)
    if (council.asked[node].open) council.say(node, true, start + 1s);
  (void)council.take();
  council.acquire(start + 2s, 'b');
  council.grant(0, start + 2s);
  council.grant(1, start + 2s);
  council.busy(2, start + 2s);
  TEST_ASSERT_EQUAL("granted", council.events());
  council.release(start + 3s);
  council.say(1, true, start + 3s);  // The third one never had it.
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::ok, council->status());
}

// Whom the round before could ask anew says nothing of who may be asked now.
TEST(test_who_loses_the_fence_of_a_new_hold_should_not_be_asked_anew_before_its_first_renewal) {
  for (const std::size_t lost : {0U, 2U}) {
    Council council(3, quorum_fenced_mutex_kind);
    council.hold(start);
    TEST_ASSERT_EQUAL(7, council.renew(start + 1s, 7));
    for (std::size_t node = 0; node < 3; ++node) council.say(node, true, start + 1s);
    TEST_ASSERT_EQUAL("renewed", council.events());
    council.release(start + 2s);
    for (std::size_t node = 0; node < 3; ++node) council.say(node, true, start + 2s);
    TEST_ASSERT_EQUAL("released", council.events());
    council.acquire(start + 3s, 'b');
    for (std::size_t node = 0; node < 3; ++node) council.grant(node, start + 3s);
    TEST_ASSERT_EQUAL(QuorumState::fencing, council->state());
    (void)council.take();
    const int before = council.compensations[lost];
    council.say(lost, false, start + 3s);
    for (std::size_t node = 0; node < 3; ++node)
      if (node != lost && council.asked[node].open) council.say(node, true, start + 3s);
    TEST_ASSERT_EQUAL("granted", council.events());
    (void)council.take();
    council->settle(start + 3s);
    TEST_ASSERT_EQUAL(0, council.take());
    TEST_ASSERT_FALSE(council->vote(lost).repairing);
    TEST_ASSERT_EQUAL(before + 1, council.compensations[lost]);
  }
}

// The one that it was asked of last is no server of this hold.
TEST(test_a_server_that_was_asked_for_the_hold_before_at_another_node_should_be_renewed_where_it_is) {
  Met council(3);
  council.meet_all();
  council.hold(start);
  council.release(start + 1s);
  for (std::size_t node = 0; node < 3; ++node) council.say(node, true, start + 1s);
  council->meet(0, 7, false);
  council->meet(1, 1, false);
  council.acquire(start + 2s, 'b', 0b110);
  council.grant(1, start + 2s);
  council.grant(2, start + 2s);
  TEST_ASSERT_EQUAL(0b110, council.renew(start + 3s));
}

TEST(test_what_is_owed_should_not_go_to_a_server_that_has_come_since_also_behind_another_attempt) {
  Met council(3);
  council.meet_all();
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s));
  council.node(0).refuse_request(Status::too_many_requests, start + 1s);
  council->settle(start + 1s);
  ReplyTag tag;
  Compensation compensation;
  TEST_ASSERT_FALSE(council->poll_compensation(0, false, tag, compensation));
  TEST_ASSERT_EQUAL(1, council->owed());
  council->end_release(Status::timed_out);
  (void)council.take();
  for (const std::size_t node : {1U, 2U}) council.say(node, true, start + 1s);
  council->meet(0, 9, false);
  TEST_ASSERT_EQUAL(Status::ok, council->acquire(Council::token('b'), start + 2s, 7));
  TEST_ASSERT_EQUAL(Status::too_many_requests, council->vote(0).status);
  council->retry_owed();
  TEST_ASSERT_FALSE(council->poll_compensation(0, true, tag, compensation));
  TEST_ASSERT_EQUAL(0, council->owed());
}

TEST(test_only_what_is_to_be_taken_back_from_who_is_there_should_be_owed) {
  Met council(3);
  council.meet_all();
  council.hold(start);
  ReplyTag tag;
  Compensation compensation;
  for (std::size_t node = 0; node < 3; ++node)
    TEST_ASSERT_FALSE(council->poll_compensation(node, false, tag, compensation));
  TEST_ASSERT_EQUAL(0, council->owed());  // There is nothing.
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s));
  for (const std::size_t node : {1U, 2U}) council.node(node).refuse_request(Status::too_many_requests, start + 1s);
  council->settle(start + 1s);
  council->meet(2, 9, false);
  for (const std::size_t node : {1U, 2U}) TEST_ASSERT_FALSE(council->poll_compensation(node, false, tag, compensation));
  TEST_ASSERT_EQUAL(0b010, council->owed());
  TEST_ASSERT_EQUAL(0b010, council->release_owed());
}

TEST(test_a_node_that_was_asked_anew_should_be_asked_once_and_stay_so_in_the_next_round) {
  for (const std::size_t lost : {0U, 2U}) {
    Council council(3);
    council.hold(start);
    (void)council.renew(start + 1s, 7);
    for (std::size_t node = 0; node < 3; ++node) council.say(node, node != lost, start + 1s);
    TEST_ASSERT_EQUAL(node_bit(lost), council.take());
    TEST_ASSERT_TRUE(council->vote(lost).repairing);
    TEST_ASSERT_EQUAL(static_cast<NodeSet>(7 & ~node_bit(lost)), council.renew(start + 1s + 100ms, 7));
    TEST_ASSERT_TRUE(council->vote(lost).repairing);
    council.grant(lost, start + 1s + 200ms);
    TEST_ASSERT_EQUAL(0, council.take());  // It confirms nothing of this round.
    TEST_ASSERT_TRUE(council->vote(lost).repaired);
    TEST_ASSERT_EQUAL(Status::ok, council->vote(lost).status);
  }
}

TEST(test_a_repair_that_is_refused_should_not_be_asked_for_again_before_the_next_round) {
  for (const std::size_t lost : {0U, 2U}) {
    Council council(3);
    council.hold(start);
    (void)council.renew(start + 1s, 7);
    for (std::size_t node = 0; node < 3; ++node) council.say(node, node != lost, start + 1s);
    TEST_ASSERT_EQUAL(node_bit(lost), council.take());
    council.busy(lost, start + 1s);
    council->settle(start + 1s);
    TEST_ASSERT_EQUAL(0, council.take());
    TEST_ASSERT_EQUAL(7, council.renew(start + 2s, 7));
  }
}

TEST(test_an_excluded_node_should_not_be_asked_anew_whoever_its_server_is) {
  Met council(3);
  council.meet_all();
  council.hold(start);
  (void)council.renew(start + 1s);
  for (std::size_t node = 0; node < 3; ++node) council.say(node, node != 2, start + 1s);
  TEST_ASSERT_EQUAL(0, council.take());
  council->meet(2, 9, true);  // A replica of another node's server, say.
  TEST_ASSERT_EQUAL(0b011, council.renew(start + 2s, 7));
}

TEST(test_a_server_that_was_asked_anew_should_be_the_one_that_is_released) {
  Met council(3);
  council.meet_all();
  council.hold(start);
  (void)council.renew(start + 1s);
  for (std::size_t node = 0; node < 3; ++node) council.say(node, node != 2, start + 1s);
  (void)council.take();
  council->meet(2, 9, false);
  TEST_ASSERT_EQUAL(7, council.renew(start + 2s, 7));
  TEST_ASSERT_EQUAL(9U, council->vote(2).keeper);
  for (std::size_t node = 0; node < 2; ++node) council.say(node, true, start + 2s);
  council.grant(2, start + 2s);
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 3s));
  TEST_ASSERT_EQUAL(7, council.take());
}

// Its own end is as late as a renewed one's, and it counts for one from then on: no further than the hold.
TEST(test_a_repaired_vote_should_grow_with_the_hold_as_far_as_it_was_promised) {
  for (const std::size_t lost : {0U, 2U}) {
    Met council(3);
    council.meet_all();
    council.hold(start);
    (void)council.renew(start + 500ms);
    for (std::size_t node = 0; node < 3; ++node) council.say(node, node != lost, start + 500ms);
    (void)council.take();
    TEST_ASSERT_EQUAL(7, council.renew(start + 1s, 7));
    council.grant(lost, start + 1s);
    TEST_ASSERT_EQUAL(start + 500ms + validity, council->vote(lost).counts_until);
    for (std::size_t node = 0; node < 3; ++node)
      if (node != lost) council.say(node, true, start + 1s);
    TEST_ASSERT_EQUAL(start + 1s + validity, council->vote(lost).counts_until);
    (void)council.renew(start + 2s);
    const std::size_t other = lost == 0 ? 2 : 0;
    council.say(other, true, start + 2s);
    council.say(1, false, start + 2s);
    TEST_ASSERT_EQUAL(start + 1s + validity, council->valid_until());
    TEST_ASSERT_TRUE(council->vote(lost).repaired);
    // One that is excluded counts for nothing, whatever it was promised.
    council->meet(lost, 9, true);
    council->settle(start + 2s);
    TEST_ASSERT_EQUAL(Instant(), council->vote(lost).counts_until);
  }
}

TEST(test_a_round_that_has_failed_should_ask_nobody_anew) {
  for (const std::size_t late : {0U, 2U}) {
    Council council(3);
    council.hold(start);
    (void)council.renew(start + 1s, 7);
    for (std::size_t node = 0; node < 3; ++node)
      if (node != late) council.fail(node, Status::timed_out, start + 2s);
    TEST_ASSERT_EQUAL("doubted at_risk", council.events());
    council.say(late, false, start + 2s);
    TEST_ASSERT_EQUAL(0, council.take());
    TEST_ASSERT_FALSE(council->vote(late).repairing);
    TEST_ASSERT_EQUAL(1, council.compensations[late]);
  }
}

TEST(test_a_doubt_should_not_be_put_off_by_looking_at_it) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s);
  for (std::size_t node = 0; node < 3; ++node) council.fail(node, Status::timed_out, start + 2s);
  TEST_ASSERT_EQUAL(QuorumState::at_risk, council->state());
  TEST_ASSERT_EQUAL(Instant(), council->risky_from());
  const Instant due = council->renewal_due();
  TEST_ASSERT_TRUE(due > start + 2s);
  council->settle(start + 2s + 10ms);
  TEST_ASSERT_EQUAL(due, council->renewal_due());
}

TEST(test_a_node_should_be_missing_by_its_own_word_alone) {
  Met council(5);
  council.meet_all();
  council.hold(start);
  council->meet(1, 9, false);
  TEST_ASSERT_EQUAL(31, council.renew(start + 1s, 31));
  // The first one's answer is looked at with all the others.
  council.asked[0].open = false;
  council.node(0).handle_reply({.tag = council.asked[0].request.tag,
                                .outcome = Status::ok,
                                .nothing_ran = false,
                                .value = RespValue::make_integer(0)},
                               start + 1s);
  council->settle(start + 1s);
  for (const std::size_t node : {2U, 3U, 4U}) council.say(node, true, start + 1s);
  TEST_ASSERT_EQUAL(1, council.take());            // Asked anew.
  TEST_ASSERT_EQUAL(2U, council->vote(1).keeper);  // Its new server has confirmed nothing.
}

// ---- What a hold is asked for ------------------------------------------------------------------------------------

TEST(test_a_fence_should_be_the_largest_of_those_that_have_granted_this_hold) {
  for (const std::size_t absent : {0U, 2U}) {
    Council council(3, quorum_fenced_mutex_kind);
    council.acquire(start);
    for (std::size_t node = 0; node < 3; ++node) council.grant(node, start, node == absent ? 50 : 7);
    (void)council.take();
    for (std::size_t node = 0; node < 3; ++node)
      if (council.asked[node].open) council.say(node, true, start);
    TEST_ASSERT_EQUAL("granted", council.events());
    council.release(start + 1s);
    for (std::size_t node = 0; node < 3; ++node)
      if (council.asked[node].open) council.say(node, true, start + 1s);
    TEST_ASSERT_EQUAL("released", council.events());
    council.acquire(start + 2s, 'b', static_cast<NodeSet>(7 & ~node_bit(absent)));
    for (std::size_t node = 0; node < 3; ++node)
      if (node != absent) council.grant(node, start + 2s, 9 + node);
    (void)council.take();
    TEST_ASSERT_EQUAL(std::uint64_t{absent == 0 ? 11U : 10U}, council->fence());
  }
}

TEST(test_a_late_grant_of_a_fenced_hold_should_be_folded_in_without_a_word) {
  Council council(3, quorum_fenced_mutex_kind);
  council.acquire(start);
  council.grant(0, start);
  council.grant(1, start);
  (void)council.take();
  council.say(0, true, start);
  council.say(1, true, start);
  TEST_ASSERT_EQUAL("granted", council.events());
  council.grant(2, start + 100ms);
  TEST_ASSERT_EQUAL(0, council.take());
  TEST_ASSERT_EQUAL(Status::ok, council->vote(2).status);
  TEST_ASSERT_EQUAL(std::uint64_t{7}, council.node(2).fence());
}

TEST(test_a_confirmed_round_should_give_the_hold_all_of_the_timing_that_it_asked_for) {
  Council council(3, mutex_kind, {.lease = lease, .drift = 100ms});
  council.hold(start);
  const QuorumTiming longer = {.lease = 2 * lease, .drift = 500ms, .kept = true};
  const LockTiming raised = council->timing().lock().raised_by(longer.lock());
  TEST_ASSERT_EQUAL(Status::ok, council->renew(start + 1s, start + 2s, 0, &longer));
  (void)council.take();
  council.say(0, true, start + 1s);
  TEST_ASSERT_TRUE(council->timing().drift == Duration(100ms));
  council.say(1, true, start + 1s);
  TEST_ASSERT_EQUAL(2 * lease, council->timing().lease);
  TEST_ASSERT_TRUE(council->timing().drift == raised.drift);
  TEST_ASSERT_TRUE(council->timing().drift != Duration(100ms));
  TEST_ASSERT_EQUAL(raised.kept, council->timing().kept);
}

TEST(test_a_grant_should_be_no_more_where_one_that_made_it_is_excluded_by_then) {
  Council council(3);
  council.acquire(start);
  council.grant(0, start);
  council->meet(0, 1, true);
  council.grant(1, start);
  TEST_ASSERT_EQUAL("denied", council.events());
  TEST_ASSERT_EQUAL(Status::timed_out, council->status());
}

TEST(test_each_answer_should_be_told_of_its_node_until_the_next) {
  Council council(3);
  council.acquire(start);
  council.grant(0, start);
  TEST_ASSERT_EQUAL(Status::ok, council->vote(0).status);
  council.grant(1, start);
  council.grant(2, start);
  (void)council.renew(start + 1s);
  council.fail(0, Status::loading, start + 1s);
  TEST_ASSERT_EQUAL(Status::loading, council->vote(0).status);
  council.say(1, true, start + 1s);
  council.say(2, true, start + 1s);
  (void)council.renew(start + 2s);
  council.say(0, true, start + 2s);
  TEST_ASSERT_EQUAL(Status::ok, council->vote(0).status);
}

TEST(test_a_release_of_nodes_whose_servers_have_gone_should_say_that_they_were_not_there) {
  Met council(3);
  council.meet_all();
  council.hold(start);
  for (std::size_t node = 0; node < 3; ++node) council->meet(node, static_cast<std::uint32_t>(node + 11), false);
  council.release(start + 1s);
  TEST_ASSERT_EQUAL("", council.events());
  council->settle(start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::not_connected, council->status());
}

// ---- What is forgotten -------------------------------------------------------------------------------------------

TEST(test_a_lost_mutex_should_be_forgotten_once) {
  Council council(3);
  council.hold(start);
  council->settle(start + validity);
  TEST_ASSERT_EQUAL(Status::ok, council->forget_loss(start + validity));
  TEST_ASSERT_EQUAL(Status::not_held, council->forget_loss(start + validity));
}

TEST(test_nothing_of_a_forgotten_hold_should_be_left_to_tell) {
  {
    Council council(3);
    council.hold(start);
    TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s));
    for (std::size_t node = 0; node < 3; ++node)
      council.node(node).refuse_request(Status::too_many_requests, start + 1s);
    council->settle(start + 1s);
    ReplyTag tag;
    Compensation compensation;
    for (std::size_t node = 0; node < 3; ++node)
      TEST_ASSERT_FALSE(council->poll_compensation(node, false, tag, compensation));
    TEST_ASSERT_EQUAL(7, council->owed());
    council->forget();
    TEST_ASSERT_EQUAL(0, council->owed());
    TEST_ASSERT_EQUAL(Status::not_held, council->status());
  }
  {
    Council council(3);
    council.acquire(start);
    council->cancel(start);
    council->forget();
    TEST_ASSERT_EQUAL(0, council->poll_give_up());
    TEST_ASSERT_EQUAL(Status::not_held, council->status());
    TEST_ASSERT_FALSE(council->has_output());
  }
  {
    Council council(3);
    council.acquire(start);
    council.answer(1, RespValue::make_integer(77), start);  // No answer to a SET.
    council->forget();
    TEST_ASSERT_EQUAL(0, council->poll_protocol_doubt());
    TEST_ASSERT_FALSE(council->has_output());
  }
  {
    Council council(3);
    council.hold(start);
    council->forget();
    for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_EQUAL(LockState::idle, council.node(node).state());
    council.acquire(start + 1s, 'b');
    for (std::size_t node = 0; node < 3; ++node) TEST_ASSERT_EQUAL(Instant(), council->vote(node).counts_until);
  }
}

TEST(test_a_quorum_should_be_asked_by_its_own_votes_alone) {
  Council council(2);
  QuorumMachine smaller(mutex_kind, council.places.data(), 1);
  TEST_ASSERT_EQUAL(Status::ok, smaller.configure(Key("other"), {.lease = lease}));
  TEST_ASSERT_EQUAL(ByteView("other"), smaller.key().bytes());
  TEST_ASSERT_EQUAL(ByteView("name"), council.node(1).key().bytes());
}

TEST(test_who_comes_back_or_comes_for_the_first_time_should_not_have_strayed) {
  Met council(3);
  council.meet_all();
  council.acquire(start, 'a', 0b110);
  council.grant(1, start);
  council.grant(2, start);
  TEST_ASSERT_EQUAL("granted", council.events());
  council->meet(0, 5, false);  // Nobody was asked there.
  council->meet(1, 2, false);
  council.release(start + 1s);
  council.say(1, true, start + 1s);
  TEST_ASSERT_EQUAL("released", council.events());
  TEST_ASSERT_EQUAL(Status::ok, council->status());
}

TEST(test_a_vote_that_was_repaired_and_then_excluded_should_count_no_more) {
  Met council(5);
  council.meet_all();
  council.hold(start);
  (void)council.renew(start + 500ms);
  for (std::size_t node = 0; node < 5; ++node) council.say(node, node != 4, start + 500ms);
  (void)council.take();
  (void)council.renew(start + 1s, 31);
  council.grant(4, start + 1s);
  TEST_ASSERT_TRUE(council->vote(4).repaired);
  council->meet(4, 9, true);
  for (std::size_t node = 0; node < 4; ++node) council.say(node, true, start + 1s);
  TEST_ASSERT_TRUE(council->held(start + 1s));
  TEST_ASSERT_EQUAL(Instant(), council->vote(4).counts_until);
}

TEST(test_any_node_that_says_not_yours_and_may_not_vote_should_be_taken_back_at_once) {
  for (std::size_t lost = 0; lost < 3; ++lost) {
    Council council(3);
    council.hold(start);
    (void)council.renew(start + 1s, static_cast<NodeSet>(7 & ~node_bit(lost)));
    council.say(lost, false, start + 1s);
    TEST_ASSERT_EQUAL(0, council.take());
    TEST_ASSERT_EQUAL(1, council.compensations[lost]);
  }
}

TEST(test_a_node_that_waits_for_the_end_of_its_round_should_be_no_news_until_then) {
  Council council(3);
  council.hold(start);
  (void)council.renew(start + 1s, 7);
  council.say(2, false, start + 1s);
  TEST_ASSERT_EQUAL("at_risk", council.events());
  TEST_ASSERT_EQUAL(0, council.take());
  council->settle(start + 1s);
  TEST_ASSERT_EQUAL(0, council->poll_nodes());
  TEST_ASSERT_FALSE(council->has_output());
}

TEST(test_what_is_owed_should_be_named_when_it_may_find_a_place) {
  Council council(3);
  council.hold(start);
  TEST_ASSERT_EQUAL(Status::ok, council->release(start + 1s));
  for (const std::size_t node : {0U, 2U}) council.node(node).refuse_request(Status::too_many_requests, start + 1s);
  council->settle(start + 1s);
  ReplyTag tag;
  Compensation compensation;
  for (const std::size_t node : {0U, 2U}) TEST_ASSERT_FALSE(council->poll_compensation(node, false, tag, compensation));
  (void)council.take();
  TEST_ASSERT_EQUAL(0, council->poll_nodes());
  council->retry_owed();
  TEST_ASSERT_EQUAL(0b101, council->poll_nodes());
}

TEST(test_all_that_have_granted_should_be_named_when_the_fence_is_to_be_written) {
  Council council(3, quorum_fenced_mutex_kind);
  council.acquire(start);
  council.grant(0, start);
  TEST_ASSERT_EQUAL(0, council.take());
  council.grant(1, start);
  TEST_ASSERT_EQUAL(0b011, council.take());
}

TEST(test_there_should_be_output_until_each_thing_was_told) {
  {
    Council council(3);
    council.acquire(start);
    council->cancel(start);
    (void)council->poll_nodes();
    TEST_ASSERT_TRUE(council->has_output());
    TEST_ASSERT_EQUAL("denied", council.events());
    TEST_ASSERT_TRUE(council->has_output());
    TEST_ASSERT_EQUAL(7, council->poll_give_up());
    TEST_ASSERT_FALSE(council->has_output());
  }
  {
    Council council(3);
    council.acquire(start);
    council.answer(1, RespValue::make_integer(77), start);
    (void)council->poll_nodes();
    TEST_ASSERT_TRUE(council->has_output());
    TEST_ASSERT_EQUAL(0b010, council->poll_protocol_doubt());
    TEST_ASSERT_FALSE(council->has_output());
  }
  {
    Council council(3);
    council.acquire(start);
    council.fail(2, Status::read_only, start, true);
    (void)council->poll_nodes();
    TEST_ASSERT_TRUE(council->has_output());
    TEST_ASSERT_EQUAL(0b100, council->poll_demoted());
    TEST_ASSERT_FALSE(council->has_output());
  }
  {
    Council council(3);
    council.hold(start);
    council->settle(start + validity);
    (void)council.take();
    TEST_ASSERT_TRUE(council->has_output());
    TEST_ASSERT_EQUAL("lost", council.events());
    TEST_ASSERT_FALSE(council->has_output());
  }
}
