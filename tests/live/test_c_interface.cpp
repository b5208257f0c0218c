// SPDX-License-Identifier: MIT
//
// The C interface on real servers: every kind, owner, watchdog and quorum, and what they say when something fails. No test here
// uses the heap through it, but for the start of a thread.
#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "hands.hpp"
#include "heap_trap.hpp"
#include "holdfast.h"
#include "live_fixture.hpp"
#include "live_nodes.hpp"
#include "patience.hpp"
#include "proxy.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

// In static storage, as most programs in C have them: all of it is zero before a test.
holdfast_client client;
holdfast_client rival_client;
holdfast_owner owner;
holdfast_owner rival;
holdfast_owner_place places[3];
holdfast_owner_place rival_places[3];
holdfast_lock lock;
holdfast_lock other;
holdfast_lock third;
holdfast_lock fourth;
holdfast_watchdog watchdog;
holdfast_watchdog_place watchdog_places[4];
holdfast_quorum quorum;
holdfast_quorum_node nodes[3];
holdfast_quorum_vote votes[3];
holdfast_quorum_vote other_votes[3];
holdfast_quorum_watchdog keeper;
holdfast_meter meter;

constexpr holdfast_lock_options long_lease = [] {
  holdfast_lock_options options = {};
  options.lease_ms = 20'000;
  return options;
}();

void connect(holdfast_client& to, const std::string& url) {
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&to));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect(&to, url.c_str()));
}

void connect_both(const RedisServer& server) {
  connect(client, server.unix_url());
  connect(rival_client, server.tcp_url());
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_owner_init(&owner, &client, places, 3));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_owner_init(&rival, &rival_client, rival_places, 3));
}

}  // namespace

static void setUp() {}
static void tearDown() {
  holdfast_watchdog_stop(&watchdog);  // A thread that goes on would tell what a failed test has left.
  holdfast_quorum_watchdog_stop(&keeper);
  for (holdfast_lock* const each : {&lock, &other, &third, &fourth}) holdfast_lock_destroy(each);
  for (holdfast_owner* const each : {&owner, &rival}) holdfast_owner_destroy(each);
  holdfast_watchdog_destroy(&watchdog);
  holdfast_quorum_watchdog_destroy(&keeper);
  holdfast_quorum_destroy(&quorum);
  for (holdfast_client* const each : {&client, &rival_client}) holdfast_client_destroy(each);
  holdfast_meter_destroy(&meter);
}

TEST_ON_SERVER(test_c_a_mutex_should_exclude_and_say_what_it_holds) {
  connect_both(server);
  TEST_ASSERT_TRUE(holdfast_client_connected(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&other, &rival_client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_NOT_HELD, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_NOT_HELD, holdfast_lock_renew(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_TRUE(holdfast_lock_held(&lock));
  TEST_ASSERT_FALSE(holdfast_lock_at_risk(&lock));
  const int64_t remaining = holdfast_lock_remaining_ms(&lock);
  TEST_ASSERT_TRUE(remaining > 10'000 && remaining < 20'000);
  TEST_ASSERT_TRUE(holdfast_lock_valid_until_ns(&lock) > holdfast_now_ns());
  TEST_ASSERT_TRUE(holdfast_lock_renewal_due_ns(&lock) < holdfast_lock_valid_until_ns(&lock));
  TEST_ASSERT_EQUAL(1U, holdfast_lock_hold_count(&lock));
  TEST_ASSERT_EQUAL(0U, holdfast_lock_fence(&lock));
  TEST_ASSERT_EQUAL("1", server.command("EXISTS k"));

  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_acquire(&other, 0));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_acquire(&other, 20));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_lock_acquire(&other, -1));
  int64_t on_server = -1;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_remaining_on_server_ms(&other, &on_server));
  TEST_ASSERT_TRUE(on_server > 10'000 && on_server <= 20'000);
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_lock_remaining_on_server_ms(&other, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_renew(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  TEST_ASSERT_FALSE(holdfast_lock_held(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_remaining_on_server_ms(&other, &on_server));
  TEST_ASSERT_EQUAL(0, on_server);
  server.command("SET k somebody");
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_remaining_on_server_ms(&other, &on_server));
  TEST_ASSERT_EQUAL(HOLDFAST_UNLIMITED, on_server);
  server.command("DEL k");
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&other, HOLDFAST_WAIT_FOREVER));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_post_release(&other));
  // What an object holds that is destroyed is let go of.
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&lock, 2000));
  holdfast_lock_destroy(&lock);
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS k") == "0"; }));
}

