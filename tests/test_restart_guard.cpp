// SPDX-License-Identifier: MIT
//
// From when on a node that may have forgotten a lock votes again, second by second.
#include "unity_style.hpp"

#include <algorithm>
#include <cstdint>

#include "holdfast/core/restart_guard.hpp"
#include "printers.hpp"

using namespace holdfast;

namespace holdfast {
static doctest::String toString(RestartGuard::Verdict verdict) {
  static const char* const names[] = {"votes", "young", "replaced", "successor", "replica", "anonymous"};
  return names[static_cast<int>(verdict)];
}
}  // namespace holdfast

namespace {

using Verdict = RestartGuard::Verdict;

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000'000);
constexpr Duration max_lease = 30s;
// What a hold of it may last by a clock as slow as the drift allows.
constexpr Duration longest = max_lease + drift_of(max_lease);
constexpr std::uint64_t old = 1'000'000;

ServerIdentity server(char id, std::uint64_t uptime, std::uint64_t replication = 0) {
  ServerIdentity identity;
  std::fill(std::begin(identity.run_id), std::end(identity.run_id), id);
  identity.run_id_known = true;
  identity.uptime_seconds = uptime;
  identity.replication_id = replication;
  return identity;
}

// A guard, and what was promised.
struct Guarded {
  RestartGuard guard;
  LeasePromise promise;

  explicit Guarded(Duration lease = max_lease) { promise.change(lease, Instant()); }
  void note(const ServerIdentity& identity, Instant now) { guard.note(identity, now); }
  [[nodiscard]] Verdict verdict(Instant now) const { return guard.verdict(promise, now); }
  [[nodiscard]] Instant votes_from() const { return guard.votes_from(promise); }
};

Guarded guard_of(std::uint64_t uptime, Duration lease = max_lease) {
  Guarded guard(lease);
  guard.note(server('a', uptime), start);
  return guard;
}

// The same server as a master whose data are another life's, or as a replica.
ServerIdentity as_successor(ServerIdentity identity, std::uint64_t replication = 1) {
  identity.standing_first = '7';
  identity.standing_last = 'r';
  identity.replication_id = replication;
  return identity;
}
ServerIdentity as_replica(ServerIdentity identity) {
  identity.standing_first = '-';
  identity.standing_last = 'e';
  return identity;
}

}  // namespace

static void setUp() {}
static void tearDown() {}

TEST(test_a_server_that_nobody_has_asked_should_never_vote) {
  const Guarded guard;
  TEST_ASSERT_EQUAL(Verdict::anonymous, guard.verdict(start));
  TEST_ASSERT_EQUAL(Instant::max(), guard.votes_from());
}

// Uptime is the difference of two whole seconds: the server may be almost one second younger.
TEST(test_a_young_server_should_vote_once_every_lease_before_its_start_has_run_out) {
  for (std::uint64_t uptime = 0; uptime <= 31; ++uptime) {
    const Guarded guard = guard_of(uptime);
    const Instant from = start + longest + 1s - std::chrono::seconds(static_cast<std::int64_t>(uptime));
    TEST_ASSERT_EQUAL(from, guard.votes_from());
    TEST_ASSERT_EQUAL(Verdict::young, guard.verdict(start));
    TEST_ASSERT_EQUAL(Verdict::young, guard.verdict(from));
    TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(from + 1ns));
    // Its youngest possible start, and a lease of the last instant before it.
    const Instant began = start - std::chrono::seconds(static_cast<std::int64_t>(uptime)) + 1s;
    TEST_ASSERT_TRUE(from >= began + max_lease);
  }
}

TEST(test_an_old_server_should_vote_at_once) {
  for (const std::uint64_t uptime : {std::uint64_t{32}, std::uint64_t{33}, old, std::uint64_t{INT64_MAX},
                                     std::uint64_t{INT64_MAX} + 1, UINT64_MAX}) {
    const Guarded guard = guard_of(uptime);
    TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start));
    TEST_ASSERT_TRUE(guard.votes_from() <= start);
  }
}

