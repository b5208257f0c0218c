// SPDX-License-Identifier: MIT
#include "application.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <new>

#include "canary.hpp"
#include "checkers.hpp"
#include "holdfast/fenced_set.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

constexpr HoldRecord::Ways polled{};
constexpr HoldRecord::Ways pushed = {.draw = nullptr, .wait = wait_by_push};

const LockKind& kind_of(KindOfLock kind) noexcept {
  switch (kind) {
    case KindOfLock::mutex: return mutex_kind;
    case KindOfLock::announced: return announced_mutex_kind;
    case KindOfLock::fenced_mutex: return fenced_mutex_kind;
    case KindOfLock::announced_fenced: return announced_fenced_mutex_kind;
    case KindOfLock::reentrant: return reentrant_kind;
    case KindOfLock::fenced: return fenced_kind;
  }
  return mutex_kind;
}

const LockKind& quorum_kind_of(KindOfLock kind) noexcept {
  switch (kind) {
    case KindOfLock::fenced_mutex: return quorum_fenced_mutex_kind;
    case KindOfLock::announced_fenced: return quorum_announced_fenced_mutex_kind;
    case KindOfLock::fenced: return quorum_fenced_kind;
    case KindOfLock::mutex:
    case KindOfLock::announced:
    case KindOfLock::reentrant: break;
  }
  return kind_of(kind);
}

ByteView view_of(const std::string& text) noexcept { return {text.data(), text.size()}; }

// When everybody wants the same lock at the end, each is behind all others: who waits by push may sleep its longest
// poll each time that a release is not announced to it.
constexpr SimTime turn = 15 * second;

}  // namespace

