// SPDX-License-Identifier: MIT
//
// What live tests wait for: a condition that is asked again and again, up to a bound that only a broken program reaches.
#pragma once

#include <chrono>
#include <thread>

#include "holdfast/client.hpp"
#include "holdfast/status.hpp"

inline constexpr holdfast::Duration patience = std::chrono::seconds(20);  // A busy machine under sanitizers needs some.

// Looking at a clock or at another thread has no event.
inline void breathe(holdfast::Duration duration) { std::this_thread::sleep_for(duration); }

// False when the condition has not come true by then.
template <class Condition>
[[nodiscard]] bool comes(Condition&& condition, holdfast::Duration limit = patience) {
  for (const holdfast::Instant until = holdfast::Client::now() + limit; !condition();
       breathe(std::chrono::milliseconds(1)))
    if (holdfast::Client::now() >= until) return false;
  return true;
}

// Calls until the outcome is `wanted`; the last outcome.
template <class Call>
[[nodiscard]] holdfast::Status eventually(Call&& call, holdfast::Status wanted) {
  holdfast::Status status = wanted;
  (void)comes([&] { return (status = call()) == wanted; });
  return status;
}
