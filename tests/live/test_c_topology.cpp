// SPDX-License-Identifier: MIT
//
// The C interface with sentinels, with a cluster, and with replicas that are counted, on real servers. Nothing of it uses the heap.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "c_objects.hpp"
#include "cluster_setup.hpp"
#include "hands.hpp"
#include "heap_trap.hpp"
#include "holdfast.h"
#include "live_fixture.hpp"
#include "patience.hpp"
#include "replica_setup.hpp"
#include "sentinel_setup.hpp"

using namespace holdfast;

namespace {

// In static storage, as most programs in C have them: all of it is zero before a test.
holdfast_sentinels sentinels;
holdfast_cluster cluster;
holdfast_client client;
holdfast_client other_client;
holdfast_acks acks;
holdfast_branches branches;
holdfast_branch_place branch_places[3];
holdfast_sentinel_watch client_watch;
holdfast_sentinel_watch watchdog_watch;
holdfast_owner owner;
holdfast_owner_place places[2];
holdfast_watchdog watchdog;
holdfast_watchdog_place watchdog_places[4];
holdfast_lock lock;
holdfast_lock other;
holdfast_lock deaf;

// The deadlines are long: a machine that stands still for a moment fails no test.
holdfast_client_config calm() {
  holdfast_client_config config = {};
  config.connect_timeout_ms = 15'000;
  config.request_timeout_ms = 5000;
  return config;
}

}  // namespace

static void setUp() {}
static void tearDown() {
  holdfast_watchdog_stop(&watchdog);
  for (holdfast_lock* const each : {&lock, &other, &deaf}) holdfast_lock_destroy(each);
  holdfast_owner_destroy(&owner);
  for (holdfast_sentinel_watch* const each : {&client_watch, &watchdog_watch}) holdfast_sentinel_watch_destroy(each);
  holdfast_watchdog_destroy(&watchdog);
  holdfast_acks_destroy(&acks);
  holdfast_branches_destroy(&branches);
  for (holdfast_client* const each : {&client, &other_client}) holdfast_client_destroy(each);
  holdfast_sentinels_destroy(&sentinels);
  holdfast_cluster_destroy(&cluster);
}

// ---- Sentinels ---------------------------------------------------------------------------------------------------

TEST(test_c_sentinels_should_lead_to_the_master_of_before_and_after_a_fail_over) {
  SentinelSetup setup(server_binaries().front());
  const std::string hosts = setup.hosts();
  holdfast_sentinels_config named = {};
  named.hosts = hosts.c_str();
  named.service = "mymaster";
  holdfast_client_config config = calm();
  config.sentinels = &sentinels;
  config.host = "host.that.is.not.used";
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinels_init(&sentinels, &named));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_with(&client, &config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL("1", setup.master().command("EXISTS k"));
  // Another client by the same ones, and its watchdog.
  holdfast_lock_options kept = {};
  kept.lease_ms = 600;
  kept.kept = true;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&other_client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_with(&other_client, &config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_watchdog_init(&watchdog, watchdog_places, 4));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_watchdog_start(&watchdog, &other_client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&other, &other_client, "kept", &kept));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&other, 20'000));
  const int64_t first_end = holdfast_lock_valid_until_ns(&other);
  TEST_ASSERT_TRUE(comes([&] { return holdfast_lock_valid_until_ns(&other) > first_end; }));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&other));
  holdfast_lock_destroy(&other);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&other, &other_client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&other));

  setup.await_replicas();
  const RedisServer& after = setup.fail_over();
  TEST_ASSERT_TRUE(&after != setup.servers[0].get());
  TEST_ASSERT_TRUE(comes([&] { return holdfast_lock_renew(&lock) == HOLDFAST_OK; }));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&other, 20'000));
  TEST_ASSERT_EQUAL("1", after.command("EXISTS k"));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&other));
}

