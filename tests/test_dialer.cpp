// SPDX-License-Identifier: MIT
//
// When a connection is made, and where it goes. Theorem: attempts never come faster than their pauses allow, each address
// gets its turn, and an answer of the resolver is used however late it comes.
#include "holdfast/core/dialer.hpp"

#include <random>

#include "holdfast/detail/cancel_signal.hpp"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);
constexpr std::uint16_t least = 0;
constexpr std::uint16_t most = UINT16_MAX;
constexpr Duration timeout = 2s;

struct Desk {
  explicit Desk(std::uint8_t count = 1, bool named = false) { dialer.start(timeout, count, named); }
  DialAction poll() { return dialer.poll_action(now, most); }
  void refuse() { dialer.handle_dial_failed(Status::connect_failed, now, most); }
  void connect() {
    TEST_ASSERT_EQUAL(DialAction::dial, poll());
    dialer.handle_dialled();
    dialer.handle_ready(now);
  }
  void close(bool used) { dialer.handle_closed(Status::transport_closed, used, now, most); }
  void wait() { now = later(now, dialer.poll_timeout()); }

  Dialer dialer;
  Instant now = start;
};

}  // namespace

// ---- One attempt -------------------------------------------------------------------------------------------------

TEST(test_the_first_attempt_should_be_due_at_once) {
  Desk desk;
  TEST_ASSERT_TRUE(desk.dialer.hopeful(start));
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
  TEST_ASSERT_TRUE(desk.dialer.connecting());
  TEST_ASSERT_TRUE(desk.dialer.poll_timeout() == start + timeout);
}

TEST(test_a_dialer_that_was_never_started_should_want_nothing) {
  Dialer dialer;
  TEST_ASSERT_EQUAL(DialAction::none, dialer.poll_action(start, most));
  TEST_ASSERT_TRUE(dialer.poll_timeout() == Instant::max());
  TEST_ASSERT_FALSE(dialer.hopeful(start));
}

TEST(test_a_silent_address_should_be_given_up_at_its_deadline) {
  Desk desk;
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.now = start + timeout - 1ns;
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
  desk.now = start + timeout;
  TEST_ASSERT_EQUAL(DialAction::hang_up, desk.poll());
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
  TEST_ASSERT_EQUAL(Status::connect_failed, desk.dialer.failure());
  TEST_ASSERT_FALSE(desk.dialer.connecting());
}

TEST(test_each_address_should_get_its_share_of_the_attempt) {
  Desk desk(4);
  for (std::uint8_t address = 0; address < 4; ++address) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    TEST_ASSERT_EQUAL(address, desk.dialer.address());
    TEST_ASSERT_TRUE(desk.dialer.poll_timeout() == start + (address + 1) * timeout / 4);
    desk.wait();
    TEST_ASSERT_EQUAL(DialAction::hang_up, desk.poll());
  }
  TEST_ASSERT_FALSE(desk.dialer.connecting());
}

TEST(test_the_address_that_worked_should_be_dialled_first_the_next_time) {
  Desk desk(3);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  desk.connect();
  TEST_ASSERT_EQUAL(1, desk.dialer.address());
  desk.close(true);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL(1, desk.dialer.address());
}

// Each attempt would begin with the silent one, and the other would never have more than what is left.
TEST(test_an_address_that_had_what_was_left_of_the_time_should_come_first_next_time) {
  Desk desk(2);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::hang_up, desk.poll());
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL(1, int{desk.dialer.address()});
  desk.dialer.handle_dialled();
  desk.now = desk.dialer.attempt_deadline();
  desk.close(false);
  TEST_ASSERT_EQUAL(1, int{desk.dialer.address()});
  // With all the time, and nothing comes of it: the other one's turn.
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.dialer.handle_dialled();
  desk.now = desk.dialer.attempt_deadline();
  desk.close(false);
  TEST_ASSERT_EQUAL(0, int{desk.dialer.address()});
}

