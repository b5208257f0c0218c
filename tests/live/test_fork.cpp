// SPDX-License-Identifier: MIT
//
// Processes that fork, and processes that stand still: a child has nothing of its parent's, and who comes back after its
// lease knows that it holds nothing. Not run under TSan, which knows no threads in a forked child.
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "cluster_setup.hpp"
#include "forked_child.hpp"
#include "holdfast/acks.hpp"
#include "holdfast/cluster.hpp"
#include "live_fixture.hpp"
#include "live_nodes.hpp"
#include "patience.hpp"
#include "proxy.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

// What a child found wrong, as the line of the first; 0 if nothing.
#define WRONG_UNLESS(condition)        \
  do {                                 \
    if (!(condition)) {                \
      child.say("wrong: " #condition); \
      return 1;                        \
    }                                  \
  } while (false)

int sockets_open() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // The folder's own descriptor.
    const std::string target = std::filesystem::read_symlink(entry, gone).string();
    count += target.compare(0, 7, "socket:") == 0 ? 1 : 0;
  }
  return count;
}

ClientConfig calm_config(const std::string& url) {
  ClientConfig config = config_for(url);
  config.request_timeout = 5s;
  config.connect_timeout = 5s;
  config.max_poll = 20s;
  return config;
}

}  // namespace

// ---- Forks -------------------------------------------------------------------------------------------------------

// As of any call: what was cancelled in the parent is the parent's.
TEST_ON_NODES(test_child_should_take_a_set_whatever_was_cancelled_in_its_parent, 3) {
  Client client;
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(nodes.configs()[0]));
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  await_voters(quorum, 7);
  Mutex stock(client, "stock", {.lease = 60s});
  RedlockMutex<3> orders(quorum, "orders", {.lease = 60s, .node_timeout = 12s});
  AnyLock locks[] = {&stock, &orders};
  MixedLockSet set(locks, 2);
  client.cancel();
  quorum.cancel();
  Child forked([&](const Child& child) {
    WRONG_UNLESS(set.acquire(20s) == Status::ok);
    WRONG_UNLESS(set.release() == Status::ok);
    child.say("whole");
    return 0;
  });
  TEST_ASSERT_EQUAL("whole", forked.hear());
  TEST_ASSERT_EQUAL(0, forked.join());
  TEST_ASSERT_EQUAL(Status::cancelled, set.acquire(20s));  // Of one call.
  TEST_ASSERT_EQUAL(Status::ok, set.acquire(20s));
  TEST_ASSERT_EQUAL(Status::ok, set.release());
}

TEST_ON_NODES(test_child_should_have_no_watchdog_of_its_parents_quorum, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  QuorumWatchdog watchdog;
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(quorum));
  RedlockMutex<3> lock(quorum, "k", {.lease = 3s, .node_timeout = 2s, .kept = true});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  Child forked([&](const Child& child) {
    WRONG_UNLESS(!lock.held());
    WRONG_UNLESS(watchdog.start(quorum) == Status::forked);
    WRONG_UNLESS(lock.release() == Status::forked);
    WRONG_UNLESS(connect(quorum, nodes.configs()) == Status::ok);
    WRONG_UNLESS(lock.try_acquire() == Status::lock_busy);
    QuorumWatchdog own;
    WRONG_UNLESS(own.start(quorum) == Status::ok);
    RedlockMutex<3> its(quorum, "its", {.lease = 1s, .node_timeout = 500ms, .kept = true});
    WRONG_UNLESS(its.acquire(5s) == Status::ok);
    const Instant until = its.valid_until();
    WRONG_UNLESS(comes([&] { return its.valid_until() > until; }));
    WRONG_UNLESS(its.release() == Status::ok);
    child.say("whole");
    return 0;
  });
  TEST_ASSERT_EQUAL("whole", forked.hear());
  TEST_ASSERT_EQUAL(0, forked.join());
  const Instant until = lock.valid_until();
  TEST_ASSERT_TRUE(comes([&] { return lock.valid_until() > until; }));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_TRUE(comes([&] { return nodes.all("EXISTS k its", "0"); }));
}

