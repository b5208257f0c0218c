// SPDX-License-Identifier: MIT
//
// A clock that cannot be read, as in a sandbox that refuses clock_gettime(): nothing is held then, and calls say so. The
// call is replaced by the linker, so that it fails for the client alone.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>

#include "live_nodes.hpp"
#include "patience.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

std::atomic<bool> broken = false;
std::atomic<long> readings = 0;

// As long as it lives. What the scope does not hold is looked at with a clock again.
struct BrokenClock {
  BrokenClock() { broken = true; }
  ~BrokenClock() { broken = false; }
  BrokenClock(const BrokenClock&) = delete;
  BrokenClock& operator=(const BrokenClock&) = delete;
};

struct Told {
  std::atomic<int> lost = 0;
  KeepOptions options() {
    return {.keep = Keep::always,
            .on_lost = [](void* self) noexcept { ++static_cast<Told*>(self)->lost; },
            .context = this};
  }
};

constexpr QuorumTiming calm = {.lease = 60s, .node_timeout = 12s};

}  // namespace

extern "C" {
int __real_clock_gettime(clockid_t, timespec*);
int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  ++readings;
  if (!broken) return __real_clock_gettime(clock, time);
  errno = EPERM;
  return -1;
}
}

TEST_ON_SERVER(test_nothing_should_be_held_while_the_clock_cannot_be_read) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Owner owner(client);
  Mutex mutex(client, "m", {.lease = 60s});
  ReentrantLock reentrant(owner, "r", {.lease = 60s});
  FencedLock fenced(owner, "f", {.lease = 60s});
  MultiLock multi(owner, {"a", "b"}, {.lease = 60s});
  BlockingLock* const locks[] = {&mutex, &reentrant, &fenced, &multi};
  for (BlockingLock* const lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  bool held[4];
  bool risky[4];
  Duration remaining[4];
  {
    const BrokenClock clock;
    TEST_ASSERT_TRUE(Client::now() == Instant::max());
    for (int index = 0; index < 4; ++index) {
      held[index] = locks[index]->held();
      risky[index] = locks[index]->at_risk();
      remaining[index] = locks[index]->remaining();
    }
  }
  for (int index = 0; index < 4; ++index) {
    TEST_ASSERT_FALSE(held[index]);
    TEST_ASSERT_FALSE(risky[index]);
    TEST_ASSERT_EQUAL(Duration::zero(), remaining[index]);
    TEST_ASSERT_TRUE(locks[index]->held());  // Nobody has judged it meanwhile.
    TEST_ASSERT_EQUAL(Status::ok, locks[index]->release());
  }
}

// A call cannot know how long a hold still has, so it is over, on the server too.
TEST_ON_SERVER(test_calls_should_say_that_the_clock_cannot_be_read_and_let_go_of_what_was_held) {
  for (int which = 0; which < 6; ++which) {
    TEST_MESSAGE("call " << which);
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
    Mutex lock(client, "k", {.lease = 60s});
    Mutex other(client, "other", {.lease = 60s});
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    Status status = Status::ok;
    Status expected = Status::system_error;
    bool locked = true;
    {
      const BrokenClock clock;
      switch (which) {
        case 0: status = other.try_acquire(); break;
        case 1: status = other.acquire(60s); break;
        case 2: status = other.acquire(wait_forever); break;
        case 3: status = lock.is_locked(locked); break;
        case 4:
          status = lock.renew();
          expected = Status::lock_lost;
          break;
        case 5:
          status = lock.release();
          expected = Status::lock_lost;
          break;
      }
    }
    TEST_ASSERT_EQUAL(expected, status);
    TEST_ASSERT_FALSE(other.held());
    TEST_ASSERT_TRUE(other.valid_until() == Instant());
    if (which >= 3) TEST_ASSERT_FALSE(lock.held());
    if (which < 3) TEST_ASSERT_EQUAL(Status::ok, lock.release());
    // It is told the server, as any loss, and the client works with a clock as ever.
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(10s));
    TEST_ASSERT_TRUE(lock.valid_until() <= Client::now() + 60s);
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    TEST_ASSERT_EQUAL("0", server.command("EXISTS k other"));
  }
}

