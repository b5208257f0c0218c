// SPDX-License-Identifier: MIT
//
// What lies in the storage that a caller of the C interface hands over: a mark, and after it the object of C++. The mark says
// where the object was made and what it is. So storage that is zeroed, destroyed, copied or of another type is known by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "holdfast.h"
#include "holdfast/core/instant.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/status.hpp"

namespace holdfast::c {

// Which object is in which storage; and a number, which is a part of the mark.
template <class Storage>
struct Made;

template <class Storage>
using ObjectIn = typename Made<std::remove_const_t<Storage>>::Object;

inline constexpr std::size_t mark_size = HOLDFAST_ALIGNMENT;

[[nodiscard]] inline bool usable(const void* storage) noexcept {
  return storage != nullptr && reinterpret_cast<std::uintptr_t>(storage) % HOLDFAST_ALIGNMENT == 0;
}

template <class Storage>
[[nodiscard]] std::uintptr_t mark_of(const Storage* storage) noexcept {
  return ~reinterpret_cast<std::uintptr_t>(storage) ^ (Made<Storage>::number << (sizeof(std::uintptr_t) * 8 - 5));
}

// nullptr: no such object was made there, or it is gone.
template <class Storage>
[[nodiscard]] auto object_in(Storage* storage) noexcept {
  using Bare = std::remove_const_t<Storage>;
  using Object = std::conditional_t<std::is_const_v<Storage>, const ObjectIn<Storage>, ObjectIn<Storage>>;
  if (!usable(storage)) return static_cast<Object*>(nullptr);
  std::uintptr_t mark = 0;
  std::memcpy(&mark, storage->bytes, sizeof mark);
  if (mark != mark_of<Bare>(storage)) return static_cast<Object*>(nullptr);
  return std::launder(reinterpret_cast<Object*>(storage->bytes + mark_size));
}

// Of what is to be made there: ok, or why not. Then nothing there has changed.
template <class Storage>
[[nodiscard]] holdfast_status free_to_make(const Storage* storage) noexcept {
  if (!usable(storage)) return HOLDFAST_INVALID_ARGUMENT;
  return object_in(storage) == nullptr ? HOLDFAST_OK : HOLDFAST_ALREADY_HELD;
}

// REQUIRES: free_to_make(storage) is ok.
template <class Storage, class... Arguments>
ObjectIn<Storage>& make_in(Storage* storage, Arguments&&... arguments) noexcept {
  using Object = ObjectIn<Storage>;
  static_assert(mark_size + sizeof(Object) <= sizeof(Storage), "the size in holdfast.h is too small");
  static_assert(alignof(Object) <= HOLDFAST_ALIGNMENT && mark_size >= sizeof(std::uintptr_t));
  auto* const object =
      ::new (static_cast<void*>(storage->bytes + mark_size)) Object(static_cast<Arguments&&>(arguments)...);
  const std::uintptr_t mark = mark_of(storage);
  std::memcpy(storage->bytes, &mark, sizeof mark);
  return *object;
}

// What was there before is no object any more.
template <class Storage>
void clear(Storage* storage) noexcept {
  std::memset(storage->bytes, 0, mark_size);
}

template <class Storage>
void destroy_in(Storage* storage) noexcept {
  auto* const object = object_in(storage);
  if (object == nullptr) return;
  std::destroy_at(object);
  clear(storage);
}

// ---- Values ------------------------------------------------------------------------------------------------------

[[nodiscard]] inline holdfast_status to_c(Status status) noexcept { return static_cast<holdfast_status>(status); }

// What is below zero stays below it, so that it is refused.
[[nodiscard]] constexpr Duration of_units(std::int64_t count, std::int64_t nanoseconds) noexcept {
  if (count < 0) return Duration(-1);
  return count > Duration::max().count() / nanoseconds ? Duration::max() : Duration(count * nanoseconds);
}
[[nodiscard]] constexpr Duration of_milliseconds(std::int64_t count) noexcept { return of_units(count, 1'000'000); }
[[nodiscard]] constexpr Duration of_milliseconds(std::int64_t count, Duration otherwise) noexcept {
  return count == 0 ? otherwise : of_milliseconds(count);
}

// As snprintf() does.
[[nodiscard]] inline std::size_t copy_text(ByteView from, char* text, std::size_t size) noexcept {
  if (text != nullptr && size != 0) {
    const ByteView part = from.slice(0, size - 1);
    if (!part.empty()) std::memcpy(text, part.data(), part.size());
    text[part.size()] = '\0';
  }
  return from.size();
}

}  // namespace holdfast::c
