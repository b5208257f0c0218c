// SPDX-License-Identifier: MIT
//
// Lookout is what a connection of a blocking driver knows of who hears news of its server (SentinelWatch): a function, so
// that a program without one does not carry it.
#pragma once

#include "holdfast/core/instant.hpp"

namespace holdfast {

class Connection;
class WakePipe;
struct Ready;

class Lookout {
 public:
  // As poll_sockets(), and until news come, which have failed the connection's session then.
  using Sleep = Ready (*)(Connection& connection, WakePipe& wake, Instant then, int extra, int extra_events) noexcept;

  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  const Sleep sleep;

 protected:
  explicit constexpr Lookout(Sleep how) noexcept : sleep(how) {}
  ~Lookout() = default;
};

}  // namespace holdfast
