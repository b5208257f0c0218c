// SPDX-License-Identifier: MIT
#include "lock_choice.hpp"

#include "holdfast/core/fair_kind.hpp"
#include "holdfast/core/mutex_kind.hpp"
#include "holdfast/core/read_write_kind.hpp"
#include "holdfast/core/reentrant_kind.hpp"
#include "holdfast/core/semaphore_kind.hpp"

namespace holdfast::cli {

const char* to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::mutex: return "mutex";
    case Kind::reentrant: return "reentrant";
    case Kind::fenced: return "fenced";
    case Kind::fair: return "fair";
    case Kind::read: return "read";
    case Kind::write: return "write";
    case Kind::semaphore: return "semaphore";
  }
  return "invalid";
}

std::optional<Kind> kind_named(std::string_view name) noexcept {
  for (const Kind kind :
       {Kind::mutex, Kind::reentrant, Kind::fenced, Kind::fair, Kind::read, Kind::write, Kind::semaphore})
    if (name == to_string(kind)) return kind;
  return std::nullopt;
}

const LockKind& kind_table(Kind kind) noexcept {
  switch (kind) {
    case Kind::mutex: return announced_mutex_kind;
    case Kind::reentrant: return reentrant_kind;
    case Kind::fenced: return fenced_kind;
    case Kind::fair: return fair_kind;
    case Kind::read: return read_kind;
    case Kind::write: return write_kind;
    case Kind::semaphore: return semaphore_kind;
  }
  return mutex_kind;
}

}  // namespace holdfast::cli
