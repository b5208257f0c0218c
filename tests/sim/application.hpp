// SPDX-License-Identifier: MIT
//
// Application is the program of a simulated client: it uses holdfast's public classes as any program does, by a plan
// and at random, and notes what it was told, for the checkers.
//
//     a process:  thread 0 --- Client --- node     Watchdog: one a node, for all of the process's clients of it
//                 thread 1 --- Client --- node     Slot: a lock object over one of the clients
//
//     of a quorum:  thread 0 --- Quorum --- all nodes
//
//     on a loop (asio_program.cpp):  thread 0 --- io_context --- AsyncClient --- node
//                                             or  io_context --- AsyncQuorum --- all nodes
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cancel_watch.hpp"
#include "holdfast/acks.hpp"
#include "holdfast/client.hpp"
#include "holdfast/core/fair_kind.hpp"
#include "holdfast/detail/branches.hpp"
#include "holdfast/detail/owner.hpp"
#include "holdfast/fenced_lock.hpp"
#include "holdfast/lingering.hpp"
#include "holdfast/lock_set.hpp"
#include "holdfast/mutex.hpp"
#include "holdfast/read_write_lock.hpp"
#include "holdfast/redlock.hpp"
#include "holdfast/reentrant_lock.hpp"
#include "holdfast/sentinel_watch.hpp"
#include "holdfast/watchdog.hpp"
#include "plan.hpp"
#include "shifts.hpp"
#include "tls_link.hpp"
#include "trace.hpp"

namespace holdfast::sim {

class LoopProgram;
class World;
struct Process;
struct Thread;

// Lock objects with a kind of choice.
class SimMutex : public BlockingLock {
 public:
  SimMutex(Client& client, const LockKind& kind, ByteView key, const LockTiming& timing, const HoldRecord::Ways& ways,
           std::uint32_t permits) noexcept
      : BlockingLock(hold_), hold_(client, kind, Key(key), timing, ways) {
    hold_.set_argument(permits);
  }
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }

 private:
  HoldRecord hold_;
};
// Has places for as many holds as its process has locks. A killed process leaves them as they are.
class SimOwner : public HoldOwner {
 public:
  SimOwner(Client& client, std::size_t holds) : SimOwner(client, std::make_unique<Place[]>(holds), holds) {}

 private:
  SimOwner(Client& client, std::unique_ptr<Place[]> places, std::size_t holds)
      : HoldOwner(client, places.get(), holds), places_(std::move(places)) {}

  std::unique_ptr<Place[]> places_;
};
class SimOwned : public OwnedLock {
 public:
  SimOwned(SimOwner& owner, const LockKind& kind, ByteView key, const LockTiming& timing, Duration most) noexcept
      : OwnedLock(owner, kind, Key(key), timing,
                  kind.lingers  ? that_lingers
                  : kind.queues ? in_queue
                                : alone) {
    if (kind.lingers) linger(most);
  }
  ~SimOwned() { end_lingering(); }
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }
};
inline constexpr std::size_t quorum_nodes_max = 5;
[[nodiscard]] const LockKind& quorum_kind_of(KindOfLock kind) noexcept;
// What RedlockMutex is, and RedlockReentrantLock of an owner with one lock object.
class SimRedlock : public QuorumLock {
 public:
  SimRedlock(QuorumClient& quorum, const LockKind& kind, ByteView key, const QuorumTiming& timing) noexcept
      : QuorumLock(hold_), hold_(quorum, kind, Key(key), timing, ways) {}
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_of_grant(); }

  static constexpr QuorumRecord::Ways ways = {.draw_ordinal = QuorumRecord::draw_ordinal,
                                              .run_listening = run_listening};

 private:
  QuorumHold<quorum_nodes_max> hold_;
};

// What the checkers see of a lock of a program on a loop.
class LoopLock {
 public:
  [[nodiscard]] virtual const Token& token() const noexcept = 0;
  [[nodiscard]] virtual Instant valid_until() const noexcept = 0;
  [[nodiscard]] virtual bool held() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t fence() const noexcept = 0;

 protected:
  ~LoopLock() = default;
};

// As a client is configured now.
struct Timeouts {
  SimTime connect = 0;
  SimTime request = 0;
  SimTime stall = 0;
};

