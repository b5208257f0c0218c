// SPDX-License-Identifier: MIT
//
// What a watcher makes of single looks: no server, no clock.
#include "../src/cli/logbook.hpp"

#include "unity_style.hpp"

static void setUp() {}
static void tearDown() {}

using namespace holdfast;
using namespace holdfast::cli;
using namespace std::chrono_literals;

namespace {

Instant at(Duration after) { return Instant() + 1000s + after; }

LockSight held_by(const std::vector<std::string>& ids, Duration remaining, LockForm form = LockForm::mutex) {
  LockSight sight;
  sight.name = "lock";
  sight.form = form;
  for (const std::string& id : ids) sight.holders.push_back({.id = id, .remaining = remaining});
  sight.owners = ids.size();
  return sight;
}
LockSight free_lock() {
  LockSight sight;
  sight.name = "lock";
  return sight;
}

// A logbook that is looked into after each look, which takes a millisecond.
struct Watched {
  Logbook book{at(0s)};

  std::string look(const LockSight& sight, Duration when) {
    book.handle_sight(sight, at(when), at(when + 1ms));
    return told();
  }
  std::string told() {
    std::string words;
    for (last = Change(); book.poll_change(last);)
      words += (words.empty() ? "" : " ") + std::string(to_string(last.kind)) +
               (last.holder.empty() ? "" : ":" + last.holder);
    return words;
  }
  [[nodiscard]] const LockEntry& entry() const { return book.locks().at("lock"); }
  Change last;
};

}  // namespace

TEST(test_a_hold_should_be_found_once_and_its_renewals_counted) {
  Watched watched;
  TEST_ASSERT_EQUAL(std::string("found:a"), watched.look(held_by({"a"}, 30s), 0s));
  TEST_ASSERT_EQUAL(std::string(), watched.look(held_by({"a"}, 25s), 5s));
  TEST_ASSERT_EQUAL(0U, watched.entry().renewals);
  TEST_ASSERT_EQUAL(std::string(), watched.look(held_by({"a"}, 30s), 10s));
  TEST_ASSERT_EQUAL(std::string(), watched.look(held_by({"a"}, 29s), 20s));
  TEST_ASSERT_EQUAL(2U, watched.entry().renewals);
  TEST_ASSERT_TRUE(watched.entry().holds.at(0).since == at(1ms));
}

TEST(test_a_clock_that_differs_by_the_drift_should_be_no_renewal) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 30s), 0s);
  // A hundredth of ten seconds later than reckoned.
  (void)watched.look(held_by({"a"}, 20s + 100ms), 10s);
  TEST_ASSERT_EQUAL(0U, watched.entry().renewals);
}

TEST(test_a_hold_that_is_gone_before_its_lease_was_over_should_be_released) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 30s), 0s);
  (void)watched.look(held_by({"a"}, 30s), 10s);
  TEST_ASSERT_EQUAL(std::string("released:a"), watched.look(free_lock(), 20s));
  TEST_ASSERT_FALSE(watched.entry().held());
  TEST_ASSERT_EQUAL(std::string("acquired:b"), watched.look(held_by({"b"}, 30s), 21s));
  TEST_ASSERT_EQUAL(0U, watched.entry().renewals);
}

TEST(test_a_lease_that_ran_out_without_a_renewal_should_be_a_loss) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 30s), 0s);
  (void)watched.look(held_by({"a"}, 1s), 29s);
  TEST_ASSERT_EQUAL(std::string("ran-out:a"), watched.look(free_lock(), 31s));
}

TEST(test_an_end_between_two_looks_that_are_far_apart_should_not_be_judged) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 300ms), 0s);
  TEST_ASSERT_EQUAL(std::string("ended:a"), watched.look(free_lock(), 5s));
}

TEST(test_another_owner_should_be_a_hand_off_or_a_loss) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 30s), 0s);
  TEST_ASSERT_EQUAL(std::string("handed-over:b"), watched.look(held_by({"b"}, 30s), 1s));
  (void)watched.look(held_by({"b"}, 500ms), 30s + 500ms);
  TEST_ASSERT_EQUAL(std::string("ran-out:b acquired:c"), watched.look(held_by({"c"}, 30s), 32s));
  TEST_ASSERT_EQUAL(2U, watched.entry().hand_offs);
}

TEST(test_the_last_seconds_should_give_the_hand_offs_per_second) {
  Watched watched;
  for (int turn = 0; turn < 100; ++turn) (void)watched.look(held_by({turn % 2 == 0 ? "a" : "b"}, 30s), turn * 500ms);
  const Instant now = at(99 * 500ms);
  TEST_ASSERT_TRUE(watched.book.hand_offs_per_second(watched.entry(), now) > 1.9);
  TEST_ASSERT_TRUE(watched.book.hand_offs_per_second(watched.entry(), now) < 2.2);
  TEST_ASSERT_TRUE(watched.book.hand_offs_per_second(now) < 2.2);
  TEST_ASSERT_EQUAL(0, watched.book.hand_offs_per_second(watched.entry(), now + 11s));
}

