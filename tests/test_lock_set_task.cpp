// SPDX-License-Identifier: MIT
//
// The life of a set's call: what comes next, what is undone, and the one order of all sets.
#include "unity_style.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "holdfast/core/lock_set_task.hpp"
#include "holdfast/core/multi_kind.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/name_list.hpp"
#include "holdfast/sentinels.hpp"
#include "printers.hpp"

using namespace holdfast;

using Act = LockSetTask::Act;
using Call = LockSetTask::Call;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr Instant start = Instant::from_nanoseconds(1'000'000'000'000);

// Three locks, of which each is held until then.
struct Desk {
  Instant now = start;
  std::vector<Instant> ends{3};
  std::vector<Instant> due = {Instant::max(), Instant::max(), Instant::max()};
  static Instant end_of(const void* self, std::size_t place) noexcept {
    return static_cast<const Desk*>(self)->ends[place];
  }
  static Instant due_of(const void* self, std::size_t place) noexcept {
    TEST_ASSERT_TRUE(place < static_cast<const Desk*>(self)->due.size());
    return static_cast<const Desk*>(self)->due[place];
  }
  static constexpr LockSetTask::Host host = {end_of, due_of};
  LockSetTask task{host, this, 3};

  void acquire(Duration wait = 2s) { TEST_ASSERT_EQUAL(Status::ok, task.begin_acquire(now, wait)); }
  void expect(Act act, std::size_t place) {
    TEST_ASSERT_TRUE(task.step(now) == act);
    TEST_ASSERT_EQUAL(place, task.place());
  }
  void expect_over(Status status) {
    TEST_ASSERT_TRUE(task.step(now) == Act::over);
    TEST_ASSERT_TRUE(task.over());
    TEST_ASSERT_EQUAL(status, task.status());
  }
  void grant(std::size_t place, Duration lease = 10s) {
    expect(Act::acquire, place);
    ends[place] = now + lease;
    task.handle(Status::ok);
  }
  void undo(std::size_t from) {
    for (std::size_t place = from; place-- != 0;) {
      expect(Act::post_release, place);
      task.handle(Status::ok);
    }
  }
  void hold() {
    acquire();
    for (const std::size_t place : {0U, 1U, 2U}) grant(place);
    expect_over(Status::ok);
  }
  // The first is taken, and is to be renewed in 3 s.
  void wait_for_the_second() {
    acquire(20s);
    grant(0);
    due[0] = now + 3s;
    expect(Act::acquire, 1);
  }
};

template <std::size_t size>
KeptConfig at(const char (&host)[size], std::uint16_t port = 6379, int database = 0) {
  KeptConfig config;
  config.host = host;
  config.port = port;
  config.database = database;
  return config;
}

LockPlace place_of(const std::vector<const KeptConfig*>& nodes, const char* name, const LockKind& kind = mutex_kind) {
  LockPlace place;
  for (const KeptConfig* const node : nodes) place.nodes[place.node_count++] = node;
  place.kind = &kind;
  place.key = Key(ByteView(name, std::strlen(name)));
  place.sort();
  return place;
}

}  // namespace

// ---- Acquire -----------------------------------------------------------------------------------------------------

TEST(test_locks_should_be_taken_one_after_the_other_within_one_deadline) {
  Desk desk;
  desk.acquire(2s);
  desk.expect(Act::acquire, 0);
  TEST_ASSERT_TRUE(desk.task.wait() == 2s);
  desk.ends[0] = desk.now + 10s;
  desk.task.handle(Status::ok);
  desk.now = desk.now + 500ms;
  desk.expect(Act::acquire, 1);
  TEST_ASSERT_TRUE(desk.task.wait() == 1500ms);
  desk.ends[1] = desk.now + 10s;
  desk.task.handle(Status::ok);
  desk.now = desk.now + 5s;  // Each has an attempt.
  desk.expect(Act::acquire, 2);
  TEST_ASSERT_TRUE(desk.task.wait() == 0s);
  desk.ends[2] = desk.now + 10s;
  desk.task.handle(Status::ok);
  desk.expect_over(Status::ok);
  TEST_ASSERT_EQUAL(std::size_t{3}, desk.task.taken());
  TEST_ASSERT_EQUAL(LockSetTask::no_place, desk.task.blocker());
  TEST_ASSERT_EQUAL(start + 10s, desk.task.valid_until());
}

