// SPDX-License-Identifier: MIT
//
// Sentinels and a cluster whose processes speak nothing but TLS, over both clients: locks exclude, waiters are woken, holds follow
// their master, and a process that cannot prove its name is gone around, or named.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "certificates.hpp"
#include "clients.hpp"
#include "cluster_setup.hpp"
#include "guided.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/sentinels.hpp"
#include "holdfast/tls.hpp"
#include "sentinel_setup.hpp"

using holdfast::Cluster;
using holdfast::Sentinels;
using holdfast::Tls;
using holdfast::TlsConfig;
using holdfast::TlsPlaces;

namespace {

// Made anew for each test.
std::unique_ptr<CertificateAuthority> authority;

// Sentinels and clusters name each other by address, and so do certificates here.
const std::string own_name = "IP:127.0.0.1";
const std::string other_name = "IP:127.0.0.9";
const std::string mismatch = "the server's certificate: IP address mismatch: ";

// One for each process of a set-up.
std::vector<ServerTls> certificates(const std::string& names = own_name) {
  static_assert(SentinelSetup::processes == 2 * ClusterSetup::masters);
  std::vector<ServerTls> made;
  for (std::size_t index = 0; index < SentinelSetup::processes; ++index)
    made.push_back(authority->tls_of("node-" + std::to_string(index), names));
  return made;
}

// From now on this server has another certificate. Connections that there are stay.
void show(const RedisServer& server, const std::string& names) {
  static int count = 0;
  const CertificateFiles files = authority->sign("later-" + std::to_string(++count), names);
  TEST_ASSERT_EQUAL("OK",
                    server.command({"CONFIG", "SET", "tls-cert-file", files.certificate, "tls-key-file", files.key}));
}

// Who trusts the authority, and is known to it: all these processes want a client certificate, as they want one of each other.
struct Trust {
  explicit Trust(const std::string& server_name, bool known = true) {
    TlsConfig config;
    config.ca_file.assign(ByteView(authority->file()));
    config.server_name.assign(ByteView(server_name));
    if (known) {
      const CertificateFiles ours = authority->sign("client", "DNS:client");
      config.certificate_file.assign(ByteView(ours.certificate));
      config.key_file.assign(ByteView(ours.key));
    }
    TEST_ASSERT_EQUAL(Status::ok, tls.open(config));
  }
  TlsPlaces<4> places;
  Tls tls{places.storage()};
};
template <class Topology>
struct Member : Trust, GuidedBy<Topology> {
  explicit Member(const std::string& url, const std::string& server_name = {}, bool known = true)
      : Trust(server_name, known), GuidedBy<Topology>(url, &tls) {}
  void expect_connected() {
    const Status status = client.connect(this->config);
    TEST_MESSAGE(text_of(client));
    TEST_ASSERT_EQUAL(Status::ok, status);
  }
  void expect_refused(const std::string& words) {
    TEST_ASSERT_EQUAL(Status::tls_failed, client.connect(this->config));
    TEST_ASSERT_EQUAL(words, text_of(client));
  }
  Client client;
};
using BySentinels = Member<Sentinels>;
using InCluster = Member<Cluster>;

std::string url_of(const SentinelSetup& setup) { return "rediss-sentinel://" + setup.hosts() + "/mymaster"; }
std::string url_of(const ClusterSetup& cluster, std::size_t node) {
  return "rediss-cluster://" + cluster.host(node) + "/k";
}
std::string host_of(int port) { return "127.0.0.1:" + std::to_string(port); }

void expect_exclusion(Client& ours, Client& theirs) {
  Mutex lock(ours, "k", {.lease = 60s});
  Mutex rival(theirs, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, rival.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::ok, rival.acquire(20s));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, rival.release());
}

// Waits for the lock "k" by push, and would sleep for an hour without it.
template <class Topology>
class Waiter {
 public:
  explicit Waiter(const std::string& url) : member_(url) {
    member_.config.max_poll = 1h;
    member_.expect_connected();
    thread_ = std::thread([this] {
      Owner owner(member_.client);
      ReentrantLock lock(owner, "k", {.lease = 60s});
      acquired_ = lock.acquire(100s);
      released_ = lock.release();
    });
  }
  ~Waiter() {
    if (thread_.joinable()) thread_.join();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  void expect_acquired() {
    thread_.join();
    TEST_ASSERT_EQUAL(Status::ok, acquired_);
    TEST_ASSERT_EQUAL(Status::ok, released_);
  }

 private:
  Member<Topology> member_;
  Status acquired_ = Status::lock_busy;
  Status released_ = Status::lock_busy;
  std::thread thread_;
};

void await_subscriber(const RedisServer& server, const std::string& question) {
  const std::string channel = "redisson_lock__channel:{k}";
  TEST_ASSERT_TRUE(comes([&] { return server.command(question + channel) == channel + " 1"; }, 60s));
}

}  // namespace