// As long as it lives, the slot's thread is in a call of holdfast.
class Application::Call {
 public:
  Call(Application& application, const Slot& slot) noexcept
      : worker_(application.workers_[slot.worker->index]), before_(worker_.calls) {
    worker_.calls = true;
  }
  ~Call() { worker_.calls = before_; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Worker& worker_;
  bool before_;
};

Application::Application(World& world, Process& process)
    : world_(world),
      process_(process),
      slots_(process.plan->slots.size()),
      workers_(process.plan->threads),
      connections_(process.plan->connections.size()),
      watchdogs_(world.nodes().size()) {
  for (std::size_t index = 0; index < workers_.size(); ++index) {
    workers_[index].application = this;
    workers_[index].index = index;
  }
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    Slot& slot = slots_[index];
    slot.plan = &process.plan->slots[index];
    const ConnectionPlan& connection = process.plan->connections[slot.plan->connection];
    slot.worker = &workers_[connection.thread];
    slot.node = connection.node;
    slot.domain = process.plan->quorum ? world.checkers().quorum_domain_of(slot.plan->name)
                                       : world.checkers().domain_of(slot.node, slot.plan->name);
    slot.application = this;
    workers_[connection.thread].slots.push_back(&slot);
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

void Application::run() {
  set_up();
  for (Worker& worker : workers_)
    if (worker.index != 0) (void)::pthread_create(&worker.id, nullptr, body_of_worker, &worker);
  live(workers_[0]);
  for (Worker& worker : workers_)
    if (worker.index != 0) (void)::pthread_join(worker.id, nullptr);
  tear_down();
}

void Application::live(Worker& worker) {
  worker.thread = world_.thread().id;
  for (Slot* const slot : worker.slots) make(*slot);
  work(worker);
  if (world_.phase() != Phase::faults) wind_down(worker);
  for (Slot* const slot : worker.slots) drop(*slot);
}

void Application::set_up() {
  locked_out_ = process_.plan->wrong_password && process_.life % 2 == 1 && world_.phase() == Phase::faults;
  if (locked_out_) world_.count(Fault::wrong_password, "client " + std::to_string(process_.index));
  if (process_.plan->quorum) return connect_quorum();
  client_places_ = std::make_unique_for_overwrite<ClientPlace[]>(connections_.size());
  if (process_.plan->watchdog) watchdog_places_ = std::make_unique_for_overwrite<WatchdogPlace[]>(watchdogs_.size());
  for (std::size_t index = 0; index < connections_.size(); ++index) connect(index);
}

ClientConfig Application::config_of(std::size_t node) const {
  const ClientPlan& plan = *process_.plan;
  ClientConfig config;
  config.host = "10.0.0.1";
  config.port = static_cast<std::uint16_t>(port_base + node);
  config.connect_timeout = Duration(plan.connect_timeout);
  config.request_timeout = Duration(plan.request_timeout);
  config.stall_timeout = Duration(plan.stall_timeout);
  config.max_poll = Duration(plan.max_poll);
  config.native_delete = plan.native_delete;
  if (world_.plan().password) config.password = locked_out_ ? ByteView("wrong") : ByteView("right");
  return config;
}

void Application::connect_quorum() {
  quorum_place_ = std::make_unique_for_overwrite<QuorumPlace>();
  quorum_ = new (quorum_place_->bytes) Quorum<quorum_nodes_max>;
  std::vector<ClientConfig>& configs = configs_;  // A member: a killed process unwinds no stack.
  configs.clear();
  for (std::size_t node = 0; node < world_.nodes().size(); ++node) configs.push_back(config_of(node));
  drop_nodes_as_canary(sin_of(world_), process_.random, configs);
  const Sin sin = sin_of(world_);
  const QuorumConfig config = {.max_lease = std::max(Duration(world_.plan().lease_max), lease_min),
                               .restart_guard = world_.plan().restart_guard && sin != Sin::guard_ignored};
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  const Status status = quorum_->connect(configs.data(), configs.size(), config);
  world_.trace().add(world_.now(), "quorum", process_.index, static_cast<std::uint64_t>(status), to_string(status));
  check_bound("connect", since, imposed, process_.plan->connect_timeout * 51 / 50 + 100 * millisecond);
  if (status != Status::ok && status != Status::no_quorum && status != Status::cancelled)
    world_.fail("configuration", std::string("a quorum of the plan: ") + to_string(status));
}

// A watchdog comes with the first client of a node, and the others of that node share it.
void Application::connect(std::size_t index) {
  const ClientPlan& plan = *process_.plan;
  const std::size_t node = plan.connections[index].node;
  Connection& connection = connections_[index];
  connection.client = new (client_places_[index].bytes) Client;
  (void)connection.client->connect(config_of(node));
  for (int owner = 0; owner < 2; ++owner)
    connection.owners[owner] = new (connection.owner_places[owner]) Owner(*connection.client);
  if (!plan.watchdog) return;
  if (watchdogs_[node] != nullptr) return connection.client->attach(watchdogs_[node]);
  auto& place = watchdog_places_[node];
  watchdogs_[node] = new (place.bytes) Watchdog(place.places.storage());
  if (watchdogs_[node]->start(*connection.client) != Status::ok) world_.fail("start", "the watchdog did not start");
}

void Application::tear_down() {
  for (Watchdog*& watchdog : watchdogs_) {
    if (watchdog != nullptr) watchdog->~Watchdog();
    watchdog = nullptr;
  }
  if (quorum_ != nullptr) quorum_->~Quorum();
  quorum_ = nullptr;
  for (Connection& connection : connections_) {
    if (connection.client == nullptr) continue;
    connection.client->~Client();
    connection.client = nullptr;
  }
}

void Application::note_lost(void* context) noexcept {
  auto& slot = *static_cast<Slot*>(context);
  if (sin_of(slot.application->world_) != Sin::loss_not_told) slot.told_lost = true;
}

void Application::make(Slot& slot) {
  const SlotPlan& plan = *slot.plan;
  if (quorum_ != nullptr) {
    make_redlock(slot);
  } else {
    make_lock(slot);
  }
  const Sin sin = sin_of(world_);
  KeepOptions keep;
  keep.keep = plan.kept ? Keep::always : Keep::never;
  if (plan.max_hold != 0) keep.max_hold = Duration(plan.max_hold);
  if (plan.max_hold != 0 && sin == Sin::max_hold_ignored) keep.max_hold = max_hold_unlimited;
  if (plan.liveness != 0 && sin != Sin::feed_ignored) keep.liveness = Duration(plan.liveness);
  keep.on_lost = note_lost;
  keep.context = &slot;
  // A shared record may be held already, through another object: then it stays as it is kept.
  (void)slot.keep(keep);
  slot.depth = 0;
}

void Application::make_redlock(Slot& slot) {
  const SlotPlan& plan = *slot.plan;
  const ByteView key = view_of(world_.plan().names[plan.name]);
  QuorumTiming timing = {.lease = Duration(plan.lease), .min_validity = Duration(plan.min_validity)};
  if (plan.node_timeout != 0) timing.node_timeout = Duration(plan.node_timeout);
  if (!timing.valid()) timing = {.lease = Duration(plan.lease)};
  const LockKind& kind = kind_as_canary(sin_of(world_), quorum_kind_of(plan.kind));
  const bool push = kind_of(plan.kind).announces;
  slot.redlock_timeout = timing.effective_node_timeout().count();
  if (slot.redlock_place == nullptr) slot.redlock_place = std::make_unique_for_overwrite<Slot::RedlockPlace>();
  slot.redlock = new (slot.redlock_place->bytes) SimRedlock(*quorum_, kind, key, timing,
                                                            slot.reentrant() ? SimRedlock::owned
                                                            : push           ? SimRedlock::pushed
                                                                             : SimRedlock::polled);
  if (slot.redlock->configuration() != Status::ok) world_.fail("configuration", "a lock of the plan was refused");
}

void Application::make_lock(Slot& slot) {
  const SlotPlan& plan = *slot.plan;
  const ByteView key = view_of(world_.plan().names[plan.name]);
  const LockTiming timing = {.lease = Duration(plan.lease)};
  const Sin sin = sin_of(world_);
  const LockKind& kind = kind_as_canary(sin, kind_of(plan.kind));
  if (slot.reentrant()) {
    slot.owned = new (slot.place) SimOwned(*connections_[plan.connection].owners[plan.owner], kind, key, timing);
  } else {
    // The table of ways must outlive the lock.
    static HoldRecord::Ways tables[2];
    const bool push = kind_of(plan.kind).announces;
    tables[push ? 1 : 0] = ways_as_canary(sin, push ? pushed : polled);
    slot.mutex = new (slot.place) SimMutex(client_of(slot), kind, key, timing, tables[push ? 1 : 0]);
  }
  if (slot.lock()->configuration() != Status::ok) world_.fail("configuration", "a lock of the plan was refused");
}

void Application::drop(Slot& slot) {
  slot.releasing = true;
  if (slot.redlock != nullptr) {
    slot.unclear = slot.token();
    slot.unclear_at = world_.now();
  }
  if (slot.mutex != nullptr) slot.mutex->~SimMutex();
  if (slot.owned != nullptr) slot.owned->~SimOwned();
  if (slot.redlock != nullptr) slot.redlock->~SimRedlock();
  slot.redlock = nullptr;
  slot.mutex = nullptr;
  slot.owned = nullptr;
  slot.depth = 0;
  slot.own_belief = Instant();
  slot.own_fence = 0;
  slot.releasing = false;
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
    act(*worker.slots[random.index(worker.slots.size())]);
    if (quorum_ != nullptr && random.chance(100'000))
      for (Slot* const slot : worker.slots) settle(*slot);
    for (Slot* const slot : worker.slots)
      if (quorum_ == nullptr && !slot->unclear.empty() && client_of(*slot).connected())
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

void Application::act(Slot& slot) {
  Random& random = process_.random;
  if (random.chance(process_.plan->careless)) {  // It forgets what it holds.
    drop(slot);
    make(slot);
    return;
  }
  if (slot.depth == 0 || (slot.reentrant() && random.chance(200'000)))
    acquire(slot);
  else
    act_held(slot);
}

SimTime Application::bound(SimTime wait) const noexcept {
  const ClientPlan& plan = *process_.plan;
  return wait + wait / 50 + 4 * (plan.connect_timeout + plan.request_timeout) + 500 * millisecond;
}

// Of one attempt of a quorum: a majority is connected, votes, and writes the fence down; or it is a renewal.
SimTime Application::bound_of_attempt(const Slot& slot) const noexcept {
  const ClientPlan& plan = *process_.plan;
  const SimTime renewal = slot.reentrant() && slot.depth != 0 ? plan.request_timeout : 0;
  return (plan.connect_timeout + renewal + 2 * slot.redlock_timeout) * 51 / 50 + 100 * millisecond;
}

void Application::check_bound(std::string_view what, SimTime since, SimTime imposed, SimTime most) {
  // What was imposed before the call may reach into it.
  const SimTime undisturbed = std::max(since, std::min(process_.disturbed_until, world_.now()));
  const SimTime took = world_.now() - undisturbed - (process_.imposed - imposed);
  if (took > most)
    world_.fail("bounded waits",
                std::string(what) + " took " + time_text(took) + " s, " + time_text(most) + " are the bound");
}

void Application::acquire(Slot& slot) {
  Random& random = process_.random;
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  const std::uint64_t commands = world_.thread().commands;
  const bool tries = random.chance(300'000);
  SimTime wait = 0;
  Status status = Status::ok;
  if (tries) {
    const Call call(*this, slot);
    status = slot.redlock != nullptr ? slot.redlock->try_acquire() : slot.lock()->try_acquire();
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
    const Call call(*this, slot);
    slot.waiting = true;
    ++slot.waits;
    status = slot.redlock != nullptr ? slot.redlock->acquire(Duration(wait)) : slot.lock()->acquire(Duration(wait));
    slot.waiting = false;
  }
  world_.trace().add(world_.now(), tries ? "try" : "acquire", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  const SimTime most = slot.redlock == nullptr ? bound(wait)
                       : tries                 ? bound_of_attempt(slot)
                                               : bound(wait) + 2 * bound_of_attempt(slot);
  check_bound(tries ? "try_acquire" : "acquire", since, imposed, most);
  world_.checkers().after_acquire(process_, slot, status, since, commands);
  if (status == Status::ok) granted(slot);
  if (sin_of(world_) == Sin::no_quorum_is_yes && slot.redlock != nullptr && status == Status::no_quorum)
    slot.own_belief = Instant::from_nanoseconds(world_.local_time(process_)) + Duration(slot.plan->lease) / 2;
  if (sin_of(world_) == Sin::unknown_is_yes && (status == Status::timed_out || status == Status::transport_closed))
    slot.own_belief = Instant::from_nanoseconds(world_.local_time(process_)) + Duration(slot.plan->lease);
}

void Application::renew(Slot& slot) {
  const SimTime since = world_.now();
  const SimTime since_local = world_.local_time(process_);
  const SimTime imposed = process_.imposed;
  const Duration timeout{process_.random.magnitude(millisecond, 2 * second)};
  slot.renewing = true;
  Status status = Status::ok;
  {
    const Call call(*this, slot);
    status = slot.redlock != nullptr ? slot.redlock->renew() : slot.lock()->renew(timeout);
  }
  slot.renewing = false;
  slot.renewed = Instant::from_nanoseconds(world_.local_time(process_));
  world_.trace().add(world_.now(), "renew", process_.index, static_cast<std::uint64_t>(status), to_string(status));
  // A fence that is still being written counts as a renewal, with its own deadline.
  check_bound("renew", since, imposed,
              slot.redlock == nullptr ? bound(timeout.count()) : bound_of_request() + 2 * slot.redlock_timeout);
  if (sin_of(world_) == Sin::minority_extends && slot.redlock != nullptr && status == Status::no_quorum) {
    const Duration lease{slot.plan->lease};
    slot.own_belief = Instant::from_nanoseconds(since_local) + (lease - drift_of(lease));
  }
  if (status != Status::ok || sin_of(world_) == Sin::none || slot.own_belief == Instant()) return;
  --slot.depth;
  granted(slot);
}

void Application::granted(Slot& slot) {
  if (slot.redlock == nullptr) slot.unclear = Token();
  ++slot.depth;
  slot.told_lost = false;
  slot.granted_at = world_.now();
  const Instant now = Instant::from_nanoseconds(world_.local_time(process_));
  const Duration lease{slot.plan->lease};
  const Sin sin = sin_of(world_);
  if (slot.redlock != nullptr && sin == Sin::fence_of_one_node) slot.own_fence = fence_as_canary(process_.index);
  if (slot.redlock != nullptr && sin == Sin::quorum_validity_from_reply)
    slot.own_belief = now + (lease - drift_of(lease));
  if (sin == Sin::validity_from_reply) slot.own_belief = now + (lease - drift_of(lease));
  if (sin == Sin::drift_added) slot.own_belief = slot.valid_until() + drift_of(lease) * 2;
  if (sin == Sin::no_drift) slot.own_belief = slot.valid_until() + drift_of(lease);
  if (sin == Sin::held_is_a_flag) slot.own_belief = Instant::max();
  if (sin == Sin::held_until_released || sin == Sin::wake_is_a_grant) slot.own_belief = now + (lease - drift_of(lease));
}

void Application::release(Slot& slot, bool posted) {
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  slot.releasing = true;
  if (sin_of(world_) != Sin::held_until_released) slot.own_belief = Instant();
  const bool last = (slot.redlock != nullptr ? slot.redlock->hold_count() : slot.lock()->hold_count()) <= 1;
  const Token token = slot.token();
  const std::uint32_t number = world_.checkers().number_of(slot);
  Status status = Status::ok;
  {
    const Call call(*this, slot);
    if (slot.redlock != nullptr)
      status = posted ? slot.redlock->post_release() : slot.redlock->release();
    else
      status = posted ? slot.lock()->post_release() : slot.lock()->release();
  }
  slot.own_belief = Instant();
  slot.releasing = false;
  if (slot.depth != 0) --slot.depth;
  world_.trace().add(world_.now(), posted ? "post release" : "release", process_.index,
                     static_cast<std::uint64_t>(status), to_string(status));
  if (posted && world_.now() - since != process_.imposed - imposed)
    check_bound("post_release", since, imposed, millisecond);
  check_bound("release", since, imposed, slot.redlock == nullptr ? bound(0) : bound_of_request());
  if (slot.redlock != nullptr) {
    if (last) world_.checkers().after_quorum_release(process_, slot, token, status, posted);
    return;
  }
  if (!posted) world_.checkers().after_release(process_, number, status, last);
}

// Checks, and then writes: what comes between the two is what the fence is for.
void Application::write(Slot& slot) {
  if (slot.depth == 0 || !slot.fenced()) return;
  const std::uint64_t fence = slot.fence();
  const std::uint32_t number = world_.checkers().number_of(slot);
  if (!slot.held()) return;
  if (process_.random.coin()) pause(process_.plan->hold);
  if (fence == 0) return;
  if (process_.random.coin() || slot.redlock != nullptr)
    return world_.checkers().resource_written(process_, slot, number, fence);
  // A resource that is kept on the lock's own node. What is written says who wrote it.
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  const std::string& key = world_.checkers().resource_of(slot);
  char value[48];  // Nothing on this stack is destroyed when the process is killed.
  const int size = std::snprintf(value, sizeof value, "%" PRIu64 " %" PRIu32, fence, number);
  bool written = false;
  Status status = Status::ok;
  {
    const Call call(*this, slot);
    status = fenced_set(client_of(slot), Key(view_of(key)), fence, {value, static_cast<std::size_t>(size)}, written);
  }
  world_.trace().add(world_.now(), "fenced set", process_.index, written ? 1 : 0, to_string(status));
  check_bound("fenced_set", since, imposed, bound(0));
  if (status == Status::ok) world_.checkers().after_fenced_set(process_, slot, number, fence, written, since);
}

void Application::act_held(Slot& slot) {
  Random& random = process_.random;
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  switch (random.below(10)) {
    case 0: renew(slot); return;
    case 1:
    case 2: write(slot); return;
    case 3: {
      if (quorum_ != nullptr) return tend();
      {
        const Call call(*this, slot);
        (void)client_of(slot).tend();
      }
      check_bound("tend", since, imposed, bound(0) * 3);
      return;
    }
    case 4: {
      if (quorum_ != nullptr) return tend();
      Duration remaining{};
      {
        const Call call(*this, slot);
        (void)slot.lock()->remaining_on_server(remaining);
      }
      check_bound("remaining_on_server", since, imposed, bound(0));
      return;
    }
    case 5: pause(process_.plan->hold); return;
    case 6: release(slot, true); return;
    default: release(slot, false); return;
  }
}

// All locks of a quorum are tended together, and told.
void Application::tend() {
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  const Instant before = Instant::from_nanoseconds(world_.local_time(process_));
  {
    const Call call(*this, slots_[0]);
    (void)quorum_->tend();
  }
  world_.trace().add(world_.now(), "tend", process_.index);
  check_bound("tend", since, imposed, bound_of_request());
  for (const Slot& slot : slots_)
    if (slot.redlock != nullptr && slot.depth != 0 && !slot.told_lost && slot.own_belief == Instant() &&
        slot.redlock->valid_until() <= before && !process_.lied_to)
      world_.fail("loss told", "client " + std::to_string(process_.index) +
                                   " was not told by tend() that it has lost " + world_.plan().names[slot.plan->name]);
}

SimTime Application::bound_of_request() const noexcept {
  return process_.plan->request_timeout * 51 / 50 + 100 * millisecond;
}

// What is over, and what was not granted, is gone everywhere when all went well for a while: twice, since a script that
// is not known is sent with its text.
void Application::settle(Slot& slot) {
  if (slot.unclear.empty() || slot.redlock == nullptr) return;
  const SimTime lull = 1100 * millisecond + 10 * world_.plan().latency_max;
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
    drop(*slot);
  }
  if (locked_out_) return;  // Nothing is to be had for it.
  // All of them want the same name.
  Slot& slot = *worker.slots[0];
  make(slot);
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  // A restarted node has no vote for a while.
  const SimTime guarded = slot.redlock == nullptr ? 0 : world_.plan().lease_max * 51 / 50 + 2 * second;
  const SimTime most = world_.plan().lease_max + 70 * second + guarded + turn * world_.threads_in_all();
  while (true) {
    const std::uint64_t commands = world_.thread().commands;
    Status status = Status::ok;
    {
      const Call call(*this, slot);
      status = slot.redlock != nullptr ? slot.redlock->acquire(Duration(2 * most))
                                       : slot.lock()->acquire(Duration(2 * most));
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
