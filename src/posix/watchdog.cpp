// SPDX-License-Identifier: MIT
#include "holdfast/watchdog.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "holdfast/detail/clock.hpp"
#include "holdfast/detail/hold_record.hpp"
#include "holdfast/proto/assert.hpp"
#include "poll_sockets.hpp"
#include "start_thread.hpp"
#include "wait_for.hpp"

namespace holdfast {

// Held while the watchdog's own state is looked at; never while a KeepOptions function runs.
struct Watchdog::Lock {
  explicit Lock(Watchdog& watchdog) noexcept : mutex(&watchdog.mutex_) { ::pthread_mutex_lock(mutex); }
  ~Lock() { ::pthread_mutex_unlock(mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  pthread_mutex_t* mutex;
};

constinit const Keeper::Table Watchdog::table = {attach, detach, enter, sync, leave, take_back};

Watchdog::Watchdog(const RenewalSchedule::Storage& storage) noexcept
    : Keeper(table),
      schedule_({may_renew, renewed}, storage, request_timeout_default),
      connection_(Buffers::storage_of(&buffers_)) {
  connection_.use(random_, &resolver_);
}

Watchdog::~Watchdog() {
  stop();
  if (inherited()) return;
  HOLDFAST_ASSERT(schedule_.size() == 0);  // What it keeps goes first, or is released.
  while (attached_ != nullptr) attached_->client->attach(nullptr);
}

// In a forked child there is no thread of ours, and the lock is as the fork found it.
bool Watchdog::inherited() const noexcept { return process_ != 0 && process_ != ::getpid(); }

// ---- Starting and stopping ---------------------------------------------------------------------------------------

Status Watchdog::start(ClientBase& client) noexcept {
  if (inherited()) return Status::forked;
  if (running_.load()) return Status::already_held;
  if (!client.connection().configured()) return Status::not_connected;
  connection_.dialer().set_pause_max(reconnect_kept_max);  // A hold of a short lease does not outlive a long pause.
  resolver_.forget();
  Status status = random_.open();
  if (status == Status::ok) status = wake_.open();
  if (status != Status::ok) {
    client.connection().set_error_number(errno);
    return status;
  }
  wake_.drain();
  connection_.configure_like(client.connection());
  schedule_.set_request_timeout(connection_.config().request_timeout);
  schedule_.set_witness(connection_.config().meter);
  stopping_ = false;
  process_ = ::getpid();
  if (const int error = start_thread(thread_, run, this); error != 0) {
    client.connection().set_error_number(error);
    return Status::system_error;
  }
  running_.store(true);
  client.attach(this);
  return Status::ok;
}

void Watchdog::stop() noexcept {
  if (!running_.load() || inherited()) return;
  {
    const Lock lock(*this);
    stopping_ = true;
  }
  wake_.wake();
  (void)::pthread_join(thread_, nullptr);
  running_.store(false);
  {
    const Lock lock(*this);
    connection_.set_now(read_clock());
    connection_.close_transport();
    take_replies();  // What was in flight is the schedule's, and no lock's.
    connection_.dialer().abandon();
  }
  resolver_.forget();
}

std::size_t Watchdog::size() noexcept {
  const Lock lock(*this);
  return schedule_.size();
}

// ---- What the clients' threads call ------------------------------------------------------------------------------

void Watchdog::attach(Keeper& keeper, Attachment& attachment) noexcept {
  auto& self = static_cast<Watchdog&>(keeper);
  const Lock lock(self);
  if (self.process_ == 0) self.process_ = ::getpid();  // Whose clients these are.
  attachment.next = self.attached_;
  self.attached_ = &attachment;
}

void Watchdog::detach(Keeper& keeper, Attachment& attachment) noexcept {
  auto& self = static_cast<Watchdog&>(keeper);
  const Lock lock(self);
  Attachment** place = &self.attached_;
  while (*place != &attachment) place = &(*place)->next;
  *place = attachment.next;
}

Status Watchdog::enter(Keeper& keeper, HoldRecord& record) noexcept {
  auto& self = static_cast<Watchdog&>(keeper);
  const ServerIdentity& server = record.client().server();
  const Lock lock(self);
  RenewalSchedule::Place* const place = self.schedule_.enter(kept_hold(record.machine_, &record), read_clock());
  if (place == nullptr) return Status::too_many_requests;
  record.place_ = place;
  record.keeper_ = &self;
  // Another server than ours says "not yours" of every hold.
  self.reconnect_ = self.reconnect_ || (server.run_id_known && self.run_id_[0] != '\0' &&
                                        std::memcmp(server.run_id, self.run_id_, run_id_size) != 0);
  if (self.reconnect_ || self.schedule_.poll_timeout() < self.sleeping_until_) self.wake_.wake();
  return Status::ok;
}

void Watchdog::sync(Keeper& keeper, HoldRecord& record) noexcept {
  auto& self = static_cast<Watchdog&>(keeper);
  const Lock lock(self);
  if (auto* const place = static_cast<RenewalSchedule::Place*>(record.place_); place != nullptr) {
    LockMachine& machine = record.machine_;
    if (self.schedule_.lost(*place))
      machine.disown(read_clock());
    else
      machine.confirm(place->hold.confirmed_at, place->hold.valid_until);
    if (machine.valid_until() != Instant())
      self.schedule_.update(*place, kept_hold(machine, &record), read_clock());
    else
      self.give_up_place(record);  // Lost is final, whatever is still on its way to us; its own thread tells.
  }
  record.publish_unkept();
}

void Watchdog::leave(Keeper& keeper, HoldRecord& record) noexcept {
  auto& self = static_cast<Watchdog&>(keeper);
  const Lock lock(self);
  self.give_up_place(record);
  record.keeper_ = nullptr;
  while (self.telling_ == &record && ::pthread_equal(::pthread_self(), self.thread_) == 0)
    ::pthread_cond_wait(&self.told_, &self.mutex_);
}

// Over our own connection. The thread may sleep meanwhile, and look at what is to be transmitted: that does not change.
void Watchdog::take_back(Keeper& keeper, ClientBase& client) noexcept {
  auto& self = static_cast<Watchdog&>(keeper);
  const Lock lock(self);
  self.connection_.session().take_back_for(client.connection().session());
  self.wake_.wake();
}

void Watchdog::give_up_place(HoldRecord& record) noexcept {
  if (record.place_ != nullptr) schedule_.leave(*static_cast<RenewalSchedule::Place*>(record.place_));
  record.place_ = nullptr;
}

// ---- What the schedule calls, under the lock ---------------------------------------------------------------------

bool Watchdog::may_renew(void* holder, Instant now) noexcept {
  return static_cast<HoldRecord*>(holder)->may_renew(now);
}

void Watchdog::renewed(const KeptHold& hold) noexcept {
  static_cast<HoldRecord*>(hold.holder)->keeping_.publish(hold.valid_until, hold.risky_from());
}

// ---- The thread --------------------------------------------------------------------------------------------------

void* Watchdog::run(void* self) noexcept {
  static_cast<Watchdog*>(self)->loop();
  return nullptr;
}

void Watchdog::loop() noexcept {
  ::pthread_mutex_lock(&mutex_);
  while (!stopping_) {
    connection_.set_now(read_clock());
    connect();
    take_replies();
    schedule_.handle_timeout(connection_.now());
    if (tell_one()) continue;
    send_due();
    const Instant until = earlier(schedule_.poll_timeout(), connection_timeout());
    sleeping_until_ = until;
    ::pthread_mutex_unlock(&mutex_);
    const bool came = sleep_until(until);
    ::pthread_mutex_lock(&mutex_);
    if (came && connection_.dialling()) connection_.finish_dial();
    sleeping_until_ = Instant();
  }
  ::pthread_mutex_unlock(&mutex_);
}

// No step of it waits: neither a slow server nor a slow resolver keeps the news of a loss from its holder.
void Watchdog::connect() noexcept {
  resolver_.poll(connection_);
  if (connection_.now() == Instant::max()) return;
  if (needed()) connection_.dial();
  if (!connection_.handle_ready(connection_.now())) return;
  const ServerIdentity& server = connection_.session().identity();
  std::memset(run_id_, 0, sizeof run_id_);
  if (server.run_id_known) std::memcpy(run_id_, server.run_id, run_id_size);
}

// With nothing to keep and nothing to take back, a connection that was lost is not made anew.
bool Watchdog::needed() const noexcept {
  return connection_.socket() >= 0 || schedule_.size() != 0 || connection_.compensations_pending() != 0;
}

Instant Watchdog::connection_timeout() const noexcept {
  return earlier(connection_.session().poll_timeout(), needed() ? connection_.dialer().poll_timeout() : Instant::max());
}

// What has arrived, and what the session has for the schedule. Arrived replies count before any deadline is judged. A failed
// or ended connection is put away here, so that the next one finds nothing in flight.
void Watchdog::take_replies() noexcept {
  Session& session = connection_.session();
  if (reconnect_) session.fail(Status::not_connected, "the client speaks to another server");
  reconnect_ = false;
  auto received = Connection::Received::bytes;
  while (received == Connection::Received::bytes) {
    received = connection_.look();
    hand_over();
  }
  session.handle_timeout(connection_.now());
  hand_over();
  if (received != Connection::Received::closed && session.state() != SessionState::failed) return;
  connection_.close_transport();
  hand_over();
}

void Watchdog::hand_over() noexcept {
  Reply reply;
  while (connection_.session().poll_reply(reply, connection_.now()))
    if (!schedule_.handle_reply(reply, connection_.now()))
      connection_.session().fail(Status::protocol_error, "a reply of another shape than asked for");
}

// True if somebody was told something: the lock was let go of meanwhile.
bool Watchdog::tell_one() noexcept {
  void* holder = nullptr;
  const RenewalEvent event = schedule_.poll_event(holder);
  if (event == RenewalEvent::none) return false;
  auto& record = *static_cast<HoldRecord*>(holder);
  const bool lost = event == RenewalEvent::lost;
  if (lost) {
    record.keeping_.withdraw();
    if (record.keeping_.first_loss()) NodeTask::tell_loss(record.machine_, connection_, false);
  } else {
    record.keeping_.doubt();
  }
  Keeping::Callback call = nullptr;
  const bool ours = record.keeping_.claim(lost ? Keeping::News::lost : Keeping::News::at_risk, call);
  if (!ours || call == nullptr) return true;
  void* const context = record.keeping_.options().context;
  telling_ = &record;
  ::pthread_mutex_unlock(&mutex_);
  call(context);
  ::pthread_mutex_lock(&mutex_);
  telling_ = nullptr;
  ::pthread_cond_broadcast(&told_);
  return true;
}

void Watchdog::send_due() noexcept {
  Session& session = connection_.session();
  while (session.ready()) {
    const Session::Place place = session.open(false);
    std::size_t size = 0;
    if (place.request == nullptr || !schedule_.poll_request(place.space, *place.request, size, connection_.now()))
      break;
    place.request->tag.requester = &schedule_;
    session.commit(*place.request, size, connection_.now());
    calls_.store(calls_.load() + 1);
    look_and_transmit();  // Its bytes make room for the next.
  }
  look_and_transmit();
}

// What has arrived is no answer to what leaves now.
void Watchdog::look_and_transmit() noexcept {
  if (connection_.session().wants_look()) take_replies();
  connection_.transmit();
}

// Until then, until something arrives, or until wake(); no longer than sleep_max. True if it came on the connection.
bool Watchdog::sleep_until(Instant until) noexcept {
  if (connection_.now() == Instant::max()) {  // Without a clock everything is due, and nothing may spin.
    (void)wait_for(wake_.descriptor(), POLLIN, sleep_max);
    wake_.drain();
    return false;
  }
  return poll_sockets(connection_, wake_, until, resolver_.descriptor(), POLLIN).own;
}

}  // namespace holdfast
