// SPDX-License-Identifier: MIT
#include "plan.hpp"

namespace holdfast::sim {

namespace {

bool belongs(Fault fault, WorldKind kind) {
  switch (kind) {
    case WorldKind::any: return true;
    case WorldKind::calm: return false;
    case WorldKind::network:
      return (fault >= Fault::reset && fault <= Fault::late_delivery) || fault >= Fault::hostile_bytes;
    case WorldKind::servers: return fault >= Fault::server_pause && fault <= Fault::no_permission;
    case WorldKind::processes: return fault <= Fault::wrong_password;
    case WorldKind::data: return fault >= Fault::eviction && fault <= Fault::foreign_fence;
    case WorldKind::clocks: return fault >= Fault::clock_forward && fault <= Fault::clock_rate;
  }
  return false;
}

// Many names of the world's length, so that derived names and templates have every size.
std::string draw_name(Random& random, std::size_t index) {
  std::string name = "lock" + std::to_string(index);
  const std::int64_t more = random.chance(200'000) ? random.between(1, 240) : random.between(0, 12);
  for (std::int64_t left = more; left > 0; --left) name += static_cast<char>('a' + random.below(26));
  if (random.chance(100'000)) name[1] = '{';
  return name;
}

SlotPlan draw_slot(Random& random, const Plan& plan, SimTime lease_min, SimTime lease_max) {
  SlotPlan slot;
  slot.kind = static_cast<KindOfLock>(random.below(6));
  slot.name = random.index(plan.names.size());
  slot.owner = static_cast<int>(random.below(2));
  slot.lease = random.magnitude(lease_min / millisecond, lease_max / millisecond) * millisecond;
  slot.kept = random.coin();
  slot.max_hold = random.chance(200'000) ? random.magnitude(millisecond, 120 * second) : 0;
  return slot;
}

ClientPlan draw_client(Random& random, const Plan& plan, WorldKind kind, bool slow, SimTime lease_min,
                       SimTime lease_max) {
  ClientPlan client;
  const bool extreme = plan.weights[static_cast<int>(Fault::clock_rate)] != 0 && random.chance(300'000);
  // The drift of a lease is a hundredth and two milliseconds: a clock that is slow by a hundredth is at its bound.
  client.rate_ppm = extreme ? (random.coin() ? -10'000 : 10'000) : random.between(-5'000, 5'000);
  client.clock_base = random.magnitude(second, 1'000'000 * second);
  client.watchdog = random.coin();
  client.wrong_password =
      plan.password && plan.weights[static_cast<int>(Fault::wrong_password)] != 0 && random.chance(100'000);
  client.native_delete = random.coin();
  client.request_timeout = random.magnitude(5 * millisecond, 3 * second);
  client.connect_timeout = random.magnitude(20 * millisecond, 3 * second);
  client.stall_timeout = random.magnitude(20 * millisecond, 6 * second);
  client.max_poll = random.magnitude(10 * millisecond, 10 * second);
  client.think = slow ? random.magnitude(5 * second, 1200 * second) : random.magnitude(millisecond, lease_max);
  client.hold = random.magnitude(millisecond, lease_max * 2);
  client.wait = random.magnitude(millisecond, slow ? 5 * second : lease_max * 2);
  client.careless = static_cast<std::uint32_t>(random.coin() ? 0 : random.between(0, 200'000));
  const std::int64_t slots = random.between(1, 4);
  for (std::int64_t index = 0; index < slots; ++index)
    client.slots.push_back(draw_slot(random, plan, lease_min, lease_max));
  if (kind == WorldKind::calm) client.careless = 0;
  return client;
}

}  // namespace

Plan draw_plan(std::uint64_t seed, WorldKind kind, DecisionBytes* bytes) {
  Random random(seed, bytes);
  Plan plan;
  plan.seed = seed;
  plan.server = static_cast<ServerKind>(random.below(3));
  plan.password = random.chance(300'000);
  const std::int64_t names = random.between(1, 3);
  for (std::int64_t index = 0; index < names; ++index)
    plan.names.push_back(draw_name(random, static_cast<std::size_t>(index)));
  // Swarm: most worlds know but a few of the faults, so that each meets the others in every company.
  const std::uint32_t enabled = static_cast<std::uint32_t>(random.between(50'000, 700'000));
  for (int index = 0; index < fault_count; ++index) {
    const bool drawn = random.chance(enabled);
    const auto weight = static_cast<std::uint32_t>(random.magnitude(1, 100));
    if (drawn && belongs(static_cast<Fault>(index), kind)) plan.weights[static_cast<std::size_t>(index)] = weight;
  }
  plan.latency_min = random.magnitude(10 * microsecond, 2 * millisecond);
  plan.latency_max = plan.latency_min + random.magnitude(10 * microsecond, 20 * millisecond);
  plan.chunk_max = static_cast<std::size_t>(random.chance(800'000) ? 65536 : random.magnitude(1, 512));
  // Most time passes in worlds in which little is done.
  const bool slow = random.chance(400'000);
  const std::int64_t shortest = slow ? random.magnitude(1'000, 10'000) : random.magnitude(5, 10'000);
  const std::int64_t longest = shortest + random.magnitude(1, 50'000);
  plan.lease_max = longest * millisecond;
  plan.output_max = static_cast<std::size_t>(
      plan.weights[static_cast<int>(Fault::output_limit)] != 0 ? random.between(200, 2000) : 1 << 20);
  const std::int64_t clients = random.between(2, 8);
  for (std::int64_t index = 0; index < clients; ++index)
    plan.clients.push_back(draw_client(random, plan, kind, slow, shortest * millisecond, longest * millisecond));
  plan.fault_interval = random.magnitude(5 * millisecond, slow ? 1200 * second : plan.lease_max);
  plan.length = random.magnitude(plan.lease_max, slow ? 48 * 3600 * second : 3600 * second);
  plan.events_max = static_cast<std::uint64_t>(random.magnitude(2'000, 60'000));
  return plan;
}

}  // namespace holdfast::sim
