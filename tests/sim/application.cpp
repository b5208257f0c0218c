// SPDX-License-Identifier: MIT
#include "application.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "canary.hpp"
#include "checkers.hpp"
#include "holdfast/core/multi_kind.hpp"
#include "holdfast/core/name_list.hpp"
#include "holdfast/inspection.hpp"
#include "holdfast/semaphore.hpp"
#include "loop_program.hpp"
#include "pace.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

const LockKind& kind_of(KindOfLock kind) noexcept {
  switch (kind) {
    case KindOfLock::mutex: return mutex_kind;
    case KindOfLock::announced: return announced_mutex_kind;
    case KindOfLock::fenced_mutex: return fenced_mutex_kind;
    case KindOfLock::announced_fenced: return announced_fenced_mutex_kind;
    case KindOfLock::reentrant: return reentrant_kind;
    case KindOfLock::fenced: return fenced_kind;
    case KindOfLock::read: return read_kind;
    case KindOfLock::write: return write_kind;
    case KindOfLock::semaphore: return semaphore_kind;
    case KindOfLock::fair: return fair_kind;
    case KindOfLock::fair_fenced: return fair_fenced_kind;
    case KindOfLock::multi: return multi_kind;
  }
  return mutex_kind;
}

ByteView view_of(const std::string& text) noexcept { return {text.data(), text.size()}; }

// When everybody wants the same lock at the end, each is behind all others: who waits by push may sleep its longest
// poll each time that a release is not announced to it.
constexpr SimTime turn = 15 * second;

// What a bound leaves for scheduling, and for clocks that run at the bound of the drift.
constexpr SimTime slack = 100 * millisecond;
constexpr SimTime late(SimTime local) noexcept { return local * 51 / 50; }

}  // namespace

const LockKind& quorum_kind_of(KindOfLock kind) noexcept {
  switch (kind) {
    case KindOfLock::fenced_mutex: return quorum_fenced_mutex_kind;
    case KindOfLock::announced_fenced: return quorum_announced_fenced_mutex_kind;
    case KindOfLock::fenced: return quorum_fenced_kind;
    case KindOfLock::mutex:
    case KindOfLock::announced:
    case KindOfLock::reentrant:
    case KindOfLock::read:
    case KindOfLock::write:
    case KindOfLock::semaphore:
    case KindOfLock::fair:
    case KindOfLock::fair_fenced:
    case KindOfLock::multi: break;
  }
  return kind_of(kind);
}

void Application::Slot::settle_parts() const noexcept {
  for (Slot* const part : parts) {
    part->owned = owned;
    part->loop = loop;
    part->depth = depth;
    part->moved = moved;
    part->watched = watched;
    part->told_lost = told_lost;
    part->releasing = releasing;
    part->granted_at = granted_at;
    part->waits = waits;
    part->waiting = waiting;
    part->ticked = ticked;
    part->renewed = renewed;
    part->renewing = renewing;
    part->own_belief = own_belief;
  }
}

bool Application::Slot::shares_name(const Slot& other) const noexcept {
  const auto has = [](const Slot& slot, std::size_t wanted) {
    return slot.domain == wanted || std::any_of(slot.parts.begin(), slot.parts.end(),
                                                [wanted](const Slot* part) { return part->domain == wanted; });
  };
  return has(*this, other.domain) || std::any_of(other.parts.begin(), other.parts.end(),
                                                 [&](const Slot* part) { return has(*this, part->domain); });
}

// As long as it lives, a thread is in a call of holdfast, which it may be cancelled in.
class Application::Call {
 public:
  Call(Application& application, std::size_t connection, const char* what) noexcept
      : application_(application),
        connection_(connection),
        what_(what),
        worker_(application.worker_here()),
        before_(worker_.calls) {
    worker_.calls = true;
    World& world = application_.world_;
    world.trace().add(world.now(), "calls", application_.process_.index, connection_, what_);
    world.pace().begin(world.thread());
    application_.connections_[connection_].cancels.begin(world.thread(), application_.takes_turns(connection_));
    application_.arm(connection_);
  }
  Call(Application& application, const Slot& slot, const char* what) noexcept
      : Call(application, slot.plan->connection, what) {}
  ~Call() { worker_.calls = before_; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Who was cancelled may take so long from then on.
  void end(Cancels how, Status status, SimTime allowed) {
    World& world = application_.world_;
    Thread& thread = world.thread();
    thread.cancel_after = -1;
    const std::string wrong = application_.connections_[connection_].cancels.end(application_.process_, thread,
                                                                                 world.now(), how, status, allowed);
    if (!wrong.empty())
      world.fail("cancel",
                 std::string(what_) + " of client " + std::to_string(application_.process_.index) + " " + wrong);
    if (status == Status::cancelled && sin_of(world) == Sin::cancel_kept &&
        application_.connections_[connection_].client != nullptr)
      application_.connections_[connection_].client->cancel();
  }

 private:
  Application& application_;
  std::size_t connection_;
  const char* what_;
  Worker& worker_;
  bool before_;
};

Application::Application(World& world, Process& process)
    : world_(world),
      process_(process),
      slots_(process.plan->slots.size()),
      workers_(process.plan->threads),
      connections_(process.plan->connections.size()),
      watchdogs_(world.nodes().size()),
      anew_random_(world.plan().seed * 7919 + process.index * 31 + process.life) {
  // With room for a subscription, a watchdog's and one more at each node.
  if (process.plan->tls) tls_ = make_program_tls(4 * world.nodes().size() * (process.plan->connections.size() + 1));
#ifdef HOLDFAST_SIM_ASIO
  if (process.plan->loop) program_ = make_loop_program(*this, world, process);
#endif
  for (std::size_t index = 0; index < workers_.size(); ++index) {
    workers_[index].application = this;
    workers_[index].index = index;
  }
  for (std::size_t index = 0; index < connections_.size(); ++index)
    connections_[index].guide = world.shifts().make_guide(process.plan->connections[index].node);
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    Slot& slot = slots_[index];
    slot.plan = &process.plan->slots[index];
    slot.name = slot.plan->name;
    const ConnectionPlan& connection = process.plan->connections[slot.plan->connection];
    slot.worker = &workers_[connection.thread];
    slot.node = connection.node;
    slot.of_quorum = connection.quorum;
    slot.domain = slot.of_quorum ? world.checkers().quorum_domain_of(slot.name)
                                 : world.checkers().domain_of(slot.node, slot.name);
    slot.application = this;
    if (!slot.plan->is_part) workers_[connection.thread].slots.push_back(&slot);
    for (const std::size_t part : slot.plan->parts) {
      slot.parts.push_back(&slots_[part]);
      slots_[part].whole = &slot;
    }
  }
}

// Killed: what its objects are made of is gone, and nobody is told.
Application::~Application() = default;

void* Application::main(void* self) {
  static_cast<Application*>(self)->run();
  return nullptr;
}

void* Application::body_of_worker(void* worker) {
  auto& self = *static_cast<Worker*>(worker);
  self.application->live(self);
  return nullptr;
}

// ---- Life --------------------------------------------------------------------------------------------------------

bool Application::may_ask(const Slot& slot) const noexcept {
  if (slot.of_quorum) return false;
  if (program_ != nullptr) return program_->may_ask(slot);
  const Client& client = *connections_[slot.plan->connection].client;
  return client.connected() && client.compensations_pending() < compensations_max;
}

const ClientPlan& Application::process_plan() const noexcept { return *process_.plan; }

void Application::hurry() noexcept {
  if (program_ != nullptr) program_->hurry();
}

void Application::stop_loop() noexcept { program_->stop(); }

