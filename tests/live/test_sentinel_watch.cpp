// SPDX-License-Identifier: MIT
//
// A fail-over that an operator orders, with real sentinels, over both clients: whoever hears of it leaves the old master while that
// still is one and well, which takes it some ten seconds more. Lies and floods are lived through.
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "answering_server.hpp"
#include "clients.hpp"
#include "guided.hpp"
#include "holdfast/sentinels.hpp"
#include "sentinel_setup.hpp"

using holdfast::Sentinels;

static void setUp() {}
static void tearDown() {}

namespace {

using Guided = GuidedBy<Sentinels>;

int count_in(const std::string& text, const std::string& wanted) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(wanted, at)) != std::string::npos; ++at) ++count;
  return count;
}

// Of ours, to both channels: sentinels subscribe at each other, too, and have names of their own.
int listeners_at(const SentinelServer& sentinel) {
  int count = 0;
  const std::string list = sentinel.command("CLIENT LIST");
  for (std::size_t at = 0; (at = list.find("name=holdfast ", at)) != std::string::npos; ++at)
    count += count_in(list.substr(at, list.find('\n', at) - at), " sub=2 ");
  return count;
}
int listeners(const SentinelSetup& setup) {
  int count = 0;
  for (const auto& sentinel : setup.sentinels) count += listeners_at(*sentinel);
  return count;
}

int clients_of(const RedisServer& server) { return count_in(server.command("CLIENT LIST"), "name=holdfast "); }

// Returns when the first sentinel names another master; the old one goes on meanwhile.
RedisServer& order_fail_over(SentinelSetup& setup) {
  RedisServer& before = setup.master();
  TEST_ASSERT_EQUAL("OK", setup.sentinels[0]->command("SENTINEL FAILOVER mymaster"));
  await([&] { return &setup.master() != &before; });
  return setup.master();
}

// Nothing but a message can have told of it so far.
#define EXPECT_STILL_MASTER(before) TEST_ASSERT_EQUAL("master", SentinelSetup::role_of(before))

// A sentinel that names this port, and tells its subscribers what the test says.
class TellingSentinel {
 public:
  explicit TellingSentinel(int port) : named_(std::to_string(port)) {}
  ~TellingSentinel() {
    for (const int connection : connections()) ::shutdown(connection, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int connection : connections_) ::close(connection);
  }
  [[nodiscard]] std::string host() const { return server_.host(); }
  [[nodiscard]] int asked() const { return asked_; }
  [[nodiscard]] int subscribed() const { return subscribed_; }
  void tell(const std::string& bytes) {
    for (const int connection : connections()) ConnectionServer::send_text(connection, bytes);
  }
  static std::string message(const std::string& text) {
    return "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  }

 private:
  std::vector<int> connections() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return connections_;
  }
  void serve(int connection) {
    const std::lock_guard<std::mutex> lock(mutex_);
    connections_.push_back(connection);
    threads_.emplace_back([this, connection] { answer(connection); });
  }
  void answer(int connection) {
    std::string bytes;
    char part[4096];
    for (ssize_t count = 0; (count = ::recv(connection, part, sizeof part, 0)) > 0;) {
      bytes.append(part, static_cast<std::size_t>(count));
      for (AnsweringServer::Words words; AnsweringServer::take_command(bytes, words);)
        ConnectionServer::send_text(connection, answer_to(words));
    }
    ::shutdown(connection, SHUT_RDWR);
  }
  static std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  }
  std::string answer_to(const AnsweringServer::Words& words) {
    if (words[0] == "SENTINEL") {
      ++asked_;
      return "*2\r\n" + bulk("127.0.0.1") + bulk(named_);
    }
    if (words[0] == "SUBSCRIBE") {
      ++subscribed_;
      return "*3\r\n$9\r\nsubscribe\r\n" + bulk(words[1]) + ":1\r\n";
    }
    if (words[0] == "UNSUBSCRIBE") return "*3\r\n$11\r\nunsubscribe\r\n" + bulk(words[1]) + ":0\r\n";
    return words[1] == "ID" ? ":7\r\n" : "+OK\r\n";
  }

  std::string named_;
  std::atomic<int> asked_ = 0;
  std::atomic<int> subscribed_ = 0;
  std::mutex mutex_;
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
  ConnectionServer server_{"", [this](int connection) { serve(::dup(connection)); }};
};

int connections_received(const RedisServer& server) {
  const std::string stats = server.command("INFO stats");
  const std::string field = "total_connections_received:";
  return std::stoi(stats.substr(stats.find(field) + field.size()));
}

// A client and its watchdog that hear, and a lock that is kept.
struct Watched {
  explicit Watched(const std::string& url, Duration lease) : guided(url), lock(owner, "k", {.lease = lease}) {
    TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
    TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
    TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
  }
  Guided guided;
  Client client;
  SentinelWatch client_watch{client};
  WatchdogPlaces<4> places;
  Watchdog watchdog{places.storage()};
  SentinelWatch watchdog_watch{watchdog};
  Owner owner{client};
  FencedLock lock;
};

}  // namespace

