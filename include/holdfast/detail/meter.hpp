// SPDX-License-Identifier: MIT
//
// Meter counts what clients do. It is storage that the caller hands over; a client without one counts nothing:
//
//     Meter meter;
//     Client client;
//     Status status = client.connect({.host = "db.internal", .meter = &meter});
//     ...
//     Stats stats = client.stats();  // Or meter.stats(): any thread, at any time.
//
// Any number of clients, watchdogs, loops and quorums may share one: it has their sums then. It must outlive them.
// Each number is exact and grows only. Several of them are read one after the other, so that one may be of a later instant than
// another, and how many wait now may be too many; but no wait is seen to end before it began, nor a connection, and a histogram's
// count is the sum of its buckets.
// Thread rule: any.   No heap, no lock. In a forked child it has what the parent had counted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/core/observer.hpp"
#include "holdfast/core/openmetrics.hpp"
#include "holdfast/core/stats.hpp"
#include "holdfast/core/witness.hpp"
#include "holdfast/detail/shared_count.hpp"

namespace holdfast {

class Meter : public Witness {
 public:
  Meter() noexcept : Witness(functions) {}
  // Its functions are called beside. REQUIRES: it outlives the meter, and stays as it is.
  explicit Meter(const Observer& observer) noexcept : Witness(functions), observer_(&observer) {}

  [[nodiscard]] Stats stats() const noexcept;

 private:
  struct SharedLatencies {
    SharedCount buckets[latency_buckets_count];
    SharedCount nanoseconds;

    void note(std::int64_t latency) noexcept;
    void read(Latencies& latencies) const noexcept;
  };

  enum class Number : std::uint8_t {
    grants,
    refusals,
    failures,
    waits,
    waits_ended,
    losses,
    renewals,
    renewals_failed,
    connects,
    reconnects,
    disconnects,
    compensations,
    bytes_sent,
    bytes_received,
  };
  static constexpr int number_count = static_cast<int>(Number::bytes_received) + 1;

  static const Table functions;
  static void take(Witness& self, Seen what, Status status, ByteView subject, std::int64_t amount) noexcept;
  static void read(const Witness& self, Stats& stats) noexcept;
  void count(Seen what, Status status, std::int64_t amount) noexcept;
  void add(Number number, std::uint64_t amount = 1) noexcept { counts_[static_cast<int>(number)].add(amount); }
  [[nodiscard]] std::uint64_t counted(Number number) const noexcept { return counts_[static_cast<int>(number)].load(); }

  const Observer* observer_ = nullptr;
  SharedCount counts_[number_count];
  SharedLatencies acquire_;
  SharedLatencies wait_;
  SharedLatencies renewal_;
};
static_assert(sizeof(Meter) <= 640, "promised: the numbers of any number of clients");

// Of a client that has this witness; all 0 without one.
[[nodiscard]] inline Stats stats_of(const Witness* witness) noexcept {
  Stats stats;
  if (witness != nullptr) witness->table->read(*witness, stats);
  return stats;
}

}  // namespace holdfast