TEST(test_c_sentinels_should_be_filled_in_by_a_url_and_ask_for_their_own_password) {
  SentinelSetup setup(server_binaries().front());
  for (const auto& sentinel : setup.sentinels) {
    TEST_ASSERT_EQUAL("OK", sentinel->command("ACL SETUSER asker on >word &* +@all"));
    TEST_ASSERT_EQUAL("OK", sentinel->command("ACL SETUSER default +@all resetpass"));
  }
  holdfast_client_config config = calm();
  config.sentinels = &sentinels;
  config.database = 3;        // What the URL does not say is none.
  config.password = "wrong";  // It is the URL's to say, too.
  config.client_name = "by-url";
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinels_init(&sentinels, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  const std::string nobody = "redis-sentinel://" + setup.hosts() + "/nobody?sentinel_user=asker&sentinel_password=word";
  const std::string wrong = setup.url() + "?sentinel_user=asker&sentinel_password=wrong";
  const std::string right = setup.url() + "?sentinel_user=asker&sentinel_password=word";
  TEST_ASSERT_EQUAL(HOLDFAST_AUTH_REQUIRED, holdfast_client_connect_to(&client, setup.url().c_str(), &config));
  TEST_ASSERT_EQUAL(HOLDFAST_AUTH_FAILED, holdfast_client_connect_to(&client, wrong.c_str(), &config));
  TEST_ASSERT_EQUAL(HOLDFAST_UNKNOWN_SERVICE, holdfast_client_connect_to(&client, nobody.c_str(), &config));
  TEST_ASSERT_TRUE(text_of(client).find("nobody") != std::string::npos);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&client, right.c_str(), &config));
  TEST_ASSERT_TRUE(holdfast_client_problem(&client, nullptr) == nullptr);
  TEST_ASSERT_TRUE(holdfast_sentinels_problem(&sentinels, nullptr) == nullptr);
  TEST_ASSERT_TRUE(setup.servers[0]->command("CLIENT LIST").find("name=by-url") != std::string::npos);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&other_client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&other_client, right.c_str(), &config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&other, &other_client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL("1", setup.servers[0]->command("EXISTS k"));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  // The same by settings.
  const std::string hosts = setup.hosts();
  holdfast_sentinels_config named = {};
  named.hosts = hosts.c_str();
  named.service = "mymaster";
  named.user = "asker";
  named.password = "word";
  holdfast_client_close(&other_client);
  holdfast_client_close(&client);
  config.password = nullptr;
  holdfast_lock_destroy(&lock);
  holdfast_lock_destroy(&other);
  holdfast_client_destroy(&client);
  holdfast_client_destroy(&other_client);
  holdfast_sentinels_destroy(&sentinels);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinels_init(&sentinels, &named));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_with(&client, &config));
}

// ---- News of a fail-over -----------------------------------------------------------------------------------------

namespace {

// Of ours, to both channels: sentinels subscribe at each other, too, and have names of their own.
int listeners(const SentinelSetup& setup) {
  int count = 0;
  for (const auto& sentinel : setup.sentinels) {
    const std::string list = sentinel->command("CLIENT LIST");
    for (std::size_t at = 0; (at = list.find("name=holdfast ", at)) != std::string::npos; ++at)
      count += list.substr(at, list.find('\n', at) - at).find(" sub=2 ") == std::string::npos ? 0 : 1;
  }
  return count;
}

holdfast_status take_and_let_go(holdfast_lock& which) {
  const holdfast_status status = holdfast_lock_acquire(&which, 20'000);
  return status == HOLDFAST_OK ? holdfast_lock_release(&which) : status;
}

}  // namespace

// The old master goes on for some ten seconds: nothing but the message can have told of the new one so far.
TEST(test_c_a_sentinel_watch_should_hear_of_a_fail_over_while_the_old_master_is_well) {
  SentinelSetup setup(server_binaries().front());
  const std::string url = setup.url();
  holdfast_client_config config = calm();
  config.sentinels = &sentinels;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinels_init(&sentinels, nullptr));
  for (holdfast_client* const each : {&client, &other_client}) {
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(each));
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(each, url.c_str(), &config));
  }
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinel_watch_init(&client_watch, &client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_watchdog_init(&watchdog, watchdog_places, 4));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinel_watch_init_watchdog(&watchdog_watch, &watchdog));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_watchdog_start(&watchdog, &client));
  holdfast_lock_options kept = long_lease;  // Its turn comes after the old master has been told.
  kept.kept = true;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "kept", &kept));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&other, &client, "heard", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&deaf, &other_client, "unheard", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&lock, 20'000));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, take_and_let_go(deaf));
  TEST_ASSERT_TRUE(comes([&] {
    TEST_ASSERT_EQUAL(HOLDFAST_OK, take_and_let_go(other));
    return listeners(setup) == 2 && holdfast_sentinel_watch_hearing(&client_watch);
  }));
  TEST_ASSERT_FALSE(holdfast_sentinel_watch_hearing(&watchdog_watch));  // It runs: its thread alone knows.
  setup.await_replicas();
  const int64_t end = holdfast_lock_valid_until_ns(&lock);
  RedisServer& before = setup.master();
  TEST_ASSERT_EQUAL("OK", setup.sentinels[0]->command("SENTINEL FAILOVER mymaster"));
  TEST_ASSERT_TRUE(comes([&] { return &setup.master() != &before; }));
  const RedisServer& after = setup.master();
  const int64_t named = holdfast_now_ns();
  TEST_ASSERT_TRUE(comes([&] {
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&other, 20'000));
    const bool there = after.command("EXISTS heard") == "1";
    // The last grant of the old master may be lost, and told.
    const holdfast_status released = holdfast_lock_release(&other);
    TEST_ASSERT_TRUE(released == HOLDFAST_OK || released == HOLDFAST_LOCK_LOST);
    return there;
  }));
  const int64_t heard = holdfast_now_ns();
  TEST_ASSERT_TRUE(comes([&] { return holdfast_lock_valid_until_ns(&lock) > end; }));
  TEST_MESSAGE("heard after ms: " << (heard - named) / 1'000'000
                                  << ", renewed: " << (holdfast_now_ns() - named) / 1'000'000);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&deaf, 20'000));
  TEST_ASSERT_EQUAL("1", before.command("EXISTS unheard"));  // This one has no watch.
  TEST_ASSERT_EQUAL("master", SentinelSetup::role_of(before));
  TEST_ASSERT_TRUE(holdfast_lock_held(&lock));
  TEST_ASSERT_EQUAL("1", after.command("EXISTS kept"));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  // It takes its thread with it; the client goes on.
  holdfast_sentinel_watch_destroy(&watchdog_watch);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, take_and_let_go(other));
  TEST_ASSERT_TRUE(comes([&] { return listeners(setup) == 1; }));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinel_watch_init_watchdog(&watchdog_watch, &watchdog));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_watchdog_start(&watchdog, &client));
  holdfast_sentinel_watch more = {};
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_sentinel_watch_init_watchdog(&more, &watchdog));
  holdfast_sentinel_watch_destroy(&watchdog_watch);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_watchdog_start(&watchdog, &client));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_sentinel_watch_init_watchdog(&more, &watchdog));  // It runs.
}

