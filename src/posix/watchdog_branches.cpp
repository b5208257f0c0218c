// SPDX-License-Identifier: MIT
#include "holdfast/detail/watchdog_branches.hpp"

#include <poll.h>
#include <pthread.h>

#include "holdfast/client.hpp"
#include "holdfast/core/slot_search.hpp"
#include "holdfast/detail/hold_record.hpp"
#include "holdfast/proto/assert.hpp"
#include "holdfast/watchdog.hpp"
#include "poll_sockets.hpp"
#include "wait_for.hpp"

namespace holdfast {

constinit const WatchdogBranches::Table WatchdogBranches::ways = {start, lane_for, take_moved, work, sleep};

RenewalSchedule::Host WatchdogBranches::host() noexcept { return {Watchdog::may_renew, Watchdog::renewed}; }

WatchdogBranches::WatchdogBranches(Watchdog& watchdog) noexcept
    : table_(&ways), watchdog_(watchdog), home_(watchdog.home_) {
  HOLDFAST_ASSERT(!watchdog.running() && watchdog.branches_ == nullptr);
  watchdog.branches_ = this;
  watchdog.home_.belong_to(this);
  home_.used_ = true;
}

void WatchdogBranches::add(Branch& branch) noexcept {
  branch.lane_.use(watchdog_.random_);
  branch.lane_.belong_to(this);
  last_->lane_.precede(&branch.lane_);
  last_->next_ = &branch;
  last_ = &branch;
}

WatchdogBranches::~WatchdogBranches() {
  watchdog_.stop();
  if (watchdog_.inherited()) return;
  ::pthread_mutex_lock(&watchdog_.mutex_);
  for (Branch* branch = home_.next_; branch != nullptr; branch = branch->next_)
    HOLDFAST_ASSERT(branch->lane_.schedule().size() == 0);  // What is kept here goes first, or is released.
  watchdog_.home_.schedule().set_together(nullptr);
  watchdog_.home_.belong_to(nullptr);
  watchdog_.home_.precede(nullptr);
  watchdog_.branches_ = nullptr;
  ::pthread_mutex_unlock(&watchdog_.mutex_);
}

// ---- Starting ----------------------------------------------------------------------------------------------------

bool WatchdogBranches::start(WatchdogBranches& self, ClientBase& client) noexcept {
  const Connection& theirs = client.connection();
  ClientConfig config = theirs.config();
  self.active_ = config.topology != nullptr && config.topology->has_slots();
  for (Branch* branch = &self.home_; branch != nullptr; branch = branch->next_)
    branch->lane_.schedule().set_together(self.active_ ? together : nullptr);
  if (!self.active_) return false;
  const ClusterConfig& cluster = static_cast<const Cluster*>(config.topology)->config();
  self.home_.server_.assign(theirs.config().host.view(), theirs.config().port);
  self.home_.cluster_.configure(cluster);
  self.configure(self.home_, config);
  // Holds of before are kept on where they are.
  for (Branch* branch = self.home_.next_; branch != nullptr; branch = branch->next_) {
    branch->used_ = branch->led_ = branch->used_ && !idle(*branch);
    if (!branch->used_) continue;
    ClusterConfig same = cluster;
    same.name = branch->cluster_.config().name;
    branch->cluster_.configure(same);
  }
  return true;
}

// By a configuration of another topology. REQUIRES: its session is closed.
void WatchdogBranches::configure(Branch& branch, ClientConfig& config) noexcept {
  Connection& connection = branch.lane_.connection();
  branch.cluster_.take_any_slot();
  config.topology = &branch.cluster_;
  connection.configure(config);
  branch.lane_.configured();
  if (!branch.server_.host().empty()) SlotSearch::lead(connection, branch.server_.host(), branch.server_.port());
}

// ---- Branches ----------------------------------------------------------------------------------------------------

bool WatchdogBranches::idle(Branch& branch) noexcept {
  return branch.lane_.schedule().size() == 0 && branch.lane_.connection().compensations_pending() == 0;
}

WatchdogBranches::Branch* WatchdogBranches::find(const NamedServer& server) noexcept {
  for (Branch* branch = &home_; branch != nullptr; branch = branch->next_)
    if (branch->used_ && branch->server_ == server) return branch;
  return nullptr;
}

// A server may have several names.
WatchdogBranches::Branch* WatchdogBranches::find_known(const ServerIdentity& server) noexcept {
  for (Branch* branch = &home_; branch != nullptr; branch = branch->next_)
    if (branch->used_ && branch->lane_.is_at(server)) return branch;
  return nullptr;
}

// One that looks for the server of this very slot.
WatchdogBranches::Branch* WatchdogBranches::find_searching(std::uint16_t slot) noexcept {
  for (Branch* branch = &home_; branch != nullptr; branch = branch->next_)
    if (branch->used_ && branch->cluster_.slot() == slot && !branch->lane_.connection().ready()) return branch;
  return nullptr;
}

WatchdogBranches::Branch& WatchdogBranches::branch_of(const WatchdogLane& lane) noexcept {
  Branch* branch = &home_;
  while (&branch->lane_ != &lane) branch = branch->next_;
  return *branch;
}

// One that was never used, or else one without holds.
WatchdogBranches::Branch* WatchdogBranches::find_unused() noexcept {
  Branch* unused = nullptr;
  for (Branch* branch = &home_; branch != nullptr; branch = branch->next_)
    if (idle(*branch) && (unused == nullptr || (unused->used_ && !branch->used_))) unused = branch;
  return unused;
}

// The thread does the rest.
void WatchdogBranches::lead(Branch& branch, const NamedServer& server, ByteView name) noexcept {
  ClusterConfig cluster = home_.cluster_.config();
  cluster.name.assign(name);
  branch.cluster_.configure(cluster);
  branch.server_ = server;
  branch.used_ = branch.led_ = true;
  branch.lane_.forget_server();
  watchdog_.wake_.wake();
}

WatchdogBranches::Branch* WatchdogBranches::go_after(Branch& from, ByteView name) noexcept {
  Session& session = from.lane_.connection().session();
  NamedServer server;
  if (!server.read(from.lane_.connection(), slot_of(name))) return nullptr;
  session.clear_failure_text();  // It is of use once.
  Branch* branch = find(server);
  if (branch == nullptr) {
    branch = find_unused();
    if (branch != nullptr)
      lead(*branch, server, name);
    else
      follow_whole(from, server, name);
  }
  return branch == &from ? nullptr : branch;
}

// There is no lane for where a hold has gone. If all that this one keeps is elsewhere, its server has been replaced, and the lane itself
// goes there. So all of it is asked for: what is confirmed before the hold is asked for again is still here.
void WatchdogBranches::follow_whole(Branch& branch, const NamedServer& server, ByteView name) noexcept {
  RenewalSchedule& schedule = branch.lane_.schedule();
  const Instant now = branch.lane_.connection().now();
  if (branch.strayed_at_ == Instant() || branch.lane_.answered_at() >= branch.strayed_at_) {
    branch.strayed_at_ = now;
    schedule.hasten(now);
  } else if (now >= branch.strayed_at_ + retry_delay_min && schedule.calls_in_flight() <= 1) {
    branch.strayed_at_ = Instant();
    lead(branch, server, name);
  }
}

// ---- What the watchdog asks --------------------------------------------------------------------------------------

WatchdogLane* WatchdogBranches::lane_for(WatchdogBranches& self, ClientBase& client,
                                         const HoldRecord* record) noexcept {
  const KeptConfig& config = client.config();
  if (!self.active_ || config.topology == nullptr || !config.topology->has_slots()) return &self.home_.lane_;
  const ByteView name = record == nullptr ? config.topology->name()
                                          : SlotSearch::first_name(record->machine().kind(), record->machine().key());
  NamedServer server;
  server.assign(config.host.view(), config.port);
  Branch* branch = client.connected() ? self.find_known(client.server()) : nullptr;
  if (branch == nullptr) branch = self.find(server);
  if (branch == nullptr) branch = self.find_searching(slot_of(name));
  if (branch == nullptr) {
    branch = self.find_unused();
    if (branch != nullptr)
      self.lead(*branch, server, name);
    else if (record == nullptr)
      branch = &self.home_;  // Whose server says where to go.
  }
  return branch == nullptr ? nullptr : &branch->lane_;
}

// Holds of a call are of one slot.
bool WatchdogBranches::together(const KeptHold& one, const KeptHold& other) noexcept {
  return SlotSearch::slot_of_lock(*one.kind, one.key) == SlotSearch::slot_of_lock(*other.kind, other.key);
}

bool WatchdogBranches::take_moved(WatchdogBranches& self, WatchdogLane& from, const Reply& reply) noexcept {
  RenewalSchedule& schedule = from.schedule();
  const Instant now = from.connection().now();
  if (!self.active_) return schedule.handle_reply(reply, now);
  HoldRecord* strayed[renewal_batch_max];
  std::size_t count = 0;
  void* holder = nullptr;
  for (std::size_t index = 0; schedule.holder_in_call(reply.tag, index, holder); ++index)
    if (holder != nullptr) strayed[count++] = static_cast<HoldRecord*>(holder);
  Branch* to = nullptr;
  if (count != 0) {
    const LockMachine& machine = strayed[0]->machine();
    to = self.go_after(self.branch_of(from), SlotSearch::first_name(machine.kind(), machine.key()));
  }
  Reply refused = reply;
  refused.outcome = Status::not_connected;
  const bool known = schedule.handle_reply(refused, now);
  for (std::size_t index = 0; to != nullptr && index < count; ++index)
    Watchdog::keep_on(*strayed[index], from, to->lane_);
  return known;
}

// ---- The thread --------------------------------------------------------------------------------------------------

void WatchdogBranches::work(WatchdogBranches& self) noexcept {
  self.prepare_led();
  const Instant now = read_clock();
  for (Branch* branch = &self.home_; branch != nullptr; branch = branch->next_) {
    if (!branch->used_) continue;
    branch->lane_.work(now);
    const Connection& connection = branch->lane_.connection();
    if (connection.ready() && !branch->led_)
      branch->server_.assign(connection.config().host.view(), connection.config().port);
  }
  if (!self.active_) return;
  for (Branch* branch = &self.home_; branch != nullptr; branch = branch->next_) self.reroute(*branch);
  self.prepare_led();
}

// Those that were led to another server begin there. What they had of the one before is nobody's.
void WatchdogBranches::prepare_led() noexcept {
  for (Branch* branch = &home_; branch != nullptr; branch = branch->next_) {
    if (!branch->led_) continue;
    branch->led_ = false;
    branch->lane_.stop(read_clock());
    ClientConfig config = home_.lane_.connection().config();
    configure(*branch, config);
    branch->lane_.work(read_clock());
  }
}

// What is to be taken back there, and was answered with MOVED, goes where its slot is, together with all of that slot.
void WatchdogBranches::reroute(Branch& from) noexcept {
  if (!from.lane_.connection().ready()) return;  // Words of a connection that came to nothing are no answer to it.
  Session& session = from.lane_.connection().session();
  Session::CompensationSlot* slot = nullptr;
  Branch* to = nullptr;
  std::uint16_t moved = 0;
  while (to == nullptr && (slot = session.next_unsent(slot)) != nullptr) {
    const ByteView name = SlotSearch::first_name(*slot->kind, session.key_of(*slot));
    moved = slot_of(name);
    to = go_after(from, name);
  }
  if (to == nullptr) return;
  for (slot = nullptr; (slot = session.next_unsent(slot)) != nullptr;)
    if (SlotSearch::slot_of_lock(*slot->kind, session.key_of(*slot)) == moved)
      to->lane_.connection().session().take_over(session, *slot);
}

void WatchdogBranches::sleep(WatchdogBranches& self, Instant until) noexcept {
  Watchdog& watchdog = self.watchdog_;
  if (!self.active_) return watchdog.sleep();
  // Where each lane stands in the list is known by the order: the wake pipe, and of each lane its socket and its resolver.
  pollfd entries[1 + 2 * cluster_masters_max];
  entries[0] = entry_of(watchdog.wake_.descriptor());
  nfds_t count = 1;
  const Instant now = read_clock();
  bool hurry = false;
  for (Branch* branch = &self.home_; branch != nullptr; branch = branch->next_) {
    const Connection& connection = branch->lane_.connection();
    entries[count++] = entry_of(connection);
    entries[count++] = entry_of(branch->lane_.resolver());
    hurry = hurry || branch->led_ || connection.pending();
  }
  ::pthread_mutex_unlock(&watchdog.mutex_);
  // Without a clock everything is due, and nothing may spin: the wake pipe alone is looked at.
  const bool blind = now == Instant::max();
  const timespec limit = to_timespec(blind ? sleep_max : hurry ? Duration::zero() : until - now);
  const bool any = ::ppoll(entries, blind ? 1 : count, &limit, nullptr) > 0;
  if (any && entries[0].revents != 0) watchdog.wake_.drain();
  ::pthread_mutex_lock(&watchdog.mutex_);
  if (!any) return;
  const pollfd* entry = entries + 1;
  for (Branch* branch = &self.home_; branch != nullptr; branch = branch->next_, entry += 2) {
    if (entry->revents == 0) continue;
    branch->lane_.connection().set_now(read_clock());
    branch->lane_.finish_dial();
  }
}

}  // namespace holdfast
