// SPDX-License-Identifier: MIT
//
// What is to be taken back, without a session: its slots, their keys and their turns.
#include "holdfast/core/compensations.hpp"

#include <cstddef>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "holdfast/core/lock_kind.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "printers.hpp"
#include "unity_style.hpp"
#include "written_line.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

using State = Compensations::State;
using Slot = Compensations::Slot;

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);

// Four slots with room for two keys of the largest size. Invariants are asserted after every step.
struct Desk {
  Slot slots[4];
  char keys[2 * key_size_max];
  Compensations all{slots, 4, {keys, sizeof keys}};
  Instant now = start;

  static Compensation describe(const std::string& key, const Token& token, std::uint32_t count) {
    return {count == 0 ? &mutex_kind : &reentrant_kind, Key(ByteView(key)), &token, count, 30000};
  }
  Status add(const std::string& key, char digit, std::uint32_t count = 0, void* requester = nullptr) {
    const Token token(ByteView(std::string(token_text_size, digit)));
    const Status status = all.add({requester, 1, Operation::acquire}, describe(key, token, count));
    check();
    return status;
  }
  Slot& keep(const std::string& key, char digit, std::uint32_t count = 0) {
    const Token token(ByteView(std::string(token_text_size, digit)));
    Slot& slot = all.keep({}, describe(key, token, count));
    check();
    return slot;
  }
  // The key that the next command names; empty where there is none.
  std::string next(Slot*& slot) {
    testing::WrittenLine line;
    slot = all.poll_transmit(slot, now, line);
    check();
    if (slot == nullptr) return "";
    const testing::Words words = line.words();
    TEST_ASSERT_EQUAL("EVAL", words[0]);
    return words[3];
  }
  Slot& send() {
    Slot* slot = nullptr;
    TEST_ASSERT_FALSE(next(slot).empty());
    all.handle_sent(*slot);
    check();
    return *slot;
  }
  void reply(Slot& slot, Status outcome, bool by_name = false) {
    all.handle_reply(slot, outcome, by_name, now);
    check();
  }
  void lose(Slot& slot) {
    all.handle_lost(slot);
    check();
  }
  void check() const { TEST_ASSERT_TRUE(all.invariants()); }
};

}  // namespace

// ---- The life of one ---------------------------------------------------------------------------------------------

TEST(test_compensation_should_be_kept_until_it_is_confirmed) {
  Desk desk;
  desk.check();
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'a'));
  TEST_ASSERT_TRUE(desk.all.waiting());
  Slot& slot = desk.send();
  TEST_ASSERT_EQUAL(1U, desk.all.in_flight());
  TEST_ASSERT_FALSE(desk.all.unsent());
  desk.lose(slot);
  TEST_ASSERT_TRUE(desk.all.waiting());
  desk.reply(desk.send(), Status::ok);
  TEST_ASSERT_EQUAL(0U, desk.all.pending());
  TEST_ASSERT_EQUAL(0U, desk.all.dropped());
}

TEST(test_storage_behind_the_slots_should_be_left_alone) {
  Slot slots[2];
  slots[1].state = State::superseded;
  char keys[key_size_max];
  const Compensations all(slots, 1, {keys, sizeof keys});
  TEST_ASSERT_TRUE(all.invariants());
  TEST_ASSERT_TRUE(slots[0].state == State::free);
  TEST_ASSERT_TRUE(slots[1].state == State::superseded);
}

TEST(test_what_is_refused_for_the_moment_should_be_deferred) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'a'));
  desk.reply(desk.send(), Status::loading);
  TEST_ASSERT_FALSE(desk.all.waiting());
  TEST_ASSERT_TRUE(desk.all.unsent());
  TEST_ASSERT_EQUAL(start + 2s, desk.all.poll_timeout());
  Slot* slot = nullptr;
  desk.now = start + 2s - 1ns;
  TEST_ASSERT_EQUAL("", desk.next(slot));
  desk.now = start + 2s;
  TEST_ASSERT_EQUAL("key", desk.next(slot));
  // It waits for room from then on, and asks for no timer.
  TEST_ASSERT_TRUE(desk.all.waiting());
  TEST_ASSERT_EQUAL(Instant::max(), desk.all.poll_timeout());
}

TEST(test_what_is_deferred_should_ask_for_no_timer_while_another_waits) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("one", 'a'));
  desk.reply(desk.send(), Status::loading);
  TEST_ASSERT_EQUAL(start + 2s, desk.all.poll_timeout());
  TEST_ASSERT_EQUAL(Status::ok, desk.add("other", 'b'));
  TEST_ASSERT_EQUAL(Instant::max(), desk.all.poll_timeout());
}

// The server has sent us to another one: it is the first there.
TEST(test_what_could_not_be_sent_should_wait_for_the_next_connection) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'a'));
  desk.reply(desk.send(), Status::not_connected);
  TEST_ASSERT_TRUE(desk.all.waiting());
  TEST_ASSERT_EQUAL(0U, desk.all.dropped());
}

