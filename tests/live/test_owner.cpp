// SPDX-License-Identifier: MIT
//
// An owner's storage on real servers: how many holds it has places for, and what its handles leave behind, whatever the order
// in which they acquire, release and go. An order of destruction that is wrong is an assertion. What only an event loop can do,
// an operation through each of two handles at the same time, is in test_asio_owner.cpp.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "clients.hpp"
#include "holdfast/proto/assert.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

constexpr LockTiming calm = {.lease = 20s};

// Every call of a lock object that has no hold says the same, and changes nothing.
void check_refused(BlockingLock& lock, Status refusal) {
  bool locked = true;
  Duration remaining = 7s;
  TEST_ASSERT_EQUAL(refusal, lock.configuration());
  TEST_ASSERT_EQUAL(refusal, lock.keep({}));
  TEST_ASSERT_EQUAL(refusal, lock.try_acquire());
  TEST_ASSERT_EQUAL(refusal, lock.acquire(1s));
  TEST_ASSERT_EQUAL(refusal, lock.renew());
  TEST_ASSERT_EQUAL(refusal, lock.release());
  TEST_ASSERT_EQUAL(refusal, lock.post_release());
  TEST_ASSERT_EQUAL(refusal, lock.forget_loss());
  TEST_ASSERT_EQUAL(refusal, lock.is_locked(locked));
  TEST_ASSERT_EQUAL(refusal, lock.remaining_on_server(remaining));
  lock.tick();
  TEST_ASSERT_TRUE(locked);
  TEST_ASSERT_TRUE(remaining == 7s);
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_FALSE(lock.at_risk());
  TEST_ASSERT_EQUAL(Instant(), lock.valid_until());
  TEST_ASSERT_EQUAL(Instant::max(), lock.renewal_due());
  TEST_ASSERT_TRUE(lock.remaining() == 0s);
  TEST_ASSERT_EQUAL(0U, lock.hold_count());
  TEST_ASSERT_TRUE(lock.key().bytes().empty());
  TEST_ASSERT_TRUE(lock.token().empty());
}

// How a child ends that does this.
template <class Deed>
std::string end_of(Deed&& deed) {
  const pid_t child = ::fork();
  TEST_ASSERT_TRUE(child >= 0);
  if (child == 0) {
    holdfast::set_assertion_handler([](const char*, int) noexcept { ::_exit(42); });
    deed();
    ::_exit(0);
  }
  int outcome = 0;
  TEST_ASSERT_EQUAL(child, ::waitpid(child, &outcome, 0));
  TEST_ASSERT_TRUE(WIFEXITED(outcome));
  return WEXITSTATUS(outcome) == 42 ? "asserted" : WEXITSTATUS(outcome) == 0 ? "whole" : "failed";
}

}  // namespace

TEST_ON_SERVER(test_owner_without_a_free_place_should_refuse_one_name_more) {
  Client client;
  OwnerOf<2> owner(connected(client, server));
  std::optional<ReentrantLock> first(std::in_place, owner, "first", calm);
  ReentrantLock second(owner, "second", calm);
  ReentrantLock again(owner, "second", calm);
  FencedLock third(owner, "third", calm);
  TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, again.try_acquire());
  check_refused(third, Status::too_many_requests);
  TEST_ASSERT_EQUAL(0U, third.fence());
  TEST_ASSERT_TRUE(&third.client() == &client);
  TEST_ASSERT_EQUAL("2", server.command("DBSIZE"));
#ifndef HOLDFAST_TEST_ASIO  // A set is the blocking client's.
  BlockingLock* locks[] = {&second, &third};
  TEST_ASSERT_EQUAL(Status::too_many_requests, holdfast::LockSet(locks, 2).configuration());
#endif
  first.reset();  // Its place is free, and its lock.
  FencedLock fourth(owner, "first", calm);
  TEST_ASSERT_EQUAL(Status::ok, fourth.try_acquire());
  TEST_ASSERT_EQUAL("1", count_on(server, fourth));
  check_refused(third, Status::too_many_requests);  // An object that was refused stays so.
}