TEST_ON_SERVER(test_child_should_have_nothing_of_its_parents_and_can_begin_anew) {
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(calm_config(proxy.url())));
  Owner owner(client);
  WatchdogPlaces<4> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  std::atomic<int> calls = 0;
  const KeepOptions options = {.keep = Keep::always,
                               .on_at_risk = [](void* self) noexcept { ++*static_cast<std::atomic<int>*>(self); },
                               .on_lost = [](void* self) noexcept { ++*static_cast<std::atomic<int>*>(self); },
                               .context = &calls};
  FencedLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(options));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  // A subscription, left behind by a waiter that gave up; and the watchdog's connection.
  server.command("SET busy somebody");
  ReentrantLock busy(owner, "busy", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::lock_busy, busy.acquire(100ms));
  TEST_ASSERT_TRUE(comes([&] { return proxy.connections() == 3; }));
  breathe(100ms);  // The handshakes are through.
  std::int64_t sent[3];
  for (int index = 0; index < 3; ++index) sent[index] = proxy.requested(index);

  Child forked([&](Child& child) {
    WRONG_UNLESS(!lock.held() && lock.hold_count() == 0 && lock.valid_until() == Instant() && !lock.at_risk());
    WRONG_UNLESS(lock.remaining() == 0ms);
    WRONG_UNLESS(lock.keep(options) == Status::ok);
    WRONG_UNLESS(watchdog.start(client) == Status::forked);
    WRONG_UNLESS(lock.release() == Status::forked);
    WRONG_UNLESS(lock.release() == Status::not_held);
    WRONG_UNLESS(lock.try_acquire() == Status::lock_busy);
    {
      WatchdogPlaces<4> own_places;
      Watchdog own(own_places.storage());
      WRONG_UNLESS(own.start(client) == Status::ok);
      ReentrantLock mine(owner, "mine", {.lease = 600ms});
      WRONG_UNLESS(mine.keep({.keep = Keep::always}) == Status::ok);
      WRONG_UNLESS(mine.acquire(10s) == Status::ok);
      child.say(text_of(mine.token().bytes()));
      WRONG_UNLESS(comes([&] { return own.calls() >= 4; }));
      WRONG_UNLESS(mine.held() && mine.try_acquire() == Status::ok && mine.hold_count() == 2);
      // Waits by push over a subscription of its own, until the parent lets go.
      ReentrantLock next(owner, "k", {.lease = 60s});
      WRONG_UNLESS(next.acquire(50ms) == Status::lock_busy);
      child.say("waits");
      WRONG_UNLESS(lock.acquire(30s) == Status::ok);
      WRONG_UNLESS(lock.held() && lock.hold_count() == 1);
      WRONG_UNLESS(lock.release() == Status::ok);
      WRONG_UNLESS(mine.release() == Status::ok && mine.release() == Status::ok);
    }
    WRONG_UNLESS(calls == 0);
    return 0;
  });
  const std::string token = forked.hear();
  TEST_ASSERT_EQUAL(std::size_t{38}, token.size());
  TEST_ASSERT_TRUE(token.substr(0, 36) != text_of(lock.token().bytes()).substr(0, 36));  // A client id of its own.
  TEST_ASSERT_EQUAL("waits", forked.hear());
  for (int index = 0; index < 3; ++index) TEST_ASSERT_EQUAL(sent[index], proxy.requested(index));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(2U, lock.hold_count());
  TEST_ASSERT_EQUAL("2", server.command({"HGET", "k", text_of(lock.token().bytes())}));
  TEST_ASSERT_EQUAL(std::size_t{1}, watchdog.size());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("", forked.hear());
  TEST_ASSERT_EQUAL(0, forked.join());
  TEST_ASSERT_EQUAL(0, calls);
  // The parent's connections go on as if nothing had been.
  server.command("DEL busy");
  TEST_ASSERT_EQUAL(Status::ok, busy.acquire(5s));
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
  TEST_ASSERT_TRUE(lock.held());
}