TEST(test_a_second_holder_should_be_stolen_where_there_can_be_one_only) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 30s, LockForm::reentrant), 0s);
  TEST_ASSERT_EQUAL(std::string("stolen:b"), watched.look(held_by({"a", "b"}, 30s, LockForm::reentrant), 1s));
  TEST_ASSERT_TRUE(watched.entry().in_danger());
  TEST_ASSERT_EQUAL(std::string(), watched.look(held_by({"a", "b"}, 29s, LockForm::reentrant), 2s));
  TEST_ASSERT_EQUAL(std::string("released:a"), watched.look(held_by({"b"}, 28s, LockForm::reentrant), 3s));
  TEST_ASSERT_FALSE(watched.entry().in_danger());
}

TEST(test_a_lock_that_was_written_over_should_be_stolen_and_one_that_was_deleted_not) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 30s), 0s);
  watched.book.handle_event("lock", "set");
  watched.book.handle_event("lock", "expire");
  TEST_ASSERT_EQUAL(std::string("stolen:b"), watched.look(held_by({"b"}, 30s), 1s));
  for (const char* const event : {"del", "expired", "evicted", "rename_from"}) {
    TEST_MESSAGE(event);
    const std::string before = watched.entry().holds.front().holder;
    const std::string after = before == "b" ? "c" : "b";
    watched.book.handle_event("lock", event);
    watched.book.handle_event("lock", "set");
    const std::string told = watched.look(held_by({after}, 30s), 2s);
    TEST_ASSERT_EQUAL(
        event == std::string("expired") ? "ran-out:" + before + " acquired:" + after : "handed-over:" + after, told);
  }
  // What a holder sets again is its own, and is forgotten with the look.
  watched.book.handle_event("lock", "set");
  const std::string same = watched.entry().holds.front().holder;
  TEST_ASSERT_EQUAL(std::string(), watched.look(held_by({same}, 30s), 3s));
  TEST_ASSERT_EQUAL(std::string("handed-over:d"), watched.look(held_by({"d"}, 30s), 4s));
  watched.book.handle_event("another", "set");
  TEST_ASSERT_EQUAL(1U, watched.book.locks().size());
}

TEST(test_what_the_server_says_of_an_end_should_settle_it) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 300ms), 0s);
  watched.book.handle_event("lock", "del");
  TEST_ASSERT_EQUAL(std::string("released:a"), watched.look(free_lock(), 5s));
  (void)watched.look(held_by({"a"}, 300ms), 6s);
  watched.book.handle_event("lock", "expired");
  TEST_ASSERT_EQUAL(std::string("ran-out:a"), watched.look(free_lock(), 11s));
  // Both: it cannot be told which of them ended this one.
  (void)watched.look(held_by({"a"}, 300ms), 12s);
  watched.book.handle_event("lock", "expired");
  watched.book.handle_event("lock", "del");
  TEST_ASSERT_EQUAL(std::string("ended:a"), watched.look(free_lock(), 17s));
}

TEST(test_more_readers_should_steal_nothing) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 30s, LockForm::read), 0s);
  TEST_ASSERT_EQUAL(std::string("acquired:b"), watched.look(held_by({"a", "b"}, 30s, LockForm::read), 1s));
  TEST_ASSERT_EQUAL(0U, watched.entry().renewals);  // b has lifted the TTL.
  TEST_ASSERT_EQUAL(std::string("released:a"), watched.look(held_by({"b"}, 29s, LockForm::read), 2s));
}

TEST(test_holders_that_are_not_told_should_not_be_guessed) {
  Watched watched;
  LockSight many = held_by({"a", "b"}, 30s, LockForm::semaphore);
  many.owners = 20;
  TEST_ASSERT_EQUAL(std::string("found:a found:b"), watched.look(many, 0s));
  many.holders.front().id = "c";
  TEST_ASSERT_EQUAL(std::string(), watched.look(many, 1s));
  TEST_ASSERT_EQUAL(20U, watched.entry().owners);
}

TEST(test_a_ttl_that_was_made_less_should_be_told) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 30s), 0s);
  TEST_ASSERT_EQUAL(std::string("cut-short:a"), watched.look(held_by({"a"}, 5s), 1s));
  TEST_ASSERT_EQUAL(std::string(), watched.look(held_by({"a"}, 4s), 2s));
}

TEST(test_a_lock_without_a_ttl_should_be_a_danger_that_is_told_once) {
  Watched watched;
  TEST_ASSERT_EQUAL(std::string("found:a no-expiry:a"), watched.look(held_by({"a"}, Duration::max()), 0s));
  TEST_ASSERT_EQUAL(std::string(), watched.look(held_by({"a"}, Duration::max()), 100s));
  TEST_ASSERT_TRUE(watched.entry().in_danger());
  // And the end of that is neither a renewal nor cut short.
  TEST_ASSERT_EQUAL(std::string(), watched.look(held_by({"a"}, 30s), 101s));
  TEST_ASSERT_FALSE(watched.entry().in_danger());
  TEST_ASSERT_EQUAL(0U, watched.entry().renewals);
  TEST_ASSERT_EQUAL(std::string("released:a"), watched.look(free_lock(), 102s));
}

