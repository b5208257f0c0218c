// SPDX-License-Identifier: MIT
//
// The numbers of a client, over both clients: what becomes of locks on a real server is what its meter has counted, no more and
// no less, and its observer was told.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "clients.hpp"
#include "live_nodes.hpp"
#include "patience.hpp"
#include "quorum_clients.hpp"

#ifndef HOLDFAST_TEST_ASIO
#include "hands.hpp"
#include "holdfast/watchdog.hpp"
#endif

using holdfast::Meter;
using holdfast::Observation;
using holdfast::Observer;
using holdfast::Stats;

static void setUp() {}
static void tearDown() {}

namespace {

// What was observed, from any thread: a letter for each.
struct Log {
  std::mutex mutex;
  std::string letters;
  template <char letter>
  static void note(void* self, const Observation& seen) noexcept {
    auto& log = *static_cast<Log*>(self);
    const std::lock_guard guard(log.mutex);
    log.letters += letter;
    if (seen.status != Status::ok) log.letters += '!';
  }
  [[nodiscard]] std::string told() {
    const std::lock_guard guard(mutex);
    return letters;
  }
  [[nodiscard]] Observer observer() {
    return {.context = this,
            .on_grant = note<'g'>,
            .on_refusal = note<'r'>,
            .on_wait_begin = note<'('>,
            .on_wait_end = note<')'>,
            .on_renewal = note<'n'>,
            .on_loss = note<'l'>,
            .on_connect = note<'c'>,
            .on_disconnect = note<'d'>,
            .on_compensation = note<'t'>};
  }
};

ClientConfig metered(const RedisServer& server, Meter& meter) {
  ClientConfig config = config_for(server.unix_url());
  config.meter = &meter;
  return config;
}

}  // namespace

TEST_ON_SERVER(test_grants_refusals_and_renewals_should_be_counted_by_what_the_caller_was_told) {
  Log log;
  const Observer observer = log.observer();
  Meter meter(observer);
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(metered(server, meter)));
  TEST_ASSERT_EQUAL(1U, client.stats().connects);
  TEST_ASSERT_EQUAL(1U, client.stats().connected());
  Mutex lock(client, "k", {.lease = 20s});
  Owner owner(client);
  ReentrantLock hash(owner, "h", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, hash.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, hash.try_acquire());  // Once more.
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(Status::ok, hash.renew());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL(Status::not_held, lock.renew());  // Refused without a word to the server.
  server.command("SET k somebody");
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  const Stats stats = client.stats();
  TEST_ASSERT_EQUAL(3U, stats.grants);
  TEST_ASSERT_EQUAL(3U, stats.acquire.count());
  TEST_ASSERT_TRUE(stats.acquire.nanoseconds > 0);
  TEST_ASSERT_EQUAL(2U, stats.refusals);
  TEST_ASSERT_EQUAL(0U, stats.failures);
  TEST_ASSERT_EQUAL(0U, stats.waits);
  TEST_ASSERT_EQUAL(2U, stats.renewals);
  TEST_ASSERT_EQUAL(2U, stats.renewal.count());
  TEST_ASSERT_EQUAL(0U, stats.renewals_failed);
  TEST_ASSERT_EQUAL(0U, stats.losses);
  TEST_ASSERT_EQUAL(0U, stats.compensations);
  TEST_ASSERT_TRUE(stats.bytes_sent > 200);
  TEST_ASSERT_TRUE(stats.bytes_received > 50);
  TEST_ASSERT_EQUAL(Status::ok, hash.release());
  TEST_ASSERT_EQUAL(Status::ok, hash.release());
  TEST_ASSERT_EQUAL("cgggnnr!r!", log.told());
}