class Application {
 public:
  struct Slot;
  // A thread of the program that uses locks. The first is its main().
  struct Worker {
    Application* application = nullptr;
    std::size_t index = 0;
    std::size_t thread = SIZE_MAX;  // The world's number of it, from its beginning on.
    pthread_t id{};
    std::vector<Slot*> slots;
    bool calls = false;  // A call of holdfast is in progress.
    // Since when it does nothing but wait for locks of this connection, or call tend() whenever that is due; -1: it does not.
    SimTime tends_since = -1;
    std::size_t tends = 0;
    // Of the set of locks that it has, or wants.
    std::vector<Slot*> members;
    std::vector<AnyLock> any_locks;
    std::vector<BlockingLock*> locks;
    std::vector<std::size_t> set_connections;
    char name[key_size_max + 1] = {};  // Of the lock that it has made last, behind it what is left of longer ones.
  };
  // A lock object, and what its user knows of it.
  struct Slot {
    const SlotPlan* plan = nullptr;
    const Worker* worker = nullptr;
    std::size_t node = 0;
    std::size_t name = 0;       // The plan's, in the database that its client uses.
    Token judged;               // Of the last acquire of a Redlock.
    bool moved = false;         // Its client went elsewhere and left it held.
    bool watched = false;       // Its last hold was given to a watchdog,
    bool rested = false;        // which has stood still since.
    bool of_quorum = false;     // Its lock is on all nodes.
    std::size_t domain = 0;     // Those of one domain exclude each other, or share its permits: a name on a node.
    SimMutex* mutex = nullptr;  // One of the five, while there is a lock.
    SimOwned* owned = nullptr;
    ReadWriteLock::Side* side = nullptr;
    SimRedlock* redlock = nullptr;
    LoopLock* loop = nullptr;
    std::uint32_t depth = 0;  // Grants that were not released.
    bool told_lost = false;
    bool releasing = false;
    SimTime granted_at = 0;   // True time of the last grant.
    std::uint64_t waits = 0;  // How often it has begun to wait for a release.
    bool waiting = false;
    bool queued = false;  // It waits, or has waited, in a queue.
    bool wake_expected = false;
    Instant ticked;   // By its process's clock, no earlier than the last tick.
    Instant renewed;  // The same for its own renew().
    bool renewing = false;
    // What the checkers saw last.
    Instant seen_until;
    std::uint64_t expectation = 0;  // Of being told.
    Token denied;                   // Of the last attempt that was told busy,
    Token unclear;  // and of the last whose outcome is unknown; of a quorum that is over, or was denied.
    SimTime unclear_at = 0;
    SimTime redlock_timeout = 0;   // Of each node of a quorum.
    Token told;                    // Of a quorum's last grant that was told,
    std::uint64_t told_fence = 0;  // and its fence.
    std::size_t item = SIZE_MAX;   // Its bar in the timeline.
    bool idle = false;             // It was released last, and its server knows nothing of it.
    // For canaries: what it believes where that is not what the lock says.
    Instant own_belief;
    Application* application = nullptr;
    std::uint64_t own_fence = 0;  // As own_belief.
    // As its set was asked for, or let go of.
    Token before;
    std::uint32_t number_before = 0;
    Slot* whole = nullptr;     // Of a MultiLock's further name: the slot that stands for all, and has the lock.
    std::vector<Slot*> parts;  // Of that slot: the others.
    alignas(SimOwned) unsigned char place[sizeof(SimOwned) > sizeof(SimMutex) ? sizeof(SimOwned) : sizeof(SimMutex)];
    struct alignas(SimRedlock) RedlockPlace {
      unsigned char bytes[sizeof(SimRedlock)];
    };
    std::unique_ptr<RedlockPlace> redlock_place;  // Of a quorum's.
    struct alignas(ReadWriteLock) ReadWritePlace {
      unsigned char bytes[sizeof(ReadWriteLock)];
    };
    std::unique_ptr<ReadWritePlace> read_write_place;  // Of the reader's slot.

    [[nodiscard]] bool is_part() const noexcept { return whole != nullptr; }
    [[nodiscard]] bool of_several() const noexcept { return plan->kind == KindOfLock::multi; }
    // They are what the whole is.
    void settle_parts() const noexcept;
    // They share a name on a server.
    [[nodiscard]] bool shares_name(const Slot& other) const noexcept;