// It would use what is gone.
TEST(test_c_a_sentinel_watch_that_outlives_what_it_hears_for_should_be_an_assertion) {
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_watchdog_init(&watchdog, watchdog_places, 4));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinel_watch_init(&client_watch, &client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinel_watch_init_watchdog(&watchdog_watch, &watchdog));
  expect_assertion([] { holdfast_client_destroy(&client); });
  expect_assertion([] { holdfast_watchdog_destroy(&watchdog); });
}

// ---- A cluster ---------------------------------------------------------------------------------------------------

TEST(test_c_branches_should_serve_names_of_any_slot) {
  ClusterSetup setup(server_binaries().front());
  const std::string hosts = setup.host(0);
  holdfast_cluster_config named = {};
  named.hosts = hosts.c_str();
  named.name = "k";
  holdfast_client_config config = calm();
  config.cluster = &cluster;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_cluster_init(&cluster, &named));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_branches_init(&branches, &client, branch_places, 3));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_with(&client, &config));
  std::string name;
  for (int number = 0; number < 20; ++number) {
    name = "name-" + std::to_string(number);
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, name.c_str(), &long_lease));
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
    TEST_ASSERT_EQUAL("1", setup.master(name).command({"EXISTS", name}));
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
    holdfast_lock_destroy(&lock);
  }
  TEST_ASSERT_EQUAL(std::size_t{2}, holdfast_branches_connected(&branches));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, name.c_str(), &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  setup.move_slot(name, setup.other_than(setup.master_of(name)));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_renew(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL("0", setup.master(name).command({"EXISTS", name}));
}

