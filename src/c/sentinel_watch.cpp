// SPDX-License-Identifier: MIT
#include "holdfast/sentinel_watch.hpp"

#include "client.hpp"
#include "watchdog.hpp"

namespace holdfast::c {

struct SentinelWatchObject : SentinelWatch {
  explicit SentinelWatchObject(ClientObject& client) noexcept : SentinelWatch(client), noted(&client.watch) {}
  explicit SentinelWatchObject(WatchdogObject& keeper) noexcept
      : SentinelWatch(keeper), noted(&keeper.watch), watchdog(&keeper) {}
  ~SentinelWatchObject() { *noted = nullptr; }
  SentinelWatchObject(const SentinelWatchObject&) = delete;
  SentinelWatchObject& operator=(const SentinelWatchObject&) = delete;

  // What it knows is its thread's.
  [[nodiscard]] bool in_use_elsewhere() const noexcept { return watchdog != nullptr && watchdog->running(); }

  holdfast_sentinel_watch** noted;  // Where its client or watchdog knows it.
  const Watchdog* watchdog = nullptr;
};

template <>
struct Made<holdfast_sentinel_watch> {
  using Object = SentinelWatchObject;
  static constexpr std::uintptr_t number = 12;
};

}  // namespace holdfast::c

using namespace holdfast;
using namespace holdfast::c;

namespace {

// nullptr: there is none, or its watchdog's thread has it.
const SentinelWatchObject* readable(const holdfast_sentinel_watch* watch) noexcept {
  const SentinelWatchObject* const object = object_in(watch);
  return object == nullptr || object->in_use_elsewhere() ? nullptr : object;
}

}  // namespace

holdfast_status holdfast_sentinel_watch_init(holdfast_sentinel_watch* watch, holdfast_client* client) noexcept {
  if (const holdfast_status status = free_to_make(watch); status != HOLDFAST_OK) return status;
  clear(watch);
  ClientObject* const owner = object_in(client);
  if (owner == nullptr || owner->branches != nullptr) return HOLDFAST_INVALID_ARGUMENT;
  if (owner->watch != nullptr) return HOLDFAST_ALREADY_HELD;
  make_in(watch, *owner);
  owner->watch = watch;
  return HOLDFAST_OK;
}

holdfast_status holdfast_sentinel_watch_init_watchdog(holdfast_sentinel_watch* watch,
                                                      holdfast_watchdog* watchdog) noexcept {
  if (const holdfast_status status = free_to_make(watch); status != HOLDFAST_OK) return status;
  clear(watch);
  WatchdogObject* const owner = object_in(watchdog);
  if (owner == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  if (owner->watch != nullptr || owner->running()) return HOLDFAST_ALREADY_HELD;
  make_in(watch, *owner);
  owner->watch = watch;
  return HOLDFAST_OK;
}

void holdfast_sentinel_watch_destroy(holdfast_sentinel_watch* watch) noexcept { destroy_in(watch); }

bool holdfast_sentinel_watch_hearing(const holdfast_sentinel_watch* watch) noexcept {
  const SentinelWatch* const object = readable(watch);
  return object != nullptr && object->hearing();
}

size_t holdfast_sentinel_watch_error_text(const holdfast_sentinel_watch* watch, char* text, size_t size) noexcept {
  const SentinelWatch* const object = readable(watch);
  return copy_text(object == nullptr ? ByteView() : object->error_text(), text, size);
}
