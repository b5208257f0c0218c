// SPDX-License-Identifier: MIT
//
// Sentinels with real servers, over both clients: the master is found, lies and silence are lived through, and a fail-over in the
// middle of holds loses nothing without saying so.
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clients.hpp"
#include "guided.hpp"
#include "holdfast/sentinels.hpp"
#include "listen_somewhere.hpp"
#include "sentinel_setup.hpp"

using holdfast::Sentinels;

static void setUp() {}
static void tearDown() {}

namespace {

using Guided = GuidedBy<Sentinels>;

// A listener that answers each connection with these bytes; with none it stays silent.
class FakeSentinel {
 public:
  explicit FakeSentinel(std::string bytes = {}) : bytes_(std::move(bytes)) {
    listener_ = listen_somewhere(port_);
    thread_ = std::thread([this] { run(); });
  }
  ~FakeSentinel() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (const int connection : connections_) ::close(connection);
    ::close(listener_);
  }
  FakeSentinel(const FakeSentinel&) = delete;
  FakeSentinel& operator=(const FakeSentinel&) = delete;
  [[nodiscard]] std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] int asked() const { return asked_; }

 private:
  void run() {
    for (int connection = 0; (connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      ++asked_;
      connections_.push_back(connection);
      if (bytes_.empty()) continue;
      char question[512];
      (void)::recv(connection, question, sizeof question, 0);
      (void)::send(connection, bytes_.data(), bytes_.size(), MSG_NOSIGNAL);
    }
  }

  std::string bytes_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> asked_ = 0;
  std::vector<int> connections_;
  std::thread thread_;
};

// What a sentinel says that names this port: to CLIENT SETNAME, CLIENT ID and the question.
std::string naming(int port) {
  const std::string text = std::to_string(port);
  return "+OK\r\n:1\r\n*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::string closed_host() { return "127.0.0.1:" + std::to_string(RedisServer::free_port()); }

}  // namespace

// ---- Finding the master ------------------------------------------------------------------------------------------

TEST_ON_SETUP(test_a_lock_should_be_taken_on_the_master_that_the_sentinels_name) {
  Guided guided(setup.url());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_EQUAL("1", setup.servers[0]->command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());

  // Refused, silent, and then a true one.
  const FakeSentinel silent;
  Guided later("redis-sentinel://" + closed_host() + "," + silent.host() + "," + setup.hosts() + "/mymaster/3");
  Client other;
  TEST_ASSERT_EQUAL(Status::ok, other.connect(later.config));
  Mutex third(other, "k");
  TEST_ASSERT_EQUAL(Status::ok, third.acquire(20s));
  TEST_ASSERT_EQUAL("0", setup.servers[0]->command("EXISTS k"));  // In another database.
  TEST_ASSERT_EQUAL(1, silent.asked());

  Guided unknown("redis-sentinel://" + setup.hosts() + "/nobody");
  Client lost;
  TEST_ASSERT_EQUAL(Status::unknown_service, lost.connect(unknown.config));
  TEST_ASSERT_TRUE(text_of(lost).find("it does not know the service nobody: sentinel 127.0.0.1:") == 0);
}

TEST_ON_SETUP(test_a_sentinel_that_names_a_replica_should_be_proven_wrong) {
  const FakeSentinel liar(naming(setup.servers[1]->port()));
  Guided guided("redis-sentinel://" + liar.host() + "," + setup.hosts() + "/mymaster");
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  TEST_ASSERT_EQUAL(1, liar.asked());
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_EQUAL("1", setup.servers[0]->command("EXISTS k"));

  Guided alone("redis-sentinel://" + liar.host() + "/mymaster");
  Client other;
  TEST_ASSERT_EQUAL(Status::read_only, other.connect(alone.config));
  TEST_ASSERT_EQUAL(
      "it is a replica: 127.0.0.1:" + std::to_string(setup.servers[1]->port()) + ", named by sentinel " + liar.host(),
      text_of(other));
}

TEST(test_connecting_should_end_in_time_where_no_sentinel_answers) {
  const FakeSentinel first;
  const FakeSentinel second;
  const FakeSentinel third("+OK\r\n:1\r\n*2\r\n$3\r\na b\r\n$1\r\n1\r\n");
  Guided guided("redis-sentinel://" + first.host() + "," + second.host() + "/mymaster");
  guided.config.connect_timeout = 600ms;
  Client client;
  Instant begin = Client::now();
  TEST_ASSERT_EQUAL(Status::timed_out, client.connect(guided.config));
  TEST_ASSERT_TRUE(Client::now() - begin < 5s);
  TEST_ASSERT_EQUAL(1, first.asked());
  TEST_ASSERT_EQUAL(1, second.asked());

  Guided hostile("redis-sentinel://" + third.host() + "/mymaster");
  TEST_ASSERT_EQUAL(Status::protocol_error, client.connect(hostile.config));
  TEST_ASSERT_EQUAL("its answer is no host and port: sentinel " + third.host(), text_of(client));
}

// ---- Fail-over ---------------------------------------------------------------------------------------------------