// [rule 16] Copies of the parent's sockets would keep its connections open after its own end.
TEST_ON_SERVER(test_destructors_in_a_child_should_close_its_copies_of_the_sockets) {
  const int before = sockets_open();
  auto client = std::make_unique<Client>();
  TEST_ASSERT_EQUAL(Status::ok, client->connect(calm_config(server.unix_url())));
  auto places = std::make_unique<WatchdogPlaces<4>>();
  auto watchdog = std::make_unique<Watchdog>(places->storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog->start(*client));
  auto mutex = std::make_unique<Mutex>(*client, "m");
  TEST_ASSERT_EQUAL(Status::ok, mutex->keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, mutex->try_acquire());  // The watchdog connects for it.
  auto quorum = std::make_unique<Quorum<1>>();
  const std::string url = server.unix_url();
  const ByteView urls[] = {url};
  TEST_ASSERT_EQUAL(Status::ok, quorum->connect(urls, 1, {.restart_guard = false}));
  TEST_ASSERT_TRUE(comes([&] { return sockets_open() == before + 3; }));
  Child forked([&](Child&) {
    mutex.reset();
    watchdog.reset();
    client.reset();
    quorum.reset();
    return sockets_open() - before;
  });
  TEST_ASSERT_EQUAL(0, forked.join());
  TEST_ASSERT_EQUAL(Status::ok, mutex->release());
}

// The same of a watchdog with a connection to each of two masters.
TEST_ON_CLUSTER(test_child_should_leave_its_parents_connections_to_several_masters_alone) {
  constexpr Duration lease = 6s;
  const int before = sockets_open();
  auto places = std::make_unique<WatchdogPlaces<4>>();
  auto watchdog = std::make_unique<Watchdog>(places->storage());
  auto branches = std::make_unique<WatchdogBranchesOf<2, 4>>(*watchdog);
  std::string names[2];
  for (int number = 0; names[0].empty() || names[1].empty(); ++number) {
    const std::string name = "n" + std::to_string(number);
    if (const std::size_t master = cluster.master_of(name); master < 2) names[master] = name;
  }
  Cluster clusters[2];
  std::unique_ptr<Client> clients[2];
  std::unique_ptr<Mutex> locks[2];
  for (std::size_t master = 0; master < 2; ++master) {
    const std::string hosts = cluster.hosts();
    clusters[master].configure({.hosts = ByteView(hosts), .name = ByteView(names[master])});
    clients[master] = std::make_unique<Client>();
    TEST_ASSERT_EQUAL(Status::ok, clients[master]->connect({.topology = &clusters[master]}));
    if (master == 0)
      TEST_ASSERT_EQUAL(Status::ok, watchdog->start(*clients[0]));
    else
      clients[master]->attach(watchdog.get());
    locks[master] = std::make_unique<Mutex>(*clients[master], ByteView(names[master]), LockTiming{.lease = lease});
    TEST_ASSERT_EQUAL(Status::ok, locks[master]->keep({.keep = Keep::always}));
    TEST_ASSERT_EQUAL(Status::ok, locks[master]->try_acquire());
  }
  TEST_ASSERT_TRUE(comes([&] { return sockets_open() == before + 4; }));
  Child forked([&](Child& child) {
    WRONG_UNLESS(watchdog->start(*clients[0]) == Status::forked);
    for (auto& lock : locks) lock.reset();
    branches.reset();
    watchdog.reset();
    for (auto& client : clients) client.reset();
    return sockets_open() - before;
  });
  TEST_ASSERT_EQUAL(0, forked.join());
  const Instant begin = Client::now();
  for (auto& lock : locks) TEST_ASSERT_TRUE(comes([&] { return lock->valid_until() > begin + lease; }));
  TEST_ASSERT_EQUAL(std::size_t{2}, watchdog->size());
  for (auto& lock : locks) TEST_ASSERT_EQUAL(Status::ok, lock->release());
}

// The connection over which replicas are waited for is its client's: it goes with it.
TEST_ON_SERVER(test_child_should_close_its_copy_of_the_connection_for_acks_at_once) {
  ClientConfig config = calm_config(server.unix_url());
  config.acks = 1;
  config.acks_timeout = 50ms;
  Client client;
  Acks acks(client);
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, "k", {.lease = 60s});
  const int alone = sockets_open();
  TEST_ASSERT_EQUAL(Status::too_few_replicas, lock.try_acquire());
  TEST_ASSERT_EQUAL(alone + 1, sockets_open());
  Child forked([&](const Child& child) {
    const int inherited = sockets_open();
    client.attach(nullptr);  // Begins anew, as every call in a child does, and connects to nothing.
    WRONG_UNLESS(sockets_open() == inherited - 2);
    WRONG_UNLESS(lock.try_acquire() == Status::too_few_replicas);
    child.say("whole");
    return 0;
  });
  TEST_ASSERT_EQUAL("whole", forked.hear());
  TEST_ASSERT_EQUAL(0, forked.join());
  TEST_ASSERT_EQUAL(Status::too_few_replicas, lock.try_acquire());
  TEST_ASSERT_EQUAL(alone + 1, sockets_open());
}

