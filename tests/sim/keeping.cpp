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
// A quorum asks who answers there so late again.
constexpr SimTime identity_pause = 6 * second;
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
  if (!plan.kept || plan.max_hold != 0 || plan.liveness != 0 || !slot.exists()) return false;
  // Whose quorum is closed or connected anew, or told of a smaller max_lease, and who has clients of single servers beside it.
  if (slot.of_quorum && (process.plan->quorum_anew != 0 || process.plan->connects_anew != 0 ||
                         world_.plan().max_lease_small != 0 || process.plan->connections.size() != 1))
    return false;
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
    if (world_.thread_done(id)) continue;  // A watchdog that was stopped.
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

Keeping::Way Keeping::way_of(const Process& process, const Thread* keeper, std::size_t node, SimTime since) const {
  const auto is_its = [&](const Link& link) {
    if (keeper != nullptr) return link.user == keeper->id;
    return link.process == process.index && link.life == process.life;
  };
  std::size_t wanted = 0;
  for (const ConnectionPlan& connection : process.plan->connections)
    if (keeper != nullptr && process.application->workers()[connection.thread].thread == keeper->id) ++wanted;
  std::size_t found = 0;
  for (const std::size_t index : world_.open_links()) {
    const Link& link = world_.link(index);
    if (!is_its(link) || link.node != node || link.subscribed || link.waits || !link.useful) continue;
    if (!link.sound(world_.now())) return Way::hindered;
    if (link.useful_at <= since) ++found;
  }
  return found >= std::max<std::size_t>(wanted, 1) ? Way::there : Way::lost;
}

NodeUse Keeping::use_of(const Process& process, const Thread* keeper, std::size_t node) const {
  NodeUse use;
  for (const std::size_t id : process.threads) {
    const Thread* const thread = world_.thread_at(id);
    if (thread == nullptr || node >= thread->uses.size() || (keeper != nullptr && thread != keeper)) continue;
    const NodeUse& own = thread->uses[node];
    use.dialled = use.dialled || own.dialled;
    use.lost_at = std::max(use.lost_at, own.lost_at);
    use.failed_at = std::max(use.failed_at, own.failed_at);
    use.swallowed_at = std::max(use.swallowed_at, own.swallowed_at);
  }
  return use;
}

void Keeping::note_belief(Process& process, const Application::Slot& slot, Instant until, NodeSet there, bool robbed) {
  if (until != Instant() || slot.seen_until == Instant() || slot.depth == 0 || slot.releasing) return;
  if (robbed || !is_kept(process, slot)) return;
  const bool ran_out = Instant::from_nanoseconds(world_.local_time(process)) >= slot.seen_until;
  if (ran_out) return judge(process, slot, slot.seen_until, there);
  // The server has said so, or has to have been believed.
  if (there != 0 && !slot.of_quorum)
    world_.fail("kept", "client " + std::to_string(process.index) + " gave " + world_.plan().names[slot.name] +
                            " up before its time, and its server keeps it");
}

// Whatever was under way when the last hindrance ended is given up by its own deadline, and done once more.
std::optional<SimTime> Keeping::ready_from(Process& process, const Application::Slot& slot, std::size_t number,
                                           SimTime confirmed) const {
  const Timeouts& timeouts = process.application->timeouts_of(slot);
  const Node& node = world_.node(number);
  const SimTime round_trip = 2 * world_.latency_since(confirmed) + millisecond;
  SimTime in_reach = std::max({confirmed, process.hindered_until, node.out_of_reach_until});
  SimTime again = in_reach == confirmed ? 0 : late(timeouts.request) + late(slot.plan->lease) / 30;
  const Thread* const keeper = slot.of_quorum ? nullptr : keeper_of(process, slot);
  const bool known = keeper != nullptr || slot.of_quorum;
  const NodeUse use = known ? use_of(process, keeper, number) : NodeUse();
  const Way way = known ? way_of(process, keeper, number, confirmed) : Way::lost;
  if (way == Way::hindered) return std::nullopt;  // Until its client has noticed.
  if (use.lost_at < confirmed && way == Way::there) return in_reach + again;
  // Who does not learn which server answers asks it for that again later.
  if (slot.of_quorum && node.out_of_reach_until + identity_pause >= confirmed) return std::nullopt;
  const auto addresses = static_cast<SimTime>(process.application->addresses_of(slot));
  const SimTime slow_connect = world_.plan().enabled(Fault::slow_connect) ? slow_way : 0;
  const SimTime slow_handshake = world_.plan().enabled(Fault::slow_handshake) ? slow_way : 0;
  // Over TLS 1.2 there are two flights before ours.
  const SimTime flights = process.plan->tls ? 3 : 1;
  const SimTime connect = (slow_connect + flights * (slow_handshake + round_trip) + round_trip) * addresses;
  // It cannot be had in time, or not in one attempt.
  if (timeouts.connect < connect || timeouts.stall < slow_handshake + round_trip) return std::nullopt;
  if (addresses > 1 && timeouts.connect < addresses * address_timeout_min.count()) return std::nullopt;
  // Where nobody could connect for a while, an attempt was under way, which may still be; and the longest pause follows
  // what has failed.
  const SimTime before = confirmed - late(timeouts.connect + reconnect_kept_max.count());
  const SimTime since = std::max(in_reach, use.lost_at);
  const SimTime resolved = keeper == nullptr ? resolver_until(process) : keeper->resolved_at;
  const SimTime dialling = std::max(
      {node.no_dialling_until, process.no_sockets_until, process.no_network_until, resolved, use.swallowed_at});
  const bool never_dialled = keeper == nullptr ? !use.dialled : keeper->uses.empty();
  const bool failed =
      process.application->has_silent_addresses(slot) || never_dialled || dialling >= before || use.failed_at >= before;
  return std::max(since, dialling) + again + connect + late(slot.plan->lease) / 30 +
         (failed ? late(timeouts.connect + reconnect_kept_max.count()) : reconnect_soon_max.count());
}

std::optional<SimTime> Keeping::majority_from(Process& process, const Application::Slot& slot, NodeSet there,
                                              SimTime confirmed) const {
  std::vector<SimTime> ready;
  for (std::size_t node = 0; node < world_.nodes().size(); ++node) {
    if ((there & node_bit(node)) == 0) continue;
    if (const auto from = ready_from(process, slot, node, confirmed)) ready.push_back(*from);
  }
  const std::size_t majority = majority_of(world_.nodes().size());
  if (ready.size() < majority) return std::nullopt;
  std::sort(ready.begin(), ready.end());
  return ready[majority - 1];
}

void Keeping::judge(Process& process, const Application::Slot& slot, Instant until, NodeSet there) {
  if (slot.rested) return;
  const Timeouts& timeouts = process.application->timeouts_of(slot);
  const Duration lease{slot.plan->lease};
  const SimTime end = world_.true_time(process, until.nanoseconds());
  const SimTime confirmed = world_.true_time(process, (until - (lease - drift_of(lease))).nanoseconds());
  const SimTime round_trip = 2 * world_.latency_since(confirmed) + millisecond;
  if (2 * round_trip >= std::min(timeouts.request, timeouts.stall)) return;
  const auto ready =
      slot.of_quorum ? majority_from(process, slot, there, confirmed) : ready_from(process, slot, slot.node, confirmed);
  if (!ready) return;
  // A third of the lease is over, and whoever keeps it does nothing else.
  SimTime due = std::max(*ready, confirmed + late(slot.plan->lease) / 3);
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
                          ", and lost it at " + time_text(end) + " s; it could be confirmed from " + time_text(*ready) +
                          " s on");
}

}  // namespace holdfast::sim
