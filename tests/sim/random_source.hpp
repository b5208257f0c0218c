// SPDX-License-Identifier: MIT
//
// Random numbers that are the same on every machine: splitmix64. The library's distributions are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace holdfast::sim {

class RandomSource {
 public:
  explicit RandomSource(std::uint64_t seed) noexcept : state_(seed) {}

  [[nodiscard]] std::uint64_t next() noexcept {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebU;
    return mixed ^ mixed >> 31;
  }
  // Below `bound`, which is not zero. The bias is of no matter for tests.
  [[nodiscard]] std::size_t below(std::size_t bound) noexcept { return static_cast<std::size_t>(next() % bound); }
  [[nodiscard]] bool one_in(std::size_t bound) noexcept { return below(bound) == 0; }
  template <class Value>
  [[nodiscard]] Value pick(std::initializer_list<Value> values) noexcept {
    return values.begin()[below(values.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast::sim
