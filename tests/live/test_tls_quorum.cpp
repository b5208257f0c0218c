// SPDX-License-Identifier: MIT
//
// A quorum whose nodes speak TLS: what is asked for leaves at once, whoever keeps the holds, and a node that shakes no hands costs
// no time of the processor.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "holdfast/redlock.hpp"
#include "holdfast/tls.hpp"
#include "holdfast/watchdog.hpp"
#include "listen_somewhere.hpp"
#include "live_fixture.hpp"
#include "patience.hpp"
#include "tls_server.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static std::atomic<int> polls = 0;

extern "C" {
int __real_ppoll(pollfd*, nfds_t, const timespec*, const sigset_t*);
int __wrap_ppoll(pollfd* entries, nfds_t count, const timespec* limit, const sigset_t* mask) {
  ++polls;
  return __real_ppoll(entries, count, limit, mask);
}
}

static void setUp() {}
static void tearDown() {}

namespace {

// Many requests that get no answer fit into it, and none of them lasts until an open round asks once more: a thirtieth of it.
constexpr Duration lease = 6s;
constexpr Duration request_timeout = 150ms;
static_assert(request_timeout < lease / 30);
constexpr QuorumTiming timing = {.lease = lease, .node_timeout = 3s, .kept = true};

// Three servers of one authority, and a quorum of them.
struct World {
  World() {
    const CertificateFiles files = authority.sign("server", "DNS:localhost,IP:127.0.0.1");
    TlsConfig config;
    config.ca_file.assign(ByteView(authority.file()));
    TEST_ASSERT_EQUAL(Status::ok, tls.open(config));
    for (int node = 0; node < 3; ++node) {
      servers.emplace_back(authority, files);
      ClientConfig& found = configs.emplace_back();
      found.tls = &tls;
      TEST_ASSERT_EQUAL(Status::ok, parse_url(ByteView(servers.back().url()), found));
      found.connect_timeout = 5s;
      found.request_timeout = request_timeout;
    }
    TEST_ASSERT_EQUAL(Status::ok, connect());
  }
  Status connect() { return quorum.connect(configs.data(), configs.size(), {.restart_guard = false}); }

  CertificateAuthority authority;
  std::deque<TlsServer> servers;
  TlsPlaces<8> places;
  Tls tls{places.storage()};
  std::vector<ClientConfig> configs;
  Quorum<3> quorum;
};

}  // namespace

TEST(test_tend_should_keep_a_redlock_over_tls) {
  World world;
  RedlockMutex<3> lock(world.quorum, "k", timing);
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
  const Instant until = Client::now() + lease + 500ms;
  while (Client::now() < until) {
    const Instant next = world.quorum.tend();
    const Instant now = Client::now();
    if (next > now) breathe(earlier(next, now + 200ms) - now);  // It said when to call it again.
  }
  TEST_ASSERT_TRUE(lock.held());
}

TEST(test_a_call_that_waits_should_keep_another_redlock_over_tls) {
  World world;
  for (const TlsServer& server : world.servers) {
    TEST_ASSERT_EQUAL("1", server.plain().command("HSET busy somebody 1"));
    TEST_ASSERT_EQUAL("1", server.plain().command("PEXPIRE busy 60000"));
  }
  RedlockMutex<3> kept(world.quorum, "kept", timing);
  QuorumOwner<3> owner(world.quorum);
  RedlockReentrantLock<3> busy(owner, "busy", timing);
  TEST_ASSERT_EQUAL(Status::ok, kept.acquire(5s));
  TEST_ASSERT_TRUE(busy.acquire(lease + 500ms) != Status::ok);
  TEST_ASSERT_TRUE(kept.held());
}

TEST(test_a_watchdog_should_keep_a_redlock_over_tls) {
  World world;
  QuorumWatchdog watchdog;
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(world.quorum));
  RedlockMutex<3> lock(world.quorum, "k", timing);
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
  ::poll(nullptr, 0, static_cast<int>((lease + 500ms) / 1ms));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// A socket takes bytes at any time: that is nothing to wait for before the peer has said something.
TEST(test_a_watchdog_should_sleep_while_a_node_shakes_no_hands) {
  World world;
  int port = 0;
  const int silent = listen_somewhere(port);
  world.configs.back().port = static_cast<std::uint16_t>(port);
  TEST_ASSERT_EQUAL(Status::ok, world.connect());
  QuorumWatchdog watchdog;
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(world.quorum));
  RedlockMutex<3> lock(world.quorum, "k", timing);
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(5s));
  const int before = polls;
  ::poll(nullptr, 0, 1000);
  TEST_ASSERT_TRUE(polls - before < 500);  // Some attempts to connect and a renewal; who spins has tens of thousands.
  TEST_ASSERT_TRUE(lock.held());
  ::close(silent);
}