TEST(test_a_lease_with_a_part_of_a_second_should_count_whole) {
  for (const Duration lease : {Duration(30s + 1ms), Duration(30s + 999ms), Duration(5ms)})
    for (std::uint64_t uptime = 0; uptime <= 34; ++uptime) {
      const Guarded guard = guard_of(uptime, lease);
      const Instant safe =
          start + lease + drift_of(lease) + 1s - std::chrono::seconds(static_cast<std::int64_t>(uptime));
      const Instant first = later(safe, start);
      if (guard.verdict(start) == Verdict::votes)
        TEST_ASSERT_TRUE(safe <= start);
      else
        TEST_ASSERT_EQUAL(first, guard.votes_from());
    }
}

TEST(test_a_lease_of_a_day_should_be_waited_out) {
  TEST_ASSERT_EQUAL(start + lease_max + drift_of(lease_max) + 1s, guard_of(0, lease_max).votes_from());
  TEST_ASSERT_EQUAL(start + 1002ms, guard_of(87264, lease_max).votes_from());
  TEST_ASSERT_EQUAL(Verdict::young, guard_of(87265, lease_max).verdict(start));
  TEST_ASSERT_EQUAL(Verdict::votes, guard_of(87266, lease_max).verdict(start));
}

// Another server in the place of one: its own uptime says nothing of what the one before has granted.
TEST(test_a_replaced_server_should_vote_after_max_lease_however_old_it_is) {
  Guarded guard = guard_of(old);
  guard.note(server('b', old), start + 5s);
  TEST_ASSERT_EQUAL(start + 5s + longest, guard.votes_from());
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start + 5s));
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start + 5s + longest - 1ns));
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start + 5s + longest));
}

TEST(test_a_restarted_server_should_wait_for_the_later_of_both_bounds) {
  Guarded guard = guard_of(old);
  guard.note(server('b', 0), start);
  TEST_ASSERT_EQUAL(start + longest + 1s, guard.votes_from());
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start));
  TEST_ASSERT_EQUAL(Verdict::young, guard.verdict(start + longest));
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start + longest + 1s + 1ns));
  guard.note(server('c', 10), start + 20s);
  TEST_ASSERT_EQUAL(start + 20s + longest, guard.votes_from());
}

TEST(test_a_connection_to_the_same_server_should_change_nothing) {
  Guarded guard = guard_of(old);
  guard.note(server('a', old + 1), start + 1s);
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start + 1s));
  guard.note(server('b', old), start + 2s);
  guard.note(server('b', old + 20), start + 22s);  // The wait does not begin anew.
  TEST_ASSERT_EQUAL(start + 2s + longest, guard.votes_from());
  guard.note(server('a', old + 20), start + 23s);  // Back again: another replacement.
  TEST_ASSERT_EQUAL(start + 23s + longest, guard.votes_from());
}

TEST(test_run_ids_should_be_compared_to_their_last_byte) {
  Guarded guard = guard_of(old);
  ServerIdentity almost = server('a', old);
  almost.run_id[run_id_size - 1] = 'b';
  guard.note(almost, start);
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start));
}

TEST(test_a_server_that_does_not_tell_its_run_id_should_never_vote) {
  Guarded guard;
  ServerIdentity nobody;
  nobody.uptime_seconds = old;
  guard.note(nobody, start);
  TEST_ASSERT_EQUAL(Verdict::anonymous, guard.verdict(start + lease_max));
  TEST_ASSERT_EQUAL(Instant::max(), guard.votes_from());
}