TEST(test_what_was_taken_should_be_let_go_of_in_reverse_where_one_is_not_to_be_had) {
  Desk desk;
  desk.acquire(0s);
  desk.grant(0);
  desk.grant(1);
  desk.expect(Act::acquire, 2);
  desk.task.handle(Status::lock_busy);
  desk.undo(2);
  desk.expect_over(Status::lock_busy);
  TEST_ASSERT_EQUAL(std::size_t{0}, desk.task.taken());
  TEST_ASSERT_EQUAL(std::size_t{2}, desk.task.blocker());
}

TEST(test_refusal_that_is_not_waited_out_should_end_the_wait) {
  Desk desk;
  desk.acquire(2s);
  desk.grant(0);
  desk.due[0] = desk.now + 100ms;  // So it is no question of time.
  desk.expect(Act::acquire, 1);
  desk.task.handle(Status::no_permission);
  desk.undo(1);
  desk.expect_over(Status::no_permission);
}

TEST(test_what_is_taken_should_be_renewed_while_the_next_is_waited_for) {
  Desk desk;
  desk.acquire(20s);
  desk.grant(0);
  desk.due[0] = desk.now + 3s;
  desk.grant(1);
  desk.due[1] = desk.now + 4s;
  desk.expect(Act::acquire, 2);
  TEST_ASSERT_TRUE(desk.task.wait() == 3s);
  desk.now = desk.now + 3s;
  desk.task.handle(Status::lock_busy);
  desk.expect(Act::renew, 0);
  desk.due[0] = desk.now + 3s;
  desk.task.handle(Status::timed_out);  // What it came to is seen by the end of the hold.
  desk.expect(Act::acquire, 2);
  TEST_ASSERT_TRUE(desk.task.wait() == 1s);
  desk.now = desk.now + 1s;
  desk.due[1] = desk.now;  // Due at once, and a renewal fails at once: no wait is shorter than that.
  desk.task.handle(Status::lock_busy);
  desk.expect(Act::renew, 1);
  desk.task.handle(Status::not_connected);
  desk.expect(Act::acquire, 2);
  TEST_ASSERT_TRUE(desk.task.wait() == 10ms);
}

TEST(test_a_lock_that_gives_up_before_its_time_should_end_the_call) {
  Desk desk;
  desk.wait_for_the_second();
  desk.task.handle(Status::not_connected);  // Its client is closed: it would say so again at once.
  desk.undo(1);
  desk.expect_over(Status::not_connected);
}

// Its last attempt fell into the last millisecond of its time.
TEST(test_a_lock_that_gives_up_at_the_end_of_its_time_should_be_asked_again) {
  Desk desk;
  desk.wait_for_the_second();
  desk.now = desk.now + 3s - 1ms;
  desk.task.handle(Status::lock_busy);
  desk.expect(Act::acquire, 1);
  TEST_ASSERT_TRUE(desk.task.wait() == 10ms);
}

TEST(test_loss_of_one_that_is_taken_should_end_the_call) {
  for (const bool waits : {true, false}) {
    Desk desk;
    desk.acquire(20s);
    desk.grant(0, 2s);
    desk.grant(1);
    desk.due[0] = desk.now + 1s;
    desk.expect(Act::acquire, 2);
    desk.now = desk.now + 2s;
    if (waits) {
      desk.task.handle(Status::lock_busy);
      desk.expect(Act::renew, 0);
      desk.task.handle(Status::lock_lost);
      desk.undo(2);
    } else {
      desk.ends[2] = desk.now + 10s;
      desk.task.handle(Status::ok);
      desk.undo(3);
    }
    desk.expect_over(Status::lock_lost);
    TEST_ASSERT_EQUAL(std::size_t{0}, desk.task.blocker());
  }
}

TEST(test_cancelled_acquire_should_let_go_of_what_was_taken_and_ask_for_nothing_more) {
  Desk desk;
  desk.acquire();
  desk.grant(0);
  desk.expect(Act::acquire, 1);
  desk.task.cancel();
  desk.ends[1] = desk.now + 10s;
  desk.task.handle(Status::ok);  // It was granted meanwhile.
  desk.undo(2);
  desk.expect_over(Status::cancelled);
  desk.hold();  // And is forgotten.
}

TEST(test_cancelled_release_should_wait_for_nobody_and_leave_nothing) {
  Desk desk;
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.task.begin(Call::release));
  desk.expect(Act::release, 2);
  desk.task.cancel();
  desk.task.handle(Status::ok);
  desk.undo(2);
  desk.expect_over(Status::cancelled);
  TEST_ASSERT_EQUAL(std::size_t{0}, desk.task.taken());
}

TEST(test_cancelled_renewal_should_ask_nobody_more_and_leave_the_holds) {
  Desk desk;
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.task.begin(Call::renew));
  desk.expect(Act::renew, 0);
  desk.task.cancel();
  desk.task.handle(Status::ok);
  desk.expect_over(Status::cancelled);
  TEST_ASSERT_EQUAL(std::size_t{3}, desk.task.taken());
}