    [[nodiscard]] bool exists() const noexcept { return redlock != nullptr || loop != nullptr || lock() != nullptr; }
    [[nodiscard]] bool on_one_node() const noexcept { return !of_quorum && exists(); }
    // nullptr: there is none, or it is a quorum's or a loop's.
    [[nodiscard]] BlockingLock* lock() const noexcept {
      if (side != nullptr) return side;
      return mutex != nullptr ? static_cast<BlockingLock*>(mutex) : owned;
    }
    [[nodiscard]] const Token& token() const noexcept {
      if (loop != nullptr) return loop->token();
      return redlock != nullptr ? redlock->token() : lock()->token();
    }
    [[nodiscard]] Instant valid_until() const noexcept {
      if (loop != nullptr) return loop->valid_until();
      return redlock != nullptr ? redlock->valid_until() : lock()->valid_until();
    }
    [[nodiscard]] bool held() const noexcept {
      if (loop != nullptr) return loop->held();
      return redlock != nullptr ? redlock->held() : lock()->held();
    }
    [[nodiscard]] std::uint64_t fence() const noexcept {
      if (own_fence != 0) return own_fence;
      if (loop != nullptr) return loop->fence();
      if (redlock != nullptr) return redlock->fence();
      return mutex != nullptr ? mutex->fence() : owned->fence();
    }
    void tick() noexcept { redlock != nullptr ? redlock->tick() : lock()->tick(); }
    [[nodiscard]] Status keep(const KeepOptions& options) noexcept {
      return redlock != nullptr ? redlock->keep(options) : lock()->keep(options);
    }
    [[nodiscard]] bool fenced() const noexcept {
      return plan->kind == KindOfLock::fenced || plan->kind == KindOfLock::fenced_mutex ||
             plan->kind == KindOfLock::announced_fenced || plan->kind == KindOfLock::fair_fenced;
    }
    [[nodiscard]] bool reentrant() const noexcept {
      return plan->kind >= KindOfLock::reentrant && plan->kind != KindOfLock::semaphore;
    }
    [[nodiscard]] bool reads() const noexcept { return plan->kind == KindOfLock::read; }
    [[nodiscard]] bool of_two_sides() const noexcept {
      return plan->kind == KindOfLock::read || plan->kind == KindOfLock::write;
    }
    [[nodiscard]] bool queues() const noexcept {
      return plan->kind == KindOfLock::fair || plan->kind == KindOfLock::fair_fenced;
    }
    [[nodiscard]] bool of_semaphore() const noexcept { return plan->kind == KindOfLock::semaphore; }
    // Two objects of one owner, of its process, that mean the same lock: a hold of theirs is one, or one a side.
    [[nodiscard]] bool same_owner(const Slot& other) const noexcept {
      // On a loop each lock is an owner, and the sides of one are another.
      if (of_several() || other.of_several()) return false;
      if (on_loop() && !(shares_hold() && other.shares_hold()))
        return of_two_sides() && other.of_two_sides() && &application->slots_[plan->other_side] == &other;
      return reentrant() && other.reentrant() && other.plan->connection == plan->connection &&
             other.plan->owner == plan->owner && other.name == name;
    }
    [[nodiscard]] bool on_loop() const noexcept { return application->program_ != nullptr; }
    // With other objects of its owner.
    [[nodiscard]] bool shares_hold() const noexcept {
      if (!on_loop()) return reentrant();
      return application->process_plan().handles && reentrant() && !of_two_sides() && !of_several();
    }
    [[nodiscard]] bool announced() const noexcept {
      return plan->kind != KindOfLock::mutex && plan->kind != KindOfLock::fenced_mutex;
    }
    // In a call of holdfast, at whose end it is told what it has to be told.
    [[nodiscard]] bool in_call() const noexcept { return worker->calls; }
  };

  Application(World& world, Process& process);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  static void* main(void* self);

