// SPDX-License-Identifier: MIT
#include "application.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "canary.hpp"
#include "checkers.hpp"
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

ByteView view_of(const std::string& text) noexcept { return {text.data(), text.size()}; }

// When everybody wants the same lock at the end, each is behind all others: who waits by push may sleep its longest
// poll each time that a release is not announced to it.
constexpr SimTime turn = 15 * second;

}  // namespace

Application::Application(World& world, Process& process) : world_(world), process_(process) {
  slots_.resize(process.plan->slots.size());
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    slots_[index].plan = &process.plan->slots[index];
    slots_[index].application = this;
  }
}

// Killed: what its objects are made of is gone, and nobody is told.
Application::~Application() = default;

void* Application::main(void* self) {
  static_cast<Application*>(self)->run();
  return nullptr;
}

void Application::cancel() noexcept {
  if (alive_) client_->cancel();
}

// ---- Life --------------------------------------------------------------------------------------------------------

void Application::run() {
  set_up();
  work();
  if (world_.phase() != Phase::faults) wind_down();
  tear_down();
}

void Application::set_up() {
  const ClientPlan& plan = *process_.plan;
  client_ = new (client_place_) Client;
  ClientConfig config;
  config.host = "10.0.0.1";
  config.connect_timeout = Duration(plan.connect_timeout);
  config.request_timeout = Duration(plan.request_timeout);
  config.stall_timeout = Duration(plan.stall_timeout);
  config.max_poll = Duration(plan.max_poll);
  config.native_delete = plan.native_delete;
  const bool wrong = plan.wrong_password && process_.life % 2 == 1 && world_.phase() == Phase::faults;
  locked_out_ = wrong;
  if (world_.plan().password) config.password = wrong ? ByteView("wrong") : ByteView("right");
  if (wrong) world_.count(Fault::wrong_password, "client " + std::to_string(process_.index));
  (void)client_->connect(config);
  for (int index = 0; index < 2; ++index) owners_[index] = new (owner_places_[index]) Owner(*client_);
  if (plan.watchdog) {
    watchdog_ = new (watchdog_place_) Watchdog(places_.storage());
    if (watchdog_->start(*client_) != Status::ok) world_.fail("start", "the watchdog did not start");
  }
  alive_ = true;
  for (Slot& slot : slots_) make(slot);
}

void Application::tear_down() {
  for (Slot& slot : slots_) drop(slot);
  alive_ = false;
  if (watchdog_ != nullptr) watchdog_->~Watchdog();
  watchdog_ = nullptr;
  for (Owner*& owner : owners_) owner = nullptr;
  client_->~Client();
  client_ = nullptr;
}

void Application::note_lost(void* context) noexcept {
  auto& slot = *static_cast<Slot*>(context);
  if (sin_of(slot.application->world_) != Sin::loss_not_told) slot.told_lost = true;
}

void Application::make(Slot& slot) {
  const SlotPlan& plan = *slot.plan;
  const ByteView key = view_of(world_.plan().names[plan.name]);
  const LockTiming timing = {.lease = Duration(plan.lease)};
  const Sin sin = sin_of(world_);
  const LockKind& kind = kind_as_canary(sin, kind_of(plan.kind));
  if (slot.reentrant()) {
    slot.owned = new (slot.place) SimOwned(*owners_[plan.owner], kind, key, timing);
  } else {
    // The table of ways must outlive the lock.
    static HoldRecord::Ways tables[2];
    const bool push = kind_of(plan.kind).announces;
    tables[push ? 1 : 0] = ways_as_canary(sin, push ? pushed : polled);
    slot.mutex = new (slot.place) SimMutex(*client_, kind, key, timing, tables[push ? 1 : 0]);
  }
  if (slot.lock()->configuration() != Status::ok) world_.fail("configuration", "a lock of the plan was refused");
  KeepOptions keep;
  keep.keep = plan.kept ? Keep::always : Keep::never;
  if (plan.max_hold != 0) keep.max_hold = Duration(plan.max_hold);
  keep.on_lost = note_lost;
  keep.context = &slot;
  // A shared record may be held already, through another object: then it stays as it is kept.
  (void)slot.lock()->keep(keep);
  slot.depth = 0;
}