TEST_ON_SERVER(test_destructors_in_a_child_should_leave_the_parents_hold) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(calm_config(server.unix_url())));
  auto watchdog_places = std::make_unique<WatchdogPlaces<4>>();
  auto watchdog = std::make_unique<Watchdog>(watchdog_places->storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog->start(client));
  Owner owner(client);
  auto first = std::make_unique<ReentrantLock>(owner, "k", LockTiming{.lease = 60s});
  auto second = std::make_unique<ReentrantLock>(owner, "k", LockTiming{.lease = 60s});
  auto mutex = std::make_unique<Mutex>(client, "m");
  TEST_ASSERT_EQUAL(Status::ok, first->keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, first->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, second->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, mutex->try_acquire());
  Child forked([&](Child&) {
    first.reset();
    second.reset();
    mutex.reset();
    watchdog.reset();
    return 0;
  });
  TEST_ASSERT_EQUAL("", forked.hear().substr(0, 5));
  TEST_ASSERT_EQUAL(0, forked.join());
  TEST_ASSERT_EQUAL("2", server.command({"HGET", "k", text_of(first->token().bytes())}));
  TEST_ASSERT_EQUAL(text_of(mutex->token().bytes()), server.command("GET m"));
  TEST_ASSERT_EQUAL(Status::ok, first->renew());
  TEST_ASSERT_EQUAL(Status::ok, first->release());
  TEST_ASSERT_EQUAL(Status::ok, second->release());
  TEST_ASSERT_EQUAL(Status::ok, mutex->release());
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k m"));
}

TEST_ON_SERVER(test_a_side_that_the_parent_holds_should_give_its_child_no_right_to_the_other) {
  for (const bool writes : {true, false}) {
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(calm_config(server.unix_url())));
    Owner owner(client);
    ReadWriteLock lock(owner, "k", {.read = {.lease = 20s}, .write = {.lease = 20s}});
    auto& held = writes ? lock.write() : lock.read();
    auto& asked = writes ? lock.read() : lock.write();
    TEST_ASSERT_EQUAL(Status::ok, held.try_acquire());
    Child forked([&](Child& child) {
      WRONG_UNLESS(asked.try_acquire() == Status::lock_busy);
      WRONG_UNLESS(!held.held());
      return 0;
    });
    TEST_ASSERT_EQUAL("", forked.hear());
    TEST_ASSERT_EQUAL(0, forked.join());
    TEST_ASSERT_TRUE(held.held());
    TEST_ASSERT_EQUAL(Status::ok, held.release());
    TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  }
}

// The fork comes while another thread waits for a lock, and while the watchdog is at work.
TEST_ON_SERVER(test_fork_in_the_middle_of_a_wait_should_leave_a_client_that_works) {
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(calm_config(server.unix_url())));
  WatchdogPlaces<32> places;
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Owner owner(client);
  server.command("HSET k somebody 1");
  ReentrantLock lock(owner, "k", {.lease = 60s});
  Mutex kept(client, "kept", {.lease = 1200ms});  // Renewed every now and then, and not lost by a busy machine.
  TEST_ASSERT_EQUAL(Status::ok, kept.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, kept.try_acquire());
  Status outcome = Status::timed_out;
  std::thread waiter([&] { outcome = lock.acquire(40s); });
  std::atomic<bool> over = false;
  std::thread asker([&] {  // So that the watchdog's lock is as good as never free.
    while (!over) (void)watchdog.size();
  });
  const bool waits = comes([&] { return server.command("PUBSUB CHANNELS") != ""; });
  int wrong = waits ? 0 : 1;
  for (int turn = 0; turn < 20 && wrong == 0; ++turn) {
    Child forked([&](Child& child) {
      WRONG_UNLESS(!kept.held());
      WRONG_UNLESS(kept.keep({}) == Status::ok);  // Also where the watchdog was at work in the moment of the fork.
      const Status status = lock.try_acquire();
      WRONG_UNLESS(status == Status::forked || status == Status::lock_busy);
      WRONG_UNLESS(lock.acquire(20ms) == Status::lock_busy);
      Mutex mine(client, "mine");
      WRONG_UNLESS(mine.acquire(10s) == Status::ok && mine.release() == Status::ok);
      return 0;
    });
    const std::string said = forked.hear();
    if (!said.empty()) DOCTEST_MESSAGE(said);
    wrong = forked.join();
  }
  const bool held = kept.held();
  over = true;
  asker.join();
  server.command("DEL k");
  server.command("PUBLISH redisson_lock__channel:{k} 0");
  waiter.join();
  TEST_ASSERT_EQUAL(0, wrong);
  TEST_ASSERT_TRUE(held);
  TEST_ASSERT_EQUAL(Status::ok, outcome);
}