TEST(test_c_a_cluster_should_lead_to_the_server_of_a_slot_and_follow_it) {
  ClusterSetup setup(server_binaries().front());
  const std::string hosts = setup.hosts();
  holdfast_cluster_config named = {};
  named.hosts = hosts.c_str();
  named.name = "{orders}";
  holdfast_client_config config = calm();
  config.cluster = &cluster;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_cluster_init(&cluster, &named));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_with(&client, &config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_owner_init(&owner, &client, places, 2));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_reentrant_init(&lock, &owner, "{orders}:42", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&other, &client, "elsewhere", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_CROSS_SLOT, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&lock, 20'000));
  TEST_ASSERT_EQUAL("1", setup.master("{orders}").command("EXISTS {orders}:42"));

  setup.move_slot("{orders}", setup.other_than(setup.master_of("{orders}")));
  TEST_ASSERT_TRUE(comes([&] { return holdfast_lock_renew(&lock) == HOLDFAST_OK; }));
  TEST_ASSERT_TRUE(holdfast_lock_held(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL("0", setup.master("{orders}").command("EXISTS {orders}:42"));

  // A database other than 0 is none that a cluster has.
  config.database = 1;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect_with(&client, &config));
  TEST_ASSERT_EQUAL(std::string("database"), std::string(holdfast_client_problem(&client, nullptr)));
}

TEST(test_c_a_cluster_should_be_filled_in_by_a_url) {
  ClusterSetup setup(server_binaries().front());
  holdfast_client_config config = calm();
  config.cluster = &cluster;
  holdfast_cluster_config named = {};
  named.name = "name\0with a NUL";
  named.name_size = 15;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_cluster_init(&cluster, &named));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  const std::string without_a_name = "redis-cluster://" + setup.hosts();
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&client, without_a_name.c_str(), &config));
  holdfast_lock_options options = long_lease;
  options.key_size = named.name_size;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, named.name, &options));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  holdfast_lock_destroy(&lock);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&client, setup.url("%7Bjobs%7D").c_str(), &config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "{jobs}/7", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL("1", setup.master("{jobs}").command("EXISTS {jobs}/7"));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
}

// ---- Counted replicas --------------------------------------------------------------------------------------------

TEST(test_c_a_grant_should_count_when_replicas_have_it_and_not_when_they_are_stopped) {
  ReplicaSetup setup(server_binaries().front());
  const RedisServer& master = *setup.servers[0];
  const std::string url = master.unix_url();
  holdfast_client_config config = calm();
  config.acks = 2;
  config.acks_timeout_ms = 10'000;
  config.stall_timeout_ms = 20'000;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_acks_init(&acks, &client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&client, url.c_str(), &config));
  TEST_ASSERT_FALSE(holdfast_acks_connected(&acks));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_owner_init(&owner, &client, places, 2));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_reentrant_init(&other, &owner, "r", &long_lease));
  for (holdfast_lock* const each : {&lock, &other}) {
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(each));
    TEST_ASSERT_TRUE(holdfast_lock_held(each));
  }
  TEST_ASSERT_TRUE(holdfast_acks_connected(&acks));
  for (const std::size_t replica : {std::size_t{1}, std::size_t{2}})
    TEST_ASSERT_EQUAL("2", setup.servers[replica]->command("EXISTS k r"));
  for (holdfast_lock* const each : {&lock, &other}) TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(each));

  // One that is stopped confirms nothing.
  config.acks_timeout_ms = 50;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&client, url.c_str(), &config));
  setup.servers[2]->pause();
  const holdfast_status refused = holdfast_lock_try_acquire(&lock);
  const bool held = holdfast_lock_held(&lock);
  const holdfast_status waited = holdfast_lock_acquire(&other, 300);
  setup.servers[2]->resume();
  TEST_ASSERT_EQUAL(HOLDFAST_TOO_FEW_REPLICAS, refused);
  TEST_ASSERT_FALSE(held);
  TEST_ASSERT_EQUAL(HOLDFAST_TOO_FEW_REPLICAS, waited);
  TEST_ASSERT_TRUE(comes([&] { return master.command("EXISTS k r") == "0"; }));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&lock, 20'000));  // It is back.
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
}

