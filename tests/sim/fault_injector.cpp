// SPDX-License-Identifier: MIT
#include "fault_injector.hpp"

#include <algorithm>
#include <memory>

#include "application.hpp"
#include "checkers.hpp"
#include "holdfast/derived_name.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

// Faults that befall who is in the way and are counted where they do, not where they are ordered.
constexpr bool counted_later(Fault fault) {
  return fault == Fault::client_pause_at_call || fault == Fault::reset_at_stage || fault == Fault::hostile_bytes ||
         fault == Fault::wrong_shape || fault == Fault::unasked_reply || fault == Fault::lost_message ||
         fault == Fault::duplicated_message || fault == Fault::output_limit || fault == Fault::wrong_password ||
         fault == Fault::clock_rate;
}

std::string derived(ByteView prefix, const std::string& name) {
  const DerivedName derived(prefix, Key(ByteView(name.data(), name.size())));
  return {derived.bytes().data(), derived.bytes().size()};
}

std::string lane_of(const Process& process) { return "client " + std::to_string(process.index); }

}  // namespace

FaultInjector::FaultInjector(World& world) : world_(world) {
  for (const std::uint32_t weight : world.plan().weights) total_ += weight;
}

void FaultInjector::begin() {
  if (total_ != 0) world_.after(world_.random().between(0, world_.plan().fault_interval), [this] { next(); });
}

void FaultInjector::next() {
  if (ended_ || world_.events() > world_.plan().faults_until) return;
  std::uint64_t drawn = world_.random().below(total_);
  int index = 0;
  while (drawn >= world_.plan().weights[static_cast<std::size_t>(index)])
    drawn -= world_.plan().weights[static_cast<std::size_t>(index++)];
  inject(static_cast<Fault>(index));
  world_.after(world_.random().magnitude(microsecond, world_.plan().fault_interval), [this] { next(); });
}

void FaultInjector::end() {
  ended_ = true;
  world_.redis().faults() = {};
  for (const ModelRedis::ConnectionId id : crowd_) world_.redis().receive_end(id);
  crowd_.clear();
  // What a clock that was put back has prolonged ends as it was meant to, and what somebody else's hand has left goes.
  if (world_.wall_offset() < world_.wall_offset_max()) {
    world_.checkers().break_all();
    world_.step_wall(world_.wall_offset_max() - world_.wall_offset());
  }
  for (const std::string& name : world_.plan().names) {
    if (world_.plan().weights[static_cast<std::size_t>(Fault::foreign_fence)] != 0)
      (void)world_.foreign({"DEL", derived(fence_prefix, name)});
    const Entry* const entry = world_.redis().find(name);
    if (entry == nullptr) continue;
    const bool foreign = world_.checkers().foreign(name);
    if (entry->expiry_ms == no_expiry || foreign) {
      world_.checkers().break_name(name);
      (void)world_.foreign({"DEL", name});
    }
  }
  world_.checkers().data_changed();
}

Process* FaultInjector::any_process() {
  std::vector<Process*> alive;
  for (Process& process : world_.processes())
    if (process.alive) alive.push_back(&process);
  return alive.empty() ? nullptr : alive[world_.random().index(alive.size())];
}

Link* FaultInjector::any_link() {
  std::vector<Link*> open;
  for (Link& link : world_.links())
    if (link.state == Link::State::established && !link.client_closed && link.error == 0) open.push_back(&link);
  return open.empty() ? nullptr : open[world_.random().index(open.size())];
}

void FaultInjector::inject(Fault fault) {
  if (fault <= Fault::wrong_password) {
    if (Process* const process = any_process(); process != nullptr) on_process(fault, *process);
  } else if (fault <= Fault::no_permission) {
    on_server(fault);
  } else if (fault <= Fault::foreign_fence) {
    on_data(fault);
  } else {
    on_network(fault);
  }
}

// ---- A client's process ------------------------------------------------------------------------------------------

void FaultInjector::on_process(Fault fault, Process& process) {
  Random& random = world_.random();
  const SimTime length = random.magnitude(100 * microsecond, world_.plan().lease_max * 2);
  if (!counted_later(fault)) world_.count(fault, lane_of(process));
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
    case Fault::signal_interruption: world_.interrupt(process); return;
    default: return;
  }
}

