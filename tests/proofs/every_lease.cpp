// SPDX-License-Identifier: MIT
//
// The drift that is computed from a lease leaves the hold some time, a valid lease is one of whole milliseconds
// between lease_min and lease_max, and it fits into the 32 bits that a request has for it. A solver is slow at division, and there
// are only so many leases.
//
// BOUND   every lease of whole milliseconds from 0 to 24 h and a second, and its two neighbours
// WAY     enumeration
// BROKEN  include/holdfast/limits.hpp: `inline constexpr int drift_divisor = 100;` => `inline constexpr int drift_divisor = 101;`
// BROKEN  include/holdfast/core/lock_machine.hpp: `length <= lease_max &&` => ``
// BROKEN  include/holdfast/core/lock_machine.hpp: `length % std::chrono::milliseconds(1) == Duration(0) &&` => ``
#include "holdfast/core/lock_machine.hpp"
#include "proof.hpp"

using namespace holdfast;

void prove() noexcept {
  constexpr std::int64_t millisecond = 1'000'000;
  for (std::int64_t count = 0; count <= lease_max.count() / millisecond + 1000; ++count) {
    for (std::int64_t nanoseconds = count * millisecond - 1; nanoseconds <= count * millisecond + 1; ++nanoseconds) {
      const LockTiming timing{.lease = Duration(nanoseconds)};
      const bool whole = nanoseconds == count * millisecond;
      const bool expected = whole && count >= 5 && count <= std::int64_t{24} * 60 * 60 * 1000;
      claim(timing.valid() == expected);
      if (!expected) continue;
      // A hundredth, rounded down, and two milliseconds.
      claim(timing.effective_drift().count() == count * 10'000 + 2 * millisecond);
      claim(timing.effective_drift() < timing.effective_lease() && count <= UINT32_MAX);
    }
  }
}
