// SPDX-License-Identifier: MIT
//
// Releases that nobody waits for, of the blocking client: many in one breath, before the server has answered any. What was
// promised with ok is done, also when the connection ends; what finds no place says so.
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clients.hpp"
#include "holdfast/lock_set.hpp"
#include "patience.hpp"
#include "proxy.hpp"

using holdfast::compensations_max;
using holdfast::LockSet;

static void setUp() {}
static void tearDown() {}

namespace {

// A client whose server's replies can be held back, and locks that it holds.
struct Crowd {
  explicit Crowd(RedisServer& of, std::size_t count, bool direct = false)
      : server(of), proxy(of.socket_path() + ".proxy", of.socket_path()) {
    ClientConfig config = config_for(direct ? server.unix_url() : proxy.url());
    config.request_timeout = 2s;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
    for (std::size_t index = 0; index < count; ++index) {
      locks.emplace_back(client, ByteView("lock:" + std::to_string(index)), LockTiming{.lease = 60s});
      TEST_ASSERT_EQUAL(Status::ok, locks.back().try_acquire());
    }
  }
  [[nodiscard]] bool keys_become(std::size_t count) {
    return comes([&] { return server.command("DBSIZE") == std::to_string(count); });
  }

  RedisServer& server;
  Proxy proxy;
  Client client;
  std::deque<Mutex> locks;
};

}  // namespace

// [issue 10, 8] None is answered before all have left, and nobody calls the client afterwards.
TEST_ON_SERVER(test_many_releases_should_be_posted_in_one_breath) {
  Crowd crowd(server, compensations_max);
  crowd.proxy.hold_replies_of(Proxy::all);
  for (Mutex& lock : crowd.locks) TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  TEST_ASSERT_TRUE(crowd.keys_become(0));
  crowd.proxy.hold_replies_of(Proxy::none);
  Mutex other(crowd.client, "other");
  TEST_ASSERT_EQUAL(Status::ok, other.acquire(10s));
  for (const Mutex& lock : crowd.locks) TEST_ASSERT_EQUAL(Status::ok, lock.post_outcome());
}

// [issue 10, 8] Nor can a destructor say that there was no place.
TEST_ON_SERVER(test_many_locks_should_be_destroyed_in_one_breath) {
  Crowd crowd(server, compensations_max);
  crowd.proxy.hold_replies_of(Proxy::all);
  crowd.locks.clear();
  TEST_ASSERT_TRUE(crowd.keys_become(0));
  TEST_ASSERT_EQUAL(0U, crowd.client.releases_dropped());
  crowd.proxy.hold_replies_of(Proxy::none);
  Mutex other(crowd.client, "other");
  TEST_ASSERT_EQUAL(Status::ok, other.acquire(10s));
  TEST_ASSERT_EQUAL(0U, crowd.client.releases_dropped());
}

// [issue 10, 8] A set of them, too.
TEST_ON_SERVER(test_many_locks_of_a_set_should_be_released_in_one_breath) {
  Crowd crowd(server, 0);
  std::deque<Mutex> locks;
  BlockingLock* handles[20];
  for (std::size_t index = 0; index < 20; ++index) {
    locks.emplace_back(crowd.client, ByteView("set:" + std::to_string(index)), LockTiming{.lease = 60s});
    handles[index] = &locks.back();
  }
  {
    LockSet set(handles, 20);
    TEST_ASSERT_EQUAL(Status::ok, set.try_acquire());
    TEST_ASSERT_EQUAL("20", server.command("DBSIZE"));
    crowd.proxy.hold_replies_of(Proxy::all);
  }
  locks.clear();
  TEST_ASSERT_TRUE(crowd.keys_become(0));
  TEST_ASSERT_EQUAL(0U, crowd.client.releases_dropped());
}

// Eight of them also with the longest names, which take the most of what is there.
TEST_ON_SERVER(test_locks_of_long_names_should_be_destroyed_in_one_breath) {
  Crowd crowd(server, 0);
  std::deque<Mutex> locks;
  for (std::size_t index = 0; index < 8; ++index) {
    std::string name = std::to_string(index) + ":";
    name.resize(key_size_max, 'n');
    locks.emplace_back(crowd.client, ByteView(name), LockTiming{.lease = 60s});
    TEST_ASSERT_EQUAL(Status::ok, locks.back().try_acquire());
  }
  crowd.proxy.hold_replies_of(Proxy::all);
  locks.clear();
  TEST_ASSERT_TRUE(crowd.keys_become(0));
  TEST_ASSERT_EQUAL(0U, crowd.client.releases_dropped());
}

// What cannot be said is counted.
TEST_ON_SERVER(test_release_that_found_no_place_as_its_lock_was_destroyed_should_be_counted) {
  Crowd crowd(server, compensations_max + 3);
  crowd.proxy.hold_replies_of(Proxy::all);
  crowd.locks.clear();
  TEST_ASSERT_TRUE(crowd.keys_become(3));
  TEST_ASSERT_EQUAL(3U, crowd.client.releases_dropped());
}