void Application::drop(Slot& slot) {
  slot.releasing = true;
  if (slot.mutex != nullptr) slot.mutex->~SimMutex();
  if (slot.owned != nullptr) slot.owned->~SimOwned();
  slot.mutex = nullptr;
  slot.owned = nullptr;
  slot.depth = 0;
  slot.own_belief = Instant();
  slot.releasing = false;
}

// ---- What it does ------------------------------------------------------------------------------------------------

void Application::pause(SimTime most) {
  const SimTime length = process_.random.magnitude(10 * microsecond, most);
  if (world_.phase() == Phase::faults) world_.sleep(length);
}

void Application::work() {
  Random& random = process_.random;
  while (world_.phase() == Phase::faults) {
    Slot& slot = slots_[random.index(slots_.size())];
    act(slot);
    if (client_->connected())
      for (Slot& each : slots_) world_.checkers().check_compensated(process_, each, client_->compensations_pending());
    if (random.chance(500'000)) pause(process_.plan->think);
    if (random.chance(2'000)) return;  // It ends, in good order, and another one begins.
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
  const std::uint64_t commands = process_.commands;
  const bool tries = random.chance(300'000);
  SimTime wait = 0;
  Status status = Status::ok;
  in_call_ = true;
  if (tries) {
    status = slot.lock()->try_acquire();
  } else {
    wait = random.magnitude(100 * microsecond, process_.plan->wait);
    if (random.chance(50'000))
      world_.after(random.between(0, wait), [world = &world_, index = process_.index, life = process_.life] {
        Process& process = world->processes()[index];
        if (!process.alive || process.life != life) return;
        process.application->cancel();
        world->interrupt(process);
      });
    status = slot.lock()->acquire(Duration(wait));
  }
  in_call_ = false;
  world_.trace().add(world_.now(), tries ? "try" : "acquire", process_.index, static_cast<std::uint64_t>(status),
                     to_string(status));
  check_bound(tries ? "try_acquire" : "acquire", since, imposed, bound(wait));
  world_.checkers().after_acquire(process_, slot, status, since, commands);
  if (status == Status::ok) granted(slot, since);
  if (sin_of(world_) == Sin::unknown_is_yes && (status == Status::timed_out || status == Status::transport_closed))
    slot.own_belief = Instant::from_nanoseconds(world_.local_time(process_)) + Duration(slot.plan->lease);
}

void Application::granted(Slot& slot, SimTime asked_at) {
  (void)asked_at;
  slot.unclear = Token();
  ++slot.depth;
  slot.told_lost = false;
  slot.granted_at = world_.now();
  const Instant now = Instant::from_nanoseconds(world_.local_time(process_));
  const Duration lease{slot.plan->lease};
  const Sin sin = sin_of(world_);
  if (sin == Sin::validity_from_reply) slot.own_belief = now + (lease - drift_of(lease));
  if (sin == Sin::drift_added) slot.own_belief = slot.lock()->valid_until() + drift_of(lease) * 2;
  if (sin == Sin::no_drift) slot.own_belief = slot.lock()->valid_until() + drift_of(lease);
  if (sin == Sin::held_is_a_flag) slot.own_belief = Instant::max();
  if (sin == Sin::held_until_released || sin == Sin::wake_is_a_grant) slot.own_belief = now + (lease - drift_of(lease));
}

void Application::release(Slot& slot, bool posted) {
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  slot.releasing = true;
  if (sin_of(world_) != Sin::held_until_released) slot.own_belief = Instant();
  const bool last = slot.lock()->hold_count() <= 1;
  const std::uint32_t number = world_.checkers().number_of(slot);
  in_call_ = true;
  const Status status = posted ? slot.lock()->post_release() : slot.lock()->release();
  in_call_ = false;
  slot.own_belief = Instant();
  slot.releasing = false;
  if (slot.depth != 0) --slot.depth;
  world_.trace().add(world_.now(), posted ? "post release" : "release", process_.index,
                     static_cast<std::uint64_t>(status), to_string(status));
  if (posted && world_.now() - since != process_.imposed - imposed)
    check_bound("post_release", since, imposed, millisecond);
  check_bound("release", since, imposed, bound(0));
  if (!posted) world_.checkers().after_release(process_, number, status, last);
}

// Checks, and then writes: what comes between the two is what the fence is for.
void Application::write(Slot& slot) {
  if (slot.depth == 0 || !slot.fenced()) return;
  const std::uint64_t fence = slot.fence();
  const std::uint32_t number = world_.checkers().number_of(slot);
  if (!slot.lock()->held()) return;
  if (process_.random.coin()) pause(process_.plan->hold);
  if (fence != 0) world_.checkers().resource_written(process_, *slot.plan, number, fence);
}

void Application::act_held(Slot& slot) {
  Random& random = process_.random;
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  switch (random.below(10)) {
    case 0: {
      const Duration timeout{random.magnitude(millisecond, 2 * second)};
      in_call_ = true;
      const Status status = slot.lock()->renew(timeout);
      in_call_ = false;
      world_.trace().add(world_.now(), "renew", process_.index, static_cast<std::uint64_t>(status), to_string(status));
      check_bound("renew", since, imposed, bound(timeout.count()));
      if (status == Status::ok && sin_of(world_) != Sin::none && slot.own_belief != Instant())
        --slot.depth, granted(slot, since);
      return;
    }
    case 1:
    case 2: write(slot); return;
    case 3: {
      in_call_ = true;
      (void)client_->tend();
      in_call_ = false;
      check_bound("tend", since, imposed, bound(0) * 3);
      return;
    }
    case 4: {
      Duration remaining{};
      in_call_ = true;
      (void)slot.lock()->remaining_on_server(remaining);
      in_call_ = false;
      check_bound("remaining_on_server", since, imposed, bound(0));
      return;
    }
    case 5: pause(process_.plan->hold); return;
    case 6: release(slot, true); return;
    default: release(slot, false); return;
  }
}

// ---- The end: everybody gets what is free ------------------------------------------------------------------------

void Application::wind_down() {
  for (Slot& slot : slots_) {
    while (slot.depth != 0) release(slot, false);
    drop(slot);
  }
  if (locked_out_) return;  // Nothing is to be had for it.
  for (Slot& slot : slots_) make(slot);
  // All of them want the same name.
  Slot& slot = slots_[0];
  const SimTime since = world_.now();
  const SimTime imposed = process_.imposed;
  const SimTime most = world_.plan().lease_max + 70 * second + turn * static_cast<SimTime>(world_.processes().size());
  while (true) {
    const Status status = slot.lock()->acquire(Duration(2 * most));
    world_.trace().add(world_.now(), "last acquire", process_.index, static_cast<std::uint64_t>(status),
                       to_string(status));
    if (status == Status::cancelled) continue;  // Asked for before the faults ended.
    world_.checkers().after_acquire(process_, slot, status, since, process_.commands);
    // What was in flight from before may have ended its first request.
    const SimTime took = world_.now() - since - (process_.imposed - imposed);
    if (took > most || (status != Status::ok && took > most / 2)) {
      world_.fail("liveness", std::string("a free lock was not to be had: ") + to_string(status) + " after " +
                                  time_text(took) + " s");
      return;
    }
    if (status == Status::ok) {
      granted(slot, since);
      break;
    }
    world_.sleep(20 * millisecond);
  }
  release(slot, false);
  world_.checkers().note_quiet(process_);
}

// ---- What it believes --------------------------------------------------------------------------------------------

Instant Application::believes(const Slot& slot) const noexcept {
  const BlockingLock* const lock = slot.lock();
  if (lock == nullptr) return {};
  if (slot.own_belief != Instant()) return slot.own_belief;
  return lock->valid_until();
}

}  // namespace holdfast::sim
