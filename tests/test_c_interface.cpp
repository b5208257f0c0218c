// SPDX-License-Identifier: MIT
//
// What the C interface says without a server: its statuses, its sizes, and what is no object.
#include <cstring>
#include <memory>
#include <string>

#include "holdfast.h"
#include "holdfast/acks.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/detail/branches.hpp"
#include "holdfast/holdfast.hpp"
#include "holdfast/sentinel_watch.hpp"
#include "holdfast/sentinels.hpp"
#include "holdfast/tls.hpp"
#include "holdfast_tls.h"
#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// In zeroed storage, as a static object of C.
template <class Storage>
std::unique_ptr<Storage> zeroed() {
  auto storage = std::make_unique<Storage>();
  std::memset(storage.get(), 0, sizeof(Storage));
  return storage;
}

// Every call of what is no lock.
void expect_no_lock(holdfast_lock* lock) {
  int64_t remaining = 7;
  const holdfast_keep_options keep = {};
  for (const holdfast_status status :
       {holdfast_lock_configuration(lock), holdfast_lock_try_acquire(lock), holdfast_lock_acquire(lock, 0),
        holdfast_lock_renew(lock), holdfast_lock_release(lock), holdfast_lock_post_release(lock),
        holdfast_lock_forget_loss(lock), holdfast_lock_keep(lock, &keep),
        holdfast_lock_remaining_on_server_ms(lock, &remaining)})
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, status);
  TEST_ASSERT_EQUAL(7, remaining);
  TEST_ASSERT_FALSE(holdfast_lock_held(lock));
  TEST_ASSERT_FALSE(holdfast_lock_at_risk(lock));
  TEST_ASSERT_EQUAL(0, holdfast_lock_remaining_ms(lock));
  TEST_ASSERT_EQUAL(0, holdfast_lock_valid_until_ns(lock));
  TEST_ASSERT_EQUAL(HOLDFAST_NEVER, holdfast_lock_renewal_due_ns(lock));
  TEST_ASSERT_EQUAL(0U, holdfast_lock_hold_count(lock));
  TEST_ASSERT_EQUAL(0U, holdfast_lock_fence(lock));
  holdfast_lock_tick(lock);
  holdfast_lock_destroy(lock);
}

}  // namespace

TEST(test_a_status_should_have_the_number_and_the_texts_that_it_has_in_cpp) {
  for (int number = 0; number < status_count; ++number) {
    const auto ours = static_cast<Status>(number);
    const auto theirs = static_cast<holdfast_status>(number);
    TEST_ASSERT_EQUAL(std::string(to_string(ours)), std::string(holdfast_status_name(theirs)));
    TEST_ASSERT_EQUAL(std::string(cause(ours)), std::string(holdfast_status_cause(theirs)));
    TEST_ASSERT_EQUAL(std::string(remedy(ours)), std::string(holdfast_status_remedy(theirs)));
  }
  TEST_ASSERT_EQUAL(std::string("lock_busy"), std::string(holdfast_status_name(HOLDFAST_LOCK_BUSY)));
  TEST_ASSERT_EQUAL(status_count, HOLDFAST_OUTCOME_UNKNOWN + 1);
}

// C has no closed enumeration: a number of another library's comes in here some day.
TEST(test_a_number_that_is_no_status_should_have_a_name_all_the_same) {
  for (const int number : {status_count, 255, 256, 300, -1, INT32_MAX, INT32_MIN}) {
    TEST_MESSAGE(number);
    const auto status = static_cast<holdfast_status>(number);
    TEST_ASSERT_EQUAL(std::string("invalid"), std::string(holdfast_status_name(status)));
    TEST_ASSERT_TRUE(holdfast_status_cause(status) != nullptr);
    TEST_ASSERT_TRUE(holdfast_status_remedy(status) != nullptr);
  }
}

TEST(test_the_sizes_should_be_found_by_name) {
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_CLIENT_SIZE}, holdfast_size_of("holdfast_client"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_LOCK_SIZE}, holdfast_size_of("holdfast_lock"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_OWNER_PLACE_SIZE}, holdfast_size_of("holdfast_owner_place"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_QUORUM_WATCHDOG_SIZE}, holdfast_size_of("holdfast_quorum_watchdog"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_SENTINELS_SIZE}, holdfast_size_of("holdfast_sentinels"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_CLUSTER_SIZE}, holdfast_size_of("holdfast_cluster"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_ACKS_SIZE}, holdfast_size_of("holdfast_acks"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_SENTINEL_WATCH_SIZE}, holdfast_size_of("holdfast_sentinel_watch"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_BRANCHES_SIZE}, holdfast_size_of("holdfast_branches"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_BRANCH_PLACE_SIZE}, holdfast_size_of("holdfast_branch_place"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_TLS_SIZE}, holdfast_size_of("holdfast_tls"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_TLS_PLACE_SIZE}, holdfast_size_of("holdfast_tls_place"));
  TEST_ASSERT_EQUAL(std::size_t{HOLDFAST_METER_SIZE}, holdfast_size_of("holdfast_meter"));
  TEST_ASSERT_EQUAL(sizeof(holdfast_stats), holdfast_size_of("holdfast_stats"));
  TEST_ASSERT_EQUAL(sizeof(holdfast_lock_options), holdfast_size_of("holdfast_lock_options"));
  TEST_ASSERT_EQUAL(sizeof(holdfast_client_config), holdfast_size_of("holdfast_client_config"));
  TEST_ASSERT_EQUAL(std::size_t{0}, holdfast_size_of("holdfast_loc"));
  TEST_ASSERT_EQUAL(std::size_t{0}, holdfast_size_of(""));
  TEST_ASSERT_EQUAL(std::size_t{0}, holdfast_size_of(nullptr));
}