// [issue 10, 8] They are answered, and nobody has read it yet.
TEST_ON_SERVER(test_acquire_should_find_the_places_of_answered_releases) {
  Crowd crowd(server, compensations_max, true);
  for (int round = 0; round < 3; ++round) {
    for (Mutex& lock : crowd.locks) TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
    TEST_ASSERT_TRUE(crowd.keys_become(0));
    TEST_ASSERT_EQUAL("PONG", server.command("PING"));  // By now their answers have arrived.
    for (Mutex& lock : crowd.locks) TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  }
}

// [issue 10, 8] They are not answered yet, but soon: an attempt has the time of a request, and waits for a place so long.
TEST_ON_SERVER(test_acquire_should_wait_for_the_places_of_unanswered_releases) {
  Crowd crowd(server, compensations_max);
  crowd.proxy.hold_replies_of(Proxy::all);
  for (Mutex& lock : crowd.locks) TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  Mutex other(crowd.client, "other");
  std::thread later([&] {
    (void)comes([&] { return server.command("DBSIZE") == "0"; });
    (void)::poll(nullptr, 0, 100);
    crowd.proxy.hold_replies_of(Proxy::none);
  });
  TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
  later.join();
}

// [issue 10, 8] Far more than there are places for: each is done, or was refused and said so, and what has been answered by
// then takes no place from an acquire.
TEST_ON_SERVER(test_acquire_should_find_a_place_after_any_number_of_posted_releases) {
  Crowd crowd(server, 64, true);
  std::size_t refused = 0;
  for (Mutex& lock : crowd.locks) {
    const Status status = lock.post_release();
    TEST_ASSERT_TRUE(status == Status::ok || status == Status::too_many_requests);
    if (status != Status::ok) ++refused;
    TEST_ASSERT_FALSE(lock.held());
  }
  TEST_ASSERT_TRUE(crowd.keys_become(refused));
  TEST_ASSERT_EQUAL("PONG", server.command("PING"));  // By now their answers have arrived.
  Mutex other(crowd.client, "other");
  TEST_ASSERT_EQUAL(Status::ok, other.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, other.release());
  crowd.locks.clear();
  TEST_ASSERT_TRUE(crowd.keys_become(crowd.client.releases_dropped()));
}

// They are not answered in the time of a request: an attempt says so, and whoever waits for the lock waits for the place.
TEST_ON_SERVER(test_acquire_should_wait_for_a_place) {
  Crowd crowd(server, compensations_max);
  crowd.proxy.hold_replies_of(Proxy::all);
  for (Mutex& lock : crowd.locks) TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  Mutex other(crowd.client, "other");
  TEST_ASSERT_EQUAL(Status::too_many_requests, other.try_acquire());
  std::thread later([&] {
    breathe(100ms);
    crowd.proxy.hold_replies_of(Proxy::none);
  });
  const Status status = other.acquire(10s);
  later.join();
  TEST_ASSERT_EQUAL(Status::ok, status);
}

// [issue 10, 8] It is not held any more, and what it owes is handed over when there is room, by whatever call comes.
TEST_ON_SERVER(test_posted_release_without_a_place_should_say_so_and_be_made_up_for) {
  for (const int way : {0, 1, 2, 3}) {
    TEST_MESSAGE("way " << way);
    Crowd crowd(server, compensations_max + 1);
    crowd.proxy.hold_replies_of(Proxy::all);
    Mutex& last = crowd.locks.back();
    for (Mutex& lock : crowd.locks)
      TEST_ASSERT_EQUAL(&lock == &last ? Status::too_many_requests : Status::ok, lock.post_release());
    TEST_ASSERT_FALSE(last.held());
    TEST_ASSERT_EQUAL(Status::not_held, last.post_release());
    TEST_ASSERT_TRUE(crowd.keys_become(1));
    TEST_ASSERT_EQUAL(0U, crowd.client.releases_dropped());
    crowd.proxy.hold_replies_of(Proxy::none);
    Mutex reader(crowd.client, "reader");
    TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return reader.try_acquire(); }, Status::ok));
    TEST_ASSERT_EQUAL(Status::ok, reader.release());
    switch (way) {
      case 0: TEST_ASSERT_EQUAL(Status::not_held, last.post_release()); break;
      case 1:
        TEST_ASSERT_EQUAL(Status::ok, last.try_acquire());  // Behind it: it is free, not busy with our own ghost.
        TEST_ASSERT_EQUAL(Status::ok, last.release());
        break;
      case 2: crowd.locks.pop_back(); break;
      default: {
        bool locked = false;
        TEST_ASSERT_EQUAL(Status::ok, last.is_locked(locked));
      }
    }
    TEST_ASSERT_TRUE(crowd.keys_become(0));
    TEST_ASSERT_EQUAL(0U, crowd.client.releases_dropped());
  }
}