TEST(test_a_peer_that_ends_in_the_handshake_should_give_way_to_the_next_address) {
  Desk desk(2);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.dialer.handle_dialled();
  TEST_ASSERT_TRUE(desk.dialer.poll_timeout() == Instant::max());
  desk.close(false);
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL(1, desk.dialer.address());
}

// ---- Names -------------------------------------------------------------------------------------------------------

TEST(test_an_unknown_name_should_be_asked_for_once) {
  Desk desk(0, true);
  TEST_ASSERT_TRUE(desk.dialer.poll_timeout() == Instant());
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
  desk.dialer.handle_resolved(2, desk.now, most);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
}

TEST(test_a_name_without_an_address_should_fail_and_be_asked_for_again) {
  Desk desk(0, true);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(0, desk.now, most);
  TEST_ASSERT_EQUAL(Status::name_not_resolved, desk.dialer.failure());
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
}

TEST(test_an_answer_that_comes_later_than_the_connect_timeout_should_be_used) {
  Desk desk(0, true);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  int failures = 0;
  for (; desk.now < start + 12s; desk.wait()) {
    TEST_ASSERT_EQUAL(DialAction::none, desk.poll());  // One question is under way, and no other is asked.
    if (desk.dialer.state() == DialState::waiting) ++failures;
  }
  TEST_ASSERT_TRUE(failures >= 3);
  TEST_ASSERT_EQUAL(Status::name_not_resolved, desk.dialer.failure());
  TEST_ASSERT_TRUE(desk.dialer.takes_addresses());
  desk.dialer.handle_resolved(1, desk.now, most);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_TRUE(desk.dialer.attempt_deadline() == desk.now + timeout);  // The resolver's time is not the attempt's.
}

// The next attempt is due then. It is no reason to begin with short pauses again, where the address is the same.
TEST(test_answers_that_come_late_should_not_shorten_the_pauses) {
  Desk desk(1, true);
  Duration pause = 0s;
  for (int round = 0; round < 8; ++round) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
    TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
    desk.now = desk.now + timeout;
    TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
    TEST_ASSERT_EQUAL(DialState::waiting, desk.dialer.state());
    TEST_ASSERT_TRUE(desk.dialer.poll_timeout() - desk.now >= pause);
    pause = desk.dialer.poll_timeout() - desk.now;
    desk.dialer.handle_resolved(1, desk.now, most);
  }
  TEST_ASSERT_TRUE(pause > 64 * reconnect_delay_min);
}

TEST(test_known_addresses_that_all_fail_should_lead_to_a_new_question) {
  Desk desk(0, true);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(1, desk.now, most);
  desk.connect();
  desk.close(true);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());  // In the same attempt.
  desk.dialer.handle_resolved(2, desk.now, most);
  for (int address = 0; address < 2; ++address) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
  }
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());  // Those were fresh: that is the end of it.
}

// Known addresses and those that are found anew share the time of one attempt; the resolver has its own.
TEST(test_a_new_question_should_add_no_more_to_the_attempt_than_the_resolver_took) {
  Desk desk(0, true);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(2, desk.now, most);
  desk.connect();
  desk.close(true);
  const Instant began = desk.now;
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.wait();  // One is silent, and the other refuses.
  TEST_ASSERT_EQUAL(DialAction::hang_up, desk.poll());
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.now = desk.now + 700ms;
  desk.dialer.handle_resolved(1, desk.now, most);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL(began + timeout + 700ms, desk.dialer.attempt_deadline());
}

TEST(test_known_addresses_should_have_their_time_after_a_resolver_that_found_nothing) {
  Desk desk(1, true);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(0, desk.now, most);
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.now = desk.now + timeout + 1s;
  desk.dialer.handle_resolved(0, desk.now, most);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_TRUE(desk.dialer.poll_timeout() == desk.now + timeout);
}

TEST(test_a_known_address_that_is_silent_should_lead_to_a_new_question_in_the_next_attempt) {
  Desk desk(0, true);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(1, desk.now, most);
  desk.connect();
  desk.close(true);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::hang_up, desk.poll());  // With all of the attempt's time.
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
}

