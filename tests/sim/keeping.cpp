// SPDX-License-Identifier: MIT
#include "keeping.hpp"

#include <algorithm>

#include "holdfast/limits.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

// What scheduling may cost: a thread that is woken runs within microseconds, and one renewal takes a few of them.
constexpr SimTime slack = 30 * millisecond;
// A slow connect, and a slow reply to a handshake.
constexpr SimTime slow_way = 400 * millisecond;
// Holds that go out together: a call of the watchdog's has room for 20 long names at least, tend() for half a session.
constexpr std::size_t holds_together = in_flight_max / 2;

constexpr SimTime late(SimTime local) noexcept { return local * 51 / 50; }

}  // namespace

void Keeping::note_lost(const Link& link) const {
  Thread* const thread = world_.thread_at(link.user);
  if (thread == nullptr) return;
  thread->uses.resize(world_.nodes().size());  // It may not have dialled itself.
  thread->uses[link.node].lost_at = world_.now();
  if (!link.greeted) thread->uses[link.node].failed_at = world_.now();
}

bool Keeping::is_kept(const Process& process, const Application::Slot& slot) const {
  const SlotPlan& plan = *slot.plan;
  if (!plan.kept || plan.max_hold != 0 || plan.liveness != 0 || slot.of_quorum || !slot.exists()) return false;
  if (world_.plan().one_place()) return false;  // Which of its nodes must be in reach is not known here.
  if (process.lied_to || slot.own_belief != Instant() || slot.moved) return false;
  if (!slot.shares_hold()) return true;
  // Objects that share a hold have its options from one of them.
  const auto slots = std::span(process.application->slots());
  return std::none_of(slots.begin(), slots.end(), [&](const Application::Slot& other) {
    const bool other_side = other.plan->kind != plan.kind && (other.of_two_sides() || slot.of_two_sides());
    return &other != &slot && slot.same_owner(other) && !other_side;
  });
}

const Thread* Keeping::keeper_of(const Process& process, const Application::Slot& slot) const {
  if (!process.application->watched(slot)) return world_.thread_at(slot.worker->thread);
  for (const std::size_t id : process.threads) {
    const Thread* const thread = world_.thread_at(id);
    if (!world_.uses_locks(*thread) && !thread->uses.empty() && thread->uses[slot.node].dialled) return thread;
  }
  return nullptr;
}

SimTime Keeping::resolver_until(const Process& process) const {
  SimTime until = -1;
  for (const std::size_t id : process.threads)
    if (const Thread* const thread = world_.thread_at(id); thread != nullptr)
      until = std::max(until, thread->resolving_since < 0 ? thread->resolved_at : world_.now());
  return until;
}

Keeping::Way Keeping::way_of(const Process& process, const Thread& keeper, std::size_t node, SimTime since) const {
  std::size_t wanted = 0;
  for (const ConnectionPlan& connection : process.plan->connections)
    if (process.application->workers()[connection.thread].thread == keeper.id) ++wanted;
  std::size_t found = 0;
  for (const std::size_t index : world_.open_links()) {
    const Link& link = world_.link(index);
    if (link.user != keeper.id || link.node != node || link.subscribed || link.waits || !link.useful) continue;
    if (!link.sound(world_.now())) return Way::hindered;
    if (link.useful_at <= since) ++found;
  }
  return found >= std::max<std::size_t>(wanted, 1) ? Way::there : Way::lost;
}

void Keeping::note_belief(Process& process, const Application::Slot& slot, Instant until, bool there, bool robbed) {
  if (until != Instant() || slot.seen_until == Instant() || slot.depth == 0 || slot.releasing) return;
  if (robbed || !is_kept(process, slot)) return;
  const bool ran_out = Instant::from_nanoseconds(world_.local_time(process)) >= slot.seen_until;
  if (ran_out) return judge(process, slot, slot.seen_until);
  // The server has said so, or has to have been believed.
  if (there)
    world_.fail("kept", "client " + std::to_string(process.index) + " gave " + world_.plan().names[slot.name] +
                            " up before its time, and its server keeps it");
}