// What was known before the silence still counts behind it.
TEST(test_silence_should_not_hide_a_replacement) {
  Guarded same = guard_of(old);
  same.note(ServerIdentity(), start + 1s);
  TEST_ASSERT_EQUAL(Verdict::anonymous, same.verdict(start + 1s));
  TEST_ASSERT_EQUAL(Instant::max(), same.votes_from());
  Guarded other = same;
  same.note(server('a', old), start + 2s);
  TEST_ASSERT_EQUAL(Verdict::votes, same.verdict(start + 2s));
  other.note(server('b', old), start + 2s);
  TEST_ASSERT_EQUAL(Verdict::replaced, other.verdict(start + 2s));
}

TEST(test_a_clock_near_its_epoch_should_not_wrap) {
  Guarded guard;
  guard.note(server('a', 32), Instant::from_nanoseconds(1));
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(Instant::from_nanoseconds(1)));
  guard = Guarded();
  guard.note(server('a', old), Instant());
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(Instant()));
  guard.note(server('b', 0), Instant::from_nanoseconds(INT64_MAX - 1));
  TEST_ASSERT_EQUAL(Instant::max(), guard.votes_from());
}

// ---- Places that are not known -----------------------------------------------------------------------------------

// Somebody may have answered there before: who comes is taken for his successor.
TEST(test_a_server_at_a_strange_place_should_wait_like_one_that_replaced_another) {
  Guarded guard;
  guard.guard.expect_stranger();
  TEST_ASSERT_TRUE(guard.guard.stranger());
  TEST_ASSERT_EQUAL(Verdict::anonymous, guard.verdict(start));
  guard.note(server('a', old), start);
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start));
  TEST_ASSERT_EQUAL(start + longest, guard.votes_from());
  guard.note(server('a', old + 20), start + 20s);  // Known by now.
  TEST_ASSERT_EQUAL(start + longest, guard.votes_from());
}

TEST(test_a_server_should_have_a_number_of_its_run_id) {
  RestartGuard guard;
  TEST_ASSERT_EQUAL(0U, guard.server());
  guard.note(server('a', old), start);
  const std::uint32_t first = guard.server();
  TEST_ASSERT_TRUE(first != 0);
  TEST_ASSERT_TRUE(guard.is(server('a', 7)));
  TEST_ASSERT_FALSE(guard.is(server('b', 7)));
  TEST_ASSERT_FALSE(guard.is(ServerIdentity()));
  ServerIdentity almost = server('a', old);
  almost.run_id[run_id_size - 1] = 'b';
  guard.note(almost, start);
  TEST_ASSERT_TRUE(guard.server() != first);
  guard.note(server('a', old), start);
  TEST_ASSERT_EQUAL(first, guard.server());
  guard.note(ServerIdentity(), start);
  TEST_ASSERT_EQUAL(0U, guard.server());
}

TEST(test_nobody_should_be_taken_for_a_server_whose_run_id_is_not_known) {
  RestartGuard guard;
  TEST_ASSERT_FALSE(guard.is(server('\0', old)));  // The bytes of one that was never noted.
  guard.note(server('a', old), start);
  ServerIdentity silent = server('a', old);
  silent.run_id_known = false;
  TEST_ASSERT_FALSE(guard.is(silent));
}

// Why it waits is what happened last: it is told to who looks for the reason.
TEST(test_a_wait_should_be_told_by_what_happened_last) {
  Guarded promoted;
  promoted.note(as_successor(server('a', old)), start);
  promoted.note(as_successor(server('a', old)), start + 1s);
  TEST_ASSERT_EQUAL(Verdict::successor, promoted.verdict(start + 1s));
  Guarded replaced = guard_of(old);
  replaced.note(server('b', old), start + 1s);
  replaced.note(server('b', old), start + 2s);
  TEST_ASSERT_EQUAL(Verdict::replaced, replaced.verdict(start + 2s));
  replaced.note(as_successor(server('b', old)), start + 3s);
  TEST_ASSERT_EQUAL(Verdict::successor, replaced.verdict(start + 3s));
}

