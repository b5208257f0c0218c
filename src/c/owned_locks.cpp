// SPDX-License-Identifier: MIT
//
// The owner, and the locks that are handles of its holds.
#include "client.hpp"
#include "holdfast/fair_lock.hpp"
#include "holdfast/fenced_lock.hpp"
#include "holdfast/multi_lock.hpp"
#include "holdfast/read_write_lock.hpp"
#include "holdfast/reentrant_lock.hpp"
#include "lock.hpp"

namespace holdfast::c {
namespace {

class PlacedOwner : public HoldOwner {
 public:
  using HoldOwner::Place;
  static_assert(sizeof(Place) <= HOLDFAST_OWNER_PLACE_SIZE && alignof(Place) <= HOLDFAST_ALIGNMENT);

  PlacedOwner(ClientBase& client, Place* places, std::size_t count) noexcept
      : HoldOwner(client, places, count), places_(places), count_(count) {}
  // As of an OwnerOf, a lock of it that is left is an assertion.
  ~PlacedOwner() {
    for (std::size_t index = 0; index < count_; ++index) HOLDFAST_ASSERT(places_[index].empty());
  }

 private:
  Place* places_;
  std::size_t count_;
};

}  // namespace

template <>
struct Made<holdfast_owner> {
  using Object = PlacedOwner;
  static constexpr std::uintptr_t number = 3;
};

}  // namespace holdfast::c

using namespace holdfast;
using namespace holdfast::c;

holdfast_status holdfast_owner_init(holdfast_owner* owner, holdfast_client* client, holdfast_owner_place* places,
                                    size_t count) noexcept {
  if (const holdfast_status status = free_to_make(owner); status != HOLDFAST_OK) return status;
  clear(owner);
  Client* const parent = object_in(client);
  static_assert(HOLDFAST_OWNER_PLACES_MAX == owner_holds_max);
  if (parent == nullptr || !usable(places) || count == 0 || count > owner_holds_max) return HOLDFAST_INVALID_ARGUMENT;
  // They stand as close as C++ has them, at the beginning of what is given.
  auto* const begin = reinterpret_cast<PlacedOwner::Place*>(places);
  for (std::size_t index = 0; index < count; ++index) std::construct_at(begin + index);
  make_in(owner, *parent, begin, count);
  return HOLDFAST_OK;
}

void holdfast_owner_destroy(holdfast_owner* owner) noexcept { destroy_in(owner); }

holdfast_status holdfast_reentrant_init(holdfast_lock* lock, holdfast_owner* owner, const char* key,
                                        const holdfast_lock_options* options) noexcept {
  const holdfast_lock_options& wanted = options_of(options);
  const LockTiming timing = timing_of(wanted, {.fence = true});
  const ByteView name = key_of(key, wanted);
  if (wanted.fence) return make_lock<FencedLock, BlockingLock>(lock, object_in(owner), name, timing);
  return make_lock<ReentrantLock, BlockingLock>(lock, object_in(owner), name, timing);
}

holdfast_status holdfast_fair_init(holdfast_lock* lock, holdfast_owner* owner, const char* key,
                                   const holdfast_lock_options* options) noexcept {
  const holdfast_lock_options& wanted = options_of(options);
  return make_lock<FairLock, BlockingLock>(lock, object_in(owner), key_of(key, wanted),
                                           timing_of(wanted, {.fence = true}), FairOptions{.fence = wanted.fence});
}

holdfast_status holdfast_multi_init(holdfast_lock* lock, holdfast_owner* owner, const char* const* names, size_t count,
                                    const holdfast_lock_options* options) noexcept {
  static_assert(HOLDFAST_NAMES_MAX == names_max);
  ByteView views[names_max];
  const std::size_t size = names == nullptr || count > names_max ? 0 : count;  // None at all is refused.
  for (std::size_t index = 0; index < size; ++index) views[index] = names[index];
  return make_lock<MultiLock, BlockingLock>(lock, object_in(owner), static_cast<const ByteView*>(views), size,
                                            timing_of(options_of(options), {.key = false}));
}

holdfast_status holdfast_read_write_init(holdfast_lock* read, holdfast_lock* write, holdfast_owner* owner,
                                         const char* key, const holdfast_lock_options* read_options,
                                         const holdfast_lock_options* write_options) noexcept {
  for (const holdfast_lock* const side : {read, write})
    if (const holdfast_status status = free_to_make(side); status != HOLDFAST_OK) return status;
  clear(read);
  clear(write);
  PlacedOwner* const parent = object_in(owner);
  if (read == write || parent == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  const holdfast_lock_options& wanted = options_of(read_options);
  const ReadWriteTiming timing = {.read = timing_of(wanted, {}),
                                  .write = timing_of(options_of(write_options), {.key = false})};
  LockObject& reader = make_in(read);
  LockObject& writer = make_in(write);
  auto& lock = reader.make<ReadWriteLock>(*parent, key_of(key, wanted), timing);
  reader.show<BlockingLock>(lock.read());
  writer.show<BlockingLock>(lock.write());
  reader.pair_with(write);
  writer.pair_with(read);
  return to_c(lock.read().configuration());
}