TEST_ON_SETUP(test_a_hold_that_the_new_master_knows_should_be_renewed_on) {
  Guided guided(setup.url());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  Owner owner(client);
  FencedLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  const std::uint64_t fence = lock.fence();
  setup.await_replicas();
  RedisServer& after = setup.fail_over();
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL("1", count_on(after, lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", after.command("EXISTS k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
  TEST_ASSERT_TRUE(lock.fence() > fence);
}

TEST_ON_SETUP(test_a_hold_that_the_new_master_does_not_know_should_be_lost_and_told) {
  Guided guided(setup.url());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  Owner owner(client);
  FencedLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  const std::uint64_t fence = lock.fence();
  setup.await_replicas();
  // As if it had never reached them, nor had the counter.
  for (std::size_t replica = 1; replica < 3; ++replica) {
    TEST_ASSERT_EQUAL("OK", setup.servers[replica]->command("CONFIG SET replica-read-only no"));
    TEST_ASSERT_EQUAL("OK", setup.servers[replica]->command("FLUSHALL"));
    TEST_ASSERT_EQUAL("OK", setup.servers[replica]->command("CONFIG SET replica-read-only yes"));
  }
  RedisServer& after = setup.fail_over();
  // Another takes it on the new master, with a larger fence, and keeps it whatever the first does.
  Guided others(setup.url());
  Client other;
  TEST_ASSERT_EQUAL(Status::ok, other.connect(others.config));
  Owner other_owner(other);
  FencedLock theirs(other_owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, theirs.acquire(20s));
  TEST_ASSERT_TRUE(theirs.fence() > fence);
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_TRUE(lock.release() != Status::ok);
  TEST_ASSERT_EQUAL(Status::ok, theirs.renew());
  TEST_ASSERT_EQUAL("1", count_on(after, theirs));
}

// Sentinels that resolve and announce host names, which a cloud has where addresses change.
TEST_ON_NAMED_SETUP(test_a_master_with_a_host_name_should_be_found_before_and_after_a_fail_over) {
  TEST_ASSERT_EQUAL("localhost " + std::to_string(setup.servers[0]->port()),
                    setup.sentinels[0]->command("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"));
  Guided guided(setup.url());
  guided.config.acks = 1;  // Their connection asks for the name, too.
  guided.config.acks_timeout = 2s;
  Client client;
  Acks acks(client);
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  TEST_ASSERT_EQUAL("localhost", std::string(client.config().host.view().string_view()));
  Owner owner(client);
  FencedLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_EQUAL("1", count_on(*setup.servers[0], lock));
  setup.await_replicas();
  RedisServer& after = setup.fail_over();
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL("1", count_on(after, lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", after.command("EXISTS k"));

  // The server stops without a word to anybody: the name is asked for once more.
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  (void)after.command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// What every replica has confirmed, whichever is promoted has. Nobody waits for replication here.
TEST_ON_SETUP(test_a_grant_with_acks_should_be_known_to_the_new_master) {
  Guided guided(setup.url());
  guided.config.acks = 2;
  guided.config.acks_timeout = 2s;
  Client client;
  Acks acks(client);
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  Owner owner(client);
  FencedLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  const std::uint64_t fence = lock.fence();
  RedisServer& after = setup.fail_over();
  TEST_ASSERT_EQUAL("1", count_on(after, lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  // The connection for acks follows the master, and the old one is a replica again.
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  TEST_ASSERT_TRUE(lock.fence() > fence);
  TEST_ASSERT_EQUAL("1", count_on(after, lock));
}

// With min-replicas-to-write an old master that lives on refuses what is to be written as soon as its replicas follow the new one:
// some ten seconds before Sentinel tells it to be a replica, too.
TEST_ON_SETUP(test_an_old_master_that_its_replicas_have_left_should_be_left_at_once) {
  for (const auto& server : setup.servers)
    TEST_ASSERT_EQUAL("OK", server->command("CONFIG SET min-replicas-to-write 1 min-replicas-max-lag 10"));
  Guided guided(setup.url());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  Owner owner(client);
  FencedLock held(owner, "held", {.lease = 60s});
  FencedLock other(owner, "other", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, held.acquire(20s));
  setup.await_replicas();
  RedisServer& before = setup.master();
  TEST_ASSERT_EQUAL("OK", setup.sentinels[0]->command("SENTINEL FAILOVER mymaster"));
  await([&] { return before.command("SET probe 1").find("-NOREPLICAS") == 0; });
  TEST_ASSERT_EQUAL(Status::ok, other.acquire(20s));
  TEST_ASSERT_EQUAL(Status::ok, held.renew());
  TEST_ASSERT_EQUAL("master", SentinelSetup::role_of(before));
  RedisServer& after = setup.master();
  TEST_ASSERT_TRUE(&after != &before);
  TEST_ASSERT_EQUAL("1", count_on(after, other));
  TEST_ASSERT_EQUAL("1", count_on(after, held));
}

// A waiter's subscription goes where the master is, too.
TEST_ON_SETUP(test_a_waiter_should_be_woken_on_the_new_master) {
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
  const auto await_subscriber = [&](RedisServer& server) {
    await([&] { return server.command("PUBSUB NUMSUB " + channel) == channel + " 1"; });
  };
  await_subscriber(*setup.servers[0]);
  RedisServer& after = setup.fail_over();
  await_subscriber(after);
  TEST_ASSERT_EQUAL(Status::lock_busy, outcome.load());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  waiter.join();
  TEST_ASSERT_EQUAL(Status::ok, outcome.load());
}

// No call waits for sentinels beyond its own deadline, and what is held stays held so long.
TEST_ON_SETUP(test_deadlines_should_hold_while_sentinels_stand_still) {
  Guided guided(setup.url());
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(guided.config));
  Mutex lock(client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  for (const auto& sentinel : setup.sentinels) sentinel->pause();
  (void)setup.servers[0]->command("CLIENT KILL TYPE normal SKIPME yes");  // Ours, and those of the sentinels.
  Mutex other(client, "other");
  const Instant begin = Client::now();
  TEST_ASSERT_TRUE(other.acquire(400ms) != Status::ok);
  TEST_ASSERT_TRUE(Client::now() - begin < 3s);  // Of connect_timeout it would have been five.
  TEST_ASSERT_TRUE(lock.held());
  for (const auto& sentinel : setup.sentinels) sentinel->resume();
  TEST_ASSERT_EQUAL(Status::ok, other.acquire(20s));
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
}