TEST(test_a_promotion_that_keeps_the_replication_id_should_be_waited_out) {
  Guarded guard;
  guard.note(server('a', old, 1), start);
  guard.note(as_successor(server('a', old, 1), 1), start + 1s);
  TEST_ASSERT_EQUAL(Verdict::successor, guard.verdict(start + 1s));
  TEST_ASSERT_EQUAL(start + 1s + longest, guard.votes_from());
}

// ---- Promotions --------------------------------------------------------------------------------------------------

// A replica that lagged has a long uptime, and a new client has never seen the master before it.
TEST(test_a_server_with_the_data_of_another_life_should_wait_from_when_it_was_first_seen) {
  Guarded guard;
  guard.note(as_successor(server('a', old)), start);
  TEST_ASSERT_EQUAL(Verdict::successor, guard.verdict(start));
  TEST_ASSERT_EQUAL(start + longest, guard.votes_from());
  TEST_ASSERT_EQUAL(Verdict::successor, guard.verdict(start + longest - 1ns));
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start + longest));
  guard.note(as_successor(server('a', old + 5)), start + 5s);  // The wait does not begin anew.
  TEST_ASSERT_EQUAL(start + longest, guard.votes_from());
}

TEST(test_a_promotion_behind_the_same_run_id_should_be_waited_out) {
  Guarded guard = guard_of(old);
  guard.note(as_successor(server('a', old + 5)), start + 5s);
  TEST_ASSERT_EQUAL(Verdict::successor, guard.verdict(start + 5s));
  TEST_ASSERT_EQUAL(start + 5s + longest, guard.votes_from());
  guard.note(as_successor(server('a', old + 9), 2), start + 9s);  // Once more: another replication id.
  TEST_ASSERT_EQUAL(start + 9s + longest, guard.votes_from());
}

// A first replica, or none for an hour, gives a master a new replication id, and changes nothing of its data.
TEST(test_a_new_replication_id_of_a_master_should_change_nothing) {
  Guarded guard;
  guard.note(server('a', old, 5), start);
  guard.note(server('a', old, 6), start + 1s);
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start + 1s));
}

TEST(test_a_restart_with_data_should_wait_for_its_own_reasons_too) {
  Guarded guard = guard_of(old);
  guard.note(as_successor(server('b', 3)), start + 5s);
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start + 5s));
  TEST_ASSERT_EQUAL(start + 5s + longest, guard.votes_from());
}

// What it grants is its master's to forget.
TEST(test_a_replica_should_never_vote_and_wait_when_it_is_promoted) {
  for (const bool marked : {false, true}) {
    Guarded guard;
    guard.note(as_replica(server('a', old)), start);
    TEST_ASSERT_TRUE(guard.guard.replica());
    TEST_ASSERT_EQUAL(Verdict::replica, guard.verdict(start + lease_max));
    TEST_ASSERT_EQUAL(Instant::max(), guard.votes_from());
    guard.note(marked ? as_successor(server('a', old)) : server('a', old), start + 1h);
    TEST_ASSERT_EQUAL(Verdict::successor, guard.verdict(start + 1h));
    TEST_ASSERT_EQUAL(start + 1h + longest, guard.votes_from());
  }
  Guarded refused = guard_of(old);
  refused.guard.note_replica();
  TEST_ASSERT_EQUAL(Verdict::replica, refused.verdict(start + 1h));
  refused.note(server('a', old), start + 1h);
  TEST_ASSERT_EQUAL(start + 1h + longest, refused.votes_from());
}

// ---- Promises ----------------------------------------------------------------------------------------------------