void Application::run() {
  if (program_ != nullptr) return program_->run();
  set_up();
  for (Worker& worker : workers_)
    if (worker.index != 0) (void)::pthread_create(&worker.id, nullptr, body_of_worker, &worker);
  live(workers_[0]);
  for (Worker& worker : workers_)
    if (worker.index != 0) (void)::pthread_join(worker.id, nullptr);
  wait_for_cancellers();
  tear_down();
}

void Application::live(Worker& worker) {
  worker.thread = world_.thread().id;
  for (Slot* const slot : worker.slots) make(*slot);
  process_.plan->crowd ? keep_crowd(worker) : work(worker);
  if (world_.phase() != Phase::faults) wind_down(worker);
  for (Slot* const slot : worker.slots) drop(*slot);
}

void Application::set_up() {
  locked_out_ = process_.plan->wrong_password && process_.life % 2 == 1 && world_.phase() == Phase::faults;
  if (locked_out_) world_.count(Fault::wrong_password, "client " + std::to_string(process_.index));
  if (process_.plan->quorum) connect_quorum();
  client_places_ = std::make_unique_for_overwrite<ClientPlace[]>(connections_.size());
  if (process_.plan->watchdog) watchdog_places_ = std::make_unique_for_overwrite<WatchdogPlace[]>(watchdogs_.size());
  if (process_.plan->branches) {
    branches_places_ = std::make_unique_for_overwrite<BranchesPlace[]>(connections_.size());
    if (process_.plan->watchdog) lanes_places_ = std::make_unique_for_overwrite<LanesPlace[]>(watchdogs_.size());
  }
  if (process_.plan->watchdog && process_.plan->crowd) crowd_places_ = std::make_unique<CrowdPlaces>();
  for (std::size_t index = 0; index < connections_.size(); ++index)
    if (!plan_of_connection(index).quorum) connect(index);
}

const ConnectionPlan& Application::plan_of_connection(std::size_t connection) const noexcept {
  return process_.plan->connections[connection];
}

ClientConfig Application::config_of(std::size_t index, std::size_t node) const {
  const ConnectionPlan& way = plan_of_connection(index);
  const Connection& connection = connections_[index];
  const std::string host = way.named ? host_name(way, node) : "10.0.0.1";
  ClientConfig config;
  config.host = view_of(host);
  config.port = static_cast<std::uint16_t>(port_base + node);
  config.topology = connection.guide.get();
  if (tls_ != nullptr) config.tls = &tls_->security();
  const bool kept = sin_of(world_) == Sin::settings_kept;
  const Timeouts timeouts = kept ? timeouts_of_connection(index) : connection.timeouts;
  config.database = kept ? 0 : connection.database;
  config.connect_timeout = Duration(timeouts.connect);
  config.request_timeout = Duration(timeouts.request);
  config.stall_timeout = Duration(timeouts.stall);
  config.max_poll = Duration(process_.plan->max_poll);
  config.native_delete = process_.plan->native_delete;
  if (!way.quorum) {
    config.acks = process_.plan->acks;
    if (config.acks != 0) config.acks_timeout = Duration(process_.plan->acks_timeout);
    if (sin_of(world_) == Sin::acks_ignored) config.acks = 0;
  }
  if (world_.plan().password) config.password = locked_out_ ? ByteView("wrong") : ByteView("right");
  return config;
}

void Application::connect_quorum() {
  quorum_places_.push_back(std::make_unique_for_overwrite<QuorumPlace>());
  quorum_ = new (quorum_places_.back()->bytes) Quorum<quorum_nodes_max>;
  configure_quorum();
  connect_quorum_now();
  if (process_.plan->quorum_watchdog) start_quorum_watchdog();
}

void Application::start_quorum_watchdog() {
  Connection& connection = connections_[0];
  connection.timeouts_at_first = connection.timeouts;
  connection.watched = true;
  quorum_watchdog_place_ = std::make_unique_for_overwrite<QuorumWatchdogPlace>();
  quorum_watchdog_ = new (quorum_watchdog_place_->bytes) QuorumWatchdog;
  if (quorum_watchdog_->start(*quorum_) != Status::ok) world_.fail("start", "the watchdog of a quorum did not start");
}

void Application::configure_quorum() {
  configs_.clear();
  connections_[0].timeouts = timeouts_of_connection(0);
  for (std::size_t node = 0; node < world_.nodes().size(); ++node) configs_.push_back(config_of(0, node));
  drop_nodes_as_canary(sin_of(world_), process_.random, configs_);
  max_lease_ = std::max(Duration(world_.plan().lease_max), lease_min);
}

QuorumConfig Application::quorum_config() const noexcept {
  return {.max_lease = max_lease_,
          .restart_guard = world_.plan().restart_guard && sin_of(world_) != Sin::guard_ignored};
}