TEST(test_c_a_client_whose_acks_are_gone_should_grant_nothing_until_it_is_connected_anew) {
  ReplicaSetup setup(server_binaries().front(), 1);
  const std::string url = setup.servers[0]->unix_url();
  holdfast_client_config config = calm();
  config.acks = 1;
  config.acks_timeout_ms = 4000;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_acks_init(&acks, &client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&client, url.c_str(), &config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  holdfast_lock_destroy(&lock);
  holdfast_acks_destroy(&acks);
  TEST_ASSERT_FALSE(holdfast_client_connected(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_NOT_CONNECTED, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_NOT_CONNECTED, holdfast_lock_acquire(&lock, 20'000));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect_to(&client, url.c_str(), &config));
  TEST_ASSERT_EQUAL(HOLDFAST_NOT_CONNECTED, holdfast_lock_try_acquire(&lock));
  config.acks = 0;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&client, url.c_str(), &config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  // One that is connected has no acks to come.
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_acks_init(&acks, &client));
  holdfast_client_close(&client);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_acks_init(&acks, &client));
  config.acks = 1;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&client, url.c_str(), &config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_TRUE(holdfast_acks_connected(&acks));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
}

// They would tell a client that is gone.
TEST(test_c_acks_that_outlive_their_client_should_be_an_assertion) {
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_acks_init(&acks, &client));
  expect_assertion([] { holdfast_client_destroy(&client); });
}

// A child of a fork has a connection of its own, or none.
TEST(test_c_acks_that_go_in_a_child_should_leave_the_parent_its_connection) {
  ReplicaSetup setup(server_binaries().front(), 1);
  const std::string url = setup.servers[0]->unix_url();
  holdfast_client_config config = calm();
  config.acks = 1;
  config.acks_timeout_ms = 4000;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_acks_init(&acks, &client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_to(&client, url.c_str(), &config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  holdfast_lock_destroy(&lock);
  const pid_t child = ::fork();
  TEST_ASSERT_TRUE(child >= 0);
  if (child == 0) {
    ::alarm(20);
    holdfast_acks_destroy(&acks);
    (void)holdfast_mutex_init(&lock, &client, "k", &long_lease);
    const holdfast_status status = holdfast_lock_try_acquire(&lock);
    holdfast_lock_destroy(&lock);
    holdfast_client_destroy(&client);
    ::_exit(status);
  }
  int outcome = 0;
  TEST_ASSERT_EQUAL(child, ::waitpid(child, &outcome, 0));
  TEST_ASSERT_TRUE(WIFEXITED(outcome));
  TEST_ASSERT_EQUAL(static_cast<int>(HOLDFAST_NOT_CONNECTED), WEXITSTATUS(outcome));
  TEST_ASSERT_TRUE(holdfast_client_connected(&client) && holdfast_acks_connected(&acks));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
}

// ---- No heap -----------------------------------------------------------------------------------------------------

TEST(test_c_sentinels_their_watch_and_acks_should_not_allocate) {
  prove_that_the_trap_works();
  SentinelSetup setup(server_binaries().front());
  const std::string url = setup.url();
  const std::string nobody = "redis-sentinel://" + setup.hosts() + "/nobody";
  holdfast_status outcomes[10] = {};
  bool heard = false;
  std::uint64_t allocations = 0;
  {
    HeapTrap trap;
    holdfast_client_config config = calm();
    config.sentinels = &sentinels;
    config.acks = 2;
    config.acks_timeout_ms = 4000;
    outcomes[0] = holdfast_sentinels_init(&sentinels, nullptr);
    outcomes[1] = holdfast_client_init(&client);
    outcomes[2] = holdfast_acks_init(&acks, &client);
    outcomes[3] = holdfast_client_connect_to(&client, nobody.c_str(), &config);
    outcomes[4] = holdfast_client_connect_to(&client, "redis://127.0.0.1", &config);
    outcomes[5] = holdfast_client_connect_to(&client, url.c_str(), &config);
    outcomes[6] = holdfast_mutex_init(&lock, &client, "k", &long_lease);
    outcomes[7] = holdfast_lock_acquire(&lock, 20'000);
    outcomes[8] = holdfast_lock_release(&lock);
    outcomes[9] = holdfast_sentinel_watch_init(&client_watch, &client);
    for (int tries = 0; tries < 4000 && !heard; ++tries) {
      if (holdfast_lock_acquire(&lock, 20'000) != HOLDFAST_OK || holdfast_lock_release(&lock) != HOLDFAST_OK) break;
      heard = holdfast_sentinel_watch_hearing(&client_watch);
      ::poll(nullptr, 0, 5);
    }
    holdfast_lock_destroy(&lock);
    holdfast_sentinel_watch_destroy(&client_watch);
    holdfast_acks_destroy(&acks);
    holdfast_client_destroy(&client);
    holdfast_sentinels_destroy(&sentinels);
    allocations = trap.count();
  }
  for (std::size_t index = 0; index != std::size(outcomes); ++index) {
    TEST_MESSAGE(index);
    const holdfast_status expected = index == 3   ? HOLDFAST_UNKNOWN_SERVICE
                                     : index == 4 ? HOLDFAST_INVALID_ARGUMENT
                                                  : HOLDFAST_OK;
    TEST_ASSERT_EQUAL(expected, outcomes[index]);
  }
  TEST_ASSERT_TRUE(heard);
  TEST_ASSERT_EQUAL(0U, allocations);
}