// Whether it polls or is woken: it would never see the end of its time.
TEST_ON_SERVER(test_a_wait_should_end_when_the_clock_cannot_be_read_any_more) {
  Client holder;
  TEST_ASSERT_EQUAL(Status::ok, holder.connect(config_for(server.unix_url())));
  Owner its_owner(holder);
  Mutex busy_mutex(holder, "m", {.lease = 60s});
  ReentrantLock busy_reentrant(its_owner, "r", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, busy_mutex.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, busy_reentrant.try_acquire());
  for (const bool pushed : {false, true})
    for (const Duration wait : {Duration(60s), wait_forever}) {
      Client client;
      TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
      Owner owner(client);
      Mutex mutex(client, "m", {.lease = 60s});
      ReentrantLock reentrant(owner, "r", {.lease = 60s});
      BlockingLock& lock = pushed ? static_cast<BlockingLock&>(reentrant) : mutex;
      std::atomic<bool> done = false;
      Status outcome = Status::ok;
      std::thread thread([&] {
        outcome = lock.acquire(wait);
        done = true;
      });
      std::this_thread::sleep_for(50ms);
      {
        const BrokenClock clock;
        for (int turn = 0; turn < 1000 && !done; ++turn) std::this_thread::sleep_for(10ms);
      }
      const bool ended = done;
      if (!ended) client.cancel();
      thread.join();
      TEST_ASSERT_TRUE(ended);
      TEST_ASSERT_TRUE(outcome == Status::system_error || outcome == Status::lock_busy);
      TEST_ASSERT_FALSE(lock.held());
    }
}

TEST_ON_SERVER(test_connecting_should_say_that_the_clock_cannot_be_read) {
  Client client;
  const ClientConfig config = config_for(server.unix_url());
  Status status = Status::ok;
  {
    const BrokenClock clock;
    status = client.connect(config);
  }
  TEST_ASSERT_EQUAL(Status::system_error, status);
#ifndef HOLDFAST_TEST_ASIO
  TEST_ASSERT_EQUAL(EPERM, client.system_error_number());
#endif
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
}

TEST_ON_SERVER(test_watchdog_should_tell_of_holds_that_it_cannot_time_and_not_spin) {
  Told told;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  WatchdogPlaces<4> places;
  Watchdog watchdog{places.storage()};
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Mutex lock(client, "k", {.lease = 1500ms});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(told.options()));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  long spent = 0;
  {
    const BrokenClock clock;
    for (int wait = 0; wait < 1000 && told.lost == 0; ++wait) std::this_thread::sleep_for(10ms);
    const long before = readings;
    std::this_thread::sleep_for(300ms);
    spent = readings - before;
  }
  TEST_ASSERT_EQUAL(1, told.lost);
  TEST_ASSERT_TRUE(spent < 100);
  TEST_ASSERT_FALSE(lock.held());
  watchdog.stop();
}

TEST_ON_NODES(test_a_redlock_should_not_be_held_while_the_clock_cannot_be_read, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  Quorum<3> late;
  RedlockMutex<3> lock(quorum, "k", calm);
  RedlockMutex<3> other(quorum, "other", calm);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  bool held = true;
  Status acquired = Status::ok;
  Status waited = Status::ok;
  Status renewed = Status::ok;
  Status connected = Status::ok;
  {
    const BrokenClock clock;
    held = lock.held();
    acquired = other.try_acquire();
    waited = other.acquire(60s);
    renewed = lock.renew();
    connected = connect(late, nodes.configs());
  }
  TEST_ASSERT_FALSE(held);
  TEST_ASSERT_EQUAL(Status::system_error, acquired);
  TEST_ASSERT_EQUAL(Status::system_error, waited);
  TEST_ASSERT_EQUAL(Status::lock_lost, renewed);
  TEST_ASSERT_EQUAL(Status::system_error, connected);
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_FALSE(other.held());
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_TRUE(lock.valid_until() <= Client::now() + 60s);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}