// The server counts them, too.
TEST_ON_SERVER(test_bytes_should_be_those_that_the_server_has_seen) {
  Meter meter;
  Client client;
  server.command("CONFIG RESETSTAT");
  TEST_ASSERT_EQUAL(Status::ok, client.connect(metered(server, meter)));
  Mutex lock(client, "k", {.lease = 20s});
  for (int time = 0; time < 20; ++time) {
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  const auto number_of = [&server](const std::string& name) {
    const std::string info = server.command("INFO stats");
    return std::stoull(info.substr(info.find(name + ":") + name.size() + 1));
  };
  const Stats stats = client.stats();
  TEST_ASSERT_EQUAL(stats.bytes_sent + std::string("INFO stats\r\n").size(), number_of("total_net_input_bytes"));
  // What the test itself was answered: OK, and the first INFO.
  TEST_ASSERT_TRUE(stats.bytes_received + 5 <= number_of("total_net_output_bytes"));
  TEST_ASSERT_TRUE(stats.bytes_received > 40 * 4);
}

TEST_ON_SERVER(test_waits_should_be_counted_when_they_begin_and_timed_when_they_end) {
  Log log;
  const Observer observer = log.observer();
  Meter meter(observer);
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(metered(server, meter)));
  server.command("SET k somebody");
  Mutex lock(client, "k", {.lease = 20s});
  std::atomic<bool> waited = false;
  std::thread other([&] {  // Another thread reads the numbers meanwhile.
    waited = comes([&] { return client.stats().waiting() == 1; });
    server.command("DEL k");
  });
  const Status granted = lock.acquire(patience);
  other.join();
  TEST_ASSERT_EQUAL(Status::ok, granted);
  TEST_ASSERT_TRUE(waited);
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  server.command("SET k somebody");
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(60ms));
  const Stats stats = client.stats();
  TEST_ASSERT_EQUAL(1U, stats.grants);
  TEST_ASSERT_EQUAL(1U, stats.refusals);
  TEST_ASSERT_EQUAL(2U, stats.waits);
  TEST_ASSERT_EQUAL(2U, stats.waits_ended);
  TEST_ASSERT_EQUAL(2U, stats.wait.count());
  TEST_ASSERT_TRUE(stats.wait.nanoseconds >= static_cast<std::uint64_t>(at_least(60ms).count()));
  TEST_ASSERT_EQUAL("c()g()!r!", log.told());
}

TEST_ON_SERVER(test_hold_should_be_counted_as_lost_once_however_that_is_found_out) {
  Log log;
  const Observer observer = log.observer();
  Meter meter(observer);
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(metered(server, meter)));
  Mutex lock(client, "k", {.lease = 20s});
  // By a renewal, and then by its release.
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  Stats stats = client.stats();
  TEST_ASSERT_EQUAL(1U, stats.losses);
  TEST_ASSERT_EQUAL(0U, stats.renewals);
  TEST_ASSERT_EQUAL(1U, stats.renewals_failed);
  // By its release alone: whose status says so, and nobody else is told.
  const std::string told = log.told();
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  server.command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(2U, client.stats().losses);
  TEST_ASSERT_EQUAL(told + "g", log.told());
  // By time.
  Mutex brief(client, "b", {.lease = 50ms});
  TEST_ASSERT_EQUAL(Status::ok, brief.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return !brief.held(); }));
  TEST_ASSERT_EQUAL(Status::lock_lost, brief.release());
  TEST_ASSERT_EQUAL(3U, client.stats().losses);
  // Each was told once, and none after its release had begun.
  TEST_ASSERT_EQUAL(1, std::count(log.letters.begin(), log.letters.end(), 'l'));
}

TEST_ON_SERVER(test_connection_that_is_killed_should_be_counted_as_lost_and_made_anew) {
  Log log;
  const Observer observer = log.observer();
  Meter meter(observer);
  Client client;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(metered(server, meter)));
  Mutex lock(client, "k", {.lease = 20s});
  for (int time = 1; time <= 2; ++time) {
    server.command("CLIENT KILL TYPE normal SKIPME yes");
    TEST_ASSERT_EQUAL(Status::ok, eventually([&] { return lock.try_acquire(); }, Status::ok));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    const Stats stats = client.stats();
    TEST_ASSERT_EQUAL(1U + static_cast<unsigned>(time), stats.connects);
    TEST_ASSERT_EQUAL(static_cast<unsigned>(time), stats.reconnects);
    TEST_ASSERT_EQUAL(static_cast<unsigned>(time), stats.disconnects);
    TEST_ASSERT_EQUAL(1U, stats.connected());
  }
  client.close();
  TEST_ASSERT_EQUAL(0U, client.stats().connected());
}

TEST_ON_SERVER(test_acquire_without_an_answer_should_be_a_failure_and_be_compensated) {
  Log log;
  const Observer observer = log.observer();
  Meter meter(observer);
  Client client;
  ClientConfig config = metered(server, meter);
  config.request_timeout = 100ms;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(config));
  Mutex lock(client, "k", {.lease = 20s});
  server.command("CLIENT PAUSE 400");
  TEST_ASSERT_EQUAL(Status::timed_out, lock.try_acquire());
  const Stats stats = client.stats();
  TEST_ASSERT_EQUAL(0U, stats.grants);
  TEST_ASSERT_EQUAL(1U, stats.failures);
  TEST_ASSERT_EQUAL(1U, stats.compensations);
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k") == "0"; }));
  TEST_ASSERT_EQUAL("c", log.told().substr(0, 1));
  TEST_ASSERT_TRUE(log.told().find("t") != std::string::npos && log.told().find("r!") != std::string::npos);
}