TEST(test_no_attempt_should_take_longer_than_the_connect_timeout) {
  for (std::uint8_t count = 1; count <= 8; ++count) {
    Desk desk(count);
    desk.dialer.start(250ms, count, false);
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    while (desk.dialer.connecting()) {
      desk.wait();
      (void)desk.poll();
    }
    TEST_ASSERT_TRUE(desk.now <= start + 250ms);
  }
}

TEST(test_known_addresses_should_not_wait_for_a_resolver_that_is_slow) {
  Desk desk(0, true);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(1, desk.now, most);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  for (desk.wait(); desk.poll() != DialAction::dial; desk.wait()) TEST_ASSERT_TRUE(desk.now < start + 10s);
  // What is found now would take the address away that is being dialled.
  TEST_ASSERT_FALSE(desk.dialer.takes_addresses());
  desk.dialer.handle_resolved(0, desk.now, most);
  desk.dialer.handle_dialled();
  desk.dialer.handle_ready(desk.now);
  TEST_ASSERT_TRUE(desk.dialer.ready());
}

// ---- Pauses ------------------------------------------------------------------------------------------------------

TEST(test_failures_should_keep_the_next_attempt_away_for_longer_and_longer) {
  Desk desk;
  Duration before = Duration::zero();
  for (int failure = 0; failure < 12; ++failure) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
    TEST_ASSERT_FALSE(desk.dialer.hopeful(desk.now));
    TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
    const Duration pause = desk.dialer.poll_timeout() - desk.now;
    TEST_ASSERT_TRUE(pause >= before && pause >= reconnect_delay_min && pause <= reconnect_delay_max);
    before = pause;
    desk.wait();
  }
  TEST_ASSERT_TRUE(before == reconnect_delay_max);
}

TEST(test_pauses_should_be_drawn_from_half_of_the_delay_to_all_of_it) {
  for (const std::uint16_t random : {least, most}) {
    Dialer dialer;
    dialer.start(timeout, 1, false);
    TEST_ASSERT_EQUAL(DialAction::dial, dialer.poll_action(start, random));
    dialer.handle_dial_failed(Status::connect_failed, start, random);
    TEST_ASSERT_TRUE(dialer.poll_timeout() ==
                     start + (random == least ? reconnect_delay_min / 2 : reconnect_delay_min));
  }
}

TEST(test_the_loss_of_a_connection_should_be_mended_at_once) {
  for (const bool used : {false, true}) {
    Desk desk;
    desk.connect();
    desk.close(used);
    TEST_ASSERT_TRUE(desk.dialer.hopeful(desk.now));
    TEST_ASSERT_EQUAL(Status::transport_closed, desk.dialer.failure());
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  }
}

// A peer that accepts and closes again, for ever.
int connections_within(Duration span, bool used, Duration life) {
  Desk desk;
  int count = 0;
  while (desk.now < start + span) {
    desk.wait();
    desk.connect();
    ++count;
    desk.now = desk.now + life;
    desk.close(used);
  }
  return count;
}

TEST(test_connections_that_end_soon_should_not_be_made_as_fast_as_they_end) {  // [rule 7]
  TEST_ASSERT_TRUE(connections_within(60s, false, 1ms) <= 40);
  TEST_ASSERT_TRUE(connections_within(60s, true, 1ms) <= 320);
  TEST_ASSERT_TRUE(connections_within(60s, true, reconnect_delay_max) <= 31);
}

// As of sentinels of which one is silent, and another one ends the connection once it has answered.
TEST(test_a_failure_between_connections_that_end_soon_should_not_make_their_pauses_short_again) {  // [rule 7]
  Desk desk;
  int count = 0;
  while (desk.now < start + 60s) {
    desk.wait();
    desk.connect();
    ++count;
    desk.close(true);
    desk.wait();
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
  }
  TEST_ASSERT_TRUE(count <= 320);
}

