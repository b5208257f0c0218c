// SPDX-License-Identifier: MIT
//
// An instant is never negative and wraps at neither end: a deadline of "now and for ever" is not in the past.
//
// BOUND   every instant, every duration
// UNWIND  2
// BROKEN  include/holdfast/core/instant.hpp: `if (duration == Duration::min()) return max();` => ``
// BROKEN  include/holdfast/core/instant.hpp: `return sum < 0 ? 0 : sum;` => `return sum;`
// BROKEN  include/holdfast/core/instant.hpp: `if (__builtin_add_overflow(count, delta, &sum))`
//         => `if (sum = count + delta; false)`
#include "holdfast/core/instant.hpp"
#include "proof.hpp"

using namespace holdfast;

void prove() noexcept {
  const std::int64_t count = any_signed();
  assume(count >= 0);
  const Instant instant = Instant::from_nanoseconds(count);
  const Duration duration(any_signed());
  using Wide = __int128;
  constexpr Wide last = INT64_MAX;
  const auto expected = [](Wide sum) { return sum < 0 ? Wide{0} : sum > last ? last : sum; };
  claim((instant + duration).nanoseconds() == expected(Wide{count} + duration.count()));
  claim((instant - duration).nanoseconds() == expected(Wide{count} - duration.count()));
  const std::int64_t other = any_signed();
  assume(other >= 0);
  claim((instant - Instant::from_nanoseconds(other)).count() == Wide{count} - other);
}
