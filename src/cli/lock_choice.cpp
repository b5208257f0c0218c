// SPDX-License-Identifier: MIT
#include "lock_choice.hpp"

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

}  // namespace holdfast::cli
