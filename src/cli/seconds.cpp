// SPDX-License-Identifier: MIT
#include "seconds.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "holdfast/proto/decimal.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t digits_max = 9;

// The digits at the front of `text`, which are taken off. Nothing for none, or for more than digits_max.
std::optional<std::int64_t> take_digits(std::string_view& text, std::size_t& count) noexcept {
  std::int64_t value = 0;
  count = 0;
  while (count < text.size() && is_digit(text[count])) {
    if (count == digits_max) return std::nullopt;
    value = value * 10 + (text[count] - '0');
    ++count;
  }
  if (count == 0) return std::nullopt;
  text.remove_prefix(count);
  return value;
}

}  // namespace

std::optional<Duration> parse_seconds(std::string_view text) noexcept {
  std::size_t count = 0;
  const std::optional<std::int64_t> whole = take_digits(text, count);
  if (!whole) return std::nullopt;
  std::int64_t fraction = 0;
  if (!text.empty()) {
    if (text.front() != '.') return std::nullopt;
    text.remove_prefix(1);
    const std::optional<std::int64_t> digits = take_digits(text, count);
    if (!digits || !text.empty()) return std::nullopt;
    fraction = *digits;
    for (; count < digits_max; ++count) fraction *= 10;
  }
  return std::chrono::seconds(*whole) + Duration(fraction);
}

std::string seconds_text(Duration duration) {
  const std::int64_t signed_milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  const std::int64_t milliseconds = std::abs(signed_milliseconds);
  std::string text = (signed_milliseconds < 0 ? "-" : "") + std::to_string(milliseconds / 1000);
  std::string fraction = std::to_string(milliseconds % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  if (!fraction.empty()) text += "." + fraction;
  return text;
}

std::string fixed_text(double value, int digits) {
  char text[64];
  const int size = std::snprintf(text, sizeof text, "%.*f", digits, value);
  return {text, std::min(static_cast<std::size_t>(std::max(size, 0)), sizeof text - 1)};
}

}  // namespace holdfast::cli
