// SPDX-License-Identifier: MIT
#include "holdfast/detail/meter.hpp"

#include <string>
#include <thread>
#include <vector>

#include "printers.hpp"
#include "unity_style.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static void setUp() {}
static void tearDown() {}

namespace {

constexpr std::int64_t nanoseconds(Duration duration) { return duration.count(); }

// Who remembers what was observed, in words.
struct Log {
  std::vector<std::string> lines;
  template <char letter>
  static void note(void* self, const Observation& seen) noexcept {
    static_cast<Log*>(self)->lines.push_back(std::string(1, letter) + " " + std::string(seen.name.string_view()) + " " +
                                             to_string(seen.status) + " " + std::to_string(seen.duration.count()) +
                                             (seen.again ? " again" : ""));
  }
};

}  // namespace

TEST(test_meter_should_have_counted_nothing_before_it_is_told_anything) {
  const Meter meter;
  const Stats stats = meter.stats();
  TEST_ASSERT_EQUAL(0U, stats.grants + stats.refusals + stats.failures + stats.waits + stats.losses + stats.renewals);
  TEST_ASSERT_EQUAL(0U, stats.acquire.count() + stats.wait.count() + stats.renewal.count());
}

TEST(test_stats_of_a_client_without_a_meter_should_be_all_zero) {
  TEST_ASSERT_EQUAL(0U, stats_of(nullptr).bytes_sent);
  Meter meter;
  meter.tell(Seen::sent, {}, Status::ok, 7);
  TEST_ASSERT_EQUAL(7U, stats_of(&meter).bytes_sent);
}

TEST(test_meter_should_count_each_thing_in_its_own_number) {
  Meter meter;
  for (int index = 0; index < seen_count; ++index)
    for (int times = 0; times <= index; ++times) meter.tell(static_cast<Seen>(index), "k");
  for (const Status refusal : {Status::lock_busy, Status::upgrade_refused, Status::permits_differ})
    meter.tell(Seen::acquired, "k", refusal, 5);
  for (const Status failure : {Status::timed_out, Status::cancelled}) meter.tell(Seen::acquired_late, "k", failure, 5);
  for (const Status failure : {Status::lock_lost, Status::timed_out, Status::server_error, Status::read_only})
    meter.tell(Seen::renewed, "k", failure, 5);
  meter.tell(Seen::sent, {}, Status::ok, 1000);
  meter.tell(Seen::received, {}, Status::ok, 2000);
  const Stats stats = meter.stats();
  TEST_ASSERT_EQUAL(1U + 2U, stats.grants);
  TEST_ASSERT_EQUAL(3U, stats.refusals);
  TEST_ASSERT_EQUAL(2U, stats.failures);
  TEST_ASSERT_EQUAL(3U, stats.waits);
  TEST_ASSERT_EQUAL(2U + 2U, stats.waits_ended);
  TEST_ASSERT_EQUAL(4U, stats.renewals);
  TEST_ASSERT_EQUAL(4U, stats.renewals_failed);
  TEST_ASSERT_EQUAL(5U + 6U, stats.losses);
  TEST_ASSERT_EQUAL(7U + 8U, stats.connects);
  TEST_ASSERT_EQUAL(8U, stats.reconnects);
  TEST_ASSERT_EQUAL(9U, stats.disconnects);
  TEST_ASSERT_EQUAL(10U, stats.compensations);
  TEST_ASSERT_EQUAL(1000U, stats.bytes_sent);  // By their amount, which was none before.
  TEST_ASSERT_EQUAL(2000U, stats.bytes_received);
  TEST_ASSERT_EQUAL(3U, stats.acquire.count());
  TEST_ASSERT_EQUAL(4U, stats.wait.count());
  TEST_ASSERT_EQUAL(4U, stats.renewal.count());
}

TEST(test_latency_should_be_in_the_bucket_of_the_first_bound_that_it_is_not_above) {
  for (std::size_t bucket = 0; bucket < latency_bounds_count; ++bucket) {
    const Duration bound = latency_bounds[bucket].bound;
    TEST_ASSERT_EQUAL(bucket, latency_bucket_of(bound));
    TEST_ASSERT_EQUAL(bucket + 1, latency_bucket_of(bound + 1ns));
    if (bucket != 0) TEST_ASSERT_TRUE(latency_bounds[bucket - 1].bound < bound);
    TEST_ASSERT_EQUAL(bound, Duration(static_cast<std::int64_t>(std::stod(latency_bounds[bucket].text) * 1e9 + 0.5)));
  }
  TEST_ASSERT_EQUAL(0U, latency_bucket_of(0ns));
  TEST_ASSERT_EQUAL(latency_buckets_count - 1, latency_bucket_of(Duration::max()));
}

