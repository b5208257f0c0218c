// SPDX-License-Identifier: MIT
//
// Times on the command line: seconds with a fraction, such as 30 or 0.25. Nothing else is a time: no sign, no
// exponent, no "inf", no unit, no white space.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "holdfast/core/instant.hpp"

namespace holdfast::cli {

// One to nine digits, and behind a dot one to nine more. Thirty years fit, and no sum overflows.
[[nodiscard]] std::optional<Duration> parse_seconds(std::string_view text) noexcept;

// "0.25", "30", "-0.123": as short as it is exact, at most milliseconds.
[[nodiscard]] std::string seconds_text(Duration duration);

// A number with that many digits behind the dot.
[[nodiscard]] std::string fixed_text(double value, int digits);

}  // namespace holdfast::cli
