// SPDX-License-Identifier: MIT
//
// Nothing allocates after start-up: re-entry, waiting by push, and the watchdog's thread, errors and reconnects included.
// Only the start of a thread is exempt.
#include <atomic>
#include <chrono>
#include <new>
#include <string>

#include "hands.hpp"
#include "heap_trap.hpp"
#include "live_fixture.hpp"
#include "live_nodes.hpp"
#include "patience.hpp"
#include "proxy.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

TEST_ON_SERVER(test_reentrant_holds_should_not_allocate_error_paths_included) {
  prove_that_the_trap_works();
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  ClientConfig config = config_for(proxy.url());
  config.request_timeout = 300ms;
  config.connect_timeout = 5s;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Hands hands([&](int number) { server.command(number == 1 ? "DEL k" : number == 2 ? "SCRIPT FLUSH" : "SET k text"); });
  std::uint64_t allocations = 0;
  Status outcomes[20] = {};
  {
    HeapTrap trap;
    Owner owner(client);
    Owner rival(client);
    FencedLock lock(owner, "k", {.lease = 20s});
    FencedLock again(owner, "k", {.lease = 20s});
    FencedLock other(rival, "k", {.lease = 20s});
    outcomes[0] = lock.try_acquire();
    outcomes[1] = again.try_acquire();
    outcomes[2] = other.try_acquire();
    outcomes[3] = lock.renew();
    hands.perform(2);
    outcomes[4] = lock.release();
    proxy.hold(true);
    outcomes[5] = lock.try_acquire();  // Times out, is compensated.
    proxy.hold(false);
    proxy.cut_after(1);
    outcomes[6] = lock.renew();
    outcomes[7] = lock.renew();  // Reconnects.
    hands.perform(1);
    outcomes[8] = lock.try_acquire();
    outcomes[9] = lock.release();
    hands.perform(3);
    outcomes[10] = lock.try_acquire();
    LockInfo info;
    outcomes[11] = inspect(client, Key("k"), info);
    bool released = false;
    outcomes[12] = force_release(client, Key("k"), released);
    outcomes[13] = lock.try_acquire();
    outcomes[14] = lock.post_release();
    (void)client.error_text();
    allocations = trap.count();
  }
  TEST_ASSERT_EQUAL(Status::ok, outcomes[0]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[1]);
  TEST_ASSERT_EQUAL(Status::lock_busy, outcomes[2]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[3]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[4]);
  TEST_ASSERT_EQUAL(Status::timed_out, outcomes[5]);
  TEST_ASSERT_EQUAL(Status::transport_closed, outcomes[6]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[7]);
  TEST_ASSERT_EQUAL(Status::lock_lost, outcomes[8]);
  TEST_ASSERT_EQUAL(Status::lock_lost, outcomes[9]);
  TEST_ASSERT_EQUAL(Status::lock_busy, outcomes[10]);
  for (int index = 11; index <= 14; ++index) TEST_ASSERT_EQUAL(Status::ok, outcomes[index]);
  TEST_ASSERT_EQUAL(0U, allocations);
}

TEST_ON_SERVER(test_waiting_by_push_should_not_allocate) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  ClientConfig config = config_for(proxy.url());
  config.request_timeout = 2s;
  config.connect_timeout = 5s;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  server.command("SET k somebody");
  const auto subscribed = [&] { return server.command("PUBSUB CHANNELS") != ""; };
  const auto let_go = [&] {
    server.command("DEL k");
    server.command("PUBLISH redisson_lock__channel:{k} 0");
  };
  bool good = true;
  Hands hands([&](int number) {
    switch (number) {
      case 1:  // Wakes.
        good &= comes(subscribed);
        let_go();
        return;
      case 2: server.command("SET k somebody"); return;
      case 3:  // Takes the connection away, fills it with nonsense, and wakes.
        good &= comes(subscribed);
        server.command("CLIENT KILL TYPE pubsub");
        good &= comes(subscribed);
        for (const std::string& nonsense : {std::string(), std::string("x"), std::string(100000, '0')})
          server.command({"PUBLISH", "redisson_lock__channel:{k}", nonsense});
        proxy.cut_after(5);
        breathe(50ms);
        let_go();
        return;
      case 4: server.command("ACL SETUSER default -subscribe"); return;
      case 5:
        breathe(50ms);
        server.command("DEL k");
        return;
      default: return;
    }
  });
  std::uint64_t allocations = 0;
  Status outcomes[8] = {};
  {
    HeapTrap trap;
    Owner owner(client);
    ReentrantLock lock(owner, "k", {.lease = 20s});
    Mutex mutex(client, "k", {.lease = 20s}, {.announce = true});
    outcomes[0] = lock.acquire(50ms);  // The connection is made here.
    hands.begin(1);
    outcomes[1] = lock.acquire(20s);
    hands.finish(1);
    outcomes[2] = lock.release();
    hands.perform(2);
    hands.begin(3);
    outcomes[3] = mutex.acquire(20s);
    hands.finish(3);
    outcomes[4] = mutex.release();
    hands.perform(2);
    hands.perform(4);
    client.close();
    hands.begin(5);
    outcomes[5] = lock.acquire(20s);  // Refused, and polls.
    hands.finish(5);
    outcomes[6] = lock.release();
    allocations = trap.count();
  }
  TEST_ASSERT_EQUAL(Status::lock_busy, outcomes[0]);
  for (int index = 1; index <= 6; ++index) TEST_ASSERT_EQUAL(Status::ok, outcomes[index]);
  TEST_ASSERT_TRUE(good);
  TEST_ASSERT_EQUAL(0U, allocations);
}