TEST(test_cancel_behind_the_last_grant_should_let_go_of_all) {
  Desk desk;
  desk.acquire();
  for (const std::size_t place : {0U, 1U, 2U}) desk.grant(place);
  desk.task.cancel();
  desk.undo(3);
  desk.expect_over(Status::cancelled);
}

TEST(test_cancel_behind_the_last_answer_should_leave_the_outcome_of_a_renewal_and_of_a_release) {
  Desk desk;
  desk.hold();
  for (const Call call : {Call::renew, Call::release}) {
    TEST_ASSERT_EQUAL(Status::ok, desk.task.begin(call));
    for (std::size_t asked = 0; asked < 3; ++asked) {
      desk.expect(call == Call::renew ? Act::renew : Act::release, call == Call::renew ? asked : 2 - asked);
      desk.task.handle(Status::ok);
    }
    desk.task.cancel();
    desk.expect_over(Status::ok);
    TEST_ASSERT_EQUAL(std::size_t{call == Call::renew ? 3U : 0U}, desk.task.taken());
  }
}

TEST(test_what_ends_a_part_as_cancelled_should_end_the_whole_call) {
  // cancel() of a lock's client, which knows of no set.
  Desk desk;
  desk.wait_for_the_second();
  desk.now = desk.now + 3s;
  desk.task.handle(Status::lock_busy);
  desk.expect(Act::renew, 0);
  desk.task.handle(Status::cancelled);
  desk.undo(1);
  desk.expect_over(Status::cancelled);
  Desk renewing;
  renewing.hold();
  TEST_ASSERT_EQUAL(Status::ok, renewing.task.begin(Call::renew));
  renewing.expect(Act::renew, 0);
  renewing.task.handle(Status::cancelled);
  renewing.expect_over(Status::cancelled);
  TEST_ASSERT_EQUAL(std::size_t{3}, renewing.task.taken());
  Desk leaving;
  leaving.hold();
  TEST_ASSERT_EQUAL(Status::ok, leaving.task.begin(Call::release));
  leaving.expect(Act::release, 2);
  leaving.task.handle(Status::cancelled);
  leaving.undo(2);
  leaving.expect_over(Status::cancelled);
}

TEST(test_commands_should_be_refused_where_they_make_no_sense) {
  Desk desk;
  TEST_ASSERT_EQUAL(Status::invalid_argument, desk.task.begin_acquire(desk.now, -1ns));
  TEST_ASSERT_EQUAL(Status::not_held, desk.task.begin(Call::renew));
  TEST_ASSERT_EQUAL(Status::not_held, desk.task.begin(Call::release));
  desk.hold();
  TEST_ASSERT_EQUAL(Status::already_held, desk.task.begin_acquire(desk.now, 1s));
  TEST_ASSERT_TRUE(desk.task.over());
}

// ---- Renew and release -------------------------------------------------------------------------------------------

TEST(test_all_should_be_renewed_whatever_the_first_ones_say) {
  Desk desk;
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.task.begin(Call::renew));
  for (const std::size_t place : {0U, 1U, 2U}) {
    desk.expect(Act::renew, place);
    desk.task.handle(place == 1 ? Status::timed_out : place == 2 ? Status::lock_lost : Status::ok);
  }
  desk.expect_over(Status::timed_out);
  TEST_ASSERT_EQUAL(std::size_t{3}, desk.task.taken());
}

TEST(test_all_should_be_released_the_last_one_first_whatever_they_say) {
  Desk desk;
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.task.begin(Call::release));
  for (const std::size_t place : {2U, 1U, 0U}) {
    desk.expect(Act::release, place);
    desk.task.handle(place == 1 ? Status::lock_lost : Status::ok);
  }
  desk.expect_over(Status::lock_lost);
  TEST_ASSERT_EQUAL(std::size_t{0}, desk.task.taken());
  TEST_ASSERT_EQUAL(Instant::max(), desk.task.renewal_due());
}

// ---- The order ---------------------------------------------------------------------------------------------------