// ---- Who hears ---------------------------------------------------------------------------------------------------

TEST_ON_SETUP(test_a_kept_hold_should_go_on_at_the_new_master_while_the_old_one_is_well) {
  Watched ours(setup.url(), 60s);  // Its turn comes after the old master has been told.
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.acquire(20s));
  await([&] { return listeners(setup) != 0; });
  setup.await_replicas();
  RedisServer& before = setup.master();
  RedisServer& after = order_fail_over(setup);
  await([&] { return clients_of(after) != 0; });
  // It does not wait for its turn.
  await([&] { return ours.watchdog.calls() != 0; });
  EXPECT_STILL_MASTER(before);
  TEST_ASSERT_TRUE(ours.lock.held());
  TEST_ASSERT_EQUAL("1", count_on(after, ours.lock));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.release());
}

TEST_ON_NAMED_SETUP(test_a_fail_over_should_be_heard_from_sentinels_that_announce_host_names) {
  Watched ours(setup.url(), 60s);  // Its turn comes after the old master has been told.
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.acquire(20s));
  await([&] { return listeners(setup) != 0; });
  setup.await_replicas();
  RedisServer& before = setup.master();
  const int connections = connections_received(before);
  // What names the master that it is at is no news, also where a name says it.
  breathe(300ms);
  TEST_ASSERT_EQUAL(1, connections_received(before) - connections);  // This question.
  RedisServer& after = order_fail_over(setup);
  await([&] { return clients_of(after) != 0; });
  await([&] { return ours.watchdog.calls() != 0; });
  EXPECT_STILL_MASTER(before);
  TEST_ASSERT_TRUE(ours.lock.held());
  TEST_ASSERT_EQUAL("1", count_on(after, ours.lock));
  // So it was said.
  const std::string said = "+switch-master mymaster localhost " + std::to_string(before.port()) + " localhost " +
                           std::to_string(after.port());
  await([&] { return setup.sentinels[0]->log().find(said) != std::string::npos; });
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.release());
}

TEST_ON_SETUP(test_a_kept_hold_that_the_new_master_does_not_know_should_be_told_at_once) {
  std::atomic<bool> told = false;
  Watched ours(setup.url(), 60s);
  KeepOptions options;
  options.keep = Keep::always;
  options.on_lost = [](void* flag) noexcept { *static_cast<std::atomic<bool>*>(flag) = true; };
  options.context = &told;
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.keep(options));
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.acquire(20s));
  await([&] { return listeners(setup) != 0; });
  setup.await_replicas();
  for (std::size_t replica = 1; replica < 3; ++replica) {
    TEST_ASSERT_EQUAL("OK", setup.servers[replica]->command("CONFIG SET replica-read-only no"));
    TEST_ASSERT_EQUAL("OK", setup.servers[replica]->command("FLUSHALL"));
    TEST_ASSERT_EQUAL("OK", setup.servers[replica]->command("CONFIG SET replica-read-only yes"));
  }
  RedisServer& before = setup.master();
  (void)order_fail_over(setup);
  await([&] { return told.load(); });
  EXPECT_STILL_MASTER(before);
  TEST_ASSERT_FALSE(ours.lock.held());
}

TEST_ON_SETUP(test_a_waiter_should_hear_of_the_fail_over) {
  Guided guided(setup.url());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  Owner owner(client);
  FencedLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  setup.await_replicas();
  std::atomic<Status> outcome = Status::lock_busy;
  std::thread waiter([&] {
    Guided others(setup.url());
    others.config.max_poll = 1h;
    Client other;
    SentinelWatch watch(other);
    if (const Status status = other.connect(others.config); status != Status::ok) {
      outcome = status;
      return;
    }
    Owner other_owner(other);
    FencedLock theirs(other_owner, "k", {.lease = 60s});
    outcome = theirs.acquire(100s);
    (void)theirs.release();
  });
  const std::string channel = "redisson_lock__channel:{k}";
  const auto subscribed_at = [&](RedisServer& server) {
    return server.command("PUBSUB NUMSUB " + channel) == channel + " 1";
  };
  RedisServer& before = setup.master();
  await([&] { return subscribed_at(before) && listeners(setup) == 1; });
  RedisServer& after = order_fail_over(setup);
  await([&] { return subscribed_at(after); });
  EXPECT_STILL_MASTER(before);
  TEST_ASSERT_EQUAL(Status::lock_busy, outcome.load());
  TEST_ASSERT_EQUAL("1", after.command("DEL k"));
  TEST_ASSERT_EQUAL("1", after.command("PUBLISH " + channel + " 0"));
  waiter.join();
  TEST_ASSERT_EQUAL(Status::ok, outcome.load());
  EXPECT_STILL_MASTER(before);
}