// They are as long as those after failures, where those are longer.
TEST(test_a_connection_that_ends_soon_should_not_make_the_pauses_before_it_shorter) {
  Desk desk;
  for (int failure = 0; failure < 4; ++failure) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
    desk.wait();
  }
  desk.connect();
  desk.close(true);
  TEST_ASSERT_EQUAL(desk.now + 16 * reconnect_delay_min, desk.dialer.poll_timeout());
}

TEST(test_a_hurried_dialer_should_forget_how_many_connections_ended_soon) {
  Desk desk;
  for (int count = 0; count < 8; ++count) {
    desk.wait();
    desk.connect();
    desk.close(true);
  }
  desk.dialer.hurry();
  desk.connect();
  desk.close(true);
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  desk.wait();
  desk.connect();
  desk.close(true);
  TEST_ASSERT_EQUAL(desk.now + 2 * reconnect_delay_min, desk.dialer.poll_timeout());
  // They are counted again from there on.
  for (int count = 0; count < 8; ++count) {
    desk.wait();
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
    desk.wait();
    desk.connect();
    desk.close(true);
  }
  TEST_ASSERT_EQUAL(desk.now + reconnect_soon_max, desk.dialer.poll_timeout());
}

TEST(test_a_connection_that_lasted_should_make_the_failures_before_it_forgotten) {
  Desk desk;
  for (int failure = 0; failure < 10; ++failure) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
    desk.wait();
  }
  desk.connect();
  desk.now = desk.now + reconnect_delay_max;
  TEST_ASSERT_TRUE(desk.dialer.lasted(desk.now));
  desk.close(false);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
}

TEST(test_a_connection_that_the_driver_closed_should_be_made_anew_at_once) {
  Desk desk;
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  desk.dialer.abandon();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.dialer.stop();
  desk.dialer.abandon();
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
}