TEST(test_order_should_be_by_address_then_database_then_name) {
  const KeptConfig a = at("a");
  const KeptConfig a_later = at("a", 6380);
  const KeptConfig a_database = at("a", 6379, 1);
  const KeptConfig b = at("b");
  KeptConfig local;
  local.socket_path = "/run/redis";
  const LockPlace places[] = {place_of({&a}, "x"),       place_of({&a}, "y"),     place_of({&a_database}, "a"),
                              place_of({&b, &a}, "a"),   place_of({&b, &a}, "b"), place_of({&a_later, &a, &b}, "a"),
                              place_of({&a_later}, "a"), place_of({&b}, "a"),     place_of({&local}, "a")};
  // A quorum comes after what is on its first node alone, and before what is on a later one.
  const std::size_t order[] = {0, 1, 2, 5, 3, 4, 6, 7, 8};
  for (std::size_t left = 0; left < 9; ++left)
    for (std::size_t right = 0; right < 9; ++right) {
      const int expected = left < right ? -1 : left > right ? 1 : 0;
      const int found = compare(places[order[left]], places[order[right]]);
      TEST_ASSERT_EQUAL(expected, found < 0 ? -1 : found > 0 ? 1 : 0);
    }
}

TEST(test_quorum_should_have_one_place_whatever_order_its_nodes_are_named_in) {
  const KeptConfig nodes[] = {at("a"), at("b"), at("c")};
  TEST_ASSERT_EQUAL(
      0, compare(place_of({&nodes[0], &nodes[1], &nodes[2]}, "k"), place_of({&nodes[2], &nodes[0], &nodes[1]}, "k")));
}

// Where a service's master is changes while locks are held.
TEST(test_a_service_should_have_one_place_wherever_its_master_is) {
  Sentinels sentinels({.hosts = "s1", .service = "m"});
  Sentinels others({.hosts = "s1", .service = "n"});
  KeptConfig before = at("a");
  KeptConfig after = at("b");
  KeptConfig other = at("a");
  before.topology = after.topology = &sentinels;
  other.topology = &others;
  TEST_ASSERT_EQUAL(0, compare(place_of({&before}, "k"), place_of({&after}, "k")));
  TEST_ASSERT_TRUE(excludes(place_of({&before}, "k"), place_of({&after}, "k")));
  TEST_ASSERT_TRUE(compare(place_of({&before}, "k"), place_of({&other}, "k")) != 0);
  TEST_ASSERT_FALSE(excludes(place_of({&before}, "k"), place_of({&other}, "k")));
  TEST_ASSERT_EQUAL(compare(place_of({&before}, "k"), place_of({&other}, "k")),
                    compare(place_of({&after}, "k"), place_of({&other}, "k")));
}

TEST(test_locks_that_can_never_be_had_together_should_be_found) {
  const KeptConfig nodes[] = {at("a"), at("b"), at("c"), at("d")};
  const LockPlace one = place_of({&nodes[0]}, "k");
  const LockPlace quorum = place_of({&nodes[0], &nodes[1], &nodes[2]}, "k");
  const LockPlace overlapping = place_of({&nodes[1], &nodes[2], &nodes[3]}, "k");
  TEST_ASSERT_TRUE(excludes(one, one));
  TEST_ASSERT_TRUE(excludes(quorum, quorum));
  TEST_ASSERT_TRUE(excludes(quorum, overlapping));
  TEST_ASSERT_FALSE(excludes(one, quorum));  // Two nodes are left to it.
  TEST_ASSERT_TRUE(excludes(quorum, one));
  TEST_ASSERT_FALSE(excludes(one, place_of({&nodes[0]}, "l")));
  TEST_ASSERT_FALSE(excludes(one, place_of({&nodes[1]}, "k")));
  const ByteView names[] = {"j", "k"};
  const NameList list(names, 2);
  LockPlace multi = place_of({&nodes[0]}, "", multi_kind);
  multi.key = list.key();
  TEST_ASSERT_TRUE(excludes(one, multi) && excludes(multi, one));
}

TEST(test_out_of_a_call_there_should_be_nothing_to_do) {
  Desk desk;
  TEST_ASSERT_TRUE(desk.task.step(desk.now) == Act::over);
  desk.hold();
  TEST_ASSERT_TRUE(desk.task.step(desk.now) == Act::over);
  TEST_ASSERT_EQUAL(Status::ok, desk.task.status());
}

namespace {

// The locks of a set as somebody names them.
struct NamedLocks {
  std::vector<LockPlace> places;
  std::vector<Status> configurations;
  void add(const LockPlace& place) {
    places.push_back(place);
    configurations.push_back(Status::ok);
  }
  Status arrange() {
    return holdfast::arrange(
        places.size(), this,
        [](void* self, std::size_t place) noexcept { return static_cast<NamedLocks*>(self)->configurations[place]; },
        [](void* self, std::size_t place, LockPlace& found) noexcept {
          found = static_cast<NamedLocks*>(self)->places[place];
        },
        [](void* self, std::size_t from, std::size_t to) noexcept {
          move_down(static_cast<NamedLocks*>(self)->places.data(), from, to);
        });
  }
  std::string names() const {
    std::string text;
    for (const LockPlace& place : places) text += std::string(place.key.bytes().string_view());
    return text;
  }
};

}  // namespace

