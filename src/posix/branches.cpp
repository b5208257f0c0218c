// SPDX-License-Identifier: MIT
#include "holdfast/detail/branches.hpp"

#include <poll.h>
#include <strings.h>

#include "client_hot.hpp"
#include "hold_record_hot.hpp"
#include "holdfast/core/slot_search.hpp"
#include "holdfast/proto/assert.hpp"
#include "poll_sockets.hpp"
#include "wait_for.hpp"

namespace holdfast {

namespace {

constexpr int nobody = -1;

}  // namespace

constinit const Brancher::Table Branches::ways = {route, take_moved, abandon, run_on,    may_hear,
                                                  lead,  lead_on,    work,    configure, each};

Branches::Branches(ClientBase& client, Place* places, std::size_t count) noexcept
    : Brancher(ways, sleep_with_all, client), places_(places), count_(static_cast<std::uint8_t>(count)) {
  HOLDFAST_ASSERT(count < cluster_masters_max && client.lookout() == nullptr && client.acker_ == nullptr &&
                  client.lingerer_ == nullptr);
  set_up(client, true);
  for (std::size_t index = 0; index < count_; ++index) set_up(places_[index].client, true);
}

Branches::~Branches() {
  for (std::size_t index = 0; index < count_; ++index) {
    HOLDFAST_ASSERT(places_[index].client.records_ == 0);  // Its locks go first.
    ClientBase& branch = places_[index].client;
    if (home().forked())
      branch.forget();  // The parent's.
    else
      branch.close();
    branch.attach(nullptr);
    set_up(branch, false);
    branch.random_source_.part();
  }
  set_up(home(), false);
  if (clustered_) {  // Its configuration has a Cluster of ours.
    if (home().forked())
      home().forget();
    else
      home().close();
    home().config_.topology = nullptr;
    home().configured_ = false;
  }
  ::explicit_bzero(&config_, sizeof config_);  // The password is among it.
}

void Branches::set_up(ClientBase& client, bool branched) noexcept {
  client.set_lookout(branched ? this : nullptr, false);
  client.branched_ = branched;
  client.signal_ = branched ? &home().cancel_ : &client.cancel_;
}

std::size_t Branches::connected() const noexcept {
  std::size_t count = 0;
  for (std::size_t index = 0; index < count_; ++index)
    if (places_[index].client.connected()) ++count;
  return count;
}

template <class Function>
void Branches::each_other(const ClientBase& active, Function&& function) noexcept {
  for (std::uint8_t number = 0; number <= count_; ++number)
    if (ClientBase& client = at(number); &client != &active && client.configured()) function(client);
}

void Branches::each(const ClientBase& client, Branching what, void* context) noexcept {
  auto& self = static_cast<Branches&>(client.brancher());
  if (what == Branching::start_anew) return self.start_anew(client);
  if (&client != &self.home()) return;
  bool moved = what == Branching::tend && self.reroute(self.home());  // While what its server said is known.
  for (std::size_t index = 0; index < self.count_; ++index) {
    ClientBase& branch = self.places_[index].client;
    switch (what) {
      case Branching::start_anew: break;
      case Branching::close: branch.close(); break;
      case Branching::tell: branch.tell_tended(); break;
      case Branching::attach: branch.attach(static_cast<Keeper*>(context)); break;
      case Branching::tend: {
        auto& when = *static_cast<Instant*>(context);
        when = earlier(when, branch.tend());
        moved = self.reroute(branch) || moved;
        break;
      }
      case Branching::count_pending:
        *static_cast<std::size_t*>(context) += branch.session_.compensations_pending();
        break;
      case Branching::count_dropped:
        *static_cast<std::uint32_t*>(context) += branch.session_.compensations_dropped();
        break;
    }
  }
  // It is at one that was tended before.
  if (moved) *static_cast<Instant*>(context) = earlier(*static_cast<Instant*>(context), client.now_ + retry_delay_min);
}

// Whoever is used first in the child begins with it, and has done its own part.
void Branches::start_anew(const ClientBase& begun) noexcept {
  if (starting_) return;
  starting_ = true;
  for (HoldRecord*& called : called_) called = nullptr;  // The parent's.
  for (std::uint8_t number = 0; number <= count_; ++number)
    if (ClientBase& client = at(number); &client != &begun) client.start_anew_in_child();
  home().random_source_.start_anew();
  (void)home().wake_.open();
  for (std::size_t index = 0; index < count_; ++index)
    places_[index].client.random_source_.share(home().random_source_);
  starting_ = false;
}

// ---- Configuring -------------------------------------------------------------------------------------------------

// A branch that looks for its server by this name, or goes where the client goes. REQUIRES: it is closed.
void Branches::go_by(Place& place, ByteView name) noexcept {
  ClientConfig config = config_;
  if (clustered_) {
    ClusterConfig cluster = cluster_.config();
    if (!name.empty()) cluster.name.assign(name);
    place.cluster.configure(cluster);
    place.cluster.take_any_slot();
    config.topology = &place.cluster;
  }
  place.client.configure(config);
  place.client.settings_ = {.request_timeout = config.request_timeout,
                            .connect_timeout = config.connect_timeout,
                            .max_poll = config.max_poll};
  ::explicit_bzero(&config, sizeof config);
}

// Locks that are at a branch stay there until their next call, and it looks for its server anew. What others have left to be taken
// back is the client's own to see to, as far as there is room.
void Branches::configure(Brancher& brancher, const ClientConfig& config) noexcept {
  auto& self = static_cast<Branches&>(brancher);
  self.config_ = config;
  const Topology* const topology = config.topology;
  self.clustered_ = topology != nullptr && topology->has_slots();
  self.routes_.forget();
  for (std::size_t index = 0; index < self.count_; ++index)
    self.places_[index].client.random_source_.share(self.home().random_source_);
  if (topology != nullptr && self.clustered_) {
    self.cluster_.configure(static_cast<const Cluster*>(topology)->config());
    self.cluster_.take_any_slot();
    self.config_.topology = &self.cluster_;
  }
  self.home().configure(self.config_);
  Session& home = self.home().session_;
  for (std::size_t index = 0; index < self.count_; ++index) {
    Place& place = self.places_[index];
    place.server.assign({}, 0);
    place.led_at = Instant();
    if (!place.client.configured()) continue;
    Session& session = place.client.session_;
    Session::CompensationSlot* slot = nullptr;
    while ((slot = session.next_unsent(slot)) != nullptr) home.take_over(session, *slot);
    const BoundedText<key_size_max> name(place.cluster.config().name.view());
    self.go_by(place, name.view());
  }
}

// ---- Where a slot is ---------------------------------------------------------------------------------------------

Branches& Branches::of(const HoldRecord& record) noexcept { return static_cast<Branches&>(record.client_->brancher()); }

// By the server that it has found, or is on its way to.
int Branches::find(const NamedServer& server) const noexcept {
  const auto is_at = [&](const ClientBase& client, const NamedServer* named) noexcept {
    if (!client.session_.ready()) return named != nullptr && *named == server;
    return client.config().port == server.port() && client.config().host.view() == server.host();
  };
  if (is_at(home(), nullptr)) return 0;
  for (std::uint8_t index = 0; index < count_; ++index)
    if (places_[index].client.configured() && is_at(places_[index].client, &places_[index].server)) return index + 1;
  return nobody;
}

// One that was led there just now, wherever it is. Servers that name each other are not dialled again and again.
int Branches::find_led(const NamedServer& server, Instant now) const noexcept {
  for (std::uint8_t index = 0; index < count_; ++index)
    if (places_[index].server == server && now < places_[index].led_at + reconnect_soon_max) return index + 1;
  return nobody;
}

bool Branches::idle(const ClientBase& client) noexcept {
  return client.records_ == 0 && client.task_ == nullptr && !client.query_waiting_ &&
         client.session_.compensations_pending() == 0;
}

// One that was never used, or else one that nobody uses, sooner one without a connection.
int Branches::find_unused(const ClientBase& from) const noexcept {
  int found = nobody;
  for (std::uint8_t index = 0; index < count_; ++index) {
    const ClientBase& client = places_[index].client;
    if (&client == &from || !idle(client)) continue;
    if (!client.configured() || !client.session_.ready()) return index + 1;
    if (found == nobody) found = index + 1;
  }
  return found;
}

ClientBase* Branches::go_after(ClientBase& from, std::uint16_t slot, ByteView name) noexcept {
  NamedServer server;
  if (!clustered_ || !server.read(from, slot)) return nullptr;
  int number = find(server);
  if (number == nobody) number = find_led(server, from.now_);
  if (number == nobody) {
    number = find_unused(from);
    if (number == nobody) return nullptr;
    Place& place = places_[number - 1];
    place.client.now_ = from.now_;
    place.client.close();
    place.server = server;
    place.led_at = from.now_;
    routes_.forget(static_cast<std::uint8_t>(number));
    go_by(place, name);
    SlotSearch::lead(place.client, server.host(), server.port());
  }
  routes_.lead(slot, static_cast<std::uint8_t>(number));
  from.session_.clear_failure_text();  // It led somewhere.
  return &at(static_cast<std::uint8_t>(number));
}

// What is to be taken back there goes where its slot is. True if anything does.
bool Branches::reroute(ClientBase& from) noexcept {
  bool moved = false;
  Session::CompensationSlot* slot = nullptr;
  while ((slot = from.session_.next_unsent(slot)) != nullptr) {
    const ByteView name = SlotSearch::first_name(*slot->kind, from.session_.key_of(*slot));
    const std::uint16_t number = slot_of(name);
    // Words of a connection that came to nothing are no answer to it.
    if (&at_slot(number) == &from && from.session_.ready()) (void)go_after(from, number, name);
    ClientBase& to = at_slot(number);
    if (&to == &from || !to.configured() || !to.session_.may_compensate()) continue;
    to.session_.take_over(from.session_, *slot);
    moved = true;
  }
  return moved;
}

// ---- Calls -------------------------------------------------------------------------------------------------------

// A lock that rests needs no server, and must not keep a branch from being used for another one. What is to be taken back of it is
// waited for. Whoever holds comes by again when it lets go.
void Branches::let_rest(const HoldRecord& caller) noexcept {
  for (std::uint8_t number = 0; number <= count_; ++number)
    if (at(number).task_ != nullptr) return;  // It is called from within another call.
  for (HoldRecord*& called : called_) {
    if (called == nullptr || called == &caller || called->client_->session_.compensations_pending() != 0) continue;
    if (called->machine_.state() == LockState::idle && !called->strays_) move(*called, home());
    called = nullptr;
  }
}

// It may rest when this call is over.
void Branches::note(HoldRecord& caller) noexcept {
  for (const HoldRecord* const called : called_)
    if (called == &caller) return;
  called_[next_called_++ % called_max] = &caller;
}

void Branches::route(HoldRecord& record) noexcept {
  Branches& self = of(record);
  self.let_rest(record);
  self.note(record);
  if (record.machine_.state() == LockState::idle && !record.strays_)
    move(record, self.at_slot(SlotSearch::slot_of_lock(record.machine_.kind(), record.machine_.key())));
  self.note_call(*record.client_);
}

// Nothing ran, and it is asked again where its slot is: at once, or when the call in progress comes by. That call goes on here where it
// waits for the answer to something else.
void Branches::take_moved(HoldRecord& record, const Reply& reply, ClientBase& from) noexcept {
  const ByteView name = SlotSearch::first_name(record.machine_.kind(), record.machine_.key());
  ClientBase* const to = of(record).go_after(from, slot_of(name), name);
  if (to == nullptr) return record.handle_reply(reply, from.now_);
  Reply unasked = reply;
  unasked.outcome = Status::not_connected;
  const bool calls = record.calls();
  record.strays_ = calls;
  record.handle_reply(unasked, from.now_);
  if (calls && record.answered()) return;
  record.strays_ = false;
  if (!calls) move(record, *to);
  record.settle();
}

// What is to be taken back of it may be at any of them.
void Branches::abandon(const HoldRecord& record) noexcept {
  Branches& self = of(record);
  for (HoldRecord*& called : self.called_)
    if (called == &record) called = nullptr;
  for (std::uint8_t number = 0; number <= self.count_; ++number) {
    ClientBase& client = self.at(number);
    client.session_.abandon(&record, client.now_);
  }
}

Status Branches::run_on(HoldRecord& record, NodeTask& task, bool listens) noexcept {
  record.strays_ = false;
  Branches& self = of(record);
  move(record, self.at_slot(SlotSearch::slot_of_lock(record.machine_.kind(), record.machine_.key())));
  self.note_call(*record.client_);
  task.go_to(*record.client_);
  task.life().forget(1);
  record.settle();
  return record.run_through(task, listens);
}

// Where it can: not while an answer is to come, and what is to be taken back of it must not come behind what it asks for there.
void Branches::move(HoldRecord& record, ClientBase& to) noexcept {
  ClientBase& from = *record.client_;
  if (&to == &from || record.machine_.waiting() || !to.session_.take_along(from.session_, &record)) return;
  const bool tended = record.tended_;
  record.leave_tended();
  to.now_ = later(to.now_, from.now_);
  to.session_.clear_failure_text();
  --from.records_;
  ++to.records_;
  __atomic_store_n(&record.client_, &to, __ATOMIC_RELEASE);
  if (tended) record.join_tended();
}

bool Branches::may_hear(const Brancher& brancher, const LockMachine& machine) noexcept {
  return !static_cast<const Branches&>(brancher).clustered_ ||
         SlotSearch::may_hear(*machine.kind().announcement, machine.key());
}

ClientBase& Branches::lead(Brancher& brancher, Key key) noexcept {
  return static_cast<Branches&>(brancher).at_slot(slot_of(key.bytes()));
}

ClientBase* Branches::lead_on(Brancher& brancher, ClientBase& from, Key key) noexcept {
  return static_cast<Branches&>(brancher).go_after(from, slot_of(key.bytes()), key.bytes());
}

// ---- Beside a call -----------------------------------------------------------------------------------------------

Instant Branches::work(ClientBase& active, Instant latest) noexcept {
  return static_cast<Branches&>(active.brancher()).work_beside(active, latest, false);
}

// `sees`: who is active sleeps on all sockets, and not on its own alone.
Instant Branches::work_beside(ClientBase& active, Instant latest, bool sees) noexcept {
  bool moved = active.session_.compensations_pending() != 0 && reroute(active);
  Instant next = latest;
  each_other(active, [&](ClientBase& client) noexcept {
    client.now_ = active.now_;
    const bool needed =
        client.stream_.is_open() || client.tended_first_ != nullptr || client.session_.compensations_pending() != 0;
    if (!needed) return;
    if (client.dialling() && wait_for(client.socket(), POLLOUT, Duration::zero()) > 0) client.finish_dial();
    if (!client.dialling() && client.stream_.is_open() && client.session_.in_flight() != 0) client.receive_arrived();
    client.work_connection();
    moved = (client.session_.compensations_pending() != 0 && reroute(client)) || moved;
    (void)client.tend_due();
    next = earlier(next, client.next_timeout());
    if (!sees && (client.session_.in_flight() != 0 || client.dialling()))
      next = earlier(next, client.now_ + retry_delay_min);
  });
  if (moved) next = earlier(next, active.now_ + retry_delay_min);  // It is at one whose turn has been.
  return active.cancelled() ? Instant() : next;
}

Ready Branches::sleep_with_all(Connection& connection, WakePipe& /*wake*/, Instant then, int extra,
                               int extra_events) noexcept {
  auto& active = static_cast<ClientBase&>(connection);
  auto& self = static_cast<Branches&>(active.brancher());
  WakePipe& wake = self.home().wake_;
  active.now_ = read_clock();
  then = self.work_beside(active, then, true);
  pollfd entries[2 + cluster_masters_max] = {entry_of(wake.descriptor()),
                                             {.fd = extra, .events = static_cast<short>(extra_events), .revents = 0}};
  nfds_t size = 2;
  bool pending = false;
  const auto add = [&](ClientBase& client) noexcept {
    pending = pending || client.pending();
    entries[size++] = entry_of(client);
  };
  add(active);
  self.each_other(active, add);
  const timespec limit = to_timespec(pending ? Duration::zero() : then - active.now_);
  const bool any = ::ppoll(entries, size, &limit, nullptr) > 0;
  active.now_ = read_clock();
  if (any && entries[0].revents != 0) wake.drain();
  size = 3;
  self.each_other(active, [&](ClientBase& client) noexcept {
    const bool came = any && entries[size++].revents != 0;
    client.now_ = active.now_;
    if (!came && !client.pending()) return;
    if (client.dialling())
      client.finish_dial();
    else
      client.receive_arrived();
  });
  return {active.pending() || (any && entries[2].revents != 0), any && entries[1].revents != 0};
}

}  // namespace holdfast