// Whatever happens, the driver can always do what it is told, and is told something again by poll_timeout().
TEST(test_any_sequence_of_outcomes_should_keep_the_dialer_going) {
  std::mt19937 random(20261122);
  for (int world = 0; world < 300; ++world) {
    const bool named = random() % 2 == 0;
    Desk desk(static_cast<std::uint8_t>(random() % 3 + (named ? 0 : 1)), named);
    bool asking = false;
    for (int step = 0; step < 200; ++step) {
      const auto draw = static_cast<std::uint16_t>(random());
      switch (desk.dialer.poll_action(desk.now, draw)) {
        case DialAction::resolve:
          TEST_ASSERT_FALSE(asking);
          asking = true;
          continue;
        case DialAction::dial:
          TEST_ASSERT_TRUE(desk.dialer.address() < desk.dialer.address_count());
          if (random() % 3 == 0) desk.dialer.handle_dial_failed(Status::connect_failed, desk.now, draw);
          continue;
        case DialAction::hang_up: continue;
        case DialAction::none: break;
      }
      if (asking && random() % 4 == 0) {
        asking = false;
        const auto count = static_cast<std::uint8_t>(desk.dialer.takes_addresses() ? random() % 4 : 0);
        desk.dialer.handle_resolved(count, desk.now, draw);
        continue;
      }
      switch (desk.dialer.state()) {
        case DialState::dialling:
          if (random() % 2 == 0) desk.dialer.handle_dialled();
          break;
        case DialState::handshaking:
          if (random() % 2 == 0)
            desk.dialer.handle_ready(desk.now);
          else
            desk.close(false);
          continue;
        case DialState::ready:
          desk.now = desk.now + Duration(random() % 3'000'000'000U);
          desk.close(random() % 2 == 0);
          continue;
        case DialState::off:
        case DialState::waiting:
        case DialState::elsewhere:
        case DialState::resolving:
        case DialState::next: break;
      }
      const Instant timeout_at = desk.dialer.poll_timeout();
      if (desk.dialer.state() == DialState::handshaking) continue;
      TEST_ASSERT_TRUE(timeout_at > desk.now && timeout_at <= desk.now + timeout + reconnect_delay_max);
      desk.wait();
    }
  }
}

// ---- cancel() ----------------------------------------------------------------------------------------------------

TEST(test_cancel_should_end_the_call_in_progress_and_none_after_it) {
  CancelSignal cancel;
  cancel.raise();
  cancel.raise();
  TEST_ASSERT_TRUE(cancel.pending());
  TEST_ASSERT_TRUE(cancel.pending());  // Looking at it takes nothing away.
  cancel.take();
  TEST_ASSERT_FALSE(cancel.pending());
}

TEST(test_cancel_before_a_release_should_wait_for_the_next_call) {
  CancelSignal cancel;
  cancel.raise();
  cancel.begin_spared();
  TEST_ASSERT_FALSE(cancel.pending());
  cancel.end_spared();
  TEST_ASSERT_TRUE(cancel.pending());
}

TEST(test_cancel_during_a_release_should_end_its_wait_and_nothing_else) {
  CancelSignal cancel;
  cancel.begin_spared();
  cancel.raise();
  TEST_ASSERT_TRUE(cancel.pending());
  cancel.end_spared();
  TEST_ASSERT_FALSE(cancel.pending());
}

// ---- Shares ------------------------------------------------------------------------------------------------------

TEST(test_each_address_should_have_a_least_time_but_none_beyond_the_attempt) {
  Dialer dialer;
  dialer.start(250ms, 4, false);
  TEST_ASSERT_EQUAL(DialAction::dial, dialer.poll_action(start, most));
  TEST_ASSERT_EQUAL(start + address_timeout_min, dialer.poll_timeout());
  Instant now = start + address_timeout_min;
  TEST_ASSERT_EQUAL(DialAction::hang_up, dialer.poll_action(now, most));
  TEST_ASSERT_EQUAL(DialAction::dial, dialer.poll_action(now, most));
  TEST_ASSERT_EQUAL(start + 2 * address_timeout_min, dialer.poll_timeout());
  now = start + 2 * address_timeout_min;
  TEST_ASSERT_EQUAL(DialAction::hang_up, dialer.poll_action(now, most));
  TEST_ASSERT_EQUAL(DialAction::dial, dialer.poll_action(now, most));
  TEST_ASSERT_EQUAL(start + 250ms, dialer.poll_timeout());
  now = start + 250ms;
  TEST_ASSERT_EQUAL(DialAction::hang_up, dialer.poll_action(now, most));
  TEST_ASSERT_FALSE(dialer.poll_action(now, most) == DialAction::dial);  // The attempt is over.
  Dialer single;
  single.start(50ms, 1, false);
  TEST_ASSERT_EQUAL(DialAction::dial, single.poll_action(start, most));
  TEST_ASSERT_EQUAL(start + 50ms, single.poll_timeout());
}

// ---- What is told of it ------------------------------------------------------------------------------------------

TEST(test_an_attempt_should_be_under_way_from_its_beginning_to_its_end) {
  Desk desk(2);
  TEST_ASSERT_FALSE(desk.dialer.connecting());
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_TRUE(desk.dialer.connecting());
  desk.dialer.handle_dial_failed(Status::system_error, desk.now, most);
  TEST_ASSERT_EQUAL(Status::system_error, desk.dialer.failure());  // Of the address before.
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.dialer.handle_dialled();
  TEST_ASSERT_TRUE(desk.dialer.connecting());
  desk.now = desk.now + 10s;
  TEST_ASSERT_FALSE(desk.dialer.lasted(desk.now));  // It has not been ready yet.
  desk.dialer.handle_ready(desk.now);
  TEST_ASSERT_FALSE(desk.dialer.connecting());
  TEST_ASSERT_FALSE(desk.dialer.lasted(desk.now + reconnect_delay_max - 1ns));
  TEST_ASSERT_TRUE(desk.dialer.lasted(desk.now + reconnect_delay_max));
}

TEST(test_an_attempt_should_be_worth_waiting_for_until_one_has_failed_and_again_when_it_is_due) {
  Desk desk;
  desk.connect();
  desk.close(true);
  desk.connect();
  desk.close(true);
  TEST_ASSERT_TRUE(desk.dialer.poll_timeout() > desk.now);
  TEST_ASSERT_TRUE(desk.dialer.poll_timeout() <= desk.now + reconnect_soon_max);
  TEST_ASSERT_TRUE(desk.dialer.hopeful(desk.now));  // After a connection that was of use.
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_FALSE(desk.dialer.hopeful(desk.dialer.poll_timeout() - 1ns));
  TEST_ASSERT_TRUE(desk.dialer.hopeful(desk.dialer.poll_timeout()));
}

TEST(test_the_first_failure_after_connections_that_were_of_use_should_have_the_shortest_pause) {
  Desk desk;
  for (int turn = 0; turn < 8; ++turn) {
    desk.wait();
    desk.connect();
    desk.close(true);
  }
  TEST_ASSERT_EQUAL(desk.now + reconnect_soon_max, desk.dialer.poll_timeout());
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_EQUAL(desk.now + reconnect_delay_min, desk.dialer.poll_timeout());
}

TEST(test_each_pause_should_be_twice_the_one_before_up_to_the_longest) {
  Desk desk;
  Duration expected = reconnect_delay_min;
  for (int failure = 0; failure < 12; ++failure) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
    TEST_ASSERT_EQUAL(desk.now + expected, desk.dialer.poll_timeout());
    expected = expected * 2 < reconnect_delay_max ? expected * 2 : reconnect_delay_max;
    desk.wait();
  }
  // Two connections that end soon, one after the other, are a first failure.
  Desk other;
  other.connect();
  other.close(false);
  other.connect();
  other.close(false);
  TEST_ASSERT_EQUAL(other.now + reconnect_delay_min, other.dialer.poll_timeout());
  // So is the pause after the second one of two that were of use.
  Desk used;
  used.connect();
  used.close(true);
  used.connect();
  used.close(true);
  TEST_ASSERT_EQUAL(used.now + reconnect_delay_min, used.dialer.poll_timeout());
}