TEST_ON_SERVER(test_c_a_key_should_be_any_bytes_where_its_size_is_given) {
  connect(client, server.unix_url());
  holdfast_lock_options options = long_lease;
  options.key_size = 3;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "a\0b", &options));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL("1", server.command({"EXISTS", std::string("a\0b", 3)}));
  TEST_ASSERT_EQUAL("0", server.command("EXISTS a"));
}

TEST_ON_SERVER(test_c_a_loss_should_be_final_and_told) {
  connect_both(server);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  server.command("SET k somebody");
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_LOST, holdfast_lock_renew(&lock));
  TEST_ASSERT_FALSE(holdfast_lock_held(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_LOST, holdfast_lock_renew(&lock));
  TEST_ASSERT_EQUAL("somebody", server.command("GET k"));
  server.command("DEL k");

  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_reentrant_init(&other, &owner, "r", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_lock_forget_loss(&other));
  server.command("DEL r");
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_LOST, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_LOST, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_forget_loss(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&other));
}

TEST_ON_SERVER(test_c_each_kind_of_an_owner_should_be_held_as_it_says) {
  connect_both(server);
  // Reentrant, by two handles of one hold.
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_reentrant_init(&lock, &owner, "r", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_reentrant_init(&other, &owner, "r", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_reentrant_init(&third, &rival, "r", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&lock, 0));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&other, 0));
  TEST_ASSERT_EQUAL(2U, holdfast_lock_hold_count(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&third));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&third));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&third));
  TEST_ASSERT_EQUAL(0U, holdfast_lock_fence(&third));
  for (holdfast_lock* const each : {&lock, &other, &third}) holdfast_lock_destroy(each);

  // With fences: reentrant, fair, and a mutex.
  holdfast_lock_options fenced = long_lease;
  fenced.fence = true;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_reentrant_init(&lock, &owner, "f", &fenced));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_fair_init(&other, &owner, "q", &fenced));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&third, &client, "m", &fenced));
  for (holdfast_lock* const each : {&lock, &other, &third}) {
    TEST_ASSERT_EQUAL(0U, holdfast_lock_fence(each));
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(each));
    const std::uint64_t fence = holdfast_lock_fence(each);
    TEST_ASSERT_TRUE(fence > 0);
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(each));
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(each));
    TEST_ASSERT_TRUE(holdfast_lock_fence(each) > fence);
  }
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_fair_init(&fourth, &rival, "q", &fenced));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&fourth));
  for (holdfast_lock* const each : {&lock, &other, &third, &fourth}) holdfast_lock_destroy(each);

  // Several names, whatever their order.
  const char* const names[] = {"accounts/2", "accounts/1"};
  const char* const overlapping[] = {"accounts/3", "accounts/2"};
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_multi_init(&lock, &owner, names, 2, &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_multi_init(&other, &rival, overlapping, 2, &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL("2", server.command("EXISTS accounts/1 accounts/2"));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
}

TEST_ON_SERVER(test_c_both_sides_of_a_read_write_lock_should_be_one_lock) {
  connect_both(server);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_read_write_init(&lock, &other, &owner, "rw", &long_lease, &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_read_write_init(&third, &fourth, &rival, "rw", nullptr, &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&third));
  TEST_ASSERT_EQUAL(HOLDFAST_UPGRADE_REFUSED, holdfast_lock_try_acquire(&fourth));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&third));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&fourth));
  TEST_ASSERT_EQUAL(HOLDFAST_UPGRADE_REFUSED, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));  // A writer may read.
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&third));
  // Either takes both away, and lets go of both.
  holdfast_lock_destroy(&other);
  TEST_ASSERT_FALSE(holdfast_lock_held(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_lock_release(&lock));
  TEST_ASSERT_TRUE(comes([&] { return server.command("EXISTS rw") == "0"; }));
  // The read side may have no lease above 30 s; the write side may.
  holdfast_lock_options longer = long_lease;
  longer.lease_ms = 31'000;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT,
                    holdfast_read_write_init(&lock, &other, &owner, "rw", &longer, &long_lease));
  holdfast_lock_destroy(&lock);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_read_write_init(&lock, &other, &owner, "rw", &long_lease, &longer));
}