// The trap is set on the watchdog's thread by one callback, and read by another.
TEST_ON_SERVER(test_counting_replicas_should_not_allocate) {
  ClientConfig config = config_for(server.unix_url());
  config.acks = 1;
  config.acks_timeout = 20ms;
  Hands hands([&](int) { server.command("CLIENT KILL TYPE normal SKIPME yes"); });
  std::uint64_t allocations = 0;
  Status outcomes[4] = {};
  {
    HeapTrap trap;
    Client client;
    Acks acks(client);
    outcomes[0] = client.connect(config);
    Mutex lock(client, "k", {.lease = 20s});
    outcomes[1] = lock.try_acquire();  // There is no replica.
    hands.perform(1);
    outcomes[2] = lock.acquire(100ms);  // Both connections are made anew.
    config.acks = 0;
    outcomes[3] = client.connect(config);
    allocations = trap.count();
  }
  TEST_ASSERT_EQUAL(0U, allocations);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[0]);
  TEST_ASSERT_EQUAL(Status::too_few_replicas, outcomes[1]);
  TEST_ASSERT_EQUAL(Status::too_few_replicas, outcomes[2]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[3]);
}

TEST_ON_SERVER(test_watchdog_should_not_allocate) {
  struct Trap {
    alignas(HeapTrap) unsigned char place[sizeof(HeapTrap)];
    std::atomic<bool> set = false;
    std::atomic<bool> read = false;
    std::uint64_t count = 0;
    HeapTrap* trap() { return std::launder(reinterpret_cast<HeapTrap*>(place)); }
  } trap;
  ClientConfig config = config_for(server.tcp_url());
  config.stall_timeout = 100ms;
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  WatchdogPlaces<4> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  std::uint64_t allocations = 0;
  {
    HeapTrap ours;
    Owner owner(client);
    FencedLock lock(owner, "k", {.lease = 600ms});
    allocations = lock.keep({.keep = Keep::always}) == Status::ok && lock.try_acquire() == Status::ok &&
                          lock.try_acquire() == Status::ok && lock.release() == Status::ok &&
                          lock.release() == Status::ok
                      ? ours.count()
                      : 1000;
  }
  TEST_ASSERT_EQUAL(0U, allocations);
  Owner owner(client);
  Mutex first(client, "first", {.lease = 300ms});
  Mutex last(client, "last", {.lease = 300ms});
  FencedLock lock(owner, "k", {.lease = 900ms});
  TEST_ASSERT_EQUAL(Status::ok, first.keep({.keep = Keep::always,
                                            .on_lost =
                                                [](void* self) noexcept {
                                                  auto& it = *static_cast<Trap*>(self);
                                                  new (it.place) HeapTrap();
                                                  it.set = true;
                                                },
                                            .context = &trap}));
  TEST_ASSERT_EQUAL(Status::ok, last.keep({.keep = Keep::always,
                                           .on_lost =
                                               [](void* self) noexcept {
                                                 auto& it = *static_cast<Trap*>(self);
                                                 it.count = it.trap()->count();
                                                 it.trap()->~HeapTrap();
                                                 it.read = true;
                                               },
                                           .context = &trap}));
  TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, first.try_acquire());
  server.command("DEL first");
  TEST_ASSERT_TRUE(comes([&] { return trap.set.load(); }));
  const auto renewed = [&] {
    const Instant until = lock.valid_until();
    return comes([&] { return lock.valid_until() > until; });
  };
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(renewed());
  server.command("SCRIPT FLUSH");
  TEST_ASSERT_TRUE(renewed());
  server.command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_TRUE(renewed());
  // Beyond the end: stalled connections, and failed attempts to connect.
  server.pause();
  const bool ran_out = comes([&] { return !lock.held(); });
  server.resume();
  TEST_ASSERT_TRUE(ran_out);
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  server.stop();
  server.start();
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
  TEST_ASSERT_TRUE(renewed());
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return last.try_acquire(); }, Status::ok));
  server.command("DEL last");
  TEST_ASSERT_TRUE(comes([&] { return trap.read.load(); }));
  TEST_ASSERT_EQUAL(0U, trap.count);
  TEST_ASSERT_TRUE(watchdog.calls() > 5);
}

