// SPDX-License-Identifier: MIT
#include "holdfast/lingering.hpp"

#include <poll.h>

#include "client_hot.hpp"
#include "hold_record_hot.hpp"
#include "holdfast/detail/blocking_lock.hpp"
#include "holdfast/proto/assert.hpp"
#include "push_link.hpp"
#include "wait_for.hpp"

namespace holdfast {

constinit const Lingerer::Table Lingering::table = {enter, leave, acquire, release, is_idle, look};

Lingering::Lingering(ClientBase& client) noexcept : Lingerer(table), client_(&client) {
  HOLDFAST_ASSERT(client.lingerer_ == nullptr);
  client.lingerer_ = this;
}

Lingering::~Lingering() {
  for (const Place& place : places_) HOLDFAST_ASSERT(place.hold == nullptr);
  client_->lingerer_ = nullptr;
}

std::size_t Lingering::idle() const noexcept {
  std::size_t count = 0;
  for (const Place& place : places_)
    if (place.hold != nullptr && place.linger.idle() && !inherited(place)) ++count;
  return count;
}

// ---- Places --------------------------------------------------------------------------------------------------------

int Lingering::enter(Lingerer& lingerer, OwnedHold& hold, Duration linger) noexcept {
  auto& self = static_cast<Lingering&>(lingerer);
  Place* free = nullptr;
  for (Place& place : self.places_) {
    if (place.hold == nullptr && free == nullptr) free = &place;
    if (place.hold != &hold) continue;
    ++place.handles;
    return static_cast<int>(&place - self.places_);
  }
  if (free == nullptr) return -1;
  *free = {.hold = &hold, .handles = 1, .incarnation = hold.incarnation_, .linger = Linger(linger)};
  return static_cast<int>(free - self.places_);
}

// What is idle is released with its record, behind this.
void Lingering::leave(Lingerer& lingerer, int index) noexcept {
  auto& self = static_cast<Lingering&>(lingerer);
  Place& place = self.places_[index];
  if (--place.handles != 0) return;
  if (self.inherited(place)) {
    place.waiter = nullptr;  // The parent's.
  } else if (place.waiter != nullptr) {
    PushLink link(*self.client_, self.client_->push_);
    link.make_current();
    link.leave(*place.waiter, false);
  }
  place.hold->keeping_.end_idle();
  place = Place();
}

bool Lingering::is_idle(const Lingerer& lingerer, int index) noexcept {
  const auto& self = static_cast<const Lingering&>(lingerer);
  const Place& place = self.places_[index];
  return place.linger.idle() && !self.inherited(place);
}

// In a forked child nothing of it is ours: neither the hold nor the subscription.
inline bool Lingering::inherited(const Place& place) const noexcept {
  return client_->forked() || place.incarnation != client_->random_source_.incarnation();
}

// REQUIRES: the client has started anew.
void Lingering::forget_parent(Place& place) noexcept {
  place.incarnation = client_->random_source_.incarnation();
  place.waiter = nullptr;
  place.linger.end();
  place.hold->keeping_.end_idle();
}

// Listens for recalls of a hold that is to come. What was said so far was not of it.
void Lingering::listen(Place& place) noexcept {
  PushLink link(*client_, client_->push_);
  link.make_current();
  Subscriber& subscriber = link.subscriber();
  OwnedHold& hold = *place.hold;
  if (place.waiter == nullptr) {
    Token token;
    if (hold.ways_->draw_ordinal(hold, token) != Status::ok) return;
    place.waiter = subscriber.enter(*hold.machine_.kind().announcement, Key(token.client()), client_->now_);
    if (place.waiter == nullptr) return;  // The table is full: nothing stays.
    Subscriber::address(*place.waiter, hold.machine_.token());
  }
  subscriber.begin_try(*place.waiter);
  subscriber.end_try(*place.waiter);
}

// ---- Calls ---------------------------------------------------------------------------------------------------------

Status Lingering::acquire(Lingerer& lingerer, BlockingLock& lock, Duration wait, bool once) noexcept {
  auto& self = static_cast<Lingering&>(lingerer);
  Place& place = self.places_[lock.handle_->place];
  if (place.linger.idle() && !self.inherited(place)) [[likely]] {
    OwnedHold& hold = *place.hold;
    if (hold.keeper_ != nullptr) [[unlikely]]
      hold.keeper_->sync(hold);
    const Instant now = ClientBase::now();
    const LockTiming& timing = lock.handle_->timing;
    const bool kept_alike = hold.kept_ == hold.keeping_.kept(timing.automatic());
    if (!hold.client_->cancelled() && wait >= Duration::zero() &&
        place.linger.take(hold.machine_, timing, kept_alike, now)) [[likely]] {
      pick_up(place, now);
      // As at the end of any acquire: what was granted when cancel() came is wanted by nobody any more.
      return hold.client_->cancelled() ? self.refuse(place) : lock.count_in(Status::ok);
    }
  }
  return self.acquire_anew(place, lock, wait, once);
}

[[gnu::noinline]] Status Lingering::acquire_anew(Place& place, BlockingLock& lock, Duration wait, bool once) noexcept {
  OwnedHold& hold = *place.hold;
  if (!once && wait < Duration::zero()) return Status::invalid_argument;
  if (const Status status = hold.begin_anew(); status != Status::ok) return status;
  if (inherited(place)) forget_parent(place);
  if (place.linger.idle() && !client_->cancelled()) let_go(place);
  const bool begins = !hold.machine_.held(client_->now_);
  if (begins) listen(place);
  const LockTiming* const timing = &lock.handle_->timing;
  const Status status = lock.count_in(once ? hold.try_acquire(timing) : hold.acquire(wait, timing));
  if (!begins || status != Status::ok) return status;
  place.linger.begin();
  PushLink link(*client_, client_->push_);
  if (place.waiter != nullptr && link.subscriber().woken(*place.waiter)) place.linger.recall();
  return status;
}

Status Lingering::release(Lingerer& lingerer, BlockingLock& lock, bool posted) noexcept {
  auto& self = static_cast<Lingering&>(lingerer);
  Place& place = self.places_[lock.handle_->place];
  OwnedHold& hold = *place.hold;
  if (!self.inherited(place)) [[likely]] {
    if (place.linger.idle()) return Status::not_held;
    if (hold.keeper_ != nullptr) [[unlikely]]
      hold.keeper_->sync(hold);
    const Instant now = ClientBase::now();
    if (!hold.keeping_.too_old(now) && place.linger.stay(hold.machine_, now) && let_lie(place)) [[likely]] {
      if (posted) hold.post_outcome_ = Status::ok;
      lock.take_out();
      return Status::ok;
    }
  }
  const std::uint32_t count = hold.machine_.count();
  return lock.count_out(count, posted ? hold.post_release() : hold.release());
}

// False: nobody would renew it.
inline bool Lingering::let_lie(Place& place) noexcept {
  OwnedHold& hold = *place.hold;
  if (hold.keeper_ == nullptr) [[likely]] {
    hold.keeping_.begin_idle();
    return true;
  }
  Keeper& keeper = *hold.keeper_;
  hold.leave_keeper();  // It reads what changes here.
  hold.keeping_.begin_idle();
  if (keeper.enter(hold) == Status::ok) return true;
  hold.keeping_.end_idle();
  place.linger.end();
  return false;
}

inline void Lingering::pick_up(Place& place, Instant now) noexcept {
  OwnedHold& hold = *place.hold;
  Keeper* const keeper = hold.keeper_;
  if (keeper != nullptr) [[unlikely]]
    hold.leave_keeper();
  hold.keeping_.end_idle();
  hold.keeping_.begin_hold(now);
  NodeTask::tell_grant(hold.machine_, *hold.client_);
  hold.publish_unkept();
  if (keeper != nullptr) [[unlikely]]
    (void)keeper->enter(hold);  // The place that it has just left.
}

[[gnu::noinline]] Status Lingering::refuse(Place& place) noexcept {
  let_go(place);
  return client_->conclude(Status::cancelled);
}

// For good. Its record repeats what is not answered.
[[gnu::noinline]] void Lingering::let_go(Place& place) noexcept {
  OwnedHold& hold = *place.hold;
  place.linger.end();
  (void)hold.post_release();
  (void)hold.machine_.forget_loss();  // It was nobody's when it was lost.
  hold.keeping_.end_idle();
  hold.keeping_.withdraw();
}

// ---- Listening -----------------------------------------------------------------------------------------------------

Instant Lingering::look(Lingerer& lingerer, bool closing) noexcept {
  auto& self = static_cast<Lingering&>(lingerer);
  ClientBase& client = *self.client_;
  if (client.forked()) return Instant::max();
  bool listens = false;
  for (Place& place : self.places_) {
    if (place.hold == nullptr) continue;
    if (self.inherited(place)) self.forget_parent(place);
    listens = listens || place.waiter != nullptr;
  }
  if (!listens) return Instant::max();
  PushLink link(client, client.push_);
  if (!closing) {
    link.make_current();
    link.work(true);
    if (!link.dialling() || wait_for(link.socket(), POLLOUT, Duration::zero()) > 0) {
      link.take();
      link.work(true);  // What it has to say to that.
    }
  }
  Instant next = link.timeout(true);
  for (Place& place : self.places_)
    if (place.hold != nullptr && place.waiter != nullptr) next = earlier(next, self.serve(place, closing));
  return next;
}

Instant Lingering::serve(Place& place, bool closing) noexcept {
  OwnedHold& hold = *place.hold;
  const Instant now = client_->now_;
  const Subscriber& subscriber = PushLink(*client_, client_->push_).subscriber();
  if (subscriber.woken(*place.waiter)) place.linger.recall();
  if (!closing && subscriber.confirmed(*place.waiter)) place.linger.hear(now);
  if (place.linger.idle()) {
    hold.catch_up();
    if (closing || place.linger.due(hold.machine_, now)) let_go(place);
  } else if (hold.machine_.wants_compensation()) {
    hold.settle();
  }
  return hold.machine_.held(now) ? earlier(now + linger_look, place.linger.poll_timeout(hold.machine_))
                                 : Instant::max();
}

}  // namespace holdfast