// The holds of a quorum are the parent's, on every node; the child begins anew.
TEST_ON_NODES(test_child_should_have_nothing_of_its_parents_quorum_and_can_begin_anew, 3) {
  Quorum<3> quorum;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs()));
  auto mutex = std::make_unique<RedlockMutex<3>>(quorum, "m", QuorumTiming{.lease = 60s, .node_timeout = 12s});
  auto left = std::make_unique<RedlockMutex<3>>(quorum, "left", QuorumTiming{.lease = 60s, .node_timeout = 12s});
  SoleRedlock<RedlockFencedLock, 3> lock(quorum, "k", {.lease = 60s, .node_timeout = 12s});
  TEST_ASSERT_EQUAL(Status::ok, mutex->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, left->try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  for (const QuorumLock* const each :
       {static_cast<QuorumLock*>(mutex.get()), static_cast<QuorumLock*>(left.get()), static_cast<QuorumLock*>(&lock)})
    await_everywhere(nodes, *each);
  const std::string token = text_of(lock.token().bytes());
  Child forked([&](Child& child) {
    WRONG_UNLESS(!lock.held() && lock.hold_count() == 0 && lock.valid_until() == Instant() && !lock.at_risk());
    WRONG_UNLESS(!lock.held_on(0) && !lock.held_on(1) && !lock.held_on(2));
    left.reset();  // Says nothing.
    WRONG_UNLESS(lock.release() == Status::forked);
    WRONG_UNLESS(lock.release() == Status::not_held);
    WRONG_UNLESS(mutex->renew() == Status::forked);
    WRONG_UNLESS(lock.try_acquire() == Status::lock_busy);
    WRONG_UNLESS(mutex->acquire(50ms) == Status::lock_busy);
    SoleRedlock<RedlockFencedLock, 3> mine(quorum, "mine", {.lease = 60s, .node_timeout = 12s});
    WRONG_UNLESS(mine.acquire(10s) == Status::ok && mine.acquire(10s) == Status::ok);
    WRONG_UNLESS(mine.hold_count() == 2 && mine.renew() == Status::ok);
    child.say(text_of(mine.token().bytes()));
    child.await_go();
    WRONG_UNLESS(mine.release() == Status::ok && mine.release() == Status::ok);
    WRONG_UNLESS(mutex->acquire(30s) == Status::ok && mutex->held());
    WRONG_UNLESS(mutex->release() == Status::ok);
    // A majority has let go. Who closes right behind that may leave a grant on the third (redlock.md, rule 5).
    WRONG_UNLESS(comes([&] {
      (void)quorum.tend();
      return nodes.all("EXISTS m mine", "0");
    }));
    return 0;
  });
  const std::string childs = forked.hear();
  TEST_ASSERT_EQUAL(std::size_t{38}, childs.size());
  TEST_ASSERT_TRUE(childs.substr(0, 36) != token.substr(0, 36));  // A client id of its own.
  TEST_ASSERT_TRUE(nodes.all("HGETALL k", token + " 1"));
  TEST_ASSERT_TRUE(nodes.all("GET left", text_of(left->token().bytes())));
  TEST_ASSERT_TRUE(nodes.all("GET m", text_of(mutex->token().bytes())));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(2U, lock.hold_count());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(Status::ok, mutex->release());
  forked.go();
  TEST_ASSERT_EQUAL("", forked.hear());
  TEST_ASSERT_EQUAL(0, forked.join());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, left->release());
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return nodes.all("EXISTS k left m mine", "0");
  }));
}