#ifndef HOLDFAST_TEST_ASIO  // Its loop hears while it runs, and between two calls of this face it does not.
TEST_ON_SETUP(test_a_call_should_look_for_news_first) {
  Guided guided(setup.url());
  Client client;
  SentinelWatch watch(client);
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  Mutex first(client, "first", {.lease = 60s});
  await([&] {
    TEST_ASSERT_EQUAL(Status::ok, first.acquire(20s));
    TEST_ASSERT_EQUAL(Status::ok, first.release());
    return watch.hearing();
  });
  TEST_ASSERT_EQUAL(1, listeners(setup));
  RedisServer& before = setup.master();
  RedisServer& after = order_fail_over(setup);
  // It heard nothing meanwhile.
  TEST_ASSERT_EQUAL(1, clients_of(before));
  await([&] {
    Mutex probe(client, "probe", {.lease = 60s});
    TEST_ASSERT_EQUAL(Status::ok, probe.acquire(20s));
    const bool there = after.command("EXISTS probe") == "1";
    (void)probe.release();
    return there;
  });
  EXPECT_STILL_MASTER(before);
}
#endif

TEST_ON_SETUP(test_a_sentinel_that_is_lost_should_be_left_for_the_next_one) {
  // The last of the list comes first, and goes.
  std::string hosts;
  for (auto at = setup.sentinels.rbegin(); at != setup.sentinels.rend(); ++at)
    hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string((*at)->port());
  Watched ours("redis-sentinel://" + hosts + "/mymaster", 60s);  // Its turn comes after the old master has been told.
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.acquire(20s));
  await([&] { return listeners_at(*setup.sentinels.back()) != 0; });
  setup.await_replicas();
  setup.sentinels.pop_back();
  await([&] { return listeners(setup) != 0; });
  RedisServer& before = setup.master();
  RedisServer& after = order_fail_over(setup);
  await([&] { return ours.watchdog.calls() != 0; });
  EXPECT_STILL_MASTER(before);
  TEST_ASSERT_TRUE(ours.lock.held());
  TEST_ASSERT_EQUAL("1", count_on(after, ours.lock));
}

// ---- Who lies ----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_a_flood_of_forged_messages_should_cost_few_connections_and_no_hold) {
  RedisServer true_one(server.binary());
  TellingSentinel liar(true_one.port());
  Watched ours("redis-sentinel://" + liar.host() + "/mymaster", 30s);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.acquire(20s));
  await([&] { return liar.subscribed() != 0; });
  const int before = connections_received(true_one);
  const std::uint64_t calls = ours.watchdog.calls();
  const Instant begin = Client::now();
  int told = 0;
  while (Client::now() - begin < 5s) {
    liar.tell(TellingSentinel::message("mymaster 127.0.0.1 1 127.0.0.1 " + std::to_string(1 + told++ % 60000)));
    liar.tell(TellingSentinel::message("other 127.0.0.1 1 127.0.0.1 2"));
    breathe(1ms);
  }
  // At once, and then once in two seconds at most; and the connections of this test.
  const int made = connections_received(true_one) - before - 1;
  TEST_ASSERT_TRUE(made >= 1);
  TEST_ASSERT_TRUE(made <= 1 + (Client::now() - begin) / 2s);
  await([&] { return ours.watchdog.calls() > calls; });
  TEST_ASSERT_TRUE(ours.lock.held());
  TEST_ASSERT_EQUAL("1", count_on(true_one, ours.lock));
  // The last of the messages may lead it away at this moment. Then the release is on its way.
  const Status released = ours.lock.release();
  TEST_ASSERT_TRUE(released == Status::ok || released == Status::not_connected || released == Status::transport_closed);
  const std::string key(ours.lock.key().bytes().string_view());
  await([&] {
    (void)ours.client.tend();
    return true_one.command({"EXISTS", key}) == "0";
  });
}

TEST_ON_SERVER(test_hostile_bytes_should_cost_the_sentinel_its_connection_and_nothing_else) {
  RedisServer true_one(server.binary());
  TellingSentinel liar(true_one.port());
  TellingSentinel honest(true_one.port());
  Watched ours("redis-sentinel://" + liar.host() + "," + honest.host() + "/mymaster", 30s);
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.acquire(20s));
  await([&] { return liar.subscribed() != 0; });
  const int before = connections_received(true_one);
  liar.tell("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$100000\r\n" + std::string(2000, 'x'));
  await([&] { return honest.subscribed() != 0; });
  TEST_ASSERT_EQUAL(1, connections_received(true_one) - before);  // This question.
  TEST_ASSERT_TRUE(ours.lock.held());
  TEST_ASSERT_EQUAL(Status::ok, ours.lock.release());
}
