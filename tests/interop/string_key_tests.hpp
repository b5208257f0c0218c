// SPDX-License-Identifier: MIT
//
// What must hold between a Mutex and every client whose lock is a string key with a random token. Each of them has a
// runner that includes this, beside what only that client can do.
#pragma once

#include "live_fixture.hpp"

#include <string>
#include <thread>

#include "peer.hpp"

namespace {

using namespace holdfast;

void connect(Client& client, const RedisServer& server) {
  const Status status = client.connect(ByteView(server.tcp_url()));
  TEST_MESSAGE("error text: " << std::string(client.error_text().string_view()));
  TEST_ASSERT_EQUAL(Status::ok, status);
}

// How often somebody has tried to create a key: by SET, within a script or not.
long attempts_on(const RedisServer& server) {
  const std::string stats = server.command("INFO commandstats");
  const std::string wanted = "cmdstat_set:calls=";
  const std::size_t at = stats.find(wanted);
  return at == std::string::npos ? 0 : std::stol(stats.substr(at + wanted.size()));
}

std::string value_of(const RedisServer& server, const std::string& key) {
  return server.command(std::vector<std::string>{"GET", key});
}

// What the server does once the key's time is over. A test that waited for that would need a lease so short that a machine
// which stands still for a moment ends it too early.
void end_lease(const RedisServer& server) { TEST_ASSERT_EQUAL("1", server.command("PEXPIRE k 1")); }

// The same for a part of the lease: an extension that follows must put it back.
void shorten_lease(const RedisServer& server) {
  TEST_ASSERT_EQUAL("1", server.command("PEXPIRE k 8000"));
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) <= 8000);
}

// Waits in vain.
void expect_no_grant(Mutex& lock, Duration wait, Peer& peer, const RedisServer& server) {
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.acquire(wait));
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(peer.ask("token k"), value_of(server, "k"));
}

}  // namespace

TEST_ON_SERVER(test_their_hold_should_be_busy_for_us_until_they_release) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  TEST_ASSERT_EQUAL(peer.ask("token k"), server.command("GET k"));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  bool locked = false;
  TEST_ASSERT_EQUAL(Status::ok, lock.is_locked(locked));
  TEST_ASSERT_TRUE(locked);
  Duration remaining{};
  TEST_ASSERT_EQUAL(Status::ok, lock.remaining_on_server(remaining));
  TEST_ASSERT_TRUE(remaining > 10s);
  TEST_ASSERT_TRUE(remaining <= 20s);
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_our_hold_should_be_busy_for_them_until_we_release) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("busy", peer.ask("lock k 20000 0"));
  TEST_ASSERT_EQUAL("busy", peer.ask("lock k 20000 100"));
  TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command("GET k")));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_their_release_should_let_in_whom_of_us_waits) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  const long attempts_before = attempts_on(server);
  Status outcome = Status::outcome_unknown;
  std::jthread waiter([&] { outcome = lock.acquire(15s); });
  // Two refusals: now it waits between attempts.
  const Instant limit = Client::now() + 10s;
  while (attempts_on(server) < attempts_before + 2 && Client::now() < limit) std::this_thread::yield();
  const std::string unlocked = peer.ask("unlock k");
  waiter.join();
  TEST_ASSERT_EQUAL("ok", unlocked);
  TEST_ASSERT_EQUAL(Status::ok, outcome);
  TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command("GET k")));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_our_release_should_let_in_whom_of_them_waits) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("waiting", peer.ask("start-lock k 20000 15000"));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  const std::vector<std::string> granted = peer.event();
  TEST_ASSERT_EQUAL("granted", granted.at(0));
  TEST_ASSERT_EQUAL("k", granted.at(1));
  TEST_ASSERT_EQUAL(peer.ask("token k"), server.command("GET k"));
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_their_late_release_should_leave_our_hold_alone) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  end_lease(server);
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(15s));
  TEST_ASSERT_EQUAL("lost", peer.ask("extend k"));
  TEST_ASSERT_EQUAL("lost", peer.ask("unlock k"));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(server.command("GET k")));
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 5000);
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_our_late_release_should_leave_their_hold_alone) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 3s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 15000"));  // Once our lease is over.
  TEST_ASSERT_FALSE(lock.held());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.renew());
  TEST_ASSERT_EQUAL(Status::lock_lost, lock.release());
  TEST_ASSERT_EQUAL(peer.ask("token k"), server.command("GET k"));
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 5000);
  TEST_ASSERT_EQUAL("ok", peer.ask("extend k"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_their_extension_should_keep_us_out) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  shorten_lease(server);
  TEST_ASSERT_EQUAL("ok", peer.ask("extend k"));
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 8000);
  expect_no_grant(lock, 300ms, peer, server);
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(15s));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_our_renewal_should_keep_them_out) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
  shorten_lease(server);
  TEST_ASSERT_EQUAL(Status::ok, lock.renew());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) > 8000);
  TEST_ASSERT_EQUAL("busy", peer.ask("lock k 20000 300"));
  TEST_ASSERT_TRUE(lock.held());
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 15000"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_a_killed_peer_should_keep_the_lock_for_its_lease_only) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k 20000 0"));
  peer.kill();
  TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
  TEST_ASSERT_TRUE(std::stol(server.command("PTTL k")) <= 20000);
  end_lease(server);
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(15s));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

TEST_ON_SERVER(test_both_should_mean_the_same_key_by_a_name) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  for (const std::string& name :
       {std::string("two words"), std::string("orders/42"), std::string("{tag}rest"), std::string("100%+\"'\\"),
        std::string("Gr\xc3\xbc\xc3\x9f"
                    "e \xe2\x82\xac \xf0\x9f\x94\x92"),
        std::string("line\r\nline")}) {
    TEST_MESSAGE("name: " << name);
    Mutex lock(client, ByteView(name), {.lease = 20s});
    TEST_ASSERT_EQUAL("granted", peer.ask("lock", name, "20000 0"));
    TEST_ASSERT_EQUAL(peer.ask("token", name), value_of(server, name));
    TEST_ASSERT_EQUAL(Status::lock_busy, lock.try_acquire());
    TEST_ASSERT_EQUAL("ok", peer.ask("unlock", name));
    TEST_ASSERT_EQUAL(Status::ok, lock.try_acquire());
    TEST_ASSERT_EQUAL(lock.token().bytes(), ByteView(value_of(server, name)));
    TEST_ASSERT_EQUAL("busy", peer.ask("lock", name, "20000 0"));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
  }
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}

// Read, then write: whoever is let in beside another one loses counts. Ours goes on for as long as theirs takes, so
// that they meet.
TEST_ON_SERVER(test_a_counter_should_lose_nothing_between_us_and_them) {
  constexpr int their_rounds = 30;
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("counting", peer.ask("start-count k counter " + std::to_string(their_rounds)));
  int our_rounds = 0;
  do {
    TEST_ASSERT_EQUAL(Status::ok, lock.acquire(30s));
    const std::string before = server.command("GET counter");
    server.command("SET counter " + std::to_string(before == "(nil)" ? 1 : std::stol(before) + 1));
    TEST_ASSERT_EQUAL(Status::ok, lock.release());
    ++our_rounds;
  } while (!peer.has_event());
  TEST_ASSERT_EQUAL("counted", peer.event().at(0));
  TEST_ASSERT_EQUAL(std::to_string(our_rounds + their_rounds), server.command("GET counter"));
  TEST_ASSERT_EQUAL("1", server.command("DEL counter"));
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}