TEST(test_locks_of_two_kinds_should_not_speak_for_each_other) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'a', 0));
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'a', 1));
  TEST_ASSERT_EQUAL(2U, desk.all.pending());
}

TEST(test_what_is_refused_for_good_should_be_dropped_and_counted) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'a'));
  Slot& slot = desk.send();
  desk.reply(slot, Status::no_permission, true);  // It went by name: once more by its text.
  TEST_ASSERT_TRUE(desk.all.waiting());
  desk.reply(desk.send(), Status::no_permission);
  TEST_ASSERT_EQUAL(0U, desk.all.pending());
  TEST_ASSERT_EQUAL(1U, desk.all.dropped());
}

// ---- Of one hold -------------------------------------------------------------------------------------------------

TEST(test_newest_count_of_a_hold_should_stand_in_force_alone) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'a', 2));
  Slot& old = desk.send();
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'a', 1));
  TEST_ASSERT_TRUE(old.state == State::superseded);
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'a', 3));  // In the place of the one that waited.
  TEST_ASSERT_EQUAL(2U, desk.all.pending());
  // Others' tokens and keys are none of its business.
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'b', 1));
  TEST_ASSERT_EQUAL(3U, desk.all.pending());
  // It is not repeated, whatever comes of it.
  desk.reply(old, Status::loading);
  TEST_ASSERT_EQUAL(2U, desk.all.pending());
  TEST_ASSERT_EQUAL(Instant::max(), desk.all.poll_timeout());
}

TEST(test_superseded_one_should_go_with_its_connection) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("key", 'a', 2));
  Slot& old = desk.send();
  const Token token(ByteView(std::string(token_text_size, 'a')));
  desk.all.supersede(Desk::describe("key", token, 1));
  desk.check();
  desk.lose(old);
  TEST_ASSERT_EQUAL(0U, desk.all.pending());
}

// ---- Places and keys ---------------------------------------------------------------------------------------------

TEST(test_place_should_be_promised_for_a_key_of_any_size) {
  Desk desk;
  TEST_ASSERT_TRUE(desk.all.has_room());
  desk.all.reserve();
  desk.all.reserve();
  desk.check();
  TEST_ASSERT_FALSE(desk.all.has_room());  // Slots there are.
  TEST_ASSERT_EQUAL(Status::too_many_requests, desk.add("key", 'a'));
  TEST_ASSERT_EQUAL(0U, desk.all.pending());
  for (const char digit : {'a', 'b'}) {
    desk.all.unreserve();
    desk.keep(std::string(key_size_max, digit), digit);
  }
  TEST_ASSERT_FALSE(desk.all.has_room());
  desk.all.clear();
  desk.check();
  desk.all.reserve();
  TEST_ASSERT_TRUE(desk.all.has_room());
  desk.all.forget();
  TEST_ASSERT_EQUAL(0U, desk.all.reserved());
}

TEST(test_keys_should_close_up_around_a_gap) {
  Desk desk;
  for (const char digit : {'a', 'b', 'c'}) TEST_ASSERT_EQUAL(Status::ok, desk.add(std::string(80, digit), digit));
  Slot* slot = nullptr;
  TEST_ASSERT_EQUAL(std::string(80, 'a'), desk.next(slot));
  TEST_ASSERT_EQUAL(std::string(80, 'b'), desk.next(slot));
  desk.all.handle_sent(*slot);
  desk.reply(*slot, Status::ok);
  slot = nullptr;
  TEST_ASSERT_EQUAL(std::string(80, 'a'), desk.next(slot));
  TEST_ASSERT_EQUAL(std::string(80, 'c'), desk.next(slot));
  TEST_ASSERT_EQUAL("", desk.next(slot));
}

TEST(test_copy_should_be_of_what_is_taken_back_whole) {
  Desk desk;
  Desk other;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("a", 'a'));
  TEST_ASSERT_EQUAL(Status::ok, desk.add("b", 'b', 1));  // Goes on.
  (void)desk.send();
  other.all.copy_whole(desk.all);
  other.check();
  TEST_ASSERT_EQUAL(1U, other.all.pending());
  Slot* slot = nullptr;
  TEST_ASSERT_EQUAL("a", other.next(slot));
  TEST_ASSERT_EQUAL(2U, desk.all.pending());
}