// Storage is not thrown away: what is promised is at most a quarter larger than what is used.
TEST(test_a_size_should_be_near_that_of_its_object) {
  if (sizeof(void*) != 8) return;  // Promised for machines of 64 bits; others need less.
  TEST_ASSERT_TRUE(HOLDFAST_CLIENT_SIZE < sizeof(Client) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_LOCK_SIZE < sizeof(Mutex) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_WATCHDOG_SIZE < sizeof(Watchdog) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_WATCHDOG_PLACE_SIZE < (sizeof(RenewalSchedule::Place) + 4) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_QUORUM_VOTE_SIZE < sizeof(QuorumVote) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_SENTINELS_SIZE < sizeof(Sentinels) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_CLUSTER_SIZE < sizeof(Cluster) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_ACKS_SIZE < sizeof(Acks) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_SENTINEL_WATCH_SIZE < sizeof(SentinelWatch) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_BRANCHES_SIZE < sizeof(Branches) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_BRANCH_PLACE_SIZE < sizeof(Branches::Place) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_METER_SIZE < sizeof(Meter) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_TLS_SIZE < sizeof(Tls) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_TLS_PLACE_SIZE < sizeof(Tls::Place) * 5 / 4);
  TEST_ASSERT_TRUE(HOLDFAST_QUORUM_SIZE + HOLDFAST_QUORUM_NODE_SIZE * 9 < sizeof(Quorum<9>) * 5 / 4);
}

// ---- Numbers -----------------------------------------------------------------------------------------------------

TEST(test_a_meter_should_live_from_its_init_to_its_destroy) {
  holdfast_stats stats;
  std::memset(&stats, 7, sizeof stats);
  const holdfast_stats before = stats;
  const auto meter = zeroed<holdfast_meter>();
  for (const holdfast_meter* const none :
       {static_cast<const holdfast_meter*>(nullptr), static_cast<const holdfast_meter*>(meter.get()),
        reinterpret_cast<const holdfast_meter*>(meter->bytes + 1)})
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_meter_stats(none, &stats));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_stats(nullptr, &stats));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_stats(nullptr, &stats));
  TEST_ASSERT_EQUAL(0, std::memcmp(&before, &stats, sizeof stats));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_meter_init(nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_meter_init(meter.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_meter_init(meter.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_meter_stats(meter.get(), nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_meter_stats(meter.get(), &stats));
  TEST_ASSERT_EQUAL(0U, stats.grants + stats.bytes_received + stats.renewal.nanoseconds);
  holdfast_meter_destroy(meter.get());
  holdfast_meter_destroy(meter.get());
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_meter_stats(meter.get(), &stats));
}

TEST(test_a_meter_that_is_none_should_be_refused_by_name) {
  const auto meter = zeroed<holdfast_meter>();
  const auto client = zeroed<holdfast_client>();
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(client.get()));
  holdfast_client_config config = {};
  config.meter = meter.get();
  const char* reason = nullptr;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect_with(client.get(), &config));
  TEST_ASSERT_EQUAL(std::string("meter"), std::string(holdfast_client_problem(client.get(), &reason)));
  TEST_ASSERT_TRUE(std::string(reason).find("not initialised") != std::string::npos);
  holdfast_client_destroy(client.get());

  const auto quorum = zeroed<holdfast_quorum>();
  const auto nodes = std::make_unique<holdfast_quorum_node[]>(3);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_quorum_init(quorum.get(), nodes.get(), 3));
  holdfast_quorum_config settings = {};
  settings.meter = meter.get();
  const char* const urls[] = {"redis://a", "redis://b", "redis://c"};
  std::size_t node = 7;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_connect(quorum.get(), urls, 3, &settings));
  TEST_ASSERT_EQUAL(std::string("meter"), std::string(holdfast_quorum_problem(quorum.get(), &node, &reason)));
  // What was wrong is forgotten by what is wrong next.
  settings.meter = nullptr;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_connect(quorum.get(), urls, 0, &settings));
  const char* const field = holdfast_quorum_problem(quorum.get(), &node, &reason);
  TEST_ASSERT_TRUE(field == nullptr || std::string(field) != "meter");
  holdfast_quorum_destroy(quorum.get());
}