  [[nodiscard]] std::vector<Slot>& slots() noexcept { return slots_; }
  [[nodiscard]] const ClientPlan& process_plan() const noexcept;
  // Until when it believes to hold the lock, by its own clock.
  [[nodiscard]] Instant believes(const Slot& slot) const noexcept;
  [[nodiscard]] const std::vector<Worker>& workers() const noexcept { return workers_; }
  // It is connected, and has a place for the compensation without which nothing is asked.
  [[nodiscard]] bool may_ask(const Slot& slot) const noexcept;
  // The time of faults is over: who sleeps on a loop is woken. From outside of its threads.
  void hurry() noexcept;
  // Its process was killed. From within its loop.
  void stop_loop() noexcept;
  // Of its quorum, as it was told last.
  [[nodiscard]] Duration max_lease() const noexcept { return max_lease_; }
  // A client's call in progress, or its next one. From outside of its threads.
  void cancel(std::size_t connection) noexcept;
  // In the middle of a call of the thread's.
  void cancel_by_signal(std::size_t thread) noexcept;
  [[nodiscard]] bool watched(const Slot& slot) const noexcept {
    return slot.depth != 0 ? slot.watched : connections_[slot.plan->connection].watched;
  }
  // Of whoever keeps the slot's hold.
  [[nodiscard]] const Timeouts& timeouts_of(const Slot& slot) const noexcept {
    const Connection& connection = connections_[slot.plan->connection];
    return watched(slot) ? connection.timeouts_at_first : connection.timeouts;
  }
  [[nodiscard]] std::size_t addresses_of(const Slot& slot) const noexcept {
    const ConnectionPlan& plan = plan_of_connection(slot.plan->connection);
    return plan.named ? 1 + plan.dead_addresses : 1;
  }
  // Some of them do not answer: each takes its share of an attempt.
  [[nodiscard]] bool has_silent_addresses(const Slot& slot) const noexcept {
    return addresses_of(slot) > 1 && plan_of_connection(slot.plan->connection).silent_addresses;
  }

 private:
  friend class AsioProgram;
  struct alignas(Client) ClientPlace {
    unsigned char bytes[sizeof(Client)];
    alignas(Lingering) unsigned char lingering[sizeof(Lingering)];
    alignas(SentinelWatch) unsigned char ears[sizeof(SentinelWatch)];
    alignas(Acks) unsigned char acks[sizeof(Acks)];
  };
  struct alignas(Watchdog) WatchdogPlace {
    unsigned char bytes[sizeof(Watchdog)];
    WatchdogPlaces<16> places;
    alignas(SentinelWatch) unsigned char ears[sizeof(SentinelWatch)];
  };
  // Of clients that serve names of any slot, and of their watchdogs: of all masters, and one more.
  static constexpr std::size_t branches_max = 4;
  using SimBranches = BranchesOf<branches_max>;
  using SimLanes = WatchdogBranchesOf<branches_max, 16>;
  struct alignas(SimBranches) BranchesPlace {
    unsigned char bytes[sizeof(SimBranches)];
  };
  struct alignas(SimLanes) LanesPlace {
    unsigned char bytes[sizeof(SimLanes)];
  };
  // A crowd's.
  struct CrowdPlaces {
    WatchdogPlaces<crowd_max> places;
  };
  struct alignas(Quorum<quorum_nodes_max>) QuorumPlace {
    unsigned char bytes[sizeof(Quorum<quorum_nodes_max>)];
  };
  struct alignas(QuorumWatchdog) QuorumWatchdogPlace {
    unsigned char bytes[sizeof(QuorumWatchdog)];
  };
  // A client, and who may re-enter through it.
  struct Connection {
    Client* client = nullptr;
    // Where it goes now, and how.
    std::size_t node = 0;
    int database = 0;
    Timeouts timeouts;
    Timeouts timeouts_at_first;  // Its watchdog has them for ever.
    bool watched = false;        // Holds from the next one on are given to a watchdog.
    CancelWatch cancels;
    Lingering* lingering = nullptr;  // Of a client without branches.
    SimBranches* branches = nullptr;
    SentinelWatch* ears = nullptr;
    Acks* acks = nullptr;
    std::unique_ptr<SimOwner> owners[2];
    Guide guide;  // To its server, where that changes.
  };
  // A thread that cancels, and is stopped in the middle of it.
  struct Canceller {
    Application* application = nullptr;
    std::size_t connection = 0;
    SimTime delay = 0;
    SimTime torn = 0;
    bool done = false;
  };
  // What a call is measured by.
  struct Started {
    SimTime at = 0;
    SimTime imposed = 0;
    SimTime resolving = 0;
  };
  class Call;
  class SetCall;