// ---- The server --------------------------------------------------------------------------------------------------

void FaultInjector::refuse(Fault fault, SimTime length) {
  ModelRedis::Faults& faults = world_.redis().faults();
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
  world_.after(length, [this, flag, fault] {
    if (ended_) return;
    world_.redis().faults().*flag = false;
    if (fault == Fault::master_down) world_.redis().faults().replica = false;
  });
}

void FaultInjector::on_server(Fault fault) {
  Random& random = world_.random();
  const SimTime length = random.magnitude(100 * microsecond, world_.plan().lease_max * 2);
  world_.count(fault, "server");
  switch (fault) {
    case Fault::server_pause: world_.pause_server(length); return;
    case Fault::restart: world_.restart_server(ModelRedis::Data::kept, random.coin() ? 0 : length); return;
    case Fault::restart_empty:
      world_.checkers().break_all();
      world_.restart_server(ModelRedis::Data::lost, random.coin() ? 0 : length);
      world_.checkers().data_changed();
      return;
    case Fault::stale_failover: {
      auto copy = std::make_shared<Databases>(world_.redis().copy_data());
      world_.after(random.magnitude(microsecond, world_.plan().lease_max), [this, copy] {
        if (ended_) return;
        world_.checkers().break_all();
        world_.restart_server(ModelRedis::Data::lost, 0);
        world_.redis().load_data(*copy);
        world_.redis().set_now(world_.wall());
        world_.checkers().data_changed();
      });
      return;
    }
    case Fault::server_down: world_.refuse_connects(length); return;
    case Fault::script_flush: world_.redis().flush_scripts(); return;
    case Fault::client_kill:
      if (Link* const link = any_link(); link != nullptr && link->server_id != 0) {
        world_.redis().kill(link->server_id);
        world_.flush_server();
      }
      return;
    case Fault::max_clients: {
      while (world_.redis().connection_count() < world_.redis().settings().clients_max)
        crowd_.push_back(world_.redis().accept());
      world_.after(length, [this] {
        for (const ModelRedis::ConnectionId id : crowd_) world_.redis().receive_end(id);
        crowd_.clear();
      });
      return;
    }
    case Fault::no_permission: {
      static constexpr const char* commands[] = {"del",         "set",       "pexpire",        "eval",    "evalsha",
                                                 "client|kill", "client|id", "client|setname", "publish", "subscribe",
                                                 "hset",        "hdel",      "hexists",        "get",     "pttl",
                                                 "incr",        "delex",     "delifeq",        "info",    "ping"};
      world_.redis().faults().forbidden_commands.emplace_back(commands[random.index(std::size(commands))]);
      world_.after(length, [this] { world_.redis().faults().forbidden_commands.clear(); });
      return;
    }
    default: refuse(fault, length); return;
  }
}

// ---- The data ----------------------------------------------------------------------------------------------------

