// SPDX-License-Identifier: MIT
#include "holdfast/watchdog.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "client_hot.hpp"
#include "holdfast/hold_record.hpp"

namespace holdfast {

namespace {

// For the thread's own frames, the resolver, and what the callbacks need.
constexpr std::size_t stack_size = 256 * 1024;

}  // namespace

// Held while the watchdog's own state is looked at; never while a KeepOptions function runs.
struct Watchdog::Lock {
  explicit Lock(Watchdog& watchdog) noexcept : mutex(&watchdog.mutex_) { ::pthread_mutex_lock(mutex); }
  ~Lock() { ::pthread_mutex_unlock(mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  pthread_mutex_t* mutex;
};

constinit const Keeper::Table Watchdog::table = {enter, sync, leave, take_back};

Watchdog::Watchdog(const RenewalSchedule::Storage& storage) noexcept
    : Keeper(table),
      schedule_({may_renew, renewed}, storage, request_timeout_default),
      client_(MutableBytes{transmit_, sizeof transmit_}) {}

Watchdog::~Watchdog() { stop(); }

// In a forked child there is no thread of ours, and the lock is as the fork found it.
bool Watchdog::inherited() const noexcept { return process_ != 0 && process_ != ::getpid(); }

// ---- Starting and stopping ---------------------------------------------------------------------------------------

Status Watchdog::start(Client& client) noexcept {
  if (inherited()) return Status::forked;
  if (running_.load()) return Status::already_held;
  if (!client.configured_) return Status::not_connected;
  client_.question_ = &resolver_;
  client_.dialer_.set_pause_max(reconnect_kept_max);  // A hold of a short lease does not outlive a long pause.
  resolver_.forget();
  if (const Status status = client_.prepare_like(client); status != Status::ok) return status;
  schedule_.set_request_timeout(client_.config_.request_timeout);
  stopping_ = false;
  process_ = ::getpid();
  // Signals are the application's.
  sigset_t all;
  sigset_t before;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  int error = ::pthread_attr_init(&attributes);
  if (error == 0) {
    (void)::pthread_attr_setstacksize(&attributes, stack_size);  // Where it is refused, the default does.
    error = ::pthread_create(&thread_, &attributes, run, this);
    (void)::pthread_attr_destroy(&attributes);
  }
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    client.error_number_ = error;
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
  wake();
  (void)::pthread_join(thread_, nullptr);
  running_.store(false);
  {
    const Lock lock(*this);
    client_.now_ = Client::now();
    client_.close_transport();
    take_replies();  // What was in flight is the schedule's, and no lock's.
  }
  client_.close();
  resolver_.forget();
}

std::size_t Watchdog::size() noexcept {
  const Lock lock(*this);
  return schedule_.size();
}

void Watchdog::wake() noexcept {
  if (::write(client_.wake_write_, "", 1) < 0) return;  // A full pipe wakes as well.
}

// ---- What the clients' threads call ------------------------------------------------------------------------------

Status Watchdog::enter(Keeper& keeper, HoldRecord& record) noexcept {
  auto& self = static_cast<Watchdog&>(keeper);
  const LockMachine& machine = record.machine_;
  const ServerIdentity& server = record.client_->session_.identity();
  const Lock lock(self);
  const Instant now = Client::now();
  RenewalSchedule::Place* const place = self.schedule_.enter({.holder = &record,
                                                              .kind = &machine.kind(),
                                                              .key = machine.key(),
                                                              .token = &machine.token(),
                                                              .lease = machine.timing().lease,
                                                              .validity = machine.validity(),
                                                              .confirmed_at = machine.confirmed_at(),
                                                              .valid_until = machine.valid_until()},
                                                             now);
  if (place == nullptr) return Status::too_many_requests;
  record.place_ = place;
  record.keeper_ = &self;
  // Another server than ours says "not yours" of every hold.
  self.reconnect_ = self.reconnect_ || (server.run_id_known && self.run_id_[0] != '\0' &&
                                        std::memcmp(server.run_id, self.run_id_, run_id_size) != 0);
  if (self.reconnect_ || self.schedule_.poll_timeout() < self.sleeping_until_) self.wake();
  return Status::ok;
}

void Watchdog::sync(Keeper& keeper, HoldRecord& record) noexcept {
  auto& self = static_cast<Watchdog&>(keeper);
  const Lock lock(self);
  if (auto* const place = static_cast<RenewalSchedule::Place*>(record.place_); place != nullptr) {
    LockMachine& machine = record.machine_;
    if (self.schedule_.lost(*place))
      machine.disown(Client::now());
    else
      machine.confirm(place->hold.confirmed_at);
    if (machine.valid_until() != Instant())
      self.schedule_.confirm(*place, machine.confirmed_at(), Client::now());
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
void Watchdog::take_back(Keeper& keeper, Client& client) noexcept {
  auto& self = static_cast<Watchdog&>(keeper);
  const Lock lock(self);
  self.client_.session_.take_back_for(client.session_);
  self.wake();
}

void Watchdog::give_up_place(HoldRecord& record) noexcept {
  if (record.place_ != nullptr) schedule_.leave(*static_cast<RenewalSchedule::Place*>(record.place_));
  record.place_ = nullptr;
}

// ---- What the schedule calls, under the lock ---------------------------------------------------------------------

bool Watchdog::may_renew(void* holder, Instant now) noexcept {
  return static_cast<HoldRecord*>(holder)->may_renew(now);
}

void Watchdog::renewed(void* holder, Instant asked_at, Instant valid_until) noexcept {
  auto& record = *static_cast<HoldRecord*>(holder);
  record.risky_from_.store((asked_at + record.machine_.risk_after()).nanoseconds());
  record.valid_until_.store(valid_until.nanoseconds());
}

// ---- The thread --------------------------------------------------------------------------------------------------

void* Watchdog::run(void* self) noexcept {
  static_cast<Watchdog*>(self)->loop();
  return nullptr;
}

void Watchdog::loop() noexcept {
  ::pthread_mutex_lock(&mutex_);
  while (!stopping_) {
    client_.now_ = Client::now();
    connect();
    take_replies();
    schedule_.handle_timeout(client_.now_);
    if (tell_one()) continue;
    send_due();
    const Instant until = earlier(schedule_.poll_timeout(), connection_timeout());
    sleeping_until_ = until;
    ::pthread_mutex_unlock(&mutex_);
    const bool came = sleep_until(until);
    ::pthread_mutex_lock(&mutex_);
    if (came && client_.dialling()) client_.finish_dial();
    sleeping_until_ = Instant();
  }
  ::pthread_mutex_unlock(&mutex_);
}

// No step of it waits: neither a slow server nor a slow resolver keeps the news of a loss from its holder.
void Watchdog::connect() noexcept {
  resolver_.poll(client_);
  if (client_.now_ == Instant::max()) return;
  if (needed()) client_.dial();
  if (!client_.session_.ready() || client_.dialer_.ready()) return;
  client_.note_ready();
  const ServerIdentity& server = client_.session_.identity();
  std::memset(run_id_, 0, sizeof run_id_);
  if (server.run_id_known) std::memcpy(run_id_, server.run_id, run_id_size);
}

// With nothing to keep and nothing to take back, a connection that was lost is not made anew.
bool Watchdog::needed() const noexcept {
  return client_.socket_ >= 0 || schedule_.size() != 0 || client_.compensations_pending() != 0;
}

Instant Watchdog::connection_timeout() const noexcept {
  return earlier(client_.session_.poll_timeout(), needed() ? client_.dialer_.poll_timeout() : Instant::max());
}

// What has arrived, and what the session has for the schedule. Arrived replies count before any deadline is judged. A failed
// or ended connection is put away here, so that the next one finds nothing in flight.
void Watchdog::take_replies() noexcept {
  Session& session = client_.session_;
  if (reconnect_) session.fail(Status::not_connected, "the client speaks to another server");
  reconnect_ = false;
  auto received = Client::Received::bytes;
  while (received == Client::Received::bytes) {
    received = client_.look();
    hand_over();
  }
  session.handle_timeout(client_.now_);
  hand_over();
  if (received != Client::Received::closed && session.state() != SessionState::failed) return;
  client_.close_transport();
  hand_over();
}

void Watchdog::hand_over() noexcept {
  Reply reply;
  while (client_.session_.poll_reply(reply, client_.now_))
    if (!schedule_.handle_reply(reply, client_.now_))
      client_.session_.fail(Status::protocol_error, "a reply of another shape than asked for");
}

// True if somebody was told something: the lock was let go of meanwhile.
bool Watchdog::tell_one() noexcept {
  void* holder = nullptr;
  const RenewalEvent event = schedule_.poll_event(holder);
  if (event == RenewalEvent::none) return false;
  auto& record = *static_cast<HoldRecord*>(holder);
  const bool lost = event == RenewalEvent::lost;
  if (lost)
    record.valid_until_.store(0);
  else
    record.risky_from_.store(0);
  const auto call = lost ? record.keep_.on_lost : record.keep_.on_at_risk;
  if ((lost ? record.loss_told_ : record.risk_told_).exchange(true) || call == nullptr) return true;
  void* const context = record.keep_.context;
  telling_ = &record;
  ::pthread_mutex_unlock(&mutex_);
  call(context);
  ::pthread_mutex_lock(&mutex_);
  telling_ = nullptr;
  ::pthread_cond_broadcast(&told_);
  return true;
}

void Watchdog::send_due() noexcept {
  Session& session = client_.session_;
  while (session.ready()) {
    const Session::Place place = session.open(false);
    std::size_t size = 0;
    if (place.request == nullptr || !schedule_.poll_request(place.space, *place.request, size, client_.now_)) break;
    place.request->tag.requester = &schedule_;
    session.commit(*place.request, size, client_.now_);
    calls_.store(calls_.load() + 1);
    look_and_transmit();  // Its bytes make room for the next.
  }
  look_and_transmit();
}

// What has arrived is no answer to what leaves now.
void Watchdog::look_and_transmit() noexcept {
  if (client_.session_.wants_look()) take_replies();
  client_.transmit();
}

// Until then, until something arrives, or until wake(); no longer than sleep_max. True if it came on the connection.
bool Watchdog::sleep_until(Instant until) noexcept {
  if (client_.now_ == Instant::max()) {  // Without a clock everything is due, and nothing may spin.
    (void)Client::wait_for(client_.wake_, POLLIN, sleep_max);
    client_.drain_wakes();
    return false;
  }
  return client_.poll_sockets(until, resolver_.descriptor(), POLLIN).own;
}

}  // namespace holdfast