TEST_ON_SERVER(test_c_a_semaphore_should_lend_as_many_permits_as_it_has) {
  connect_both(server);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_semaphore_init(&lock, &client, "s", 2, &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_semaphore_init(&other, &client, "s", 2, &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_semaphore_init(&third, &rival_client, "s", 2, &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_semaphore_init(&fourth, &rival_client, "s", 3, &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&third));
  TEST_ASSERT_EQUAL(HOLDFAST_PERMITS_DIFFER, holdfast_lock_try_acquire(&fourth));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&third, 5000));
}

// What the server says of itself comes as a status and as its own words.
TEST_ON_SERVER(test_c_a_connection_that_fails_should_say_why) {
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_NOT_CONNECTED, holdfast_lock_try_acquire(&lock));
  const std::string path = server.socket_path();
  const std::string nowhere = path + ".none";
  holdfast_client_config config = {};
  config.socket_path = nowhere.c_str();
  TEST_ASSERT_EQUAL(HOLDFAST_CONNECT_FAILED, holdfast_client_connect_with(&client, &config));
  config.socket_path = path.c_str();
  config.user = "nobody";
  config.password = "wrong";
  TEST_ASSERT_EQUAL(HOLDFAST_AUTH_FAILED, holdfast_client_connect_with(&client, &config));
  char text[256];
  const std::size_t size = holdfast_client_error_text(&client, text, sizeof text);
  TEST_ASSERT_TRUE(size > 9 && size < sizeof text && std::strlen(text) == size);
  TEST_ASSERT_TRUE(std::string(text).find("WRONGPASS") != std::string::npos);
  char short_text[5] = "xxxx";
  TEST_ASSERT_EQUAL(size, holdfast_client_error_text(&client, short_text, sizeof short_text));
  TEST_ASSERT_EQUAL(std::string(text).substr(0, 4), std::string(short_text));
  TEST_ASSERT_EQUAL(size, holdfast_client_error_text(&client, nullptr, 7));
  TEST_ASSERT_EQUAL(size, holdfast_client_error_text(&client, text, 0));
  config = {};
  const std::string host = "127.0.0.1";
  config.host = host.c_str();
  config.port = static_cast<std::uint16_t>(server.port());
  config.client_name = "in-c";
  config.database = 3;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_with(&client, &config));
  TEST_ASSERT_TRUE(server.command("CLIENT LIST").find("name=in-c") != std::string::npos);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_TRUE(server.command("INFO keyspace").find("db3:keys=1") != std::string::npos);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  holdfast_client_cancel(&client);
  TEST_ASSERT_EQUAL(HOLDFAST_CANCELLED, holdfast_lock_acquire(&lock, HOLDFAST_WAIT_FOREVER));
  holdfast_client_close(&client);
  TEST_ASSERT_FALSE(holdfast_client_connected(&client));
}

// ---- Keeping -----------------------------------------------------------------------------------------------------