TEST(test_the_bounds_of_buckets_should_be_those_of_cpp) {
  for (std::size_t bucket = 0; bucket < latency_bounds_count; ++bucket)
    TEST_ASSERT_EQUAL(latency_bounds[bucket].bound.count(), holdfast_latency_bound_ns(bucket));
  TEST_ASSERT_EQUAL(100'000, holdfast_latency_bound_ns(0));
  for (const std::size_t bucket :
       {std::size_t{HOLDFAST_LATENCY_BUCKETS - 1}, std::size_t{HOLDFAST_LATENCY_BUCKETS}, SIZE_MAX})
    TEST_ASSERT_EQUAL(HOLDFAST_NEVER, holdfast_latency_bound_ns(bucket));
}

TEST(test_the_text_of_numbers_should_be_that_of_cpp_or_nothing) {
  Stats numbers;
  std::uint64_t next = 1;  // Each number is another one.
  for (std::uint64_t* const each :
       {&numbers.grants, &numbers.refusals, &numbers.failures, &numbers.waits, &numbers.losses, &numbers.renewals,
        &numbers.renewals_failed, &numbers.connects, &numbers.reconnects, &numbers.compensations, &numbers.bytes_sent,
        &numbers.bytes_received, &numbers.acquire.nanoseconds, &numbers.wait.nanoseconds, &numbers.renewal.nanoseconds})
    *each = next++;
  for (Latencies* const each : {&numbers.acquire, &numbers.wait, &numbers.renewal})
    for (std::uint64_t& bucket : each->buckets) bucket = next++;
  holdfast_stats stats;
  static_assert(sizeof stats == sizeof numbers);
  std::memcpy(&stats, &numbers, sizeof stats);

  const MetricLabel ours[] = {{"job", "a\"b"}, {"x", ""}};
  const holdfast_metric_label theirs[] = {{"job", "a\"b"}, {"x", ""}};
  std::string expected(openmetrics_size_max_with(2, 7), '\0');
  std::size_t size = 0;
  TEST_ASSERT_EQUAL(Status::ok, write_openmetrics(numbers, {expected.data(), expected.size()}, size, ours, 2));
  expected.resize(size);

  std::string text(HOLDFAST_OPENMETRICS_SIZE_WITH(2, 7), 'z');
  std::size_t written = 7;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_write_openmetrics(&stats, theirs, 2, text.data(), text.size(), &written));
  TEST_ASSERT_EQUAL(size, written);
  TEST_ASSERT_EQUAL(expected, std::string(text.c_str()));
  // As short as it can be, and one byte shorter.
  text.assign(size + 2, 'z');
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_write_openmetrics(&stats, theirs, 2, text.data(), size + 1, nullptr));
  TEST_ASSERT_EQUAL('z', text[size + 1]);
  TEST_ASSERT_EQUAL(expected, std::string(text.c_str()));
  text.assign(size + 2, 'z');
  const std::string untouched = text;
  written = 7;
  for (const std::size_t room : {size, std::size_t{1}, std::size_t{0}})
    TEST_ASSERT_EQUAL(HOLDFAST_BUFFER_TOO_SMALL,
                      holdfast_write_openmetrics(&stats, theirs, 2, text.data(), room, &written));
  const holdfast_metric_label nameless[] = {{nullptr, "a"}};
  const holdfast_metric_label twice[] = {{"a", "b"}, {"a", "c"}};
  const holdfast_metric_label valueless[] = {{"a", nullptr}};
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT,
                    holdfast_write_openmetrics(nullptr, nullptr, 0, text.data(), text.size(), &written));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_write_openmetrics(&stats, nullptr, 0, nullptr, 9, &written));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT,
                    holdfast_write_openmetrics(&stats, nullptr, 1, text.data(), text.size(), &written));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT,
                    holdfast_write_openmetrics(&stats, nameless, 1, text.data(), text.size(), &written));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT,
                    holdfast_write_openmetrics(&stats, twice, 2, text.data(), text.size(), &written));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT,
                    holdfast_write_openmetrics(&stats, theirs, SIZE_MAX, text.data(), text.size(), &written));
  TEST_ASSERT_EQUAL(untouched, text);
  TEST_ASSERT_EQUAL(7U, written);
  // A value that is not there is an empty one.
  text.assign(HOLDFAST_OPENMETRICS_SIZE_WITH(1, 1), 'z');
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_write_openmetrics(&stats, valueless, 1, text.data(), text.size(), nullptr));
  TEST_ASSERT_TRUE(text.find("holdfast_grants_total{a=\"\"} 1\n") != std::string::npos);
}

TEST(test_what_is_no_lock_should_refuse_every_call) {
  expect_no_lock(nullptr);
  const auto lock = zeroed<holdfast_lock>();
  expect_no_lock(lock.get());
  expect_no_lock(reinterpret_cast<holdfast_lock*>(lock->bytes + 1));

  const auto client = zeroed<holdfast_client>();
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_mutex_init(lock.get(), client.get(), "k", nullptr));
  expect_no_lock(lock.get());
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_mutex_init(nullptr, client.get(), "k", nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_mutex_init(lock.get(), client.get(), "k", nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_configuration(lock.get()));
  const auto copy = std::make_unique<holdfast_lock>(*lock);
  expect_no_lock(copy.get());
  // A client's storage is no lock's, whatever a cast says.
  expect_no_lock(reinterpret_cast<holdfast_lock*>(client.get()));
  holdfast_lock_destroy(lock.get());
  expect_no_lock(lock.get());
  holdfast_client_destroy(client.get());
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect(client.get(), "redis://127.0.0.1"));
  holdfast_client_destroy(client.get());
}