static void setUp() { authority = std::make_unique<CertificateAuthority>(); }
static void tearDown() { authority.reset(); }

// ---- Sentinels ---------------------------------------------------------------------------------------------------

TEST(test_sentinels_should_lead_to_locks_over_tls) {
  const SentinelSetup setup(server_binaries().front(), certificates());
  BySentinels ours(url_of(setup));
  BySentinels theirs(url_of(setup));
  ours.expect_connected();
  theirs.expect_connected();
  expect_exclusion(ours.client, theirs.client);

  GuidedBy<Sentinels> plain(setup.url());
  Client client;
  TEST_ASSERT_EQUAL(Status::transport_closed, client.connect(plain.config));
  TEST_ASSERT_EQUAL("it ended before the handshake was over: does the server want TLS?: sentinel " +
                        host_of(setup.sentinels[2]->port()),
                    text_of(client));
  BySentinels unknown(url_of(setup), {}, false);
  unknown.expect_refused("the server wants a client certificate: sentinel " + host_of(setup.sentinels[2]->port()));
}

TEST(test_a_hold_and_a_waiter_should_follow_a_fail_over_over_tls) {
  SentinelSetup setup(server_binaries().front(), certificates());
  BySentinels ours(url_of(setup));
  ours.expect_connected();
  Owner owner(ours.client);
  FencedLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  Waiter<Sentinels> waiter(url_of(setup));
  await_subscriber(*setup.servers[0], "PUBSUB NUMSUB ");
  setup.await_replicas();
  RedisServer& after = setup.fail_over();
  await_subscriber(after, "PUBSUB NUMSUB ");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL("1", count_on(after, lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  waiter.expect_acquired();
}

TEST(test_a_fail_over_should_be_heard_of_over_tls) {
  SentinelSetup setup(server_binaries().front(), certificates());
  BySentinels ours(url_of(setup));
  SentinelWatch client_watch(ours.client);
  ours.expect_connected();
  WatchdogPlaces<2> places;
  Watchdog watchdog(places.storage());
  SentinelWatch watchdog_watch(watchdog);
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(ours.client));
  Owner owner(ours.client);
  FencedLock lock(owner, "k", {.lease = 60s});  // Its turn comes after the old master has been told.
  TEST_ASSERT_EQUAL(Status::ok, lock.keep({.keep = Keep::always}));
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(20s));
  const auto heard = [&] {
    std::string list;
    for (const auto& sentinel : setup.sentinels) list += sentinel->command("CLIENT LIST");
    for (std::size_t at = 0; (at = list.find("name=holdfast ", at)) != std::string::npos; ++at)
      if (list.substr(at, list.find('\n', at) - at).find(" sub=2 ") != std::string::npos) return true;
    return false;
  };
  await(heard);
  setup.await_replicas();
  RedisServer& before = setup.master();
  TEST_ASSERT_EQUAL("OK", setup.sentinels[0]->command("SENTINEL FAILOVER mymaster"));
  await([&] { return watchdog.calls() != 0; });
  TEST_ASSERT_EQUAL("master", SentinelSetup::role_of(before));  // Nothing but a message can have told of it.
  RedisServer& after = setup.master();
  TEST_ASSERT_TRUE(&after != &before);
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL("1", count_on(after, lock));
}

