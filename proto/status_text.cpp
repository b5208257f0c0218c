// SPDX-License-Identifier: MIT
//
// The sentences behind a Status, apart from to_string() so that they are linked only where they are used.
#include "status_list.hpp"

namespace holdfast {

namespace {

#define CAUSE(name, cause, remedy) cause "\0"
constexpr char causes[] = HOLDFAST_STATUS_LIST(CAUSE);
#undef CAUSE

#define REMEDY(name, cause, remedy) remedy "\0"
constexpr char remedies[] = HOLDFAST_STATUS_LIST(REMEDY);
#undef REMEDY

}  // namespace

const char* cause(Status status) noexcept {
  return in_range(status) ? packed_entry(causes, status) : "The value is no Status.";
}

const char* remedy(Status status) noexcept {
  return in_range(status) ? packed_entry(remedies, status) : "Report it: it should not happen.";
}

}  // namespace holdfast
