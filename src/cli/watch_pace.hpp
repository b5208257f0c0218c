// SPDX-License-Identifier: MIT
//
// How much a watcher asks of a server, and how soon again. These bounds are what keeps it below a hundredth of a core with ten
// thousand locks; holdfast.1 has the figure. No I/O.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "holdfast/core/instant.hpp"

namespace holdfast::cli {

// Keys that one question looks at: it keeps a server's only thread for some 0.5 ms.
inline constexpr std::size_t question_keys_max = 50;
// Keys of one round, in as many questions as it takes.
inline constexpr std::size_t round_keys_max = 200;
static_assert(round_keys_max % (4 * question_keys_max) == 0 && round_keys_max <= 1000,
              "promised: a thousand keys per round at the most");
// So many of them are looked at per second, on average: one costs a server some 10 us.
inline constexpr std::size_t keys_per_second_max = 500;
inline constexpr Duration round_pause_min = std::chrono::milliseconds(50);
inline constexpr Duration round_pause_max = std::chrono::milliseconds(400);
static_assert(round_pause_max >= std::chrono::milliseconds(1000 * round_keys_max / keys_per_second_max));

// After an event of the server a lock is looked at again at once, and no sooner than that after the look before.
inline constexpr Duration event_pause_min = std::chrono::milliseconds(20);

// How long to pause after a round of so many keys.
[[nodiscard]] constexpr Duration pause_after(std::size_t keys) noexcept {
  const Duration pause = std::chrono::microseconds(1'000'000 * keys / keys_per_second_max);
  return std::clamp(pause, round_pause_min, round_pause_max);
}

// What a round looks at.
struct RoundPlan {
  std::size_t known = 0;    // Locks that are known, by their names,
  std::size_t shown = 0;    // of which so many stand in the table, and are looked at in every round.
  std::size_t scanned = 0;  // Keys of SCAN.
};
// Until all keys have been seen once, SCAN has what the shown locks leave; then a quarter, and what the known ones leave.
[[nodiscard]] constexpr RoundPlan plan_round(std::size_t known_locks, std::size_t shown_locks, bool scans,
                                             bool swept) noexcept {
  constexpr std::size_t quarter = round_keys_max / 4;
  RoundPlan plan;
  plan.shown = std::min({shown_locks, known_locks, quarter});
  plan.known = std::min(known_locks, !scans ? round_keys_max : swept ? round_keys_max - quarter : quarter);
  if (scans) plan.scanned = swept ? quarter : round_keys_max - plan.known;
  return plan;
}

// Pauses before a silent server is asked again: they double from the first to the last, and of each half to all is taken, so that
// watchers that lost one server do not come back as one.
inline constexpr Duration retry_pause_min = std::chrono::milliseconds(250);
inline constexpr Duration retry_pause_max = std::chrono::seconds(5);
class BackOff {
 public:
  // `random` is drawn evenly.
  [[nodiscard]] constexpr Duration next(std::uint32_t random) noexcept {
    const Duration pause = pause_;
    pause_ = std::min(pause_ * 2, retry_pause_max);
    return pause / 2 + Duration(static_cast<std::int64_t>(random % 1024U) * (pause.count() / 2) / 1024);
  }
  constexpr void reset() noexcept { pause_ = retry_pause_min; }

 private:
  Duration pause_ = retry_pause_min;
};

}  // namespace holdfast::cli