TEST(test_locks_should_be_brought_into_one_order_however_they_are_named) {
  const KeptConfig node = at("a");
  for (const char* const named : {"wxyz", "zyxw", "xwzy", "ywxz", "zwyx"}) {
    NamedLocks locks;
    for (const char* name = named; *name != '\0'; ++name) {
      static const char* const names[] = {"w", "x", "y", "z"};
      locks.add(place_of({&node}, names[*name - 'w']));
    }
    TEST_ASSERT_EQUAL(Status::ok, locks.arrange());
    TEST_ASSERT_EQUAL("wxyz", locks.names());
  }
}

TEST(test_a_set_of_nothing_or_of_locks_that_exclude_each_other_should_be_refused) {
  const KeptConfig node = at("a");
  NamedLocks locks;
  TEST_ASSERT_EQUAL(Status::invalid_argument, locks.arrange());
  for (const char* const name : {"y", "x", "y"}) locks.add(place_of({&node}, name));
  TEST_ASSERT_EQUAL(Status::invalid_argument, locks.arrange());
  TEST_ASSERT_EQUAL("xyy", locks.names());
  // Whichever of the two is named first.
  const KeptConfig nodes[] = {at("a"), at("b"), at("c")};
  for (const bool quorum_first : {false, true}) {
    NamedLocks mixed;
    const LockPlace quorum = place_of({&nodes[0], &nodes[1], &nodes[2]}, "k");
    if (quorum_first) mixed.add(quorum);
    mixed.add(place_of({&nodes[1]}, "k"));
    if (!quorum_first) mixed.add(quorum);
    TEST_ASSERT_EQUAL(Status::invalid_argument, mixed.arrange());
    NamedLocks fine;
    if (quorum_first) fine.add(quorum);
    fine.add(place_of({&nodes[0]}, "k"));
    if (!quorum_first) fine.add(quorum);
    TEST_ASSERT_EQUAL(Status::ok, fine.arrange());
  }
}

TEST(test_what_is_wrong_with_one_lock_should_be_told_of_the_set) {
  const KeptConfig node = at("a");
  NamedLocks locks;
  for (const char* const name : {"x", "y"}) locks.add(place_of({&node}, name));
  locks.configurations[1] = Status::already_held;
  TEST_ASSERT_EQUAL(Status::already_held, locks.arrange());
}

TEST(test_paths_should_be_ordered_by_their_bytes) {
  KeptConfig first;
  first.socket_path = "/run/a";
  KeptConfig second;
  second.socket_path = "/run/b";
  TEST_ASSERT_TRUE(compare(place_of({&first}, "k"), place_of({&second}, "k")) < 0);
  TEST_ASSERT_TRUE(compare(place_of({&second}, "k"), place_of({&first}, "k")) > 0);
  second.port = 1;  // A path has none.
  second.socket_path = "/run/a";
  TEST_ASSERT_EQUAL(0, compare(place_of({&first}, "k"), place_of({&second}, "k")));
}

TEST(test_each_call_of_a_set_should_begin_anew) {
  Desk desk;
  desk.hold();
  TEST_ASSERT_EQUAL(Status::ok, desk.task.begin(Call::renew));
  desk.expect(Act::renew, 0);
  desk.task.handle(Status::lock_lost);
  desk.task.cancel();
  desk.expect_over(Status::lock_lost);
  TEST_ASSERT_EQUAL(Status::ok, desk.task.begin(Call::renew));
  for (const std::size_t place : {0U, 1U, 2U}) {
    desk.expect(Act::renew, place);
    desk.task.handle(Status::ok);
  }
  desk.expect_over(Status::ok);
  TEST_ASSERT_EQUAL(Status::ok, desk.task.begin(Call::release));
  for (const std::size_t place : {2U, 1U, 0U}) {
    desk.expect(Act::release, place);
    desk.task.handle(Status::ok);
  }
  desk.expect_over(Status::ok);
}

// ---- The wait for one --------------------------------------------------------------------------------------------

