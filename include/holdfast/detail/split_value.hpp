// SPDX-License-Identifier: MIT
//
// SplitValue is a 64-bit value that one thread writes and any thread, or a signal handler, reads, on a machine that moves
// 32 bits at once. It stands in two places. A store writes the place that is not read, and then says that it is now.
//
//     +-------+---------------+---------------+
//     | turn  | place 0       | place 1       |      the place of an even turn is 0, that of an odd one is 1
//     +-------+---------------+---------------+
//
// A load that is overtaken by a store of the next turn but one might have read a mixture, and is made again. A store that
// is interrupted keeps no load waiting, so that a signal handler of the writing thread may load.
//
// Stores are made by one thread at a time, each seeing the one before: by a thread alone, or under a mutex.
#pragma once

#include <cstdint>

#include "holdfast/proto/language.hpp"

namespace holdfast {

template <class Value>
class SplitValue {
 public:
  static_assert(sizeof(Value) == 8, "two words");

  constexpr SplitValue() noexcept = default;
  SplitValue(const SplitValue&) = delete;
  SplitValue& operator=(const SplitValue&) = delete;

  // What was written before a store is seen after the load that sees it.
  [[nodiscard]] Value load() const noexcept {
    for (;;) {
      const std::uint32_t turn = read(turn_);
      const Place& place = places_[turn & 1];
      // Acquired one by one: where a word is of a later store, so is the turn that is read behind it.
      const std::uint64_t high = read(place.high);
      const std::uint64_t low = read(place.low);
      if (read(turn_) == turn) return static_cast<Value>(high << 32 | low);
    }
  }
  void store(Value value) noexcept {
    const auto bits = static_cast<std::uint64_t>(value);
    const std::uint32_t turn = read(turn_) + 1;
    Place& place = places_[turn & 1];
    write(place.high, static_cast<std::uint32_t>(bits >> 32));
    write(place.low, static_cast<std::uint32_t>(bits));
    write(turn_, turn);
  }

 private:
  static_assert(__atomic_always_lock_free(sizeof(std::uint32_t), nullptr), "a signal handler must not wait for a lock");

  struct Place {
    std::uint32_t high;
    std::uint32_t low;
  };
  [[nodiscard]] static std::uint32_t read(const std::uint32_t& word) noexcept {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
  }
  static void write(std::uint32_t& word, std::uint32_t value) noexcept {
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  }

  std::uint32_t turn_ = 0;
  Place places_[2]{};
};

}  // namespace holdfast