TEST(test_what_is_no_client_no_owner_no_watchdog_and_no_quorum_should_be_refused) {
  const auto client = zeroed<holdfast_client>();
  const auto owner = zeroed<holdfast_owner>();
  const auto place = zeroed<holdfast_owner_place>();
  const auto watchdog = zeroed<holdfast_watchdog>();
  const auto watchdog_place = zeroed<holdfast_watchdog_place>();
  const auto quorum = zeroed<holdfast_quorum>();
  const auto node = zeroed<holdfast_quorum_node>();
  const auto vote = zeroed<holdfast_quorum_vote>();
  const auto keeper = zeroed<holdfast_quorum_watchdog>();
  const auto lock = zeroed<holdfast_lock>();
  const auto other = zeroed<holdfast_lock>();
  const char* const names[] = {"a", "b"};
  char text[8] = "before";
  const char* reason = "before";
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect_with(client.get(), nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_attach(client.get(), nullptr));
  TEST_ASSERT_FALSE(holdfast_client_connected(client.get()));
  TEST_ASSERT_TRUE(holdfast_client_problem(client.get(), &reason) == nullptr);
  TEST_ASSERT_TRUE(reason == nullptr);
  TEST_ASSERT_EQUAL(std::size_t{0}, holdfast_client_error_text(client.get(), text, sizeof text));
  TEST_ASSERT_EQUAL(std::string(), std::string(text));
  TEST_ASSERT_EQUAL(HOLDFAST_NEVER, holdfast_client_tend(client.get()));
  holdfast_client_cancel(client.get());
  holdfast_client_close(client.get());

  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_owner_init(owner.get(), client.get(), place.get(), 1));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_reentrant_init(lock.get(), owner.get(), "k", nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_fair_init(lock.get(), owner.get(), "k", nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_multi_init(lock.get(), owner.get(), names, 2, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT,
                    holdfast_read_write_init(lock.get(), other.get(), owner.get(), "k", nullptr, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_semaphore_init(lock.get(), client.get(), "k", 1, nullptr));
  expect_no_lock(lock.get());
  expect_no_lock(other.get());

  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_watchdog_init(watchdog.get(), nullptr, 1));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_watchdog_init(watchdog.get(), watchdog_place.get(), 0));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_watchdog_start(watchdog.get(), client.get()));
  holdfast_watchdog_stop(watchdog.get());
  holdfast_watchdog_destroy(watchdog.get());

  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_init(quorum.get(), node.get(), 0));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_init(quorum.get(), node.get(), HOLDFAST_NODES_MAX + 1));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_connect(quorum.get(), names, 1, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_node_status(quorum.get(), 0));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT,
                    holdfast_redlock_init(lock.get(), quorum.get(), vote.get(), 1, "k", nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_quorum_watchdog_init(keeper.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_watchdog_start(keeper.get(), quorum.get()));
  holdfast_quorum_watchdog_destroy(keeper.get());

  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_quorum_init(quorum.get(), node.get(), 1));
  TEST_ASSERT_EQUAL(HOLDFAST_NOT_CONNECTED,
                    holdfast_redlock_init(lock.get(), quorum.get(), vote.get(), 1, "k", nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_NOT_CONNECTED, holdfast_lock_try_acquire(lock.get()));
  const char* urls[HOLDFAST_NODES_MAX + 1];
  for (const char*& url : urls) url = "unix:///nowhere";
  for (const std::size_t count : {std::size_t{0}, std::size_t{2}, std::size_t{HOLDFAST_NODES_MAX + 1}, SIZE_MAX}) {
    TEST_MESSAGE(count);
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_connect(quorum.get(), urls, count, nullptr));
  }
  std::size_t problem_node = 7;
  urls[0] = "http://h";
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_connect(quorum.get(), urls, 1, nullptr));
  TEST_ASSERT_TRUE(holdfast_quorum_problem(quorum.get(), &problem_node, &reason) != nullptr);
  TEST_ASSERT_EQUAL(std::size_t{0}, problem_node);
  TEST_ASSERT_TRUE(reason != nullptr && *reason != '\0');
  TEST_ASSERT_TRUE(holdfast_quorum_problem(nullptr, &problem_node, &reason) == nullptr);
  TEST_ASSERT_TRUE(reason == nullptr);
  const char* const none[] = {nullptr};
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_connect(quorum.get(), none, 1, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_quorum_connect(quorum.get(), nullptr, 1, nullptr));
  holdfast_lock_destroy(lock.get());
  holdfast_quorum_destroy(quorum.get());
  TEST_ASSERT_FALSE(holdfast_quorum_connected(quorum.get()));
}

// It would be made over one that its client knows, or that has a thread.
TEST(test_an_init_where_an_object_lives_should_change_nothing) {
  const auto client = zeroed<holdfast_client>();
  const auto owner = zeroed<holdfast_owner>();
  const auto places = std::make_unique<holdfast_owner_place[]>(2);
  const auto lock = zeroed<holdfast_lock>();
  const auto write = zeroed<holdfast_lock>();
  const auto watchdog = zeroed<holdfast_watchdog>();
  const auto watchdog_place = zeroed<holdfast_watchdog_place>();
  const auto quorum = zeroed<holdfast_quorum>();
  const auto node = zeroed<holdfast_quorum_node>();
  const auto vote = zeroed<holdfast_quorum_vote>();
  const auto keeper = zeroed<holdfast_quorum_watchdog>();
  const auto again = [](auto make) {
    TEST_ASSERT_EQUAL(HOLDFAST_OK, make());
    TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, make());
  };
  again([&] { return holdfast_client_init(client.get()); });
  again([&] { return holdfast_owner_init(owner.get(), client.get(), places.get(), 2); });
  again([&] { return holdfast_watchdog_init(watchdog.get(), watchdog_place.get(), 1); });
  again([&] { return holdfast_quorum_init(quorum.get(), node.get(), 1); });
  again([&] { return holdfast_quorum_watchdog_init(keeper.get()); });
  again([&] { return holdfast_mutex_init(lock.get(), client.get(), "k", nullptr); });
  for (const holdfast_status status :
       {holdfast_semaphore_init(lock.get(), client.get(), "k", 1, nullptr),
        holdfast_reentrant_init(lock.get(), owner.get(), "k", nullptr),
        holdfast_read_write_init(lock.get(), write.get(), owner.get(), "k", nullptr, nullptr),
        holdfast_read_write_init(write.get(), lock.get(), owner.get(), "k", nullptr, nullptr),
        holdfast_redlock_init(lock.get(), quorum.get(), vote.get(), 1, "k", nullptr)})
    TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, status);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_lock_configuration(lock.get()));
  expect_no_lock(write.get());
  holdfast_lock_destroy(lock.get());
  again([&] { return holdfast_reentrant_init(lock.get(), owner.get(), "k", nullptr); });
  holdfast_lock_destroy(lock.get());
  holdfast_quorum_watchdog_destroy(keeper.get());
  holdfast_watchdog_destroy(watchdog.get());
  holdfast_owner_destroy(owner.get());
  holdfast_quorum_destroy(quorum.get());
  holdfast_client_destroy(client.get());
}

