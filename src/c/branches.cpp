// SPDX-License-Identifier: MIT
#include "holdfast/detail/branches.hpp"

#include "client.hpp"

namespace holdfast::c {

// Its places are the caller's.
struct BranchesObject : Branches {
  BranchesObject(ClientObject& client, Place* begin, std::size_t size) noexcept
      : Branches(client, begin, size), owner(&client), places(begin), count(size) {}
  ~BranchesObject() { owner->branches = nullptr; }
  BranchesObject(const BranchesObject&) = delete;
  BranchesObject& operator=(const BranchesObject&) = delete;

  ClientObject* owner;
  Place* places;
  std::size_t count;
};

template <>
struct Made<holdfast_branches> {
  using Object = BranchesObject;
  static constexpr std::uintptr_t number = 13;
};

static_assert(HOLDFAST_BRANCHES_MAX == cluster_masters_max - 1);
static_assert(sizeof(Branches::Place) <= sizeof(holdfast_branch_place) &&
              alignof(Branches::Place) <= HOLDFAST_ALIGNMENT);

}  // namespace holdfast::c

using namespace holdfast;
using namespace holdfast::c;

holdfast_status holdfast_branches_init(holdfast_branches* branches, holdfast_client* client,
                                       holdfast_branch_place* places, size_t count) noexcept {
  if (const holdfast_status status = free_to_make(branches); status != HOLDFAST_OK) return status;
  clear(branches);
  ClientObject* const owner = object_in(client);
  if (owner == nullptr || !usable(places) || count == 0 || count > HOLDFAST_BRANCHES_MAX)
    return HOLDFAST_INVALID_ARGUMENT;
  if (owner->branches != nullptr) return HOLDFAST_ALREADY_HELD;
  if (owner->connected() || owner->acks != nullptr || owner->watch != nullptr) return HOLDFAST_INVALID_ARGUMENT;
  // They stand as close as C++ has them, at the beginning of what is given.
  auto* const begin = reinterpret_cast<Branches::Place*>(places);
  for (std::size_t index = 0; index < count; ++index) std::construct_at(begin + index);
  make_in(branches, *owner, begin, count);
  owner->branches = branches;
  return HOLDFAST_OK;
}

void holdfast_branches_destroy(holdfast_branches* branches) noexcept {
  const BranchesObject* const object = object_in(branches);
  if (object == nullptr) return;
  Branches::Place* const places = object->places;
  const std::size_t count = object->count;
  destroy_in(branches);
  std::destroy_n(places, count);
}

size_t holdfast_branches_connected(const holdfast_branches* branches) noexcept {
  const Branches* const object = object_in(branches);
  return object == nullptr ? 0 : object->connected();
}