// ---- Standing still ----------------------------------------------------------------------------------------------

// The holder is stopped beyond its lease, with a watchdog and without.
TEST_ON_SERVER(test_holder_that_stood_still_should_see_its_loss_and_leave_the_next_hold_alone) {
  for (const bool watched : {false, true}) {
    Child holder([&](Child& child) {
      Client client;
      WRONG_UNLESS(client.connect(calm_config(server.tcp_url())) == Status::ok);
      WatchdogPlaces<4> places;
      Watchdog watchdog(places.storage());
      if (watched) WRONG_UNLESS(watchdog.start(client) == Status::ok);
      std::atomic<int> lost = 0;
      Owner owner(client);
      FencedLock lock(owner, "k", {.lease = 500ms});
      WRONG_UNLESS(lock.keep({.keep = Keep::always,
                              .on_lost = [](void* self) noexcept { ++*static_cast<std::atomic<int>*>(self); },
                              .context = &lost}) == Status::ok);
      WRONG_UNLESS(lock.try_acquire() == Status::ok);
      WRONG_UNLESS(lock.try_acquire() == Status::ok);
      if (watched) WRONG_UNLESS(comes([&] { return watchdog.calls() >= 2; }));
      child.say(std::to_string(lock.fence()));
      child.await_go();  // Stopped meanwhile.
      WRONG_UNLESS(!lock.held() && lock.remaining() == 0ms);
      if (watched) WRONG_UNLESS(comes([&] { return lost == 1; }));
      WRONG_UNLESS(lock.renew() == Status::lock_lost);
      WRONG_UNLESS(lock.try_acquire() == Status::lock_lost);
      WRONG_UNLESS(lock.release() == Status::lock_lost);
      WRONG_UNLESS(lock.release() == Status::lock_lost);
      WRONG_UNLESS(lock.try_acquire() == Status::lock_busy);
      WRONG_UNLESS(lost <= 1);
      return 0;
    });
    const std::uint64_t fence = std::strtoull(holder.hear().c_str(), nullptr, 10);
    holder.stop();
    Client client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(calm_config(server.unix_url())));
    Owner owner(client);
    FencedLock next(owner, "k", {.lease = 60s});
    const Status status = next.acquire(10s);
    const std::uint64_t larger = next.fence();
    const std::string ours = server.command("HGETALL k");
    holder.go();
    holder.resume();
    const std::string said = holder.hear();
    TEST_ASSERT_EQUAL("", said);
    TEST_ASSERT_EQUAL(0, holder.join());
    TEST_ASSERT_EQUAL(Status::ok, status);
    TEST_ASSERT_TRUE(fence != 0);
    TEST_ASSERT_TRUE(larger > fence);  // What the resource needs against whoever did not look.
    TEST_ASSERT_EQUAL(ours, server.command("HGETALL k"));
    TEST_ASSERT_EQUAL(text_of(next.token().bytes()) + " 1", ours);
    TEST_ASSERT_EQUAL(Status::ok, next.release());
  }
}

// A waiter that stood still comes back and has its turn.
TEST_ON_SERVER(test_waiter_that_stood_still_should_have_its_turn) {
  server.command("HSET k somebody 1");
  Child waiter([&](Child& child) {
    Client client;
    WRONG_UNLESS(client.connect(calm_config(server.tcp_url())) == Status::ok);
    Owner owner(client);
    ReentrantLock lock(owner, "k", {.lease = 60s});
    WRONG_UNLESS(lock.acquire(40s) == Status::ok);
    WRONG_UNLESS(lock.release() == Status::ok);
    return 0;
  });
  TEST_ASSERT_TRUE(comes([&] { return server.command("PUBSUB CHANNELS") != ""; }));
  waiter.stop();
  server.command("DEL k");
  server.command("PUBLISH redisson_lock__channel:{k} 0");
  breathe(100ms);
  const Instant resumed = Client::now();
  waiter.resume();
  TEST_ASSERT_EQUAL("", waiter.hear());
  TEST_ASSERT_EQUAL(0, waiter.join());
  TEST_ASSERT_TRUE(Client::now() - resumed < 10s);
  TEST_ASSERT_EQUAL("0", server.command("EXISTS k"));
}