TEST(test_a_setting_that_a_kind_does_not_have_should_be_refused) {
  const auto client = zeroed<holdfast_client>();
  const auto owner = zeroed<holdfast_owner>();
  const auto places = std::make_unique<holdfast_owner_place[]>(2);
  const auto lock = zeroed<holdfast_lock>();
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_owner_init(owner.get(), client.get(), places.get(), 2));
  const auto mutex = [&](const char* key, const holdfast_lock_options& options) {
    const holdfast_status status = holdfast_mutex_init(lock.get(), client.get(), key, &options);
    TEST_ASSERT_EQUAL(status, holdfast_lock_configuration(lock.get()));
    if (status != HOLDFAST_OK) TEST_ASSERT_EQUAL(status, holdfast_lock_try_acquire(lock.get()));
    holdfast_lock_destroy(lock.get());
    return status;
  };
  const auto reentrant = [&](const holdfast_lock_options& options) {
    const holdfast_status status = holdfast_reentrant_init(lock.get(), owner.get(), "k", &options);
    holdfast_lock_destroy(lock.get());
    return status;
  };
  TEST_ASSERT_EQUAL(HOLDFAST_OK, mutex("k", {}));
  holdfast_lock_options options = {};
  options.announce = options.fence = true;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, mutex("k", options));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, reentrant(options));
  options.announce = false;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, reentrant(options));
  for (int64_t holdfast_lock_options::*const field :
       {&holdfast_lock_options::node_timeout_ms, &holdfast_lock_options::min_validity_ms}) {
    options = {};
    options.*field = 10;
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, mutex("k", options));
  }
  for (const int64_t lease : {int64_t{-1}, int64_t{4}, int64_t{86'400'001}, INT64_MAX, INT64_MIN}) {
    options = {};
    options.lease_ms = lease;
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, mutex("k", options));
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, reentrant(options));
  }
  options = {};
  options.drift_ms = -1;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, mutex("k", options));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, mutex(nullptr, {}));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, mutex("", {}));
  const std::string longest(HOLDFAST_KEY_SIZE_MAX, 'k');
  TEST_ASSERT_EQUAL(HOLDFAST_OK, mutex(longest.c_str(), {}));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, mutex((longest + "k").c_str(), {}));
  options = {};
  options.key_size = HOLDFAST_KEY_SIZE_MAX + 1;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, mutex((longest + "k").c_str(), options));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, mutex(nullptr, options));

  // Names of a multi lock, and a place too few.
  const char* const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  const char* const odd[] = {"a", nullptr};
  const auto multi = [&](const char* const* list, std::size_t count, const holdfast_lock_options* wanted) {
    const holdfast_status status = holdfast_multi_init(lock.get(), owner.get(), list, count, wanted);
    holdfast_lock_destroy(lock.get());
    return status;
  };
  options = {};
  options.key_size = 1;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, multi(names, HOLDFAST_NAMES_MAX, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, multi(names, HOLDFAST_NAMES_MAX + 1, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, multi(names, 0, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, multi(nullptr, 2, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, multi(odd, 2, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, multi(names, 2, &options));
  const auto read = zeroed<holdfast_lock>();
  const auto write = zeroed<holdfast_lock>();
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT,
                    holdfast_read_write_init(read.get(), read.get(), owner.get(), "rw", nullptr, nullptr));
  expect_no_lock(read.get());
  TEST_ASSERT_EQUAL(HOLDFAST_OK,
                    holdfast_read_write_init(read.get(), write.get(), owner.get(), "rw", nullptr, nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_TOO_MANY_REQUESTS, holdfast_reentrant_init(lock.get(), owner.get(), "k", nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_TOO_MANY_REQUESTS, holdfast_lock_try_acquire(lock.get()));
  holdfast_lock_destroy(lock.get());
  // Either side takes both away.
  holdfast_lock_destroy(write.get());
  expect_no_lock(read.get());
  expect_no_lock(write.get());
  TEST_ASSERT_EQUAL(HOLDFAST_OK, reentrant({}));

  holdfast_owner_destroy(owner.get());
  holdfast_client_destroy(client.get());
}

TEST(test_a_configuration_should_be_checked_and_its_problem_named) {
  const auto client = zeroed<holdfast_client>();
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(client.get()));
  const auto problem_after = [&](const holdfast_client_config& config) {
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect_with(client.get(), &config));
    const char* reason = nullptr;
    const char* const field = holdfast_client_problem(client.get(), &reason);
    TEST_ASSERT_TRUE(field != nullptr && reason != nullptr);
    return std::string(field);
  };
  holdfast_client_config config = {};
  config.database = -1;
  TEST_ASSERT_EQUAL(std::string("database"), problem_after(config));
  config = {};
  config.request_timeout_ms = -1;
  TEST_ASSERT_EQUAL(std::string("request_timeout"), problem_after(config));
  config = {};
  config.connect_timeout_ms = INT64_MAX;
  TEST_ASSERT_EQUAL(std::string("connect_timeout"), problem_after(config));
  config = {};
  config.spin_us = 10'001;
  TEST_ASSERT_EQUAL(std::string("spin"), problem_after(config));
  config = {};
  const std::string longer(600, 'p');
  config.password = longer.c_str();
  TEST_ASSERT_EQUAL(std::string("password"), problem_after(config));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect(client.get(), nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect(client.get(), "rediss://127.0.0.1"));
  TEST_ASSERT_TRUE(holdfast_client_problem(client.get(), nullptr) != nullptr);
  holdfast_client_destroy(client.get());
}

// ---- Who says where the server is --------------------------------------------------------------------------------

namespace {

// What a connect was refused for; `reason` has words about it.
std::string problem_of(holdfast_client* client) {
  const char* reason = nullptr;
  const char* const field = holdfast_client_problem(client, &reason);
  TEST_ASSERT_EQUAL(field == nullptr, reason == nullptr);
  TEST_ASSERT_TRUE(reason == nullptr || *reason != '\0');
  return field == nullptr ? "" : field;
}

std::string problem_after(holdfast_client* client, const holdfast_client_config& config) {
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect_with(client, &config));
  return problem_of(client);
}

std::string problem_after(holdfast_client* client, const char* url, const holdfast_client_config& config) {
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect_to(client, url, &config));
  return problem_of(client);
}

std::string problem_of(const holdfast_sentinels* sentinels) {
  const char* const field = holdfast_sentinels_problem(sentinels, nullptr);
  return field == nullptr ? "" : field;
}

std::string problem_of(const holdfast_cluster* cluster) {
  const char* const field = holdfast_cluster_problem(cluster, nullptr);
  return field == nullptr ? "" : field;
}

}  // namespace