namespace {

struct Told {
  std::atomic<int> at_risk{0};
  std::atomic<int> lost{0};
};

holdfast_keep_options telling(Told& told) {
  holdfast_keep_options options = {};
  options.on_at_risk = [](void* context) noexcept { ++static_cast<Told*>(context)->at_risk; };
  options.on_lost = [](void* context) noexcept { ++static_cast<Told*>(context)->lost; };
  options.context = &told;
  return options;
}

}  // namespace

TEST_ON_SERVER(test_c_a_watchdog_should_keep_holds_and_tell_of_their_loss) {
  connect_both(server);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_watchdog_init(&watchdog, watchdog_places, 4));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_watchdog_start(&watchdog, &client));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_watchdog_start(&watchdog, &client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_attach(&rival_client, &watchdog));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_attach(&rival_client, nullptr));
  Told told;
  holdfast_lock_options kept = {};
  kept.lease_ms = 600;
  kept.kept = true;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_reentrant_init(&lock, &owner, "r", &kept));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&other, &client, "m", &kept));
  const holdfast_keep_options options = telling(told);
  holdfast_keep_options odd = options;
  odd.keep = 7;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_lock_keep(&lock, &odd));
  odd = options;
  odd.max_hold_ms = -1;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_lock_keep(&lock, &odd));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_keep(&lock, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_keep(&lock, &options));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&other));
  const int64_t first_end = holdfast_lock_valid_until_ns(&lock);
  TEST_ASSERT_TRUE(comes([&] { return holdfast_now_ns() > first_end && holdfast_lock_held(&lock); }));
  TEST_ASSERT_TRUE(holdfast_lock_held(&other));
  TEST_ASSERT_EQUAL(0, told.lost.load());
  server.command("DEL r");
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
  TEST_ASSERT_FALSE(holdfast_lock_held(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_LOST, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&other));
  holdfast_watchdog_stop(&watchdog);
  holdfast_watchdog_destroy(&watchdog);
}

TEST_ON_SERVER(test_c_tend_should_keep_holds_where_there_is_no_watchdog) {
  connect(client, server.unix_url());
  holdfast_lock_options kept = {};
  kept.lease_ms = 600;
  kept.kept = true;
  TEST_ASSERT_EQUAL(HOLDFAST_NEVER, holdfast_client_tend(&client));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "m", &kept));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  const int64_t first_end = holdfast_lock_valid_until_ns(&lock);
  TEST_ASSERT_TRUE(comes([&] {
    TEST_ASSERT_TRUE(holdfast_client_tend(&client) < HOLDFAST_NEVER);
    return holdfast_lock_valid_until_ns(&lock) > first_end;
  }));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
}

// ---- Several servers ---------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_c_a_meter_should_count_what_its_clients_do_and_no_others) {
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_meter_init(&meter));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(&client));
  holdfast_client_config config = {};
  const std::string path = server.socket_path();
  config.socket_path = path.c_str();
  config.meter = &meter;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_connect_with(&client, &config));
  connect(rival_client, server.tcp_url());
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&lock, &client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(&other, &rival_client, "k", &long_lease));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_renew(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_try_acquire(&other));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_acquire(&lock, 20));
  server.command("SET k somebody");
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_LOST, holdfast_lock_renew(&other));

  holdfast_stats stats;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_stats(&client, &stats));
  TEST_ASSERT_EQUAL(1U, stats.grants);
  TEST_ASSERT_EQUAL(1U, stats.refusals);
  TEST_ASSERT_EQUAL(0U, stats.failures + stats.losses + stats.reconnects);
  TEST_ASSERT_EQUAL(1U, stats.renewals);
  TEST_ASSERT_EQUAL(1U, stats.waits);
  TEST_ASSERT_EQUAL(1U, stats.waits_ended);
  TEST_ASSERT_TRUE(stats.connects >= 1 && stats.bytes_sent > 100 && stats.bytes_received > 100);
  std::uint64_t grants = 0;
  for (const std::uint64_t bucket : stats.acquire.buckets) grants += bucket;
  TEST_ASSERT_EQUAL(1U, grants);
  TEST_ASSERT_TRUE(stats.wait.nanoseconds >= static_cast<std::uint64_t>(at_least(20ms).count()));
  holdfast_stats same;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_meter_stats(&meter, &same));
  TEST_ASSERT_EQUAL(stats.grants + stats.refusals, same.grants + same.refusals);
  // Who has no meter has no numbers.
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_stats(&rival_client, &stats));
  TEST_ASSERT_EQUAL(0U, stats.grants + stats.losses + stats.connects + stats.bytes_sent);
}