TEST_ON_SERVER(test_invalid_names_and_timings_should_take_no_place) {
  Client client;
  OwnerOf<1> owner(connected(client, server));
  const std::string too_long(key_size_max + 1, 'k');
  ReentrantLock empty(owner, "", calm);
  ReentrantLock endless(owner, too_long, calm);
  ReentrantLock brief(owner, "k", {.lease = holdfast::lease_min / 2});
  ReentrantLock lock(owner, "k", calm);
  for (ReentrantLock* const each : {&empty, &endless, &brief}) check_refused(*each, Status::invalid_argument);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
}

TEST_ON_SERVER(test_kinds_of_one_name_should_have_a_hold_each_and_exclude_each_other) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock plain(owner, "k", calm);
  FencedLock fenced(owner, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, plain.try_acquire());
  TEST_ASSERT_FALSE(fenced.held());
  TEST_ASSERT_EQUAL(Status::lock_busy, fenced.try_acquire());
  TEST_ASSERT_EQUAL(Status::not_held, fenced.release());
  TEST_ASSERT_EQUAL("1", count_on(server, plain));
}

TEST_ON_SERVER(test_handles_should_go_in_any_order_and_release_what_they_acquired) {
  Client client;
  Owner owner(connected(client, server));
  std::array<std::size_t, 3> order = {0, 1, 2};
  do {
    std::array<std::optional<ReentrantLock>, 3> locks;
    for (auto& lock : locks) lock.emplace(owner, "k", calm);
    for (std::size_t index = 0; index < locks.size(); ++index)
      for (std::size_t turn = 0; turn <= index; ++turn) TEST_ASSERT_EQUAL(Status::ok, locks[index]->try_acquire());
    std::size_t left = 6;
    for (const std::size_t next : order) {
      TEST_ASSERT_EQUAL(std::to_string(left), server.command({"HGET", "k", server.command("HKEYS k")}));
      for (const auto& lock : locks)
        if (lock.has_value()) TEST_ASSERT_EQUAL(left, std::size_t{lock->hold_count()});
      locks[next].reset();
      left -= next + 1;
    }
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_ON_SERVER(test_release_through_another_handle_should_not_be_made_twice) {
  Client client;
  Owner owner(connected(client, server));
  std::optional<ReentrantLock> first(std::in_place, owner, "k", calm);
  ReentrantLock second(owner, "k", calm);
  std::optional<ReentrantLock> third(std::in_place, owner, "k", calm);
  for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, third->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.release());  // What another took.
  TEST_ASSERT_EQUAL(2U, second.hold_count());
  first.reset();  // One of its two is left to release.
  TEST_ASSERT_EQUAL(1U, second.hold_count());
  TEST_ASSERT_EQUAL("1", count_on(server, second));
  third.reset();
  TEST_ASSERT_EQUAL(0U, second.hold_count());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}

TEST_ON_SERVER(test_handle_of_an_earlier_grant_should_leave_the_next_one_alone) {
  Client client;
  Owner owner(connected(client, server));
  std::optional<ReentrantLock> first(std::in_place, owner, "k", calm);
  ReentrantLock second(owner, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.post_release());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  first.reset();
  TEST_ASSERT_TRUE(second.held());
  TEST_ASSERT_EQUAL("1", count_on(server, second));
}

// What another handle released of the earlier grant is settled.
TEST_ON_SERVER(test_handle_should_release_what_it_acquired_of_the_next_grant) {
  Client client;
  Owner owner(connected(client, server));
  std::optional<ReentrantLock> first(std::in_place, owner, "k", calm);
  ReentrantLock second(owner, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.release());
  TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  first.reset();
  TEST_ASSERT_EQUAL(1U, second.hold_count());
  TEST_ASSERT_EQUAL("1", count_on(server, second));
}

TEST_ON_SERVER(test_loss_should_be_forgotten_for_all_handles) {
  Client client;
  Owner owner(connected(client, server));
  std::optional<ReentrantLock> first(std::in_place, owner, "k", calm);
  ReentrantLock second(owner, "k", calm);
  for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, second.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, second.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second.forget_loss());
  for (int turn = 0; turn < 2; ++turn) TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  first.reset();
  TEST_ASSERT_EQUAL(2U, second.hold_count());
  TEST_ASSERT_EQUAL("2", count_on(server, second));
}

