// SPDX-License-Identifier: MIT
//
// Application is the program of a simulated client: it uses holdfast's public classes as any program does, by a plan
// and at random, and notes what it was told, for the checkers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/fenced_lock.hpp"
#include "holdfast/mutex.hpp"
#include "holdfast/owner.hpp"
#include "holdfast/reentrant_lock.hpp"
#include "holdfast/watchdog.hpp"
#include "plan.hpp"
#include "trace.hpp"

namespace holdfast::sim {

class World;
struct Process;

// Lock objects with a kind of choice.
class SimMutex : public BlockingLock {
 public:
  SimMutex(Client& client, const LockKind& kind, ByteView key, const LockTiming& timing,
           const HoldRecord::Ways& ways) noexcept
      : BlockingLock(client, kind, Key(key), timing, ways) {}
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};
class SimOwned : public OwnedLock {
 public:
  SimOwned(Owner& owner, const LockKind& kind, ByteView key, const LockTiming& timing) noexcept
      : OwnedLock(owner, kind, Key(key), timing) {}
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};

class Application {
 public:
  // A lock object, and what its user knows of it.
  struct Slot {
    const SlotPlan* plan = nullptr;
    SimMutex* mutex = nullptr;  // One of the two, while there is a lock.
    SimOwned* owned = nullptr;
    std::uint32_t depth = 0;  // Grants that were not released.
    bool told_lost = false;
    bool releasing = false;
    SimTime granted_at = 0;  // True time of the last grant.
    // What the checkers saw last.
    Instant seen_until;
    std::uint64_t expectation = 0;  // Of being told.
    Token denied;                   // Of the last attempt that was told busy,
    Token unclear;                  // and of the last whose outcome is unknown.
    std::size_t item = SIZE_MAX;    // Its bar in the timeline.
    // For canaries: what it believes where that is not what the lock says.
    Instant own_belief;
    Application* application = nullptr;
    alignas(SimOwned) unsigned char place[sizeof(SimOwned) > sizeof(SimMutex) ? sizeof(SimOwned) : sizeof(SimMutex)];

    [[nodiscard]] BlockingLock* lock() const noexcept {
      return mutex != nullptr ? static_cast<BlockingLock*>(mutex) : owned;
    }
    [[nodiscard]] std::uint64_t fence() const noexcept { return mutex != nullptr ? mutex->fence() : owned->fence(); }
    [[nodiscard]] bool fenced() const noexcept {
      return plan->kind == KindOfLock::fenced || plan->kind == KindOfLock::fenced_mutex ||
             plan->kind == KindOfLock::announced_fenced;
    }
    [[nodiscard]] bool reentrant() const noexcept { return plan->kind >= KindOfLock::reentrant; }
  };

  Application(World& world, Process& process);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  static void* main(void* self);

  [[nodiscard]] std::vector<Slot>& slots() noexcept { return slots_; }
  // Until when it believes to hold the lock, by its own clock.
  [[nodiscard]] Instant believes(const Slot& slot) const noexcept;
  // From outside of its threads.
  void cancel() noexcept;
  // In a call of holdfast, at whose end it is told what it has to be told.
  [[nodiscard]] bool in_call() const noexcept { return in_call_; }

 private:
  void run();
  void work();
  void wind_down();
  void set_up();
  void tear_down();
  void make(Slot& slot);
  void drop(Slot& slot);
  void act(Slot& slot);
  void act_held(Slot& slot);
  void acquire(Slot& slot);
  void release(Slot& slot, bool posted);
  void write(Slot& slot);
  void granted(Slot& slot, SimTime asked_at);
  void pause(SimTime most);
  [[nodiscard]] SimTime bound(SimTime wait) const noexcept;
  void check_bound(std::string_view what, SimTime since, SimTime imposed, SimTime bound);
  static void note_lost(void* context) noexcept;

  World& world_;
  Process& process_;
  std::vector<Slot> slots_;
  bool in_call_ = false;
  bool locked_out_ = false;  // Its password is wrong.
  bool alive_ = false;       // The objects below are there.
  Client* client_ = nullptr;
  Watchdog* watchdog_ = nullptr;
  Owner* owners_[2] = {};
  WatchdogPlaces<8> places_;
  alignas(Client) unsigned char client_place_[sizeof(Client)];
  alignas(Watchdog) unsigned char watchdog_place_[sizeof(Watchdog)];
  alignas(Owner) unsigned char owner_places_[2][sizeof(Owner)];
};

}  // namespace holdfast::sim
