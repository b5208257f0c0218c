// SPDX-License-Identifier: MIT
#include "async_cluster.hpp"

#include <cstring>

#include "async_client_core.hpp"
#include "holdfast/core/slot_search.hpp"

namespace holdfast {

namespace {

constexpr int nobody = -1;

}  // namespace

AsyncCluster::AsyncCluster(AsyncClientCore& core, const AsyncLimits& limits) : core_(core), limits_(limits) {
  places_.reserve(cluster_masters_max - 1);
  while (places_.size() + 1 < limits.masters && places_.size() + 1 < cluster_masters_max) (void)add();
}

int AsyncCluster::add() {
  const std::size_t number = places_.size() + 1;
  places_.push_back(std::make_unique<Place>(core_, limits_, static_cast<std::uint8_t>(number)));
  return static_cast<int>(number);
}

void AsyncCluster::start(const ClientConfig& config, ClientConfig& home) noexcept {
  config_ = config;
  given_ = config.topology;
  cluster_.configure(static_cast<const Cluster&>(*given_).config());
  cluster_.take_any_slot();
  home = config;
  home.topology = config_.topology = &cluster_;
  home_host_.assign({});
  home_port_ = 0;
  std::memset(slots_, 0, sizeof slots_);
}

void AsyncCluster::stop() {
  for (const auto& place : places_) place->branch.node().hang_up();
  std::memset(slots_, 0, sizeof slots_);
  Session& home = core_.home().node().session();
  for (const auto& place : places_) {
    Session& session = place->branch.node().session();
    Session::CompensationSlot* slot = nullptr;
    while ((slot = session.next_unsent(slot)) != nullptr) home.take_over(session, *slot);
    for (std::size_t left = session.compensations_pending(); left != 0; --left) home.count_dropped();
    session.forget();
  }
}

// ---- Branches ----------------------------------------------------------------------------------------------------

int AsyncCluster::find(ByteView host, std::uint16_t port) const noexcept {
  if (port == home_port_ && host == home_host_.view()) return 0;
  for (const auto& place : places_)
    if (place->branch.node().wanted() && place->is_at(host, port)) return place->branch.number();
  return nobody;
}

// One that nobody uses and that is not connected, or a new one.
int AsyncCluster::find_unused() {
  for (const auto& place : places_) {
    const AsyncBranch& branch = place->branch;
    if (branch.locks() == 0 && !branch.node().ready() && branch.node().session().compensations_pending() == 0)
      return branch.number();
  }
  return places_.size() + 1 == cluster_masters_max ? nobody : add();
}

// ---- Where a slot is ---------------------------------------------------------------------------------------------

AsyncBranch& AsyncCluster::branch_of(const LockKind& kind, Key key) noexcept {
  AsyncBranch& branch = core_.branch(slots_[SlotSearch::slot_of_lock(kind, key)]);
  return branch.node().wanted() ? branch : core_.home();
}

AsyncBranch* AsyncCluster::follow(AsyncBranch& from, const LockMachine& machine) {
  const ByteView name = SlotSearch::first_name(machine.kind(), machine.key());
  return go_after(from, slot_of(name), name);
}

AsyncBranch* AsyncCluster::go_after(AsyncBranch& from, std::uint16_t slot, ByteView name) {
  std::uint16_t moved = 0;
  ByteView host;
  std::uint16_t port = 0;
  if (!SlotSearch::read_moved(from.node().session().failure_text(), moved, host, port) || moved != slot) return nullptr;
  if (host.empty()) host = from.node().config().host.view();
  const BoundedText<listed_host_size_max> named(host);  // It is a view of the session's words.
  host = named.view();
  int number = find(host, port);
  if (number == nobody) {
    number = find_unused();
    if (number == nobody) return nullptr;
    Place& place = *places_[static_cast<std::size_t>(number) - 1];
    ClusterConfig cluster = cluster_.config();
    cluster.name.assign(name);
    place.branch.node().close();
    place.cluster.configure(cluster);
    place.cluster.take_any_slot();
    place.host.assign(host);
    place.port = port;
    ClientConfig config = config_;
    config.topology = &place.cluster;
    place.branch.configure(config);
    AsyncNode& node = place.branch.node();
    if (node.prepare(config, core_.now()) != Status::ok) return nullptr;
    SlotSearch::lead(node.node(), place.host.view(), port);
    core_.schedule_turn();
    core_.turn_again();  // This one may be past it.
  }
  slots_[slot] = static_cast<std::uint8_t>(number);
  from.node().session().clear_failure_text();  // It led somewhere.
  return &core_.branch(slots_[slot]);
}

void AsyncCluster::reroute(AsyncBranch& from) {
  Session& session = from.node().session();
  Session::CompensationSlot* slot = nullptr;
  while ((slot = session.next_unsent(slot)) != nullptr) {
    const Key key = session.key_of(*slot);
    const ByteView name = SlotSearch::first_name(*slot->kind, key);
    const std::uint16_t number = slot_of(name);
    if (&core_.branch(slots_[number]) == &from) (void)go_after(from, number, name);
    AsyncBranch& to = core_.branch(slots_[number]);
    if (&to == &from || !to.node().wanted() || !to.node().session().may_compensate()) continue;
    to.node().session().take_over(session, *slot);
    core_.turn_again();  // It may leave in this turn.
  }
}

void AsyncCluster::note_ready(AsyncBranch& branch) noexcept {
  const KeptConfig& config = branch.node().config();
  const bool home = branch.number() == 0;
  Place* const place = home ? nullptr : places_[branch.number() - 1U].get();
  (home ? home_host_ : place->host).assign(config.host.view());
  (home ? home_port_ : place->port) = config.port;
}

void AsyncCluster::work() {
  if (core_.home().node().session().compensations_pending() != 0) reroute(core_.home());
  for (const auto& place : places_) {
    AsyncBranch& branch = place->branch;
    branch.work();
    if (branch.node().session().compensations_pending() != 0)
      reroute(branch);
    else if (branch.locks() == 0 && branch.node().wanted() && !branch.node().ready() && !branch.node().connecting())
      branch.node().close();  // Nobody needs it any more.
  }
}

}  // namespace holdfast