// A handle that goes unwinds its part of a loss.
TEST_ON_SERVER(test_loss_should_be_unwound_by_the_handle_that_goes) {
  Client client;
  Owner owner(connected(client, server));
  std::optional<ReentrantLock> first(std::in_place, owner, "k", calm);
  ReentrantLock second(owner, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, second.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, second.try_acquire());
  first.reset();
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_EQUAL("1", count_on(server, second));
}

TEST_ON_SERVER(test_hold_should_begin_with_the_timing_of_the_handle_that_acquires_it) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock first(owner, "k", {.lease = 60s});
  ReentrantLock second(owner, "k", calm);
  TEST_ASSERT_EQUAL(Status::ok, second.try_acquire());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) <= 20'000);
  TEST_ASSERT_EQUAL(Status::ok, first.release());
  TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 20'000);
}

// ---- The order of destruction ----------------------------------------------------------------------------------------

TEST_ON_SERVER(test_inner_lock_with_a_longer_lease_should_raise_that_of_the_hold) {
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock outer(owner, "k", {.lease = 5s});
  ReentrantLock inner(owner, "k", {.lease = 60s});
  ReentrantLock shorter(owner, "k", {.lease = 1s});
  const auto expect_lease = [&](Duration most) {
    const auto left = std::chrono::milliseconds(std::stol(server.command("PTTL k")));
    TEST_ASSERT_TRUE(left <= most && left > most - 4s);
    TEST_ASSERT_TRUE(outer.remaining() <= most && outer.remaining() > most - 4s);
  };
  TEST_ASSERT_EQUAL(Status::ok, outer.try_acquire());
  expect_lease(5s);
  TEST_ASSERT_EQUAL(Status::ok, shorter.try_acquire());
  expect_lease(5s);
  TEST_ASSERT_EQUAL(Status::ok, inner.try_acquire());
  expect_lease(60s);
  TEST_ASSERT_EQUAL(Status::ok, inner.release());
  TEST_ASSERT_EQUAL(Status::ok, shorter.release());
  TEST_ASSERT_EQUAL(Status::ok, outer.renew());  // Until the outermost hold is over.
  expect_lease(60s);
  TEST_ASSERT_EQUAL(Status::ok, outer.post_release());
  TEST_ASSERT_EQUAL(Status::ok, outer.try_acquire());
  expect_lease(5s);
}

TEST_ON_SERVER(test_inner_lock_with_the_automatic_lease_should_have_the_hold_kept_until_its_end) {
  constexpr Duration lease = 900ms;
  Client client;
  Owner owner(connected(client, server));
  ReentrantLock outer(owner, "k", {.lease = lease});
  ReentrantLock inner(owner, "k", {.lease = lease, .kept = true});
  const auto lives = [&](Duration duration) {
    for (const Instant until = Client::now() + duration; Client::now() < until; ::poll(nullptr, 0, 5)) {
      (void)client.tend();
      if (!outer.held()) return false;
    }
    return true;
  };
  TEST_ASSERT_EQUAL(Status::ok, outer.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, inner.try_acquire());
  TEST_ASSERT_TRUE(lives(2 * lease));
  TEST_ASSERT_EQUAL(Status::ok, inner.release());
  TEST_ASSERT_TRUE(lives(2 * lease));
  TEST_ASSERT_EQUAL(Status::ok, outer.release());
  TEST_ASSERT_EQUAL(Status::ok, outer.try_acquire());
  TEST_ASSERT_FALSE(lives(2 * lease));
}

TEST_ON_SERVER(test_owner_that_goes_before_its_locks_should_be_an_assertion) {
  TEST_ASSERT_EQUAL("asserted", end_of([&] {
                      Client client;
                      std::optional<Owner> owner(std::in_place, client);
                      const ReentrantLock lock(*owner, "k", calm);
                      owner.reset();
                    }));
  TEST_ASSERT_EQUAL("whole", end_of([&] {
                      Client client;
                      std::optional<Owner> owner(std::in_place, client);
                      std::optional<ReentrantLock> lock(std::in_place, *owner, "k", calm);
                      lock.reset();
                      owner.reset();
                    }));
}

