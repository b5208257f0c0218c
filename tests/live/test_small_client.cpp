// SPDX-License-Identifier: MIT
//
// SmallClient: a Mutex with the smallest buffers that serve it. What does not fit into them is refused by name, and nothing is
// lost by that. No test here uses the heap through the client.
#include "hands.hpp"
#include "heap_trap.hpp"
#include "live_fixture.hpp"
#include "patience.hpp"
#include "proxy.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

std::string proxy_path(const RedisServer& server) { return server.socket_path() + ".proxy"; }

const std::string longest_key(key_size_max, 'k');

}  // namespace

TEST_ON_SERVER(test_a_mutex_should_be_acquired_renewed_released_and_excluded_with_any_key) {
  for (const std::string& key : {std::string("k"), longest_key}) {
    SmallClient client;
    SmallClient rival_client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
    TEST_ASSERT_EQUAL(Status::ok, rival_client.connect(config_for(server.tcp_url())));
    Mutex lock(client, key, {.lease = 20s});
    Mutex rival(rival_client, key, {.lease = 20s});
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_busy, rival.try_acquire());
    TEST_ASSERT_EQUAL(Status::lock_busy, rival.acquire(50ms));
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    bool locked = false;
    TEST_ASSERT_EQUAL(Status::ok, rival.is_locked(locked));
    TEST_ASSERT_TRUE(locked);
    TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command({"GET", key})));
    TEST_ASSERT_EQUAL(Status::ok, lock.post_release());
    TEST_ASSERT_EQUAL(Status::ok, rival.acquire(10s));
    TEST_ASSERT_EQUAL(Status::ok, rival.release());
    TEST_ASSERT_EQUAL("0", server.command({"EXISTS", key}));
  }
}

// The texts of the scripts leave in one piece, though they are the longest of all requests.
TEST_ON_SERVER(test_scripts_that_the_server_forgot_should_go_by_their_texts) {
  SmallClient client;
  ClientConfig config = config_for(server.unix_url());
  config.native_delete = false;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, longest_key, {.lease = 20s});
  for (int round = 0; round < 3; ++round) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, lock.renew());
    server.command("SCRIPT FLUSH");
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  TEST_ASSERT_EQUAL("0", server.command({"EXISTS", longest_key}));
}

// A hold with the automatic lease is kept by the calls that wait and by tend(), of which each finds room.
TEST_ON_SERVER(test_a_kept_hold_should_be_renewed) {
  SmallClient client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Mutex lock(client, longest_key, {.lease = 600ms, .kept = true});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  const Instant end = Client::now() + 1500ms;
  while (Client::now() < end) {
    const Instant next = client.tend();
    TEST_ASSERT_TRUE(lock.held());
    std::this_thread::sleep_for(std::min<Duration>(std::max<Duration>(next - Client::now(), 1ms), 50ms));
  }
  TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command({"GET", longest_key})));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// [rule 7] [rule 8] A lost reply is unknown and taken back behind it, on the same connection or first on the next.
TEST_ON_SERVER(test_a_lost_reply_should_be_unknown_and_compensated) {
  Proxy proxy(proxy_path(server), server.socket_path());
  SmallClient client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(hasty_config_for(proxy.url())));
  Mutex lock(client, longest_key, {.lease = 20s});
  proxy.hold(true);
  TEST_ASSERT_EQUAL(Status::timed_out, lock.try_acquire());
  TEST_ASSERT_EQUAL(1U, client.compensations_pending());
  TEST_ASSERT_FALSE(lock.held());
  proxy.hold(false);
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
  TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command({"GET", longest_key})));
  TEST_ASSERT_EQUAL(0U, client.compensations_pending());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());

  proxy.cut_after(1);
  TEST_ASSERT_EQUAL(Status::transport_closed, lock.try_acquire());
  Mutex other(client, "other");
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return other.try_acquire(); }, Status::ok));
  TEST_ASSERT_EQUAL("0", server.command({"EXISTS", longest_key}));
  TEST_ASSERT_EQUAL(0U, client.compensations_pending());
  TEST_ASSERT_EQUAL(Status::ok, other.release());
}

// With all that it may say.
TEST_ON_SERVER(test_the_longest_handshake_should_fit) {
  const std::string password(small_texts_size - 2 - client_name_size_max - 1 - server.socket_path().size() - 1, 'p');
  const std::string name(client_name_size_max, 'n');
  server.command({"CONFIG", "SET", "requirepass", password});
  ClientConfig config = config_for(server.unix_url());
  config.password = password;
  config.client_name = name;
  config.database = 3;
  {
    SmallClient client;
    TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
    TEST_ASSERT_TRUE(client.server().run_id_known);
    TEST_ASSERT_TRUE(client.server().client_id > 0);
    Mutex lock(client, "k");
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    RawConnection raw(server.socket_path());
    raw.command({"AUTH", password});
    TEST_ASSERT_TRUE(raw.command("CLIENT LIST").find("name=" + name) != std::string::npos);
    raw.command("SELECT 3");
    TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(raw.command("GET k")));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
}

