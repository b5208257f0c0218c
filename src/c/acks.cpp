// SPDX-License-Identifier: MIT
#include "holdfast/acks.hpp"

#include "client.hpp"

namespace holdfast::c {

struct AcksObject : Acks {
  explicit AcksObject(ClientObject& client) noexcept : Acks(client), owner(&client) {}
  ~AcksObject() { owner->acks = nullptr; }
  AcksObject(const AcksObject&) = delete;
  AcksObject& operator=(const AcksObject&) = delete;

  ClientObject* owner;
};

template <>
struct Made<holdfast_acks> {
  using Object = AcksObject;
  static constexpr std::uintptr_t number = 9;
};

static_assert(HOLDFAST_ACKS_MAX == acks_max);

}  // namespace holdfast::c

using namespace holdfast;
using namespace holdfast::c;

holdfast_status holdfast_acks_init(holdfast_acks* acks, holdfast_client* client) noexcept {
  if (const holdfast_status status = free_to_make(acks); status != HOLDFAST_OK) return status;
  clear(acks);
  ClientObject* const owner = object_in(client);
  if (owner == nullptr || owner->connected() || owner->branches != nullptr) return HOLDFAST_INVALID_ARGUMENT;
  if (owner->acks != nullptr) return HOLDFAST_ALREADY_HELD;
  make_in(acks, *owner);
  owner->acks = acks;
  return HOLDFAST_OK;
}

void holdfast_acks_destroy(holdfast_acks* acks) noexcept { destroy_in(acks); }

bool holdfast_acks_connected(const holdfast_acks* acks) noexcept {
  const Acks* const object = object_in(acks);
  return object != nullptr && object->connected();
}

size_t holdfast_acks_error_text(const holdfast_acks* acks, char* text, size_t size) noexcept {
  const Acks* const object = object_in(acks);
  return copy_text(object == nullptr ? ByteView() : object->error_text(), text, size);
}