// [rule 14] The connection ends before any of them was answered, and all locks are gone.
TEST_ON_SERVER(test_posted_releases_should_be_made_up_for_on_the_next_connection) {
  Crowd crowd(server, compensations_max);
  crowd.proxy.hold(true);
  for (Mutex& lock : crowd.locks) TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
  crowd.locks.clear();
  crowd.proxy.close_all();
  crowd.proxy.hold(false);
  Mutex other(crowd.client, "other");
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return other.try_acquire(); }, Status::ok));
  TEST_ASSERT_TRUE(crowd.keys_become(1));
  TEST_ASSERT_EQUAL(0U, crowd.client.releases_dropped());
}

// ---- Acquires whose answer was lost --------------------------------------------------------------------------------

namespace {

// The key is there, and nobody holds it: the reply was cut together with the connection.
void lose_an_acquire(Crowd& crowd, Mutex& lock) {
  TEST_ASSERT_EQUAL("0", crowd.server.command("DBSIZE"));
  crowd.proxy.cut_after(1);
  TEST_ASSERT_EQUAL(Status::transport_closed, lock.try_acquire());
}

}  // namespace

// [issue 10, 12] Nobody calls a lock any more: tend() makes the connection, and says when to be called again.
TEST_ON_SERVER(test_lost_acquire_should_be_taken_back_by_tend) {
  for (const bool reachable : {true, false}) {
    Crowd crowd(server, 0);
    Mutex lock(crowd.client, "k", {.lease = 60s});
    lose_an_acquire(crowd, lock);
    TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
    TEST_ASSERT_EQUAL(1U, crowd.client.compensations_pending());
    if (!reachable) {
      // Not yet: the next attempt is put off, and tend() says until when.
      server.stop();
      for (int turn = 0; turn < 3; ++turn) {
        const Instant next = crowd.client.tend();
        TEST_ASSERT_TRUE(next != Instant::max());
        breathe(next > Client::now() ? next - Client::now() : Duration::zero());
      }
      TEST_ASSERT_EQUAL(1U, crowd.client.compensations_pending());
      server.start();
      TEST_ASSERT_EQUAL("OK", server.command({"SET", "k", std::string(lock.token().bytes().string_view())}));
    }
    TEST_ASSERT_TRUE(comes([&] { return crowd.client.tend() == Instant::max(); }));
    TEST_ASSERT_EQUAL(0U, crowd.client.compensations_pending());
    TEST_ASSERT_TRUE(crowd.keys_become(0));
  }
}

// [issue 10, 12] Nobody calls the client any more: the watchdog's thread does it, whatever it keeps.
TEST_ON_SERVER(test_lost_acquire_should_be_taken_back_by_the_watchdog) {
  for (const bool keeps : {false, true}) {
    Crowd crowd(server, 0);
    WatchdogPlaces<4> places;
    Watchdog watchdog(places.storage());
    TEST_ASSERT_EQUAL(Status::ok, watchdog.start(crowd.client));
    Mutex kept(crowd.client, "kept", {.lease = 6s, .kept = true});
    if (keeps) {
      TEST_ASSERT_EQUAL(Status::ok, kept.try_acquire());
      // The watchdog's connection has all its replies, so that the one that is cut is not among them.
      TEST_ASSERT_TRUE(comes([&, until = kept.valid_until()] { return kept.valid_until() > until; }));
      TEST_ASSERT_EQUAL("1", server.command("DEL kept"));
    }
    Mutex lock(crowd.client, "k", {.lease = 60s});
    lose_an_acquire(crowd, lock);
    TEST_ASSERT_TRUE(crowd.keys_become(0));
    // The client goes on as ever, and says itself what it owes.
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(0U, crowd.client.compensations_pending());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    if (keeps) (void)kept.release();
    watchdog.stop();
    crowd.client.attach(nullptr);
  }
}

// [issue 10, 12] As far as it can be done without waiting: to a server on this machine.
TEST_ON_SERVER(test_lost_acquire_should_be_taken_back_by_the_destructor_of_the_client) {
  Crowd crowd(server, 0);
  std::optional<Client> client(std::in_place);
  TEST_ASSERT_EQUAL(Status::ok, client->connect(config_for(crowd.proxy.url())));
  std::optional<Mutex> lock(std::in_place, *client, "k", LockTiming{.lease = 60s});
  lose_an_acquire(crowd, *lock);
  TEST_ASSERT_EQUAL(1U, client->compensations_pending());
  lock.reset();
  TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
  client.reset();
  TEST_ASSERT_TRUE(crowd.keys_become(0));
}

// The same of a release, to a TCP port of this machine, after the server has ended the connection unnoticed.
TEST_ON_SERVER(test_posted_release_should_be_repeated_by_the_destructor_of_the_client) {
  std::optional<Client> client(std::in_place);
  TEST_ASSERT_EQUAL(Status::ok, client->connect(server.tcp_url().c_str()));
  std::optional<Mutex> lock(std::in_place, *client, "k", LockTiming{.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock->try_acquire());
  (void)server.command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_EQUAL(Status::ok, lock->post_release());
  lock.reset();
  TEST_ASSERT_EQUAL("1", server.command("DBSIZE"));
  client.reset();
  TEST_ASSERT_TRUE(comes([&] { return server.command("DBSIZE") == "0"; }));
}