TEST_ON_NODES(test_quorum_should_not_allocate_error_paths_included, 3) {
  prove_that_the_trap_works();
  std::vector<ClientConfig> configs = nodes.configs();
  for (ClientConfig& config : configs) config.connect_timeout = 1s;
  const auto subscribed = [&] { return nodes[0].command("PUBSUB CHANNELS") != ""; };
  bool good = true;
  Hands hands([&](int number) {
    switch (number) {
      case 1: nodes[2].stop(); return;
      case 2: nodes[1].pause(); return;
      case 3:
        nodes[1].resume();
        nodes[2].start();
        return;
      case 4:
        for (std::size_t node = 0; node < 3; ++node) nodes[node].command("DEL k");
        return;
      case 5:
        for (std::size_t node = 0; node < 3; ++node) nodes[node].command("HSET k somebody 1");
        return;
      case 6:  // Takes a subscription away, then wakes.
        good &= comes(subscribed);
        nodes[0].command("CLIENT KILL TYPE pubsub");
        for (std::size_t node = 0; node < 3; ++node) nodes[node].command("DEL k");
        for (std::size_t node = 0; node < 3; ++node) nodes[node].command("PUBLISH redisson_lock__channel:{k} 0");
        return;
      default: nodes[0].command("CLIENT KILL TYPE normal SKIPME yes"); return;
    }
  });
  std::uint64_t allocations = 0;
  Status outcomes[16] = {};
  {
    Quorum<3> quorum;
    outcomes[0] = connect(quorum, configs);
    HeapTrap trap;
    RedlockMutex<3> mutex(quorum, "k", {.lease = 60s, .node_timeout = 1s}, {.fence = true});
    SoleRedlock<RedlockFencedLock, 3> hash(quorum, "k", {.lease = 60s, .node_timeout = 1s});
    outcomes[1] = mutex.try_acquire();
    outcomes[2] = hash.try_acquire();
    outcomes[3] = mutex.renew();
    good &= comes([&] {  // The third, too: the release needs a majority of those that are left.
      (void)quorum.tend();
      return mutex.held_on(0) && mutex.held_on(1) && mutex.held_on(2);
    });
    hands.perform(1);
    (void)quorum.tend();
    outcomes[4] = mutex.release();
    outcomes[5] = hash.acquire(20s);
    outcomes[6] = hash.release();
    hands.perform(2);
    outcomes[7] = mutex.try_acquire();
    (void)quorum.error_text();
    hands.perform(3);
    outcomes[8] = hash.acquire(20s);
    hands.perform(4);
    outcomes[9] = eventually([&] { return hash.renew(); }, Status::lock_lost);
    outcomes[10] = hash.release();
    hands.perform(5);
    outcomes[11] = hash.acquire(100ms);
    hands.begin(6);
    outcomes[12] = hash.acquire(30s);
    hands.finish(6);
    hands.perform(7);
    outcomes[13] = eventually([&] { return hash.renew(); }, Status::ok);
    outcomes[14] = hash.release();
    (void)quorum.tend();
    allocations = trap.count();
  }
  for (const int index : {0, 1, 3, 4, 5, 6, 8, 12, 13, 14}) {
    TEST_MESSAGE("step " << index);
    TEST_ASSERT_EQUAL(Status::ok, outcomes[index]);
  }
  TEST_ASSERT_EQUAL(Status::lock_busy, outcomes[2]);
  TEST_ASSERT_EQUAL(Status::no_quorum, outcomes[7]);
  TEST_ASSERT_EQUAL(Status::lock_lost, outcomes[9]);
  TEST_ASSERT_EQUAL(Status::lock_lost, outcomes[10]);
  TEST_ASSERT_EQUAL(Status::lock_busy, outcomes[11]);
  TEST_ASSERT_TRUE(good);
  TEST_ASSERT_EQUAL(0U, allocations);
}
