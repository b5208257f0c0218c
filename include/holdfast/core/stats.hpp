// SPDX-License-Identifier: MIT
//
// Stats are the numbers of a client, or of a quorum, as they were when somebody asked: plain values, to be copied and compared.
// A Meter (detail/meter.hpp) counts them, openmetrics.hpp writes them as text.
//
// Locks are counted by what their callers were told: a lock on three servers that is granted is one grant. What crosses the wire
// is counted for each connection.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"

namespace holdfast {

// The buckets of all latencies: from what a server on this machine takes to how long a job waits for another. Each has what is
// not above its bound, and not in a bucket before it; one more has the rest. `text` is the bound in seconds.
struct LatencyBound {
  Duration bound;
  const char* text;
};
inline constexpr LatencyBound latency_bounds[] = {
    {std::chrono::microseconds(100), "0.0001"},
    {std::chrono::microseconds(250), "0.00025"},
    {std::chrono::microseconds(500), "0.0005"},
    {std::chrono::microseconds(1000), "0.001"},
    {std::chrono::microseconds(2500), "0.0025"},
    {std::chrono::milliseconds(5), "0.005"},
    {std::chrono::milliseconds(10), "0.01"},
    {std::chrono::milliseconds(25), "0.025"},
    {std::chrono::milliseconds(50), "0.05"},
    {std::chrono::milliseconds(100), "0.1"},
    {std::chrono::milliseconds(250), "0.25"},
    {std::chrono::milliseconds(500), "0.5"},
    {std::chrono::seconds(1), "1.0"},
    {std::chrono::milliseconds(2500), "2.5"},
    {std::chrono::seconds(5), "5.0"},
    {std::chrono::seconds(10), "10.0"},
    {std::chrono::seconds(30), "30.0"},
    {std::chrono::seconds(60), "60.0"},
};
inline constexpr std::size_t latency_bounds_count = sizeof latency_bounds / sizeof latency_bounds[0];
inline constexpr std::size_t latency_buckets_count = latency_bounds_count + 1;

// Which bucket a latency belongs to.
[[nodiscard]] constexpr std::size_t latency_bucket_of(Duration latency) noexcept {
  std::size_t bucket = 0;
  while (bucket < latency_bounds_count && latency > latency_bounds[bucket].bound) ++bucket;
  return bucket;
}

struct Latencies {
  std::uint64_t buckets[latency_buckets_count] = {};
  std::uint64_t nanoseconds = 0;  // Their sum.

  [[nodiscard]] constexpr std::uint64_t count() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t bucket : buckets) sum += bucket;
    return sum;
  }
};

struct Stats {
  // Calls that acquire a lock, by how they ended. One that is in progress is in none of them, nor one refused for its arguments.
  std::uint64_t grants = 0;    // ok, also where a hold was acquired once more.
  std::uint64_t refusals = 0;  // The server said no: lock_busy, upgrade_refused, permits_differ.
  std::uint64_t failures = 0;  // Anything else: a connection, a server's error, a cancel.

  std::uint64_t waits = 0;        // Calls that found the lock busy, and began to wait for it.
  std::uint64_t waits_ended = 0;  // Those of them that are over, whatever came of it.

  std::uint64_t losses = 0;    // Holds that ended before they were released, each once.
  std::uint64_t renewals = 0;  // Each extended one hold: by a watchdog, by tend(), by a loop, or by renew().
  std::uint64_t renewals_failed =
      0;  // Asked for, and the hold was not extended: refused, not answered, or not ours any more.

  std::uint64_t connects = 0;     // Connections that came to be of use, the watchdog's own among them,
  std::uint64_t reconnects = 0;   // those of them that followed one which was lost,
  std::uint64_t disconnects = 0;  // and those that have ended.

  // What was sent to a server to take back what nobody may have, or may have any more: after an unknown outcome, a cancel, a
  // loss, a minority of a quorum.
  std::uint64_t compensations = 0;

  // Of all connections, those for subscriptions and the questions to sentinels among them. Under TLS: before it is encrypted.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;

  Latencies acquire;  // Of grants: from the call to its end.
  Latencies wait;     // Of waits that are over: likewise.
  Latencies renewal;  // Of renewals: from before the request left to the answer, of a quorum to the majority's.

  [[nodiscard]] constexpr std::uint64_t waiting() const noexcept { return waits - waits_ended; }
  [[nodiscard]] constexpr std::uint64_t connected() const noexcept { return connects - disconnects; }
};

}  // namespace holdfast
