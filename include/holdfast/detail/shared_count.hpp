// SPDX-License-Identifier: MIT
//
// SharedCount is a number that any thread adds to, several at once too, and any reads. What was added elsewhere before is seen
// after the load that sees it. It never goes back, but for one thing: where a machine adds 32 bits at once, it stands in two
// words, and who reads it while it passes a multiple of 2^32 may see it that much too small.
#pragma once

#include <cstdint>

#include "holdfast/proto/language.hpp"

namespace holdfast {

class SharedCount {
 public:
  constexpr SharedCount() noexcept = default;
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;

  void add(std::uint64_t amount) noexcept {
    if constexpr (whole) {
      (void)__atomic_fetch_add(&words_.all, amount, __ATOMIC_RELEASE);
    } else {
      const auto low = static_cast<std::uint32_t>(amount);
      const std::uint32_t before = __atomic_fetch_add(&words_.half[0], low, __ATOMIC_RELEASE);
      const std::uint32_t carried = before + low < before ? 1 : 0;
      const auto high = static_cast<std::uint32_t>(amount >> 32) + carried;
      if (high != 0) (void)__atomic_fetch_add(&words_.half[1], high, __ATOMIC_RELEASE);
    }
  }
  [[nodiscard]] std::uint64_t load() const noexcept {
    if constexpr (whole) {
      return __atomic_load_n(&words_.all, __ATOMIC_ACQUIRE);
    } else {
      const std::uint64_t high = __atomic_load_n(&words_.half[1], __ATOMIC_ACQUIRE);
      return high << 32 | __atomic_load_n(&words_.half[0], __ATOMIC_ACQUIRE);
    }
  }

 private:
  static constexpr bool whole = __atomic_always_lock_free(sizeof(std::uint64_t), nullptr);
  static_assert(__atomic_always_lock_free(sizeof(std::uint32_t), nullptr), "a count must not wait for a lock");

  union {
    std::uint64_t all = 0;
    std::uint32_t half[2];
  } words_;
};

}  // namespace holdfast
