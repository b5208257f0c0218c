// SPDX-License-Identifier: MIT
//
// Random is where every decision of a simulated world comes from: xoshiro256**, seeded by splitmix64 (both public domain,
// Blackman and Vigna). Integers only, so that each compiler draws the same. Where a fuzzer drives the world its bytes
// decide, for as long as there are some.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace holdfast::sim {

// Handed out one decision after another, to all who share them.
struct DecisionBytes {
  const std::uint8_t* next = nullptr;
  const std::uint8_t* end = nullptr;

  // A word for a draw below `bound`, whose high bits are bytes: as few as the bound needs, so that a change of one stays
  // one change. A large bound takes two and leaves the rest to the generator.
  std::uint64_t over(std::uint64_t drawn, std::uint64_t bound) noexcept {
    if (bound <= 1 || next == end) return drawn;
    const std::uint64_t high = std::uint64_t{*next++} << 56;
    if (bound <= 256) return high;
    return high | (next == end ? 0 : std::uint64_t{*next++} << 48) | drawn >> 16;
  }
};

class Random {
 public:
  explicit Random(std::uint64_t seed, DecisionBytes* bytes = nullptr) noexcept : bytes_(bytes) {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      std::uint64_t mixed = seed;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
      word = mixed ^ (mixed >> 31);
    }
  }

  // Never the fuzzer's: tokens are made of it, and are distinct.
  std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  // In [0, bound). The bias of a multiplication is far below what a simulation sees.
  std::uint64_t below(std::uint64_t bound) noexcept {
    const std::uint64_t drawn = next();
    return upper_half(bytes_ == nullptr ? drawn : bytes_->over(drawn, bound), bound);
  }
  std::size_t index(std::size_t size) noexcept { return static_cast<std::size_t>(below(size)); }
  // In [least, most].
  std::int64_t between(std::int64_t least, std::int64_t most) noexcept {
    return least + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most - least) + 1));
  }
  // In [least, most], each magnitude as likely as the other. REQUIRES: least > 0.
  std::int64_t magnitude(std::int64_t least, std::int64_t most) noexcept {
    const auto first = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(least)));
    const auto last = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(most)));
    const auto bits = between(first, last);
    const std::int64_t low = std::int64_t{1} << (bits - 1);
    const std::int64_t high = low * 2 - 1;
    return between(low < least ? least : low, high > most ? most : high);
  }
  bool chance(std::uint32_t per_million) noexcept { return below(1'000'000) < per_million; }
  bool coin() noexcept { return below(2) != 0; }

 private:
  // Of the product, which has 128 bits. Not every machine has a type of so many.
  static std::uint64_t upper_half(std::uint64_t left, std::uint64_t right) noexcept {
    constexpr std::uint64_t half = UINT32_MAX;
    const std::uint64_t low = (left & half) * (right & half);
    const std::uint64_t middle = (left >> 32) * (right & half) + (low >> 32);
    const std::uint64_t other = (left & half) * (right >> 32) + (middle & half);
    return (left >> 32) * (right >> 32) + (middle >> 32) + (other >> 32);
  }

  std::uint64_t state_[4];
  DecisionBytes* bytes_;
};

}  // namespace holdfast::sim