TEST(test_all_that_is_due_should_be_renewed_before_the_wait_goes_on) {
  Desk desk;
  desk.acquire(20s);
  desk.grant(0);
  desk.grant(1);
  desk.due[0] = desk.due[1] = desk.now + 3s;
  desk.expect(Act::acquire, 2);
  desk.now = desk.now + 3s;
  desk.task.handle(Status::lock_busy);
  for (const std::size_t place : {0U, 1U}) {
    desk.expect(Act::renew, place);
    desk.due[place] = desk.now + 3s;
    desk.task.handle(Status::ok);
  }
  desk.expect(Act::acquire, 2);
  TEST_ASSERT_TRUE(desk.task.wait() == 3s);
  // What is due in the very moment is due.
  desk.now = desk.now + 3s;
  desk.due[0] = desk.now + 1ns;
  desk.task.handle(Status::lock_busy);
  desk.expect(Act::renew, 1);
  desk.due[1] = desk.now + 3s;
  desk.task.handle(Status::ok);
  desk.expect(Act::acquire, 2);
  TEST_ASSERT_TRUE(desk.task.wait() == 10ms);
}

TEST(test_the_wait_should_end_with_the_call_also_where_a_renewal_is_due_later) {
  Desk desk;
  desk.acquire(2s);
  desk.grant(0);
  desk.due[0] = desk.now + 3s;
  desk.expect(Act::acquire, 1);
  TEST_ASSERT_TRUE(desk.task.wait() == 2s);
  desk.now = desk.now + 2s;
  desk.task.handle(Status::lock_busy);
  desk.undo(1);
  desk.expect_over(Status::lock_busy);
  TEST_ASSERT_EQUAL(std::size_t{1}, desk.task.blocker());
}

TEST(test_a_lock_that_gives_up_more_than_a_millisecond_early_should_end_the_call_and_not_its_renewals) {
  Desk desk;
  desk.wait_for_the_second();
  desk.now = desk.now + 3s - 1ms - 1ns;
  desk.task.handle(Status::lock_busy);
  desk.undo(1);
  desk.expect_over(Status::lock_busy);
  TEST_ASSERT_EQUAL(std::size_t{1}, desk.task.blocker());
  // A renewal that says the same ends nothing: the next attempt shows what it came to.
  Desk other;
  other.wait_for_the_second();
  other.now = other.now + 3s;
  other.task.handle(Status::lock_busy);
  other.expect(Act::renew, 0);
  other.now = other.now - 2s;  // As if it were early.
  other.task.handle(Status::lock_busy);
  other.due[0] = other.now + 3s;
  other.expect(Act::acquire, 1);
}

TEST(test_a_failure_should_be_forgotten_by_the_next_acquire) {
  Desk desk;
  desk.acquire(0s);
  desk.grant(0);
  desk.expect(Act::acquire, 1);
  desk.task.handle(Status::lock_busy);
  desk.undo(1);
  desk.expect_over(Status::lock_busy);
  TEST_ASSERT_EQUAL(std::size_t{1}, desk.task.blocker());
  desk.acquire(2s);
  TEST_ASSERT_EQUAL(Status::ok, desk.task.status());
  TEST_ASSERT_EQUAL(LockSetTask::no_place, desk.task.blocker());
  for (const std::size_t place : {0U, 1U, 2U}) desk.grant(place);
  desk.expect_over(Status::ok);
  TEST_ASSERT_EQUAL(LockSetTask::no_place, desk.task.blocker());
}

TEST(test_the_first_that_is_lost_should_be_named_and_the_end_of_a_hold_is_no_part_of_it) {
  Desk desk;
  desk.acquire(20s);
  desk.grant(0, 4s);
  desk.grant(1, 2s);
  desk.expect(Act::acquire, 2);
  desk.ends[2] = desk.now + 10s;
  desk.now = desk.now + 2s;
  desk.task.handle(Status::ok);
  desk.undo(3);
  desk.expect_over(Status::lock_lost);
  TEST_ASSERT_EQUAL(std::size_t{1}, desk.task.blocker());
  Desk other;
  other.acquire(20s);
  other.grant(0, 2s);
  other.grant(1, 2s);
  other.expect(Act::acquire, 2);
  other.ends[2] = other.now + 10s;
  other.now = other.now + 2s - 1ns;
  other.task.handle(Status::ok);
  other.expect_over(Status::ok);
}

// ---- Of what is taken --------------------------------------------------------------------------------------------

TEST(test_a_set_should_be_held_until_its_first_end_and_renewed_at_its_first_time) {
  Desk desk;
  desk.hold();
  desk.ends = {start + 3s, start + 2s, start + 4s};
  desk.due = {start + 900ms, start + 700ms, start + 800ms};
  TEST_ASSERT_EQUAL(start + 2s, desk.task.valid_until());
  TEST_ASSERT_EQUAL(start + 700ms, desk.task.renewal_due());
  desk.ends[2] = Instant();
  TEST_ASSERT_EQUAL(Instant(), desk.task.valid_until());
  const LockSetTask none(Desk::host, &desk, 0);
  TEST_ASSERT_EQUAL(Instant(), none.valid_until());
  TEST_ASSERT_EQUAL(Instant::max(), none.renewal_due());
}