TEST(test_sentinels_should_be_checked_and_their_problem_named) {
  const auto sentinels = zeroed<holdfast_sentinels>();
  const auto init = [&](const holdfast_sentinels_config& config) {
    holdfast_sentinels_destroy(sentinels.get());
    return holdfast_sentinels_init(sentinels.get(), &config);
  };
  holdfast_sentinels_config config = {};
  config.hosts = "10.0.0.1,10.0.0.2:5";
  config.service = "mymaster";
  TEST_ASSERT_EQUAL(HOLDFAST_OK, init(config));
  TEST_ASSERT_EQUAL(std::string(), problem_of(sentinels.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_sentinels_init(sentinels.get(), nullptr));
  TEST_ASSERT_EQUAL(std::string(), problem_of(sentinels.get()));
  config.user = "somebody";
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(config));
  TEST_ASSERT_EQUAL(std::string("sentinels.user"), problem_of(sentinels.get()));
  config.password = "secret";
  TEST_ASSERT_EQUAL(HOLDFAST_OK, init(config));
  config.service = nullptr;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(config));
  TEST_ASSERT_EQUAL(std::string("sentinels.service"), problem_of(sentinels.get()));
  config.service = "mymaster";
  const std::string long_text(2000, 'a');
  for (const char* const hosts : {"", "a,,b", "a:0", "a:65536", "::1", "1,2,3,4,5,6,7,8,9,10", long_text.c_str()}) {
    TEST_MESSAGE(hosts);
    config.hosts = hosts;
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(config));
    const char* reason = nullptr;
    TEST_ASSERT_EQUAL(std::string("sentinels.hosts"),
                      std::string(holdfast_sentinels_problem(sentinels.get(), &reason)));
    TEST_ASSERT_TRUE(reason != nullptr && *reason != '\0');
  }
  config.hosts = "1,2,3,4,5,6,7,8,9";
  TEST_ASSERT_EQUAL(HOLDFAST_OK, init(config));
  // All of it may be a URL's to say.
  TEST_ASSERT_EQUAL(HOLDFAST_OK, init({}));
  TEST_ASSERT_EQUAL(std::string("sentinels.hosts"), problem_of(sentinels.get()));
  holdfast_sentinels_destroy(sentinels.get());
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinels_init(sentinels.get(), nullptr));
  holdfast_sentinels_destroy(sentinels.get());

  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_sentinels_init(nullptr, &config));
  const char* reason = "before";
  TEST_ASSERT_TRUE(holdfast_sentinels_problem(nullptr, &reason) == nullptr && reason == nullptr);
  TEST_ASSERT_EQUAL(std::string(), problem_of(sentinels.get()));
  holdfast_sentinels_destroy(nullptr);
}

TEST(test_a_cluster_should_be_checked_and_its_problem_named) {
  const auto cluster = zeroed<holdfast_cluster>();
  const auto init = [&](const holdfast_cluster_config& config) {
    holdfast_cluster_destroy(cluster.get());
    return holdfast_cluster_init(cluster.get(), &config);
  };
  holdfast_cluster_config config = {};
  config.hosts = "10.0.0.1,[::1]:6380";
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(config));
  TEST_ASSERT_EQUAL(std::string("cluster.name"), problem_of(cluster.get()));
  config.name = "{orders}";
  TEST_ASSERT_EQUAL(HOLDFAST_OK, init(config));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_cluster_init(cluster.get(), &config));
  const std::string long_name(HOLDFAST_KEY_SIZE_MAX + 1, 'k');
  config.name = long_name.c_str();
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(config));
  TEST_ASSERT_EQUAL(std::string("cluster.name"), problem_of(cluster.get()));
  config.name_size = HOLDFAST_KEY_SIZE_MAX;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, init(config));
  config.hosts = nullptr;
  TEST_ASSERT_EQUAL(HOLDFAST_OK, init(config));
  config.name_size = 0;
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(config));
  config.hosts = "a,,b";
  config.name = "k";
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(config));
  TEST_ASSERT_EQUAL(std::string("cluster.hosts"), problem_of(cluster.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, init({}));
  holdfast_cluster_destroy(cluster.get());

  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_cluster_init(nullptr, &config));
  const char* reason = "before";
  TEST_ASSERT_TRUE(holdfast_cluster_problem(cluster.get(), &reason) == nullptr && reason == nullptr);
  holdfast_cluster_destroy(nullptr);
}

