// SPDX-License-Identifier: MIT
#include "fault_injector.hpp"

#include <algorithm>
#include <memory>

#include "application.hpp"
#include "checkers.hpp"
#include "holdfast/core/derived_name.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

// Faults that befall who is in the way and are counted where they do, not where they are ordered.
constexpr bool counted_later(Fault fault) {
  return fault == Fault::client_pause_at_call || fault == Fault::reset_at_stage || fault == Fault::hostile_bytes ||
         fault == Fault::wrong_shape || fault == Fault::unasked_reply || fault == Fault::lost_message ||
         fault == Fault::duplicated_message || fault == Fault::output_limit || fault == Fault::wrong_password ||
         fault == Fault::clock_rate || fault == Fault::unasked_between || fault == Fault::refused_subscriber ||
         (fault >= Fault::second_black_hole && fault <= Fault::failing_resolver);
}

std::string derived(ByteView prefix, const std::string& name) {
  const DerivedName derived(prefix, Key(ByteView(name.data(), name.size())));
  return {derived.bytes().data(), derived.bytes().size()};
}

std::string lane_of(const Process& process) { return "client " + std::to_string(process.index); }

}  // namespace

FaultInjector::FaultInjector(World& world) : world_(world) {
  for (int index = 0; index < fault_count; ++index)
    if (!is_switch(static_cast<Fault>(index)) && !is_shift(static_cast<Fault>(index)))
      weights_[static_cast<std::size_t>(index)] = world.plan().weights[static_cast<std::size_t>(index)];
  for (const std::uint32_t weight : weights_) total_ += weight;
}

void FaultInjector::begin() {
  if (total_ != 0) world_.after(world_.random().between(0, world_.plan().fault_interval), [this] { next(); });
}

void FaultInjector::next() {
  if (ended_ || world_.events() > world_.plan().faults_until) return;
  std::uint64_t drawn = world_.random().below(total_);
  std::size_t index = 0;
  while (drawn >= weights_[index]) drawn -= weights_[index++];
  inject(static_cast<Fault>(index));
  world_.after(world_.random().magnitude(microsecond, world_.plan().fault_interval), [this] { next(); });
}

void FaultInjector::end() {
  ended_ = true;
  for (Process& process : world_.processes()) process.no_sockets_until = process.no_network_until = 0;
  for (Node& node : world_.nodes()) {
    if (node.redis.faults().replica) world_.promote_server(node);
    node.redis.faults() = {};
    node.redis.set_now(world_.wall(node));
    // What a clock that was put back has prolonged ends as it was meant to, and what somebody else's hand has left
    // goes.
    if (node.wall_offset < node.wall_offset_max) {
      world_.checkers().break_all(node);
      world_.step_wall(node, node.wall_offset_max - node.wall_offset);
    }
    for (std::size_t index = 0; index < world_.plan().quorum_end; ++index) {
      const std::string& name = world_.plan().names[index];
      if (world_.plan().weights[static_cast<std::size_t>(Fault::foreign_fence)] != 0) {
        world_.checkers().excuse_fence(node, index);
        (void)world_.foreign(node, {"DEL", derived(fence_prefix, name)});
      }
      if (world_.plan().fair) {
        const Entry* const queue = node.redis.find(queue_of(name));
        if (queue != nullptr && (queue->expiry_ms == no_expiry || queue->type() != ValueType::sorted_set))
          (void)world_.foreign(node, {"DEL", queue_of(name)});
      }
      const Entry* const entry = node.redis.find(name);
      if (entry == nullptr || world_.plan().one_place()) continue;  // Nobody else's hand is in those.
      if (lasts_for_ever(node, *entry) || world_.checkers().foreign(node, index)) {
        world_.checkers().break_name(node, index);
        (void)world_.foreign(node, {"DEL", name});
      }
    }
    for (std::size_t index = 0; index < world_.plan().permits.size(); ++index) {
      const std::size_t place = world_.plan().semaphore_names + index;
      const std::string& name = world_.plan().names[place];
      if (!world_.checkers().foreign(node, place)) continue;
      world_.checkers().break_name(node, place);
      (void)world_.foreign(node, {"DEL", name, taken_permits_of(name)});
    }
    world_.checkers().data_changed(node);
  }
}