// In another order; where its world says so, also with the other max_lease.
void Application::configure_quorum_anew() {
  world_.checkers().after_run(process_);  // What was granted until now was granted under the max_lease of before.
  bool other_order = false;
  for (std::size_t index = configs_.size(); index > 1; --index) {
    const std::size_t with = anew_random_.index(index);
    other_order = other_order || with != index - 1;
    std::swap(configs_[index - 1], configs_[with]);
  }
  // Who has granted is found at another place: nobody can be told to let go of what is held, and its lease ends it.
  if (other_order)
    for (Slot& slot : slots_) {
      if (!slot.of_quorum) continue;
      slot.moved = slot.depth != 0;
      slot.unclear = Token();
    }
  const Duration large = std::max(Duration(world_.plan().lease_max), lease_min);
  const Duration small(world_.plan().max_lease_small);
  if (world_.phase() != Phase::faults)
    max_lease_ = large;
  else if (small != Duration::zero() && anew_random_.chance(700'000))
    max_lease_ = max_lease_ == large ? small : large;
}

void Application::connect_quorum_anew() {
  configure_quorum_anew();
  if (sin_of(world_) != Sin::forgets_on_connect) return connect_quorum_now();
  // As another quorum does, which knows of nothing. What is held stays with the one before.
  quorum_places_.push_back(std::make_unique_for_overwrite<QuorumPlace>());
  quorum_ = new (quorum_places_.back()->bytes) Quorum<quorum_nodes_max>;
  connect_quorum_now();
  if (quorum_watchdog_ != nullptr) (void)quorum_watchdog_->attach(*quorum_);
  for (Slot& slot : slots_) {
    if (slot.depth != 0 || !slot.exists() || !slot.of_quorum) continue;
    drop(slot);
    make(slot);
  }
}

// What is held for longer than max_lease is by now is left alone, and the others are tried beside it.
void Application::squeeze(const Worker& worker) {
  const auto outlasts = [this](const Slot& slot) { return slot.of_quorum && Duration(slot.plan->lease) > max_lease_; };
  for (int round = 0; round < 20 && world_.phase() == Phase::faults; ++round) {
    bool held = false;
    for (Slot* const slot : worker.slots) held = held || (outlasts(*slot) && slot->depth != 0 && slot->held());
    if (!held) return;
    for (Slot* const slot : worker.slots) {
      if (outlasts(*slot) || !slot->of_quorum) continue;
      if (slot->depth == 0)
        acquire(*slot);
      else
        release(*slot, false);
    }
    pause(world_.plan().lease_max / 10);
  }
}

// What finds no place must say so, and follow.
void Application::post_all(const Worker& worker) {
  for (Slot* const slot : worker.slots)
    if (slot->depth == 0 && world_.phase() == Phase::faults) acquire(*slot);
  for (Slot* const slot : worker.slots)
    if (slot->depth != 0) release(*slot, true);
  for (Slot* const slot : worker.slots) settle(*slot);
}

void Application::connect_quorum_now() {
  const Started started = start();
  world_.pace().note_connect_call(process_);
  Call call(*this, 0, "connect");
  const Status status = quorum_->connect(configs_.data(), configs_.size(), quorum_config());
  call.end(Cancels::asked, status, bound_of_cancel(0));
  world_.trace().add(world_.now(), "quorum", process_.index, static_cast<std::uint64_t>(status), to_string(status));
  check_bound("connect", started, late(process_.plan->connect_timeout) + slack);
  if (status != Status::ok && status != Status::no_quorum && status != Status::cancelled)
    world_.fail("configuration", std::string("a quorum of the plan: ") + to_string(status));
}

// A watchdog comes with the first client of a node, and the others of that node share it.
void Application::connect(std::size_t index) {
  const ClientPlan& plan = *process_.plan;
  Connection& connection = connections_[index];
  connection.node = plan.connections[index].node;
  connection.timeouts = timeouts_of_connection(index);
  connection.timeouts_at_first = connection.timeouts;
  connection.client = new (client_places_[index].bytes) Client;
  if (plan.branches)
    connection.branches = new (branches_places_[index].bytes) SimBranches(*connection.client);
  else
    connection.lingering = new (client_places_[index].lingering) Lingering(*connection.client);
  if (plan.hears) connection.ears = new (client_places_[index].ears) SentinelWatch(*connection.client);
  if (plan.acks != 0) connection.acks = new (client_places_[index].acks) Acks(*connection.client);
  reconnect(index);
  for (int owner = 0; owner < 2; ++owner)
    connection.owners[owner] = std::make_unique<SimOwner>(*connection.client, slots_.size());
  connection.watched = plan.watchdog;
  if (!plan.watchdog) return;
  Watchdog*& watchdog = watchdogs_[connection.node];
  if (watchdog != nullptr) return connection.client->attach(watchdog);
  auto& place = watchdog_places_[connection.node];
  watchdog =
      new (place.bytes) Watchdog(crowd_places_ != nullptr ? crowd_places_->places.storage() : place.places.storage());
  if (plan.hears) watchdog_ears_.push_back(new (place.ears) SentinelWatch(*watchdog));
  if (plan.branches) lanes_.push_back(new (lanes_places_[connection.node].bytes) SimLanes(*watchdog));
  if (watchdog->start(*connection.client) != Status::ok) world_.fail("start", "the watchdog did not start");
}

// By what is its configuration now.
void Application::reconnect(std::size_t index) {
  Connection& connection = connections_[index];
  const Started started = start();
  world_.pace().note_connect_call(process_);
  Call call(*this, index, "connect");
  const bool kept = sin_of(world_) == Sin::settings_kept;
  const std::size_t node = kept ? plan_of_connection(index).node : connection.node;
  const Status status = connection.client->connect(config_of(index, node));
  call.end(Cancels::asked, status, bound_of_cancel(index));
  world_.trace().add(world_.now(), "connect()", process_.index, static_cast<std::uint64_t>(status), to_string(status));
  if (status == Status::invalid_argument) world_.fail("configuration", "a client of the plan was refused");
  check_bound("connect", started, late(connection.timeouts.connect) + slack);
}

// What was asked for in the plan.
Timeouts Application::timeouts_of_connection(std::size_t) const noexcept {
  const ClientPlan& plan = *process_.plan;
  return {.connect = plan.connect_timeout, .request = plan.request_timeout, .stall = plan.stall_timeout};
}

// In the middle of its life: with other timeouts, to another server, or to another database of the same.
void Application::connect_anew(const Worker& worker) {
  Random& random = process_.random;
  std::vector<std::size_t>& own = own_connections_;  // A member: a killed process unwinds no stack.
  own.clear();
  for (std::size_t index = 0; index < connections_.size(); ++index)
    if (plan_of_connection(index).thread == worker.index) own.push_back(index);
  const std::size_t index = own[random.index(own.size())];
  Connection& connection = connections_[index];
  world_.count(Fault::connect_anew, "client " + std::to_string(process_.index));
  if (random.coin()) {
    connection.client->close();
    world_.pace().note_connect_call(process_);
    if (random.coin()) return;  // The next call connects by itself.
  }
  // No longer than the plan's, which the checkers go by.
  const Timeouts most = timeouts_of_connection(index);
  if (random.coin()) {
    connection.timeouts.connect = random.magnitude(most.connect / 4, most.connect);
    connection.timeouts.request = random.magnitude(most.request / 4, most.request);
    connection.timeouts.stall = random.magnitude(most.stall / 4, most.stall);
  }
  if (random.chance(300'000) && !world_.plan().one_place()) return go_elsewhere(index);
  reconnect(index);
}

// What is held there stays held there. A record that several objects share is given up before, so that all of them mean
// the same server.
void Application::go_elsewhere(std::size_t index) {
  Random& random = process_.random;
  Connection& connection = connections_[index];
  for (Slot& slot : slots_) {
    if (slot.plan->connection != index) continue;
    if (slot.reentrant() || random.coin()) drop(slot);
    slot.moved = slot.depth != 0;
  }
  if (random.coin()) connection.node = random.index(world_.nodes().size());
  connection.database = random.coin() ? 0 : other_database;
  attach(connection);
  reconnect(index);
  for (Slot& slot : slots_) {
    if (slot.plan->connection != index) continue;
    settle_in(slot);
    if (!slot.exists()) make(slot);
  }
}

// By the watchdog of where it goes, if there is one: each has a connection of its own, to one server and one database.
void Application::attach(Connection& connection) const {
  Watchdog* const watchdog = connection.database == 0 ? watchdogs_[connection.node] : nullptr;
  connection.watched = watchdog != nullptr;
  connection.client->attach(watchdog);
}

// What it keeps may run out meanwhile. One thread alone does so: the clients of the others share the watchdogs.
void Application::rest_watchdog(const Worker& worker) {
  own_connections_.clear();
  for (std::size_t index = 0; index < connections_.size(); ++index)
    if (connections_[index].watched && plan_of_connection(index).thread == worker.index)
      own_connections_.push_back(index);
  if (own_connections_.empty()) return;
  const std::size_t index = own_connections_[anew_random_.index(own_connections_.size())];
  Connection& chosen = connections_[index];
  const bool of_quorum = plan_of_connection(index).quorum;
  Watchdog* const watchdog = of_quorum ? nullptr : watchdogs_[chosen.node];
  world_.trace().add(world_.now(), "stop", process_.index, index);
  resting_ = true;
  of_quorum ? quorum_watchdog_->stop() : watchdog->stop();
  for (Slot& slot : slots_) slot.rested = true;
  if (anew_random_.coin()) pause(world_.plan().lease_max);
  world_.trace().add(world_.now(), "start again", process_.index, index);
  const Status status = of_quorum ? quorum_watchdog_->start(*quorum_) : watchdog->start(*chosen.client);
  if (status != Status::ok) world_.fail("start", "a watchdog did not start again");
  resting_ = false;
  if (of_quorum) return;
  for (Connection& connection : connections_)
    if (connection.node == chosen.node) connection.timeouts_at_first = chosen.timeouts;
}

// Where its client is, unless it still holds what is elsewhere.
void Application::settle_in(Slot& slot) const {
  if (slot.depth != 0) return;
  const Connection& connection = connections_[slot.plan->connection];
  slot.moved = false;
  const std::size_t name = world_.plan().name_in(slot.plan->name, connection.database);
  if (slot.node == connection.node && slot.name == name) return;
  slot.node = connection.node;
  slot.name = name;
  slot.domain = world_.checkers().domain_of(slot.node, slot.name);
  slot.unclear = Token();
  slot.denied = Token();
  slot.settle_parts();
  for (Slot* const part : slot.parts) settle_in(*part);
}

void Application::tear_down() {
  for (SentinelWatch* const ears : watchdog_ears_) ears->~SentinelWatch();
  watchdog_ears_.clear();
  for (SimLanes* const lanes : lanes_) lanes->~SimLanes();
  lanes_.clear();
  for (Watchdog*& watchdog : watchdogs_) {
    if (watchdog != nullptr) watchdog->~Watchdog();
    watchdog = nullptr;
  }
  if (quorum_watchdog_ != nullptr) quorum_watchdog_->~QuorumWatchdog();
  quorum_watchdog_ = nullptr;
  for (const auto& place : quorum_places_)
    std::launder(reinterpret_cast<Quorum<quorum_nodes_max>*>(place->bytes))->~Quorum();
  quorum_places_.clear();
  quorum_ = nullptr;
  for (Connection& connection : connections_) {
    if (connection.client == nullptr) continue;
    if (connection.ears != nullptr) connection.ears->~SentinelWatch();
    connection.ears = nullptr;
    if (connection.acks != nullptr) connection.acks->~Acks();
    connection.acks = nullptr;
    if (connection.branches != nullptr)
      connection.branches->~SimBranches();
    else
      connection.lingering->~Lingering();
    connection.branches = nullptr;
    connection.client->~Client();
    connection.client = nullptr;
  }
}

void Application::note_lost(void* context) noexcept {
  auto& slot = *static_cast<Slot*>(context);
  if (sin_of(slot.application->world_) != Sin::loss_not_told) slot.told_lost = true;
}

void Application::make(Slot& slot) {
  if (slot.is_part() || slot.exists()) return;  // It comes with the whole, or came with its other side.
  if (!slot.of_quorum) settle_in(slot);
  if (slot.of_quorum) {
    make_redlock(slot);
  } else if (slot.of_two_sides()) {
    settle_in(other_side(slot));
    make_sides(slot);
    keep(other_side(slot));
  } else if (slot.of_several()) {
    make_multi(slot);
  } else {
    make_lock(slot);
  }
  keep(slot);
}

void Application::keep(Slot& slot) {
  const SlotPlan& plan = *slot.plan;
  const Sin sin = sin_of(world_);
  KeepOptions keep;
  keep.keep = plan.kept ? Keep::always : Keep::never;
  if (sin == Sin::idle_hold_not_renewed && plan.linger != 0) keep.keep = Keep::never;
  if (plan.max_hold != 0) keep.max_hold = Duration(plan.max_hold);
  if (plan.max_hold != 0 && sin == Sin::max_hold_ignored) keep.max_hold = max_hold_unlimited;
  if (plan.liveness != 0 && sin != Sin::feed_ignored) keep.liveness = Duration(plan.liveness);
  keep.on_lost = note_lost;
  keep.context = &slot;
  // A shared record may be held already, through another object: then it stays as it is kept.
  (void)slot.keep(keep);
  slot.depth = 0;
}

// As many a program does: into a buffer that is larger than the name.
ByteView Application::write_name(const Slot& slot) noexcept {
  char(&name)[sizeof(Worker::name)] = workers_[slot.worker->index].name;
  (void)std::snprintf(name, sizeof name, "%s", world_.plan().names[slot.name].c_str());
  if (sin_of(world_) == Sin::name_of_the_whole_buffer) return {name, sizeof name - 1};
  return name;
}

QuorumTiming Application::quorum_timing_of(Slot& slot) const noexcept {
  const SlotPlan& plan = *slot.plan;
  QuorumTiming timing = {.lease = Duration(plan.lease), .min_validity = Duration(plan.min_validity)};
  if (plan.node_timeout != 0) timing.node_timeout = Duration(plan.node_timeout);
  if (!timing.valid()) timing = {.lease = Duration(plan.lease)};
  slot.redlock_timeout = timing.effective_node_timeout().count();
  return timing;
}

void Application::judge_configuration(Status status, Duration lease) const {
  if (status != Status::ok && lease <= max_lease_) world_.fail("configuration", "a lock of the plan was refused");
}

void Application::make_redlock(Slot& slot) {
  const ByteView key = write_name(slot);
  const QuorumTiming timing = quorum_timing_of(slot);
  const LockKind& kind = quorum_kind_as_canary(sin_of(world_), quorum_kind_of(slot.plan->kind));
  if (slot.redlock_place == nullptr) slot.redlock_place = std::make_unique_for_overwrite<Slot::RedlockPlace>();
  slot.redlock = new (slot.redlock_place->bytes) SimRedlock(*quorum_, kind, key, timing);
  judge_configuration(slot.redlock->configuration(), Duration(slot.plan->lease));
}

void Application::make_lock(Slot& slot) {
  const SlotPlan& plan = *slot.plan;
  const ByteView key = write_name(slot);
  const LockTiming timing = {.lease = Duration(plan.lease)};
  const Sin sin = sin_of(world_);
  const FairOptions fair = {.fence = plan.kind == KindOfLock::fair_fenced, .linger = Duration(plan.linger)};
  const LockKind& kind = plan.linger != 0                       ? holdfast::kind_of(fair)
                         : slot.of_semaphore() || slot.queues() ? kind_of(plan.kind)
                                                                : kind_as_canary(sin, kind_of(plan.kind));
  if (slot.reentrant()) {
    slot.owned =
        new (slot.place) SimOwned(*connections_[plan.connection].owners[plan.owner], kind, key, timing, fair.linger);
  } else {
    // The table of ways must outlive the lock.
    static HoldRecord::Ways ways;
    ways = ways_as_canary(sin);
    slot.mutex = new (slot.place) SimMutex(client_of(slot), kind, key, timing, ways, plan.permits);
  }
  judge_configuration(slot.lock()->configuration());
}

void Application::make_multi(Slot& slot) {
  ByteView names[names_max];
  const std::size_t count = names_of(slot, names);
  slot.owned = new (slot.place)
      SimOwned(*connections_[slot.plan->connection].owners[slot.plan->owner], multi_kind,
               NameList(names, count).key().bytes(), {.lease = Duration(slot.plan->lease)}, Duration::zero());
  judge_configuration(slot.lock()->configuration());
}

// In any order.
std::size_t Application::names_of(const Slot& slot, ByteView* names) const noexcept {
  std::size_t count = 0;
  for (const Slot* const part : slot.parts) names[count++] = view_of(world_.plan().names[part->name]);
  names[count++] = view_of(world_.plan().names[slot.name]);
  return count;
}

// Both sides, since they are one object.
void Application::make_sides(Slot& slot) {
  Slot& reader = slot.reads() ? slot : other_side(slot);
  Slot& writer = other_side(reader);
  const ByteView key = write_name(slot);
  if (reader.read_write_place == nullptr)
    reader.read_write_place = std::make_unique_for_overwrite<Slot::ReadWritePlace>();
  auto* const lock = new (reader.read_write_place->bytes) ReadWriteLock(
      *connections_[slot.plan->connection].owners[slot.plan->owner], key,
      {.read = {.lease = Duration(reader.plan->lease)}, .write = {.lease = Duration(writer.plan->lease)}});
  reader.side = &lock->read();
  writer.side = &lock->write();
  if (reader.side->configuration() != Status::ok || writer.side->configuration() != Status::ok)
    world_.fail("configuration", "a lock of the plan was refused");
}

void Application::drop_sides(Slot& reader, Slot& writer) {
  reader.releasing = writer.releasing = true;
  if (reader.side != nullptr)
    std::launder(reinterpret_cast<ReadWriteLock*>(reader.read_write_place->bytes))->~ReadWriteLock();
  for (Slot* const slot : {&reader, &writer}) {
    slot->side = nullptr;
    slot->depth = 0;
    slot->own_belief = Instant();
    slot->releasing = false;
  }
}

void Application::drop(Slot& slot) {
  if (slot.is_part()) return;
  if (slot.of_two_sides())
    return slot.reads() ? drop_sides(slot, other_side(slot)) : drop_sides(other_side(slot), slot);
  slot.releasing = true;
  if (slot.redlock != nullptr && slot.depth != 0) {  // What is over was judged then.
    // Where a node may have no place for what a lock leaves that is destroyed, its lease ends it.
    slot.unclear = !slot.moved && quorum_->compensations_pending() < compensations_max ? slot.token() : Token();
    slot.unclear_at = world_.now();
  }
  if (slot.mutex != nullptr) slot.mutex->~SimMutex();
  if (slot.owned != nullptr) slot.owned->~SimOwned();
  if (slot.redlock != nullptr) slot.redlock->~SimRedlock();
  slot.redlock = nullptr;
  slot.mutex = nullptr;
  slot.owned = nullptr;
  slot.depth = 0;
  slot.idle = false;
  slot.own_belief = Instant();
  slot.own_fence = 0;
  slot.releasing = false;
  slot.settle_parts();
}

// ---- What it does ------------------------------------------------------------------------------------------------

void Application::pause(SimTime most) {
  const SimTime length = process_.random.magnitude(10 * microsecond, most);
  if (world_.phase() == Phase::faults) world_.sleep(length);
}

void Application::work(Worker& worker) {
  Random& random = process_.random;
  while (world_.phase() == Phase::faults && !ending_) {
    if (process_.plan->hangs != 0 && random.chance(process_.plan->hangs))
      pause(4 * world_.plan().lease_max);  // It is not alive, and its holds should not be.
    tick(worker);
    act(worker, *worker.slots[random.index(worker.slots.size())]);
    if (process_.plan->connects_anew != 0 && random.chance(process_.plan->connects_anew)) connect_anew(worker);
    if (quorum_ != nullptr && process_.plan->quorum_anew != 0 && anew_random_.chance(process_.plan->quorum_anew)) {
      connect_quorum_anew();
      squeeze(worker);
    }
    if (process_.plan->rests != 0 && worker.index == 0 && anew_random_.chance(process_.plan->rests))
      rest_watchdog(worker);
    if (process_.plan->posts && anew_random_.chance(50'000)) post_all(worker);
    if (draws_inspection()) inspect_one(worker);
    if (quorum_ != nullptr && random.chance(100'000))
      for (Slot* const slot : worker.slots) settle(*slot);
    for (Slot* const slot : worker.slots)
      if (!slot->of_quorum && !slot->unclear.empty() && client_of(*slot).connected())
        world_.checkers().check_compensated(process_, *slot, client_of(*slot).compensations_pending());
    if (random.chance(500'000)) pause(process_.plan->think);
    if (random.chance(2'000)) ending_ = true;  // It ends, in good order, and another one begins.
  }
}

void Application::tick(const Worker& worker) {
  for (Slot* const slot : worker.slots) {
    if (slot->plan->liveness == 0 || slot->depth == 0) continue;
    slot->tick();
    slot->ticked = Instant::from_nanoseconds(world_.local_time(process_));
  }
}

void Application::act(Worker& worker, Slot& slot) {
  Random& random = process_.random;
  if (random.chance(process_.plan->careless)) {  // It forgets what it holds.
    drop(slot);
    make(slot);
    return;
  }
  if (slot.depth == 0 && gathers(worker, slot)) return take_set(worker);
  if (slot.depth == 0 || (slot.reentrant() && random.chance(200'000)))
    acquire(slot);
  else
    act_held(slot);
}

// ---- How long it may take ----------------------------------------------------------------------------------------

Application::Started Application::start() const noexcept {
  return {.at = world_.now(), .imposed = process_.imposed, .resolving = world_.thread().resolving};
}

SimTime Application::bound_of_span(SimTime span) noexcept { return late(span) + slack; }

SimTime Application::longest_turn() const noexcept {
  // A restarted node has no vote for a while.
  const SimTime guarded = process_.plan->quorum ? world_.plan().lease_max * 51 / 50 + 2 * second : 0;
  return world_.plan().lease_max + 70 * second + turn * world_.threads_in_all() + guarded;
}

// The same for so many locks together, each of which everybody may want.
SimTime Application::longest_turn_of(std::size_t locks) const noexcept {
  return longest_turn() + turn * world_.threads_in_all() * static_cast<SimTime>(locks);
}

// How long replicas may take: behind another WAIT and for its own, with a connection to be made.
SimTime Application::bound_of_acks(std::size_t connection) const noexcept {
  const ClientPlan& plan = *process_.plan;
  if (plan.acks == 0 || plan_of_connection(connection).quorum) return 0;
  return 2 * plan.acks_timeout + connections_[connection].timeouts.request;
}

// A wait that may end in one request, however the server and the way to it are.
SimTime Application::bound(const Slot& slot, SimTime wait) const noexcept {
  const std::size_t connection = slot.plan->connection;
  return late(wait + connections_[connection].timeouts.request + bound_of_acks(connection)) + slack;
}

// The same where there may be a connect before.
SimTime Application::bound_with_connect(std::size_t connection, SimTime wait) const noexcept {
  const Timeouts& timeouts = connections_[connection].timeouts;
  return late(wait + reconnect_soon_max.count() + timeouts.connect + timeouts.request + bound_of_acks(connection)) +
         slack;
}

// Its request, and where the connection is lost under it, its compensation on the next one.
SimTime Application::bound_of_release(std::size_t connection) const noexcept {
  const Timeouts& timeouts = connections_[connection].timeouts;
  return late(reconnect_soon_max.count() + timeouts.connect + 2 * timeouts.request) + slack;
}

SimTime Application::bound_of_quorum(SimTime wait) const noexcept {
  const ClientPlan& plan = *process_.plan;
  return wait + wait / 50 + 4 * (plan.connect_timeout + plan.request_timeout) + 500 * millisecond;
}

// Of one attempt of a quorum: a majority is connected, votes, and writes the fence down; or it is a renewal.
SimTime Application::bound_of_attempt(const Slot& slot) const noexcept {
  const ClientPlan& plan = *process_.plan;
  const SimTime renewal = slot.reentrant() && slot.depth != 0 ? plan.request_timeout : 0;
  return late(plan.connect_timeout + renewal + 2 * slot.redlock_timeout) + slack;
}

SimTime Application::bound_of_request() const noexcept { return late(process_.plan->request_timeout) + slack; }

void Application::check_bound(std::string_view what, const Started& started, SimTime most) {
  // What was imposed before the call may reach into it. The resolver takes its own time.
  const SimTime undisturbed = std::max(started.at, std::min(process_.disturbed_until, world_.now()));
  const SimTime took = world_.now() - undisturbed - (process_.imposed - started.imposed) -
                       (world_.thread().resolving - started.resolving);
  if (took > most)
    world_.fail("bounded waits", std::string(what) + " of client " + std::to_string(process_.index) + " took " +
                                     time_text(took) + " s, " + time_text(most) + " are the bound");
}

// ---- Cancelling --------------------------------------------------------------------------------------------------

Application::Worker& Application::worker_here() noexcept {
  const std::size_t id = world_.thread().id;
  for (Worker& worker : workers_)
    if (worker.thread == id) return worker;
  return workers_[0];  // Which connects before it is known.
}

// The one that makes the calls of a connection: until it runs, the first does.
const Thread& Application::thread_of(std::size_t connection) const noexcept {
  const std::size_t id = workers_[plan_of_connection(connection).thread].thread;
  return *world_.thread_at(id == no_thread ? process_.threads.front() : id);
}

bool Application::takes_turns(std::size_t connection) const noexcept {
  return quorum_watchdog_ != nullptr && plan_of_connection(connection).quorum;
}

// Whether the call that begins is to be cancelled in its middle, and by whom.
void Application::arm(std::size_t connection) {
  const ClientPlan& plan = *process_.plan;
  Random& random = process_.random;
  if (world_.phase() != Phase::faults) return;
  if (plan.cancels != 0 && random.chance(plan.cancels)) {
    Thread& thread = world_.thread();
    thread.cancel_after = random.magnitude(1, 400) - 1;
    thread.cancel_connection = connection;
  }
  if (plan.torn_cancels == 0 || !random.chance(plan.torn_cancels)) return;
  Canceller& canceller = cancellers_.emplace_back();
  canceller.application = this;
  canceller.connection = connection;
  canceller.delay = random.magnitude(microsecond, 200 * millisecond);
  canceller.torn = random.magnitude(microsecond, 5 * millisecond);
  (void)world_.add_thread(process_, body_of_canceller, &canceller);
}

void* Application::body_of_canceller(void* argument) {
  auto& self = *static_cast<Canceller*>(argument);
  World& world = self.application->world_;
  world.sleep(self.delay);
  world.thread().torn = self.torn;
  world.count(Fault::torn_cancel, "client " + std::to_string(self.application->process_.index));
  self.application->cancel(self.connection);
  self.done = true;
  return nullptr;
}

// Who may still call a client is waited for before it goes.
void Application::wait_for_cancellers() {
  while (std::any_of(cancellers_.begin(), cancellers_.end(), [](const Canceller& each) { return !each.done; }))
    world_.sleep(millisecond);
}

void Application::cancel(std::size_t index) noexcept {
  Connection& connection = connections_[index];
  const bool of_quorum = plan_of_connection(index).quorum;
  if (of_quorum ? quorum_ == nullptr : connection.client == nullptr) return;
  connection.cancels.note_raised(process_, thread_of(index), world_.now());
  world_.trace().add(world_.now(), "cancel()", process_.index, index);
  if (cancel_lost_as_canary(world_)) return;
  if (of_quorum)
    quorum_->cancel();
  else
    connection.client->cancel();
}

void Application::cancel_by_signal(std::size_t thread) noexcept {
  world_.count(Fault::cancel_at_call, "client " + std::to_string(process_.index));
  cancel(world_.thread_at(thread)->cancel_connection);
}

// ---- Acquiring and releasing -------------------------------------------------------------------------------------

void Application::acquire(Slot& slot) {
  Random& random = process_.random;
  const Started started = start();
  const std::uint64_t commands = world_.thread().commands;
  const bool tries = random.chance(300'000);
  // Of a side that asks to write: what the other one reads by.
  const Token read_by = asks_as_reader(slot) ? other_side(slot).token() : Token();
  SimTime wait = 0;
  Status status = Status::ok;
  slot.queued = !tries && slot.queues();
  const bool idle = slot.idle;
  slot.idle = false;
  if (idle && sin_of(world_) == Sin::idle_hold_taken_late) {
    const Duration lease{slot.plan->lease};
    slot.own_belief = Instant::from_nanoseconds(world_.local_time(process_)) + (lease - drift_of(lease));
    ++slot.depth;
    return;
  }
  if (tries) {
    Call call(*this, slot, "try_acquire");
    status = slot.redlock != nullptr ? slot.redlock->try_acquire() : slot.lock()->try_acquire();
    call.end(Cancels::acquiring, status, bound_of_cancel(slot.plan->connection));
  } else {
    wait = random.magnitude(100 * microsecond, process_.plan->wait);
    if (random.chance(50'000))
      world_.after(random.between(0, wait), [world = &world_, index = process_.index, life = process_.life,
                                             connection = slot.plan->connection, worker = slot.worker->thread] {
        Process& process = world->processes()[index];
        if (!process.alive || process.life != life) return;
        process.application->cancel(connection);
        world->interrupt(process, worker);
      });
    Call call(*this, slot, "acquire");
    begin_waiting(slot);
    status = wait_for(slot, wait);
    end_waiting(slot);
    call.end(Cancels::acquiring, status, bound_of_cancel(slot.plan->connection));
  }
  world_.trace().add(world_.now(), tries ? "try" : "acquire", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  const SimTime most = slot.redlock == nullptr
                           ? tries ? bound_with_connect(slot.plan->connection, 0) : bound(slot, wait)
                           : (tries ? 0 : bound_of_quorum(wait) + bound_of_attempt(slot)) + bound_of_attempt(slot);
  check_bound(tries ? "try_acquire" : "acquire", started, most);
  world_.checkers().after_acquire(process_, slot, status, started.at, commands);
  if (slot.plan->kind == KindOfLock::write) {
    const bool reads_on = asked_as_reader(slot, read_by, started.at);
    world_.checkers().after_asking_to_write(process_, slot, status, !read_by.empty(), reads_on);
  }
  if (status == Status::ok) granted(slot);
  if (status == Status::ok && idle && sin_of(world_) == Sin::idle_hold_not_renewed)
    slot.own_belief = Instant::from_nanoseconds(world_.local_time(process_)) + Duration(slot.plan->lease);
  believe_as_canary(slot, status);
}

bool Application::asked_as_reader(const Slot& slot, const Token& read_by, SimTime since) {
  if (read_by.empty() || !asks_as_reader(slot)) return false;
  const Slot& reader = other_side(slot);
  if (reader.token().bytes() != read_by.bytes()) return false;
  // What a watchdog has renewed is known to an attempt when it begins. Where its script's text has to follow, the time of
  // before may be over.
  return reader.on_loop() || !watched(reader) || reader.rested || world_.now() - since < reader.plan->lease / 3;
}

// What nobody has granted.
void Application::believe_as_canary(Slot& slot, Status status) const {
  const Instant now = Instant::from_nanoseconds(world_.local_time(process_));
  if (sin_of(world_) == Sin::no_quorum_is_yes && slot.of_quorum && status == Status::no_quorum)
    slot.own_belief = now + Duration(slot.plan->lease) / 2;
  if (sin_of(world_) == Sin::unknown_is_yes && (status == Status::timed_out || status == Status::transport_closed))
    slot.own_belief = now + Duration(slot.plan->lease);
}

// Its thread does nothing else from here on, and its client keeps what is to be kept meanwhile.
void Application::begin_waiting(Slot& slot) {
  slot.waiting = true;
  ++slot.waits;
  if (process_.plan->crowd) return;
  Worker& worker = workers_[slot.worker->index];
  worker.tends = slot.plan->connection;
  worker.tends_since = world_.now();
}

void Application::end_waiting(Slot& slot) {
  slot.waiting = false;
  if (!process_.plan->crowd) workers_[slot.worker->index].tends_since = -1;
}

Status Application::wait_for(Slot& slot, SimTime wait) {
  const Sin sin = sin_of(world_);
  if (sin == Sin::timeout_too_much) wait += 2 * process_.plan->request_timeout + 2 * slack;
  return slot.redlock != nullptr ? slot.redlock->acquire(Duration(wait)) : slot.lock()->acquire(Duration(wait));
}

void Application::renew(Slot& slot) {
  const Started started = start();
  const SimTime since_local = world_.local_time(process_);
  const Duration timeout{process_.random.magnitude(millisecond, 2 * second)};
  slot.renewing = true;
  Status status = Status::ok;
  const SimTime most = slot.redlock == nullptr ? bound_of_span(timeout.count()) : bound_of_request();
  {
    Call call(*this, slot, "renew");
    status = slot.redlock != nullptr ? slot.redlock->renew() : slot.lock()->renew(timeout);
    call.end(Cancels::asked, status, bound_of_cancel(slot.plan->connection));
  }
  slot.renewing = false;
  slot.renewed = Instant::from_nanoseconds(world_.local_time(process_));
  world_.trace().add(world_.now(), "renew", process_.index, static_cast<std::uint64_t>(status), to_string(status));
  // A fence that is still being written counts as a renewal, with its own deadline.
  check_bound("renew", started, most);
  if (sin_of(world_) == Sin::minority_extends && slot.redlock != nullptr && status == Status::no_quorum) {
    const Duration lease{slot.plan->lease};
    slot.own_belief = Instant::from_nanoseconds(since_local) + (lease - drift_of(lease));
  }
  if (status != Status::ok || sin_of(world_) == Sin::none || slot.own_belief == Instant()) return;
  --slot.depth;
  granted(slot);
}

void Application::granted(Slot& slot) {
  if (!slot.of_quorum) slot.unclear = Token();
  for (Slot* const part : slot.parts) part->unclear = Token();
  ++slot.depth;
  slot.told_lost = false;
  slot.watched = connections_[slot.plan->connection].watched;
  slot.rested = resting_;
  slot.granted_at = world_.now();
  const Instant now = Instant::from_nanoseconds(world_.local_time(process_));
  const Duration lease{slot.plan->lease};
  const Sin sin = sin_of(world_);
  if (slot.of_quorum && sin == Sin::fence_of_one_node) slot.own_fence = fence_as_canary(process_.index);
  if (slot.of_quorum && sin == Sin::quorum_validity_from_reply) slot.own_belief = now + (lease - drift_of(lease));
  const bool from_turn = sin == Sin::validity_from_turn && slot.on_loop();
  if (sin == Sin::validity_from_reply || from_turn) slot.own_belief = now + (lease - drift_of(lease));
  if (sin == Sin::drift_added) slot.own_belief = slot.valid_until() + drift_of(lease) * 2;
  if (sin == Sin::no_drift) slot.own_belief = slot.valid_until() + drift_of(lease);
  if (sin == Sin::held_is_a_flag) slot.own_belief = Instant::max();
  if (sin == Sin::held_until_released || sin == Sin::wake_is_a_grant) slot.own_belief = now + (lease - drift_of(lease));
}

void Application::release(Slot& slot, bool posted) {
  const Started started = start();
  slot.releasing = true;
  if (sin_of(world_) != Sin::held_until_released) slot.own_belief = Instant();
  const bool last = (slot.redlock != nullptr ? slot.redlock->hold_count() : slot.lock()->hold_count()) <= 1;
  const Token token = slot.token();
  const std::uint32_t number = world_.checkers().number_of(slot);
  Status status = Status::ok;
  {
    Call call(*this, slot, posted ? "post_release" : "release");
    if (slot.redlock != nullptr)
      status = posted ? slot.redlock->post_release() : slot.redlock->release();
    else
      status = posted ? slot.lock()->post_release() : slot.lock()->release();
    call.end(Cancels::spared, status, bound_of_cancel(slot.plan->connection));
  }
  slot.own_belief = Instant();
  slot.releasing = false;
  if (slot.depth != 0) --slot.depth;
  if (sin_of(world_) == Sin::post_dropped && posted && status == Status::too_many_requests) {
    drop(slot);  // With what is still to be said.
    make(slot);
    status = Status::ok;
  }
  world_.trace().add(world_.now(), posted ? "post release" : "release", process_.index,
                     static_cast<std::uint64_t>(status), to_string(status));
  if (posted && world_.now() - started.at != process_.imposed - started.imposed)
    check_bound("post_release", started, millisecond);
  check_bound("release", started,
              slot.redlock == nullptr ? bound_of_release(slot.plan->connection) : bound_of_request());
  if (slot.redlock != nullptr) {
    return note_quorum_released(slot, token, status, last, posted);
  }
  // What may stay is told to the server later, or not at all.
  const bool stays = slot.plan->linger != 0 && connections_[slot.plan->connection].lingering->idle() != 0;
  slot.idle = stays && last && status == Status::ok;
  if (!posted && !stays) world_.checkers().after_release(process_, number, status, last);
  if (posted && last && !stays) world_.checkers().after_post(process_, slot, token, status);
  settle_in(slot);
}

// Its depth is less by one already.
void Application::note_quorum_released(Slot& slot, const Token& token, Status status, bool last, bool posted) {
  if (last) world_.checkers().after_quorum_release(process_, slot, token, status, posted);
  if (slot.moved) slot.unclear = Token();
  if (slot.depth == 0) slot.moved = false;
}

// Checks, and then writes: what comes between the two is what the fence is for.
void Application::write(Slot& slot) {
  if (slot.depth == 0 || !slot.fenced() || slot.moved) return;
  const std::uint64_t fence = slot.fence();
  const std::uint32_t number = world_.checkers().number_of(slot);
  if (!slot.held()) return;
  if (process_.random.coin()) pause(process_.plan->hold);
  if (fence == 0) return;
  if (process_.random.coin() || slot.redlock != nullptr || world_.plan().one_place())
    return world_.checkers().resource_written(process_, slot, number, fence);
  // A resource that is kept on the lock's own node. What is written says who wrote it.
  const Started started = start();
  const std::string& key = world_.checkers().resource_of(slot);
  char value[fenced_value_size_max];  // Nothing on this stack is destroyed when the process is killed.
  int size = std::snprintf(value, sizeof value, "%" PRIu64 " %" PRIu32, fence, number);
  if (number % 4 == 0) {  // Longer than the send buffer.
    std::memset(value + size, ' ', sizeof value - static_cast<std::size_t>(size));
    size = sizeof value;
  }
  bool written = false;
  Status status = Status::ok;
  {
    Call call(*this, slot, "fenced_set");
    status = fenced_set(client_of(slot), Key(view_of(key)), fence, {value, static_cast<std::size_t>(size)}, written);
    call.end(Cancels::asked, status, bound_of_cancel(slot.plan->connection));
  }
  world_.trace().add(world_.now(), "fenced set", process_.index, written ? 1 : 0, to_string(status));
  check_bound("fenced_set", started, bound_with_connect(slot.plan->connection, 0));
  if (status == Status::ok)
    world_.checkers().after_fenced_set(process_, slot, number, fence, written, started.at);
  else
    world_.checkers().note_write_unknown(number);
}

void Application::act_held(Slot& slot) {
  Random& random = process_.random;
  switch (random.below(10)) {
    case 0: renew(slot); return;
    case 1:
    case 2: write(slot); return;
    case 3: slot.of_quorum ? tend() : (void)tend(slot.plan->connection); return;
    case 4: {
      if (slot.of_quorum) return tend();
      const Started started = start();
      Duration remaining{};
      {
        Call call(*this, slot, "remaining_on_server");
        const Status status = slot.lock()->remaining_on_server(remaining);
        call.end(Cancels::asked, status, bound_of_cancel(slot.plan->connection));
      }
      check_bound("remaining_on_server", started, bound_with_connect(slot.plan->connection, 0));
      return;
    }
    case 5: pause(process_.plan->hold); return;
    case 6: release(slot, true); return;
    default: release(slot, false); return;
  }
}

bool Application::draws_inspection() noexcept { return process_.plan->inspects && anew_random_.chance(200'000); }

// One attempt, and another one where the key may be a semaphore's. Of a quorum no more than to connect and to ask.
SimTime Application::bound_of_inspection(const Slot& slot) const noexcept {
  if (slot.of_quorum) return bound_of_span(process_.plan->connect_timeout + process_.plan->request_timeout);
  const std::size_t connection = slot.plan->connection;
  return bound_with_connect(connection, connections_[connection].timeouts.request);
}

// It looks at who has one of its locks, as an operator does.
void Application::inspect_one(const Worker& worker) {
  Slot& slot = *worker.slots[anew_random_.index(worker.slots.size())];
  if (!slot.exists() || slot.is_part()) return;
  const std::uint32_t number = slot.held() ? world_.checkers().number_of(slot) : 0;
  const Started started = start();
  LockInfo info;
  Status status = Status::ok;
  {
    Call call(*this, slot, "inspect");
    const Key key(write_name(slot));
    if (slot.of_quorum) {
      QuorumInfo of_quorum;
      status = inspect(*quorum_, key, of_quorum);
      info = of_quorum.holder;
    } else {
      status = inspect(client_of(slot), key, info);
    }
    call.end(Cancels::asked, status, bound_of_cancel(slot.plan->connection));
  }
  world_.trace().add(world_.now(), "inspect", process_.index, static_cast<std::uint64_t>(info.form), to_string(status));
  check_bound("inspect", started, bound_of_inspection(slot));
  if (status == Status::ok && number != 0 && slot.held())
    world_.checkers().check_inspected(process_, slot, number, info);
}

// When it wants to be called again.
Instant Application::tend(std::size_t connection) {
  const Started started = start();
  Instant next;
  {
    Call call(*this, connection, "tend");
    next = connections_[connection].client->tend();
    call.end(Cancels::spared, Status::ok, bound_of_tending(connection));
  }
  check_bound("tend", started, bound_of_tending(connection));
  return next;
}

// A request timeout for every few holds that may be due, and one for a connection.
SimTime Application::bound_of_tending(std::size_t connection) const noexcept {
  const SimTime servers = process_.plan->branches ? 1 + branches_max : 1;
  const auto rounds = servers * static_cast<SimTime>(2 + process_.plan->slots.size() / (in_flight_max / 2));
  return late(rounds * connections_[connection].timeouts.request) + slack;
}

// How long a call may go on that was cancelled: it waits for a reply no longer than for a second.
// Who waits for a reply looks after a request timeout, or a second. Who waits for room to send looks after a second.
SimTime Application::bound_of_cancel(std::size_t connection) const noexcept {
  if (world_.plan().enabled(Fault::full_socket)) return late(second) + slack;
  return late(std::min(connections_[connection].timeouts.request, second)) + slack;
}

// All locks of a quorum are tended together, and told.
void Application::tend() {
  const Started started = start();
  const Instant before = Instant::from_nanoseconds(world_.local_time(process_));
  {
    Call call(*this, slots_[0], "tend");
    (void)quorum_->tend();
    call.end(Cancels::spared, Status::ok, bound_of_request());
  }
  world_.trace().add(world_.now(), "tend", process_.index);
  check_bound("tend", started, bound_of_request());
  for (const Slot& slot : slots_)
    if (slot.redlock != nullptr && slot.depth != 0 && !slot.told_lost && slot.own_belief == Instant() &&
        slot.redlock->valid_until() <= before && !process_.lied_to)
      world_.fail("loss told", "client " + std::to_string(process_.index) +
                                   " was not told by tend() that it has lost " + world_.plan().names[slot.name]);
}

// ---- A crowd of holds --------------------------------------------------------------------------------------------

// Takes all its locks and keeps them. Where it has no watchdog, it calls tend() whenever that is due.
void Application::keep_crowd(Worker& worker) {
  Random& random = process_.random;
  const bool tends = !process_.plan->watchdog;
  if (tends) worker.tends_since = world_.now();
  while (world_.phase() == Phase::faults && !ending_) {
    Instant next;
    std::size_t since = 0;
    for (Slot* const slot : worker.slots) {
      if (world_.phase() != Phase::faults) return;
      const bool lost = slot->depth != 0 && !slot->held();
      if (lost || (slot->depth != 0 && (!slot->plan->kept || random.chance(5'000)))) release(*slot, random.coin());
      if (slot->depth == 0) acquire(*slot);
      if (!tends || (++since % 8 != 0 && Instant::from_nanoseconds(world_.local_time(process_)) < next)) continue;
      next = tend(0);
    }
    if (tends) {
      next = tend(0);
      const SimTime left =
          next == Instant::max() ? second : (next - Instant::from_nanoseconds(world_.local_time(process_))).count();
      if (world_.phase() == Phase::faults) world_.sleep(std::clamp<SimTime>(left, 0, second));
    } else {
      pause(process_.plan->think);
    }
    if (random.chance(2'000)) ending_ = true;
  }
}

// In which all that is on its way has come.
SimTime Application::longest_lull() const noexcept { return 1100 * millisecond + 10 * world_.plan().latency_max; }

// What is over, and what was not granted, is gone everywhere when all went well for a while: twice, since a script that
// is not known is sent with its text.
void Application::settle(Slot& slot) {
  if (slot.unclear.empty() || slot.redlock == nullptr) return;
  const SimTime lull = longest_lull();
  for (int round = 0; round < 2; ++round) {
    if (world_.phase() != Phase::faults) return;
    world_.sleep(lull);
    tend();
  }
  if (world_.phase() != Phase::faults) return;
  world_.sleep(lull);
  world_.checkers().check_gone(process_, slot, quorum_->compensations_pending());
}

// ---- The end: everybody gets what is free ------------------------------------------------------------------------

void Application::wind_down(Worker& worker) {
  for (Slot* const slot : worker.slots) {
    while (slot->depth != 0) release(*slot, false);
    if (slot->of_two_sides())
      while (other_side(*slot).depth != 0) release(other_side(*slot), false);
    drop(*slot);
  }
  if (locked_out_) return;  // Nothing is to be had for it.
  if (quorum_ != nullptr && process_.plan->quorum_anew != 0) connect_quorum_anew();
  if (gathers_at_the_end(worker)) {
    take_last_set(worker);
    return world_.checkers().note_quiet(process_);
  }
  // All of them want the same name.
  Slot& slot = *worker.slots[0];
  make(slot);
  slot.queued = slot.queues();
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  const SimTime most = longest_turn();
  while (true) {
    const std::uint64_t commands = world_.thread().commands;
    Status status = Status::ok;
    {
      Call call(*this, slot, "acquire");
      status = slot.redlock != nullptr ? slot.redlock->acquire(Duration(2 * most))
                                       : slot.lock()->acquire(Duration(2 * most));
      call.end(Cancels::acquiring, status, bound_of_cancel(slot.plan->connection));
    }
    world_.trace().add(world_.now(), "last acquire", process_.index, static_cast<std::uint64_t>(status),
                       to_string(status));
    if (status == Status::cancelled) continue;  // Asked for before the faults ended.
    world_.checkers().after_acquire(process_, slot, status, since, commands);
    // What was in flight from before may have ended its first request.
    const SimTime took = world_.now() - since - (process_.imposed - imposed);
    if (took > most || (status != Status::ok && took > most / 2)) {
      world_.fail("liveness", std::string("a free lock was not to be had: ") + to_string(status) + " after " +
                                  time_text(took) + " s");
      return;
    }
    if (status == Status::ok) {
      granted(slot);
      break;
    }
    world_.sleep(20 * millisecond);
  }
  release(slot, false);
  world_.checkers().note_quiet(process_);
}

// ---- What it believes --------------------------------------------------------------------------------------------

Instant Application::believes(const Slot& slot) const noexcept {
  if (!slot.exists()) return {};
  if (slot.own_belief != Instant()) return slot.own_belief;
  return slot.valid_until();
}

}  // namespace holdfast::sim