TEST(test_what_a_client_is_told_of_should_be_there_and_be_one) {
  const auto client = zeroed<holdfast_client>();
  const auto sentinels = zeroed<holdfast_sentinels>();
  const auto cluster = zeroed<holdfast_cluster>();
  const auto tls = zeroed<holdfast_tls>();
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(client.get()));
  holdfast_client_config config = {};
  config.sentinels = sentinels.get();
  TEST_ASSERT_EQUAL(std::string("sentinels"), problem_after(client.get(), config));
  TEST_ASSERT_EQUAL(std::string("sentinels"), problem_after(client.get(), "redis-sentinel://h/m", config));
  config.sentinels = reinterpret_cast<holdfast_sentinels*>(sentinels->bytes + 1);
  TEST_ASSERT_EQUAL(std::string("sentinels"), problem_after(client.get(), config));
  config = {};
  config.cluster = cluster.get();
  TEST_ASSERT_EQUAL(std::string("cluster"), problem_after(client.get(), config));
  config = {};
  config.tls = tls.get();
  TEST_ASSERT_EQUAL(std::string("tls"), problem_after(client.get(), config));
  TEST_ASSERT_EQUAL(std::string("tls"), problem_after(client.get(), "rediss://h", config));

  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinels_init(sentinels.get(), nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_cluster_init(cluster.get(), nullptr));
  config = {};
  config.sentinels = sentinels.get();
  config.cluster = cluster.get();
  TEST_ASSERT_EQUAL(std::string("cluster"), problem_after(client.get(), config));
  TEST_ASSERT_EQUAL(std::string("cluster"), problem_after(client.get(), "redis-sentinel://h/m", config));
  config.cluster = nullptr;
  TEST_ASSERT_EQUAL(std::string("sentinels.hosts"), problem_after(client.get(), config));
  config.socket_path = "/run/redis";
  TEST_ASSERT_EQUAL(std::string("socket_path"), problem_after(client.get(), config));
  config = {};
  config.cluster = cluster.get();
  TEST_ASSERT_EQUAL(std::string("cluster.hosts"), problem_after(client.get(), config));

  // What a URL needs, and what it does not take.
  for (const char* const url : {"redis-sentinel://h/m", "rediss-sentinel://h/m", "valkey-sentinel://h/m"}) {
    TEST_MESSAGE(url);
    TEST_ASSERT_EQUAL(std::string("sentinels"), problem_after(client.get(), url, {}));
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect(client.get(), url));
    TEST_ASSERT_EQUAL(std::string("sentinels"), problem_of(client.get()));
  }
  for (const char* const url : {"redis-cluster://h/m", "valkeys-cluster://h/m"})
    TEST_ASSERT_EQUAL(std::string("cluster"), problem_after(client.get(), url, {}));
  for (const char* const url : {"rediss://h", "valkeys://h"})
    TEST_ASSERT_EQUAL(std::string("tls"), problem_after(client.get(), url, {}));
  config = {};
  config.sentinels = sentinels.get();
  TEST_ASSERT_EQUAL(std::string("tls"), problem_after(client.get(), "rediss-sentinel://h/m", config));
  for (const char* const url : {"redis://h", "unix:///run/redis", "redis-cluster://h/m", "redis-sentinel://h", ""}) {
    TEST_MESSAGE(url);
    TEST_ASSERT_EQUAL(std::string("url"), problem_after(client.get(), url, config));
  }
  TEST_ASSERT_EQUAL(std::string("url"), problem_after(client.get(), nullptr, config));
  // A URL that is refused leaves them as they were.
  TEST_ASSERT_EQUAL(std::string("sentinels.hosts"), problem_of(sentinels.get()));
  // The rest is the configuration's, and is checked.
  config.request_timeout_ms = -1;
  TEST_ASSERT_EQUAL(std::string("request_timeout"), problem_after(client.get(), "redis-sentinel://h/m", config));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_client_connect_to(nullptr, "redis://h", nullptr));

  holdfast_client_destroy(client.get());
  holdfast_cluster_destroy(cluster.get());
  holdfast_sentinels_destroy(sentinels.get());
}

