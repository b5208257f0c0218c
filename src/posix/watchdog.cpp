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

constinit const Keeper::Table Watchdog::table = {enter, sync, leave};

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
  client_.cancel();  // An attempt to connect, or sleep.
  (void)::pthread_join(thread_, nullptr);
  running_.store(false);
  {
    const Lock lock(*this);
    client_.now_ = Client::now();
    client_.close_transport();
    take_replies();  // What was in flight is the schedule's, and no lock's.
  }
  client_.close();
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
    take_replies();
    schedule_.handle_timeout(client_.now_);
    if (tell_one()) continue;
    send_due();
    Session& session = client_.session_;
    Instant until = earlier(schedule_.poll_timeout(), session.poll_timeout());
    const bool connects = client_.socket_ < 0 && schedule_.size() != 0;
    const bool connect_now = connects && client_.now_ >= client_.next_connect_at_;
    if (connects && !connect_now) until = earlier(until, client_.next_connect_at_);
    sleeping_until_ = until;
    ::pthread_mutex_unlock(&mutex_);
    if (connect_now)
      connect(until);
    else
      sleep_until(until);
    ::pthread_mutex_lock(&mutex_);
    sleeping_until_ = Instant();
    if (connect_now) {
      const ServerIdentity& server = session.identity();
      std::memset(run_id_, 0, sizeof run_id_);
      if (server.run_id_known) std::memcpy(run_id_, server.run_id, run_id_size);
    }
  }
  ::pthread_mutex_unlock(&mutex_);
}

// What the session has for the schedule. A failed or ended connection is put away here, so that the next one finds nothing
// in flight.
void Watchdog::take_replies() noexcept {
  Session& session = client_.session_;
  if (reconnect_) session.fail(Status::not_connected, "the client speaks to another server");
  reconnect_ = false;
  session.handle_timeout(client_.now_);
  for (;;) {
    Reply reply;
    while (session.poll_reply(reply, client_.now_))
      if (!schedule_.handle_reply(reply, client_.now_))
        session.fail(Status::protocol_error, "a reply of another shape than asked for");
    if (session.state() != SessionState::failed) return;
    client_.close_transport();
  }
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
    client_.transmit();  // Its bytes make room for the next.
  }
}

// Not for so long that holds which are about to run out would be told of it late.
void Watchdog::connect(Instant urgent) noexcept {
  constexpr Duration least = std::chrono::milliseconds(100);
  const Instant longest = client_.now_ + client_.config_.connect_timeout;
  (void)client_.connect_once(earlier(longest, later(urgent, client_.now_ + least)));
}

// Until then, until something arrives, or until wake(); no longer than sleep_max.
void Watchdog::sleep_until(Instant until) noexcept {
  Duration left = until - Client::now();
  if (left < Duration::zero()) left = Duration::zero();
  if (left > sleep_max) left = sleep_max;
  const timespec limit = {.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                          .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
  client_.transmit();
  const short events = static_cast<short>(client_.session_.unsent() ? POLLIN | POLLOUT : POLLIN);
  pollfd entries[] = {{.fd = client_.wake_, .events = POLLIN, .revents = 0},
                      {.fd = client_.socket_, .events = events, .revents = 0}};
  (void)::ppoll(entries, 2, &limit, nullptr);  // A descriptor below zero is passed over.
  client_.now_ = Client::now();
  if ((entries[0].revents & POLLIN) != 0) (void)client_.drain_cancel();
  if (client_.socket_ < 0 || entries[1].revents == 0) return;
  const MutableBytes space = client_.session_.receive_space();
  const auto received = client_.take_received(::recv(client_.socket_, space.data, space.size, MSG_DONTWAIT));
  if (received == Client::Received::closed) client_.close_transport();
}

}  // namespace holdfast
