// SPDX-License-Identifier: MIT
#include "status_list.hpp"

namespace holdfast {

namespace {

#define NAME(name, cause, remedy) #name "\0"
constexpr char names[] = HOLDFAST_STATUS_LIST(NAME);
#undef NAME

// The list holds every enumerator, in its place.
#define VALUE(name, cause, remedy) Status::name,
constexpr Status listed[] = {HOLDFAST_STATUS_LIST(VALUE)};
#undef VALUE
consteval bool complete() {
  for (int index = 0; index < status_count; ++index)
    if (static_cast<int>(listed[index]) != index) return false;
  return sizeof listed / sizeof listed[0] == status_count;
}
static_assert(complete(), "HOLDFAST_STATUS_LIST and Status must agree");

}  // namespace

const char* to_string(Status status) noexcept { return in_range(status) ? packed_entry(names, status) : "invalid"; }

}  // namespace holdfast
