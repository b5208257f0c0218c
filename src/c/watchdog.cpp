// SPDX-License-Identifier: MIT
#include "watchdog.hpp"

#include "client.hpp"
#include "holdfast/proto/assert.hpp"

using namespace holdfast;
using namespace holdfast::c;

holdfast_status holdfast_watchdog_init(holdfast_watchdog* watchdog, holdfast_watchdog_place* places,
                                       size_t count) noexcept {
  using Place = RenewalSchedule::Place;
  static_assert(sizeof(Place) + sizeof(std::uint32_t) <= HOLDFAST_WATCHDOG_PLACE_SIZE);
  static_assert(alignof(Place) <= HOLDFAST_ALIGNMENT && sizeof(Place) % alignof(std::uint32_t) == 0);
  if (const holdfast_status status = free_to_make(watchdog); status != HOLDFAST_OK) return status;
  clear(watchdog);
  if (!usable(places) || count == 0 || count >= UINT32_MAX) return HOLDFAST_INVALID_ARGUMENT;
  // All places first, and after them as many numbers.
  auto* const begin = reinterpret_cast<Place*>(places);
  auto* const heap = reinterpret_cast<std::uint32_t*>(begin + count);
  for (std::size_t index = 0; index < count; ++index) ::new (static_cast<void*>(begin + index)) Place;
  make_in(watchdog, RenewalSchedule::Storage{begin, heap, count});
  return HOLDFAST_OK;
}

void holdfast_watchdog_destroy(holdfast_watchdog* watchdog) noexcept {
  const WatchdogObject* const object = object_in(watchdog);
  HOLDFAST_ASSERT(object == nullptr || object->watch == nullptr);  // It goes first.
  destroy_in(watchdog);
}

holdfast_status holdfast_watchdog_start(holdfast_watchdog* watchdog, holdfast_client* client) noexcept {
  Watchdog* const object = object_in(watchdog);
  Client* const kept = object_in(client);
  if (object == nullptr || kept == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  return to_c(object->start(*kept));
}

holdfast_status holdfast_client_attach(holdfast_client* client, holdfast_watchdog* watchdog) noexcept {
  Client* const object = object_in(client);
  Watchdog* const keeper = object_in(watchdog);
  if (object == nullptr || (keeper == nullptr && watchdog != nullptr)) return HOLDFAST_INVALID_ARGUMENT;
  object->attach(keeper);
  return HOLDFAST_OK;
}

void holdfast_watchdog_stop(holdfast_watchdog* watchdog) noexcept {
  if (Watchdog* const object = object_in(watchdog); object != nullptr) object->stop();
}
