// SPDX-License-Identifier: MIT
//
// Checkers watch a world: what the server does to the keys, and what each client is told and believes. Whatever must be
// true has a name here, which a failure says.
//
// exclusion        two never believe to hold the same lock, unless one of them was robbed from outside
// validity         nobody believes longer than the server keeps the key
// ownership        no command of ours touches what is another's
// no resurrection  what is gone is not made again by its old token
// fresh tokens     a token is set once
// never shortened  no script takes from a lease
// lease            every lock key has one
// compensated      what was given up is taken back
// ledger           what a client is told is what the server did
// fences           each grant's is larger than the one before
// resource         who checks fences never lets an older holder write behind a newer
// bounded waits, no spinning, floor, loss told, liveness, nothing left, descriptors, assertion
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "application.hpp"
#include "model_redis.hpp"
#include "trace.hpp"

namespace holdfast::sim {

class World;
struct Link;
struct Process;

struct Figures {
  std::uint64_t grants = 0;  // By the server.
  std::uint64_t held = 0;    // Told to a client.
  std::uint64_t renewals = 0;
  std::uint64_t steps = 0;
  std::uint64_t releases = 0;
  std::uint64_t lost = 0;
  std::uint64_t busy = 0;
  std::uint64_t unclear = 0;
  std::uint64_t writes = 0;
  std::uint64_t writes_refused = 0;
  std::uint64_t overlaps_excused = 0;
  std::uint64_t commands = 0;
};

class Checkers {
 public:
  explicit Checkers(World& world);

  [[nodiscard]] const Figures& figures() const noexcept { return figures_; }

  // A. What happens at the server.
  void before_receive(Link& link) { from_ = &link; }
  void after_receive(std::size_t commands);
  // Who holds a lock now may lose it without being told in time: it is not our doing.
  void break_all();
  void break_name(std::string_view name);
  // Somebody else has written.
  void data_changed();
  [[nodiscard]] bool foreign(std::string_view name) const;
  void excuse_fence(std::string_view name);
  void excuse_fences();

  // B. What a client is told and does.
  void after_run(Process& process);
  void after_acquire(Process& process, Application::Slot& slot, Status status, SimTime since, std::uint64_t commands);
  void check_compensated(Process& process, Application::Slot& slot, std::size_t pending);
  void after_release(Process& process, std::uint32_t number, Status status, bool last);
  // The number of the hold's grant; 0: the server knows of none.
  [[nodiscard]] std::uint32_t number_of(const Application::Slot& slot) const;
  void resource_written(Process& process, const SlotPlan& slot, std::uint32_t number, std::uint64_t fence);
  void process_ended(Process& process);
  void note_quiet(Process& process);

  // C. Phases.
  void faults_ended() {}
  void all_over();

 private:
  struct Grant {
    std::string token;
    std::size_t process = 0;
    std::uint32_t life = 0;
    std::size_t name = 0;
    std::uint64_t fence = 0;
    bool broken = false;
    bool deleted = false;   // And not brought back by a replica that lagged.
    bool released = false;  // By a command of its own.
    SimTime at = 0;
  };
  // A lock as the server has it.
  struct View {
    bool present = false;
    bool foreign = false;  // Somebody else has touched it.
    bool emptied = false;  // Its holder's field has just gone.
    std::uint32_t grant = 0;
    std::int64_t expiry_ms = no_expiry;
    std::uint64_t last_fence = 0;
    bool fence_excused = false;
    std::uint64_t counter = 0;     // As the request in progress has set it.
    std::uint64_t seen_fence = 0;  // The resource's.
    std::uint32_t seen_grant = 0;
    bool touched = false;  // By the bytes that are being received.
  };
  // Its bar in the timeline, and whose grant that is.
  struct KeyBar {
    std::size_t item = SIZE_MAX;
    std::uint32_t grant = 0;
  };

  void observe(const ModelRedis::Effect& effect);
  void observe_lock(std::size_t name, const ModelRedis::Effect& effect);
  void note_grant(std::size_t name, std::string_view token, const ModelRedis::Effect& effect);
  void note_deleted(std::size_t name, std::uint32_t number);
  void check_owner(std::uint32_t number, std::string_view what);
  [[nodiscard]] bool believed(std::uint32_t number) const;
  void check_belief(Process& process, Application::Slot& slot, Instant until);
  void expect_told(Process& process, Application::Slot& slot, SimTime at);
  void break_grant(std::uint32_t number) {
    if (number != 0) grants_[number].broken = true;
  }
  [[nodiscard]] bool trace_holds() const;
  void note_hold(Process& process, Application::Slot& slot, Instant until);
  void note_keys();
  [[nodiscard]] std::uint32_t find(std::string_view token) const;
  void read(std::size_t name);
  [[nodiscard]] std::string who(std::uint32_t number) const;

  World& world_;
  Figures figures_;
  Link* from_ = nullptr;
  std::vector<Grant> grants_;  // By number; the first is none.
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<View> views_;
  std::vector<KeyBar> key_bars_;
  std::vector<std::string> counters_;  // Their names.
};

}  // namespace holdfast::sim
