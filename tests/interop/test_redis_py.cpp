// SPDX-License-Identifier: MIT
//
// The Mutex and redis-py on one server.
#include "string_key_tests.hpp"

static void setUp() {}
static void tearDown() {}

// redis-py's lock has no lease unless it is told one. That is no lock of ours to break.
TEST_ON_SERVER(test_their_hold_without_a_lease_should_be_busy_without_an_end) {
  Peer peer(server.port());
  Client client;
  connect(client, server);
  Mutex lock(client, "k", {.lease = 20s});
  TEST_ASSERT_EQUAL("granted", peer.ask("lock k none 0"));
  Duration remaining{};
  TEST_ASSERT_EQUAL(Status::ok, lock.remaining_on_server(remaining));
  TEST_ASSERT_TRUE(remaining == remaining_unlimited);
  expect_no_grant(lock, 300ms, peer, server);
  TEST_ASSERT_EQUAL("-1", server.command("PTTL k"));
  TEST_ASSERT_EQUAL("ok", peer.ask("unlock k"));
  TEST_ASSERT_EQUAL(Status::ok, lock.acquire(15s));
  TEST_ASSERT_EQUAL(Status::ok, lock.release());
  TEST_ASSERT_EQUAL("0", server.command("DBSIZE"));
}