// A node forgets what was granted for the longer time, too.
TEST(test_a_smaller_max_lease_should_not_shorten_what_was_promised) {
  LeasePromise promise;
  promise.change(60s, Instant());
  const Duration long_one = LeasePromise::longest(60s);
  const Duration short_one = LeasePromise::longest(1s);
  promise.change(1s, start);
  TEST_ASSERT_EQUAL(1s, promise.max_lease());
  // Before the change, and a moment after it: whatever is held is held from before.
  TEST_ASSERT_EQUAL(start - 10s + long_one, promise.over_by(start - 10s));
  TEST_ASSERT_EQUAL(start + long_one, promise.over_by(start));
  TEST_ASSERT_EQUAL(start + long_one, promise.over_by(start + 30s));
  TEST_ASSERT_EQUAL(start + long_one + short_one, promise.over_by(start + long_one));
  // The same of a start that is told by an uptime.
  TEST_ASSERT_EQUAL(start + long_one, promise.over_by(start + 30s, 3));
  TEST_ASSERT_EQUAL(start + 30s + long_one + 1s - 50s, promise.over_by(start + 30s, 50));
  TEST_ASSERT_EQUAL(Instant(), promise.over_by(start + 30s, 63));
  TEST_ASSERT_EQUAL(start + 70s + short_one + 1s - 1s, promise.over_by(start + 70s, 1));
}

TEST(test_every_max_lease_of_before_should_count_until_it_is_over) {
  LeasePromise promise;
  promise.change(60s, Instant());
  promise.change(20s, start);
  promise.change(1s, start + 50s);
  // Both of before, taken together: no less than either.
  const Instant both = start + 50s + LeasePromise::longest(20s);
  TEST_ASSERT_TRUE(promise.over_by(start + 51s) >= start + LeasePromise::longest(60s));
  TEST_ASSERT_TRUE(promise.over_by(start + 51s) >= both);
  TEST_ASSERT_EQUAL(both + LeasePromise::longest(1s), promise.over_by(both));
  // A larger one counts from the start, also for what happened before.
  promise.change(90s, start + 52s);
  TEST_ASSERT_EQUAL(start + 40s + LeasePromise::longest(90s), promise.over_by(start + 40s));
  // What is over does not come back with the next change.
  LeasePromise late;
  late.change(60s, Instant());
  late.change(20s, start);
  late.change(1s, start + 100s);
  TEST_ASSERT_EQUAL(start + 100s + LeasePromise::longest(20s), late.over_by(start + 100s));
}

TEST(test_a_larger_max_lease_should_be_waited_out_for_what_was_learnt_before) {
  Guarded guard = guard_of(old, 1s);
  guard.note(server('b', old), start + 5s);
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start + 10s));
  guard.promise.change(30s, start + 10s);
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start + 10s));
  TEST_ASSERT_EQUAL(start + 5s + longest, guard.votes_from());
}

// ---- One machine -------------------------------------------------------------------------------------------------

TEST(test_servers_of_one_run_id_or_one_replication_id_should_be_the_same_machine) {
  TEST_ASSERT_TRUE(same_machine(server('a', 1), server('a', 2)));
  TEST_ASSERT_TRUE(same_machine(server('a', 1, 5), server('a', 2, 6)));
  TEST_ASSERT_TRUE(same_machine(server('a', 1, 5), server('b', 1, 5)));
  TEST_ASSERT_FALSE(same_machine(server('a', 1, 5), server('b', 1, 6)));
  ServerIdentity almost = server('a', 1);
  almost.run_id[run_id_size - 1] = 'b';
  TEST_ASSERT_FALSE(same_machine(server('a', 1), almost));
}

TEST(test_unknown_ids_should_not_be_the_same) {
  TEST_ASSERT_FALSE(same_machine(ServerIdentity(), ServerIdentity()));
  TEST_ASSERT_FALSE(same_machine(server('a', 1), server('b', 1)));
  ServerIdentity hidden = server('a', 1);
  hidden.run_id_known = false;
  TEST_ASSERT_FALSE(same_machine(hidden, server('a', 1)));
  TEST_ASSERT_FALSE(same_machine(server('a', 1), hidden));
  TEST_ASSERT_FALSE(same_machine(hidden, hidden));
  hidden.replication_id = 9;
  TEST_ASSERT_TRUE(same_machine(hidden, server('b', 1, 9)));
}