TEST(test_a_sentinel_or_a_master_of_another_name_should_be_gone_around_or_named) {
  std::vector<ServerTls> shown = certificates();
  shown[3] = authority->tls_of("another", other_name);
  SentinelSetup setup(server_binaries().front(), shown);
  const std::string wrong = host_of(setup.sentinels[0]->port());
  const std::string right = host_of(setup.sentinels[1]->port());

  BySentinels alone("rediss-sentinel://" + wrong + "/mymaster");
  alone.expect_refused(mismatch + "sentinel " + wrong);
  Mutex never(alone.client, "k");
  TEST_ASSERT_EQUAL(Status::tls_failed, never.acquire(60s));  // Somebody must change something first.

  BySentinels around("rediss-sentinel://" + wrong + "," + right + "/mymaster");
  around.expect_connected();
  Mutex lock(around.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());

  // The master, too, from now on: nobody takes its place.
  show(*setup.servers[0], other_name);
  BySentinels later("rediss-sentinel://" + right + "/mymaster");
  later.expect_refused(mismatch + host_of(setup.servers[0]->port()) + ", named by sentinel " + right);
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  setup.await_replicas();
  setup.fail_over();
  later.expect_connected();
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// ---- Cluster -----------------------------------------------------------------------------------------------------

TEST(test_any_node_should_lead_to_a_lock_over_tls) {
  const ClusterSetup cluster(server_binaries().front(), 15000, certificates());
  for (std::size_t node = 0; node < 2 * ClusterSetup::masters; ++node) {
    InCluster ours(url_of(cluster, node));
    InCluster theirs(url_of(cluster, 0));
    ours.expect_connected();
    theirs.expect_connected();
    expect_exclusion(ours.client, theirs.client);
  }
  GuidedBy<Cluster> plain("redis-cluster://" + cluster.host(0) + "/k");
  Client client;
  TEST_ASSERT_EQUAL(Status::transport_closed, client.connect(plain.config));
  TEST_ASSERT_EQUAL("it ended before the handshake was over: does the server want TLS?: node " + cluster.host(0),
                    text_of(client));
  InCluster unknown(url_of(cluster, 0), {}, false);
  unknown.expect_refused("the server wants a client certificate: node " + cluster.host(0));
}

TEST(test_a_hold_and_a_waiter_should_follow_a_slot_that_is_moved_over_tls) {
  const ClusterSetup cluster(server_binaries().front(), 15000, certificates());
  const std::size_t from = cluster.master_of("k");
  const std::size_t to = cluster.other_than(from);
  InCluster ours(url_of(cluster, from));
  ours.expect_connected();
  Owner owner(ours.client);
  ReentrantLock lock(owner, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  Waiter<Cluster> waiter(url_of(cluster, from));
  await_subscriber(*cluster.servers[from], "PUBSUB SHARDNUMSUB ");
  cluster.move_slot("k", to);
  await_subscriber(*cluster.servers[to], "PUBSUB SHARDNUMSUB ");
  TEST_ASSERT_EQUAL(Status::ok, lock.renew(60s));
  TEST_ASSERT_EQUAL("1", count_on(*cluster.servers[to], lock));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  waiter.expect_acquired();
}

TEST(test_a_node_of_another_name_should_be_gone_around_or_named) {
  const ClusterSetup cluster(server_binaries().front(), 15000, certificates());
  const std::size_t from = cluster.master_of("k");
  const std::size_t to = cluster.other_than(from);
  show(*cluster.servers[to], other_name);

  InCluster alone(url_of(cluster, to));
  alone.expect_refused(mismatch + "node " + cluster.host(to));
  InCluster around("rediss-cluster://" + cluster.host(to) + "," + cluster.host(from) + "/k");
  around.expect_connected();
  Mutex lock(around.client, "k", {.lease = 60s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());

  // The slot's master from now on: nobody takes its place, and the hold lives until somebody has seen to it.
  cluster.move_slot("k", to);
  const std::size_t third = cluster.other_than(to) == from ? ClusterSetup::partner_of(from) : cluster.other_than(to);
  InCluster later(url_of(cluster, third));
  later.expect_refused(mismatch + cluster.host(to) + ", named by node " + cluster.host(third));
  TEST_ASSERT_EQUAL(Status::tls_failed, lock.renew(60s));
  const std::string text = text_of(around.client);
  TEST_MESSAGE(text);
  TEST_ASSERT_TRUE(text.find(mismatch) == 0 && text.find(cluster.host(to)) != std::string::npos);
  TEST_ASSERT_TRUE(lock.held());
  show(*cluster.servers[to], own_name);
  later.expect_connected();
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.renew(60s); }, Status::ok));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// A certificate for all nodes, which names no address of theirs.
TEST(test_a_given_server_name_should_stand_for_every_node) {
  const std::string name = "locks.example.org";
  const ClusterSetup cluster(server_binaries().front(), 15000, certificates("DNS:" + name));
  for (std::size_t node = 0; node < 2 * ClusterSetup::masters; ++node) {
    InCluster member(url_of(cluster, node), name);
    member.expect_connected();
    InCluster without(url_of(cluster, node));
    without.expect_refused(mismatch + "node " + cluster.host(node));
  }
}

TEST(test_nodes_that_name_each_other_by_host_name_should_be_verified_by_it) {
  const ClusterSetup cluster(server_binaries().front(), 15000, certificates("DNS:localhost"));
  for (const auto& server : cluster.servers)
    TEST_ASSERT_EQUAL("OK", server->command("CONFIG SET cluster-announce-hostname localhost "
                                            "cluster-preferred-endpoint-type hostname"));
  const std::size_t master = cluster.master_of("k");
  const std::size_t other = cluster.other_than(master);
  const std::string named = "localhost:" + std::to_string(cluster.servers[master]->port());
  // It is told by the bus, whose rounds take seconds.
  TEST_ASSERT_TRUE(
      comes([&] { return cluster.servers[other]->command("EXISTS k").find(named) != std::string::npos; }, 60s));
  const std::string port = std::to_string(cluster.servers[other]->port());
  InCluster member("rediss-cluster://localhost:" + port + "/k");
  member.expect_connected();
  InCluster by_address("rediss-cluster://127.0.0.1:" + port + "/k");
  by_address.expect_refused(mismatch + "node 127.0.0.1:" + port);
}