void FaultInjector::on_data(Fault fault) {
  Random& random = world_.random();
  const std::string& name = world_.plan().names[random.index(world_.plan().names.size())];
  world_.count(fault, "server", name);
  Checkers& checkers = world_.checkers();
  if (outside_model(fault)) fault == Fault::flush_all ? checkers.break_all() : checkers.break_name(name);
  switch (fault) {
    case Fault::eviction: (void)world_.redis().evict(name); break;
    case Fault::flush_all: world_.redis().flush(); break;
    case Fault::foreign_delete: (void)world_.foreign({"DEL", name}); break;
    case Fault::foreign_set:
      if (random.coin())
        (void)world_.foreign({"SET", name, "somebody", "PX", std::to_string(random.between(1, 30'000))});
      else
        (void)world_.foreign({"SET", name, "somebody"});
      break;
    case Fault::foreign_field: (void)world_.foreign({"HSET", name, "somebody", "1"}); break;
    case Fault::foreign_type:
      (void)world_.foreign({"DEL", name});
      (void)world_.foreign({"RPUSH", name, "something"});
      break;
    case Fault::foreign_persist: (void)world_.foreign({"PERSIST", name}); break;
    case Fault::foreign_expire:
      (void)world_.foreign({"PEXPIRE", name, std::to_string(random.between(1, 5'000))});
      break;
    case Fault::foreign_fence: {
      const std::string counter = derived(fence_prefix, name);
      checkers.excuse_fence(name);
      const std::uint64_t how = random.below(4);
      if (how == 0) (void)world_.foreign({"SET", counter, "7"});
      if (how == 1) (void)world_.foreign({"SET", counter, "9223372036854775806"});
      if (how == 2) (void)world_.foreign({"SET", counter, "no number"});
      if (how == 3) (void)world_.foreign({"DEL", counter});
      // It does not last: nobody could take the lock any more.
      world_.after(random.magnitude(millisecond, second), [this, counter] { (void)world_.foreign({"DEL", counter}); });
      break;
    }
    default: break;
  }
  checkers.data_changed();
}

// ---- Time and network --------------------------------------------------------------------------------------------

void FaultInjector::on_network(Fault fault) {
  Random& random = world_.random();
  const SimTime length = random.magnitude(100 * microsecond, world_.plan().lease_max * 2);
  const SimTime brief = random.magnitude(100 * microsecond, 5 * second);
  switch (fault) {
    case Fault::clock_forward:
      world_.count(fault, "server");
      world_.checkers().break_all();
      world_.step_wall(random.magnitude(1'000, 600'000'000));
      return;
    case Fault::clock_back:
      world_.count(fault, "server");
      world_.checkers().excuse_fences();
      world_.step_wall(-random.magnitude(1'000, 600'000'000));
      return;
    case Fault::refused_connect:
      world_.count(fault, "server");
      world_.refuse_connects(brief);
      return;
    case Fault::black_hole:
      world_.count(fault, "server");
      world_.swallow_connects(brief);
      return;
    case Fault::latency_spike:
      world_.count(fault, "network");
      world_.spike(random.magnitude(millisecond, 3 * second), length);
      return;
    case Fault::hostile_bytes: world_.tamper(World::Tamper::hostile); return;
    case Fault::wrong_shape: world_.tamper(World::Tamper::shape); return;
    case Fault::unasked_reply: world_.tamper(World::Tamper::unasked); return;
    case Fault::lost_message: world_.tamper(World::Tamper::lose_message); return;
    case Fault::duplicated_message: world_.tamper(World::Tamper::double_message); return;
    case Fault::forged_message: {
      static constexpr const char* payloads[] = {"0", "1", "2", "", "granted"};
      const std::string& name = world_.plan().names[random.index(world_.plan().names.size())];
      const char* const payload = payloads[random.index(std::size(payloads))];
      world_.count(fault, "server", name);
      (void)world_.foreign({"PUBLISH", derived(channel_prefix, name), payload});
      return;
    }
    default: break;
  }
  Link* const link = any_link();
  if (link == nullptr) return;
  const std::string lane = "client " + std::to_string(link->process);
  if (!counted_later(fault)) world_.count(fault, lane);
  switch (fault) {
    case Fault::reset: world_.reset(*link); return;
    case Fault::reset_at_stage: link->reset_after = random.magnitude(1, 3000); return;
    case Fault::half_open_up: link->up_swallowed = true; return;
    case Fault::half_open_down: link->down_swallowed = true; return;
    case Fault::stall:
      (random.coin() ? link->up_stalled_until : link->down_stalled_until) = world_.now() + length;
      world_.after(length, [this] { world_.flush_server(); });
      return;
    case Fault::dribble: link->dribbles = true; return;
    case Fault::short_write: link->short_writes = 1 + static_cast<int>(random.below(8)); return;
    case Fault::full_socket: link->full_until = world_.now() + brief; return;
    case Fault::late_delivery:
      // Long enough that the client gives the connection up before.
      link->up_stalled_until = world_.now() + random.magnitude(second, 3 * world_.plan().lease_max + second);
      return;
    case Fault::output_limit: {
      // What it does not read the server keeps, up to its limit. Only a subscriber is closed for it.
      if (!link->subscribed || link->server_id == 0) return;
      world_.count(fault, lane);
      link->down_stalled_until = world_.now() + length;
      const std::string& name = world_.plan().names[random.index(world_.plan().names.size())];
      for (int messages = 0; messages < 40; ++messages)
        (void)world_.foreign({"PUBLISH", derived(channel_prefix, name), "2"});
      world_.after(length, [this] { world_.flush_server(); });
      return;
    }
    default: return;
  }
}

}  // namespace holdfast::sim