  static void* body_of_worker(void* worker);
  static void* body_of_canceller(void* canceller);
  void run();
  void live(Worker& worker);
  void work(Worker& worker);
  void keep_crowd(Worker& worker);
  void wind_down(Worker& worker);
  [[nodiscard]] Client& client_of(const Slot& slot) noexcept { return *connections_[slot.plan->connection].client; }
  void connect(std::size_t connection);
  void connect_quorum();
  void configure_quorum();
  void configure_quorum_anew();
  [[nodiscard]] QuorumConfig quorum_config() const noexcept;
  [[nodiscard]] QuorumTiming quorum_timing_of(Slot& slot) const noexcept;
  // `lease` is a quorum's lock's, which max_lease may be below.
  void judge_configuration(Status status, Duration lease = {}) const;
  void believe_as_canary(Slot& slot, Status status) const;
  [[nodiscard]] SimTime longest_lull() const noexcept;
  void note_quorum_released(Slot& slot, const Token& token, Status status, bool last, bool posted);
  void reconnect(std::size_t connection);
  void connect_anew(const Worker& worker);
  void go_elsewhere(std::size_t connection);
  void settle_in(Slot& slot) const;
  void attach(Connection& connection) const;
  [[nodiscard]] const ConnectionPlan& plan_of_connection(std::size_t connection) const noexcept;
  [[nodiscard]] ClientConfig config_of(std::size_t connection, std::size_t node) const;
  // The watchdog of its quorum uses the connection between the calls.
  [[nodiscard]] bool takes_turns(std::size_t connection) const noexcept;
  void arm(std::size_t connection);
  void wait_for_cancellers();
  void connect_quorum_now();
  void start_quorum_watchdog();
  void connect_quorum_anew();
  void rest_watchdog(const Worker& worker);
  void squeeze(const Worker& worker);
  void post_all(const Worker& worker);
  void set_up();
  void tear_down();
  void make(Slot& slot);
  void make_lock(Slot& slot);
  void make_multi(Slot& slot);
  [[nodiscard]] std::size_t names_of(const Slot& slot, ByteView* names) const noexcept;
  void make_sides(Slot& slot);
  void keep(Slot& slot);
  [[nodiscard]] Slot& other_side(const Slot& slot) noexcept { return slots_[slot.plan->other_side]; }
  [[nodiscard]] ByteView write_name(const Slot& slot) noexcept;
  void make_redlock(Slot& slot);
  void drop(Slot& slot);
  static void drop_sides(Slot& reader, Slot& writer);
  // Its other side reads, by what it is told.
  [[nodiscard]] bool asks_as_reader(const Slot& slot) noexcept {
    return slot.plan->kind == KindOfLock::write && other_side(slot).exists() && other_side(slot).held();
  }
  // And since then, by that token: each of its attempts to write said so.
  [[nodiscard]] bool asked_as_reader(const Slot& slot, const Token& read_by, SimTime since);
  void act(Worker& worker, Slot& slot);
  void act_held(Slot& slot);
  void tick(const Worker& worker);
  void tend();
  Instant tend(std::size_t connection);
  void settle(Slot& slot);
  void acquire(Slot& slot);
  void begin_waiting(Slot& slot);
  void end_waiting(Slot& slot);
  [[nodiscard]] Status wait_for(Slot& slot, SimTime wait);
  void renew(Slot& slot);
  [[nodiscard]] bool draws_inspection() noexcept;
  void inspect_one(const Worker& worker);
  void release(Slot& slot, bool posted);
  void write(Slot& slot);
  void granted(Slot& slot);
  // Of sets of locks (application_sets.cpp).
  [[nodiscard]] bool gathers(Worker& worker, Slot& slot);
  [[nodiscard]] bool gathers_at_the_end(Worker& worker);
  [[nodiscard]] bool holds_as_another(const Slot& slot) const noexcept;
  [[nodiscard]] bool shares_name(const Worker& worker, const Slot& slot) const noexcept;
  template <class Use>
  void with_set(Worker& worker, Use use);
  void take_set(Worker& worker);
  void take_last_set(Worker& worker);
  [[nodiscard]] bool hold_set(Worker& worker, LockSetBase& set);
  [[nodiscard]] bool judge_set(const Worker& worker, Status configuration);
  [[nodiscard]] Status acquire_set(Worker& worker, LockSetBase& set);
  [[nodiscard]] Status ask_for_set(Worker& worker, LockSetBase& set, SimTime wait);
  void note_set_acquired(Worker& worker, Status status, const Started& started, std::uint64_t commands);
  void renew_set(Worker& worker, LockSetBase& set);
  void release_set(Worker& worker, LockSetBase& set, bool posted);
  void begin_to_leave(Slot& member);
  void end_in_set(Slot& member);
  void note_set_left(Slot& member);
  [[nodiscard]] SimTime bound_of_set(const Worker& worker, SimTime wait) const noexcept;
  [[nodiscard]] SimTime bound_of_cancelled_set(const Worker& worker) const noexcept;
  [[nodiscard]] Status acquire_by_hand(Worker& worker, SimTime wait);
  [[nodiscard]] Status release_by_hand(Worker& worker);
  void pause(SimTime most);
  [[nodiscard]] Started start() const noexcept;
  [[nodiscard]] Timeouts timeouts_of_connection(std::size_t connection) const noexcept;
  [[nodiscard]] static SimTime bound_of_span(SimTime span) noexcept;
  // In which everybody gets a free name, at the end.
  [[nodiscard]] SimTime longest_turn() const noexcept;
  [[nodiscard]] SimTime longest_turn_of(std::size_t locks) const noexcept;
  [[nodiscard]] bool outlasts_a_set(const Slot& slot, std::size_t locks) const noexcept;
  [[nodiscard]] SimTime bound(const Slot& slot, SimTime wait) const noexcept;
  [[nodiscard]] SimTime bound_of_acks(std::size_t connection) const noexcept;
  [[nodiscard]] SimTime bound_with_connect(std::size_t connection, SimTime wait) const noexcept;
  [[nodiscard]] SimTime bound_of_inspection(const Slot& slot) const noexcept;
  [[nodiscard]] SimTime bound_of_release(std::size_t connection) const noexcept;
  [[nodiscard]] SimTime bound_of_quorum(SimTime wait) const noexcept;
  [[nodiscard]] SimTime bound_of_attempt(const Slot& slot) const noexcept;
  [[nodiscard]] SimTime bound_of_request() const noexcept;
  [[nodiscard]] SimTime bound_of_tending(std::size_t connection) const noexcept;
  [[nodiscard]] SimTime bound_of_cancel(std::size_t connection) const noexcept;
  [[nodiscard]] Worker& worker_here() noexcept;
  [[nodiscard]] const Thread& thread_of(std::size_t connection) const noexcept;
  void check_bound(std::string_view what, const Started& started, SimTime bound);
  static void note_lost(void* context) noexcept;