// A lock whose TTL somebody has removed gets a day from the scripts while it is written, and its writer may be dead: nobody waits
// for that long.
bool FaultInjector::lasts_for_ever(const Node& node, const Entry& entry) const {
  if (entry.expiry_ms == no_expiry) return true;
  const WallMicros longest = (world_.plan().lease_max + 60 * second) / microsecond;
  return world_.plan().weights[static_cast<std::size_t>(Fault::foreign_persist)] != 0 &&
         entry.expiry_ms * 1'000 > world_.wall(node) + longest;
}

Node& FaultInjector::any_node() { return world_.node(world_.random().index(world_.nodes().size())); }

Process* FaultInjector::any_process() {
  std::vector<Process*> alive;
  for (Process& process : world_.processes())
    if (process.alive) alive.push_back(&process);
  return alive.empty() ? nullptr : alive[world_.random().index(alive.size())];
}

Link* FaultInjector::any_link() {
  const std::vector<std::size_t>& open = world_.open_links();
  if (open.empty()) return nullptr;
  Link& link = world_.link(open[world_.random().index(open.size())]);
  return link.error == 0 ? &link : nullptr;
}

void FaultInjector::inject(Fault fault) {
  if (fault <= Fault::wrong_password || is_scarcity(fault)) {
    if (Process* const process = any_process(); process != nullptr) on_process(fault, *process);
  } else if (fault <= Fault::no_permission) {
    on_server(fault, any_node());
  } else if (fault <= Fault::foreign_fence) {
    on_data(fault, any_node());
  } else {
    on_network(fault);
  }
}

// ---- A client's process ------------------------------------------------------------------------------------------

void FaultInjector::on_process(Fault fault, Process& process) {
  Random& random = world_.random();
  const SimTime length = random.magnitude(100 * microsecond, world_.plan().lease_max * 2);
  if (!counted_later(fault)) world_.count(fault, lane_of(process));
  world_.disturb(length);
  if (!leaves_reach(fault)) world_.hinder(process, length);
  switch (fault) {
    case Fault::client_pause: world_.stop(process, length); return;
    case Fault::client_pause_at_call: process.stop_at_call = length; return;
    case Fault::client_crash: world_.end(process, World::End::crash); return;
    case Fault::client_power_loss: world_.end(process, World::End::power_loss); return;
    case Fault::timer_starvation: {
      process.timers_late = random.magnitude(100 * microsecond, 500 * millisecond);
      process.disturbed_until = std::max(process.disturbed_until, world_.now() + length);
      world_.after(length, [this, index = process.index] { world_.processes()[index].timers_late = 0; });
      return;
    }
    case Fault::thread_starvation: world_.starve_thread(process, length); return;
    case Fault::signal_interruption: {
      const auto& workers = process.application->workers();
      world_.interrupt(process, workers[random.index(workers.size())].thread);
      return;
    }
    case Fault::no_descriptors: process.no_sockets_until = world_.now() + length; return;
    case Fault::no_network: process.no_network_until = world_.now() + length; return;
    default: return;
  }
}

// ---- The server --------------------------------------------------------------------------------------------------

void FaultInjector::refuse(Fault fault, Node& node, SimTime length) {
  ModelRedis::Faults& faults = node.redis.faults();
  bool ModelRedis::Faults::*flag = nullptr;
  switch (fault) {
    case Fault::loading: flag = &ModelRedis::Faults::loading; break;
    case Fault::read_only: flag = &ModelRedis::Faults::replica; break;
    case Fault::out_of_memory: flag = &ModelRedis::Faults::out_of_memory; break;
    case Fault::busy_script: flag = &ModelRedis::Faults::busy_script; break;
    case Fault::too_few_replicas: flag = &ModelRedis::Faults::too_few_replicas; break;
    case Fault::master_down: flag = &ModelRedis::Faults::link_down; break;
    default: flag = &ModelRedis::Faults::disk_error; break;
  }
  faults.*flag = true;
  if (fault == Fault::master_down) faults.replica = true;
  world_.after(length, [this, &node, &faults, flag, fault] {
    if (ended_) return;
    faults.*flag = false;
    if (fault == Fault::master_down) faults.replica = false;
    if (fault == Fault::master_down || fault == Fault::read_only) world_.promote_server(node);
  });
}