TEST(test_c_a_redlock_should_be_held_by_a_majority_and_kept) {
  LiveNodes servers(server_binaries().front(), 3);
  const std::string texts[] = {servers[0].unix_url(), servers[1].tcp_url(), servers[2].unix_url()};
  const char* const urls[] = {texts[0].c_str(), texts[1].c_str(), texts[2].c_str()};
  holdfast_quorum_config config = {};
  config.no_restart_guard = true;
  config.meter = &meter;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_meter_init(&meter));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_quorum_init(&quorum, nodes, 3));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_quorum_connect(&quorum, urls, 3, &config));
  TEST_ASSERT_TRUE(holdfast_quorum_connected(&quorum));
  for (std::size_t node = 0; node < 3; ++node)
    TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_quorum_node_status(&quorum, node));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_node_status(&quorum, 3));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_quorum_watchdog_init(&keeper));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_quorum_watchdog_start(&keeper, &quorum));

  holdfast_lock_options options = {};
  options.lease_ms = 600;
  options.kept = true;
  options.fence = true;
  options.node_timeout_ms = 200;
  options.min_validity_ms = 1;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_redlock_init(&lock, &quorum, votes, 2, "k", &options));
  holdfast_lock_destroy(&lock);
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_redlock_init(&lock, &quorum, votes, 0, "k", &options));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_redlock_init(&lock, &quorum, votes, 3, "k", &options));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_redlock_init(&other, &quorum, other_votes, 3, "k", &options));
  Told told;
  const holdfast_keep_options keep = telling(told);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_keep(&lock, &keep));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&lock, 10'000));
  TEST_ASSERT_TRUE(holdfast_lock_fence(&lock) > 0);
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_BUSY, holdfast_lock_try_acquire(&other));
  holdfast_stats stats;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_quorum_stats(&quorum, &stats));
  TEST_ASSERT_EQUAL(1U, stats.grants);  // Of a majority, and not one for each server.
  TEST_ASSERT_EQUAL(1U, stats.refusals);
  TEST_ASSERT_TRUE(stats.connects >= 2 && stats.bytes_sent > 100);
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_lock_acquire(&other, -1));
  int64_t remaining = 7;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_lock_remaining_on_server_ms(&lock, &remaining));
  const int64_t first_end = holdfast_lock_valid_until_ns(&lock);
  TEST_ASSERT_TRUE(comes([&] { return holdfast_now_ns() > first_end && holdfast_lock_held(&lock); }));
  (void)servers.each("DEL k");
  TEST_ASSERT_TRUE(comes([&] { return told.lost == 1; }));
  TEST_ASSERT_EQUAL(HOLDFAST_LOCK_LOST, holdfast_lock_release(&lock));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_acquire(&other, 10'000));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_release(&other));
  holdfast_quorum_watchdog_stop(&keeper);

  // Two of three are gone.
  servers[1].pause();
  servers[2].pause();
  holdfast_lock_destroy(&lock);
  options.kept = false;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_redlock_init(&lock, &quorum, votes, 3, "k", &options));
  TEST_ASSERT_EQUAL(HOLDFAST_NO_QUORUM, holdfast_lock_try_acquire(&lock));
  char text[320];
  TEST_ASSERT_TRUE(holdfast_quorum_error_text(&quorum, text, sizeof text) > 0);
  servers[1].resume();
  servers[2].resume();
  (void)holdfast_quorum_tend(&quorum);
  holdfast_quorum_cancel(&quorum);
  holdfast_quorum_close(&quorum);
  holdfast_lock_destroy(&lock);
  holdfast_lock_destroy(&other);
  holdfast_quorum_watchdog_destroy(&keeper);
  holdfast_quorum_destroy(&quorum);
}

