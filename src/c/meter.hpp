// SPDX-License-Identifier: MIT
//
// A meter in the storage of a holdfast_meter.
#pragma once

#include <bit>

#include "holdfast/core/client_config.hpp"
#include "holdfast/detail/meter.hpp"
#include "objects.hpp"

namespace holdfast::c {

template <>
struct Made<holdfast_meter> {
  using Object = Meter;
  static constexpr std::uintptr_t number = 11;
};

// Of settings: the meter that they name, in `meter`. False: it is none.
[[nodiscard]] inline bool choose_meter(holdfast_meter* wanted, Witness*& meter) noexcept {
  if (wanted == nullptr) return true;
  meter = object_in(wanted);
  return meter != nullptr;
}
inline constexpr ConfigProblem no_meter = {"meter", "it was not initialised, or is gone"};

// The numbers in C are those of C++.
static_assert(sizeof(holdfast_stats) == sizeof(Stats) && sizeof(holdfast_latencies) == sizeof(Latencies));
static_assert(HOLDFAST_LATENCY_BUCKETS == latency_buckets_count);

// HOLDFAST_INVALID_ARGUMENT without an output.
[[nodiscard]] inline holdfast_status give(const Stats& stats, holdfast_stats* output) noexcept {
  if (output == nullptr) return HOLDFAST_INVALID_ARGUMENT;
  *output = std::bit_cast<holdfast_stats>(stats);
  return HOLDFAST_OK;
}

}  // namespace holdfast::c