TEST(test_waiters_should_be_told_when_they_change) {
  Watched watched;
  LockSight sight = held_by({"a"}, 30s, LockForm::reentrant);
  sight.waiting = 1;
  sight.waiters = {"b"};
  TEST_ASSERT_EQUAL(std::string("found:a waiting:a"), watched.look(sight, 0s));
  sight.holders.front().remaining = 29s;
  TEST_ASSERT_EQUAL(std::string(), watched.look(sight, 1s));
  sight.waiters = {"c"};
  TEST_ASSERT_EQUAL(std::string("waiting:a"), watched.look(sight, 1s));
  TEST_ASSERT_EQUAL(std::string("released:a waiting"), watched.look(free_lock(), 2s));
}

TEST(test_a_key_that_becomes_another_type_should_be_no_lock_and_come_back) {
  Watched watched;
  (void)watched.look(held_by({"a"}, 30s), 0s);
  LockSight other = free_lock();
  other.form = LockForm::other;
  TEST_ASSERT_EQUAL(std::string("released:a no-lock"), watched.look(other, 1s));
  TEST_ASSERT_EQUAL(std::string(), watched.look(other, 2s));
  TEST_ASSERT_EQUAL(std::string("acquired:b"), watched.look(held_by({"b"}, 30s), 3s));
}

TEST(test_a_free_lock_should_be_told_first_and_forgotten_after_its_time) {
  Watched watched;
  TEST_ASSERT_EQUAL(std::string("free"), watched.look(free_lock(), 0s));
  (void)watched.look(free_lock(), 50s);
  watched.book.handle_timeout(at(59s));
  TEST_ASSERT_EQUAL(1U, watched.book.locks().size());
  watched.book.handle_timeout(at(62s));
  TEST_ASSERT_EQUAL(0U, watched.book.locks().size());
  // Not what is held, however long nobody has looked.
  (void)watched.look(held_by({"a"}, 30s), 70s);
  watched.book.handle_timeout(at(1000s));
  TEST_ASSERT_EQUAL(1U, watched.book.locks().size());
}

TEST(test_what_comes_after_all_keys_were_seen_should_be_acquired) {
  Watched watched;
  watched.book.handle_sweep();
  TEST_ASSERT_EQUAL(std::string("acquired:a"), watched.look(held_by({"a"}, 30s), 1s));
}

TEST(test_a_silent_server_should_be_told_once_and_when_it_is_back) {
  Watched watched;
  watched.book.handle_answer(at(0s));
  watched.book.handle_silence("why", at(1s));
  watched.book.handle_silence("why else", at(2s));
  TEST_ASSERT_EQUAL(std::string("silent"), watched.told());
  TEST_ASSERT_EQUAL(std::string("why else"), watched.book.silence());
  watched.book.handle_answer(at(4s));
  Change change;
  TEST_ASSERT_TRUE(watched.book.poll_change(change));
  TEST_ASSERT_TRUE(change.kind == ChangeKind::answers);
  TEST_ASSERT_TRUE(change.held == Duration(3s));
  TEST_ASSERT_TRUE(watched.book.silence().empty());
}

TEST(test_locks_beyond_the_bound_should_be_counted) {
  Logbook book(at(0s));
  LockSight sight = held_by({"a"}, 30s);
  for (std::size_t index = 0; index < locks_max + 7; ++index) {
    sight.name = std::to_string(index);
    book.handle_sight(sight, at(0s), at(0s));
  }
  book.handle_sweep();
  TEST_ASSERT_EQUAL(locks_max, book.locks().size());
  TEST_ASSERT_EQUAL(7U, book.not_followed());
  book.handle_sweep();
  TEST_ASSERT_EQUAL(0U, book.not_followed());
}

TEST(test_changes_beyond_the_bound_should_be_counted) {
  Watched watched;
  for (std::size_t turn = 0; turn < changes_max + 5; ++turn)
    watched.book.handle_sight(held_by({turn % 2 == 0 ? "a" : "b"}, 30s), at(0s), at(0s));
  TEST_ASSERT_EQUAL(5U, watched.book.changes_dropped());
  TEST_ASSERT_EQUAL(hand_offs_kept, watched.entry().recent.size());
}

TEST(test_names_should_be_given_round_and_round) {
  Logbook book(at(0s));
  LockSight sight = held_by({"a"}, 30s);
  for (const char* const name : {"a", "b", "c"}) {
    sight.name = name;
    book.handle_sight(sight, at(0s), at(0s));
  }
  using Names = std::vector<std::string>;
  TEST_ASSERT_TRUE((book.names_after("", 2) == Names{"a", "b"}));
  TEST_ASSERT_TRUE((book.names_after("b", 2) == Names{"c", "a"}));
  TEST_ASSERT_TRUE((book.names_after("bb", 10) == Names{"c", "a", "b"}));
  TEST_ASSERT_TRUE(Logbook(at(0s)).names_after("x", 5).empty());
}