TEST_ON_SERVER(test_texts_that_do_not_fit_should_be_refused_by_their_names) {
  SmallClient client;
  ClientConfig config = config_for(server.unix_url());
  config.password = ByteView(std::string(password_size_max, 'p'));
  TEST_ASSERT_EQUAL(Status::invalid_argument, client.connect(config));
  TEST_ASSERT_EQUAL(std::string("password"), std::string(client.problem().field));
  config = config_for(server.tcp_url());
  config.host = ByteView(std::string(host_size_max, 'h'));
  TEST_ASSERT_EQUAL(Status::invalid_argument, client.connect(config));
  TEST_ASSERT_EQUAL(std::string("client_name"), std::string(client.problem().field));  // Beside so long a host.
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));        // Nothing is left of that.
}

// What would wait for ever for room to be sent is refused before anything is asked.
TEST_ON_SERVER(test_locks_that_do_not_fit_should_be_refused) {
  SmallClient client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(server.unix_url())));
  Owner owner(client);
  ReentrantLock reentrant(owner, "r");
  FencedLock fenced(owner, "f");
  FairLock fair(owner, "q");
  Mutex announced(client, "a", {}, {.announce = true});
  Mutex with_fence(client, "m", {}, {.fence = true});
  BlockingLock* const locks[] = {&reentrant, &fenced, &fair, &announced, &with_fence};
  for (BlockingLock* const lock : locks) {
    TEST_ASSERT_EQUAL(Status::buffer_too_small, lock->configuration());
    TEST_ASSERT_EQUAL(Status::buffer_too_small, lock->try_acquire());
    TEST_ASSERT_EQUAL(Status::buffer_too_small, lock->acquire(1s));
  }
  LockInfo info;
  TEST_ASSERT_EQUAL(Status::buffer_too_small, inspect(client, Key("k"), info));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
  TEST_ASSERT_TRUE(client.connected());
  Mutex too_long(client, longest_key + "k");
  TEST_ASSERT_EQUAL(Status::invalid_argument, too_long.try_acquire());
  Mutex lock(client, "k");
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

// With one place for long keys, the next attempt waits until the one before is taken back.
TEST_ON_SERVER(test_an_acquire_should_wait_for_the_place_of_its_compensation) {
  Proxy proxy(proxy_path(server), server.socket_path());
  SmallClient client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(hasty_config_for(proxy.url())));
  Mutex one(client, longest_key, {.lease = 20s});
  Mutex other(client, std::string(key_size_max, 'o'), {.lease = 20s});
  proxy.hold(true);
  TEST_ASSERT_EQUAL(Status::timed_out, one.try_acquire());
  TEST_ASSERT_EQUAL(Status::too_many_requests, other.try_acquire());
  TEST_ASSERT_FALSE(other.held());
  proxy.hold(false);
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return other.acquire(1s); }, Status::ok));
  TEST_ASSERT_EQUAL("0", server.command({"EXISTS", longest_key}));
  TEST_ASSERT_EQUAL(Status::ok, other.release());
}

// A reply that does not fit closes the connection, and what was asked is unknown: it is taken back first on the next one.
TEST_ON_SERVER(test_a_reply_that_does_not_fit_should_be_a_clear_error_and_lose_nothing) {
  Proxy proxy(proxy_path(server), server.socket_path());
  SmallClient client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config_for(proxy.url())));
  Mutex lock(client, "k", {.lease = 20s});
  // What the server answers itself comes behind that.
  proxy.swallow_replies(true);
  std::thread speaker([&] {
    while (server.command("EXISTS k") != "1") std::this_thread::sleep_for(1ms);
    proxy.say(0, "$600\r\n" + std::string(600, 'x') + "\r\n");
  });
  TEST_ASSERT_EQUAL(Status::transport_closed, lock.try_acquire());
  speaker.join();
  TEST_ASSERT_FALSE(client.error_text().empty());
  TEST_ASSERT_EQUAL(1U, client.compensations_pending());
  proxy.swallow_replies(false);
  TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
  TEST_ASSERT_EQUAL(0U, client.compensations_pending());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
}

TEST_ON_SERVER(test_a_small_client_should_not_use_the_heap) {
  Proxy proxy(proxy_path(server), server.socket_path());
  ClientConfig config = config_for(proxy.url());
  config.request_timeout = 300ms;
  config.connect_timeout = 5s;
  SmallClient client;
  Hands hands([&](int) { server.command("SCRIPT FLUSH"); });
  Status outcomes[10] = {};
  std::uint64_t allocations = 0;
  {
    HeapTrap trap;
    outcomes[0] = client.connect(config);
    Mutex lock(client, "k", {.lease = 20s});
    outcomes[1] = lock.try_acquire();
    hands.perform(1);
    outcomes[2] = lock.renew();
    outcomes[3] = lock.release();
    proxy.hold(true);
    outcomes[4] = lock.try_acquire();
    proxy.hold(false);
    proxy.cut_after(1);
    outcomes[5] = lock.try_acquire();
    outcomes[6] = lock.acquire(5s);
    outcomes[7] = lock.release();
    allocations = trap.count();
  }
  TEST_ASSERT_EQUAL(Status::ok, outcomes[0]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[1]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[2]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[3]);
  TEST_ASSERT_EQUAL(Status::timed_out, outcomes[4]);
  TEST_ASSERT_TRUE(outcomes[5] != Status::ok);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[6]);
  TEST_ASSERT_EQUAL(Status::ok, outcomes[7]);
  TEST_ASSERT_EQUAL(0U, allocations);
}