// ---- No heap -----------------------------------------------------------------------------------------------------

TEST_ON_SERVER(test_c_nothing_should_allocate_error_paths_included) {
  prove_that_the_trap_works();
  Proxy proxy(server.socket_path() + ".proxy", server.socket_path());
  const std::string path = server.socket_path() + ".proxy";
  const std::string url = proxy.url();
  const char* const names[] = {"n1", "n2"};
  holdfast_status outcomes[20] = {};
  std::uint64_t allocations = 0;
  {
    HeapTrap trap;
    holdfast_client_config config = {};
    config.socket_path = path.c_str();
    config.request_timeout_ms = 300;
    config.connect_timeout_ms = 5000;
    (void)holdfast_meter_init(&meter);
    config.meter = &meter;
    outcomes[0] = holdfast_client_init(&client);
    outcomes[1] = holdfast_client_connect_with(&client, &config);
    outcomes[2] = holdfast_owner_init(&owner, &client, places, 3);
    outcomes[3] = holdfast_mutex_init(&lock, &client, "k", &long_lease);
    outcomes[4] = holdfast_multi_init(&other, &owner, names, 2, &long_lease);
    outcomes[5] = holdfast_read_write_init(&third, &fourth, &owner, "rw", &long_lease, &long_lease);
    outcomes[6] = holdfast_lock_acquire(&lock, 1000);
    outcomes[7] = holdfast_lock_try_acquire(&other);
    outcomes[8] = holdfast_lock_try_acquire(&fourth);
    outcomes[9] = holdfast_lock_renew(&lock);
    outcomes[10] = holdfast_lock_release(&other);
    outcomes[11] = holdfast_lock_post_release(&fourth);
    outcomes[12] = holdfast_lock_release(&lock);
    proxy.hold(true);
    outcomes[13] = holdfast_lock_try_acquire(&lock);  // Times out, is compensated.
    proxy.hold(false);
    outcomes[14] = holdfast_lock_acquire(&lock, 10'000);
    proxy.cut_after(1);
    outcomes[15] = holdfast_lock_renew(&lock);
    outcomes[16] = holdfast_lock_acquire(&third, 10'000);  // Reconnects.
    outcomes[17] = holdfast_lock_renew(&lock);
    holdfast_stats stats;
    char numbers[HOLDFAST_OPENMETRICS_SIZE];
    outcomes[18] = holdfast_client_stats(&client, &stats);
    outcomes[19] = holdfast_write_openmetrics(&stats, nullptr, 0, numbers, sizeof numbers, nullptr);
    char text[64];
    (void)holdfast_client_error_text(&client, text, sizeof text);
    (void)holdfast_client_tend(&client);
    holdfast_lock_destroy(&lock);
    holdfast_lock_destroy(&other);
    holdfast_lock_destroy(&third);
    holdfast_owner_destroy(&owner);
    holdfast_client_destroy(&client);
    allocations = trap.count();
  }
  for (std::size_t index = 0; index != std::size(outcomes); ++index) {
    TEST_MESSAGE(index);
    const holdfast_status expected = index == 13   ? HOLDFAST_TIMED_OUT
                                     : index == 15 ? HOLDFAST_TRANSPORT_CLOSED
                                                   : HOLDFAST_OK;
    TEST_ASSERT_EQUAL(expected, outcomes[index]);
  }
  TEST_ASSERT_EQUAL(0U, allocations);
}