// By its rights, its state, or because what stands in front of it knows nothing of subscriptions.
void FaultInjector::refuse_subscribers(Node& node, SimTime length) {
  static constexpr const char* errors[] = {
      "NOPERM this user has no permissions to run the 'subscribe' command",
      "LOADING Redis is loading the dataset in memory",
      "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
      "ERR unknown command 'SUBSCRIBE', with args beginning with: ",
      "ERR unsupported command",
  };
  ModelRedis::Faults& faults = node.redis.faults();
  const std::size_t which = world_.random().index(std::size(errors) + 1);
  faults.subscribe_error = which == 0 ? "" : errors[which - 1];
  faults.subscribe_closes = which == 0;
  // Who is subscribed is put off, and has to come anew.
  for (const std::size_t index : std::vector<std::size_t>(world_.open_links()))
    if (Link& link = world_.link(index); link.node == node.index && link.subscribed && link.error == 0)
      world_.reset(link);
  world_.after(length, [this, &faults] {
    if (ended_) return;
    faults.subscribe_error.clear();
    faults.subscribe_closes = false;
  });
}

void FaultInjector::on_server(Fault fault, Node& node) {
  Random& random = world_.random();
  const SimTime length = random.magnitude(100 * microsecond, world_.plan().lease_max * 2);
  if (!counted_later(fault)) world_.count(fault, node.lane);
  world_.disturb(length);
  if (fault >= Fault::loading && !leaves_reach(fault)) world_.hinder(node, length);
  switch (fault) {
    case Fault::server_pause: world_.pause_server(node, length); return;
    case Fault::restart: world_.restart_server(node, ModelRedis::Data::kept, random.coin() ? 0 : length); return;
    case Fault::restart_empty: {
      const SimTime down = random.coin() ? 0 : length;
      for (Node& each : world_.nodes())
        if (&each == &node || world_.plan().one_room) restart_empty(each, down);
      if (world_.plan().one_room) crash_any(node.restarts);
      return;
    }
    case Fault::stale_failover: {
      const SimTime lag = random.magnitude(microsecond, world_.plan().lease_max);
      world_.disturb(lag);
      for (Node& each : world_.nodes())
        if (&each == &node || world_.plan().one_room) fail_over(each, lag);
      return;
    }
    case Fault::server_down: world_.refuse_connects(node, length); return;
    case Fault::script_flush: node.redis.flush_scripts(); return;
    case Fault::client_kill:
      if (Link* const link = any_link(); link != nullptr && link->server_id != 0) {
        world_.node(link->node).redis.kill(link->server_id);
        world_.flush_server(world_.node(link->node));
      }
      return;
    case Fault::max_clients: {
      std::size_t& others = node.redis.faults().other_clients;
      others = node.redis.settings().clients_max;
      world_.hinder_dialling(node, length);
      world_.after(length, [&others] { others = 0; });
      return;
    }
    case Fault::refused_subscriber: refuse_subscribers(node, length); return;
    case Fault::no_permission: {
      static constexpr const char* commands[] = {"del",         "set",       "pexpire",        "eval",    "evalsha",
                                                 "client|kill", "client|id", "client|setname", "publish", "subscribe",
                                                 "hset",        "hdel",      "hexists",        "get",     "pttl",
                                                 "incr",        "delex",     "delifeq",        "info",    "ping"};
      // One of those at a time: what is refused to a script in its middle it has to take back.
      static constexpr const char* of_semaphores[] = {"incrby", "zadd", "zrem",  "zremrangebyscore", "zscore", "zcard",
                                                      "zrange", "time", "exists"};
      std::vector<std::string>& forbidden = node.redis.faults().forbidden_commands;
      static constexpr const char* of_queues[] = {"zpopmin", "zadd", "zscore", "zrem", "time", "exists", "hkeys"};
      const auto is_of_semaphores = [](const std::string& command) {
        return std::find(std::begin(of_semaphores), std::end(of_semaphores), command) != std::end(of_semaphores);
      };
      if (!world_.plan().permits.empty() && random.coin() &&
          std::none_of(forbidden.begin(), forbidden.end(), is_of_semaphores))
        forbidden.emplace_back(of_semaphores[random.index(std::size(of_semaphores))]);
      else if (world_.plan().fair && random.coin())
        forbidden.emplace_back(of_queues[random.index(std::size(of_queues))]);
      else
        forbidden.emplace_back(commands[random.index(std::size(commands))]);
      world_.after(length, [&node] { node.redis.faults().forbidden_commands.clear(); });
      return;
    }
    default: refuse(fault, node, length); return;
  }
}

