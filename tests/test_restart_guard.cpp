// SPDX-License-Identifier: MIT
//
// From when on a node that may have forgotten a lock votes again, second by second.
#include "unity_style.hpp"

#include <algorithm>
#include <cstdint>

#include "holdfast/restart_guard.hpp"
#include "printers.hpp"

using namespace holdfast;

namespace holdfast {
static doctest::String toString(RestartGuard::Verdict verdict) {
  static const char* const names[] = {"votes", "young", "replaced", "anonymous"};
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

RestartGuard guard_of(std::uint64_t uptime, Duration lease = max_lease) {
  RestartGuard guard;
  guard.note(server('a', uptime), lease, start);
  return guard;
}

}  // namespace

static void setUp() {}
static void tearDown() {}

TEST(test_a_server_that_nobody_has_asked_should_never_vote) {
  const RestartGuard guard;
  TEST_ASSERT_EQUAL(Verdict::anonymous, guard.verdict(start));
  TEST_ASSERT_EQUAL(Instant::max(), guard.votes_from());
}

// Uptime is the difference of two whole seconds: the server may be almost one second younger.
TEST(test_a_young_server_should_vote_once_every_lease_before_its_start_has_run_out) {
  for (std::uint64_t uptime = 0; uptime <= 31; ++uptime) {
    const RestartGuard guard = guard_of(uptime);
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
    const RestartGuard guard = guard_of(uptime);
    TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start));
    TEST_ASSERT_TRUE(guard.votes_from() <= start);
  }
}

TEST(test_a_lease_with_a_part_of_a_second_should_count_whole) {
  for (const Duration lease : {Duration(30s + 1ms), Duration(30s + 999ms), Duration(5ms)})
    for (std::uint64_t uptime = 0; uptime <= 34; ++uptime) {
      const RestartGuard guard = guard_of(uptime, lease);
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
  RestartGuard guard = guard_of(old);
  guard.note(server('b', old), max_lease, start + 5s);
  TEST_ASSERT_EQUAL(start + 5s + longest, guard.votes_from());
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start + 5s));
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start + 5s + longest - 1ns));
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start + 5s + longest));
}

TEST(test_a_restarted_server_should_wait_for_the_later_of_both_bounds) {
  RestartGuard guard = guard_of(old);
  guard.note(server('b', 0), max_lease, start);
  TEST_ASSERT_EQUAL(start + longest + 1s, guard.votes_from());
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start));
  TEST_ASSERT_EQUAL(Verdict::young, guard.verdict(start + longest));
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start + longest + 1s + 1ns));
  guard.note(server('c', 10), max_lease, start + 20s);
  TEST_ASSERT_EQUAL(start + 20s + longest, guard.votes_from());
}

TEST(test_a_connection_to_the_same_server_should_change_nothing) {
  RestartGuard guard = guard_of(old);
  guard.note(server('a', old + 1), max_lease, start + 1s);
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start + 1s));
  guard.note(server('b', old), max_lease, start + 2s);
  guard.note(server('b', old + 20), max_lease, start + 22s);  // The wait does not begin anew.
  TEST_ASSERT_EQUAL(start + 2s + longest, guard.votes_from());
  guard.note(server('a', old + 20), max_lease, start + 23s);  // Back again: another replacement.
  TEST_ASSERT_EQUAL(start + 23s + longest, guard.votes_from());
}

TEST(test_run_ids_should_be_compared_to_their_last_byte) {
  RestartGuard guard = guard_of(old);
  ServerIdentity almost = server('a', old);
  almost.run_id[run_id_size - 1] = 'b';
  guard.note(almost, max_lease, start);
  TEST_ASSERT_EQUAL(Verdict::replaced, guard.verdict(start));
}

TEST(test_a_server_that_does_not_tell_its_run_id_should_never_vote) {
  RestartGuard guard;
  ServerIdentity nobody;
  nobody.uptime_seconds = old;
  guard.note(nobody, max_lease, start);
  TEST_ASSERT_EQUAL(Verdict::anonymous, guard.verdict(start + lease_max));
  TEST_ASSERT_EQUAL(Instant::max(), guard.votes_from());
}

// What was known before the silence still counts behind it.
TEST(test_silence_should_not_hide_a_replacement) {
  RestartGuard same = guard_of(old);
  same.note(ServerIdentity(), max_lease, start + 1s);
  TEST_ASSERT_EQUAL(Verdict::anonymous, same.verdict(start + 1s));
  TEST_ASSERT_EQUAL(Instant::max(), same.votes_from());
  RestartGuard other = same;
  same.note(server('a', old), max_lease, start + 2s);
  TEST_ASSERT_EQUAL(Verdict::votes, same.verdict(start + 2s));
  other.note(server('b', old), max_lease, start + 2s);
  TEST_ASSERT_EQUAL(Verdict::replaced, other.verdict(start + 2s));
}

TEST(test_forget_should_leave_a_guard_as_new) {
  RestartGuard guard = guard_of(old);
  guard.note(server('b', 0), max_lease, start);
  guard.forget();
  TEST_ASSERT_EQUAL(Verdict::anonymous, guard.verdict(start));
  guard.note(server('c', old), max_lease, start);
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(start));
}

TEST(test_a_clock_near_its_epoch_should_not_wrap) {
  RestartGuard guard;
  guard.note(server('a', 32), max_lease, Instant::from_nanoseconds(1));
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(Instant::from_nanoseconds(1)));
  guard.forget();
  guard.note(server('a', old), max_lease, Instant());
  TEST_ASSERT_EQUAL(Verdict::votes, guard.verdict(Instant()));
  guard.note(server('b', 0), max_lease, Instant::from_nanoseconds(INT64_MAX - 1));
  TEST_ASSERT_EQUAL(Instant::max(), guard.votes_from());
}

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