TEST(test_meter_should_sum_latencies_and_take_one_below_zero_for_none) {
  Meter meter;
  meter.tell(Seen::renewed, "k", Status::ok, nanoseconds(3ms));
  meter.tell(Seen::renewed, "k", Status::ok, nanoseconds(70s));
  meter.tell(Seen::renewed, "k", Status::ok, -5);
  const Stats stats = meter.stats();
  TEST_ASSERT_EQUAL(static_cast<std::uint64_t>(nanoseconds(3ms + 70s)), stats.renewal.nanoseconds);
  TEST_ASSERT_EQUAL(1U, stats.renewal.buckets[0]);
  TEST_ASSERT_EQUAL(1U, stats.renewal.buckets[latency_bucket_of(3ms)]);
  TEST_ASSERT_EQUAL(1U, stats.renewal.buckets[latency_buckets_count - 1]);
  TEST_ASSERT_EQUAL(3U, stats.renewal.count());
}

TEST(test_observer_should_be_told_by_the_function_of_what_happened) {
  Log log;
  const Observer observer = {.context = &log,
                             .on_grant = Log::note<'g'>,
                             .on_refusal = Log::note<'r'>,
                             .on_wait_begin = Log::note<'('>,
                             .on_wait_end = Log::note<')'>,
                             .on_renewal = Log::note<'n'>,
                             .on_loss = Log::note<'l'>,
                             .on_connect = Log::note<'c'>,
                             .on_disconnect = Log::note<'d'>,
                             .on_compensation = Log::note<'t'>};
  Meter meter(observer);
  meter.tell(Seen::connected, "h");
  meter.tell(Seen::wait_began, "k");
  meter.tell(Seen::acquired_late, "k", Status::ok, 5);
  meter.tell(Seen::acquired, "k", Status::ok, 4);
  meter.tell(Seen::acquired, "k", Status::lock_busy, 6);
  meter.tell(Seen::acquired_late, "k", Status::timed_out, 7);
  meter.tell(Seen::renewed, "k", Status::ok, 8);
  meter.tell(Seen::renewed, "k", Status::lock_lost, 9);
  meter.tell(Seen::lost, "k");
  meter.tell(Seen::lost_unnoticed, "k");  // A release found it: nobody is told.
  meter.tell(Seen::sent, {}, Status::ok, 9);
  meter.tell(Seen::received, {}, Status::ok, 9);
  meter.tell(Seen::disconnected, "h", Status::transport_closed);
  meter.tell(Seen::reconnected, "h");
  meter.tell(Seen::compensated, "k");
  const std::vector<std::string> expected = {
      "c h ok 0",        "( k ok 0",        ") k ok 5", "g k ok 5",        "g k ok 4", "r k lock_busy 6",
      ") k timed_out 7", "r k timed_out 7", "n k ok 8", "n k lock_lost 9", "l k ok 0", "d h transport_closed 0",
      "c h ok 0 again",  "t k ok 0"};
  TEST_ASSERT_EQUAL(expected.size(), log.lines.size());
  for (std::size_t index = 0; index < expected.size(); ++index) TEST_ASSERT_EQUAL(expected[index], log.lines[index]);
}

TEST(test_observer_without_functions_should_cost_no_call) {
  const Observer observer;
  Meter meter(observer);
  for (int index = 0; index < seen_count; ++index) meter.tell(static_cast<Seen>(index), "k");
  TEST_ASSERT_EQUAL(2U, meter.stats().grants);
}

TEST(test_numbers_should_be_exact_when_threads_count_at_once_and_never_contradict_each_other) {
  Meter meter;
  constexpr int threads = 4;
  constexpr std::uint64_t times = 20'000;
  std::vector<std::thread> tellers;
  for (int thread = 0; thread < threads; ++thread)
    tellers.emplace_back([&] {
      for (std::uint64_t time = 0; time < times; ++time) {
        meter.tell(Seen::connected, "h");
        meter.tell(Seen::wait_began, "k");
        meter.tell(Seen::acquired_late, "k", Status::ok, 1000);
        meter.tell(Seen::sent, {}, Status::ok, 3);
        meter.tell(Seen::disconnected, "h");
      }
    });
  bool good = true;
  Stats before;
  for (Stats now; (now = meter.stats()).disconnects != threads * times; before = now)
    good = good && now.waits_ended <= now.waits && now.disconnects <= now.connects &&
           now.bytes_sent >= before.bytes_sent && now.wait.count() >= before.wait.count();
  for (std::thread& teller : tellers) teller.join();
  TEST_ASSERT_TRUE(good);
  const Stats stats = meter.stats();
  TEST_ASSERT_EQUAL(threads * times, stats.wait.count());
  TEST_ASSERT_EQUAL(threads * times * 3, stats.bytes_sent);
  TEST_ASSERT_EQUAL(0U, stats.connected());
  TEST_ASSERT_EQUAL(0U, stats.waiting());
}