  World& world_;
  Process& process_;
  std::unique_ptr<ProgramTls> tls_;  // nullptr: it speaks none. It outlives all connections.
  std::vector<Slot> slots_;
  std::vector<Worker> workers_;
  std::vector<Connection> connections_;
  std::vector<Watchdog*> watchdogs_;  // By node; nullptr where it has none.
  std::vector<SentinelWatch*> watchdog_ears_;
  std::unique_ptr<ClientPlace[]> client_places_;
  std::unique_ptr<WatchdogPlace[]> watchdog_places_;
  std::unique_ptr<BranchesPlace[]> branches_places_;
  std::unique_ptr<LanesPlace[]> lanes_places_;
  std::vector<SimLanes*> lanes_;
  std::unique_ptr<CrowdPlaces> crowd_places_;
  std::deque<Canceller> cancellers_;
  std::vector<std::size_t> own_connections_;
  std::vector<std::unique_ptr<QuorumPlace>> quorum_places_;  // The last is in use; before it a canary's.
  Quorum<quorum_nodes_max>* quorum_ = nullptr;
  std::unique_ptr<QuorumWatchdogPlace> quorum_watchdog_place_;
  QuorumWatchdog* quorum_watchdog_ = nullptr;
  Duration max_lease_{};
  Random anew_random_;
  std::vector<ClientConfig> configs_;
  bool resting_ = false;  // One of its watchdogs stands still.
  bool ending_ = false;
  bool locked_out_ = false;  // Its password is wrong.
  std::unique_ptr<LoopProgram> program_;
};

}  // namespace holdfast::sim
