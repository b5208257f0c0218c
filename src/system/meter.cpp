// SPDX-License-Identifier: MIT
#include "holdfast/detail/meter.hpp"

#include "holdfast/core/node_task.hpp"

namespace holdfast {

namespace {

// The server said no. Anything else that ends an acquire without the lock is a failure.
constexpr bool is_refusal(Status status) noexcept {
  return status == Status::lock_busy || status == Status::upgrade_refused || status == Status::permits_differ;
}

// Whom to tell; nullptr: nobody.
Observer::Function function_for(const Observer& observer, Seen what, Status status) noexcept {
  switch (what) {
    case Seen::acquired:
    case Seen::acquired_late: return status == Status::ok ? observer.on_grant : observer.on_refusal;
    case Seen::wait_began: return observer.on_wait_begin;
    case Seen::renewed: return observer.on_renewal;
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

}  // namespace

constinit const Witness::Table Meter::functions = {take, read, NodeTask::tell_reply, LockTask::tell_stage,
                                                   Node::tell_connection};

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

void Meter::count(Seen what, Status status, std::int64_t amount) noexcept {
  switch (what) {
    case Seen::acquired_late:
      add(Number::waits_ended);
      wait_.note(amount);
      [[fallthrough]];
    case Seen::acquired:
      add(status == Status::ok ? Number::grants : is_refusal(status) ? Number::refusals : Number::failures);
      if (status == Status::ok) acquire_.note(amount);
      return;
    case Seen::wait_began: return add(Number::waits);
    case Seen::renewed:
      add(status == Status::ok ? Number::renewals : Number::renewals_failed);
      if (status == Status::ok) renewal_.note(amount);
      return;
    case Seen::lost:
    case Seen::lost_unnoticed: return add(Number::losses);
    case Seen::connected: return add(Number::connects);
    case Seen::reconnected: add(Number::connects); return add(Number::reconnects);
    case Seen::disconnected: return add(Number::disconnects);
    case Seen::compensated: return add(Number::compensations);
    case Seen::sent: return add(Number::bytes_sent, static_cast<std::uint64_t>(amount));
    case Seen::received: return add(Number::bytes_received, static_cast<std::uint64_t>(amount));
  }
}

void Meter::take(Witness& self, Seen what, Status status, ByteView subject, std::int64_t amount) noexcept {
  auto& meter = static_cast<Meter&>(self);
  meter.count(what, status, amount);
  if (meter.observer_ == nullptr) return;
  const Observer& observer = *meter.observer_;
  const Observation seen = {
      .name = subject, .status = status, .duration = Duration(amount), .again = what == Seen::reconnected};
  if (what == Seen::acquired_late && observer.on_wait_end != nullptr) observer.on_wait_end(observer.context, seen);
  if (const Observer::Function function = function_for(observer, what, status); function != nullptr)
    function(observer.context, seen);
}

void Meter::read(const Witness& self, Stats& stats) noexcept { stats = static_cast<const Meter&>(self).stats(); }

// What ends is read before what begins it, and the part before the whole.
Stats Meter::stats() const noexcept {
  Stats stats;
  stats.waits_ended = counted(Number::waits_ended);
  stats.disconnects = counted(Number::disconnects);
  stats.reconnects = counted(Number::reconnects);
  stats.grants = counted(Number::grants);
  stats.refusals = counted(Number::refusals);
  stats.failures = counted(Number::failures);
  stats.waits = counted(Number::waits);
  stats.losses = counted(Number::losses);
  stats.renewals = counted(Number::renewals);
  stats.renewals_failed = counted(Number::renewals_failed);
  stats.connects = counted(Number::connects);
  stats.compensations = counted(Number::compensations);
  stats.bytes_sent = counted(Number::bytes_sent);
  stats.bytes_received = counted(Number::bytes_received);
  acquire_.read(stats.acquire);
  wait_.read(stats.wait);
  renewal_.read(stats.renewal);
  return stats;
}

}  // namespace holdfast
