// SPDX-License-Identifier: MIT
//
// Grants that count only when replicas have confirmed them, over both clients, with a real master and real replicas. A replica
// that is stopped confirms nothing.
#include <atomic>
#include <string>
#include <thread>

#include "client_list.hpp"
#include "clients.hpp"
#include "proxy.hpp"
#include "replica_setup.hpp"

static void setUp() {}
static void tearDown() {}

namespace {

ClientConfig acked_config(const ReplicaSetup& setup, std::uint8_t acks, Duration timeout = 5s) {
  ClientConfig config = config_for(setup.servers[0]->unix_url());
  config.acks = acks;
  config.acks_timeout = timeout;
  config.stall_timeout = 20s;
  return config;
}

struct Acked {
  explicit Acked(const ClientConfig& config) { TEST_ASSERT_EQUAL(Status::ok, client.connect(config)); }
  Client client;
  Acks acks{client};
};

// How often the master was asked.
int waits_of(const RedisServer& server) {
  const std::string text = server.command("INFO commandstats");
  const std::string name = "cmdstat_wait:calls=";
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
}

// What was posted is done.
void expect_free(const RedisServer& server, const std::string& key) {
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS " + key) == "0"; }));
}

struct Stopped {
  explicit Stopped(const ReplicaSetup& setup, std::size_t first = 1) : servers(setup.servers), begin(first) {
    for (std::size_t index = begin; index < servers.size(); ++index) servers[index]->pause();
  }
  ~Stopped() { resume(); }
  void resume() const {
    for (std::size_t index = begin; index < servers.size(); ++index) servers[index]->resume();
  }
  const std::vector<std::unique_ptr<RedisServer>>& servers;
  std::size_t begin;
};

}  // namespace

// TEST_WITH_REPLICAS(name) { ... `setup` is a fresh ReplicaSetup ... }
#define TEST_WITH_REPLICAS(name)                          \
  static void name(ReplicaSetup& setup);                  \
  TEST(name) {                                            \
    for (const std::string& binary : server_binaries()) { \
      TEST_MESSAGE("server: " << binary);                 \
      ReplicaSetup setup(binary);                         \
      name(setup);                                        \
    }                                                     \
  }                                                       \
  static void name([[maybe_unused]] ReplicaSetup& setup)

TEST_WITH_REPLICAS(test_a_grant_should_be_on_every_replica_that_was_asked_for) {
  Acked acked(acked_config(setup, 2));
  Mutex lock(acked.client, "k", {.lease = 60s});
  const int before = waits_of(*setup.servers[0]);
  for (int round = 0; round < 100; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_TRUE(lock.held());
    for (std::size_t index = 1; index < setup.servers.size(); ++index)
      TEST_ASSERT_EQUAL(std::string(lock.token().bytes().string_view()), setup.servers[index]->command("GET k"));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  TEST_ASSERT_EQUAL(100, waits_of(*setup.servers[0]) - before);
}

TEST_WITH_REPLICAS(test_a_grant_that_too_few_replicas_have_should_be_released_and_told) {
  const Stopped stopped(setup, 2);
  Acked acked(acked_config(setup, 2, 50ms));
  Mutex lock(acked.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::too_few_replicas, lock.try_acquire());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::not_held, lock.release());
  expect_free(*setup.servers[0], "k");
  TEST_ASSERT_EQUAL(Status::too_few_replicas, lock.acquire(300ms));
  expect_free(*setup.servers[0], "k");
  TEST_ASSERT_TRUE(waits_of(*setup.servers[0]) > 2);

  Acked modest(acked_config(setup, 1));
  Mutex other(modest.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, other.acquire(20s));
  TEST_ASSERT_EQUAL("1", setup.servers[1]->command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, other.release());
}

