// SPDX-License-Identifier: MIT
//
// WatchdogBranches is what a Watchdog has where it keeps holds at several masters of a cluster: a lane for each further master, with a
// connection of its own.
//
//     WatchdogPlaces<64> places;                     // of the holds at the first client's master
//     Watchdog watchdog(places.storage());
//     WatchdogBranchesOf<2, 64> branches(watchdog);  // two masters more, 64 holds at each
//     Status status = watchdog.start(client);        // a client with a Cluster
//     other.attach(&watchdog);                       // another client of this cluster, of any slot
//
//   - A hold goes to the lane of the server where its client has it. The first one there makes that lane's connection, which begins at
//     this server, and finds it again as a client's does. Without a lane or a place for it, acquire() says too_many_requests, and
//     the grant is released, as where a Watchdog has no place. A lane that keeps nothing is used anew for another server.
//   - A renewal that is answered with MOVED has not run. Its holds go to the lane of the server that was named, and are asked for there
//     after the pause of a renewal that failed. Without a lane or a place there, they stay where they are, and are asked for again; if
//     nothing of what a lane keeps is where it was, the whole lane goes. So as many lanes as masters live through fail-overs. While a
//     lane is on its way, a new hold at its master may be refused; with one lane more it is not.
//   - What a client could not take back, and is not called again for, goes to the lane of its server, and after its slot, too.
//   - A master that stands still, dies or is replaced holds up its own holds alone.
//
// Where the servers are no cluster, it does nothing. With TLS, each lane takes a place in the Tls.
//
// Thread rule: made and destroyed by the thread that starts and stops the watchdog. No heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/cluster.hpp"
#include "holdfast/core/slot_routes.hpp"
#include "holdfast/detail/watchdog_lane.hpp"
#include "holdfast/limits.hpp"
#include "holdfast/proto/bytes.hpp"

namespace holdfast {

class ClientBase;
class HoldRecord;
class Watchdog;

class WatchdogBranches {
 public:
  // Functions behind pointers, so that a program without branches does not carry them. REQUIRES: the watchdog's lock is held.
  struct Table {
    // The watchdog is about to start for this client. False: there is no cluster, and its own lane is the watchdog's to configure.
    bool (*start)(WatchdogBranches& self, ClientBase& client) noexcept;
    // Where a hold of this client goes; nullptr: there is no lane for it. Without a record: where its compensations go.
    WatchdogLane* (*lane_for)(WatchdogBranches& self, ClientBase& client, const HoldRecord* record) noexcept;
    // As RenewalSchedule::handle_reply(), of a call at this lane that was answered with MOVED.
    bool (*take_moved)(WatchdogBranches& self, WatchdogLane& from, const Reply& reply) noexcept;
    // The turns of all lanes, and what goes from one to another.
    void (*work)(WatchdogBranches& self) noexcept;
    // Until then, until something comes at a lane, or until wake(). The lock is let go of meanwhile.
    void (*sleep)(WatchdogBranches& self, Instant until) noexcept;
  };
  WatchdogBranches(const WatchdogBranches&) = delete;
  WatchdogBranches& operator=(const WatchdogBranches&) = delete;

  [[nodiscard]] const Table& table() const noexcept { return *table_; }

  // A lane, and where it goes. The members are the branches' business.
  class Branch {
   public:
    explicit Branch(WatchdogLane& lane) noexcept : lane_(lane) {}

   private:
    friend class WatchdogBranches;
    WatchdogLane& lane_;
    Branch* next_ = nullptr;
    Cluster cluster_;  // The same nodes, and the name by which this lane finds its server.
    NamedServer server_;
    Instant strayed_at_;  // When a hold of its was last found to be elsewhere, without a lane to go to.
    bool used_ = false;
    bool led_ = false;  // To a server, and the thread has not seen that yet.
  };
  // Storage of one, with its places for holds.
  template <std::size_t places>
  struct Seat {
    Seat() noexcept : lane(host(), {kept, heap, places}), branch(lane) {}
    RenewalSchedule::Place kept[places];
    std::uint32_t heap[places];
    WatchdogLane lane;
    Branch branch;
  };
  static_assert(sizeof(Branch) <= 2 * 1024, "promised: where a lane goes");

 protected:
  // REQUIRES: the watchdog outlives it, has no other, and does not run.
  explicit WatchdogBranches(Watchdog& watchdog) noexcept;
  // Stops the watchdog: start it anew where it is to go on without. REQUIRES: every hold that is kept here has been released, or its
  // lock destroyed: an assertion says so where one is left.
  ~WatchdogBranches();
  // Behind the last.
  void add(Branch& branch) noexcept;

 private:
  static const Table ways;
  [[nodiscard]] static RenewalSchedule::Host host() noexcept;
  static bool start(WatchdogBranches& self, ClientBase& client) noexcept;
  static WatchdogLane* lane_for(WatchdogBranches& self, ClientBase& client, const HoldRecord* record) noexcept;
  static bool take_moved(WatchdogBranches& self, WatchdogLane& from, const Reply& reply) noexcept;
  static void work(WatchdogBranches& self) noexcept;
  static void sleep(WatchdogBranches& self, Instant until) noexcept;
  static bool together(const KeptHold& one, const KeptHold& other) noexcept;

  [[nodiscard]] static bool idle(Branch& branch) noexcept;
  [[nodiscard]] Branch& branch_of(const WatchdogLane& lane) noexcept;
  [[nodiscard]] Branch* find(const NamedServer& server) noexcept;
  [[nodiscard]] Branch* find_known(const ServerIdentity& server) noexcept;
  [[nodiscard]] Branch* find_searching(std::uint16_t slot) noexcept;
  [[nodiscard]] Branch* find_unused() noexcept;
  void lead(Branch& branch, const NamedServer& server, ByteView name) noexcept;
  // `from` has answered a request for this name with MOVED: where to go. nullptr: it is no such answer, or there is no lane.
  [[nodiscard]] Branch* go_after(Branch& from, ByteView name) noexcept;
  void follow_whole(Branch& branch, const NamedServer& server, ByteView name) noexcept;
  void configure(Branch& branch, ClientConfig& config) noexcept;
  void prepare_led() noexcept;
  void reroute(Branch& from) noexcept;

  const Table* table_;
  Watchdog& watchdog_;
  bool active_ = false;  // The watchdog has been started in a cluster.
  Branch home_;          // Of the watchdog's own lane, and the first of all.
  Branch* last_ = &home_;
};

template <std::size_t masters, std::size_t places>
struct WatchdogSeatsOf {
  WatchdogBranches::Seat<places> seats[masters];
};

// For `masters` beside the first, with so many places for holds at each. Its seats come before it, and go after it.
template <std::size_t masters, std::size_t places>
class WatchdogBranchesOf : private WatchdogSeatsOf<masters, places>, public WatchdogBranches {
  static_assert(masters >= 1 && masters < cluster_masters_max && places >= 1);

 public:
  explicit WatchdogBranchesOf(Watchdog& watchdog) noexcept : WatchdogBranches(watchdog) {
    for (auto& seat : this->seats) add(seat.branch);
  }
};

}  // namespace holdfast