// Nobody calls anything: its renewals, their latencies and its loss are counted all the same, by whoever keeps it.
TEST_ON_SERVER(test_kept_hold_should_have_its_renewals_and_its_loss_counted_while_nobody_calls) {
  Log log;
  const Observer observer = log.observer();
  Meter meter(observer);
  Client client;
  WatchdogPlaces<4> places;
  TEST_ASSERT_EQUAL(Status::ok, client.connect(metered(server, meter)));
  Watchdog watchdog(places.storage());
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(client));
  Mutex lock(client, "k", {.lease = 600ms, .kept = true});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return client.stats().renewals >= 3; }));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(0U, client.stats().losses);
  server.command("DEL k");
  TEST_ASSERT_TRUE(comes([&] { return client.stats().losses == 1; }));
  TEST_ASSERT_TRUE(comes([&] { return !lock.held(); }));
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  const Stats stats = client.stats();
  TEST_ASSERT_EQUAL(1U, stats.losses);
  TEST_ASSERT_EQUAL(1U, stats.renewals_failed);
  TEST_ASSERT_EQUAL(stats.renewals, stats.renewal.count());
  TEST_ASSERT_TRUE(stats.renewal.nanoseconds > 0);
  const std::string told = log.told();
  TEST_ASSERT_EQUAL(1, std::count(told.begin(), told.end(), 'l'));
  watchdog.stop();
}

TEST_ON_NODES(test_lock_on_several_servers_should_be_counted_once_and_its_connections_each, 3) {
  Log log;
  const Observer observer = log.observer();
  Meter meter(observer);
  Meter single;
  Quorum<3> quorum;
  std::vector<ClientConfig> configs = nodes.configs();
  configs[2].meter = &single;  // Its own, for what crosses its wire.
  QuorumConfig config = unguarded;
  config.meter = &meter;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, configs, config));
  await_voters(quorum, 7);
  TEST_ASSERT_EQUAL(2U, quorum.stats().connects);
  TEST_ASSERT_EQUAL(1U, single.stats().connects);
  TEST_ASSERT_TRUE(single.stats().bytes_sent > 0);
  RedlockMutex<3> lock(quorum, "k", {.lease = 20s, .node_timeout = 5s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("SET b somebody");
  RedlockMutex<3> busy(quorum, "b", {.lease = 20s, .node_timeout = 5s});
  TEST_ASSERT_EQUAL(Status::lock_busy, busy.try_acquire());
  TEST_ASSERT_EQUAL(Status::lock_busy, busy.acquire(200ms));
  Stats stats = quorum.stats();
  TEST_ASSERT_EQUAL(1U, stats.grants);
  TEST_ASSERT_EQUAL(1U, stats.acquire.count());
  TEST_ASSERT_EQUAL(2U, stats.refusals);
  TEST_ASSERT_EQUAL(1U, stats.waits);
  TEST_ASSERT_EQUAL(1U, stats.wait.count());
  TEST_ASSERT_EQUAL(1U, stats.renewals);
  TEST_ASSERT_EQUAL(1U, stats.renewal.count());
  TEST_ASSERT_TRUE(stats.renewal.nanoseconds > 0);
  TEST_ASSERT_EQUAL(0U, stats.losses);
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("DEL k");
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  stats = quorum.stats();
  TEST_ASSERT_EQUAL(1U, stats.losses);
  TEST_ASSERT_EQUAL(0U, single.stats().grants + single.stats().losses);
  // A connection of one node.
  nodes[0].command("CLIENT KILL TYPE normal SKIPME yes");
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return quorum.stats().reconnects == 1;
  }));
  // A minority's grant is taken back.
  for (std::size_t node = 0; node < 2; ++node) nodes[node].command("SET m somebody");
  await_voters(quorum, 7);
  RedlockMutex<3> minority(quorum, "m", {.lease = 20s, .node_timeout = 5s});
  TEST_ASSERT_EQUAL(Status::lock_busy, minority.try_acquire());
  TEST_ASSERT_TRUE(comes([&] {
    (void)quorum.tend();
    return nodes[2].command("EXISTS m") == "0";
  }));
  const std::string told = log.told();
  TEST_ASSERT_EQUAL(1, std::count(told.begin(), told.end(), 'g'));
  TEST_ASSERT_EQUAL(1, std::count(told.begin(), told.end(), 'l'));
}

