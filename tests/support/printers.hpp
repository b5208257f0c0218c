// SPDX-License-Identifier: MIT
//
// How doctest shows our types when an assertion fails.
#pragma once

#include <cstdio>
#include <string>

#include <doctest/doctest.h>

#include "holdfast/core/instant.hpp"
#include "holdfast/core/lock_machine.hpp"
#include "holdfast/proto/bytes.hpp"
#include "holdfast/proto/resp_parser.hpp"
#include "holdfast/status.hpp"

namespace holdfast {

inline doctest::String toString(Status status) { return to_string(status); }
inline doctest::String toString(ByteView bytes) {
  std::string text = "\"";
  for (const char byte : bytes) {
    char escaped[8];
    if (byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\')
      std::snprintf(escaped, sizeof escaped, "%c", byte);
    else
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(byte));
    text += escaped;
  }
  return (text + "\"").c_str();
}
inline doctest::String toString(Instant instant) { return doctest::toString(instant.nanoseconds()); }
inline doctest::String toString(ParseResult result) {
  static const char* const names[] = {"need_more", "value", "invalid"};
  return names[static_cast<int>(result)];
}
inline doctest::String toString(RespKind kind) {
  static const char* const names[] = {"simple", "error", "integer", "bulk", "null", "array"};
  return names[static_cast<int>(kind)];
}
inline doctest::String toString(LockState state) {
  static const char* const names[] = {"idle", "acquiring", "held", "at_risk", "releasing", "unknown", "lost"};
  return names[static_cast<int>(state)];
}
inline doctest::String toString(LockEvent event) {
  static const char* const names[] = {"none",    "granted", "denied",   "unclear",       "renewed",
                                      "at_risk", "lost",    "released", "protocol_doubt"};
  return names[static_cast<int>(event)];
}

}  // namespace holdfast