#ifndef HOLDFAST_TEST_ASIO  // A lock on a loop may outlive its client, and keepers are the blocking client's.
TEST_ON_SERVER(test_client_that_goes_before_its_locks_should_be_an_assertion) {
  TEST_ASSERT_EQUAL("asserted", end_of([&] {
                      std::optional<Client> client(std::in_place);
                      const Mutex lock(*client, "k", calm);
                      client.reset();
                    }));
  TEST_ASSERT_EQUAL("asserted", end_of([&] {
                      std::optional<Client> client(std::in_place);
                      Owner owner(*client);
                      const ReentrantLock lock(owner, "k", calm);
                      client.reset();
                    }));
  TEST_ASSERT_EQUAL("whole", end_of([&] {
                      std::optional<Client> client(std::in_place);
                      std::optional<Mutex> lock(std::in_place, *client, "k", calm);
                      lock.reset();
                      client.reset();
                    }));
}

// In any order, attached once or twice, and from one watchdog to another.
TEST_ON_SERVER(test_watchdog_that_goes_should_leave_its_clients_to_tend) {
  WatchdogPlaces<2> places;
  WatchdogPlaces<2> other_places;
  Client client;
  connected(client, server);
  Watchdog other(other_places.storage());
  std::optional<Client> gone(std::in_place);
  Client late;
  connected(*gone, server);
  connected(late, server);
  Mutex lock(client, "k");
  Mutex its(late, "its");
  {
    Watchdog watchdog(places.storage());
    TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
    client.attach(&watchdog);
    gone->attach(&watchdog);
    late.attach(&watchdog);
    late.attach(&other);
    late.attach(&watchdog);
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(std::size_t{1}, watchdog.size());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    gone.reset();
  }
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, its.try_acquire());
  TEST_ASSERT_TRUE(client.tend() != Instant::max());  // It keeps the hold.
  TEST_ASSERT_TRUE(late.tend() != Instant::max());
  TEST_ASSERT_EQUAL(std::size_t{0}, other.size());
}

#ifndef HOLDFAST_TEST_ASIO  // A loop keeps the holds of its quorums by itself.
TEST_ON_SERVER(test_watchdog_of_quorums_that_goes_before_what_it_keeps_should_be_an_assertion) {
  const ClientConfig config = config_for(server.unix_url());
  for (const bool released : {false, true}) {
    TEST_ASSERT_EQUAL(
        released ? "whole" : "asserted", end_of([&] {
          holdfast::Quorum<1> quorum;
          std::optional<holdfast::QuorumWatchdog> watchdog(std::in_place);
          if (quorum.connect(&config, 1, {.restart_guard = false}) != Status::ok) ::_exit(1);
          holdfast::RedlockMutex<1> kept(quorum, "k");
          if (watchdog->start(quorum) != Status::ok || kept.try_acquire() != Status::ok ||
              (released && kept.release() != Status::ok))
            ::_exit(1);
          watchdog.reset();
          if (quorum.tend() != Instant::max() || kept.try_acquire() != Status::ok || quorum.tend() == Instant::max())
            ::_exit(1);
        }));
    server.command("DEL k");
  }
}
#endif

TEST_ON_SERVER(test_watchdog_that_goes_before_what_it_keeps_should_be_an_assertion) {
  const ClientConfig config = config_for(server.unix_url());
  for (const bool released : {false, true}) {
    TEST_ASSERT_EQUAL(released ? "whole" : "asserted", end_of([&] {
                        WatchdogPlaces<2> places;
                        Client client;
                        std::optional<Watchdog> watchdog(std::in_place, places.storage());
                        Mutex lock(client, "k");
                        if (client.connect(config) != Status::ok || watchdog->start(client) != Status::ok ||
                            lock.try_acquire() != Status::ok || (released && lock.release() != Status::ok))
                          ::_exit(1);
                        watchdog.reset();
                      }));
    server.command("DEL k");
  }
}
#endif  // HOLDFAST_TEST_ASIO