TEST_WITH_REPLICAS(test_a_waiting_acquire_should_try_again_until_the_replicas_are_back) {
  const Stopped stopped(setup);
  Acked acked(acked_config(setup, 1, 50ms));
  Mutex lock(acked.client, "k", {.lease = 60s});
  const int before = waits_of(*setup.servers[0]);
  std::thread replicas([&] {
    (void)comes([&] { return waits_of(*setup.servers[0]) - before >= 2; });
    stopped.resume();
  });
  const Status status = lock.acquire(20s);
  replicas.join();
  TEST_ASSERT_EQUAL(Status::ok, status);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_WITH_REPLICAS(test_nobody_should_see_a_hold_before_it_is_confirmed) {
  const Stopped stopped(setup);
  Acked acked(acked_config(setup, 1, 400ms));
  int told = 0;
  Owner owner(acked.client);
  ReentrantLock lock(owner, "k");
  KeepOptions keep;
  keep.on_lost = [](void* context) noexcept { ++*static_cast<int*>(context); };
  keep.on_at_risk = keep.on_lost;
  keep.context = &told;
  TEST_ASSERT_EQUAL(Status::ok, lock.keep(keep));
  std::atomic<bool> over = false;
  std::atomic<bool> seen = false;
  std::thread other([&] {
    while (!over) seen = seen || lock.held() || lock.remaining() != Duration::zero();
  });
  // The second one has so short a lease that it passes before the replicas are given up.
  const Status status = lock.try_acquire();
  ReentrantLock brief(owner, "brief", {.lease = 100ms});
  TEST_ASSERT_EQUAL(Status::ok, brief.keep(keep));
  const Status late = brief.try_acquire();
  over = true;
  other.join();
  TEST_ASSERT_EQUAL(Status::too_few_replicas, status);
  TEST_ASSERT_EQUAL(Status::timed_out, late);
  TEST_ASSERT_FALSE(seen);
  TEST_ASSERT_EQUAL(0, told);
  expect_free(*setup.servers[0], "k");
}

// The master holds up who waits for replicas. No other hold of the client may be behind that.
TEST_WITH_REPLICAS(test_a_hold_should_be_kept_alive_while_another_waits_for_replicas) {
  Acked acked(acked_config(setup, 1, 2s));
  int told = 0;
  Mutex kept(acked.client, "kept", {.lease = 600ms});
  KeepOptions keep;
  keep.keep = Keep::always;
  keep.on_lost = [](void* context) noexcept { ++*static_cast<int*>(context); };
  keep.context = &told;
  TEST_ASSERT_EQUAL(Status::ok, kept.keep(keep));
  TEST_ASSERT_EQUAL(Status::ok, kept.acquire(20s));
  {
    const Stopped stopped(setup);
    Mutex lock(acked.client, "k", {.lease = 60s});
    TEST_ASSERT_EQUAL(Status::too_few_replicas, lock.try_acquire());
    TEST_ASSERT_TRUE(kept.held());
    TEST_ASSERT_EQUAL(0, told);
    const Instant begin = holdfast::Client::now();
    TEST_ASSERT_EQUAL(Status::ok, kept.release());
    TEST_ASSERT_TRUE(holdfast::Client::now() - begin < 2s);
  }
}

// What the replicas confirm is a write of the lane's own: a kind whose renewal writes nothing would be confirmed by nobody.
TEST_WITH_REPLICAS(test_grants_of_every_kind_should_be_confirmed) {
  Acked acked(acked_config(setup, 2, 100ms));
  Owner owner(acked.client);
  Mutex mutex(acked.client, "mutex", {.lease = 60s});
  Mutex fenced_mutex(acked.client, "fenced_mutex", {.lease = 60s}, {.announce = true, .fence = true});
  ReentrantLock reentrant(owner, "reentrant", {.lease = 60s});
  FencedLock fenced(owner, "fenced", {.lease = 60s});
  FairLock fair(owner, "fair", {.lease = 60s});
  MultiLock multi(owner, {"multi1", "multi2"}, {.lease = 60s});
  ReadWriteLock both(owner, "both", {.read = {.lease = 20s}, .write = {.lease = 60s}});
  Semaphore semaphore(acked.client, "semaphore", 2, {.lease = 60s});
  BlockingLock* const locks[] = {&mutex, &fenced_mutex, &reentrant,    &fenced,   &fair,
                                 &multi, &both.read(),  &both.write(), &semaphore};
  for (const Duration wait : {0ms, 150ms})
    for (BlockingLock* const lock : locks) {
      TEST_MESSAGE(lock->key().bytes().string_view());
      const auto acquire = [&] { return wait == 0ms ? lock->try_acquire() : lock->acquire(wait); };
      {
        const Stopped stopped(setup);
        TEST_ASSERT_EQUAL(Status::too_few_replicas, acquire());
        TEST_ASSERT_FALSE(lock->held());
      }
      TEST_ASSERT_EQUAL(Status::ok, lock->acquire(20s));
      TEST_ASSERT_TRUE(lock->held());
      TEST_ASSERT_EQUAL(Status::ok, lock->release());
    }
}

TEST_WITH_REPLICAS(test_a_hold_that_is_acquired_once_more_should_ask_nobody) {
  Acked acked(acked_config(setup, 2, 100ms));
  Owner owner(acked.client);
  ReentrantLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  const Stopped stopped(setup);
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL("2", count_on(*setup.servers[0], lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_WITH_REPLICAS(test_a_cancel_should_end_the_wait_for_replicas_and_leave_nothing) {
  const Stopped stopped(setup);
  Acked acked(acked_config(setup, 1, 15s));
  Mutex lock(acked.client, "k", {.lease = 60s});
  const Instant begin = holdfast::Client::now();
  std::thread canceller([&] {
    (void)comes([&] { return !blocked_in_wait(*setup.servers[0]).empty(); });
    acked.client.cancel();
  });
  const Status status = lock.acquire(20s);
  canceller.join();
  TEST_ASSERT_EQUAL(Status::cancelled, status);
  TEST_ASSERT_FALSE(lock.held());
  expect_free(*setup.servers[0], "k");
  TEST_ASSERT_TRUE(holdfast::Client::now() - begin < 15s);
}

TEST_WITH_REPLICAS(test_a_lost_connection_should_confirm_nothing) {
  const RedisServer& master = *setup.servers[0];
  Acked acked(acked_config(setup, 1, 15s));
  Mutex lock(acked.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  {
    const Stopped stopped(setup);
    std::thread killer([&] {
      (void)comes([&] {
        const std::string id = blocked_in_wait(master);
        return !id.empty() && master.command("CLIENT KILL ID " + id) == "1";
      });
    });
    const Status status = lock.try_acquire();
    killer.join();
    TEST_ASSERT_EQUAL(Status::transport_closed, status);
    TEST_ASSERT_FALSE(lock.held());
    expect_free(master, "k");
  }
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_EQUAL("1", master.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_WITH_REPLICAS(test_who_asks_for_no_replicas_should_have_no_connection_for_them) {
  Proxy proxy(setup.servers[0]->socket_path() + ".proxy", setup.servers[0]->socket_path());
  ClientConfig config = config_for(proxy.url());
  Acked acked(config);
  TEST_ASSERT_EQUAL("OK", setup.servers[0]->command("SET k somebody"));
  Mutex lock(acked.client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(200ms));
  TEST_ASSERT_EQUAL(1, proxy.connections());
}

TEST_WITH_REPLICAS(test_a_user_who_may_not_wait_should_be_told) {
  const RedisServer& master = *setup.servers[0];
  TEST_ASSERT_EQUAL("OK", master.command("ACL SETUSER u on >p ~* &* +@all -wait"));
  ClientConfig config = acked_config(setup, 1);
  config.user = "u";
  config.password = "p";
  Acked acked(config);
  Mutex lock(acked.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::no_permission, lock.acquire(20s));
  TEST_ASSERT_FALSE(lock.held());
  expect_free(master, "k");
}

TEST_WITH_REPLICAS(test_what_was_confirmed_should_outlive_the_master) {
  Acked acked(acked_config(setup, 2));
  Owner owner(acked.client);
  FencedLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  setup.servers[0]->stop();
  RedisServer& heir = *setup.servers[1];
  TEST_ASSERT_EQUAL("OK", heir.command("REPLICAOF NO ONE"));
  TEST_ASSERT_EQUAL("1", count_on(heir, lock));
  Client other;
  Owner rival(connected(other, heir));
  ReentrantLock same(rival, "k");
  TEST_ASSERT_EQUAL(Status::lock_busy, same.try_acquire());
}

#ifndef HOLDFAST_TEST_ASIO
TEST_WITH_REPLICAS(test_acks_without_a_connection_for_them_should_be_refused) {
  Client client;
  TEST_ASSERT_EQUAL(Status::invalid_argument, client.connect(acked_config(setup, 1)));
  TEST_ASSERT_EQUAL("acks", std::string(client.problem().field));
}
#endif

TEST_WITH_REPLICAS(test_acks_outside_their_limits_should_be_refused) {
  ClientConfig config = acked_config(setup, holdfast::acks_max + 1);
  TEST_ASSERT_EQUAL("acks", std::string(holdfast::validate(config).field));
  config = acked_config(setup, 1, config.stall_timeout);
  TEST_ASSERT_EQUAL("acks_timeout", std::string(holdfast::validate(config).field));
  config.acks_timeout = 0ms;
  TEST_ASSERT_EQUAL("acks_timeout", std::string(holdfast::validate(config).field));
}
