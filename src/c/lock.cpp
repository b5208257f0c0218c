// SPDX-License-Identifier: MIT
//
// The calls of every lock.
#include "lock.hpp"

using namespace holdfast;
using namespace holdfast::c;

namespace {

// The outcome of one of its calls.
template <class... Parameters, class... Arguments>
holdfast_status call(holdfast_lock* storage, Status (*LockCalls::*which)(void*, Parameters...) noexcept,
                     Arguments&&... arguments) noexcept {
  LockObject* const object = object_in(storage);
  if (object == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  return to_c((object->calls().*which)(object->lock(), static_cast<Arguments&&>(arguments)...));
}

// What it is asked; `otherwise` where it is no lock.
template <class Answer>
Answer ask(const holdfast_lock* storage, Answer (*LockCalls::*which)(const void*) noexcept, Answer otherwise) noexcept {
  const LockObject* const object = object_in(storage);
  return object == nullptr ? otherwise : (object->calls().*which)(object->lock());
}

}  // namespace

void holdfast_lock_destroy(holdfast_lock* lock) noexcept {
  LockObject* const object = object_in(lock);
  if (object == nullptr) return;
  holdfast_lock* const partner = object->partner();
  destroy_in(lock);
  if (partner != nullptr) destroy_in(partner);
}

holdfast_status holdfast_lock_configuration(const holdfast_lock* lock) noexcept {
  return to_c(ask(lock, &LockCalls::configuration, Status::invalid_argument));
}

holdfast_status holdfast_lock_try_acquire(holdfast_lock* lock) noexcept { return call(lock, &LockCalls::try_acquire); }

holdfast_status holdfast_lock_acquire(holdfast_lock* lock, int64_t wait_ms) noexcept {
  return call(lock, &LockCalls::acquire, of_milliseconds(wait_ms));
}

holdfast_status holdfast_lock_renew(holdfast_lock* lock) noexcept { return call(lock, &LockCalls::renew); }
holdfast_status holdfast_lock_release(holdfast_lock* lock) noexcept { return call(lock, &LockCalls::release); }
holdfast_status holdfast_lock_post_release(holdfast_lock* lock) noexcept {
  return call(lock, &LockCalls::post_release);
}
holdfast_status holdfast_lock_forget_loss(holdfast_lock* lock) noexcept { return call(lock, &LockCalls::forget_loss); }

bool holdfast_lock_held(const holdfast_lock* lock) noexcept { return ask(lock, &LockCalls::held, false); }
bool holdfast_lock_at_risk(const holdfast_lock* lock) noexcept { return ask(lock, &LockCalls::at_risk, false); }

int64_t holdfast_lock_remaining_ms(const holdfast_lock* lock) noexcept {
  return ask(lock, &LockCalls::remaining, Duration::zero()).count() / 1'000'000;
}
int64_t holdfast_lock_valid_until_ns(const holdfast_lock* lock) noexcept {
  return ask(lock, &LockCalls::valid_until, Instant()).nanoseconds();
}
int64_t holdfast_lock_renewal_due_ns(const holdfast_lock* lock) noexcept {
  return ask(lock, &LockCalls::renewal_due, Instant::max()).nanoseconds();
}
uint32_t holdfast_lock_hold_count(const holdfast_lock* lock) noexcept {
  return ask(lock, &LockCalls::hold_count, std::uint32_t{0});
}
uint64_t holdfast_lock_fence(const holdfast_lock* lock) noexcept {
  const LockObject* const object = object_in(lock);
  return object == nullptr ? 0 : object->fence();
}

holdfast_status holdfast_lock_remaining_on_server_ms(holdfast_lock* lock, int64_t* remaining_ms) noexcept {
  if (remaining_ms == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  Duration remaining = Duration::zero();
  const holdfast_status status = call(lock, &LockCalls::remaining_on_server, remaining);
  if (status != HOLDFAST_OK) return status;
  *remaining_ms = remaining == remaining_unlimited ? HOLDFAST_UNLIMITED : remaining.count() / 1'000'000;
  return HOLDFAST_OK;
}

holdfast_status holdfast_lock_keep(holdfast_lock* lock, const holdfast_keep_options* options) noexcept {
  static_assert(HOLDFAST_KEEP_AUTOMATIC == static_cast<int>(Keep::automatic) &&
                HOLDFAST_KEEP_ALWAYS == static_cast<int>(Keep::always) &&
                HOLDFAST_KEEP_NEVER == static_cast<int>(Keep::never));
  const holdfast_keep_options wanted = options == nullptr ? holdfast_keep_options{} : *options;
  if (wanted.keep < HOLDFAST_KEEP_AUTOMATIC || wanted.keep > HOLDFAST_KEEP_NEVER) return HOLDFAST_INVALID_ARGUMENT;
  return call(lock, &LockCalls::keep,
              KeepOptions{.keep = static_cast<Keep>(wanted.keep),
                          .on_at_risk = wanted.on_at_risk,
                          .on_lost = wanted.on_lost,
                          .context = wanted.context,
                          .max_hold = of_milliseconds(wanted.max_hold_ms, max_hold_unlimited),
                          .liveness = of_milliseconds(wanted.liveness_ms, liveness_off)});
}

void holdfast_lock_tick(holdfast_lock* lock) noexcept {
  LockObject* const object = object_in(lock);
  if (object != nullptr) object->calls().tick(object->lock());
}
