// SPDX-License-Identifier: MIT
#include "holdfast/watchdog.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

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
    : Keeper(table), home_({may_renew, renewed}, storage) {
  home_.use(random_);
}

Watchdog::~Watchdog() {
  stop();
  if (inherited()) return;
  HOLDFAST_ASSERT(home_.schedule().size() == 0);  // What it keeps goes first, or is released.
  while (attached_ != nullptr) attached_->client->attach(nullptr);
}

// In a forked child there is no thread of ours, and the lock is as the fork found it.
bool Watchdog::inherited() const noexcept { return process_ != 0 && process_ != ::getpid(); }

// ---- Starting and stopping ---------------------------------------------------------------------------------------

Status Watchdog::start(ClientBase& client) noexcept {
  if (inherited()) return Status::forked;
  if (running_.load()) return Status::already_held;
  if (!client.connection().configured()) return Status::not_connected;
  Status status = random_.open();
  if (status == Status::ok) status = wake_.open();
  if (status != Status::ok) {
    client.connection().set_error_number(errno);
    return status;
  }
  wake_.drain();
  {
    const Lock lock(*this);
    if (branches_ == nullptr || !branches_->table().start(*branches_, client))
      home_.connection().configure_like(client.connection());
    home_.configured();
  }
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
  const Lock lock(*this);
  for (WatchdogLane* lane = &home_; lane != nullptr; lane = lane->next()) lane->stop(read_clock());
}

std::size_t Watchdog::size() noexcept {
  const Lock lock(*this);
  std::size_t size = 0;
  for (WatchdogLane* lane = &home_; lane != nullptr; lane = lane->next()) size += lane->schedule().size();
  return size;
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
  WatchdogLane* const lane = self.lane_for(record.client(), &record);
  if (lane == nullptr) return Status::too_many_requests;
  RenewalSchedule::Place* const place = lane->schedule().enter(kept_hold(record.machine_, &record), read_clock());
  if (place == nullptr) return Status::too_many_requests;
  record.place_ = place;
  record.keeper_ = &self;
  if (lane->compare(server) || lane->schedule().poll_timeout() < self.sleeping_until_) self.wake_.wake();
  return Status::ok;
}

void Watchdog::sync(Keeper& keeper, HoldRecord& record) noexcept {
  auto& self = static_cast<Watchdog&>(keeper);
  const Lock lock(self);
  if (auto* const place = static_cast<RenewalSchedule::Place*>(record.place_); place != nullptr) {
    LockMachine& machine = record.machine_;
    RenewalSchedule& schedule = self.lane_of(*place).schedule();
    if (schedule.lost(*place))
      machine.disown(read_clock());
    else
      machine.confirm(place->hold.confirmed_at, place->hold.valid_until);
    if (machine.valid_until() != Instant())
      schedule.update(*place, kept_hold(machine, &record), read_clock());
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
  WatchdogLane* const lane = self.lane_for(client, nullptr);
  if (lane == nullptr) return;
  lane->connection().session().take_back_for(client.connection().session());
  self.wake_.wake();
}

void Watchdog::give_up_place(HoldRecord& record) noexcept {
  if (auto* const place = static_cast<RenewalSchedule::Place*>(record.place_); place != nullptr)
    lane_of(*place).schedule().leave(*place);
  record.place_ = nullptr;
}

void Watchdog::keep_on(HoldRecord& record, WatchdogLane& from, WatchdogLane& to) noexcept {
  auto& place = *static_cast<RenewalSchedule::Place*>(record.place_);
  if (from.schedule().lost(place)) return;
  const Instant now = later(from.connection().now(), to.connection().now());
  RenewalSchedule::Place* const there = to.schedule().enter(place.hold, now);
  if (there == nullptr) return;
  to.schedule().put_off(*there, now);
  from.schedule().leave(place);
  record.place_ = there;
}

// Where a hold of this client goes, or what it has to take back. nullptr: there is no lane for it.
WatchdogLane* Watchdog::lane_for(ClientBase& client, const HoldRecord* record) noexcept {
  if (branches_ != nullptr) return branches_->table().lane_for(*branches_, client, record);
  return client.branch() ? nullptr : &home_;
}

WatchdogLane& Watchdog::lane_of(const RenewalSchedule::Place& place) noexcept {
  WatchdogLane* lane = &home_;
  while (lane->next() != nullptr && !lane->schedule().has(place)) lane = lane->next();
  return *lane;
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
    if (branches_ == nullptr)
      home_.work(read_clock());
    else
      branches_->table().work(*branches_);
    if (tell_one()) continue;
    Instant until = Instant::max();
    for (WatchdogLane* lane = &home_; lane != nullptr; lane = lane->next()) {
      calls_.store(calls_.load() + lane->send_due());
      until = earlier(until, lane->next_timeout());
    }
    sleeping_until_ = until;
    if (branches_ == nullptr)
      sleep();
    else
      branches_->table().sleep(*branches_, until);
    sleeping_until_ = Instant();
  }
  ::pthread_mutex_unlock(&mutex_);
}

bool Watchdog::tell_one() noexcept {
  for (WatchdogLane* lane = &home_; lane != nullptr; lane = lane->next())
    if (tell_one_of(*lane)) return true;
  return false;
}

// True if somebody was told something: the lock was let go of meanwhile.
bool Watchdog::tell_one_of(WatchdogLane& lane) noexcept {
  void* holder = nullptr;
  const RenewalEvent event = lane.schedule().poll_event(holder);
  if (event == RenewalEvent::none) return false;
  auto& record = *static_cast<HoldRecord*>(holder);
  const bool lost = event == RenewalEvent::lost;
  if (lost) {
    record.keeping_.withdraw();
    if (record.keeping_.first_loss()) NodeTask::tell_loss(record.machine_, lane.connection(), false);
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

// Until then, until something arrives, or until wake(); no longer than sleep_max. The lock is let go of meanwhile.
void Watchdog::sleep() noexcept {
  Connection& connection = home_.connection();
  ::pthread_mutex_unlock(&mutex_);
  bool came = false;
  if (connection.now() == Instant::max()) {  // Without a clock everything is due, and nothing may spin.
    (void)wait_for(wake_.descriptor(), POLLIN, sleep_max);
    wake_.drain();
  } else {
    came = poll_sockets(connection, wake_, sleeping_until_, home_.resolver(), POLLIN).own;
  }
  ::pthread_mutex_lock(&mutex_);
  if (came) home_.finish_dial();
}

}  // namespace holdfast