TEST(test_a_sentinel_watch_should_be_of_one_client_or_watchdog_and_go_before_it) {
  const auto client = zeroed<holdfast_client>();
  const auto watchdog = zeroed<holdfast_watchdog>();
  const auto watch = zeroed<holdfast_sentinel_watch>();
  const auto other = zeroed<holdfast_sentinel_watch>();
  holdfast_watchdog_place places[2];
  char text[8] = "before";
  const auto expect_refused = [&](holdfast_status expected, holdfast_sentinel_watch* which) {
    TEST_ASSERT_EQUAL(expected, holdfast_sentinel_watch_init(which, client.get()));
    TEST_ASSERT_EQUAL(expected, holdfast_sentinel_watch_init_watchdog(which, watchdog.get()));
  };
  expect_refused(HOLDFAST_INVALID_ARGUMENT, watch.get());
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_sentinel_watch_init(watch.get(), nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_sentinel_watch_init_watchdog(watch.get(), nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_watchdog_init(watchdog.get(), places, 2));
  expect_refused(HOLDFAST_INVALID_ARGUMENT, nullptr);
  TEST_ASSERT_FALSE(holdfast_sentinel_watch_hearing(watch.get()));
  TEST_ASSERT_FALSE(holdfast_sentinel_watch_hearing(nullptr));
  TEST_ASSERT_EQUAL(std::size_t{0}, holdfast_sentinel_watch_error_text(watch.get(), text, sizeof text));
  TEST_ASSERT_EQUAL(std::string(), std::string(text));

  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinel_watch_init(watch.get(), client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_sentinel_watch_init(watch.get(), client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_sentinel_watch_init(other.get(), client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinel_watch_init_watchdog(other.get(), watchdog.get()));
  expect_refused(HOLDFAST_ALREADY_HELD, watch.get());
  expect_refused(HOLDFAST_ALREADY_HELD, other.get());
  const auto third = zeroed<holdfast_sentinel_watch>();
  expect_refused(HOLDFAST_ALREADY_HELD, third.get());
  for (const holdfast_sentinel_watch* const each : {watch.get(), other.get()}) {
    TEST_ASSERT_FALSE(holdfast_sentinel_watch_hearing(each));
    TEST_ASSERT_EQUAL(std::size_t{0}, holdfast_sentinel_watch_error_text(each, text, sizeof text));
  }
  // Another one may follow.
  for (holdfast_sentinel_watch* const each : {watch.get(), watch.get(), other.get(), third.get()})
    holdfast_sentinel_watch_destroy(each);
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinel_watch_init(third.get(), client.get()));
  holdfast_sentinel_watch_destroy(third.get());
  holdfast_client_destroy(client.get());
  holdfast_watchdog_destroy(watchdog.get());
}

TEST(test_branches_should_be_of_one_client_and_go_before_it) {
  const auto client = zeroed<holdfast_client>();
  const auto branches = zeroed<holdfast_branches>();
  const auto other = zeroed<holdfast_branches>();
  const auto acks = zeroed<holdfast_acks>();
  const auto watch = zeroed<holdfast_sentinel_watch>();
  const auto places = std::make_unique<holdfast_branch_place[]>(2);
  const auto init = [&](holdfast_branches* storage, std::size_t count) {
    return holdfast_branches_init(storage, client.get(), places.get(), count);
  };
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(branches.get(), 2));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(nullptr, 2));
  for (const std::size_t count : {std::size_t{0}, std::size_t{HOLDFAST_BRANCHES_MAX} + 1, SIZE_MAX})
    TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(branches.get(), count));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_branches_init(branches.get(), client.get(), nullptr, 2));
  TEST_ASSERT_EQUAL(std::size_t{0}, holdfast_branches_connected(branches.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_acks_init(acks.get(), client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(branches.get(), 2));
  holdfast_acks_destroy(acks.get());
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_sentinel_watch_init(watch.get(), client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, init(branches.get(), 2));
  holdfast_sentinel_watch_destroy(watch.get());
  TEST_ASSERT_EQUAL(HOLDFAST_OK, init(branches.get(), 2));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, init(branches.get(), 2));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, init(other.get(), 2));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_acks_init(acks.get(), client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_sentinel_watch_init(watch.get(), client.get()));
  TEST_ASSERT_EQUAL(std::size_t{0}, holdfast_branches_connected(branches.get()));
  holdfast_branches_destroy(other.get());
  holdfast_branches_destroy(branches.get());
  holdfast_branches_destroy(branches.get());
  TEST_ASSERT_EQUAL(HOLDFAST_OK, init(other.get(), 1));
  holdfast_branches_destroy(other.get());
  holdfast_client_destroy(client.get());
}

TEST(test_acks_should_be_of_one_client_and_go_before_it) {
  const auto client = zeroed<holdfast_client>();
  const auto acks = zeroed<holdfast_acks>();
  const auto other = zeroed<holdfast_acks>();
  char text[8] = "before";
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_acks_init(acks.get(), client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_acks_init(acks.get(), nullptr));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_client_init(client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_INVALID_ARGUMENT, holdfast_acks_init(nullptr, client.get()));
  TEST_ASSERT_FALSE(holdfast_acks_connected(acks.get()));
  TEST_ASSERT_EQUAL(std::size_t{0}, holdfast_acks_error_text(acks.get(), text, sizeof text));
  TEST_ASSERT_EQUAL(std::string(), std::string(text));

  holdfast_client_config config = {};
  config.socket_path = "/nowhere/socket";
  config.acks = 1;
  TEST_ASSERT_EQUAL(std::string("acks"), problem_after(client.get(), config));
  TEST_ASSERT_EQUAL(std::string("acks"), problem_after(client.get(), "unix:///nowhere/socket", config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_acks_init(acks.get(), client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_acks_init(acks.get(), client.get()));
  TEST_ASSERT_EQUAL(HOLDFAST_ALREADY_HELD, holdfast_acks_init(other.get(), client.get()));
  holdfast_acks_destroy(other.get());
  for (const int number : {-1, HOLDFAST_ACKS_MAX + 1, 256, 257, INT32_MAX, INT32_MIN}) {
    TEST_MESSAGE(number);
    config.acks = number;
    TEST_ASSERT_EQUAL(std::string("acks"), problem_after(client.get(), config));
  }
  config.acks = HOLDFAST_ACKS_MAX;
  for (const int64_t timeout : {int64_t{-1}, int64_t{5000}, INT64_MAX}) {
    TEST_MESSAGE(timeout);
    config.acks_timeout_ms = timeout;
    TEST_ASSERT_EQUAL(std::string("acks_timeout"), problem_after(client.get(), config));
  }
  config.acks_timeout_ms = 0;
  TEST_ASSERT_EQUAL(HOLDFAST_CONNECT_FAILED, holdfast_client_connect_with(client.get(), &config));
  TEST_ASSERT_EQUAL(std::string(), problem_of(client.get()));
  holdfast_acks_destroy(acks.get());
  holdfast_acks_destroy(acks.get());
  TEST_ASSERT_EQUAL(std::string("acks"), problem_after(client.get(), config));
  TEST_ASSERT_EQUAL(HOLDFAST_OK, holdfast_acks_init(other.get(), client.get()));
  holdfast_acks_destroy(other.get());
  holdfast_client_destroy(client.get());
}
