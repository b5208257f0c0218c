// SPDX-License-Identifier: MIT
#include "plan.hpp"

#include <algorithm>

#include "holdfast/limits.hpp"
#include "tls_link.hpp"

namespace holdfast::sim {

namespace {

// What loses data, or what puts a server's clock or its role beside those of others, would be for the set-up to promise.
bool leaves_set_up(Fault fault) {
  return fault != Fault::restart_empty && fault != Fault::stale_failover && fault != Fault::read_only &&
         fault != Fault::master_down && fault != Fault::no_permission && fault != Fault::clock_forward &&
         fault != Fault::clock_back && (fault < Fault::eviction || fault > Fault::foreign_fence) &&
         fault != Fault::slow_resolver && fault != Fault::failing_resolver && fault != Fault::dead_address;
}

bool belongs(Fault fault, WorldKind kind) {
  switch (kind) {
    case WorldKind::any:
    case WorldKind::loops:
    case WorldKind::quorum:
    case WorldKind::quorum_loops:
    case WorldKind::sets:
    case WorldKind::acks:
    case WorldKind::handles: return true;
    case WorldKind::sentinels:
    case WorldKind::clusters: return leaves_set_up(fault);
    case WorldKind::calm: return false;
    case WorldKind::network:
      return (fault >= Fault::reset && fault <= Fault::late_delivery) || fault >= Fault::hostile_bytes;
    case WorldKind::servers: return fault >= Fault::server_pause && fault <= Fault::no_permission;
    case WorldKind::processes: return fault <= Fault::wrong_password;
    case WorldKind::data: return fault >= Fault::eviction && fault <= Fault::foreign_fence;
    case WorldKind::clocks: return fault >= Fault::clock_forward && fault <= Fault::clock_rate;
    case WorldKind::connecting:
      return drawn_apart(fault) || (fault >= Fault::reset && fault <= Fault::reset_at_stage) ||
             fault == Fault::signal_interruption || fault == Fault::restart || fault == Fault::server_down ||
             fault == Fault::script_flush || fault == Fault::client_kill || fault == Fault::max_clients ||
             fault == Fault::refused_connect || fault == Fault::black_hole || is_scarcity(fault);
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

SlotPlan draw_slot(Random& random, const Plan& plan, SimTime lease_min, SimTime lease_max, std::size_t connection) {
  SlotPlan slot;
  slot.connection = connection;
  slot.kind = static_cast<KindOfLock>(random.below(6));
  slot.name = random.index(plan.names.size());
  slot.owner = static_cast<int>(random.below(2));
  slot.lease = random.magnitude(lease_min / millisecond, lease_max / millisecond) * millisecond;
  slot.kept = random.coin();
  slot.max_hold = random.chance(200'000) ? random.magnitude(millisecond, 120 * second) : 0;
  slot.liveness = random.chance(300'000) ? random.magnitude(lease_min / 2 + 1, 4 * lease_max) : 0;
  return slot;
}

// Most programs have one client. Some have one a node, as a quorum needs them, and others some, each with a thread of
// its own or with the first one's.
void draw_connections(Random& random, const Plan& plan, ClientPlan& client) {
  if (plan.nodes.size() > 1 && random.chance(300'000)) {
    for (std::size_t node = 0; node < plan.nodes.size(); ++node) client.connections.push_back({node, 0});
    return;
  }
  const std::int64_t count = random.chance(600'000) ? 1 : random.between(2, 3);
  const bool one_node = random.coin();
  const bool one_thread = random.chance(300'000);
  const std::size_t node = random.index(plan.nodes.size());
  for (std::int64_t index = 0; index < count; ++index)
    client.connections.push_back(
        {one_node ? node : random.index(plan.nodes.size()), one_thread || index == 0 ? 0 : client.threads++});
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
  client.max_poll = random.coin() ? random.magnitude(10 * millisecond, 10 * second) : random.between(2, 10) * second;
  client.think = slow ? random.magnitude(5 * second, 1200 * second) : random.magnitude(millisecond, lease_max);
  client.hold = random.magnitude(millisecond, lease_max * 2);
  client.wait = random.magnitude(millisecond, slow ? 20 * second : lease_max * 2);
  client.careless = static_cast<std::uint32_t>(random.coin() ? 0 : random.between(0, 200'000));
  client.hangs = static_cast<std::uint32_t>(random.coin() ? 0 : random.between(0, 100'000));
  draw_connections(random, plan, client);
  const std::int64_t more = random.between(0, 3);
  for (std::size_t index = 0; index < client.connections.size() + static_cast<std::size_t>(more); ++index) {
    const std::size_t connection = index < client.connections.size() ? index : random.index(client.connections.size());
    client.slots.push_back(draw_slot(random, plan, lease_min, lease_max, connection));
  }
  if (kind == WorldKind::calm) client.careless = 0;
  return client;
}

std::size_t draw_node_count(Random& random, WorldKind kind) {
  if (of_shifts(kind)) return 1;  // What there are is drawn in the end.
  if (!of_quorums_alone(kind) && random.chance(kind == WorldKind::sets ? 350'000 : 700'000)) return 1;
  // An even number gains nothing, and must not lose anything either.
  if (random.chance(200'000)) return random.coin() ? 2 : 4;
  return random.coin() ? 3 : 5;
}

// Its locks are on all nodes, by names of their own: a name that is locked on one node is none to lock by a quorum.
void make_quorum(Random& random, const Plan& plan, ClientPlan& client) {
  client.quorum = true;
  client.watchdog = false;
  client.threads = 1;
  client.connections = {{.quorum = true}};
  client.slots.resize(std::min<std::size_t>(client.slots.size(), 3));
  for (SlotPlan& slot : client.slots) {
    slot.connection = 0;
    slot.name = plan.quorum_names + random.index(plan.names.size() - plan.quorum_names);
    if (random.chance(300'000)) slot.lease = plan.lease_max;  // What a restarted node waits for.
    // Two rounds fit in, on the network on which there must be progress.
    if (random.coin()) slot.node_timeout = random.magnitude(3 * millisecond, slot.lease - 1);
    if (slot.lease >= 50 * millisecond && random.chance(200'000))
      slot.min_validity = random.magnitude(1, slot.lease / 2);
  }
}

void shorten(SlotPlan& slot, SimTime lease) {
  slot.lease = std::min(slot.lease, lease);
  if (slot.node_timeout >= slot.lease) slot.node_timeout = 0;
  slot.min_validity = 0;
}

// One program with more locks than a connection has places for what is let go of, each with a name of its own.
void draw_posts(Random& random, Plan& plan) {
  for (ClientPlan& client : plan.clients) {
    if (!client.quorum) continue;
    client.posts = true;
    client.slots.resize(1);
    client.slots[0].lease = plan.lease_max;
    client.slots[0].kept = false;
    client.slots[0].node_timeout = client.slots[0].min_validity = 0;
    client.slots.resize(compensations_max + 4, client.slots[0]);
    for (SlotPlan& slot : client.slots) {
      slot.name = plan.names.size();
      plan.names.push_back(draw_name(random, plan.names.size()));
    }
    return;
  }
}

// Programs that connect their quorum anew. Drawn apart, so that the worlds of old seeds are what they were.
void draw_anew(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0xa9e3);
  plan.one_room = random.chance(300'000);
  const bool posts = random.chance(200'000);
  const bool anew = random.chance(400'000);
  const auto often = static_cast<std::uint32_t>(random.magnitude(5'000, 300'000));
  if (anew && random.coin()) {
    plan.max_lease_small = random.magnitude(5, std::max<SimTime>(plan.lease_max / millisecond / 2, 6)) * millisecond;
    plan.one_room = random.chance(700'000);  // What was promised under the larger one matters where all was lost.
  }
  for (const Fault fault : {Fault::restart_empty, Fault::stale_failover})
    if (plan.one_room && belongs(fault, kind)) plan.weights[static_cast<std::size_t>(fault)] += 50;
  if (posts) draw_posts(random, plan);
  if (!anew) return;
  for (ClientPlan& client : plan.clients) {
    if (!client.quorum) continue;
    client.quorum_anew = often;
    if (plan.max_lease_small == 0 || client.posts) continue;
    for (SlotPlan& slot : client.slots) {
      slot.name = plan.names.size();
      if (random.coin()) shorten(slot, plan.max_lease_small);
    }
    // One that is held for long, and one that comes after it.
    SlotPlan slot = client.slots[0];
    shorten(slot, plan.max_lease_small);
    client.slots.push_back(slot);
    slot.lease = plan.lease_max;
    slot.kept = false;
    client.slots.push_back(slot);
    plan.names.push_back(draw_name(random, plan.names.size()));
  }
}

// What there is of quorums in a world of several nodes.
void draw_quorums(Random& random, Plan& plan, WorldKind kind) {
  plan.restart_guard = random.chance(850'000);
  const bool close_clocks = random.coin();  // Fences grow when the data are lost.
  for (NodePlan& node : plan.nodes) {
    if (close_clocks) node.wall_offset = random.magnitude(1, 1'000'000);
    node.age = random.chance(850'000) ? 3600'000'000 : random.magnitude(1, 100'000'000);
  }
  if (of_quorums_alone(kind))
    plan.names.clear();
  else if (random.chance(300'000))
    return;
  plan.quorum_names = plan.names.size();
  const std::int64_t names = random.between(1, 2);
  for (std::int64_t index = 0; index < names; ++index) plan.names.push_back(draw_name(random, plan.names.size()));
  for (ClientPlan& client : plan.clients)
    if (of_quorums_alone(kind) || random.chance(600'000)) make_quorum(random, plan, client);
  draw_anew(plan, kind);
  plan.quorum_end = plan.names.size();
}

// A program that keeps many locks, by one watchdog or by tend().
void draw_crowd(Random& random, Plan& plan) {
  ClientPlan client;
  client.rate_ppm = random.between(-5'000, 5'000);
  client.clock_base = random.magnitude(second, 1'000'000 * second);
  client.crowd = true;
  client.watchdog = random.chance(700'000);
  client.request_timeout = random.magnitude(50 * millisecond, 3 * second);
  client.connect_timeout = random.magnitude(second, 3 * second);
  client.stall_timeout = random.magnitude(second, 6 * second);
  client.max_poll = 10 * second;
  client.think = second;
  client.hold = second;
  client.wait = random.magnitude(second, 20 * second);
  client.connections.push_back({.node = random.index(plan.nodes.size())});
  const std::int64_t count = random.chance(300'000) ? static_cast<std::int64_t>(crowd_max) : random.magnitude(1, 300);
  const SimTime lease = random.magnitude(1'500, 20'000) * millisecond;
  const bool alike = random.coin();
  for (std::int64_t index = 0; index < count; ++index) {
    SlotPlan slot;
    slot.kind = alike ? KindOfLock::mutex : static_cast<KindOfLock>(random.below(6));
    slot.name = plan.names.size();
    slot.lease = alike ? lease : random.magnitude(lease / 2 / millisecond, lease / millisecond) * millisecond;
    slot.kept = true;
    client.slots.push_back(slot);
    plan.names.push_back("crowd" + std::to_string(index));
  }
  if (!client.watchdog && plan.quorum_names != 0) {  // And meanwhile it waits for what others have.
    SlotPlan slot;
    static constexpr KindOfLock kinds[] = {KindOfLock::mutex, KindOfLock::announced, KindOfLock::reentrant};
    slot.kind = kinds[random.index(3)];
    slot.name = random.index(plan.quorum_names);
    slot.lease = lease;
    client.slots.push_back(slot);
  }
  plan.clients.push_back(client);
  plan.events_max = std::max<std::uint64_t>(plan.events_max, 20'000);
  // The way back to a lost connection is longer than it is to the next hold's turn.
  if (random.coin()) return;
  for (const Fault fault : {Fault::slow_connect, Fault::slow_handshake, Fault::client_kill, Fault::reset})
    plan.weights[static_cast<std::size_t>(fault)] = 100;
  for (const Fault fault : {Fault::refused_connect, Fault::black_hole, Fault::max_clients, Fault::server_down})
    plan.weights[static_cast<std::size_t>(fault)] = 0;
}

// What makes connecting slow or fail, what a program does in the middle of its calls, and other ways to its server. Most
// worlds know nothing of it.
void draw_hindrances(Plan& plan, WorldKind kind, DecisionBytes* bytes) {
  Random random(plan.seed ^ 0xc0ffee, bytes);
  plan.crowd_names = plan.names.size();
  if (!belongs(Fault::slow_connect, kind)) return;
  if (kind != WorldKind::connecting && random.chance(600'000)) return;
  const auto enabled = static_cast<std::uint32_t>(random.between(100'000, 800'000));
  for (int index = 0; index < fault_count; ++index) {
    const auto fault = static_cast<Fault>(index);
    if (!drawn_apart(fault)) continue;
    const bool drawn = random.chance(enabled);
    const auto weight = static_cast<std::uint32_t>(random.magnitude(1, 100));
    if (drawn && belongs(fault, kind)) plan.weights[static_cast<std::size_t>(index)] = weight;
  }
  const bool resolver =
      plan.enabled(Fault::slow_resolver) || plan.enabled(Fault::failing_resolver) || plan.enabled(Fault::dead_address);
  const std::uint32_t cancels =
      plan.enabled(Fault::cancel_at_call) ? static_cast<std::uint32_t>(random.magnitude(2'000, 300'000)) : 0;
  const std::uint32_t torn =
      plan.enabled(Fault::torn_cancel) ? static_cast<std::uint32_t>(random.magnitude(2'000, 200'000)) : 0;
  const std::uint32_t anew =
      plan.enabled(Fault::connect_anew) ? static_cast<std::uint32_t>(random.magnitude(2'000, 200'000)) : 0;
  if (random.chance(kind == WorldKind::connecting ? 250'000 : 80'000) && !of_shifts(kind)) draw_crowd(random, plan);
  for (ClientPlan& client : plan.clients) {
    client.cancels = cancels;
    client.torn_cancels = torn;
    client.connects_anew = client.quorum || client.crowd ? 0 : anew;
    for (ConnectionPlan& connection : client.connections) {
      connection.named = resolver && random.coin();
      if (!connection.named || !plan.enabled(Fault::dead_address) || random.coin()) continue;
      connection.dead_addresses = 1 + random.index(2);
      connection.silent_addresses = random.coin();
    }
  }
  if (anew == 0 || plan.quorum_names == 0) return;
  // Each name of a single node once more, elsewhere.
  const std::size_t crowd = plan.crowd_names;
  const std::vector<std::string> again(plan.names.begin(),
                                       plan.names.begin() + static_cast<std::ptrdiff_t>(plan.quorum_names));
  plan.names.insert(plan.names.begin() + static_cast<std::ptrdiff_t>(crowd), again.begin(), again.end());
  plan.crowd_names += again.size();
  for (ClientPlan& client : plan.clients)
    if (client.crowd)
      for (SlotPlan& slot : client.slots)
        if (slot.kept) slot.name += again.size();
}

// A program with more locks than its connection has places for what is let go of, of one node, and with names that nobody else
// has. Drawn apart, as those that connect their quorum anew.
void draw_posters(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0x9057);
  if (of_quorums_alone(kind) || of_shifts(kind) || !random.chance(60'000)) return;
  ClientPlan client;
  client.rate_ppm = random.between(-5'000, 5'000);
  client.clock_base = random.magnitude(second, 1'000'000 * second);
  client.posts = true;
  client.request_timeout = random.magnitude(50 * millisecond, 3 * second);
  client.connect_timeout = random.magnitude(second, 3 * second);
  client.stall_timeout = random.magnitude(second, 6 * second);
  client.max_poll = 10 * second;
  client.think = random.magnitude(millisecond, second);
  client.hold = random.magnitude(millisecond, second);
  client.wait = random.magnitude(millisecond, second);
  client.connections.push_back({.node = random.index(plan.nodes.size())});
  for (std::size_t index = 0; index < compensations_max + 4; ++index) {
    SlotPlan slot;
    static constexpr KindOfLock kinds[] = {KindOfLock::mutex, KindOfLock::announced, KindOfLock::reentrant};
    slot.kind = kinds[random.index(3)];
    slot.name = plan.names.size();
    slot.lease = plan.lease_max;
    client.slots.push_back(slot);
    plan.names.push_back("post" + std::to_string(index));
  }
  plan.clients.push_back(client);
}

// Some locks of single nodes become read/write locks, with a slot for each side. A program that picks one of the two reads or
// writes by that. So a writer reads too and goes on as a reader, and a reader asks to write. Drawn apart, and by a number that
// leaves the worlds of the older seeds in seeds.txt what they were.
void draw_read_write(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0x4ebe);
  if (of_quorums_alone(kind) || !random.chance(200'000)) return;
  plan.read_write = true;
  const auto often = static_cast<std::uint32_t>(random.between(200'000, 1'000'000));
  for (ClientPlan& client : plan.clients) {
    if (client.quorum || client.crowd || client.posts) continue;
    const std::size_t count = client.slots.size();
    for (std::size_t index = 0; index < count; ++index) {
      if (!random.chance(often)) continue;
      SlotPlan& reader = client.slots[index];
      reader.kind = KindOfLock::read;
      SlotPlan writer = reader;
      writer.kind = KindOfLock::write;
      writer.kept = random.coin();
      writer.other_side = index;
      reader.lease = std::min<SimTime>(reader.lease, read_lease_max.count());
      reader.other_side = client.slots.size();
      client.slots.push_back(writer);
    }
  }
}

// Some locks of single nodes become permits, of names that are nobody else's. Drawn apart, and by a number that leaves the worlds
// of the older seeds in seeds.txt what they were.
void draw_semaphores(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0x66f6);
  if (of_quorums_alone(kind) || of_shifts(kind) || !random.chance(200'000)) return;
  const auto often = static_cast<std::uint32_t>(random.between(200'000, 1'000'000));
  plan.semaphore_names = plan.names.size();
  const std::int64_t count = random.between(1, 2);
  for (std::int64_t index = 0; index < count; ++index) {
    plan.names.push_back(draw_name(random, plan.names.size()));
    plan.permits.push_back(static_cast<std::uint32_t>(random.between(1, 3)));
  }
  for (std::int64_t index = 0; index < count; ++index)
    plan.names.push_back(plan.names[plan.semaphore_names + static_cast<std::size_t>(index)]);
  for (ClientPlan& client : plan.clients) {
    if (client.quorum || client.crowd || client.posts) continue;
    for (SlotPlan& slot : client.slots) {
      if (slot.kind >= KindOfLock::read || !random.chance(often)) continue;
      slot.kind = KindOfLock::semaphore;
      slot.name = plan.semaphore_names + random.index(plan.permits.size());
      slot.permits = plan.permits_of(slot.name);
    }
  }
}

// Some locks of single nodes become fair ones, beside others of the same name or alone, and in some worlds all of them want one
// name. Drawn apart, and by a number that leaves the worlds of the older seeds in seeds.txt what they were.
void draw_fair(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0x12b12);
  if (of_quorums_alone(kind) || kind == WorldKind::clusters || !random.chance(200'000)) return;
  const bool alone = random.coin();
  const bool one_name = random.coin();
  const auto often = static_cast<std::uint32_t>(random.between(300'000, 1'000'000));
  const std::size_t name = random.index(plan.quorum_names == 0 ? 1 : plan.quorum_names);
  for (ClientPlan& client : plan.clients) {
    if (client.quorum || client.crowd || client.posts) continue;
    for (SlotPlan& slot : client.slots) {
      if (slot.kind >= KindOfLock::read || (!alone && !random.chance(often))) continue;
      slot.kind = random.coin() ? KindOfLock::fair : KindOfLock::fair_fenced;
      if (one_name && slot.name < plan.quorum_names) slot.name = name;
      plan.fair = true;
    }
  }
}

void put_on_loop(ClientPlan& client, std::uint32_t cancels, std::uint32_t anew) {
  client.loop = true;
  client.watchdog = false;
  client.torn_cancels = 0;
  client.cancels = cancels;
  client.connects_anew = anew;
  client.threads = 1;
  for (ConnectionPlan& connection : client.connections) connection.thread = 0;
}

// Some programs run on a loop, with whatever locks they have. Drawn apart, and by a number that leaves the worlds of the older
// seeds in seeds.txt what they were.
void draw_loops(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0x1dfff);
  const bool wanted = kind == WorldKind::loops || kind == WorldKind::handles ||
                      random.chance(kind == WorldKind::sets || of_shifts(kind) ? 600'000 : 250'000);
  if (!has_loops || !wanted) return;
  const auto often = static_cast<std::uint32_t>(random.between(300'000, 1'000'000));
  const auto cancels = static_cast<std::uint32_t>(random.coin() ? 0 : random.magnitude(2'000, 300'000));
  const auto anew = static_cast<std::uint32_t>(random.coin() ? 0 : random.magnitude(500, 20'000));
  for (ClientPlan& client : plan.clients) {
    if (client.quorum || client.crowd || client.posts || !random.chance(often)) continue;
    put_on_loop(client, cancels, anew);
  }
}

// The same with programs of quorums. Drawn apart, and by a number that leaves the worlds of the older seeds in seeds.txt what they
// were.
void draw_quorum_loops(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0x84127);
  const bool wanted = random.chance(kind == WorldKind::sets ? 600'000 : 250'000);
  if (!has_loops || (kind != WorldKind::quorum_loops && !wanted)) return;
  const std::int64_t drawn = random.between(300'000, 1'000'000);
  const auto often = static_cast<std::uint32_t>(kind == WorldKind::quorum_loops ? 1'000'000 : drawn);
  const auto cancels = static_cast<std::uint32_t>(random.coin() ? 0 : random.magnitude(2'000, 300'000));
  const auto anew = static_cast<std::uint32_t>(random.coin() ? 0 : random.magnitude(500, 20'000));
  for (ClientPlan& client : plan.clients)
    if (client.quorum && random.chance(often)) put_on_loop(client, cancels, anew);
}

// Quorums whose holds a thread keeps. Drawn apart, and by a number that leaves the worlds of the older seeds in seeds.txt what they
// were.
void draw_quorum_watchdogs(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0x1006a);
  if (!random.chance(kind == WorldKind::quorum ? 600'000 : 300'000)) return;
  for (ClientPlan& client : plan.clients)
    client.quorum_watchdog = client.quorum && !client.loop && !client.posts && random.chance(700'000);
}

// Programs that look at who has their locks. Drawn apart, and not for seeds below this one: what they have found stays what it was.
constexpr std::uint64_t first_seed_with_inspections = 2012000000000;
void draw_inspections(Plan& plan) {
  Random random(plan.seed ^ 0x1006b);
  if (plan.seed < first_seed_with_inspections || !random.chance(400'000)) return;
  for (ClientPlan& client : plan.clients) client.inspects = random.coin();
}

// Programs that speak TLS. Drawn apart, and not for seeds below this one.
constexpr std::uint64_t first_seed_with_tls = 2027000000000;
void draw_tls(Plan& plan, const DecisionBytes* bytes) {
  Random random(plan.seed ^ 0x1006c);
  if (!has_tls || bytes != nullptr || plan.seed < first_seed_with_tls || !random.chance(300'000)) return;
  const std::uint32_t often = random.coin() ? 1'000'000 : 500'000;
  for (ClientPlan& client : plan.clients) client.tls = random.chance(often);
  plan.tls_1_2 = random.chance(250'000);
}

// Programs whose watchdogs stand still now and then. Drawn apart, and not for seeds below this one.
constexpr std::uint64_t first_seed_with_rests = 2028000000000;
void draw_watchdog_rests(Plan& plan) {
  Random random(plan.seed ^ 0x1006d);
  if (plan.seed < first_seed_with_rests || !random.chance(400'000)) return;
  for (ClientPlan& client : plan.clients)
    if ((client.watchdog || client.quorum_watchdog) && !client.loop && !client.crowd)
      client.rests = static_cast<std::uint32_t>(random.magnitude(10'000, 300'000));
}

// Connects that end at once: as over a Unix socket, or because the machine has no descriptor or no network. Drawn apart, and not for
// seeds below this one.
constexpr std::uint64_t first_seed_with_local = 2037000000000;
void draw_local(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0x1006e);
  if (plan.seed < first_seed_with_local || !random.chance(400'000)) return;
  const std::uint32_t often = random.coin() ? 1'000'000 : 500'000;
  const bool local = random.coin();
  for (ClientPlan& client : plan.clients) client.local = local && random.chance(often);
  for (const Fault fault : {Fault::no_descriptors, Fault::no_network}) {
    const bool drawn = random.chance(600'000);
    const auto weight = static_cast<std::uint32_t>(random.magnitude(1, 100));
    if (drawn && belongs(fault, kind)) plan.weights[static_cast<std::size_t>(fault)] = weight;
  }
}

// Programs whose clients have strands. Drawn apart, and not for seeds below this one.
void draw_strands(Plan& plan) {
  Random random(plan.seed ^ 0x1006f);
  if (plan.seed < first_seed_with_local || !random.chance(400'000)) return;
  for (ClientPlan& client : plan.clients) client.strands = client.loop && random.coin();
}

// Some programs on loops take several locks at once. Drawn apart, and by a number that leaves the worlds of the older seeds in
// seeds.txt what they were.
void draw_sets(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0xb1a9f);
  const std::uint32_t often = random.chance(250'000) ? 1'000'000 : needs_loops(kind) ? 500'000 : 0;
  for (ClientPlan& client : plan.clients)
    if (client.loop && random.chance(often))
      client.sets = static_cast<std::uint32_t>(random.between(100'000, 1'000'000));
}

// Some fair locks may stay where they are used, of programs that block. Drawn apart.
void draw_linger(Plan& plan) {
  Random random(plan.seed ^ 0x11d6e8);
  if (!plan.fair || random.coin()) return;
  const auto often = static_cast<std::uint32_t>(random.between(300'000, 1'000'000));
  for (ClientPlan& client : plan.clients) {
    if (client.loop) continue;
    std::vector<std::size_t> places(client.connections.size(), lingering_max);
    for (SlotPlan& slot : client.slots) {
      if (slot.kind < KindOfLock::fair || !random.chance(often) || places[slot.connection] == 0) continue;
      --places[slot.connection];
      slot.linger = random.magnitude(5 * millisecond, 10 * second);
    }
  }
}

// A program of a quorum has locks of single nodes, too.
void add_servers(Random& random, const Plan& plan, ClientPlan& client) {
  const std::int64_t count = random.between(1, 2);
  for (std::int64_t index = 0; index < count; ++index) {
    const std::size_t connection = client.connections.size();
    client.connections.push_back({.node = random.index(plan.nodes.size())});
    const std::int64_t slots = random.between(1, 2);
    for (std::int64_t more = 0; more < slots; ++more) {
      SlotPlan slot = draw_slot(random, plan, std::max<SimTime>(plan.lease_max / 10, 5 * millisecond),
                                std::max<SimTime>(plan.lease_max, 5 * millisecond), connection);
      slot.name = random.index(plan.quorum_names);
      if (plan.fair && random.coin()) slot.kind = random.coin() ? KindOfLock::fair : KindOfLock::fair_fenced;
      if (!plan.permits.empty() && random.chance(300'000)) {
        slot.kind = KindOfLock::semaphore;
        slot.name = plan.semaphore_names + random.index(plan.permits.size());
        slot.permits = plan.permits_of(slot.name);
      }
      client.slots.push_back(slot);
    }
  }
}

// Two of one owner with the same names would be one hold.
bool has_the_same(const ClientPlan& client, const SlotPlan& wanted, const std::vector<std::size_t>& names) {
  return std::any_of(client.slots.begin(), client.slots.end(), [&](const SlotPlan& slot) {
    if (slot.kind != KindOfLock::multi || slot.is_part || slot.connection != wanted.connection) return false;
    if (slot.owner != wanted.owner || slot.parts.size() + 1 != names.size()) return false;
    const auto has = [&](std::size_t name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    return has(slot.name) && std::all_of(slot.parts.begin(), slot.parts.end(),
                                         [&](std::size_t part) { return has(client.slots[part].name); });
  });
}

// Some locks become MultiLocks. Each name has a slot, and the first stands for all. In a cluster they have one hash tag.
void make_multis(Random& random, const Plan& plan, ClientPlan& client, std::uint32_t often) {
  const std::size_t count = client.slots.size();
  for (std::size_t place = 0; place < count; ++place) {
    SlotPlan slot = client.slots[place];
    if (slot.kind >= KindOfLock::read || slot.linger != 0 || slot.name >= plan.quorum_names) continue;
    if (!random.chance(often)) continue;
    std::vector<std::size_t> names = {slot.name};
    std::size_t size = plan.names[slot.name].size() + 1;
    for (std::size_t name = 0; name < plan.quorum_names; ++name) {
      if (plan.tag_of(name) != plan.tag_of(slot.name)) continue;
      if (name == slot.name || random.chance(200'000)) continue;
      if (size + plan.names[name].size() + 1 > key_size_max) continue;
      size += plan.names[name].size() + 1;
      names.push_back(name);
    }
    if (has_the_same(client, slot, names)) continue;
    slot.kind = KindOfLock::multi;
    client.slots[place].kind = KindOfLock::multi;
    slot.is_part = true;
    for (std::size_t index = 1; index < names.size(); ++index) {
      slot.name = names[index];
      client.slots[place].parts.push_back(client.slots.size());
      client.slots.push_back(slot);
    }
  }
}

// MultiLocks, sets of locks in programs that block, too, and programs whose sets have locks of quorums beside those of single
// nodes. Drawn apart, and by a number that leaves the worlds of the older seeds in seeds.txt what they were.
void draw_wide_sets(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0x614a);
  const bool wanted = random.chance(100'000);
  if (of_shifts(kind) || (kind != WorldKind::sets && !wanted)) return;
  const bool mixes = random.chance(700'000);
  const auto multis = static_cast<std::uint32_t>(random.coin() ? 0 : random.between(200'000, 1'000'000));
  const auto often = static_cast<std::uint32_t>(random.between(300'000, 1'000'000));
  for (ClientPlan& client : plan.clients) {
    if (client.crowd || client.posts) continue;
    if (client.quorum && mixes && plan.quorum_names != 0 && random.coin()) add_servers(random, plan, client);
    if (plan.quorum_names > 1) make_multis(random, plan, client, multis);
    if (!random.chance(often)) continue;
    client.wide_sets = true;
    client.sets = static_cast<std::uint32_t>(random.between(100'000, 1'000'000));
  }
  // A set is many calls, and each of them may be the one that is cancelled.
  if (!random.chance(300'000) || !belongs(Fault::cancel_at_call, kind)) return;
  plan.weights[static_cast<std::size_t>(Fault::cancel_at_call)] = 1;
  for (ClientPlan& client : plan.clients)
    if (client.wide_sets && !client.loop) client.cancels = static_cast<std::uint32_t>(random.magnitude(2'000, 300'000));
}

// In some clusters half of the programs that block serve all names. A hold of theirs does not stay where it is used. Drawn apart.
void draw_branches(Plan& plan) {
  Random random(plan.seed ^ 0xb4a2c6);
  if (random.coin()) return;
  for (ClientPlan& client : plan.clients) {
    client.branches = random.coin() && !client.loop;
    if (!client.branches) continue;
    for (SlotPlan& slot : client.slots) {
      slot.linger = 0;
      slot.name = slot.kind == KindOfLock::write ? client.slots[slot.other_side].name : random.index(plan.names.size());
    }
  }
}

// So many more names. Of a cluster each has the next hash tag in turn.
void add_names(Random& random, Plan& plan, std::size_t count) {
  for (std::size_t more = 0; more < count; ++more) {
    const std::string tag = plan.tags == 0 ? "" : tag_text(plan.names.size() % plan.tags);
    plan.names.push_back(tag + draw_name(random, plan.names.size()));
  }
}

// Locks that become permits. Of a cluster each hash tag has a semaphore.
void draw_shifting_semaphores(Random& random, Plan& plan) {
  const std::size_t tags = std::max<std::size_t>(plan.tags, 1);
  const auto often = static_cast<std::uint32_t>(random.between(200'000, 1'000'000));
  plan.semaphore_names = plan.names.size();
  add_names(random, plan, tags);
  for (std::size_t tag = 0; tag < tags; ++tag) plan.permits.push_back(static_cast<std::uint32_t>(random.between(1, 3)));
  for (ClientPlan& client : plan.clients)
    for (SlotPlan& slot : client.slots) {
      if (slot.kind >= KindOfLock::read || slot.linger != 0 || !random.chance(often)) continue;
      const std::size_t tag = plan.tag_of(slot.name);
      slot.kind = KindOfLock::semaphore;
      slot.name = plan.semaphore_names;
      while (plan.tag_of(slot.name) != tag) ++slot.name;
      slot.permits = plan.permits_of(slot.name);
    }
}

// Of a cluster; behind sentinels they are drawn as everywhere.
void draw_cluster_fair(Random& random, Plan& plan) {
  const bool alone = random.coin();
  const auto often = static_cast<std::uint32_t>(random.between(300'000, 1'000'000));
  const auto lingers = static_cast<std::uint32_t>(random.coin() ? 0 : random.between(300'000, 1'000'000));
  for (ClientPlan& client : plan.clients) {
    std::vector<std::size_t> places(client.connections.size(), lingering_max);
    for (SlotPlan& slot : client.slots) {
      if (slot.kind >= KindOfLock::read || (!alone && !random.chance(often))) continue;
      slot.kind = random.coin() ? KindOfLock::fair : KindOfLock::fair_fenced;
      plan.fair = true;
      if (client.loop || client.branches || !random.chance(lingers) || places[slot.connection] == 0) continue;
      --places[slot.connection];
      slot.linger = random.magnitude(5 * millisecond, 10 * second);
    }
  }
}

// MultiLocks, permits and, in clusters, fair locks in half of these worlds, each kind in half of those. Drawn apart, and by numbers
// that leave the worlds of the older seeds in seeds.txt what they were.
void draw_shifting_kinds(Plan& plan) {
  const bool cluster = plan.set_up == SetUp::cluster;
  Random random(plan.seed ^ (cluster ? 0x12e3U : 0x5e17U));
  if (random.coin()) return;
  const bool fair = random.coin() && cluster;
  const bool multis = random.coin();
  const bool semaphores = random.coin();
  if (multis) add_names(random, plan, std::max<std::size_t>(plan.tags, 1) * (1 + random.index(2)));
  plan.quorum_names = plan.quorum_end = plan.crowd_names = plan.names.size();
  if (fair) draw_cluster_fair(random, plan);
  const auto often = static_cast<std::uint32_t>(random.between(200'000, 1'000'000));
  if (multis)
    for (ClientPlan& client : plan.clients) make_multis(random, plan, client, often);
  if (semaphores) draw_shifting_semaphores(random, plan);
}

// In a quarter of these worlds fail-overs lose data. Drawn apart, and by numbers that leave the worlds of the older seeds in
// seeds.txt what they were.
void draw_losing_changes(Plan& plan) {
  Random random(plan.seed ^ (plan.set_up == SetUp::cluster ? 0x200eU : 0x1057U));
  if (random.coin() || random.coin()) return;
  plan.weights[static_cast<std::size_t>(Fault::losing_change)] = static_cast<std::uint32_t>(random.magnitude(1, 100));
}

// Servers that change, and who says where they are. Every program of the plan goes there.
void draw_set_up(Plan& plan, WorldKind kind) {
  if (!of_shifts(kind)) return;
  Random random(plan.seed ^ 0x70b010);
  const NodePlan node = {.kind = plan.nodes[0].kind, .age = plan.nodes[0].age};
  const bool cluster = kind == WorldKind::clusters;
  plan.set_up = cluster ? SetUp::cluster : SetUp::sentinels;
  plan.masters = cluster ? static_cast<std::size_t>(random.between(2, 3)) : 1;
  plan.servers = plan.masters + static_cast<std::size_t>(random.between(1, cluster ? 1 : 2));
  plan.nodes.assign(plan.servers + static_cast<std::size_t>(cluster ? 0 : random.between(1, 3)), node);
  plan.names.resize(plan.quorum_names);  // There is one database.
  if (cluster) {
    plan.tags = 1 + random.index(plan.servers);
    while (plan.names.size() < plan.tags) plan.names.push_back(draw_name(random, plan.names.size()));
    for (std::size_t name = 0; name < plan.names.size(); ++name)
      plan.names[name] = tag_text(name % plan.tags) + plan.names[name];
  }
  plan.quorum_names = plan.quorum_end = plan.crowd_names = plan.names.size();
  for (ClientPlan& client : plan.clients) {
    client.hears = !cluster && random.coin();
    if (cluster && !client.loop)
      for (ConnectionPlan& connection : client.connections) connection.node = random.index(plan.tags);
    for (SlotPlan& slot : client.slots) {
      const std::size_t tag = client.connections[slot.connection].node;
      const std::size_t of_tag = cluster ? (plan.names.size() - tag + plan.tags - 1) / plan.tags : 0;
      slot.name = !cluster || client.loop ? random.index(plan.names.size()) : tag + plan.tags * random.index(of_tag);
      if (slot.kind == KindOfLock::write) slot.name = client.slots[slot.other_side].name;  // Which comes before it.
    }
  }
  if (cluster) draw_branches(plan);
  draw_shifting_kinds(plan);
  const bool quiet = random.chance(200'000);
  for (const Fault fault :
       {Fault::slot_move, Fault::move_called_off, Fault::slot_down, Fault::master_change, Fault::old_news}) {
    const bool of_slots = fault == Fault::slot_move || fault == Fault::move_called_off || fault == Fault::slot_down;
    const bool drawn = random.chance(700'000);
    if (drawn && !quiet && (cluster || !of_slots))
      plan.weights[static_cast<std::size_t>(fault)] = static_cast<std::uint32_t>(random.magnitude(1, 100));
  }
  plan.shift_interval = random.magnitude(10 * millisecond, std::max(plan.fault_interval, 2 * plan.lease_max));
  if (!quiet) draw_losing_changes(plan);
}

// Replicas, and programs of single nodes whose grants they are to confirm. Drawn apart, and by a number that leaves the worlds of
// the older seeds in seeds.txt what they were.
void draw_acks(Plan& plan, WorldKind kind) {
  Random random(plan.seed ^ 0x225e2a);
  const bool wanted = random.chance(300'000);
  if (kind != WorldKind::acks && !(of_shifts(kind) && wanted)) return;
  plan.replicas = static_cast<std::uint8_t>(random.between(1, 3));
  plan.late_replicas = static_cast<std::uint32_t>(random.coin() ? 0 : random.magnitude(1'000, 500'000));
  plan.lost_replicas = static_cast<std::uint32_t>(random.coin() ? 0 : random.magnitude(1'000, 300'000));
  const auto often = static_cast<std::uint32_t>(random.between(500'000, 1'000'000));
  for (ClientPlan& client : plan.clients) {
    if (client.quorum || client.branches || !random.chance(often)) continue;
    client.acks = static_cast<std::uint8_t>(random.between(1, plan.replicas));
    client.acks_timeout = random.magnitude(millisecond, std::min(second, client.stall_timeout / 5));
  }
}

// Whose lock objects of one owner, kind and name are one hold.
bool has_owner(KindOfLock kind) {
  return kind == KindOfLock::reentrant || kind == KindOfLock::fenced || kind == KindOfLock::fair ||
         kind == KindOfLock::fair_fenced;
}

// Programs on loops that have several lock objects for one hold. Drawn apart.
void draw_handles(Plan& plan, WorldKind kind) {
  if (kind != WorldKind::handles) return;
  Random random(plan.seed ^ 0x4a9d1e5);
  const auto often = static_cast<std::uint32_t>(random.between(300'000, 1'000'000));
  for (ClientPlan& client : plan.clients) {
    if (!client.loop || client.quorum || !random.chance(often)) continue;
    client.handles = true;
    const std::size_t count = client.slots.size();
    for (std::size_t place = 0; place < count; ++place) {
      if (!has_owner(client.slots[place].kind) || client.slots[place].is_part || random.coin()) continue;
      for (std::int64_t more = random.between(1, 2); more > 0; --more) {
        SlotPlan handle = client.slots[place];
        if (random.coin())
          handle.lease = random.between(handle.lease / millisecond, plan.lease_max / millisecond) * millisecond;
        handle.kept = random.coin();
        client.slots.push_back(handle);
      }
    }
  }
}

// By numbers that leave the worlds of the older seeds in seeds.txt what they were.
WorldKind kind_of_seed(std::uint64_t seed, WorldKind kind) {
  if (kind != WorldKind::any) return kind;
  if (Random(seed ^ 0x10c3).chance(100'000)) return WorldKind::clusters;
  if (Random(seed ^ 0x16f6).chance(100'000)) return WorldKind::sentinels;
  return Random(seed ^ 0x4c5).chance(60'000) ? WorldKind::acks : kind;
}

std::string tagged(const std::string& name) { return name.find('{') == std::string::npos ? "{" + name + "}" : name; }

}  // namespace

std::string tag_text(std::size_t tag) { return "{" + std::to_string(tag) + "}"; }

std::string queue_of(const std::string& name) { return "holdfast_queue:" + tagged(name); }

std::string beat_of(const std::string& name, std::string_view token) {
  return "holdfast_beat:" + tagged(name) + ":" + std::string(token);
}

std::string taken_permits_of(const std::string& name) {
  return (name.find('{') == std::string::npos ? "{" + name + "}" : name) + ":timeout";
}

Plan draw_plan(std::uint64_t seed, WorldKind kind, DecisionBytes* bytes) {
  kind = kind_of_seed(seed, kind);
  Random random(seed, bytes);
  Plan plan;
  plan.seed = seed;
  const std::size_t nodes = draw_node_count(random, kind);
  for (std::size_t index = 0; index < nodes; ++index)
    plan.nodes.push_back({static_cast<ServerKind>(random.below(3)), random.magnitude(1, 3600'000'000)});
  plan.password = random.chance(300'000);
  const std::int64_t names = random.between(1, 3);
  for (std::int64_t index = 0; index < names; ++index)
    plan.names.push_back(draw_name(random, static_cast<std::size_t>(index)));
  plan.quorum_names = plan.names.size();
  // Swarm: most worlds know but a few of the faults, so that each meets the others in every company.
  const std::uint32_t enabled = static_cast<std::uint32_t>(random.between(50'000, 700'000));
  for (int index = 0; index <= static_cast<int>(Fault::output_limit); ++index) {
    if (drawn_apart(static_cast<Fault>(index))) continue;
    const bool drawn = random.chance(enabled);
    const auto weight = static_cast<std::uint32_t>(random.magnitude(1, 100));
    if (drawn && belongs(static_cast<Fault>(index), kind)) plan.weights[static_cast<std::size_t>(index)] = weight;
  }
  plan.latency_min = random.magnitude(10 * microsecond, 2 * millisecond);
  plan.latency_max = plan.latency_min + random.magnitude(10 * microsecond, 20 * millisecond);
  plan.chunk_max = static_cast<std::size_t>(random.chance(800'000) ? 65536 : random.magnitude(1, 512));
  // Most simulated time passes in these worlds, in which little is done, and most grants are made in the others.
  const bool slow = random.chance(600'000);
  const std::int64_t shortest = slow ? random.magnitude(1'000, 10'000) : random.magnitude(5, 10'000);
  const std::int64_t longest = shortest + random.magnitude(1, 50'000);
  plan.lease_max = longest * millisecond;
  plan.output_max = static_cast<std::size_t>(
      plan.weights[static_cast<int>(Fault::output_limit)] != 0 ? random.between(200, 2000) : 1 << 20);
  const std::int64_t clients = random.between(2, 8);
  for (std::int64_t index = 0; index < clients; ++index)
    plan.clients.push_back(draw_client(random, plan, kind, slow, shortest * millisecond, longest * millisecond));
  // In some worlds so little goes wrong that all is well for a while in between.
  const bool quiet = slow || random.chance(200'000);
  plan.fault_interval = quiet ? random.magnitude(second, std::max(1200 * second, 20 * plan.lease_max))
                              : random.magnitude(5 * millisecond, plan.lease_max);
  plan.length = random.magnitude(plan.lease_max, slow ? 48 * 3600 * second : 3600 * second);
  plan.events_max = static_cast<std::uint64_t>(random.magnitude(slow ? 4'000 : 2'000, 60'000));
  if (nodes > 1) draw_quorums(random, plan, kind);
  if (plan.quorum_end == 0) plan.quorum_end = plan.names.size();
  // The last, so that the worlds of before are as they were.
  if (belongs(Fault::unasked_between, kind) && random.chance(enabled))
    plan.weights[static_cast<int>(Fault::unasked_between)] = static_cast<std::uint32_t>(random.magnitude(1, 100));
  draw_hindrances(plan, kind, bytes);
  draw_posters(plan, kind);
  draw_read_write(plan, kind);
  draw_semaphores(plan, kind);
  draw_fair(plan, kind);
  draw_loops(plan, kind);
  draw_quorum_loops(plan, kind);
  draw_sets(plan, kind);
  draw_linger(plan);
  draw_wide_sets(plan, kind);
  draw_set_up(plan, kind);
  draw_acks(plan, kind);
  draw_handles(plan, kind);
  draw_quorum_watchdogs(plan, kind);
  draw_inspections(plan);
  draw_tls(plan, bytes);
  draw_watchdog_rests(plan);
  draw_local(plan, kind);
  draw_strands(plan);
  return plan;
}

}  // namespace holdfast::sim