// For TSan: any thread reads while others count.
TEST_ON_SERVER(test_numbers_should_be_read_from_any_thread_while_clients_share_a_meter) {
  Meter meter;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    std::uint64_t grants = 0;
    while (!done) {
      const Stats stats = meter.stats();
      if (stats.grants < grants || stats.disconnects > stats.connects) std::abort();
      grants = stats.grants;
    }
  });
  std::vector<std::thread> users;
  std::atomic<int> granted = 0;
  for (int user = 0; user < 3; ++user)
    users.emplace_back([&, user] {
      Client client;
      if (client.connect(metered(server, meter)) != Status::ok) return;
      Mutex lock(client, ByteView("k" + std::to_string(user)), {.lease = 20s});
      for (int time = 0; time < 50; ++time)
        if (lock.try_acquire() == Status::ok && lock.release() == Status::ok) ++granted;
    });
  for (std::thread& user : users) user.join();
  done = true;
  reader.join();
  TEST_ASSERT_EQUAL(150, granted);
  TEST_ASSERT_EQUAL(150U, meter.stats().grants);
  TEST_ASSERT_EQUAL(3U, meter.stats().connects);
  TEST_ASSERT_EQUAL(0U, meter.stats().connected());
}

#ifndef HOLDFAST_TEST_ASIO
TEST_ON_NODES(test_redlock_that_a_thread_keeps_should_have_its_renewals_and_its_loss_counted, 3) {
  Log log;
  const Observer observer = log.observer();
  Meter meter(observer);
  Quorum<3> quorum;
  holdfast::QuorumWatchdog watchdog;
  QuorumConfig config = unguarded;
  config.meter = &meter;
  TEST_ASSERT_EQUAL(Status::ok, connect(quorum, nodes.configs(), config));
  TEST_ASSERT_EQUAL(Status::ok, watchdog.start(quorum));
  RedlockMutex<3> lock(quorum, "k", {.lease = 900ms, .node_timeout = 500ms, .kept = true});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_TRUE(comes([&] { return quorum.stats().renewals >= 2; }));
  TEST_ASSERT_EQUAL(0U, quorum.stats().losses);
  for (std::size_t node = 0; node < 3; ++node) nodes[node].command("DEL k");
  TEST_ASSERT_TRUE(comes([&] { return quorum.stats().losses == 1; }));
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  const Stats stats = quorum.stats();
  TEST_ASSERT_EQUAL(1U, stats.losses);
  TEST_ASSERT_EQUAL(stats.renewals, stats.renewal.count());
  const std::string told = log.told();
  TEST_ASSERT_EQUAL(1, std::count(told.begin(), told.end(), 'l'));
  watchdog.stop();
}

TEST_ON_SERVER(test_counting_and_writing_should_not_allocate) {
  prove_that_the_trap_works();
  Hands hands([&](int) { server.command("DEL k"); });
  Status outcomes[6] = {};
  std::uint64_t allocations = 0;
  std::size_t size = 0;
  std::uint64_t losses = 0;
  static char text[holdfast::openmetrics_size_max];
  ClientConfig config = config_for(server.unix_url());
  {
    HeapTrap trap;
    std::atomic<int> told = 0;
    const auto count = [](void* number, const Observation&) noexcept { ++*static_cast<std::atomic<int>*>(number); };
    const Observer observer = {.context = &told, .on_grant = count, .on_loss = count, .on_connect = count};
    Meter meter(observer);
    Client client;
    config.meter = &meter;
    outcomes[0] = client.connect(config);
    Mutex lock(client, "k", {.lease = 20s});
    outcomes[1] = lock.try_acquire();
    outcomes[2] = lock.renew();
    hands.perform(1);
    outcomes[3] = lock.renew();
    outcomes[4] = write_openmetrics(client.stats(), {text, sizeof text}, size);
    losses = client.stats().losses;
    outcomes[5] = told == 3 ? Status::ok : Status::server_error;
    allocations = trap.count();
  }
  for (const int index : {0, 1, 2, 4, 5}) TEST_ASSERT_EQUAL(Status::ok, outcomes[index]);
  TEST_ASSERT_EQUAL(Status::lock_lost, outcomes[3]);
  TEST_ASSERT_EQUAL(1U, losses);
  TEST_ASSERT_TRUE(size > 1000);
  TEST_ASSERT_EQUAL(0U, allocations);
}
#endif