TEST(test_what_is_not_taken_should_be_renewed_by_nobody) {
  Desk desk;
  desk.due = {start + 3s, start + 2s, start + 1s};
  TEST_ASSERT_EQUAL(Instant::max(), desk.task.renewal_due());
  desk.acquire(20s);
  desk.grant(0);
  TEST_ASSERT_EQUAL(start + 3s, desk.task.renewal_due());
}

TEST(test_what_is_taken_should_be_given_back_one_by_one_the_last_first) {
  Desk desk;
  desk.hold();
  for (const std::size_t expected : {2U, 1U, 0U}) {
    std::size_t place = 9;
    TEST_ASSERT_TRUE(desk.task.take_back(place));
    TEST_ASSERT_EQUAL(expected, place);
    TEST_ASSERT_EQUAL(expected, desk.task.taken());
  }
  std::size_t place = 9;
  TEST_ASSERT_FALSE(desk.task.take_back(place));
  TEST_ASSERT_EQUAL(std::size_t{9}, place);
}

// ---- Where they are ----------------------------------------------------------------------------------------------

TEST(test_nodes_of_a_quorum_should_be_sorted_from_any_order) {
  const KeptConfig nodes[] = {at("a"), at("a", 6380), at("b"), at("b", 6379, 1)};
  std::vector<std::size_t> order = {0, 1, 2, 3};
  do {
    LockPlace place;
    for (const std::size_t node : order) place.nodes[place.node_count++] = &nodes[node];
    place.sort();
    for (std::size_t node = 0; node < 4; ++node) TEST_ASSERT_TRUE(place.nodes[node] == &nodes[node]);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(test_places_of_all_kinds_should_be_in_one_order) {
  Sentinels sentinels({.hosts = "s1", .service = "m"});
  Sentinels others({.hosts = "s1", .service = "n"});
  std::vector<KeptConfig> nodes = {at("a"), at("b"), at("a", 6380), at("a", 6379, 1), at("a"), at("a")};
  nodes[4].topology = &sentinels;
  nodes[5].topology = &others;
  nodes.resize(8);
  nodes[6].socket_path = "/run/a";
  nodes[7].socket_path = "/run/b";
  nodes.push_back(nodes.back());
  nodes.back().database = 1;
  std::vector<LockPlace> places;
  for (const KeptConfig& node : nodes) places.push_back(place_of({&node}, "k"));
  for (std::size_t node = 1; node < nodes.size(); ++node) places.push_back(place_of({&nodes[0], &nodes[node]}, "k"));
  for (std::size_t node = 2; node < nodes.size(); ++node) places.push_back(place_of({&nodes[1], &nodes[node]}, "k"));
  const auto before = [](const LockPlace& left, const LockPlace& right) { return compare(left, right) < 0; };
  for (std::size_t left = 0; left < places.size(); ++left)
    for (std::size_t right = 0; right < places.size(); ++right) {
      TEST_ASSERT_EQUAL(left == right, compare(places[left], places[right]) == 0);
      TEST_ASSERT_EQUAL(before(places[left], places[right]), compare(places[right], places[left]) > 0);
      for (const LockPlace& third : places)
        if (before(places[left], places[right]) && before(places[right], third))
          TEST_ASSERT_TRUE(before(places[left], third));
    }
}

// The same server: a set that takes locks of two databases takes those of its quorum together.
TEST(test_all_addresses_should_come_before_the_databases) {
  const KeptConfig a = at("a");
  const KeptConfig a_database = at("a", 6379, 1);
  const KeptConfig b = at("b");
  const KeptConfig b_database = at("b", 6379, 1);
  const KeptConfig c = at("c");
  TEST_ASSERT_TRUE(compare(place_of({&a_database, &b}, "k"), place_of({&a, &c}, "k")) < 0);
  TEST_ASSERT_TRUE(compare(place_of({&a, &b_database}, "k"), place_of({&a, &b}, "k")) > 0);
  TEST_ASSERT_TRUE(compare(place_of({&a, &b_database}, "k"), place_of({&a_database, &b}, "k")) < 0);
  TEST_ASSERT_TRUE(compare(place_of({&a_database}, "k"), place_of({&a, &b}, "k")) < 0);
}

TEST(test_locks_on_different_databases_or_with_different_names_should_be_had_together) {
  const KeptConfig a = at("a");
  const KeptConfig a_database = at("a", 6379, 1);
  TEST_ASSERT_FALSE(excludes(place_of({&a}, "k"), place_of({&a_database}, "k")));
  const ByteView names[] = {"j", "k", "l"};
  const NameList list(names, 3);
  const ByteView other_names[] = {"x", "y", "l"};
  const NameList other_list(other_names, 3);
  const ByteView foreign_names[] = {"x", "y", "z"};
  const NameList foreign_list(foreign_names, 3);
  LockPlace multi = place_of({&a}, "", multi_kind);
  multi.key = list.key();
  LockPlace other = multi;
  other.key = other_list.key();
  LockPlace foreign = multi;
  foreign.key = foreign_list.key();
  TEST_ASSERT_TRUE(excludes(multi, other) && excludes(other, multi));
  TEST_ASSERT_FALSE(excludes(multi, foreign) || excludes(foreign, multi));
  for (const char* const name : {"j", "k", "l"}) TEST_ASSERT_TRUE(excludes(multi, place_of({&a}, name)));
  TEST_ASSERT_FALSE(excludes(multi, place_of({&a}, "m")));
  TEST_ASSERT_TRUE(compare(multi, place_of({&a}, "k")) < 0);  // By its first name.
}

TEST(test_a_quorum_should_exclude_another_where_less_than_a_majority_is_left_to_it) {
  const KeptConfig nodes[] = {at("a"), at("b"), at("c"), at("d"), at("e")};
  const auto of = [&](const std::vector<std::size_t>& which) {
    std::vector<const KeptConfig*> chosen;
    for (const std::size_t node : which) chosen.push_back(&nodes[node]);
    return place_of(chosen, "k");
  };
  TEST_ASSERT_TRUE(excludes(of({0, 1}), of({0, 1, 2, 3})));  // Three are a majority of four, and two are left.
  TEST_ASSERT_FALSE(excludes(of({0}), of({0, 1, 2, 3})));
  TEST_ASSERT_FALSE(excludes(of({0, 1}), of({0, 1, 2, 3, 4})));
  TEST_ASSERT_TRUE(excludes(of({0, 1, 2}), of({0, 1, 2, 3, 4})));
}

TEST(test_a_set_of_any_locks_should_be_arranged_once_for_all_orders) {
  const KeptConfig node = at("a");
  std::string named = "vwxyz";
  do {
    NamedLocks locks;
    for (const char name : named) {
      static const char* const names[] = {"v", "w", "x", "y", "z"};
      locks.add(place_of({&node}, names[name - 'v']));
    }
    TEST_ASSERT_EQUAL(Status::ok, locks.arrange());
    TEST_ASSERT_EQUAL("vwxyz", locks.names());
  } while (std::next_permutation(named.begin(), named.end()));
}

// ---- How it ends -------------------------------------------------------------------------------------------------

TEST(test_a_set_that_was_had_after_a_wait_should_be_ok) {
  Desk desk;
  desk.wait_for_the_second();
  desk.now = desk.now + 3s;
  desk.task.handle(Status::lock_busy);
  desk.expect(Act::renew, 0);
  desk.due[0] = desk.now + 3s;
  desk.task.handle(Status::ok);
  for (const std::size_t place : {1U, 2U}) desk.grant(place);
  desk.expect_over(Status::ok);
}

TEST(test_a_refusal_that_is_not_waited_out_should_end_the_wait_also_at_the_end_of_its_time) {
  Desk desk;
  desk.wait_for_the_second();
  desk.now = desk.now + 3s;
  desk.task.handle(Status::no_permission);
  desk.undo(1);
  desk.expect_over(Status::no_permission);
}

TEST(test_a_cancel_should_not_replace_the_failure_of_what_is_let_go_of_already) {
  Desk desk;
  desk.acquire(0s);
  desk.grant(0);
  desk.grant(1);
  desk.expect(Act::acquire, 2);
  desk.task.handle(Status::lock_busy);
  desk.expect(Act::post_release, 1);
  desk.task.cancel();
  desk.task.handle(Status::ok);
  desk.undo(1);
  desk.expect_over(Status::lock_busy);
}

TEST(test_what_is_wrong_with_any_lock_should_be_told_also_of_the_only_one) {
  const KeptConfig node = at("a");
  for (const std::size_t wrong : {0U, 1U, 2U}) {
    NamedLocks locks;
    for (const char* const name : {"z", "y", "x"}) locks.add(place_of({&node}, name));
    locks.configurations[wrong] = Status::already_held;
    TEST_ASSERT_EQUAL(Status::already_held, locks.arrange());
  }
  NamedLocks one;
  one.add(place_of({&node}, "x"));
  one.configurations[0] = Status::already_held;
  TEST_ASSERT_EQUAL(Status::already_held, one.arrange());
}