TEST(test_connections_of_use_should_be_made_anew_as_soon_as_a_short_pause_allows) {
  TEST_ASSERT_TRUE(connections_within(60s, true, 1ms) >= 290);
}

TEST(test_the_longest_pause_should_be_the_drivers_also_behind_another_start) {
  Desk desk;
  desk.dialer.set_pause_max(reconnect_kept_max);
  for (int start_again = 0; start_again < 2; ++start_again) {
    for (int failure = 0; failure < 12; ++failure) {
      TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
      desk.refuse();
      TEST_ASSERT_TRUE(desk.dialer.poll_timeout() <= desk.now + reconnect_kept_max);
      desk.wait();
    }
    desk.dialer.start(timeout, 1, false);
  }
}

TEST(test_a_start_should_forget_all_that_was_before) {
  Desk desk(0, true);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(2, desk.now, most);
  for (int address = 0; address < 2; ++address) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
  }
  TEST_ASSERT_TRUE(desk.dialer.asks_first());
  TEST_ASSERT_FALSE(desk.dialer.due(desk.now));
  desk.dialer.start(timeout, 3, true, 1);
  TEST_ASSERT_TRUE(desk.dialer.due(desk.now));
  TEST_ASSERT_TRUE(desk.dialer.named());
  TEST_ASSERT_FALSE(desk.dialer.asks_first());
  TEST_ASSERT_EQUAL(Status::not_connected, desk.dialer.failure());
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL(1, int{desk.dialer.address()});
  desk.dialer.start(timeout, 1, false);
  TEST_ASSERT_FALSE(desk.dialer.named());
}

TEST(test_a_hurried_dialer_should_begin_with_short_pauses) {
  Desk desk;
  for (int failure = 0; failure < 6; ++failure) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
    if (failure < 5) desk.wait();
  }
  desk.dialer.hurry();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_EQUAL(desk.now + reconnect_delay_min, desk.dialer.poll_timeout());
}