TEST(test_what_is_on_no_way_to_its_server_should_go_to_another_one) {
  Desk desk;
  Desk other;
  int requester = 0;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("a", 'a', 0, &requester));
  Slot& sent = desk.send();
  TEST_ASSERT_TRUE(desk.all.carries_for(&requester));
  TEST_ASSERT_FALSE(desk.all.carries_for(&desk));
  TEST_ASSERT_TRUE(desk.all.next_unsent(nullptr) == nullptr);
  TEST_ASSERT_EQUAL(Status::ok, desk.add("b", 'b', 1));
  desk.reply(sent, Status::moved);
  TEST_ASSERT_FALSE(desk.all.carries_for(&requester));
  // One was refused, the other waits.
  TEST_ASSERT_TRUE(desk.all.next_unsent(nullptr) == &sent);
  Slot* const waiting = desk.all.next_unsent(&sent);
  TEST_ASSERT_TRUE(waiting != nullptr);
  TEST_ASSERT_TRUE(desk.all.next_unsent(waiting) == nullptr);
  other.all.take_over(desk.all, sent);
  other.all.take_over(desk.all, *waiting);
  desk.check();
  other.check();
  TEST_ASSERT_EQUAL(0U, desk.all.pending());
  TEST_ASSERT_EQUAL(2U, other.all.pending());
  Slot* slot = nullptr;
  TEST_ASSERT_EQUAL("a", other.next(slot));  // At once.
  TEST_ASSERT_TRUE(slot->requester == &requester);
  TEST_ASSERT_EQUAL("b", other.next(slot));
  TEST_ASSERT_EQUAL(1U, slot->count);
}

TEST(test_what_there_is_no_room_for_should_stay_where_it_is) {
  Desk desk;
  Desk other;
  for (const char digit : {'a', 'b'}) TEST_ASSERT_EQUAL(Status::ok, other.add(std::string(key_size_max, digit), digit));
  TEST_ASSERT_EQUAL(Status::ok, desk.add("k", 'k'));
  other.all.take_over(desk.all, *desk.all.next_unsent(nullptr));
  TEST_ASSERT_EQUAL(1U, desk.all.pending());
  TEST_ASSERT_EQUAL(2U, other.all.pending());
}

TEST(test_pause_of_what_was_refused_too_often_should_go_along_to_another_server) {
  Desk desk;
  Desk other;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("k", 'k'));
  for (int attempt = 0; attempt < 3; ++attempt) {
    desk.now = desk.now + 10s;
    desk.reply(desk.send(), Status::moved);
  }
  other.all.take_over(desk.all, *desk.all.next_unsent(nullptr));
  other.check();
  TEST_ASSERT_EQUAL(desk.now + 2s, other.all.poll_timeout());
}

TEST(test_two_servers_that_name_each_other_should_be_asked_with_pauses) {
  Desk desk;
  Desk other;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("k", 'k'));
  Desk* from = &desk;
  Desk* to = &other;
  int hops = 0;
  for (Slot* slot = nullptr; !from->next(slot).empty(); ++hops) {
    from->all.handle_sent(*slot);
    from->reply(*slot, Status::moved);
    to->all.take_over(from->all, *slot);
    std::swap(from, to);
    from->check();
    slot = nullptr;
  }
  TEST_ASSERT_EQUAL(3, hops);
  TEST_ASSERT_EQUAL(start + 2s, from->all.poll_timeout());
  from->now = start + 2s;
  Slot* slot = nullptr;
  TEST_ASSERT_EQUAL("k", from->next(slot));
}

TEST(test_requester_that_went_away_should_stand_in_no_slot) {
  Desk desk;
  int requester = 0;
  TEST_ASSERT_EQUAL(Status::ok, desk.add("a", 'a', 0, &requester));
  desk.all.abandon(&requester);
  desk.check();
  TEST_ASSERT_TRUE(desk.send().tag().requester == nullptr);
}

// ---- All together ------------------------------------------------------------------------------------------------

TEST(test_invariants_should_hold_after_any_steps) {
  std::mt19937 random(1);
  const auto below = [&random](unsigned bound) { return static_cast<unsigned>(random() % bound); };
  Desk desk;
  std::vector<Slot*> sent;
  for (int step = 0; step < 20000; ++step) {
    const unsigned in_flight = sent.empty() ? 0 : below(static_cast<unsigned>(sent.size()));
    switch (below(7)) {
      case 0:
      case 1: {
        const char digit = static_cast<char>('a' + below(3));
        (void)desk.add(std::string(1 + below(key_size_max), digit).substr(0, below(2) != 0 ? 3 : key_size_max), digit,
                       below(3));
        break;
      }
      case 2: {
        Slot* slot = nullptr;
        while (!desk.next(slot).empty() && below(2) != 0) {}
        if (slot == nullptr) break;
        desk.all.handle_sent(*slot);
        sent.push_back(slot);
        break;
      }
      case 3:
      case 4: {
        if (sent.empty()) break;
        static constexpr Status outcomes[] = {Status::ok, Status::loading, Status::server_error, Status::busy_script};
        desk.reply(*sent[in_flight], outcomes[below(4)], below(4) == 0);
        sent.erase(std::next(sent.begin(), static_cast<std::ptrdiff_t>(in_flight)));
        break;
      }
      case 5:
        if (sent.empty()) break;
        desk.lose(*sent[in_flight]);
        sent.erase(std::next(sent.begin(), static_cast<std::ptrdiff_t>(in_flight)));
        break;
      case 6: desk.now = desk.now + 500ms; break;
    }
    desk.check();
    TEST_ASSERT_EQUAL(sent.size(), desk.all.in_flight());
  }
}
