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

void AsyncCluster::start(const ClientConfig& config, ClientConfig& home) {
  config_ = config;
  given_ = config.topology;
  cluster_.configure(static_cast<const Cluster&>(*given_).config());
  cluster_.take_any_slot();
  home = config;
  home.topology = config_.topology = &cluster_;
  home_server_ = {};
  home_led_ = home_doubted_ = merging_ = false;
  routes_.forget();
  for (const auto& place : places_) {
    place->branch.configure(config_);
    place->led = false;
  }
}

void AsyncCluster::stop() {
  for (const auto& place : places_) place->branch.node().hang_up();
  routes_.forget();
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

int AsyncCluster::find(const NamedServer& server) const noexcept {
  if (server == home_server_.name) return 0;
  for (const auto& place : places_)
    if (place->branch.node().wanted() && place->server.name == server) return place->branch.number();
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
  AsyncBranch& branch = core_.branch(routes_.at(SlotSearch::slot_of_lock(kind, key)));
  return branch.node().wanted() ? branch : core_.home();
}

AsyncBranch* AsyncCluster::follow(AsyncBranch& from, const LockMachine& machine) {
  const ByteView name = SlotSearch::first_name(machine.kind(), machine.key());
  AsyncBranch* const to = go_after(from, slot_of(name), name);
  if (to == nullptr || to == &from) return to;
  if (from.number() != 0) {
    places_[from.number() - 1U]->led = true;
  } else {
    home_led_ = true;
    home_doubted_ = home_doubted_ || machine.count() != 0;  // Who never had its lock there tells nothing of the server.
  }
  return to;
}

AsyncBranch* AsyncCluster::go_after(AsyncBranch& from, std::uint16_t slot, ByteView name) {
  NamedServer server;
  if (!server.read(from.node().node(), slot)) return nullptr;
  int number = find(server);
  if (number == nobody) {
    number = find_unused();
    if (number == nobody) return nullptr;
    Place& place = *places_[static_cast<std::size_t>(number) - 1];
    ClusterConfig cluster = cluster_.config();
    cluster.name.assign(name);
    place.branch.close();
    place.cluster.configure(cluster);
    place.cluster.take_any_slot();
    place.server = {.name = server};
    ClientConfig config = config_;
    config.topology = &place.cluster;
    place.branch.configure(config);
    AsyncNode& node = place.branch.node();
    if (node.prepare(config, core_.now()) != Status::ok) return nullptr;
    SlotSearch::lead(node.node(), server.host(), server.port());
    core_.schedule_turn();
    core_.turn_again();  // This one may be past it.
  }
  routes_.lead(slot, static_cast<std::uint8_t>(number));
  from.node().session().clear_failure_text();  // It led somewhere.
  return &core_.branch(routes_.at(slot));
}

void AsyncCluster::reroute(AsyncBranch& from) {
  Session& session = from.node().session();
  Session::CompensationSlot* slot = nullptr;
  while ((slot = session.next_unsent(slot)) != nullptr) {
    const Key key = session.key_of(*slot);
    const ByteView name = SlotSearch::first_name(*slot->kind, key);
    const std::uint16_t number = slot_of(name);
    // Words of a connection that came to nothing are no answer to it.
    if (&core_.branch(routes_.at(number)) == &from && from.node().ready()) (void)go_after(from, number, name);
    AsyncBranch& to = core_.branch(routes_.at(number));
    if (&to == &from || !to.node().wanted() || !to.node().session().may_compensate()) continue;
    if (may_overtake(from, to)) continue;
    to.node().session().take_over(session, *slot);
    core_.turn_again();  // It may leave in this turn.
  }
}

void AsyncCluster::note_ready(AsyncBranch& branch) noexcept {
  const AsyncNode& node = branch.node();
  Server& server = server_of(branch.number());
  server = {};
  server.name.assign(node.config().host.view(), node.config().port);
  const ServerIdentity& identity = node.session().identity();
  if (identity.run_id_known) std::memcpy(server.run_id, identity.run_id, sizeof server.run_id);
  if (branch.number() == 0) home_doubted_ = false;
  merging_ = true;
}

// ---- Branches of one server --------------------------------------------------------------------------------------

// A connection that is lost may have bytes that the server has not read yet. The branch ends it there before it says anything else.
bool AsyncCluster::may_overtake(const AsyncBranch& from, const AsyncBranch& to) noexcept {
  if (!server_of(from.number()).is(server_of(to.number()))) return false;
  return !from.node().ready() || from.node().session().in_flight() != 0;
}

AsyncBranch* AsyncCluster::elder(const AsyncBranch& branch) noexcept {
  if (!branch.node().ready()) return nullptr;
  for (std::uint8_t number = 0; number < branch.number(); ++number) {
    AsyncBranch& other = core_.branch(number);
    if (other.node().ready() && server_of(branch.number()).is(server_of(number))) return &other;
  }
  return nullptr;
}

// Between an answer and what comes of it there is a turn's work: so each lock goes, however busy it is.
void AsyncCluster::merge() {
  bool merging = false;
  for (const auto& place : places_) {
    AsyncBranch& branch = place->branch;
    AsyncBranch* const to = elder(branch);
    if (to == nullptr) continue;
    routes_.redirect(branch.number(), to->number());
    const std::uint32_t locks = branch.locks();
    if (locks != 0)
      core_.each_lock([&](AsyncRecord& lock) {
        if (lock.branch_ == branch.number()) lock.join(*to);
      });
    if (branch.locks() != locks) core_.turn_again();  // They may go on there.
    if (branch.locks() == 0 && branch.silent())
      branch.close();
    else
      merging = true;
  }
  merging_ = merging;
}

bool AsyncCluster::all_rest(const AsyncBranch& branch) noexcept {
  if (!branch.silent()) return false;
  bool rest = true;
  core_.each_lock([&](const AsyncRecord& lock) { rest = rest && (lock.branch_ != branch.number() || lock.rests()); });
  return rest;
}

// Not to where that one was sent: if that has none of their slots, it would be left in its turn when one of them is sent back.
void AsyncCluster::leave(AsyncBranch& branch) {
  routes_.forget(branch.number());
  core_.each_lock([&](AsyncRecord& lock) {
    if (lock.branch_ == branch.number()) lock.change_to(core_.home());
  });
  branch.close();
}

// ---- Turns -------------------------------------------------------------------------------------------------------

void AsyncCluster::work() {
  AsyncBranch& home = core_.home();
  if (home.node().session().compensations_pending() != 0) reroute(home);
  if (home_led_) {
    home_led_ = false;
    if (home_doubted_ && home.node().ready() && all_rest(home))
      home.node().fail(Status::not_connected, "what was held there has gone to another server");
  }
  for (const auto& place : places_) {
    AsyncBranch& branch = place->branch;
    branch.work();
    if (branch.node().session().compensations_pending() != 0)
      reroute(branch);
    else if (branch.locks() == 0 && branch.node().wanted() && !branch.node().ready() && !branch.node().connecting())
      branch.close();  // Nobody needs it any more.
    const bool led = place->led;
    place->led = false;
    if (led && branch.node().ready() && all_rest(branch)) leave(branch);
  }
  if (merging_) merge();
}

}  // namespace holdfast
