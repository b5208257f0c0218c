// SPDX-License-Identifier: MIT
//
// What a set that blocks makes of a cancel(), whenever it comes: the locks here are told when theirs does. Bug 38: one that a lock
// took together with its grant was lost to the set.
#include "unity_style.hpp"

#include <functional>
#include <string>
#include <utility>

#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/lock_set.hpp"
#include "printers.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

using Deed = std::function<void()>;

// Whose calls end at once, as a lock's on one server: the signal is taken at the end of each, and an ok stands.
struct StandIn {
  StandIn(char letter, CancelSignal& own, std::string& log) : name(1, letter), signal(own), calls(log) {}
  Status configuration() const noexcept { return Status::ok; }
  Status acquire(Duration) noexcept {
    until = Instant::max();
    return call("acquire ", signal.pending() ? Status::cancelled : Status::ok);
  }
  Status renew() noexcept { return call("renew ", signal.pending() ? Status::cancelled : Status::ok); }
  Status release() noexcept {
    signal.begin_spared();
    note("release ");
    signal.end_spared();
    return Status::ok;
  }
  Status post_release() noexcept {
    note("post ");
    return Status::ok;
  }
  Instant valid_until() const noexcept { return until; }
  Instant renewal_due() const noexcept { return Instant::max(); }

  Status call(const char* what, Status status) noexcept {
    note(what);
    status = signal.conclude(status, status == Status::ok);
    if (behind) behind();
    return status;
  }
  void note(const char* what) {
    calls += what + name + " ";
    if (at_grant) at_grant();
  }

  std::string name;
  CancelSignal& signal;
  std::string& calls;
  Instant until;
  Deed at_grant;  // Behind its last look at the signal.
  Deed behind;    // When the call has taken it.
};

struct Bench {
  CancelSignal signals[2];  // Of two clients.
  std::string calls;
  StandIn a{'a', signals[0], calls};
  StandIn b{'b', signals[1], calls};
  StandIn c{'c', signals[0], calls};
  StandIn* locks[3] = {&a, &b, &c};

  bool pending() const { return signals[0].pending() || signals[1].pending(); }
  Deed cancel(std::size_t client) {
    return [this, client] { signals[client].raise(); };
  }
  std::string take_calls() { return std::exchange(calls, ""); }
};

class StandInSet : public LockSetBase {
 public:
  explicit StandInSet(Bench& bench) : LockSetBase(table_of<StandIn*, find, signal_of>, bench.locks, 3) {}

 private:
  static void find(StandIn* const& lock, LockPlace& found) noexcept {
    static const KeptConfig node;
    found.nodes[0] = &node;
    found.node_count = 1;
    found.kind = &mutex_kind;
    found.key = Key(ByteView(lock->name.data(), lock->name.size()));
  }
  static CancelSignal& signal_of(StandIn* const& lock) noexcept { return lock->signal; }
};

}  // namespace

TEST(test_cancel_that_comes_as_a_lock_is_granted_should_end_the_acquire_of_the_set) {
  for (const std::size_t place : {0U, 1U, 2U}) {
    Bench bench;
    StandInSet set(bench);
    StandIn& lock = *bench.locks[place];
    const std::size_t client = place == 1 ? 1 : 0;
    lock.at_grant = bench.cancel(client);
    TEST_ASSERT_EQUAL(Status::cancelled, set.acquire(wait_forever));
    const char* const expected[] = {"acquire a post a ", "acquire a acquire b post b post a ",
                                    "acquire a acquire b acquire c post c post b post a "};
    lock.at_grant = nullptr;
    TEST_ASSERT_EQUAL(expected[place], bench.take_calls());
    TEST_ASSERT_FALSE(bench.pending());
    TEST_ASSERT_EQUAL(Status::ok, set.acquire(wait_forever));  // It ended one call.
    TEST_ASSERT_EQUAL(Status::ok, set.release());
  }
}

TEST(test_cancel_of_any_client_should_end_the_acquire_before_the_next_lock) {
  for (const std::size_t client : {0U, 1U}) {
    for (const std::size_t place : {0U, 1U, 2U}) {
      Bench bench;
      StandInSet set(bench);
      StandIn& lock = *bench.locks[place];
      lock.behind = bench.cancel(client);
      TEST_ASSERT_EQUAL(Status::cancelled, set.acquire(wait_forever));
      const char* const expected[] = {"acquire a post a ", "acquire a acquire b post b post a ",
                                      "acquire a acquire b acquire c post c post b post a "};
      TEST_ASSERT_EQUAL(expected[place], bench.take_calls());
      TEST_ASSERT_FALSE(bench.pending());
    }
  }
}

TEST(test_cancel_that_came_before_an_acquire_should_end_it_and_nothing_more) {
  Bench bench;
  StandInSet set(bench);
  bench.cancel(0)();
  bench.cancel(1)();
  TEST_ASSERT_EQUAL(Status::invalid_argument, set.acquire(-1ns));  // Nothing began.
  TEST_ASSERT_EQUAL(Status::cancelled, set.acquire(wait_forever));
  TEST_ASSERT_EQUAL("", bench.take_calls());
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(wait_forever));
}

TEST(test_cancel_that_comes_as_a_lock_is_renewed_should_end_the_renewal_of_the_set_unless_all_are) {
  for (const std::size_t place : {0U, 1U, 2U}) {
    Bench bench;
    StandInSet set(bench);
    TEST_ASSERT_EQUAL(Status::ok, set.acquire(wait_forever));
    (void)bench.take_calls();
    bench.locks[place]->at_grant = bench.cancel(place == 1 ? 1 : 0);
    TEST_ASSERT_EQUAL(place == 2 ? Status::ok : Status::cancelled, set.renew());
    const char* const expected[] = {"renew a ", "renew a renew b ", "renew a renew b renew c "};
    TEST_ASSERT_EQUAL(expected[place], bench.take_calls());
    TEST_ASSERT_FALSE(bench.pending());
    TEST_ASSERT_TRUE(set.held());
  }
}

TEST(test_cancel_that_comes_as_a_lock_is_released_should_have_the_others_let_go_of_without_waiting) {
  for (const std::size_t place : {0U, 1U, 2U}) {
    Bench bench;
    StandInSet set(bench);
    TEST_ASSERT_EQUAL(Status::ok, set.acquire(wait_forever));
    (void)bench.take_calls();
    StandIn& lock = *bench.locks[place];
    lock.at_grant = [&] {
      lock.at_grant = nullptr;
      lock.signal.raise();
    };
    TEST_ASSERT_EQUAL(place == 0 ? Status::ok : Status::cancelled, set.release());
    const char* const expected[] = {"release c release b release a ", "release c release b post a ",
                                    "release c post b post a "};
    TEST_ASSERT_EQUAL(expected[place], bench.take_calls());
    TEST_ASSERT_FALSE(bench.pending());
  }
}

TEST(test_cancel_that_came_before_a_release_should_end_the_call_after_it) {
  Bench bench;
  StandInSet set(bench);
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(wait_forever));
  (void)bench.take_calls();
  bench.cancel(0)();
  TEST_ASSERT_EQUAL(Status::ok, set.release());
  TEST_ASSERT_EQUAL("release c release b release a ", bench.take_calls());
  TEST_ASSERT_EQUAL(Status::cancelled, set.acquire(wait_forever));
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(wait_forever));
}