void Keeping::judge(Process& process, const Application::Slot& slot, Instant until) {
  const Timeouts& timeouts = process.application->timeouts_of(slot);
  const Node& node = world_.node(slot.node);
  const Duration lease{slot.plan->lease};
  const SimTime end = world_.true_time(process, until.nanoseconds());
  const SimTime confirmed = world_.true_time(process, (until - (lease - drift_of(lease))).nanoseconds());
  const SimTime round_trip = 2 * world_.latency_since(confirmed) + millisecond;
  if (2 * round_trip >= std::min(timeouts.request, timeouts.stall)) return;

  // Whatever was under way when the last hindrance ended is given up by its own deadline, and done once more.
  SimTime in_reach = std::max({confirmed, process.hindered_until, node.out_of_reach_until});
  SimTime again = in_reach == confirmed ? 0 : late(timeouts.request) + late(slot.plan->lease) / 30;
  const Thread* const keeper = keeper_of(process, slot);
  const SimTime lost = keeper == nullptr || keeper->uses.empty() ? -1 : keeper->uses[slot.node].lost_at;
  const Way way = keeper == nullptr ? Way::lost : way_of(process, *keeper, slot.node, confirmed);
  if (way == Way::hindered) return;  // Until its client has noticed.
  if (lost >= confirmed || way == Way::lost) {
    const auto addresses = static_cast<SimTime>(process.application->addresses_of(slot));
    const SimTime slow_connect = world_.plan().enabled(Fault::slow_connect) ? slow_way : 0;
    const SimTime slow_handshake = world_.plan().enabled(Fault::slow_handshake) ? slow_way : 0;
    const SimTime connect = (slow_connect + slow_handshake + 2 * round_trip) * addresses;
    // It cannot be had in time, or not in one attempt.
    if (timeouts.connect < connect || timeouts.stall < slow_handshake + round_trip) return;
    if (addresses > 1 && timeouts.connect < addresses * address_timeout_min.count()) return;
    // Where nobody could connect for a while, an attempt was under way, which may still be; and the longest pause follows
    // what has failed.
    const SimTime before = confirmed - late(timeouts.connect + reconnect_kept_max.count());
    const SimTime since = std::max(in_reach, lost);
    const SimTime resolved = keeper == nullptr ? resolver_until(process) : keeper->resolved_at;
    const SimTime swallowed = keeper == nullptr || keeper->uses.empty() ? -1 : keeper->uses[slot.node].swallowed_at;
    const SimTime dialling = std::max({node.no_dialling_until, resolved, swallowed});
    const bool failed = process.application->has_silent_addresses(slot) || keeper == nullptr || keeper->uses.empty() ||
                        dialling >= before || keeper->uses[slot.node].failed_at >= before;
    in_reach = std::max(since, dialling);
    again += connect + late(slot.plan->lease) / 30 +
             (failed ? late(timeouts.connect + reconnect_kept_max.count()) : reconnect_soon_max.count());
  }
  // A third of the lease is over, and whoever keeps it does nothing else.
  SimTime due = std::max(in_reach + again, confirmed + late(slot.plan->lease) / 3);
  if (!slot.on_loop() && !process.application->watched(slot)) {
    if (slot.worker->tends_since < 0 || slot.worker->tends != slot.plan->connection) return;
    // Who begins to tend when a renewal is overdue reads what came to it meanwhile: it may have failed, and is put off.
    const SimTime overdue = slot.worker->tends_since > due ? late(slot.plan->lease) / 30 : 0;
    due = std::max(due, slot.worker->tends_since + overdue);
  }
  const auto rounds = static_cast<SimTime>(4 + process.plan->slots.size() / holds_together);
  ++judged_;
  if (due + rounds * round_trip + slack >= end) return;
  world_.fail("kept", "client " + std::to_string(process.index) + " keeps " + world_.plan().names[slot.name] +
                          ", and lost it at " + time_text(end) + " s; its server was in reach from " +
                          time_text(in_reach) + " s on");
}

}  // namespace holdfast::sim