void FaultInjector::restart_empty(Node& node, SimTime down) {
  world_.checkers().lose_data(node);
  world_.restart_server(node, ModelRedis::Data::lost, down);
  world_.checkers().data_changed(node);
}

// Its replica lags by so long. It has been up for long; or the master itself comes back, with older data.
void FaultInjector::fail_over(Node& node, SimTime lag) {
  auto copy = std::make_shared<Databases>(node.redis.copy_data());
  world_.after(lag, [this, copy, &node] {
    if (ended_) return;
    world_.checkers().lose_data(node);
    world_.restart_server(node, ModelRedis::Data::lost, 0);
    node.redis.load_data(*copy);
    if (Random(world_.plan().seed + node.restarts).chance(700'000)) {
      node.redis.set_age(3600'000'000);
      world_.promote_server(node);
    }
    node.redis.set_now(world_.wall(node));
    world_.checkers().data_changed(node);
    if (world_.plan().one_room && node.index == 0) crash_any(node.restarts);
  });
}

// Drawn apart, so that the worlds of old seeds are what they were.
void FaultInjector::crash_any(std::uint64_t number) {
  Random random(world_.plan().seed * 31 + number);
  Process& process = world_.processes()[random.index(world_.processes().size())];
  if (process.alive) world_.end(process, World::End::crash);
}

// ---- The data ----------------------------------------------------------------------------------------------------

void FaultInjector::on_data(Fault fault, Node& node) {
  Random& random = world_.random();
  const Plan& plan = world_.plan();
  std::size_t index = random.index(plan.quorum_end);  // Crowds and other databases are left alone.
  std::string name = plan.names[index];
  if (!plan.permits.empty() && random.coin()) {  // One of the two keys of a semaphore.
    index = plan.semaphore_names + random.index(plan.permits.size());
    name = random.coin() ? plan.names[index] : taken_permits_of(plan.names[index]);
  }
  if (plan.fair && index < plan.quorum_names && fault != Fault::foreign_fence && random.chance(300'000))
    name = queue_of(name);
  world_.count(fault, node.lane, name);
  Checkers& checkers = world_.checkers();
  if (outside_model(fault)) fault == Fault::flush_all ? checkers.break_all(node) : checkers.break_name(node, index);
  switch (fault) {
    case Fault::eviction: (void)node.redis.evict(name); break;
    case Fault::flush_all: node.redis.flush(); break;
    case Fault::foreign_delete: (void)world_.foreign(node, {"DEL", name}); break;
    case Fault::foreign_set:
      if (random.coin())
        (void)world_.foreign(node, {"SET", name, "somebody", "PX", std::to_string(random.between(1, 30'000))});
      else
        (void)world_.foreign(node, {"SET", name, "somebody"});
      break;
    case Fault::foreign_field: (void)world_.foreign(node, {"HSET", name, "somebody", "1"}); break;
    case Fault::foreign_type:
      (void)world_.foreign(node, {"DEL", name});
      (void)world_.foreign(node, {"RPUSH", name, "something"});
      break;
    case Fault::foreign_persist: (void)world_.foreign(node, {"PERSIST", name}); break;
    case Fault::foreign_expire:
      (void)world_.foreign(node, {"PEXPIRE", name, std::to_string(random.between(1, 5'000))});
      break;
    case Fault::foreign_fence: {
      const std::string counter = derived(fence_prefix, name);
      checkers.excuse_fence(node, index);
      std::uint64_t how = random.below(4);
      // A quorum writes what one node has counted to all, again and again: what cannot be counted on would last.
      if (how == 1 && index >= world_.plan().quorum_names) how = 0;
      if (how == 0) (void)world_.foreign(node, {"SET", counter, "7"});
      if (how == 1) (void)world_.foreign(node, {"SET", counter, "9223372036854775806"});
      if (how == 2) (void)world_.foreign(node, {"SET", counter, "no number"});
      if (how == 3) (void)world_.foreign(node, {"DEL", counter});
      // It does not last: nobody could take the lock any more.
      world_.after(random.magnitude(millisecond, second), [this, counter, &node] {
        (void)world_.foreign(node, {"DEL", counter});
      });
      break;
    }
    default: break;
  }
  checkers.data_changed(node);
}

// ---- Time and network --------------------------------------------------------------------------------------------

// A node's clock, and the way to it.
void FaultInjector::on_node(Fault fault, Node& node) {
  Random& random = world_.random();
  const SimTime length = random.magnitude(100 * microsecond, world_.plan().lease_max * 2);
  const SimTime brief = random.magnitude(100 * microsecond, 5 * second);
  if (!counted_later(fault)) world_.count(fault, node.lane);
  world_.disturb(std::max(length, brief));
  switch (fault) {
    case Fault::clock_forward:
      world_.hinder(node, 0);
      world_.checkers().break_all(node);
      world_.step_wall(node, random.magnitude(1'000, 600'000'000));
      return;
    case Fault::clock_back:
      world_.hinder(node, 0);
      world_.checkers().excuse_fences(node);
      world_.step_wall(node, -random.magnitude(1'000, 600'000'000));
      return;
    case Fault::refused_connect: world_.refuse_connects(node, brief); return;
    case Fault::black_hole: world_.swallow_connects(node, brief); return;
    case Fault::second_black_hole:
      node.second_black_until = world_.now() + length;
      for (const std::size_t index : std::vector<std::size_t>(world_.open_links()))
        if (Link& link = world_.link(index); link.node == node.index && link.subscribed && link.error == 0)
          world_.reset(link);
      return;
    case Fault::slow_connect: node.slow_connect_until = world_.now() + length; return;
    case Fault::slow_handshake: node.slow_handshake_until = world_.now() + length; return;
    case Fault::slow_resolver: node.slow_resolver_until = world_.now() + length; return;
    case Fault::failing_resolver: node.failing_resolver_until = world_.now() + length; return;
    case Fault::latency_spike: world_.spike(node, random.magnitude(millisecond, 3 * second), length); return;
    case Fault::hostile_bytes: node.tamper = Tamper::hostile; return;
    case Fault::wrong_shape: node.tamper = Tamper::shape; return;
    case Fault::unasked_reply: node.tamper = Tamper::unasked; return;
    case Fault::lost_message: node.tamper = Tamper::lose_message; return;
    case Fault::duplicated_message: node.tamper = Tamper::double_message; return;
    case Fault::forged_message: {
      static constexpr const char* payloads[] = {"0", "1", "2", "", "granted"};
      const std::string& name = world_.plan().names[random.index(world_.plan().quorum_end)];
      const char* const payload = payloads[random.index(std::size(payloads))];
      (void)world_.foreign(node, {"PUBLISH", derived(channel_prefix, name), payload});
      if (world_.plan().read_write)
        (void)world_.foreign(node, {"PUBLISH", derived(read_write_channel_prefix, name), payload});
      if (world_.plan().fair) forge_grants(node);
      for (std::size_t index = 0; index < world_.plan().permits.size(); ++index)
        (void)world_.foreign(
            node,
            {"PUBLISH", derived(semaphore_channel_prefix, world_.plan().names[world_.plan().semaphore_names + index]),
             payload});
      return;
    }
    default: return;
  }
}

// Of fair locks, to who waits and to who does not.
void FaultInjector::forge_grants(Node& node) {
  for (const Process& process : world_.processes()) {
    if (!process.alive || process.application == nullptr) continue;
    for (const Application::Slot& slot : process.application->slots()) {
      if (!slot.queues() || !slot.exists() || slot.token().empty()) continue;
      const std::string token(slot.token().bytes().string_view());
      (void)world_.foreign(
          node,
          {"PUBLISH", std::string(fair_channel_prefix.string_view()) + ":{" + token.substr(0, token.rfind(':')) + "}",
           token});
    }
  }
}

void FaultInjector::on_network(Fault fault) {
  if (fault == Fault::clock_forward || fault == Fault::clock_back || fault == Fault::refused_connect ||
      fault == Fault::black_hole || fault == Fault::latency_spike ||
      (fault >= Fault::second_black_hole && fault <= Fault::failing_resolver) ||
      (fault >= Fault::hostile_bytes && fault < Fault::output_limit))
    return on_node(fault, any_node());
  Random& random = world_.random();
  const SimTime length = random.magnitude(100 * microsecond, world_.plan().lease_max * 2);
  const SimTime brief = random.magnitude(100 * microsecond, 5 * second);
  Link* const link = any_link();
  if (link == nullptr) return;
  const std::string lane = "client " + std::to_string(link->process);
  if (!counted_later(fault)) world_.count(fault, lane);
  world_.disturb(std::max(length, brief));
  // A connection that ends is noticed as such.
  if (fault != Fault::reset && fault != Fault::reset_at_stage)
    world_.hinder(world_.processes()[link->process], std::max(length, brief));
  switch (fault) {
    case Fault::reset: world_.reset(*link); return;
    case Fault::reset_at_stage: link->reset_after = random.magnitude(1, 3000); return;
    case Fault::half_open_up: link->up_swallowed = true; return;
    case Fault::half_open_down: link->down_swallowed = true; return;
    case Fault::stall:
      (random.coin() ? link->up_stalled_until : link->down_stalled_until) = world_.now() + length;
      world_.after(length, [this, node = link->node] { world_.flush_server(world_.node(node)); });
      return;
    case Fault::dribble: link->dribbles = true; return;
    case Fault::short_write: link->short_writes = 1 + static_cast<int>(random.below(8)); return;
    case Fault::full_socket: link->full_until = world_.now() + brief; return;
    case Fault::late_delivery:
      // Long enough that the client gives the connection up before.
      link->up_stalled_until = world_.now() + random.magnitude(second, 3 * world_.plan().lease_max + second);
      world_.hinder(world_.processes()[link->process], link->up_stalled_until - world_.now());
      return;
    case Fault::output_limit: {
      // What it does not read the server keeps, up to its limit. Only a subscriber is closed for it.
      if (!link->subscribed || link->server_id == 0) return;
      world_.count(fault, lane);
      link->down_stalled_until = world_.now() + length;
      const std::string& name = world_.plan().names[random.index(world_.plan().quorum_end)];
      for (int messages = 0; messages < 40; ++messages)
        (void)world_.foreign(world_.node(link->node), {"PUBLISH", derived(channel_prefix, name), "2"});
      world_.after(length, [this, node = link->node] { world_.flush_server(world_.node(node)); });
      return;
    }
    case Fault::unasked_between: {
      static constexpr const char* replies[] = {"+OK\r\n",      "$-1\r\n",      ":1\r\n", ":0\r\n",
                                                "*1\r\n:1\r\n", ":1\r\n:1\r\n", "+O"};
      const char* const text = replies[random.index(std::size(replies))];
      const std::vector<std::size_t> open = world_.open_links();
      for (const std::size_t index : open)
        if (world_.say_unasked(world_.link(index), text)) return world_.count(fault, lane);
      return;
    }
    default: return;
  }
}

}  // namespace holdfast::sim