TEST(test_an_abandoned_connection_should_be_forgotten_with_its_question) {
  Desk desk(0, true);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.abandon();
  TEST_ASSERT_EQUAL(DialState::waiting, desk.dialer.state());
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());  // The question of before is none any more.
  desk.dialer.handle_resolved(1, desk.now, most);
  desk.connect();
  TEST_ASSERT_EQUAL(Status::ok, desk.dialer.failure());
  desk.dialer.abandon();
  TEST_ASSERT_EQUAL(Status::not_connected, desk.dialer.failure());
  TEST_ASSERT_EQUAL(DialState::waiting, desk.dialer.state());
  desk.dialer.stop();
  desk.dialer.abandon();
  TEST_ASSERT_EQUAL(DialState::off, desk.dialer.state());
}

// ---- Questions for the name --------------------------------------------------------------------------------------

TEST(test_an_attempt_should_begin_with_a_question_where_no_address_is_known_or_all_have_failed) {
  Desk desk(0, true);
  TEST_ASSERT_TRUE(desk.dialer.asks_first());
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(1, desk.now, most);
  TEST_ASSERT_FALSE(desk.dialer.asks_first());
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_TRUE(desk.dialer.asks_first());
  Desk literal;
  TEST_ASSERT_EQUAL(DialAction::dial, literal.poll());
  literal.refuse();
  TEST_ASSERT_FALSE(literal.dialer.asks_first());
}

TEST(test_a_question_that_is_to_be_asked_should_be_due_at_once) {
  Desk desk(1, true);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_EQUAL(DialState::resolving, desk.dialer.state());
  TEST_ASSERT_EQUAL(Instant(), desk.dialer.poll_timeout());
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  TEST_ASSERT_EQUAL(desk.dialer.attempt_deadline(), desk.dialer.poll_timeout());
  desk.dialer.handle_resolved(0, desk.now, most);
  TEST_ASSERT_EQUAL(Status::connect_failed, desk.dialer.failure());  // Its addresses are known, and do not answer.
}

TEST(test_no_second_question_should_be_asked_or_waited_for_while_one_is_under_way) {
  Desk desk(1, true);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.now = desk.dialer.poll_timeout();
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_EQUAL(DialState::waiting, desk.dialer.state());
  TEST_ASSERT_EQUAL(Status::connect_failed, desk.dialer.failure());
}

TEST(test_addresses_that_work_again_should_be_dialled_without_a_question) {
  Desk desk(1, true);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.now = desk.dialer.poll_timeout();
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
  desk.wait();
  desk.connect();
  desk.dialer.handle_resolved(0, desk.now, most);
  TEST_ASSERT_FALSE(desk.dialer.asks_first());
  desk.now = desk.now + 10s;
  desk.close(true);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
}

// Only an answer, or a connection, makes that over.
TEST(test_addresses_that_have_all_failed_should_be_asked_for_also_after_an_attempt_at_some_of_them) {
  Desk desk(2, true);
  for (int address = 0; address < 2; ++address) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
  }
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.now = desk.dialer.poll_timeout();
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.now = desk.dialer.attempt_deadline();
  desk.refuse();
  TEST_ASSERT_EQUAL(DialState::waiting, desk.dialer.state());
  desk.dialer.handle_resolved(0, desk.now, most);
  TEST_ASSERT_TRUE(desk.dialer.asks_first());
  desk.wait();
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
}

// ---- From host to host -------------------------------------------------------------------------------------------

TEST(test_another_host_should_be_another_place_with_its_own_first_address) {
  Desk desk(0, true);
  desk.dialer.go_to(false, desk.now, desk.now + 1s);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(2, desk.now, most);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  const auto first = desk.dialer.place();
  desk.refuse();
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL(first + 1, desk.dialer.place());
  TEST_ASSERT_EQUAL(1, int{desk.dialer.address()});
  desk.refuse();
  TEST_ASSERT_EQUAL(DialState::elsewhere, desk.dialer.state());
  TEST_ASSERT_TRUE(desk.dialer.asks_first());
  desk.dialer.go_to(true, desk.now, desk.now + 1s);
  TEST_ASSERT_FALSE(desk.dialer.asks_first());
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL(0, int{desk.dialer.address()});
  TEST_ASSERT_EQUAL(first + addresses_max, desk.dialer.place());
}

