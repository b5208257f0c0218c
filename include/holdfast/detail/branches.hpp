// SPDX-License-Identifier: MIT
//
// Branches is what a blocking client of a cluster has whose names are of any slot: a connection for each further master that has some
// of them. The first is the client's own.
//
//     Cluster cluster({.hosts = "10.0.0.1,10.0.0.2,10.0.0.3:6380", .name = "orders"});
//     Client client;
//     BranchesOf<4> branches(client);        // of three masters: two beside the first, and two for fail-overs
//     Status status = client.connect({.topology = &cluster});
//     Mutex order(client, "orders/42"), bill(client, "bills/42");
//
//   - Locks, Owners, sets, inspect() and its like take the client, as ever. Each lock asks where its slot was last, and at first the
//     server of the cluster's `name`; the server that does not have it says MOVED, and the lock goes there. A slot that moves is
//     followed in the same way. So a wrong belief costs one question.
//   - Each branch is connected when it is needed first, and shared by all names there. A branch without holds is used for another
//     master; a lock whose release was answered is nowhere from the next call on. Where there is none, the call says `moved`: so
//     there is to be one for each further master, one for the new master of a fail-over, to which the holds of the old one go one by
//     one, and one for where the client's own server is a master no more, since its connection stays there.
//   - tend() and each call that waits serve all of them. A call waits for its own server alone: one that stands still holds up its own
//     names.
//   - Over TLS each branch takes places as a client does (tls.hpp).
//   - A Watchdog of such a client has WatchdogBranchesOf (watchdog.hpp). Without, it keeps what is at the first server, and an acquire of
//     what is elsewhere and is to be kept says too_many_requests.
//   - The names of a MultiLock must have one slot; those of a LockSet need not.
//   - error_text() and system_error_number() of the client are those of the server that the last call was for, connected() and server()
//     those of the first. compensations_pending() and releases_dropped() are of all.
//   - Not with Acks, Lingering or SentinelWatch. A put() asks the first server.
//
// Without a cluster it does nothing. What it promises is in proto/topology.md.
// Thread rule: as its client's. No heap: its memory is its own, sizeof(Client) and 2 KiB for each branch, and 19 KiB.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holdfast/client.hpp"
#include "holdfast/cluster.hpp"
#include "holdfast/core/slot_routes.hpp"
#include "holdfast/detail/brancher.hpp"
#include "holdfast/limits.hpp"

namespace holdfast {

class Branches : public Brancher {
 public:
  struct Place {
    Cluster cluster;     // The same nodes, and the name by which this branch finds its server.
    NamedServer server;  // To which it was led,
    Instant led_at;      // and when; it may have found another one.
    Client client;
  };

  // REQUIRES: the client outlives it, and it the locks of the client; the client is not connected, and has none of Acks, Lingering and
  // SentinelWatch. `count` is below cluster_masters_max.
  Branches(ClientBase& client, Place* places, std::size_t count) noexcept;
  // A client of a cluster is closed, and calls say not_connected until it is connected anew; it has the names of one slot then.
  // REQUIRES: a Watchdog that was started with the client has been stopped.
  ~Branches();

  // Branches that are connected at present.
  [[nodiscard]] std::size_t connected() const noexcept;

 private:
  static const Table ways;
  static void route(HoldRecord& record) noexcept;
  static void take_moved(HoldRecord& record, const Reply& reply, ClientBase& from) noexcept;
  static void abandon(const HoldRecord& record) noexcept;
  static Status run_on(HoldRecord& record, NodeTask& task, bool listens) noexcept;
  static bool may_hear(const Brancher& brancher, const LockMachine& machine) noexcept;
  static ClientBase& lead(Brancher& brancher, Key key) noexcept;
  static ClientBase* lead_on(Brancher& brancher, ClientBase& from, Key key) noexcept;
  static Instant work(ClientBase& active, Instant latest) noexcept;
  static void configure(Brancher& brancher, const ClientConfig& config) noexcept;
  static void each(const ClientBase& client, Branching what, void* context) noexcept;
  static Ready sleep_with_all(Connection& connection, WakePipe& wake, Instant then, int extra,
                              int extra_events) noexcept;

  static Branches& of(const HoldRecord& record) noexcept;
  [[nodiscard]] ClientBase& at(std::uint8_t number) noexcept {
    return number == 0 ? home() : places_[number - 1].client;
  }
  [[nodiscard]] ClientBase& at_slot(std::uint16_t slot) noexcept { return at(routes_.at(slot)); }
  [[nodiscard]] ClientBase* go_after(ClientBase& from, std::uint16_t slot, ByteView name) noexcept;
  [[nodiscard]] int find(const NamedServer& server) const noexcept;
  [[nodiscard]] int find_led(const NamedServer& server, Instant now) const noexcept;
  [[nodiscard]] int find_unused(const ClientBase& from) const noexcept;
  static void move(HoldRecord& record, ClientBase& to) noexcept;
  void let_rest(const HoldRecord& caller) noexcept;
  void note(HoldRecord& caller) noexcept;
  bool reroute(ClientBase& from) noexcept;
  [[nodiscard]] Instant work_beside(ClientBase& active, Instant latest, bool sees) noexcept;
  void set_up(ClientBase& client, bool branched) noexcept;
  [[nodiscard]] static bool idle(const ClientBase& client) noexcept;
  void start_anew(const ClientBase& begun) noexcept;
  void go_by(Place& place, ByteView name) noexcept;
  template <class Function>
  void each_other(const ClientBase& active, Function&& function) noexcept;

  Place* places_;
  std::uint8_t count_;
  bool clustered_ = false;  // The configuration has slots.
  bool starting_ = false;   // Anew, in a forked child.
  Cluster cluster_;         // Of the client itself.
  ClientConfig config_;     // Of the branches.
  SlotRoutes routes_;
  static constexpr std::uint8_t called_max = 8;
  HoldRecord* called_[called_max] = {};  // Of the last calls: those that may not have been let rest yet.
  std::uint8_t next_called_ = 0;
};
static_assert(sizeof(Branches) <= 20 * 1024, "promised: what is known of a cluster's slots");

template <std::size_t count>
struct BranchPlaces {
  static_assert(count >= 1 && count < cluster_masters_max);
  Branches::Place branch_places[count];
};

// With places for so many masters beside the first.
template <std::size_t count>
class BranchesOf : private BranchPlaces<count>, public Branches {
 public:
  explicit BranchesOf(ClientBase& client) noexcept : Branches(client, this->branch_places, count) {}
};

}  // namespace holdfast
