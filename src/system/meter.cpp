// SPDX-License-Identifier: MIT
#include "holdfast/detail/meter.hpp"

namespace holdfast {

namespace {

// Whom to tell; nullptr: nobody.
Observer::Function function_for(const Observer& observer, Seen what) noexcept {
  switch (what) {
    case Seen::granted: return observer.on_grant;
    case Seen::refused:
    case Seen::failed: return observer.on_refusal;
    case Seen::wait_began: return observer.on_wait_begin;
    case Seen::wait_ended: return observer.on_wait_end;
    case Seen::renewed:
    case Seen::renewal_failed: return observer.on_renewal;
    case Seen::lost: return observer.on_loss;
    case Seen::connected:
    case Seen::reconnected: return observer.on_connect;
    case Seen::disconnected: return observer.on_disconnect;
    case Seen::compensated: return observer.on_compensation;
    case Seen::lost_unnoticed:
    case Seen::sent:
    case Seen::received: return nullptr;
  }
  return nullptr;
}

// What is counted by its amount, and not by how often it happens.
constexpr bool is_amount(Seen what) noexcept { return what == Seen::sent || what == Seen::received; }

}  // namespace

constinit const Witness::Table Meter::functions = {count, read};

// A clock that has gone back is none of ours: nothing is less than 0.
void Meter::SharedLatencies::note(std::int64_t latency) noexcept {
  if (latency < 0) latency = 0;
  nanoseconds.add(static_cast<std::uint64_t>(latency));
  buckets[latency_bucket_of(Duration(latency))].add(1);
}

void Meter::SharedLatencies::read(Latencies& latencies) const noexcept {
  for (std::size_t bucket = 0; bucket < latency_buckets_count; ++bucket)
    latencies.buckets[bucket] = buckets[bucket].load();
  latencies.nanoseconds = nanoseconds.load();
}

void Meter::count(Witness& self, Seen what, Status status, ByteView subject, std::int64_t amount) noexcept {
  auto& meter = static_cast<Meter&>(self);
  meter.counts_[static_cast<int>(what)].add(is_amount(what) ? static_cast<std::uint64_t>(amount) : 1);
  if (what == Seen::granted) meter.acquire_.note(amount);
  if (what == Seen::wait_ended) meter.wait_.note(amount);
  if (what == Seen::renewed) meter.renewal_.note(amount);
  if (meter.observer_ == nullptr) return;
  const Observer::Function function = function_for(*meter.observer_, what);
  if (function == nullptr) return;
  function(meter.observer_->context,
           {.name = subject, .status = status, .duration = Duration(amount), .again = what == Seen::reconnected});
}

void Meter::read(const Witness& self, Stats& stats) noexcept { stats = static_cast<const Meter&>(self).stats(); }

// What ends is read before what begins it.
Stats Meter::stats() const noexcept {
  Stats stats;
  stats.waits_ended = counted(Seen::wait_ended);
  stats.disconnects = counted(Seen::disconnected);
  stats.grants = counted(Seen::granted);
  stats.refusals = counted(Seen::refused);
  stats.failures = counted(Seen::failed);
  stats.waits = counted(Seen::wait_began);
  stats.losses = counted(Seen::lost) + counted(Seen::lost_unnoticed);
  stats.renewals = counted(Seen::renewed);
  stats.renewals_failed = counted(Seen::renewal_failed);
  stats.reconnects = counted(Seen::reconnected);
  stats.connects = counted(Seen::connected) + stats.reconnects;
  stats.compensations = counted(Seen::compensated);
  stats.bytes_sent = counted(Seen::sent);
  stats.bytes_received = counted(Seen::received);
  acquire_.read(stats.acquire);
  wait_.read(stats.wait);
  renewal_.read(stats.renewal);
  return stats;
}

}  // namespace holdfast