// Who keeps a connection to where this one goes looks rarely, and a search goes to many hosts meanwhile.
TEST(test_another_host_should_be_another_place_however_many_came_between) {
  Desk desk(0, true);
  desk.dialer.go_to(true, desk.now, desk.now + 1s);
  const auto first = desk.dialer.place();
  for (int hosts = 0; hosts < 100'000; ++hosts) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    desk.refuse();
    desk.dialer.go_to(true, desk.now, desk.now + 1s);
    TEST_ASSERT_TRUE(desk.dialer.place() != first);
  }
}

TEST(test_another_host_should_begin_with_its_first_address_whichever_the_last_one_has_failed_at) {
  Desk desk(0, true);
  desk.dialer.go_to(false, desk.now, desk.now + 1s);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(2, desk.now, most);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.now = desk.dialer.attempt_deadline();
  desk.refuse();
  TEST_ASSERT_EQUAL(DialState::elsewhere, desk.dialer.state());
  desk.dialer.go_to(true, desk.now, desk.now + 1s);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  TEST_ASSERT_EQUAL(0, int{desk.dialer.address()});
}

TEST(test_a_name_that_cannot_be_asked_for_now_should_fail_as_one_that_is_not_found) {
  Desk desk(0, true);
  desk.dialer.go_to(false, desk.now, desk.now + 1s);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.now = desk.dialer.poll_timeout();
  TEST_ASSERT_EQUAL(DialAction::none, desk.poll());
  TEST_ASSERT_EQUAL(DialState::elsewhere, desk.dialer.state());
  desk.dialer.go_to(true, desk.now, desk.now + 1s);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.refuse();
  TEST_ASSERT_EQUAL(Status::connect_failed, desk.dialer.failure());
  desk.dialer.go_to(false, desk.now, desk.now + 1s);
  TEST_ASSERT_EQUAL(DialState::elsewhere, desk.dialer.state());
  TEST_ASSERT_EQUAL(Status::name_not_resolved, desk.dialer.failure());
}

TEST(test_all_addresses_of_a_host_should_have_their_turn_and_none_after_its_deadline) {
  Desk desk(0, true);
  desk.dialer.go_to(false, desk.now, desk.now + 1200ms);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(3, desk.now, most);
  for (int address = 0; address < 3; ++address) {
    TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
    TEST_ASSERT_EQUAL(address, int{desk.dialer.address()});
    desk.dialer.handle_dialled();
    // One that is silent in its handshake leaves time for the others, and the last has the rest.
    TEST_ASSERT_EQUAL(start + (address + 1) * Duration(400ms), desk.dialer.handshake_deadline());
    desk.now = desk.dialer.handshake_deadline() - (address == 2 ? 1ns : 0ns);
    desk.close(false);
    TEST_ASSERT_EQUAL(DialState::elsewhere, desk.dialer.state());
    TEST_ASSERT_EQUAL(address < 2, desk.dialer.go_on_here(desk.now));
  }
  desk.dialer.go_to(false, desk.now, desk.now + 1s);
  TEST_ASSERT_EQUAL(DialAction::resolve, desk.poll());
  desk.dialer.handle_resolved(2, desk.now, most);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.dialer.handle_dialled();
  desk.now = desk.dialer.attempt_deadline();
  desk.close(false);
  TEST_ASSERT_FALSE(desk.dialer.go_on_here(desk.now));
}

TEST(test_a_handshake_with_the_only_host_should_have_all_of_the_time) {
  Desk desk(2);
  TEST_ASSERT_EQUAL(DialAction::dial, desk.poll());
  desk.dialer.handle_dialled();
  TEST_ASSERT_EQUAL(start + timeout, desk.dialer.handshake_deadline());
}
